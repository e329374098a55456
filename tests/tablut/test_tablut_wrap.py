"""`hnefi tablut --wrap` and `--check`: doubles of bots as engines, whatever they do."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import engine_pool
import pytest
from leftover_processes import MARK, expect_nobody, marked, wait_until
from patience import PROMPTLY
from tablut.double_server import GAMES
from tablut_parts import DOUBLES, HNEFI, WAIT, House, environment, free_address, run, start

from hnefi.engine import squares
from hnefi.engine.records.record import GameRecord
from hnefi.gui_adapter.tablut import bot as bot_module
from hnefi.gui_adapter.tablut import check as check_module
from hnefi.gui_adapter.tablut.bot import Command
from hnefi.gui_adapter.tablut.check import check
from hnefi.gui_adapter.tablut.host import Guest
from hnefi.gui_adapter.tablut.wrap import BotEngine
from hnefi.protocol import orphans
from hnefi.protocol.hosts import guest as guest_module
from hnefi.protocol.hosts import journal
from hnefi.protocol.hosts.guest import Front
from hnefi.protocol.hosts.stdio import Line, Stdio

if sys.platform != "linux":
    pytest.skip("every game has a loopback address of its own", allow_module_level=True)

pytestmark = pytest.mark.process

ESCAPE = [word.partition("x")[0] for word in GAMES["escape"].split()[:-1]]
WHITE_HEART = f"moves={','.join(ESCAPE[::2])}"


def command(*quirks: str, seconds: int = 60, begin: float = 60.0) -> Command:
    """How a double is started."""
    double = (sys.executable, "-I", "-S", str(DOUBLES / "double_bot.py"), "{Colour}", "{seconds}", "{host}")
    return Command((*double, *quirks), seconds, start=begin)


class Pipes(Stdio):
    """The two pipes of a wrap, without a process."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.deaf = False
        self.said: asyncio.Queue[Line] = asyncio.Queue()
        self.lines: list[str] = []
        self.heard: list[str] = []
        self.news = asyncio.Event()

    async def line(self) -> Line | None:
        return await self.said.get()

    @property
    def more(self) -> bool:
        return True

    async def say(self, text: str) -> None:
        self.mention(text)

    def mention(self, text: str) -> bool:
        self.lines.append(text)
        self.heard.append(text)
        self.news.set()
        return True


class Talk:
    """A wrapped double, spoken to as an arena speaks to an engine."""

    def __init__(self, pipes: Pipes) -> None:
        self._pipes = pipes
        self.lines = pipes.lines
        self._news = pipes.news

    async def say(self, *lines: str) -> None:
        for line in lines:
            self._pipes.said.put_nowait(Line(line.encode()))

    async def until(self, beginning: str) -> str:
        """The next line that begins so; those before it are dropped."""
        async with asyncio.timeout(WAIT):
            while True:
                while self.lines:
                    line = self.lines.pop(0)
                    if line.startswith(beginning):
                        return line
                self._news.clear()
                await self._news.wait()

    async def ready(self) -> None:
        await self.say("isready")
        await self.until("readyok")

    async def best(self, *moves: str) -> str:
        """The answer to a `go` after these moves."""
        await self.say(f"position startpos{' moves ' if moves else ''}{' '.join(moves)}", "go movetime 1000")
        return (await self.until("bestmove")).removeprefix("bestmove ")


def wrapped(
    house: House, folder: Path, bots: Command, talk: Callable[[Talk], Awaitable[None]]
) -> tuple[int, list[str]]:
    """Wrap a double, talk to it, and end it; the exit code, and all its lines."""

    async def conversation() -> tuple[int, list[str]]:
        kept = journal.Journal("tablut", folder)
        pipes = Pipes()
        partner = Talk(pipes)
        with orphans.adopting():
            running = asyncio.create_task(Front(BotEngine(bots), pipes, house.slot, kept).run())
            talking = asyncio.ensure_future(talk(partner))
            try:
                await asyncio.wait({running, talking}, return_when=asyncio.FIRST_COMPLETED)
                if not running.done():
                    await talking
                    await partner.say("quit")
                async with asyncio.timeout(WAIT):
                    return await running, pipes.heard
            finally:
                for task in (running, talking):
                    task.cancel()
                await asyncio.wait({running, talking})

    return house.runner.run(conversation())


def records(folder: Path) -> list[GameRecord]:
    return [record for path in folder.glob("*.jsonl") for record in journal.read(path)]


def moves(record: GameRecord) -> list[str]:
    return [squares.move_name(ply.move) for ply in record.plies]


async def escape_as_white(talk: Talk) -> None:
    """The game by heart to its end, the double with white."""
    await talk.say("setoption name Side value d", "utinewgame")
    await talk.ready()
    for ply in range(0, len(ESCAPE), 2):
        assert await talk.best(*ESCAPE[:ply]) == ESCAPE[ply]
    await talk.ready()


def test_the_greeting(house: House, tmp_path: Path) -> None:
    async def greet(talk: Talk) -> None:
        await talk.say("uti")
        await talk.until("utiok")
        await talk.say("variant ashton-bologna")
        assert (await talk.until("info string variant")).startswith(
            "info string variant tablut-bologna files 9 ranks 9"
        )
        await talk.say("variant brandubh")
        assert "expected tablut-bologna" in await talk.until("info string error")
        await talk.say("setoption name Side value x")
        assert "expected one of auto, a, d" in await talk.until("info string error")
        await talk.say("setoption name Hash value 5")
        assert "expected one of Side, Variant" in await talk.until("info string error")
        await talk.say("position startpos moves e3f3", "query turn", "moves")
        assert await talk.until("response") == "response a"
        assert (await talk.until("moves")).startswith("moves ")
        await talk.say("variants")
        assert "ashton-bologna" in await talk.until("info string variant tablut-bologna")
        await talk.say(f"position startpos moves {' '.join(ESCAPE)}", "go movetime 1")
        assert await talk.until("info depth") == "info depth 0 score mate 0"
        assert await talk.until("bestmove") == "bestmove (none)"
        await talk.say("position startpos moves e5e9")
        assert "e5e9" in await talk.until("info string error position")
        await talk.say("hello there")
        await talk.until("info string unknown command: hello there")
        await talk.ready()

    status, _ = wrapped(house, tmp_path, command("crash"), greet)
    assert status == 0, "no bot was started"


def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, too, a bot has the time to write down the last state before it is ended."""
    monkeypatch.setattr(bot_module, "GRACE", WAIT)
    monkeypatch.setattr(guest_module, "LAST_WORDS", WAIT)


HARMLESS = ["", "bare", "upper", "noturn", "nullturn", "wrongturn", "bytes", "slow=0.3", "child"]


@pytest.mark.parametrize("quirk", HARMLESS, ids=lambda quirk: quirk or "plain")
def test_a_whole_game(house: House, tmp_path: Path, quirk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Side before the clock; its states are those of its own server; the record has everything."""
    patient(monkeypatch)
    log = tmp_path / "log"
    status, _ = wrapped(house, tmp_path, command(WHITE_HEART, quirk, f"log={log}"), escape_as_white)
    assert status == 0
    assert log.read_text().splitlines() == [
        "WHITE 9:16", "BLACK 9:16", "WHITE 8:16", "BLACK 8:15", "WHITE 7:15", "BLACK 7:15", "WHITE 7:15",
        "WHITEWIN 7:15",
    ]  # fmt: skip
    (record,) = records(tmp_path)
    assert moves(record) == ESCAPE
    assert [ply.captures != () for ply in record.plies] == [False, True, True, True, False, False, False]
    assert record.outcome is not None
    assert record.outcome.text == "d king_escaped"
    assert record.players == ("", "double")


def test_black_and_an_opening(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an opening the bot sees the state before the last ply, the current one, and none before."""
    patient(monkeypatch)
    log = tmp_path / "log"

    async def play(talk: Talk) -> None:
        await talk.say("setoption name Side value a", "utinewgame")
        await talk.ready()
        assert await talk.best(*ESCAPE[:3]) == ESCAPE[3]
        assert await talk.best(*ESCAPE[:5]) == ESCAPE[5]
        # Its opponent ends the game: it hears of that with the next one.
        await talk.say(f"position startpos moves {' '.join(ESCAPE)}", "utinewgame")
        await talk.ready()

    heart = f"moves={','.join(ESCAPE[3::2])}"
    assert wrapped(house, tmp_path, command(heart, f"log={log}"), play)[0] == 0
    assert log.read_text().splitlines()[:6] == [
        "WHITE 8:16", "BLACK 8:15", "WHITE 7:15", "BLACK 7:15", "WHITE 7:15", "WHITEWIN 7:15",
    ]  # fmt: skip


def test_a_new_game_has_a_new_bot(house: House, tmp_path: Path) -> None:
    async def play(talk: Talk) -> None:
        await escape_as_white(talk)
        await escape_as_white(talk)
        await talk.say("setoption name Side value a", "utinewgame")
        await talk.ready()

    assert wrapped(house, tmp_path, command(WHITE_HEART), play)[0] == 0
    assert [moves(record) for record in records(tmp_path)] == [ESCAPE, ESCAPE]


def test_without_a_side_the_bot_is_started_by_the_first_go(house: House, tmp_path: Path) -> None:
    """And another one, of the other side, where both are asked for."""
    status, lines = wrapped(house, tmp_path, command(), play_any)
    assert status == 0
    begun = [line.split()[6] for line in lines if line.startswith("info string bot double connected as")]
    assert begun == ["white", "black", "white"]


async def play_any(talk: Talk) -> None:
    """Both sides of one game, as whoever analyses asks for them."""
    await talk.ready()
    line: list[str] = []
    for _ in range(3):
        line.append(await talk.best(*line))


FAULTS = {
    "crash": "the bot ended (exit status 1) and never connected to 127.",
    "noname": "white connected and did not say its name in time",
    "port=1": "the bot has run for 1 s and never connected to 127.",
    "dies=2": "white closed the connection (exit status 1); its last words: 'Exception in thread main",
    "dies=1": "white closed the connection (exit status 1)",
    "cut=1": "in the middle of a frame",
    "leaves=2": "white closed the connection (its process is still running)",
    "cut=2": "white: the connection ended in the middle of a frame",
    "resets=2": "white: the connection broke (Connection reset by peer)",
    "text=2": "expected JSON",
    "null=2": "white sent 'null': expected",
    "list=2": "expected",
    "deep=2": "expected",
    "garbage=2": "white sent a frame of -",
    "huge=2": "white sent a frame of 2147483647 bytes: expected 0 to 65536",
    "negative=2": "white sent a frame of -1 bytes",
}


@pytest.mark.parametrize("quirk", FAULTS)
def test_a_bot_that_fails_is_a_crash_with_a_reason(
    house: House, tmp_path: Path, quirk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if quirk == "noname":
        hurry_names(monkeypatch)
    if "exit status" in FAULTS[quirk]:
        monkeypatch.setattr(bot_module, "DYING", WAIT)
    begin = 1.0 if quirk == "port=1" else WAIT
    status, lines = wrapped(house, tmp_path, command(WHITE_HEART, quirk, begin=begin), escape_as_white)
    assert status == 3
    assert FAULTS[quirk] in lines[-1]
    assert lines[-1].startswith("info string error ")
    assert lines[-1].isprintable()
    kept = records(tmp_path)
    assert [moves(record) for record in kept] == ([ESCAPE[:2]] if "=2" in quirk else [])
    assert all(record.outcome is None for record in kept)


def hurry_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has connected, however late, must say its name at once."""
    real = Guest.introduce

    async def introduce(guest: Guest, timeout: float) -> str:
        assert 0 < timeout <= WAIT
        return await real(guest, 0.3)

    monkeypatch.setattr(Guest, "introduce", introduce)


def test_an_illegal_move_is_the_arena_s_to_judge(house: House, tmp_path: Path) -> None:
    async def play(talk: Talk) -> None:
        assert await talk.best() == "e5z9"

    assert wrapped(house, tmp_path, command("illegal=1", "off=1", "moves=e4f4,e4f4"), play)[0] == 0


def test_a_bot_that_never_answers(house: House, tmp_path: Path) -> None:
    """`stop` cannot be passed on; `isready` is answered, and `quit` ends everything."""

    async def play(talk: Talk) -> None:
        await talk.say("setoption name Side value d")
        await talk.ready()
        await talk.say("position startpos", "go movetime 10")
        await talk.ready()
        await talk.say("position startpos moves e3f3")
        assert "not while searching" in await talk.until("info string error")
        await talk.say("stop", "position startpos moves e3f3")

    status, lines = wrapped(house, tmp_path, command("silent=1", "stays"), play)
    assert status == 0
    assert not any(line.startswith("bestmove") for line in lines)


def test_an_infinite_search_is_answered_after_stop(house: House, tmp_path: Path) -> None:
    async def play(talk: Talk) -> None:
        await talk.say("setoption name Side value d")
        await talk.ready()
        await talk.say("position startpos", "go infinite")
        await talk.ready()
        await asyncio.sleep(0.2)
        assert not any(line.startswith("bestmove") for line in talk.lines)
        await talk.say("stop")
        assert await talk.until("bestmove") == f"bestmove {ESCAPE[0]}"

    assert wrapped(house, tmp_path, command(WHITE_HEART), play)[0] == 0


def test_what_follows_a_stop_waits_for_the_answer(house: House, tmp_path: Path) -> None:
    """In one write, and a second `go` about the same position is about that position."""

    status, lines = wrapped(house, tmp_path, command(), ask_thrice)
    assert status == 0, lines


async def ask_thrice(talk: Talk) -> None:
    await talk.say("position startpos", "go infinite", "stop", "go infinite", "stop")
    await talk.say("position startpos moves e3f3", "go movetime 10")
    origins = [(await talk.until("bestmove")).split()[1][:2] for _ in range(3)]
    white = {"c5", "d5", "e3", "e4", "e5", "e6", "e7", "f5", "g5"}
    assert [origin in white for origin in origins] == [True, True, False]


def test_messages_out_of_turn_are_counted(house: House, tmp_path: Path) -> None:
    async def play(talk: Talk) -> None:
        await escape_as_white(talk)
        await talk.say("utinewgame")
        assert "messages out of turn" in await talk.until("info string the bot")

    assert wrapped(house, tmp_path, command(WHITE_HEART, "chatter"), play)[0] == 0


def test_ten_thousand_answers(house: House, tmp_path: Path) -> None:
    """The first counts; the others are dropped, whenever they come."""

    async def play(talk: Talk) -> None:
        await talk.say("setoption name Side value d")
        await talk.ready()
        assert await talk.best() == ESCAPE[0]
        await talk.ready()

    assert wrapped(house, tmp_path, command(WHITE_HEART, "flood=1"), play)[0] == 0


def test_a_bot_that_does_not_read(house: House, tmp_path: Path) -> None:
    async def play(talk: Talk) -> None:
        await talk.say("setoption name Side value d")
        await talk.ready()
        await talk.say("go movetime 10")
        await talk.ready()

    assert wrapped(house, tmp_path, command("deaf"), play)[0] == 0


def test_placeholders() -> None:
    from hnefi.engine.sides import Side

    words = ("run", "{colour}-{Colour}-{COLOUR}", "-t", "{seconds}", "{host}:{port}", "{other}")
    filled = Command(words, 7).filled(Side.ATTACKERS, "127.1.2.3")
    assert filled == ["run", "black-Black-BLACK", "-t", "7", "127.1.2.3:5801", "{other}"]


# The command


def shell(*quirks: str) -> str:
    return shlex.join(command(*quirks).words)


def test_signals_and_kills_leave_nobody(tmp_path: Path) -> None:
    """Neither an engine nor a bot, nor a child that left its group."""
    for number, status in ((signal.SIGTERM, 1), (signal.SIGINT, 1), (signal.SIGKILL, -signal.SIGKILL)):
        mark = uuid.uuid4().hex
        process = start("--wrap", shell("silent=1", "stays", "child"), folder=tmp_path, **{MARK: mark})
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("uti\nsetoption name Side value d\nisready\nposition startpos\ngo\n")
        process.stdin.flush()
        for line in process.stdout:
            if line == "readyok\n":
                break
        wait_until(lambda mark=mark: len(marked(mark)) >= 3)
        process.send_signal(number)
        assert process.wait(PROMPTLY) == status
        process.stdin.close()
        process.stdout.close()
        assert process.stderr is not None
        process.stderr.close()
        expect_nobody(mark)


@pytest.mark.slow
def test_eight_games_at_once_in_the_arena(tmp_path: Path) -> None:
    """Each on an address of its own: no fault, and every game is in the journal."""
    engine = f"name=bot,cmd={HNEFI[0]},args={shlex.join(HNEFI[1:])} --wrap {shlex.quote(shell())}"
    ran = subprocess.run(
        [
            *engine_pool.command(), "arena", "--engine", engine, "--engine", "player=random-blind",
            "--variant", "tablut-bologna", "--pairs", "4", "--concurrency", "8", "--movetime", "60000",
            "--adjudicate-max-plies", "60", "--oversubscribe", "--each", f"start={WAIT:g}", "--each", f"ready={WAIT:g}",
            "--out", str(tmp_path / "cup"), "--plain",
        ],
        capture_output=True, text=True, timeout=WAIT * 2, check=False, env=environment(tmp_path),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    summary = json.loads((tmp_path / "cup" / "summary.json").read_text())
    assert "of 8 games" in ran.stdout
    assert "faults     0" in ran.stdout, ran.stdout
    assert summary
    assert len(records(tmp_path / "hnefi" / "games" / "tablut")) == 8


@pytest.mark.slow
def test_a_wrap_that_is_killed_in_the_arena_leaves_nobody(tmp_path: Path) -> None:
    """Neither its bot nor what that has started in a session of its own."""
    mark = uuid.uuid4().hex
    bot = shlex.quote(shell("silent=1", "child"))
    args = f"-m hnefi.tools.cli tablut --wrap {bot} --no-record"
    engine = f"name=bot,cmd={sys.executable},args={args},start={WAIT:g},ready={WAIT:g}"
    arena = subprocess.Popen(
        [
            sys.executable, "-m", "hnefi.tools.cli", "arena", "--engine", engine, "--engine", "player=random-blind",
            "--variant", "tablut-bologna", "--pairs", "1", "--movetime", "60000", "--out", str(tmp_path / "cup"),
            "--plain",
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(tmp_path, **{MARK: mark}),
    )  # fmt: skip

    def found(*words: str) -> set[str]:
        return {line.split()[0] for line in marked(mark) if all(word in line for word in words)}

    try:
        wait_until(
            lambda: found("double_bot.py", "127.", "silent") - found("--wrap") and found("time.sleep(600)"),
            WAIT,
        )
        theirs = (found("double_bot.py", "silent") - found("--wrap")) | found("time.sleep(600)")
        (wrap,) = found("tablut", "--wrap") - {str(arena.pid)}
        os.kill(int(wrap), signal.SIGKILL)
        wait_until(lambda: not theirs & found(""), WAIT)
    finally:
        arena.terminate()
        arena.wait(WAIT)
    expect_nobody(mark)


# --check


def checked(house: House, bots: Command) -> tuple[bool, list[list[str]]]:
    """Whether a double keeps to the convention, and the table's rows: colour, step, verdict, what was seen."""
    said: list[str] = []
    with orphans.adopting():
        good = house.runner.run(check(bots, house.rules, said.append))
    return good, [
        [line[:5].strip(), line[7:23].strip(), line[25:29].strip(), line[31:]] for line in said[:-1]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("quirks", [["delay=0.001"], ["upper", "nullturn", "bytes"]], ids=["plain", "odd"])
def test_a_good_bot_passes(house: House, quirks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_module, "PLIES", 10)
    monkeypatch.setattr(check_module, "PARTING", WAIT)
    good, rows = checked(house, command(*quirks))
    assert good
    assert [row[:2] for row in rows] == [
        [colour, step] for colour in ("white", "black") for step in check_module.STEPS
    ]
    assert {row[2] for row in rows if row[1] != "move refused"} == {"ok"}, rows


BAD = {
    "illegal=2": ("whole game", "FAIL", "played e5e4: not legal"),
    "text=2": ("whole game", "FAIL", "expected JSON"),
    "dies=2": ("whole game", "FAIL", "exit status 1"),
    "silent=1": ("whole game", "FAIL", "no move within 1 s"),
    "noname": ("name", "FAIL", "did not say its name in time"),
    "crash": ("name", "FAIL", "no heap left for a bot"),
    "rudename": ("name", "note", "expected at most 10 letters and digits"),
    "stays": ("server gone", "note", "still running"),
    "chatter": ("whole game", "note", "messages out of turn"),
}


@pytest.mark.parametrize("quirk", BAD)
def test_a_bad_bot_is_told_what_is_wrong(house: House, quirk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    step, verdict, said = BAD[quirk]
    monkeypatch.setattr(check_module, "PARTING", 0.3)
    monkeypatch.setattr(check_module, "PLIES", 6)
    monkeypatch.setattr(check_module, "STEPS", {step: check_module.STEPS[step]})
    monkeypatch.setattr(bot_module, "DYING", WAIT)
    if quirk == "noname":
        hurry_names(monkeypatch)
    good, rows = checked(house, command(quirk, seconds=1 if quirk == "silent=1" else 60, begin=WAIT))
    for colour in ("white", "black"):
        (row,) = [row for row in rows if row[:2] == [colour, step]]
        assert row[2] == verdict, rows
        assert said in row[3]
    assert good == all(row[2] != "FAIL" for row in rows)


def test_the_check_as_a_command(tmp_path: Path) -> None:
    ran = run("--check", shell("crash"), folder=tmp_path)
    assert ran.returncode == 1
    assert ran.stdout.splitlines()[-1] == "double_bot.py: 2 failed, 0 notes"


def test_an_address_that_is_taken_is_named(house: House, tmp_path: Path) -> None:
    address = free_address()
    import socket

    async def play(talk: Talk) -> None:
        await talk.say("setoption name Side value d")
        await talk.ready()

    with socket.create_server((address, 5800)):
        bots = Command(command().words, 60, address=address)
        status, lines = wrapped(house, tmp_path, bots, play)
    assert status == 3
    assert f"no place for a bot: {address}:5800: Address already in use" in lines[-1]
    assert os.strerror(98) in lines[-1]
