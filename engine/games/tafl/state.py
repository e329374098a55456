"""The tafl state: one structured record that holds rules, board, stacks and scratch.

One record is one pointer for the kernels, whatever the board's size. It has three parts: the rule tables, written
once per variant (`tables.py`); the position, `CORE` bytes that `make` changes and `undo` restores; and stacks and
scratch, whose content beyond their fill mark means nothing.
`codes.py` says what its numbers mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...squares import CELLS
from ..interface import MOST_MOVES, MOVES
from .codes import CODED, NUMBERS

PLIES = 8192
"""Depth of the undo stack: game plies kept for repetition, and the search above them."""
KEPT = 4096
"""At most so many plies of history are copied into a state; repetitions over more quiet plies do not occur in
practice."""
CAUGHT = 1 << 14

# Places for temporary lists of moves, at the end of the move stack, which searches never reach. They do not overlap.
SCRATCH_ALL = MOVES - 2 * MOST_MOVES
"""For all moves, to see whether there is one."""
SCRATCH_CAPTURES = MOVES - 1024
"""For the moves of one piece, each of which is tried for captures."""
SCRATCH_PIECE = MOVES - 512
"""For the moves of one piece, to count them."""

_i = "i8"

RULES: list[Any] = [
    # Boards: what a square allows, by bits of piece codes.
    ("hostile", "u2", (256,)),  # cell -> pieces it helps to capture
    ("stop", "u2", (CELLS,)),
    ("pass_", "u2", (CELLS,)),
    ("enter", "u2", (CELLS,)),
    ("region", "u1", (CELLS,)),  # moving within one region is not "entering"
    ("king_sides", "u1", (CELLS,)),
    ("edge", "u1", (CELLS,)),  # 1 on edge squares
    ("goal", "u1", (CELLS,)),  # 1 where the king escapes
    ("jump_square", "u1", (CELLS,)),  # bit 0 / 1: a restricted jump of side 0 / 1 may start or end here
    ("reach", "i2", (16,)),  # most squares a piece slides
    ("jump", "u1", (16,)),  # JUMP_…
    ("jumpable", "u2", (2,)),  # bits of pieces that side 0 / 1 may hop over
    ("zobrist", "u8", (16, CELLS)),
    ("must_zobrist", "u8", (CELLS,)),
    ("side_zobrist", "u8"),
    ("goal_distance", "u1", (CELLS,)),  # Manhattan distance to the nearest goal square
    ("guard", "u2", (128,)),  # squares two steps from a corner: attackers there shut it
    ("guards", _i),  # how many these are
    ("width", _i),
    ("active_captors", _i),  # bits of pieces that capture by moving
    ("passive_captors", _i),  # bits of pieces that stand as the far side of a capture
    ("victims", _i, (2,)),  # bits of pieces that side 0 / 1 may take by custodial capture
    ("turncoats", _i),  # 1 if mercenaries may be on the board
    ("uncommon", _i),  # 1 if jumps, lines or the Linnaean rule may capture
    # Switches under their own names: counts, 1 for yes, or the number of a word. `move_limit` is in plies, and
    # `commander_pair` 1 only if there may be commanders.
    *((switch, _i) for switch in (*NUMBERS, *CODED)),
    ("capture_run", _i),
    ("shieldwall_any", _i),
    ("linnaean_square", _i),  # where OpenTafl looks for the king in a Linnaean capture; 0: on a throne square
    ("jumpers", _i),
    ("limited", _i),  # 1 if any piece has a limited reach
    ("sealed", _i),  # SEALED_…
    ("repetition_board", _i),  # 1: compare pieces alone
    ("repetition_stride", _i),  # 2 where equal positions are an even number of plies apart
    ("material_attackers", _i),  # -1: no such rule
    ("material_defenders", _i),
]

POSITION: list[Any] = [
    ("key", "u8"),
    ("side", _i),
    ("ply", _i),
    ("played", _i),  # plies since the start of the game, as the move limit counts them
    ("turns", _i),  # completed turns since the start of the game
    ("quiet", _i),  # plies since the last capture
    ("since", _i),  # stack index before which no position can come again
    ("must_go", _i),  # square of the berserk piece that must continue, else 0
    ("outcome", _i),
    ("king", _i),  # square of the king, 0 without one
    ("count", _i, (2,)),  # pieces of a side, king included
    ("taken", _i, (2,)),  # men taken by attackers, by defenders
    ("board", "u2", (CELLS,)),
    ("slot", "u2", (CELLS,)),  # place in the piece list of what stands here, 0 where nothing stands
    ("pieces", "u2", (2, CELLS)),
]

STACKS: list[Any] = [
    ("keys", "u8", (PLIES,)),
    ("fort_keys", "u8", (PLIES,)),
    ("u_key", "u8", (PLIES,)),
    ("u_move", "i4", (PLIES,)),
    ("u_quiet", "i4", (PLIES,)),
    ("u_since", "i4", (PLIES,)),
    ("u_caught", "i4", (PLIES,)),  # height of the stack of captures before the ply
    ("u_must", "i2", (PLIES,)),
    ("u_side", "i1", (PLIES,)),
    ("caught", "u4", (CAUGHT,)),  # square | piece code << CAPTURED_PIECE | slot << CAPTURED_SLOT
    ("caught_top", _i),
    ("moves", "i4", (MOVES,)),
    ("flood", "u2", (CELLS,)),
    ("mark", _i, (CELLS,)),
    ("stamp", _i),
    ("random", "u8"),
    ("tally", _i, (8,)),  # counters of perft and playouts
]

TAFL = np.dtype(RULES + POSITION + STACKS, align=True)
CORE = slice(TAFL.fields["key"][1], TAFL.fields["keys"][1])  # type: ignore[index]
"""Bytes of the record that are the position."""
