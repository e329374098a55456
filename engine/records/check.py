"""Recorded games against their rules: every ply and every variation legal, captures and results as recorded.

Needs kernels, which are imported when the first game is checked.
"""

from __future__ import annotations

from dataclasses import dataclass

from .. import games
from .. import squares as board
from ..games.base_position import Position
from ..games.base_variant import AnyVariant
from ..games.tafl.variant import Variant
from ..moves_text import MoveTextError, parse_move_word
from ..sides import Outcome, Reason, Side
from .corpus import CorpusGame
from .record import BY_RULES, GameRecord, Ply
from .replay import Board, compare_end, kernel_board, play_recorded
from .rule_sets import Find, variant_of
from .tables import UNRECORDED
from .text import Game


@dataclass(frozen=True, slots=True)
class Fault:
    """The first point of a game where rules and record differ: the line of the file, the ply (0 for the game as a
    whole), its move and why."""

    line: int
    ply: int
    move: str
    text: str

    def message(self, name: str, game: int) -> str:
        """The fault as people read it; `game` counts the games of the file from 1."""
        where = f"{name}:{self.line}: game {game}"
        if self.ply:
            where += f" ply {self.ply} {self.move}"
        return f"{where}: {self.text}"


class _Steps:
    """A game being replayed over positions; it can return to any of them."""

    def __init__(self, first: Position) -> None:
        self.first = first
        self.position = first

    def start(self) -> None:
        self.position = self.first

    def play(self, move: int, /) -> tuple[int, ...]:
        self.position = self.position.play(move)
        return self.position.last_captures

    @property
    def outcome(self) -> Outcome | None:
        return self.position.outcome


class Checker:
    """Plays recorded games by their rules, whatever these are; keeps the board of the rules used last."""

    def __init__(self, find: Find) -> None:
        self.find = find
        self._hash = ""
        self._line: Board | None = None

    def fault(self, game: Game) -> Fault | None:
        """The first fault of a game, None if there is none."""
        record = game.record
        try:
            variant = variant_of(record, self.find)
            if record.rules_hash not in (None, variant.hash):
                return Fault(
                    game.line, 0, "", f"{variant.name}: expected the rules that the record's hash names"
                )
            on = self._board(record, variant)
        except ValueError as error:
            return Fault(game.line, 0, "", str(error))
        found = _walk(on, record.plies, game, 0)
        if found is not None:
            return found
        ply, move, line = 0, "", game.line
        if record.plies:
            ply, move = len(record.plies), board.move_name(record.plies[-1].move)
            line = game.places.get(id(record.plies[-1]), line)
        text = _end(record, on, variant)
        return None if text is None else Fault(line, ply, move, text)

    def _board(self, record: GameRecord, variant: AnyVariant) -> Board:
        if not isinstance(variant, Variant) or record.start is not None or _branches(record):
            start = record.start
            return _Steps(games.initial(variant) if start is None else games.from_fen(variant, start))
        if self._line is None or self._hash != variant.hash:
            self._line, self._hash = kernel_board(variant), variant.hash
        self._line.start()
        return self._line


def _branches(record: GameRecord) -> bool:
    return any(ply.variations for ply in record.plies)


def _walk(on: Board, plies: tuple[Ply, ...], game: Game, done: int) -> Fault | None:
    """Play a line to its end, and before each ply the variations that replace it."""
    for number, ply in enumerate(plies, start=done + 1):
        if isinstance(on, _Steps):
            before = on.position
            for line in ply.variations:
                fault = _walk(on, line, game, number - 1)
                if fault is not None:
                    return fault
                on.position = before
        move = board.move_name(ply.move)
        try:
            text = play_recorded(on, ply.move, ply.captures)
        except ValueError as error:
            text = str(error).removeprefix(f"{move} ")
        if text is not None:
            return Fault(game.places.get(id(ply), game.line), number, move, text)
    return None


def _end(record: GameRecord, on: Board, variant: AnyVariant) -> str | None:
    """What is wrong with the recorded end of a replayed game."""
    ended_by = record.tag("ended_by")
    reason = None if record.outcome is None else record.outcome.reason
    claimed = CorpusGame(
        0,
        tuple((ply.move, ply.captures) for ply in record.plies),
        record.result,
        refused=_refused(record, variant),
        timeout=reason is Reason.TIME or ended_by == "timeout",
        by_rules=reason in BY_RULES or ended_by == "rules",
        compare=ended_by in (None, "rules") and UNRECORDED not in record.tags,
    )
    ended = on.outcome
    found = compare_end(claimed, on, _side_to_move(record, on, variant))
    if found is not None:
        return found[1]
    if ended is not None and record.outcome not in (None, ended):
        return f"{ended.text} by the rules, {record.outcome.text if record.outcome else ''} recorded"
    return None


def _refused(record: GameRecord, variant: AnyVariant) -> int | None:
    """The last move, which the referee refused, if the record has a readable one."""
    try:
        return parse_move_word((record.tag("refused") or "").strip(), max(variant.files, variant.ranks))[0]
    except MoveTextError:
        return None


def _side_to_move(record: GameRecord, on: Board, variant: AnyVariant) -> Side | None:
    if isinstance(on, _Steps):
        return on.position.side
    if isinstance(variant, Variant) and variant.rules.berserk != "off":
        return None  # the number of plies does not tell
    first = Side.of(variant.first)
    return first.other if len(record.plies) % 2 else first
