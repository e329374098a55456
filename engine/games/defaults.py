"""Kernels for games without repetition, ply limits or passes, and without a threat detector of their own.

`bind(NAME, **DEFAULTS, generate=…, …)` binds them for such a game.
"""

from __future__ import annotations

from ..compile.jit import inline
from .interface import NO_THREAT


@inline
def adjudicate(s, root):
    """Do nothing: no position repeats, and there are no limits."""
    return 0


@inline
def limit_salt(s):
    """0: there are no limits."""
    return 0


@inline
def staged_generation(s):
    """0: all moves are generated at once."""
    return 0


@inline
def is_legal(s, move):
    """Not asked."""
    return False


@inline
def winning_move(s, top):
    """0: not looked for."""
    return 0


@inline
def threat_level(s, top):
    """0: not looked for."""
    return NO_THREAT


@inline
def make_null(s):
    """0: no null moves."""
    return 0


@inline
def unmake_null(s):
    """Do nothing: there are no null moves."""


DEFAULTS = {
    "adjudicate": adjudicate,
    "limit_salt": limit_salt,
    "staged_generation": staged_generation,
    "is_legal": is_legal,
    "winning_move": winning_move,
    "threat_level": threat_level,
    "make_null": make_null,
    "unmake_null": unmake_null,
}
"""The kernels by the names of their verbs."""
