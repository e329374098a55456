"""`hnefi bench speed`: the kernels against the project's own C reference, by CPU time on the same trees.

Wall time and absolute figures say more about the machine and its other load than about the code. So the C reference is
compiled for this processor and does the same work on the same records in the same run, alternating with the kernels;
the result is the ratio of the best rounds.

The reference covers the rules, random games, and alpha-beta without features on the evaluator `simple`. Selectivity and
the engine's own evaluator change too often to be written twice.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hnefi.engine.games.tafl.variant import Variant
from hnefi.protocol.flags import Parser
from hnefi.protocol.hosts.text_table import aligned

from ..common.arguments import add_variant_path, find_tafl_variant, let_interrupt_end_us, parser, positive

REFERENCE = Path(__file__).with_name("reference.c")
FLAGS = ("-std=gnu11", "-O3", "-march=native")
COMPILERS = ("cc", "gcc", "clang")

C_TYPES = {"f8": "double"} | {
    f"{kind}{size}": f"{word}{8 * size}_t"
    for kind, word in (("i", "int"), ("u", "uint"))
    for size in (1, 2, 4, 8)
}
"""C names of numpy's scalar types."""
EVALUATOR = "simple"
HASH_MIB = 16
MIDDLE_PLIES = 2
"""Random plies per file of the board before the position from the middle of a game."""
KINDS = ("perft", "playout", "search")
SEED = 1
MOST_PLIES = 1000
"""Plies after which random games are cut off."""


class BenchError(RuntimeError):
    """The comparison could not be made, or the two programs did not do the same work."""


@dataclass(frozen=True)
class Work:
    """A task that both programs do.

    `kernel` does it and returns CPU seconds and the lines that the reference must print, too. `amount` is its size in
    `unit`, `command` the reference's arguments, `target` the largest acceptable ratio of CPU times.
    """

    name: str
    unit: str
    amount: int
    target: float
    command: tuple[str, ...]
    kernel: Callable[[], tuple[float, tuple[str, ...]]]


@dataclass
class Timing:
    """CPU seconds of every round of one task; `reference` stays empty without a compiler."""

    work: Work
    kernel: list[float] = field(default_factory=list)
    reference: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float | None:
        """The kernel's CPU time divided by the reference's, best rounds of each; None without a reference."""
        return min(self.kernel) / min(self.reference) if self.reference else None

    def as_dict(self) -> dict[str, Any]:
        """The figures of the best rounds as `--json` prints them: CPU seconds, and work per second."""
        best = min(self.kernel)
        c_best = min(self.reference, default=None)
        return {
            "work": self.work.name,
            "unit": self.work.unit,
            "amount": self.work.amount,
            "numba_seconds": round(best, 6),
            "numba_per_second": round(self.work.amount / best),
            "c_seconds": None if c_best is None else round(c_best, 6),
            "c_per_second": None if c_best is None else round(self.work.amount / c_best),
            "ratio": None if self.ratio is None else round(self.ratio, 3),
            "target": self.work.target,
        }


@dataclass(frozen=True)
class Sizes:
    """Amounts of work for a measurement, about a second each."""

    leaves: int = 300_000_000
    plies: int = 6_000_000
    nodes: int = 3_000_000


def layout(types: dict[str, Any]) -> str:
    """C declarations of numpy record types, with assertions that the compiler lays them out as numpy does."""
    lines = ["#include <stddef.h>", "#include <stdint.h>"]
    for name, dtype in types.items():
        fields = [(key, *dtype.fields[key][:2]) for key in dtype.names]
        lines.append("typedef struct {")
        for key, kind, _ in fields:
            scalar, shape = kind.subdtype or (kind, ())
            # Only kernels look into records within records: for C they are bytes of the same place and size.
            word = f"_Alignas({scalar.alignment}) uint8_t" if scalar.names else C_TYPES[scalar.str[1:]]
            shape += (scalar.itemsize,) * bool(scalar.names)
            lengths = "".join(f"[{length}]" for length in shape)
            lines.append(f"    {word} {key}{lengths};")
        lines.append(f"}} {name};")
        lines += [
            f'_Static_assert(offsetof({name}, {key}) == {offset}, "{key}");' for key, _, offset in fields
        ]
        lines.append(f'_Static_assert(sizeof({name}) == {dtype.itemsize}, "{name}");')
    return "\n".join(lines) + "\n"


def find_compiler(wish: str | None = None) -> list[str] | None:
    """The command of the C compiler: `wish`, else $CC, else the system's; None if there is none."""
    for command in (wish, os.environ.get("CC"), *COMPILERS):
        words = shlex.split(command or "")
        if words and shutil.which(words[0]):
            return words
        if words and command == wish:
            raise BenchError(f"no compiler {wish!r}: expected a command such as gcc")
    return None


def compile_reference(compiler: Sequence[str], folder: Path, types: dict[str, Any]) -> Path:
    """Compile the reference for these record types into `folder`; BenchError with the compiler's message."""
    (folder / "layout.h").write_text(layout(types))
    program = folder / "bench_reference"
    command = [*compiler, *FLAGS, "-I", str(folder), "-o", str(program), str(REFERENCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{shlex.join(command)}\n{done.stderr.rstrip()}")
    return program


def run_reference(program: Path, command: Sequence[str]) -> tuple[float, tuple[str, ...]]:
    """The reference's CPU seconds, and the lines with its findings."""
    done = subprocess.run([str(program), *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(done.stderr.strip() or f"the reference ended with status {done.returncode}")
    *found, last = done.stdout.splitlines()
    return float(last.removeprefix("seconds ")), tuple(found)


def record_types() -> dict[str, Any]:
    """The types of the records that both programs work on, by their names in C."""
    from hnefi.engine.evaluators.loaded import LOADED
    from hnefi.engine.games.tafl.state import TAFL
    from hnefi.engine.search.alphabeta import SEARCH

    return {"State": TAFL, "Search": SEARCH, "Weights": LOADED}


class _Bench:
    """The records of one variant, also written to files for the reference, and the tasks on them."""

    def __init__(self, variant: Variant, folder: Path, sizes: Sizes) -> None:
        from hnefi.engine.games.tafl.position import Position

        self._variant = variant
        self._folder = folder
        self._sizes = sizes
        self._start = Position.initial(variant).new_record()
        self._middle = self._random_middle()

    def _random_middle(self) -> Any:
        """The position after some random plies, from the first seed whose game is not over by then."""
        from hnefi.engine import count

        plies = MIDDLE_PLIES * self._variant.size
        for seed in range(SEED, SEED + 1000):
            record = self._start.copy()
            record[0]["random"] = seed
            if count.walk_randomly(record[0], plies) == plies and not record[0]["outcome"]:
                return record
        raise BenchError(f"{self._variant.name}: no random game is undecided after {plies} plies")

    def works(self, kinds: Sequence[str] = KINDS) -> list[Work]:
        """The tasks of these kinds; also compiles the kernels and runs them once."""
        made = {"perft": self._perft, "playout": self._playouts, "search": self._search}
        places = {"start": self._start, "middle": self._middle}
        return [made[kind](place, record) for kind in kinds for place, record in places.items()]

    def _file(self, name: str, record: Any) -> str:
        path = self._folder / name
        path.write_bytes(record.tobytes())
        return str(path)

    def _perft(self, name: str, record: Any) -> Work:
        from hnefi.engine import count

        state = record[0]
        depth, leaves = 1, int(count.perft(state, 1, 0))
        while leaves * 40 < self._sizes.leaves:
            depth += 1
            leaves = int(count.perft(state, depth, 0))
        times = max(1, self._sizes.leaves // leaves)

        def kernel() -> tuple[float, tuple[str, ...]]:
            found = 0
            begun = time.process_time()
            for _ in range(times):
                found += int(count.perft(state, depth, 0))
            return time.process_time() - begun, (f"leaves {found}",)

        command = (self._file(f"{name}.state", record), "perft", str(depth), str(times))
        return Work(f"perft {depth} {name}", "leaves", times * leaves, 1.0, command, kernel)

    def _playouts(self, name: str, record: Any) -> Work:
        from hnefi.engine import count

        state = record[0]

        def play(games: int) -> tuple[float, tuple[str, ...]]:
            state["random"] = SEED
            state["tally"] = 0
            begun = time.process_time()
            count.playouts(state, games, MOST_PLIES)
            seconds = time.process_time() - begun
            plies, *results = (int(n) for n in state["tally"][:5])
            return seconds, (f"plies {plies}", "results " + " ".join(map(str, results)))

        trial = 20
        play(trial)
        games = max(1, trial * self._sizes.plies // max(1, int(state["tally"][0])))
        play(games)
        plies = int(state["tally"][0])
        state["tally"] = 0
        command = (
            self._file(f"{name}.state", record),
            "playouts",
            str(games),
            str(SEED),
            str(MOST_PLIES),
        )
        return Work(f"playout {name}", "plies", plies, 1.05, command, lambda: play(games))

    def _search(self, name: str, record: Any) -> Work:
        import numpy as np

        from hnefi.engine import evaluators
        from hnefi.engine.games.tafl import adjudication, verbs  # noqa: F401  binds the verbs of the search to tafl
        from hnefi.engine.score import INFINITE, NO_LIMIT
        from hnefi.engine.search import alphabeta
        from hnefi.engine.search.table import BUCKET

        state = record[0]
        weights = evaluators.parameters(EVALUATOR, self._variant)
        entries = HASH_MIB * (1 << 20) // 16
        table = np.zeros(entries * 2, np.uint64)
        fresh = np.zeros(1, alphabeta.SEARCH).view(np.recarray)
        infinite = INFINITE
        count = int(adjudication.legal_moves(state))
        fresh[0]["root_moves"][:count] = state["moves"][:count]
        fresh[0]["root_count"] = count
        fresh[0]["node_limit"] = NO_LIMIT
        fresh[0]["mask"] = entries // BUCKET - 1
        fresh[0]["generation"] = 1
        fresh[0]["root"] = state["ply"]
        search = fresh.copy()
        work = search[0]

        def deepen(depth: int, nodes: int = NO_LIMIT) -> tuple[float, tuple[str, ...]]:
            """Iterations up to a depth, or until they have visited `nodes` nodes."""
            table.fill(0)
            search[:] = fresh
            lines: list[str] = []
            begun = time.process_time()
            while len(lines) < depth and work["nodes"] < nodes:
                value = int(
                    alphabeta.search_root(
                        state, work, table, weights[0], len(lines) + 1, 0, -infinite, infinite
                    )
                )
                best = int(work["root_best"])
                move = int(work["root_moves"][best])
                work["root_moves"][1 : best + 1] = work["root_moves"][:best].copy()
                work["root_moves"][0] = move
                lines.append(f"depth {len(lines) + 1} {int(work['nodes'])} {value} {move}")
            return time.process_time() - begun, tuple(lines)

        _, lines = deepen(40, self._sizes.nodes)
        depth, nodes = len(lines), int(work["nodes"])
        command = (
            self._file(f"{name}.state", record),
            "search",
            str(depth),
            self._file(f"{name}.search", fresh),
            self._file("weights", weights),
        )
        return Work(f"search {depth} {name}", "nodes", nodes, 1.05, command, lambda: deepen(depth))


def compile_kernels() -> None:
    """Compile missing kernels in another process: a process that has just compiled runs its kernels a tenth slower."""
    code = "from hnefi.engine import warmup; warmup.warm_portion('tafl')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"the kernels do not compile:\n{done.stderr.rstrip()}")


def measure(
    variant: Variant,
    compiler: Sequence[str] | None,
    rounds: int,
    kinds: Sequence[str] = KINDS,
    sizes: Sizes | None = None,
) -> list[Timing]:
    """Do every task `rounds` times, kernel and reference in turn; BenchError unless both find the same."""
    with TemporaryDirectory(prefix="hnefi-bench-") as name:
        folder = Path(name)
        program = None if compiler is None else compile_reference(compiler, folder, record_types())
        timings = [Timing(work) for work in _Bench(variant, folder, sizes or Sizes()).works(kinds)]
        for _ in range(rounds):
            for timing in timings:
                seconds, found = timing.work.kernel()
                timing.kernel.append(seconds)
                if program is None:
                    continue
                seconds, found_by_reference = run_reference(program, timing.work.command)
                timing.reference.append(seconds)
                if found != found_by_reference:
                    raise BenchError(_difference(timing.work, found, found_by_reference))
        return timings


def _difference(work: Work, found: tuple[str, ...], by_reference: tuple[str, ...]) -> str:
    for ours, theirs in zip(found, by_reference, strict=False):
        if ours != theirs:
            return f"{work.name}: not the same work: numba found {ours!r}, C {theirs!r}"
    return f"{work.name}: not the same work: numba wrote {len(found)} lines, C {len(by_reference)}"


def table_of(timings: Sequence[Timing]) -> str:
    """The figures as text."""
    heads = ("work", "amount", "numba s", "C s", "numba/s", "C/s", "ratio", "aim")
    rows = [heads]
    for timing in timings:
        row = timing.as_dict()
        rows.append(
            (
                row["work"],
                f"{row['amount']:,} {row['unit']}",
                f"{row['numba_seconds']:.3f}",
                "-" if row["c_seconds"] is None else f"{row['c_seconds']:.3f}",
                f"{row['numba_per_second']:,}",
                "-" if row["c_per_second"] is None else f"{row['c_per_second']:,}",
                "-" if row["ratio"] is None else f"{row['ratio']:.2f}",
                f"{row['target']:.2f}",
            )
        )
    return "\n".join(aligned(rows, left=(0,)))


def add_flags(options: Parser) -> None:
    """Flags of all measurements against C: `--rounds`, `--cc`, `--json` and `--path`."""
    options.add_argument(
        "--rounds", metavar="N", type=positive, default=5, help="rounds; the best one counts (5)"
    )
    options.add_argument("--cc", metavar="CC", help="the C compiler (else $CC, cc, gcc or clang)")
    options.add_argument("--json", action="store_true", help="the figures as one JSON document")
    add_variant_path(options)


def main(argv: list[str]) -> int:
    """Measure and print; the exit status is 1 if the reference does not compile or finds something else."""
    options = parser(
        "bench speed",
        "Measures perft, random games and the search by CPU time, against the same work in C where the system has a C "
        "compiler. Targets: perft at most the time of C, random games and search at most 1.05 x.",
        ["", "--rounds 3 --variant brandubh", "--cc clang --json"],
    )
    options.add_argument(
        "--variant", metavar="NAME", default="copenhagen", help="default: copenhagen, all its rules on"
    )
    add_flags(options)
    options.add_argument("--only", metavar="KIND", choices=KINDS, help=f"one of {', '.join(KINDS)}")
    arguments = options.parse_args(argv)
    variant = find_tafl_variant(options, arguments.variant, arguments.path)
    let_interrupt_end_us()
    try:
        compiler = find_compiler(arguments.cc)
        compile_kernels()
        timings = measure(variant, compiler, arguments.rounds, [arguments.only] if arguments.only else KINDS)
    except BenchError as error:
        print(f"hnefi bench speed: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        document = {
            "variant": variant.name,
            "rounds": arguments.rounds,
            "compiler": None if compiler is None else shlex.join([*compiler, *FLAGS]),
            "works": [timing.as_dict() for timing in timings],
        }
        print(json.dumps(document, indent=2))
        return 0
    print(table_of(timings))
    if compiler is None:
        print(f"no C compiler found ({', '.join(COMPILERS)}; --cc names one): our own figures only")
    else:
        print(f"{variant.name}, CPU time, best of {arguments.rounds}; C: {shlex.join([*compiler, *FLAGS])}")
    return 0
