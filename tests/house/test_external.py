"""Our adapters against the programs that they are for. Each is skipped unless a variable says how to start its program:

    HNEFI_OPENTAFL="java -Xmx1g -cp /opt/OpenTafl.jar com.manywords.softworks.tafl.OpenTafl --engine --silent"
    HNEFI_HTP_ENGINE="hnefatafl-text-protocol"
    HNEFI_LIGHT_SERVER="PROGRAM ARGUMENTS"
    HNEFI_TABLUT_SERVER="java -jar Server.jar -t 10"
    HNEFI_TABLUT_BOT="java -jar bot.jar {Colour} {seconds} {host}"
    pytest -m external

Each command is split as a shell would, and run without one. What was said is kept: `--basetemp DIR` says where.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from leftover_processes import wait_until

from hnefi.protocol.hosts import journal

pytestmark = [pytest.mark.external, pytest.mark.process, pytest.mark.timeout(7_200)]

HNEFI = (sys.executable, "-m", "hnefi.tools.cli")
GAMES = int(os.environ.get("HNEFI_EXTERNAL_GAMES", "10"))
"""Of each match."""
LISTEN = "0A"
PLIES = 300
"""After which a game of a match is drawn."""


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path


def program(variable: str) -> str:
    """The command in a variable, or the test is skipped."""
    command = os.environ.get(variable, "")
    if not command:
        pytest.skip(f"{variable} names no program")
    return command


def match(folder: Path, variant: str, movetime: int, *words: str) -> None:
    """Games in the arena between a wrapped program and one of our players: all are played, and nobody is at fault."""
    config = folder / "run.toml"
    arguments = json.dumps(["-m", "hnefi.tools.cli", *words, "--trace", str(folder / "trace")])
    config.write_text(
        f'[run]\nvariants = ["{variant}"]\npairs = {GAMES // 2}\n[adjudicate]\nmax_plies = {PLIES}\n'
        f'[each]\nstart = 120\nready = 120\nmovetime = {movetime}\n'
        f'[[engine]]\nname = "theirs"\nmovetime = 600000\ncmd = {json.dumps(sys.executable)}\nargs = {arguments}\n'
        '[[engine]]\nplayer = "simple"\n'
    )  # fmt: skip
    done = subprocess.run(
        [*HNEFI, "arena", "--config", str(config), "--out", str(folder / "run"), "--plain"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"faults +0\n", done.stdout), done.stdout
    assert f"of {GAMES} games" in done.stdout


def listened_on(port: int) -> bool:
    """Whether somebody listens there (Linux); to connect would be to take a place in a game."""
    tables = [Path(f"/proc/net/{name}") for name in ("tcp", "tcp6")]
    lines = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()]
    return any(words[3] == LISTEN and words[1].endswith(f":{port:04X}") for words in lines)


@contextmanager
def serving(command: str, *ports: int) -> Iterator[None]:
    """A server that listens on these ports."""
    words = shlex.split(command)
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    try:
        wait_until(lambda: process.poll() is not None or all(map(listened_on, ports)), 60)
        assert process.poll() is None, f"{command} has ended"
        yield
    finally:
        process.kill()
        process.wait()


def two(*commands: tuple[str, ...]) -> list[str]:
    """What two clients print, which begin in this order and both end well."""
    processes = []
    for words in commands:
        process = subprocess.Popen(
            [*HNEFI, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("connected")
    said = [process.communicate(timeout=7_200) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    return [out for out, _ in said]


@pytest.mark.parametrize("variant", ["copenhagen", "brandubh-walker", "tablut-linnaeus"])
def test_opentafl_plays_in_the_arena(data: Path, variant: str) -> None:
    match(data, variant, 1_000, "otep", "--wrap", program("HNEFI_OPENTAFL"))


@pytest.mark.parametrize("variant", ["copenhagen-org", "brandubh-org"])
def test_an_engine_of_the_text_protocol_plays_in_the_arena(data: Path, variant: str) -> None:
    match(data, variant, 1_000, "htp", "--variant", variant, "--wrap", program("HNEFI_HTP_ENGINE"))


def test_a_game_on_a_light_server() -> None:
    with serving(program("HNEFI_LIGHT_SERVER"), 49_152):
        client = ("htp", "--connect", "127.0.0.1", "--movetime", "500")
        said = two(client, client)
    assert all("the game is over" in text for text in said)


def test_a_game_on_the_tablut_server() -> None:
    with serving(program("HNEFI_TABLUT_SERVER"), 5_800, 5_801):
        player = ("tablut", "--host", "127.0.0.1", "--seconds", "10", "--movetime", "500", "--side")
        said = two((*player, "white"), (*player, "black"))
    assert all("game over" in text for text in said)


def test_a_tablut_bot_plays_in_the_arena(data: Path) -> None:
    match(data, "tablut-bologna", 1_000, "tablut", "--seconds", "10", "--wrap", program("HNEFI_TABLUT_BOT"))
    files = (data / "hnefi" / "games" / "tablut").glob("*.jsonl")
    assert sum(len(list(journal.read(path))) for path in files) == GAMES
