"""The slow twin: a second, independent reading of the rules of play.

It exists to be compared with the kernels. Everything is a dictionary or a set, every rule is one function that
reads like its sentence, nothing is cached but the geometry of the board, and nothing of the engine is used but
the words for sides, squares, rules and set-up positions. It plays every switch, `opentafl` included.

    twin = Twin(variant)                # the start position
    twin = Twin(rules, setup)           # a position set up by hand: no history
    twin = Twin(variant, setup)         # the same; captured men are counted against the variant's start
    twin = twin.play(move)              # the twin after a ply; IllegalPly if the rules do not allow it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from twin_board import Ground, Pieces, owner

from hnefi.engine.games.tafl.fen import Setup
from hnefi.engine.games.tafl.rules import Rules
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.sides import Outcome, Reason, Side
from hnefi.engine.squares import (
    move,
    move_name,
    move_sort_key,
    name,
    origin,
    square,
    target,
)

Key = tuple[frozenset[tuple[int, str]], Side | None]


class IllegalPly(ValueError):
    """The rules do not allow this ply here."""


@dataclass(frozen=True)
class _State:
    pieces: Pieces
    side: Side
    quiet: int
    move_number: int
    plies: int
    """Plies of the whole game, those before a set-up position included."""
    must_go_on: int | None
    turn_captured: bool
    """Did the running turn take a man, or the one just completed?"""
    taken: tuple[int, int]
    history: tuple[Key, ...]
    """Every counted position: the start if it counts, then the position after each completed turn."""
    arrangements: tuple[frozenset[tuple[int, str]], ...]
    """How the defenders' own pieces stood after each of their turns since the last capture."""
    last_captures: frozenset[int]
    outcome: Outcome | None = None


class Twin:
    """A position with its history, as the rules see it. Never changes; `play` gives the next one."""

    def __init__(self, source: Variant | Rules, setup: Setup | None = None) -> None:
        rules = source if isinstance(source, Rules) else source.rules
        if setup is None:
            if isinstance(source, Rules):
                raise TypeError("Twin(rules) needs the pieces too: Twin(rules, setup)")
            setup = source.start
        ground = Ground(rules)
        pieces = dict(setup.pieces)
        first = Side.of(rules.first)
        side = first if setup.side is None else setup.side
        taken = setup.caps
        if taken is None:
            start = pieces if isinstance(source, Rules) else dict(source.start.pieces)
            taken = (
                max(0, _count(start, Side.DEFENDERS) - _count(pieces, Side.DEFENDERS)),
                max(0, _count(start, Side.ATTACKERS) - _count(pieces, Side.ATTACKERS)),
            )
        state = _State(
            pieces=pieces,
            side=side,
            quiet=setup.quiet,
            move_number=setup.move_number,
            plies=2 * (setup.move_number - 1) + (side is not first),
            must_go_on=setup.berserk,
            turn_captured=setup.berserk is not None,
            taken=taken,
            history=(),
            arrangements=(),
            last_captures=frozenset(),
        )
        if rules.repetition_start and state.must_go_on is None:
            state = replace(state, history=(_key(rules, state),))
        self._ground = ground
        self._first = first
        self._state = state
        self._state = replace(state, outcome=self._setup_outcome())

    @classmethod
    def _with(cls, parent: Twin, state: _State) -> Twin:
        twin = cls.__new__(cls)
        twin._ground, twin._first, twin._state = parent._ground, parent._first, state
        return twin

    # -- what can be asked --------------------------------------------------------------------------------------

    @property
    def rules(self) -> Rules:
        return self._ground.rules

    @property
    def pieces(self) -> Pieces:
        """Letters by square. A captured king is gone from the board."""
        return dict(self._state.pieces)

    @property
    def side(self) -> Side:
        """To move; on a finished position the side that would be to move next."""
        return self._state.side

    @property
    def outcome(self) -> Outcome | None:
        return self._state.outcome

    @property
    def must_go_on(self) -> int | None:
        """The square of the piece that has to continue its turn."""
        return self._state.must_go_on

    @property
    def quiet(self) -> int:
        return self._state.quiet

    @property
    def move_number(self) -> int:
        return self._state.move_number

    @property
    def taken(self) -> tuple[int, int]:
        """Men taken by attackers and by defenders; a mercenary that changed sides was taken."""
        return self._state.taken

    @property
    def last_captures(self) -> frozenset[int]:
        return self._state.last_captures

    @property
    def repetitions(self) -> int:
        """How often this position has been counted so far, this time included."""
        return self._state.history.count(_key(self.rules, self._state))

    @property
    def fen_fields(self) -> tuple[str, str, int, int, str | None]:
        """Rows from the top rank down, side letter, quiet plies, move number, square that must go on."""
        rows = []
        for rank in reversed(range(self.rules.size)):
            row, empty = "", 0
            for file in range(self.rules.size):
                letter = self._state.pieces.get(square(file, rank))
                if letter is None:
                    empty += 1
                else:
                    row += (str(empty) if empty else "") + letter
                    empty = 0
            rows.append(row + (str(empty) if empty else ""))
        going = self._state.must_go_on
        return (
            "/".join(rows),
            self.side.letter,
            self.quiet,
            self.move_number,
            None if going is None else name(going),
        )

    @property
    def fen(self) -> str:
        rows, side, quiet, number, going = self.fen_fields
        return f"{rows} {side} {quiet} {number}" + (f" berserk={going}" if going else "")

    # -- moves --------------------------------------------------------------------------------------------------

    def legal_moves(self) -> list[int]:
        """Every legal move, sorted by origin, then target (file before rank); none when the game is over."""
        if self.outcome is not None:
            return []
        return sorted(self._legal(), key=move_sort_key)

    def is_legal(self, ply: int) -> bool:
        start = origin(ply)
        return self.outcome is None and ply in self._pseudo(start) and self._allowed(ply)

    def captured_by(self, ply: int) -> frozenset[int]:
        """Squares of the men a legal move takes; the king is never among them."""
        return self._ground.put(self._state.pieces, origin(ply), target(ply))[1]

    def takes_king(self, ply: int) -> bool:
        return self._ground.put(self._state.pieces, origin(ply), target(ply))[2]

    def captures(self, ply: int) -> bool:
        """Whether a legal move takes a man or the king."""
        return bool(self.captured_by(ply)) or self.takes_king(ply)

    def play(self, ply: int) -> Twin:
        if self.outcome is not None:
            raise IllegalPly(f"{move_name(ply)}: the game is over: {self.outcome.text}")
        if not self.is_legal(ply):
            raise IllegalPly(f"{move_name(ply)} is not legal in {self.fen}")
        state, over = self._put(ply)
        twin = Twin._with(self, state)
        if (
            self.rules.opentafl
            and state.must_go_on is None
            and not (over is not None and over.reason is Reason.ALL_CAPTURED)
        ):
            over = twin._repeated(self.side) or over
        if over is None and state.must_go_on is None:
            over = twin._turn_outcome(self.side)
        return Twin._with(self, replace(state, outcome=over))

    def perft(self, depth: int) -> tuple[int, int]:
        """Leaves after exactly `depth` plies, and how many of them were reached by a ply that took men.

        Repetition and limits are off; a finished position has no children.
        """
        rules = self.rules.replace(repetition="ignore", draw_fort="no", quiet_limit=0, move_limit=0)
        twin = Twin._with(self, self._state)
        twin._ground = Ground(rules)
        return twin._perft(depth)

    def _perft(self, depth: int) -> tuple[int, int]:
        if depth == 0:
            return 1, 0
        leaves = captures = 0
        for ply in self.legal_moves():
            if depth == 1:
                leaves += 1
                captures += bool(self.captured_by(ply))
            else:
                below = self.play(ply)._perft(depth - 1)
                leaves += below[0]
                captures += below[1]
        return leaves, captures

    def _pseudo(self, start: int) -> list[int]:
        """The moves of the piece on `start` as far as this board and the running turn decide."""
        pieces, going = self._state.pieces, self._state.must_go_on
        if (
            start not in pieces
            or owner(pieces[start]) is not self.side
            or (going is not None and start != going)
        ):
            return []
        found = [move(start, sq) for sq in self._ground.targets(pieces, start)]
        if going is not None and self.rules.berserk == "capture" and not self.rules.opentafl:
            found = [ply for ply in found if self.captures(ply)]
        return found

    def _legal(self) -> Iterator[int]:
        for start in self._state.pieces:
            for ply in self._pseudo(start):
                if self._allowed(ply):
                    yield ply

    def _allowed(self, ply: int) -> bool:
        """False if this ply completes an occurrence that is forbidden to its side."""
        forbidden = {
            "forbidden": True,
            "forbidden_to_attackers": self.side is Side.ATTACKERS,
            "forbidden_to_defenders": self.side is Side.DEFENDERS,
        }
        if not forbidden.get(self.rules.repetition, False):
            return True
        pieces, captured, _ = self._ground.put(self._state.pieces, origin(ply), target(ply))
        if captured and self.rules.berserk != "off" and self._put(ply)[0].must_go_on is not None:
            return True
        again = _key(self.rules, replace(self._state, pieces=pieces, side=self.side.other))
        return self._state.history.count(again) + 1 < self.rules.repetition_count

    def _put(self, ply: int) -> tuple[_State, Outcome | None]:
        """The state after a ply, and the end of the game if it is one that is tested after every ply."""
        old, ground = self._state, self._ground
        start, mover = origin(ply), target(ply)
        pieces, captured, _ = ground.put(old.pieces, start, mover)
        over = ground.ends_on_board(pieces, mover)
        by_attackers, by_defenders = old.taken
        if self.side is Side.ATTACKERS:
            by_attackers += len(captured)
        else:
            by_defenders += len(captured)
        state = replace(
            old,
            pieces=pieces,
            quiet=0 if captured else old.quiet + 1,
            plies=old.plies + 1,
            must_go_on=mover,
            turn_captured=bool(captured) or (old.must_go_on is not None and old.turn_captured),
            taken=(by_attackers, by_defenders),
            arrangements=() if captured else old.arrangements,
            last_captures=captured,
        )
        may_go_on = over is None and captured and self.rules.berserk != "off"
        if may_go_on:
            within = Twin._with(self, state)
            if any(self.rules.berserk == "any" or within.captures(ply) for ply in within._legal()):
                return state, None
        side = self.side.other
        state = replace(
            state, side=side, must_go_on=None, move_number=old.move_number + (1 if side is self._first else 0)
        )
        state = replace(state, history=(*state.history, _key(self.rules, state)))
        if self.side is Side.DEFENDERS:
            state = replace(state, arrangements=(*state.arrangements, _defenders(pieces)))
        return state, over

    # -- ends ---------------------------------------------------------------------------------------------------

    def _setup_outcome(self) -> Outcome | None:
        return self._ground.ends_on_board(self._state.pieces, None) or self._stuck()

    def _stuck(self) -> Outcome | None:
        if next(self._legal(), None) is not None:
            return None
        if self.rules.opentafl and self.side is Side.ATTACKERS:
            return Outcome(None, Reason.NO_LEGAL_MOVE)
        winner = {
            "lose": self.side.other,
            "draw": None,
            "a": Side.ATTACKERS,
            "d": Side.DEFENDERS,
        }[self.rules.no_move]
        return Outcome(winner, Reason.NO_LEGAL_MOVE)

    def _turn_outcome(self, mover: Side) -> Outcome | None:
        """The ends tested after a completed turn of `mover`, for the side now to move."""
        return (
            self._stuck()
            or self._repeated(mover)
            or self._draw_fort(mover)
            or self._material()
            or self._quiet_limit()
            or self._move_limit()
        )

    def _repeated(self, mover: Side) -> Outcome | None:
        winner: dict[str, Side | None] = {
            "draw": None,
            "mover_loses": mover.other,
            "mover_wins": mover,
            "attackers_lose": Side.DEFENDERS,
            "defenders_lose": Side.ATTACKERS,
        }
        if self.rules.repetition not in winner or self.repetitions < self.rules.repetition_count:
            return None
        return Outcome(winner[self.rules.repetition], Reason.REPETITION)

    def _draw_fort(self, mover: Side) -> Outcome | None:
        if not self.rules.draw_fort or mover is not Side.DEFENDERS:
            return None
        stood = self._state.arrangements
        men = _count(self._state.pieces, Side.DEFENDERS)
        if men >= 4 and stood.count(stood[-1]) >= 3:
            return Outcome(Side.ATTACKERS, Reason.DRAW_FORT)
        return None

    def _material(self) -> Outcome | None:
        if self.rules.material_draw is None or not self._state.turn_captured:
            return None
        attackers, men = self.rules.material_draw
        pieces = self._state.pieces
        if _count(pieces, Side.ATTACKERS) <= attackers and _count(pieces, Side.DEFENDERS) <= men:
            return Outcome(None, Reason.MATERIAL)
        return None

    def _quiet_limit(self) -> Outcome | None:
        if self.rules.quiet_limit and self.quiet >= self.rules.quiet_limit:
            return Outcome(None, Reason.QUIET_LIMIT)
        return None

    def _move_limit(self) -> Outcome | None:
        limit = self.rules.move_limit * (2 if self.rules.move_limit_unit == "each" else 1)
        if limit and self._state.plies >= limit:
            return Outcome(None, Reason.MOVE_LIMIT)
        return None


def _count(pieces: Pieces, side: Side) -> int:
    """Men of that side, the king not counted."""
    return sum(owner(letter) is side and letter != "K" for letter in pieces.values())


def _defenders(pieces: Pieces) -> frozenset[tuple[int, str]]:
    return frozenset((sq, letter) for sq, letter in pieces.items() if owner(letter) is Side.DEFENDERS)


def _key(rules: Rules, state: _State) -> Key:
    """What makes two positions equal. Positions inside a turn are never counted, so no piece is going on."""
    return frozenset(state.pieces.items()), None if rules.repetition_compare == "board" else state.side
