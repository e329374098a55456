"""The evolution strategy: one generation against the paper's lines written out, and each of its readings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hnefi.tools.evolve import options
from hnefi.tools.evolve.algorithm import Purpose, digest, game_seeds, generator
from hnefi.tools.evolve.es import EvolutionStrategy, learning_rates

N = 50
SEED = 3


def strategy(**said: Any) -> EvolutionStrategy:
    return EvolutionStrategy(N, SEED, options.complete("es", said, N, lambda: 100))


def the_paper(state: Any, generation: int) -> tuple[list[Any], list[Any]]:
    """Lines 3 to 6 of the printed algorithm, from the same draws."""
    sigmas, weights = [], []
    for k in range(5):
        draw = generator(SEED, generation, Purpose.MUTATE, k)
        tau, tau_dash = 1 / math.sqrt(2 * N), 1 / math.sqrt(2 * math.sqrt(N))
        common = draw.standard_normal()
        own = [draw.standard_normal() for _ in range(N)]
        steps = [draw.standard_normal() for _ in range(N)]
        sigma = [state["sigmas"][k][j] * math.exp(tau_dash * common + tau * own[j]) for j in range(N)]
        sigmas.append(sigma)
        weights.append([state["weights"][k][j] + sigma[j] * steps[j] for j in range(N)])
    return weights, sigmas


def test_a_generation_is_that_of_the_paper() -> None:
    es = strategy()
    state = es.begin()
    assert state["weights"].shape == (5, N)
    np.testing.assert_array_equal(state["sigmas"], np.full((5, N), 1 / math.sqrt(N)))
    np.testing.assert_allclose(
        state["weights"], generator(SEED, 0, Purpose.START).standard_normal((5, N)) / N, rtol=1e-15
    )
    for generation in (1, 2, 3):
        weights, sigmas = the_paper(state, generation)
        population = es.ask(state, generation)
        np.testing.assert_array_equal(population.genomes[:5], state["weights"])
        np.testing.assert_allclose(population.genomes[5:], weights, rtol=1e-12)
        fitness = np.random.default_rng(generation).permutation(10).astype(float)
        everybody = [*zip(state["weights"], state["sigmas"], strict=True), *zip(weights, sigmas, strict=True)]
        best = sorted(range(10), key=lambda i: -fitness[i])[:5]
        state, champion = es.tell(state, generation, population, fitness)
        assert champion == best[0]
        np.testing.assert_allclose(state["weights"], [everybody[i][0] for i in best], rtol=1e-12)
        np.testing.assert_allclose(state["sigmas"], [everybody[i][1] for i in best], rtol=1e-12)


def test_rates_are_those_of_the_paper() -> None:
    """At 2,463 weights, as printed: 0.1004 in common, 0.01425 of one's own; Schwefel has them the other way round."""
    common, own = learning_rates(2463, "printed")
    assert (round(common, 4), round(own, 5)) == (0.1004, 0.01425)
    assert learning_rates(2463, "schwefel") == (own, common)
    values = options.complete("es", {}, 2463, lambda: 100)
    assert (round(values["sigma0"], 5), round(values["init_scale"], 6)) == (0.02015, 0.000406)


def moves(**said: Any) -> tuple[Any, Any]:
    """How far the children of given parents go, and their step sizes."""
    es = strategy(**said)
    state = dict(es.begin())
    state["sigmas"] = np.arange(1, 6)[:, None] * np.ones((1, N))
    population = es.ask(state, 1)
    return population.genomes[5:] - state["weights"], population.memo[5:]


def test_step_sizes_are_inherited_as_told() -> None:
    own, first, mean = (moves(inherit=word)[1] for word in ("own", "first", "mean"))
    np.testing.assert_allclose(own, first * np.arange(1, 6)[:, None])
    np.testing.assert_allclose(mean, first * 3)


def test_one_number_for_all_weights() -> None:
    steps, sigmas = moves(step="vector")
    np.testing.assert_allclose(np.ptp(steps / sigmas, axis=1), 0, atol=1e-12)
    steps, sigmas = moves(step="weight")
    assert np.ptp(steps / sigmas, axis=1).min() > 1


def test_step_sizes_have_a_floor() -> None:
    assert moves(sigma_min=2.5)[1].min() == 2.5


@pytest.mark.parametrize(("tie", "expected"), [("parents", {0, 1, 2, 3, 4}), ("children", {5, 6, 7, 8, 9})])
def test_ties_go_to_whom_they_are_promised(tie: str, expected: set[int]) -> None:
    es = strategy(tie=tie)
    assert set(es._order(1, np.zeros(10))[:5]) == expected


def test_ties_are_drawn_from_the_runs_stream() -> None:
    es = strategy()
    orders = {tuple(es._order(generation, np.zeros(10))) for generation in range(1, 20)}
    assert len(orders) == 19
    assert tuple(es._order(1, np.zeros(10))) in orders


def test_a_surviving_child_may_move_its_parent_only_a_little() -> None:
    es = strategy(average=0.05)
    state = es.begin()
    population = es.ask(state, 1)
    fitness = np.arange(10.0)
    after, champion = es.tell(state, 1, population, fitness)
    assert champion == 9
    parents, children = population.genomes[4::-1], population.genomes[9:4:-1]
    np.testing.assert_allclose(after["weights"], 0.95 * parents + 0.05 * children, rtol=1e-9)
    assert np.isnan(after["fitness"]).all()


def test_parents_keep_their_fitness_if_told_so() -> None:
    es = strategy(reevaluate="no")
    first = es.ask(es.begin(), 1)
    assert np.isnan(first.known).all()
    state, _ = es.tell(es.begin(), 1, first, np.arange(10.0))
    np.testing.assert_array_equal(es.ask(state, 2).known[:5], [9, 8, 7, 6, 5])
    assert np.isnan(es.ask(state, 2).known[5:]).all()
    assert np.isnan(strategy().ask(state, 2).known).all()


def test_whose_child_it_is_is_known() -> None:
    es = strategy(mu=2, **{"lambda": 5})
    state = es.begin()
    population = es.ask(state, 1)
    for place, parent in enumerate([0, 1, 0, 1, 0], 2):
        np.testing.assert_array_equal(population.parents[place], digest(state["weights"][parent]))
    state, _ = es.tell(state, 1, population, np.arange(7.0))
    np.testing.assert_array_equal(state["parents"], population.parents[[6, 5]])
    np.testing.assert_array_equal(state["born"], [1, 1])
    assert not population.parents[:2].any()


def test_streams_have_nothing_in_common() -> None:
    keys = [(1, 1, Purpose.MUTATE, 0), (2, 1, Purpose.MUTATE, 0), (1, 2, Purpose.MUTATE, 0), (1, 1, Purpose.SELECT, 0),
            (1, 1, Purpose.MUTATE, 1)]  # fmt: skip
    first = {float(generator(*key).standard_normal()) for key in keys}
    assert len(first) == len(keys)
    pair, game = np.meshgrid(np.arange(1000), np.arange(2), indexing="ij")
    seeds = np.concatenate([game_seeds(1, g, p, pair, game).ravel() for g in (1, 2) for p in (10, 11)])
    assert len(set(seeds.tolist())) == 8000
    assert int(game_seeds(1, 1, 10, 5, 1)) == int(game_seeds(1, 1, 10, pair, game)[5, 1])
    assert int(game_seeds(1, 1, 10, 5, 1)) != int(game_seeds(2, 1, 10, 5, 1))
