"""Perft, random playouts and evaluation counts for any game: whole trees and whole games in one kernel call."""

from __future__ import annotations

from .compile.jit import entry
from .games.interface import (
    MOST_MOVES,
    MOVES,
    adjudicate,
    evaluate,
    generate,
    make,
    no_move_outcome,
    random_move,
    undo,
)
from .sides import DRAWN, WINNER

UNFINISHED = DRAWN + 1
"""In place of a winner: the game is not over."""
ROOM = MOVES - 3 * MOST_MOVES
"""A node whose moves end above this index of the move stack is not searched: its children might not fit."""


@entry
def perft(s, depth, top):
    """Leaves after exactly `depth` >= 1 plies, counting the last ply without playing it."""
    end = generate(s, top)
    if depth == 1 or end > ROOM:
        return end - top
    leaves = 0
    for i in range(top, end):
        make(s, int(s.moves[i]))
        if s.outcome == 0:
            leaves += perft(s, depth - 1, end)
        undo(s)
    return leaves


@entry
def perft_plain(s, depth, top):
    """As `perft`, but every leaf is played; `s.tally[0]` counts those whose last ply captures."""
    end = generate(s, top)
    leaves = 0
    for i in range(top, end):
        caught = s.caught_top
        make(s, int(s.moves[i]))
        if depth == 1:
            leaves += 1
            if s.caught_top > caught:
                s.tally[0] += 1
        elif s.outcome == 0:
            leaves += perft_plain(s, depth - 1, end)
        undo(s)
    return leaves


@entry
def evaluate_tree(s, params, depth, top):
    """Evaluate an undecided position and every undecided one up to `depth` plies below it; returns their number."""
    evaluate(params, s)
    if depth == 0:
        return 1
    positions = 1
    end = generate(s, top)
    if end > ROOM:
        return positions
    for i in range(top, end):
        make(s, int(s.moves[i]))
        if s.outcome == 0:
            positions += evaluate_tree(s, params, depth - 1, end)
        undo(s)
    return positions


@entry
def playout(s, most):
    """Play uniformly random moves until the game is over or `most` plies have been played; returns the outcome."""
    for _ in range(most):
        if s.outcome:
            break
        m = random_move(s)
        if m == 0:
            s.outcome = no_move_outcome(s)
            break
        make(s, m)
        if s.outcome == 0:
            s.outcome = adjudicate(s, -1)
    return s.outcome


@entry
def playouts(s, games, most):
    """Play `games` random games and undo each. `s.tally` counts plies, wins of a and of d, draws, unfinished games."""
    for _ in range(games):
        ply = s.ply
        outcome = playout(s, most)
        s.tally[0] += s.ply - ply
        s.tally[1 + (UNFINISHED if outcome == 0 else (outcome >> WINNER) - 1)] += 1
        while s.ply > ply:
            undo(s)
        s.outcome = 0


@entry
def walk_randomly(s, plies):
    """Play up to `plies` random moves and leave them on the board; returns how many were played."""
    done = 0
    while done < plies and s.outcome == 0:
        m = random_move(s)
        if m == 0:
            break
        make(s, m)
        if s.outcome == 0:
            s.outcome = adjudicate(s, -1)
        done += 1
    if s.outcome == 0 and generate(s, 0) == 0:
        s.outcome = no_move_outcome(s)
    return done
