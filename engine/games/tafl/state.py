"""The tafl state: one structured record that holds rules, board, stacks and scratch.

One record is one pointer for the kernels, whatever the board's size. It has three parts: the rule tables, written
once per variant (`tables.py`); the position, `CORE` bytes that `make` changes and `undo` restores; and stacks and
scratch, whose content beyond their fill mark means nothing.

A cell is 16 bits: piece code (bits 0-3), terrain (bits 4-6), and a bit for squares that lie in a zone (bit 7).
0 is an empty plain square where everybody may walk, so that sliding tests one number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...squares import CELLS
from ...verbs import MOVES

# Piece codes. Bit 3 is the side; 0 is empty, 15 the world outside the board.
LETTERS = ".tcnmg...TCNMGK#"
KING = 14
WALL = 15
PIECE_CODES = {letter: code for code, letter in enumerate(LETTERS) if letter not in ".#"}

# Terrain, in bits 4-6 of a cell.
PLAIN, THRONE, CORNER, ATTACKER_CAMP, DEFENDER_CAMP, ATTACKER_CAMP_SOFT, DEFENDER_CAMP_SOFT = range(7)
ZONED = 128
WALL_CELL = WALL

PLIES = 8192
"""Depth of the undo stack: game plies kept for repetition, and the search above them."""
KEPT = 4096
"""At most so many plies of history enter a state; more quiet plies than this never repeat in practice."""
CAUGHT = 1 << 14

_i = "i8"

RULES: list[Any] = [
    # Boards: what a square allows, by bits of piece codes.
    ("hostile", "u2", (256,)),  # cell -> pieces it helps to capture
    ("stop", "u2", (CELLS,)),
    ("pass_", "u2", (CELLS,)),
    ("enter", "u2", (CELLS,)),
    ("region", "u1", (CELLS,)),  # squares of one region can be walked without "entering"
    ("king_sides", "u1", (CELLS,)),
    ("edge", "u1", (CELLS,)),  # 1 on edge squares
    ("goal", "u1", (CELLS,)),  # 1 where the king escapes
    (
        "haven",
        "u1",
        (CELLS,),
    ),  # bit 0: a restricted jump of attackers may start or end here, bit 1: of defenders
    ("reach", "i2", (16,)),  # most squares a piece slides
    ("jump", "u1", (16,)),  # 0 none, 1 restricted, 2 over, 3 capture
    ("jumpable", "u2", (2,)),  # bits of pieces that side 0 / 1 may hop over
    ("zobrist", "u8", (16, CELLS)),
    ("must_zobrist", "u8", (CELLS,)),
    ("side_zobrist", "u8"),
    ("goal_distance", "u1", (CELLS,)),  # Manhattan distance to the nearest goal square
    ("guard", "u2", (128,)),  # squares two steps from a corner: attackers there shut it
    ("guards", _i),  # how many these are
    ("width", _i),
    ("striker", _i),  # bits of pieces that capture by moving
    ("anvil", _i),  # bits of pieces that stand as the far side of a capture
    ("victims", _i, (2,)),  # bits of pieces that side 0 / 1 may take by custodial capture
    ("turncoats", _i),  # 1 if mercenaries may be on the board
    ("uncommon", _i),  # 1 if jumps, lines or the Linnaean rule may capture
    ("capture_run", _i),
    ("shieldwall", _i),  # 0 off, 1 men, 2 corner
    ("shieldwall_any", _i),
    ("linnaean", _i),
    ("seat", _i),  # the square on which OpenTafl looks for the king in a Linnaean capture; 0: a throne square
    ("berserk", _i),  # 0 off, 1 capture, 2 any
    ("king_on_edge", _i),  # 0 safe, 1 enclosed, 2 last
    ("king_with_one", _i),
    ("commander_pair", _i),  # 1 if two commanders take the king and there may be any
    ("escape", _i),
    ("exit_fort", _i),
    ("encirclement", _i),  # 0 off, 1 apart, 2 ring
    ("jumpers", _i),
    ("limited", _i),  # 1 if any piece has a limited reach
    ("capture_all", _i),
    ("opentafl", _i),  # 1: that program's ends in that program's order
    ("sealed", _i),  # 0 off, 1 for the king alone, 2 with the corners of a board that has just these four
    ("no_move", _i),  # 0 lose, 1 draw, 2 a, 3 d
    ("repetition", _i),  # index into REPETITIONS
    ("repetition_count", _i),
    ("repetition_board", _i),  # 1: compare pieces alone
    ("repetition_stride", _i),  # 2 where equal positions are an even number of plies apart
    ("draw_fort", _i),
    ("move_limit", _i),  # in plies
    ("quiet_limit", _i),
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
    ("must_go", _i),  # square of the berserk piece that goes on, else 0
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
    ("u_caught", "i4", (PLIES,)),  # fill of the stack of captures before the ply
    ("u_must", "i2", (PLIES,)),
    ("u_side", "i1", (PLIES,)),
    ("caught", "u4", (CAUGHT,)),  # square | piece code << 9 | slot << 13
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

REPETITIONS = (
    "ignore",
    "draw",
    "mover_loses",
    "mover_wins",
    "attackers_lose",
    "defenders_lose",
    "forbidden",
    "forbidden_to_attackers",
    "forbidden_to_defenders",
)
