"""A first lesson in Hex. A chain is laid over the board with a gap; the rules say which move closes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ... import squares as board
from ...sides import Side
from ..lesson import Goal, Step, from_middle
from ..text import format_fen
from .position import Position

if TYPE_CHECKING:
    from .variant import Variant

Cell = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Scene:
    """Stones of x in a chain, stones of o, the cell that matters and who is to move."""

    chain: list[Cell]
    held: list[Cell]
    cell: Cell
    side: Side


def lesson(variant: Variant) -> list[Step]:
    """The steps: placing, joining, blocking, bridges, and the swap where there is one."""
    start, size = variant.startpos, variant.size
    centre = board.name(board.square(size // 2, size // 2))
    steps = [
        Step(
            "The board and the aim",
            (
                "The board is empty at first. The sides take turns placing a stone, which stays where it is.",
                "The first player (x) joins the top edge with the bottom edge, the second (o) left and right.",
                "There are no draws: a full board holds exactly one of the two chains.",
            ),
            start,
        ),
        Step(
            "How stones are placed",
            (
                "A stone goes on any empty cell.",
                "Each cell touches up to six others; stones on cells that touch are joined.",
            ),
            start,
            "Place a stone anywhere.",
            "any",
            (),
            centre,
        ),
        _step(
            variant,
            "How the game is won",
            ("You win as soon as your stones form an unbroken chain between your two edges.",),
            "Join top and bottom.",
            "win",
            _gaps(size, Side.ATTACKERS),
        ),
        _step(
            variant,
            "Blocking",
            (
                "Your opponent wins if you let him close the last gap. To block him for good, join your own edges.",
            ),
            "Place the stone that keeps x from joining top and bottom.",
            "go",
            _gaps(size, Side.DEFENDERS),
        ),
        _step(
            variant,
            "The bridge",
            (
                "Two stones that touch the same two empty cells are a bridge.",
                "They are as good as joined: when your opponent takes one of the cells, you take the other.",
            ),
            "o has stepped into the bridge. Join your stones.",
            "win",
            _bridges(size),
        ),
    ]
    if variant.swap:
        opened = Position.initial(variant).play(Position.initial(variant).parse_move(centre))
        steps.append(
            Step(
                "The swap",
                (
                    "The first stone is worth a lot, so the second player may take it over instead of placing one.",
                    "It is mirrored in the diagonal from the top left, so that it joins his edges now.",
                    "Then the first player continues.",
                ),
                opened.fen(),
                "Take the first stone over: press Swap sides.",
                "go",
                ("swap",),
                "swap",
            )
        )
    return steps


def _step(
    variant: Variant, title: str, text: tuple[str, ...], task: str, goal: Goal, scenes: Iterable[_Scene]
) -> Step:
    """The step with the first scene whose move does what it should by the rules; without a task if there is none."""
    for scene in scenes:
        before = _position(variant, scene)
        if before is None:
            continue
        move = before.parse_move(board.name(board.square(*scene.cell)))
        outcome = before.play(move).outcome
        if goal == "win" and (outcome is None or outcome.winner is not before.side):
            continue
        if goal == "go" and not _only_defence(before, move):
            continue
        squares = (board.move_name(move),) if goal == "go" else ()
        return Step(title, text, before.fen(), task, goal, squares, board.move_name(move))
    return Step(title, text, variant.startpos)


def _only_defence(position: Position, defence: int) -> bool:
    """Whether this move, and no other, keeps the opponent from winning at once."""

    def loses(move: int) -> bool:
        after = position.play(move)
        # The cell that ought to be defended first: it ends most of these walks at once.
        replies = sorted(after.legal_moves(), key=lambda reply: board.target(reply) != board.target(defence))
        return any(after.play(reply).outcome is not None for reply in replies)

    return all(loses(move) == (move != defence) for move in position.legal_moves())


def _gaps(size: int, side: Side) -> Iterator[_Scene]:
    """Columns of x with one cell missing."""
    for file in from_middle(range(size)):
        for gap in from_middle(range(size)):
            yield _Scene([(file, rank) for rank in range(size) if rank != gap], [], (file, gap), side)


def _bridges(size: int) -> Iterator[_Scene]:
    """A column of x that goes on in the next one, with a bridge between, in one of whose two cells is a stone of o."""
    for file in from_middle(range(size - 1)):
        for rank in from_middle(range(1, size - 1)):
            upper = [(file + 1, high) for high in range(rank + 1, size)]
            chain = [*upper, *((file, low) for low in range(rank))]
            yield _Scene(chain, [(file, rank)], (file + 1, rank), Side.ATTACKERS)


def _position(variant: Variant, scene: _Scene) -> Position | None:
    """The scene and as many stones of o as the turn asks for; None where the game is over."""
    size, own = variant.size, {*scene.chain, *scene.held, scene.cell}
    free = [(file, rank) for file in range(size) for rank in range(size) if (file, rank) not in own]
    # A knight's move apart, so that they look like a game and threaten nothing.
    free.sort(key=lambda cell: ((cell[0] + 2 * cell[1]) % 5 != 0, abs(2 * cell[1] - size + 1), cell))
    count = len(scene.chain) - scene.side - len(scene.held)
    if not 0 <= count <= len(free):
        return None
    stones = dict.fromkeys(scene.chain, "x") | dict.fromkeys([*scene.held, *free[:count]], "o")
    pieces = {board.square(*cell): stone for cell, stone in stones.items()}
    try:
        position = Position.from_fen(variant, format_fen(pieces, size, size, scene.side.letter, 0, 1))
    except ValueError:
        return None
    return position if position.outcome is None else None
