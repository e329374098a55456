"""What the arena has to say about itself: `arena.log` in the run's folder, warnings on standard error as well.

    LOG.warning("game %s: the arena was late by %.1f ms", game, late)

A call only leaves a note: a thread writes, and a disk that cannot be written blocks no caller.
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path

from hnefi.engine.sides import Reason
from hnefi.protocol.hosts.text_table import clip, safe

from .values import GameResult

FILE = "arena.log"
LOG = logging.getLogger("hnefi.arena")
LOG.propagate = False
LOG.addHandler(logging.NullHandler())
LOG.setLevel(logging.CRITICAL + 1)


class _File(logging.FileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the library's name
        """A log that cannot be written does not stop the run, and is reported once."""


class _Show(logging.Handler):
    def __init__(self, show: Callable[[str], object]) -> None:
        super().__init__(logging.WARNING)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        self._show(f"{record.levelname.lower()}: {record.getMessage()}")


@contextmanager
def recording(folder: Path, level: str, show: Callable[[str], object]) -> Iterator[Callable[[], None]]:
    """Write what is said from `level` on (`off`: nothing) to the folder's log; `show` gets the warnings and errors
    among it, in another thread. What is given ends it at once, all that was said being written."""
    if level == "off":
        yield lambda: None
        return
    form = logging.Formatter("%(asctime)s.%(msecs)03d %(levelname)-7s %(message)s", "%Y-%m-%d %H:%M:%S")
    form.converter = time.gmtime
    handlers: list[logging.Handler] = [_Show(show)]
    try:
        handlers.append(_File(folder / FILE, encoding="utf-8", errors="backslashreplace"))
        handlers[-1].setFormatter(form)
    except OSError as error:
        show(f"warning: {folder / FILE}: {error.strerror or error}: not written")
    notes: queue.SimpleQueue[object] = queue.SimpleQueue()
    handler = QueueHandler(notes)
    listener = QueueListener(notes, *handlers, respect_handler_level=True)
    ended = False

    def end() -> None:
        nonlocal ended
        if not ended:
            ended = True
            LOG.removeHandler(handler)
            LOG.setLevel(logging.CRITICAL + 1)
            listener.stop()
            for one in handlers:
                one.close()

    LOG.addHandler(handler)
    LOG.setLevel(level.upper())
    listener.start()
    try:
        yield end
    finally:
        end()


def game_line(result: GameResult) -> str:
    """`game 17.2 mine (a) – simple (d): 0-1, king escaped, ply 62`, with the fact of a fault."""
    score = {"a": "1-0", "d": "0-1", "draw": "½-½"}.get(result.winner or "", "no result")
    reason = Reason(result.reason).words if result.reason in set(Reason) else safe(result.reason)
    fact = str(result.extra.get("fact", "")) if result.fault is None else result.fault.text
    more = f" ({clip(fact, 160)})" if fact else ""
    attackers, defenders = (clip(name, 40) for name in result.names)
    return f"game {result.task.id} {attackers} (a) – {defenders} (d): {score}, {reason}{more}, ply {len(result.plies)}"
