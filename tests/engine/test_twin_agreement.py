"""Kernels and slow twin, side by side: two readings of the rules that share no code must never differ.

At every node of random walks both say who is to move, what is legal, what each move takes, whether the game is over
and how the position is written. `HNEFI_THOROUGH=20` looks at twenty times as many positions.
"""

from __future__ import annotations

import random
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numba.core.registry import CPUDispatcher as Dispatcher
from random_variants import nearly, random_setup, random_variant
from thoroughness import THOROUGH
from twin import Twin

from hnefi.engine.games.tafl import make, setup
from hnefi.engine.games.tafl import variant as variants
from hnefi.engine.games.tafl.fen import Setup, format_fen
from hnefi.engine.games.tafl.position import Position
from hnefi.engine.games.tafl.state import CORE, TAFL
from hnefi.engine.games.tafl.switches import SwitchValue
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.perft import perft
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Limits, Settings
from hnefi.engine.sides import Outcome, Reason
from hnefi.engine.squares import NO_MOVE, move, move_name, name, squares

OF_LISTS = TAFL.fields["pieces"][1] - CORE.start  # type: ignore[index]
"""Where the piece lists begin among the bytes of a position; they are its last part."""


def compare(twin: Twin, position: Position, rng: random.Random, path: str) -> None:
    """Every answer of both about one position; `path` says how it was reached."""
    assert position.outcome == twin.outcome, path
    assert position.side == twin.side, path
    assert position.berserk == twin.must_go_on, path
    assert position.taken == twin.taken, path
    pieces = dict(position.pieces())
    if twin.outcome is not None and twin.outcome.reason is Reason.KING_CAPTURED:
        # Nothing says whether a captured king stays on the board of a finished game.
        assert {sq: letter for sq, letter in pieces.items() if letter != "K"} == twin.pieces, path
        assert (position.quiet, position.move_number) == (twin.quiet, twin.move_number), path
    else:
        assert position.fen().split(" caps=")[0] == twin.fen, path
        # Inside a turn nothing is counted, nor is a start that the rules do not remember.
        if position.berserk is None and (twin.rules.repetition_start or position.moves):
            assert position.repetitions == twin.repetitions, path
    assert frozenset(position.last_captures) == twin.last_captures, path
    check_undo(position, rng.sample(position.legal_moves(), min(6, len(position.legal_moves()))), path)
    legal = twin.legal_moves()
    differ = set(position.legal_moves()) ^ set(legal)
    assert position.legal_moves() == tuple(legal), f"{path}: {[move_name(ply) for ply in differ]}"
    with_captures = position.legal_moves_with_captures()
    assert [ply for ply, _ in with_captures] == legal, path
    some = rng.sample(with_captures, min(30, len(with_captures)))
    for ply, captured in {*some, *((ply, captured) for ply, captured in with_captures if captured)}:
        assert frozenset(captured) == twin.captured_by(ply), f"{path}: captured by {move_name(ply)}"
    board = list(squares(twin.rules.size))
    for ply in [*rng.sample(legal, min(3, len(legal))), *(move(*rng.sample(board, 2)) for _ in range(5))]:
        allowed = position.why_illegal(ply & 511, ply >> 9) is None
        assert allowed == twin.is_legal(ply), f"{path}: {move_name(ply)}"


def check_undo(position: Position, moves: list[int], path: str = "") -> None:
    """Each move made and taken back by the kernels: the key is right after it, and every byte as before it."""
    record = position.new_record()
    state, whole = record[0], record.view(np.uint8).reshape(-1)[CORE]
    # Places of the piece lists behind their ends mean nothing.
    lists = [state["pieces"][side, : state["count"][side]] for side in range(2)]
    before = whole[:OF_LISTS].tobytes(), [part.tobytes() for part in lists]
    for ply in moves:
        make.make(state, ply)
        assert state["key"] == setup.whole_key(state), f"{path}: key after {move_name(ply)}"
        make.undo(state)
        after = whole[:OF_LISTS].tobytes(), [part.tobytes() for part in lists]
        assert after == before, f"{path}: {move_name(ply)} taken back"


def walk(
    variant: Variant, setup: Setup | None, rng: random.Random, plies: int, first: int = NO_MOVE
) -> tuple[Outcome | None, int]:
    """Compare along one random game, which begins with the move `first` if that is legal.

    How it ended, and the number of positions compared.
    """
    start = setup or variant.start
    twin, position = Twin(variant, setup), Position.from_setup(variant, start)
    path = f"{format_fen(start)} {variant.rules.changes()}"
    played: list[int] = []
    # Some games go to and fro all the time, or nothing would ever stand three times.
    restless = rng.random() < 0.7
    while True:
        compare(twin, position, rng, path)
        legal = twin.legal_moves()
        if not legal or len(played) == plies:
            return twin.outcome, len(played) + 1
        returning = [_reversed(ply) for ply in played[-2:-1] if _reversed(ply) in legal]
        if not played and first in legal:
            ply = first
        elif returning and (not restless or rng.random() < 0.1):
            ply = returning[0]
        else:
            ply = _choose(twin, legal, rng)
        played.append(ply)
        path += f" {move_name(ply)}"
        twin, position = twin.play(ply), position.play(ply)


def _reversed(ply: int) -> int:
    return move(ply >> 9, ply & 511)


def _choose(twin: Twin, legal: list[int], rng: random.Random) -> int:
    """A random move, more often than not one that takes something, if one does."""
    some = rng.sample(legal, min(len(legal), 30))
    taking = (
        [ply for ply in some if twin.captured_by(ply) or twin.takes_king(ply)] if rng.random() < 0.3 else []
    )
    return rng.choice(taking or some)


@pytest.mark.parametrize("shipped", variants.names())
def test_shipped_variants(shipped: str) -> None:
    rng = random.Random(f"shipped {shipped}")
    variant = variants.find(shipped)
    for _ in range(THOROUGH):
        walk(variant, None, rng, 40 if variant.size <= 11 else 15)
    for _ in range(3 * THOROUGH):
        walk(variant, random_setup(rng, variant, crowded=rng.choice((0.1, 0.2, 0.35))), rng, 6)
        _, setup, first = nearly(rng, variant)
        walk(variant, setup, rng, 3, first)


def test_draw_fort_counts_nothing_of_other_lines() -> None:
    """Inside a berserk turn no arrangement is noted; what another line noted at the same ply must not count."""
    variant = Variant.build(
        "fort",
        "7/5t1/7/3K3/Tt4T/7/1TT1T2",
        {"berserk": "any", "draw_fort": "yes", "repetition": "ignore", "first": "d"},
    )
    start = Position.initial(variant)
    start.play(start.parse_move("c1c4"))
    position, twin = start, Twin(variant)
    for text in ("c1c3", "c3c4", "f6f5", "c4c5", "f5f6", "c5c4"):
        ply = position.parse_move(text)
        position, twin = position.play(ply), twin.play(ply)
        assert position.outcome is twin.outcome is None, text


POSITIONS = 6_000
SIZES = range(5, 20)
SEEN: Counter[int] = Counter()
ENDS: Counter[Reason] = Counter()


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_random_rules(size: int) -> None:
    """Random rule sets over every switch, each looked at in some twenty-five positions, more of them on small boards.

    Rules are made of choices that hypothesis can shrink, one by one; positions and moves come from a seed.
    """

    @settings(
        max_examples=(40 if size <= 9 else 10 if size <= 13 else 4) * THOROUGH,
        derandomize=THOROUGH == 1,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=False), st.integers(0, 10**6))
    def look(choices: random.Random, seed: int) -> None:
        rng = random.Random(seed)
        variant = random_variant(choices, size, rng)
        games: list[tuple[Variant, Setup | None, int, int]] = [
            (variant, None, 10, NO_MOVE),
            (variant, random_setup(rng, variant, crowded=rng.choice((0.1, 0.2, 0.35))), 4, NO_MOVE),
        ]
        if rng.random() < 0.2:
            # Standing still for long enough, where nothing else ends the game before.
            games.append(
                (variant.with_switches(draw_fort="yes", repetition="ignore"), games[1][1], 12, NO_MOVE)
            )
        for _ in range(4):
            bent, setup, first = nearly(rng, variant, bend=True)
            games.append((bent, setup, 2, first))
        for game, start, plies, first in games:
            outcome, positions = walk(game, start, rng, plies, first)
            SEEN[size] += positions
            if outcome is not None:
                ENDS[outcome.reason] += 1

    look()


def test_the_random_rules_saw_enough() -> None:
    if set(SEEN) != set(SIZES):
        pytest.skip("needs the random rules of the test before it")
    assert SEEN.total() >= POSITIONS, SEEN
    assert set(ENDS) == set(list(Reason)[: Reason.MOVE_LIMIT.code]), ENDS


def compiled() -> dict[str, tuple[int, int, int]]:
    """For every kernel that Python has called: its signatures, and what it found or missed in the disk cache."""
    return {
        f"{room}.{word}": (
            len(thing.entry.signatures),
            sum(thing.entry.stats.cache_hits.values()),
            sum(thing.entry.stats.cache_misses.values()),
        )
        for room, module in sys.modules.items()
        if room.startswith("hnefi.engine.")
        for word, thing in vars(module).items()
        if isinstance(thing, Dispatcher) and thing.entry.signatures
    }


def exercise(variant: Variant) -> None:
    """Whatever Python asks of the kernels: a few plies with captures and undo, perft, a search."""
    start = position = Position.initial(variant)
    perft(start, 1)
    for _ in range(3):
        if position.outcome is not None:
            return
        check_undo(position, list(position.legal_moves()))
        position.legal_moves_with_captures()
        position = position.play(position.legal_moves()[-1])
    searcher = Searcher(Settings(hash_mib=1))
    searcher.begin()
    searcher.search(start, Limits(nodes=50), lambda _: None)


@pytest.mark.slow
def test_fresh_rule_sets_compile_nothing() -> None:
    # No network is for rules at random, nor for these.
    exercise(variants.find("ard-ri"))
    before = compiled()
    assert len(before) > 5
    for seed in range(40):
        exercise(random_variant(random.Random(f"fresh {seed}")))
    assert compiled() == before


def everywhere(size: int) -> str:
    """Every square of the board."""
    return ",".join(map(name, squares(size)))


def crowd() -> list[str]:
    """Nineteen rows full of men of every kind but for the squares of one diagonal, and the king in the middle."""
    rows = [list("tTcCnNmMgG" * 2)[:19] for _ in range(19)]
    for k in range(19):
        rows[k][k] = "1"
    rows[9][9] = "K"
    return ["".join(row) for row in rows]


@pytest.mark.parametrize(
    ("start", "switches"),
    [
        ("1t1/1K1/1T1", {}),
        ("3/1K1/t2", {"corners": "none", "king_sides_on_throne": 0, "commander_pair": "no"}),
        (
            "tKt/T1T/ctc",
            {"throne": everywhere(3), "throne_stop": "all", "corners": "none", "opentafl": "yes"},
        ),
        (
            "1t2/1K2/1T2/4",
            {"corners": everywhere(4), "throne": "none", "corner_stop": "all", "escape": "none"},
        ),
        ("2t2/1tK2/5/2T2/5", {"zones": f"{everywhere(5)}:all:both"}),
        ("2t2/1tK2/5/2T2/5", {"zones": f"{everywhere(5)}:K:stop;a1:t:pass;b1:T:both", "speed": "all:99"}),
        ("2t2/1tK2/5/2T2/5", {"move_limit": 10**6, "quiet_limit": 10**6, "repetition_count": 10**6}),
        (
            crowd(),
            {
                "throne": "none",
                "corners": "none",
                "attacker_camps": everywhere(19),
                "camp_soft": everywhere(19),
                "attacker_camp_hostile": "all",
                "berserk": "any",
                "capture_run": "line",
                "shieldwall": "men",
                "shieldwall_closer": "any",
                "king_jump": "capture",
                "edge_hostile": "all",
                "draw_fort": "yes",
                "exit_fort": "yes",
                "encirclement": "ring",
                "sealed": "org",
                "repetition": "forbidden",
                "repetition_count": 2,
            },
        ),
    ],
)
def test_extreme_rules_are_played_like_any_other(
    start: str | list[str], switches: dict[str, SwitchValue]
) -> None:
    variant = Variant.build("extreme", start, switches)
    walk(variant, None, random.Random(1), 12)
    exercise(variant)
