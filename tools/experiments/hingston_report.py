"""The report of the experiments of 2007: our tables and the paper's, claims with verdicts, figures with spread."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import exp
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from hnefi.engine.wording import counted
from hnefi.protocol.hosts.text_table import markdown_table

from ..common import paper_hingston as paper
from ..common.matches import Tally, total
from . import figures, report
from .hingston import OPPONENTS, Plan, Run
from .measuring import Cell, Results
from .spread import foreseen, log_likelihood, with_intervals

READINGS = {"random": ("random-blind", "random-terminal"), "simple": ("simple",)}
"""Possible readings of the paper's opponents."""
COUNTS: dict[str, Callable[[Tally], int]] = {
    "won as red": lambda tally: tally.attacking.won,
    "won as white": lambda tally: tally.defending.won,
    "lost as red": lambda tally: tally.attacking.lost,
    "lost as white": lambda tally: tally.defending.lost,
}


class Held(NamedTuple):
    """One number of the paper and ours: games out of `n`, ours scaled to the paper's n."""

    depth: int
    opponent: str
    counted: str
    paper: int
    n: int
    mean: float
    low: float
    high: float
    foreseen: tuple[int, int] | None
    """The range that our seeds predict; None if there are too few seeds."""

    @property
    def verdict(self) -> str:
        """Whether the paper's number is in the range that our seeds predict, or `too few seeds`."""
        if self.foreseen is None:
            return "too few seeds"
        return "inside" if self.foreseen[0] <= self.paper <= self.foreseen[1] else "outside"


def finals(plan: Plan, results: Results, rules: str, trained: str, opponent: str, depth: int) -> list[Tally]:
    """The tests of the last generation, one for each seed."""
    return [
        results[Cell(Run(rules, trained, seed), plan.generations, opponent, depth)] for seed in plan.seeds
    ]


def table(plan: Plan, results: Results, rules: str) -> list[Held]:
    """Table 1 or 2 of the paper, cell by cell."""
    held = []
    for (depth, opponent), row in paper.TABLES[rules].items():
        n = paper.MATCHES[depth]
        for reading in READINGS[opponent]:
            tallies = finals(plan, results, rules, plan.trained[0], reading, depth)
            for (name, of), printed in zip(COUNTS.items(), row, strict=True):
                counts, played = [of(tally) for tally in tallies], [tally.matches.all for tally in tallies]
                shares = [count / games for count, games in zip(counts, played, strict=True)]
                held.append(
                    Held(
                        depth,
                        reading,
                        name,
                        printed,
                        n,
                        n * mean(shares),
                        n * min(shares),
                        n * max(shares),
                        foreseen(counts, played, n),
                    )
                )
    return held


def explained(row: paper.Row, n: int, tallies: Sequence[Tally]) -> float:
    """How well runs explain a row of the paper, `n` games on each side, as the natural logarithm of a likelihood."""
    value = 0.0
    for printed, games in (
        ((row.won_red, row.lost_red), [tally.attacking for tally in tallies]),
        ((row.won_white, row.lost_white), [tally.defending for tally in tallies]),
    ):
        won, lost, played = zip(*((side.won, side.lost, side.all) for side in games), strict=True)
        value += log_likelihood(printed, n, won, lost, played)
    return value


def readings(plan: Plan, results: Results) -> dict[tuple[str, ...], float]:
    """How well each reading of Random, one word for each depth, explains the paper's results against Random.

    Natural logarithms of likelihoods, best first: wins and losses of either side under both rule sets. Rows are treated
    as independent, although one run played them all.
    """
    found = {
        (depth, reading): sum(
            explained(
                paper.TABLES[rules][depth, "random"],
                paper.MATCHES[depth],
                finals(plan, results, rules, plan.trained[0], reading, depth),
            )
            for rules in paper.RULES
            if rules in plan.rules
        )
        for depth in paper.DEPTHS
        for reading in READINGS["random"]
    }
    sums = {
        words: sum(found[depth, word] for depth, word in zip(paper.DEPTHS, words, strict=True))
        for words in product(READINGS["random"], repeat=len(paper.DEPTHS))
    }
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def tie_breaks(plan: Plan, results: Results, rules: str) -> list[list[str]]:
    """Matches won, and matches decided by captures, pooled over seeds."""
    rows = [["opponent", "plies", "matches", "won", "drawn", "lost", "decided by captures", "games drawn"]]
    for opponent in OPPONENTS:
        for depth in paper.DEPTHS:
            found = total(finals(plan, results, rules, plan.trained[0], opponent, depth))
            games = found.attacking.plus(found.defending)
            rows.append(
                [
                    opponent,
                    str(depth),
                    str(found.matches.all),
                    *(percent(part / found.matches.all) for part in found.matches),
                    percent(found.by_captures / found.matches.all),
                    percent(games.drawn / games.all),
                ]
            )
    return rows


class Claim(NamedTuple):
    """A claim of the paper, what we found, and whether it holds here."""

    said: str
    found: str
    verdict: str


def claims(plan: Plan, results: Results) -> Iterator[Claim]:
    """Every claim of the text that our tests can judge."""
    original, alternative = paper.RULES

    def share(rules: str, opponent: str, depth: int) -> float:
        return mean(won_shares(plan, results, rules, opponent, depth))

    red, white, lost_red, lost_white = _totals(plan, results, original)
    ratio, lost = white / max(red, 1e-9), lost_red / max(lost_white, 1e-9)
    yield Claim(
        "original rules: white wins three times as easily as red (134 : 39 = 3.4)",
        f"{ratio:.1f} times, with rows weighted as in the table",
        "holds" if ratio > 1.5 else "does not hold",
    )
    yield Claim(
        "original rules: red loses ten times as easily as white (137 : 11 = 12.5)",
        f"{lost:.1f} times",
        "holds" if lost > 2.5 else "does not hold",
    )
    terminal = share(original, "random-terminal", 1)
    yield Claim(
        "figure 4: against Random about 80 % at 1 ply",
        f"{percent(share(original, 'random-blind', 1))} against blind Random, {percent(terminal)} against one that "
        "sees wins and losses",
        _near(0.8, share(original, "random-blind", 1), terminal),
    )
    deep = {depth: share(original, "random-terminal", depth) for depth in paper.DEPTHS}
    blind = {depth: share(original, "random-blind", depth) for depth in paper.DEPTHS}
    yield Claim(
        "figure 4: better than 90 % at 2 plies, steady 100 % at 3",
        f"blind {percent(blind[2])} and {percent(blind[3])}, terminal {percent(deep[2])} and {percent(deep[3])}",
        "holds"
        if blind[2] > 0.9 and blind[3] > 0.95
        else "holds in part"
        if max(blind[2], deep[2]) > 0.9
        else "does not hold",
    )
    simple = {
        (rules, depth): share(rules, "simple", depth) for rules in paper.RULES for depth in paper.DEPTHS
    }
    for rules, figure in ((original, 5), (alternative, 7)):
        one, two, three = (simple[rules, depth] for depth in paper.DEPTHS)
        yield Claim(
            f"figure {figure}: against Simple much worse at 2 plies than at 1 and at 3",
            f"{percent(one)}, {percent(two)}, {percent(three)}",
            "holds"
            if two < one and two < three
            else "holds in part"
            if two < max(one, three)
            else "does not hold",
        )
    yield Claim(
        "figure 5: around 30 % against Simple at 1 ply",
        percent(simple[original, 1]),
        _near(0.3, simple[original, 1]),
    )
    yield Claim(
        "figure 7: ahead of Simple at 1 ply under the alternative rules",
        percent(simple[alternative, 1]),
        "holds" if simple[alternative, 1] > 0.5 else "does not hold",
    )
    yield Claim(
        "the alternative rules make the game easier to learn (better against Simple at 1 ply)",
        f"{percent(simple[alternative, 1])} against {percent(simple[original, 1])}",
        "holds" if simple[alternative, 1] > simple[original, 1] else "does not hold",
    )
    level = total(finals(plan, results, alternative, plan.trained[0], "simple", 3))
    yield Claim(
        "alternative rules: red and white balanced at 3 plies",
        f"against Simple red won {percent(level.attacking.won / level.attacking.all)}, white won "
        f"{percent(level.defending.won / level.defending.all)}",
        _near(level.attacking.won / level.attacking.all, level.defending.won / level.defending.all),
    )
    if "simple" in plan.trained:
        against = mean(
            tally.matches.won / tally.matches.all
            for tally in finals(plan, results, original, "simple", "simple", 3)
        )
        yield Claim(
            "evolved with Simple in Random's place, about equal to Simple at 3 plies",
            f"{percent(against)} of matches won under the original rules",
            _near(0.5, against),
        )
    raw, effective = branching(plan, results, original)
    yield Claim(
        "over 100 moves in a position; 10 to 20 effective with alpha-beta",
        f"{raw:.0f} moves valued at 1 ply; the cube root of the positions valued at 3 plies is {effective:.1f}",
        "holds" if raw > 60 and 8 <= effective <= 25 else "holds in part",
    )


def _near(paper_share: float, *ours: float) -> str:
    """A verdict: whether all of our shares are within 10 percentage points of the paper's."""
    gap = min(abs(share - paper_share) for share in ours)
    return "holds" if gap <= 0.1 else "holds in part" if gap <= 0.2 else "does not hold"


def _totals(plan: Plan, results: Results, rules: str) -> tuple[float, float, float, float]:
    """The table's last line from our tests against blind Random and Simple, with rows weighted as in the paper."""
    sums = dict.fromkeys(COUNTS, 0.0)
    for held in table(plan, results, rules):
        if held.opponent != "random-terminal":
            sums[held.counted] += held.mean
    red, white, lost_red, lost_white = sums.values()
    return red, white, lost_red, lost_white


def branching(plan: Plan, results: Results, rules: str) -> tuple[float, float]:
    """Positions evaluated per move at 1 ply, and the cube root of those at 3 plies; Simple searches as we do."""
    one, three = (total(finals(plan, results, rules, plan.trained[0], "simple", depth)) for depth in (1, 3))
    return one.evaluations / one.plies, (three.evaluations / three.plies) ** (1 / 3)


def won_shares(plan: Plan, results: Results, rules: str, opponent: str, depth: int) -> list[float]:
    """The share of matches won at the end, by seed."""
    return [
        tally.matches.won / tally.matches.all
        for tally in finals(plan, results, rules, plan.trained[0], opponent, depth)
    ]


def percent(share: float) -> str:
    """A share from 0 to 1 as a percentage, with a decimal below 10 %."""
    return f"{100 * share:.0f} %" if share in (0, 1) or share > 0.0999 else f"{100 * share:.1f} %"


# The pages


def write(folder: Path, plan: Plan, results: Results, drawn: Sequence[Path], command: str) -> Path:
    """Write `report.md` and the tables as CSV; returns the report's path."""
    lines = [
        *report.head("Hingston 2007, repeated", command, quick=plan.quick),
        (
            f"{len(plan.seeds)} seeds ({', '.join(map(str, plan.seeds))}), {plan.generations} generations; tests of "
            f"the last generation: {matches_by_depth(plan.final)}; of the others: "
            f"{matches_by_depth(plan.tests)}. A match is two games "
            "with sides swapped. Percentages are of matches won; draws do not count as wins."
        ),
        "",
        (
            "*foreseen*: the counts between which 95 % of single runs like the paper's would lie, judged by our seeds. "
            "Each run is taken to have a share of its own, drawn from a beta distribution of unknown mean and spread, "
            "and then plays as many games as the paper's. Numbers of one row depend on each other."
        ),
        "",
    ]
    for number, rules in enumerate(paper.RULES, 1):
        if rules in plan.rules:
            lines += _table(folder, number, rules, table(plan, results, rules))
            lines += [f"Matches of the last generation under {rules}, all seeds together:", ""]
            lines += [*markdown_table(tie_breaks(plan, results, rules)), ""]
    if set(paper.RULES) & set(plan.rules):
        lines += ["## Which Random?", "", *_readings(plan, results), ""]
    lines += ["## Claims", ""]
    if set(paper.RULES) <= set(plan.rules):
        rows = [["the paper", "here", "verdict"], *claims(plan, results)]
        lines += [*markdown_table(rows), ""]
    lines += ["## Figures", ""]
    for path in drawn:
        if path.suffix == ".svg":
            lines += [f"![{path.stem}]({path.relative_to(folder).as_posix()})", ""]
    lines += ["## Text and choices", "", *markdown_table(CHOICES), ""]
    path = folder / "report.md"
    path.write_text("\n".join(lines))
    return path


def matches_by_depth(numbers: Mapping[int, int]) -> str:
    """`200 matches at 1 ply, 1 match at 2 plies`."""
    return ", ".join(
        f"{counted(number, 'match', 'matches')} at {counted(depth, 'ply', 'plies')}"
        for depth, number in numbers.items()
    )


def _table(folder: Path, number: int, rules: str, held: Sequence[Held]) -> list[str]:
    rows = [["plies", "opponent", "", "paper", "ours: mean [min-max]", "foreseen", "verdict"]]
    rows += [
        [
            str(cell.depth),
            cell.opponent,
            cell.counted,
            f"{cell.paper} of {cell.n}",
            f"{cell.mean:.1f} [{cell.low:.1f}-{cell.high:.1f}]",
            "-".join(map(str, cell.foreseen or ())),
            cell.verdict,
        ]
        for cell in held
    ]
    with (folder / f"table-{number}.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    inside = sum(cell.verdict == "inside" for cell in held)
    return [
        f"## Table {number}: {rules}",
        "",
        *markdown_table(rows),
        "",
        f"{inside} of {len(held)} rows are inside. Numbers against Random have two rows, one for each reading.",
        "",
    ]


def _readings(plan: Plan, results: Results) -> list[str]:
    found = readings(plan, results)
    best = max(found.values())
    whole = sum(exp(value - best) for value in found.values())
    rows = [["1 ply", "2 plies", "3 plies", "log-likelihood", "below the best", "probability"]]
    rows += [
        [
            *(word.removeprefix("random-") for word in words),
            f"{value:.1f}",
            f"{best - value:.1f}",
            f"{exp(value - best) / whole:.2g}",
        ]
        for words, value in found.items()
    ]
    return [
        (
            "How well each reading explains the paper's games against Random under its rule sets, as natural "
            "logarithms. *Probability*: among these readings, if all were equally likely beforehand. Rows of the "
            "tables are treated as independent, although one run played them all, so the differences are overstated."
        ),
        "",
        *markdown_table(rows),
    ]


CHOICES = (
    ("the text", "here"),
    ("26 red pieces", "24: the diamond that the standard drawing shows"),
    ("100 moves", "100 plies"),
    ("only the king may move onto a burg or the castle", "men pass over them"),
    ("burg or castle count as an attacker", "an empty castle is hostile to all, a held one to attackers"),
    ("games", "matches: the tables sum to 100, 20 and 10 on each side"),
    (
        "Random: all positions equally",
        "both readings: blind, and one that sees wins and losses as deep as it looks",
    ),
    ("2,862 weights", "2,463: what the described network has"),
    (
        "tau = 1/sqrt(2n), tau' = 1/sqrt(2 sqrt n), used as printed",
        "as printed: the global factor is 0.100, that of each weight 0.014",
    ),
    ("sigma without a parent's index", "each child inherits its own parent's"),
    ("wins above every other value", "nearer wins are preferred"),
)
"""The text and our choice for every place where the paper can be read in more than one way."""


# Figures

DEPTHS = (1, 2, 3)


def draw(folder: Path, plan: Plan, results: Results, *, png: bool = False) -> list[Path]:
    """Figures 4 to 7 as SVG; `png` needs matplotlib."""
    made: list[Path] = []
    generations = list(map(float, plan.tested()))
    for (rules, opponent), (number, _) in paper.FIGURES.items():
        for reading in READINGS[opponent] if rules in plan.rules else ():
            curves = {
                called(depth): [
                    [
                        _share(results[Cell(Run(rules, plan.trained[0], seed), at, reading, depth)])
                        for at in plan.tested()
                    ]
                    for seed in plan.seeds
                ]
                for depth in DEPTHS
            }
            axes = [figures.Axes("generation", dict.fromkeys(curves, generations))]
            title = heading(number, rules, reading, len(plan.seeds), plan.tests, plan.quick)
            sheet, height = figures.figure(title, axes, curves, levels(rules, reading))
            name = f"figure-{number}" + ("-terminal" if reading == "random-terminal" else "")
            made += figures.write(folder / "figures" / name, sheet, height, png=png)
    return made


def called(depth: int) -> str:
    """The name of the curve for a depth."""
    return f"{depth} ply" if depth == 1 else f"{depth} plies"


def levels(rules: str, reading: str) -> dict[str, tuple[float | None, float | None]]:
    """The values at which the paper's curves begin and end, in per cent."""
    kind = "simple" if reading == "simple" else "random"
    found = {depth: paper.LEVELS.get((rules, kind, depth)) for depth in DEPTHS}
    return {
        called(depth): tuple(None if end is None else 100 * end for end in ends)  # type: ignore[misc]
        for depth, ends in found.items()
        if ends
    }


def heading(
    number: int, rules: str, reading: str, seeds: int, tests: Mapping[int, int], quick: bool
) -> tuple[str, str]:
    """The title lines of a figure."""
    games = " / ".join(str(2 * tests[depth]) for depth in DEPTHS)
    return (
        f"{'QUICK  ' if quick else ''}Figure {number}: {rules} against {reading}",
        (
            f"mean of {seeds} seeds{with_intervals(seeds)}, thin lines single seeds; {games} games a point at "
            "1 / 2 / 3 plies; bars at the edges: the paper's levels"
        ),
    )


def _share(tally: Tally) -> float:
    return 100 * tally.matches.won / tally.matches.all
