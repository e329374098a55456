"""A first lesson in a variant of tafl: its rules in sentences, each with a position in which one can try it.

Positions are not written down anywhere. For each rule a pattern is moved and turned over the board until the rules
themselves say that the pattern's move does what the sentence promises; a rule for which no such place is found is told
without one. So a lesson fits every rule set, also one that somebody made up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ... import squares as board
from ...sides import Side
from ..lesson import Goal, Step
from .explain import chapters, present_pieces, sentence
from .switches import ATTACKER_PIECES

if TYPE_CHECKING:
    from .variant import Variant

TRIES: Final = 600
"""Positions that are tried for one pattern."""
RUNS: Final = (2, 3, 1)
"""Squares that the man who moves comes from afar: what is easiest to see first."""
SPARES: Final = ((3, 2, 1), (2, 1, 1), (1, 1, 0), (0, 0, 0))
"""Attackers and defenders who stand by, so that the game is not over for want of men, and the squares that are left
between them and whatever else stands there."""
SIDES: Final = ("attackers", "defenders")

Point = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Scene:
    """A pattern at a place: men by square, and the move."""

    men: dict[Point, str]
    origin: Point
    target: Point


Good = Callable[[Any, Any], bool]
"""Whether a move does what it should: the positions before and after it."""


def lesson(variant: Variant) -> list[Step]:
    """The steps of the lesson, the first of them about the board and the aim."""
    return _Lesson(variant).steps()


class _Lesson:
    def __init__(self, variant: Variant) -> None:
        self._variant = variant
        self._rules = variant.rules
        self._size = variant.size
        letters = present_pieces(variant)
        self._letters = tuple(
            next(letter for letter in letters if (letter in ATTACKER_PIECES) == (side == 0))
            for side in (0, 1)
        )
        self._said = chapters(variant)
        self._told: set[str] = set()
        rules = self._rules
        self._special = {
            _point(square)
            for named in (rules.throne, rules.corners, rules.attacker_camps, rules.defender_camps)
            for square in named
        }
        self._middle = sorted(
            ((file, rank) for file in range(self._size) for rank in range(self._size)), key=self._off_centre
        )

    def steps(self) -> list[Step]:
        said = self._said
        start = self._variant.startpos
        mover = SIDES[Side.of(self._rules.first)]
        self._told.update(said["board"] + said["aim"] + said["moves"])
        found = [
            Step("The board and the aim", (*said["board"], *said["aim"]), start),
            Step("How pieces move", tuple(said["moves"]), start, f"Move one of the {mover}.", "any"),
            *(step for make in (self._captures, self._king_goal, self._king_taken) for step in make()),
        ]
        first = next(iter(self._best_first(start)), "")
        found[1] = replace(found[1], best=first)
        rest = [text for chapter in said.values() for text in chapter if text not in self._told]
        return [*found, Step("The other rules", tuple(rest), start)] if rest else found

    # Patterns

    def _captures(self) -> Iterator[Step]:
        rules = self._rules
        a, d = self._letters
        plain = [text for text in self._said["captures"] if text.startswith("A man is taken")]
        plain += [text for text in self._said["captures"] if text.startswith("Between two enemies")]
        yield from self._step(
            "How men are taken", plain, self._pincers(a, d), 0, "take", "Take the defender on {}."
        )
        yield from self._step(
            "Stepping between two enemies",
            ["Only an enemy's move takes a man: one who steps between two enemies himself is safe."],
            self._stepping(a, d),
            1,
            "go",
            "Move the defender to {}, between two attackers.",
        )
        for switch, squares, what in (
            ("corner_hostile", rules.corners, "the corner"),
            ("throne_hostile_empty", rules.throne, "the empty throne"),
            ("attacker_camp_hostile", rules.attacker_camps, "the camp"),
            ("defender_camp_hostile", rules.defender_camps, "the camp"),
        ):
            for side, victim in ((0, d), (1, a)):
                if squares and victim in getattr(rules, switch):
                    yield from self._step(
                        "Squares that help to capture",
                        [sentence(rules, switch, present_pieces(self._variant))],
                        self._against(map(_point, squares), self._letters[side], victim),
                        side,
                        "take",
                        f"Take the {SIDES[1 - side][:-1]} on {{}} against {what}.",
                    )
                    break
        if rules.edge_hostile and d in rules.edge_hostile:
            yield from self._step(
                "The rim of the board",
                [sentence(rules, "edge_hostile", present_pieces(self._variant))],
                self._against(self._outside(), a, d),
                0,
                "take",
                "Take the defender on {} against the rim.",
            )
        if rules.shieldwall != "off":
            yield from self._step(
                "The shieldwall",
                [sentence(rules, "shieldwall"), sentence(rules, "shieldwall_closer")],
                self._shieldwall(a, d),
                0,
                "take",
                "Take the row of defenders: {}.",
            )
        if rules.king_armed != "no":
            moving = rules.king_armed != "standing"
            yield from self._step(
                "The king captures, too",
                [sentence(rules, "king_armed")],
                self._pincers("K" if moving else d, a, d if moving else "K"),
                1,
                "take",
                "Take the attacker on {} with the king."
                if moving
                else "Take the attacker on {}, between king and man.",
            )

    def _king_goal(self) -> Iterator[Step]:
        rules = self._rules
        goals = (
            [_point(square) for square in rules.corners]
            if rules.escape == "corner"
            else [point for point in self._middle if self._on_edge(point) and point not in self._special]
        )
        if rules.escape != "none":
            yield from self._step(
                "How the king wins",
                [sentence(rules, "escape")],
                self._ways(goals),
                1,
                "win",
                "Bring the king to " + ("a corner." if rules.escape == "corner" else "the edge."),
                "king_escaped",
            )
        if rules.exit_fort:
            yield from self._step(
                "The fort at the edge",
                [sentence(rules, "exit_fort")],
                self._forts(),
                1,
                "win",
                "Close the king's fort.",
                "exit_fort",
            )

    def _king_taken(self) -> Iterator[Step]:
        rules = self._rules
        throne = [_point(square) for square in rules.throne]
        beside = [point for centre in throne for point in _around(centre) if self._on_board(point)]
        taken = "Take the king."
        for title, switch, said, places in (
            (
                "How the king is taken",
                "king_sides",
                "The king is taken",
                [p for p in self._middle if p not in beside],
            ),
            ("The king on his throne", "king_sides_on_throne", "On his throne", throne),
            ("The king beside his throne", "king_sides_beside_throne", "Beside his throne", beside),
        ):
            if places and getattr(rules, switch):
                yield from self._step(
                    title,
                    [text for text in self._said["king"] if text.startswith(said)],
                    self._surrounding(places, getattr(rules, switch), plain=switch == "king_sides"),
                    0,
                    "win",
                    taken,
                    "king_captured",
                )
        if rules.encirclement != "off":
            yield from self._step(
                "Surrounding everybody",
                [sentence(rules, "encirclement")],
                self._rings(),
                0,
                "win",
                "Close the ring around the king and his men.",
                "surrounded",
            )

    def _pincers(self, mover: str, victim: str, partner: str = "") -> Iterator[_Scene]:
        """A man between two others, one of whom arrives."""
        for p in self._middle:
            for u, v in _TURNS:
                far, near = _add(p, u), _add(p, u, -1)
                for run in RUNS:
                    origin = _add(near, v, run)
                    men = {p: victim, far: partner or self._plain(mover), origin: mover}
                    yield _Scene(men, origin, near)

    def _stepping(self, a: str, d: str) -> Iterator[_Scene]:
        for p in self._middle:
            for u, v in _TURNS:
                for run in RUNS:
                    origin = _add(p, v, run)
                    yield _Scene({_add(p, u): a, _add(p, u, -1): a, origin: d}, origin, p)

    def _against(self, places: Iterable[Point], mover: str, victim: str) -> Iterator[_Scene]:
        """A man beside a square that helps, and another who arrives on his far side."""
        for s in places:
            for u, v in _TURNS:
                p, q = _add(s, u), _add(s, u, 2)
                for run in RUNS:
                    origin = _add(q, v, run)
                    yield _Scene({p: victim, origin: mover}, origin, q)

    def _shieldwall(self, a: str, d: str) -> Iterator[_Scene]:
        for u, v in _TURNS:
            for p in self._middle:
                if self._on_board(_add(p, v, -1)):
                    continue  # v leads from the edge inwards
                row = (p, _add(p, u))
                ends = (_add(p, u, -1), _add(p, u, 2))
                men = {**dict.fromkeys(row, d), **{_add(one, v): a for one in row}, ends[0]: a}
                for run in RUNS:
                    origin = _add(ends[1], v, run)
                    yield _Scene({**men, origin: a}, origin, ends[1])

    def _ways(self, goals: Iterable[Point]) -> Iterator[_Scene]:
        for goal in goals:
            for u in _DIRECTIONS:
                for run in (3, 2, 1):
                    origin = _add(goal, u, run)
                    yield _Scene({origin: "K"}, origin, goal)

    def _forts(self) -> Iterator[_Scene]:
        d = self._letters[1]
        for u, v in _TURNS:
            for p in self._middle:
                if self._on_board(_add(p, v, -1)):
                    continue
                wall = [_add(p, u, -1), _add(p, v), _add(_add(p, u), v), _add(p, u, 2)]
                for last in (2, 1):
                    for run in RUNS:
                        origin = _add(wall[last], v, run)
                        men = {p: "K", origin: d, **{point: d for i, point in enumerate(wall) if i != last}}
                        yield _Scene(men, origin, wall[last])

    def _surrounding(self, places: Iterable[Point], sides: int, *, plain: bool) -> Iterator[_Scene]:
        a = self._letters[0]
        for p in places:
            for u, v in _TURNS:
                last = _add(p, u)
                others = [_add(p, u, -1)] if sides == 2 else [_add(p, u, -1), _add(p, v), _add(p, v, -1)]
                if plain and not self._special.isdisjoint({p, last, *others}):
                    continue
                held = [point for point in others if self._on_board(point) and point not in self._special]
                if not plain and len(others) - len(held) > 1:
                    continue
                for run, way in [(run, way) for run in RUNS for way in (u, v, _add((0, 0), v, -1))]:
                    origin = _add(last, way, run)
                    yield _Scene({p: "K", origin: a, **dict.fromkeys(held, a)}, origin, last)

    def _rings(self) -> Iterator[_Scene]:
        a, d = self._letters
        for p in self._middle[: 2 * self._size]:
            corners = [(p[0] + file, p[1] + rank) for file in (-1, 1) for rank in (-1, 1)]
            ring = [*corners, *(_add(p, u, 2) for u in _DIRECTIONS)]
            for u, v in _TURNS:
                last = _add(p, u, 2)
                men = {p: "K", _add(p, v): d, **{point: a for point in ring if point != last}}
                for run in RUNS:
                    origin = _add(last, v, run)
                    yield _Scene({**men, origin: a}, origin, last)

    # Trying them

    def _step(
        self,
        title: str,
        text: Iterable[str],
        scenes: Iterable[_Scene],
        side: int,
        goal: Goal,
        task: str,
        reason: str = "",
    ) -> Iterator[Step]:
        """The step with the first scene that the rules approve of; without a task if they approve of none."""
        text = tuple(text)
        self._told.update(text)
        whole = goal == "win" and reason == "surrounded"
        for scene in islice(filter(self._fits, scenes), TRIES):
            for spares in SPARES[-1:] if whole else SPARES:
                found = self._try(scene, side, goal, reason, spares)
                if found is not None:
                    fen, squares, best = found
                    yield Step(title, text, fen, task.format(" and ".join(squares)), goal, squares, best)
                    return
        yield Step(title, text, self._variant.startpos)

    def _try(
        self, scene: _Scene, side: int, goal: Goal, reason: str, spares: tuple[int, int, int]
    ) -> tuple[str, tuple[str, ...], str] | None:
        men = self._company(scene, spares)
        if men is None:
            return None
        fen = self._fen(men, side)
        before = self._position(fen)
        if before is None:
            return None
        move = board.move(board.square(*scene.origin), board.square(*scene.target))
        try:
            after = before.play(move)
        except ValueError:
            return None
        taken = tuple(board.name(square) for square in after.last_captures)
        outcome = after.outcome
        if goal == "win":
            good = outcome is not None and outcome.winner == side and outcome.reason.value == reason
            squares: tuple[str, ...] = ()
        elif goal == "take":
            victims = {point for point in scene.men if _is_attacker(scene.men[point]) == (side == 1)}
            squares = tuple(sorted(_name(point) for point in victims))
            good = outcome is None and bool(taken) and sorted(taken) == list(squares)
        else:
            squares = (_name(scene.target),)
            good = outcome is None and not taken
        return (before.fen(), squares, board.move_name(move)) if good else None

    def _company(self, scene: _Scene, spares: tuple[int, int, int]) -> dict[Point, str] | None:
        """The scene's men, a king where it has none, and others apart from it all."""
        men = dict(scene.men)
        busy = {*men, *_between(scene.origin, scene.target)}
        *counts, apart = spares
        free = [
            point
            for point in reversed(self._middle)
            if point not in self._special and min(_distance(point, other) for other in busy) > apart
        ]
        if "K" not in men.values():
            throne = [_point(square) for square in self._rules.throne]
            inside = [point for point in reversed(free) if not self._on_edge(point)]
            seat = next((p for p in [*throne, *inside] if min(_distance(p, one) for one in busy) > 1), None)
            if seat is None:
                return None
            men[seat] = "K"
            free = [point for point in free if _distance(point, seat) > apart]
        for letter, count in zip(self._letters, counts, strict=True):
            for _ in range(count):
                place = next((p for p in free if apart == 0 or not self._on_edge(p)), None)
                if place is None:
                    return None
                men[place] = letter
                free = [point for point in free if _distance(point, place) > apart]
        return men

    def _position(self, fen: str) -> Any:
        """The position; None if the game is over in it, or the FEN is not valid."""
        from .. import from_fen

        try:
            position = from_fen(self._variant, fen)
        except ValueError:
            return None
        return position if position.outcome is None else None

    def _best_first(self, fen: str) -> Iterator[str]:
        position = self._position(fen)
        if position is not None:
            yield from (board.move_name(move) for move in position.legal_moves()[:1])

    def _fen(self, men: dict[Point, str], side: int) -> str:
        rows = [
            "".join(men.get((file, rank), ".") for file in range(self._size))
            for rank in reversed(range(self._size))
        ]
        return f"{'/'.join(_packed(row) for row in rows)} {'ad'[side]} 0 1"

    def _fits(self, scene: _Scene) -> bool:
        return scene.target not in scene.men and all(map(self._on_board, (*scene.men, scene.target)))

    def _plain(self, letter: str) -> str:
        """A man of the same side."""
        return self._letters[0 if _is_attacker(letter) else 1]

    def _outside(self) -> Iterator[Point]:
        for p in self._middle:
            for u in _DIRECTIONS:
                if not self._on_board(_add(p, u)):
                    yield _add(p, u)

    def _on_board(self, point: Point) -> bool:
        return all(0 <= value < self._size for value in point)

    def _on_edge(self, point: Point) -> bool:
        return any(value in (0, self._size - 1) for value in point)

    def _off_centre(self, point: Point) -> tuple[int, Point]:
        middle = self._size - 1
        return abs(2 * point[0] - middle) + abs(2 * point[1] - middle), point


_DIRECTIONS: Final = ((1, 0), (-1, 0), (0, 1), (0, -1))
_TURNS: Final = tuple((u, v) for u in _DIRECTIONS for v in _DIRECTIONS if u[0] * v[0] + u[1] * v[1] == 0)
"""A direction and one across it."""


def _point(square: int) -> Point:
    return board.file_of(square), board.rank_of(square)


def _name(point: Point) -> str:
    return board.name(board.square(*point))


def _add(point: Point, way: Point, times: int = 1) -> Point:
    return point[0] + way[0] * times, point[1] + way[1] * times


def _around(point: Point) -> list[Point]:
    return [_add(point, way) for way in _DIRECTIONS]


def _distance(one: Point, other: Point) -> int:
    return max(abs(one[0] - other[0]), abs(one[1] - other[1]))


def _between(origin: Point, target: Point) -> list[Point]:
    steps = _distance(origin, target)
    way = tuple((t > o) - (t < o) for o, t in zip(origin, target, strict=True))
    return [(origin[0] + way[0] * k, origin[1] + way[1] * k) for k in range(steps + 1)]


def _is_attacker(letter: str) -> bool:
    return letter in ATTACKER_PIECES


def _packed(row: str) -> str:
    packed = ""
    for sign in row:
        if sign != ".":
            packed += sign
        elif packed[-1:].isdigit():
            count = len(packed) - len(packed.rstrip("0123456789"))
            packed = packed[:-count] + str(int(packed[-count:]) + 1)
        else:
            packed += "1"
    return packed
