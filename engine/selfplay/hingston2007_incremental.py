"""Incremental evaluation with the evolved networks of 2007: a move updates only what it changes (kernels).

A square is an input of 15 features: three vertical strips, three horizontal strips, nine patches. A feature is indexed
by its centre (`VERTICAL` + file, `HORIZONTAL` + rank, `PATCH` + square), so that the features of a square are adjacent
triples; those beyond the board have weights of 0. Three layers are kept: the sums of the features, the features (their
sigmoids), and the sums of the hidden units without the three raw inputs.

The record holds these layers twice: in double precision, kept up to date move by move, and in single precision, copied
from them by `copy_single` for the moves of one position, which cost half the time and are less exact.

`hingston2007_2862` has three more features that look at the whole board. Only their sums are kept; they enter the
hidden units when a value is computed.

The result differs from the network's own `value` by less than `error`, which `prepare` computes from the weights. It
covers the error of the vector sigmoid and rounding over `REFRESH_EVERY` moves, after which all sums are computed from
scratch. `error_after` knows less of it for the moves of one position: where hidden units are far from zero, as in
networks whose weights have grown together, what goes into them hardly matters, and values may differ by less than
`error`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compile.jit import entry, inline, kernel
from ..compile.simd_x16 import (
    SIGMOID_ERROR,
    SINGLE_SIGMOID_ERROR,
    WIDTH,
    add_rows,
    dot,
    double,
    load,
    put_triples,
    sigmoid,
    single,
    store,
    times,
    triples,
)
from ..evaluators.networks import hingston2007_2862, simple, zero
from ..evaluators.networks.hingston2007 import HIDDEN, NUMBER, SIZE
from ..games.tafl.codes import CAPTURED_PIECE, CAPTURED_SQUARE, DEFENDING, KING, PIECE
from ..squares import CELLS, ORIGIN, STRIDE, TARGET

MOST_HIDDEN = WIDTH
WHOLE = hingston2007_2862.WHOLE
WITH_WHOLE = hingston2007_2862.NUMBER
"""The architecture with `WHOLE` features of the whole board."""
VERTICAL, HORIZONTAL, PATCH = 8, 32, 56
FEATURES = 512
FILTER_WORDS = 64
CHANGES = 80
"""Most squares that change in one move."""
PLIES = 4
"""Moves that can be pushed and popped at most."""
SAVED = CHANGES * PLIES
REFRESH_EVERY = 128
"""Moves after which the sums are computed from scratch."""

_SUMMED = 2e-12
"""Relative rounding of a sum over `REFRESH_EVERY` moves: at most 64 squares a move, a unit roundoff each, twice."""
_POWER_ERROR = 5e-11
"""Of a sigmoid's power of two in double precision, relative."""
_OUTPUT = 1e-14
"""Relative rounding of the output's sum and of its terms."""

RISKS = -(-CELLS // 64) * 64
"""A byte for each square, in whole lines of the cache."""
BATCH = 16
"""Most moves that are scored together."""
LARGEST_SINGLE = 1e6
"""Networks with larger weights are left to double precision; from 3e38 on they would become infinite."""
MOST_CHANGES = 3
"""Squares that change in one move at most, with one capture; after others positions are scored by the plain network."""
_SINGLE = 2.0**-24
"""Relative rounding in single precision."""


def _layers(number: str, slots: int) -> list[Any]:
    """Fields of a network's layers in one precision, with so many slots of saved squares."""
    return [
        # By square: what a man there adds to its features, triple by triple.
        ("weights", number, (CELLS * WIDTH,)),
        ("rows", number, (FEATURES * WIDTH,)),  # by feature: what it adds to the hidden units
        # Weights of raw inputs: taken by attackers, by defenders, attackers to move.
        ("raw", number, (3 * WIDTH,)),
        ("output", "f8", (WIDTH,)),  # of a hidden unit's sigmoid
        ("hidden", number, (WIDTH,)),  # the three layers for the current board
        ("sums", number, (FEATURES,)),
        ("features", number, (FEATURES,)),
        ("saved", number, (slots * 3 * WIDTH,)),  # layers around changed squares, for `pop_change`
        # Moves to be scored together, in rows: changes of features, hidden units before them, target and index.
        ("changed", number, (BATCH * WIDTH,)),
        ("before", number, (BATCH * WIDTH,)),
        ("target", "i4", (BATCH,)),
        ("index", "i4", (BATCH,)),
        ("bias", "f8"),
        ("whole_sums", number, (WHOLE,)),
        ("whole_rows", number, (WHOLE * WIDTH,)),  # what they add to the hidden units
        ("whole_weights", number, (CELLS * WHOLE,)),  # by square
        ("whole_saved", number, (slots * WHOLE,)),
        ("error", "f8"),  # of a value; in single precision the part that no position changes
        ("whole", "i8"),  # 1: a network with features of the whole board; 0: `whole_*` are unused
        ("changes", "i8"),  # most squares that may change in one move
    ]


def _padded(fields: list[Any]) -> np.dtype[Any]:
    """A record whose size is a multiple of 64 bytes."""
    size = np.dtype(fields, align=True).itemsize
    return np.dtype([*fields, ("_padding", "i1", (-size % 64,))], align=True)


SINGLE = _padded(
    [
        *_layers("f4", MOST_CHANGES),
        ("relative", "f8", (WIDTH,)),  # by hidden unit: the error of a value for each unit of its sum
        ("used", "i8"),  # features of this board have lower indices
    ]
)
NET = _padded(
    [
        ("single", SINGLE),
        *_layers("f8", SAVED),
        # Of the position whose moves are scored, by `one_ply.note_risks`:
        ("filter", "u8", (FILTER_WORDS,)),  # a Bloom filter of earlier positions
        ("risks", "u1", (RISKS,)),  # by square: 1 where a move may capture
        # By hidden unit, for `error_after`:
        ("unsure", "f8", (WIDTH,)),  # the error of its sum
        ("reach", "f8", (WIDTH,)),  # what a move changes in its sum at most
        ("empty_hidden", "f8", (WIDTH,)),  # the three layers for an empty board
        ("empty_sums", "f8", (FEATURES,)),
        ("empty_features", "f8", (FEATURES,)),
        ("empty_whole", "f8", (WHOLE,)),
        ("rounding", "f8"),  # the error of a value if hidden units are exact
        ("moves", "i8"),  # updates since the last refresh
        ("fits", "i8"),  # 1: a network that this module supports; 0: all but `filter` and `risks` is unused
        ("material", "i8"),  # 1: values that only captures and the king's square change, for `material_plies`
        ("coarse", "i8"),  # 1: single precision does not tell enough of its moves apart
    ]
)


def new(count: int) -> Any:
    """Records for `count` networks, aligned to cache lines of 64 bytes: loads that cross one are slower."""
    raw = np.zeros(count * NET.itemsize + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + count * NET.itemsize].view(NET).view(np.recarray)


@inline
def set_feature(p, net, place, bias, row, hidden, features):
    """Set a feature's bias and its weights into the hidden layer."""
    feature = 1.0 / (1.0 + math.exp(-bias))
    net.empty_sums[place] = bias
    net.empty_features[place] = feature
    for h in range(hidden):
        weight = p.weights[row + h * features]
        net.rows[place * WIDTH + h] = weight
        net.empty_hidden[h] += weight * feature


@kernel
def prepare(p, net):
    """Fill a zeroed record from the parameters, if they are of this architecture and small enough."""
    if p.architecture == zero.NUMBER or p.architecture == simple.NUMBER:
        net.material = 1
        return
    n = p["shape"][SIZE]
    hidden = p["shape"][HIDDEN]
    if p.architecture not in (NUMBER, WITH_WHOLE) or hidden > MOST_HIDDEN:
        return
    whole = WHOLE if p.architecture == WITH_WHOLE else 0
    strips = n - 2
    vertical = strips * 3 * n
    features = 2 * strips + strips * strips + whole + 3
    horizontal_at = vertical + strips
    patch_at = 2 * horizontal_at
    bias_at = patch_at + strips * strips * 9
    whole_at = bias_at + strips * strips
    raw_bias = whole_at + whole * (n * n + 1)
    rows_at = raw_bias + (3 if whole else 0)
    hidden_bias = rows_at + hidden * features
    output_at = hidden_bias + hidden
    sums = 0.0
    for h in range(hidden):
        net.output[h] = p.weights[output_at + h]
        net.empty_hidden[h] = p.weights[hidden_bias + h]
    net.bias = p.weights[output_at + hidden]
    for i in range(strips):
        set_feature(p, net, VERTICAL + i + 2, p.weights[vertical + i], rows_at + i, hidden, features)
        set_feature(
            p,
            net,
            HORIZONTAL + n - 1 - i,
            p.weights[patch_at - strips + i],
            rows_at + strips + i,
            hidden,
            features,
        )
        for k in range(n):
            for j in range(3):
                sq = (n - k) * STRIDE + 1 + i + j
                net.weights[sq * WIDTH + 2 - j] = p.weights[(i * n + k) * 3 + j]
                sq = (n - i - j) * STRIDE + 1 + k
                net.weights[sq * WIDTH + 3 + j] = p.weights[horizontal_at + (i * 3 + j) * n + k]
    for r in range(strips):
        for c in range(strips):
            index = r * strips + c
            set_feature(
                p,
                net,
                PATCH + (n - r - 1) * STRIDE + c + 2,
                p.weights[bias_at + index],
                rows_at + 2 * strips + index,
                hidden,
                features,
            )
            for i in range(3):
                for j in range(3):
                    sq = (n - r - i) * STRIDE + 1 + c + j
                    net.weights[sq * WIDTH + 8 + 3 * i - j] = p.weights[patch_at + index * 9 + i * 3 + j]
    for i in range(3):
        for h in range(hidden):
            net.raw[i * WIDTH + h] = p.weights[rows_at + h * features + features - 3 + i]
            if whole:
                net.empty_hidden[h] += net.raw[i * WIDTH + h] * p.weights[raw_bias + i]
    for i in range(whole):
        net.empty_whole[i] = p.weights[raw_bias - whole + i]
        for k in range(n * n):
            sq = (n - k // n) * STRIDE + 1 + k % n
            net.whole_weights[sq * WHOLE + i] = p.weights[whole_at + i * n * n + k]
        for h in range(hidden):
            net.whole_rows[i * WIDTH + h] = p.weights[rows_at + h * features + features - 3 - whole + i]
    # An error bound, layer by layer; the slope of a sigmoid is at most a quarter.
    largest = 0.0
    for i in range(rows_at):
        largest = max(largest, abs(p.weights[i]))
    inputs = max(6 * n, 2 * n * n) if whole else 6 * n
    sums = 0.25 * _SUMMED * (inputs + 1) * largest + SIGMOID_ERROR
    total = abs(net.bias) * 1e-15
    for h in range(hidden):
        into = 0.0
        for i in range(features - 3):
            into += abs(p.weights[rows_at + h * features + i])
        raw = abs(net.raw[h]) + abs(net.raw[WIDTH + h]) + abs(net.raw[2 * WIDTH + h])
        most = into + (CELLS + largest) * raw + abs(p.weights[hidden_bias + h])
        net.unsure[h] = into * sums + _SUMMED * most
        total += abs(net.output[h]) * (0.25 * net.unsure[h] + SIGMOID_ERROR)
        net.rounding += _OUTPUT * abs(net.output[h])
    net.rounding += _OUTPUT * abs(net.bias)
    net.error = total
    net.fits = 1 if total < 1e6 else 0
    net.whole = 1 if whole else 0
    net.changes = MOST_CHANGES
    prepare_single(net, n, 3 * largest)


@entry
def prepare_all(params, numbers, nets):
    """Prepare each of `nets`, zeroed, from the parameters with its number. One call, because threads that go in and out
    of Python wait for each other."""
    for i in range(numbers.size):
        prepare(params[numbers[i]], nets[i])


def prepared(params: Any) -> Any:
    """New records for these parameters."""
    nets = new(len(params))
    prepare_all(params, np.arange(len(params)), nets)
    return nets


@inline
def round_all(doubles, singles):
    """Copy numbers to single precision; returns how many of them are too large for sums in it."""
    large = 0
    for i in range(doubles.size):
        singles[i] = doubles[i]
        large += abs(doubles[i]) > LARGEST_SINGLE
    return large


@inline
def prepare_single(net, n, most):
    """Round a prepared network's weights to single precision and bound the errors, layer by layer as in `prepare`; a
    square adds `most` to a sum at most."""
    one = net.single
    net.coarse = (
        round_all(net.weights, one.weights) + round_all(net.rows, one.rows) + round_all(net.raw, one.raw) > 0
    )
    net.coarse |= (
        round_all(net.whole_weights, one.whole_weights) + round_all(net.whole_rows, one.whole_rows) > 0
    )
    one.bias = net.bias
    one.whole = net.whole
    one.changes = k = MOST_CHANGES
    one.used = min(FEATURES, PATCH + (n + 2) * STRIDE)
    # A sum is rounded at every change, and each of its terms; a sigmoid's slope times its argument is below a quarter.
    feature = _SINGLE * (0.25 * (k + 1) * (1 + k * most) + 0.5 * k * most + 1) + SINGLE_SIGMOID_ERROR
    change = min(1.0, 0.25 * most)
    total = 0.0
    for h in range(WIDTH):
        one.output[h] = net.output[h]
        changed = 0.0
        for rank in range(1, n + 1):
            for file in range(1, n + 1):
                v, horizontal, patch = feature_places(rank * STRIDE + file)
                sum_ = 0.0
                for i in range(3):
                    sum_ += abs(net.rows[(v + i) * WIDTH + h]) + abs(net.rows[(horizontal + i) * WIDTH + h])
                    for j in range(3):
                        sum_ += abs(net.rows[(patch + j * STRIDE + i) * WIDTH + h])
                changed = max(changed, sum_)
        whole = 0.0
        for i in range(WHOLE):
            whole += abs(net.whole_rows[i * WIDTH + h])
        raw = max(abs(net.raw[h]), abs(net.raw[WIDTH + h])) + abs(net.raw[2 * WIDTH + h])
        net.reach[h] = k * min(1.0, most / 6) * changed + whole + raw  # no input changes by more than 2
        # Roundings of a hidden unit's sum: to single precision, raw inputs, features of the whole board, changes.
        relative = _SINGLE * (10 + k)
        one.relative[h] = 0.25 * abs(net.output[h]) * relative
        sum_ = (k * changed + whole) * feature + (k * change * changed + whole) * (12 * _SINGLE + relative)
        total += abs(net.output[h]) * (0.25 * sum_ + SINGLE_SIGMOID_ERROR)
    one.error = net.error + total


@inline
def copy_single(net, s):
    """Copy the layers to single precision; the error of values computed there until the next move."""
    one = net.single
    store(one.hidden, 0, single(load(net.hidden, 0)))
    for i in range(0, one.used, WIDTH):
        store(one.sums, i, single(load(net.sums, i)))
        store(one.features, i, single(load(net.features, i)))
    for i in range(WHOLE):
        one.whole_sums[i] = net.whole_sums[i]
    error = one.error
    for h in range(WIDTH):
        raw = (
            s.taken[0] * abs(net.raw[h]) + s.taken[1] * abs(net.raw[WIDTH + h]) + abs(net.raw[2 * WIDTH + h])
        )
        error += one.relative[h] * (abs(net.hidden[h]) + raw)
    return error


@kernel
def error_after(net, s):
    """The error of values after a move from the position of `s` that changes at most `MOST_CHANGES` squares.

    A sigmoid's slope is at most exp(-|x|), and its error, but for rounding, at most that times the error of its power.
    """
    error = net.rounding
    for h in range(WIDTH):
        if net.output[h] != 0:
            x = net.hidden[h] + s.taken[0] * net.raw[h] + s.taken[1] * net.raw[WIDTH + h]
            x = abs(x) - net.reach[h]
            slope = math.exp(-x) if x > 1.4 else 0.25
            error += abs(net.output[h]) * slope * (net.unsure[h] + _POWER_ERROR)
    return min(error, net.error)


@inline
def feature_places(sq):
    """The indices of the first feature of each of a square's triples."""
    rank = (sq * 3121) >> 16  # sq // STRIDE, exact for every square
    return VERTICAL - 1 + sq - rank * STRIDE, HORIZONTAL - 1 + rank, PATCH - 1 - STRIDE + sq


@inline
def change_square(net, sq, amount):
    """Add `amount` to the input of a square."""
    v, h, patch = feature_places(sq)
    sums = triples(net.sums, v, h, patch) + times(load(net.weights, sq * WIDTH), amount)
    features = sigmoid(sums)
    more = features - triples(net.features, v, h, patch)
    store(net.hidden, 0, add_rows(load(net.hidden, 0), more, net.rows, v, h, patch))
    put_triples(net.sums, v, h, patch, sums)
    put_triples(net.features, v, h, patch, features)
    if net.whole:
        for i in range(WHOLE):
            net.whole_sums[i] += amount * net.whole_weights[sq * WHOLE + i]


@inline
def push_change(net, n, sq, amount):
    """As `change_square`, after saving the layers around the square in slot `n` for `pop_change`."""
    v, h, patch = feature_places(sq)
    at = n * 3 * WIDTH
    sums = triples(net.sums, v, h, patch)
    features = triples(net.features, v, h, patch)
    hidden = load(net.hidden, 0)
    store(net.saved, at, sums)
    store(net.saved, at + WIDTH, features)
    store(net.saved, at + 2 * WIDTH, hidden)
    sums = sums + times(load(net.weights, sq * WIDTH), amount)
    put_triples(net.sums, v, h, patch, sums)
    more = sigmoid(sums)
    put_triples(net.features, v, h, patch, more)
    store(net.hidden, 0, add_rows(hidden, more - features, net.rows, v, h, patch))
    if net.whole:
        for i in range(WHOLE):
            net.whole_saved[n * WHOLE + i] = net.whole_sums[i]
            net.whole_sums[i] += amount * net.whole_weights[sq * WHOLE + i]


@inline
def pop_change(net, n, sq):
    """Undo the change at a square saved in slot `n`; changes must be undone in reverse order."""
    v, h, patch = feature_places(sq)
    at = n * 3 * WIDTH
    put_triples(net.sums, v, h, patch, load(net.saved, at))
    put_triples(net.features, v, h, patch, load(net.saved, at + WIDTH))
    store(net.hidden, 0, load(net.saved, at + 2 * WIDTH))
    if net.whole:
        for i in range(WHOLE):
            net.whole_sums[i] = net.whole_saved[n * WHOLE + i]


@inline
def push_move(net, n, s):
    """As `update`, saving from slot `n` on what `pop_move` restores; returns the next free slot."""
    move = int(s.u_move[s.ply])
    amount = piece_input(s.board[move >> TARGET] & PIECE)
    push_change(net, n, move & ORIGIN, -amount)
    push_change(net, n + 1, move >> TARGET, amount)
    n += 2
    for i in range(int(s.u_caught[s.ply]), s.caught_top):
        sq = int(s.caught[i]) & CAPTURED_SQUARE
        push_change(
            net,
            n,
            sq,
            piece_input(s.board[sq] & PIECE) - piece_input((s.caught[i] >> CAPTURED_PIECE) & PIECE),
        )
        n += 1
    return n


@inline
def pop_move(net, n, s):
    """Undo `push_move` with slots from `n` on; call it before undoing the move on `s`."""
    move = int(s.u_move[s.ply])
    first = int(s.u_caught[s.ply])
    for i in range(s.caught_top - 1, first - 1, -1):
        pop_change(net, n + 2 + i - first, int(s.caught[i]) & CAPTURED_SQUARE)
    pop_change(net, n + 1, move >> TARGET)
    pop_change(net, n, move & ORIGIN)


@inline
def hidden_sums(net, s):
    """The sums of the hidden units with the state's raw inputs, but without the features of the whole board."""
    hidden = load(net.hidden, 0) + times(load(net.raw, 0), s.taken[0])
    hidden = hidden + times(load(net.raw, WIDTH), s.taken[1])
    if s.side == 0:
        hidden = hidden + load(net.raw, 2 * WIDTH)
    return hidden


@inline
def add_whole(net, hidden, sq, amount):
    """Add the features of the whole board to the sums of the hidden units, after `amount` is added to a square."""
    for i in range(WHOLE):
        x = net.whole_sums[i] + amount * net.whole_weights[sq * WHOLE + i]
        hidden = hidden + times(load(net.whole_rows, i * WIDTH), 1.0 / (1.0 + math.exp(-x)))
    return hidden


@inline
def output(net, hidden):
    """The value, from the sums of the hidden units with all features."""
    return dot(double(sigmoid(hidden)), load(net.output, 0)) + net.bias


@inline
def output_with(net, hidden, sq, amount):
    """The value if `amount` were added to the input of a square."""
    v, h, patch = feature_places(sq)
    sums = triples(net.sums, v, h, patch) + times(load(net.weights, sq * WIDTH), amount)
    more = sigmoid(sums) - triples(net.features, v, h, patch)
    if net.whole:
        hidden = add_whole(net, hidden, sq, amount)
    return output(net, add_rows(hidden, more, net.rows, v, h, patch))


@inline
def add_to_batch(net, n, hidden, sq, amount, index):
    """Note as number `n` that `amount` may be added to the input of a square, for `score_batch`."""
    v, h, patch = feature_places(sq)
    sums = triples(net.sums, v, h, patch) + times(load(net.weights, sq * WIDTH), amount)
    store(net.changed, n * WIDTH, sigmoid(sums) - triples(net.features, v, h, patch))
    if net.whole:
        hidden = add_whole(net, hidden, sq, amount)
    store(net.before, n * WIDTH, hidden)
    net.target[n] = sq
    net.index[n] = index


@inline
def score_batch(net, count, values, sign):
    """Write the values, times `sign`, of the batch; returns the highest.

    Layer by layer for all of them: a processor can begin with the next while it waits for the last one's results.
    """
    for n in range(count):
        v, h, patch = feature_places(int(net.target[n]))
        at = n * WIDTH
        store(net.before, at, add_rows(load(net.before, at), load(net.changed, at), net.rows, v, h, patch))
    best = -math.inf
    for n in range(count):
        x = sign * output(net, load(net.before, n * WIDTH))
        values[net.index[n]] = x
        best = max(best, x)
    return best


@inline
def piece_input(piece):
    """The input for a piece code."""
    if piece == 0:
        return 0.0
    if piece == KING:
        return -2.0
    return -1.0 if piece & DEFENDING else 1.0


@entry
def refresh(net, s):
    """Compute all layers from scratch for the position of `s`."""
    if not net.fits:
        return
    store(net.hidden, 0, load(net.empty_hidden, 0))
    for i in range(0, FEATURES, WIDTH):
        store(net.sums, i, load(net.empty_sums, i))
        store(net.features, i, load(net.empty_features, i))
    for i in range(WHOLE):
        net.whole_sums[i] = net.empty_whole[i]
    for side in range(2):
        for i in range(s.count[side]):
            sq = int(s.pieces[side, i])
            change_square(net, sq, piece_input(s.board[sq] & PIECE))
    net.moves = 0


@entry
def update(net, s):
    """Update all layers for the last move of `s`."""
    if not net.fits:
        return
    net.moves += 1
    if net.moves == REFRESH_EVERY:
        refresh(net, s)
        return
    move = int(s.u_move[s.ply])
    amount = piece_input(s.board[move >> TARGET] & PIECE)
    change_square(net, move & ORIGIN, -amount)
    change_square(net, move >> TARGET, amount)
    for i in range(int(s.u_caught[s.ply]), s.caught_top):
        sq = int(s.caught[i]) & CAPTURED_SQUARE
        change_square(
            net, sq, piece_input(s.board[sq] & PIECE) - piece_input((s.caught[i] >> CAPTURED_PIECE) & PIECE)
        )
