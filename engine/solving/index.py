"""Every position of a tafl board with few men by a number, densely: king x defenders x attackers x side to move.

A *material* is a number of attackers and a number of defending men; the king comes on top. The positions of one
material lie together, those of the attackers' turn first. The king stands on one square of each orbit of the board's
symmetries, the others are seen as images; the men are sets of squares, numbered among the squares that are left in the
order of the combinatorial number system. A king on an axis leaves symmetries that keep him where he is: images under
these have numbers of their own and always the same value. The least of them is the canonical one.

Squares are numbered densely, a1 b1 ..., and sets of squares are words of bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import numpy as np

from ..compile.intrinsics import ones
from ..compile.jit import entry, inline, kernel
from ..games.base_position import Position
from ..games.tafl.codes import ATTACKERS, D_SOLDIER, DEFENDERS, KING, PIECE, PIECE_CODES, SOLDIER
from ..games.tafl.position import new_state
from ..games.tafl.symmetry import images as symmetric_images
from ..games.tafl.tables import goal_squares
from ..games.tafl.variant import Variant
from ..squares import CELLS, name, squares
from .readings import LARGEST, MOST_MEN

_SYMMETRIES = 8

INDEX = np.dtype(
    [
        ("men", "i8"),  # squares on which men can stand
        ("binomial", "i8", (LARGEST**2 + 1, MOST_MEN + 2)),
        ("begin", "i8", (MOST_MEN + 1, MOST_MEN + 1)),  # by attackers and defenders: the first number
        ("half", "i8", (MOST_MEN + 1, MOST_MEN + 1)),  # how many positions one side to move has
        ("block", "i8", (MOST_MEN + 1, MOST_MEN + 1, LARGEST**2)),  # by king: how many come before his
        ("kings", "i8"),  # how many squares of the king there are, one of each orbit
        ("king_squares", "i1", (LARGEST**2,)),
        ("king_number", "i1", (LARGEST**2,)),  # by square, -1 where it is not one of these
        ("may_king", "i1", (LARGEST**2,)),  # 1 on every square on which a king can stand
        ("to_king", "i1", (LARGEST**2,)),  # the symmetry that takes a square to that of its orbit
        ("symmetries", "i8"),
        ("image", "i1", (_SYMMETRIES, LARGEST**2)),
        (
            "keeping",
            "i1",
            (LARGEST**2, _SYMMETRIES),
        ),  # by king: the symmetries that keep him, the identity first
        ("keepings", "i8", (LARGEST**2,)),
        ("cell", "i2", (LARGEST**2,)),  # dense square -> square
        ("dense", "i1", (CELLS,)),  # and back
    ],
    align=True,
)


@dataclass(frozen=True, slots=True)
class Material:
    """How many men there are beside the king, and the numbers of the positions that have them."""

    attackers: int
    defenders: int
    first: int
    positions: int

    @property
    def end(self) -> int:
        """The number behind the last."""
        return self.first + self.positions

    @property
    def name(self) -> str:
        """As people read it: `4 v 2`."""
        return f"{self.attackers} v {self.defenders}"


class Index:
    """The numbers of all positions of a variant with at most so many men, as a record for kernels."""

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
            total = 0
            for r in range(len(self.orbits)):
                ix["block"][a, d, r] = total
                total += self._of_king(r, a, d)
            ix["begin"][a, d] = first
            ix["half"][a, d] = total
            materials.append(Material(a, d, first, 2 * total))
            first += 2 * total
        self.materials = tuple(materials)
        """In an order in which captures lead to earlier ones only."""
        self.entries = first
        """How many numbers there are."""

    def _of_king(self, r: int, a: int, d: int) -> int:
        """Positions of one side to move with this king."""
        free = self.squares - (int(self.record["men"]) >> int(self.record["king_squares"][r]) & 1)
        return comb(free, d) * comb(free - d, a)

    @cached_property
    def positions(self) -> int:
        """How many positions there are on the whole board, images counted."""
        return sum(self.weighed(material) for material in self.materials)

    def weighed(self, material: Material) -> int:
        """The positions of a material on the whole board."""
        a, d = material.attackers, material.defenders
        return 2 * sum(orbit * self._of_king(r, a, d) for r, orbit in enumerate(self.orbits))

    def covers(self, attackers: int, defenders: int) -> bool:
        """Whether positions with so many men have numbers."""
        return any((m.attackers, m.defenders) == (attackers, defenders) for m in self.materials)

    def number(self, position: Position) -> int:
        """The number of a position; ValueError where it has none."""
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

    def _stands(self, sq: int, letter: str) -> bool:
        """Whether a piece can stand there in a position that has a number."""
        at = int(self.record["dense"][sq])
        if letter == "K":
            return bool(self.record["may_king"][at])
        return letter in "tT" and bool(int(self.record["men"]) >> at & 1)


def _standing(variant: Variant, turns: Sequence[Mapping[int, int]]) -> tuple[set[int], set[int]]:
    """Where men and kings can stand in a game that goes on: where the rules let them stop, and where they begin."""
    state = new_state(variant, "tTK")[0]
    men = {sq for sq in squares(variant.size) for c in "tT" if state["stop"][sq] >> PIECE_CODES[c] & 1}
    king = {sq for sq in squares(variant.size) if state["stop"][sq] >> PIECE_CODES["K"] & 1}
    for sq, letter in variant.start.pieces:
        # Images too: a start that is not symmetric must not give images squares of their own.
        (king if letter == "K" else men).update(turn[sq] for turn in turns)
    return men, king - set(goal_squares(variant.rules))


def _kings(ix: Any, king: list[int], turns: int) -> tuple[int, ...]:
    """Choose one square of every orbit for the king; how many squares each orbit has."""
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
    """All materials, fewer men first. Where taking the last attacker ends the game, there is none without any."""
    least = 1 if variant.rules.capture_all else 0
    return iter(
        sorted(
            ((a, d) for a in range(least, attackers + 1) for d in range(defenders + 1)),
            key=lambda material: (sum(material), material),
        )
    )


# Kernels. `ix` is the record of an `Index`, `s` a tafl state; a, d are numbers of attackers and defending men.


@inline
def rank_set(ix, chosen, among):
    """The number of a set of squares among these, in the order of sets of its size."""
    r = 0
    i = 0
    while chosen:
        low = chosen & -chosen
        i += 1
        r += ix.binomial[ones(among & (low - 1)), i]
        chosen ^= low
    return r


@kernel
def unrank_set(ix, r, size, among):
    """The set of so many squares among these that has the number `r`."""
    chosen = 0
    at = ones(among)
    bit = 1 << (LARGEST * LARGEST - 1)
    while size > 0:
        if among & bit:
            at -= 1
            ways = ix.binomial[at, size]
            if ways <= r:
                r -= ways
                chosen |= bit
                size -= 1
        bit >>= 1
    return chosen


@inline
def rank(ix, side, king, attackers, defenders):
    """The number of a position whose king stands on a square of his orbit that has one."""
    a = ones(attackers)
    d = ones(defenders)
    among = ix.men & ~(1 << king)
    rest = among & ~defenders
    return (
        ix.begin[a, d]
        + side * ix.half[a, d]
        + ix.block[a, d, ix.king_number[king]]
        + rank_set(ix, defenders, among) * ix.binomial[ones(rest), a]
        + rank_set(ix, attackers, rest)
    )


@kernel
def unrank(ix, a, d, number):
    """Side to move, king, attackers and defending men of a position of this material."""
    r = number - ix.begin[a, d]
    side = r // ix.half[a, d]
    r -= side * ix.half[a, d]
    k = ix.kings - 1
    while ix.block[a, d, k] > r:
        k -= 1
    r -= ix.block[a, d, k]
    king = int(ix.king_squares[k])
    among = ix.men & ~(1 << king)
    ways = ix.binomial[ones(among) - d, a]
    defenders = unrank_set(ix, r // ways, d, among)
    attackers = unrank_set(ix, r % ways, a, among & ~defenders)
    return side, king, attackers, defenders


@inline
def image_set(ix, g, chosen):
    """A set of squares under a symmetry."""
    image = 0
    while chosen:
        low = chosen & -chosen
        image |= 1 << int(ix.image[g, ones(low - 1)])
        chosen ^= low
    return image


@inline
def sets_of(s, ix):
    """King, attackers and defending men of a position, turned so that the king's square has a number."""
    at = int(ix.dense[s.king])
    g = ix.to_king[at]
    attackers = 0
    for i in range(s.count[ATTACKERS]):
        attackers |= 1 << int(ix.image[g, ix.dense[s.pieces[ATTACKERS, i]]])
    defenders = 0
    for i in range(s.count[DEFENDERS]):
        defenders |= 1 << int(ix.image[g, ix.dense[s.pieces[DEFENDERS, i]]])
    king = int(ix.image[g, at])
    return king, attackers, defenders & ~(1 << king)


@kernel
def number_of(s, ix):
    """The number of the position on a record."""
    king, attackers, defenders = sets_of(s, ix)
    return rank(ix, s.side, king, attackers, defenders)


@kernel
def canonical_number(ix, side, king, attackers, defenders):
    """The least number among the images of a position."""
    least = rank(ix, side, king, attackers, defenders)
    r = ix.king_number[king]
    for i in range(1, ix.keepings[r]):
        g = ix.keeping[r, i]
        other = rank(ix, side, king, image_set(ix, g, attackers), image_set(ix, g, defenders))
        least = min(least, other)
    return least


@kernel
def is_canonical(ix, number, side, king, attackers, defenders):
    """Whether no image of a position has a smaller number than its own."""
    r = ix.king_number[king]
    for i in range(1, ix.keepings[r]):
        g = ix.keeping[r, i]
        if rank(ix, side, king, image_set(ix, g, attackers), image_set(ix, g, defenders)) < number:
            return False
    return True


@kernel
def put(s, ix, sq, p, side):
    """Put a piece on an empty square."""
    n = s.count[side]
    s.board[sq] = int(s.board[sq]) | p
    s.pieces[side, n] = sq
    s.slot[sq] = n
    s.count[side] = n + 1


@kernel
def put_set(s, ix, chosen, p, side):
    while chosen:
        low = chosen & -chosen
        put(s, ix, int(ix.cell[ones(low - 1)]), p, side)
        chosen ^= low


@kernel
def place(s, ix, side, king, attackers, defenders):
    """Put a position on a record, as one without history; keys are not kept."""
    for owner in range(2):
        for i in range(s.count[owner]):
            sq = int(s.pieces[owner, i])
            s.board[sq] = int(s.board[sq]) & ~PIECE
            s.slot[sq] = 0
        s.count[owner] = 0
    put_set(s, ix, attackers, SOLDIER, ATTACKERS)
    put_set(s, ix, defenders, D_SOLDIER, DEFENDERS)
    s.king = int(ix.cell[king])
    put(s, ix, s.king, KING, DEFENDERS)
    s.side = side
    s.ply = 0
    s.since = 0
    s.caught_top = 0
    s.must_go = 0
    s.outcome = 0
    # Rules that look at a capture just made must see none.
    s.quiet = 1
    s.played = 0
    s.turns = 0
    s.taken[0] = 0
    s.taken[1] = 0


@entry
def number_from(s, ix):
    """As `number_of`, from Python."""
    return number_of(s, ix)


@entry
def place_number(s, ix, a, d, number):
    """Put the position of this number on a record."""
    side, king, attackers, defenders = unrank(ix, a, d, number)
    place(s, ix, side, king, attackers, defenders)


@entry
def number_of_sets(ix, side, king, attackers, defenders):
    """The number of a position that is given by sets of squares."""
    g = ix.to_king[king]
    return rank(ix, side, int(ix.image[g, king]), image_set(ix, g, attackers), image_set(ix, g, defenders))


@entry
def least_image(s, ix):
    """The least number among the images of the position on a record."""
    king, attackers, defenders = sets_of(s, ix)
    return canonical_number(ix, s.side, king, attackers, defenders)
