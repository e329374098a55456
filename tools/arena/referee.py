"""One game between two engines: asks, measures, validates, and says how it ended.

The referee holds its own position; it trusts engines for nothing but their moves. A `go` is never sent on a
finished position. Time runs from the end of our write to the moment the bytes of the answer were read; an answer that
lay in the pipe when its deadline struck is in time, and how late we were is part of the result.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from hnefi.engine import squares
from hnefi.engine.games.base_position import IllegalMove, Position
from hnefi.engine.search.clock import movetime
from hnefi.engine.search.types import Limits
from hnefi.engine.sides import Outcome, Reason
from hnefi.engine.wording import shorten
from hnefi.protocol.answers import InfoLine
from hnefi.protocol.client import (
    Answer,
    EngineCrashed,
    EngineDisconnected,
    EngineError,
    EngineFault,
    EngineTimeout,
    EngineUnready,
    Search,
)
from hnefi.protocol.format import go_line

from ..common.pairs import Winner
from .adjudication import NONE, Adjudication, Scores, won_by
from .engine_slot import EngineSlot
from .values import (
    LATE,
    EngineSpec,
    Fault,
    GameResult,
    GameTask,
    PlyLog,
    SideLimits,
    find_variant,
)

PV_BREATH = 4
"""Moves of a line that are checked before the event loop gets a turn: other games have clocks, too."""

ERROR_TAIL = 4_000

WatchPly = Callable[["Game", PlyLog], None]
WatchTraffic = Callable[[GameTask, int, float, str, bytes], None]


class Clock:
    """One side's time in ms: what is left, and how long the move at hand may take."""

    def __init__(self, spec: EngineSpec, side: int) -> None:
        self.limits: SideLimits = spec.limits[side]
        self.timed = self.limits.timed
        self._spec = spec
        self.left = self.limits.time
        self._exact = float(self.left or 0)
        self._moves = self.limits.moves
        self.budget = 0.0
        self.allowed = 0.0
        self._allow()

    def _allow(self) -> None:
        """How long the next move may take: `budget` by its own limits, `allowed` with the margin."""
        times = (self.limits.movetime, None if self.left is None else self._exact)
        allowed = [float(limit) for limit in times if limit is not None]
        self.budget = min(allowed) if allowed else self._spec.move_timeout * 1000
        self.allowed = self.budget + (self._spec.margin if allowed else 0)

    @property
    def to_go(self) -> int | None:
        """Moves until the next period, None where there are no periods."""
        return self._moves or None

    def charge(self, spent: float) -> None:
        """A move took `spent` ms; the increment and the time of a new period come afterwards."""
        if self.left is None:
            return
        self._exact = max(0.0, self._exact - spent) + self.limits.increment
        if self._moves:
            self._moves -= 1
            if self._moves == 0:
                self._moves = self.limits.moves
                self._exact += self.limits.time or 0
        self.left = int(self._exact)
        self._allow()

    def movetime(self) -> int:
        """A time for the next move, for an engine that gets no clock: never so long that the clock runs out."""
        share = movetime(self._exact, self.limits.increment, self._moves)
        return max(1, int(min(share, self.limits.movetime or share)))

    def limits_of_go(self, side: int, other: Clock) -> Limits:
        """What a `go` says: this side's limits, and both clocks."""
        limits = self.limits
        if self.left is None or self._spec.clock == "movetime":
            movetime = limits.movetime if self.left is None else self.movetime()
            return Limits(depth=limits.depth, nodes=limits.nodes, movetime=movetime)
        times = (max(1, self.left), None if other.left is None else max(1, other.left))
        incs = (limits.increment, other.limits.increment)
        return Limits(
            depth=limits.depth,
            nodes=limits.nodes,
            movetime=limits.movetime,
            clock=times if side == 0 else (times[1], times[0]),
            inc=incs if side == 0 else (incs[1], incs[0]),
            movestogo=self.to_go,
        )


@dataclass(frozen=True, slots=True)
class End:
    """How a game ended; `winner` is None where it has no result, `fact` adds details if there are any."""

    winner: Winner | None
    reason: Reason
    fault: Fault | None = None
    fact: str = ""


def over(position: Position, length: int, scores: Scores, rule: Adjudication) -> End | None:
    """Whether rules or adjudication end a game of `length` plies at `position`, after what both sides said."""
    outcome = position.outcome
    if outcome is not None:
        return End(_result_of(outcome), outcome.reason)
    if rule.oracle is not None and (solved := rule.oracle.winner(position)) is not None:
        return End(solved, Reason.ADJUDICATED, fact=rule.oracle.fact)
    if rule.reads_scores:
        winner = scores.verdict(length, position.quiet)
        if winner is not None:
            return End(winner, Reason.ADJUDICATED)
    if rule.max_plies and length >= rule.max_plies:
        return End("draw", Reason.PLY_CAP)
    return None


class Game:
    """One game. `play` it once; if that is cancelled, `interrupted` says how far it came."""

    def __init__(
        self,
        task: GameTask,
        slots: tuple[EngineSlot, EngineSlot],
        adjudication: Adjudication = NONE,
        *,
        keep: re.Pattern[str] | None = None,
        on_ply: WatchPly | None = None,
        on_traffic: WatchTraffic | None = None,
    ) -> None:
        """`keep` selects `info string` lines to store with their ply. ValueError if the opening cannot be played."""
        self.task = task
        self.slots = slots
        self.variant = find_variant(task.variant)
        self.plies: list[PlyLog] = []
        self._said: list[int | None] = [None, None]
        self._adjudication = adjudication
        self._scores = Scores(adjudication)
        self._keep = keep
        self._on_ply = on_ply
        self._on_traffic = on_traffic
        self._clocks = (Clock(slots[0].spec, 0), Clock(slots[1].spec, 1))
        self._constant = ["", ""]
        self._advisories: dict[tuple[int, str], str] = {}
        self._strays = [0, 0]
        self._lateness = 0.0
        self._began = time.monotonic()
        self._started = time.time()
        self._pause: asyncio.Future[End | None]
        self._looking: Iterator[None] | None = None
        self._asked = 0.0
        self._heads = ["", ""]
        self._moves = "".join(f" {move}" for move in task.opening.moves)
        self.position: Position = task.opening.position(self.variant)

    async def play(self) -> GameResult:
        """The game from the start of its engines to its end."""
        end = await self._prepare()
        while end is None:
            end = await self._stretch()
        return self._result(end)

    async def _stretch(self) -> End | None:
        """Play plies, each requested as soon as the last was answered; returns how they ended the game, None if
        it goes on after the rest of a long line has been looked at."""
        self._pause = asyncio.get_running_loop().create_future()
        self._next()
        end = await self._pause
        if self._looking is not None:
            for _ in self._looking:
                await asyncio.sleep(0)
            self._looking = None
        return end

    def interrupted(self) -> GameResult:
        """The game as it stands, without a result."""
        return self._result(End(None, Reason.INTERRUPTED))

    # Before the first move

    async def _prepare(self) -> End | None:
        """Both engines, at once, to the first move; the attackers' failure counts first."""
        outcomes = await asyncio.gather(
            *(self._prepare_slot(side) for side in (0, 1)), return_exceptions=True
        )
        for side, outcome in enumerate(outcomes):
            if isinstance(outcome, EngineError):
                return self._failed_start(side, outcome)
            if isinstance(outcome, BaseException):
                raise outcome
        return None

    async def _prepare_slot(self, side: int) -> None:
        slot = self.slots[side]
        self._strays[side] = 0 if slot.engine is None else slot.engine.stray_answers
        if self._on_traffic is not None:
            watch, task = self._on_traffic, self.task
            slot.watch(lambda stamp, arrow, line: watch(task, side, stamp, arrow, line))
        await slot.prepare(self.task.variant, side, self.task.seeds[side])
        head = slot.position_line(self.position.start_fen, is_start=self.task.opening.start is None)
        self._heads[side] = f"{head} moves" if self._moves else head
        clock = self._clocks[side]
        if clock.left is None:
            self._constant[side] = go_line(clock.limits_of_go(side, clock), dialect=slot.process.proto)

    def _failed_start(self, side: int, error: EngineError) -> End:
        if isinstance(error, (EngineTimeout, EngineCrashed, EngineDisconnected, EngineUnready)):
            return self._failed(side, error)
        return End(None, Reason.START_FAILURE, Fault(_place(side), Reason.START_FAILURE.value, str(error)))

    # One ply

    def _next(self) -> None:
        """Ask the side to move, unless the game is over."""
        end = self._over()
        if end is None:
            side = int(self.position.side)
            clock = self._clocks[side]
            engine = self.slots[side].process
            go = self._constant[side] or go_line(
                clock.limits_of_go(side, self._clocks[1 - side]), dialect=engine.proto
            )
            engine.hold(self._heads[side] + self._moves)
            self._asked = time.monotonic()
            try:
                engine.post(go, clock.allowed / 1000, self._answered)
                return
            except EngineError as error:
                end = self._failed(side, error)
        self._pause.set_result(end)

    def _answered(self, search: Search) -> None:
        """Take the answer, or what came instead, and continue. Called by the event loop: errors are those of `play`."""
        if self._pause.done():
            return
        try:
            end = self._judge(int(self.position.side), search)
            if end is None and self._looking is None:
                self._next()
            else:
                self._pause.set_result(end)
        except Exception as error:  # noqa: BLE001 - whoever awaits the game is to hear of it
            self._pause.set_exception(error)

    def _judge(self, side: int, search: Search) -> End | None:
        try:
            answer = search.result()
        except EngineTimeout as error:
            late = error.lateness * 1000
            self._lateness = max(self._lateness, late)
            return self._too_late(side, (time.monotonic() - (search.sent or self._asked)) * 1000 - late, late)
        except EngineError as error:
            return self._failed(side, error)
        clock = self._clocks[side]
        allowed = clock.allowed
        self._lateness = max(self._lateness, answer.lateness * 1000)
        spent = min(answer.seconds * 1000, allowed)
        clock.charge(spent)
        return self._take(side, answer, spent)

    def _take(self, side: int, answer: Answer, spent: float) -> End | None:
        """Judge the answered move and play it."""
        if answer.move == "resign":
            return End(won_by(1 - side), Reason.RESIGNATION)
        text = "(none)" if answer.move is None else answer.move
        before = self.position
        try:
            move, self.position = _played(before, text)
        except IllegalMove as error:
            fact = f"{shorten(text)} at ply {self.length + 1}: {error}; FEN {before.fen()}"
            return self._fault(side, Reason.ILLEGAL_MOVE, fact)
        name = squares.move_name(move)
        info = answer.info or _NOTHING
        self._log(side, name, answer, info, spent)
        if not self._moves:
            self._heads = [f"{head} moves" for head in self._heads]
        self._moves += f" {name}"
        self._advise(side, before, name, info)
        return None

    def _log(self, side: int, move: str, answer: Answer, info: InfoLine, spent: float) -> None:
        score = info.score
        captures = self.position.last_captures
        ply = PlyLog(
            move=move,
            captures=tuple(squares.name(sq) for sq in captures) if captures else (),
            cp=None if score is None else score.cp,
            mate=None if score is None else score.mate,
            depth=info.depth,
            seldepth=info.seldepth,
            nodes=info.nodes,
            nps=info.nps,
            time=round(spent, 3),
            clock=self._clocks[side].left,
            latency=None if info.time is None else round(spent - info.time, 3),
            lines=tuple(line for line in answer.strings if self._keep.search(line)) if self._keep else (),
        )
        self.plies.append(ply)
        self._said[side] = ply.mate
        if self._adjudication.reads_scores:
            self._scores.add(side, ply.cp, ply.mate)
        if self._on_ply is not None:
            self._on_ply(self, ply)

    # Ends

    @property
    def length(self) -> int:
        """Plies of the game so far, those of the opening included."""
        return len(self.task.opening.moves) + len(self.plies)

    def _over(self) -> End | None:
        """Whether rules or adjudication end the game here."""
        return over(self.position, self.length, self._scores, self._adjudication)

    def _too_late(self, side: int, elapsed: float, late: float) -> End:
        """No answer after `elapsed` ms; we saw that `late` ms afterwards, which is not the engine's fault."""
        clock = self._clocks[side]
        ours = f"; the arena looked {late:.0f} ms late" if late >= LATE else ""
        if clock.timed:
            over = max(1, round(elapsed - clock.budget))
            fact = f"over by {over} ms: no answer within {clock.budget:.0f} ms"
            margin = self.slots[side].spec.margin
            fact += f" and a margin of {margin} ms" if margin else ""
            return self._fault(side, Reason.TIME, fact + ours)
        return self._fault(side, Reason.STALL, f"no answer within {clock.allowed / 1000:g} s{ours}")

    def _failed(self, side: int, error: EngineError) -> End:
        """The engine lost the game by what happened to its process."""
        if isinstance(error, EngineCrashed):
            return self._fault(side, Reason.CRASH, error.exit.text)
        if isinstance(error, (EngineFault, EngineUnready)):
            # Its process is alive but reports that it can no longer play.
            return self._fault(side, Reason.CRASH, str(error))
        if isinstance(error, EngineDisconnected):
            return self._fault(side, Reason.DISCONNECT, str(error))
        return self._fault(side, Reason.STALL, str(error))

    def _fault(self, side: int, reason: Reason, text: str) -> End:
        again = reason not in (Reason.TIME, Reason.STALL)
        return End(won_by(1 - side), reason, Fault(_place(side), reason.value, text, again))

    def _result(self, end: End) -> GameResult:
        engines = [slot.engine for slot in self.slots]
        extra: dict[str, Any] = {"fact": end.fact} if end.fact else {}
        if end.fault is not None:
            culprit = engines[end.fault.side]
            tail = culprit.error_tail()[-ERROR_TAIL:] if culprit is not None else ""
            extra |= {"stderr": tail} if tail else {}
        names = [slot.spec.name for slot in self.slots]
        ids = [engine.name if engine is not None else "" for engine in engines]
        strays = [
            engine.stray_answers - before if engine is not None else 0
            for engine, before in zip(engines, self._strays, strict=True)
        ]
        return GameResult(
            task=self.task,
            names=(names[0], names[1]),
            winner=end.winner,
            reason=end.reason.value,
            plies=tuple(self.plies),
            captured=self.position.taken,
            fault=end.fault,
            ids=(ids[0], ids[1]),
            final=self.position.fen(),
            rules_hash=self.variant.hash,
            advisories=tuple(self._advisories.values()),
            stray=sum(strays),
            lateness=round(self._lateness, 3),
            started=self._started,
            seconds=round(time.monotonic() - self._began, 6),
            extra=extra,
        )

    # Advisories: mistakes that cost nothing

    def _advise(self, side: int, before: Position, move: str, info: InfoLine) -> None:
        pv = info.pv
        if info.score is None:
            self._oddity(side, "no score", "no score before bestmove")
        elif info.score.mate and not info.bound:
            self._advise_mate(side, info.score.mate, len(pv))
        if pv and pv[0] != move:
            self._oddity(side, "first move", f"bestmove {move} is not the first of pv {' '.join(pv[:4])}")
        if pv and (len(pv) > 1 or pv[0] != move) and (side, "pv") not in self._advisories:
            looking = self._walk(side, before, pv)
            if next(looking, _SEEN) is not _SEEN:
                self._looking = looking

    def _advise_mate(self, side: int, mate: int, length: int) -> None:
        """An end was announced, with a line of `length` moves: the winner moves first and last in it."""
        plies = 2 * mate - 1 if mate > 0 else -2 * mate
        if length and length != plies:
            self._oddity(side, "mate distance", f"mate {mate} with a pv of {length} moves: expected {plies}")
        other = self._said[1 - side]
        if mate > 0 and other is not None and other > 0:
            self._oddity(side, "both win", f"both sides announce a win: mate {other}, then mate {mate}")

    def _walk(self, side: int, position: Position, pv: tuple[str, ...]) -> Iterator[None]:
        """Play an engine's line on the board while no clock runs in this game; yields to those of other games."""
        for index, text in enumerate(pv):
            try:
                _, position = _played(position, text)
            except IllegalMove as error:
                self._oddity(side, "pv", f"pv {' '.join(pv[: index + 1])}: {error}")
                return
            if index % PV_BREATH == PV_BREATH - 1:
                yield

    def _oddity(self, side: int, kind: str, text: str) -> None:
        """Report an advisory, once per kind and side."""
        if (side, kind) not in self._advisories:
            name = self.slots[side].spec.name
            self._advisories[side, kind] = f"{name}: {text} (ply {self.length})"


_NOTHING = InfoLine()
_SEEN = object()


def _played(position: Position, text: str) -> tuple[int, Position]:
    """The move that an engine means by `text`, and the position after it; IllegalMove with the sentence that says
    why not."""
    if text == "(none)":
        raise IllegalMove("the game is not over")
    move = _plain(text)
    if move is not None:
        with suppress(IllegalMove):
            return move, position.play(move)
    move = position.parse_move(text)
    return move, position.play(move)


_PLAIN = re.compile(r"([a-s]1?\d)([a-s]1?\d)?")
_SQUARES = {squares.name(sq): sq for sq in squares.squares(squares.MAX_SIZE)}


def _plain(text: str) -> int | None:
    """The move whose name is `text`, legal or not; None for any other spelling."""
    match = _PLAIN.fullmatch(text)
    if match is None:
        return None
    origin = _SQUARES.get(match[1])
    target = origin if match[2] is None else _SQUARES.get(match[2])
    return None if origin is None or target is None else squares.move(origin, target)


def _place(side: int) -> Literal[0, 1]:
    return 0 if side == 0 else 1


def _result_of(outcome: Outcome) -> Winner:
    return "draw" if outcome.winner is None else won_by(outcome.winner)
