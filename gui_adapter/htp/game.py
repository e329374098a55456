"""One game as told by a controller or a light server: moves, clock, thinking, and recording."""

from __future__ import annotations

import logging
import time
from typing import Final

from hnefi.engine.games.tafl.variant import Variant, find
from hnefi.engine.records.record import GameRecord
from hnefi.engine.sides import Outcome, Reason, Side
from hnefi.protocol.client import Limits
from hnefi.protocol.hosts.hnefatafl_org_notation import VARIANTS
from hnefi.protocol.hosts.journal import Entry, GameLog, Journal
from hnefi.protocol.hosts.rulebook import (
    LEAST,
    EngineSlot,
    Facts,
    IllegalPosition,
    Line,
    RulesEngine,
    Thinker,
)

from .lines import ROLES, Fischer, LineError, write_play

LOG = logging.getLogger("hnefi.htp")

RESIGN: Final = "resign"
"""An engine's answer in place of a move when it resigns."""


class Game:
    """A game of hnefatafl.org's rules. `own` is asked for the rules, `chooser` (which may be the same) for moves.

    Engines are told the game only when they are asked something.
    """

    def __init__(
        self,
        own: EngineSlot,
        chooser: EngineSlot,
        journal: Journal | None,
        size: int,
        movetime: int,
        opponent: str = "",
    ) -> None:
        self._own = own
        self._chooser = chooser
        self._rules = RulesEngine(own)
        self._thinker = Thinker(chooser)
        self._journal = journal
        self._movetime = movetime
        self._opponent = opponent
        self._known = size
        """The size of the board that the engines have been told."""
        self._log: GameLog | None = None
        self._ended = False
        """Whether the end of the game has been recorded; taking a move back then begins another record."""
        self._entries: list[Entry] = []
        self._ours: Side | None = None
        self.clock: Fischer | None = None
        self.begin(size)

    def begin(self, size: int | None = None, first: Side | None = None) -> None:
        """Begin a new game, perhaps on a board of another size, or with another side to move first."""
        self.leave("another game was begun")
        if size is not None:
            self.size = size
        self.variant: Variant = find(VARIANTS[self.size])
        start = None
        if first is not None and first is not Side.of(self.variant.first):
            start = f"{self.variant.startpos.split(maxsplit=1)[0]} {first.letter} 0 1"
        self._line = Line(start)
        self._facts: Facts | None = None
        self._entries = []
        self._ended = False
        self._ours = None
        self.resigned: Side | None = None
        main = 0 if self.clock is None else self.clock.main
        self._left = [(main, main)]
        """What the clocks showed at the start and after each move, in milliseconds."""
        self._turn_began: float | None = None
        """When the side to move was first asked; the first turn of a game begins with its first command."""

    # Current state

    async def facts(self) -> Facts:
        """What the rules say about the current position. EngineError."""
        if self._facts is None:
            await self._choose()
            self._facts = await self._rules.facts(self._line)
        return self._facts

    async def outcome(self) -> Outcome | None:
        """How the game ended, if it is over. EngineError."""
        if self.resigned is not None:
            return Outcome(self.resigned.other, Reason.RESIGNATION)
        return (await self.facts()).outcome

    async def must_go_on(self, side: Side | None = None) -> Facts:
        """What the rules say; LineError if the game is over or, if `side` is given, if it is not that side's turn."""
        outcome, facts = await self.outcome(), await self.facts()
        if outcome is not None:
            winner = "a draw" if outcome.winner is None else f"{ROLES[outcome.winner]} wins"
            raise LineError(f"the game is over, {winner} ({outcome.reason.words}): expected a new game")
        if side is not None and side is not facts.side:
            raise LineError(f"{ROLES[side]}: expected {ROLES[facts.side]}, whose turn it is")
        return facts

    # Events

    async def play(self, side: Side, move: str) -> tuple[str, ...]:
        """Play a move of `side`; returns the captured squares. LineError if it cannot be played."""
        facts = await self.must_go_on(side)
        if move not in facts.legal:
            words = write_play(side, move, self.size)
            raise LineError(f"{words}: {await self._objection(move)}: expected a legal move")
        line = self._line.play(move)
        after = await self._rules.facts(line)
        self._line, self._facts = line, after
        self._entries.append(Entry(move, facts.legal[move]))
        self._press_clock(side)
        self._record(after)
        return facts.legal[move]

    async def resign(self, side: Side) -> None:
        """Resign for `side`; LineError if it is not its turn."""
        await self.must_go_on(side)
        self.resigned = side
        self._end_log(side.other.letter, Reason.RESIGNATION)

    def undo(self) -> None:
        """Take the last move or resignation back; LineError if there is none."""
        if self.resigned is not None:
            self.resigned, self._ended = None, False
            return
        if not self._entries:
            raise LineError("play_undo: no move has been played")
        self._line = Line(self._line.start, self._line.moves[:-1])
        self._facts = None
        self._entries.pop()
        self._left.pop()
        self._ended = False
        self._turn_began = time.monotonic()
        if self._log is not None:
            self._log.undo(len(self._entries))

    async def think(self) -> str | None:
        """The move that our engine plays for the side to move; None if it resigns. EngineError."""
        facts = await self.must_go_on()
        self._ours = facts.side if self._ours is None else self._ours
        limits = self._limits(facts.side)

        answer = await self._thinker.best(self._line, facts, lambda: limits, others=(RESIGN,))
        return None if answer.move == RESIGN else answer.move

    def leave(self, why: str) -> None:
        """Leave the game unfinished."""
        self._end_log(None, Reason.INTERRUPTED, why)

    async def _choose(self) -> None:
        """Tell the engines the variant."""
        if self._known != self.size:
            for slot in {self._own, self._chooser}:
                await slot.choose(f"variant {self.variant.name}")
            self._known = self.size

    async def _objection(self, move: str) -> str:
        """Why a move is not legal, in the words of the rules."""
        try:
            await self._rules.facts(self._line.play(move))
        except IllegalPosition as error:
            return str(error).partition(f" {move}: ")[2] or str(error)
        return "not a legal move"

    # The clock

    def _limits(self, side: Side) -> Limits:
        now = time.monotonic()
        if self.clock is None:
            return Limits(movetime=self._movetime)
        if self._turn_began is None:
            self._turn_began = now
        left = list(self._left[-1])
        left[side] = max(LEAST, left[side] - round((now - self._turn_began) * 1000))
        others = max(LEAST, left[side.other])
        clock = (left[side], others) if side is Side.ATTACKERS else (others, left[side])
        return Limits(clock=clock, inc=(self.clock.increment, self.clock.increment))

    def _press_clock(self, side: Side) -> None:
        """A move of `side` has ended its turn."""
        now = time.monotonic()
        left = list(self._left[-1])
        if self.clock is not None:
            used = 0 if self._turn_began is None else round((now - self._turn_began) * 1000)
            left[side] = max(0, left[side] - used) + self.clock.increment
        self._left.append((left[0], left[1]))
        self._turn_began = now

    # Recording

    def _record(self, facts: Facts) -> None:
        """Record what is new; by the second ply we know which side is ours."""
        if self._ours is not None or len(self._entries) >= 2 or facts.result is not None:
            self._open_log()
        if self._log is not None:
            self._log.follow(self._entries)
        if facts.result is not None:
            self._end_log(facts.result, facts.reason)

    def _end_log(self, result: str | None, reason: str, why: str = "") -> None:
        self._open_log()
        if self._log is not None:
            self._log.end(result, reason, why)
        self._log, self._ended = None, True

    def _open_log(self) -> None:
        if self._log is not None or self._ended or self._journal is None or not self._entries:
            return
        names = ["" if self._ours is None else self._opponent] * 2
        if self._ours is not None:
            names[self._ours] = "hnefi"
        header = GameRecord(
            self.variant.name,
            start=self._line.start,
            players=(names[0], names[1]),
            rules_hash=self.variant.hash,
        )
        self._log = self._journal.begin(header)
        self._log.follow(self._entries)
