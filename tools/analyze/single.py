"""`hnefi analyze` of one position: the best lines, the evaluation's terms, and whether a win in N moves is there."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from hnefi.engine import games
from hnefi.engine.catalogue import GAMES
from hnefi.engine.search.types import Limits
from hnefi.engine.wording import shorten
from hnefi.protocol.client import EngineError
from hnefi.protocol.hosts.assessment.values import PositionAnalysis, called
from hnefi.protocol.hosts.exit_codes import DONE, INTERRUPTED, USAGE
from hnefi.protocol.hosts.text_table import encodable, safe, table

from ..common.arguments import find_variant
from .analyser import Analyser, Refused, Source, failed, until_interrupted
from .notation import numbered
from .report import line_text, look_json

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position

INDENT: Final = "   "


class Proof(StrEnum):
    """What became of the question whether there is a win in N moves."""

    PROVEN = "proven"
    REFUTED = "refuted"
    OPEN = "open"


def proof(look: PositionAnalysis, limits: Limits) -> Proof:
    """Whether the side to move wins in `limits.mate` of its own moves.

    A search that ended because every line was looked at so far, and found no win, refutes it; one that another limit
    may have ended leaves the question open.
    """
    mate = limits.mate
    assert mate is not None
    if look.outcome is not None:
        return Proof.PROVEN if look.proven(look.side) > 0 else Proof.REFUTED
    if not look.lines:
        return Proof.OPEN
    found = look.lines[0].mate
    if found is not None and 0 < found <= mate:
        return Proof.PROVEN
    if found is not None and found <= 0:
        return Proof.REFUTED
    depth = look.lines[0].depth or 0
    cut = limits.depth is not None and limits.depth < 2 * mate - 1
    cut = cut or (limits.nodes is not None and (look.nodes is None or look.nodes >= limits.nodes))
    cut = cut or (limits.movetime is not None and (look.time is None or look.time >= 0.9 * limits.movetime))
    return Proof.REFUTED if depth >= 2 * mate or not cut else Proof.OPEN


def proof_sentence(look: PositionAnalysis, limits: Limits, sides: Sequence[str]) -> str:
    """The answer in words: `proven: the attackers win in 2 moves`."""
    mate = limits.mate
    assert mate is not None
    answer = proof(look, limits)
    mine, other = sides[look.side], sides[1 - look.side]
    if look.outcome is not None:
        return f"{answer}: the game is over here ({look.outcome.text.replace('_', ' ')})"
    found = look.lines[0].mate if look.lines else None
    if answer is Proof.PROVEN and found is not None:
        sooner = "" if found == mate else f" (in {mate} was asked)"
        return f"{answer}: {_win(mine)} in {_moves(found)}{sooner}"
    if answer is Proof.REFUTED and found is not None and found > 0:
        return f"{answer}: {_win(mine)}, but no sooner than in {_moves(found)}"
    if answer is Proof.REFUTED and found is not None:
        return f"{answer}: {_win(other)} in {_moves(-found)}"
    if answer is Proof.REFUTED:
        return f"{answer}: no win for {called(mine)} in {_moves(mate)}"
    return f"{answer}: whether {_win(mine)} in {_moves(mate)} is unknown within these limits"


def _win(side: str) -> str:
    return f"{called(side)} win" if side.endswith("s") else f"{side} wins"


def _moves(number: int) -> str:
    return f"{number} {'move' if number == 1 else 'moves'}"


def position_lines(
    position: Position, look: PositionAnalysis, terms: Sequence[tuple[str, int]], limits: Limits, engine: str
) -> Iterator[str]:
    """The report of one position."""
    sides = GAMES[position.variant.game].sides
    yield position.diagram()
    yield f"{position.variant.name} · {position.fen()}"
    if look.outcome is not None:
        yield f"the game is over: {look.outcome.text.replace('_', ' ')}"
    else:
        yield f"{sides[position.side]} to move, move {position.move_number}"
    if limits.mate is not None:
        yield ""
        yield proof_sentence(look, limits, sides)
    if look.problem:
        yield f"unknown: {safe(engine)} {safe(look.problem)}"
    if look.lines:
        yield ""
        for number, line in enumerate(look.lines, start=1):
            yield f"{number}. {line_text(line, position.side, sides)}"
            yield f"{INDENT}{numbered(position, line.moves)}".rstrip()
        yield ""
        yield f"{safe(engine)}: {effort(look)}"
    if terms:
        yield ""
        yield f"evaluation of the position as it stands, in centipawns for {called(sides[0])}:"
        yield from table(("term", "cp"), [(name, f"{value:+d}") for name, value in terms], left=(0,), free=0)


def effort(look: PositionAnalysis) -> str:
    """`500,000 nodes, 0.21 s`."""
    parts = [] if look.nodes is None else [f"{look.nodes:,} nodes"]
    if look.time is not None:
        parts.append(f"{look.time / 1000:.2f} s")
    return ", ".join(parts) or "the engine reported no effort"


def position_json(
    position: Position,
    look: PositionAnalysis,
    terms: Sequence[tuple[str, int]],
    limits: Limits,
    engine: str,
    said: str,
) -> dict[str, Any]:
    """The same as one JSON object."""
    value: dict[str, Any] = {
        "variant": position.variant.name,
        "fen": position.fen(),
        "engine": engine,
        "limits": said,
    }
    if limits.mate is not None:
        value["mate"] = limits.mate
        value["answer"] = proof(look, limits).value
        value["answer_text"] = proof_sentence(look, limits, GAMES[position.variant.game].sides)
    value |= look_json(look)
    for line, known in zip(value["lines"], look.lines, strict=True):
        line["line"] = numbered(position, known.moves)
    value["evaluation"] = dict(terms)
    return value


def analyse_position(
    options: argparse.ArgumentParser, arguments: argparse.Namespace, target: str, source: Source
) -> int:
    """Analyse a position and report it; the exit code."""
    variant = find_variant(options, arguments.variant or "copenhagen", arguments.path)
    try:
        position = games.initial(variant) if target == "startpos" else games.from_fen(variant, target)
    except ValueError as error:
        options.error(f"{shorten(target)}: {error}")
    for word in arguments.moves or ():
        try:
            position = position.play(position.parse_move(word))
        except ValueError as error:
            options.error(f"--moves {shorten(word)}: {error}")
    if source.limits.mate is not None and position.outcome is not None:
        options.error(f"--mate {source.limits.mate}: the game is over here: {position.outcome.text}")
    return asyncio.run(_analyse(position, source, arguments.json, plain=arguments.plain))


async def _analyse(position: Position, source: Source, as_json: bool, *, plain: bool) -> int:
    def complain(text: str) -> None:
        print(f"hnefi analyze: {safe(text)}", file=sys.stderr)

    asker = Analyser(source, complain)
    found: list[tuple[PositionAnalysis, list[tuple[str, int]]]] = []

    async def work() -> None:
        look = await asker.look(position)
        # Only positions of running games have terms.
        terms = [] if look.outcome is not None else await asker.breakdown(position)
        found.append((look, terms))

    try:
        interrupted = await until_interrupted(work())
    except EngineError as error:
        complain(str(error))
        return USAGE if isinstance(error, Refused) else failed(source.own)
    finally:
        await asker.close()
    if interrupted or not found:
        complain("interrupted: nothing is known yet")
        return INTERRUPTED
    look, terms = found[0]
    said = (position, look, terms, source.limits, asker.name)
    if as_json:
        print(json.dumps(position_json(*said, source.limits_text)))
    else:
        for line in position_lines(*said):
            print(encodable(line, "ascii" if plain else sys.stdout.encoding))
    return failed(source.own) if look.problem else DONE
