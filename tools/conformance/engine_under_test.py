"""The state of a check: the engine under test, restarted as needed, and the game it plays.

Positions are sent as moves from the variant's start, because not every engine reads every FEN.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING

from hnefi.engine.games import find
from hnefi.engine.games.base_variant import AnyVariant, VariantError
from hnefi.engine.squares import move as board_move
from hnefi.engine.squares import move_name, origin, target
from hnefi.engine.wording import shorten
from hnefi.protocol.answers import Option, parse_compiling, parse_option, parse_variant
from hnefi.protocol.client import GREETINGS
from hnefi.protocol.waiting import greeting_wait

from .transport import NOTED_WIDTH, Failed, Heard, Patience, Skipped, Transport

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.sides import Side

OK_WORDS = frozenset(f"{word}ok" for word in GREETINGS)
PREFERRED = "brandubh"
"""The variant to check with if the engine plays it: a small board makes fast steps."""
UNKNOWN_GAME = "the engine does not say which game it plays: name it with --variant"
"""Why steps that judge its moves are skipped."""
NOTED_LINES = 200
STEP_LIMIT = 120.0
"""Seconds after which a step fails; every single wait is shorter."""
GAMES = 10
LONGEST_GAME = 1000
LONGEST_SEARCH = 1.0
"""Seconds."""
REPETITIONS = 12


class EngineUnderTest:
    """The engine under test, restarted when a step has ended it, and what is known about it."""

    def __init__(
        self,
        command: Sequence[str],
        proto: str = "auto",
        variant: AnyVariant | None = None,
        patience: Patience | None = None,
    ) -> None:
        self.command = list(command)
        self.patience = patience or Patience()
        self.proto = "" if proto == "auto" else proto
        self.variant = variant
        self.limit: asyncio.Timeout | None = None
        self.greeting: tuple[Heard, ...] = ()
        """All lines of the first greeting, the ok word last."""
        self.starts = 0
        self.greeting_seconds = math.inf
        """From the start of a process to the ok word, the minimum of all starts; likewise `ready_seconds`."""
        self.ready_seconds = math.inf
        self.options: dict[str, Option] = {}
        """By lower-case name."""
        self.transcript: deque[tuple[float, str, str]] = deque(maxlen=NOTED_LINES)
        self.left_out = 0
        self.errors = ""
        """The end of what all processes so far wrote to standard error."""
        self.orphans: int | None = None
        self.exits: dict[str, float] = {}
        """Seconds from the request to end until the process ended, by step name."""
        self._chosen = variant is not None
        self._start: Position | None = None
        self._searched = False
        self._winning: tuple[Position, frozenset[str]] | None = None
        self._talk: Transport | None = None

    def note(self, stamp: float, arrow: str, text: str) -> None:
        """Add a line to the transcript; an engine that reports compiling gets more time for the step."""
        self.left_out += len(self.transcript) == NOTED_LINES
        self.transcript.append((stamp, arrow, text[:NOTED_WIDTH]))
        if arrow == "<" and self.limit is not None and parse_compiling(text) is not None:
            self.limit.reschedule(asyncio.get_running_loop().time() + STEP_LIMIT)

    @contextlib.asynccontextmanager
    async def limited(self) -> AsyncIterator[None]:
        """TimeoutError if the block takes longer than any step may; time spent compiling does not count."""
        try:
            async with asyncio.timeout(STEP_LIMIT) as self.limit:
                yield
        finally:
            self.limit = None

    def begin(self) -> None:
        """Start a new step with an empty transcript."""
        self.transcript.clear()
        self.left_out = 0

    @property
    def uti(self) -> bool:
        """Whether it speaks our own dialect, for which every step applies."""
        return self.proto == "uti"

    @property
    def name(self) -> str:
        """The engine's `id name`; empty if it sent none."""
        names = [heard.text[8:].strip() for heard in self.greeting if heard.text.startswith("id name ")]
        return names[0][:100] if names else ""

    # A known state

    async def greeted(self) -> Transport:
        """The running process, or a new one after its greeting; Failed if it does not start."""
        if self._talk is not None and self._talk.exit is None and not self._talk.closed:
            return self._talk
        await self.drop()
        try:
            self._talk = transport = await Transport.start(self.command, self.note, self.patience)
        except TimeoutError:
            raise Failed("it did not start in time") from None
        except OSError as error:
            raise Failed(f"it cannot be started: {error.strerror or error}") from None
        lines, seconds = await self._greet(transport)
        self.greeting = self.greeting or tuple(lines)
        self.greeting_seconds = min(seconds, self.greeting_seconds)
        self.starts += 1
        return transport

    async def _greet(self, transport: Transport) -> tuple[list[Heard], float]:
        """Try the greetings in turn; returns all lines up to the first ok word, and the seconds it took.

        Seconds count from the start of the process, or for later greetings from when they were sent.
        """
        words = (self.proto,) if self.proto else GREETINGS
        deadline = time.monotonic() + self.patience.start
        lines: list[Heard] = []
        for number, word in enumerate(words, start=1):
            sent = await transport.send(word)
            began = transport.started if word == words[0] else sent
            patience = sent + greeting_wait(deadline - sent, len(words) - number)
            while (heard := await transport.next(patience, f"{word}ok")) is not None:
                lines.append(heard)
                option = parse_option(heard.text)
                if option is not None:
                    self.options[option.name.casefold()] = option
                if heard.word in OK_WORDS:
                    self.proto = heard.word.removesuffix("ok")
                    return lines, heard.stamp - began
        expected = " or ".join(f"{word}ok" for word in words)
        raise Failed(f"no {expected} within {self.patience.start:g} s")

    async def prepared(self) -> Transport:
        """The engine, ready and playing the variant of the check; waits for the first `readyok` of a new process."""
        transport = await self.greeted()
        if not transport.ready:
            sent = await transport.send("isready")
            heard = await transport.until("readyok", self.patience.ready)
            self.ready_seconds = min(self.ready_seconds, heard[-1].stamp - sent)
            await self._choose(transport)
            transport.ready = True
        return transport

    async def ready(self) -> Transport:
        """The engine, ready, in a new game at the start position."""
        transport = await self.prepared()
        await transport.ask(f"{self.proto}newgame", "position startpos")
        return transport

    async def at(self, moves: Sequence[str]) -> Transport:
        """The engine, ready, after these moves from the start position."""
        transport = await self.ready()
        if moves:
            await transport.ask(position_line(moves))
        return transport

    async def drop(self) -> None:
        """End the running process, if there is one."""
        transport, self._talk = self._talk, None
        if transport is not None:
            own_end = transport.exit is not None
            await transport.wind_up()
            self.errors = (self.errors + transport.errors)[-65_536:]
            if own_end and transport.orphans is not None:
                self.orphans = (self.orphans or 0) + transport.orphans

    # Which game

    def option(self, *names: str) -> Option | None:
        """The first of these options that the engine announced."""
        return next((self.options[name] for name in names if name in self.options), None)

    async def _choose(self, transport: Transport) -> None:
        """Select the variant of the check; the first time, find one that we know too."""
        option = self.option("uci_variant", "variant")
        if not self._chosen:
            self._chosen = True
            self.variant = known_variant(
                await self._offered(transport, option), option.default if option else None
            )
        if self.variant is None:
            return
        if self.uti:
            answer = await transport.ask(f"variant {self.variant.name}", seconds=self.patience.ready)
            if not any(map(parse_variant, answer)):
                shown = shorten(answer[0]) if answer else "nothing"
                raise Failed(f"`variant {self.variant.name}` was answered by {shown}")
        elif option is not None:
            await transport.ask(
                f"setoption name {option.name} value {self.variant.name}", seconds=self.patience.ready
            )

    async def _offered(self, transport: Transport, option: Option | None) -> list[str]:
        if option is not None and option.values:
            return list(option.values)
        if not self.uti:
            return []
        prefix = "info string variant "
        answer = await transport.ask("variants")
        return [line.split()[3] for line in answer if line.startswith(prefix) and len(line.split()) > 3]

    def rules(self) -> Position:
        """The start position by our own rules; Skipped if the engine's game is unknown."""
        if self._start is None:
            if self.variant is None:
                raise Skipped(UNKNOWN_GAME)
            from hnefi.engine.games import initial

            self._start = initial(self.variant)
        return self._start

    def winning(self) -> tuple[Position, frozenset[str]]:
        """A position in which the side to move can win at once, and its winning moves; Skipped if none was found."""
        start = self.rules()
        if not self._searched:
            self._searched = True
            self._winning = winning(start)
        if self._winning is None:
            raise Skipped(f"no win in one move was found in random games of {start.variant.name}")
        return self._winning

    def finished(self) -> Position:
        """A position in which the last move has won the game."""
        position, wins = self.winning()
        return played(position, [min(wins)])


def known_variant(offered: Sequence[str], default: str | None) -> AnyVariant | None:
    """The variant to check with, out of those that the engine offers; None if we know none of them."""
    words = sorted(offered, key=lambda word: (word != PREFERRED, word != default))
    for word in words:
        with contextlib.suppress(VariantError):
            return find(word)
    return None


# Games by our own rules, reached from the start position


def position_line(moves: Sequence[str]) -> str:
    """The `position` command for these moves from the variant's start."""
    return " ".join(["position startpos", *(["moves", *moves] if moves else [])])


def names(position: Position) -> list[str]:
    """The moves that led to `position`, as text."""
    return [move_name(move) for move in position.moves]


def played(position: Position, moves: Sequence[str]) -> Position:
    """The position after `moves`; IllegalMove (a ValueError) gives the reason if one is illegal."""
    for move in moves:
        position = position.play(position.parse_move(move))
    return position


def wander(start: Position, plies: int, seed: int = 1) -> Position:
    """The position after `plies` random plies, the game not over; Skipped if none was found."""
    dice = random.Random(seed)
    deadline = time.monotonic() + LONGEST_SEARCH
    while time.monotonic() < deadline:
        position: Position | None = start
        while position is not None and position.ply < plies:
            moves = list(position.legal_moves())
            dice.shuffle(moves)
            following = map(position.play, moves)
            position = next((after for after in following if after.outcome is None), None)
        if position is not None:
            return position
    raise Skipped(f"no game of {start.variant.name} with {plies} plies was found")


def wanders(start: Position, *plies: int) -> Iterator[Position]:
    """Positions of unfinished random games of these lengths; lengths for which none was found are left out."""
    for number in plies:
        with contextlib.suppress(Skipped):
            yield wander(start, number, seed=number)


def winning(start: Position) -> tuple[Position, frozenset[str]] | None:
    """A position in which the side to move can win at once, and its winning moves; None if none was found.

    It is the last position but one of the shortest of several random games.
    """
    dice = random.Random(1)
    deadline = time.monotonic() + LONGEST_SEARCH
    found: list[Position] = []
    while len(found) < GAMES and time.monotonic() < deadline:
        position = start
        while position.outcome is None and position.ply < LONGEST_GAME:
            before, position = position, position.play(dice.choice(position.legal_moves()))
        if position.ply and won_by(position, before.side):
            found.append(before)
    if not found:
        return None
    shortest = min(found, key=lambda position: position.ply)
    wins = [move for move in shortest.legal_moves() if won_by(shortest.play(move), shortest.side)]
    return shortest, frozenset(map(move_name, wins))


def won_by(position: Position, side: Side) -> bool:
    """Whether the game is over and `side` has won it."""
    return position.outcome is not None and position.outcome.winner == side


def repeating(start: Position) -> Position:
    """A game in which both sides move back and forth until the rules end it; Skipped if they never do."""
    position = start
    for _ in range(REPETITIONS):
        for _ in range(4):
            if position.ply < 2:
                move = next((m for m in position.legal_moves() if _can_return(position, m)), None)
            else:
                move = _back(position.moves[-2])
            if move is None or move not in position.legal_moves():
                raise Skipped(f"{start.variant.name} forbids or never allows the repetition of moves")
            position = position.play(move)
            if position.outcome is not None:
                return position
    raise Skipped(f"no game of {start.variant.name} ends by repetition")


def _can_return(position: Position, move: int) -> bool:
    after = position.play(move)
    return after.outcome is None and not after.last_captures and origin(move) != target(move)


def _back(move: int) -> int:
    return board_move(target(move), origin(move))
