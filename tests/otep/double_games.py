"""Games by heart in the eight rule sets that OpenTafl and we agree about, and a board that follows them.

`+` before a move says that its side has moved before it as well: a berserk turn that goes on. Shared by both doubles of
OpenTafl; standard library only, and nothing of the adapter's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Game:
    """A rules string, how the game ends (`a`, `d`, `draw`) and its moves with what they take."""

    rules: str
    result: str
    text: str

    @property
    def moves(self) -> list[tuple[str, str]]:
        """Each move, and the side that makes it."""
        side, found = ("a" if "atkf:y" in self.rules else "d"), []
        for index, word in enumerate(self.text.split()):
            if index and not word.startswith("+"):
                side = "d" if side == "a" else "a"
            found.append((word.removeprefix("+"), side))
        return found

    @property
    def by_heart(self) -> str:
        """All moves for an engine that plays by heart: without dashes and captures."""
        return ",".join(bare(move).replace("-", "") for move, _ in self.moves)


def bare(move: str) -> str:
    return move.partition("x")[0]


class Board:
    """Pieces on squares, moved as told: captures come with the move. `start` begins with rank 1."""

    def __init__(self, rules: str) -> None:
        found = re.search(r"start:/(\S+)/", rules)
        assert found, rules
        self.rows = [row_cells(row) for row in found[1].split("/")]

    def play(self, move: str) -> None:
        (x, y), (to_x, to_y) = map(square, bare(move).split("-"))
        self.rows[to_y][to_x], self.rows[y][x] = self.rows[y][x], " "
        for taken in move.partition("x")[2].split("/"):
            if taken:
                x, y = square(taken)
                self.rows[y][x] = " "

    @property
    def record(self) -> str:
        """As OpenTafl writes it: from rank 1 up."""
        return "/" + "/".join(map(row_text, self.rows)) + "/"


def square(name: str) -> tuple[int, int]:
    return ord(name[0]) - ord("a"), int(name[1:]) - 1


def row_cells(row: str) -> list[str]:
    return list(re.sub(r"\d+", lambda found: " " * int(found[0]), row))


def row_text(cells: list[str]) -> str:
    return re.sub(" +", lambda found: str(len(found[0])), "".join(cells))


GAMES = {
    "seabattle": Game(
        "dim:9 name:seabattle esc:e atkf:y ka:n cor: cen: "
        "start:/3ttt3/4t4/4T4/t3T3t/ttTTKTTtt/t3T3t/4T4/4t4/3ttt3/",
        "d",
        """
        h5-h1 e3-d3 i4-f4 d3-b3 f9-f6xf5 g5-g6xf6 i5-i1 e5-i5
        """,
    ),
    "fetlar": Game(
        "dim:11 name:fetlar atkf:y "
        "start:/3ttttt3/5t5/11/t4T4t/t3TTT3t/tt1TTKTT1tt/t3TTT3t/t4T4t/11/5t5/3ttttt3/",
        "d",
        """
        a7-b7 e5-e3 b6-b1 f4-j4 b7-a7 h6-h8 a4-i4xj4 e3-c3 h1-j1 c3-c1xb1 h11-h9 h8-h3 i4-i1 h3-k3 f2-k2xk3
        f5-d5 a5-a4 g7-i7 f10-h10 f6-f3 g11-h11 f3-k3xk2 h9-h6xg6 k3-k1
        """,
    ),
    "copenhagen": Game(
        "dim:11 name:copenhagen atkf:y sw:s efe:y "
        "start:/3ttttt3/5t5/11/t4T4t/t3TTT3t/tt1TTKTT1tt/t3TTT3t/t4T4t/11/5t5/3ttttt3/",
        "d",
        """
        a7-b7 e5-e3 b6-b1 f4-j4 b7-a7 h6-h8 a4-i4xj4 e3-c3 h1-j1 c3-c1xb1 h11-h9 h8-h3 i4-i1 h3-k3 f2-k2xk3
        f5-d5 a5-a4 g7-i7 f10-h10 f6-f3 g11-h11 f3-k3xk2 h9-h6xg6 k3-k1
        """,
    ),
    "copenhagen-relaxed": Game(
        "dim:11 name:copenhagen-relaxed atkf:y sw:s swf:n efe:y "
        "start:/3ttttt3/5t5/11/t4T4t/t3TTT3t/tt1TTKTT1tt/t3TTT3t/t4T4t/11/5t5/3ttttt3/",
        "d",
        """
        a7-b7 e5-e3 b6-b1 f4-j4 b7-a7 h6-h8 a4-i4xj4 e3-c3 h1-j1 c3-c1xb1 h11-h9 h8-h3 i4-i1 h3-k3 f2-k2xk3
        f5-d5 a5-a4 g7-i7 f10-h10 f6-f3 g11-h11 f3-k3xk2 h9-h6xg6 k3-k1
        """,
    ),
    "berserk": Game(
        "dim:11 name:berserk surf:n atkf:n tfr:w kj:r ber:c "
        "start:/3ttttt3/5c5/11/t4T4t/t3NTT3t/tc1TTKTT1ct/t3TTT3t/t4T4t/11/5c5/3ttttt3/",
        "d",
        """
        e7-c7 d11-d9 e5-e2 h11-h8 g5-g2xf2 h8-h9 e2-d2 a8-e8 d6-d8xe8 k4-i4 e6-e5 a4-c4 f8-f9 k8-f8xf9 e5-e7
        d9-c9 d2-d5 f10-c10 g2-k2 c9-e9 f4-f2 k5-k3xk2 +k3-f3xf2 g6-g4 g11-g9 h6-h2 h9-h3xh2 f6-h6 f3-f4xf5
        e7-e8 c10-c8 g7-g8xf8 e1-e7xe8 +e7-e8xd8 +e8-f8xf7 d5-d7 g9-i9 d7-d8 h3-h4xg4 d8-e8xf8 +e8-e5
        c4-c6xc7 h6-h11 k7-g7 h11-k11
        """,
    ),
    "brandub": Game(
        "dim:7 name:brandub surf:n atkf:y ks:w cenhe: cenh: start:/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/",
        "a",
        """
        f4-f7 e4-e7xf7 b4-b2 c4-c7xd7 d6-d7 d4-b4 g4-c4
        """,
    ),
    "tawlbwrdd": Game(
        "dim:11 name:tawlbwrdd esc:e atkf:y ks:c cor: cen: "
        "start:/4ttt4/4t1t4/5t5/5T5/tt2TTT2tt/t1tTTKTTt1t/tt2TTT2tt/5T5/5t5/4t1t4/4ttt4/",
        "d",
        """
        f9-g9 f8-k8 g9-k9xk8 e7-e8 b5-b4 e8-i8 g10-k10 e6-e9 b4-e4 d6-d4xe4 a5-d5 f6-d6xd5 j5-j3 d6-d11
        """,
    ),
    "tablut": Game(
        "dim:9 name:tablut esc:e surf:n atkf:y ks:c linc:y cor: cens: "
        "start:/3ttt3/4t4/4T4/t3T3t/ttTTKTTtt/t3T3t/4T4/4t4/3ttt3/",
        "d",
        """
        h5-h1 e3-d3 i4-f4 d3-b3 f9-f6xf5 g5-g6xf6 i5-i1 e5-i5
        """,
    ),
}
