"""Replays played games and lists every point where the rules and the record disagree.

What must hold for every game: each move is legal and takes exactly the recorded squares, no move follows an end
that the rules declare, a declared end has the recorded result, a move that a referee refused is illegal, and a side
that lost on time was to move. The numbers of declared ends, by reason, are part of the answer: some wrong rules break
no game and only miss ends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from .. import squares as board
from ..games.tafl.variant import Variant
from ..moves_text import format_move
from ..sides import Outcome, Reason, Side
from .corpus import CorpusGame, corpus_format, read


class Board(Protocol):
    """The board that a replay needs: one line of moves from the start position, without taking back."""

    def start(self) -> None:
        """Back to the start position, history forgotten."""

    def play(self, move: int, /) -> tuple[int, ...]:
        """Play a move and return the squares of the men it captured, in any order.

        An illegal move, also one after the end, raises a ValueError that says why, and changes nothing.
        """

    @property
    def outcome(self) -> Outcome | None:
        """How the game ended by the rules, None while it is running."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One point where rules and record differ: the line of the file, the ply (0 for the whole game) and why."""

    line: int
    ply: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line} ply {self.ply}: {self.text}"


@dataclass(slots=True)
class Report:
    """What a replay found: how much was played, the declared ends by reason, and all disagreements.

    `refused` counts refused moves that could be read and were tried. A game with a disagreement is left there, so
    there is at most one in each game.
    """

    games: int = 0
    plies: int = 0
    ends: dict[Reason, int] = field(default_factory=dict)
    refused: int = 0
    disagreements: list[Disagreement] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Whether rules and records never disagreed."""
        return not self.disagreements


def as_played(variant: Variant) -> Variant:
    """The variant without repetitions, limits, hopeless positions and draw forts: sites that recorded their games
    as CSV played on there."""
    return variant.with_switches(
        repetition="ignore", move_limit=0, quiet_limit=0, sealed="off", draw_fort="no"
    )


def kernel_board(variant: Variant) -> Board:
    """The fast board of the engine; imports the kernels when called."""
    from ..games.tafl.position import Line

    return Line(variant)


def replay_file(
    path: str | os.PathLike[str],
    variant: Variant,
    make_board: Callable[[Variant], Board] = kernel_board,
    *,
    adjudicate: bool = False,
) -> Report:
    """Replay every game of a collection; CorpusError if the file cannot be read.

    CSV files are played without repetitions and limits (`as_played`) unless `adjudicate`; JSON lines by the
    variant as it stands.
    """
    if corpus_format(path) == "csv" and not adjudicate:
        variant = as_played(variant)
    return replay_games(read(path, variant.size), variant, make_board(variant))


def replay_games(games: Iterable[CorpusGame], variant: Variant, on: Board) -> Report:
    """Replay games on a board made for `variant`."""
    report = Report()
    for game in games:
        found = _replay(game, variant, on, report)
        if found is not None:
            report.disagreements.append(Disagreement(game.line, *found))
    return report


def _replay(game: CorpusGame, variant: Variant, on: Board, report: Report) -> tuple[int, str] | None:
    """Play one game and count it; the ply and the text of the first disagreement, None if there is none."""
    report.games += 1
    on.start()
    for ply, (move, recorded) in enumerate(game.plies, start=1):
        try:
            differs = play_recorded(on, move, recorded)
        except ValueError as error:
            return ply, str(error)
        report.plies += 1
        if differs is not None:
            return ply, differs
    ended = on.outcome
    if ended is not None:
        report.ends[ended.reason] = report.ends.get(ended.reason, 0) + 1
    # In berserk games the number of plies does not tell who is to move.
    to_move = None
    if variant.rules.berserk == "off":
        first = Side.of(variant.rules.first)
        to_move = first.other if len(game.plies) % 2 else first
    found = compare_end(game, on, to_move)
    report.refused += game.refused is not None and (found is None or found[0] > len(game.plies))
    return found


def play_recorded(on: Board, move: int, recorded: tuple[int, ...] | None) -> str | None:
    """Play a move; how its captures differ from the recorded ones, None if they agree or are not recorded.

    ValueError with the whole sentence if the move is illegal or comes after the end.
    """
    if on.outcome is not None:
        raise ValueError(f"{board.move_name(move)} was played after the end: {on.outcome.text}")
    try:
        captured = on.play(move)
    except ValueError as error:
        raise ValueError(f"{board.move_name(move)} is illegal: {error}") from None
    if recorded is None or set(captured) == set(recorded):
        return None
    played = format_move(move, sorted(captured, key=board.sort_key))
    return f"{played} by the rules, {format_move(move, recorded)} recorded"


def compare_end(game: CorpusGame, on: Board, to_move: Side | None) -> tuple[int, str] | None:
    """What is wrong with the end of a game that has been played on a board; `to_move` is None if it is unknown."""
    ply, ended = len(game.plies), on.outcome
    if ended is None:
        if game.by_rules:
            return ply, f"the game goes on by the rules, {game.result} recorded as their verdict"
    elif game.timeout:
        return ply, f"time ran out after the end: {ended.text}"
    elif game.refused is not None:
        return ply, f"{board.move_name(game.refused)} was tried after the end: {ended.text}"
    elif game.compare and ended.result != game.result:
        return ply, f"{ended.text} by the rules, {game.result or 'unfinished'} recorded"
    # Where no winner is recorded nothing can disagree.
    if game.timeout and to_move is not None and game.result not in (None, to_move.other.letter):
        return ply, f"{to_move.letter} was to move when time ran out, {game.result} recorded"
    if game.refused is not None:
        try:
            on.play(game.refused)
        except ValueError:
            return None
        return ply + 1, f"{board.move_name(game.refused)} was refused, but is legal"
    return None
