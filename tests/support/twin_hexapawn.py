"""A slow, obvious reading of hexapawn: pawns as (row, column) pairs, row 0 on top; nothing shared with the engine."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

Cell = tuple[int, int]
Step = tuple[Cell, Cell]


@dataclass(frozen=True)
class Twin:
    """White (`a`) moves up, towards row 0; black (`d`) moves down."""

    rows: int
    columns: int
    white: frozenset[Cell]
    black: frozenset[Cell]
    white_moves: bool = True

    @classmethod
    def start(cls, rows: int, columns: int) -> Twin:
        white = frozenset((rows - 1, c) for c in range(columns))
        return cls(rows, columns, white, frozenset((0, c) for c in range(columns)))

    def moves(self) -> list[Step]:
        """Every step and capture of the side to move, whether or not the game is over."""
        own, other = (self.white, self.black) if self.white_moves else (self.black, self.white)
        found = []
        for row, column in own:
            ahead = row - 1 if self.white_moves else row + 1
            if not 0 <= ahead < self.rows:
                continue
            if (ahead, column) not in own | other and 0 <= column < self.columns:
                found.append(((row, column), (ahead, column)))
            found += [((row, column), (ahead, c)) for c in (column - 1, column + 1) if (ahead, c) in other]
        return found

    def play(self, step: Step) -> Twin:
        origin, target = step
        if self.white_moves:
            white, black = self.white - {origin} | {target}, self.black - {target}
        else:
            white, black = self.white - {target}, self.black - {origin} | {target}
        return Twin(self.rows, self.columns, white, black, not self.white_moves)

    def decided(self) -> tuple[str, str] | None:
        """The winner and why, as far as pawns on the board decide: a side may still be blocked."""
        if any(row == 0 for row, _ in self.white):
            return "a", "far_row"
        if any(row == self.rows - 1 for row, _ in self.black):
            return "d", "far_row"
        if not self.black:
            return "a", "all_captured"
        if not self.white:
            return "d", "all_captured"
        return None

    def outcome(self) -> tuple[str, str] | None:
        """The winner and the first reason that holds."""
        if self.decided() is None and not self.moves():
            return "d" if self.white_moves else "a", "no_legal_move"
        return self.decided()

    def children(self) -> list[Twin]:
        return [] if self.outcome() else [self.play(step) for step in self.moves()]

    def fen(self) -> str:
        """The rows and the side to move, as a FEN begins."""
        rows = []
        for row in range(self.rows):
            text = "".join(
                "P" if (row, c) in self.white else "p" if (row, c) in self.black else "."
                for c in range(self.columns)
            )
            for run in range(self.columns, 0, -1):
                text = text.replace("." * run, str(run))
            rows.append(text)
        return "/".join(rows) + (" a" if self.white_moves else " d")

    def name(self, step: Step) -> str:
        """A move as the protocol writes it."""
        return "".join("abcdefghijklmnopqrs"[column] + str(self.rows - row) for row, column in step)


@cache
def solve(twin: Twin) -> tuple[bool, int]:
    """Whether the side to move wins, and after how many plies if the winner hurries and the loser delays."""
    if twin.outcome() is not None:
        return (twin.outcome() or "d")[0] == ("a" if twin.white_moves else "d"), 0
    answers = [solve(child) for child in twin.children()]
    lost = [plies for wins, plies in answers if not wins]
    return (True, 1 + min(lost)) if lost else (False, 1 + max(plies for _, plies in answers))


@cache
def games(twin: Twin) -> int:
    """The number of different games from here: paths to a finished position."""
    return sum(map(games, twin.children())) or 1


@cache
def white_wins(twin: Twin) -> Fraction:
    """The probability that white wins if both sides move at random."""
    if twin.outcome() is not None:
        return Fraction((twin.outcome() or "d")[0] == "a")
    children = twin.children()
    return sum(map(white_wins, children), Fraction(0)) / len(children)


def reachable(start: Twin) -> list[Twin]:
    """All positions of all games, the finished ones included, each once."""
    found = [start]
    seen = {start}
    for twin in found:
        for child in twin.children():
            if child not in seen:
                seen.add(child)
                found.append(child)
    return found
