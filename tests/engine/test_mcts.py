"""The tree search against a slow tree of its own kind, solved boards, and what it promises: limits, proofs, reuse."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import search_parts
from numba import config
from patience import PROMPTLY
from random_games import positions
from search_parts import start, wander
from thoroughness import THOROUGH
from twin_mcts import TwinSearch, children, same_tree

from hnefi.engine import evaluators, games
from hnefi.engine.catalogue import MEASURED
from hnefi.engine.compile import intrinsics
from hnefi.engine.compile.jit import entry
from hnefi.engine.games.base_position import Position
from hnefi.engine.search.mcts import NODE, ONE, ROOT
from hnefi.engine.search.mcts_run import FIRST_DEPTH, GAMES, MATE_SIMULATIONS
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Info, Limits, Score, SearchResult, Settings
from hnefi.engine.squares import move_name

NAMES = [*games.names(), "hex:3", "hex:11", "hex-swap:5", "hexapawn:3x1", "hexapawn:4x4", "hexapawn:19x19"]


def at(name: str, fen: str) -> Position:
    return games.from_fen(games.find(name), fen)


def grower(**settings: Any) -> Searcher:
    settings.setdefault("algorithm", "mcts")
    settings.setdefault("hash_mib", 8)
    return Searcher(Settings(**settings))


def think(
    position: Position, limits: Limits, searcher: Searcher | None = None, **settings: Any
) -> tuple[SearchResult, list[Info]]:
    return search_parts.think(position, limits, searcher or grower(**settings))


def nodes_of(searcher: Searcher) -> Any:
    return searcher.algorithm.nodes


def check_tree(searcher: Searcher) -> int:
    """The tree hangs together and its counts add up; how many nodes it has."""
    nodes, used = searcher.algorithm.nodes, int(searcher.algorithm.tree[0]["used"])
    assert used <= len(nodes)
    seen, queue = 0, [ROOT]
    while queue:
        p = queue.pop()
        seen += 1
        below = children(nodes, p)
        visits = int(nodes[p]["visits"])
        assert abs(int(nodes[p]["score"])) <= visits * ONE
        assert int(nodes[p]["tried"]) <= len(below)
        if below:
            assert p < below[0]
            assert below[-1] < used
            through = sum(int(nodes[c]["visits"]) for c in below)
            assert through <= visits
            assert all(int(nodes[c]["visits"]) == 0 for c in below[int(nodes[p]["tried"]) :])
            # What did not go on to a child stayed here.
            rest = int(nodes[p]["score"]) - sum(int(nodes[c]["score"]) for c in below)
            assert abs(rest) <= (visits - through) * ONE
        assert all(int(nodes[c]["parent"]) == p for c in below)
        queue += below
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["mcts", "puct"])
@pytest.mark.parametrize("leaf", ["playout", "evaluator"])
@pytest.mark.parametrize("name", ["hexapawn:3x4", "hexapawn:4x4", "hex:3", "brandubh"])
def test_the_tree_is_the_slow_tree(name: str, algorithm: str, leaf: str) -> None:
    """Same stream of random numbers, same simulations: every node has the same count, sum, proof and children."""
    position = start(name)
    number = 60 if name == "brandubh" else 400
    searcher = grower(algorithm=algorithm, mcts_leaf=leaf)
    think(position, Limits(nodes=number), searcher)
    state = position.new_record()[0]
    state["random"] = searcher.context(position, Limits(), lambda _: None).stream().getrandbits(64)
    params = evaluators.parameters("default", position.variant)[0]
    patience = GAMES if leaf == "playout" else 1
    twin = TwinSearch(state, params, algorithm == "puct", leaf == "evaluator", patience)
    twin.grow(twin.root, list(position.legal_moves()))
    for _ in range(number):
        if twin.root.proof:
            break
        twin.simulate(twin.root)
    assert same_tree(nodes_of(searcher), ROOT, twin.root) > twin.root.visits // 2 > 20
    check_tree(searcher)


def test_random_games_end_by_the_limits() -> None:
    """Nobody can win this variant in so few plies: only a random game that goes on beyond them is no draw."""
    variant = games.find("copenhagen").with_switches(move_limit="10", move_limit_unit="plies")
    searcher = grower(algorithm="mcts", mcts_leaf="playout")
    think(games.initial(variant), Limits(nodes=60), searcher)
    root = nodes_of(searcher)[ROOT]
    assert root["visits"] > 40
    assert root["score"] == 0


# Rows, columns; the side that wins with best play, in how many plies.
SOLVED = [(3, 3, 1, 6), (4, 3, 1, 8), (3, 4, 0, 5), (3, 5, 0, 7), (5, 3, 0, 11), (4, 4, 0, 11)]


@pytest.mark.parametrize("algorithm", ["mcts", "puct"])
@pytest.mark.parametrize(("rows", "columns", "winner", "plies"), SOLVED)
def test_solved_boards_of_hexapawn(rows: int, columns: int, winner: int, plies: int, algorithm: str) -> None:
    """The search ends with a proof of who wins; its line is a game to that end, and not shorter than the truth."""
    position = start(f"hexapawn:{rows}x{columns}")
    result, infos = think(position, Limits(nodes=200_000), algorithm=algorithm)
    last = infos[-1]
    assert last.nodes < 200_000
    assert last.score.mate is not None
    assert (last.score.mate > 0) == (winner == 0)
    assert len(last.pv) >= plies
    assert len(last.pv) == (2 * last.score.mate - 1 if winner == 0 else -2 * last.score.mate)
    assert last.pv[0] == result.move
    end = position
    for move in last.pv:
        end = end.play(move)
    assert end.outcome is not None
    assert end.outcome.winner == winner


@pytest.mark.slow
def test_openings_of_hex() -> None:
    """All openings of the 4x4 board are decided, as they must be."""
    rows = ["...W", "..W.", ".W..", "W..."]
    position = start("hex:4")
    for move in position.legal_moves():
        name = move_name(move)
        wins = rows[4 - int(name[1:])]["abcd".index(name[0])] == "W"
        _, infos = think(position.play(move), Limits(nodes=1_500_000), hash_mib=64)
        score = infos[-1].score
        assert score.mate is not None, name
        assert (score.mate < 0) == wins, name


FORCED = [
    ("brandubh", "7/7/7/7/t6/7/4K2 d 0 30", 1, {"e1g1", "e1a1"}),
    ("brandubh", "7/1t5/7/3K3/7/7/7 d 0 30", 2, {"d4d1", "d4d7", "d4a4", "d4g4"}),
    ("copenhagen", "11/11/11/11/11/11/11/4t6/3tK1t4/4t6/11 a 0 40", 1, {"g3f3"}),
    ("tablut-linnaeus", "9/9/9/9/9/9/2K6/9/t8 d 0 10", 1, None),
]


@pytest.mark.parametrize("algorithm", ["mcts", "puct"])
@pytest.mark.parametrize(("name", "fen", "mate", "best"), FORCED)
def test_forced_wins(name: str, fen: str, mate: int, best: set[str] | None, algorithm: str) -> None:
    position = at(name, fen)
    result, infos = think(position, Limits(nodes=100_000), algorithm=algorithm)
    assert infos[-1].score == Score(mate=mate)
    assert infos[-1].nodes < 100_000
    assert result.move is not None
    assert best is None or move_name(result.move) in best


def test_berserk_turns() -> None:
    """A side that moves twice running wins with its own moves: results go by side, not by turns."""
    seen = 0
    for seed in range(40):
        position = wander("berserk", seed, 20)
        following = [position.play(m) for m in position.legal_moves()]
        won = [p for p in following if p.outcome is not None and p.outcome.winner == position.side]
        again = [p for p in following if p.outcome is None and p.side == position.side]
        if won or not again:
            continue
        _, infos = think(position, Limits(nodes=400))
        nodes = infos[-1].nodes
        assert nodes == 400 or infos[-1].score.mate is not None
        for info in infos:
            now = position
            for move in info.pv:
                now = now.play(move)
        seen += 1
        if seen == 6:
            break
    assert seen >= 3


@pytest.mark.slow
def test_every_game_and_variant() -> None:
    """Some simulations and a legal move in every game there is, from start and middle, by the algorithms in turn."""
    for number, name in enumerate(NAMES):
        for algorithm in ("mcts", "puct") if THOROUGH > 1 else (("mcts", "puct")[number % 2],):
            searcher = grower(algorithm=algorithm, hash_mib=1)
            draw = random.Random(name)
            position = start(name)
            for _ in range(2):
                result, infos = think(position, Limits(nodes=120), searcher)
                assert result.move in position.legal_moves()
                assert infos[-1].pv[0] == result.move
                now = position
                for move in infos[-1].pv:
                    assert now.outcome is None
                    now = now.play(move)
                check_tree(searcher)
                for _ in range(9):
                    following = position.play(draw.choice(position.legal_moves()))
                    if following.outcome is None:
                        position = following


@pytest.mark.parametrize("name", [*MEASURED[:2], "hex:5"])
def test_nodes_are_exact_and_repeat(name: str) -> None:
    for number in (1, 17, 700):
        first, again = (think(start(name), Limits(nodes=number)) for _ in range(2))
        assert first[0] == again[0]
        assert [(i.depth, i.nodes, i.score, i.pv) for i in first[1]] == [
            (i.depth, i.nodes, i.score, i.pv) for i in again[1]
        ]
        assert first[1][-1].nodes == number
    other = think(start(name), Limits(nodes=700), seed=2)[1][-1]
    assert (other.score, other.pv) != (first[1][-1].score, first[1][-1].pv)


def test_depth_mate_and_searchmoves() -> None:
    position = start("brandubh")
    assert think(position, Limits(depth=3))[1][-1].nodes == FIRST_DEPTH * 8
    assert {info.depth for info in think(position, Limits(depth=3))[1]} == {1, 2, 3}
    assert think(start("hex:11"), Limits(mate=1))[1][-1].nodes == MATE_SIMULATIONS
    allowed = position.legal_moves()[3:6]
    searcher = grower()
    assert think(position, Limits(nodes=500, searchmoves=allowed), searcher)[0].move in allowed
    # What was searched for these moves alone is not taken for the position's tree.
    think(position, Limits(nodes=1), searcher)
    assert int(nodes_of(searcher)[ROOT]["count"]) == len(position.legal_moves())
    assert int(nodes_of(searcher)[ROOT]["visits"]) == 1


def test_lines_are_the_most_visited_moves() -> None:
    searcher = grower(multipv=4)
    result, infos = think(start("brandubh"), Limits(nodes=3000), searcher)
    last = {info.multipv: info for info in infos if info.nodes == 3000}
    assert sorted(last) == [1, 2, 3, 4]
    assert last[1].pv[0] == result.move
    nodes = nodes_of(searcher)
    visits = {int(nodes[c]["move"]): int(nodes[c]["visits"]) for c in children(nodes, ROOT)}
    assert [visits[last[k].pv[0]] for k in (1, 2, 3, 4)] == sorted(visits.values(), reverse=True)[:4]
    assert len({last[k].pv[0] for k in last}) == 4


def test_reports() -> None:
    """The score is the share of points won: 100 centipawns are 64 %."""
    searcher = grower()
    _, infos = think(wander("brandubh", 3, 7), Limits(nodes=2000), searcher)
    last = infos[-1]
    nodes = nodes_of(searcher)
    best = next(c for c in children(nodes, ROOT) if int(nodes[c]["move"]) == last.pv[0])
    share = (1 - int(nodes[best]["score"]) / ONE / int(nodes[best]["visits"])) / 2
    assert last.score.cp is not None
    assert abs(1 / (1 + 10 ** (-last.score.cp / 400)) - share) < 0.01
    assert abs(last.wdl[0] / 1000 - share) < 0.01
    assert sum(last.wdl) == 1000
    assert 0 < last.hashfull < 1000


def test_a_full_tree_goes_on() -> None:
    """Memory is what Hash says; the fuller the tree the more it hesitates to grow, and a full one still counts."""
    searcher = grower(hash_mib=1, algorithm="puct")
    position = start("copenhagen")
    think(position, Limits(nodes=300), searcher)
    early = int(searcher.algorithm.tree[0]["used"])
    result, infos = think(position, Limits(nodes=150_000), searcher)
    assert nodes_of(searcher).nbytes == 1 << 20
    assert early < infos[-1].hashfull * len(nodes_of(searcher)) / 1000
    assert infos[-1].hashfull > 950
    assert infos[-1].nodes == 150_000
    assert result.move in position.legal_moves()
    check_tree(searcher)


def test_a_tree_without_any_room() -> None:
    """Where no move of the root can have children, however long a leaf waits, simulations are still counted."""
    position = start("brandubh")
    searcher = grower(algorithm="puct")
    think(position, Limits(nodes=1), searcher)
    forest = searcher.algorithm
    forest.clear()
    forest.nodes = np.zeros(2 + len(position.legal_moves()), NODE).view(np.recarray)
    _, infos = think(position, Limits(nodes=50_000), searcher)
    assert infos[-1].nodes == 50_000
    assert infos[-1].hashfull == 1000
    # More than any leaf must wait for: the last eighth asks for 256.
    assert int(forest.nodes["visits"][ROOT + 1 :].max()) > 500
    assert check_tree(searcher) == 1 + len(position.legal_moves())


@pytest.mark.parametrize("name", ["brandubh", "berserk", "hex:7"])
def test_the_tree_is_kept_between_moves(name: str) -> None:
    searcher = grower()
    position = start(name)
    for _ in range(4):
        result, infos = think(position, Limits(nodes=3000), searcher)
        nodes = nodes_of(searcher)
        assert result.move is not None
        assert result.ponder is not None
        way = ROOT
        for move in (result.move, result.ponder):
            way = next(c for c in children(nodes, way) if int(nodes[c]["move"]) == move)
        kept = [(int(nodes[c]["move"]), int(nodes[c]["visits"])) for c in children(nodes, way)]
        visits = int(nodes[way]["visits"])
        position = position.play(result.move).play(result.ponder)
        think(position, Limits(nodes=1), searcher)
        assert infos[-1].nodes == 3000
        if kept:
            assert int(nodes[ROOT]["visits"]) == visits + 1
            now = [(int(nodes[c]["move"]), int(nodes[c]["visits"])) for c in children(nodes, ROOT)]
            assert [move for move, _ in now] == [move for move, _ in kept]
            assert sum(n for _, n in now) == sum(n for _, n in kept) + 1
        # Nothing but what hangs below the new root was kept.
        assert check_tree(searcher) == int(searcher.algorithm.tree[0]["used"]) - ROOT


def test_another_game_begins_another_tree() -> None:
    searcher = grower()
    position = start("brandubh")
    result, _ = think(position, Limits(nodes=2000), searcher)
    assert result.move is not None
    moves = position.legal_moves()
    other = position.play(next(m for m in moves if m != result.move))

    def fresh(following: Position) -> bool:
        think(following, Limits(nodes=1), searcher)
        return int(nodes_of(searcher)[ROOT]["visits"]) == 1

    think(other, Limits(nodes=2000), searcher)
    assert fresh(position)
    think(position, Limits(nodes=2000), searcher)
    assert not fresh(position)
    assert fresh(at("brandubh", position.play(result.move).fen()))
    think(position, Limits(nodes=2000), searcher)
    assert fresh(start("tablut-linnaeus"))
    think(position, Limits(nodes=2000), searcher)
    searcher.configure(Settings(algorithm="mcts", hash_mib=8, mcts_leaf="evaluator"))
    assert fresh(position)
    think(position, Limits(nodes=2000), searcher)
    searcher.clear()
    assert fresh(position)


def test_a_decided_tree_answers_at_once() -> None:
    searcher = grower()
    position = start("hexapawn:3x4")
    first = think(position, Limits(nodes=100_000), searcher)
    again = think(position, Limits(infinite=True), searcher)
    assert again[1][-1].nodes == 0
    assert (again[0], again[1][-1].score) == (first[0], first[1][-1].score)


def test_a_network_is_not_asked_where_the_end_is_seen() -> None:
    """A win at once needs no simulation; what the search says of nearer ends is so, move by move."""
    evaluator = str(Path(__file__).parents[2] / "players" / "brandubh-zero.safetensors")
    searcher = grower(algorithm="puct", evaluator=evaluator, hash_mib=8)

    def wins(place: Position) -> bool:
        ends = (place.play(move).outcome for move in place.legal_moves())
        return any(end is not None and end.winner == place.side for end in ends)

    won = lost = 0
    for position in positions(games.find("brandubh"), 60, seed=11):
        alone = at("brandubh", position.fen())
        result, infos = think(alone, Limits(nodes=90), searcher)
        assert result.move is not None
        end = alone
        for move in infos[-1].pv:
            end = end.play(move)
        mate = infos[-1].score.mate
        if mate is not None:
            assert end.outcome is not None
            assert (end.outcome.winner == alone.side) == (mate > 0)
        if wins(alone):
            assert infos[-1].nodes == 0
            assert mate == 1
            won += 1
        elif mate == -1:
            assert all(wins(after) for after in map(alone.play, alone.legal_moves()) if after.outcome is None)
            lost += 1
    assert won > 3
    assert lost > 0


def visited(searcher: Searcher) -> bool:
    """Whether a search has got going."""
    nodes = nodes_of(searcher)
    return nodes is not None and int(nodes[ROOT]["visits"]) > 1


@pytest.mark.parametrize("threads", [1, 3])
def test_stop(threads: int) -> None:
    """A stop ends the game being played at random; the simulation cut short leaves nothing behind."""
    searcher = grower(threads=threads)
    position = start("alea-evangelii")
    waits = []
    for _ in range(5):
        results: list[SearchResult] = []
        searcher.begin()
        thread = threading.Thread(
            target=lambda found=results: found.append(  # type: ignore[misc]
                searcher.search(position, Limits(infinite=True), lambda _: None)
            )
        )
        thread.start()
        patience = time.monotonic() + 60
        while not visited(searcher) and time.monotonic() < patience:
            time.sleep(0.01)
        searcher.stop()
        begun = time.process_time()
        thread.join(60)
        waits.append(time.process_time() - begun)
        assert results[0].move in position.legal_moves()
        root = nodes_of(searcher)[ROOT]
        through = sum(int(nodes_of(searcher)[c]["visits"]) for c in children(nodes_of(searcher), ROOT))
        assert int(root["visits"]) == through
        check_tree(searcher)
    assert min(waits) < 0.25, "of the processor's time: the machine may be busy"
    # A stop sent before the search got going counts as well.
    searcher.begin()
    searcher.stop()
    assert searcher.search(position, Limits(infinite=True), lambda _: None).move in position.legal_moves()


def test_pondering_waits_for_the_hit() -> None:
    searcher = grower()
    position = start("copenhagen")
    limits = Limits(clock=(300, 300), ponder=True)
    results: list[SearchResult] = []
    searcher.begin()
    thread = threading.Thread(
        target=lambda: results.append(searcher.search(position, limits, lambda _: None))
    )
    thread.start()
    time.sleep(0.3)
    assert thread.is_alive()
    searcher.ponderhit()
    thread.join(60)
    assert results


@pytest.mark.parametrize("clock", [-5000, 0, 1, 50])
def test_a_move_comes_on_an_empty_clock(clock: int) -> None:
    position = start("copenhagen")
    result, infos = think(position, Limits(clock=(clock, clock)))
    assert result.move in position.legal_moves()
    assert infos[-1].pv[0] == result.move


def test_times() -> None:
    begun = time.perf_counter()
    think(start("copenhagen"), Limits(movetime=150), move_overhead=0)
    assert 0.14 < time.perf_counter() - begun < PROMPTLY
    # A clock gives its fair share, and a single move nothing of it.
    assert one_share_of_a_clock() < 2.5
    single = at("hexapawn:5x3", "p2/3/3/3/P2 a 0 1")
    assert len(single.legal_moves()) == 1
    assert think(single, Limits(clock=(9_000_000, 9_000_000)))[1][-1].time < 1000 * PROMPTLY


def one_share_of_a_clock() -> float:
    """Seconds of the processor for a move with three on the clock: a busy machine gives no more of them."""
    begun = time.process_time()
    think(start("copenhagen"), Limits(clock=(3000, 3000)), move_overhead=0)
    return time.process_time() - begun


@pytest.mark.parametrize("algorithm", ["mcts", "puct"])
def test_threads_share_one_tree(algorithm: str) -> None:
    """No simulation is lost and no virtual loss stays, whatever the threads did to each other."""
    searcher = grower(threads=4, algorithm=algorithm)
    for name in ("brandubh", "hexapawn:5x4", "hex:5"):
        position = start(name)
        searcher.clear()
        result, infos = think(position, Limits(nodes=20_000), searcher)
        assert result.move in position.legal_moves()
        nodes = nodes_of(searcher)
        assert int(nodes[ROOT]["visits"]) == infos[-1].nodes <= 20_000
        assert infos[-1].nodes == 20_000 or infos[-1].score.mate is not None
        if infos[-1].score.mate is None:
            assert int(nodes[ROOT]["score"]) == sum(int(nodes[c]["score"]) for c in children(nodes, ROOT))
        for info in infos:
            now = position
            for move in info.pv:
                now = now.play(move)


def test_threads_prove_what_is_true() -> None:
    for rows, columns, winner, plies in SOLVED[:4]:
        _, infos = think(start(f"hexapawn:{rows}x{columns}"), Limits(nodes=500_000), threads=3)
        mate = infos[-1].score.mate
        assert mate is not None
        assert (mate > 0) == (winner == 0)
        assert len(infos[-1].pv) >= plies


def test_beats_a_random_mover() -> None:
    for name in ("brandubh", "hex:7"):
        for side in (0, 1):
            searcher = grower(seed=side)
            draw = random.Random(side)
            position = start(name)
            while position.outcome is None:
                if position.side == side:
                    move = think(position, Limits(nodes=400), searcher)[0].move
                    assert move is not None
                else:
                    move = draw.choice(position.legal_moves())
                position = position.play(move)
            assert position.outcome.winner == side


WARM = """
from hnefi.engine.search import mcts
from hnefi.engine.search.types import Limits
from hnefi.engine.session import Session

def compiled():
    return [len(kernel.entry.signatures) for kernel in (mcts.simulate, mcts.init_root, mcts.reuse_tree, mcts.line)]

session = Session()
session.set_option("Algorithm", "puct")
session.set_option("Hash", "1")
session.set_variant("hex:3")
session.warm()
before = compiled()
for moves in ((), ("b2", "a1")):
    for move in moves:
        session.play(move)
    session.go(Limits(nodes=500))
    assert session.wait(60)
print(before, compiled())
"""


@pytest.mark.process
def test_a_session_warms_what_it_will_search_with() -> None:
    """After the warm-up nothing is compiled any more, neither by a search nor by one that keeps its tree."""
    done = subprocess.run([sys.executable, "-c", WARM], capture_output=True, text=True, check=True)
    assert done.stdout == "[1, 1, 1, 1] [1, 1, 1, 1]\n"


RECORD = np.dtype([("long", "i8"), ("word", "i4"), ("short", "u2")], align=True)


@entry
def count_up(record: Any, times: int) -> None:
    for _ in range(times):
        intrinsics.fetch_add(record, "long", 3)
        intrinsics.fetch_add(record, "word", -1)


@entry
def settle(record: Any, value: int) -> int:
    return intrinsics.set_once(record, "short", value)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="plain Python adds with the interpreter's lock alone")
def test_words_that_threads_share() -> None:
    """No addition is lost and one value only is set, compiled; the plain functions return the same."""
    shared = np.zeros(1, RECORD).view(np.recarray)
    threads = [threading.Thread(target=count_up, args=(shared[0], 200_000)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (int(shared[0]["long"]), int(shared[0]["word"])) == (2_400_000, -800_000)
    assert [int(settle(shared[0], value)) for value in (0, 65535, 9)] == [0, 0, 65535]
    plain = np.zeros(1, RECORD).view(np.recarray)
    assert [intrinsics.fetch_add(plain[0], "word", n) for n in (5, -7)] == [0, 5]
    assert [intrinsics.set_once(plain[0], "short", value) for value in (0, 65535, 9)] == [0, 0, 65535]
