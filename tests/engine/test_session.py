"""The session by itself, with a fake game and a fake searcher: no numpy, no protocol, no process."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

import pytest
from fakes import LAST_PLY, LEGAL, FakeGame, FakePosition, FakeSearcher, info

from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.search.types import Info, Limits, SearchResult
from hnefi.engine.search_thread import INFO_BURST
from hnefi.engine.session import Session, SessionError
from hnefi.engine.sides import Side

SECONDS = 60.0


@dataclass
class Stage:
    """A session and all that it says."""

    searcher: FakeSearcher = field(default_factory=FakeSearcher)
    infos: list[Info] = field(default_factory=list)
    results: list[tuple[FakePosition, SearchResult]] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.session = Session(
            on_info=self.infos.append,
            on_result=lambda position, result: self.results.append((position, result)),
            on_error=self.errors.append,
            load_player=self.player,
            game=FakeGame(),
            searcher=self.searcher,
        )
        self.session.set_variant("brandubh")

    def player(self, name: str) -> PlayerStub:
        if name != "tiny":
            raise ValueError("expected tiny")
        return PlayerStub()


@dataclass
class PlayerStub:
    algorithm: str = "random"
    evaluator: str = "tiny-evaluator"
    limits: Limits = field(default_factory=lambda: Limits(depth=2))
    options: dict[str, str] = field(default_factory=lambda: {"MultiPV": "3"})


@pytest.fixture
def stage() -> Stage:
    return Stage()


def finish(stage: Stage) -> SearchResult:
    assert stage.session.wait(SECONDS)
    return stage.results[-1][1]


def test_position_plays_only_what_is_new(stage: Stage) -> None:
    game = ["a4a2", "d2d3", "d3a3"]
    stage.session.set_position(None, game[:2])
    before = FakePosition.plays
    stage.session.set_position(None, game)
    assert FakePosition.plays == before + 1
    stage.session.set_position(None, game)
    assert FakePosition.plays == before + 1
    stage.session.set_position(None, game[:1])
    assert len(stage.session.position.moves) == 1
    stage.session.set_position(None, ["d3a3"])
    assert stage.session.position.moves == (LEGAL[1],)


def test_position_after_play_and_undo_is_still_known(stage: Stage) -> None:
    stage.session.set_position(None, ["a4a2"])
    assert stage.session.play("d2d3").move == LEGAL[2]
    before = FakePosition.plays
    stage.session.set_position(None, ["a4a2", "d2d3", "d3a3"])
    assert FakePosition.plays == before + 1
    assert stage.session.undo().move == LEGAL[1]
    assert stage.session.position.moves == (LEGAL[0], LEGAL[2])


def test_position_from_elsewhere_starts_anew(stage: Stage) -> None:
    stage.session.set_position(None, ["a4a2"])
    stage.session.set_position("4K2/7/7/7/t6/7/7 d 0 30", ["a4a2"])
    assert stage.session.position.start.move_number == 30
    assert len(stage.session.position.moves) == 1


@pytest.mark.parametrize(
    ("start", "moves", "read", "expected"),
    [
        (None, ["a4a2", "a1a7"], "position: move 2 a1a7", "blocked at d2"),
        (
            None,
            ["a4a2"] * (LAST_PLY + 1),
            f"position: move {LAST_PLY + 1} a4a2",
            "the game is over: a king_captured",
        ),
        ("nonsense", [], "position", "board 'nonsense'"),
    ],
)
def test_a_bad_position_leaves_the_old_one(
    stage: Stage, start: str | None, moves: list[str], read: str, expected: str
) -> None:
    stage.session.set_position(None, ["d3a3"])
    with pytest.raises(SessionError) as caught:
        stage.session.set_position(start, moves)
    assert caught.value.read == read
    assert caught.value.expected.startswith(expected)
    assert stage.session.position.moves == (LEGAL[1],)
    with pytest.raises(SessionError, match="play a1a7: blocked at d2"):
        stage.session.play("a1a7")


def test_undo_at_the_start_is_refused(stage: Stage) -> None:
    with pytest.raises(SessionError, match="undo: expected a move to take back"):
        stage.session.undo()


def test_go_is_answered_once(stage: Stage) -> None:
    stage.session.go(Limits(depth=3))
    assert finish(stage) == SearchResult(LEGAL[0], LEGAL[-1])
    assert len(stage.results) == 1
    assert not stage.session.job


def test_stop_before_the_search_has_begun_counts(stage: Stage) -> None:
    stage.searcher.gate.clear()
    stage.session.go(Limits())
    stage.session.stop()
    stage.searcher.gate.set()
    assert finish(stage).move == LEGAL[0]


def test_a_late_stop_harms_nobody(stage: Stage) -> None:
    stage.session.go(Limits(depth=1))
    finish(stage)
    stage.searcher.stop()
    stage.session.stop()
    stage.session.go(Limits())
    assert not stage.session.wait(0.05)
    stage.session.stop()
    finish(stage)
    assert len(stage.results) == 2


def test_a_bare_go_is_infinite(stage: Stage) -> None:
    stage.session.go(Limits())
    stage.session.stop()
    finish(stage)
    assert stage.searcher.limits[-1].infinite


def test_infinite_holds_the_answer_back(stage: Stage) -> None:
    stage.session.go(Limits(depth=1, infinite=True))
    assert not stage.session.wait(0.05)
    assert not stage.results
    stage.session.stop()
    assert finish(stage).move == LEGAL[0]


def test_ponder_holds_the_answer_back_until_ponderhit(stage: Stage) -> None:
    stage.session.go(Limits(depth=1, ponder=True))
    assert not stage.session.wait(0.05)
    stage.session.ponderhit()
    assert finish(stage).move == LEGAL[0]


def test_ponder_without_limits_ends_with_ponderhit(stage: Stage) -> None:
    stage.session.go(Limits(ponder=True))
    assert not stage.session.wait(0.05)
    stage.session.ponderhit()
    assert finish(stage).move == LEGAL[0]


def test_ponderhit_does_not_end_an_infinite_search(stage: Stage) -> None:
    stage.session.go(Limits(ponder=True, infinite=True))
    stage.session.ponderhit()
    assert stage.searcher.hit.is_set()
    assert not stage.session.wait(0.05)
    stage.session.stop()
    finish(stage)


def test_ponderhit_without_ponder_does_nothing(stage: Stage) -> None:
    stage.session.ponderhit()
    stage.session.go(Limits(infinite=True))
    stage.session.ponderhit()
    assert not stage.session.wait(0.05)
    stage.session.stop()
    finish(stage)


def test_a_finished_position_is_answered_without_a_search(stage: Stage) -> None:
    stage.session.set_position(None, ["a4a2"] * LAST_PLY)
    stage.session.go(Limits(depth=1))
    assert finish(stage) == SearchResult(None)
    stage.session.go(Limits())
    assert not stage.session.wait(0.05)
    stage.session.stop()
    assert finish(stage) == SearchResult(None)
    assert not stage.searcher.limits


def test_while_searching_nothing_else_begins(stage: Stage) -> None:
    stage.session.go(Limits())
    assert stage.session.searching
    for attempt in (
        lambda: stage.session.go(Limits()),
        lambda: stage.session.set_position(None),
        lambda: stage.session.set_variant("copenhagen"),
        lambda: stage.session.set_option("Hash", "1"),
        lambda: stage.session.play("a4a2"),
        stage.session.undo,
        stage.session.new_game,
        stage.session.evaluate,
        lambda: stage.session.run("perft", lambda: 0, print),
    ):
        with pytest.raises(SessionError, match="a search is running: expected stop first"):
            attempt()
    stage.session.stop()
    finish(stage)
    assert stage.session.variant.name == "brandubh"


def test_who_has_seen_the_answer_finds_the_session_idle() -> None:
    seen = threading.Event()
    searcher = FakeSearcher()
    session = Session(on_result=lambda *_: seen.set(), game=FakeGame(), searcher=searcher)
    for _ in range(200):
        seen.clear()
        session.go(Limits(depth=1))
        assert seen.wait(SECONDS)
        session.set_position(None, [])


def test_a_failing_search_answers_with_no_move(stage: Stage) -> None:
    stage.searcher.failure = RuntimeError("oh")
    stage.session.go(Limits(depth=1))
    assert finish(stage).move is None
    assert stage.errors == [stage.searcher.failure]


def test_other_work_runs_in_the_search_thread_and_is_not_stopped(stage: Stage) -> None:
    gate = threading.Event()
    values: list[int] = []

    def work() -> int:
        gate.wait(SECONDS)
        return 7

    stage.session.run("perft", work, values.append)
    assert stage.session.job == "perft"
    assert not stage.session.searching
    stage.session.stop()
    with pytest.raises(SessionError, match="perft is running: expected it to end first"):
        stage.session.go(Limits())
    gate.set()
    assert stage.session.wait(SECONDS)
    assert values == [7]


def test_failing_work_is_reported(stage: Stage) -> None:
    stage.session.run("perft", lambda: 1 // 0, print)
    assert stage.session.wait(SECONDS)
    assert isinstance(stage.errors[0], ZeroDivisionError)


def test_searchmoves_that_are_illegal_are_named(stage: Stage) -> None:
    moves, problems = stage.session.legal(["d3a3", "a1a7", "d3a3", "rubbish"])
    assert moves == (LEGAL[1],)
    assert [str(problem) for problem in problems] == [
        "searchmoves a1a7: blocked at d2",
        "searchmoves rubbish: not a move: expected origin and target such as d1d3",
    ]


def test_one_clock_stands_for_both(stage: Stage) -> None:
    stage.session.set_position(None, ["a4a2"])
    assert stage.session.position.side is Side.DEFENDERS
    stage.session.go(Limits(clock=(500, None)))
    finish(stage)
    assert stage.searcher.limits[-1] == Limits(clock=(500, 500))


def test_a_player_brings_algorithm_options_and_limits(stage: Stage) -> None:
    stage.session.set_option("player", "tiny")
    settings = stage.session.settings
    assert (settings.algorithm, settings.evaluator, settings.multipv) == ("random", "tiny-evaluator", 3)
    stage.session.go(Limits())
    finish(stage)
    assert stage.searcher.limits[-1] == Limits(depth=2)
    stage.session.go(Limits(depth=1, nodes=5))
    finish(stage)
    assert stage.searcher.limits[-1] == Limits(depth=1, nodes=5)
    with pytest.raises(SessionError, match="setoption Player huge: expected tiny"):
        stage.session.set_option("Player", "huge")
    assert stage.session.option("Player") == "tiny"


def test_an_evaluator_is_named_by_itself_or_by_its_player(stage: Stage) -> None:
    stage.session.set_option("Evaluator", "tiny")
    assert stage.session.settings.evaluator == "tiny-evaluator"
    stage.session.set_option("Evaluator", "default")
    assert stage.session.settings.evaluator == "default"
    with pytest.raises(SessionError, match="setoption Evaluator other: expected a file"):
        stage.session.set_option("Evaluator", "other")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("Hash", "0", "setoption Hash 0: expected 1 to 65536"),
        ("hash", "many", "setoption Hash many: expected a whole number from 1 to 65536"),
        ("Hash", None, "setoption Hash: expected a value"),
        ("Threads", "257", "setoption Threads 257: expected 1 to 256"),
        ("Ponder", "perhaps", "setoption Ponder perhaps: expected true or false"),
        (
            "Algorithm",
            "magic",
            "setoption Algorithm magic: expected one of alphabeta, mcts, puct, minimax, random, random-coded",
        ),
        ("ClearHash", "now", "setoption ClearHash now: expected no value, this is a button"),
        ("Colour", "red", "setoption Colour: expected the name of an option"),
        ("Variant", "chess", "variant: 'chess': expected the name of a variant"),
        ("VariantPath", "/nowhere", "setoption VariantPath: "),
    ],
)
def test_wrong_options_change_nothing(stage: Stage, name: str, value: str | None, expected: str) -> None:
    before = stage.session.settings
    with pytest.raises(SessionError) as caught:
        stage.session.set_option(name, value)
    assert str(caught.value).startswith(expected)
    assert stage.session.settings == before
    assert stage.session.variant.name == "brandubh"


def test_options_reach_the_searcher(stage: Stage) -> None:
    stage.session.set_option("HASH", "16")
    stage.session.set_option("Seed", "9")
    stage.session.go(Limits(depth=1))
    finish(stage)
    assert stage.searcher.settings == replace(stage.session.settings, hash_mib=16, seed=9)
    cleared = stage.searcher.cleared
    stage.session.set_option("clearhash")
    stage.session.new_game()
    stage.session.set_option("UCI_Variant", "copenhagen")
    assert stage.searcher.cleared == cleared + 3
    assert stage.session.variant.name == "copenhagen"


def test_rules_from_text_make_a_variant(stage: Stage) -> None:
    variant, problems = stage.session.set_rules(
        "dim:7 name:mine sw:q start:/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/"
    )
    assert variant.name == "mine"
    assert len(problems) == 1
    assert stage.session.variant is variant
    with pytest.raises(SessionError, match="rules: "):
        stage.session.set_rules("nothing")
    assert stage.session.variant is variant
    quirky, _ = stage.session.set_rules(
        "dim:7 name:mine start:/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/", opentafl=True
    )
    assert isinstance(quirky, Variant)
    assert quirky.rules.opentafl


def test_reports_are_rationed_but_the_last_ones_come(stage: Stage) -> None:
    stage.searcher.info_lines = [info(depth, pv) for depth in range(1, 500) for pv in (1, 2)]
    stage.session.go(Limits(depth=500))
    finish(stage)
    assert INFO_BURST <= len(stage.infos) <= INFO_BURST + 10
    assert stage.infos[-2:] == [info(499, 1), info(499, 2)]
    assert [report.depth for report in stage.infos] == sorted(report.depth for report in stage.infos)
