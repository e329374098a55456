"""Finds the best champion of a run: the archive against a fixed field, with other seeds than in training.

The fittest individual of a generation is mostly lucky, and so is the best of three hundred measurements. So all
champions play a few matches, the best of them play many, and the best of these is measured once more, on fresh games
that had no part in the choice.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hnefi.engine import durable

from ..common.matches import points
from ..common.statistics import wilson
from .algorithm import Play, Purpose, game_seeds
from .contestants import Contestants
from .fitness import Pairing, schedule
from .folder import ARCHIVE, Folder, FolderError
from .run import Plan

FOLDER, REPORT, CHAMPION = "rank", "report.json", "champion.safetensors"
FINALISTS = 10
MORE = 10
"""Finalists play this many times the matches of the first round; afterwards the winner plays as many again."""
BATCH = 50


class Opponent(NamedTuple):
    """One player of the field: its name, and how it plays."""

    name: str
    purpose: Purpose
    terminal: bool = False


FIELD = (
    Opponent("random-blind", Purpose.RANDOM),
    Opponent("random-terminal", Purpose.RANDOM, terminal=True),
    Opponent("simple", Purpose.SIMPLE),
)


@dataclass(frozen=True, slots=True)
class Referee:
    """Lets champions of a plan play against the field at a given depth."""

    plan: Plan
    depth: int
    play: Play

    @property
    def field(self) -> tuple[Opponent, ...]:
        """The opponents of the champions. Simple plays only tafl."""
        tafl = self.plan.variant.game == "tafl"
        return tuple(one for one in FIELD if tafl or one.purpose != Purpose.SIMPLE)

    def meet(
        self, weights: Any, key: int, opponent: Opponent, stage: Purpose, matches: int
    ) -> tuple[Any, Any]:
        """Games and points of `weights` (champions x all) against one opponent; `key` and `stage` name the streams."""
        seed = int(game_seeds(self.plan.seed, key, stage, opponent.purpose, opponent.terminal))
        contestants = Contestants(
            self.plan.played,
            self.plan.network,
            weights,
            (opponent.purpose,),
            (self.depth,),
            opponent.terminal,
        )
        field = Pairing(len(weights), pair_games=0, fixed=(opponent.purpose,), matches=matches)
        games = self.play(contestants, schedule(field, seed, 0))
        return games, points(games)

    def scores(self, weights: Any, stage: Purpose, matches: int) -> list[float]:
        """The share of points of each champion, from 0 to 1, as the mean over the field."""
        total = np.zeros(len(weights))
        for opponent in self.field:
            for low in range(0, len(weights), BATCH):
                part = weights[low : low + BATCH]
                _, result = self.meet(part, low, opponent, stage, matches)
                total[low : low + BATCH] += result.first.reshape(len(part), matches).mean(axis=1) / 2
        return [float(score) for score in total / len(self.field)]

    def confirm(self, weights: Any, matches: int) -> dict[str, Any]:
        """One champion's results against each opponent: matches won, drawn, lost, with a 95 % interval of the share
        won; games won, drawn, lost by side; the number of matches decided by captures."""
        found = {}
        for opponent in self.field:
            games, result = self.meet(weights[None], 0, opponent, Purpose.CONFIRM, matches)
            won, drawn, lost = (int((result.first == worth).sum()) for worth in (2, 1, 0))
            found[opponent.name] = {
                "matches": [won, drawn, lost],
                "won_95": wilson(won, matches),
                "by_captures": int(result.by_captures.sum()),
                "attacking": [int((games.winner[:, 0] == side).sum()) for side in (0, 2, 1)],
                "defending": [int((games.winner[:, 1] == side).sum()) for side in (1, 2, 0)],
            }
        return found


def rank(
    folder: Folder, plan: Plan, depth: int, play: Play, matches: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Rank the archive, write the report and the better champion into `rank/`, and return the report."""
    from hnefi.engine.evaluators import files

    names = sorted((folder.path / ARCHIVE).glob("gen-*.safetensors"))
    names = [name for name in names if int(name.stem[4:]) <= folder.checkpoint.generation]
    if not names:
        raise FolderError(f"{folder.path / ARCHIVE}: empty: expected the champions of a run")
    try:
        weights = np.vstack([files.genome(files.load(name, plan.variant)) for name in names])
    except (OSError, ValueError) as error:
        raise FolderError(f"{folder.path / ARCHIVE}: {error}") from None
    generations = [int(name.stem[4:]) for name in names]
    referee = Referee(plan, depth, play)
    against = ", ".join(opponent.name for opponent in referee.field)
    say(f"{len(names)} champions, {matches} matches each against {against}, {depth} ply")
    first = referee.scores(weights, Purpose.RANK, matches)
    best = sorted(range(len(names)), key=lambda i: -first[i])[:FINALISTS]
    say(f"the best {len(best)} again, {matches * MORE} matches each")
    again = referee.scores(weights[best], Purpose.FINAL, matches * MORE)
    order = sorted(range(len(best)), key=lambda i: -again[i])
    winner = best[order[0]]
    say(f"generation {generations[winner]} again, on fresh games that had no part in the choice")
    report = {
        "variant": plan.variant.name,
        "seed": plan.seed,
        "depth": depth,
        "matches": matches,
        "generation": generations[winner],
        "confirmed": referee.confirm(weights[winner], matches * MORE),
        "finalists": [
            {"generation": generations[best[i]], "score": again[i], "first": first[best[i]]} for i in order
        ],
        "scores": {str(generation): score for generation, score in zip(generations, first, strict=True)},
    }
    (folder.path / FOLDER).mkdir(exist_ok=True)
    durable.put(folder.path / FOLDER / REPORT, (json.dumps(report, indent=1) + "\n").encode())
    durable.put(folder.path / FOLDER / CHAMPION, names[winner].read_bytes())
    return report
