"""The chart of a game as a picture: the first side's chances ply by ply, mistakes marked, proven ends drawn out.

It needs matplotlib (the extra `plots`), which is imported when something is drawn. Mistakes differ by form, not only
by colour.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hnefi.protocol.columns import clip

from .values import Analysed, Judged, Turn, Verdict, called, end_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS: Final = (".svg", ".png")
NAME: Final = 28
HEADING: Final = 110
ROWS: Final = 3
"""Rows of labels above each other."""
LABEL: Final = 1.5
"""Inches that a label takes."""
DARK, LIGHT, INK = "#3d3a44", "#f4ead6", "#b4531f"
STYLES: Final[dict[str, tuple[str, str, int]]] = {
    Verdict.INACCURACY: ("o", "white", 6),
    Verdict.MISTAKE: ("v", "#f0a030", 8),
    Verdict.BLUNDER: ("X", "#c8281e", 9),
    Turn.MISSED: ("D", "#5078c8", 7),
    Turn.THROWN: ("*", "#c8281e", 13),
    Turn.ALLOWED: ("P", "#c8281e", 9),
}
"""Form, colour and size of each kind of mark."""


class ChartError(ValueError):
    """A picture that cannot be drawn or written; a sentence for people."""


def expect_drawable(path: Path) -> None:
    """ChartError unless the file's ending is that of a picture and matplotlib is there."""
    if path.suffix.lower() not in FORMATS:
        raise ChartError(f"{path}: expected a file ending in {' or '.join(FORMATS)}")
    try:
        import matplotlib  # noqa: F401, ICN001
    except ImportError:
        raise ChartError(
            "a chart needs matplotlib, which is not installed: pip install 'hnefi[plots]'"
        ) from None


def draw(game: Analysed, path: Path, engine: str, limits: str) -> None:
    """Draw the chart into a file, whole or not at all; the same analysis gives the same file. ChartError."""
    expect_drawable(path)
    import matplotlib as mpl

    form = path.suffix.lower().removeprefix(".")
    draft = path.with_name(f".{path.name}.new")
    # A fixed salt and no date: the same analysis gives the same file. Fonts may lack signs of names: boxes do.
    with mpl.rc_context({"svg.hashsalt": "hnefi", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure = picture(game, engine, limits)
        try:
            figure.savefig(draft, format=form, dpi=150, metadata={"Date": None} if form == "svg" else {})
            draft.replace(path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise ChartError(
                f"{path}: {error.strerror or error}: expected a file that can be written"
            ) from None


def picture(game: Analysed, engine: str, limits: str) -> Figure:
    """The chart as a figure of matplotlib; nothing global is touched."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    plies = len(game.looks) - 1
    figure = Figure(figsize=(width_of(plies), 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    _ground(axes, game)
    _curve(axes, game)
    _proven(axes, game)
    drawn = _marks(axes, game)
    _axes(axes, game)
    figure.suptitle(_heading(game, engine, limits), x=0.01, ha="left", fontsize=9, parse_math=False)
    if drawn:
        legend = figure.legend(
            *axes.get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8, frameon=False
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
    return figure


def _heading(game: Analysed, engine: str, limits: str) -> str:
    walk, record = game.walk, game.walk.record
    names = [name or side for side, name in zip(walk.sides, record.players, strict=True)]
    accuracy = [
        f"{side} {number:.1f} %"
        for side, number in zip(walk.sides, game.accuracy, strict=True)
        if number is not None
    ]
    first = f"{clip(names[0], NAME)} – {clip(names[1], NAME)} · {walk.variant.name} · {end_text(record, walk.sides)}"
    second = " · ".join([*(["accuracy: " + ", ".join(accuracy)] if accuracy else []), engine, limits])
    return "\n".join(clip(line, HEADING) for line in (first, second))


def _ground(axes: Axes, game: Analysed) -> None:
    """The field of each side, and where nothing is known."""
    plies = max(1, len(game.looks) - 1)
    axes.set_facecolor(LIGHT)
    axes.axhline(50, color="0.45", linewidth=0.9, linestyle=(0, (4, 3)), zorder=2)
    for ply, look in enumerate(game.looks):
        if look is None or look.chance(0) is None:
            axes.axvspan(
                max(0.0, ply - 0.5),
                min(plies, ply + 0.5),
                facecolor="white",
                edgecolor="0.7",
                hatch="///",
                linewidth=0,
            )


def _curve(axes: Axes, game: Analysed) -> None:
    """The chances of the first side: what lies below the curve is its own."""
    for run in _runs([None if look is None else look.chance(0) for look in game.looks]):
        plies = [ply for ply, _ in run]
        shares = [100 * chance for _, chance in run]
        axes.fill_between(plies, shares, 0, color=DARK, linewidth=0, zorder=1)
        axes.plot(plies, shares, color=INK, linewidth=1.6, zorder=3, marker="." if len(run) == 1 else None)


def _runs(chances: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """Stretches of plies of which something is known."""
    runs: list[list[tuple[int, float]]] = [[]]
    for ply, chance in enumerate(chances):
        if chance is None:
            runs.append([])
        else:
            runs[-1].append((ply, chance))
    return [run for run in runs if run]


def _proven(axes: Axes, game: Analysed) -> None:
    """A bar along the edge where a side wins by force, with how soon at its beginning where there is room."""
    last = len(game.looks) - 1
    labels = Labels(axes, last)
    mates = enumerate(None if look is None else look.mate() for look in game.looks)
    for winner, run in groupby(mates, key=lambda place: None if place[1] is None else place[1][0]):
        if winner is None:
            continue
        (ply, found), *more = run
        assert found is not None
        edge = 0 if winner else 100
        ends = [max(0.0, ply - 0.5), min(float(last), (more[-1][0] if more else ply) + 0.5)]
        axes.plot(ends, [edge] * 2, color=INK, linewidth=7, solid_capstyle="butt", zorder=4, clip_on=False)
        side = game.walk.sides[winner]
        labels.add(f"{side} win in {found[1]}" if found[1] else f"{side} have won", ply, edge)


class Labels:
    """Notes along both edges, in rows, none over another: what finds no room is left out."""

    def __init__(self, axes: Axes, last: int) -> None:
        self._axes = axes
        self._last = last
        self._wide = LABEL * last / width_of(last)
        self._free = {(edge, row): -self._wide for edge in (0, 100) for row in range(ROWS)}

    def add(self, said: str, ply: int, edge: int) -> None:
        """A note at a ply below the upper or above the lower edge, on the side of it that has room."""
        right = ply + self._wide > self._last
        begin = ply - self._wide if right else float(ply)
        row = next((row for row in range(ROWS) if self._free[edge, row] <= begin), None)
        if row is None:
            return
        self._free[edge, row] = begin + self._wide
        away = 13 + 15 * row
        self._axes.annotate(
            said, (ply, edge), xytext=(-5 if right else 5, -away if edge else away - 5), fontsize=8, zorder=6,
            textcoords="offset points", ha="right" if right else "left", color="black",
            bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "0.6", "alpha": 0.9},
        )  # fmt: skip


def width_of(plies: int) -> float:
    """Inches across the chart of a game."""
    return min(16.0, max(8.0, 3.0 + plies / 9))


def _marks(axes: Axes, game: Analysed) -> bool:
    """A mark behind every noted move; whether there are any."""
    drawn = False
    for kind, (form, colour, size) in STYLES.items():
        places = [
            (judged.ply, 100 * chance)
            for judged in game.judged
            if _kind(judged) == kind and (chance := _chance(game, judged.ply)) is not None
        ]
        if places:
            drawn = True
            axes.plot(
                *zip(*places, strict=True), linestyle="", marker=form, color=colour, markersize=size,
                markeredgecolor="black", markeredgewidth=0.8, zorder=5, label=str(kind), clip_on=False,
            )  # fmt: skip
    return drawn


def _kind(judged: Judged) -> str | None:
    """Under which kind a move is marked: what became of a proven win says more than the verdict."""
    if not judged.noted:
        return None
    return judged.turn or judged.verdict


def _chance(game: Analysed, ply: int) -> float | None:
    look = game.looks[ply]
    return None if look is None else look.chance(0)


def _axes(axes: Axes, game: Analysed) -> None:
    """Moves below, chances left, and whose they are right."""
    walk = game.walk
    plies = max(1, len(game.looks) - 1)
    axes.set_xlim(0, plies)
    axes.set_ylim(0, 100)
    axes.set_yticks(range(0, 101, 25), labels=[f"{share} %" for share in range(0, 101, 25)])
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 50_000) if plies / step <= 25)
    # A tick stands where the side that begins has made the move of that number.
    numbers = {position.move_number: ply for ply, position in enumerate(walk.positions)}
    ticks = [(ply, number) for number, ply in numbers.items() if number % max(1, step // 2) == 0 and ply]
    axes.set_xticks([ply for ply, _ in ticks], labels=[str(number) for _, number in ticks])
    axes.set_xlabel("move")
    axes.set_ylabel(f"expected score of {called(walk.sides[0])}")
    for side, height in ((0, 0.06), (1, 0.94)):
        name = walk.record.players[side]
        said = clip(f"{walk.sides[side]}: {name}" if name else walk.sides[side], NAME)
        axes.annotate(
            said, (1.012, height), xycoords="axes fraction", fontsize=8, va="bottom" if side == 0 else "top",
            rotation=90, annotation_clip=False, parse_math=False,
        )  # fmt: skip
