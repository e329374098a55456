"""`hnefi solve query`: what a table or a proof tree says about a position and its moves."""

from __future__ import annotations

import json

from ..common import arguments
from .files import as_json, opened_any


def main(argv: list[str]) -> int:
    """Answer; 0, or 2 if there is no answer."""
    parser = arguments.parser(
        "solve query",
        "Prints what a table knows about a position and about every legal move, the best first. A position that "
        "follows is counted from after the move. Moves with a * are as good as any, those with a + keep the result. A "
        "proof tree knows only some positions: it says in how many plies the winner wins at most, and for the "
        "winner's other moves it does not say what they lead to.",
        ["mini-four.taflbase", "mini-four.taflbase '5/2T2/t1K1t/2T2/2t2 d 0 1'"],
    )
    parser.add_argument("file", metavar="FILE", help="a table or a proof tree, or the name of one that ships")
    parser.add_argument("fen", metavar="FEN", nargs="?", help="the position (the start)")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")
    given = parser.parse_args(argv)
    with opened_any(parser, given.file) as table:
        from hnefi.engine.solving import lookup
        from hnefi.engine.squares import move_name

        from . import report

        try:
            position = report.position_of(table, given.fen)
            value = table.value(position)
            moves = lookup.moves(table.value, position)
        except ValueError as error:
            from hnefi.engine.solving.table import TableError

            if isinstance(error, TableError):
                raise
            parser.error(str(error))
        if given.json:
            print(
                json.dumps(
                    {
                        "fen": position.fen(),
                        **as_json(value),
                        "moves": [
                            {"move": move_name(each.move), **as_json(each.value), "best": each.best}
                            for each in moves
                        ],
                    }
                )
            )
            return 0
        over = position.outcome
        print(f"{position.fen()}: {value.text if over is None else over.text}")
        for each in moves:
            mark = "*" if each.best else "+" if each.keeps(value) else " "
            print(f"{mark} {each.text}")
    return 0
