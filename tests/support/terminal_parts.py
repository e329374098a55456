"""What the terminal's tests share: a game known by heart, engines that play it, and a controller without a terminal."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from hnefi.engine.games import find
from hnefi.engine.records.rule_sets import finder
from hnefi.gui_adapter.terminal.controller import Controller
from hnefi.gui_adapter.terminal.opponents import Spec, by_command
from hnefi.gui_adapter.terminal.rules_process import RulesProcess
from hnefi.gui_adapter.terminal.saving import Files
from hnefi.gui_adapter.terminal.settings import Settings
from hnefi.gui_adapter.terminal.values import Reply, SideLetter, View

GAME = ("b4b2", "c4b4", "d1c1", "d4c4", "f4f2", "c4c7", "g4g6", "c7a7")
"""A whole game of brandubh: the king escapes to a7."""
FAULTS = Path(__file__).with_name("fault_engine.py")
FAKE = Path(__file__).with_name("fake_engine.py")
SHUFFLE = Path(__file__).with_name("shuffle_engine.py")
PATIENCE = 60.0
MOVETIME_MS = 60_000
"""Foreign engines are given so long: those of the tests answer at once, on a busy machine late."""
T = TypeVar("T")


def parrot(*words: str, moves: tuple[str, ...] = GAME) -> str:
    """The command of an engine that knows a game by heart, and what it does wrong."""
    return shlex.join([sys.executable, "-I", "-S", str(FAULTS), ",".join(moves), *words])


def script(path: Path, *words: str) -> str:
    return shlex.join([sys.executable, "-I", "-S", str(path), *words])


class SharedRules(RulesProcess):
    """One process for all tests of a module: a controller's end is not its end."""

    async def close(self) -> None:
        """Stay."""

    async def really_close(self) -> None:
        await super().close()


class House:
    """One loop and one process for the rules; controllers come and go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runner = asyncio.Runner()
        self.rules = self.run(self._rules())
        self.count = 0

    async def _rules(self) -> SharedRules:
        return SharedRules()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def close(self) -> None:
        self.run(self.rules.really_close())
        self.runner.close()

    def talk(
        self,
        story: Callable[[Person], Awaitable[None]],
        *,
        variant: str = "brandubh",
        engine: str | Spec | None = None,
        sides: str = "d",
        folder: Path | None = None,
        settings: Settings | None = None,
        start: bool = True,
        **more: Any,
    ) -> Person:
        """Let a person live through a story at a table; `engine` sits on `sides`."""
        return self.run(self._talk(story, variant, engine, sides, folder, settings, start, more))

    async def _talk(
        self,
        story: Callable[[Person], Awaitable[None]],
        variant: str,
        engine: str | Spec | None,
        sides: str,
        folder: Path | None,
        settings: Settings | None,
        start: bool,
        more: dict[str, Any],
    ) -> Person:
        self.count += 1
        place = folder or self.folder / str(self.count)
        controller = Controller(
            find(variant),
            settings or Settings(speed=0.0, replay=0.0),
            Files(finder(), folder=place / "journal", unfinished=place / "unfinished"),
            rules=more.pop("rules", self.rules),
            **more,
        )
        controller.session.players.seed = 1
        person = Person(controller, place)
        if engine is not None:
            spec = by_command(engine, find(variant)) if isinstance(engine, str) else engine
            controller.session.players.rival = replace(
                spec, movetime=spec.movetime or (None if spec.own else MOVETIME_MS)
            )
            for side in sides:
                controller.session.assign("a" if side == "a" else "d", controller.session.players.rival)
        if start:
            controller.start()
        try:
            await story(person)
        finally:
            await controller.close()
        return person


class Person:
    """Somebody who types lines and looks at the view."""

    def __init__(self, controller: Controller, folder: Path) -> None:
        self.controller = controller
        self.folder = folder

    @property
    def view(self) -> View:
        return self.controller.view

    @property
    def journal(self) -> Path:
        """The file of the games that were played."""
        (file,) = (self.folder / "journal").glob("*.jsonl")
        return file

    @property
    def said(self) -> list[str]:
        """Everything that was said."""
        return [line.text for line in self.view.log]

    async def types(self, *lines: str) -> Reply:
        """Type lines, none of which may fail; the last reply."""
        reply = Reply()
        for line in lines:
            reply = await self.controller.submit(line)
            assert not reply.failed, (line, reply.lines)
        return reply

    async def fails(self, line: str) -> str:
        """Type a line that must fail; what is said."""
        reply = await self.controller.submit(line)
        assert reply.failed, (line, reply.lines)
        return "\n".join(reply.lines)

    async def plays(self, *lines: str) -> None:
        """Type lines, each after everything has come to rest."""
        for line in lines:
            await self.controller.settled()
            await self.types(line)
        await self.controller.settled()

    async def sees(self, what: Callable[[View], object]) -> View:
        """Wait until the view is as expected."""
        deadline = time.monotonic() + PATIENCE
        while not what(self.view):
            assert time.monotonic() < deadline, self.view
            await asyncio.sleep(0.01)
        return self.view

    async def hears(self, text: str) -> None:
        """Wait until something was said."""
        await self.sees(lambda view: any(text in line.text for line in view.log))


def moves_of(view: View) -> list[str]:
    """The plies of the line that is shown."""
    return [entry.text for entry in view.history]


def to_move(view: View) -> SideLetter:
    return view.board.side
