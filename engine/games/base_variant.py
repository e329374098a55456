"""What the variants of all games have in common, whatever game they are of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class VariantError(ValueError):
    """A variant that cannot be found, read or played: names the file or variant, the key, the value and what was
    expected."""


class UnknownVariant(VariantError):
    """No variant has this name; `near` is the hint at the one that may be meant, or nothing."""

    def __init__(self, text: str, near: str = "") -> None:
        super().__init__(text)
        self.near = near


class AnyVariant(Protocol):
    """One variant of one game: what sessions, protocol and tools may ask without knowing the game."""

    @property
    def game(self) -> str:
        """The name of the game, which is that of its package in `games`."""

    @property
    def name(self) -> str:
        """The one word that stands for it everywhere, its size included."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names for it."""

    @property
    def source(self) -> str:
        """Where its rules come from."""

    @property
    def description(self) -> str:
        """The game in a sentence."""

    @property
    def files(self) -> int:
        """Columns of the board."""

    @property
    def ranks(self) -> int:
        """Rows of the board."""

    @property
    def attackers(self) -> int:
        """Men of side `a` at the start."""

    @property
    def defenders(self) -> int:
        """Men of side `d` at the start; a king is no man."""

    @property
    def first(self) -> str:
        """The side that makes the first move, `a` or `d`."""

    @property
    def rows(self) -> str:
        """The start position's rows, top rank first, joined by `/`."""

    @property
    def startpos(self) -> str:
        """The start position as a FEN."""

    @property
    def hash(self) -> str:
        """64 hex digits, equal exactly for equal games."""

    def rules_lines(self) -> tuple[tuple[str, str], ...]:
        """Every rule switch with its value as text."""


def rules_hash(lines: Iterable[tuple[str, str]], rows: str) -> str:
    """SHA-256 over the lines `<switch> <value>` and `start <rows>`, each ended by a line feed, as 64 hex digits."""
    import hashlib

    text = "".join(f"{name} {value}\n" for name, value in [*lines, ("start", rows)])
    return hashlib.sha256(text.encode()).hexdigest()
