"""Code that the actions of `hnefi solve` on a file share: opening it, words for its values, columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.engine.squares import move_name

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from hnefi.engine.solving.proof_tree import Tree
    from hnefi.engine.solving.table import Table, Value


def opened(parser: argparse.ArgumentParser, name: str) -> Table:
    """Open a table. Exits the program if the file is not one."""
    from hnefi.engine.solving.table import Table

    table = opened_any(parser, name)
    if not isinstance(table, Table):
        parser.error(
            f"{name}: is a proof tree: expected a table (only `query` and `verify` read proof trees)"
        )
    return table


def opened_any(parser: argparse.ArgumentParser, name: str) -> Table | Tree:
    """Open a table or a proof tree: a file, or the name of a shipped one. Exits the program if it cannot be read."""
    from hnefi.engine.solving.tables import SHIPPED, SUFFIXES, open_file, ships

    try:
        return open_file(name if Path(name).exists() else ships(name) or name)
    except FileNotFoundError as error:
        names = sorted(path.stem for path in SHIPPED.iterdir() if path.suffix in SUFFIXES)
        parser.error(f"{name}: {error.strerror}; expected a file, or one that ships: {', '.join(names)}")
    except OSError as error:
        parser.error(f"{name}: {error.strerror}")


def names(moves: Sequence[int]) -> list[str]:
    """Moves in the usual notation."""
    return [move_name(move) for move in moves]


def as_json(value: Value | None) -> dict[str, Any]:
    """A value as JSON; `unknown` if a proof does not contain it."""
    if value is None:
        return {"winner": "unknown", "plies": None}
    winner = "open" if value.open else "draw" if value.winner is None else value.winner.letter
    return {"winner": winner, "plies": value.plies, **({"at_most": True} if value.at_most else {})}


def print_table(rows: Sequence[tuple[str, ...]]) -> None:
    """Print columns, the first aligned left and the others right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        first, *rest = (
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join([first, *rest]).rstrip())
