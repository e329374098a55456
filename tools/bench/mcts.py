"""`hnefi bench mcts`: simulations of the tree search against random games in C, by CPU time in one run."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ..common.arguments import add_variants, find_tafl_variant, let_interrupt_end_us, parser, positive
from .speed import (
    COMPILERS,
    MOST_PLIES,
    SEED,
    BenchError,
    add_flags,
    compile_reference,
    find_compiler,
    record_types,
    run_reference,
)

if TYPE_CHECKING:
    from hnefi.engine.games.tafl.variant import Variant

TARGET = 1.2
PLIES = 8_000_000
"""Plies of random games that are enough for a round."""


def compile_kernels() -> None:
    """Compile missing kernels in another process: a process that has just compiled runs its kernels a tenth slower."""
    code = (
        "from hnefi.engine.games.tafl.variant import find; from hnefi.engine import warmup; "
        "from hnefi.engine.search.types import Settings; "
        "p = warmup.warm_game(find('brandubh'), Settings(algorithm='mcts')); warmup._count(p)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"the kernels do not compile:\n{done.stderr.rstrip()}")


def _c_games(program: Path, state: str, games: int) -> tuple[float, int]:
    """CPU seconds and plies of random games in C from the position in a file."""
    command = (state, "playouts", str(games), str(SEED), str(MOST_PLIES))
    seconds, found = run_reference(program, command)
    return seconds, int(found[0].removeprefix("plies "))


def _ours(variant: Variant, simulations: int) -> float:
    """CPU seconds of one search with a fresh tree."""
    from hnefi.engine import games
    from hnefi.engine.search.searcher import Searcher
    from hnefi.engine.search.types import Limits, Settings

    searcher = Searcher(Settings(algorithm="mcts"))
    position = games.initial(variant)
    searcher.begin()
    searcher.search(position, Limits(nodes=1), lambda _: None)
    searcher.clear()
    searcher.begin()
    begun = time.process_time()
    searcher.search(position, Limits(nodes=simulations), lambda _: None)
    return time.process_time() - begun


def measure(variant: Variant, program: Path | None, folder: Path, rounds: int, plies: int) -> dict[str, Any]:
    """The best of `rounds` rounds: a search from the start position, and the same number of random games in C."""
    from hnefi.engine import count, games

    record = games.initial(variant).new_record()
    state = folder / f"{variant.name}.state"
    state.write_bytes(record.tobytes())
    record[0]["random"] = SEED
    count.playouts(record[0], 50, MOST_PLIES)
    simulations = max(1000, 50 * plies // max(1, int(record[0]["tally"][0])))
    ours, theirs, length = [], [], 0
    for _ in range(rounds):
        ours.append(_ours(variant, simulations))
        if program is not None:
            seconds, length = _c_games(program, str(state), simulations)
            theirs.append(seconds)
    return {
        "variant": variant.name,
        "simulations": simulations,
        "simulations_per_second": round(simulations / min(ours)),
        "c_games_per_second": round(simulations / min(theirs)) if theirs else None,
        "c_plies_per_game": round(length / simulations) if theirs else None,
        "ratio": round(min(ours) / min(theirs), 3) if theirs else None,
        "target": TARGET,
    }


def main(argv: list[str]) -> int:
    """Measure and print; the exit status is 1 if the reference does not compile."""
    options = parser(
        "bench mcts",
        "Measures simulations of the tree search from the start position (selection, a random game, backup) against "
        f"plain random games in C, by CPU time. Target: at most {TARGET} x the time of C for each simulation.",
        ["", "brandubh tablut-linnaeus --rounds 3", "--json"],
    )
    add_variants(options, ("copenhagen", "brandubh"))
    add_flags(options)
    options.add_argument(
        "--plies", metavar="N", type=positive, default=PLIES, help="plies of random games in each round"
    )
    arguments = options.parse_args(argv)
    chosen = [find_tafl_variant(options, word, arguments.path) for word in arguments.variants]
    let_interrupt_end_us()
    rows = []
    try:
        compiler = find_compiler(arguments.cc)
        compile_kernels()
        with TemporaryDirectory(prefix="hnefi-bench-") as name:
            folder = Path(name)
            program = None if compiler is None else compile_reference(compiler, folder, record_types())
            for variant in chosen:
                rows.append(measure(variant, program, folder, arguments.rounds, arguments.plies))
                if not arguments.json:
                    print(_sentence(rows[-1]), flush=True)
    except BenchError as error:
        print(f"hnefi bench mcts: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        words = None if compiler is None else shlex.join(compiler)
        json.dump({"rounds": arguments.rounds, "compiler": words, "rows": rows}, sys.stdout, indent=2)
        print()
    elif compiler is None:
        print(f"no C compiler found ({', '.join(COMPILERS)}; --cc names one): our own figures only")
    return 0


def _sentence(row: dict[str, Any]) -> str:
    ours = f"{row['variant']:20} {row['simulations_per_second']:>9,} simulations/s"
    if row["ratio"] is None:
        return ours
    return (
        f"{ours}  C {row['c_games_per_second']:>9,} games/s of {row['c_plies_per_game']} plies  "
        f"ratio {row['ratio']:.2f} (aim {row['target']})"
    )
