"""What a tally needs of a game, and which games are images of each other: one that repeats another counts once."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from itertools import product

from hnefi.engine.squares import FILES

from ..common.pairs import Ending, Played
from .values import GameResult

SQUARE = re.compile(r"([a-s])([1-9][0-9]?)")


def played(result: GameResult) -> Played | None:
    """What a tally needs of a result; None if it is no result (interrupted, failed to start)."""
    if result.winner is None:
        return None
    return Played(
        result.task.pair,
        result.task.game,
        Ending(result.task.variant, *result.names, result.winner),
        result.reason,
        result.captured,
        len(result.plies),
        image(result),
    )


def image(result: GameResult) -> str:
    """A word that is equal for games that are images of each other: all moves turned alike, and the same end.

    The symmetries are those of the board. A variant whose rules do not keep one of them does not give a game and its
    image the same end. Games from a given position must begin in the very same one.
    """
    moves = " ".join((*result.task.opening.moves, *(ply.move for ply in result.plies)))
    ranks = result.final.partition(" ")[0].split("/")
    files = sum(int(run) if run.isdigit() else 1 for run in re.findall(r"[0-9]{1,2}|[a-z]", ranks[0].lower()))
    squares = [(FILES.index(file), int(rank) - 1) for file, rank in SQUARE.findall(moves)]
    turned = min([turn[at] for at in squares] for turn in _turns(files, len(ranks)))
    task = result.task
    said = (task.variant, task.opening.start, result.winner, result.reason, SQUARE.sub("*", moves), turned)
    return sha256(repr(said).encode()).hexdigest()[:32]


@lru_cache(maxsize=32)
def _turns(files: int, ranks: int) -> list[dict[tuple[int, int], tuple[int, int]]]:
    """Where squares go under each symmetry of a board: mirrored files (1), mirrored ranks (2), diagonal (4)."""
    turns: list[dict[tuple[int, int], tuple[int, int]]] = []
    for turn in range(8 if files == ranks else 4):
        to = {}
        for file, rank in product(range(len(FILES)), range(99)):
            at = files - 1 - file if turn & 1 else file, ranks - 1 - rank if turn & 2 else rank
            to[file, rank] = at[::-1] if turn & 4 else at
        turns.append(to)
    return turns
