"""The numbers in a tafl record by name: cells, pieces, terrain, captured men, outcomes and the words of switches.

Kernels compare numbers; rules, FENs and people use words. Each is written down once, here or in the table of switches
(`hnefi.engine.games.tafl.rules`), and everything else reads it from there.
"""

from __future__ import annotations

from ...sides import DRAWN, WINNER, Reason
from .rules import SWITCH, SWITCHES

ATTACKERS, DEFENDERS = 0, 1

# Cells: 16 bits, piece code (bits 0-3), terrain (bits 4-6), and a bit for squares that lie in a zone (bit 7).
# 0 is an empty plain square that every piece may cross, so that sliding tests one number.

PIECE = 15
"""The bits of a cell that say what stands there."""
SIDE = 3
"""The bit of a piece code that is its side."""
DEFENDING = 1 << SIDE
LETTERS = ".tcnmg...TCNMGK#"
EMPTY, SOLDIER, COMMANDER, KNIGHT, MERCENARY, GUARD = range(6)
D_SOLDIER, D_COMMANDER, D_KNIGHT, D_MERCENARY, D_GUARD, KING = range(9, 15)
WALL = 15
"""The world outside the board."""
PIECE_CODES = {letter: code for code, letter in enumerate(LETTERS) if letter not in ".#"}

TERRAIN = 4
"""The first bit of a cell's terrain."""
TERRAINS = 7
"""The bits of a terrain, once it is shifted down."""
PLAIN, THRONE, CORNER, ATTACKER_CAMP, DEFENDER_CAMP, ATTACKER_CAMP_SOFT, DEFENDER_CAMP_SOFT = range(7)
ZONED = 128

# Sets of pieces: bit i for the piece with code i.
MERCENARIES = 1 << MERCENARY | 1 << D_MERCENARY
COMMANDERS = 1 << COMMANDER | 1 << KNIGHT | 1 << D_COMMANDER | 1 << D_KNIGHT
ATTACKING_COMMANDERS = 1 << COMMANDER | 1 << KNIGHT
GUARDS = 1 << GUARD | 1 << D_GUARD
ATTACKING_MEN = 1 << SOLDIER | 1 << COMMANDER | 1 << KNIGHT | 1 << MERCENARY
"""The attackers' men that capture and can take a king."""

MEN = ATTACKING_MEN | ATTACKING_MEN << DEFENDING
"""Both sides' pieces that men can capture."""

# An entry of the stack of captured men: square, piece code, place in the piece list.
CAPTURED_SQUARE = 511
CAPTURED_PIECE = 9
CAPTURED_SLOT = 13

KING_FELL = 1 << 10
"""Added to a number of captured men if the king is captured as well."""


def outcome(winner: int, reason: Reason) -> int:
    """An outcome as records hold it; 0 is a game that is not over."""
    return reason.code | (winner + 1) << WINNER


KING_CAPTURED = outcome(ATTACKERS, Reason.KING_CAPTURED)
KING_ESCAPED = outcome(DEFENDERS, Reason.KING_ESCAPED)
EXIT_FORT = outcome(DEFENDERS, Reason.EXIT_FORT)
SURROUNDED = outcome(ATTACKERS, Reason.SURROUNDED)
ALL_CAPTURED = outcome(DEFENDERS, Reason.ALL_CAPTURED)
SEALED = outcome(ATTACKERS, Reason.SEALED)
DEFENDERS_STUCK = outcome(ATTACKERS, Reason.NO_LEGAL_MOVE)
DRAW_FORT = outcome(ATTACKERS, Reason.DRAW_FORT)
MATERIAL = outcome(DRAWN, Reason.MATERIAL)
QUIET_LIMIT = outcome(DRAWN, Reason.QUIET_LIMIT)
MOVE_LIMIT = outcome(DRAWN, Reason.MOVE_LIMIT)
NO_LEGAL_MOVE = Reason.NO_LEGAL_MOVE.code
REPETITION = Reason.REPETITION.code

# The words of switches, numbered in the order of their table; `_check` compares them with it.
JUMP_NONE, JUMP_RESTRICTED, JUMP_OVER, JUMP_CAPTURE = range(4)
SHIELDWALL_OFF, SHIELDWALL_MEN, SHIELDWALL_CORNER = range(3)
BERSERK_OFF, BERSERK_CAPTURE, BERSERK_ANY = range(3)
KING_ON_EDGE_SAFE, KING_ON_EDGE_ENCLOSED, KING_ON_EDGE_LAST = range(3)
ESCAPE_CORNER, ESCAPE_EDGE, ESCAPE_NONE = range(3)
ENCIRCLEMENT_OFF, ENCIRCLEMENT_APART, ENCIRCLEMENT_RING = range(3)
NO_MOVE_LOSE, NO_MOVE_DRAW, NO_MOVE_A, NO_MOVE_D = range(4)
(
    REPETITION_IGNORE,
    REPETITION_DRAW,
    REPETITION_MOVER_LOSES,
    REPETITION_MOVER_WINS,
    REPETITION_ATTACKERS_LOSE,
    REPETITION_DEFENDERS_LOSE,
    REPETITION_FORBIDDEN,
    REPETITION_FORBIDDEN_TO_ATTACKERS,
    REPETITION_FORBIDDEN_TO_DEFENDERS,
) = range(9)

SEALED_OFF, SEALED_KING, SEALED_CORNERS = range(3)
"""No such rule; the test for the king only; and that for the corners, on boards with exactly four."""

NUMBERS = tuple(switch.name for switch in SWITCHES if switch.kind in ("yes_no", "count"))
"""Switches that the record holds as they are: counts, and 1 for yes."""
CODED = ("shieldwall", "berserk", "king_on_edge", "escape", "encirclement", "no_move", "repetition")
"""Switches whose words kernels know by these numbers."""


def code(switch: str, word: str) -> int:
    """The number of a switch's word."""
    return SWITCH[switch].words.index(word)


def _check() -> None:
    """A word that was added to a switch, or moved in it, must not change the numbers of the others."""
    for prefix, switch in [("JUMP", "king_jump"), *((name.upper(), name) for name in CODED)]:
        for number, word in enumerate(SWITCH[switch].words):
            if globals().get(f"{prefix}_{word.upper()}") != number:
                raise AssertionError(
                    f"{prefix}_{word.upper()}: expected {number}, the place of {word} in {switch}"
                )


_check()
