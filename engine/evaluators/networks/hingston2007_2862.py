"""The evolved network of 2007 with the 2,862 weights that its source counts (kernel).

The description in the source yields 2,463 weights on 11 x 11 (`hingston2007.py`), and no reading of it yields the
2,862 that the source states. This variant does: three more sigmoid features that look at the whole board, and a bias
on each raw input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...compile.jit import entry, kernel
from . import hingston2007
from .hingston2007 import (  # noqa: F401
    GAMES,
    OPTIONS,
    SCALE,
    SOURCE,
    conclude,
    conclude_slopes,
    layout,
    look,
    look_slopes,
    sigmoid,
    window,
    window_slopes,
)

NUMBER = 12
WHOLE = 3
"""Features that look at the whole board."""


def shapes(variant: Any, options: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays by name, in the order of the weights."""
    n = variant.files
    plain = hingston2007.shapes(variant, options)
    hidden, features = plain["hidden"]
    return {
        **{
            name: shape
            for name, shape in plain.items()
            if name.startswith(("vertical", "horizontal", "patch"))
        },
        "board": (WHOLE, n, n),
        "board_bias": (WHOLE,),
        "raw_bias": (3,),
        **{name: plain[name] for name in ("hidden", "hidden_bias", "output", "output_bias")},
        "hidden": (hidden, features + WHOLE),
    }


def naive(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> float:
    """The value for side `a` in float64: a slow, obvious reference for the kernel."""
    board = hingston2007.picture(variant, position)
    seen = hingston2007.naive_windows(arrays, board)
    for weights, bias in zip(arrays["board"], arrays["board_bias"], strict=True):
        seen.append(hingston2007.naive_sigmoid(float((weights * board).sum()) + bias))
    raw = (*position.taken, 1 if position.side == 0 else 0)
    seen += [x + bias for x, bias in zip(raw, arrays["raw_bias"], strict=True)]
    return hingston2007.naive_conclusion(arrays, seen)


@entry
def value(p, s):
    """The value for the attackers: the output unit before its sigmoid."""
    n = p["shape"][hingston2007.SIZE]
    strips = n - 2
    f = 2 * strips + strips * strips
    at = look(p, s)
    bias = at + WHOLE * n * n
    for i in range(WHOLE):
        p.inputs[f + i] = sigmoid(window(p, s, n, 0, 0, n, n, at + i * n * n) + p.weights[bias + i])
    f += WHOLE
    bias += WHOLE
    p.inputs[f] = s.taken[0] + p.weights[bias]
    p.inputs[f + 1] = s.taken[1] + p.weights[bias + 1]
    p.inputs[f + 2] = (1.0 if s.side == 0 else 0.0) + p.weights[bias + 2]
    return conclude(p, f + 3, bias + 3)


@kernel
def slopes(p, s, g):
    """Write the slopes of the value by all weights to `g.slope`; must run right after `value`."""
    n = p["shape"][hingston2007.SIZE]
    strips = n - 2
    f = 2 * strips + strips * strips
    at = 2 * (3 * n * strips + strips) + strips * strips * hingston2007.PATCH
    bias = at + WHOLE * n * n
    conclude_slopes(p, g, f + WHOLE + 3, bias + WHOLE + 3)
    for i in range(WHOLE):
        feature = p.inputs[f + i]
        error = g.errors[0, f + i] * feature * (1.0 - feature)
        window_slopes(s, g, n, 0, 0, n, n, at + i * n * n, error)
        g.slope[bias + i] = error
        g.slope[bias + WHOLE + i] = g.errors[0, f + WHOLE + i]
    look_slopes(p, s, g)
