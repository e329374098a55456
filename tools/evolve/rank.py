"""Finds the best player of a run: its champions or its survivors against a fixed field, with other seeds than in
training.

The fittest individual of a generation is mostly lucky, and so is the best of three hundred measurements. So all
candidates play a few matches, the best of them play many, and the best of these is measured once more, on fresh games
that had no part in the choice.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hnefi.engine import durable
from hnefi.engine.wording import counted

from ..common.correlation import spearman
from ..common.matches import points
from ..common.statistics import wilson
from .algorithm import Champion, Play, Purpose, game_seeds
from .contestants import Contestants
from .fitness import Pairing, schedule
from .folder import ARCHIVE, Folder, FolderError, save_champion
from .run import Plan

FOLDER = "rank"
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


@dataclass(frozen=True, slots=True)
class Candidates:
    """Whom a ranking compares: called `word` and a number, with `weights` (candidates x all). `save` writes one of them
    to a path. `fitness` is that of training, if training has compared them with each other; then the first is its best.
    The report and the best player get the names `report` and `best`."""

    word: str
    numbers: Sequence[int]
    weights: Any
    save: Callable[[int, Path], object]
    report: str
    best: str
    fitness: Sequence[float] = ()


def champions(folder: Folder, plan: Plan) -> Candidates:
    """The champions of all generations; FolderError if the archive is damaged."""
    from hnefi.engine.evaluators import files

    names = sorted((folder.path / ARCHIVE).glob("gen-*.safetensors"))
    names = [name for name in names if int(name.stem[4:]) <= folder.checkpoint.generation]
    if not names:
        raise FolderError(f"{folder.path / ARCHIVE}: empty: expected the champions of a run")
    try:
        weights = np.vstack([files.genome(files.load(name, plan.variant)) for name in names])
    except (OSError, ValueError) as error:
        raise FolderError(f"{folder.path / ARCHIVE}: {error}") from None
    return Candidates(
        "generation",
        [int(name.stem[4:]) for name in names],
        weights,
        lambda i, path: durable.put(path, names[i].read_bytes()),
        "report.json",
        "champion.safetensors",
    )


def survivors(folder: Folder, plan: Plan) -> Candidates:
    """The individuals that survived the last generation of an evolution strategy, the fittest first."""
    generation, state = folder.checkpoint.generation, folder.checkpoint.state
    if not generation:
        raise FolderError(f"{folder.path}: no generation is finished: expected at least one")
    fitness = [float(value) for value in state["fitness"]]

    def save(i: int, path: Path) -> None:
        known = None if math.isnan(fitness[i]) else fitness[i]
        genome, parent = state["weights"][i], state["parents"][i]
        save_champion(path, plan, Champion(generation, genome, known, int(state["born"][i]), parent))

    return Candidates(
        "survivor",
        range(1, len(fitness) + 1),
        plan.encoding.weights(state["weights"]),
        save,
        "survivors.json",
        "survivor.safetensors",
        fitness,
    )


def rank(
    folder: Folder,
    plan: Plan,
    candidates: Candidates,
    depth: int,
    play: Play,
    matches: int,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Rank the candidates, write the report and the better player into `rank/`, and return the report."""
    word, numbers, weights = candidates.word, candidates.numbers, candidates.weights
    referee = Referee(plan, depth, play)
    against = ", ".join(opponent.name for opponent in referee.field)
    say(
        f"{counted(len(numbers), word)}, {counted(matches, 'match', 'matches')} each against {against},"
        f" {counted(depth, 'ply', 'plies')}"
    )
    first = referee.scores(weights, Purpose.RANK, matches)
    best = sorted(range(len(numbers)), key=lambda i: -first[i])[:FINALISTS]
    if candidates.fitness and 0 not in best:
        # What training would have chosen is measured on the same games.
        best.append(0)
    say(f"again: {len(best)} of them, {counted(matches * MORE, 'match', 'matches')} each")
    again = referee.scores(weights[best], Purpose.FINAL, matches * MORE)
    order = sorted(range(len(best)), key=lambda i: -again[i])
    winner = best[order[0]]
    say(f"{word} {numbers[winner]} again, on fresh games that had no part in the choice")
    report: dict[str, Any] = {
        "variant": plan.variant.name,
        "seed": plan.seed,
        "depth": depth,
        "matches": matches,
        word: numbers[winner],
        "confirmed": referee.confirm(weights[winner], matches * MORE),
        "finalists": [{word: numbers[best[i]], "score": again[i], "first": first[best[i]]} for i in order],
        "scores": {str(number): score for number, score in zip(numbers, first, strict=True)},
    }
    if candidates.fitness:
        report |= {
            "fitness": {
                str(number): None if math.isnan(value) else value
                for number, value in zip(numbers, candidates.fitness, strict=True)
            },
            "fittest": {
                "score": again[best.index(0)],
                "confirmed": referee.confirm(weights[0], matches * MORE),
            },
            "correlation": None
            if any(map(math.isnan, candidates.fitness))
            else spearman(candidates.fitness, first),
        }
    (folder.path / FOLDER).mkdir(exist_ok=True)
    durable.put(folder.path / FOLDER / candidates.report, (json.dumps(report, indent=1) + "\n").encode())
    candidates.save(winner, folder.path / FOLDER / candidates.best)
    return report
