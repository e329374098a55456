"""A position of the suite as an exercise: is a move right, what answers it, how does the solution go.

Only proofs decide: a move is right if it is proven to win in time (or is the one that does not lose). The defence is
the one that holds out longest. What an engine says is only shown, in answer to a move that is not right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hnefi.engine.catalogue import GAMES
from hnefi.engine.moves_text import format_move
from hnefi.engine.records.record import sorted_squares
from hnefi.engine.squares import move_name, name, origin

from ..assessment.values import Line, score_text
from .suite import DIGITS, Entry, SuiteError

if TYPE_CHECKING:
    from hnefi.engine.solving.proof import Prover

SIDES: Final = GAMES["tafl"].sides
THEMES: Final = {
    "attack": "the attackers win",
    "breakout": "the defenders win",
    "defence": "only one move does not lose",
    "king-capture": "the king is captured",
    "escape": "the king reaches his goal",
    "fort": "the king is safe in a fort at the edge",
    "enclosure": "the defenders are surrounded",
    "last-man": "the last man is captured",
    "no-moves": "the other side cannot move",
    "quiet": "the first move captures nothing",
    "capture": "the first move captures",
    "king-move": "the king moves first",
    "sacrifice": "the best answer captures",
    "double-threat": "after the first move two moves would win at once",
}
"""What a puzzle may be about. One of the first three is the theme of each, the others are kept with it."""
NODES: Final = 20_000
"""Of the engine that answers a wrong move."""
SLOWER: Final = 2
"""By how many plies a win may be longer than the shortest."""


def theme(entry: Entry) -> str:
    """`attack`: the attackers win; `breakout`: the defenders do; `defence`: one move only does not lose."""
    if entry.kind == "only":
        return "defence"
    return "attack" if entry.fen.split()[1] == "a" else "breakout"


def themes(entry: Entry) -> tuple[str, ...]:
    """All themes of an entry, that of its side first."""
    return (theme(entry), *entry.themes)


def usable(entry: Entry) -> bool:
    """Whether there is a move to find: in lost positions there is none."""
    return entry.kind in ("win", "only")


def prover_of(entry: Entry) -> Prover:
    """A prover for the variant of an entry; SuiteError if its rules are no longer those of the proof."""
    from hnefi.engine.games.base_variant import VariantError
    from hnefi.engine.games.tafl.variant import find
    from hnefi.engine.solving.proof import Prover

    try:
        variant = find(entry.variant)
    except VariantError as error:
        raise SuiteError(f"{entry.id}: {error}") from None
    if variant.hash[:DIGITS] != entry.rules:
        raise SuiteError(
            f"{entry.id}: {variant.name} has different rules now, so the proof is no longer valid"
        )
    return Prover(variant)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a move: whether it was right, whether it solved the exercise, what to say, and the `steps` to show:
    each move, the answer to it included, with the position after it."""

    right: bool
    solved: bool
    text: str
    steps: tuple[tuple[int, Any], ...] = ()


class Exercise:
    """One exercise, move by move; `position` is where it stands."""

    def __init__(self, entry: Entry, prover: Prover) -> None:
        self.entry = entry
        self._prover = prover
        self.side = int(prover.position(entry.fen).side)
        self.restart()

    def restart(self) -> None:
        """Back to its first position."""
        self.position: Any = self._prover.position(self.entry.fen)
        self._left = self.entry.plies + SLOWER
        """Plies within which the win has to come, the longer one."""

    @property
    def task(self) -> str:
        """What is asked for: `attackers to move and win in 2`."""
        mover = SIDES[self.side]
        if self.entry.kind == "only":
            return f"{mover} to move: all moves but one lose"
        own = (self.entry.plies + 1) // 2
        return f"{mover} to move and win in {own}"

    def play(self, text: str) -> Answer:
        """Try a move; ValueError says why it is none. A move that is not right is answered and taken back."""
        before = self.position
        move = before.parse_move(text)
        after = before.play(move)
        said = _long(move, after)
        if not self._is_right(move):
            return self._refuted(said, move, after)
        if self.entry.kind == "only":
            self.position = after
            return Answer(True, True, f"{said}: right, everything else loses.", ((move, after),))
        slower = not self._prover.after(before.fen(), self.side, self._left - SLOWER, move)
        praise = f"{said}: right{', though there is a quicker win' if slower else ''}"
        self.position = after
        if self._over():
            return Answer(True, True, f"{praise}: {self._end()}.", ((move, after),))
        reply = self._defence(after)
        self.position = after.play(reply)
        self._left -= 2
        steps = ((move, after), (reply, self.position))
        answer = f"{praise}. The {SIDES[1 - self.side]} answer {_long(reply, self.position)}"
        if self._over():
            return Answer(True, True, f"{answer}: {self._end()}.", steps)
        return Answer(True, False, f"{answer}.", steps)

    def hint(self, more: bool) -> str:
        """The man that has to move; `more` tells the move."""
        move = self.best()
        if more:
            return f"The move is {move_name(move)}."
        return f"Look at {name(origin(move))}."

    def solution(self) -> str:
        """The way to the end from here, with the best defence; the exercise stands at its end then."""
        return self.told(self.line())

    def told(self, line: Sequence[tuple[int, Any]]) -> str:
        """What `line` has returned, as a sentence."""
        words = [_long(move, after) for move, after in line]
        end = "" if self.entry.kind == "only" else f": {self._end()}"
        return f"{' '.join(words)}{end}."

    def line(self) -> list[tuple[int, Any]]:
        """The moves to the end from here, with the best defence, each with the position after it. The exercise stands
        at its end then."""
        line = []
        while not self._over():
            move = self.best()
            self.position = self.position.play(move)
            line.append((move, self.position))
            if self.entry.kind == "only" or self._over():
                break
            reply = self._defence(self.position)
            self.position = self.position.play(reply)
            line.append((reply, self.position))
            self._left -= 2
        return line

    def _is_right(self, move: int) -> bool:
        if self.entry.kind == "only":
            return move_name(move) in self.entry.moves
        return self._prover.after(self.position.fen(), self.side, self._left, move)

    def best(self) -> int:
        """A move of the shortest win here."""
        if self.entry.kind == "only":
            return int(self.position.parse_move(self.entry.moves[0]))
        fen = self.position.fen()
        plies = self._prover.shortest(fen, self.side, self._left)
        assert plies is not None
        return self._prover.winning(fen, self.side, plies)[0]

    def _over(self) -> bool:
        return self.position.outcome is not None or not self.position.legal_moves()

    def _end(self) -> str:
        outcome = self.position.outcome
        if outcome is None:
            return f"the {SIDES[self.side]} win"
        return f"the {SIDES[self.side]} win ({outcome.reason.words})"

    def _defence(self, position: Any) -> int:
        """The reply that holds out longest, the first of several."""

        def plies(move: int) -> int:
            after = position.play(move)
            if after.outcome is not None:
                return 0
            return self._prover.shortest(after.fen(), self.side, self._left) or self._left + 1

        moves: tuple[int, ...] = position.legal_moves()
        return max(moves, key=plies)

    def _refuted(self, said: str, move: int, after: Any) -> Answer:
        """What answers a wrong move."""
        other = 1 - self.side
        if after.outcome is not None:
            winner = after.outcome.winner
            how = "the game is drawn" if winner is None else f"the {SIDES[winner]} win"
            return Answer(
                False, False, f"{said}: no, {how} ({after.outcome.reason.words}).", ((move, after),)
            )
        if self.entry.kind == "only":
            plies = self._prover.shortest(after.fen(), other, self.entry.plies)
            if plies is not None:
                reply = self._prover.winning(after.fen(), other, plies)[0]
                answered = after.play(reply)
                text = f"{said} loses: {_long(reply, answered)}, and the {SIDES[other]} win in {(plies + 1) // 2}."
                return Answer(False, False, text, ((move, after), (reply, answered)))
        reply, line = _searched(after)
        answered = after.play(reply)
        # The engine looks further than the exercise allows.
        verdict = "too slow" if line.proven < 0 else "no"
        score = score_text(line, other, SIDES)
        text = f"{said}: {verdict}. The {SIDES[other]} answer {_long(reply, answered)} ({score})."
        return Answer(False, False, text, ((move, after), (reply, answered)))


def _long(move: int, after: Any) -> str:
    """A move with its captures."""
    return format_move(move, sorted_squares(after.last_captures))


def _searched(position: Any) -> tuple[int, Line]:
    """What our engine would play here, and what it thinks of that."""
    from hnefi.engine.search.searcher import Searcher
    from hnefi.engine.search.types import Info, Limits, Settings

    searcher = Searcher(Settings(hash_mib=4))
    infos: list[Info] = []
    searcher.begin()
    move = searcher.search(position, Limits(nodes=NODES), infos.append).move
    assert move is not None
    score = infos[-1].score
    return move, Line((), None, score.cp, score.mate)
