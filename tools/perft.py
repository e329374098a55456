"""`hnefi perft`: count the leaves of the move tree at a depth, the classic test of move generation."""

from __future__ import annotations

import sys

from .common.arguments import add_variant_path, find_variant, let_interrupt_end_us, natural, parser
from .common.live import Counter, Live


def main(argv: list[str]) -> int:
    """Count and print; the exit status is 2 for a position that cannot be set up."""
    options = parser(
        "perft",
        "Counts the leaves of the tree of all legal moves. Finished positions have no children; repetition and limits "
        "are off.",
        ["brandubh 5", "copenhagen 3 --divide", "brandubh 4 --fen '3t3/3t3/3T3/1tTKTtt/T6/3t3/3t3 a 0 2'"],
    )
    options.add_argument(
        "variant", metavar="VARIANT", help="name or alias of a variant, or a TOML file; also as --variant"
    )
    options.takes_variant()
    options.add_argument("depth", metavar="DEPTH", type=natural, help="how many plies")
    options.add_argument("--fen", metavar="FEN", help="the position to start from (else the start position)")
    options.add_argument("--divide", action="store_true", help="the count after each first move")
    options.add_argument(
        "--bulk",
        action="store_true",
        help="count the last plies without playing them: faster, captures unknown",
    )
    add_variant_path(options)
    arguments = options.parse_args(argv)
    let_interrupt_end_us()
    variant = find_variant(options, arguments.variant, arguments.path)

    from hnefi.engine import games
    from hnefi.engine.perft import perft
    from hnefi.engine.squares import move_name

    try:
        position = games.initial(variant) if arguments.fen is None else games.from_fen(variant, arguments.fen)
    except ValueError as error:
        options.error(str(error))
    live = Live(sys.stderr)
    counter = Counter(live, "first moves counted:") if live.terminal else lambda *_: None
    try:
        result = perft(position, arguments.depth, arguments.bulk, counter)
    finally:
        live.close()
    if arguments.divide:
        for move, count in result.divide:
            print(f"{move_name(move)}: {count}")
    rate = round(result.nodes / result.seconds) if result.seconds else 0
    print(f"Nodes searched: {result.nodes}")
    captures = "" if arguments.bulk else f"captures {result.captures} "
    print(f"{captures}time {round(result.seconds * 1000)} ms, {rate} leaves/s")
    return 0
