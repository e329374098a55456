"""What this adapter asks of engine processes, which all play one variant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hnefi.engine.games.tafl.variant import find
from hnefi.engine.records.record import GameRecord
from hnefi.protocol.hosts import rulebook
from hnefi.protocol.hosts.rulebook import Facts, IllegalPosition, Line, Rules, Thinker
from hnefi.protocol.hosts.trace import Trace

from .frames import board_of

__all__ = ["EngineSlot", "Facts", "IllegalPosition", "Line", "Rules", "Thinker", "header"]

VARIANT: Final = find("tablut-bologna")
START_BOARD: Final = board_of(VARIANT.startpos)


def header(players: tuple[str, str], start: str | None = None) -> GameRecord:
    """How a game is written down; `players` are the attackers and the defenders."""
    return GameRecord(VARIANT.name, start=start, players=players, rules_hash=VARIANT.hash)


class EngineSlot(rulebook.EngineSlot):
    """An engine process that plays the variant of the competition."""

    def __init__(
        self,
        command: Sequence[str] = (),
        *,
        player: str = "",
        options: Sequence[tuple[str, str]] = (),
        trace: Trace | None = None,
    ) -> None:
        game = f"variant {VARIANT.name}"
        super().__init__(command, game=game, player=player, options=options, trace=trace)
