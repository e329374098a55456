"""Puzzles of pages: what counts for the rating, which puzzles are chosen, and a prover that dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from web_parts import policy

from hnefi.gui_adapter.web import helper as helpers
from hnefi.gui_adapter.web.frames import FrameError
from hnefi.gui_adapter.web.helper import Helper
from hnefi.gui_adapter.web.page import WAITING_LIMIT, Page
from hnefi.gui_adapter.web.puzzles import Desk, offer, suite
from hnefi.gui_adapter.web.server import Server
from hnefi.gui_adapter.web.site import Settings, Site
from hnefi.protocol.hosts.puzzles import scores
from hnefi.protocol.hosts.sessions.engine_process import RequestError

PLACE = {"fen": "7/7/7/3K3/7/7/7 d 0 1", "legal": [], "special": {}}


class Proving(Helper):
    """Says what it is told to, and remembers what it was asked."""

    def __init__(self, *answers: Mapping[str, Any]) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    async def ask(self, **request: Any) -> dict[str, Any]:
        self.asked.append(request)
        return {**PLACE, **(self.answers.pop(0) if self.answers else {})}


def run(desk: Desk, *frames: Mapping[str, Any]) -> list[dict[str, Any]]:
    async def conversation() -> list[dict[str, Any]]:
        return [await desk.take({"t": "puzzle", "id": 1, **frame}) for frame in frames]

    return asyncio.run(conversation())


def try_(move: str, ply: int = 0) -> dict[str, Any]:
    return {"do": "try", "move": move, "ply": ply}


RIGHT = {"right": True, "solved": False, "text": "", "steps": []}
SOLVED = {"right": True, "solved": True, "text": "", "steps": []}
WRONG = {"right": False, "solved": False, "text": "", "steps": []}
SHOW = {"do": "show", "puzzle": "brandubh-026"}


def test_the_first_result_counts_and_no_other() -> None:
    prover = Proving({}, RIGHT, WRONG, SOLVED, {}, SOLVED)
    told = run(Desk(prover, kept=False), SHOW, try_("a"), try_("b", 1), try_("c", 1), SHOW, try_("a"))
    changes = [answer.get("change") for answer in told]
    assert [change is None for change in changes] == [True, True, False, True, True, False]
    assert changes[2] < 0 < changes[5]
    assert (told[-1]["solved_ever"], told[-1]["failed_ever"]) == (1, 1)
    # Right moves are played again before the next one; a wrong one is none of them.
    assert [asked["moves"] for asked in prover.asked] == [[], [], ["a"], ["a"], [], []]


def test_a_hint_counts_as_a_loss_and_tells_more_the_second_time() -> None:
    prover = Proving({}, {"text": "Look"}, {"text": "The move"}, SOLVED)
    told = run(Desk(prover, kept=False), SHOW, {"do": "hint"}, {"do": "hint"}, try_("a"))
    assert told[1]["change"] < 0
    assert [told[2]["change"], told[3]["change"]] == [None, None]
    assert [asked.get("more") for asked in prover.asked[1:3]] == [False, True]


def test_scores_are_the_terminals_or_the_browsers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (_, told) = run(Desk(Proving({}, SOLVED), kept=True), SHOW, try_("a"))
    assert told["scores"] is None
    assert scores.load(scores.place()).solved == 1
    (_, told) = run(Desk(Proving({}, SOLVED), kept=False), SHOW, try_("a"))
    assert json.loads(told["scores"])["player"]["solved"] == 1
    (again,) = run(Desk(Proving(), kept=False), {**SHOW, "scores": told["scores"]})
    assert again["rating"] == told["rating"]
    assert scores.load(scores.place()).solved == 1, "a browser's own are not the server's"
    scores.place().write_text("{}")
    with pytest.raises(RequestError, match=r"puzzles\.json"):
        run(Desk(Proving(), kept=True), SHOW)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": 1}', "[" * 40_000, '{"format": 1e999, "player": NaN}']
)
def test_scores_that_are_none_begin_anew(text: str) -> None:
    (told,) = run(Desk(Proving(), kept=False), {**SHOW, "scores": text})
    assert told["rating"] == "1500 ± 686"


def test_puzzles_are_chosen_by_rules_theme_and_rating() -> None:
    for wanted, fits in (
        ({"variant": "tablut-bologna"}, lambda puzzle: puzzle["variant"] == "tablut-bologna"),
        ({"theme": "defence"}, lambda puzzle: "defence" in puzzle["themes"]),
        ({"low": 1550}, lambda puzzle: puzzle["rating"] >= 1550),
        ({"high": 1250}, lambda puzzle: puzzle["rating"] <= 1250),
    ):
        told = run(Desk(Proving(), kept=False), *[{"do": "next", **wanted}] * 4)
        assert all(fits(answer["puzzle"]) for answer in told), wanted
        assert len({answer["puzzle"]["id"] for answer in told}) == 4
    counts = offer()
    assert sum(variant["count"] for variant in counts["variants"]) == len(suite())
    assert all(theme["count"] for theme in counts["themes"])


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({}, "bad_frame"),
        ({"do": "eat"}, "bad_frame"),
        ({"do": ["next"]}, "bad_frame"),
        ({"do": "next", "variant": "chess"}, "no_puzzle"),
        ({"do": "next", "low": -1}, "bad_frame"),
        ({"do": "next", "scores": "x" * 60_000}, "bad_frame"),
        ({"do": "show", "puzzle": "../../etc/passwd"}, "no_puzzle"),
        ({"do": "show"}, "no_puzzle"),
        ({"do": "try", "move": "a1a2"}, "bad_puzzle"),
        ({"do": "hint"}, "bad_puzzle"),
    ],
)
def test_nonsense_is_refused(frame: dict[str, Any], code: str) -> None:
    with pytest.raises(RequestError) as refused:
        run(Desk(Proving(), kept=False), frame)
    assert refused.value.code == code
    with pytest.raises(FrameError):
        run(Desk(Proving(), kept=False), SHOW, try_("a" * 17))


@pytest.mark.process
@pytest.mark.slow
def test_a_worker_that_dies_is_an_error_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        helper = Helper()
        request = {"puzzle": "brandubh-026", "moves": [], "move": "", "more": False}
        assert (await helper.ask(do="show", **request))["side"] == "a"
        # Who is killed while he works has no answer; the next question starts another.
        question = asyncio.create_task(helper.ask(do="solution", **request))
        while helper._answer is None or helper._answer.done():
            await asyncio.sleep(0)
        assert helper._process is not None
        os.kill(helper._process.pid, signal.SIGKILL)
        with pytest.raises(RequestError, match="it ended"):
            await question
        told = await helper.ask(do="try", **{**request, "move": "b3c3"})
        assert (told["right"], told["solved"], len(told["steps"])) == (True, False, 2)
        with pytest.raises(RequestError, match="nothing stands"):
            await helper.ask(do="try", **{**request, "move": "a1a2"})
        # A page that leaves breaks nothing off.
        process = helper._process
        left = asyncio.create_task(helper.ask(do="solution", **request))
        await asyncio.sleep(0)
        left.cancel()
        assert (await helper.ask(do="show", **request))["side"] == "a"
        assert helper._process is process
        monkeypatch.setattr(helpers, "IDLE", 0.0)
        await helper.ask(do="show", **request)
        assert await process.wait(60.0) is not None, "it rests when nobody asks"
        await helper.close()

    asyncio.run(scene())


def test_a_page_goes_on_while_a_puzzle_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        held = asyncio.Event()

        async def ask(_helper: Helper, **_request: Any) -> dict[str, Any]:
            await held.wait()
            return PLACE

        monkeypatch.setattr(Helper, "ask", ask)
        site = Site(Settings(policy=policy()))
        page = Page(site, Server(site).tables, lambda: None)
        await page.take('{"t":"hello"}')
        for number in range(WAITING_LIMIT + 1):
            await page.take(json.dumps({"t": "puzzle", "id": number, **SHOW}))
        await page.take('{"t":"workshop","id":99}')
        kinds = [json.loads(await page.box.next())["t"] for _ in range(3)]
        assert kinds == ["welcome", "error", "workshop"]
        held.set()
        found = [json.loads(await page.box.next())["id"] for _ in range(WAITING_LIMIT)]
        assert found == list(range(WAITING_LIMIT)), "one after the other, as they were asked"
        page.leave()
        await site.drain()

    asyncio.run(asyncio.wait_for(scene(), 60))
