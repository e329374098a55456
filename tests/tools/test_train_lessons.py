"""What a network in training sees and learns: boards in views, targets, gradients, epochs, weights in whole numbers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_games import positions

from hnefi.engine import games
from hnefi.engine.evaluators import NETWORKS, files, network
from hnefi.engine.games import interface as verbs
from hnefi.engine.games.tafl.codes import PIECE
from hnefi.engine.squares import squares
from hnefi.tools.common import calibration
from hnefi.tools.train import inputs, learner
from hnefi.tools.train.games import UNKNOWN, row_type


def rows_of(name: str, number: int) -> Any:
    """Positions of random games as rows, every one with another score and result."""
    variant = games.find(name)
    cells = np.array(list(squares(variant.files)))
    rows = np.zeros(number, row_type(variant.files))
    for i, position in enumerate(positions(variant, number)):
        rows[i]["game"] = i // 4
        rows[i]["side"] = int(position.side)
        rows[i]["result"] = i % 3
        rows[i]["score"] = 37 * i % 900 - 450
        rows[i]["board"] = position.new_record()[0]["board"][cells] & PIECE
    return rows


def encoding_of(name: str, text: str = "nnue:32") -> inputs.Encoding:
    return inputs.Encoding(network.parse(text), games.find(name))  # type: ignore[arg-type]


def random_weights(encoding: inputs.Encoding) -> learner.Weights:
    weights = learner.begin(encoding, "test")
    draw = np.random.default_rng(4)
    for name in ("own", "output_bias", "king"):
        weights[name] = weights[name] + draw.normal(0, 0.1, weights[name].shape).astype(np.float32)
    return weights


# What the net sees


@pytest.mark.parametrize(("name", "text"), [("brandubh", "nnue:32"), ("berserk", "nnue:32,rings=3")])
def test_lessons_see_what_the_kernel_sees(name: str, text: str) -> None:
    encoding, rows = encoding_of(name, text), rows_of(name, 40)
    variant: Any = encoding.variant
    arrays = learner.quantised(random_weights(encoding), encoding)
    examples = encoding.examples(rows, np.zeros(len(rows)))
    said = learner.whole_logits(arrays, examples, encoding)
    evaluator = files.Evaluator(encoding.network, variant.name, variant.hash, variant.game, arrays)
    params = files.record(evaluator, variant)[0]
    for position, value in zip(positions(variant, 40), said, strict=True):
        assert verbs.value(params, position.new_record()[0]) == value
        assert encoding.network.naive(variant, arrays, position) == value
    assert len(set(said.tolist())) > 10
    real = learner.logits(random_weights(encoding), examples, encoding)
    assert np.abs(real - said).max() < 0.2
    assert np.abs(real - said).max() > 0


def test_a_drawn_view_is_that_of_an_image() -> None:
    encoding = encoding_of("brandubh")
    size, free = 7, np.random.default_rng(3)
    row = np.zeros(1, row_type(size))
    # The king stands in the middle: all eight images bring him there.
    board = row["board"][0].reshape(size, size)
    board[3, 3], board[0, 2], board[5, 6] = 14, 1, 9
    examples = encoding.examples(row, np.zeros(1))
    images = set()
    for turned in (board, board.T):
        for flipped in (turned, turned[::-1], turned[:, ::-1], turned[::-1, ::-1]):
            images.add(encoding.codes[flipped.ravel()].tobytes())
    drawn = {encoding.turn(examples, free)[0][0].astype(np.int8).tobytes() for _ in range(200)}
    assert drawn == images
    # Off the axes only one view will do, and it is the net's own.
    board[3, 3], board[4, 6] = 0, 14
    examples = encoding.examples(row, np.zeros(1))
    own = encoding.turn(examples)
    for _ in range(20):
        assert all(map(np.array_equal, encoding.turn(examples, free), own))


def test_targets_blend_scores_and_results() -> None:
    rows = np.zeros(4, row_type(7))
    rows["score"] = [0, 174, 29_500, -29_500]
    rows["result"] = [2, 1, 2, 0]
    assert inputs.targets_of(rows, 1.0, (1.0, 0.0))[:2] == pytest.approx(
        [0.5, 1 / (1 + np.exp(-1.0016))], abs=1e-3
    )
    assert inputs.targets_of(rows, 0.0, (1.0, 0.0))[:2] == pytest.approx([1.0, 0.5])
    assert inputs.targets_of(rows, 0.5, (1.0, 0.0)).tolist()[2:] == [1.0, 0.0]
    by_score = inputs.targets_of(rows, 1.0, (1.0, 0.0)).tolist()
    rows["result"] = UNKNOWN
    assert inputs.targets_of(rows, 0.3, (1.0, 0.0)).tolist() == by_score


def test_rounds_have_scales_of_their_own() -> None:
    """An evaluator that counts everything threefold, and 90 centipawns too much, teaches the same."""
    draw = np.random.default_rng(2)
    rows = np.zeros(20_000, row_type(7))
    rows["score"] = draw.integers(-300, 300, len(rows))
    rows["result"] = 2 * (draw.random(len(rows)) < 1 / (1 + np.exp(-rows["score"] / 174)))
    rows["result"][::4] = UNKNOWN
    rows["noisy"][::5] = 1
    other = rows.copy()
    other["score"] = 3 * rows["score"] + 90
    first, second = (inputs.lessons_of(given, 0.7) for given in (rows, other))
    assert len(first.rows) == len(second.rows) == 16_000
    assert len(first.scores) == len(second.results) == 15_000
    lines = [calibration.scale_of(round_.scores, round_.results) for round_ in (first, second)]
    assert lines[0] == pytest.approx((1.0, 0.0), abs=0.08)
    assert lines[1][0] == pytest.approx(lines[0][0] / 3, rel=0.02)
    assert np.abs(first.targets - second.targets).max() < 0.01
    assert np.abs(first.search - second.search).max() < 0.05


def test_positions_that_a_capture_will_change_are_left_out() -> None:
    rows = np.zeros(3, row_type(7))
    rows["noisy"] = [0, 1, 0]
    rows["score"] = [0, 0, -29_500]
    assert inputs.quiet(rows).tolist() == [True, False, True]


def test_the_scale_of_scores_is_found() -> None:
    draw = np.random.default_rng(1)
    scores = draw.integers(-800, 800, 20_000)
    chance = 1 / (1 + np.exp(-(0.6 * scores / calibration.LOGIT - 1.2)))
    slope, level = calibration.scale_of(scores, (draw.random(20_000) < chance).astype(float))
    assert slope == pytest.approx(0.6, abs=0.05)
    assert level == pytest.approx(-1.2, abs=0.08)


# Lessons


def test_gradients_are_those_of_finite_differences() -> None:
    encoding, rows = encoding_of("brandubh"), rows_of("brandubh", 30)
    examples = encoding.examples(rows, np.linspace(0, 1, 30))
    weights = {name: array.astype(np.float64) for name, array in random_weights(encoding).items()}
    turned = encoding.turn(examples)
    targets = examples.targets.astype(np.float64)
    _, slopes = learner.gradients(weights, turned, examples.heads, targets, encoding)
    draw = np.random.default_rng(9)
    step, checked = 1e-6, 0
    for name, slope in slopes.items():
        known = np.argwhere(slope != 0)
        for at in map(tuple, draw.permutation(known)[:12]):
            ends = []
            for sign in (1, -1):
                moved = {**weights, name: weights[name].copy()}
                moved[name][at] += sign * step
                ends.append(learner.gradients(moved, turned, examples.heads, targets, encoding)[0])
            assert slope[at] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-3, abs=1e-8), name
            checked += 1
    assert checked > 40


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_torch_finds_the_same_gradients() -> None:
    from hnefi.tools.train.on_torch import TorchLessons

    encoding, rows = encoding_of("brandubh"), rows_of("brandubh", 50)
    examples = encoding.examples(rows, np.linspace(0, 1, 50))
    weights = random_weights(encoding)
    turned = encoding.turn(examples)
    loss, slopes = learner.gradients(weights, turned, examples.heads, examples.targets, encoding)
    lessons = TorchLessons(weights, weights, weights, encoding)
    other_loss, others = lessons.gradients(turned, examples.heads, examples.targets)
    assert loss == pytest.approx(float(other_loss), abs=1e-6)
    for name, slope in slopes.items():
        assert np.allclose(slope, others[name].cpu().numpy(), atol=1e-7), name


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_torch_teaches_the_same() -> None:
    """Two epochs: steps, moments and what is kept between epochs."""
    from hnefi.tools.train.on_torch import TorchLessons

    encoding, rows = encoding_of("brandubh"), rows_of("brandubh", 300)
    examples = encoding.examples(rows, np.linspace(0, 1, 300))
    ours, theirs = (learner.Learner(encoding, "1 1", 2, by) for by in (learner.NumpyLessons, TorchLessons))
    begun = {name: array.copy() for name, array in ours.weights.items()}
    for _ in range(2):
        assert list(ours.learn(examples)) == pytest.approx([*map(float, theirs.learn(examples))], abs=1e-5)
    assert ours.steps == theirs.steps > 0
    for name, array in ours.weights.items():
        moved = np.abs(array - begun[name]).max()
        assert moved > 1e-3
        assert np.allclose(array, theirs.weights[name], atol=0.02 * moved), name
        assert np.allclose(ours.squares[name], theirs.squares[name], rtol=1e-3, atol=1e-9), name


def test_a_net_learns_what_can_be_known() -> None:
    """Who has more men left, in positions of random games."""
    encoding, rows = encoding_of("brandubh"), rows_of("brandubh", 600)
    men = (rows["board"] == 1).sum(axis=1) - 2 * (rows["board"] == 9).sum(axis=1)
    examples = encoding.examples(rows, (men > 0).astype(float))
    taught = learner.Learner(encoding, "1 1", 60, learner.NumpyLessons)
    before = calibration.loss(learner.logits(taught.weights, examples, encoding), examples.targets)
    while taught.epoch < taught.epochs:
        losses = list(taught.learn(examples))
    after = calibration.loss(learner.logits(taught.weights, examples, encoding), examples.targets)
    share = examples.targets.mean()
    nothing = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert after < 0.75 * nothing < before
    assert losses[0] == pytest.approx(after, rel=0.3)


def test_a_first_step_is_as_long_as_the_rate() -> None:
    encoding = encoding_of("brandubh")
    examples = encoding.examples(rows_of("brandubh", 60), np.linspace(0, 1, 60))
    for rate in (2e-3, 2e-4):
        taught = learner.Learner(encoding, "1 1", 3, learner.NumpyLessons, rate=rate)
        before = taught.weights["shared"].copy()
        list(taught.learn(examples))
        assert taught.steps == 1
        assert np.abs(taught.weights["shared"] - before).max() == pytest.approx(rate, rel=0.02)


def test_lessons_continue_where_they_were_left(tmp_path: Path) -> None:
    encoding = encoding_of("brandubh")
    examples = encoding.examples(rows_of("brandubh", 60), np.linspace(0, 1, 60))
    through = learner.Learner(encoding, "1 1", 3, learner.NumpyLessons)
    for _ in range(3):
        list(through.learn(examples))
    first = learner.Learner(encoding, "1 1", 3, learner.NumpyLessons)
    list(first.learn(examples))
    first.save(tmp_path / "c.safetensors")
    second = learner.Learner(encoding, "1 1", 3, learner.NumpyLessons)
    second.load(tmp_path / "c.safetensors")
    for _ in range(2):
        list(second.learn(examples))
    assert second.steps == through.steps == 3
    for name, array in through.weights.items():
        assert np.array_equal(array, second.weights[name]), name
    with pytest.raises(learner.CheckpointError):
        learner.Learner(encoding, "2 1", 3, learner.NumpyLessons).load(tmp_path / "c.safetensors")
    data = bytearray((tmp_path / "c.safetensors").read_bytes())
    data[-5] ^= 64
    (tmp_path / "c.safetensors").write_bytes(data)
    with pytest.raises(learner.CheckpointError):
        second.load(tmp_path / "c.safetensors")


def test_what_does_not_fit_is_cut_off() -> None:
    encoding = encoding_of("mini-four")
    weights = random_weights(encoding)
    weights["output"][0, 0], weights["king"][0, 0] = 5.0, 1000.0
    arrays = learner.quantised(weights, encoding)
    assert arrays["output"][0, 0] == 127
    assert arrays["king"][0, 0] == 32767


def test_a_net_is_restored_to_the_weights_that_it_was_rounded_from() -> None:
    """A shipped one too: `--init` begins with it."""
    encoding = encoding_of("brandubh", "nnue:32,rings=3")
    real = random_weights(encoding)
    arrays = learner.quantised(real, encoding)
    back = learner.restored(arrays, encoding)
    assert {name: array.dtype for name, array in back.items()} == {
        name: array.dtype for name, array in real.items()
    }
    for name in ("king", "output", "output_bias"):
        assert back[name] == pytest.approx(real[name], abs=1 / 64), name
    assert back["shared"] + back["own"] == pytest.approx(real["shared"] + real["own"], abs=1 / 256)
    assert np.abs(back["own"].mean(axis=0)).max() < 1e-6
    assert np.abs(back["own"]).max() > 0.1
    again = learner.quantised(back, encoding)
    assert all(np.array_equal(again[name], array) for name, array in arrays.items())

    path = NETWORKS["net-copenhagen-2"]
    variant: Any = games.find("tawlbwrdd")
    shipped = files.load(path, variant, any_rules=True)
    there = inputs.Encoding(shipped.network, variant)
    again = learner.quantised(learner.restored(shipped.arrays, there), there)
    assert all(np.array_equal(again[name], array) for name, array in shipped.arrays.items())


def test_lessons_begin_with_the_weights_that_are_given() -> None:
    encoding, rows = encoding_of("brandubh"), rows_of("brandubh", 60)
    examples = encoding.examples(rows, np.linspace(0, 1, 60))
    given = random_weights(encoding)
    loss, _ = learner.gradients(given, encoding.turn(examples), examples.heads, examples.targets, encoding)
    warm = learner.Learner(encoding, "1 1", 1, learner.NumpyLessons, given)
    cold = learner.Learner(encoding, "1 1", 1, learner.NumpyLessons)
    assert list(warm.learn(examples)) == pytest.approx([loss], rel=0.02)
    assert list(cold.learn(examples)) != pytest.approx([loss], rel=0.02)
