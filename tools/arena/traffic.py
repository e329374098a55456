"""What engines and arena say to each other, line by line: a file for each game, and reports for viewers.

Both listen where clocks run, so they only take notes there: lines are formatted, compressed and written by a thread of
its own after the game, and of reports no more is parsed than is told.
"""

from __future__ import annotations

import gzip
import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hnefi.engine.sides import Reason
from hnefi.protocol.answers import parse_info

from .values import GameResult, GameTask

FOLDER = "traffic"
HALF = 2 << 20
"""So many bytes from a game's beginning and from its end are kept; what lies between is cut."""
ENTRY = 150
"""What keeping a line takes besides its bytes."""
PENDING = 8
"""Games that wait for a slow disk; the lines of more are dropped."""
BATCH = 256
INTERVAL = 0.5
"""Seconds between two reports of a side."""
REPORT = 4096
"""Longer reports are not told to viewers."""
MOVES = 64
"""Moves of a line of thought that are told."""

Line = tuple[float, int, str, bytes]
"""`time.monotonic()`, side, arrow, bytes."""


class Lines:
    """The lines of one game: its first and its last ones, and how many were cut between them."""

    def __init__(self, half: int = HALF) -> None:
        self.first: list[Line] = []
        self.last: deque[Line] = deque()
        self.cut = 0
        self.cut_bytes = 0
        self._half = half
        self._room = half
        self._kept = 0

    def add(self, line: Line) -> None:
        """Take a line; what is too much is cut out of the middle."""
        size = len(line[3]) + ENTRY
        if self._room >= size:
            self._room -= size
            self.first.append(line)
            return
        self._room = 0
        self.last.append(line)
        self._kept += size
        while self._kept > self._half:
            old = len(self.last.popleft()[3])
            self._kept -= old + ENTRY
            self.cut += 1
            self.cut_bytes += old


class Traffic:
    """Writes `FOLDER/ID.txt.gz` for every game that ends: microseconds since its start, engine, arrow (`>` ours, `<`
    the engine's) and line, with tabs between them.

    A file appears whole or not at all. `say` hears, from another thread, of what could not be written.
    """

    def __init__(
        self, folder: Path, names: Sequence[str], say: Callable[[str], object], half: int = HALF
    ) -> None:
        self._folder = folder
        self._names = tuple(names)
        self._say = say
        self._half = half
        self._open: dict[str, tuple[float, Lines]] = {}
        self._ended: queue.Queue[tuple[GameResult, float, Lines] | None] = queue.Queue(PENDING)
        self._failed = False
        self._thread = threading.Thread(target=self._work, name="traffic", daemon=True)
        self._thread.start()

    def on_event(self, event: str, facts: dict[str, Any]) -> None:
        """A game begins or ends."""
        if event == "start":
            self._open[facts["task"].id] = time.monotonic(), Lines(self._half)
        elif event == "end":
            result: GameResult = facts["result"]
            began, lines = self._open.pop(result.task.id, (0.0, None))
            if lines is None or result.reason == Reason.INTERRUPTED:
                return
            try:
                self._ended.put_nowait((result, began, lines))
            except queue.Full:
                self._say(f"traffic of game {result.task.id} is dropped: the disk is too slow")

    def on_traffic(self, task: GameTask, side: int, stamp: float, arrow: str, line: bytes) -> None:
        """A line was sent or read."""
        known = self._open.get(task.id)
        if known is not None:
            known[1].add((stamp, side, arrow, line))

    def close(self) -> None:
        """Write what waits; takes as long as that takes."""
        self._ended.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (entry := self._ended.get()) is not None:
            try:
                self._write(*entry)
            except OSError as error:
                if not self._failed:
                    self._say(f"{error.filename or self._folder}: {error.strerror or error}: traffic is lost")
                self._failed = True

    def _write(self, result: GameResult, began: float, lines: Lines) -> None:
        self._folder.mkdir(exist_ok=True)
        path = self._folder / f"{result.task.id}.txt.gz"
        made = path.with_name(f"{path.name}.new")
        try:
            with gzip.open(made, "wb") as stream:
                self._fill(stream, result, began, lines)
            made.replace(path)
        except OSError:
            with suppress(OSError):
                made.unlink(missing_ok=True)
            raise

    def _fill(self, stream: gzip.GzipFile, result: GameResult, began: float, lines: Lines) -> None:
        batch: list[str] = []
        for text in self._texts(result, began, lines):
            batch.append(text)
            if len(batch) == BATCH:
                stream.write("".join(batch).encode())
                batch = []
                # The thread that reads clocks may need the interpreter.
                time.sleep(0)
        stream.write("".join(batch).encode())

    def _texts(self, result: GameResult, began: float, lines: Lines) -> Iterator[str]:
        task = result.task
        names = [self._names[engine] for engine in task.engines]
        day = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(result.started))
        yield f"# game {task.id}, {task.variant}, {names[0]} (a) - {names[1]} (d), {day} UTC\n"
        for line in lines.first:
            yield _text(line, began, names)
        if lines.cut:
            yield f"# {lines.cut} lines with {lines.cut_bytes} bytes are cut out here\n"
        for line in lines.last:
            yield _text(line, began, names)


def _text(line: Line, began: float, names: Sequence[str]) -> str:
    stamp, side, arrow, data = line
    return f"{round((stamp - began) * 1e6)}\t{names[side]}\t{arrow}\t{printable(data)}\n"


def printable(data: bytes) -> str:
    """Bytes from an unknown source, as text without control characters."""
    text = data.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


class Thinking:
    """Makes `info` events (slot, task, side, and what the engine thinks) of the engines' reports on their best line, at
    most two a second and side."""

    def __init__(self, tell: Callable[[str, dict[str, Any]], None]) -> None:
        self._tell = tell
        self._slots: dict[str, int] = {}
        self._told: dict[tuple[str, int], float] = {}

    def on_event(self, event: str, facts: dict[str, Any]) -> None:
        """A game begins or ends."""
        if event == "start":
            self._slots[facts["task"].id] = facts["slot"]
        elif event == "end":
            game = facts["result"].task.id
            self._slots.pop(game, None)
            for side in (0, 1):
                self._told.pop((game, side), None)

    def on_traffic(self, task: GameTask, side: int, stamp: float, arrow: str, line: bytes) -> None:
        """A line was sent or read."""
        if arrow != "<" or not line.startswith(b"info ") or b" score " not in line or len(line) > REPORT:
            return
        if stamp - self._told.get((task.id, side), -math.inf) < INTERVAL or task.id not in self._slots:
            return
        report = parse_info(line.decode("utf-8", "replace"))
        if report is None or report.score is None or report.multipv != 1:
            return
        self._told[task.id, side] = stamp
        said = {name: getattr(report, name) for name in ("depth", "seldepth", "nodes", "nps", "time")}
        score = {"cp": report.score.cp, "mate": report.score.mate, "bound": report.bound or None}
        place = {"slot": self._slots[task.id], "task": task, "side": "ad"[side]}
        self._tell("info", {**place, **score, **said, "pv": list(report.pv[:MOVES])})


def joined(*listeners: Callable[..., None] | None) -> Callable[..., None] | None:
    """One listener for all that there are; None for none."""
    known = [listener for listener in listeners if listener is not None]
    if len(known) < 2:
        return known[0] if known else None

    def everybody(*told: Any) -> None:
        for listener in known:
            listener(*told)

    return everybody
