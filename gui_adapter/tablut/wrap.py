"""A bot of the competition as an engine: `uti` on standard input and output, the server's part towards the bot."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hnefi.engine.games.base_variant import VariantError
from hnefi.engine.games.tafl.variant import find
from hnefi.engine.session import SessionError
from hnefi.engine.sides import Outcome, Reason, Side
from hnefi.protocol import format as say
from hnefi.protocol import messages
from hnefi.protocol.answers import Option
from hnefi.protocol.client import EngineError
from hnefi.protocol.hosts.exit_codes import DONE, FAULTS, OURS_FAILED
from hnefi.protocol.hosts.journal import Entry, GameLog, Journal
from hnefi.protocol.process import LineSplitter

from .bot import Bot, BotError, Command
from .frames import COLOURS, State, board_of, turn_of
from .host import GuestError, Traffic
from .rules import VARIANT, Facts, IllegalPosition, Line, Rules, header

LOG = logging.getLogger("hnefi.tablut")

EARLY: Final = 1_024
"""Lines that may wait; who sends more waits."""
UNKNOWN: Final = "auto"
OPTIONS: Final = (
    Option("Side", "combo", UNKNOWN, values=(UNKNOWN, "a", "d")),
    *(Option(name, "combo", VARIANT.name, values=(VARIANT.name,)) for name in ("Variant", "UCI_Variant")),
)
QUESTIONS: Final = frozenset({"query", "moves", "d", "board"})
"""What the book of rules answers about the position."""
COMMANDS: Final = QUESTIONS | {
    "uti", "isready", "setoption", "variant", "variants", "utinewgame", "position", "go", "stop", "quit", "ponderhit"
}  # fmt: skip


class Failed(Exception):
    """The bot plays no more: a sentence for the last line."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of play, what the rules say about its end, and its plies as they are written down."""

    line: Line
    facts: Facts
    entries: tuple[Entry, ...]

    @classmethod
    def reached(cls, line: Line, facts: Facts, before: Place | None) -> Place:
        """The place at the end of `line`. What a ply took is known if the place before it was looked at."""
        if before is not None and before.line.begins(line) and len(line.moves) == len(before.line.moves) + 1:
            last = Entry(line.moves[-1], before.facts.legal.get(line.moves[-1]))
            return cls(line, facts, (*before.entries, last))
        return cls(line, facts, tuple(map(Entry, line.moves)))


class Wrap:
    """One bot at a time, for whoever speaks `uti` to us."""

    def __init__(
        self,
        name: str,
        command: Command,
        rules: Rules,
        journal: Journal | None,
        write: Callable[[str], None],
        traffic: Traffic | None = None,
    ) -> None:
        self._name = name
        self._command = command
        self._rules = rules
        self._journal = journal
        self._write = write
        self._traffic = traffic
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(EARLY)
        self._pending: deque[str] = deque()
        self._side: Side | None = None
        self._bot: Bot | None = None
        self._shown: Line | None = None
        """What the bot has been shown; None before its game begins."""
        self._place: Place | None = None
        """The position that was set."""
        self._latest: Place | None = None
        """The newest place of the game: after the bot's own move where that was the last."""
        self._searching = False
        self._stopped = False
        self._held = asyncio.Event()
        """Set when an answer need not be held back any more (`go infinite`)."""
        self._log: GameLog | None = None

    async def take(self, line: str | None) -> None:
        """A line from whoever uses us; None at the end of input."""
        await self._lines.put(line)

    async def run(self) -> int:
        """Until `quit`, the end of input or a failure; the exit code."""
        status, last = DONE, ""
        work: asyncio.Task[None] | None = None
        reading = asyncio.ensure_future(self._lines.get())
        try:
            while True:
                if work is None and self._pending:
                    work = asyncio.ensure_future(self._carry_out(self._pending.popleft()))
                events: set[asyncio.Future[Any]] = {work} if work else set()
                if len(self._pending) < EARLY:
                    events.add(reading)
                await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
                if work is not None and work.done():
                    work.result()
                    work = None
                if reading.done():
                    line = reading.result()
                    if line is None or line == "quit":
                        break
                    reading = asyncio.ensure_future(self._lines.get())
                    self._sort(line)
        except (Failed, BotError, GuestError) as error:
            status, last = FAULTS, str(error)
        except EngineError as error:
            status, last = OURS_FAILED, f"the book of rules failed: {error}"
        except BrokenPipeError:
            pass  # nobody reads our answers any more
        finally:
            reading.cancel()
            if work is not None:
                work.cancel()
                await asyncio.wait({work})
            with contextlib.suppress(BrokenPipeError, GuestError):
                await self._end_game(last or "the engine was told to quit")
        if last:
            with contextlib.suppress(BrokenPipeError):
                self._write(f"info string error {say.shown(last, 500)}")
        return status

    def _sort(self, line: str) -> None:
        """What can be answered while the bot thinks is answered now, the rest in its turn."""
        words = messages.command_of(line.split(), COMMANDS)
        if not words:
            if line.split() and not line.startswith("#"):
                self._write(f"info string unknown command: {say.shown(line)}")
        elif self._searching and words[0] == "isready":
            self._write("readyok")
        elif not self._searching or self._stopped:
            self._pending.append(" ".join(words))
        elif words[0] in ("stop", "ponderhit"):
            self._held.set()
            self._stopped = words[0] == "stop"  # what follows waits for the answer
        else:
            self._write(say.error_line(line, "not while searching: the bot cannot be stopped"))

    async def _carry_out(self, line: str) -> None:
        words = line.split()
        try:
            await self._verbs[words[0]](self, words)
        except SessionError as error:
            self._write(say.error_line(error.read, error.expected))

    # Words

    async def _uti(self, _: Sequence[str]) -> None:
        for line in (f"id name {self._name}", "id author unknown", *(option.line() for option in OPTIONS)):
            self._write(line)
        self._write("utiok")

    async def _isready(self, _: Sequence[str]) -> None:
        await self._rules.warm_up()  # here, or it would load on the clock
        if self._side is not None:
            await self._prepare(self._side)
        self._write("readyok")

    async def _setoption(self, words: Sequence[str]) -> None:
        message = messages.parse_setoption(words)
        option = next((one for one in OPTIONS if one.name.casefold() == message.name.casefold()), None)
        if option is None:
            names = ", ".join(one.name for one in OPTIONS)
            raise SessionError(f"setoption {message.name}", f"expected one of {names}")
        if option.name != "Side":
            await self._variant(["variant", message.value or ""])
            return
        objection = option.objection(message.value)
        if objection:
            raise SessionError(f"setoption Side {message.value}", objection)
        letter = (message.value or "").casefold()
        self._side = None if letter == UNKNOWN else Side.of(letter)

    async def _variant(self, words: Sequence[str]) -> None:
        name = " ".join(words[1:])
        with contextlib.suppress(VariantError):
            if find(name).hash == VARIANT.hash:
                self._write(say.variant_line(VARIANT))
                return
        raise SessionError(" ".join(words), f"expected {VARIANT.name}, which is all that these bots play")

    async def _variants(self, _: Sequence[str]) -> None:
        self._write(say.variants_line(VARIANT))

    async def _newgame(self, _: Sequence[str]) -> None:
        if self._shown is not None:
            await self._end_game("another game was begun")
        self._place = self._latest = None

    async def _question(self, words: Sequence[str]) -> None:
        for line in await self._rules.ask((await self._placed()).line, " ".join(words)):
            self._write(line)

    async def _placed(self) -> Place:
        """The position that was set, the start if none was."""
        if self._place is None:
            self._place = Place.reached(Line(), await self._rules.facts(Line()), None)
        return self._place

    async def _position(self, words: Sequence[str]) -> None:
        message = messages.parse_position(words)
        if message.kind == "otn":
            raise SessionError("position otn", "expected startpos or fen <FEN>")
        line = Line(message.text or None, message.moves)
        try:
            self._place = Place.reached(line, await self._rules.facts(line), self._latest)
        except IllegalPosition as error:
            raise SessionError("position", str(error)) from None

    async def _go(self, words: Sequence[str]) -> None:
        go = messages.parse_go(words)
        for problem in go.problems:
            self._write(say.error_line(problem.read, problem.expected))
        place = await self._placed()
        limits = go.limits
        self._searching, self._stopped = True, False
        self._held.clear()
        if limits.bounded and not (limits.infinite or limits.ponder):
            self._held.set()
        waiting, self._pending = self._pending, deque()
        for line in waiting:
            self._sort(line)  # written before we searched, read while we do
        try:
            move = await self._ask(place) if place.facts.result is None else "(none)"
            await self._held.wait()
            for line in _ending(place.facts):
                self._write(line)
            self._write(f"bestmove {move}")
        finally:
            self._searching = False
        if move in place.facts.legal:
            await self._echo(place, move)

    async def _nothing(self, _: Sequence[str]) -> None:
        """`stop` where nothing is searched."""

    _verbs: Final[dict[str, Callable[[Wrap, Sequence[str]], Coroutine[Any, Any, None]]]] = {
        "uti": _uti,
        "isready": _isready,
        "setoption": _setoption,
        "variant": _variant,
        "variants": _variants,
        **dict.fromkeys(QUESTIONS, _question),
        "utinewgame": _newgame,
        "position": _position,
        "go": _go,
        "stop": _nothing,
        "ponderhit": _nothing,
    }

    # The bot

    async def _prepare(self, side: Side) -> Bot:
        """A bot of this side that has connected; one of the other side is ended."""
        if self._bot is not None and self._bot.side != side:
            await self._end_game("the bot plays the other side now")
        if self._bot is None:
            began = time.monotonic()
            self._bot = await Bot.start(self._command, side, self._traffic)
            name = self._bot.guest.name or "?"
            seconds = time.monotonic() - began
            self._write(f"info string bot {name} connected as {COLOURS[side]} after {seconds:.1f} s")
        return self._bot

    async def _ask(self, place: Place) -> str:
        """The bot's move, after it was shown what it has not seen of the game."""
        line = place.line
        if self._shown is not None and not self._follows(line):
            await self._end_game("another game was begun")
        bot = await self._prepare(place.facts.side)
        self._record(place, bot)
        self._latest = place
        try:
            if self._shown is None and line.moves:
                await self._show(bot, Line(line.start, line.moves[:-1]))
            await bot.guest.tell(_state(place.facts))
            self._shown = line
            action = await bot.guest.action()
        except GuestError as error:
            raise Failed(f"{error}{await bot.fate()}") from None
        return action.move

    def _follows(self, line: Line) -> bool:
        """Whether a line is the next that the bot is to be asked about: its own move, and the answer to it."""
        return (
            self._shown is not None
            and self._shown.begins(line)
            and len(line.moves) == len(self._shown.moves) + 1
        )

    async def _show(self, bot: Bot, line: Line) -> None:
        await bot.guest.tell(_state(await self._rules.facts(line)))

    async def _echo(self, place: Place, move: str) -> None:
        """The state after the bot's own move, as its server sends it at once."""
        line = place.line.play(move)
        facts = await self._rules.facts(line)
        self._shown = line
        self._latest = Place.reached(line, facts, place)
        if self._bot is not None:
            self._record(self._latest, self._bot)
            await self._bot.guest.tell(_state(facts))

    async def _end_game(self, why: str) -> None:
        """The bot's game is over: it is told how, if our rules know, and ended."""
        bot, self._bot = self._bot, None
        place, shown, self._shown = self._place, self._shown, None
        if self._log is not None:
            self._log.end(None, Reason.INTERRUPTED, why)
            self._log = None
        if bot is None:
            return
        try:
            if place is not None and place.facts.result is not None and place.line != shown:
                await bot.guest.tell(_state(place.facts))
            if bot.guest.out_of_turn:
                self._write(f"info string the bot talked out of turn {bot.guest.out_of_turn} times")
            await bot.end()
        except BaseException:
            bot.kill()
            raise

    # What is written down

    def _record(self, place: Place, bot: Bot) -> None:
        """The game stands there now."""
        if self._journal is None:
            return
        line = place.line
        if self._log is None:
            names = (bot.guest.name, "") if bot.side == Side.ATTACKERS else ("", bot.guest.name)
            self._log = self._journal.begin(header(names, line.start))
        self._log.follow(place.entries)
        if place.facts.result is not None:
            self._log.end(place.facts.result, place.facts.reason)
            self._log = None


def _ending(facts: Facts) -> list[str]:
    """What is said of a position in which the game is over."""
    if facts.result is None:
        return []
    winner = None if facts.result == "draw" else Side.of(facts.result)
    return say.finished_lines(Outcome(winner, Reason(facts.reason)), facts.side)


def _state(facts: Facts) -> State:
    return State(board_of(facts.fen), turn_of(facts.side, facts.result))


def read_lines(wrap: Wrap, loop: asyncio.AbstractEventLoop) -> None:
    """Standard input, in a thread of its own: a pipe, a file or a terminal can be waited for in one way only."""

    def hand_over(line: str | None) -> bool:
        try:
            asyncio.run_coroutine_threadsafe(wrap.take(line), loop).result()
        except Exception:  # noqa: BLE001 - the loop has ended
            return False
        return True

    def read() -> None:
        splitter = LineSplitter()
        with contextlib.suppress(OSError):
            while chunk := os.read(0, 65_536):
                for line in splitter.feed(chunk):
                    if not hand_over(line.decode("utf-8", "replace").strip()):
                        return
            if rest := splitter.rest():
                hand_over(rest.decode("utf-8", "replace").strip())
        hand_over(None)

    threading.Thread(target=read, daemon=True).start()
