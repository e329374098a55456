"""The real engine process, at the end of pipes and of a terminal."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest
from conversation import ENGINE, PATIENCE, Conversation

from hnefi.engine import catalogue
from hnefi.engine.about import VERSION
from hnefi.protocol import server
from hnefi.protocol.commands import TABLE
from hnefi.protocol.hosts import exit_codes

pytestmark = pytest.mark.process

SOON = 60.0
"""Generous, for busy machines; how fast it is, benchmarks say."""


@pytest.fixture(scope="module")
def engine() -> Conversation:
    """One engine for everything that leaves it as it was; brandubh, warm."""
    with Conversation() as conversation:
        conversation.ask("uti", "variant brandubh")
        yield conversation


@pytest.fixture(autouse=True)
def fresh(request: pytest.FixtureRequest) -> None:
    """The shared engine begins every test at the start of brandubh."""
    if "engine" in request.fixturenames:
        conversation: Conversation = request.getfixturevalue("engine")
        conversation.ask("variant brandubh", "setoption name MultiPV value 1")


# The way to the greeting


def test_the_greeting_needs_nothing_heavy() -> None:
    script = (
        "import sys; from hnefi.protocol import server; list(server.greeting('uti'));"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {
        "numpy",
        "numba",
        "llvmlite",
        "dataclasses",
        "enum",
        "typing",
        "re",
        "argparse",
        "json",
        "tomllib",
    }
    plain = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not (heavy | {"logging", "asyncio"}) & (set(found) - set(plain))


@pytest.mark.parametrize("dialect", ["uti", "uci", "ugi"])
def test_every_greeting_has_its_ok_word(dialect: str) -> None:
    with Conversation() as engine:
        engine.send(dialect)
        lines = engine.until(f"{dialect}ok")
        assert lines[:2] == [f"id name hnefi {VERSION}", "id author the hnefi developers"]
        assert all(line.startswith("option name ") for line in lines[2:-1])
        engine.send("isready")
        assert engine.line() == "readyok"


def test_a_second_greeting_changes_the_dialect(engine: Conversation) -> None:
    engine.ask("ugi")
    engine.send("go depth 2")
    assert len(engine.until("bestmove")[-1].split()) == 2
    engine.ask("uti")
    engine.send("go depth 2")
    assert len(engine.until("bestmove")[-1].split()) == 4


# Lines


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("", []),
        ("   \t", []),
        ("# quit", []),
        ("query turn\r", ["response a"]),
        ("\tquery \t  turn  ", ["response a"]),
        ("joho query turn", ["response a"]),
        ("nothing known", ["info string unknown command: nothing known"]),
        ("Query turn", ["info string unknown command: Query turn"]),
        ("\x00\x07", ["info string unknown command: \\x00\\x07"]),
        (b"query \xff turn", ["info string error query \\xff turn: expected UTF-8"]),
        ("ü" * 100, [f"info string unknown command: {'ü' * 80}…"]),
        ("stop", []),
        ("ponderhit", []),
        ("debug", ["info string error debug: expected debug on or debug off"]),
        ("position", ["info string error position: expected startpos, fen <FEN> or otn <OTN record>"]),
        ("perft", ["info string error perft: expected a whole number from 0 to 100"]),
        ("perft -1", ["info string error perft -1: expected a whole number from 0 to 100"]),
        ("go perft x", ["info string error perft x: expected a whole number from 0 to 100"]),
        ("play", ["info string error play: expected one move"]),
        ("variant", ["info string error variant: expected the name of one variant"]),
        ("moves loudly", ["info string error moves loudly: expected moves or moves verbose"]),
        ("help stop", ["info string help stop: stop the search; it answers at once"]),
        ("setoption", ["info string error setoption: expected name <option> value <value>"]),
    ],
)
def test_line(engine: Conversation, line: str | bytes, answers: list[str]) -> None:
    assert engine.ask(line) == answers


def test_a_last_line_without_its_end_counts() -> None:
    result = subprocess.run(ENGINE, input=b"uti\nlicense", capture_output=True, check=True, timeout=PATIENCE)
    assert result.stdout.splitlines()[-1].startswith(b"info string license ")


@pytest.mark.parametrize("size", [server.LINE_LIMIT + 1, 3 * server.LINE_LIMIT, 1 << 20])
def test_endless_lines_are_answered_once_and_skipped(engine: Conversation, size: int) -> None:
    answers = engine.ask(b"query turn " + b"x" * size, "query turn")
    assert answers == [
        f"info string error query turn {'x' * 29}…: expected a line of at most 65536 bytes",
        "response a",
    ]


def test_the_longest_line_that_is_read(engine: Conversation) -> None:
    assert engine.ask("query turn" + " " * (server.LINE_LIMIT - 10)) == ["response a"]


def test_garbage_harms_nobody(engine: Conversation) -> None:
    garbage = bytes(range(256)) * 256
    assert len(engine.ask(garbage, "query turn")) >= 1
    assert engine.ask("query turn") == ["response a"]


def test_help_names_every_command(engine: Conversation) -> None:
    text = "\n".join(engine.ask("help"))
    assert all(word in text for word in TABLE)
    assert engine.ask("help me")[0].startswith(
        "info string error help me: expected one of uti, uci, ugi, isready"
    )


# Positions


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("position startpos moves d1d4", "position: move 1 d1d4: blocked at d2"),
        (
            "position startpos moves a4a2 d1",
            "position: move 2 d1: not a move: expected origin and target such as d1d3",
        ),
        (
            "position fen 4K2/7/7/7/t6/7/7 d 0 1 moves e7g7 a3a4",
            "position: move 2 a3a4: the game is over: d king_escaped",
        ),
        ("position fen 7/7", "position: board '7/7': 2 rows: expected "),
        ("position otn rubbish", "position otn: board 'rubbish': "),
        ("position startpos rubbish", "position: "),
    ],
)
def test_an_illegal_position_leaves_the_old_one(engine: Conversation, command: str, error: str) -> None:
    engine.ask("position startpos moves d2c2")
    answers = engine.ask(command)
    assert len(answers) == 1
    assert answers[0].startswith(f"info string error {error}")
    assert engine.ask("query history") == ["response startpos moves d2c2"]
    engine.send("go depth 1")
    assert engine.until("bestmove")[-1] != "bestmove (none)"


def test_a_variant_begins_at_its_start(engine: Conversation) -> None:
    engine.ask("position startpos moves d2c2")
    engine.ask("setoption name uci_variant value tablut")
    assert engine.ask("query history") == ["response startpos"]
    assert engine.ask("query fen")[0].startswith("response 3ttt3/4t4/4T4/")


def test_fields_behind_startpos(engine: Conversation) -> None:
    assert engine.ask("position startpos caps=1,2", "query captures") == ["response 1 2"]


# Searching


def test_while_searching_only_questions_are_taken(engine: Conversation) -> None:
    engine.ask("position startpos moves d2c2")
    engine.send("go infinite", "isready")
    assert engine.until("readyok")
    for command in (
        "go depth 1",
        "position startpos",
        "variant copenhagen",
        "uti",
        "perft 1",
        "setoption name Hash value 1",
    ):
        engine.send(command)
        refusal = engine.until("info string")[-1]
        assert refusal == f"info string error {command}: not while searching, expected stop first"
    for question, answer in (
        ("query history", "response startpos moves d2c2"),
        ("moves", "moves "),
        ("d", "repetitions: 1"),
    ):
        engine.send(question)
        assert engine.until(answer)
    engine.send("stop")
    assert engine.until("bestmove")[-1].startswith("bestmove ")
    assert engine.ask("query history") == ["response startpos moves d2c2"]


def test_what_follows_a_stop_waits_for_the_answer(engine: Conversation) -> None:
    for _ in range(5):
        engine.send("go infinite", "stop", "position startpos moves d2c2", "go depth 1", "isready")
        lines = [line for line in engine.until("bestmove") if not line.startswith("info depth")]
        assert len(lines) == 1
        lines = [line for line in engine.until("bestmove") if not line.startswith("info depth")]
        assert next(line for line in lines if line != "readyok").startswith("bestmove ")
        if "readyok" not in lines:
            engine.until("readyok")


def test_every_go_has_one_answer(engine: Conversation) -> None:
    for limits in (
        "depth 1",
        "nodes 1",
        "movetime 1",
        "atime 0",
        "atime -500 dtime 10",
        "mate 1",
        "btime 10",
        "depth 0",
    ):
        engine.send(f"go {limits}")
        assert engine.until("bestmove", SOON)[-2].startswith("info depth ")
    assert engine.ask("query turn") == ["response a"]


def test_infinite_and_ponder_hold_the_answer_back(engine: Conversation) -> None:
    for position in ("position startpos", "position fen 4K2/7/7/7/t6/7/7 d 0 1 moves e7g7"):
        engine.ask(position)
        for start, end in (
            ("go infinite depth 1", "stop"),
            ("go ponder depth 1", "ponderhit"),
            ("go ponder", "stop"),
        ):
            engine.send(start)
            assert not any(line.startswith("bestmove") for line in engine.heard(0.1))
            engine.send(end)
            assert engine.until("bestmove", SOON)


@pytest.mark.parametrize(
    ("line", "noted"),
    [
        ("go depht 2", True),
        ("go movetime abc", True),
        ("go movetime abc depth 1", False),
        ("go dept 2 infinite", False),
        ("go", False),
    ],
)
def test_a_search_that_nothing_limits_because_of_a_slip_says_so(
    engine: Conversation, line: str, noted: bool
) -> None:
    engine.ask("position startpos")
    engine.send(line, "stop")
    said = engine.until("bestmove", SOON)
    assert said[0].startswith("info string error go ") is (line != "go")
    assert ("info string note nothing in this line limits the search: stop ends it" in said) is noted


def test_a_search_that_stop_does_not_end(engine: Conversation) -> None:
    engine.send("variant copenhagen", "perft 4", "stop", "isready", "go depth 1", "query turn")
    engine.until("readyok", SOON)
    assert (
        engine.line() == "info string error go depth 1: not while perft is running, expected it to end first"
    )
    assert engine.line() == "response a"
    assert engine.until("info string perft")[-2] == "Nodes searched: 50456804"


# The end


def test_the_end_of_input_ends_a_search() -> None:
    with Conversation() as engine:
        engine.ask("uti", "variant brandubh")
        engine.send("go infinite")
        engine.until("info depth")
        start = time.perf_counter()
        assert engine.end(SOON) == 0
        assert time.perf_counter() - start < SOON
        assert engine.rest()[-1].startswith("bestmove ")


def test_quit_ends_a_search() -> None:
    with Conversation() as engine:
        engine.ask("uti")
        engine.send("go infinite", "quit")
        assert engine.process.wait(SOON) == 0


@pytest.mark.parametrize("line", ["quit", "  quit\t", "joho quit", "quit now"])
def test_quit_ends_it_however_it_is_written(line: str) -> None:
    with Conversation() as engine:
        engine.send(line)
        assert engine.process.wait(SOON) == 0


@pytest.mark.process
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_answers_that_a_full_disk_does_not_take() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            ENGINE, input=b"uti\nquit\n", stdout=full, stderr=subprocess.PIPE, timeout=SOON, check=False
        )
    assert done.returncode == exit_codes.STORAGE
    assert done.stderr == b"hnefi engine: standard output: No space left on device\n"


def test_garbage_is_looked_for_behind_the_warm_up_and_not_in_what_it_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[object] = []
    monkeypatch.setattr("hnefi.engine.warmup.load", lambda: seen.append(gc.isenabled()))
    monkeypatch.setattr(gc, "freeze", lambda: seen.append("frozen"))
    server.Server()._warm()
    assert seen == [False, "frozen"]
    assert gc.isenabled()


def test_the_end_of_input_ends_the_warm_up() -> None:
    with Conversation() as engine:
        engine.send("uti")
        engine.until("utiok")
        engine.send("isready")
        time.sleep(0.05)
        assert engine.end(SOON) == 0


def test_a_script_in_one_write_is_carried_out() -> None:
    script = b"uti\nvariant brandubh\nisready\nmoves\nplay d2c2\nquit\n"
    result = subprocess.run(ENGINE, input=script, capture_output=True, check=True, timeout=PATIENCE)
    lines = result.stdout.decode().splitlines()
    assert lines[-3] == "readyok"
    assert lines[-2].startswith("moves 40 ")
    assert lines[-1] == "info string played d2c2 turn d"


@pytest.mark.parametrize("ending", [b"", b"quit\n"])
def test_what_ends_by_itself_is_finished_first(ending: bytes) -> None:
    script = b"variant brandubh\nperft 3\ngenfens 2 seed 1 plies 4\nbench 1\nmoves\n" + ending
    result = subprocess.run(ENGINE, input=script, capture_output=True, check=True, timeout=PATIENCE)
    lines = result.stdout.decode().splitlines()
    assert not [line for line in lines if line.startswith("info string error")]
    assert "Nodes searched: 39512" in lines
    assert len([line for line in lines if line.startswith("info string genfens ")]) == 2
    assert lines[-1].startswith("Nodes searched: ")
    assert any(line.startswith("moves 40 ") for line in lines)


def test_what_ends_by_itself_is_finished_after_the_end_of_input() -> None:
    with Conversation() as engine:
        engine.ask("variant brandubh")
        engine.send("perft 5", "isready")
        engine.until("readyok")
        assert engine.end() == 0
        assert engine.rest()[-2].startswith("Nodes searched: ")


@pytest.mark.parametrize("way", ["quit", "nobody reads"])
def test_what_takes_long_is_not_finished(way: str) -> None:
    with subprocess.Popen(ENGINE, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"isready\nperft 9\nisready\n")
        process.stdin.flush()
        assert [process.stdout.readline() for _ in range(2)] == [b"readyok\n"] * 2
        if way == "quit":
            process.stdin.write(b"quit\n")
            process.stdin.flush()
        else:
            process.stdin.close()
            process.stdout.close()
        try:
            assert process.wait(SOON) == 0
        finally:
            process.kill()


def test_work_after_the_end_of_input_has_an_end() -> None:
    code = "from hnefi.protocol import server; server.LAST_WORK = 3.0; server.main([])"
    result = subprocess.run(
        [sys.executable, "-c", code], input=b"perft 9\n", capture_output=True, check=True, timeout=PATIENCE
    )
    assert result.stdout == b"info string error end of input: expected the rest within 3 s\n"


def test_who_does_not_listen_any_more_ends_it() -> None:
    process = subprocess.Popen(ENGINE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(b"uti\n")
    process.stdin.flush()
    while process.stdout.readline() != b"utiok\n":
        pass
    process.stdout.close()
    process.stdin.write(b"isready\n")
    process.stdin.flush()
    assert process.wait(PATIENCE) == 0
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()


# The command line


def test_flags_are_options() -> None:
    with Conversation("--variant", "brandubh", "--option", "Hash=8", "--player=random-blind") as engine:
        assert engine.line() == (
            "info string variant brandubh files 7 ranks 7 attackers 8 defenders 4 first a "
            "startpos 3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a 0 1"
        )
        engine.send("uti", "go depth 3")
        assert len(engine.until("bestmove")[-1].split()) == 2


def test_a_player_begins_with_the_variant_that_it_plays(tmp_path: Path) -> None:
    text = Path(catalogue.FOLDER, "mini-four.toml").read_text("utf-8")
    (tmp_path / "mine.toml").write_text(text.replace('name = "mini-four"', 'name = "mine"'))
    player = tmp_path / "one.toml"
    player.write_text('description = "Plays mine."\nvariant = "mine"\n')
    named = [
        (["--player", "hexapawn-perfect"], "hexapawn:3x3"),
        (["--player", "hexapawn-perfect", "--option", "Variant=hexapawn:4x4"], "hexapawn:4x4"),
        (["--player", "hexapawn-perfect", "--option", "UCI_Variant=hexapawn:4x4"], "hexapawn:4x4"),
        (["--option", f"player={player}", "--option", f"VariantPath={tmp_path / 'mine.toml'}"], "mine"),
    ]
    for flags, name in named:
        with Conversation(*flags) as engine:
            assert engine.line().startswith(f"info string variant {name} ")


def test_flags_that_are_wrong() -> None:
    """Whoever asked for a variant, a player or an option does not get another one instead."""
    for flags, said in (
        (["--option", "Hash"], "--option Hash: expected NAME=VALUE"),
        (["--option", "Hash=0"], "setoption Hash 0: expected 1 to 65536"),
        (["--option", "Nonsense=1"], "setoption Nonsense: expected the name of an option"),
        (
            ["--variant", "nonsense"],
            "variant: 'nonsense': expected the name of a variant (`variants` lists them)",
        ),
        (["--player", "nonsense"], "setoption Player nonsense: no player 'nonsense': expected a name that "),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["word"], "unrecognized arguments: word"),
    ):
        result = subprocess.run(
            [*ENGINE, *flags], capture_output=True, text=True, check=False, timeout=PATIENCE
        )
        assert (result.returncode, result.stdout) == (2, "")
        assert f"hnefi engine: error: {said}" in result.stderr
        assert len(result.stderr.splitlines()) == 2
    result = subprocess.run([*ENGINE, "--help"], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert "--player NAME" in result.stdout


def test_a_fault_at_the_command_line_ends_the_engine() -> None:
    """Out of the thread that sets options it would leave a process that answers nobody."""
    code = """if True:
        from hnefi.protocol import commands, server
        del commands.Commands.setoption
        server.main(["--option=Hash=8"])
    """
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == exit_codes.OURS_FAILED
    assert "hnefi engine: error: AttributeError, a fault of the engine: " in done.stderr


def test_the_log_has_every_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Conversation() as engine:
        engine.ask("uti", f"setoption name DebugLogFile value {log}", "help stop")
        missing = tmp_path / "no" / "log"
        assert engine.ask(f"setoption name DebugLogFile value {missing}")[0].startswith(
            f"info string error setoption DebugLogFile {missing}"[:60]
        )
        engine.ask("help quit", "setoption name DebugLogFile value", "help board")
    lines = log.read_text().splitlines()
    assert lines[:4] == [
        "> help stop",
        "< info string help stop: stop the search; it answers at once",
        "> isready",
        "< readyok",
    ]
    assert "> help quit" in lines
    assert "> help board" not in lines


def test_at_a_terminal() -> None:
    environment = {**os.environ, "TERM": "dumb"}
    child = pexpect.spawn(
        ENGINE[0], list(ENGINE[1:]), encoding="utf-8", timeout=PATIENCE, echo=False, env=environment
    )
    child.sendline("uti")
    child.expect_exact("utiok\r\n")
    child.sendline("variant brandubh")
    child.expect_exact("startpos 3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a 0 1\r\n")
    child.sendline("go infinite")
    child.expect(r"info depth \d+ .* pv [a-g]\d[a-g]\d")
    child.sendline("isready")
    child.expect_exact("readyok\r\n")
    child.sendline("stop")
    child.expect(r"bestmove [a-g]\d[a-g]\d( ponder [a-g]\d[a-g]\d)?\r\n")
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
