"""A game that was played: where it began, every ply with what is known about it, and how it ended.

These values refuse what no record could hold, so every one of them can be written and read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from .. import squares as board
from ..sides import Outcome, Reason
from ..wording import shorten

PLY_LIMIT: Final = 50_000
"""Plies of one record, those in variations included."""
DEPTH_LIMIT: Final = 64
"""How deep variations lie inside each other."""
TEXT_LIMIT: Final = 1 << 20
"""Characters of all comments, tags and names of one record together."""
TAGS_LIMIT: Final = 1000
CAPTURES_LIMIT: Final = 120
NUMBER_LIMIT: Final = 1 << 62

RESERVED: Final = frozenset(
    ("variant", "ruleshash", "rule", "start", "fen", "attackers", "defenders", "result", "captures")
)
"""Names, in lower case, that no further tag may have: a record's own fields are written under them."""
TAG_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")

BY_RULES: Final = frozenset(reason for reason in Reason if reason.code <= Reason.FAR_ROW.code)
"""The reasons for which rules end a game; the others are the players' or the referee's."""

_SQUARES: Final = frozenset(board.squares(board.MAX_SIZE))

Verdict = Literal["a", "d", "draw"]


@dataclass(frozen=True, slots=True)
class Ply:
    """One ply of a recorded game; what is not known is None or empty.

    `captures` are squares sorted by file, then rank (never the king's), `()` where it is known that nothing was
    taken; `clock` is the mover's time left after the ply and `time` what the ply took, both in milliseconds; `cp`
    (centipawns) or `mate` (the winner's own moves, negative when losing) is the mover's score, not both; `comment`
    is free text; `variations` are lines that could have been played instead of this ply. Raises ValueError.
    """

    move: int
    captures: tuple[int, ...] | None = None
    clock: int | None = None
    time: int | None = None
    cp: int | None = None
    mate: int | None = None
    depth: int | None = None
    comment: str = ""
    variations: tuple[tuple[Ply, ...], ...] = ()

    def __post_init__(self) -> None:
        move = self.move
        if (board.origin(move) not in _SQUARES or board.target(move) not in _SQUARES) and move != board.SWAP:
            raise ValueError(f"{shorten(move)} is not a move: expected two squares of a board")
        if self.cp is not None and self.mate is not None:
            raise ValueError(f"cp {self.cp} and mate {self.mate}: expected one score")
        for name, number in (
            ("clock", self.clock),
            ("time", self.time),
            ("cp", self.cp),
            ("mate", self.mate),
            ("depth", self.depth),
        ):
            if number is not None and (type(number) is not int or abs(number) > NUMBER_LIMIT):
                raise ValueError(f"{name} {shorten(number)}: expected a whole number below 2^62")
        if self.captures:
            self._check_captures(self.captures)
        if not all(self.variations):
            raise ValueError("a variation without plies: expected at least one")

    def _check_captures(self, captures: tuple[int, ...]) -> None:
        if len(captures) > CAPTURES_LIMIT:
            raise ValueError(f"{len(captures)} captured squares: expected at most {CAPTURES_LIMIT}")
        if not _SQUARES.issuperset(captures):
            raise ValueError(f"captures {shorten(captures)}: expected squares of a board")
        if len(captures) > 1 and captures != sorted_squares(captures):
            raise ValueError(f"captures {shorten(captures)}: expected them sorted and without duplicates")


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules carried by a record itself: the switches that differ from their defaults, as text, and the start
    position's rows, top rank first, joined by `/`."""

    rows: str
    switches: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for name, _ in self.switches:
            if not name or name.split() != [name]:
                raise ValueError(f"switch {shorten(name)}: expected one word")
        if len(self.switches) > TAGS_LIMIT:
            raise ValueError(f"{len(self.switches)} switches: expected at most {TAGS_LIMIT}")


@dataclass(frozen=True, slots=True)
class GameRecord:
    """One game from its start to its end, or to where it was left.

    `variant` names the rules; where no shipped variant has that name and those rules, `rules` carries them whole.
    `start` is a FEN, None for the variant's start position; `rules_hash` tells whether a variant still is what it
    was; `players` are the attackers' and the defenders' names; `outcome` is None for an unfinished game, and for one
    of which only the `verdict` is known: who won, not why; `tags` are further (name, text) pairs in the order in
    which they were given; `comment` stands before the first ply. Raises ValueError.
    """

    variant: str
    start: str | None = None
    plies: tuple[Ply, ...] = ()
    outcome: Outcome | None = None
    players: tuple[str, str] = ("", "")
    rules_hash: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    comment: str = ""
    verdict: Verdict | None = None
    rules: RuleSet | None = None

    def __post_init__(self) -> None:
        if self.outcome is not None and self.verdict is not None:
            raise ValueError(f"outcome {self.outcome.text} and verdict {self.verdict}: expected one of them")
        if self.verdict not in (None, "a", "d", "draw"):
            raise ValueError(f"verdict {shorten(self.verdict)}: expected a, d or draw")
        if len(self.tags) > TAGS_LIMIT:
            raise ValueError(f"{len(self.tags)} tags: expected at most {TAGS_LIMIT}")
        for name, _ in self.tags:
            check_tag_name(name)
        length = self._header_length()
        for number, ply in enumerate(walk(self.plies), start=1):
            length += len(ply.comment)
            if number > PLY_LIMIT:
                raise ValueError(f"expected at most {PLY_LIMIT} plies")
        if length > TEXT_LIMIT:
            raise ValueError(f"{length} characters of text: expected at most {TEXT_LIMIT}")

    def _header_length(self) -> int:
        texts = [self.variant, self.start or "", *self.players, self.rules_hash or "", self.comment]
        pairs = list(self.tags)
        if self.rules is not None:
            texts.append(self.rules.rows)
            pairs += self.rules.switches
        return sum(map(len, texts)) + sum(len(name) + len(text) for name, text in pairs)

    @property
    def moves(self) -> tuple[int, ...]:
        """The moves alone."""
        return tuple(ply.move for ply in self.plies)

    @property
    def result(self) -> Verdict | None:
        """The winner, or a draw; None if the game is unfinished."""
        if self.outcome is None:
            return self.verdict
        return "draw" if self.outcome.winner is None else ("a", "d")[self.outcome.winner]

    def tag(self, name: str) -> str | None:
        """The text of the first tag called `name`, None if there is none."""
        return next((text for key, text in self.tags if key == name), None)


def sorted_squares(squares: Iterable[int]) -> tuple[int, ...]:
    """Squares by file, then rank, each once: how a record holds captures."""
    return tuple(sorted(set(squares), key=board.sort_key))


def check_tag_name(name: str) -> None:
    """ValueError if no further tag may be called `name`."""
    if TAG_NAME.fullmatch(name) is None:
        raise ValueError(f"tag {shorten(name)}: expected a letter, then at most 63 letters, digits, _ or -")
    if name.lower() in RESERVED:
        raise ValueError(f"tag {shorten(name)}: expected a name that is not a field of records")


def walk(plies: tuple[Ply, ...]) -> Iterator[Ply]:
    """Every ply, each before the plies of its variations; ValueError where those lie too deep."""
    stack = [iter(plies)]
    while stack:
        for ply in stack[-1]:
            yield ply
            if ply.variations:
                stack.append(iter([ply for line in ply.variations for ply in line]))
                if len(stack) > DEPTH_LIMIT + 1:
                    raise ValueError(f"expected variations at most {DEPTH_LIMIT} deep")
                break
        else:
            stack.pop()


Place = tuple[int, int, int]
"""The turn (from 1), the ply inside the turn (from 0), and 0 for the side that began, 1 for the other."""
FIRST_PLACE: Final[Place] = (1, 0, 0)


def next_place(place: Place, previous: int, move: int) -> Place:
    """The place of `move` behind the move `previous` at `place`; a turn is over when the side that began is to move.

    The piece that has just moved moves again only in a berserk turn: a side never moves the other's pieces.
    """
    turn, half, side = place
    if not board.is_same_piece(previous, move):
        side = 1 - side
        if side == 0:
            return turn + 1, 0, 0
    return turn, half + 1, side
