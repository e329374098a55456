"""The server's side of the worker: one process for all pages, started by the first question and ended when idle."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final

from hnefi.protocol.hosts.sessions.engine_process import RequestError
from hnefi.protocol.process import Exit, Listener, Process

PATIENCE: Final = 300.0
"""Seconds to wait for an answer; kernels may have to be compiled first."""
IDLE: Final = 600.0
"""Seconds without a question after which the process is ended."""
COMMAND: Final = (sys.executable, "-m", "hnefi.gui_adapter.web.worker")


class Helper(Listener):
    """Asks the worker, one question after another."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._questions: set[asyncio.Task[dict[str, Any]]] = set()

    async def ask(self, **request: Any) -> dict[str, Any]:
        """The worker's answer; RequestError if it has none.

        If the page goes away meanwhile, the question still runs to its end, because other pages share the worker.
        """
        question = asyncio.create_task(self._ask(request))
        self._questions.add(question)
        question.add_done_callback(self._asked)
        return await asyncio.shield(question)

    def _asked(self, question: asyncio.Task[dict[str, Any]]) -> None:
        self._questions.discard(question)
        if not question.cancelled():
            question.exception()  # mark as retrieved, even if nobody is waiting any more

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        async with self._turn:
            if self._timer is not None:
                self._timer.cancel()
            try:
                async with asyncio.timeout(PATIENCE):
                    if self._process is None:
                        self._process = await Process.start(COMMAND, self)
                    self._answer = asyncio.get_running_loop().create_future()
                    await self._process.write(json.dumps(request).encode() + b"\n", PATIENCE)
                    answer: dict[str, Any] = json.loads(await self._answer)
            except BaseException as error:
                # A late answer from this process would be taken for the answer to the next question.
                await self._end()
                if isinstance(error, (OSError, TimeoutError)):
                    raise RequestError(
                        "engine_failed",
                        f"the process behind puzzles and lessons: {error or 'no answer in time'}",
                    ) from None
                raise
            self._timer = asyncio.get_running_loop().call_later(IDLE, self._rest)
        if "error" in answer:
            raise RequestError("refused", answer["error"])
        return answer

    def on_line(self, line: bytes, _stamp: float) -> None:
        """Handle an answer of the process."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(line)

    def on_exit(self, ending: Exit) -> None:
        """Tell whoever waits for an answer that the process has ended."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ChildProcessError(f"it ended ({ending.text})"))

    def _rest(self) -> None:
        self._timer = None
        if not self._turn.locked() and self._process is not None:
            self._process.close_input()
            self._process = None

    async def _end(self) -> None:
        process, self._process, self._answer = self._process, None, None
        if process is not None:
            await process.wind_up(grace=0.0, mercy=0.0)

    async def close(self) -> None:
        """End the process."""
        if self._timer is not None:
            self._timer.cancel()
        questions = list(self._questions)
        for question in questions:
            question.cancel()
        if questions:
            await asyncio.wait(questions)
        await self._end()
