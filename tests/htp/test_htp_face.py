"""`hnefi htp`: each command of the text protocol as it is described, byte for byte, and whatever else may come."""

from __future__ import annotations

import os
import random
import re
import shlex
import signal
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from conversation import Conversation
from htp_parts import BRANDUBH, COPENHAGEN, HNEFI, RANDOM, bare, by_heart, records, run, start
from leftover_processes import MARK, expect_nobody, marked, wait_until
from patience import PROMPTLY

from hnefi.engine.about import VERSION
from hnefi.gui_adapter.htp import command

pytestmark = pytest.mark.process

COMMANDS = (
    "board_size final_status first_move generate_move known_command list_commands name play play_from play_to "
    "play_undo protocol_version quit show_board show_board_open_tafl time_settings version"
)

# Questions and answers of one conversation; an empty line is part of a refusal.
TABLE = f"""\
> name
= hnefi
> version
= {VERSION}
> protocol_version
= 1-beta
> known_command play
= true
> known_command fly
= false
> known_command
? known_command: expected a name, as in known_command play

> list_commands
=_
{COMMANDS.replace(" ", chr(10))}
> board_size 7
=_
> show_board
=_
 7 . . . A . . .
 6 . . . A . . .
 5 . . . D . . .
 4 A A D K D A A
 3 . . . D . . .
 2 . . . A . . .
 1 . . . A . . .
   a b c d e f g
> show_board_open_tafl
= /3A3/3A3/3D3/AADKDAA/3D3/3A3/3A3/
> final_status
= ongoing
> play_undo
? play_undo: no move has been played

> play_from
= defender 0c4 0d3 0d5 0e4
> play_to d 0d5
= 0a5 0b5 0c5 0e5 0f5 0g5
> play_to D D5
= 0a5 0b5 0c5 0e5 0f5 0g5
> play_to attacker 0a4
? attacker: expected defender, whose turn it is

> play_to defender 0d6
=_
> play defender 0d5 0a5
=_
> play a 0d6 0d7
? play attacker 0d6 0d7: blocked at d7: expected a legal move

> play d 0d6 0g6
? defender: expected attacker, whose turn it is

> play attacker 0d6 0g6
=_
> play Defender 0D4 d5
=_
> play A d2 c2
=_
> play d 0d5 0g5
= 0g6
> show_board_open_tafl
= /3A3/7/D5K/AAD1DAA/3D3/2A4/3A3/
> show_board
=_
 7 . . . A . . .
 6 . . . . . . .
 5 D . . . . . K
 4 A A D . D A A
 3 . . . D . . .
 2 . . A . . . .
 1 . . . A . . .
   a b c d e f g
> play_undo
=_
> show_board_open_tafl
= /3A3/6A/D2K3/AAD1DAA/3D3/2A4/3A3/
> play d 0d5 0g5
= 0g6
> play a 0b4 0b5
=_
> play d 0g5 0g7
=_
> final_status
= defender_wins
> generate_move
? the game is over, defender wins (king escaped): expected a new game

> play a resigns
? the game is over, defender wins (king escaped): expected a new game

> play_undo
=_
> play defender resigns
=_
> final_status
= attacker_wins
> play_undo
=_
> play d resign
=_
> first_move attacker
=_
> play_from
= attacker 0a4 0b4 0d1 0d2 0d6 0d7 0f4 0g4
> final_status
= ongoing
> first_move
? first_move: expected a role, as in first_move attacker

> time_settings fischer 15 10
=_
> play_from
= defender 0c4 0d3 0d5 0e4
> time_settings un-timed
=_
> time_settings fischer 15
? time_settings 'fischer 15': expected un-timed, or fischer MINUTES SECONDS

> board_size 9
? board_size '9': expected 7, 11, 13

> board_size 13
=_
> play_to a A5
= B5 C5 D5 E5 F5
> show_board_open_tafl
= /3AAAAAAA3/6A6/13/A5D5A/A5D5A/A4DDD4A/AA1DDDKDDD1AA/A4DDD4A/A5D5A/A5D5A/13/6A6/3AAAAAAA3/
> board_size 11
=_
> play attacker d1 d3
=_
> show_board_open_tafl
= /3AAAAA3/5A5/11/A4D4A/A3DDD3A/AA1DDKDD1AA/A3DDD3A/A4D4A/3A7/5A5/4AAAA3/
> quit
=_
"""


def conversation(text: str) -> tuple[bytes, bytes]:
    """What is asked and what is answered in a table."""
    lines = text.splitlines()
    asked = [line[2:] for line in lines if line.startswith("> ")]
    said = [line.replace("=_", "= ") for line in lines if not line.startswith("> ")]
    return "\n".join([*asked, ""]).encode(), "\n".join([*said, ""]).encode()


def test_every_command(tmp_path: Path) -> None:
    asked, expected = conversation(TABLE)
    assert {line.split()[0] for line in asked.decode().splitlines()} == set(COMMANDS.split())
    done = run(*RANDOM, "--no-record", folder=tmp_path, said=asked)
    assert done.stdout.decode() == expected.decode()
    assert done.returncode == 0
    assert done.stderr == b""


def test_what_is_read(tmp_path: Path) -> None:
    """Comments, tabs, carriage returns, blanks; the last line may have no end."""
    said = b"\n  # nothing\r\n\tboard_size \t 7 # small\r\nplay  d\t0d5   0a5 # why not\n#\nfinal_status"
    assert run(*RANDOM, folder=tmp_path, said=said).stdout == b"= \n= \n= ongoing\n"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conversation]:
    """One conversation for much that is said."""
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data"))
    with Conversation("htp", *RANDOM, command=HNEFI) as engine:
        engine.send("board_size 7")
        assert engine.line() == "= "
        yield engine
        engine.send("quit")
        assert engine.rest() == ["= "]


REFUSED = {
    b"fly": "'fly': expected a command that list_commands names",
    b"PLAY a b c": "'PLAY': expected a command",
    b"play": "'play': expected play ROLE FROM TO, or play ROLE resigns",
    b"play a": "expected play ROLE FROM TO",
    b"play a 0a4": "expected play ROLE FROM TO",
    b"play roleless 0a4 0a3": "'roleless': expected a role, attacker or defender",
    b"play a h1 h2": "'h1': expected a square, 0a1 to 0g7",
    b"play a 0a0 0a1": "'0a0': expected a square",
    b"play_to a": "play_to: expected a role and a square",
    b"generate_move attacker": "attacker: expected defender, whose turn it is",
    b"board_size": "board_size '': expected 7, 11, 13",
    b"board_size \xd9\xa7": "expected 7, 11, 13",
    b"board_size " + b"7" * 60_000: "expected 7, 11, 13",
    b"time_settings fischer 0 0": "expected un-timed, or fischer MINUTES SECONDS",
    b"time_settings fischer -1 5": "expected un-timed, or fischer MINUTES SECONDS",
    b"time_settings fischer " + b"9" * 9_000 + b" 1": "expected un-timed, or fischer MINUTES SECONDS",
    b"na\xc3\x28me": "expected UTF-8",
    b"\x00\x1b[2J": "expected a command",
    b"x" * 100_000: "a line of more than 65536 bytes: expected a command",
}


@pytest.mark.parametrize("said", REFUSED, ids=lambda said: said[:20].decode("ascii", "replace"))
def test_what_is_refused(house: Conversation, said: bytes) -> None:
    """A sentence that fits on a line, and an empty line; the conversation goes on."""
    house.send(said)
    refusal = house.line()
    assert house.line() == ""
    assert refusal is not None
    assert refusal.startswith("? ")
    assert REFUSED[said] in refusal
    assert len(refusal) < 250
    assert refusal.isprintable()


def test_random_bytes_and_pieces(house: Conversation) -> None:
    draw = random.Random(1)
    garbage = bytes(draw.choices(range(256), k=65_536)).replace(b"quit", b"")
    house.send(garbage, b"name")
    house.until("= hnefi")
    assert house.process.stdin is not None
    for byte in b"name\r\n":
        house.process.stdin.write(bytes([byte]))
        house.process.stdin.flush()
    assert house.line() == "= hnefi"
    house.send(*["name"] * 10_000)
    for _ in range(10_000):
        assert house.line() == "= hnefi"


def test_our_engine_plays(house: Conversation) -> None:
    """It plays what it says, in the form of the documentation, in one line."""
    house.send("board_size 7", "generate_move", "play_from", "generate_move attacker", "play_from")
    assert house.line() == "= "
    assert re.fullmatch(r"= play defender 0[a-g][1-7] 0[a-g][1-7]", house.line() or "")
    assert (house.line() or "").startswith("= attacker ")
    assert re.fullmatch(r"= play attacker 0[a-g][1-7] 0[a-g][1-7]", house.line() or "")
    assert (house.line() or "").startswith("= defender ")


def test_a_game_on_13_x_13(house: Conversation) -> None:
    house.send("board_size 13", "generate_move")
    assert house.line() == "= "
    assert re.fullmatch(r"= play attacker [A-M]\d+ [A-M]\d+", house.line() or "")


# Whole games


def test_a_whole_game_is_written_down(tmp_path: Path) -> None:
    """The defenders, who begin on 7 x 7, are ours."""
    moves = [f"0{move[:2]} 0{move[2:]}" for move in bare(BRANDUBH)]
    said = "board_size 7\n"
    expected = ["= "]
    for ply, move in enumerate(moves):
        said += "generate_move\n" if ply % 2 == 0 else f"play attacker {move}\n"
        expected.append(f"= play defender {move}" if ply % 2 == 0 else "= ")
    done = run(
        *by_heart(BRANDUBH),
        "--variant",
        "brandubh-org",
        folder=tmp_path,
        said=f"{said}final_status\n".encode(),
    )
    assert done.stdout.decode().splitlines() == [*expected, "= defender_wins"]
    (record,) = records(tmp_path)
    assert record.players == ("", "hnefi")
    assert record.variant == "brandubh-org"
    assert record.outcome is not None
    assert record.outcome.text == "d king_escaped"
    assert len(record.plies) == len(moves)
    assert all(ply.captures is not None for ply in record.plies)


def test_unfinished_games_are_written_down(tmp_path: Path) -> None:
    said = (
        "board_size 7\nplay d d5 a5\nplay_undo\nplay d d5 b5\n"  # left after a move
        "first_move a\nplay a a4 a3\nplay d d5 c5\nplay a resign\nplay_undo\nplay a a3 a2\n"  # resigned, played on
    )
    assert run(*RANDOM, folder=tmp_path, said=said.encode()).stdout.count(b"= ") == 10
    first, resigned, second = records(tmp_path)
    assert [len(record.plies) for record in (first, resigned, second)] == [1, 2, 3]
    assert first.outcome is None
    assert resigned.outcome is not None
    assert resigned.outcome.text == "d resignation"
    assert second.start is not None
    assert " a " in second.start
    assert second.players == ("", "")


def test_clocks_reach_the_engine(tmp_path: Path) -> None:
    """A turn costs what it took, a move adds its seconds, and taking it back takes them away."""
    trace = tmp_path / "trace"
    said = (
        "time_settings fischer 2 60\ngenerate_move\ngenerate_move\nplay_undo\ngenerate_move\n"
        "time_settings un-timed\ngenerate_move\n"
    )
    done = run(
        *by_heart(COPENHAGEN), "--trace", str(trace), "--movetime", "700", folder=tmp_path, said=said.encode()
    )
    assert done.stdout.count(b"= play") == 4
    goes = re.findall(r"> (go .*)", trace.read_text())
    assert goes[0] == "go atime 120000 dtime 120000 ainc 60000 dinc 60000"
    assert goes[3:] == ["go movetime 700"]
    for go in goes[1:3]:
        found = re.fullmatch(r"go atime (\d+) dtime (\d+) ainc 60000 dinc 60000", go)
        assert found is not None, go
        attackers, defenders = map(int, found.groups())
        assert 120_000 < attackers <= 180_000
        assert 60_000 < defenders <= 120_000


# Failures


@pytest.mark.parametrize("fault", ["exit=3", "hang", "illegal=a1a2"])
def test_an_engine_that_fails(tmp_path: Path, fault: str) -> None:
    """It is started again once; then the convention's error, and our exit code."""
    done = run(
        *by_heart(COPENHAGEN, fault, "at=1"),
        "--movetime",
        "50",
        folder=tmp_path,
        said=b"generate_move\nname\n",
    )
    assert done.returncode == 4
    assert done.stdout.startswith(b"? the engine failed: ")
    assert done.stdout.endswith(b"\n\n")
    assert done.stdout.count(b"\n") == 2


def test_an_engine_that_resigns(tmp_path: Path) -> None:
    done = run(*by_heart("resign"), folder=tmp_path, said=b"generate_move\nfinal_status\n")
    assert done.stdout == b"= play attacker resigns\n= defender_wins\n"


@pytest.mark.parametrize("flags", [
    ("--variant", "brandubh"), ("--wrap", "a", "--connect", "b"), ("--wrap", "a", "--movetime", "5"), ("--wrap", "'"),
    ("--connect", "a:b"), ("--connect", "localhost", "--variant", "brandubh-org"), ("--address", "127.0.0.1"),
    ("--wrap", "a {host}", "--variant", "copenhagen-org-13"), ("--engine", "a", "--player", "simple"),
    ("--player", "nobody"), ("--wait", "3"),
])  # fmt: skip
def test_wrong_flags(capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ending:
        command.main(list(flags))
    assert ending.value.code == 2
    said = capsys.readouterr()
    assert "expected" in said.err
    assert said.out == ""


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_behind(tmp_path: Path, number: signal.Signals | None) -> None:
    """In the middle of a long search; None: whoever has started us is gone, with both pipes."""
    mark = uuid.uuid4().hex
    process = start("--movetime", "600000", "--log-level", "error", folder=tmp_path, **{MARK: mark})
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"board_size 7\nplay_from\ngenerate_move\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"= \n"
    assert process.stdout.readline().startswith(b"= defender")
    wait_until(lambda: len(marked(mark)) >= 2)
    if number is None:
        process.stdin.close()
        process.stdout.close()
    else:
        process.send_signal(number)
    expected = {None: 0, signal.SIGKILL: -9}.get(number, 1)
    assert process.wait(PROMPTLY) == expected
    expect_nobody(mark)
    process.kill()
    for stream in (process.stdin, process.stdout, process.stderr):
        assert stream is not None
        stream.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux finds what has left its group")
def test_what_an_engine_has_started_ends_when_we_are_killed(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    _, engine = by_heart(COPENHAGEN, f"gate={tmp_path / 'never'}")
    engine = shlex.join(["sh", "-c", f"setsid sleep 3600 & exec {engine}"])
    process = start("--engine", engine, folder=tmp_path, **{MARK: mark})
    try:
        wait_until(lambda: any("b'sleep" in line for line in marked(mark)))
    finally:
        process.kill()
        process.communicate()
    expect_nobody(mark)
