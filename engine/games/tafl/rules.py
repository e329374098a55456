"""The rules of one tafl game: a frozen set of switches, each one sentence a player understands.

`SWITCHES` is the whole list, in the order in which rule sets are printed and hashed. A `Rules` holds one parsed
value per switch; nothing about a game's rules is decided anywhere else, and no code asks for a variant's name.
`switches.py` reads and writes the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

from ... import squares as board
from ...wording import nearest, shorten
from .switches import RulesError, Switch, SwitchValue, Zone, format_value, parse_value


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
            switch.name: parse_value(switch, switch.default, size)
            for switch in SWITCHES
            if switch.kind != "size"
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
        return format_value(SWITCH[name].kind, getattr(self, name))

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
        values[name] = parse_value(switch, value, size)
    return values
