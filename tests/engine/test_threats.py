"""`linear-threats`: what each threat is, position by position, and the same by walks of all men on every rule set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_games import positions

from hnefi.engine import games
from hnefi.engine.evaluators import network
from hnefi.engine.evaluators.networks import linear_threats
from hnefi.engine.games import interface as verbs

NET = network.parse("linear-threats")
TAFL = [variant.name for variant in games.everything() if variant.game == "tafl"]


def seen(name: str, fen: str) -> dict[str, list[float]]:
    """The features that the kernel finds, by name; the slow form finds the same."""
    variant = games.find(name)
    position = games.from_fen(variant, fen)
    genome = np.random.default_rng(7).normal(0, 0.3, NET.count(variant))
    record = NET.record(variant, genome)[0]
    value = verbs.value(record, position.new_record()[0])
    assert value == pytest.approx(NET.naive(variant, NET.split(variant, genome), position), abs=1e-9)
    found, at = {}, 0
    for feature, weights in linear_threats.FEATURES.items():
        found[feature] = record["inputs"][at : at + weights].tolist()
        at += weights
    return found


@pytest.mark.parametrize(
    ("fen", "road"),
    [
        pytest.param("7/7/7/2t4/K6/7/7 d", [0, 0, 0, 1], id="the king leaves"),
        pytest.param("7/7/7/2t4/K6/7/7 a", [0, 0, 1, 0], id="two ways cannot both be shut"),
        pytest.param("7/t6/7/7/K6/6t/7 a", [1, 0, 0, 0], id="one way, and a man who can step into it"),
        pytest.param("7/t6/7/7/K6/7/7 a", [0, 1, 0, 0], id="one way, and nobody near"),
        pytest.param("7/t6/7/7/1K5/7/7 a", [0, 0, 0, 0], id="none"),
    ],
)
def test_ways_of_the_king(fen: str, road: list[int]) -> None:
    assert seen("brandubh", fen)["road"] == road


@pytest.mark.parametrize(
    ("fen", "fork"),
    [
        pytest.param("7/7/7/6t/2K4/7/7 a", [1, 0], id="the edge is free on both sides"),
        pytest.param("7/7/7/6t/2K4/7/7 d", [0, 1], id="his move"),
        pytest.param("1t5/7/t6/2t4/2K4/6t/1t5 d", [0, 0], id="each edge is held somewhere"),
    ],
)
def test_squares_between_two_goals(fen: str, fork: list[int]) -> None:
    assert seen("brandubh", fen)["fork"] == fork


@pytest.mark.parametrize(
    ("name", "fen", "menace"),
    [
        pytest.param("brandubh", "7/7/2tK3/7/4t2/7/7 a", [1, 0, 0], id="a man comes to the far side"),
        pytest.param("brandubh", "7/7/2tK3/7/4t2/7/7 d", [0, 1, 0], id="he would, next"),
        pytest.param("brandubh", "7/3t3/2tK3/7/2t1t2/7/7 d", [0, 1, 0], id="on one square of two"),
        pytest.param("brandubh", "7/3t3/2tK3/7/4t2/5t1/3t3 d", [0, 1, 0], id="the throne lies between"),
        pytest.param("brandubh", "7/7/2tK3/7/5t1/7/7 a", [0, 0, 0], id="nobody comes there"),
        pytest.param("hingston-original", "11/11/11/3t7/2tKt6/11/3t7/11/11/11/11 a", [1, 0, 0], id="four sides"),
        pytest.param("hingston-original", "11/11/11/11/2tKt6/11/3t7/11/11/11/11 a", [0, 0, 0], id="three of four"),
        pytest.param("hingston-alternative", "11/11/11/11/2tK7/11/4t6/11/11/11/11 a", [1, 0, 0], id="as a man"),
    ],
)  # fmt: skip
def test_who_could_take_the_king(name: str, fen: str, menace: list[int]) -> None:
    assert seen(name, fen)["menace"] == menace


@pytest.mark.parametrize(
    ("fen", "hunt", "raid"),
    [
        pytest.param("7/7/2tT3/7/K3t2/7/7 a", [1, 0, 0, 0], [0, 0, 0, 0], id="a defender falls"),
        pytest.param("7/7/2tT3/7/K3t2/7/7 d", [0, 0, 1, 0], [0, 0, 0, 0], id="it would"),
        pytest.param("7/7/2tTTt1/7/K6/7/7 a", [0, 0, 0, 0], [0, 0, 0, 0], id="two in a row stand"),
        pytest.param("7/7/2Tt3/7/K3T2/7/7 d", [0, 0, 0, 0], [1, 0, 0, 0], id="an attacker falls"),
        pytest.param("7/7/2Tt3/7/K3T2/7/7 a", [0, 0, 0, 0], [0, 0, 1, 0], id="it would, if nobody moved"),
        pytest.param("7/1t5/1T5/1t5/7/K3t2/3t3 a", [0, 0, 0, 0], [0, 0, 0, 0], id="nobody between two"),
        pytest.param("7/7/2tT3/4t2/1T5/6K/7 a", [1, 0, 0, 0], [0, 0, 1, 0], id="each one"),
        pytest.param("7/1tT2t1/7/6K/1tT2t1/7/7 a", [1, 1, 0, 0], [0, 0, 0, 0], id="two of them"),
    ],
)
def test_men_that_hang(fen: str, hunt: list[int], raid: list[int]) -> None:
    found = seen("brandubh", fen)
    assert (found["hunt"], found["raid"]) == (hunt, raid)


@pytest.mark.parametrize("name", TAFL)
def test_the_kernel_sees_what_the_slow_form_sees(name: str) -> None:
    variant = games.find(name)
    genome = np.random.default_rng(7).normal(0, 0.3, NET.count(variant))
    arrays, record = NET.split(variant, genome), NET.record(variant, genome)[0]
    for position in positions(variant, 24)[::3]:
        value = verbs.value(record, position.new_record()[0])
        assert value == pytest.approx(NET.naive(variant, arrays, position), abs=1e-9)


@pytest.mark.parametrize("name", TAFL)
def test_weights_to_begin_with_fit_every_board(name: str) -> None:
    variant = games.find(name)
    arrays: dict[str, Any] = linear_threats.default(variant)
    assert {key: array.shape for key, array in arrays.items()} == NET.shapes(variant)
    start = NET.record(variant, NET.join(variant, arrays))[0]
    assert abs(verbs.value(start, games.initial(variant).new_record()[0])) < 1000
