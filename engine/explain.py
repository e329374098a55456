"""A variant in plain sentences, for people who want to know what they are about to play."""

from __future__ import annotations

from . import squares as board
from .rules import ATTACKER_PIECES, DEFENDER_PIECES, MEN, PIECES, Rules
from .variant import Variant

_PIECE_NAMES = {
    "t": "soldiers",
    "c": "commanders",
    "n": "knights",
    "m": "mercenaries",
    "g": "guards",
    "K": "the king",
}
_NUMBERS = {0: "no", 2: "two", 4: "four"}


def pieces_in_words(pieces: str) -> str:
    """A piece set as people say it: `only the king`, `all pieces`, `nobody`, `defending soldiers and the king`."""
    known = {
        "": "nobody",
        PIECES: "all pieces",
        MEN: "all men",
        ATTACKER_PIECES: "only attackers",
        DEFENDER_PIECES: "only defenders",
        DEFENDER_PIECES[:-1]: "only defending men",
        "K": "only the king",
        PIECES.replace("K", "") + "K": "all pieces",
    }
    if pieces in known:
        return known[pieces]
    missing = [letter for letter in PIECES if letter not in pieces]
    if len(missing) <= 2:
        return f"all pieces but {_join(missing)}"
    return f"only {_join(list(pieces))}"


def _join(letters: list[str]) -> str:
    names = []
    for letter in letters:
        side = "" if letter == "K" else "attacking " if letter in ATTACKER_PIECES else "defending "
        names.append(side + _PIECE_NAMES[letter if letter == "K" else letter.lower()])
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]


def explain(variant: Variant) -> list[str]:
    """The rules in sentences, in the order in which a player asks: sides, aim, moves, captures, king, ends, draws.

    What has no effect in this variant (camps where there are none, jumps of absent pieces) is left out.
    """
    rules = variant.rules
    first = "Attackers" if rules.first == "a" else "Defenders"
    sentences = [variant.description] if variant.description else []
    sentences.append(
        f"{variant.size} x {variant.size} squares, {variant.attackers} attackers against {variant.defenders} "
        f"defenders and the king. {first} begin."
    )
    sentences += _aims(rules)
    sentences += _movement(variant)
    present = {letter for _, letter in variant.start.pieces}
    sentences += _captures(rules, present)
    sentences += _king(rules, present)
    sentences += _ends(rules)
    if rules.opentafl:
        sentences.append(
            "Where OpenTafl's program differs from its own documentation, the program is followed."
        )
    return sentences


def _aims(rules: Rules) -> list[str]:
    goal = {
        "corner": "Defenders win when the king reaches a corner square.",
        "edge": "Defenders win when the king reaches the edge of the board.",
        "none": "The king cannot win by escaping.",
    }[rules.escape]
    aims = [goal, "Attackers win by taking the king."]
    if rules.exit_fort:
        aims.append(
            "Defenders also win with the king in a fort at the edge that cannot be broken, if he can move in it."
        )
    if rules.capture_all:
        aims.append("Defenders also win by taking the last attacker.")
    if rules.encirclement == "apart":
        aims.append("Attackers also win when no defender can reach the edge any more.")
    elif rules.encirclement == "ring":
        aims.append("Attackers also win when one unbroken ring holds the king and all defenders.")
    if rules.sealed == "org":
        aims.append("Attackers also win positions that hnefatafl.org calls hopeless for the defenders.")
    return aims


def _movement(variant: Variant) -> list[str]:
    rules = variant.rules
    present = {letter for _, letter in variant.start.pieces}
    sentences = ["Pieces slide any distance along files and ranks over empty squares and never past a piece."]
    limits = [(letter, most) for letter, most in rules.speed if letter in present]
    if limits and len(limits) == len(present) and len({most for _, most in limits}) == 1:
        sentences = [
            f"Pieces move along files and ranks, at most {_steps(limits[0][1])}, and never past a piece."
        ]
    else:
        sentences += [
            f"{_upper(_join([letter]))}: at most {_steps(most)} in one move." for letter, most in limits
        ]
    for words, squares, crossing, stopping, entering in (
        ("throne", rules.throne, rules.throne_pass, rules.throne_stop, rules.throne_enter),
        ("corners", rules.corners, rules.corner_pass, rules.corner_stop, rules.corner_enter),
        (
            "attacker camps",
            rules.attacker_camps,
            rules.attacker_camp_pass,
            rules.attacker_camp_stop,
            rules.attacker_camp_enter,
        ),
        (
            "defender camps",
            rules.defender_camps,
            rules.defender_camp_pass,
            rules.defender_camp_stop,
            rules.defender_camp_enter,
        ),
    ):
        if not squares:
            continue
        where = ", ".join(board.name(sq) for sq in squares)
        sentences.append(
            f"{_upper(words)} ({where}): {pieces_in_words(stopping)} may stop there, "
            f"{pieces_in_words(crossing)} may cross it when it is empty."
        )
        if entering != PIECES:
            sentences.append(f"{_upper(words)}: {pieces_in_words(entering)} may come in from outside.")
    if (rules.attacker_camps or rules.defender_camps) and rules.camp_range == "kind":
        sentences.append("All camps of one kind count as one camp.")
    for zone in rules.zones:
        what = {"pass": "cross", "stop": "stop on", "both": "cross or stop on"}[zone.mode]
        squares_named = ", ".join(board.name(sq) for sq in zone.squares)
        sentences.append(f"Forbidden to {pieces_in_words(zone.pieces)}: to {what} {squares_named}.")
    for letters, name, jump in (
        ("K", "The king", rules.king_jump),
        ("nN", "Knights", rules.knight_jump),
        ("cC", "Commanders", rules.commander_jump),
        ("mM", "Mercenaries", rules.mercenary_jump),
        ("gG", "Guards", rules.guard_jump),
    ):
        if present.isdisjoint(letters) or jump == "none":
            continue
        how = {
            "restricted": "from or to a throne, corner or own camp square",
            "over": "without capturing him",
            "capture": "and capture him",
        }[jump]
        sentences.append(f"{name} may jump over one adjacent enemy man to the empty square behind, {how}.")
    if rules.berserk != "off":
        need = "can capture again" if rules.berserk == "capture" else "can move"
        sentences.append(f"After a capture the same piece must go on as long as it {need}.")
    return sentences


def _steps(most: int) -> str:
    return "1 square" if most == 1 else f"{most} squares"


def _captures(rules: Rules, present: set[str]) -> list[str]:
    sentences = [
        "A man is taken when an enemy moves so that he stands between two enemies on a file or rank."
    ]
    if rules.capture_run == "line":
        sentences.append("A whole unbroken line of enemies between the two is taken.")
    for words, squares, pieces in (
        ("The empty throne", rules.throne, rules.throne_hostile_empty),
        ("The throne with somebody on it", rules.throne, rules.throne_hostile_held),
        ("A corner square", rules.corners, rules.corner_hostile),
        ("An attacker camp square", rules.attacker_camps, rules.attacker_camp_hostile),
        ("A defender camp square", rules.defender_camps, rules.defender_camp_hostile),
        ("The rim of the board", (0,), rules.edge_hostile),
    ):
        if squares and (pieces or words != "The rim of the board"):
            sentences.append(f"{words} counts as an enemy of {_whom(pieces)}.")
    if rules.camp_soft:
        where = ", ".join(board.name(sq) for sq in rules.camp_soft)
        sentences.append(f"The camp squares {where} never help to capture pieces of the camp's own side.")
    if rules.shieldwall != "off":
        ends = "or a corner square" if rules.shieldwall == "corner" else "a corner square does not count"
        closer = (
            "by the piece that arrives at one of its ends"
            if rules.shieldwall_closer == "end"
            else "by any move that completes the wall"
        )
        sentences.append(
            "Shieldwall: a row of two or more men on the edge, each with an enemy in front, is taken as a whole "
            f"{closer}; both its ends must be held by enemies ({ends})."
        )
    if rules.linnaean:
        sentences.append(
            "A defender beside the king on his throne is taken against the king "
            "if attackers hold the other three sides."
        )
    armed = {
        "yes": "The king helps to capture.",
        "moving": "The king helps to capture only when he moves.",
        "standing": "The king helps to capture only as the piece on the far side.",
        "no": "The king does not help to capture.",
    }[rules.king_armed]
    if present & set("mM"):
        sentences.append("A mercenary who is taken stays on his square and changes sides.")
    if present & set("gG"):
        sentences.append("Guards cannot be taken between two enemies and do not help to capture.")
    return [*sentences, armed]


def _whom(pieces: str) -> str:
    return pieces_in_words(pieces).removeprefix("only ")


def _king(rules: Rules, present: set[str]) -> list[str]:
    sentences = [f"The king is taken from {_NUMBERS[rules.king_sides]} sides."]
    if rules.throne:
        on_throne = (
            "he cannot be taken"
            if rules.king_sides_on_throne == 0
            else f"from {_NUMBERS[rules.king_sides_on_throne]} sides"
        )
        beside = (
            "by three attackers and the throne" if rules.king_sides_beside_throne == 4 else "from two sides"
        )
        if (rules.king_sides_on_throne, rules.king_sides_beside_throne) != (
            rules.king_sides,
            rules.king_sides,
        ):
            sentences.append(f"On the throne: {on_throne}. Beside it: {beside}.")
        elif rules.king_sides == 4:
            sentences.append(f"Beside the throne: {beside}.")
    if rules.king_sides == 4:
        sentences.append(
            {
                "safe": "At the edge he cannot be taken.",
                "enclosed": "At the edge all his existing neighbour squares must be hostile.",
                "last": "At the edge he can be taken only when he has no man left.",
            }[rules.king_on_edge]
        )
        if rules.commander_pair and present & set("cn"):
            sentences.append(
                "Two attacking commanders or knights on opposite sides, or one and a hostile corner, take him as well."
            )
    if rules.king_with_one:
        sentences.append(
            "The king and exactly one defender beside him are taken when the pair is surrounded."
        )
    return sentences


def _ends(rules: Rules) -> list[str]:
    sentences = [
        {
            "lose": "A side without a legal move loses.",
            "draw": "The game is drawn when the side to move has no legal move.",
            "a": "Attackers win when the side to move has no legal move.",
            "d": "Defenders win when the side to move has no legal move.",
        }[rules.no_move]
    ]
    if rules.repetition == "ignore":
        sentences.append("Repeating a position has no effect.")
    else:
        what = {
            "draw": "is a draw",
            "mover_loses": "loses for the side that brings it about",
            "mover_wins": "wins for the side that brings it about",
            "attackers_lose": "loses for the attackers",
            "defenders_lose": "loses for the defenders",
            "forbidden": "is forbidden",
            "forbidden_to_attackers": "is forbidden to the attackers",
            "forbidden_to_defenders": "is forbidden to the defenders",
        }[rules.repetition]
        times = {2: "second", 3: "third", 4: "fourth"}.get(
            rules.repetition_count, f"{rules.repetition_count}th"
        )
        same = "" if rules.repetition_compare == "position" else ", whoever is to move,"
        sentences.append(f"The {times} occurrence of a position{same} {what}.")
        if not rules.repetition_start:
            sentences.append("The start position itself is not counted.")
    if rules.draw_fort:
        sentences.append("Defenders lose when their own men stand the same a third time without a capture.")
    if rules.move_limit:
        unit = "plies" if rules.move_limit_unit == "plies" else "moves of each side"
        sentences.append(f"The game is drawn after {rules.move_limit} {unit}.")
    if rules.quiet_limit:
        sentences.append(f"The game is drawn after {rules.quiet_limit} plies without a capture.")
    if not rules.agreed_draw:
        sentences.append("Players may not agree to a draw.")
    if rules.material_draw is not None:
        attackers, defenders = rules.material_draw
        sentences.append(
            f"The game is drawn when at most {attackers} attackers and {defenders} men of the king's side are left."
        )
    return sentences
