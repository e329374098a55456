"""`hnefi bench`: fixed searches whose node count is the build's signature; and the way to the measuring benchmarks."""

from __future__ import annotations

from importlib import import_module

from ..common.arguments import let_interrupt_end_us, parser, positive

MEASUREMENTS = {
    "speed": "hnefi.tools.bench.speed",
    "arena": "hnefi.tools.bench.arena",
    "search": "hnefi.tools.bench.search",
    "evaluators": "hnefi.tools.bench.evaluators",
    "siege": "hnefi.tools.bench.siege",
    "latency": "hnefi.tools.bench.latency",
    "coldstart": "hnefi.tools.bench.coldstart",
    "random": "hnefi.tools.bench.random_mover",
    "scale": "hnefi.tools.bench.scale",
    "hex": "hnefi.tools.bench.hex",
    "oneply": "hnefi.tools.bench.oneply",
    "mcts": "hnefi.tools.bench.mcts",
    "terminal": "hnefi.tools.bench.terminal",
    "sessions": "hnefi.tools.bench.sessions",
    "web": "hnefi.tools.bench.web",
    "queue": "hnefi.tools.bench.queue",
}


def main(argv: list[str]) -> int:
    """Search the fixed positions, or run one of the measurements."""
    if argv[:1] == ["tactics"]:
        from ..tactics.command import main as tactics

        return tactics(["run", *argv[1:]])
    if argv and argv[0] in MEASUREMENTS:
        status: int = import_module(MEASUREMENTS[argv[0]]).main(argv[1:])
        return status
    options = parser(
        "bench",
        "Searches fixed positions of several variants. The number of nodes is the same on every run and machine: a "
        "change of it is a change of how the engine plays.\n\n"
        "  hnefi bench speed      kernels against C, by CPU time\n"
        "  hnefi bench arena      what the arena itself spends on a ply\n"
        "  hnefi bench search     nodes and time to depth with each part of the search on and off, and by threads\n"
        "  hnefi bench evaluators what an evaluation costs with each evaluator, and nodes a second with it\n"
        "  hnefi bench siege      the endgame against a bare king, played out from positions of own games\n"
        "  hnefi bench latency    how fast the process starts, stops and answers\n"
        "  hnefi bench coldstart  what the first start compiles, and what a later one costs, by CPU time\n"
        "  hnefi bench random     games against a random mover, by variant and side\n"
        "  hnefi bench scale      what a centipawn is worth, from games against itself\n"
        "  hnefi bench hex        every opening of a small board of hex, solved\n"
        "  hnefi bench oneply     games of one-ply players with an evolved network\n"
        "  hnefi bench mcts       simulations of the tree search against random games in C, by CPU time\n"
        "  hnefi bench terminal   first board and key presses of `hnefi play`\n"
        "  hnefi bench sessions   what an engine session costs a server: start, memory\n"
        "  hnefi bench web        what the web server adds, with many pages and with one that does not read\n"
        "  hnefi bench queue      how many hosts so many players need, by simulation\n"
        "  hnefi bench tactics    proven wins and losses: how many the engine solves",
        ["", "6", "speed --help", "latency --json"],
    )
    options.add_argument(
        "depth", metavar="DEPTH", nargs="?", type=positive, help="plies, instead of the usual"
    )
    arguments = options.parse_args(argv)
    let_interrupt_end_us()

    from hnefi.engine.bench import bench

    nodes, seconds, lines = bench() if arguments.depth is None else bench(arguments.depth)
    print("\n".join(lines))
    print(f"{seconds:.2f} s, {round(nodes / seconds) if seconds else 0} nodes/s")
    print(f"Nodes searched: {nodes}")
    return 0
