"""Types of arguments for argparse: numbers within bounds and NAME=VALUE; an error repeats what was typed."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable

MOST = 10**9 - 1


def whole(low: int, high: int = MOST, what: str = "a whole number") -> Callable[[str], int]:
    """Whole numbers within bounds; `what` they are, such as a port."""
    bounds = f"from {low} on" if high == MOST else f"from {low} to {high}"

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 12 and low <= int(text) <= high):
            raise ArgumentTypeError(f"{text[:80]!r}: expected {what} {bounds}")
        return int(text)

    return read


def number(low: float, high: float, what: str = "a number") -> Callable[[str], float]:
    """Numbers within bounds; `what` they are, such as seconds."""

    def read(text: str) -> float:
        try:
            found = float(text[:40])
        except ValueError:
            found = float("nan")
        if not low <= found <= high:
            raise ArgumentTypeError(f"{text[:80]!r}: expected {what} from {low} to {high}")
        return found

    return read


def setting(text: str) -> tuple[str, str]:
    """`NAME=VALUE`."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ArgumentTypeError(f"{text[:80]!r}: expected NAME=VALUE")
    return name.strip(), value.strip()
