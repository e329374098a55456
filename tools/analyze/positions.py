"""`hnefi analyze` of one position."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING

from hnefi.engine import games
from hnefi.engine.wording import shorten
from hnefi.protocol.client import EngineError
from hnefi.protocol.hosts.exit_codes import DONE, INTERRUPTED, USAGE
from hnefi.protocol.hosts.text_table import encodable, safe

from ..common.arguments import find_variant
from .analyser import Analyser, Refused, Source, failed, until_interrupted
from .single import position_json, position_lines
from .values import PositionAnalysis

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position


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
        # Terms are of positions in which the game goes on.
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
