"""What the terminal shows: one immutable `View`, and what a line of text is answered with.

Squares and moves are text here, as the protocol writes them (`d1`, `d1d3`); sides are `a` and `d`. Nothing here
knows rules, engines or terminals, and every face (prompt, full screen, script) draws from these values alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from .settings import Settings

SideLetter = Literal["a", "d"]
Mode = Literal["play", "watch", "replay", "analysis"]
"""`play`: somebody at this terminal plays; `watch`: engines play each other; `replay`: an earlier place of the game is
looked at; `analysis`: an engine thinks about the place, and whoever types moves both sides."""
Purpose = Literal["move", "hint", "analysis"]
SeatKind = Literal["person", "engine"]
LineKind = Literal["reply", "error", "news"]
SWAP = "swap"


def other(side: SideLetter) -> SideLetter:
    """The side that plays against this one."""
    return "d" if side == "a" else "a"


@dataclass(frozen=True, slots=True)
class Move:
    """One legal move: its text, its squares (equal for a stone that is placed, both empty for `swap`), and what it
    would capture."""

    text: str
    source: str
    target: str
    captures: tuple[str, ...] = ()

    @property
    def long(self) -> str:
        """The move with its captured squares, `d1d3xd4xe3`."""
        return self.text + "".join(f"x{square}" for square in self.captures)


@dataclass(frozen=True, slots=True)
class Board:
    """A position as it is drawn.

    `rows` runs from the top rank down, one character a cell: the letters of FENs (`t T K`, special men, `x o` in hex,
    `P p` in hexapawn) and `.` for an empty cell. `special` names the squares with a meaning: `throne`, `corner`,
    `camp` (the attackers') and `fort` (the defenders' camp). `last` are the squares of the last ply, `taken` those it
    captured. `men` are the men that stand (kings included) and `captures` the men taken so far, by attackers and by
    defenders each.
    """

    files: int
    ranks: int
    rows: tuple[str, ...]
    special: Mapping[str, str] = field(default_factory=dict)
    last: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    side: SideLetter = "a"
    men: tuple[int, int] = (0, 0)
    captures: tuple[int, int] = (0, 0)

    def has(self, square: str) -> bool:
        """Whether there is a square of that name."""
        file, rank = ord(square[:1] or "?") - ord("a"), square[1:]
        return 0 <= file < self.files and rank in [str(number) for number in range(1, self.ranks + 1)]

    def at(self, square: str) -> str:
        """The letter on a square such as `d4`."""
        return self.rows[self.ranks - int(square[1:])][ord(square[0]) - ord("a")]


@dataclass(frozen=True, slots=True)
class Clock:
    """Milliseconds: the time for the game and per move, what is left for attackers and defenders, whose clock runs."""

    base: int
    increment: int
    left: tuple[int, int]
    running: SideLetter | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a search's report. `cp` or `mate` (moves, negative when the attackers lose) and `wdl` (per mille) are
    in the view of the attackers (in games without attackers: of the side that began), whoever is to move."""

    multipv: int
    depth: int | None = None
    cp: int | None = None
    mate: int | None = None
    wdl: tuple[int, int, int] | None = None
    nodes: int | None = None
    nps: int | None = None
    pv: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Thinking:
    """What a search has said so far: `who` thinks, why, whether it still does, and its lines, best first."""

    who: str
    purpose: Purpose
    running: bool
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One ply of the line that is shown. `ply` counts from 1; `turn` is the number of its turn; `variations` counts
    the other moves that were tried in its place; `is_current` marks the ply that led to the board."""

    ply: int
    turn: int
    side: SideLetter
    text: str
    captures: tuple[str, ...] = ()
    comment: str = ""
    is_current: bool = False
    variations: int = 0

    @property
    def long(self) -> str:
        """The move with its captured squares, `d1d3xd4xe3`."""
        return self.text + "".join(f"x{square}" for square in self.captures)


@dataclass(frozen=True, slots=True)
class End:
    """How the game ended: `a`, `d` or `draw`, the reason as machines write it, and a sentence for people."""

    result: Literal["a", "d", "draw"]
    reason: str
    words: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line said to the person: the `number` counts all that were ever said, from 1. `news` came by itself, the
    others answer a line that was typed."""

    number: int
    text: str
    kind: LineKind


@dataclass(frozen=True, slots=True)
class View:
    """Everything on screen.

    `sides` are what the two sides are called ("attackers", "defenders"; other games have other words), `names` who
    plays them, `kinds` what those are; all three in the order attackers, defenders. `ready` is whether the rules are
    loaded: before that there is a board and nothing is legal. `words` are the commands that make sense now, `prompt`
    what the prompt says before its `>`, `question` a yes-or-no question the next line answers, `compiling` what an
    engine is compiling before it can work, if one does, `reviewing` how far a review is. `clock` is None where
    nobody plays by one. `level` is the level of our engine, None where it plays otherwise. `arrivals` counts the
    positions that were reached or looked at.
    """

    variant: str
    game: str
    board: Board
    settings: Settings
    sides: tuple[str, str] = ("attackers", "defenders")
    names: tuple[str, str] = ("", "")
    kinds: tuple[SeatKind, SeatKind] = ("person", "person")
    legal: tuple[Move, ...] = ()
    level: int | None = None
    clock: Clock | None = None
    thinking: Thinking | None = None
    history: tuple[Entry, ...] = ()
    ply: int = 0
    end: End | None = None
    mode: Mode = "play"
    paused: bool = False
    flipped: bool = False
    ready: bool = False
    closed: bool = False
    prompt: str = ""
    question: str | None = None
    compiling: str = ""
    reviewing: str = ""
    words: tuple[str, ...] = ()
    log: tuple[LogLine, ...] = ()
    arrivals: int = 0

    @property
    def persons_turn(self) -> bool:
        """Whether the game goes on and somebody at this terminal is to move."""
        return self.end is None and self.kinds["ad".index(self.board.side)] == "person"


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one line: what to show, and whether the line failed, `unwritten` because a file could not be
    written. `quit` ends the front end; `show` asks for the board to be drawn even though it has not changed."""

    lines: tuple[str, ...] = ()
    failed: bool = False
    unwritten: bool = False
    quit: bool = False
    show: bool = False
