"""Playing on a ladder: its rungs against each other, others against its rungs. Each is a run of the arena, in a folder.

All players are in this process (`arena.in_process`), so a run needs no engine processes. The same command goes on
with a folder that is there; `hnefi arena resume FOLDER` and `hnefi arena report FOLDER` know it as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..arena.options import Config
from ..common import interrupts
from ..common.live import Live, duration, is_terminal
from .ladder import Ladder, LadderError, LimitedPlayer

if TYPE_CHECKING:
    from ..arena.progress import Progress
    from ..arena.run import Run
    from ..arena.store import Store
    from ..arena.values import GameResult, Opening

PAUSE = 10.0
"""Seconds between two lines about the progress where there is no terminal."""
NEAR = 4
"""So many rungs are near."""


def rungs(ladder: Ladder, seed: int, jobs: int, backend: str = "") -> Config:
    """The run of all rungs: neighbours often, all others now and then."""
    return _config(
        ladder,
        ladder.rungs,
        ladder.variants,
        seed,
        {
            "name": f"{ladder.name} seed {seed}",
            "format": "ladder",
            "pairs": ladder.pairs,
            "others": ladder.others,
            **_hands(jobs, backend),
        },
    )


def gauntlet(
    ladder: Ladder,
    one: LimitedPlayer,
    against: Sequence[LimitedPlayer],
    variants: Sequence[str],
    pairs: int,
    seed: int,
    jobs: int,
    after: int = 0,
    backend: str = "",
) -> Config:
    """The run of one contestant against some rungs; `after` openings are passed over."""
    told = {
        "name": f"{one.name} on {ladder.name} seed {seed}" + (", near" if after else ""),
        "format": "gauntlet",
        "pairs": pairs,
        **_hands(jobs, backend),
    }
    return _config(ladder, (one, *against), variants, seed, told, after)


def _hands(jobs: int, backend: str) -> dict[str, Any]:
    """Threads of this process, or processes of a backend."""
    return {"concurrency": 1, "backend": backend, "jobs": jobs} if backend else {"concurrency": jobs}


def _config(
    ladder: Ladder,
    contestants: Sequence[LimitedPlayer],
    variants: Sequence[str],
    seed: int,
    told: Mapping[str, Any],
    after: int = 0,
) -> Config:
    from ..arena import resolve

    name, elo = ladder.anchor
    rating = {"anchor": {"name": name, "elo": elo}} if any(one.name == name for one in contestants) else {}
    document = {
        "run": {"variants": list(variants), "seed": seed, "inside": True, **told},
        "openings": {
            "source": "file",
            "file": str(ladder.openings.resolve()),
            "first": first_opening(ladder, seed) + after,
        },
        "adjudicate": {"max_plies": ladder.max_plies},
        "rating": rating,
        "engine": [one.engine() for one in contestants],
    }
    return resolve.resolve(document, {})


def first_opening(ladder: Ladder, seed: int) -> int:
    """The number of the first opening that a seed plays, from 1: neighbouring seeds have no opening in common, as long
    as the list is long enough for two."""
    from . import frozen

    lists = frozen.openings(ladder)
    parts = min(len(lists[name]) for name in ladder.variants) // ladder.pairs
    return (seed - 1) % parts * ladder.pairs + 1


def play(
    config: Config,
    lists: Mapping[str, Sequence[Opening]],
    folder: Path,
    screen: Screen,
    *,
    force: bool = False,
) -> int:
    """Play a run from the ladder's own openings, or resume it if its folder exists; the arena's exit code.

    StoreError or ConfigError if it cannot be played; LadderError for a folder of something else.
    """
    from ..arena import fingerprint, resolve, run, schedule
    from ..arena.store import Store

    if folder.exists():
        with Store.resume(folder.absolute()) as store:
            old = run.load_config(
                folder, {"run": {key: config[f"run.{key}"] for key in ("concurrency", "backend", "jobs")}}
            )
            if old["run.name"] != config["run.name"]:
                raise LadderError(
                    f"{folder}: the run {old['run.name']!r:.80} is there: expected a new folder, or that of"
                    f" {config['run.name']!r}"
                )
            known = run.reopen(store, old)
            progress = known.progress()
            progress.walk(store.rows)
            if not progress.complete:
                known = run.renew(store, known, force=force)
            return _loop(known, store, screen)
    named, ids = run.check_engines(config, resolve.specs(config))
    specs = resolve.specs(named)
    plan = schedule.make(named)
    used = {name: tuple(lists[name]) for name in plan.variants}
    prepared = run.Run(named, specs, plan, used, ids)
    items = fingerprint.of(named, specs, ids, used)
    with run.create(_at(prepared, folder), items) as store:
        return _loop(prepared, store, screen)


def _at(prepared: Run, folder: Path) -> Run:
    """The run with its folder in its configuration, where it is looked for when made."""
    from dataclasses import replace

    tables = {group: dict(table) for group, table in prepared.config.tables.items()}
    tables["run"]["out"] = str(folder)
    return replace(prepared, config=replace(prepared.config, tables=tables))


def _loop(prepared: Run, store: Store, screen: Screen) -> int:
    from ..arena.loop import Loop, player_of

    async def everything() -> int:
        return await Loop(prepared, store, player_of(prepared, store.folder), screen).play_on()

    code = asyncio.run(everything())
    interrupts.check()
    return code


def near(ladder: Ladder, ratings: Mapping[str, float], name: str) -> tuple[LimitedPlayer, ...]:
    """The `NEAR` rungs whose ratings are nearest to that of `name`, in the ladder's order."""
    here = ratings[name]
    chosen = sorted(ladder.rungs, key=lambda rung: abs(ratings[rung.name] - here))[:NEAR]
    return tuple(rung for rung in ladder.rungs if rung in chosen)


class Screen:
    """Tells how a run goes: a live line on a terminal, a line now and then elsewhere."""

    on_event: Callable[[str, dict[str, Any]], None] | None = None

    def __init__(self, live: Live, title: str) -> None:
        self._live = live
        self._title = title
        self._began = 0.0
        self._shown = 0.0
        self._played = 0
        self._stored = 0
        self._games = 0

    def begin(self, run: Run, store: Store, progress: Progress) -> None:  # noqa: ARG002
        """The run begins, or is resumed."""
        self._began = self._shown = time.monotonic()
        self._stored = sum(row.winner is not None for row in store.rows.values())
        self._games = run.schedule.games

    def game(self, result: GameResult) -> None:  # noqa: ARG002
        """A game was stored."""
        self._played += 1
        now = time.monotonic()
        if self._live.terminal:
            self._live.show(self._line)
        elif now - self._shown >= PAUSE:
            self._shown = now
            self._live.report(self._line())

    def _line(self) -> list[str]:
        spent = max(1e-3, time.monotonic() - self._began)
        done = self._stored + self._played
        line = f"{self._title}: games {done:,}/{self._games:,}"
        if self._played:
            line += f" · {self._played / spent:.1f} games/s"
            line += f" · ETA {duration((self._games - done) * spent / self._played)}"
        return [line]

    def say(self, text: str) -> None:
        """Report an event in a line."""
        self._live.report(text.split("\n"))

    def end(self, words: str, ending: str) -> None:
        """Nothing more is played."""
        if ending == "complete":
            done = self._stored + self._played
            self._live.report([f"{self._title}: {done:,} games, {words}"])
        else:
            self._live.report(words.split("\n"))


def live(stream: Any, *, plain: bool) -> Live:
    """Where progress is shown."""
    return Live(stream, plain=plain or not is_terminal(stream))


class Counter:
    """Tells how much of something is done, as a `Screen` does for games."""

    def __init__(self, live: Live, what: str) -> None:
        self._live = live
        self._what = what
        self._first: tuple[float, int] | None = None
        self._shown = 0.0

    def __call__(self, done: int, whole: int) -> None:
        """So many are done, of so many."""
        now = time.monotonic()
        began, first = self._first = self._first or (now, done)
        line = f"{self._what} {done:,}/{whole:,}"
        if done > first:
            line += f" · {(done - first) / max(1e-3, now - began):.1f}/s"
            line += f" · ETA {duration((whole - done) * (now - began) / (done - first))}"
        if self._live.terminal:
            self._live.show(lambda: [line])
        elif now - self._shown >= PAUSE or done == whole:
            self._shown = now
            self._live.report([line])
