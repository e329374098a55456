"""The statistics of `hnefi balance` against slow twins; people's table; the search for an even rule set."""

from __future__ import annotations

import math
import random
import re
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from statistics import NormalDist, median
from xml.etree import ElementTree as ET

import pytest

from hnefi.engine.games.tafl.rules import SWITCH
from hnefi.tools.balance import entrants, people, report, searching, showing
from hnefi.tools.balance.entrants import Entrant
from hnefi.tools.balance.folder import Key, Openings, Plan, Results
from hnefi.tools.balance.measures import Measures, balance, balance_interval, measure, shift
from hnefi.tools.balance.outcome import summarize
from hnefi.tools.balance.playing import Game
from hnefi.tools.balance.searching import Terms
from hnefi.tools.common import correlation
from hnefi.tools.common.paper_hingston import TABLES


def game(number: int, winner: str, plies: int = 10, reason: str = "king_escaped") -> Game:
    return Game(number, winner, reason, plies, 20.0 + number, number % 3, number % 2, None)


def mixed(won: int, drawn: int, lost: int) -> Measures:
    """The measures of so many games, counted for the attackers."""
    found = measure([game(k, w) for k, w in enumerate("a" * won + "=" * drawn + "d" * lost)])
    assert found is not None
    return found


# Ranks


def slow_ranks(values: Sequence[float]) -> list[Fraction]:
    """One more than the smaller values, and half of the other equal ones."""
    return [
        Fraction(2 * sum(x < value for x in values) + sum(x == value for x in values) + 1, 2)
        for value in values
    ]


def slow_spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Pearson's correlation of the ranks from its definition, exactly but for the root."""
    a, b = slow_ranks(one), slow_ranks(other)
    n = len(a)
    over = n * sum(x * y for x, y in zip(a, b, strict=True)) - sum(a) * sum(b)
    spreads = [n * sum(x * x for x in c) - sum(c) ** 2 for c in (a, b)]
    return None if 0 in spreads else float(over) / math.sqrt(float(spreads[0] * spreads[1]))


def slow_kendall(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Pairs in order and pairs not in order, over the pairs that are no tie in the one and in the other."""
    both = list(zip(one, other, strict=True))
    agree = sum((a < c and b < d) or (a > c and b > d) for (a, b), (c, d) in combinations(both, 2))
    differ = sum((a < c and b > d) or (a > c and b < d) for (a, b), (c, d) in combinations(both, 2))
    free = [sum(x != y for x, y in combinations(values, 2)) for values in (one, other)]
    return None if 0 in free else (agree - differ) / math.sqrt(free[0] * free[1])


def test_ranks_share_ties() -> None:
    assert correlation.ranks([3.0, 1.0, 3.0, 2.0]) == [3.5, 1.0, 3.5, 2.0]
    assert correlation.ranks([]) == []


def test_correlations_are_those_of_the_slow_twins() -> None:
    draw = random.Random(1)
    for _ in range(300):
        n, values = draw.randint(2, 9), draw.choice((2, 3, 50))
        one, other = ([float(draw.randrange(values)) for _ in range(n)] for _ in range(2))
        for quick, slow in (
            (correlation.spearman, slow_spearman),
            (correlation.kendall, slow_kendall),
        ):
            found, expected = quick(one, other), slow(one, other)
            assert (found is None) == (expected is None)
            assert expected is None or found == pytest.approx(expected, abs=1e-12)


def test_correlations_of_known_lists() -> None:
    """Without ties: Spearman by the differences of ranks, Kendall by counting 9 against 1."""
    one, other = [1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 5.0, 4.0]
    assert correlation.spearman(one, other) == pytest.approx(1 - 6 * 2 / (5 * 24))
    assert correlation.kendall(one, other) == pytest.approx(8 / 10)
    assert correlation.kendall(one, one[::-1]) == pytest.approx(-1)
    assert correlation.spearman(one, [7.0] * 5) is None


def test_weights_are_rows_that_are_there_more_often() -> None:
    """Whole weights against the slow correlation of lists in which each row stands so many times."""
    draw = random.Random(2)
    for _ in range(200):
        n, values = draw.randint(2, 7), draw.choice((2, 3, 50))
        one, other = ([float(draw.randrange(values)) for _ in range(n)] for _ in range(2))
        weights = [draw.randint(1, 4) for _ in range(n)]
        rows = [row for row in range(n) for _ in range(weights[row])]
        found = correlation.weighted_spearman(one, other, weights)
        expected = slow_spearman([one[row] for row in rows], [other[row] for row in rows])
        assert (found is None) == (expected is None)
        assert expected is None or found == pytest.approx(expected, abs=1e-9)
        # How large they are together does not matter.
        assert found is None or correlation.weighted_spearman(
            one, other, [0.1 * w for w in weights]
        ) == pytest.approx(found)


def test_a_perfect_judge_misses_what_people_miss() -> None:
    """Two rows that are one standard error of their difference apart come out in order as often as a normal number is
    above minus one."""
    found = correlation.perfect([0.4, 0.5], [0.06, 0.08], [1.0, 1.0])
    assert found is not None
    assert found[0] == pytest.approx(2 * NormalDist().cdf(1.0) - 1, abs=0.05)
    assert found[1:] == (-1.0, 1.0)
    assert correlation.perfect([0.4, 0.5, 0.6], [1e-6] * 3, [1.0, 3.0, 1.0]) == pytest.approx((1.0, 1.0, 1.0))
    assert correlation.perfect([0.5] * 3, [0.1] * 3, [1.0] * 3) is None


def test_rows_count_by_what_is_known_of_them() -> None:
    scores, errors = [0.3, 0.5, 0.7], [0.01, 0.05, 0.05]
    first, *others = people.weighing(scores, errors)
    assert others[0] == pytest.approx(others[1])
    assert first / others[0] == pytest.approx((0.05**2 + 0.04) / (0.01**2 + 0.04))
    assert first + sum(others) == pytest.approx(3)
    rows = {row.name: row for row in people.table()}
    assert rows["Sea Battle 9x9"].error == pytest.approx(0.0767, abs=2e-3)
    assert rows["Copenhagen 11x11"].error < rows["Fetlar 11x11"].error < rows["Brandubh 7x7"].error


def test_bootstrap_is_that_of_all_resamples() -> None:
    one, other = [1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 1.0, 4.0, 3.0, 5.0]
    every = []
    for rows in product(range(5), repeat=5):
        value = slow_kendall([one[row] for row in rows], [other[row] for row in rows])
        if value is not None:
            every.append(value)
    every.sort()
    found = correlation.bootstrap(correlation.kendall, one, other)
    assert found == pytest.approx(
        (every[round(0.025 * len(every))], every[round(0.975 * len(every)) - 1]), abs=0.02
    )
    assert correlation.bootstrap(correlation.kendall, one[:4], other[:4]) is None
    assert correlation.bootstrap(correlation.kendall, one, [1.0] * 5) is None


# Measures


def test_measures_are_counted_the_slow_way() -> None:
    draw = random.Random(2)
    games = [game(k, draw.choice("aad="), draw.randint(1, 60), draw.choice(("king_escaped", "repetition")))
             for k in range(101)]  # fmt: skip
    found = measure(games)
    assert found is not None
    wins = {who: sum(g.winner == who for g in games) for who in "ad="}
    assert (found.attackers, found.defenders, found.draws) == (wins["a"], wins["d"], wins["="])
    assert found.score == pytest.approx((wins["a"] + wins["="] / 2) / 101)
    assert found.balance == pytest.approx(1 - abs(wins["a"] - wins["d"]) / 101)
    assert found.advantage == wins["a"] / 101
    assert found.decisiveness == pytest.approx((wins["a"] + wins["d"]) / 101)
    assert found.plies == median(g.plies for g in games)
    assert found.plies_defenders == median(g.plies for g in games if g.winner == "d")
    assert found.branching == pytest.approx(20 + 50)
    assert found.lead_changes is None
    assert sum(count for *_, count in found.reasons) == 101
    for winner, reason, count in found.reasons:
        assert count == sum((g.winner, g.reason) == (winner, reason) for g in games)
    assert measure([]) is None


def test_intervals_are_wilsons() -> None:
    """The ends of Wilson's interval are the shares from which what was found is Z standard errors away."""
    found = mixed(30, 20, 50)
    for (low, high), share in ((found.score_interval, 0.4), (found.attackers_interval, 0.3)):
        for p in (low, high):
            assert abs(share - p) / math.sqrt(p * (1 - p) / 100) == pytest.approx(1.959964, abs=1e-6)


def test_balance_has_the_interval_of_its_scores() -> None:
    for low, high in ((0.1, 0.3), (0.45, 0.7), (0.3, 0.55), (0.6, 0.9), (0.5, 0.5)):
        values = [balance(low + (high - low) * k / 1000) for k in range(1001)]
        found = balance_interval((low, high))
        assert found == pytest.approx((min(values), max(values)), abs=1e-3)


def test_a_difference_is_that_of_pairs() -> None:
    base = [game(k, w) for k, w in enumerate("aadd=")]
    other = [*(game(k, w) for k, w in enumerate("aaa==") if k), game(9, "a")]
    found = shift(base, other)
    assert found is not None
    gaps = [0.0, 1.0, 0.5, 0.0]
    middle = sum(gaps) / 4
    error = math.sqrt(sum((gap - middle) ** 2 for gap in gaps) / 3 / 4)
    assert found.pairs == 4
    assert found.difference == pytest.approx(middle)
    assert found.interval == pytest.approx((middle - 1.959964 * error, middle + 1.959964 * error))
    assert not found.certain
    assert shift(base, other[-1:]) is None


# People


def test_people_are_as_they_were_counted() -> None:
    rows = {row.name: row for row in people.table()}
    assert len(rows) == len(people.table())
    copenhagen = rows["Copenhagen 11x11"]
    assert (copenhagen.games, copenhagen.attackers, copenhagen.defenders, copenhagen.draws) == (
        1752,
        43,
        54.8,
        0.4,
    )
    assert copenhagen.score == pytest.approx(43.2 / 98.2)
    assert rows["Fetlar, earlier"].score == pytest.approx((39 + 8.5) / 100)
    bell = rows["Tawlbwrdd without throne, Bell"]
    assert bell.score == pytest.approx(1.83 / 2.83)
    assert rows["Brandubh with throne, T-cross"].score == pytest.approx(1 - 1.62 / 2.62)
    assert {row.name for row in people.table() if row.counted} == {
        "Copenhagen 11x11", "Fetlar 11x11", "Brandubh 7x7, recorded games", "Sea Battle 9x9", "Skalk 9x9, edge",
    }  # fmt: skip


def test_every_row_is_compared_or_says_why_not() -> None:
    for row in people.table():
        assert bool(row.rules) != bool(row.why)
        assert row.source
    assert len(people.entrants()) == len({row.rules for row in people.table() if row.rules}) == 8


def test_agreement_is_over_the_rows_that_were_played() -> None:
    measured = {"copenhagen": mixed(3, 0, 7), "fetlar": mixed(4, 0, 6), "tawlbwrdd": mixed(5, 0, 5)}
    found = people.agreement("x", measured, counted=False)
    assert found.rows == 4
    theirs, ours = [43.2 / 98.2, 44.85 / 100, 0.53, 1.83 / 2.83], [0.3, 0.4, 0.5, 0.5]
    assert found.spearman == pytest.approx(slow_spearman(theirs, ours))
    assert found.kendall == pytest.approx(slow_kendall(theirs, ours))
    few = people.agreement("x", measured, counted=True)
    assert (few.rows, few.spearman) == (2, None)


# The paper


def test_the_papers_games_by_who_won() -> None:
    """Table 1, Simple at one ply: red won 17 as our player and 6 as Simple; white 69 and 83; 25 of 200 are left."""
    row = people.printed("hingston-original", "simple")
    assert row == (17 + 6, 25, 69 + 83)
    assert row.score == pytest.approx((23 + 12.5) / 200)
    assert row.interval[0] < row.score < row.interval[1]
    for rules in TABLES:
        for player, (depth, _) in people.PAPER_PLAYERS.items():
            found = people.printed(rules, player)
            assert found is not None
            assert min(found) >= 0
            assert sum(found) == {1: 200, 2: 40, 3: 20}[depth]
    assert people.printed("brandubh", "simple") is None
    assert people.printed("hingston-original", "default@100") is None


# Search


COPENHAGEN = entrants.parse("copenhagen")
BRANDUBH = entrants.parse("brandubh")


def test_single_changes_are_of_one_switch_and_all_different() -> None:
    for base in (COPENHAGEN, BRANDUBH, entrants.parse("berserk"), entrants.parse("tablut-bologna")):
        found = searching.singles(base)
        hashes = [entrant.variant.hash for entrant in found]
        assert len(set(hashes)) == len(hashes)
        assert base.variant.hash not in hashes
        for entrant in found:
            assert len(entrants.differences(base.variant, entrant.variant)) == 1
            assert entrant.base == base.label


def test_every_word_of_a_switch_is_tried() -> None:
    names = {searching.changes_of(COPENHAGEN, entrant)[0] for entrant in searching.singles(COPENHAGEN)}
    words = {
        "king_armed",
        "shieldwall",
        "shieldwall_closer",
        "encirclement",
        "repetition",
        "king_sides",
        "berserk",
    }
    for name in words:
        now = COPENHAGEN.variant.rules.switch_text(name)
        tried = {change.partition("=")[2] for change in names if change.partition("=")[0] == name}
        assert tried == set(SWITCH[name].words) - {now}


def test_switches_that_mean_nothing_are_left_alone() -> None:
    names = {entrant.label.rpartition("+")[2].partition("=")[0] for entrant in searching.singles(BRANDUBH)}
    assert not names & {
        "knight_jump",
        "commander_pair",
        "attacker_camp_pass",
        "shieldwall_closer",
        "opentafl",
        "size",
    }
    throneless = searching.singles(entrants.parse("tawlbwrdd"))
    assert not any("+throne_" in entrant.label for entrant in throneless)
    assert any("+throne=centre" in entrant.label for entrant in throneless)


class Judge:
    """Measures rule sets that have a known score, with a little noise that games make smaller."""

    def __init__(self, scores: Mapping[str, float], usual: float) -> None:
        self.scores = scores
        self.usual = usual
        self.asked: list[tuple[int, int, int]] = []

    def __call__(self, wanted: Sequence[Entrant], games: int, pool: int) -> Mapping[str, Measures]:
        self.asked.append((len(wanted), games, pool))
        return {entrant.label: self._measured(entrant, games, pool) for entrant in wanted}

    def _measured(self, entrant: Entrant, games: int, pool: int) -> Measures:
        true = self.usual
        for change in searching.changes_of(BRANDUBH, entrant):
            true += self.scores.get(change, 0.0)
        draw = random.Random(f"{entrant.label} {pool}")
        won = sum(draw.random() < true for _ in range(games))
        return mixed(won, 0, games - won)


def test_a_search_finds_the_changes_that_help() -> None:
    judge = Judge({"king_armed=no": 0.12, "throne=none": 0.24, "encirclement=off": 0.1}, 0.15)
    found = searching.find(BRANDUBH, Terms(first=60, keep=4, confirm=2000, pairs=4), judge)
    best = {tuple(searching.changes_of(BRANDUBH, one.entrant)): one for one in found.candidates}
    assert ("throne=none",) in best
    assert best["throne=none",].fresh.score == pytest.approx(0.39, abs=0.04)
    two = [one for one in found.candidates if one.changes == 2]
    assert set(searching.changes_of(BRANDUBH, two[0].entrant)) == {"king_armed=no", "throne=none"}
    assert two[0].fresh.score == pytest.approx(0.51, abs=0.04)
    assert [one.changes for one in found.candidates] == sorted(one.changes for one in found.candidates)
    assert found.tried == len(searching.singles(BRANDUBH)) + 6
    assert found.base.score == pytest.approx(0.15, abs=0.03)


def test_fewer_play_more_and_what_is_left_plays_afresh() -> None:
    judge = Judge({}, 0.3)
    found = searching.find(BRANDUBH, Terms(first=10, keep=3, confirm=50), judge)
    number = len(searching.singles(BRANDUBH))
    selection = [(count, games) for count, games, pool in judge.asked[1:] if pool == searching.SELECTION]
    assert selection[0] == (number, 10)
    assert [games for _, games in selection] == [10 * 3**k for k in range(len(selection))]
    assert [count for count, _ in selection][1:3] == [number // 3, number // 3 // 3]
    assert judge.asked[-1] == (1 + 3, 50, searching.CONFIRMATION)
    assert [(count, games) for _, count, games in found.rounds] == selection
    assert all(one.fresh.games == 50 for one in found.candidates)


def test_the_best_of_many_shrinks_on_fresh_games() -> None:
    """All are alike: what was chosen looks better than it is, what is reported does not."""
    found = searching.find(BRANDUBH, Terms(first=15, keep=4, confirm=3000), Judge({}, 0.3))
    assert min(one.chosen.score for one in found.candidates) > 0.31
    assert all(one.fresh.score == pytest.approx(0.3, abs=0.04) for one in found.candidates)


def test_draws_are_not_taken_for_balance() -> None:
    drawish, even = mixed(1, 98, 1), mixed(45, 0, 55)
    assert searching.distance(even, 0.25) < searching.distance(drawish, 0.25)
    assert searching.distance(drawish, 1.0) < searching.distance(even, 1.0)


# The report


def results(plan: Plan, scores: Mapping[str, str]) -> Results:
    return {
        Key(label, player, 0): {k: game(k, winner) for k, winner in enumerate(winners)}
        for label, winners in scores.items()
        for player in plan.players
    }


@pytest.mark.slow
def test_the_report_puts_people_beside_us(tmp_path: Path) -> None:
    plan = Plan("table", tuple(people.entrants()), ("simple", "default@50"), 10, 10)
    scores = {
        entrant.label: "a" * k + "d" * (10 - k)
        for k, entrant in enumerate(plan.entrants)
        if entrant.label != "fetlar"
    }
    outcome = summarize(plan, results(plan, scores), Openings(tmp_path), None, ["v1", "v2"], "run")
    text = "\n".join(report.markdown(outcome, []))
    assert "| Copenhagen 11x11 | 1,752 | 44.0 | copenhagen | 0.0 | 0.0 |" in text
    assert "| championship of 2012 | not played in this run |" in text
    assert "| Skalk 9x9, edge | 56 | 44.6 |" in text
    assert "several versions of the engine" in text
    expected = people.agreement("simple", outcome.of("simple"), counted=False)
    assert f"| simple | all | 9 | {expected.spearman:+.2f} |" in text
    assert expected.perfect is not None
    assert f"| simple | all | 9 | {expected.weighted:+.2f} |" in text
    assert (
        f"| {expected.perfect[0]:+.2f} | {expected.perfect[1]:+.2f} to {expected.perfect[2]:+.2f} |" in text
    )
    shown = showing.shown(outcome)
    assert any(line.startswith("  default@50") and line.rstrip().endswith("│") for line in shown)
    assert max(map(len, shown)) <= 80


def test_the_report_names_rule_sets_that_are_judged_by_weights_of_others(tmp_path: Path) -> None:
    """Fitted for these rules, for the same without the switch, for a relative; who has no weights borrows none."""
    rules = tuple(map(entrants.parse, ("brandubh", "copenhagen", "copenhagen+shieldwall=off", "fetlar")))
    scores = {entrant.label: "ad" for entrant in rules}
    for players, borrowed in (
        (("simple",), {}),
        (("simple", "default@50"), {"copenhagen+shieldwall=off": "copenhagen", "fetlar": "copenhagen"}),
    ):
        plan = Plan("table", rules, players, 2, 2)
        outcome = summarize(plan, results(plan, scores), Openings(tmp_path), None, ["v1"], "run")
        assert report.as_json(outcome)["borrowed_weights"] == borrowed
        text = "\n".join(report.markdown(outcome, []))
        assert ("- those of copenhagen: copenhagen+shieldwall=off, fetlar" in text) == bool(borrowed)
        assert ("weights fitted for copenhagen:" in "\n".join(showing.shown(outcome))) == bool(borrowed)


def test_the_report_puts_the_paper_beside_us(tmp_path: Path) -> None:
    plan = Plan("table", (BRANDUBH, *entrants.points()[:1]), ("simple", "default@50"), 10, 10)
    scores = {"brandubh": "ad", "hingston-original": "aadddddddd"}
    rows = report.paper_rows(summarize(plan, results(plan, scores), Openings(tmp_path), None, ["v1"], "run"))
    assert rows[1][:5] == ["hingston-original", "simple", "200", "23 / 152 / 25", "17.8"]
    assert rows[1][6:9] == ["10", "20.0 / 80.0 / 0.0", "20.0"]
    assert rows[2][:3] == ["hingston-original", "default@50", "-"]
    assert len(rows) == 3


def test_the_report_tells_short_openings_from_long_ones(tmp_path: Path) -> None:
    plan = Plan("table", (BRANDUBH,), ("simple",), 7, 7)
    openings = Openings(tmp_path)
    openings.put("brandubh", 0, 7, [("a4a2",) * plies for plies in (2, 4, 5, 3, 8)])
    outcome = summarize(plan, results(plan, {"brandubh": "adaadda"}), openings, None, ["v1"], "run")
    (head, row) = report.opening_rows(outcome)
    # Games 5 and 6 begin like 0 and 1: short ones are 0, 1, 3, 5 and 6, won by a, d, a, d and a.
    assert row[:3] == ["brandubh", "5", "60.0"]
    assert row[4:6] == ["2", "50.0"]
    assert len(head) == len(row)


def test_a_bar_has_its_dot_where_the_score_is() -> None:
    for won in (0, 7, 50, 100):
        text = showing.bar(mixed(won, 0, 100 - won))
        assert text.index("●") == round(showing.BAR * won / 100)
        assert len(text) == showing.BAR + 1
    assert showing.bar(mixed(50, 0, 50), plain=True).isascii()


def test_figures_are_drawn_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hnefi.tools.balance import plots

    plan = Plan("table", tuple(people.entrants()), ("simple", "default@50"), 10, 10)
    scores = {entrant.label: "a" * k + "d" * (10 - k) for k, entrant in enumerate(plan.entrants)}
    outcome = summarize(plan, results(plan, scores), Openings(tmp_path), None, ["v1"], "run")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    made = plots.draw(outcome, tmp_path)
    assert {path.name for path in made} == {"strength.svg", "people.svg"}
    assert "copenhagen" in (tmp_path / "strength.svg").read_text()


def test_a_figure_has_room_for_every_name(tmp_path: Path) -> None:
    from hnefi.tools.balance import plots
    from hnefi.tools.common.svg_chart import width_of

    long = ("evolved-hingston-alternative", "simple", "simple-d2", "simple-d3", "random-terminal", "uct-1k")
    plan = Plan("table", (entrants.parse("hingston-alternative+king_sides=4+move_limit=200"),), long, 10, 10)
    scores = {entrant.label: "a" * 4 + "d" * 6 for entrant in plan.entrants}
    outcome = summarize(plan, results(plan, scores), Openings(tmp_path), None, ["v1"], "run")
    plots.draw(outcome, tmp_path)
    root = ET.parse(tmp_path / "strength.svg").getroot()
    words = [element for element in root.iter() if element.tag.endswith("text")]
    assert long[0] in [word.text for word in words]
    for word in words:
        wide = width_of(word.text or "", float(word.get("font-size", 12)))
        turned = re.match(r"rotate\((-?\d+)", word.get("transform", ""))
        across = wide * math.cos(math.radians(float(turned[1]) if turned else 0))
        left = (
            float(word.get("x", 0))
            - across * {"start": 0, "middle": 0.5, "end": 1}[word.get("text-anchor", "")]
        )
        assert left >= 0, word.text
        assert left + across <= float(root.get("width", 0)), word.text
