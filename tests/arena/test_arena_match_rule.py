"""Two games with sides swapped: the match rule, the buckets, and the tally of a run."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Literal

import pytest

from hnefi.tools.arena.progress import Progress
from hnefi.tools.arena.schedule import Schedule
from hnefi.tools.arena.store import summarize
from hnefi.tools.arena.values import GameResult, GameTask, Opening, PlyLog, Winner, image
from hnefi.tools.common.pairs import (
    BUCKETS,
    Ending,
    Pair,
    Played,
    Record,
    Tally,
    bucket,
    five,
    points_of,
)

EMPTY = "7/7/7/7/7/7/7 a 0 1"


def game(
    pair: int,
    number: Literal[1, 2],
    winner: Winner,
    captured: tuple[int, int] = (0, 0),
    names: tuple[str, str] = ("A", "B"),
    variant: str = "brandubh",
    image: str = "",
    plies: int = 10,
) -> Played:
    """Game 1 or 2 of a pair of `names`, the first of which attacks in game 1."""
    sides = names if number == 1 else names[::-1]
    return Played(pair, number, Ending(variant, *sides, winner), "king_escaped", captured, plies, image)


@pytest.mark.parametrize(
    ("first", "second", "captured_first", "captured_second", "points", "by"),
    [
        ("a", "d", (1, 4), (5, 2), 2, "games"),
        ("a", "draw", (1, 4), (5, 2), 2, "games"),
        ("a", "a", (5, 3), (4, 4), 2, "captures"),
        ("draw", "draw", (2, 4), (4, 3), 0, "captures"),
        ("d", "d", (3, 2), (4, 3), 1, "none"),
        ("d", "a", (9, 0), (0, 9), 0, "games"),
        ("draw", "a", (9, 0), (0, 9), 0, "games"),
        ("draw", "draw", (0, 0), (0, 0), 1, "none"),
    ],
)
def test_the_match_rule(
    first: Winner,
    second: Winner,
    captured_first: tuple[int, int],
    captured_second: tuple[int, int],
    points: int,
    by: str,
) -> None:
    """A attacks in the first game; the captures are those of attackers and defenders."""
    pair = Pair(game(1, 1, first, captured_first), game(1, 2, second, captured_second))
    own, other = captured_first[0] + captured_second[1], captured_first[1] + captured_second[0]
    assert (pair.match.points, pair.match.by, pair.match.captures) == (points, by, (own, other))
    # Seen from B, who attacks in the second game.
    turned = Pair(replace(pair.two, game=1), replace(pair.one, game=2))
    assert (turned.match.points, turned.match.by) == (2 - points, by)


def test_a_won_game_and_a_drawn_one_beat_many_captures() -> None:
    """3 : 9 in captures."""
    match = Pair(game(1, 1, "a", (1, 4)), game(1, 2, "draw", (5, 2))).match
    assert (match.points, match.by, match.captures) == (2, "games", (3, 9))


@pytest.mark.parametrize(
    ("first", "second", "own", "other"),
    [
        ("a", "d", "WW", "LL"),
        ("a", "draw", "WD", "LD"),
        ("draw", "d", "WD", "LD"),
        ("a", "a", "WL", "WL"),
        ("d", "d", "WL", "WL"),
        ("draw", "draw", "DD", "DD"),
        ("d", "draw", "LD", "WD"),
        ("draw", "a", "LD", "WD"),
        ("d", "a", "LL", "WW"),
    ],
)
def test_buckets(first: Winner, second: Winner, own: str, other: str) -> None:
    assert bucket(first, second) == own
    assert bucket(second, first) == other
    assert Pair(game(1, 1, first), game(1, 2, second)).bucket == own


def test_points_of_buckets() -> None:
    assert [points_of(name) for name in BUCKETS] == [0, 1, 2, 2, 3, 4]


def test_what_a_pair_adds_to_a_test() -> None:
    pair = Pair(game(1, 1, "a"), game(1, 2, "draw", (3, 0)))
    assert (pair.classes("pair"), pair.classes("match"), pair.classes("game")) == ((3,), (2,), (2, 1))
    lost = Pair(game(1, 1, "d"), game(1, 2, "a"))
    assert (lost.classes("pair"), lost.classes("match"), lost.classes("game")) == ((0,), (0,), (0, 0))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (game(1, 1, "a"), game(2, 2, "a")),
        (game(1, 1, "a"), game(1, 1, "a")),
        (game(1, 2, "a"), game(1, 1, "a")),
        (game(1, 1, "a"), game(1, 2, "a", names=("B", "A"))),
        (game(1, 1, "a"), game(1, 2, "a", variant="tablut")),
        (game(1, 1, "a"), game(1, 2, "a", names=("A", "C"))),
    ],
)
def test_games_that_are_no_pair_are_refused(one: Played, two: Played) -> None:
    with pytest.raises(ValueError, match="expected"):
        Pair(one, two)


def run() -> list[Played]:
    """Three pairs of A and B in one variant, one of C and A in another, an unpaired game, and a repeated pair."""
    return [
        game(1, 1, "a", (3, 1), image="1a", plies=11),
        game(1, 2, "a", (2, 2), image="1b", plies=30),
        game(2, 1, "draw", image="2a"),
        game(2, 2, "draw", image="2b"),
        game(3, 1, "a", image="3a"),
        game(3, 2, "draw", image="3b"),
        game(4, 1, "a", (3, 1), image="1a", plies=11),
        game(4, 2, "a", (2, 2), image="1b", plies=30),
        game(5, 1, "d", names=("C", "A"), variant="tablut"),
        game(5, 2, "a", names=("C", "A"), variant="tablut", plies=7),
        game(6, 2, "d"),
    ]


def tallied(games: list[Played]) -> Tally:
    tally = Tally()
    for one in games:
        tally.add(one)
    return tally


def test_a_tally() -> None:
    tally = tallied(run())
    assert (tally.engines, tally.variants, tally.duplicates) == (["A", "B", "C"], ["brandubh", "tablut"], 1)
    assert tally.record(0) == Record(wins=4, draws=3, losses=2)
    assert tally.record(1) == Record(wins=2, draws=3, losses=4)
    assert tally.record(0, "A") == Record(3, 1, 0)
    assert tally.record(1, "A") == Record(2, 2, 1)
    assert tally.record(engine="A") == Record(5, 3, 1)
    assert tally.record(0, "A", "brandubh") == Record(2, 1, 0)
    assert tally.record(engine="C") == Record(0, 0, 2)
    assert five(tally.buckets("A")) == (0, 0, 2, 1, 1)
    assert five(tally.buckets("A", "B")) == (0, 0, 2, 1, 0)
    assert five(tally.buckets("B")) == (0, 1, 2, 0, 0)
    assert five(tally.buckets("C")) == (1, 0, 0, 0, 0)
    assert five(tally.buckets("A", variant="tablut")) == (0, 0, 0, 0, 1)
    assert (tally.buckets("A")["WL"], tally.buckets("A")["DD"]) == (1, 1)
    assert tally.match_record("A") == Record(3, 1, 0)
    assert tally.match_record("B", "A") == Record(0, 1, 2)
    assert tally.match_record("C", variant="tablut") == Record(0, 0, 1)
    assert tally.by_captures() == pytest.approx(1 / 4)
    assert tally.by_captures("C") == 0.0
    assert tally.by_captures("B", "brandubh") == pytest.approx(1 / 3)
    assert tally.by_captures("C", "brandubh") is None
    assert list(tally.open) == [6]
    assert (tally.shortest, tally.longest) == ((7, 5, 2), (30, 1, 2))
    assert tally.plies == {"brandubh": 11 + 30 + 5 * 10, "tablut": 10 + 7}
    assert tally.reasons["brandubh", "a", "king_escaped"] == 3


def test_an_unpaired_game_counts_as_game_only() -> None:
    tally = tallied([game(1, 1, "a", names=("A", "B"))])
    assert tally.record(0, "A").wins == 1
    assert not tally.pairs
    assert not tally.matches
    assert five(tally.buckets("A")) == (0, 0, 0, 0, 0)
    assert tally.by_captures() is None
    assert list(tally.units()) == [((Ending("brandubh", "A", "B", "a"),), 1)]


@pytest.mark.parametrize("seed", range(10))
def test_order_and_repetition_make_no_difference(seed: int) -> None:
    """Games shuffled, and each delivered twice."""
    games = run() * 2
    random.Random(seed).shuffle(games)
    expected, found = vars(tallied(run())), vars(tallied(games))
    for name in ("games", "pairs", "matches", "reasons", "plies"):
        assert +found[name] == +expected[name], name
    for name in ("duplicates", "open", "shortest", "longest"):
        assert found[name] == expected[name], name


def test_adding_hands_out_complete_pairs() -> None:
    tally = Tally()
    assert tally.add(game(1, 2, "a")) is None
    pair = tally.add(game(1, 1, "d"))
    assert pair is not None
    assert (pair.number, pair.first, pair.second, pair.bucket) == (1, "A", "B", "LL")
    assert tally.add(game(1, 1, "d")) is None
    with pytest.raises(ValueError, match="sides swapped"):
        [tally.add(one) for one in (game(2, 1, "a"), game(2, 2, "a", names=("A", "C")))]


def test_pairs_without_known_moves_never_repeat() -> None:
    tally = tallied([game(pair, number, "a") for pair in (1, 2) for number in (1, 2)])
    assert (tally.duplicates, sum(tally.pairs.values())) == (0, 2)


def test_records() -> None:
    record = Record(3, 4, 1)
    assert (record.games, record.score, record.counts) == (8, 0.625, (1, 4, 3))
    assert record.interval == pytest.approx((0.3057, 0.8632), abs=1e-3)
    assert (Record().score, Record().interval) == (None, None)


def result(
    moves: str, opening: str = "", winner: Winner | None = "a", final: str = EMPTY, start: str | None = None
) -> GameResult:
    task = GameTask(3, 2, "brandubh", Opening(start, tuple(opening.split())), (1, 0), (0, 0))
    plies = tuple(PlyLog(move) for move in moves.split())
    return GameResult(task, ("B", "A"), winner, "king_captured", plies, captured=(2, 1), final=final)


def test_what_is_kept_of_a_result() -> None:
    row = summarize(result("a1a3 b2b7"))
    kept = Progress(Schedule((), (), 0, 0), ("A", "B")).played(row)
    ending = Ending("brandubh", "B", "A", "a")
    assert (kept.pair, kept.game, kept.ending, kept.reason) == (3, 2, ending, "king_captured")
    assert (kept.captured, kept.plies, len(kept.image)) == ((2, 1), 2, 32)


@pytest.mark.parametrize(
    "turned",
    ["a3a1 c7d7", "a5a7 c1d1", "g3g1 e7d7", "g5g7 e1d1", "c1a1 g3g4", "e1g1 a3a4", "c7a7 g5g4", "e7g7 a5a4"],
)
def test_images_of_a_game(turned: str) -> None:
    """All eight of a square board; whether a ply belongs to the opening makes no difference."""
    whole = image(result("a3a1 c7d7"))
    assert image(result(turned)) == whole
    first, second = turned.split()
    assert image(result(second, opening=first)) == whole


def test_images_that_differ() -> None:
    whole = result("a3a1 c7d7")
    others = [
        result("a3a1 c7e7"),
        result("a3a1 c1d1"),
        result("c7d7 a3a1"),
        result("a3a1"),
        result("a3a1 c7d7", winner="d"),
        result("a3a1 c7d7", start=EMPTY),
        replace(whole, reason="surrounded"),
    ]
    assert image(whole) not in {image(other) for other in others}


def test_images_on_an_oblong_board() -> None:
    """Half a turn and the two mirrors, but no diagonal."""
    oblong = "4/4/4 a 0 1"
    moves = image(result("a1a2", final=oblong))
    assert {image(result(same, final=oblong)) for same in ("d1d2", "a3a2", "d3d2")} == {moves}
    assert image(result("a1b1", final=oblong)) != moves


@pytest.mark.parametrize("final", ["", "garbage", "0 1", "////"])
def test_a_strange_board_is_no_accident(final: str) -> None:
    assert len(image(result("a3a1 swap s19 (none) 🙂", final=final))) == 32
