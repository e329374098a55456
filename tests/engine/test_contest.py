"""Whole games in kernels: reference values, and the fast network against the slow one, move by move."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases import read_all
from random_variants import random_variant
from thoroughness import THOROUGH, sampled

from hnefi.engine import games
from hnefi.engine.compile.jit import entry
from hnefi.engine.evaluators import network
from hnefi.engine.games import interface as verbs
from hnefi.engine.games.tafl import adjudication, random_move
from hnefi.engine.games.tafl.position import Position
from hnefi.engine.search import minimax
from hnefi.engine.selfplay import hingston2007_incremental as incremental
from hnefi.engine.selfplay import match as contest
from hnefi.engine.selfplay import one_ply
from hnefi.engine.selfplay.match import GAME, Contestant
from hnefi.engine.sides import Reason
from hnefi.tools.bench import oneply as bench_oneply
from hnefi.tools.bench.oneply import disagreements
from hnefi.tools.bench.speed import find_compiler

CASES = read_all()
RANDOM = Contestant("random")
NETWORKS = ("hingston2007", "hingston2007-2862")
TERMINAL = Contestant("minimax")
TAFL = [variant for variant in games.everything() if variant.game == "tafl"]


def simple(variant: Any, **settings: Any) -> Contestant:
    return Contestant("minimax", params=network.parse("simple").record(variant, np.zeros(0)), **settings)


def evolved(variant: Any, spread: float | None, seed: int, name: str = "hingston2007") -> Contestant:
    """A random network; without a spread as the first parents of an evolution have it, N(0, 1) / n."""
    net, numbers = network.parse(name), np.random.default_rng(seed)
    count = net.count(variant)
    return Contestant(
        "minimax", params=net.record(variant, numbers.normal(0, 1, count) * (spread or 1 / count))
    )


def grown_together(variant: Any, seed: int, name: str = "hingston2007") -> Contestant:
    """A network of almost equal weights, as evolution with one step size makes it: hidden units far from zero, and
    values that differ by less than 1e-9."""
    net, numbers = network.parse(name), np.random.default_rng(seed)
    genome = 0.36 + numbers.normal(0, 0.02, net.count(variant))
    return Contestant("minimax", params=net.record(variant, genome))


def played(variant: Any, attackers: Contestant, defenders: Contestant, count: int, **how: Any) -> Any:
    made = np.zeros(count, GAME)
    made["defenders"] = 1
    made["seed"] = np.arange(count)
    contest.play(variant, [attackers, defenders], made, **how)
    return made


# Attackers win, defenders win in percent and mean plies, each measured over so many games with other programs.
REFERENCE = [
    ("original", "simple", "simple", 10.1, 89.9, 25.5, 20000),
    ("alternative", "simple", "simple", 88.5, 11.5, 22.8, 20000),
    ("original", "blind", "blind", 0.3, 0.9, 99.7, 20000),
    ("alternative", "blind", "blind", 11.3, 0.8, 96.4, 40000),
    ("original", "terminal", "terminal", 5.3, 8.7, 96.4, 20000),
    ("alternative", "terminal", "terminal", 83.6, 1.3, 62.9, 20000),
    ("original", "simple", "blind", 39.2, 23.8, 79, 4000),
    ("alternative", "simple", "blind", 99.8, 0.2, 36.9, 4000),
    ("original", "blind", "simple", 0.4, 98.1, 31.8, 4000),
    ("alternative", "blind", "simple", 3.2, 94.1, 32.8, 4000),
]


@pytest.mark.slow
@pytest.mark.parametrize(("rules", "attackers", "defenders", "a", "d", "plies", "measured"), REFERENCE)
def test_reference_values(
    rules: str, attackers: str, defenders: str, a: float, d: float, plies: float, measured: int
) -> None:
    variant = games.find(f"hingston-{rules}")
    players = {"simple": simple(variant), "blind": RANDOM, "terminal": TERMINAL}
    made = played(variant, players[attackers], players[defenders], 2000)
    for winner, percent in ((1, a), (2, d)):
        share = float((made["outcome"] >> 8 == winner).mean())
        # The reference is rounded to a tenth of a percent; a share near 0 has no smaller error than 0.1 percent.
        expected = percent / 100
        variance = max(expected * (1 - expected), 0.002)
        assert abs(share - expected) < 3 * (variance * (1 / 2000 + 1 / measured)) ** 0.5 + 0.0005
    error = float(made["plies"].std()) * (1 / 2000 + 1 / measured) ** 0.5
    assert abs(float(made["plies"].mean()) - plies) < 3 * error + 0.5


def test_games_are_what_the_rules_say() -> None:
    variant = games.find("hingston-original")
    player, count = simple(variant), 60
    made = played(variant, player, player, count)
    again = played(variant, player, player, 2 * count)
    assert again[:count].tobytes() == made.tobytes()
    assert made["evaluations"].min() > made["plies"].min()
    assert made["taken"].max() <= 24
    assert {Reason.from_code(int(code) & 255) for code in made["outcome"]} <= {
        Reason.KING_CAPTURED,
        Reason.KING_ESCAPED,
    }
    blind = played(variant, RANDOM, RANDOM, count)
    assert set(blind["outcome"] & 255) >= {Reason.MOVE_LIMIT.code}
    assert blind["plies"].max() == 100
    assert not blind["evaluations"].any()


def test_the_hash_is_that_of_the_moves() -> None:
    """Every game of two plies, hashed by hand from the rules; from an opening, only what comes after it counts."""

    def hashed(*moves: int) -> int:
        found = 0xCBF29CE484222325
        for move in moves:
            found = (found ^ move) * 0x100000001B3 % 2**64
        return found

    variant = games.find("brandubh").with_switches(move_limit="3", move_limit_unit="plies")
    start = games.initial(variant)
    opening = start.play(start.legal_moves()[7])
    possible = {
        hashed(first, second)
        for first in opening.legal_moves()
        for second in opening.play(first).legal_moves()
    }
    made = np.zeros(300, GAME)
    made["seed"] = np.arange(300)
    table = contest.Table(variant, [RANDOM])
    table.play(made, opening)
    assert set(made["plies"].tolist()) == {2}
    found = set(made["moves_hash"].tolist())
    assert found <= possible
    assert len(found) > 100
    # The table forgets the opening.
    table.play(made)
    assert set(made["plies"].tolist()) == {3}


def test_others_at_the_same_table_play_as_at_a_new_one() -> None:
    """Nothing is left of those who sat there before: of longer weights, inputs, or what single precision can do."""
    variant = games.find("hingston-original")
    line_ups = [
        [evolved(variant, 2.0, 1, "hingston2007-2862"), evolved(variant, 1e7, 2)],
        [evolved(variant, 0.5, 3), evolved(variant, 0.5, 4)],
        [simple(variant, depth=3), evolved(variant, 0.5, 4, "mlp:4")],
        [evolved(variant, 0.5, 5), RANDOM],
        [evolved(variant, 0.5, 3), evolved(variant, 0.5, 6)],
        [TERMINAL, RANDOM],
    ]
    shared = contest.Table(variant, line_ups[0])
    different: set[int] = set()
    for players in line_ups * 2:
        made = np.zeros(12, GAME)
        made["defenders"] = 1
        made["seed"] = np.arange(12)
        alone = made.copy()
        shared.seat(players)
        shared.play(made)
        contest.Table(variant, players).play(alone)
        assert made.tobytes() == alone.tobytes()
        different.update(made["moves_hash"].tolist())
    assert len(different) > len(line_ups)


def test_weights_end_where_the_newcomers_end() -> None:
    variant = games.find("brandubh")
    long, short = evolved(variant, 1.0, 1), evolved(variant, 1.0, 2, "linear")
    table = contest.Table(variant, [long])
    table.seat([short])
    assert table.params.tobytes() == contest.Table(variant, [short]).params.tobytes()


@pytest.mark.parametrize("name", ["brandubh", "hex:3", "hexapawn:3x4"])
def test_every_game_is_played(name: str) -> None:
    variant = games.find(name)
    made = played(variant, TERMINAL, RANDOM, 50)
    assert (made["outcome"] > 0).all()
    assert made["evaluations"].min() > 0
    # Who sees a win and takes it does better than who does not.
    worse = played(variant, RANDOM, RANDOM, 50)
    assert (made["outcome"] >> 8 == 1).sum() > (worse["outcome"] >> 8 == 1).sum()


def test_deeper_players_see_more() -> None:
    variant = games.find("brandubh")
    deep = played(variant, simple(variant, depth=2), simple(variant), 40)
    shallow = played(variant, simple(variant), simple(variant), 40)
    assert deep["evaluations"].sum() > 3 * shallow["evaluations"].sum()


def test_games_without_an_end_are_cut_off() -> None:
    variant = games.find("brandubh").with_switches(repetition="ignore", move_limit=0)
    made = played(variant, evolved(variant, 0.5, 2), evolved(variant, 0.5, 3), 30)
    cut = made[made["plies"] == contest.MOST_PLIES]
    assert made["plies"].max() <= contest.MOST_PLIES
    assert len(cut)
    assert (cut["outcome"] == Reason.PLY_CAP.code | 3 << 8).all()


def test_strangers_are_refused() -> None:
    variant = games.find("brandubh")
    for players, message in (
        ([RANDOM], "expected 0 to 0"),
        ([RANDOM, Contestant("mcts")], "expected random, random-coded or minimax"),  # type: ignore[arg-type]
        ([RANDOM, Contestant("minimax", depth=0)], "expected 1 to"),
    ):
        made = np.zeros(1, GAME)
        made["defenders"] = 1
        with pytest.raises(ValueError, match=message):
            contest.play(variant, players, made)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hingston-original", "hingston-alternative", "copenhagen", "brandubh"])
@pytest.mark.parametrize("spread", [None, 0.02, 1.0])
@pytest.mark.parametrize("net", NETWORKS)
def test_fast_games_are_the_slow_ones(name: str, net: str, spread: float | None) -> None:
    variant = games.find(name)
    players = evolved(variant, spread, 5, net), evolved(variant, spread, 6, net)
    count = 3 * THOROUGH if variant.files < 11 else THOROUGH
    assert (
        played(variant, *players, count).tobytes() == played(variant, *players, count, quick=False).tobytes()
    )
    assert played(variant, players[0], RANDOM, count).tobytes() == (
        played(variant, players[0], RANDOM, count, quick=False).tobytes()
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "spread", "depth", "count"),
    [
        ("hingston-original", None, 2, 2),
        ("hingston-alternative", 1.0, 2, 2),
        ("copenhagen", 0.05, 2, 1),
        ("brandubh", None, 3, 4),
        ("brandubh", 1.0, 4, 1),
        ("brandubh", 0.05, 3, 4),
    ],
)
def test_fast_games_some_plies_deep_are_the_slow_ones(
    name: str, spread: float | None, depth: int, count: int
) -> None:
    """All but the number of positions valued: both prune, each in its own order."""
    variant = games.find(name).with_switches(move_limit="120", move_limit_unit="plies")  # type: ignore[union-attr]
    one, other = (replace(evolved(variant, spread, seed), depth=depth) for seed in (5, 6))
    third = replace(grown_together(variant, 7), depth=min(depth, 2 if variant.size > 7 else 3))
    for pair in ((one, other), (one, RANDOM), (third, RANDOM)):
        quick, slow = played(variant, *pair, count), played(variant, *pair, count, quick=False)
        for field in ("outcome", "plies", "taken"):
            np.testing.assert_array_equal(quick[field], slow[field])


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "plies", "count", "step"), [(2, 16, 2, 2), (3, 3, 1, 5)])
def test_fast_networks_some_plies_deep_move_as_the_search_does(
    depth: int, plies: int, count: int, step: int
) -> None:
    """Rule sets of every kind, random ones too; equal moves, which transpositions make common, are drawn alike."""
    draw_rules = random.Random(43)
    small = [variant for variant in TAFL if variant.files <= 11]
    random_ones = [random_variant(draw_rules, 7) for _ in range(10)]
    for number, variant in sampled([*enumerate([*small, *random_ones])], step):
        net = network.parse(NETWORKS[number // 12 % 2])
        genome = np.random.default_rng(number).normal(0, 0.2, net.count(variant))
        if number % 3 == 0:
            genome = np.round(4 * genome) / 4  # many positions are worth the same
        player = Contestant("minimax", depth=depth, params=net.record(variant, genome), flat=number % 4 == 0)
        limited = variant.with_switches(move_limit=str(plies), move_limit_unit="plies")
        quick = played(limited, player, player, count)
        slow = played(limited, player, player, count, quick=False)
        for field in ("outcome", "plies", "taken"):
            np.testing.assert_array_equal(quick[field], slow[field], variant.name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("depth", "plies", "count", "step", "files"),
    [(1, 60, 4, 1, 11), (2, 40, 1, 4, 11), (3, 16, 1, 8, 9), (4, 8, 1, 4, 6)],
)
def test_who_counts_captures_or_nothing_moves_as_the_search_does(
    depth: int, plies: int, count: int, step: int, files: int
) -> None:
    """Simple, players without a network, and one whose values are all 0."""
    draw_rules = random.Random(47)
    small = [variant for variant in TAFL if variant.files <= files]
    random_ones = [random_variant(draw_rules, min(files, 7)) for _ in range(30)]
    won = 0
    for number, variant in sampled([*enumerate([*small, *random_ones])], step):
        limited = variant.with_switches(move_limit=str(plies), move_limit_unit="plies")
        net = network.parse("hingston2007")
        zeros = net.record(variant, np.zeros(net.count(variant)))
        for params in (simple(variant).params, None, zeros):
            player = Contestant("minimax", depth, params, flat=number % 4 == 0)
            for pair in ((player, RANDOM), (RANDOM, player)):
                quick, slow = played(limited, *pair, count), played(limited, *pair, count, quick=False)
                for field in ("outcome", "plies", "taken", "moves_hash"):
                    np.testing.assert_array_equal(quick[field], slow[field], variant.name)
                won += (quick["outcome"] >> 8 < 3).sum()
    assert won > 0


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(("rules", "nearer"), [("brandubh", 1), ("copenhagen", 100)])
def test_errors_after_a_move_are_as_small_as_they_say(rules: str, nearer: int, name: str) -> None:
    """Where hidden units are far from zero, far below that of the network. Moves are those of the search."""
    variant = games.find(rules)
    player = grown_together(variant, 1, name)
    td, net = minimax.new_thread()[0], incremental.prepared(player.params)[0]
    plain, single = np.zeros(td["root_values"].size), np.zeros(td["root_values"].size + 2)
    state = games.initial(variant).new_record()[0]
    state["random"] = 4
    incremental.refresh(net, state)
    least = np.inf
    for _ in range(40):
        end = value_all(state, td, player.params[0], net, plain, single)
        open_ = np.abs(plain[:end]) < minimax.MOST
        error = error_after(net, state)
        assert np.abs(td["root_values"][:end] - plain[:end])[open_].max() <= error
        least = min(least, error)
        verbs.make(state, random_move.random_move(state))
        incremental.update(net, state)
        if state["outcome"] or verbs.adjudicate(state, -1):
            break
    assert least <= net["error"] / nearer
    assert disagreements(variant, player, 60, 2) == 0


def test_errors_after_a_move_follow_the_slopes() -> None:
    """Hidden units that stay near 3: a sigmoid's own error is most of a value's, far above rounding."""
    variant = games.find("brandubh")
    net = network.parse("hingston2007")
    arrays = net.split(variant, np.random.default_rng(1).normal(0, 1e-3, net.count(variant)))
    arrays["hidden_bias"][:], arrays["output"][:] = 3, 1
    genome = np.concatenate([array.reshape(-1) for array in arrays.values()])
    params = net.record(variant, genome)
    td, accumulator = minimax.new_thread()[0], incremental.prepared(params)[0]
    plain, single = np.zeros(td["root_values"].size), np.zeros(td["root_values"].size + 2)
    state = games.initial(variant).new_record()[0]
    incremental.refresh(accumulator, state)
    end = value_all(state, td, params[0], accumulator, plain, single)
    worst = np.abs(td["root_values"][:end] - plain[:end]).max()
    assert 10 * accumulator["rounding"] < worst < error_after(accumulator, state) < accumulator["error"] / 2


@pytest.mark.parametrize("spread", [None, 0.02, 0.3, 1.0])
def test_fast_network_moves_as_the_search_does(spread: float | None) -> None:
    draw_rules = random.Random(41)
    variants = [*TAFL, *(random_variant(draw_rules) for _ in range(20))]
    assert {variant.files for variant in variants} >= {7, 9, 11, 13, 15, 19}
    for number, variant in enumerate(variants):
        hidden = (10, 16, 1, 7)[number % 4]
        player = evolved(variant, spread, number, f"{NETWORKS[number // 4 % 2]}:hidden={hidden}")
        assert disagreements(variant, player, 12, number + 1) == 0, variant.name


def test_equal_moves_are_drawn_alike() -> None:
    # All weights 0, and all but those of captures: nothing or little tells moves apart.
    variant = games.find("hingston-original")
    net = network.parse("hingston2007")
    genome = np.zeros(net.count(variant))
    assert disagreements(variant, Contestant("minimax", params=net.record(variant, genome)), 60, 1) == 0
    arrays = net.split(variant, genome)
    arrays["hidden"][:, -3] = 1
    arrays["output"][:] = 1
    assert disagreements(variant, Contestant("minimax", params=net.record(variant, genome)), 200, 2) == 0


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("spread", [None, 0.05, 2.0])
def test_fast_values_are_as_near_as_they_say(spread: float | None, name: str) -> None:
    variant = games.find("copenhagen")
    params = evolved(variant, spread, 9, name).params
    params, net = params[0], incremental.prepared(params)[0]
    state = games.initial(variant).new_record()[0]
    state["random"] = 3
    incremental.refresh(net, state)
    worst = 0.0
    for _ in range(incremental.REFRESH_EVERY - 2):
        verbs.make(state, random_move.random_move(state))
        incremental.update(net, state)
        if state["outcome"]:
            break
        worst = max(worst, abs(read(net, state) - float(verbs.value(params, state))))
    assert 0 < worst < net["error"]
    assert net["moves"] > 20


@entry
def read(net: Any, s: Any) -> Any:
    hidden = incremental.hidden_sums(net, s)
    if net.whole:
        hidden = incremental.add_whole(net, hidden, 0, 0.0)
    return incremental.output(net, hidden)


@entry
def error_after(net: Any, s: Any) -> Any:
    return incremental.error_after(net, s)


@entry
def value_all(s: Any, td: Any, p: Any, net: Any, plain: Any, single: Any) -> Any:
    """Values of all moves: the fast ones in `td`, after them in `single` those in single precision and the bound of
    their errors, those of positions that were played in `plain`."""
    end = adjudication.generate(s, 0)
    single[end] = incremental.copy_single(net, s)
    best = one_ply.score_all(s, td, p, net, net.single, end)
    for i in range(end):
        single[i] = td.root_values[i]
    single[end + 1] = best
    one_ply.score_all(s, td, p, net, net, end)
    sign = 1.0 if s.side == 0 else -1.0
    for i in range(end):
        plain[i] = sign * one_ply.score(s, p, int(s.moves[i]))
    return end


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("spread", [None, 0.02, 0.3, 2.0])
def test_values_in_single_precision_are_as_near_as_they_say(spread: float | None, name: str) -> None:
    """Games in which much is captured, with networks of all sizes; also how far the bound is from what is met."""
    td = minimax.new_thread()[0]
    plain, single = np.zeros(td["root_values"].size), np.zeros(td["root_values"].size + 2)
    nearest = 1.0
    for number, variant in enumerate([games.find("brandubh"), games.find("copenhagen"), games.find("alea")]):
        params = evolved(variant, spread, number, f"{name}:hidden={(16, 10, 3)[number]}").params
        params, net = params[0], incremental.prepared(params)[0]
        state = games.initial(variant).new_record()[0]
        state["random"] = number + 1
        incremental.refresh(net, state)
        for _ in range(60):
            end = value_all(state, td, params, net, plain, single)
            open_ = np.abs(plain[:end]) < minimax.MOST
            worst = float(np.abs(single[:end] - plain[:end])[open_].max())
            assert worst < single[end]
            assert single[end + 1] == single[:end].max()
            values = np.array(td["root_values"][:end])
            assert np.abs(values - plain[:end])[open_].max() <= error_after(net, state)
            nearest = min(nearest, single[end] / max(worst, 1e-300))
            verbs.make(state, random_move.random_move(state))
            incremental.update(net, state)
            if state["outcome"] or verbs.adjudicate(state, -1):
                break
    assert nearest < 300


def test_networks_that_single_precision_cannot_tell_apart_are_left_to_double_precision() -> None:
    variant = games.find("brandubh")
    net = network.parse("hingston2007")
    arrays = net.split(variant, np.random.default_rng(3).normal(0, 0.1, net.count(variant)))
    for array, factor in (("hidden", 1e39), ("output", 1e-39)):
        arrays[array][:] *= factor
    enormous = np.concatenate([arrays[key].reshape(-1) for key in arrays])
    for genome, at_once in ((np.zeros(net.count(variant)), False), (enormous, True)):
        player = Contestant("minimax", params=net.record(variant, genome))
        accumulator = incremental.prepared(player.params)[0]
        assert accumulator["fits"]
        assert bool(accumulator["coarse"]) == at_once
        state = games.initial(variant).new_record()[0]
        incremental.refresh(accumulator, state)
        one_ply.choose(state, minimax.new_thread()[0], player.params[0], accumulator)
        assert accumulator["coarse"]
        assert disagreements(variant, player, 60, 1) == 0


@pytest.mark.parametrize("name", NETWORKS)
def test_fast_values_know_every_rule(name: str) -> None:
    """What a move captures or ends in the written cases, which random games hardly meet."""
    td = minimax.new_thread()[0]
    networks: dict[int, tuple[Any, Any]] = {}
    plain, single = np.zeros(td["root_values"].size), np.zeros(td["root_values"].size + 2)
    seen = 0
    for case in CASES:
        variant, setup = case.variant(), case.setup()
        if setup is None or case.expected.targets is not None:
            continue
        if variant.files not in networks:
            params = evolved(variant, 0.3, 1, name).params
            networks[variant.files] = params[0], incremental.prepared(params)[0]
        params, net = networks[variant.files]
        position = Position.from_setup(variant, setup)
        moves = case.plies()
        for move in moves[:-1]:
            if move in position.legal_moves():
                position = position.play(move)
        if position.outcome is not None:
            continue
        state = position.new_record()[0]
        incremental.refresh(net, state)
        count = value_all(state, td, params, net, plain, single)
        np.testing.assert_allclose(
            td["root_values"][:count], plain[:count], rtol=0, atol=float(net["error"]), err_msg=case.text
        )
        np.testing.assert_allclose(
            single[:count], plain[:count], rtol=0, atol=float(single[count]), err_msg=case.text
        )
        seen += count
    assert seen > 10_000


def test_networks_that_do_not_fit_are_played_all_the_same() -> None:
    variant = games.find("brandubh")
    for player in (
        evolved(variant, 0.1, 1, "hingston2007:hidden=17"),
        evolved(variant, 1e200, 1),
        evolved(variant, 0.1, 1, "mlp"),
    ):
        net = incremental.prepared(player.params)[0]
        assert not net["fits"]
        assert (played(variant, player, RANDOM, 3)["evaluations"] > 0).all()


@pytest.mark.process
def test_benchmark(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    variant = games.find("brandubh")
    figures = bench_oneply.measure(variant, find_compiler(), 1, most=40)
    assert figures["plain_ratio"] > 1
    assert set(figures["populations"]) == {"5+5", "50+50", "500+500"}
    without = bench_oneply.measure(variant, None, 1, most=5)
    assert without["c_forward_ns"] is None
    assert "in C" not in "".join(bench_oneply.lines_of(without))
    assert bench_oneply.main(["--verify", "300"]) == 0
    assert "0 disagreements" in capsys.readouterr().out
    assert bench_oneply.main(["--variant", "mini-four", "--plies", "2", "--rounds", "1"]) == 0
    monkeypatch.setattr(bench_oneply, "disagreements", lambda *_: 1)
    assert bench_oneply.main(["--verify", "300"]) == 1
