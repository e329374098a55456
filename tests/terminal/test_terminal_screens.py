"""`hnefi play` as a person meets it: the real program on a terminal, with real engine processes.

Opponents play by heart where a game must go its way. Screens are waited for, never slept for.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from terminal_screen import (
    CONTROL_C,
    CONTROL_D,
    ENTER,
    ESCAPE,
    F1,
    F2,
    F8,
    F9,
    LEFT,
    PATIENCE,
    TAB,
    Terminal,
    play,
)

from hnefi.tools.bench import terminal as bench_terminal

pytestmark = pytest.mark.process

SUPPORT = Path(__file__).resolve().parents[1] / "support"
GAMES = {
    "brandubh": "d1c1 d5c5 c1b1 d4d5 b1c1 d5g5 c1b1 g5g7",
    "copenhagen": "d1c1 d6d7 c1c10 e6c6 a8b8 f6d6 j6j5 d6d1 f2d2 d1a1",
    "alea-evangelii": "g15f15 e9d9 s14s9 e11d11 e13e19 j13d13 n14m14 j11i11 p12q12 j10j13 c19c16 j13e13 a6a12 e13e18 "
    "q1q4 e18a18",
    "hex:5": "c3 c4 d4 d1 b1 a2 b2 c2 d5",
    "hexapawn:3x3": "b1b2 a3b2 c1c2 b2a1",
}
"""Whole games; the defenders win all but that of hex."""
BRANDUBH = GAMES["brandubh"].split()
FACES = ["prompt", "full screen"]
FOR_EVER = ["--movetime", "600000"]
"""No engine is done, or given up, before a test has seen that it thinks."""


def by_heart(*faults: str) -> str:
    """The command of an engine that plays the game of brandubh by heart."""
    script = str(SUPPORT / "fault_engine.py")
    return shlex.join([sys.executable, "-I", "-S", script, ",".join(BRANDUBH), *faults])


def begin(
    folder: Path, face: str, *words: str, rows: int = 24, columns: int = 80, **environment: str
) -> Terminal:
    """A game in one of the two faces; the seed is small enough for the engine that plays by heart."""
    tui = ["--tui"] if face == "full screen" else []
    return play(folder, *tui, "--seed", "1", *words, rows=rows, columns=columns, **environment)


def board_row(seen: Terminal, rank: int) -> str:
    """The last drawn row of a rank, without its labels."""
    rows = re.findall(rf"^ *{rank}([ (\[{{<].*?)[ )\]}}>]?{rank}\b", seen.text, re.MULTILINE)
    return " ".join(rows[-1].split()) if rows else ""


def tell(seen: Terminal, face: str, *lines: str) -> None:
    """Type lines: in the full screen all at once, at the prompt one when the other is answered."""
    for line in lines:
        if face == "full screen":
            seen.enter(line)
        else:
            seen.say(line)


def leave(seen: Terminal) -> None:
    """The game is over: quit, and end with 0."""
    seen.enter("quit")
    assert seen.end() == 0


def harmless(seen: Terminal) -> None:
    assert "Traceback" not in seen.everything
    assert "Exception" not in seen.everything


# Whole games


@pytest.mark.parametrize("face", FACES)
def test_whole_games_of_two_persons(face: str, tmp_path: Path) -> None:
    """In the full screen the first is typed at once, before the rules are loaded: nothing is lost. Every game ends
    where it ends."""
    ends = {"hex:5": "x win: connected", "hexapawn:3x3": "black win: far row"}
    first = {"hex:5": "x", "hexapawn:3x3": "white"}
    with begin(tmp_path, face, "--variant", "copenhagen", "--side", "both") as seen:
        for variant in ("copenhagen", "alea-evangelii", "hex:5", "hexapawn:3x3"):
            if variant != "copenhagen":
                tell(seen, face, f"new {variant}")
            if variant != "copenhagen" or face == "prompt":
                seen.asked(first.get(variant, "attackers"))
            tell(seen, face, *GAMES[variant].split())
            # Where the board fills the screen, what was said above it has scrolled away.
            seen.wait_for(f"The game is over: {ends.get(variant, 'defenders win: king escaped')}")
            seen.asked("game over")
        leave(seen)
        harmless(seen)


@pytest.mark.parametrize("face", FACES)
def test_a_game_against_an_engine_that_crashes(face: str, tmp_path: Path) -> None:
    """It dies at every second move and is started again with the whole game. Its last move comes in the middle of a
    typed word: the word stays, and no move is asked for."""
    gate = tmp_path / "gate"
    engine = by_heart("exit", f"gate={gate}", f"held={len(BRANDUBH) - 1}")
    words = ["--variant", "brandubh", "--side", "a", "--engine", engine, *FOR_EVER]
    with begin(tmp_path, face, *words) as seen:
        for number, move in enumerate(BRANDUBH[::2]):
            seen.asked("attackers")
            seen.enter(move)
            if number < 3:
                seen.wait(f"(Parrot): {BRANDUBH[2 * number + 1]}")
        seen.asked("defenders think")
        seen.type("hist")
        seen.wait(lambda: (seen.prompt, seen.typed) == ("defenders think", "hist"))
        gate.touch()
        seen.wait(lambda: (seen.prompt, seen.typed) == ("game over", "hist"))
        seen.wait("The game is over: defenders win: king escaped")
        assert seen.everything.count("restarted") >= 1
        seen.type("ory" + ENTER)
        seen.wait_for(r"4\. c1b1 +g5g7")
        leave(seen)
        harmless(seen)


@pytest.mark.parametrize("face", FACES)
def test_engines_are_watched(face: str, tmp_path: Path) -> None:
    """Held, one step, another, then as fast as they play."""
    rivals = ["--engine", by_heart(), "--engine", by_heart()]
    settings = tmp_path / "config" / "hnefi" / "terminal.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("speed = 60\n", "utf-8")
    with begin(tmp_path, face, "--variant", "brandubh", "--side", "none", *rivals) as seen:
        keys = {"pause": F8, "step": F9} if face == "full screen" else {"pause": "pause\r", "step": "step\r"}
        seen.wait_for(f": {BRANDUBH[0]}")
        seen.asked("watching")
        seen.type(keys["pause"])
        seen.asked("paused")
        for move in BRANDUBH[1:3]:
            seen.type(keys["step"])
            seen.wait_for(f": {move}")
        seen.asked("paused")
        assert f": {BRANDUBH[3]}" not in seen.everything
        seen.enter("speed 0")
        seen.type(keys["pause"])
        seen.wait("The game is over: defenders win: king escaped")
        seen.asked("game over")
        leave(seen)
        harmless(seen)


@pytest.mark.parametrize("face", FACES)
def test_a_game_is_saved_loaded_and_replayed(face: str, tmp_path: Path) -> None:
    def drawn() -> list[str]:
        return [board_row(seen, rank) for rank in range(1, 8)]

    with begin(tmp_path, face, "--variant", "brandubh", "--side", "both") as seen:
        seen.asked("attackers")
        tell(seen, face, *BRANDUBH[:4])
        seen.wait(lambda: board_row(seen, 5) == "· · ○ ♚ · · ·")
        seen.asked("attackers")
        before = drawn()
        seen.enter("save game.tafl")
        seen.wait("Saved")
        seen.enter("undo 2")
        seen.wait(lambda: board_row(seen, 5) == "· · ○ · · · ·")
        seen.enter("redo 2")
        seen.wait(lambda: drawn() == before)
        seen.enter("new brandubh")
        seen.wait(lambda: board_row(seen, 1) == "╳ · · ● · · ╳")
        seen.enter("load game.tafl")
        seen.wait(lambda: drawn() == before)
        seen.asked("attackers")
        tell(seen, face, *BRANDUBH[4:])
        seen.asked("game over")
        seen.enter("replay 60")
        seen.asked("ply 0 of 8")
        for ply in range(1, 4):
            seen.enter("step")
            seen.asked(f"ply {ply} of 8")
        seen.enter("replay 0.1")
        seen.asked("game over")
        seen.enter("goto 2")
        seen.asked("ply 2 of 8")
        if face == "full screen":
            seen.type(LEFT)
            seen.asked("ply 1 of 8")
        leave(seen)
        harmless(seen)


@pytest.mark.parametrize("face", FACES)
def test_analysis_to_the_end_of_a_game(face: str, tmp_path: Path) -> None:
    """Depth, scores with their side, lines and bar. Ctrl-C stops it; on an empty line it asks; twice, it leaves."""
    with begin(tmp_path, face, "--variant", "brandubh", "--side", "both") as seen:
        seen.enter("analyze 2")
        seen.asked("analysis, attackers to move")
        seen.wait_for("depth ([3-9]|[1-9][0-9])")
        if face == "full screen":
            seen.wait_for(r"1\. (attackers|defenders) (\+\d+\.\d\d|win in \d)|1\. even")
            seen.wait_for(r"2\. (attackers|defenders|even)")
            seen.wait_for(r"\d+% █+░+ \d+%")
        seen.type(CONTROL_C)
        seen.wait("Stopped.")
        seen.asked("attackers")
        seen.enter("analyze")
        seen.asked("analysis, attackers to move")
        tell(seen, face, *BRANDUBH)
        seen.asked("game over")
        seen.type(CONTROL_C)
        seen.asked("yes or no")
        seen.enter("no")
        seen.asked("game over")
        seen.type(CONTROL_C)
        seen.asked("yes or no")
        seen.type(CONTROL_C)
        assert seen.end() == 1
        harmless(seen)


# Moves and words


@pytest.mark.parametrize("face", FACES)
def test_completion_and_why_not(face: str, tmp_path: Path) -> None:
    with begin(tmp_path, face, "--variant", "brandubh", "--side", "both") as seen:
        seen.enter("d1d5")
        seen.wait("blocked at d2")
        if face == "prompt":
            seen.type("d1a1")
            seen.wait("d1a1: only the king may stop on a corner")
            seen.type(CONTROL_C)
            seen.wait(lambda: "only the king" not in seen.text)
        seen.enter("a4-a2")
        seen.asked("defenders")
        seen.type("d3" + TAB)
        seen.wait(lambda: "d3b3" in seen.text and "takes 1" in seen.text)
        seen.type(CONTROL_C)
        seen.wait(lambda: "takes 1" not in seen.text)
        seen.type("ana" + TAB)
        seen.wait("analyze")
        seen.type(CONTROL_C)
        seen.wait(lambda: seen.typed == "")
        seen.enter("D3 A3")
        seen.wait("defenders 1")
        seen.enter("d4d1")
        seen.wait("that is a defender, attackers are to move")
        leave(seen)
        harmless(seen)


def test_moves_by_mouse(tmp_path: Path) -> None:
    with begin(tmp_path, "full screen", "--variant", "brandubh", "--side", "both", NO_COLOR="1") as seen:
        seen.enter("moves d2")  # the rules are there when this is answered
        seen.wait("6 moves")
        row = next(number for number, line in enumerate(seen.lines) if re.match(r" *1 ", line))
        files = {name: at for at, name in enumerate(seen.lines[row + 1]) if name in "abcdefg"}
        seen.click_at(files["d"], row)
        seen.wait(lambda: "<·>" in seen.lines[row])
        assert not seen.coloured()
        seen.click_at(files["c"], row)
        seen.asked("defenders")
        assert "[●(·)" in seen.lines[row]
        seen.type(F2)
        seen.wait(lambda: b"\x1b[?1000l" in seen.raw)
        switched = seen.raw.count(b"\x1b[?1000h")
        seen.type(F2)
        seen.wait(lambda: seen.raw.count(b"\x1b[?1000h") > switched)
        leave(seen)


def drawn(seen: Terminal) -> bool:
    """Whether the program has written all it had to, and waits for a line: what it is still writing when a window
    changes its size belongs to the window before, and parts of it stay."""
    return seen.prompt != "" and seen.typed == ""


@pytest.mark.parametrize("face", FACES)
def test_another_size_of_the_window(face: str, tmp_path: Path) -> None:
    """A large board in a usual window, in a small one, and back; with its colours."""
    with begin(tmp_path, face, "--variant", "alea-evangelii", "--side", "both") as seen:
        seen.enter("i19h19")
        seen.wait(lambda: "nothing stands on i19" in seen.text and drawn(seen))
        for _ in range(2):
            seen.resize(15, 40)
            seen.enter("board")
            seen.wait(lambda: "part only: the board needs 22x20" in seen.text and drawn(seen))
            seen.resize(24, 80)
            seen.enter("board")
            seen.wait(
                lambda: "part only" not in seen.text and board_row(seen, 1).count(" ") == 18 and drawn(seen)
            )
        row = max(number for number, line in enumerate(seen.lines) if re.match(" *10 ", line))
        king = seen.style_at(seen.lines[row].index("♚"), row)
        man = seen.style_at(seen.lines[row].index("●"), row)
        assert king.fg != man.fg
        assert king.bg == man.bg != "default"
        leave(seen)
        harmless(seen)


def test_a_small_window_without_colours_and_signs(tmp_path: Path) -> None:
    words = ["--variant", "copenhagen", "--side", "both", "--ascii"]
    with begin(tmp_path, "full screen", *words, rows=15, columns=40, NO_COLOR="1") as seen:
        seen.enter("d1c1")
        seen.asked("defenders")
        assert "little room" in seen.text
        assert "tt.TTKTT.tt" in seen.text
        assert seen.text.isascii()
        assert not seen.coloured()
        seen.type(F1)
        seen.wait("PageUp")
        seen.type(ESCAPE)
        seen.wait("tt.TTKTT.tt")
        leave(seen)


def test_the_prompt_without_colours_and_signs(tmp_path: Path) -> None:
    with begin(
        tmp_path, "prompt", "--variant", "brandubh", "--side", "both", "--ascii", NO_COLOR="1"
    ) as seen:
        seen.enter("a4a2")
        seen.wait("2[t]. .")
        assert seen.text.isascii()
        assert not seen.coloured()
        leave(seen)


# Clocks


@pytest.mark.parametrize("face", FACES)
def test_a_clock_that_runs_out_ends_the_game(face: str, tmp_path: Path) -> None:
    """A clock ticks on the screen, is lost, and no move is asked for."""
    with begin(tmp_path, face, "--variant", "brandubh", "--side", "both", "--clock", "0.02+0") as seen:
        seen.asked("attackers")
        seen.enter("a4a2")
        seen.wait_for(r"defenders 0:00\.[0-9]")
        seen.asked("game over")
        assert re.search(r"attackers win: .*time", seen.everything)
        leave(seen)


# Ends


@pytest.mark.parametrize("face", FACES)
def test_a_control_d_before_anything_is_seen_leaves(face: str, tmp_path: Path) -> None:
    """Python is being loaded still, and the terminal reads lines: what it keeps of the key comes as another one."""
    with begin(tmp_path, face, "--variant", "brandubh") as seen:
        seen.type(CONTROL_D)
        assert seen.end() == 0
        harmless(seen)


@pytest.mark.parametrize("face", FACES)
def test_an_unfinished_game_is_kept(face: str, tmp_path: Path) -> None:
    with begin(tmp_path, face, "--variant", "brandubh", "--side", "both") as seen:
        seen.enter("a4a2")
        seen.asked("defenders")
        seen.type(CONTROL_D)
        assert seen.end() == 0
        harmless(seen)
    with begin(tmp_path, face, "--continue") as seen:
        seen.asked("defenders")
        seen.wait(lambda: board_row(seen, 2).startswith("●"))
        assert "An unfinished game is saved" not in seen.everything
        seen.signal(signal.SIGINT)
        seen.asked("yes or no")
        seen.signal(signal.SIGTERM)
        assert seen.end() == 1
        harmless(seen)


@pytest.mark.parametrize("face", FACES)
def test_a_window_that_is_closed_leaves_no_process(face: str, tmp_path: Path) -> None:
    words = ["--variant", "brandubh", "--side", "a", "--level", "10", *FOR_EVER]
    with begin(tmp_path, face, *words) as seen:
        seen.enter("a4a2")
        seen.asked("defenders think")
        processes = [seen.child.pid, *children_of(seen.child.pid)]
        assert len(processes) >= 3
        seen.hang_up()
        wait_until(lambda: not any(map(alive, processes)), seen)


def children_of(process: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if int(line.split()[1]) == process]


def alive(process: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def wait_until(holds: Callable[[], bool], seen: Terminal) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, seen.everything
        time.sleep(0.01)


@pytest.mark.parametrize("face", FACES)
def test_hostile_bytes_are_survived(face: str, tmp_path: Path) -> None:
    """Random bytes, escape sequences, half characters, pasted text: then the game goes on."""
    # All but the keys that are there to leave, to hold the terminal, or to end a process.
    noise = Random(7).randbytes(2048).translate(None, b"\x03\x04\x11\x13\x1a\x1c")
    with begin(tmp_path, face, "--variant", "brandubh", "--side", "both") as seen:
        seen.asked("attackers")
        seen.child.send(noise + b"\xff\xfe\xe2\x1b[999;999H\x1b]0;title\x07\x1b[200~pasted\ntext\x1b[201~\r")
        if face == "prompt":
            seen.wait_for("titlepasted")
            seen.wait(lambda: (seen.prompt, seen.typed) == ("attackers", ""))
        seen.type(ESCAPE + ENTER)
        tell(seen, face, "new hex:3", "b2")
        seen.asked("o")
        seen.enter("quit")
        assert seen.end() == 0
        harmless(seen)


def run_without_terminal(folder: Path, *words: str, text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-m", "hnefi.tools.cli", "play", *words],
        input=text,
        capture_output=True,
        env=environment,
        cwd=folder,
        timeout=2 * PATIENCE,
        check=False,
    )


def test_without_a_terminal_there_is_no_full_screen(tmp_path: Path) -> None:
    refused = run_without_terminal(tmp_path, "--tui")
    assert refused.returncode == 2
    assert b"terminal" in refused.stderr
    assert b"Traceback" not in refused.stderr


def test_without_a_terminal_there_are_no_escape_sequences(tmp_path: Path) -> None:
    ran = run_without_terminal(
        tmp_path, "--variant", "brandubh", "--side", "both", text=b"board\nd2e2\nquit\n"
    )
    assert ran.returncode == 0
    assert b"\x1b" not in ran.stdout
    assert b"4 t t T K T t t 4" in ran.stdout


def test_a_picture_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    ran = run_without_terminal(tmp_path, "--screenshot", "board.gif")
    assert ran.returncode == 2
    assert b".svg" in ran.stderr


def test_the_benchmark(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = [bench_terminal.measure_start("full screen", 1), bench_terminal.measure_keys("prompt", 2)]
    assert [line.name for line in found] == ["first board, full screen", "key to redraw, prompt"]
    assert all(0 < line.median <= line.max for line in found)
    monkeypatch.setattr(bench_terminal, "measure", lambda tries, starts: iter(found[: tries + starts]))
    assert bench_terminal.main(["--json", "--tries", "1", "--starts", "1"]) == 0
    assert [line["tries"] for line in json.loads(capsys.readouterr().out)] == [1, 2]
    assert bench_terminal.main([]) == 0
    assert "median <= 50" in capsys.readouterr().out
