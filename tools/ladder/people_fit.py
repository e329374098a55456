"""The probability of people's moves for players that choose freely among their best lines, and the best such player.

A candidate searches a fixed number of nodes and has a number of best lines. The values of these lines, a temperature
and a share of random moves determine how likely it is to make people's move. The last two are fitted to one half of the
games by maximum likelihood; the other half shows which candidates explain people best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, Final, NamedTuple

import numpy as np

from hnefi.engine.search.skill import PER_MILLE

from ..common.matches import seed as stream
from .ladder import LadderError

TEMPERATURES: Final = (2.0, 2000.0)
"""The range of temperatures to search, in centipawns."""
MOST_AT_RANDOM: Final = 0.9
GRID: Final = 40
ROUNDS: Final = 4
FINEST: Final = 1e-9
RESAMPLINGS: Final = 2000


class Candidate(NamedTuple):
    """Nodes per move, and the number of best lines to choose from."""

    nodes: int
    choices: int

    @property
    def key(self) -> str:
        """Its name in files."""
        return f"{self.nodes}/{self.choices}"


class Observed(NamedTuple):
    """A move of people's, and the values of the engine's best lines.

    `same` of the `legal` moves lead to the same position as people's move, or to a mirror image of it. `lines` has the
    best lines of each candidate, by its key: their values in centipawns for the side to move, and whether each begins
    with one of those moves.
    """

    line: int
    ply: int
    side: int
    legal: int
    same: int
    lines: Mapping[str, Sequence[Sequence[int]]]


class Moves(NamedTuple):
    """Observed moves with one candidate's lines: their values, -inf for missing lines (float64[moves, lines]), whether
    each is people's move (bool of that shape), and the chance of people's move among all legal moves
    (float64[moves])."""

    values: Any
    same: Any
    chance: Any


class Fit(NamedTuple):
    """The fit of one candidate: temperature in centipawns, random moves in thousandths, and the mean log-likelihood of
    a move."""

    temperature: int
    at_random: int
    likelihood: float


def moves_of(observed: Sequence[Observed], candidate: Candidate) -> Moves:
    """The moves with the lines of one candidate."""
    lines = [one.lines[candidate.key] for one in observed]
    most = max(1, *map(len, lines)) if lines else 1
    values, same = np.full((len(lines), most), -np.inf), np.zeros((len(lines), most), bool)
    for i, found in enumerate(lines):
        for k, (value, is_same) in enumerate(found):
            values[i, k], same[i, k] = value, bool(is_same)
    return Moves(values, same, np.array([one.same / one.legal for one in observed]))


def chosen(moves: Moves, temperature: float) -> Any:
    """The probability that the draw among the best lines gives people's move: float64[moves]; 0 without any line."""
    best = moves.values.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        weights = np.where(np.isfinite(moves.values), np.exp((moves.values - best) / temperature), 0.0)
    whole = weights.sum(axis=1)
    return np.where(whole > 0, (weights * moves.same).sum(axis=1) / np.maximum(whole, FINEST), 0.0)


def logarithms(moves: Moves, temperature: float, at_random: float) -> Any:
    """The logarithm of the likelihood of each move: float64[moves]."""
    return np.log(np.maximum((1 - at_random) * chosen(moves, temperature) + at_random * moves.chance, FINEST))


def fit(moves: Moves) -> Fit:
    """The most likely temperature and share of random moves, rounded to the units of the engine's options.

    Searches a grid over both that gets finer and finer around the best point.
    """
    temperatures, shares = np.geomspace(*TEMPERATURES, GRID), np.linspace(0.0, MOST_AT_RANDOM, GRID)
    for _ in range(ROUNDS):
        draws = np.stack([chosen(moves, temperature) for temperature in temperatures])
        likely = (1 - shares)[:, None, None] * draws + shares[:, None, None] * moves.chance
        found = np.log(np.maximum(likely, FINEST)).mean(axis=2)
        k, i = divmod(int(found.argmax()), GRID)
        temperature, share = float(temperatures[i]), float(shares[k])
        temperatures = np.geomspace(temperatures[max(0, i - 2)], temperatures[min(GRID - 1, i + 2)], GRID)
        shares = np.linspace(shares[max(0, k - 2)], shares[min(GRID - 1, k + 2)], GRID)
    whole, thousandths = max(1, round(temperature)), round(PER_MILLE * share)
    return Fit(whole, thousandths, float(logarithms(moves, whole, thousandths / PER_MILLE).mean()))


def in_fit(line: int, seed: int) -> bool:
    """Whether a game is in the half for fitting. Games are not split, because moves of one game are alike."""
    return stream(seed, "half", line) % 2 == 0


class Result(NamedTuple):
    """One candidate: the fit to one half, its mean log-likelihood of the other half's moves, how much less that is than
    for the best candidate (95 % interval from resampling games), and the lengths of games."""

    candidate: Candidate
    fit: Fit
    held_out: float
    behind: tuple[float, float]
    plies: tuple[int, ...] = ()

    @property
    def told_apart(self) -> bool:
        """Whether people's moves are significantly less likely than for the best candidate."""
        return self.behind[0] > 0


def compare(candidates: Sequence[Candidate], observed: Sequence[Observed], seed: int) -> list[Result]:
    """The fits of all candidates; LadderError if there are too few games for two halves."""
    fitted = [one for one in observed if in_fit(one.line, seed)]
    held = [one for one in observed if not in_fit(one.line, seed)]
    if not fitted or not held:
        raise LadderError(
            f"{len(observed)} positions: expected more, from several games: half of them are held out"
        )
    fits = [fit(moves_of(fitted, candidate)) for candidate in candidates]
    said = [
        logarithms(moves_of(held, candidate), one.temperature, one.at_random / PER_MILLE)
        for candidate, one in zip(candidates, fits, strict=True)
    ]
    best = max(said, key=lambda values: values.mean())
    lines = [one.line for one in held]
    return [
        Result(candidate, one, float(values.mean()), resampled(best - values, lines, seed))
        for candidate, one, values in zip(candidates, fits, said, strict=True)
    ]


def resampled(values: Any, lines: Sequence[int], seed: int) -> tuple[float, float]:
    """The 95 % interval of a mean over moves, from drawing whole games (by their `lines`) with replacement."""
    names, index = np.unique(lines, return_inverse=True)
    sums, counts = np.bincount(index, values, len(names)), np.bincount(index, minlength=len(names))
    draw = np.random.default_rng(seed).integers(0, len(names), (RESAMPLINGS, len(names)))
    means = sums[draw].sum(axis=1) / counts[draw].sum(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def nearest(found: Sequence[Result], length: float) -> Result:
    """Of the candidates that are not significantly worse than the best, the one whose games are nearest in length."""
    alike = [one for one in found if not one.told_apart]
    return min(alike, key=lambda one: abs(mean(one.plies) - length))
