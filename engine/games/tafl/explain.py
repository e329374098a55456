"""A variant in plain sentences, for people who want to know what they are about to play.

`sentence` says what a rule set does with one switch, whatever its value; `chapters` and `explain` put the sentences
that matter in one variant into the order in which a player asks; `compare` sets two variants side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from .rules import SWITCHES, Rules
from .switches import ATTACKER_PIECES, DEFENDER_PIECES, MEN, PIECES, parse_squares, squares_text
from .variant import Variant

_PIECE_NAMES: Final = {
    "t": "soldiers",
    "c": "commanders",
    "n": "knights",
    "m": "mercenaries",
    "g": "guards",
    "K": "the king",
}

_TERRAINS: Final = {
    "throne": ("throne", "throne"),
    "corner": ("corners", "corner squares"),
    "attacker_camp": ("attacker_camps", "attackers' camps"),
    "defender_camp": ("defender_camps", "defenders' camps"),
}
"""First half of a switch's name: the switch that holds the squares, and what people call them."""
_RIGHTS: Final = {
    "stop": "{} may stop there",
    "pass": "{} may slide across when it is empty",
    "enter": "{} may come in from outside",
}
_HOSTILE: Final = {
    "throne_hostile_empty": ("throne", "The empty throne"),
    "throne_hostile_held": ("throne", "The throne with somebody on it"),
    "corner_hostile": ("corners", "A corner square"),
    "attacker_camp_hostile": ("attacker_camps", "A square of an attackers' camp"),
    "defender_camp_hostile": ("defender_camps", "A square of a defenders' camp"),
    "edge_hostile": ("", "The rim of the board"),
}
"""Switch: the switch that holds the squares, if any, and what helps to capture."""

_JUMPS: Final = {
    "none": "{} may not jump.",
    "restricted": "{} may jump over an adjacent enemy soldier or mercenary to the empty square behind, "
    "but only from or to a throne, corner or own camp square, and without taking him.",
    "over": "{} may jump over an adjacent enemy soldier or mercenary to the empty square behind, "
    "without taking him.",
    "capture": "{} may jump over an adjacent enemy soldier or mercenary to the empty square behind, "
    "and so take him.",
}
_JUMPERS: Final = {
    "king_jump": ("The king", "K"),
    "knight_jump": ("Knights", "nN"),
    "commander_jump": ("Commanders", "cC"),
    "mercenary_jump": ("Mercenaries", "mM"),
    "guard_jump": ("Guards", "gG"),
}
_WALL: Final = (
    "Shieldwall: a row of two or more pieces on the edge, each with an enemy in front, is taken as a whole when "
    "enemies hold both its ends; "
)

# What each word of a switch with few words says.
_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "first": {"a": "Attackers begin.", "d": "Defenders begin."},
    "camp_range": {
        "own": "A piece in a camp is inside that camp only; every other one is outside for it.",
        "kind": "A piece in a camp is inside all camps of that kind, and may go from one to another.",
    },
    **{
        switch: {word: text.format(who) for word, text in _JUMPS.items()}
        for switch, (who, _) in _JUMPERS.items()
    },
    "capture_run": {
        "one": "Between two enemies a single man is taken.",
        "line": "Between two enemies a whole unbroken line of men is taken, and the king if he stands in it, "
        "unless he is on his throne.",
    },
    "shieldwall": {
        "off": "There are no shieldwall captures.",
        "men": f"{_WALL}a corner square does not serve as an end.",
        "corner": f"{_WALL}an empty corner square serves as one end.",
    },
    "shieldwall_closer": {
        "end": "A shieldwall is closed only by a piece that arrives at one of its ends.",
        "any": "A shieldwall is closed by any move that completes it.",
    },
    "linnaean": {
        "yes": "A defender beside the king on his throne is taken against the king "
        "if attackers hold the other three sides.",
        "no": "No defender is taken against his own king.",
    },
    "berserk": {
        "off": "A turn is one move.",
        "capture": "After each capture the same piece must capture again if it can.",
        "any": "After each capture the same piece must move again if it can.",
    },
    "king_armed": {
        "yes": "The king helps to capture.",
        "moving": "The king helps to capture only when he moves.",
        "standing": "The king helps to capture only as the piece on the far side, not when he moves.",
        "no": "The king does not help to capture.",
    },
    "king_sides": {
        "4": "The king is taken from four sides.",
        "2": "The king is taken from two opposite sides, like a man.",
    },
    "king_sides_on_throne": {
        "4": "On his throne he is taken from four sides.",
        "2": "On his throne he is taken from two opposite sides.",
        "0": "On his throne he cannot be taken.",
    },
    "king_sides_beside_throne": {
        "4": "Beside his throne he is taken by three attackers and the throne.",
        "2": "Beside his throne he is taken from two opposite sides.",
    },
    "king_on_edge": {
        "safe": "Where four sides are needed, he cannot be taken on the edge.",
        "enclosed": "Where four sides are needed, he is taken on the edge when all his neighbour squares are hostile.",
        "last": "Where four sides are needed, he is taken on the edge only when he is the last of his side.",
    },
    "king_with_one": {
        "yes": "The king and exactly one defender beside him are taken when the pair is surrounded.",
        "no": "The king and a defender beside him are not taken as a pair.",
    },
    "commander_pair": {
        "yes": "Outside his throne, two attacking commanders or knights on opposite sides, or one and a hostile "
        "corner, take even a king who is taken from four sides.",
        "no": "Against the king, commanders and knights count like soldiers.",
    },
    "escape": {
        "corner": "Defenders win when the king reaches a corner square.",
        "edge": "Defenders win when the king reaches the edge of the board.",
        "none": "The king cannot win by escaping.",
    },
    "exit_fort": {
        "yes": "Defenders also win with the king in a fort at the edge that cannot be broken, if he can move in it.",
        "no": "A fort at the edge does not win.",
    },
    "encirclement": {
        "off": "Surrounding the defenders does not win.",
        "apart": "Attackers also win when no defender can reach the edge any more.",
        "ring": "Attackers also win when one unbroken ring holds the king and all defenders.",
    },
    "capture_all": {
        "yes": "Defenders also win by taking the last attacker.",
        "no": "Taking the last attacker does not win by itself.",
    },
    "sealed": {
        "off": "No position is given up for hopeless by the rules.",
        "org": "Attackers also win what hnefatafl.org calls hopeless for the defenders: the king trapped at the edge, "
        "or all four corners sealed against the few men left.",
    },
    "no_move": {
        "lose": "A side without a legal move loses.",
        "draw": "The game is drawn when the side to move has no legal move.",
        "a": "Attackers win when the side to move has no legal move.",
        "d": "Defenders win when the side to move has no legal move.",
    },
    "repetition_start": {
        "yes": "The start position counts as an occurrence.",
        "no": "The start position itself is not counted.",
    },
    "repetition_compare": {
        "position": "A position is the same when the same side is to move.",
        "board": "A position is the same when the pieces stand alike, whoever is to move.",
    },
    "draw_fort": {
        "yes": "Defenders, if they are the king and at least four men, lose when they stand exactly alike "
        "a third time since the last capture.",
        "no": "Defenders may stand alike as often as they like.",
    },
    "move_limit_unit": {
        "plies": "The move limit counts the moves of both sides together.",
        "each": "The move limit counts moves of each side.",
    },
    "agreed_draw": {"yes": "Players may agree to a draw.", "no": "Players may not agree to a draw."},
    "opentafl": {
        "yes": "Where OpenTafl's program differs from its own documentation, the program is followed.",
        "no": "Rules mean what their documents say, whatever OpenTafl's program does.",
    },
}
_OPENTAFL_BERSERK: Final = (
    "After a capture the same piece must move again if it could capture again; "
    "a move without a capture ends the turn."
)
_REPETITIONS: Final = {
    "draw": "is a draw",
    "mover_loses": "loses for the side that brings it about",
    "mover_wins": "wins for the side that brings it about",
    "attackers_lose": "loses for the attackers",
    "defenders_lose": "loses for the defenders",
    "forbidden": "is forbidden",
    "forbidden_to_attackers": "is forbidden to the attackers",
    "forbidden_to_defenders": "is forbidden to the defenders",
}


def pieces_in_words(pieces: str, present: str = PIECES) -> str:
    """A piece set as people say it: `only the king`, `all pieces`, `nobody`, `only defending soldiers and the king`.

    Pieces that are not `present` are left out.
    """
    here = {
        name: "".join(letter for letter in letters if letter in present)
        for name, letters in (
            ("all pieces", PIECES),
            ("all men", MEN),
            ("only attackers", ATTACKER_PIECES),
            ("only defenders", DEFENDER_PIECES),
            ("only defending men", DEFENDER_PIECES.replace("K", "")),
            ("only the king", "K"),
        )
    }
    said = "".join(letter for letter in PIECES if letter in pieces and letter in present)
    if not said:
        return "nobody"
    for name, letters in here.items():
        if said == letters:
            return name
    missing = [letter for letter in here["all pieces"] if letter not in said]
    if len(missing) <= 2:
        return f"all pieces but {_join(missing)}"
    return f"only {_join(said)}"


def _join(letters: Iterable[str]) -> str:
    names = []
    for letter in letters:
        side = "" if letter == "K" else "attacking " if letter in ATTACKER_PIECES else "defending "
        names.append(side + _PIECE_NAMES[letter if letter == "K" else letter.lower()])
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _whom(pieces: str, present: str = PIECES) -> str:
    return pieces_in_words(pieces, present).removeprefix("only ")


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]


def _where(squares: Iterable[int]) -> str:
    return squares_text(squares).replace(",", ", ")


def sentence(rules: Rules, switch: str, present: str = PIECES) -> str:
    """What these rules say with one switch, as one plain sentence; pieces that are not `present` are left out."""
    value = getattr(rules, switch)
    if switch in _WORDS:
        return _WORDS[switch][rules.switch_text(switch)]
    if switch in _HOSTILE:
        what = _HOSTILE[switch][1]
        if pieces_in_words(value, present) == "nobody":
            return f"{what} does not help to capture."
        return f"{what} counts as an enemy of {_whom(value, present)}."
    terrain, _, right = switch.rpartition("_")
    if terrain in _TERRAINS and right in _RIGHTS:
        return f"{_upper(_TERRAINS[terrain][1])}: {_RIGHTS[right].format(pieces_in_words(value, present))}."
    match switch:
        case "size":
            return f"The board has {rules.size} x {rules.size} squares."
        case "throne" | "corners" | "attacker_camps" | "defender_camps":
            words = next(words for name, words in _TERRAINS.values() if name == switch)
            return f"{_upper(words)}: {_named_squares(rules, switch)}."
        case "camp_soft":
            if not value:
                return "No camp square spares its own side."
            return f"The camp squares {_where(value)} never help to capture pieces of the camp's own side."
        case "zones":
            return " ".join(_zones(rules, present)) or "No part of the board is forbidden to anybody."
        case "speed":
            return " ".join(_speeds(rules, present)) or "Pieces slide any distance."
        case "repetition":
            if value == "ignore":
                return "Repeating a position has no effect."
            return f"The {_ordinal(rules.repetition_count)} occurrence of a position {_REPETITIONS[value]}."
        case "repetition_count":
            return f"The rule of repetition speaks of the {_ordinal(value)} occurrence of a position."
        case "move_limit":
            unit = (
                "moves of both sides together" if rules.move_limit_unit == "plies" else "moves of each side"
            )
            return f"The game is drawn after {value} {unit}." if value else "There is no limit of moves."
        case "quiet_limit":
            if not value:
                return "The game may go on without a capture."
            return f"The game is drawn after {value} moves of both sides together without a capture."
        case "material_draw":
            if value is None:
                return "The game goes on however few men are left."
            return (
                f"The game is drawn when at most {value[0]} attackers and "
                f"at most {value[1]} men of the king's side are left."
            )
    raise ValueError(f"{switch!r}: expected the name of a rule switch")


def _named_squares(rules: Rules, switch: str) -> str:
    """Squares as people point at them: those that every board has by name, others one by one."""
    value = getattr(rules, switch)
    if value and switch == "throne" and value == parse_squares("centre", rules.size):
        return "the middle square"
    if switch == "corners" and value == parse_squares("four", rules.size):
        return "the four corners of the board"
    return _where(value)


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third", 4: "fourth"}.get(number, f"{number}th")


def _zones(rules: Rules, present: str) -> list[str]:
    how = {"pass": "cross", "stop": "stop on", "both": "cross or stop on"}
    return [
        f"Forbidden to {_whom(zone.pieces, present)}: to {how[zone.mode]} {_where(zone.squares)}."
        for zone in rules.zones
        if not set(zone.pieces).isdisjoint(present)
    ]


def _speeds(rules: Rules, present: str) -> list[str]:
    limits = {letter: most for letter, most in rules.speed if letter in present}
    return [
        f"Limited to {most} square{'s' if most > 1 else ''} in one move: "
        f"{_whom(''.join(letter for letter in limits if limits[letter] == most), present)}."
        for most in sorted(set(limits.values()))
    ]


def present_pieces(variant: Variant) -> str:
    """The letters of the pieces that a game of this variant can have, in the order of `PIECES`."""
    standing = {letter for _, letter in variant.start.pieces}
    if standing & set("mM"):
        standing |= set("mM")  # a mercenary changes sides
    return "".join(letter for letter in PIECES if letter in standing)


def chapters(variant: Variant) -> dict[str, list[str]]:
    """The rules in sentences by what they are about, in the order in which a player asks: `board`, `aim`, `moves`,
    `captures`, `king`, `ends`.

    What has no effect in this variant (camps where there are none, jumps of absent pieces) is left out, and so are
    rules that a player would not expect anyway (no shieldwall, no second turn).
    """
    rules, present = variant.rules, present_pieces(variant)
    board = [variant.description] if variant.description else []
    board.append(
        f"{variant.size} x {variant.size} squares, {variant.attackers} attackers against {variant.defenders} "
        f"defenders and the king. {sentence(rules, 'first')}"
    )
    return {
        "board": board,
        "aim": _aims(rules),
        "moves": _movement(rules, present),
        "captures": _captures(rules, present),
        "king": _king(rules, present),
        "ends": _ends(rules),
    }


def explain(variant: Variant) -> list[str]:
    """The sentences of all `chapters`."""
    return [told for chapter in chapters(variant).values() for told in chapter]


def _only(rules: Rules, switch: str, *expected: str) -> list[str]:
    """The sentence on a switch, unless its value is one of those `expected`."""
    return [] if rules.switch_text(switch) in expected else [sentence(rules, switch)]


def _aims(rules: Rules) -> list[str]:
    goal = sentence(rules, "escape")
    if rules.escape == "corner" and not rules.corners:
        goal = "The king cannot win by escaping: there is no corner square."
    return [
        goal,
        "Attackers win by taking the king.",
        *_only(rules, "exit_fort", "no"),
        sentence(rules, "capture_all"),
        sentence(rules, "encirclement"),
        *_only(rules, "sealed", "off"),
    ]


def _movement(rules: Rules, present: str) -> list[str]:
    limits = _speeds(rules, present)
    far = "" if limits else "any distance "
    sentences = [
        f"Pieces slide {far}along files and ranks over empty squares and never past a piece.",
        *limits,
    ]
    for terrain, (switch, place) in _TERRAINS.items():
        squares = getattr(rules, switch)
        if not squares:
            continue
        rights = ["stop", "pass", "enter"]
        if set(squares) <= set(parse_squares("four", rules.size)):
            rights.remove("pass")  # behind such a square the board ends
        who = {right: pieces_in_words(getattr(rules, f"{terrain}_{right}"), present) for right in rights}
        if who["enter"] == "all pieces":
            del who["enter"]
        clauses = [_RIGHTS[right].format(words) for right, words in who.items()]
        sentences.append(f"{_upper(place)} ({_where(squares)}): {'; '.join(clauses)}.")
    if rules.attacker_camps or rules.defender_camps:
        sentences += _only(rules, "camp_range", "own")
    sentences += _zones(rules, present)
    for switch, (_, letters) in _JUMPERS.items():
        if not set(letters).isdisjoint(present):
            # Knights and commanders usually jump: it is said where they may not.
            sentences += _only(
                rules, switch, *([] if switch in ("knight_jump", "commander_jump") else ["none"])
            )
    if rules.opentafl and rules.berserk == "capture":
        return [*sentences, _OPENTAFL_BERSERK]
    return sentences + _only(rules, "berserk", "off")


def _captures(rules: Rules, present: str) -> list[str]:
    sentences = [
        "A man is taken when an enemy moves so that he stands between two enemies on a file or rank.",
        *_only(rules, "capture_run", "one"),
    ]
    for switch, (squares, _) in _HOSTILE.items():
        if squares and getattr(rules, squares):
            sentences.append(sentence(rules, switch, present))
    if rules.edge_hostile:
        sentences.append(sentence(rules, "edge_hostile", present))
    if rules.camp_soft:
        sentences.append(sentence(rules, "camp_soft"))
    if rules.shieldwall != "off":
        sentences += [sentence(rules, "shieldwall"), sentence(rules, "shieldwall_closer")]
    if rules.throne:
        sentences += _only(rules, "linnaean", "no")
    if "m" in present:
        sentences.append("A mercenary who is taken stays on his square and changes sides.")
    if not set("gG").isdisjoint(present):
        sentences.append("Guards cannot be taken and do not help to capture.")
    return [*sentences, sentence(rules, "king_armed")]


def _king(rules: Rules, present: str) -> list[str]:
    sentences = [sentence(rules, "king_sides")]
    needed = {rules.king_sides}
    if rules.throne:
        sentences.append(sentence(rules, "king_sides_on_throne"))
        hostile = "K" in rules.throne_hostile_empty or not set(rules.throne_stop).isdisjoint(ATTACKER_PIECES)
        if rules.king_sides_beside_throne == 4 and not hostile:
            sentences.append("Beside his throne he cannot be taken: the throne is not hostile to him.")
        else:
            sentences.append(sentence(rules, "king_sides_beside_throne"))
        needed.add(rules.king_sides_beside_throne)
    if rules.king_on_edge != "safe" or (rules.king_sides == 4 and rules.escape != "edge"):
        sentences.append(sentence(rules, "king_on_edge"))
    if 4 in needed and not set("cn").isdisjoint(present):
        sentences.append(sentence(rules, "commander_pair"))
    return sentences + _only(rules, "king_with_one", "no")


def _ends(rules: Rules) -> list[str]:
    sentences = [sentence(rules, "no_move"), sentence(rules, "repetition")]
    if rules.repetition != "ignore":
        sentences += _only(rules, "repetition_compare", "position")
        sentences += _only(rules, "repetition_start", "yes")
    for switch, usual in (
        ("draw_fort", "no"),
        ("move_limit", "0"),
        ("quiet_limit", "0"),
        ("material_draw", "none"),
        ("agreed_draw", "yes"),
        ("opentafl", "no"),
    ):
        sentences += _only(rules, switch, usual)
    return sentences


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two variants differ: `board`, `start` or the name of a switch, and what each of them says there."""

    subject: str
    first: str
    second: str


def compare(first: Variant, second: Variant) -> list[Difference]:
    """All differences of two variants, board and start position before the switches; none if they are one game.

    Squares that both boards have by name (the middle, the four corners) are no difference between boards of
    different size.
    """
    found = []
    if first.size != second.size:
        found.append(Difference("board", sentence(first.rules, "size"), sentence(second.rules, "size")))
    if first.rows != second.rows:
        found.append(Difference("start", _men(first), _men(second)))
    for switch in SWITCHES:
        one, other = sentence(first.rules, switch.name), sentence(second.rules, switch.name)
        if switch.name == "repetition" and first.rules.repetition == second.rules.repetition:
            continue  # the sentence names the count, which has its own
        if switch.name == "move_limit" and first.rules.move_limit == second.rules.move_limit:
            continue
        if switch.name != "size" and one != other:
            found.append(Difference(switch.name, one, other))
    return found


def _men(variant: Variant) -> str:
    return (
        f"{variant.attackers} attackers against {variant.defenders} defenders and the king: "
        f"{'/'.join(variant.start.rows)}."
    )
