"""What the arena's modules pass to each other: engines, games to be played, games that were played.

Everything is a frozen value that JSON can hold, so that a game may be played here, in another process or on another
machine, and its result is the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from hnefi.engine.squares import FILES

from ..common.pairs import Winner

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.base_variant import AnyVariant

LATE = 5.0
"""Milliseconds from which on the arena's own lateness is reported."""
Watch = Callable[[str, dict[str, Any]], None]
"""Told what happens, while no clock runs in that game: `start` (slot, task, fen), `ply` (slot, task, number from 1,
ply as PlyLog) and `end` (slot, result)."""

_SQUARE = re.compile(r"([a-s])([1-9][0-9]?)")


@dataclass(frozen=True, slots=True)
class SideLimits:
    """What ends one engine's thinking; None and 0 mean that there is no such limit.

    `time` and `increment` are the clock in ms, `moves` the moves of one period of it (0: one period for the whole
    game), `movetime` ms, `depth` plies, `nodes`.
    """

    time: int | None = None
    increment: int = 0
    moves: int = 0
    movetime: int | None = None
    depth: int | None = None
    nodes: int | None = None

    @property
    def timed(self) -> bool:
        """Whether a clock or a time per move runs."""
        return self.time is not None or self.movetime is not None


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """One engine of a run: how its process is started, what it is told, and how long it may think.

    `limits` are those as attackers and as defenders; `margin` ms are granted beyond them, `move_timeout` is the limit
    in seconds where only nodes or depth end a move. `clock` is `movetime` for engines that know no clock, `letters`
    `adk` for engines with other piece letters. `restart`: `on` for every game, `off`, or `auto` after a fault only.
    """

    name: str
    command: tuple[str, ...]
    player: str = ""
    proto: str = "auto"
    options: tuple[tuple[str, str], ...] = ()
    init: tuple[str, ...] = ()
    limits: tuple[SideLimits, SideLimits] = (SideLimits(), SideLimits())
    margin: int = 0
    move_timeout: float = 60.0
    start: float = 10.0
    ready: float = 60.0
    new_game: float = 60.0
    quit: float = 0.5
    cwd: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    stderr: str | None = None
    clock: str = ""
    letters: str = ""
    restart: Literal["on", "off", "auto"] = "auto"


@dataclass(frozen=True, slots=True)
class Opening:
    """Where a game begins: `start` is a FEN (None: the variant's start), `moves` are played from there."""

    start: str | None = None
    moves: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The opening as a line of an opening file."""
        if self.start is None:
            return " ".join(self.moves) or "startpos"
        return " ".join([self.start, *(["moves", *self.moves] if self.moves else [])])

    def position(self, variant: AnyVariant) -> Position:
        """The position that the opening leads to; ValueError if it cannot be played."""
        from hnefi.engine import games

        position = games.initial(variant) if self.start is None else games.from_fen(variant, self.start)
        for text in self.moves:
            position = position.play(position.parse_move(text))
        return position


def is_rules(variant: str) -> bool:
    """Whether a game's variant is an OTN rules string rather than a name."""
    return "dim:" in variant


@lru_cache(maxsize=64)
def find_variant(text: str) -> AnyVariant:
    """The variant of that name or file, or the one that an OTN rules string describes; ValueError if there is none."""
    from hnefi.engine import games
    from hnefi.engine.games.tafl import otn

    return otn.import_rules(text)[0] if is_rules(text) else games.named(text)


@dataclass(frozen=True, slots=True)
class GameTask:
    """One game to be played. `pair` counts from 1, `game` is 1 or 2 (sides swapped); `engines` are the indices of
    attackers and defenders in the run's list, `seeds` theirs."""

    pair: int
    game: Literal[1, 2]
    variant: str
    opening: Opening
    engines: tuple[int, int]
    seeds: tuple[int, int]

    @property
    def id(self) -> str:
        """The name of the game in its run: `17.2` is the second game of pair 17."""
        return f"{self.pair}.{self.game}"


@dataclass(frozen=True, slots=True)
class PlyLog:
    """One ply as played: the score is the mover's, `time` and `clock` (left after the ply) are ms as the arena
    measured them, `latency` is ms between the engine's own time and ours."""

    move: str
    captures: tuple[str, ...] = ()
    cp: int | None = None
    mate: int | None = None
    depth: int | None = None
    seldepth: int | None = None
    nodes: int | None = None
    nps: int | None = None
    time: float | None = None
    clock: int | None = None
    latency: float | None = None
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """An engine's fault: its side (0 attackers, 1 defenders), a reason of the closed list, and the fact in
    words. `reproducible` is False where only a clock says so."""

    side: Literal[0, 1]
    reason: str
    text: str
    reproducible: bool = True


@dataclass(frozen=True, slots=True)
class GameResult:
    """A game that ended, or was interrupted: `winner` is None only for `interrupted` and `start_failure`.

    `reason` is of the closed list of reasons; `names` are those of attackers and defenders, `ids` what the engines
    called themselves; `captured` counts men taken by attackers and by defenders (the king is no man); `advisories`
    are oddities that cost nothing; `lateness` is by how many ms the arena itself was late at most.
    """

    task: GameTask
    names: tuple[str, str]
    winner: Winner | None
    reason: str
    plies: tuple[PlyLog, ...]
    captured: tuple[int, int] = (0, 0)
    fault: Fault | None = None
    ids: tuple[str, str] = ("", "")
    final: str = ""
    rules_hash: str = ""
    advisories: tuple[str, ...] = ()
    stray: int = 0
    lateness: float = 0.0
    started: float = 0.0
    seconds: float = 0.0
    duplicate_of: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        """Whether it is a result at all."""
        return self.winner is not None

    def points(self, side: int) -> float:
        """1, ½ or 0 for side 0 (attackers) or 1 (defenders)."""
        if self.winner is None or self.winner == "draw":
            return 0.5
        return 1.0 if self.winner == "ad"[side] else 0.0


def to_json(result: GameResult) -> dict[str, Any]:
    """A result as JSON holds it; fields that say nothing are left out."""
    from dataclasses import asdict

    return _plain(asdict(result))  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item not in (None, (), {}, "")}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def from_json(document: dict[str, Any]) -> GameResult:
    """The result that `to_json` wrote; ValueError or KeyError for anything else."""
    task = dict(document["task"])
    opening = task.get("opening", {})
    fault = document.get("fault")
    known = {key: value for key, value in document.items() if key not in ("task", "plies", "fault")}
    for key in ("names", "captured", "ids", "advisories"):
        if key in known:
            known[key] = tuple(known[key])
    return GameResult(
        task=GameTask(
            task["pair"],
            task["game"],
            task["variant"],
            Opening(opening.get("start"), tuple(opening.get("moves", ()))),
            (task["engines"][0], task["engines"][1]),
            (task["seeds"][0], task["seeds"][1]),
        ),
        plies=tuple(_ply(ply) for ply in document.get("plies", ())),
        fault=None if fault is None else Fault(**fault),
        winner=known.pop("winner", None),
        reason=known.pop("reason"),
        names=known.pop("names"),
        **known,
    )


def _ply(ply: dict[str, Any]) -> PlyLog:
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in ply.items()}
    return PlyLog(**fields)


def image(result: GameResult) -> str:
    """A word that is equal for games that are images of each other: all moves turned alike, and the same end.

    The symmetries are those of the board. A variant whose rules do not keep one of them does not give a game and its
    image the same end. Games from a given position must begin in the very same one.
    """
    moves = " ".join((*result.task.opening.moves, *(ply.move for ply in result.plies)))
    ranks = result.final.partition(" ")[0].split("/")
    files = sum(int(run) if run.isdigit() else 1 for run in re.findall(r"[0-9]{1,2}|[a-z]", ranks[0].lower()))
    squares = [(FILES.index(file), int(rank) - 1) for file, rank in _SQUARE.findall(moves)]
    turned = min([turn[at] for at in squares] for turn in _turns(files, len(ranks)))
    task = result.task
    said = (task.variant, task.opening.start, result.winner, result.reason, _SQUARE.sub("*", moves), turned)
    return sha256(repr(said).encode()).hexdigest()[:32]


@lru_cache(maxsize=32)
def _turns(files: int, ranks: int) -> list[dict[tuple[int, int], tuple[int, int]]]:
    """Where squares go under each symmetry of a board: mirrored files (1), mirrored ranks (2), diagonal (4)."""
    turns: list[dict[tuple[int, int], tuple[int, int]]] = []
    for turn in range(8 if files == ranks else 4):
        to = {}
        for file, rank in product(range(len(FILES)), range(99)):
            at = files - 1 - file if turn & 1 else file, ranks - 1 - rank if turn & 2 else rank
            to[file, rank] = at[::-1] if turn & 4 else at
        turns.append(to)
    return turns
