"""Why a move is illegal, in one sentence: the first that applies of a fixed list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...squares import STRIDE, file_of, move, name, on_board, rank_of
from .explain import pieces_in_words
from .fen import owner
from .tables import camp_groups

if TYPE_CHECKING:
    from .position import Position

_WORDS = {
    "t": "soldier",
    "c": "commander",
    "n": "knight",
    "m": "mercenary",
    "g": "guard",
    "k": "king",
}
_SIDES = ("an attacker", "a defender")


def why_illegal(position: Position, origin: int, target: int) -> str | None:
    """The first reason, in the order in which a player would find out, or None for a legal move."""
    rules = position.variant.rules
    size = rules.size
    if position.outcome is not None:
        return f"the game is over: {position.outcome.text}"
    for sq in (origin, target):
        if not on_board(sq, size):
            return f"no square {sq} on this {size}x{size} board"
    letter = position.piece_at(origin)
    if letter is None:
        return f"nothing stands on {name(origin)}"
    side = owner(letter)
    if side is not position.side:
        return f"that is {_SIDES[side]}, {('attackers', 'defenders')[position.side]} are to move"
    if position.berserk is not None and position.berserk != origin:
        return f"{name(position.berserk)} must go on"
    if origin == target:
        return "origin and target are the same"
    if position.is_legal(origin, target):
        return None
    files, ranks = file_of(target) - file_of(origin), rank_of(target) - rank_of(origin)
    if files and ranks:
        return f"{name(origin)} and {name(target)} are not in line"
    step = (1 if files > 0 else -1) if files else (STRIDE if ranks > 0 else -STRIDE)
    path = list(range(origin + step, target + step, step))
    found = _walk(position, letter, origin, path)
    if found is not None:
        return found
    if position.berserk is not None and rules.berserk == "capture" and not rules.opentafl:
        if not position.captures(move(origin, target)):
            return f"{name(origin)} must capture"
    return "would repeat the position"


def _walk(position: Position, letter: str, origin: int, path: list[int]) -> str | None:
    """What stops the piece on its way, None if it could walk (or jump) there."""
    rules = position.variant.rules
    king = "king" if letter == "K" else _WORDS[letter.lower()]
    target = path[-1]
    jumped = len(path) == 2 and _jumps(position, letter, origin, path)
    if not jumped:
        for sq in path:
            if position.piece_at(sq) is not None:
                return f"blocked at {name(sq)}"
        limit = rules.speed_of(letter)
        if limit and len(path) > limit:
            return f"too far: the {king} moves at most {limit} square{'s' if limit > 1 else ''}"
    terrain = {
        sq: kind
        for kind, named in (
            ("throne", rules.throne),
            ("corner", rules.corners),
            ("attacker_camp", rules.attacker_camps),
            ("defender_camp", rules.defender_camps),
        )
        for sq in named
    }
    regions = camp_groups(rules)

    def inside(sq: int) -> bool:
        """Whether the piece is in that terrain already."""
        kind = terrain[sq]
        if kind in ("throne", "corner"):
            return terrain.get(origin) == kind
        return origin in regions and regions[origin] == regions[sq]

    if target in terrain:
        stop = getattr(rules, f"{terrain[target]}_stop")
        if letter not in stop:
            return f"{pieces_in_words(stop)} may stop {_WHERE[terrain[target]]}"
    crossed = path[:1] if jumped else path[:-1]
    if not jumped:
        for sq in crossed:
            if sq in terrain:
                may_pass = getattr(rules, f"{terrain[sq]}_pass")
                if letter not in may_pass:
                    return f"{pieces_in_words(may_pass)} may cross {_ACROSS[terrain[sq]]}"
    for sq in [target] if jumped else path:
        if sq in terrain:
            enter = getattr(rules, f"{terrain[sq]}_enter")
            if letter not in enter and not inside(sq):
                what = terrain[sq].rpartition("_")[2]
                return f"{what}: {pieces_in_words(enter)} {'may enter' if enter else 'enters'}"
    for zone in rules.zones:
        if letter in zone.pieces:
            if target in zone.squares and zone.mode != "pass":
                return f"zone: the {king} may not stop on {name(target)}"
            if zone.mode != "stop" and not jumped:
                for sq in crossed:
                    if sq in zone.squares:
                        return f"zone: the {king} may not cross {name(sq)}"
    return None


_WHERE = {
    "throne": "on the throne",
    "corner": "on a corner",
    "attacker_camp": "on a camp",
    "defender_camp": "on a camp",
}
_ACROSS = {
    "throne": "the throne",
    "corner": "a corner",
    "attacker_camp": "a camp",
    "defender_camp": "a camp",
}


def _jumps(position: Position, letter: str, origin: int, path: list[int]) -> bool:
    """Whether the piece hops over an enemy here, if only the landing square lets it."""
    rules = position.variant.rules
    over, landing = (position.piece_at(sq) for sq in path)
    jumpable = "tTmMgG" if rules.opentafl else "tTmM"
    if landing is not None or over is None or over not in jumpable or owner(over) is owner(letter):
        return False
    kinds = {"k": "king", "n": "knight", "c": "commander", "m": "mercenary", "g": "guard"}
    kind = kinds.get(letter.lower())
    mode = getattr(rules, f"{kind}_jump") if kind and not (kind == "guard" and rules.opentafl) else "none"
    if mode != "restricted":
        return bool(mode != "none")
    own_camps = rules.attacker_camps if owner(letter) == 0 else rules.defender_camps
    havens = {*rules.throne, *rules.corners, *own_camps}
    return origin in havens or path[1] in havens
