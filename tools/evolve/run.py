"""One run: its plan, its state, and the step from one generation to the next."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from hnefi.engine.about import VERSION
from hnefi.engine.evaluators import network as networks
from hnefi.engine.evaluators.network import Network
from hnefi.engine.games.base_variant import AnyVariant

from . import encoding, options
from .algorithm import Champion, Learner, Play, Purpose, State
from .contestants import Executor
from .options import OptionError

PLY_LIMIT = 200
"""Maximum plies of a game if the rules have no limit."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that determines a run's results. `values` has every option; `played` is the variant with the limit of
    plies for training."""

    algorithm: str
    variant: AnyVariant
    played: AnyVariant
    network: Network
    encoding: encoding.Encoding
    seed: int
    values: Mapping[str, Any]
    start: Any = 0.0
    """The starting weights: a number for each, or zero for all."""

    @property
    def generations(self) -> int:
        return int(self.values["generations"])

    @property
    def depths(self) -> tuple[int, ...]:
        """The plies that players look ahead; the depths after the first are used only against fixed opponents."""
        return options.depths(self.values)

    @property
    def fixed(self) -> tuple[Purpose, ...]:
        """The fixed opponents of an evolution."""
        if not self.values.get("random_matches"):
            return ()
        both = {"random": Purpose.RANDOM, "simple": Purpose.SIMPLE}
        opponent = self.values["opponent"]
        return tuple(purpose for name, purpose in both.items() if opponent in (name, "both"))

    @property
    def opponents(self) -> list[str]:
        """The opponents of the players besides each other."""
        if self.algorithm in options.GRADIENTS:
            return [str(self.values["opponent"])]
        if self.algorithm == options.TORUS:
            return self.values["rungs"].split(",") if self.values["rung_games"] else []
        return [purpose.name.lower() for purpose in self.fixed]

    def build(self) -> Learner:
        """The learner; OptionError if its package is missing."""
        if self.algorithm == options.ZERO:
            from .zero import Zero

            return Zero(self)
        if self.algorithm in options.GRADIENTS:
            from .lessons import Lessons

            return Lessons(self)
        if self.algorithm == options.TORUS:
            from .torus import Torus

            return Torus(self)
        from .tournament import Tournament

        if self.algorithm == options.ES:
            from .es import EvolutionStrategy

            return Tournament(self, EvolutionStrategy(self.encoding.size, self.seed, self.values, self.start))
        from .sepcma import SepCMA

        try:
            return Tournament(self, SepCMA(self.encoding.size, self.seed, self.values, self.start))
        except ImportError:
            raise OptionError("cma: the package is missing: expected pip install 'hnefi[cma]'") from None


def plan(algorithm: str, variant: AnyVariant, seed: int, said: Mapping[str, Any]) -> Plan:
    """The plan of a run from the options given; OptionError if they are impossible."""
    name = said.get("network", options.of(algorithm)["network"].default)
    try:
        network = networks.parse(name)
    except ValueError as error:
        raise OptionError(str(error)) from None
    if variant.game not in network.module.GAMES:
        raise OptionError(
            f"network: {name!r} with {variant.name}: expected a network for {variant.game}: "
            f"{', '.join(_learnable(algorithm, variant))}"
        )
    _expect_learnable(algorithm, network)
    try:
        count = network.count(variant)
        network.record(variant, np.zeros(count))
    except ValueError as error:
        raise OptionError(str(error)) from None
    if not count:
        raise OptionError(f"network: {name!r}: expected one with weights")
    code = encoding.encoding(network, variant, said.get("symmetric", "none"))
    values = options.complete(algorithm, said, code.size, partial(_own_limit, variant))
    known = ("random", "self") if algorithm in options.GRADIENTS else ("random",)
    if variant.game != "tafl" and values.get("opponent", "random") not in known:
        expected = " or ".join(map(repr, known))
        raise OptionError(f"opponent: {values['opponent']!r} with {variant.name}: expected {expected}")
    values["network"] = network.text
    start = 0.0
    if values["start"]:
        values["start"], start = encoding.starting_weights(values["start"], network, variant, code)
    if algorithm == options.TORUS:
        from . import torus

        values = torus.settled(values, network, variant, code)
    return Plan(
        algorithm, variant, _limited(variant, values["ply_limit"]), network, code, seed, values, start
    )


def _expect_learnable(algorithm: str, network: Network) -> None:
    """OptionError unless an algorithm can train a network."""
    if algorithm == options.ZERO:
        from .heads import LEARNABLE

        if network.name not in LEARNABLE:
            raise OptionError(f"network: {network.text!r} with zero: expected {' or '.join(LEARNABLE)}")
    elif network.has_policy:
        raise OptionError(f"network: {network.text!r} with {algorithm}: expected a network without a policy")
    elif network.types:
        raise OptionError(
            f"network: {network.text!r} with {algorithm}: expected a network with real weights; `hnefi train` "
            "teaches this one"
        )


def _learnable(algorithm: str, variant: AnyVariant) -> list[str]:
    """The names of the networks for a variant that an algorithm can train."""
    names = []
    for name in networks.NAMES:
        network = networks.parse(name)
        if variant.game in network.module.GAMES and network.count(variant):
            with suppress(OptionError):
                _expect_learnable(algorithm, network)
                names.append(name)
    return names


def _own_limit(variant: Any) -> int:
    """The rules' limit of plies, or ours if they have none."""
    rules = getattr(variant, "rules", None)
    if rules is None or not rules.move_limit:
        return PLY_LIMIT
    return int(rules.move_limit) * (2 if rules.move_limit_unit == "each" else 1)


def _limited(variant: Any, plies: int) -> Any:
    """The variant with a limit of plies; games other than tafl always end."""
    if variant.game != "tafl" or (_own_limit(variant) == plies and variant.rules.move_limit):
        return variant
    return variant.with_switches(move_limit=str(plies), move_limit_unit="plies")


@cache
def code_version() -> str:
    """The version, and a hash of the sources that affect results."""
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
    """The state of a run after a generation: the learner's arrays."""

    generation: int
    state: State


@dataclass(frozen=True, slots=True)
class Step:
    """One generation: the state after it, its champion (after the first generation preceded by that of generation 0),
    and its report."""

    checkpoint: Checkpoint
    champions: tuple[Champion, ...]
    report: Mapping[str, Any]


def begin(plan: Plan) -> Checkpoint:
    """The state before the first generation."""
    return Checkpoint(0, plan.build().begin())


def steps(plan: Plan, start: Checkpoint, play: Play) -> Iterator[Step]:
    """Run the remaining generations."""
    learner = plan.build()
    here = start
    while here.generation < plan.generations:
        began, used = time.monotonic(), time.process_time()
        generation = here.generation + 1
        state, champions, report = learner.step(here.state, generation, play)
        took = {
            "seconds": round(time.monotonic() - began, 4),
            "cpu_seconds": round(time.process_time() - used, 4),
        }
        here = Checkpoint(generation, state)
        yield Step(here, champions, {"generation": generation, **report, **took})


def advance(plan: Plan, start: Checkpoint, seconds: float, jobs: int) -> list[Step]:
    """Run generations for about `seconds` seconds, at least one: a job for another process."""
    began = time.monotonic()
    done = []
    for step in steps(plan, start, Executor(jobs)):
        done.append(step)
        if time.monotonic() - began >= seconds:
            break
    return done
