"""What the network sees of stored positions, as arrays, and what it should say of them.

A position is a board that has been turned so that the king stands where `networks/nnue.py` wants him. Where several
symmetries of the rules bring him there, any of them will do: each epoch draws one, so that the net learns all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hnefi.engine.evaluators.networks import nnue
from hnefi.engine.games.tafl.codes import KING, PIECE_CODES
from hnefi.engine.score import WON
from hnefi.engine.squares import squares

from ..common.calibration import LOGIT, expected, scale_of
from .games import UNKNOWN

if TYPE_CHECKING:
    from hnefi.engine.evaluators.network import Network
    from hnefi.engine.games.tafl.variant import Variant

HELD_OUT = 10
"""One game in this many is held out to measure how well the net does."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Positions to learn from: boards in kinds of pieces (0 for empty squares and the king, else kind + 1), the king's
    place, the head, the target (the attackers' expected score), the result (1: they won) and the side to move."""

    boards: Any
    kings: Any
    heads: Any
    targets: Any
    results: Any
    sides: Any

    def __len__(self) -> int:
        return len(self.kings)

    def take(self, chosen: Any) -> Examples:
        """Those of these numbers, or of this mask."""
        return Examples(
            self.boards[chosen],
            self.kings[chosen],
            self.heads[chosen],
            self.targets[chosen],
            self.results[chosen],
            self.sides[chosen],
        )


class Encoding:
    """How a network reads the boards of a variant."""

    def __init__(self, network: Network, variant: Variant) -> None:
        size = variant.size
        cells = list(squares(size))
        rings = network.sizes["rings"]
        self.network, self.variant = network, variant
        self.units: int = network.sizes["units"]
        self.squares = size * size
        self.kinds = len(nnue.kinds(variant))
        self.buckets = nnue.buckets(size, rings)
        turned = nnue.views(variant)
        self.views = len(turned)
        places = np.array([[nnue.place_of(view[sq], size) for sq in cells] for view in turned])
        # Where the square that comes to a place comes from.
        self.sources = np.argsort(places, axis=1).astype(np.int32)
        self.bucket = np.array([nnue.bucket_of(sq, size, rings) for sq in cells])
        home = np.array([places[nnue.view_of(variant, sq), i] for i, sq in enumerate(cells)])
        # All views that bring a king where the network wants him, by his place; the net itself takes the first.
        fitting = [[v for v in range(self.views) if places[v, i] == home[i]] for i in range(self.squares)]
        self.fits = np.array([(views * self.views)[: self.views] for views in fitting])
        self.choices = np.array([len(views) for views in fitting])
        self.home = home
        codes = np.zeros(16, np.int8)
        for letter, code in PIECE_CODES.items():
            codes[code] = 0 if letter == "K" else nnue.kind_of(variant, letter) + 1
        self.codes = codes
        self.head = np.array(
            [[nnue.head_of(variant, side, pieces) for pieces in range(self.squares + 1)] for side in range(2)]
        )

    def examples(self, rows: Any, targets: Any) -> Examples:
        """Stored positions (`games.row_type`) with their targets."""
        boards = rows["board"]
        sides = rows["side"].astype(np.int64)
        pieces = np.count_nonzero(boards, axis=1)
        return Examples(
            self.codes[boards],
            np.argmax(boards == KING, axis=1),
            self.head[sides, pieces],
            targets.astype(np.float32),
            (rows["result"] / 2).astype(np.float32),
            sides,
        )

    def turn(self, examples: Examples, draw: Any = None) -> tuple[Any, Any, Any]:
        """Turned boards, the king's place there, and his bucket; which of the views is chosen at random by `draw`, or
        the net's own where there is none."""
        kings = examples.kings
        # Of the fitting views any is found at a random place: their lists are repeated to the end.
        choice = np.zeros(len(kings), np.int64) if draw is None else draw.integers(self.choices[kings])
        views = self.fits[kings, choice]
        boards = np.take_along_axis(examples.boards, self.sources[views], axis=1)
        return boards, self.home[kings], self.bucket[kings]


def targets_of(rows: Any, blend: float, scale: tuple[float, float]) -> Any:
    """What a net should say: expectation by the score and result, blended; for strays the former alone; forced ends are
    what they are."""
    scores = rows["score"].astype(np.float64)
    slope, level = scale
    expected = 1 / (1 + np.exp(-np.clip(slope * scores / LOGIT + level, -30, 30)))
    blended = np.where(
        rows["result"] == UNKNOWN, expected, blend * expected + (1 - blend) * rows["result"] / 2
    )
    return np.where(np.abs(scores) > WON, scores > 0, blended)


class RoundLessons(NamedTuple):
    """What a net learns from a round: its quiet positions, their targets, what the searches said of them as logits; and
    scores and results (1: the attackers won) of all positions of games that ended."""

    rows: Any
    targets: Any
    search: Any
    scores: Any
    results: Any


def lessons_of(rows: Any, blend: float) -> RoundLessons:
    """The lessons of the games of one player. Centipawns of one evaluator are not those of another, so each round has a
    line of its own."""
    ended = rows["result"] != UNKNOWN
    scores, results = rows["score"][ended], rows["result"][ended] / 2
    scale = scale_of(scores, results)
    kept = rows[quiet(rows)]
    return RoundLessons(kept, targets_of(kept, blend, scale), expected(kept["score"], scale), scores, results)


def held_out(rows: Any) -> Any:
    """Which positions are of games that are held out."""
    return rows["game"] % HELD_OUT == 0


def quiet(rows: Any) -> Any:
    """Which positions are quiet: the best move does not capture."""
    return rows["noisy"] == 0
