"""One run, generation by generation: what it is, where it stands, and the step from one generation to the next."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from hnefi.engine.about import VERSION
from hnefi.engine.evaluators import network as networks
from hnefi.engine.evaluators.network import Network
from hnefi.engine.games.base_variant import AnyVariant

from ..common.matches import Games, points
from . import encoding, options
from .algorithm import Algorithm, Purpose, State, digest, generator
from .contestants import Contestants, Executor
from .fitness import Pairing, Schedule, fitness, schedule
from .options import OptionError

PLY_LIMIT = 200
"""Plies of a game where the rules have no limit."""
HALL = "hall"
Play = Callable[[Contestants, Schedule], Games]


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a run's results follow from. `values` has every option; `played` is the variant with the limit of
    plies that holds for training."""

    algorithm: str
    variant: AnyVariant
    played: AnyVariant
    network: Network
    encoding: encoding.Encoding
    seed: int
    values: Mapping[str, Any]
    start: Any = 0.0
    """Where the first weights are: a number for each, or zero for all."""

    @property
    def generations(self) -> int:
        return int(self.values["generations"])

    @property
    def depths(self) -> tuple[int, ...]:
        """How many plies players look ahead; against fixed opponents also the further ones."""
        return options.depths(self.values)

    @property
    def fixed(self) -> tuple[Purpose, ...]:
        """The fixed opponents."""
        if not self.values["random_matches"]:
            return ()
        both = {"random": Purpose.RANDOM, "simple": Purpose.SIMPLE}
        opponent = self.values["opponent"]
        return tuple(purpose for name, purpose in both.items() if opponent in (name, "both"))

    def build(self) -> Algorithm:
        """The algorithm; OptionError if its package is missing."""
        if self.algorithm == options.ES:
            from .es import EvolutionStrategy

            return EvolutionStrategy(self.encoding.size, self.seed, self.values, self.start)
        from .sepcma import SepCMA

        try:
            return SepCMA(self.encoding.size, self.seed, self.values, self.start)
        except ImportError:
            raise OptionError("cma: the package is missing: expected pip install 'hnefi[cma]'") from None


def plan(algorithm: str, variant: AnyVariant, seed: int, said: Mapping[str, Any]) -> Plan:
    """The plan of a run from what was said about it; OptionError if it cannot be."""
    name = said.get("network", options.of(algorithm)["network"].default)
    try:
        network = networks.parse(name)
    except ValueError as error:
        raise OptionError(str(error)) from None
    if variant.game not in network.module.GAMES:
        raise OptionError(f"network: {name!r} with {variant.name}: expected a network for {variant.game}")
    count = network.count(variant)
    try:
        network.record(variant, np.zeros(count))
    except ValueError as error:
        raise OptionError(str(error)) from None
    if not count:
        raise OptionError(f"network: {name!r}: expected one with weights")
    code = encoding.encoding(network, variant, said.get("symmetric", "none"))
    values = options.complete(algorithm, said, code.size, partial(_own_limit, variant))
    if variant.game != "tafl" and values["opponent"] != "random":
        raise OptionError(f"opponent: {values['opponent']!r} with {variant.name}: expected 'random'")
    values["network"] = network.text
    start = 0.0
    if values["start"]:
        values["start"], start = encoding.starting_weights(values["start"], network, variant, code)
    return Plan(
        algorithm, variant, _limited(variant, values["ply_limit"]), network, code, seed, values, start
    )


def _own_limit(variant: Any) -> int:
    """The limit of plies by the rules, or ours where they have none."""
    rules = getattr(variant, "rules", None)
    if rules is None or not rules.move_limit:
        return PLY_LIMIT
    return int(rules.move_limit) * (2 if rules.move_limit_unit == "each" else 1)


def _limited(variant: Any, plies: int) -> Any:
    """The variant with a limit of plies; games other than tafl end by themselves."""
    if variant.game != "tafl" or (_own_limit(variant) == plies and variant.rules.move_limit):
        return variant
    return variant.with_switches(move_limit=str(plies), move_limit_unit="plies")


@cache
def code_version() -> str:
    """The version, and a hash of the sources that results depend on."""
    from hnefi import engine

    found = hashlib.sha256()
    rooms = [Path(str(engine.__file__)).resolve().parent, Path(__file__).resolve().parent]
    for room in rooms:
        for file in sorted(room.rglob("*.py")):
            found.update(file.relative_to(room).as_posix().encode())
            found.update(file.read_bytes())
    return f"{VERSION}+{found.hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a run stands after a generation: the algorithm's arrays, and the hall of past champions."""

    generation: int
    state: State
    hall: Any


@dataclass(frozen=True, slots=True)
class Champion:
    """The individual that a generation is remembered by: free weights, fitness, the generation in which it was born,
    and SHA-256 of its parent (zeros without one)."""

    generation: int
    genome: Any
    fitness: float
    born: int
    parent: Any

    @property
    def parents(self) -> list[str]:
        return [bytes(self.parent).hex()] if np.any(self.parent) else []

    @property
    def digest(self) -> str:
        return bytes(digest(self.genome)).hex()


@dataclass(frozen=True, slots=True)
class Step:
    """One generation: where it leads, its champion (in the first one also that of generation 0, the best of those
    there were at the start), and what is said about it."""

    checkpoint: Checkpoint
    champions: tuple[Champion, ...]
    report: Mapping[str, Any]


def begin(plan: Plan) -> Checkpoint:
    """Before the first generation."""
    return Checkpoint(0, plan.build().begin(), np.zeros((0, plan.encoding.size)))


def steps(plan: Plan, start: Checkpoint, play: Play) -> Iterator[Step]:
    """The generations that are still to come."""
    algorithm = plan.build()
    here = start
    while here.generation < plan.generations:
        step = _step(plan, algorithm, here, play)
        yield step
        here = step.checkpoint


def advance(plan: Plan, start: Checkpoint, seconds: float, jobs: int) -> list[Step]:
    """Generations for about so many seconds, at least one: a job for another process."""
    began = time.monotonic()
    done = []
    for step in steps(plan, start, Executor(jobs)):
        done.append(step)
        if time.monotonic() - began >= seconds:
            break
    return done


def _step(plan: Plan, algorithm: Algorithm, here: Checkpoint, play: Play) -> Step:
    began = time.monotonic()
    generation = here.generation + 1
    population = algorithm.ask(here.state, generation)
    size = len(population.genomes)
    field = Pairing(
        size,
        pair_games=plan.values["pair_games"],
        past=len(here.hall),
        fixed=plan.fixed,
        matches=plan.values["random_matches"],
        common=plan.values["common"] == "yes",
        levels=len(plan.depths),
    )
    matches = schedule(field, plan.seed, generation, ~np.isnan(population.known))
    contestants = contest(plan, np.vstack([population.genomes, here.hall]))
    games = play(contestants, matches)
    result = points(games)
    fit = fitness(field, matches, result, population.known)
    state, place = algorithm.tell(here.state, generation, population, fit)

    def champion(generation: int, place: int) -> Champion:
        return Champion(
            generation,
            population.genomes[place].copy(),
            float(fit[place]),
            int(population.born[place]),
            population.parents[place].copy(),
        )

    champions = [champion(generation, place)]
    if generation == 1:
        old = np.flatnonzero(population.born == 0)
        champions.insert(0, champion(0, int(old[np.argmax(fit[old])])))
    hall = _remember(here.hall, champions[-1].genome, plan.values["hall"], plan.seed, generation)
    report = {
        "generation": generation,
        "best": float(fit.max()),
        "median": float(np.median(fit)),
        "mean": float(fit.mean()),
        "champion": {"fitness": champions[-1].fitness, "born": champions[-1].born},
        **_described(matches, games, result),
        "seconds": round(time.monotonic() - began, 4),
    }
    return Step(Checkpoint(generation, state, hall), tuple(champions), report)


def contest(plan: Plan, genomes: Any) -> Contestants:
    """Genomes and the fixed opponents as contestants."""
    return Contestants(
        plan.played,
        plan.network,
        plan.encoding.weights(genomes),
        plan.fixed,
        plan.depths,
        plan.values["random_reading"] == "terminal",
    )


def _remember(hall: Any, champion: Any, most: int, seed: int, generation: int) -> Any:
    """The hall with a champion perhaps in it: at any time `most` of all so far, each as likely as any other
    (reservoir sampling, J. Vitter, "Random sampling with a reservoir", 1985)."""
    if len(hall) < most:
        return np.vstack([hall, champion])
    place = int(generator(seed, generation, Purpose.HALL).integers(generation))
    if place < most:
        hall = hall.copy()
        hall[place] = champion
    return hall


def _described(matches: Schedule, games: Games, result: Any) -> dict[str, Any]:
    """What the games of a generation were like. Of each kind of match: wins, draws and losses of the one named first
    (against others than individuals: of the individual), in matches and in games by side, and how many matches captures
    decided."""
    kinds = {}
    for purpose in sorted({int(number) for number in matches.purpose}):
        here = matches.purpose == purpose
        winner = games.winner[here]
        won = np.stack([(winner == side).sum(axis=0) for side in range(3)])
        kinds[Purpose(purpose).name.lower()] = {
            "matches": [int((result.first[here] == worth).sum()) for worth in (2, 1, 0)],
            "by_captures": int(result.by_captures[here].sum()),
            "attacking": [int(won[side, 0]) for side in (0, 2, 1)],
            "defending": [int(won[side, 1]) for side in (1, 2, 0)],
        }
    return {
        "matches": len(matches),
        "drawn": int((result.first == 1).sum()),
        "by_captures": int(result.by_captures.sum()),
        "games": 2 * len(matches),
        "drawn_games": int((games.winner == 2).sum()),
        "plies": int(games.plies.sum()),
        "evaluations": int(games.evaluations.sum()),
        "kinds": kinds,
    }
