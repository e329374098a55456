"""Lessons: what a step promises is so by the slow rules of `twin`, and no sentence of the rules is left out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from twin import Twin
from twin_hex import TwinHex
from twin_hexapawn import Twin as TwinPawns

from hnefi.engine import games
from hnefi.engine.games.lesson import lesson as taught
from hnefi.engine.games.tafl import variant as variants
from hnefi.engine.games.tafl.explain import explain
from hnefi.engine.games.tafl.fen import parse_fen
from hnefi.engine.games.tafl.lesson import lesson
from hnefi.engine.games.tafl.variant import find
from hnefi.engine.moves_text import parse_move_word
from hnefi.engine.squares import name as square_name
from hnefi.engine.squares import target as board_target

if TYPE_CHECKING:
    from hnefi.engine.games.hex.variant import Variant as HexVariant


@pytest.mark.parametrize("name", variants.names())
def test_a_step_shows_what_it_says(name: str) -> None:
    variant = find(name)
    steps = lesson(variant)
    text = [sentence for step in steps for sentence in step.text]
    assert set(explain(variant)) <= set(text)
    tried = 0
    for step in steps:
        if not step.task:
            continue
        tried += 1
        before = Twin(variant, parse_fen(step.fen, variant.size))
        assert before.outcome is None
        move, _ = parse_move_word(step.best, variant.size)
        after = before.play(move)
        if step.goal == "take":
            assert {square_name(sq) for sq in after.last_captures} == set(step.squares), step.title
        elif step.goal == "go":
            assert square_name(board_target(move)) in step.squares
            assert not after.last_captures, step.title
        elif step.goal == "win":
            assert after.outcome is not None, step.title
            assert after.outcome.winner == before.side
    # How they move, how they take, how the king wins and falls.
    assert tried >= 5
    assert {"How pieces move", "How men are taken", "How the king wins", "How the king is taken"} <= {
        step.title for step in steps if step.task
    }


def test_a_rule_that_no_position_shows_is_told_without_one() -> None:
    # Pieces that go one square, beside a throne that is not hostile: the king cannot be taken there.
    steps = {step.title: step for step in lesson(find("ard-ri-step"))}
    assert steps["The king beside his throne"].text == (
        "Beside his throne he cannot be taken: the throne is not hostile to him.",
    )
    assert steps["The king beside his throne"].task == ""


def test_rules_that_somebody_made_up_have_a_lesson_too() -> None:
    variant = find("brandubh").with_switches(
        king_sides=4, escape="edge", king_armed="standing", shieldwall="corner"
    )
    done = {step.title for step in lesson(variant) if step.task}
    assert {"How the king wins", "The shieldwall", "The king captures, too", "How the king is taken"} <= done


@pytest.mark.parametrize("name", ["hex:2", "hex:5", "hex:11", "hex-swap:4", "hex:19"])
def test_a_lesson_in_hex_is_right_by_the_slow_rules(name: str) -> None:
    variant = games.find(name)
    steps = taught(variant)
    tried = {step.title for step in steps if step.task}
    assert {"How stones are placed", "How the game is won", "Blocking"} <= tried
    assert ("The bridge" in tried) == (variant.size > 2)
    assert ("The swap" in tried) == variant.swap
    for step in steps:
        if not step.task:
            continue
        before = twin_hex(variant, step.fen)
        assert before.winner is None
        after = before.play(step.best)
        if step.goal == "win":
            assert after.winner == before.side, step.title
        elif step.title == "Blocking" and variant.size < 12:
            # Nothing else saves him.
            saving = [
                move
                for move in before.moves()
                if not any(before.play(move).play(reply).winner for reply in before.play(move).moves())
            ]
            assert saving == [step.best] == list(step.squares)
        elif step.goal == "go":
            assert step.best in step.squares


def twin_hex(variant: HexVariant, fen: str) -> TwinHex:
    rows, side = fen.split()[:2]
    stones = {
        (row, column): letter
        for row, text in enumerate(rows.split("/"))
        for column, letter in enumerate(re.sub(r"\d+", lambda run: "." * int(run[0]), text))
        if letter != "."
    }
    return TwinHex(variant.size, variant.swap, stones, side, len(stones))


@pytest.mark.parametrize("name", ["hexapawn:3x3", "hexapawn:4x1", "hexapawn:6x5", "hexapawn:19x19"])
def test_a_lesson_in_hexapawn_is_right_by_the_slow_rules(name: str) -> None:
    variant = games.find(name)
    steps = taught(variant)
    reasons = {"The far row": "far_row", "No move left": "no_legal_move", "The last pawn": "all_captured"}
    tried = {step.title for step in steps if step.task}
    # On a single file nothing is taken, and nobody gets past.
    assert tried == {"How pawns move", "No move left"} | (
        {"How pawns take", *reasons} if variant.files > 1 else set()
    )
    for step in steps:
        if not step.task:
            continue
        cells = {"P": set(), "p": set()}
        for row, text in enumerate(step.fen.split()[0].split("/")):
            for column, letter in enumerate(re.sub(r"\d+", lambda run: "." * int(run[0]), text)):
                if letter != ".":
                    cells[letter].add((row, column))
        before = TwinPawns(variant.ranks, variant.files, frozenset(cells["P"]), frozenset(cells["p"]))
        assert before.outcome() is None
        (move,) = (one for one in before.moves() if before.name(one) == step.best)
        after = before.play(move)
        if step.goal == "win":
            assert after.outcome() == ("a", reasons[step.title])
        else:
            assert after.outcome() is None
        if step.goal == "take":
            assert step.squares == (step.best[-len(step.squares[0]) :],)
            assert len(after.black) == len(before.black) - 1
