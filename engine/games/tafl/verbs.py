"""Tafl's kernels under the names every game has."""

from __future__ import annotations

from numba import from_dtype
from numba.extending import overload

from ... import verbs
from ...compile.jit import BINDING
from . import draw, judge, looming, noisy, strike, survey
from .state import TAFL

STATE = from_dtype(TAFL)

# Each overload must be a plain module-level function: one made by a factory never hits numba's disk cache.


@overload(verbs.generate, jit_options=BINDING)
def _generate(state, top):
    if state == STATE:
        return lambda state, top: judge.generate(state, top)


@overload(verbs.generate_noisy, jit_options=BINDING)
def _generate_noisy(state, top):
    if state == STATE:
        return lambda state, top: noisy.generate_noisy(state, top)


@overload(verbs.make, jit_options=BINDING)
def _make(state, move):
    if state == STATE:
        return lambda state, move: strike.make(state, move)


@overload(verbs.undo, jit_options=BINDING)
def _undo(state):
    if state == STATE:
        return lambda state: strike.undo(state)


@overload(verbs.adjudicate, jit_options=BINDING)
def _adjudicate(state, root):
    if state == STATE:
        return lambda state, root: judge.adjudicate(state, root)


@overload(verbs.stuck, jit_options=BINDING)
def _stuck(state):
    if state == STATE:
        return lambda state: judge.stuck(state)


@overload(verbs.can_move, jit_options=BINDING)
def _can_move(state):
    if state == STATE:
        return lambda state: judge.can_move(state)


@overload(verbs.horizon, jit_options=BINDING)
def _horizon(state):
    if state == STATE:
        return lambda state: judge.horizon(state)


@overload(verbs.weight, jit_options=BINDING)
def _weight(state, move):
    if state == STATE:
        return lambda state, move: noisy.weight(state, move)


@overload(verbs.win_at_once, jit_options=BINDING)
def _win_at_once(state, top):
    if state == STATE:
        return lambda state, top: looming.win_at_once(state, top)


@overload(verbs.looming, jit_options=BINDING)
def _looming(state, top):
    if state == STATE:
        return lambda state, top: looming.looming(state, top)


@overload(verbs.skip, jit_options=BINDING)
def _skip(state):
    if state == STATE:
        return lambda state: looming.skip(state)


@overload(verbs.unskip, jit_options=BINDING)
def _unskip(state):
    if state == STATE:
        return lambda state: looming.unskip(state)


@overload(verbs.image_key, jit_options=BINDING)
def _image_key(state, squares):
    if state == STATE:
        return lambda state, squares: survey.image_key(state, squares)


@overload(verbs.random_move, jit_options=BINDING)
def _random_move(state):
    if state == STATE:
        return lambda state: draw.random_move(state)


verbs.KERNELS.update(
    {
        ("generate", TAFL): judge.generate,
        ("generate_noisy", TAFL): noisy.generate_noisy,
        ("make", TAFL): strike.make,
        ("undo", TAFL): strike.undo,
        ("adjudicate", TAFL): judge.adjudicate,
        ("stuck", TAFL): judge.stuck,
        ("can_move", TAFL): judge.can_move,
        ("horizon", TAFL): judge.horizon,
        ("weight", TAFL): noisy.weight,
        ("win_at_once", TAFL): looming.win_at_once,
        ("looming", TAFL): looming.looming,
        ("skip", TAFL): looming.skip,
        ("unskip", TAFL): looming.unskip,
        ("image_key", TAFL): survey.image_key,
        ("random_move", TAFL): draw.random_move,
    }
)
