"""The kinds of values that options take, from TOML or from the text of a flag; ValueError says what was expected."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hnefi.engine.wording import nearest, shorten

NUMBER_LIMIT = 10**15
NUMBER_DIGITS = 20


@dataclass(frozen=True, slots=True)
class Kind:
    """What values an option takes: `check` judges a TOML value, `read` a flag's text; ValueError says what is
    expected."""

    word: str
    check: Callable[[Any], Any]
    read: Callable[[str], Any]
    flag: bool = False
    fields: Mapping[str, Kind] | None = None
    open: bool = False


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("expected text")
    return value


def whole(low: int, high: int = NUMBER_LIMIT) -> Kind:
    expected = f"expected a whole number of at least {low}" + (
        f", at most {high}" if high < NUMBER_LIMIT else ""
    )

    def check(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise ValueError(expected)
        return value

    def read(text: str) -> int:
        if len(text) > NUMBER_DIGITS or not re.fullmatch(r"[+-]?[0-9]+", text):
            raise ValueError(expected)
        return check(int(text))

    return Kind("N", check, read)


def number(low: float, high: float, exclusive: bool = False) -> Kind:
    within = f"between {low:g} and {high:g}" if exclusive else f"from {low:g} to {high:g}"

    def check(value: Any) -> float:
        usable = type(value) in (int, float) and math.isfinite(value) and low <= value <= high
        if not usable or (exclusive and value in (low, high)):
            raise ValueError(f"expected a number {within}")
        return value  # type: ignore[no-any-return]

    def read(text: str) -> float:
        try:
            return check(float(text) if len(text) <= NUMBER_DIGITS else None)
        except ValueError:
            raise ValueError(f"expected a number {within}") from None

    return Kind("X", check, read)


def choice(*words: str) -> Kind:
    def check(value: Any) -> str:
        if value not in words:
            raise ValueError(f"expected one of {', '.join(words)}")
        return str(value)

    return Kind("|".join(filter(None, words)), check, check)


def _check_flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("expected true or false")
    return value


def _read_flag(text: str) -> bool:
    if text.lower() not in ("true", "false", "on", "off"):
        raise ValueError("expected true or false")
    return text.lower() in ("true", "on")


def _list(word: str, split: Callable[[str], list[str]]) -> Kind:
    def check(value: Any) -> list[str]:
        if not isinstance(value, list):
            raise ValueError("expected a list of texts")
        return [_text(item) for item in value]

    def read(text: str) -> list[str]:
        return check(split(text))

    return Kind(word, check, read)


def table(**fields: Kind) -> Kind:
    """A small table with known keys, as text `key=value,key=value`."""

    def check(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError(f"expected a table of {', '.join(fields)}")
        for key in value:
            if key not in fields:
                raise ValueError(
                    f"{shorten(key)}: expected one of {', '.join(fields)}{nearest(str(key), fields)}"
                )
        return {key: _inside(key, fields[key].check, item) for key, item in value.items()}

    def read(text: str) -> dict[str, Any]:
        words = pairs(text)
        unknown = [key for key in words if key not in fields]
        return (
            check(dict.fromkeys(unknown))
            if unknown
            else {key: _inside(key, fields[key].read, item) for key, item in words.items()}
        )

    return Kind("k=v,...", check, read, fields=fields)


def _inside(key: str, judge: Callable[[Any], Any], value: Any) -> Any:
    try:
        return judge(value)
    except ValueError as error:
        raise ValueError(f"{key} {shorten(value)}: {error}") from None


def _check_words(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("expected a table of names and texts")
    words = {}
    for name, item in value.items():
        if isinstance(item, bool):
            item = str(item).lower()
        if not isinstance(item, (str, int, float)):
            raise ValueError(f"{name} {shorten(item)}: expected text, a number, true or false")
        words[name] = _text(str(item))
    return words


def pairs(text: str) -> dict[str, str]:
    """The keys and values of `key=value,key=value`; a comma in a value is written `\\,`. ValueError otherwise."""
    found: dict[str, str] = {}
    for word in re.split(r"(?<!\\),", text):
        key, equals, value = word.replace("\\,", ",").partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{shorten(word)}: expected key=value")
        found[key.strip()] = value
    return found


def parse_tc(text: str) -> tuple[int, int, int]:
    """Time and increment in ms and the moves of one period of `moves/time+inc`; time in seconds or minutes:seconds."""
    expected = "expected moves/time+increment in seconds, such as 40/60+0.6, 1+0.01 or 2:30+1"
    form = r"(?:([0-9]{1,4})/)?(?:([0-9]{1,5}):)?([0-9]{1,7}(?:\.[0-9]{1,6})?)(?:\+([0-9]{1,7}(?:\.[0-9]{1,6})?))?"
    found = re.fullmatch(form, text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(expected)
    moves, minutes, seconds, increment = found.groups()
    time = round((int(minutes or 0) * 60 + float(seconds)) * 1000)
    if time < 1 or (moves is not None and int(moves) < 1):
        raise ValueError(expected)
    return time, round(float(increment or 0) * 1000), int(moves or 0)


def _check_tc(value: Any) -> str:
    parse_tc(value)
    return str(value)


def parse_plies(text: str) -> tuple[int, int]:
    """The range of `4` or `2-8`, both ends included; ValueError otherwise."""
    found = re.fullmatch(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", text) if isinstance(text, str) else None
    if found is None or int(found[2] or found[1]) < int(found[1]) or int(found[2] or found[1]) > 100:
        raise ValueError("expected K or K-L, from 0 to 100")
    return int(found[1]), int(found[2] or found[1])


def _check_plies(value: Any) -> str:
    parse_plies(value)
    return str(value)


def parse_cores(text: str) -> tuple[int, ...]:
    """The cores of a list such as `0,2,4-7`; ValueError otherwise."""
    cores: list[int] = []
    for word in text.split(","):
        found = re.fullmatch(r"\s*([0-9]{1,4})(?:-([0-9]{1,4}))?\s*", word)
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise ValueError("expected auto, off or a list of cores such as 0,2,4-7")
        cores += range(int(found[1]), int(found[2] or found[1]) + 1)
    return tuple(dict.fromkeys(cores))


def _check_affinity(value: Any) -> str:
    if value not in ("auto", "off"):
        parse_cores(_text(value))
    return str(value)


def _check_positions(value: Any) -> str:
    if value != "final":
        whole(1).read(str(value))
    return str(value)


def _check_pattern(value: Any) -> str:
    try:
        re.compile(_text(value))
    except (re.error, RecursionError) as error:
        raise ValueError(f"expected a regular expression: {error}") from None
    return str(value)


TEXT = Kind("TEXT", _text, _text)
FILE = Kind("FILE", _text, _text)
FLAG = Kind("", _check_flag, _read_flag, flag=True)
WORDS = Kind("k=v,...", _check_words, pairs, open=True)
COMMAS = _list("A,B,...", lambda text: [word.strip() for word in text.split(",") if word.strip()])
ARGUMENTS = _list("'A B'", shlex.split)
LINES = _list("'A;B'", lambda text: [line.strip() for line in text.split(";") if line.strip()])
TC = Kind("MOVES/TIME+INC", _check_tc, _check_tc)
SECONDS = number(0.001, 1e6)
MILLISECONDS = whole(0, 10**9)
PLIES = Kind("K-L", _check_plies, _check_plies)
LIMITS: dict[str, Kind] = {
    "tc": TC,
    "movetime": whole(1, 10**9),
    "depth": whole(1, 1000),
    "nodes": whole(1),
}
AFFINITY = Kind("auto|off|CORES", _check_affinity, _check_affinity)
POSITIONS = Kind("final|K", _check_positions, _check_positions)
PATTERN = Kind("REGEX", _check_pattern, _check_pattern)
