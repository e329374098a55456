"""The search against a plain negamax, and against what it promises: limits, lines, forced ends, stopping."""

from __future__ import annotations

import random
import re
import threading
import time
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from search_parts import check_stop, records_of, start, think, wander
from thoroughness import THOROUGH

from hnefi.engine import bench, evaluators, games
from hnefi.engine.catalogue import MEASURED
from hnefi.engine.games import interface as verbs
from hnefi.engine.games.tafl import adjudication, make, noisy, variant
from hnefi.engine.games.tafl.fen import parse_fen
from hnefi.engine.games.tafl.position import Position
from hnefi.engine.score import INFINITE, MATE
from hnefi.engine.search import alphabeta
from hnefi.engine.search.clock import budget
from hnefi.engine.search.deepening import score_of, win_draw_loss
from hnefi.engine.search.quiescence import QUIET_PLIES
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.table import BUCKET, EXACT, LOWER, UPPER
from hnefi.engine.search.types import Limits, Score, SearchResult, Settings
from hnefi.engine.sides import Side
from hnefi.engine.squares import move_name

SHIPPED = variant.names()


def at(name: str, fen: str) -> Position:
    return Position.from_setup(variant.find(name), parse_fen(fen))


# The textbook's alpha-beta over the same verbs: no table, no order, no null windows.


def settled(outcome: int, side: int, ply: int) -> int:
    winner = outcome >> 8
    return 0 if winner == 3 else (MATE - ply if winner == side + 1 else ply - MATE)


class TooLarge(Exception):
    """The tree has outgrown a test."""


def plain(
    state: Any,
    params: Any,
    depth: int,
    ply: int,
    root: int,
    bottom: int,
    plies_left: list[int],
    alpha: int = -MATE,
    beta: int = MATE,
) -> int:
    plies_left[0] -= 1
    if plies_left[0] < 0:
        raise TooLarge
    side = int(state["side"])
    quiet = depth <= 0
    best = int(verbs.evaluate(params, state)) if quiet else -MATE
    if quiet and (ply >= bottom or best >= beta):
        return best
    alpha = max(alpha, best)
    end = noisy.generate_noisy(state, 0) if quiet else adjudication.legal_moves(state)
    moves = [int(m) for m in state["moves"][:end]]
    if not moves and not quiet:
        return settled(int(adjudication.no_move_outcome(state)), side, ply)
    for m in moves:
        make.make(state, m)
        outcome = int(state["outcome"]) or int(adjudication.adjudicate(state, root))
        if outcome:
            value = settled(outcome, side, ply + 1)
        else:
            below = bottom if quiet else (ply + 1 + QUIET_PLIES)
            window = (alpha, beta) if int(state["side"]) == side else (-beta, -alpha)
            value = plain(
                state, params, depth - 1 if not quiet else 0, ply + 1, root, below, plies_left, *window
            )
            if int(state["side"]) != side:
                value = -value
        make.undo(state)
        best = max(best, value)
        alpha = max(alpha, best)
        if alpha >= beta:
            break
    return best


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURED)
def test_search_is_plain_alphabeta(name: str) -> None:
    """Table, order and principal variation search change the work, never the value."""
    compared = 0
    for seed in range(3 * THOROUGH):
        position = wander(name, seed, 4 + 3 * seed)
        params = evaluators.parameters("default", position.variant)[0]
        for depth in (1, 2):
            record = position.new_record()
            state = record[0]
            try:
                wanted = plain(state, params, depth, 0, int(state["ply"]), QUIET_PLIES, [20_000])
            except TooLarge:
                continue
            _, infos = think(position, Limits(depth=depth), features="none")
            assert infos[-1].score == score_of(wanted), f"{position.fen()} depth {depth}"
            compared += 1
    assert compared >= 3


def searched_with(
    plies: tuple[int, ...],
    bound: int = 0,
    value: int = 0,
    depth: int = 0,
    window: tuple[int, int] = (-INFINITE, INFINITE),
) -> tuple[int, set[int]]:
    """The value of Brandubh's start three plies deep, with such an entry for every position `plies` from it; and the
    values that the table then has for the positions one ply from it."""
    position = start("brandubh")
    searcher = Searcher(Settings(hash_mib=1, features="none"))
    records = records_of(searcher, position)
    work, table = records[1], records[2]
    moves = position.legal_moves()
    work["root_count"] = len(moves)
    work["root_moves"][: len(moves)] = moves
    work["node_limit"] = 1 << 40
    data = (value + 32768) << 18 | depth << 34 | bound << 42 | int(work["generation"]) << 44
    children = {child.key: child for child in map(position.play, moves)}
    grandchildren = {child.play(m).key for child in children.values() for m in child.legal_moves()}

    def bucket(key: int) -> range:
        at = (key & int(work["mask"])) * 2 * BUCKET
        return range(at, at + 2 * BUCKET, 2)

    for key in (children.keys() if 1 in plies else set()) | (grandchildren if 2 in plies else set()):
        at = next((i for i in bucket(key) if not table[i + 1]), bucket(key)[0])
        table[at], table[at + 1] = key ^ data, data
    found = int(alphabeta.search_root(*records, 3, 0, *window))
    stored = {
        int(table[i + 1]) >> 18 & 65535
        for key in children
        for i in bucket(key)
        if int(table[i]) ^ int(table[i + 1]) == key
    }
    return found, {each - 32768 for each in stored}


@pytest.mark.parametrize(
    ("bound", "value", "depth"),
    [(UPPER, 1000, 60), (LOWER, -1000, 60), (EXACT, 777, 0), (EXACT, -777, 0)],
    ids=["useless upper bound", "useless lower bound", "too shallow, high", "too shallow, low"],
)
def test_the_table_is_believed_only_as_far_as_it_goes(bound: int, value: int, depth: int) -> None:
    """Entries that say nothing about the window, or come from a shallower search, leave every value alone."""
    plain = searched_with(())[0]
    # A wrong cut just below the root would be searched again; two plies below nobody notices.
    assert searched_with((1, 2), bound, value, depth)[0] == plain


@pytest.mark.parametrize(
    ("value", "root", "child"), [(MATE - 5, MATE - 7, 6 - MATE), (5 - MATE, 7 - MATE, MATE - 6)]
)
def test_forced_ends_are_counted_from_where_they_are_met(value: int, root: int, child: int) -> None:
    """The table keeps how far an end is from its own position: five plies there are seven from two plies above."""
    # An empty window believes every exact entry.
    assert searched_with((2,), EXACT, value, 60, window=(root - 1, root)) == (root, {child})


@pytest.mark.parametrize("name", MEASURED)
def test_nodes_are_exact_and_repeat(name: str) -> None:
    for nodes in (1, 17, 5000):
        first = think(start(name), Limits(nodes=nodes))
        again = think(start(name), Limits(nodes=nodes))
        assert first[0] == again[0]
        assert [(i.depth, i.nodes, i.score, i.pv) for i in first[1]] == [
            (i.depth, i.nodes, i.score, i.pv) for i in again[1]
        ]
        assert first[1][-1].nodes == nodes


@pytest.mark.parametrize("hash_mib", [1, 64])
def test_a_search_after_others_repeats_after_clear(hash_mib: int) -> None:
    """A table that was used is emptied in place, a large one hardly touched is thrown away."""
    searcher = Searcher(Settings(hash_mib=hash_mib))
    fresh = think(start("brandubh"), Limits(depth=5), searcher)[1][-1]
    think(wander("brandubh", 1, 4), Limits(depth=4), searcher)
    table = searcher.algorithm.table
    searcher.clear()
    assert (searcher.algorithm.table is table) == (hash_mib == 1)
    again = think(start("brandubh"), Limits(depth=5), searcher)[1][-1]
    assert (fresh.nodes, fresh.pv) == (again.nodes, again.pv)


@pytest.mark.parametrize("name", MEASURED)
def test_lines_are_legal_and_end_with_the_game(name: str) -> None:
    for seed in range(5):
        position = wander(name, 50 + seed, 10 + 6 * seed)
        result, infos = think(position, Limits(depth=4))
        for info in infos:
            now = position
            for m in info.pv:
                assert now.outcome is None
                now = now.play(m)
        assert infos[-1].pv[0] == result.move
        assert result.ponder == (infos[-1].pv[1] if len(infos[-1].pv) > 1 else None)


FORCED = [
    # variant, position, score, best moves
    ("brandubh", "7/7/7/7/t6/7/4K2 d 0 30", 1, {"e1g1", "e1a1"}),
    ("brandubh", "7/7/2t4/1tK4/2t4/6t/7 a 0 30", None, None),
    ("copenhagen", "11/11/11/11/11/11/11/4t6/3tK1t4/4t6/11 a 0 40", 1, {"g3f3"}),
    ("tablut-linnaeus", "9/9/9/9/9/9/2K6/9/t8 d 0 10", 1, None),
    ("tablut-linnaeus", "4t4/9/9/9/9/9/9/9/3tK3t d 0 10", 1, None),
]


@pytest.mark.parametrize(("name", "fen", "mate", "best"), FORCED)
def test_forced_wins(name: str, fen: str, mate: int | None, best: set[str] | None) -> None:
    position = at(name, fen)
    if position.outcome is not None:
        return
    result, infos = think(position, Limits(depth=4))
    if mate is None:
        assert infos[-1].score.cp is not None or infos[-1].score.mate is not None
        return
    assert infos[-1].score == Score(mate=mate)
    assert result.move is not None
    if best is not None:
        assert move_name(result.move) in best
    now = position
    for m in infos[-1].pv:
        now = now.play(m)
    assert now.outcome is not None
    assert now.outcome.winner is position.side


@pytest.mark.slow
def test_mate_scores_match_their_lines() -> None:
    """N moves of the winner are 2N - 1 plies when winning and 2N when losing, and the game is over behind them."""
    seen = 0
    for name in ("brandubh", "tablut-linnaeus", "hingston-alternative"):
        for seed in range(30):
            position = wander(name, seed, 20 + seed % 15)
            _, infos = think(position, Limits(depth=5))
            mate = infos[-1].score.mate
            if mate is None:
                continue
            assert len(infos[-1].pv) <= (2 * mate - 1 if mate > 0 else -2 * mate)
            now = position
            for m in infos[-1].pv:
                now = now.play(m)
            if now.outcome is not None and now.outcome.winner is not None:
                assert (now.outcome.winner is position.side) == (mate > 0)
                seen += 1
    assert seen > 10


def test_search_moves_and_lines() -> None:
    position = start("brandubh")
    allowed = position.legal_moves()[3:6]
    result, _ = think(position, Limits(depth=3, searchmoves=allowed))
    assert result.move in allowed
    _, infos = think(position, Limits(depth=4), multipv=4)
    last = {info.multipv: info for info in infos if info.depth == 4}
    assert sorted(last) == [1, 2, 3, 4]
    values = [last[k].score.cp for k in (1, 2, 3, 4)]
    assert values == sorted(values, reverse=True)  # type: ignore[type-var]
    assert len({last[k].pv[0] for k in last}) == 4
    # Other lines leave other entries in the table; only what leaves nothing out has one value.
    _, infos = think(position, Limits(depth=4), multipv=4, features="none")
    first = [info for info in infos if info.depth == 4 and info.multipv == 1][-1]
    single = think(position, Limits(depth=4), features="none")[1][-1]
    assert first.score == single.score


def test_stop_and_time_from_outside() -> None:
    searcher = Searcher(Settings(hash_mib=4))
    position = start("copenhagen")
    check_stop(searcher, position)


def test_pondering_waits_for_the_hit() -> None:
    searcher = Searcher(Settings(hash_mib=4))
    position = start("copenhagen")
    limits = Limits(clock=(100, 100), ponder=True)
    results: list[SearchResult] = []
    searcher.begin()
    thread = threading.Thread(
        target=lambda: results.append(searcher.search(position, limits, lambda _: None))
    )
    thread.start()
    time.sleep(0.4)
    assert thread.is_alive()
    searcher.ponderhit()
    thread.join(60)
    assert results
    # A hit that overtakes the search is not lost.
    searcher.begin()
    searcher.ponderhit()
    assert searcher.search(position, limits, lambda _: None).move is not None


@pytest.mark.parametrize("clock", [-5000, 0, 1, 50])
def test_a_move_comes_on_an_empty_clock(clock: int) -> None:
    position = start("copenhagen")
    result, _ = think(position, Limits(clock=(clock, clock)))
    assert result.move in position.legal_moves()


def test_budgets() -> None:
    def hard(limits: Limits) -> float:
        allowed = budget(limits, Side.ATTACKERS, 10).hard
        assert allowed is not None
        return allowed

    assert hard(Limits(movetime=100)) == 90
    assert hard(Limits(clock=(60_000, None))) <= 60_000 * 0.4
    assert hard(Limits(clock=(1000, None), movestogo=1)) == 990
    assert 0 < hard(Limits(clock=(-100, None))) <= 1
    assert hard(Limits(clock=(20, None), inc=(10_000, 0))) <= 10
    assert hard(Limits(clock=(10**30, None), inc=(10**30, 0))) < 10**9
    assert budget(Limits(clock=(None, 5000)), Side.ATTACKERS, 10).hard is None
    assert budget(Limits(depth=5), Side.ATTACKERS, 10).hard is None


def test_repetition_loses_for_defenders() -> None:
    """Where repeating loses for the defenders the search knows it: a repeated position is never their best line."""
    game = variant.find("brandubh").with_switches(repetition="defenders_lose", repetition_count=2)
    position = Position.from_setup(game, parse_fen("7/7/7/3K3/7/t5T/7 a 0 1"))
    for text in ("a2a3", "g2g3", "a3a2"):
        position = position.play(position.parse_move(text))
    result, infos = think(position, Limits(depth=3))
    assert result.move != position.parse_move("g3g2")
    assert infos[-1].score.mate is None or infos[-1].score.mate > 0


@pytest.mark.parametrize("plies", [1, 2])
def test_contempt_makes_a_draw_worse_for_the_side_that_thinks(plies: int) -> None:
    """Wherever the tree ends in a draw: every game here is drawn after so many plies, whoever is to move."""
    for played in (0, 1):
        game = variant.find("brandubh").with_switches(move_limit=plies + played)
        position = Position.initial(game)
        for _ in range(played):
            position = position.play(position.legal_moves()[0])
        searcher = Searcher(Settings(hash_mib=1))
        # The same searcher: what its table knows of draws by the contempt of before must not count.
        for contempt in (0, 30, -50):
            searcher.configure(Settings(hash_mib=1, contempt=contempt))
            _, infos = think(position, Limits(depth=3), searcher)
            assert infos[-1].score == Score(cp=-contempt), (played, contempt)


def test_contempt_decides_whether_a_repetition_is_taken() -> None:
    """A draw that is wanted is better than any even position, one that is despised worse than all of them."""
    game = variant.find("brandubh").with_switches(repetition="draw", repetition_count=2)
    position = Position.initial(game)
    for text in ("a4a3", "c4c3", "a3a4"):
        position = position.play(position.parse_move(text))
    back = position.parse_move("c3c4")
    for contempt, repeats in ((-1000, True), (1000, False)):
        result, _ = think(position, Limits(depth=1), contempt=contempt)
        assert (result.move == back) == repeats


def test_scores() -> None:
    assert score_of(MATE - 1) == Score(mate=1)
    assert score_of(MATE - 3) == Score(mate=2)
    assert score_of(-(MATE - 2)) == Score(mate=-1)
    assert score_of(-MATE) == Score(mate=0)
    assert score_of(-57) == Score(cp=-57)
    assert win_draw_loss(100) == (640, 0, 360)
    assert win_draw_loss(0) == (500, 0, 500)
    assert win_draw_loss(MATE - 5) == (1000, 0, 0)


def test_evaluation_is_the_same_from_both_sides() -> None:
    """Terms are for the attackers whoever is to move; the kernel's value is for the side to move."""
    for name in SHIPPED:
        position = wander(name, 3, 7)
        terms = Searcher().evaluate(position)
        assert terms[-1] == ("total", sum(value for _, value in terms[:-1]))
        params = evaluators.parameters("default", position.variant)[0]
        own = int(verbs.evaluate(params, position.new_record()[0]))
        assert own == (terms[-1][1] if position.side is Side.ATTACKERS else -terms[-1][1])


def test_evaluation_does_not_see_which_way_the_board_lies() -> None:
    """The eight symmetries of a board leave the value alone."""
    for name in ("copenhagen", "tablut-bologna"):
        position = wander(name, 11, 12)
        rows = position.fen().split()[0].split("/")
        flipped = "/".join(reversed(rows))
        tail = " ".join(position.fen().split()[1:])
        mirrored = at(name, f"{flipped} {tail}")
        by_hand = Searcher(Settings(evaluator=evaluators.HAND))
        assert by_hand.evaluate(position) == by_hand.evaluate(mirrored)


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("side", list(Side), ids=["attackers", "defenders"])
def test_beats_a_random_mover(name: str, side: Side) -> None:
    """A sample of the hundred of a hundred that MEASUREMENTS.md reports."""
    searcher = Searcher(Settings(hash_mib=1))
    for seed in range(6):
        draw = random.Random(seed)
        position = start(name)
        while position.outcome is None:
            if position.side is side:
                move = think(position, Limits(nodes=2000), searcher)[0].move
                assert move is not None
            else:
                move = draw.choice(position.legal_moves())
            position = position.play(move)
        assert position.outcome.winner is side, f"{name} seed {seed}: {position.outcome.text}"


def test_random_is_seeded() -> None:
    position = start("brandubh")
    moves = {think(position, Limits(), algorithm="random", seed=seed)[0].move for seed in range(60)}
    assert len(moves) > 20
    assert moves <= set(position.legal_moves())
    assert len({think(position, Limits(), algorithm="random", seed=3)[0].move for _ in range(3)}) == 1


def test_random_reports_as_many_lines_as_are_asked_for() -> None:
    position = start("brandubh")
    alone, _ = think(position, Limits(), algorithm="random", seed=3)
    for lines, reported in ((3, 3), (256, len(position.legal_moves()))):
        result, infos = think(position, Limits(), algorithm="random", seed=3, multipv=lines)
        assert result.move == alone.move == infos[0].pv[0]
        assert [info.multipv for info in infos] == list(range(1, reported + 1))
        assert len({info.pv[0] for info in infos}) == reported


def test_the_signature_is_the_measured_one() -> None:
    """Whoever changes how the engine plays writes down the new number."""
    assert bench.bench()[0] == bench.SIGNATURE
    text = (Path(__file__).resolve().parents[2] / "MEASUREMENTS.md").read_text("utf-8")
    rows = re.findall(r"^\| [^|]*to depth (\d+) [^|]*\| ([\d,]+) \|", text, re.MULTILINE)
    depth, nodes = rows[-1]
    assert int(depth) == bench.DEPTH
    assert int(nodes.replace(",", "")) == bench.SIGNATURE


@pytest.mark.parametrize("name", ["brandubh", "hex:5", "hexapawn:4x4"])
@pytest.mark.parametrize(
    ("algorithm", "skill"),
    [
        *(("alphabeta", level) for level in (1, 4, 7, 10)),
        *((word, 10) for word in ("minimax", "mcts", "random")),
    ],
)
def test_the_last_report_is_about_the_move_that_is_played(name: str, algorithm: str, skill: int) -> None:
    dice = random.Random(f"{name} {algorithm} {skill}")
    other = 0
    for lines in (1, 3):
        searcher = Searcher(Settings(hash_mib=1, algorithm=algorithm, skill=skill, multipv=lines))
        position = games.initial(games.find(name))
        while position.outcome is None and len(position.moves) < 12:
            limits = Limits(nodes=dice.choice([1, 3, 10, 50, 333, 2000]))
            result, infos = think(position, limits, searcher)
            last = [info.pv for info in infos if info.multipv == 1][-1]
            assert last[0] == result.move
            assert last[1:2] == (() if result.ponder is None else (result.ponder,))
            if result.better:
                assert result.better[0] != result.move
                assert result.better in [info.pv for info in infos if info.multipv == 1]
                other += 1
            assert result.move is not None
            position = position.play(result.move)
    assert other if skill == 4 else skill < 10 or not other


@pytest.mark.parametrize("algorithm", ["alphabeta", "minimax", "mcts", "puct"])
def test_the_last_report_counts_the_whole_search(algorithm: str) -> None:
    """An iteration cut short leaves nothing to report but what it cost."""
    searcher = Searcher(Settings(hash_mib=4, algorithm=algorithm))
    limits = [Limits(nodes=nodes) for nodes in (700, 3000, 9000)]
    for limit in limits:
        searcher.clear()
        _, infos = think(start("brandubh"), limit, searcher)
        last = infos[-1]
        assert last.multipv == 1
        assert last.nodes == limit.nodes
        assert last.time == max(info.time for info in infos)
        assert [info.nodes for info in infos] == sorted(info.nodes for info in infos)


@pytest.mark.parametrize("algorithm", ["alphabeta", "mcts"])
def test_threads_that_are_not_wanted_any_more_leave_no_memory_behind(algorithm: str) -> None:
    many = Settings(hash_mib=1, algorithm=algorithm, threads=8)
    searcher = Searcher(many)
    think(start("brandubh"), Limits(nodes=100), searcher)
    kept = [weakref.ref(work) for work in searcher.algorithm.threads[1:]]
    assert len(kept) == 7
    searcher.configure(replace(many, threads=1))
    assert [work() for work in kept] == [None] * 7
    think(start("brandubh"), Limits(nodes=100), searcher)
