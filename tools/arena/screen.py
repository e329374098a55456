"""Reports a run's progress: from its events to the live line, tables, `summary.json`, plots and `live.jsonl`.

The run's loop reads clocks, so its calls only queue events; a thread that owns counts and stream handles them in their
order.
"""

from __future__ import annotations

import errno
import json
import queue
import shlex
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hnefi.engine.wording import counted
from hnefi.protocol.hosts.text_table import WIDTH, clip, encodable, safe, width

from ..common.live import REDRAW, TALLEST, Live, Pace, duration, is_terminal
from .logs import LiveLog, game_line
from .report import block, count_rows, facts_of, final, signed, standings, state_of
from .schedule import expected_pairs
from .summary import Counts, ReportError, RunFacts, SprtLine, Summary, document, sprt_line, summarize

if TYPE_CHECKING:
    from .progress import Progress
    from .run import Run
    from .store import Row, Store
    from .values import GameResult, Watch

SUMMARY = "summary.json"
LIVE = "live.jsonl"
PLOTS = "plots"


class Screen:
    """Shows a run on `out`, or, where only its summary is wanted there (`as_json`), on `err`.

    `quiet` leaves the final tables only. Call `begin` first and `end` last; `end` waits until all is said.
    """

    on_event: Watch | None = None

    def __init__(
        self,
        *,
        quiet: bool = False,
        plain: bool = False,
        as_json: bool = False,
        out: Any = None,
        err: Any = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._live = Live(self._err if as_json else self._out, plain=plain)
        self._quiet = quiet
        self._as_json = as_json
        self.unwritten: OSError | None = None
        """The error that stopped the output, a full disk for example."""
        self._clock = clock
        self._notes: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="screen", daemon=True)
        self._run: Run
        self._store: Store
        self._progress: Progress
        self._facts: RunFacts
        self._folder = ""
        self._log: LiveLog | None = None
        self._seen = 0
        self._shown = 0
        # What follows belongs to the thread.
        self._counts = Counts()
        self._test: SprtLine | None = None
        self._began = 0.0
        self._played = 0

    # Called by the run's loop

    def begin(self, run: Run, store: Store, progress: Progress) -> None:
        """The run begins or resumes."""
        self._run, self._store, self._progress = run, store, progress
        self._facts = facts_of(run, store.folder)
        self._folder = shlex.quote(str(store.folder))
        self._shown = progress.pairs
        self._began = self._clock()
        if run.config["output.live"]:
            self._log = LiveLog(store.folder / LIVE, run.config.names)
            self.on_event = self._log
        self._thread.start()
        stored = len(store.rows)
        self._note(lambda: self._introduce(stored))
        self._take()

    def game(self, result: GameResult) -> None:
        """A game was stored; `progress` has counted all that it can."""
        line, fault = game_line(result), result.fault is not None
        self._take(played=True)
        every = self._run.config["rating.every"]
        # The final tables follow a complete run at once.
        due = self._progress.pairs // every > self._shown // every and not self._progress.complete
        self._shown = self._progress.pairs
        if not self._quiet:
            hint = f"  hnefi arena report {self._folder} --game {result.task.id}" if fault else ""
            self._note(lambda: self._tell(line, hint, due))

    def say(self, text: str) -> None:
        """Report an event in a line."""
        if self._thread.ident is None:
            self._live.report(text.split("\n"))
        else:
            self._note(lambda: self._live.report(text.split("\n")))

    def warn(self, text: str) -> None:
        """Print a line on standard error; on a terminal, above the live part."""

        def tell() -> None:
            if self._live.terminal and is_terminal(self._err):
                self._live.report([text])
            else:
                print(encodable(safe(text), self._err.encoding), file=self._err, flush=True)

        if self._thread.is_alive():
            self._note(tell)
        else:
            with suppress(OSError):
                tell()

    def end(self, words: str, ending: str = "") -> None:
        """Playing is over: show the tables, and how it ended in `words`."""
        self._take()
        self._note(lambda: self._finish(words, ending))
        self._notes.put(None)
        self._thread.join()

    def _take(self, *, played: bool = False) -> None:
        """Pass on what was counted since the last call."""
        rows = self._progress.counted[self._seen :]
        self._seen += len(rows)
        test = sprt_line(self._facts, self._progress.test)
        self._note(lambda: self._count(rows, test, played))

    def _note(self, job: Callable[[], None]) -> None:
        self._notes.put_nowait(job)

    # The thread

    def _work(self) -> None:
        pause = REDRAW if self._live.terminal else None
        while True:
            try:
                job = self._notes.get(timeout=pause)
            except queue.Empty:
                job = self._live.tick
            if job is None:
                return
            # The reader of the stream may have gone, or its disk be full; the run continues without it.
            try:
                job()
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    self.unwritten = error

    def _introduce(self, stored: int) -> None:
        if self._quiet:
            return
        lines = block(self._summary())
        self._live.heading(lines[0])
        known = [f"{counted(stored, 'game')} stored"] if stored else []
        self._live.report([*lines[1:2], *known, *expected_pairs(self._facts.test)])
        if self._live.terminal:
            self._live.show(self._view)

    def _count(self, rows: Sequence[Row], test: SprtLine | None, played: bool) -> None:
        count_rows(self._counts, self._progress, rows)
        self._test = test
        self._played += played

    def _tell(self, line: str, hint: str, due: bool) -> None:
        self._live.game(line, hint)
        self._live.tick()
        if due:
            summary = self._summary()
            if not self._live.terminal:
                self._live.report(["", *block(summary), ""])
            if self._log is not None:
                self._log.table(summary)

    def _view(self) -> list[str]:
        return live_view(self._summary(), self._clock() - self._began, self._played, self._live.columns)

    def _summary(self) -> Summary:
        return summarize(self._facts, self._counts, test=self._test, fit=False)

    def _finish(self, words: str, ending: str) -> None:
        state = state_of(self._run, self._store, self._progress, ending)
        summary = summarize(self._facts, self._counts, state, self._test)
        # Files first: whoever looked at the stream may have gone.
        said = [*self._files(summary, interrupted=ending == "interrupted"), words]
        self._live.close()
        if self._as_json:
            print(json.dumps(document(summary), indent=1), file=self._out, flush=True)
        else:
            lines = final(summary)
            self._live.heading(lines[0])
            self._live.report([*lines[1:], ""])
        for text in said:
            self._live.report(text.split("\n"))

    def _files(self, summary: Summary, *, interrupted: bool) -> list[str]:
        """Write the files that a run leaves besides its log; returns sentences about those that failed."""
        from .store import write_file

        said = []
        folder = self._store.folder
        if self._log is not None:
            self._log.table(summary)
            self._log.close()
        try:
            write_file(folder / SUMMARY, json.dumps(document(summary), indent=1) + "\n")
            if self._run.config["output.plots"] and interrupted:
                # Whoever interrupts does not want to wait for a library.
                said.append(f"plots are not drawn: hnefi arena report {self._folder} --plots draws them")
            elif self._run.config["output.plots"]:
                from . import plots

                series = plots.score_series(self._progress.games(), self._facts.engines)
                plots.draw(summary, series, folder / PLOTS)
        except OSError as error:
            said.append(f"{error.filename or folder}: {error.strerror or error}: not written")
        except ReportError as error:
            said.append(str(error))
        return said


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


class LineScreen:
    """Shows a run as one line (`Live.step`), for commands whose own report comes later."""

    on_event: Watch | None = None

    def __init__(self, live: Live, title: str) -> None:
        self._live = live
        self._title = title
        self._pace = Pace(0)

    def begin(self, run: Run, store: Store, progress: Progress) -> None:  # noqa: ARG002
        """The run begins or resumes."""
        self._pace = Pace(run.schedule.games)
        self._pace.add(sum(row.winner is not None for row in store.rows.values()), timed=False)

    def game(self, result: GameResult) -> None:  # noqa: ARG002
        """A game was stored."""
        self._pace.add()
        self._live.step(self._line)

    def _line(self) -> str:
        pace = self._pace
        return f"{self._title}: games {pace.done:,}/{pace.total:,} · {pace.rate:.1f} games/s{pace.eta()}"

    def say(self, text: str) -> None:
        """Report an event in a line."""
        self._live.report(text.split("\n"))

    def end(self, words: str, ending: str) -> None:
        """Nothing more is played."""
        if ending == "complete":
            words = f"{self._title}: {self._pace.done:,} games, {words}"
        self._live.report(words.split("\n"))


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
