"""Games without repetition (hex, hexapawn), solved by depth-first search with a table of all positions.

The table has the full 64-bit key and the value of every position. Nothing is ever replaced: if it is full, the search
gives up. Two positions with the same key would be confused; with `n` positions the probability of that is about
`n * n / 2**65`, one in ninety thousand for twenty million.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import sides
from ..compile.jit import entry, inline, kernel
from ..games.base_position import Position
from ..games.interface import adjudicate, generate, make, no_move_outcome, undo
from ..mixing import GOLDEN_GAMMA
from ..sides import WINNER, Side

LOST, DRAWN, WON = range(3)
"""The result for the player to move, in the lowest bits of a value. Above it are the plies to the end; 1 is added, so
that no value is 0."""
ENTRY = 10
"""Bytes per entry of the table."""

WORK = np.dtype(
    [
        ("mask", "i8"),  # entries of the table, minus 1
        ("room", "i8"),  # positions that can still be stored
        ("stored", "i8"),
        ("shortest", "i8"),  # 1: compute distances, too; 0: stop at the first winning move
    ],
    align=True,
)


@dataclass(frozen=True, slots=True)
class Solved:
    """Who wins (None: a draw), in how many plies, which first moves keep that value, and the positions searched.

    `plies` is None if distances were not computed.
    """

    winner: Side | None
    plies: int | None
    moves: tuple[int, ...]
    positions: int


class OutOfMemory(RuntimeError):
    """The table is full."""


@kernel
def place_of(td, keys, key):
    """The index of a position in the table, or of the empty entry where it belongs."""
    at = np.int64((key * GOLDEN_GAMMA) >> np.uint64(20)) & td.mask
    while keys[at] != key and keys[at] != np.uint64(0):
        at = (at + 1) & td.mask
    return at


@inline
def ended(outcome, side, plies):
    """The value for `side` of a game that ends with this outcome in `plies` plies."""
    winner = (outcome >> WINNER) - 1
    worth = DRAWN if winner == sides.DRAWN else WON if winner == side else LOST
    return 1 + (worth | plies << 2)


@inline
def seen_before(value):
    """The value for the other player one ply earlier; 0 stays 0."""
    return 1 + ((WON - (value - 1 & 3)) | ((value - 1 >> 2) + 1) << 2) if value else 0


@kernel
def worth_of(s, td, keys, values, top):
    """The value of an undecided position for the player to move; 0 if the table is full."""
    # 0 marks an empty entry.
    key = s.key | np.uint64(1) << np.uint64(63)
    at = place_of(td, keys, key)
    if keys[at] == key:
        return int(values[at])
    end = generate(s, top)
    side = s.side
    best = 0
    if end == top:
        best = ended(no_move_outcome(s), side, 0)
    for i in range(top, end):
        make(s, int(s.moves[i]))
        outcome = s.outcome
        if outcome == 0:
            outcome = adjudicate(s, -1)
        if outcome:
            value = ended(outcome, side, 1)
        else:
            value = seen_before(worth_of(s, td, keys, values, end))
        undo(s)
        if value == 0:
            return 0
        if best == 0 or better(value, best):
            best = value
            if not td.shortest and best - 1 & 3 == WON:
                break
    if td.room == 0:
        return 0
    td.room -= 1
    td.stored += 1
    at = place_of(td, keys, key)
    keys[at] = key
    values[at] = best
    return best


@kernel
def better(one, other):
    """Whether the player to move prefers `one` to `other`: the better result, the sooner win, the later loss."""
    worth = one - 1 & 3
    if worth != other - 1 & 3:
        return worth > other - 1 & 3
    return one < other if worth == WON else one > other


@entry
def value_after(s, td, keys, values, move):
    """The value of a root move for the player who makes it; 0 if the table is full."""
    side = s.side
    make(s, move)
    outcome = s.outcome
    if outcome == 0:
        outcome = adjudicate(s, -1)
    if outcome:
        value = ended(outcome, side, 1)
    else:
        # Not the constant: numba would compile the search again for a literal argument.
        value = seen_before(worth_of(s, td, keys, values, side - side))
    undo(s)
    return value


def solve(position: Position, mib: int, *, shortest: bool) -> Solved:
    """The exact value of a position of a game without repetition; OutOfMemory if a table of `mib` MiB is too small."""
    if position.outcome is not None:
        return Solved(position.outcome.winner, 0, (), 0)
    places = 1 << ((mib << 20) // ENTRY).bit_length() - 1
    keys, values = np.zeros(places, np.uint64), np.zeros(places, np.uint16)
    work = np.zeros(1, WORK).view(np.recarray)
    work[0]["mask"] = places - 1
    work[0]["room"] = places - places // 8
    work[0]["shortest"] = shortest
    state = position.new_record()[0]
    found: dict[int, int] = {}
    for move in position.legal_moves():
        value = int(value_after(state, work[0], keys, values, move))
        if value == 0:
            raise OutOfMemory(
                f"more than {int(work[0]['stored']):,} positions, which is all that {mib} MiB hold"
            )
        found[move] = value - 1
    most = max(value & 3 for value in found.values())
    lengths = [value >> 2 for value in found.values() if value & 3 == most]
    plies = min(lengths) if most == WON else max(lengths)
    moves = tuple(move for move, value in found.items() if value & 3 == most)
    side = Side(position.side)
    winner = None if most == DRAWN else side if most == WON else side.other
    return Solved(winner, plies if shortest else None, moves, int(work[0]["stored"]))
