"""OpenTafl notation: rules strings, board records and moves, in both directions.

A rules string is `key:value` words: `dim` first, `start` (rank 1 first) or `starti` (top rank first) last. A switch
that a string leaves out has its default, and our switches have the same defaults. What cannot be understood is
reported and never fatal, as long as there is a board; what OTN cannot say is reported as lost and never dropped in
silence.

OpenTafl itself reads some keys in its own way. With `opentafl` on, strings are read as that program reads them:
the letters of `tfr` are turned round, only `t` and `T` of a hostility list count, a piece stops only where it may
pass, entry rights are read only beside `cenre`, and speeds in lists of 2 or 10 are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ... import squares as board
from ...sides import Side
from ...wording import shorten
from .fen import Setup, SetupError, parse_fen, parse_rows
from .rules import SWITCH, Rules
from .switches import (
    ATTACKER_PIECES,
    DEFENDER_PIECES,
    PIECES,
    TEXT_LIMIT,
    RulesError,
    parse_pieces,
    parse_squares,
)
from .variant import Variant, VariantError, is_name

_PROBLEMS: Final = 50
_STRING_LIMIT: Final = 64 * 1024
_ATTACKER_KING: Final = "k"
"""OTN has a letter for an attacking king, which no board here has; it is read and skipped."""

_Switches = dict[str, Any]

# What one letter says about one or several switches; the first letter that fits is written.
_CHOICES: Final[dict[str, dict[str, _Switches]]] = {
    "esc": {"c": {"escape": "corner"}, "e": {"escape": "edge"}},
    "surf": {"y": {"encirclement": "apart"}, "n": {"encirclement": "off"}},
    "atkf": {"y": {"first": "a"}, "n": {"first": "d"}},
    "tfr": {
        "i": {"repetition": "ignore"},
        "d": {"repetition": "draw"},
        "w": {"repetition": "mover_wins"},
        "l": {"repetition": "mover_loses"},
    },
    "ka": {
        "y": {"king_armed": "yes"},
        "h": {"king_armed": "moving"},
        "a": {"king_armed": "standing"},
        "n": {"king_armed": "no"},
    },
    "ks": {
        letter: {
            "king_sides": sides[0],
            "king_sides_on_throne": sides[1],
            "king_sides_beside_throne": sides[2],
            "king_on_edge": edge,
        }
        for letter, sides, edge in (
            ("s", (4, 4, 4), "safe"),
            ("c", (2, 4, 4), "safe"),
            ("m", (4, 4, 4), "enclosed"),
            ("w", (2, 2, 2), "safe"),
            ("y", (4, 4, 4), "safe"),
            ("n", (2, 2, 2), "safe"),
        )
    },
    **{
        key: {
            letter: {switch: jump}
            for letter, jump in zip("nrjc", ("none", "restricted", "over", "capture"), strict=True)
        }
        for key, switch in (
            ("kj", "king_jump"),
            ("nj", "knight_jump"),
            ("cj", "commander_jump"),
            ("mj", "mercenary_jump"),
            ("gj", "guard_jump"),
        )
    },
    "sw": {"n": {"shieldwall": "off"}, "w": {"shieldwall": "men"}, "s": {"shieldwall": "corner"}},
    "swf": {"y": {"shieldwall_closer": "end"}, "n": {"shieldwall_closer": "any"}},
    "efe": {"y": {"exit_fort": True}, "n": {"exit_fort": False}},
    "linc": {"y": {"linnaean": True}, "n": {"linnaean": False}},
    "ber": {"n": {"berserk": "off"}, "c": {"berserk": "capture"}, "m": {"berserk": "any"}},
}

_SQUARES: Final = {"cor": "corners", "cen": "throne", "afor": "attacker_camps", "dfor": "defender_camps"}
_HOSTILE: Final = {
    "corh": "corner_hostile",
    "cenhe": "throne_hostile_empty",
    "cenh": "throne_hostile_held",
    "aforh": "attacker_camp_hostile",
    "dforh": "defender_camp_hostile",
}
_TERRAINS: Final = {"cor": "corner", "cen": "throne", "afor": "attacker_camp", "dfor": "defender_camp"}
_PASS: Final = {f"{key}p": f"{terrain}_pass" for key, terrain in _TERRAINS.items()}
_STOP: Final = {f"{key}s": f"{terrain}_stop" for key, terrain in _TERRAINS.items()}
_ENTER: Final = {f"{key}re": f"{terrain}_enter" for key, terrain in _TERRAINS.items()}
_PIECE_SETS: Final = _HOSTILE | _PASS | _STOP | _ENTER

# The letters that the numbers of a speed list belong to, by the length of the list.
_SPEEDS: Final[dict[int, tuple[str, ...]]] = {
    1: (PIECES,),
    2: (ATTACKER_PIECES, DEFENDER_PIECES),
    8: tuple("tcnkTCNK"),
    10: tuple("tcnkmTCNKM"),
    12: tuple("tcnkmgTCNKMG"),
}
_OPENTAFL_TFR: Final = {"w": "mover_loses", "l": "mover_wins", "i": "draw", "d": "draw"}


class OtnError(ValueError):
    """A rules string without a board that could be played; the message repeats the bad text."""


def import_rules(text: str, opentafl: bool = False) -> tuple[Variant, list[str]]:
    """The variant that a rules string describes, and what of the string was not understood.

    `opentafl` reads it as that program does and sets the switch of that name. The variant is called by its `name:`,
    else `custom`. Raises OtnError only if there is no start position that could be played.
    """
    if len(text) > _STRING_LIMIT:
        raise OtnError(f"{shorten(text)}: expected at most {_STRING_LIMIT} characters, not {len(text)}")
    problems: list[str] = []
    words: dict[str, str] = {}
    for token in text.split():
        key, colon, value = token.partition(":")
        if not colon or not key:
            problems.append(f"{shorten(token)}: expected key:value")
        elif len(value) > TEXT_LIMIT and key not in ("start", "starti"):  # whose error says more
            problems.append(f"{shorten(token)}: expected at most {TEXT_LIMIT} characters")
        elif key in words:
            problems.append(f"{shorten(token)}: {shorten(key)[1:-1]} was given before")
        else:
            words[key] = value
    start = _read_start(words, problems)
    switches: _Switches = {"opentafl": opentafl}
    for key, value in words.items():
        try:
            switches.update(_read_key(key, value, start.size, opentafl))
        except ValueError as error:
            problems.append(f"{shorten(f'{key}:{value}')}: {error}")
    if switches.get("attacker_camps") or switches.get("defender_camps"):
        switches["camp_range"] = "kind"
    if opentafl:
        _read_like_opentafl(switches, words)
    name = words.get("name", "") or "custom"
    if not is_name(name):
        problems.append(f"{shorten(f'name:{name}')}: expected letters, digits, - _ or .")
        name = "custom"
    rules = _agreeing(switches, start.size, problems)
    try:
        variant = Variant(
            name,
            (),
            rules,
            Setup(start.size, start.pieces, Side.of(rules.first)),
            source="an OTN rules string",
        )
    except VariantError as error:
        raise OtnError(str(error)) from None
    if len(problems) > _PROBLEMS:
        problems[_PROBLEMS:] = [f"{len(problems) - _PROBLEMS} more words: not understood"]
    return variant, problems


def _read_start(words: dict[str, str], problems: list[str]) -> Setup:
    """The board of a rules string; takes its keys and `dim` out of `words`."""
    bottom, top, dim = words.pop("start", None), words.pop("starti", None), words.pop("dim", None)
    if bottom is None and top is None:
        raise OtnError("no start position: expected start:/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/ at the end")
    if bottom is not None and top is not None:
        problems.append(f"{shorten(f'starti:{top}')}: start was given too")
    try:
        setup = (
            parse_rows(bottom, order="bottom") if bottom is not None else parse_rows(top or "", order="top")
        )
    except SetupError as error:
        raise OtnError(f"{'starti' if bottom is None else 'start'}: {error}") from None
    if dim is None:
        problems.append(f"no dim: expected dim:{setup.size} at the beginning")
    elif dim != str(setup.size):
        problems.append(f"{shorten(f'dim:{dim}')}: expected {setup.size}, the size of the start position")
    return setup


def _read_key(key: str, value: str, size: int, opentafl: bool) -> _Switches:
    """The switches that one word of a rules string sets; ValueError saying what was expected."""
    if key == "name":
        return {}
    if key in _CHOICES:
        choices = _CHOICES[key]
        if value not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}")
        if key == "tfr" and opentafl:
            return {"repetition": _OPENTAFL_TFR[value]}
        return choices[value]
    if key in _SQUARES:
        switch = _SQUARES[key]
        if value == "default":
            return {switch: {"cor": "four", "cen": "centre"}.get(key, "none")}
        return {switch: parse_squares(value, size)}
    if key in _PIECE_SETS:
        return {_PIECE_SETS[key]: _read_pieces(value)}
    if key == "spd":
        return {"speed": _read_speeds(value, opentafl)}
    raise ValueError("expected a known key")


def _read_pieces(value: str) -> str:
    found = set(value) - {",", _ATTACKER_KING}
    unknown = sorted(found.difference(PIECES))
    if unknown:
        raise ValueError(f"no piece has the letter {shorten(unknown[0])[1:-1]}")
    return "".join(letter for letter in PIECES if letter in found)


def _read_speeds(value: str, opentafl: bool) -> str:
    numbers = value.removesuffix(",").split(",")
    letters = _SPEEDS.get(len(numbers))
    if letters is None:
        raise ValueError(f"expected {', '.join(map(str, _SPEEDS))} numbers")
    limits = []
    for who, number in zip(letters, numbers, strict=True):
        if number == "-1":
            number = "0"
        if not (number.isascii() and number.isdigit() and len(number) <= 2):
            raise ValueError(f"{shorten(number, 20)} is not a number from -1 to 99")
        if who != _ATTACKER_KING:
            limits.append(f"{who}:{number}")
    if opentafl and len(numbers) in (2, 10):
        return "none"
    return ",".join(limits)


def _read_like_opentafl(switches: _Switches, words: dict[str, str]) -> None:
    for switch in _HOSTILE.values():
        if switch in switches:
            named = switches[switch]
            switches[switch] = (ATTACKER_PIECES if "t" in named else "") + (
                DEFENDER_PIECES if "T" in named else ""
            )
    if "cenre" in words:
        for switch in _ENTER.values():
            switches.setdefault(switch, "")
    else:
        for switch in _ENTER.values():
            switches.pop(switch, None)
    switches.setdefault("defender_camp_pass", PIECES)
    for crossing, stopping in zip(_PASS.values(), _STOP.values(), strict=True):
        may_cross = switches.get(crossing, parse_pieces(SWITCH[crossing].default))
        may_stop = switches.get(stopping, parse_pieces(SWITCH[stopping].default))
        switches[stopping] = "".join(letter for letter in may_stop if letter in may_cross)


def _agreeing(switches: _Switches, size: int, problems: list[str]) -> Rules:
    """The rules with as many of these switches as fit together; the others are reported."""
    while True:
        try:
            return Rules.from_mapping(switches, size)
        except RulesError as error:
            problems.append(str(error))
            # The switch at fault may be one that has its default: then another square list disagrees with it.
            candidates = [error.switch, *_SQUARES.values()]
            for name in candidates:
                if name in switches:
                    del switches[name]
                    break
            else:
                raise


def export_rules(variant: Variant) -> tuple[str, list[str]]:
    """The rules string of a variant, and the switches that it cannot say.

    Only what differs from OTN's defaults is written, who moves first always. Reading the string back with the
    variant's own `opentafl` gives the same rules except for the switches named.
    """
    rules = variant.rules
    words = [f"dim:{rules.size}", f"name:{variant.name}"]
    plain = Rules.from_mapping({}, rules.size)
    for key, choices in _CHOICES.items():
        default = _letter(plain, choices)
        letter = _letter(rules, choices, default)
        if key == "tfr" and rules.opentafl:
            letter = next(
                (sign for sign, meant in _OPENTAFL_TFR.items() if meant == rules.repetition and sign != "i"),
                "d",
            )
        if key == "atkf" or letter != default:
            words.append(f"{key}:{letter}")
    for key, switch in _SQUARES.items():
        squares = getattr(rules, switch)
        if squares != getattr(plain, switch):
            words.append(f"{key}:{','.join(board.name(sq) for sq in squares)}")
    entering = rules.opentafl and any(getattr(rules, switch) != PIECES for switch in _ENTER.values())
    for key, switch in _PIECE_SETS.items():
        usual = PIECES if key == "dforp" and rules.opentafl else getattr(plain, switch)
        if getattr(rules, switch) != usual or (entering and key in _ENTER):
            words.append(f"{key}:{getattr(rules, switch)}")
    if rules.speed:
        words.append(f"spd:{_write_speeds(rules)}")
    words.append(f"start:/{'/'.join(reversed(variant.start.rows))}/")
    text = " ".join(words)
    back, _ = import_rules(text, rules.opentafl)
    lost = [name for name, value in rules.lines() if back.rules.switch_text(name) != value]
    return text, lost


def _letter(rules: Rules, choices: dict[str, _Switches], default: str = "") -> str:
    """The letter that says most of what these rules say; the default letter if others say no more."""

    def agreement(letter: str) -> tuple[int, bool]:
        said = sum(getattr(rules, switch) == value for switch, value in choices[letter].items())
        return said, letter == default

    return max(choices, key=agreement)


def _write_speeds(rules: Rules) -> str:
    def number(letter: str) -> str:
        return str(rules.speed_of(letter) or -1)

    attackers = {number(letter) for letter in ATTACKER_PIECES}
    defenders = {number(letter) for letter in DEFENDER_PIECES}
    if len(attackers | defenders) == 1:
        return attackers.pop()
    if len(attackers) == len(defenders) == 1 and not rules.opentafl:
        return f"{attackers.pop()},{defenders.pop()}"
    return ",".join(number(letter) for letter in _SPEEDS[12])


def parse_board(text: str, size: int | None = None) -> Setup:
    """A board record, from rank 1 up with or without slashes around it; side and counters may follow as in a FEN.

    Raises SetupError. (The letters A and D mean another program, whose boards begin at the top rank.)
    """
    return parse_fen(text, size, order="bottom")


def format_board(setup: Setup) -> str:
    """The board record of a position: rank 1 first, slashes around it."""
    return f"/{'/'.join(reversed(setup.rows))}/"


def format_move(move: int, captures: Iterable[int] = ()) -> str:
    """A move record: `d1-d3xd4/e3`."""
    taken = "/".join(board.name(sq) for sq in captures)
    return f"{board.name(board.origin(move))}-{board.name(board.target(move))}{'x' if taken else ''}{taken}"
