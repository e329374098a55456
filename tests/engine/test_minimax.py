"""Plain minimax against the textbook over whole positions: values, ties, draws, limits; and games of known results."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from legal_moves import generate
from patience import PROMPTLY
from search_parts import check_stop, wander
from thoroughness import THOROUGH

from hnefi.engine import evaluators, games
from hnefi.engine.evaluators import network
from hnefi.engine.games import interface as verbs
from hnefi.engine.games.base_position import Position
from hnefi.engine.search import minimax
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Info, Limits, Score, SearchResult, Settings
from hnefi.engine.sides import Reason, Side
from hnefi.engine.squares import move_name

TINY = "3tt2/7/7/7/3t3/7/2tKt2 a 0 9"
"""Brandubh: d3d2 leaves the defenders without a move."""


def parameters(evaluator: str, position: Position) -> Any:
    """The record of a named evaluator, or of a network with random weights that are the same each time."""
    if evaluator not in network.NAMES or evaluator == "simple":
        return evaluators.parameters(evaluator, position.variant)[0]
    net = network.parse(evaluator)
    genome = np.random.default_rng(5).normal(0, 0.3, net.count(position.variant))
    return net.record(position.variant, genome)[0]


def under(position: Position, **switches: Any) -> Position:
    """The same game under changed rules."""
    variant: Any = position.variant
    again = games.initial(variant.with_switches(**switches))
    for move in position.moves:
        again = again.play(move)
    return again


def plain(
    position: Position, depth: int, value: Callable[[Position], float], sight: str, ply: int = 1
) -> float:
    """What a position is worth for the attackers, `ply` plies from the root: no windows, no order, no records."""
    if position.outcome is not None and sight != "unseen":
        win = minimax.WIN if sight == "flat" else minimax.WIN - ply
        return {None: 0.0, Side.ATTACKERS: win, Side.DEFENDERS: -win}[position.outcome.winner]
    if depth == 0 or position.outcome is not None:
        return value(position)
    values = [plain(position.play(move), depth - 1, value, sight, ply + 1) for move in position.legal_moves()]
    return max(values) if position.side is Side.ATTACKERS else min(values)


def listed(position: Position) -> list[int]:
    """The legal moves in the order in which the kernel finds them."""
    state = position.new_record()[0]
    return [int(move) for move in state["moves"][: generate(state)]]


def below(stream: int, n: int) -> tuple[int, int]:
    """The stream after a draw and the number drawn, as `randbelow` is described: xorshift64*, high half scaled."""
    word = (1 << 64) - 1
    stream ^= stream >> 12
    stream ^= stream << 25 & word
    stream ^= stream >> 27
    return stream, ((stream * 0x2545F4914F6CDD1D & word) >> 33) * n >> 31


CASES = [
    # variant, evaluator, depth, random plies before, how many positions
    ("brandubh", "simple", 1, 9, 6),
    ("brandubh", "simple", 2, 12, 2),
    ("brandubh", "hingston2007", 2, 7, 1),
    ("mini-four", "simple", 3, 6, 3),
    ("mini-four", "zero", 3, 8, 2),
    ("mini-six", "simple", 3, 4, 1),
    ("tablut-herr-7-coded", "simple", 2, 20, 1),
    ("hingston-alternative", "simple", 1, 30, 3),
    ("hingston-original", "hingston2007", 1, 25, 2),
    ("berserk", "simple", 1, 20, 3),
    ("hexapawn:3x3", "default", 5, 0, 1),
    ("hexapawn:4x4", "default", 4, 2, 2),
    ("hex:3", "default", 3, 1, 2),
]


@pytest.mark.slow
@pytest.mark.parametrize("sight", ["near", "flat", "unseen"])
@pytest.mark.parametrize(("name", "evaluator", "depth", "plies", "number"), CASES)
def test_values_ties_and_the_draw(
    name: str, evaluator: str, depth: int, plies: int, number: int, sight: str
) -> None:
    """Windows change no value that matters, the tie set is exact, and one draw chooses in it; a limit on the length
    of the game, one ply away, changes nothing."""
    work = minimax.new_thread(flat=sight == "flat", unseen=sight == "unseen")[0]
    for seed in range(number):
        position = wander(name, seed, plies)
        seen = position
        if position.variant.game == "tafl":
            seen = under(position, move_limit=plies + 1)
            position = under(position, move_limit=0)
        params = parameters(evaluator, position)
        record = position.new_record()

        def value(there: Position, record: Any = record, params: Any = params) -> float:
            there.load(record)  # type: ignore[attr-defined]
            return float(verbs.value(params, record[0]))

        moves = listed(position)
        sign = 1 if position.side is Side.ATTACKERS else -1
        wanted = [sign * plain(position.play(move), depth - 1, value, sight) for move in moves]
        state = seen.new_record()[0]
        for full in (1, 0):
            work["full"] = full
            state["random"] = stream = 1 + seed * 7919
            chosen = int(minimax.choose(state, work, params, depth))
            found = work["root_values"][: len(moves)]
            ties = [i for i, x in enumerate(wanted) if x == max(wanted)]
            if full:
                assert list(found) == wanted
            assert [i for i, x in enumerate(found) if x == work["root_best"]] == ties
            assert work["root_best"] == max(wanted)
            after, index = below(stream, len(ties))
            assert chosen == moves[ties[index]]
            assert int(state["random"]) == after


def test_inside_a_berserk_turn_the_same_side_goes_on() -> None:
    """A turn of several plies: nothing but the side to move says who chooses."""
    draw = random.Random(3)
    found = 0
    position = games.initial(games.find("berserk"))
    while found < 3:
        if position.outcome is not None:
            position = games.initial(games.find("berserk"))
        taking = [m for m, taken in position.legal_moves_with_captures() if taken]
        move = draw.choice(taking or list(position.legal_moves()))
        side, position = position.side, position.play(move)
        if position.outcome is None and position.side is side:
            before = position.parent
            assert before is not None
            params = parameters("simple", before)
            record = before.new_record()

            def value(there: Position, record: Any = record, params: Any = params) -> float:
                there.load(record)  # type: ignore[attr-defined]
                return float(verbs.value(params, record[0]))

            work = minimax.new_thread()[0]
            work["full"] = 1
            moves = [move, *random.Random(found).sample(before.legal_moves(), 3)]
            work["root_count"] = len(moves)
            work["root_moves"][: len(moves)] = moves
            minimax.deepen(before.new_record()[0], work, params, 1)
            minimax.deepen(before.new_record()[0], work, params, 2)
            sign = 1 if side is Side.ATTACKERS else -1
            assert list(work["root_values"][: len(moves)]) == [
                sign * plain(before.play(m), 1, value, "near") for m in moves
            ]
            found += 1


def test_a_side_without_a_move_is_seen_to_lose_at_the_leaves() -> None:
    position = games.from_fen(games.find("brandubh"), TINY)
    smothering = position.parse_move("d3d2")
    outcome = position.play(smothering).outcome
    assert outcome is not None
    assert outcome.reason is Reason.NO_LEGAL_MOVE
    work = minimax.new_thread()[0]
    chosen = minimax.choose(position.new_record()[0], work, parameters("zero", position), 1)
    assert (int(chosen), float(work["root_best"])) == (smothering, minimax.WIN - 1)


def test_draws_are_uniform_among_the_equal() -> None:
    """Every move comes equally often: chi-square below its 99.99 % point, neighbouring seeds."""
    position = games.initial(games.find("brandubh"))
    state, params, work = position.new_record()[0], parameters("zero", position), minimax.new_thread()[0]
    moves = listed(position)
    drawn = Counter[int]()
    number = 200 * len(moves)
    stream = 12345
    for _ in range(number):
        state["random"] = stream
        drawn[int(minimax.choose(state, work, params, 1))] += 1
        stream = int(state["random"])
    assert set(drawn) == set(moves)
    expected = number / len(moves)
    chi = sum((n - expected) ** 2 / expected for n in drawn.values())
    degrees = len(moves) - 1
    assert chi < degrees * (1 - 2 / (9 * degrees) + 3.719 * (2 / (9 * degrees)) ** 0.5) ** 3


@pytest.mark.parametrize("depth", [3, 4])
def test_neither_the_order_of_moves_nor_earlier_searches_change_the_ties(depth: int) -> None:
    shuffle = random.Random(1)
    for seed in range(3):
        position = wander("brandubh", seed, 10)
        params, state = parameters("simple", position), position.new_record()[0]
        found = set()
        for _ in range(3):
            work = minimax.new_thread()[0]
            moves = list(position.legal_moves())
            shuffle.shuffle(moves)
            work["root_count"] = len(moves)
            work["root_moves"][: len(moves)] = moves
            work["killers"] = shuffle.choice(moves)
            for d in range(1, depth + 1):
                minimax.deepen(state, work, params, d)
            best = float(work["root_best"])
            ties = {m for m, x in zip(moves, work["root_values"], strict=False) if x == best}
            found.add((best, frozenset(ties)))
        assert len(found) == 1


def test_not_a_number_is_no_value() -> None:
    """Whatever an evaluator says, there is a move."""
    position = games.initial(games.find("brandubh"))
    net = network.parse("hingston2007")
    params = net.record(position.variant, np.full(net.count(position.variant), np.nan))[0]
    chosen = int(minimax.choose(position.new_record()[0], minimax.new_thread()[0], params, 2))
    assert chosen in position.legal_moves()


def test_a_search_cut_short_leaves_the_position_alone() -> None:
    position = wander("brandubh", 1, 8)
    record = position.new_record()
    params, work = parameters("simple", position), minimax.new_thread()[0]
    fresh = position.new_record()
    for limit in (1, 2, 50, 777, 5000):
        work["node_limit"] = limit
        assert int(minimax.choose(record[0], work, params, 4)) in position.legal_moves()
        assert (int(work["nodes"]), int(work["aborted"])) == (limit, 1)
        for name in ("board", "key", "side", "ply", "taken", "count", "outcome"):
            assert np.array_equal(record[0][name], fresh[0][name]), name


# The same inside the engine


def think(
    position: Position, limits: Limits, searcher: Searcher | None = None, **settings: Any
) -> tuple[SearchResult, list[Info]]:
    settings = {"algorithm": "minimax", "evaluator": "simple", "hash_mib": 1} | settings
    searcher = searcher or Searcher(Settings(**settings))
    infos: list[Info] = []
    searcher.begin()
    return searcher.search(position, limits, infos.append), infos


def best_moves(position: Position, depth: int, evaluator: str = "simple") -> set[int]:
    work = minimax.new_thread()[0]
    minimax.choose(position.new_record()[0], work, parameters(evaluator, position), depth)
    moves = listed(position)
    return {moves[i] for i in range(len(moves)) if work["root_values"][i] == work["root_best"]}


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_engine_draws_by_its_seed(depth: int) -> None:
    position = wander("brandubh", 4, 2)
    best = best_moves(position, depth)
    assert len(best) > 1
    searcher = Searcher()
    drawn = []
    for seed in range(12 * len(best)):
        searcher.configure(Settings(algorithm="minimax", evaluator="simple", seed=seed))
        result, infos = think(position, Limits(depth=depth), searcher)
        assert (infos[-1].depth, infos[-1].pv[0]) == (depth, result.move)
        assert think(position, Limits(depth=depth), searcher)[0] == result
        drawn.append(result.move)
    assert set(drawn) == best


def test_depth_is_one_where_nothing_says_otherwise() -> None:
    assert think(games.initial(games.find("brandubh")), Limits())[1][-1].depth == 1


def test_scores_are_those_of_the_evaluator() -> None:
    """Tenths of a man are ten centipawns, for the side to move; terminal values are counted in moves."""
    position = games.initial(games.find("brandubh")).play(listed(games.initial(games.find("brandubh")))[0])
    for move in position.legal_moves():
        after = position.play(move)
        score = think(position, Limits(searchmoves=(move,)))[1][-1].score
        assert score == Score(cp=-int(verbs.value(parameters("simple", after), after.new_record()[0])) * 10)
    smothered = games.from_fen(games.find("brandubh"), TINY)
    for wins in ("near", "flat"):
        result, infos = think(smothered, Limits(depth=1), wins=wins)
        assert result.move is not None
        assert (move_name(result.move), infos[-1].score, infos[-1].wdl) == (
            "d3d2",
            Score(mate=1),
            (1000, 0, 0),
        )


def test_who_takes_all_wins_for_equal_dawdles() -> None:
    """At once or two plies later: for `flat` it is the same, and the answer still is drawn among all."""
    position = games.from_fen(games.find("brandubh"), "7/7/K6/7/7/3t3/7 d 0 9")
    near = {think(position, Limits(depth=3), seed=seed)[0].move for seed in range(40)}
    flat = {think(position, Limits(depth=3), seed=seed, wins="flat")[0].move for seed in range(40)}
    assert near < flat
    scores = {think(position, Limits(depth=3), seed=seed, wins="flat")[1][-1].score for seed in range(40)}
    assert scores == {Score(mate=1), Score(mate=2)}


def test_all_lines_have_their_exact_values() -> None:
    position = wander("brandubh", 2, 6)
    _, infos = think(position, Limits(depth=2), multipv=256)
    moves = position.legal_moves()
    last = {info.multipv: info for info in infos if info.depth == 2}
    assert sorted(last) == list(range(1, len(moves) + 1))
    assert {last[k].pv[0] for k in last} == set(moves)
    scores = []
    for k in sorted(last):
        alone = think(position, Limits(depth=2, searchmoves=last[k].pv[:1]))[1][-1]
        assert alone.score == last[k].score
        scores.append(1000 - last[k].score.mate if last[k].score.mate else last[k].score.cp)
    assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("name", "evaluator"),
    [
        ("brandubh", "simple"),
        ("brandubh", "default"),
        ("copenhagen", "zero"),
        ("berserk", "simple"),
        ("hex:4", "default"),
        ("hexapawn:4x4", "default"),
    ],
)
def test_lines_are_legal_and_end_with_the_game(name: str, evaluator: str) -> None:
    for seed in range(4):
        position = wander(name, seed, 2 + seed)
        result, infos = think(position, Limits(depth=3), evaluator=evaluator)
        assert [info.depth for info in infos] == sorted({info.depth for info in infos})
        for info in infos:
            now = position
            for move in info.pv:
                assert now.outcome is None
                now = now.play(move)
            mate = info.score.mate
            if mate is not None:
                assert now.outcome is not None
                assert now.outcome.winner is (position.side if mate > 0 else position.side.other)
            elif now.outcome is None:
                assert len(info.pv) == info.depth
        assert result.ponder == (infos[-1].pv[1] if len(infos[-1].pv) > 1 else None)


def test_limits_end_it_with_the_last_whole_depth() -> None:
    position = games.initial(games.find("copenhagen"))
    for nodes in (1, 50, 300, 20_000):
        result, infos = think(position, Limits(nodes=nodes))
        assert infos[-1].nodes <= nodes
        assert infos[-1].pv[0] == result.move
        again = think(position, Limits(nodes=nodes))
        assert again[0] == result
        if nodes == 20_000:
            assert infos[-1].depth == 2
            assert result == think(position, Limits(depth=2))[0]
    begun = time.perf_counter()
    result, infos = think(position, Limits(movetime=1000))
    assert 0.5 < time.perf_counter() - begun < PROMPTLY
    assert infos[-1].depth >= 2
    assert result.move in position.legal_moves()


def test_a_stop_ends_it_before_and_during_the_search() -> None:
    searcher = Searcher(Settings(algorithm="minimax", evaluator="simple"))
    position = games.initial(games.find("copenhagen"))
    check_stop(searcher, position)


# Games of known results: attackers win, defenders win, draw, in per cent


def standard_errors(found: int, number: int, per_cent: float, known: int) -> float:
    """How far a share is from one measured elsewhere in `known` games, in standard errors of the difference."""
    share = (found + known * per_cent / 100) / (number + known)
    error = (share * (1 - share) * (1 / number + 1 / known)) ** 0.5
    return abs(found / number - per_cent / 100) / max(error, 1e-9)


def played(name: str, depth: int, number: int, *, flat: bool = False) -> tuple[list[int], float]:
    """Games of `simple` against itself in the kernels: attackers' wins, defenders', draws; mean plies."""
    position = games.initial(games.find(name))
    params, work, record = (
        parameters("simple", position),
        minimax.new_thread(flat=flat)[0],
        position.new_record(),
    )
    state = record[0]
    outcomes, plies = [0, 0, 0], 0
    for game in range(number):
        position.load(record)  # type: ignore[attr-defined]
        state["random"] = random.Random(game).getrandbits(64) or 1
        outcome = 0
        while not outcome:
            move = int(minimax.choose(state, work, params, depth))
            if move == 0:
                outcome = int(verbs.no_move_outcome(state))
                break
            verbs.make(state, move)
            outcome = int(state["outcome"]) or int(verbs.adjudicate(state, -1))
        outcomes[(outcome >> 8) - 1] += 1
        plies += int(state["ply"])
    return outcomes, plies / number


REFERENCE = [
    # rules, depth, flat, our games, attackers / defenders / draw %, mean plies, games behind these
    ("hingston-original", 2, False, 30, (0.1, 18.6, 81.3), 91.8, 2000),
    ("hingston-alternative", 2, False, 30, (3.5, 8.2, 88.3), 95.6, 1000),
    ("hingston-original", 3, False, 15, (1.6, 87.8, 10.6), 45, 1200),
    ("hingston-alternative", 3, False, 15, (54.3, 31.4, 14.3), 59, 1000),
    ("hingston-original", 3, True, 15, (1, 51, 48), 80, 500),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "depth", "flat", "number", "shares", "plies", "known"), REFERENCE)
def test_simple_against_itself_deeper(
    name: str, depth: int, flat: bool, number: int, shares: tuple[float, ...], plies: float, known: int
) -> None:
    number *= THOROUGH
    outcomes, mean = played(name, depth, number, flat=flat)
    for found, per_cent in zip(outcomes, shares, strict=True):
        assert standard_errors(found, number, per_cent, known) < 3, (outcomes, mean)
    assert abs(mean - plies) < 3 * 30 / number**0.5, (outcomes, mean)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shares", "plies"),
    [("hingston-original", (10.1, 89.9, 0.0), 25.5), ("hingston-alternative", (88.5, 11.5, 0.0), 22.8)],
)
def test_simple_against_itself_in_the_engine(name: str, shares: tuple[float, ...], plies: float) -> None:
    """Games through the searcher, a seed each: within three standard errors of what 20,000 games showed."""
    searchers = Searcher(), Searcher()
    outcomes, total, number = [0, 0, 0], 0, 150 * THOROUGH
    for game in range(number):
        for side, searcher in enumerate(searchers):
            searcher.configure(
                Settings(algorithm="minimax", evaluator="simple", hash_mib=1, seed=2 * game + side)
            )
        position = games.initial(games.find(name))
        while position.outcome is None:
            move = think(position, Limits(depth=1), searchers[position.side])[0].move
            assert move is not None
            position = position.play(move)
        winner = position.outcome.winner
        outcomes[2 if winner is None else winner] += 1
        total += position.ply
    for found, per_cent in zip(outcomes, shares, strict=True):
        assert standard_errors(found, number, per_cent, 20_000) < 3, (outcomes, total / number)
    assert abs(total / number - plies) < 2.5, (outcomes, total / number)
