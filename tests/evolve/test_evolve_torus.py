"""`hnefi evolve torus`: who is beside whom, what is bred from what, and that nothing but the seed decides."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evolve_parts import archive, dying_at_state

from hnefi.engine import games
from hnefi.engine.evaluators import files, network
from hnefi.tools.common.matches import Games
from hnefi.tools.evolve import command, folder, options, torus
from hnefi.tools.evolve.algorithm import Purpose, generator
from hnefi.tools.evolve.contestants import Executor
from hnefi.tools.evolve.run import begin, plan

SMALL = (
    "--variant",
    "hex:3",
    "--side",
    "3",
    "--generations",
    "4",
    "--measure-every",
    "2",
    "--measure-games",
    "4",
)
NEAR = {(-1, 0), (1, 0), (0, -1), (0, 1), (1, -1), (-1, 1)}


def values(**more: Any) -> dict[str, Any]:
    return {name: option.default for name, option in options.of("torus").items()} | more


# The torus


def test_every_player_has_six_neighbours() -> None:
    near = torus.neighbours(10, 1)
    assert near.shape == (100, 7)
    for place, (itself, *others) in enumerate(near.tolist()):
        assert itself == place
        expected = {(place // 10 + down) % 10 * 10 + (place % 10 + right) % 10 for down, right in NEAR}
        assert len(expected) == 6
        assert set(others) == expected
        assert all(place in near[other] for other in others)
    met = [tuple(sorted(pair)) for pair in torus.pairs(10, 1).tolist()]
    assert len(met) == len(set(met)) == 300


@pytest.mark.parametrize(("radius", "count"), [(1, 6), (2, 18), (3, 36), (0, 99)])
def test_neighbourhoods_are_as_large_as_their_radius_says(radius: int, count: int) -> None:
    near = torus.neighbours(10, radius)
    assert {len(set(row)) for row in near.tolist()} == {count + 1}
    for place in range(100):
        # As far as one gets from neighbour to neighbour.
        reached = {place}
        for _ in range(radius):
            reached |= {int(other) for one in reached for other in torus.neighbours(10, 1)[one]}
        if radius:
            assert set(near[place].tolist()) == reached
    assert len(torus.pairs(10, radius)) == 50 * count


def test_a_torus_too_small_for_its_neighbours_is_refused() -> None:
    assert torus.neighbours(3, 1).shape == (9, 7)
    with pytest.raises(ValueError, match="expected at most 1"):
        torus.neighbours(4, 2)


# Breeding


def slowly(weights: Any, wins: Any, chosen: dict[str, Any], draw: np.random.Generator) -> Any:
    """The next population by loops, from the same draws."""
    count, size = weights.shape
    near = torus.neighbours(chosen["side"], chosen["neighbourhood"])
    drawn = draw.random((count, size))
    keep = (
        draw.random((count, size)) < chosen["inertia"] if chosen["inertia"] else np.zeros((count, size), bool)
    )
    noise = draw.standard_normal((count, size))
    swaps = (
        draw.geometric(1 - chosen["again"], count) if chosen["mutation"] != "none" else np.zeros(count, int)
    )
    made = np.zeros((count, size))
    for player in range(count):
        won = [float(wins[other]) for other in near[player]]
        if chosen["selection"] == "exponential":
            won = [2.0**one for one in won]
        if not sum(won):
            won = [1.0] * len(won)
        for k in range(size):
            left, source = drawn[player, k] * sum(won), 0
            while left >= won[source] and source < len(won) - 1:
                left -= won[source]
                source += 1
            if keep[player, k]:
                source = 0
            x = weights[near[player][source], k]
            much = chosen["sigma"]
            if chosen["noise"] == "relative":
                much *= max(abs(x), chosen["noise_floor"])
            if keep[player, k] and chosen["shake_kept"] == "no":
                much = 0
            made[player, k] = x + noise[player, k] * much
        for _ in range(swaps[player]):
            i = int(draw.integers(size))
            j = int(draw.integers(size - 1))
            j = (i + 1 + j) % size
            if chosen["mutation"] == "swap":
                made[player, i], made[player, j] = made[player, j], made[player, i]
            else:
                made[player, j] = made[player, i]
    return made


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"selection": "exponential", "mutation": "none"},
        {"inertia": 0.5, "shake_kept": "no", "again": 0.5},
        {"mutation": "copy", "noise": "relative", "neighbourhood": 2, "sigma": 0.3},
        {"neighbourhood": 0, "inertia": 0.3},
    ],
    ids=str,
)
def test_players_are_bred_as_a_slow_twin_breeds_them(more: dict[str, Any]) -> None:
    chosen = values(side=5, **more)
    draw = np.random.default_rng(1)
    weights, wins = draw.normal(0, 1, (25, 7)), draw.integers(0, 13, 25).astype(float)
    wins[torus.neighbours(5, 1)[7]] = 0
    made = torus.bred(weights, wins, chosen, np.random.default_rng(2))
    assert made == pytest.approx(slowly(weights, wins, chosen, np.random.default_rng(2)), abs=1e-12)


def test_sources_are_drawn_by_their_wins() -> None:
    """Weights that say whose they are, without noise: how often each comes up is its share of the wins."""
    weights = np.repeat(np.arange(9.0)[:, None], 4000, axis=1)
    wins = np.arange(9.0)
    chosen = values(side=3, sigma=0.0, mutation="none")
    for selection in ("wins", "exponential"):
        made = torus.bred(weights, wins, {**chosen, "selection": selection}, np.random.default_rng(3))
        for player, near in enumerate(torus.neighbours(3, 1).tolist()):
            worth = wins[near] if selection == "wins" else 2 ** wins[near]
            found = Counter(made[player].astype(int).tolist())
            for other, share in zip(near, worth / worth.sum(), strict=True):
                assert found[other] / 4000 == pytest.approx(
                    share, abs=4.5 * (share * (1 - share) / 4000) ** 0.5 + 1e-9
                )


def test_as_many_pairs_change_places_as_the_chance_says() -> None:
    weights = np.tile(np.arange(400.0), (100, 1))
    for again, mean in ((0.0, 1), (0.25, 4 / 3), (0.5, 2)):
        chosen = values(side=10, sigma=0.0, again=again)
        made = torus.bred(weights, np.ones(100), chosen, np.random.default_rng(4))
        moved = (made != weights).sum(axis=1) / 2
        assert moved.min() >= 1
        assert moved.mean() == pytest.approx(mean, abs=5 * moved.std() / 10 + 0.02)
        assert (np.sort(made, axis=1) == weights).all()


# Fitness


def finished(winner: list[tuple[int, int]], plies: int = 10) -> Games:
    shape = (len(winner), 2)
    return Games(np.array(winner), np.zeros((*shape, 2)), np.full(shape, plies), np.zeros(shape))


def test_wins_are_counted_for_both_sides() -> None:
    made = plan("torus", games.find("hex:3"), 1, {"side": 3})
    learner = made.build()
    assert isinstance(learner, torus.Torus)
    matches = learner._schedule(1)
    assert (len(matches), matches.contestants) == (27, 9)
    # Whoever moves first wins: everybody wins once in each pair.
    assert torus.won(made, matches, finished([(0, 0)] * 27)).tolist() == [6.0] * 9
    first = torus.won(made, matches, finished([(0, 1)] * 27))
    assert first.tolist() == [2 * (matches.first == player).sum() for player in range(9)]
    assert torus.won(made, matches, finished([(2, 2)] * 27)).tolist() == [6.0] * 9
    quick = plan("torus", games.find("hex:3"), 1, {"side": 3, "quick_win": "yes"})
    assert torus.won(quick, matches, finished([(0, 0)] * 27, plies=6)) == pytest.approx([6 / 3] * 9)


@pytest.mark.parametrize(
    ("games_each", "expected"),
    [
        (2, "^rungs: gone.safetensors: No such file"),
        (0, "^rungs: 'gone.safetensors' with rung_games 0: expected"),
    ],
)
def test_rungs_that_cannot_be_met_are_refused(games_each: int, expected: str) -> None:
    asked = {"side": 3, "rungs": "gone.safetensors", "rung_games": games_each}
    with pytest.raises(options.OptionError, match=expected):
        plan("torus", games.find("hex:3"), 1, asked)


def test_rungs_are_met_by_everybody(tmp_path: Path) -> None:
    variant, net = games.find("hex:3"), network.parse("mlp:5")
    rung = tmp_path / "rung.safetensors"
    files.save(rung, files.make(net, variant, np.ones(net.count(variant))))
    made = plan("torus", variant, 1, {"side": 3, "rungs": f"random,{rung}", "rung_games": 4})
    assert "#sha256=" in made.values["rungs"]
    learner = made.build()
    assert isinstance(learner, torus.Torus)
    matches = learner._schedule(1)
    assert len(matches) == 27 + 2 * 9 * 2
    # Networks stand before Random.
    assert Counter(matches.second[27:].tolist()) == {10: 18, 9: 18}
    contest = torus.contest(made, begin(made).state["weights"], rungs=True)
    assert (len(contest.weights), contest.fixed) == (10, (Purpose.RANDOM,))
    assert contest.weights[9].tolist() == [1.0] * net.count(variant)
    state, _, report = learner.step(learner.begin(), 1, Executor(1))
    assert report["games"] == 2 * len(matches) + 9 * 20
    assert state["weights"].shape == (9, net.count(variant))


def test_players_against_random_are_measured_on_either_side() -> None:
    made = plan("torus", games.find("hex:3"), 1, {"side": 3})
    found = torus.against_random(made, begin(made).state["weights"], 200, Executor(1), 0, Purpose.RANK)
    assert found.shape == (9, 2)
    first, second = found.mean(axis=0)
    assert 0.5 < first < 0.95 > second
    again = torus.against_random(made, begin(made).state["weights"], 200, Executor(3), 0, Purpose.RANK)
    assert found.tolist() == again.tolist()
    other = torus.against_random(made, begin(made).state["weights"], 200, Executor(1), 0, Purpose.CONFIRM)
    assert found.tolist() != other.tolist()


# Runs


def evolve(out: Path, *more: str) -> int:
    return command.main(["torus", *SMALL, "--out", str(out), "--quiet", *more])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("torus") / "run"
    assert evolve(out, "--jobs", "1", "--save-player", str(out.parent / "mine")) == 0
    return out


def test_what_a_run_leaves(undisturbed: Path) -> None:
    log = [json.loads(line) for line in (undisturbed / "log.jsonl").read_text().splitlines()]
    assert [entry["generation"] for entry in log] == [1, 2, 3, 4]
    assert [entry["games"] for entry in log] == [54 + 36, 54 + 36, 54, 54 + 36]
    assert [entry["v_random"]["generation"] for entry in log] == [0, 2, 2, 4]
    assert all(entry["best"] >= entry["median"] for entry in log)
    assert (undisturbed / "curves.svg").read_text().count("against Random") == 2
    first = files.load(undisturbed / "archive" / "gen-0000.safetensors", games.find("hex:3"))
    asked = {"side": 3, "generations": 4, "measure_every": 2, "measure_games": 4}
    made = plan("torus", games.find("hex:3"), 1, asked)
    assert files.genome(first).tolist() in begin(made).state["weights"].tolist()
    state = folder.load_state(undisturbed / folder.STATE, made).state
    assert state["weights"].shape == (9, 5 * 10 + 6)


def test_a_champion_becomes_a_player_that_sees_no_wins(undisturbed: Path) -> None:
    player = tomllib.loads((undisturbed.parent / "mine.toml").read_text())
    assert player["algorithm"] == "minimax"
    assert player["limits"] == {"depth": 1}
    assert player["options"] == {"Wins": "unseen"}


def test_any_number_of_threads(undisturbed: Path, tmp_path: Path) -> None:
    assert evolve(tmp_path / "run", "--jobs", "3") == 0
    assert archive(tmp_path / "run") == archive(undisturbed)


def test_a_run_that_dies_while_it_writes_goes_on_as_if_nothing_had_been(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between log and state: the log says of a generation what the state does not know."""
    out = tmp_path / "run"
    with dying_at_state(3, monkeypatch):
        evolve(out, "--jobs", "1")
    assert len((out / "log.jsonl").read_text().splitlines()) == 3
    assert command.main(["resume", str(out), "--quiet", "--jobs", "2"]) == 0
    assert archive(out) == archive(undisturbed)


def test_other_games_are_learned_with_the_same_command(tmp_path: Path) -> None:
    for variant, net in (("brandubh", "hingston2007:hidden=2"), ("hexapawn:3x3", "mlp:3")):
        out = tmp_path / variant.replace(":", "-")
        more = ["--generations", "2", "--measure-games", "2", "--set", "ply_limit=30", "--set", "rearrange=1"]
        assert evolve(out, "--variant", variant, "--network", net, *more, "--jobs", "1") == 0
        log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
        assert len(log) == 2
        evaluator = files.load(out / "champion.safetensors", games.find(variant))
        assert evaluator.document["trainer"]["wins"] == "seen"


@pytest.mark.parametrize(
    "setting", ["legality=learned", "network=mlp:3,edges", "network=mlp:2,2,planes,relu"]
)
def test_options_of_hex_run(setting: str, tmp_path: Path) -> None:
    assert evolve(tmp_path / "run", "--generations", "2", "--set", setting, "--jobs", "1") == 0


def test_learning_raises_the_share_of_games_won(tmp_path: Path) -> None:
    """Small steps from small weights, on a board where that is quick: the machinery as a whole goes uphill."""
    more = ["--side", "6", "--generations", "30", "--selection", "exponential", "--sigma", "0.3"]
    assert (
        evolve(tmp_path / "run", *more, "--measure-every", "30", "--measure-games", "20", "--seed", "5") == 0
    )
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert log[-1]["v_random"]["mean"] > log[0]["v_random"]["mean"] + 0.05


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--side", "4", "--neighbourhood", "2"], "neighbourhood: 2: expected at most 1"),
        (["--rung-games", "3"], "rung_games: 3: expected an even number"),
        (["--measure-games", "0"], "measure_games: 0: expected a number of games"),
        (["--variant", "brandubh", "--set", "wins=unseen"], "only Hex has players that do not see wins"),
        (
            ["--variant", "brandubh", "--set", "legality=learned"],
            "legality: 'learned': expected hex without swap",
        ),
        (
            ["--set", "legality=learned", "--network", "mlp:5,edges"],
            "legality: 'learned': expected hex without swap",
        ),
        (
            ["--variant", "hex-swap:3", "--set", "legality=learned"],
            "legality: 'learned': expected hex without swap",
        ),
        (["--variant", "brandubh", "--network", "mlp:5,planes"], "planes: expected a variant of hex"),
        (["--variant", "hex:17", "--network", "mlp:1,planes,edges"], "1156 inputs: expected at most 1024"),
        (["--rung-games", "2", "--set", "rungs=simple"], "rungs: 'simple': expected random"),
        (["--rung-games", "2", "--set", "rungs=random,random"], "each once"),
        (["--rung-games", "2", "--set", "rungs=nothing.safetensors"], "nothing.safetensors"),
        (["--selection", "best"], "expected wins or exponential"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evolve(tmp_path / "run", *words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_streams_of_a_generation_are_its_own() -> None:
    one, other = (generator(1, generation, Purpose.MUTATE).random(4).tolist() for generation in (1, 2))
    assert one != other
