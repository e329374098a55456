"""The real engine process with a compiler that takes its time, or breaks."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from conversation import Conversation
from patience import PROMPTLY

from hnefi.protocol import server
from hnefi.protocol.answers import parse_compiling
from hnefi.protocol.hosts import exit_codes

pytestmark = pytest.mark.process


SOON = 60.0
"""Generous, for busy machines."""
SLOW = (sys.executable, str(Path(__file__).parents[1] / "support" / "slow_engine.py"))


class Slow(Conversation):
    """The engine with a compiler that takes so many seconds, see `slow_engine`."""

    tells_compiling = True

    def __init__(self, *words: str) -> None:
        super().__init__(*words, command=SLOW)


def test_it_says_what_it_compiles(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with Slow("1", "1", f"gate={gate}") as engine:
        engine.send("uti")
        engine.until("utiok")
        assert parse_compiling(engine.line() or "") is not None
        engine.send("isready")
        told = [parse_compiling(engine.line() or "")]
        gate.touch()
        told += [parse_compiling(line) for line in engine.until("readyok")[:-1]]
        assert {progress and progress.part for progress in told} == {"search"}
        # What a later choice needs is compiled by the `isready` behind it.
        engine.send("variant hex:3", "isready")
        lines = engine.until("readyok")
        assert lines[0].startswith("info string variant hex:3 ")
        told = [parse_compiling(line) for line in lines[1:-1]]
        assert {progress and progress.part for progress in told} == {"another game"}
        assert engine.ask() == []


@pytest.mark.parametrize(("line", "answer"), [("go nodes 1", "bestmove"), ("moves", "moves ")])
def test_what_needs_more_than_was_made_ready_says_what_it_compiles(line: str, answer: str) -> None:
    with Slow("0", "1") as engine:
        engine.ask("uti")
        engine.send("setoption name Algorithm value random", line)
        lines = engine.until(answer)
        assert lines[0].startswith("info string compiling 0/2 another game ")


@pytest.mark.parametrize("way", ["quit", "end", "SIGTERM", "SIGHUP", "SIGINT"])
@pytest.mark.parametrize("word", ["isready", "go infinite"])
def test_it_ends_at_once_while_it_compiles(word: str, way: str) -> None:
    """At the start, and for a choice that was made later."""
    # At the start the words about the compiler may come before `isready` is taken, and what came before the end of the
    # input is still answered; later they come from the command that waits.
    later: tuple[str, ...] = ()
    if word == "go infinite" or way == "end":
        later = ("isready", "setoption name Algorithm value random")
    engine = Slow(*(("0", "60") if later else ("60", "0")))
    try:
        engine.send("uti", *later, word)
        engine.until("info string compiling")
        began = time.monotonic()
        if way == "quit":
            engine.send("quit")
        elif way != "end":
            engine.process.send_signal(getattr(signal, way))
        status = engine.process.wait(SOON) if way != "end" else engine.end(SOON)
        assert time.monotonic() - began < PROMPTLY
        expected = {"SIGTERM": -signal.SIGTERM, "SIGHUP": -signal.SIGHUP, "SIGINT": exit_codes.SIGNALLED}
        assert status == expected.get(way, 0)
    finally:
        engine.process.kill()
        if way != "end":
            engine.end()
    assert engine.errors == ""


@pytest.mark.parametrize("script", [True, False])
def test_a_quit_that_was_written_later_ends_what_was_taken_after_it_was_read(script: bool) -> None:
    """As `isready`, a pause and `quit`, both read before the engine took one; a script is answered."""
    compiled = threading.Event()

    class Waiting:
        def line(self, line: bytes) -> bool:
            if line == b"isready":
                conversation.load(compiled.wait)
            return line != b"quit"

        def close(self, grace: float) -> None:
            pass

    inlet, outlet = os.pipe()
    conversation = server.Server(inlet)
    conversation._commands = Waiting()  # type: ignore[assignment]
    written = [b"isready\nquit\n"] if script else [b"isready\n", b"quit\n"]
    lines = server.read_lines(inlet)
    for text in written:
        os.write(outlet, text)
        conversation.inbox.put(next(lines))
    os.close(outlet)
    serving = threading.Thread(target=conversation.run, daemon=True)
    serving.start()
    serving.join(server.GRACE * 10 if script else SOON)
    ended = not serving.is_alive()
    compiled.set()
    serving.join(SOON)
    os.close(inlet)
    assert ended is not script
    assert not serving.is_alive()


def test_who_is_not_ready_does_not_say_so() -> None:
    error = "info string error isready: EOFError Ran out of input: this is a fault of the engine, isready tries again"
    with Slow("0", "0", "fail=2") as engine:
        engine.send("uti", "setoption name Algorithm value random")
        engine.send("isready", "query turn", "go nodes 1", "isready", "isready", "go nodes 1")
        engine.until("utiok")
        assert engine.line() == error
        assert engine.line() == error.replace("isready:", "query turn:").replace(
            "isready tries again", "nothing was changed"
        )
        assert engine.line() == (
            "info string error search failed: EOFError Ran out of input: "
            "this is a fault of the engine, nothing was changed"
        )
        assert engine.line() == "bestmove (none)"
        assert engine.line() == error
        assert engine.line() == "readyok"
        assert engine.until("bestmove")[-1] != "bestmove (none)"


def test_a_search_that_fails_names_no_move() -> None:
    with Slow("0", "no-search") as engine:
        engine.ask("uti")
        for _ in range(2):
            engine.send("go nodes 1")
            assert engine.line() == (
                "info string error search failed: OSError [Errno 12] Cannot allocate memory: "
                "this is a fault of the engine, nothing was changed"
            )
            assert engine.line() == "bestmove (none)"
        engine.send("go infinite")
        engine.until("info string error search failed: ")
        engine.send("isready", "stop")
        assert [engine.line(), engine.line()] == ["readyok", "bestmove (none)"]
