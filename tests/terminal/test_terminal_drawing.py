"""What the terminal draws: boards, panes, screens and pictures of them, from views alone."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

import pytest
from terminal_views import board, lines_of, move, played, view, with_settings

from hnefi.engine.games import everything
from hnefi.gui_adapter.terminal import theme
from hnefi.gui_adapter.terminal.drawing import (
    BRACKETS,
    FILES,
    SPARE,
    Picture,
    draw,
    lay_out,
    legend,
    picture,
    plain,
)
from hnefi.gui_adapter.terminal.screen import compose
from hnefi.gui_adapter.terminal.settings import AUTO, Settings
from hnefi.gui_adapter.terminal.theme import ASCII, THEMES, UNICODE
from hnefi.gui_adapter.terminal.values import (
    SWAP,
    Clock,
    LogLine,
    Move,
)
from hnefi.protocol.hosts.text_table import clip, pad, safe, table, width

VARIANTS = [variant.name for variant in everything()]
BOARDS = [
    "hexapawn:3x3",
    "hexapawn:4x12",
    "mini-cross",
    "brandubh",
    "tablut-ashton",
    "copenhagen",
    "alea-ludii",
    "hex:2",
    "hex:19",
]
"""One of every kind and of every extreme size."""
SIZES = {
    "brandubh": 7,
    "tablut-ashton": 9,
    "copenhagen": 11,
    "copenhagen-13": 13,
    "historical-15": 15,
    "alea-ludii": 19,
}


def text_of(shown: Picture) -> str:
    return "\n".join(plain(line) for line in shown.lines)


def grid(shown: Picture) -> list[str]:
    """The drawn rows, padded to one width."""
    lines = [plain(line) for line in shown.lines]
    widest = max(map(len, lines))
    return [line.ljust(widest) for line in lines]


# Boards


def test_a_whole_board() -> None:
    seen = view("brandubh", board_facts={"last": ("a4", "a2"), "taken": ("d3",)})
    assert text_of(picture(seen, colour=False)).splitlines() == [
        "  a b c d e f g",
        "7 x . . t . . x 7",
        "6 . . . t . . . 6",
        "5 . . . T . . . 5",
        "4(t)t T K T t t 4",
        "3 . . .{T}. . . 3",
        "2[.]. . t . . . 2",
        "1 x . . t . . x 1",
        "  a b c d e f g",
    ]


def test_a_turned_board_is_turned_not_mirrored() -> None:
    seen = replace(view("brandubh", board_facts={"last": ("a4", "a2")}), flipped=True)
    drawn = text_of(picture(seen, colour=False)).splitlines()
    assert drawn[0] == drawn[-1] == "  g f e d c b a"
    assert [line[0] for line in drawn[1:-1]] == list("1234567")
    assert drawn[2] == "2 . . . t . .[.]2"


def test_hex_is_slanted_and_shows_what_each_side_joins() -> None:
    seen = view("hex:3", "3/1x1/o2")
    assert text_of(picture(seen, colour=False)).splitlines() == [
        "   a b c".removeprefix(" "),
        "   x x x",
        "3 o . . . o 3",
        " 2 o . x . o 2",
        "  1 o o . . o 1",
        "       x x x",
        "        a b c",
    ]


def test_hexapawn_is_plain() -> None:
    assert text_of(picture(view("hexapawn:4x3"), colour=False)).splitlines() == [
        "  a b c",
        "4 p p p 4",
        "3 . . . 3",
        "2 . . . 2",
        "1 P P P 1",
        "  a b c",
    ]


@pytest.mark.parametrize("name", VARIANTS)
def test_every_man_of_every_variant_stands_on_its_square(name: str) -> None:
    for zoom in (1, 2, 3):
        for flipped in (False, True):
            check_men(name, zoom, flipped)


def check_men(name: str, zoom: int, flipped: bool) -> None:
    seen = replace(with_settings(view(name), zoom=zoom), flipped=flipped)
    shown = picture(seen, colour=False)
    assert shown.layout is not None
    assert shown.note == ""
    drawn = grid(shown)
    seen_squares = set()
    for rank, number in enumerate(shown.layout.ranks):
        for file, index in enumerate(shown.layout.files):
            square = f"{FILES[index]}{number}"
            column, row = shown.layout.middle(file, rank)
            letter = seen.board.at(square)
            kind = seen.board.special.get(square, "")
            assert drawn[row][column] == (letter if letter != "." else ASCII.squares.get(kind, "."))
            assert shown.square_at(column, row) == square
            seen_squares.add(square)
    assert len(seen_squares) == seen.board.files * seen.board.ranks


@pytest.mark.parametrize("name", ["brandubh", "copenhagen", "alea-ludii", "hex:5", "hexapawn:4x3"])
@pytest.mark.parametrize("flipped", [False, True])
def test_labels_name_their_files_and_ranks(name: str, flipped: bool) -> None:
    shown = picture(replace(view(name), flipped=flipped), colour=False)
    assert shown.layout is not None
    drawn = grid(shown)
    for rank, number in enumerate(shown.layout.ranks):
        _, row = shown.layout.middle(0, rank)
        numbers = re.findall(r"\d+", drawn[row])
        assert numbers == [str(number)] * 2
    for labels in (drawn[0], drawn[-1]):
        assert labels.split() == [FILES[index] for index in shown.layout.files]
    assert shown.layout.ranks[0] == (1 if flipped else shown.layout.ranks[0])


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_every_size_fits_a_usual_terminal(name: str, size: int) -> None:
    """24 lines: a status line, the whole board with labels on all edges, a line said last, the line to type in."""
    shown = compose(view(name, log=(LogLine(1, "hello", "reply"),)), 80, 23, colour=False)
    assert shown.board.layout is not None
    assert shown.board.note == ""
    assert (len(shown.board.layout.files), len(shown.board.layout.ranks)) == (size, size)
    assert shown.board.layout.edges == 2
    assert len(shown.lines) == 23
    assert plain(shown.lines[-1]) == "hello"


@pytest.mark.parametrize("name", BOARDS)
@pytest.mark.parametrize(
    ("columns", "rows"), [(80, 23), (40, 14), (20, 10), (9, 5), (3, 2), (1, 1), (200, 60)]
)
@pytest.mark.parametrize("zoom", [1, 3])
def test_nothing_is_larger_than_the_screen(name: str, columns: int, rows: int, zoom: int) -> None:
    seen = with_settings(
        view(name, log=(LogLine(1, "word " * 30, "news"),), clock=Clock(1, 1, (1, 1)), names=("a" * 50, "b")),
        zoom=zoom,
    )
    for signs in (ASCII, UNICODE):
        shown = compose(seen, columns, rows, signs=signs, colour=False)
        assert len(shown.lines) == rows
        assert all(width(plain(line)) <= columns for line in shown.lines)


def test_less_room_less_board() -> None:
    seen = view("copenhagen")
    whole = lay_out(11, 11)
    assert whole is not None
    assert (whole.columns, whole.rows, whole.wide) == (27, 13, 2)
    tight = lay_out(11, 11, 26, 13)
    assert tight is not None
    assert (tight.columns, tight.rows, tight.wide, tight.edges) == (17, 13, 1, 2)
    bare = lay_out(11, 11, 26, 12)
    assert bare is not None
    assert (bare.columns, bare.rows, bare.edges) == (14, 12, 1)
    assert "little room" in bare.note
    part = picture(seen, 26, 9, colour=False)
    assert part.layout is not None
    assert part.note == "part only: the board needs 14x12"
    assert picture(seen, 4, 2).layout is None
    assert "no room" in picture(seen, 4, 2).note


def test_a_part_of_the_board_is_the_part_where_something_happens() -> None:
    for square in ("a1", "s19", "j10", "a19"):
        seen = view("alea-ludii", board_facts={"last": ("j10", square)})
        shown = picture(seen, 12, 8)
        assert shown.layout is not None
        visible = {f"{FILES[file]}{rank}" for file in shown.layout.files for rank in shown.layout.ranks}
        assert square in visible


@pytest.mark.parametrize(
    ("name", "columns", "rows", "wide"),
    [("copenhagen", 200, 60, 8), ("copenhagen", 120, 40, 4), ("copenhagen", 80, 24, 2), ("copenhagen", 0, 0, 2),
     ("brandubh", 80, 24, 2), ("brandubh", 80, 40, 8), ("brandubh", 40, 40, 4)],
)  # fmt: skip
def test_cells_are_as_large_as_the_room_allows(name: str, columns: int, rows: int, wide: int) -> None:
    seen = view(name)
    assert seen.settings.zoom == AUTO
    shown = picture(seen, columns, rows, colour=False)
    assert shown.layout is not None
    assert (shown.layout.wide, shown.note) == (wide, "")
    assert len(shown.lines) + SPARE <= rows or wide == 2


@pytest.mark.parametrize(
    ("name", "rows", "wide"), [("copenhagen", 24, 2), ("copenhagen", 70, 4), ("brandubh", 70, 8)]
)
def test_a_board_at_the_prompt_takes_half_of_the_height(name: str, rows: int, wide: int) -> None:
    drawn = plain(draw(view(name), 199, rows, colour=False)).splitlines()
    frames = [line.strip() for line in drawn if "---" in line]
    cells = {line.index("+", 1) for line in frames}
    assert cells == ({wide} if wide > 2 else set())
    assert len(drawn) <= rows // 2 + 3 or wide == 2, "the captions come on top"


def test_zoom_gives_way_and_says_so() -> None:
    seen = with_settings(view("copenhagen"), zoom=3)
    shown = picture(seen, 80, 25, colour=False)
    assert shown.note == "zoom 3 has no room here: zoom 2"
    assert picture(seen, 80, 24, colour=False).note == "zoom 3 has no room here: zoom 1"


def test_special_squares_have_signs_of_their_own() -> None:
    seen = view("tablut-ashton", "9/9/9/9/9/9/9/9/9")
    assert {"throne", "camp"} <= set(seen.board.special.values())
    drawn = text_of(picture(seen, colour=False, signs=UNICODE))
    kinds = set(seen.board.special.values())
    for kind in kinds:
        count = sum(1 for value in seen.board.special.values() if value == kind)
        assert drawn.count(UNICODE.squares[kind]) == count
    for signs in (ASCII, UNICODE):
        assert len({*signs.squares.values(), signs.empty}) == len(signs.squares) + 1


def test_marks_of_a_move() -> None:
    facts = {"last": ("a4", "a2"), "taken": ("d3", "d5")}
    styles = {}
    shown = picture(view("brandubh", board_facts=facts), signs=UNICODE)
    assert shown.layout is not None
    for row, line in enumerate(shown.lines):
        column = 0
        for style, text in line:
            for at in range(column, column + len(text)):
                square = shown.square_at(at, row)
                if square:
                    styles.setdefault(square, set()).add(style.split()[-1])
            column += len(text)
    marked = {
        square: style
        for square, style in styles.items()
        if style & {"class:last", "class:source", "class:taken"}
    }
    assert marked == {
        "a4": {"class:source"},
        "a2": {"class:last"},
        "d3": {"class:taken"},
        "d5": {"class:taken"},
    }


def test_the_chosen_man_shows_where_it_may_go_and_what_it_would_take() -> None:
    legal = (move("d2c2"), move("d2e2", "e3"), move("a4a2"))
    drawn = text_of(picture(view("brandubh", legal=legal), colour=False, chosen="d2"))
    assert "2 . .<./t<.>. . 2" in drawn
    shown = picture(view("brandubh", legal=legal), chosen="d2")
    styles = " ".join(style for line in shown.lines for style, _ in line)
    assert "class:target" in styles
    assert "class:prize" in styles
    assert "class:chosen" in styles


def test_a_swap_has_no_square() -> None:
    seen = view("hex-swap:5", legal=(Move(SWAP, "", ""), move("c3")))
    assert "<" not in text_of(picture(seen, colour=False))
    assert text_of(picture(seen, colour=False, chosen="c3")).count("/") == 2


def test_without_colours_nothing_depends_on_them() -> None:
    """Every mark has brackets of its own but those for quiet moves and captures, which only a choice shows."""
    assert len({BRACKETS[mark] for mark in ("last", "source", "taken", "chosen", "target")}) == 5


@pytest.mark.parametrize("name", VARIANTS)
def test_drawn_signs_are_one_column_wide(name: str) -> None:
    drawn = text_of(picture(with_settings(view(name), zoom=2), signs=UNICODE, colour=False))
    assert all(unicodedata.east_asian_width(sign) not in "WF" for sign in drawn)
    assert text_of(picture(view(name), colour=False)).isascii()


def test_the_legend_tells_of_what_is_on_the_board() -> None:
    told = legend(view("brandubh"), colour=True, signs=ASCII)
    assert told == ["t attackers | T defenders | K the king | + throne | x corner"]
    assert "[ ] last move" in legend(view("brandubh"), colour=False, signs=ASCII)[1]
    # In Hex the sides are called after letters that the drawn stones do not show, and an empty board has no stones.
    hex_ = replace(view("hex:5"), sides=("x", "o"))
    assert legend(hex_, colour=True, signs=UNICODE) == ["● x (top to bottom) · ○ o (left to right)"]


def test_the_full_screen_tells_it_before_the_first_move() -> None:
    shown = "\n".join(lines_of(view("brandubh"), 80, 23))
    assert "K the king" in shown
    assert "K the king" not in "\n".join(lines_of(view("brandubh", history=played(1, 1), ply=1), 80, 23))
    assert "camp of the attackers" in "\n".join(lines_of(view("tablut-ashton"), 80, 23))


def test_draw_is_the_board_and_what_is_said_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    seen = view("brandubh", board_facts={"captures": (2, 1), "last": ("d1", "d3")})
    printed = plain(draw(seen, 80, colour=False))
    assert printed.endswith("  a b c d e f g\nattackers to move\ncaptures: attackers 2, defenders 1\n")
    assert "[t]" not in plain(draw(replace(seen, settings=Settings(glyphs="ascii", colour="yes")), 80))
    assert "little room" in plain(draw(view("copenhagen"), 20, colour=False))


# Colours and signs


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", THEMES)
def test_men_can_be_told_from_every_ground(name: str) -> None:
    """4.5 is what the guidelines of the web ask of text."""
    for ground in ("", "source", "last", "taken", "chosen", "target", "prize"):
        for man in ("attacker", "defender", "king"):
            ink = theme.inked(f"class:board class:{man} class:{ground}", name)
            assert contrast(ink.fore, ink.back) >= 4.5, (man, ground)
    for words in (
        "dim",
        "error",
        "news",
        "reply",
        "title",
        "running",
        "current",
        "prompt",
        "status",
        "label",
    ):
        ink = theme.inked(f"class:{words}", name)
        assert contrast(ink.fore, ink.back) >= 4.5, words


def test_all_themes_have_the_same_classes() -> None:
    assert len({frozenset(inks) for inks in THEMES.values()}) == 1
    assert set(THEMES) == {"dark", "light", "contrast"}


@pytest.mark.parametrize("name", THEMES)
def test_styles_are_understood_by_the_library(name: str) -> None:
    from prompt_toolkit.styles import Style

    Style.from_dict(theme.style(Settings(theme=name)))
    Style.from_dict(theme.plain_style())


@pytest.mark.parametrize(
    ("colour", "environment", "wanted"),
    [
        ("auto", {}, True),
        ("auto", {"NO_COLOR": "1"}, False),
        ("auto", {"NO_COLOR": ""}, True),
        ("auto", {"TERM": "dumb"}, False),
        ("yes", {"NO_COLOR": "1"}, True),
        ("no", {}, False),
    ],
)
def test_whether_there_are_colours(colour: str, environment: dict[str, str], wanted: bool) -> None:
    assert theme.colourful(Settings(colour=colour), environment) is wanted


@pytest.mark.parametrize(
    ("glyphs", "environment", "encoding", "wanted"),
    [
        ("auto", {}, "utf-8", UNICODE),
        ("auto", {}, "ANSI_X3.4-1968", ASCII),
        ("auto", {"TERM": "linux"}, "utf-8", ASCII),
        ("auto", {"LANG": "ja_JP.UTF-8"}, "UTF-8", ASCII),
        ("auto", {"LANG": "ja_JP.UTF-8", "LC_ALL": "C.UTF-8"}, "UTF-8", UNICODE),
        ("unicode", {}, "ascii", UNICODE),
        ("ascii", {}, "utf-8", ASCII),
    ],
)
def test_which_signs(glyphs: str, environment: dict[str, str], encoding: str, wanted: theme.Glyphs) -> None:
    assert theme.glyphs(Settings(glyphs=glyphs), environment, encoding) is wanted


def test_foreign_text_moves_nothing() -> None:
    assert safe("a\x1b[31mb\u202ec\n") == "a?[31mb?c?"
    assert width("日本e\u0301") == 5
    assert clip("日本語", 5) == "日本…"
    assert clip("abc", 0) == ""
    assert pad("ab", 4) == "ab  "


def test_boards_know_their_letters() -> None:
    start = board("brandubh")
    assert [start.at(square) for square in ("d4", "a4", "a1", "d7")] == ["K", "t", ".", "t"]


@pytest.mark.parametrize(("columns", "cut"), [("80", True), ("200", False)])
def test_names_in_tables_are_cut_where_there_is_no_room(
    monkeypatch: pytest.MonkeyPatch, columns: str, cut: bool
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    rows = table(("engine", "what"), [("random-blind", "x" * 70)], left=(0,), free=0)
    assert ("random-blind" in rows[1]) is not cut
