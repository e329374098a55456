"""Solved positions that end games: what both sides would play out is looked up in a file of data.

A file is JSON lines. A header begins the positions of one variant, and is known by its rules hash:

    {"variant": "hexapawn:3x3", "rules": "5f0c..."}
    ["ppp/3/PPP a 0 1", "d"]

A position is a FEN and who wins (`a`, `d` or `draw`) with best play. It stands for all its images under the symmetries
of the board that keep the game, and for all ways that lead to it: repetitions and counters are not looked at.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from hnefi.engine.regular import open_regular
from hnefi.engine.wording import shorten

from ..common.pairs import Winner
from .openings import find_variant
from .options import ConfigError

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.base_variant import AnyVariant

FILE_LIMIT = 64 << 20
LINE_LIMIT = 4096
POSITIONS = 300_000
"""Positions of a run's variants in one file: some 50 MiB of memory."""
KEY = 16

WINNERS = get_args(Winner)


class Oracle:
    """Who wins where, as a file has it."""

    def __init__(self, name: str) -> None:
        self.fact = f"oracle {name}"
        self._known: dict[bytes, Winner] = {}

    def winner(self, position: Position) -> Winner | None:
        """Who wins from here, None if that is not known."""
        return self._known.get(_key(position))

    def add(self, position: Position, winner: Winner) -> Winner:
        """Learn about a position; what was known of it, or `winner`."""
        return self._known.setdefault(_key(position), winner)

    def __len__(self) -> int:
        return len(self._known)


def _key(position: Position) -> bytes:
    text = f"{position.variant.hash} {position.canonical()}"
    return hashlib.blake2b(text.encode(), digest_size=KEY).digest()


@lru_cache(maxsize=2)
def load(path: str, variants: tuple[str, ...]) -> Oracle:
    """What a file says about these variants; ConfigError names the line that cannot be used."""
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
    """The JSON values of a file's lines with their numbers."""
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
