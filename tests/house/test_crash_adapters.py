"""`play` and `mqtt serve`, which people keep open, killed at random moments: what was shown to them is on the disk.

A command that ends by itself has its line in test_crash_only.py, whose `HNEFI_KILLS` says how many moments here, too.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from leftover_processes import MARK, expect_nobody
from mqtt_brokers import TestBroker, running
from mqtt_parts import Watcher

from hnefi.engine import games, squares
from hnefi.engine.games.tafl.variant import find
from hnefi.engine.records.record import GameRecord
from hnefi.engine.records.rule_sets import finder
from hnefi.gui_adapter.mqtt.brokers import find_mosquitto
from hnefi.gui_adapter.terminal import saving
from hnefi.protocol.hosts import journal

if sys.platform != "linux":
    pytest.skip("looks at /proc", allow_module_level=True)

from terminal_screen import Terminal, play

pytestmark = [pytest.mark.process, pytest.mark.slow]

MOMENTS = int(os.environ.get("HNEFI_KILLS", "2"))
PLIES = 16


def some_game() -> list[str]:
    """The first plies of a game of brandubh."""
    dice, position = random.Random("a game"), games.initial(find("brandubh"))
    while len(position.moves) < PLIES:
        after = position.play(dice.choice(position.legal_moves()))
        position = position if after.outcome else after
    return [squares.move_name(move) for move in position.moves]


GAME = some_game()


def moves(record: GameRecord) -> list[str]:
    return [squares.move_name(ply.move) for ply in record.plies]


def journals(folder: Path) -> list[list[str]]:
    """The moves of all games that were written down, each once."""
    return [
        moves(record) for path in sorted(folder.glob("**/games/*/*.jsonl")) for record in journal.read(path)
    ]


def unfinished(folder: Path) -> list[str]:
    """The moves of the game that `--continue` would take up; nothing if there is none."""
    kept = saving.Autosave(folder / "data/hnefi/terminal").unfinished()
    if kept is None:
        return []
    return moves(saving.load(kept, None, finder(), find("brandubh")).record)


def ready(terminal: Terminal, plies: int) -> None:
    """Wait until the prompt asks for the next ply, and so the last one is on the screen."""
    side = ("attackers", "defenders")[plies % 2]
    terminal.wait(lambda: terminal.prompt.startswith(side) and terminal.typed == "")


def test_a_game_at_the_terminal_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    dice, mark = random.Random("kill play"), uuid.uuid4().hex
    plies = shown = 0
    for attempt in range(MOMENTS + 1):
        words = ["--continue"] if plies else ["--variant", "brandubh", "--side", "both"]
        with play(tmp_path, *words, **{MARK: mark}) as terminal:
            ready(terminal, plies)
            most = len(GAME) if attempt == MOMENTS else min(len(GAME) - 1, plies + dice.randrange(4))
            while plies < most:
                terminal.enter(GAME[plies])
                plies += 1
                ready(terminal, plies)
                shown = plies
            if attempt == MOMENTS:
                terminal.enter("save whole.tafl")
                terminal.wait_for("Saved: ")
            elif plies < len(GAME) - 1:
                # In the middle of a ply, of what is written of it, or before it.
                terminal.enter(GAME[plies])
                time.sleep(dice.choice([0.0, dice.uniform(0.0, 0.02), dice.uniform(0.0, 0.2)]))
            terminal.signal(signal.SIGKILL)
            terminal.end()
        expect_nobody(mark)
        found = unfinished(tmp_path)
        assert found == GAME[: len(found)]
        assert shown <= len(found) <= shown + 1
        plies = shown = len(found)
        assert all(game == GAME[: len(game)] for game in journals(tmp_path))
        assert max(map(len, journals(tmp_path)), default=0) >= shown
        assert not list(tmp_path.glob("**/*.new"))
    assert moves(saving.load(tmp_path / "whole.tafl", None, finder(), find("brandubh")).record) == GAME


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBroker]:
    """One broker, of whichever kind there is."""
    kind = "mosquitto" if find_mosquitto() else "amqtt"
    yield from running(kind, tmp_path_factory.mktemp(kind))


def service(url: str, folder: Path, mark: str, *flags: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "hnefi.tools.cli", "mqtt", "serve", "--broker", url, "--eid", "crash", *flags],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, MARK: mark, "XDG_DATA_HOME": str(folder)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().startswith("broker ")
    assert process.stdout.readline().startswith("ready ")
    return process


@pytest.mark.broker
def test_a_service_that_is_killed_has_written_what_it_answered(broker: TestBroker, tmp_path: Path) -> None:
    """Every ply that was followed by another answer is in the journal, and the next service takes its users on."""
    dice, mark = random.Random("kill mqtt"), uuid.uuid4().hex

    async def until_killed(number: int) -> int:
        process = service(broker.url, tmp_path, mark, "--trace", str(tmp_path / f"trace-{number}"))
        try:
            async with Watcher(broker.url, "crash", f"user{number}") as client:
                sid = await client.open(f"game-{number}", variant="brandubh", seq=True)
                asyncio.get_running_loop().call_later(dice.uniform(0.0, 0.6), process.kill)
                answered = 0
                for at, move in enumerate(GAME, start=1):
                    await client.say(sid, f"#{at} play {move}")
                    while process.poll() is None and not any(
                        f"played {move}" in line for line in client.out(sid)[-3:]
                    ):
                        await asyncio.sleep(0.005)
                    if process.poll() is not None:
                        break
                    answered = at
                return answered
        finally:
            process.kill()
            process.communicate()

    answered = []
    for number in range(MOMENTS):
        answered.append(asyncio.run(until_killed(number)))
        expect_nobody(mark)
    written = journals(tmp_path)
    assert all(game == GAME[: len(game)] for game in written)
    counted = sorted(map(len, written), reverse=True)
    for plies, at_least in zip(
        counted, sorted((count - 1 for count in answered), reverse=True), strict=False
    ):
        assert plies >= at_least
