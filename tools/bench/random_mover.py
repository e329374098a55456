"""`hnefi bench random`: games of the default search against a uniformly random mover, all of which it must win."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from typing import TYPE_CHECKING

from hnefi.engine.catalogue import MEASURED

from ..common.arguments import add_variants, find_variant, let_interrupt_end_us, parser, positive

if TYPE_CHECKING:
    from hnefi.engine.games.base_variant import AnyVariant


def main(argv: list[str]) -> int:
    """Play every variant as either side; the exit status is 1 unless every game was won."""
    options = parser(
        "bench random",
        "Plays the default search against a uniformly random mover, as either side, in this process. The games are "
        "the same on every run.",
        ["", "berserk ard-ri --games 20 --nodes 500", "--json"],
    )
    add_variants(options, MEASURED)
    options.add_argument(
        "--games", metavar="N", type=positive, default=100, help="games per variant and side (default 100)"
    )
    options.add_argument(
        "--nodes",
        metavar="N",
        type=positive,
        default=20000,
        help="nodes per move of the search (default 20000)",
    )
    options.add_argument("--json", action="store_true", help="one JSON document")
    arguments = options.parse_args(argv)
    let_interrupt_end_us()

    from hnefi.engine.sides import Side

    rows = []
    for word in arguments.variants:
        chosen = find_variant(options, word)
        name = chosen.name
        for side in Side:
            counts, reasons, plies = _play(chosen, side, arguments.games, arguments.nodes)
            rows.append(
                {
                    "variant": name,
                    "side": side.letter,
                    "won": counts["won"],
                    "drawn": counts["drawn"],
                    "lost": counts["lost"],
                    "plies": round(plies / arguments.games, 1),
                    "reasons": dict(reasons.most_common()),
                }
            )
            if not arguments.json:
                row = rows[-1]
                how = ", ".join(f"{reason.replace('_', ' ')} {n}" for reason, n in reasons.most_common())
                print(
                    f"{name:22} as {side.letter}  won {row['won']:4} drawn {row['drawn']:3} lost {row['lost']:3}  "
                    f"{row['plies']:6} plies  {how}",
                    flush=True,
                )
    if arguments.json:
        json.dump({"nodes": arguments.nodes, "games": arguments.games, "rows": rows}, sys.stdout, indent=2)
        print()
    return int(any(row["won"] != arguments.games for row in rows))


def _play(variant: AnyVariant, side: int, games: int, nodes: int) -> tuple[Counter[str], Counter[str], int]:
    """Results, reasons and plies of a series as one side."""
    from hnefi.engine import games as doors
    from hnefi.engine.search.searcher import Searcher
    from hnefi.engine.search.types import Limits, Settings

    results: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    plies = 0
    start = doors.initial(variant)
    searcher = Searcher(Settings(hash_mib=1))
    for game in range(games):
        draw = random.Random(f"{variant.name} {side} {game}")
        searcher.clear()
        position = start
        while (outcome := position.outcome) is None:
            if position.side == side:
                searcher.begin()
                move = searcher.search(position, Limits(nodes=nodes), lambda _: None).move
                assert move is not None
            else:
                move = draw.choice(position.legal_moves())
            position = position.play(move)
        plies += position.ply
        won = outcome.winner
        results["drawn" if won is None else "won" if won == side else "lost"] += 1
        reasons[outcome.reason] += 1
    return results, reasons, plies
