"""The sizes of hexapawn: `hexapawn:4x3` has four rows and three columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from ...squares import MAX_SIZE
from ...wording import shorten
from ..base_variant import VariantError, rules_hash

MIN_ROWS = 3
"""On two rows the pawns stand face to face: the first capture, or none being possible, would be the whole game."""
USUAL = "3x3"
_SIZE = re.compile(r"([1-9][0-9]?)x([1-9][0-9]?)", re.ASCII)


@dataclass(frozen=True)
class Variant:
    """Hexapawn on `ranks` rows and `files` columns; see `base_variant.AnyVariant`."""

    ranks: int
    files: int

    game = "hexapawn"
    first = "a"
    source = "Martin Gardner, Mathematical Games, Scientific American 206 (March 1962)"

    @property
    def size(self) -> str:
        """Rows x columns, as in the name."""
        return f"{self.ranks}x{self.files}"

    @property
    def name(self) -> str:
        """The game with its size: `hexapawn:3x3`."""
        return f"hexapawn:{self.size}"

    @property
    def aliases(self) -> tuple[str, ...]:
        """The bare name, for the usual size."""
        return ("hexapawn",) if self.size == USUAL else ()

    @property
    def description(self) -> str:
        """The game in a few sentences."""
        return (
            f"Hexapawn on {self.ranks} rows and {self.files} column{'s' if self.files > 1 else ''}. "
            "White (a) begins and moves up; a pawn steps forward onto an empty square or takes diagonally forward. "
            "Reaching the far row, taking the last pawn or leaving the opponent without a move wins."
        )

    @property
    def attackers(self) -> int:
        """White's pawns: one in each column."""
        return self.files

    @property
    def defenders(self) -> int:
        """Black's pawns: one in each column."""
        return self.files

    @property
    def rows(self) -> str:
        """The rows of the start position, the top one first."""
        return "/".join(["p" * self.files, *[str(self.files)] * (self.ranks - 2), "P" * self.files])

    @property
    def startpos(self) -> str:
        """The start position as a FEN."""
        return f"{self.rows} {self.first} 0 1"

    @cached_property
    def hash(self) -> str:
        """64 hex digits, equal exactly for equal games."""
        return rules_hash(self.rules_lines(), self.rows)

    def rules_lines(self) -> tuple[tuple[str, str], ...]:
        """The rules as switches: size, who begins, what wins and loses."""
        return (
            ("game", self.game),
            ("rows", str(self.ranks)),
            ("columns", str(self.files)),
            ("first", self.first),
            ("far_row", "win"),
            ("all_captured", "win"),
            ("no_legal_move", "lose"),
        )


def build(family: str, size: str) -> Variant:
    """The variant `family:size`; VariantError unless the size is rows x columns that can be played."""
    match = _SIZE.fullmatch(size)
    if match is not None:
        ranks, files = map(int, match.groups())
        if MIN_ROWS <= ranks <= MAX_SIZE and files <= MAX_SIZE:
            return Variant(ranks, files)
    raise VariantError(
        f"{shorten(f'{family}:{size}')[1:-1]}: expected {family}:MxN with M rows from {MIN_ROWS} to {MAX_SIZE} "
        f"and N columns from 1 to {MAX_SIZE}"
    )
