"""The experiments of P. Hingston, "Evolving Players for an Ancient Game: Hnefatafl" (2007), over several seeds.

Runs: an evolution for each rule set, each opponent in training and each seed. Tests: the fittest of every 50th
generation against Random in both readings and against Simple, at 1, 2 and 3 plies. The report sets them beside the
paper.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from . import paper_hingston as paper
from .tally import Tally, play

OPPONENTS = ("random-blind", "random-terminal", "simple")
TRAINED = ("random-blind", "simple")
"""Whom the players met in training besides each other: the paper's Random, and Simple in its place."""


class ExperimentError(ValueError):
    """Something in a folder or a command line that cannot be: what was found, and what was expected."""


@dataclass(frozen=True)
class Plan:
    """What is run and tested. `tests` and `final` are matches at each depth, of every generation and of the last."""

    rules: tuple[str, ...] = paper.RULES
    trained: tuple[str, ...] = TRAINED
    seeds: tuple[int, ...] = (101, 102, 103, 104, 105)
    """At least two, each one more than the one before."""
    generations: int = paper.GENERATIONS
    every: int = 50
    tests: Mapping[int, int] = field(default_factory=lambda: {1: 200, 2: 40, 3: 10})
    final: Mapping[int, int] = field(default_factory=lambda: {1: 400, 2: 200, 3: 40})
    quick: bool = False

    def runs(self) -> Iterator[Run]:
        """Every evolution, those of the paper first."""
        for trained in self.trained:
            for rules in self.rules:
                for seed in self.seeds:
                    yield Run(rules, trained, seed)

    def tested(self) -> tuple[int, ...]:
        """The generations whose fittest is tested."""
        return tuple(range(0, self.generations + 1, self.every))

    def cells(self) -> Iterator[Cell]:
        """Every test. Players trained with Simple meet him at the end: the paper says no more of them."""
        for run in self.runs():
            papers = run.trained == self.trained[0]
            for generation in self.tested() if papers else (self.generations,):
                for opponent in OPPONENTS if papers else ("simple",):
                    for depth in paper.DEPTHS:
                        yield Cell(run, generation, opponent, depth)

    def matches(self, cell: Cell) -> int:
        """How many matches a test has."""
        return (self.final if cell.generation == self.generations else self.tests)[cell.depth]

    def as_json(self) -> dict[str, Any]:
        text: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return text


QUICK = Plan(
    trained=("random-blind",),
    seeds=(1, 2),
    generations=10,
    every=10,
    tests={1: 10, 2: 2, 3: 1},
    final={1: 20, 2: 4, 3: 1},
    quick=True,
)
"""The whole chain in about a minute: it shows that everything works and says nothing about the paper."""


class Run(NamedTuple):
    """One evolution."""

    rules: str
    trained: str
    seed: int

    @property
    def folder(self) -> str:
        return f"runs/{self.rules}/{self.trained}/seed-{self.seed}"


class Cell(NamedTuple):
    """One test: the fittest of a generation against an opponent, both at `depth` plies."""

    run: Run
    generation: int
    opponent: str
    depth: int

    def key(self) -> str:
        """What the random streams of its games follow from; also its name in `tests.jsonl`."""
        run = self.run
        return f"{run.rules} {run.trained} {run.seed} {self.generation} {self.opponent} {self.depth}"


def test(folder: Path, cell: Cell, matches: int) -> Tally:
    """Play one test of the evaluator in the run's archive."""
    from hnefi.engine import games
    from hnefi.engine.contest import Contestant
    from hnefi.engine.evaluators import files, network

    variant = games.find(cell.run.rules)
    evaluator = files.load(
        folder / cell.run.folder / "archive" / f"gen-{cell.generation:04d}.safetensors", variant
    )
    ours = Contestant("minimax", cell.depth, files.record(evaluator, variant))
    if cell.opponent == "random-blind":
        theirs = Contestant("random")
    elif cell.opponent == "random-terminal":
        theirs = Contestant("minimax", cell.depth)
    else:
        theirs = Contestant("minimax", cell.depth, network.parse("simple").record(variant, ()))
    return play(variant, ours, theirs, matches, cell.key())


Results = Mapping[Cell, Tally]


class Log:
    """`tests.jsonl`: every finished test is a line, written through before it counts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, plan: Plan) -> dict[Cell, Tally]:
        """The tests done so far; a torn last line is cut off. ExperimentError for anything else that is wrong."""
        cells = {cell.key(): cell for cell in plan.cells()}
        found: dict[Cell, Tally] = {}
        if not self._path.exists():
            return found
        text = self._path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if len(whole) < len(text):
            self._path.write_bytes(whole)
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                entry = json.loads(line)
                cell, tally = cells[entry["cell"]], Tally.from_json(entry["tally"])
            except (ValueError, KeyError, TypeError) as error:
                raise ExperimentError(
                    f"{self._path}: line {number}: {line[:60]!r}: expected a test of this plan ({error})"
                ) from None
            if tally.matches.all == plan.matches(cell):
                found[cell] = tally
        return found

    def append(self, cell: Cell, tally: Tally) -> None:
        import os

        with self._path.open("ab") as file:
            file.write(json.dumps({"cell": cell.key(), "tally": tally.as_json()}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def prepare(folder: Path, plan: Plan) -> None:
    """Make the folder, or find in it the same plan; ExperimentError names what differs."""
    from hnefi.tools.evolve.folder import replace

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "plan.json"
    if not path.exists():
        if any(folder.iterdir()):
            raise ExperimentError(f"{folder}: expected an empty folder, or that of this experiment")
        replace(path, (json.dumps(plan.as_json(), indent=1) + "\n").encode())
        return
    there = json.loads(json.dumps(read_plan(folder).as_json()))
    ours = plan.as_json()
    for key in ours:
        if ours[key] != there[key]:
            raise ExperimentError(
                f"{folder}: {key} is {there[key]} there and {ours[key]} here: expected another --out, or "
                f"hnefi experiments resume {folder}"
            )


def read_plan(folder: Path) -> Plan:
    """The plan of an experiment's folder; ExperimentError if there is none."""
    path = folder / "plan.json"
    try:
        read = json.loads(path.read_text())
        return Plan(
            tuple(map(str, read["rules"])),
            tuple(map(str, read["trained"])),
            tuple(map(int, read["seeds"])),
            int(read["generations"]),
            int(read["every"]),
            {int(depth): int(number) for depth, number in read["tests"].items()},
            {int(depth): int(number) for depth, number in read["final"].items()},
            bool(read["quick"]),
        )
    except OSError as error:
        raise ExperimentError(f"{path}: {error.strerror}: expected the folder of an experiment") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExperimentError(f"{path}: expected the plan of an experiment ({error})") from None


def pending(plan: Plan, results: Results) -> list[Cell]:
    """The tests to do, dear ones first so that no worker is left with one at the end."""
    return sorted((cell for cell in plan.cells() if cell not in results), key=lambda cell: -cell.depth)


Watch = Callable[[int, int], None]
"""Told how much of the tests is done, and how much there is, in about the same units of time."""

COST = {1: 1, 2: 40, 3: 500}
"""What a match costs at each depth, roughly, in matches at one ply."""


def evolve(folder: Path, plan: Plan, jobs: int, *, plain: bool = False) -> bool:
    """Run, or finish, every evolution; whether all came to their end. They tell themselves how they go."""
    from hnefi.tools.evolve import command

    for trained in plan.trained:
        opponent = ("--opponent", "simple") if trained == "simple" else ("--opponent", "random")
        for rules in plan.rules:
            arguments = ["es", "--variant", rules, "--generations", str(plan.generations), *opponent]
            arguments += ["--seed", str(plan.seeds[0]), "--seeds", str(len(plan.seeds)), "--jobs", str(jobs)]
            arguments += ["--out", str(folder / "runs" / rules / trained), *(("--plain",) if plain else ())]
            if command.main(arguments):
                return False
    return True


def measure(folder: Path, plan: Plan, jobs: int, watch: Watch) -> Results:
    """Play every test that is missing; all results. What is finished is kept whatever happens."""
    log = Log(folder / "tests.jsonl")
    results = log.read(plan)
    work = [(cell, plan.matches(cell)) for cell in pending(plan, results)]
    whole = sum(COST[cell.depth] * plan.matches(cell) for cell in plan.cells())
    done = whole - sum(COST[cell.depth] * matches for cell, matches in work)
    watch(done, whole)
    for cell, tally in in_parallel(folder, work, jobs):
        log.append(cell, tally)
        results[cell] = tally
        done += COST[cell.depth] * plan.matches(cell)
        watch(done, whole)
    return results


def in_parallel(folder: Path, work: Sequence[tuple[Cell, int]], jobs: int) -> Iterator[tuple[Cell, Tally]]:
    """The tests as they end, on `jobs` processes."""
    from joblib import Parallel, delayed

    tasks = (delayed(_test)(folder, cell, matches) for cell, matches in work)
    yield from Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(tasks)


def _test(folder: Path, cell: Cell, matches: int) -> tuple[Cell, Tally]:
    return cell, test(folder, cell, matches)
