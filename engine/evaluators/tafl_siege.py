"""The siege: what a king with few men left is worth to attackers who have to shut him in (kernels).

Where the king leaves by a corner and is taken from four sides, attackers win an endgame by shrinking what he and his
men can reach, until nobody can move. The general terms say nothing about that: they are fitted to positions in which
both sides have men, and keep attackers in the corners long after the king is cut off from them. So this is a term of
its own, like the endgame terms of chess engines, and it costs nothing while the defenders have more men than `men`.

Weights are set by hand and lie in the files of `weights/` under `siege`; a file without it has no such term.
"""

from __future__ import annotations

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
from ..squares import STRIDE
from .tafl_features import flood_fill, slides

COUNT_NAMES = (
    "region",  # squares the king could reach, corners aside, if attackers stood still and his men made way
    "tight",  # the same if every gap of one square in the attackers' lines were shut
    "gaps",  # such gaps beside that smaller region
    "guards",  # squares within the region from which attackers would shut a corner that he could reach
    "two_moves",  # squares he reaches in at most two moves, corners aside
    "men_region",  # squares his men could reach, as `region`
    "men_tight",  # as `tight`
    "men_moves",  # squares his men could go to at once, rows and columns apart, however far men may slide
    "men_near",  # attackers at most two squares away from one of his men, diagonals included
    "men_far",  # at most four
)
"""What `siege_value` counts."""
COUNTS = np.dtype([(name, "i8") for name in COUNT_NAMES])
WEIGHT_NAMES = ("men", "level", "corners", *COUNT_NAMES)
"""The weights in a file: the most men that the king may have left; always; each corner that he could reach (`goals` of
`tafl_features`); each of what is counted. All but `men` in sixteenths of a centipawn, for the attackers."""
WEIGHTS = np.dtype([(name, "i8") for name in WEIGHT_NAMES])


@inline
def neighbours(v):
    """The squares beside those of a set, along rows and columns."""
    return v << 1 | v >> 1 | shift_up(v) | shift_down(v)


@inline
def around(v):
    """A set with all eight neighbours of its squares."""
    v = v | v << 1 | v >> 1
    return v | shift_up(v) | shift_down(v)


@inline
def gaps_in(walls):
    """Squares where one man would join walls that do not touch: around the square there are two pieces of wall or more,
    where squares that touch diagonally belong together.

    The pieces are counted as the connectivity number for eight neighbours does it (Yokoi, Toriwaki and Fukumura, 1975):
    each begins once, clockwise, behind an open side.
    """
    west, east = walls << 1, walls >> 1
    north, south = shift_down(walls), shift_up(walls)
    behind_north = ~north & (north >> 1 | east)
    behind_east = ~east & (south >> 1 | south)
    behind_south = ~south & (south << 1 | west)
    behind_west = ~west & (north << 1 | north)
    found = (behind_north | behind_east) & (behind_south | behind_west)
    return (found | behind_north & behind_east | behind_south & behind_west) & ~walls


@kernel
def count_siege(p, s, empty):
    """Write the counts to `p.siege`; sets are as high as `empty`. The rows of both sides must be in `p` already."""
    n = s.width
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
    free = open_ & ~defenders
    far = s.reach[KING]
    p.siege.two_moves = popcount(slides(slides(king, free, n, far), free, n, far))
    open_ = load(empty, p.free, 0) & ~attackers & ~king
    gaps = gaps_in(~open_) & open_ & ~men
    p.siege.men_region = popcount(flood_fill(men, open_))
    p.siege.men_tight = popcount(flood_fill(men, open_ & ~gaps))
    open_ = open_ & ~men
    p.siege.men_moves = popcount(fill_ranks(men, open_)) + popcount(fill_files(men, open_))
    near = around(around(men))
    p.siege.men_near = popcount(near & attackers)
    p.siege.men_far = popcount(around(around(near)) & attackers)


@kernel
def siege_value(p, s, corners):
    """The term in sixteenths of a centipawn, for the attackers; `corners` are those that the king could reach."""
    # Every square of the board must have rows around it in the set: what is off the board is a wall.
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
