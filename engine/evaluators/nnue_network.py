"""The efficiently updatable network in a search: its record, and its incremental accumulators (kernels).

Searches need not know of it. Accumulators are kept by ply, each with the key of its position. `value` starts from the
nearest ancestor that has one and applies the moves and captures since. If none is near, or the king has moved, it sums
up from scratch, which is cheap: a board has few pieces. Keys cover what stands on the board and nothing else, and every
update is checked against them, so that an accumulator left over from another line, search or game is correct or unused.

`networks/nnue.py` defines what is computed. A record may hold the hand-written evaluator, too, which is asked instead
while `siege` is set: for whole searches, so that all their values are on one scale. Where it is not, `progress` of
`tafl_siege.py` is added in positions with few defenders.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compile import structs
from ..compile.jit import entry, inline, kernel
from ..compile.simd_i16 import LANES, dot_squares, load_words, store_words
from ..games.interface import bind
from ..games.tafl.codes import (
    CAPTURED_PIECE,
    CAPTURED_SQUARE,
    DEFENDING,
    KING,
    MERCENARIES,
    PIECE,
    PIECE_CODES,
)
from ..games.tafl.state import TAFL
from ..score import MAX_EVAL
from ..squares import CELLS, ORIGIN, TARGET, squares
from . import tafl
from .networks import nnue
from .networks.nnue import HEADS, MOST_UNITS
from .tafl_siege import progress

if TYPE_CHECKING:
    from .network import Network

MOST_WEIGHTS = 1 << 19
"""Weights of all arrays together: as many as an evaluator file has room for."""
PLIES = 256
"""Plies whose accumulators are kept: more than the depth of any search."""
MOST_STEPS = 6
"""An accumulator is updated over at most this many plies; beyond, summing from scratch is faster."""
MOST_CHANGES = 64
MIDPOINT = 1.5
"""The network's logit at which half of `progress` counts; less counts below, so that attackers who are not winning do
not hurry and let the king escape. Set by hand, as `STEEPNESS` (docs/experiments/strength-copenhagen.md)."""
STEEPNESS = 1.5
_UNIT = 1.0 / nnue.LOGIT
"""A power of two, so that scaling is exact."""

NNUE = np.dtype(
    [
        ("scale", "f8"),  # centipawns per logit
        ("units", "i8"),
        ("men", "i8"),  # the first row of men in `weights`, after the rows of the king
        ("squares", "i8"),  # rows for each kind of piece
        ("kinds", "i8"),  # rows for each bucket, in units of `squares`
        ("kind", "i2", (16,)),  # of each piece code
        ("bucket", "i2", (CELLS,)),  # by the king's square
        ("turn", "u1", (CELLS,)),  # by the king's square
        ("place", "u2", (8, CELLS)),  # of each square, by view
        ("head", "u1", (2, CELLS)),  # by side to move and pieces on the board
        ("output_bias", "i8", (HEADS,)),
        ("output", "i1", (HEADS * MOST_UNITS,)),
        ("weights", "i2", (MOST_WEIGHTS,)),  # rows of `units` words
        ("keys", "u8", (PLIES,)),  # of the boards whose accumulators are kept; 0: none
        ("kings", "i8", (PLIES,)),  # its king's square
        ("sums", "i2", (PLIES * MOST_UNITS,)),
        ("added", "i8", (CELLS,)),  # scratch: where rows begin
        ("removed", "i8", (CELLS,)),
        ("siege", "i8"),  # whether every position is evaluated by hand
        ("few", "i8"),  # `progress` counts with at most so many defenders, king included; 0: never
        ("by_hand", tafl.DEFAULT),
    ],
    align=True,
)


def record(network: Network, variant: Any, genome: Any, scale: float | None = None) -> Any:
    """The parameters for kernels, in a one-element array.

    ValueError for a genome with the wrong number of weights, or with weights outside the network's integer types.
    """
    count = network.count(variant)
    if count > MOST_WEIGHTS:
        raise ValueError(
            f"network {network.text}: {count} weights on this board: expected at most {MOST_WEIGHTS}"
        )
    if len(genome) != count:
        raise ValueError(f"network {network.text}: {len(genome)} weights: expected {count} on this board")
    arrays = {}
    for name, array in network.split(variant, np.asarray(genome, np.float64)).items():
        kind = np.iinfo(nnue.TYPES[name])
        if not ((array == np.rint(array)) & (array >= kind.min) & (array <= kind.max)).all():
            raise ValueError(
                f"network {network.text}: {name}: expected whole numbers from {kind.min} to {kind.max}"
            )
        arrays[name] = array.astype(nnue.TYPES[name])
    made = structs.zeros(NNUE)
    p = made[0]
    rings, size, units = network.sizes["rings"], variant.size, network.sizes["units"]
    p["scale"] = nnue.SCALE if scale is None else scale
    p["units"], p["squares"], p["kinds"] = units, size * size, len(nnue.kinds(variant))
    p["men"] = arrays["king"].size
    weights = np.concatenate([arrays["king"].ravel(), arrays["men"].ravel()])
    p["weights"][: len(weights)] = weights
    for head in range(HEADS):
        p["output"][head * MOST_UNITS : head * MOST_UNITS + units] = arrays["output"][head]
    p["output_bias"] = arrays["output_bias"]
    for letter, code in PIECE_CODES.items():
        p["kind"][code] = 0 if letter == "K" else nnue.kind_of(variant, letter)
    turned = nnue.views(variant)
    for sq in squares(size):
        p["bucket"][sq] = nnue.bucket_of(sq, size, rings)
        p["turn"][sq] = nnue.view_of(variant, sq)
        for i, view in enumerate(turned):
            p["place"][i, sq] = nnue.place_of(view[sq], size)
    for side in range(2):
        p["head"][side] = [nnue.head_of(variant, side, pieces) for pieces in range(CELLS)]
    return made


@inline
def men_row(p, base, view, piece, sq):
    """The index of the row of a piece on a square; `base` is that of the first row of the king's bucket."""
    row = base + np.int64(p.kind[piece]) * p.squares + np.int64(p.place[view, sq])
    return p.men + row * p.units


@inline
def base_row(p, king):
    """The index of the first row of weights for a king on this square."""
    return np.int64(p.bucket[king]) * p.kinds * p.squares


@kernel
def piece_moved(s, ply):
    """The code of the piece that moved at a ply, found by following it through later moves and captures."""
    sq = s.u_move[ply] >> TARGET
    for later in range(ply, s.ply + 1):
        move = np.int64(s.u_move[later])
        if move == 0:
            continue
        if later > ply and move & ORIGIN == sq:
            sq = move >> TARGET
        first = np.int64(s.u_caught[later])
        last = s.caught_top
        for i in range(later + 1, s.ply + 1):
            if s.u_move[i]:
                last = np.int64(s.u_caught[i])
                break
        for i in range(first, last):
            entry = np.int64(s.caught[i])
            if entry & CAPTURED_SQUARE == sq:
                return entry >> CAPTURED_PIECE & PIECE
    return np.int64(s.board[sq]) & PIECE


@kernel
def refresh(p, s, at):
    """Compute the accumulator of the position from scratch, at `at` in `p.sums`."""
    king = s.king
    view = p.turn[king]
    base = base_row(p, king)
    n = 0
    for side in range(2):
        for i in range(s.count[side]):
            sq = s.pieces[side, i]
            if sq != king:
                p.added[n] = men_row(p, base, view, s.board[sq] & PIECE, sq)
                n += 1
    start = np.int64(p.place[view, king]) * p.units
    for unit in range(0, p.units, LANES):
        v = load_words(p.weights, start + unit)
        for i in range(n):
            v = v + load_words(p.weights, p.added[i] + unit)
        store_words(p.sums, at + unit, v)


@inline
def board_key(s):
    """The key of what stands on the board."""
    key = s.key
    if s.side:
        key ^= s.side_zobrist
    if s.must_go:
        key ^= s.must_zobrist[s.must_go]
    return key


@kernel
def carry_on(p, s, key, at):
    """Write the accumulator of the position at `at`, from that of the nearest ancestor; 0 if there is none near."""
    king = s.king
    view = p.turn[king]
    base = base_row(p, king)
    n = m = 0
    caught = s.caught_top
    last = max(s.ply - MOST_STEPS, 0)
    for ply in range(s.ply, last, -1):
        move = np.int64(s.u_move[ply])
        if move:
            first = np.int64(s.u_caught[ply])
            if m + caught - first > MOST_CHANGES:
                return 0
            for i in range(first, caught):
                entry = np.int64(s.caught[i])
                sq = entry & CAPTURED_SQUARE
                piece = entry >> CAPTURED_PIECE & PIECE
                key ^= s.zobrist[piece, sq]
                p.removed[m] = men_row(p, base, view, piece, sq)
                m += 1
                if MERCENARIES >> piece & 1:
                    key ^= s.zobrist[piece ^ DEFENDING, sq]
                    p.added[n] = men_row(p, base, view, piece ^ DEFENDING, sq)
                    n += 1
            caught = first
            piece = piece_moved(s, ply)
            key ^= s.zobrist[piece, move & ORIGIN] ^ s.zobrist[piece, move >> TARGET]
            # A king who has moved and come back changes nothing; if he stands elsewhere, `p.kings` differs below.
            if piece != KING:
                p.removed[m] = men_row(p, base, view, piece, move & ORIGIN)
                p.added[n] = men_row(p, base, view, piece, move >> TARGET)
                m += 1
                n += 1
        slot = (ply - 1) & (PLIES - 1)
        # Below the position that was loaded the stacks hold leftovers, whose keys match nothing.
        if p.keys[slot] == key:
            if p.kings[slot] != king:
                return 0
            source = slot * MOST_UNITS
            for unit in range(0, p.units, LANES):
                v = load_words(p.sums, source + unit)
                for i in range(n):
                    v = v + load_words(p.weights, p.added[i] + unit)
                for i in range(m):
                    v = v - load_words(p.weights, p.removed[i] + unit)
                store_words(p.sums, at + unit, v)
            return 1
    return 0


@kernel
def follow(p, s):
    """Make sure that `p.sums` has the accumulator of the position; returns its index."""
    slot = s.ply & (PLIES - 1)
    at = slot * MOST_UNITS
    key = board_key(s)
    if p.keys[slot] != key:
        if carry_on(p, s, key, at) == 0:
            refresh(p, s, at)
        p.keys[slot] = key
        p.kings[slot] = s.king
    return at


@entry
def value(p, s):
    """The value for the attackers, a logit."""
    if p.siege:
        return tafl.value(p.by_hand, s) / p.scale
    at = follow(p, s)
    head = np.int64(p.head[s.side, s.count[0] + s.count[1]])
    total = p.output_bias[head]
    for unit in range(0, p.units, LANES):
        total += dot_squares(load_words(p.sums, at + unit), p.output, head * MOST_UNITS + unit)
    x = total * _UNIT
    if s.count[1] <= p.few and s.king:
        x += progress(p.by_hand, s) / p.scale / (1.0 + math.exp(STEEPNESS * (MIDPOINT - x)))
    return x


@entry
def evaluate(p, s):
    """The value for the side to move, in centipawns."""
    if p.siege:
        return tafl.evaluate(p.by_hand, s)
    x = value(p, s) * p.scale
    cp = np.int64(min(max(x, -float(MAX_EVAL)), float(MAX_EVAL)))
    return cp if s.side == 0 else -cp


bind(NNUE, TAFL, value=value, evaluate=evaluate)
