"""Loadable evaluators: kernels against the slow and obvious forms of the same networks, all architectures alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_games import positions

from hnefi.engine import evaluators, games
from hnefi.engine.evaluators import loaded, network
from hnefi.engine.evaluators.networks import linear, linear_tablut
from hnefi.engine.games import interface as verbs
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.games.hex.state import X
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Limits, Settings

VARIANTS = ("hingston-original", "brandubh", "copenhagen", "tablut-herr-7-coded", "hex:4", "hexapawn:4x3")
SIZED = (
    "linear-tablut:coded",
    "mlp:5",
    "mlp:7,4,tanh",
    "mlp:6,5,4,softplus",
    "mlp:6,leaky",
    "mlp:6,relu",
    "mlp:6,softsign",
    "mlp:4,3,planes",
    "mlp:4,edges",
    "mlp:4,planes,edges,transposed",
)


def known(net: network.Network, variant: AnyVariant) -> bool:
    of_hex = net.name == "mlp" and any(net.sizes[word] for word in net.module.READINGS)
    return variant.game in net.module.GAMES and (variant.game == "hex" or not of_hex)


NAMES = [name for name in network.NAMES if name not in ("policy-mlp", "residual", "nnue")]
"""Those in double precision and of any size; the others are too large for some of these boards, or know whole numbers
only, and have tests of their own."""
CASES = [
    (text, name)
    for text in (*NAMES, *SIZED)
    for name in VARIANTS
    if known(network.parse(text), games.find(name))
]


def genome_of(net: network.Network, variant: AnyVariant) -> Any:
    return np.random.default_rng(7).normal(0, 0.3, net.count(variant))


@pytest.mark.parametrize(("size", "weights"), [(7, 871), (9, 1563), (11, 2463), (13, 3571), (19, 8143)])
def test_hingston_has_as_many_weights_as_the_formula_says(size: int, weights: int) -> None:
    variant = next(v for v in games.everything() if v.game == "tafl" and v.files == size)
    assert network.parse("hingston2007").count(variant) == weights


@pytest.mark.parametrize(
    ("text", "variant", "weights"),
    [
        ("mlp:50", "tablut-herr-7", 2701),
        ("mlp:5", "hex:11", 616),
        ("mlp:25,5", "hex:11", 122 * 25 + 26 * 5 + 6),
        ("mlp:5,planes", "hex:11", 5 * 243 + 6),
        ("mlp:5,planes,edges", "hex:11", 5 * 485 + 6),
        ("mlp:25,5", "hex:5", 26 * 25 + 26 * 5 + 6),
        ("mlp:10", "hexapawn:3x3", 22 * 10 + 11),
        ("linear-tablut", "brandubh", 14),
        ("linear", "brandubh", 16),
        ("linear-threats", "brandubh", 37),
    ],
)
def test_networks_have_as_many_weights_as_their_sources_say(text: str, variant: str, weights: int) -> None:
    assert network.parse(text).count(games.find(variant)) == weights


@pytest.mark.slow
@pytest.mark.parametrize(("text", "variant_name"), CASES)
def test_kernel_equals_the_naive_network(text: str, variant_name: str) -> None:
    variant, net = games.find(variant_name), network.parse(text)
    genome = genome_of(net, variant)
    arrays, record = net.split(variant, genome), net.record(variant, genome)
    values = set()
    for position in positions(variant, 60):
        naive = net.naive(variant, arrays, position)
        state = position.new_record()[0]
        value = verbs.value(record[0], state)
        assert value == pytest.approx(naive, abs=1e-12)
        own = int(min(max(value * net.module.SCALE, -9000), 9000))
        assert verbs.evaluate(record[0], state) == (-own if position.side else own)
        values.add(round(naive, 9))
    assert len(values) > (10 if net.count(variant) else 0)


def test_the_walks_see_captures() -> None:
    for name in ("brandubh", "copenhagen"):
        assert sum(sum(position.taken) > 2 for position in positions(games.find(name), 60)) > 20


def test_records_of_several_genomes_are_theirs_in_order() -> None:
    variant, net = games.find("brandubh"), network.parse("hingston2007")
    genomes = np.random.default_rng(4).standard_normal((3, net.count(variant)))
    for i, record in enumerate(net.records(variant, genomes)):
        np.testing.assert_array_equal(record["weights"][: net.count(variant)], genomes[i])
        assert not record["weights"][net.count(variant) :].any()
        assert (record["architecture"], record["used"]) == (net.module.NUMBER, net.count(variant))
    with pytest.raises(ValueError, match=f"2 weights: expected {net.count(variant)}"):
        net.records(variant, [genomes[0], genomes[1][:2]])


@pytest.mark.parametrize(("text", "variant_name"), CASES)
def test_genomes_are_split_and_joined(text: str, variant_name: str) -> None:
    variant, net = games.find(variant_name), network.parse(text)
    genome = genome_of(net, variant)
    arrays = net.split(variant, genome)
    assert {name: array.shape for name, array in arrays.items()} == net.shapes(variant)
    assert np.array_equal(net.join(variant, dict(reversed(arrays.items()))), genome)
    weights = net.record(variant, genome)[0]["weights"]
    assert np.array_equal(weights[: len(genome)], genome.astype(weights.dtype))
    for wrong in (genome[1:], np.append(genome, 0.0)):
        if len(wrong) != len(genome):
            with pytest.raises(ValueError, match=f"{len(wrong)} weights: expected {len(genome)}"):
                net.record(variant, wrong)


@pytest.mark.parametrize(
    ("text", "variant_name", "fits"),
    [
        ("policy-mlp", "copenhagen", ", as in policy-mlp:16,16,16,16"),
        ("mlp:400,100,tanh", "brandubh", ", as in mlp:200,50,tanh"),
        ("residual:100", "brandubh", ", as in residual:4"),
        ("hingston2007:hidden=500", "copenhagen", ""),
    ],
)
def test_a_network_that_is_too_large_names_one_that_fits(text: str, variant_name: str, fits: str) -> None:
    net, variant = network.parse(text), games.find(variant_name)
    with pytest.raises(ValueError, match=f"expected at most {net.most_weights}{fits}$"):
        net.records(variant, [])
    if fits:
        fitting = network.parse(fits.rpartition(" ")[2])
        assert len(fitting.records(variant, [])) == 0


@pytest.mark.parametrize("text", [*network.NAMES, *SIZED])
def test_every_architecture_says_what_it_is(text: str) -> None:
    net = network.parse(text)
    usual = {
        "mlp": "mlp:50",
        "policy-mlp": "policy-mlp:128,128,128,128",
        "residual": "residual:4",
        "nnue": "nnue:64",
    }
    assert net.text == usual.get(text, text)
    assert network.parse(net.text) == net
    assert net.module.SOURCE
    assert net.output["scale"] > 0
    assert net.output["meaning"] in ("logit", "value")
    variant = games.find("hex:4" if "hex" not in net.module.GAMES else "brandubh")
    if variant.game not in net.module.GAMES:
        with pytest.raises(ValueError, match="expected a variant of tafl, not hex"):
            net.shapes(variant)


def test_numbers_of_architectures_are_their_own() -> None:
    numbers = [network.Network(name).module.NUMBER for name in network.NAMES]
    assert len(set(numbers)) == len(numbers)


def test_architectures_without_weights_are_known_by_name() -> None:
    bare = {
        name: network.Network(name).module.GAMES
        for name in network.NAMES
        if not any(network.Network(name).shapes(games.find("brandubh")))
    }
    assert bare == evaluators.BARE


def test_networks_are_named_with_their_sizes() -> None:
    variant = games.find("copenhagen")
    assert network.parse("hingston2007:hidden=20").count(variant) == 2463 + 10 * (102 + 2)
    assert network.parse("mlp:64,32").sizes == {
        **dict.fromkeys(("third", "activation", "planes", "edges", "transposed"), 0), "first": 64, "second": 32,
    }  # fmt: skip
    assert network.parse("mlp:transposed,5,planes").text == "mlp:5,planes,transposed"
    for text in (
        "nothing",
        "hingston2007:hidden=0",
        "hingston2007:width=3",
        "hingston2007:hidden",
        "hingston2007:20",
        "simple:a=1",
        "mlp:0",
        "mlp:513",
        "mlp:1,2,3,4",
        "mlp:relu,tanh",
        "mlp:first=3",
        "mlp:" + "9" * 5000,
    ):
        with pytest.raises(ValueError, match="expected") as refused:
            network.parse(text)
        assert len(str(refused.value)) < 400


@pytest.mark.parametrize("name", ["brandubh", "copenhagen", "tablut-linnaeus"])
def test_hand_set_weights_know_what_is_good(name: str) -> None:
    """What learning begins with is for the attackers where defenders are missing, and the other way round."""
    variant, net = games.find(name), network.parse("linear")
    record = net.record(variant, net.join(variant, linear.default(variant)))[0]
    position = games.initial(variant)
    level = verbs.value(record, position.new_record()[0])
    for side, better in ((0, -1), (1, 1)):
        state = position.new_record()[0]
        state["count"][side] -= 1
        assert (verbs.value(record, state) - level) * better > 0


def test_captures_since_the_root_count_for_who_made_them() -> None:
    variant, net = games.find("brandubh"), network.parse("linear-tablut")
    weights = np.zeros(14)
    weights[linear_tablut.FEATURES.index("capture")] = 2.0
    weights[7 + linear_tablut.FEATURES.index("capture")] = 3.0
    record = net.record(variant, weights)[0]
    position = games.initial(variant).play(games.initial(variant).parse_move("a4a2"))
    state = position.new_record()[0]
    verbs.make(state, position.parse_move("d3a3"))
    assert verbs.value(record, state) == -3.0
    verbs.undo(state)
    assert verbs.value(record, state) == 0.0


def test_a_side_at_the_root_counts_for_itself_alone() -> None:
    variant = games.find("tablut-herr-7")
    weights = genome_of(network.parse("linear-tablut"), variant)
    state = games.initial(variant).new_record()[0]
    parts = []
    for side in range(2):
        alone = weights.copy()
        alone[7 * (1 - side) : 7 * (2 - side)] = 0
        parts.append(verbs.value(network.parse("linear-tablut").record(variant, alone)[0], state))
    record = network.parse("linear-tablut:own").record(variant, weights)[0]
    for side in range(2):
        record["root_side"] = side + 1
        assert verbs.value(record, state) == pytest.approx(parts[side])
    record["root_side"] = 0
    assert verbs.value(record, state) == pytest.approx(sum(parts))


def test_hex_networks_do_not_care_who_is_called_a() -> None:
    """The network sees its own stones and the others: who moved last has the same value, whoever he is."""
    variant, net = games.find("hex:4"), network.parse("mlp:6")
    record = net.record(variant, genome_of(net, variant))[0]
    position = games.from_fen(variant, "4/1x2/2o1/4 a")
    state = position.new_record()[0]
    value = verbs.value(record, state)
    for sq, stone in position.pieces():
        state["board"][sq] = X << (stone == "x")
    state["side"] = 1
    assert verbs.value(record, state) == -value != 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["brandubh", "hex:4", "hexapawn:4x3"])
def test_a_search_by_nothing_sees_how_games_end(name: str) -> None:
    variant = games.find(name)
    assert evaluators.terms("zero", games.initial(variant)) == [("total", 0)]
    searcher, infos = Searcher(Settings(hash_mib=1, evaluator="zero")), []
    searcher.begin()
    searcher.search(games.initial(variant), Limits(depth=2), infos.append)
    assert infos[-1].score.cp == 0
    if name == "brandubh":
        escaping = games.from_fen(variant, "7/7/7/7/t6/7/K6 d")
        searcher.search(games.from_fen(variant, "7/K6/7/7/t6/7/7 d"), Limits(depth=2), infos.append)
        assert infos[-1].score.mate == 1
        assert escaping.outcome is not None


def test_terms_of_data_evaluators_add_up() -> None:
    position = positions(games.find("brandubh"), 30)[-1]
    terms = evaluators.terms("simple", position)
    assert [name for name, _ in terms] == ["captures", "distance", "total"]
    assert sum(value for _, value in terms[:-1]) == terms[-1][1]
    assert evaluators.remarks("simple", position) == []
    with pytest.raises(
        ValueError, match=r"expected a file whose name ends in \.safetensors, or one of default, .*, zero$"
    ):
        evaluators.terms("nothing", position)


def test_one_record_holds_every_architecture() -> None:
    assert loaded.LOADED.itemsize < 400_000
    wide, variant = network.parse("mlp:200"), games.find("alea-evangelii")
    with pytest.raises(ValueError, match="expected at most 32768"):
        wide.record(variant, np.zeros(wide.count(variant)))
