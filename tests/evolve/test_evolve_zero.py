"""`hnefi evolve zero`: gradients of two heads, images under symmetries, what an iteration keeps, and that nothing but
the seed decides about a run."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import convolutions
import numpy as np
import pytest
from evolve_parts import archive, dying_at_state
from random_games import positions

from hnefi.engine import games
from hnefi.engine.evaluators import files, network
from hnefi.engine.games import interface as verbs
from hnefi.engine.selfplay.zero import Examples
from hnefi.engine.squares import file_of, rank_of
from hnefi.tools.evolve import command, heads, zero

NET = "policy-mlp:8,6"
SMALL = ("--variant", "hexapawn:3x3", "--network", NET, "--games", "6", "--gate-games", "4", "--epochs", "4")


def examples(name: str, count: int = 40, text: str = NET) -> tuple[network.Network, Any, heads.Batch]:
    """Positions of random games with targets that mean nothing; only legal moves are to be learnt."""
    variant, net = games.find(name), network.parse(text)
    random = np.random.default_rng(1)
    places = [place for place in positions(variant, count) if place.legal_moves()]
    inputs = [net.module.naive_inputs(variant, place) for place in places]
    order = games.policy_moves(variant)
    legal = np.array([np.isin(order, place.legal_moves()) for place in places])
    policies = random.random(legal.shape) * legal
    made = heads.batch(
        inputs, policies / policies.sum(axis=1, keepdims=True), random.choice([-1, 0, 1], len(inputs)), legal
    )
    return net, variant, made


def unmasked(few: heads.Batch) -> heads.Batch:
    return dataclasses.replace(few, legal=np.ones_like(few.legal))


def test_gradients_are_those_of_small_differences() -> None:
    net, variant, whole = examples("hexapawn:3x3", 12)
    exact = heads.Batch(
        *(np.asarray(getattr(whole, field.name), float) for field in dataclasses.fields(whole))
    )
    random = np.random.default_rng(2)
    weights = random.normal(0, 0.5, net.count(variant))
    for some in (exact, unmasked(exact)):
        expect_slopes(lambda moved, some=some: heads.gradient(net, variant, moved, some), weights, random, 60)


def expect_slopes(gradient: Any, weights: Any, random: Any, count: int) -> None:
    _, slopes = gradient(weights)
    for place in random.integers(len(weights), size=count):
        step = np.zeros(len(weights))
        step[place] = 1e-5
        above, below = (gradient(moved)[0] for moved in (weights + step, weights - step))
        assert slopes[place] == pytest.approx(
            (above.value + above.policy - below.value - below.policy) / 2e-5, rel=1e-3, abs=1e-6
        )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), [("hex:4", "residual:2"), ("brandubh", "residual:1")])
def test_the_kernel_of_the_residual_network_has_the_slopes_of_its_twin(name: str, text: str) -> None:
    """And the twin, in double precision, those of small differences."""
    net, variant, few = examples(name, 12, text)
    random = np.random.default_rng(2)
    weights = random.normal(0, 0.05, net.count(variant))

    def slow(moved: Any, some: heads.Batch) -> Any:
        loss, found = convolutions.gradient(
            net.split(variant, moved), some.inputs.astype(float), net.module.planes(variant), net.sizes["blocks"],
            lambda outputs: heads.loss_of(outputs, some),
        )  # fmt: skip
        return loss, net.join(variant, found)

    for some in (few, unmasked(few)):
        expect_slopes(lambda moved, some=some: slow(moved, some), weights, random, 20)
        loss, slopes = slow(weights, some)
        quick, found = heads.gradient(net, variant, weights.astype(np.float32), some)
        assert dataclasses.astuple(quick) == pytest.approx(dataclasses.astuple(loss), rel=1e-5)
        assert found == pytest.approx(slopes, abs=2e-6)
        assert np.abs(slopes).max() > 1e-2


def test_what_is_not_legal_does_not_count() -> None:
    _, _, few = examples("hexapawn:3x3", 10)
    outputs = np.random.default_rng(1).normal(0, 1, (len(few), few.legal.shape[1] + 1)).astype(np.float32)
    loss, slope = heads.loss_of(outputs, few)
    other = outputs.copy()
    other[:, :-1] += np.where(few.legal, 0, 5)
    assert heads.loss_of(other, few)[0] == loss
    assert not slope[:, :-1][few.legal == 0].any()
    assert heads.loss_of(other, unmasked(few))[0].policy > loss.policy + 1


def test_equal_positions_can_be_merged() -> None:
    net, variant, few = examples("hexapawn:3x3", 10)
    names = ("inputs", "policies", "results", "legal")
    twice = heads.batch(*(np.concatenate([getattr(few, name), getattr(few, name)[:4]]) for name in names))
    twice.results[-1] = -twice.results[3]
    whole = heads.merged(twice)
    assert len(whole.inputs) < len(twice.inputs)
    assert whole.weights.sum() == pytest.approx(1)
    weights = heads.starting_weights(net, variant, np.random.default_rng(3))
    plain, merged = (heads.gradient(net, variant, weights, one) for one in (twice, whole))
    assert merged[1] == pytest.approx(plain[1], abs=1e-6)
    assert merged[0].policy == pytest.approx(plain[0].policy, rel=1e-5)


@pytest.mark.parametrize(("name", "count"), [("hexapawn:3x4", 2), ("hex:4", 2), ("brandubh", 8)])
def test_images_of_examples_are_examples_of_images(name: str, count: int) -> None:
    variant, net = games.find(name), network.parse(NET)
    position = positions(variant, 6)[-1]
    order = games.policy_moves(variant)
    symmetries = heads.images(net, variant)
    assert len(symmetries) == count
    inputs = net.module.naive_inputs(variant, position)
    legal = {order.index(move) for move in position.legal_moves()}
    for (seen, policy), squares in zip(symmetries[1:], position.symmetries(), strict=True):
        rows = [["1"] * variant.files for _ in range(variant.ranks)]
        for sq, letter in position.pieces():
            rows[variant.ranks - 1 - rank_of(squares[sq])][file_of(squares[sq])] = letter
        board = "/".join(re.sub("1+", lambda run: str(len(run[0])), "".join(row)) for row in rows)
        fen = f"{board} {position.side.letter} 0 1"
        image = games.from_fen(variant, fen)
        assert inputs[seen].tolist() == net.module.naive_inputs(variant, image).tolist()
        shares = np.isin(np.arange(len(order)), list(legal))
        assert set(np.flatnonzero(shares[policy])) == {order.index(move) for move in image.legal_moves()}


def test_first_weights_are_as_large_as_their_units_have_inputs() -> None:
    variant, net = games.find("hexapawn:3x3"), network.parse("policy-mlp")
    arrays = net.split(variant, heads.starting_weights(net, variant, np.random.default_rng(1)))
    for name, below in (("first", 21), ("first_bias", 21), ("fourth", 128), ("policy", 128), ("value", 128)):
        bound = 1 / np.sqrt(below)
        assert 0.9 * bound < np.abs(arrays[name]).max() <= bound * 1.0001, name


def test_training_learns_what_the_examples_say() -> None:
    net, variant, few = examples("hexapawn:3x3", 8)
    first = heads.starting_weights(net, variant, np.random.default_rng(4))
    symmetries = heads.images(net, variant)
    for size in (0, 3):
        _, loss, _ = heads.train(
            net, variant, first, few, epochs=150, size=size, rate=0.01, random=np.random.default_rng(1),
            symmetries=symmetries[:1],
        )  # fmt: skip
        begun, _ = heads.gradient(net, variant, first, few)
        assert loss.value < 0.5 * begun.value
        assert loss.policy - loss.entropy < begun.policy - begun.entropy


def evolve(out: Path, *more: str) -> int:
    return command.main(["zero", *SMALL, "--iterations", "3", "--out", str(out), "--quiet", *more])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("zero") / "run"
    assert evolve(out, "--jobs", "1") == 0
    return out


def test_what_a_run_leaves(undisturbed: Path) -> None:
    log = [json.loads(line) for line in (undisturbed / "log.jsonl").read_text().splitlines()]
    assert [entry["generation"] for entry in log] == [1, 2, 3]
    assert all(entry["games"] == 10 and sum(entry["winners"]) == 6 for entry in log)
    assert all(sum(entry["as_attackers"]) == sum(entry["as_defenders"]) == 2 for entry in log)
    assert all(entry["accepted"] == (entry["share"] > 0.5) for entry in log)
    assert {path.name for path in (undisturbed / "archive").iterdir()} == {
        f"gen-000{n}.safetensors" for n in range(4)
    }
    for before, entry in enumerate(log):
        one, other = ((undisturbed / "archive" / f"gen-000{n}.safetensors") for n in (before, before + 1))
        same = np.array_equal(files.genome(files.load(one)), files.genome(files.load(other)))
        assert same != entry["accepted"]
    evaluator = files.load(undisturbed / "champion.safetensors", games.find("hexapawn:3x3"))
    assert all(array.dtype == np.float32 for array in evaluator.arrays.values())
    assert (undisturbed / "curves.svg").exists()


def test_any_number_of_threads(undisturbed: Path, tmp_path: Path) -> None:
    assert evolve(tmp_path / "run", "--jobs", "3") == 0
    assert archive(tmp_path / "run") == archive(undisturbed)


def test_a_run_that_dies_while_it_writes_goes_on_as_if_nothing_had_been(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between log and state: the log says of a generation what the state does not know."""
    out = tmp_path / "run"
    with dying_at_state(2, monkeypatch):
        evolve(out, "--jobs", "1")
    assert len((out / "log.jsonl").read_text().splitlines()) == 2
    assert command.main(["resume", str(out), "--quiet", "--jobs", "2"]) == 0
    assert archive(out) == archive(undisturbed)


def test_examples_are_forgotten_once_a_copy_is_accepted(tmp_path: Path) -> None:
    never, always = tmp_path / "never", tmp_path / "always"
    assert evolve(never, "--gate", "1") == 0
    assert evolve(always, "--gate-games", "0") == 0
    assert (
        evolve(tmp_path / "window", "--gate-games", "0", "--window", "2", "--batch", "8", "--augment", "yes")
        == 0
    )
    assert evolve(tmp_path / "older", "--gate-games", "0", "--older", "0.5", "--noise", "0.25") == 0

    def counts(name: str) -> list[tuple[int, bool]]:
        lines = (tmp_path / name / "log.jsonl").read_text().splitlines()
        return [(entry["examples"], entry["accepted"]) for entry in map(json.loads, lines)]

    kept, fresh, window = (counts(name) for name in ("never", "always", "window"))
    assert [accepted for _, accepted in kept] == [False] * 3
    assert kept[0][0] < kept[1][0] < kept[2][0]
    assert all(accepted and rows <= 6 * 7 for rows, accepted in fresh)
    assert fresh[0][0] < window[1][0]
    # In half of the later games only one side is the network that learns.
    assert counts("older")[2][0] < counts("older")[0][0] * 1.3


MORE = (
    "--gate-games", "0", "--window", "4", "--batch", "8", "--adam", "kept", "--mask", "yes", "--full", "0.5",
    "--forced", "2", "--first-play", "parent", "--value-mix", "0.5", "--measure-every", "2", "--measure-pairs", "3",
    "--measure-simulations", "5", "--shared", "no", "--prove", "yes", "--handicap", "0.5",
)  # fmt: skip


def test_a_run_measures_itself_now_and_then_and_remembers_what_adam_knew(tmp_path: Path) -> None:
    whole, parts, fresh = tmp_path / "whole", tmp_path / "parts", tmp_path / "fresh"
    assert evolve(whole, *MORE, "--jobs", "2") == 0
    for iterations in ("1", "2", "3"):
        words = ["zero", *SMALL, *MORE, "--iterations", iterations, "--out", str(parts), "--quiet"]
        assert command.main(words) == 0
    assert archive(parts) == archive(whole)
    assert evolve(fresh, *MORE, "--adam", "fresh") == 0
    first = "archive/gen-0001.safetensors"
    assert (fresh / first).read_bytes()[-200:] == (whole / first).read_bytes()[-200:]
    assert (fresh / "champion.safetensors").read_bytes() != (whole / "champion.safetensors").read_bytes()
    log = [json.loads(line) for line in (whole / "log.jsonl").read_text().splitlines()]
    assert ["measured" in entry for entry in log] == [False, True, False]
    # Three games without a draw: one side won more of them, and searches less from now on.
    assert log[0]["handicap"] == 0
    assert log[1]["handicap"] != 0
    sides = log[1]["measured"]["random"]
    assert [sum(side) for side in sides] == [3, 3]
    assert log[1]["rung"] == zero.highest_rung(log[1]["measured"])
    assert "scored against random" in (whole / "curves.svg").read_text()
    assert "measured.random.0.0" in (whole / "curves.csv").read_text()


@pytest.mark.parametrize(("amount", "side"), [(1.0, 1), (-1.0, 0)])
def test_a_handicap_is_fewer_simulations_or_random_moves(amount: float, side: int) -> None:
    for way, field, expected in (("simulations", "handicap", 1.0), ("moves", "careless", 0.5)):
        values = {"games": 8, "older": 0.0, "handicap": 0.5, "handicap_by": way}
        table = zero.Zero(SimpleNamespace(values=values, seed=1))._self_play(3, 0, amount)
        other = {"handicap": "careless", "careless": "handicap"}[field]
        assert not table[other].any()
        assert not table[field][:4].any()
        assert (table[field][4:, side] == expected).all()
        assert not table[field][4:, 1 - side].any()


def test_the_rung_is_the_last_opponent_that_was_held() -> None:
    found = {"random": [[5, 0, 0], [5, 0, 0]], "simple-d1": [[1, 0, 4], [2, 0, 3]]}
    assert zero.highest_rung(found) == "random"
    assert zero.highest_rung({**found, "simple-d2": [[0, 1, 4], [4, 1, 0]]}) == "simple-d2"
    assert zero.highest_rung({"random": [[0, 0, 5], [4, 0, 1]]}) is None
    assert zero.words(
        {
            "as_attackers": [0, 0, 0], "as_defenders": [0, 0, 0], "accepted": True, "loss_value": 0.5,
            "loss_policy": 1, "rung": None,
        }
    ) == ["accepted", "loss 0.50 + 1.00", "rung none"]  # fmt: skip


def test_the_value_learns_the_result_and_what_the_search_thought() -> None:
    made = Examples(
        np.eye(3, 5, dtype=np.uint8), np.zeros(3, np.int8), np.array([1, -1, 0], np.int8),
        np.array([0.5, 0.25, -0.5], np.float32), np.array([2, 1, 2], np.int32),
        np.array([0, 3, 2, 1, 2], np.uint16), np.array([6, 2, 5, 0, 4], np.uint16),
    )  # fmt: skip
    some = heads.Kept(made, 4, masked=True, mix=0.25).rows(np.array([2, 0]))
    assert some.results.tolist() == [-0.125, 0.875]
    assert some.policies.tolist() == [[0, 0, 1, 0], [0.75, 0, 0, 0.25]]
    assert some.legal.tolist() == [[0, 1, 1, 0], [1, 0, 0, 1]]
    assert heads.Kept(made, 4, masked=False, mix=0).rows(np.array([1])).legal.all()


def test_a_champion_becomes_a_player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert evolve(tmp_path / "run", "--c", "1.3", "--save-player", "mine") == 0
    player = tomllib.loads((tmp_path / "mine.toml").read_text())
    assert player["algorithm"] == "puct"
    assert player["limits"] == {"nodes": 10}
    assert player["options"] == {"Exploration": 130}
    evaluator = files.load(tmp_path / "mine.safetensors", games.find("hexapawn:3x3"))
    params = files.record(evaluator, games.find("hexapawn:3x3"))[0]
    assert abs(verbs.value(params, games.initial(games.find("hexapawn:3x3")).new_record()[0])) < 50


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["zero", "--variant", "hexapawn:3x3", "--network", "mlp:5"], "expected policy-mlp or residual"),
        (["es", "--variant", "brandubh", "--network", "policy-mlp:5"], "expected a network without a policy"),
        (["zero", "--variant", "hexapawn:3x3", "--simulations", "1"], "expected a whole number from 2"),
        (
            ["zero", "--variant", "copenhagen"],
            "720745 weights on this board: expected at most 131072, as in policy-mlp:16,16,16,16",
        ),
        (["zero", "--variant", "hexapawn:3x3", "--prove", "yes"], "with shared=yes: expected shared=no"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([*words, "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_run_of_zero_cannot_be_ranked(undisturbed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["rank", str(undisturbed)]) == 2
    assert "a run of zero: expected one of es or cma" in capsys.readouterr().err
