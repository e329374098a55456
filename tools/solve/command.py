"""`hnefi solve`: solves a small board into a table, and reads tables."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.protocol.hosts.exit_codes import INTERRUPTED, USAGE

from ..common import arguments, interrupts
from ..common.live import Live, duration

if TYPE_CHECKING:
    import argparse

    from hnefi.engine.games.base_variant import AnyVariant
    from hnefi.engine.games.tafl.variant import Variant

    from .build import Progress

SECONDS = 2.0e-6
"""Seconds per entry of a table on one core, measured on several boards and rounded up."""
PROGRAM_MIB = 160
"""MiB of a process besides its table: code, kernels and the packing of blocks. Measured at 90 to 150."""
ASKED_FROM = 10.0
"""Estimated seconds from which we ask before starting."""
ASKED_MIB = 256
MEMORY = 1024
"""Largest table of hex and hexapawn in MiB."""
PROVEN_PLIES = 40
PROOF_MEMORY = 256
"""Largest table of a proof in MiB."""
NOT_SETTLED = 1
PAUSE = 10.0
"""Minimum seconds between two plain lines."""
ACTIONS = ("agreement", "bench", "layouts", "prove", "puzzles", "query", "show", "verify")
"""Modules of this package; without any of these words, the command solves."""
EXAMPLES = (
    "mini-four --yes",
    "hexapawn:4x4",
    "hex:4",
    "own.toml --out own.taflbase --jobs 2 --yes",
    "brandubh --attackers 2 --defenders 0 --yes",
    "brandubh --fen '3t3/2t4/3T3/1tTKTtt/T6/3t3/3t3 d 0 1' --nodes 10000000",
    "prove mini-eight",
    "query mini-four.taflbase",
    "query mini-four.taflbase '5/2T2/t1K1t/2T2/2t2 d 0 1'",
    "show mini-four.taflbase",
    "verify mini-four.taflbase",
)
DESCRIPTION = """\
Solves every position of a tafl board of at most 7 x 7 squares with soldiers and a king, and writes the values into a
table: who wins, and in how many plies, if the winner is quick and the loser slow. It says first how much memory and
time that takes, and asks. The same command continues what was interrupted, also after kill -9.

With --fen it proves who wins one position of any tafl board, by a full-width search that gets deeper and deeper:
repetitions and limits on length are left out, which a shortest win never meets unless a limit is near.

Hex and hexapawn are solved from the start, which prints who wins and the first moves that do.

  hnefi solve prove VARIANT [FEN]  whether a side can force a win of one position of any game, by proof-number search
  hnefi solve query FILE [FEN]     value of a position and of each legal move
  hnefi solve show FILE            how many positions are won, drawn and lost; the longest wins
  hnefi solve verify FILE          compares every position with what one ply of minimax makes of the file
  hnefi solve layouts VARIANT      the value of every symmetric start, and which change of the rules flips it
  hnefi solve agreement FILE       how often players find moves that keep the exact value
  hnefi solve puzzles FILE         positions with one winning move, as puzzles
  hnefi solve bench VARIANT        what solving costs: nanoseconds for a position, for a move
"""


def main(argv: list[str]) -> int:
    """Solve or answer; 0 when done, 1 if interrupted or if a check failed, 2 for anything impossible."""
    from hnefi.engine.solving.readings import NotSolvable
    from hnefi.engine.solving.table import TableError

    try:
        if argv[:1] and argv[0] in ACTIONS:
            module = import_module(f".{argv[0]}", __package__)
            return int(module.main(argv[1:]))
        return _solve(argv)
    except (NotSolvable, TableError) as error:
        print(f"hnefi solve: {error}", file=sys.stderr)
        return USAGE
    except MemoryError as error:
        print(f"hnefi solve: not enough memory ({error})", file=sys.stderr)
        return USAGE


def _solve(argv: list[str]) -> int:
    parser = arguments.parser("solve", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "variant", metavar="VARIANT", help="name or alias of a variant, or a TOML file; also as --variant"
    )
    parser.takes_variant()
    arguments.add_out(parser, "FILE", "the table (VARIANT.taflbase)")
    parser.add_argument("--yes", action="store_true", help="begin without asking")
    parser.add_argument(
        "--memory",
        type=arguments.positive,
        metavar="MIB",
        help=f"use at most this much (what is free; --fen: {PROOF_MEMORY}; hex, hexapawn: {MEMORY})",
    )
    parser.add_argument(
        "--attackers", type=arguments.natural, metavar="N", help="at most N attackers (as at the start)"
    )
    parser.add_argument(
        "--defenders",
        type=arguments.natural,
        metavar="N",
        help="at most N defenders besides the king (as at the start)",
    )
    parser.add_argument(
        "--without-limits",
        action="store_true",
        help="solve the game without its limits on plies and repeated arrangements",
    )
    parser.add_argument("--jobs", type=arguments.positive, default=1, metavar="J", help="threads (1)")
    parser.add_argument("--fen", metavar="FEN", help="prove who wins this one position, on any board of tafl")
    parser.add_argument(
        "--plies",
        type=arguments.positive,
        metavar="N",
        help=f"with --fen: look for a win within N plies ({PROVEN_PLIES})",
    )
    parser.add_argument(
        "--nodes", type=arguments.positive, metavar="N", help="with --fen: try at most N moves"
    )
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="nothing but the result and errors")
    arguments.add_plain(parser)
    arguments.add_variant_path(parser)
    given = parser.parse_args(argv)
    variant = arguments.find_variant(parser, given.variant, given.path)

    from hnefi.engine.games.tafl.variant import Variant

    if given.fen is None:
        for flag in ("plies", "nodes"):
            if getattr(given, flag) is not None:
                parser.error(f"--{flag}: expected together with --fen")
    if isinstance(variant, Variant) and given.fen is not None:
        return _prove(parser, given, variant)
    if isinstance(variant, Variant):
        return _build(parser, given, variant)
    return _first_moves(parser, given, variant)


def _prove(parser: argparse.ArgumentParser, given: argparse.Namespace, variant: Variant) -> int:
    """Prove who wins one position; 1 if that remains open."""
    from hnefi.engine import games, memory
    from hnefi.engine.solving.forced import DEEPEST

    from . import proofs

    for flag in ("out", "attackers", "defenders"):
        if getattr(given, flag) is not None:
            parser.error(f"--{flag}: expected without --fen, which makes no table")
    if given.plies is not None and given.plies > DEEPEST:
        parser.error(f"--plies {given.plies}: expected at most {DEEPEST}")
    try:
        position = games.from_fen(variant, given.fen)
    except ValueError as error:
        parser.error(str(error))
    if position.outcome is not None:
        print(f"{position.fen()}: {position.outcome.text}")
        return 0
    mib = given.memory or PROOF_MEMORY
    try:
        memory.demand(mib)
    except MemoryError as error:
        parser.error(f"--memory {mib}: {error}")
    live = Live(sys.stderr, plain=given.plain)

    def shown(plies: int, nodes: int) -> None:
        if not given.quiet:
            live.show(lambda: [f"{plies} plies, {nodes} moves tried"])

    with interrupts.caught(lambda: ["hnefi solve: interrupted: nothing of the proof is kept"]) as caught:
        found = proofs.prove(
            proofs.prover(variant, mib), given.fen, given.plies or PROVEN_PLIES, given.nodes, shown
        )
    live.close()
    if caught.ended:
        return INTERRUPTED
    if given.json:
        winner = None if found.winner is None else found.winner.letter
        print(json.dumps({"fen": given.fen, "winner": winner, "plies": found.plies, "nodes": found.nodes}))
    elif found.winner is None:
        print(f"{position.fen()}: neither side forces a win within {found.plies} plies")
    else:
        side = "attackers" if found.winner == 0 else "defenders"
        print(f"{position.fen()}: {side} win in {found.plies}")
    if not given.quiet:
        live.report([f"{found.nodes} moves tried"])
    return NOT_SETTLED if found.winner is None else 0


def _first_moves(parser: argparse.ArgumentParser, given: argparse.Namespace, variant: AnyVariant) -> int:
    """Solve a game in which positions cannot repeat, from its start."""
    from hnefi.engine import catalogue, games, memory
    from hnefi.engine.solving import acyclic
    from hnefi.engine.squares import move_name

    for flag in ("out", "attackers", "defenders", "fen"):
        if getattr(given, flag) is not None:
            parser.error(f"--{flag}: expected a tafl variant; {variant.name} is solved from its start")
    mib = given.memory or MEMORY
    try:
        memory.demand(mib)
        begun = time.monotonic()
        solved = acyclic.solve(games.initial(variant), mib, shortest=variant.game == "hexapawn")
    except (MemoryError, acyclic.OutOfMemory) as error:
        small = isinstance(error, acyclic.OutOfMemory)
        more = ": expected a larger --memory, or a smaller board" if small else ""
        print(f"hnefi solve: {variant.name}: --memory {mib}: {error}{more}", file=sys.stderr)
        return USAGE
    seconds = time.monotonic() - begun
    winner = None if solved.winner is None else catalogue.GAMES[variant.game].sides[solved.winner]
    if given.json:
        print(
            json.dumps(
                {
                    "variant": variant.name,
                    "rules": variant.hash,
                    "winner": "draw" if solved.winner is None else solved.winner.letter,
                    "plies": solved.plies,
                    "moves": [move_name(move) for move in solved.moves],
                    "positions": solved.positions,
                }
            )
        )
        return 0
    within = "" if solved.plies is None else f" in {solved.plies} plies"
    print(f"{variant.name}: {'a draw' if winner is None else f'{winner} wins'}{within}")
    first = catalogue.GAMES[variant.game].sides["ad".index(variant.first)]
    what = "wins with" if winner == first else "may as well begin with"
    print(f"{first} {what} {' '.join(move_name(move) for move in solved.moves)}")
    if not given.quiet:
        print(f"{solved.positions} positions in {seconds:.1f} s", file=sys.stderr)
    return 0


def _build(parser: argparse.ArgumentParser, given: argparse.Namespace, variant: Variant) -> int:
    """Solve every position of a tafl board."""
    from hnefi.engine.solving.index import Index
    from hnefi.engine.solving.readings import reading, without_limits

    from .build import is_finished

    if given.without_limits:
        variant = without_limits(variant)
    how = reading(variant)
    men = (
        variant.attackers if given.attackers is None else given.attackers,
        variant.defenders if given.defenders is None else given.defenders,
    )
    for number, name, most in zip(
        men, ("attackers", "defenders"), (variant.attackers, variant.defenders), strict=True
    ):
        if number > most:
            parser.error(f"--{name} {number}: expected at most {most}, as many as {variant.name} begins with")
    index = Index(how.played, *men)
    if not index.entries:
        parser.error(f"--attackers {men[0]}: expected at least 1: taking the last attacker ends the game")
    path = Path(given.out or f"{variant.name}.taflbase")
    if is_finished(path):
        parser.error(f"{path}: already exists; remove it, or name another file with --out")
    if not path.absolute().parent.is_dir():
        parser.error(f"{path}: no folder {path.absolute().parent}")
    live = Live(sys.stderr, plain=given.plain)
    if not given.quiet:
        live.report(_announced(how.assumption, index, given.jobs))
    refusal = _unaffordable(given, index)
    if refusal:
        print(f"hnefi solve: {refusal}", file=sys.stderr)
        return USAGE
    return _run(given, how, men, path, live)


def _run(given: argparse.Namespace, how: Any, men: tuple[int, int], path: Path, live: Live) -> int:
    from hnefi.engine.solving.table import Table

    from .build import Builder, BuildError, folder_of
    from .show import tell

    shown = _Shown(live, quiet=given.quiet)
    begun = time.monotonic()

    def words() -> list[str]:
        kept = f"what was done is in {path}.part" if folder_of(path).exists() else "nothing was done yet"
        return [f"hnefi solve: interrupted: {kept}; the same command continues"]

    try:
        with interrupts.caught(words) as caught:
            try:
                Builder(how, men, path, threads=given.jobs, on_progress=shown).run()
            finally:
                live.close()
    except BuildError as error:
        print(f"hnefi solve: {error}", file=sys.stderr)
        return USAGE
    except MemoryError as error:
        print(
            f"hnefi solve: out of memory{f' ({error})' if error.args else ''}: raise the limit (ulimit -v) or solve "
            f"with fewer men (--attackers, --defenders); what was done is in {path}.part, and the same command "
            "continues",
            file=sys.stderr,
        )
        return USAGE
    if caught.ended:
        return INTERRUPTED
    if not given.quiet:
        live.report([f"{path}: {path.stat().st_size} bytes, in {duration(time.monotonic() - begun)}"])
    with Table(path) as table:
        return tell(table, as_json_text=given.json)


def _announced(assumption: str, index: Any, jobs: int) -> list[str]:
    mib, seconds = cost(index, jobs)
    memory = f"{mib} MiB of memory and of disk, besides {PROGRAM_MIB} MiB of memory for the program"
    return [
        f"{index.variant.name}, {index.attackers} v {index.defenders} and fewer men",
        f"{index.positions} positions, {index.entries} after symmetry",
        assumption,
        f"It takes {memory}, and about {duration(seconds)} ({jobs} of this machine's cores).",
    ]


def cost(index: Any, jobs: int) -> tuple[int, float]:
    """MiB and seconds."""
    from .build import BYTES

    return (index.entries * BYTES >> 20) + 1, index.entries * SECONDS / jobs


def _unaffordable(given: argparse.Namespace, index: Any) -> str | None:
    """The reason not to start; asks the user if there is a terminal."""
    from hnefi.engine import memory

    mib, seconds = cost(index, given.jobs)
    free = memory.available()
    if given.memory is not None and mib > given.memory:
        return f"--memory {given.memory}: expected at least {mib}"
    if given.yes:
        return None
    much = free is not None and mib << 20 > free
    if not much and seconds < ASKED_FROM and mib < ASKED_MIB:
        return None
    if much:
        print(
            f"Only {(free or 0) >> 20} MiB are free, so most of it would run from the disk, which is much slower. "
            "`hnefi solve prove` solves a single position without a table.",
            file=sys.stderr,
        )
    if not sys.stdin.isatty():
        return "--yes: expected, because standard input is not a terminal"
    print("Begin? [y/N] ", end="", file=sys.stderr, flush=True)
    return None if sys.stdin.readline().strip().lower() in ("y", "yes") else "not begun"


class _Shown:
    """Shows progress: a line that is redrawn on a terminal, else one every few seconds."""

    def __init__(self, live: Live, *, quiet: bool) -> None:
        from .build import Clock

        self._live = live
        self._quiet = quiet
        self._clock = Clock()
        self._last = time.monotonic()
        self._line = ""

    def __call__(self, progress: Progress) -> None:
        if self._quiet:
            return
        left = self._clock.left(progress.share)
        eta = f", ETA {duration(left)}" if left is not None else ""
        self._line = (
            f"{progress.material.name}, level {progress.level}, {100 * progress.share:.0f} % of all{eta}"
        )
        self._live.show(lambda: [self._line])
        if not self._live.terminal and time.monotonic() - self._last >= PAUSE:
            self._last = time.monotonic()
            self._live.report([self._line])
