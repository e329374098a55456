"""The report on Tablut by temporal differences: the document's table and ours, claims, curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from hnefi.tools.evolve.folder import read_log

from ..common.statistics import Z, wilson
from . import figures, report
from .figures import Axes
from .report import Section
from .spread import cell, difference, with_intervals
from .tablut import (
    KINDS,
    LARGE,
    ROWS,
    SMALL,
    Plan,
    Played,
    Results,
    branching,
    run_folder,
)

EARLY = 300
"""The first games of training, for which the paper says how many were won."""
BRANCHING_GAMES = 20


class Printed(NamedTuple):
    """A row of the document's table: percentages of 1,000 games (10,000 on 9 x 9) and mean turns; and our rows to
    compare with it."""

    name: str
    white: float | None
    black: float | None
    drawn: float | None
    turns: float
    ours: tuple[str, ...]
    games: int = 1000
    program: tuple[float, float, float, float] | None = None
    """White, black, drawn and turns from running the author's program; 20 games of minimax against itself, 40 at three
    plies."""


TABLE = (
    Printed("Random – Random", 51, 49, 0, 58, ("random text", "random coded"),
            program=(48.2, 48.3, 3.5, 58.3)),
    Printed(
        "fixed minimax – fixed minimax, 3 plies", 33, 47, 20, 29,
        ("minimax-minimax text", "minimax-minimax coded", "minimax-minimax blind"), program=(45, 50, 5, 39.7),
    ),
    Printed("fixed minimax white, 1 ply – Random", 52, 9, 39, 93,
            ("minimax-1 text", "minimax-1 coded", "minimax-1 blind"), program=(73.6, 6.4, 20, 92.7)),
    Printed("fixed minimax white, 3 plies – Random", 62, 38, 0, 44,
            ("minimax-3 text", "minimax-3 coded", "minimax-3 blind"), program=(65, 35, 0, 45.5)),
    Printed("TD white, 1 ply – Random (sum 100.4)", 92, 7.4, 1, 41, ("td text", "td coded", "td blind"),
            program=(97.8, 0.3, 1.9, 51.2)),
    Printed(
        "TD white – fixed minimax black, 3 plies (sum 99.9)", 98, 1.1, 0.8, 42,
        ("td-minimax text", "td-minimax deep", "td-minimax coded", "td-minimax blind"), program=(100, 0, 0, 42.9),
    ),
    Printed(
        "Random white – black by the net of white, 1 ply", 36, 54.6, 9.4, 71,
        (
            "turned literal text", "turned minimised text", "turned literal coded", "turned minimised coded",
            "turned literal blind", "turned minimised blind",
        ),
        program=(36, 56.9, 7.1, 62),
    ),
    Printed(
        "Random – Random, 9 x 9, 500 turns", None, 55, None, 146, ("random 9x9 text", "random 9x9 coded"), 10_000
    ),
)  # fmt: skip

MORE = {
    "before learning (six nets of the paper: white 1.5 to 25 %)": ("untrained text", "untrained blind"),
    "lambda 0 and 0.7": ("td text", "lambda", "td-minimax text", "lambda-minimax"),
    "a net for white against a net for black (the paper: all drawn)": ("net-net text", "net-net blind"),
    "towards the state after the answer, to the letter": ("td text", "literal"),
    "trained against the hand-tuned player at 1 ply instead of Random": (
        "td text", "met minimax", "met minimax, meets it",
    ),
    "one net for one side, one for both": ("td text", "both as white", "black", "black blind", "both as black"),
    "the hand-tuned player on either side, 1 ply against Random": ("minimax-1 text", "random-minimax-1 text"),
    "learned weights of the seven features, from 7 x 7 to 9 x 9": (
        "features 7x7", "features 7x7 on 9x9", "features 9x9", "features untrained 9x9",
    ),
}  # fmt: skip
"""Questions and claims of the document without a number."""

READINGS = (
    ("who begins", "not said", "white, as in the program", "the same"),
    ("captures", "a man between two enemies", "the same", "the whole line"),
    ("a side without a move", "not said", "loses", "white wins"),
    ("the limit of 150 turns", "turns", "pairs of plies: its mean lengths need it", "the same"),
    (
        "Random",
        "a valid piece, direction and length",
        "any legal move, with equal probability",
        "the program's own, which may pass",
    ),
    (
        "fixed minimax",
        "the seven features",
        "1/d to the nearest enemy, shares",
        "as the program computes them",
    ),
    (
        "3 plies",
        "minimax with alpha-beta",
        "plain minimax, wins and losses seen",
        "any move: its own is not in the leaf",
    ),
    (
        "target",
        "the state after the answer",
        "the learner's next afterstate",
        "whatever was scored last, no results",
    ),
    ("exploration", "not said", "one move of ten", "the same"),
    ("rate", "not said", "0.1 falling to 0.01", "the same"),
)

BLIND = (
    "ends of games",
    "won and lost are plus and minus infinity",
    "seen (blind: as in the text reading, but the evaluation judges finished positions too)",
    "seen at one ply",
)

COLUMNS = ("white %", "black %", "drawn %", "turns", "different games", "white wins by", "black wins by")


def merged(results: Results, plan: Plan, name: str) -> tuple[list[Played], Played]:
    """The tests of a row, and all of them together."""
    row = next(row for row in ROWS if row.name == name)
    tests = [test for test in plan.tests() if test.row == row]
    found = [results[test] for test in tests]
    total = found[0]
    for played in found[1:]:
        total = total.plus(played)
    return found, total


def _cells(found: Sequence[Played], total: Played) -> list[str]:
    """White, black, drawn, turns, and how white and black won."""
    cells = []
    for part in ("white", "black", "drawn"):
        shares = [100 * getattr(played, part) / played.games for played in found]
        cells.append(_share(shares, 100 * getattr(total, part) / total.games, total.games))
    turns = f"{total.plies / total.games / 2:.1f}"
    return [*cells, turns, f"{total.different} of {total.games}", by(total, "w"), by(total, "b")]


def _share(shares: Sequence[float], pooled: float, games: int) -> str:
    """Mean, range over seeds, interval; without seeds only Wilson's interval."""
    if len(shares) > 1:
        return cell(shares)
    low, high = wilson(pooled * games / 100, games) or (0.0, 1.0)
    return f"{pooled:.1f} ({100 * low:.1f}–{100 * high:.1f})"


def by(total: Played, winner: str) -> str:
    """`captures 61 %, corner 39 %`: how a side won."""
    won = {key[2:]: number for key, number in total.reasons.items() if key[0] == winner}
    whole = sum(won.values())
    words = {
        "king_escaped": "corner",
        "all_captured": "all captured",
        "king_captured": "king taken",
        "no_legal_move": "no move",
    }
    parts = sorted(won.items(), key=lambda item: -item[1])
    return ", ".join(f"{words.get(name, name)} {100 * number / whole:.0f} %" for name, number in parts) or "–"


def inside(printed: Printed, found: Sequence[Played]) -> str:
    """Whether the printed shares could come from another run of ours, given the spread of seeds and chance."""
    parts = {"white": printed.white, "black": printed.black, "drawn": printed.drawn}
    missed = []
    for part, share in parts.items():
        if share is None:
            continue
        shares = [getattr(played, part) / played.games for played in found]
        middle = mean(shares)
        between = sum((one - middle) ** 2 for one in shares) / (len(shares) - 1) if len(shares) > 1 else 0.0
        chance = max(middle * (1 - middle), 0.002) * (
            1 / printed.games + 1 / sum(played.games for played in found)
        )
        if abs(share / 100 - middle) > Z * sqrt(between + chance) + 0.005:  # printed as whole per cent
            missed.append(part)
    return "inside" if not missed else "outside: " + ", ".join(missed)


def table(results: Results, plan: Plan) -> Iterator[list[str]]:
    """The document's table, with the author's program and our rows below each of its rows."""
    yield ["row", *COLUMNS, "the paper is"]
    for printed in TABLE:
        shown = ["–" if part is None else f"{part:g}" for part in printed[1:5]]
        yield [f"**{printed.name}**: paper", *shown, "", "", "", ""]
        if printed.program:
            yield ["the author's program", *(f"{part:g}" for part in printed.program), "", "", "", ""]
        for name in printed.ours:
            found, total = merged(results, plan, name)
            yield [name, *_cells(found, total), inside(printed, found)]


def more(results: Results, plan: Plan) -> Iterator[list[str]]:
    """Results without a number in the document."""
    yield ["question", "row", *COLUMNS]
    for question, names in MORE.items():
        for name in names:
            yield [question, name, *_cells(*merged(results, plan, name))]


def claims(results: Results, plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Each claim of the document, what we found, and a verdict."""

    def shares(name: str, part: str = "white") -> list[float]:
        return [100 * getattr(played, part) / played.games for played in merged(results, plan, name)[0]]

    def said(name: str, part: str = "white") -> str:
        values = shares(name, part)
        return f"{mean(values):.0f} % [{min(values):.0f}–{max(values):.0f}]"

    first = mean(shares("td-minimax text"))
    yield (
        "TD beats the fixed minimax of three plies that it never met (98 %)",
        (
            f"one ply {said('td-minimax text')}, three plies {said('td-minimax deep')} of games; against the program's "
            f"player, which is a random one there, {said('td-minimax coded')}; where neither sees ends, "
            f"{said('td-minimax blind')}"
        ),
        "holds" if first > 50 else "holds against the program's player, not against a sound search",
    )
    yield (
        "the net of one side cannot play the other",
        (
            f"as black against Random it wins {said('turned literal text', 'black')} maximising white's chance, "
            f"{said('turned minimised text', 'black')} minimising it; a net trained for black wins "
            f"{said('black', 'black')}. Where players do not see ends: {said('turned literal blind', 'black')}, "
            f"{said('turned minimised blind', 'black')} and {said('black blind', 'black')}"
        ),
        "cannot be judged against Random if a player sees that it can take the king: it wins whatever its net says"
        + (
            "; holds if players do not see ends"
            if mean(shares("black blind", "black"))
            > max(mean(shares(name, "black")) for name in ("turned literal blind", "turned minimised blind"))
            + 10
            else ""
        )
        if min(mean(shares(name, "black")) for name in ("turned literal text", "turned minimised text")) > 90
        else "holds"
        if mean(shares("turned literal text", "black")) < 60
        else "does not hold",
    )
    apart = (mean(shares("td text")), mean(shares("black", "black")))
    one = (mean(shares("both as white")), mean(shares("both as black", "black")))
    yield (
        "can one evaluation serve both sides?",
        (
            f"against Random, white {apart[0]:.0f} % and black {apart[1]:.0f} % by a net each, {one[0]:.0f} % and "
            f"{one[1]:.0f} % by one net with half of its games on each side"
        ),
        _cost(difference(shares("both as white"), shares("td text"))),
    )
    fixed = merged(results, plan, "minimax-minimax text")[1]
    yield (
        "the tuned weights of black are better than those of white (47 to 33 %)",
        (
            f"three plies against each other: white {100 * fixed.white / fixed.games:.0f} %, black "
            f"{100 * fixed.black / fixed.games:.0f} %"
        ),
        "holds" if fixed.black > fixed.white else "does not hold",
    )
    td = merged(results, plan, "td text")[1]
    coded = merged(results, plan, "td coded")[1]
    blind = merged(results, plan, "td blind")[1]
    yield (
        "TD plays for captures rather than for exits",
        f"white's wins: {by(td, 'w')}; by the program's recipe: {by(coded, 'w')}; blind: {by(blind, 'w')}",
        "holds" if td.reasons.get("w all_captured", 0) > td.white / 2 else "does not hold in this reading",
    )
    turns = td.plies / td.games / 2
    yield (
        "fewer than 25 turns against a novice: the goal, missed",
        f"{turns:.0f} turns against Random",
        "missed here too" if turns > 25 else "reached",
    )
    yield (
        "the learned features should work on other boards",
        (
            f"on 9 x 9 against Random: learned on 7 x 7 {said('features 7x7 on 9x9')}, "
            f"on 9 x 9 {said('features 9x9')}, "
            f"before learning {said('features untrained 9x9')}"
        ),
        "holds"
        if mean(shares("features 7x7 on 9x9")) > mean(shares("features untrained 9x9")) + 5
        else "nothing that was learned carries over",
    )


def _cost(white: tuple[float, float] | None) -> str:
    """The cost for white of sharing a network, from the interval of the difference."""
    if white is None:
        return "too few seeds"
    if white[1] >= 0:
        return "yes"
    return f"yes, at a cost to white of {-white[1]:.0f} to {-white[0]:.0f} points"


def draw(folder: Path, plan: Plan, results: Results, *, png: bool = False) -> list[Path]:  # noqa: ARG001 - one form
    """Draw the results of training games, by hundreds of games."""
    named = {
        "TD(0)": "white", "TD(0.7)": "white-lambda", "TD(0), blind": "white-blind",
        "the program's recipe": "white-coded",
    }  # fmt: skip
    over = [float(plan.generation_games * number) for number in range(1, plan.generations + 1)]
    curves: Mapping[str, list[list[float]]] = {
        name: [
            [100 * entry["results"][0] / entry["games"] for entry in read_log(run_folder(folder, kind, seed))]
            for seed in plan.seeds
        ]
        for name, kind in named.items()
    }
    title = (
        f"{'QUICK  ' if plan.quick else ''}White learns against Random, 7 x 7",
        (
            f"games won while learning, one move of ten at random; mean of {len(plan.seeds)} seeds"
            f"{with_intervals(len(plan.seeds))}, {plan.generation_games} games a point"
        ),
    )
    sheet, height = figures.figure(
        title, [Axes("games", dict.fromkeys(curves, over))], curves, {}, "games won, %"
    )
    return figures.write(folder / "figures" / "learning", sheet, height, png=png)


def branches(plan: Plan) -> Iterator[list[str]]:
    """The number of legal moves, and of those that alpha-beta examines."""
    yield ["board", "moves: paper", "moves", "with alpha-beta: paper", "with alpha-beta"]
    for name, board, moves, searched in ((SMALL, "7 x 7", "42", "28"), (LARGE, "9 x 9", "61", "")):
        found = branching(name, max(2, round(BRANCHING_GAMES * plan.share)))
        yield [board, moves, f"{found.legal:.0f}", searched, f"{found.searched:.0f}"]


def early(folder: Path, plan: Plan, kind: str) -> str:
    """The percentage of the first 300 games that a kind of player won while learning."""
    last = max(1, EARLY // plan.generation_games)
    shares = []
    for seed in plan.seeds:
        entries = read_log(run_folder(folder, kind, seed))[:last]
        shares.append(
            100 * sum(entry["results"][0] for entry in entries) / sum(entry["games"] for entry in entries)
        )
    return cell(shares)


def write(folder: Path, plan: Plan, results: Results, drawn: Sequence[Path], command: str) -> Path:
    """Write `report.md` and the tables as CSV; returns the report's path."""
    learning = [["kind of run", "won, %"], *([kind, early(folder, plan, kind)] for kind in KINDS)]
    sections = [
        Section("table", "The table", "", list(table(results, plan))),
        Section("more", "Beyond its numbers", "", list(more(results, plan))),
        Section(
            "early",
            f"The first {EARLY} games of training",
            "The paper: 65 to 70 %. One move of ten is random.",
            learning,
        ),
        Section(
            "branching",
            "Moves in a position",
            "In the first ten turns: legal moves in random games, and the branching factor of a uniform tree with as "
            "many nodes as alpha-beta visits in three plies (the hand-tuned player against itself, without move "
            "ordering).",
            list(branches(plan)),
        ),
        Section("claims", "Claims", "", [("the document", "here", "verdict"), *claims(results, plan)]),
        Section(
            "readings", "Readings", "", [("", "the text", "text reading", "coded reading"), *READINGS, BLIND]
        ),
    ]
    lines = [
        *report.head("Tablut by temporal differences, repeated", command, quick=plan.quick),
        (
            f"{len(plan.seeds)} seeds from {plan.seeds[0]}, each with {plan.generations * plan.generation_games} games "
            "of training. Where seeds differ, a cell has their mean, their [range] and the 95 % interval of the mean "
            "(seeds resampled); elsewhere it has Wilson's 95 % interval over the games. Turns are pairs of plies. A "
            "number of the paper inside our range is consistent with our runs, not confirmed by them."
        ),
        "",
    ]
    return report.write(folder, lines, sections, report.pictures(folder, drawn))
