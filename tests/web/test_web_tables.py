"""Tables: two people and spectators at different browsers, each with the rights of their link and no more."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from web_parts import WAIT, Tab, serving, tab

from hnefi.gui_adapter.web import tables as tables_module
from hnefi.gui_adapter.web.outbox import Outbox

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(WAIT):
            await scene()

    asyncio.run(bounded())


async def made(page: Tab, **wanted: Any) -> dict[str, str]:
    """The links of a new table."""
    await page.say({"t": "table", "do": "make", "id": 1, "variant": "brandubh", **wanted})
    seats: dict[str, str] = (await page.kind("made"))["seats"]
    return seats


async def do(page: Tab, what: str, seat: str, **more: Any) -> None:
    await page.say({"t": "table", "do": what, "id": 7, "seat": seat, **more})


async def sees(page: Tab, *moves: str, **wanted: Any) -> dict[str, Any]:
    """The table after these moves."""

    def fits(frame: dict[str, Any]) -> bool:
        return (
            frame["t"] == "table"
            and frame.get("moves") == [*moves]
            and all(frame[key] == value for key, value in wanted.items())
        )

    return await page.hear(fits)


def test_a_game_of_two_with_a_spectator() -> None:
    async def scene() -> None:
        async with (
            serving() as (server, url),
            tab(url) as host,
            tab(url) as attacker,
            tab(url) as defender,
            tab(url) as spectator,
        ):
            seats = await made(host, moves=["a4a2"])
            assert len({*seats.values()}) == 3
            await do(attacker, "sit", seats["a"], name="Anna")
            await do(defender, "sit", seats["d"], name="Björn")
            await do(spectator, "sit", seats["watch"])
            told = [await sees(page, "a4a2", watching=1) for page in (attacker, defender, spectator)]
            assert [frame["seat"] for frame in told] == ["a", "d", "watch"]
            # Whose turn it is may move; the others are shown no moves.
            assert [bool(frame["legal"]) for frame in told] == [False, True, False]
            assert told[2]["names"] == {"a": "Anna", "d": "Björn"}
            assert told[2]["here"] == {"a": True, "d": True}

            await do(attacker, "move", seats["a"], move="d1c1")
            assert await attacker.error() == "not_your_turn"
            await do(spectator, "move", seats["watch"], move="d3a3")
            assert await spectator.error() == "not_your_turn"
            await do(spectator, "resign", seats["watch"])
            assert await spectator.error() == "not_your_turn"
            await do(defender, "move", seats["d"], move="d3d7")
            refused = await defender.kind("error")
            assert (refused["code"], refused["id"], refused["text"]) == ("illegal", 7, "d3d7: blocked at d4")
            await do(defender, "move", seats["d"], move="go infinite")
            assert await defender.error() == "bad_frame"
            await do(defender, "move", seats["d"], move="d3a3")
            await defender.kind("done")
            for page in (attacker, defender, spectator):
                state = await sees(page, "a4a2", "d3a3")
            assert (state["side"], state["captures"]) == ("a", [0, 1])

            # The engine of the table dies, and the game goes on.
            (session,) = server.site.sessions.values()
            os.kill(session.engine.pid, signal.SIGKILL)
            await do(attacker, "draw", seats["a"])
            await sees(defender, "a4a2", "d3a3", offers=["a"])
            # To move is to decline it.
            await do(attacker, "move", seats["a"], move="d1c1")
            await sees(defender, "a4a2", "d3a3", "d1c1", offers=["a"])
            await do(defender, "move", seats["d"], move="e4e2")
            await sees(defender, "a4a2", "d3a3", "d1c1", "e4e2", offers=[])
            await do(attacker, "resign", seats["a"])
            over = await sees(
                spectator, "a4a2", "d3a3", "d1c1", "e4e2", over={"result": "d", "reason": "resignation"}
            )
            assert over["legal"] == []
            await do(defender, "draw", seats["d"])
            assert await defender.error() == "over"

            # Another game from the same start, with the sides swapped; the links stay what they were.
            await do(spectator, "rematch", seats["watch"])
            assert await spectator.error() == "not_your_turn"
            await do(defender, "rematch", seats["d"])
            await sees(attacker, "a4a2", "d3a3", "d1c1", "e4e2", offers=["d"], game=1)
            await do(attacker, "rematch", seats["a"])
            again = [await sees(page, "a4a2", game=2) for page in (attacker, defender, spectator)]
            assert [frame["seat"] for frame in again] == ["d", "a", "watch"]
            assert (again[0]["names"], again[0]["over"], again[0]["offers"]) == (
                {"d": "Anna", "a": "Björn"},
                None,
                [],
            )
            assert [bool(frame["legal"]) for frame in again] == [True, False, False]
            await do(defender, "rematch", seats["d"])
            assert await defender.error() == "over"
            await do(attacker, "move", seats["a"], move="d3a3")
            await sees(spectator, "a4a2", "d3a3", game=2)

            # Nobody but the host had a game, and no page could have driven the table's.
            assert not any(
                frame["t"] in ("opened", "line") for page in (attacker, spectator) for frame in page.frames
            )
            await attacker.line(session.sid, "play a1a2")
            assert await attacker.error() == "no_session"

    play(scene)


def test_a_draw_by_agreement_and_whoever_comes_back() -> None:
    async def scene() -> None:
        async with serving() as (_, url), tab(url) as host:
            seats = await made(host)
            await do(host, "sit", seats["a"])
            await sees(host)
            async with tab(url) as guest:
                await do(guest, "sit", seats["d"])
                await sees(host, here={"a": True, "d": True})
            await sees(host, here={"a": True, "d": False})
            async with tab(url) as guest:
                await do(guest, "sit", seats["d"])
                await sees(guest)
                await do(host, "draw", seats["a"])
                await do(guest, "draw", seats["d"])
                await sees(host, over={"result": "draw", "reason": "agreed_draw"})

    play(scene)


def test_a_clock_is_kept_by_the_server() -> None:
    async def scene() -> None:
        async with serving() as (_, url), tab(url) as host:
            seats = await made(host, clock=[1, 60])
            for side in "ad":
                await do(host, "sit", seats[side])
            before = await sees(host)
            assert before["clock"] == {"a": 1000, "d": 1000, "running": None}
            await do(host, "move", seats["a"], move="a4a2")
            await sees(host, "a4a2", over={"result": "a", "reason": "time"})
            assert host.frames[-1]["clock"]["d"] == 0

    play(scene)


def test_what_the_engine_needs_is_on_nobodys_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when its host dies: a move counts from the moment in which it came."""

    async def scene() -> None:
        now = 100.0
        monkeypatch.setattr(tables_module.time, "monotonic", lambda: now)
        box = Outbox(lambda: None)
        session = SimpleNamespace(receive=lambda _line: None, left=None)
        table = tables_module.Table({}, session, tables_module.Clock(60.0, 2.0))
        common = dict.fromkeys(
            ["variant", "files", "ranks", "start", "fen", "special", "captures", "outcome"]
        )

        def stands(*moves: str) -> None:
            side = "ad"[len(moves) % 2]
            table.put({"t": "state", **common, "moves": [*moves], "side": side, "legal": []})

        stands()
        table.move(box, "a", "a4a2", 1)
        stands("a4a2")
        now += 50.0
        table.move(box, "d", "d3c3", 2)
        now += 30.0
        table._time_is_over("d")
        assert table.over is None, "the move is being looked at"
        stands("a4a2", "d3c3")
        assert table.clock.shown() == {"a": 60_000, "d": 12_000, "running": "a"}
        now += 10.0
        assert table.clock.shown()["a"] == 50_000
        # A move that the rules do not allow is none.
        table.move(box, "a", "a1a2", 3)
        now += 55.0
        table._time_is_over("a")
        assert table.over is None
        table.put({"t": "line", "text": "info string error play a1a2: no man there"})
        while table.over is None:
            await asyncio.sleep(0)
        assert table.over == {"result": "d", "reason": "time"}

    play(scene)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"variant": "no-such"}, "unknown_variant"),
        ({"moves": ["a4a9"]}, "bad_frame"),
        ({"moves": ["a4a2\nquit"]}, "bad_frame"),
        ({"start": "9/9 z"}, "bad_frame"),
        ({"clock": [0, 0]}, "bad_frame"),
        ({"clock": "5+3"}, "bad_frame"),
        ({"do": "dance"}, "bad_frame"),
        ({"do": "sit", "seat": "x" * 22}, "no_table"),
        ({"do": "move", "seat": ""}, "no_table"),
    ],
)
def test_what_no_table_can_be_made_of(wanted: dict[str, Any], code: str) -> None:
    async def scene() -> None:
        async with serving() as (server, url), tab(url) as page:
            await page.say({"t": "table", "do": "make", "id": 3, "variant": "brandubh", **wanted})
            error = await page.kind("error")
            assert (error["code"], error["id"]) == (code, 3)
            while len(server.tables) or server.site.sessions:
                await asyncio.sleep(0.01)

    play(scene)


def test_tables_count_as_games_and_end_when_nobody_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "KEPT", 0.1)

    async def scene() -> None:
        async with serving(per_page=1, back=0.2) as (server, url), tab(url) as page:
            seats = await made(page)
            await do(page, "sit", seats["a"])
            await sees(page)
            await page.say({"t": "open", "id": 2})
            assert await page.error() == "too_many"
            assert len(server.tables) == 1
            async with tab(url) as spectator:
                await do(spectator, "sit", seats["watch"])
                await sees(spectator)
                await do(page, "leave", seats["a"])
                await sees(spectator, here={"a": False, "d": False})
                assert server.tables.watching() == 1
            while server.site.sessions or len(server.tables):
                await asyncio.sleep(0.01)
            await do(page, "sit", seats["a"])
            assert await page.error() == "no_table"
            await page.open()

    play(scene)
