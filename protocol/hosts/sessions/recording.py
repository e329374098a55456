"""The game of a session in the journal, ply by ply, as the engine tells it.

After every line that may change the game the engine is asked `questions`, and `answered` gets its answers, in their
order. Of an engine that answers no questions only `position` lines are known (`told`).

A line that continues the recorded one is appended. `undo` takes back. A line that shares only its first plies with the
game replaces the rest as soon as it has a new ply; until then, the client is only looking at an earlier position. A
line that shares no ply begins another game, and so do another start, other rules and `newgame`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from hnefi.engine import squares
from hnefi.engine.games.base_variant import AnyVariant, VariantError
from hnefi.engine.games.tafl.variant import Variant, is_name
from hnefi.engine.moves_text import MoveTextError, parse_move_word
from hnefi.engine.records import rule_sets
from hnefi.engine.records.record import GameRecord
from hnefi.engine.session import SessionError
from hnefi.engine.sides import Reason

from ...answers import VariantLine
from ...messages import parse_position
from ..journal import Entry, GameLog, Journal, common
from .questions import RULES

LOG = logging.getLogger("hnefi.recording")

PLIES_LIMIT: Final = 100_000
"""Plies of one session that are written, so that no client can fill the disk."""
_NEW_GAME: Final = frozenset({"variant", "rules", "utinewgame", "ucinewgame", "uginewgame"})
_GAME_OPTIONS: Final = frozenset({"variant", "uci_variant", "rules"})
_NO_SWITCHES: Final = frozenset({"game", "size", "start", "hash", "otn", "lost"})
_QUESTIONS: Final = ("query history", "query outcome", "query reason")
_ANOTHER: Final = "another game was begun"
_FIND: Final = rule_sets.finder()


class Recording:
    """The games of one session; `tags` stand in each of them."""

    def __init__(self, journal: Journal, tags: Sequence[tuple[str, str]]) -> None:
        self._journal = journal
        self._tags = tuple(tags)
        self._rules: list[str] = []
        self._game: tuple[str, str | None] = ("", None)
        """Name of the variant, and the start if it is not the variant's."""
        self._line: tuple[str, ...] = ()
        """The moves that are written."""
        self._log: GameLog | None = None
        """None before the first ply, and after the end."""
        self._spent = 0

    def questions(self, words: Sequence[str]) -> tuple[str, ...]:
        """What to ask after a line of these words; nothing if it leaves the game as it is."""
        new = _is_new(words)
        if not (new or words[:1] in (["position"], ["play"], ["undo"])) or self._is_full():
            return ()
        return (*_QUESTIONS, "rules") if new or not self._rules else _QUESTIONS

    def answered(self, words: Sequence[str], variant: VariantLine | None, answers: Sequence[str]) -> None:
        """The answers to `questions`: those to `query` without their first word, the lines with the rules whole."""
        rules = [line.removeprefix(RULES) for line in answers if line.startswith(RULES)]
        answers = [line for line in answers if not line.startswith(RULES)]
        if len(answers) != len(_QUESTIONS) or variant is None or self._is_full():
            return
        if rules:
            if _fact(rules, "hash") != _fact(self._rules, "hash"):
                self._leave(_ANOTHER)
            self._rules = rules
        history, winner, reason = answers
        start, _, moves = history.partition(" moves ")
        ended = winner in ("a", "d", "draw") and reason in tuple(Reason)
        self._take(
            words,
            (variant.name, None if start == "startpos" else start.removeprefix("fen ")),
            tuple(moves.split()),
            (winner, reason) if ended else None,
        )

    def told(self, words: Sequence[str], variant: VariantLine | None) -> None:
        """A line to an engine that answers no questions."""
        if _is_new(words):
            self._leave(_ANOTHER)
        if words[:1] != ["position"] or variant is None or self._is_full():
            return
        try:
            said = parse_position(words)
        except SessionError:
            return
        if said.kind != "otn":
            self._take(words, (variant.name, said.text if said.kind == "fen" else None), said.moves, None)

    def close(self, why: str) -> None:
        """The session has ended."""
        self._leave(f"the session ended: {why}")

    def _is_full(self) -> bool:
        return self._journal.failure is not None or self._spent > PLIES_LIMIT

    def _take(
        self,
        words: Sequence[str],
        game: tuple[str, str | None],
        moves: tuple[str, ...],
        outcome: tuple[str, str] | None,
    ) -> None:
        """The game stands there now."""
        if game != self._game or (_is_new(words) and not moves):
            self._leave(_ANOTHER)
            self._game = game
        elif words[0] == "undo":
            self._line = moves
            if self._log is not None:
                self._log.undo(len(moves))
        elif moves and self._line and not common(self._line, moves):
            self._leave(_ANOTHER)
        if self._line[: len(moves)] == moves:
            return  # the same place, or an earlier one that is only looked at
        same = common(self._line, moves)
        if not _are_moves(moves[same:]):
            return
        if self._log is None:
            self._log = self._journal.begin(self._header())
            same = 0
        self._spent += len(moves) - same
        self._log.follow([Entry(move) for move in moves])
        self._line = moves
        if outcome is not None:
            self._log.end(*outcome)
            self._log = None
        elif self._spent > PLIES_LIMIT:
            LOG.warning("a session has played %d plies: no more of it is recorded", self._spent)
            self._leave(f"more than {PLIES_LIMIT} plies in one session")

    def _leave(self, why: str) -> None:
        """Away from a game, which is closed if it has not ended."""
        if self._log is not None:
            self._log.end(None, Reason.INTERRUPTED, why)
            self._log = None
        self._line = ()

    def _header(self) -> GameRecord:
        name, start = self._game
        record = GameRecord(name, start=start, tags=self._tags)
        variant = _variant(name, self._rules)
        return record if variant is None else rule_sets.played_by(record, variant)


def _is_new(words: Sequence[str]) -> bool:
    """Whether a line begins another game, if it is accepted."""
    if words[:2] == ["setoption", "name"]:
        return len(words) > 2 and words[2].casefold() in _GAME_OPTIONS
    return bool(words) and words[0] in _NEW_GAME


def _variant(name: str, rules: Sequence[str]) -> AnyVariant | None:
    """The variant with exactly these rules: a shipped one, or one made from them."""
    wanted = _fact(rules, "hash")
    with suppress(VariantError):
        shipped = _FIND(name)
        if shipped.hash == wanted:
            return shipped
    with suppress(VariantError):
        pairs = (line.partition(" ") for line in rules)
        switches = {switch: text for switch, _, text in pairs if switch not in _NO_SWITCHES}
        built = Variant.build(name if is_name(name) else "custom", _fact(rules, "start"), switches)
        if built.hash == wanted:
            return built
    return None


def _fact(rules: Iterable[str], name: str) -> str:
    return next((line.partition(" ")[2] for line in rules if line.startswith(f"{name} ")), "")


def _are_moves(moves: Iterable[str]) -> bool:
    try:
        for move in moves:
            parse_move_word(move, squares.MAX_SIZE)
    except MoveTextError:
        return False
    return True
