"""`hnefi bench`: fixed searches whose node count is the build's signature, and the entry point of other benchmarks."""

from __future__ import annotations

from argparse import ArgumentTypeError
from importlib import import_module

from hnefi.engine.wording import nearest

from ..common.arguments import let_interrupt_end_us, parser, positive

MEASUREMENTS = {
    "speed": "kernels against C, by CPU time",
    "arena": "the arena's own CPU time per ply",
    "search": "nodes and time to depth with each part of the search on and off, and by threads",
    "evaluators": "what an evaluation costs with each evaluator, and nodes per second with it",
    "pruning": "what sorting, windows, a table and MTD(f) save in a plain alpha-beta",
    "siege": "the endgame against a bare king, played out from positions of our own games",
    "latency": "how fast the process starts, stops and answers",
    "coldstart": "what the first start compiles, and what a later one costs, by CPU time",
    "random": "games against a random mover, by variant and side",
    "scale": "what a centipawn is worth, from games against itself",
    "hex": "every opening of a small hex board, solved",
    "oneply": "games of one-ply players with an evolved network",
    "mcts": "simulations of the tree search against random games in C, by CPU time",
    "terminal": "first board and key presses of `hnefi play`",
    "sessions": "what an engine session costs a server: start, memory",
    "web": "what the web server adds, with many pages and with one that does not read",
    "queue": "how many hosts so many players need, by simulation",
    "tactics": "proven wins and losses: how many the engine solves",
}
"""The other benchmarks. Each is the module of that name in this folder, except for those in `MODULES`."""
MODULES = {"random": "random_mover"}


def _depth(text: str) -> int:
    try:
        return positive(text)
    except ArgumentTypeError:
        raise ArgumentTypeError(
            f"{text[:80]!r}: expected a depth from 1 on, or one of {', '.join(MEASUREMENTS)}"
            f"{nearest(text, MEASUREMENTS)}"
        ) from None


def main(argv: list[str]) -> int:
    """Search the fixed positions, or run one of the measurements."""
    if argv[:1] == ["tactics"]:
        from ..tactics.command import main as tactics

        return tactics(["run", *argv[1:]])
    if argv and argv[0] in MEASUREMENTS:
        module = import_module(f".{MODULES.get(argv[0], argv[0])}", __package__)
        status: int = module.main(argv[1:])
        return status
    options = parser(
        "bench",
        "Searches fixed positions of several variants. The number of nodes is the same on every run and machine; if it "
        "changes, the engine plays differently.\n\n"
        + "\n".join(f"  hnefi bench {name:<10}  {what}" for name, what in MEASUREMENTS.items()),
        ["", "6", "speed --help", "latency --json"],
    )
    options.add_argument(
        "depth", metavar="DEPTH", nargs="?", type=_depth, help="plies, instead of the usual depths"
    )
    arguments = options.parse_args(argv)
    let_interrupt_end_us()

    from hnefi.engine.bench import bench

    nodes, seconds, lines = bench() if arguments.depth is None else bench(arguments.depth)
    print("\n".join(lines))
    print(f"{seconds:.2f} s, {round(nodes / seconds) if seconds else 0} nodes/s")
    print(f"Nodes searched: {nodes}")
    return 0
