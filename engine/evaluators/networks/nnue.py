"""An efficiently updatable network (NNUE): one hidden layer whose sums follow the moves of a search.

Y. Nasu, "Efficiently Updatable Neural-Network-based Evaluation Functions for Computer Shogi" (2018), taken to tafl,
where there is one king: both sides are seen in relation to him, so there is one set of sums instead of one a side.

The board is first turned so that the king stands in the triangle between its left edge and a diagonal, by whichever of
the symmetries of the rules does that; what the net learns about one corner holds for all. Each unit then adds up

    king[S]             where the king stands, S counted a1 b1 ... (this is the unit's bias, too)
    men[B][K][S]        for every other piece: B is the kind of the king's square by its distances from the edges, of
                        which those of `rings` - 1 and more are alike; K the kind of the piece, attackers' men before
                        defenders', special pieces last

in 16-bit words that wrap around. The value for the attackers, in logits, is

    (output_bias[H] + sum over units of c * c * output[H][unit]) / 2**22

with c the sum of the unit cut off below 0 and above 255, that is a squared clipped ReLU in steps of 1/256, and weights
in steps of 1/64. H, the head, is 0 to 7 by how many pieces are left, for positions in which the attackers are to move,
and 8 to 15 for those of the defenders. All of it is whole numbers: the same on every machine, however it was summed up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

NUMBER = 17
SOURCE = 'Y. Nasu, "Efficiently Updatable Neural-Network-based Evaluation Functions for Computer Shogi", 2018'
GAMES = ("tafl",)
SCALE = 400 / math.log(10)
OUTPUT = "logit"
LAYERS = ("units",)
OPTIONS: Mapping[str, int] = {"units": 64, "rings": 5}
RECORD = "nnue"
"""It has a record of its own (`nnue_network.py`)."""
TYPES: Mapping[str, str] = {"king": "int16", "men": "int16", "output": "int8", "output_bias": "int32"}
HEADS = 16
ACTIVATION_UNIT, OUTPUT_UNIT = 256, 64
LOGIT = ACTIVATION_UNIT * ACTIVATION_UNIT * OUTPUT_UNIT
"""A logit in units of the output."""
CLIP = 255
MOST_UNITS, UNITS_STEP = 256, 32


def shapes(variant: Any, options: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays by name, in the order of the weights."""
    units, size = options["units"], variant.size
    if units > MOST_UNITS or units % UNITS_STEP:
        raise ValueError(f"network nnue:{units}: expected a multiple of {UNITS_STEP} up to {MOST_UNITS}")
    squares = size * size
    return {
        "king": (squares, units),
        "men": (buckets(size, options["rings"]), len(kinds(variant)), squares, units),
        "output": (HEADS, units),
        "output_bias": (HEADS,),
    }


def layout(variant: Any, options: Mapping[str, int]) -> tuple[int, ...]:
    """What the kernels have to know of the sizes: up to 16 integers for `p.shape`."""
    return (options["units"], variant.size, len(kinds(variant)))


def buckets(size: int, rings: int) -> int:
    """How many kinds of squares there are for the king."""
    return (count := min(rings, (size + 1) // 2)) * (count + 1) // 2


def bucket_of(sq: int, size: int, rings: int) -> int:
    """The kind of the king's square."""
    from ...squares import file_of, rank_of

    most = min(rings, (size + 1) // 2) - 1
    near, far = sorted(min(at, size - 1 - at, most) for at in (file_of(sq), rank_of(sq)))
    return far * (far + 1) // 2 + near


def kinds(variant: Any) -> tuple[str, ...]:
    """The letters of pieces other than the king that are told apart: men, then whatever else the variant starts with;
    mercenaries, who change sides, for both."""
    letters = {letter for _, letter in variant.start.pieces} - set("tTK")
    if letters & set("mM"):
        letters |= set("mM")
    return ("t", "T", *sorted(letters))


def kind_of(variant: Any, letter: str) -> int:
    """The kind of a piece; one that the variant does not start with counts as a man."""
    known = kinds(variant)
    return known.index(letter) if letter in known else int(letter.isupper())


def views(variant: Any) -> tuple[Mapping[int, int], ...]:
    """Where squares go under each symmetry of the rules, the identity first."""
    from ...games.tafl.symmetry import images
    from ...squares import squares

    return ({sq: sq for sq in squares(variant.size)}, *images(variant.rules))


def view_of(variant: Any, king: int) -> int:
    """The first of `views` that brings the king nearest to a1, files first."""
    from ...squares import sort_key

    turned = views(variant)
    return min(range(len(turned)), key=lambda i: (sort_key(turned[i][king]), i))


def place_of(sq: int, size: int) -> int:
    """The number of a square: a1 b1 ... up to the top right."""
    from ...squares import file_of, rank_of

    return rank_of(sq) * size + file_of(sq)


def head_of(variant: Any, side: int, pieces: int) -> int:
    """The head for a side to move and a number of pieces on the board, king included."""
    start = variant.attackers + variant.defenders + 1
    return side * (HEADS // 2) + min(HEADS // 2 - 1, HEADS // 2 * max(pieces - 1, 0) // start)


def naive(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> float:
    """The value for side `a` in float64, slow and obvious: what the kernel must agree with."""
    import numpy as np

    size, pieces = variant.size, list(position.pieces())
    king = next((sq for sq, letter in pieces if letter == "K"), 0)
    turn = views(variant)[view_of(variant, king)] if king else views(variant)[0]
    bucket = bucket_of(king, size, options["rings"]) if king else 0
    sums = arrays["king"][place_of(turn[king], size) if king else 0].astype(int)
    for sq, letter in pieces:
        if letter != "K":
            sums += arrays["men"][bucket, kind_of(variant, letter), place_of(turn[sq], size)].astype(int)
    seen = np.clip(sums.astype(np.int16), 0, CLIP).astype(int)
    head = head_of(variant, int(position.side), len(pieces))
    total = int(arrays["output_bias"][head]) + int(seen * seen @ arrays["output"][head].astype(int))
    return total / LOGIT
