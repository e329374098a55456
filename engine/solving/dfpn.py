"""Whether a side can force a win, by depth-first proof-number search over any game's verbs (kernels).

The question is "can `winner` force a win, however long it takes?". The proof number of a position is a measure of the
work that a proof still needs, the disproof number of the work that a refutation needs; the search always goes where
the position at the top needs least. Source: A. Nagai, "Df-pn algorithm for searching AND/OR trees", 2002; sums over
children are replaced by the largest child plus the number of the others (T. Ueda et al., "Weak proof-number search",
2008), because positions that are reached in many ways would be counted in all of them.

A position that comes back is no win of `winner`: endless play proves nothing. So proofs never rest on the way that led
to a position, and a table may keep them. Refutations may: "he can only return to where we were" holds on one way and
not on another (the graph-history interaction). Each refutation therefore knows how far up it leans, `rests`: the
highest place on the way to which it needs to return. One that leans on nothing above its own position holds on every
way, because the defence can follow it round and round. Any other is kept together with the way since the last capture,
and counts on just that way (after A. Kishimoto and M. Müller, "A general solution to the graph history interaction
problem", 2004). At a depth of `DEEPEST` the search gives up a line; what leans on that is never a refutation.

A table entry is two words, `key ^ data` and `data`, so that an entry that was written in part is not found.
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
from ..squares import CELLS

DEEPEST = 600
"""Plies of a line."""
NEVER = (1 << 26) - 1
"""The number of what cannot be reached; the largest below it stands for all that are larger."""
FREE = DEEPEST + 1
"""`rests` of what holds on every way."""
GIVEN_UP = -1
"""`rests` of what leans on a line that was given up."""
BUCKET = 4
ROOM = MOVES - 3 * MOST_MOVES

BYTES = 16 * BUCKET
"""Of a bucket."""
LINE_NODES = 200_000
"""Moves that each step of a line may take, where the table has lost what proved it."""


class Answer(IntEnum):
    """What `search` says of the side that is to win."""

    PROVEN = 0
    """It can force a win."""
    REFUTED = 1
    """It cannot."""
    OPEN = 2
    """The moves that were allowed have run out."""
    TOO_DEEP = 3
    """A refutation needs lines that were given up."""


PROVEN, REFUTED, OPEN, TOO_DEEP = (int(answer) for answer in Answer)

_WORK = 52
_KNOWN = 1 << 58
_ON_THIS_WAY = 1 << 59
_FAR = (1 << 26) - 1

WORK = np.dtype(
    [
        ("nodes", "i8"),  # moves made
        ("node_limit", "i8"),
        ("stored", "i8"),  # places of the table that are taken
        ("mask", "i8"),  # buckets of the table - 1
        ("proof", "i8"),  # of the position that was searched last
        ("disproof", "i8"),
        ("rests", "i8"),
        ("best", "i8"),  # its move that proves, or that refutes, or that looks most like it
        ("deepest", "i8"),  # the longest line so far
        ("images", "i8"),  # symmetries beside the identity
        ("image", "u2", (8, CELLS)),
        ("key", "u8", (DEEPEST + 2,)),  # the way to the position that is searched
        ("way", "u8", (DEEPEST + 2,)),  # hashes of the way since the last capture
        ("since", "i4", (DEEPEST + 2,)),  # where this begins
        ("caught", "i8", (DEEPEST + 2,)),
        # Beside the stack of moves: what is known of the position behind each.
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
    """The key of the question: the least among the images of the position, and who is to win."""
    least = s.key
    for i in range(1, td.images + 1):
        key = image_key(s, td.image[i])
        if key < least:
            least = key
    return least ^ (np.uint64(winner + 1) * np.uint64(0x9E3779B97F4A7C15))


@inline
def mixed(key):
    """A key whose bits all depend on each other."""
    key = (key ^ (key >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return key ^ (key >> np.uint64(29))


@inline
def enter(s, td, winner, ply):
    """Note the position on the record as the last of the way."""
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
    """Where on the way the last position stood before; -1 if it is new."""
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
    """Keep a data word in the place of its key, an empty one, or that of what took least work."""
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
    """The number of binary digits of so many moves."""
    digits = 0
    while nodes > 0:
        nodes >>= 1
        digits += 1
    return digits


@inline
def leans_on(data, ply):
    """`rests` of a refutation that was kept with its way."""
    up = data & _FAR
    return GIVEN_UP if up == _FAR else ply - up


@kernel
def is_proven(s, td, table, winner):
    """Whether the table has a proof that `winner` can force a win of the position on the record."""
    data = probe(td, table, key_of(s, td, winner))
    return data != 0 and data & NEVER == 0


@kernel
def first_look(s, td, table, winner, ply, top):
    """Proof number, disproof number and `rests` of the position after a move, without a search; puts it on the way."""
    outcome = s.outcome
    if outcome == 0:
        outcome = adjudicate(s, -1)
    if outcome:
        if outcome >> 8 == winner + 1:
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
        won = s.outcome >> 8 == side + 1
        undo(s)
        if won:
            if side == winner:
                return 0, NEVER, FREE
            return NEVER, 0, FREE
    return 1, 1, FREE


@inline
def leave(td, table, ply, before, proof, disproof, rests):
    """Keep what was found of the last position of the way, and hand it up."""
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
    """Look at every position behind the moves of this one. Stops at one that settles it on every way; the end."""
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
    """Search the last position of the way until it is settled, a number of it reaches its limit, or nodes run out."""
    before = td.nodes
    td.deepest = max(td.deepest, ply)
    end = generate(s, top)
    if end == top:
        won = no_move_outcome(s) >> 8 == winner + 1
        leave(td, table, ply, before, 0 if won else NEVER, NEVER if won else 0, FREE)
        td.best = 0
        return 0
    if end > ROOM:
        leave(td, table, ply, before, NEVER, 0, GIVEN_UP)
        return 0
    end = expand(s, td, table, winner, ply, top, end)
    chooses = s.side == winner
    # For the side to move: `low` is the number that one move can bring to 0, `high` the one to which all must come.
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
    """Whether `winner` can force a win of the undecided position on the record: PROVEN, REFUTED, OPEN or TOO_DEEP.

    What was found is in the table: after OPEN the same call with more nodes goes on.
    """
    # Not the constants: numba would compile the whole search once more for literal arguments.
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
    """Asks whether a side can force a win of a position, portion by portion, with a table of fixed size.

    `table`, uint64[2 * BUCKET * buckets] with a power of two of buckets, may be left by a search of the same rules:
    what it holds is true of all positions of these. The position must be of rules without history (`proof.memoryless`).
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
        """Go on with the question whether `winner` can force a win, for about so many moves."""
        self._work["nodes"] = 0
        self._work["node_limit"] = nodes
        return Answer(search(self._array[0], self._work, self._table, winner))

    @property
    def nodes(self) -> int:
        """Moves made by the last `ask`."""
        return int(self._work["nodes"])

    @property
    def numbers(self) -> tuple[int, int]:
        """Proof number and disproof number at the end of the last `ask`."""
        return int(self._work["proof"]), int(self._work["disproof"])

    @property
    def records(self) -> tuple[Any, Any, Any]:
        """For kernels: the record with the position that is asked about (whoever puts another one there asks about
        that), the record of the search, and the table."""
        return self._array[0], self._work, self._table

    @property
    def best(self) -> int:
        """The move that proved or refuted, in the last `ask`; 0 where there is none."""
        return int(self._work["best"])

    @property
    def stored(self) -> int:
        """Places of the table that this search has filled."""
        return int(self._work["stored"])

    def line(self, winner: int) -> tuple[int, ...]:
        """One line of a proof: moves that prove, against those that took most work to answer. It need not be the
        shortest win, nor the longest defence, and it ends early where the table has forgotten too much."""
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
                # Each of these moves wins, but not all of them get nearer to the win.
                move = self._proven_elsewhere(position, winner, seen) or move
            found.append(move)
            position = position.play(move)
        self._position.load(self._array)
        return tuple(found)

    def _proven_elsewhere(self, position: Any, winner: int, seen: set[Any]) -> int:
        """A move that wins and leads to a position that has not been seen; 0 if none is found."""
        for move in position.legal_moves():
            child: Any = position.play(move)
            if child.key in seen or child.outcome is not None:
                continue
            child.load(self._array)
            if self.ask(winner, LINE_NODES) == Answer.PROVEN:
                return int(move)
        return 0
