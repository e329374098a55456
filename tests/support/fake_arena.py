"""An arena without engines: games are made up from their tasks, so that runs are fast and always the same.

As a script: ``python fake_arena.py FOLDER [key=value]...`` plays a new run in FOLDER, or goes on with it, as
`hnefi arena` does, and ends with its exit code. With `serve=N` it does so N times, whenever it reads a line, each time
in a process of its own that begins by printing `pid P` and after whose end it prints `ended`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hnefi.tools.arena import loop, schedule
from hnefi.tools.arena.logs import game_line
from hnefi.tools.arena.loop import Loop
from hnefi.tools.arena.options import Config
from hnefi.tools.arena.progress import Progress
from hnefi.tools.arena.resolve import resolve
from hnefi.tools.arena.run import Run
from hnefi.tools.arena.schedule import make, seed
from hnefi.tools.arena.slots import in_pairs
from hnefi.tools.arena.store import CONFIG, Export, Store
from hnefi.tools.arena.values import EngineSpec, Fault, GameResult, GameTask, Opening, PlyLog, to_json

MOVES = ("a4a2", "d3a3", "d2d3", "b4b2", "d1c1", "f4f3")


def config(engines: int = 2, **flags: object) -> Config:
    """A configuration with our weakest player several times; `group_key=value` or run options."""
    given: dict[str, dict[str, object]] = {"run": {"variants": ["brandubh"], "pairs": 10, "concurrency": 2}}
    for key, value in flags.items():
        group, _, name = key.partition("__")
        given.setdefault(group if name else "run", {})[name or key] = value
    return resolve({"engine": [{"player": "random-blind"}] * engines}, given)


def prepared(settings: Config) -> Run:
    """A run that was prepared without engines: openings are numbered."""
    plan = make(settings)
    found = [Opening(None, (f"opening{number}",)) for number in range(plan.openings)]
    specs = tuple(EngineSpec(name, ("none",)) for name in settings.names)
    return Run(settings, specs, plan, dict.fromkeys(plan.variants, found), settings.names)


def result(task: GameTask, names: tuple[str, ...], fault: str = "", seconds: float = 0.0) -> GameResult:
    """The game that a task always ends in; with `fault` the attackers lose by it."""
    dice = hashlib.sha256(f"{task.id} {task.seeds}".encode()).digest()
    plies = tuple(
        PlyLog(MOVES[byte % len(MOVES)], cp=byte, nodes=byte, time=0.5) for byte in dice[: dice[0] % 20 + 3]
    )
    winner = ("a", "d", "draw")[dice[1] % 3]
    reason = ("king_captured", "king_escaped", "repetition")[dice[1] % 3]
    return GameResult(
        task=task,
        names=(names[task.engines[0]], names[task.engines[1]]),
        winner="d" if fault else winner,
        reason=fault or reason,
        plies=plies,
        captured=(dice[2] % 5, dice[3] % 5),
        fault=Fault(0, fault, f"made up: {fault}") if fault else None,
        seconds=seconds,
    )


class FakePlay:
    """Plays like `slots.play`: `slots` games at a time, each taking its own fraction of `pace` seconds.

    `faulty` engines (indices) crash whenever they attack; `deaf` games do not let themselves be aborted;
    `played` are the ids of all games begun.
    """

    def __init__(
        self, slots: int = 2, pace: float = 0.0, faulty: frozenset[int] = frozenset(), *, deaf: bool = False
    ) -> None:
        self.deaf = deaf
        self.slots = slots
        self.pace = pace
        self.faulty = faulty
        self.played: list[str] = []

    async def __call__(
        self, tasks: Iterable[GameTask], run: Run, *, abort: asyncio.Event, on_event: object = None
    ) -> AsyncGenerator[GameResult, None]:
        del on_event
        pairs = in_pairs(tasks)
        queue: asyncio.Queue[GameResult | None] = asyncio.Queue(1)

        async def slot() -> None:
            while (pair := None if abort.is_set() else next(pairs, None)) is not None:
                for task in pair:
                    if not abort.is_set():
                        self.played.append(task.id)
                        await self._wait(task, abort)
                        await queue.put(self._end(task, run, aborted=abort.is_set()))
            await queue.put(None)

        slots = [asyncio.ensure_future(slot()) for _ in range(self.slots)]
        left = self.slots
        try:
            while left:
                got = await queue.get()
                if got is None:
                    left -= 1
                else:
                    yield got
        finally:
            for waiting in slots:
                waiting.cancel()

    async def _wait(self, task: GameTask, abort: asyncio.Event) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self.pace * (seed(0, task.id, 0) % 100) / 100):
                await (asyncio.sleep(60) if self.deaf else abort.wait())

    def _end(self, task: GameTask, run: Run, *, aborted: bool) -> GameResult:
        if aborted:
            names = (run.config.names[0], run.config.names[1])
            return GameResult(task, names, None, "interrupted", ())
        return result(task, run.config.names, "crash" if task.engines[0] in self.faulty else "")


def play(
    settings: Config, folder: Path, fake: FakePlay, screen: loop.Screen | None = None
) -> tuple[int, Loop]:
    """Play a run in `folder`, a new one if there is none; the exit code and the loop."""
    ready = prepared(settings)
    store = Store.resume(folder) if folder.exists() else create(folder)
    with store:
        store.follow(jsonl_of(settings))

        async def everything() -> tuple[int, Loop]:
            loop = Loop(ready, store, fake, Plain() if screen is None else screen)
            return await loop.play_on(), loop

        return asyncio.run(everything())


def create(folder: Path) -> Store:
    files = {CONFIG: "", "fingerprint.json": "{}", "openings.jsonl": ""}
    return Store.create(folder, files)


def main(folder: str, *words: str) -> int:
    pace, slots = 0.0, 2
    flags: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        if key == "pace":
            pace = float(value)
        elif key == "slots":
            slots = int(value)
        else:
            flags[key] = {"true": True}.get(value, int(value) if value.isdigit() else value)
    deaf = flags.pop("deaf", False)
    for _ in range(flags.pop("serve", 0)):
        serve(folder, *(word for word in words if not word.startswith("serve")))
    code, loop = play(config(**flags), Path(folder), FakePlay(slots, pace, deaf=deaf))
    if loop.hurried:
        print("hurried", flush=True)
    return code


def serve(folder: str, *words: str) -> None:
    """Play in a child when asked to, and say when it has ended."""
    sys.stdin.readline()
    child = os.fork()
    if not child:
        print("pid", os.getpid(), flush=True)
        os._exit(main(folder, *words))
    os.waitpid(child, 0)
    print("\nended", flush=True)


def jsonl_of(settings: Config) -> tuple[Export, ...]:
    """The games as JSON, where the settings ask for them: made-up openings make no records."""
    path = settings["output.jsonl"]
    return (Export("jsonl", Path(path), game_json),) if path else ()


def game_json(result: GameResult) -> bytes:
    return json.dumps(to_json(result)).encode() + b"\n"


class Plain:
    """A line per game, a block every few pairs, the rest at the end."""

    on_event: Any = None

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._shown = 0
        self._run: Run
        self._progress: Progress

    def begin(self, run: Run, store: Store, progress: Progress) -> None:
        self._run, self._progress, self._shown = run, progress, progress.pairs
        stored = f", {len(store.rows)} games stored" if store.rows else ""
        self.say(f"{' - '.join(run.config.names)}: {len(run.schedule)} pairs in {store.folder}{stored}")
        if not self._quiet:
            for line in schedule.expected_pairs(run.config.test):
                self.say(line)

    def game(self, result: GameResult) -> None:
        if self._quiet:
            return
        self.say(game_line(result))
        every = self._run.config["rating.every"]
        if self._progress.pairs // every > self._shown // every:
            self.say(score_line(self._progress))
        self._shown = self._progress.pairs

    def say(self, text: str) -> None:
        try:
            print(text, flush=True)
        except BrokenPipeError:
            # Whoever looked on has gone; the run has not.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def end(self, words: str, _ending: str) -> None:
        self.say(score_line(self._progress))
        if self._progress.test is not None:
            one, two = self._run.config.names
            self.say(self._progress.test.conclusion(one, two))
        if self._progress.surplus:
            self.say(f"{self._progress.surplus} games beyond what counts are kept")
        self.say(words)


def score_line(progress: Progress) -> str:
    """Pairs and every engine's wins, draws and losses."""
    wins: dict[str, list[int]] = {name: [0, 0, 0] for name in progress.names}
    for game in progress.games():
        _, attackers, defenders, winner = game.ending
        place = {"a": 0, "draw": 1, "d": 2}[winner]
        wins[attackers][place] += 1
        wins[defenders][2 - place] += 1
    scores = " · ".join(f"{name} +{won} ={drawn} -{lost}" for name, (won, drawn, lost) in wins.items())
    return f"pairs {progress.pairs}/{len(progress.schedule)} · {scores}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
