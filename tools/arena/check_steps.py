"""All steps of a check, in the order in which they are walked."""

from __future__ import annotations

from . import check_begin, check_end, check_search

STEPS = (*check_begin.STEPS, *check_search.STEPS, *check_end.STEPS)
