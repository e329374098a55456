"""Small games solved by brute force, as files of solved positions."""

from __future__ import annotations

import json
from pathlib import Path

from hnefi.engine import games
from hnefi.engine.games.base_position import Position


class Solver:
    """Best play of a small game without repetitions: `winners` are those of all positions that were looked at, by their
    canonical form, with one FEN each."""

    def __init__(self, name: str) -> None:
        self.variant = games.find(name)
        self.winners: dict[tuple[object, ...], tuple[str, str]] = {}

    def winner(self, position: Position) -> str:
        """`a`, `d` or `draw`."""
        outcome = position.outcome
        if outcome is not None:
            return outcome.result
        canon = position.canonical()
        if canon not in self.winners:
            found = {self.winner(position.play(move)) for move in position.legal_moves()}
            wanted = position.side.letter
            best = wanted if wanted in found else "draw" if "draw" in found else "da"[position.side == 1]
            self.winners[canon] = position.fen(), best
        return self.winners[canon][1]

    def lines(self) -> list[str]:
        """The file's lines."""
        self.winner(games.initial(self.variant))
        header = {"variant": self.variant.name, "rules": self.variant.hash}
        return [json.dumps(entry) for entry in (header, *map(list, self.winners.values()))]


def write(path: Path, *names: str) -> Path:
    """A file of these games, solved."""
    path.write_text("".join(f"{line}\n" for name in names for line in Solver(name).lines()))
    return path
