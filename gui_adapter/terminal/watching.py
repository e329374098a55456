"""A game of an arena run, followed while it is played: the run's `live.jsonl` is read as it grows.

The file is written best effort and renewed when it is large, so whatever does not fit is passed over, and the next game
that begins is followed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hnefi.engine.games.base_variant import VariantError
from hnefi.engine.sides import Reason
from hnefi.protocol.hosts.tail import Tail

from .opponents import plain
from .rules_process import IllegalPosition
from .values import SideLetter

if TYPE_CHECKING:
    from .controller import Controller

FILE: Final = "live.jsonl"
GAMES: Final = "games.jsonl"
EVOLUTION: Final = "state.safetensors"
POLL: Final = 0.2
"""Seconds between two looks at the file."""
GAMES_KEPT: Final = 1000


@dataclass(slots=True)
class Running:
    """A game that has begun and not ended, as far as the file says."""

    facts: Mapping[str, Any]
    moves: list[str]
    end: tuple[str | None, str] | None = None
    """Winner and reason, once it is over."""


@dataclass(slots=True)
class Boards:
    """What the lines of a run say, one after the other."""

    running: dict[str, Running] = field(default_factory=dict)
    last: Running | None = None
    """The game that ended last."""

    def take(self, event: Mapping[str, Any]) -> None:
        """Take note of an event; what is not understood is passed over."""
        kind, name = event.get("event"), event.get("id")
        if not isinstance(name, str):
            return
        game = self.running.get(name)
        if kind == "start" and _is_start(event):
            if game is None:
                if len(self.running) >= GAMES_KEPT:
                    del self.running[next(iter(self.running))]
                self.running[name] = Running(event, [*event["opening"], *event["moves"]])
        elif game is not None and kind == "ply" and isinstance(event.get("move"), str):
            game.moves.append(event["move"])
        elif game is not None and kind == "end":
            game.end = (event.get("winner"), str(event.get("reason")))
            del self.running[name]
            self.last = game

    def newest(self) -> Running | None:
        """The game that began last."""
        return next(reversed(self.running.values()), None)


def _is_start(event: Mapping[str, Any]) -> bool:
    lists = [event.get("opening"), event.get("moves")]
    return isinstance(event.get("variant"), str) and all(
        isinstance(moves, list) and all(isinstance(move, str) for move in moves) for moves in lists
    )


class WatchError(Exception):
    """There is nothing to watch; the text says why, and what else can be done."""


class Watcher:
    """Follows one game after the other until the session is used for something else."""

    def __init__(self, controller: Controller, run: Path) -> None:
        self.run = run
        self.path = run / FILE if run.is_dir() else run
        self._controller = controller
        self._tail = Tail(self.path)
        self._boards = Boards()
        self._game: Running | None = None
        self._played = 0
        self._plies: deque[str] = deque()

    def look(self) -> None:
        """Read what there is."""
        while events := self._tail.read():
            for event in events:
                self._boards.take(event)

    def open(self) -> None:
        """The first look; WatchError if there is nothing to look at."""
        if self.run.is_file() and self.run.suffix != ".jsonl":
            raise WatchError(
                "a file: expected the folder of a run that was played with `hnefi arena … --live`"
            )
        try:
            self._tail.open()
        except FileNotFoundError:
            expected = "expected the folder of a run that was played with `hnefi arena … --live`"
            if not self.run.is_dir():
                raise WatchError(f"no such folder: {expected}") from None
            instead = ""
            if (self.run / GAMES).is_file():
                instead = f"; `hnefi arena report {self.run} --records FILE` writes its games"
            elif (self.run / EVOLUTION).is_file():
                instead = f"; `hnefi evolve curves {self.run}` shows an evolution"
            raise WatchError(f"no {FILE} in it: {expected}{instead}") from None
        except (OSError, ValueError) as error:
            raise WatchError(getattr(error, "strerror", None) or str(error)) from None
        self.look()

    def close(self) -> None:
        """Leave the file alone."""
        self._tail.close()

    def foresee(self) -> None:
        """The session has the board of the game that `watch` is going to show."""
        game = self._boards.newest() or self._boards.last
        if game is None:
            return
        with suppress(VariantError):
            self._controller.session.foresee(
                self._controller.find(game.facts["variant"]), (_name(game, "a"), _name(game, "d"))
            )

    async def follow(self) -> None:
        """Look at the file and bring the board up to date, again and again."""
        session = self._controller.session
        with closing(self):
            while session.watcher is self:
                self.look()
                await self._controller.events.call(self.catch_up, None)
                await asyncio.sleep(POLL)

    async def catch_up(self) -> None:
        """Show the file's latest position, unless the user is looking at an earlier one."""
        session = self._controller.session
        if (
            session.watcher is not self
            or session.looking
            or session.analysing
            or session.replaying is not None
        ):
            return
        if self._game is None or (session.end is not None and self._game.end is not None):
            await self._begin()
        game = self._game
        if game is None:
            return
        for text in game.moves[self._played :]:
            self._played += 1
            move = session.legal(text)
            if session.end is not None or move is None:
                self._controller.say(
                    f"This game can no longer be followed: {plain(text)[:40]} is not legal here."
                )
                self._forget(game)
                self._game = None
                return
            self._controller.say(
                f"{session.side_word(session.side)} ({self._name(session.side)}): {move.long}"
            )
            await session.play(move)
        if game.end is not None and session.end is None:
            winner, reason = game.end
            known = reason if reason in set(Reason) else Reason.INTERRUPTED.value
            await session.declare(winner if winner in ("a", "d") else "draw", Reason(known))

    async def _begin(self) -> None:
        """Go over to the game that began last, if there is another; where none has been seen, one that is over."""
        game = self._boards.newest() or (self._boards.last if self._game is None else None)
        if game is None or game is self._game:
            return
        session = self._controller.session
        facts = game.facts
        start = facts.get("start") if isinstance(facts.get("start"), str) else None
        moves = tuple(game.moves)
        try:
            await session.begin(self._controller.find(facts["variant"]), start, moves, watcher=self)
        except (VariantError, IllegalPosition) as error:
            self._controller.say(f"Game {plain(str(facts['id']))[:40]} cannot be followed: {error}")
            self._forget(game)
            return
        self._game, self._played = game, len(moves)
        session.guests = (self._name("a"), self._name("d"))
        who = f"{session.guests[0]} against {session.guests[1]}"
        self._controller.say(f"Game {plain(str(facts['id']))[:40]} of {session.variant.name}: {who}.")

    def _forget(self, game: Running) -> None:
        """A game that cannot be followed is not tried again."""
        self._boards.running.pop(str(game.facts["id"]), None)
        if self._boards.last is game:
            self._boards.last = None

    def _name(self, side: SideLetter) -> str:
        return "?" if self._game is None else _name(self._game, side)


def _name(game: Running, side: SideLetter) -> str:
    return plain(str(game.facts.get("attackers" if side == "a" else "defenders", "?")))[:40]
