"""Evolution as a learner: an algorithm's individuals play matches, and it is told their fitness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.matches import Games, points
from .algorithm import Algorithm, Champion, Play, Purpose, State, generator
from .contestants import Contestants
from .fitness import Pairing, Schedule, fitness, schedule

if TYPE_CHECKING:
    from .run import Plan

HALL = "hall"
"""The state's array of past champions, beside the arrays of the algorithm."""


@dataclass(frozen=True, slots=True)
class Tournament:
    """Runs the generations of an algorithm by a run's plan."""

    plan: Plan
    algorithm: Algorithm

    def begin(self) -> State:
        return {**self.algorithm.begin(), HALL: np.zeros((0, self.plan.encoding.size))}

    def step(
        self, state: State, generation: int, play: Play
    ) -> tuple[State, tuple[Champion, ...], Mapping[str, Any]]:
        plan, hall = self.plan, state[HALL]
        population = self.algorithm.ask(state, generation)
        size = len(population.genomes)
        field = Pairing(
            size,
            pair_games=plan.values["pair_games"],
            past=len(hall),
            fixed=plan.fixed,
            matches=plan.values["random_matches"],
            common=plan.values["common"] == "yes",
            levels=len(plan.depths),
        )
        matches = schedule(field, plan.seed, generation, ~np.isnan(population.known))
        contestants = contest(plan, np.vstack([population.genomes, hall]))
        games = play(contestants, matches)
        result = points(games)
        fit = fitness(field, matches, result, population.known)
        after, place = self.algorithm.tell(state, generation, population, fit)

        def champion(generation: int, place: int) -> Champion:
            return Champion(
                generation,
                population.genomes[place].copy(),
                float(fit[place]),
                int(population.born[place]),
                population.parents[place].copy(),
            )

        champions = [champion(generation, place)]
        if generation == 1:
            old = np.flatnonzero(population.born == 0)
            champions.insert(0, champion(0, int(old[np.argmax(fit[old])])))
        hall = _remember(hall, champions[-1].genome, plan.values["hall"], plan.seed, generation)
        report = {
            "best": float(fit.max()),
            "median": float(np.median(fit)),
            "mean": float(fit.mean()),
            "champion": {"fitness": champions[-1].fitness, "born": champions[-1].born},
            **_described(matches, games, result),
        }
        return {**after, HALL: hall}, tuple(champions), report

    def describe(self, report: Mapping[str, Any]) -> list[str]:
        return words(report)


def words(report: Mapping[str, Any]) -> list[str]:
    """`best 3.42 median 2.10`, `by captures 61 %`, `drawn 12 %`"""
    matches = max(1, report["matches"])
    return [
        f"best {report['best']:.2f} median {report['median']:.2f}",
        f"by captures {report['by_captures'] / matches:.0%}".replace("%", " %"),
        f"drawn {report['drawn'] / matches:.0%}".replace("%", " %"),
    ]


def contest(plan: Plan, genomes: Any) -> Contestants:
    """Genomes and the fixed opponents as contestants."""
    return Contestants(
        plan.played,
        plan.network,
        plan.encoding.weights(genomes),
        plan.fixed,
        plan.depths,
        plan.values["random_reading"] == "terminal",
    )


def _remember(hall: Any, champion: Any, most: int, seed: int, generation: int) -> Any:
    """The hall, perhaps with a new champion: at any time it has `most` of all champions so far, with equal probability
    (reservoir sampling, J. Vitter, "Random sampling with a reservoir", 1985)."""
    if len(hall) < most:
        return np.vstack([hall, champion])
    place = int(generator(seed, generation, Purpose.HALL).integers(generation))
    if place < most:
        hall = hall.copy()
        hall[place] = champion
    return hall


def _described(matches: Schedule, games: Games, result: Any) -> dict[str, Any]:
    """Statistics of a generation's games. For each kind of match: wins, draws and losses of the contestant named first
    (the individual, if the other is none), in matches and in games by side, and the number of matches decided by
    captures."""
    kinds = {}
    for purpose in sorted({int(number) for number in matches.purpose}):
        here = matches.purpose == purpose
        winner = games.winner[here]
        won = np.stack([(winner == side).sum(axis=0) for side in range(3)])
        kinds[Purpose(purpose).name.lower()] = {
            "matches": [int((result.first[here] == worth).sum()) for worth in (2, 1, 0)],
            "by_captures": int(result.by_captures[here].sum()),
            "attacking": [int(won[side, 0]) for side in (0, 2, 1)],
            "defending": [int(won[side, 1]) for side in (1, 2, 0)],
        }
    return {
        "matches": len(matches),
        "drawn": int((result.first == 1).sum()),
        "by_captures": int(result.by_captures.sum()),
        "games": 2 * len(matches),
        "drawn_games": int((games.winner == 2).sum()),
        "plies": int(games.plies.sum()),
        "evaluations": int(games.evaluations.sum()),
        "kinds": kinds,
    }
