"""Random but legal games: rule sets over every switch, boards to start from, and walks through them.

Everything comes from the `random.Random` that is passed in, so a seed names a game. Rules may be drawn from
hypothesis' own: the first of a choice and a sample of few are the plain case everywhere, so that they shrink.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from hnefi.engine.games.tafl.fen import Setup
from hnefi.engine.games.tafl.rules import SWITCHES
from hnefi.engine.games.tafl.switches import PIECES, SwitchValue
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.sides import Side
from hnefi.engine.squares import DIRECTIONS, move, name, on_board, square, squares

ATTACKERS, DEFENDERS = "tcnmg", "TCNMG"
WORDS = ("none", "all", "men", "attackers", "defenders", "king")
SIZES = (5, 5, 6, 6, 7, 7, 7, 7, 8, 8, 9, 9, 9, 10, 11, 11, 12, 13, 14, 15, 16, 17, 18, 19)
CAMPS = ("attacker_camps", "defender_camps")
PLAIN = [switch for switch in SWITCHES if switch.kind not in ("size", "squares", "zones", "speed")]
"""Switches that can be drawn alone, without regard to the board or to each other."""


def random_variant(
    rng: random.Random, size: int | None = None, positions: random.Random | None = None
) -> Variant:
    """A variant of `size` or 5x5 to 19x19, small boards more often, with any switches and a random layout.

    The layout comes from `positions` if that is given.
    """
    size = size or rng.choice(SIZES)
    switches: dict[str, SwitchValue] = {}
    free = set(squares(size))
    for kind in ("throne", "corners", *CAMPS):
        chosen = _terrain(rng, kind, size, free)
        free -= chosen
        switches[kind] = _text(chosen)
    camps = [word for kind in CAMPS for word in str(switches[kind]).split(",") if word != "none"]
    if camps and rng.random() > 0.5:
        switches["camp_soft"] = ",".join(rng.sample(camps, rng.randint(1, len(camps))))
    if rng.random() > 0.75:
        switches["zones"] = ";".join(_zone(rng, size) for _ in range(rng.randint(1, 3)))
    if rng.random() > 0.75:
        letters = rng.sample(PIECES, rng.randint(1, 4))
        switches["speed"] = ",".join(f"{letter}:{rng.randint(1, 4)}" for letter in letters)
    for switch in rng.sample(PLAIN, rng.choice((0, 7, 15, 30))):
        if switch.kind == "pieces":
            switches[switch.name] = _piece_set(rng)
        elif switch.kind == "count":
            switches[switch.name] = rng.randint(2, 4) if switch.low == 2 else rng.choice((0, 3, 8, 20))
        elif switch.kind == "material":
            switches[switch.name] = f"{rng.choice((0, 3, 8, 20))} {rng.choice((0, 2, 5, 12))}"
        else:
            switches[switch.name] = rng.choice(switch.words)
    stops = Variant.build(
        "stops", _rows_with_king(size), switches | {"throne_stop": "all", "corner_stop": "all"}
    )
    plain = stops.with_switches(**{key: switches.get(key, "king") for key in ("throne_stop", "corner_stop")})
    rng = positions or rng
    start = random_setup(rng, plain, crowded=rng.choice((0.15, 0.25, 0.4)))
    side = Side.of(plain.rules.first)
    return Variant("random", (), plain.rules, Setup(size, start.pieces, side))


def random_setup(rng: random.Random, variant: Variant, crowded: float = 0.3) -> Setup:
    """A position that may stand under the variant's rules: the king somewhere, men of either side around him."""
    rules = variant.rules
    size = rules.size
    plain = [sq for sq in squares(size) if sq not in rules.throne and sq not in rules.corners]
    edge = [sq for sq in plain if _on_edge(sq, size)]
    inner = [sq for sq in plain if not _on_edge(sq, size)]
    # The king often stands on his throne or at the edge, where most rules about him are.
    homes: list[Iterable[int]] = [inner, inner, rules.throne or inner]
    if rules.escape != "edge":
        homes.append(edge or inner)
    king = rng.choice([*rng.choice(homes)] or plain)
    special = rng.choice((0.0, 0.0, 0.1, 0.5))
    pieces = {king: "K"}
    # Men stand around one square more densely than elsewhere, so that walls and rings come up.
    middle = king if rng.random() < 0.7 else rng.choice(plain)
    share = rng.choice((0.3, 0.5, 0.7))
    near = [sq for sq in plain if abs(sq % 21 - middle % 21) + abs(sq // 21 - middle // 21) <= 3]
    held = rng.sample(near, int(len(near) * min(0.7, 2 * crowded)))
    held += rng.sample(plain, int(len(plain) * crowded / 2))
    for sq in {*held} - {*pieces}:
        letters = DEFENDERS if rng.random() < share else ATTACKERS
        pieces[sq] = rng.choice(letters[1:]) if special and rng.random() < special else letters[0]
    return Setup(
        size,
        tuple(sorted(pieces.items())),
        rng.choice((Side.ATTACKERS, Side.DEFENDERS)),
        rng.choice((0, 0, 1, 2)),
        rng.choice((1, 1, 2)),
    )


def nearly(rng: random.Random, variant: Variant, bend: bool = False) -> tuple[Variant, Setup, int]:
    """A position one move before something happens, and that move: a ring, fort, row, seal or trap to be closed.

    Whether anything does happen, and whether the move is legal at all, is for the rules to say; with `bend` the
    variant is often one with the switch turned on that the position is about.
    """
    pattern = rng.choice(_PATTERNS)
    if bend and rng.random() < 0.7:
        variant = variant.with_switches(
            **{name: rng.choice(values) for name, values in _WANTED[pattern].items()}
        )
    rules = variant.rules
    while True:
        pieces = pattern(rng, rules.size)
        if "K" not in pieces.values():
            continue
        for sq in [*rules.throne, *rules.corners]:
            if pieces.get(sq, "K") != "K":
                del pieces[sq]
        displaced = _displace(rng, rules.size, pieces)
        if displaced is not None:
            break
    gap, away = displaced
    letter = pieces.pop(gap)
    path = _between(away, gap)
    fixed = {*pieces, *path, gap, away, *rules.throne, *rules.corners}
    others = [sq for sq in squares(rules.size) if sq not in fixed]
    # Few men besides, often none: one defender outside makes a ring no ring.
    for sq in rng.sample(others, min(len(others), rng.choice((0, 0, 1, len(others) // 10)))):
        pieces[sq] = rng.choice("tTtTtTtTtTtTtTgGnNcCmM")
    if away not in (*rules.throne, *rules.corners):
        pieces[away] = letter
    side = Side.ATTACKERS if letter in ATTACKERS else Side.DEFENDERS
    return variant, Setup(rules.size, tuple(sorted(pieces.items())), side), move(away, gap)


def _ring(rng: random.Random, size: int) -> dict[int, str]:
    """Attackers round a small region that holds the king and some of his men."""
    blob = _blob(rng, size, square(rng.randint(1, size - 2), rng.randint(1, size - 2)), rng.randint(1, 6))
    pieces = dict.fromkeys(_around(size, blob), "t")
    pieces |= {sq: "T" for sq in blob if rng.random() < 0.3}
    pieces[rng.choice(sorted(blob))] = "K"
    return pieces


def _fort(rng: random.Random, size: int) -> dict[int, str]:
    """Defenders round a small region at the edge, with the king in it; more of them behind."""
    king = rng.choice([sq for sq in squares(size) if _on_edge(sq, size)])
    blob = _blob(rng, size, king, rng.randint(1, 4))
    wall = _around(size, blob)
    pieces = dict.fromkeys(wall, "T")
    pieces |= {sq: rng.choice("TTTt") for sq in _around(size, blob | wall) if rng.random() < 0.3}
    pieces[rng.choice([king, king, *sorted(blob)])] = "K"
    return pieces


def _row(rng: random.Random, size: int) -> dict[int, str]:
    """A row on an edge line with the other side in front of it and at its ends."""
    inner, outer = rng.choice(("tT", "Tt"))
    length = rng.randint(2, min(4, size - 2))
    first = rng.choice((1, size - 1 - length, rng.randint(1, size - 1 - length)))
    turns = rng.randint(0, 3)
    pieces: dict[int, str] = {}
    for file in range(first - 1, first + length + 1):
        for rank, letter in ((0, inner), (1, outer)):
            at_end = not first <= file < first + length
            if not at_end or rank == 0:
                pieces[_turned(file, rank, size, turns)] = outer if at_end else letter
    king = rng.choice([*(sq for sq, letter in pieces.items() if letter == "T"), *squares(size)])
    pieces[king] = "K"
    return pieces


def _box(rng: random.Random, size: int) -> dict[int, str]:
    """The king, perhaps with one man beside him, and attackers on the squares around."""
    king = rng.choice(list(squares(size)))
    blob = _blob(rng, size, king, rng.choice((1, 1, 2)))
    letters = rng.choice(("t", "t", "tc", "cn", "tm"))
    pieces = {sq: rng.choice(letters) for sq in _around(size, blob) if rng.random() < 0.9}
    return pieces | dict.fromkeys(blob, "T") | {king: "K"}


def _trap(rng: random.Random, size: int) -> dict[int, str]:
    """The king on the edge, attackers beside him and perhaps in front."""
    turns, file = rng.randint(0, 3), rng.randint(min(2, size // 2), max(size - 3, size // 2))
    places = [(file + k, 0) for k in (-2, -1, 1, 2)] + [(file, 1), (file, 2)] * rng.randint(0, 1)
    places += [(file + rng.choice((-1, 1)), rank) for rank in (1, 2)] * rng.randint(0, 1)
    pieces = {_turned(f, r, size, turns): "t" for f, r in places if 0 <= f < size and r < size}
    return pieces | {_turned(file, 0, size, turns): "K"}


def _corner_seals(rng: random.Random, size: int) -> dict[int, str]:
    """Attackers across all four corners."""
    pieces: dict[int, str] = {}
    for turns in range(4):
        shape = rng.choice(
            (((0, 2), (1, 1), (2, 0)), ((0, 1), (0, 2), (1, 0), (2, 0)), ((0, 1), (1, 0), (1, 1)))
        )
        pieces |= {_turned(*place, size, turns): "t" for place in shape}
        if rng.random() < 0.2:
            pieces[_turned(0, 1, size, turns)] = "T"
    pieces |= dict.fromkeys(rng.sample(list(squares(size)), rng.randint(0, 3)), "t")
    middle = square(size // 2, size // 2)
    return pieces | {middle: "K"} if middle not in pieces else {}


def _seat(rng: random.Random, size: int) -> dict[int, str]:
    """The king in the middle or beside it, one man of his at his side, attackers at the others and before the man."""
    king = square(size // 2, size // 2) + rng.choice((0, 0, 1))
    step = rng.choice(DIRECTIONS)
    pieces = {king + way: "t" for way in (*DIRECTIONS, 2 * step) if on_board(king + way, size)}
    return pieces | {king: "K", king + step: "T"}


_WANTED: dict[Callable[[random.Random, int], dict[int, str]], dict[str, tuple[str, ...]]] = {
    _ring: {"encirclement": ("apart", "ring")},
    _fort: {"exit_fort": ("yes",), "opentafl": ("no", "no", "yes")},
    _row: {
        "shieldwall": ("men", "corner"),
        "shieldwall_closer": ("end", "any"),
        "material_draw": ("none", "none", "20 12"),
    },
    _box: {
        "king_on_edge": ("safe", "enclosed", "last"),
        "king_with_one": ("yes", "no"),
        "opentafl": ("no", "no", "yes"),
    },
    _seat: {"linnaean": ("yes",), "opentafl": ("no", "no", "yes")},
    _trap: {"sealed": ("org",)},
    _corner_seals: {"sealed": ("org",)},
}
_PATTERNS = tuple(_WANTED)


def _blob(rng: random.Random, size: int, start: int, number: int) -> set[int]:
    blob = {start}
    while len(blob) < number:
        blob.add(rng.choice(sorted(_around(size, blob))))
    return blob


def _around(size: int, blob: set[int]) -> set[int]:
    return {sq + step for sq in blob for step in DIRECTIONS if on_board(sq + step, size)} - blob


def _turned(file: int, rank: int, size: int, turns: int) -> int:
    for _ in range(turns):
        file, rank = rank, size - 1 - file
    return square(file, rank)


def _displace(rng: random.Random, size: int, pieces: dict[int, str]) -> tuple[int, int] | None:
    """A piece's square, and one in line with it from where it could have come."""
    found = []
    for sq in sorted(pieces):
        for step in DIRECTIONS:
            away = sq + step
            while on_board(away, size) and away not in pieces:
                found.append((sq, away))
                away += step
    return rng.choice(found) if found else None


def _between(start: int, end: int) -> list[int]:
    step = next(step for step in DIRECTIONS if (end - start) % step == 0 and 0 < (end - start) // step < 20)
    return list(range(start, end, step))


def _terrain(rng: random.Random, kind: str, size: int, free: set[int]) -> set[int]:
    low, last = (size - 1) // 2, size - 1
    middle = {square(file, rank) for file in {low, last - low} for rank in {low, last - low}}
    ends = {square(file, rank) for file in (0, last) for rank in (0, last)}
    roll = rng.random()
    if kind == "throne":
        if roll < 0.7:
            return middle & free
        return _pattern(rng, size, free, rng.randint(0, 2))
    if kind == "corners":
        if roll < 0.65:
            return ends & free
        if roll < 0.75 and size >= 9:
            fort = {square(file, rank) for file in (0, 1, last - 1, last) for rank in (0, 1, last - 1, last)}
            return fort & free
        return _pattern(rng, size, free, rng.randint(0, 2))
    return _pattern(rng, size, free, 0 if roll < 0.6 else rng.randint(1, 2 + size // 4))


def _pattern(rng: random.Random, size: int, free: set[int], seeds: int) -> set[int]:
    """Some squares, often with their images under quarter turns, some of them connected."""
    last = size - 1
    found: set[int] = set()
    file, rank = rng.randint(0, last), rng.randint(0, last)
    turned = rng.random() < 0.7
    for _ in range(seeds):
        places = {(file, rank), (rank, last - file), (last - file, last - rank), (last - rank, file)}
        found |= {square(*place) for place in (places if turned else {(file, rank)})}
        if rng.random() < 0.6:
            file, rank = min(last, file + rng.randint(0, 1)), min(last, rank + rng.randint(0, 1))
        else:
            file, rank = rng.randint(0, last), rng.randint(0, last)
    # Something must be left to stand on.
    return found & free if len(free - found) > size * size // 2 else set()


def _piece_set(rng: random.Random) -> str:
    if rng.random() < 0.6:
        return rng.choice(WORDS)
    return "".join(rng.sample(PIECES, rng.randint(1, 6)))


def _zone(rng: random.Random, size: int) -> str:
    where = rng.sample(list(squares(size)), rng.randint(1, 4))
    return f"{_text(set(where))}:{_piece_set(rng).replace('none', 'king')}:{rng.choice(('pass', 'stop', 'both'))}"


def _text(chosen: set[int]) -> str:
    return ",".join(name(sq) for sq in sorted(chosen)) or "none"


def _on_edge(sq: int, size: int) -> bool:
    return sq % 21 in (1, size) or sq // 21 in (1, size)


def _rows_with_king(size: int) -> list[str]:
    return [f"K{size - 1}", *[str(size)] * (size - 1)]
