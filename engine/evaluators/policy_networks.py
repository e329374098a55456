"""Policy networks loaded from files: their record, and dispatch by the number of the architecture (kernels).

They are separate from `loaded.py` because their record is ten times as large, and evolution holds whole populations of
the others in memory. Weights are float32. One forward pass gives policy and value, and is skipped if the inputs are
those of the previous pass, so that a search that asks for one after the other pays once.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np

from ..catalogue import GAMES
from ..compile.jit import entry, inline, kernel
from ..games.hex import kernels  # noqa: F401  binds the verbs that a search calls
from ..games.hex.state import HEX
from ..games.hexapawn.kernels import HEXAPAWN
from ..games.interface import bind, move_index
from ..games.tafl.state import TAFL
from .loaded import centipawns
from .networks import policy_mlp, residual

MOST_WEIGHTS = 1 << 17
MOST_INPUTS = 1 << 12
MOST_UNITS = 1 << 15
"""Units of a layer, the policy included: 4 * 19 * 19 * 18 moves are 25,992."""

POLICY_NET = np.dtype(
    [
        ("architecture", "i8"),  # NUMBER of its file in `networks`; UNIFORM for a uniform policy and value 0
        ("scale", "f8"),  # centipawns per unit of the value
        ("shape", "i8", (16,)),  # what `layout` returns, then zeros
        ("passes", "i8"),  # forward passes made so far
        ("seen", "i8"),  # number of inputs of the last pass; 0: there was none
        ("value", "f4"),  # of the side to move, before tanh
        ("weights", "f4", (MOST_WEIGHTS,)),  # all arrays in order, flattened
        ("inputs", "u1", (MOST_INPUTS,)),
        ("known", "u1", (MOST_INPUTS,)),  # inputs of the last pass
        ("policy", "f4", (MOST_UNITS,)),  # by `move_index`, before the softmax
        ("units", "f4", (2, MOST_UNITS)),  # scratch
        ("more", "f4", (MOST_UNITS,)),  # scratch
    ],
    align=True,
)


@kernel
def known(p, f):
    """Whether the last pass had these `f` inputs. If not, stores them for the pass that the caller makes next."""
    same = p.seen == f
    if same:
        for i in range(f):
            if p.inputs[i] != p.known[i]:
                same = False
                break
    if not same:
        p.seen = f
        p.passes += 1
        for i in range(f):
            p.known[i] = p.inputs[i]
    return same


@kernel
def think_tafl(p, s):
    """Compute policy and value of a position, unless the last pass did."""
    if p.architecture == policy_mlp.NUMBER:
        f = policy_mlp.tafl_inputs(p, s)
        if not known(p, f):
            policy_mlp.forward(p, f)
    elif p.architecture == residual.NUMBER:
        f = residual.tafl_inputs(p, s)
        if not known(p, f):
            residual.forward(p, s.side)


@kernel
def think_hex(p, s):
    """Compute policy and value of a position, unless the last pass did."""
    if p.architecture == policy_mlp.NUMBER:
        f = policy_mlp.hex_inputs(p, s)
        if not known(p, f):
            policy_mlp.forward(p, f)
    elif p.architecture == residual.NUMBER:
        f = residual.hex_inputs(p, s)
        if not known(p, f):
            residual.forward(p, s.side)


@kernel
def think_hexapawn(p, s):
    """Compute policy and value of a position, unless the last pass did."""
    if p.architecture == policy_mlp.NUMBER:
        f = policy_mlp.hexapawn_inputs(p, s)
        if not known(p, f):
            policy_mlp.forward(p, f)


@inline
def for_attackers(p, s):
    """The value for side `a` as a logit, using tanh(x) = 2 sigmoid(2 x) - 1."""
    return np.float64(p.value) * (2.0 if s.side == 0 else -2.0)


@inline
def write_priors(p, s, end, priors):
    """Write the softmax over the legal moves `s.moves[:end]` to `priors`, not normalised."""
    largest = -np.inf
    for i in range(end):
        priors[i] = p.policy[move_index(s, int(s.moves[i]))]
        largest = max(largest, priors[i])
    for i in range(end):
        priors[i] = np.exp(priors[i] - largest)


@entry
def tafl_value(p, s):
    """The value for the attackers, a logit."""
    think_tafl(p, s)
    return for_attackers(p, s)


@entry
def hex_value(p, s):
    """The value for side `a`, a logit."""
    think_hex(p, s)
    return for_attackers(p, s)


@entry
def hexapawn_value(p, s):
    """The value for white, a logit."""
    think_hexapawn(p, s)
    return for_attackers(p, s)


@entry
def tafl_evaluate(p, s):
    """The value for the side to move, in centipawns."""
    return centipawns(p, s, tafl_value(p, s))


@entry
def hex_evaluate(p, s):
    """The value for the side to move, in centipawns."""
    return centipawns(p, s, hex_value(p, s))


@entry
def hexapawn_evaluate(p, s):
    """The value for the side to move, in centipawns."""
    return centipawns(p, s, hexapawn_value(p, s))


@entry
def tafl_policy(p, s, end, priors):
    """Write the priors of the legal moves `s.moves[:end]`, not normalised, to `priors`."""
    think_tafl(p, s)
    write_priors(p, s, end, priors)


@entry
def hex_policy(p, s, end, priors):
    """Write the priors of the legal moves `s.moves[:end]`, not normalised, to `priors`."""
    think_hex(p, s)
    write_priors(p, s, end, priors)


@entry
def hexapawn_policy(p, s, end, priors):
    """Write the priors of the legal moves `s.moves[:end]`, not normalised, to `priors`."""
    think_hexapawn(p, s)
    write_priors(p, s, end, priors)


@entry
def uniform_value(p, s):
    """Every position is worth 0."""
    return 0.0


@entry
def uniform_evaluate(p, s):
    """As `uniform_value`, in centipawns for the side to move."""
    return 0


@entry
def uniform_policy(p, s, end, priors):
    """Give every move the same prior."""
    for i in range(end):
        priors[i] = 1.0


_BOUND = {
    "tafl": (TAFL, tafl_value, tafl_evaluate, tafl_policy),
    "hex": (HEX, hex_value, hex_evaluate, hex_policy),
    "hexapawn": (HEXAPAWN, hexapawn_value, hexapawn_evaluate, hexapawn_policy),
}
for _game in GAMES:
    if _game in _BOUND:
        _state, _value, _evaluate, _policy = _BOUND[_game]
    else:
        _kernels = import_module(f"..games.{_game}.kernels", __package__)
        _state = getattr(_kernels, _game.upper())
        _value, _evaluate, _policy = uniform_value, uniform_evaluate, uniform_policy
    bind(POLICY_NET, _state, value=_value, evaluate=_evaluate, policy=_policy)
