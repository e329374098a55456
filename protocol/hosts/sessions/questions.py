"""Questions of our own to the engine of a session, and whose `readyok` is whose.

An answer has no end mark, so that each set of questions stands between two `isready`; what answers or refuses them
between their `readyok` is not for the client.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence

from ...client import EngineError
from ...waiting import Patience
from .engine_process import TIMEOUTS, Piped

OURS = -1
"""Instead of the number of a line: an `isready` of our own, around questions."""
START = -2
"""The same, before a `go`: the clock starts with its answer."""
RULES = "info string rules "
ASK_TIMEOUT = 5.0


class Questions:
    """What one engine has been asked and has not answered.

    `writing` is held while lines go out that belong together.
    """

    def __init__(self, writing: asyncio.Lock) -> None:
        self._writing = writing
        self._asked: asyncio.Future[list[str]] | None = None
        self._patience: Patience | None = None
        self._readies: deque[int] = deque()
        self._asks: deque[tuple[tuple[str, ...], Callable[[list[str]], None]]] = deque()
        self._collecting: list[str] | None = None
        self._answered = asyncio.Event()

    def client_asks(self, number: int) -> None:
        """The client's line `number` is an `isready`."""
        self._readies.append(number)

    def before_search(self) -> None:
        """An `isready` of ours goes out before a `go`."""
        self._readies.append(START)

    async def put(self, engine: Piped, questions: Sequence[str], then: Callable[[list[str]], None]) -> None:
        """Ask; `then` receives the lines of the answer, fewer if the engine refuses some. EngineError.

        Send nothing else before it has come.
        """
        self._readies += (OURS, OURS)
        self._asks.append((tuple(questions), then))
        self._answered.clear()
        for line in ("isready", *questions, "isready"):
            await engine.send(line)

    async def ask(self, engine: Piped, *questions: str) -> list[str]:
        """The answers to questions, one after the other; none if they do not come in time, or others are waited for."""
        if self._asked is not None or engine.failure is not None:
            return []
        asked: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        try:
            async with self._writing, asyncio.timeout(ASK_TIMEOUT):
                self._asked = asked
                await self.put(engine, questions, self._tell)
            patience = self._patience = Patience(ASK_TIMEOUT, TIMEOUTS)
            while not asked.done() and (left := patience.deadline - time.monotonic()) > 0:
                await asyncio.wait([asked], timeout=left)
            return asked.result() if asked.done() else []
        except (EngineError, TimeoutError):
            return []
        finally:
            self._patience = None

    def put_off(self) -> None:
        """The engine compiles meanwhile."""
        if self._patience is not None:
            self._patience.put_off()

    def _tell(self, answers: list[str]) -> None:
        """Hand the answers to those that wait in `ask`."""
        asked, self._asked = self._asked, None
        if asked is not None and not asked.done():
            asked.set_result(answers)

    def takes(self, text: str) -> bool:
        """Whether a line answers us; those to `query` are given on without `response`, others whole."""
        if self._collecting is None:
            return False
        questions, _ = self._asks[0]
        if any(text.startswith(f"info string error {question}: ") for question in questions):
            return True
        word, _, rest = text.partition(" ")
        if not (word in ("response", "moves") or text.startswith(RULES)):
            return False
        self._collecting.append(rest if word == "response" else text)
        return True

    def ready(self) -> int:
        """The engine has said `readyok`: the number of the line that it answers, 0 for none, `OURS`, `START`."""
        number = self._readies.popleft() if self._readies else 0
        if number == OURS:
            if self._collecting is None:
                self._collecting = []
            else:
                answers, self._collecting = self._collecting, None
                _, then = self._asks.popleft()
                then(answers)
                if not self._asks:
                    self._answered.set()
        return number

    def forget(self) -> int:
        """The engine is dead; how many `isready` of the client it has not answered."""
        self._collecting = None
        self._asks.clear()
        self._answered.set()
        self._tell([])
        self._readies = deque(number for number in self._readies if number not in (OURS, START))
        return len(self._readies)

    async def settled(self, seconds: float) -> bool:
        """Wait until everything of ours is answered; whether it is."""
        if not self._asks:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._answered.wait()
        except TimeoutError:
            return False
        return True
