"""The interface between a run and its learner. No game, no files.

A `Learner` handles a whole generation: it turns the state before it into the state after it, a champion and a report.
An evolutionary `Algorithm` only knows individuals and their fitness; `tournament.py` turns it into a learner.

Random streams are keyed by their purpose, never by the worker that draws from them, so that results do not depend on
the number of workers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hnefi.engine.mixing import GOLDEN_GAMMA, mixed

if TYPE_CHECKING:
    from ..common.matches import Games
    from .contestants import Contestants
    from .fitness import Schedule

_MASK = (1 << 64) - 1

State = Mapping[str, Any]
"""Arrays by name: everything that an algorithm needs to continue. Never changed in place."""


class Play(Protocol):
    """Plays games with any number of workers."""

    jobs: int

    def __call__(self, contestants: Contestants, schedule: Schedule) -> Games:
        """The games of a schedule."""

    def each(self, jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        """The results of the jobs, in order."""


@dataclass(frozen=True, slots=True)
class Population:
    """Individuals to compare: `genomes` (individuals x weights), the generation in which each was `born`, and the
    `digest` of its parent (individuals x 32 bytes, zeros without one). `known` is the fitness of individuals that keep
    an earlier one, NaN for the others; `memo` is returned to the algorithm unchanged."""

    genomes: Any
    born: Any
    parents: Any
    known: Any
    memo: Any = None


class Algorithm(Protocol):
    """An evolutionary algorithm; everything random is drawn from streams of a seed and the generation (from 1)."""

    def begin(self) -> State:
        """The state before the first generation."""

    def ask(self, state: State, generation: int) -> Population:
        """The individuals of a generation."""

    def tell(self, state: State, generation: int, population: Population, fitness: Any) -> tuple[State, int]:
        """Learn from their fitness (more is better); returns the new state and the index of the champion."""


@dataclass(frozen=True, slots=True)
class Champion:
    """The individual that represents a generation: free weights, fitness (None if it has played no games), the
    generation in which it was born, and the SHA-256 of its parent (zeros without one)."""

    generation: int
    genome: Any
    fitness: float | None
    born: int
    parent: Any

    @property
    def parents(self) -> list[str]:
        return [bytes(self.parent).hex()] if np.any(self.parent) else []

    @property
    def digest(self) -> str:
        return bytes(digest(self.genome)).hex()


class Learner(Protocol):
    """The learner of a run; everything random is drawn from streams of a seed and the generation (from 1)."""

    def begin(self) -> State:
        """Before the first generation."""

    def step(
        self, state: State, generation: int, play: Play
    ) -> tuple[State, tuple[Champion, ...], Mapping[str, Any]]:
        """Run a generation; returns the new state, its champion (after the first generation preceded by that of
        generation 0), and a report with at least the number of `games`."""

    def describe(self, report: Mapping[str, Any]) -> list[str]:
        """The parts of the progress line about a generation."""


def digest(genome: Any) -> Any:
    """SHA-256 of a genome's float64 bytes, as 32 numbers."""
    return np.frombuffer(hashlib.sha256(np.ascontiguousarray(genome, "<f8").tobytes()).digest(), np.uint8)


class Purpose(IntEnum):
    """The purpose of a stream. Numbers are never reused, because the results of every run depend on them."""

    START = 1
    MUTATE = 2
    SELECT = 3
    SAMPLE = 4
    HALL = 5
    PEERS = 10
    RANDOM = 11
    SIMPLE = 12
    PAST = 13
    RANK = 20
    FINAL = 21
    CONFIRM = 22
    LESSON = 30
    LEARN = 40
    OLDER = 41
    GATE = 42
    TRAIN = 43
    MEASURE = 44
    RUNG = 50


def generator(seed: int, generation: int, purpose: Purpose, number: int = 0) -> np.random.Generator:
    """The stream for a purpose in a generation; `number` distinguishes several."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, generation, purpose, number])))


def game_seeds(seed: int, generation: int, purpose: Any, pair: Any, game: Any) -> Any:
    """Seeds of games (uint64), for numbers or arrays of one length: a splitmix64 chain over the five keys."""
    shape = np.broadcast(purpose, pair, game).shape
    state = np.zeros(shape or 1, np.uint64)  # arrays wrap around silently, scalars warn
    for key in (seed & _MASK, generation, purpose, pair, game):
        state = mixed((state ^ np.asarray(key, np.uint64)) + GOLDEN_GAMMA)
    return state.reshape(shape)
