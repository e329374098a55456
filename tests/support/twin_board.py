"""The slow twin's board: every question that one board full of pieces answers by itself, without a history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hnefi.engine.games.tafl.rules import Rules
from hnefi.engine.sides import Outcome, Reason, Side
from hnefi.engine.squares import (
    DIRECTIONS,
    square,
    squares,
)

Pieces = dict[int, str]

ATTACKER_LETTERS = "tcnmg"
GUARDS = "gG"
JUMP_SWITCH = {
    "k": "king_jump",
    "n": "knight_jump",
    "c": "commander_jump",
    "m": "mercenary_jump",
    "g": "guard_jump",
}
JUMPABLE = "tTmM"
JUMPABLE_IN_OPENTAFL = "tTmMgG"


def owner(letter: str) -> Side:
    return Side.ATTACKERS if letter in ATTACKER_LETTERS else Side.DEFENDERS


def enemies(one: str, other: str) -> bool:
    return owner(one) != owner(other)


class Ground:
    """The board without pieces, and every question that one board full of pieces can answer by itself."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.size = rules.size
        self.board = frozenset(squares(rules.size))
        self._neighbours = {
            sq: [sq + step for step in DIRECTIONS if sq + step in self.board] for sq in self.board
        }
        self.edge = frozenset(sq for sq in self.board if len(self._neighbours[sq]) < 4)
        self.terrain: dict[int, str] = {}
        for kind, where in (
            ("throne", rules.throne),
            ("corner", rules.corners),
            ("attacker_camp", rules.attacker_camps),
            ("defender_camp", rules.defender_camps),
        ):
            for sq in where:
                self.terrain[sq] = kind
        self.camp: dict[int, frozenset[int]] = {}
        for squares_of_kind in (frozenset(rules.attacker_camps), frozenset(rules.defender_camps)):
            for sq in squares_of_kind:
                self.camp[sq] = self.flood([sq], squares_of_kind.__contains__)
        self.speed = dict(rules.speed)
        last = rules.size - 1
        middle = square(rules.size // 2, rules.size // 2)
        self.middle = frozenset({middle} if rules.size % 2 else ())
        self.end_squares = frozenset(square(file, rank) for file in (0, last) for rank in (0, last))
        # An edge line: its squares from one end to the other, and the direction that leads into the board.
        self.edge_lines = (
            ([square(file, 0) for file in range(rules.size)], DIRECTIONS[0]),
            ([square(file, last) for file in range(rules.size)], DIRECTIONS[2]),
            ([square(0, rank) for rank in range(rules.size)], DIRECTIONS[1]),
            ([square(last, rank) for rank in range(rules.size)], DIRECTIONS[3]),
        )

    # -- geometry ---------------------------------------------------------------------------------------------

    def neighbours(self, sq: int) -> list[int]:
        return self._neighbours[sq]

    def flood(self, starts: Iterable[int], wanted: Callable[[int], bool]) -> frozenset[int]:
        """The starts and every square connected with them through squares that are `wanted`."""
        found = set(starts)
        todo = list(found)
        while todo:
            for sq in self.neighbours(todo.pop()):
                if sq not in found and wanted(sq):
                    found.add(sq)
                    todo.append(sq)
        return frozenset(found)

    def is_throne(self, sq: int) -> bool:
        return self.terrain.get(sq) == "throne"

    def is_corner(self, sq: int) -> bool:
        return self.terrain.get(sq) == "corner"

    # -- movement ---------------------------------------------------------------------------------------------

    def _may_enter(self, letter: str, start: int, sq: int) -> bool:
        kind = self.terrain[sq]
        if letter in getattr(self.rules, f"{kind}_enter"):
            return True
        if kind.endswith("_camp") and self.rules.camp_range == "own":
            return start in self.camp[sq]
        return self.terrain.get(start) == kind

    def _zone_forbids(self, letter: str, sq: int, what: str) -> bool:
        return any(
            sq in zone.squares and letter in zone.pieces and zone.mode in (what, "both")
            for zone in self.rules.zones
        )

    def _may(self, what: str, letter: str, start: int, sq: int) -> bool:
        """May `letter`, coming from `start`, `what` (stop or pass) on `sq`?"""
        if self._zone_forbids(letter, sq, what):
            return False
        kind = self.terrain.get(sq)
        if kind is None:
            return True
        return letter in getattr(self.rules, f"{kind}_{what}") and self._may_enter(letter, start, sq)

    def _slides(self, pieces: Pieces, start: int) -> Iterator[int]:
        letter = pieces[start]
        limit = self.speed.get(letter, 0)
        for step in DIRECTIONS:
            sq, distance = start + step, 1
            while sq in self.board and sq not in pieces and (limit == 0 or distance <= limit):
                if self._may("stop", letter, start, sq):
                    yield sq
                if not self._may("pass", letter, start, sq):
                    break
                sq, distance = sq + step, distance + 1

    def jump_mode(self, letter: str) -> str:
        switch = JUMP_SWITCH.get(letter.lower())
        if switch is None or (self.rules.opentafl and letter in GUARDS):
            return "none"
        mode: str = getattr(self.rules, switch)
        return mode

    def _is_restricted(self, letter: str, sq: int) -> bool:
        own_camp = "attacker_camp" if owner(letter) is Side.ATTACKERS else "defender_camp"
        return self.terrain.get(sq) in ("throne", "corner", own_camp)

    def _jumps(self, pieces: Pieces, start: int) -> Iterator[int]:
        letter = pieces[start]
        mode = self.jump_mode(letter)
        if mode == "none":
            return
        jumpable = JUMPABLE_IN_OPENTAFL if self.rules.opentafl else JUMPABLE
        for step in DIRECTIONS:
            over, sq = start + step, start + 2 * step
            jumped = pieces.get(over)
            if jumped is None or jumped not in jumpable or not enemies(letter, jumped):
                continue
            if sq not in self.board or sq in pieces or not self._may("stop", letter, start, sq):
                continue
            if mode == "restricted" and not (
                self._is_restricted(letter, start) or self._is_restricted(letter, sq)
            ):
                continue
            yield sq

    def targets(self, pieces: Pieces, start: int) -> list[int]:
        """Where the piece on `start` could go if only this board decided: slides and jumps."""
        return [*self._slides(pieces, start), *self._jumps(pieces, start)]

    # -- what helps to capture --------------------------------------------------------------------------------

    def _can_be_anvil(self, letter: str) -> bool:
        return letter not in GUARDS and (letter != "K" or self.rules.king_armed in ("yes", "standing"))

    def _captures_by_moving(self, letter: str) -> bool:
        return letter not in GUARDS and (letter != "K" or self.rules.king_armed in ("yes", "moving"))

    def terrain_hostile(self, pieces: Pieces, sq: int, victim: str) -> bool:
        """Does the ground of `sq`, held or empty as it is now, help to take `victim`?"""
        kind = self.terrain.get(sq)
        if kind is None:
            return False
        if kind == "throne":
            return victim in (
                self.rules.throne_hostile_held if sq in pieces else self.rules.throne_hostile_empty
            )
        if kind == "corner":
            return victim in self.rules.corner_hostile
        own_side = Side.ATTACKERS if kind == "attacker_camp" else Side.DEFENDERS
        if sq in self.rules.camp_soft and owner(victim) is own_side:
            return False
        return victim in getattr(self.rules, f"{kind}_hostile")

    def hostile(self, pieces: Pieces, sq: int, victim: str) -> bool:
        if sq not in self.board:
            return victim in self.rules.edge_hostile
        there = pieces.get(sq)
        if there is not None and enemies(there, victim) and self._can_be_anvil(there):
            return True
        return self.terrain_hostile(pieces, sq, victim)

    # -- captures: all of these look at the board right after the piece was put down, nothing removed yet --------

    def _custodial(self, pieces: Pieces, mover: int) -> set[int]:
        """Captured squares, the king's among them only where whole lines are captured."""
        letter = pieces[mover]
        if not self._captures_by_moving(letter):
            return set()
        captured: set[int] = set()
        for step in DIRECTIONS:
            line: list[int] = []
            sq = mover + step
            while sq in pieces and enemies(letter, pieces[sq]) and self._falls_in_line(pieces, sq):
                line.append(sq)
                sq += step
                if self.rules.capture_run == "one":
                    break
            if all(self.hostile(pieces, sq, pieces[member]) for member in line):
                captured.update(line)
        return captured

    def _falls_in_line(self, pieces: Pieces, sq: int) -> bool:
        if pieces[sq] == "K":
            return self.rules.capture_run == "line" and not self.is_throne(sq)
        return pieces[sq] not in GUARDS

    def _linnaean(self, pieces: Pieces, mover: int) -> set[int]:
        letter = pieces[mover]
        if not self.rules.linnaean or owner(letter) is not Side.ATTACKERS or letter in GUARDS:
            return set()
        captured = set()
        for step in DIRECTIONS:
            man, king = mover + step, mover + 2 * step
            seated = king in self.middle if self.rules.opentafl else self.is_throne(king)
            if pieces.get(man) not in ("T", "C", "N", "M") or pieces.get(king) != "K" or not seated:
                continue
            others = [king + way for way in DIRECTIONS if king + way != man]
            if all(pieces.get(sq) in ("t", "c", "n", "m") for sq in others):
                captured.add(man)
        return captured

    def _holds_wall(self, pieces: Pieces, sq: int, mover: int) -> bool:
        """Can the piece on `sq` be an end or a front piece of its side's wall?"""
        if pieces[sq] in GUARDS:
            return False
        if sq == mover:
            return self._captures_by_moving(pieces[sq])
        return self._can_be_anvil(pieces[sq])

    def _shieldwall(self, pieces: Pieces, mover: int) -> set[int]:
        if self.rules.shieldwall == "off":
            return set()
        side = owner(pieces[mover])
        captured: set[int] = set()

        def ours(sq: int) -> bool:
            return sq in pieces and owner(pieces[sq]) is side and self._holds_wall(pieces, sq, mover)

        def faced(sq: int, inwards: int) -> bool:
            return sq in pieces and owner(pieces[sq]) is not side and ours(sq + inwards)

        for line, inwards in self.edge_lines:
            fits = [faced(sq, inwards) for sq in line]
            for first in range(1, len(line) - 1):
                for last in range(first + 1, len(line) - 1):
                    row = line[first : last + 1]
                    if not all(fits[first : last + 1]):
                        continue
                    ends = [line[first - 1], line[last + 1]]
                    held = [sq for sq in ends if ours(sq)]
                    empty_corners = [sq for sq in ends if self.is_corner(sq) and sq not in pieces]
                    closed = len(held) == 2 or (
                        self.rules.shieldwall == "corner" and len(held) == 1 and len(empty_corners) == 1
                    )
                    if closed and (self.rules.shieldwall_closer == "any" or mover in held):
                        captured.update(sq for sq in row if pieces[sq] != "K" and pieces[sq] not in GUARDS)
        return captured

    def _jumped(self, before: Pieces, start: int, mover: int) -> set[int]:
        for step in DIRECTIONS:
            if (
                mover == start + 2 * step
                and start + step in before
                and self.jump_mode(before[start]) == "capture"
            ):
                return {start + step}
        return set()

    # -- the king ---------------------------------------------------------------------------------------------

    def king_square(self, pieces: Pieces) -> int | None:
        return next((sq for sq, letter in pieces.items() if letter == "K"), None)

    def _king_sides(self, king: int) -> int:
        if self.is_throne(king):
            return self.rules.king_sides_on_throne
        if any(self.is_throne(sq) for sq in self.neighbours(king)):
            return self.rules.king_sides_beside_throne
        return self.rules.king_sides

    def king_taken(self, pieces: Pieces, mover: int) -> bool:
        """Has the attackers' man that just came to `mover` taken the king? `pieces`: captured men are gone."""
        letter = pieces[mover]
        king = self.king_square(pieces)
        if king is None or owner(letter) is not Side.ATTACKERS or letter in GUARDS:
            return False
        sides = self._king_sides(king)
        if sides == 0:
            return False
        if king in self.neighbours(mover):
            far_side = king + (king - mover)
            if sides == 2 and self.hostile(pieces, far_side, "K"):
                return True
            if sides == 4 and all(self._king_side_closed(pieces, king + step) for step in DIRECTIONS):
                return True
            if sides == 4 and self._commander_pair(pieces, king, letter, far_side):
                return True
        return self.rules.king_with_one and self._taken_with_one(pieces, king, mover)

    def _king_side_closed(self, pieces: Pieces, sq: int) -> bool:
        if sq in self.board:
            return self.hostile(pieces, sq, "K")
        if self.rules.king_on_edge == "last":
            return not any(owner(letter) is Side.DEFENDERS and letter != "K" for letter in pieces.values())
        return self.rules.king_on_edge == "enclosed"

    def _commander_pair(self, pieces: Pieces, king: int, letter: str, far_side: int) -> bool:
        if not self.rules.commander_pair or letter not in ("c", "n") or self.is_throne(king):
            return False
        return pieces.get(far_side) in ("c", "n") or (
            self.is_corner(far_side) and "K" in self.rules.corner_hostile
        )

    def _taken_with_one(self, pieces: Pieces, king: int, mover: int) -> bool:
        def defender(sq: int) -> bool:
            return sq in pieces and owner(pieces[sq]) is Side.DEFENDERS

        pair = self.flood([king], defender)
        if len(pair) != 2 or not any(mover in self.neighbours(sq) for sq in pair):
            return False
        for member in pair:
            for step in DIRECTIONS:
                around = member + step
                if around in pair:
                    continue
                if around not in self.board:
                    if self.rules.king_on_edge != "enclosed":
                        return False
                elif not self.hostile(pieces, around, pieces[member]):
                    return False
        return True

    def on_goal(self, king: int) -> bool:
        if self.rules.escape == "corner":
            return self.is_corner(king)
        return self.rules.escape == "edge" and king in self.edge

    # -- forts, rings, seals -------------------------------------------------------------------------------------

    def exit_fort(self, pieces: Pieces) -> bool:
        king = self.king_square(pieces)
        if not self.rules.exit_fort or king is None:
            return False
        if self.rules.opentafl:
            return self._opentafl_fort(pieces, king)
        if king not in self.edge or not self.targets(pieces, king):
            return False
        inside = self.flood([king], lambda sq: sq not in pieces)
        rim = {sq for inner in inside for sq in self.neighbours(inner)} - inside
        if any(owner(pieces[sq]) is Side.ATTACKERS for sq in rim):
            return False
        wall = {sq for sq, letter in pieces.items() if owner(letter) is Side.DEFENDERS and letter != "K"}

        def is_open(sq: int, man: str) -> bool:
            if sq not in self.board:
                return False
            return (sq not in inside and sq not in wall) or (
                sq not in pieces and self.terrain_hostile(pieces, sq, man)
            )

        def could_be_captured(sq: int) -> bool:
            man = pieces[sq]
            return man not in GUARDS and any(
                is_open(sq + step, man) and is_open(sq - step, man) for step in DIRECTIONS[:2]
            )

        while weak := [sq for sq in wall if could_be_captured(sq)]:
            wall.difference_update(weak)
        return all(sq in wall for sq in rim)

    def _opentafl_fort(self, pieces: Pieces, king: int) -> bool:
        inside = self.flood([king], lambda sq: sq not in pieces)
        rim = {sq for inner in inside for sq in self.neighbours(inner)} - inside
        if not inside & self.edge or not self.targets(pieces, king):
            return False
        if any(owner(pieces[sq]) is Side.ATTACKERS for sq in rim):
            return False

        def loose(sq: int) -> int:
            return sum(
                near not in inside and (near not in pieces or owner(pieces[near]) is Side.ATTACKERS)
                for near in self.neighbours(sq)
            )

        return all(loose(sq) < 3 for sq in rim)

    def hemmed_in(self, pieces: Pieces) -> bool:
        """Has no piece of the defenders an empty neighbour square?"""
        return not any(
            near not in pieces
            for sq, letter in pieces.items()
            if owner(letter) is Side.DEFENDERS
            for near in self.neighbours(sq)
        )

    def surrounded(self, pieces: Pieces) -> bool:
        king = self.king_square(pieces)
        defenders = {sq for sq, letter in pieces.items() if owner(letter) is Side.DEFENDERS}
        if self.rules.encirclement == "off" or king is None:
            return False

        def free(sq: int) -> bool:
            return sq not in pieces or sq in defenders

        if self.rules.encirclement == "apart":
            return not self.flood(defenders, free) & self.edge
        region = self.flood([king], free)
        return not region & self.edge and defenders <= region

    def sealed(self, pieces: Pieces) -> bool:
        if self.rules.sealed == "off" or self.king_square(pieces) is None:
            return False
        attackers = {sq for sq, letter in pieces.items() if owner(letter) is Side.ATTACKERS}
        men = len(pieces) - len(attackers) - 1
        return self._king_trapped(pieces, attackers, men) or self._corners_sealed(pieces, attackers, men)

    def _king_trapped(self, pieces: Pieces, attackers: set[int], men: int) -> bool:
        king = self.king_square(pieces)
        if king is None or any(self.is_corner(sq) for sq in self.neighbours(king)):
            return False
        for line, inwards in self.edge_lines:
            if king not in line:
                continue
            along = DIRECTIONS[1] if inwards in (DIRECTIONS[0], DIRECTIONS[2]) else DIRECTIONS[0]
            beside = [king - 2 * along, king - along, king + along, king + 2 * along]
            if not all(sq in self.board and (sq in attackers or self.is_corner(sq)) for sq in beside):
                continue
            count = len(attackers) + sum(self.is_corner(sq) for sq in beside)
            if count > 5 and not {king + inwards, king + 2 * inwards} <= attackers:
                continue
            if men < 2:
                return True
            second_rows = [{king + side + inwards, king + side + 2 * inwards} for side in (along, -along)]
            if count > 7 and any(row <= attackers for row in second_rows):
                return True
        return False

    def _corners_sealed(self, pieces: Pieces, attackers: set[int], men: int) -> bool:
        if frozenset(self.rules.corners) != self.end_squares:
            return False
        held: set[int] = set()
        for corner in self.end_squares:
            part = self._corner_seal(pieces, attackers, corner)
            if part is None:
                return False
            held |= part

        def side_test(most: int) -> bool:
            for line, _ in self.edge_lines:
                loose = [place for place, sq in enumerate(line) if sq not in held and sq not in attackers]
                if len(loose) > most or (loose and loose[-1] - loose[0] != len(loose) - 1):
                    return False
            return True

        return (men < 4 and len(attackers) >= 13) or (men < 6 and side_test(3)) or side_test(2)

    def _corner_seal(self, pieces: Pieces, attackers: set[int], corner: int) -> set[int] | None:
        """The squares held by the seal of this corner; None if it is not sealed."""
        two_by_two = {sq + k * (sq - corner) for sq in self.neighbours(corner) for k in (0, 1)}
        if two_by_two <= attackers:
            return two_by_two | {corner}
        doors = self.neighbours(corner)
        starts = [sq for sq in doors if sq not in pieces or sq in attackers]
        region = self.flood(starts, lambda sq: sq not in pieces)
        for sq in region:
            for near in self.neighbours(sq):
                if near in pieces and near not in attackers and near not in doors:
                    return None
        return {corner} | (region & self.edge) | set(starts)

    # -- one ply on one board -----------------------------------------------------------------------------------

    def put(self, pieces: Pieces, start: int, mover: int) -> tuple[Pieces, frozenset[int], bool]:
        """The board after the ply, the squares of the men taken by it, and whether the king is taken."""
        board = dict(pieces)
        board[mover] = board.pop(start)
        captured = (
            self._jumped(pieces, start, mover)
            | self._custodial(board, mover)
            | self._linnaean(board, mover)
            | self._shieldwall(board, mover)
        )
        king_in_line = any(board[sq] == "K" for sq in captured)
        men = frozenset(sq for sq in captured if board[sq] != "K")
        for sq in men:
            letter = board.pop(sq)
            if letter in "mM":
                board[sq] = letter.swapcase()
        king_gone = king_in_line or self.king_taken(board, mover)
        if king_gone:
            board = {sq: letter for sq, letter in board.items() if letter != "K"}
        return board, men, king_gone

    def ends_on_board(self, pieces: Pieces, mover: int | None) -> Outcome | None:
        """The ends that are tested after every ply, also inside a turn of several plies, in their order.

        `mover` is the square where the ply ended; None for a position set up by hand, where the king on a goal
        square is out whoever moved, and a ring counts whoever closed it.
        """
        king = self.king_square(pieces)
        by_attackers = mover is None or owner(pieces[mover]) is Side.ATTACKERS
        king_captured = (king is None, Outcome(Side.ATTACKERS, Reason.KING_CAPTURED))
        king_escaped = (
            king is not None and mover in (None, king) and self.on_goal(king),
            Outcome(Side.DEFENDERS, Reason.KING_ESCAPED),
        )
        exit_fort = (self.exit_fort(pieces), Outcome(Side.DEFENDERS, Reason.EXIT_FORT))
        ring = self.surrounded(pieces)
        all_captured = (
            self.rules.capture_all and not any(owner(letter) is Side.ATTACKERS for letter in pieces.values()),
            Outcome(Side.DEFENDERS, Reason.ALL_CAPTURED),
        )
        sealed = (self.sealed(pieces), Outcome(Side.ATTACKERS, Reason.SEALED))
        if self.rules.opentafl:
            hemmed_in = (self.hemmed_in(pieces), Outcome(Side.ATTACKERS, Reason.NO_LEGAL_MOVE))
            surrounded = (ring, Outcome(Side.ATTACKERS, Reason.SURROUNDED))
            tests = [all_captured, king_escaped, king_captured, hemmed_in, exit_fort, surrounded, sealed]
        else:
            surrounded = (ring and by_attackers, Outcome(Side.ATTACKERS, Reason.SURROUNDED))
            tests = [king_captured, king_escaped, exit_fort, surrounded, all_captured, sealed]
        return next((outcome for holds, outcome in tests if holds), None)
