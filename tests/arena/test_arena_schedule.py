"""The schedule: pair n is a matter of configuration, seed and n alone."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import fake_arena
import pytest

from hnefi.tools.arena import command, option_reader, resolve, schedule
from hnefi.tools.arena.schedule import Pair, Schedule, listing, longest, make, meetings
from hnefi.tools.arena.values import GameTask, Opening


def plan(**changes: object) -> Schedule:
    facts: dict[str, object] = {
        "meetings": ((0, 1), (0, 2), (1, 2)),
        "variants": ("x", "y"),
        "rounds": 3,
        "seed": 7,
    }
    return Schedule(**(facts | changes))  # type: ignore[arg-type]


def tasks(of: Schedule) -> list[GameTask]:
    openings = [Opening(None, (str(number),)) for number in range(of.openings)]
    return list(of.all_tasks(dict.fromkeys(of.variants, openings)))


def test_games_of_a_pair_have_one_opening_and_swapped_sides() -> None:
    games = tasks(plan())
    assert len(games) == 3 * 3 * 2 * 2
    for one, two in zip(games[::2], games[1::2], strict=True):
        assert (one.pair, one.game, two.pair, two.game) == (one.pair, 1, one.pair, 2)
        assert one.engines == two.engines[::-1]
        assert (one.variant, one.opening) == (two.variant, two.opening)
    assert [game.pair for game in games[::2]] == list(range(1, 19))


def test_every_round_holds_every_meeting_once_in_every_variant() -> None:
    pairs = [plan().pair(number) for number in range(1, 19)]
    for part in (pairs[:6], pairs[6:12], pairs[12:]):
        assert len({(pair.engines, pair.variant) for pair in part}) == 6
        assert len({(pair.round, pair.opening) for pair in part}) == 1


def test_more_pairs_only_append() -> None:
    few, many = tasks(plan(rounds=3)), tasks(plan(rounds=9))
    assert many[: len(few)] == few
    assert tasks(plan(seed=8))[0].seeds != few[0].seeds


def test_seeds_tell_games_engines_and_runs_apart() -> None:
    seeds = [seed for game in tasks(plan()) for seed in game.seeds]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert schedule.seed(7, "17.2", 1) == 294687192


def test_an_opening_is_used_for_as_many_pairs_as_wanted() -> None:
    repeated = plan(repeat=2, first=4, rounds=5)
    assert [repeated.pair(number).opening for number in range(1, 31, 6)] == [4, 4, 5, 5, 6]
    assert repeated.openings == 7


def test_without_swapping_an_opening_is_played_once() -> None:
    single = plan(swap=False)
    assert single.games == len(single) == 18
    assert {game.game for game in tasks(single)} == {1}


@pytest.mark.parametrize("number", [0, 19])
def test_there_is_no_other_pair(number: int) -> None:
    with pytest.raises(IndexError, match="expected 1 to 18"):
        plan().pair(number)


def test_who_meets_whom() -> None:
    assert meetings("match", 2) == ((0, 1),)
    assert meetings("round-robin", 3) == ((0, 1), (0, 2), (1, 2))
    assert meetings("gauntlet", 4, 2) == ((0, 2), (0, 3), (1, 2), (1, 3))


def test_a_test_has_an_end() -> None:
    assert len(make(fake_arena.config(sprt__elo1=10, sprt__max_pairs=44))) == 44
    # Three times the 5,233 pairs that are expected midway between the hypotheses.
    assert 15_000 < len(make(fake_arena.config(sprt__elo1=10))) < 16_000
    assert len(make(fake_arena.config(sprt__elo1=10, sprt__model="logistic"))) > 100


def test_the_longest_duration_is_that_of_the_clocks() -> None:
    told = option_reader.from_arguments(["default", "default", "--tc", "10+0.1", "--pairs", "3"])
    # Two games of two clocks: 10 s and 100 increments each.
    assert longest(make(told), resolve.specs(told), 1) == pytest.approx(3 * 4 * 20)
    assert longest(make(told), resolve.specs(told), 4) == pytest.approx(3 * 20)
    periods = option_reader.from_arguments(["default", "default", "--tc", "40/10", "--pairs", "1"])
    assert longest(make(periods), resolve.specs(periods), 1) == pytest.approx(4 * 30)
    fixed = option_reader.from_arguments(["default", "default", "--nodes", "5"])
    assert longest(make(fixed), resolve.specs(fixed), 1) is None


def test_a_listing_names_ids_sides_openings_and_seeds() -> None:
    few = plan(rounds=1, meetings=((0, 1),), variants=("x",))
    lines = list(listing(few, ("one", "two"), {"x": [Opening("7/7 a", ("a1a2",))]}))
    seeds = [" ".join(str(schedule.seed(7, f"1.{game}", engine)) for engine in order) for game, order in
             ((1, (0, 1)), (2, (1, 0)))]  # fmt: skip
    assert lines == [
        f"1.1     one (a) - two (d)  x  opening 7/7 a moves a1a2  seeds {seeds[0]}",
        f"1.2     two (a) - one (d)  x  opening 7/7 a moves a1a2  seeds {seeds[1]}",
    ]
    everything = list(listing(plan(), ("a", "b", "c"), {name: [Opening()] * 3 for name in "xy"}))
    assert len(everything) == 36
    short = list(listing(plan(), ("a", "b", "c"), {name: [Opening()] * 3 for name in "xy"}, limit=4))
    assert short == [*everything[:4], "... and 30 more games, up to", *everything[-2:]]


def test_a_dry_run_prints_the_schedule_and_starts_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path
) -> None:  # type: ignore[no-untyped-def]
    words = [
        "default",
        "random-blind",
        "--dry-run",
        "--tc",
        "1+0.01",
        "--sprt",
        "elo1=50",
        "--sprt-max-pairs",
        "2",
    ]
    words += ["--out", str(tmp_path / "run"), "--openings-source", "start", "--variant", "brandubh"]
    assert command.main([*words, "--openings-repeat", "2"]) == 0
    out = capsys.readouterr().out
    assert "4 games in 2 pairs: 1 meeting, 2 rounds" in out
    assert "expected pairs: 128 if H0 is true, 128 if H1 is true, 209 midway" in out
    assert "\nlimits: tc 1+0.01\n" in out
    assert "at most 0:16 in 1 slot" in out
    assert "2.2     random-blind (a) - default (d)  brandubh  opening startpos" in out
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("_nothing_starts")
@pytest.mark.parametrize("dry", [True, False])
def test_what_cannot_be_written_is_told_before_anything_starts(
    dry: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "old.tafl").write_text("of an earlier run\n")
    (tmp_path / "sealed").mkdir()
    monkeypatch.setattr("os.access", lambda path, _: path != tmp_path / "sealed")
    words = ["default", "random-blind", "--variant", "brandubh", "--pairs", "1", *["--dry-run"][: int(dry)]]
    for more, said in (
        (["--out", str(tmp_path / "sealed")], ": exists: expected a new folder"),
        (
            ["--out", str(tmp_path / "sealed/a/b")],
            f"{tmp_path}/sealed cannot be written: expected a folder that can",
        ),
        (
            ["--out", str(tmp_path / "file/a")],
            f"{tmp_path}/file cannot be written: expected a folder that can",
        ),
        (
            ["--out", str(tmp_path / ("a" * 300))],
            ": File name too long: expected a place that can be written",
        ),
        (
            ["--out", str(tmp_path / "a"), "--records", str(tmp_path / ("a" * 300))],
            ": File name too long: expected a place that can be written",
        ),
        (
            ["--out", str(tmp_path / "a"), "--records", str(tmp_path / "old.tafl")],
            ": exists: expected a new file; move it away, or choose another name",
        ),
    ):
        assert command.main([*words, *more]) == 2
        captured = capsys.readouterr()
        assert said in captured.err
        assert ("2 games in 1 pair" in captured.out) == dry
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "old.tafl", "sealed"]


@pytest.fixture
def _nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr("subprocess.Popen.__init__", refuse)


@pytest.mark.usefixtures("_nothing_starts")
@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("a4a3\nb4b3\n", 0, "opening b4b3"),
        ("a4a3\na1a2\n", 2, "openings.txt:2: "),
        ("a4a3\ng4g3\n", 2, "file has 1 distinct openings of 'brandubh': expected 2"),
        ("K6/7/7/7/7/t6/7 a\n", 2, "openings.txt:1: the game is over"),
    ],
)
def test_a_dry_run_judges_the_openings_of_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, code: int, said: str
) -> None:
    (tmp_path / "openings.txt").write_text(text)
    words = ["default", "random-blind", "--dry-run", "--variant", "brandubh", "--pairs", "2"]
    words += ["--openings-source", "file", "--openings-file", str(tmp_path / "openings.txt")]
    assert command.main(words) == code
    assert said in "".join(capsys.readouterr())


@pytest.mark.usefixtures("_nothing_starts")
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--openings-source", "genfens", "--openings-engine", "2"], "those that random-blind will propose"),
        (["--openings-eval-by", "random-blind"], "those that random-blind will find balanced"),
    ],
)
def test_a_dry_run_says_what_only_an_engine_knows(
    capsys: pytest.CaptureFixture[str], flags: list[str], said: str
) -> None:
    words = ["default", "random-blind", "--dry-run", "--variant", "brandubh", "--pairs", "3", *flags]
    assert command.main(words) == 0
    out = capsys.readouterr().out
    assert f"3 for every variant are needed; openings are {said}" in out
    assert "3.2     random-blind (a) - default (d)  brandubh  opening (number 3 of them)  seeds " in out


@pytest.mark.usefixtures("_nothing_starts")
def test_a_dry_run_of_a_huge_run_makes_few_games(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["default", "random-blind", "--dry-run", "--variant", "brandubh,tablut", "--pairs"]
    assert command.main([*words, "3"]) == 0
    few = capsys.readouterr().out.splitlines()
    made = []
    task = Schedule._task

    def counted(self: Schedule, pair: Pair, game: Literal[1, 2], opening: Opening) -> GameTask:
        made.append(pair.number)
        assert len(made) < 250
        return task(self, pair, game, opening)

    monkeypatch.setattr(Schedule, "_task", counted)
    assert command.main([*words, "10000000"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert len(out) < 250
    assert "10000000 for every variant are needed; the first 250 are shown; whether" in out[5]
    start = out.index("")
    assert out[start + 1 : start + 13] == few[-12:]
    assert out[-3] == "... and 39999798 more games, up to"
    assert out[-1].startswith(
        "20000000.2 random-blind (a) - default (d)  tablut-linnaeus  opening (number 10000000 "
    )


@pytest.mark.usefixtures("_nothing_starts")
def test_a_dry_run_sees_that_a_small_game_has_too_few_openings(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["default", "default", "--dry-run", "--variant", "hexapawn:3x3", "--pairs", "1000"]
    assert command.main(words) == 2
    assert "distinct openings of 'hexapawn:3x3': expected 1000 (fewer pairs" in capsys.readouterr().err
