"""The siege: an endgame term for attackers who have to enclose a king with few men left (kernels).

Where the king escapes to a corner and is captured on four sides, attackers win the endgame by shrinking the area that
he and his men can reach until they cannot move. The general terms do not see this: they are fitted to positions in
which both sides have men, and keep attackers in the corners long after the king is cut off from them. Hence a separate
term, like the endgame terms of chess engines; it costs nothing while the defenders have more than `men` men. Where
`default` is a network, it also counts while the king is caged, with any number of men.

Weights are set by hand, under `siege` in the files of `weights/`; a file without that table has no such term.

`progress` is for networks: where a corner is open, a few counts tell more of how far away the end is than they see.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compile.bitboard import (
    LOW,
    empty_high,
    empty_low,
    fill_files,
    fill_ranks,
    load,
    popcount,
    shift_down,
    shift_up,
    single,
)
from ..compile.jit import inline, kernel
from ..games.tafl.codes import KING
from ..squares import CELLS, STRIDE
from .tafl_features import flood_fill, slides, write_bitboards

COUNT_NAMES = (
    "region",  # squares the king could reach, corners excluded, if attackers never moved and his men made way
    "tight",  # the same if every one-square gap in the attackers' lines were closed
    "gaps",  # such gaps next to that smaller region
    "guards",  # squares of the region from which attackers would block a corner that he could reach
    "two_moves",  # squares he can reach in at most two moves, corners excluded
    "men_region",  # as `region`, for his men
    "men_tight",  # as `tight`, for his men
    "men_moves",  # squares his men can move to, rows and columns counted separately, without any limit on their reach
    "men_near",  # attackers within two squares of one of his men, diagonals included
    "men_far",  # within four
)
"""What `siege_value` counts."""
COUNTS = np.dtype([(name, "i8") for name in COUNT_NAMES])
WEIGHT_NAMES = ("men", "level", "corners", *COUNT_NAMES)
"""The weights in a file: the most men that the king may have left, unless he is caged; a constant; per corner that he
could reach (`goals` of `tafl_features`); per unit of each count. All but `men` in sixteenths of a centipawn, for the
attackers."""
WEIGHTS = np.dtype([(name, "i8") for name in WEIGHT_NAMES])
PROGRESS_NAMES = ("level", "two_moves", "men_moves", "king_near", "edge")
"""The weights of `progress` in a file, under `progress`: a constant; per unit of the first two counts as above; per
attacker within two squares of the king, diagonals included; per square between the king and the nearest edge."""
PROGRESS = np.dtype([(name, "i8") for name in PROGRESS_NAMES])


CAGE = 12
"""The most squares that a caged king can reach. In the 344 games drawn by length that this comes from, it was at most 8
or at least 88."""
CAGE_ATTACKERS = 13
"""The fewest attackers of a cage. With fewer, a first draft that evaluated by hand lost more games than the network."""


def king_region(params: Any, position: Any, enough: int = CELLS) -> tuple[int, bool]:
    """How many squares the king could reach, goals included, if the attackers never moved and his own men made way; and
    whether a goal is among them. -1 and False without a king.

    `params` are those of the hand-written evaluator for the position's rules. Counting ends with more than `enough`
    squares; there may be more then, and a goal among those.
    """
    open_, goals = params["inside"].tolist(), params["goals"].tolist()
    reached, added = [0] * len(open_), [0] * len(open_)
    for sq, letter in position.pieces():
        row, bit = sq // STRIDE + 2, 1 << sq % STRIDE
        if letter == "K":
            added[row] = bit
        elif letter.islower():
            open_[row] &= ~bit
    squares = -1
    while any(added) and squares <= enough:
        reached = [old | new for old, new in zip(reached, added, strict=True)]
        spread = [row << 1 | row >> 1 for row in reached]
        beside = zip([0, *reached[:-1]], [*reached[1:], 0], spread, open_, reached, strict=True)
        added = [(below | above | along) & free & ~old for below, above, along, free, old in beside]
        squares = sum(row.bit_count() for row in reached) - 1
    return squares, any(row & goal for row, goal in zip(reached, goals, strict=True))


@inline
def neighbours(v):
    """The orthogonal neighbours of the squares of a set."""
    return v << 1 | v >> 1 | shift_up(v) | shift_down(v)


@inline
def around(v):
    """A set together with the eight neighbours of each of its squares."""
    v = v | v << 1 | v >> 1
    return v | shift_up(v) | shift_down(v)


@inline
def gaps_in(walls):
    """Squares where one man would join separate walls: its neighbours contain at least two components of wall, where
    diagonal contact connects.

    Components are counted by the connectivity number for eight neighbours (Yokoi, Toriwaki and Fukumura, 1975): each
    begins exactly once, clockwise, after an open side.
    """
    west, east = walls << 1, walls >> 1
    north, south = shift_down(walls), shift_up(walls)
    behind_north = ~north & (north >> 1 | east)
    behind_east = ~east & (south >> 1 | south)
    behind_south = ~south & (south << 1 | west)
    behind_west = ~west & (north << 1 | north)
    found = (behind_north | behind_east) & (behind_south | behind_west)
    return (found | behind_north & behind_east | behind_south & behind_west) & ~walls


@inline
def in_two_moves(s, king, free):
    """How many squares of a set the king can reach in at most two moves."""
    far = s.reach[KING]
    return popcount(slides(slides(king, free, s.width, far), free, s.width, far))


@inline
def along_lines(men, free):
    """The squares of a set that men can move to, rows and columns counted separately."""
    return popcount(fill_ranks(men, free)) + popcount(fill_files(men, free))


@kernel
def count_siege(p, s, empty):
    """Write the counts to `p.siege`, with sets of the height of `empty`. Both sides' rows must be in `p` already."""
    attackers = load(empty, p.attacker_rows, 0)
    defenders = load(empty, p.defender_rows, 0)
    goals = load(empty, p.goals, 0)
    open_ = load(empty, p.inside, 0) & ~attackers
    row = s.king // STRIDE
    king = single(attackers, row + 2, 1 << (s.king - row * STRIDE))
    men = defenders & ~king
    region = flood_fill(king, open_)
    reached = region & goals
    diagonal = shift_up(reached) | shift_down(reached)
    guards = shift_up(shift_up(reached)) | shift_down(shift_down(reached)) | reached << 2 | reached >> 2
    guards = guards | diagonal << 1 | diagonal >> 1
    open_ = open_ & ~goals
    gaps = gaps_in(~open_) & open_
    tight = flood_fill(king, open_ & ~gaps)
    p.siege.region = popcount(region & ~goals)
    p.siege.tight = popcount(tight)
    p.siege.gaps = popcount(neighbours(tight) & gaps)
    p.siege.guards = popcount(guards & region)
    p.siege.two_moves = in_two_moves(s, king, open_ & ~defenders)
    open_ = load(empty, p.free, 0) & ~attackers & ~king
    gaps = gaps_in(~open_) & open_ & ~men
    p.siege.men_region = popcount(flood_fill(men, open_))
    p.siege.men_tight = popcount(flood_fill(men, open_ & ~gaps))
    p.siege.men_moves = along_lines(men, open_ & ~men)
    near = around(around(men))
    p.siege.men_near = popcount(near & attackers)
    p.siege.men_far = popcount(around(around(near)) & attackers)


@kernel
def siege_value(p, s, corners):
    """The term in sixteenths of a centipawn, for the attackers; `corners` is how many the king could reach."""
    # The set needs a row beyond each edge of the board: squares off the board are walls.
    if s.width + 3 < LOW:
        count_siege(p, s, empty_low())
    else:
        count_siege(p, s, empty_high())
    seen, weight = p.siege, p.siege_weights
    value = weight.level + weight.corners * corners + weight.guards * seen.guards
    value += weight.region * seen.region + weight.tight * seen.tight + weight.gaps * seen.gaps
    value += weight.two_moves * seen.two_moves
    value += weight.men_region * seen.men_region + weight.men_tight * seen.men_tight
    value += weight.men_moves * seen.men_moves
    return value + weight.men_near * seen.men_near + weight.men_far * seen.men_far


@kernel
def weigh_progress(p, s, empty):
    """The sum of `progress`, in sixteenths of a centipawn, with sets of the height of `empty`."""
    write_bitboards(p, s, s.width)
    attackers = load(empty, p.attacker_rows, 0)
    defenders = load(empty, p.defender_rows, 0)
    row = s.king // STRIDE
    column = s.king - row * STRIDE
    king = single(attackers, row + 2, 1 << column)
    occupied = attackers | defenders
    free = load(empty, p.inside, 0) & ~load(empty, p.goals, 0) & ~occupied
    weight = p.progress_weights
    value = weight.level + weight.two_moves * in_two_moves(s, king, free)
    value += weight.men_moves * along_lines(defenders & ~king, load(empty, p.free, 0) & ~occupied)
    value += weight.king_near * popcount(around(around(king)) & attackers)
    return value + weight.edge * (min(row, column, s.width + 1 - row, s.width + 1 - column) - 1)


@kernel
def progress(p, s):
    """How near the end is for attackers who win, in centipawns, never less than 0.

    Less room for the king and his men, attackers around him, and a king near the edge mean fewer plies to the end.
    """
    if s.width + 3 < LOW:
        return max(weigh_progress(p, s, empty_low()), 0) >> 4
    return max(weigh_progress(p, s, empty_high()), 0) >> 4
