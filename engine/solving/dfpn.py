"""Whether a side can force a win, by depth-first proof-number search, for any game (kernels).

The question is "can `winner` force a win, however long it takes?". The proof number of a position estimates the work
that a proof still needs, the disproof number the work that a refutation needs; the search always expands the leaf that
settles the root with least work. Source: A. Nagai, "Df-pn algorithm for searching AND/OR trees", 2002. Sums over
children are replaced by the largest child plus the number of the others (T. Ueda et al., "Weak proof-number search",
2008), because transpositions would be counted several times.

A repeated position is not a win for `winner`: endless play proves nothing. Proofs therefore never depend on the path
to a position, and the table can keep them. Refutations may depend on it: "he can only return to where we were" holds
on one path and not on another (the graph-history interaction). Each refutation therefore has `rests`, the highest ply
of the path that it needs to return to. A refutation that needs nothing above its own position holds on every path,
because the defence can repeat it for ever. Any other is stored under a hash of the path since the last capture, and is
used on that path only (after A. Kishimoto and M. Müller, "A general solution to the graph history interaction
problem", 2004). At depth `DEEPEST` the search abandons a line; whatever depends on that is never a refutation.

A table entry is two words, `key ^ data` and `data`, so that a half-written entry is not found.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from ..compile.jit import entry, inline, kernel
from ..games.base_position import Position
from ..games.interface import (
    MOST_MOVES,
    MOVES,
    adjudicate,
    generate,
    image_key,
    make,
    no_move_outcome,
    order_score,
    undo,
    winning_move,
)
from ..mixing import GOLDEN_GAMMA, MULTIPLIER_1
from ..sides import WINNER
from ..squares import CELLS

DEEPEST = 600
"""The greatest depth, in plies."""
NEVER = (1 << 26) - 1
"""Infinity, as a proof or disproof number; finite numbers are capped just below it."""
FREE = DEEPEST + 1
"""`rests` of a result that holds on every path."""
GIVEN_UP = -1
"""`rests` of a result that depends on an abandoned line."""
BUCKET = 4
ROOM = MOVES - 3 * MOST_MOVES

BYTES = 16 * BUCKET
"""Bytes of a bucket."""
LINE_NODES = 200_000
"""Nodes to spend on each move of a line whose proof the table has lost."""


class Answer(IntEnum):
    """The answer of `search`: whether the side can force a win."""

    PROVEN = 0
    """It can force a win."""
    REFUTED = 1
    """It cannot."""
    OPEN = 2
    """The node limit was reached."""
    TOO_DEEP = 3
    """A refutation depends on abandoned lines."""


PROVEN, REFUTED, OPEN, TOO_DEEP = (int(answer) for answer in Answer)

_WORK = 52
_KNOWN = 1 << 58
_ON_THIS_WAY = 1 << 59
_FAR = (1 << 26) - 1

WORK = np.dtype(
    [
        ("nodes", "i8"),  # moves made
        ("node_limit", "i8"),
        ("stored", "i8"),  # entries of the table in use
        ("mask", "i8"),  # buckets of the table, minus 1
        ("proof", "i8"),  # proof number of the position searched last
        ("disproof", "i8"),
        ("rests", "i8"),
        ("best", "i8"),  # its move that proves or refutes, or the most promising one
        ("deepest", "i8"),  # length of the longest line so far
        ("images", "i8"),  # symmetries beside the identity
        ("image", "u2", (8, CELLS)),
        ("key", "u8", (DEEPEST + 2,)),  # keys of the path to the current position
        ("way", "u8", (DEEPEST + 2,)),  # hashes of the path since the last capture
        ("since", "i4", (DEEPEST + 2,)),  # ply where that path begins
        ("caught", "i8", (DEEPEST + 2,)),
        # In parallel to the stack of moves: what is known of the position after each.
        ("proofs", "i4", (MOVES,)),
        ("disproofs", "i4", (MOVES,)),
        ("lean", "i4", (MOVES,)),
        ("order", "i4", (MOVES,)),
    ],
    align=True,
)
"""The record of a search."""


@inline
def key_of(s, td, winner):
    """The key of the question: the least key of the position's images, combined with `winner`."""
    least = s.key
    for i in range(1, td.images + 1):
        key = image_key(s, td.image[i])
        if key < least:
            least = key
    return least ^ (np.uint64(winner + 1) * GOLDEN_GAMMA)


@inline
def mixed(key):
    """A key with its bits mixed."""
    key = (key ^ (key >> np.uint64(31))) * MULTIPLIER_1
    return key ^ (key >> np.uint64(29))


@inline
def enter(s, td, winner, ply):
    """Append the position on the record to the path."""
    key = key_of(s, td, winner)
    td.key[ply] = key
    td.caught[ply] = s.caught_top
    if ply == 0 or td.caught[ply - 1] != s.caught_top:
        td.since[ply] = ply
        td.way[ply] = mixed(key)
    else:
        td.since[ply] = td.since[ply - 1]
        td.way[ply] = mixed(td.way[ply - 1] * np.uint64(3) ^ key)


@inline
def place_before(td, ply):
    """The earlier ply at which the path's last position occurred; -1 if it is new."""
    key = td.key[ply]
    for at in range(ply - 1, td.since[ply] - 1, -1):
        if td.key[at] == key:
            return at
    return -1


@inline
def probe(td, table, key):
    """The data word kept for a key, 0 if there is none."""
    base = np.int64(key & np.uint64(td.mask)) * (2 * BUCKET)
    for i in range(BUCKET):
        data = table[base + 2 * i + 1]
        if data != np.uint64(0) and table[base + 2 * i] ^ data == key:
            return np.int64(data)
    return 0


@kernel
def store(td, table, key, data):
    """Store a data word in its key's entry, an empty one, or that of the result that took least work."""
    base = np.int64(key & np.uint64(td.mask)) * (2 * BUCKET)
    at = base
    least = 1 << 20
    for i in range(BUCKET):
        here = base + 2 * i
        old = table[here + 1]
        if old == np.uint64(0):
            if least >= 0:
                least = -1
                at = here
            continue
        if table[here] ^ old == key:
            at = here
            least = -2
            break
        work = (np.int64(old) >> _WORK) & 63
        if work < least:
            least = work
            at = here
    if least == -1:
        td.stored += 1
    table[at] = key ^ np.uint64(data)
    table[at + 1] = np.uint64(data)


@inline
def work_of(nodes):
    """The number of binary digits of `nodes`."""
    digits = 0
    while nodes > 0:
        nodes >>= 1
        digits += 1
    return digits


@inline
def leans_on(data, ply):
    """`rests` of a refutation that was stored with its path."""
    up = data & _FAR
    return GIVEN_UP if up == _FAR else ply - up


@kernel
def is_proven(s, td, table, winner):
    """Whether the table has a proof that `winner` can force a win from the position on the record."""
    data = probe(td, table, key_of(s, td, winner))
    return data != 0 and data & NEVER == 0


@kernel
def first_look(s, td, table, winner, ply, top):
    """Append the position after a move to the path; its proof number, disproof number and `rests`, without a search."""
    outcome = s.outcome
    if outcome == 0:
        outcome = adjudicate(s, -1)
    if outcome:
        if outcome >> WINNER == winner + 1:
            return 0, NEVER, FREE
        return NEVER, 0, FREE
    enter(s, td, winner, ply)
    data = probe(td, table, td.key[ply])
    proof = data & NEVER
    disproof = (data >> 26) & NEVER
    if data and (proof == 0 or disproof == 0):
        return proof, disproof, FREE
    at = place_before(td, ply)
    if at >= 0:
        return NEVER, 0, at
    kept = probe(td, table, td.way[ply])
    if kept:
        return NEVER, 0, leans_on(kept, ply)
    if ply >= DEEPEST:
        return NEVER, 0, GIVEN_UP
    if data:
        return proof, disproof, FREE
    move = winning_move(s, top)
    if move:
        side = s.side
        make(s, move)
        won = s.outcome >> WINNER == side + 1
        undo(s)
        if won:
            if side == winner:
                return 0, NEVER, FREE
            return NEVER, 0, FREE
    return 1, 1, FREE


@inline
def leave(td, table, ply, before, proof, disproof, rests):
    """Store the result of the path's last position, and return it for its parent."""
    work = (work_of(td.nodes - before) << _WORK) | _KNOWN
    if disproof == 0 and rests >= ply:
        rests = FREE
    if disproof == 0 and rests != FREE:
        up = _FAR if rests == GIVEN_UP else ply - rests
        store(td, table, td.way[ply], work | _ON_THIS_WAY | up)
    else:
        store(td, table, td.key[ply], work | proof | disproof << 26)
    td.proof = proof
    td.disproof = disproof
    td.rests = rests


@kernel
def expand(s, td, table, winner, ply, top, end):
    """Look at every successor, stopping at one that settles the position on every path; the end of the moves."""
    chooses = s.side == winner
    for i in range(top, end):
        move = int(s.moves[i])
        td.order[i] = order_score(s, move)
        make(s, move)
        td.nodes += 1
        proof, disproof, rests = first_look(s, td, table, winner, ply + 1, end)
        undo(s)
        td.proofs[i] = proof
        td.disproofs[i] = disproof
        td.lean[i] = rests
        if (proof == 0 and chooses) or (disproof == 0 and not chooses and rests >= ply):
            return i + 1
    return end


@kernel
def descend(s, td, table, winner, most_proof, most_disproof, ply, top):
    """Search the path's last position until it is settled, one of its numbers reaches its limit, or nodes run out."""
    before = td.nodes
    td.deepest = max(td.deepest, ply)
    end = generate(s, top)
    if end == top:
        won = no_move_outcome(s) >> WINNER == winner + 1
        leave(td, table, ply, before, 0 if won else NEVER, NEVER if won else 0, FREE)
        td.best = 0
        return 0
    if end > ROOM:
        leave(td, table, ply, before, NEVER, 0, GIVEN_UP)
        return 0
    end = expand(s, td, table, winner, ply, top, end)
    chooses = s.side == winner
    # For the side to move: `low` is the number that is a minimum over moves, `high` the one that combines all moves.
    most_low = most_proof if chooses else most_disproof
    most_high = most_disproof if chooses else most_proof
    lows = td.proofs if chooses else td.disproofs
    highs = td.disproofs if chooses else td.proofs
    while True:
        least = NEVER
        second = NEVER
        best = top
        most = 0
        left = 0
        rests = FREE
        for i in range(top, end):
            low = int(lows[i])
            if low == NEVER:
                rests = min(rests, int(td.lean[i]))
                continue
            left += 1
            most = max(most, int(highs[i]))
            if low < least:
                second = least
                least = low
                best = i
            else:
                second = min(second, low)
                if low == least and (
                    td.lean[i] > td.lean[best] if low == 0 else td.order[i] > td.order[best]
                ):
                    best = i
        if left == 0:
            low, high = NEVER, 0
        elif least == 0:
            low, high = 0, NEVER
            rests = int(td.lean[best])
        else:
            low, high = least, min(most + left - 1, NEVER - 1)
        settled = left == 0 or least == 0
        if settled or low >= most_low or high >= most_high or td.nodes >= td.node_limit:
            if chooses:
                leave(td, table, ply, before, low, high, rests)
            else:
                leave(td, table, ply, before, high, low, rests)
            td.best = s.moves[best]
            return 0
        low_limit = min(most_low, second + second // 4 + 1)
        low_limit = min(low_limit, NEVER)
        high_limit = NEVER if most_high == NEVER else most_high - (left - 1)
        make(s, int(s.moves[best]))
        td.nodes += 1
        enter(s, td, winner, ply + 1)
        if chooses:
            descend(s, td, table, winner, low_limit, high_limit, ply + 1, end)
        else:
            descend(s, td, table, winner, high_limit, low_limit, ply + 1, end)
        undo(s)
        td.proofs[best] = td.proof
        td.disproofs[best] = td.disproof
        td.lean[best] = td.rests


@entry
def search(s, td, table, winner):
    """Whether `winner` can force a win from the undecided position on the record: PROVEN, REFUTED, OPEN or TOO_DEEP.

    The results are in the table: after OPEN, the same call with more nodes continues the search.
    """
    # Not the constants: numba would compile the search again for literal arguments.
    ply = s.ply - s.ply
    top = ply
    limit = ply + NEVER
    enter(s, td, winner, ply)
    descend(s, td, table, winner, limit, limit, ply, top)
    if td.proof == 0:
        return PROVEN
    if td.disproof == 0:
        return TOO_DEEP if td.rests == GIVEN_UP else REFUTED
    return OPEN


class ProofSearch:
    """An interruptible search for whether a side can force a win from a position, with a table of fixed size.

    `table`, uint64[2 * BUCKET * buckets] with a power of two of buckets, may come from an earlier search under the same
    rules: its entries hold for all positions. The rules must not depend on history (`proof.memoryless`).
    """

    def __init__(self, position: Position, table: Any) -> None:
        self._position = position
        self._table = table
        self._array = position.new_record()
        self._record = np.zeros(1, WORK).view(np.recarray)
        work = self._work = self._record[0]
        work["mask"] = len(table) // (2 * BUCKET) - 1
        symmetries = position.symmetries()
        work["image"] = np.arange(CELLS, dtype=np.uint16)
        work["images"] = len(symmetries)
        for i, squares in enumerate(symmetries, start=1):
            work["image"][i, list(squares)] = list(squares.values())

    def ask(self, winner: int, nodes: int) -> Answer:
        """Search whether `winner` can force a win, for about `nodes` more nodes."""
        self._work["nodes"] = 0
        self._work["node_limit"] = nodes
        return Answer(search(self._array[0], self._work, self._table, winner))

    @property
    def nodes(self) -> int:
        """Nodes searched by the last `ask`."""
        return int(self._work["nodes"])

    @property
    def numbers(self) -> tuple[int, int]:
        """Proof number and disproof number at the end of the last `ask`."""
        return int(self._work["proof"]), int(self._work["disproof"])

    @property
    def records(self) -> tuple[Any, Any, Any]:
        """For kernels: the record with the root position (which may be replaced by another), the record of the search,
        and the table."""
        return self._array[0], self._work, self._table

    @property
    def best(self) -> int:
        """The move that proved or refuted in the last `ask`, 0 if there is none."""
        return int(self._work["best"])

    @property
    def stored(self) -> int:
        """Entries of the table that this search has filled."""
        return int(self._work["stored"])

    def line(self, winner: int) -> tuple[int, ...]:
        """One line of a proof: proving moves against the replies that took most work to refute. It need not be the
        shortest win or the longest defence, and it ends early where the table has lost too much."""
        position: Any = self._position
        found: list[int] = []
        seen = set()
        while position.outcome is None and position.key not in seen and len(found) < DEEPEST:
            seen.add(position.key)
            position.load(self._array)
            if self.ask(winner, LINE_NODES) != Answer.PROVEN:
                break
            move = self.best
            if not move:
                break
            if position.side == winner and position.play(move).key in seen:
                # Each of these moves wins, but not all of them make progress.
                move = self._proven_elsewhere(position, winner, seen) or move
            found.append(move)
            position = position.play(move)
        self._position.load(self._array)
        return tuple(found)

    def _proven_elsewhere(self, position: Any, winner: int, seen: set[Any]) -> int:
        """A winning move to a position that is not in `seen`; 0 if none is found."""
        for move in position.legal_moves():
            child: Any = position.play(move)
            if child.key in seen or child.outcome is not None:
                continue
            child.load(self._array)
            if self.ask(winner, LINE_NODES) == Answer.PROVEN:
                return int(move)
        return 0
