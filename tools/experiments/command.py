"""`hnefi experiments`: what papers did, run anew with error bars; started once, gone on with at any time."""

from __future__ import annotations

import os
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path

from .. import arguments
from ..arena.live import Live
from ..evolve.progress import PAUSE, duration
from . import hingston, hingston_report
from .hingston import ExperimentError, Plan

INTERRUPTED, USAGE = 1, 2
EXAMPLES = (
    "hingston --quick --out quick",
    "hingston --out hingston",
    "hingston --seeds 10 --jobs 8 --out more",
    "resume hingston",
)


def main(argv: list[str]) -> int:
    """Run or resume an experiment; 0 when its report is written, 1 when interrupted, 2 for what cannot be done."""
    parser = arguments.parser("experiments", __doc__.splitlines()[0].partition(": ")[2], EXAMPLES)
    parser.add_argument(
        "name", choices=("hingston", "resume"), help="hingston: Evolving Players for an Ancient Game"
    )
    parser.add_argument("folder", nargs="?", metavar="DIR", help="with resume: the folder to go on with")
    parser.add_argument(
        "--out", metavar="DIR", help="the experiment's folder (its name); one that is there goes on"
    )
    parser.add_argument("--seeds", type=arguments.positive, metavar="K", help="evolutions of each kind (5)")
    parser.add_argument(
        "--quick", action="store_true", help="a small version of the whole chain, in about a minute"
    )
    parser.add_argument("--jobs", type=arguments.positive, metavar="J", help="processes (as many as cores)")
    parser.add_argument("--plain", action="store_true", help="plain lines, also on a terminal")
    given = parser.parse_args(argv)
    if (given.name == "resume") != (given.folder is not None):
        parser.error("expected: resume DIR, or hingston [--out DIR]")
    if given.name == "resume" and (given.quick or given.seeds or given.out):
        parser.error("resume: expected no --quick, --seeds or --out: the folder says what is run")
    if given.seeds == 1:
        parser.error("--seeds 1: expected at least 2, one run says nothing of the spread")
    try:
        if given.folder is not None:
            folder, plan = Path(given.folder), hingston.read_plan(Path(given.folder))
        else:
            plan = hingston.QUICK if given.quick else Plan()
            if given.seeds:
                plan = replace(plan, seeds=tuple(range(plan.seeds[0], plan.seeds[0] + given.seeds)))
            folder = Path(given.out or ("hingston-quick" if given.quick else "hingston"))
            hingston.prepare(folder, plan)
        return _conduct(folder, plan, given.jobs or len(os.sched_getaffinity(0)), given.plain)
    except ExperimentError as error:
        print(f"hnefi experiments: {error}", file=sys.stderr)
        return USAGE


def _conduct(folder: Path, plan: Plan, jobs: int, plain: bool) -> int:
    """Everything that is missing, then the report."""
    resume = f"hnefi experiments resume {shlex.quote(str(folder))}"
    live = Live(sys.stdout, plain=plain)
    try:
        if not hingston.evolve(folder, plan, jobs, plain=plain):
            return _interrupted(resume)
        results = hingston.measure(folder, plan, jobs, _Progress(live))
    except KeyboardInterrupt:
        live.close()
        return _interrupted(resume)
    live.close()
    drawn = hingston_report.draw(folder, plan, results)
    size = "--quick" if plan.quick else f"--seeds {len(plan.seeds)}"
    command = f"hnefi experiments hingston {size} --out {folder.name}"
    print(f"report {hingston_report.write(folder, plan, results, drawn, command)}")
    if not drawn:
        print(
            "no figures: they need matplotlib: pip install 'hnefi[plots]', then the same command draws them"
        )
    return 0


def _interrupted(resume: str) -> int:
    print("interrupted: whatever was finished is kept; to go on:", file=sys.stderr)
    print(f"  {resume}", file=sys.stderr)
    return INTERRUPTED


class _Progress:
    """How the tests go: a live line on a terminal, else a line now and then."""

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
