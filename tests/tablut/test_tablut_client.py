"""Our engine on a server of the competition: played games by heart, against the server's quirks and lies."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Any

import pytest
from patience import PROMPTLY
from tablut import double_server
from tablut.double_server import GAMES, DoubleServer
from tablut_parts import ByHeart, House, free_address

from hnefi.engine import squares
from hnefi.engine.records.record import GameRecord
from hnefi.engine.sides import Side
from hnefi.gui_adapter.tablut import client as client_module
from hnefi.gui_adapter.tablut.client import Client, NoServer, Settings, connect
from hnefi.protocol.client import EngineError
from hnefi.protocol.hosts import journal

pytestmark = pytest.mark.process

SIDES = {"white": Side.DEFENDERS, "black": Side.ATTACKERS}


class Played:
    """A game of our client against the double, and what came of it."""

    def __init__(
        self, house: House, folder: Path, game: str, colour: str, seconds: float = 60.0, decoys: int = 0,
        reserve: float = 2.0, **quirks: int,
    ) -> None:  # fmt: skip
        self.address = free_address()
        self.double = DoubleServer(game, colour, self.address, **quirks)
        self.said: list[str] = []
        self.thinker = ByHeart(self.double.moves, decoys)
        self._folder = folder
        settings = Settings(SIDES[colour], self.address, seconds, reserve, "hnefi", 60.0)

        async def play() -> int:
            reader, writer = await connect(settings)
            kept = journal.Journal("tablut", folder)
            client = Client(settings, house.rules, self.thinker, kept, self.said.append)  # type: ignore[arg-type]
            return await client.play(reader, writer)

        try:
            self.status = house.runner.run(play())
            self.double.join()
        finally:
            self.double.close()

    @property
    def records(self) -> list[GameRecord]:
        return [record for path in self._folder.glob("*.jsonl") for record in journal.read(path)]

    @property
    def record(self) -> GameRecord:
        (record,) = self.records
        return record


def moves(record: GameRecord) -> list[str]:
    return [squares.move_name(ply.move) for ply in record.plies]


def bare(game: str, plies: int | None = None) -> list[str]:
    return [word.partition("x")[0] for word in GAMES[game].split()[:-1]][:plies]


HOW = {
    "escape": ("d", "king_escaped", "white wins (king escaped)"),
    "capture": ("a", "king_captured", "black wins (king captured)"),
    "repetition": ("draw", "repetition", "draw (repetition)"),
}
HARMLESS: list[dict[str, int]] = [
    {}, {"split": 0}, {"bytes": 0}, {"twice": 0}, {"glued": 0}, {"extra": 0}, {"kingless": 0},
]  # fmt: skip


@pytest.mark.parametrize("quirks", HARMLESS, ids=lambda quirks: " ".join(quirks) or "plain")
@pytest.mark.parametrize("colour", ["white", "black"])
@pytest.mark.parametrize("game", ["escape", "capture", "repetition"])
def test_a_whole_game(house: House, tmp_path: Path, game: str, colour: str, quirks: dict[str, int]) -> None:
    """Names, squares, echoes, history and the end, as the convention has them; frames come as they like."""
    played = Played(house, tmp_path, game, colour, **quirks)
    result, reason, said = HOW[game]
    assert played.status == 0
    assert played.double.finished
    assert played.double.heard[0] == "hnefi"
    assert played.said[-1] == f"game over: {said}"
    record = played.record
    assert moves(record) == bare(game)
    assert record.outcome is not None
    assert record.outcome.text == f"{result} {reason}"
    assert record.players == (("", "hnefi") if colour == "white" else ("hnefi", ""))
    # The engine is told the whole game, or it would not know of repetitions.
    assert all(line.start is None for line, _ in played.thinker.asked)


def test_captures_are_written_down(house: House, tmp_path: Path) -> None:
    taken = [ply.captures for ply in Played(house, tmp_path, "escape", "white").record.plies]
    names = ["x".join(squares.name(sq) for sq in captures or ()) for captures in taken]
    assert names == ["", "g5", "f5", "e3", "", "", ""]


def test_the_reserve_is_not_used(house: House, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    played = Played(house, tmp_path / "a", "escape", "white", seconds=600)
    assert all(500.0 < seconds <= 598.0 for seconds in played.thinker.deadlines)
    (tmp_path / "b").mkdir()
    short = Played(house, tmp_path / "b", "escape", "white", seconds=300, reserve=200)
    assert all(100.0 < seconds <= 150.0 for seconds in short.thinker.deadlines)


@pytest.mark.parametrize("colour", ["white", "black"])
def test_a_refused_move_is_followed_by_the_next_best(
    house: House, tmp_path: Path, colour: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The double refuses by answering with the same state; it then wants the game's own move, which was refused."""
    played = Played(house, tmp_path, "escape", colour, refuse=2)
    first = [action["from"] + action["to"] for action in played.double.heard[1:4]]
    assert len(set(first)) == 3
    (_, nothing), (_, without_one), (_, without_two) = played.thinker.asked[:3]
    assert nothing == ()
    assert first[0] not in without_one
    assert not {*first[:2]} & {*without_two}
    assert len(without_two) == len(without_one) - 1
    assert sum("the server refused" in text for text in caplog.messages) == 2
    assert played.status == 3, "the third move is illegal to the double, which ends without a word"


@pytest.mark.parametrize("colour", ["white", "black"])
def test_a_game_goes_on_after_refusals(
    house: House, tmp_path: Path, colour: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A server with `-e 2` refuses two moves of ours; the third is the game's, and no record has the two."""
    played = Played(house, tmp_path, "escape", colour, decoys=2, tolerate=2)
    assert played.status == 0
    assert played.double.finished
    assert moves(played.record) == bare("escape")
    assert sum("the server refused" in text for text in caplog.messages) == 2
    # What was refused in one position may be played in the next.
    assert [among == () for _, among in played.thinker.asked[:4]] == [True, False, False, True]


PLIES = len(bare("escape"))


@pytest.mark.parametrize("quirk", ["vanish", "cut"])
@pytest.mark.parametrize("at", range(PLIES + 1))
def test_an_end_at_and_within_every_message(
    house: House, tmp_path: Path, quirk: str, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Before the game, instead of an echo, instead of the opponent's move: what was played is on the disk."""
    played = Played(house, tmp_path, "escape", "white", **{quirk: at})
    waiting = at > 0 and at % 2 == 0
    assert played.status == (0 if waiting else 3)
    if waiting:
        assert "the opponent vanished" in played.said[-1]
    elif at:
        assert f"the server ended after our move {bare('escape')[at - 1]}" in caplog.messages[-1]
    else:
        cut = "the server: the connection ended in the middle of a frame"
        assert caplog.messages == [cut if quirk == "cut" else "the server ended before the game began"]
    assert [moves(record) for record in played.records] == ([bare("escape", at - 1)] if at > 1 else [])
    assert all(record.outcome is None for record in played.records)


def test_no_legal_move(house: House, tmp_path: Path) -> None:
    """Nothing is sent; the server's clock ends the game."""
    played = Played(house, tmp_path, "escape", "white", jam=0)
    assert played.status == 0
    assert played.double.heard == ["hnefi"]
    assert played.said == [
        "no legal move: the server ends the game when our time is up",
        "game over: black wins (no legal move)",
    ]


def test_an_only_legal_move_is_played_at_once(house: House, tmp_path: Path) -> None:
    played = Played(house, tmp_path, "escape", "white", forced=0)
    assert played.double.heard[1] == {"from": "e5", "to": "e6", "turn": "WHITE"}
    assert played.thinker.asked == []


# Lies

LIES: dict[str, tuple[int, str]] = {
    "garbage": (3, "the server sent"),
    "text": (3, "expected JSON"),
    "deep": (3, "expected"),
    "digits": (3, "expected"),
    "cells": (3, "expected cells"),
    "null": (3, "expected a state"),
    "huge": (3, "a frame of 2147483647 bytes: expected 0 to 65536"),
    "negative": (3, "a frame of -5 bytes: expected 0 to 65536"),
}


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("quirk", LIES)
def test_nonsense_ends_the_game_with_a_sentence(
    house: House, tmp_path: Path, quirk: str, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    began = time.monotonic()
    played = Played(house, tmp_path, "escape", "white", seconds=600, **{quirk: at})
    status, sentence = LIES[quirk]
    assert played.status == status
    assert sentence in caplog.messages[-1]
    assert caplog.messages[-1].isprintable()
    assert len(caplog.messages[-1]) < 400
    assert time.monotonic() - began < PROMPTLY
    plies = max(0, at - 1)
    assert [moves(record) for record in played.records] == ([bare("escape", plies)] if plies else [])


def test_a_board_that_no_move_explains_begins_a_game_without_history(
    house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    played = Played(house, tmp_path, "escape", "black", teleport=3)
    assert any("no legal move leads" in text for text in caplog.messages)
    lines = [line for line, _ in played.thinker.asked]
    assert lines[0].start is None
    assert lines[-1].start is not None
    assert lines[-1].start.endswith(" a 0 1")
    first, *_ = played.records
    assert moves(first) == bare("escape", 2)
    assert first.outcome is None


def test_a_turn_that_is_not_ours_is_not_taken(
    house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """After our move the server says that it is our turn again: the board decides, and the history is gone."""
    played = Played(house, tmp_path, "escape", "white", turn=1)
    assert any("no legal move leads" in text for text in caplog.messages)
    assert played.status == 3, "the double wants no move, and hears one"


def test_a_result_in_mid_game_is_the_server_s_word(
    house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    played = Played(house, tmp_path, "escape", "white", early=4)
    assert played.status == 0
    assert played.said[-1] == "game over: white wins (adjudicated)"
    assert any("by our rules: the game goes on" in text for text in caplog.messages)
    assert played.record.outcome is not None
    assert played.record.outcome.text == "d adjudicated"


def test_ten_thousand_states_a_second(house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Those that come after our move look like refusals of it: a few moves later nobody believes that."""
    played = Played(house, tmp_path, "capture", "black", flood=0)
    if played.status:
        assert played.status == 3
        assert "repeats itself" in caplog.messages[-1]
    assert len(played.double.heard) <= 1 + 3 + client_module.REFUSALS
    assert all(moves(record) == bare("capture", len(record.plies)) for record in played.records)


@pytest.mark.parametrize("quirk", ["silent", "endless"])
def test_a_server_that_says_nothing(
    house: House,
    tmp_path: Path,
    quirk: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(client_module, "IDLE", 0.3)
    played = Played(house, tmp_path, "escape", "white", seconds=1, **{quirk: 2})
    assert played.status == 3
    assert "the server has said nothing for 1.3 s" in caplog.messages[-1]


# Before the game


def test_a_server_that_comes_late_is_waited_for(house: House, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    address = free_address()

    async def late() -> list[Any]:
        settings = Settings(Side.ATTACKERS, address, 60, 2, "hnefi", 60)
        connecting = asyncio.create_task(connect(settings))
        while not caplog.messages:
            await asyncio.sleep(0.01)
        double = DoubleServer("escape", "black", address)
        _, writer = await connecting
        while not double.heard:
            await asyncio.sleep(0.01)
        writer.close()
        await asyncio.to_thread(double.join)
        double.close()
        return double.heard

    assert house.runner.run(late()) == ["hnefi"]
    assert caplog.messages == [f"no server at {address}:5801 yet: trying again for 60 s"]


def test_no_server(house: House) -> None:
    address = free_address()
    with pytest.raises(NoServer, match=f"{address}:5800: .*: expected a Tablut server"):
        house.runner.run(connect(Settings(Side.DEFENDERS, address, 60, 2, "hnefi", 0)))


def test_an_engine_that_fails_twice_ends_the_game_with_its_own_code(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(*_: object) -> str:
        raise EngineError("Parrot has ended: exit status 1")

    monkeypatch.setattr(ByHeart, "best", fails)
    played = Played(house, tmp_path, "escape", "white")
    assert played.status == 4
    assert caplog.messages[-1] == "our engine failed: Parrot has ended: exit status 1"


def test_the_double_is_called_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quirks stand behind its flags, or before them."""
    begun: list[object] = []

    class Begun(Exception):
        """It has been called, and serves nobody here."""

    def begin(*words: str, **quirks: int) -> None:
        begun.append((words, quirks))
        raise Begun

    monkeypatch.setattr(double_server, "DoubleServer", begin)
    for words in (
        "escape white --address 127.77.3.99 flood cut=2",
        "escape white flood cut=2 --address 127.77.3.99",
    ):
        monkeypatch.setattr("sys.argv", ["double_server.py", *words.split()])
        with pytest.raises(Begun):
            double_server.main()
    assert begun == [(("escape", "white", "127.77.3.99"), {"flood": 0, "cut": 2})] * 2
