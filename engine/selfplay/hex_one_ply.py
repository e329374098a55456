"""Hex between one-ply players with a perceptron that do not see wins, many times faster than by the search (kernels).

A placement changes one input, so the sums of the first layer are kept through the game, one set for each side, and
cells are valued in vectors. The moves are those of `minimax.choose` at depth 1 with `unseen` wins, from the same stream
of random numbers, except where two values differ by less than rounding: sums are accumulated in the order of the game,
and a sigmoid is off by at most `SIGMOID_ERROR`.

Source: M. McCarver, R. LeGrand, "Evolving a Hex-Playing Agent".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compile.jit import entry, inline, kernel
from ..compile.rng import randbelow
from ..compile.simd_x16 import WIDTH, load, sigmoids, spread, store
from ..evaluators.networks import mlp
from ..games.hex.kernels import make, random_move, undo
from ..games.hex.state import OWNER, OWNER_BITS
from ..sides import WINNER, Reason
from ..squares import CELLS, MAX_SIZE, TARGET, square

MOST_UNITS = 64
"""Units of a layer; larger networks take the general search."""
LAYERS = slice(mlp.UNITS, mlp.UNITS + mlp.MOST_LAYERS)
"""Where the layout has the units of each layer."""
PADDED = -(-(MAX_SIZE * MAX_SIZE) // (2 * WIDTH)) * 2 * WIDTH
ILLEGAL = Reason.ILLEGAL_MOVE.code
SIGMOID, TANH = (mlp.ACTIVATIONS.index(word) for word in ("sigmoid", "tanh"))

SEAT = np.dtype(
    [
        ("random", "i8"),  # plays random legal moves; the other fields are unused
        ("learned", "i8"),  # every cell is a candidate, and choosing an occupied one loses
        ("kind", "i8"),  # of activation
        ("units", "i8", (3,)),  # of each layer, 0 where there is none
        ("pad", "i8"),  # length of a unit's row, a multiple of twice `WIDTH`
        # Indices into the numbers of all players:
        ("own", "i8", (2,)),  # by side: what an own stone adds, by unit and cell
        ("other", "i8", (2,)),  # by side: what an opposing stone adds
        ("rest", "i8"),  # all weights after the first layer's, in the order of `mlp.forward`
    ],
    align=True,
)

BOARD = np.dtype(
    [
        ("cell", "i2", (CELLS,)),  # cell of a square: row times files plus column, top row first
        ("sums", "f8", (2, MOST_UNITS)),  # first-layer sums of each side's network for the current position
        (
            "values",
            "f8",
            (PADDED,),
        ),  # by cell: the value for the mover of the position after a placement there
        ("lanes", "f8", (2 * MOST_UNITS * 2 * WIDTH,)),  # two layers of units, of thirty-two cells each
    ],
    align=True,
)


def fits(params: Any) -> bool:
    """Whether this module supports a network."""
    shape = params["shape"]
    return bool(
        params["architecture"] == mlp.NUMBER
        and not shape[mlp.READING] & mlp.EDGES
        and max(shape[LAYERS]) <= MOST_UNITS
    )


def seated(players: Sequence[tuple[Any, bool]]) -> tuple[Any, Any]:
    """Records of dtype `SEAT` and the numbers they index. A player is its parameters (None: random) and whether it has
    to learn which moves are legal."""
    seats = np.zeros(len(players), SEAT).view(np.recarray)
    parts, at = [np.zeros(0)], 0
    for number, (params, learned) in enumerate(players):
        seat = seats[number]
        if params is None:
            seat["random"] = 1
            continue
        made = _fill(seat, params, at)
        parts.append(made)
        at += len(made)
        seat["learned"] = learned
    return seats, np.concatenate(parts)


def _fill(seat: Any, params: Any, at: int) -> Any:
    """Fill a seat for a network whose numbers begin at `at`; returns these numbers."""
    shape, weights = params["shape"], params["weights"]
    n, reading = int(shape[mlp.FILES]), int(shape[mlp.READING])
    cells, layers = n * n, shape[LAYERS]
    units = int(layers[0])
    seen = cells * 2 if reading & mlp.PLANES else cells
    first = weights[: units * seen].reshape(units, -1, n, n) if units else np.zeros((0, 1, n, n))
    own, other = first[:, 0], first[:, 1] if reading & mlp.PLANES else -first[:, 0]
    pad = -(-cells // (2 * WIDTH)) * 2 * WIDTH
    tables = [own, other]
    if reading & mlp.TRANSPOSED:
        tables += [own.swapaxes(1, 2), other.swapaxes(1, 2)]
    made = np.zeros((len(tables), units, pad))
    for table, into in zip(tables, made, strict=True):
        into[:, :cells] = table.reshape(units, cells)
    rest, below = 0, seen
    for layer in map(int, layers):
        if layer:
            rest += layer * (below + 1)
            below = layer
    rest += below + 1
    size = units * pad
    seat["kind"], seat["units"], seat["pad"] = shape[mlp.ACTIVATION], layers, pad
    seat["own"] = at, at + 2 * size * bool(reading & mlp.TRANSPOSED)
    seat["other"] = seat["own"] + size
    seat["rest"] = at + made.size
    # Loads that cross a cache line are slower.
    tail = weights[units * seen : rest]
    return np.concatenate([made.ravel(), tail, np.zeros(-len(tail) % WIDTH)])


def board(size: int) -> Any:
    """A thread's scratch record, in a one-element recarray."""
    record = np.zeros(1, BOARD).view(np.recarray)
    for row in range(size):
        for column in range(size):
            record[0]["cell"][square(column, size - 1 - row)] = row * size + column
    return record


@inline
def activate(kind, lanes, at):
    """Apply the activation to two vectors of sums, in place."""
    if kind == SIGMOID:
        one, two = sigmoids(load(lanes, at), load(lanes, at + WIDTH))
        store(lanes, at, one)
        store(lanes, at + WIDTH, two)
    elif kind == TANH:
        double = spread(2.0)
        one, two = sigmoids(double * load(lanes, at), double * load(lanes, at + WIDTH))
        store(lanes, at, double * one - spread(1.0))
        store(lanes, at + WIDTH, double * two - spread(1.0))
    else:
        for i in range(at, at + 2 * WIDTH):
            lanes[i] = mlp.activated(kind, lanes[i])


@kernel
def value_cells(seat, numbers, b, side, cells):
    """Write to `b.values` the value for `side` of a stone on each cell, as if all cells were empty."""
    own = seat.own[side]
    pad = seat.pad
    kind = seat.kind
    lanes = b.lanes
    for block in range(0, cells, 2 * WIDTH):
        at = seat.rest
        units = seat.units[0]
        if seat.units[1] == 0 and kind == SIGMOID:
            # The paper's network: one layer, which stays in registers.
            weights = at + units
            one = spread(numbers[weights + units])
            two = one
            for h in range(units):
                sum_ = spread(b.sums[side, h])
                row = own + h * pad + block
                x, y = sigmoids(sum_ + load(numbers, row), sum_ + load(numbers, row + WIDTH))
                weight = spread(numbers[weights + h])
                one = one + weight * x
                two = two + weight * y
            store(b.values, block, one)
            store(b.values, block + WIDTH, two)
            continue
        for h in range(units):
            sum_ = spread(b.sums[side, h])
            row = own + h * pad + block
            into = h * 2 * WIDTH
            store(lanes, into, sum_ + load(numbers, row))
            store(lanes, into + WIDTH, sum_ + load(numbers, row + WIDTH))
            activate(kind, lanes, into)
        at += units
        source = 0
        for layer in range(1, 3):
            below = units
            if seat.units[layer] == 0:
                break
            units = seat.units[layer]
            bias = at + units * below
            target = MOST_UNITS * 2 * WIDTH - source
            for h in range(units):
                into = target + h * 2 * WIDTH
                weigh(numbers, at, numbers[bias + h], below, lanes, source, lanes, into)
                activate(kind, lanes, into)
                at += below
            at = bias + units
            source = target
        weigh(numbers, at, numbers[at + units], units, lanes, source, b.values, block)


@inline
def weigh(numbers, at, bias, units, lanes, source, into, place):
    """Two vectors of sums: a bias plus the units from `source` on, times their weights from `at` on."""
    one = spread(bias)
    two = one
    for i in range(units):
        weight = spread(numbers[at + i])
        one = one + weight * load(lanes, source + i * 2 * WIDTH)
        two = two + weight * load(lanes, source + i * 2 * WIDTH + WIDTH)
    store(into, place, one)
    store(into, place + WIDTH, two)


@kernel
def value_taken(seat, numbers, b, s, side):
    """Write the values of occupied cells to `b.values`: as if a stone of `side` replaced the one there."""
    pad = seat.pad
    units = seat.units[0]
    own = seat.own[side]
    other = seat.other[side]
    cells = s.files * s.files
    for i in range(s.empty, cells):
        sq = int(s.cells[i])
        cell = int(b.cell[sq])
        there = own if int(s.board[sq]) >> OWNER & OWNER_BITS == side + 1 else other
        for h in range(units):
            b.lanes[h] = numbers[own + h * pad + cell] - numbers[there + h * pad + cell]
        b.values[cell] = value_shifted(seat, numbers, b, side)


@kernel
def value_shifted(seat, numbers, b, side):
    """The value of one position with `b.lanes` added to the sums; overwrites `b.lanes`."""
    lanes = b.lanes
    units = seat.units[0]
    for h in range(units):
        lanes[h] = mlp.activated(seat.kind, b.sums[side, h] + lanes[h])
    at = seat.rest + units
    source = 0
    for layer in range(1, 3):
        below = units
        if seat.units[layer] == 0:
            break
        units = seat.units[layer]
        bias = at + units * below
        target = MOST_UNITS - source
        for h in range(units):
            sum_ = numbers[bias + h]
            for i in range(below):
                sum_ += numbers[at + i] * lanes[source + i]
            at += below
            lanes[target + h] = mlp.activated(seat.kind, sum_)
        at = bias + units
        source = target
    total = numbers[at + units]
    for i in range(units):
        total += numbers[at + i] * lanes[source + i]
    return total


@kernel
def choose(s, seat, numbers, b):
    """The move of a player; 0 on a full board, -1 for an occupied cell."""
    if seat.random:
        return random_move(s)
    cells = s.files * s.files
    side = s.side
    count = s.empty
    value_cells(seat, numbers, b, side, cells)
    if seat.learned:
        count = cells
        value_taken(seat, numbers, b, s, side)
    best = -np.inf
    ties = 0
    for i in range(count):
        x = b.values[b.cell[s.cells[i]]]
        if x > best:
            best = x
            ties = 1
        elif x == best:
            ties += 1
    left = randbelow(s, ties)
    chosen = 0
    for i in range(count):
        if b.values[b.cell[s.cells[i]]] == best:
            if left == 0:
                chosen = i
                break
            left -= 1
    if chosen >= s.empty:
        return -1
    sq = int(s.cells[chosen])
    return sq | sq << TARGET


@inline
def note(seat, numbers, b, side, at, cell):
    """Add a stone to the sums of a side; the numbers for such stones begin at `at`."""
    if seat.random:
        return
    for h in range(seat.units[0]):
        b.sums[side, h] += numbers[at + h * seat.pad + cell]


@kernel
def begin(s, seat, numbers, b, side):
    """Set the sums of a side to those for the stones on the board."""
    if seat.random:
        return
    for h in range(seat.units[0]):
        b.sums[side, h] = numbers[seat.rest + h]
    for i in range(s.empty, s.files * s.files):
        sq = int(s.cells[i])
        mine = int(s.board[sq]) >> OWNER & OWNER_BITS == side + 1
        note(seat, numbers, b, side, seat.own[side] if mine else seat.other[side], int(b.cell[sq]))


@kernel
def play_game(s, seats, numbers, b, game, offset, prime):
    """Play one game from the position of `s`, whose random stream has been seeded; restores `s`."""
    game.taken[0] = 0
    game.taken[1] = 0
    game.evaluations = 0
    game.moves_hash = offset
    begun = s.ply
    attackers = seats[game.attackers]
    defenders = seats[game.defenders]
    begin(s, attackers, numbers, b, 0)
    begin(s, defenders, numbers, b, 1)
    while s.outcome == 0:
        side = s.side
        seat = attackers if side == 0 else defenders
        if not seat.random:
            game.evaluations += s.files * s.files if seat.learned else s.empty
        move = choose(s, seat, numbers, b)
        if move < 0:
            s.outcome = ILLEGAL | (2 - side) << WINNER
            break
        game.moves_hash = (game.moves_hash ^ np.uint64(move)) * prime
        make(s, move)
        cell = int(b.cell[move >> TARGET])
        note(attackers, numbers, b, 0, attackers.own[0] if side == 0 else attackers.other[0], cell)
        note(defenders, numbers, b, 1, defenders.own[1] if side == 1 else defenders.other[1], cell)
    game.outcome = s.outcome
    game.plies = s.ply - begun
    while s.ply > begun:
        undo(s)
    s.outcome = 0


@entry
def values(s, seats, numbers, b):
    """Write to `b.values` the first player's value of every placement by the side to move."""
    seat = seats[0]
    begin(s, seat, numbers, b, s.side)
    value_cells(seat, numbers, b, s.side, s.files * s.files)
    if seat.learned:
        value_taken(seat, numbers, b, s, s.side)
