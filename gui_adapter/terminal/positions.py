"""What the rules say about one place of a game, and what a FEN alone says about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hnefi.engine import squares
from hnefi.engine.catalogue import GAMES
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.moves_text import MoveTextError, parse_move_word

from .values import SWAP, Board, Move, SideLetter

_CELLS: Final = re.compile(r"\d+|[A-Za-z]")
_TWO_SQUARES: Final = re.compile(r"([a-z]\d{1,3})-?([a-z]\d{1,3})(?:[x/].*)?", re.ASCII)
_TERRAINS: Final = (
    ("attacker_camps", "camp"),
    ("defender_camps", "fort"),
    ("corners", "corner"),
    ("throne", "throne"),
)


@dataclass(frozen=True, slots=True)
class Facts:
    """One place of a game. `result` and `reason` are None while the game goes on; `legal` is empty where it is over,
    and where the rules have not been asked (`asked`). `taken` counts the men captured by attackers and defenders."""

    fen: str
    rows: tuple[str, ...]
    side: SideLetter
    legal: tuple[Move, ...] = ()
    result: str | None = None
    reason: str | None = None
    taken: tuple[int, int] = (0, 0)
    asked: bool = False


def facts_of(fen: str) -> Facts:
    """What a FEN alone says."""
    fields = fen.split()
    rows = tuple(
        "".join("." * int(cell) if cell.isdigit() else cell for cell in _CELLS.findall(row))
        for row in fields[0].split("/")
    )
    side: SideLetter = "d" if len(fields) > 1 and fields[1] == "d" else "a"
    return Facts(fen, rows, side)


def special_squares(variant: AnyVariant) -> Mapping[str, str]:
    """The squares that mean something by the rules, by name."""
    switches = dict(variant.rules_lines())
    return {
        square: kind
        for switch, kind in _TERRAINS
        for square in switches.get(switch, "none").split(",")
        if square != "none"
    }


def board_of(
    variant: AnyVariant,
    special: Mapping[str, str],
    facts: Facts,
    last: str = "",
    taken: tuple[str, ...] = (),
) -> Board:
    """The board of a place that was reached by the ply `last`, which took the men on `taken`."""
    ours, theirs = GAMES[variant.game].letters
    cells = "".join(facts.rows)
    move = read_move(last, ()) if last else None
    touched = () if move is None or not move.source else tuple(dict.fromkeys((move.source, move.target)))
    return Board(
        files=variant.files,
        ranks=variant.ranks,
        rows=facts.rows,
        special=special,
        last=touched,
        taken=taken,
        side=facts.side,
        men=(sum(cells.count(letter) for letter in ours), sum(cells.count(letter) for letter in theirs)),
        captures=facts.taken,
    )


def read_move(text: str, captures: tuple[str, ...]) -> Move:
    """A move as the engine writes it, as a value."""
    if text == SWAP:
        return Move(SWAP, "", "", captures)
    number = move_number(text)
    return Move(text, squares.name(squares.origin(number)), squares.name(squares.target(number)), captures)


def move_number(text: str) -> int:
    """A bare move as the number records use; MoveTextError if it is none."""
    return parse_move_word(text, squares.MAX_SIZE)[0]


def read_legal(words: list[str]) -> tuple[Move, ...]:
    """The moves of an answer to `moves verbose`, each with its captured squares behind `x`."""
    moves = []
    for word in words:
        bare, *taken = word.split("x")
        moves.append(read_move(bare, tuple(taken)))
    return tuple(moves)


def owner(game: str, letter: str) -> SideLetter:
    """The side whose man a letter of a FEN is."""
    return "a" if letter in GAMES[game].letters[0] else "d"


def typed_move(line: str) -> str | None:
    """The move that a person has typed (`d1d3`, `D1-D3`, `d1 d3`, `f6`, `swap`), as the engine writes it; None where
    the line is no move at all."""
    word = "".join(line.split()).lower()
    named = _TWO_SQUARES.fullmatch(word)
    if named is not None:
        return named[1] + named[2]
    try:
        return squares.move_name(parse_move_word(word, squares.MAX_SIZE)[0])
    except MoveTextError:
        return None
