"""Evolving a Hex-Playing Agent, repeated: every configuration of the document with six runs, and its future work.

Runs: `hnefi evolve torus` for each board, configuration and seed. Measurements of the last population of each: the wins
of every player against Random; whether its first move wins, on boards that the solver can solve; and the results of
populations against each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hnefi.engine import durable, squares

from .measuring import Watch, flags, read_lines

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.base_variant import AnyVariant
    from hnefi.engine.selfplay.match import Contestant
    from hnefi.tools.evolve.run import Plan as RunPlan

NAME = "hex"
VANILLA, EXPONENTIAL, NO_SWAP, DEEP = "vanilla", "exponential", "no-swap", "deep"
DEEP_COST = 5
"""The factor by which a game of `deep` takes longer."""
CONFIGURATIONS: Mapping[str, tuple[str, ...]] = {
    VANILLA: (),
    EXPONENTIAL: ("selection=exponential",),
    NO_SWAP: ("mutation=none",),
    "inertia-50": ("inertia=0.5",),
    "inertia-50-kept": ("inertia=0.5", "shake_kept=no"),
    "swap-25": ("again=0.25",),
    "swap-50": ("again=0.5",),
    DEEP: ("network=mlp:25,5",),
}
"""The options that each changes. The text on kept weights can be read in two ways."""
FUTURE: Mapping[str, tuple[str, ...]] = {
    "copy": ("mutation=copy",),
    "radius-2": ("neighbourhood=2",),
    "radius-3": ("neighbourhood=3",),
    "everybody": ("neighbourhood=0",),
    "rearrange": ("rearrange=10",),
    "planes": ("network=mlp:5,planes",),
    "edges": ("network=mlp:5,edges",),
    "transposed": ("network=mlp:5,transposed",),
    "relative": ("noise=relative", "sigma=0.3"),
    "small-noise": ("sigma=0.1",),
    "quick-win": ("quick_win=yes",),
    "tanh": ("network=mlp:5,tanh",),
    "relu": ("network=mlp:5,relu",),
    "threshold": ("network=mlp:5,threshold",),
    "softsign": ("network=mlp:5,softsign",),
    "softplus": ("network=mlp:5,softplus",),
    "leaky": ("network=mlp:5,leaky",),
    "legality": ("legality=learned",),
    "against-random": ("rung_games=12",),
}
"""The future work that the document names."""


@dataclass(frozen=True)
class Plan:
    """The runs. The first board is the document's; the second one is small enough to solve every opening; the third is
    for the future work."""

    seeds: tuple[int, ...] = tuple(range(4001, 4007))
    """Consecutive numbers that were not used in development."""
    board: str = "hex:11"
    solved: str = "hex:5"
    future: str = "hex:7"
    generations: int = 400
    future_generations: int = 200
    side: int = 10
    games: int = 2000
    """Games of each player against Random, half of them as first player."""
    meetings: int = 4
    """Players of another population that each player meets, twice each."""
    quick: bool = False

    def runs(self) -> Iterator[Run]:
        """Every run, in the order in which they are played."""
        for board, configurations in self.groups():
            for configuration in configurations:
                for seed in self.seeds:
                    yield Run(board, configuration, seed)

    def groups(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Boards with their configurations, in the order in which they are run."""
        first, rest = tuple(CONFIGURATIONS)[:3], tuple(CONFIGURATIONS)[3:]
        yield self.board, first
        yield self.solved, first
        yield self.board, rest
        yield self.solved, rest
        yield self.future, (VANILLA, EXPONENTIAL, *FUTURE)

    def long(self, board: str) -> int:
        """Generations on a board."""
        return self.future_generations if board == self.future else self.generations

    def as_json(self) -> dict[str, Any]:
        """The plan as in `plan.json`; `read_plan` reads it back."""
        text: dict[str, Any] = json.loads(json.dumps({"experiment": NAME, **asdict(self)}))
        return text


QUICK = Plan(
    seeds=(1, 2), board="hex:5", solved="hex:3", future="hex:4", generations=4, future_generations=2, side=7, games=20,
    meetings=1, quick=True,
)  # fmt: skip
"""A small version that takes seconds; its results say nothing about the document."""


class Run(NamedTuple):
    """One run."""

    board: str
    configuration: str
    seed: int

    @property
    def folder(self) -> str:
        """Where the run is kept, relative to the experiment's folder."""
        return f"runs/{self.board.replace(':', '-')}/{self.configuration}/seed-{self.seed}"


def evolve(folder: Path, plan: Plan, jobs: int, *, plain: bool = False, backend: str = "") -> int:
    """Start or continue every run; returns the exit code of the first that did not finish."""
    from hnefi.tools.evolve import command

    for board, configurations in plan.groups():
        for configuration in configurations:
            generations = plan.long(board)
            settings = {**CONFIGURATIONS, **FUTURE}[configuration]
            arguments = ["torus", "--variant", board, "--generations", str(generations)]
            arguments += ["--seed", str(plan.seeds[0]), "--seeds", str(len(plan.seeds)), "--jobs", str(jobs)]
            arguments += ["--set", f"side={plan.side}", "--set", f"measure_every={max(1, generations // 20)}"]
            arguments += ["--set", f"archive_every={max(1, generations // 8)}"]
            arguments += [word for setting in settings for word in ("--set", setting)]
            arguments += ["--out", str((folder / Run(board, configuration, 0).folder).parent)]
            if code := command.main([*arguments, *flags(plain, backend)]):
                return code
    return 0


# Populations


@dataclass(frozen=True, slots=True)
class Population:
    """The last population of a finished run (players x weights)."""

    plan: RunPlan
    weights: Any

    def seated(self) -> list[Contestant]:
        """Its players, set up as in their games against each other."""
        from hnefi.tools.evolve.torus import contest

        return contest(self.plan, self.weights).seated(range(len(self.weights)))


def population(folder: Path, plan: Plan, run: Run) -> Population | None:
    """The population of a run; None if it is not finished."""
    from hnefi.engine import games
    from hnefi.tools.evolve import options
    from hnefi.tools.evolve import run as runs
    from hnefi.tools.evolve.folder import CONFIG, STATE, load_state, read_config

    path = folder / run.folder
    if not (path / CONFIG).exists() or not (path / STATE).exists():
        return None
    config = read_config(path)
    said = {name: config[name] for name in options.of(options.TORUS)}
    made = runs.plan(options.TORUS, games.find(run.board), run.seed, said)
    checkpoint = load_state(path / STATE, made)
    if checkpoint.generation < plan.long(run.board):
        return None
    return Population(made, checkpoint.state["weights"])


# What is measured


class Measured(NamedTuple):
    """Measurements of the last population of a run: games won against Random by each player, as first and as second
    (players x 2); the index of the player that won most, and its wins in the same number of fresh games; the share of
    players whose first move wins, None if no solution is known; and the standard deviation of a weight over the
    players, as the mean over all weights."""

    wins: list[list[int]]
    best: int
    confirmed: list[int]
    openings: float | None
    diversity: float


Pair = tuple[Run, Run]


@dataclass(frozen=True)
class Results:
    """The finished part of a plan: each run's measurements, and the share of games that the players of one run won
    against those of another; for a run against itself, the share of the first player."""

    runs: Mapping[Run, Measured]
    meetings: Mapping[Pair, float]

    def of(self, board: str, configuration: str) -> dict[Run, Measured]:
        """The finished runs of one configuration on one board."""
        return {
            run: found
            for run, found in self.runs.items()
            if (run.board, run.configuration) == (board, configuration)
        }


def measure_run(folder: Path, plan: Plan, run: Run) -> Measured | None:
    """Measure a run; None if it is not finished."""
    from hnefi.tools.evolve.algorithm import Purpose
    from hnefi.tools.evolve.contestants import Executor
    from hnefi.tools.evolve.torus import against_random

    found = population(folder, plan, run)
    if found is None:
        return None
    half = plan.games // 2
    shares = against_random(found.plan, found.weights, plan.games, Executor(1), 0, Purpose.RANK)
    best = int(shares.sum(axis=1).argmax())
    again = against_random(
        found.plan, found.weights[best : best + 1], plan.games, Executor(1), 0, Purpose.CONFIRM
    )
    confirmed = (again[0] * half).round().astype(int).tolist()
    save_best(folder, found, run, best, {"random": {"games": plan.games, "won": confirmed}})
    return Measured(
        (shares * half).round().astype(int).tolist(),
        best,
        confirmed,
        openings(found) if run.board == plan.solved else None,
        float(found.weights.std(axis=0).mean()),
    )


def save_best(folder: Path, found: Population, run: Run, place: int, results: Mapping[str, Any]) -> None:
    """Write the player with index `place` as an evaluator file, with its results in fresh games."""
    import numpy as np

    from hnefi.tools.evolve.algorithm import Champion
    from hnefi.tools.evolve.folder import save_champion

    path = folder / "best" / run.board.replace(":", "-") / f"{run.configuration}-{run.seed}.safetensors"
    durable.make_folder(path.parent)
    generation = found.plan.generations
    champion = Champion(generation, found.weights[place], None, generation, np.zeros(32, np.uint8))
    save_champion(path, found.plan, champion, results)


def openings(found: Population) -> float | None:
    """The share of players whose first move wins with best play; a player with several equal first moves counts in
    part."""
    from hnefi.engine import games
    from hnefi.engine.games.hex.variant import WINNING_OPENINGS

    variant = found.plan.variant
    winning = WINNING_OPENINGS[variant.files].replace("/", "")
    total = 0.0
    for player in found.seated():
        values = placements(player, games.initial(variant))
        chosen = [winning[cell] == "W" for cell in range(len(winning)) if values[cell] == values.max()]
        total += sum(chosen) / len(chosen)
    return total / len(found.weights)


def placements(player: Contestant, position: Position) -> Any:
    """A player's values of a stone on each cell, row by row from the top; values of occupied cells are meaningless."""
    from hnefi.engine.selfplay import hex_one_ply

    seats, numbers = hex_one_ply.seated([(player.params[0], False)])
    board = hex_one_ply.board(position.variant.files)[0]
    hex_one_ply.values(position.new_record()[0], seats, numbers, board)
    return board["values"][: position.variant.files**2].copy()


def head_to_head(first: Contestant, second: Contestant, start: Position) -> Position:
    """The end of a game between two players; among equal moves the first in the list is played."""
    position = start
    size = start.variant.files
    while position.outcome is None:
        values = placements((first, second)[int(position.side)], position)
        position = position.play(
            max(position.legal_moves(), key=lambda move: values[_cell(squares.target(move), size)])
        )
    return position


def _cell(sq: int, size: int) -> int:
    """The index of a square among the values of all cells."""
    return (size - 1 - squares.rank_of(sq)) * size + squares.file_of(sq)


def meet(
    variant: AnyVariant,
    one: Sequence[Contestant],
    other: Sequence[Contestant],
    meetings: int,
    key: str,
    *,
    own: bool,
) -> float:
    """The share of games that the players of one population win, each against `meetings` players of the other and on
    both sides. Within one population (`own`), the share of the first player; nobody meets itself."""
    import numpy as np

    from hnefi.engine.selfplay.match import GAME, Table

    from ..common import matches

    count = len(one)
    draw = np.random.default_rng(matches.seed(key))
    steps = 1 + draw.permutation(count - 1)[:meetings]
    mine = np.tile(np.arange(count), len(steps))
    theirs = count + (mine + np.repeat(steps, count)) % count
    table = np.zeros(2 * len(mine), GAME)
    table["attackers"] = np.concatenate([mine, theirs])
    table["defenders"] = np.concatenate([theirs, mine])
    table["seed"] = draw.integers(1 << 63, size=len(table))
    Table(variant, [*one, *other]).play(table)
    first_won = (table["outcome"] >> 8) == 1
    if own:
        return float(first_won.mean())
    return float(np.where(np.arange(len(table)) < len(mine), first_won, ~first_won).mean())


# What was measured


def _measured(folder: Path, plan: Plan, what: Run | Pair) -> Any:
    """Measure a run, or the games between two runs."""
    from hnefi.engine import games

    if isinstance(what, Run):
        return measure_run(folder, plan, what)
    one, other = what
    ours, theirs = population(folder, plan, one), population(folder, plan, other)
    assert ours is not None
    assert theirs is not None
    return meet(
        games.find(one.board),
        ours.seated(),
        theirs.seated(),
        plan.meetings,
        f"{one.folder} {other.folder}",
        own=one == other,
    )


def cost(plan: Plan, what: Run | Pair) -> int:
    """A rough measure of the time for a measurement: games times placements evaluated per game."""
    players = plan.side**2
    both = (what,) if isinstance(what, Run) else what
    games = players * (plan.games if isinstance(what, Run) else 2 * plan.meetings)
    cells = int(both[0].board.partition(":")[2]) ** 2
    return games * cells**2 * max(DEEP_COST if run.configuration == DEEP else 1 for run in both)


def measure(folder: Path, plan: Plan, jobs: int, watch: Watch, backend: str = "") -> Results:
    """Measure every finished run, and let those on the first board meet; returns all results. Measurements are saved
    one by one, so that an interrupt loses nothing."""
    from ..common.workers import carried_out, in_threads

    path = folder / "measures.jsonl"
    results = _read(path, plan)
    runs, meetings = dict(results.runs), dict(results.meetings)
    there = [run for run in plan.runs() if run in runs or population(folder, plan, run) is not None]
    pairs = list(combinations_with_replacement([run for run in there if run.board == plan.board], 2))
    todo: list[Run | Pair] = [run for run in there if run not in runs]
    todo += [pair for pair in pairs if pair not in meetings]
    every: list[Run | Pair] = [*there, *pairs]
    whole = sum(cost(plan, what) for what in every)
    done = whole - sum(cost(plan, what) for what in todo)
    watch(done, whole)
    tasks = [partial(_measured, folder, plan, what) for what in todo]
    # Threads share compiled code, and kernels release the GIL.
    for number, found in carried_out(tasks, jobs, backend) if backend else in_threads(tasks, jobs):
        what = todo[number]
        if isinstance(what, Run):
            runs[what] = found
            entry = {"run": what, **found._asdict()}
        else:
            meetings[what] = found
            entry = {"pair": what, "won": found}
        durable.append_line(path, json.dumps(entry).encode())
        done += cost(plan, what)
        watch(done, whole)
    return Results(
        {run: runs[run] for run in plan.runs() if run in runs},
        {pair: meetings[pair] for pair in pairs},
    )


def _read(path: Path, plan: Plan) -> Results:
    """The measurements so far."""
    runs: dict[Run, Measured] = {}
    meetings: dict[Pair, float] = {}
    known = set(plan.runs())

    def take(entry: Any) -> None:
        named = [Run(*run) for run in (entry["pair"] if "pair" in entry else [entry["run"]])]
        if not known.issuperset(named):
            raise ValueError(named)
        if "pair" in entry:
            meetings[named[0], named[1]] = float(entry["won"])
        else:
            found = Measured(*(entry[name] for name in Measured._fields))
            if len(found.wins) != plan.side**2:
                raise ValueError(f"{len(found.wins)} players")
            runs[named[0]] = found

    read_lines(path, take, "a run of this plan")
    return Results(runs, meetings)
