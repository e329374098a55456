"""Studies beyond the paper of 2007: several variations ("ways") of the same evolution over the same seeds.

`readings`: does it matter how the paper is read? One option at a time differs from the printed text. `distribution`:
the paper's tables over many seeds, and which reading explains its numbers best. `scaling`: what do larger populations
and more generations bring? `methods`: in how many CPU seconds do other methods come to the same strength? Tests are of
the fittest individual of a generation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ..common import paper_hingston as paper
from . import measuring
from .measuring import Cell, ExperimentError, Results, flags, not_a_plan, read_json

OPPONENTS = ("random-blind", "random-terminal", "simple")
ALGORITHM = "algorithm"
GENERATIONS = "generations"
Way = Mapping[str, Any]
"""The options of `hnefi evolve` that differ from the defaults; `algorithm`, if it is not `es`; and `generations`, if
they are not the study's."""


@dataclass(frozen=True)
class Study:
    """The runs and tests."""

    name: str
    title: str
    ways: Mapping[str, Way]
    """The others are compared with the first."""
    seeds: tuple[int, ...]
    """At least two consecutive numbers."""
    generations: int
    tested: tuple[int, ...]
    """The tested generations in ascending order; the last one is the last of a run. A way with generations of its own
    is tested after the same shares of them."""
    number: Mapping[int, int]
    """Matches of a test at each depth."""
    rules: tuple[str, ...] = ("hingston-original",)
    others: int | None = None
    """The number of seeds of all ways except the first; None: all."""
    quick: bool = False

    def seeds_of(self, way: str) -> tuple[int, ...]:
        """The seeds of a way, in all rule sets."""
        return self.seeds if way == next(iter(self.ways)) else self.seeds[: self.others]

    def generations_of(self, way: str) -> int:
        """The last generation of a way's runs."""
        return int(self.ways[way].get(GENERATIONS, self.generations))

    def tested_of(self, way: str) -> tuple[int, ...]:
        """The tested generations of a way in ascending order."""
        share = self.generations_of(way) / self.generations
        return tuple(sorted({round(generation * share) for generation in self.tested}))

    def runs(self) -> Iterator[Run]:
        """Every evolution: for each rule set, each way with all its seeds."""
        for rules in self.rules:
            for way in self.ways:
                for seed in self.seeds_of(way):
                    yield Run(rules, way, seed)

    def cells(self) -> Iterator[Cell]:
        """Every test."""
        for run in self.runs():
            for generation in self.tested_of(run.way):
                for depth in self.number:
                    for opponent in OPPONENTS:
                        yield Cell(run, generation, opponent, depth)

    def matches(self, cell: Cell) -> int:
        """How many matches a test has."""
        return self.number[cell.depth]

    def as_json(self) -> dict[str, Any]:
        """Everything that determines the results."""
        found: dict[str, Any] = json.loads(
            json.dumps(
                {
                    "study": self.name, "ways": self.ways, "seeds": self.seeds, "generations": self.generations,
                    "tested": self.tested, "number": self.number, "rules": self.rules, "others": self.others,
                    "quick": self.quick,
                }
            )
        )  # fmt: skip
        return found


class Run(NamedTuple):
    """One evolution."""

    rules: str
    way: str
    seed: int

    @property
    def folder(self) -> str:
        """Where the run is kept, relative to the study's folder."""
        return f"runs/{self.rules}/{self.way}/seed-{self.seed}"


WAYS: Mapping[str, Way] = {
    "as-printed": {},
    "tau-schwefel": {"tau": "schwefel"},
    "inherit-first": {"inherit": "first"},
    "inherit-mean": {"inherit": "mean"},
    "step-vector": {"step": "vector"},
    "weights-2862": {"network": "hingston2007-2862"},
    "random-terminal": {"random_reading": "terminal"},
    "plies-200": {"ply_limit": 200},
}
"""Readings of the paper's text: the first is ours, each of the others changes it in one place."""
READINGS = Study(
    "readings",
    "Hingston 2007: one reading at a time",
    {
        **WAYS,
        "tied-weights": {"symmetric": "tied"},
        "average-hall": {"average": 0.05, "hall": 16},
    },
    seeds=(201, 202, 203, 204, 205),
    generations=300,
    tested=(0, 50, 100, 150, 200, 250, 300),
    number={1: 200},
)
DISTRIBUTION = Study(
    "distribution",
    "Hingston 2007 as a distribution over seeds and readings",
    {
        **WAYS,
        "start-equal": {
            "init_scale": 0
        },  # what the first weights are in single precision, where they have no effect
        "trained-with-simple": {"opponent": "simple"},
    },
    seeds=tuple(range(1001, 1101)),
    others=30,
    generations=paper.GENERATIONS,
    tested=(paper.GENERATIONS,),
    number={1: 200, 2: 100, 3: 20},
    rules=paper.RULES,
)
SCALING = Study(
    "scaling",
    "Evolution with 10 to 500 individuals",
    {
        f"{mu}+{mu}": {"mu": mu, "lambda": mu, "opponent": "simple", "pair_games": 0}
        for mu in (5, 16, 50, 125, 250)
    },
    seeds=(301, 302, 303, 304, 305),
    generations=40,
    tested=(0, 1, 2, 5, 10, 20, 40),
    number={1: 200},
)
ALONE: Way = {"pair_games": 0}
"""No games among the individuals: with many, these would be nearly all games."""
CMA: Way = {ALGORITHM: "cma"}
METHODS = Study(
    "methods",
    "The paper's network by other methods",
    {
        "5+5": {},
        "5+5-tied": {"symmetric": "tied"},
        "5+5-average-hall": {"average": 0.05, "hall": 16, GENERATIONS: 300},
        "5+5-depth-2": {"depth": 2, GENERATIONS: 14},
        "50+50": {"mu": 50, "lambda": 50, GENERATIONS: 14},
        "cma": {**CMA, GENERATIONS: 200},
        "cma-tied": {**CMA, "symmetric": "tied", GENERATIONS: 200},
        "5+5-alone": {**ALONE, GENERATIONS: 800},
        "50+50-alone": {**ALONE, "mu": 50, "lambda": 50, GENERATIONS: 80},
        "500+500-alone": {**ALONE, "mu": 500, "lambda": 500, GENERATIONS: 10},
        "cma-alone": {**CMA, **ALONE, GENERATIONS: 300},
        "cma-tied-alone": {**CMA, **ALONE, "symmetric": "tied", GENERATIONS: 300},
        "treestrap": {
            ALGORITHM: "treestrap", "network": "hingston2007", "depth": 1, "generation_games": 20, "alpha_games": 2400,
            GENERATIONS: 120,
        },
    },
    seeds=(401, 402, 403, 404, 405),
    generations=600,
    tested=(0, 6, 12, 25, 50, 100, 200, 300, 400, 500, 600),
    number={1: 200},
)  # fmt: skip
"""The generations were set by hand, so that all take about as long; nobody meets Simple, which measures them."""
STUDIES = {study.name: study for study in (READINGS, DISTRIBUTION, SCALING, METHODS)}


def quick(study: Study) -> Study:
    """A version of the whole study that takes seconds; its results mean nothing."""
    few = {
        name: {option: value for option, value in way.items() if option != GENERATIONS}
        for name, way in list(study.ways.items())[:2]
    }
    return replace(
        study,
        ways=few,
        seeds=study.seeds[:2],
        generations=4,
        tested=(0, 2, 4) if len(study.tested) > 1 else (4,),
        number={depth: max(1, 10 // depth**2) for depth in study.number},
        quick=True,
    )


def read_study(folder: Path) -> Study:
    """The study of a folder; ExperimentError if there is none."""
    read = read_json(folder)
    try:
        study = STUDIES[read["study"]]
        found = replace(
            study,
            ways={str(name): dict(way) for name, way in read["ways"].items()},
            seeds=tuple(map(int, read["seeds"])),
            generations=int(read["generations"]),
            tested=tuple(map(int, read["tested"])),
            number={int(depth): int(number) for depth, number in read["number"].items()},
            rules=tuple(map(str, read["rules"])),
            others=None if read["others"] is None else int(read["others"]),
            quick=bool(read["quick"]),
        )
        if min(found.generations, *found.number.values()) < 1 or not found.ways or len(found.seeds) < FEWEST:
            raise ValueError(f"at least {FEWEST} seeds, and one generation, match and way")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise not_a_plan(folder, error, "a study") from None
    return found


def finished(folder: Path, study: Study) -> Study:
    """The part of a study that can be reported: ways with at least two finished runs, for their first seeds, the same
    in all rule sets. ExperimentError if the first way has too few."""
    missing = untested(study, measuring.log_of(folder).read(study))

    def count(rules: str, way: str) -> int:
        last = measuring.archived(study.generations_of(way))
        runs = [Run(rules, way, seed) for seed in study.seeds_of(way)]
        there = [run not in missing or (folder / run.folder / last).exists() for run in runs]
        return [*there, False].index(False)

    base, *others = study.ways
    rules = tuple(name for name in study.rules if count(name, base) >= FEWEST)
    if not rules:
        raise ExperimentError(f"{folder}: expected {FEWEST} finished runs of {base} before --report")
    done = {way: min(count(name, way) for name in rules) for way in study.ways}
    kept = [way for way in others if done[way] >= FEWEST]
    left = ", ".join(way for way in others if way not in kept)
    return replace(
        study,
        title=study.title + (f" (not finished: {left})" if left else ""),
        ways={way: study.ways[way] for way in (base, *kept)},
        seeds=study.seeds[: done[base]],
        others=min(done[way] for way in kept) if kept else None,
        rules=rules,
    )


FEWEST = 2
"""One run says nothing about the spread."""


def untested(study: Study, results: Results) -> set[Run]:
    """The runs with tests that are still to be played."""
    return {cell.run for cell in study.cells() if cell not in results}


def evolve(folder: Path, study: Study, jobs: int, *, plain: bool = False, backend: str = "") -> int:
    """Start or continue every evolution that a missing test needs; returns the exit code of the first that did not
    finish. Evolutions show their own progress."""
    from hnefi.tools.evolve import command

    missing = untested(study, measuring.log_of(folder).read(study))
    _expect_packages({run.way for run in missing}, study)
    for name, way in study.ways.items():
        for rules in study.rules:
            needed = [seed for seed in study.seeds_of(name) if Run(rules, name, seed) in missing]
            for seeds in consecutive(needed):
                out = Path(Run(rules, name, seeds[0]).folder)
                arguments = [str(way.get(ALGORITHM, "es")), "--variant", rules]
                arguments += ["--generations", str(study.generations_of(name))]
                arguments += ["--seed", str(seeds[0]), "--seeds", str(len(seeds)), "--jobs", str(jobs)]
                # Several runs have folders of their own in the given one.
                arguments += ["--out", str(folder / (out if len(seeds) == 1 else out.parent))]
                arguments += flags(plain, backend)
                for option, value in way.items():
                    if option not in (ALGORITHM, GENERATIONS):
                        arguments += ["--set", f"{option}={value}"]
                if code := command.main(arguments):
                    return code
    return 0


def _expect_packages(ways: set[str], study: Study) -> None:
    """ExperimentError if a way needs a package that is not there: better now than hours later."""
    needing = [name for name in study.ways if name in ways and study.ways[name].get(ALGORITHM) == "cma"]
    if needing and find_spec("cma") is None:
        others = ",".join(name for name in study.ways if name not in needing)
        raise ExperimentError(
            f"{', '.join(needing)}: the package cma is missing: expected pip install 'hnefi[cma]', or --ways {others}"
        )


def consecutive(numbers: Sequence[int]) -> list[list[int]]:
    """Ascending numbers, divided where one is missing."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return found


def games_a_generation(way: Way) -> int:
    """Games per generation of a way."""
    from hnefi.tools.evolve.options import of

    algorithm = way.get(ALGORITHM, "es")
    said = {name: option.default for name, option in of(algorithm).items()} | dict(way)
    if "generation_games" in said:
        return int(said["generation_games"])
    # What sep-CMA-ES compares are its candidates alone.
    size = said.get("mu", 0) + (said["lambda"] or (20 if algorithm == "cma" else 5))
    peers = size * (size - 1) // 2 * said["pair_games"]
    fixed = said["random_matches"] * (2 if said["opponent"] == "both" else 1)
    return int(2 * (peers + size * (fixed + said["hall"])))
