"""What the search does beyond the textbook: forced ends stay proven, parts can be left out, threads and levels work."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from conversation import Conversation
from search_parts import records_of, start, think, wander
from thoroughness import THOROUGH

from hnefi.engine import evaluators, games, options
from hnefi.engine.games import interface as verbs
from hnefi.engine.games.tafl import variant
from hnefi.engine.score import INFINITE
from hnefi.engine.search import alphabeta, features, move_order, quiescence, skill
from hnefi.engine.search import table as table_words
from hnefi.engine.search.alphabeta import ABDADA_MIN_DEPTH
from hnefi.engine.search.alphabeta_run import images
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.table import ABDADA_WORDS, BUCKET
from hnefi.engine.search.types import Limits, Settings

SMALL = ("brandubh", "tablut-linnaeus", "tablut-bologna", "hingston-original", "mini-six")


def test_features_by_name() -> None:
    assert features.read("all") == features.ALL
    assert features.read("none") == 0
    usual = features.ALL & ~features.OFF
    assert features.read("default", 9) == features.read("", 9) == usual == features.DEFAULT
    assert features.read("all -lmr") == features.ALL & ~features.LMR
    assert features.read("-LMR") == usual & ~features.LMR
    assert features.read("default nullmove") == usual | features.NULL_MOVE != usual
    # What rungs and levels were measured with depends on the board, and not on what came later.
    measured = features.bit("symmetry") * 2 - 1
    small = measured & ~features.NULL_MOVE
    assert features.read("default-2026.1", 7) == features.read("default-2026.1 -nullmove", 9) == small
    assert features.read("default-2026.1", 9) == measured
    assert features.read("mate_in_one, proven") == features.MATE_IN_ONE | features.PROVEN
    assert features.read("none futility -futility iir") == features.IIR
    with pytest.raises(ValueError, match="expected default, all, none, or any of mate_in_one, proven"):
        features.read("all -nullmoves")
    option = options.find("features")
    assert option is not None
    with pytest.raises(ValueError, match="expected default, all, none"):
        option.read("everything")
    assert option.read("all -iir") == "all -iir"


def test_old_names_of_features_mean_what_they_meant() -> None:
    prunings = features.REVERSE_FUTILITY | features.FUTILITY | features.LATE_MOVE_PRUNING
    assert features.read("none pruning") == prunings
    assert features.read("all -pruning") == features.ALL & ~prunings
    assert features.read("none foresight reductions") == features.MATE_IN_ONE | features.LMR
    assert features.read("none continuation internal") == features.CONTINUATION_HISTORY | features.IIR
    assert features.renamed("default -Pruning, lmr internal") == {
        "pruning": "reverse_futility futility late_move_pruning",
        "internal": "iir",
    }


@pytest.mark.process
def test_old_names_of_features_say_what_is_new() -> None:
    with Conversation() as engine:
        engine.send("uti", "setoption name Features value default -pruning", "isready")
        notes = [line for line in engine.until("readyok") if line.startswith("info string note")]
    new = "reverse_futility futility late_move_pruning"
    assert notes == [
        f"info string note Features: pruning is now called {new}; the next release removes the old name"
    ]


@pytest.mark.parametrize("name", features.NAMES)
def test_every_feature_does_something(name: str) -> None:
    """Left out, the same depth is another search somewhere."""
    for place in (start("copenhagen"), wander("tablut-linnaeus", 3, 12), wander("brandubh", 5, 8)):
        whole = think(place, Limits(depth=7), features="all")[1][-1]
        without = think(place, Limits(depth=7), features=f"all -{name}")[1][-1]
        if (whole.nodes, whole.pv) != (without.nodes, without.pv):
            return
    raise AssertionError(f"{name} changes nothing")


@pytest.mark.parametrize("name", [name for name in SMALL if name != "hingston-original"])
def test_forced_ends_are_proven(name: str) -> None:
    """Whoever is said to win does win by the textbook's search, which leaves nothing out."""
    proven = 0
    for seed in range(60):
        place = wander(name, seed, 10 + seed % 17)
        info = think(place, Limits(depth=6, nodes=40_000))[1][-1]
        mate = info.score.mate
        if mate is None or abs(mate) > 2:
            continue
        plies = 2 * mate - 1 if mate > 0 else -2 * mate
        plain = think(place, Limits(depth=max(plies, 1)), features="none")[1][-1].score.mate
        assert plain is not None, f"{place.fen()}: {info}"
        assert (plain > 0) == (mate > 0), f"{place.fen()}: {info}"
        proven += 1
    assert proven >= 2


@pytest.mark.parametrize("name", SMALL)
def test_a_search_for_a_win_leaves_nothing_out(name: str) -> None:
    for seed in range(8):
        place = wander(name, 100 + seed, 14)
        found = think(place, Limits(mate=2))[1][-1].score.mate
        plain = think(place, Limits(depth=3), features="none")[1][-1].score.mate
        won = plain is not None and 0 < plain <= 2
        assert won == (found is not None and 0 < found <= 2), place.fen()


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_narrow_windows_and_pruned_windows_give_the_same_value(name: str) -> None:
    for seed in range(2 * THOROUGH):
        place = wander(name, 300 + seed, 8)
        wide = think(place, Limits(depth=5), features="none")[1][-1]
        narrow = think(place, Limits(depth=5), features="aspiration")[1][-1]
        assert wide.score == narrow.score, place.fen()


def test_lines_come_best_first() -> None:
    for seed in range(4):
        _, infos = think(wander("copenhagen", seed, 10), Limits(depth=5), multipv=5)
        last = {info.multipv: info for info in infos if info.depth == 5}
        values = [last[line].score.cp for line in range(1, 6)]
        assert None not in values
        assert values == sorted(values, reverse=True)  # type: ignore[type-var]
        assert len({info.pv[0] for info in last.values()}) == 5


@pytest.mark.parametrize("name", ["copenhagen", "brandubh"])
def test_threads_share_a_table_and_tear_nothing(name: str) -> None:
    searcher = Searcher(Settings(hash_mib=1, threads=3))
    for seed in range(3):
        place = wander(name, seed, 6)
        result, infos = think(place, Limits(depth=7), searcher)
        assert result.move in place.legal_moves()
        assert infos[-1].depth >= 7 or infos[-1].score.mate is not None
        works = [works[0] for works in searcher.algorithm.threads]
        assert all(int(work["nodes"]) > 0 for work in works)
        assert infos[-1].nodes <= sum(int(work["nodes"]) for work in works)
        # A move of the table that is not legal where it was found would be a torn entry.
        assert [int(work["illegal_tt_moves"]) for work in works] == [0, 0, 0]


@pytest.mark.parametrize("limits", [Limits(depth=8), Limits(nodes=30_000)])
def test_threads_leave_nothing_marked_as_busy(limits: Limits) -> None:
    """A word that is left behind would put off its move for the rest of the game."""
    searcher = Searcher(Settings(hash_mib=1, threads=2))
    think(start("copenhagen"), limits, searcher)
    table = searcher.algorithm.table
    assert len(table) == ABDADA_WORDS + 2 * BUCKET * (int(searcher.algorithm.threads[0][0]["mask"]) + 1)
    assert not table[-ABDADA_WORDS:].any()


def test_what_another_thread_is_busy_with_comes_later() -> None:
    place = start("brandubh")
    searcher = Searcher(Settings(hash_mib=1, threads=2))
    state, work, table, _ = records_of(searcher, place)
    moves = place.legal_moves()
    state["moves"][: len(moves)] = moves
    key = np.uint64(12345)
    words = {move: np.uint64(table_words.abdada_word(key, np.int64(move))) for move in moves}
    busy = set(random.Random(1).sample(moves, 12))
    for move in busy:
        table[table_words.abdada_slot(work, words[move])] = words[move]
    order = {move: 20_000 + 7 * (move % 1000) for move in moves}
    work["order"][: len(moves)] = [order[move] for move in moves]
    found = []
    for i in range(len(moves)):
        move_order.pick_move(state, work, i, len(moves))
        place_of_word = move_order.abdada_pick(state, work, table, key, i, len(moves))
        move = int(state["moves"][i])
        assert table[place_of_word] == words[move]
        assert (int(work["order"][i]) < 0) == (move in busy)
        if move not in busy:
            table[place_of_word] = 0
        found.append(move)
    free = sorted((m for m in moves if m not in busy), key=lambda m: -order[m])
    put_off = sorted(busy, key=lambda m: -order[m])
    assert [order[m] for m in found] == [order[m] for m in free + put_off]
    assert set(found) == set(moves)


def test_root_moves_that_others_search_come_in_a_second_round() -> None:
    """The value is the same, and the moves put off are those that another thread is said to be busy with."""
    place = wander("brandubh", 2, 6)
    moves = place.legal_moves()

    def searched(team: bool, busy: list[int]) -> tuple[int, list[bool]]:
        searcher = Searcher(Settings(hash_mib=1, threads=2, features="none"))
        records = records_of(searcher, place)
        _, work, table, _ = records
        work["parallel"] = team
        work["node_limit"] = 1 << 40
        work["root_count"] = len(moves)
        work["root_moves"][: len(moves)] = moves
        for move in busy:
            key = np.uint64(alphabeta.table_key(records[0]))
            word = np.uint64(table_words.abdada_word(key, np.int64(move)))
            table[table_words.abdada_slot(work, word)] = word
        value = alphabeta.search_root(*records, ABDADA_MIN_DEPTH, 0, -INFINITE, INFINITE)
        return int(value), work["root_deferred"][: len(moves)].astype(bool).tolist()

    chosen = [moves[0], moves[3], moves[-1]]
    alone, none = searched(False, chosen)
    shared, later = searched(True, chosen)
    assert shared == alone
    assert not any(none)
    # The first move is searched at once by everybody.
    assert later == [number > 0 and move in chosen for number, move in enumerate(moves)]


SYMMETRIC = ["copenhagen", "tablut-linnaeus", "berserk", "hex:4", "hex-swap:4", "hexapawn:5x4"]


@pytest.mark.parametrize("name", SYMMETRIC)
def test_keys_of_images_are_those_of_the_mirrored_game(name: str) -> None:
    """From a start that is its own image a game is played once as it is and once as the symmetry shows it."""
    dice = random.Random(f"mirror {name}")
    place = games.initial(games.find(name))
    compared = 0
    for number, squares in enumerate(place.symmetries(), start=1):
        count, there, back = images(place)
        assert count == len(place.symmetries())
        assert all(back[number, there[number, sq]] == sq for sq in range(len(there[0])))
        here = mirrored = games.initial(games.find(name))
        if {(squares[sq], piece) for sq, piece in place.pieces()} != set(place.pieces()):
            continue
        compared += 1
        for _ in range(20):
            state = here.new_record()[0]
            assert int(verbs.image_key(state, there[number])) == mirrored.key
            assert mirrored.canonical() == here.canonical()
            move = dice.choice(here.legal_moves())
            origin, target = (squares.get(sq, sq) for sq in (move & 511, move >> 9))
            assert int(alphabeta.map_move(there[number], move)) == origin | target << 9
            here, mirrored = here.play(move), mirrored.play(origin | target << 9)
            if here.outcome is not None:
                break
    assert compared


@pytest.mark.parametrize(
    ("name", "depth"),
    [("copenhagen", 4), ("tablut-linnaeus", 4), ("brandubh", 5), ("hex:4", 5), ("hexapawn:5x4", 9)],
)
def test_images_are_one_in_the_table_below_a_symmetric_root(name: str, depth: int) -> None:
    found = []
    for wanted in ("none", "none symmetry"):
        # A network may tell images apart where the king stands on an axis of the board, this evaluator never.
        searcher = Searcher(Settings(hash_mib=1, features=wanted, evaluator=evaluators.HAND))
        _, infos = think(games.initial(games.find(name)), Limits(depth=depth), searcher)
        found.append((infos[-1].score, infos[-1].nodes))
        assert int(searcher.algorithm.threads[0][0]["illegal_tt_moves"]) == 0
    (value, nodes), (same, fewer) = found
    assert same == value
    assert fewer < nodes


def test_a_root_without_symmetry_is_searched_as_ever() -> None:
    place = wander("brandubh", 3, 5)
    trees = [
        [
            (info.nodes, info.score, info.pv)
            for info in think(place, Limits(depth=6), Searcher(Settings(hash_mib=1, features=wanted)))[1]
        ]
        for wanted in ("default", "default -symmetry")
    ]
    assert trees[0] == trees[1]


def test_evaluations_are_remembered_as_they_were() -> None:
    """What is remembered is what the evaluator says, in games whose keys meet in the same places."""
    searcher = Searcher(Settings(hash_mib=1))
    state, work, _, params = records_of(searcher, start("brandubh"))
    for seed in range(300):
        place = wander("brandubh", seed, 3 + seed % 40)
        place.load(searcher.record)
        for _ in range(2):
            assert int(quiescence.static_eval(state, work, params)) == int(verbs.evaluate(params, state))
    assert np.count_nonzero(work["eval_cache"]) > 250


def test_threads_keep_a_limit_of_nodes() -> None:
    searcher = Searcher(Settings(hash_mib=1, threads=2))
    _, infos = think(start("brandubh"), Limits(nodes=10_001), searcher)
    spent = [int(works[0]["nodes"]) for works in searcher.algorithm.threads]
    # The first thread spends its half; the other may not have come to run so long.
    assert spent[0] in (5000, 5001)
    assert spent[1] <= 5001
    assert infos[-1].nodes <= sum(spent)


def test_levels_evaluate_as_they_did_when_they_were_measured() -> None:
    """Whatever becomes of the newest weights; an analysis uses these, and who names an evaluator gets it."""

    def by(evaluator: str, level: float, name: str = "brandubh") -> Any:
        searcher = Searcher(Settings(hash_mib=1, skill=level, evaluator=evaluator))
        infos = think(games.initial(games.find(name)), Limits(nodes=1500), searcher)[1]
        return [(info.depth, info.nodes, info.score) for info in infos]

    assert by("default", 5) == by(skill.EVALUATOR, 5) != by("simple", 5)
    assert by("default", 10) != by(skill.EVALUATOR, 10)
    searcher = Searcher(Settings(hash_mib=1, skill=5))
    think(start("ard-ri"), Limits(infinite=True, nodes=500), searcher)
    newest = evaluators.parameters(evaluators.HAND, start("ard-ri").variant)[0]
    assert searcher.params[0]["lost"].tolist() == newest["lost"].tolist()
    assert by("default", 5, "hex:4")


def test_levels_grow() -> None:
    levels = [skill.weakness(level) for level in range(1, 11)]
    assert levels[-1] is None
    known = [level for level in levels if level is not None]
    assert all(lower.nodes < higher.nodes for lower, higher in pairwise(known))
    assert all(lower.temperature >= higher.temperature for lower, higher in pairwise(known))
    assert known[-1].lines == 1 < known[0].lines
    between = skill.weakness(4.5)
    assert between is not None
    assert known[3].nodes < between.nodes < known[4].nodes


def test_moves_are_drawn_by_what_they_seem_to_be_worth() -> None:
    draw = random.Random(1)
    counts = Counter(skill.choose([100, 100, 0, -29_990], 100.0, draw) for _ in range(4000))
    # exp(0), exp(0), exp(-1): 0.42, 0.42, 0.16; a lost game is not chosen.
    assert abs(counts[0] / 4000 - 0.42) < 0.04
    assert abs(counts[2] / 4000 - 0.155) < 0.03
    assert counts[3] == 0
    assert skill.choose([5, 4], 0.0, draw) == 0


def test_a_level_plays_differently_by_seed_and_the_same_by_the_same() -> None:
    place = wander("copenhagen", 2, 4)
    moves = {
        seed: think(place, Limits(depth=20), skill=1, seed=seed)[0].move for seed in (1, 2, 3, 4, 5, 6, 7, 8)
    }
    assert len(set(moves.values())) >= 3
    assert moves[3] == think(place, Limits(depth=20), skill=1, seed=3)[0].move
    result, infos = think(place, Limits(depth=20), skill=4)
    assert result.move in place.legal_moves()
    assert {info.multipv for info in infos} == {1}
    wanted = skill.weakness(4)
    assert wanted is not None
    assert infos[-1].nodes <= wanted.nodes


def test_the_level_for_beginners_plays_most_moves_without_a_look_at_the_board() -> None:
    place = start("brandubh")
    legal = set(place.legal_moves())
    seeds = range(160)
    played = {think(place, Limits(depth=20), skill=0, seed=seed)[0].move for seed in seeds}
    assert played <= legal
    assert len(played) > 0.8 * len(legal), "any move may be played"
    assert len(
        {think(place, Limits(depth=20), skill=7, seed=seed)[0].move for seed in range(40)}
    ) < 0.4 * len(legal)
    assert (
        think(place, Limits(infinite=True, nodes=2000), skill=0)[0]
        == think(place, Limits(infinite=True, nodes=2000))[0]
    )


def test_an_analysis_is_as_strong_as_can_be() -> None:
    place = start("brandubh")
    assert (
        think(place, Limits(infinite=True, nodes=20_000), skill=1)[1][-1].pv
        == think(place, Limits(infinite=True, nodes=20_000))[1][-1].pv
    )


@pytest.mark.parametrize("name", variant.names()[::6])
def test_levels_play_every_variant(name: str) -> None:
    place = start(name)
    assert think(place, Limits(depth=5), skill=3)[0].move in place.legal_moves()
