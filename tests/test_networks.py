"""Loadable evaluators: kernels against the slow and obvious forms of the same networks."""

from __future__ import annotations

import numpy as np
import pytest

from hnefi.engine import games, verbs
from hnefi.engine.evaluators import loaded as _loaded  # noqa: F401 - its import binds the verbs
from hnefi.engine.evaluators import network


@pytest.mark.parametrize(("size", "weights"), [(7, 871), (9, 1563), (11, 2463), (13, 3571), (19, 8143)])
def test_hingston_has_as_many_weights_as_the_formula_says(size: int, weights: int) -> None:
    variant = next(v for v in games.everything() if v.game == "tafl" and v.files == size)
    assert network.parse("hingston2007").count(variant) == weights


@pytest.mark.parametrize("name", network.NAMES)
@pytest.mark.parametrize("variant_name", ["hingston-original", "brandubh", "copenhagen"])
def test_kernel_equals_the_naive_network(name: str, variant_name: str) -> None:
    variant, net, random = games.find(variant_name), network.parse(name), np.random.default_rng(7)
    genome = random.normal(0, 0.3, net.count(variant))
    arrays, record = net.split(variant, genome), net.record(variant, genome)
    position = games.initial(variant)
    for _ in range(60):
        if position.outcome is not None:
            break
        naive = net.module.naive(variant, net.options, arrays, position)
        assert verbs.value(record[0], position.new_record()[0]) == pytest.approx(naive, abs=1e-12)
        moves = position.legal_moves()
        position = position.play(moves[random.integers(len(moves))])


def test_networks_are_named_with_their_sizes() -> None:
    variant = games.find("copenhagen")
    assert network.parse("hingston2007:hidden=20").count(variant) == 2463 + 10 * (102 + 2)
    for text in (
        "nothing",
        "hingston2007:hidden=0",
        "hingston2007:width=3",
        "hingston2007:hidden",
        "simple:a=1",
    ):
        with pytest.raises(ValueError, match="expected"):
            network.parse(text)
