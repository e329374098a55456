"""The line about compiling on standard error: at a terminal, in a pipe, from this process, a worker, an engine."""

from __future__ import annotations

import io
import sys
from dataclasses import replace

import pytest

from hnefi.engine.compile import cache, progress
from hnefi.engine.compile.progress import Progress
from hnefi.tools.common import compiling

SEARCH = Progress(3, 9, "search", 12.4, 40.2)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_said() -> None:
    assert compiling.words(SEARCH) == "compiling 3/9 search (12 s, about 40 s left)"
    assert compiling.words(Progress(3, 9, "search", 12.4)) == "compiling 3/9 search (12 s)"
    assert (
        compiling.words(Progress(3, 9, "search", 12.4, 40.2, elsewhere=True))
        == "compiling 3/9 search (12 s, in another process)"
    )


def test_in_a_pipe_there_is_a_line_now_and_then() -> None:
    now = [100.0]
    stream = io.StringIO()
    line = compiling.Line(stream, lambda: now[0])
    for _ in range(25):
        line(SEARCH)
        now[0] += 1.0
    line.end()
    assert stream.getvalue() == 3 * "compiling 3/9 search (12 s, about 40 s left)\n"


def test_who_waits_is_silent_where_one_of_us_compiles() -> None:
    now = [100.0]
    stream = io.StringIO()
    line = compiling.Line(stream, lambda: now[0])
    line(SEARCH)
    now[0] += 20.0
    line(SEARCH)
    line(Progress(3, 9, "search", 1.0, elsewhere=True))
    now[0] += 20.0
    line(Progress(3, 9, "search", 1.0, elsewhere=True))
    assert [text.split("(")[1] for text in stream.getvalue().splitlines()] == [
        "12 s, about 40 s left)", "12 s, about 40 s left)", "1 s, in another process)",
    ]  # fmt: skip


def test_at_a_terminal_it_writes_over_itself_and_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", screen)
    with compiling.shown_on_stderr():
        compiling.report(SEARCH)
        compiling.report(SEARCH)
        print("found")
    assert sys.stdout is sys.stderr is screen
    bar = "\r\x1b[K[######..............] compiling 3/9 search (12 s, about 40 s left)"
    assert screen.getvalue() == f"{bar}{bar}\r\x1b[Kfound\n"


@pytest.mark.parametrize("quiet", [False, True])
def test_reports_of_this_process_and_of_engines_are_shown(
    *, quiet: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    before = list(progress._listeners)
    with compiling.shown_on_stderr(quiet=quiet):
        for listener in set(progress._listeners) - set(before):
            listener(SEARCH)
        compiling.report(SEARCH)
    compiling.report(SEARCH)
    assert list(progress._listeners) == before
    assert capsys.readouterr() == ("", "" if quiet else "compiling 3/9 search (12 s, about 40 s left)\n")


@pytest.mark.parametrize("quiet", [False, True])
def test_that_nothing_can_be_kept_is_said_once(
    *, quiet: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "tell_unkept", cache._Notice())
    told = replace(SEARCH, unkept="in /\x1b[2J (Not a directory)")
    with compiling.shown_on_stderr(quiet=quiet):
        for _ in range(3):
            compiling.report(told)
    sentence = (
        "hnefi: machine code cannot be stored in /?[2J (Not a directory), so every start compiles again\n"
    )
    line = "compiling 3/9 search (12 s, about 40 s left)\n"
    assert capsys.readouterr().err == ("" if quiet else sentence + line)
