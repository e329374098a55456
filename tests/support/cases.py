"""The notation of `cases/*.txt`, in which players can read and write what a rule does on a small board.

    size or variant | pieces | item | item ...        item = moves {switches} => results

Moves (`c3d3`, several separated by blanks), or the square of one piece when its targets are asked for, may be left
out: then those of the item before are meant. Switches hold for their own item only. Results, separated by commas:

    -                   nothing is taken and the game goes on
    x c3 d3             exactly these men are taken
    again               the same side goes on with the same piece
    a king captured     attackers (d: defenders, draw: nobody) win, and why; the king is never listed as taken
    illegal             this move is not allowed
    legal a2 b2         exactly the squares where the piece can go

Captures belong to the first move, then the second, and so on; `@3` behind a result says at which of several moves it
falls instead. A game that is not said to end must be open behind the last move, and where nothing is said to be taken
nothing may be taken. The owner of the first piece moved begins. A line that begins with `#` is a remark. `-` in the
place of the pieces is the variant's start position.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from hnefi.engine.games.tafl import variant as variants
from hnefi.engine.games.tafl.fen import Setup
from hnefi.engine.games.tafl.rules import Rules
from hnefi.engine.sides import Side
from hnefi.engine.squares import move, parse

FOLDER = Path(__file__).with_name("cases")


class CaseError(ValueError):
    """A line that is no case: file, line and what is wrong with it."""


@dataclass(frozen=True)
class Expected:
    """What an item says happens."""

    captures: tuple[frozenset[str], ...] = ()
    """What the first moves take; the moves behind them take nothing."""
    again: frozenset[int] = frozenset()
    """Plies (from 1) after which the same piece goes on."""
    result: str | None = None
    """`a`, `d` or `draw`."""
    reason: str | None = None
    illegal: bool = False
    ply: int | None = None
    """At which ply (from 1) the game ends or the illegal move is tried; None: at the last."""
    targets: frozenset[str] | None = None


@dataclass(frozen=True)
class Case:
    """One item of one line: play `moves` from this board under these rules, and this must happen."""

    where: str
    base: str
    pieces: tuple[tuple[str, str], ...]
    """(letter, square) pairs; empty for the start position."""
    moves: tuple[str, ...]
    switches: dict[str, str] = field(hash=False)
    expected: Expected
    text: str = field(compare=False)

    def rules(self) -> Rules:
        """The rules played."""
        if self.base.isdigit():
            return Rules.from_mapping(self.switches, int(self.base))
        return self.variant().rules

    def variant(self) -> variants.Variant:
        """The variant played, with the item's switches; for a bare size one that begins with the case's own board."""
        if self.base.isdigit():
            rules = self.rules()
            start = Setup(rules.size, self._board(rules.size), Side.of(rules.first))
            return variants.Variant("case", (), rules, start)
        return variants.find(self.base).with_switches(**self.switches)

    def setup(self) -> Setup | None:
        """The position; None for the start position."""
        if not self.pieces:
            return None
        size = self.rules().size
        board = dict(self._board(size))
        mover = board[parse(self.first_square(), size)]
        side = Side.ATTACKERS if mover in "tcnmg" else Side.DEFENDERS
        return Setup(size, tuple(sorted(board.items())), side)

    def first_square(self) -> str:
        return squares_in(self.moves[0])[0]

    def _board(self, size: int) -> tuple[tuple[int, str], ...]:
        return tuple(sorted((parse(square, size), letter) for letter, square in self.pieces))

    def plies(self) -> list[int]:
        size = self.rules().size
        found = []
        for text in self.moves:
            origin, target = squares_in(text)
            found.append(move(parse(origin, size), parse(target, size)))
        return found


def squares_in(text: str) -> list[str]:
    """`a10b10` -> `a10`, `b10`."""
    squares: list[str] = []
    for sign in text:
        if sign.isalpha():
            squares.append(sign)
        elif squares:
            squares[-1] += sign
        else:
            raise ValueError(f"{text!r}: expected squares such as d1d3")
    return squares


def read(path: Path) -> list[Case]:
    """Every item of a file; CaseError names file and line of one that cannot be read."""
    found: list[Case] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            try:
                found += _read_line(line, f"{path.stem}:{number}")
            except (ValueError, KeyError) as error:
                raise CaseError(f"{path.name}, line {number}: {line!r}: {error}") from error
    return found


def read_all() -> list[Case]:
    return [case for path in sorted(FOLDER.glob("*.txt")) for case in read(path)]


def _read_line(line: str, where: str) -> list[Case]:
    base, board, *items = (part.strip() for part in line.split("|"))
    if not items:
        raise ValueError("expected variant | pieces | item")
    pieces = _read_pieces(board)
    cases: list[Case] = []
    moves: tuple[str, ...] = ()
    for number, item in enumerate(items):
        question, arrow, answer = item.partition("=>")
        if not arrow:
            raise ValueError(f"{item!r}: expected =>")
        played, brace, switches = question.partition("{")
        if brace and not switches.rstrip().endswith("}"):
            raise ValueError(f"{item!r}: expected }}")
        moves = tuple(played.split()) or moves
        if not moves:
            raise ValueError(f"{item!r}: expected a move")
        pairs = dict(_switch(word) for word in switches.rstrip().removesuffix("}").split())
        expected = _read_answer(answer, len(moves))
        text = f"{base} | {board} | {item}"
        cases.append(Case(f"{where}.{number + 1}", base, pieces, moves, pairs, expected, text))
    return cases


def _switch(word: str) -> tuple[str, str]:
    name, sign, value = word.partition("=")
    if not sign:
        raise ValueError(f"{word!r}: expected switch=value")
    return name, value


def _read_pieces(board: str) -> tuple[tuple[str, str], ...]:
    if board == "-":
        return ()
    pieces: list[tuple[str, str]] = []
    letter = ""
    for word in board.split():
        if len(word) == 1:
            letter = word
        elif not letter:
            raise ValueError(f"{word!r}: expected a piece letter before its squares")
        else:
            pieces.append((letter, word))
    if len({square for _, square in pieces}) != len(pieces):
        raise ValueError(f"{board!r}: two pieces on one square")
    return tuple(pieces)


def _read_answer(answer: str, plies: int) -> Expected:
    captures: list[frozenset[str]] = []
    again: set[int] = set()
    result: str | None = None
    reason: str | None = None
    illegal = False
    at: int | None = None
    targets: frozenset[str] | None = None
    for part in answer.split(","):
        words = part.split()
        ply = int(words.pop()[1:]) if words and words[-1].startswith("@") else None
        if ply is not None and not 1 <= ply <= plies:
            raise ValueError(f"{part!r}: there are {plies} moves")
        match words:
            case ["-"]:
                captures.append(frozenset())
            case ["x", *taken] if taken:
                captures += [frozenset()] * ((ply or 0) - 1 - len(captures))
                captures.append(frozenset(taken))
            case ["again"]:
                again.add(ply or max(1, len(captures)))
            case ["illegal"]:
                illegal, at = True, ply
            case ["legal", *squares]:
                targets = frozenset(squares)
            case ["a" | "d" | "draw" as winner, *why] if why:
                result, reason, at = winner, " ".join(why), ply
            case _:
                raise ValueError(f"{part!r}: expected a result")
    return Expected(tuple(captures), frozenset(again), result, reason, illegal, at, targets)
