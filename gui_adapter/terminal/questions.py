"""One question to an engine at a time: what it reports, what it answers, and that stale answers are dropped.

Every question has a ticket; as soon as it is withdrawn, or another is asked, what still comes for it is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from hnefi.protocol.answers import InfoLine
from hnefi.protocol.client import Answer, EngineError, Search

from .events import Events
from .opponents import Question
from .values import Line, Purpose, SideLetter, Thinking

_LINES_KEPT = 64


class Questions:
    """Asks, and posts what comes of it: `begun` when the engine has the question, then `answered` or `failed`."""

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
        self.thinking: Thinking | None = None

    def ask(self, question: Question) -> None:
        """Ask; an earlier question is withdrawn."""
        self.withdraw()
        self._ticket += 1
        self.asked = question
        self.thinking = Thinking(question.opponent.name, question.purpose, True)
        self._spawn(self._run(question, self._ticket))

    def withdraw(self) -> None:
        """Nobody wants the answer any more."""
        self._ticket += 1
        if self.asked is not None:
            self._spawn(self.asked.opponent.halt())
        self._rest()

    def hurry(self) -> None:
        """The answer is wanted now."""
        if self.asked is not None:
            self._spawn(self.asked.opponent.halt())

    def forget(self, purpose: Purpose | None = None) -> None:
        """What the last search has found is of no interest any more; with `purpose`, if it was made for that."""
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
        """Take reports as they come; the newest of each line counts."""
        try:
            async for info in search:
                if ticket != self._ticket:
                    return
                self._note(question, (info,))
                self._events.changed()
        except EngineError:
            pass  # whoever awaits the answer is told

    def _note(self, question: Question, infos: Sequence[InfoLine]) -> None:
        assert self.thinking is not None
        lines = {line.multipv: line for line in self.thinking.lines}
        for info in infos:
            if info.score is not None or info.pv:
                lines[info.multipv] = as_line(info, question.side, lines.get(info.multipv))
        kept = sorted(lines.values(), key=lambda line: line.multipv)[:_LINES_KEPT]
        self.thinking = replace(self.thinking, who=question.opponent.name, lines=tuple(kept))


def as_line(info: InfoLine, side: SideLetter, before: Line | None = None) -> Line:
    """A report in the view of the attackers; what it leaves out stands as `before` said it."""
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
