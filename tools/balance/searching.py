"""Looks for the smallest change of switches that makes a rule set even: every switch alone, then pairs, by halving.

Every candidate plays a few games; the third that comes nearest to even plays three times as many, and so on, until a
handful is left (successive halving: K. Jamieson, A. Talwalkar, "Non-stochastic best arm identification and
hyperparameter optimization", 2016). The best of many looks better than it is, so the remaining candidates are measured
again on fresh games that had no part in the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from hnefi.engine.games.tafl.rules import SWITCHES
from hnefi.engine.games.tafl.switches import Switch
from hnefi.engine.games.tafl.variant import Variant

from .entrants import BalanceError, Entrant, changed
from .measures import Measures

KEPT_PART = 3
SELECTION, CONFIRMATION = 0, 1
"""Pools of games."""
PIECE_SETS = ("none", "all", "men", "attackers", "defenders", "king")
SQUARES: Mapping[str, tuple[str, ...]] = {"throne": ("none", "centre"), "corners": ("none", "four")}
COUNTS: Mapping[str, tuple[str, ...]] = {"repetition_count": ("2", "3")}
LEFT_ALONE = {
    "size", "zones", "speed", "attacker_camps", "defender_camps", "camp_soft", "camp_range", "move_limit",
    "move_limit_unit", "quiet_limit", "material_draw", "agreed_draw", "sealed", "opentafl", "repetition_start",
    "repetition_compare",
}  # fmt: skip
"""Switches that are not yes/no questions on a given board, only end games sooner, or exist for a single host."""
LETTERS: Mapping[str, str] = {
    "knight_jump": "nN", "commander_jump": "cC", "mercenary_jump": "mM", "guard_jump": "gG", "commander_pair": "cCnN",
}  # fmt: skip
"""Switches that have no effect without these pieces."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a search: games of the first round, candidates left at the end, fresh games for these, the number of
    best single changes to combine in pairs (0: none), and the percentage of draws beyond which an even rule set is not
    worth having (that of the base if it has more)."""

    first: int = 40
    keep: int = 6
    confirm: int = 600
    pairs: int = 0
    most_draws: int = 25


Measure = Callable[[Sequence[Entrant], int, int], Mapping[str, Measures]]
"""Called with rule sets, a pool and a number of games: plays so many games of each and returns measures by label."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rule set left at the end: the number of changed switches, the measures by which it was chosen, and those of
    fresh games."""

    entrant: Entrant
    changes: int
    chosen: Measures
    fresh: Measures


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search: the number of rule sets tried, the base on fresh games, and the best candidates, smallest
    changes first."""

    tried: int
    base: Measures
    candidates: tuple[Candidate, ...]
    rounds: tuple[tuple[str, int, int], ...]
    """For each round what was screened, the number of rule sets, and the games of each by then."""


def singles(base: Entrant) -> list[Entrant]:
    """The rule sets that differ from the base in one switch, in the order of the switches, without duplicate games."""
    found: dict[str, Entrant] = {base.variant.hash: base}
    for switch in SWITCHES:
        for value in _values(switch, base.variant):
            entrant = _changed(base, [f"{switch.name}={value}"])
            if entrant is not None:
                found.setdefault(entrant.variant.hash, entrant)
    return list(found.values())[1:]


def _values(switch: Switch, variant: Variant) -> tuple[str, ...]:
    """The values that a search tries; none for a switch without effect in this game."""
    rules = variant.rules
    if switch.name in LEFT_ALONE:
        return ()
    if switch.name in LETTERS and not variant.start.count(LETTERS[switch.name]):
        return ()
    terrain = {"throne": rules.throne, "corner": rules.corners}
    for word, squares in terrain.items():
        if switch.name.startswith(f"{word}_") and not squares:
            return ()
    if switch.name.startswith("attacker_camp") and not rules.attacker_camps:
        return ()
    if switch.name.startswith("defender_camp") and not rules.defender_camps:
        return ()
    if switch.name == "shieldwall_closer" and rules.shieldwall == "off":
        return ()
    if switch.name == "repetition_count" and rules.repetition == "ignore":
        return ()
    if switch.kind == "pieces":
        return PIECE_SETS
    return switch.words or SQUARES.get(switch.name) or COUNTS.get(switch.name, ())


def _changed(base: Entrant, changes: Sequence[str]) -> Entrant | None:
    """The base with some switches changed; None if they are incompatible."""
    try:
        variant = changed(base.variant, changes)
    except BalanceError:
        return None
    return Entrant("+".join([base.label, *changes]), variant, base.label)


def pairs(base: Entrant, best: Sequence[Entrant]) -> list[Entrant]:
    """All pairs of changes of different switches that are compatible."""
    found = []
    for one, other in combinations(best, 2):
        changes = [*changes_of(base, one), *changes_of(base, other)]
        if len({change.partition("=")[0] for change in changes}) == len(changes):
            entrant = _changed(base, changes)
            if entrant is not None:
                found.append(entrant)
    return found


def changes_of(base: Entrant, entrant: Entrant) -> list[str]:
    """The changes in a label that `singles` or `pairs` made."""
    return entrant.label.removeprefix(base.label).split("+")[1:]


def find(base: Entrant, terms: Terms, measure: Measure) -> Found:
    """Search; all games are played through `measure`, so that games it already has are not played again."""
    tried = singles(base)
    rounds: list[tuple[str, int, int]] = []
    start = measure([base], terms.first, SELECTION)[base.label]
    most_draws = max(terms.most_draws / 100, start.draws / start.games)
    left = _halved("one switch", tried, terms, measure, most_draws, rounds)
    number = len(tried)
    if terms.pairs:
        first = measure(tried, terms.first, SELECTION)
        together = pairs(base, _one_of_each(_ordered(tried, first, most_draws))[: terms.pairs])
        number += len(together)
        left |= _halved("two switches", together, terms, measure, most_draws, rounds)
    fresh = measure([base, *(entrant for entrant, _ in left.values())], terms.confirm, CONFIRMATION)
    candidates = [
        Candidate(entrant, len(changes_of(base, entrant)), chosen, fresh[label])
        for label, (entrant, chosen) in left.items()
    ]
    candidates.sort(key=lambda found: (found.changes, distance(found.fresh, most_draws)))
    return Found(number, fresh[base.label], tuple(candidates), tuple(rounds))


def distance(found: Measures, most_draws: float) -> float:
    """The distance from even: 0 to ½ by the attackers' score, more if too many games are drawn."""
    draws = found.draws / found.games
    return abs(found.score - 0.5) + max(0.0, draws - most_draws)


def _halved(
    name: str,
    entrants: Sequence[Entrant],
    terms: Terms,
    measure: Measure,
    most_draws: float,
    rounds: list[tuple[str, int, int]],
) -> dict[str, tuple[Entrant, Measures]]:
    """The last few candidates and the measures by which they were chosen, nearest to even first.

    Even a few candidates play the games of three rounds, because the first alone says little.
    """
    left, games = list(entrants), terms.first
    measured: Mapping[str, Measures] = {}
    while left:
        rounds.append((name, len(left), games))
        measured = measure(left, games, SELECTION)
        last = len(left) <= terms.keep and games >= terms.first * KEPT_PART**2
        left = _ordered(left, measured, most_draws)[: max(terms.keep, len(left) // KEPT_PART)]
        if last:
            break
        games *= KEPT_PART
    return {entrant.label: (entrant, measured[entrant.label]) for entrant in left}


def _ordered(
    entrants: Sequence[Entrant], measured: Mapping[str, Measures], most_draws: float
) -> list[Entrant]:
    """The rule sets that could be played at all, nearest to even first."""
    there = [entrant for entrant in entrants if entrant.label in measured]
    return sorted(there, key=lambda entrant: distance(measured[entrant.label], most_draws))


def _one_of_each(entrants: Sequence[Entrant]) -> list[Entrant]:
    """The first candidate for each switch, because two values of one switch cannot be combined."""
    best: dict[str, Entrant] = {}
    for entrant in entrants:
        best.setdefault(entrant.label.rpartition("+")[2].partition("=")[0], entrant)
    return list(best.values())
