"""What the commands of all adapters share: programs that do not exist, places that are none, what is told."""

from __future__ import annotations

import argparse
import asyncio
import errno
import io
import logging
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from hnefi.engine.games import find
from hnefi.protocol.errors import EngineError
from hnefi.protocol.hosts import adapter, engine_flags
from hnefi.protocol.hosts.connecting import host_and_port
from hnefi.protocol.hosts.exit_codes import STORAGE
from hnefi.protocol.hosts.stdio import Diagnostics

MISSING = "/nowhere/engine"
COMMANDS = {
    "tablut": ("White",),
    "otep": (),
    "htp": (),
    "hnefatafl_org": ("--user", "ai-x"),
}
"""Adapters, and what each of their command lines needs."""


def refused(capsys: pytest.CaptureFixture[str], name: str, *words: str) -> str:
    """What a command says that ends with status 2 before it does anything."""
    command = import_module(f"hnefi.gui_adapter.{name}.command")
    with pytest.raises(SystemExit) as ended:
        command.main(list(words))
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


@pytest.mark.parametrize("name", COMMANDS)
def test_an_engine_that_does_not_exist(capsys: pytest.CaptureFixture[str], name: str) -> None:
    for engine, where in ((MISSING, "here"), ("no-such-engine", "in the PATH")):
        said = refused(capsys, name, *COMMANDS[name], "--engine", f"{engine} --fast")
        assert f"--engine: {engine!r}: no such program {where}: expected an executable program" in said


@pytest.mark.parametrize(
    ("name", "flag"), [("tablut", "wrap"), ("tablut", "check"), ("otep", "wrap"), ("htp", "wrap")]
)
def test_a_program_to_wrap_that_does_not_exist(
    capsys: pytest.CaptureFixture[str], name: str, flag: str
) -> None:
    said = refused(capsys, name, f"--{flag}", f"{MISSING} {{host}}")
    assert f"--{flag}: {MISSING!r}: no such program here: expected an executable program" in said
    assert f'--{flag} "\'": No closing quotation' in refused(capsys, name, f"--{flag}", "'")


def test_a_program_that_cannot_be_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "bot.py"
    file.touch()
    said = refused(capsys, "htp", "--wrap", str(file))
    assert f"--wrap: {str(file)!r}: not executable: expected an executable program" in said
    said = refused(capsys, "htp", "--engine", str(tmp_path))
    assert f"--engine: {str(tmp_path)!r}: a folder: expected an executable program" in said


@pytest.mark.parametrize(
    ("name", "words", "expected"),
    [
        (
            "tablut",
            ("--wrap", "cat {color}"),
            "'{color}': expected {colour}, {Colour}, {COLOUR}, {seconds}, {host} or {port}",
        ),
        ("tablut", ("--check", "sh -c 'exec bot --side={side}'"), "--check: '{side}': expected {colour}, "),
        ("htp", ("--wrap", "cat {Host}:{port}"), "'{Host}': expected {host} or {port}"),
        ("htp", ("--wrap", "cat {port}"), "{port} without {host}: expected both, or {host} alone"),
        # What a shell replaces is none of ours.
        (
            "tablut",
            ("--check", "sh -c 'exec ${JAVA} a{1,2} {colour}'", "--games", "2"),
            "--games with --check",
        ),
    ],
)
def test_a_placeholder_that_is_none(
    capsys: pytest.CaptureFixture[str], name: str, words: tuple[str, ...], expected: str
) -> None:
    assert expected in refused(capsys, name, *words)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_place_for_games_that_is_no_folder(
    capsys: pytest.CaptureFixture[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HNEFI_PASSWORD", "secret")
    file = tmp_path / "file"
    file.touch()
    for place in ("/dev/null", str(file)):
        said = refused(capsys, name, *COMMANDS[name], "--record-dir", place)
        assert f"--record-dir {place!r}: not a folder: expected a folder, or a name for a new one" in said
    inside = str(file / "new")
    said = refused(capsys, name, *COMMANDS[name], "--record-dir", inside)
    assert ": Not a directory: expected a folder, or a name for a new one" in said


@pytest.mark.parametrize("name", ["tablut", "htp", "hnefatafl_org"])
def test_an_option_that_our_engine_does_not_take(
    capsys: pytest.CaptureFixture[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HNEFI_PASSWORD", "secret")
    said = refused(capsys, name, *COMMANDS[name], "--option", "Foo=1")
    assert "--option 'Foo': our engine has no such option" in said
    said = refused(capsys, name, *COMMANDS[name], "--option", "Threads=0")
    assert "--option 'Threads=0': expected 1 to 256" in said


@pytest.mark.parametrize(
    ("name", "words", "expected"),
    [
        ("tablut", "--serve --wait 3", "--wait with --serve: expected it only for playing"),
        ("tablut", "--serve --name hnefi", "--name with --serve: expected it only for playing"),
        ("tablut", "White --games 1", "--games: expected it only for --serve"),
        ("tablut", "White --start 60", "--start: expected it only for --serve or --wrap or --check"),
        ("otep", "--force", "--force: expected it only for --write-ini"),
        ("otep", "--wrap sh --otn intended", "--otn with --wrap: expected it only for playing or --write-ini"),
        ("otep", "--fresh", "--fresh: expected it only for --wrap"),
        ("htp", "--wait 1", "--wait: expected it only for --connect"),
        ("htp", "--wrap sh --movetime 5", "--movetime with --wrap: expected it only for playing or --connect"),
        ("htp", "--connect h --name x", "--name with --connect: expected it only for --wrap"),
        ("hnefatafl_org", "--user ai-x --join 1 --rated", "--rated with --join: expected it only for offers"),
    ],
)  # fmt: skip
def test_a_flag_that_means_nothing_here(
    capsys: pytest.CaptureFixture[str], name: str, words: str, expected: str
) -> None:
    """Also one that is given the value it has without it."""
    assert expected in refused(capsys, name, *words.split())


def test_what_is_told_is_harmless(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Foreign text may contain what a terminal obeys or turns round, or what its encoding does not have."""
    said = "Þór ᚠ \x1b[2J\x9b1m\u202e\udcff"
    adapter.tell(said)
    assert capsys.readouterr().out == "Þór ᚠ \\x1b[2J\\x9b1m\\x202e\\xdcff\n"
    record = logging.LogRecord("x", logging.INFO, "", 0, "%s\nb", (said,), None)
    assert Diagnostics().format(record) == "Þór ᚠ \\x1b[2J\\x9b1m\\x202e\\xdcff\nb"
    latin = io.TextIOWrapper(io.BytesIO(), "latin-1")
    monkeypatch.setattr(sys, "stdout", latin)
    adapter.tell("Þór ᚠ")
    assert latin.buffer.getvalue() == b"\xde\xf3r \\u16a0\n"  # type: ignore[attr-defined]


CROWDED = {
    "htp": "name\nboard_size 7\nquit\n",
    "otep": "rules\ngoodbye\n",
    "htp --wrap /usr/bin/yes": "uti\nisready\nquit\n",
    "tablut --seconds 2 --check false": "",
}
"""Commands that answer, and what they are sent."""


@pytest.mark.process
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", CROWDED)
def test_a_full_disk_is_no_success(words: str, tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hnefi.tools.cli", *words.split()],
            input=CROWDED[words].encode(),
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "XDG_DATA_HOME": str(tmp_path)},
            timeout=60,
        )
    name = words.partition(" ")[0]
    assert done.stderr.decode() == f"hnefi {name}: standard output: No space left on device\n"
    assert done.returncode == STORAGE


@pytest.mark.process
def test_who_has_closed_the_pipe_hears_nothing(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "hnefi.tools.cli", "tablut", "--seconds", "2", "--check", "false"],
            check=False,
            stdout=theirs,
            stderr=subprocess.PIPE,
            env={**os.environ, "XDG_DATA_HOME": str(tmp_path)},
            timeout=60,
        )
    finally:
        os.close(theirs)
    assert (done.stderr, done.returncode) == (b"", 1)


@pytest.mark.process
def test_a_name_keeps_its_letters(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hnefi.tools.cli", "htp", "--wrap", "false", "--name", "ᚠ ø\x1b\u202e"],
        input=b"uti\nquit\n",
        stdout=subprocess.PIPE,
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path)},
        timeout=60,
        check=True,
    )
    assert done.stdout.decode().splitlines()[0] == "id name ᚠ ø\\x1b\\x202e"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("localhost", ("localhost", 49)),
        ("play.example-1.org:80", ("play.example-1.org", 80)),
        ("[::1]:80", ("::1", 80)),
        ("[::1]", ("::1", 49)),
        ("fe80::1", ("fe80::1", 49)),
    ],
)
def test_a_host_and_its_port(text: str, found: tuple[str, int]) -> None:
    assert host_and_port(text, 49) == found


@pytest.mark.parametrize(
    "text", ["", ":80", "a:", "a:0", "a:65536", "a:8o", "a b", "http://a", "[::1]:", "a/b:1", "a:b:c"]
)
def test_no_host_and_port(text: str) -> None:
    with pytest.raises(ValueError, match="expected HOST or HOST:PORT"):
        host_and_port(text, 49)


@pytest.mark.parametrize("fails", [False, True])
def test_engines_end_with_the_work_also_while_they_start(fails: bool) -> None:
    class Slot:
        closed = 0

        async def warm_up(self) -> None:
            if fails:
                raise EngineError("no engine")
            await asyncio.get_running_loop().create_future()

        async def close(self) -> None:
            self.closed += 1

    slot = Slot()

    async def work() -> None:
        async with adapter.engines(slot, slot):  # type: ignore[arg-type]
            await asyncio.sleep(0)
            assert not slot.closed
            raise KeyError

    with pytest.raises(KeyError):
        asyncio.run(work())
    assert slot.closed == 1


def test_the_slowest_start_is_waited_for_at_the_end() -> None:
    """Whoever is the first to be gone may fail: the others are still ended, by nobody else."""
    gone = []

    class Slot:
        def __init__(self, turns: int) -> None:
            self.turns = turns

        async def warm_up(self) -> None:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                for _ in range(self.turns):
                    await asyncio.sleep(0)
                gone.append(self.turns)

        async def close(self) -> None:
            pass

    async def work() -> None:
        async with adapter.engines(Slot(0), Slot(20)):  # type: ignore[arg-type]
            await asyncio.sleep(0)
        assert gone == [0, 20]

    asyncio.run(work())


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--option", "Foo=1"], "--option 'Foo': our engine has no such option"),
        (["--record-dir", os.devnull], "not a folder: expected a folder"),
    ],
)
@pytest.mark.parametrize(
    ("module", "words"),
    [("terminal.command", ["--script", os.devnull]), ("mqtt.serve", ["--broker", "mqtt://[::1]:1"])],
)
def test_what_would_fail_later_is_refused(
    module: str,
    words: list[str],
    flags: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    command = import_module(f"hnefi.gui_adapter.{module}")
    with pytest.raises(SystemExit) as ended:
        command.main([*words, *flags])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--option", "Evaluator=net-brandubh-2"], "--option: net-brandubh-2: made for brandubh"),
        (["--player", "{folder}/mine.toml"], "--player: net-brandubh-2: made for brandubh"),
    ],
)
def test_an_evaluator_of_other_rules_joins_no_game(
    flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text('evaluator = "net-brandubh-2"\n')
    options = argparse.ArgumentParser()
    engine_flags.add_flags(options)
    arguments = options.parse_args([flag.format(folder=tmp_path) for flag in flags])
    engine_flags.check_flags(options, arguments, find("brandubh"))
    arguments.engine = None
    with pytest.raises(SystemExit):
        engine_flags.check_flags(options, arguments, find("copenhagen"))
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--player", "nobody"], "--player: no player 'nobody'"),
        (
            ["--variant", "nowhere"],
            "--variant: 'nowhere': expected a variant (`hnefi variants` lists them)\n",
        ),
        (["--port", "65536"], "--port: '65536': expected a port from 1 to 65535"),
        (["--ws-port", "65536"], "--ws-port: '65536': expected a port from 1 to 65535"),
    ],
)
def test_a_service_that_nobody_could_use_does_not_begin(
    flags: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        import_module("hnefi.gui_adapter.mqtt.serve").main(["--broker", "mqtt://[::1]:1", *flags])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_place_for_games_that_cannot_be_written_is_a_matter_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(SystemExit) as ended:
        import_module("hnefi.gui_adapter.mqtt.serve").main(["--record-dir", str(tmp_path / "games")])
    assert ended.value.code == 4
    said = f"--record-dir {str(tmp_path / 'games')!r}: Read-only file system: expected a folder that can be written"
    assert said in capsys.readouterr().err
