"""What an analysis concludes from an engine's answers: probabilities, verdicts, notation, and what it keeps on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from played_through import walk

from hnefi.engine import games
from hnefi.engine.catalogue import GAMES
from hnefi.engine.records.record import GameRecord, Ply
from hnefi.engine.search.types import Limits, Score
from hnefi.engine.sides import Outcome, Reason, Side
from hnefi.protocol.answers import InfoLine
from hnefi.protocol.hosts.assessment import remarks, text_chart, verdicts
from hnefi.protocol.hosts.assessment import values as assessment_values
from hnefi.protocol.hosts.assessment.values import Line, PositionAnalysis, TurningPoint, Verdict
from hnefi.protocol.hosts.assessment.verdicts import Played, Thresholds
from hnefi.tools.analyze import annotate, notation, single, store, values
from hnefi.tools.analyze.run import Watch
from hnefi.tools.analyze.values import PlayedThrough

ENDED = Outcome(Side.DEFENDERS, Reason.KING_ESCAPED)


def cp(probability: float, number: int = 0, moves: tuple[int, ...] = ()) -> Line:
    return Line(moves, probability, number, None, 4)


def mate(number: int, moves: tuple[int, ...] = ()) -> Line:
    return Line(moves, float(number > 0), None, number, 4)


@pytest.mark.parametrize(
    ("info", "chance"),
    [
        (InfoLine(score=Score(cp=100)), 0.640),
        (InfoLine(score=Score(cp=-100)), 0.360),
        (InfoLine(score=Score(cp=0)), 0.5),
        (InfoLine(score=Score(cp=50), wdl=(300, 400, 300)), 0.5),
        (InfoLine(score=Score(cp=50), wdl=(0, 0, 0)), 0.571),
        (InfoLine(score=Score(mate=3), wdl=(10, 0, 990)), 1.0),
        (InfoLine(score=Score(mate=-3)), 0.0),
        (InfoLine(score=Score(mate=0)), 0.0),
        (InfoLine(score=Score(cp=10**9)), 0.999),
        (InfoLine(score=Score(cp=-900), wdl=(0, 0, 1000)), 0.001),
        (InfoLine(), None),
    ],
)
def test_a_score_as_a_probability(info: InfoLine, chance: float | None) -> None:
    assert assessment_values.expected(info) == (None if chance is None else pytest.approx(chance, abs=0.0005))


@pytest.mark.parametrize(
    ("chance", "text"),
    [(None, "?"), (0.0, "0 %"), (0.001, "1 %"), (0.5, "50 %"), (0.999, "99 %"), (1.0, "100 %")],
)
def test_only_what_is_certain_is_nothing_or_all(chance: float | None, text: str) -> None:
    assert assessment_values.percent(chance) == text


def test_scores_name_the_side_that_they_favour() -> None:
    sides = GAMES["tafl"].sides
    said = [
        assessment_values.score_text(line, 1, sides)
        for line in (cp(0.6, 35), cp(0.4, -35), cp(0.5), mate(2), mate(-2))
    ]
    assert said == ["defenders +0.35", "attackers +0.35", "even", "defenders win in 2", "attackers win in 2"]
    assert assessment_values.score_text(Line(), 0, sides) == "unknown"


def test_a_look_in_the_view_of_either_side() -> None:
    look = PositionAnalysis(1, (cp(0.7, 147),))
    assert (look.chance(1), look.chance(0)) == (0.7, pytest.approx(0.3))
    assert (look.proven(0), look.mate()) == (0, None)
    lost = PositionAnalysis(1, (mate(-4),))
    assert (lost.chance(0), lost.proven(0), lost.proven(1), lost.mate()) == (1.0, 1, -1, (0, 4))
    over = PositionAnalysis(0, outcome=ENDED)
    assert (over.chance(0), over.chance(1), over.proven(1), over.mate()) == (0.0, 1.0, 1, (1, 0))
    drawn = PositionAnalysis(0, outcome=Outcome(None, Reason.REPETITION))
    assert (drawn.chance(0), drawn.proven(0), drawn.mate()) == (0.5, 0, None)
    assert PositionAnalysis(0, problem="gone").chance(0) is None


@pytest.mark.parametrize(
    ("loss", "verdict"),
    [
        (0.0, "best"),
        (0.01, "good"),
        (0.049, "good"),
        (0.05, "inaccuracy"),
        (0.1, "mistake"),
        (0.2, "blunder"),
    ],
)
def test_verdicts_begin_at_their_thresholds(loss: float, verdict: str) -> None:
    assert Thresholds().verdict(loss) == verdict


@pytest.mark.parametrize(
    "text", ["", "5,10", "5,10,20,30", "10,5,20", "0,5,10", "5,5,10", "a,b,c", "5,10,nan", "5,10,101"]
)
def test_thresholds_that_do_not_rise_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected three rising numbers"):
        verdicts.read_thresholds(text)
    assert verdicts.read_thresholds("2,4.5,100") == Thresholds(2, 4.5, 100)


@pytest.mark.parametrize(
    ("before", "after", "verdict", "turn", "loss"),
    [
        (cp(0.6), cp(0.4), Verdict.BEST, None, 0.0),
        (cp(0.6), cp(0.35), Verdict.BEST, None, 0.0),
        (cp(0.6), cp(0.42), Verdict.GOOD, None, 0.02),
        (cp(0.6), cp(0.7), Verdict.BLUNDER, None, 0.3),
        (cp(0.6), mate(3), Verdict.BLUNDER, TurningPoint.ALLOWED, 0.6),
        (cp(0.02), mate(3), Verdict.GOOD, None, 0.02),
        (mate(2), mate(-5), Verdict.BEST, None, 0.0),
        (mate(2), cp(0.04), Verdict.GOOD, TurningPoint.MISSED, 0.04),
        (mate(2), cp(0.3), Verdict.BLUNDER, TurningPoint.MISSED, 0.3),
        (mate(2), cp(0.5), Verdict.BLUNDER, TurningPoint.THROWN, 0.5),
        (mate(2), mate(1), Verdict.BLUNDER, TurningPoint.THROWN, 1.0),
        (mate(-2), mate(1), Verdict.BEST, None, 0.0),
    ],
)
def test_what_a_move_lost(
    before: Line, after: Line, verdict: Verdict, turn: TurningPoint | None, loss: float
) -> None:
    looked = (
        PositionAnalysis(0, (Line((99,), before.probability, before.cp, before.mate),)),
        PositionAnalysis(1, (after,)),
    )
    judged = verdicts.judge(7, Played(0, 42, 5), *looked, Thresholds())
    assert (judged.verdict, judged.turn) == (verdict, turn)
    assert judged.loss == pytest.approx(loss)
    assert judged.best is looked[0].lines[0]


def test_the_engines_own_move_loses_nothing_and_an_only_move_is_no_choice() -> None:
    looked = PositionAnalysis(0, (cp(0.9, 380, (42, 43)),)), PositionAnalysis(1, (cp(0.9, 380),))
    own = verdicts.judge(1, Played(0, 42, 5), *looked, Thresholds())
    assert (own.verdict, own.loss, own.best, own.noted) == (Verdict.BEST, 0.0, None, False)
    forced = verdicts.judge(1, Played(0, 41, 1), *looked, Thresholds())
    assert (forced.verdict, forced.loss, forced.noted) == (Verdict.FORCED, 0.0, False)


def test_a_side_that_moves_again_keeps_its_view() -> None:
    """In berserk games the mover of one ply is the mover of the next."""
    judged = verdicts.judge(
        1,
        Played(0, 42, 5),
        PositionAnalysis(0, (cp(0.6, 0, (9,)),)),
        PositionAnalysis(0, (cp(0.6),)),
        Thresholds(),
    )
    assert judged.loss == 0.0


@pytest.mark.parametrize("missing", [None, PositionAnalysis(0, problem="gone")])
def test_what_is_not_known_is_not_judged(missing: PositionAnalysis | None) -> None:
    known = PositionAnalysis(1, (cp(0.9),))
    assert verdicts.judge(1, Played(0, 42, 5), missing, known, Thresholds()).verdict is Verdict.UNKNOWN
    assert verdicts.judge(1, Played(1, 42, 5), known, missing, Thresholds()).verdict is Verdict.UNKNOWN


def test_accuracy_is_a_mean_over_the_moves_that_were_a_choice() -> None:
    assert verdicts.accuracy(0.0) == pytest.approx(100.0, abs=0.001)
    assert verdicts.accuracy(0.1) == pytest.approx(63.6, abs=0.05)
    assert verdicts.accuracy(1.0) == 0.0
    game = walk()
    best = [position.legal_moves()[0] for position in game.positions]
    looks = [
        PositionAnalysis(ply % 2, (cp((0.6, 0.6, 0.4, 0.6, 0.4)[ply], 0, (best[ply],)),)) for ply in range(5)
    ]
    found = values.analysed(game, looks, Thresholds())
    # Attackers: 60 % -> 40 % and 40 % -> 40 %; defenders: 60 % -> 60 % and 60 % -> 60 %.
    assert found.losses == (pytest.approx(0.1), pytest.approx(0.0))
    assert found.accuracy[0] == pytest.approx((verdicts.accuracy(0.2) + 100) / 2, abs=0.01)
    assert [judged.ply for judged in found.turning_points] == [1]
    assert found.counts(0)["blunder"] == 1
    assert found.complete
    nothing = values.analysed(game, [None] * 5, Thresholds())
    assert (nothing.accuracy, nothing.losses, nothing.complete) == ((None, None), (None, None), False)


def test_better_lines_end_where_the_played_move_stands() -> None:
    lines = (cp(0.9, 0, (1,)), cp(0.8, 0, (2,)), cp(0.5, 0, (3,)), cp(0.4, 0, (4,)))
    looked = PositionAnalysis(0, lines), PositionAnalysis(1, (cp(0.5),))
    judged = verdicts.judge(1, Played(0, 3, 9), *looked, Thresholds())
    assert verdicts.better_lines(judged, looked[0], 9) == list(lines[:2])
    assert verdicts.better_lines(judged, looked[0], 1) == list(lines[:1])
    other = verdicts.judge(1, Played(0, 77, 9), *looked, Thresholds())
    assert verdicts.better_lines(other, looked[0], 9) == list(lines[:2])


def test_lines_are_numbered_and_name_captures() -> None:
    start = games.initial(games.find("brandubh"))
    moves = notation.legal_line(start, ["a4a2", "d3-a3", "d2c2", "zz", "d4d3"], 9)
    assert notation.numbered(start, moves) == "1. a4a2 d3a3xa2 2. d2c2"
    second = start.play(moves[0])
    assert notation.numbered(second, moves[1:]) == "1... d3a3xa2 2. d2c2"
    assert (notation.place(start), notation.place(second)) == ("1.", "1...")
    assert notation.legal_line(start, ["a4a2", "d3a3"], 1) == moves[:1]


def test_the_score_of_a_ply_counts_from_the_ply_on() -> None:
    """A record's mate counts the winner's own moves with this one; scores are the mover's."""
    score = remarks.score_of
    assert score(0, PositionAnalysis(1, (cp(0.3, -120),))) == (120, None, 4)
    assert score(0, PositionAnalysis(0, (cp(0.3, -120),))) == (-120, None, 4)
    assert score(0, PositionAnalysis(1, (mate(-2),))) == (None, 3, 4)
    assert score(0, PositionAnalysis(1, (mate(2),))) == (None, -2, 4)
    assert score(1, PositionAnalysis(0, outcome=ENDED)) == (None, 1, None)
    assert score(0, PositionAnalysis(1, outcome=ENDED)) == (None, 0, None)
    assert score(0, PositionAnalysis(1, outcome=Outcome(None, Reason.REPETITION))) == (0, None, None)
    assert score(0, None) == score(0, PositionAnalysis(1, problem="gone")) == (None, None, None)


def test_an_annotation_can_be_taken_out_again() -> None:
    game = walk()
    plies = game.record.plies
    own = Ply(plies[1].move, (), clock=5000, comment="mine", variations=((Ply(plies[3].move, ()),),))
    record = GameRecord("brandubh", plies=(plies[0], own, *plies[2:]), tags=(("Event", "x"),))
    game = PlayedThrough(record, game.variant, game.positions, game.name, 1, 1)
    best = [position.legal_moves()[0] for position in game.positions]
    looks = [PositionAnalysis(ply % 2, (cp(0.8, 240, (best[ply],)),)) for ply in range(5)]
    found = annotate.annotated(values.analysed(game, looks, Thresholds()), "Fake", "nodes 1", 1)
    assert found.tag("Analysis") == "Fake, nodes 1"
    assert found.plies[1].comment == "mine » blunder: 80 % -> 20 %; better c4c1 (defenders +2.40)"
    assert len(found.plies[1].variations) == 2
    assert (found.plies[1].clock, found.plies[1].cp, found.plies[1].depth) == (5000, -240, 4)
    assert annotate.stripped(found) == record
    assert annotate.stripped(record) is record


def test_a_sketch_of_the_chances() -> None:
    game = walk()
    chances = (0.5, 1.0, 0.0, None, 0.25)
    looks = [None if chance is None else PositionAnalysis(0, (cp(chance),)) for chance in chances]
    lines = text_chart.sketch(values.analysed(game, looks, Thresholds()))
    assert [line[11:16].rstrip() for line in lines[:8]] == [
        " █", " █", " █", " █", "██", "██", "██  █", "██ ?█",
    ]  # fmt: skip
    plain = text_chart.sketch(values.analysed(game, looks, Thresholds()), plain=True)
    assert "".join(plain).isascii()
    assert plain[7].endswith("|@@ ?@")


def test_long_games_have_several_plies_in_a_column() -> None:
    game = walk(("a4a3", "d3c3", "a3a4", "c3d3") * 40)
    looks = [PositionAnalysis(ply % 2, (cp(0.5),)) for ply in range(161)]
    lines = text_chart.sketch(values.analysed(game, looks, Thresholds()))
    assert max(map(len, lines)) <= 80
    assert lines[-1].split()[:3] == ["0", "30", "60"]


@pytest.mark.parametrize(
    ("look", "limits", "answer"),
    [
        (PositionAnalysis(0, (mate(2),)), Limits(mate=3), "proven"),
        (PositionAnalysis(0, (mate(5),)), Limits(mate=3), "refuted"),
        (PositionAnalysis(0, (mate(-1),)), Limits(mate=3, nodes=10), "refuted"),
        (PositionAnalysis(0, (cp(0.5),), 100, 5), Limits(mate=3), "refuted"),
        (PositionAnalysis(0, (cp(0.5),), 100, 5), Limits(mate=3, nodes=100), "open"),
        (PositionAnalysis(0, (mate(5),), 100, 5), Limits(mate=3, nodes=100), "open"),
        (PositionAnalysis(0, (cp(0.5),), 99, 5), Limits(mate=3, nodes=100), "refuted"),
        (PositionAnalysis(0, (cp(0.5),), 99, 5), Limits(mate=3, depth=4), "open"),
        (PositionAnalysis(0, (cp(0.5),), 99, 5), Limits(mate=2, depth=4), "refuted"),
        (PositionAnalysis(0, (cp(0.5),), 99, 99), Limits(mate=3, movetime=100), "open"),
        (PositionAnalysis(0, problem="gone"), Limits(mate=3), "open"),
    ],
)
def test_what_a_search_for_a_win_proves(look: PositionAnalysis, limits: Limits, answer: str) -> None:
    assert single.proof(look, limits) == answer
    assert single.proof_sentence(look, limits, GAMES["tafl"].sides).startswith(f"{answer}: ")


# On disk


def looks() -> list[PositionAnalysis]:
    moves = games.initial(games.find("brandubh")).legal_moves()
    return [
        PositionAnalysis(0, (cp(0.25, -190, moves[:2]), mate(-3, moves[2:3])), 500, 7),
        PositionAnalysis(1, problem="gone\x1b"),
    ]


def test_looks_are_found_again(tmp_path: Path) -> None:
    kept = store.Progress(tmp_path / "x.progress.jsonl", {"limits": "nodes 5"})
    kept.open(size=19)
    for ply, look in enumerate(looks()):
        kept.add(3, ply, look)
    kept.close(done=False)
    again = store.Progress(kept.path, {"limits": "nodes 5"})
    again.open(size=19)
    assert again.known == {(3, 0): looks()[0], (3, 1): looks()[1]}
    again.close(done=True)
    assert not kept.path.exists()


def test_a_torn_line_is_cut_off(tmp_path: Path) -> None:
    kept = store.Progress(tmp_path / "x.progress.jsonl", {})
    kept.open(size=19)
    kept.add(1, 0, looks()[0])
    kept.close(done=False)
    whole = kept.path.read_bytes()
    kept.path.write_bytes(whole + whole.splitlines()[1][:30])
    again = store.Progress(kept.path, {})
    again.open(size=19)
    again.close(done=False)
    assert list(again.known) == [(1, 0)]
    assert kept.path.read_bytes() == whole


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "expected an unfinished analysis"),
        ("[1]\n", "expected an unfinished analysis"),
        ('{"analysis": 1, "limits": "nodes 6"}\n', "limits 'nodes 6', here it is 'nodes 5'"),
        ('{"analysis": 1, "limits": "nodes 5"}\n{"game": 1}\n', ':2: \'{"game": 1}'),
        ('{"analysis": 1, "limits": "nodes 5"}\n7\n', ":2: '7"),
    ],
)
def test_another_analysis_is_not_gone_on_with(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "x.progress.jsonl"
    path.write_text(text)
    kept = store.Progress(path, {"limits": "nodes 5"})
    with pytest.raises(store.StoreError) as raised:
        kept.open(size=19)
    assert complaint in str(raised.value)
    assert str(raised.value).endswith("--fresh starts over")
    kept.open(size=19, fresh=True)
    kept.close(done=False)
    assert json.loads(path.read_text()) == {"analysis": 1, "limits": "nodes 5"}


class Screen:
    """A stream that is no terminal."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


def test_progress_is_told_now_and_then_with_the_time_left() -> None:
    now = [0.0]
    screen = Screen()
    watch = Watch(screen, 10, clock=lambda: now[0])
    for ply in range(3):
        watch.step(f"game 1, ply {ply}", asked=False)
    for ply in range(3, 5):
        now[0] += 6.0
        watch.step(f"game 1, ply {ply}", asked=True)
    watch.end()
    assert screen.text == "game 1, ply 4 · 5 of 10 positions · 6.0 s each · ETA 0:30\n"


@pytest.mark.parametrize(
    ("lines", "choices", "sign"),
    [
        ((cp(0.6, moves=(7,)), cp(0.4, moves=(8,))), 5, "!"),
        ((cp(0.6, moves=(7,)), cp(0.51, moves=(8,))), 5, ""),
        ((cp(0.6, moves=(7,)), cp(0.4, moves=(8,))), 1, ""),
        ((cp(0.6, moves=(7,)),), 5, ""),
        ((cp(0.6, moves=(8,)), cp(0.4, moves=(7,))), 5, "??"),
    ],
)
def test_a_sign_for_an_only_good_move(lines: tuple[Line, ...], choices: int, sign: str) -> None:
    after = PositionAnalysis(1, (cp(0.4 if lines[0].moves == (7,) else 0.7),))
    judged = verdicts.judge(1, Played(0, 7, choices), PositionAnalysis(0, lines), after, Thresholds())
    assert judged.sign == sign
