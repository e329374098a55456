"""An opening book: the results of positions in games, as a readable text file.

    taflbook 1
    variant brandubh 63d2407c73c83541    name and the first 16 digits of the rules hash
    b8f1c9d2a3e45f60 120 96 24 561       key, wins of attackers and defenders, draws, value per mille
    sha256 8c1d...                       of everything above

A book is about positions, not about moves: a move is as good as the position that it leads to, so that transpositions
and images under the symmetries of the board are one. The value is what the attackers can expect: of a position that no
kept one follows, the score of its games, drawn towards one half; of any other, the value of its best successor for the
side to move (minimax). Nothing in a book is believed before the digest has been compared, and nothing is executed.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from . import durable
from .regular import open_regular
from .sides import Side
from .wording import shorten

if TYPE_CHECKING:
    from .games.base_position import Position
    from .games.base_variant import AnyVariant

SUFFIX: Final = ".taflbook"
SHIPPED: Final = Path(__file__).with_name("books")
MAGIC: Final = "taflbook 1"
DIGITS: Final = 16
"""Of the rules hash, and of a position's key."""
MOST_BYTES: Final = 1 << 24
MOST_GAMES: Final = 10**9
PRIOR: Final = 8.0
"""Added to the games of a position, half of them won, because few games say little."""
MARGIN: Final = 40
"""A move may be worth so much less than the best one, per mille of a game, and still be played."""
FEWEST: Final = 4
"""In how many games a position must have come up to be played."""


class BookError(ValueError):
    """A file is not a book, or was damaged; the message names the file, the line and what was expected."""


@dataclass(frozen=True, slots=True)
class Record:
    """The results of a position: games won by attackers, by defenders, drawn; the attackers' value per mille."""

    attackers: int
    defenders: int
    draws: int
    value: int

    @property
    def games(self) -> int:
        """The number of its games."""
        return self.attackers + self.defenders + self.draws


Entries = Mapping[str, Record]
"""Records of positions by their keys."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """A book's positions of one variant; `rules` are the first digits of its hash."""

    name: str
    rules: str
    entries: Entries


@dataclass(frozen=True, slots=True)
class Book:
    """Chapters, one for each set of rules."""

    chapters: tuple[Chapter, ...] = ()

    def of(self, variant: AnyVariant) -> Entries:
        """The positions of a variant; empty if the book has no chapter for these rules."""
        rules = variant.hash[:DIGITS]
        return next((chapter.entries for chapter in self.chapters if chapter.rules == rules), {})


def key(position: Position) -> str:
    """A key that is equal for positions that are images of each other, whatever was played before."""
    text = json.dumps(position.canonical(), separators=(",", ":"), default=int)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


# Lookup


@dataclass(frozen=True, slots=True)
class Choice:
    """Moves that lead to one position, and its results."""

    moves: tuple[int, ...]
    record: Record


def choices(entries: Entries, position: Position) -> list[Choice]:
    """The known moves of a position, the best for the side to move first; empty for an unknown position."""
    if position.outcome is not None or key(position) not in entries:
        return []
    found: dict[str, list[int]] = {}
    for move in position.legal_moves():
        after = key(position.play(move))
        if after in entries:
            found.setdefault(after, []).append(move)
    sign = 1 if position.side == Side.ATTACKERS else -1
    made = [Choice(tuple(moves), entries[after]) for after, moves in found.items()]
    return sorted(made, key=lambda choice: (-sign * choice.record.value, -choice.record.games, choice.moves))


def near_best(known: Sequence[Choice]) -> list[Choice]:
    """The first of the ordered choices, those as good as the best or nearly so: they may be played."""
    enough = [choice for choice in known if choice.record.games >= FEWEST]
    return [choice for choice in enough if abs(choice.record.value - enough[0].record.value) <= MARGIN]


def choose(entries: Entries, position: Position, draw: random.Random) -> int | None:
    """A move as good as the best or nearly so, drawn in proportion to its games; None if the book has none."""
    near = near_best(choices(entries, position))
    if not near:
        return None
    (chosen,) = draw.choices(near, [choice.record.games for choice in near])
    return draw.choice(chosen.moves)


# Building


@dataclass(slots=True)
class _Node:
    side: Side
    ply: int
    counts: list[int] = field(default_factory=lambda: [0, 0, 0])
    after: set[str] = field(default_factory=set)


class Grower:
    """Collects games of one variant; `entries` gives the totals."""

    def __init__(self, plies: int) -> None:
        self._plies = plies
        self._nodes: dict[str, _Node] = {}
        self.games = 0

    def add(self, positions: Sequence[Position], winner: Side | None) -> None:
        """Add a game: its positions from the start on, and the winner."""
        self.games += 1
        before: _Node | None = None
        result = 2 if winner is None else int(winner)
        seen = set()
        for ply, position in enumerate(positions[: self._plies + 1]):
            if position.outcome is not None:
                break
            name = key(position)
            node = self._nodes.setdefault(name, _Node(position.side, ply))
            node.ply = min(node.ply, ply)
            if name not in seen:
                # A position that a game repeats counts once.
                seen.add(name)
                node.counts[result] += 1
            if before is not None:
                before.after.add(name)
            before = node

    def entries(self, least: int) -> dict[str, Record]:
        """The positions that came up in `least` games or more, with their values."""
        kept = {name: node for name, node in self._nodes.items() if sum(node.counts) >= least}
        values: dict[str, float] = {}
        # The last positions first. An edge that leads back to an earlier ply is a repetition, and left out.
        for name, node in sorted(kept.items(), key=lambda item: -item[1].ply):
            after = [values[other] for other in node.after if other in kept and kept[other].ply > node.ply]
            best = max if node.side == Side.ATTACKERS else min
            values[name] = best(after) if after else _score(node.counts)
        made = {}
        for name in sorted(kept):
            attackers, defenders, draws = kept[name].counts
            made[name] = Record(attackers, defenders, draws, round(1000 * values[name]))
        return made


def _score(counts: Sequence[int]) -> float:
    attackers, _, draws = counts
    return (attackers + (draws + PRIOR) / 2) / (sum(counts) + PRIOR)


# Files


def text_of(book: Book) -> str:
    """The text of a book."""
    lines = [MAGIC]
    for chapter in book.chapters:
        lines.append(f"variant {chapter.name} {chapter.rules}")
        for name, one in sorted(chapter.entries.items()):
            lines.append(f"{name} {one.attackers} {one.defenders} {one.draws} {one.value}")
    body = "\n".join(lines) + "\n"
    return f"{body}sha256 {hashlib.sha256(body.encode()).hexdigest()}\n"


def write(path: Path, book: Book) -> None:
    """Write a book in one step; OSError if that fails."""
    durable.put(path, text_of(book).encode())


def read(path: Path) -> Book:
    """The book in a file; BookError at the first thing that cannot be right."""
    try:
        with open_regular(path) as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise BookError(f"{path}: {error.strerror or error}: expected a readable file") from None
    if len(data) > MOST_BYTES:
        raise BookError(f"{path}: expected at most {MOST_BYTES} bytes")
    body, _, end = data.rpartition(b"sha256 ")
    if not data.startswith(MAGIC.encode() + b"\n"):
        raise BookError(
            f"{path}: {shorten(data[:20].decode('ascii', 'replace'))}: expected {MAGIC!r} as the first line"
        )
    if end.strip() != hashlib.sha256(body).hexdigest().encode():
        raise BookError(
            f"{path}: expected the digest of its text in the last line: it was cut off or changed"
        )
    chapters: list[Chapter] = []
    entries: dict[str, Record] = {}
    for number, line in enumerate(body.decode("ascii", "replace").splitlines()[1:], start=2):
        try:
            words = line.split(" ")
            if words[0] == "variant":
                entries = {}
                chapters.append(_chapter(words, entries, chapters))
            elif not chapters:
                raise BookError("expected a line `variant NAME RULES` before")
            else:
                name, record = _record(words)
                if name in entries:
                    raise BookError(f"{name}: expected each position once")
                entries[name] = record
        except BookError as error:
            raise BookError(f"{path}:{number}: {shorten(line)}: {error}") from None
    return Book(tuple(chapters))


def _chapter(words: list[str], entries: Entries, before: Sequence[Chapter]) -> Chapter:
    if len(words) != 3 or not _is_key(words[2]):
        raise BookError(f"expected `variant NAME RULES`, the last {DIGITS} digits of the rules hash")
    if any(chapter.rules == words[2] for chapter in before):
        raise BookError("expected each set of rules once")
    return Chapter(words[1], words[2], entries)


def _record(words: list[str]) -> tuple[str, Record]:
    if len(words) != 5 or not _is_key(words[0]):
        raise BookError("expected a key, three numbers of games and a value")
    numbers = [
        int(word) if word.isascii() and word.isdigit() and len(word) <= 10 else -1 for word in words[1:]
    ]
    if not all(0 <= number <= MOST_GAMES for number in numbers) or numbers[3] > 1000 or not any(numbers[:3]):
        raise BookError(
            f"expected numbers of games up to {MOST_GAMES}, one of them above 0, and a value of 0 to 1000"
        )
    return words[0], Record(numbers[0], numbers[1], numbers[2], numbers[3])


def _is_key(word: str) -> bool:
    return len(word) == DIGITS and all(sign in "0123456789abcdef" for sign in word)


def shipped() -> Book:
    """The books that ship, as one."""
    return joined(read(path) for path in sorted(SHIPPED.glob(f"*{SUFFIX}")))


def joined(books: Iterable[Book]) -> Book:
    """Books of different variants as one."""
    return Book(tuple(chapter for book in books for chapter in book.chapters))
