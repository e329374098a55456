"""Fitted weights as the files that `engine/evaluators/tafl_weights.py` reads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hnefi.engine.evaluators import tafl
from hnefi.engine.evaluators.tafl_weights import family

from .regression import COLUMNS, SIXTEENTHS, UNHINDERED, WIDTH, Fit

if TYPE_CHECKING:
    from pathlib import Path

    from hnefi.engine.games.tafl.variant import Variant

MOST = 2000
"""Centipawns that no weight exceeds."""


def in_force(variant: Variant) -> Any:
    """The weights that a variant has now, flattened, in centipawns."""
    record = tafl.parameters(variant)[0]
    weights = np.zeros(WIDTH)
    for name, _ in tafl.WEIGHTS:
        weights[COLUMNS[name]] = np.asarray(record[name], float).ravel() / SIXTEENTHS
    return weights


def write(folder: Path, variant: Variant, found: Fit, stretch: float, command: str) -> None:
    """Write one file of weights; OSError if it cannot be."""
    lines = [
        "# " + " ".join(map(str, family(variant))),
        "# Goal on the edge (1) or in corners (0), sides that take the king, size, attackers, defenders.",
        f"# {command}",
        f"# {found.positions} quiet positions of {found.games} games; loss on held out games {found.loss:.4f}, of no",
        f"# evaluation {found.loss_of_nothing:.4f}. Sixteenths of a centipawn, for the attackers; tafl.py names them.",
    ]
    for name, shape in tafl.WEIGHTS:
        values = found.weights[COLUMNS[name]] * stretch
        if name == "road":
            # Where the king is to move there is nothing to fit: he escapes.
            values = np.concatenate([values[:4], [0, UNHINDERED, UNHINDERED, UNHINDERED]])
        whole = np.clip(np.rint(values * SIXTEENTHS), -MOST * SIXTEENTHS, MOST * SIXTEENTHS).astype(int)
        lines.append(f"{name} = {_text(whole.reshape(shape).tolist())}")
    (folder / f"{variant.name}.toml").write_text("\n".join(lines) + "\n", "ascii")


def _text(values: Any) -> str:
    """A whole number, a list of them, or a list of such lists with one in each line."""
    if (
        isinstance(values, list)
        and values
        and isinstance(values[0], list)
        and math.prod(map(len, values)) > 16
    ):
        return "[\n" + "".join(f"  {_text(line)},\n" for line in values) + "]"
    return str(values)
