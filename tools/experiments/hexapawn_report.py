"""The report on HexapawnZero: its log compared with ours, agreement with the exact solution, larger boards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hnefi.tools.evolve.folder import read_log

from . import figures, report
from .figures import Axes
from .hexapawn import FINAL_GAMES, Plan, Results, Run
from .report import Section
from .spread import cell, foreseen, with_intervals

LOG = {1: (10, 4), 2: (10, 1), 3: (10, 0), 4: (10, 0), 5: (10, 0)}
"""Games won by the copy in the document's log, out of ten each: as black, as white."""
FINAL = (25, 15)
"""The same at the end against an untrained network, out of 25 each."""
GATE = 10

READINGS = (
    (
        "simulations of a move",
        "'a bunch'",
        "10: the printed policies are ninths, and the first only makes the root",
    ),
    ("inputs of the printed examples", "-1 for black's pawns", "1, as its example of an encoding has"),
    ("the formula of selection", "an image", "Q + c P sqrt(N) / (1 + n), c = 1"),
    (
        "examples after a gate",
        "'augment our training data' where it fails",
        "kept if refused, forgotten if accepted",
    ),
    ("training", "not said", "Adam, 0.001, 128 passes over all examples at once"),
    ("iterations", "5 in the log", "10"),
    ("moves in gating", "not said", "drawn by visits, as in self-play"),
)

Network = Mapping[str, Any]


def draw(folder: Path, plan: Plan, results: Results, *, png: bool) -> list[Path]:
    """Curves over iterations on the first board."""
    runs = [run for run in plan.runs() if run.board == plan.boards[0]]
    made = []
    stamp = ["QUICK: not meaningful"] if plan.quick else []
    what = f"{plan.boards[0]}, {len(runs)} seeds, 10 simulations, exact over all positions"
    over = list(range(plan.iterations + 1))

    def curve(of: Callable[[Network], float]) -> list[list[float]]:
        return [[100 * of(network) for network in results[run]] for run in runs]

    drawings = {
        "agreement": (
            "value kept where the choice matters, %",
            {
                "with search, black to move": curve(lambda n: n["searched"]["best_critical_black"]),
                "with search, white to move": curve(lambda n: n["searched"]["best_critical_white"]),
                "policy alone": curve(lambda n: n["alone"]["best_critical"]),
                "sign of the value, all positions": curve(lambda n: n["value_sign"]),
            },
        ),
        "strength": (
            "games won, %",
            {
                "black against random": curve(lambda n: n["black_v_random"]),
                "black against perfect": curve(lambda n: n["black_v_perfect"]),
                "white against random": curve(lambda n: n["white_v_random"]),
            },
        ),
    }
    for name, (label, curves) in drawings.items():
        sheet, height = figures.figure(
            [f"HexapawnZero: {name}", what, *stamp],
            [Axes("iteration", dict.fromkeys(curves, over))],
            curves,
            {},
            label,
        )
        made += figures.write(folder / "figures" / name, sheet, height, png=png)
    return made


def write(folder: Path, plan: Plan, results: Results, drawn: Sequence[Path], command: str) -> Path:
    """Write `report.md` and its tables as CSV; returns the report's path."""
    runs = [run for run in plan.runs() if run.board == plan.boards[0]]
    logs = {run: read_log(folder / run.folder) for run in runs}
    sections = [
        Section("log", "The log", _log_note(plan, runs), log_table(plan, runs, logs, results)),
        Section(
            "agreement",
            "Agreement with the exact solution",
            _agreement_note(runs, results),
            agreement_table(plan, runs, results),
        ),
        Section(
            "perfect",
            "Until black is perfect",
            _perfect_note(plan, runs, results),
            perfect_table(runs, results),
        ),
        Section("boards", "Boards", _boards_note(plan), boards_table(plan, results)),
        Section("readings", "Text and what we chose", "", [("what", "text", "chosen"), *READINGS]),
    ]
    lines = report.head("HexapawnZero", command, quick=plan.quick)
    return report.write(folder, lines, sections, report.pictures(folder, drawn))


def _judged(document: int, counts: Sequence[int], games: int) -> tuple[str, str]:
    """The range that our seeds predict for one more run, and whether the document's number is in it."""
    found = foreseen(counts, [games] * len(counts), games)
    if found is None:
        return "–", "–"
    low, high = found
    return f"{low}–{high}", "inside" if low <= document <= high else "outside"


def _log_note(plan: Plan, runs: Sequence[Run]) -> str:
    return (
        f"{len(runs)} seeds ({runs[0].seed} to {runs[-1].seed}), {plan.iterations} iterations. The table has the games "
        f"won by the trained copy in gating, of {GATE} as black and {GATE} as white; the last rows are of "
        f"{FINAL_GAMES} and {FINAL_GAMES} against an untrained network. Mean over seeds "
        f"[least–most]{with_intervals(len(runs))}. *Foreseen* is where 95 % of single runs would lie."
    )


def log_table(plan: Plan, runs: Sequence[Run], logs: Mapping[Run, Any], results: Results) -> list[list[str]]:
    """The document's log and ours."""
    rows = [["iteration", "colour", "document", "ours", "foreseen", "verdict", "copy accepted"]]
    for number in range(1, plan.iterations + 1):
        entries = [logs[run][number - 1] for run in runs]
        accepted = f"{sum(entry['accepted'] for entry in entries)} of {len(entries)}"
        for place, (name, key) in enumerate((("black", "as_defenders"), ("white", "as_attackers"))):
            counts = [int(entry[key][0]) for entry in entries]
            printed = LOG.get(number)
            spread, verdict = _judged(printed[place], counts, GATE) if printed else ("", "")
            said = str(printed[place]) if printed else ""
            rows.append([str(number), name, said, cell(counts), spread, verdict, accepted])
    for place, name in enumerate(("black", "white")):
        counts = [int(results[run][-1]["final"][name]) for run in runs]
        spread, verdict = _judged(FINAL[place], counts, FINAL_GAMES)
        rows.append(["final", name, str(FINAL[place]), cell(counts), spread, verdict, ""])
    return rows


def _agreement_note(runs: Sequence[Run], results: Results) -> str:
    first = results[runs[0]][0]
    return (
        f"The game has {first['positions']} undecided positions with a legal move; in {first['critical']} of them the "
        "choice matters. *best*: the first of the most visited moves (for the policy alone, the likeliest move) keeps "
        "the value of the position. *mass*: the share of visits (or of the policy) on moves that keep it, which is the "
        "chance that a drawn move keeps it. Figures are in per cent: mean over seeds [least–most]."
    )


def agreement_table(plan: Plan, runs: Sequence[Run], results: Results) -> list[list[str]]:
    """Agreement before, during and after training."""
    rows = [["", *(f"iteration {number}" for number in _stops(plan))]]
    for said, how in (("policy alone", "alone"), ("with search", "searched")):
        for name, key in (
            ("best, all", "best"),
            ("mass, all", "mass"),
            ("best, critical", "best_critical"),
            ("mass, critical", "mass_critical"),
            ("best, critical, white to move", "best_critical_white"),
            ("best, critical, black to move", "best_critical_black"),
        ):
            cells = [
                cell([100 * results[run][number][how][key] for run in runs], 0) for number in _stops(plan)
            ]
            rows.append([f"{said}: {name}", *cells])
    cells = [cell([100 * results[run][number]["value_sign"] for run in runs], 0) for number in _stops(plan)]
    rows.append(["sign of the value, all", *cells])
    return rows


def _stops(plan: Plan) -> list[int]:
    return sorted({0, 1, 2, min(5, plan.iterations), plan.iterations})


def first_perfect(networks: Sequence[Network]) -> int | None:
    """The first iteration after which black stays perfect; None if it is not perfect at the end."""
    found = None
    for network in reversed(networks):
        if not network["black_perfect"]:
            break
        found = int(network["generation"])
    return found


def _perfect_note(plan: Plan, runs: Sequence[Run], results: Results) -> str:
    firsts = [first_perfect(results[run]) for run in runs]
    reached = [first for first in firsts if first is not None]
    drawn = [100 * results[run][-1]["black_sampled"] for run in runs]
    return (
        "Black, which wins with best play, is *perfect* if its most visited moves win against everything that white "
        f"can do. It is in {len(reached)} of {len(runs)} seeds after {plan.iterations} iterations. *Drawn* is its "
        "chance of winning against the most awkward white if its moves are drawn by visits, as in the document's "
        f"games: {cell(drawn)} per cent in the end."
    )


def perfect_table(runs: Sequence[Run], results: Results) -> list[list[str]]:
    """Every seed by itself, in per cent of games."""
    rows = [
        [
            "seed",
            "perfect from iteration",
            "drawn",
            "black v random",
            "black v perfect",
            "white v random",
            "black v untrained",
            "white v untrained",
        ]
    ]
    for run in runs:
        last, first = results[run][-1], first_perfect(results[run])
        names = (
            "black_sampled",
            "black_v_random",
            "black_v_perfect",
            "white_v_random",
            "black_v_untrained",
            "white_v_untrained",
        )
        rows.append(
            [
                str(run.seed),
                "–" if first is None else str(first),
                *(f"{100 * last[name]:.1f}" for name in names),
            ]
        )
    return rows


def _boards_note(plan: Plan) -> str:
    return (
        f"The same settings on larger boards, {plan.few} seeds. Boards with more than {plan.positions} positions are "
        f"measured on {plan.positions} positions of random games. The table has the percentage of critical positions "
        "in which the first of the best moves keeps the value, before and after training: mean over seeds [least–most]."
    )


def boards_table(plan: Plan, results: Results) -> list[list[str]]:
    """Agreement on every board."""
    rows = [
        [
            "board",
            "positions",
            "critical",
            "seeds",
            "policy, untrained",
            "policy, trained",
            "search, untrained",
            "search, trained",
            "sign of the value",
        ]
    ]
    for board in plan.boards:
        runs = [run for run in plan.runs() if run.board == board]
        first = results[runs[0]][0]
        cells = [
            cell([100 * results[run][number][how]["best_critical"] for run in runs], 0)
            for how in ("alone", "searched")
            for number in (0, -1)
        ]
        sign = cell([100 * results[run][-1]["value_sign"] for run in runs], 0)
        rows.append([board, str(first["positions"]), str(first["critical"]), str(len(runs)), *cells, sign])
    return rows
