"""Proofs of wins and losses by full-width search, in two readings of the rules.

`Prover` reads a position as the rules have it without repetitions, draw forts and limits on the length of a game:
what a position is worth then does not depend on the way to it, and a table may keep it. A shortest win never comes
back to a position, because with each ply it comes nearer; so in the game itself it is a win as well unless the limits
are near, and `strict` makes sure: there the rules hold to the letter, the history counted from the position that was
given, and the table does no more than say which move to try first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import games
from ..games.interface import MOST_MOVES
from ..score import NO_LIMIT
from . import forced

if TYPE_CHECKING:
    from ..games.tafl.variant import Variant

BUCKETS = 1 << 18
"""16 MiB."""


class OutOfNodesError(Exception):
    """A proof needs more moves than were allowed."""


def memoryless(variant: Variant) -> Variant:
    """The variant without what depends on the way to a position."""
    return variant.with_switches(repetition="ignore", draw_fort="no", move_limit=0, quiet_limit=0)


class Prover:
    """Answers for positions of one variant; what it learns of one helps with the next."""

    def __init__(self, variant: Variant, buckets: int = BUCKETS) -> None:
        self.variant = variant
        self._free = memoryless(variant)
        self._work = np.zeros(1, forced.PROOF).view(np.recarray)
        self._work[0]["mask"] = buckets - 1
        self._table = np.zeros(2 * forced.BUCKET * buckets, np.uint64)
        self._records: dict[str, Any] = {}
        self.allow(None)

    @property
    def nodes(self) -> int:
        """Moves made since the last `allow`."""
        return int(self._work[0]["nodes"])

    def forget(self) -> None:
        """Empty the table: what follows is proven from nothing."""
        self._table[:] = 0
        self._work[0]["killers"] = 0

    def allow(self, nodes: int | None) -> None:
        """Count from 0 again; OutOfNodesError is raised after so many moves."""
        self._work[0]["nodes"] = 0
        self._work[0]["node_limit"] = nodes or NO_LIMIT

    def within(self, fen: str, winner: int, plies: int, *, strict: bool = False) -> bool:
        """Whether `winner` forces a win within `plies`."""
        state, work = self._load(fen, strict)
        return self._answer(forced.forces(state, work, self._table, winner, plies))

    def after(self, fen: str, winner: int, plies: int, move: int, *, strict: bool = False) -> bool:
        """Whether `winner` forces a win within `plies`, the first of which is `move`."""
        state, work = self._load(fen, strict)
        return self._answer(forced.forces_after(state, work, self._table, winner, plies, move))

    def shortest(self, fen: str, winner: int, most: int) -> int | None:
        """The plies of the shortest win of `winner`, None if there is none within `most`."""
        return next((plies for plies in range(1, most + 1) if self.within(fen, winner, plies)), None)

    def winning(self, fen: str, winner: int, plies: int) -> tuple[int, ...]:
        """The moves after which `winner` forces a win within `plies`, the move included."""
        return tuple(
            move for move in self.position(fen).legal_moves() if self.after(fen, winner, plies, move)
        )

    def position(self, fen: str, *, strict: bool = False) -> Any:
        """The first position of a game from `fen`."""
        return games.from_fen(self.variant if strict else self._free, fen)

    def _load(self, fen: str, strict: bool) -> tuple[Any, Any]:
        position = self.position(fen, strict=strict)
        record = self._records.get(position.fits)
        if record is None:
            record = self._records[position.fits] = position.new_record()
        else:
            position.load(record)
        work = self._work[0]
        work["trust"] = not strict
        assert len(position.legal_moves()) < MOST_MOVES
        return record[0], work

    def _answer(self, found: int) -> bool:
        if found < 0:
            raise OutOfNodesError
        return bool(found)
