"""Incremental evaluation with the evolved networks of 2007: a move updates only what it changes (kernels).

A square is an input of 15 features: three vertical strips, three horizontal strips, nine patches. A feature is indexed
by its centre (`VERTICAL` + file, `HORIZONTAL` + rank, `PATCH` + square), so that the features of a square are adjacent
triples; those beyond the board have weights of 0. Three layers are kept: the sums of the features, the features (their
sigmoids), and the sums of the hidden units without the three raw inputs.

`hingston2007_2862` has three more features that look at the whole board. Only their sums are kept; they enter the
hidden units when a value is computed.

The result differs from the network's own `value` by less than `error`, which `prepare` computes from the weights. It
covers the error of the vector sigmoid and rounding over `REFRESH_EVERY` moves, after which all sums are computed from
scratch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compile.jit import entry, inline
from ..compile.simd_f64 import (
    SIGMOID_ERROR,
    WIDTH,
    add_rows,
    dot,
    load,
    put_triples,
    sigmoid,
    sigmoids,
    spread,
    store,
    triples,
)
from ..evaluators.networks import hingston2007_2862
from ..evaluators.networks.hingston2007 import HIDDEN, NUMBER, SIZE
from ..games.tafl.codes import CAPTURED_PIECE, CAPTURED_SQUARE, DEFENDING, KING, PIECE
from ..squares import CELLS, ORIGIN, STRIDE, TARGET

MOST_HIDDEN = WIDTH
WHOLE = hingston2007_2862.WHOLE
WITH_WHOLE = hingston2007_2862.NUMBER
"""The architecture with `WHOLE` features of the whole board."""
VERTICAL, HORIZONTAL, PATCH = 8, 32, 56
FEATURES = 512
FILTER_WORDS = 16
CHANGES = 80
"""Most squares that change in one move."""
PLIES = 4
"""Moves that can be pushed and popped at most."""
SAVED = CHANGES * PLIES
REFRESH_EVERY = 128
"""Moves after which the sums are computed from scratch."""

_SUMMED = 2e-12
"""Relative rounding of a sum over `REFRESH_EVERY` moves: at most 64 squares a move, a unit roundoff each, twice."""

PADDING = -(5 + 2 * WHOLE + (CELLS + SAVED) * WHOLE) % 8
"""Makes the size of `NET` a multiple of 64 bytes; five of its fields are single numbers."""
NET = np.dtype(
    [
        (
            "weights",
            "f8",
            (CELLS * WIDTH,),
        ),  # by square: what a man there adds to its features, triple by triple
        ("rows", "f8", (FEATURES * WIDTH,)),  # by feature: what it adds to the hidden units
        (
            "raw",
            "f8",
            (3 * WIDTH,),
        ),  # weights of raw inputs: taken by attackers, by defenders, attackers to move
        ("output", "f8", (WIDTH,)),
        ("empty_hidden", "f8", (WIDTH,)),  # the three layers for an empty board
        ("empty_sums", "f8", (FEATURES,)),
        ("empty_features", "f8", (FEATURES,)),
        ("hidden", "f8", (WIDTH,)),  # the three layers for the current board
        ("sums", "f8", (FEATURES,)),
        ("features", "f8", (FEATURES,)),
        ("saved", "f8", (SAVED * 3 * WIDTH,)),  # layers around changed squares, for `pop_change`
        ("filter", "u8", (FILTER_WORDS,)),  # a Bloom filter of earlier positions
        ("bias", "f8"),
        ("error", "f8"),
        ("moves", "i8"),  # updates since the last refresh
        ("fits", "i8"),  # 1: a network that this module supports; 0: the other fields are unused
        ("whole", "i8"),  # 1: a network with features of the whole board; 0: the fields below are unused
        ("whole_sums", "f8", (WHOLE,)),
        ("empty_whole", "f8", (WHOLE,)),  # the same for an empty board
        ("whole_rows", "f8", (WHOLE * WIDTH,)),  # what they add to the hidden units
        ("whole_weights", "f8", (CELLS * WHOLE,)),  # by square
        ("whole_saved", "f8", (SAVED * WHOLE,)),
        ("_padding", "i8", (PADDING,)),
    ],
    align=True,
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


@entry
def prepare(p, net):
    """Fill a zeroed record from the parameters, if they are of this architecture and small enough."""
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
        total += abs(net.output[h]) * (0.25 * (into * sums + _SUMMED * most) + SIGMOID_ERROR)
    net.error = total
    net.fits = 1 if total < 1e6 else 0
    net.whole = 1 if whole else 0


@inline
def feature_places(sq):
    """The indices of the first feature of each of a square's triples."""
    rank = (sq * 3121) >> 16  # sq // STRIDE, exact for every square
    return VERTICAL - 1 + sq - rank * STRIDE, HORIZONTAL - 1 + rank, PATCH - 1 - STRIDE + sq


@inline
def change_square(net, sq, amount):
    """Add `amount` to the input of a square."""
    v, h, patch = feature_places(sq)
    sums = triples(net.sums, v, h, patch) + spread(amount) * load(net.weights, sq * WIDTH)
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
    sums = sums + spread(amount) * load(net.weights, sq * WIDTH)
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
    hidden = load(net.hidden, 0) + spread(s.taken[0]) * load(net.raw, 0)
    hidden = hidden + spread(s.taken[1]) * load(net.raw, WIDTH)
    if s.side == 0:
        hidden = hidden + load(net.raw, 2 * WIDTH)
    return hidden


@inline
def add_whole(net, hidden, sq, amount):
    """Add the features of the whole board to the sums of the hidden units, after `amount` is added to a square."""
    for i in range(WHOLE):
        x = net.whole_sums[i] + amount * net.whole_weights[sq * WHOLE + i]
        hidden = hidden + spread(1.0 / (1.0 + math.exp(-x))) * load(net.whole_rows, i * WIDTH)
    return hidden


@inline
def output(net, hidden):
    """The value, from the sums of the hidden units with all features."""
    return dot(sigmoid(hidden), load(net.output, 0)) + net.bias


@inline
def output_with(net, hidden, sq, amount):
    """The value if `amount` were added to the input of a square."""
    v, h, patch = feature_places(sq)
    sums = triples(net.sums, v, h, patch) + spread(amount) * load(net.weights, sq * WIDTH)
    more = sigmoid(sums) - triples(net.features, v, h, patch)
    if net.whole:
        hidden = add_whole(net, hidden, sq, amount)
    return output(net, add_rows(hidden, more, net.rows, v, h, patch))


@inline
def outputs_with(net, hidden, sq, other, amount):
    """The two values if `amount` were added at one square or at the other; faster than two calls of `output_with`."""
    v, h, patch = feature_places(sq)
    v2, h2, patch2 = feature_places(other)
    weight = spread(amount)
    sums = triples(net.sums, v, h, patch) + weight * load(net.weights, sq * WIDTH)
    sums2 = triples(net.sums, v2, h2, patch2) + weight * load(net.weights, other * WIDTH)
    features, features2 = sigmoids(sums, sums2)
    more = features - triples(net.features, v, h, patch)
    more2 = features2 - triples(net.features, v2, h2, patch2)
    hidden2 = hidden
    if net.whole:
        hidden2 = add_whole(net, hidden, other, amount)
        hidden = add_whole(net, hidden, sq, amount)
    units, units2 = sigmoids(
        add_rows(hidden, more, net.rows, v, h, patch), add_rows(hidden2, more2, net.rows, v2, h2, patch2)
    )
    weights = load(net.output, 0)
    return dot(units, weights) + net.bias, dot(units2, weights) + net.bias


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
