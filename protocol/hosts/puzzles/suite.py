"""A suite as a file: one position a line, words between tabs, `#` before what is for people only.

    id  variant  rules  kind  plies  moves  later  source  ply  proof  fen  themes

`rules` are the first 12 digits of the variant's hash: with other rules the proofs mean nothing. `kind` is `win` (the
side to move wins within `plies`), `loss` (it loses within `plies`, whatever it does) or `only` (every move but one
loses within `plies`, the one in `moves` does not). `moves` are, for a win, all moves that win within `plies`; `later`
those that win within two plies more; `-` stands for none. `themes` say what a win is about (`exercise.THEMES`);
files of old end before them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from hnefi.engine.regular import open_regular
from hnefi.engine.wording import shorten

SHIPPED: Final = Path(__file__).with_name("suite.tsv")
KINDS: Final = ("win", "loss", "only")
DIGITS: Final = 12
MOST_BYTES: Final = 1 << 22


class SuiteError(ValueError):
    """A suite that cannot be read; the message names file, line and what was expected."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One position of a suite, as the head of this file explains it; moves are text."""

    id: str
    variant: str
    rules: str
    kind: str
    plies: int
    moves: tuple[str, ...]
    later: tuple[str, ...]
    source: str
    ply: int
    proof: str
    fen: str
    themes: tuple[str, ...] = ()

    def line(self) -> str:
        """The puzzle as a line of the suite's file, with tabs between its fields."""
        return "\t".join(
            (
                self.id,
                self.variant,
                self.rules,
                self.kind,
                str(self.plies),
                " ".join(self.moves) or "-",
                " ".join(self.later) or "-",
                self.source,
                str(self.ply),
                self.proof,
                self.fen,
                " ".join(self.themes) or "-",
            )
        )


HEAD: Final = tuple(field.name for field in fields(Entry))


def parse(text: str) -> Entry:
    """The entry of one line; SuiteError without file and line."""
    words = text.split("\t")
    if len(words) == len(HEAD) - 1:
        words.append("-")
    if len(words) != len(HEAD):
        raise SuiteError(f"{shorten(text)}: expected {len(HEAD)} words between tabs, found {len(words)}")
    name, variant, rules, kind, plies, moves, later, source, ply, proof, fen, themes = words
    if kind not in KINDS:
        raise SuiteError(f"kind {shorten(kind)}: expected {', '.join(KINDS)}")
    for what, number in (("plies", plies), ("ply", ply)):
        if not (number.isascii() and number.isdigit() and len(number) <= 4):
            raise SuiteError(f"{what} {shorten(number)}: expected a whole number")
    if kind == "only" and (moves == "-" or " " in moves):
        raise SuiteError(f"moves {shorten(moves)}: expected the one move that does not lose")
    return Entry(
        name,
        variant,
        rules,
        kind,
        int(plies),
        _moves(moves),
        _moves(later),
        source,
        int(ply),
        proof,
        fen,
        _moves(themes),
    )


def _moves(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split())


def read(path: Path) -> list[Entry]:
    """The entries of a suite; SuiteError at the first that cannot be read."""
    try:
        with open_regular(path) as stream:
            data = stream.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise SuiteError(f"{path}: expected at most {MOST_BYTES} bytes")
        text = data.decode()
    except OSError as error:
        raise SuiteError(f"{path}: {error.strerror or error}: expected a readable file") from None
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path}: byte {error.start}: expected UTF-8") from None
    entries: list[Entry] = []
    names: set[str] = set()
    for number, line in enumerate(text.splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        try:
            entry = parse(line)
            if entry.id in names:
                raise SuiteError(f"{shorten(entry.id)}: expected a different id for each puzzle")
        except SuiteError as error:
            raise SuiteError(f"{path}:{number}: {error}") from None
        names.add(entry.id)
        entries.append(entry)
    if not entries:
        raise SuiteError(f"{path}: expected at least one position")
    return entries


def text_of(entries: Iterable[Entry]) -> str:
    """A suite as it is written, with a line that names the columns."""
    lines = ["# " + "\t".join(HEAD), *(entry.line() for entry in entries)]
    return "\n".join(lines) + "\n"


def write(path: Path, entries: Iterable[Entry]) -> None:
    """Write a suite."""
    path.write_text(text_of(entries), "utf-8")
