"""Boards small enough to be solved twice: by `hnefi solve`, and by asking every position for its moves until nothing
changes."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

from hnefi.engine import games
from hnefi.engine.games.base_position import Position
from hnefi.engine.games.tafl.fen import Setup
from hnefi.engine.games.tafl.position import Position as TaflPosition
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.sides import Side
from hnefi.engine.solving.dfpn import Answer, ProofSearch
from hnefi.engine.solving.proof import memoryless
from hnefi.engine.solving.readings import reading
from hnefi.engine.solving.table import Table
from hnefi.engine.squares import squares
from hnefi.tools.solve import proof_table
from hnefi.tools.solve.build import Builder

TINY = """\
name = "tiny"
description = "Four by four squares, two attackers against the king and one man."
start = ["2t1", "1K2", "1T2", "1t2"]

[rules]
king_sides = 2
"""
ROWS = ("2t1", "1K2", "1T2", "1t2")
CROSS = """\
name = "tiny"
description = "Five by five squares, two against two."
start = ["5", "2T2", "t1K1t", "2T2", "5"]

[rules]
king_sides = 2
"""

Key = tuple[Side, bytes]


def tiny(**switches: str | int) -> Variant:
    return Variant.build("tiny", ROWS, {"king_sides": 2, **switches})


def build(variant: Variant, path: Path, men: tuple[int, int] | None = None, threads: int = 1) -> Table:
    Builder(reading(variant), men or (variant.attackers, variant.defenders), path, threads=threads).run()
    return Table(path)


def kept_answers(path: Path, name: str) -> list[Side]:
    """The sides whose win from the start is proven in a kept table, so that asking again costs next to nothing."""
    free = memoryless(games.find(name))  # type: ignore[arg-type]
    search = ProofSearch(games.initial(free), proof_table.mapped(path, free, None))
    return [side for side in Side if search.ask(side, 1) is Answer.PROVEN]


def key_of(position: Position) -> Key:
    """The side to move and the board; a captured king stands on it as kernels leave him, and ends the game."""
    return position.side, position._state()["board"].tobytes()


def positions(variant: Variant, attackers: int, defenders: int) -> list[TaflPosition]:
    """Every position with so many men that the rules let stand and that is not an escape, finished ones included."""
    found = []
    board = list(squares(variant.size))
    for king in board:
        for a in range(attackers + 1):
            for men in combinations([sq for sq in board if sq != king], a):
                rest = [sq for sq in board if sq != king and sq not in men]
                for d in range(defenders + 1):
                    for others in combinations(rest, d):
                        for side in Side:
                            pieces = {king: "K", **dict.fromkeys(men, "t"), **dict.fromkeys(others, "T")}
                            setup = Setup(variant.size, tuple(sorted(pieces.items())), side)
                            try:
                                position = TaflPosition.from_setup(variant, setup)
                            except ValueError:
                                break
                            outcome = position.outcome
                            if outcome is None or outcome.reason not in ("king_escaped", "all_captured"):
                                found.append(position)
    return found


def twin(found: list[TaflPosition]) -> dict[Key, tuple[Side | None, int | None]]:
    """Winner and plies of every position; round `n` finds those that moves decide in `n` plies. A position that moves
    lead to, but which is not in `found`, is a KeyError. No move is played behind another one: nothing repeats itself,
    whatever the rules say on that."""
    known: dict[Key, tuple[Side | None, int | None]] = {}
    behind: dict[Key, list[tuple[Side | None, Key | None]]] = {}
    for position in found:
        outcome = position.outcome
        if outcome is not None:
            known[key_of(position)] = outcome.winner, 0 if outcome.winner is not None else None
            continue
        after = [position.play(move) for move in position.legal_moves()]
        behind[key_of(position)] = [
            (None, key_of(then)) if then.outcome is None else (then.outcome.winner, None) for then in after
        ]
    drawn: tuple[Side | None, int | None] = None, None
    ends: dict[Side | None, tuple[Side | None, int | None]]
    ends = {None: drawn, **{side: (side, 0) for side in Side}}
    everything = {**dict.fromkeys(behind, drawn), **known}
    for n in range(1, 1000):
        values = {
            key: [ends[winner] if to is None else everything[to] for winner, to in moves]
            for key, moves in behind.items()
            if everything[key] == drawn
        }
        new: dict[Key, tuple[Side | None, int | None]] = {}
        for key, moves in values.items():
            if (key[0], n - 1) in moves:
                new[key] = key[0], n
            elif all(winner is key[0].other for winner, _ in moves):
                new[key] = key[0].other, n
        if not new:
            return everything
        everything.update(new)
    raise AssertionError("no end")
