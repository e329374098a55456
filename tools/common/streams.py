"""Random streams keyed by what they are for, never by who draws from them: the same for any number of workers."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

STEP = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


class Purpose(IntEnum):
    """What a stream is for. Numbers are never reused: they are part of every run's results."""

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


def generator(seed: int, generation: int, purpose: Purpose, number: int = 0) -> np.random.Generator:
    """The stream of one purpose in one generation; `number` tells several apart."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, generation, purpose, number])))


def game_seeds(seed: int, generation: int, purpose: Any, pair: Any, game: Any) -> Any:
    """Seeds of games (uint64), for numbers or arrays of one length: a splitmix64 chain over the five keys."""
    shape = np.broadcast(purpose, pair, game).shape
    state = np.zeros(shape or 1, np.uint64)  # arrays wrap around silently, single numbers warn
    for key in (seed & _MASK, generation, purpose, pair, game):
        state = _mix(state ^ np.asarray(key, np.uint64))
    return state.reshape(shape)


def _mix(state: Any) -> Any:
    """The next number of splitmix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators",
    2014)."""
    x = state + np.uint64(STEP)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
