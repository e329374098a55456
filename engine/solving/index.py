"""A dense numbering of all positions of a tafl board with few men: king x defenders x attackers x side to move.

A *material* is a number of attackers and a number of defending men, besides the king. The positions of one material are
consecutive, those with attackers to move first. The king is on one square of each orbit of the board's symmetries;
positions with him on another square are numbered as images. The men are sets of squares, numbered among the remaining
squares by the combinatorial number system. Symmetries that fix the king's square (on an axis) map a position to images
that have other numbers and the same value. The least of these numbers is the canonical one.

Squares are numbered densely, a1 b1 ..., and sets of squares are words of bits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import numpy as np

from ..compile.jit import entry
from ..games.base_position import Position
from ..games.tafl.codes import PIECE_CODES
from ..games.tafl.position import new_state
from ..games.tafl.symmetry import images as symmetric_images
from ..games.tafl.tables import goal_squares
from ..games.tafl.variant import Variant
from ..squares import name, squares
from .numbering import (
    INDEX,
    LARGEST,
    MOST_MEN,
    canonical_number,
    image_set,
    is_canonical,
    number_of,
    place,
    rank,
    sets_of,
    unrank,
)  # fmt: skip
from .readings import NotSolvable

MOST_ENTRIES = 1 << 62
"""Numbers are signed 64-bit words."""


@dataclass(frozen=True, slots=True)
class Material:
    """Numbers of men besides the king, and the range of numbers of the positions that have them."""

    attackers: int
    defenders: int
    first: int
    positions: int

    @property
    def end(self) -> int:
        """The number after the last."""
        return self.first + self.positions

    @property
    def name(self) -> str:
        """For display: `4 v 2`."""
        return f"{self.attackers} v {self.defenders}"


class Index:
    """The numbering of all positions of a variant with at most so many men, as a record for kernels. NotSolvable if
    there are too many."""

    def __init__(self, variant: Variant, attackers: int, defenders: int) -> None:
        self.variant = variant
        self.attackers = attackers
        self.defenders = defenders
        size = variant.size
        cells = list(squares(size))
        dense = {sq: i for i, sq in enumerate(cells)}
        turns = [dict(zip(cells, cells, strict=True)), *symmetric_images(variant.rules)]
        men, king = _standing(variant, turns)
        self._array = np.zeros(1, INDEX).view(np.recarray)
        ix = self.record = self._array[0]
        ix["men"] = sum(1 << dense[sq] for sq in men)
        for n in range(LARGEST**2 + 1):
            for k in range(MOST_MEN + 2):
                ix["binomial"][n, k] = comb(n, k)
        ix["cell"][: len(cells)] = cells
        ix["dense"][:] = -1
        ix["dense"][cells] = range(len(cells))
        ix["symmetries"] = len(turns)
        for g, turn in enumerate(turns):
            ix["image"][g, : len(cells)] = [dense[turn[sq]] for sq in cells]
        self.orbits = _kings(ix, [dense[sq] for sq in sorted(king, key=dense.__getitem__)], len(turns))
        self.squares = len(men)
        self._lay_out()

    def _lay_out(self) -> None:
        ix = self.record
        first = 0
        materials = []
        for a, d in _order(self.variant, self.attackers, self.defenders):
            of_kings = [self._of_king(r, a, d) for r in range(len(self.orbits))]
            if first + 2 * sum(of_kings) > MOST_ENTRIES:
                raise NotSolvable(
                    f"{self.variant.name}: {self.attackers} attackers against {self.defenders} defenders: expected "
                    "fewer men, because a number has 64 bits"
                )
            total = 0
            for r, positions in enumerate(of_kings):
                ix["block"][a, d, r] = total
                total += positions
            ix["begin"][a, d] = first
            ix["half"][a, d] = total
            materials.append(Material(a, d, first, 2 * total))
            first += 2 * total
        self.materials = tuple(materials)
        """All materials, in an order in which captures lead to earlier ones only."""
        self.entries = first
        """The number of all positions that are numbered."""

    def _of_king(self, r: int, a: int, d: int) -> int:
        """The number of positions with the king on his square number `r` and one side to move."""
        free = self.squares - (int(self.record["men"]) >> int(self.record["king_squares"][r]) & 1)
        return comb(free, d) * comb(free - d, a) if d <= free else 0

    @cached_property
    def positions(self) -> int:
        """The number of positions on the whole board, images included."""
        return sum(self.weighed(material) for material in self.materials)

    def weighed(self, material: Material) -> int:
        """The number of positions of a material on the whole board, images included."""
        a, d = material.attackers, material.defenders
        return 2 * sum(orbit * self._of_king(r, a, d) for r, orbit in enumerate(self.orbits))

    def covers(self, attackers: int, defenders: int) -> bool:
        """Whether positions with so many men have numbers."""
        return any((m.attackers, m.defenders) == (attackers, defenders) for m in self.materials)

    def number(self, position: Position) -> int:
        """The number of a position; ValueError if it has none."""
        sets = {"t": 0, "T": 0, "K": 0}
        for sq, letter in position.pieces():
            if not self._stands(sq, letter):
                raise ValueError(f"{letter} on {name(sq)}: no position of this table has it there")
            sets[letter] |= 1 << int(self.record["dense"][sq])
        attackers, defenders = sets["t"].bit_count(), sets["T"].bit_count()
        if sets["K"].bit_count() != 1 or not self.covers(attackers, defenders):
            raise ValueError(
                f"{attackers} attackers against {defenders} defenders: expected one king and at most "
                f"{self.attackers} against {self.defenders}"
            )
        king = sets["K"].bit_length() - 1
        return int(number_of_sets(self.record, int(position.side), king, sets["t"], sets["T"]))

    def canonical(self, number: int) -> int:
        """The least number among the images of the position that has this one."""
        material = self.of(number)
        return int(least_number(self.record, material.attackers, material.defenders, number))

    def of(self, number: int) -> Material:
        """The material of the position that has this number."""
        return self.materials[bisect_right(self.materials, number, key=lambda material: material.first) - 1]

    def thinned(self, codes: Any, first: int) -> Any:
        """A copy of the codes of the numbers from `first` on, in which images repeat the code before them."""
        thin = codes.copy()
        for material, begin, end in self._parts(first, first + len(codes)):
            keep_canonical(self.record, thin, first, material.attackers, material.defenders, begin, end)
        return thin

    def restore(self, codes: Any) -> None:
        """Set each image to the code of its canonical position, in place; `codes` are those of all numbers."""
        for material in self.materials:
            copy_to_images(
                self.record, codes, material.attackers, material.defenders, material.first, material.end
            )

    def _parts(self, first: int, end: int) -> Iterator[tuple[Material, int, int]]:
        """Split a range of numbers by material."""
        for material in self.materials:
            begin, last = max(first, material.first), min(end, material.end)
            if begin < last:
                yield material, begin, last

    def _stands(self, sq: int, letter: str) -> bool:
        """Whether a piece can stand on a square in a position that has a number."""
        at = int(self.record["dense"][sq])
        if letter == "K":
            return bool(self.record["may_king"][at])
        return letter in "tT" and bool(int(self.record["men"]) >> at & 1)


def _standing(variant: Variant, turns: Sequence[Mapping[int, int]]) -> tuple[set[int], set[int]]:
    """The squares of men and of kings in an unfinished game: where the rules let them stop, and where they start."""
    state = new_state(variant, "tTK")[0]
    men = {sq for sq in squares(variant.size) for c in "tT" if state["stop"][sq] >> PIECE_CODES[c] & 1}
    king = {sq for sq in squares(variant.size) if state["stop"][sq] >> PIECE_CODES["K"] & 1}
    for sq, letter in variant.start.pieces:
        # Images too, so that a start that is not symmetric does not break the symmetry of the numbering.
        (king if letter == "K" else men).update(turn[sq] for turn in turns)
    return men, king - set(goal_squares(variant.rules))


def _kings(ix: Any, king: list[int], turns: int) -> tuple[int, ...]:
    """Choose one square of every orbit for the king; returns the sizes of the orbits."""
    orbits: list[int] = []
    ix["king_number"][:] = -1
    for at in king:
        ix["may_king"][at] = 1
        images = [int(ix["image"][g, at]) for g in range(turns)]
        if any(ix["king_number"][image] >= 0 for image in images):
            continue
        r = len(orbits)
        ix["king_squares"][r] = at
        ix["king_number"][at] = r
        keeping = [g for g in range(turns) if images[g] == at]
        ix["keeping"][r, : len(keeping)] = keeping
        ix["keepings"][r] = len(keeping)
        orbits.append(len(set(images)))
        for sq in set(images):
            ix["to_king"][sq] = next(g for g in range(turns) if int(ix["image"][g, sq]) == at)
    ix["kings"] = len(orbits)
    return tuple(orbits)


def _order(variant: Variant, attackers: int, defenders: int) -> Iterator[tuple[int, int]]:
    """All materials, fewer men first; none without attackers if taking the last one ends the game."""
    least = 1 if variant.rules.capture_all else 0
    return iter(
        sorted(
            ((a, d) for a in range(least, attackers + 1) for d in range(defenders + 1)),
            key=lambda material: (sum(material), material),
        )
    )


# Entries: kernels that Python calls.


@entry
def number_from(s, ix):
    """As `number_of`, from Python."""
    return number_of(s, ix)


@entry
def place_number(s, ix, a, d, number):
    """Set up the position of this number on a record."""
    side, king, attackers, defenders = unrank(ix, a, d, number)
    place(s, ix, side, king, attackers, defenders)


@entry
def number_of_sets(ix, side, king, attackers, defenders):
    """The number of a position given by sets of squares."""
    g = ix.to_king[king]
    return rank(ix, side, int(ix.image[g, king]), image_set(ix, g, attackers), image_set(ix, g, defenders))


@entry
def least_number(ix, a, d, number):
    """The least number among the images of the position with this number."""
    side, king, attackers, defenders = unrank(ix, a, d, number)
    return canonical_number(ix, side, king, attackers, defenders)


@entry
def keep_canonical(ix, codes, first, a, d, begin, end):
    """Set the code of every non-canonical number of a range to the code before it; `codes[0]` is that of `first`."""
    last = 0
    for at in range(begin, end):
        side, king, attackers, defenders = unrank(ix, a, d, at)
        if is_canonical(ix, at, side, king, attackers, defenders):
            last = codes[at - first]
        else:
            codes[at - first] = last


@entry
def copy_to_images(ix, codes, a, d, begin, end):
    """Set every code of a range of a material to that of its canonical image, whose number is not larger."""
    for at in range(begin, end):
        side, king, attackers, defenders = unrank(ix, a, d, at)
        codes[at] = codes[canonical_number(ix, side, king, attackers, defenders)]


@entry
def least_image(s, ix):
    """The least number among the images of the position on a record."""
    king, attackers, defenders = sets_of(s, ix)
    return canonical_number(ix, s.side, king, attackers, defenders)
