"""A foreign engine that looks like one of ours: `uti` on standard input and output, whatever it speaks itself.

`Front` is the side towards whoever starts us (the arena, `play`, `analyze`); a `Guest` is the foreign engine behind it.
The rules are our own engine's, which is asked whether a line can be played and whether a game is over. Illegal moves of
the guest are passed on: the referee judges.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hnefi.engine.games import find
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.records import rule_sets
from hnefi.engine.records.record import GameRecord
from hnefi.engine.session import SessionError
from hnefi.engine.sides import Reason, Side

from .. import format as say
from .. import messages
from ..answers import Option
from ..client import EngineError
from ..messages import Go
from .exit_codes import DONE, FAULTS, OURS_FAILED
from .journal import Entry, GameLog, Journal
from .rulebook import EngineSlot, Facts, IllegalPosition, Line, RulesEngine
from .stdio import Deaf, Stdio

LOG = logging.getLogger("hnefi.guest")

BACKLOG: Final = 4_096
"""Lines that may wait for their turn."""
COMMANDS: Final = frozenset(
    {
        "uti", "isready", "setoption", "variant", "variants", "utinewgame", "ucinewgame", "uginewgame", "position",
        "go", "stop", "quit", "ponderhit", "debug",
    }
)  # fmt: skip
QUESTIONS: Final = ("query", "moves", "d", "board")
"""Words that our own engine answers, which knows the rules."""


class GuestFailed(Exception):
    """The foreign engine has failed for good. The message is a sentence for the last line."""


@dataclass(frozen=True, slots=True)
class GameState:
    """A line of play, what the rules say about its last position, and its plies as recorded."""

    line: Line
    facts: Facts
    entries: tuple[Entry, ...] = ()

    @classmethod
    def reached(cls, line: Line, facts: Facts, before: GameState | None) -> GameState:
        """The state at the end of `line`. The captures of the last ply are known if `before` is the state before it."""
        if before is not None and before.line.begins(line) and len(line.moves) == len(before.line.moves) + 1:
            last = Entry(line.moves[-1], before.facts.legal.get(line.moves[-1]))
            return cls(line, facts, (*before.entries, last))
        return cls(line, facts, tuple(map(Entry, line.moves)))


class Guest(ABC):
    """A foreign engine, as `Front` uses it. Every method may raise GuestFailed."""

    name: str
    options: tuple[Option, ...]
    tell: Callable[[str], object]
    """Sends a line to our user; set by `Front`."""
    rules: RulesEngine
    """Our own engine, which `Front` also asks."""
    talkative = False
    """Whether to report everything that it says (`debug on`)."""

    @property
    @abstractmethod
    def variant(self) -> AnyVariant:
        """The variant that it is playing."""

    @abstractmethod
    async def set(self, name: str, value: str | None) -> str | None:
        """Set one of `options` to a valid value; returns the line that selects the game for our rules, if it changed.

        SessionError if it cannot be set.
        """

    @abstractmethod
    async def prepare(self, side: Side | None = None) -> None:
        """Get ready to move at once, for `side` if it is known."""

    @abstractmethod
    async def think(self, state: GameState, go: Go, stopped: asyncio.Event) -> str | None:
        """Its move; the game is not over. When `stopped` is set, it should move at once if it can."""

    async def played(self, state: GameState) -> None:  # noqa: B027
        """Called after its own legal move led to `state`."""

    @abstractmethod
    async def end_game(self, state: GameState | None) -> None:
        """Called when the game is over, or was abandoned, in this state."""

    @abstractmethod
    async def close(self) -> None:
        """End the foreign engine, whatever it is doing. Never fails."""


class Front:
    """The conversation with the program that starts us."""

    def __init__(
        self, guest: Guest, stdio: Stdio, slot: EngineSlot, journal: Journal | None, author: str = "unknown"
    ) -> None:
        self._guest = guest
        self._stdio = stdio
        self._slot = slot
        self._rules = RulesEngine(slot)
        self._journal = journal
        self._author = author
        self._pending: deque[list[str]] = deque()
        self._state: GameState | None = None
        """What was asked about last."""
        self._reached: GameState | None = None
        """Where the game is: a move further when the guest has moved."""
        self._playing = False
        """Whether the guest has been asked for a move of this game."""
        self._searching = False
        self._held = asyncio.Event()
        """Set when an answer need not be held back any more (`go infinite`)."""
        self._stopped = asyncio.Event()
        self._log: GameLog | None = None
        self._warming: asyncio.Task[None] | None = None
        guest.tell = stdio.mention
        guest.rules = self._rules

    async def run(self) -> int:
        """Until `quit`, the end of input or a failure; the exit code."""
        work: asyncio.Task[None] | None = None
        reading = asyncio.ensure_future(self._stdio.line())
        leaving = asyncio.ensure_future(self._stdio.over.wait())
        try:
            while True:
                if work is None and self._pending:
                    work = asyncio.ensure_future(self._carry_out(self._pending.popleft()))
                events: set[asyncio.Future[Any]] = {one for one in (work, leaving) if one is not None}
                if len(self._pending) < BACKLOG:
                    events.add(reading)
                await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
                if work is not None and work.done():
                    work.result()
                    work = None
                if reading.done() and len(self._pending) < BACKLOG:
                    line = reading.result()
                    if line is None:
                        break
                    reading = asyncio.ensure_future(self._stdio.line())
                    if await self._sort(line, line.cut):
                        break
                elif leaving.done() and not self._stdio.more:
                    break
            await self._finish_work(work)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS):
                    await self._end_game("the engine was told to quit")
            return DONE
        except GuestFailed as error:
            return await self._fail(str(error), FAULTS)
        except Deaf as error:
            LOG.error("%s", error)
            return FAULTS
        except EngineError as error:
            return await self._fail(f"our own engine, which knows the rules, failed: {error}", OURS_FAILED)
        finally:
            for task in (reading, leaving, self._warming, work):
                if task is not None:
                    task.cancel()
            await asyncio.wait({task for task in (leaving, self._warming, work) if task is not None})
            self._leave("interrupted, or the engine failed")
            await self._guest.close()

    async def _finish_work(self, work: asyncio.Task[None] | None) -> None:
        """What was written before the end is answered, but no search is waited for."""
        while (work is not None or self._pending) and not self._stdio.deaf:
            if work is None:
                words = self._pending.popleft()
                if words[0] == "go":
                    return
                work = asyncio.ensure_future(self._carry_out(words))
            if self._searching:
                self._held.set()
                self._stopped.set()
            done, _ = await asyncio.wait({work}, timeout=LAST_WORDS)
            if not done:
                work.cancel()
                await asyncio.wait({work})
                return
            work.result()
            work = None

    async def _fail(self, why: str, status: int) -> int:
        LOG.error("%s", why)
        with contextlib.suppress(Deaf):
            await self._stdio.say(f"info string error {say.shown(why, 500)}")
        return status

    async def _sort(self, line: bytes, cut: bool) -> bool:
        """What can be answered while the guest thinks is answered now, the rest in its turn; whether it was `quit`."""
        if cut:
            await self._stdio.say(say.error_line("a long line", "expected at most 65536 bytes"))
            return False
        try:
            said = messages.words_of(line)
        except UnicodeDecodeError:
            await self._stdio.say(say.error_line(line.decode("utf-8", "replace"), "expected UTF-8"))
            return False
        words = messages.command_of(said, COMMANDS.union(QUESTIONS))
        if words[:1] == ["quit"]:
            return True
        if words:
            await self._place_in_order(words)
        elif said and not said[0].startswith("#"):
            await self._stdio.say(f"info string unknown command: {say.shown(' '.join(said))}")
        return False

    async def _place_in_order(self, words: list[str]) -> None:
        if words[0] == "debug":
            self._guest.talkative = words[1:] == ["on"]
        elif not self._searching or self._stopped.is_set():
            self._pending.append(words)
        elif words[0] == "isready":
            await self._stdio.say("readyok")
        elif words[0] in QUESTIONS:
            await self._ask_rules(words)
        elif words[0] in ("stop", "ponderhit"):
            self._held.set()
            if words[0] == "stop":
                self._stopped.set()
        else:
            await self._stdio.say(say.error_line(" ".join(words), "not while searching, expected stop first"))

    async def _carry_out(self, words: list[str]) -> None:
        try:
            await _VERBS[words[0]](self, words)
        except SessionError as error:
            await self._stdio.say(say.error_line(error.read, error.expected))

    async def _warm_up(self) -> None:
        await asyncio.gather(self._slot.warm_up(), self._guest.prepare())

    async def _warm_up_quietly(self) -> None:
        with contextlib.suppress(GuestFailed, EngineError):
            await self._warm_up()

    # Words

    async def _uti(self, _: Sequence[str]) -> None:
        for line in (f"id name {self._guest.name}", f"id author {self._author}"):
            await self._stdio.say(line)
        for option in self._guest.options:
            await self._stdio.say(option.line())
        await self._stdio.say("utiok")
        if self._warming is None:
            # Not sooner, as it would delay the greeting. A failure is reported when the engine is needed.
            self._warming = asyncio.ensure_future(self._warm_up_quietly())

    async def _isready(self, _: Sequence[str]) -> None:
        await self._warm_up()
        await self._stdio.say("readyok")

    async def _setoption(self, words: Sequence[str]) -> None:
        message = messages.parse_setoption(words)
        name = message.name.casefold().removeprefix("uci_")
        option = next((one for one in self._guest.options if one.name.casefold() == name), None)
        if option is None:
            names = ", ".join(one.name for one in self._guest.options)
            raise SessionError(f"setoption {message.name}", f"expected one of {names}")
        objection = option.objection(message.value)
        if objection:
            raise SessionError(f"setoption {option.name} {message.value}", objection)
        game = await self._guest.set(option.name, message.value)
        if game is not None:
            await self._choose(game)

    async def _variant(self, words: Sequence[str]) -> None:
        game = await self._guest.set("Variant", " ".join(words[1:]))
        if game is not None:
            await self._choose(game)

    async def _choose(self, game: str) -> None:
        await self._end_game("another game was chosen")
        await self._slot.choose(game)
        await self._stdio.say(say.variant_line(self._guest.variant))

    async def _newgame(self, _: Sequence[str]) -> None:
        await self._end_game("another game was begun")

    async def _position(self, words: Sequence[str]) -> None:
        message = messages.parse_position(words)
        if message.kind == "otn":
            raise SessionError("position otn", "expected startpos or fen <FEN>")
        line = Line(message.text or None, message.moves)
        try:
            facts = await self._rules.facts(line)
        except IllegalPosition as error:
            raise SessionError("position", str(error)) from None
        self._state = self._reached = GameState.reached(line, facts, self._reached)

    async def _go(self, words: Sequence[str]) -> None:
        go = messages.parse_go(words)
        for problem in go.problems:
            await self._stdio.say(say.error_line(problem.read, problem.expected))
        if self._state is None:
            self._state = GameState(Line(), await self._rules.facts(Line()))
        state, limits = self._state, go.limits
        self._searching = True
        self._held.clear()
        self._stopped.clear()
        if not (limits.infinite or limits.ponder or not limits.bounded):
            self._held.set()
        # Lines that came before the search began may concern it, such as a `stop` right after `go`.
        earlier, self._pending = self._pending, deque()
        for before in earlier:
            await self._place_in_order(before)
        try:
            outcome = state.facts.outcome
            if outcome is not None:
                await self._held.wait()
                for text in say.finished_lines(outcome, state.facts.side):
                    await self._stdio.say(text)
                await self._stdio.say("bestmove (none)")
                return
            self._playing = True
            await self._guest.prepare(state.facts.side)
            self._record(state)
            move = await self._guest.think(state, go, self._stopped)
            await self._held.wait()
        finally:
            self._searching = False
        legal = move in state.facts.legal
        if not legal:
            said = f"{say.shown(str(move))} of {self._guest.name}"
            await self._stdio.say(f"info string error {said}: expected a legal move")
        await self._stdio.say(f"bestmove {move or '(none)'}")
        if legal and move is not None:
            line = state.line.play(move)
            self._reached = GameState.reached(line, await self._rules.facts(line), state)
            self._record(self._reached)
            await self._guest.played(self._reached)

    async def _variants(self, _: Sequence[str]) -> None:
        option = next((one for one in self._guest.options if one.name == "Variant"), None)
        for name in option.values if option is not None else ():
            await self._stdio.say(say.variants_line(find(name)))

    async def _ask_rules(self, words: Sequence[str]) -> None:
        """What our own engine knows as well."""
        line = self._state.line if self._state is not None else Line()
        for answer in await self._rules.ask(line, " ".join(words)):
            await self._stdio.say(answer)

    async def _nothing(self, _: Sequence[str]) -> None:
        """`stop` where nothing is searched."""

    # What is written down

    async def _end_game(self, why: str) -> None:
        self._leave(why)
        if self._playing:
            await self._guest.end_game(self._reached)
        self._playing = False
        self._state = self._reached = None

    def _leave(self, why: str) -> None:
        if self._log is not None:
            self._log.end(None, Reason.INTERRUPTED, why)
            self._log = None

    def _record(self, state: GameState) -> None:
        """The game stands there now."""
        if self._journal is None:
            return
        if self._log is None:
            name = self._guest.name
            players = (name, "") if state.facts.side is Side.ATTACKERS else ("", name)
            header = GameRecord(self._guest.variant.name, start=state.line.start, players=players)
            self._log = self._journal.begin(rule_sets.played_by(header, self._guest.variant))
        self._log.follow(state.entries)
        if state.facts.result is not None:
            self._log.end(state.facts.result, state.facts.reason)
            self._log = None


LAST_WORDS: Final = 1.0
"""Seconds that the answer to a line may take which came before the end of input."""
_VERBS: Final[dict[str, Callable[[Front, Sequence[str]], Coroutine[Any, Any, None]]]] = {
    "uti": Front._uti,
    "isready": Front._isready,
    "setoption": Front._setoption,
    "variant": Front._variant,
    "variants": Front._variants,
    "utinewgame": Front._newgame,
    "ucinewgame": Front._newgame,
    "uginewgame": Front._newgame,
    "position": Front._position,
    "go": Front._go,
    "stop": Front._nothing,
    "ponderhit": Front._nothing,
    **dict.fromkeys(QUESTIONS, Front._ask_rules),
}
