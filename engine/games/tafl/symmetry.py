"""The symmetries of a square board that keep the rules."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from ...squares import file_of, rank_of, square, squares
from .fen import Setup
from .rules import Rules


def canonical(rules: Rules, setup: Setup) -> tuple[object, ...]:
    """The least of the images of a position under the symmetries of its rules, in a form that can be compared."""
    return min(_turned(setup, turn) for turn in symmetries(rules))


def _turn(sq: int, turn: int, size: int) -> int:
    """Where a square goes under one of the eight symmetries of a square board."""
    file, rank = file_of(sq), rank_of(sq)
    if turn & 1:
        file = size - 1 - file
    if turn & 2:
        rank = size - 1 - rank
    if turn & 4:
        file, rank = rank, file
    return square(file, rank)


@lru_cache(maxsize=32)
def symmetries(rules: Rules) -> tuple[int, ...]:
    """The symmetries of the board that keep every special square of the rules where it is."""
    named = [
        rules.throne,
        rules.corners,
        rules.attacker_camps,
        rules.defender_camps,
        rules.camp_soft,
        *(zone.squares for zone in rules.zones),
    ]
    return tuple(
        turn
        for turn in range(8)
        if all({_turn(sq, turn, rules.size) for sq in kept} == set(kept) for kept in named)
    )


@lru_cache(maxsize=32)
def images(rules: Rules) -> tuple[Mapping[int, int], ...]:
    """Where squares go under each of these symmetries, leaving all where they are not among them."""
    return tuple(
        {sq: _turn(sq, turn, rules.size) for sq in squares(rules.size)} for turn in symmetries(rules) if turn
    )


def _turned(setup: Setup, turn: int) -> tuple[object, ...]:
    """A position seen under a symmetry, in a form that can be compared."""
    return (
        setup.side,
        tuple(sorted((_turn(sq, turn, setup.size), letter) for sq, letter in setup.pieces)),
        None if setup.berserk is None else _turn(setup.berserk, turn, setup.size),
    )
