"""UCI_LimitStrength and UCI_Elo: ratings turned into levels, and what the options do."""

from __future__ import annotations

import random

import pytest

from hnefi.engine import options
from hnefi.engine.search import elo_table, skill
from hnefi.engine.session import Session, SessionError
from hnefi.tools.ladder import published


def test_the_table_rises() -> None:
    assert [level for level, _ in elo_table.MEASURED] == list(range(1, 10))
    ratings = [rating for _, rating in elo_table.MEASURED]
    assert ratings == sorted(set(ratings))
    assert all(isinstance(rating, int) for rating in ratings)


def test_a_measured_rating_is_its_level() -> None:
    for level, rating in elo_table.MEASURED:
        assert elo_table.level(rating) == level


def test_levels_rise_with_ratings_and_stay_in_range() -> None:
    found = [elo_table.level(rating) for rating in range(elo_table.LOWEST - 100, elo_table.HIGHEST + 100)]
    assert found == sorted(found)
    assert found[0] == elo_table.MEASURED[0][0]
    assert found[-1] == elo_table.MEASURED[-1][0] < skill.FULL
    # Strictly between the ends: no two labels are one and the same engine.
    inside = found[100:-99]
    assert len(set(inside)) == len(inside)


def test_between_two_levels_by_hand() -> None:
    (one, low), (two, high) = elo_table.MEASURED[3:5]
    assert elo_table.level((3 * low + high) / 4) == pytest.approx((3 * one + two) / 4)


def test_the_table_is_the_published_one() -> None:
    """What the engine says of itself is what was measured, but for what makes it rise from level to level."""
    document = published.ratings()
    if document is None:
        pytest.skip("nothing is published yet")
    for level, rating in elo_table.MEASURED:
        entry = document["players"][f"level-{level}"]
        assert abs(entry["elo"] - rating) <= entry["error"]


def test_the_options_are_announced() -> None:
    limit, elo = options.find("uci_limitstrength"), options.find("UCI_Elo")
    assert limit is not None
    assert elo is not None
    assert limit.line() == "option name UCI_LimitStrength type check default false"
    low, high = elo_table.LOWEST, elo_table.HIGHEST
    assert elo.line() == f"option name UCI_Elo type spin default {high} min {low} max {high}"


def test_a_label_counts_only_when_strength_is_limited() -> None:
    session = Session()
    session.set_option("UCI_Elo", str(elo_table.LOWEST))
    assert session.settings.skill == skill.FULL
    session.set_option("UCI_LimitStrength", "true")
    assert session.settings.skill == 1.0
    session.set_option("UCI_Elo", str(elo_table.MEASURED[4][1]))
    assert session.settings.skill == 5.0


def test_a_label_goes_before_a_level_and_leaves_it_as_it_was() -> None:
    session = Session()
    session.set_option("SkillLevel", "7")
    assert session.settings.skill == 7
    session.set_option("UCI_LimitStrength", "true")
    assert session.settings.skill == elo_table.level(elo_table.HIGHEST)
    session.set_option("UCI_Elo", str(elo_table.MEASURED[1][1]))
    session.set_option("SkillLevel", "4")
    assert session.settings.skill == 2.0
    session.set_option("UCI_LimitStrength", "false")
    assert session.settings.skill == 4


def test_labels_beyond_the_scale_are_refused() -> None:
    session = Session()
    for number in (elo_table.LOWEST - 1, elo_table.HIGHEST + 1):
        with pytest.raises(SessionError, match=f"setoption UCI_Elo {number}: expected {elo_table.LOWEST} to"):
            session.set_option("UCI_Elo", str(number))
    assert session.option("UCI_Elo") == elo_table.HIGHEST


def test_a_fraction_of_a_level_plays_between_its_neighbours() -> None:
    (_, low), (_, high) = elo_table.MEASURED[3:5]
    weak, between, strong = (
        skill.weakness(elo_table.level(rating)) for rating in (low, (low + high) / 2, high)
    )
    assert weak is not None
    assert between is not None
    assert strong is not None
    assert weak.nodes < between.nodes < strong.nodes
    assert weak.temperature > between.temperature > strong.temperature


def test_a_first_line_that_was_found_lost_late_is_no_trouble() -> None:
    """A search that ran out of nodes knows the first line's new value and the old ones of the others."""
    draw = random.Random(1)
    assert {skill.choose([-29_990, 30, 20], 18.75, draw) for _ in range(200)} == {1, 2}
