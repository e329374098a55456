"""What a game leaves on disk while it is played: a journal, ply by ply, and the file from which it can be gone on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hnefi.engine.records.record import GameRecord
from hnefi.engine.records.rule_sets import Find
from hnefi.protocol.hosts.journal import Entry, GameLog, Journal

from .game import Node
from .saving import Autosave

ADAPTER = "terminal"


class Files:
    """Both for one game after the other: `keep` says whether anything is written, `autosave` whether an unfinished
    game can be gone on with later. The folders are the user's own where none are given."""

    def __init__(
        self,
        find: Find,
        *,
        keep: bool = True,
        autosave: bool = True,
        folder: Path | None = None,
        unfinished: Path | None = None,
    ) -> None:
        self.find = find
        self.keep = keep
        self.autosaves = keep and autosave
        self.autosave = Autosave(unfinished)
        self.journal = Journal(ADAPTER, folder)
        self._log: GameLog | None = None

    @property
    def saved(self) -> bool:
        """Whether the game played is in a file from which it can be gone on with."""
        return self.autosave.path is not None and self.autosave.failure is None

    @property
    def failure(self) -> str | None:
        """Why nothing is kept, if something went wrong."""
        return self.journal.failure or self.autosave.failure

    def played(self, record: Callable[[], GameRecord], node: Node) -> None:
        """A ply was played."""
        if not self.keep:
            return
        whole = record()
        if self._log is None:
            self._log = self.journal.begin(replace(whole, plies=(), outcome=None, comment=""))
        self._log.follow(
            [Entry(ply.text, tuple(ply.captures or ()), ply.clock, ply.time) for ply in node.line()]
        )
        if self.autosaves:
            self.autosave.write(whole, self.find)

    def noted(self, record: Callable[[], GameRecord]) -> None:
        """A comment was written: a game that is being saved by itself is saved again."""
        if self.autosave.path is not None:
            self.autosave.write(record(), self.find)

    def over(self, result: str, reason: str) -> None:
        """The game has ended."""
        if self._log is not None:
            self._log.end(result, reason)
            self._log = None
        self.autosave.forget()

    def put_away(self, unfinished: GameRecord | None, why: str = "another game was begun") -> None:
        """The game is left; an unfinished one stays to be gone on with."""
        if self._log is not None:
            self._log.end(None, "interrupted", why)
            self._log = None
        if unfinished is not None and self.autosave.path is not None:
            self.autosave.write(unfinished, self.find)
            self.autosave.leave()
        else:
            self.autosave.forget()
