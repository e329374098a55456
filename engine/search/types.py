"""What a search is given, what it reports and what it returns: plain values, no numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..games.base_position import Position
    from ..solving.tables import Tables


@dataclass(frozen=True, slots=True)
class Limits:
    """When one search ends: the first limit reached stops it. All times are milliseconds.

    `clock` and `inc` are indexed by side (attackers, defenders). `infinite` and `ponder` only say that the
    answer is held back until `stop` or `ponderhit`; a search may well be finished before.
    """

    depth: int | None = None
    nodes: int | None = None
    mate: int | None = None
    movetime: int | None = None
    clock: tuple[int | None, int | None] = (None, None)
    inc: tuple[int, int] = (0, 0)
    movestogo: int | None = None
    infinite: bool = False
    ponder: bool = False
    searchmoves: tuple[int, ...] = ()

    @property
    def bounded(self) -> bool:
        """Whether anything but a `stop` can end the search."""
        given = (self.depth, self.nodes, self.mate, self.movetime, *self.clock)
        return any(limit is not None for limit in given)

    def tightened(self, other: Limits) -> Limits:
        """These limits, where `other` has no stricter depth, nodes, mate or time for the move."""
        return replace(
            self,
            depth=_stricter(self.depth, other.depth),
            nodes=_stricter(self.nodes, other.nodes),
            mate=_stricter(self.mate, other.mate),
            movetime=_stricter(self.movetime, other.movetime),
        )


def _stricter(ours: int | None, theirs: int | None) -> int | None:
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    return min(ours, theirs)


@dataclass(frozen=True, slots=True)
class Score:
    """A value in the view of the side to move: either centipawns or a forced end in so many own moves.

    `mate` counts the winner's own moves and is negative when the side to move loses; 0: it has lost already.
    """

    cp: int | None = None
    mate: int | None = None

    def __post_init__(self) -> None:
        if (self.cp is None) == (self.mate is None):
            raise ValueError(f"score cp {self.cp} mate {self.mate}: expected exactly one of the two")


@dataclass(frozen=True, slots=True)
class Info:
    """One report of a running search: a completed depth or a changed root move.

    `time` is in milliseconds, `hashfull` and `wdl` in per mille, `nps` in nodes per second. `pv` is legal,
    begins with the best move and ends where the game ends, or where a solved table has its value. `bound` is "",
    "lowerbound" or "upperbound". `tbhits` is None where no table is named.
    """

    depth: int
    seldepth: int
    multipv: int
    score: Score
    nodes: int
    nps: int
    hashfull: int
    time: int
    pv: tuple[int, ...]
    wdl: tuple[int, int, int] = (0, 1000, 0)
    bound: str = ""
    tbhits: int | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search answers: a move (None when the game is over, or when no search was possible) and the reply it
    expects. `better` is the best line, where a weakened search chose another."""

    move: int | None
    ponder: int | None = None
    better: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """How to search, whatever the position: the options a searcher acts on."""

    algorithm: str = "alphabeta"
    evaluator: str = "default"
    hash_mib: int = 64
    threads: int = 1
    multipv: int = 1
    move_overhead: int = 10
    """Milliseconds kept back from every clock for the way between the programs."""
    ponder: bool = False
    """Whether the host lets the engine think on the opponent's time."""
    contempt: int = 0
    """Centipawns by which a draw is worse for the side that alpha-beta thinks for than even play."""
    seed: int = 1
    wins: str = "near"
    """`near`: a nearer win is better; `flat`: minimax takes all wins for equal; `unseen`: it asks the evaluator about a
    finished game of Hex as about any other position (other games: as `near`)."""
    mcts_leaf: str = "auto"
    """What a tree search does at a leaf: `playout`, `evaluator`, or `auto`: mcts plays, puct evaluates."""
    exploration: int = 100
    """Hundredths of the constant by which tree searches look at moves that do worse."""
    skill: float = 10
    """0 to 10, fractions included: how strong alpha-beta plays; 10 is as strong as it can (`skill.py`)."""
    temperature: int = 0
    """At full skill: centipawns by which alpha-beta's choice among its best moves is free; 0: it plays the best one."""
    choices: int = 6
    """The moves among which it chooses so."""
    at_random: int = 0
    """At full skill: how many of a thousand moves alpha-beta plays at random."""
    features: str = "default"
    """What alpha-beta does beyond the textbook, in the words of `features.py`."""
    tables: Tables | None = None
    """Solved tables that alpha-beta asks, those of the position's rules unpacked before."""
    extra: dict[str, str] = field(default_factory=dict)
    """Settings of single algorithms, by name."""


class Searching(Protocol):
    """What a session asks of a searcher. Only `stop` and `ponderhit` may be called from another thread."""

    def configure(self, settings: Settings) -> None:
        """Takes over new settings before the next search."""

    def clear(self) -> None:
        """Forgets tables and histories: a new game begins."""

    def begin(self) -> None:
        """Takes back an earlier `stop` or `ponderhit`. Called before every search, by the thread that also sends
        `stop`: so a `stop` that arrives before `search` has got going counts, and a late one does no harm."""

    def search(self, position: Position, limits: Limits, on_info: Callable[[Info], None]) -> SearchResult:
        """Searches until a limit is reached or `stop` is called; never called on a finished position.

        It does not take back a `stop` on entry (`begin` did). With `infinite` or `ponder` it may return early:
        the session holds the answer back.
        """

    def stop(self) -> None:
        """Ends the search as soon as possible."""

    def ponderhit(self) -> None:
        """The expected move was played: from now on the clock counts."""

    def evaluate(self, position: Position) -> list[tuple[str, int]]:
        """Terms of the evaluation in centipawns for the attackers; the last is `total`."""
