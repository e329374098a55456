"""Every example of protocol/PROTOCOL.md, said to a real engine process."""

from __future__ import annotations

from pathlib import Path

import pytest
from conversation import Conversation, examples, expected, run_example

import hnefi.protocol

TEXT = (Path(hnefi.protocol.__file__).parent / "PROTOCOL.md").read_text("utf-8")
EXAMPLES = list(examples(TEXT))


@pytest.mark.process
@pytest.mark.parametrize("lines", [lines for _, lines in EXAMPLES], ids=[heading for heading, _ in EXAMPLES])
def test_example(lines: list[str]) -> None:
    with Conversation() as engine:
        run_example(engine, lines)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == TEXT.count("```session") >= 10


@pytest.mark.parametrize(
    ("text", "answer", "fits"),
    [
        ("a … b", "a x y b", True),
        ("a … b", "a x y c", False),
        ("~ score cp 3 pv d1d3", "score mate -1 pv a1a10 d3e3", True),
        ("~ score cp 3 pv d1d3 d2d3", "score mate -1 pv a1a10", True),
        ("~ score cp 3 pv d1d3", "score cp 3 nodes 4 pv d1d3", False),
        ("~ bestmove d1d3 ponder d2d3", "bestmove a1a2", True),
        ("~ bestmove d1d3", "bestmove a1a2 ponder a1a2", False),
    ],
)
def test_the_reader_of_examples(text: str, answer: str, fits: bool) -> None:
    assert bool(expected(text).fullmatch(answer)) is fits
