"""Every game that passes through a door of ours, ply by ply, so that nothing is lost with a process.

One file a day for each adapter, `<user data>/hnefi/games/<adapter>/<date>.jsonl`, with the games that began on that
day (UTC), one JSON object a line, each written at once and whole, so that several processes may share a file:

    {"game": "…", "event": "begin", "at": "2026-02-03T10:11:12Z", "variant": "brandubh", "attackers": "anna"}
    {"game": "…", "ply": 1, "move": "a4a2", "captures": [], "clock": 299000}
    {"game": "…", "event": "undo", "plies": 0}
    {"game": "…", "event": "end", "result": "d", "reason": "king_escaped"}

A game without an `end` was torn off with its process; one that was left is closed with the reason `interrupted` and,
as `why`, a sentence. `read` makes records of a file. A journal that cannot be written harms no game: `failure` says
why it went silent.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn

from hnefi.engine import squares as board
from hnefi.engine.moves_text import MoveTextError, parse_move_word
from hnefi.engine.records.record import PLY_LIMIT, GameRecord, Ply, RuleSet, sorted_squares
from hnefi.engine.records.text import RecordError, Stream
from hnefi.engine.regular import home_folder, open_regular
from hnefi.engine.sides import Outcome, Reason, Side
from hnefi.engine.wording import shorten

from .exit_codes import STORAGE, UNWRITABLE

START: Final = b'{"game": "'
"""How every line begins."""
LINE_LIMIT: Final = 1 << 20
"""Bytes of one line."""
GAMES_LIMIT: Final = 100_000
"""Games of one file."""


class JournalError(RecordError):
    """A journal that cannot be read; names the file, the line and what was expected."""


def data_folder(environment: Mapping[str, str] | None = None) -> Path:
    """The folder for this program's own data, by the conventions of the system."""
    named = (os.environ if environment is None else environment).get("XDG_DATA_HOME", "")
    base = Path(named) if Path(named).is_absolute() else home_folder() / ".local" / "share"
    return base / "hnefi"


def add_flags(to: argparse._ActionsContainer) -> None:
    """`--record-dir DIR` and `--no-record`, for an adapter that records games."""
    to.add_argument("--record-dir", metavar="DIR", help="record games in this folder, ply by ply")
    to.add_argument("--no-record", action="store_true", help="record no games")


def check_flags(options: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Make the folder of `--record-dir`; end the program with a sentence where that cannot be: a game that is being
    played is no time to find out."""
    folder = None if arguments.no_record else chosen_folder(arguments)
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        reason = "not a folder"
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in UNWRITABLE - {errno.ENOTDIR}:
            _unwritable(options, folder, reason)
    else:
        if os.access(folder, os.W_OK | os.X_OK):
            return
        _unwritable(options, folder, os.strerror(errno.EACCES))
    options.error(
        f"--record-dir {shorten(str(folder))}: {reason}: expected a folder, or a name for a new one"
    )


def _unwritable(options: argparse.ArgumentParser, folder: Path, reason: str) -> NoReturn:
    where = f"--record-dir {shorten(str(folder))}: {reason}"
    options.exit(STORAGE, f"{options.prog}: error: {where}: expected a folder that can be written\n")


def chosen_folder(arguments: argparse.Namespace) -> Path | None:
    """What `--record-dir` said; None for the user's own folder."""
    return Path(arguments.record_dir) if arguments.record_dir else None


@dataclass(frozen=True, slots=True)
class Entry:
    """A ply as it is written: its bare move, what it took (None: not known), its mover's clock and time (ms)."""

    move: str
    captures: tuple[str, ...] | None = None
    clock: int | None = None
    time: int | None = None


class Journal:
    """The journal of one adapter; files appear with the first ply.

    `on_failure` is called once, with the reason why writing has stopped.
    """

    def __init__(
        self, adapter: str, folder: Path | None = None, on_failure: Callable[[str], None] | None = None
    ) -> None:
        self._adapter = adapter
        self._folder = folder
        self._on_failure = on_failure
        self.failure: str | None = None

    def begin(self, header: GameRecord) -> GameLog:
        """A log for a game that begins as `header` says: variant, start, players, tags; its plies are written, too."""
        return GameLog(self, header)

    def write(self, day: str, lines: Sequence[Mapping[str, Any]]) -> None:
        """Append objects to the file of a day, in one write; after a failure nothing more is tried."""
        if self.failure is not None:
            return
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        try:
            if self._folder is None:
                self._folder = data_folder() / "games" / self._adapter
            self._folder.mkdir(parents=True, exist_ok=True)
            _append(self._folder / f"{day}.jsonl", text.encode("utf-8", "replace"))
        except OSError as error:
            reason = error.strerror or error
            if isinstance(error, FileExistsError):
                reason = "not a folder"
            self.failure = f"{self._folder or 'games'}: {reason}: this game is not recorded there"
            if self._on_failure is not None:
                self._on_failure(self.failure)


def _append(path: Path, data: bytes) -> None:
    """Add whole lines in one write. Behind what a full disk has cut short, of anybody's, a new line begins."""
    with path.open("a+b", buffering=0) as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            data = data if file.read(1) == b"\n" else b"\n" + data
        if file.write(data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class GameLog:
    """One game in a journal. Nothing is written before its first ply."""

    def __init__(self, journal: Journal, header: GameRecord) -> None:
        self._journal = journal
        self._id = secrets.token_hex(8)
        self._day = ""
        """When it began, which is where all of it is written: a game that is played past midnight stays whole."""
        self._ended = False
        self._header = header
        self._line: list[str] = []
        self.follow([_entry(ply) for ply in header.plies])

    @property
    def plies(self) -> int:
        """How many plies the game has."""
        return len(self._line)

    def ply(
        self, move: str, captures: Sequence[str], clock: int | None = None, time: int | None = None
    ) -> None:
        """The next ply: its bare move, what it took, what its mover has left and what it took of that (ms)."""
        self._add([Entry(move, tuple(captures), clock, time)])

    def follow(self, line: Sequence[Entry]) -> None:
        """The game now consists of these plies: what differs is taken back, what is new is written, at once."""
        same = common(self._line, [entry.move for entry in line])
        self.undo(same)
        self._add(line[same:])

    def undo(self, plies: int) -> None:
        """The game is back after its first `plies` plies."""
        if self._day and not self._ended and plies < self.plies:
            self._journal.write(self._day, [{"game": self._id, "event": "undo", "plies": plies}])
            del self._line[plies:]

    def end(self, result: str | None, reason: str, why: str = "") -> None:
        """The game is over: `a`, `d` or `draw`, or None for one that was left (`interrupted`)."""
        if self._day and not self._ended:
            line = {"game": self._id, "event": "end", "result": result, "reason": reason, "why": why or None}
            self._journal.write(self._day, [_without_none(line)])
        self._ended = True

    def _open(self) -> None:
        if self._day:
            return
        now = datetime.now(UTC)
        self._day = now.strftime("%Y-%m-%d")
        header = self._header
        rules = header.rules and {"start": header.rules.rows, "switches": list(header.rules.switches)}
        line = {
            "game": self._id,
            "event": "begin",
            "at": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "variant": header.variant,
            "rules_hash": header.rules_hash,
            "rules": rules or None,
            "start": header.start,
            "attackers": header.players[0] or None,
            "defenders": header.players[1] or None,
            "tags": list(header.tags) or None,
        }
        self._journal.write(self._day, [_without_none(line)])

    def _add(self, entries: Sequence[Entry]) -> None:
        # A game beyond the limit could not be read any more.
        entries = entries[: PLY_LIMIT - self.plies]
        if self._ended or not entries:
            return
        self._open()
        lines = []
        for entry in entries:
            self._line.append(entry.move)
            captures = None if entry.captures is None else list(entry.captures)
            line = {"game": self._id, "ply": self.plies, "move": entry.move, "captures": captures}
            lines.append(_without_none({**line, "clock": entry.clock, "time": entry.time}))
        self._journal.write(self._day, lines)


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many moves two lines have in common from their beginning."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))


def _entry(ply: Ply) -> Entry:
    captures = None if ply.captures is None else tuple(board.name(sq) for sq in ply.captures)
    return Entry(board.move_name(ply.move), captures, ply.clock, ply.time)


def _without_none(line: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if value is not None}


def is_journal(line: bytes) -> bool:
    """Whether a file that begins with this line is a journal."""
    try:
        first = json.loads(line[:LINE_LIMIT])
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(first, dict)
        and isinstance(first.get("game"), str)
        and ("event" in first or "ply" in first)
    )


def read(path: str | os.PathLike[str]) -> Iterator[GameRecord]:
    """The games of a journal in the order in which they began, unfinished ones without an outcome.

    A line that was torn off, by a crash or a full disk, is left out; JournalError at any other that cannot be read.
    """
    try:
        with open_regular(path) as stream:
            yield from read_stream(stream, os.fspath(path))
    except OSError as error:
        raise JournalError(f"{os.fspath(path)}: {error.strerror or error}: expected a journal") from None


def read_stream(stream: Stream, where: str) -> Iterator[GameRecord]:
    """As `read`, from an open file; `where` begins every error."""
    games: dict[str, GameRecord] = {}
    plies: dict[str, list[Ply]] = {}
    number = 0
    try:
        while data := stream.readline(LINE_LIMIT + 1):
            number += 1
            if not data.endswith(b"\n"):
                if len(data) > LINE_LIMIT:
                    raise JournalError(f"expected lines of at most {LINE_LIMIT} bytes")
                break
            if data.strip() and not _is_torn(data):
                _take(json.loads(data), games, plies)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        problem = f"expected the key {error}" if isinstance(error, KeyError) else error
        raise JournalError(f"{where}:{number}: {problem}") from None
    for name, header in games.items():
        yield replace(header, plies=tuple(plies[name]))


def _is_torn(line: bytes) -> bool:
    """Whether a line is only the beginning of one that this module writes; power failures leave zeros."""
    line = line.rstrip(b"\n").rstrip(b"\0")
    return START.startswith(line) or (line.startswith(START) and not line.endswith(b"}"))


def _take(line: Any, games: dict[str, GameRecord], plies: dict[str, list[Ply]]) -> None:
    if not isinstance(line, dict):
        raise ValueError(f"{shorten(line)}: expected an object")
    name, event = line["game"], line.get("event")
    if not isinstance(name, str):
        raise ValueError(f"game {shorten(name)}: expected a text")
    if event == "begin":
        if len(games) >= GAMES_LIMIT:
            raise ValueError(f"expected at most {GAMES_LIMIT} games")
        games[name], plies[name] = _header(line), []
    elif name not in games:
        raise ValueError(f"game {shorten(name)}: expected its beginning before")
    elif event == "undo":
        del plies[name][_number(line, "plies") :]
    elif event == "end":
        games[name] = replace(games[name], outcome=_outcome(line))
    elif event is None:
        _add(line, plies[name])


def _header(line: Mapping[str, Any]) -> GameRecord:
    rules = line.get("rules")
    return GameRecord(
        _text(line, "variant"),
        start=_text(line, "start") or None,
        players=(_text(line, "attackers"), _text(line, "defenders")),
        rules_hash=_text(line, "rules_hash") or None,
        rules=rules
        and RuleSet(rules["start"], tuple((str(key), str(text)) for key, text in rules["switches"])),
        tags=tuple((str(key), str(text)) for key, text in line.get("tags") or ()),
    )


def _add(line: Mapping[str, Any], plies: list[Ply]) -> None:
    number = _number(line, "ply")
    if not 1 <= number <= min(len(plies) + 1, PLY_LIMIT):
        raise ValueError(f"ply {number}: expected {len(plies) + 1}")
    del plies[number - 1 :]
    try:
        move = parse_move_word(_text(line, "move"), board.MAX_SIZE)[0]
    except MoveTextError as error:
        raise ValueError(f"move {shorten(line.get('move'))}: {error}") from None
    taken = line.get("captures")
    captures = None if taken is None else sorted_squares(board.parse(str(sq), board.MAX_SIZE) for sq in taken)
    plies.append(Ply(move, captures, line.get("clock"), line.get("time")))


def _outcome(line: Mapping[str, Any]) -> Outcome | None:
    result, reason = line.get("result"), Reason(_text(line, "reason"))
    if result is None:
        return None
    return Outcome(None if result == "draw" else Side.of(str(result)), reason)


def _text(line: Mapping[str, Any], key: str) -> str:
    value = line.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"{key} {shorten(value)}: expected a text")
    return value


def _number(line: Mapping[str, Any], key: str) -> int:
    value = line.get(key)
    if type(value) is not int or not 0 <= value <= PLY_LIMIT:
        raise ValueError(f"{key} {shorten(value)}: expected a whole number from 0 to {PLY_LIMIT}")
    return value
