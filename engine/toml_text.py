"""TOML that anybody may have written, read within bounds of time and memory."""

from __future__ import annotations

from typing import Any, Final

TEXT_LIMIT: Final = 64 * 1024
DOTS_LIMIT: Final = 64


def read_toml(text: str, limit: int = TEXT_LIMIT) -> dict[str, Any]:
    """The table that a TOML text describes; ValueError saying where it is none, or too much of one."""
    import tomllib

    if len(text) > limit:
        raise ValueError(f"expected at most {limit} characters, not {len(text)}")
    for number, line in enumerate(text.split("\n"), start=1):
        # The parser's time and memory grow with the square of the parts of a dotted key: gigabytes for this limit.
        if line.count(".") > DOTS_LIMIT:
            raise ValueError(f"line {number}: expected at most {DOTS_LIMIT} dots")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"not TOML: {error}") from None
    except RecursionError:
        raise ValueError("not TOML: lists or tables nested too deep") from None
    except ValueError as error:  # numbers of thousands of digits
        raise ValueError(f"not TOML: a number that cannot be read: {error}") from None
