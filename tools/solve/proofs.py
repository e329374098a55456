"""Solves single positions by proof search, which shares only the rules with tables, and compares tables with it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hnefi.engine import games
from hnefi.engine.sides import Side
from hnefi.engine.solving import dfpn
from hnefi.engine.solving.forced import BUCKET, DEEPEST
from hnefi.engine.solving.proof import OutOfNodesError, Prover, memoryless
from hnefi.engine.solving.table import Table, Value

from ..common import interrupts
from .report import fen_of, position_of

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.tafl.variant import Variant

PORTION = 2_000_000
"""Moves between two checks for interrupts."""
WINNERS_MIB = 64
"""MiB of the table of a proof-number search in a comparison; a power of two."""
COMPARED_NODES = 3_000_000
"""Maximum of moves per position in a comparison."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Who forces a win and in how many plies; `winner` is None if nobody does within `plies`."""

    winner: Side | None
    plies: int
    nodes: int


def prover(variant: Variant, mib: int) -> Prover:
    """A prover with a table of at most `mib` MiB."""
    return Prover(variant, 1 << max(((mib << 20) // (16 * BUCKET)).bit_length() - 1, 4))


def prove(
    with_: Prover,
    fen: str,
    most: int,
    nodes: int | None,
    on_depth: Callable[[int, int], None] = lambda *_: None,
) -> Proof:
    """Who forces a win from a position within `most` plies and `nodes` moves, by asking ply by ply for both sides."""
    used = 0
    for plies in range(1, min(most, DEEPEST) + 1):
        on_depth(plies, used)
        for side in Side:
            while True:
                interrupts.check()
                left = PORTION if nodes is None else min(PORTION, nodes - used)
                if left <= 0:
                    return Proof(None, plies - 1, used)
                with_.allow(left)
                try:
                    won = with_.within(fen, int(side), plies)
                except OutOfNodesError:
                    # Everything settled so far is in the table, so asking again continues from there.
                    used += with_.nodes
                    continue
                used += with_.nodes
                break
            if won:
                return Proof(side, plies, used)
    return Proof(None, min(most, DEEPEST), used)


@dataclass(frozen=True, slots=True)
class Compared:
    """Random positions of a table: how many values were confirmed, which were wrong, and how many were too hard."""

    agreed: int
    undecided: int
    too_deep: int
    wrong: tuple[str, ...]


def _drawn(table: Table, count: int, seed: int) -> Iterator[tuple[Position, Value]]:
    """Random positions of a table in which the game is not over, with their values."""
    rng = random.Random(seed)
    left = count
    while left:
        interrupts.check()
        number = rng.randrange(table.header.entries)
        value = table.decode(table.code(number))
        try:
            position = position_of(table, fen_of(table.index, number))
        except ValueError:
            # A man stands on a square that only the other side's men may occupy.
            continue
        if value is not None and position.outcome is None:
            left -= 1
            yield position, value


def compare(
    table: Table,
    positions: int,
    seed: int,
    most: int,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Compared:
    """Prove the values of random positions: that the winner wins in the stated number of plies and not in fewer, and
    that nobody wins within `most` plies if the table has no win."""
    with_ = prover(table.variant, 64)
    agreed = undecided = too_deep = 0
    wrong = []
    for done, (position, value) in enumerate(_drawn(table, positions, seed), 1):
        fen = position.fen()
        on_progress(done)
        if value.plies is not None and value.plies > most:
            too_deep += 1
            continue
        with_.allow(COMPARED_NODES)
        try:
            if value.plies is None:
                right = not any(with_.within(fen, side, most) for side in range(2))
                undecided += right
            else:
                winner = int(value.winner if value.winner is not None else -1)
                right = with_.within(fen, winner, value.plies) and not with_.within(
                    fen, winner, value.plies - 1
                )
                agreed += right
        except OutOfNodesError:
            too_deep += 1
            continue
        if not right:
            wrong.append(fen)
    return Compared(agreed, undecided, too_deep, tuple(wrong))


def compare_winners(
    table: Table, positions: int, seed: int, on_progress: Callable[[int], None] = lambda _: None
) -> Compared:
    """Prove by proof-number search who wins random positions, however long the win; if the table has no win, refute
    that either side can force one. Plies are not compared."""
    free = memoryless(table.variant)
    words = np.zeros((WINNERS_MIB << 20) // 8, np.uint64)
    agreed = undecided = too_hard = 0
    wrong = []
    for done, (position, value) in enumerate(_drawn(table, positions, seed), 1):
        on_progress(done)
        search = dfpn.ProofSearch(games.from_fen(free, position.fen()), words)
        won = value.plies is not None
        # For a win, asking about the winner is enough: the other side then cannot win.
        asked = [value.winner] if won and value.winner is not None else list(Side)
        answers = {search.ask(side, COMPARED_NODES) for side in asked}
        expected = dfpn.Answer.PROVEN if won else dfpn.Answer.REFUTED
        if answers == {expected}:
            agreed += won
            undecided += not won
        elif answers <= {expected, dfpn.Answer.OPEN, dfpn.Answer.TOO_DEEP}:
            too_hard += 1
        else:
            wrong.append(position.fen())
    return Compared(agreed, undecided, too_hard, tuple(wrong))
