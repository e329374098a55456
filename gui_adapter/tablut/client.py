"""Our engine as a player on a server of the competition."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hnefi.engine.sides import Reason, Side
from hnefi.protocol.client import EngineError
from hnefi.protocol.hosts.connecting import keep_alive, reason_of
from hnefi.protocol.hosts.exit_codes import DONE, FAULTS, OURS_FAILED
from hnefi.protocol.hosts.journal import GameLog, Journal
from hnefi.protocol.hosts.rulebook import GRACE, Facts, IllegalPosition, Line, RulesEngine, Thinker, until
from hnefi.protocol.hosts.trace import Trace

from .frames import (
    COLOURS,
    EMPTY,
    FRAME_LIMIT,
    KING,
    PORTS,
    VARIANT,
    Broken,
    FrameError,
    State,
    action_message,
    after,
    board_of,
    complaint,
    fen_of,
    frame,
    header,
    name_message,
    read_frame,
    read_state,
)

LOG = logging.getLogger("hnefi.tablut")

RETRY: Final = 0.5
"""Seconds between two attempts to connect; the clock of the first move starts when both players are connected."""
IDLE: Final = 300.0
"""Seconds that a server may be silent beyond the time of a move."""
REFUSALS: Final = 10
"""Moves that a server may refuse in one position; a server that sends everything twice looks the same."""
QUEUE: Final = 64
"""States that may wait to be handled; reading pauses after that."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The player and the server. Times are in seconds, except for `movetime` in milliseconds."""

    side: Side
    host: str
    seconds: float
    reserve: float
    name: str
    wait: float
    movetime: int | None = None

    @property
    def thinking(self) -> float:
        """The time for a move of ours; the reserve is at most half of the server's time."""
        return max(self.seconds - self.reserve, self.seconds / 2)


News = tuple[float, State | FrameError | None]
"""The time of arrival and the message; None is the end of the stream."""


class ServerError(Exception):
    """The other side failed; a sentence."""


class NoServer(ServerError):
    """The server does not listen, or does not answer."""


async def connect(settings: Settings) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection, tried again until there is a server; NoServer. Our name is sent at once."""
    port = PORTS[settings.side]
    deadline = time.monotonic() + settings.wait
    waiting = False
    while True:
        try:
            async with asyncio.timeout(max(RETRY, deadline - time.monotonic())):
                reader, writer = await asyncio.open_connection(settings.host, port, limit=FRAME_LIMIT)
            break
        except (OSError, TimeoutError) as error:
            if isinstance(error, socket.gaierror) or time.monotonic() + RETRY > deadline:
                raise NoServer(
                    f"{settings.host}:{port}: {reason_of(error)}: expected a Tablut server"
                ) from None
            if not waiting:
                LOG.info("no server at %s:%d yet: trying again for %g s", settings.host, port, settings.wait)
            waiting = True
            await asyncio.sleep(RETRY)
    keep_alive(writer.get_extra_info("socket"))
    writer.write(frame(name_message(settings.name)))
    return reader, writer


class Client:
    """One game on a server."""

    def __init__(
        self,
        settings: Settings,
        rules: RulesEngine,
        thinker: Thinker,
        journal: Journal | None,
        say: Callable[[str], None],
        trace: Trace | None = None,
    ) -> None:
        self._settings = settings
        self._side = settings.side
        self._rules = rules
        self._thinker = thinker
        self._journal = journal
        self._say = say
        self._trace = trace
        self._log: GameLog | None = None
        self._line: Line | None = None
        self._facts = Facts("- d")
        self._refused: set[str] = set()
        self._sent = ""
        self._asked = time.monotonic()
        """The time at which the side to move was told so."""
        self._news: asyncio.Queue[News] = asyncio.Queue(QUEUE)
        self._arrived = time.monotonic()
        """The arrival of the last state, when the server's clock started."""

    async def play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        """Play the game from the first state to its end; returns the exit code."""
        reading = asyncio.create_task(self._read(reader))
        try:
            await asyncio.gather(self._rules.warm_up(), self._thinker.warm_up())
            return await self._play(writer)
        except ServerError as error:
            self._close(str(error))
            LOG.error("%s", error)
            return FAULTS
        except EngineError as error:
            self._close(f"our engine failed: {error}")
            LOG.error("our engine failed: %s", error)
            return OURS_FAILED
        except asyncio.CancelledError:
            self._close("interrupted")
            raise
        finally:
            reading.cancel()
            writer.close()

    async def _play(self, writer: asyncio.StreamWriter) -> int:
        state = await self._next()
        while state is not None:
            await self._take(state)
            if state.result is not None:
                return self._finish(state.result)
            state = None
            if self._facts.side == self._side and not self._sent:
                choices = [move for move in self._facts.legal if move not in self._refused]
                if not choices:
                    return await self._stuck()
                move, state = await self._choose(choices)
                if move:
                    await self._send(writer, move)
            state = state or await self._next()
        if self._line is None:
            raise ServerError("the server ended before the game began")
        if self._facts.side == self._side:
            after_what = f"after our move {self._sent}" if self._sent else "while we were thinking"
            raise ServerError(f"the server ended {after_what}: our time was up, or it refused the move")
        self._close("the opponent vanished: the server ended while it waited for them")
        self._say("the opponent vanished: their time was up, or their program ended; the server does not say")
        return DONE

    # What comes

    async def _read(self, reader: asyncio.StreamReader) -> None:
        begun = False
        try:
            while (message := await read_frame(reader)) is not None:
                if self._trace is not None:
                    self._trace(time.monotonic(), "<", message.replace(b"\n", b" "))
                await self._news.put((time.monotonic(), read_state(message)))
                begun = True
            await self._news.put((time.monotonic(), None))
        except FrameError as error:
            cut = begun and isinstance(error, Broken)
            await self._news.put((time.monotonic(), None if cut else error))

    async def _next(self) -> State | None:
        """The next state; None at the end of the stream. ServerError."""
        patience = IDLE + self._settings.seconds
        try:
            async with asyncio.timeout(patience):
                return self._taken(await self._news.get())
        except TimeoutError:
            raise ServerError(f"the server has said nothing for {patience:g} s") from None

    def _taken(self, news: News) -> State | None:
        self._arrived, state = news
        if isinstance(state, FrameError):
            raise ServerError(complaint("the server", state))
        return state

    async def _take(self, state: State) -> None:
        """Follow the game to a state: by a legal move, or from its board where no move leads there."""
        facts = self._facts
        if self._line is not None and state.board == board_of(facts.fen):
            if state.result is None and state.side == facts.side:
                self._repeated()
                return
            if state.result is not None:
                return
        move = None if self._line is None else _explained(facts, state)
        now = self._arrived
        if self._line is None or move is None:
            await self._begin(state, "no legal move leads from the last board to the new one")
        else:
            line = self._line.play(move)
            after_it = await self._rules.facts(line)
            spent = now - self._asked
            self._tell_ply(len(line.moves), facts, move, spent)
            if self._log is not None:
                self._log.ply(move, facts.legal[move], time=round(spent * 1000))
            self._line, self._facts = line, after_it
            if after_it.result is not None and state.result is None:
                await self._disagree(state)
        self._sent = ""
        self._refused.clear()
        self._asked = now

    def _repeated(self) -> None:
        """Handle a repeated state: either our move was refused, or the server sends everything twice."""
        if self._sent:
            fen = fen_of(board_of(self._facts.fen), self._facts.side)
            LOG.warning("the server refused %s in %s: playing the next best", self._sent, fen)
            self._refused.add(self._sent)
            self._sent = ""
            if len(self._refused) > REFUSALS:
                raise ServerError(f"the server refused {REFUSALS} legal moves, or repeats itself: {fen}")
            self._asked = self._arrived

    async def _disagree(self, state: State) -> None:
        """By our rules the game is over, but the server continues: play on from the board, if there is a legal move."""
        if self._facts.reason != Reason.NO_LEGAL_MOVE:
            await self._begin(state, f"our rules end the game ({self._facts.reason}), the server does not")

    async def _begin(self, state: State, why: str) -> None:
        """The game begins, or continues from a board whose history is not known."""
        side = self._facts.side if state.side is None else state.side
        fresh = state.board == board_of(VARIANT.startpos) and side == Side.DEFENDERS
        line = Line() if fresh else Line(fen_of(state.board, side))
        if self._line is not None:
            LOG.warning("%s: the game goes on from %s, without its history", why, line.start)
            self._close(why)
        elif not fresh:
            LOG.warning("the game begins at %s", line.start)
        try:
            self._facts = await self._rules.facts(line)
        except IllegalPosition as error:
            raise ServerError(f"the server sent a board that the rules refuse: {error}") from None
        if self._facts.result not in (None, state.result) and self._facts.reason != Reason.NO_LEGAL_MOVE:
            raise ServerError(f"the server continues although the game is over: {self._facts.reason}")
        self._line = line
        if self._journal is not None:
            ours = self._settings.name
            players = (ours, "") if self._side == Side.ATTACKERS else ("", ours)
            self._log = self._journal.begin(header(players, line.start))

    # What we say

    async def _choose(self, choices: list[str]) -> tuple[str, State | None]:
        """Our move, or the state that came while we thought about it."""
        if len(choices) == 1:
            return choices[0], None
        assert self._line is not None
        thinking = asyncio.ensure_future(
            self._thinker.best(
                self._line,
                self._facts,
                until(self._asked + self._settings.thinking, self._settings.movetime),
                choices if self._refused else (),
                min(GRACE, self._settings.reserve / 2),
            )
        )
        try:
            while True:
                hearing = asyncio.ensure_future(self._news.get())
                try:
                    await asyncio.wait({thinking, hearing}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    heard = hearing.done()
                    hearing.cancel()
                if not heard:
                    return str(thinking.result().move), None
                state = self._taken(hearing.result())
                if state is None:
                    raise ServerError("the server ended while we were thinking")
                if state.board != board_of(self._facts.fen) or state.side != self._facts.side:
                    return "", state
        finally:
            thinking.cancel()
            with contextlib.suppress(asyncio.CancelledError, EngineError):
                await thinking

    async def _send(self, writer: asyncio.StreamWriter, move: str) -> None:
        message = action_message(move, self._side)
        if self._trace is not None:
            self._trace(time.monotonic(), ">", message)
        self._sent = move
        with contextlib.suppress(OSError):  # the end of the stream is about to be read
            writer.write(frame(message))
            await writer.drain()

    # Ends

    async def _stuck(self) -> int:
        """We have no legal move, and the convention no message for that: wait until the server ends the game."""
        self._say("no legal move: the server ends the game when our time is up")
        with contextlib.suppress(ServerError):
            while (state := await self._next()) is not None and state.result is None:
                pass
        if self._log is not None:
            self._log.end(self._side.other.letter, Reason.NO_LEGAL_MOVE)
        self._say(f"game over: {COLOURS[self._side.other]} wins (no legal move)")
        return DONE

    def _finish(self, result: str) -> int:
        """The server says that the game is over."""
        reason = self._facts.reason
        if self._facts.result != result:
            held = self._facts.result
            ours = "the game goes on" if held is None else f"{_result_words(held)} ({Reason(reason).words})"
            LOG.warning("the server says %s, by our rules: %s", _result_words(result), ours)
            reason = Reason.ADJUDICATED
        if self._log is not None:
            self._log.end(result, reason)
        self._say(f"game over: {_result_words(result)} ({Reason(reason).words})")
        return DONE

    def _close(self, why: str) -> None:
        if self._log is not None:
            self._log.end(None, Reason.INTERRUPTED, why)
            self._log = None

    def _tell_ply(self, number: int, facts: Facts, move: str, spent: float) -> None:
        taken = "".join(f"x{square}" for square in facts.legal[move])
        self._say(f"{number:3}. {COLOURS[facts.side]} {move}{taken} ({spent:.1f} s)")


def _explained(facts: Facts, state: State) -> str | None:
    """The legal move that leads to a state, if one does."""
    if state.result is None and state.side != facts.side.other:
        return None
    before = board_of(facts.fen)
    for move, captures in facts.legal.items():
        board = after(before, move, captures)
        # A captured king may or may not still be on the board.
        taken = state.result == "a" and board.replace(KING, EMPTY) == state.board.replace(KING, EMPTY)
        if state.board == board or taken:
            return move
    return None


def _result_words(result: str) -> str:
    return "draw" if result == "draw" else f"{COLOURS[Side.of(result)]} wins"
