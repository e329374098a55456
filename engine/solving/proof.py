"""Proofs of wins and losses by full-width search, in two readings of the rules.

`Prover` ignores repetitions, draw forts and limits on the length of a game: values then do not depend on the path to a
position, and can be kept in a table. A shortest win never repeats a position, because every ply brings it closer, so it
is a win in the real game too unless a limit is near. `strict` makes sure of that: it applies the full rules, with the
history starting at the given position, and uses the table only to order moves.
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
    """A proof needs more nodes than allowed."""


def memoryless(variant: Variant) -> Variant:
    """The variant without rules that depend on the path to a position."""
    return variant.with_switches(repetition="ignore", draw_fort="no", move_limit=0, quiet_limit=0)


class Prover:
    """A prover for positions of one variant; its table is kept between questions."""

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
        """Nodes searched since the last `allow`."""
        return int(self._work[0]["nodes"])

    def forget(self) -> None:
        """Clear the table."""
        self._table[:] = 0
        self._work[0]["killers"] = 0

    def allow(self, nodes: int | None) -> None:
        """Reset the node count; OutOfNodesError is raised after `nodes` nodes."""
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
