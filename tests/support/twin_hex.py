"""Hex a second time: slow, obvious, and sharing nothing with the engine but the letters of squares.

Cells are (row, column) with rows counted from the top, stones a dictionary, the winner found by walking from edge to
edge over the whole board after every move.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NEIGHBOURS = ((-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0))
Cell = tuple[int, int]


@dataclass(frozen=True)
class TwinHex:
    """A position: who stands where, `a` (x, top to bottom) or `d` (o, left to right) to move, and who has won."""

    size: int
    swap: bool = False
    stones: dict[Cell, str] = field(default_factory=dict)
    side: str = "a"
    plies: int = 0

    @property
    def winner(self) -> str | None:
        for side, stone in (("a", "x"), ("d", "o")):
            if self._joined(stone):
                return side
        return None

    def _joined(self, stone: str) -> bool:
        along = 0 if stone == "x" else 1
        reached = {cell for cell, standing in self.stones.items() if standing == stone and cell[along] == 0}
        waiting = list(reached)
        while waiting:
            row, column = waiting.pop()
            if (row, column)[along] == self.size - 1:
                return True
            for down, right in NEIGHBOURS:
                cell = (row + down, column + right)
                if self.stones.get(cell) == stone and cell not in reached:
                    reached.add(cell)
                    waiting.append(cell)
        return False

    @property
    def may_swap(self) -> bool:
        return self.swap and self.plies == 1

    def moves(self) -> list[str]:
        """Names of all legal moves, by column, then rank."""
        if self.winner is not None:
            return []
        cells = [(column, row) for column in range(self.size) for row in reversed(range(self.size))]
        names = [self.name((row, column)) for column, row in cells if (row, column) not in self.stones]
        return ["swap", *names] if self.may_swap else names

    def play(self, move: str) -> TwinHex:
        assert move in self.moves(), move
        if move == "swap":
            ((row, column),) = self.stones
            stones = {(column, row): "o"}
        else:
            stones = self.stones | {self.cell(move): "x" if self.side == "a" else "o"}
        return TwinHex(self.size, self.swap, stones, "d" if self.side == "a" else "a", self.plies + 1)

    def name(self, cell: Cell) -> str:
        row, column = cell
        return f"{'abcdefghijklmnopqrs'[column]}{self.size - row}"

    def cell(self, name: str) -> Cell:
        return self.size - int(name[1:]), "abcdefghijklmnopqrs".index(name[0])

    def perft(self, depth: int) -> int:
        if depth == 0:
            return 1
        return sum(self.play(move).perft(depth - 1) for move in self.moves())

    def fen(self) -> str:
        rows = []
        for row in range(self.size):
            text = "".join(self.stones.get((row, column), ".") for column in range(self.size))
            for empty in range(self.size, 0, -1):
                text = text.replace("." * empty, str(empty))
            rows.append(text)
        return f"{'/'.join(rows)} {self.side} {self.plies} {self.plies // 2 + 1}"
