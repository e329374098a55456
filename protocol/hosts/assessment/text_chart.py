"""A game's analysis at a terminal: accuracy side by side; the chart, the first side's chances as columns of blocks.

Mistakes are marked below the chart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..text_table import table
from .values import Assessed, MoveAssessment, TurningPoint, Verdict

ROWS: Final = 8
WIDEST: Final = 66
LABEL: Final = 9
BLOCKS: Final = " ▁▂▃▄▅▆▇█"
PLAIN: Final = " .:-=+*#@"
UNKNOWN: Final = "?"
MARKS: Final = {Verdict.INACCURACY: "i", Verdict.MISTAKE: "m", Verdict.BLUNDER: "b"}
TURNS: Final = {TurningPoint.MISSED: "w", TurningPoint.THROWN: "T", TurningPoint.ALLOWED: "A"}
LEGEND: Final = "i inaccuracy, m mistake, b blunder, w missed win, T thrown win, A allowed win"


def sketch(game: Assessed, *, plain: bool = False) -> list[str]:
    """The chart as lines; `plain` draws it with ASCII characters. Longer games have several plies in a column."""
    chances = [None if look is None else look.chance(0) for look in game.looks]
    per = -(-len(chances) // WIDEST)
    columns = [chances[first : first + per] for first in range(0, len(chances), per)]
    heights = [_height([chance for chance in column if chance is not None]) for column in columns]
    blocks = PLAIN if plain else BLOCKS
    label = {ROWS - 1: "100 %", ROWS // 2 - 1: " 50 %", 0: "  0 %"}
    lines = [
        f"{label.get(row, ''):>{LABEL}} {_bar(plain)}"
        + "".join(_cell(height, row, blocks) for height in heights).rstrip()
        for row in reversed(range(ROWS))
    ]
    for side in (0, 1):
        marks = _marks(game, side, per, len(columns))
        if marks.strip():
            lines.append(f"{game.sides[side]:>{LABEL}} {_bar(plain)}{marks.rstrip()}")
    lines.append(" " * (LABEL + 2) + _scale(len(columns), per))
    return lines


def _bar(plain: bool) -> str:
    return "|" if plain else "│"


def _height(chances: Sequence[float]) -> int | None:
    """The mean chance in eighths of a row; what is not nothing is seen."""
    if not chances:
        return None
    mean = sum(chances) / len(chances)
    return max(round(mean * ROWS * 8), int(mean > 0.0))


def _cell(height: int | None, row: int, blocks: str) -> str:
    if height is None:
        return UNKNOWN if row == 0 else " "
    return blocks[max(0, min(8, height - 8 * row))]


def _marks(game: Assessed, side: int, per: int, count: int) -> str:
    """One character a column: the worst that a side did there."""
    signs = [" "] * count
    worst = [(-1, -1.0)] * count
    for judged in game.judged:
        if judged.side == side and judged.noted:
            column = judged.ply // per
            weight = (judged.turn is not None, judged.loss or 0.0)
            if weight > worst[column]:
                worst[column], signs[column] = weight, mark(judged)
    return "".join(signs)


def mark(judged: MoveAssessment) -> str:
    """The character of a noted move."""
    return TURNS[judged.turn] if judged.turn is not None else MARKS.get(judged.verdict, " ")


def _scale(count: int, per: int) -> str:
    """Plies below the columns, every ten columns."""
    text = ""
    for column in range(0, count, 10):
        text = text.ljust(column) + str(column * per)
    return text + " (ply)"


def sides_table(game: Assessed) -> list[str]:
    """Accuracy, mean loss and the verdicts that were given, side by side."""
    told = [rates(game, side) for side in (0, 1)]
    counts = [game.counts(side) for side in (0, 1)]
    rows = [("accuracy", told[0][0], told[1][0]), ("points lost a move", told[0][1], told[1][1])]
    rows += [
        (word, str(counts[0][word]), str(counts[1][word]))
        for word in counts[0]
        if any(count[word] for count in counts)
    ]
    return table(("", *game.sides), rows, left=(0,), free=0)


def rates(game: Assessed, side: int) -> tuple[str, str]:
    """A side's accuracy and mean loss in words."""
    accuracy, loss = game.accuracy[side], game.losses[side]
    return "-" if accuracy is None else f"{accuracy:.1f} %", "-" if loss is None else f"{100 * loss:.1f}"
