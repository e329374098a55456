"""Kernels for games without repetition, limits of plies and passes, whose wins only the evaluator foresees.

`bind(NAME, **DEFAULTS, generate=…, …)` gives them to such a game.
"""

from __future__ import annotations

from ..compile.jit import inline
from .interface import NO_THREAT


@inline
def adjudicate(s, root):
    """Nothing: no position comes again, and nothing is limited."""
    return 0


@inline
def limit_salt(s):
    """Nothing: no limit is ever near."""
    return 0


@inline
def winning_move(s, top):
    """None: not looked for."""
    return 0


@inline
def threat_level(s, top):
    """None: not looked for."""
    return NO_THREAT


@inline
def make_null(s):
    """Refused: a pass would say nothing about the position."""
    return 0


@inline
def unmake_null(s):
    """Nothing to take back."""


DEFAULTS = {
    "adjudicate": adjudicate,
    "limit_salt": limit_salt,
    "winning_move": winning_move,
    "threat_level": threat_level,
    "make_null": make_null,
    "unmake_null": unmake_null,
}
"""The kernels by the names of their verbs."""
