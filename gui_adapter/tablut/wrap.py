"""A bot of the competition behind `protocol.hosts.guest`: the server's part towards it, a process for each game."""

from __future__ import annotations

import asyncio
import contextlib
import time

from hnefi.engine.games.base_variant import VariantError
from hnefi.engine.games.tafl.variant import Variant, find
from hnefi.engine.session import SessionError
from hnefi.engine.sides import Side
from hnefi.protocol.answers import Option
from hnefi.protocol.hosts.guest import GameState, Guest, GuestFailed
from hnefi.protocol.hosts.rulebook import Facts, Line
from hnefi.protocol.messages import Go

from .bot import Bot, BotError, Command
from .frames import COLOURS, VARIANT, State, board_of, turn_of
from .host import GuestError, Traffic


class BotEngine(Guest):
    """One bot at a time. It cannot be stopped, and is told no limits but the seconds of its command line."""

    options = (
        Option("Side", "combo", "auto", values=("auto", "a", "d")),
        Option("Variant", "combo", VARIANT.name, values=(VARIANT.name,)),
    )

    def __init__(self, command: Command, traffic: Traffic | None = None) -> None:
        self.name = command.name
        self._command = command
        self._traffic = traffic
        self._side: Side | None = None
        self._bot: Bot | None = None
        self._starting = asyncio.Lock()
        self._shown: Line | None = None
        """The line that the bot has seen; None before its game begins."""

    @property
    def variant(self) -> Variant:
        """The only variant of these bots."""
        return VARIANT

    async def set(self, name: str, value: str | None) -> str | None:
        """Set an option; the line that chooses the game, which is always the same."""
        text = value or ""
        if name == "Side":
            letter = text.casefold()
            self._side = None if letter == "auto" else Side.of(letter)
            return None
        with contextlib.suppress(VariantError):
            if find(text).hash == VARIANT.hash:
                return f"variant {VARIANT.name}"
        raise SessionError(f"variant {text}", f"expected {VARIANT.name}, which is all that these bots play")

    async def prepare(self, side: Side | None = None) -> None:
        """Have a bot of a side that has connected, as soon as the side is known."""
        side = self._side if side is None else side
        async with self._starting:
            if side is None or (self._bot is not None and self._bot.side is side):
                return
            # A bot for the other side is no longer needed.
            await self._end()
            began = time.monotonic()
            try:
                self._bot = await Bot.start(self._command, side, self._traffic)
            except BotError as error:
                raise GuestFailed(str(error)) from None
            self.name = self._bot.guest.name or self.name
            seconds = time.monotonic() - began
            self.tell(f"info string bot {self.name} connected as {COLOURS[side]} after {seconds:.1f} s")

    async def think(self, state: GameState, go: Go, stopped: asyncio.Event) -> str | None:  # noqa: ARG002
        """The bot's move, after it was shown what it has not seen of the game."""
        line = state.line
        if self._shown is not None and not self._follows(line):
            await self._end()
        await self.prepare(state.facts.side)
        bot = self._bot
        assert bot is not None
        try:
            if self._shown is None and line.moves:
                # As its server would have done. Of earlier states, a bot might take those with its turn for questions.
                await bot.guest.tell(_state(await self.rules.facts(Line(line.start, line.moves[:-1]))))
            await bot.guest.tell(_state(state.facts))
            self._shown = line
            return (await bot.guest.action()).move
        except GuestError as error:
            raise GuestFailed(f"{error}{await bot.fate()}") from None

    def _follows(self, line: Line) -> bool:
        """Whether a line is the next that the bot is to be asked about: its own move, and the answer to it."""
        shown = self._shown
        return shown is not None and shown.begins(line) and len(line.moves) == len(shown.moves) + 1

    async def played(self, state: GameState) -> None:
        """The state after its own move, as its server sends it at once."""
        self._shown = state.line
        if self._bot is not None:
            try:
                await self._bot.guest.tell(_state(state.facts))
            except GuestError as error:
                raise GuestFailed(f"{error}{await self._bot.fate()}") from None

    async def end_game(self, state: GameState | None) -> None:
        """End its game: the bot gets the result, if our rules know it, and is ended."""
        bot, shown = self._bot, self._shown
        if bot is None:
            return
        if state is not None and state.facts.result is not None and state.line != shown:
            with contextlib.suppress(GuestError):
                await bot.guest.tell(_state(state.facts))
        if bot.guest.out_of_turn:
            self.tell(f"info string the bot sent {bot.guest.out_of_turn} messages out of turn")
        await self._end()

    async def close(self) -> None:
        """End it."""
        await self._end()

    async def _end(self) -> None:
        bot, self._bot = self._bot, None
        self._shown = None
        if bot is not None:
            try:
                await bot.end()
            except BaseException:
                bot.kill()
                raise


def _state(facts: Facts) -> State:
    return State(board_of(facts.fen), turn_of(facts.side, facts.result))
