"""Panes, whole screens and pictures of them, from views alone."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from terminal_views import lines_of, played, view, with_settings

from hnefi.gui_adapter.terminal import command, panes, screenshot
from hnefi.gui_adapter.terminal.drawing import plain
from hnefi.gui_adapter.terminal.screen import compose, reader, wrapped
from hnefi.gui_adapter.terminal.settings import Settings
from hnefi.gui_adapter.terminal.theme import THEMES
from hnefi.gui_adapter.terminal.values import Clock, End, Entry, Line, LogLine, Thinking, View

# Panes


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (Line(1, cp=35), "attackers +0.35"),
        (Line(1, cp=-120), "defenders +1.20"),
        (Line(1, cp=0), "even"),
        (Line(1, mate=3), "attackers win in 3"),
        (Line(1, mate=-1), "defenders win in 1"),
        (Line(1, mate=0), "decided"),
        (Line(1), ""),
    ],
)
def test_scores_name_the_side_they_favour(line: Line, said: str) -> None:
    assert panes.score_text(line, ("attackers", "defenders")) == said


def test_chances() -> None:
    assert panes.chance(Line(1, cp=100)) == pytest.approx(0.64)
    assert panes.chance(Line(1, cp=-100)) == pytest.approx(0.36)
    assert panes.chance(Line(1, cp=-(10**9))) == pytest.approx(0, abs=1e-6)
    assert panes.chance(Line(1, cp=5, wdl=(200, 600, 200))) == pytest.approx(0.5)
    assert panes.chance(Line(1, mate=-2)) == 0
    assert panes.chance(Line(1)) is None


def test_the_bar_is_as_wide_as_asked_and_divided_by_the_chance() -> None:
    for share in (0, 0.004, 0.25, 0.5, 0.999, 1):
        drawn = plain(panes.bar(share, 40))
        assert len(drawn) <= 40
        assert drawn.count("#") == round(share * 30)
        numbers = [int(number) for number in re.findall(r"(\d+)%", drawn)]
        assert sum(numbers) == 100


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (300_000, "5:00"),
        (299_001, "5:00"),
        (20_000, "0:20"),
        (19_999, "0:19.9"),
        (60, "0:00.0"),
        (-5, "0:00.0"),
        (3_909_000, "1:05:09"),
    ],
)
def test_clocks_show_no_less_than_there_is(milliseconds: int, shown: str) -> None:
    assert panes.time_text(milliseconds) == shown


def test_the_running_clock_is_marked() -> None:
    row = panes.clocks(Clock(300_000, 0, (1000, 300_000), "d"), ("attackers", "defenders"))
    assert plain(row) == " attackers 0:01.0  >defenders 5:00 "
    assert [style for style, text in row if "defenders" in text] == ["class:running"]


THINKING = Thinking(
    "default",
    "analysis",
    True,
    (
        Line(1, 7, 35, nodes=1_234_567, nps=2_100_000, pv=("d1d3", "d5c5")),
        Line(2, 7, mate=-3, pv=("a4a3",)),
    ),
)


def test_the_analysis_pane() -> None:
    shown = [plain(row) for row in panes.thinking_pane(view("brandubh", thinking=THINKING), 40, 20)]
    assert shown[0] == "default (analysis)"
    assert shown[1] == "depth 7 | 1.2M nodes | 2.1M/s"
    assert shown[2].startswith(" 55% ####")
    assert shown[3:] == ["1. attackers +0.35", "  d1d3 d5c5", "2. defenders win in 3", "  a4a3"]
    assert panes.thinking_pane(view("brandubh"), 40, 20) == []
    assert len(panes.thinking_pane(view("brandubh", thinking=THINKING), 40, 2)) == 2


def test_thinking_as_plain_lines() -> None:
    assert panes.thinking_lines(view("brandubh", thinking=THINKING), 80) == [
        "default: depth 7 | 1.2M nodes | 2.1M/s",
        "1. attackers +0.35 d1d3 d5c5",
        "2. defenders win in 3 a4a3",
    ]
    waiting = Thinking("default", "move", True)
    assert panes.thinking_lines(view("brandubh", thinking=waiting), 80) == ["default: thinking"]
    assert panes.thinking_lines(view("brandubh"), 80) == []


def test_the_history_turns_to_the_current_ply() -> None:
    seen = view("copenhagen", history=played(60, 31), ply=31)
    rows = panes.history_pane(seen, 30, 5)
    assert [plain(row).split()[0] for row in rows] == ["14.", "15.", "16.", "17.", "18."]
    assert [text for row in rows for style, text in row if style == "class:current"] == ["a31b31"]
    start = view("copenhagen", history=played(60, 0), ply=0)
    assert plain(panes.history_pane(start, 30, 5)[0]).startswith(" 1. ")


def test_many_plies_of_one_turn_have_rows_of_their_own() -> None:
    plies = tuple(Entry(ply, 1, "a", f"a{ply}b{ply}", is_current=ply == 5) for ply in range(1, 6))
    rows = [plain(row).split() for row in panes.history_pane(view("berserk", history=plies, ply=5), 30, 9)]
    assert rows == [["1.", "a1b1", "a2b2"], ["a3b3", "a4b4"], ["a5b5"]]


def test_variations_and_comments_are_marked() -> None:
    plies = (Entry(1, 1, "a", "a4a2", ("a3",), "why not", True, 2),)
    assert 'a4a2xa3+2"' in plain(panes.history_pane(view("brandubh", history=plies, ply=1), 30, 3)[0])


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, "attackers to move"),
        ({"board_facts": {"side": "d"}}, "defenders to move"),
        ({"paused": True}, "attackers to move (paused)"),
        ({"thinking": Thinking("simple", "move", True)}, "attackers to move: simple is thinking"),
        ({"thinking": Thinking("simple", "hint", True)}, "attackers to move"),
        (
            {"end": End("d", "king_escaped", "the king has escaped: defenders win")},
            "the king has escaped: defenders win",
        ),
    ],
)
def test_the_headline(facts: dict[str, object], said: str) -> None:
    assert panes.headline(view("brandubh", **facts)) == said


# Whole screens

LOG = tuple(LogLine(number, f"line {number}", "reply") for number in range(1, 31))


def test_what_is_said_last_stands_next_to_the_typed_line() -> None:
    shown = lines_of(view("brandubh", log=LOG), 80, 23)
    assert shown[-3:] == ["line 28", "line 29", "line 30"]
    assert lines_of(view("brandubh", log=LOG[:1]), 80, 23)[-2:] == ["", "line 1"]


def test_the_beginning_of_a_long_line_is_shown_rather_than_its_end() -> None:
    long = LogLine(31, "begin " + "word " * 200, "error")
    shown = lines_of(view("alea-ludii", log=(*LOG, long)), 80, 23)
    assert shown[-1].startswith("begin word")
    assert shown[-1].endswith("~")


def test_a_wide_screen_has_everything_beside_the_board() -> None:
    seen = view(
        "copenhagen",
        names=("you", "default, level 5"),
        kinds=("person", "engine"),
        level=5,
        thinking=THINKING,
        clock=Clock(1, 1, (60_000, 60_000), "a"),
        history=played(20, 20),
        ply=20,
        log=LOG,
    )
    shown = "\n".join(lines_of(seen, 80, 23))
    for part in (
        "attackers: you",
        "level 5",
        "attackers to move",
        "captures",
        ">attackers 1:00",
        "depth 7",
        "10. a19b19",
    ):
        assert part in shown


def test_a_narrow_screen_has_it_below() -> None:
    shown = lines_of(view("brandubh", names=("you", "me")), 30, 23)
    assert "attackers to move" in shown
    tiny = lines_of(view("copenhagen"), 27, 14)
    assert "attackers to move" in tiny[0]


def test_squares_of_the_screen_are_those_of_the_board() -> None:
    shown = compose(view("brandubh"), 80, 23, colour=False)
    rows = [plain(line) for line in shown.lines]
    row = next(index for index, line in enumerate(rows) if "K" in line)
    assert shown.square_at(rows[row].index("K"), row) == "d4"
    assert shown.square_at(79, row) is None
    assert shown.square_at(0, 0) is None


def test_wrapping() -> None:
    assert wrapped("one two three", 7) == ["one two", "three"]
    assert wrapped("abcdefgh", 3) == ["abc", "def", "gh"]
    assert wrapped("  a b", 3) == ["  a", "b"]
    assert wrapped("", 5) == [""]
    assert wrapped("日本語", 4) == ["日本", "語"]
    assert "".join(wrapped("日本語", 1)) == "日本語"
    assert wrapped("a\x1bb", 5) == ["a?b"]


def test_reading_what_was_said() -> None:
    rows, offset = reader(LOG, 40, 11, 20, 0)
    assert offset == 0
    assert [plain(row) for row in rows[1:3]] == ["line 20", "line 21"]
    assert "20-29 of 30" in plain(rows[0])
    rows, offset = reader(LOG, 40, 11, 30, 100)
    assert plain(rows[-1]) == "line 30"
    assert offset == -9
    rows, offset = reader(LOG, 40, 11, 30, -1000)
    assert plain(rows[1]) == "line 1"
    assert len(rows) == 11
    assert len(reader((), 40, 11, 1, 0)[0]) == 11


# Pictures


def seen_for_pictures() -> View:
    facts = {"last": ("a4", "a2"), "taken": ("d3",), "captures": (1, 0)}
    return view("brandubh", board_facts=facts, names=("<you> & me", "x\x1b"), thinking=THINKING, log=LOG[:2])


def test_a_picture_as_text() -> None:
    drawn = screenshot.text(seen_for_pictures())
    assert "4(●)● ○ ♚ ○ ● ● 4" in drawn
    assert "\x1b" not in drawn
    assert all(line == line.rstrip() for line in drawn.splitlines())


@pytest.mark.parametrize("name", THEMES)
def test_a_picture_as_svg(name: str) -> None:
    drawn = screenshot.svg(with_settings(seen_for_pictures(), theme=name, zoom=2))
    root = ET.fromstring(drawn)
    names = "{http://www.w3.org/2000/svg}"
    words = [element.text for element in root.iter(f"{names}text")]
    assert "<you>" in words
    assert THEMES[name]["last"].back in drawn
    right, bottom = int(root.attrib["width"]), int(root.attrib["height"])
    for element in root.iter(f"{names}text"):
        assert 0 <= float(element.attrib["x"]) <= right - float(element.attrib.get("textLength", 9))
        assert 0 <= float(element.attrib["y"]) <= bottom
    assert screenshot.svg(with_settings(seen_for_pictures(), theme=name, zoom=2)) == drawn


@pytest.mark.parametrize("zoom", [1, 2])
def test_men_are_drawn_as_large_as_their_squares(zoom: int) -> None:
    """No font has a say in how large they are, nor whether lines meet: renderers differ in that. Nothing that is
    filled is drawn over a sign."""
    seen = view("brandubh", settings=Settings(theme="light", zoom=zoom))
    drawn = screenshot.svg(seen)
    root = ET.fromstring(drawn)
    names = "{http://www.w3.org/2000/svg}"
    shapes = [element for element in root.iter() if element.tag.removeprefix(names) in ("circle", "polygon")]
    board = [shape for shape in shapes if float(shape.attrib.get("r", 6)) >= 6 * zoom - 1]
    attackers = [shape for shape in board if shape.attrib["fill"] == THEMES["light"]["attacker"].fore]
    assert len(attackers) == 8
    assert all(float(man.attrib["r"]) >= 6 * zoom for man in attackers)
    king = next(shape for shape in shapes if shape.attrib["fill"] == THEMES["light"]["king"].fore)
    corners = [tuple(map(float, point.split(","))) for point in king.attrib["points"].split()]
    assert max(x for x, _ in corners) - min(x for x, _ in corners) >= 12 * zoom
    written = {sign for element in root.iter(f"{names}text") for sign in element.text or ""}
    assert not set("●○♚◇╳░▒█─│┌┼┘") & written
    order = [element.tag.removeprefix(names) for element in root.iter()]
    assert max(at for at, tag in enumerate(order) if tag == "rect") < order.index("circle")


@pytest.mark.parametrize(
    "name", ["copenhagen", "alea-evangelii", "tablut-bologna", "hex:9", "hexapawn", "ard-ri"]
)
def test_pictures_of_every_kind_of_board(name: str) -> None:
    for zoom in (1, 2, 3):
        for columns, rows in ((80, 24), (30, 14), (10, 5)):
            ET.fromstring(screenshot.svg(view(name, settings=Settings(zoom=zoom)), columns, rows))


def test_a_picture_shows_nothing_that_passes(tmp_path: Path) -> None:
    seen = replace(seen_for_pictures(), compiling="compiling: 3/9 search", paused=True)
    command._write_screen(argparse.ArgumentParser(), SimpleNamespace(view=seen), str(tmp_path / "now.txt"))  # type: ignore[arg-type]
    shown = (tmp_path / "now.txt").read_text("utf-8")
    assert "compiling" not in shown
    assert "paused" not in shown
    assert "compiling" in screenshot.text(seen)


def test_pictures_are_written_by_the_ending_of_the_name(tmp_path: Path) -> None:
    seen = seen_for_pictures()
    screenshot.write(seen, tmp_path / "board.txt")
    screenshot.write(seen, str(tmp_path / "board.svg"))
    assert (tmp_path / "board.txt").read_text("utf-8") == screenshot.text(seen)
    assert (tmp_path / "board.svg").read_text("utf-8").startswith("<svg ")
    with pytest.raises(ValueError, match=r"'board\.png': expected a name that ends in \.svg or \.txt"):
        screenshot.write(seen, tmp_path / "board.png")
    with pytest.raises(OSError):
        screenshot.write(seen, tmp_path / "none" / "board.svg")


@pytest.mark.process
def test_drawing_needs_no_terminal_library_and_no_compiler() -> None:
    program = "import hnefi.gui_adapter.terminal.screenshot, sys; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"prompt_toolkit", "numba", "numpy", "asyncio"} & set(ran.stdout.split())
