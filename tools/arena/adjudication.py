"""When the arena ends a game itself: by the scores that both engines report, or by a file of solved positions.

A file of solved positions is JSON lines. A header, which is known by its rules hash, begins the positions of a variant:

    {"variant": "hexapawn:3x3", "rules": "5f0c..."}
    ["ppp/3/PPP a 0 1", "d"]

A position is a FEN and who wins with best play (`a`, `d` or `draw`). It stands for all its images under the symmetries
of the board that keep the game, however it was reached: repetitions and counters are not looked at.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from hnefi.engine.regular import open_regular
from hnefi.engine.wording import shorten

from ..common.pairs import Winner
from . import schedule
from .options import Config, ConfigError
from .values import find_variant

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.base_variant import AnyVariant

FILE_LIMIT = 64 << 20
LINE_LIMIT = 4096
POSITIONS = 300_000
"""Positions of a run's variants in one file: some 50 MiB of memory."""
KEY = 16

WINNERS = get_args(Winner)


DECISIVE = 1_000_000
"""Centipawns that stand for an announced end; no limit of an adjudication is higher."""


@dataclass(frozen=True, slots=True)
class Adjudication:
    """When the arena ends a game by itself; 0 and False switch a rule off. Looked at after every ply.

    Resignation, two-sided: in the last `resign_moves` moves of each side, one side's scores were all at most
    -`resign_cp` and the other's all at least `resign_cp`. Draw: in the last `draw_moves` moves of each side all
    scores were within `draw_cp` of 0, `draw_after` plies are played and the last `draw_no_capture` took nothing.
    `mates`: both sides announce an end, for the same winner. `max_plies`: a longer game is a draw.
    A move without a score resets the counts. `oracle`: where it knows who wins, that is the result.
    """

    resign_cp: int = 0
    resign_moves: int = 0
    draw_cp: int = 0
    draw_moves: int = 0
    draw_after: int = 0
    draw_no_capture: int = 0
    mates: bool = False
    max_plies: int = 0
    oracle: Oracle | None = None

    @property
    def reads_scores(self) -> bool:
        """Whether any rule looks at what engines say."""
        return bool(self.resign_moves or self.draw_moves or self.mates)


NONE = Adjudication()


def won_by(side: int) -> Winner:
    """The result of a game that a side has won."""
    return "a" if side == 0 else "d"


class Scores:
    """What the two sides reported about their chances, as far as adjudication needs it."""

    def __init__(self, rule: Adjudication) -> None:
        self._rule = rule
        self._won = [0, 0]
        self._lost = [0, 0]
        self._even = [0, 0]
        self._mate: list[int | None] = [None, None]

    def add(self, side: int, cp: int | None, mate: int | None) -> None:
        """Record the report of `side` with its move; both None if it reported nothing."""
        self._mate[side] = mate
        if mate is not None:
            cp = DECISIVE if mate > 0 else -DECISIVE
        rule = self._rule
        for counts, holds in (
            (self._won, cp is not None and cp >= rule.resign_cp),
            (self._lost, cp is not None and cp <= -rule.resign_cp),
            (self._even, cp is not None and abs(cp) <= rule.draw_cp),
        ):
            counts[side] = counts[side] + 1 if holds else 0

    def verdict(self, plies: int, quiet: int) -> Winner | None:
        """The result by both sides' reports, after `plies` plies, `quiet` of them since the last capture."""
        rule = self._rule
        for winner, loser in ((0, 1), (1, 0)):
            agreed = min(self._won[winner], self._lost[loser])
            if rule.resign_moves and agreed >= rule.resign_moves:
                return won_by(winner)
            if rule.mates and (self._mate[winner] or 0) > 0 and (self._mate[loser] or 0) < 0:
                return won_by(winner)
        if (
            rule.draw_moves
            and min(self._even) >= rule.draw_moves
            and plies >= rule.draw_after
            and quiet >= rule.draw_no_capture
        ):
            return "draw"
        return None


class Oracle:
    """The winners of positions, read from a file."""

    def __init__(self, name: str) -> None:
        self.fact = f"oracle {name}"
        self._known: dict[bytes, Winner] = {}

    def winner(self, position: Position) -> Winner | None:
        """Who wins from here; None if unknown."""
        return self._known.get(_key(position))

    def add(self, position: Position, winner: Winner) -> Winner:
        """Record the winner of a position; returns the winner recorded before, or `winner`."""
        return self._known.setdefault(_key(position), winner)

    def __len__(self) -> int:
        return len(self._known)


def _key(position: Position) -> bytes:
    text = f"{position.variant.hash} {position.canonical()}"
    return hashlib.blake2b(text.encode(), digest_size=KEY).digest()


@lru_cache(maxsize=2)
def load_oracle(path: str, variants: tuple[str, ...]) -> Oracle:
    """The positions of these variants in a file; ConfigError names the line that cannot be used."""
    from hnefi.engine import games

    oracle = Oracle(Path(path).name)
    played = [find_variant(name) for name in variants]
    variant: AnyVariant | None = None
    found: list[str] = []
    number = 0
    for number, entry in _entries(Path(path)):
        where = f"{path}:{number}"
        if isinstance(entry, dict):
            variant = _section(where, entry, played)
            found.append(str(entry["variant"]))
            continue
        fen, winner = _position(where, entry)
        if not found:
            raise ConfigError(f'{where}: {shorten(entry)}: expected {{"variant": NAME, "rules": HASH}} first')
        if variant is None:
            continue
        try:
            known = oracle.add(games.from_fen(variant, fen), winner)
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from None
        if known != winner:
            raise ConfigError(
                f"{where}: winner {winner}: expected {known}, as an image of this position has it"
            )
        if len(oracle) > POSITIONS:
            raise ConfigError(f"{where}: expected at most {POSITIONS} positions")
    if not oracle:
        names = ", ".join(map(shorten, dict.fromkeys(found))) or "no variant"
        wanted = ", ".join(map(shorten, variants))
        raise ConfigError(f"{path}: positions of {names}: expected some of {wanted}")
    return oracle


def _entries(path: Path) -> Iterator[tuple[int, Any]]:
    """The JSON values of a file's lines, with line numbers."""
    try:
        if path.stat().st_size > FILE_LIMIT:
            raise ConfigError(f"{path}: {path.stat().st_size} bytes: expected at most {FILE_LIMIT}")
        with open_regular(path) as stream:
            number = 0
            while line := stream.readline(LINE_LIMIT + 1):
                number += 1
                if len(line) > LINE_LIMIT:
                    raise ConfigError(f"{path}:{number}: expected at most {LINE_LIMIT} bytes")
                if line.strip():
                    try:
                        yield number, json.loads(line)
                    except (ValueError, RecursionError):
                        raise ConfigError(f"{path}:{number}: {shorten(line)}: expected JSON") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}: expected a readable file") from None


def _section(where: str, entry: dict[str, Any], played: Sequence[AnyVariant]) -> AnyVariant | None:
    """The variant that is played and whose positions follow, None for another one."""
    name, rules = entry.get("variant"), entry.get("rules")
    if set(entry) != {"variant", "rules"} or not isinstance(name, str) or not isinstance(rules, str):
        raise ConfigError(f"{where}: {shorten(entry)}: expected variant and rules, both text")
    for variant in played:
        if variant.hash == rules:
            return variant
        if variant.name == name:
            raise ConfigError(
                f"{where}: rules {shorten(rules)} of {shorten(name)}: expected {variant.hash}, as it is played here"
            )
    return None


def _position(where: str, entry: Any) -> tuple[str, Winner]:
    if (
        isinstance(entry, list)
        and len(entry) == 2
        and isinstance(entry[0], str)
        and isinstance(entry[1], str)
        and entry[1] in WINNERS
    ):
        winner: Winner = entry[1]  # type: ignore[assignment]
        return entry[0], winner
    raise ConfigError(f"{where}: {shorten(entry)}: expected [FEN, WINNER], a winner of {', '.join(WINNERS)}")


def adjudication(config: Config) -> Adjudication:
    """When the arena ends games by itself, as the referee takes it; ConfigError for an oracle that cannot be used."""
    table = config.tables["adjudicate"]
    resign, draw = table["resign"], table["draw"]
    return Adjudication(
        resign_cp=resign.get("cp", 0),
        resign_moves=resign.get("moves", 0),
        draw_cp=draw.get("cp", 0),
        draw_moves=draw.get("moves", 0),
        draw_after=draw.get("after", 0),
        draw_no_capture=draw.get("no_capture", 0),
        mates=table["mates"],
        max_plies=table["max_plies"],
        oracle=load_oracle(table["oracle"], schedule.variants(config)) if table["oracle"] else None,
    )
