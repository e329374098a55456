"""Ends by the history of a game: repetition, limits, no legal move; and what they forbid (kernels)."""

from __future__ import annotations

from ...compile.jit import entry, inline, kernel
from .strike import make, takes, undo
from .walk import can_walk, side_moves

DRAW = 3 << 8
NO_LEGAL_MOVE, REPETITION, DRAW_FORT, MATERIAL, QUIET_LIMIT, MOVE_LIMIT = range(7, 13)
FORBIDDEN = 6


@inline
def win(side):
    return (side + 1) << 8


@entry
def occurrences(s, root):
    """How often the position after the last turn has stood, itself included; many if since stack index `root`."""
    ply = s.ply
    key = s.keys[ply]
    since = s.since
    stride = s.repetition_stride
    count = 1
    i = ply - stride
    while i >= since:
        if s.keys[i] == key:
            if root >= 0 and i >= root:
                return 1 << 20
            count += 1
        i -= stride
    return count


@inline
def forbids(s, side):
    """Whether the rules forbid this side to repeat a position."""
    r = s.repetition
    return r == FORBIDDEN or r == FORBIDDEN + 1 + side


@kernel
def legal_after(s, move):
    """Whether a move of `side_moves` is allowed by the rules that look at what comes after it."""
    if s.must_go and s.berserk == 1 and not takes(s, move & 511, move >> 9):
        return False
    if forbids(s, s.side):
        make(s, move)
        allowed = s.must_go != 0 or occurrences(s, -1) < s.repetition_count
        undo(s)
        return allowed
    return True


@kernel
def keep_legal(s, top, end):
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
    end = side_moves(s, top)
    if s.repetition >= FORBIDDEN or s.must_go:
        end = keep_legal(s, top, end)
    return end


@entry
def legal_moves(s):
    """All legal moves at the bottom of the move stack; how many."""
    return generate(s, 0)


@kernel
def can_move(s):
    """Whether the side to move has a legal move."""
    if not can_walk(s):
        return False
    if s.repetition >= FORBIDDEN or s.must_go:
        top = s.moves.size - 2 * 8192
        return generate(s, top) > top
    return True


@entry
def stuck(s):
    """The outcome for a side to move that has no legal move."""
    if s.opentafl and s.side == 0:
        # There attackers never lose so; somebody has to stop a game that cannot go on.
        return NO_LEGAL_MOVE | DRAW
    if s.no_move == 0:
        return NO_LEGAL_MOVE | win(1 - s.side)
    if s.no_move == 1:
        return NO_LEGAL_MOVE | DRAW
    return NO_LEGAL_MOVE | win(s.no_move - 2)


@kernel
def repeated(s, mover):
    """The outcome of a position that has stood often enough."""
    r = s.repetition
    if r == 1:
        return REPETITION | DRAW
    if r == 2:
        return REPETITION | win(1 - mover)
    if r == 3:
        return REPETITION | win(mover)
    return REPETITION | win(1 if r == 4 else 0)


@kernel
def fort_key(s):
    """A key of the defenders' own arrangement; 0 where the rule asks for none (no king, fewer than four men)."""
    key = s.side_zobrist ^ s.side_zobrist
    if s.king == 0 or s.count[1] < 5:
        return key
    for i in range(s.count[1]):
        sq = s.pieces[1, i]
        key ^= s.zobrist[s.board[sq] & 15, sq]
    return key


@kernel
def fort_repeated(s):
    """`draw_fort`: whether the defenders' arrangement stands a third time without a capture between."""
    ply = s.ply
    key = fort_key(s)
    s.fort_keys[ply] = key
    if key == 0:
        return False
    count = 1
    for i in range(max(s.since, ply - s.quiet), ply):
        # Inside a turn (key 0) no arrangement was noted: what lies there is left from another line.
        if s.u_side[i] == 1 and s.keys[i] and s.fort_keys[i] == key:
            count += 1
    return count >= 3


@inline
def few_left(s):
    return s.count[0] <= s.material_attackers and s.count[1] - 1 <= s.material_defenders


@entry
def adjudicate(s, root):
    """The outcome by repetition, draw fort, material or limits after a completed turn, else 0."""
    if s.must_go:
        return 0
    ply = s.ply
    mover = int(s.u_side[ply])
    verdict = 0
    if 0 < s.repetition < FORBIDDEN and occurrences(s, root) >= s.repetition_count:
        verdict = repeated(s, mover)
    elif s.draw_fort and mover == 1 and fort_repeated(s):
        verdict = DRAW_FORT | win(0)
    elif (
        (s.quiet == 0 or s.u_must[ply])
        and s.count[0] <= s.material_attackers
        and s.count[1] - 1 <= s.material_defenders
    ):
        verdict = MATERIAL | DRAW
    elif s.quiet_limit and s.quiet >= s.quiet_limit:
        verdict = QUIET_LIMIT | DRAW
    elif s.move_limit and s.played >= s.move_limit:
        verdict = MOVE_LIMIT | DRAW
    # In OpenTafl a repetition comes before everything that is asked here.
    if verdict and not (s.opentafl and verdict & 255 == REPETITION) and not can_move(s):
        return stuck(s)
    return verdict


@kernel
def settle(s):
    """After a `make`: judge the completed turn by all the rules, the lack of a move included."""
    if s.outcome == 0 and s.must_go == 0:
        if s.opentafl or can_move(s):
            s.outcome = adjudicate(s, -1)
        if s.outcome == 0 and not can_move(s):
            s.outcome = stuck(s)


@kernel
def horizon(s):
    """0 unless a limit is so near that a search's values depend on the plies left to it."""
    salt = 0
    if s.move_limit and s.move_limit - s.played < 64:
        salt = s.move_limit - s.played + 1
    if s.quiet_limit and s.quiet_limit - s.quiet < 64:
        salt += (s.quiet_limit - s.quiet + 1) << 8
    return salt
