"""The files of a run: `report.md`, `report.json`, `cells.csv`, a page."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.engine import durable
from hnefi.protocol.hosts.text_table import markdown_table

from ..common.html_page import Page, chart, from_markdown
from ..common.paper_hingston import TABLES
from . import people, searching
from .entrants import Entrant, differences
from .measures import Shift
from .outcome import SHORT, Outcome
from .searching import Found
from .showing import (
    agreed,
    agreement_rows,
    between,
    borrowed_from,
    number,
    percent,
    shares,
    signed,
    weighted_rows,
)

if TYPE_CHECKING:
    from ..common.svg_chart import Sheet

REPORT, DATA, CELLS = "report.md", "report.json", "cells.csv"
LUCK = (
    "Being chosen as the nearest of many makes a rule set look more even than it is, so the scores are from fresh "
    "games that had no part in the choice."
)
BORROWED = (
    "The search evaluates these rule sets with weights that were fitted for another variant. What looks like the "
    "balance of the rules may be an error of the evaluator."
)


# Files


def write(folder: Path, outcome: Outcome, drawn: Sequence[Path]) -> Path:
    """Write report.md, report.json and cells.csv; returns the report's path. OSError if that fails."""
    durable.put(folder / DATA, (json.dumps(as_json(outcome), indent=1) + "\n").encode())
    rows = io.StringIO(newline="")
    csv.writer(rows).writerows(cell_rows(outcome))
    durable.put(folder / CELLS, rows.getvalue().encode())
    path = folder / REPORT
    durable.put(path, ("\n".join(markdown(outcome, [p.relative_to(folder) for p in drawn])) + "\n").encode())
    return path


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Everything as one object; shares are from 0 to 1."""
    found = outcome.found
    return {
        "command": outcome.command,
        "versions": list(outcome.versions),
        "plan": outcome.plan.as_json(),
        "cells": [
            {
                "rules": cell.entrant.label,
                "player": cell.player,
                "advantage": cell.measures.advantage,
                "decisiveness": cell.measures.decisiveness,
                **asdict(cell.measures),
            }
            for cell in outcome.cells
        ],
        "differences": [
            {
                "rules": entrant.label,
                "base": entrant.base,
                "player": player,
                "switches": differences(outcome.plan.entrant(entrant.base).variant, entrant.variant),
                **asdict(gap),
            }
            for entrant, player, gap in outcome.shifts
        ],
        "people": [{"counted": counted, **asdict(agreement)} for counted, agreement in agreed(outcome)],
        "search": None
        if found is None
        else {
            "tried": found.tried,
            "base": asdict(found.base),
            "rounds": [
                {"what": what, "rule_sets": number, "games": games} for what, number, games in found.rounds
            ],
            "candidates": [
                {
                    "changes": searching.changes_of(outcome.plan.entrants[0], candidate.entrant),
                    "chosen": asdict(candidate.chosen),
                    "fresh": asdict(candidate.fresh),
                }
                for candidate in found.candidates
            ],
        },
        "not_played": list(outcome.misfits),
        "borrowed_weights": dict(outcome.borrowed),
    }


HEAD = (
    "rules", "player", "games", "attackers", "defenders", "draws", "score", "score_low", "score_high", "advantage_low",
    "advantage_high", "balance", "balance_low", "balance_high", "decisiveness", "plies", "plies_attackers",
    "plies_defenders", "branching", "taken_by_attackers", "taken_by_defenders", "lead_changes",
)  # fmt: skip


def cell_rows(outcome: Outcome) -> list[list[Any]]:
    """One line for each rule set and player, heads first; shares from 0 to 1, plies are medians."""
    rows: list[list[Any]] = [list(HEAD)]
    for cell in outcome.cells:
        m = cell.measures
        numbers = [
            m.score, *m.score_interval, *m.attackers_interval, m.balance, *m.balance_interval, m.decisiveness,
            m.plies, m.plies_attackers, m.plies_defenders, m.branching, m.by_attackers, m.by_defenders,
            m.lead_changes,
        ]  # fmt: skip
        rows.append(
            [
                cell.entrant.label,
                cell.player,
                m.games,
                m.attackers,
                m.defenders,
                m.draws,
                *("" if value is None else f"{value:.4f}" for value in numbers),
            ]
        )
    return rows


def markdown(outcome: Outcome, figures: Sequence[Path]) -> list[str]:
    """The report as lines of Markdown."""
    lines = [
        "# Which side the rules favour",
        "",
        "```console",
        f"$ {outcome.command}",
        "```",
        "",
        _described(outcome),
    ]
    if len(outcome.versions) > 1:
        lines += ["", "**The games are of several versions of the engine.**"]
    if outcome.found is not None:
        return [*lines, "", *_markdown_search(outcome, outcome.found)]
    sections = [("Attackers' score, per cent", score_rows(outcome))]
    sections += [("The strongest players", strongest_rows(outcome))]
    sections += [("Games", game_rows(outcome))]
    sections += [("How games end", reason_rows(outcome))]
    if outcome.shifts:
        sections[1:1] = [("What the switches do to the attackers' score", shift_rows(outcome))]
    if outcome.halves:
        sections += [("By length of the opening", opening_rows(outcome))]
    beside = paper_rows(outcome)
    if len(beside) > 1:
        sections += [("Beside tables 1 and 2 of the paper of 2007", beside)]
    if agreed(outcome):
        sections += [("Beside people", people_rows(outcome)), ("The same order?", agreement_rows(outcome))]
        sections += [("The same order, weighted by what is known about people", weighted_rows(outcome))]
        sections += [("Rows of people that are not compared", other_rows(outcome))]
    for title, rows in sections:
        lines += ["", f"## {title}", "", *markdown_table(rows)]
    if outcome.misfits:
        lines += ["", "## Not played", "", *(f"- {misfit}" for misfit in outcome.misfits)]
    if outcome.borrowed:
        lines += ["", "## Borrowed weights", "", BORROWED, ""]
        lines += [f"- those of {source}: {there}" for source, there in borrowed_from(outcome)]
    if figures:
        lines += ["", "## Figures"]
        for path in figures:
            if path.suffix == ".svg":
                lines += ["", f"![{path.stem}]({path.as_posix()})"]
    return lines


def page(outcome: Outcome, figures: Iterable[tuple[str, Sheet, float]]) -> bytes:
    """The report as one HTML file."""
    charts = {name: chart(sheet.svg(height)) for name, sheet, height in figures}
    lines = markdown(outcome, [Path(f"{name}.svg") for name in charts])
    page = Page(lines[0].lstrip("# "))
    for heading, blocks in from_markdown(lines[1:], charts):
        page.section(heading, *blocks)
    return page.render()


def _described(outcome: Outcome) -> str:
    plan = outcome.plan
    return (
        f"Equal players on both sides, from distinct random openings, seed {plan.seed}; a game still open after "
        f"{plan.most_plies} plies is a draw (`ply_cap`). Intervals are 95 % intervals. "
        f"Engine {' and '.join(outcome.versions)}."
    )


def score_rows(outcome: Outcome) -> list[list[str]]:
    """A line for each rule set, a column for each player: the attackers' score, with half a point for a draw."""
    rows = [["rules", *outcome.plan.players]]
    for entrant in outcome.plan.entrants:
        found = [outcome.at(entrant.label, player) for player in outcome.plan.players]
        rows.append([entrant.label, *("-" if m is None else percent(m.score) for m in found)])
    return rows


def strongest_rows(outcome: Outcome) -> list[list[str]]:
    """The last player's games: the attackers' wins with intervals."""
    rows = [
        [
            "rules",
            "games",
            "attackers win",
            "95 %",
            "defenders win",
            "95 %",
            "drawn",
            "score",
            "95 %",
            "balance",
        ]
    ]
    for label, m in outcome.of(outcome.plan.players[-1]).items():
        rows.append(
            [
                label,
                str(m.games),
                percent(m.advantage),
                between(m.attackers_interval),
                percent(m.defenders / m.games),
                between(m.defenders_interval),
                percent(m.draws / m.games),
                percent(m.score),
                between(m.score_interval),
                f"{m.balance:.2f} [{m.balance_interval[0]:.2f}-{m.balance_interval[1]:.2f}]",
            ]
        )
    return rows


def game_rows(outcome: Outcome) -> list[list[str]]:
    """All other measures of the games, a line for each rule set and player."""
    rows = [
        [
            "rules", "player", "games", "attackers/defenders/drawn %", "score", "95 %", "balance", "plies (median)",
            "when attackers win", "when defenders win", "legal moves", "taken by attackers", "by defenders",
            "changes of lead",
        ]
    ]  # fmt: skip
    for entrant in outcome.plan.entrants:
        for cell in outcome.cells:
            if cell.entrant.label != entrant.label:
                continue
            m = cell.measures
            rows.append(
                [
                    entrant.label,
                    cell.player,
                    str(m.games),
                    " / ".join(map(percent, shares(m))),
                    percent(m.score),
                    between(m.score_interval),
                    f"{m.balance:.2f}",
                    number(m.plies),
                    number(m.plies_attackers),
                    number(m.plies_defenders),
                    number(m.branching, 1),
                    number(m.by_attackers, 1),
                    number(m.by_defenders, 1),
                    number(m.lead_changes, 1),
                ]
            )
    return rows


def reason_rows(outcome: Outcome) -> list[list[str]]:
    """Reasons for the end of the last player's games, as percentages, most frequent first."""
    rows = [["rules", "attackers win by", "defenders win by", "drawn by"]]
    for label, m in outcome.of(outcome.plan.players[-1]).items():
        said = [
            ", ".join(
                f"{reason.replace('_', ' ')} {percent(count / m.games)}"
                for winner, reason, count in m.reasons
                if winner == who
            )
            for who in "ad="
        ]
        rows.append([label, *(text or "-" for text in said)])
    return rows


def opening_rows(outcome: Outcome) -> list[list[str]]:
    """The last player's scores after short and after long openings, to see whether openings matter."""
    rows = [["rules", f"games after up to {SHORT} plies", "score", "95 %", "after more", "score", "95 %"]]
    for label, *halves in outcome.halves:
        cells: list[str] = []
        for m in halves:
            cells += ["0", "-", "-"] if m is None else [
                str(m.games), percent(m.score), between(m.score_interval)
            ]  # fmt: skip
        rows.append([label, *cells])
    return rows


def shift_rows(outcome: Outcome) -> list[list[str]]:
    """The difference of every rule set from its base, a column for each player; bold if the interval excludes 0."""
    players = outcome.plan.players
    rows = [["rules", "what differs", *players]]
    gaps: Mapping[tuple[str, str], Shift] = {
        (entrant.label, player): gap for entrant, player, gap in outcome.shifts
    }
    for entrant in outcome.plan.entrants:
        if not entrant.base:
            continue
        base = outcome.plan.entrant(entrant.base)
        cells = []
        for player in players:
            gap = gaps.get((entrant.label, player))
            text = "-" if gap is None else f"{100 * gap.difference:+.1f} [{signed(gap.interval)}]"
            cells.append(f"**{text}**" if gap is not None and gap.certain else text)
        rows.append([entrant.label, entrant.note or _differing(base, entrant), *cells])
    return rows


def _differing(base: Entrant, entrant: Entrant) -> str:
    return ", ".join(f"{name} {one} → {two}" for name, one, two in differences(base.variant, entrant.variant))


def paper_rows(outcome: Outcome) -> list[list[str]]:
    """Winners in the paper's games and in ours, for its two rule sets and every player."""
    rows = [
        [
            "rules", "player", "paper: games", "attackers/defenders/drawn", "score", "95 %", "ours: games",
            "attackers/defenders/drawn %", "score", "95 %",
        ]
    ]  # fmt: skip
    for cell in outcome.cells:
        if cell.entrant.label not in TABLES:
            continue
        row, m = people.printed(cell.entrant.label, cell.player), cell.measures
        theirs = ["-"] * 4
        if row is not None:
            wins = f"{row.attackers} / {row.defenders} / {row.draws}"
            theirs = [str(sum(row)), wins, percent(row.score), between(row.interval)]
        ours = [
            str(m.games),
            " / ".join(map(percent, shares(m))),
            percent(m.score),
            between(m.score_interval),
        ]
        rows.append([cell.entrant.label, cell.player, *theirs, *ours])
    order = [entrant.label for entrant in outcome.plan.entrants]
    rows[1:] = sorted(rows[1:], key=lambda row: order.index(row[0]))
    return rows


def people_rows(outcome: Outcome) -> list[list[str]]:
    """The attackers' scores of people and of every player."""
    players = outcome.plan.players
    rows = [["people", "games", "score", "rules here", *players, "source"]]
    for row in people.table():
        found = [outcome.at(row.rules, player) for player in players]
        if any(m is not None for m in found):
            count = "?" if row.games is None else f"{row.games:,}"
            scores = ["-" if m is None else percent(m.score) for m in found]
            rows.append([row.name, count, percent(row.score), row.rules, *scores, row.source])
    return rows


def other_rows(outcome: Outcome) -> list[list[str]]:
    """Rows of people without a counterpart here, and the reasons."""
    rows = [["people", "games", "score", "source", "why not"]]
    played = {cell.entrant.label for cell in outcome.cells}
    for row in people.table():
        if row.rules not in played:
            count = "?" if row.games is None else f"{row.games:,}"
            rows.append(
                [row.name, count, percent(row.score), row.source, row.why or "not played in this run"]
            )
    return rows


def _markdown_search(outcome: Outcome, found: Found) -> list[str]:
    base = outcome.plan.entrants[0]
    rows = [
        [
            "changes of switches",
            "number",
            "fresh games",
            "attackers/defenders/drawn %",
            "score",
            "95 %",
            "chosen by",
        ]
    ]
    for changes, count, fresh, chosen in [
        ("none", 0, found.base, None),
        *(
            (
                ", ".join(f"`{change}`" for change in searching.changes_of(base, candidate.entrant)),
                candidate.changes,
                candidate.fresh,
                candidate.chosen,
            )
            for candidate in found.candidates
        ),
    ]:
        rows.append(
            [
                changes,
                str(count),
                str(fresh.games),
                " / ".join(map(percent, shares(fresh))),
                percent(fresh.score),
                between(fresh.score_interval),
                "-" if chosen is None else f"{percent(chosen.score)} of {chosen.games}",
            ]
        )
    screened = [
        ["screened", "rule sets", "games each so far"],
        *([what, str(n), str(games)] for what, n, games in found.rounds),
    ]
    return [
        f"## Nearest to even from {base.label}, by {outcome.plan.players[-1]}",
        "",
        f"{found.tried} rule sets were tried. {LUCK}",
        "",
        *markdown_table(rows),
        "",
        *markdown_table(screened),
    ]
