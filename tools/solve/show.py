"""`hnefi solve show`: the positions of a table by who wins them, and its longest wins."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hnefi.protocol.hosts.exit_codes import INTERRUPTED

from ..common import arguments, interrupts
from .files import as_json, names, opened, print_table

if TYPE_CHECKING:
    from hnefi.engine.solving.table import Table


def main(argv: list[str]) -> int:
    """Show; 0, or 2 if the file is not a table."""
    parser = arguments.parser(
        "solve show",
        "Counts the positions of a table by who wins them, each with all its images on the board; the value of the "
        "start and the first moves that keep it; the longest win of either side with one best line.",
        ["mini-four.taflbase", "mini-four.taflbase --json"],
    )
    parser.add_argument("file", metavar="FILE", help="a table, or the name of one that ships")
    parser.add_argument("--json", action="store_true", help="as JSON")
    given = parser.parse_args(argv)
    with opened(parser, given.file) as table:
        return tell(table, as_json_text=given.json)


def tell(table: Table, *, as_json_text: bool) -> int:
    """Print everything that a table says about its game."""
    from hnefi.engine.solving import lookup

    from . import report
    from .build import load

    with interrupts.caught(lambda: ["hnefi solve: interrupted"]) as caught:
        found = report.summary(table, load(table))
    if caught.ended:
        return INTERRUPTED
    header = table.header
    start = report.position_of(table, None)
    covered = table.index.covers(table.variant.attackers, table.variant.defenders)
    value = table.value(start) if covered else None
    lines = {
        side: (plies, fen, names(lookup.best_line(table.value, report.position_of(table, fen))))
        for side, (plies, fen) in zip(("a", "d"), found.longest, strict=True)
        if fen
    }
    if as_json_text:
        print(
            json.dumps(
                {
                    "variant": table.variant.name,
                    "rules": table.variant.hash,
                    "attackers": header.attackers,
                    "defenders": header.defenders,
                    "entries": header.entries,
                    "bits": header.bits,
                    "endless": header.endless,
                    "digest": header.digest,
                    "counts": [
                        {
                            "material": c.material,
                            "a": c.attackers,
                            "d": c.defenders,
                            "neither": c.neither,
                            "over": c.over,
                        }
                        for c in (*found.counts, found.total)
                    ],
                    "start": None
                    if value is None
                    else {
                        **as_json(value),
                        "moves": names(lookup.keeping(table.value, start)),
                        "line": names(lookup.best_line(table.value, start)),
                    },
                    "longest": {
                        side: {"plies": plies, "fen": fen, "line": line}
                        for side, (plies, fen, line) in lines.items()
                    },
                }
            )
        )
        return 0
    endless = {"draw": "draws", "open": "open"}.get(header.endless, "by repetition")
    rows: list[tuple[str, ...]] = [("men", "attackers win", "defenders win", endless, "over", "all")]
    rows += [
        (c.material, *(str(n) for n in (c.attackers, c.defenders, c.neither, c.over, c.all)))
        for c in (*found.counts, found.total)
    ]
    print_table(rows)
    if value is not None:
        print(f"start: {value.text}")
        keeping = names(lookup.keeping(table.value, start))
        print(f"first moves that keep it ({len(keeping)} of {len(start.legal_moves())}): {' '.join(keeping)}")
        if value.plies is not None:
            print(f"best line: {' '.join(names(lookup.best_line(table.value, start)))}")
    for side, (plies, fen, line) in lines.items():
        print(f"longest win of the {'attackers' if side == 'a' else 'defenders'}: {plies} plies, {fen}")
        print(f"  {' '.join(line)}")
    print(f"digest {header.digest}")
    return 0
