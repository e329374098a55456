"""`hnefi evaluator loss`: how well evaluators tell the results of recorded games."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hnefi.protocol.hosts.text_table import aligned

from ..common.arguments import add_variant_path, find_tafl_variant, parser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.tafl.variant import Variant

PLIES = (20, 40, 60)
"""Plies at which games are asked apart."""
SKIPPED = 4
"""Positions before this ply are left out: all players play alike there."""
NOTHING = "(nothing known)"


def positions(file: str, variant: Variant) -> list[tuple[int, float, list[Position]]]:
    """Line, result (1: the attackers won) and positions of each finished game in a collection; CorpusError or
    ValueError for a file that cannot be read, or a game that does not follow the rules."""
    from hnefi.engine import games
    from hnefi.engine.records.corpus import read
    from hnefi.engine.records.replay import as_played

    played = as_played(variant)
    found = []
    for game in read(file, variant.size):
        if game.result is None:
            continue
        here: Position = games.initial(played)
        walked = []
        for move, _ in game.plies:
            here = here.play(move)
            if here.outcome is not None:
                break
            walked.append(here)
        found.append((game.line, {"a": 1.0, "draw": 0.5, "d": 0.0}[game.result], walked[SKIPPED - 1 :]))
    return found


def values(name: str, variant: Variant, asked: Sequence[Position]) -> Any:
    """What an evaluator says of positions, in centipawns for the attackers."""
    import numpy as np

    from hnefi.engine import evaluators
    from hnefi.engine.games import interface as verbs

    params = evaluators.parameters(name, variant)[0]
    said = np.zeros(len(asked))
    for i, position in enumerate(asked):
        value = int(verbs.evaluate(params, position.new_record()[0]))
        said[i] = -value if position.side else value
    return said


def crosswise(scores: Any, results: Any, halves: Any) -> Any:
    """Logits of the results, by the line that fits the other half of the games best."""
    import numpy as np

    from ..common.calibration import expected, scale_of

    made = np.zeros(len(scores))
    for half in (0, 1):
        here = halves == half
        made[here] = expected(scores[here], scale_of(scores[~here], results[~here]))
    return made


def main(argv: list[str]) -> int:
    """Measure and print; 0, or 2 for games that cannot be read."""
    import numpy as np

    from hnefi.engine import evaluators

    from ..common.calibration import loss

    options = parser(
        "evaluator loss",
        "Measures how well evaluators predict the results of recorded games, by the mean logistic loss (0.693 is a "
        "guess between two equal chances). All positions after the fourth ply are evaluated, without any search. "
        "Every game has the same weight in the total; in the rows for parts of the games, every position has. "
        "Centipawns are converted to chances by a line that is fitted to the other half of the games.",
        [
            "games.csv default net.safetensors --variant brandubh",
            "games.jsonl default default-2026.1 --variant tablut-bologna",
        ],
    )
    options.add_argument(
        "games", metavar="GAMES", help="a collection, .csv or .jsonl, as `hnefi verify` reads them"
    )
    options.add_argument("evaluators", metavar="EVALUATOR", nargs="+", help="names, or .safetensors files")
    options.add_argument("--variant", metavar="V", required=True, help="what was played")
    add_variant_path(options)
    given = options.parse_args(argv)
    variant = find_tafl_variant(options, given.variant, given.path)
    for name in given.evaluators:
        if reason := evaluators.misfit(name, variant):
            options.error(reason)
    try:
        found = [game for game in positions(given.games, variant) if game[2]]
    except ValueError as error:
        print(f"hnefi evaluator loss: {error}", file=sys.stderr)
        return 2
    if len(found) < 2:
        print(f"hnefi evaluator loss: {given.games}: expected at least two finished games", file=sys.stderr)
        return 2
    asked = [position for _, _, walked in found for position in walked]
    lengths = np.array([len(walked) for _, _, walked in found])
    game = np.repeat(np.arange(len(found)), lengths)
    results = np.array([result for _, result, _ in found])[game]
    plies = np.array([position.ply for position in asked])
    sides = np.array([int(position.side) for position in asked])
    parts = {
        "attackers to move": sides == 0,
        "defenders to move": sides == 1,
        **{f"ply {ply} ({(plies == ply).sum()})": plies == ply for ply in PLIES},
    }
    weight = 1 / lengths[game]

    def line(name: str, logits: Any) -> tuple[str, ...]:
        """The mean over games of their positions' mean loss, its standard error, and that of the parts."""
        each = np.logaddexp(0, logits) - results * logits
        by_game = np.bincount(game, each * weight)
        error = by_game.std(ddof=1) / np.sqrt(len(by_game))
        shown = [f"{loss(logits[part], results[part]):.4f}" if part.any() else "-" for part in parts.values()]
        return (name, f"{by_game.mean():.4f}", f"{error:.4f}", *shown)

    share = float(np.clip((results * weight).sum() / weight.sum(), 1e-3, 1 - 1e-3))
    lines = [line(NOTHING, np.full(len(asked), np.log(share / (1 - share))))]
    lines += [
        line(name, crosswise(values(name, variant, asked), results, game % 2)) for name in given.evaluators
    ]
    print(f"{given.games}: {len(found)} finished games of {variant.name}, {len(asked)} positions")
    print("\n".join(aligned([("evaluator", "loss", "± error", *parts), *lines], left=(0,))))
    return 0
