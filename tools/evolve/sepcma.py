"""sep-CMA-ES: a normal distribution with its own variance for every weight, by the package `cma`.

Source: R. Ros and N. Hansen, "A simple modification in CMA-ES achieving linear time and space complexity", 2008.

The package's internal state is never stored. Our state is the fitness of every generation; to continue, all of it is
asked and told again from the same streams, which costs milliseconds per generation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .algorithm import Population, Purpose, State, generator


@dataclass(slots=True)
class SepCMA:
    """The strategy for genomes of `size` weights; `options` as in `options.py`. ImportError without the package."""

    size: int
    seed: int
    options: Mapping[str, Any]
    start: Any = 0.0
    _told: int = field(default=-1, init=False)
    _drawn: int = field(default=0, init=False)
    _strategy: Any = field(default=None, init=False)
    _asked: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        import cma  # noqa: F401 - fail at once if it is missing

    def begin(self) -> State:
        return {"history": np.zeros((0, self.options["lambda"]))}

    def ask(self, state: State, generation: int) -> Population:
        """The candidates, followed by the mean of the distribution, which is compared with them but never told."""
        self._reach(state)
        genomes = np.vstack([self._asked, self._strategy.mean])
        count = len(genomes)
        return Population(
            genomes,
            born=np.array([generation] * (count - 1) + [generation - 1]),
            parents=np.zeros((count, 32), np.uint8),
            known=np.full(count, np.nan),
        )

    def tell(
        self,
        state: State,
        generation: int,  # noqa: ARG002 - the state knows
        population: Population,  # noqa: ARG002 - the package knows
        fitness: Any,
    ) -> tuple[State, int]:
        """The champion is the mean, because the best candidate is mostly the luckiest."""
        told = {"history": np.vstack([state["history"], fitness[:-1]])}
        return told, len(fitness) - 1

    def _reach(self, state: State) -> None:
        """Bring the package to `state`, with the next candidates asked for."""
        history = state["history"]
        if self._told > len(history) or self._told < 0:
            self._restart()
        while self._told < len(history):
            self._strategy.tell(list(self._asked), list(-history[self._told]))
            self._told += 1
            self._ask()

    def _restart(self) -> None:
        import cma

        draw = generator(self.seed, 0, Purpose.START)
        options = {
            "popsize": self.options["lambda"],
            "CMA_diagonal": True,
            "randn": self._normal,
            "seed": np.nan,
            "verbose": -9,
            "verb_disp": 0,
            "verb_log": 0,
        }
        start = self.start + draw.standard_normal(self.size) * self.options["init_scale"]
        self._strategy = cma.CMAEvolutionStrategy(start, self.options["sigma0"], options)
        self._told = 0
        self._ask()

    def _ask(self) -> None:
        self._drawn = 0
        self._asked = np.array(self._strategy.ask())

    def _normal(self, *shape: int) -> Any:
        """Normal random numbers for the package, from the stream of its current generation."""
        self._drawn += 1
        return generator(self.seed, self._told + 1, Purpose.SAMPLE, self._drawn).standard_normal(shape)
