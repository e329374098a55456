"""The tests of an experiment: the fittest of a generation against a fixed opponent, played once and saved."""

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
    """A folder or a command line is wrong; the message says what was found and what was expected."""


class Run(Protocol):
    """One evolution. As a tuple it is the key of its random streams."""

    def __iter__(self) -> Iterator[Any]: ...
    @property
    def rules(self) -> str:
        """Name of the variant that is played."""

    @property
    def folder(self) -> str:
        """Where the run is kept, relative to the experiment's folder."""


class Plan(Protocol):
    """The tests of an experiment, and their numbers of matches."""

    def cells(self) -> Iterator[Cell]:
        """Every test."""

    def matches(self, cell: Cell) -> int:
        """The number of matches of a test, each of two games with sides swapped."""

    def as_json(self) -> dict[str, Any]:
        """The plan as `plan.json` has it."""


class Cell(NamedTuple):
    """One test: the fittest of a generation against an opponent, both at `depth` plies."""

    run: Any
    generation: int
    opponent: str
    depth: int

    def key(self) -> str:
        """The key of its games' random streams; also its name in `tests.jsonl`."""
        return " ".join(map(str, (*self.run, self.generation, self.opponent, self.depth)))


def archived(generation: int) -> str:
    """The file of a generation's champion in the folder of an evolution."""
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
    """`tests.jsonl`: a line for every finished test, which is synced to disk before it counts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, plan: Plan) -> dict[Cell, Tally]:
        """The tests so far; an incomplete last line is cut off. ExperimentError if anything else is wrong."""
        cells = {cell.key(): cell for cell in plan.cells()}
        found: dict[Cell, Tally] = {}

        def take(entry: Any) -> None:
            cell, tally = cells[entry["cell"]], Tally.from_json(entry["tally"])
            if tally.matches.all == plan.matches(cell):
                found[cell] = tally

        read_lines(self._path, take, "a test of this plan")
        return found

    def append(self, tests: Results) -> None:
        """Add finished tests; they are on the disk when this returns."""
        lines = (
            json.dumps({"cell": cell.key(), "tally": tally.as_json()}).encode()
            for cell, tally in tests.items()
        )
        durable.append_line(self._path, b"\n".join(lines))


def flags(plain: bool, backend: str) -> list[str]:
    """Additional flags of every evolution of an experiment."""
    return [*(["--plain"] if plain else []), *(["--backend", backend] if backend else [])]


class Described(Protocol):
    """The plan of any experiment."""

    def as_json(self) -> dict[str, Any]:
        """The plan as `plan.json` has it."""


def prepare(folder: Path, plan: Described) -> None:
    """Create the folder, or check that it has the same plan; ExperimentError names the differences."""

    durable.make_folder(folder)
    path = folder / "plan.json"
    if not path.exists():
        if any(entry.suffix != ".new" for entry in folder.iterdir()):  # left by a crash of the first attempt
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
    """The plan in the folder of an experiment; ExperimentError if there is none."""
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
    """The plan of an experiment's folder, a dataclass with values of the same types as in `default`: words, numbers,
    tuples of them, and mappings from numbers to numbers; ExperimentError if there is none."""
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
    """The error to raise when reading the items of a plan has failed."""
    # The text of a KeyError is only the name.
    reason = f"no {error}" if isinstance(error, KeyError) else str(error)
    return ExperimentError(f"{folder / 'plan.json'}: expected the plan of {kind} ({reason})")


def read_lines(path: Path, take: Callable[[Any], None], expected: str) -> None:
    """Call `take` with every line of a file of JSON lines. An incomplete last line is cut off; a missing file counts as
    empty. ExperimentError names a line that is unreadable or that `take` rejects."""
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
    """The remaining tests, expensive ones first so that no worker is left with one at the end."""
    return sorted((cell for cell in plan.cells() if cell not in results), key=lambda cell: -cell.depth)


Watch = Callable[[int, int], None]
"""Called with the finished and the total work of the tests, in about equal units of time."""

COST = {1: 1, 2: 40, 3: 500}
"""The rough cost of a match at each depth, in matches at one ply."""


def log_of(folder: Path) -> Log:
    """The finished tests of an experiment's folder."""
    return Log(folder / "tests.jsonl")


def measure(
    folder: Path, plan: Plan, jobs: int, watch: Watch, backend: str = "", whole_plan: Plan | None = None
) -> Results:
    """Play every test that is missing; returns all results. They are saved one by one, so that an interrupt loses
    nothing. `whole_plan`: that of the folder, if `plan` is a part of it."""
    log = log_of(folder)
    results = log.read(whole_plan or plan)
    work = [(cell, plan.matches(cell)) for cell in pending(plan, results)]
    whole = sum(COST[cell.depth] * plan.matches(cell) for cell in plan.cells())
    done = whole - sum(COST[cell.depth] * matches for cell, matches in work)
    watch(done, whole)
    for cell, tally in in_parallel(folder, work, jobs, backend):
        log.append({cell: tally})
        results[cell] = tally
        done += COST[cell.depth] * plan.matches(cell)
        watch(done, whole)
    return results


def in_parallel(
    folder: Path, work: Sequence[tuple[Cell, int]], jobs: int, backend: str = ""
) -> Iterator[tuple[Cell, Tally]]:
    """Play tests on `jobs` processes; yields them as they finish."""
    from ..common.workers import carried_out

    tasks = [partial(test, folder, cell, matches) for cell, matches in work]
    for number, tally in carried_out(tasks, jobs, backend):
        yield work[number][0], tally
