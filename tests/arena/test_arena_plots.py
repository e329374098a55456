"""Pictures of a run."""

from __future__ import annotations

import sys
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from arena_results import game, pairs, played, summary

from hnefi.tools.arena import plots, report
from hnefi.tools.arena.summary import ReportError
from hnefi.tools.arena.values import GameResult
from hnefi.tools.common.pairs import Ending, Played
from hnefi.tools.common.rating import Model

NAMES = ("mine", "$x^2$ evil\x1b[2J\n", "日本語の名前" * 9, "<b>&amp;")


def tournament() -> list[GameResult]:
    found = []
    for number, engines in enumerate(combinations(range(4), 2), 1):
        winners = (("a", "d"), ("draw", "d"), ("d", "a"))[number % 3]
        found += [game(number, 1, winners[0], NAMES, engines), game(number, 2, winners[1], NAMES, engines)]  # type: ignore[arg-type]
    return found


def counted(results: list[GameResult]) -> list[Played]:
    return [one for result in results if (one := played(result)) is not None]


def text_of(path: Path) -> str:
    """All texts of a drawing; an error if it is not well-formed."""
    return "\n".join(part.strip() for part in ET.parse(path).getroot().itertext() if part.strip())


def test_scores_over_time() -> None:
    series = plots.score_series(counted(list(pairs("ad =a"))), ("mine", "simple", "nobody"))
    assert series["mine"] == [(1, 1.0), (2, 1.0), (3, pytest.approx(2.5 / 3)), (4, 0.625)]
    assert series["simple"] == [(1, 0.0), (2, 0.0), (3, pytest.approx(0.5 / 3)), (4, 0.375)]
    assert series["nobody"] == []


def test_long_curves_are_thinned_and_keep_their_ends() -> None:
    one = Played(1, 1, Ending("brandubh", "mine", "simple", "a"), "king_captured")
    series = plots.score_series([one] * 8000, ("mine", "simple"))
    assert len(series["mine"]) == plots.POINTS
    assert (series["mine"][0][0], series["mine"][-1][0]) == (1, 8000)
    steps = [late[0] - soon[0] for soon, late in pairwise(series["mine"])]
    assert set(steps) <= {16, 17}


def test_without_the_library_a_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ReportError, match=r"matplotlib, which is not installed: pip install 'hnefi\[plots\]'"
    ):
        plots.draw(summary([]), {}, tmp_path / "plots")
    assert not (tmp_path / "plots").exists()


@pytest.mark.process
def test_importing_plots_does_not_import_the_library() -> None:
    import subprocess

    code = (
        "import sys, hnefi.tools.arena.plots; sys.exit('matplotlib' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_a_tournament(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    known = summary(
        tournament(), engines=NAMES, variants=("brandubh",), limits="nodes 2000", model=Model(bootstrap=20)
    )
    made = plots.draw(known, plots.score_series(counted(tournament()), NAMES), tmp_path / "plots")
    names = ("ratings", "cross-table", "scores")
    assert [path.name for path in made] == [f"{name}.{form}" for name in names for form in ("png", "svg")]
    for path in made:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
            continue
        text = text_of(path)
        for said in (
            "brandubh · nodes 2000",
            "openings random, 2-8 plies · 12 games, 6 pairs",
            "$x^2$ evil?[2J?",
            "<b>&amp;",
        ):
            assert said in text, (path.name, said)


def test_games_are_counted_in_whole_numbers() -> None:
    pytest.importorskip("matplotlib")
    known = summary(pairs("ad"), model=Model(bootstrap=20))
    axes = dict(plots._figures(known, {"mine": [(1, 0.5), (2, 0.5)], "simple": []}))["scores"].axes[0]
    assert all(float(tick).is_integer() for tick in axes.get_xticks())


def test_a_long_heading_ends_within_the_drawing() -> None:
    mpl = pytest.importorskip("matplotlib.backends.backend_agg")
    each = [f"engine-{number} nodes {number}000" for number in range(9)]
    known = summary(pairs("ad =a da"), limits="; ".join(each), model=Model(bootstrap=20))
    for name, figure in plots._figures(known, {"mine": [(1, 0.5)], "simple": [(1, 0.5)]}):
        renderer = mpl.FigureCanvasAgg(figure).get_renderer()
        figure.draw(renderer)
        heading = next(text for text in figure.texts if "games" in text.get_text())
        assert heading.get_window_extent(renderer).x1 <= figure.bbox.x1, name
        # Broken, but not within a limit, and not cut.
        broken = heading.get_text().splitlines()
        assert len(broken) > 3, name
        assert all(any(limit in line for line in broken) for limit in each), name
        box = figure.axes[0].get_window_extent(renderer)
        assert heading.get_window_extent(renderer).y0 >= box.y1, name


@pytest.mark.slow
def test_the_same_run_gives_the_same_drawings(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    known = summary(pairs("ad =a da"), model=Model(bootstrap=20))
    series = plots.score_series(counted(list(pairs("ad =a da"))), ("mine", "simple"))
    one, two = (plots.draw(known, series, tmp_path / name) for name in ("one", "two"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_runs_without_games_have_nothing_to_draw(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert plots.draw(summary([]), {}, tmp_path) == []


def test_without_resampling_ratings_have_no_intervals(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    known = summary(pairs("ad ad da"), model=Model(bootstrap=0))
    assert "intervals" not in text_of(plots.draw(known, {}, tmp_path)[1])
    assert report.final(known)
