"""Seven features of each side, with weights of its own for each side (kernels).

Source: "Tablut Game AI with Temporal Difference Learning". d is the Manhattan distance; men are all pieces but the
king. The reading `text` is what the paper prints:

    king       the sum over the side's men of 1/d to the king
    opponent   the sum over its men of 1/d to the nearest enemy
    corner     the sum over its pieces of 1/d to the nearest corner of the board
    number     its pieces, as a fraction of those at the start
    capture    1 if it has taken something since the root of the search
    escape     1 if the king sees a corner in a clear line; 0 for the attackers
    freedom    its moves, divided by the number of squares

The reading `coded` is what the author's program computes:

    opponent   1 over the sum of d to all enemies, summed over its men; those taken since the root
    opponent   the sum over its men of 1 over the sum of d to all enemies; those taken since the root
    number     its pieces
    capture    for the defenders, the pieces with an enemy beside them and a friend behind him; else 0
    escape     0
    freedom    for the attackers, moves divided by squares, rounded down; else 0

The program leaves enemies where they stood at the root. One ply ahead that makes no difference; further ahead, that
program's search is not meaningful.

The value is the attackers' sum minus the defenders'. The paper's players maximise their own sum alone: with `own` the
other side's sum is left out. Outside a search the value is the difference, and "since the root" means since the state
was set up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...compile.jit import inline, kernel
from ...games.tafl.codes import CAPTURED_PIECE, CAPTURED_SQUARE, KING, PIECE, SIDE, WALL
from ...games.tafl.movegen import DIRECTIONS, piece_moves
from ...games.tafl.state import SCRATCH_PIECE
from ...squares import STRIDE

NUMBER = 6
SOURCE = '"Tablut Game AI with Temporal Difference Learning": the evaluation function by the text'
GAMES = ("tafl",)
SCALE = 100.0
OUTPUT = "value"
ATTACKERS, DEFENDERS, READING, SIDES = range(4)
"""Indices of the layout's numbers: the men of each side at the start, and the options of these names."""
OPTIONS: Mapping[str, int] = {"reading": 0, "sides": 0}
WORDS: Mapping[str, tuple[str, int]] = {
    "text": ("reading", 0),
    "coded": ("reading", 1),
    "both": ("sides", 0),
    "own": ("sides", 1),
}

FEATURES = ("king", "opponent", "corner", "number", "capture", "escape", "freedom")
TUNED = {"attackers": (5, 2, 1, 1, 3, 1, 1), "defenders": (5, 1, 8, 3, 1, 5, 2)}
"""The paper's tuned weights."""


def shapes(variant: Any, options: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays by name, in the order of the weights."""
    return {"attackers": (len(FEATURES),), "defenders": (len(FEATURES),)}


def layout(variant: Any, options: Mapping[str, int]) -> tuple[int, ...]:
    """The sizes that the kernels need: up to 16 integers for `p.shape`."""
    return (variant.attackers, variant.defenders + 1, options["reading"], options["sides"])


def naive(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> float:
    """The value for side `a`, with the position as the root: nothing has been captured since."""
    total = 0.0
    for side, (name, sign) in enumerate((("attackers", 1), ("defenders", -1))):
        seen = _naive_features(variant, position, side, coded=bool(options["reading"]))
        total += sign * sum(float(w) * x for w, x in zip(arrays[name], seen, strict=True))
    return total


def _naive_features(variant: Any, position: Any, side: int, *, coded: bool = False) -> list[float]:
    from dataclasses import replace

    from ...games.tafl.position import Position
    from ...sides import Side
    from ...squares import file_of, rank_of

    last = variant.size - 1
    places = {(file_of(sq), rank_of(sq)): letter for sq, letter in position.pieces()}
    own = [at for at, letter in places.items() if letter.isupper() == bool(side)]
    enemies = [at for at in places if at not in own]
    king = next(at for at, letter in places.items() if letter == "K")
    corners = [(x, y) for x in (0, last) for y in (0, last)]

    def near(at: tuple[int, int], goals: list[tuple[int, int]]) -> float:
        return 1 / max(1, min(abs(at[0] - x) + abs(at[1] - y) for x, y in goals))

    def clear(at: tuple[int, int], goal: tuple[int, int]) -> bool:
        between = [
            (x, y)
            for x in range(min(at[0], goal[0]), max(at[0], goal[0]) + 1)
            for y in range(min(at[1], goal[1]), max(at[1], goal[1]) + 1)
        ]
        return (at[0] == goal[0] or at[1] == goal[1]) and not any(p in places for p in between if p != at)

    men = [at for at in own if at != king]
    moved = replace(position.unlimited().setup, side=Side(side), berserk=None)
    free = variant.with_switches(
        repetition="ignore", draw_fort="no", move_limit=0, quiet_limit=0, material_draw="none"
    )
    moves = len(Position.from_setup(free, moved).legal_moves())
    to_king, to_corner = sum(near(at, [king]) for at in men), sum(near(at, corners) for at in own)
    if coded:

        def flanks(at: tuple[int, int]) -> bool:
            around = ((0, 1), (0, -1), (1, 0), (-1, 0))
            return any(
                (at[0] + x, at[1] + y) in enemies and (at[0] + 2 * x, at[1] + 2 * y) in own for x, y in around
            )

        apart = [sum(abs(at[0] - x) + abs(at[1] - y) for x, y in enemies) for at in men]
        return [
            to_king,
            sum(1 / far for far in apart if far),
            to_corner,
            float(len(own)),
            float(sum(map(flanks, own)) if side else 0),
            0.0,
            float(0 if side else moves // variant.size**2),
        ]
    return [
        to_king,
        sum(near(at, enemies) for at in men) if enemies else 0.0,
        to_corner,
        len(own) / (variant.attackers, variant.defenders + 1)[side],
        0.0,
        float(side == 1 and any(clear(king, corner) for corner in corners)),
        moves / variant.size**2,
    ]


def terms(options: Mapping[str, int], params: Any, state: Any) -> list[tuple[str, float]]:
    """What each feature of each side adds to the value; reads what the kernel has just left in `inputs`."""
    number = len(FEATURES)
    parts = params["weights"][: 2 * number] * params["inputs"][: 2 * number]
    names = [f"{name}_{side}" for side in "ad" for name in FEATURES]
    return [
        (name, float(x if i < number else -x)) for i, (name, x) in enumerate(zip(names, parts, strict=True))
    ]


@inline
def distance(sq, other):
    """The Manhattan distance between two squares, at least 1."""
    return max(1, abs(sq % STRIDE - other % STRIDE) + abs(sq // STRIDE - other // STRIDE))


@inline
def sees_corner(s, king):
    """Whether the king is in line with a corner of the board, with nothing between them."""
    last = s.width - 1
    for d in DIRECTIONS:
        t = king + d
        while s.board[t] & PIECE == 0:
            file = t % STRIDE - 1
            rank = t // STRIDE - 1
            if (file == 0 or file == last) and (rank == 0 or rank == last):
                return True
            t += d
    return False


@inline
def flanks(s, sq, side):
    """Whether a piece of `side` has an enemy beside it with another piece of `side` behind him."""
    for d in DIRECTIONS:
        enemy = int(s.board[sq + d]) & PIECE
        if enemy and enemy != WALL and enemy >> SIDE != side:
            friend = int(s.board[sq + 2 * d]) & PIECE
            if friend and friend != WALL and friend >> SIDE == side:
                return True
    return False


@inline
def taken_since(p, s, i, side):
    """Whether entry `i` of the stack of captures is a man that `side` took since the root."""
    return i >= p.root_caught and (int(s.caught[i]) >> CAPTURED_PIECE & PIECE) >> SIDE != side


@kernel
def side_features(p, s, side, at):
    """Write a side's features to `p.inputs`, from index `at`."""
    king = int(s.king)
    last = s.width - 1
    coded = p["shape"][READING] == 1
    to_king = 0.0
    to_enemy = 0.0
    to_corner = 0.0
    flanking = 0
    moves = 0
    for i in range(s.count[side]):
        sq = int(s.pieces[side, i])
        if s.board[sq] & PIECE != KING:
            if king:
                to_king += 1.0 / distance(sq, king)
            nearest = 64
            apart = 0
            for j in range(s.count[1 - side]):
                d = distance(sq, int(s.pieces[1 - side, j]))
                nearest = min(nearest, d)
                apart += d
            if coded:
                for j in range(s.caught_top):
                    if taken_since(p, s, j, side):
                        apart += distance(sq, int(s.caught[j]) & CAPTURED_SQUARE)
                if apart:
                    to_enemy += 1.0 / apart
            elif nearest < 64:
                to_enemy += 1.0 / nearest
        file = sq % STRIDE - 1
        rank = sq // STRIDE - 1
        to_corner += 1.0 / max(1, min(file, last - file) + min(rank, last - rank))
        moves += piece_moves(s, sq, SCRATCH_PIECE) - SCRATCH_PIECE
        if coded and flanks(s, sq, side):
            flanking += 1
    captured = 0.0
    for i in range(s.caught_top):
        if taken_since(p, s, i, side):
            captured = 1.0
    p.inputs[at] = to_king
    p.inputs[at + 1] = to_enemy
    p.inputs[at + 2] = to_corner
    if coded:
        p.inputs[at + 3] = s.count[side]
        p.inputs[at + 4] = flanking if side else 0
        p.inputs[at + 5] = 0.0
        p.inputs[at + 6] = 0 if side else moves // (s.width * s.width)
    else:
        p.inputs[at + 3] = s.count[side] / p["shape"][ATTACKERS + side]
        p.inputs[at + 4] = captured
        p.inputs[at + 5] = 1.0 if side == 1 and king and sees_corner(s, king) else 0.0
        p.inputs[at + 6] = moves / (s.width * s.width)


@kernel
def value(p, s):
    """The value for the attackers: their weighted sum minus the defenders'; leaves the features in `p.inputs`."""
    total = 0.0
    for side in range(2):
        at = 7 * side
        if p["shape"][SIDES] and p.root_side == 2 - side:
            for i in range(at, at + 7):
                p.inputs[i] = 0.0
        else:
            side_features(p, s, side, at)
        for i in range(at, at + 7):
            total += p.weights[i] * p.inputs[i] * (1 - 2 * side)
    return total


@kernel
def slopes(p, s, g):
    """Write the slopes of the value by all weights to `g.slope`; must run right after `value`."""
    for i in range(7):
        g.slope[i] = p.inputs[i]
        g.slope[7 + i] = -p.inputs[7 + i]
