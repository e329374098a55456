"""`hnefi solve puzzles`: positions of a table with one winning move, as a suite for `hnefi puzzle`."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hnefi.protocol.hosts.exit_codes import INTERRUPTED, USAGE

from ..common import arguments, interrupts
from ..common.live import Live

if TYPE_CHECKING:
    from hnefi.engine.solving.table import Table
    from hnefi.protocol.hosts.puzzles.suite import Entry

COUNT = 20
LEAST, MOST = 5, 9
"""Plies of a solution: shorter ones are too easy, longer ones cannot be confirmed by a full-width search."""
TRIES = 20_000
"""Random entries examined per requested puzzle."""
DESCRIPTION = """\
Finds positions of a table in which exactly one move wins, and writes them as a suite for `hnefi puzzle` and `hnefi
tactics`. Each solution has the shortest length there is, according to the table. All men are on the board, and no
puzzle is a mirror image of another. The variant must be a shipped one, because a suite names it.
"""


def find(table: Table, count: int, plies: tuple[int, int], seed: int) -> list[Entry]:
    """`count` puzzles, or fewer if the table does not yield more."""
    from hnefi.engine.solving import lookup
    from hnefi.engine.squares import move_name
    from hnefi.protocol.hosts.puzzles.suite import DIGITS, Entry

    from .report import fen_of, position_of

    rng = random.Random(seed)
    material = table.index.materials[-1]
    variant = table.variant
    seen = set()
    found: list[Entry] = []
    for _ in range(TRIES * count):
        if len(found) == count:
            break
        interrupts.check()
        number = rng.randrange(material.first, material.end)
        value = table.decode(table.code(number))
        if value is None or value.plies is None or not plies[0] <= value.plies <= plies[1]:
            continue
        if value.plies % 2 == 0:
            # The side to move loses.
            continue
        try:
            position = position_of(table, fen_of(table.index, number))
        except ValueError:
            continue
        if position.outcome is not None or position.canonical() in seen:
            continue
        winning = [each.move for each in lookup.moves(table.value, position) if each.keeps(value)]
        if len(winning) != 1:
            continue
        seen.add(position.canonical())
        found.append(
            Entry(
                id=f"{variant.name}-table-{len(found) + 1:03}",
                variant=variant.name,
                rules=variant.hash[:DIGITS],
                kind="win",
                plies=value.plies,
                moves=(move_name(winning[0]),),
                later=(),
                source=f"{table.path.name} seed {seed}",
                ply=0,
                proof="table",
                fen=position.fen(),
            )
        )
    return found


def main(argv: list[str]) -> int:
    """Find and write; 0 when done."""
    parser = arguments.parser(
        "solve puzzles",
        DESCRIPTION,
        ["mini-four.taflbase --out mine.tsv", "mini-six.taflbase --count 50 --least 7 --out mine.tsv"],
    )
    parser.add_argument("file", metavar="FILE", help="a table, or the name of one that ships")
    arguments.add_out(parser, "SUITE", "the suite", required=True)
    parser.add_argument(
        "--count", type=arguments.positive, default=COUNT, metavar="N", help=f"how many puzzles ({COUNT})"
    )
    parser.add_argument(
        "--least",
        type=arguments.positive,
        default=LEAST,
        metavar="N",
        help=f"plies of the shortest win ({LEAST})",
    )
    parser.add_argument(
        "--most",
        type=arguments.positive,
        default=MOST,
        metavar="N",
        help=f"plies of the longest win ({MOST})",
    )
    parser.add_argument("--seed", type=arguments.natural, default=1, metavar="S", help="seed of the draw (1)")
    parser.add_argument("--quiet", action="store_true", help="nothing but the result and errors")
    arguments.add_plain(parser)
    given = parser.parse_args(argv)
    from hnefi.engine import games
    from hnefi.engine.games.base_variant import VariantError
    from hnefi.protocol.hosts.puzzles.suite import write

    from .files import opened

    if given.least > given.most:
        parser.error(f"--least {given.least}: expected at most --most, {given.most}")
    out = Path(given.out)
    if out.exists():
        parser.error(f"{out}: already exists; remove it, or name another file with --out")
    with opened(parser, given.file) as table:
        name = table.variant.name
        try:
            shipped = games.find(name).hash == table.variant.hash
        except VariantError:
            shipped = False
        if not shipped:
            parser.error(f"{given.file}: {name}: expected the rules of a shipped variant")
        live = Live(sys.stderr, plain=given.plain or given.quiet)
        live.show(lambda: [f"looking for {given.count} puzzles"])
        with interrupts.caught(lambda: ["hnefi solve puzzles: interrupted; nothing was written"]) as caught:
            found = find(table, given.count, (given.least, given.most), given.seed)
        live.close()
        if caught.ended:
            return INTERRUPTED
    if not found:
        print(f"hnefi solve puzzles: {given.file}: no puzzle was found", file=sys.stderr)
        return USAGE
    write(out, found)
    print(f"{out}: {len(found)} puzzles")
    return 0
