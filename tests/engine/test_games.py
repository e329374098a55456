"""The contract of every game: what sessions, searches and tools rely on, for each variant that can be named."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from hnefi.engine import count, evaluators, games
from hnefi.engine.games import interface as verbs
from hnefi.engine.games.base_position import IllegalMove, Position, PositionError
from hnefi.engine.games.base_variant import rules_hash
from hnefi.engine.games.lesson import lesson
from hnefi.engine.perft import perft
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Info, Limits, Settings
from hnefi.engine.sides import Reason, Side
from hnefi.engine.squares import (
    NO_MOVE,
    SWAP,
    file_of,
    move,
    move_name,
    move_sort_key,
    origin,
    rank_of,
    square,
    target,
)
from hnefi.engine.warmup import SMALL

SIZES = ["hex:3", "hex:5", "hex:19", "hex-swap:3", "hex-swap:6"]
SIZES += ["hexapawn:3x1", "hexapawn:5x3", "hexapawn:4x7", "hexapawn:19x19"]
NAMES = [*games.names(), *SIZES]
every_variant = pytest.mark.parametrize("name", NAMES)

BY_HISTORY = {
    Reason.REPETITION,
    Reason.DRAW_FORT,
    Reason.MATERIAL,
    Reason.QUIET_LIMIT,
    Reason.MOVE_LIMIT,
}
"""Ends that a position by itself does not show."""


def walk(name: str, plies: int, start: Position | None = None) -> Iterator[Position]:
    """The positions of a random game, the first included, until it ends or has so many plies."""
    draw = random.Random(f"walk {name}")
    position = start or games.initial(games.find(name))
    yield position
    for _ in range(plies):
        if position.outcome is not None:
            return
        position = position.play(draw.choice(position.legal_moves()))
        yield position


def some(items: tuple[Any, ...], number: int, name: str) -> list[Any]:
    """So many of the items, at random."""
    return random.Random(f"some {name}").sample(items, min(number, len(items)))


def board(position: Position) -> list[str]:
    """What a key is a key of: the words of a FEN without counters."""
    words = position.fen().split()
    return [*words[:2], *(word for word in words[4:] if word.startswith("berserk="))]


def whole_key(name: str) -> Callable[[Any], int]:
    """The kernel that computes the key of the variant's game from scratch."""
    game = games.find(name).game
    module = import_module(f"hnefi.engine.games.{game}.{'setup' if game == 'tafl' else 'kernels'}")
    return lambda state: int(module.whole_key(state))


def restored(name: str, record: Any) -> bytes:
    """All bytes that `undo` must restore; places of a list behind its end mean nothing and read as 0."""
    core = import_module(f"hnefi.engine.games.{games.find(name).game}.position").CORE
    # A copy of the record itself would leave its padding undefined.
    copy = record.view(np.uint8).reshape(-1).copy()
    state = copy.view(record.dtype)[0]
    if {"pieces", "count"} <= set(record.dtype.names):
        for side in range(2):
            state["pieces"][side, state["count"][side] :] = 0
    counters = bytes(state["ply"]) + bytes(state["caught_top"])
    return bytes(copy[core]) + counters


@every_variant
def test_what_a_variant_says(name: str) -> None:
    variant = games.find(name)
    start = games.initial(variant)
    assert games.find(name.upper()) == variant
    assert all(games.find(alias) == variant for alias in variant.aliases)
    assert (variant.name, start.variant) == (name, variant)
    assert start.fen() == start.start_fen == variant.startpos
    assert start.side is Side.of(variant.first)
    assert variant.startpos.split()[0] == variant.rows
    assert variant.rows.count("/") == variant.ranks - 1
    assert all(file_of(sq) < variant.files and rank_of(sq) < variant.ranks for sq, _ in start.pieces())
    if variant.game != "tafl":  # whose later switches are not always part of it
        assert variant.hash == rules_hash(variant.rules_lines(), variant.rows)
    assert variant.source
    assert variant.description
    assert (start.ply, start.quiet, start.move_number, start.moves, start.taken) == (0, 0, 1, (), (0, 0))
    assert (start.outcome, start.last_captures) == (None, ())


def test_names_and_hashes_are_unique() -> None:
    variants = games.everything()
    assert [variant.name for variant in variants] == games.names()
    words = [word.lower() for variant in variants for word in (variant.name, *variant.aliases)]
    assert len(set(words)) == len(words)
    hashes = {games.find(name).hash for name in NAMES}
    assert len(hashes) == len(set(NAMES))
    assert len({games.initial(games.find(name)).fits for name in NAMES}) == len(hashes)


@pytest.mark.parametrize("name", SMALL.values())
def test_every_game_has_a_lesson(name: str) -> None:
    variant = games.find(name)
    steps = lesson(variant)
    assert any(step.task for step in steps)
    for step in steps:
        position = games.from_fen(variant, step.fen)
        assert not step.best or position.parse_move(step.best) in position.legal_moves(), step.title


@every_variant
def test_legal_moves_and_captures(name: str) -> None:
    """Sorted, each once, as text and back; their captures are those of the position after; none after the end."""
    for position in walk(name, 12):
        legal = position.legal_moves()
        assert (position.outcome is None) == bool(legal)
        assert list(legal) == sorted(set(legal), key=move_sort_key)
        with_captures = position.legal_moves_with_captures()
        assert tuple(m for m, _ in with_captures) == legal
        taking = tuple(pair for pair in with_captures if pair[1])
        for m, captured in [*some(with_captures, 3, name), *some(taking, 2, name)]:
            after = position.play(m)
            assert after.last_captures == captured
            assert after.moves == (*position.moves, m)
            assert after.ply == position.ply + 1
            assert after.quiet == (0 if captured else position.quiet + 1)
            assert position.parse_move(move_name(m)) == m
            assert after.undo().fen() == position.fen()


@every_variant
def test_illegal_moves_are_refused_with_a_reason(name: str) -> None:
    variant = games.find(name)
    draw = random.Random(name)
    cells = [square(file, rank) for rank in range(variant.ranks) for file in range(variant.files)]
    for position in walk(name, 3):
        before = position.fen(), position.key
        numbers = [NO_MOVE, SWAP, -1, 1 << 18, 1 << 70, *(move(*draw.choices(cells, k=2)) for _ in range(8))]
        for m in set(numbers) - set(position.legal_moves()):
            with pytest.raises(IllegalMove, match=r"\A[^\n]{5,200}\Z"):
                position.play(m)
        for text in ("", "a", "swop", "z9z9", "a1a1", "a1" * 999):
            with pytest.raises(IllegalMove, match=r"\A[^\n]{5,200}\Z"):
                position.parse_move(text)
        assert (position.fen(), position.key) == before
    with pytest.raises(PositionError, match="no move has been played"):
        games.initial(variant).undo()


@every_variant
def test_text_keeps_a_position(name: str) -> None:
    """Out and in again: the same board, key, side, counters and, where no history forbids any, moves."""
    for position in walk(name, 12):
        again = games.from_fen(position.variant, position.fen())
        assert again.fen() == again.start_fen == position.fen()
        assert again.pieces() == position.pieces()
        assert again.key == position.key
        assert (again.side, again.quiet, again.move_number) == (
            position.side,
            position.quiet,
            position.move_number,
        )
        assert again.ply == 0
        assert again.repetitions == 1
        assert all(again.piece_at(sq) == letter for sq, letter in position.pieces())
        if position.outcome is None:
            assert set(again.legal_moves()) >= set(position.legal_moves())
            assert again.unlimited().legal_moves() == position.unlimited().legal_moves()


@every_variant
def test_one_key_per_position(name: str) -> None:
    """Equal positions have equal keys, different ones different keys, however they came about."""
    boards: dict[int, list[str]] = {}
    keys: dict[str, int] = {}
    for position in walk(name, 10):
        near = [position, *(position.play(m) for m in some(position.legal_moves(), 4, name))]
        for each in near:
            if each.outcome is not None and each.outcome.reason is Reason.KING_CAPTURED:
                continue
            assert boards.setdefault(each.key, board(each)) == board(each)
            assert keys.setdefault(" ".join(board(each)), each.key) == each.key


@every_variant
def test_records_are_restored_and_keys_kept(name: str) -> None:
    """Each move made and taken back leaves every byte outside the stacks; keys equal those from scratch."""
    key = whole_key(name)
    record = games.initial(games.find(name)).new_record()
    for position in walk(name, 8):
        state = position.load(record)
        assert int(state["key"]) == key(state) == position.key
        before = restored(name, record)
        for m in some(position.legal_moves(), 10, name):
            verbs.make(state, m)
            assert int(state["key"]) == key(state), f"{position.fen()} {move_name(m)}"
            if not state["outcome"]:
                for reply in state["moves"][: verbs.generate(state, 0)][:3].tolist():
                    verbs.make(state, reply)
                    assert int(state["key"]) == key(state)
                    verbs.undo(state)
            verbs.undo(state)
            assert restored(name, record) == before, f"{position.fen()} {move_name(m)}"


@every_variant
def test_records_hold_any_position_of_the_variant(name: str) -> None:
    """A record that held one position of a game holds another, whatever was searched in it."""
    positions = list(walk(name, 6))
    record = positions[0].new_record()
    count.walk_randomly(record[0], 5)
    for position in reversed(positions):
        assert position.fits == positions[0].fits
        state = position.load(record)
        assert (int(state["key"]), int(state["side"])) == (position.key, position.side)
        assert bool(state["outcome"]) == (position.outcome is not None)
        if position.outcome is None:
            end = verbs.generate(state, 0)
            assert set(state["moves"][:end].tolist()) == set(position.legal_moves())


@every_variant
def test_random_games_end_as_positions_do(name: str) -> None:
    """A random game of the kernel has only legal moves, and the same length and end played move by move."""
    position = games.initial(games.find(name))
    state = position.new_record()[0]
    state["random"] = 99
    outcome = int(count.playout(state, 300))
    for m in state["u_move"][1 : int(state["ply"]) + 1].tolist():
        assert position.outcome is None
        position = position.play(m)
    reached = 0
    if position.outcome is not None:
        winner = 2 if position.outcome.winner is None else int(position.outcome.winner)
        reached = position.outcome.reason.code | (winner + 1) << 8
    assert reached == outcome
    if position.outcome is not None:
        assert position.legal_moves() == position.legal_moves_with_captures() == ()
        for refused in (lambda: position.play(position.moves[-1]), lambda: position.parse_move("a1a2")):
            with pytest.raises(IllegalMove, match=f"the game is over: {position.outcome.text}"):
                refused()
        if position.outcome.reason not in BY_HISTORY:
            assert games.from_fen(position.variant, position.fen()).outcome == position.outcome


@every_variant
def test_perft_is_plain_counting(name: str) -> None:
    *_, position = walk(name, 5)
    root = position.unlimited()
    after = [root.play(m) for m in root.legal_moves()]
    assert perft(position, 1).nodes == len(after)
    assert perft(position, 1).captures >= sum(bool(each.last_captures) for each in after)
    leaves = sum(len(each.legal_moves()) for each in after)
    assert perft(position, 2).nodes == perft(position, 2, bulk=True).nodes == leaves


@every_variant
def test_without_limits_nothing_is_lost(name: str) -> None:
    """The same board and at least the same moves; pieces that go to and fro may do so for ever."""
    *_, position = walk(name, 4)
    free = position.unlimited()
    assert board(free) == board(position)
    assert set(position.legal_moves()) <= set(free.legal_moves())
    assert free.unlimited().legal_moves() == free.legal_moves()
    for _ in range(40):
        returning = [
            m
            for m in free.legal_moves()
            if len(free.moves) < 2 or m == move(target(free.moves[-2]), origin(free.moves[-2]))
        ]
        if not returning:
            break
        free = free.play(returning[0])
        assert free.outcome is None or free.outcome.reason not in BY_HISTORY


def image(position: Position, turn: int) -> tuple[Position, Callable[[int], int]] | None:
    """The position under one of the eight symmetries of a square board, and where squares go; None if refused."""
    files, ranks = position.variant.files, position.variant.ranks

    def to(sq: int) -> int:
        file, rank = file_of(sq), rank_of(sq)
        file, rank = (files - 1 - file if turn & 1 else file), (ranks - 1 - rank if turn & 2 else rank)
        return square(rank, file) if turn & 4 else square(file, rank)

    standing = {to(sq): letter for sq, letter in position.pieces()}
    plain = "/".join(
        "".join(standing.get(square(file, rank), ".") for file in range(files))
        for rank in reversed(range(ranks))
    )
    rows = re.sub(r"\.+", lambda run: str(len(run[0])), plain)
    try:
        return games.from_fen(position.variant, f"{rows} {position.side.letter}"), to
    except ValueError:
        return None


def alike(position: Position, turn: int) -> bool:
    """Whether the position and its image count as one."""
    found = image(position, turn)
    return found is not None and found[0].canonical() == position.canonical()


@every_variant
def test_images_are_one_position(name: str) -> None:
    """What counts as a symmetry keeps whole games, moves and ends; at least one does."""
    variant = games.find(name)
    draw = random.Random(f"images {name}")
    positions = [each for each in walk(name, 6) if each.outcome is None and len(each.fen().split()) == 4]
    turns = range(1, 8 if variant.files == variant.ranks else 4)
    # One position alone may be its own image under what is no symmetry of the game.
    symmetries = [turn for turn in turns if all(alike(each, turn) for each in positions)]
    assert symmetries
    for turn in symmetries:
        here = positions[-1].unlimited()
        there, to = image(here, turn) or pytest.fail("refused")
        there = there.unlimited()
        for _ in range(40):
            moves = [m for m in here.legal_moves() if m != SWAP]
            turned = {move(to(origin(m)), to(target(m))) for m in moves}
            assert turned == set(there.legal_moves()) - {SWAP}
            assert here.outcome == there.outcome
            if here.outcome is not None:
                break
            m = draw.choice(moves)
            here, there = here.play(m), there.play(move(to(origin(m)), to(target(m))))
    start, *rest = walk(name, 3)
    assert all(start.canonical() != each.canonical() for each in rest)


SEARCHER = Searcher(Settings(hash_mib=1))


@every_variant
def test_search_and_evaluation(name: str) -> None:
    """Two plies deep: a legal line; the terms add up to what the search sees, from the mover's side."""
    for position in list(walk(name, 7))[::3]:
        if position.outcome is not None:
            continue
        terms = evaluators.terms("default", position)
        assert terms[-1][0] == "total"
        assert sum(value for _, value in terms[:-1]) == terms[-1][1]
        params = evaluators.parameters("default", position.variant)
        value = int(verbs.evaluate(params[0], position.new_record()[0]))
        seen = max(-9000, min(9000, terms[-1][1]))
        assert value == (seen if position.side is Side.ATTACKERS else -seen)
        reports: list[Info] = []
        SEARCHER.begin()
        result = SEARCHER.search(position, Limits(depth=2), reports.append)
        assert result.move in position.legal_moves()
        assert reports[-1].pv[0] == result.move
        line = position
        for m in reports[-1].pv:
            line = line.play(m)
        mate = reports[-1].score.mate
        if mate is not None:
            assert line.outcome is not None
            assert line.outcome.winner == (position.side if mate > 0 else position.side.other)


@pytest.mark.process
def test_kernels_run_as_plain_python() -> None:
    """NUMBA_DISABLE_JIT=1 runs the same code of every game without a compiler: same counts, search and walk."""
    script = (
        "from hnefi.engine import count, games\n"
        "from hnefi.engine.perft import perft\n"
        "from hnefi.engine.search.searcher import Searcher\n"
        "from hnefi.engine.search.types import Limits, Settings\n"
        "from hnefi.engine.warmup import SMALL\n"
        "for name in SMALL.values():\n"
        "    p = games.initial(games.find(name))\n"
        "    print(name, perft(p, 2).nodes, perft(p, 2, bulk=True).nodes)\n"
        "    s = Searcher(Settings(hash_mib=1)); s.begin(); infos = []\n"
        "    print(s.search(p, Limits(depth=2), infos.append).move, infos[-1].nodes, infos[-1].score)\n"
        "    state = p.new_record()[0]; state['random'] = 7\n"
        "    print(count.walk_randomly(state, 6), int(state['key']), int(state['outcome']))\n"
        "    state = p.new_record()[0]; state['random'] = 7\n"
        "    count.playouts(state, 2, 8); print(state['tally'].tolist())\n"
    )
    plain, compiled = (
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script],
            env={**os.environ, **extra},
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        for extra in ({"NUMBA_DISABLE_JIT": "1"}, {})
    )
    assert plain.stdout == compiled.stdout, plain.stderr[-2000:]
    assert len(plain.stdout.splitlines()) == 4 * len(SMALL), plain.stderr[-2000:]
