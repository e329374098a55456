"""People and players on the same positions: what is asked, what is kept, and what follows from it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from statistics import mean
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from hnefi.engine import games
from hnefi.engine.games import find
from hnefi.engine.moves_text import format_move, parse_move_word
from hnefi.engine.records.replay import as_played
from hnefi.tools.ladder import command, people, people_report
from hnefi.tools.ladder.ladder import LadderError, LimitedPlayer
from hnefi.tools.ladder.people import MOST, Answer, Game, GamePly, Plan, Task
from hnefi.tools.ladder.people_report import BLUNDER, PEOPLE, Sample

BRANDUBH = find("brandubh")
RULES = as_played(BRANDUBH)
QUICK = [
    "--players",
    "random-blind,simple",
    "--judge",
    "default:20",
    "--variant",
    "brandubh",
    "--plain",
    "--jobs",
    "1",
]


def move(text: str) -> int:
    return parse_move_word(text, BRANDUBH.size)[0]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve games of moves drawn at random, each up to its end or 30 plies."""
    draw = random.Random(24)
    lines = []
    for _ in range(12):
        here: Any = games.initial(RULES)
        words = []
        while here.outcome is None and len(words) < 30:
            chosen = draw.choice(here.legal_moves())
            here = here.play(chosen)
            words.append(format_move(chosen, here.last_captures))
        winner = "Ongoing" if here.outcome is None else ("Black", "White")[int(here.outcome.winner)]
        lines.append(f"{' '.join(words)},0,0,{winner}\n")
    path = tmp_path_factory.mktemp("people") / "games.csv"
    path.write_text("".join(lines))
    return path


class Scripted:
    """Stands in for a player: moves as it is told, and values positions by who is to move."""

    def __init__(self, name: str, says: str, value: int = 0) -> None:
        self.name = name
        self._says = says
        self._value = value

    def move(self, position: Any, seed: int) -> tuple[int, Any]:  # noqa: ARG002
        from types import SimpleNamespace

        legal = position.legal_moves()
        wanted = move(self._says)
        chosen = wanted if wanted in legal else legal[0]
        return chosen, SimpleNamespace(score=SimpleNamespace(cp=self._value, mate=None))


def scripted(monkeypatch: pytest.MonkeyPatch, *players: Scripted) -> tuple[LimitedPlayer, ...]:
    known = {player.name: player for player in players}
    monkeypatch.setattr(people, "_asked", lambda one: known[one.name])
    return tuple(LimitedPlayer(name, "simple", depth=1) for name in known)


# Asking


def test_mirrored_moves_are_the_same_and_values_are_those_after_the_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mirror, other, judge = scripted(
        monkeypatch, Scripted("mirror", "d6b6"), Scripted("other", "d6e6"), Scripted("judge", "d6c6", 70)
    )
    game = Game(1, "a", (move("d2c2"), move("e4e1")))
    (found,) = people.answers(Task((mirror, other), judge, RULES, 1, ((game, 1),)))
    assert isinstance(found, Answer)
    # d2-c2 and d6-e6 are images of each other under a half turn, d6-b6 goes one square too far.
    assert found.same == ("other",)
    assert (found.side, found.plies, found.played, found.best) == (0, 2, "d2c2", "d6c6")
    # The judge says 70 for whoever is to move: the defenders, after any move of the attackers.
    assert found.after == dict.fromkeys(("d2c2", "d6c6", "d6b6", "d6e6"), -70)
    assert found.value == 70
    assert found.choices == len(games.initial(RULES).legal_moves())


def test_a_decided_game_is_worth_most_for_its_winner(monkeypatch: pytest.MonkeyPatch) -> None:
    """The king reaches a corner: that is worth a game, whatever a judge says."""
    (judge,) = scripted(monkeypatch, Scripted("judge", "a1a2", -30))
    before = games.from_fen(RULES, "3K3/7/7/7/t6/7/7 d 0 30")
    here = before.play(before.parse_move("d7a7"))
    assert here.outcome is not None
    winner = int(here.outcome.winner)
    assert people._after(here, winner, people._asked(judge), 1) == MOST
    assert people._after(here, 1 - winner, people._asked(judge), 1) == -MOST


def test_values_are_cut_where_a_game_is_decided() -> None:
    from types import SimpleNamespace

    def said(cp: int | None, mate: int | None) -> Any:
        return SimpleNamespace(score=SimpleNamespace(cp=cp, mate=mate))

    values = [
        people._value(said(*each))
        for each in ((50, None), (2400, None), (-2400, None), (None, 3), (None, -2))
    ]
    assert values == [50, MOST, -MOST, MOST, -MOST]


def test_more_positions_begin_with_the_fewer() -> None:
    found = [Game(line, None, (1,) * line) for line in range(1, 9)]
    every = people.places(found, 3)
    assert sorted(every) == [GamePly(line, ply) for line in range(1, 9) for ply in range(1, line + 1)]
    assert every != sorted(every)
    assert people.places(found, 4) != every


def test_the_answers_do_not_depend_on_where_the_work_was_broken_off(collection: Path, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert command.main(["people", str(collection), *QUICK, "--positions", "14", "--out", str(whole)]) == 0
    assert command.main(["people", str(collection), *QUICK, "--positions", "6", "--out", str(parts)]) == 0
    with (parts / people.ANSWERS).open("ab") as file:
        file.write(b'{"line":3,"pl')
    assert command.main(["people", str(collection), *QUICK, "--positions", "14", "--out", str(parts)]) == 0
    assert (parts / people.ANSWERS).read_bytes() == (whole / people.ANSWERS).read_bytes()
    assert (parts / "report.md").read_bytes() == (whole / "report.md").read_bytes()
    for name in ("agreement", "loss"):
        assert ET.parse(whole / f"{name}.svg").getroot().tag.endswith("svg")


def test_what_is_recorded_is_what_the_players_say(collection: Path, tmp_path: Path) -> None:
    """Asked again, one at a time, by searchers that have seen nothing else."""
    out = tmp_path / "people"
    assert command.main(["people", str(collection), *QUICK, "--positions", "5", "--out", str(out)]) == 0
    by_line = {game.line: game for game in people.recorded(collection, BRANDUBH)}
    judge = people.Asked(LimitedPlayer("judge", "default", nodes=20))
    for answer in people.read_answers(out).values():
        assert answer is not None
        position = people.before(by_line[answer.line], answer.ply, RULES)
        for text, value in answer.after.items():
            after = position.play(position.parse_move(text))
            if after.outcome is None:
                seed = people.stream(1, answer.line, answer.ply) % people.SEEDS
                score = judge.move(after, seed)[1].score  # type: ignore[union-attr]
                said = MOST * (1 if (score.mate or 0) > 0 else -1) if score.cp is None else score.cp
                assert value == -max(-MOST, min(MOST, said))


# Refusals


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (["--players", "simple,simple"], "expected different players"),
        (["--players", "nobody"], "nobody"),
        (["--players", "hexapawn-perfect"], "expected a player of brandubh"),
        (["--variant", "hex:5"], "expected a tafl variant"),
        (["--variant", "chess"], "chess"),
    ],
)
def test_refusals(
    changed: list[str], said: str, collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = dict(zip(QUICK[0:6:2], QUICK[1:6:2], strict=True)) | dict([changed])
    words = [word for pair in told.items() for word in pair]
    assert command.main(["people", str(collection), *words, "--out", str(tmp_path / "out")]) == 2
    assert said in capsys.readouterr().err


def test_other_work_in_the_folder_is_refused(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--positions", "1", "--out", str(tmp_path / "out")]
    assert command.main(["people", str(collection), *QUICK, *out]) == 0
    assert command.main(["people", str(collection), *QUICK, *out, "--seed", "2"]) == 2
    assert "other seed there" in capsys.readouterr().err
    (tmp_path / "out" / people.ANSWERS).write_text('{"line":1,"ply":2,"side":7}\n')
    assert command.main(["people", str(collection), *QUICK, *out]) == 2
    assert "line 1" in capsys.readouterr().err


def test_games_that_break_the_rules_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "games.csv"
    wrong.write_text("d6-c6 d6-c6,0,0,Ongoing\n")
    assert command.main(["people", str(wrong), *QUICK, "--out", str(tmp_path / "out")]) == 2
    assert "line 1 ply 2: d6c6" in capsys.readouterr().err
    with pytest.raises(LadderError, match="no-such"):
        people.recorded(tmp_path / "no-such.csv", BRANDUBH)


# What follows


def made_up(count: int, seed: int = 5) -> list[Answer]:
    """Answers of games of unequal length, of players `near` and `far`."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        line = draw.choice((1, 2, 2, 3, 3, 3, *range(4, 24)))
        moves = {"near": draw.choice("xyz"), "far": draw.choice("xyz")}
        after = {word: draw.randrange(-MOST, MOST + 1) for word in "xyz"}
        found.append(
            Answer(
                line, draw.randrange(1, 31), 30, ("a", "d", "draw", None)[line % 4], draw.randrange(2), 9,
                draw.randrange(-MOST, MOST + 1), "x", "y", moves,
                tuple(name for name, word in moves.items() if word == "x"), after,
            )
        )  # fmt: skip
    return found


def test_means_are_those_of_a_slow_twin() -> None:
    answers = made_up(90)
    sample = Sample(answers, ("near", "far"))
    for name in (PEOPLE, "near"):
        chosen = [answer for answer in answers if answer.side == 1]
        losses = [
            answer.after["y"] - answer.after["x" if name == PEOPLE else answer.moves[name]]
            for answer in chosen
        ]
        found = sample.mean(sample.loss(name), sample.side == 1)
        assert found is not None
        assert found.value == pytest.approx(mean(losses))
        assert found.n == len(losses)
    thirds = [answer for answer in answers if 11 <= answer.ply <= 20]
    agreed = sample.mean(sample.agreed("far"), sample.part == 1)
    assert agreed is not None
    assert agreed.n == len(thirds)
    assert agreed.value == pytest.approx(mean(answer.moves["far"] == "x" for answer in thirds))


def test_intervals_come_from_drawing_whole_games_again() -> None:
    """A bootstrap of plain loops with draws of its own: its ends are near, and wider than those over positions."""
    answers = made_up(400)
    shift = {line: random.Random(line).randrange(-900, 901) for line in range(30)}
    values = np.array([shift[answer.line] for answer in answers], np.float64)
    found = Sample(answers, ()).mean(values)
    assert found is not None
    assert found.interval is not None
    draw = random.Random(1)
    by_game: dict[int, list[float]] = {}
    for answer, value in zip(answers, values, strict=True):
        by_game.setdefault(answer.line, []).append(value)
    lines = list(by_game)
    means = sorted(
        mean([value for line in draw.choices(lines, k=len(lines)) for value in by_game[line]])
        for _ in range(800)
    )
    low, high = means[20], means[-21]
    assert found.interval == pytest.approx((low, high), abs=0.15 * (high - low))
    alone = 1.96 * values.std() / len(values) ** 0.5
    assert high - low > 2 * (2 * alone)


def test_sides_are_compared_game_by_game() -> None:
    """What a game adds to both sides cancels, so the interval of the difference is narrower than either side's."""
    answers = made_up(400)
    shift = {line: random.Random(line).randrange(-900, 901) for line in range(30)}
    values = np.array([shift[answer.line] + 70 * (answer.side == 0) for answer in answers], np.float64)
    sample = Sample(answers, ())
    found = sample.between_sides(values)
    assert found is not None
    assert found.interval is not None
    ours, theirs = ([v for v, a in zip(values, answers, strict=True) if a.side == side] for side in (0, 1))
    assert found.value == pytest.approx(mean(ours) - mean(theirs))
    assert found.n == len(answers)
    draw = random.Random(1)
    by_game: dict[int, list[tuple[int, float]]] = {}
    for answer, value in zip(answers, values, strict=True):
        by_game.setdefault(answer.line, []).append((answer.side, value))
    lines, differences = list(by_game), []
    for _ in range(800):
        drawn = [one for line in draw.choices(lines, k=len(lines)) for one in by_game[line]]
        of_side = [mean(value for side, value in drawn if side == number) for number in (0, 1)]
        differences.append(of_side[0] - of_side[1])
    differences.sort()
    low, high = differences[20], differences[-21]
    assert found.interval == pytest.approx((low, high), abs=0.15 * (high - low))
    attacking = sample.mean(values, sample.side == 0)
    assert attacking is not None
    assert attacking.interval is not None
    assert high - low < attacking.interval[1] - attacking.interval[0]
    few = Sample(
        [answer for answer in answers if answer.side == 0 or answer.line < people_report.FEWEST - 1], ()
    )
    found = few.between_sides(few.side.astype(float))
    assert found is not None
    assert found.interval is None
    one_sided = Sample([answer for answer in answers if answer.side == 0], ())
    assert one_sided.between_sides(one_sided.side.astype(float)) is None


def test_nothing_is_minus_zero() -> None:
    mean = people_report.Mean(-0.3, (-0.4, 129.2), 5)
    assert people_report._number(mean) == "0 [0 to 129]"
    assert people_report._difference(mean) == "**+0 [+0 to +129]**"
    assert people_report._percent(people_report.Mean(-0.001, None, 5)) == "0"


def test_few_games_get_no_interval() -> None:
    answers = [answer for answer in made_up(300) if answer.line < people_report.FEWEST]
    sample = Sample(answers, ("near",))
    found = sample.mean(sample.loss("near"))
    assert found is not None
    assert found.interval is None
    assert people_report.line(people_report.finished(sample)) is None


def test_what_was_expected_against_what_happened() -> None:
    answers = [
        answer._replace(value=value) for answer, value in zip(made_up(200), [-300, 0, 300] * 80, strict=False)
    ]
    sample = people_report.finished(Sample(answers, ()))
    assert all(answer.result is not None for answer in sample.answers)
    for side in (0, 1):
        bins = people_report.calibrated(sample, side)
        chosen = [answer for answer in sample.answers if answer.side == side]
        assert sum(each.happened.n for each in bins if each is not None) == len(chosen)
        # 300 for the attackers is 1 / (1 + 10 ** -0.75) = 84.9 %, which the side to move sees from its own side.
        good = [answer for answer in chosen if answer.value == (-300 if side else 300)]
        top = bins[-1]
        assert top is not None
        assert top.expected == pytest.approx(1 / (1 + 10**-0.75))
        scores = {"a": 1.0, "d": 0.0, "draw": 0.5}
        assert top.happened.value == pytest.approx(mean(scores[str(answer.result)] for answer in good))


def test_how_much_the_judge_expects_too_much() -> None:
    answers = [answer for answer in made_up(200) if answer.result is not None]
    sample = Sample(answers, ())
    expected, happened, more = people_report.overrated(sample)
    scores = {"a": 1.0, "d": 0.0, "draw": 0.5}
    got = [scores[str(answer.result)] for answer in answers]
    hoped = [1 / (1 + 10 ** (-(-answer.value if answer.side else answer.value) / 400)) for answer in answers]
    assert expected.value == pytest.approx(mean(hoped))
    assert happened.value == pytest.approx(mean(got))
    assert more.value == pytest.approx(mean(hoped) - mean(got))
    assert more.interval is not None
    text = "\n".join(people_report.calibration_tables(sample))
    low, high = more.interval
    assert (
        f"expects {100 * expected.value:.1f} % for the attackers, who got {100 * happened.value:.1f} %:"
        f" {100 * more.value:.1f} points less [{100 * low:.1f} to {100 * high:.1f}]." in text
    ) is (more.value >= 0)
    other = Sample([answer._replace(value=0, result="a") for answer in answers], ())
    text = "\n".join(people_report.calibration_tables(other))
    assert "expects 50.0 % for the attackers, who got 100.0 %: 50.0 points more [50.0 to 50.0]." in text


def test_a_judge_that_knows_and_one_that_does_not() -> None:
    """Results drawn from the values have the slope that they were drawn with; even positions are fair."""
    draw = random.Random(3)
    answers = []
    for number, answer in enumerate(made_up(1500)):
        value = draw.randrange(-600, 601)
        won = draw.random() < 1 / (1 + 10 ** (-0.5 * value / 400))
        result = "ad"[(not won) ^ (answer.side == 1)]
        answers.append(answer._replace(line=number // 3, value=value, result=result))
    found = people_report.line(Sample(answers, ()))
    assert found is not None
    assert found.slopes[0] < 0.5 < found.slopes[1]
    assert found.evens[0] < 0.5 < found.evens[1]
    blind = [answer._replace(result=draw.choice("ad")) for answer in answers]
    found = people_report.line(Sample(blind, ()))
    assert found is not None
    assert found.slope < 0.2


def test_the_report_says_who_loses_as_people_do() -> None:
    answers = made_up(300)
    sample = Sample(answers, ("near", "far"))
    rows = [line.split(" | ") for line in people_report.difference_table(sample) if line.startswith("| near")]
    more = sample.mean(sample.loss("near") - sample.loss(PEOPLE))
    assert more is not None
    assert more.interval is not None
    bold = rows[0][1].startswith("**")
    assert bold is (more.interval[0] <= 0 <= more.interval[1])
    text = "\n".join(people_report.loss_table(sample, {"near": 1000.0}))
    blunders = mean(answer.loss() >= BLUNDER for answer in answers)
    assert next(line for line in text.split("\n") if line.startswith("| people")).endswith(
        f"| {100 * blunders:.0f} |"
    )
    assert "| near | 1000 |" in text


def test_nothing_to_choose_is_no_answer_and_no_report_fails(tmp_path: Path) -> None:
    plan = Plan("", "brandubh", RULES.hash, (), LimitedPlayer("judge", "default", nodes=20))
    people.prepare(tmp_path / "out", plan.as_json())
    (tmp_path / "out" / people.ANSWERS).write_text(json.dumps({"line": 1, "ply": 2}) + "\n")
    assert people.read_answers(tmp_path / "out") == {GamePly(1, 2): None}
    from hnefi.tools.ladder.ladder import load

    path = people_report.write(tmp_path / "out", load(), plan, [Game(1, None, (1, 2))], [], png=False)
    assert "None of the drawn positions offered a choice" in path.read_text()
