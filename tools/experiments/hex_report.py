"""The report on evolution on a torus: every configuration against Random and against each other, the document's claims,
exact openings. It covers finished runs and says what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from hnefi.tools.evolve.folder import read_log

from ..common.svg_chart import MARGIN, Curve, Outline, Panel, Scale, Sheet, curve_of
from . import figures, report
from .figures import Axes
from .hex import (
    CONFIGURATIONS,
    EXPONENTIAL,
    FUTURE,
    NO_SWAP,
    VANILLA,
    Measured,
    Plan,
    Results,
    Run,
    head_to_head,
    population,
)
from .report import Section
from .spread import FEWEST, cell, difference

BAND = "#d9d5dd"
LEFT, WIDE, HEIGHT = 62, 620, 320
NUMBERED = {VANILLA: "figure-2", NO_SWAP: "figure-3", EXPONENTIAL: "figure-4"}
"""Figures of the document."""
ONE_SIDED = 0.025
"""The probability up to which a one-sided claim counts as not due to chance, in line with a 95 % interval."""
TOO_FEW = f"too few runs (at least {FEWEST} of each)"
ALIKE = ("inertia-50", "inertia-50-kept", "swap-25", "swap-50")
READINGS = (
    ("size of the board", "not said; figure 1 has 11x11", "11x11; 5x5 for exact openings"),
    ("generations", "not said", "400"),
    ("biases of the network", "not said", "yes: 616 weights"),
    (
        "the second player's board",
        "own and opponent's stones",
        "not turned: it sees the board as the first player does",
    ),
    ("equal moves", "not said", "drawn at random"),
    ("who is replaced", "'each weight of each player'", "all at the same time, from the old population"),
    (
        "source of a weight",
        "'our neighbors and our currently looked-at player'",
        "one of the seven, drawn for each weight",
    ),
    ("none of the seven has won", "not said", "all are equally likely"),
    ("kept weights (inertia)", "not said whether they are shaken", "shaken; not shaken: inertia-50-kept"),
    ("swap", "'one pair of weights'", "two different weights of the player, any two"),
    (
        "games against Random",
        "'2000 random players'",
        "1,000 as first, 1,000 as second, a uniformly random opponent",
    ),
)


# Figures of a run


def share(found: Measured, games: int) -> list[float]:
    """The percentage of games that each player won against Random."""
    return [100 * sum(wins) / games for wins in found.wins]


def inner_spread(found: Measured, games: int) -> float:
    """The spread of the players of a population in percentage points: their standard deviation less the part that luck
    in this number of games explains."""
    shares = share(found, games)
    luck = mean(one * (100 - one) / games for one in shares)
    return float(max(0.0, stdev(shares) ** 2 - luck) ** 0.5)


def best(found: Measured, games: int) -> float:
    """The percentage of fresh games that the best player won."""
    return 100 * sum(found.confirmed) / games


def _means(runs: Mapping[Run, Measured], plan: Plan) -> list[float]:
    return [mean(share(found, plan.games)) for found in runs.values()]


# Pictures


def draw(folder: Path, plan: Plan, results: Results, *, png: bool) -> list[Path]:
    """Draw figures 2 to 4 of the document, the same for the other configurations, and their course over generations."""
    made = []
    stamp = ["QUICK: not meaningful"] if plan.quick else []
    vanilla = [sorted(share(found, plan.games)) for found in results.of(plan.board, VANILLA).values()]
    for configuration in CONFIGURATIONS:
        found = results.of(plan.board, configuration)
        if not found:
            continue
        curves = {f"seed {run.seed}": sorted(share(one, plan.games)) for run, one in found.items()}
        band = "" if configuration == VANILLA else "; grey: the runs of vanilla"
        what = (
            f"{plan.board}, {plan.generations} generations, {len(found)} runs, {plan.games:,} games a player"
        )
        title = [
            f"{configuration}: each player of the last population against Random",
            f"{what}; players sorted by wins{band}",
            *stamp,
        ]
        sheet, height = _ranked(title, curves, [] if configuration == VANILLA else vanilla)
        name = NUMBERED.get(configuration, configuration)
        made += figures.write(folder / "figures" / name, sheet, height, png=png)
    for board, name in ((plan.board, "generations"), (plan.solved, "generations-small")):
        made += _over_time(folder, results, board, name, stamp, png=png)
    return made


def _ranked(
    title: Sequence[str], curves: Mapping[str, Sequence[float]], band: Sequence[Sequence[float]]
) -> tuple[Sheet, float]:
    """Shares won by rank, a curve for each run, over the band of the other runs."""
    sheet = Sheet(LEFT + WIDE + 2 * MARGIN, title)
    looks = [
        Curve(look.name, look.colour, "", look.dash, 1.6)
        for look in map(curve_of, curves, range(len(curves)))
    ]
    top = sheet.legend_below(looks, sheet.top + 4, LEFT) + 4
    everything = [value for values in (*curves.values(), *band) for value in values]
    low, high = _tens(everything)
    count = max(map(len, curves.values()))
    panel = Panel(sheet, LEFT, top, WIDE, HEIGHT, Scale(1, max(2, count)), Scale(low, high))
    if band:
        edges = [
            (rank, end(values))
            for end in (min, max)
            for rank, values in enumerate(zip(*band, strict=True), 1)
        ]
        half = len(edges) // 2
        outline = [*edges[:half], *reversed(edges[half:])]
        sheet.add(Outline(tuple(panel.at(*point) for point in outline), BAND, 0, "", BAND, closed=True))
    panel.ticks_left([(value, f"{value:g}") for value in range(low, high + 1, 10)])
    ticks = [(1.0, "1"), *((float(rank), str(rank)) for rank in range(20, count + 1, 20))]
    lowest = panel.ticks_below(ticks, grid=True)
    below = panel.called_below("player, from the fewest wins to the most", lowest)
    for look, values in zip(looks, curves.values(), strict=True):
        panel.line(enumerate(values, 1), look.colour, look.width, look.dash)
    panel.frame()
    panel.called_left("games won, %", 20)
    return sheet, below + MARGIN


def _tens(values: Sequence[float]) -> tuple[int, int]:
    """The multiples of ten around all values."""
    return 10 * int(min(values) // 10), 10 * -int(-max(values) // 10)


def _over_time(
    folder: Path, results: Results, board: str, name: str, stamp: Sequence[str], *, png: bool
) -> list[Path]:
    """The whole population against Random, as measured during the runs."""
    curves: dict[str, list[list[float]]] = {}
    over: dict[str, list[float]] = {}
    for configuration in CONFIGURATIONS:
        for run in results.of(board, configuration):
            points = {
                entry["v_random"]["generation"]: 100 * entry["v_random"]["mean"]
                for entry in read_log(folder / run.folder)
            }
            curves.setdefault(configuration, []).append(list(points.values()))
            over[configuration] = list(points)
    if not curves:
        return []
    what = (
        f"{board}, mean over runs with its interval, thin lines single runs; 20 games a player at each point"
    )
    sheet, height = figures.figure(
        ["The population against Random", what, *stamp],
        [Axes("generation", over)],
        curves,
        {},
        "games won, %",
        _tens([value for seeds in curves.values() for seed in seeds for value in seed]),
    )
    return figures.write(folder / "figures" / name, sheet, height, png=png)


# The report


def write(folder: Path, plan: Plan, results: Results, drawn: Sequence[Path], command: str) -> Path:
    """Write `report.md` and its tables as CSV; returns the report's path."""
    sections = [
        Section("claims", "The claims", "", claims(plan, plan.board, results)),
        Section(
            "random",
            "Against Random",
            _random_note(plan),
            random_table(plan, plan.board, CONFIGURATIONS, results),
        ),
        Section("runs", "Every run", "", runs_table(plan, results)),
        Section("matrix", "Populations against each other", _matrix_note(plan), matrix(plan, results)),
        Section(
            "pairs",
            "Every pair of runs",
            "Percentage of games won by the run of the row.",
            pairs(plan, results),
        ),
        Section(
            "small-claims",
            f"The claims on {plan.solved}",
            "The document does not say which board it used.",
            claims(plan, plan.solved, results),
        ),
        Section(
            "small",
            f"Against Random on {plan.solved}",
            "",
            random_table(plan, plan.solved, CONFIGURATIONS, results),
        ),
        Section("openings", "Exact openings", _openings_note(plan), openings_table(plan, results)),
        Section("future", "Future work", _future_note(plan), future_table(plan, results)),
        Section("readings", "Text and what we chose", "", [("what", "text", "chosen"), *READINGS]),
    ]
    lines = [
        *report.head("Evolution on a torus: Hex", command, quick=plan.quick),
        *missing(plan, results),
        "",
    ]
    ending = [*games(folder, plan, results), "", *report.pictures(folder, drawn)]
    return report.write(folder, lines, sections, ending)


def missing(plan: Plan, results: Results) -> list[str]:
    """A sentence about unfinished work."""
    lacking: dict[tuple[str, str], int] = {}
    for run in plan.runs():
        if run not in results.runs:
            lacking[run.board, run.configuration] = lacking.get((run.board, run.configuration), 0) + 1
    whole = sum(1 for _ in plan.runs())
    done = f"{whole - sum(lacking.values())} of {whole} runs are finished"
    if not lacking:
        return [f"All {whole} runs are finished."]
    words = ", ".join(f"{name} on {board} ({count})" for (board, name), count in lacking.items())
    return [f"**{done}.** Missing: {words}."]


def claims(plan: Plan, board: str, results: Results) -> list[list[str]]:
    """The document's claims, each with what we found on a board and a verdict."""
    rows = [["claim", "found", "verdict"]]
    vanilla = results.of(board, VANILLA)
    if len(vanilla) < 2:
        return rows
    ours = _means(vanilla, plan)
    inside = mean(inner_spread(one, plan.games) for one in vanilla.values())
    between = stdev(ours)
    apart = f"standard deviation {between:.1f} points"
    closer = between < inside
    verdict = f"{'holds' if closer else 'does not hold'}: runs lie {'closer together' if closer else 'further apart'}"
    verdict = f"{verdict} than the players of a run" if len(ours) >= FEWEST else TOO_FEW
    found = f"means {min(ours):.1f} to {max(ours):.1f} %, {apart}; within a population {inside:.1f}"
    rows.append(["the vanilla runs produce similar results", found, verdict])
    other = results.of(board, NO_SWAP)
    if len(other) > 1:
        one, two = ([inner_spread(found, plan.games) for found in runs.values()] for runs in (other, vanilla))
        found = f"spread within {mean(one):.1f} points, vanilla {mean(two):.1f}{_between(one, two)}"
        verdict = _verdict(difference(one, two), "holds", up=False)
        rows.append(["without swaps players within a population are alike", found, verdict])
        one, two = ([found.diversity for found in runs.values()] for runs in (other, vanilla))
        found = f"spread of the weights {mean(one):.1f}, vanilla {mean(two):.1f}{_between(one, two)}"
        rows.append(["the same, by their weights", found, _verdict(difference(one, two), "holds", up=False)])
        theirs = _means(other, plan)
        found = (
            f"means {min(theirs):.1f} to {max(theirs):.1f} %, standard deviation {stdev(theirs):.1f}, vanilla"
        )
        one, two = ([abs(value - mean(means)) for value in means] for means in (theirs, ours))
        chance = by_chance(one, two)
        found += f" {between:.1f}; mean distance from the middle {mean(one):.1f} and {mean(two):.1f}"
        if min(len(one), len(two)) < FEWEST:
            verdict = TOO_FEW
        elif mean(one) <= mean(two):
            verdict = "not seen: they lie closer together than those of vanilla"
        else:
            verdict = f"{'holds' if chance <= ONE_SIDED else 'not certain'}: as large by chance in {100 * chance:.0f} %"
        rows.append(["without swaps runs differ much", found, verdict])
    other = results.of(board, EXPONENTIAL)
    if len(other) > 1:
        theirs = _means(other, plan)
        over = sum(one > max(ours) for one in theirs)
        found = f"{_beside(theirs, ours)}; {over} of {len(theirs)} runs above every run of vanilla"
        verdict = _verdict(difference(theirs, ours), "holds", up=True)
        rows.append(["exponential selection consistently grows stronger players", found, verdict])
    for name in (*ALIKE, "deep"):
        other = results.of(board, name)
        if len(other) > 1:
            theirs = _means(other, plan)
            claim = f"{name}: {'not better at this length' if name == 'deep' else 'like vanilla'}"
            rows.append([claim, _beside(theirs, ours), _alike(difference(theirs, ours))])
    top = max(best(one, plan.games) for run, one in results.runs.items() if run.board == board)
    found = f"not tested with people; no run's best player wins more than {top:.1f} % against Random, on fresh games"
    rows.append(["none would beat a person who knows Hex", found, "plausible"])
    return rows


def by_chance(one: Sequence[float], other: Sequence[float]) -> float:
    """The probability that the mean of `one` exceeds that of `other` by as much if all values are assigned to the two
    at random (an exact permutation test)."""
    whole = [*one, *other]
    least = sum(one) - 1e-9
    dealt = [sum(chosen) >= least for chosen in combinations(whole, len(one))]
    return sum(dealt) / len(dealt)


def _beside(theirs: Sequence[float], ours: Sequence[float]) -> str:
    return f"{mean(theirs):.1f} %, vanilla {mean(ours):.1f} %{_between(theirs, ours)}"


def _alike(found: tuple[float, float] | None) -> str:
    """A verdict on the claim that there is no difference from vanilla, from the interval of the difference."""
    if found is None:
        return "too few runs"
    low, high = found
    if low <= 0 <= high:
        return "no difference seen"
    return "stronger than vanilla" if low > 0 else "weaker than vanilla"


def _between(one: Sequence[float], other: Sequence[float]) -> str:
    """The difference of two means with its interval, if there are enough runs."""
    found = difference(one, other)
    gap = mean(one) - mean(other)
    return f"; difference {gap:+.1f}" + (f" ({found[0]:+.1f} to {found[1]:+.1f})" if found else "")


def _verdict(found: tuple[float, float] | None, word: str, *, up: bool) -> str:
    """A verdict on whether the interval of a difference lies on the claimed side."""
    if found is None:
        return TOO_FEW
    low, high = found if up else (-found[1], -found[0])
    if low > 0:
        return word
    return "not seen: the other way round" if high < 0 else "not seen: the interval contains 0"


def _random_note(plan: Plan) -> str:
    return (
        f"Each player of the last population plays {plan.games:,} games against a uniformly random opponent, half of "
        "them as first player. The table has the percentage won: mean over runs [least–most] (95 % interval of the "
        "mean; seeds are resampled). *Between*: standard deviation of the runs' means. *Within*: standard deviation of "
        "the players of a population, less what luck explains. *Weights*: standard deviation of a weight over the "
        "players. The best player of each run was chosen by these games and measured on as many fresh ones. Runs of "
        "different configurations with the same seed begin with the same players if their networks have the same size."
    )


def random_table(
    plan: Plan, board: str, configurations: Mapping[str, Any], results: Results
) -> list[list[str]]:
    """Every configuration on a board."""
    rows = [
        [
            "configuration",
            "runs",
            "population",
            "as first",
            "as second",
            "between",
            "within",
            "best, fresh games",
            "weights",
        ]
    ]
    for name in configurations:
        runs = results.of(board, name)
        if not runs:
            continue
        means = _means(runs, plan)
        sides = [
            [200 * mean(wins[side] for wins in one.wins) / plan.games for one in runs.values()]
            for side in range(2)
        ]
        rows.append([
            name,
            str(len(runs)),
            cell(means),
            *(cell(values) for values in sides),
            f"{stdev(means):.1f}" if len(means) > 1 else "–",
            f"{mean(inner_spread(one, plan.games) for one in runs.values()):.1f}",
            cell([best(one, plan.games) for one in runs.values()]),
            f"{mean(one.diversity for one in runs.values()):.1f}",
        ])  # fmt: skip
    return rows


def runs_table(plan: Plan, results: Results) -> list[list[str]]:
    """Every run of the document's configurations by itself."""
    rows = [["configuration", "seed", "population", "within", "best, games chosen by", "best, fresh games"]]
    for run, found in results.runs.items():
        if run.board == plan.board:
            shares = share(found, plan.games)
            rows.append([
                run.configuration,
                str(run.seed),
                f"{mean(shares):.1f}",
                f"{inner_spread(found, plan.games):.1f}",
                f"{max(shares):.1f}",
                f"{best(found, plan.games):.1f}",
            ])  # fmt: skip
    return rows


def _matrix_note(plan: Plan) -> str:
    return (
        f"Each player of a population meets {plan.meetings} players of every other population, on both sides. The "
        "table has the percentage of games won by the row, as the mean over all pairs of runs. The diagonal is left "
        "out, because there both sides are runs of one configuration. *Own*: what the first player wins within a "
        "population. Sorted by *all*."
    )


def _pairs_of(results: Results) -> Iterator[tuple[Run, Run, float]]:
    """Every pair of different runs in both orders."""
    for (one, other), won in results.meetings.items():
        if one != other:
            yield one, other, 100 * won
            yield other, one, 100 * (1 - won)


def matrix(plan: Plan, results: Results) -> list[list[str]]:
    """Configurations against configurations, the strongest first."""
    won: dict[tuple[str, str], list[float]] = {}
    for one, other, share_ in _pairs_of(results):
        won.setdefault((one.configuration, other.configuration), []).append(share_)
    names = [name for name in CONFIGURATIONS if results.of(plan.board, name)]
    if len(names) < 2:
        return [[]]
    total = {name: mean(mean(won[name, other]) for other in names if other != name) for name in names}
    names.sort(key=lambda name: -total[name])
    rows = [["won by", *names, "all", "own: first player"]]
    for name in names:
        own = [
            100 * share_
            for (one, other), share_ in results.meetings.items()
            if one == other and one.configuration == name
        ]
        cells = ["–" if name == other else f"{mean(won[name, other]):.1f}" for other in names]
        rows.append([name, *cells, f"{total[name]:.1f}", f"{mean(own):.1f}"])
    return rows


def pairs(plan: Plan, results: Results) -> list[list[str]]:
    """All runs against all runs."""
    runs = [run for run in results.runs if run.board == plan.board]
    known = {(one, other): share_ for one, other, share_ in _pairs_of(results)}
    rows = [["", *(f"{run.configuration} {run.seed}" for run in runs)]]
    rows += [
        [
            f"{one.configuration} {one.seed}",
            *("–" if one == other else f"{known[one, other]:.0f}" for other in runs),
        ]
        for one in runs
    ]
    return rows if len(runs) > 1 else [[]]


def _openings_note(plan: Plan) -> str:
    from hnefi.engine.games.hex.variant import WINNING_OPENINGS

    table = WINNING_OPENINGS[int(plan.solved.partition(":")[2])].replace("/", "")
    return (
        f"On {plan.solved} {table.count('W')} of {len(table)} first moves win with best play, so a random first move "
        f"wins in {100 * table.count('W') / len(table):.0f} %. The table has the percentage of players of the last "
        "population whose first move wins: mean over runs [least–most] (95 % interval)."
    )


def openings_table(plan: Plan, results: Results) -> list[list[str]]:
    """The openings of the populations on the solved board."""
    rows = [["configuration", "runs", "first move wins", "population against Random", "best, fresh games"]]
    for name in CONFIGURATIONS:
        runs = results.of(plan.solved, name)
        shares = [100 * one.openings for one in runs.values() if one.openings is not None]
        if shares:
            best_ones = [best(one, plan.games) for one in runs.values()]
            rows.append([name, str(len(shares)), cell(shares), cell(_means(runs, plan)), cell(best_ones)])
    return rows


def _future_note(plan: Plan) -> str:
    return (
        f"What the document proposes as future work, {plan.future_generations} generations on {plan.future}; none of "
        "it is a claim of the document. The last column is the difference from vanilla on this board, with its 95 % "
        f"interval. Of {len(FUTURE) + 1} such intervals, one in twenty misses 0 by luck alone."
    )


def future_table(plan: Plan, results: Results) -> list[list[str]]:
    """The future work, with vanilla and exponential for comparison."""
    configurations = {VANILLA: (), EXPONENTIAL: CONFIGURATIONS[EXPONENTIAL], **FUTURE}
    rows = random_table(plan, plan.future, configurations, results)
    ours = _means(results.of(plan.future, VANILLA), plan)
    rows[0].append("beside vanilla")
    for row in rows[1:]:
        theirs = _means(results.of(plan.future, row[0]), plan)
        same = row[0] == VANILLA or not ours
        row.append("–" if same else _between(theirs, ours).removeprefix("; difference "))
    return rows


def games(folder: Path, plan: Plan, results: Results) -> list[str]:
    """Two games between the best players of vanilla and of exponential selection, as boards."""
    from hnefi.engine import games as doors

    chosen = []
    for name in (VANILLA, EXPONENTIAL):
        runs = results.of(plan.board, name)
        if not runs:
            return []
        run = max(runs, key=lambda one: best(runs[one], plan.games))
        found = population(folder, plan, run)
        if found is None:
            return []
        chosen.append((f"{name} {run.seed}", found.seated()[runs[run].best]))
    lines = [
        "## Head to head",
        "",
        "These are games between the best players of both, by their fresh games; x joins top and bottom.",
        "",
    ]
    start = doors.initial(doors.find(plan.board))
    for first, second in (chosen, chosen[::-1]):
        end = head_to_head(first[1], second[1], start)
        assert end.outcome is not None
        winner = (first, second)[int(end.outcome.winner or 0)][0]
        plies = 2 * end.move_number - 2 + int(end.side)
        lines += [f"x {first[0]}, o {second[0]}: {winner} wins after {plies} stones.", "", "```"]
        lines += [*end.diagram().splitlines(), "```", ""]
    return lines[:-1]
