"""Players fitted to people's moves: what is observed, the fit against a slow twin, the folder, the player's file."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hnefi import players
from hnefi.engine import games
from hnefi.engine.games import find
from hnefi.engine.moves_text import format_move
from hnefi.engine.records.replay import as_played
from hnefi.engine.score import MATE
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Limits
from hnefi.tools.balance import strength
from hnefi.tools.ladder import command, imitate, people, people_fit
from hnefi.tools.ladder.people_fit import Candidate, Fit, Observed, Result

BRANDUBH = find("brandubh")
RULES = as_played(BRANDUBH)
FIVE = Candidate(100, 5)
QUICK = ["--variant", "brandubh", "--horizons", "20,60", "--choices", "2,4", "--plain", "--jobs", "1"]


@pytest.fixture(autouse=True)
def few_games(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imitate, "LENGTHS", 2)


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight games of random moves, each to its end or 80 plies."""
    draw = random.Random(24)
    lines = []
    for _ in range(8):
        here: Any = games.initial(RULES)
        words = []
        while here.outcome is None and len(words) < 80:
            chosen = draw.choice(here.legal_moves())
            here = here.play(chosen)
            words.append(format_move(chosen, here.last_captures))
        winner = "Draw" if here.outcome is None else ("Black", "White")[int(here.outcome.winner)]
        lines.append(f"{' '.join(words)},0,0,{winner}\n")
    path = tmp_path_factory.mktemp("people") / "games.csv"
    path.write_text("".join(lines))
    return path


def simulated(temperature: float, at_random: float, count: int = 3000, seed: int = 5) -> list[Observed]:
    """Moves of a player with these numbers, in made-up positions with five lines of thirty moves."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        values = sorted((draw.randint(-300, 300) for _ in range(5)), reverse=True)
        if draw.random() < at_random:
            played = draw.randrange(30)
        else:
            weights = [math.exp((value - values[0]) / temperature) for value in values]
            played = draw.choices(range(5), weights)[0]
        lines = [(value, int(k == played)) for k, value in enumerate(values)]
        found.append(Observed(number // 10, number % 10 + 1, 0, 30, 1, {FIVE.key: lines}))
    return found


def slow_likelihood(one: Observed, temperature: float, at_random: float) -> float:
    """The probability of people's move, written out."""
    lines = one.lines[FIVE.key]
    best = max((value for value, _ in lines), default=0)
    whole = sum(math.exp((value - best) / temperature) for value, _ in lines)
    own = sum(math.exp((value - best) / temperature) for value, same in lines if same)
    return (1 - at_random) * (own / whole if lines else 0.0) + at_random * one.same / one.legal


@pytest.mark.parametrize(("temperature", "at_random"), [(40.0, 0.1), (150.0, 0.3), (400.0, 0.0)])
def test_the_fit_finds_the_numbers_that_made_the_moves(temperature: float, at_random: float) -> None:
    found = people_fit.fit(people_fit.moves_of(simulated(temperature, at_random), FIVE))
    assert found.temperature == pytest.approx(temperature, rel=0.15)
    assert found.at_random / 1000 == pytest.approx(at_random, abs=0.04)


def test_likelihoods_are_those_of_a_slow_twin_and_the_fit_is_their_top() -> None:
    observed = [
        *simulated(100.0, 0.2, 200),
        Observed(900, 1, 1, 12, 3, {FIVE.key: [(50, 0), (50, 1), (-MATE + 4, 1)]}),
        Observed(900, 2, 0, 12, 2, {FIVE.key: []}),
        Observed(900, 3, 0, 9, 1, {FIVE.key: [(MATE - 3, 0), (10, 1)]}),
    ]
    moves = people_fit.moves_of(observed, FIVE)

    def slow(temperature: float, at_random: float) -> float:
        return sum(math.log(slow_likelihood(one, temperature, at_random)) for one in observed) / len(observed)

    for temperature, at_random in ((3.0, 0.5), (90.0, 0.2), (1500.0, 0.01)):
        fast = people_fit.logarithms(moves, temperature, at_random)
        assert fast.mean() == pytest.approx(slow(temperature, at_random))
    found = people_fit.fit(moves)
    assert found.likelihood == pytest.approx(slow(found.temperature, found.at_random / 1000))
    around = [
        slow(temperature, at_random)
        for temperature in np.geomspace(2, 2000, 30)
        for at_random in np.linspace(0.01, 0.9, 30)
    ]
    assert found.likelihood >= max(around) - 1e-4


def test_a_candidate_is_behind_only_beyond_its_interval_and_length_decides_among_the_others() -> None:
    fit = Fit(100, 0, -1.0)
    found = [
        Result(Candidate(10, 6), fit, -2.0, (0.1, 0.3), (50,)),
        Result(Candidate(30, 6), fit, -1.9, (-0.1, 0.2), (20,)),
        Result(Candidate(90, 6), fit, -1.8, (0.0, 0.0), (40,)),
    ]
    assert people_fit.nearest(found, 45).candidate.nodes == 90
    assert people_fit.nearest(found, 22).candidate.nodes == 30
    assert people_fit.nearest(found, 60).candidate.nodes == 90


def test_intervals_draw_whole_games() -> None:
    lines = [number // 20 for number in range(400)]
    by_game = np.array([float(line % 2) for line in lines])
    low, high = people_fit.resampled(by_game, lines, seed=1)
    # Twenty games of which half are 1: an error of sqrt(0.25 / 20), not of sqrt(0.25 / 400).
    assert (high - low) / 2 == pytest.approx(1.96 * math.sqrt(0.25 / 20), rel=0.15)


def test_the_player_draws_its_moves_from_what_is_observed(collection: Path) -> None:
    """For every seed among the same lines, the best one as often as the weights say."""
    place = people.before(people.recorded(collection, BRANDUBH)[0], 7, RULES)
    player = imitate.settings(4, 60)
    looking, playing = Searcher(player), Searcher(player)
    expected, spread, best = 0.0, 0.0, 0
    for seed in range(250):
        lines = imitate.best_lines(looking, place, Candidate(400, 4), seed)
        assert len({move for move, _ in lines}) == len(lines) > 1
        values = [value for _, value in lines]
        share = values.count(max(values)) / sum(math.exp((value - max(values)) / 60) for value in values)
        playing.configure(replace(player, seed=seed))
        playing.clear()
        playing.begin()
        drawn = playing.search(place, Limits(nodes=400), lambda _: None).move
        assert drawn in dict(lines)
        expected, spread = expected + share, spread + share * (1 - share)
        best += dict(lines)[drawn] == max(values)
    assert abs(best - expected) < 4 * math.sqrt(spread) + 1e-9
    assert 20 < best < 230


def test_a_move_that_is_drawn_among_equal_ones_does_not_hide_the_best_line() -> None:
    """In the start position moves are images of each other, with equal values; the drawn one is reported last."""
    searcher, start = Searcher(imitate.settings(4, 60)), games.initial(RULES)
    for seed in range(40):
        moves = [move for move, _ in imitate.best_lines(searcher, start, Candidate(400, 4), seed)]
        assert len(set(moves)) == len(moves) > 1


def test_random_moves_are_any_and_an_analysis_has_none(collection: Path) -> None:
    place = people.before(people.recorded(collection, BRANDUBH)[0], 7, RULES)
    searcher = Searcher(imitate.settings(4, 60))

    def moves(limits: Limits, at_random: int) -> set[int | None]:
        found = set()
        for seed in range(60):
            searcher.configure(replace(imitate.settings(4, 60, at_random), seed=seed))
            searcher.clear()
            searcher.begin()
            found.add(searcher.search(place, limits, lambda _: None).move)
        return found

    assert len(moves(Limits(nodes=20), 1000)) > 10
    assert len(moves(Limits(nodes=400), 0)) <= 8
    assert len(moves(Limits(nodes=400, infinite=True), 1000)) == 1


def test_a_full_run_continues_and_its_player_plays(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    asked = ["imitate", str(collection), *QUICK, "--out", str(out)]
    assert command.main([*asked, "--positions", "20"]) == 0
    first = (out / "answers.jsonl").read_text()
    report = (out / "report.md").read_text()
    assert "| 20 | 2 |" in report
    assert "| 60 | 4 |" in report
    assert command.main([*asked, "--positions", "20"]) == 0
    assert (out / "answers.jsonl").read_text() == first
    assert (out / "report.md").read_text() == report
    assert command.main([*asked, "--positions", "30"]) == 0
    assert (out / "answers.jsonl").read_text().startswith(first)
    assert len((out / "answers.jsonl").read_text().splitlines()) == 30
    player = players.read(out / "human-brandubh.toml")
    assert player.variants == ("brandubh",)
    judged = strength.parse(str(out / "human-brandubh.toml"))
    assert judged.varied
    assert judged.settings.choices in (2, 4)
    assert str(judged.settings.temperature) == player.options["MoveTemperature"]
    capsys.readouterr()
    assert command.main(["imitate", str(collection), *QUICK, "--choices", "5", "--out", str(out)]) == 2
    assert "other choices there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--horizons", "10,x"], "expected different whole numbers up to 1,000,000,000, such as 100,300"),
        (["--horizons", "10,10"], "expected different whole numbers"),
        (["--choices", "0"], "expected different whole numbers up to 256, such as 6,12"),
        (["--variant", "hexapawn:3x3"], "expected a tafl variant"),
        (["--positions", "1"], "expected more, from several games"),
    ],
)
def test_wrong_input_is_a_sentence(
    flags: list[str], said: str, collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["imitate", str(collection), *QUICK, "--out", str(tmp_path / "out"), *flags]
    assert command.main(asked) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("answers.jsonl", "{"),
        (
            "answers.jsonl",
            json.dumps({"line": 1, "ply": 1, "side": 0, "legal": 3, "same": 1, "lines": {"20/2": []}}),
        ),
        (
            "answers.jsonl",
            json.dumps(
                {
                    "line": 1,
                    "ply": 1,
                    "side": 0,
                    "legal": 3,
                    "same": 1,
                    "lines": {key: [["x", 1]] for key in ("20/2", "20/4", "60/2", "60/4")},
                }
            ),
        ),
        ("games.jsonl", json.dumps({"player": [1]})),
    ],
)
def test_lines_that_are_not_ours_are_named(
    name: str, line: str, collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    asked = ["imitate", str(collection), *QUICK, "--positions", "12", "--out", str(out)]
    assert command.main(asked) == 0
    with (out / name).open("a") as stream:
        stream.write(line + "\n")
    assert command.main(asked) == 2
    assert f"{out / name}: line " in capsys.readouterr().err


def test_the_shipped_players_imitate_people() -> None:
    for name in ("human-brandubh", "human-copenhagen"):
        player = players.load(name)
        assert player.variants == (name.removeprefix("human-"),)
        assert int(player.options["MoveTemperature"]) > 0
        assert int(player.options["RandomMoves"]) > 0
        assert player.limits.nodes is not None
        assert strength.parse(name).varied
