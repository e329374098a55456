"""The games of the face in the journal."""

from __future__ import annotations

from collections.abc import Sequence

from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.records import rule_sets
from hnefi.engine.records.record import GameRecord
from hnefi.engine.sides import Reason, Side
from hnefi.protocol.hosts.journal import Entry, GameLog, Journal, common
from hnefi.protocol.hosts.rulebook import Facts, Line

PLAYERS = ("hnefi", "OpenTafl")


class Recording:
    """Records one game after another. A game begins once our side is known, so an analysis is never recorded."""

    def __init__(self, journal: Journal | None) -> None:
        self._journal = journal
        self._log: GameLog | None = None
        self._entries: list[Entry] = []
        self._ours = Side.ATTACKERS

    def seat(self, ours: Side, variant: Variant, line: Line) -> None:
        """We play this side: record the moves so far, and those that follow."""
        if self._log is not None or self._journal is None:
            return
        self._ours = ours
        players = (PLAYERS[ours], PLAYERS[1 - ours])
        header = GameRecord(variant.name, start=line.start, players=players)
        self._log = self._journal.begin(rule_sets.played_by(header, variant))
        self._log.follow(self._entries)

    def unknown(self, line: Line) -> range:
        """The unknown plies of a line; known plies that differ from it are dropped."""
        if self._journal is None:
            return range(0)
        del self._entries[common([entry.move for entry in self._entries], line.moves) :]
        return range(len(self._entries), len(line.moves))

    def add(self, move: str, captures: Sequence[str]) -> None:
        """Add the next ply and its captures."""
        self._entries.append(Entry(move, tuple(captures)))

    def write(self) -> None:
        """Write what is new, if the game is ours."""
        if self._log is not None:
            self._log.follow(self._entries)

    def finish(self, result: str | None, facts: Facts | None, *, resigned: bool) -> None:
        """Record how the game ended according to the host; if our rules agree, they provide the reason.

        A result after our resignation says nothing about the rules.
        """
        if self._log is None:
            return
        if result is None:
            self._log.end(None, Reason.INTERRUPTED, "OpenTafl stopped the game")
        elif resigned:
            self._log.end(self._ours.other.letter, Reason.RESIGNATION)
        elif facts is not None and facts.result == result:
            self._log.end(result, facts.reason)
        elif facts is not None and facts.result is None and facts.side is not self._ours:
            self._log.end(
                result, Reason.ADJUDICATED, "as OpenTafl says; it does not send the opponent's last move"
            )
        else:
            ours = "goes on" if facts is None or facts.result is None else f"is {facts.result} {facts.reason}"
            self._log.end(result, Reason.ADJUDICATED, f"as OpenTafl says; by our rules the game {ours}")
        self._drop()

    def leave(self, why: str) -> None:
        """The game is not played to its end."""
        if self._log is not None:
            self._log.end(None, Reason.INTERRUPTED, why)
        self._drop()

    def _drop(self) -> None:
        self._log = None
        self._entries = []
