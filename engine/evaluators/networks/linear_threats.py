"""A weighted sum: the terms of `linear`, threats that depend on the side to move, and where men stand (kernel).

Source: ours. A plain minimax player scores positions in the middle of exchanges. This evaluator therefore counts what
is hanging: men that could be taken with the next move, whether the king could escape or be taken, and whether that
can still be prevented.

A man counts as hanging if an enemy that captures by moving can slide to an empty square beside him and the square on
his other side is hostile to him; the king, if an attacker can slide to his last open side. Jumps, lines, rows and
berserk turns are ignored: the counts are heuristics.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from ...compile.jit import inline, kernel
from ...games.tafl.codes import KING, LETTERS, PIECE, SIDE, WALL
from ...games.tafl.make import helps_take
from ...games.tafl.movegen import DIRECTIONS, RIGHT, UP, can_reach
from ...games.tafl.noisy import king_pressed
from ...squares import STRIDE
from ..king_features import corner_guards, extract_king_features, runs_to_goal
from . import linear
from .linear import START_ATTACKERS, START_DEFENDERS, START_DISTANCE

NUMBER = 13
SOURCE = "the terms of `linear`, threats by who is to move, and where men stand"
GAMES = ("tafl",)
SCALE = 1.0
OUTPUT = "value"
OPTIONS: Mapping[str, int] = {}

FEATURES = {
    "attacker": 1,  # attackers on the board, less those at the start
    "defender": 1,  # defenders at the start, less those on the board
    "road": 4,  # goals in reach: attackers to move, one blockable, one not, several; defenders to move
    "fork": 2,  # the king has a move to a square with goals on both sides: attackers, defenders to move
    "lane": 2,  # ways to reach a goal in two moves, at most 8: attackers, defenders to move
    "distance": 1,  # from the king to the nearest goal, minus that at the start
    "room": 1,  # squares that the king can go to, at most 12
    "pressure": 4,  # 1 to 4 neighbour squares of the king hostile to him
    "guard": 1,  # attackers on squares that block a corner
    "tempo": 1,  # 1 if the attackers are to move, else -1
    "menace": 3,  # squares from which the king can be taken: attackers to move; defenders to move, one, several
    "hunt": 4,  # defenders that can be taken: attackers to move, any, how many more; defenders to move, the same
    "raid": 4,  # attackers that can be taken: defenders to move, any, how many more; attackers to move, the same
    "far": 2,  # the sum of the distances to the nearest goal: attackers, defenders
    "near": 2,  # the sum of max(0, 5 - distance to the king): attackers, defenders
    "free": 2,  # empty squares beside men: attackers, defenders
    "edge": 2,  # men on the edge: attackers, defenders
}
"""Names of the features, with the number of weights of each."""
COUNT = sum(FEATURES.values())
_AT = dict(zip(FEATURES, accumulate(FEATURES.values(), initial=0), strict=False))
ATTACKER, DEFENDER, ROAD, FORK = (_AT[name] for name in ("attacker", "defender", "road", "fork"))
LANE, DISTANCE, ROOM = (_AT[name] for name in ("lane", "distance", "room"))
PRESSURE, GUARD, TEMPO, MENACE = (_AT[name] for name in ("pressure", "guard", "tempo", "menace"))
HUNT, RAID, FAR, NEAR = (_AT[name] for name in ("hunt", "raid", "far", "near"))
FREE, EDGE = _AT["free"], _AT["edge"]

ALL = 0xFF
"""The set of all attacking pieces."""
TAKERS = 31
"""Attacking pieces that can capture a king: all but guards."""


def shapes(variant: Any, options: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays by name, in the order of the weights."""
    return {name: (weights,) for name, weights in FEATURES.items()}


def layout(variant: Any, options: Mapping[str, int]) -> tuple[int, ...]:
    """The sizes that the kernels need: up to 16 integers for `p.shape`."""
    return linear.layout(variant, options)


def default(variant: Any) -> dict[str, Any]:
    """Initial weights: those of `linear` where it has the feature, rough hand-set ones for threats, else 0."""
    import numpy as np

    old = linear.default(variant)
    new: dict[str, Any] = {name: np.zeros(weights) for name, weights in FEATURES.items()}
    for name in ("attacker", "defender", "distance", "room", "guard", "tempo"):
        new[name] = old[name]
    road, prey = float(old["road"][1]), np.array([0.8, 0.1, 0.15, 0.4])
    new["road"] = np.array([road, -1500, -1500, -3000])
    new["fork"] = np.array([road / 2, -600])
    new["lane"] = np.repeat(old["lane"], 2)
    new["pressure"] = old["pressure"][1:]
    new["menace"] = np.array([4000.0, 60, 300])
    new["hunt"], new["raid"] = old["defender"] * prey, -old["attacker"] * prey
    return new


def naive(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> float:
    """The value for side `a` in float64: a slow, obvious reference for the kernel."""
    seen = _Naive(variant, position).features()
    return sum(
        float(weight) * number
        for name in FEATURES
        for weight, number in zip(arrays[name], seen[name], strict=True)
    )


class _Naive:
    """What `naive` counts in a position, from every slide of every man."""

    def __init__(self, variant: Any, position: Any) -> None:
        self.variant = variant
        self.counted = linear.counted(variant, position)
        self.state = position.new_record()[0]
        self.cells = [int(cell) for cell in self.state["board"]]
        self.men = dict(position.pieces())
        self.waiting = int(position.side == 1)
        self.king = next(sq for sq, letter in self.men.items() if letter == "K")

    def allows(self, name: str, at: int, letter: str) -> bool:
        """Whether entry `at` of the rules' table `name` has the piece's bit set."""
        return letter in linear.letters_of(self.state[name][at])

    def slides(self, start: int, step: int, entering: bool = True) -> list[int]:
        """The squares where the piece on `start` may stop in one direction."""
        letter, found = self.men[start], []
        reach = int(self.state["reach"][LETTERS.index(letter)])
        for sq in range(start + step, start + step * (reach + 1), step):
            cell, region = self.cells[sq], self.state["region"]
            if cell & PIECE or (
                cell and entering and region[sq] != region[start] and not self.allows("enter", sq, letter)
            ):
                break
            if cell == 0 or self.allows("stop", sq, letter):
                found.append(sq)
            if cell and not self.allows("pass_", sq, letter):
                break
        return found

    def walks(self, side: int) -> list[tuple[int, int]]:
        return [
            (sq, to)
            for sq, letter in self.men.items()
            if letter.isupper() == bool(side)
            for step in DIRECTIONS
            for to in self.slides(sq, step)
        ]

    def count_captures(self, side: int) -> int:
        """How many men the side could take with one move."""
        taken = set()
        for start, to in self.walks(side):
            if self.men[start] not in linear.letters_of(self.state["active_captors"]):
                continue
            for step in DIRECTIONS:
                letter = self.men.get(to + step, "")
                if (
                    letter
                    and letter in linear.letters_of(self.state["victims"][side])
                    and to + 2 * step != start
                    and self.allows("hostile", self.cells[to + 2 * step], letter)
                ):
                    taken.add(to + step)
        return len(taken)

    def menaces(self) -> int:
        """The number of squares beside the king from which he could be taken."""
        found = set()
        for start, to in self.walks(0):
            if to - self.king in DIRECTIONS and self.men[start] != "g" and self.pressed(start, to):
                found.add(to)
        return len(found)

    def pressed(self, start: int, to: int) -> bool:
        sides = int(self.state["king_sides"][self.king])
        others = [self.king + step for step in DIRECTIONS if self.king + step != to]
        if sides == 2:
            others = [2 * self.king - to]
        on_edge = int(self.state["king_on_edge"])
        edge = sides != 2 and (on_edge == 1 or (on_edge == 2 and int(self.state["count"][1]) == 1))
        return sides > 0 and all(
            sq != start
            and (self.allows("hostile", self.cells[sq], "K") or (edge and self.cells[sq] & PIECE == WALL))
            for sq in others
        )

    def roads(self) -> list[list[int]]:
        """The squares of each slide that takes the king to a goal in one move."""
        reach = int(self.state["reach"][KING])
        found = []
        for step in DIRECTIONS:
            way = linear.king_way(self.state, self.king, step, reach)
            if way and self.state["goal"][way[-1]]:
                found.append(list(range(self.king + step, way[-1] + step, step)))
        return found

    def forks(self) -> bool:
        """Whether the king has a move to a square with goals on both sides."""
        reach = int(self.state["reach"][KING])
        for step in DIRECTIONS:
            for sq in linear.king_way(self.state, self.king, step, reach):
                if self.state["goal"][sq] or (int(self.state["escape"]) and self.state["edge"][sq]):
                    continue
                ways = [
                    linear.king_way(self.state, sq, side) for side in DIRECTIONS if abs(side) != abs(step)
                ]
                if all(way and self.state["goal"][way[-1]] for way in ways):
                    return True
        return False

    def features(self) -> dict[str, list[float]]:
        from ...games.tafl.tables import goal_distance

        waiting, counted = self.waiting, self.counted
        roads, menaces = self.roads(), self.menaces()
        shut = any(to in road for road in roads for _, to in self.walks(0))
        hunted, raided = self.count_captures(0), self.count_captures(1)
        men = [
            [sq for sq, letter in self.men.items() if letter != "K" and letter.isupper() == bool(side)]
            for side in (0, 1)
        ]
        x, y = self.king % STRIDE, self.king // STRIDE

        def by_mover(waiting: bool, number: int) -> list[int]:
            pair = [min(number, 1), max(number - 1, 0)]
            return [0, 0, *pair] if waiting else [*pair, 0, 0]

        return {
            **{
                name: [counted[name]]
                for name in ("attacker", "defender", "distance", "room", "guard", "tempo")
            },
            "road": [
                int(not waiting and len(roads) == 1 and shut),
                int(not waiting and len(roads) == 1 and not shut),
                int(not waiting and len(roads) > 1),
                int(waiting and len(roads) > 0),
            ],
            "fork": [int(self.forks() and waiting == side) for side in (0, 1)],
            "lane": [counted["lane"] * (waiting == side) for side in (0, 1)],
            "pressure": [int(counted["pressure"] == number) for number in (1, 2, 3, 4)],
            "menace": [
                int(not waiting and menaces > 0),
                int(waiting and menaces == 1),
                int(waiting and menaces > 1),
            ],
            "hunt": by_mover(bool(waiting), hunted),
            "raid": by_mover(not waiting, raided),
            "far": [sum(goal_distance(self.variant.rules, sq) for sq in side) for side in men],
            "near": [
                sum(max(0, 5 - abs(sq % STRIDE - x) - abs(sq // STRIDE - y)) for sq in side) for side in men
            ],
            "free": [
                sum(self.cells[sq + step] & PIECE == 0 for sq in side for step in DIRECTIONS) for side in men
            ],
            "edge": [sum(int(self.state["edge"][sq]) for sq in side) for side in men],
        }


def terms(options: Mapping[str, int], params: Any, state: Any) -> list[tuple[str, float]]:
    """What each feature adds to the value; reads the features that the kernel has just left in `inputs`."""
    return linear.parts(FEATURES, params)


@kernel
def can_be_reached(s, e, side, mask):
    """Whether a piece of `side` in `mask` can slide to the empty square `e`."""
    special = s.board[e] != 0
    for d in DIRECTIONS:
        o = e + d
        c = s.board[o]
        clear = not special
        while c & PIECE == 0:
            if c:
                clear = False
            o += d
            c = s.board[o]
        piece = c & PIECE
        if (
            piece != WALL
            and piece >> SIDE == side
            and (mask >> piece) & 1
            and ((clear and not s.limited) or can_reach(s, o, e))
        ):
            return True
    return False


@kernel
def can_shut(s, king):
    """Whether an attacker can move onto a line by which the king could escape."""
    bit = 1 << KING
    for d in DIRECTIONS:
        t = king + d
        reach = s.reach[KING]
        while reach and s.board[t] & PIECE == 0:
            c = s.board[t]
            if s.goal[t]:
                if c == 0 or s.stop[t] & bit:
                    while t != king:
                        if can_be_reached(s, t, 0, ALL):
                            return True
                        t -= d
                break
            if c and not s.pass_[t] & bit:
                break
            t += d
            reach -= 1
    return False


@kernel
def forks(s, king):
    """Whether the king has a move to a square with goals on both sides."""
    bit = 1 << KING
    for d in DIRECTIONS:
        across = UP + RIGHT - abs(d)
        t = king + d
        reach = s.reach[KING]
        while reach and s.board[t] & PIECE == 0 and not s.goal[t]:
            c = s.board[t]
            if (
                (c == 0 or s.stop[t] & bit)
                and (not s.edge[t] or s.escape == 0)
                and runs_to_goal(s, t, across)
                and runs_to_goal(s, t, -across)
            ):
                return True
            if c and not s.pass_[t] & bit:
                break
            t += d
            reach -= 1
    return False


@kernel
def menaces(s, king):
    """The number of squares beside the king from which he could be taken, if the attackers were to move."""
    found = 0
    for d in DIRECTIONS:
        t = king + d
        if s.board[t] & PIECE == 0 and king_pressed(s, t, 0) and can_be_reached(s, t, 0, TAKERS):
            found += 1
    return found


@inline
def falls(s, v, q, hunter):
    """Whether the man with code `q` on `v` could be taken, if the side `hunter` were to move."""
    for d in DIRECTIONS:
        e = v + d
        if (
            s.board[e] & PIECE == 0
            and helps_take(s, v - d, q)
            and can_be_reached(s, e, hunter, s.active_captors)
        ):
            return True
    return False


@kernel
def men_features(p, s, side, king):
    """Write the features of a side's men to `p.inputs`; returns how many of them could be taken."""
    victims = s.victims[1 - side]
    prey = 0
    far = 0
    near = 0
    free = 0
    edge = 0
    for i in range(s.count[side]):
        sq = int(s.pieces[side, i])
        q = s.board[sq] & PIECE
        if q == KING:
            continue
        far += s.goal_distance[sq]
        near += max(0, 5 - abs(sq % STRIDE - king % STRIDE) - abs(sq // STRIDE - king // STRIDE))
        edge += s.edge[sq]
        for d in DIRECTIONS:
            if s.board[sq + d] & PIECE == 0:
                free += 1
        if (victims >> q) & 1 and falls(s, sq, q, 1 - side):
            prey += 1
    x = p.inputs
    x[FAR + side] = far
    x[NEAR + side] = near
    x[FREE + side] = free
    x[EDGE + side] = edge
    return prey


@kernel
def value(p, s):
    """The value for the attackers, in the unit of the weights (centipawns); leaves the features in `p.inputs`."""
    x = p.inputs
    for i in range(COUNT):
        x[i] = 0.0
    waiting = s.side
    x[ATTACKER] = s.count[0] - p["shape"][START_ATTACKERS]
    x[DEFENDER] = p["shape"][START_DEFENDERS] - (s.count[1] - 1)
    x[TEMPO] = 1.0 if waiting == 0 else -1.0
    king = s.king
    if king:
        escapes_in_1, escapes_in_2, room, pressure = extract_king_features(s, king)
        if escapes_in_1:
            if waiting:
                x[ROAD + 3] = 1.0
            elif escapes_in_1 > 1:
                x[ROAD + 2] = 1.0
            else:
                x[ROAD + (0 if can_shut(s, king) else 1)] = 1.0
        if escapes_in_2 > 1 and forks(s, king):
            x[FORK + waiting] = 1.0
        x[LANE + waiting] = escapes_in_2
        x[DISTANCE] = s.goal_distance[king] - p["shape"][START_DISTANCE]
        x[ROOM] = room
        if pressure:
            x[PRESSURE + pressure - 1] = 1.0
        x[GUARD] = corner_guards(s)
        menaced = menaces(s, king)
        if menaced:
            if waiting:
                x[MENACE + min(menaced, 2)] = 1.0
            else:
                x[MENACE] = 1.0
        prey = men_features(p, s, 1, king)
        if prey:
            x[HUNT + 2 * waiting] = 1.0
            x[HUNT + 2 * waiting + 1] = prey - 1
        prey = men_features(p, s, 0, king)
        if prey:
            x[RAID + 2 - 2 * waiting] = 1.0
            x[RAID + 3 - 2 * waiting] = prey - 1
    total = 0.0
    for i in range(COUNT):
        total += p.weights[i] * x[i]
    return total
