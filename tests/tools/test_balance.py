"""`hnefi balance`: games that repeat, folders that go on, rule sets and players by name, the command."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hnefi.engine import evaluators, games
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.squares import move_name
from hnefi.tools.balance import command, entrants, folder, playing, report, run, strength
from hnefi.tools.balance.entrants import BalanceError, Entrant
from hnefi.tools.balance.folder import Key, Log, Plan, games_in, prepare, read_plan
from hnefi.tools.balance.playing import Game

BRANDUBH = entrants.parse("brandubh")
WALKER = entrants.compared(BRANDUBH, ["brandubh-walker"])[1]
SMALL = Plan("table", (BRANDUBH,), ("random-terminal", "simple"), 12, 20)


def quiet(*_: object) -> None:
    """A run that nobody looks at."""


def play(where: Path, plan: Plan, jobs: int = 1) -> run.Runner:
    prepare(where, plan)
    runner = run.Runner(where, plan, jobs, quiet)
    runner.play(run.cells(plan))
    return runner


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> folder.Results:
    return play(tmp_path_factory.mktemp("whole"), SMALL).results


def test_every_game_is_played_once(whole: folder.Results) -> None:
    assert {key: len(there) for key, there in whole.items()} == {
        Key("brandubh", "random-terminal", 0): 12,
        Key("brandubh", "simple", 0): 20,
    }
    assert sorted(whole[Key("brandubh", "simple", 0)]) == list(range(20))


def test_two_processes_play_the_same_games(whole: folder.Results, tmp_path: Path) -> None:
    assert play(tmp_path, SMALL, jobs=2).results == whole


def test_a_torn_line_is_played_again(whole: folder.Results, tmp_path: Path) -> None:
    play(tmp_path, SMALL)
    log = tmp_path / folder.GAMES
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]) + lines[-1][:25])
    assert run.Runner(tmp_path, SMALL, 1, quiet).results != whole
    assert log.read_bytes() == b"".join(lines[:-1])
    assert play(tmp_path, SMALL).results == whole
    assert Log(tmp_path).read() == whole


def test_another_seed_gives_other_games(whole: folder.Results, tmp_path: Path) -> None:
    other = play(tmp_path, Plan("table", (BRANDUBH,), ("simple",), 20, 20, seed=2)).results
    assert other[Key("brandubh", "simple", 0)] != whole[Key("brandubh", "simple", 0)]


def test_a_player_can_be_bound_to_a_set_of_weights_and_features() -> None:
    """Or the same command would give other figures with each version's weights."""
    bound, newest = strength.parse("default-2026.1@60"), strength.parse("default@60")
    assert (bound.settings.evaluator, bound.settings.features) == ("default-2026.1", "default-2026.1")
    assert (newest.settings.evaluator, newest.settings.features) == (evaluators.HAND, "default")
    assert bound.limits == newest.limits
    assert all(word.startswith(("random", "simple", "default-2026.1@")) for word in strength.DEFAULT)


def test_more_games_begin_with_the_same_ones(whole: folder.Results, tmp_path: Path) -> None:
    more = play(tmp_path, Plan("table", (BRANDUBH,), ("simple",), 26, 26)).results
    there = whole[Key("brandubh", "simple", 0)]
    assert {
        number: game for number, game in more[Key("brandubh", "simple", 0)].items() if number < 20
    } == there


def slow_game(opening: playing.Opening, number: int) -> Game:
    """A game of a search with nothing but positions and a searcher, and everything counted the slow way."""
    player = strength.parse("default@60")
    position = playing.after(BRANDUBH.variant, opening)
    searcher, seen, leads = Searcher(player.settings), [], []
    while position.outcome is None:
        seen.append(len(position.legal_moves()))
        infos: list[Any] = []
        searcher.begin()
        move = searcher.search(position, player.limits, infos.append).move
        assert move is not None
        score = infos[-1].score
        value = score.cp if score.cp is not None else 10_000 * score.mate
        leads.append(value if position.side == 0 else -value)
        position = position.play(move)
    signs = [value > 0 for value in leads if abs(value) >= playing.LEAD]
    men = [sum(letter in side for _, letter in position.pieces()) for side in ("t", "T")]
    return Game(
        number,
        position.outcome.result if position.outcome.winner is not None else "=",
        position.outcome.reason.value,
        len(position.moves),
        round(sum(seen) / len(seen), 2),
        BRANDUBH.variant.defenders - men[1],
        BRANDUBH.variant.attackers - men[0],
        sum(one != other for one, other in pairwise(signs)),
    )


@pytest.mark.parametrize("lead", [20, 150])
def test_a_game_is_what_a_plain_loop_plays(lead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "LEAD", lead)
    player = strength.parse("default@60")
    searcher = Searcher(player.settings)
    changes = 0
    for number, opening in enumerate(playing.own_openings(BRANDUBH.variant, 12, 1)):
        game = playing.play_one(BRANDUBH.variant, opening, player, searcher, number, 5)
        assert game == slow_game(opening, number)
        assert game.lead_changes is not None
        changes += game.lead_changes
    # So large a lead seldom changes hands.
    assert changes > (5 if lead == 20 else 1)


def test_chance_follows_from_number_player_pool_and_seed() -> None:
    """Each of them alone changes the seed of a game, and another seed gives another game from the same opening."""
    task = playing.Task(BRANDUBH, strength.parse("simple"), 0, (0,), ((),), 1, 400)
    others = [task._replace(player=strength.parse("simple-d2")), task._replace(pool=1), task._replace(seed=2),
              task._replace(entrant=WALKER)]  # fmt: skip
    seeds = {playing.game_seed(one, number) for one in (task, *others) for number in (0, 1)}
    assert len(seeds) == 10
    searcher = Searcher(task.player.settings)
    played = {playing.play_one(BRANDUBH.variant, (), task.player, searcher, 0, seed) for seed in seeds}
    assert len(played) > 3


def test_a_game_that_does_not_end_is_a_draw_by_the_cap() -> None:
    player = strength.parse("random-terminal")
    game = playing.play_one(BRANDUBH.variant, (), player, Searcher(player.settings), 0, 1, most_plies=3)
    assert (game.winner, game.reason, game.plies) == ("=", "ply_cap", 3)
    assert game.lead_changes is None


def test_equal_players_that_choose_by_chance_play_different_games(whole: folder.Results) -> None:
    played = [game[1:] for game in whole[Key("brandubh", "simple", 0)].values()]
    assert len(set(played)) > len(played) // 2


def test_openings_are_distinct_and_begin_alike_however_many() -> None:
    many = playing.own_openings(BRANDUBH.variant, 60, 1)
    assert len(set(many)) == 60
    assert many[:7] == playing.own_openings(BRANDUBH.variant, 7, 1)


def test_rule_sets_that_are_compared_begin_alike() -> None:
    shared = playing.own_openings(BRANDUBH.variant, 30, 1)
    taken = playing.shared_openings(WALKER.variant, shared, 1)
    assert sum(one == other for one, other in zip(shared, taken, strict=True)) >= 20
    assert playing.shared_openings(BRANDUBH.variant, shared, 1) == shared
    assert playing.shared_openings(WALKER.variant, shared[:9], 1) == taken[:9]


def test_an_opening_that_is_none_there_is_replaced() -> None:
    """Men that move one square at a time cannot follow most openings."""
    slow = Entrant("slow", entrants.changed(BRANDUBH.variant, ["speed=all:1"]), "brandubh")
    shared = playing.own_openings(BRANDUBH.variant, 12, 1)
    taken = playing.shared_openings(slow.variant, shared, 1)
    own = playing.own_openings(slow.variant, 12, 1)
    searcher = Searcher(strength.parse("default@100").settings)
    bad = [k for k, opening in enumerate(shared) if not playing.is_open(slow.variant, opening, searcher)]
    assert 6 <= len(bad) < 12
    assert [taken[k] for k in bad] == own[: len(bad)]
    assert all(taken[k] == shared[k] for k in range(12) if k not in bad)


def test_what_somebody_wins_at_once_is_no_opening() -> None:
    """Random walks: wherever a single move wins, the walk is none."""
    draw, won = random.Random(6), 0
    searcher = Searcher(strength.parse("default@100").settings)
    for _ in range(200):
        position = games.initial(BRANDUBH.variant)
        while position.outcome is None and position.ply < 16:
            position = position.play(draw.choice(position.legal_moves()))
        if position.outcome is not None:
            continue
        nexts = [position.play(move).outcome for move in position.legal_moves()]
        if any(end is not None and end.winner == position.side for end in nexts):
            won += 1
            moves = tuple(map(move_name, position.moves))
            assert not playing.is_open(BRANDUBH.variant, moves, searcher)
    assert won > 8
    assert playing.is_open(BRANDUBH.variant, (), searcher)


def test_a_won_game_is_no_opening() -> None:
    variant = entrants.changed(BRANDUBH.variant, ["king_sides=4"])
    searcher = Searcher(strength.parse("default@100").settings)
    assert not playing.is_open(variant, ("d1d9",), searcher)
    assert not playing.is_open(
        entrants.changed(variant, ["escape=edge", "corners=none"]), won_line(), searcher
    )


def won_line() -> playing.Opening:
    """A game in which the king has reached the edge."""
    draw = random.Random(3)
    variant = entrants.changed(BRANDUBH.variant, ["king_sides=4", "escape=edge", "corners=none"])
    while True:
        position = games.initial(variant)
        while position.outcome is None:
            position = position.play(draw.choice(position.legal_moves()))
        if position.outcome.reason.value == "king_escaped":
            return tuple(map(move_name, position.moves))


# Rule sets


def test_switches_behind_a_plus() -> None:
    found = entrants.parse("Brandubh+king_sides=4+escape=edge")
    assert found.label == "brandubh+king_sides=4+escape=edge"
    assert (found.variant.rules.king_sides, found.variant.rules.escape) == (4, "edge")
    assert entrants.differences(BRANDUBH.variant, found.variant) == [
        ("king_sides", "2", "4"),
        ("escape", "corner", "edge"),
    ]


def test_differences_are_found_however_rules_differ() -> None:
    """Random switches of random values: those whose text differs are listed, and no others."""
    draw = random.Random(4)
    base = entrants.parse("copenhagen")
    choices = {"shieldwall": "off men corner", "king_armed": "yes moving no", "exit_fort": "yes no"}
    for _ in range(20):
        told = {name: draw.choice(words.split()) for name, words in choices.items()}
        other = entrants.changed(base.variant, [f"{name}={value}" for name, value in told.items()])
        expected = {
            (name, base.variant.rules.switch_text(name), value)
            for name, value in told.items()
            if base.variant.rules.switch_text(name) != value
        }
        assert set(entrants.differences(base.variant, other)) == expected


def test_the_points_of_the_paper_differ_from_its_rules_in_one_thing_each() -> None:
    base, *others = entrants.points()
    assert base.label == "hingston-original"
    changed = {
        other.label: {name for name, *_ in entrants.differences(base.variant, other.variant)}
        for other in others
    }
    boards = {"board-9", "board-13"}
    assert {name for name in changed if "size" in changed[name]} == boards
    assert all(changed[name] <= {"size", "throne", "corners", "start"} for name in boards)
    assert {name for name in changed if changed[name] == {"start"}} == {"start-lewis", "start-bell"}
    both = entrants.changed(base.variant, ["king_armed=no", "king_sides=2", "king_sides_on_throne=2",
                                           "king_sides_beside_throne=2", "king_on_edge=safe"])  # fmt: skip
    assert both.hash == games.find("hingston-alternative").hash
    for label in ("shieldwall", "king-with-one", "king-unarmed", "castle-closed", "edges-closed"):
        assert len(changed[label]) == 1


def test_a_folder_needs_no_file_besides(tmp_path: Path) -> None:
    text = BRANDUBH.variant.rows.split("/")
    file = tmp_path / "mine.toml"
    file.write_text(f'name = "mine"\nstart = {text}\n[rules]\nking_sides = 2\n')
    found = entrants.parse(f"{file}+king_armed=no")
    file.unlink()
    again = Entrant.from_json(json.loads(json.dumps(found.as_json())))
    assert again == Entrant(found.label, again.variant)
    assert again.variant.hash == found.variant.hash
    with pytest.raises(ValueError, match="expected rules with the hash 1234"):
        Entrant.from_json({**found.as_json(), "hash": "1234"})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["brandub+"], "expected SWITCH=VALUE"),
        (
            ["brandubh+shieldwal=off"],
            "expected the name of a rule switch before = (did you mean shieldwall?)",
        ),
        (["brandubh+kingsides=4"], "did you mean king_sides?"),
        (["brandubh+king_sides=3"], "king_sides: '3': expected one of 4, 2"),
        (["brandubh+start=7/7"], "start"),
        (["hex:5"], "hex:5: expected a tafl variant"),
        (["brandubhh"], "brandubhh"),
        (["brandubh", "--players", "simpel"], "no player 'simpel'"),
        (["brandubh", "--players", "default"], "'default': expected a limit: default@NODES"),
        (["brandubh", "--players", "default@x"], "'default@x': expected default@NODES"),
        (
            ["brandubh", "--players", "default-2026.1"],
            "'default-2026.1': expected a limit: default-2026.1@NODES",
        ),
        (["brandubh", "--players", "default-1066@5"], "default-1066"),
        (["brandubh", "--players", "simple,simple"], "expected each player once"),
        (["brandubh", "--players", ","], "expected players with commas"),
        (["king_sides=4"], "expected --diff before"),
        (["--diff", "brandubh"], "expected something to compare with the first"),
        (["--diff", "brandubh", "king_sides=2"], "expected rules that differ from those of brandubh"),
        (["--diff", "brandubh", "king_sides=4", "king_sides=4"], "expected each rule set once"),
        (["--search", "brandubh", "tablut"], "--search: 2 rule sets: expected one"),
        (["--search", "brandubh", "--players", "evolved-copenhagen@50"], "copenhagen"),
        (["resume", "nowhere"], "expected the folder of a run"),
        (["report", "nowhere"], "expected the folder of a run"),
    ],
)
def test_what_cannot_be_is_said(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.main(words) == command.USAGE
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["brandubh", "--doubles", "3"], "--doubles: expected only with --search"),
        (["--search", "brandubh", "--games", "3"], "expected --first and --confirm"),
        (["brandubh", "--games", "0"], "expected a whole number from 1 on"),
        (["--diff", "--search", "brandubh"], "not allowed with"),
    ],
)
def test_flags_that_do_not_go_together(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main(words)
    assert said in capsys.readouterr().err


# The folder


def test_a_folder_is_that_of_one_plan(tmp_path: Path) -> None:
    prepare(tmp_path / "run", SMALL)
    prepare(tmp_path / "run", SMALL)
    assert read_plan(tmp_path / "run") == SMALL
    other = Plan("table", (BRANDUBH,), ("random-terminal", "simple"), 13, 20)
    with pytest.raises(BalanceError, match="games: 12 there and 13 here: expected another --out"):
        prepare(tmp_path / "run", other)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(BalanceError, match="expected an empty folder"):
        prepare(tmp_path / "mine", SMALL)


@pytest.mark.parametrize(
    "line",
    [
        '{"rules": "brandubh"}',
        '{"rules":"brandubh","player":"simple","pool":0,"version":"x","games":[[1,"a"]]}',
        '{"rules":"brandubh","player":"simple","pool":0,"version":"x","games":[[1,"x","king_escaped",3,1.5,0,0,null]]}',
        '{"rules":"brandubh","player":"simple","pool":0,"version":"x","games":[[1,"d","flew_away",3,1.5,0,0,null]]}',
        '{"rules":"brandubh","player":"simple","pool":0,"version":"x","games":[[1,"d","king_escaped",-3,1.5,0,0,null]]}',
        "[" * 5000,
        "garbage",
    ],
)
def test_a_wrong_line_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / folder.GAMES).write_text(line + "\n")
    with pytest.raises(BalanceError, match=r"line 1: .*expected finished games"):
        Log(tmp_path).read()


def test_a_wrong_plan_is_refused(tmp_path: Path) -> None:
    prepare(tmp_path, SMALL)
    path = tmp_path / folder.PLAN
    whole = json.loads(path.read_text())
    for key, value in (
        ("format", 2),
        ("kind", "party"),
        ("entrants", [{}]),
        ("games", "many"),
        ("search", 3),
    ):
        path.write_text(json.dumps({**whole, key: value}))
        with pytest.raises(BalanceError, match="expected the plan of a run"):
            read_plan(tmp_path)


def test_pools_and_numbers_are_kept_apart(tmp_path: Path) -> None:
    log = Log(tmp_path, "v1")
    games_here = [Game(k, "a", "king_captured", 9, 20.0, 1, 2, None) for k in (0, 2, 5)]
    log.append(Key("x", "p", 0), games_here[:2])
    log.append(Key("x", "p", 1), games_here[1:])
    found = Log(tmp_path).read()
    assert games_in(found, Key("x", "p", 0), 9) == games_here[:2]
    assert games_in(found, Key("x", "p", 1), 5) == [games_here[1]]
    assert games_in(found, Key("y", "p", 1), 5) == []


# The command


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a comparison with its report."""
    where = tmp_path_factory.mktemp("command") / "walls"
    words = [
        "--diff",
        "brandubh",
        "king_sides=4+king_sides_beside_throne=4",
        "--players",
        "random-terminal,simple",
    ]
    assert command.main([*words, "--games", "30", "--jobs", "1", "--plain", "--out", str(where)]) == 0
    return where


def test_a_comparison_says_which_switches_differ(told: Path) -> None:
    text = (told / report.REPORT).read_text()
    assert "king_sides 2 → 4, king_sides_beside_throne 2 → 4" in text
    found = json.loads((told / report.DATA).read_text())
    gap = next(gap for gap in found["differences"] if gap["player"] == "simple")
    assert gap["pairs"] == 30
    assert gap["difference"] < -0.3
    assert gap["interval"][1] < 0
    assert [switch[0] for switch in gap["switches"]] == ["king_sides", "king_sides_beside_throne"]


def test_the_report_prints_the_command_that_makes_it(told: Path) -> None:
    first = (told / report.REPORT).read_text().split("$ hnefi balance ", 1)[1].splitlines()[0]
    assert first == (
        "--diff brandubh king_sides=4+king_sides_beside_throne=4 --players random-terminal,simple --games 30 "
        "--seed 1 --plies 400 --out walls"
    )


def test_going_on_with_a_finished_run_only_reports(told: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = (told / folder.GAMES).read_bytes()
    before = (told / report.REPORT).read_text()
    assert command.main(["resume", str(told), "--jobs", "1", "--plain"]) == 0
    assert command.main(["report", str(told)]) == 0
    assert (told / folder.GAMES).read_bytes() == log
    assert (told / report.REPORT).read_text() == before
    assert "brandubh+king_sides=4" in capsys.readouterr().out
    assert command.main(["report", str(told), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((told / report.DATA).read_text())


def test_the_report_as_a_page(told: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert command.main(["report", str(told), "--html", str(page)]) == 0
    text = page.read_text("utf-8")
    assert "<h1>Which side the rules favour</h1>" in text
    assert "<h2>Figures</h2><figure" in text
    assert "<script" not in text
    assert "brandubh+king_sides=4" in text
    assert capsys.readouterr().out.endswith(f"\npage {page}\n")
    assert command.main(["report", str(told), "--html", str(tmp_path)]) == 2
    assert f"{tmp_path}: Is a directory: expected a file to write" in capsys.readouterr().err


def test_the_table_of_cells_is_that_of_the_report(told: Path) -> None:
    lines = (told / report.CELLS).read_text().splitlines()
    head, *rows = [line.split(",") for line in lines]
    cells = json.loads((told / report.DATA).read_text())["cells"]
    assert len(rows) == len(cells) == 4
    for row, cell in zip(rows, cells, strict=True):
        said = dict(zip(head, row, strict=True))
        assert said["rules"] == cell["rules"]
        assert int(said["attackers"]) + int(said["defenders"]) + int(said["draws"]) == 30
        assert float(said["score_low"]) <= float(said["score"]) == round(cell["score"], 4)


def test_players_pass_over_rules_that_they_cannot_play(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["brandubh", "--players", "random-terminal,evolved-copenhagen@10", "--games", "2", "--jobs", "1"]
    assert command.main([*words, "--out", str(tmp_path / "run"), "--plain"]) == 0
    said = capsys.readouterr().out
    assert "not played: brandubh: evolved-copenhagen plays copenhagen only, not brandubh" in said


def test_rules_under_which_every_opening_decides_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["mini-four", "mini-four+throne=none", "--players", "simple", "--games", "2", "--jobs", "1"]
    assert command.main([*words, "--out", str(tmp_path / "run"), "--plain"]) == 0
    assert "not played: mini-four+throne=none: a few random plies decide" in capsys.readouterr().out
    assert "- mini-four+throne=none: a few random plies" in (tmp_path / "run" / "report.md").read_text()


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_keeps_what_was_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    words = [
        "brandubh",
        "--players",
        "default@1600",
        "--games",
        "600",
        "--jobs",
        "1",
        "--plain",
        "--out",
        "run",
    ]
    code = "from hnefi.tools.balance.command import main; import sys; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    log = tmp_path / "run" / folder.GAMES
    while process.poll() is None and not (log.exists() and log.stat().st_size):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == command.INTERRUPTED
    assert "hnefi balance resume run" in errors
    assert Log(tmp_path / "run").read()


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    for word in ("--diff copenhagen shieldwall=off", "NAME@1600", "resume DIR", "points"):
        assert word in said


def test_every_example_can_be_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples of the help are commands that are understood."""
    planned = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "_conduct", lambda _, plan, __: planned.append(plan) or 0)
    for example in command.EXAMPLES:
        if not example.startswith("report"):
            assert command.main(example.split()) == 0
    assert [plan.kind for plan in planned] == ["table"] * 4 + ["diff"] * 2 + ["search", "table"]
