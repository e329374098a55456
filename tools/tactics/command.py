"""`hnefi tactics`: make a suite of proven positions, prove it again, let an engine solve it."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hnefi.protocol.flags import Parser
from hnefi.protocol.hosts.argument_types import setting
from hnefi.protocol.hosts.puzzles.suite import SHIPPED, Entry, SuiteError, read, write

from ..common.arguments import (
    add_out,
    find_tafl_variant,
    let_interrupt_end_us,
    natural,
    parser,
    positive,
    subcommand,
)
from ..common.live import Live, Pace

if TYPE_CHECKING:
    from hnefi.engine.search.types import Limits

    from .solve import Result

FOUND_FAULT = 1
OTHER_SIDE = 3
MINIMAX_NODES = 3_000_000
PROOF_NODES = 300_000_000
NODES = 20_000


def main(argv: list[str]) -> int:
    """Run `find`, `verify` or `run`."""
    commands = {"find": _find, "verify": _verify, "run": _run}
    options = parser(
        "tactics",
        "Positions with proven wins and losses.\n\n"
        "  hnefi tactics run     test how many of them an engine solves, and how fast, by variant and length\n"
        "  hnefi tactics verify  prove every position again\n"
        "  hnefi tactics find    find positions of one variant in recorded games, or in games of the engine",
        ["run --nodes 20000", "verify brandubh", "find brandubh --recorded games.csv --out mine.tsv"],
    )
    return subcommand(options, commands, argv)


def _suite(options: ArgumentParser, arguments: Namespace) -> list[Entry]:
    """The chosen entries; ends the program with the reason if there are none."""
    try:
        entries = read(Path(arguments.suite))
    except SuiteError as error:
        options.error(str(error))
    known = {entry.variant for entry in entries}
    for name in arguments.variants:
        if name not in known:
            options.error(f"{name[:80]!r}: expected a variant of the suite: {', '.join(sorted(known))}")
    chosen = [entry for entry in entries if not arguments.variants or entry.variant in arguments.variants]
    return sorted(chosen, key=lambda entry: entry.variant)


def _add_suite(options: Parser) -> None:
    options.add_argument(
        "variants", nargs="*", metavar="VARIANT", help="only these, also as --variant V,V (default: all)"
    )
    options.takes_variant()
    options.add_argument(
        "--suite", metavar="FILE", default=str(SHIPPED), help="a suite (default: the shipped one)"
    )


def _find(argv: list[str]) -> int:
    options = parser(
        "tactics find",
        "Goes back from the ends of decided games and keeps the positions that it can prove. Without --recorded the "
        "engine plays the games itself: a random opening, then few nodes a move.",
        ["brandubh --recorded games.csv --out mine.tsv", "tablut-saami --games 40 --seed 1 --out mine.tsv"],
    )
    options.add_argument("variant", metavar="VARIANT", help="its name, also as --variant")
    options.takes_variant()
    options.add_argument("--recorded", metavar="FILE", help="recorded games: .csv or .jsonl")
    options.add_argument(
        "--games", metavar="N", type=positive, default=60, help="number of games that the engine plays (60)"
    )
    options.renamed("--games", "--recorded", when=lambda text: text.lower().endswith((".csv", ".jsonl")))
    options.renamed("--self-play", "--games")
    options.add_argument(
        "--seed", metavar="N", type=natural, default=1, help="seed of the engine's games (1)"
    )
    options.add_argument("--count", metavar="N", type=positive, default=20, help="positions to keep (20)")
    options.add_argument("--enough", metavar="N", type=positive, help="candidates to look for (3 x count)")
    options.add_argument("--plies", metavar="N", type=positive, default=9, help="longest win to look for (9)")
    options.add_argument(
        "--nodes",
        metavar="N",
        type=positive,
        default=1_000_000,
        help="moves tried for one position (1000000)",
    )
    add_out(options, "FILE", "the suite is written here", required=True)
    arguments = options.parse_args(argv)
    let_interrupt_end_us()
    variant = find_tafl_variant(options, arguments.variant)
    if not 1 <= arguments.plies <= 30:
        options.error(f"--plies {arguments.plies}: expected 1 to 30")
    from hnefi.engine.records.corpus import CorpusError

    from . import find

    source = (
        find.self_play(variant, arguments.games, arguments.seed)
        if arguments.recorded is None
        else find.recorded(Path(arguments.recorded), variant)
    )
    enough = arguments.enough or 3 * arguments.count
    try:
        entries = find.find(variant, source, arguments.count, arguments.nodes, arguments.plies, enough)
        write(Path(arguments.out), entries)
    except (CorpusError, OSError) as error:
        options.error(str(error))
    print(f"{len(entries)} positions of {variant.name} in {arguments.out}")
    return 0


def _verify(argv: list[str]) -> int:
    options = parser(
        "tactics verify",
        "Proves every position again: by plain minimax without a table where that is quick enough, else by checking "
        "the proof move by move with the exact rules. The exit status is 1 if anything is wrong.",
        ["", "brandubh copenhagen", "--suite mine.tsv --minimax-nodes 100000000"],
    )
    _add_suite(options)
    for name, value, what in (
        ("minimax", MINIMAX_NODES, "nodes of minimax before the proof is checked instead"),
        ("proof", PROOF_NODES, "moves tried before a position counts as not settled"),
    ):
        options.add_argument(
            f"--{name}-nodes", metavar="N", type=positive, default=value, help=f"{what} ({value})"
        )
    arguments = options.parse_args(argv)
    entries = _suite(options, arguments)
    let_interrupt_end_us()
    from .verify import METHODS, Verifier

    begun = time.monotonic()
    live, pace = Live(sys.stderr), Pace(len(entries))
    methods: dict[str, int] = {}
    faults = 0
    verifier = None
    for entry in entries:
        if verifier is None or verifier.variant.name != entry.variant:
            variant = find_tafl_variant(options, entry.variant)
            verifier = Verifier(variant, arguments.minimax_nodes, arguments.proof_nodes)
        method, fault = verifier.check(entry)
        methods[method] = methods.get(method, 0) + 1
        if fault is not None:
            faults += 1
            print(f"{entry.id}: {fault}", flush=True)
        pace.add()
        live.step(lambda: f"{entry.id}: {pace.done}/{pace.total}{pace.eta()}")  # noqa: B023 - shown at once
    live.close()
    ways = ", ".join(f"{methods.get(name, 0)} by {name}" for name in METHODS)
    print(f"{len(entries)} positions, {ways}, {faults} wrong, {time.monotonic() - begun:.1f} s")
    return FOUND_FAULT if faults else 0


def _run(argv: list[str]) -> int:
    options = parser(
        "tactics run",
        "Asks an engine about every position and counts what it solves: a proven move, or in a lost position a score "
        "that says so. With fixed nodes and one thread the answers are the same every time.",
        [
            "",
            "--movetime 1000",
            "copenhagen --nodes 200000 --option Hash=256",
            "--engine 'my-engine --uci' --depth 6",
        ],
    )
    _add_suite(options)
    limit = options.add_mutually_exclusive_group()
    limit.add_argument("--nodes", metavar="N", type=positive, help=f"for each position (default: {NODES})")
    limit.add_argument("--movetime", metavar="MS", type=positive, help="milliseconds for each position")
    options.renamed("--time", "--movetime")
    limit.add_argument("--depth", metavar="N", type=positive, help="plies")
    options.add_argument("--engine", metavar="CMD", help="the engine's command (default: ours)")
    options.add_argument(
        "--option",
        metavar="NAME=VALUE",
        type=setting,
        action="append",
        default=[],
        help="an option of the engine; repeatable",
    )
    options.add_argument("--threads", metavar="N", type=positive, help="the same as --option Threads=N")
    options.add_argument("--json", action="store_true", help="every answer and the sums as one JSON document")
    options.add_argument("--unsolved", action="store_true", help="list the positions that were not solved")
    arguments = options.parse_args(argv)
    entries = _suite(options, arguments)
    from hnefi.engine.search.types import Limits
    from hnefi.protocol.client import own_command
    from hnefi.protocol.errors import EngineError
    from hnefi.protocol.hosts import registry

    from .solve import solve

    nodes = NODES if (arguments.movetime or arguments.depth) is None else None
    limits = Limits(nodes=arguments.nodes or nodes, movetime=arguments.movetime, depth=arguments.depth)
    settings = [*arguments.option, *([("Threads", str(arguments.threads))] if arguments.threads else [])]
    command = tuple(own_command())
    if arguments.engine is not None:
        try:
            engine = registry.engine_of(arguments.engine)
        except ValueError as error:
            options.error(f"--engine: {error}")
        command, settings = engine.words, [*engine.options.items(), *settings]
    live, pace = Live(sys.stderr), Pace(len(entries))
    solved = 0

    def on_result(result: Result) -> None:
        nonlocal solved
        solved += result.solved
        pace.add()
        live.step(lambda: f"{solved} solved: {pace.done}/{pace.total}{pace.eta()}")

    try:
        results = asyncio.run(solve(command, settings, entries, limits, on_result))
    except EngineError as error:
        print(f"hnefi tactics run: {error}", file=sys.stderr)
        return OTHER_SIDE
    finally:
        live.close()
    if arguments.json:
        print(json.dumps(_as_json(results, limits, settings), indent=2))
    else:
        print("\n".join(_text(results, unsolved=arguments.unsolved)))
    return 0


def _text(results: Sequence[Result], *, unsolved: bool) -> list[str]:
    from .solve import by_length, by_variant, table

    lines = []
    for head, key in (("variant", by_variant), ("kind and plies", by_length)):
        lines.append(f"{head:24} {'positions':>9} {'solved':>12} {'announced':>9} {'seconds':>8}")
        lines += [
            f"{name:24} {count:>9} {solved:>4} {100 * solved / count:5.1f} % {said:>9} {seconds:>8.2f}"
            for name, count, solved, said, seconds in table(results, key)
        ]
        lines.append("")
    if unsolved:
        lines += [
            f"{r.entry.id}: {r.move}, not {' '.join(r.entry.moves) or 'seen as lost'}: {r.entry.fen}"
            for r in results
            if not r.solved
        ]
    return lines[:-1] if not unsolved else lines


def _as_json(
    results: Sequence[Result], limits: Limits, settings: Sequence[tuple[str, str]]
) -> dict[str, object]:
    from .solve import by_length, by_variant, table

    head = ("name", "positions", "solved", "announced", "seconds")
    return {
        "limits": {"nodes": limits.nodes, "movetime": limits.movetime, "depth": limits.depth},
        "options": dict(settings),
        "variants": [dict(zip(head, row, strict=True)) for row in table(results, by_variant)],
        "lengths": [dict(zip(head, row, strict=True)) for row in table(results, by_length)],
        "answers": [
            {
                "id": r.entry.id,
                "move": r.move,
                "solved": r.solved,
                "announced": r.announced,
                "nodes": r.nodes,
                "milliseconds": round(r.milliseconds, 1),
            }
            for r in results
        ],
    }
