"""Plays a run, from its first game to its last table.

    schedule -> slots (or a backend) -> store -> progress -> screen

A result is stored before it is counted. The loop that reads clocks never writes: storing happens in a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
import threading
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from hnefi.engine.sides import Reason
from hnefi.engine.wording import counted
from hnefi.protocol.hosts.exit_codes import DONE, FAULTS, H0_ACCEPTED, INCONCLUSIVE, INTERRUPTED, STORAGE
from hnefi.protocol.hosts.text_table import safe
from hnefi.protocol.process import kill_all

from ..common import interrupts
from .logs import LOG, TRAFFIC, Thinking, Traffic, game_line, joined
from .progress import Progress
from .run import Run, resume_command
from .slots import elsewhere, play_with, slots_of
from .store import StorageFailed, Store, run_digest
from .values import LATE, GameResult, GameTask, Watch

UNSTORED = 32
"""The most games that may wait to be stored; at this number, playing pauses."""


class Play(Protocol):
    """Plays games: `slots.play`, or its equivalent in other processes or on other machines."""

    def __call__(
        self, tasks: Iterable[GameTask], run: Run, *, abort: asyncio.Event, on_event: Watch | None
    ) -> AsyncGenerator[GameResult, None]: ...


class Screen(Protocol):
    """Reports progress; every method is called on the event loop and must return at once."""

    on_event: Watch | None

    def begin(self, run: Run, store: Store, progress: Progress) -> None:
        """The run begins or resumes."""

    def game(self, result: GameResult) -> None:
        """A game was stored; `progress` has counted all that it can."""

    def say(self, text: str) -> None:
        """Report an event in a line."""

    def end(self, words: str, ending: str) -> None:
        """Playing is over: show the tables, and how it ended in `words`; `ending` is the same in one word."""


class Loop:
    """Plays the missing games of a run. `play_on` returns the exit code; a first interruption ends it soon, a second
    at once (`hurried`: engines were killed then, and the event loop still holds what they were part of)."""

    def __init__(self, run: Run, store: Store, play: Play, screen: Screen) -> None:
        self.run = run
        self.store = store
        self.screen = screen
        self.progress = run.progress()
        self.hurried = False
        self._play = play
        self._stopping = ""
        self._failure: StorageFailed | None = None
        self._abort = asyncio.Event()
        self._hurry = asyncio.Event()
        self._interrupts = 0
        self._finishing = threading.Event()
        self._results: asyncio.Queue[GameResult | None] = asyncio.Queue(UNSTORED)
        self._oddities = {(data[0], data[1]) for word, data in store.notes if word == "advisory"}
        self._late = 0.0

    async def play_on(self) -> int:
        """Play until the end, or until something stops the run."""
        for repair in self.store.repairs:
            self.screen.say(repair)
        for sentence in self.progress.walk(self.store.rows):
            self.screen.say(sentence)
        self.screen.begin(self.run, self.store, self.progress)
        self._log_beginning()
        with self._signals():
            if not self.progress.complete:
                await self._play_and_store()
            self._finishing.set()
            ending = self.ending()
            words = self._words(ending).replace("\n", " ")
            LOG.log(logging.ERROR if ending == "storage" else logging.INFO, "%s: %s", ending, words)
            self.screen.end(self._words(ending), ending)
        return self._exit_code(ending)

    async def _play_and_store(self) -> None:
        storing = asyncio.ensure_future(self._store_results())
        playing = asyncio.ensure_future(self._play_games())
        hurry = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait({playing, storing, hurry}, return_when=asyncio.FIRST_COMPLETED)
        if storing.done():
            # Only by a mistake of ours: nothing may be played that is not stored.
            playing.cancel()
            await asyncio.wait({playing})
            storing.result()
        self.hurried = not playing.done()
        if self.hurried:
            # A game that this ends is no longer a result.
            kill_all()
        hurry.cancel()
        await self._results.put(None)
        await storing
        if not self.hurried:
            playing.result()

    async def _play_games(self) -> None:
        async with contextlib.aclosing(
            self._play(self._missing(), self.run, abort=self._abort, on_event=self.screen.on_event)
        ) as results:
            async for result in results:
                if result.reason != Reason.INTERRUPTED and not self._hurry.is_set():
                    await self._results.put(result)

    def _missing(self) -> Iterator[GameTask]:
        """The games still to play, in id order, decided as slots become free."""
        rows = self.store.rows
        games = (1, 2) if self.run.schedule.swap else (1,)
        for number in range(1, len(self.run.schedule) + 1):
            if all((number, game) in rows for game in games):
                continue
            for task in self.run.schedule.tasks(number, self.run.openings):
                if self._stopping:
                    return
                if (number, task.game) not in rows and self.progress.needs(task):
                    yield task

    async def _store_results(self) -> None:
        """Store results as they come, several at a time if they come faster, then count and show them."""
        ended = False
        while not ended:
            batch = [await self._results.get()]
            while not self._results.empty():
                batch.append(self._results.get_nowait())
            ended = None in batch
            games = [result for result in batch if result is not None]
            if not games or self._failure is not None:
                continue
            try:
                said = await asyncio.to_thread(self._commit, games)
            except StorageFailed as error:
                self._failure = error
                self._stop("storage")
                continue
            for result in games:
                self.screen.game(result)
                self._log_game(result)
            for sentence in said:
                self.screen.say(sentence)
                LOG.info(sentence)
            self._judge(games)

    def _commit(self, games: Sequence[GameResult]) -> list[str]:
        self.store.append(games)
        said = self.progress.walk(self.store.rows)
        for pair, earlier in self.progress.duplicates.items():
            self.store.note("duplicate_of", [pair, earlier])
        for result in games:
            self._note_oddities(result)
        return said

    def _note_oddities(self, result: GameResult) -> None:
        """Store the first advisory of each kind and engine."""
        for text in result.advisories:
            engine = next((name for name in result.names if text.startswith(f"{name}: ")), "")
            kind = _kind(text.removeprefix(f"{engine}: "))
            if (engine, kind) not in self._oddities:
                self._oddities.add((engine, kind))
                self.store.note("advisory", [engine, kind, result.task.id, text])
                LOG.warning("game %s, %s", result.task.id, safe(text))

    def _judge(self, games: Sequence[GameResult]) -> None:
        """Whether the run ends here."""
        if self.run.config["control.fail_on_fault"] and any(game.fault is not None for game in games):
            self._stop("faults")
        elif self.progress.decided:
            self._stop("decided")
        elif self.progress.stopped_by_faults:
            self._stop("withdrawn")

    def _stop(self, why: str) -> None:
        """Start no new games and abort those in progress."""
        self._stopping = self._stopping or why
        self._abort.set()

    # What the log tells

    def _log_beginning(self) -> None:
        known = f"{counted(len(self.store.rows), 'game')} stored"
        LOG.info("%s: %d pairs, %s", self.store.folder, len(self.run.schedule), known)
        for number, spec in enumerate(self.run.specs):
            called = self.run.ids[number] if number < len(self.run.ids) else ""
            LOG.info("engine %s (%s): %s", safe(spec.name), safe(called), safe(shlex.join(spec.command)))

    def _log_game(self, result: GameResult) -> None:
        LOG.info("%s", game_line(result))
        LOG.debug("game %s: %.3f s, late by %.3f ms at most", result.task.id, result.seconds, result.lateness)
        for line in str(result.extra.get("stderr", "")).splitlines():
            LOG.debug("game %s, standard error: %s", result.task.id, safe(line))
        if result.stray:
            LOG.warning("game %s: %d answers without a question", result.task.id, result.stray)
        if result.lateness > max(self._late, LATE):
            self._late = result.lateness
            LOG.warning("game %s: the arena was late by %.1f ms", result.task.id, result.lateness)

    # Interruption

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Pass interrupts to `interrupt`, earlier ones included. Where the loop is too busy to hear of one,
        or the last tables take too long, the process ends."""
        loop = asyncio.get_running_loop()

        def leave(*, finishing: bool) -> None:
            if finishing or not self._finishing.is_set():
                caught.leave()

        def told() -> None:
            finishing = self._finishing.is_set()
            if not finishing:
                loop.call_soon_threadsafe(self.interrupt)
            if finishing or not self.run.config["control.finish_games"]:
                last = threading.Timer(
                    interrupts.GRACE if finishing else 2 * interrupts.GRACE,
                    leave,
                    kwargs={"finishing": finishing},
                )
                last.daemon = True
                timers.append(last)
                last.start()

        timers: list[threading.Timer] = []
        with interrupts.caught(lambda: [self._words("interrupted")], None) as caught, interrupts.told(told):
            yield
        for timer in timers:
            timer.cancel()

    def interrupt(self) -> None:
        """A request to end the run; the second one ends it at once."""
        self._interrupts += 1
        if self._interrupts > 1:
            LOG.info("interrupted again: engines are killed")
            self._hurry_up()
            return
        LOG.info("interrupted")
        self._stopping = self._stopping or "interrupted"
        if self.run.config["control.finish_games"]:
            self.screen.say("interrupted: running games are finished first; interrupt again to stop them")
        else:
            self.screen.say("interrupted: running games are stopped")
            self._abort.set()
            # Engines still running then are killed.
            asyncio.get_running_loop().call_later(interrupts.GRACE, self._hurry_up)

    def _hurry_up(self) -> None:
        self._abort.set()
        self._hurry.set()

    # How it ended

    def ending(self) -> str:
        """complete, interrupted, faults or storage."""
        if self._failure is not None:
            return "storage"
        if self.progress.stopped_by_faults or self._stopping == "faults":
            return "faults"
        return "complete" if self.progress.complete else "interrupted"

    def _words(self, ending: str) -> str:
        resume = resume_command(self.store)
        match ending:
            case "complete":
                return f"result digest {self.digest}"
            case "faults":
                return "stopped by engine faults" + (
                    f"; continue with\n{resume}" if self._stopping == "faults" else ""
                )
            case "storage":
                return f"{self._failure}\nonly stored games count; to continue: {resume}"
            case _:
                return f"interrupted; continue with\n{resume}"

    def _exit_code(self, ending: str) -> int:
        if ending == "complete" and not self.progress.counted and self.progress.unstarted:
            return FAULTS
        if ending == "complete" and self.progress.test is not None and self.run.config["control.sprt_exit"]:
            verdict = self.progress.test.verdict
            return {"H1": DONE, "H0": H0_ACCEPTED}.get(verdict or "", INCONCLUSIVE)
        return {"complete": DONE, "faults": FAULTS, "storage": STORAGE}.get(ending, INTERRUPTED)

    @property
    def digest(self) -> str:
        """The digest of the results that count."""
        return run_digest(self.progress.counted)


def _kind(oddity: str) -> str:
    """The kind of an advisory: its first word."""
    return oddity.partition(" ")[0].rstrip(":")


def play(run: Run, store: Store, screen: Screen) -> int:
    """Play the missing games of a run in its folder; returns the exit code. Raises as `interrupts.check` does."""

    async def everything() -> int:
        return await Loop(run, store, player_of(run, store.folder), screen).play_on()

    code = asyncio.run(everything())
    interrupts.check()
    return code


def player_of(run: Run, folder: Path | None = None) -> Play:
    """What plays a run in `folder`: slots of this process, or other processes where one is not enough."""
    if elsewhere(run.config, run.specs):
        from .fanout import play

        return play
    return partial(play_in_slots, folder=folder)


async def play_in_slots(
    tasks: Iterable[GameTask],
    run: Run,
    *,
    abort: asyncio.Event,
    on_event: Watch | None = None,
    folder: Path | None = None,
) -> AsyncGenerator[GameResult, None]:
    """Play in this process, on this machine. With a run's `folder`, lines are kept there if the run wants that."""
    concurrency, cores = slots_of(run.config, run.specs)
    thinking = Thinking(on_event) if on_event is not None else None
    traffic = None
    if folder is not None and run.config["output.traffic"]:
        traffic = Traffic(folder / TRAFFIC, run.config.names, LOG.warning)
    told = [watcher for watcher in (thinking, traffic) if watcher is not None]
    games = play_with(
        tasks,
        run.config,
        run.specs,
        concurrency,
        cores,
        abort=abort,
        on_event=joined(on_event, *(watcher.on_event for watcher in told)),
        on_traffic=joined(*(watcher.on_traffic for watcher in told)),
    )
    try:
        async with contextlib.aclosing(games):
            async for result in games:
                yield result
    finally:
        if traffic is not None:
            await asyncio.to_thread(traffic.close)
