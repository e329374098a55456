"""The kernels against what they must always be equal to: their own state from scratch, and plain counting."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from random_variants import random_variant

from hnefi.engine.catalogue import GAMES, MEASURED
from hnefi.engine.games.tafl import adjudication, make, noisy, random_move, setup, tables, variant
from hnefi.engine.games.tafl.codes import KING
from hnefi.engine.games.tafl.position import Line, Position
from hnefi.engine.games.tafl.state import CORE, PLIES, TAFL
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.perft import perft
from hnefi.engine.records.replay import as_played
from hnefi.engine.sides import Reason
from hnefi.engine.squares import move, move_name, origin, target

SHIPPED = variant.names()


def random_rules(number: int) -> list[Variant]:
    """Playable random rule sets, special pieces and berserk turns among them."""
    draw = random.Random(77)
    return [random_variant(draw) for _ in range(number)]


def core(record: Any) -> bytes:
    """The bytes of the position; places of the piece lists behind their ends mean nothing and read as 0."""
    copy = bytearray(record.view(np.uint8).reshape(-1)[CORE])
    kind, start = TAFL.fields["pieces"]
    lists = np.frombuffer(copy, kind.base, kind.shape[0] * kind.shape[1], start - CORE.start)
    for pieces, count in zip(lists.reshape(kind.shape), record["count"][0], strict=True):
        pieces[count:] = 0
    return bytes(copy)


def check_lists(state: Any) -> None:
    """Board, piece lists, back-pointers and king agree."""
    cells, slot = state["board"] & 15, state["slot"]
    men = (cells != 0) & (cells != 15)
    for side, count in enumerate(state["count"].tolist()):
        listed = state["pieces"][side][:count]
        standing = np.flatnonzero(men & (cells >> 3 == side))
        assert sorted(listed.tolist()) == standing.tolist()
        assert slot[listed].tolist() == list(range(count))
    kings = np.flatnonzero(cells == KING).tolist()
    assert kings == ([int(state["king"])] if state["king"] else [])


def walk(game: Variant, seed: int, plies: int) -> None:
    """At every node of a random walk: each legal move is made and taken back, byte by byte, key by key."""
    draw = random.Random(seed)
    record = Position.initial(game).new_record()
    state = record[0]
    for _ in range(plies):
        check_lists(state)
        assert state["key"] == setup.whole_key(state)
        end = adjudication.legal_moves(state)
        moves = [int(m) for m in state["moves"][:end]]
        if not moves:
            break
        before = core(record)
        for m in moves:
            make.make(state, m)
            assert state["key"] == setup.whole_key(state), f"{game.name} seed {seed} {move_name(m)}"
            check_lists(state)
            make.undo(state)
            assert core(record) == before, f"{game.name} seed {seed} {move_name(m)}"
        make.make(state, draw.choice(moves))
        if state["outcome"]:
            break


@pytest.mark.parametrize(
    "name", [*MEASURED, "berserk", "tablut-herr-7-coded", "ard-ri-step", "foteviken", "alea-evangelii"]
)
def test_keys_lists_and_bytes_in_a_walk(name: str) -> None:
    for seed in range(2):
        walk(variant.find(name), seed, 25)


@pytest.mark.slow
def test_keys_lists_and_bytes_under_random_rules() -> None:
    for seed, game in enumerate(random_rules(25)):
        walk(game, seed, 12)


MERCENARIES = """
name = "mercenaries"
description = "Nine by nine, where many men change sides when they are taken."
start = ["3mtm3", "4m4", "4M4", "m3T3m", "tmMTKTMmt", "m3T3m", "4M4", "4m4", "3mtm3"]
"""


@pytest.mark.parametrize("seed", range(12))
def test_whole_games_are_taken_back(seed: int) -> None:
    """A mercenary that came and went leaves its square behind a list's end: taking back must not follow it."""
    draw = random.Random(seed)
    record = Position.initial(variant.parse(MERCENARIES, "here")).new_record()
    state = record[0]
    kept = [core(record)]
    while not state["outcome"] and len(kept) < 60:
        moves = [int(m) for m in state["moves"][: adjudication.legal_moves(state)]]
        taking = []
        for m in moves:
            caught = state["caught_top"]
            make.make(state, m)
            if state["caught_top"] > caught and not state["outcome"]:
                taking.append(m)
            make.undo(state)
        make.make(state, draw.choice(taking or moves))
        kept.append(core(record))
    while len(kept) > 1:
        kept.pop()
        make.undo(state)
        check_lists(state)
        assert core(record) == kept[-1]


PERFT = [
    ("copenhagen", (116, 6_788, 806_344), (0, 16, 4_200)),
    ("fetlar", (116, 6_788, 806_344), (0, 16, 4_200)),
    ("hingston-original", (116, 6_788, 806_344), (0, 16, 4_200)),
    ("brandubh", (40, 960, 39_512, 1_007_392), (0, 16, 568, 47_104)),
    ("tablut-linnaeus", (80, 4_400, 353_200), (0, 24, 4_640)),
    ("tablut-bologna", (56, 4_408, 248_456), (0, 72, 4_368)),
]
DEEP = [("copenhagen", 4, 50_456_804), ("tablut-linnaeus", 4, 19_913_864), ("brandubh", 5, 41_843_336)]


@pytest.mark.parametrize(("name", "leaves", "captures"), PERFT, ids=[row[0] for row in PERFT])
def test_perft(name: str, leaves: tuple[int, ...], captures: tuple[int, ...]) -> None:
    position = Position.initial(variant.find(name))
    for depth, (wanted, taking) in enumerate(zip(leaves, captures, strict=True), start=1):
        plain = perft(position, depth)
        assert (plain.nodes, plain.captures) == (wanted, taking)
        assert perft(position, depth, bulk=True).nodes == wanted


@pytest.mark.parametrize(("name", "depth", "leaves"), DEEP)
def test_deep_perft(name: str, depth: int, leaves: int) -> None:
    assert perft(Position.initial(variant.find(name)), depth, bulk=True).nodes == leaves


def test_the_literal_castle_of_hingston_counts_otherwise() -> None:
    """The reading that a held castle is hostile to everybody shows at depth 4, and only there."""
    literal = variant.find("hingston-original").with_switches(throne_hostile_held="all")
    assert perft(Position.initial(literal), 4, bulk=True).nodes == 50_481_068


def test_perft_ignores_repetition_and_limits() -> None:
    game = variant.find("brandubh").with_switches(
        repetition="forbidden", repetition_count=2, move_limit=1, quiet_limit=1
    )
    assert perft(Position.initial(game), 3).nodes == 39_512


@pytest.mark.parametrize("name", ["brandubh", "copenhagen", "tablut-bologna"])
def test_random_moves_are_uniform(name: str) -> None:
    """Every legal move comes equally often: chi-square below its 99.99 % point, fixed seed."""
    position = Position.initial(variant.find(name))
    record = position.new_record()
    state = record[0]
    state["random"] = 12345
    moves = position.legal_moves()
    drawn = dict.fromkeys(moves, 0)
    number = 200 * len(moves)
    for _ in range(number):
        drawn[int(random_move.random_move(state))] += 1
    expected = number / len(moves)
    chi = sum((n - expected) ** 2 / expected for n in drawn.values())
    degrees = len(moves) - 1
    assert chi < degrees * (1 - 2 / (9 * degrees) + 3.719 * (2 / (9 * degrees)) ** 0.5) ** 3


@pytest.mark.slow
@pytest.mark.parametrize("name", [*MEASURED, "tablut-herr-7-coded", "berserk"])
def test_noisy_moves_are_the_captures_and_the_ends(name: str) -> None:
    """Each legal move that takes men by flanking, in lines or by jumping over them, takes the king or escapes is noisy;
    all noisy moves are legal."""
    draw = random.Random(5)
    game = variant.find(name).with_switches(shieldwall="off", linnaean="no")
    seen = 0
    for _ in range(6):
        position: Any = Position.initial(game)
        for _ in range(60):
            if position.outcome is not None:
                break
            if position.berserk:
                # Who must go on has noisy moves only.
                position = position.play(draw.choice(position.legal_moves()))
                continue
            record = position.new_record()
            state = record[0]
            end = noisy.generate_noisy(state, 0)
            found = [int(m) for m in state["moves"][:end]]
            legal = dict(position.legal_moves_with_captures())
            wanted = set()
            for candidate, taken in legal.items():
                after = position.play(candidate).outcome
                if taken or (
                    after is not None and after.reason in (Reason.KING_CAPTURED, Reason.KING_ESCAPED)
                ):
                    wanted.add(candidate)
            assert len(found) == len(set(found))
            names = [move_name(m) for m in set(found) ^ wanted]
            assert set(found) == wanted, f"{position.fen()} {names}"
            assert all(noisy.order_score(state, m) > 0 for m in found)
            seen += len(wanted)
            position = position.play(draw.choice(list(wanted) or list(legal)))
    assert seen > 20


def test_a_line_plays_on_beyond_the_stacks() -> None:
    """Ten thousand quiet plies, more than the undo stack holds, and the rules still hold."""
    line = Line(as_played(variant.find("copenhagen")))
    position = Position.initial(variant.find("copenhagen"))
    there = position.parse_move("a4b4")
    reply = position.play(there).parse_move("f4e4")
    shuffle = [there, reply, move(target(there), origin(there)), move(target(reply), origin(reply))]
    line.start()
    taken: tuple[int, ...] = ()
    for ply in range(PLIES + 2000):
        taken = line.play(shuffle[ply % 4])
    assert taken == ()
    assert line.outcome is None


def test_a_game_goes_on_beyond_the_stacks() -> None:
    """Position after position is played on one record of this thread: it never runs over."""
    position = Position.initial(as_played(variant.find("copenhagen")))
    there = position.parse_move("a4b4")
    reply = position.play(there).parse_move("f4e4")
    shuffle = [there, reply, move(target(there), origin(there)), move(target(reply), origin(reply))]
    deepest = 0
    for ply in range(PLIES + 2000):
        position = position.play(shuffle[ply % 4])
        deepest = max(deepest, int(position._cells().ply[0]))
    assert deepest < PLIES - 1024
    assert 0 <= int(position.new_record()["ply"][0]) < PLIES
    assert (PLIES + 2000) % 4 == 0
    assert position.key == Position.initial(position.variant).key


def test_rule_parts_are_shared_and_small() -> None:
    """A rule set compiles nothing and costs one small table, however many positions there are."""
    game = variant.find("brandubh")
    assert tables.template(game.rules, "tTK") is tables.template(game.rules, "tTK")
    assert len(tables.template(game.rules, "tTK")) < 100_000


@pytest.mark.process
def test_whatever_commands_call_is_compiled_by_the_warm_up() -> None:
    """A kernel that only tests call from Python may be left out; every other one would stall a command."""
    script = (
        "from hnefi.engine.warmup import warm\n"
        "warm()\n"
        "from hnefi.engine.search import alphabeta\n"
        "from hnefi.engine import count\n"
        "from hnefi.engine.evaluators import hex, hexapawn, loaded, tafl\n"
        "from hnefi.engine.games.tafl import adjudication, make, noisy, random_move, setup\n"
        "for m in (alphabeta, hex, hexapawn, loaded, tafl, count, random_move, adjudication, noisy, make, setup):\n"
        "    for name, f in vars(m).items():\n"
        "        if getattr(f, '_cached', None) is True and not f.entry.signatures:\n"
        "            if f.py_func.__module__ == m.__name__: print(name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True
    )
    only_tests = {
        "whole_key",
        "no_move_outcome",
        "adjudicate",
        "random_move",
        "playout",
        "generate_noisy",
        "order_score",
        "evaluate_tree",  # measures evaluators
        "evaluate",
        "zero_value",  # for games that no network knows
        "zero_evaluate",
    }
    assert set(done.stdout.split()) <= only_tests


@pytest.mark.process
def test_the_next_process_compiles_nothing() -> None:
    """All kernels come from the disk cache, and run: recursive ones compiled twice once crashed there."""
    script = (
        "from hnefi.engine.warmup import warm\n"
        "warm()\n"
        "from hnefi.engine.search import alphabeta\n"
        "from hnefi.engine import count\n"
        "from hnefi.engine.games.tafl import adjudication, make, setup\n"
        "kernels = [alphabeta.search_root, count.perft, count.playouts, setup.advance, setup.set_up]\n"
        "missed = sum(sum(k.entry.stats.cache_misses.values()) for k in kernels)\n"
        "print(missed, [len(k.entry.signatures) for k in kernels])\n"
    )
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
    # One specialisation for each game; of the search two, for its own evaluator and for files, and one for networks.
    assert done.stdout == f"0 [{2 * len(GAMES) + 1}, {len(GAMES)}, {len(GAMES)}, 1, 1]\n"
