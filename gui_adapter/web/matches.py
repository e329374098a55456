"""Matches of two players requested by a page: runs of `hnefi arena`, which are watched like any other run.

The arena is started as a separate program, since it plays, counts and records better than a page could.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import secrets
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hnefi import players
from hnefi.engine.games import find
from hnefi.engine.games.base_variant import VariantError
from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.sessions.engine_process import RequestError
from hnefi.protocol.process import Exit, Listener, Process

from . import frames
from .frames import FrameError
from .runs import Runs

LOG = logging.getLogger("hnefi.web")

PAIRS_LIMIT: Final = 100
NODES_LIMIT: Final = 100_000
LEVELS: Final = 10
SETTLED: Final = 60.0
"""Seconds for the arena to write down its task; it may have to compile first."""
ENDING: Final = (2.0, 3.0)
"""Seconds for it to end after the end of its input, and after SIGTERM."""
SPEC: Final = re.compile(r"level:(\d{1,2})|player:([a-z0-9-]{1,64})")


@dataclass(eq=False)
class Match(Listener):
    """One run that was started here. Anybody who knows `word` may end it."""

    run: str
    folder: Path
    word: str

    def __post_init__(self) -> None:
        self.process: Process | None = None
        self.ended = False

    def on_exit(self, ending: Exit) -> None:
        """The arena has ended; everything that it has played is in its folder."""
        self.ended = True
        said = self.process.error_tail().strip() if self.process is not None else ""
        LOG.info("match run=%s ended: %s%s", self.run, ending.text, f": {said[-200:]}" if said else "")


class Matches:
    """The matches of a server, at most `most` at once, in `folder`."""

    def __init__(self, runs: Runs, folder: Path, most: int) -> None:
        self._runs = runs
        self._folder = folder
        self.most = most
        self._matches: list[Match] = []

    def __len__(self) -> int:
        self._matches = [match for match in self._matches if not match.ended]
        return len(self._matches)

    async def begin(self, frame: Mapping[str, Any]) -> Match:
        """Start the match that a frame asks for; returns when it can be watched. RequestError."""
        if not self.most:
            raise RequestError("too_many", "this server plays no matches")
        if len(self) >= self.most:
            raise RequestError("too_many", f"{len(self)} matches are being played: try again later")
        command = self._command(frame)
        run = time.strftime("match-%Y%m%d-%H%M%S-") + secrets.token_hex(2)
        match = Match(run, self._folder / run, secrets.token_urlsafe(16))
        self._matches.append(match)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            match.process = await Process.start([*command, "--out", str(match.folder)], match)
        except OSError as error:
            match.ended = True
            raise RequestError("engine_failed", f"the arena cannot be started: {error}") from None
        self._runs.add(self._folder)
        await self._settled(match)
        return match

    async def _settled(self, match: Match) -> None:
        """Returns when the run can be found; RequestError with the arena's sentence if it refuses."""
        try:
            async with asyncio.timeout(SETTLED):
                while run_missing(match.folder) and not match.ended:
                    await asyncio.sleep(0.05)
        except TimeoutError:
            if match.process is not None:
                match.process.kill()
        if run_missing(match.folder):
            said = match.process.error_tail().strip().splitlines() if match.process is not None else []
            raise RequestError("engine_failed", shorten(said[0] if said else "the arena has ended", 200))

    def _command(self, frame: Mapping[str, Any]) -> list[str]:
        ident = frame.get("id")
        try:
            variant = find(frames.text(frame, "variant"))
        except VariantError as error:
            raise RequestError("unknown_variant", str(error)) from None
        names, engines = [], []
        for which in ("one", "other"):
            name, spec = _engine(frames.text(frame, which), variant.name, ident)
            if name in names:
                name = f"{name}-again"
            names.append(name)
            engines += ["--engine", f"name={name},{spec}"]
        pairs, nodes = _whole(frame, "pairs", PAIRS_LIMIT), _whole(frame, "nodes", NODES_LIMIT)
        return [
            *(sys.executable, "-m", "hnefi.tools.cli", "arena", *engines, "--variant", variant.name),
            *("--pairs", str(pairs), "--nodes", str(nodes), "--concurrency", "1", "--live", "--quiet"),
            *("--name", f"{names[0]} against {names[1]}"),
            # At a pace at which people can follow the games.
            *("--no-inside", "--wait", "500"),
        ]

    def end(self, word: str) -> None:
        """End a match; its games are kept, and `hnefi arena resume` continues it. RequestError."""
        for match in self._matches:
            if secrets.compare_digest(match.word, word) and match.process is not None:
                interrupt(match.process)
                return
        raise RequestError("no_run", "this match is not yours, or it is over")

    async def close(self) -> None:
        """End all matches."""
        running = [match.process for match in self._matches if match.process is not None and not match.ended]
        await asyncio.gather(*(_wind_up(process) for process in running))


async def _wind_up(process: Process) -> None:
    interrupt(process)
    if await process.wait(ENDING[0]) is None:
        await process.wind_up(grace=0.0, mercy=ENDING[1])


def interrupt(process: Process) -> None:
    """Ask only the arena to end; it ends its engines."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGTERM)


def run_missing(folder: Path) -> bool:
    """Whether the arena has not yet written down its task."""
    return not (folder / "config.toml").is_file() or not (folder / "live.jsonl").is_file()


def _engine(text: str, variant: str, ident: object) -> tuple[str, str]:
    """The name and the specification for the arena of `level:3` or `player:NAME`."""
    found = SPEC.fullmatch(text)
    if found is None or (found[1] and not 1 <= int(found[1]) <= LEVELS):
        raise FrameError("bad_frame", f"{shorten(text)}: expected level:1 to level:10, or player:NAME", ident)
    if found[1]:
        return f"level-{found[1]}", f"player=default,option.SkillLevel={found[1]}"
    try:
        player = players.load(found[2])
    except players.PlayerError as error:
        raise FrameError("bad_frame", str(error), ident) from None
    misfit = player.misfit(find(variant))
    if misfit is not None:
        raise FrameError("bad_frame", f"{found[2]}: {misfit}", ident)
    return player.name, f"player={player.name}"


def _whole(frame: Mapping[str, Any], key: str, most: int) -> int:
    value = frame.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise FrameError("bad_frame", f"{key} {shorten(value)}: expected 1 to {most}", frame.get("id"))
    return value
