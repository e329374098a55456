"""HexapawnZero, repeated over several seeds, against the exact solution of the game, and on larger boards.

Runs: `hnefi evolve zero` for each board and seed. Measurements: every network of a run on positions whose exact value
the solver knows, by its policy alone and with the search of the run; on 3 x 3 also its results against fixed players,
computed exactly from its policy in every position.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hnefi.engine import durable

from .measuring import Watch, flags, read_lines

if TYPE_CHECKING:
    from hnefi.engine.evaluators.network import Network
    from hnefi.engine.games.base_position import Position

NAME = "hexapawn"
USUAL = "hexapawn:3x3"
FINAL_GAMES = 25
"""Games with each colour against an untrained network, as in the document."""
SOLVER_MIB = 64


@dataclass(frozen=True)
class Plan:
    """The runs: every seed on the first board, and the first few seeds on the others."""

    seeds: tuple[int, ...] = tuple(range(3001, 3011))
    """Consecutive numbers that were not used in development."""
    boards: tuple[str, ...] = (
        USUAL,
        "hexapawn:4x3",
        "hexapawn:3x4",
        "hexapawn:4x4",
        "hexapawn:3x5",
        "hexapawn:4x5",
    )
    few: int = 3
    iterations: int = 10
    network: str = "policy-mlp"
    epochs: int = 128
    positions: int = 300
    """Positions measured on each board; fewer if it has fewer."""
    quick: bool = False

    def runs(self) -> Iterator[Run]:
        """Every run: all seeds on the first board, `few` seeds on each of the others."""
        for number, board in enumerate(self.boards):
            for seed in self.seeds if number == 0 else self.seeds[: self.few]:
                yield Run(board, seed)

    def as_json(self) -> dict[str, Any]:
        """The plan as in `plan.json`; `read_plan` reads it back."""
        text: dict[str, Any] = json.loads(json.dumps({"experiment": NAME, **asdict(self)}))
        return text


QUICK = Plan(
    seeds=(1, 2), boards=(USUAL,), few=2, iterations=2, network="policy-mlp:16,16", epochs=16, quick=True
)
"""A small version that takes seconds; its results say nothing about the document."""


class Run(NamedTuple):
    """One run."""

    board: str
    seed: int

    @property
    def folder(self) -> str:
        """Where the run is kept, relative to the experiment's folder."""
        return f"runs/{self.board.partition(':')[2]}/seed-{self.seed}"


class Asked(NamedTuple):
    """A position, its winner, and the moves that keep the win."""

    position: Position
    winner: int
    keeping: frozenset[int]

    @property
    def critical(self) -> bool:
        """Whether the choice matters."""
        return len(self.keeping) < len(self.position.legal_moves())


def evolve(folder: Path, plan: Plan, jobs: int, *, plain: bool = False, backend: str = "") -> int:
    """Start or continue every run; returns the exit code of the first that did not finish."""
    from hnefi.tools.evolve import command

    for board in plan.boards:
        seeds = [run.seed for run in plan.runs() if run.board == board]
        arguments = ["zero", "--variant", board, "--network", plan.network, "--epochs", str(plan.epochs)]
        arguments += [
            "--iterations",
            str(plan.iterations),
            "--seed",
            str(seeds[0]),
            "--seeds",
            str(len(seeds)),
        ]
        arguments += ["--jobs", str(jobs), "--out", str(folder / "runs" / board.partition(":")[2])]
        if code := command.main([*arguments, *flags(plain, backend)]):
            return code
    return 0


# The exact solution


def asked(board: str, most: int) -> list[Asked]:
    """Positions with a legal move and their exact values: all of them, or `most` of random games if there are more."""
    from hnefi.engine import games
    from hnefi.engine.solving import acyclic

    variant = games.find(board)
    found = _all(games.initial(variant), most) or _some(games.initial(variant), most)
    made = []
    for position in found:
        solved = acyclic.solve(position, SOLVER_MIB, shortest=False)
        assert solved.winner is not None
        made.append(Asked(position, int(solved.winner), frozenset(solved.moves)))
    return made


def _all(start: Position, most: int) -> list[Position]:
    """Every undecided position that can be reached, in a fixed order; none if there are more than `most`."""
    found, waiting = {start.key: start}, [start]
    while waiting:
        position = waiting.pop()
        for move in position.legal_moves():
            after = position.play(move)
            if after.outcome is None and after.key not in found:
                found[after.key] = after
                waiting.append(after)
        if len(found) > most:
            return []
    return list(found.values())


def _some(start: Position, most: int) -> list[Position]:
    """Different undecided positions of random games."""
    import random

    draw = random.Random(start.variant.name)
    found: dict[int, Position] = {}
    for _ in range(100 * most):
        position = start
        while position.outcome is None and len(found) < most:
            found.setdefault(position.key, position)
            position = position.play(draw.choice(position.legal_moves()))
        if len(found) >= most:
            break
    return list(found.values())


# Measuring a network

Policy = Mapping[int, float]
"""Shares of the legal moves."""


def measure_run(folder: Path, plan: Plan, run: Run) -> list[dict[str, Any]]:
    """Measure every network of a run; the first one is untrained."""
    import numpy as np

    from hnefi.engine import games
    from hnefi.engine.evaluators import files
    from hnefi.engine.selfplay.zero import Board
    from hnefi.engine.selfplay.zero_search import Settings
    from hnefi.tools.evolve import heads
    from hnefi.tools.evolve.algorithm import Purpose, generator

    variant = games.find(run.board)
    positions = asked(run.board, plan.positions)
    exact = run.board == USUAL
    untrained: dict[int, Policy] = {}
    found = []
    for generation in range(plan.iterations + 1):
        evaluator = files.load(folder / run.folder / "archive" / f"gen-{generation:04d}.safetensors", variant)
        board = Board(variant, [files.record(evaluator, variant)], Settings())
        values, alone, searched = {}, {}, {}
        for one in positions:
            values[one.position.key], alone[one.position.key] = _priors(
                evaluator.network, evaluator, one.position
            )
            visits = board.visits(one.position)
            searched[one.position.key] = {
                move: count / sum(visits.values()) for move, count in visits.items()
            }
        report = {
            "generation": generation,
            "positions": len(positions),
            "critical": sum(one.critical for one in positions),
            "value_sign": _mean((values[one.position.key] > 0) == (one.winner == 0) for one in positions),
            "alone": agreement(positions, alone),
            "searched": agreement(positions, searched),
        }
        if exact:
            start = positions[0].position
            report |= {
                "black_perfect": worst(start, 1, searched) == 1.0,
                "black_sampled": worst(start, 1, searched, sampled=True),
                "black_v_random": wins(start, (uniform, searched.get), 1),
                "white_v_random": wins(start, (searched.get, uniform), 0),
                "black_v_perfect": wins(start, (best_of(positions), searched.get), 1),
                "white_v_perfect": wins(start, (searched.get, best_of(positions)), 0),
            }
            if generation in (0, plan.iterations):
                network = evaluator.network
                weights = heads.starting_weights(network, variant, generator(run.seed, 0, Purpose.FINAL))
                other = Board(variant, [network.record(variant, weights)], Settings())
                untrained = {}
                for one in positions:
                    visits = other.visits(one.position)
                    untrained[one.position.key] = {m: n / sum(visits.values()) for m, n in visits.items()}
                report |= {
                    "black_v_untrained": wins(start, (untrained.get, searched.get), 1),
                    "white_v_untrained": wins(start, (searched.get, untrained.get), 0),
                    "final": _final(
                        variant, network, files.genome(evaluator).astype(np.float32), weights, run.seed
                    ),
                }
        found.append(report)
    return found


def _priors(network: Network, evaluator: Any, position: Position) -> tuple[float, Policy]:
    """The value for white and the shares of the legal moves, from the slow form of the network."""
    import numpy as np

    from hnefi.engine import games

    order = games.policy_moves(position.variant)
    legal = position.legal_moves()
    logits = network.module.naive_policy(position.variant, network.sizes, evaluator.arrays, position)
    chosen = np.array([logits[order.index(move)] for move in legal])
    shares = np.exp(chosen - chosen.max())
    value = network.naive(position.variant, evaluator.arrays, position)
    return value, dict(zip(legal, (shares / shares.sum()).tolist(), strict=True))


def _final(variant: Any, network: Network, trained: Any, untrained: Any, seed: int) -> dict[str, int]:
    """Games won against an untrained network, as the document plays them."""
    import numpy as np

    from hnefi.engine.selfplay.zero import GAME, Board
    from hnefi.engine.selfplay.zero_search import Settings
    from hnefi.tools.evolve.algorithm import Purpose, game_seeds

    table = np.zeros(2 * FINAL_GAMES, GAME)
    table["seed"] = game_seeds(seed, 0, Purpose.FINAL, np.arange(len(table)), 0)
    table["players"][:FINAL_GAMES, 0] = 1  # the untrained network is white
    table["players"][FINAL_GAMES:, 1] = 1
    board = Board(variant, [network.record(variant, weights) for weights in (trained, untrained)], Settings())
    board.play(table)
    winner = (table["outcome"] >> 8) - 1
    return {
        "black": int((winner[:FINAL_GAMES] == 1).sum()),
        "white": int((winner[FINAL_GAMES:] == 0).sum()),
    }


def agreement(positions: Sequence[Asked], policies: Mapping[int, Policy]) -> dict[str, float]:
    """The share of positions in which the first of the best moves keeps the value, and the mean share of the policy on
    moves that keep it; of all positions, and of those where the choice matters."""
    best, mass = {}, {}
    for one in positions:
        policy = policies[one.position.key]
        top = max(policy.values())
        best[one] = next(move for move, share in policy.items() if share == top) in one.keeping
        mass[one] = sum(share for move, share in policy.items() if move in one.keeping)
    critical = [one for one in positions if one.critical]
    found = {
        "best": _mean(best.values()),
        "mass": _mean(mass.values()),
        "best_critical": _mean(best[one] for one in critical),
        "mass_critical": _mean(mass[one] for one in critical),
    }
    for side, name in enumerate(("white", "black")):
        found[f"best_critical_{name}"] = _mean(
            best[one] for one in critical if int(one.position.side) == side
        )
    return found


def _mean(values: Any) -> float:
    found = list(map(float, values))
    return sum(found) / max(1, len(found))


Player = Callable[[int], Policy | None]
"""The policy in a position, given its key; None if all moves are equally likely."""


def uniform(_: int) -> None:
    """The random player."""


def best_of(positions: Sequence[Asked]) -> Player:
    """A perfect player: draws from the moves that keep the value with equal probability."""
    table = {one.position.key: dict.fromkeys(one.keeping, 1 / len(one.keeping)) for one in positions}
    return table.get


def wins(start: Position, players: tuple[Player, Player], side: int) -> float:
    """The exact probability that `side` wins from a position, both sides drawing their moves from their policies."""
    known: dict[int, float] = {}

    def chance(position: Position) -> float:
        if position.outcome is not None:
            return float(position.outcome.winner == side)
        if position.key not in known:
            legal = position.legal_moves()
            policy = players[int(position.side)](position.key) or dict.fromkeys(legal, 1 / len(legal))
            known[position.key] = sum(
                share * chance(position.play(move)) for move, share in policy.items() if share
            )
        return known[position.key]

    return chance(start)


def worst(start: Position, side: int, policies: Mapping[int, Policy], *, sampled: bool = False) -> float:
    """The probability that `side` wins against the worst opponent for it, with its most visited moves or, if `sampled`,
    with moves drawn from its policies."""
    known: dict[int, float] = {}

    def chance(position: Position) -> float:
        if position.outcome is not None:
            return float(position.outcome.winner == side)
        if position.key not in known:
            if int(position.side) != side:
                found = min(chance(position.play(move)) for move in position.legal_moves())
            else:
                policy = policies[position.key]
                if not sampled:
                    top = max(policy.values())
                    policy = {next(move for move, share in policy.items() if share == top): 1.0}
                found = sum(share * chance(position.play(move)) for move, share in policy.items() if share)
            known[position.key] = found
        return known[position.key]

    return chance(start)


# What was measured


Results = Mapping[Run, list[dict[str, Any]]]


def measure(folder: Path, plan: Plan, jobs: int, watch: Watch, backend: str = "") -> Results:
    """Measure every run that is missing; returns all results. They are saved one by one, so that an interrupt loses
    nothing."""
    from ..common.workers import carried_out

    path = folder / "measures.jsonl"
    results = _read(path, plan)
    whole = list(plan.runs())
    todo = [run for run in whole if run not in results]
    watch(len(whole) - len(todo), len(whole))
    tasks = [partial(measure_run, folder, plan, run) for run in todo]
    for number, found in carried_out(tasks, jobs, backend):
        run = todo[number]
        durable.append_line(
            path, json.dumps({"board": run.board, "seed": run.seed, "networks": found}).encode()
        )
        results[run] = found
        watch(len(results), len(whole))
    return results


def _read(path: Path, plan: Plan) -> dict[Run, list[dict[str, Any]]]:
    """The runs measured so far."""
    found: dict[Run, list[dict[str, Any]]] = {}
    runs = set(plan.runs())

    def take(entry: Any) -> None:
        run, networks = Run(entry["board"], entry["seed"]), entry["networks"]
        if run not in runs or [one["generation"] for one in networks] != list(range(plan.iterations + 1)):
            raise ValueError(run)
        found[run] = networks

    read_lines(path, take, "a run of this plan")
    return found
