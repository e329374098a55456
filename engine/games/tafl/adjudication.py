"""Ends by a game's history (repetition, limits, no legal move), and the moves that such rules forbid (kernels)."""

from __future__ import annotations

from ...compile.jit import entry, inline, kernel
from ...sides import DRAWN, REASON, WINNER
from ...squares import ORIGIN, TARGET
from .codes import (
    ATTACKERS,
    BERSERK_CAPTURE,
    DEFENDERS,
    DRAW_FORT,
    MATERIAL,
    MOVE_LIMIT,
    NO_LEGAL_MOVE,
    NO_MOVE_A,
    NO_MOVE_DRAW,
    NO_MOVE_LOSE,
    PIECE,
    QUIET_LIMIT,
    REPETITION,
    REPETITION_ATTACKERS_LOSE,
    REPETITION_DRAW,
    REPETITION_FORBIDDEN,
    REPETITION_FORBIDDEN_TO_ATTACKERS,
    REPETITION_IGNORE,
    REPETITION_MOVER_LOSES,
    REPETITION_MOVER_WINS,
    SIDE,
)
from .make import is_capture, make, undo
from .movegen import can_reach, generate_pseudo_legal, has_pseudo_legal_move
from .state import SCRATCH_ALL

DRAW = (DRAWN + 1) << WINNER
OFTEN = 1 << 20
"""More occurrences than any rule asks for."""
FORT_PIECES, FORT_REPETITIONS = 5, 3
"""`draw_fort`: the fewest pieces, king included, and the occurrences of one arrangement that make a draw."""
NEAR_LIMIT = 64
"""Within this many plies of a limit, values depend on how many are left."""


@inline
def win(side):
    """The bits of an outcome for a win by `side`."""
    return (side + 1) << WINNER


@entry
def occurrences(s, root):
    """How often the position after the last turn has occurred, this time included; OFTEN if it has occurred since
    stack index `root` (-1: no root)."""
    ply = s.ply
    key = s.keys[ply]
    since = s.since
    stride = s.repetition_stride
    count = 1
    i = ply - stride
    while i >= since:
        if s.keys[i] == key:
            if root >= 0 and i >= root:
                return OFTEN
            count += 1
        i -= stride
    return count


@inline
def forbids(s, side):
    """Whether the rules forbid this side to repeat a position."""
    r = s.repetition
    return r == REPETITION_FORBIDDEN or r == REPETITION_FORBIDDEN_TO_ATTACKERS + side


@kernel
def legal_after(s, move):
    """Whether a move of `generate_pseudo_legal` is legal under the rules that depend on the position after it."""
    capturing = s.must_go and s.berserk == BERSERK_CAPTURE and not s.opentafl
    if capturing and not is_capture(s, move & ORIGIN, move >> TARGET):
        return False
    if forbids(s, s.side):
        make(s, move)
        allowed = s.must_go != 0 or occurrences(s, -1) < s.repetition_count
        undo(s)
        return allowed
    return True


@kernel
def filter_legal(s, top, end):
    """Keep the legal moves among those from `top` to `end`, in order; returns the new end."""
    kept = top
    for i in range(top, end):
        move = int(s.moves[i])
        if legal_after(s, move):
            s.moves[kept] = move
            kept += 1
    return kept


@inline
def generate(s, top):
    """All legal moves of the side to move, from `s.moves[top]` on."""
    end = generate_pseudo_legal(s, top)
    if s.repetition >= REPETITION_FORBIDDEN or s.must_go:
        end = filter_legal(s, top, end)
    return end


@kernel
def is_legal(s, move):
    """Whether a move that was legal in another position of the game is legal here, nobody being bound to go on."""
    o = move & ORIGIN
    p = s.board[o] & PIECE
    if p == 0 or p >> SIDE != s.side or not can_reach(s, o, move >> TARGET):
        return False
    return s.repetition < REPETITION_FORBIDDEN or legal_after(s, move)


@entry
def legal_moves(s):
    """Write all legal moves to the bottom of the move stack; returns their number."""
    return generate(s, 0)


@kernel
def can_move(s):
    """Whether the side to move has a legal move."""
    if not has_pseudo_legal_move(s):
        return False
    if s.repetition >= REPETITION_FORBIDDEN or s.must_go:
        return generate(s, SCRATCH_ALL) > SCRATCH_ALL
    return True


@entry
def no_move_outcome(s):
    """The outcome for a side to move that has no legal move."""
    if s.opentafl and s.side == ATTACKERS:
        # OpenTafl's attackers do not lose for lack of a move, but the game has to end.
        return NO_LEGAL_MOVE | DRAW
    if s.no_move == NO_MOVE_LOSE:
        return NO_LEGAL_MOVE | win(1 - s.side)
    if s.no_move == NO_MOVE_DRAW:
        return NO_LEGAL_MOVE | DRAW
    return NO_LEGAL_MOVE | win(s.no_move - NO_MOVE_A)


@kernel
def repeated(s, mover):
    """The outcome of a position that has occurred often enough."""
    r = s.repetition
    if r == REPETITION_DRAW:
        return REPETITION | DRAW
    if r == REPETITION_MOVER_LOSES:
        return REPETITION | win(1 - mover)
    if r == REPETITION_MOVER_WINS:
        return REPETITION | win(mover)
    return REPETITION | win(DEFENDERS if r == REPETITION_ATTACKERS_LOSE else ATTACKERS)


@kernel
def fort_key(s):
    """A key of the defenders' arrangement; 0 where the rule does not apply (no king, or fewer than four men)."""
    key = s.side_zobrist ^ s.side_zobrist
    if s.king == 0 or s.count[DEFENDERS] < FORT_PIECES:
        return key
    for i in range(s.count[DEFENDERS]):
        sq = s.pieces[DEFENDERS, i]
        key ^= s.zobrist[s.board[sq] & PIECE, sq]
    return key


@kernel
def fort_repeated(s):
    """`draw_fort`: whether the defenders' arrangement has occurred three times without a capture in between."""
    ply = s.ply
    key = fort_key(s)
    s.fort_keys[ply] = key
    if key == 0:
        return False
    count = 1
    for i in range(max(s.since, ply - s.quiet), ply):
        # Inside a turn (key 0) no arrangement is stored; the entry is a leftover of another line.
        if s.u_side[i] == DEFENDERS and s.keys[i] and s.fort_keys[i] == key:
            count += 1
    return count >= FORT_REPETITIONS


@entry
def adjudicate(s, root):
    """The outcome by repetition, draw fort, material or limits after a completed turn, else 0."""
    if s.must_go:
        return 0
    ply = s.ply
    mover = int(s.u_side[ply])
    verdict = 0
    if REPETITION_IGNORE < s.repetition < REPETITION_FORBIDDEN and occurrences(s, root) >= s.repetition_count:
        verdict = repeated(s, mover)
    elif s.draw_fort and mover == DEFENDERS and fort_repeated(s):
        verdict = DRAW_FORT
    elif (
        (s.quiet == 0 or s.u_must[ply])
        and s.count[ATTACKERS] <= s.material_attackers
        and s.count[DEFENDERS] - 1 <= s.material_defenders
    ):
        verdict = MATERIAL
    elif s.quiet_limit and s.quiet >= s.quiet_limit:
        verdict = QUIET_LIMIT
    elif s.move_limit and s.played >= s.move_limit:
        verdict = MOVE_LIMIT
    # In OpenTafl a repetition comes before everything that is asked here.
    if verdict and not (s.opentafl and verdict & REASON == REPETITION) and not can_move(s):
        return no_move_outcome(s)
    return verdict


@kernel
def finish_turn(s):
    """After `make`: apply all the rules that judge a completed turn, the lack of a legal move included."""
    if s.outcome == 0 and s.must_go == 0:
        if s.opentafl or can_move(s):
            s.outcome = adjudicate(s, -1)
        if s.outcome == 0 and not can_move(s):
            s.outcome = no_move_outcome(s)


@kernel
def limit_salt(s):
    """A number to add to table keys: 0 unless a limit is so near that values depend on the plies left until it."""
    salt = 0
    if s.move_limit and s.move_limit - s.played < NEAR_LIMIT:
        salt = s.move_limit - s.played + 1
    if s.quiet_limit and s.quiet_limit - s.quiet < NEAR_LIMIT:
        salt += (s.quiet_limit - s.quiet + 1) << 8
    return salt
