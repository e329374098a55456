"""The server's part: a port on which one player connects, and the player who has connected."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hnefi.engine.sides import Side
from hnefi.protocol.hosts.connecting import reason_of

from .frames import (
    COLOURS,
    FRAME_LIMIT,
    PORTS,
    FrameError,
    State,
    complaint,
    frame,
    read_action,
    read_frame,
    read_name,
    state_message,
)

LOG = logging.getLogger("hnefi.tablut")

WRITE_TIMEOUT: Final = 5.0
"""Seconds within which a player must have read what was sent; a socket holds some hundred states."""
PIECE: Final = 0.02
"""Seconds between two pieces of a frame."""
WAITING: Final = 16
"""Players who may wait at a port."""
Traffic = Callable[[float, str, bytes], None]


class HostError(Exception):
    """A port that cannot be listened on; a sentence."""


class GuestError(Exception):
    """A player who cannot continue: gone, silent or talking nonsense; says which."""


class Nonsense(GuestError):
    """A valid frame whose message is not an action; the next one may be better."""


@dataclass(frozen=True, slots=True)
class Action:
    """A player's answer, and the seconds that it took."""

    move: str
    seconds: float


class Guest:
    """A player who has connected. What is said out of turn is dropped and counted."""

    def __init__(
        self,
        side: Side,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        traffic: Traffic | None = None,
    ) -> None:
        self.side = side
        self.name = ""
        self.out_of_turn = 0
        self._reader = reader
        self._writer = writer
        self._traffic = traffic
        self._wanted: asyncio.Future[bytes] | None = None
        self._gone: GuestError | None = None
        self._first: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read())

    @property
    def word(self) -> str:
        """The name of its colour: `white` or `black`."""
        return COLOURS[self.side]

    @property
    def gone(self) -> bool:
        """Whether the connection has ended."""
        return self._gone is not None

    async def introduce(self, timeout: float) -> str:
        """The name, which is the first message; GuestError."""
        try:
            async with asyncio.timeout(timeout):
                self.name = read_name(await asyncio.shield(self._first))
        except TimeoutError:
            raise GuestError(f"{self.word} connected and did not say its name in time") from None
        return self.name

    async def tell(self, state: State, cuts: Sequence[int] = ()) -> None:
        """Send a state, in pieces if there are `cuts`; nothing is sent to a player who is gone. GuestError if it does
        not read."""
        message = state_message(state)
        self._note(">", message)
        if self._gone is not None:
            return
        try:
            data = frame(message)
            for begin, end in itertools.pairwise((0, *cuts, len(data))):
                await asyncio.sleep(PIECE if begin else 0)
                self._writer.write(data[begin:end])
                async with asyncio.timeout(WRITE_TIMEOUT):
                    await self._writer.drain()
        except TimeoutError:
            raise self._lose(f"{self.word} does not read our messages") from None
        except OSError:
            return  # its end is about to be read, and says more

    async def action(self, timeout: float | None = None) -> Action:
        """What it answers to the state that it was sent last.

        GuestError, of the kind Nonsense if another message may be better; TimeoutError.
        """
        if self._gone is not None:
            raise self._gone
        asked = time.monotonic()
        self._wanted = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout):
                message = await self._wanted
        finally:
            self._wanted = None
        seconds = time.monotonic() - asked
        try:
            return Action(read_action(message), seconds)
        except FrameError as error:
            raise Nonsense(f"{self.word} sent {error}") from None

    async def close(self) -> None:
        """End the connection."""
        self._reading.cancel()
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError, asyncio.CancelledError):
            await self._reading
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(WRITE_TIMEOUT / 5):
                await self._writer.wait_closed()

    async def _read(self) -> None:
        try:
            while (message := await read_frame(self._reader)) is not None:
                self._take(message)
        except FrameError as error:
            self._lose(complaint(self.word, error))
        else:
            self._lose(f"{self.word} closed the connection")

    def _take(self, message: bytes) -> None:
        self._note("<", message)
        if not self._first.done():
            self._first.set_result(message)
        elif self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(message)
        else:
            self.out_of_turn += 1
            if self.out_of_turn == 1:
                LOG.warning("%s sent a message out of turn: ignored", self.word)

    def _lose(self, why: str) -> GuestError:
        self._gone = self._gone or GuestError(why)
        for waiting in (self._first, self._wanted):
            if waiting is not None and not waiting.done():
                waiting.set_exception(self._gone)
        if self._first.done() and not self._first.cancelled():
            self._first.exception()  # nobody may be waiting for the name
        return self._gone

    def _note(self, arrow: str, message: bytes) -> None:
        if self._traffic is not None:
            said = message[:FRAME_LIMIT].replace(b"\n", b" ")
            self._traffic(time.monotonic(), arrow, self.word.encode() + b" " + said)


class Host:
    """A port for players; those who connect early wait for the next game."""

    def __init__(self, side: Side, address: str, traffic: Traffic | None) -> None:
        self.side = side
        self.address = address
        self.port = PORTS[side]
        self._traffic = traffic
        self._server: asyncio.Server
        self._waiting: asyncio.Queue[Guest] = asyncio.Queue(WAITING)

    @classmethod
    async def open(cls, side: Side, address: str, traffic: Traffic | None = None) -> Host:
        """Listen on the port of `side`; HostError."""
        host = cls(side, address, traffic)
        try:
            host._server = await asyncio.start_server(host._accept, address, host.port, limit=FRAME_LIMIT)
        except OSError as error:
            raise HostError(f"{address}:{host.port}: {reason_of(error)}") from None
        return host

    async def arrival(self) -> Guest:
        """The next player who connects, or has connected; it is the caller who closes the connection."""
        return await self._waiting.get()

    async def close(self) -> None:
        """Stop listening, and disconnect waiting players."""
        self._server.close()
        while not self._waiting.empty():
            await self._waiting.get_nowait().close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._waiting.full():
            LOG.warning("%s: a player was rejected: too many are waiting already", COLOURS[self.side])
            writer.close()
            return
        self._waiting.put_nowait(Guest(self.side, reader, writer, self._traffic))
