"""Networks that know moves: the order of moves, the kernels against the slow and obvious network, one pass for both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_games import positions

from hnefi.engine import evaluators, games
from hnefi.engine.evaluators import files, network
from hnefi.engine.games import interface as verbs
from hnefi.engine.search.mcts import NODE, ROOT
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Limits, Settings
from hnefi.engine.squares import move_name

SIZED = [
    ("policy-mlp", "hexapawn:3x3"),
    ("policy-mlp:9,7", "hexapawn:4x3"),
    ("policy-mlp:6,5,4", "hex-swap:4"),
    ("policy-mlp:8", "brandubh"),
    ("residual:1", "brandubh"),
    ("residual:1,filters=64", "hex:5"),
]
ORDER = """
    a1a2 b1b2 c1c2 a2a3 b2b3 c2c3  a3a2 b3b2 c3c2 a2a1 b2b1 c2c1
    a1b2 b1a2 b1c2 c1b2 a2b3 b2a3 b2c3 c2b3  a3b2 b3a2 b3c2 c3b2 a2b1 b2a1 b2c1 c2b1
"""
"""The 28 moves of hexapawn as HexapawnZero has them: its row 0 is our rank 3, its column 0 our file a."""


def genome_of(net: network.Network, name: str) -> Any:
    spread = 0.3 if net.name == "policy-mlp" else 0.06
    return np.random.default_rng(7).normal(0, spread, net.count(games.find(name))).astype(np.float32)


def test_the_moves_of_hexapawn_are_in_the_order_of_the_document() -> None:
    assert [move_name(move) for move in games.policy_moves(games.find("hexapawn:3x3"))] == ORDER.split()
    # Its example: white to move with pawns on a1 and c1, black on b2 and b3.
    position = games.from_fen(games.find("hexapawn:3x3"), "1p1/1p1/P1P a 0 1")
    moves = games.policy_moves(position.variant)
    assert sorted(moves.index(move) for move in position.legal_moves()) == [0, 2, 12, 15]


@pytest.mark.parametrize(
    ("name", "count"),
    [("hexapawn:4x5", 2 * 3 * 5 + 4 * 3 * 4), ("hex:5", 25), ("hex-swap:4", 17), ("brandubh", 1176)],
)
def test_every_legal_move_has_its_place(name: str, count: int) -> None:
    variant = games.find(name)
    moves = games.policy_moves(variant)
    assert len(moves) == count
    possible = [move for move in moves if move]
    assert len(set(possible)) == len(possible)
    seen = set()
    for position in positions(variant, 60):
        state = position.new_record()[0]
        for move in position.legal_moves():
            place = int(verbs.move_index(state, move))
            assert moves[place] == move, move_name(move)
            seen.add(place)
    assert len(seen) > min(count, 60) // 2


def test_a_game_whose_moves_have_no_order_is_refused() -> None:
    class Other:
        game = "draughts"
        name = "draughts:8"

    with pytest.raises(ValueError, match="draughts:8: expected a game whose moves have an order"):
        games.policy_moves(Other())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "name", "weights"),
    [
        ("policy-mlp", "hexapawn:3x3", 56_093),
        ("policy-mlp:5", "hex:3", 20 * 5 + 6 * 9 + 6),
        ("residual", "brandubh", 81_842),
        ("uniform", "hex:3", 0),
    ],
)
def test_networks_have_as_many_weights_as_their_sources_say(text: str, name: str, weights: int) -> None:
    assert network.parse(text).count(games.find(name)) == weights


@pytest.mark.parametrize(("text", "name"), SIZED)
def test_kernels_equal_the_naive_network(text: str, name: str) -> None:
    variant, net = games.find(name), network.parse(text)
    genome = genome_of(net, name)
    arrays, params = net.split(variant, genome.astype(float)), net.record(variant, genome)[0]
    priors = np.zeros(512)
    values = set()
    for position in positions(variant, 30 if net.name == "policy-mlp" else 16):
        if position.outcome is not None:
            continue
        state = position.new_record()[0]
        naive = net.naive(variant, arrays, position)
        assert verbs.value(params, state) == pytest.approx(naive, rel=1e-4, abs=1e-4)
        assert verbs.evaluate(params, state) == pytest.approx(
            (-1 if position.side else 1) * max(-9000, min(9000, naive * net.module.SCALE)), abs=2
        )
        end = int(verbs.generate(state, 0))
        verbs.policy(params, state, end, priors)
        places = [games.policy_moves(variant).index(int(move)) for move in state["moves"][:end]]
        wanted = np.exp(net.module.naive_policy(variant, net.sizes, arrays, position)[places])
        assert priors[:end] / priors[:end].sum() == pytest.approx(wanted / wanted.sum(), rel=1e-3, abs=1e-5)
        values.add(round(naive, 6))
    assert len(values) > 10


def test_a_network_of_the_document_sees_what_it_prints() -> None:
    """Its two printed inputs, the first with the turn of white, the second with that of black."""
    variant = games.find("hexapawn:3x3")
    module = network.parse("policy-mlp").module
    first = games.from_fen(variant, "pp1/1Pp/P1P a 0 1")
    assert module.naive_inputs(variant, first).tolist() == [*map(int, "000010101110001000111")]
    second = games.from_fen(variant, "p1p/pP1/2P d 0 1")
    assert module.naive_inputs(variant, second).tolist() == [*map(int, "000010001101100000000")]


def test_a_residual_network_sees_what_came_before() -> None:
    variant, net = games.find("brandubh"), network.parse("residual")
    position = games.initial(variant)
    cells = np.split(net.module.naive_inputs(variant, position), 7)
    assert [int(plane.sum()) for plane in cells] == [8, 4, 1, 4, 49, 0, 0]
    for word in ("d1c1", "d3c3", "c1d1", "c3d3", "d2c2"):
        position = position.play(position.parse_move(word))
    record = net.record(variant, np.zeros(net.count(variant)))[0]
    for at, repeated in ((position.undo(), 1), (position, 0)):
        planes = np.split(net.module.naive_inputs(variant, at), 7)
        assert (planes[5] == repeated).all()
        verbs.value(record, at.new_record()[0])
        assert record["inputs"][: 7 * 49].tolist() == net.module.naive_inputs(variant, at).tolist()


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("residual:1,filters=33", "brandubh", "filters=33: expected a multiple of 32"),
        ("residual:1", "hex-swap:5", "expected a variant without the swap rule"),
        ("residual:1", "hexapawn:3x3", "expected a variant of tafl or hex, not hexapawn"),
    ],
)
def test_residual_networks_that_cannot_be_are_refused(text: str, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        network.parse(text).shapes(games.find(name))


def test_value_and_policy_of_a_position_cost_one_pass() -> None:
    variant, net = games.find("hexapawn:3x3"), network.parse("policy-mlp:8")
    params = net.record(variant, genome_of(net, variant.name))[0]
    priors = np.zeros(16)
    start = games.initial(variant)
    state = start.new_record()[0]
    for _ in range(2):
        verbs.policy(params, state, int(verbs.generate(state, 0)), priors)
        verbs.value(params, state)
    assert params["passes"] == 1
    other = start.play(start.legal_moves()[0]).new_record()[0]
    verbs.value(params, other)
    verbs.value(params, state)
    assert params["passes"] == 3


def saved(folder: Any, text: str, name: str) -> str:
    variant, net = games.find(name), network.parse(text)
    path = folder / "net.safetensors"
    files.save(path, files.make(net, variant, genome_of(net, name)))
    return str(path)


def test_a_policy_network_is_a_file_like_any_other(tmp_path: Any) -> None:
    path = saved(tmp_path, "policy-mlp", "hexapawn:3x3")
    loaded = files.load(path, games.find("hexapawn:3x3"))
    assert loaded.network == network.parse("policy-mlp")
    assert np.array_equal(files.genome(loaded), genome_of(loaded.network, "hexapawn:3x3"))
    assert evaluators.knows_moves(path, games.find("hexapawn:3x3"))
    position = games.initial(games.find("hexapawn:3x3"))
    (network_line, policy_line, *_) = evaluators.remarks(path, position)
    assert network_line.startswith("network policy-mlp:128,128,128,128 a logit ")
    words = policy_line.removeprefix("network policy ").split()
    assert sorted(words[::2]) == ["a1a2", "b1b2", "c1c2"]
    assert sum(map(float, words[1::2])) == pytest.approx(1, abs=0.002)
    with pytest.raises(files.EvaluatorError, match="rules hash"):
        files.load(path, games.find("hexapawn:4x3"))


def test_puct_expands_a_leaf_with_its_value_and_uses_the_priors(tmp_path: Any) -> None:
    path = saved(tmp_path, "policy-mlp:8", "hexapawn:4x3")
    variant = games.find("hexapawn:4x3")
    searcher = Searcher(Settings(algorithm="puct", evaluator=path, hash_mib=1))
    searcher.begin()
    position = games.initial(variant)
    searcher.search(position, Limits(nodes=8), lambda _: None)
    nodes = searcher.algorithm.nodes
    assert nodes.dtype == NODE
    root = nodes[ROOT]
    below = nodes[int(root["first"]) : int(root["first"]) + int(root["count"])]
    net = network.parse("policy-mlp:8")
    arrays = net.split(variant, genome_of(net, variant.name).astype(float))
    logits = net.module.naive_policy(variant, net.sizes, arrays, position)
    places = [games.policy_moves(variant).index(int(move)) for move in below["move"]]
    wanted = np.exp(logits[places]) / np.exp(logits[places]).sum()
    assert below["prior"] / 65535 == pytest.approx(wanted, abs=1e-3)
    visited = below[below["visits"] > 0]
    assert all(node["first"] for node in visited)  # a leaf has its children from its first visit on
    # Everything evaluated was evaluated once: the root, and a new leaf for each simulation.
    assert searcher.params[0]["passes"] <= 1 + 8
