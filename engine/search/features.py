"""What alpha-beta does beyond the textbook, each part by a name so that any of them can be left out.

Without any feature the search visits the textbook's tree to the node. Features called selective leave moves out or
look at them less deeply; none of them does so before a move is known that does not lose, so that every forced end
which is reported is proven.
"""

from __future__ import annotations

from functools import lru_cache

NAMES = (
    "mate_in_one",  # wins at once and losses that nothing parries are seen without a tree
    "proven",  # forced ends in the table hold at any depth
    "extensions",  # a side that must parry a win gets a ply more
    "nullmove",  # selective: a side that could afford to pass is not searched in full
    "lmr",  # selective: late move reductions, late quiet moves are searched less deeply first
    "reverse_futility",  # selective: near the leaves a node far above the window counts as good enough
    "futility",  # selective: near the leaves a node far below the window tries one quiet move alone
    "late_move_pruning",  # selective: near the leaves late quiet moves are left out
    "continuation_history",  # quiet moves are ordered by what they answer, too
    "iir",  # selective: internal iterative reduction, a node that no search has seen before gets a ply less
    "aspiration",  # a depth begins with a narrow window around the value of the one before
    "symmetry",  # below a symmetric root, positions that are images of each other are one in the table
)
(
    MATE_IN_ONE,
    PROVEN,
    EXTENSIONS,
    NULL_MOVE,
    LMR,
    REVERSE_FUTILITY,
    FUTILITY,
    LATE_MOVE_PRUNING,
    CONTINUATION_HISTORY,
    IIR,
    ASPIRATION,
    SYMMETRY,
) = (1 << bit for bit in range(len(NAMES)))
SELECTIVE = NULL_MOVE | LMR | REVERSE_FUTILITY | FUTILITY | LATE_MOVE_PRUNING | IIR
ALL = (1 << len(NAMES)) - 1
OFF = NULL_MOVE | EXTENSIONS
"""Those that have won no games so far (MEASUREMENTS.md)."""
DEFAULT = ALL & ~OFF
"""The features used by default."""

# The numbers of these features, in plies, moves and centipawns.
NULL_MOVE_MIN_DEPTH = 3
NULL_MOVE_REDUCTION = 4
"""The search after a null move is shallower by this many plies and a quarter of the depth."""
NULL_MOVE_MARGIN = 200
"""Each such surplus of the evaluation over beta makes it one ply shallower, up to two."""
NULL_MOVE_VERIFY_DEPTH = 8
"""From this depth on, a null-move cutoff is verified by a search."""
FUTILITY_MAX_DEPTH = 4
"""Up to this depth, a node whose evaluation is far outside the window is pruned."""
FUTILITY_MARGIN = 100
"""Centipawns per ply of depth that a move is expected to gain at most."""
IIR_MIN_DEPTH = 4
LMR_MIN_DEPTH, LMR_MIN_MOVES, LMR_MIN_ROOT_MOVES = 3, 2, 4
"""Quiet moves are reduced from this depth on, after this many moves, and at the root after this many."""
LMR_SIZE = 64
"""The table of reductions goes up to this depth and this many moves."""
LMR_HISTORY = 8192
"""A history score higher by this means a reduction smaller by one ply."""
LATE_MOVE_MAX_DEPTH = 4
"""Up to this depth, late quiet moves are pruned."""

MEASURED = "default-2026.1"
"""The name of the default with which the ladder, its rungs and the levels were measured."""
_ALL_OF_2026_1 = (1 << 12) - 1
"""All that there were then, the first in the list."""
RENAMED = {
    "foresight": ("mate_in_one",),
    "reductions": ("lmr",),
    "pruning": ("reverse_futility", "futility", "late_move_pruning"),
    "continuation": ("continuation_history",),
    "internal": ("iir",),
}
"""Old names, each with what it is called now; they are read until the next release."""
_SMALL = 7
"""Up to this size of board the default of `MEASURED` did without passing."""


def groups(size: int) -> dict[str, int]:
    """Names of several features, as they are meant on a board of `size` files."""
    return {
        "all": ALL,
        "default": DEFAULT,
        MEASURED: _ALL_OF_2026_1 & ~NULL_MOVE if size <= _SMALL else _ALL_OF_2026_1,
        "none": 0,
        **{old: sum(map(bit, new)) for old, new in RENAMED.items()},
    }


def bit(name: str) -> int:
    """The bit of the feature called `name`."""
    return 1 << NAMES.index(name)


@lru_cache(maxsize=64)
def read(text: str, size: int = _SMALL) -> int:
    """The features meant by `default`, `none`, `all -lmr`, `mate_in_one proven`, …; ValueError if not clear.

    A word adds a feature, or several by a name of `groups`; one with a minus takes them away. Words that only take
    away begin with the default, and so does no word at all.
    """
    words = _words(text)
    several = groups(size)
    found = DEFAULT if not words or words[0].startswith("-") else 0
    for word in words:
        name = word.removeprefix("-")
        if name not in (*NAMES, *several):
            raise ValueError(
                f"expected default, all, none, or any of {', '.join(NAMES)}, each with or without a minus"
            )
        bits = several[name] if name in several else bit(name)
        found = found & ~bits if word.startswith("-") else found | bits
    return found


def renamed(text: str) -> dict[str, str]:
    """The old names among the words of `text`, each with what it is called now."""
    found = (word.removeprefix("-") for word in _words(text))
    return {old: " ".join(RENAMED[old]) for old in found if old in RENAMED}


def _words(text: str) -> list[str]:
    return text.lower().replace(",", " ").split()
