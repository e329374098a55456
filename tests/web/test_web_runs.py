"""Watching: runs live and finished, every game of them, charts, and matches that a visitor begins."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from leftover_processes import MARK, expect_nobody
from live_events import TABLE, end, info, ply, start
from mqtt_parts import fake
from web_parts import WAIT, Tab, policy, serving, tab

from hnefi.gui_adapter.web import runs as runs_module
from hnefi.gui_adapter.web.runs import Index

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]

CONFIG = """
[run]
name = "Spring cup"
format = "match"
variants = ["brandubh"]
pairs = 2
seed = 1
[output]
live = true
[[engine]]
name = "mine"
nodes = 100
cmd = "/secret/path"
[[engine]]
name = "simple"
"""


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(WAIT):
            await scene()

    asyncio.run(bounded())


class Run:
    """A run's folder, as an arena fills it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(CONFIG)

    def happens(self, *events: dict[str, Any]) -> None:
        with (self.folder / "live.jsonl").open("a") as file:
            file.writelines(json.dumps(event) + "\n" for event in events)

    def finishes(self, pair: int, game: int, winner: str | None, **more: Any) -> None:
        engines = ["mine", "simple"][:: 1 if game == 1 else -1]
        task = {"pair": pair, "game": game, "variant": "brandubh", "opening": {"moves": ["d1c1"]}}
        plies = [{"move": "d3a3", "captures": ["a2"], "cp": 12}, {"move": "a4a2"}]
        line = {
            "task": task,
            "names": engines,
            "winner": winner,
            "reason": "king_captured",
            "plies": plies,
            **more,
        }
        with (self.folder / "games.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_module, "PAUSE", 0.01)
    monkeypatch.setattr(runs_module, "LOOK", 0.05)


async def do(page: Tab, what: str, **more: Any) -> dict[str, Any]:
    await page.say({"t": "run", "do": what, "id": 5, **more})
    return await page.hear(lambda frame: frame.get("id") == 5)


async def seen(page: Tab, fits: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    return await page.hear(lambda frame: frame["t"] == "run" and bool(fits(frame)))


def test_a_run_is_watched_from_its_first_game_to_its_last(tmp_path: Path) -> None:
    run = Run(tmp_path / "runs" / "cup")
    run.happens(start("1.1"), ply(2, "d3a3", captures=["a2"]))

    async def scene() -> None:
        async with (
            serving(policy=policy(fake()), watched=(tmp_path / "runs",)) as (server, url),
            tab(url) as page,
            tab(url) as other,
        ):
            (listed,) = (await do(page, "list"))["runs"]
            assert (listed["run"], listed["name"], listed["state"]) == ("cup", "Spring cup", "running")
            # Neither commands nor paths of this machine.
            assert "secret" not in json.dumps(listed)
            assert str(tmp_path) not in json.dumps(listed)
            answer = await do(page, "watch", run="cup")
            assert answer["key"] == "run cup"
            game = (await seen(page, lambda frame: "game" in frame))["game"]
            assert (game["id"], game["moves"], game["captures"]) == ("1.1", ["d3a3"], [["a2"]])
            # Who has not asked hears nothing, whoever comes late everything.
            assert not any(frame["t"] == "run" for frame in other.frames)
            run.happens(ply(3, "a4a2"), info("1.1", "a", pv="d1d2", depth=9))
            await seen(page, lambda frame: frame.get("game", {}).get("moves") == ["d3a3", "a4a2"])
            await seen(page, lambda frame: frame.get("info", {}).get("depth") == 9)
            await do(other, "watch", run="cup")
            await seen(other, lambda frame: frame.get("game", {}).get("moves") == ["d3a3", "a4a2"])

            run.happens(end("1.1"), TABLE, start("1.2", attackers="simple", defenders="mine"))
            run.finishes(1, 1, "a")
            run.finishes(1, 2, "a")
            run.finishes(2, 1, None)
            await seen(page, lambda frame: frame.get("game", {}).get("state") == "ended")
            # The table may have come before the end of the game on the board.
            told = (frame for frame in page.frames if frame.get("games") == 3)
            table = next(told, None) or await seen(page, lambda frame: frame.get("games") == 3)
            assert table["engines"] == ["mine", "simple"]
            # One win each as attackers, and a draw.
            assert table["cross"] == [[None, [1, 1, 1]], [[1, 1, 1], None]]
            assert (table["standings"] or [{"name": "mine"}])[0]["name"] == "mine"

            newest = await do(page, "games", run="cup", first=0)
            assert [game["id"] for game in newest["games"]] == ["2.1", "1.2", "1.1"]
            assert (newest["total"], newest["games"][0]["plies"]) == (3, 3)
            assert (await do(page, "games", run="cup", first=2))["games"][0]["id"] == "1.1"
            assert (await do(page, "games", run="cup", engine="nobody"))["total"] == 0
            game = await do(page, "game", run="cup", game="1.2")
            assert (game["opening"], game["moves"], game["cp"]) == (["d1c1"], ["d3a3", "a4a2"], [12, None])
            assert game["engines"] == ["simple", "mine"]
            assert (await do(page, "game", run="cup", game="9.9"))["code"] == "no_game"

            (run.folder / "lock").write_text("")
            summary = {"state": {"ending": "complete"}, "engines": [{"name": "simple"}, {"name": "mine"}]}
            (run.folder / "summary.json").write_text(json.dumps(summary))
            table = await seen(page, lambda frame: frame.get("state") == "complete")
            assert table["engines"] == ["simple", "mine"]

            await do(page, "leave", run="cup")
            assert (await do(page, "games", run="cup"))["code"] == "no_run"
            assert len(server.site.runs) == 1
            await other.socket.close()
            while len(server.site.runs):
                await asyncio.sleep(0.01)

    play(scene)


@pytest.mark.parametrize("name", ["../runs/cup", "/etc", "cup/..", "", "cup\0", "run cup"])
def test_names_are_no_paths(tmp_path: Path, name: str) -> None:
    Run(tmp_path / "runs" / "cup")
    (tmp_path / "other.svg").write_text("<svg/>")

    async def scene() -> None:
        async with serving(policy=policy(fake()), watched=(tmp_path / "runs",)) as (_, url), tab(url) as page:
            assert (await do(page, "watch", run=name))["code"] in ("no_run", "bad_frame")
            assert (await do(page, "chart", chart=f"{name}/../other.svg"))["code"] in (
                "no_chart",
                "bad_frame",
            )
            assert (await do(page, "games", run="cup"))["code"] == "no_run"

    play(scene)


def test_charts(tmp_path: Path) -> None:
    folder = tmp_path / "ladder"
    folder.mkdir()
    (folder / "ratings.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "large.svg").write_bytes(b" " * (runs_module.CHART_LIMIT + 1))
    # What a link leads out to is nobody's business.
    (tmp_path / "outside.svg").write_text("<svg/>")
    (folder / "linked.svg").symlink_to(tmp_path / "outside.svg")

    async def scene() -> None:
        async with serving(policy=policy(fake()), watched=(folder,)) as (_, url), tab(url) as page:
            listed = await do(page, "list")
            assert listed["charts"] == ["ladder/large.svg", "ladder/ratings.svg"]
            assert (await do(page, "chart", chart="ladder/ratings.svg"))["svg"].startswith("<svg")
            assert (await do(page, "chart", chart="ladder/large.svg"))["code"] == "no_chart"
            assert (await do(page, "chart", chart="ladder/linked.svg"))["code"] == "no_chart"

    play(scene)


def test_the_index_reads_on_begins_again_and_skips_what_is_no_game(tmp_path: Path) -> None:
    run = Run(tmp_path / "cup")
    index = Index(run.folder / "games.jsonl")
    assert not index.look()
    run.finishes(1, 1, "a")
    with (run.folder / "games.jsonl").open("a") as file:
        file.write('{"task": 1}\n[[[\n' + "[" * 5000 + '\n{"half')
    assert index.look()
    assert [*index.games] == ["1.1"]
    assert not index.look()
    with (run.folder / "games.jsonl").open("a") as file:
        file.write('"}\n')
    run.finishes(1, 2, None)
    while index.look():
        pass
    assert [*index.games] == ["1.1", "1.2"]
    assert index.record("1.2")["moves"] == ["d3a3", "a4a2"]
    (run.folder / "games.jsonl").write_text("")
    index.look()
    assert [*index.games] == []


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"one": "level:0"}, "bad_frame"),
        ({"one": "player:../../x"}, "bad_frame"),
        ({"one": "player:nobody"}, "bad_frame"),
        ({"other": "player:evolved-copenhagen"}, "bad_frame"),
        ({"variant": "no-such"}, "unknown_variant"),
        ({"pairs": 1000}, "bad_frame"),
        ({"nodes": True}, "bad_frame"),
    ],
)
def test_what_no_match_can_be_made_of(tmp_path: Path, wanted: dict[str, Any], code: str) -> None:
    async def scene() -> None:
        async with (
            serving(policy=policy(fake()), matches=1, match_folder=tmp_path) as (server, url),
            tab(url) as page,
        ):
            usual = {
                "one": "level:1",
                "other": "player:simple",
                "variant": "brandubh",
                "pairs": 1,
                "nodes": 50,
            }
            assert (await do(page, "match", **(usual | wanted)))["code"] == code
            assert not len(server.site.matches)

    play(scene)


@pytest.mark.slow
def test_a_match_is_begun_watched_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = os.urandom(8).hex()
    monkeypatch.setenv(MARK, mark)
    usual = {"one": "level:1", "other": "level:1", "variant": "brandubh", "pairs": 100, "nodes": 50}

    async def scene() -> None:
        async with (
            serving(policy=policy(fake()), matches=1, match_folder=tmp_path / "new") as (server, url),
            tab(url) as page,
            tab(url) as other,
        ):
            begun = await do(page, "match", **usual)
            assert (await do(other, "match", **usual))["code"] == "too_many"
            assert begun["run"] in [run["run"] for run in (await do(other, "list"))["runs"]]
            await do(other, "watch", run=begun["run"])
            game = (await seen(other, lambda frame: frame.get("game", {}).get("moves")))["game"]
            assert {game["attackers"], game["defenders"]} == {"level-1", "level-1-again"}
            assert (await do(other, "end", word="x" * 22))["code"] == "no_run"
            assert (await do(page, "end", word=begun["word"]))["t"] == "runs"
            await seen(other, lambda frame: frame.get("state") == "interrupted")
            while len(server.site.matches):
                await asyncio.sleep(0.01)
            # The end of the server is the end of a match, too.
            await do(page, "match", **usual)

    play(scene)
    expect_nobody(mark)


def test_a_server_without_matches(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(policy=policy(fake()), match_folder=tmp_path) as (_, url), tab(url) as page:
            assert (await do(page, "list"))["matches"] == 0
            assert (await do(page, "match", one="level:1"))["code"] == "too_many"

    play(scene)
