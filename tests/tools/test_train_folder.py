"""The folder of a training: what is missing or altered in it is noticed before anything is played."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hnefi.engine.catalogue import FOLDER
from hnefi.engine.evaluators import NETWORKS
from hnefi.tools.arena.store import StorageFailed, Store
from hnefi.tools.common.live import Live
from hnefi.tools.train import command, config, gate, plots, run, shards

LINE = ["brandubh", "--network=nnue:32", "--games=20", "--nodes=20,40", "--epochs=2", "--strays=0", "--plain"]


def decide(folder: Path, *_: Any) -> gate.Verdict:
    """A test without games: the first candidate is taken, others are not."""
    word = "H1" if folder.parent.name == "round-001" else "H0"
    return gate.Verdict(word, 3.0, 1, gate.Side(1, 0, 0), gate.Side(1, 0, 0))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training of two finished rounds, whose teacher is a file."""
    place = tmp_path_factory.mktemp("made")
    shutil.copy(NETWORKS["net-brandubh-2"], place / "teacher.safetensors")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate, "play", decide)
        teacher = f"--teacher={place / 'teacher.safetensors'}"
        assert command.main([*LINE, teacher, "--rounds=2", "--out", str(place / "t")]) == 0
    return place


@pytest.fixture
def training(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it; nothing may be played."""

    def play(*_: Any) -> bytes:
        raise AssertionError("games are played")

    monkeypatch.setattr(run, "play", play)
    return Path(shutil.copytree(made / "t", tmp_path / "t"))


def shard(folder: Path) -> Path:
    return folder / "round-001" / shards.name_of(0)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


DAMAGES: list[tuple[Callable[[Path], Any], str]] = [
    (
        lambda t: (t / "round-001" / shards.LIST).write_text(""),
        "round-001/shards.jsonl: 0 games: expected all 20 of a finished round; put the files back",
    ),
    (lambda t: shutil.rmtree(t / "round-001"), "round-001/shards.jsonl: 0 games: expected all 20"),
    (lambda t: flip(shard(t)), "round-001/games-000000.npy: altered: expected SHA-256 "),
    (lambda t: shard(t).unlink(), "round-001/games-000000.npy: No such file or directory: expected the pos"),
    (
        lambda t: edit(t / "round-001" / shards.LIST, '"games": 20', '"games": "20"'),
        "round-001/shards.jsonl: line 1: expected a file of positions and its SHA-256",
    ),
    (
        lambda t: edit(t / run.LOG, '"verdict": "H0"', '"verdict": 7'),
        "log.jsonl: line 2: gate: expected the outcome of the round's test",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("damage", "said"), DAMAGES)
def test_games_that_are_not_whole_are_refused_before_any_is_played(
    damage: Callable[[Path], Any], said: str, training: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(training)
    assert command.main(["--resume", str(training), "--rounds=3", "--plain"]) == 2
    assert said in capsys.readouterr().err
    assert not (training / "round-003").exists()
    other = training.parent / "other"
    assert command.main([*LINE, "--also", str(training), "--out", str(other)]) == 2
    assert said in capsys.readouterr().err
    assert not other.exists()


@pytest.mark.slow
def test_rounds_that_are_no_longer_learned_from_may_go(training: Path) -> None:
    edit(training / run.CONFIG, "window = 3", "window = 1")
    shard(training).unlink()
    assert command.main(["--resume", str(training), "--plain"]) == 0
    with pytest.raises(AssertionError, match="games are played"):
        command.main(["--resume", str(training), "--rounds=3", "--plain"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("blend = 0.7", "blend = 7.0", "config.toml: blend = 7.0: expected a number from 0 to 1"),
        ("nodes = [20, 40]", "nodes = []", "config.toml: nodes = []: expected at least one number"),
        ("nodes = [20, 40]", 'nodes = [20, "x"]', "nodes = [20, 'x']: expected numbers from 1 to 100000000"),
        ("also = []", "also = [7]", "config.toml: also = [7]: expected names of folders"),
        ("seed = 1", "seed = 1\nsed = 2", "config.toml: 'sed': expected only options of `hnefi train`"),
        ("format = 2", "", "config.toml: no format: expected the folder of a training"),
    ],
)
def test_an_edited_configuration_is_refused(
    old: str, new: str, said: str, training: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(training / run.CONFIG, old, new)
    assert command.main(["--resume", str(training), "--rounds=3"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_files_that_a_training_follows_from_stay_the_same(
    made: Path, training: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    teacher = tmp_path / "teacher.safetensors"
    shutil.copy(made / "teacher.safetensors", teacher)
    edit(training / run.CONFIG, str(made / "teacher.safetensors"), str(teacher))
    assert command.main(["--resume", str(training), "--plain"]) == 0
    shutil.copy(training / run.BEST, teacher)
    assert command.main(["--resume", str(training), "--plain"]) == 2
    said = capsys.readouterr().err
    assert f"{teacher}: SHA-256 " in said
    assert "as --teacher was when the training in" in said
    # A training of hnefi 0.2.0 named none; what is there is kept from now on.
    path = training / run.CONFIG
    path.write_text("".join(line for line in path.read_text().splitlines(True) if "_sha256" not in line))
    assert command.main(["--resume", str(training), "--plain"]) == 0
    shutil.copy(made / "teacher.safetensors", teacher)
    assert command.main(["--resume", str(training), "--plain"]) == 2


@pytest.mark.slow
def test_the_best_net_is_restored(training: Path, capsys: pytest.CaptureFixture[str]) -> None:
    best, net = training / run.BEST, training / "round-001" / run.NET
    whole = best.read_bytes()
    for damage in (lambda: flip(best), best.unlink, net.unlink, lambda: flip(net)):
        damage()
        assert command.main(["--resume", str(training), "--plain"]) == 0
        assert "missing or altered: written again from" in capsys.readouterr().out
        assert best.read_bytes() == net.read_bytes() == whole
    # The net of another round is not the best one.
    shutil.copy(training / "round-002" / run.NET, best)
    net.unlink()
    assert command.main(["--resume", str(training), "--plain"]) == 2
    assert "expected the net that passed the test of round 1, as log.jsonl says" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("text", [None, "", '{"a": 1}\n', '{"learned": NaN, "held_out": 0.5}\n', "x\n"])
def test_curves_leave_out_what_cannot_be_read(
    text: str | None, training: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    epochs = training / "round-001" / run.EPOCHS
    epochs.unlink()
    if text is not None:
        epochs.write_text(text)
    (training / plots.LOSSES).unlink()
    assert command.main(["--plots", str(training)]) == 0
    said = capsys.readouterr().out
    assert "round-001/epochs.jsonl: " in said
    assert "round 1 is left out of losses.svg" in said
    assert (training / plots.LOSSES).exists()
    (training / plots.LOSSES).unlink()
    (training / "round-002" / run.EPOCHS).unlink()
    assert command.main(["--plots", str(training)]) == 0
    assert "round 2 is left out of losses.svg" in capsys.readouterr().out
    assert not (training / plots.LOSSES).exists()


@pytest.mark.slow
def test_rounds_are_never_taken_away(training: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--resume", str(training), "--rounds=1", "--plain"]) == 0
    assert "rounds: 2 as before, not 1: more can be added" in capsys.readouterr().out
    assert config.read_config(training)["rounds"] == 2


@pytest.mark.slow
def test_an_error_of_the_disk_names_the_file(training: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (training / plots.LOSSES).unlink()
    (training / plots.LOSSES).mkdir()
    assert command.main(["--plots", str(training)]) != 0
    assert f"hnefi train: {training / plots.LOSSES}: " in capsys.readouterr().err


@pytest.mark.slow
def test_too_few_games_are_said_to_need_another_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([*LINE, "--games=1", "--out", str(tmp_path / "t")]) == 2
    assert "begin another training with more --games, in another --out" in capsys.readouterr().err


def test_corners_are_part_of_the_board(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path(FOLDER, "brandubh.toml").read_text().replace('name = "brandubh"', 'name = "bare"')
    text = text.replace("[rules]", '[rules]\ncorners = "none"\nescape = "edge"')
    (tmp_path / "bare.toml").write_text(text)
    line = [str(tmp_path / "bare.toml"), *LINE[1:], "--also", str(made / "t"), "--out", str(tmp_path / "out")]
    assert command.main(line) == 2
    said = "games of brandubh: expected a training that begins on the board of bare, with the same throne and corners"
    assert said in capsys.readouterr().err


# The test against the best


@pytest.mark.slow
def test_an_own_variant_is_trained_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path(FOLDER, "brandubh.toml").read_text()
    own = [line for line in text.splitlines() if not line.startswith("aliases")]
    (tmp_path / "mine.toml").write_text("\n".join(own).replace('name = "brandubh"', 'name = "mine"'))
    (tmp_path / "brandubh.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        command.main(["brandubh.toml", *LINE[1:]])
    assert "'brandubh': expected a name that no shipped variant has" in capsys.readouterr().err
    assert command.main(["mine.toml", *LINE[1:], "--rounds=1", "--gate-pairs=1", "--gate-nodes=20"]) == 0
    # Its net plays the next round, wherever that is begun.
    log = tmp_path / "train-mine" / run.LOG
    edit(log, f'"verdict": "{json.loads(log.read_text())["gate"]["verdict"]}"', '"verdict": "H1"')
    monkeypatch.chdir("/")
    assert command.main(["--resume", str(tmp_path / "train-mine"), "--rounds=2", "--plain"]) == 0
    assert "round 2 of 2, games by the net of round-001" in capsys.readouterr().out
    assert [line["gate"]["pairs"] for line in config.read_log(tmp_path / "train-mine")] == [1, 1]


class Told(Live):
    """What is said, and the lines that a terminal would show for a moment."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.lines: list[str] = []

    def step(self, line: Callable[[], str], *, last: bool = False) -> None:  # noqa: ARG002
        self.steps.append(line())

    def report(self, lines: Any, *, colour: str = "") -> None:  # noqa: ARG002
        self.lines += lines


VALUES = {"gate_pairs": 3, "gate_nodes": 20, "elo0": 0.0, "elo1": 60.0}


def test_a_gate_shows_the_openings_that_it_makes(tmp_path: Path) -> None:
    told = Told()
    verdict = gate.play(tmp_path / "gate", "mini-four", "default", "zero", VALUES, 1, ("", 1), told)
    assert told.steps[:3] == [f"gate: openings {number}/3" for number in (1, 2, 3)]
    assert verdict.pairs <= 3
    assert "after 1 pair (" in gate.Verdict("H1", 3.0, 1, gate.Side(), gate.Side()).lines()[0]


def test_only_the_training_says_how_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = gate._Screen(told := Told(), "gate")
    screen.end("interrupted; continue with\nhnefi arena resume x", "interrupted")
    assert told.lines == []

    def full(*_: Any) -> None:
        raise StorageFailed("disk full")

    monkeypatch.setattr(Store, "append", full)
    with pytest.raises(StorageFailed, match=r"^disk full$"):
        gate.play(tmp_path / "gate", "mini-four", "default", "zero", VALUES, 1, ("", 1), told)
    assert not [line for line in told.lines if "arena resume" in line]
