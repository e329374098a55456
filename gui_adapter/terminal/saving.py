"""Games as files: records in every format, text from a clipboard, and what a game leaves on disk while it is played."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Final, Literal

from hnefi.engine import durable, squares
from hnefi.engine.games.base_variant import AnyVariant, VariantError
from hnefi.engine.records.formats import Reading, form_of, format_of
from hnefi.engine.records.formats import read as read_games
from hnefi.engine.records.formats import write as write_game
from hnefi.engine.records.record import GameRecord, Ply, sorted_squares
from hnefi.engine.records.rule_sets import Find, played_by, variant_of
from hnefi.engine.records.text import Losses, RecordError
from hnefi.engine.regular import open_regular
from hnefi.engine.sides import Outcome, Reason, Side
from hnefi.engine.wording import shorten
from hnefi.protocol.hosts import journal

from .clock import GameClock, spell
from .game import Game, Node, move_number, next_side
from .opponents import PERSON, Players
from .values import End, SideLetter

SUFFIX: Final = ".tafl"
KEPT: Final = 20
"""Games saved by themselves that are kept."""
_AUTOMATIC: Final = "game-"
ADAPTER: Final = "terminal"
PASTED: Final = "a FEN, moves, or a recorded game"
"""What can be pasted."""
PLAYER_TAGS: Final[tuple[tuple[str, SideLetter], ...]] = (("AttackersSeat", "a"), ("DefendersSeat", "d"))
"""Tags of records that say who played a side, and the side."""


class SavingError(ValueError):
    """A file that cannot be read or written; the text is a sentence for people."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A game from a file: its variant and record, and whether the file holds further games."""

    record: GameRecord
    variant: AnyVariant
    more: bool = False


# Games and records


def record_of(game: Game, names: tuple[str, str], tags: tuple[tuple[str, str], ...] = ()) -> GameRecord:
    """The whole tree as a record; the main line's end is the outcome."""
    tip = game.root.tip()
    own = {name for name, _ in tags}
    kept = tuple((name, text) for name, text in game.tags if name not in own)
    record = GameRecord(
        game.variant.name,
        start=game.start,
        plies=_plies(game.root),
        outcome=outcome_of(tip),
        players=names,
        tags=kept + tags,
        comment=game.comment,
    )
    return played_by(record, game.variant)


def tags_of(players: Players, clock: GameClock | None) -> tuple[tuple[str, str], ...]:
    """The tags that say who plays and by which clock, so that the game can be continued like that."""
    tags = []
    for tag, side in PLAYER_TAGS:
        opponent = players[side].opponent
        tags.append((tag, PERSON if opponent is None else opponent.spec.spelled))
    if clock is not None:
        tags.append(("Clock", spell(clock.base, clock.increment)))
    return tuple(tags)


def outcome_of(node: Node) -> Outcome | None:
    """How the game ended here, by the rules or otherwise."""
    if node.end is not None:
        return _outcome(node.end.result, node.end.reason)
    if node.facts is not None and node.facts.result is not None and node.facts.reason is not None:
        return _outcome(node.facts.result, node.facts.reason)
    return None


def _outcome(result: str, reason: str) -> Outcome:
    return Outcome(None if result == "draw" else Side.of(result), Reason(reason))


def _plies(root: Node) -> tuple[Ply, ...]:
    """The main line below `root`; every other child of a place is a variation on the ply that was played there."""
    plies = []
    node = root
    while node.children:
        others = node.children[1:]
        node = node.children[0]
        plies.append(_ply(node, tuple((_ply(other, ()), *_plies(other)) for other in others)))
    return tuple(plies)


def _ply(node: Node, variations: tuple[tuple[Ply, ...], ...]) -> Ply:
    taken = node.captures
    return Ply(
        move_number(node.text),
        None if taken is None else sorted_squares(squares.parse(sq, squares.MAX_SIZE) for sq in taken),
        node.clock,
        node.time,
        node.cp,
        node.mate,
        node.depth,
        node.comment,
        variations,
    )


def game_of(record: GameRecord, variant: AnyVariant) -> Game:
    """The tree that a record describes, looked at where its main line ends; the rules have not been asked."""
    game = Game(variant, record.start)
    game.comment = record.comment
    game.tags = record.tags
    _grow(game, game.root, record.plies)
    game.at = game.root.tip()
    if record.outcome is not None:
        # Whether the rules agree is found out when they are asked.
        outcome = record.outcome
        result: Literal["a", "d", "draw"] = "draw" if outcome.winner is None else ("a", "d")[outcome.winner]
        game.at.end = End(result, outcome.reason.value, "")
    return game


def _grow(game: Game, parent: Node, plies: tuple[Ply, ...]) -> None:
    node = parent
    for ply in plies:
        before = node
        node = _node(ply, before)
        before.children.append(node)
        game.size += 1
        for line in ply.variations:
            _grow(game, before, line)


def _node(ply: Ply, parent: Node) -> Node:
    return Node(
        squares.move_name(ply.move),
        next_side(parent, ply.move),
        parent,
        parent.ply + 1,
        None if ply.captures is None else tuple(squares.name(sq) for sq in ply.captures),
        ply.comment,
        ply.clock,
        ply.time,
        ply.cp,
        ply.mate,
        ply.depth,
    )


# Files


def target(name: str) -> Path:
    """The file that a person means by `name`: our own format where the name has no ending. SavingError if it can be
    no file."""
    try:
        path = Path(name).expanduser()
    except RuntimeError:
        raise SavingError(f"{shorten(name)}: no such user: expected a file name") from None
    if not path.name or path.is_dir():
        raise SavingError(f"{shorten(name)}: a folder: expected the name of a file in it")
    if path.exists() and not path.is_file():
        raise SavingError(f"{shorten(name)}: not a regular file: expected another name")
    return path if path.suffix else path.with_name(path.name + SUFFIX)


def check_format(path: Path) -> None:
    """SavingError if the file's ending names no format."""
    try:
        format_of(path)
    except RecordError as error:
        raise SavingError(str(error)) from None


def write(path: Path, record: GameRecord, find: Find) -> list[str]:
    """Write a record, whole or not at all; returns what its format cannot hold. SavingError."""
    losses = Losses()
    try:
        text = write_game(record, format_of(path), find, losses)
    except (RecordError, ValueError) as error:
        raise SavingError(str(error)) from None
    write_text(path, text)
    return [f"{kind} ({count})" for kind, count in sorted(losses.items())]


def write_text(path: Path, text: str) -> None:
    """Replace a file by `text` in one step; SavingError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        durable.put(path, text.encode(), draft=draft)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SavingError(f"{path}: {reason}: expected a file that can be written") from None


def as_text(record: GameRecord, form: str, find: Find) -> str:
    """A record as text of a format; SavingError."""
    try:
        return write_game(record, form, find, Losses())
    except (RecordError, ValueError) as error:
        raise SavingError(str(error)) from None


def load(path: Path, number: int | None, find: Find, variant: AnyVariant) -> Loaded:
    """Game `number` (from 1) of a file: by default its first, of a journal its last. SavingError."""
    try:
        with open_regular(path) as stream:
            return _load(path, stream, number, find, variant)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None)
        text = f"{reason}: expected a recorded game" if reason else str(error)
        if not text.startswith(str(path)):
            text = f"{path}: {text}"
        if not reason and path.suffix.lower() == ".csv":
            text += (
                f" (by the rules of {variant.name}: a CSV file names none, `variant NAME` or --variant does)"
            )
        raise SavingError(text) from None


def _load(path: Path, stream: IO[bytes], number: int | None, find: Find, variant: AnyVariant) -> Loaded:
    first = stream.readline(journal.LINE_LIMIT)
    stream.seek(0)
    if journal.is_journal(first):
        records = list(journal.read(path))
        wanted = len(records) if number is None else number
        found = iter(records[wanted - 1 : wanted + 1])
        return _first(path, found, wanted, find, last=number is None)
    form = format_of(path)
    games = read_games(stream, str(path), form, Reading(find, variant), Losses())
    wanted = 1 if number is None else number
    return _first(path, (game.record for game in islice(games, wanted - 1, None)), wanted, find)


def _first(path: Path, records: Iterator[GameRecord], number: int, find: Find, last: bool = False) -> Loaded:
    record = next(records, None)
    if record is None:
        raise SavingError(f"{path}: no game {number} in it: expected a number of one of its games, from 1")
    more = (last and number > 1) or next(records, None) is not None
    return Loaded(record, _variant(record, find), more)


def _variant(record: GameRecord, find: Find) -> AnyVariant:
    try:
        return variant_of(record, find)
    except VariantError as error:
        raise SavingError(f"the game's rules: {error}") from None


def parse(text: str, find: Find, variant: AnyVariant) -> Loaded:
    """A pasted record, in our own format, as JSON, or in OpenTafl's. Raises SavingError."""
    try:
        games = read_games(
            io.BytesIO(text.encode("utf-8", "replace")),
            "pasted",
            form_of(text),
            Reading(find, variant),
            Losses(),
        )
        record = next((game.record for game in games), None)
    except ValueError as error:
        raise SavingError(str(error)) from None
    if record is None:
        raise SavingError(f"pasted text: expected {PASTED}")
    return Loaded(record, _variant(record, find))


# The game that is saved by itself


class Autosave:
    """One file for the running game of this process, written again after each ply and taken away at its end."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or journal.data_folder() / ADAPTER
        self.path: Path | None = None
        self.failure: str | None = None

    def write(self, record: GameRecord, find: Find) -> None:
        """Save the game; what goes wrong is kept in `failure`, and nothing more is tried."""
        if self.failure is not None:
            return
        try:
            if self.path is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self.path = self._new()
                self._thin()
            write(self.path, record, find)
        except OSError as error:
            self.failure = f"{self._folder}: {error.strerror or error}: this game is not saved automatically"
        except SavingError as error:
            self.failure = f"this game is not saved automatically: {error}"

    def adopt(self, path: Path) -> None:
        """The running game is the one in `path` from now on; the file is renamed, so that it is known for ours."""
        self.path = self._new()
        with suppress(OSError):
            path.replace(self.path)

    def forget(self) -> None:
        """The game is over or put away: its file is not needed any more."""
        if self.path is not None:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)
            self.path = None

    def leave(self) -> None:
        """Another game begins; the file of this one stays for `continue`."""
        self.path = None

    def unfinished(self) -> Path | None:
        """The newest game that another process of ours, now ended, has left."""
        return next((path for path in self._files() if path != self.path and not _alive(path)), None)

    def _new(self) -> Path:
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
        return self._folder / f"{_AUTOMATIC}{stamp}-{os.getpid()}{SUFFIX}"

    def _files(self) -> list[Path]:
        """All saved games, newest first."""
        try:
            files = [(path.stat().st_mtime_ns, path) for path in self._folder.glob(f"{_AUTOMATIC}*{SUFFIX}")]
        except OSError:
            return []
        return [path for _, path in sorted(files, reverse=True)]

    def _thin(self) -> None:
        for path in self._files()[KEPT - 1 :]:
            if not _alive(path):
                with suppress(OSError):
                    path.unlink()


class Files:
    """A journal, ply by ply, and the file from which a game can be resumed, for one game after the other.

    `keep` says whether anything is written, `autosave` whether an unfinished game can be resumed later. The folders are
    the user's own where none are given.
    """

    def __init__(
        self,
        find: Find,
        *,
        keep: bool = True,
        autosave: bool = True,
        folder: Path | None = None,
        unfinished: Path | None = None,
    ) -> None:
        self.find = find
        self.keep = keep
        self.autosaves = keep and autosave
        self.autosave = Autosave(unfinished)
        self.journal = journal.Journal(ADAPTER, folder)
        self._log: journal.GameLog | None = None

    @property
    def saved(self) -> bool:
        """Whether the game is in a file from which it can be resumed."""
        return self.autosave.path is not None and self.autosave.failure is None

    @property
    def failure(self) -> str | None:
        """Why nothing is kept, if something went wrong."""
        return self.journal.failure or self.autosave.failure

    def played(self, record: Callable[[], GameRecord], node: Node) -> None:
        """A ply was played."""
        if not self.keep:
            return
        whole = record()
        if self._log is None:
            self._log = self.journal.begin(replace(whole, plies=(), outcome=None, comment=""))
        self._log.follow(
            [journal.Entry(ply.text, tuple(ply.captures or ()), ply.clock, ply.time) for ply in node.line()]
        )
        if self.autosaves:
            self.autosave.write(whole, self.find)

    def noted(self, record: Callable[[], GameRecord]) -> None:
        """A comment was written: a game that is being saved by itself is saved again."""
        if self.autosave.path is not None:
            self.autosave.write(record(), self.find)

    def over(self, plies: int, result: str, reason: str) -> None:
        """Record that the game has ended after `plies` plies."""
        if self._log is not None:
            self._log.undo(plies)
            self._log.end(result, reason)
            self._log = None
        self.autosave.forget()

    def put_away(self, unfinished: GameRecord | None, why: str = "another game was begun") -> None:
        """The game is left; an unfinished one can be resumed later."""
        if self._log is not None:
            self._log.end(None, "interrupted", why)
            self._log = None
        if unfinished is not None and self.autosave.path is not None:
            self.autosave.write(unfinished, self.find)
            self.autosave.leave()
        else:
            self.autosave.forget()


def _alive(path: Path) -> bool:
    """Whether the process that writes this file still runs; our own files count as left."""
    number = path.stem.rpartition("-")[2]
    if not number.isdigit() or int(number) == os.getpid():
        return False
    try:
        os.kill(int(number), 0)
    except (OSError, OverflowError):
        return False
    return True
