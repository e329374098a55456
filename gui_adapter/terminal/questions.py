"""Questions to engines, one at a time, and the handling of answers: a move, a hint, a failure.

Every question has a ticket. Once it is withdrawn, or another one is asked, late answers to it are dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hnefi.engine.catalogue import GAMES
from hnefi.engine.sides import Reason
from hnefi.protocol.answers import InfoLine
from hnefi.protocol.client import Answer, EngineError, EngineStartError, Search
from hnefi.protocol.format import BETTER

from . import panes
from .events import Events
from .opponents import Opponent, Question, plain
from .values import Line, Purpose, SideLetter, Thinking, other

if TYPE_CHECKING:
    from .game_session import GameSession


_LINES_KEPT = 64


class Questions:
    """Asks questions and posts events: `begun` when the engine has the question, then `answered` or `failed`."""

    def __init__(
        self,
        events: Events,
        begun: Callable[[Question], Awaitable[None]],
        answered: Callable[[Question, Answer], Awaitable[None]],
        failed: Callable[[Question, EngineError], Awaitable[None]],
    ) -> None:
        self._events = events
        self._begun = begun
        self._answered = answered
        self._failed = failed
        self._ticket = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.asked: Question | None = None
        self.hurried: Question | None = None
        """The last question whose engine was told to answer at once."""
        self.thinking: Thinking | None = None

    def ask(self, question: Question) -> None:
        """Ask a question; an earlier one is withdrawn."""
        self.withdraw()
        self._ticket += 1
        self.asked = question
        self.thinking = Thinking(question.opponent.name, question.purpose, True)
        self._spawn(self._run(question, self._ticket))

    def withdraw(self) -> None:
        """Withdraw the question: its answer is no longer needed."""
        self._ticket += 1
        if self.asked is not None:
            self._spawn(self.asked.opponent.halt())
        self._rest()

    def hurry(self) -> None:
        """Make the engine answer at once."""
        if self.asked is not None:
            self.hurried = self.asked
            self._spawn(self.asked.opponent.halt())

    def forget(self, purpose: Purpose | None = None) -> None:
        """Drop the results of the last search; with `purpose`, only if it had that purpose."""
        if self.asked is None and self.thinking is not None and purpose in (None, self.thinking.purpose):
            self.thinking = None

    async def close(self) -> None:
        """Withdraw the question and wait until nothing runs."""
        self.withdraw()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _rest(self) -> None:
        self.asked = None
        if self.thinking is not None:
            self.thinking = replace(self.thinking, running=False)

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, question: Question, ticket: int) -> None:
        reports: asyncio.Task[None] | None = None

        def begun(search: Search) -> None:
            nonlocal reports
            reports = asyncio.ensure_future(self._read(search, question, ticket))

            async def event() -> None:
                if ticket == self._ticket:
                    await self._begun(question)

            self._events.post(event)

        try:
            answer = await question.opponent.think(question, lambda: ticket == self._ticket, begun)
        except EngineError as error:
            self._finish(question, ticket, error)
        except (ValueError, OSError) as error:
            self._finish(question, ticket, EngineError(str(error)))
        else:
            if answer is not None:
                self._finish(question, ticket, answer)
        finally:
            if reports is not None:
                reports.cancel()

    def _finish(self, question: Question, ticket: int, outcome: Answer | EngineError) -> None:
        async def event() -> None:
            if ticket != self._ticket:
                return
            self._ticket += 1
            if isinstance(outcome, EngineError):
                self._rest()
                await self._failed(question, outcome)
            else:
                self._note(question, outcome.infos)
                self._rest()
                await self._answered(question, outcome)

        self._events.post(event)

    async def _read(self, search: Search, question: Question, ticket: int) -> None:
        """Read reports as they arrive; the newest for each line counts."""
        try:
            async for info in search:
                if ticket != self._ticket:
                    return
                self._note(question, (info,))
                self._events.changed()
        except EngineError:
            pass  # the caller that awaits the answer gets the error

    def _note(self, question: Question, infos: Sequence[InfoLine]) -> None:
        assert self.thinking is not None
        lines = {line.multipv: line for line in self.thinking.lines}
        for info in infos:
            if info.score is not None or info.pv:
                lines[info.multipv] = as_line(info, question.side, lines.get(info.multipv))
        kept = sorted(lines.values(), key=lambda line: line.multipv)[:_LINES_KEPT]
        self.thinking = replace(self.thinking, who=question.opponent.name, lines=tuple(kept))


def as_line(info: InfoLine, side: SideLetter, before: Line | None = None) -> Line:
    """A report from the attackers' point of view; missing values are taken from `before`."""
    sign = 1 if side == "a" else -1
    score = info.score
    wdl = info.wdl
    line = before or Line(info.multipv)
    if score is not None:
        line = replace(
            line,
            cp=None if score.cp is None else sign * score.cp,
            mate=None if score.mate is None else sign * score.mate,
            wdl=None if wdl is None else wdl if side == "a" else (wdl[2], wdl[1], wdl[0]),
        )
    return replace(
        line,
        depth=line.depth if info.depth is None else info.depth,
        nodes=line.nodes if info.nodes is None else info.nodes,
        nps=line.nps if info.nps is None else info.nps,
        pv=info.pv or line.pv,
    )


# Handling answers


DRAW_SCORE: Final = 20
"""Largest score for itself, in centipawns, at which an engine accepts a draw."""
DRAW_PLY: Final = 20
"""Ply before which no engine accepts a draw."""
FORCED: Final = 100_000
"""A forced win, in centipawns."""


async def take(session: GameSession, question: Question, answer: Answer) -> None:
    """Play the move in an engine's answer."""
    opponent = question.opponent
    text = "" if answer.move is None else answer.move
    if text == "resign":
        opponent.failures = 0
        await session.declare(other(question.side), Reason.RESIGNATION)
        return
    move = session.legal(text)
    if move is None:
        shown = plain(text)[:40] or "no move"
        await fail(
            session,
            question,
            EngineError(f"{opponent.name} answered {shown}: {await _why_not(session, text)}"),
        )
        return
    opponent.failures = 0
    info = answer.info
    if info is not None and info.score is not None:
        mate = info.score.mate
        session.players[question.side].score = (
            info.score.cp if mate is None else FORCED if mate > 0 else -FORCED
        )
    session.say(
        f"{session.side_word(question.side)} ({opponent.name}): {move.long}{_instead(opponent, answer)}"
    )
    await session.play(move, answer)


def _instead(opponent: Opponent, answer: Answer) -> str:
    """A note if a weaker level has not played the first move of its best line, which is the line on screen."""
    if opponent.spec.level is None:
        return ""
    for line in reversed(answer.strings):
        if line.startswith(BETTER):
            moves = plain(" ".join(line.removeprefix(BETTER).split()[:2]))[:40]
            return f" (its best line was {moves}: a weaker level does not always follow it)"
    return ""


async def _why_not(session: GameSession, text: str) -> str:
    if not (text.isascii() and text.isalnum()):
        return "not a move"
    return await session.rules.why_not(session.game.position, text) or "not legal here"


def tell_hint(session: GameSession, answer: Answer) -> None:
    """Tell the user what our engine would play."""
    thinking = session.questions.thinking
    score = ""
    if thinking is not None and thinking.lines:
        line = thinking.lines[0]
        depth = "" if line.depth is None else f", depth {line.depth}"
        score = f" ({panes.score_text(line, GAMES[session.variant.game].sides)}{depth})"
    session.say(f"Hint: {answer.move}{score}" if answer.move else "Hint: there is no move here.")


async def fail(session: GameSession, question: Question, error: EngineError) -> None:
    """Handle the failure of an engine: it is restarted once, with the whole game; after that the game continues without
    it."""
    opponent = question.opponent
    opponent.failures += 2 if isinstance(error, EngineStartError) else 1
    session.pace.rest()
    await opponent.rest()
    if question.purpose != "move":
        session.analysing = 0
        session.say(f"{error}. The game is not affected.")
        await session.move_on()
    elif opponent.failures == 1:
        session.say(f"{error}. It is restarted and sent the game so far.")
        session.questions.ask(replace(question, limits=session.pace.limits(opponent.spec)))
    else:
        session.failure = 4 if opponent.spec.own else 3
        opponent.failures = 0
        who = session.side_word(question.side)
        session.say(
            f"{error}. Nobody plays the {who} now: type their moves, or `{opponent.spec.spelled}` to restart it."
        )
        session.players.release(opponent)
        await session.move_on()


def accepts_draw(session: GameSession, side: SideLetter) -> bool:
    """Whether the engine on a side accepts a draw now."""
    score = session.players[side].score
    return session.game.at.ply >= DRAW_PLY and score is not None and score <= DRAW_SCORE
