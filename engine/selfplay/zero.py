"""Self-play games of policy networks with the tree search of `zero_search.py`, in one kernel, for training and
measuring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import games as doors
from ..compile.jit import entry, kernel
from ..compile.rng import randbelow
from ..games.base_position import Position
from ..games.base_variant import AnyVariant
from ..games.interface import (
    MOST_MOVES,
    adjudicate,
    generate,
    make,
    move_index,
    no_move_outcome,
    random_move,
    undo,
    value,
)
from ..sides import DRAWN, WINNER
from .match import PLY_CAP, start_stream
from .zero_search import ROOT, SEARCH, Settings, draw, pruned, think, think_once, uniform

GAME = np.dtype(
    [
        ("players", "i4", (2,)),  # index of the network that plays side a, side d
        ("seed", "u8"),
        ("handicap", "f8", (2,)),  # a side's simulations are divided by 2 to the power of this
        ("careless", "f8", (2,)),  # probability that a side plays a random move instead of searching
        ("outcome", "i4"),  # reason | (winner + 1) << WINNER, winner DRAWN for a draw
        ("plies", "i4"),
        ("kept", "i4"),  # positions that became examples
    ],
    align=True,
)
LOG = np.dtype([("rows", "i8"), ("visited", "i8")])


@kernel
def finish_ply(s, move):
    """Play a move and set the outcome by all the rules."""
    make(s, move)
    if s.outcome == 0:
        s.outcome = adjudicate(s, -1)


@kernel
def play_opening(s, settings, seed):
    """Play the random plies that a game begins with."""
    start_stream(s, seed)
    for _ in range(randbelow(s, int(settings.opening) + 1)):
        move = random_move(s)
        if s.outcome or move == 0:
            break
        finish_ply(s, move)


@kernel
def play_game(s, search, params, settings, game, log, inputs, sides, values, counts, places, visits):
    """Play one game from the position of `s`; restores `s`. Logs its positions if the log has room for any."""
    begun = s.ply
    game.kept = 0
    play_opening(s, settings, game.seed)
    while s.outcome == 0:
        if s.ply - begun >= settings.ply_limit:
            s.outcome = PLY_CAP
            break
        end = generate(s, 0)
        if end == 0:
            s.outcome = no_move_outcome(s)
            break
        if game.careless[s.side] > 0.0 and uniform(s) < game.careless[s.side]:
            finish_ply(s, random_move(s))
            continue
        p = params[game.players[s.side]]
        row = int(log.rows)
        full = settings.full >= 1.0 or uniform(s) < settings.full
        handicap = game.handicap[s.side]
        learning = full and sides.size > 0 and game.players[s.side] == 0 and handicap == 0.0
        if learning:
            value(p, s)  # the search begins with the same pass
            for i in range(inputs.shape[1]):
                inputs[row, i] = p.inputs[i]
            sides[row] = s.side
        simulations = int(settings.simulations if full else settings.fast_simulations)
        simulations = max(2, int(simulations * 2.0**-handicap))
        think(s, search, p, settings, end, simulations, full)
        if learning:
            values[row] = search.worth[ROOT] / (search.visits[ROOT] + 1.0)
            at = int(log.visited)
            total = 0
            for i in range(end):
                places[at] = move_index(s, int(search.move[i]))
                visits[at] = pruned(search, settings, end, i)
                total += visits[at]
                at += 1
            if total:  # 0 if every move tried is a proven loss
                counts[row] = end
                log.visited = at
                log.rows = row + 1
                game.kept += 1
        cold = s.ply - begun >= settings.temperature_plies
        finish_ply(s, draw(s, search, end, settings.later_temperature if cold else settings.temperature))
    game.outcome = s.outcome
    game.plies = s.ply - begun
    while s.ply > begun:
        undo(s)
    s.outcome = 0


@entry
def play_games(s, search, params, settings, games, log, inputs, sides, values, counts, places, visits):
    """Play all games in order."""
    for i in range(games.size):
        play_game(s, search, params, settings, games[i], log, inputs, sides, values, counts, places, visits)


class Examples(NamedTuple):
    """Positions of games, a row each: the network's inputs (u1), the side to move, the result for that side (-1, 0, 1),
    the search's value (f4) and the number of legal moves; then, concatenated over all rows, the policy indices of these
    moves and their visits."""

    inputs: Any
    sides: Any
    results: Any
    values: Any
    counts: Any
    places: Any
    visits: Any

    @property
    def rows(self) -> int:
        return len(self.sides)

    @classmethod
    def empty(cls, inputs: int) -> Examples:
        return cls(
            np.zeros((0, inputs), np.uint8),
            np.zeros(0, np.int8),
            np.zeros(0, np.int8),
            np.zeros(0, np.float32),
            np.zeros(0, np.int32),
            np.zeros(0, np.uint16),
            np.zeros(0, np.uint16),
        )

    @classmethod
    def joined(cls, parts: Sequence[Examples]) -> Examples:
        return cls._make(np.concatenate(columns) for columns in zip(*parts, strict=True))

    def last(self, rows: int) -> Examples:
        """The last `rows` examples."""
        cut = self.rows - min(rows, self.rows)
        behind = int(self.counts[:cut].sum())
        each = [column[cut:] for column in self[:5]]
        return Examples._make([*each, self.places[behind:], self.visits[behind:]])

    def rows_of(self, chosen: Any, moves: int) -> tuple[Any, Any]:
        """Visits of the chosen rows as fractions, float32[rows, moves], and a mask of legal moves, u1[rows, moves]."""
        found = np.zeros((len(chosen), moves), np.float32)
        legal = np.zeros((len(chosen), moves), np.uint8)
        counts = self.counts[chosen]
        rows = np.repeat(np.arange(len(chosen)), counts)
        begin = np.cumsum(self.counts) - self.counts
        at = np.arange(len(rows)) + np.repeat(begin[chosen] - np.cumsum(counts) + counts, counts)
        found[rows, self.places[at]] = self.visits[at]
        legal[rows, self.places[at]] = 1
        return found / found.sum(axis=1, keepdims=True), legal

    def policies(self, moves: int) -> Any:
        """The visits as fractions, float32[rows, moves]."""
        return self.rows_of(np.arange(self.rows), moves)[0]


class Board:
    """Everything that one thread needs for games between networks on a board."""

    def __init__(self, variant: AnyVariant, networks: Sequence[Any], settings: Settings) -> None:
        """`networks` are records of `POLICY_NET`, one element each."""
        self._variant = variant
        self._initial = doors.initial(variant)
        self._record = self._initial.new_record()
        self._search = np.zeros(1, SEARCH).view(np.recarray)
        self._settings = settings
        self._params = np.concatenate([np.asarray(network) for network in networks]).view(np.recarray)

    def play(self, games: Any, inputs: int = 0) -> Examples:
        """Play `games`, an array of dtype `GAME`, and write the results to it. If `inputs`, the networks' number of
        inputs, is given, returns every position that the first network searched as an example; otherwise none."""
        limit = self._settings.ply_limit
        rows = len(games) * limit if inputs else 0
        most = min(MOST_MOVES, len(doors.policy_moves(self._variant)))
        log = np.zeros(1, LOG).view(np.recarray)
        made = Examples(
            np.zeros((rows, inputs or 1), np.uint8),
            np.zeros(rows, np.int8),
            np.zeros(0, np.int8),
            np.zeros(rows, np.float32),
            np.zeros(rows, np.int32),
            np.zeros(rows * most, np.uint16),
            np.zeros(rows * most, np.uint16),
        )
        state = self._initial.load(self._record)
        play_games(
            state, self._search[0], self._params, self._settings.record()[0], games.view(np.recarray), log[0],
            made.inputs, made.sides, made.values, made.counts, made.places, made.visits,
        )  # fmt: skip
        kept, visited = int(log[0]["rows"]), int(log[0]["visited"])
        sides = made.sides[:kept].copy()
        winner = np.repeat((games["outcome"] >> WINNER) - 1, games["kept"])
        results = np.where(winner == DRAWN, 0, np.where(winner == sides, 1, -1)).astype(np.int8)
        return Examples(
            made.inputs[:kept].copy(), sides, results, made.values[:kept].copy(), made.counts[:kept].copy(),
            made.places[:visited].copy(), made.visits[:visited].copy(),
        )  # fmt: skip

    def visits(self, position: Position) -> dict[int, int]:
        """The visits of each legal move of a position in the first network's search."""
        state = position.load(self._record)
        out = np.zeros(MOST_MOVES, np.int64)
        state["random"] = 1
        end = think_once(state, self._search[0], self._params, self._settings.record()[0], out)
        moves = self._search[0]["move"][:end]
        return {int(move): int(count) for move, count in zip(moves, out[:end], strict=True)}
