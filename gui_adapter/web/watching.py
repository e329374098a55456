"""A page that watches: its frames `{"t": "run", "do": …}` about runs, their games, charts and matches."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from . import frames
from .frames import FrameError
from .matches import Matches
from .outbox import Outbox
from .runs import Runs

WATCHED_LIMIT: Final = 4
"""Maximum runs that one page may watch at once; beyond that, the oldest is dropped."""
NAME_LIMIT: Final = 256


class Viewer:
    """One page's view of runs. `take` raises RequestError."""

    def __init__(self, runs: Runs, matches: Matches, box: Outbox) -> None:
        self._runs = runs
        self._matches = matches
        self._box = box
        self._watching: list[str] = []

    async def take(self, frame: Mapping[str, Any]) -> None:
        """Execute a frame and answer it."""
        answer = await self._carry_out(frame)
        watched = answer.pop("watched", None)
        self._box.put({**answer, "t": "runs", "id": frame.get("id")})
        if watched is not None:
            watched.tell_all(self._box)

    async def _carry_out(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        run = frames.text(frame, "run", NAME_LIMIT)
        match frames.text(frame, "do", 16):
            case "list":
                runs, charts = await asyncio.to_thread(lambda: (self._runs.listed(), [*self._runs.charts()]))
                return {"runs": runs, "charts": charts, "matches": self._matches.most}
            case "watch":
                watched = await self._runs.watch(run, self._box)
                if run not in self._watching:
                    self._watching.append(run)
                    self._runs.leave(self._box, self._watching[:-WATCHED_LIMIT])
                    self._watching = self._watching[-WATCHED_LIMIT:]
                return {"key": watched.key, "meta": watched.meta, "watched": watched}
            case "leave":
                self._runs.leave(self._box, [run])
                self._watching = [name for name in self._watching if name != run]
                return {}
            case "games":
                first, engine = frames.number(frame, "first"), frames.text(frame, "engine", 64)
                return self._runs.games(run, self._box, first, engine)
            case "game":
                return await self._runs.game(run, self._box, frames.text(frame, "game", 32))
            case "chart":
                name = frames.text(frame, "chart", NAME_LIMIT)
                return {"svg": await asyncio.to_thread(self._runs.chart, name)}
            case "match":
                begun = await self._matches.begin(frame)
                return {"run": begun.run, "word": begun.word}
            case "end":
                self._matches.end(frames.text(frame, "word", 64))
                return {}
            case what:
                expected = "list, watch, leave, games, game, chart, match or end"
                raise FrameError("bad_frame", f"do {what}: expected {expected}", frame.get("id"))

    def leave(self) -> None:
        """The page is gone."""
        self._runs.leave(self._box, self._watching)
        self._watching = []
