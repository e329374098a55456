"""Which level is suggested to a person, and when."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hnefi.engine import options
from hnefi.gui_adapter.terminal import opponents
from hnefi.protocol.hosts.standing import FEWEST, RATINGS, Standing


def suggested(games: Sequence[tuple[int, float]]) -> int | None:
    """The level that is suggested after these games, level and score each."""
    standing = Standing()
    for level, score in games:
        standing.add(level, score)
    said = standing.suggestion()
    return None if said is None else int(said.partition("level ")[2].split(" ", 1)[0])


def test_every_level_has_a_rating_and_a_higher_one_a_higher_rating() -> None:
    option = options.find(opponents.OPTION)
    assert option is not None
    assert sorted(RATINGS) == list(range(option.low, option.high + 1))
    assert [RATINGS[level] for level in sorted(RATINGS)] == sorted(RATINGS.values())


def test_nothing_is_said_before_the_third_game() -> None:
    assert suggested([]) is None
    assert suggested([(5, 0.0)] * (FEWEST - 1)) is None
    assert suggested([(5, 0.0)] * FEWEST) is not None


@pytest.mark.parametrize("level", [2, 5, 8])
def test_who_wins_is_sent_up_and_who_loses_down(level: int) -> None:
    up, down = suggested([(level, 1.0)] * 3), suggested([(level, 0.0)] * 3)
    assert up is not None
    assert down is not None
    assert down < level < up
    assert suggested([(level, 1.0)] * 6) >= up  # type: ignore[operator]


def test_an_even_score_is_left_alone() -> None:
    assert suggested([(5, 1.0), (5, 0.0), (5, 0.5)]) is None
    assert suggested([(5, 0.0), (5, 0.0), (5, 0.0), (4, 0.0), (3, 1.0), (3, 0.0)]) is None


def test_the_ends_of_the_scale_stay_on_it() -> None:
    assert suggested([(0, 0.0)] * 9) is None
    assert suggested([(10, 1.0)] * 9) is None


@pytest.mark.process
@pytest.mark.parametrize(("against", "told"), [(["--level", "5"], 1), (["--against", "simple"], 0)])
def test_a_level_is_suggested_after_three_games(against: list[str], told: int, tmp_path: Path) -> None:
    """`back` and `forward` come to the same end once more, which counts no game twice."""
    home = {**os.environ, "XDG_DATA_HOME": f"{tmp_path}/data", "XDG_CONFIG_HOME": f"{tmp_path}/config"}
    done = subprocess.run(
        [sys.executable, "-m", "hnefi.tools.cli", "play", "--variant", "mini-four", "--side", "a", *against],
        input="resign\nnew\nresign\nback\nforward\nnew\nresign\nquit\n",
        env=home, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("You scored")]
    assert len(said) == told
    assert all("You scored 0 of 3 against our levels: level " in line for line in said)
