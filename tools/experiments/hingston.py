"""The experiments of P. Hingston, "Evolving Players for an Ancient Game: Hnefatafl" (2007), over several seeds.

Runs: an evolution for each rule set, each opponent in training and each seed. Tests: the fittest of every 50th
generation against Random in both readings and against Simple, at 1, 2 and 3 plies. The report sets them beside the
paper.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..common import paper_hingston as paper
from .measuring import Cell, flags

OPPONENTS = ("random-blind", "random-terminal", "simple")
TRAINED = ("random-blind", "simple")
"""The fixed opponent in training: the paper's Random, or Simple in its place."""


@dataclass(frozen=True)
class Plan:
    """The runs and tests. `tests` and `final` are matches at each depth, for every tested generation and for the
    last."""

    rules: tuple[str, ...] = paper.RULES
    trained: tuple[str, ...] = TRAINED
    seeds: tuple[int, ...] = (101, 102, 103, 104, 105)
    """At least two consecutive numbers."""
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
        """The generations whose fittest individual is tested."""
        return tuple(range(0, self.generations + 1, self.every))

    def cells(self) -> Iterator[Cell]:
        """Every test. Players trained with Simple meet it only at the end, the only result of theirs in the paper."""
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
        """The plan as in `plan.json`; `read_plan` reads it back."""
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
"""A small version of about a minute: it shows that everything works, but says nothing about the paper."""


class Run(NamedTuple):
    """One evolution."""

    rules: str
    trained: str
    seed: int

    @property
    def folder(self) -> str:
        """Where the run is kept, relative to the experiment's folder."""
        return f"runs/{self.rules}/{self.trained}/seed-{self.seed}"


def evolve(folder: Path, plan: Plan, jobs: int, *, plain: bool = False, backend: str = "") -> int:
    """Start or continue every evolution; returns the exit code of the first that did not finish. Evolutions show their
    own progress."""
    from hnefi.tools.evolve import command

    for trained in plan.trained:
        opponent = ("--opponent", "simple") if trained == "simple" else ("--opponent", "random")
        for rules in plan.rules:
            arguments = ["es", "--variant", rules, "--generations", str(plan.generations), *opponent]
            arguments += ["--seed", str(plan.seeds[0]), "--seeds", str(len(plan.seeds)), "--jobs", str(jobs)]
            arguments += ["--out", str(folder / "runs" / rules / trained), *flags(plain, backend)]
            if code := command.main(arguments):
                return code
    return 0
