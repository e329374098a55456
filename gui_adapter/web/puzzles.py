"""Puzzles for pages: which one comes next, whether a move is right, and the solver's rating.

On a private server the rating is the one that `hnefi puzzle` keeps. If several people have access through a token, or
if nothing may be written to disk, each browser keeps its own rating and sends it along.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.puzzles import scores as score_files
from hnefi.protocol.hosts.puzzles.exercise import THEMES, themes, usable
from hnefi.protocol.hosts.puzzles.scores import Scores, ScoresError
from hnefi.protocol.hosts.puzzles.sitting import Sitting
from hnefi.protocol.hosts.puzzles.suite import SHIPPED, Entry, read
from hnefi.protocol.hosts.sessions.engine_process import RequestError

from . import frames
from .frames import FrameError
from .helper import Helper

ACTIONS: Final = ("next", "show", "try", "hint", "solution")
SCORES_LIMIT: Final = 48 * 1024
"""Maximum characters of the scores that a browser sends along."""


@cache
def suite() -> dict[str, Entry]:
    """The puzzles by id."""
    return {entry.id: entry for entry in read(SHIPPED) if usable(entry)}


class Desk:
    """One page's puzzles. `kept` says whether scores are in the file of `hnefi puzzle`."""

    def __init__(self, helper: Helper, kept: bool) -> None:
        self._helper = helper
        self._kept = kept
        self._turn = asyncio.Lock()
        self._sitting: Sitting | None = None
        self._moves: list[str] = []
        """The correct moves of the puzzle so far."""
        self._hinted = False

    async def take(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        """The `puzzle` frame in answer to a `puzzle` frame; FrameError or RequestError."""
        async with self._turn:
            return await self._take(frame)

    async def _take(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        ident = frame.get("id")
        action = frames.text(frame, "do", 16)
        if action not in ACTIONS:
            raise FrameError(
                "bad_frame", f"do {shorten(action)}: expected one of {', '.join(ACTIONS)}", ident
            )
        sitting = self._sitting
        if sitting is None:
            sitting = self._sitting = Sitting(await asyncio.to_thread(self._scores, frame))
        if action in ("next", "show"):
            # A puzzle counts as shown only after its first position has arrived.
            entry = sitting.choose(_wanted(frame, sitting.scores)) if action == "next" else _named(frame)
            answer = await self._ask(entry, "show", [])
            sitting.show(entry)
            self._moves, self._hinted = [], False
            return self._told(sitting, entry, ident, answer)
        shown = sitting.entry
        if shown is None:
            raise FrameError("bad_puzzle", f"{action}: expected a puzzle to be shown first", ident)
        move = frames.text(frame, "move", 16)
        self._moves = self._moves[: frames.number(frame, "ply")]
        answer = await self._ask(shown, action, self._moves, move=move, more=self._hinted)
        if sitting.entry is not shown:
            raise FrameError("bad_puzzle", f"{action}: another puzzle is shown", ident)
        change = None
        if action == "hint":
            self._hinted = True
        elif answer.get("right"):
            self._moves = [*self._moves, move]
            self._hinted = False
        if action != "try" or answer["solved"] or not answer["right"]:
            change = await asyncio.to_thread(_result, sitting, bool(answer.get("solved")))
        return {**self._told(sitting, shown, ident, answer), "change": change}

    async def _ask(self, entry: Entry, action: str, moves: list[str], **more: Any) -> dict[str, Any]:
        return await self._helper.ask(puzzle=entry.id, do=action, moves=moves, **more)

    def _scores(self, frame: Mapping[str, Any]) -> Scores:
        if self._kept:
            try:
                return score_files.load(score_files.place())
            except ScoresError as error:
                raise RequestError("bad_scores", str(error)) from None
        text = frames.text(frame, "scores", SCORES_LIMIT, lines=True)
        try:
            return score_files.read(text)
        except ValueError:
            return Scores()  # none yet, or of another version: no reason to show no puzzles

    def _told(
        self, sitting: Sitting, entry: Entry, ident: object, answer: Mapping[str, Any]
    ) -> dict[str, Any]:
        scores = sitting.scores
        return {
            "t": "puzzle",
            "id": ident,
            "puzzle": {
                "id": entry.id,
                "variant": entry.variant,
                "plies": entry.plies,
                "rating": round(scores.puzzle(entry).value),
                "tries": scores.tries.get(entry.id, 0),
                "themes": themes(entry),
            },
            "ply": len(self._moves),
            "open": sitting.open,
            "rating": str(scores.player),
            "solved_ever": scores.solved,
            "failed_ever": scores.failed,
            "scores": None if self._kept else scores.text(),
            **answer,
        }


def _result(sitting: Sitting, solved: bool) -> float | None:
    try:
        return sitting.result(solved)
    except ScoresError as error:
        raise RequestError("bad_scores", str(error)) from None


def _wanted(frame: Mapping[str, Any], scores: Scores) -> list[Entry]:
    """The puzzles of a variant, a theme and a range of ratings, as far as these are given."""
    variant, theme = frames.text(frame, "variant", 64), frames.text(frame, "theme", 64)
    low, high = frames.number(frame, "low"), frames.number(frame, "high") or 10_000
    found = [
        entry
        for entry in suite().values()
        if variant in ("", entry.variant)
        and (not theme or theme in themes(entry))
        and low <= scores.puzzle(entry).value <= high
    ]
    if not found:
        raise FrameError(
            "no_puzzle", "no such puzzle: expected another variant, theme or rating", frame.get("id")
        )
    return found


def _named(frame: Mapping[str, Any]) -> Entry:
    name = frames.text(frame, "puzzle", 64)
    entry = suite().get(name)
    if entry is None:
        raise FrameError("no_puzzle", f"puzzle {shorten(name)}: no such puzzle", frame.get("id"))
    return entry


@cache
def offer() -> dict[str, Any]:
    """The numbers of puzzles of each variant and theme."""
    entries = suite().values()
    counts = Counter(theme for entry in entries for theme in themes(entry))
    return {
        "t": "puzzles",
        "variants": [
            {"name": name, "count": count}
            for name, count in sorted(Counter(entry.variant for entry in entries).items())
        ],
        "themes": [
            {"name": name, "text": text, "count": counts[name]}
            for name, text in THEMES.items()
            if counts[name]
        ],
    }
