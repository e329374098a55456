"""A run from its configuration to its last table: prepared, played, stopped, gone on with.

    schedule -> slots (or a backend) -> store -> progress -> screen

A result is stored before it is counted. The loop that reads clocks never writes: storing happens in a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
import threading
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from hnefi.engine.sides import Reason
from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.exit_codes import DONE, FAULTS, H0_ACCEPTED, INCONCLUSIVE, INTERRUPTED, STORAGE
from hnefi.protocol.hosts.text_table import safe
from hnefi.protocol.process import kill_all

from ..common import interrupts
from ..common.sprt import Sprt
from . import fingerprint, openings, option_reader, resolve, schedule
from .log import LOG, game_line
from .options import Config, ConfigError, Document
from .playing import Watch, adjudication, host_scale, play_with, slots_of
from .progress import Progress
from .schedule import Schedule
from .store import (
    CONFIG,
    FINGERPRINT,
    OPENINGS,
    StorageFailed,
    Store,
    StoreError,
    differences,
    run_digest,
    within,
    write_file,
)
from .traffic import FOLDER as TRAFFIC
from .traffic import Thinking, Traffic, joined
from .values import LATE, EngineSpec, GameResult, GameTask, Opening

UNSTORED = 32
"""So many games wait to be stored at most; then playing waits."""


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that is known before the first game. `ids` are what the engines call themselves."""

    config: Config
    specs: tuple[EngineSpec, ...]
    schedule: Schedule
    openings: Mapping[str, Sequence[Opening]]
    ids: tuple[str, ...] = ()

    @property
    def test(self) -> Sprt | None:
        """The sequential test of this run."""
        keys = ("elo0", "elo1", "alpha", "beta", "model", "unit", "siegmund")
        return Sprt(**{key: self.config["sprt." + key] for key in keys}) if self.config.testing else None

    def progress(self) -> Progress:
        """A walk over this run at its start."""
        return Progress(self.schedule, self.config.names, self.test)


class Play(Protocol):
    """Plays games: `slots.play`, or the same on other processes and machines."""

    def __call__(
        self, tasks: Iterable[GameTask], run: Run, *, abort: asyncio.Event, on_event: Watch | None
    ) -> AsyncGenerator[GameResult, None]: ...


class Screen(Protocol):
    """Who tells people how it goes; every method is called on the event loop and returns at once."""

    on_event: Watch | None

    def begin(self, run: Run, store: Store, progress: Progress) -> None:
        """The run begins, or goes on."""

    def game(self, result: GameResult) -> None:
        """A game was stored and is walked over as far as can be."""

    def say(self, text: str) -> None:
        """Something happened that is worth a line."""

    def end(self, words: str, ending: str) -> None:
        """Nothing more is played: tables, and in `words` how it ended; `ending` is that in one word."""


# Preparing


def prepare(config: Config) -> tuple[Run, dict[str, str]]:
    """A new run with its fingerprint; every engine was started once. ConfigError if it cannot be played."""
    scale = host_scale(config)
    config, ids = check_engines(config, resolve.specs(config, scale))
    specs = resolve.specs(config, scale)
    plan = schedule.make(config)
    expect_cores(config, specs)
    expect_lines(config, specs)
    adjudication(config)
    lists = openings.prepare(config, plan.openings, specs)
    return Run(config, specs, plan, lists, ids), fingerprint.of(config, specs, ids, lists)


def check_engines(config: Config, specs: Sequence[EngineSpec]) -> tuple[Config, tuple[str, ...]]:
    """Start one process of each distinct engine; the configuration with names, and what the engines call themselves.

    ConfigError with all that is wrong with them.
    """
    from .engine_slot import preflight

    if config["run.inside"]:
        from . import in_process

        if wrong := in_process.problems(specs):
            raise ConfigError("\n".join(wrong))
        ids = (in_process.IDENTITY,) * len(specs)
        return resolve.named(config, ids), ids
    checked = asyncio.run(preflight(specs, schedule.variants(config)))
    problems = [problem for one in checked for problem in one.problems]
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)))
    ids = tuple(one.name for one in checked)
    return resolve.named(config, ids), ids


def expect_cores(config: Config, specs: Sequence[EngineSpec]) -> None:
    """ConfigError if clocks run and there are more threads than cores."""
    from .slots import threads_of, usable_cores

    concurrency, places = slots_of(config, specs)
    timed = any(limits.timed for spec in specs for limits in spec.limits)
    threads = concurrency * threads_of(specs)
    if timed and not config["run.oversubscribe"] and threads > len(usable_cores()) and not places:
        raise ConfigError(
            f"run.concurrency {config['run.concurrency']}: {threads} engine threads on {len(usable_cores())} usable"
            " cores with clocks: expected fewer, or --oversubscribe"
        )


def expect_lines(config: Config, specs: Sequence[EngineSpec]) -> None:
    """ConfigError if lines are to be kept that other processes see."""
    if config["output.traffic"] and elsewhere(config, specs):
        from .slots import LIMIT

        raise ConfigError(
            f"output.traffic: expected no backend and at most {LIMIT} slots: lines stay where they are read"
        )


def elsewhere(config: Config, specs: Sequence[EngineSpec]) -> bool:
    """Whether other processes play the games."""
    from .slots import LIMIT

    return bool(config["run.backend"]) or slots_of(config, specs)[0] > LIMIT


def expect_new(config: Config) -> None:
    """ConfigError if the folder of a new run exists: better said before engines are started."""
    if config["run.out"] and Path(config["run.out"]).exists():
        raise ConfigError(f"run.out {shorten(config['run.out'])}: exists: expected a new folder")


def create(run: Run, items: Mapping[str, str]) -> Store:
    """The folder of a new run; StoreError if it cannot be made."""
    folder = Path(run.config["run.out"] or time.strftime("arena-%Y%m%d-%H%M%S")).absolute()
    files = {
        CONFIG: option_reader.to_toml(kept(run.config, folder)),
        FINGERPRINT: _json(items),
        OPENINGS: openings.to_lines({name: tuple(found) for name, found in run.openings.items()}),
    }
    return Store.create(folder, files)


def kept(config: Config, folder: Path) -> Config:
    """The configuration as it is stored in `folder`: without what concerns one start only, and with what lies in the
    folder as it is seen from there."""
    tables = {group: dict(table) for group, table in config.tables.items()}
    tables["control"] |= {"dry_run": False, "force": False}
    tables["run"]["out"] = ""
    for key in ("records", "jsonl"):
        if tables["output"][key]:
            tables["output"][key] = within(folder, Path(tables["output"][key]))
    return replace(config, tables=tables)


def _json(items: Mapping[str, str]) -> str:
    import json

    return json.dumps(items, indent=1) + "\n"


# Going on


def load_config(folder: Path, flags: Document | None = None) -> Config:
    """The configuration of a run's folder, with flags laid over it."""
    return resolve.resolve(option_reader.read_file(folder / CONFIG), flags or {})


def load_openings(store: Store) -> dict[str, tuple[Opening, ...]]:
    """The openings that a run keeps; StoreError if they cannot be read."""
    try:
        found = openings.from_lines(store.text(OPENINGS))
        for name in found:
            openings.find_variant(name)
    except ValueError as error:
        raise StoreError(f"{store.folder / OPENINGS}: {error}: expected lines as they were written") from None
    return found


def load_fingerprint(store: Store) -> dict[str, str]:
    import json

    try:
        return {str(key): str(value) for key, value in json.loads(store.text(FINGERPRINT)).items()}
    except (ValueError, AttributeError) as error:
        raise StoreError(f"{store.folder / FINGERPRINT}: {error}: expected it as it was written") from None


def reopen(store: Store, config: Config) -> Run:
    """A stored run as far as it can be known without starting an engine: enough to count and to report."""
    specs = resolve.specs(config)
    return Run(config, specs, schedule.make(config), load_openings(store))


def renew(store: Store, run: Run, *, force: bool = False) -> Run:
    """A run that can be gone on with: engines were started once, the fingerprint is that of old, and openings
    suffice. StoreError names every difference, unless it is forced: then the log records it."""
    scale = host_scale(run.config)
    config, ids = check_engines(run.config, resolve.specs(run.config, scale))
    specs = resolve.specs(config, scale)
    expect_lines(config, specs)
    adjudication(config)
    old = load_fingerprint(store)
    unlike = differences(old, fingerprint.of(config, specs, ids, run.openings))
    lists = run.openings
    if any(len(lists.get(name, ())) < run.schedule.openings for name in run.schedule.variants):
        lists = openings.prepare(config, run.schedule.openings, specs)
        unlike += [
            f"openings of {name}: begin otherwise than the {len(found)} that were played"
            for name, found in run.openings.items()
            if tuple(lists.get(name, ())[: len(found)]) != tuple(found)
        ]
    if unlike and not force:
        listed = "\n".join(f"  {item}" for item in unlike)
        raise StoreError(
            f"{store.folder}: this is not the same run any more (--force continues anyway):\n{listed}"
        )
    for item in unlike:
        store.note("forced", item)
    try:
        write_file(store.folder / OPENINGS, openings.to_lines({name: tuple(lists[name]) for name in lists}))
        write_file(store.folder / FINGERPRINT, _json(fingerprint.of(config, specs, ids, lists)))
        write_file(store.folder / CONFIG, option_reader.to_toml(kept(config, store.folder)))
    except OSError as error:
        raise StorageFailed(f"{store.folder}: {error.strerror or error}") from None
    return Run(config, specs, run.schedule, lists, ids)


def resume_command(store: Store) -> str:
    """What goes on with an interrupted run, as it is typed."""
    return f"hnefi arena resume {shlex.quote(str(store.folder))}"


# Playing


class Loop:
    """Plays what is missing of a run. `play_on` returns the exit code; a first interruption ends it soon, a second
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
        self._faults = 0
        self._abort = asyncio.Event()
        self._hurry = asyncio.Event()
        self._interrupts = 0
        self._finishing = threading.Event()
        self._results: asyncio.Queue[GameResult | None] = asyncio.Queue(UNSTORED)
        self._oddities = {(data[0], data[1]) for word, data in store.notes if word == "advisory"}
        self._late = 0.0

    async def play_on(self) -> int:
        """Play to the end, or until something stops it."""
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
            # Nothing that ends by this is a result any more.
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
        """What is still to be played, in the order of the ids, decided as slots become free."""
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
        """Store the first oddity of every kind and engine."""
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
        """No new games; running ones are aborted."""
        self._stopping = self._stopping or why
        self._abort.set()

    # What the log tells

    def _log_beginning(self) -> None:
        known = f"{len(self.store.rows)} games stored"
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
            LOG.warning("game %s: %d answers to nothing that was asked", result.task.id, result.stray)
        if result.lateness > max(self._late, LATE):
            self._late = result.lateness
            LOG.warning("game %s: the arena was late by %.1f ms", result.task.id, result.lateness)

    # Interruption

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Interrupts are told to `interrupt`, also those that came before. Where the loop is too busy to hear of one,
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
        """Somebody wants this to end; asked twice, at once."""
        self._interrupts += 1
        if self._interrupts > 1:
            LOG.info("interrupted again: engines are killed")
            self._hurry_up()
            return
        LOG.info("interrupted")
        self._stopping = self._stopping or "interrupted"
        if self.run.config["control.finish_games"]:
            self.screen.say("interrupted: running games are played to their end; once more ends them")
        else:
            self.screen.say("interrupted: running games are broken off")
            self._abort.set()
            # Engines that do not end by then are ended.
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
                return f"{self._failure}\nnothing is counted that is not stored; to continue: {resume}"
            case _:
                return f"interrupted; continue with\n{resume}"

    def _exit_code(self, ending: str) -> int:
        if ending == "complete" and self.progress.test is not None and self.run.config["control.sprt_exit"]:
            verdict = self.progress.test.verdict
            return {"H1": DONE, "H0": H0_ACCEPTED}.get(verdict or "", INCONCLUSIVE)
        return {"complete": DONE, "faults": FAULTS, "storage": STORAGE}.get(ending, INTERRUPTED)

    @property
    def digest(self) -> str:
        """The result digest of the games that count."""
        return run_digest(self.progress.counted)


def _kind(oddity: str) -> str:
    """Of what kind an oddity is: the word with which it begins."""
    return oddity.partition(" ")[0].rstrip(":")


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


def player_of(run: Run, folder: Path | None = None) -> Play:
    """Who plays a run in `folder`: slots of this process, or more processes where these do not suffice."""
    if elsewhere(run.config, run.specs):
        from .fanout import play

        return play
    return partial(play_in_slots, folder=folder)
