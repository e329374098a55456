"""The (mu + lambda) evolution strategy with a step size for every weight, as Hingston used it.

Source: P. Hingston, "Evolving Players for an Ancient Game: Hnefatafl", 2007. Every child has one parent; its step sizes
are the parent's times exp(global N + local N_j), and then every weight moves by its step size times N_j. Parents and
children are evaluated anew, and the best `mu` survive with their step sizes. Options cover places where the text can be
read in two ways. Averaging of parent and child: T. Runarsson and S. Lucas, "Coevolution versus self-play temporal
difference learning for acquiring position evaluation in small-board Go", 2005.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .algorithm import Population, Purpose, State, digest, generator


@dataclass(frozen=True, slots=True)
class EvolutionStrategy:
    """The strategy for genomes of `size` weights; `options` as in `options.py`."""

    size: int
    seed: int
    options: Mapping[str, Any]
    start: Any = 0.0

    def begin(self) -> State:
        """Parents N(start, init_scale^2) with all step sizes `sigma0`."""
        mu, n = self.options["mu"], self.size
        draw = generator(self.seed, 0, Purpose.START)
        return {
            "weights": self.start + draw.standard_normal((mu, n)) * self.options["init_scale"],
            "sigmas": np.full((mu, n), self.options["sigma0"]),
            "born": np.zeros(mu, np.int64),
            "parents": np.zeros((mu, 32), np.uint8),
            "fitness": np.full(mu, np.nan),
        }

    def ask(self, state: State, generation: int) -> Population:
        """The parents, then the children; child k has parent k modulo `mu`."""
        mu, count = self.options["mu"], self.options["lambda"]
        children = [self._child(state, generation, k) for k in range(count)]
        digests = [digest(weights) for weights in state["weights"]]
        known = np.full(mu, np.nan) if self.options["reevaluate"] == "yes" else state["fitness"]
        return Population(
            np.vstack([state["weights"], *(weights for weights, _ in children)]),
            born=np.concatenate([state["born"], np.full(count, generation)]),
            parents=np.vstack([state["parents"], *(digests[k % mu] for k in range(count))]),
            known=np.concatenate([known, np.full(count, np.nan)]),
            memo=np.vstack([state["sigmas"], *(sigmas for _, sigmas in children)]),
        )

    def tell(self, state: State, generation: int, population: Population, fitness: Any) -> tuple[State, int]:
        """The best `mu` survive, the best of all first."""
        mu, average = self.options["mu"], self.options["average"]
        order = self._order(generation, fitness)
        chosen = order[:mu]
        weights, known = population.genomes[chosen], fitness[chosen]
        if average < 1:
            child = chosen >= mu
            old = state["weights"][(chosen[child] - mu) % mu]
            weights[child] = old + average * (weights[child] - old)
            known[child] = np.nan
        survivors = {
            "weights": weights,
            "sigmas": population.memo[chosen],
            "born": population.born[chosen],
            "parents": population.parents[chosen],
            "fitness": known,
        }
        return survivors, int(order[0])

    def _child(self, state: State, generation: int, k: int) -> tuple[Any, Any]:
        """Weights and step sizes of child `k`."""
        n, options = self.size, self.options
        draw = generator(self.seed, generation, Purpose.MUTATE, k)
        parent = k % options["mu"]
        inherited = {
            "own": lambda: state["sigmas"][parent],
            "first": lambda: state["sigmas"][0],
            "mean": lambda: state["sigmas"].mean(axis=0),
        }[options["inherit"]]()
        common, local = learning_rates(n, options["tau"])
        change = common * draw.standard_normal() + local * draw.standard_normal(n)
        sigmas = np.maximum(inherited * np.exp(change), options["sigma_min"])
        steps = draw.standard_normal(n if options["step"] == "weight" else 1)
        return state["weights"][parent] + sigmas * steps, sigmas

    def _order(self, generation: int, fitness: Any) -> Any:
        """Indices from the best to the worst; `tie` decides the order among equals."""
        count = len(fitness)
        last = generator(self.seed, generation, Purpose.SELECT).permutation(count)
        child = np.arange(count) >= self.options["mu"]
        second = {"random": np.zeros(count), "parents": child, "children": ~child}[self.options["tie"]]
        return np.lexsort((last, second, -fitness))


def learning_rates(n: int, convention: str) -> tuple[float, float]:
    """The factors of the global change of step sizes and of each weight's own. `printed` is as in Hingston's text,
    `schwefel` as in H.-P. Schwefel, "Numerical Optimization of Computer Models", 1981: the other way round."""
    small, large = 1 / np.sqrt(2 * n), 1 / np.sqrt(2 * np.sqrt(n))
    return (large, small) if convention == "printed" else (small, large)
