"""A first lesson in hexapawn. Pawns are moved up their files until the rules say that the next move does what a step
promises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ... import squares as board
from ...sides import Reason
from ..lesson import Goal, Step, from_middle
from ..text import format_fen
from .position import Position

if TYPE_CHECKING:
    from .variant import Variant

Cell = tuple[int, int]
Scene = tuple[dict[Cell, str], Cell, Cell]
"""Pawns by file and rank, and white's move."""


def lesson(variant: Variant) -> list[Step]:
    """The steps: how pawns move and take, and the three ways to win. A step that the board has no room for has no
    task: on one file nothing is taken."""
    files, ranks = variant.files, variant.ranks
    return [
        Step(
            "The board and the aim",
            (
                f"{files} white and {files} black pawns face each other. White begins.",
                "You win with a pawn on the far row, when your opponent has no pawn left, or when he has no move.",
                "There are no draws.",
            ),
            variant.startpos,
        ),
        _step(
            variant,
            "How pawns move",
            (
                "A pawn steps one square straight ahead onto an empty square: white upwards, black downwards.",
                "Pawns never move sideways or back, and never two squares.",
            ),
            "Move one of the white pawns.",
            "any",
            ((_home(files, ranks), (file, 0), (file, 1)) for file in from_middle(range(files))),
        ),
        _step(
            variant,
            "How pawns take",
            (
                "A pawn takes diagonally forward: it moves onto the square of an enemy pawn, which leaves the board.",
                "It moves that way only to take, and it never takes straight ahead.",
            ),
            "Take the black pawn on {}.",
            "take",
            _captures(files, ranks),
        ),
        _step(
            variant,
            "The far row",
            ("Whoever reaches the far row with a pawn wins.",),
            "Bring a white pawn to the far row.",
            "win",
            _runs(files, ranks),
            Reason.FAR_ROW,
        ),
        _step(
            variant,
            "No move left",
            ("Pawns that stand face to face block each other. A player who has to move and cannot loses.",),
            "Leave black without a move.",
            "win",
            _blocks(files, ranks),
            Reason.NO_LEGAL_MOVE,
        ),
        _step(
            variant,
            "The last pawn",
            ("A player without pawns has lost.",),
            "Take the last black pawn.",
            "win",
            _last_pawns(files, ranks),
            Reason.ALL_CAPTURED,
        ),
    ]


def _step(
    variant: Variant,
    title: str,
    text: tuple[str, ...],
    task: str,
    goal: Goal,
    scenes: Iterable[Scene],
    reason: Reason | None = None,
) -> Step:
    """The step with the first scene whose move does what it should by the rules; without a task if there is none.

    A move that wins does so for the `reason`; another ends nothing, and takes if it is to take.
    """
    for pawns, origin, target in scenes:
        pieces = {board.square(*cell): pawn for cell, pawn in pawns.items()}
        try:
            before = Position.from_fen(variant, format_fen(pieces, variant.files, variant.ranks, "a", 0, 1))
            if before.outcome is not None:
                continue
            move = board.move(board.square(*origin), board.square(*target))
            after = before.play(move)
        except ValueError:
            continue
        ended = after.outcome
        if (ended and ended.reason) is not reason or (ended and ended.winner is not before.side):
            continue
        squares = tuple(map(board.name, after.last_captures)) if goal == "take" else ()
        if goal != "take" or squares:
            return Step(
                title, text, before.fen(), task.format(*squares), goal, squares, board.move_name(move)
            )
    return Step(title, text, variant.startpos)


def _home(files: int, ranks: int) -> dict[Cell, str]:
    return {(file, rank): pawn for file in range(files) for rank, pawn in ((0, "P"), (ranks - 1, "p"))}


def _captures(files: int, ranks: int) -> Iterator[Scene]:
    """Everybody at home but two pawns that stand corner to corner."""
    for rank in from_middle(range(ranks - 1)):
        for file in from_middle(range(files)):
            for beside in (file + 1, file - 1):
                pawns = _home(files, ranks)
                if pawns.pop((file, 0), None) and pawns.pop((beside, ranks - 1), None):
                    yield (
                        {**pawns, (file, rank): "P", (beside, rank + 1): "p"},
                        (file, rank),
                        (beside, rank + 1),
                    )


def _runs(files: int, ranks: int) -> Iterator[Scene]:
    """Everybody at home but a white pawn before the far row, where the black one of its file is missing."""
    for file in from_middle(range(files)):
        pawns = _home(files, ranks)
        del pawns[file, 0], pawns[file, ranks - 1]
        yield {**pawns, (file, ranks - 2): "P"}, (file, ranks - 2), (file, ranks - 1)


def _blocks(files: int, ranks: int) -> Iterator[Scene]:
    """Pawns face to face on every other file, and on one of these a step away from it."""
    for rank in from_middle(range(1, ranks - 1)):
        for file in from_middle(range(files)):
            others = [other for other in range(file % 2, files, 2) if other != file]
            pawns = {(other, at): pawn for other in others for at, pawn in ((rank, "P"), (rank + 1, "p"))}
            yield {**pawns, (file, rank - 1): "P", (file, rank + 1): "p"}, (file, rank - 1), (file, rank)


def _last_pawns(files: int, ranks: int) -> Iterator[Scene]:
    """White at home but for a pawn that stands corner to corner with the only black one."""
    for pawns, origin, target in _captures(files, ranks):
        yield {cell: pawn for cell, pawn in pawns.items() if pawn == "P" or cell == target}, origin, target
