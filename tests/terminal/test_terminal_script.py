"""`hnefi play` from files and pipes: what it prints, how it ends, and that nothing heavy is loaded for it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from terminal_parts import GAME, parrot

pytestmark = pytest.mark.process

HNEFI = [sys.executable, "-m", "hnefi.tools.cli", "play"]
LONG = 240


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment with folders of its own."""
    return {**os.environ, "XDG_DATA_HOME": f"{tmp_path}/data", "XDG_CONFIG_HOME": f"{tmp_path}/config"}


def play(home: dict[str, str], *arguments: str, lines: str | bytes = "") -> subprocess.CompletedProcess[str]:
    data = lines if isinstance(lines, bytes) else lines.encode()
    done = subprocess.run(
        [*HNEFI, *arguments], input=data, capture_output=True, timeout=LONG, env=home, check=False
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


SESSION = """\
board
d1d3
a4a2
undo 1
moves d1
b4b2
history
"""

EXPECTED = """\
  a b c d e f g
7 x . . t . . x 7
6 . . . t . . . 6
5 . . . T . . . 5
4 t t T K T t t 4
3 . . . T . . . 3
2 . . . t . . . 2
1 x . . t . . x 1
  a b c d e f g
attackers to move
captures: attackers 0, defenders 0
error: d1d3: blocked at d2
defenders (Parrot): d3a3xa2
Taken back: 1 ply; the engine waits for `go`.
error: d1: this man belongs to the attackers, and the defenders are to move
error: b4b2: that is an attacker, defenders are to move
  1. a4a2*  d3a3xa2
"""


def test_a_session_word_for_word(home: dict[str, str], tmp_path: Path) -> None:
    engine = parrot("at=99", moves=("a4a2", "d3a3"))
    trace = tmp_path / "trace"
    done = play(home, "--variant", "brandubh", "--engine", engine, "--trace", str(trace), lines=SESSION)
    assert (done.stdout, done.stderr, done.returncode) == (EXPECTED, "", 0)
    lines = trace.read_text().splitlines()
    assert any(line.endswith("> position startpos moves a4a2") for line in lines)
    assert any(" < bestmove d3a3" in line for line in lines)
    sent = [line.partition(" > ")[2] for line in lines]
    assert sent.index("setoption name Side value d") < sent.index("utinewgame")


def test_a_script_stops_at_the_first_error_where_errors_count(home: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "moves.txt"
    file.write_bytes(b"b4b2\r\n# a comment\n\nb4b2\nc4b4\n")
    done = play(home, "--variant", "brandubh", "--side", "both", "--script", str(file), "--strict")
    assert done.returncode == 2
    assert done.stdout == "error: b4b2: nothing stands on b4\n"
    again = play(home, "--variant", "brandubh", "--side", "both", "--script", str(file))
    assert (again.returncode, again.stdout) == (0, done.stdout)


def test_engines_play_a_whole_game(home: dict[str, str]) -> None:
    done = play(
        home, "--variant", "hexapawn", "--side", "none", "--level", "2", "--level", "3", lines="history\n"
    )
    assert done.returncode == 0
    assert "The game is over: " in done.stdout
    assert done.stdout.index("The game is over") < done.stdout.index("  1. ")


@pytest.mark.parametrize(
    ("words", "variant"),
    [
        (["--against", "hex-perfect"], "hex:5"),
        (["--level", "3", "--against", "hexapawn-perfect"], "hexapawn:3x3"),
        (["--against", "hex-uct-1k"], "hex:11"),
        (["--against", "random-blind"], "brandubh"),
        (["--variant", "hex:4", "--against", "hex-uct-1k"], "hex:4"),
        (["--engine", "mine"], "hex:7"),
    ],
)
def test_an_opponent_that_plays_one_game_chooses_it(
    words: list[str], variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "hnefi").mkdir()
    (tmp_path / "hnefi" / "engines.toml").write_text('[mine]\ncommand = "true"\nvariants = ["hex:7"]\n')
    from hnefi.gui_adapter.terminal import command

    parser = command._parser()
    assert command._variant(parser, parser.parse_args(words), "brandubh").name == variant


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--variant", "brandub-x"],
            "expected the name of a variant (did you mean ",
        ),
        (
            ["--variant", "nowhere"],
            "--variant 'nowhere': expected a variant (`hnefi variants` lists them) or a .toml file See",
        ),
        (
            ["--variant", "/nowhere.toml"],
            "No such file or directory: expected a readable file See",
        ),
        (["--level", "11"], "expected a number from 0 to 10, or auto"),
        (["--against", "nobody"], "no player 'nobody'"),
        (["--against", "/bin/nobody"], "`hnefi engines add` registers a program"),
        (["--against", "simple", "--variant", "hex"], "plays tafl only"),
        (["--against", "hex-perfect", "--against", "simple"], "simple plays tafl only, not hex:5"),
        (["--engine", '"'], "expected a program and its arguments"),
        (["--engine", "no-such-engine"], "no such program in the PATH"),
        (["--level", "1", "--level", "2", "--level", "3"], "at most two opponents"),
        (["--clock", "soon"], "expected minutes+seconds"),
        (["--load", "/no/such/file.tafl"], "No such file"),
        (["--script", "/no/such/file"], "No such file"),
        (["--continue"], "no unfinished game"),
        (["--watch", "/no/such/run"], "no such folder: expected the folder of a run"),
        (["--option", "Hash"], "expected NAME=VALUE"),
        (
            ["--variant", "brandubh", "--option", "Evaluator=no.safetensors"],
            "level 5: no.safetensors: No such file",
        ),
        (
            ["--variant", "hex:5", "--option", "Evaluator=net-brandubh-2"],
            "level 5: net-brandubh-2: made for brandubh",
        ),
        (
            ["--option", "Evaluator=nobody"],
            "level 5: option Evaluator 'nobody': expected a file whose name ends",
        ),
        (["--movetime", "0"], "expected milliseconds"),
        (["--seed", "-1"], "expected a whole number"),
        (["--tui"], "expected a terminal"),
        (["--zoom", "4"], "invalid choice"),
        (["--trace", "/no/such/folder/x"], "expected a file that can be written"),
    ],
)
def test_wrong_command_lines(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
    tmp_path: Path,
) -> None:
    from hnefi.gui_adapter.terminal.command import main

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with (tmp_path / "nothing").open("w+") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        with pytest.raises(SystemExit) as ended:
            main(arguments)
    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_an_engine_that_cannot_be_run_is_the_other_sides_fault(home: dict[str, str], tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF")
    broken.chmod(0o755)
    done = play(home, "--variant", "brandubh", "--engine", str(broken), lines="b4b2\nc4b4\nhistory\n")
    assert done.returncode == 3
    assert f"cannot start {broken}" in done.stdout
    assert "  1. b4b2  c4b4*" in done.stdout


def test_a_game_that_cannot_be_taken_up_ends_the_program(home: dict[str, str], tmp_path: Path) -> None:
    """The file can be read, and the rules refuse what is in it."""
    game, picture = tmp_path / "game.csv", tmp_path / "z.svg"
    game.write_text("a4a2 d3a1,0,0,\n")
    drawn = play(home, "--variant", "brandubh", "--load", str(game), "--screenshot", str(picture))
    assert (drawn.returncode, drawn.stdout, picture.exists()) == (2, "", False)
    assert "d3a1" in drawn.stderr
    played = play(home, "--variant", "brandubh", "--load", str(game), lines="board\n")
    assert played.returncode == 2
    assert played.stdout.startswith("error: ")
    assert "d3a1" in played.stdout
    assert "a b c d" not in played.stdout


def test_the_shipped_picture_is_made_by_its_script(home: dict[str, str], tmp_path: Path) -> None:
    pictures = Path(__file__).resolve().parents[2] / "docs" / "terminal"
    made = tmp_path / "board.svg"
    words = ["--variant", "brandubh", "--side", "both", "--script", str(pictures / "brandubh.txt")]
    assert play(home, *words, "--screenshot", str(made)).returncode == 0
    assert made.read_text("utf-8") == (pictures / "brandubh.svg").read_text("utf-8")


def test_a_picture_does_not_say_that_engines_are_held(home: dict[str, str], tmp_path: Path) -> None:
    made = tmp_path / "board.txt"
    words = ["--variant", "brandubh", "--side", "none", "--level", "1", "--screenshot", str(made)]
    assert play(home, *words).returncode == 0
    assert "paused" not in made.read_text("utf-8")


def test_random_bytes_do_no_harm(home: dict[str, str]) -> None:
    rng = random.Random(3)
    data = rng.randbytes(65_536) + b"\n" + b"x" * 300_000 + b"\nundo\n\xff\xfe\x00b4b2\nb4b2\nhistory"
    done = play(home, "--variant", "brandubh", "--side", "both", lines=data)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("  1. b4b2*\n")
    assert all(sign.isprintable() or sign == "\n" for sign in done.stdout)
    assert len(done.stdout) < 200_000


def test_whoever_reads_may_go(home: dict[str, str]) -> None:
    lines = "help\n" * 3000
    process = subprocess.Popen(
        HNEFI, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=home
    )
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdin.write(lines.encode()[:60_000])
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    _, errors = process.communicate(timeout=LONG)
    assert b"Traceback" not in errors
    assert process.returncode == 0


def _children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _gone(pid: int) -> bool:
    """Whether a process has ended; one that waits to be reaped has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are counted through /proc")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 1), (signal.SIGKILL, -signal.SIGKILL)])
def test_no_engine_outlives_the_game(
    home: dict[str, str], tmp_path: Path, number: signal.Signals, status: int
) -> None:
    process = subprocess.Popen(
        [*HNEFI, "--variant", "brandubh", "--level", "1", "--record-dir", str(tmp_path / "games")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=home,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"b4b2\n")
    process.stdin.flush()
    assert b"hnefi level 1" in process.stdout.readline()
    children = _children(process.pid)
    assert len(children) == 2
    process.send_signal(number)
    _, errors = process.communicate(timeout=LONG)
    assert (process.returncode, errors) == (status, b"")
    deadline = time.monotonic() + LONG
    while not all(map(_gone, children)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (file,) = (tmp_path / "games").glob("*.jsonl")
    again = play(home, "--load", str(file), "--side", "both", lines="history\n")
    assert "  1. b4b2  " in again.stdout


def test_no_engine_moves_before_the_game_that_is_loaded(home: dict[str, str], tmp_path: Path) -> None:
    """Two engines used to play the game of the fresh board to its end, and then the file was loaded."""
    game = tmp_path / "game.tafl"
    game.write_text('[Variant "brandubh"]\n\n1. a4a2 *\n')
    engine = parrot("at=99", moves=("b4b2", "d3a3"))
    done = play(
        home,
        "--variant",
        "brandubh",
        "--load",
        str(game),
        "--side",
        "none",
        "--engine",
        engine,
        lines="history\n",
    )
    assert done.returncode == 0, done.stderr
    assert "Parrot" not in done.stdout
    assert done.stdout.splitlines()[0].startswith("Loaded: ")
    assert done.stdout.splitlines()[-1] == "  1. a4a2*"


def test_the_players_of_a_loaded_game_have_the_options_of_the_command_line(
    home: dict[str, str], tmp_path: Path
) -> None:
    game = tmp_path / "game.tafl"
    game.write_text(
        '[Variant "brandubh"]\n[AttackersSeat "person"]\n[DefendersSeat "level 1"]\n\n1. a4a2 *\n'
    )
    trace = tmp_path / "trace.txt"
    words = ("--load", str(game), "--option", "Evaluator=default-2026.2", "--movetime", "50")
    done = play(home, *words, "--trace", str(trace), lines="go\n")
    assert done.returncode == 0, done.stderr
    assert "hnefi level 1 evaluates by default-2026.2 instead of " in done.stdout
    assert "setoption name Evaluator value default-2026.2" in trace.read_text()
    assert "go movetime 50\n" in trace.read_text()
    done = play(home, "--load", str(game), "--option", "Evaluator=net-copenhagen-4", lines="go\n")
    # The level does not take its seat: what it is told to evaluate by is for other rules.
    assert "\nnet-copenhagen-4: made for copenhagen" in done.stdout
    assert "hnefi level 1" not in done.stdout


@pytest.mark.parametrize("way", ["pipe", "script"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_told_to_end_waits_for_no_further_line(
    home: dict[str, str], tmp_path: Path, way: str, number: signal.Signals
) -> None:
    """Whoever writes the lines keeps silent, and his end open."""
    words = [*HNEFI, "--variant", "brandubh", "--side", "both", "--record-dir", str(tmp_path / "games")]
    fifo = tmp_path / "lines"
    os.mkfifo(fifo)
    pipe = subprocess.PIPE
    if way == "script":
        words += ["--script", str(fifo)]
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=home) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        with fifo.open("wb", buffering=0) if way == "script" else process.stdin as lines:
            lines.write(b"b4b2\nhistory\n")
            lines.flush()
            assert b"b4b2" in process.stdout.readline()
            process.send_signal(number)
            try:
                assert process.wait(LONG) == 1
            finally:
                process.kill()
        assert process.stderr.read() == b""


def test_neither_kernels_nor_the_prompt_are_loaded_for_a_script(home: dict[str, str]) -> None:
    code = (
        "import sys; from hnefi.gui_adapter.terminal.command import main;"
        "status = main(['--variant', 'brandubh', '--side', 'both']);"
        "print([name for name in ('numba', 'numpy', 'prompt_toolkit', 'aiohttp') if name in sys.modules], status);"
        "import hnefi.gui_adapter.terminal.repl, hnefi.gui_adapter.terminal.tui;"
        "print([name for name in ('numba', 'numpy', 'aiohttp') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input="b4b2\nmoves\ncopy record\nhelp\n", capture_output=True, text=True,
        env=home, timeout=LONG, check=False,
    )  # fmt: skip
    assert done.stdout.endswith("[] 0\n[]\n"), done.stdout[-300:] + done.stderr


def test_every_word_of_the_help_explains_itself(home: dict[str, str]) -> None:
    from hnefi.gui_adapter.terminal.commands.table import TABLE

    lines = "".join(f"help {word}\n" for word in TABLE)
    done = play(home, "--strict", lines=f"help\n{lines}")
    assert done.returncode == 0
    for word in TABLE:
        assert f"\n  {word} " in done.stdout
        assert "\nFor example " in done.stdout


def test_a_game_is_saved_and_loaded_in_every_format(home: dict[str, str], tmp_path: Path) -> None:
    files = [f"{tmp_path}/game.{ending}" for ending in ("tafl", "otg", "jsonl", "csv")]
    lines = [*GAME, *(f"save {file}" for file in files), f"save {files[0]}", "no", "board"]
    for file in files:
        lines += ["new", f"load {file}"]
    done = play(home, "--variant", "brandubh", "--side", "both", "--strict", lines="\n".join(lines))
    assert done.returncode == 0
    assert " exists. Replace it?" in done.stdout
    assert "Nothing was done." in done.stdout
    boards = [
        "".join(part.splitlines(keepends=True)[:7]) for part in done.stdout.split("  a b c d e f g\n")[1::2]
    ]
    assert len(boards) == 9
    assert "K" in boards[0].splitlines()[0]
    assert len(set(boards[::2])) == 1
    assert boards[0] != boards[1]


@pytest.mark.parametrize("strict", [(), ("--strict",)], ids=["lenient", "strict"])
def test_a_game_that_cannot_be_written_is_no_success(
    home: dict[str, str], tmp_path: Path, strict: tuple[str, ...]
) -> None:
    (tmp_path / "plain").write_text("a file where a folder would have to be", encoding="utf-8")
    lines = f"d1c1\nsave {tmp_path}/plain/game.tafl\nboard\n"
    done = play(home, "--variant", "brandubh", "--side", "both", *strict, lines=lines)
    assert done.returncode == 4, done.stdout
    assert "plain/game.tafl: Not a directory: expected a file that can be written" in done.stdout


def test_a_game_of_other_rules_says_by_which_it_was_read(home: dict[str, str], tmp_path: Path) -> None:
    game = tmp_path / "game.csv"
    game.write_text("d6-c6 e4-e1,0,0,Ongoing\n", encoding="utf-8")
    done = play(home, "--load", str(game), "--screenshot", f"{tmp_path}/board.svg")
    assert done.returncode == 2
    assert "move 1 d6c6: " in done.stderr
    assert "(by the rules of copenhagen: `variant NAME` or --variant chooses others)" in done.stderr
    game.write_text("d6-c6\n", encoding="utf-8")
    assert (
        "a CSV file names none"
        in play(home, "--load", str(game), "--screenshot", f"{tmp_path}/board.svg").stderr
    )


def test_a_picture_that_cannot_be_written_is_no_wrong_call(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("", encoding="utf-8")
    done = play(home, "--variant", "brandubh", "--screenshot", f"{tmp_path}/plain/board.svg")
    assert done.returncode == 4, done.stderr
    assert "plain/board.svg': Not a directory" in done.stderr
    assert "--help" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_trace_on_a_full_disk_says_that_it_is_not_whole(home: dict[str, str]) -> None:
    done = play(home, "--variant", "brandubh", "--side", "both", "--trace", "/dev/full", lines="d1c1\n")
    assert done.returncode == 0, done.stderr
    assert "--trace '/dev/full': No space left on device: the trace is incomplete" in done.stderr


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        (".", "a folder"),
        ("/", "a folder"),
        ("..", "a folder"),
        ("/dev/null", "not a regular file"),
        ("~nobody-here/x", "no such user"),
    ],
)
def test_a_game_is_saved_as_no_folder_and_no_device(home: dict[str, str], name: str, complaint: str) -> None:
    done = play(home, "--variant", "brandubh", "--side", "both", lines=f"save {name}\nside nobody\n")
    assert (done.returncode, done.stderr) == (0, ""), done
    assert f"error: {name!r}: " in done.stdout
    assert complaint in done.stdout
    assert "nobody" in done.stdout.splitlines()[-1]  # the game goes on
