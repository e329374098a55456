"""What a switch of the rules may hold: kinds of values, read from any accepted spelling and written in one.

Text stays at the edge: square lists become tuples of squares, piece sets become strings of piece letters.
`rules.py` lists the switches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from ... import squares as board
from ...wording import shorten

ATTACKER_PIECES: Final = "tcnmg"
DEFENDER_PIECES: Final = "TCNMGK"
PIECES: Final = ATTACKER_PIECES + DEFENDER_PIECES
"""Every piece letter in the order in which piece sets are written: soldier, commander, knight, mercenary,
guard (lower case attackers, upper case defenders) and the king."""
MEN: Final = "tcnmgTCNMG"

PIECE_WORDS: Final[Mapping[str, str]] = {
    "none": "",
    "all": PIECES,
    "men": MEN,
    "attackers": ATTACKER_PIECES,
    "defenders": DEFENDER_PIECES,
    "king": "K",
}
"""Words that stand for a piece set on input; `defenders` includes the king."""

Kind = Literal[
    "size", "choice", "yes_no", "pieces", "squares", "zones", "speed", "sides", "count", "material"
]
ZoneMode = Literal["pass", "stop", "both"]
SwitchValue = Any
"""A switch as a file or a caller may say it: text, or the TOML integer, boolean or list that means the same,
or the value that a `Rules` field holds."""

TEXT_LIMIT: Final = 4096
SPEED_LIMIT: Final = 99
COUNT_LIMIT: Final = 1_000_000


class RulesError(ValueError):
    """A switch that cannot be read or does not fit the others: names the switch, the value and what was expected."""

    def __init__(self, switch: str, value: object, expected: str) -> None:
        self.switch = switch
        self.value = value
        self.expected = expected
        super().__init__(f"{switch}: {shorten(value)}: expected {expected}")


@dataclass(frozen=True, slots=True)
class Zone:
    """A restricted part of the board: the named pieces may not pass over, stop on, or either, these squares."""

    squares: tuple[int, ...]
    pieces: str
    mode: ZoneMode

    @property
    def text(self) -> str:
        """The zone as a switch spells it: `c5,c6:K:stop`."""
        return f"{squares_text(self.squares)}:{self.pieces}:{self.mode}"


@dataclass(frozen=True, slots=True)
class Switch:
    """One rule switch: its name, what kind of value it takes, its default as text and its meaning."""

    name: str
    kind: Kind
    default: str
    meaning: str
    words: tuple[str, ...] = ()
    low: int = 0

    @property
    def expected(self) -> str:
        """What a value must look like, for error messages."""
        match self.kind:
            case "size":
                return f"a whole number from {board.MIN_SIZE} to {board.MAX_SIZE}"
            case "choice" | "sides":
                return "one of " + ", ".join(self.words)
            case "yes_no":
                return "yes or no"
            case "pieces":
                return f"piece letters out of {PIECES} or one of {' '.join(PIECE_WORDS)}"
            case "squares":
                return "squares such as a1,d4 or one of none centre four"
            case "zones":
                return (
                    "squares:pieces:pass, stop or both, several separated by ; such as c5,c6:K:stop, or none"
                )
            case "speed":
                return f"letter:squares such as t:2,K:1 (at most {SPEED_LIMIT} squares), or none"
            case "count":
                return f"a whole number from {self.low} to {COUNT_LIMIT}"
            case "material":
                return (
                    "two whole numbers, attackers and men of the king's side, such as 2 1, "
                    "no more than the board has squares, or none"
                )


def parse_value(switch: Switch, value: SwitchValue, size: int) -> Any:
    """One value of any accepted spelling, parsed for a board of this size."""
    if isinstance(value, str) and len(value) > TEXT_LIMIT:
        raise RulesError(switch.name, value, f"{switch.expected} (at most {TEXT_LIMIT} characters)")
    try:
        match switch.kind:
            case "choice":
                return _parse_choice(switch, value)
            case "yes_no":
                return _parse_choice(switch, value) == "yes"
            case "sides":
                return int(_parse_choice(switch, str(value) if type(value) is int else value))
            case "size":
                number = _whole(value, board.MIN_SIZE, board.MAX_SIZE)
                if number != size:
                    raise RulesError(switch.name, value, f"{size}, the size of the board")
                return number
            case "count":
                return _whole(value, switch.low, COUNT_LIMIT)
            case "pieces":
                return parse_pieces(value)
            case "squares":
                return parse_squares(value, size)
            case "zones":
                return _parse_zones(value, size)
            case "speed":
                return _parse_speed(value)
            case "material":
                return _parse_material(value, size)
    except RulesError:
        raise
    except ValueError as error:
        detail = f" ({error})" if str(error) else ""
        raise RulesError(switch.name, value, switch.expected + detail) from None


def _parse_choice(switch: Switch, value: object) -> str:
    if isinstance(value, bool):
        value = "yes" if value else "no"
    if not isinstance(value, str) or value not in switch.words:
        raise ValueError
    return value


def _whole(value: object, low: int, high: int) -> int:
    """A whole number between the bounds, from an integer or from plain decimal digits."""
    if isinstance(value, str) and 0 < len(value) <= 9 and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError
    return value


def _words(value: object) -> list[str]:
    """The words of a list or of text with blanks or commas, none of them beside `none`; ValueError otherwise."""
    if isinstance(value, (list, tuple)):
        if len(value) > TEXT_LIMIT or not all(isinstance(word, str) for word in value):
            raise ValueError
        value = ",".join(value)
    if not isinstance(value, str):
        raise ValueError
    words = value.replace(",", " ").split()
    if "none" in words and len(words) > 1:
        raise ValueError("none stands alone")
    return words


def parse_pieces(value: object) -> str:
    """A piece set (`all`, `men`, `tK`, a list of letters) as letters in the order of `PIECES`; ValueError if wrong."""
    letters: set[str] = set()
    words = _words(value)
    if not words and value not in ("", [], ()):
        raise ValueError
    for word in words:
        letters.update(PIECE_WORDS.get(word, word))
    unknown = sorted(letters.difference(PIECES))
    if unknown:
        raise ValueError(f"no piece has the letter {shorten(unknown[0])[1:-1]}")
    return "".join(letter for letter in PIECES if letter in letters)


def parse_squares(value: object, size: int) -> tuple[int, ...]:
    """A square list sorted by file, then rank, without doubles; ValueError naming a square off the board."""
    if isinstance(value, tuple) and all(type(sq) is int for sq in value):
        found = set(value)
        if not all(board.on_board(sq, size) for sq in found):
            raise ValueError(f"a square is not on this {size}x{size} board")
    else:
        found = set()
        for word in _words(value):
            found.update(_square_word(word, size))
    return tuple(sorted(found, key=board.sort_key))


def _square_word(word: str, size: int) -> list[int]:
    last = size - 1
    match word:
        case "none":
            return []
        case "centre":
            return [board.square(size // 2, size // 2)] if size % 2 else []
        case "four":
            return [board.square(file, rank) for file in (0, last) for rank in (0, last)]
        case _:
            return [board.parse(word if len(word) <= 20 else word[:20] + "…", size)]


def _parse_zones(value: object, size: int) -> tuple[Zone, ...]:
    if isinstance(value, tuple) and all(isinstance(zone, Zone) for zone in value):
        parts = [(zone.squares, zone.pieces, zone.mode) for zone in value]
    else:
        if isinstance(value, list) and all(isinstance(zone, str) for zone in value):
            value = ";".join(value)
        if not isinstance(value, str) or len(value) > TEXT_LIMIT:
            raise ValueError
        parts = []
        for text in value.split(";"):
            pieces = [part.strip() for part in text.split(":")]
            if pieces == [""] or value.strip() == "none":
                continue
            if len(pieces) != 3:
                raise ValueError(f"{shorten(text, 40)} is not a zone")
            parts.append((pieces[0], pieces[1], pieces[2]))
    zones = set()
    for where, who, mode in parts:
        zone = Zone(parse_squares(where, size), parse_pieces(who), mode)
        if mode not in ("pass", "stop", "both"):
            raise ValueError(f"{shorten(mode, 40)} is not pass, stop or both")
        if not zone.squares or not zone.pieces:
            raise ValueError("a zone has squares and pieces")
        zones.add(zone)
    return tuple(
        sorted(zones, key=lambda zone: ([board.sort_key(sq) for sq in zone.squares], zone.pieces, zone.mode))
    )


def _parse_speed(value: object) -> tuple[tuple[str, int], ...]:
    if isinstance(value, tuple) and all(isinstance(entry, tuple) for entry in value):
        value = [f"{letter}:{number}" for letter, number in value]
    limits: dict[str, int] = {}
    named: set[str] = set()
    for word in _words(value):
        if word == "none":
            continue
        who, colon, number = word.partition(":")
        if not colon or not who:
            raise ValueError(f"{shorten(word, 40)} is not letter:squares")
        if who in named:
            raise ValueError(f"{shorten(who, 40)} is named twice")
        named.add(who)
        limits.update(dict.fromkeys(parse_pieces(who), _whole(number, 0, SPEED_LIMIT)))
    return tuple((letter, limits[letter]) for letter in PIECES if limits.get(letter))


def _parse_material(value: object, size: int) -> tuple[int, int] | None:
    if value is None or value == "none":
        return None
    if isinstance(value, (list, tuple)):
        words: list[Any] = list(value[:3])
    else:
        words = list(_words(value))
    if len(words) != 2:
        raise ValueError
    return _whole(words[0], 0, size**2), _whole(words[1], 0, size**2)


def squares_text(found: Iterable[int]) -> str:
    """Squares written out, `a1,a7`; `none` for no square."""
    return ",".join(board.name(sq) for sq in found) or "none"


def format_value(kind: Kind, value: Any) -> str:
    """A parsed value as it is printed and hashed."""
    match kind:
        case "yes_no":
            return "yes" if value else "no"
        case "pieces":
            return str(value) or "none"
        case "squares":
            return squares_text(value)
        case "zones":
            return ";".join(zone.text for zone in value) or "none"
        case "speed":
            return ",".join(f"{letter}:{number}" for letter, number in value) or "none"
        case "material":
            return "none" if value is None else f"{value[0]} {value[1]}"
        case _:
            return str(value)
