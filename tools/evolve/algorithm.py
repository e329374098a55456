"""What evolution and an algorithm say to each other: ask for individuals, tell their fitness. No game, no files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

State = Mapping[str, Any]
"""Arrays by name: all that an algorithm must know to go on. Never changed in place."""


@dataclass(frozen=True, slots=True)
class Population:
    """Individuals to be compared: `genomes` (individuals x weights) and, of each, in which generation it was `born` and
    the `digest` of its parent (individuals x 32 bytes, zeros without one). `known` is the fitness of those who keep an
    earlier one, NaN for the others; `memo` is what the algorithm wants to have back."""

    genomes: Any
    born: Any
    parents: Any
    known: Any
    memo: Any = None


class Algorithm(Protocol):
    """An evolutionary algorithm; everything random is drawn from streams of a seed and the generation (from 1 on)."""

    def begin(self) -> State:
        """Before the first generation."""

    def ask(self, state: State, generation: int) -> Population:
        """The individuals of a generation."""

    def tell(self, state: State, generation: int, population: Population, fitness: Any) -> tuple[State, int]:
        """What follows from their fitness (more is better): the state, and the place of the champion."""


def digest(genome: Any) -> Any:
    """SHA-256 of a genome's float64 bytes, as 32 numbers."""
    return np.frombuffer(hashlib.sha256(np.ascontiguousarray(genome, "<f8").tobytes()).digest(), np.uint8)
