"""How a run goes, while it goes: what the live part of a terminal shows, and events for viewers."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hnefi.protocol.hosts.text_table import WIDTH, clip, width

from ..common.live import TALLEST, duration
from .report import signed, standings
from .summary import Summary
from .values import GameResult, GameTask, PlyLog

BACKLOG = 10_000
"""Events that wait for a slow disk; more are dropped."""
LAST = 5.0
"""Seconds for the last lines: viewers learn from them how the last game has ended, also from a busy machine."""


# The live part


def live_view(summary: Summary, elapsed: float, played: int, columns: int = WIDTH) -> list[str]:
    """What a terminal shows of a run that has played `played` games in `elapsed` seconds: one line for two engines,
    a compact table for more."""
    line = live_line(summary, elapsed, played, columns)
    if summary.facts.duel:
        return [line]
    rows = standings(summary.engines[: TALLEST - 3], columns - 1)
    hidden = len(summary.engines) - (TALLEST - 3)
    return [*rows, *([f"… and {hidden} more"] if hidden > 0 else []), line]


def live_line(summary: Summary, elapsed: float, played: int, columns: int = WIDTH) -> str:
    """`pairs 128/400 · A 141 B 87 =28 · Elo +74.4 ±26.1 · …`; what matters least is left out until it fits."""
    facts = summary.facts
    parts: list[tuple[int, str]] = []
    if facts.swap:
        parts.append((0, f"pairs {summary.pairs}/{facts.pairs}"))
    else:
        parts.append((0, f"games {summary.games}/{facts.games}"))
    if facts.duel:
        parts += _duel_parts(summary)
    parts += _run_parts(summary, elapsed, played)
    chosen: list[int] = []
    for index in sorted(range(len(parts)), key=lambda index: parts[index][0]):
        if not chosen or width(_joined(parts, [*chosen, index])) < columns:
            chosen.append(index)
    return clip(_joined(parts, chosen), columns)


def _joined(parts: Sequence[tuple[int, str]], chosen: Sequence[int]) -> str:
    return " · ".join(parts[index][1] for index in sorted(chosen))


def _duel_parts(summary: Summary) -> list[tuple[int, str]]:
    """The parts about two engines, each with its rank: 0 matters most."""
    one, two = (summary.engine(name) for name in summary.facts.engines)
    record, strength = one.record, one.strength
    names = [clip(line.name, 16) for line in (one, two)]
    parts = [(1, f"{names[0]} {record.wins} {names[1]} {record.losses} ={record.draws}")]
    if strength.elo_error is not None:
        parts.append((3, f"Elo {signed(strength.elo)} ±{strength.elo_error:.1f}"))
    elif strength.elo is not None:
        parts.append((3, f"Elo {strength.elo:+}"))
    test = summary.test
    if test is not None and test.share is not None:
        parts.append((2, f"LLR {test.llr:.2f} ({100 * test.share:.0f} % of {test.leaning})"))
    return parts


def _run_parts(summary: Summary, elapsed: float, played: int) -> list[tuple[int, str]]:
    parts = []
    score = summary.total.attackers.score
    if score is not None:
        parts.append((6, f"attackers {100 * score:.0f} %"))
    if played and elapsed > 0:
        pace = played / elapsed
        parts.append((7, f"{60 * pace:.0f} games/min"))
        left = max(0, summary.facts.games - summary.games) / pace
        # A test may end before all its pairs are played.
        parts.append((4, f"ETA {'≤ ' if summary.test is not None else ''}{duration(left)}"))
    parts.append((1 if summary.faults else 5, f"faults {summary.faults}"))
    return parts


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
        # Slots tell of boards, the screen's thread of tables.
        self._lock = threading.Lock()
        self._texts: queue.Queue[tuple[str, bool] | None] = queue.Queue(BACKLOG)
        self._thread = threading.Thread(target=self._run, name="live.jsonl", daemon=True)
        self._thread.start()

    def __call__(self, event: str, facts: Mapping[str, Any]) -> None:
        """An event of the slots, with what they tell about it."""
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
            # A start that opens the file is there already.
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
        """A new file in the place of the old one, which stays as `live.1.jsonl`."""
        if stream is not None:
            stream.close()
        if self._path.exists():
            self._path.replace(self._path.with_suffix(".1" + self._path.suffix))
        return self._path.open("wb", buffering=0)


def _without(facts: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: fact for name, fact in facts.items() if name not in names}
