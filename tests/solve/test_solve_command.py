"""`hnefi solve` from the command line, and the games that need no table."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from solve_parts import CROSS, TINY
from solved import Solver

from hnefi.engine import games
from hnefi.engine.sides import Side
from hnefi.engine.solving import acyclic
from hnefi.engine.solving.table import Table, compressed
from hnefi.engine.squares import move_name
from hnefi.tools.common import live
from hnefi.tools.solve import build, command, layouts


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(TINY)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "winner", "plies"),
    [
        ("hexapawn:3x3", "d", 6), ("hexapawn:4x3", "d", 8), ("hexapawn:5x3", "a", 11), ("hexapawn:3x4", "a", 5),
        ("hexapawn:4x4", "a", 11), ("hexapawn:3x5", "a", 7), ("hexapawn:3x6", "d", 8), ("hexapawn:4x5", "d", 14),
        ("hexapawn:3x7", "a", 9),
    ],
)  # fmt: skip
def test_hexapawn_ends_as_it_is_known_to(name: str, winner: str, plies: int) -> None:
    solved = acyclic.solve(games.initial(games.find(name)), 32, shortest=True)
    assert solved.winner is Side.of(winner)
    assert solved.plies == plies


@pytest.mark.parametrize(
    ("name", "rows"),
    [("hex:2", ".W/W."), ("hex:3", "..W/WWW/W.."), ("hex:4", "...W/..W./.W../W...")],
)
def test_hex_is_won_by_the_known_first_moves(name: str, rows: str) -> None:
    solved = acyclic.solve(games.initial(games.find(name)), 64, shortest=False)
    assert solved.winner is Side.ATTACKERS
    board = rows.split("/")
    expected = {
        f"{'abcd'[file]}{len(board) - row}"
        for row, text in enumerate(board)
        for file, mark in enumerate(text)
        if mark == "W"
    }
    assert {move_name(move) for move in solved.moves} == expected


@pytest.mark.parametrize("name", ["hexapawn:3x3", "hexapawn:3x4", "hex:2", "hex-swap:2"])
def test_games_without_tables_agree_with_brute_force(name: str) -> None:
    """Each position of the first three plies."""
    slow = Solver(name)
    waiting = [games.initial(slow.variant)]
    for _ in range(3):
        for position in waiting:
            solved = acyclic.solve(position, 16, shortest=True)
            assert (solved.winner.letter if solved.winner is not None else "draw") == slow.winner(position)
            for move in position.legal_moves():
                after = position.play(move)
                assert (move in solved.moves) == (slow.winner(after) == slow.winner(position)) or not won(
                    slow.winner(position), position.side
                )
        waiting = [position.play(move) for position in waiting for move in position.legal_moves()]


def won(winner: str, side: Side) -> bool:
    return winner == side.letter


def test_a_table_that_is_too_small_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(acyclic.OutOfMemory, match="more than 57,344 positions, which is all that 1 MiB hold"):
        acyclic.solve(games.initial(games.find("hexapawn:4x5")), 1, shortest=True)
    assert command.main(["hexapawn:4x5", "--memory", "1"]) == 2
    said = capsys.readouterr().err
    assert "hexapawn:4x5: --memory 1: more than 57,344 positions" in said
    assert said.endswith("which is all that 1 MiB hold: expected a larger --memory, or a smaller board\n")


def test_hexapawn_and_hex_say_who_wins(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["hexapawn:3x4", "--memory", "16"]) == 0
    assert capsys.readouterr().out == "hexapawn:3x4: white wins in 5 plies\nwhite wins with a1a2 d1d2\n"
    assert command.main(["hex:3", "--memory", "16", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["winner"], answer["plies"], answer["moves"]) == ("a", None, ["a1", "a2", "b2", "c2", "c3"])


def test_a_board_is_solved_and_asked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["tiny.toml", "--plain"]) == 0
    said = capsys.readouterr()
    assert "tiny, 2 v 1 and fewer men\n16104 positions, 2684 after symmetry\n" in said.err
    assert "repetition = draw: where neither side can force an end, the game is a draw." in said.err
    assert (
        "It takes 1 MiB of memory and of disk, besides 160 MiB of memory for the program, and about 0:00"
        in said.err
    )
    assert "all             2472          13604     28     0  16104\nstart: defenders win in 4\n" in said.out
    assert "longest win of the defenders: 10 plies, 4/4/1Kt1/1tT1 a 0 1\n" in said.out
    assert command.main(["query", "tiny.taflbase"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "2t1/1K2/1T2/1t2 a 0 1: defenders win in 4", "* b1c1  defenders win in 3",
    ]  # fmt: skip
    assert command.main(["query", "tiny.taflbase", "2t1/1K2/1t2/4 d 0 1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["winner"], answer["moves"][0]["winner"]) == ("d", "d")
    assert answer["moves"][0]["plies"] == answer["plies"] - 1
    assert command.main(["show", "tiny.taflbase", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["counts"][-1] == {"material": "all", "a": 2472, "d": 13604, "neither": 28, "over": 0}
    assert len(shown["longest"]["a"]["line"]) == shown["longest"]["a"]["plies"] == 9
    assert command.main(["verify", "tiny.taflbase", "--quiet"]) == 0
    assert capsys.readouterr().out == "tiny.taflbase: all 2684 positions agree with their moves\n"
    assert sorted(path.name for path in here.iterdir()) == ["tiny.taflbase", "tiny.toml"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nowhere", "expected a variant (`hnefi variants` lists them) or a .toml file"),
        ("copenhagen", "copenhagen: size = 11: expected a board of at most 7 x 7 squares"),
        ("tablut-herr-7", "tablut-herr-7: move_limit = 150: values would depend on the plies played"),
        ("mini-four", "--yes: expected, because standard input is not a terminal"),
        ("mini-four --yes --memory 5", "--memory 5: expected at least 20"),
        ("mini-four --memory 0", "--memory: '0': expected a whole number from 1 on"),
        ("mini-four --attackers 5", "--attackers 5: expected at most 4, as many as mini-four begins with"),
        ("mini-four --attackers 0", "--attackers 0: expected at least 1"),
        ("tiny.toml --out tiny.toml", "tiny.toml: already exists"),
        ("tiny.toml --out no/where", "no/where: no folder"),
        ("hexapawn:3x3 --out x", "--out: expected a tafl variant; hexapawn:3x3 is solved from its start"),
        ("hex:3 --fen x", "--fen: expected a tafl variant; hex:3 is solved from its start"),
        ("mini-four --fen 9 --plies 2", "9"),
        ("mini-four --fen 5/5/2K2/5/5 --plies 41", "--plies 41: expected at most 40"),
        ("mini-four --fen 5/5/2K2/5/5 --out x", "--out: expected without --fen, which makes no table"),
        ("mini-four --nodes 5", "--nodes: expected together with --fen"),
        ("query --json tiny.toml 4/4", "tiny.toml: begins with 'name"),
        ("prove mini-four --nodes 10 4/4", "board '4/4': 2 rows"),
        (
            "query tiny.toml",
            "tiny.toml: begins with 'name = \"', expected a table or a proof tree of hnefi solve",
        ),
        ("show nothing", "nothing: No such file or directory; expected a file, or one that ships: brandubh-"),
        ("verify .", ".: Is a directory"),
        ("query", "required: FILE"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    words: str, said: str, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pipe:
        def isatty(self) -> bool:
            return False

    monkeypatch.setattr("sys.stdin", Pipe())
    try:
        status = command.main(words.split())
    except SystemExit as ended:
        status = int(ended.code or 0)
    assert status == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert [path.name for path in here.iterdir()] == ["tiny.toml"]


def test_positions_that_a_table_does_not_have(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["tiny.toml", "--attackers", "1", "--quiet"]) == 0
    assert "start:" not in capsys.readouterr().out
    for fen, said in (
        (
            "2t1/1K2/1T2/1t2 a 0 1",
            "2 attackers against 1 defenders: expected one king and at most 1 against 1",
        ),
        ("2t1/1K2/9 a 0 1", "9"),
    ):
        with pytest.raises(SystemExit) as ended:
            command.main(["query", "tiny.taflbase", fen])
        assert ended.value.code == 2
        assert said in capsys.readouterr().err
    assert here.exists()


def test_a_wrong_table_fails_its_check(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table of other rules under this name: every checksum is right, the values are not."""
    import struct
    import zlib

    assert command.main(["tiny.toml", "--quiet"]) == 0
    data = (here / "tiny.taflbase").read_bytes()
    (length,) = struct.unpack_from("<I", data, 8)
    begin = 12 + length + 4
    with Table(here / "tiny.taflbase") as table:
        codes = table.block(0).copy()
        at = next(i for i, code in enumerate(codes) if code == 5 and table.index.canonical(i) == i)
    codes[at] = 7
    block = compressed(codes.tobytes())
    listed = struct.pack("<II", len(block), zlib.crc32(block))
    (here / "wrong").write_bytes(data[:begin] + listed + struct.pack("<I", zlib.crc32(listed)) + block)
    assert command.main(["verify", "wrong", "--quiet"]) == 1
    assert "positions disagree with their moves, one is" in capsys.readouterr().out


def test_what_solving_costs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["bench", "tiny.toml", "--runs", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["men"] == [2, 1]
    for run in found["runs"]:
        # A look at all moves is at least one, and solving is at least a first look at half of the entries.
        assert 0 < run["move"] < run["swept"]
        assert run["solved"] > run["looked at"] / 2 > 0
        assert run["taken back"] > run["numbered"] > 0
    assert command.main(["bench", "tiny.toml", "--attackers", "1", "--runs", "1"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("tiny, at most 1 v 1: nanoseconds")
    assert "a decided position from which all quiet moves are taken back" in said
    assert [file.name for file in here.iterdir()] == ["tiny.toml"]
    with pytest.raises(SystemExit, match="2"):
        command.main(["bench", "brandubh"])
    assert "expected at most 1024, with fewer men" in capsys.readouterr().err


def test_a_table_without_room_on_the_disk_is_not_begun(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor are its ranges listed, which would fill the memory."""
    with pytest.raises(OSError, match=r"606649791 MiB needed, \d+ MiB free on this disk") as full:
        command.main(["brandubh", "--yes", "--quiet"])
    assert full.value.errno == errno.ENOSPC
    assert full.value.filename == "brandubh.taflbase"
    assert [path.name for path in here.iterdir()] == ["tiny.toml"]
    assert capsys.readouterr().out == ""


LIMITED = """\
import json, resource, sys
from pathlib import Path
from hnefi.tools.solve import command

def sizes():
    pages = Path("/proc/self/statm").read_text().split()
    return [int(size) * resource.getpagesize() for size in pages[:2]]

class Watched(command._Shown):
    most = [0, 0]
    def __call__(self, progress):
        Watched.most = [max(pair) for pair in zip(Watched.most, sizes())]
        super().__call__(progress)

command._Shown = Watched
# Code and kernels first, so that what is measured is the table.
assert command.main(["mini-four", "--attackers", "2", "--yes", "--quiet", "--out", "first.taflbase"]) == 0
before, Watched.most = sizes(), [0, 0]
if sys.argv[1] != "-":
    limit = before[0] + (int(sys.argv[1]) << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
status = command.main(sys.argv[2:])
print(json.dumps([most - at for most, at in zip(Watched.most, before)]))
sys.exit(status)
"""
PACKING = 48
"""MiB that packing a block takes: the same for every table."""
SLACK = 3 << 19
"""Bytes for what is small: a byte more for each of 1.7 million positions would be noticed."""


@pytest.mark.usefixtures("here")
def test_a_comparison_tells_how_far_it_is_without_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "STEP", 0.0)
    assert command.main(["tiny.toml", "--yes", "--quiet"]) == 0
    for argv, lines in (
        (["tiny.taflbase"], ["100 % read", "100 % compared"]),
        (["tiny.taflbase", "--proofs", "50"], ["100 % of 50 proven"]),
    ):
        capsys.readouterr()
        assert command.main(["verify", *argv]) == 0
        told = capsys.readouterr().err.splitlines()
        for line in lines:
            assert any(each.startswith(line) for each in told)
        assert command.main(["verify", *argv, "--quiet"]) == 0
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("main", "argv", "left"),
    [
        (command.main, ["--out", "tiny.taflbase"], "tiny.taflbase.part"),
        (layouts.main, ["--switch", "king_sides=4", "--out", "run"], "run/*.part"),
    ],
)
def test_ended_before_its_folder_is_removed_it_removes_it_next_time(
    main: Callable[[list[str]], int], argv: list[str], left: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole table, beside which the folder it was built in would have stayed for ever."""

    class Killed(BaseException):
        pass

    def killed(folder: Path) -> None:
        (folder / "plan.json").unlink()
        raise Killed

    (here / "tiny.toml").write_text(CROSS)
    with monkeypatch.context() as patched:
        patched.setattr(build.shutil, "rmtree", killed)
        with pytest.raises(Killed):
            main(["tiny.toml", *argv, "--yes", "--quiet"])
    made = {path: path.read_bytes() for path in here.glob("**/*.taflbase")}
    assert made
    assert list(here.glob(left))
    assert main(["tiny.toml", *argv, "--yes", "--quiet"]) == 0
    assert not list(here.glob("**/*.part"))
    assert all(path.read_bytes() == table for path, table in made.items())


def test_a_table_that_ships_is_found_by_its_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of that name comes first."""
    assert command.main(["query", "mini-four"]) == 0
    assert "2t2/2T2/t1K1t/2T2/2t2 a 0 1: defenders win in 8" in capsys.readouterr().out
    (here / "mini-four").write_bytes(b"x")
    assert command.main(["query", "mini-four"]) == 2
    assert "mini-four: begins with 'x', expected a table" in capsys.readouterr().err


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux tells how much memory a process has")
def test_a_table_takes_the_memory_that_was_announced_and_is_refused_with_less(here: Path) -> None:
    """1.7 million positions, 5 MiB: all that is mapped, and all that is touched, while they are solved. With a limit of
    what was announced, and what packing takes, the table is made; with less it is refused in a sentence."""

    def limited(mib: int) -> subprocess.CompletedProcess[str]:
        (here / "first.taflbase").unlink(missing_ok=True)
        argv = ["mini-four", "--attackers", "3", "--out", f"{mib}.taflbase", "--yes", "--plain"]
        return subprocess.run(
            [sys.executable, "-c", LIMITED, str(mib), *argv],
            # What the first table freed must not hide what the second one takes.
            env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"},
            cwd=here, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    words = "It takes 5 MiB of memory and of disk, besides 160 MiB of memory for the program"
    announced = 5
    mapped, touched = [], []
    # What else a process maps varies, once by 1.2 MiB on a busy machine, and only adds to what the table takes.
    while len(mapped) < 3 and (not mapped or min(mapped) >= (announced << 20) + SLACK):
        (here / f"{announced + PACKING}.taflbase").unlink(missing_ok=True)
        enough = limited(announced + PACKING)
        assert words in enough.stderr
        assert enough.returncode == 0, enough.stderr
        for found, size in zip((mapped, touched), json.loads(enough.stdout.splitlines()[-1]), strict=True):
            found.append(size)
    assert (announced - 1) << 20 < min(mapped) < (announced << 20) + SLACK, mapped
    assert (announced - 2) << 20 < min(touched) < (announced << 20) + SLACK, touched
    refused = limited(announced - 1)
    assert words in refused.stderr
    assert "hnefi solve: out of memory (4 MiB of address space needed, more than this process may have)" in (
        refused.stderr
    )
    assert "Traceback" not in refused.stderr
    assert refused.returncode == 2
    assert not (here / f"{announced - 1}.taflbase").exists()
