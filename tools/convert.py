"""`hnefi convert`: recorded games from one format into another, and whether they agree with their rules."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from hnefi.engine import durable
from hnefi.engine.regular import open_regular, replaceable
from hnefi.protocol.hosts.exit_codes import code_of

from .common.arguments import add_variant_path, find_variant, parser
from .common.interrupts import gone_with_us
from .common.live import Live

if TYPE_CHECKING:
    from hnefi.engine.records.check import Checker
    from hnefi.engine.records.formats import Reading
    from hnefi.engine.records.text import Game, Losses, Stream

STANDARD = "-"
JOURNAL = "journal"
FAULT = 1
UNREADABLE = 2


def main(argv: list[str]) -> int:
    """Convert a file of games; 1 if a game disagrees with its rules, 2 if something cannot be read or written."""
    options = _parser()
    arguments = options.parse_args(argv)
    from hnefi.engine.records.formats import FORMATS, Reading, format_of
    from hnefi.engine.records.rule_sets import finder
    from hnefi.engine.records.text import Losses, RecordError

    def format_named(path: str, given: str | None, option: str) -> str:
        if given is None and path == STANDARD:
            options.error(f"{STANDARD} has no ending: expected {option} with one of {', '.join(FORMATS)}")
        try:
            return given or format_of(path)
        except RecordError as error:
            options.error(f"{error}, or {option}")

    read_as = format_named(arguments.input, arguments.read_as, "--from")
    write_as = format_named(arguments.output, arguments.write_as, "--to") if arguments.output else ""
    if not write_as and not arguments.strict:
        options.error("expected OUT, or --strict to check the games alone")
    if read_as == "csv" and arguments.variant is None:
        options.error("CSV names no variant: expected --variant")
    variant = find_variant(options, arguments.variant, arguments.path) if arguments.variant else None
    how = Reading(finder(arguments.path), variant, arguments.adjudicate, arguments.opentafl)
    if arguments.output not in (None, STANDARD) and not arguments.force and Path(arguments.output).exists():
        options.error(f"{arguments.output}: already exists: expected --force to replace it")
    losses = Losses()
    games = faults = 0
    try:
        with _input(arguments.input) as source, _output(arguments.output, arguments.strict) as out:
            games, faults = _convert(
                source, arguments.input, read_as, how, losses, out, write_as, arguments.strict
            )
            if faults:
                out.abandon()
    except RecordError as error:
        print(f"hnefi convert: {error}", file=sys.stderr)
        return UNREADABLE
    except BrokenPipeError:
        raise
    except OSError as error:
        reading = error.filename == arguments.input
        where = arguments.input if reading else arguments.output or error.filename
        expected = "a readable file" if reading else "a file that can be written"
        print(f"hnefi convert: {where}: {error.strerror or error}: expected {expected}", file=sys.stderr)
        return UNREADABLE if reading else code_of(error)
    for kind, count in sorted(losses.items()):
        print(f"lost: {kind}: {count}", file=sys.stderr)
    if faults:
        print(f"games that disagree with their rules: {faults}", file=sys.stderr)
        return FAULT
    if arguments.strict:
        print(f"games that agree with their rules: {games}", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    options = parser(
        "convert",
        "Converts the games of IN into the format of OUT; - is standard input or output. Formats: tafl (our own "
        "record, which keeps everything), otg (OpenTafl's), csv and jsonl (collections of games, and a whole record "
        "on each line). Whatever the format of OUT cannot store is reported as lost.",
        [
            "games.csv games.tafl --variant copenhagen",
            "replay.otg game.tafl --strict",
            "games.tafl --strict",
            "- - --from otg --to jsonl < replay.otg",
        ],
    )
    formats = ("tafl", "otg", "csv", "jsonl")
    options.add_argument("input", metavar="IN", help="recorded games: .tafl, .otg, .csv or .jsonl, or -")
    options.add_argument(
        "output", metavar="OUT", nargs="?", help="a new file, or -; may be left out with --strict"
    )
    options.add_argument(
        "--variant", metavar="V", help="the rules of games that do not name theirs, as in CSV"
    )
    options.add_argument(
        "--from",
        dest="read_as",
        choices=(*formats, JOURNAL),
        help="the format of IN, whatever its name; journal: the log that play and the adapters write ply by ply",
    )
    options.add_argument(
        "--to", dest="write_as", choices=formats, help="the format of OUT, whatever its name"
    )
    options.add_argument(
        "--strict",
        action="store_true",
        help="replay every game and its variations; report illegal moves, wrong captures and wrong results; if "
        "there are any, write nothing",
    )
    options.add_argument(
        "--adjudicate",
        action="store_true",
        help="also end CSV games by repetition, limits, draw forts and hopeless positions, as the variant says",
    )
    options.add_argument(
        "--opentafl", action="store_true", help="read OTN rules as the program OpenTafl does"
    )
    options.add_argument("--force", action="store_true", help="replace OUT if it exists")
    add_variant_path(options)
    return options


def _convert(
    source: Stream,
    name: str,
    read_as: str,
    how: Reading,
    losses: Losses,
    out: _Output,
    write_as: str,
    strict: bool,
) -> tuple[int, int]:
    """Convert game after game; how many there are, and how many disagree with their rules."""
    from hnefi.engine.records.formats import write
    from hnefi.engine.records.text import RecordError

    checker = _checker(how) if strict else None
    live = Live(sys.stderr)
    number = faults = 0
    try:
        for number, game in enumerate(_games(source, name, read_as, how, losses), start=1):
            fault = checker.fault(game) if checker else None
            if fault is not None:
                faults += 1
                live.close()
                print(fault.message(name, number), file=sys.stderr)
            if write_as and not faults:
                try:
                    out.write(write(game.record, write_as, how.find, losses))
                except RecordError as error:
                    raise RecordError(f"{name}:{game.line}: game {number}: {error}") from None
            live.step(lambda: f"{number:,} games")  # noqa: B023 - shown at once
    finally:
        live.close()
    return number, faults


def _games(source: Stream, name: str, read_as: str, how: Reading, losses: Losses) -> Iterator[Game]:
    """The games of a file in one of the formats, or of a journal."""
    from hnefi.engine.records.formats import read
    from hnefi.engine.records.text import Game

    if read_as != JOURNAL:
        return read(source, name, read_as, how, losses)
    from hnefi.protocol.hosts.journal import read_stream

    return (Game(record, 1) for record in read_stream(source, name))


def _checker(how: Reading) -> Checker:
    from hnefi.engine.records.check import Checker

    return Checker(how.find)


@contextmanager
def _input(path: str) -> Iterator[IO[bytes]]:
    if path == STANDARD:
        yield sys.stdin.buffer
    else:
        with open_regular(path) as stream:
            yield stream


class _Output:
    """Where the games go: a file that appears whole or not at all, or standard output."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        self.stream = stream
        self.wanted = True

    def write(self, text: str) -> None:
        if self.stream is not None:
            self.stream.write(text.encode())

    def abandon(self) -> None:
        """Keep nothing of what was written."""
        self.wanted = False


@contextmanager
def _output(path: str | None, strict: bool) -> Iterator[_Output]:
    """An output at `path`; where games are checked first, standard output too gets all or nothing."""
    if path is None:
        yield _Output(None)
    elif path == STANDARD:
        standard = sys.stdout.buffer
        if not strict:
            yield _Output(standard)
            standard.flush()
            return
        with tempfile.TemporaryFile() as kept:
            out = _Output(kept)
            yield out
            if out.wanted:
                kept.seek(0)
                shutil.copyfileobj(kept, standard)
                standard.flush()
    else:
        target = replaceable(Path(path))
        half = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}")
        # Registered before it exists: an interrupt between the two would leave it behind.
        with gone_with_us(half):
            with half.open("xb") as stream:
                out = _Output(stream)
                yield out
                stream.flush()
                os.fsync(stream.fileno())
            if out.wanted:
                half.replace(target)
                durable.sync_folder(target.parent)
