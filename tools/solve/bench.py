"""`hnefi solve bench`: the CPU time of the kernels that solve a board, in one thread."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hnefi.engine.games.tafl.position import new_state
from hnefi.engine.solving import retrograde
from hnefi.engine.solving.index import Index
from hnefi.engine.solving.readings import reading
from hnefi.engine.solving.table import Table

from ..common import arguments
from .build import BEGUN, Builder, load, new_report
from .command import cost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hnefi.engine.games.tafl.variant import Variant

RUNS = 3
MOST_MIB = 1024
"""The largest size of the temporary folder."""
NAMES = {
    "numbered": "a position from its number, and whether an image of it has a smaller one",
    "looked at": "a position looked at for the first time: its ends and captures",
    "taken back": "a decided position from which all quiet moves are taken back, and tried forward again",
    "judged": "a position of a range that is searched for marked ones, whose moves are looked at",
    "swept": "a position compared with all its moves",
    "move": "one of these moves",
    "solved": "an entry of the table, from the beginning to the file",
}
"""The unit of work that each figure in nanoseconds is for."""


class _Timed(Builder):
    """Adds up the CPU time of each kind of phase, and the positions on which it was spent."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.positions: Counter[str] = Counter()

    def _one(self, phase: int, which: int, at: tuple[int, int], work: Callable[..., None]) -> None:
        kind = "looked at" if phase == BEGUN else "judged" if phase % 2 else "taken back"
        begun = time.process_time()
        super()._one(phase, which, at, work)
        self.seconds[kind] += time.process_time() - begun
        self.positions[kind] += int(self._state[which]["found"]) if kind == "taken back" else at[1] - at[0]


def measure(variant: Variant, men: tuple[int, int], folder: Path) -> dict[str, float]:
    """Nanoseconds for each of `NAMES`. Leaves the table in the folder."""
    how = reading(variant)
    path = folder / "bench.taflbase"
    builder = _Timed(how, men, path)
    begun = time.process_time()
    builder.run()
    whole = time.process_time() - begun
    found = {kind: seconds / builder.positions[kind] for kind, seconds in builder.seconds.items()}
    with Table(path) as table:
        words, index = load(table), table.index
    found["solved"] = whole / index.entries
    report, state = new_report(), new_state(how.played, "tTK")[0]
    begun = time.process_time()
    for each in index.materials:
        retrograde.check(
            state, index.record, words, each.attackers, each.defenders, each.first, each.end, report
        )
    seconds = time.process_time() - begun
    found["swept"] = seconds / index.entries
    found["move"] = seconds / int(report["edges"])
    begun = time.process_time()
    index.thinned(words, 0)
    found["numbered"] = (time.process_time() - begun) / index.entries
    return {name: found[name] * 1e9 for name in NAMES}


def main(argv: list[str]) -> int:
    """Measure and print; 0."""
    parser = arguments.parser(
        "solve bench",
        "Solves a board in a temporary folder, in one thread, and prints what each kind of work costs: nanoseconds of "
        "CPU time for a position, a move, or an entry, as the median and the range of several runs. The first solves "
        "once more beforehand, so that nothing is compiled.",
        ["mini-four", "mini-six --attackers 5 --runs 1", "brandubh --attackers 2 --defenders 1 --json"],
    )
    parser.add_argument(
        "variant", metavar="VARIANT", nargs="?", default="mini-four", help="a small board (mini-four)"
    )
    parser.add_argument("--attackers", type=arguments.natural, metavar="N", help="at most so many")
    parser.add_argument("--defenders", type=arguments.natural, metavar="N", help="at most so many")
    parser.add_argument(
        "--runs", type=arguments.positive, default=RUNS, metavar="N", help=f"how often ({RUNS})"
    )
    parser.add_argument("--json", action="store_true", help="the figures of all runs as JSON")
    arguments.add_variant_path(parser)
    given = parser.parse_args(argv)
    arguments.let_interrupt_end_us()
    variant = arguments.find_tafl_variant(parser, given.variant, given.path)
    men = (
        variant.attackers if given.attackers is None else min(given.attackers, variant.attackers),
        variant.defenders if given.defenders is None else min(given.defenders, variant.defenders),
    )
    need, _ = cost(Index(reading(variant).played, *men), 1)
    if need > MOST_MIB:
        parser.error(
            f"{men[0]} attackers, {men[1]} defenders: {need} MiB: expected at most {MOST_MIB}, with fewer men "
            "(--attackers, --defenders)"
        )
    least = (1 if variant.rules.capture_all else 0, 0)
    with TemporaryDirectory(prefix="hnefi-") as folder:
        place = Path(folder)
        measure(variant, least, place)
        runs = []
        for _ in range(given.runs):
            (place / "bench.taflbase").unlink()
            runs.append(measure(variant, men, place))
    if given.json:
        print(json.dumps({"variant": variant.name, "men": list(men), "runs": runs}))
        return 0
    _print(f"{variant.name}, at most {men[0]} v {men[1]}", runs)
    return 0


def _print(title: str, runs: Sequence[dict[str, float]]) -> None:
    print(f"{title}: nanoseconds of CPU time, median of {len(runs)} (least to most)")
    for name, what in NAMES.items():
        values = sorted(run[name] for run in runs)
        print(f"{median(values):8.0f} ({values[0]:.0f} to {values[-1]:.0f})  {what}")
