"""The rules of one tafl game: a frozen set of switches, each one sentence a player understands.

`SWITCHES` is the whole list, in the order in which rule sets are printed and hashed. A `Rules` holds one parsed
value per switch; nothing about a game's rules is decided anywhere else, and no code asks for a variant's name.
Text stays at the edge: square lists become tuples of squares, piece sets become strings of piece letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

from ... import squares as board
from ...wording import nearest, shorten

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


def _choice(name: str, words: str, default: str, meaning: str) -> Switch:
    return Switch(name, "choice", default, meaning, tuple(words.split()))


def _yes_no(name: str, default: str, meaning: str) -> Switch:
    return Switch(name, "yes_no", default, meaning, ("yes", "no"))


def _pieces(name: str, default: str, meaning: str) -> Switch:
    return Switch(name, "pieces", default, meaning)


def _squares(name: str, default: str, meaning: str) -> Switch:
    return Switch(name, "squares", default, meaning)


def _sides(name: str, words: str, meaning: str) -> Switch:
    return Switch(name, "sides", "4", meaning, tuple(words.split()))


def _count(name: str, default: str, meaning: str, low: int = 0) -> Switch:
    return Switch(name, "count", default, meaning, low=low)


_JUMPS = "none restricted over capture"
_JUMP = (
    "may hop over one adjacent enemy man: never; only from or to a throne, corner or own camp square; always; "
    "always and captures it."
)

SWITCHES: Final[tuple[Switch, ...]] = (
    Switch("size", "size", "from start", "The board has this many files and ranks."),
    _choice("first", "a d", "a", "This side makes the first move."),
    _squares("throne", "centre", "The king's seat."),
    _squares("corners", "four", "Corner squares; any squares may be named, so 2x2 corner forts work."),
    _squares("attacker_camps", "none", "Base camps of the attackers."),
    _squares("defender_camps", "none", "Base camps of the defenders."),
    Switch("zones", "zones", "none", "The named pieces may not pass over or stop on these squares."),
    _pieces("throne_pass", "all", "These pieces may slide across an empty throne square."),
    _pieces("corner_pass", "king", "These pieces may slide across an empty corner square."),
    _pieces(
        "attacker_camp_pass", "all", "These pieces may slide across an empty square of an attacker camp."
    ),
    _pieces(
        "defender_camp_pass", "defenders", "These pieces may slide across an empty square of a defender camp."
    ),
    _pieces("throne_stop", "king", "These pieces may end a move on a throne square."),
    _pieces("corner_stop", "king", "These pieces may end a move on a corner square."),
    _pieces("attacker_camp_stop", "all", "These pieces may end a move in an attacker camp."),
    _pieces("defender_camp_stop", "defenders", "These pieces may end a move in a defender camp."),
    _pieces("throne_enter", "all", "These pieces may go onto or across the throne from outside."),
    _pieces("corner_enter", "all", "These pieces may go onto or across a corner square from outside."),
    _pieces(
        "attacker_camp_enter", "all", "These pieces may go onto or across an attacker camp from outside."
    ),
    _pieces("defender_camp_enter", "all", "These pieces may go onto or across a defender camp from outside."),
    _choice(
        "camp_range",
        "own kind",
        "own",
        "A piece in a camp counts as inside its own camp only, or inside every camp of that kind.",
    ),
    Switch("speed", "speed", "none", "A piece slides at most so far; a piece not named slides any distance."),
    _choice("king_jump", _JUMPS, "none", f"The king {_JUMP}"),
    _choice("knight_jump", _JUMPS, "capture", f"A knight {_JUMP}"),
    _choice("commander_jump", _JUMPS, "over", f"A commander {_JUMP}"),
    _choice("mercenary_jump", _JUMPS, "none", f"A mercenary {_JUMP}"),
    _choice("guard_jump", _JUMPS, "none", f"A guard {_JUMP}"),
    _pieces("throne_hostile_empty", "all", "The empty throne helps to capture these pieces."),
    _pieces(
        "throne_hostile_held", "attackers", "The throne with somebody on it helps to capture these pieces."
    ),
    _pieces("corner_hostile", "all", "Corner squares help to capture these pieces."),
    _pieces(
        "attacker_camp_hostile",
        "defenders",
        "Attacker camp squares, held or empty, help to capture these pieces.",
    ),
    _pieces(
        "defender_camp_hostile",
        "attackers",
        "Defender camp squares, held or empty, help to capture these pieces.",
    ),
    _squares("camp_soft", "none", "These camp squares never help to capture pieces of the camp's own side."),
    _pieces(
        "edge_hostile", "none", "The rim of the board helps to capture these pieces as an enemy piece would."
    ),
    _choice(
        "capture_run",
        "one line",
        "one",
        "A capture takes the single adjacent man, or the whole unbroken line of enemies up to the anvil.",
    ),
    _choice(
        "shieldwall",
        "off men corner",
        "off",
        "A row on the edge can be taken as a whole; both its ends must be held by men, "
        "or a corner square may be one end.",
    ),
    _choice(
        "shieldwall_closer",
        "end any",
        "end",
        "The row falls only to the piece that arrives at one of its ends, "
        "or to any move after which the wall is complete.",
    ),
    _yes_no(
        "linnaean",
        "no",
        "A defender beside the king on his throne is taken against the king if attackers hold the other three sides.",
    ),
    _choice(
        "berserk",
        "off capture any",
        "off",
        "After a capture the same piece must go on if it can capture again, or if it can move at all.",
    ),
    _choice(
        "king_armed",
        "yes moving standing no",
        "yes",
        "The king helps to capture: always, only when he moves, only as anvil, never.",
    ),
    _sides("king_sides", "4 2", "Hostile sides needed to take the king on ordinary squares."),
    _sides(
        "king_sides_on_throne", "4 2 0", "Hostile sides needed while he sits on the throne (0: not there)."
    ),
    _sides("king_sides_beside_throne", "4 2", "Hostile sides needed on a neighbour square of the throne."),
    _choice(
        "king_on_edge",
        "safe enclosed last",
        "safe",
        "A four-sided king on the edge cannot be taken; is taken when all his existing neighbours are hostile; "
        "only so when he is the last of his side.",
    ),
    _yes_no(
        "king_with_one",
        "no",
        "The king and exactly one adjacent defender are taken when the pair is surrounded.",
    ),
    _yes_no(
        "commander_pair",
        "yes",
        "Two commanders or knights on opposite sides, or one and a hostile corner, take a four-sided king.",
    ),
    _choice(
        "escape",
        "corner edge none",
        "corner",
        "The king wins on a corner square, on any edge square, or not by escaping.",
    ),
    _yes_no("exit_fort", "no", "Defenders win with the king in an unbreakable fort at the edge."),
    _choice(
        "encirclement",
        "off apart ring",
        "apart",
        "Attackers win when no defender can reach the edge (apart), "
        "or when one unbroken ring holds the king and all defenders (ring).",
    ),
    _yes_no("capture_all", "yes", "Defenders win by taking the last attacker."),
    _choice("sealed", "off org", "off", "Attackers win positions that hnefatafl.org calls hopeless."),
    _choice(
        "no_move",
        "lose draw a d",
        "lose",
        "When the side to move has no legal move: it loses, the game is drawn, or that side wins.",
    ),
    _choice(
        "repetition",
        "ignore draw mover_loses mover_wins attackers_lose defenders_lose "
        "forbidden forbidden_to_attackers forbidden_to_defenders",
        "draw",
        "What the k-th occurrence of a position does; the last three make the move illegal instead.",
    ),
    _count("repetition_count", "3", "The k of the repetition rule.", low=2),
    _yes_no("repetition_start", "yes", "The start position counts as an occurrence."),
    _choice(
        "repetition_compare",
        "position board",
        "position",
        "Positions are equal with the same side to move, or by the pieces alone.",
    ),
    _yes_no(
        "draw_fort",
        "no",
        "Defenders lose when their own arrangement stands a third time without a capture "
        "(king and at least four men).",
    ),
    _count("move_limit", "0", "Draw after so many moves (0: no limit)."),
    _choice(
        "move_limit_unit",
        "plies each",
        "plies",
        "The limit counts plies, or moves of each side (twice as many plies).",
    ),
    _count("quiet_limit", "0", "Draw after so many plies without a capture (0: no limit)."),
    Switch(
        "material_draw",
        "material",
        "none",
        "Draw when at most so many attackers and at most so many men of the king's side are left.",
    ),
    _yes_no("agreed_draw", "yes", "Players may agree to a draw."),
    _yes_no("opentafl", "no", "Play OpenTafl's coded quirks instead of the documented meaning."),
)

SWITCH: Final[Mapping[str, Switch]] = {switch.name: switch for switch in SWITCHES}
LATER: Final[frozenset[str]] = frozenset()
"""Switches that were added after 0.1.0. Hashes leave them out where they have their defaults, so that rule sets which
records know keep their hash."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Every rule switch of one game, parsed and checked; see `SWITCHES` for the sentence behind each field.

    Make one with `Rules.from_mapping` or `replace`. Piece sets are letters in the order of `PIECES`; square lists
    are sorted by file, then rank; `speed` names only limited letters. Hashable, equal by value.
    """

    size: int
    first: Literal["a", "d"]
    throne: tuple[int, ...]
    corners: tuple[int, ...]
    attacker_camps: tuple[int, ...]
    defender_camps: tuple[int, ...]
    zones: tuple[Zone, ...]
    throne_pass: str
    corner_pass: str
    attacker_camp_pass: str
    defender_camp_pass: str
    throne_stop: str
    corner_stop: str
    attacker_camp_stop: str
    defender_camp_stop: str
    throne_enter: str
    corner_enter: str
    attacker_camp_enter: str
    defender_camp_enter: str
    camp_range: Literal["own", "kind"]
    speed: tuple[tuple[str, int], ...]
    king_jump: Literal["none", "restricted", "over", "capture"]
    knight_jump: Literal["none", "restricted", "over", "capture"]
    commander_jump: Literal["none", "restricted", "over", "capture"]
    mercenary_jump: Literal["none", "restricted", "over", "capture"]
    guard_jump: Literal["none", "restricted", "over", "capture"]
    throne_hostile_empty: str
    throne_hostile_held: str
    corner_hostile: str
    attacker_camp_hostile: str
    defender_camp_hostile: str
    camp_soft: tuple[int, ...]
    edge_hostile: str
    capture_run: Literal["one", "line"]
    shieldwall: Literal["off", "men", "corner"]
    shieldwall_closer: Literal["end", "any"]
    linnaean: bool
    berserk: Literal["off", "capture", "any"]
    king_armed: Literal["yes", "moving", "standing", "no"]
    king_sides: int
    king_sides_on_throne: int
    king_sides_beside_throne: int
    king_on_edge: Literal["safe", "enclosed", "last"]
    king_with_one: bool
    commander_pair: bool
    escape: Literal["corner", "edge", "none"]
    exit_fort: bool
    encirclement: Literal["off", "apart", "ring"]
    capture_all: bool
    sealed: Literal["off", "org"]
    no_move: Literal["lose", "draw", "a", "d"]
    repetition: Literal[
        "ignore",
        "draw",
        "mover_loses",
        "mover_wins",
        "attackers_lose",
        "defenders_lose",
        "forbidden",
        "forbidden_to_attackers",
        "forbidden_to_defenders",
    ]
    repetition_count: int
    repetition_start: bool
    repetition_compare: Literal["position", "board"]
    draw_fort: bool
    move_limit: int
    move_limit_unit: Literal["plies", "each"]
    quiet_limit: int
    material_draw: tuple[int, int] | None
    agreed_draw: bool
    opentafl: bool

    def __post_init__(self) -> None:
        terrain: dict[int, str] = {}
        for name in ("throne", "corners", "attacker_camps", "defender_camps"):
            for sq in getattr(self, name):
                other = terrain.setdefault(sq, name)
                if other != name:
                    raise RulesError(
                        name,
                        self.switch_text(name),
                        f"one terrain on each square, but {board.name(sq)} is in {other} too",
                    )
        for sq in self.camp_soft:
            if terrain.get(sq) not in ("attacker_camps", "defender_camps"):
                raise RulesError(
                    "camp_soft",
                    self.switch_text("camp_soft"),
                    f"camp squares, but {board.name(sq)} is in no camp",
                )

    @classmethod
    def from_mapping(cls, switches: Mapping[str, SwitchValue], size: int) -> Rules:
        """The rules of a `size` x `size` board with these switches; what is not named has its default.

        Values may be text, the TOML integer, boolean or list that means the same, or a parsed value.
        Raises RulesError for an unknown switch, a wrong value or switches that do not fit together.
        """
        if (
            isinstance(size, bool)
            or not isinstance(size, int)
            or not board.MIN_SIZE <= size <= board.MAX_SIZE
        ):
            raise RulesError("size", size, SWITCH["size"].expected)
        values: dict[str, Any] = {
            switch.name: _parse(switch, switch.default, size) for switch in SWITCHES if switch.kind != "size"
        }
        values["size"] = size
        values.update(_parse_all(switches, size))
        return cls(**values)

    def replace(self, **switches: SwitchValue) -> Rules:
        """These rules with some switches changed; values as in `from_mapping`. The size cannot change."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        values.update(_parse_all(switches, self.size))
        return type(self)(**values)

    def switch_text(self, name: str) -> str:
        """The value of a switch as it is printed and hashed: `yes`, `tcnmg`, `a1,a7`, `none`."""
        if name not in SWITCH:
            raise RulesError(name, "", "a rule switch" + nearest(name, SWITCH))
        return _text(SWITCH[name].kind, getattr(self, name))

    def lines(self) -> tuple[tuple[str, str], ...]:
        """Every switch and its value as text, in the order of `SWITCHES`."""
        return tuple((switch.name, self.switch_text(switch.name)) for switch in SWITCHES)

    def hashed_lines(self) -> tuple[tuple[str, str], ...]:
        """The `lines` that make up the hash of a variant."""
        changed = self.changes() if LATER else {}
        return tuple((name, text) for name, text in self.lines() if name not in LATER or name in changed)

    def changes(self) -> dict[str, str]:
        """The switches (but not the size) that differ from their defaults, as text."""
        plain = Rules.from_mapping({}, self.size)
        return {name: text for name, text in self.lines() if text != plain.switch_text(name)}

    def speed_of(self, letter: str) -> int:
        """How many squares the piece called `letter` slides at most; 0 for any distance."""
        return dict(self.speed).get(letter, 0)


def _parse_all(switches: Mapping[str, SwitchValue], size: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in switches.items():
        switch = SWITCH.get(name)
        if switch is None:
            raise RulesError(shorten(name)[1:-1], value, "the name of a rule switch" + nearest(name, SWITCH))
        values[name] = _parse(switch, value, size)
    return values


def _parse(switch: Switch, value: SwitchValue, size: int) -> Any:
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
                raise ValueError(f"{shorten(text, 40)} is no zone")
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
            raise ValueError(f"{shorten(word, 40)} is no letter:squares")
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


def _text(kind: Kind, value: Any) -> str:
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
