"""Games of the engine with itself, and every position in them with what a net can learn from it.

A search looks at moves that nobody would play, and a net that has seen only games knows nothing of what comes of them:
two that predicted the results of Copenhagen better than their teacher lost all of their 82 games as attackers against
it. So from positions of the games a few random moves are made, too, and what is found there is searched: these strays
have a score but no result.

A game begins with some random moves, or with an opening of a file and fewer of them. Each side then thinks with a
number of nodes of its own, drawn for the game, so that both sides win some, and now and then a move is random. Where
one side hardly ever wins, its numbers may be larger: games that are lost from the start teach neither side much. A game
ends as the rules say, or as soon as a search has proved who wins, or a table of solved positions has said so; after
`MOST_PLIES` it is a draw.
"""

from __future__ import annotations

import io
import random
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hnefi.engine.games.tafl.codes import PIECE
from hnefi.engine.score import MATE
from hnefi.engine.squares import squares

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.tafl.variant import Variant
    from hnefi.engine.search.searcher import Searcher

MOST_PLIES = 300
"""Plies after which an undecided game is a draw."""
RANDOM_GAMES, RANDOM_MOVES = 3, 25
"""In every third game one move in 25 is random."""
OPENING_PLIES = (4, 10)
LEVEL = 700
"""An opening that the first search values higher, for either side, is not played: it teaches little."""
FILE_PLIES = (0, 3)
"""Random plies after an opening from a file, which may be as uneven as its author likes."""
STRAY_PLIES = (1, 3)
UNKNOWN = -1
"""The result of a stray."""
HASH_MIB = 2
TRIES = 200


@dataclass(frozen=True, slots=True)
class Series:
    """What decides the games of a round: they follow from it and from their numbers alone.

    `evaluator` is a name or the path of a file, of which `file` is the content; `nodes` are what the attackers and what
    the defenders draw their nodes a move from; `strays` positions are searched for each one of the games; `tables`
    names solved positions, as the option TablePath does; `openings` are positions to begin with, as FENs, none for the
    variant's own start.
    """

    variant: Variant
    evaluator: str
    file: bytes
    nodes: tuple[tuple[int, ...], tuple[int, ...]]
    strays: int
    seed: str
    tables: str = ""
    openings: tuple[str, ...] = ()


def row_type(size: int) -> Any:
    """A position: its game, the ply there and how many more there were; who won (2 attackers, 1 nobody, 0 defenders,
    UNKNOWN for strays); the side to move; what the search said, in centipawns for the attackers, near MATE for a forced
    end; whether the best move captures; the piece code on every square, a1 b1 ... up to the top right."""
    return np.dtype(
        [
            ("game", "i4"),
            ("ply", "i2"),
            ("left", "i2"),
            ("result", "i1"),
            ("side", "i1"),
            ("score", "i2"),
            ("noisy", "i1"),
            ("board", "i1", (size * size,)),
        ]
    )


def play(series: Series, first: int, games: int) -> bytes:
    """The positions of games `first` and on, as an `.npy` file of `row_type`. A job for any process or machine."""
    from hnefi.engine import evaluators
    from hnefi.engine.search.searcher import Searcher
    from hnefi.engine.search.types import Settings

    with tempfile.TemporaryDirectory(prefix="hnefi-train-") as place:
        evaluator = series.evaluator
        if evaluators.is_file(evaluator):
            evaluator = str(Path(place) / Path(evaluator).name)
            Path(evaluator).write_bytes(series.file)
            evaluators.read(evaluator, series.variant)
        searcher = Searcher(Settings(hash_mib=HASH_MIB, evaluator=evaluator, tables=_tables(series)))
        rows: list[Any] = []
        for number in range(first, first + games):
            rows += _game(series, searcher, number)
    made = io.BytesIO()
    np.save(made, np.array(rows, row_type(series.variant.size)), allow_pickle=False)
    return made.getvalue()


def _tables(series: Series) -> Any:
    if not series.tables:
        return None
    from hnefi.engine.solving.tables import find, opened

    tables = opened(find(series.tables))
    tables.load(series.variant)
    return tables


def _game(series: Series, searcher: Searcher, number: int) -> list[Any]:
    from hnefi.engine import games

    # Each game has its own random stream, so that an interrupted round continues identically.
    draw = random.Random(f"train {series.variant.hash} {series.seed} {number}")
    start: Position = games.initial(series.variant)
    plies, level = OPENING_PLIES, LEVEL
    if series.openings:
        start = games.from_fen(series.variant, draw.choice(series.openings))
        plies, level = FILE_PLIES, MATE // 2 - 1
    budgets = (draw.choice(series.nodes[0]), draw.choice(series.nodes[1]))
    careless = draw.randrange(RANDOM_GAMES) == 0
    think = partial(_think, searcher)
    for _ in range(TRIES):
        searcher.clear()
        position = _wandered(start, draw, plies)
        if position is not None and abs(think(position, budgets[position.side])[1]) <= level:
            break
    else:
        return []
    cells = np.array(list(squares(series.variant.size)))
    record = position.new_record()
    found: list[Any] = []
    strayed: list[Any] = []
    begun = position.ply
    winner = None
    while (outcome := position.outcome) is None and position.ply - begun < MOST_PLIES:
        if not position.legal_moves():
            break
        if careless and draw.randrange(RANDOM_MOVES) == 0:
            position = position.play(draw.choice(position.legal_moves()))
            continue
        move, score = think(position, budgets[position.side])
        after = position.play(move)
        found.append(_seen(position, after, score, cells, record))
        strayed += _strays(series, position, draw, think, cells, record)
        if abs(score) >= MATE // 2:
            winner = 0 if score > 0 else 1
            break
        position = after
    if outcome is not None:
        winner = outcome.winner
    result = 1 if winner is None else 2 - 2 * int(winner)
    end = position.ply
    return [
        *((number, ply, end - ply, result, *rest) for ply, *rest in found),
        *((number, ply, 0, UNKNOWN, *rest) for ply, *rest in strayed),
    ]


def _seen(position: Position, after: Position, score: int, cells: Any, record: Any) -> tuple[Any, ...]:
    """What is kept of a position that was searched, without game and result; `after` is the one after its best move."""
    noisy = after.taken != position.taken
    return position.ply, int(position.side), score, noisy, position.load(record)["board"][cells] & PIECE


def _strays(
    series: Series, position: Position, draw: random.Random, think: Any, cells: Any, record: Any
) -> list[tuple[Any, ...]]:
    """Some positions a few random moves away; none where a game ended on the way."""
    found = []
    nodes = min(map(min, series.nodes))
    for _ in range(series.strays):
        astray = _wandered(position, draw, STRAY_PLIES)
        if astray is not None:
            move, score = think(astray, nodes)
            found.append(_seen(astray, astray.play(move), score, cells, record))
    return found


def _wandered(position: Position, draw: random.Random, plies: tuple[int, int]) -> Position | None:
    """A position after some random moves, None where the game is over before."""
    for _ in range(draw.randint(*plies)):
        moves = position.legal_moves()
        if not moves:
            return None
        position = position.play(draw.choice(moves))
        if position.outcome is not None:
            return None
    return position if position.legal_moves() else None


def _think(searcher: Searcher, position: Position, nodes: int) -> tuple[int, int]:
    """The move that a search finds, and its score in centipawns for the attackers."""
    from hnefi.engine.search.types import Info, Limits

    infos: list[Info] = []
    searcher.begin()
    move = searcher.search(position, Limits(nodes=nodes), infos.append).move
    assert move is not None  # there is a legal one
    score = infos[-1].score
    value = score.cp if score.cp is not None else MATE if (score.mate or 0) > 0 else -MATE
    return move, value if position.side == 0 else -value
