"""`hnefi evolve` as people meet it: help, progress, players, the ranking; and weights tied by symmetry."""

from __future__ import annotations

import io
import json
import re
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import fake_contest
import numpy as np
import pytest
from safetensors import safe_open

from hnefi.engine.evaluators import files
from hnefi.engine.evaluators.network import parse
from hnefi.engine.games import find, from_fen, initial
from hnefi.engine.games.tafl.symmetry import symmetries
from hnefi.engine.selfplay import match as contest
from hnefi.engine.squares import file_of, rank_of
from hnefi.tools.common.live import duration
from hnefi.tools.evolve import command, encoding, options, rank
from hnefi.tools.evolve.progress import Progress
from hnefi.tools.evolve.run import plan
from hnefi.tools.evolve.tournament import words


@pytest.fixture(autouse=True)
def _without_games(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest, "Table", fake_contest.Table)


def evolve(*words: str) -> int:
    return command.main(["es", "--variant", "brandubh", "--random-matches", "2", *words])


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_the_overview(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(words) == 0
    said = capsys.readouterr().out
    for word in ("es", "cma", "resume"):
        assert f"\n  {word} " in said
        assert f"  hnefi evolve {word} " in said


@pytest.mark.parametrize("word", ["es", "cma", "resume"])
def test_help_shows_examples_and_every_option(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main([word, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert f"examples:\n  hnefi evolve {word}" in said
    if word != "resume":
        for option in options.of(word).values():
            assert f"--{option.name.replace('_', '-')} " in said


def test_an_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["sa"]) == 2
    assert (
        capsys.readouterr().err
        == "hnefi evolve: error: 'sa': expected one of es, cma, zero, torus, td, tdleaf, treestrap, "
        "resume, rank, curves, compare\n"
    )


def test_examples_can_be_parsed() -> None:
    for word, examples in command.EXAMPLES.items():
        if word == "rank":
            for example in examples:
                command._rank_parser().parse_args(example.split()[1:])
        if word in options.ALGORITHMS:
            for example in examples:
                given = command._evolve_parser(word).parse_args(example.split()[1:])
                options.read_settings(word, given.set)


def test_a_run_leaves_its_curves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert evolve("--generations", "3", "--seeds", "2", "--jobs", "1", "--out", str(out)) == 0
    assert f"curves {out / 'curves.svg'}\n" in capsys.readouterr().out
    drawn = (out / "curves.svg").read_text()
    words = ["".join(found.itertext()) for found in ET.fromstring(drawn).iter() if found.tag.endswith("text")]
    assert words[0] == "es on brandubh"
    assert {
        "games a second",
        "best",
        "median",
        "won against random",
        "decided by captures",
        "drawn",
        "1",
        "2",
        "3",
    } <= set(words)
    (out / "curves.svg").unlink()
    assert command.main(["curves", str(out)]) == 0
    assert capsys.readouterr().out == f"{out / 'curves.svg'}\n{out / 'curves.csv'}\n"
    assert (out / "curves.svg").read_text() == drawn
    assert command.main(["curves", str(out / "seed-1")]) == 0
    assert "seed 1" in (out / "seed-1/curves.svg").read_text()


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("", "no generation is finished: expected at least one"),
        ('{"generation": 1, "files": {}}\n', "expected logs as hnefi evolve writes them"),
        ('{"generation": 2}\n', "line 1: .* expected generation 1"),
    ],
)
def test_what_cannot_be_drawn(
    log: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert evolve("--generations", "1", "--out", str(out), "--quiet") == 0
    (out / "log.jsonl").write_text(log)
    assert command.main(["curves", str(out)]) == 2
    assert re.search(said, capsys.readouterr().err)
    assert command.main(["curves", str(tmp_path / "nowhere")]) == 2
    assert "expected the folder of a run" in capsys.readouterr().err


def test_a_player_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, name = tmp_path / "run", tmp_path / "my-player"
    assert evolve("--generations", "3", "--out", str(out), "--save-player", str(name)) == 0
    assert capsys.readouterr().out.endswith(f"player {name}.toml\n")
    table = tomllib.loads((tmp_path / "my-player.toml").read_text())
    assert table == {
        "description": "Evolved (es) on brandubh, seed 1, generation 3.",
        "algorithm": "minimax",
        "evaluator": "my-player.safetensors",
        "variant": "brandubh",
        "limits": {"depth": 1},
    }
    made = files.load(tmp_path / table["evaluator"], find("brandubh"))
    assert made.document["generation"] == 3


def test_lines_elsewhere_than_on_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evolve("--generations", "3", "--out", str(tmp_path / "run")) == 0
    first, last, where, drawn = capsys.readouterr().out.splitlines()
    assert first.startswith("es on brandubh, hingston2007 (871 weights), seed 1, into ")
    assert last.startswith("generation 3/3 · best ")
    assert where == f"seed 1: generation 3: {tmp_path / 'run' / 'champion.safetensors'}"
    assert drawn == f"curves {tmp_path / 'run/curves.svg'}"


@pytest.mark.parametrize("word", ["es", "resume"])
def test_the_first_line_says_that_a_run_is_continued(
    word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "run")
    assert evolve("--generations", "3", "--out", out, "--quiet") == 0
    again = evolve("--generations", "4", "--out", out) if word == "es" else command.main([word, out])
    assert again == 0
    first = capsys.readouterr().out.splitlines()[0]
    what = "es on brandubh, hingston2007 (871 weights), seed 1"
    assert first == f"continuing the run in {out} after generation 3: {what}"


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def report(generation: int) -> dict[str, Any]:
    return {
        "generation": generation,
        "best": 3.25,
        "median": 2,
        "matches": 50,
        "by_captures": 20,
        "drawn": 5,
        "games": 100,
    }


def test_the_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream, time = Terminal(), [100.0]
    shown = Progress(stream, {1: 0}, 10, describe=words, clock=lambda: time[0])
    time[0] += 60  # of them almost all for compiling
    shown.step(1, report(1))
    time[0] += 2
    shown.step(1, report(2))
    line = "generation 2/10 · best 3.25 median 2.00 · by captures 40 % · drawn 10 % · 50 games/s · ETA 0:16"
    assert shown.line() == line
    shown.end()
    assert "generation 2/10" in stream.getvalue()
    assert stream.getvalue().endswith("\n")


def test_the_line_of_several_runs() -> None:
    shown = Progress(io.StringIO(), {1: 0, 2: 4}, 10, describe=words, clock=iter(range(100)).__next__)
    shown.step(1, report(1))
    assert shown.line().startswith("2 runs · generation 1–4/10 · best 3.25")
    assert duration(3723.4) == "1:02:03"


def test_the_best_of_an_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The contest of these tests likes weights near 1: the ranking must find the champion who has them."""
    out = tmp_path / "run"
    assert evolve("--generations", "30", "--set", "sigma0=0.2", "--out", str(out), "--quiet") == 0
    before = {path: path.read_bytes() for path in out.rglob("*.safetensors")}
    assert command.main(["rank", str(out), "--pairs", "10"]) == 0
    said = capsys.readouterr().out
    found = json.loads((out / "rank" / "report.json").read_text())
    ranked = files.load(out / "rank" / "champion.safetensors", find("brandubh"))
    assert ranked.document["generation"] == found["generation"]
    assert f"generation {found['generation']} " in said

    def distance(path: Path) -> float:
        return float(np.abs(1 - files.genome(files.load(path))[:8]).sum())

    worth = sorted((out / "archive").iterdir(), key=distance)
    assert out / "archive" / f"gen-{found['generation']:04}.safetensors" in worth[:5]
    assert len(found["finalists"]) == 10
    assert set(found["confirmed"]) == {"random-blind", "random-terminal", "simple"}
    for one in found["confirmed"].values():
        assert sum(one["matches"]) == sum(one["attacking"]) == sum(one["defending"]) == 100
        low, high = one["won_95"]
        assert low < one["matches"][0] / 100 < high or one["matches"][0] == 100
    assert {path: path.read_bytes() for path in before} == before
    report_before = (out / "rank" / "report.json").read_bytes()
    assert command.main(["rank", str(out), "--pairs", "10", "--quiet", "--jobs", "1"]) == 0
    assert (out / "rank" / "report.json").read_bytes() == report_before


def test_the_best_survivors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that survived the last generation play on: the best of them, and the one that training called the fittest."""
    monkeypatch.setattr(rank, "FINALISTS", 2)
    out = tmp_path / "run"
    sizes = ("--set", "mu=14", "--set", "lambda=6", "--set", "sigma0=0.5", "--seed", "3")
    assert evolve("--generations", "3", *sizes, "--out", str(out), "--quiet") == 0
    assert command.main(["rank", str(out), "--pairs", "10", "--survivors"]) == 0
    said = capsys.readouterr().out
    found = json.loads((out / "rank" / "survivors.json").read_text())
    with safe_open(out / "state.safetensors", "np") as file:
        state = {name: file.get_tensor(name) for name in ("weights", "fitness")}
    distance = np.abs(1 - state["weights"][:, :8]).sum(axis=1)
    best = found["survivor"] - 1
    assert np.argsort(distance).tolist().index(best) < 4
    written = files.load(out / "rank" / "survivor.safetensors", find("brandubh"))
    assert np.array_equal(files.genome(written), state["weights"][best])
    assert written.document["generation"] == 3
    assert (
        list(found["fitness"].values()) == state["fitness"].tolist() == sorted(state["fitness"], reverse=True)
    )
    scores = list(found["scores"].values())
    assert len(scores) == 14
    assert found["correlation"] == pytest.approx(slow_spearman(list(found["fitness"].values()), scores))
    assert (
        f"rank correlation of the fitness in training with the first round's games: {found['correlation']:+.2f}"
        in said
    )
    ranked = {one["survivor"]: one["score"] for one in found["finalists"]}
    two = sorted(range(14), key=lambda i: -scores[i])[:2]
    assert 0 not in two
    assert set(ranked) == {i + 1 for i in two} | {1}, "the fittest always plays the second round"
    assert found["fittest"]["score"] == ranked[1]
    assert ("survivor 1, the fittest" in said) == (best != 0)
    assert not (out / "rank" / "report.json").exists()


def slow_spearman(one: list[float], other: list[float]) -> float:
    """Pearson's correlation of the mean ranks."""
    a, b = (
        [sum(x < y for x in values) + sum(x == y for x in values) / 2 for y in values]
        for values in (one, other)
    )
    return float(np.corrcoef(a, b)[0, 1])


def test_only_a_strategy_has_survivors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cma")
    out = tmp_path / "run"
    words = [
        "cma",
        "--variant",
        "brandubh",
        "--network",
        "linear",
        "--generations",
        "1",
        "--out",
        str(out),
        "--quiet",
    ]
    assert command.main(words) == 0
    assert command.main(["rank", str(tmp_path)]) == 2
    assert "config.toml: No such file" in capsys.readouterr().err
    (tmp_path / "many" / "seed-7").mkdir(parents=True)
    (tmp_path / "many" / "seed-7" / "config.toml").touch()
    assert command.main(["rank", str(tmp_path / "many")]) == 2
    assert f"many: 1 run: expected one of them, as {tmp_path / 'many' / 'seed-7'}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main(["rank", str(out), "--depth", "9"])
    assert "--depth 9: expected 1 to 8" in capsys.readouterr().err
    assert command.main(["rank", str(out), "--survivors"]) == 2
    assert f"--survivors: {out}: a run of cma: expected es" in capsys.readouterr().err


def test_limits_of_plies() -> None:
    """The variant's own, ours where it has none, or what is said; the archive names the variant as it is."""
    own = plan("es", find("hingston-original"), 1, {})
    assert (own.values["ply_limit"], own.played) == (100, own.variant)
    none = plan("es", find("copenhagen"), 1, {})
    assert (none.values["ply_limit"], none.played.rules.move_limit) == (200, 200)
    assert none.variant.hash == find("copenhagen").hash
    said = plan("es", find("hingston-original"), 1, {"ply_limit": 60})
    assert (said.played.rules.move_limit, said.played.rules.move_limit_unit) == (60, "plies")


@pytest.mark.parametrize(
    ("variant", "weights", "free"), [("hingston-original", 2463, 460), ("brandubh", 871, 218)]
)
def test_tied_weights_see_all_images_alike(variant: str, weights: int, free: int) -> None:
    """The numbers of free weights are counted by hand: at 11 x 11 89 of strips, 120 of patches, 251 behind them."""
    found, network = find(variant), parse("hingston2007")
    tied = encoding.encoding(network, found, "tied")
    assert (network.count(found), tied.size) == (weights, free)
    assert len(symmetries(found.rules)) == 8
    position = initial(found)
    position = position.play(position.legal_moves()[0])
    board = np.full((found.ranks, found.files), "1", dtype=object)
    for sq, letter in position.pieces():
        board[found.ranks - 1 - rank_of(sq), file_of(sq)] = letter
    rest = position.fen().partition(" ")[2]
    images = [
        "/".join(re.sub("1+", lambda run: str(len(run[0])), "".join(row)) for row in np.rot90(one, quarter))
        for one in (board, board.T)
        for quarter in range(4)
    ]
    assert len(set(images)) == 8

    def values(genome: Any) -> list[float]:
        arrays = network.split(found, genome)
        positions = [from_fen(found, f"{image} {rest}") for image in images]
        return [network.naive(found, arrays, one) for one in positions]

    draw = np.random.default_rng(1)
    shared = values(tied.weights(draw.standard_normal(tied.size)))
    np.testing.assert_allclose(shared, shared[0], rtol=1e-12)
    assert np.ptp(values(draw.standard_normal(weights))) > 1e-3


def test_networks_that_cannot_be_tied() -> None:
    with pytest.raises(options.OptionError, match="'tied' with simple: expected network hingston2007"):
        encoding.encoding(parse("simple"), find("brandubh"), "tied")
