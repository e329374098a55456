"""`hnefi` with games without a board, for tests that kill it: python evolve_driver.py evolve es ..."""

from __future__ import annotations

import sys

import fake_contest

from hnefi.engine.selfplay import match as contest
from hnefi.tools import cli

if __name__ == "__main__":
    contest.Table = fake_contest.SlowTable
    sys.exit(cli.main())
