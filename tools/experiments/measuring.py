"""The tests of an experiment: the fittest of a generation against a fixed opponent, played once and written down."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from hnefi.engine import durable

from ..common.matches import Tally, play

T = TypeVar("T", bound=Any)


class ExperimentError(ValueError):
    """A folder or a command line is wrong. The message says what was found and what was expected."""


class Run(Protocol):
    """One evolution. As a tuple it is what its random streams are named by."""

    def __iter__(self) -> Iterator[Any]: ...
    @property
    def rules(self) -> str:
        """Name of the variant that is played."""

    @property
    def folder(self) -> str:
        """Where the run is kept, relative to the experiment's folder."""


class Plan(Protocol):
    """What an experiment tests, and by how many matches."""

    def cells(self) -> Iterator[Cell]:
        """Every test."""

    def matches(self, cell: Cell) -> int:
        """How many matches a test has, each of two games with sides swapped."""

    def as_json(self) -> dict[str, Any]:
        """The plan as `plan.json` has it."""


class Cell(NamedTuple):
    """One test: the fittest of a generation against an opponent, both at `depth` plies."""

    run: Any
    generation: int
    opponent: str
    depth: int

    def key(self) -> str:
        """What the random streams of its games follow from; also its name in `tests.jsonl`."""
        return " ".join(map(str, (*self.run, self.generation, self.opponent, self.depth)))


def archived(generation: int) -> str:
    """Where the folder of an evolution has the champion of a generation."""
    return f"archive/gen-{generation:04d}.safetensors"


def test(folder: Path, cell: Cell, matches: int) -> Tally:
    """Play one test of the evaluator in the run's archive."""
    from hnefi.engine import games
    from hnefi.engine.evaluators import files, network
    from hnefi.engine.selfplay.match import Contestant

    variant = games.find(cell.run.rules)
    evaluator = files.load(folder / cell.run.folder / archived(cell.generation), variant)
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

        def take(entry: Any) -> None:
            cell, tally = cells[entry["cell"]], Tally.from_json(entry["tally"])
            if tally.matches.all == plan.matches(cell):
                found[cell] = tally

        read_lines(self._path, take, "a test of this plan")
        return found

    def append(self, cell: Cell, tally: Tally) -> None:
        """Add a finished test; it is on the disk when this returns."""
        durable.append_line(self._path, json.dumps({"cell": cell.key(), "tally": tally.as_json()}).encode())


def flags(plain: bool, backend: str) -> list[str]:
    """Further flags of every evolution of an experiment."""
    return [*(["--plain"] if plain else []), *(["--backend", backend] if backend else [])]


class Described(Protocol):
    """The plan of any experiment."""

    def as_json(self) -> dict[str, Any]:
        """The plan as `plan.json` has it."""


def prepare(folder: Path, plan: Described) -> None:
    """Make the folder, or find in it the same plan; ExperimentError names what differs."""

    durable.make_folder(folder)
    path = folder / "plan.json"
    if not path.exists():
        if any(entry.suffix != ".new" for entry in folder.iterdir()):  # what a crash left of a first try
            raise ExperimentError(f"{folder}: expected an empty folder, or that of this experiment")
        durable.put(path, (json.dumps(plan.as_json(), indent=1) + "\n").encode())
        return
    there, ours = read_json(folder), plan.as_json()
    for key in ours:
        if ours[key] != there.get(key):
            raise ExperimentError(
                f"{folder}: {key} is {there.get(key)} there and {ours[key]} here: expected another --out, or "
                f"hnefi experiments resume {folder}"
            )


def read_json(folder: Path) -> dict[str, Any]:
    """What the folder of an experiment says of its plan; ExperimentError if it is none."""
    path = folder / "plan.json"
    try:
        read = json.loads(path.read_text())
    except OSError as error:
        raise ExperimentError(f"{path}: {error.strerror}: expected the folder of an experiment") from None
    except (ValueError, RecursionError) as error:
        raise ExperimentError(f"{path}: expected the plan of an experiment ({error})") from None
    if not isinstance(read, dict):
        raise ExperimentError(f"{path}: expected the plan of an experiment, found {str(read)[:60]!r}")
    return read


def read_plan(folder: Path, default: T) -> T:
    """The plan of an experiment's folder, a dataclass whose values are of the kinds that `default` has: words, numbers,
    tuples of them, and numbers by number; ExperimentError if there is none."""
    read = read_json(folder)
    try:
        return replace(default, **{key: _like(value, read[key]) for key, value in vars(default).items()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise not_a_plan(folder, error) from None


def _like(value: Any, read: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(type(value[0]), read))
    if isinstance(value, Mapping):
        return {int(key): int(number) for key, number in read.items()}
    return type(value)(read)


def not_a_plan(folder: Path, error: Exception, kind: str = "an experiment") -> ExperimentError:
    """What to raise when reading a plan's items has failed."""
    # All that a KeyError says is the name.
    reason = f"no {error}" if isinstance(error, KeyError) else str(error)
    return ExperimentError(f"{folder / 'plan.json'}: expected the plan of {kind} ({reason})")


def read_lines(path: Path, take: Callable[[Any], None], expected: str) -> None:
    """Let `take` have every line of a file that grows by lines of JSON; a torn last one is cut off, and a file that is
    missing is empty. ExperimentError names a line that cannot be read, or that `take` refuses."""
    if not path.exists():
        return
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        path.write_bytes(whole)
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            take(json.loads(line))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ExperimentError(
                f"{path}: line {number}: {line[:60]!r}: expected {expected} ({error})"
            ) from None


def pending(plan: Plan, results: Results) -> list[Cell]:
    """The tests to do, dear ones first so that no worker is left with one at the end."""
    return sorted((cell for cell in plan.cells() if cell not in results), key=lambda cell: -cell.depth)


Watch = Callable[[int, int], None]
"""Told how much of the tests is done, and how much there is, in about the same units of time."""

COST = {1: 1, 2: 40, 3: 500}
"""What a match costs at each depth, roughly, in matches at one ply."""


def measure(folder: Path, plan: Plan, jobs: int, watch: Watch, backend: str = "") -> Results:
    """Play every test that is missing; all results. Finished tests are kept whatever happens."""
    log = Log(folder / "tests.jsonl")
    results = log.read(plan)
    work = [(cell, plan.matches(cell)) for cell in pending(plan, results)]
    whole = sum(COST[cell.depth] * plan.matches(cell) for cell in plan.cells())
    done = whole - sum(COST[cell.depth] * matches for cell, matches in work)
    watch(done, whole)
    for cell, tally in in_parallel(folder, work, jobs, backend):
        log.append(cell, tally)
        results[cell] = tally
        done += COST[cell.depth] * plan.matches(cell)
        watch(done, whole)
    return results


def in_parallel(
    folder: Path, work: Sequence[tuple[Cell, int]], jobs: int, backend: str = ""
) -> Iterator[tuple[Cell, Tally]]:
    """The tests as they end, on `jobs` processes."""
    from ..common.workers import carried_out

    tasks = [partial(test, folder, cell, matches) for cell, matches in work]
    for number, tally in carried_out(tasks, jobs, backend):
        yield work[number][0], tally
