"""The session behind a board; its state includes what the page needs to know about the rules."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

from hnefi.protocol.hosts.rulebook import special_squares
from hnefi.protocol.hosts.sessions.engine_process import Policy, Wanted
from hnefi.protocol.hosts.sessions.questions import RULES
from hnefi.protocol.hosts.sessions.recording import Recording
from hnefi.protocol.hosts.sessions.session import Session

from .outbox import Voice

QUESTIONS: Final = (
    "query history",
    "query fen",
    "query turn",
    "query outcome",
    "query reason",
    "query captures",
    "moves verbose",
)


class WebSession(Session[Voice]):
    """A session of a page or a table. `left` is the time when its page went away, None while there is one; `kept` is
    the number of seconds that it then waits, None for the site's default."""

    def __init__(self, wanted: Wanted, sid: str, policy: Policy, recording: Recording | None) -> None:
        super().__init__(wanted, sid, policy, lambda facts: Voice(sid, facts), recording)
        self.left: float | None = None
        self.kept: float | None = None
        self.address = ""
        """The address of the page that opened it."""
        self.opening: asyncio.Task[None] | None = None
        self._rules_of: object = None
        self._special: Mapping[str, str] = {}

    async def facts(self) -> Mapping[str, Any]:
        """The state: that of any session, plus legal moves with their captures, special squares, and the outcome.

        `last_in` is the last line that it knows of, not the last one received: a line may arrive between the questions
        and their answers, and a page that waits for its effect must not take an older state for it.
        """
        if not self.begun:
            return {}
        while True:
            variant, last_in = self.variant, self.last_passed
            asks_rules = self._rules_of is not variant and not self.searching
            answers = await self._questions.ask(self.engine, *QUESTIONS, *(("rules",) if asks_rules else ()))
            if len(answers) < len(QUESTIONS):
                return {}
            # If another variant was chosen meanwhile, these squares would be wrong on its board.
            if self.variant is variant:
                break
        history, fen, side, outcome, reason, captures, moves, *rules = answers
        if rules:
            self._rules_of = self.variant
            switches = (line.removeprefix(RULES).partition(" ") for line in rules)
            self._special = special_squares((name, text) for name, _, text in switches)
        start, _, played = history.partition(" moves ")
        own = start == "startpos"
        return {
            "engine": self.engine.name,
            "variant": self.variant.name if self.variant else None,
            "files": self.variant.files if self.variant else None,
            "ranks": self.variant.ranks if self.variant else None,
            "start": None if own else start.removeprefix("fen "),
            "moves": played.split(),
            "fen": fen,
            "side": side,
            "searching": self.searching,
            "clock": self._clock.times,
            "bestmove": self.last_bestmove or None,
            "legal": [legal_move(word) for word in moves.split()[2:]] if outcome == "none" else [],
            "special": self._special,
            "outcome": None if outcome == "none" else {"result": outcome, "reason": reason},
            "captures": [int(count) for count in captures.split()],
            "last_in": last_in,
        }

    def leave(self) -> None:
        """The page has gone away."""
        self.outgoing.box = None
        self.left = time.monotonic()


def legal_move(word: str) -> dict[str, Any]:
    """A word of `moves verbose` (`d3a3xa2`) in the form for pages: the move and the squares that it captures."""
    move, *taken = word.split("x")
    return {"m": move, "x": taken}
