"""Games as the server tells them: the JSON of a game, clocks, offers, and the words for sides and results."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hnefi.engine.search.clock import movetime
from hnefi.engine.sides import Side
from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.hnefatafl_org_notation import VARIANTS, NotationError, read_move, read_square
from hnefi.protocol.hosts.journal import Entry

ROLES: Final[Mapping[Side, str]] = {Side.ATTACKERS: "attacker", Side.DEFENDERS: "defender"}
SIDES: Final[Mapping[str, Side]] = {
    **{role: side for side, role in ROLES.items()},
    "attackers": Side.ATTACKERS, "defenders": Side.DEFENDERS, "a": Side.ATTACKERS, "d": Side.DEFENDERS,
}  # fmt: skip
"""What a side is called, in lower case."""
RESULTS: Final = {"attacker_wins": "a", "defender_wins": "d", "draw": "draw"}
FIRST: Final = {7: Side.DEFENDERS, 11: Side.ATTACKERS, 13: Side.ATTACKERS}
"""Who begins, by the size of the board."""
RESIGNS: Final = "---"
PLIES: Final = 2_000
"""Of one game; the rules end every one after 134."""
OVERHEAD: Final = 500.0
"""Milliseconds of the clock reserved for the way to the server and back."""
SHARE: Final = 0.1
"""The largest share of the clock for one move."""
LEAST: Final = 50.0
"""Milliseconds for a move even if the clock has almost run out."""
LONGEST: Final = 10**12
_CLOCK: Final = re.compile(r"([0-9]{1,6})([smhd])\+([0-9]{1,5})s?", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class GameError(ValueError):
    """The server's description of a game is invalid; the text is a sentence."""


@dataclass(frozen=True, slots=True)
class Clock:
    """A time control: milliseconds for the game, and seconds that are added for each move."""

    left: int
    add: int


@dataclass(frozen=True, slots=True)
class Settings:
    """What to play. `join` is the number of somebody else's offer; `movetime` is in milliseconds."""

    user: str
    role: Side = Side.ATTACKERS
    size: int = 11
    clock: Clock | None = None
    rated: bool = False
    games: int = 1
    join: str = ""
    even: bool = False
    movetime: int | None = None


@dataclass(frozen=True, slots=True)
class Game:
    """The state of a game. `clock` is the time that each side had left at the time of the message, in milliseconds."""

    attackers: str
    defenders: str
    size: int
    plies: tuple[Entry, ...] = ()
    resigned: bool = False
    clock: tuple[int, int] | None = None
    add: int | None = None
    id: str | None = None

    @property
    def moves(self) -> tuple[str, ...]:
        """In our spelling, without captures."""
        return tuple(ply.move for ply in self.plies)

    @property
    def side(self) -> Side:
        """Who is to move."""
        return side_after(self.size, len(self.plies))

    @property
    def variant(self) -> str:
        """What is played."""
        return VARIANTS[self.size]

    def player(self, side: Side) -> str:
        """Who plays a side."""
        return (self.attackers, self.defenders)[side]


def side_after(size: int, plies: int) -> Side:
    """Who is to move after so many plies."""
    return FIRST[size] if plies % 2 == 0 else FIRST[size].other


def read_game(text: str) -> Game:
    """The game of a `resume_game_json`; GameError."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise GameError(f"{shorten(text)}: expected the JSON of a game") from None
    if not isinstance(said, dict):
        raise GameError(f"{shorten(text)}: expected the JSON object of a game")
    names = [said.get(key) for key in ("attackers", "defenders")]
    size, moves = said.get("dim"), said.get("moves")
    if not all(isinstance(name, str) for name in names) or not isinstance(moves, str):
        raise GameError(f"{shorten(text)}: expected a game with attackers, defenders and moves")
    if type(size) is not int or size not in VARIANTS:
        raise GameError(f"dim {shorten(size)}: expected a board of {', '.join(map(str, VARIANTS))}")
    words = moves.split()
    resigned = words[-1:] == [RESIGNS]
    if len(words) > PLIES:
        raise GameError(f"a game of {len(words)} plies: expected at most {PLIES}")
    plies = tuple(_ply(word, size) for word in (words[:-1] if resigned else words))
    number = said.get("id")
    return Game(
        str(names[0]), str(names[1]), size, plies, resigned, _left(said.get("time_remaining_ms")),
        _added(said.get("time_control")), None if number is None else str(number)[:40],
    )  # fmt: skip


def _ply(word: str, size: int) -> Entry:
    """`d1-d3xd4xe3`."""
    head, *taken = word.split("x")
    origin, dash, target = head.partition("-")
    if not dash:
        raise GameError(f"move {shorten(word)}: expected one such as d1-d3xd4")
    try:
        return Entry(read_move(origin, target, size), tuple(read_square(square, size) for square in taken))
    except NotationError as error:
        raise GameError(f"move {shorten(word)}: {error}") from None


def _left(said: Any) -> tuple[int, int] | None:
    """Both clocks, by name or one after the other; None for a game without, or what cannot be understood."""
    if isinstance(said, dict):
        said = [said.get(key) for key in ("attackers", "defenders")]
    if not isinstance(said, list) or len(said) != 2 or not all(type(left) is int for left in said):
        return None
    first, second = (max(0, min(left, LONGEST)) for left in said)
    return first, second


def _added(said: Any) -> int | None:
    """Seconds for each move."""
    found = said.get("increment_length") if isinstance(said, dict) else None
    return max(0, min(found, 86_400)) if type(found) is int else None


def offer(role: Side, clock: Clock | None, size: int, *, rated: bool) -> str:
    """The line that offers a game."""
    timed = {"add_seconds": clock.add, "milliseconds_left": clock.left} if clock else None
    content = {
        "role": ROLES[role].capitalize(),
        "rated": rated,
        "time_settings": {"Timed": timed} if timed else "UnTimed",
        "board_size": size,
    }
    return f"new_game {json.dumps(content, separators=(',', ':'))}"


def read_clock(text: str) -> Clock | None:
    """`15m+10s`; None for `untimed`. ValueError with a sentence."""
    if text in ("untimed", "none"):
        return None
    found = _CLOCK.fullmatch(text.lower())
    if not found or int(found[1]) == 0:
        raise ValueError(
            f"{shorten(text)}: expected time for the game and seconds for each move, 15m+10s (s, m, h, d), or untimed"
        )
    return Clock(1000 * _SECONDS[found[2]] * int(found[1]), int(found[3]))


def thinking(left: float | None, add: float, cap: float | None, untimed: float) -> float:
    """Milliseconds for our next move: `left` is what our clock says now, None without one, `add` the milliseconds that
    a move adds, `cap` a limit of our own."""
    if left is None:
        return untimed if cap is None else cap
    usable = left - OVERHEAD
    share = min(movetime(usable, add), SHARE * left)
    return max(LEAST, share if cap is None else min(share, cap))
