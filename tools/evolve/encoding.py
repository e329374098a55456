"""Maps evolving numbers to the weights of a network, one each or one for all weights that a symmetry makes equal; and
the starting weights of runs that do not start at zero.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hnefi.engine.evaluators import files
from hnefi.engine.evaluators.network import Network
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.wording import shorten

from .options import OptionError

TIED = ("hingston2007",)
"""Networks whose weights can be tied."""

DEFAULT = "default"
MARK = "#sha256="

Cell = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Encoding:
    """Maps a free vector of `size` numbers to weights: weight i is number `places[i]`."""

    size: int
    places: Any = None

    def weights(self, free: Any) -> Any:
        """The weights (..., all) of free vectors (..., size)."""
        return free if self.places is None else free[..., self.places]


def encoding(network: Network, variant: AnyVariant, symmetric: str) -> Encoding:
    """The encoding of a network's weights; OptionError if they cannot be tied."""
    if symmetric == "none":
        return Encoding(network.count(variant))
    if network.name not in TIED or variant.game != "tafl":
        raise OptionError(f"symmetric: 'tied' with {network.name}: expected network {' or '.join(TIED)}")
    return tied(network, variant)


def tied(network: Network, variant: Any) -> Encoding:
    """An encoding with one number for all weights that symmetries of board and rules map to each other, so that a
    position and its images have the same value: windows share the weights of their images, and every hidden unit has
    the same weight for all images of a window."""
    from hnefi.engine.games.tafl.symmetry import symmetries

    n = variant.files
    count = network.count(variant)
    least = np.arange(count)
    for turn in symmetries(variant.rules):
        least = np.minimum(least, _moved(network, variant, turn, n))
    _, places = np.unique(least, return_inverse=True)
    return Encoding(int(places.max()) + 1, places)


def _moved(network: Network, variant: Any, turn: int, n: int) -> Any:
    """The weight to which a symmetry maps each weight of the genome."""
    moved = np.arange(network.count(variant))
    number = network.split(variant, moved.copy())
    weights = [*number["vertical"], *number["horizontal"], *number["patch"]]
    biases = [*number["vertical_bias"], *number["horizontal_bias"], *number["patch_bias"]]
    windows = [list(cells) for cells in _windows(n)]
    place = {frozenset(cells): feature for feature, cells in enumerate(windows)}
    for feature, cells in enumerate(windows):
        images = [_image(cell, turn, n) for cell in cells]
        target = place[frozenset(images)]
        order = {cell: i for i, cell in enumerate(windows[target])}
        moved[weights[feature].ravel()] = weights[target].ravel()[[order[cell] for cell in images]]
        moved[biases[feature]] = biases[target]
        moved[number["hidden"][:, feature]] = number["hidden"][:, target]
    return moved


def _windows(n: int) -> Iterator[list[Cell]]:
    """The cells (row, column) of every window: windows in the order of the features, cells in the order of weights."""
    strips = range(n - 2)
    shapes = [(0, s, n, 3) for s in strips]
    shapes += [(s, 0, 3, n) for s in strips]
    shapes += [(r, c, 3, 3) for r in strips for c in strips]
    for row, column, rows, columns in shapes:
        yield [(r, c) for r in range(row, row + rows) for c in range(column, column + columns)]


def _image(cell: Cell, turn: int, n: int) -> Cell:
    """The image of a cell (row 0 is the top rank) under the same eight symmetries as for squares."""
    row, column = cell
    file, rank = column, n - 1 - row
    if turn & 1:
        file = n - 1 - file
    if turn & 2:
        rank = n - 1 - rank
    if turn & 4:
        file, rank = rank, file
    return n - 1 - rank, file


def starting_weights(
    text: str, network: Network, variant: AnyVariant, code: Encoding, *, option: str = "start"
) -> tuple[str, Any]:
    """The weights that `text`, the value of `option`, names, and a text that identifies exactly these weights.

    `default` is the architecture's own start; anything else is a file. The returned text has its path as given, because
    archives are published, and its SHA-256. OptionError if there are no weights, if they do not fit the network, or if
    the file's SHA-256 is no longer the one in `text`.
    """
    if code.places is not None:
        raise OptionError(f"{option}: {shorten(text)} with symmetric=tied: expected symmetric=none")
    if text == DEFAULT:
        made = getattr(network.module, "default", None)
        if made is None:
            raise OptionError(
                f"{option}: 'default' with {network.name}: expected a file, or network linear or linear-threats"
            )
        return text, network.join(variant, made(variant))
    name, _, noted = text.partition(MARK)
    path = Path(name)
    try:
        evaluator = files.load(path, variant, any_rules=True)
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except (files.EvaluatorError, OSError) as error:
        raise OptionError(f"{option}: {error}") from None
    if noted and noted != found:
        raise OptionError(
            f"{option}: {path}: has changed since the run began (SHA-256 {found}, then {shorten(noted)})"
        )
    weights = files.genome(evaluator)
    if evaluator.network != network or len(weights) != network.count(variant):
        raise OptionError(
            f"{option}: {path}: is {evaluator.network.text}: expected {network.text} on this board"
        )
    return f"{path}{MARK}{found}", weights
