"""The figures of `hnefi tablut` in MEASUREMENTS.md: delay, first answer, memory, idle processor, games at once (Linux).

    PYTHONPATH=tests/support python tests/tablut/measure.py [--starts 10] [--games 0] [--idle 10]

`--games N` plays N games at once, each between a wrapped double of a bot and random moves.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import Firsts, cpu, memory, scheduled, spread
from tablut_parts import DOUBLES, HNEFI, environment, free_address

from hnefi.engine.sides import Side
from hnefi.gui_adapter.tablut.check import Sparring
from hnefi.gui_adapter.tablut.frames import GAME, State, board_of, turn_of
from hnefi.gui_adapter.tablut.host import Host
from hnefi.gui_adapter.tablut.serve import Match, Played, Settings
from hnefi.protocol.hosts.rulebook import EngineSlot, Line, RulesEngine

BOT = shlex.join(
    [sys.executable, "-I", "-S", str(DOUBLES / "double_bot.py"), "{Colour}", "{seconds}", "{host}"]
)


def started(*words: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*HNEFI, *words, "--log-level", "error"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(folder)
    )  # fmt: skip


def ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.communicate()


def first_answers(starts: int, folder: Path) -> None:
    """From the start of the command to its first duty: the name, `utiok`, the open ports."""
    found = {name: Firsts() for name in ("client: name", "wrap: utiok", "serve: listening")}
    for _ in range(starts):
        address = free_address()
        with socket.create_server((address, 5800)) as listener:
            began = time.monotonic()
            process = started("White", "60", address, folder=folder)
            player, _ = listener.accept()
            with player:
                player.recv(4)
                found["client: name"].met(process.pid, time.monotonic() - began)
            ended(process)
        began = time.monotonic()
        process = started("--wrap", BOT, folder=folder)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"uti\n")
        process.stdin.flush()
        while process.stdout.readline() != b"utiok\n":
            pass
        found["wrap: utiok"].met(process.pid, time.monotonic() - began)
        ended(process)
        began = time.monotonic()
        process = started("--serve", "--bind", address, folder=folder)
        assert process.stdout is not None
        process.stdout.readline()
        found["serve: listening"].met(process.pid, time.monotonic() - began)
        ended(process)
    for name, firsts in found.items():
        print(f"{name}: {firsts}")


async def client_delay(rules: RulesEngine, folder: Path) -> None:
    """From the state to the action, the engine's random choice included."""
    address = free_address()
    host = await Host.open(Side.DEFENDERS, address)
    process = started("White", "60", address, "--player", "random-blind", folder=folder)
    guest = await host.arrival()
    await guest.introduce(60)
    # The engine has its start, and what it compiles, behind it.
    await asyncio.sleep(5)
    taken: list[float] = []

    def look(played: Played) -> None:
        if played.side == Side.DEFENDERS:
            taken.append(played.seconds)

    before = scheduled(process.pid)[0]
    players = {Side.DEFENDERS: guest, Side.ATTACKERS: Sparring(Side.ATTACKERS, rules)}
    await Match(rules, players, Settings(), on_ply=look, ply_limit=200).play()
    own = 1000 * (scheduled(process.pid)[0] - before) / len(taken)
    print(f"client, state to action: {spread(taken[1:])}; the first {1000 * taken[0]:.1f} ms; "
          f"its own CPU {own:.2f} ms a pair of plies", flush=True)  # fmt: skip
    await guest.close()
    await host.close()
    process.communicate()


class Wrapped:
    """A wrapped double in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, folder: Path, *quirks: str) -> Wrapped:
        process = await asyncio.create_subprocess_exec(
            *HNEFI, "--wrap", shlex.join([*shlex.split(BOT), *quirks]), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=environment(folder),
        )  # fmt: skip
        wrapped = cls(process)
        await wrapped.say("uti", "setoption name Side value d", "isready", until="readyok")
        return wrapped

    async def say(self, *lines: str, until: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        while True:
            line = (await self.process.stdout.readline()).decode()
            if not line:
                raise SystemExit(f"the wrapped double has ended, expected {until}")
            if line.startswith(until):
                return line

    async def game(self, rules: RulesEngine, dice: random.Random, plies: int) -> list[float]:
        """The seconds from each `go` to its answer, against random moves."""
        line, taken = Line(), []
        facts = await rules.facts(line)
        while facts.result is None and len(line.moves) < plies:
            if facts.side == Side.DEFENDERS:
                moves = f" moves {' '.join(line.moves)}" if line.moves else ""
                began = time.monotonic()
                answer = await self.say(f"position startpos{moves}", "go movetime 60000", until="bestmove")
                taken.append(time.monotonic() - began)
                move = answer.split()[1]
                assert move in facts.legal, move
            else:
                move = dice.choice(list(facts.legal))
            line = line.play(move)
            facts = await rules.facts(line)
        return taken

    async def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"quit\n")
        assert await self.process.wait() == 0


async def wrap_delay(rules: RulesEngine, folder: Path) -> None:
    """From the `go` to its answer, the double's own moment included."""
    wrapped = await Wrapped.start(folder)
    before = scheduled(wrapped.process.pid)[0]
    taken = await wrapped.game(rules, random.Random(1), 200)
    own = 1000 * (scheduled(wrapped.process.pid)[0] - before) / len(taken)
    print(f"wrap, go to bestmove: {spread(taken[1:])}; its own CPU {own:.2f} ms a pair of plies", flush=True)
    print(f"memory: wrap {memory(wrapped.process.pid)}", flush=True)
    await wrapped.end()


async def idle(rules: RulesEngine, folder: Path, seconds: float) -> None:
    """What a client and a wrap use while the other side thinks."""
    address = free_address()
    host = await Host.open(Side.ATTACKERS, address)
    process = started("Black", "60", address, folder=folder)
    guest = await host.arrival()
    await guest.introduce(60)
    facts = await rules.facts(Line())
    await guest.tell(State(board_of(facts.fen), turn_of(facts.side, None)))
    wrapped = await Wrapped.start(folder, "silent=1")
    assert wrapped.process.stdin is not None
    wrapped.process.stdin.write(b"position startpos\ngo movetime 60000\n")
    await asyncio.sleep(3)
    before = [cpu(process.pid), cpu(wrapped.process.pid)]
    await asyncio.sleep(seconds)
    used = [
        100 * (cpu(pid) - had) / seconds
        for pid, had in zip((process.pid, wrapped.process.pid), before, strict=True)
    ]
    print(f"idle for {seconds:g} s: client {used[0]:.2f} %, wrap {used[1]:.2f} % of a core", flush=True)
    print(f"memory: client {memory(process.pid)}", flush=True)
    await guest.close()
    await host.close()
    process.communicate()
    await wrapped.end()


async def at_once(rules: RulesEngine, folder: Path, games: int) -> None:
    """So many wrapped doubles, each with its book of rules and an address of its own."""
    began = time.monotonic()
    wraps = [await Wrapped.start(folder) for _ in range(games)]
    print(f"{games} wrapped doubles ready after {time.monotonic() - began:.1f} s", flush=True)
    began = time.monotonic()
    taken = await asyncio.gather(*(one.game(rules, random.Random(n), 40) for n, one in enumerate(wraps)))
    moves = [seconds for game in taken for seconds in game]
    print(f"{games} games at once, {len(moves)} moves: no fault, {time.monotonic() - began:.1f} s, go to bestmove "
          f"{spread(moves)}", flush=True)  # fmt: skip
    await asyncio.gather(*(one.end() for one in wraps))


async def measured(given: argparse.Namespace, folder: Path) -> None:
    slot = EngineSlot(game=GAME)
    rules = RulesEngine(slot)
    await rules.warm_up()
    try:
        if given.games:
            await at_once(rules, folder, given.games)
        else:
            await client_delay(rules, folder)
            await wrap_delay(rules, folder)
            await idle(rules, folder, given.idle)
    finally:
        await slot.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--games", type=int, default=0)
    parser.add_argument("--idle", type=float, default=10.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        if not given.games:
            first_answers(given.starts, Path(folder))
        asyncio.run(measured(given, Path(folder)))


if __name__ == "__main__":
    main()
