"""`hnefi book`: opening books of games, and what they know."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.exit_codes import DONE, STORAGE, USAGE
from hnefi.protocol.hosts.text_table import aligned, safe

from .common.arguments import (
    add_out,
    add_variant_path,
    find_variant,
    let_interrupt_end_us,
    parser,
    positive,
    subcommand,
)

if TYPE_CHECKING:
    from hnefi.engine.book import Choice, Entries
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.base_variant import AnyVariant
    from hnefi.engine.records.formats import Reading
    from hnefi.engine.records.record import GameRecord
    from hnefi.engine.sides import Side

PLIES: Final = 12
LEAST: Final = 3
MOST_PLIES: Final = 60


def main(argv: list[str]) -> int:
    """Run `build` or `show`; 0, 2 for what cannot be read, 4 for what cannot be written."""
    commands = {"build": _build, "show": _show}
    options = parser(
        "book",
        "Opening books: the results of the first positions of many games. Our engine plays from one with the option "
        "OwnBook, and its levels do in `hnefi play`.\n\n"
        "  hnefi book build FILE ...  make a book from recorded games\n"
        "  hnefi book show            show what a book knows about a position",
        ["build games.tafl --out mine.taflbook", "show --variant brandubh", "show a4a2 --book mine.taflbook"],
    )
    return subcommand(options, commands, argv)


# Building


def _build(argv: list[str]) -> int:
    options = parser(
        "book build",
        "Makes an opening book from recorded games, with a chapter for each variant. It counts positions, not moves, "
        "and symmetric positions are the same. A position without a known successor has the score of its games; any "
        "other has the value of its best successor. Games that begin from another position, break the rules or have "
        "no result are left out, and their number is reported.",
        [
            "cup.tafl --out cup.taflbook",
            "old.tafl new.tafl --plies 16 --least 5 --out deep.taflbook",
            "games.csv --variant brandubh --out people.taflbook",
        ],
    )
    options.add_argument(
        "files", nargs="+", metavar="FILE", help="recorded games: .tafl, .otg, .csv or .jsonl"
    )
    options.add_argument("--variant", metavar="V", help="the rules of games that name none, as in CSV")
    add_variant_path(options)
    add_out(options, "FILE", "write the book here", required=True)
    options.add_argument("--force", action="store_true", help="replace FILE")
    options.add_argument(
        "--plies", metavar="N", type=positive, default=PLIES, help=f"plies of each game that count ({PLIES})"
    )
    options.add_argument(
        "--least",
        metavar="N",
        type=positive,
        default=LEAST,
        help=f"leave out positions of fewer games ({LEAST})",
    )
    options.add_argument("--plain", action="store_true", help="plain lines in ASCII, also on a terminal")
    options.add_argument("--quiet", action="store_true", help="nothing but the result and errors")
    arguments = options.parse_args(argv)
    let_interrupt_end_us()
    if arguments.plies > MOST_PLIES:
        options.error(f"--plies {arguments.plies}: expected at most {MOST_PLIES}")
    out = Path(arguments.out)
    if not out.absolute().parent.is_dir():
        options.error(f"-o {shorten(str(out))}: no such folder: expected one to write into")
    if out.exists() and not arguments.force:
        options.error(f"-o {shorten(str(out))}: already exists: expected --force to replace it")
    from hnefi.engine import book
    from hnefi.engine.records.formats import Reading, format_of
    from hnefi.engine.records.rule_sets import finder
    from hnefi.engine.records.text import RecordError

    variant = find_variant(options, arguments.variant, arguments.path) if arguments.variant else None
    try:
        if variant is None and any(format_of(name) == "csv" for name in arguments.files):
            options.error("CSV names no variant: expected --variant")
        reader = _Games(Reading(finder(arguments.path), variant))
        growers: dict[str, tuple[AnyVariant, book.Grower]] = {}
        for played, positions, winner in reader.all(map(Path, arguments.files), arguments):
            _, grower = growers.setdefault(played.hash, (played, book.Grower(arguments.plies)))
            grower.add(positions, winner)
        chapters = [
            book.Chapter(played.name, played.hash[: book.DIGITS], grower.entries(arguments.least))
            for played, grower in growers.values()
        ]
        book.write(out, book.Book(tuple(chapter for chapter in chapters if chapter.entries)))
    except RecordError as error:
        print(f"hnefi book build: {safe(str(error))}", file=sys.stderr)
        return USAGE
    except OSError as error:
        place = error.filename or out
        print(
            f"hnefi book build: {place}: {error.strerror or error}: expected a file to write", file=sys.stderr
        )
        return STORAGE
    counts = {played.name: grower.games for played, grower in growers.values()}
    for chapter in chapters:
        print(f"{chapter.name}: {_positions(chapter.entries)} of {counts[chapter.name]} games")
    left_out = f"; {reader.left_out} games left out" if reader.left_out else ""
    print(f"{out}: {sum(counts.values())} games{left_out}")
    return DONE


class _Games:
    """Recorded games as positions."""

    def __init__(self, how: Reading) -> None:
        self._how = how
        self.left_out = 0

    def all(
        self, files: Iterator[Path], arguments: object
    ) -> Iterator[tuple[AnyVariant, list[Position], Side | None]]:
        """Each game's variant, its first positions, and who won; RecordError at the first that cannot be read."""
        from hnefi.engine.records.formats import format_of, read
        from hnefi.engine.records.text import Losses, RecordError
        from hnefi.engine.regular import open_regular

        from .common.live import Live

        plain, quiet = (getattr(arguments, word, False) for word in ("plain", "quiet"))
        live = Live(sys.stderr, plain=plain, quiet=quiet)
        number = 0
        for path in files:
            try:
                with open_regular(path) as stream:
                    for game in read(stream, str(path), format_of(path), self._how, Losses()):
                        number += 1
                        found = self._played(game.record, getattr(arguments, "plies", PLIES))
                        if found is None:
                            self.left_out += 1
                        else:
                            yield found
                        live.step(lambda: f"{path.name}: {number} games")  # noqa: B023 - shown at once
            except OSError as error:
                raise RecordError(
                    f"{path}: {error.strerror or error}: expected a file of recorded games"
                ) from None
        live.close()

    def _played(
        self, record: GameRecord, plies: int
    ) -> tuple[AnyVariant, list[Position], Side | None] | None:
        from hnefi.engine import games
        from hnefi.engine.games.tafl.variant import Variant
        from hnefi.engine.records.replay import as_played
        from hnefi.engine.records.rule_sets import variant_of
        from hnefi.engine.sides import Side

        winner: Side | None
        if record.outcome is not None:
            winner = record.outcome.winner
        elif record.verdict is not None:
            winner = None if record.verdict == "draw" else Side.of(record.verdict)
        else:
            return None
        if record.start is not None:
            return None
        try:
            played = variant_of(record, self._how.find)
            positions = [games.initial(played)]
            for ply in record.plies[:plies]:
                positions.append(positions[-1].play(ply.move))
            # A site's own ends (CSV) are no other game: the book is for the rules by that name.
            named = self._how.find(record.variant)
            if isinstance(named, Variant) and played.hash == as_played(named).hash:
                played = named
        except ValueError:
            return None
        return played, positions, winner


# Showing


def _show(argv: list[str]) -> int:
    options = parser(
        "book show",
        "Shows what a book knows about a position: its moves, the best for the side to move first, with the games, "
        "their results, the value of the move for the side that plays it, and how often the engine would play it.",
        ["", "--variant brandubh", "a4a2 d3a3 --variant brandubh", "--book mine.taflbook --json"],
    )
    options.add_argument("moves", nargs="*", metavar="MOVE", help="moves from the start position")
    options.add_argument("--variant", metavar="V", help="the variant (copenhagen, or the first of the book)")
    add_variant_path(options)
    options.add_argument("--book", metavar="FILE", help="the book (the shipped one)")
    options.add_argument("--json", action="store_true", help="the answer as one JSON object")
    arguments = options.parse_args(argv)
    let_interrupt_end_us()
    from hnefi.engine import book, games
    from hnefi.engine.catalogue import DEFAULT

    try:
        found = book.shipped() if arguments.book is None else book.read(Path(arguments.book))
    except book.BookError as error:
        print(f"hnefi book show: {safe(str(error))}", file=sys.stderr)
        return USAGE
    names = [chapter.name for chapter in found.chapters]
    word = arguments.variant or (DEFAULT if DEFAULT in names or not names else names[0])
    variant = find_variant(options, word, arguments.path)
    entries = found.of(variant)
    if not entries:
        options.error(
            f"--variant {shorten(word)}: expected a variant of the book: {safe(', '.join(names)) or 'it is empty'}"
        )
    position = games.initial(variant)
    for text in arguments.moves:
        try:
            position = position.play(position.parse_move(text))
        except ValueError as error:
            options.error(f"{shorten(text)}: {error}")
    known = book.choices(entries, position)
    if arguments.json:
        print(json.dumps(_as_json(variant, position, entries, known), indent=2))
    else:
        print("\n".join(_text(variant, position, entries, known)))
    return DONE


def _share(known: Sequence[Choice]) -> list[float]:
    """How often the engine would play each choice."""
    from hnefi.engine import book

    near = [choice.record.games if choice in book.near_best(known) else 0 for choice in known]
    return [count / max(1, sum(near)) for count in near]


def _worth(choice: Choice, side: Side) -> int:
    """A choice's value for the side that plays it, per mille."""
    return choice.record.value if side == 0 else 1000 - choice.record.value


def _positions(entries: Entries) -> str:
    return f"{len(entries):,} {'position' if len(entries) == 1 else 'positions'}"


def _text(variant: AnyVariant, position: Position, entries: Entries, known: Sequence[Choice]) -> list[str]:
    from hnefi.engine import book
    from hnefi.engine.squares import move_name

    side = "attackers" if position.side == 0 else "defenders"
    lines = [f"{variant.name}: {_positions(entries)}", "", position.diagram(), ""]
    if not known:
        here = entries.get(book.key(position))
        if here is None:
            return [*lines, f"{side} to move: the book does not know this position"]
        return [
            *lines,
            f"{side} to move: the book knows this position (games: {here.games}), but no move from it",
        ]
    rows = [["move", "games", "attackers", "drawn", "defenders", "worth", "played"]]
    for choice, share in zip(known, _share(known), strict=True):
        one = choice.record
        same = f" ({len(choice.moves) - 1} like it)" if len(choice.moves) > 1 else ""
        rows.append(
            [
                f"{move_name(choice.moves[0])}{same}",
                str(one.games),
                f"{one.attackers / one.games:.0%}",
                f"{one.draws / one.games:.0%}",
                f"{one.defenders / one.games:.0%}",
                f"{_worth(choice, position.side) / 10:.1f} %",
                f"{share:.0%}" if share else "",
            ]
        )
    return [
        *lines,
        f"{side} to move: games, who won them, what the move is worth to the {side}",
        "",
        *aligned(rows, left=(0,)),
    ]


def _as_json(
    variant: AnyVariant, position: Position, entries: Entries, known: Sequence[Choice]
) -> dict[str, object]:
    from hnefi.engine.squares import move_name

    return {
        "variant": variant.name,
        "positions": len(entries),
        "fen": position.fen(),
        "moves": [
            {
                "moves": [move_name(move) for move in choice.moves],
                "games": choice.record.games,
                "attackers": choice.record.attackers,
                "defenders": choice.record.defenders,
                "draws": choice.record.draws,
                "worth": _worth(choice, position.side) / 1000,
                "played": round(share, 3),
            }
            for choice, share in zip(known, _share(known), strict=True)
        ],
    }
