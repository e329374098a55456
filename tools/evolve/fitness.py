"""Which players meet in a generation, and their fitness.

Fitness is the mean of the points (`common.matches`) against the other individuals and past champions, plus the mean
against the fixed opponents: 0 to 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..common.matches import Points
from .algorithm import Purpose, game_seeds


@dataclass(frozen=True, slots=True)
class Schedule:
    """Matches of one generation, as arrays of equal length. `first` and `second` are numbers of contestants (the
    individuals, then the opponents), `purpose` is the kind of match, `seeds` (matches x 2) are the seeds of its games,
    `level` is the index of its depth; `first` attacks in game 0 and defends in game 1."""

    first: Any
    second: Any
    purpose: Any
    seeds: Any
    level: Any
    contestants: int

    def __len__(self) -> int:
        return len(self.first)

    @property
    def games(self) -> tuple[Any, Any, Any]:
        """Attackers, defenders and seeds of all games; the two games of a match are adjacent. Contestants are numbered
        level by level."""
        pairs = np.stack([self.first, self.second], axis=1) + (self.level * self.contestants)[:, None]
        return pairs.ravel(), pairs[:, ::-1].ravel(), self.seeds.ravel()


@dataclass(frozen=True, slots=True)
class Pairing:
    """The opponents of `size` individuals: they meet each other `pair_games` times, `past` champions once each, and
    every fixed opponent in `fixed` (its purpose) `matches` times at each of `levels` depths. With `common` numbers a
    fixed opponent's games have the same seeds for everybody. Individuals that keep their fitness (`keep`) do not meet
    each other."""

    size: int
    pair_games: int = 1
    past: int = 0
    fixed: tuple[Purpose, ...] = (Purpose.RANDOM,)
    matches: int = 10
    common: bool = False
    levels: int = 1


def schedule(field: Pairing, seed: int, generation: int, keep: Any = None) -> Schedule:
    """The matches of a generation. Contestants are numbered in the order individuals, past champions, fixed
    opponents."""
    size = field.size
    keep = np.zeros(size, bool) if keep is None else keep
    low, high = np.triu_indices(size, 1)
    low, high = (np.repeat(side[~(keep[low] & keep[high])], field.pair_games) for side in (low, high))
    times = np.tile(np.arange(field.pair_games), len(low) // max(1, field.pair_games))
    peers = (low * size + high) * field.pair_games + times
    blocks = [(low, high, np.full(len(low), Purpose.PEERS), peers, np.zeros(len(low), np.int64))]
    fresh = np.flatnonzero(~keep)
    for number, purpose, count, level in _opponents(field):
        who = np.repeat(fresh, count)
        time = np.tile(np.arange(count), len(fresh))
        pair = time if field.common else who * count + time
        if purpose == Purpose.PAST:
            pair = pair + number * size
        pair = pair + level * size * count
        met, kind, levels = (np.full(len(who), value) for value in (size + number, purpose, level))
        blocks.append((who, met, kind, pair, levels))
    first, second, purposes, pairs, levels = (np.concatenate(column) for column in zip(*blocks, strict=True))
    seeds = game_seeds(seed, generation, purposes[:, None], pairs[:, None], np.arange(2)[None, :])
    return Schedule(first, second, purposes, seeds, levels, size + field.past + len(field.fixed))


def _opponents(field: Pairing) -> Iterator[tuple[int, Purpose, int, int]]:
    """The other opponents of everybody: number, purpose, matches and level."""
    for number in range(field.past):
        yield number, Purpose.PAST, 1, 0
    for level in range(field.levels):
        for number, purpose in enumerate(field.fixed, start=field.past):
            yield number, purpose, field.matches, level


def fitness(field: Pairing, matches: Schedule, result: Points, known: Any = None) -> Any:
    """The fitness of every individual; a number in `known` is kept."""
    size = field.size
    among = np.isin(matches.purpose, (Purpose.PEERS, Purpose.PAST))
    total = np.zeros(size)
    for chosen in (among, ~among):
        earned, met = np.zeros(size), np.zeros(size)
        for side, gained in ((matches.first, result.first), (matches.second, result.second)):
            here = chosen & (side < size)
            np.add.at(earned, side[here], gained[here])
            np.add.at(met, side[here], 1)
        total += np.divide(earned, met, out=np.zeros(size), where=met > 0)
    return total if known is None else np.where(np.isnan(known), total, known)
