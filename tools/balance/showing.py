"""The output of a run on the terminal, and the format of numbers there and in the files."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from hnefi.protocol.hosts.text_table import table as columns

from . import people, searching
from .measures import Interval, Measures
from .outcome import Outcome
from .searching import Found

BAR = 20
"""Characters of a bar from 0 to 100 %."""
PLAIN_SIGNS = {"─": "-", "│": "|", "●": "o"}


# Words and numbers


def percent(share: float) -> str:
    """A share from 0 to 1 as a percentage."""
    return f"{100 * share:.1f}"


def between(interval: Interval) -> str:
    """An interval of shares as percentages: `41.2-53.7`."""
    return f"{100 * interval[0]:.1f}-{100 * interval[1]:.1f}"


def signed(interval: Interval) -> str:
    """An interval of differences in percentage points: `-1.2 to +3.4`."""
    return f"{100 * interval[0]:+.1f} to {100 * interval[1]:+.1f}"


def number(value: float | None, digits: int = 0) -> str:
    """A number with `digits` decimals; `-` for None."""
    return "-" if value is None else f"{value:.{digits}f}"


def bar(found: Measures, *, plain: bool = False) -> str:
    """The attackers' score from 0 to 100 %, with its interval drawn as a line and the middle marked."""
    signs = [" "] * (BAR + 1)
    signs[BAR // 2] = "│"
    low, high = (round(BAR * end) for end in found.score_interval)
    for place in range(low, high + 1):
        signs[place] = "─"
    signs[round(BAR * found.score)] = "●"
    text = "".join(signs)
    return "".join(PLAIN_SIGNS.get(sign, sign) for sign in text) if plain else text


# At the terminal


def shown(outcome: Outcome, *, plain: bool = False) -> list[str]:
    """The lines printed at the end of a run."""
    if outcome.found is not None:
        return _shown_search(outcome, outcome.found)
    head = ("player", "games", "a %", "d %", "= %", "score %", "plies", "attackers 0 … 100")
    cells = [
        cell
        for entrant in outcome.plan.entrants
        for cell in outcome.cells
        if cell.entrant.label == entrant.label
    ]
    rows = [
        (
            f"  {cell.player}",
            str(cell.measures.games),
            *map(percent, shares(cell.measures)),
            percent(cell.measures.score),
            number(cell.measures.plies),
            bar(cell.measures, plain=plain),
        )
        for cell in cells
    ]
    lines = _below_headings(columns(head, rows, left=(0, 7), free=0), [cell.entrant.label for cell in cells])
    if outcome.shifts:
        lines += ["", *_shown_shifts(outcome)]
    lines += [*agreements_shown(outcome), *(f"not played: {misfit}" for misfit in outcome.misfits)]
    for source, there in borrowed_from(outcome):
        lines += textwrap.wrap(
            f"evaluated with weights fitted for {source}: {there}", 79, subsequent_indent="  "
        )
    return lines if cells else ["no game is finished"]


def borrowed_from(outcome: Outcome) -> list[tuple[str, str]]:
    """Variants, each with the other rule sets that are judged by its weights."""
    sources = sorted(set(outcome.borrowed.values()))
    return [
        (source, ", ".join(label for label, other in outcome.borrowed.items() if other == source))
        for source in sources
    ]


def _below_headings(table: Sequence[str], headings: Sequence[str]) -> list[str]:
    """A table with a heading above each group of rows with the same heading."""
    lines = [table[0]]
    for place, (line, heading) in enumerate(zip(table[1:], headings, strict=True)):
        if place == 0 or heading != headings[place - 1]:
            lines.append(heading)
        lines.append(line)
    return lines


def shares(found: Measures) -> tuple[float, float, float]:
    """The shares of games that attackers won, that defenders won, and that were drawn."""
    return found.advantage, found.defenders / found.games, found.draws / found.games


def _shown_shifts(outcome: Outcome) -> list[str]:
    head = ("attackers' score against that of", "pairs", "change", "95 %")
    rows = [
        (f"  {player}", str(gap.pairs), f"{100 * gap.difference:+.1f}", signed(gap.interval))
        for _, player, gap in outcome.shifts
    ]
    headings = [f"{entrant.label} against {entrant.base}" for entrant, _, _ in outcome.shifts]
    return _below_headings(columns(head, rows, left=(0,), free=0), headings)


def _shown_search(outcome: Outcome, found: Found) -> list[str]:
    head = ("changes", "", "games", "a %", "d %", "= %", "score %", "95 %", "chosen by")
    label = outcome.plan.entrants[0].label
    rows = [("none", "0", *_fresh(found.base), "-")]
    for candidate in found.candidates:
        changes = " ".join(searching.changes_of(outcome.plan.entrants[0], candidate.entrant))
        rows.append(
            (changes, str(candidate.changes), *_fresh(candidate.fresh), percent(candidate.chosen.score))
        )
    return [
        f"{label}, {outcome.plan.players[-1]}: {found.tried} rule sets tried; the remaining ones, on fresh games:",
        *columns(head, rows, left=(0,), free=0),
    ]


def _fresh(found: Measures) -> tuple[str, ...]:
    return (str(found.games), *map(percent, (*shares(found), found.score)), between(found.score_interval))


def agreements_shown(outcome: Outcome) -> list[str]:
    """The lines about people on the terminal; none if too few of their rows were played."""
    agreements = agreed(outcome)
    if not agreements:
        return []
    rows = agreement_rows(outcome)
    return ["", "the order of rule sets, ours and people's (attackers' score):", *columns(
        rows[0], rows[1:], left=(0, 1), free=0
    )]  # fmt: skip


def agreed(outcome: Outcome) -> list[tuple[bool, people.Agreement]]:
    """Rank correlations with people for every player that has played enough of their rows."""
    if outcome.plan.kind != "table":
        return []
    return [
        (counted, found)
        for player in outcome.plan.players
        for counted in (False, True)
        if (found := people.agreement(player, outcome.of(player), counted=counted)).spearman is not None
    ]


def weighted_rows(outcome: Outcome) -> list[list[str]]:
    """The same with rows weighted by the certainty of people's scores, and the best possible result."""
    rows = [["player", "rows", "n", "weighted Spearman", "95 %", "a perfect judge", "95 %"]]
    for counted, found in agreed(outcome):
        values = [None if found.perfect is None else found.perfect[0], found.weighted]
        ends = [found.weighted_interval, None if found.perfect is None else found.perfect[1:]]
        shown = ["-" if value is None else f"{value:+.2f}" for value in reversed(values)]
        between = ["-" if end is None else f"{end[0]:+.2f} to {end[1]:+.2f}" for end in ends]
        told = f">= {people.COUNTED} games" if counted else "all"
        rows.append([found.player, told, str(found.rows), shown[0], between[0], shown[1], between[1]])
    return rows


def agreement_rows(outcome: Outcome) -> list[list[str]]:
    """A table, heading first: how each player ranks rule sets compared with people."""
    rows = [["player", "rows", "n", "Spearman", "95 %", "Kendall", "95 %"]]
    for counted, found in agreed(outcome):
        intervals = [
            "-" if ends is None else f"{ends[0]:+.2f} to {ends[1]:+.2f}"
            for ends in (found.spearman_interval, found.kendall_interval)
        ]
        values = ["-" if value is None else f"{value:+.2f}" for value in (found.spearman, found.kendall)]
        rows.append(
            [
                found.player,
                f">= {people.COUNTED} games" if counted else "all",
                str(found.rows),
                values[0],
                intervals[0],
                values[1],
                intervals[1],
            ]
        )
    return rows
