"""Pictures of a run: ratings with their intervals, the cross table, scores over time; each as PNG and SVG.

They need matplotlib (the extra `plots`), which is imported when something is drawn. Everything can be told apart
by shape, position or number, never by colour alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from hnefi.engine.wording import counted
from hnefi.protocol.hosts.text_table import clip

from ..common.pairs import DOUBLED, Played
from .summary import EngineLine, ReportError, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Series = Mapping[str, Sequence[tuple[int, float]]]
"""By engine: after how many of its games it had which score, from 0 to 1."""
POINTS = 500
"""The most points of a curve."""
NAME = 24
SIGNS_PER_INCH = 13
"""Of a heading, at its size."""
LINE_INCHES = 0.15
"""The height of its lines; a longer heading makes the figure higher."""
NO_BREAK = "\N{NO-BREAK SPACE}"
HEADING = 6
"""Lines of a caption at most: the limits of fifty engines would need more."""
FORMATS = ("png", "svg")
STYLES = ("-", "--", "-.", ":")
MARKS = ("o", "s", "^", "v", "D", "P", "X", "*")


def expect_library() -> None:
    """ReportError if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401, ICN001
    except ImportError:
        raise ReportError(
            "plots need matplotlib, which is not installed: pip install 'hnefi[plots]'"
        ) from None


def score_series(games: Iterable[Played], engines: Sequence[str]) -> dict[str, list[tuple[int, float]]]:
    """The score of every engine game after game, thinned out evenly to `POINTS`."""
    points = dict.fromkeys(engines, 0.0)
    series: dict[str, list[tuple[int, float]]] = {name: [] for name in engines}
    for game in games:
        for side in (0, 1):
            name = game.ending[1 + side]
            points[name] += DOUBLED[game.ending.winner][side] / 2
            played = len(series[name]) + 1
            series[name].append((played, points[name] / played))
    return {name: _thinned(curve) for name, curve in series.items()}


def _thinned(curve: list[tuple[int, float]]) -> list[tuple[int, float]]:
    if len(curve) <= POINTS:
        return curve
    return [curve[round(index * (len(curve) - 1) / (POINTS - 1))] for index in range(POINTS)]


def draw(summary: Summary, series: Series, folder: Path) -> list[Path]:
    """Draw everything that the run has numbers for into `folder`; the files. ReportError without matplotlib."""
    expect_library()
    import matplotlib as mpl

    folder.mkdir(parents=True, exist_ok=True)
    made = []
    # A fixed salt and no date: the same run gives the same files. Fonts may lack characters of names: boxes do.
    with mpl.rc_context({"svg.hashsalt": "hnefi", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, figure in _figures(summary, series):
            for form in FORMATS:
                path = folder / f"{name}.{form}"
                metadata = {"Date": None} if form == "svg" else {}
                figure.savefig(path, format=form, dpi=150, metadata=metadata)
                made.append(path)
    return made


def _figures(summary: Summary, series: Series) -> Iterator[tuple[str, Figure]]:
    rated = [line for line in summary.engines if line.rating is not None]
    if rated:
        yield "ratings", _ratings(summary, rated)
    if summary.meetings:
        yield "cross-table", _cross_table(summary)
    if any(series.values()):
        yield "scores", _scores(summary, series)


def _figure(summary: Summary, title: str, size: tuple[float, float]) -> tuple[Figure, Axes]:
    """A figure with a heading that says which run its numbers are from; no global state is changed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    facts = summary.facts
    variants = ", ".join(facts.variants) if len(facts.variants) < 5 else f"{len(facts.variants)} variants"
    openings = f"openings {facts.openings}" if facts.openings else ""
    games = f"{counted(summary.games, 'game')}, {counted(summary.pairs, 'pair')}"
    lines = [f"{facts.name}: {title}" if facts.name else title]
    columns = int(SIGNS_PER_INCH * size[0])
    for said in ((variants, *facts.limits.split("; ")), (openings, games)):
        # A line breaks between its items where they fit, not within one.
        whole = (item.replace(" ", NO_BREAK) if len(item) < columns else item for item in said if item)
        lines.append(" · ".join(whole))
    broken = [
        part.replace(NO_BREAK, " ")
        for line in lines
        for part in wrap(line, columns, max_lines=HEADING, placeholder=" …", break_on_hyphens=False)
    ]
    figure.set_figheight(size[1] + LINE_INCHES * max(0, len(broken) - len(lines)))
    heading = "\n".join(clip(line, columns) for line in broken)
    figure.suptitle(heading, x=0.01, ha="left", fontsize=9, parse_math=False)
    return figure, axes


def _name(line: str) -> str:
    return clip(line, NAME)


def _tick_names(axis: Any, names: Sequence[str], **how: Any) -> None:
    """Names at the ticks 0, 1, …; a dollar sign in a name is printed as such."""
    axis.set_ticks(range(len(names)), labels=[_name(name) for name in names], **how)
    for label in axis.get_ticklabels():
        label.set_parse_math(False)


def _ratings(summary: Summary, rated: Sequence[EngineLine]) -> Figure:
    figure, axes = _figure(summary, "ratings", (7.0, 1.6 + 0.35 * len(rated)))
    for row, line in enumerate(rated):
        rating = line.rating
        assert rating is not None
        if rating.low is not None and rating.high is not None:
            axes.plot([rating.low, rating.high], [row, row], color="0.35", linewidth=2, solid_capstyle="butt")
            for end in (rating.low, rating.high):
                axes.plot([end], [row], marker="|", color="0.35", markersize=9)
        axes.plot([rating.value], [row], marker="o", color="black", markersize=6)
        axes.annotate(
            f"{rating.value:+.0f}", (rating.value, row),
            xytext=(0, 7), textcoords="offset points", ha="center", fontsize=8,
        )  # fmt: skip
    _tick_names(axes.yaxis, [line.name for line in rated])
    axes.set_ylim(len(rated) - 0.4, -0.7)
    percent = 100 * summary.facts.model.interval
    axes.set_xlabel(f"Elo, with {percent:g} % intervals" if summary.facts.model.bootstrap else "Elo")
    axes.grid(axis="x", color="0.85")
    return figure


def _cross_table(summary: Summary) -> Figure:
    names = [line.name for line in summary.engines]
    side = max(4.5, 2.2 + 0.62 * len(names))
    figure, axes = _figure(summary, "score of each row against each column", (side + 1.5, side))
    at = {name: index for index, name in enumerate(names)}
    scores = [[float("nan")] * len(names) for _ in names]
    for meeting in summary.meetings:
        score = meeting.record.score
        assert score is not None
        row, column = at[meeting.engine], at[meeting.opponent]
        scores[row][column] = score
        # Dark cells are high scores: their number is white.
        text = f"{100 * score:.0f} %\n{meeting.record.games}"
        ink = "white" if score > 0.6 else "black"
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color=ink)
    # Without games there is no score, which is not a score of 0.
    axes.patch.set_hatch("////")
    axes.patch.set_edgecolor("0.8")
    image = axes.imshow(scores, cmap="Greys", vmin=0.0, vmax=1.0)
    figure.colorbar(image, ax=axes, shrink=0.8, label="score")
    _tick_names(axes.xaxis, names, rotation=45, ha="right")
    _tick_names(axes.yaxis, names)
    return figure


def _scores(summary: Summary, series: Series) -> Figure:
    from matplotlib.ticker import MaxNLocator

    figure, axes = _figure(summary, "score over time", (7.0, 4.2))
    # With two engines one curve shows everything.
    names = summary.facts.engines[:1] if summary.facts.duel else [line.name for line in summary.engines]
    for index, name in enumerate(names):
        curve = series[name]
        if not curve:
            continue
        games, scores = zip(*curve, strict=True)
        axes.plot(
            games,
            [100 * score for score in scores],
            color=str(0.6 * index / max(1, len(names) - 1)),
            linestyle=STYLES[index % len(STYLES)],
            marker=MARKS[index % len(MARKS)],
            markevery=max(1, len(curve) // 10),
            markersize=5,
            linewidth=1.2,
            label=_name(name),
        )
    axes.axhline(50, color="0.7", linewidth=0.8, zorder=0)
    axes.set_ylim(-3, 103)
    axes.set_xlabel("games")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("score in %")
    legend = axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure
