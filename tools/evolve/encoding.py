"""From what evolves to the weights of a network: all of them, or one number for all that symmetry makes equal;
and the weights with which a run begins when it does not begin at zero.
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
    """A free vector of `size` numbers and the weights it stands for: weight i is number `places[i]`."""

    size: int
    places: Any = None

    def weights(self, free: Any) -> Any:
        """The weights (..., all) of free vectors (..., size)."""
        return free if self.places is None else free[..., self.places]


def encoding(network: Network, variant: AnyVariant, symmetric: str) -> Encoding:
    """How a network's weights are coded; OptionError if they cannot be tied."""
    if symmetric == "none":
        return Encoding(network.count(variant))
    if network.name not in TIED or variant.game != "tafl":
        raise OptionError(f"symmetric: 'tied' with {network.name}: expected network {' or '.join(TIED)}")
    return tied(network, variant)


def tied(network: Network, variant: Any) -> Encoding:
    """Weights that a symmetry of board and rules maps to each other are one number, so that the value of a position is
    that of all its images: windows share the weights of their images, and every hidden unit listens to all images of a
    window alike."""
    from hnefi.engine.games.tafl.symmetry import symmetries

    n = variant.files
    count = network.count(variant)
    least = np.arange(count)
    for turn in symmetries(variant.rules):
        least = np.minimum(least, _moved(network, variant, turn, n))
    _, places = np.unique(least, return_inverse=True)
    return Encoding(int(places.max()) + 1, places)


def _moved(network: Network, variant: Any, turn: int, n: int) -> Any:
    """Where a symmetry takes each weight of the genome."""
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
    """The cells (row, column) of every window in the order of the features, each in the order of its weights."""
    strips = range(n - 2)
    shapes = [(0, s, n, 3) for s in strips]
    shapes += [(s, 0, 3, n) for s in strips]
    shapes += [(r, c, 3, 3) for r in strips for c in strips]
    for row, column, rows, columns in shapes:
        yield [(r, c) for r in range(row, row + rows) for c in range(column, column + columns)]


def _image(cell: Cell, turn: int, n: int) -> Cell:
    """Where a cell goes, row 0 being the top rank: the same eight symmetries as those of squares."""
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
    """The weights that `text`, the value of `option`, stands for, and the text that stands for these very ones.

    `default` is the architecture's own start. All else is a file; the text is its path as given, since archives are
    published, and its SHA-256. OptionError if there are no weights, if they are not the network's, or if the file is
    no longer the one whose SHA-256 was noted.
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
