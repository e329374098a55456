"""Engines asked where they think a game stands: what differs is told, and costs nothing."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import arena_parts
import pytest

from hnefi.engine import games
from hnefi.engine.games.base_position import Position
from hnefi.protocol.client import EngineCrashed, Exit, own_command
from hnefi.protocol.format import moves_line
from hnefi.tools.arena import cross_check
from hnefi.tools.arena.cross_check import compare
from hnefi.tools.arena.engine_slot import EngineSlot
from hnefi.tools.arena.values import EngineSpec, Fault, GameResult, GameTask, Opening, SideLimits

MOVES = arena_parts.by_heart()
VARIANT = games.find(arena_parts.VARIANT)


def position_after(moves: tuple[str, ...]) -> Position:
    position = games.initial(VARIANT)
    for move in moves:
        position = position.play(position.parse_move(move))
    return position


class Answering:
    """An engine that answers as ours does, but for what `lies` says to a question."""

    def __init__(self, proto: str = "uti", **lies: Any) -> None:
        self.proto = proto
        self.failure = None
        self.lies = lies
        self.killed = False
        self.asked: list[int] = []
        self.position = games.initial(VARIANT)

    def hold(self, line: str) -> None:
        words = line.split()
        moves = words[words.index("moves") + 1 :] if "moves" in words else []
        self.asked.append(len(moves))
        self.position = position_after(tuple(moves))

    async def ask(self, question: str, timeout: float) -> list[str]:
        assert timeout <= cross_check.ALL
        word = question.rsplit(maxsplit=1)[-1]
        lie = self.lies.get(word)
        if isinstance(lie, Exception):
            raise lie
        if lie == "sleep":
            await asyncio.sleep(60)
        if lie is not None:
            return [lie] if lie else []
        ended = self.position.outcome
        if word == "moves":
            return [moves_line(self.position.legal_moves())]
        answers = {
            "fen": self.position.fen(),
            "outcome": "none" if ended is None else ended.result,
            "reason": "none" if ended is None else str(ended.reason),
            "gameover": str(ended is not None).lower(),
            "p1turn": str(self.position.side == 0).lower(),
            "result": "none" if ended is None else f"p{(ended.winner or 0) + 1}win",
        }
        return ["info string something", f"response {answers[word]}"]

    def kill(self) -> None:
        self.killed = True


def checked(
    *engines: Any,
    plies: int = len(MOVES),
    every: int = 0,
    fault: Fault | None = None,
    letters: str = "",
) -> tuple[str, ...]:
    """The advisories of a game of so many plies, the first two of them its opening."""
    opening = Opening(None, MOVES[:2])
    task = GameTask(1, 1, VARIANT.name, opening, (0, 1), (1, 2))
    slots = tuple(EngineSlot(EngineSpec(name, ("x",), letters=letters)) for name in ("one", "two"))
    for slot, engine in zip(slots, engines, strict=True):
        slot.engine, slot.knows_start = engine, True
    game: Any = SimpleNamespace(position=position_after(MOVES[:plies]), slots=slots, task=task, length=plies)
    result = GameResult(task, ("one", "two"), "a", "x", (), advisories=("two: old",), fault=fault)
    return asyncio.run(compare(game, result, every)).advisories[1:]


def test_engines_that_agree_are_not_mentioned() -> None:
    one, two = Answering(), Answering("ugi")
    assert checked(one, two) == ()
    assert one.asked == two.asked == [len(MOVES)]
    assert checked(one, two, every=5) == ()
    assert one.asked[1:] == [len(MOVES), *range(len(MOVES) // 5 * 5, 2, -5)]
    # The opening's positions were none of theirs.
    assert min(one.asked) >= 2


@pytest.mark.parametrize(
    ("proto", "lies", "words"),
    [
        ("uti", {"fen": "response 7/7 a 0 1"}, "cross-check-fen at ply 8: we have "),
        ("uti", {"outcome": "response d"}, "cross-check-outcome at ply 8: we have none, it has d; FEN "),
        ("uti", {"reason": "response draw"}, "cross-check-reason at ply 8: we have none, it has draw; FEN "),
        ("uti", {"moves": "moves 1 a1a2"}, "it has 1, only we '"),
        ("uti", {"moves": "moves 1 a1a2"}, "', only it 'a1a2'; FEN "),
        ("ugi", {"gameover": "response true"}, "cross-check-gameover at ply 8: we have false, it has true"),
        ("ugi", {"p1turn": "response false"}, "cross-check-p1turn at ply 8: we have true, it has false"),
        ("ugi", {"result": "response draw"}, "cross-check-result at ply 8: we have none, it has draw"),
    ],
)
def test_a_difference_is_told_with_both_answers(proto: str, lies: dict[str, str], words: str) -> None:
    (text,) = checked(Answering(), Answering(proto, **lies), plies=8, every=2)
    assert text.startswith("two: cross-check-")
    assert words in text
    assert position_after(MOVES[:8]).fen() in text


def test_other_ways_to_write_the_same_position() -> None:
    fen = position_after(MOVES[:8]).fen()
    board, side, *_ = fen.split()
    foreign = board.translate(str.maketrans("tTK", "adk"))
    assert checked(Answering(fen=f"response {board} {side}"), Answering(fen=f"response {fen}"), plies=8) == ()
    adk = Answering(fen=f"response {foreign} {side}")
    assert checked(adk, adk, plies=8, letters="adk") == ()
    assert len(checked(Answering(fen="response "), Answering(fen="response " + "x" * 9999), plies=8)) == 2


def test_who_is_not_willing_is_left_alone() -> None:
    silent, foreign, lost = Answering(fen=""), Answering("uci", fen="response x"), Answering(fen="response x")
    assert checked(silent, foreign, every=1) == ()
    assert (silent.asked, foreign.asked) == ([len(MOVES)], [])
    assert checked(lost, Answering(), fault=Fault(0, "crash", "x")) == ()


def test_an_engine_that_fails_at_it_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_check, "ALL", 1.05)
    dying = Answering(fen=EngineCrashed("Dying has ended", Exit(3)))
    deaf = Answering(outcome="sleep")
    assert checked(dying, deaf) == ("one: cross-check: Dying has ended",)
    assert dying.killed
    assert deaf.killed


@pytest.mark.process
def test_our_engine_agrees_with_our_referee() -> None:
    ours = EngineSpec(
        "ours",
        tuple(own_command("--player", "random-blind")),
        proto="uti",
        limits=(SideLimits(nodes=1), SideLimits(nodes=1)),
        env=((arena_parts.MARK, f"cross-check-{uuid.uuid4()}"),),
    )
    seen = []

    async def after(game: Any, result: GameResult) -> GameResult:
        seen.append(game.length)
        return await compare(game, result, 1)

    found = arena_parts.collect(arena_parts.pair(), [ours, replace(ours, name="again")], after=after)
    assert [one.advisories for one in found if any("cross" in text for text in one.advisories)] == []
    assert len(seen) == 2
    parrots = [arena_parts.spec("one"), arena_parts.spec("two")]
    found = arena_parts.collect(arena_parts.pair(), parrots, after=partial(compare, every=1))
    assert [one.advisories for one in found] == [(), ()]
