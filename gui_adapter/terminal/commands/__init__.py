"""The words that may be typed, by what they are for; here, how what stands behind a word is read."""

from __future__ import annotations

from hnefi.engine.wording import shorten

from ..values import SideLetter


class WordError(ValueError):
    """A line that cannot be carried out; the text is the answer."""


def whole(text: str, low: int, high: int, what: str) -> int:
    """A whole number within bounds; WordError that says what was expected."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    if not low <= number <= high:
        raise WordError(f"{what} {shorten(text)}: expected a whole number from {low} to {high}")
    return number


def seconds(text: str, what: str) -> float:
    """A number of seconds from 0 to 60; WordError that says what was expected."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 60:
        raise WordError(f"{what} {shorten(text)}: expected seconds from 0 to 60, such as 0.5")
    return number


def side_first(text: str) -> tuple[SideLetter | None, str]:
    """The side that a text begins with (`d 8`), if it does, and the rest."""
    first, _, rest = text.partition(" ")
    word = first.lower()
    if word in ("a", "attackers"):
        return "a", rest.strip()
    if word in ("d", "defenders"):
        return "d", rest.strip()
    return None, text
