"""A bot of the competition: its process, which is started with its colour, and the server's side of its connection."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import sys
import time
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from hnefi.engine.sides import Side
from hnefi.engine.wording import shorten
from hnefi.protocol.errors import last_line
from hnefi.protocol.hosts.adapter import fill
from hnefi.protocol.process import Exit, Listener, Process

from .frames import COLOURS, PORTS
from .host import Guest, GuestError, Host, HostError, Traffic

LOG = logging.getLogger("hnefi.tablut")

PLACES: Final = ("{colour}", "{Colour}", "{COLOUR}", "{seconds}", "{host}", "{port}")
"""Placeholders in the command of a bot."""
ADDRESSES: Final = 20
"""Loopback addresses to try until one is free."""
GRACE: Final = 1.0
"""Seconds that a bot has to end by itself when its game is over."""
MERCY: Final = 0.4
"""Seconds from TERM to KILL."""
DYING: Final = 1.0
"""Seconds to wait for the exit of a bot that has closed its connection."""


class BotError(Exception):
    """A bot that cannot be started or does not play; a sentence."""


@dataclass(frozen=True, slots=True)
class Command:
    """How to start bots: a command with placeholders, the seconds that they are told, and where they connect."""

    words: tuple[str, ...]
    seconds: int
    address: str = ""
    """The address to listen on; empty: a free loopback address for each game."""
    start: float = 60.0
    """Seconds until a bot must have connected and said its name."""

    @property
    def name(self) -> str:
        """The name of a bot before it has sent its own: its program, or the file that an interpreter runs."""
        files = [word for word in self.words if word.endswith((".jar", ".py", ".sh", ".class"))]
        return PurePath((files or self.words)[0]).name

    def filled(self, side: Side, host: str) -> list[str]:
        """The words for a bot of `side`."""
        colour = COLOURS[side]
        values = (
            colour,
            colour.capitalize(),
            colour.upper(),
            str(self.seconds),
            host,
            str(PORTS[side]),
        )
        return [fill(word, dict(zip(PLACES, values, strict=True))) for word in self.words]


class _Output(Listener):
    """What a bot prints is logged at the level `debug`."""

    def on_line(self, line: bytes, stamp: float) -> None:  # noqa: ARG002
        LOG.debug("bot: %s", shorten(line.decode("utf-8", "replace"), 200))


class Bot:
    """A bot that has connected and said its name. Make one with `start`, and end it with `end`."""

    guest: Guest

    def __init__(self, side: Side, process: Process, host: Host) -> None:
        self.side = side
        self._process = process
        self._host = host

    @classmethod
    async def start(cls, command: Command, side: Side, traffic: Traffic | None = None) -> Bot:
        """Run a bot of `side` and wait for its name; BotError, and no process, if it does not come."""
        try:
            host = await _place(command.address, side, traffic)
        except HostError as error:
            raise BotError(f"no place for a bot: {error}") from None
        try:
            words = command.filled(side, host.address)
            bot = cls(side, await Process.start(words, _Output()), host)
        except BaseException as error:
            await host.close()
            if isinstance(error, OSError):
                raise BotError(f"cannot start {words[0]}: {error.strerror or error}") from None
            raise
        try:
            bot.guest = await bot._arrival(command.start)
        except BaseException as error:
            bot._process.kill()
            await host.close()
            if isinstance(error, GuestError):
                raise BotError(f"{error}{bot._last_words()}") from None
            raise
        return bot

    async def _arrival(self, seconds: float) -> Guest:
        """The bot once it has connected and said its name."""
        began = time.monotonic()
        arrival = asyncio.ensure_future(self._host.arrival())
        end = asyncio.ensure_future(self._process.wait(seconds))
        await asyncio.wait({arrival, end}, return_when=asyncio.FIRST_COMPLETED)
        end.cancel()
        if not arrival.done():
            arrival.cancel()
            ending = self._process.exit
            how = f"ended ({ending.text})" if ending else f"has run for {seconds:g} s"
            where = f"{self._host.address}:{self._host.port}"
            raise BotError(f"the bot {how} and never connected to {where}{self._last_words()}")
        guest = arrival.result()
        try:
            await guest.introduce(max(0.1, began + seconds - time.monotonic()))
        except BaseException:
            await guest.close()
            raise
        return guest

    async def fate(self) -> str:
        """The state of its process, for an error report."""
        ending = await self._process.wait(DYING)
        return f" ({ending.text if ending else 'its process is still running'}){self._last_words()}"

    async def left(self, seconds: float) -> Exit | None:
        """How its process has ended, if it does so by itself within `seconds`."""
        return await self._process.wait(seconds)

    async def end(self) -> Exit:
        """Close its connection, and end its processes if they do not end upon that."""
        await self.guest.close()
        await self._host.close()
        return await self._process.wind_up(b"", GRACE, MERCY)

    def kill(self) -> None:
        """End its processes at once."""
        self._process.kill()

    def _last_words(self) -> str:
        words = last_line(self._process.error_tail())
        return f"; its last words: {shorten(words, 200)}" if words else ""


async def _place(address: str, side: Side, traffic: Traffic | None) -> Host:
    """A listening host: on `address`, else on a separate loopback address where the system has more than one."""
    if address or sys.platform != "linux":
        return await Host.open(side, address or "127.0.0.1", traffic)
    for _ in range(ADDRESSES - 1):
        numbers = (random.randrange(1, 255) for _ in range(3))
        with contextlib.suppress(HostError):
            return await Host.open(side, f"127.{'.'.join(map(str, numbers))}", traffic)
    return await Host.open(side, "127.0.0.1", traffic)
