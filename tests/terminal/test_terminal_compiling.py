"""`hnefi play` before its kernels are compiled: what is shown, what is kept, and that one can always leave."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from numba import config
from terminal_parts import House, Person
from terminal_screen import CONTROL_C, CONTROL_D, PATIENCE, Terminal, play

from hnefi.engine.compile import jit
from hnefi.engine.compile.progress import Progress
from hnefi.gui_adapter.terminal.game import Facts, PositionSpec
from hnefi.gui_adapter.terminal.panes import compiling_text
from hnefi.gui_adapter.terminal.rules_process import RulesProcess
from hnefi.protocol.client import EngineCrashed, EngineError, Exit, Timeouts
from hnefi.tools.common import interrupts

SUPPORT = Path(__file__).resolve().parents[1] / "support"
FACES = ["prompt", "full screen"]
LONG = 600.0
"""Seconds for what a real compiler does in ten on an idle machine."""
SHOWN = r"compiling for the first start: 3/9 search, \d+ s, about 40 s left"


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """What the compiler waits for; it is not there."""
    return tmp_path / "gate"


def slow(gate: Path) -> dict[str, str]:
    """The environment in which our engines compile until `gate` is there."""
    return {"PYTHONPATH": str(SUPPORT / "compiling"), "HNEFI_TEST_GATE": str(gate)}


def begin(gate: Path, face: str, *words: str, **environment: str) -> Terminal:
    tui = ["--tui"] if face == "full screen" else []
    return play(gate.parent, *tui, "--variant", "brandubh", *words, columns=100, **slow(gate), **environment)


def starts(gate: Path) -> list[int]:
    """The processes of our engine that were started, one after the other."""
    file = Path(f"{gate}.starts")
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def alive(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.process
@pytest.mark.parametrize("face", FACES)
def test_moves_typed_while_it_compiles_are_played(face: str, gate: Path) -> None:
    """The line says how it goes; every word that needs no rules works meanwhile; nobody is started twice."""
    with begin(gate, face, "--side", "both") as seen:
        seen.wait_for(SHOWN)
        seen.enter("a4a2")
        seen.wait("a4a2: waiting until the rules are loaded.")
        seen.enter("speed 2")
        seen.wait("2 seconds after each ply.")
        seen.enter("d3a3")
        seen.wait("d3a3: waiting until")
        gate.touch()
        seen.wait("defenders 1")
        seen.asked("attackers")
        seen.wait(lambda: "compiling" not in seen.lines[-1] + seen.lines[0])
        assert len(starts(gate)) == 1
        seen.enter("quit")
        assert seen.end() == 0


UNKEPT = "in /dev/null/hnefi (Not a directory)"
SENTENCE = f"machine code cannot be stored {UNKEPT}, so every start compiles again"


@pytest.mark.process
@pytest.mark.parametrize("face", FACES)
def test_a_cache_that_cannot_be_written_is_named_once(face: str, gate: Path) -> None:
    """By whichever of the engines says so first; with the other one's game it is no news."""
    with begin(gate, face, "--side", "a", "--level", "1", HNEFI_TEST_UNKEPT=UNKEPT) as seen:
        seen.wait(SENTENCE)
        seen.wait_for(r"compiling at each start: 3/9 search, \d+ s, about 40 s left")
        until(lambda: len(starts(gate)) == 2)
        gate.touch()
        seen.enter("a4a2")
        seen.wait("defenders (hnefi level 1): ")
        assert seen.text.count(SENTENCE) == 1
        seen.enter("quit")
        assert seen.end() == 0


@pytest.mark.process
@pytest.mark.parametrize("face", FACES)
def test_a_recorded_game_waits_for_the_rules(face: str, gate: Path) -> None:
    file = gate.parent / "game.tafl"
    file.write_text('[Variant "brandubh"]\n\na4a2 d3a3 *\n')
    with begin(gate, face, "--load", str(file), "--side", "both") as seen:
        seen.wait_for(SHOWN)
        seen.enter("e4e4")
        gate.touch()
        # On a busy machine both are read at once, and the first has scrolled away.
        seen.wait_for("Loaded: ")
        seen.wait_for("e4e4: that is")
        seen.enter("quit")
        assert seen.end() == 0


def by_word(seen: Terminal) -> None:
    seen.enter("quit")


def by_word_behind_a_move(seen: Terminal) -> None:
    seen.enter("a4a2")
    seen.enter("quit")


def by_control_d(seen: Terminal) -> None:
    seen.enter("a4a2")
    seen.wait("waiting until")
    seen.type(CONTROL_D)


def by_control_c(seen: Terminal) -> None:
    seen.enter("a4a2")
    seen.wait("waiting until")
    seen.type(CONTROL_C)
    seen.asked("yes or no")
    seen.type(CONTROL_C)


def by_answering(seen: Terminal) -> None:
    seen.type(CONTROL_C)
    seen.asked("yes or no")
    seen.enter("y")


def by_term(seen: Terminal) -> None:
    seen.signal(signal.SIGTERM)


def by_hang_up_signal(seen: Terminal) -> None:
    seen.signal(signal.SIGHUP)


WAYS = [
    (by_word, 0),
    (by_word_behind_a_move, 0),
    (by_control_d, 0),
    (by_control_c, 1),
    (by_answering, 0),
    (by_term, 1),
    (by_hang_up_signal, 1),
]


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked at through /proc")
@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize(("way", "status"), WAYS, ids=[way.__name__ for way, _ in WAYS])
def test_one_can_leave_while_it_compiles(
    face: str, way: Callable[[Terminal], None], status: int, gate: Path
) -> None:
    """The compilers hear nothing, and would never end: nobody waits for them, and nobody leaves them behind."""
    with begin(gate, face, "--side", "a", "--level", "1") as seen:
        before = untouched()
        seen.wait_for(SHOWN)
        until(lambda: len(starts(gate)) == 2)
        assert not _restored(seen, before)
        way(seen)
        until(lambda: not any(map(alive, starts(gate))))
        # As somebody at a shell would find it.
        until(lambda: _restored(seen, before))
        assert seen.end() == status
        assert "Traceback" not in seen.everything
        assert seen.raw.rfind(b"\x1b[?1049l") >= seen.raw.rfind(b"\x1b[?1049h")


def untouched() -> list[object]:
    """What is set of a terminal on which no program has run; that of the program may already be set otherwise."""
    ours, theirs = os.openpty()
    try:
        return termios.tcgetattr(theirs)
    finally:
        os.close(ours)
        os.close(theirs)


def _restored(seen: Terminal, before: list[object]) -> bool:
    seen._read(time.monotonic() + 0.01)
    try:
        return termios.tcgetattr(seen.child.child_fd) == before
    except termios.error:
        return True


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked at through /proc")
@pytest.mark.parametrize("face", FACES)
def test_a_closed_window_ends_compilers(face: str, gate: Path) -> None:
    with begin(gate, face, "--side", "a", "--level", "1") as seen:
        seen.wait_for(SHOWN)
        until(lambda: len(starts(gate)) == 2)
        processes = [seen.child.pid, *starts(gate)]
        seen.hang_up()
        until(lambda: not any(map(alive, processes)))


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked at through /proc")
@pytest.mark.skipif(bool(config.DISABLE_JIT) or not jit.LINKED, reason="nothing is compiled, or for minutes")
def test_a_first_start_with_a_real_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest game on an empty cache: left while it compiles; begun again, with a move that is typed early."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    game = ("--variant", "hexapawn:4x3", "--level", "1")
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    with play(tmp_path, *game, columns=100, **cache) as seen:
        seen.wait_for("compiling for the first start: ", LONG)
        processes = [process for process, _ in interrupts._descendants(seen.child.pid, set())]
        assert processes
        seen.enter("quit")
        assert seen.end() == 0
        until(lambda: not any(map(alive, processes)))
    with play(tmp_path, *game, columns=100, **cache) as seen:
        seen.wait_for("compiling for the first start: ", LONG)
        seen.enter("a1a2")
        seen.wait_for(r"black \(hnefi level 1\): \w+", LONG)
        seen.asked("white", LONG)
        assert "compiling" not in seen.text
        seen.enter("quit")
        assert seen.end() == 0
    games = {path.name.split(".")[0] for path in (tmp_path / "cache" / "hnefi").glob("*.code")}
    assert games == {"kernels", "alphabeta", "move_order", "hexapawn"}, "nothing of another game is compiled"


def scripted(gate: Path, *words: str, **more: str) -> subprocess.Popen[str]:
    folder = gate.parent
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        **slow(gate),
        **more,
    }
    return subprocess.Popen(
        [sys.executable, "-m", "hnefi.tools.cli", "play", "--variant", "brandubh", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


@pytest.mark.process
def test_a_script_says_it_on_standard_error_once(gate: Path) -> None:
    process = scripted(gate, "--side", "both")
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write("a4a2\nd3a3\n")
    process.stdin.flush()
    said = process.stderr.readline()
    assert said.startswith("hnefi play: compiling for the first start: 3/9 search, ")
    gate.touch()
    out, errors = process.communicate(timeout=PATIENCE)
    assert (out, errors, process.returncode) == ("d3a3xa2\n", "", 0)


@pytest.mark.process
def test_a_script_names_a_cache_that_cannot_be_written_on_standard_error(gate: Path) -> None:
    process = scripted(gate, "--side", "both", HNEFI_TEST_UNKEPT=UNKEPT)
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write("a4a2\nd3a3\n")
    process.stdin.flush()
    assert process.stderr.readline() == f"hnefi play: {SENTENCE}\n"
    assert process.stderr.readline().startswith("hnefi play: compiling at each start: 3/9 search, ")
    gate.touch()
    out, errors = process.communicate(timeout=PATIENCE)
    assert (out, errors, process.returncode) == ("d3a3xa2\n", "", 0)


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_script_can_be_ended_while_it_compiles(number: signal.Signals, gate: Path) -> None:
    process = scripted(gate, "--side", "both")
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write("a4a2\n")
    process.stdin.flush()
    process.stderr.readline()
    process.send_signal(number)
    out, errors = process.communicate(timeout=PATIENCE)
    assert (out, errors, process.returncode) == ("", "", 1)
    until(lambda: not any(map(alive, starts(gate))))


# One process for the rules, which all of these share


@pytest.mark.process
def test_a_compiler_is_not_given_up(house: House, tmp_path: Path) -> None:
    """It takes longer than an answer may take."""
    gate = tmp_path / "gate"
    heard: list[Progress] = []

    async def make() -> RulesProcess:
        command = [sys.executable, str(SUPPORT / "compiling_engine.py"), str(gate)]
        return RulesProcess(command, timeouts=Timeouts(start=60.0, ready=5.0, compiling=60.0))

    async def story(person: Person) -> None:
        tell = rules.on_compiling
        assert tell is not None

        def listen(progress: Progress) -> None:
            heard.append(progress)
            tell(progress)
            if len(heard) == 120:  # six seconds
                gate.touch()

        rules.on_compiling = listen
        person.controller.start()
        await person.sees(lambda view: "3/9 search" in view.compiling)
        await person.types("b4b2")
        assert (person.view.compiling, rules.restarts, len(starts(gate))) == ("", 0, 1)

    rules = house.run(make())
    house.talk(story, rules=rules, start=False)
    assert heard[0] == Progress(3, 9, "search", 0.0, 40.0)


class Stuck(RulesProcess):
    """Rules that answer for so many places, and then not any more, or with an error."""

    def __init__(self, real: RulesProcess, places: int, error: EngineError | None = None) -> None:
        super().__init__()
        self._real = real
        self._left = places
        self._error = error
        self.asked = asyncio.Event()

    async def facts(self, position: PositionSpec) -> Facts:
        self._left -= 1
        if self._left >= 0:
            return await self._real.facts(position)
        self.asked.set()
        if self._error is not None:
            raise self._error
        await asyncio.get_running_loop().create_future()
        raise AssertionError


def stuck(house: House, places: int, error: EngineError | None = None) -> Stuck:
    async def make() -> Stuck:
        return Stuck(house.rules, places, error)

    return house.run(make())


@pytest.mark.process
def test_whoever_compiles_speaks_first(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of our two processes gets to compile is chance; the other one must not call it somebody else."""
    ours, waits = Progress(3, 9, "search", 1.0), Progress(3, 9, "search", 1.0, elsewhere=True)

    async def story(person: Person) -> None:
        session = person.controller.session
        opponent, *_ = session.players.everybody
        for rules, other, shown in (
            (waits, ours, ours), (ours, waits, ours), (waits, None, waits), (None, waits, waits), (None, None, None),
        ):  # fmt: skip
            monkeypatch.setattr(type(session.rules), "compiling", property(lambda _, told=rules: told))
            monkeypatch.setattr(type(opponent), "compiling", property(lambda _, told=other: told))
            assert session.compiling is shown
        monkeypatch.undo()

    house.talk(story)


@pytest.mark.process
def test_leaving_in_the_middle_of_a_move(house: House) -> None:
    """The rules are asked about the place after it when the game is left; the move is kept."""

    async def story(person: Person) -> None:
        await person.types("b4b2")
        moving = asyncio.ensure_future(person.controller.submit("c4b4"))
        await rules.asked.wait()
        await person.controller.close()
        assert (await moving).quit
        assert person.view.closed
        record = person.controller.session.record()
        assert len(record.plies) == 2

    rules = stuck(house, 2)
    house.talk(story, rules=rules)


@pytest.mark.process
@pytest.mark.parametrize("how", ["quit", "interrupt"])
def test_leaving_while_the_rules_are_asked(house: House, how: str) -> None:
    async def story(person: Person) -> None:
        moving = asyncio.ensure_future(person.controller.submit("b4b2"))
        await rules.asked.wait()
        if how == "quit":
            assert (await person.controller.submit("quit")).quit
            assert person.controller.status == 0
        else:
            assert not (await person.controller.interrupt()).quit
            assert "Ctrl-C again leaves" in person.said[-1]
            assert (await person.controller.interrupt()).quit
            assert person.controller.status == 1
        assert not moving.done()
        moving.cancel()

    rules = stuck(house, 1)
    house.talk(story, rules=rules)


@pytest.mark.process
def test_rules_that_fail_for_good_leave_the_board_as_it_was(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types("b4b2")
        assert "our engine failed" in await person.fails("c4b4")
        assert (person.view.ply, person.view.board.side) == (1, "d")
        assert person.controller.status == 4

    house.talk(story, rules=stuck(house, 2, EngineCrashed("Hnefi has ended", Exit(1))))


def test_what_is_said_of_a_compiler() -> None:
    assert compiling_text(Progress(0, 0, "-", 3.4)) == "compiling for the first start: 0/0 -, 3 s"
    assert (
        compiling_text(Progress(3, 9, "search", 12.0, 39.6))
        == "compiling for the first start: 3/9 search, 12 s, about 40 s left"
    )
    assert compiling_text(Progress(3, 9, "search", 1.0, None, True)).startswith(
        "another process of hnefi compiles: 3/9"
    )
    assert compiling_text(Progress(3, 9, "search", 1.0, unkept="anywhere")).startswith(
        "compiling at each start: "
    )
