"""How errors repeat what was read, and what they suggest instead; and numbers with their nouns."""

from __future__ import annotations

from collections.abc import Iterable


def shorten(value: object, limit: int = 80) -> str:
    """`value` quoted for an error message, cut to about `limit` characters."""
    if isinstance(value, str):
        return repr(value if len(value) <= limit else value[:limit] + "…")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**limit:
        return "a huge number"
    if isinstance(value, (list, tuple)):
        value = value[:limit]
    try:
        text = repr(value)
    except RecursionError:
        return "a value nested too deep to be shown"
    return text if len(text) <= limit else text[:limit] + "…"


def nearest(word: str, known: Iterable[str]) -> str:
    """` (did you mean x?)` for the known word nearest to `word`, or nothing."""
    import difflib

    close = difflib.get_close_matches(word.lower()[:64], list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def counted(number: int, one: str, many: str = "") -> str:
    """`1 row`, `2 rows`, `1,000 plies`: `many` is the plural that is not `one` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
