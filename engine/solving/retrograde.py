"""Retrograde analysis: who wins each position of a material, and in how many plies, level by level (kernels).

The winner plays for the shortest win, the loser for the longest. Wins in `n` plies are found at level `n` from those of
level `n - 1`:

- `begin` visits every position once. It finds games that end with the next move, and evaluates captures, which lead to
  materials that are already solved. For each position it stores the value by captures alone (the words below).
- `step` takes moves back. A move into a position that is lost for the side to move wins. A move into one that is won
  for the side to move may lose, if no other move is better: such positions are marked.
- `judge` examines all moves of the marked positions.

Only quiet moves are taken back, since captures have been handled forwards. So no capture is ever undone, whatever the
rules on captures. A quiet move is taken back by sliding (or jumping) backwards, ignoring terrain, and counts only if
the rules allow the move forwards and it leads to exactly this position. Every win and every loss therefore depends on
nothing but the kernels that play the game.

Each function works on a range of numbers. Besides marks it writes only entries of level `n`, and it reads only lower
levels, so ranges can be processed concurrently, in any order, and again after an interruption, wherever it came.

The word of a position is `DECIDED | winner << WON_BY | plies`, or `OVER` for a board on which the game has ended before
anyone moves, or, for an undecided one, a kind and a level. Kinds are stored for canonical numbers only.

- `WINS`: a capture wins at this level; a quiet move may win sooner.
- `MAY_LOSE`: not lost before this level, because captures delay the loss that long.
- `HOLDS`: a capture or an end at least draws, and no capture wins: never lost.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import entry, inline, kernel
from ..games.tafl.adjudication import adjudicate, generate, no_move_outcome
from ..games.tafl.codes import KING, PIECE, WALL
from ..games.tafl.make import make, undo
from ..games.tafl.movegen import DIRECTIONS, can_reach
from ..games.tafl.setup import standing_outcome
from ..sides import DRAWN, WINNER
from ..squares import TARGET
from .numbering import canonical_number, image_set, is_canonical, place, rank, sets_of, unrank

DECIDED = 1 << 15
WON_BY = 14
OVER = 1 << 14
PLIES = (1 << 14) - 1
"""The bits of a decided word that are its distance."""
KIND = 12
LEVEL = (1 << 12) - 1
"""The bits of an undecided word that are its level; also the last level there is."""
NOTHING, WINS, MAY_LOSE, HOLDS = range(4)

REPORT = np.dtype(
    [
        ("found", "i8"),  # canonical positions found at the previous level
        ("latest", "i8"),  # the highest level in any word
        ("faults", "i8"),  # positions whose words contradict their moves
        ("first_fault", "i8"),
        (
            "counts",
            "i8",
            (4,),
        ),  # positions by who wins (attackers, defenders, neither) and those that are over
        ("longest", "i8", (2,)),  # the longest win of either side
        ("longest_at", "i8", (2,)),  # the first position with that win
        ("edges", "i8"),  # moves examined
    ],
    align=True,
)
"""A kernel's report on its range."""


@inline
def decided(winner, plies):
    """The word of a position that `winner` wins in `plies` plies."""
    return DECIDED | winner << WON_BY | plies


@inline
def is_level(word, n):
    """Whether a word is a decision of level `n`."""
    return word & DECIDED != 0 and word & PLIES == n


@kernel
def store(ix, words, side, king, attackers, defenders, word):
    """Set the word of a position and of its images, of the canonical number last.

    A process may be killed between two of these writes. Whatever repeats the range decides by the canonical number
    whether there is anything left to write.
    """
    r = ix.king_number[king]
    least = rank(ix, side, king, attackers, defenders)
    for i in range(1, ix.keepings[r]):
        g = ix.keeping[r, i]
        other = rank(ix, side, king, image_set(ix, g, attackers), image_set(ix, g, defenders))
        if other > least:
            words[other] = word
        elif other < least:
            words[least] = word
            least = other
    words[least] = word


@inline
def number(s, ix):
    """The number of the position on the board."""
    king, attackers, defenders = sets_of(s, ix)
    return rank(ix, s.side, king, attackers, defenders)


@inline
def end_after(s):
    """The outcome after `make`; 0 if it is the next player's turn, even without a legal move."""
    if s.outcome:
        return s.outcome
    return adjudicate(s, -1)


@kernel
def by_captures(s, ix, words):
    """The word of the position on the record from ends and captures alone; `words` of smaller materials are final."""
    side = s.side
    if standing_outcome(s):
        return OVER
    end = generate(s, 0)
    if end == 0:
        winner = (no_move_outcome(s) >> WINNER) - 1
        return HOLDS << KIND if winner == DRAWN else decided(winner, 0)
    soonest = LEVEL + 1
    latest = 0
    holds = False
    for i in range(end):
        make(s, int(s.moves[i]))
        outcome = end_after(s)
        winner = DRAWN
        plies = 0
        quiet = outcome == 0 and s.caught_top == 0
        if outcome:
            winner = (outcome >> WINNER) - 1
        elif not quiet:
            word = int(words[number(s, ix)])
            if word & DECIDED:
                winner = (word >> WON_BY) & 1
                plies = word & PLIES
        undo(s)
        if quiet:
            continue
        if winner == side:
            soonest = min(soonest, plies + 1)
            if soonest == 1:
                return decided(side, 1)
        elif winner == DRAWN:
            holds = True
        else:
            latest = max(latest, plies + 1)
    if soonest <= LEVEL:
        return WINS << KIND | soonest
    if holds:
        return HOLDS << KIND
    return MAY_LOSE << KIND | latest


@entry
def begin(s, ix, words, a, d, first, last, report):
    """Set the words of a range from ends and captures."""
    for at in range(first, last):
        side, king, attackers, defenders = unrank(ix, a, d, at)
        if not is_canonical(ix, at, side, king, attackers, defenders):
            continue
        place(s, ix, side, king, attackers, defenders)
        word = by_captures(s, ix, words)
        if word & DECIDED or word == OVER:
            store(ix, words, side, king, attackers, defenders, word)
            if word != OVER:
                report.latest = max(report.latest, word & PLIES)
        else:
            words[at] = word
            report.latest = max(report.latest, word & LEVEL)


@inline
def shift(s, one, other):
    """Move a piece without applying any rule."""
    p = s.board[one] & PIECE
    slot = s.slot[one]
    s.board[one] = int(s.board[one]) & ~PIECE
    s.board[other] = int(s.board[other]) | p
    s.slot[one] = 0
    s.slot[other] = slot
    s.pieces[s.side, slot] = other
    if p == KING:
        s.king = other


@kernel
def leads_here(s, o, t):
    """Whether the piece on `o` may go to `t` by a quiet move after which the game goes on."""
    if not can_reach(s, o, t):
        return False
    make(s, o | t << TARGET)
    goes_on = end_after(s) == 0 and s.caught_top == 0
    undo(s)
    return goes_on


@kernel
def take_back(s, ix, words, marks, t, o, lost, n):
    """Update the position before the move from `o` to `t`, if the move is legal there. The position after it is on the
    record; `lost` says whether it is lost (or won) for the side to move."""
    s.side = 1 - s.side
    shift(s, t, o)
    king, attackers, defenders = sets_of(s, ix)
    at = canonical_number(ix, s.side, king, attackers, defenders)
    word = int(words[at])
    if word & DECIDED == 0 and word != OVER:
        if lost:
            if leads_here(s, o, t):
                store(ix, words, s.side, king, attackers, defenders, decided(s.side, n))
        elif word >> KIND == MAY_LOSE and word & LEVEL <= n:
            marks[at] = mark_of(n)
    shift(s, o, t)
    s.side = 1 - s.side


@inline
def mark_of(n):
    """The mark of a level. Levels that share a mark cost an extra look at a position, nothing else."""
    return 1 + n % 255


@inline
def jumped(s, t, d):
    """Whether the piece on `t` may have jumped over a neighbour, moving in direction `d`."""
    return 0 < s.board[t - d] & PIECE < WALL and s.board[t - 2 * d] & PIECE == 0


@kernel
def take_back_all(s, ix, words, marks, winner, n):
    """Take back every move that may have led to the position on the record."""
    lost = winner != s.side
    mover = 1 - s.side
    for i in range(s.count[mover]):
        t = int(s.pieces[mover, i])
        p = s.board[t] & PIECE
        for d in DIRECTIONS:
            o = t - d
            while s.board[o] & PIECE == 0:
                if may_stand(ix, p, o):
                    take_back(s, ix, words, marks, t, o, lost, n)
                o -= d
            if s.jumpers and s.jump[p] and jumped(s, t, d):
                o = t - 2 * d
                if may_stand(ix, p, o):
                    take_back(s, ix, words, marks, t, o, lost, n)


@inline
def may_stand(ix, p, sq):
    """Whether a piece may stand on a square."""
    at = int(ix.dense[sq])
    return ix.may_king[at] != 0 if p == KING else (ix.men >> at) & 1 != 0


@entry
def step(s, ix, words, marks, a, d, first, last, n, report):
    """Level `n`: take back the moves into level `n - 1` of a range, and decide its captures that win at `n`."""
    for at in range(first, last):
        word = int(words[at])
        if word & DECIDED == 0:
            if word >> KIND == WINS and word & LEVEL == n:
                side, king, attackers, defenders = unrank(ix, a, d, at)
                store(ix, words, side, king, attackers, defenders, decided(side, n))
            elif word >> KIND == MAY_LOSE and word & LEVEL == n:
                marks[at] = mark_of(n)
        elif word & PLIES == n - 1:
            side, king, attackers, defenders = unrank(ix, a, d, at)
            if is_canonical(ix, at, side, king, attackers, defenders):
                report.found += 1
                place(s, ix, side, king, attackers, defenders)
                take_back_all(s, ix, words, marks, (word >> WON_BY) & 1, n)


@kernel
def is_lost(s, ix, words, n):
    """Whether every quiet move of the position on the record leads to a win of the other side below level `n`."""
    other = 1 - s.side
    end = generate(s, 0)
    for i in range(end):
        make(s, int(s.moves[i]))
        better = False
        if end_after(s) == 0 and s.caught_top == 0:
            word = int(words[number(s, ix)])
            better = word & DECIDED == 0 or (word >> WON_BY) & 1 != other or word & PLIES >= n
        undo(s)
        if better:
            return False
    return True


@entry
def judge(s, ix, words, marks, a, d, first, last, n):
    """Decide the marked positions of a range that are lost at level `n`."""
    mark = mark_of(n)
    for at in range(first, last):
        if marks[at] != mark:
            continue
        word = int(words[at])
        if word & DECIDED or word >> KIND != MAY_LOSE or word & LEVEL > n:
            continue
        side, king, attackers, defenders = unrank(ix, a, d, at)
        place(s, ix, side, king, attackers, defenders)
        if is_lost(s, ix, words, n):
            store(ix, words, side, king, attackers, defenders, decided(1 - side, n))


@kernel
def by_all_moves(s, ix, words, report):
    """The word of the position on the record from all its moves and their words: DECIDED …, OVER, or 0."""
    if standing_outcome(s):
        return OVER
    side = s.side
    end = generate(s, 0)
    if end == 0:
        winner = (no_move_outcome(s) >> WINNER) - 1
        return 0 if winner == DRAWN else decided(winner, 0)
    soonest = PLIES + 1
    latest = 0
    holds = False
    for i in range(end):
        make(s, int(s.moves[i]))
        report.edges += 1
        outcome = end_after(s)
        winner = DRAWN
        plies = 0
        if outcome:
            winner = (outcome >> WINNER) - 1
        else:
            word = int(words[number(s, ix)])
            if word == OVER:
                # A board that is over when set up was reached without ending the game: such rules have no table.
                report.faults += 1
            if word & DECIDED:
                winner = (word >> WON_BY) & 1
                plies = word & PLIES
        undo(s)
        if winner == side:
            soonest = min(soonest, plies + 1)
        elif winner == DRAWN:
            holds = True
        else:
            latest = max(latest, plies + 1)
    if soonest <= PLIES:
        return decided(side, soonest)
    return 0 if holds else decided(1 - side, latest)


@entry
def check(s, ix, words, a, d, first, last, report):
    """Compare every word of a range with one ply of minimax over the words after its moves.

    If all agree, all are right: decided ones by induction on their distance; and an undecided position could be won or
    lost only through one that is decided sooner. `words` are DECIDED …, OVER, or 0 here.
    """
    for at in range(first, last):
        side, king, attackers, defenders = unrank(ix, a, d, at)
        place(s, ix, side, king, attackers, defenders)
        if by_all_moves(s, ix, words, report) != int(words[at]):
            if report.faults == 0:
                report.first_fault = at
            report.faults += 1


@entry
def tally(ix, words, orbits, a, d, first, last, report):
    """Count the positions of a range by value, images included, and find the longest wins."""
    for at in range(first, last):
        word = int(words[at])
        _, king, _, _ = unrank(ix, a, d, at)
        weight = orbits[ix.king_number[king]]
        if word & DECIDED:
            winner = (word >> WON_BY) & 1
            report.counts[winner] += weight
            if word & PLIES > report.longest[winner]:
                report.longest[winner] = word & PLIES
                report.longest_at[winner] = at
        else:
            report.counts[3 if word == OVER else 2] += weight


@entry
def parents(s, ix, found):
    """Write the numbers of all positions from which a quiet move leads to the one on the record; returns how many."""
    n = 0
    mover = 1 - s.side
    for i in range(s.count[mover]):
        t = int(s.pieces[mover, i])
        p = s.board[t] & PIECE
        for d in DIRECTIONS:
            o = t - d
            while s.board[o] & PIECE == 0:
                if may_stand(ix, p, o):
                    n = parent(s, ix, found, n, t, o)
                o -= d
            if s.jumpers and s.jump[p] and jumped(s, t, d):
                o = t - 2 * d
                if may_stand(ix, p, o):
                    n = parent(s, ix, found, n, t, o)
    return n


@kernel
def parent(s, ix, found, n, t, o):
    """Add the position before the move from `o` to `t`, if the move is legal there."""
    s.side = 1 - s.side
    shift(s, t, o)
    king, attackers, defenders = sets_of(s, ix)
    if standing_outcome(s) == 0 and leads_here(s, o, t):
        found[n] = canonical_number(ix, s.side, king, attackers, defenders)
        n += 1
    shift(s, o, t)
    s.side = 1 - s.side
    return n
