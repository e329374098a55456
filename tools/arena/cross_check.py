"""Asks engines where they think a game stood, after it has ended, and compares that with our referee's position.

Only engines that answer `query` can be asked. Nothing here changes the game: its result is known, an engine
that fails at it is replaced, and what differs is an advisory, once per kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

from hnefi.engine import games
from hnefi.engine.games.base_position import Position
from hnefi.engine.games.tafl.fen import from_adk
from hnefi.engine.squares import move_name
from hnefi.engine.wording import shorten
from hnefi.protocol.client import Engine, EngineError

from .engine_slot import EngineSlot
from .referee import Game
from .values import GameResult

KIND = "cross-check"
ANSWER = 1.0
"""Seconds for one answer."""
ALL = 3.0
"""Seconds per game; positions not reached in time are not compared."""
SHOWN = 300
"""Characters of an answer to quote."""


async def compare(game: Game, result: GameResult, every: int = 0) -> GameResult:
    """The result with an advisory for every kind of difference and engine.

    The final position is compared and, with `every`, each position after that many plies, whoever was at fault for
    the end of the game.
    """
    sides = [side for side in (0, 1) if result.fault is None or side != result.fault.side]
    positions = list(_positions(game, every))
    found = await asyncio.gather(*(_ask(game.slots[side], positions) for side in sides))
    advisories = [text for texts in found for text in texts.values()]
    return replace(result, advisories=(*result.advisories, *advisories)) if advisories else result


def _positions(game: Game, every: int) -> Iterator[Position]:
    """The final position and earlier ones that the engines have seen, latest first."""
    position = game.position
    first = len(game.task.opening.moves)
    for ply in range(len(position.moves), first - 1, -1):
        if ply == game.length or (every and ply % every == 0):
            yield position
        if ply > first:
            position = position.undo()
        if not every:
            return


async def _ask(slot: EngineSlot, positions: list[Position]) -> dict[str, str]:
    """Where this engine disagrees, by kind."""
    engine = slot.engine
    if engine is None or engine.failure is not None or engine.proto == "uci":
        return {}
    found: dict[str, str] = {}
    try:
        async with asyncio.timeout(ALL):
            for position in positions:
                engine.hold(_line(slot, position))
                if not await _compare(engine, slot, position, found):
                    break
    except TimeoutError:
        # An answer may still be on its way.
        engine.kill()
    except EngineError as error:
        found["failed"] = f"{slot.spec.name}: {KIND}: {error}"
        engine.kill()
    return found


def _line(slot: EngineSlot, position: Position) -> str:
    fen = position.start_fen
    head = slot.position_line(fen, is_start=fen == games.initial(position.variant).fen())
    moves = " ".join(map(move_name, position.moves))
    return f"{head} moves {moves}" if moves else head


async def _compare(engine: Engine, slot: EngineSlot, position: Position, found: dict[str, str]) -> bool:
    """Ask about one position; False if the engine does not answer such questions."""
    fen = position.fen()
    questions = _questions(position, engine.proto)
    for number, (question, ours) in enumerate(questions.items()):
        theirs = _answer(question, await engine.ask(question, ANSWER))
        if theirs is None:
            if number == 0:
                return False
            continue
        kind = question.removeprefix("query ")
        if kind in found or _same(kind, position, ours, theirs, slot.spec.letters):
            continue
        where = f"ply {len(position.moves)}"
        said = _moves_apart(ours, theirs) if kind == "moves" else f"we have {ours}, it has {_shown(theirs)}"
        found[kind] = f"{slot.spec.name}: {KIND}-{kind} at {where}: {said}; FEN {fen}"
    return True


def _questions(position: Position, proto: str) -> dict[str, str]:
    """The queries and our answers."""
    ended = position.outcome
    if proto == "ugi":
        result = "none" if ended is None else "draw" if ended.winner is None else f"p{ended.winner + 1}win"
        return {
            "query gameover": str(ended is not None).lower(),
            "query p1turn": str(position.side == 0).lower(),
            "query result": result,
        }
    return {
        "query fen": position.fen(),
        "query outcome": "none" if ended is None else ended.result,
        "query reason": "none" if ended is None else str(ended.reason),
        "moves": " ".join(map(move_name, position.legal_moves())),
    }


def _answer(question: str, lines: list[str]) -> str | None:
    """The answer; None if there was none."""
    for line in lines:
        word, _, rest = line.partition(" ")
        if question == "moves" and word == "moves":
            # The first word is their number.
            return rest.partition(" ")[2]
        if question != "moves" and word == "response":
            return rest.strip()
    return None


def _same(kind: str, position: Position, ours: str, theirs: str, letters: str) -> bool:
    if kind == "moves":
        return set(ours.split()) == set(theirs.split())
    if kind != "fen":
        return ours == theirs
    if letters == "adk":
        theirs = from_adk(theirs)
    # Fields at the end may be left out.
    return f"{ours} ".startswith(f"{theirs} ") or ours == _read(position, theirs)


def _read(position: Position, fen: str) -> str:
    """A FEN of any dialect in our notation; empty if it cannot be parsed."""
    try:
        return games.from_fen(position.variant, fen).fen()
    except ValueError:
        return ""


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN and text.isprintable() else shorten(text)


def _moves_apart(ours: str, theirs: str) -> str:
    here, there = set(ours.split()), set(theirs.split())
    said = f"we have {len(here)} moves, it has {len(there)}"
    for who, moves in (("only we", here - there), ("only it", there - here)):
        if moves:
            said += f", {who} {shorten(' '.join(sorted(moves)))}"
    return said
