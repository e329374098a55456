"""`hnefi bench scale`: what a centipawn is worth, by logistic regression over games of the engine with itself.

100 centipawns are meant to be an expected score of 64 %, that is 1 / (1 + 10^(-cp / 400)). The regression fits
1 / (1 + 10^(-k (cp - shift) / 400)): a scale k of 1 means that they are; the shift is the evaluation at which a
variant's games are even (the start position may well favour one side).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hnefi.engine.catalogue import MEASURED

from ..common.arguments import add_variants, find_variant, let_interrupt_end_us, parser, positive

if TYPE_CHECKING:
    from hnefi.engine.games.base_variant import AnyVariant

CLIP = 1000
"""Centipawns beyond which a game is decided and says nothing about the scale."""
Sample = tuple[float, float]
"""An evaluation in centipawns for the attackers, and their score in that game."""


def main(argv: list[str]) -> int:
    """Play, fit, and print the scale of every variant and of all together."""
    options = parser(
        "bench scale",
        "Plays the default search against itself from random openings and fits how much a centipawn is worth in "
        "expected score.",
        ["", "--games 50 --nodes 500"],
    )
    add_variants(options, MEASURED)
    options.add_argument(
        "--games", metavar="N", type=positive, default=200, help="games per variant (default 200)"
    )
    options.add_argument(
        "--nodes", metavar="N", type=positive, default=1000, help="nodes per move (default 1000)"
    )
    options.add_argument(
        "--seed", metavar="S", type=positive, default=1, help="seed of the openings (default 1)"
    )
    options.add_argument("--json", action="store_true", help="one JSON document")
    arguments = options.parse_args(argv)
    let_interrupt_end_us()

    rows = []
    for word in arguments.variants:
        chosen = find_variant(options, word)
        name = chosen.name
        samples, score = _games(chosen, arguments.games, arguments.nodes, arguments.seed)
        scale, shift = fit(samples)
        rows.append(
            {"variant": name, "positions": len(samples), "attackers": score, "scale": scale, "shift": shift}
        )
        if not arguments.json:
            print(
                f"{name:22} {len(samples):6} positions  attackers score {score:5.1%}  scale {scale:5.2f}  "
                f"shift {shift:7.0f} cp",
                flush=True,
            )
    if arguments.json:
        json.dump(rows, sys.stdout, indent=2)
        print()
    return 0


def _games(variant: AnyVariant, games: int, nodes: int, seed: int) -> tuple[list[Sample], float]:
    """Samples of all searched positions without a forced result, and the attackers' mean score."""
    from hnefi.engine.openings import generate
    from hnefi.engine.search.searcher import Searcher
    from hnefi.engine.search.types import Info, Limits, Settings

    samples: list[Sample] = []
    total = 0.0
    searcher = Searcher(Settings(hash_mib=1))
    openings = list(generate(variant, games, seed))
    for opening in openings:
        searcher.clear()
        position = opening
        seen = []
        while (outcome := position.outcome) is None and position.ply < 400:
            infos: list[Info] = []
            searcher.begin()
            move = searcher.search(position, Limits(nodes=nodes), infos.append).move
            cp = infos[-1].score.cp
            if cp is not None and abs(cp) <= CLIP:
                seen.append(float(cp if position.side == 0 else -cp))
            assert move is not None
            position = position.play(move)
        score = 0.5 if outcome is None or outcome.winner is None else 1.0 - outcome.winner
        total += score
        samples += [(value, score) for value in seen]
    return samples, total / max(1, len(openings))


def fit(samples: Sequence[Sample]) -> tuple[float, float]:
    """Maximum-likelihood scale and shift, by Newton's method on log-odds a + b cp; (nan, nan) if there is none."""
    a = b = 0.0
    unit = math.log(10) / 400
    for _ in range(50):
        g0 = g1 = 0.0
        h00 = h01 = h11 = 1e-9
        for cp, score in samples:
            x = cp * unit
            p = 1 / (1 + math.exp(-max(-40.0, min(40.0, a + b * x))))
            w = p * (1 - p)
            g0 += score - p
            g1 += (score - p) * x
            h00 += w
            h01 += w * x
            h11 += w * x * x
        det = h00 * h11 - h01 * h01
        if det <= 0:
            return math.nan, math.nan
        da, db = (h11 * g0 - h01 * g1) / det, (h00 * g1 - h01 * g0) / det
        a, b = a + da, b + db
        if abs(da) + abs(db) < 1e-9:
            break
    if b == 0:
        return math.nan, math.nan
    return b, -a / (b * unit)
