"""A game as a tree: the line that was played, other lines that were tried, and the place that is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.records.record import PLY_LIMIT, next_place
from hnefi.engine.squares import is_same_piece

from .positions import Facts, move_number
from .values import End, Entry, SideLetter

_NOTE = re.compile(r"\[%\w+(?: [^\]]*)?\] ?")
"""What programs note in comments for each other, `[%nodes 24]`."""


@dataclass(eq=False, slots=True)
class Node:
    """One place of the tree: the ply that led here (empty at the root) and what is known about it.

    `clock` is what the mover had left after the ply and `time` what it took, in milliseconds; `cp` or `mate` is the
    mover's score. `facts` are what the rules say about the place, once they have been asked.
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
    """An end that no rule made: resignation, time, agreement."""

    @property
    def remark(self) -> str:
        """The comment as far as it is for people."""
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
        """The end of the main line that goes on from here."""
        node = self
        while node.children:
            node = node.children[0]
        return node


class Game:
    """A tree of plies over one variant; `at` is the place that is looked at.

    The first child of a node continues its main line, the others are variations.
    """

    def __init__(self, variant: AnyVariant, start: str | None, facts: Facts) -> None:
        self.variant = variant
        self.start = start
        self.comment = ""
        self.tags: tuple[tuple[str, str], ...] = ()
        self.root = Node(side=facts.side, facts=facts)
        self.at = self.root
        self.size = 1

    @property
    def moves(self) -> list[str]:
        """The plies from the start to the place looked at."""
        return [node.text for node in self.at.line()]

    def play(self, text: str, side: SideLetter, captures: tuple[str, ...] | None, *, main: bool) -> Node:
        """Go on with a ply of `side`, new or known; with `main` it becomes the main line. ValueError when full."""
        node = next((child for child in self.at.children if child.text == text), None)
        if node is None:
            if self.size >= PLY_LIMIT:
                raise ValueError(f"this game has {PLY_LIMIT} plies: a record holds no more")
            node = Node(text, side, self.at, self.at.ply + 1, captures)
            self.at.children.append(node)
            self.size += 1
        if main:
            self.promote(node)
        self.at = node
        return node

    def promote(self, node: Node) -> None:
        """Make `node` the main line at its place."""
        if node.parent is not None:
            node.parent.children.remove(node)
            node.parent.children.insert(0, node)

    def remove(self, node: Node) -> None:
        """Take away `node` and all that follows it; whoever looks at it stands before it then."""
        assert node.parent is not None
        if node in self.at.line():
            self.at = node.parent
        node.parent.children.remove(node)
        self.size -= sum(1 for _ in below(node))

    def shown(self) -> list[Node]:
        """The line that is shown: from the start through the place looked at, and its main line on from there."""
        nodes = self.at.line()
        node = self.at
        while node.children:
            node = node.children[0]
            nodes.append(node)
        return nodes

    def entries(self) -> tuple[Entry, ...]:
        """The line that is shown, as values."""
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
        """What both sides had left at the place looked at, as far as it was taken down."""
        left: dict[str, int] = {}
        for node in self.at.line():
            if node.clock is not None:
                left[node.side] = node.clock
        return left.get("a"), left.get("d")


def next_side(parent: Node, move: int) -> SideLetter:
    """Who plays `move` behind `parent`: the other side, unless the piece that has just moved goes on (berserk)."""
    if parent.parent is None:
        return parent.side
    goes_on = is_same_piece(move_number(parent.text), move)
    return parent.side if goes_on else "d" if parent.side == "a" else "a"


def below(node: Node) -> Iterator[Node]:
    """The node and everything that follows it."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack += node.children
