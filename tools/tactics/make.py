"""`hnefi puzzle make`: new puzzles from recorded games, each with one right move that is proven to be the only one.

Every position of every game is looked at. A search of few nodes says where a win is near, which costs little; then the
prover finds the shortest win and shows that no other move wins within two plies more. Where the side to move is
threatened instead, it shows that every move but one loses. What is plain to see is left out (`_plain`), and so is what
is the image of a puzzle that is known.

What was found in a game is written down before the next one begins, so that the same command continues after any end.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hnefi.engine import durable
from hnefi.engine.regular import open_regular, read_regular
from hnefi.engine.squares import move_name, origin
from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.exit_codes import DONE, STORAGE, USAGE
from hnefi.protocol.hosts.puzzles.suite import DIGITS, SHIPPED, Entry, SuiteError, parse, read, text_of
from hnefi.protocol.hosts.text_table import safe

from ..common.arguments import add_variant_path, find_tafl_variant, let_interrupt_end_us, parser, positive
from ..common.live import Live, Pace

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.tafl.variant import Variant
    from hnefi.engine.records.formats import Reading
    from hnefi.engine.records.record import GameRecord
    from hnefi.engine.solving.proof import Prover

FORMAT: Final = 1
SUFFIX: Final = ".progress.jsonl"
SEARCH_SHARE: Final = 500
"""Moves of a proof per node of the search that decides where to look."""
FIRST_PLY: Final = 6
PER_GAME: Final = 4
APART: Final = 4
"""Plies between two puzzles of a game, at least."""
FEWEST_MOVES: Final = 6
"""A position with fewer legal moves is solved by trying them."""
ONLY_PLIES: Final = 4
MOST_PLIES: Final = 21


def main(argv: list[str]) -> int:
    """Find puzzles and write a suite of them; 0, 2 for what cannot be read, 4 for what cannot be written."""
    options = parser(
        "puzzle make",
        "Finds puzzles in recorded games: positions in which one move wins and no other one does, or in which all "
        "moves but one lose. Everything is proven by looking at every legal move; obvious moves and mirror images of "
        "known puzzles are left out. The same command continues after an interruption.",
        [
            "games.tafl --out mine.tsv",
            "games.csv --variant brandubh --out mine.tsv",
            "cup/*.tafl --kind win --least 7 --plies 11 --nodes 20000000 --out long.tsv",
        ],
    )
    options.add_argument(
        "files", nargs="+", metavar="FILE", help="recorded games: .tafl, .otg, .csv or .jsonl"
    )
    options.add_argument("--variant", metavar="V", help="the rules of games that name none, as in CSV")
    add_variant_path(options)
    options.add_argument(
        "-o", "--out", metavar="FILE", required=True, help="the suite of new puzzles is written here"
    )
    options.add_argument("--force", action="store_true", help="replace FILE")
    options.add_argument("--fresh", action="store_true", help="start over instead of continuing")
    options.add_argument(
        "--kind", choices=("win", "only"), help="only wins, or only moves that do not lose (both)"
    )
    options.add_argument(
        "--least", metavar="N", type=positive, default=3, help="shortest win to look for (3)"
    )
    options.add_argument("--plies", metavar="N", type=positive, default=9, help="longest win to look for (9)")
    options.add_argument(
        "--nodes",
        metavar="N",
        type=positive,
        default=1_000_000,
        help="moves tried to prove one position (1000000)",
    )
    options.add_argument("--count", metavar="N", type=positive, help="stop after N puzzles (read all games)")
    options.add_argument(
        "--known",
        metavar="FILE",
        action="append",
        default=[],
        help="another suite whose puzzles are left out, besides the shipped ones; repeatable",
    )
    options.add_argument("--plain", action="store_true", help="plain lines in ASCII, also on a terminal")
    options.add_argument("--quiet", action="store_true", help="nothing but the result and errors")
    arguments = options.parse_args(argv)
    let_interrupt_end_us()
    if not 3 <= arguments.least <= arguments.plies <= MOST_PLIES:
        options.error(
            f"--least {arguments.least} --plies {arguments.plies}: expected 3 to {MOST_PLIES}, "
            "the first not above the second"
        )
    out = Path(arguments.out)
    if not out.absolute().parent.is_dir():
        options.error(f"-o {shorten(str(out))}: no such folder: expected one to write into")
    if out.exists() and not (arguments.force or beside(out).exists()):
        options.error(f"-o {shorten(str(out))}: already exists: expected --force to replace it")
    from hnefi.engine.records.formats import Reading, format_of
    from hnefi.engine.records.rule_sets import finder
    from hnefi.engine.records.text import RecordError

    variant = find_tafl_variant(options, arguments.variant, arguments.path) if arguments.variant else None
    try:
        if variant is None and any(format_of(name) == "csv" for name in arguments.files):
            options.error("CSV names no variant: expected --variant")
        known = [entry for name in (SHIPPED, *map(Path, arguments.known)) for entry in read(name)]
        work = Work(
            [Path(name) for name in arguments.files],
            Reading(finder(arguments.path), variant),
            Wanted(arguments.kind, arguments.least, arguments.plies, arguments.nodes),
        )
        store = Store(beside(out), work.about(arguments.variant), fresh=arguments.fresh)
        live = Live(sys.stderr, plain=arguments.plain, quiet=arguments.quiet)
        return _make(work, store, known, out, arguments.count, live)
    except (RecordError, SuiteError) as error:
        print(f"hnefi puzzle make: {safe(str(error))}", file=sys.stderr)
        return USAGE
    except OSError as error:
        place = error.filename or out
        print(
            f"hnefi puzzle make: {place}: {error.strerror or error}: expected a file to write",
            file=sys.stderr,
        )
        return STORAGE


def beside(out: Path) -> Path:
    """Where the unfinished work for a suite lies."""
    return out.with_name(out.name + SUFFIX)


def _make(work: Work, store: Store, known: list[Entry], out: Path, count: int | None, live: Live) -> int:
    total = len(work.games)
    chosen = Chosen(known)
    pace = Pace(total)
    if store.done:
        live.report([f"continuing with {store.path}: {len(store.done)} of {total} games are done"])
    for number, game in enumerate(work.games):
        found = store.done.get(number)
        if found is None:
            found = work.look(game)
            store.add(number, found)
        chosen.add(found)
        pace.add(timed=number not in store.done)
        live.step(lambda: f"game {pace.done} of {total}: {len(chosen.entries)} puzzles{pace.eta()}")
        if count is not None and len(chosen.entries) >= count:
            break
    live.close()
    entries = chosen.entries[:count]
    durable.put(out, text_of(entries).encode())
    store.close()
    left_out = f"; {work.broken} games that could not be played through" if work.broken else ""
    wins = [entry.plies for entry in entries if entry.kind == "win"]
    longest = f", the longest win {max(wins)} plies" if wins else ""
    puzzles = f"{len(entries)} {'puzzle' if len(entries) == 1 else 'puzzles'}"
    print(f"{puzzles} of {total} games in {out}{longest}; {chosen.twice} known before{left_out}")
    return DONE


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for; `kind` None is both."""

    kind: str | None
    least: int
    plies: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Source:
    """A game in a file: the record, and how a puzzle names it."""

    record: GameRecord
    name: str


class Work:
    """The games, and what is found in one of them."""

    def __init__(self, files: Sequence[Path], how: Reading, wanted: Wanted) -> None:
        self._files = files
        self._how = how
        self._wanted = wanted
        self._provers: dict[str, Prover] = {}
        self.broken = 0
        self.games = [game for path in files for game in _games(path, how)]

    def about(self, variant: str | None) -> dict[str, Any]:
        """What makes this work another one if it changes."""
        wanted = self._wanted
        return {
            "puzzles": FORMAT,
            "files": [hashlib.sha256(read_regular(path)).hexdigest() for path in self._files],
            "variant": variant,
            "kind": wanted.kind,
            "least": wanted.least,
            "plies": wanted.plies,
            "nodes": wanted.nodes,
        }

    def look(self, source: Source) -> list[Entry]:
        """The puzzles of a game, without ids; none where it cannot be played through."""
        from hnefi.engine.search.searcher import Searcher
        from hnefi.engine.search.types import Settings

        try:
            variant, positions = self._played(source.record)
        except ValueError:
            self.broken += 1
            return []
        prover = self._prover(variant)
        # What was learned from other games would change how many moves a proof takes, and so what is found.
        prover.forget()
        searcher = Searcher(Settings(hash_mib=1))
        found: list[Entry] = []
        for position in positions[FIRST_PLY:]:
            entry = self._puzzle(position, prover, searcher, source.name)
            if entry is not None:
                found.append(entry)
        return [self._with_themes(entry, prover) for entry in _apart(found)]

    def _with_themes(self, entry: Entry, prover: Prover) -> Entry:
        from .themes import themes_of

        return replace(entry, themes=themes_of(entry, prover))

    def _played(self, record: GameRecord) -> tuple[Variant, list[Position]]:
        """The variant by its name, and the positions before each move; ValueError where they are not to be had."""
        from hnefi.engine import games
        from hnefi.engine.games.tafl.variant import Variant
        from hnefi.engine.records.replay import as_played
        from hnefi.engine.records.rule_sets import variant_of

        played = variant_of(record, self._how.find)
        own = self._how.variant
        variant = own if own is not None and own.name == record.variant else self._how.find(record.variant)
        if not isinstance(variant, Variant) or played.hash not in (variant.hash, as_played(variant).hash):
            raise ValueError(f"{record.variant}: its rules have no name")
        position = games.initial(played) if record.start is None else games.from_fen(played, record.start)
        positions = [position]
        for ply in record.plies:
            positions.append(positions[-1].play(ply.move))
        return variant, [place for place in positions if place.outcome is None]

    def _prover(self, variant: Variant) -> Prover:
        from hnefi.engine.solving.proof import Prover

        if variant.hash not in self._provers:
            # Games are in the order of their files, most of one variant each: a table for every variant is not needed.
            self._provers = {variant.hash: Prover(variant)}
        return self._provers[variant.hash]

    def _puzzle(self, position: Position, prover: Prover, searcher: Any, source: str) -> Entry | None:
        from hnefi.engine.search.types import Info, Limits
        from hnefi.engine.solving.proof import OutOfNodesError

        fen, side = position.fen(), int(position.side)
        start = prover.position(fen, strict=True)
        if start.outcome is not None or len(start.legal_moves()) < FEWEST_MOVES:
            return None
        wanted = self._wanted
        infos: list[Info] = []
        searcher.begin()
        searcher.search(start, Limits(nodes=max(1, wanted.nodes // SEARCH_SHARE)), infos.append)
        mate = infos[-1].score.mate if infos else None
        prover.allow(wanted.nodes)
        try:
            if mate is not None and mate > 0:
                return None if wanted.kind == "only" else _win(position, start, prover, source, wanted)
            return None if wanted.kind == "win" else _only(position, start, prover, source, side)
        except OutOfNodesError:
            return None


def _games(path: Path, how: Reading) -> Iterator[Source]:
    from hnefi.engine.records.formats import format_of
    from hnefi.engine.records.formats import read as read_games
    from hnefi.engine.records.text import Losses, RecordError

    try:
        with open_regular(path) as stream:
            for game in read_games(stream, str(path), format_of(path), how, Losses()):
                yield Source(game.record, f"{path.name}:{game.line}")
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror or error}: expected a file of recorded games") from None


def _win(position: Position, start: Any, prover: Prover, source: str, wanted: Wanted) -> Entry | None:
    """The puzzle of a win, if one move wins and no other one does within two plies more."""
    fen, side = position.fen(), int(start.side)
    plies = prover.shortest(fen, side, wanted.plies)
    if plies is None or plies < wanted.least:
        return None
    right = None
    moves = start.legal_moves()
    for move in moves:
        if prover.after(fen, side, plies, move):
            if right is not None:
                return None
            right = move
    assert right is not None
    if _plain(start, right, plies, prover):
        return None
    if any(prover.after(fen, side, plies + 2, move) for move in moves if move != right):
        return None
    return _entry(prover.variant, position, "win", plies, right, source)


def _only(position: Position, start: Any, prover: Prover, source: str, side: int) -> Entry | None:
    """The puzzle of the one move that does not lose, where not every other one loses at once."""
    from .themes import passed

    fen, enemy = position.fen(), 1 - side
    turned = passed(fen)
    # Where nothing threatens, no move is the only one; and that is most of the game.
    if turned is None or prover.position(turned).outcome is not None:
        return None
    if not prover.within(turned, enemy, ONLY_PLIES - 1):
        return None
    held = None
    moves = start.legal_moves()
    for move in moves:
        if not prover.after(fen, enemy, ONLY_PLIES, move):
            if held is not None:
                return None
            held = move
    if held is None or all(prover.after(fen, enemy, 2, move) for move in moves if move != held):
        return None
    return _entry(prover.variant, position, "only", ONLY_PLIES, held, source)


def _plain(start: Any, move: int, plies: int, prover: Prover) -> bool:
    """Whether everybody looks at the move first: a short win that begins with a capture, or with the king where two
    ways are open."""
    from .themes import threats

    after = start.play(move)
    if plies > 3:
        return False
    if after.last_captures:
        return True
    return dict(start.setup.pieces)[origin(move)] == "K" and threats(after.fen(), int(start.side), prover) > 1


def _entry(variant: Variant, position: Position, kind: str, plies: int, move: int, source: str) -> Entry:
    rules, fen = variant.hash[:DIGITS], position.fen()
    moves = (move_name(move),)
    return Entry("", variant.name, rules, kind, plies, moves, (), source, position.ply, "full width", fen)


def _apart(found: Iterable[Entry]) -> list[Entry]:
    """The longest wins of a game, not two from nearly the same position."""
    kept: list[Entry] = []
    for entry in sorted(found, key=lambda entry: (entry.kind != "win", -entry.plies, entry.ply)):
        if len(kept) < PER_GAME and all(abs(entry.ply - other.ply) >= APART for other in kept):
            kept.append(entry)
    return kept


class Chosen:
    """Puzzles that are new, with ids that follow the known ones; `twice` counts images of others."""

    def __init__(self, known: Iterable[Entry]) -> None:
        self.entries: list[Entry] = []
        self.twice = 0
        self._last: dict[str, int] = {}
        self._seen: set[tuple[str, object]] = set()
        self._known: dict[str, list[Entry]] = {}
        for entry in known:
            head, _, number = entry.id.rpartition("-")
            if number.isdigit():
                self._last[head] = max(self._last.get(head, 0), int(number))
            self._known.setdefault(entry.variant, []).append(entry)

    def add(self, found: Iterable[Entry]) -> None:
        """Number those of `found` that repeat no other puzzle, and keep them."""
        for entry in found:
            for other in self._known.pop(entry.variant, ()):
                if other.rules == entry.rules:
                    self._seen.add(_image(other))
            image = _image(entry)
            if image in self._seen:
                self.twice += 1
                continue
            self._seen.add(image)
            number = self._last[entry.variant] = self._last.get(entry.variant, 0) + 1
            self.entries.append(replace(entry, id=f"{entry.variant}-{number:03}"))


def _image(entry: Entry) -> tuple[str, object]:
    """Equal for positions that are images of each other."""
    from hnefi.engine import games

    return entry.variant, games.from_fen(games.find(entry.variant), entry.fen).canonical()


class Store:
    """What was found in each game so far, a line each; a line that a crash tore is not there."""

    def __init__(self, path: Path, about: dict[str, Any], *, fresh: bool) -> None:
        self.path = path
        self.done: dict[int, list[Entry]] = {}
        head = json.dumps(about)
        if fresh or not path.exists():
            durable.put(path, f"{head}\n".encode())
            return
        first, *lines = read_regular(path).split(b"\n")
        try:
            there = json.loads(first)
        except ValueError:
            there = None
        if there != about:
            what = "another work" if isinstance(there, dict) and "puzzles" in there else "something else"
            raise SuiteError(f"{path}: holds {what}: expected that of the same command; --fresh starts over")
        whole = len(first) + 1
        for number, line in enumerate(lines[:-1], start=2):
            try:
                value = json.loads(line)
                self.done[int(value["game"])] = [parse(text) for text in value["found"]]
            except (ValueError, KeyError, TypeError):
                raise SuiteError(
                    f"{path}:{number}: expected the results of a game; --fresh starts over"
                ) from None
            whole += len(line) + 1
        if lines[-1:] != [b""]:
            with path.open("r+b") as file:
                file.truncate(whole)

    def add(self, game: int, found: Iterable[Entry]) -> None:
        """Write what a game gave through to the disk, so that the game is not looked at again."""
        line = json.dumps({"game": game, "found": [entry.line() for entry in found]})
        durable.append_line(self.path, line.encode())

    def close(self) -> None:
        """The work is done."""
        self.path.unlink(missing_ok=True)
