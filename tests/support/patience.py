"""How long the tests wait for what should come at once."""

from __future__ import annotations

PROMPTLY = 60.0
"""Seconds within which something that waits for nothing has happened, on however busy a machine. It tells "at once"
from "at the next time-out, or never", for which tests choose time-outs far longer than this; how fast things are,
benchmarks say."""
