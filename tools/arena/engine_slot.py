"""The engine processes of one game: started, told what to play, replaced after a fault, ended in the background.

An engine slot is one engine's place in a game. Its process stays between games unless it did something wrong or is
wanted fresh for every game; nobody waits for the end of a process before `close`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

from hnefi.engine.games.tafl.fen import in_adk
from hnefi.protocol.answers import Option, VariantLine
from hnefi.protocol.client import (
    Engine,
    EngineError,
    EngineProtocolError,
    EngineStartError,
    Progress,
    Timeouts,
)

from ..common import compiling
from .values import EngineSpec, find_variant, is_rules

STOP = 0.5
"""Default seconds for a process to react."""

COMPILING = 900.0
"""Seconds of silence allowed to our own engine before it is first ready."""

WRITE = 10.0
"""Seconds that a process may leave a command unread."""


class StartFailure(EngineStartError):
    """An engine cannot be started, so no game can be played."""


WatchLine = Callable[[float, str, bytes], None]
"""Sees every line of a process: `time.monotonic()`, `>` or `<`, bytes."""


async def start(
    spec: EngineSpec,
    cores: Collection[int] = (),
    on_traffic: WatchLine | None = None,
    on_compiling: Callable[[Progress], None] | None = None,
    variant: str = "",
) -> Engine:
    """A greeted process with its options and first lines, ready; EngineError, and no process, if that fails.

    Ours is told of `variant` before anything that it must be ready for: it would compile the game it begins with.
    """
    timeouts = Timeouts(
        start=spec.start,
        ready=spec.ready,
        new_game=spec.new_game,
        answer=spec.ready,
        move=spec.move_timeout,
        stop=STOP,
        write=min(spec.ready, WRITE),
    )
    with _errors(spec) as errors:
        engine = await Engine.start(
            spec.command,
            spec.proto,
            cwd=spec.cwd,
            env=dict(spec.env),
            errors=errors,
            timeouts=timeouts,
            cores=cores,
            on_traffic=on_traffic,
            on_compiling=on_compiling,
        )
    try:
        if spec.player and variant:
            await engine.send(f"{'rules' if is_rules(variant) else 'variant'} {variant}")
        for line in spec.init:
            await engine.send(line)
        for name, value in spec.options:
            await _set_option(engine, name, value)
        await engine.is_ready()
    except BaseException:
        await engine.quit(spec.quit)
        raise
    return engine


def within(option: Option, seed: int) -> int:
    """The seed, folded into the range that the engine announces: with a small range it would refuse most games."""
    low, high = option.minimum, option.maximum
    if low is None or high is None or low <= seed <= high:
        return seed
    return low + seed % (high - low + 1)


async def _set_option(engine: Engine, name: str, value: str) -> None:
    """An empty value presses a button."""
    option = engine.options.get(name.casefold())
    pressed = option is not None and option.type == "button" and not value
    await engine.set_option(name, None if pressed else value)


def _errors(spec: EngineSpec) -> contextlib.AbstractContextManager[IO[bytes] | None]:
    if spec.stderr is None:
        return contextlib.nullcontext()
    try:
        return Path(spec.stderr).open("ab")
    except OSError as error:
        raise StartFailure(f"{spec.name}: stderr {spec.stderr}: {error.strerror or error}") from None


async def set_variant(engine: Engine, text: str) -> VariantLine | None:
    """Have `engine` play this variant; returns what it says about it. An engine without variants is not asked."""
    if not is_rules(text):
        return await engine.set_variant(text)
    if engine.proto == "uti":
        lines = await engine.ask(f"rules {text}", engine.timeouts.ready)
        for line in lines:
            if line.startswith("info string error "):
                raise EngineProtocolError(f"{engine.name}: {line.removeprefix('info string error ')}")
        return None
    if "rules" in engine.options:
        await engine.set_option("Rules", text)
    return None


class EngineSlot:
    """One engine at one board; `engine` is its process, None until needed."""

    def __init__(self, spec: EngineSpec, cores: Collection[int] = ()) -> None:
        self.spec = spec
        self.cores = cores
        self.engine: Engine | None = None
        self.knows_start = False
        self._variant = ""
        self._used = False
        self._faulted = False
        self._watch: WatchLine | None = None

    def watch(self, watch: WatchLine) -> None:
        """Pass every line of the process to `watch` from now on, including processes started later."""
        self._watch = watch
        if self.engine is not None:
            self.engine.on_traffic = watch

    @property
    def process(self) -> Engine:
        """The running process, after `prepare`."""
        assert self.engine is not None
        return self.engine

    @property
    def spent(self) -> bool:
        """Whether the process, if any, must not be used for another game."""
        return self.engine is not None and (
            self.engine.failure is not None or (self._used and self.spec.restart == "on")
        )

    async def prepare(self, variant: str, side: int, seed: int) -> None:
        """Ready for a game of `variant` as side 0 or 1; EngineError if it is not.

        `knows_start` says afterwards whether the engine means the same by `startpos` as we do.
        """
        if self.engine is None:
            if self._faulted and self.spec.restart == "off":
                raise StartFailure(f"{self.spec.name} is not started again after a fault (restart off)")
            self.engine = await start(self.spec, self.cores, self._watch, variant=variant)
            self._variant, self._used = "", False
        engine = self.engine
        if variant != self._variant:
            line = await set_variant(engine, variant)
            self.knows_start = line is not None and line.startpos == find_variant(variant).startpos
            self._variant = variant
        self._used = True
        if "side" in engine.options:
            await engine.set_option("Side", "ad"[side])
        if (option := engine.options.get("seed")) is not None:
            await engine.set_option("Seed", str(within(option, seed)))
        await engine.new_game()

    def position_line(self, fen: str, *, is_start: bool) -> str:
        """The `position` command for `fen`, without moves; `is_start` if that is where the variant begins."""
        if is_start and self.knows_start:
            return "position startpos"
        return f"position fen {in_adk(fen) if self.spec.letters == 'adk' else fen}"

    def release(self, *, faulted: bool = False) -> Coroutine[Any, Any, object] | None:
        """Release the process; returns the work left to end it, if there is one."""
        self._faulted = self._faulted or faulted
        engine, self.engine = self.engine, None
        if engine is None:
            return None
        engine.on_traffic = None
        return engine.quit(self.spec.quit)


class EngineSlots:
    """The engines of one concurrent game. Only those of the current game have a process."""

    def __init__(self, specs: Sequence[EngineSpec], cores: Collection[int] = ()) -> None:
        self._specs = specs
        self._cores = cores
        self._slots: dict[tuple[int, int], EngineSlot] = {}
        self._endings: set[asyncio.Task[object]] = set()

    def take(self, engines: tuple[int, int]) -> tuple[EngineSlot, EngineSlot]:
        """The engines of attackers and defenders; others are retired, and so is a process that is spent."""
        keys = [(engines[0], 0), (engines[1], int(engines[0] == engines[1]))]
        for key, slot in self._slots.items():
            if key not in keys or slot.spent:
                self.retire(slot)
        for key in keys:
            if key not in self._slots:
                self._slots[key] = EngineSlot(self._specs[key[0]], self._cores)
        return self._slots[keys[0]], self._slots[keys[1]]

    def retire(self, slot: EngineSlot, *, faulted: bool = False) -> None:
        """End the engine's process in the background."""
        ending = slot.release(faulted=faulted)
        if ending is not None:
            task = asyncio.ensure_future(ending)
            self._endings.add(task)
            task.add_done_callback(self._endings.discard)

    async def close(self) -> None:
        """End all processes and wait for them: less than two seconds."""
        for slot in self._slots.values():
            self.retire(slot)
        while self._endings:
            await asyncio.wait(self._endings)


@dataclass(frozen=True, slots=True)
class Checked:
    """What one process of an engine showed before any game: the name it gives itself, the dialect it speaks, the
    options it has, and what is wrong."""

    name: str = ""
    proto: str = ""
    options: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    failed: bool = False
    """Whether a program that is not ours ended or fell silent, rather than refused what it was asked."""


async def preflight(specs: Iterable[EngineSpec], variants: Iterable[str]) -> list[Checked]:
    """Start one process of every engine, one after the other, bring it to all `variants` and end it.

    What our own engine has to compile for these variants and its player, it compiles here, before any clock runs; that
    is shown (`compiling.report`), and no deadline hurries it.
    Engines that differ only in name, limits or margins are started once. Never fails: see `problems`.
    """
    variants = tuple(variants)
    seen: dict[object, Checked] = {}
    found = []
    for spec in specs:
        same = (spec.command, spec.proto, spec.options, spec.init, spec.cwd, spec.env)
        if same not in seen:
            seen[same] = await _check(spec, variants)
        found.append(seen[same])
    return found


async def _check(spec: EngineSpec, variants: tuple[str, ...]) -> Checked:
    plain = replace(spec, options=(), ready=max(spec.ready, COMPILING) if spec.player else spec.ready)
    try:
        engine = await start(plain, on_compiling=compiling.report, variant=next(iter(variants), ""))
    except ValueError as error:
        return Checked(problems=(f"{spec.name}: {error}",))
    except EngineError as error:
        return Checked(problems=(f"{spec.name}: {error}",), failed=not spec.player)
    steps: list[Callable[[], Awaitable[object]]] = [
        partial(_set_option, engine, name, value) for name, value in spec.options
    ]
    steps += [partial(set_variant, engine, variant) for variant in variants]
    problems, failed = [], False
    try:
        for step in (*steps, engine.is_ready):
            try:
                await step()
            except EngineProtocolError as error:
                problems.append(f"{spec.name}: {error}")
    except EngineError as error:
        problems.append(f"{spec.name}: {error}")
        failed = not spec.player
    finally:
        await engine.quit(spec.quit)
    options = tuple(option.name for option in engine.options.values())
    return Checked(engine.name, engine.proto, options, tuple(problems), failed)
