"""What a run writes for people and viewers while it is played: `arena.log`, `live.jsonl` and the lines of its engines.

    LOG.warning("game %s: the arena was late by %.1f ms", game, late)

All of it is called while clocks run, so callers only queue events; threads format, compress and write them, and a
slow or full disk delays nobody.
"""

from __future__ import annotations

import gzip
import json
import logging
import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from typing import Any

from hnefi.engine.sides import Reason
from hnefi.protocol.answers import parse_info
from hnefi.protocol.hosts.text_table import clip, safe

from .summary import Summary
from .values import GameResult, GameTask, PlyLog

# arena.log


FILE = "arena.log"
TRAFFIC = "traffic"
"""The folder for the engines' lines."""
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
    """Write messages from `level` up (`off`: none) to the folder's log; `show` gets warnings and errors, in another
    thread. The yielded function writes everything and closes the log."""
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


BACKLOG = 10_000
"""Events to queue for a slow disk; more are dropped."""
LAST = 5.0
"""Seconds for the last lines: viewers learn from them how the last game ended, even on a busy machine."""


# Events for viewers


class LiveLog:
    """`live.jsonl`: what happens on the boards, one JSON object a line, for whoever watches; never read back.

    Events are `start`, `ply`, `info` (see `traffic`), `end` and `table`, each with `event` and `at`
    (Unix time). After `limit` bytes the file becomes `live.1.jsonl` and a new one begins, with a `start` (its `moves`
    so far) of every running game. Best effort: what cannot be written is lost.
    """

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        *,
        limit: int = 16 << 20,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._names = tuple(names)
        self._limit = limit
        self._clock = clock
        self._running: dict[str, dict[str, Any]] = {}
        self._size = 0
        # Slots report boards, the screen's thread reports tables.
        self._lock = threading.Lock()
        self._texts: queue.Queue[tuple[str, bool] | None] = queue.Queue(BACKLOG)
        self._thread = threading.Thread(target=self._run, name="live.jsonl", daemon=True)
        self._thread.start()

    def __call__(self, event: str, facts: Mapping[str, Any]) -> None:
        """An event of the slots, with its details."""
        with self._lock:
            match event:
                case "start":
                    self._start(facts["slot"], facts["task"], facts["fen"])
                case "ply":
                    self._ply(facts["slot"], facts["task"], facts["number"], facts["ply"])
                case "info":
                    self._info(facts)
                case "end":
                    self._end(facts["slot"], facts["result"])

    def table(self, summary: Summary) -> None:
        """How the engines stand."""
        engines = [
            {
                "rank": line.rank,
                "name": line.name,
                "wins": line.record.wins,
                "draws": line.record.draws,
                "losses": line.record.losses,
                "elo": line.strength.elo if line.strength.elo_error is not None else None,
                "elo_error": line.strength.elo_error,
            }
            for line in summary.engines
        ]
        test = summary.test
        with self._lock:
            self._write(
                "table",
                pairs=summary.pairs,
                planned=summary.facts.pairs,
                games=summary.games,
                faults=summary.faults,
                llr=None if test is None else test.llr,
                engines=engines,
            )

    def close(self) -> None:
        """Write what is left, unless the disk has stopped."""
        with suppress(queue.Full):
            self._texts.put(None, timeout=LAST)
        self._thread.join(LAST)

    def _start(self, slot: int, task: GameTask, fen: str) -> None:
        attackers, defenders = (self._names[engine] for engine in task.engines)
        facts = {
            "slot": slot,
            "id": task.id,
            "variant": task.variant,
            "attackers": attackers,
            "defenders": defenders,
            "start": task.opening.start,
            "opening": list(task.opening.moves),
            "fen": fen,
            "moves": [],
        }
        self._running[task.id] = facts
        self._write("start", **facts)

    def _ply(self, slot: int, task: GameTask, number: int, ply: PlyLog) -> None:
        if task.id in self._running:
            self._running[task.id]["moves"].append(ply.move)
        known = {name: getattr(ply, name) for name in ("cp", "mate", "depth", "nodes", "time", "clock")}
        self._write(
            "ply", slot=slot, id=task.id, number=number, move=ply.move, captures=list(ply.captures), **known
        )

    def _info(self, facts: Mapping[str, Any]) -> None:
        """A line of thinking: `slot`, `task`, `side`, and whatever else JSON can hold."""
        self._write("info", slot=facts["slot"], id=facts["task"].id, **_without(facts, "slot", "task"))

    def _end(self, slot: int, result: GameResult) -> None:
        self._running.pop(result.task.id, None)
        fault = None
        if result.fault is not None:
            fault = {
                "side": "ad"[result.fault.side],
                "reason": result.fault.reason,
                "text": result.fault.text,
            }
        self._write(
            "end",
            slot=slot,
            id=result.task.id,
            winner=result.winner,
            reason=result.reason,
            fault=fault,
            plies=len(result.plies),
            captured=list(result.captured),
        )

    def _write(self, event: str, **facts: Any) -> None:
        line = self._line(event, facts)
        anew = not self._size or self._size + len(line) > self._limit
        if anew:
            running = [self._line("start", game) for game in self._running.values()]
            # The start event that opens the file is already in it.
            line = "".join(running) if event == "start" else "".join([*running, line])
            self._size = 0
        self._size += len(line)
        with suppress(queue.Full):
            self._texts.put_nowait((line, anew))

    def _line(self, event: str, facts: Mapping[str, Any]) -> str:
        return (
            json.dumps({"event": event, "at": round(self._clock(), 3), **facts}, separators=(",", ":")) + "\n"
        )

    def _run(self) -> None:
        stream: Any = None
        while (entry := self._texts.get()) is not None:
            text, anew = entry
            with suppress(OSError):
                if anew or stream is None:
                    stream = self._renew(stream)
                stream.write(text.encode("ascii"))
        if stream is not None:
            with suppress(OSError):
                stream.close()

    def _renew(self, stream: Any) -> Any:
        """Start a new file; the old one is kept as `live.1.jsonl`."""
        if stream is not None:
            stream.close()
        if self._path.exists():
            self._path.replace(self._path.with_suffix(".1" + self._path.suffix))
        return self._path.open("wb", buffering=0)


def _without(facts: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: fact for name, fact in facts.items() if name not in names}


# Traffic


HALF = 2 << 20
"""Bytes kept from the beginning and from the end of a game; what lies between is cut."""
ENTRY = 150
"""Bytes of memory per line besides its text."""
PENDING = 8
"""Games to queue for a slow disk; the lines of more are dropped."""
BATCH = 256
INTERVAL = 0.5
"""Seconds between two reports of a side."""
REPORT = 4096
"""Longer reports are not sent to viewers."""
MOVES = 64
"""Moves of a pv to send to viewers."""

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
        """Add a line; if there are too many, some are cut from the middle."""
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
    """Writes `traffic/ID.txt.gz` for every game that ends: microseconds since its start, engine, arrow (`>` ours, `<`
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
        """Write everything in the queue; blocks until done."""
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
    """One listener that calls all of them; None if there are none."""
    known = [listener for listener in listeners if listener is not None]
    if len(known) < 2:
        return known[0] if known else None

    def everybody(*told: Any) -> None:
        for listener in known:
            listener(*told)

    return everybody
