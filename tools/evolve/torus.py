"""Evolution on a torus: every player meets its neighbours, and each of its weights comes from one of them.

M. McCarver, R. LeGrand, "Evolving a Hex-Playing Agent". Players live on a hexagonal torus. In a generation each meets
each of its neighbours twice, once on either side. Then all are replaced at the same time: every weight of a new player
comes from the old player at its place or from a neighbour, drawn by their wins, plus noise; and a few pairs of weights
change places. Options cover what the text leaves open and what it names as future work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .algorithm import Champion, Play, Purpose, State, digest, game_seeds, generator
from .contestants import Contestants
from .encoding import starting_weights
from .fitness import Schedule
from .options import TORUS, OptionError
from .options import of as options_of

if TYPE_CHECKING:
    from hnefi.engine.evaluators.network import Network
    from hnefi.engine.games.base_variant import AnyVariant

    from ..common.matches import Games
    from .encoding import Encoding
    from .run import Plan

FIXED = {"random": Purpose.RANDOM, "simple": Purpose.SIMPLE}
"""Rungs that are not files."""
UNMEASURED = -1.0


@cache
def neighbours(side: int, radius: int) -> Any:
    """For each place on a torus of side x side hexagons, row by row, the places at most `radius` steps away, itself
    first (places x neighbours). Radius 0 means all places. ValueError if a place would be a neighbour twice."""
    places = np.arange(side * side)
    if radius == 0:
        return (places[:, None] + places) % len(places)
    if 2 * radius + 1 > side:
        raise ValueError(f"radius {radius} on {side} x {side}: expected at most {(side - 1) // 2}")
    steps = [
        (down, right)
        for down in range(-radius, radius + 1)
        for right in range(-radius, radius + 1)
        if abs(down + right) <= radius and (down or right)
    ]
    rows, columns = np.divmod(places, side)
    found = [places] + [(rows + down) % side * side + (columns + right) % side for down, right in steps]
    return np.stack(found, axis=1)


@cache
def pairs(side: int, radius: int) -> Any:
    """Each pair of neighbours once (pairs x 2), the lower place first."""
    near = neighbours(side, radius)
    low, high = np.repeat(near[:, 0], near.shape[1] - 1), near[:, 1:].ravel()
    return np.stack([low, high], axis=1)[low < high]


def shares(near: Any, wins: Any, selection: str) -> Any:
    """The probability of each nearby player to be the source of a weight, in proportion to its wins or to 2 to the
    power of its wins (players x nearby)."""
    won = wins[near]
    if selection == "exponential":
        won = np.exp2(won - won.max(axis=1, keepdims=True))
    whole = won.sum(axis=1, keepdims=True)
    return np.where(whole > 0, won / np.where(whole > 0, whole, 1), 1 / near.shape[1])


def bred(weights: Any, wins: Any, values: Mapping[str, Any], draw: np.random.Generator) -> Any:
    """The next population (players x weights), drawn from the present one; `values` are the options of the run."""
    count, size = weights.shape
    near = neighbours(values["side"], values["neighbourhood"])
    bounds = np.cumsum(shares(near, wins, values["selection"]), axis=1)
    drawn = draw.random((count, size))
    sources = np.stack(
        [np.searchsorted(bound[:-1], one, side="right") for bound, one in zip(bounds, drawn, strict=True)]
    )
    kept = (
        draw.random((count, size)) < values["inertia"] if values["inertia"] else np.zeros((count, size), bool)
    )
    sources[kept] = 0
    made = weights[np.take_along_axis(near, sources, axis=1), np.arange(size)]
    noise = draw.standard_normal((count, size)) * values["sigma"]
    if values["noise"] == "relative":
        noise *= np.maximum(np.abs(made), values["noise_floor"])
    if values["shake_kept"] == "no":
        noise[kept] = 0
    made += noise
    if values["mutation"] != "none" and size > 1:
        for one, times in zip(made, draw.geometric(1 - values["again"], count), strict=True):
            for _ in range(times):
                i = int(draw.integers(size))
                j = (i + 1 + int(draw.integers(size - 1))) % size
                one[j], one[i] = one[i], one[j] if values["mutation"] == "swap" else one[i]
    return made


@dataclass(frozen=True, slots=True)
class Torus:
    """Runs the generations of a run's plan."""

    plan: Plan

    def begin(self) -> State:
        plan, count = self.plan, self.plan.values["side"] ** 2
        draw = generator(plan.seed, 0, Purpose.START).standard_normal((count, plan.encoding.size))
        return {
            "weights": plan.start + draw * plan.values["init_scale"],
            "parents": np.zeros((count, 32), np.uint8),
            "measured": np.full(4, UNMEASURED),
        }

    def step(
        self, state: State, generation: int, play: Play
    ) -> tuple[State, tuple[Champion, ...], Mapping[str, Any]]:
        plan, values = self.plan, self.plan.values
        weights = state["weights"]
        matches = self._schedule(generation)
        games = play(contest(plan, weights, rungs=True), matches)
        wins = won(plan, matches, games)[: len(weights)]
        met = np.bincount(np.concatenate([matches.first, matches.second]))[: len(weights)] * 2
        champions = self._champions(state, generation, wins / met)
        order = np.arange(len(weights))
        if values["rearrange"] and generation % values["rearrange"] == 0:
            order = np.argsort(-wins, kind="stable")
        new = bred(weights[order], wins[order], values, generator(plan.seed, generation, Purpose.MUTATE))
        measured, more = state["measured"], 0
        every = values["measure_every"]
        if every and (generation % every == 0 or generation in (1, values["generations"])):
            # The first measurement is of the untrained players.
            subject = weights if generation == 1 else new
            measured, more = self._measured(subject, generation, play)
        report: dict[str, Any] = {
            "best": float((wins / met).max()),
            "median": float(np.median(wins / met)),
            "games": 2 * len(matches) + more,
            "plies": float(games.plies.mean()),
            "first_won": float((games.winner == 0).mean()),
            "drawn_games": int((games.winner == 2).sum()),
            "evaluations": int(games.evaluations.sum()),
            "weight_size": float(np.sqrt(np.mean(new**2))),
            "weight_spread": float(new.std(axis=0).mean()),
        }
        if measured[0] != UNMEASURED:
            names = ("generation", "mean", "spread", "best")
            report["v_random"] = dict(zip(names, map(float, measured), strict=True))
        after = {
            "weights": new,
            "parents": np.stack([digest(one) for one in weights[order]]),
            "measured": measured,
        }
        return after, champions, report

    def describe(self, report: Mapping[str, Any]) -> list[str]:
        said = [f"best {report['best']:.0%} of its games".replace("%", " %")]
        if found := report.get("v_random"):
            best, mean = f"{found['best']:.0%}", f"{found['mean']:.1%}"
            said.append(f"won against random: {mean}, best {best}".replace("%", " %"))
        return said

    def _champions(self, state: State, generation: int, share: Any) -> tuple[Champion, ...]:
        """The player with the most wins, drawn at random among several; after the first generation also that of
        generation 0, which is the same population."""
        last = generator(self.plan.seed, generation, Purpose.SELECT).permutation(len(share))
        place = int(np.lexsort((last, -share))[0])
        names = (0, 1) if generation == 1 else (generation,)
        return tuple(
            Champion(
                name,
                state["weights"][place].copy(),
                float(share[place]),
                generation - 1,
                state["parents"][place].copy(),
            )
            for name in names
        )

    def _schedule(self, generation: int) -> Schedule:
        """Matches of every pair of neighbours, and of every player against every rung."""
        values = self.plan.values
        count = values["side"] ** 2
        first, second = pairs(values["side"], values["neighbourhood"]).T
        times = values["rung_games"] // 2
        named = values["rungs"].split(",") if times else []
        purposes, numbers = [np.full(len(first), Purpose.PEERS)], [np.arange(len(first))]
        places = rung_places(named)
        for rung in range(len(named)):
            first = np.append(first, np.repeat(np.arange(count), times))
            second = np.append(second, np.full(count * times, count + places[rung]))
            purposes.append(np.full(count * times, Purpose.RUNG))
            numbers.append(np.arange(count * times) + rung * count * times)
        purpose, number = np.concatenate(purposes), np.concatenate(numbers)
        seeds = game_seeds(
            self.plan.seed, generation, purpose[:, None], number[:, None], np.arange(2)[None, :]
        )
        return Schedule(first, second, purpose, seeds, np.zeros_like(first), count + len(named))

    def _measured(self, weights: Any, generation: int, play: Play) -> tuple[Any, int]:
        """The generation with the mean, spread and best of the shares won against Random; and the number of games."""
        games = self.plan.values["measure_games"]
        shares = against_random(self.plan, weights, games, play, generation, Purpose.RANDOM).mean(axis=1)
        at = 0 if generation == 1 else generation
        return np.array([at, shares.mean(), shares.std(), shares.max()]), len(weights) * games


def won(plan: Plan, matches: Schedule, games: Games) -> Any:
    """The points of each contestant: 1 for a win, half for a draw; with `quick_win` longer wins count less."""
    worth = np.ones(games.winner.shape)
    if plan.values["quick_win"] == "yes":
        worth = 1 - games.plies / longest(plan)
    total = np.zeros(matches.contestants)
    for player, side in ((matches.first, 0), (matches.second, 1)):
        for game in range(2):
            winner = games.winner[:, game]
            mine = side ^ game
            gained = np.where(winner == mine, 1.0, np.where(winner == 2, 0.5, 0.0)) * worth[:, game]
            np.add.at(total, player, gained)
    return total


def longest(plan: Plan) -> int:
    """Plies of the longest possible game; in Hex the number of cells."""
    cells: int = plan.variant.files * plan.variant.ranks
    return cells if plan.variant.game == "hex" else int(plan.values["ply_limit"])


def contest(plan: Plan, genomes: Any, *, rungs: bool = False) -> Contestants:
    """Players of a run as contestants, followed by its rungs, or only by Random."""
    values = plan.values
    weights = plan.encoding.weights(genomes)
    fixed: tuple[Purpose, ...] = (Purpose.RANDOM,)
    if rungs:
        named = values["rungs"].split(",") if values["rung_games"] else []
        files = [
            starting_weights(name, plan.network, plan.variant, plan.encoding, option="rungs")[1]
            for name in _files(named)
        ]
        weights = np.vstack([weights, *files])
        fixed = tuple(FIXED[name] for name in named if name in FIXED)
    return Contestants(
        plan.played,
        plan.network,
        weights,
        fixed,
        (values["depth"],),
        unseen=values["wins"] == "unseen",
        learned=values["legality"] == "learned",
    )


def _files(named: list[str]) -> list[str]:
    return [name for name in named if name not in FIXED]


def rung_places(named: list[str]) -> list[int]:
    """The place of each rung after the players; networks come first."""
    order = [*_files(named), *(name for name in named if name in FIXED)]
    return [order.index(name) for name in named]


def against_random(
    plan: Plan, genomes: Any, games: int, play: Play, generation: int, purpose: Purpose
) -> Any:
    """The share of games that each player wins against Random as first and as second player (players x 2), with half of
    `games` each; a draw is half a win. The purpose selects the random streams."""
    count, times = len(genomes), games // 2
    who = np.repeat(np.arange(count), times)
    seeds = game_seeds(plan.seed, generation, purpose, np.arange(len(who))[:, None], np.arange(2)[None, :])
    matches = Schedule(
        who, np.full(len(who), count), np.full(len(who), purpose), seeds, np.zeros_like(who), count + 1
    )
    winner = play(contest(plan, genomes), matches).winner
    gained = (winner == np.arange(2)) + 0.5 * (winner == 2)
    return gained.reshape(count, times, 2).mean(axis=1)


def settled(
    values: Mapping[str, Any], network: Network, variant: AnyVariant, code: Encoding
) -> dict[str, Any]:
    """The options of a run, including those that depend on others; OptionError if they are incompatible."""
    found = dict(values)
    game = variant.game
    radius, side = values["neighbourhood"], values["side"]
    if radius and 2 * radius + 1 > side:
        raise OptionError(
            f"neighbourhood: {radius}: expected at most {(side - 1) // 2} where side is {side}, or 0"
        )
    for name in ("rung_games", "measure_games"):
        if values[name] % 2:
            raise OptionError(
                f"{name}: {values[name]}: expected an even number, half of the games for each side"
            )
    if values["measure_every"] and not values["measure_games"]:
        raise OptionError("measure_games: 0: expected a number of games, or measure_every 0")
    if found["wins"] is None:
        found["wins"] = "unseen" if game == "hex" else "seen"
    if found["wins"] == "unseen" and game != "hex":
        raise OptionError(
            f"wins: 'unseen' with {variant.name}: expected 'seen'; only Hex has players that do not see wins"
        )
    if values["legality"] == "learned":
        from hnefi.engine.selfplay import hex_one_ply

        whole = network.record(variant, np.zeros(network.count(variant)))[0]
        one_ply = found["wins"] == "unseen" and values["depth"] == 1
        if not one_ply or getattr(variant, "swap", False) or not hex_one_ply.fits(whole):
            raise OptionError(
                "legality: 'learned': expected hex without swap, depth 1, wins 'unseen', and a perceptron without "
                f"'edges' whose layers have at most {hex_one_ply.MOST_UNITS} units"
            )
    if not values["rung_games"] and values["rungs"] != options_of(TORUS)["rungs"].default:
        raise OptionError(
            f"rungs: {values['rungs'][:80]!r} with rung_games 0: expected rung_games of 2 or more"
        )
    if values["rung_games"]:
        named = values["rungs"].split(",")
        if len(set(named)) < len(named) or ("simple" in named and game != "tafl"):
            expected = "random, simple (tafl only) and evaluator files, each once, with commas between them"
            raise OptionError(f"rungs: {values['rungs'][:80]!r}: expected {expected}")
        found["rungs"] = ",".join(
            name if name in FIXED else starting_weights(name, network, variant, code, option="rungs")[0]
            for name in named
        )
    return found
