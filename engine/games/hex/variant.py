"""The sizes of Hex: `hex:11` is 11 x 11, `hex-swap:11` the same with the swap rule."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ...squares import MAX_SIZE
from ...wording import shorten
from ..base_variant import VariantError, rules_hash

MIN_SIZE = 2
USUAL = 11
WINNING_OPENINGS = {
    2: ".W/W.",
    3: "..W/WWW/W..",
    4: "...W/..W./.W../W...",
    5: "....W/.WWWW/.WWW./WWWW./W....",
}
"""By size: first moves that win with best play (`W`), rows from the top."""
_SIZE = re.compile("[1-9][0-9]?", re.ASCII)


@dataclass(frozen=True)
class Variant:
    """Hex on `size` x `size` cells, with or without the swap rule; see `base_variant.AnyVariant`."""

    size: int
    swap: bool = False
    game: ClassVar[str] = "hex"
    first: ClassVar[str] = "a"
    attackers: ClassVar[int] = 0
    defenders: ClassVar[int] = 0
    source: ClassVar[str] = "Piet Hein 1942, John Nash 1948"

    @property
    def family(self) -> str:
        """The name without the size."""
        return "hex-swap" if self.swap else "hex"

    @property
    def name(self) -> str:
        """The family with the size: `hex:11`."""
        return f"{self.family}:{self.size}"

    @property
    def aliases(self) -> tuple[str, ...]:
        """The bare family name, for its usual size."""
        return (self.family,) if self.size == USUAL else ()

    @property
    def description(self) -> str:
        """The game in a sentence."""
        swap = " The second ply may take over the first stone instead of placing one." if self.swap else ""
        return (
            f"Hex on {self.size} x {self.size} cells: a joins top and bottom with x, d left and right with o; "
            f"stones never move, and one side always wins.{swap}"
        )

    @property
    def files(self) -> int:
        """Columns of the board."""
        return self.size

    @property
    def ranks(self) -> int:
        """Rows of the board."""
        return self.size

    @property
    def rows(self) -> str:
        """The rows of the empty board."""
        return "/".join([str(self.size)] * self.size)

    @property
    def startpos(self) -> str:
        """The empty board as a FEN."""
        return f"{self.rows} {self.first} 0 1"

    @cached_property
    def hash(self) -> str:
        """64 hex digits, equal exactly for equal games."""
        return rules_hash(self.rules_lines(), self.rows)

    def rules_lines(self) -> tuple[tuple[str, str], ...]:
        """The rules in three lines: which game, how large, and whether the first stone may be taken over."""
        return ("game", self.game), ("size", str(self.size)), ("swap", "yes" if self.swap else "no")


def build(family: str, size: str) -> Variant:
    """The variant `family:size`; VariantError unless the size is a number of cells that can be played."""
    if _SIZE.fullmatch(size) and MIN_SIZE <= int(size) <= MAX_SIZE:
        return Variant(int(size), family == "hex-swap")
    raise VariantError(
        f"{shorten(f'{family}:{size}')[1:-1]}: expected {family}:N with N from {MIN_SIZE} to {MAX_SIZE}"
    )
