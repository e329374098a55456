"""A game that was played: where it began, every ply with what is known about it, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass

from .sides import Outcome


@dataclass(frozen=True, slots=True)
class Ply:
    """One ply of a recorded game; what is not known is None or empty.

    `captures` are squares sorted by file, then rank (never the king's); `clock` is the mover's time left after the
    ply and `time` what the ply took, both in milliseconds; `cp` (centipawns) or `mate` (the winner's own moves,
    negative when losing) is the mover's score, not both; `comment` is free text.
    """

    move: int
    captures: tuple[int, ...] | None = None
    clock: int | None = None
    time: int | None = None
    cp: int | None = None
    mate: int | None = None
    depth: int | None = None
    comment: str = ""

    def __post_init__(self) -> None:
        if self.cp is not None and self.mate is not None:
            raise ValueError(f"cp {self.cp} and mate {self.mate}: expected one score")


@dataclass(frozen=True, slots=True)
class GameRecord:
    """One game from its start to its end, or to where it was left.

    `start` is a FEN, None for the variant's start position; `rules_hash` tells whether a variant still is what it
    was; `players` are the attackers' and the defenders' names; `outcome` is None for an unfinished game; `tags` are
    further (name, text) pairs in the order in which they were given.
    """

    variant: str
    start: str | None = None
    plies: tuple[Ply, ...] = ()
    outcome: Outcome | None = None
    players: tuple[str, str] = ("", "")
    rules_hash: str | None = None
    tags: tuple[tuple[str, str], ...] = ()

    @property
    def moves(self) -> tuple[int, ...]:
        """The moves alone."""
        return tuple(ply.move for ply in self.plies)

    def tag(self, name: str) -> str | None:
        """The text of the first tag called `name`, None if there is none."""
        return next((text for key, text in self.tags if key == name), None)
