"""How strong our own engine plays at a level, in one table.

Every level searches at least as much as the one below it: the first two look one and two plies ahead and see nothing
but wins and losses; from the third on it is the engine's own search with four times the positions of the level
below; the tenth has no limit but time. With a clock, the time for the move limits every level as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hnefi.engine.search.types import Limits

LOWEST, HIGHEST = 1, 10
DEFAULT: Final = 5
THINKING_MS: Final = 5000
"""How long the highest level thinks about a move where there is no clock."""


@dataclass(frozen=True, slots=True)
class Level:
    """A shipped player, and limits that are added to its own."""

    player: str
    limits: Limits
    words: str


def _nodes(number: int) -> Level:
    nodes = 200 * 4 ** (number - 3)
    return Level("default", Limits(nodes=nodes), f"searches {nodes:,} positions a move")


LEVELS: Final[dict[int, Level]] = {
    1: Level("random-terminal", Limits(depth=1), "any move, but wins where one move wins"),
    2: Level("random-terminal-d2", Limits(depth=2), "any move, but sees wins and losses two plies ahead"),
    **{number: _nodes(number) for number in range(3, 10)},
    10: Level(
        "default", Limits(movetime=THINKING_MS), f"the whole engine, {THINKING_MS // 1000} seconds a move"
    ),
}

HINT: Final = Limits(nodes=300_000)
"""What a hint costs: the same answer on every machine."""
ANALYSIS: Final = Limits(nodes=1_000_000)
"""An analysis that nobody will stop, as in a script."""


def table() -> list[str]:
    """Every level in a line, for the help."""
    return [f"{number:>5}  {level.words}" for number, level in LEVELS.items()]
