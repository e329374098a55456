"""Lessons: what a step promises is so by the slow rules of `twin`, and no sentence of the rules is left out."""

from __future__ import annotations

import pytest
from twin import Twin

from hnefi.engine.games.tafl import variant as variants
from hnefi.engine.games.tafl.explain import explain
from hnefi.engine.games.tafl.fen import parse_fen
from hnefi.engine.games.tafl.lesson import lesson
from hnefi.engine.games.tafl.variant import find
from hnefi.engine.moves_text import parse_move_word
from hnefi.engine.squares import name as square_name
from hnefi.engine.squares import target as board_target


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
