"""Runs tests many times beside busy processors and counts: `make steady FILES=… TIMES=50`.

A test that waits for time, order or a quiet machine fails here sooner or later. By default those that wait for a
process or a broker are chosen; `MARKS=""` takes all. The exit status is 1 if any test failed in any round.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field

import pytest

SHOWN = 12
"""The slowest tests that the table shows beside all that failed."""


@dataclass
class Counts:
    """What became of one test over all rounds."""

    passed: int = 0
    skipped: int = 0
    failed: int = 0
    seconds: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        spread = f"{min(self.seconds):.2f} to {max(self.seconds):.2f} s" if self.seconds else ""
        return f"{self.passed:4} passed {self.failed:3} failed {self.skipped:3} skipped  {spread}"


class Table:
    """Collects what pytest reports, the rounds of a test as one."""

    def __init__(self) -> None:
        self.tests: defaultdict[str, Counts] = defaultdict(Counts)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        counts = self.tests[without_round(report.nodeid)]
        if report.failed:
            counts.failed += 1
        elif report.skipped:
            counts.skipped += 1
        elif report.when == "call":
            counts.passed += 1
        if report.when == "call":
            counts.seconds.append(report.duration)

    def show(self) -> bool:
        """Print the table; whether nothing failed."""
        failed = sorted(name for name, counts in self.tests.items() if counts.failed)
        slowest = sorted(self.tests, key=lambda name: -max(self.tests[name].seconds, default=0.0))
        runs = sum(counts.passed + counts.failed for counts in self.tests.values())
        print(f"\n{len(self.tests)} tests, {runs} runs, {len(failed)} tests failed at least once")
        for name in [*failed, *(name for name in slowest[:SHOWN] if name not in failed)]:
            print(f"{self.tests[name]}  {name}")
        return not failed and bool(runs)


def without_round(nodeid: str) -> str:
    """`test_a[round-3-x]` is `test_a[x]`."""
    nodeid = re.sub(r"\[round-\d+(?:-|(\]))", lambda found: "" if found[1] else "[", nodeid)
    return re.sub(r"-round-\d+(?=[-\]])", "", nodeid)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+")
    parser.add_argument("--times", type=int, default=50, help="rounds (50)")
    parser.add_argument("--load", type=int, default=os.cpu_count() or 2, help="busy processes beside them")
    parser.add_argument(
        "--marks", default="process or broker", help="which tests, as `pytest -m` understands it"
    )
    options, more = parser.parse_known_args(words)
    os.environ["HNEFI_TIMES"] = str(options.times)
    marks = ["-m", options.marks] if options.marks else []
    table = Table()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.load)]
    try:
        status = pytest.main(
            ["-q", "--no-header", "-p", "no:cacheprovider", *marks, *options.files, *more], [table]
        )
    finally:
        for process in busy:
            process.kill()
            process.wait()
    return 0 if table.show() and status == pytest.ExitCode.OK else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
