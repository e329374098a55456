"""How often intervals of ratings hold the truth, in simulated tournaments: python tests/support/interval_coverage.py"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from dataclasses import dataclass
from itertools import combinations

import pytest

from hnefi.tools.common import rating
from hnefi.tools.common.pairs import Ending, Winner
from hnefi.tools.common.rating import Model, rate


@dataclass(frozen=True)
class Field:
    """What is true of a simulated tournament, in Elo: ratings, the attackers' advantage, the spread of the openings'
    (which both games of a pair share), and the share of draws in a level game."""

    ratings: dict[str, float]
    side: float
    openings: float
    draws: float


FIELDS = {
    "level": Field({"A": 60, "B": 0, "C": -60}, 0, 0, 0.2),
    "side decides": Field({"A": 50, "B": 0, "C": -50}, 300, 150, 0.1),
    "drawish": Field({"A": 40, "B": 0, "C": -40}, 0, 0, 0.8),
    "far apart": Field({"A": 300, "B": 0, "C": -300}, 0, 50, 0.2),
    "two engines": Field({"A": 60, "B": 0}, 50, 80, 0.2),
}


@dataclass(frozen=True)
class Held:
    """How many intervals there were, held the truth, and would have by the bootstrap alone; their mean half width."""

    intervals: int
    inside: int
    bootstrap_alone: int
    width: float


def play(field: Field, pairs: int, dice: random.Random) -> Counter[tuple[Ending, ...]]:
    """Everybody meets everybody in so many pairs."""

    def game(attackers: str, defenders: str, opening: float) -> Ending:
        difference = field.ratings[attackers] - field.ratings[defenders] + field.side + opening
        score = 1 / (1 + 10 ** (-difference / 400))
        drawn = field.draws * 2 * min(score, 1 - score)
        chance = dice.random()
        won = score - drawn / 2
        winner: Winner = "a" if chance < won else "draw" if chance < won + drawn else "d"
        return Ending("x", attackers, defenders, winner)

    units: Counter[tuple[Ending, ...]] = Counter()
    for one, two in combinations(sorted(field.ratings), 2):
        for _ in range(pairs):
            opening = dice.gauss(0, field.openings)
            units[game(one, two, opening), game(two, one, opening)] += 1
    return units


def simulate(field: Field, pairs: int, times: int, *, seed: int, bootstrap: int = 200) -> Held:
    """So many tournaments; the mean rating is 0 in truth as in the tables."""
    dice = random.Random(seed)
    inside = alone = total = 0
    width = 0.0
    for _ in range(times):
        units = play(field, pairs, dice)
        (table,) = rate(units, Model(bootstrap=bootstrap))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rating, "MODEL_WEIGHT", 0.0)
            (bare,) = rate(units, Model(bootstrap=bootstrap))
        mean = sum(field.ratings.values()) / len(field.ratings)
        for name, true in field.ratings.items():
            ours, theirs = table.ratings[name], bare.ratings[name]
            if ours.low is None or ours.high is None or theirs.low is None or theirs.high is None:
                continue
            total += 1
            inside += ours.low <= true - mean <= ours.high
            alone += theirs.low <= true - mean <= theirs.high
            width += ours.high - ours.low
    return Held(total, inside, alone, width / 2 / max(1, total))


def main() -> None:
    """A table of all fields and of few to many pairs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200, help="tournaments of each kind")
    arguments = parser.parse_args()
    print("field          pairs  inside  bootstrap alone  half width")
    for name, field in FIELDS.items():
        for pairs in (1, 2, 4, 10, 40):
            held = simulate(field, pairs, arguments.times, seed=1)
            if not held.intervals:
                print(f"{name:<14} {pairs:>5}  no intervals: of one pair nothing is known about the error")
                continue
            share, bare = 100 * held.inside / held.intervals, 100 * held.bootstrap_alone / held.intervals
            print(f"{name:<14} {pairs:>5} {share:>6.1f}% {bare:>15.1f}% {held.width:>11.0f}", flush=True)


if __name__ == "__main__":
    main()
