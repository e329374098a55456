"""Our engine as a player on a light server, which only connects two players for one game.

It sends no greeting and has no clock; the first of two players defends. It asks `generate_move ROLE`, expects
`play ROLE FROM TO` without the `=` of the text protocol, and passes that on word for word. It ends by closing the
connection, both after a finished game and when it refuses to continue.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable
from typing import Final

from hnefi.engine.sides import Side
from hnefi.engine.wording import shorten
from hnefi.protocol.client import EngineError
from hnefi.protocol.hosts.connecting import Pauses, keep_alive, reason_of
from hnefi.protocol.hosts.exit_codes import DONE, FAULTS, OURS_FAILED
from hnefi.protocol.hosts.hnefatafl_org_notation import NotationError
from hnefi.protocol.hosts.trace import Trace

from . import lines as say
from .game import Game
from .lines import LineError

LOG = logging.getLogger("hnefi.htp")

FIRST_PAUSE, LAST_PAUSE = 0.5, 30.0
"""Seconds between attempts to connect."""
PATIENCE: Final = 5.0
"""Seconds within which the server must have read our move."""
NONSENSE: Final = 100_000
"""Consecutive meaningless lines after which we give up on a server."""
UNKNOWN: Final = 100
"""Maximum number of unknown words to report, once each."""


class ServerError(Exception):
    """The server failed; a sentence."""


async def connect(host: str, port: int, wait: float) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect, with retries for `wait` seconds until there is a server; ServerError."""
    deadline = time.monotonic() + wait
    pauses = Pauses(FIRST_PAUSE, LAST_PAUSE)
    waiting = False
    while True:
        left = deadline - time.monotonic()
        try:
            async with asyncio.timeout(max(FIRST_PAUSE, left)):
                reader, writer = await asyncio.open_connection(host, port, limit=say.LINE_LIMIT)
            break
        except (OSError, TimeoutError) as error:
            if isinstance(error, socket.gaierror) or left <= 0:
                raise ServerError(f"{host}:{port}: {reason_of(error)}: expected a light server") from None
            if not waiting:
                LOG.info("no server at %s:%d yet: trying again for %g s", host, port, wait)
            waiting = True
            await asyncio.sleep(min(pauses.after(0.0), left))
    keep_alive(writer.get_extra_info("socket"))
    return reader, writer


class Client:
    """One game on a server."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        game: Game,
        tell: Callable[[str], None],
        trace: Trace | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._game = game
        self._tell = tell
        self._trace = trace
        self._side: Side | None = None
        self._asked: Side | None = None
        """Our side, while the server waits for our move."""
        self._unknown: set[str] = set()
        self._nonsense = 0
        self._next: asyncio.Task[bytes | None] | None = None

    async def play(self) -> int:
        """Play the game to its end; returns the exit code."""
        try:
            while (line := await self._line()) is not None:
                await self._take(line)
            return await self._finish()
        except ServerError as error:
            LOG.error("%s", error)
            self._game.leave(str(error))
            return FAULTS
        except EngineError as error:
            LOG.error("our engine failed: %s", error)
            with contextlib.suppress(ServerError, EngineError, LineError):
                if self._asked is not None:
                    await self._resign(self._asked)
            self._game.leave(f"our engine failed: {error}")
            return OURS_FAILED
        finally:
            if self._next is not None:
                self._next.cancel()
            self._game.leave("interrupted")
            self._writer.close()

    async def _finish(self) -> int:
        """Handle the end of the connection, which comes without a reason."""
        outcome = await self._game.outcome()
        if outcome is not None:
            winner = "a draw" if outcome.winner is None else f"{say.ROLES[outcome.winner]} wins"
            self._tell(f"the game is over: {winner} ({outcome.reason.words})")
            return DONE
        if self._side is None:
            raise ServerError("the server closed the connection before the game began")
        raise ServerError(
            "the server closed the connection in the middle of the game: the opponent has left, or the server refused "
            "a move"
        )

    # Input

    async def _line(self) -> bytes | None:
        """The next line; None at the end of the connection. ServerError."""
        coming = self._coming()
        line = await coming
        self._next = None
        return line

    def _coming(self) -> asyncio.Task[bytes | None]:
        """A task for the next line, shared by all who wait for it."""
        if self._next is None:
            self._next = asyncio.create_task(self._read())
        return self._next

    async def _read(self) -> bytes | None:
        try:
            line = await self._reader.readline()
        except ValueError:
            raise ServerError(f"a line of more than {say.LINE_LIMIT} bytes: expected a move") from None
        except OSError:
            return None
        if self._trace is not None and line:
            self._trace(time.monotonic(), "<", b"server " + line.rstrip())
        return line if line.endswith(b"\n") else None

    async def _take(self, line: bytes) -> None:
        try:
            words = say.words_of(line)
            if words[:1] == ["generate_move"] and len(words) == 2:
                self._nonsense = 0
                await self._answer(say.read_role(words[1]))
            elif words[:1] == ["play"]:
                self._nonsense = 0
                await self._follow(say.read_play(words, self._game.size))
            elif self._nonsense == NONSENSE:
                raise ServerError(
                    f"the server sent {NONSENSE} lines in a row that we do not understand: expected generate_move or "
                    "play"
                )
            else:
                self._nonsense += 1
                self._skip(words)
        except NotationError as error:
            raise ServerError(f"the server sent {error}; our game and the server's differ") from None

    def _skip(self, words: list[str]) -> None:
        """Skip a meaningless line."""
        if words and words[0] not in self._unknown and len(self._unknown) < UNKNOWN:
            self._unknown.add(words[0])
            LOG.warning("%s: expected generate_move or play: skipped", shorten(" ".join(words)))

    async def _follow(self, played: say.Played) -> None:
        """Follow a move of the opponent."""
        self._join(played.side.other)
        if played.side is self._side:
            raise LineError(f"a move of {say.ROLES[played.side]}: expected the opponent's, we play this side")
        if played.move is None:
            await self._game.resign(played.side)
        else:
            await self._game.play(played.side, played.move)

    async def _answer(self, side: Side) -> None:
        self._join(side)
        if side is not self._side:
            raise LineError(f"generate_move {say.ROLES[side]}: expected the other role, which is ours")
        self._asked = side
        await self._game.must_go_on(side)
        thinking = asyncio.create_task(self._game.think())
        try:
            await asyncio.wait({thinking, self._coming()}, return_when=asyncio.FIRST_COMPLETED)
            if not thinking.done() and self._coming().result() is None:
                return  # the next read of the connection finds it again
            move = await thinking
        finally:
            thinking.cancel()
            await asyncio.wait({thinking})
        if move is None:
            await self._resign(side)
        else:
            self._asked = None
            await self._send(say.write_play(side, move, self._game.size))
            await self._game.play(side, move)

    def _join(self, side: Side) -> None:
        """The first line says which side is ours."""
        if self._side is None:
            self._side = side
            self._tell(f"we are the {side.name.lower()}")

    # Output

    async def _resign(self, side: Side) -> None:
        """Resign when it is our turn; the server expects another word in place of a square."""
        self._asked = None
        await self._send(f"{say.write_play(side, None, self._game.size)} _")
        await self._game.resign(side)

    async def _send(self, line: str) -> None:
        if self._trace is not None:
            self._trace(time.monotonic(), ">", b"server " + line.encode())
        self._writer.write(line.encode() + b"\n")
        try:
            async with asyncio.timeout(PATIENCE):
                await self._writer.drain()
        except TimeoutError:
            raise ServerError(f"the server has read nothing for {PATIENCE:g} s") from None
        except OSError:
            return  # the end of the connection is about to be read and is more informative
