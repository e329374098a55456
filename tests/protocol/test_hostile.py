"""Rules, positions and variants from people who mean no good: refused by name of the place, quickly, in little memory.

Each table has one text a line, and what its refusal must say. The doors are those that a user has: the readers of
rules strings, FENs and variant files, and the lines of an engine process, whose game must stand as before.
"""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conversation import Conversation

from hnefi.engine import games
from hnefi.engine.games.tafl import otn, variant
from hnefi.engine.games.tafl.fen import SetupError, parse_fen
from hnefi.engine.games.tafl.otn import OtnError
from hnefi.engine.games.tafl.variant import Variant, VariantError

SECONDS = 20.0
"""Of the processor, for one text; the worst of them take a hundredth of it, several times as much where the machine is
busy."""
MEGABYTES = 16.0
"""Of memory beyond the text itself."""

ROWS = "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3"
START = f"start:/{ROWS}/"
RTL = "\u202e"
CROWN = "\U0001f451"


def within_bounds(read: Callable[[], object]) -> object:
    """What `read` returns or raises, unless it takes too much time or memory."""
    tracemalloc.start()
    began = time.process_time()
    try:
        return read()
    finally:
        seconds = time.process_time() - began
        megabytes = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        assert seconds < SECONDS
        assert megabytes < MEGABYTES


def check_words(message: str, wanted: str) -> None:
    """An error must say what is wanted, on one line of bounded length without anything that moves a cursor."""
    assert wanted in message
    assert len(message) < 400
    assert message.isprintable()


# Rules strings without a board to play on.
NO_GAME = [
    ("", "no start position: expected start:/3t3"),
    ("dim:7", "no start position"),
    (ROWS, "no start position"),
    ("start:", "start: '': expected no empty row"),
    ("start:" + "/" * 40, "expected no empty row"),
    (f"start:/{ROWS.replace('/', '//')}/", "expected no empty row"),
    ("start:/K1/2/", "start: 2 rows: expected 3 to 19"),
    ("dim:40 start:/" + "40/" * 40, "start: 40 rows: expected 3 to 19"),
    ("dim:20 start:/" + "20/" * 19 + "K19/", "start: 20 rows: expected 3 to 19"),
    ("start:/" + ("t" * 40 + "/") * 40, "at most 19 of 19 squares"),
    ("start:/" + "7/" * 7, "start: '7/7/7/7/7/7/7': expected exactly one K"),
    ("start:/" + ROWS.replace("K", "1"), "expected exactly one K"),
    (f"start:/{ROWS[:-3]}3K3/", "start: 2 kings, on d4 and d7: expected one"),
    ("start:/" + "K6/" * 7, "start: 7 kings, on a1 and a2: expected one"),
    (f"start:/{ROWS[:-3]}3t4/", "start: row '3t4' has 8 squares: expected 7, as many as rows"),
    (f"starti:/{ROWS[:-4]}/", "starti: row '3t3' has 7 squares: expected 6, as many as rows"),
    (f"start:/{ROWS[:-3]}03t3/", "start: row '03t3': '03' is no number of empty squares"),
    (f"start:/{ROWS[:-3]}3\u00b32/", "start: row '3\u00b32': '\u00b3' is no piece"),
    (f"start:/{ROWS[:-3]}\u0667/", "start: row '\u0667': '\u0667' is no piece"),
    (f"start:/{ROWS.replace('K', chr(0x41A))}/", "start: row 'ttT\u041aTtt': '\u041a' is no piece"),
    (f"start:/{ROWS.replace('T', 'D')}/", "start: row '3D3': the letters 'Dt' mix two alphabets"),
    (f"start:/{ROWS.replace('ttTK', 'taTK')}/", "start: row 'taTKTtt': the letters 'KTat' mix two alphabets"),
    (f"start:/{ROWS[:-3]}t2t3/", "start: t on a7: expected no t on a corner, where it may not stop"),
    (f"start:/{ROWS.replace('KT', 'TK')}/", "start: T on d4: expected no T on the throne"),
    (f"start:/{RTL}{ROWS}/", r"'\u202e' is no piece"),
    (f"start:/{ROWS}\x00/", r"'\x00' is no piece"),
    ("x" * 10_000_000, "expected at most 65536 characters, not 10000000"),
    ("a:b " * 2_500_000, "expected at most 65536 characters, not 10000000"),
    ("start:/" + "9" * 60_000, "at most 19 of 19 squares"),
]


@pytest.mark.parametrize(("text", "wanted"), NO_GAME, ids=range(len(NO_GAME)))
def test_rules_strings_without_a_game(text: str, wanted: str) -> None:
    with pytest.raises(OtnError) as caught:
        within_bounds(lambda: otn.import_rules(text))
    check_words(str(caught.value), wanted)


# Rules strings of which a part is refused and named, and the rest is used.
PARTS = [
    ("foo:1", "'foo:1': expected a known key"),
    ("hello", "'hello': expected key:value"),
    (":", "':': expected key:value"),
    (":x", "':x': expected key:value"),
    ("esc:C", "'esc:C': expected one of c, e"),
    ("esc:ce", "'esc:ce': expected one of c, e"),
    ("ks:", "'ks:': expected one of s, c, m, w, y, n"),
    ("tfr:d tfr:w", "'tfr:w': tfr was given before"),
    ("dim:9", "'dim:9': dim was given before"),
    (f"start:/{ROWS}/", "start was given before"),
    ("starti:/K", "'starti:/K': start was given too"),
    ("cor:a1,h8", "'cor:a1,h8': no square h8 on this 7x7 board"),
    ("cor:a\u0661", "'a\u0661' is not a square"),
    ("cor:\x00", r"'cor:\x00': '\x00' is not a square"),
    ("cen:d4;d5", "'d4;d5' is not a square"),
    ("cor:none,a1", "'cor:none,a1': none stands alone"),
    ("cor:" + "a1," * 1400, "expected at most 4096 characters"),
    ("cen:a1", "corners: 'a1,a7,g1,g7': expected one terrain on each square, but a1 is in throne too"),
    ("afor:d4", "attacker_camps: 'd4': expected one terrain on each square, but d4 is in throne too"),
    (
        "afor:b2 dfor:b2",
        "defender_camps: 'b2': expected one terrain on each square, but b2 is in attacker_camps",
    ),
    ("spd:-2", "'spd:-2': '-2' is not a number from -1 to 99"),
    ("spd:\u0663", "'\u0663' is not a number from -1 to 99"),
    ("spd:" + "9" * 4000, "is not a number from -1 to 99"),
    ("spd:" + "1," * 2000, "expected 1, 2, 8, 10, 12 numbers"),
    (f"corh:{RTL}K", r"'corh:\u202eK': no piece has the letter \u202e"),
    (f"corh:{CROWN * 4000}", f"no piece has the letter {CROWN}"),
    (f"{RTL}x:1", r"'\u202ex:1': expected a known key"),
    (f"{RTL}:1 {RTL}:2", r"'\u202e:2': \u202e was given before"),
    ("name:../../x", "'name:../../x': expected letters, digits, - _ or ."),
    ("name:" + "x" * 65, "expected letters, digits, - _ or ."),
    (f"{'k' * 4000}:1 {'k' * 4000}:2", "was given before"),
]


@pytest.mark.parametrize(("keys", "wanted"), PARTS, ids=range(len(PARTS)))
def test_rules_strings_of_which_a_part_is_refused(keys: str, wanted: str) -> None:
    def read() -> tuple[Variant, list[str]]:
        return otn.import_rules(f"dim:7 efe:y {START} {keys}")

    found, problems = within_bounds(read)  # type: ignore[misc]
    assert any(wanted in problem for problem in problems), problems
    for problem in problems:
        check_words(problem, "expected" if "expected" in problem else "")
    assert found.rules.exit_fort, "the rest is used"
    assert found.rows == ROWS


def test_thirty_thousand_problems_are_counted() -> None:
    _, problems = within_bounds(lambda: otn.import_rules(f"dim:7 {START} " + "a " * 30_000))  # type: ignore[misc]
    assert len(problems) == 51
    assert problems[-1] == "29950 more words: not understood"


# Positions.
FENS = [
    ("", "no position: expected rows such as 3t3"),
    ("\x00", r"board '\x00': 1 row: expected 3 to 19"),
    ("/", "board '/': '/': expected no empty row"),
    ("moves", "board 'moves': 1 row: expected 3 to 19"),
    ("/".join(["40"] * 40), "40 rows: expected 3 to 19"),
    ("/".join(["t" * 40] * 40), "at most 19 of 19 squares"),
    ("t" * 10_000_000, "expected at most 4096 characters"),
    ("/" * 10_000_000, "expected at most 4096 characters"),
    ("7/" * 1000 + "7", "at most 19 of 19 squares"),
    ("9" * 700 + "/7" * 6, "'99999999999999999999…' is no number of empty squares"),
    (f"{ROWS[:-4]}", "6 rows: expected 7"),
    (f"{ROWS}/7", "8 rows: expected 7"),
    (f"{ROWS[:-3]}3t4", "row '3t4' has 8 squares: expected 7, as many as rows"),
    (f"{ROWS[:-3]}07", "row '07': '07' is no number of empty squares"),
    ("\u0667/7/7/3K3/7/7/7", "row '\u0667': '\u0667' is no piece"),
    (ROWS.replace("/", "\\"), "1 row: expected 3 to 19"),
    (ROWS.replace("K", "k"), "row 'ttTkTtt': the letters 'Tkt' mix two alphabets"),
    (RTL + ROWS, r"row '\u202e3t3': '\u202e' is no piece"),
    ("K5K/7/7/7/7/7/7", "2 kings, on a7 and g7: expected one"),
    ("KKKKKKK/7/7/7/7/7/7", "7 kings, on a7 and b7: expected one"),
    ("6t/7/7/3K3/7/7/7", "t on g7: expected no t on a corner, where it may not stop"),
    ("7/7/7/3t3/7/7/K6", "t on d4: expected no t on the throne, where it may not stop"),
    (f"{ROWS} w", "side 'w': expected a or d"),
    (f"{ROWS} a -1", "plies since the last capture '-1': expected a whole number from 0 to 999999"),
    (f"{ROWS} a \u0663", "plies since the last capture '\u0663'"),
    (f"{ROWS} a 1e3", "plies since the last capture '1e3'"),
    (f"{ROWS} a 0 0", "move number '0': expected a whole number from 1 to 999999"),
    (f"{ROWS} a 0 {'9' * 4000}", "move number '999"),
    (f"{ROWS} a 0 1 d", "'d' after the move number: expected nothing more, or key=value"),
    (f"{ROWS} a=d", "field 'a=d': expected berserk=<square> or caps=<by a>,<by d>"),
    (f"{ROWS} a 0 1 caps=-1,0", "men taken '-1': expected a whole number from 0 to 361"),
    (f"{ROWS} a 0 1 caps=1,2,3", "field 'caps=1,2,3': expected two numbers"),
    (f"{ROWS} a 0 1 caps=1,1 caps=2,2", "field 'caps=2,2': expected each field once"),
    (f"{ROWS} a 0 1 berserk=z9", "field 'berserk=z9': 'z9' is not a square"),
    (f"{ROWS} a 0 1 berserk=a1", "field 'berserk=a1': expected the square of a piece"),
    (f"{ROWS} a 0 1 berserk=d7", "berserk=d7: expected no berserk field in a game without berserk moves"),
    (f"{ROWS} a 0 1 \x1b[2J=1", r"field '\x1b[2J=1': expected berserk"),
]


@pytest.mark.parametrize(("text", "wanted"), FENS, ids=range(len(FENS)))
def test_positions(text: str, wanted: str) -> None:
    brandubh = variant.find("brandubh")
    games.initial(brandubh)  # the kernels' memory is not this text's
    with pytest.raises(ValueError) as caught:
        within_bounds(lambda: games.from_fen(brandubh, text))
    check_words(str(caught.value), wanted)


@pytest.mark.parametrize("text", [text for text, _ in FENS], ids=range(len(FENS)))
def test_positions_without_rules(text: str) -> None:
    """The reader alone knows no rules, so it may read what cannot stand; else it says the same things."""
    try:
        within_bounds(lambda: parse_fen(text))
    except SetupError as error:
        check_words(str(error), "expected")


# Variant files.
HEAD = f'name = "x"\nstart = "{ROWS}"\n'
FILES = [
    ("", "x.toml: name: None: expected a name"),
    ("\x00", "x.toml: not TOML: "),
    ("name = ", "x.toml: not TOML: Invalid value (at end of document)"),
    (f'{HEAD}name = "y"\n', "not TOML: Cannot overwrite a value (at line 3"),
    (f"{HEAD}[rules]\n[rules]\n", "not TOML: Cannot declare ('rules',) twice (at line 4"),
    (f"{HEAD}[rules]\nking_sides = 2\nking_sides = 4\n", "not TOML: Cannot overwrite a value (at line 5"),
    (f"{HEAD}[rules]\nking_sides = \u0662\n", "not TOML: Invalid value (at line 4"),
    (f"{HEAD}[rules]\nking_sides = 04\n", "not TOML: "),
    (f"x = {'[' * 30_000}{']' * 30_000}", "not TOML: lists or tables nested too deep"),
    (f"x = {'{a=' * 15_000}", "not TOML: lists or tables nested too deep"),
    (f"{HEAD}[rules]\nzones = {'[' * 300}{']' * 300}\n", "zones: [[["),
    (f"{'a.' * 32_000}a = 1", "line 1: expected at most 64 dots"),
    (f"{HEAD}[rules]\nzones.{'a.' * 30_000}a = 1", "line 4: expected at most 64 dots"),
    (f"[{'a.' * 30_000}a]", "line 1: expected at most 64 dots"),
    (f"x = {'9' * 60_000}", "not TOML: a number that cannot be read"),
    (f"{HEAD}[rules]\nmove_limit = {'9' * 4000}\n", "move_limit: a huge number: expected a whole number from 0"),
    (f"{HEAD}[rules]\nmove_limit = -1\n", "move_limit: -1: expected a whole number from 0 to 1000000"),
    (f"{HEAD}[rules]\nmove_limit = 1.5\n", "move_limit: 1.5: expected a whole number"),
    (f"{HEAD}[rules]\nmove_limit = nan\n", "move_limit: nan: expected a whole number"),
    (f'{HEAD}[rules]\nmove_limit = "\u0663"\n', "move_limit: '\u0663': expected a whole number"),
    (f"{HEAD}[rules]\nmove_limit = 1979-05-27\n", "move_limit: datetime.date(1979, 5, 27): expected"),
    (f"{HEAD}[rules]\nquiet_limit = true\n", "quiet_limit: True: expected a whole number"),
    (f"{HEAD}[rules]\nrepetition_count = 1\n", "repetition_count: 1: expected a whole number from 2"),
    (f"{HEAD}[rules]\nking_sides = 3\n", "king_sides: 3: expected one of 4, 2"),
    (f"{HEAD}[rules]\nking_side = 2\n", "king_side: 2: expected the name of a rule switch (did you mean king_sides?)"),
    (f'{HEAD}[rules]\n"{RTL}" = 2\n', r"\u202e: 2: expected the name of a rule switch"),
    (f"{HEAD}[rules]\nrules.throne = 1\n", "rules: {'throne': 1}: expected the name of a rule switch"),
    (f'{HEAD}[rules]\nthrone = {{ at = "d4" }}\n', "throne: {'at': 'd4'}: expected squares"),
    (f'{HEAD}[rules]\nthrone = "h8"\n', "throne: 'h8': expected squares such as a1,d4"),
    (f'{HEAD}[rules]\nthrone = "none,d4"\n', "throne: 'none,d4': expected squares"),
    (f'{HEAD}[rules]\nthrone = "a1"\n', "corners: 'a1,a7,g1,g7': expected one terrain on each square, but a1"),
    (f'{HEAD}[rules]\ncamp_soft = "d3"\n', "camp_soft: 'd3': expected camp squares, but d3 is in no camp"),
    (f'{HEAD}[rules]\nspeed = "t:2,t:3"\n', "speed: 't:2,t:3': expected"),
    (f'{HEAD}[rules]\nspeed = "t:-1"\n', "speed: 't:-1': expected"),
    (f'{HEAD}[rules]\nzones = "c9:K:stop"\n', "(no square c9 on this 7x7 board)"),
    (f'{HEAD}[rules]\nzones = "c5:K:jump"\n', "('jump' is not pass, stop or both)"),
    (f'{HEAD}[rules]\nmaterial_draw = "50 1"\n', "material_draw: '50 1': expected two whole numbers"),
    (f"{HEAD}[rules]\nsize = 9\n", "size: 9: expected 7, the size of the board"),
    (f'{HEAD}[rules]\nfirst = "{"a" * 60_000}"\n', "first: 'aaa"),
    (f"{HEAD}rule = 1\n", "rule: 1: expected one of name, aliases, source, description, start, rules"),
    (f"{HEAD}rules = [1]\n", "rules: [1]: expected a table of switches"),
    (f'{HEAD}aliases = ["{RTL}"]\n', r"name and aliases: ['x', '\u202e']: expected letters"),
    (f'name = "../x"\nstart = "{ROWS}"\n', "name and aliases: ['../x']: expected letters"),
    ('name = "x"\nstart = 7\n', "start: 7: expected rows joined by / or a list of rows"),
    (f'name = "x"\nstart = [{"[]," * 10_000}]\n', "start: [[], []"),
    (f'name = "x"\nstart = "{ROWS.replace("K", "1")}"\n', "start: '3t3/3t3/3T3/ttT1Ttt/3T3/3t3/3t3': expected"),
    (f'name = "x"\nstart = "{"K6/" * 7}"\n', "start: 7 kings, on a1 and a2: expected one"),
    (f'name = "x"\nstart = "{"/".join(["40"] * 40)}"\n', "start: 40 rows: expected 3 to 19"),
    (f'name = "x"\nstart = {["t" * 1000] * 19}\n', "has 1,000 squares: expected 19, as many as rows"),
    (f'name = "{"x" * 10_000_000}"', "expected at most 65536 characters, not 10000009"),
    ("a = 1\n" * 2_000_000, "expected at most 65536 characters, not 12000000"),
    ("[[a]]\n" * 10_000, "a: [{}, {}"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), FILES, ids=range(len(FILES)))
def test_variant_files(text: str, wanted: str) -> None:
    with pytest.raises(VariantError) as caught:
        within_bounds(lambda: variant.parse(text, "x.toml"))
    check_words(str(caught.value), wanted)
    assert str(caught.value).startswith("x.toml: ")


# One engine process, whose game must not change.
LINES = [
    *((f"rules {text}", wanted) for text, wanted in NO_GAME if text and len(text) < 60_000),
    ("rules opentafl", "no start position"),
    ("rules opentafl start:/" + "40/" * 40, "40 rows: expected 3 to 19"),
    ("setoption name Rules value dim:7 start:/7/7/7/7/7/7/7/", "expected exactly one K"),
    *((f"position fen {text}", wanted) for text, wanted in FENS[1:] if len(text) < 60_000 and text != "moves"),
    ("position otn /" + "40/" * 40, "40 rows: expected 3 to 19"),
    (f"position otn {ROWS[:-3]}3K3", "2 kings, on d4 and d7: expected one"),
    (f"position otn {RTL}{ROWS}", r"'\u202e' is no piece"),
    (f"position fen {ROWS} a 0 1 moves a1a9", "move 1 a1a9"),
    ("position fen", "expected a position"),
    ("position", "expected startpos, fen <FEN> or otn <OTN record>"),
    ("position startpos berserk=d7", "expected no berserk field"),
    ("variant", "expected the name of one variant"),
    ("variant " + "x" * 60_000, "expected the name of a variant"),
    ("variant ../../etc/passwd", "'../../etc/passwd': expected the name of a variant"),
    (f"variant {RTL}brandubh", r"'\u202ebrandubh': expected the name of a variant"),
    ("setoption name VariantPath value /dev/null/x", "expected"),
    ("setoption name TablePath value /dev/null/x", "setoption TablePath"),
    ("setoption name TablePath value /dev/zero", "/dev/zero"),
    ("setoption name BookFile value /dev/zero", "setoption BookFile"),
    ("setoption name OwnBook value maybe", "expected true or false"),
]  # fmt: skip


@pytest.fixture(scope="module")
def engine() -> Iterator[Conversation]:
    with Conversation() as started:
        started.ask("variant brandubh", "position startpos moves a4a2 d3a3")
        yield started


def state(engine: Conversation) -> list[str]:
    return engine.ask("query fen", "query history", "rules", "moves", "d")


@pytest.mark.process
def test_lines_are_refused_and_the_game_stands(engine: Conversation) -> None:
    before = state(engine)
    assert before[0] == "response 3t3/3t3/3T3/1tTKTtt/T6/3t3/3t3 a 0 2"
    for line, wanted in LINES:
        answers = engine.ask(line)
        assert answers, line[:200]
        assert all(answer.startswith("info string error ") for answer in answers), (line[:200], answers)
        assert any(wanted.replace("\x00", r"\x00") in answer for answer in answers), (line[:200], answers)
    assert state(engine) == before


@pytest.mark.process
def test_long_lines_cost_no_memory(engine: Conversation) -> None:
    status = Path(f"/proc/{engine.process.pid}/status")
    if not status.exists():
        pytest.skip("this system does not tell how much memory a process has used")

    def peak() -> int:
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        assert found is not None
        return int(found[1]) // 1024

    before = state(engine)
    megabytes = peak()
    for line in (
        "rules " + "x" * 10_000_000,
        "position fen " + "/" * 10_000_000,
        "variant " + "a.b " * 2_500_000,
    ):
        (answer,) = engine.ask(line)
        assert re.fullmatch(r"info string error .{1,400}", answer)
    assert peak() < megabytes + 64
    assert state(engine) == before
