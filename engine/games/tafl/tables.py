"""Rules as the little tables that kernels read: the rule part of the state record."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ...mixing import GOLDEN_GAMMA, mixed
from ...squares import CELLS, DIRECTIONS, MAX_SIZE, file_of, rank_of, square, squares
from .codes import (
    ATTACKER_CAMP,
    ATTACKER_CAMP_SOFT,
    CODED,
    CORNER,
    DEFENDER_CAMP,
    DEFENDER_CAMP_SOFT,
    DEFENDING,
    JUMP_CAPTURE,
    KING,
    LETTERS,
    NUMBERS,
    PIECE,
    PIECE_CODES,
    SEALED_CORNERS,
    SEALED_KING,
    SEALED_OFF,
    TERRAIN,
    TERRAINS,
    THRONE,
    WALL,
    ZONED,
    code,
)
from .rules import Rules
from .state import CORE, TAFL

_FAR = 32
"""A reach no board can use up."""


def _bits(letters: str) -> int:
    return sum(1 << PIECE_CODES[letter] for letter in letters)


def _zobrist() -> tuple[Any, Any, int]:
    """Fixed pseudo-random keys: splitmix64 from 0, the same in every build, so that signatures repeat."""
    count = 17 * CELLS + 1
    with np.errstate(over="ignore"):
        z = mixed(np.arange(1, count + 1, dtype=np.uint64) * GOLDEN_GAMMA)
    return z[: 16 * CELLS].reshape(16, CELLS), z[16 * CELLS : 17 * CELLS], int(z[-1])


ZOBRIST, MUST_ZOBRIST, SIDE_ZOBRIST = _zobrist()


def terrain_cells(rules: Rules) -> Any:
    """The board without pieces: `CELLS` cells of terrain and zone bits, walls around."""
    cells = np.full(CELLS, WALL, dtype=np.uint16)
    for sq in squares(rules.size):
        cells[sq] = 0
    soft = set(rules.camp_soft)
    for terrain, soft_terrain, named in (
        (THRONE, THRONE, rules.throne),
        (CORNER, CORNER, rules.corners),
        (ATTACKER_CAMP, ATTACKER_CAMP_SOFT, rules.attacker_camps),
        (DEFENDER_CAMP, DEFENDER_CAMP_SOFT, rules.defender_camps),
    ):
        for sq in named:
            cells[sq] = (soft_terrain if sq in soft else terrain) << TERRAIN
    for zone in rules.zones:
        for sq in zone.squares:
            cells[sq] |= ZONED
    return cells


def camp_groups(rules: Rules) -> dict[int, int]:
    """Camp square -> number of its region: one per orthogonally connected camp, or per kind of camp."""
    regions: dict[int, int] = {}
    number = 3
    for named in (rules.attacker_camps, rules.defender_camps):
        left = set(named)
        while left:
            group = {left.pop()} if rules.camp_range == "own" else set(left)
            frontier = list(group)
            while frontier:
                sq = frontier.pop()
                new = {sq + d for d in DIRECTIONS} & left
                left -= new
                group |= new
                frontier += new
            left -= group
            regions.update((sq, number) for sq in group)
            number += 1
    return regions


def _hostile(rules: Rules) -> Any:
    """Cell -> bits of the pieces that this cell helps to capture."""
    hostile = np.zeros(256, dtype=np.uint16)
    attackers, defenders = _bits("tcnmg"), _bits("TCNMGK")
    by_terrain = {
        CORNER: (_bits(rules.corner_hostile),) * 2,
        THRONE: (_bits(rules.throne_hostile_empty), _bits(rules.throne_hostile_held)),
        ATTACKER_CAMP: (_bits(rules.attacker_camp_hostile),) * 2,
        DEFENDER_CAMP: (_bits(rules.defender_camp_hostile),) * 2,
        ATTACKER_CAMP_SOFT: (_bits(rules.attacker_camp_hostile) & ~attackers,) * 2,
        DEFENDER_CAMP_SOFT: (_bits(rules.defender_camp_hostile) & ~defenders,) * 2,
    }
    for cell in range(256):
        piece, terrain = cell & PIECE, (cell >> TERRAIN) & TERRAINS
        if piece == WALL:
            hostile[cell] = _bits(rules.edge_hostile)
            continue
        empty, held = by_terrain.get(terrain, (0, 0))
        mask = held if piece else empty
        if _stands_as_anvil(rules, piece):
            mask |= defenders if piece < DEFENDING else attackers
        hostile[cell] = mask
    return hostile


def _stands_as_anvil(rules: Rules, piece: int) -> bool:
    if piece == KING:
        return rules.king_armed in ("yes", "standing")
    return LETTERS[piece] in "tcnmTCNM"


def _moving(rules: Rules, state: Any) -> None:
    """Where each piece may stop, pass and enter."""
    regions = camp_groups(rules)
    everyone = _bits("tcnmgTCNMGK")
    for terrain, region, named in (
        ("throne", 1, rules.throne),
        ("corner", 2, rules.corners),
        ("attacker_camp", 0, rules.attacker_camps),
        ("defender_camp", 0, rules.defender_camps),
    ):
        for sq in named:
            for table, verb in (("stop", "stop"), ("pass_", "pass"), ("enter", "enter")):
                state[table][sq] = _bits(getattr(rules, f"{terrain}_{verb}"))
            state["region"][sq] = region or regions[sq]
    for zone in rules.zones:
        mask = everyone & ~_bits(zone.pieces)
        for sq in zone.squares:
            if zone.mode != "pass":
                state["stop"][sq] &= mask
            if zone.mode != "stop":
                state["pass_"][sq] &= mask
    limits = dict(rules.speed)
    for letter, piece in PIECE_CODES.items():
        state["reach"][piece] = limits.get(letter, _FAR)
    for letters, switch in (
        ("K", rules.king_jump),
        ("nN", rules.knight_jump),
        ("cC", rules.commander_jump),
        ("mM", rules.mercenary_jump),
        ("gG", "none" if rules.opentafl else rules.guard_jump),
    ):
        for letter in letters:
            state["jump"][PIECE_CODES[letter]] = code("king_jump", switch)
    for camps, side in ((rules.attacker_camps, 1), (rules.defender_camps, 2)):
        for sq in camps:
            state["jump_square"][sq] = side
    for sq in rules.throne + rules.corners:
        state["jump_square"][sq] = 3


def _four(size: int) -> tuple[int, ...]:
    """The four corner squares, in the order of square lists."""
    last = size - 1
    return tuple(square(file, rank) for file in (0, last) for rank in (0, last))


def _distance(one: int, other: int) -> int:
    return abs(file_of(one) - file_of(other)) + abs(rank_of(one) - rank_of(other))


def goal_squares(rules: Rules) -> tuple[int, ...]:
    """The squares on which the king escapes."""
    if rules.escape == "corner":
        return rules.corners
    last = rules.size - 1
    return tuple(
        sq
        for sq in squares(rules.size)
        if rules.escape == "edge" and (file_of(sq) in (0, last) or rank_of(sq) in (0, last))
    )


def goal_distance(rules: Rules, sq: int) -> int:
    """Manhattan distance from a square to the nearest goal square; the largest board's size where there is none."""
    return min((_distance(sq, goal) for goal in goal_squares(rules)), default=MAX_SIZE)


def _goals(rules: Rules, state: Any) -> None:
    """Where the king wins, where he can be shut out, and how many sides it takes to capture him there."""
    last = rules.size - 1
    corners = rules.corners if rules.escape == "corner" else ()
    guards: list[int] = []
    for sq in squares(rules.size):
        state["edge"][sq] = file_of(sq) in (0, last) or rank_of(sq) in (0, last)
        state["goal_distance"][sq] = goal_distance(rules, sq)
        if sq not in corners and any(_distance(sq, corner) == 2 for corner in corners):
            guards.append(sq)
        on_throne = sq in rules.throne
        beside = any(sq + d in rules.throne for d in DIRECTIONS)
        state["king_sides"][sq] = (
            rules.king_sides_on_throne
            if on_throne
            else rules.king_sides_beside_throne
            if beside
            else rules.king_sides
        )
    for sq in goal_squares(rules):
        state["goal"][sq] = 1
    guards = guards[: state["guard"].size]
    state["guard"][: len(guards)] = guards
    state["guards"] = len(guards)


def _linnaean_square(rules: Rules) -> int:
    """The one square of the king for a Linnaean capture in OpenTafl, off the board where it has no middle; 0: none."""
    if not rules.opentafl:
        return 0
    return square(rules.size // 2, rules.size // 2) if rules.size % 2 else CELLS - 1


def _sealed(rules: Rules) -> int:
    if rules.sealed == "off":
        return SEALED_OFF
    return SEALED_CORNERS if rules.corners == _four(rules.size) else SEALED_KING


@lru_cache(maxsize=256)
def template(rules: Rules, letters: str) -> bytes:
    """The rule part of a state record for games in which only these piece letters can appear.

    Flags of uncommon rules are set only where a piece can use them, so that other games pay nothing for them.
    """
    record = np.zeros(1, TAFL)
    state = record[0]
    everyone = _bits("tcnmgTCNMGK")
    for table in ("stop", "pass_", "enter"):
        state[table][:] = everyone
    state["hostile"] = _hostile(rules)
    _moving(rules, state)
    _goals(rules, state)
    state["zobrist"] = ZOBRIST
    state["must_zobrist"] = MUST_ZOBRIST
    king = 1 << KING
    men = _bits("tcnmTCNM")
    state["active_captors"] = men | (king if rules.king_armed in ("yes", "moving") else 0)
    state["passive_captors"] = men | (king if rules.king_armed in ("yes", "standing") else 0)
    state["victims"] = (_bits("TCNM"), _bits("tcnm"))
    state["jumpable"] = (_bits("TMG"), _bits("tmg")) if rules.opentafl else (_bits("TM"), _bits("tm"))
    present = {PIECE_CODES[letter] for letter in letters}
    jumps = max((int(state["jump"][code]) for code in present), default=0)
    values: dict[str, Any] = {
        **{name: getattr(rules, name) for name in NUMBERS},
        **{name: code(name, getattr(rules, name)) for name in CODED},
        "side_zobrist": SIDE_ZOBRIST,
        "width": rules.size,
        "turncoats": "m" in letters or "M" in letters,
        "capture_run": rules.capture_run == "line",
        "shieldwall_any": rules.shieldwall_closer == "any",
        "linnaean_square": _linnaean_square(rules),
        "commander_pair": rules.commander_pair and ("c" in letters or "n" in letters),
        "jumpers": jumps > 0,
        "limited": any(state["reach"][code] < _FAR for code in present),
        "uncommon": rules.capture_run == "line" or rules.linnaean or jumps == JUMP_CAPTURE,
        "sealed": _sealed(rules),
        "repetition_board": rules.repetition_compare == "board",
        "repetition_stride": 1 if rules.berserk != "off" or rules.repetition_compare == "board" else 2,
        "move_limit": rules.move_limit * (2 if rules.move_limit_unit == "each" else 1),
        "material_attackers": rules.material_draw[0] if rules.material_draw else -1,
        "material_defenders": rules.material_draw[1] if rules.material_draw else -1,
    }
    for name, value in values.items():
        state[name] = value
    state["board"] = terrain_cells(rules)
    return record.tobytes()[: CORE.stop]
