"""`hnefi htp --wrap`: engines of the text protocol, of both kinds, are engines like any other."""

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

import pytest
from conversation import PATIENCE, Conversation
from htp_parts import BRANDUBH, COPENHAGEN, HNEFI, bare, double, records
from leftover_processes import MARK, expect_nobody, marked, wait_until
from patience import PROMPTLY

from hnefi.gui_adapter.htp import lines

pytestmark = pytest.mark.process

GAME = bare(BRANDUBH)
LONG = bare(COPENHAGEN)


class Wrapped(Conversation):
    """An engine behind the adapter; what the two say to each other is traced."""

    def __init__(self, folder: Path, command: str, *flags: str) -> None:
        self.trace = folder / "trace"
        flags = ("--trace", str(self.trace), "--log-level", "error", *flags)
        super().__init__("htp", "--wrap", command, *flags, command=HNEFI)
        self.send("uti")
        self.greeting = self.until("utiok")

    def play(self, *moves: str, go: str = "go movetime 100") -> str:
        """The answer to one question."""
        self.send(f"position startpos{' moves ' if moves else ''}{' '.join(moves)}", go)
        return self.until("bestmove")[-1]

    def sent(self) -> list[str]:
        """What the engine was told."""
        return re.findall(r"(?m)^\S+ > double_engine.py (.*)$", self.trace.read_text(errors="replace"))

    def over(self) -> int:
        """The exit code of one that has ended by itself."""
        self.process.wait(PATIENCE)
        return self.end()


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path


def brandubh(folder: Path, *quirks: str) -> Wrapped:
    return Wrapped(folder, double("stdio", BRANDUBH, *quirks), "--variant", "brandubh-org")


@pytest.mark.parametrize("quirks", [("noise",), ("old",)])
def test_a_whole_game(data: Path, quirks: tuple[str, ...]) -> None:
    """Both sides' moves are told once, and a line is an answer only where one is awaited."""
    with brandubh(data, *quirks) as engine:
        assert engine.greeting[0] == "id name double_engine.py"
        assert any(
            line.startswith("option name Variant type combo default brandubh-org") for line in engine.greeting
        )
        for ply in range(0, len(GAME), 2):
            assert engine.play(*GAME[:ply]) == f"bestmove {GAME[ply]}"
        assert engine.play(*GAME) == "bestmove (none)"
        expected = ["list_commands", "protocol_version", "board_size 7", "board_size 7", "generate_move"]
        for move in GAME[1::2]:
            expected += [f"play attacker 0{move[:2]} 0{move[2:]}", "generate_move"]
        said = [line for text in engine.sent() for line in text.split("\\n")]
        assert [line for line in said if line][-len(expected) + 3 :] == expected[3:]
    (record,) = records(data)
    assert record.players == ("", "double_engine.py")
    assert record.outcome is not None
    assert record.outcome.text == "d king_escaped"


def test_other_lines_begin_other_games(data: Path) -> None:
    """An opening is told move by move, of both sides; so is a line that another has come before."""
    with brandubh(data) as engine:
        assert engine.play(*GAME[:3]) == f"bestmove {GAME[3]}"
        assert engine.play(*GAME[:2]) == f"bestmove {GAME[2]}"
        engine.ask("utinewgame")
        assert engine.play() == f"bestmove {GAME[0]}"
        assert engine.sent().count("board_size 7") == 4
        spelled = [f"0{move[:2]} 0{move[2:]}" for move in GAME[:3]]
        roles = ("defender", "attacker", "defender")
        plays = [f"play {role} {move}" for role, move in zip(roles, spelled, strict=True)]
        assert [line for line in engine.sent() if line.startswith("play ")] == [*plays, *plays[:2]]


def test_variants_and_positions(data: Path) -> None:
    with Wrapped(data, double("stdio", COPENHAGEN)) as engine:
        known = "brandubh-org, copenhagen-org, copenhagen-org-13"
        for line in ("variant brandubh", "setoption name Variant value brandubh"):
            answer = engine.ask(line)[-1]
            assert answer.startswith("info string error ")
            assert known in answer
        assert engine.play() == f"bestmove {LONG[0]}"
        assert engine.ask("variant copenhagen-org-13")[-1].startswith(
            "info string variant copenhagen-org-13 files 13"
        )
        assert engine.ask("query turn") == ["response a"]
        engine.send("position fen 13/13/13/13/13/13/6K6/13/13/13/13/t12/13 a 0 1", "go movetime 100")
        answer = engine.until("bestmove")
        assert answer[-1] == "bestmove (none)"
        assert any("plays whole games only" in line for line in answer)


def test_it_cannot_be_stopped_and_says_so(data: Path) -> None:
    """A note, once; what it has no words for is named."""
    with brandubh(data) as engine:
        engine.send("go depth 3 searchmoves d5a5")
        answer = engine.until("bestmove")
        assert (
            sum("note double_engine.py takes no limits and cannot be stopped" in line for line in answer) == 1
        )
        assert any("error go searchmoves" in line for line in answer)
        engine.send("position startpos", "go infinite", "stop")
        answer = engine.until("bestmove")
        assert not any("note" in line for line in answer)


FAULTS = {
    "crash=2": "double_engine.py has ended: exit status 7; its last words: 'out of luck'",
    "garbage=2": "double_engine.py answered 'play tennis': expected play ROLE FROM TO",
    "talk=2": "double_engine.py printed 16 MiB without an answer",
    "refuse=4": "double_engine.py answered play attacker 0d2 0c2 with '? no such move'",
}


@pytest.mark.parametrize("quirk", FAULTS)
def test_an_engine_that_fails(data: Path, quirk: str) -> None:
    engine = brandubh(data, quirk)
    engine.play()
    engine.send(f"position startpos moves {' '.join(GAME[: 4 if quirk[0] == 'r' else 2])}", "go movetime 100")
    assert f"info string error {FAULTS[quirk]}" in engine.rest()[-1]
    assert engine.over() == 3


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("true", "has ended"),
        (double("stdio", BRANDUBH, "few"), "does not know play: expected a program of the text protocol"),
        ("true {host}", "ended (exit status 0) and never connected to 127."),
    ],
)
def test_an_engine_that_does_not_start(command: str, complaint: str) -> None:
    engine = Conversation("htp", "--wrap", command, "--log-level", "error", command=HNEFI)
    engine.send("uti", "isready")
    assert complaint in engine.rest()[-1]
    assert engine.process.wait(PATIENCE) == 3
    engine.end()


def test_what_the_referee_judges(data: Path) -> None:
    """An illegal move is passed on, so is a resignation."""
    with brandubh(data, "illegal=1", "resign=2") as engine:
        assert engine.play() == "bestmove a1a2"
        assert engine.play() == "bestmove resign"


# Engines that connect


@pytest.mark.parametrize("first", [0, 1])
def test_a_game_with_an_engine_that_connects(data: Path, first: int) -> None:
    """The first line tells it its side; one process and one connection for each game."""
    with Wrapped(data, double("connect", "{host}", COPENHAGEN)) as engine:
        for _ in range(2):
            engine.ask("utinewgame")
            for ply in range(first, len(LONG), 2):
                assert engine.play(*LONG[:ply]) == f"bestmove {LONG[ply]}"
            assert engine.play(*LONG) == "bestmove (none)"
        engine.ask("utinewgame")
        sent = engine.sent()
        role, other = ("attacker", "defender") if first == 0 else ("defender", "attacker")
        assert sent.count(f"generate_move {role}") == len(LONG)
        assert sum(line.startswith(f"play {other} ") for line in sent) == len(LONG)
        assert sent[0] == ("generate_move attacker" if first == 0 else "play attacker k8 k10")
        # A loser is shown the last move.
        assert sent[-1] == ("play defender c11 a11" if first == 0 else "generate_move defender")
        assert engine.ask("variant brandubh-org")[-1].startswith("info string error variant")


def test_an_engine_that_hangs_up(data: Path) -> None:
    engine = Wrapped(data, double("connect", "{host}", COPENHAGEN, "crash=2"))
    engine.play()
    engine.send(f"position startpos moves {' '.join(LONG[:2])}", "go movetime 100")
    assert re.search(r"double_engine.py (closed the connection|has ended)", engine.rest()[-1])
    assert engine.over() == 3


def test_an_engine_that_complains_hangs_up_and_lives_on(data: Path) -> None:
    """As one that an opening has given the other side."""
    script = (
        "import socket, sys, time\n"
        f"server = socket.create_connection((sys.argv[1], {lines.PORT}))\n"
        "server.makefile().readline()\n"
        "print('we play the other side', file=sys.stderr, flush=True)\n"
        "server.close()\n"
        "time.sleep(3600)\n"
    )
    engine = Wrapped(
        data, shlex.join([sys.executable, "-I", "-S", "-c", script, "{host}"]), "--name", "theirs"
    )
    engine.send("position startpos", "go movetime 100")
    assert engine.rest()[-1] == (
        "info string error theirs closed the connection; its last words: 'we play the other side'"
    )
    assert engine.over() == 3


# Ends


@pytest.mark.parametrize(
    ("kind", "number"),
    [("stdio", None), ("connect", signal.SIGTERM), ("stdio", signal.SIGKILL), ("connect", signal.SIGKILL)],
)
def test_nothing_is_left_behind(
    data: Path, monkeypatch: pytest.MonkeyPatch, kind: str, number: signal.Signals | None
) -> None:
    """While it thinks. It does not listen to TERM, and its child is in a session of its own."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    host = ("{host}",) if kind == "connect" else ()
    engine = Wrapped(data, double(kind, *host, COPENHAGEN, "slow", "child"))
    engine.send("go infinite")
    wait_until(lambda: any(line.startswith("generate_move") for line in engine.sent()), 3 * PROMPTLY)
    assert len(marked(mark)) >= 3
    if number is None:
        engine.send("quit")
    else:
        engine.process.send_signal(number)
    expected = 0 if number is None else -9 if number == signal.SIGKILL else 1
    assert engine.process.wait(PROMPTLY) == expected
    expect_nobody(mark)
    engine.end()


# In the arena


@pytest.mark.slow
def test_it_plays_in_the_arena(data: Path) -> None:
    """Our own face behind a double that prints noise, behind the wrap: legal games with openings, no fault."""
    config = data / "run.toml"
    face = ("htp", "--no-record", "--option", "Algorithm=random", "--movetime", "5000")
    noisy = double("noise", *HNEFI, *face)
    program, *words = (*HNEFI, "htp", "--no-record", "--wrap", noisy, "--variant", "brandubh-org")
    config.write_text(
        '[run]\nvariants = ["brandubh-org"]\npairs = 1\n[each]\nstart = 120\nready = 120\n'
        f'[[engine]]\nname = "htp"\nmovetime = 60000\ncmd = "{program}"\nargs = {json.dumps(words)}\n'
        f'[[engine]]\nname = "random"\nmovetime = 60000\ncmd = "{sys.executable}"\n'
        'args = ["-m", "hnefi.protocol", "--option", "Algorithm=random"]\n'
    )
    done = subprocess.run(
        [*HNEFI, "arena", "--config", str(config), "--out", str(data / "run"), "--plain"],
        capture_output=True, text=True, check=False, timeout=PATIENCE * 2, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"faults +0\n", done.stdout), done.stdout
