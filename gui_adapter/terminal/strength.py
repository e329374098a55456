"""How strong our own engine plays at a level, in one table.

The levels are the engine's own (`SkillLevel`): each sees three times as many positions as the one below, and chooses
less freely among moves that look almost as good. The tenth has no limit but time. With a clock, the time for the move
limits every level as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hnefi.engine.search.skill import weakness
from hnefi.engine.search.types import Limits

LOWEST, HIGHEST = 1, 10
DEFAULT: Final = 5
THINKING_MS: Final = 5000
"""How long a move may take where there is no clock; only the highest level uses it all."""
OPTION: Final = "SkillLevel"


_LIMITS: Final = Limits(movetime=THINKING_MS)


@dataclass(frozen=True, slots=True)
class Level:
    """A level in words, and how long it may think."""

    words: str
    limits: Limits = _LIMITS


def _level(number: int) -> Level:
    weak = weakness(number)
    if weak is None:
        return Level(f"the whole engine, {THINKING_MS // 1000} seconds a move")
    choice = ", often the second-best move" if number < 4 else ", sometimes the second-best move"
    return Level(f"searches {weak.nodes:,} positions a move{choice if weak.lines > 1 else ''}")


LEVELS: Final[dict[int, Level]] = {number: _level(number) for number in range(LOWEST, HIGHEST + 1)}

HINT: Final = Limits(nodes=300_000)
"""What a hint costs: the same answer on every machine."""
ANALYSIS: Final = Limits(nodes=1_000_000)
"""An analysis that nobody will stop, as in a script."""


def level_lines() -> list[str]:
    """Every level in a line, for the help."""
    return [f"{number:>5}  {level.words}" for number, level in LEVELS.items()]
