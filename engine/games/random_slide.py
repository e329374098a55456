"""The sliding random player in games other than tafl, where it plays uniformly random moves (kernels)."""

from __future__ import annotations

from ..compile.jit import entry, kernel
from .interface import bind_otherwise, random_move, undo


@entry
def random_slide_otherwise(s):
    """A uniformly random legal move."""
    return random_move(s)


@kernel
def pass_otherwise(s):
    """Do nothing: there are no passes."""


@kernel
def take_back_otherwise(s):
    """Take the last move back."""
    undo(s)


bind_otherwise(random_slide=random_slide_otherwise, pass_turn=pass_otherwise, take_back=take_back_otherwise)
