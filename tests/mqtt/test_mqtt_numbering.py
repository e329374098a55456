"""Numbers before lines: read, judged, kept for those who ask again."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hnefi.protocol.hosts.sessions.engine_process import PLAYS_LIMIT, Memory
from hnefi.protocol.hosts.sessions.numbering import Incoming, Ring, parse_numbered, split_number


@pytest.mark.parametrize(
    ("line", "number", "text"),
    [
        ("go", None, "go"),
        ("#1 go", 1, "go"),
        ("#12 ", 12, ""),
        ("#12", 12, ""),
        ("# 1 go", None, ""),
        ("#", None, ""),
        ("#x go", None, ""),
        ("#-1 go", None, ""),
        ("#1:2 go", None, ""),
        ("#" + "9" * 100_000 + " go", None, ""),
        ("#٣ go", None, ""),
        ("#3 # comment", 3, "# comment"),
    ],
)
def test_a_line_begins_with_a_number_or_not(line: str, number: int | None, text: str) -> None:
    assert split_number(line) == (number, text)


def test_lines_from_the_engine_name_what_they_answer() -> None:
    line = parse_numbered("#7:3 bestmove a1a2")
    assert line is not None
    assert (line.number, line.answers, line.text) == (7, 3, "bestmove a1a2")
    line = parse_numbered("#8 info string x")
    assert line is not None
    assert (line.number, line.answers, line.text) == (8, 0, "info string x")
    assert parse_numbered("info string x") is None


@given(st.lists(st.integers(0, 12)))
def test_each_number_is_taken_once_and_in_order(numbers: list[int]) -> None:
    complaints: list[str] = []
    incoming = Incoming(complaints.append)
    for number in numbers:
        before, said = incoming.last, len(complaints)
        incoming.take(f"#{number} go".encode())
        assert incoming.last == before + (number == before + 1)
        assert len(complaints) - said <= (number > before + 1)

    async def all_lines() -> list[tuple[int, str]]:
        return [await incoming.next() for _ in range(incoming.last)]

    assert asyncio.run(all_lines()) == [(number, "go") for number in range(1, incoming.last + 1)]


@given(st.lists(st.binary(max_size=40)), st.integers(1, 8), st.integers(1, 100))
def test_a_ring_keeps_the_last_lines_within_its_bounds(lines: list[bytes], count: int, size: int) -> None:
    ring = Ring(count, size)
    for number, line in enumerate(lines, 1):
        assert ring.append(line) == number
    kept = list(ring.since(1))
    assert kept == lines[len(lines) - len(kept) :]
    assert len(kept) <= count
    assert sum(map(len, kept)) <= size or len(kept) == 1
    assert ring.last == len(lines)
    assert ring.first == ring.last - len(kept) + 1
    assert [ring.get(number) for number in range(ring.first, ring.last + 1)] == kept
    assert ring.get(ring.first - 1) is None
    assert ring.get(ring.last + 1) is None


def told(memory: Memory, *lines: str) -> Memory:
    for line in lines:
        memory.note(line.split(), line)
    return memory


def test_what_an_engine_was_told_can_be_told_again() -> None:
    memory = Memory([("game", "variant brandubh"), ("hash", "setoption name Hash value 8")])
    told(
        memory,
        "uci",
        "setoption name Hash value 16",
        "position startpos",
        "play a4a2",
        "play d3c3",
        "undo",
        "go",
    )
    assert memory.lines() == [
        "variant brandubh",
        "uci",
        "setoption name Hash value 16",
        "position startpos",
        "play a4a2",
        "play d3c3",
        "undo",
    ]
    told(memory, "setoption name Variant value tablut")
    assert memory.lines() == ["uci", "setoption name Hash value 16", "setoption name Variant value tablut"]
    told(memory, *["play a1a2"] * (PLAYS_LIMIT + 1))
    assert not memory.complete
    told(memory, "ucinewgame")
    assert memory.complete
