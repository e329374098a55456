"""A game as a tree of positions: the main line, variations, and the position on the board."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from hnefi.engine import squares
from hnefi.engine.catalogue import GAMES
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.moves_text import MoveTextError, parse_move_word
from hnefi.engine.records.record import PLY_LIMIT, next_place
from hnefi.engine.squares import is_same_piece

from .values import SWAP, Board, End, Entry, Move, SideLetter, other

# Positions


_CELLS: Final = re.compile(r"\d+|[A-Za-z]")
_TWO_SQUARES: Final = re.compile(r"([a-z]\d{1,3})-?([a-z]\d{1,3})(?:[x/].*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class PositionSpec:
    """A position in the form sent to engines: the variant, the start (None for the variant's own), and the moves from
    there."""

    variant: AnyVariant
    start: str | None = None
    moves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules say about a position. `result` and `reason` are None until the game is over; `legal` is empty if
    it is over, or if the rules have not been asked (`asked`). `taken` counts the men captured by each side, attackers
    first."""

    fen: str
    rows: tuple[str, ...]
    side: SideLetter
    legal: tuple[Move, ...] = ()
    result: str | None = None
    reason: str | None = None
    taken: tuple[int, int] = (0, 0)
    asked: bool = False


def facts_of(fen: str) -> Facts:
    """The facts that follow from a FEN alone."""
    fields = fen.split()
    rows = tuple(
        "".join("." * int(cell) if cell.isdigit() else cell for cell in _CELLS.findall(row))
        for row in fields[0].split("/")
    )
    side: SideLetter = "d" if len(fields) > 1 and fields[1] == "d" else "a"
    return Facts(fen, rows, side)


def board_of(
    variant: AnyVariant,
    special: Mapping[str, str],
    facts: Facts,
    last: str = "",
    taken: tuple[str, ...] = (),
) -> Board:
    """The board after the ply `last`, which captured the men on `taken`."""
    ours, theirs = GAMES[variant.game].letters
    cells = "".join(facts.rows)
    move = read_move(last, ()) if last else None
    touched = () if move is None or not move.source else tuple(dict.fromkeys((move.source, move.target)))
    return Board(
        files=variant.files,
        ranks=variant.ranks,
        rows=facts.rows,
        special=special,
        last=touched,
        taken=taken,
        side=facts.side,
        men=(sum(cells.count(letter) for letter in ours), sum(cells.count(letter) for letter in theirs)),
        captures=facts.taken,
    )


def read_move(text: str, captures: tuple[str, ...]) -> Move:
    """Parse a move in the engine's notation."""
    if text == SWAP:
        return Move(SWAP, "", "", captures)
    number = move_number(text)
    return Move(text, squares.name(squares.origin(number)), squares.name(squares.target(number)), captures)


def move_number(text: str) -> int:
    """The number of a move in records; MoveTextError if the text is not a bare move."""
    return parse_move_word(text, squares.MAX_SIZE)[0]


def read_legal(words: list[str]) -> tuple[Move, ...]:
    """Parse the moves in an answer to `moves verbose`, each followed by its captured squares after `x`."""
    moves = []
    for word in words:
        bare, *taken = word.split("x")
        moves.append(read_move(bare, tuple(taken)))
    return tuple(moves)


def owner(game: str, letter: str) -> SideLetter:
    """The side to which a man belongs, by its letter in FENs."""
    return "a" if letter in GAMES[game].letters[0] else "d"


def typed_move(line: str) -> str | None:
    """A typed move (`d1d3`, `D1-D3`, `d1 d3`, `f6`, `swap`) in the engine's notation; None if it is not a move."""
    word = "".join(line.split()).lower()
    named = _TWO_SQUARES.fullmatch(word)
    if named is not None:
        return named[1] + named[2]
    try:
        return squares.move_name(parse_move_word(word, squares.MAX_SIZE)[0])
    except MoveTextError:
        return None


# The game


_NOTE = re.compile(r"\[%\w+(?: [^\]]*)?\] ?")
"""Notes that programs leave for each other in comments, such as `[%nodes 24]`."""


@dataclass(eq=False, slots=True)
class Node:
    """One node of the tree: the ply that led here (empty at the root) and what is known about it.

    `clock` is the time that the mover had left after the ply and `time` the time that it took, in milliseconds; `cp` or
    `mate` is the mover's score. `facts` are what the rules say about the position, once they have been asked.
    """

    text: str = ""
    side: SideLetter = "a"
    parent: Node | None = None
    ply: int = 0
    captures: tuple[str, ...] | None = None
    comment: str = ""
    clock: int | None = None
    time: int | None = None
    cp: int | None = None
    mate: int | None = None
    depth: int | None = None
    children: list[Node] = field(default_factory=list)
    facts: Facts | None = None
    end: End | None = None
    """An end outside the rules of the board: resignation, time, agreement."""

    @property
    def remark(self) -> str:
        """The part of the comment that is for people."""
        return _NOTE.sub("", self.comment).strip()

    def line(self) -> list[Node]:
        """The nodes from the first ply to this one."""
        nodes = []
        node = self
        while node.parent is not None:
            nodes.append(node)
            node = node.parent
        nodes.reverse()
        return nodes

    def tip(self) -> Node:
        """The end of the main line from here."""
        node = self
        while node.children:
            node = node.children[0]
        return node


class Game:
    """A tree of plies over one variant; `at` is the node on display.

    The first child of a node continues its main line, the others are variations.
    """

    def __init__(self, variant: AnyVariant, start: str | None = None, facts: Facts | None = None) -> None:
        """Without `facts`, those of the start follow from its FEN alone."""
        facts = facts or facts_of(start or variant.startpos)
        self.variant = variant
        self.start = start
        self.comment = ""
        self.tags: tuple[tuple[str, str], ...] = ()
        self.root = Node(side=facts.side, facts=facts)
        self.at = self.root
        self.size = 1

    @property
    def moves(self) -> list[str]:
        """The plies from the start to the node on display."""
        return [node.text for node in self.at.line()]

    @property
    def position(self) -> PositionSpec:
        """The position on display."""
        return self.position_of(self.at)

    def position_of(self, node: Node) -> PositionSpec:
        """The position at a node."""
        return PositionSpec(self.variant, self.start, tuple(ply.text for ply in node.line()))

    def tips(self) -> list[Node]:
        """The last nodes of all lines."""
        return [node for node in below(self.root) if not node.children]

    def play(self, text: str, side: SideLetter, captures: tuple[str, ...] | None, *, main: bool) -> Node:
        """Play a new or known ply of `side`; with `main` it becomes the main line. ValueError if the game is full."""
        node = next((child for child in self.at.children if child.text == text), None)
        if node is None:
            if self.size >= PLY_LIMIT:
                raise ValueError(f"this game has {PLY_LIMIT} plies, the most that a record can hold")
            node = Node(text, side, self.at, self.at.ply + 1, captures)
            self.at.children.append(node)
            self.size += 1
        if main:
            self.promote(node)
        self.at = node
        return node

    def promote(self, node: Node) -> None:
        """Make `node` the main line among its siblings."""
        if node.parent is not None:
            node.parent.children.remove(node)
            node.parent.children.insert(0, node)

    def remove(self, node: Node) -> None:
        """Remove `node` and everything after it; if the shown position was there, show the one before."""
        assert node.parent is not None
        if node in self.at.line():
            self.at = node.parent
        node.parent.children.remove(node)
        self.size -= sum(1 for _ in below(node))

    def shown(self) -> list[Node]:
        """The line on display: from the start through the node on display, then its main line."""
        nodes = self.at.line()
        node = self.at
        while node.children:
            node = node.children[0]
            nodes.append(node)
        return nodes

    def entries(self) -> tuple[Entry, ...]:
        """The line on display, as values."""
        place, previous = (1, 0, 0), 0
        entries = []
        for node in self.shown():
            assert node.parent is not None
            move = move_number(node.text)
            if previous:
                place = next_place(place, previous, move)
            previous = move
            entries.append(
                Entry(
                    node.ply,
                    place[0],
                    node.side,
                    node.text,
                    node.captures or (),
                    node.remark,
                    node is self.at,
                    len(node.parent.children) - 1,
                )
            )
        return tuple(entries)

    def clocks(self) -> tuple[int | None, int | None]:
        """The time both sides had left at the node on display, if recorded."""
        left: dict[str, int] = {}
        for node in self.at.line():
            if node.clock is not None:
                left[node.side] = node.clock
        return left.get("a"), left.get("d")


def next_side(parent: Node, move: int) -> SideLetter:
    """The side that plays `move` after `parent`: the other one, unless one piece moves twice (berserk)."""
    if parent.parent is None:
        return parent.side
    goes_on = is_same_piece(move_number(parent.text), move)
    return parent.side if goes_on else other(parent.side)


def below(node: Node) -> Iterator[Node]:
    """The node and all its descendants."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack += node.children
