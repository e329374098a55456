"""`hnefi analyze` as people meet it: positions, recorded games, engines that fail, analyses that are interrupted."""

from __future__ import annotations

import io
import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from hnefi.engine.about import VERSION
from hnefi.engine.records import tafl_text
from hnefi.engine.records.record import GameRecord
from hnefi.engine.records.rule_sets import finder
from hnefi.gui_adapter.terminal import saving
from hnefi.tools import convert
from hnefi.tools.analyze import analyser, chart, command, recorded
from hnefi.tools.common.svg_chart import ChartError

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
GAME = ROOT / "docs/analyze/afternoon.tafl"
RUN = "import sys; from hnefi.tools import cli; sys.exit(cli.main(['analyze', *sys.argv[1:]]))"
SHORT = """[Variant "brandubh"]
[Attackers "ann"]
[Defenders "björn"]

1. f4f5 c4c5 2. d6g6 {hm} d3a3 *
"""
PARROT = "f4f5,c4c5,d6g6,d3a3,g4g3"
"""The moves of SHORT, and one behind it: an engine that would have played all of them."""
OTHER = "f4f5,c4c5,d6c6,d3a3,g4g3"

Analyze = Callable[..., tuple[object, str, str]]


def parrot(moves: str, *faults: str) -> str:
    return shlex.join(
        [sys.executable, "-I", "-S", str(ROOT / "tests/support/fault_engine.py"), moves, *faults]
    )


@pytest.fixture
def analyze(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Analyze:
    """Runs the command in an empty folder, in this process: its status, what it printed, what it complained of."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[object, str, str]:
        try:
            status: object = command.main(list(arguments))
        except SystemExit as ended:
            status = ended.code
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return status, said.out, said.err

    return run


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The game of the documents, annotated by the real engine; its report lies beside it."""
    folder = tmp_path_factory.mktemp("annotated")
    out = folder / "out.tafl"
    stdout, sys.stdout = sys.stdout, io.StringIO()
    try:
        words = [str(GAME), "-o", str(out), "--nodes", "3000", "--quiet", "--json", "--lines", "2"]
        assert command.main(words) == 0
        (folder / "report.json").write_text(sys.stdout.getvalue())
    finally:
        sys.stdout = stdout
    return out


def record(path: Path, number: int = 0) -> GameRecord:
    with path.open("rb") as stream:
        return list(tafl_text.read(stream))[number].record


# Our own engine


def test_a_position_and_its_best_lines(analyze: Analyze) -> None:
    status, out, err = analyze("startpos", "--variant", "brandubh", "--moves", "a4a2", "d3a3", "--depth", "3")
    assert (status, err) == (0, "")
    assert " 4 . t T K T t t 4\n" in out
    assert "attackers to move, move 2\n" in out
    assert re.search(
        r"^1\. (even|(attackers|defenders) \+\d\.\d\d), \d+ % for the attackers, depth 3\n   2\. \w{4}",
        out,
        re.MULTILINE,
    )
    assert re.search(r"^3\. ", out, re.MULTILINE)
    assert re.search(r"^total +[+-]\d+$", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("position", "moves", "answer"),
    [
        ("4K2/7/7/7/t6/7/7 d 0 30", "1", "proven: the defenders win in 1 move\n"),
        ("4K2/7/7/7/t6/7/7 d 0 30", "3", "proven: the defenders win in 1 move (in 3 was asked)\n"),
        ("startpos", "1", "refuted: no win for the attackers in 1 move\n"),
    ],
)
def test_a_win_in_so_many_moves_is_proven_or_refuted(
    position: str, moves: str, answer: str, analyze: Analyze
) -> None:
    status, out, _ = analyze(position, "--variant", "brandubh", "--mate", moves)
    assert status == 0
    assert f"\n{answer}" in out


def test_a_proof_deep_in_a_game_and_as_json(analyze: Analyze) -> None:
    moves = [saving.squares.move_name(ply.move) for ply in record(GAME).plies[:24]]
    status, out, _ = analyze("startpos", "--variant", "brandubh", "--mate", "2", "--json", "--moves", *moves)
    value = json.loads(out)
    assert (status, value["answer"], value["attackers"]) == (0, "proven", 1.0)
    assert value["answer_text"] == "proven: the attackers win in 2 moves"
    assert value["lines"][0]["mate"] == 2
    assert value["lines"][0]["line"].startswith("13. ")


def test_a_finished_position_says_so(analyze: Analyze) -> None:
    status, out, _ = analyze("4K2/7/7/7/t6/7/7 d 0 30", "--variant", "brandubh", "--moves", "e7g7")
    assert status == 0
    assert "the game is over: d king escaped\n" in out


def test_an_annotated_game_agrees_with_its_rules_and_is_loaded_at_the_table(
    annotated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert convert.main([str(annotated), "--strict"]) == 0
    assert convert.main([str(annotated), "-", "--to", "jsonl"]) == 0
    assert json.loads(capsys.readouterr().out)["tags"][-3][0] == "Analysis"
    find = finder(None)
    loaded = saving.load(annotated, None, find, find("brandubh"))
    tree = saving.game_of(loaded.record, loaded.variant)
    assert [entry.text for entry in tree.entries()] == [
        saving.squares.move_name(ply.move) for ply in record(GAME).plies
    ]
    assert sum(entry.variations for entry in tree.entries()) > 0
    assert saving.record_of(tree, loaded.record.players).plies == loaded.record.plies


def test_what_the_annotation_says(annotated: Path) -> None:
    found = record(annotated)
    plies = found.plies
    assert (found.players, found.outcome) == (record(GAME).players, record(GAME).outcome)
    assert found.tag("Analysis") == f"hnefi {VERSION}, nodes 3000"
    # The 25th ply throws away a win in two; the reply gives it back.
    thrown = plies[24]
    assert thrown.comment.startswith("» blunder, thrown win: 100 % -> ")
    assert thrown.variations[0][0].mate == 2
    assert plies[25].mate is not None or plies[25].cp is not None
    assert plies[26].mate == 1
    assert all(ply.cp is not None or ply.mate is not None for ply in plies)


def test_the_same_nodes_give_the_same_analysis(annotated: Path, analyze: Analyze) -> None:
    words = (str(GAME), "-o", "again.tafl", "--nodes", "3000", "--quiet", "--json", "--lines", "2")
    status, out, _ = analyze(*words)
    assert status == 0
    assert Path("again.tafl").read_bytes() == annotated.read_bytes()
    assert timeless(out) == timeless((annotated.parent / "report.json").read_text())
    assert timeless(out)["moves"][24]["turn"] == "thrown win"


def timeless(text: str) -> Any:
    """A report without the times, the one thing that differs."""
    return json.loads(
        text, object_hook=lambda value: {k: v for k, v in value.items() if k not in ("time", "file")}
    )


def test_collections_are_read_and_carry_their_rules_to_the_engine(analyze: Analyze) -> None:
    """Rules that no name stands for are a file to the engine, which plays by them."""
    Path("games.csv").write_text("a4-a2 d3-a3xa2,0,1,Ongoing\nd2-c2 d5-a5 timeout,0,0,White\n")
    status, out, err = analyze(
        "games.csv", "--variant", "brandubh", "--all", "--depth", "1", "--quiet", "-o", "out.tafl"
    )
    assert (status, err) == (0, "")
    assert re.search(r"^2 +2 +d ", out, re.MULTILINE)
    assert re.search(r"^all +4 ", out, re.MULTILINE)
    assert record(Path("out.tafl"), 1).rules is not None


# Other engines


def test_an_engine_that_agrees_finds_nothing(analyze: Analyze) -> None:
    Path("game.tafl").write_text(SHORT)
    status, out, err = analyze("game.tafl", "--engine", parrot(PARROT), "--full", "--quiet")
    assert (status, err) == (0, "")
    assert "game 1 · brandubh · attackers: ann · defenders: björn · 4 plies · unfinished\n" in out
    assert re.search(r"^accuracy +100\.0 % +100\.0 %$", out, re.MULTILINE)
    assert re.search(r"^2\.\.\. d3a3 +53 % +47 % +best", out, re.MULTILINE)
    assert out.endswith("turning points: none\nParrot, nodes 500000 for each position\n")


def test_a_mistake_in_table_json_and_record(analyze: Analyze) -> None:
    """An engine that always sees the mover ahead takes every other move than its own for a blunder."""
    Path("game.tafl").write_text(SHORT)
    words = ("game.tafl", "--engine", parrot(OTHER, "score=cp 190"), "--quiet")
    status, out, _ = analyze(*words)
    assert status == 0
    assert re.search(r"^2\. d6g6 +75 % +25 % +50 +blunder +2\. d6c6$", out, re.MULTILINE)
    assert "turning points: 2. d6g6 (attackers, blunder)\n" in out
    status, out, _ = analyze(*words, "--json", "-o", "out.tafl")
    value = json.loads(out)
    assert value["moves"][2]["verdict"] == "blunder"
    assert value["turning_points"] == [3]
    assert value["sides"][0]["verdicts"]["blunder"] == 1
    ply = record(Path("out.tafl")).plies[2]
    assert ply.comment == "hm » blunder: 75 % -> 25 %; better d6c6 (attackers +1.90)"
    assert [saving.squares.move_name(other[0].move) for other in ply.variations] == ["d6c6"]
    status, out, _ = analyze(*words, "--thresholds", "60,70,80")
    assert "no inaccuracies, mistakes or blunders\n" in out


def test_an_engine_that_crashes_now_and_then_is_started_again(analyze: Analyze) -> None:
    Path("game.tafl").write_text(SHORT)
    status, out, err = analyze("game.tafl", "--engine", parrot(PARROT, "exit", "at=2"))
    assert status == 0
    assert "unknown" not in out
    assert err.count("Parrot has ended: exit status 3: it is started again") == err.count("\n") > 1


def test_a_position_that_an_engine_always_fails_at_stays_unknown(analyze: Analyze, tmp_path: Path) -> None:
    Path("game.tafl").write_text(SHORT)
    stumbling = tmp_path / "stumbling.py"
    # Ends at the third position, whenever it is asked about it.
    script = str(ROOT / "tests/support/fault_engine.py")
    program = "import runpy, sys\nsys.argv.append({!r})\nrunpy.run_path({!r})\n"
    stumbling.write_text(program.format("plies=2", script))
    engine = shlex.join([sys.executable, "-I", "-S", str(stumbling), PARROT, "exit"])
    status, out, err = analyze("game.tafl", "--engine", engine, "-o", "out.tafl")
    assert status == 3
    assert "unknown after ply 2: Parrot has ended: exit status 3\n" in out
    assert "it is not asked again, and the position stays unknown\n" in err
    assert err.endswith(
        "hnefi analyze: 1 positions are unknown, because the engine failed there; "
        "the same command continues from here\n"
    )
    assert record(Path("out.tafl")).plies[1].comment == "» unknown: Parrot has ended: exit status 3"
    assert record(Path("out.tafl")).plies[3].cp == -20
    # Recovered, it is asked about that position alone.
    stumbling.write_text(program.format("plies=0,1,3,4", script))
    status, _, err = analyze("game.tafl", "--engine", engine, "-o", "out.tafl")
    assert (status, err) == (0, "continuing with out.tafl.progress.jsonl: 4 positions are known\n")
    assert record(Path("out.tafl")).tag("Analysis") == "Parrot, nodes 500000"
    assert not Path("out.tafl.progress.jsonl").exists()


def test_an_engine_that_always_fails_is_given_up(analyze: Analyze) -> None:
    Path("game.tafl").write_text(SHORT)
    status, out, err = analyze("game.tafl", "--engine", parrot(PARROT, "exit", "at=1"), "-o", "out.tafl")
    assert status == 3
    assert "not analysed: 2 of 5 positions\n" in out
    assert (
        "Parrot: 3 positions in a row stay unknown, so it is not asked again; the same command continues"
        in err
    )
    assert "3 of 5 positions" in (record(Path("out.tafl")).tag("Analysis") or "")


def test_an_engine_that_hangs_is_not_waited_for_for_ever(analyze: Analyze) -> None:
    Path("game.tafl").write_text(SHORT)
    engine = parrot(PARROT, "hang", "at=5")
    status, _, err = analyze("game.tafl", "--engine", engine, "--patience", "3")
    assert status == 0
    assert "did not answer: expected bestmove within 3 s: it is started again" in err


def test_an_engine_that_falls_silent_is_noticed_before_its_time_is_up(
    analyze: Analyze, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyser, "PING", 0.1)
    monkeypatch.setattr(analyser, "SILENCE", 3.0)
    Path("game.tafl").write_text(SHORT)
    status, _, err = analyze("game.tafl", "--engine", parrot(PARROT, "hang", "at=5"))
    assert status == 0
    assert "did not answer: expected readyok within 3 s: it is started again" in err


@pytest.mark.parametrize(
    ("engine", "problem"),
    [
        (("a1a1,c4c5,d6g6,d3a3,g4g3",), "answered 'a1a1', which is not legal"),
        (("(none),c4c5,d6g6,d3a3,g4g3",), "answered 'no move', which is not legal"),
        ((PARROT, "score=none"), "answered without a score"),
    ],
)
def test_answers_that_say_nothing_are_told(engine: tuple[str, ...], problem: str, analyze: Analyze) -> None:
    Path("game.tafl").write_text(SHORT)
    status, out, _ = analyze("game.tafl", "--engine", parrot(*engine), "--quiet")
    assert status == 3
    assert f"unknown after ply 0: {problem}\n" in out


def test_a_fake_engine_that_knows_shares_of_wins_and_proves_something(analyze: Analyze) -> None:
    """It says `mate -2` of everything, with a move that is not legal here."""
    engine = shlex.join([sys.executable, "-I", "-S", str(ROOT / "tests/support/fake_engine.py")])
    status, out, _ = analyze("startpos", "--variant", "brandubh", "--engine", engine, "--lines", "1")
    assert status == 3
    assert "unknown: Fake 1.0 answered 'a1a2', which is not legal\n" in out
    status, _, err = analyze("startpos", "--engine", engine, "--threads", "2")
    assert (status, "Fake 1.0 has no option 'Threads'" in err) == (2, True)


def test_what_comes_from_outside_moves_no_cursor(analyze: Analyze) -> None:
    Path("game.tafl").write_text(SHORT.replace("ann", "a\\u1b;[2Jnn"))
    for name in ("", "answered without a score"):
        engine = parrot(PARROT, "name=E\x1b[2J", *(("score=none",) if name else ()))
        _, out, err = analyze("game.tafl", "--engine", engine, "--full")
        assert "E?[2J, nodes 500000" in out
        assert "attackers: a?[2Jnn" in out
        assert "\x1b" not in out + err


def test_an_engine_that_cannot_be_started(analyze: Analyze) -> None:
    Path("game.tafl").write_text(SHORT)
    for what in ("game.tafl", "startpos"):
        status, out, err = analyze(what, "--engine", "/no/such/engine")
        assert (status, out) == (3, "")
        assert err == "hnefi analyze: cannot start /no/such/engine: No such file or directory\n"


# Interruption


def test_an_interrupted_analysis_goes_on_where_it_stopped(tmp_path: Path, analyze: Analyze) -> None:
    Path("game.tafl").write_text(SHORT)
    gate = tmp_path / "gate"
    held = f"gate={gate}", "held=4"
    engine = parrot(OTHER, "score=cp 190", *held)
    words = ["game.tafl", "-o", "out.tafl", "--engine", engine]
    kept = tmp_path / "out.tafl.progress.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while not (kept.exists() and kept.read_bytes().count(b"\n") >= 3):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    gate.touch()
    assert (process.returncode, b"Traceback" in err) == (1, False)
    assert b"not analysed: " in out
    assert err.endswith(b"the same command continues from here\n")
    assert re.fullmatch(
        r"Parrot, nodes 500000, \d of 5 positions", record(Path("out.tafl")).tag("Analysis") or ""
    )

    status, _, said = analyze(*words[:-1], parrot(OTHER, "score=cp 191", *held))
    assert status == 2
    assert "an unfinished analysis with command " in said
    lines = kept.read_text().splitlines()
    lines[2] = lines[2].replace('"cp":190', '"cp":150')
    kept.write_text("\n".join([*lines, ""]))
    status, _, said = analyze(*words)
    assert status == 0
    assert re.search(r"continuing with .*: \d positions are known\n", said)
    assert record(Path("out.tafl")).tag("Analysis") == "Parrot, nodes 500000"
    assert not kept.exists()
    assert record(Path("out.tafl")).plies[0].cp == -150, "taken from what was kept"
    assert analyze(*words)[0] == 2, "the file is not replaced unasked"


# Bad input


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "the following arguments are required"),
        (("nothing.tafl",), "'nothing.tafl': no such file"),
        (("blah",), "'blah': expected startpos, a FEN, or a file ending in .tafl"),
        (("3t3/3t3", "--variant", "brandubh"), "2 rows: expected 3 to 19"),
        (("startpos", "--variant", "brandubh", "--moves", "a4a2", "zz"), "--moves 'zz': not a move"),
        (("startpos", "--variant", "chess"), "'chess'"),
        (("startpos", "--nodes", "0"), "'0': expected a whole number from 1 on"),
        (("startpos", "--time", "nan"), "'nan': expected seconds from 0.001 to 1000000"),
        (("startpos", "--option", "Hash"), "'Hash': expected NAME=VALUE"),
        (("startpos", "--engine", "'a"), "--engine: \"'a\": No closing quotation"),
        (("startpos", "--algorithm", "mcts", "--mate", "2"), "--algorithm mcts: expected alphabeta or minimax"),
        (("startpos", "--chart", "x.svg"), "--chart: not allowed with a position"),
        (("startpos", "--thresholds", "1,2,3"), "--thresholds: not allowed with a position"),
        (("game.tafl", "--thresholds", "9,2,3"), "'9,2,3': expected three rising numbers"),
        (("game.tafl", "--mate", "2"), "--mate: not allowed with a recorded game"),
        (("game.tafl", "--chart", "x.gif"), "x.gif: expected a file ending in .svg or .png"),
        (("game.tafl", "-o", "x.otg"), "-o x.otg: expected a file ending in .tafl"),
        (("game.tafl", "-o", "game.tafl", "--force"), "expected a file other than the game's own"),
        (("game.tafl", "-o", "no/x.tafl"), "no/x.tafl: no such folder"),
        (("game.tafl", "--chart", "no/x.svg"), "no/x.svg: no such folder"),
        (("/etc",), "'/etc': a folder: expected startpos, a FEN, or a file of recorded games"),
        (("game.tafl", "--fresh"), "--fresh and --force: expected -o FILE"),
        (("game.tafl", "--game", "2"), "game.tafl: no game 2: expected a number from 1 to 1"),
        (("game.csv",), "CSV names no variant: expected --variant"),
        (("bad.tafl",), "bad.tafl:5: game 2 ply 3 d6d7: is illegal: blocked at d7"),
        (("captures.tafl",), "captures.tafl:2: game 1 ply 1 f4f5xa4: f4f5 by the rules, recorded otherwise"),
        (("late.tafl",), "late.tafl:3: game 1 ply 2 e1e2: was played after the end: d king_escaped"),
        (("torn.tafl",), "torn.tafl:1: the game that begins here has no end"),
        (("empty.tafl", "--all"), "empty.tafl: no game in it"),
        (("startpos", "--evaluator", "net-brandubh-2"), "net-brandubh-2: made for brandubh"),
        (("startpos", "--json", "--option", "evaluator=net-brandubh-2"), "expected an evaluator for copenhagen"),
        (("game.tafl", "--evaluator", "net-copenhagen-4"), "expected an evaluator for brandubh"),
        (("startpos", "--evaluator", "no.safetensors"), "no.safetensors: No such file or directory: expected"),
    ],
)  # fmt: skip
def test_bad_input_is_repeated(words: tuple[str, ...], complaint: str, analyze: Analyze) -> None:
    Path("game.tafl").write_text(SHORT)
    Path("game.csv").write_text("a4-a2,0,0,Ongoing\n")
    game = '[Variant "brandubh"]\n1. f4f5 *\n\n'
    Path("bad.tafl").write_text(game + '[Variant "brandubh"]\n1. f4f5 c4c5 2. d6d7 *\n')
    Path("captures.tafl").write_text('[Variant "brandubh"]\n1. f4f5xa4 *')
    Path("late.tafl").write_text('[Variant "brandubh"]\n[FEN "4K2/7/7/7/t6/7/4t2 d"]\n1. e7g7 e1e2 *')
    Path("torn.tafl").write_text('[Variant "brandubh"]\n1. f4f5')
    Path("empty.tafl").write_text("")
    more = ("--game", "2") if words == ("bad.tafl",) else ()
    status, out, err = analyze(*words, *more)
    assert (status, out) == (2, "")
    assert complaint in err


def test_a_broken_game_among_others_is_left_out_and_told(analyze: Analyze) -> None:
    Path("games.tafl").write_text(SHORT.replace("c4c5", "c4d4") + "\n" + SHORT)
    status, out, err = analyze("games.tafl", "--all", "--engine", parrot(PARROT), "-o", "out.tafl")
    assert status == 2
    assert "games.tafl:5: game 1 ply 2 c4d4: is illegal: " in err
    assert err.endswith("games that could not be played through: 1\n")
    assert re.search(r"^2 +4 ", out, re.MULTILINE)
    assert record(Path("out.tafl")).tag("Analysis") == "Parrot, nodes 500000"


def test_an_evaluator_that_a_later_game_is_not_for_ends_the_analysis_there(analyze: Analyze) -> None:
    Path("two.tafl").write_text('[Variant "brandubh"]\n1. f4f5 *\n\n[Variant "tablut-linnaeus"]\n1. e2f2 *\n')
    status, out, err = analyze(
        "two.tafl", "--all", "--json", "--evaluator", "net-brandubh-2", "--nodes", "100"
    )
    assert (status, len(out.splitlines())) == (2, 1)
    assert "net-brandubh-2: made for brandubh" in err


def test_help_shows_examples(analyze: Analyze) -> None:
    status, out, _ = analyze("--help")
    assert status == 0
    assert "examples:\n  hnefi analyze startpos --variant brandubh --lines 3\n" in out


def test_the_command_starts_without_numpy() -> None:
    code = (
        "import sys; import hnefi.tools.analyze.command, hnefi.tools.analyze.analyser, hnefi.tools.analyze.recorded; "
        "sys.exit([m for m in ('numpy', 'numba', 'matplotlib') if m in sys.modules] or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr


# Charts


def test_without_the_library_a_png_is_refused_at_once_and_svg_is_drawn(
    analyze: Analyze, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("game.tafl").write_text(SHORT)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, _, err = analyze("game.tafl", "--chart", "x.png")
    assert status == 2
    assert "--chart x.png: a PNG needs matplotlib, which is not installed: pip install 'hnefi[plots]'" in err
    words = ("game.tafl", "--engine", parrot(PARROT), "--quiet", "--chart", "x.svg")
    assert analyze(*words)[0] == 0
    assert Path("x.svg").read_text().startswith("<svg ")


def test_a_chart_names_sides_moves_mistakes_and_ends(analyze: Analyze) -> None:
    pytest.importorskip("matplotlib")
    hostile = SHORT.replace("ann", "$x^2$ <b>")
    Path("game.tafl").write_text(hostile)
    words = ("game.tafl", "--engine", parrot(OTHER, "score=mate 2"), "--quiet")
    for name in ("one.svg", "two.svg", "one.png"):
        assert analyze(*words, "--chart", name)[0] == 0
    assert Path("one.svg").read_bytes() == Path("two.svg").read_bytes()
    assert Path("one.png").read_bytes().startswith(b"\x89PNG")
    said = {part.strip() for part in ET.parse("one.svg").getroot().itertext() if part.strip()}
    assert {"attackers: $x^2$ <b>", "defenders: björn", "move", "thrown win", "defenders win in 2"} <= said
    assert {"1", "2", "50 %"} <= said
    assert sorted(path.name for path in Path().iterdir()) == ["game.tafl", "one.png", "one.svg", "two.svg"]
    status, _, _ = analyze(*words, "--all", "--chart", "all.svg")
    assert (status, Path("all-1.svg").exists()) == (0, True)


def test_a_chart_counts_the_moves_that_were_made(analyze: Analyze) -> None:
    Path("game.tafl").write_text(SHORT)
    assert analyze("game.tafl", "--engine", parrot(PARROT), "--quiet", "--chart", "even.svg")[0] == 0
    said = {part.strip() for part in ET.parse("even.svg").getroot().itertext()}
    assert said & {"1", "2", "3"} == {"1", "2"}


def test_a_chart_that_cannot_be_written_costs_nothing_else(
    analyze: Analyze, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ChartError("x.svg: No space left on device")

    Path("game.tafl").write_text(SHORT)
    monkeypatch.setattr(recorded, "expect_drawable", lambda _: None)
    monkeypatch.setattr(chart, "draw", fail)
    words = ("game.tafl", "--engine", parrot(PARROT), "--quiet", "-o", "out.tafl", "--chart", "x.svg")
    status, out, err = analyze(*words)
    assert (status, err) == (4, "hnefi analyze: x.svg: No space left on device\n")
    assert "turning points: none\n" in out
    assert record(Path("out.tafl")).tag("Analysis") == "Parrot, nodes 500000"


def test_a_chart_of_what_is_not_known_has_gaps(analyze: Analyze) -> None:
    Path("game.tafl").write_text(SHORT)
    words = ("game.tafl", "--engine", parrot(PARROT, "exit", "at=1"), "--quiet", "--chart", "gaps.svg")
    assert analyze(*words)[0] == 3
    assert Path("gaps.svg").read_text().count('stroke="#b8b2c0"') > 20, "the hatching"
    with pytest.raises(ChartError, match=r"no/x\.svg: No such file"):
        chart_into(Path("no/x.svg"))


def chart_into(path: Path) -> None:
    from played_through import walk

    from hnefi.protocol.hosts.assessment.verdicts import Thresholds
    from hnefi.tools.analyze.values import analysed

    game = walk()
    chart.draw(analysed(game, [None] * 5, Thresholds()), path, "x", "y")
