"""The slopes of evaluators by their weights: kernels against finite differences of the values."""

from __future__ import annotations

import numpy as np
import pytest
from random_games import positions

from hnefi.engine import games
from hnefi.engine.evaluators import gradients, network
from hnefi.engine.games import interface as verbs

CASES = [
    ("linear", "brandubh"),
    ("linear-threats", "brandubh"),
    ("linear-tablut", "tablut-herr-7"),
    ("linear-tablut:coded", "tablut-herr-7"),
    ("linear-tablut:own", "tablut-herr-7"),
    ("mlp:5", "brandubh"),
    ("mlp:7,4,tanh", "brandubh"),
    ("mlp:6,5,4,softplus", "brandubh"),
    ("mlp:6,softsign", "brandubh"),
    ("mlp:6,3,leaky", "brandubh"),
    ("mlp:6,relu", "brandubh"),
    ("hingston2007:hidden=3", "brandubh"),
    ("hingston2007-2862:hidden=3", "brandubh"),
    ("mlp:4,3", "hex:4"),
    ("mlp:4,3", "hexapawn:4x3"),
]
STEP = 1e-5


@pytest.mark.parametrize(("text", "name"), CASES)
def test_slopes_are_finite_differences(text: str, name: str) -> None:
    variant, net = games.find(name), network.parse(text)
    count = net.count(variant)
    draw = np.random.default_rng(3)
    record = net.record(variant, draw.normal(0, 0.3, count))[0]
    slopes = np.zeros(1, gradients.GRADIENT)[0]
    seen: set[float] = set()
    for position in list(positions(variant, 24))[3::4]:
        state = position.new_record()[0]
        if "own" in text:
            record["root_side"] = position.side + 1
        slopes["slope"][:] = np.nan
        value = verbs.gradient(record, state, slopes)
        assert value == verbs.value(record, state)
        got = slopes["slope"][:count].copy()
        assert np.isnan(slopes["slope"][count:]).all()
        for i in draw.choice(count, min(count, 40), replace=False):
            ends = []
            for sign in (1, -1):
                old = float(record["weights"][i])
                record["weights"][i] = old + sign * STEP
                ends.append(verbs.value(record, state))
                record["weights"][i] = old
            assert got[i] == pytest.approx((ends[0] - ends[1]) / (2 * STEP), abs=2e-6), i
            seen.add(round(float(got[i]), 6))
    assert len(seen) > 8


def test_every_architecture_with_weights_has_slopes() -> None:
    tested = {network.parse(text).name for text, _ in CASES}
    weighed = {name for name in network.NAMES if network.Network(name).record_kind == "loaded"}
    assert tested == weighed - {"simple", "zero"}
