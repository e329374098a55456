"""`hnefi otep`: a double of OpenTafl plays whole games with our engine, in its order and with its oddities."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import engine_pool
import pytest
from leftover_processes import MARK, expect_nobody, marked
from otep.double_games import GAMES, Board
from otep.double_host import WAIT, Host, play
from patience import PROMPTLY

from hnefi.engine.records.record import GameRecord
from hnefi.protocol.hosts import journal

pytestmark = pytest.mark.process

HNEFI = (*engine_pool.command(), "otep")
FAULTY = Path(__file__).parents[1] / "support" / "fault_engine.py"
RANDOM = ("--option", "Algorithm=random", "--movetime", "5000")
BRANDUB = GAMES["brandub"]


def start(*flags: str, folder: Path, cwd: Path | None = None, **how: str) -> Host:
    return Host([*HNEFI, *flags], cwd, {**os.environ, "XDG_DATA_HOME": str(folder), **how})


def by_heart(name: str, *faults: str) -> tuple[str, ...]:
    words = (sys.executable, "-I", "-S", str(FAULTY), GAMES[name].by_heart, *faults)
    return ("--engine", " ".join(words))


def records(folder: Path) -> list[GameRecord]:
    files = sorted((folder / "hnefi" / "games" / "otep").glob("*.jsonl"))
    return [record for path in files for record in journal.read(path)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """One conversation for all that is said about boards; it begins anew with each `rules`."""
    host = start(*RANDOM, folder=tmp_path_factory.mktemp("data"))
    host.send(f"rules {BRANDUB.rules}")
    host.expect("hello")
    yield host
    assert host.goodbye() == 0


@pytest.fixture
def host(house: Host) -> Host:
    """It, at the start of a game of brandub."""
    house.send("finish 0")
    house.send(f"rules {BRANDUB.rules}")
    house.said.clear()
    return house


# Whole games


@pytest.mark.parametrize(
    ("name", "side"), [(name, "ad"[at % 2]) for at, name in enumerate(GAMES)] + [("berserk", "d")]
)
def test_a_whole_game(data: Path, name: str, side: str) -> None:
    """Moves and boards of OpenTafl and ours agree to the end."""
    game = GAMES[name]
    host = start(*by_heart(name), folder=data)
    try:
        assert play(host, game, {"side": side}) == game.result
        assert host.goodbye() == 0
    finally:
        host.kill()
    assert "differ" not in host.errors.decode()
    assert "no legal moves" not in host.errors.decode()
    assert not [line for line in host.said if line.startswith("error")]
    (record,) = records(data)
    names = ("hnefi", "OpenTafl")
    assert record.players == (names if side == "a" else names[::-1])
    assert record.outcome is not None
    assert record.outcome.result == game.result
    ours_last = game.moves[-1][1] == side
    assert len(record.plies) == len(game.moves) - (not ours_last)
    assert record.outcome.reason in (("king_escaped", "king_captured") if ours_last else ("adjudicated",))
    assert all(ply.captures is not None for ply in record.plies)


@pytest.mark.parametrize(
    "quirk", ["clock=60000_60000_0_0_0", "clock=0*_0*_30_3_3", "resume=4", "nomove=", "dump="]
)
def test_the_host_s_oddities(data: Path, quirk: str) -> None:
    key, _, value = quirk.partition("=")
    host = start(*by_heart("brandub"), folder=data)
    try:
        assert play(host, BRANDUB, {"side": "a", key: value}) == "a"
        assert host.goodbye() == 0
    finally:
        host.kill()
    (record,) = records(data)
    assert len(record.plies) == len(BRANDUB.moves)
    assert record.outcome is not None
    assert record.outcome.result == "a"


def test_two_games_in_one_conversation(data: Path) -> None:
    host = start(*by_heart("brandub"), folder=data)
    try:
        for side in "ad":
            play(host, BRANDUB, {"side": side})
        assert host.goodbye() == 0
    finally:
        host.kill()
    assert [record.outcome is not None for record in records(data)] == [True, True]


def test_hello_comes_first_and_at_once(data: Path) -> None:
    host = start("--engine", "sleep 600", folder=data)  # it does not wait for its engine
    try:
        assert host.line() == "hello"
        assert host.goodbye(PROMPTLY) == 0
    finally:
        host.kill()
    assert records(data) == []


def test_rules_are_read_as_opentafl_reads_them(data: Path, tmp_path: Path) -> None:
    """`tfr:l` is a win there for who completes the third occurrence."""
    for flags, meaning in (((), "mover_wins"), (("--otn", "intended"), "mover_loses")):
        trace = tmp_path / "trace"
        host = start(*RANDOM, *flags, "--trace", str(trace), folder=data)
        host.send(f"rules {BRANDUB.rules.replace('surf:n', 'surf:n tfr:l')}")
        host.send("play attackers")
        host.expect("hello")
        host.expect("move")
        assert host.goodbye() == 0
        said = re.search(r"> (rules .*)", trace.read_text())
        assert said is not None
        assert said[1].startswith("rules opentafl ") == (meaning == "mover_wins")


# The clock


def test_clocks_reach_the_engine(data: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    host = start(*by_heart("brandub"), "--trace", str(trace), "--movetime", "700", folder=data)
    try:
        host.send(f"rules {BRANDUB.rules}")
        host.expect("hello")
        for clock in ("", "60000 50000 0 0 0 ", "60000 50000 30 3 3 ", "20000* 50000 30 2 3 "):
            host.send("finish 0")
            host.send(f"rules {BRANDUB.rules}")
            if clock:
                host.send(f"clock {clock}")
            host.send("play attackers")
            host.expect("move")
        host.goodbye()
    finally:
        host.kill()
    assert re.findall(r"> (go .*)", trace.read_text()) == [
        "go movetime 700",
        "go atime 60000 dtime 50000",
        "go atime 90000 dtime 50000 ainc 27000",
        "go movetime 19750",
    ]


# Boards


def test_a_refused_move_is_not_played_again(host: Host) -> None:
    """After three refusals we give up: our rules are not the host's."""
    tried = []
    for _ in range(3):
        host.send("play attackers")
        tried.append(host.expect("move"))
        host.send("error 2")
    assert len(set(tried)) == 3
    host.send("play attackers")
    assert host.expect("error").startswith("-1 no move: the host refused ")
    host.send("play attackers")
    host.silent(0.3)
    host.send("finish 3")
    host.send("play attackers")
    host.expect("move")


def test_after_a_refusal_the_opponents_move_may_be_repeated(host: Host) -> None:
    board = Board(BRANDUB.rules)
    board.play("b4-b2")
    for _ in range(2):
        host.send(f"opponent-move b4-b2 {board.record}")
        host.send("play defenders")
        host.expect("move")
        host.send("error 2")
    host.send("finish 0")
    assert not [line for line in host.said if line.startswith(("position", "error"))]


def test_rules_that_differ_are_reported_once(host: Host) -> None:
    host.send("play attackers")
    host.expect("move")
    board = Board(BRANDUB.rules)
    board.play("d2-c2")
    board.rows[5][3] = " "
    host.send(f"move {board.record}")
    assert "rules differ at " in host.expect("status")
    host.send("play defenders")
    board.play(host.expect("move"))
    board.rows[1][2] = " "
    host.send(f"move {board.record}")
    host.send("play attackers")
    host.expect("move")
    assert len([line for line in host.said if "differ" in line]) == 1


def test_a_board_that_no_move_explains_is_played_from(host: Host) -> None:
    host.send("opponent-move a1-b2 /1t5/7/7/3K3/7/7/3T1t1/")
    host.send("play defenders")
    assert host.expect("move").startswith(("d4-", "d7-"))


def test_a_board_that_cannot_be_read_is_asked_for(host: Host) -> None:
    host.send("opponent-move a1-b2 /what/")
    host.send("play defenders")
    assert host.expect("position") == ""
    host.send("position /1t5/7/7/3K3/7/7/3T1t1/")
    assert host.expect("move").startswith(("d4-", "d7-"))


def test_a_host_that_has_no_board_at_all(host: Host) -> None:
    host.send("opponent-move a1-b2 /what/")
    host.expect("position")
    host.send("position /what/")
    assert host.expect("error").startswith("-1 ")


def test_the_side_that_play_names_is_to_move(host: Host) -> None:
    host.send("play defenders")
    move = host.expect("move")
    assert move[:2] in ("d3", "d5", "c4", "e4")


def test_a_finished_game_is_played_on_if_the_host_says_so(host: Host) -> None:
    """Rules may differ about its end; where nothing can be moved, we give up."""
    host.send("position /K4t1/7/7/7/7/7/7/")
    host.send("play attackers")
    assert host.expect("error").startswith("-1 ")


@pytest.mark.parametrize(
    "text", ["", "dim:7", "dim:7 start:/9/", "dim:99 start:/99/", "start:/3t3/", "x" * 20_000]
)
def test_rules_that_cannot_be_read(host: Host, text: str) -> None:
    host.send(f"rules {text}")
    assert host.expect("error").startswith("-1 rules: ")
    host.send("play attackers")
    host.silent(0.2)
    host.send(f"rules {BRANDUB.rules} what:ever")
    host.send("play attackers")
    host.expect("move")


def test_games_that_opentafl_does_not_play_by_their_rules(host: Host) -> None:
    host.send(f"rules {BRANDUB.rules.replace('brandub', 'Magpie')}")
    assert "does not play Magpie by its own rules" in host.expect("status")


# Analysis


def test_an_analysis(data: Path) -> None:
    """Values are for the attackers, whoever is to move."""
    host = start(folder=data)
    try:
        host.send(f"rules {BRANDUB.rules}")
        host.expect("hello")
        for side in ("attackers", "defenders"):
            host.send("position /3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/")
            host.send(f"side {side}")
            host.send("analyze 3 1")
            words = host.expect("analysis").split()
            assert words[0] == "3"
            assert len(words) == 7
            assert abs(int(words[2])) <= 5999
        host.send("position /3K3/7/7/7/7/7/1t5/")
        host.send("side defenders")
        host.send("analyze 500 1")
        words = host.expect("analysis").split()
        assert len(words) == 2 * int(words[0]) + 1
        assert int(words[2]) == -5999
        host.send("analyze 2 600")
        assert host.goodbye(PROMPTLY) == 0
    finally:
        host.kill()
    assert records(data) == []


def test_nothing_to_analyse(host: Host) -> None:
    host.send("position /K4t1/7/7/7/7/7/7/")
    host.send("side attackers")
    host.send("analyze 3 1")
    assert host.expect("status") == "nothing to analyse: the game is over by our rules"


# Ends


def test_finish_stops_a_search(data: Path) -> None:
    """Its answer is dropped, and the next game begins."""
    host = start("--movetime", "600000", folder=data)
    try:
        host.send(f"rules {BRANDUB.rules}")
        host.send("play attackers")
        host.expect("hello")
        host.expect("status")
        host.send("finish 0")
        host.send("finish 0")
        host.send("clock 400* 400* 1 3 3 ")
        host.send("play attackers")
        host.expect("move")
        host.silent(0.3)
        host.send("play attackers")
        assert host.goodbye(PROMPTLY) == 0
    finally:
        host.kill()


@pytest.mark.parametrize("word", ["", "rules", "play", "opponent-move", "move", "finish"])
@pytest.mark.parametrize("inside", [False, True])
def test_a_host_that_vanishes(data: Path, word: str, inside: bool) -> None:
    mark = uuid.uuid4().hex
    board = Board(BRANDUB.rules)
    board.play("b4-b2")
    lines = [
        f"rules {BRANDUB.rules}", f"opponent-move b4-b2 {board.record}", "play defenders",
        f"move {board.record}", "finish 2",
    ]  # fmt: skip
    host = start("--movetime", "600000", folder=data, **{MARK: mark})
    try:
        at = next((at for at, line in enumerate(lines) if line.startswith(word)), 0) if word else -1
        for line in lines[:at]:
            host.send(line)
        if at >= 0:
            host.send(lines[at][: len(lines[at]) // 2] if inside else lines[at], end="" if inside else "\n")
        assert host.process.stdin is not None
        host.process.stdin.close()
        assert host.process.wait(WAIT) == 0
        expect_nobody(mark)
    finally:
        host.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_signals_end_it_with_its_engine(data: Path, number: signal.Signals) -> None:
    mark = uuid.uuid4().hex
    host = start("--movetime", "600000", folder=data, **{MARK: mark})
    try:
        host.send(f"rules {BRANDUB.rules}")
        host.send("play attackers")
        host.expect("hello")
        host.expect("status")
        assert len(marked(mark)) == 2
        host.process.send_signal(number)
        assert host.process.wait(PROMPTLY) == (1 if number != signal.SIGKILL else -9)
        expect_nobody(mark)
    finally:
        host.kill()


@pytest.mark.parametrize("fault", ["exit", "segv", "illegal=a1a9", "no-search", "hang", "close-stdout"])
def test_an_engine_that_fails_once_is_started_again(data: Path, fault: str) -> None:
    """It strikes at its second move; the next process has the whole game before it."""
    host = start(*by_heart("brandub", fault), "--movetime", "100", folder=data)
    try:
        play(host, BRANDUB, {"side": "d"})
        assert host.goodbye() == 0
    finally:
        host.kill()
    assert "it is started again" in host.errors.decode()
    assert len(records(data)[0].plies) == len(BRANDUB.moves) - 1


def test_an_engine_that_always_fails_resigns(data: Path) -> None:
    host = start(*by_heart("brandub", "exit", "at=1"), folder=data)
    try:
        host.send(f"rules {BRANDUB.rules}")
        host.send("play attackers")
        host.expect("hello")
        assert host.expect("error").startswith("-1 the engine failed: ")
        assert host.left(PROMPTLY) == 4
    finally:
        host.kill()


def test_a_resignation_says_nothing_about_the_rules(data: Path) -> None:
    host = start(*RANDOM, folder=data)
    try:
        host.send(f"rules {BRANDUB.rules}")
        host.send("play attackers")
        host.expect("hello")
        host.expect("move")
        board = Board(BRANDUB.rules)
        board.play(host.said[-1].removeprefix("move "))
        host.send(f"move {board.record}")
        host.send("opponent-move a1-b2 /what/")
        host.expect("position")
        host.send("position /what/")
        host.expect("error")
        host.send("finish 2")
        assert host.goodbye() == 0
    finally:
        host.kill()
    (record,) = records(data)
    assert record.outcome is not None
    assert record.outcome.text == "d resignation"


# What nobody should send


GARBAGE = {
    "bytes": bytes(range(256)) * 256 + b"\n",
    "nuls": b"\0" * 65_000 + b"\n",
    "bad utf-8": b"opponent-move \xff\xfe\xc3( \xed\xa0\x80\n",
    "escapes": b"\x1b[2J\x1b]0;title\x07 rules\n",
    "too long": b"opponent-move " + b"a1-a2|" * 200_000 + b"\n",
    "half words": b"rul\nplay\nplay nobody\nopponent-move\nmove\nerror\nerror x\nanalyze\nanalyze 1\nfinish x\nclock\n",
    "numbers": b"clock "
    + b"9" * 100_000
    + b" 1 1 1 1\nanalyze -1 -1\nfinish 99999\nerror "
    + b"7" * 50_000
    + b"\n",
    "stars": b"clock * * * * *\nclock 1* 1* 1* 1* 1*\nclock -5 -5 -5 -5 -5\n",
    "not asked": b"move /3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/\nerror 2\nfinish 2\nfinish 1\n",
    "dumps": b"dump 3dump 4dump\n",
    "a flood": b"status what\nclock 60000 60000 0 0 0\n" * 5_000,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_skipped(host: Host, name: str) -> None:
    host.send(GARBAGE[name])
    host.send(f"rules {BRANDUB.rules}")
    host.send("clock 60000 60000 0 0 0 ")
    host.send("play attackers")
    while (line := host.line()) is not None and not line.startswith("move"):
        assert line.startswith(("status", "error -1", "position")), line
    host.send("finish 0")


def test_one_byte_at_a_time(host: Host) -> None:
    for byte in b"play attackers\r\n":
        host.send(bytes([byte]))
    host.expect("move")


def test_swapped_and_doubled_lines(host: Host) -> None:
    board = Board(BRANDUB.rules)
    board.play("b4-b2")
    host.send("play attackers\nplay attackers")
    first = host.expect("move")
    host.silent(0.3)
    board = Board(BRANDUB.rules)
    board.play(first)
    host.send(f"move {board.record}\nmove {board.record}\nmove {board.record}")
    reply = next(move for move in ("d3-c3", "d3-e3", "d5-c5", "d5-e5") if move[:2] != first[3:] != move[3:])
    board.play(reply)
    host.send(f"play attackers\nopponent-move {reply} {board.record}\nopponent-move {reply} {board.record}")
    host.send("play attackers")
    host.expect("move")
    host.send("finish 0")
    assert not [line for line in host.said if line.startswith(("error", "position"))]


@pytest.mark.slow
def test_a_host_that_does_not_read(data: Path) -> None:
    """What it is told stays bounded, and it can still be left."""
    process = subprocess.Popen(
        [*HNEFI, *RANDOM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "XDG_DATA_HOME": str(data)},
    )  # fmt: skip
    assert process.stdin is not None
    try:
        turn = b"rules x\nfinish 0\n"
        with contextlib.suppress(BrokenPipeError):
            while True:
                process.stdin.write(turn * 100)
        assert process.wait(PROMPTLY) == 3
    finally:
        process.kill()
        process.communicate()
