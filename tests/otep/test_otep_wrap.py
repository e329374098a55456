"""`hnefi otep --wrap`: a double of OpenTafl's engine, with its quirks, is an engine like any other."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import engine_pool
import pytest
from conversation import PATIENCE, Conversation
from leftover_processes import MARK, expect_nobody, marked, wait_until
from otep.double_games import GAMES
from patience import PROMPTLY

from hnefi.protocol.hosts import journal
from hnefi.tools.conformance import command as check
from hnefi.tools.conformance import transport
from hnefi.tools.conformance.transport import Patience

pytestmark = pytest.mark.process

DOUBLE = Path(__file__).with_name("double_engine.py")
VARIANT = "brandubh-walker"
HNEFI = engine_pool.command()
BY_HEART = GAMES["brandub"].by_heart.split(",")


def wrapped(*quirks: str) -> str:
    return shlex.join([sys.executable, "-I", "-S", str(DOUBLE), *quirks])


class Wrapped(Conversation):
    """A double behind the adapter; what the two say to each other is traced."""

    def __init__(self, folder: Path, *quirks: str, flags: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.trace = folder / "trace"
        os.environ["XDG_DATA_HOME"] = str(folder)
        super().__init__(
            "otep",
            "--wrap",
            wrapped(*quirks),
            "--trace",
            str(self.trace),
            "--log-level",
            "error",
            *flags,
            command=HNEFI,
        )
        self.send("uti")
        self.greeting = self.until("utiok")

    def play(self, go: str, *moves: str) -> list[str]:
        """The answer to one question."""
        self.send(f"position startpos{' moves ' if moves else ''}{' '.join(moves)}", go)
        return self.until("bestmove")

    def sent(self) -> list[str]:
        """What OpenTafl was told."""
        return re.findall(r"(?m)^\S+ > OpenTafl (.*)$", self.trace.read_text(errors="replace"))

    def over(self) -> int:
        """The exit code of one that has ended by itself."""
        self.process.wait(PATIENCE)
        return self.end()


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path


def test_a_game_is_shown_move_by_move(data: Path) -> None:
    """The whole line once, then the replies; moves never name what they take."""
    with Wrapped(data, "fast", "moves=f4-f7,e4-e7,b4-b2,c4-c7,d6-d7,d4-b4,g4-c4") as engine:
        assert engine.greeting[0] == "id name OpenTafl"
        assert engine.ask(f"variant {VARIANT}")[-1].startswith(f"info string variant {VARIANT} files 7")
        played: list[str] = []
        for ply in (0, 2, 4, 6):
            answer = engine.play("go movetime 1000", *BY_HEART[:ply])
            assert answer[-1] == f"bestmove {BY_HEART[ply]}"
            played += BY_HEART[ply : ply + 2]
        assert engine.ask("query outcome") == ["response none"]
        # Not before its statistics are written.
        assert engine.play("go movetime 1000", *BY_HEART)[-2:] == [
            "info string outcome a king_captured", "bestmove (none)",
        ]  # fmt: skip
        sent = engine.sent()
        assert re.fullmatch(r"rules dim:7 .*atkf:y .*start:/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/", sent[0])
        assert sent[1:] == [
            "clock 1750* 1750* 1 9 9", "play attackers", "opponent-move e4-e7",
            "clock 1750* 1750* 1 9 9", "play attackers", "opponent-move c4-c7",
            "clock 1750* 1750* 1 9 9", "play attackers", "opponent-move d4-b4",
            "clock 1750* 1750* 1 9 9", "play attackers",
        ]  # fmt: skip
    (record,) = (record for path in data.rglob("games/otep/*.jsonl") for record in journal.read(path))
    assert record.players == ("OpenTafl", "")
    assert record.outcome is not None
    assert record.outcome.text == "a king_captured"
    assert len(record.plies) == len(BY_HEART)


def test_another_line_begins_another_game(data: Path) -> None:
    with Wrapped(data, "fast") as engine:
        engine.ask(f"variant {VARIANT}")
        engine.play("go movetime 1000", "f4f7", "e4e7")
        engine.play("go movetime 1000", "f4f7", "e4e6")
        sent = [line.split()[0] for line in engine.sent()]
        assert sent == [
            "rules",
            "opponent-move",
            "clock",
            "play",
            "finish",
            "rules",
            "opponent-move",
            "clock",
            "play",
        ]


@pytest.mark.parametrize("flags", [(), ("--fresh",)])
def test_games_one_after_the_other(data: Path, flags: tuple[str, ...]) -> None:
    with Wrapped(data, "fast", flags=flags) as engine:
        engine.ask(f"variant {VARIANT}")
        for _ in range(3):
            engine.ask("utinewgame")
            assert engine.play("go movetime 1000")[-1].startswith("bestmove ")
        hellos = engine.trace.read_bytes().count(b"OpenTafl hello")
        assert hellos == (3 if flags else 1)


CLOCKS = {
    "go movetime 5000": "5750* 5750* 1 9 9",
    "go atime 100000 dtime 90000": "4750* 4750* 1 9 9",
    "go atime 100000 dtime 90000 ainc 1000": "5550* 5550* 1 9 9",
    "go atime 10000 dtime 90000": "1750* 1750* 1 9 9",
    "go atime 1500 dtime 90000": "810* 810* 1 9 9",
    "go movetime 200": "950* 950* 1 9 9",
    "go depth 3": "1750* 1750* 1 9 9",
    "go nodes 1000": "1750* 1750* 1 9 9",
}


def test_limits_as_they_can_be_expressed(data: Path) -> None:
    with Wrapped(data, "fast") as engine:
        engine.ask(f"variant {VARIANT}")
        notes = []
        for go in CLOCKS:
            notes += [line for line in engine.play(go) if "note" in line]
        said = [line.removeprefix("clock ") for line in engine.sent() if line.startswith("clock")]
        assert said == list(CLOCKS.values())
        assert len(notes) == 3


def test_its_own_clock(data: Path) -> None:
    with Wrapped(data, "fast", flags=("--own-clock",)) as engine:
        engine.ask(f"variant {VARIANT}")
        engine.play("go atime 61000 dtime 62000 ainc 5")
        assert "clock 61000 62000 0 0 0" in engine.sent()


def test_stop(data: Path) -> None:
    """What it answers late is the answer, and it is left alone until it is silent."""
    with Wrapped(data) as engine:
        engine.ask(f"variant {VARIANT}")
        for _ in range(3):
            engine.send("position startpos", "go infinite")
            assert engine.ask() == []
            engine.send("stop", "position startpos moves f4f7", "go infinite", "isready")
            assert engine.until("bestmove")[-1] != "bestmove (none)"
            engine.send("stop")
            assert engine.until("bestmove")[-1] != "bestmove (none)"
        assert engine.sent().count("finish 0") == 6


def test_stop_before_it_was_asked(data: Path) -> None:
    with Wrapped(data, "slow=0.5") as engine:
        engine.send(f"variant {VARIANT}", "go infinite", "stop", "go infinite", "stop")
        engine.until("bestmove")
        engine.until("bestmove")


def test_several_lines(data: Path) -> None:
    """Values come for the attackers, and go on for the side to move; no more lines than there are moves."""
    with Wrapped(data, "fast") as engine:
        engine.ask(f"variant {VARIANT}", "setoption name MultiPV value 3")
        answer = engine.play("go movetime 1000", "f4f7")
        reports = [line.split() for line in answer if line.startswith("info depth")]
        assert [words[4] for words in reports] == ["1", "2", "3"]
        assert [words[words.index("cp") + 1] for words in reports] == ["50", "49", "48"]
        assert answer[-1] == f"bestmove {reports[0][-1]}"
        engine.ask("setoption name MultiPV value 500")
        engine.play("go movetime 1000")
        assert "analyze 40 1" in engine.sent()
        engine.ask("setoption name MultiPV value 1")
        engine.play("go movetime 1000")


def test_rules_as_opentafl_reads_them(data: Path) -> None:
    """Its letters for the third occurrence are turned round; what it cannot be told is said."""
    with Wrapped(data, "fast") as engine:
        engine.ask("setoption name Rules value dim:7 tfr:w start:/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/")
        engine.play("go movetime 1000")
        assert "tfr:l" in engine.sent()[0]
        assert any("does not know " in line for line in engine.ask("variant tablut-bologna"))
        assert engine.ask("variant hex:5")[-1].startswith("info string error variant")
        assert engine.ask("variant nonsense")[-1].startswith("info string error variant")


def test_a_game_from_another_position(data: Path) -> None:
    with Wrapped(data, "fast") as engine:
        engine.ask(f"variant {VARIANT}")
        engine.send("position fen 7/2t4/7/3K3/7/1T5/7 d 0 1 moves b2b3", "go movetime 1000")
        assert engine.until("bestmove")[-1].startswith("bestmove c6")
        assert re.search(r"atkf:n .*start:/7/1T5/7/3K3/7/2t4/7/$", engine.sent()[0])
        assert engine.sent()[1] == "opponent-move b2-b3"


def test_questions_are_answered_by_our_rules(data: Path) -> None:
    with Wrapped(data) as engine:
        engine.ask(f"variant {VARIANT}")
        assert engine.ask("position startpos moves a4a2", "query turn") == ["response d"]
        assert engine.ask("position startpos moves a4a9")[0].startswith(
            "info string error position: move 1 a4a9"
        )
        assert engine.ask("position startpos moves a4a2", "moves")[0].startswith("moves ")
        assert engine.ask("hello there") == ["info string unknown command: hello there"]
        engine.send("go infinite")
        assert engine.ask("query turn") == ["response d"]
        assert engine.ask("go infinite")[0].startswith("info string error go infinite: not while searching")
        engine.send("stop")
        engine.until("bestmove")


def test_what_it_says_is_told_in_debug_mode(data: Path) -> None:
    with Wrapped(data, "fast") as engine:
        engine.ask(f"variant {VARIANT}", "debug on")
        said = engine.play("go movetime 1000")
        wait_until(lambda: any("nodes 123" in line for line in said + engine.ask()))


# Failures


FAULTS = {
    "crash=2": "OpenTafl has ended: exit status 1; its last words: 'Exception in thread",
    "gives-up=2": "OpenTafl gave up: 'error -1 what am I to do?'",
    "garbage=2": "OpenTafl answered 'what?': expected a move such as a4-a2",
}


@pytest.mark.parametrize("quirk", FAULTS)
def test_an_engine_that_fails(data: Path, quirk: str) -> None:
    engine = Wrapped(data, "fast", quirk)
    engine.ask(f"variant {VARIANT}")
    engine.play("go movetime 1000")
    engine.send("go movetime 1000")
    answer = engine.rest()
    assert answer[-1].startswith(f"info string error {FAULTS[quirk]}")
    assert engine.over() == 3


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (wrapped("nonsense=1"), "has ended: exit status 1"),
        ("true", "has ended"),
    ],
)
def test_an_engine_that_does_not_start(command: str, complaint: str) -> None:
    engine = Conversation("otep", "--wrap", command, "--log-level", "error", command=HNEFI)
    engine.send("uti", "isready")
    assert complaint in engine.rest()[-1]
    assert engine.process.wait(PATIENCE) == 3
    engine.end()


def test_a_program_is_found_from_where_we_are(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though its process has a folder of its own."""
    program = data / "engine.sh"
    program.write_text(f"#!/bin/sh\nexec {wrapped('fast')}\n")
    program.chmod(0o755)
    monkeypatch.chdir(data)
    with Conversation("otep", "--wrap", "./engine.sh", command=HNEFI) as engine:
        engine.send("uti", "isready")
        engine.until("readyok")
        engine.send("quit")


def test_an_illegal_move_is_passed_on(data: Path) -> None:
    """The referee judges."""
    with Wrapped(data, "fast", "illegal=1") as engine:
        engine.ask(f"variant {VARIANT}")
        answer = engine.play("go movetime 1000")
        assert answer[-2:] == ["info string error a1a2 of OpenTafl: expected a legal move", "bestmove a1a2"]


@pytest.mark.parametrize("quirk", ["noise", "late", "flood=1"])
def test_noise_is_skipped(data: Path, quirk: str) -> None:
    with Wrapped(data, "fast", quirk) as engine:
        engine.ask(f"variant {VARIANT}")
        first = engine.play("go movetime 1000")[-1].split()[1]
        replies = engine.ask(f"position startpos moves {first}", "moves")[0].split()[2:]
        assert engine.play("go movetime 1000", first, replies[0])[-1].startswith("bestmove ")


GARBAGE = [
    bytes(range(256)) * 100,
    b"\0" * 65_000,
    b"x" * 1_000_000,
    b"\xff\xfe position",
    b"setoption name MultiPV value " + b"9" * 100_000,
    b"setoption name MoveTime value -1\nsetoption\nsetoption name What value 3",
    b"go movetime x\nstop",
    b"position fen nonsense\nposition\nposition otn /7/",
]


def test_garbage(data: Path) -> None:
    with Wrapped(data, "fast") as engine:
        engine.ask(f"variant {VARIANT}")
        for garbage in GARBAGE:
            assert all(line.startswith(("info string", "bestmove")) for line in engine.ask(garbage, "stop"))
        for byte in b"isready\r\n":
            assert engine.process.stdin is not None
            engine.process.stdin.write(bytes([byte]))
            engine.process.stdin.flush()
        engine.until("readyok")
        engine.send(*["isready"] * 10_000)
        for _ in range(10_000):
            assert engine.line() == "readyok"


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("searching", [False, True])
def test_nothing_is_left_behind(
    data: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals | None, searching: bool
) -> None:
    """The double has a child in a session of its own, and does not listen to TERM."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    engine = Wrapped(data, "stays", "child")
    engine.ask(f"variant {VARIANT}")
    if searching:
        engine.send("go infinite")
        wait_until(lambda: any(line.startswith("play") for line in engine.sent()))
    assert len(marked(mark)) >= 3
    if number is None:
        engine.send("quit")
    else:
        engine.process.send_signal(number)
    expected = 0 if number is None else -9 if number == signal.SIGKILL else 1
    assert engine.process.wait(PROMPTLY) == expected
    expect_nobody(mark)
    engine.end()


def test_its_folder_is_removed(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(data / "temp"))
    (data / "temp").mkdir()
    with Wrapped(data, "fast") as engine:
        engine.ask()
        (folder,) = (data / "temp").glob("hnefi-otep-*")
        assert (folder / "settings.ini").read_text().split() == ["[config]", "thinktime=0"]
    assert list((data / "temp").glob("hnefi-otep-*")) == []


# In the arena


@pytest.mark.slow
def test_it_plays_in_the_arena(data: Path) -> None:
    config = data / "run.toml"
    program, *words = (*HNEFI, "otep", "--no-record", "--wrap", wrapped("fast", "noise"))
    config.write_text(
        f'[run]\nvariants = ["{VARIANT}"]\npairs = 4\nconcurrency = 2\n[each]\nstart = 120\nready = 120\n'
        f'[[engine]]\nname = "tafl"\nmovetime = 60000\ncmd = "{program}"\nargs = {json.dumps(words)}\n'
        f'[[engine]]\nname = "random"\nmovetime = 60000\ncmd = "{sys.executable}"\n'
        'args = ["-m", "hnefi.protocol", "--option", "Algorithm=random"]\n'
    )
    done = subprocess.run(
        [*HNEFI, "arena", "--config", str(config), "--out", str(data / "run"), "--plain"],
        capture_output=True, text=True, check=False, timeout=PATIENCE * 2,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"faults +0\n", done.stdout), done.stdout


CANNOT = {"play-undo", "searchmoves", "info-final", "reproducible"}
"""Steps that OTEP has no words for."""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_it_passes_the_check_of_engines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy machine needs more than two seconds for the end of a process.
    monkeypatch.setattr(transport, "Patience", lambda: Patience(PATIENCE, PATIENCE, PATIENCE, PATIENCE))
    words = [
        "--variant",
        VARIANT,
        "--json",
        *HNEFI,
        "otep",
        "--no-record",
        "--wrap",
        wrapped("fast"),
    ]
    check.main(words)
    said = capsys.readouterr().out
    results = json.loads(said[said.index("{") :])
    failed = {step["name"] for step in results["steps"] if step["status"] == "fail"}
    assert failed <= CANNOT, said[-3000:]
