"""Engine processes behind an adapter: whichever thinks, and our own, which is asked for the rules.

An adapter knows no rules. It keeps a `Line`, asks `RulesEngine` what follows from it, and starts an engine by an
`EngineSlot`, which starts it again once where it fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from hnefi.engine.compile.progress import Progress
from hnefi.engine.sides import Outcome, Reason, Side
from hnefi.engine.wording import shorten

from ..client import Answer, Engine, EngineError, EngineProtocolError, Limits, Timeouts, own_command
from .trace import Trace

LOG = logging.getLogger("hnefi.rulebook")

GRACE: Final = 2.0
"""Seconds that an engine may be late."""
LEAST: Final = 50
"""Milliseconds that a search has even where the time is up."""
TIMEOUTS: Final = Timeouts(start=30.0, ready=120.0)
REMEMBERED: Final = 64
"""Ends of lines of which is known what the rules say: moves are taken back, refused and told twice."""
QUESTIONS: Final = ("query fen", "moves verbose", "query outcome", "query reason")
TERRAIN: Final = (
    ("attacker_camps", "camp"),
    ("defender_camps", "fort"),
    ("corners", "corner"),
    ("throne", "throne"),
)
"""Switches that name squares, and what these are; later ones win."""
T = TypeVar("T")


class IllegalPosition(ValueError):
    """A start or a row of moves that the rules refuse, in their words."""


@dataclass(frozen=True, slots=True)
class Line:
    """A game so far: `start` is a FEN, None for the start of the variant."""

    start: str | None = None
    moves: tuple[str, ...] = ()

    def play(self, *moves: str) -> Line:
        """The line with more moves."""
        return Line(self.start, (*self.moves, *moves))

    def begins(self, other: Line) -> bool:
        """Whether `other` continues this line, or is the same."""
        return self.start == other.start and self.moves == other.moves[: len(self.moves)]


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules say about the end of a line: its FEN, the legal moves with the squares that they take, and result
    and reason if the game is over."""

    fen: str
    legal: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    result: str | None = None
    reason: str = ""

    @property
    def rows(self) -> str:
        """The board of the FEN: rows from the highest rank down."""
        return self.fen.split()[0]

    @property
    def side(self) -> Side:
        """The side to move."""
        return Side.of(self.fen.split()[1])

    @property
    def outcome(self) -> Outcome | None:
        """How the game ended, if it is over."""
        if self.result is None:
            return None
        return Outcome(None if self.result == "draw" else Side.of(self.result), Reason(self.reason))


def special_squares(switches: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The squares that mean something by the switches of rules (name, text): by their names, what they are (`throne`,
    `corner`, `camp`, `fort`)."""
    said = dict(switches)
    return {
        square: kind
        for switch, kind in TERRAIN
        for square in said.get(switch, "none").split(",")
        if square != "none"
    }


class EngineSlot:
    """One engine process: started when it is needed, started again once where it fails, then EngineError.

    `game` is the line that chooses what is played: `variant NAME`, or `rules OTN`, which is only for engines of ours.
    """

    def __init__(
        self,
        command: Sequence[str] = (),
        *,
        game: str = "",
        player: str = "",
        options: Sequence[tuple[str, str]] = (),
        trace: Trace | None = None,
        on_compiling: Callable[[Progress], None] | None = None,
    ) -> None:
        self._command = tuple(command) or tuple(own_command())
        self._game = game
        self._player = player
        self._options = tuple(options)
        self._trace = trace
        self._on_compiling = on_compiling or self._tell_compiling
        self._compiling = ""
        self._engine: Engine | None = None
        self._busy = asyncio.Lock()
        self._closed = False

    @property
    def game(self) -> str:
        """The line that chooses what is played."""
        return self._game

    async def use(self, work: Callable[[Engine], Awaitable[T]]) -> T:
        """What `work` makes of a process that is ready."""
        async with self._busy:
            try:
                return await work(await self._ready())
            except EngineError as error:
                await self._drop()
                if self._closed:
                    raise
                LOG.warning("%s: it is started again", error)
            try:
                return await work(await self._ready())
            except EngineError:
                await self._drop()
                raise

    async def warm_up(self) -> None:
        """Have a process ready."""
        await self.use(lambda engine: engine.is_ready())

    async def choose(self, game: str) -> None:
        """Play what this line says from now on, from its start."""

        async def choose(engine: Engine) -> None:
            await _choose(engine, game)
            await engine.new_game()

        self._game = game
        await self.use(choose)

    async def _ready(self) -> Engine:
        if self._engine is None:
            engine = await Engine.start(
                self._command, timeouts=TIMEOUTS, on_traffic=self._trace, on_compiling=self._on_compiling
            )
            try:
                await _choose(engine, self._game)
                if self._player:
                    await engine.set_option("Player", self._player)
                for name, value in self._options:
                    await engine.set_option(name, value)
                await engine.new_game()
            except BaseException:
                await engine.quit(grace=0.0)
                raise
            self._engine = engine
        return self._engine

    async def _drop(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.quit(grace=0.1)

    async def close(self) -> None:
        """End the process; there will be no other."""
        self._closed = True
        await self._drop()

    def _tell_compiling(self, progress: Progress) -> None:
        """Each part once: it is reported every second."""
        if progress.part != self._compiling:
            self._compiling = progress.part
            LOG.info("the engine compiles %s (%d/%d)", progress.part, progress.done, progress.total)


def rules_and_player(
    command: Sequence[str] = (),
    *,
    game: str,
    player: str = "",
    options: Sequence[tuple[str, str]] = (),
    trace: Trace | None = None,
) -> tuple[EngineSlot, EngineSlot]:
    """Our engine, which knows the rules, and the one that plays: the same where `command` names no other."""
    chooser = EngineSlot(command, game=game, player=player, options=options, trace=trace)
    return (EngineSlot(game=game, trace=trace) if command else chooser), chooser


async def _choose(engine: Engine, game: str) -> None:
    word, _, name = game.partition(" ")
    if word == "variant":
        await engine.set_variant(name)
    elif word:
        await engine.ask(game)


def until(deadline: float, cap: float | None = None) -> Callable[[], Limits]:
    """Limits that end with `deadline` (`time.monotonic()`), and think no longer than `cap` milliseconds.

    Where the time is up they leave a little: a late move may still be in time, none never is.
    """

    def limits() -> Limits:
        left = max(LEAST, round((deadline - time.monotonic()) * 1000))
        return Limits(movetime=left if cap is None else min(left, round(cap)))

    return limits


class Thinker:
    """An engine that chooses moves."""

    def __init__(self, slot: EngineSlot) -> None:
        self._slot = slot

    async def warm_up(self) -> None:
        """Have the engine ready; EngineError."""
        await self._slot.warm_up()

    async def best(
        self,
        line: Line,
        facts: Facts,
        limits: Callable[[], Limits],
        among: Sequence[str] = (),
        grace: float = GRACE,
        others: Sequence[str] = (),
    ) -> Answer:
        """Its answer at the end of `line`, where `facts` hold: a move of those `among` which it may choose (none: of
        all that are legal), or one of the `others`, words that are no moves.

        An engine that has not answered `grace` seconds after its limits is started again. EngineError.
        """

        async def think(engine: Engine) -> Answer:
            engine.position(line.start or "startpos", line.moves)
            now = limits()
            allowed = now.clock[facts.side] if now.movetime is None else now.movetime
            search = await engine.go(now, searchmoves=among, timeout=(allowed or 0) / 1000 + grace)
            try:
                answer = await search
            except BaseException:
                with contextlib.suppress(EngineError):
                    await search.abandon()
                raise
            if answer.move is None or answer.move not in (*(among or facts.legal), *others):
                raise EngineProtocolError(f"{engine.name} answered {answer.move}: expected a legal move")
            return answer

        return await self._slot.use(think)


class RulesEngine:
    """Our own engine as the book of rules."""

    def __init__(self, slot: EngineSlot) -> None:
        self._slot = slot
        self._known: dict[tuple[str, Line], Facts] = {}

    async def warm_up(self) -> None:
        """Have the engine ready; EngineError."""
        await self._slot.warm_up()

    async def facts(self, line: Line) -> Facts:
        """What the rules say; IllegalPosition if the line cannot be played. EngineError."""
        place = self._slot.game, line
        facts = self._known.pop(place, None)
        if facts is None:
            facts = await self._ask_facts(line)
        self._known[place] = facts
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return facts

    async def _ask_facts(self, line: Line) -> Facts:

        async def ask(engine: Engine) -> Facts:
            engine.position(line.start or "startpos", line.moves)
            answers = await engine.ask(QUESTIONS[0], more=QUESTIONS[1:])
            for text in answers:
                if text.startswith("info string error position"):
                    raise IllegalPosition(text.removeprefix("info string error position: "))
            found = [text.split() for text in answers]
            if [words[0] for words in found if words] != ["response", "moves", "response", "response"]:
                said = shorten(" / ".join(answers), 200)
                raise EngineProtocolError(f"{engine.name} answered {', '.join(QUESTIONS)} with {said}")
            (_, *fen), (_, _, *words), (_, result, *_), (_, reason, *_) = found
            return Facts(
                " ".join(fen),
                {move: tuple(taken) for move, *taken in (word.split("x") for word in words)},
                None if result == "none" else result,
                "" if result == "none" else reason,
            )

        return await self._slot.use(ask)

    async def ask(self, line: Line, question: str) -> list[str]:
        """What our engine answers to a question about the end of a line that can be played."""

        async def ask(engine: Engine) -> list[str]:
            engine.position(line.start or "startpos", line.moves)
            return await engine.ask(question)

        return await self._slot.use(ask)
