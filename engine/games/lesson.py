"""A first lesson in a game: its rules in sentences, each with a position in which one can try it.

Positions are found from the rules, so that every variant has its lesson; how is the game's own affair, in its module
`lesson`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from .base_variant import AnyVariant

Goal = Literal["any", "take", "go", "win"]


@dataclass(frozen=True, slots=True)
class Step:
    """One page of a lesson. `fen` is the position, `task` what to do there ("" for nothing), `best` a move for it.

    `goal` says when it is done: `any` move; `take` all of `squares`; `go` to one of them; `win` the game.
    """

    title: str
    text: tuple[str, ...]
    fen: str
    task: str = ""
    goal: Goal = "any"
    squares: tuple[str, ...] = ()
    best: str = ""


def lesson(variant: AnyVariant) -> list[Step]:
    """The steps of the lesson, the first of them about the board and the aim."""
    steps: list[Step] = import_module(f".{variant.game}.lesson", __package__).lesson(variant)
    return steps


def from_middle(places: range) -> list[int]:
    """The places in a line, the middle first: where a pattern is seen best."""
    return sorted(places, key=lambda place: abs(2 * place - places.start - places.stop + 1))
