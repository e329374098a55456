"""`hnefi evaluator loss`: how well evaluators tell the results of recorded games."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.protocol.hosts.text_table import aligned

from ..common.arguments import add_variant_path, find_tafl_variant, parser

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.tafl.variant import Variant

PLIES = (20, 40, 60)
"""Plies at which games are asked apart."""
SKIPPED = 4
"""Positions before this ply are left out: all players play alike there."""
NOTHING = "(nothing known)"


@dataclass(frozen=True, slots=True)
class Sample:
    """Positions of recorded games, each with the number of its game and that game's result (1: the attackers won)."""

    asked: Sequence[Position]
    game: Any
    results: Any

    @property
    def sides(self) -> Any:
        """The sides to move, 0 for the attackers."""
        import numpy as np

        return np.array([int(position.side) for position in self.asked])


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
    """Measure and print; 0, or 2 for games that cannot be read and charts that cannot be drawn."""
    from hnefi.engine import evaluators

    from ..common.svg_chart import ChartError, expect_drawable

    options = parser(
        "evaluator loss",
        "Measures how well evaluators predict the results of recorded games, by the mean logistic loss (0.693 is a "
        "guess between two equal chances). All positions after the fourth ply are evaluated, without any search. "
        "Every game has the same weight in the total; in the columns for parts of the games, every position has. "
        "Centipawns are converted to chances by a line that is fitted to the other half of the games. The first "
        "evaluator is what the others are compared with, game by game.",
        [
            "games.csv default net.safetensors --variant brandubh",
            "games.jsonl default-2026.1 default --variant tablut-bologna --chart calibration.svg",
        ],
    )
    options.add_argument(
        "games", metavar="GAMES", help="a collection, .csv or .jsonl, as `hnefi verify` reads them"
    )
    options.add_argument("evaluators", metavar="EVALUATOR", nargs="+", help="names, or .safetensors files")
    options.add_argument("--variant", metavar="V", required=True, help="what was played")
    options.add_argument(
        "--chart",
        metavar="FILE",
        type=Path,
        help="draw how often the attackers won by how often they should have, by side to move, as .svg or .png",
    )
    add_variant_path(options)
    given = options.parse_args(argv)
    variant = find_tafl_variant(options, given.variant, given.path)
    for name in given.evaluators:
        if reason := evaluators.misfit(name, variant):
            options.error(reason)
    try:
        if given.chart:
            expect_drawable(given.chart)
        found = [game for game in positions(given.games, variant) if game[2]]
        if len(found) < 2:
            raise ValueError(f"{given.games}: expected at least two finished games")
        sample = sample_of(found)
        logits = {
            name: crosswise(values(name, variant, sample.asked), sample.results, sample.game % 2)
            for name in given.evaluators
        }
        if given.chart:
            from .loss_chart import draw

            draw(
                given.chart, sample, logits, f"{variant.name}, {len(found)} games of {Path(given.games).name}"
            )
    except ChartError as error:
        options.error(f"--chart {error}")
    except ValueError as error:
        print(f"hnefi evaluator loss: {error}", file=sys.stderr)
        return 2
    print(f"{given.games}: {len(found)} finished games of {variant.name}, {len(sample.asked)} positions")
    print("\n".join(aligned(list(rows(sample, logits)), left=(0,))))
    if len(logits) > 1:
        print("\n".join(["", *aligned(list(differences(sample, logits)), left=(0,))]))
    return 0


def sample_of(found: Sequence[tuple[int, float, list[Position]]]) -> Sample:
    """All positions of some games."""
    import numpy as np

    game = np.repeat(np.arange(len(found)), [len(walked) for _, _, walked in found])
    return Sample(
        [position for _, _, walked in found for position in walked],
        game,
        np.array([result for _, result, _ in found])[game],
    )


def parts_of(sample: Sample) -> dict[str, Any]:
    """The positions that a column of the tables is about, as masks by its name."""
    import numpy as np

    plies = np.array([position.ply for position in sample.asked])
    return {
        "attackers to move": sample.sides == 0,
        "defenders to move": sample.sides == 1,
        **{f"ply {ply} ({(plies == ply).sum()})": plies == ply for ply in PLIES},
    }


def losses(sample: Sample, logits: Any) -> Any:
    """The logistic loss of each position."""
    import numpy as np

    return np.logaddexp(0, logits) - sample.results * logits


def mean(sample: Sample, each: Any, mask: Any = None) -> tuple[float, float]:
    """The mean over games of their positions' mean, or that over all positions of a part; and its standard error, for
    which the positions of a game are one observation. Not numbers if there are fewer than two games."""
    import numpy as np

    game = sample.game if mask is None else sample.game[mask]
    if len(set(game.tolist())) < 2:
        return np.nan, np.nan
    sizes = np.bincount(game)
    weight = 1 / sizes[game] if mask is None else np.ones(len(game))
    values = each if mask is None else each[mask]
    middle = float((values * weight).sum() / weight.sum())
    apart = np.bincount(game, (values - middle) * weight)[sizes > 0]
    count = len(apart)
    return middle, float(np.sqrt((apart**2).sum() * count / (count - 1)) / weight.sum())


def rows(sample: Sample, logits: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The losses: a head, a row for knowing nothing but how often attackers win, and one for each evaluator."""
    import numpy as np

    parts = parts_of(sample)
    share = float(np.clip(mean(sample, sample.results)[0], 1e-3, 1 - 1e-3))
    nothing = np.full(len(sample.results), np.log(share / (1 - share)))
    yield ("evaluator", "loss", "± error", *parts)
    for name, said in {NOTHING: nothing, **logits}.items():
        each = losses(sample, said)
        shown = [f"{each[part].mean():.4f}" if part.any() else "-" for part in parts.values()]
        yield (name, *(f"{number:.4f}" for number in mean(sample, each)), *shown)


def differences(sample: Sample, logits: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """How much more the others lose than the first evaluator on the same positions, with standard errors."""
    parts = parts_of(sample)
    first, *others = logits
    base = losses(sample, logits[first])
    yield (f"more than {first}", "loss", *parts)
    for name in others:
        more = losses(sample, logits[name]) - base
        found = [mean(sample, more), *(mean(sample, more, part) for part in parts.values())]
        yield (name, *("-" if isnan(error) else f"{number:+.4f} ± {error:.4f}" for number, error in found))
