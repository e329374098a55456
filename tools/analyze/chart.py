"""The chart of a game as a picture: the first side's chances ply by ply, mistakes marked, proven ends drawn out.

Mistakes differ by form, not only by colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from hnefi.protocol.hosts.assessment.values import MoveAssessment, TurningPoint, Verdict, called

from ..common.svg_chart import Curve, Panel, Scale, Sheet, Word, box, expect_drawable, width_of
from .values import Analysed, end_text

ROWS: Final = 3
"""Rows of notes above each other."""
NOTE: Final = 11
"""Size of a note."""
LEFT, RIGHT, HEIGHT = 72, 40, 330
DARK, LIGHT, LINE = "#3d3a44", "#f4ead6", "#b4531f"
STYLES: Final[dict[str, tuple[str, str, float]]] = {
    Verdict.INACCURACY: ("circle", "#ffffff", 4.5),
    Verdict.MISTAKE: ("down", "#f0a030", 5.5),
    Verdict.BLUNDER: ("cross", "#c8281e", 6),
    TurningPoint.MISSED: ("diamond", "#5078c8", 5.5),
    TurningPoint.THROWN: ("star", "#c8281e", 6.5),
    TurningPoint.ALLOWED: ("plus", "#c8281e", 6),
}
"""Form, colour and size of each kind of mark."""


def draw(game: Analysed, path: Path, engine: str, limits: str) -> None:
    """Draw the chart into a file, whole or not at all; the same analysis gives the same file. ChartError."""
    expect_drawable(path)
    sheet, height = picture(game, engine, limits)
    sheet.write(path, height)


def picture(game: Analysed, engine: str, limits: str) -> tuple[Sheet, float]:
    """The chart and its height."""
    plies = max(1, len(game.looks) - 1)
    width = width_of_chart(plies)
    sheet = Sheet(width, _heading(game, engine, limits))
    panel = Panel(
        sheet,
        LEFT,
        sheet.top + 14,
        width - LEFT - RIGHT,
        HEIGHT,
        Scale(0, plies),
        Scale(0, 100),
    )
    _ground(panel, game)
    _curve(panel, game)
    panel.level(50, "#8a8590", 1.0, "4 3")
    panel.frame()
    below = _axes(sheet, panel, game)
    _proven(sheet, panel, game)
    return sheet, sheet.legend_below(_marks(panel, game), below, LEFT)


def _heading(game: Analysed, engine: str, limits: str) -> tuple[str, str]:
    walk, record = game.walk, game.walk.record
    names = [name or side for side, name in zip(walk.sides, record.players, strict=True)]
    accuracy = [
        f"{side} {number:.1f} %"
        for side, number in zip(walk.sides, game.accuracy, strict=True)
        if number is not None
    ]
    said = [*(["accuracy: " + ", ".join(accuracy)] if accuracy else []), engine, limits]
    first = f"{names[0]} – {names[1]} · {walk.variant.name} · {end_text(record, walk.sides)}"
    return first, " · ".join(said)


def _ground(panel: Panel, game: Analysed) -> None:
    """The field of each side, and where nothing is known."""
    plies = max(1, len(game.looks) - 1)
    panel.ground(LIGHT)
    for ply, look in enumerate(game.looks):
        if look is None or look.chance(0) is None:
            panel.unknown(max(0.0, ply - 0.5), min(float(plies), ply + 0.5))


def _curve(panel: Panel, game: Analysed) -> None:
    """The chances of the first side: the area below the curve."""
    for run in _runs([None if look is None else look.chance(0) for look in game.looks]):
        points = [(float(ply), 100 * chance) for ply, chance in run]
        if len(points) == 1:
            panel.points(points, Curve("", LINE, "circle", size=3))
            continue
        panel.area(points, 0, DARK)
        panel.line(points, LINE)


def _runs(chances: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """Stretches of plies of which something is known."""
    runs: list[list[tuple[int, float]]] = [[]]
    for ply, chance in enumerate(chances):
        if chance is None:
            runs.append([])
        else:
            runs[-1].append((ply, chance))
    return [run for run in runs if run]


def _proven(sheet: Sheet, panel: Panel, game: Analysed) -> None:
    """A bar along the edge where a side wins by force, with how soon at its beginning where there is room."""
    last = len(game.looks) - 1
    notes = Notes(sheet, panel)
    mates = enumerate(None if look is None else look.mate() for look in game.looks)
    for winner, run in groupby(mates, key=lambda place: None if place[1] is None else place[1][0]):
        if winner is None:
            continue
        (ply, found), *more = run
        assert found is not None
        edge = 0 if winner else 100
        ends = [max(0.0, ply - 0.5), min(float(last), (more[-1][0] if more else ply) + 0.5)]
        panel.line([(end, edge) for end in ends], LINE, 8)
        side = game.walk.sides[winner]
        notes.add(f"{side} win in {found[1]}" if found[1] else f"{side} have won", ply, edge)


class Notes:
    """Words along both edges, in rows, none over another: words without room are left out."""

    def __init__(self, sheet: Sheet, panel: Panel) -> None:
        self._sheet, self._panel = sheet, panel
        self._free = {(edge, row): panel.left for edge in (0, 100) for row in range(ROWS)}

    def add(self, said: str, ply: int, edge: int) -> None:
        """A note at a ply below the upper or above the lower edge, on the side of it that has room."""
        x, y = self._panel.at(ply, edge)
        wide = width_of(said, NOTE) + 10
        left = x - wide - 6 if x + wide + 6 > self._panel.right else x + 6
        row = next((row for row in range(ROWS) if self._free[edge, row] <= left), None)
        if row is None:
            return
        self._free[edge, row] = left + wide
        top = y + 10 + 21 * row if edge else y - 27 - 21 * row
        self._sheet.add(
            box(left, top, wide, 17, "#ffffff", "#8a8590"), Word(left + 5, top + 12.5, said, NOTE)
        )


def width_of_chart(plies: int) -> float:
    """How wide the chart of a game is."""
    return min(1440.0, max(760.0, 270.0 + 10.0 * plies))


def _marks(panel: Panel, game: Analysed) -> list[Curve]:
    """A mark behind every noted move; the kinds there are."""
    drawn = []
    for kind, (form, colour, size) in STYLES.items():
        places = [
            (float(judged.ply), 100 * chance)
            for judged in game.judged
            if _kind(judged) == kind and (chance := _chance(game, judged.ply)) is not None
        ]
        if places:
            drawn.append(Curve(str(kind), shape=form, width=0, fill=colour, size=size))
            panel.points(places, drawn[-1])
    return drawn


def _kind(judged: MoveAssessment) -> str | None:
    """Under which kind a move is marked: what became of a proven win says more than the verdict."""
    if not judged.noted:
        return None
    return judged.turn or judged.verdict


def _chance(game: Analysed, ply: int) -> float | None:
    look = game.looks[ply]
    return None if look is None else look.chance(0)


def _axes(sheet: Sheet, panel: Panel, game: Analysed) -> float:
    """Labels: moves below, chances on the left, the sides they favour on the right; where free paper begins below."""
    walk = game.walk
    plies = max(1, len(game.looks) - 1)
    panel.ticks_left([(share, f"{share} %") for share in range(0, 101, 25)], grid=False)
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 50_000) if plies / step <= 25)
    # A tick stands where the first move with that number has been made; the last position's number may have none.
    numbers: dict[int, int] = {}
    for ply, position in enumerate(walk.positions[:-1], 1):
        numbers.setdefault(position.move_number, ply)
    ticks = [(ply, str(number)) for number, ply in numbers.items() if number % max(1, step // 2) == 0]
    below = panel.called_below("move", panel.ticks_below(ticks))
    panel.called_left(f"expected score of {called(walk.sides[0])}", 20)
    for side in (0, 1):
        name = walk.record.players[side]
        said = _cut(f"{walk.sides[side]}: {name}" if name else walk.sides[side], HEIGHT / 2 - 12)
        y = panel.bottom - 6 if side == 0 else panel.top + 6
        sheet.add(Word(panel.right + 18, y, said, NOTE, "end" if side else "start", -90))
    return below


def _cut(text: str, room: float) -> str:
    """As much of a note as there is room for."""
    if width_of(text, NOTE) <= room:
        return text
    fits = next(n for n in range(len(text), -1, -1) if width_of(text[:n] + "…", NOTE) <= room)
    return text[:fits] + "…"
