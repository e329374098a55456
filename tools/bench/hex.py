"""`hnefi bench hex`: every opening of a small Hex board solved by the ordinary search."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from hnefi.engine.games.hex.variant import WINNING_OPENINGS
from hnefi.protocol.hosts.argument_types import whole

from ..common.arguments import let_interrupt_end_us, parser, positive

LARGEST = 6
board_size = whole(2, LARGEST)


def main(argv: list[str]) -> int:
    """Solve and compare; the exit status is 1 if a value differs from the known one."""
    options = parser(
        "bench hex",
        "Finds out for every opening of Hex whether it wins, by the ordinary search with its evaluator. Openings that "
        "are the same after a half turn are solved once. W: whoever opens with it wins.",
        ["", "--size 4", "--hash 1024 --json"],
    )
    options.add_argument(
        "--size",
        metavar="N",
        type=board_size,
        default=5,
        help=f"files of the board, 2 to {LARGEST} (default 5, which takes minutes; 6 takes very long)",
    )
    options.add_argument("--hash", type=positive, default=256, metavar="MIB", help="table size (default 256)")
    options.add_argument("--json", action="store_true", help="one JSON document")
    arguments = options.parse_args(argv)
    let_interrupt_end_us()

    from hnefi.engine.games import find
    from hnefi.engine.warmup import warm_game

    warm_game(find("hex"))
    size = arguments.size
    table = [["?"] * size for _ in range(size)]
    openings = []
    for row in range(size):
        for column in range(size):
            if table[row][column] == "?":
                found = _solve(size, row, column, arguments.hash)
                table[row][column] = table[-1 - row][-1 - column] = found["value"]
                openings.append(found)
                if not arguments.json:
                    print(
                        f"{found['move']:3} {found['value']}  in {found['plies']:2} plies  {found['nodes']:13,} nodes  "
                        f"{found['seconds']:8.1f} s",
                        flush=True,
                    )
    whole = "/".join("".join(row) for row in table)
    known = WINNING_OPENINGS.get(size)
    nodes, seconds = sum(row["nodes"] for row in openings), sum(row["seconds"] for row in openings)
    if arguments.json:
        json.dump({"size": size, "openings": openings, "table": whole, "known": known}, sys.stdout, indent=2)
        print()
    else:
        verdict = (
            "nothing known to compare with"
            if known is None
            else "as known"
            if whole == known
            else f"known: {known}"
        )
        print(f"{whole}  {verdict}")
        print(f"{len(openings)} openings, {nodes:,} nodes, {seconds:.1f} s")
    return int(known is not None and whole != known)


def _solve(size: int, row: int, column: int, mebibytes: int) -> dict[str, Any]:
    """The value of one opening, the plies until the end with best play, and the effort of finding out."""
    from hnefi.engine import games
    from hnefi.engine.search.searcher import Searcher
    from hnefi.engine.search.types import Info, Limits, Settings
    from hnefi.engine.squares import move, move_name, square

    sq = square(column, size - 1 - row)
    opening = move(sq, sq)
    position = games.initial(games.find(f"hex:{size}")).play(opening)
    searcher = Searcher(Settings(hash_mib=mebibytes))
    infos: list[Info] = []
    searcher.begin()
    begun = time.perf_counter()
    searcher.search(position, Limits(depth=size * size), infos.append)
    seconds = time.perf_counter() - begun
    last = infos[-1]
    # The board is full before that depth, so the search has seen every game to its end.
    mate = last.score.mate
    assert mate is not None
    return {
        "move": move_name(opening),
        "value": "W" if mate < 0 else ".",
        "plies": 2 * mate if mate > 0 else 1 - 2 * mate,
        "nodes": last.nodes,
        "seconds": round(seconds, 2),
    }
