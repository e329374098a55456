"""`hnefi experiments`: published experiments, repeated with error bars; interrupted ones can be continued."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hnefi.engine.wording import counted
from hnefi.protocol.hosts.exit_codes import INTERRUPTED, USAGE, code_of

from ..common import arguments, interrupts
from ..common.live import PAUSE, Live, duration
from . import (
    distribution_report,
    hex_report,
    hexapawn,
    hexapawn_report,
    hingston,
    hingston_report,
    measuring,
    studies,
    studies_report,
    tablut,
    tablut_report,
    tests_csv,
)
from . import hex as torus
from .hingston import Plan
from .measuring import ExperimentError
from .studies import Study

EXAMPLES = (
    "hingston --quick --out quick",
    "hingston --out hingston",
    "hingston --seeds 10 --jobs 8 --out more",
    "readings --out readings",
    "distribution --seeds 100 --out distribution",
    "scaling --jobs 8 --out scaling",
    "methods --ways treestrap,cma --out methods",
    "hexapawn --out hexapawn",
    "tablut --quick --out quick",
    "hex --out hex",
    "resume hex --report",
    "resume hingston",
)
OWN: Mapping[str, tuple[Any, Any]] = {
    hexapawn.NAME: (hexapawn, hexapawn_report),
    torus.NAME: (torus, hex_report),
    tablut.NAME: (tablut, tablut_report),
}
"""Experiments with their own kinds of runs, tests and report, each in two files."""
NAMES = {
    "hingston": "Evolving Players for an Ancient Game",
    "readings": "the same with one reading of its text changed at a time",
    "distribution": "the paper's tables over many seeds, and which reading explains them best",
    "scaling": "populations of 10 to 500 individuals",
    "methods": "other methods for the same network: the same strength in how many CPU seconds",
    hexapawn.NAME: "HexapawnZero: AlphaZero on hexapawn, against the exact solution",
    tablut.NAME: "Tablut Game AI with Temporal Difference Learning",
    torus.NAME: "Evolving a Hex-Playing Agent",
    "resume": "continue what is in a folder",
}


def main(argv: list[str]) -> int:
    """Run or resume an experiment; 0 when its report is written, 1 if interrupted, 2 for anything impossible."""
    parser = arguments.parser(
        "experiments",
        "Repeats published experiments, with error bars; interrupted ones can be continued.",
        EXAMPLES,
    )
    parser.add_argument(
        "name",
        choices=NAMES,
        metavar="NAME",
        help="; ".join(f"{name}: {text}" for name, text in NAMES.items()),
    )
    parser.add_argument("folder", nargs="?", metavar="DIR", help="with resume: the folder to continue")
    arguments.add_out(parser, "DIR", "the experiment's folder (its name); an existing one is continued")
    parser.add_argument(
        "--seeds",
        type=arguments.positive,
        metavar="K",
        help="runs of each kind (5; hex: 6; hexapawn, tablut: 10; distribution: 100, all readings but one "
        "30)",
    )
    parser.add_argument(
        "--others",
        type=arguments.positive,
        metavar="K",
        help="readings, distribution, scaling, methods: runs of each variation but the first (distribution: 30)",
    )
    parser.add_argument(
        "--ways",
        type=lambda text: text.split(","),
        metavar="W,W",
        help="readings, distribution, scaling, methods: only these variations, beside the first",
    )
    parser.add_argument(
        "--merge",
        action="append",
        metavar="FILE",
        help="distribution: the tests.csv of another folder, or another machine's, whose runs are not repeated; "
        "repeatable",
    )
    parser.add_argument(
        "--quick", action="store_true", help="a small version of the whole experiment, in about a minute"
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="with resume: only report on the finished runs (hex, readings, distribution, scaling, methods)",
    )
    parser.add_argument("--jobs", type=arguments.positive, metavar="J", help="processes (as many as cores)")
    arguments.add_backend(parser)
    arguments.add_png(parser)
    arguments.add_plain(parser)
    given = parser.parse_args(argv)
    if (given.name == "resume") != (given.folder is not None):
        parser.error("expected: resume DIR, or the name of an experiment [--out DIR]")
    decided = ("quick", "seeds", "others", "ways", "out", "merge")
    if given.name == "resume" and (flag := next((flag for flag in decided if getattr(given, flag)), None)):
        parser.error(f"resume: expected no --{flag}: the folder's plan decides what is run")
    if given.report and given.name != "resume":
        parser.error("--report: expected with resume DIR")
    if (given.others or given.ways) and given.name not in studies.STUDIES:
        parser.error(f"--{'others' if given.others else 'ways'}: expected with {', '.join(studies.STUDIES)}")
    if given.merge and given.name != studies.DISTRIBUTION.name:
        parser.error(f"--merge: expected with {studies.DISTRIBUTION.name}")
    for flag in ("seeds", "others"):
        if getattr(given, flag) == 1:
            parser.error(f"--{flag} 1: expected at least 2: one run says nothing about the spread")
    try:
        if given.folder is not None:
            folder = Path(given.folder)
            plan = _read(folder)
            if given.report and isinstance(plan, Study):
                plan = studies.finished(folder, plan)
            elif given.report and not isinstance(plan, torus.Plan):
                parser.error(f"--report: {folder}: expected the folder of the experiment hex, or of a study")
        else:
            plan = _plan(given.name, given.quick)
            if given.seeds:
                plan = replace(plan, seeds=tuple(range(plan.seeds[0], plan.seeds[0] + given.seeds)))
            folder = Path(given.out or (f"{given.name}-quick" if given.quick else given.name))
            if isinstance(plan, Study):
                plan = _part(parser, plan, given.ways, given.others)
                finished = [(path, tests_csv.read(Path(path), plan)) for path in given.merge or ()]
                measuring.prepare(folder, plan)
                for path, tests in finished:
                    _merge(folder, plan, path, tests)
            else:
                measuring.prepare(folder, plan)
        jobs = given.jobs or len(os.sched_getaffinity(0))
        return _conduct(
            folder, plan, jobs, given.plain, png=given.png, runs=not given.report, backend=given.backend
        )
    except ExperimentError as error:
        print(f"hnefi experiments: {error}", file=sys.stderr)
        return code_of(error)
    except Exception as error:
        from ..common.workers import WorkerFailed

        if not isinstance(error, WorkerFailed):
            raise
        print(f"hnefi experiments: {error}", file=sys.stderr)
        return USAGE


def _part(
    parser: argparse.ArgumentParser, study: Study, ways: Sequence[str] | None, others: int | None
) -> Study:
    """A study of some of its variations, and with fewer runs of them."""
    first = next(iter(study.ways))
    if unknown := [way for way in ways or () if way not in study.ways]:
        only = ", which are all that --quick has" if study.quick else ""
        parser.error(f"--ways: {unknown[0][:80]!r}: expected some of {', '.join(study.ways)}{only}")
    kept = {way: how for way, how in study.ways.items() if not ways or way in (first, *ways)}
    if others and others > len(study.seeds):
        parser.error(f"--others {others}: expected at most {len(study.seeds)}, the number of --seeds")
    return replace(study, ways=kept, others=others or study.others)


def _merge(folder: Path, study: Study, path: str, read: measuring.Results) -> None:
    """Add the tests of a file to those of the folder. ExperimentError, before anything is added, if they contradict."""
    log = measuring.log_of(folder)
    there = log.read(study)
    for cell in read:
        if cell in there and tests_csv.counts(there[cell]) != tests_csv.counts(read[cell]):
            raise ExperimentError(
                f"{path}: {cell.key()}: expected the result in {folder}: the two were made by different programs"
            )
    if new := {cell: tally for cell, tally in read.items() if cell not in there}:
        # First the note: tests without one would count as run here.
        tests_csv.note_merged(folder, Path(path), len(new))
        log.append(new)
    print(f"{path}: {counted(len(new), 'test')} added; {folder} had {len(there):,}")


AnyPlan = Plan | Study | torus.Plan | hexapawn.Plan | tablut.Plan


def _plan(name: str, quick: bool) -> AnyPlan:
    if name in OWN:
        own, _ = OWN[name]
        made: AnyPlan = own.QUICK if quick else own.Plan()
        return made
    if name in studies.STUDIES:
        study = studies.STUDIES[name]
        return studies.quick(study) if quick else study
    return hingston.QUICK if quick else Plan()


def _read(folder: Path) -> AnyPlan:
    said = measuring.read_json(folder)
    if said.get("experiment") in OWN:
        own, _ = OWN[str(said["experiment"])]
        read: AnyPlan = measuring.read_plan(folder, own.Plan())
        return read
    return studies.read_study(folder) if "study" in said else measuring.read_plan(folder, Plan())


def _conduct(
    folder: Path, plan: AnyPlan, jobs: int, plain: bool, *, png: bool, runs: bool, backend: str
) -> int:
    """Play everything that is missing, or only measure if `runs` is false, then write the report."""
    own = next((name for name, (module, _) in OWN.items() if isinstance(plan, module.Plan)), "")
    resume = f"hnefi experiments resume {shlex.quote(str(folder))}{'' if runs else ' --report'}"
    live = Live(sys.stdout, plain=plain)

    def words() -> list[str]:
        live.close()
        return ["interrupted: whatever was finished is kept; to continue:", f"  {resume}"]

    with interrupts.caught(words) as caught:
        if not runs:
            code = 0
        elif own:
            code = int(OWN[own][0].evolve(folder, plan, jobs, plain=plain, backend=backend))
        elif isinstance(plan, Study):
            code = studies.evolve(folder, plan, jobs, plain=plain, backend=backend)
        else:
            assert isinstance(plan, Plan)
            code = hingston.evolve(folder, plan, jobs, plain=plain, backend=backend)
        if code:
            return code
        results: Any
        if own:
            results = OWN[own][0].measure(folder, plan, jobs, _Progress(live), backend)
        else:
            assert isinstance(plan, Plan | Study)
            whole = plan if runs else studies.read_study(folder)
            results = measuring.measure(folder, plan, jobs, _Progress(live), backend, whole)
    if caught.ended:
        return INTERRUPTED
    live.close()
    name = plan.name if isinstance(plan, Study) else own or "hingston"
    size = "--quick" if plan.quick else f"--seeds {len(plan.seeds)}"
    if isinstance(plan, Study):
        usual = _plan(name, plan.quick)
        assert isinstance(usual, Study)
        if plan.others != usual.others:
            size += f" --others {plan.others}"
        size += "".join(f" --merge {shlex.quote(one.file)}" for one in tests_csv.merged(folder))
        if plan.ways != usual.ways:
            size += f" --ways {','.join(plan.ways)}"
    command = f"hnefi experiments {name} {size} --out {folder.name}"
    if not runs:
        # What is finished is not what the plan says.
        command = f"hnefi experiments resume {folder.name} --report"
    writer: Any
    if own:
        _, writer = OWN[own]
    elif isinstance(plan, Study):
        writer = distribution_report if plan.name == studies.DISTRIBUTION.name else studies_report
    else:
        writer = hingston_report
    drawn = writer.draw(folder, plan, results, png=png)
    print(f"report {writer.write(folder, plan, results, drawn, command)}")
    return 0


class _Progress:
    """Progress of the tests: a live line on a terminal, else a line now and then."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._began = time.monotonic()
        self._first: int | None = None
        self._shown = 0.0

    def __call__(self, done: int, whole: int) -> None:
        now = time.monotonic()
        if self._first is None:
            self._began, self._first = now, done
        line = f"tests {100 * done // whole} %"
        if done > self._first:
            line += f" · ETA {duration((whole - done) * (now - self._began) / (done - self._first))}"
        if self._live.terminal:
            self._live.show(lambda: [line])
        elif now - self._shown >= PAUSE or done == whole:
            self._live.report([line])
            self._shown = now
