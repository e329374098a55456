"""Runs and their folders: the same archive whatever happens on the way, and nothing damaged is gone on with."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import fake_contest
import numpy as np
import pytest
from evolve_parts import archive

from hnefi.engine import durable
from hnefi.engine.evaluators import files
from hnefi.engine.games import find
from hnefi.engine.selfplay import match as contest
from hnefi.tools.common.workers import in_threads
from hnefi.tools.evolve import command, folder, run, tournament
from hnefi.tools.evolve.contestants import Executor, _equal_parts, _falling_parts
from hnefi.tools.evolve.options import OptionError

DRIVER = Path(__file__).parents[1] / "support" / "evolve_driver.py"
SMALL = (
    "--variant",
    "brandubh",
    "--generations",
    "8",
    "--random-matches",
    "2",
    "--hall",
    "3",
    "--average",
    "0.5",
)


@pytest.fixture(autouse=True)
def _without_games(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest, "Table", fake_contest.Table)


def evolve(out: Path, *more: str, small: tuple[str, ...] = SMALL) -> int:
    return command.main(["es", *small, "--out", str(out), "--quiet", *more])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contest, "Table", fake_contest.Table)
        assert evolve(out, "--jobs", "1") == 0
    return archive(out)


def test_what_a_run_leaves(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert evolve(out, "--archive-every", "4") == 0
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()) == [
        *(f"archive/gen-000{number}.safetensors" for number in (0, 4, 8)),
        "champion.safetensors", "config.toml", "curves.csv", "curves.svg", "lock", "log.jsonl", "state.safetensors",
    ]  # fmt: skip
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [entry["generation"] for entry in log] == list(range(1, 9))
    assert log[0]["matches"] == 45 + 10 * 2
    assert log[7]["matches"] == 45 + 10 * 2 + 10 * 3
    assert log[7]["kinds"].keys() == {"peers", "random", "past"}
    config = folder.read_config(out)
    assert (config["lambda"], config["rules_hash"]) == (5, find("brandubh").hash)
    assert config["sigma0"] == 1 / np.sqrt(config["weights"])


def test_an_archive_tells_where_it_comes_from(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert evolve(out, "--seed", "5") == 0
    read = [files.load(path, find("brandubh")) for path in sorted((out / "archive").iterdir())]
    documents = [one.document for one in read]
    assert [document["generation"] for document in documents] == list(range(9))
    assert {document["seed"] for document in documents} == {5}
    trainer = documents[3]["trainer"]
    assert (trainer["name"], trainer["mu"], trainer["hall"], trainer["tau"]) == ("evolve es", 5, 3, "printed")
    assert documents[0]["parents"] == []
    assert all(document["born"] <= document["generation"] for document in documents)
    born = [document for document in documents if document["born"]]
    assert born
    assert all(re.fullmatch("[0-9a-f]{64}", document["parents"][0]) for document in born)
    (champion,) = (document for document in documents if document["generation"] == 8)
    assert files.load(out / "champion.safetensors").document["genome"] == champion["genome"]


def test_evolution_finds_what_fitness_asks_for(tmp_path: Path) -> None:
    """The contest of this test likes weights near 1."""
    out = tmp_path / "run"
    assert evolve(out, "--set", "sigma0=0.2", small=("--variant", "brandubh", "--generations", "40")) == 0
    names = sorted((out / "archive").iterdir())
    first, last = (np.abs(1 - files.genome(files.load(name))[:8]).mean() for name in (names[0], names[-1]))
    assert first > 0.99
    assert last < 0.5


@pytest.mark.parametrize("jobs", ["2", "3"])
def test_any_number_of_threads(tmp_path: Path, undisturbed: str, jobs: str) -> None:
    assert evolve(tmp_path / "run", "--jobs", jobs) == 0
    assert archive(tmp_path / "run") == undisturbed


def test_another_seed_is_another_run(tmp_path: Path, undisturbed: str) -> None:
    assert evolve(tmp_path / "run", "--seed", "2") == 0
    assert archive(tmp_path / "run") != undisturbed


def test_fewer_generations_first(
    tmp_path: Path, undisturbed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert evolve(out, "--generations", "3") == 0
    assert command.main(["resume", str(out), "--generations", "8", "--quiet"]) == 0
    assert archive(out) == undisturbed
    assert folder.read_config(out)["generations"] == 8
    assert evolve(out, "--generations", "3") == 0
    assert archive(out) == undisturbed
    assert folder.read_config(out)["generations"] == 8
    # Whoever asks for what is there already is not left to guess why nothing happens.
    capsys.readouterr()
    assert command.main(["resume", str(out), "--generations", "8"]) == 0
    assert f"nothing to evolve: generation 8 is finished; for more:\n  hnefi evolve resume {out}" in (
        capsys.readouterr().out
    )


def start(*words: str, pace: float) -> subprocess.Popen[str]:
    """A process of its own in which games take `pace` seconds."""
    return subprocess.Popen(
        [sys.executable, str(DRIVER), "evolve", *words],
        env=os.environ | {"HNEFI_TEST_PACE": str(pace)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def reached(out: Path) -> int:
    log = out / "log.jsonl"
    return log.read_text().count("\n") if log.exists() else 0


def wait_for(out: Path, generation: int, program: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 200
    while reached(out) < generation and program.poll() is None and time.monotonic() < until:
        time.sleep(0.002)


@pytest.mark.process
def test_killed_at_any_moment(tmp_path: Path, undisturbed: str) -> None:
    out = tmp_path / "run"
    dice = random.Random(1)
    kills = late = 0
    while kills < 6 and late < 10:
        words = (
            ["es", *SMALL, "--out", str(out), "--quiet"]
            if kills % 2 == 0 or not out.exists()
            else ["resume", str(out), "--quiet"]
        )
        program = start(*words, pace=0.05)
        wait_for(out, reached(out) + 1, program)
        time.sleep(dice.random() * 0.05)
        program.kill()
        program.communicate()
        if program.returncode == 0:
            # It was killed too late, perhaps as this machine is busy: once more from the start.
            assert archive(out) == undisturbed
            shutil.rmtree(out)
            late += 1
            continue
        kills += 1
    assert kills == 6
    assert command.main(["resume", str(out), "--quiet"]) == 0
    assert archive(out) == undisturbed


@pytest.mark.parametrize("moment", ["champion", "archive", "log", "state"])
def test_killed_between_two_files(
    tmp_path: Path, undisturbed: str, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Whatever of a generation was written already, it is done again."""
    out = tmp_path / "run"
    names = {"champion": "champion", "archive": "gen-", "log": "state", "state": "state"}
    written = []

    def dying(path: Path, data: bytes, **draft: Path) -> None:
        written.append(path.name)
        if sum(name.startswith(names[moment]) for name in written) == 4:
            if moment == "state":
                path.with_name(f"{path.name}.new").write_bytes(data[:100])
            raise SystemExit(9)
        before(path, data, **draft)

    before = durable.put
    if moment == "champion":
        monkeypatch.setattr(
            folder, "save_champion", lambda path, *rest: (dying(path, b""), saved(path, *rest))[1]
        )
    else:
        monkeypatch.setattr(durable, "put", dying)
    with pytest.raises(SystemExit):
        evolve(out)
    monkeypatch.setattr(durable, "put", before)
    monkeypatch.setattr(folder, "save_champion", saved)
    assert evolve(out) == 0
    assert archive(out) == undisturbed


saved = folder.save_champion


def test_a_disk_that_is_full(
    tmp_path: Path, undisturbed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(path: Path, data: bytes, **draft: Path) -> None:
        if path.name == "gen-0005.safetensors":
            raise OSError(errno.ENOSPC, "No space left on device")
        before(path, data, **draft)

    before, out = durable.put, tmp_path / "run"
    monkeypatch.setattr(durable, "put", full)
    assert evolve(out) == 4
    assert "No space left on device: expected a folder that can be written to" in capsys.readouterr().err
    assert len(folder.read_log(out)) == 4
    monkeypatch.setattr(durable, "put", before)
    assert evolve(out) == 0
    assert archive(out) == undisturbed


@pytest.mark.process
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_interrupted_from_the_keyboard(tmp_path: Path, undisturbed: str) -> None:
    out = tmp_path / "run with blanks"
    program = start("es", *SMALL, "--out", str(out), pace=0.5)
    wait_for(out, 2, program)
    program.send_signal(signal.SIGINT)
    said, complaint = program.communicate(timeout=200)
    assert program.returncode == 1
    assert "Traceback" not in complaint
    kept = re.search(r"interrupted: (\d+) of 8 generations are kept", complaint)
    assert kept
    assert 2 <= int(kept[1]) == len(folder.read_log(out)) < 8
    assert complaint.splitlines()[-1] == f"  hnefi evolve resume '{out}'"
    assert said.startswith("es on brandubh")
    assert command.main(["resume", str(out), "--quiet"]) == 0
    assert archive(out) == undisturbed


def test_another_configuration_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert evolve(out) == 0
    before = archive(out)
    assert evolve(out, "--mu", "6", "--set", "tau=schwefel", "--seed", "2") == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"hnefi evolve: {out}: the folder of another run:"
    assert lines[1:] == ["  seed: was 1, is 2", "  mu: was 5, is 6", "  tau: was 'printed', is 'schwefel'"]
    assert archive(out) == before


def test_one_writer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert evolve(out, "--generations", "1") == 0
    plan, named = command._planned(command._evolve_parser("es"), out)
    with folder.Folder(out, plan, folder.config_of(plan, *named)):
        assert evolve(out) == 2
    assert "another process is writing to it" in capsys.readouterr().err
    assert evolve(out) == 0


def damage(name: str) -> Any:
    def flipped(data: bytes) -> bytes:
        middle = len(data) - 100
        return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]

    return {
        "config cut": ("config.toml", lambda data: data[: len(data) // 2]),
        "config word": ("config.toml", lambda data: data.replace(b'"printed"', b'"guessed"')),
        "config number": ("config.toml", lambda data: data.replace(b"mu = 5", b"mu = -5")),
        "config options": ("config.toml", lambda data: data.replace(b"mu = 5", b"mu = 6")),
        "config binary": ("config.toml", lambda _: b"\xff\x00\x01"),
        "config gone": ("config.toml", None),
        "log gone": ("log.jsonl", None),
        "log cut": ("log.jsonl", lambda data: data.split(b"\n")[0] + b"\n"),
        "log torn": ("log.jsonl", lambda data: data.replace(b"matches", b'"', 1)),
        "state gone": ("state.safetensors", None),
        "state cut": ("state.safetensors", lambda data: data[:-8]),
        "state flipped": ("state.safetensors", flipped),
        "state header": ("state.safetensors", lambda data: b"\xff" * 8 + data[8:]),
        "state empty": ("state.safetensors", lambda _: b""),
        "archive gone": ("archive/gen-0003.safetensors", None),
        "archive flipped": ("archive/gen-0003.safetensors", flipped),
    }[name]


@pytest.mark.parametrize(
    "name",
    ["config cut", "config word", "config number", "config options", "config binary", "config gone", "log gone",
     "log cut", "log torn", "state gone", "state cut", "state flipped", "state header", "state empty",
     "archive gone", "archive flipped"],
)  # fmt: skip
def test_damaged_folders_are_refused(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert evolve(out, "--generations", "4") == 0
    file, change = damage(name)
    if change is None:
        (out / file).unlink()
    else:
        (out / file).write_bytes(change((out / file).read_bytes()))
    assert command.main(["resume", str(out), "--quiet"]) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith("hnefi evolve: ")
    assert file in complaint
    assert "expected" in complaint


def test_a_state_of_another_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evolve(tmp_path / "one") == 0
    assert evolve(tmp_path / "two", "--seed", "2") == 0
    state = "state.safetensors"
    (tmp_path / "one" / state).write_bytes((tmp_path / "two" / state).read_bytes())
    assert evolve(tmp_path / "one") == 2
    assert "the state of another run" in capsys.readouterr().err


def test_a_hall_holds_any_champion_as_likely() -> None:
    """Of 40 champions 4 stay: each about as often as any other."""
    counts = np.zeros(40)
    for seed in range(400):
        hall = np.zeros((0, 1))
        for generation in range(1, 41):
            hall = tournament._remember(hall, np.array([generation - 1.0]), 4, seed, generation)
        assert len(set(hall.ravel())) == 4
        counts[hall.ravel().astype(int)] += 1
    assert counts.sum() == 1600
    assert abs(counts[:20].sum() - 800) < 60
    assert counts.min() > 15
    assert counts.max() < 75


def test_tied_weights_run(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert evolve(out, "--symmetric", "tied", "--generations", "2") == 0
    config = folder.read_config(out)
    document = files.load(out / "champion.safetensors", find("brandubh")).document
    assert document["trainer"]["free_weights"] == config["weights"] < 871


def test_plans_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {
        "--network nonsense": "expected one of",
        "--network simple": "expected one with weights",
        "--variant hex:5": "expected a network for hex: mlp\n",
        "--mu 0": "mu: '0': expected a whole number from 1 to",
        "--mu 99999999999999999999999999999999999999999999": "mu: '9999",
        "--average 0": "average: '0': expected a number from 1e-06 to 1",
        "--average nan": "average: 'nan'",
        "--tau x": "tau: 'x': expected printed or schwefel",
        "--set taus=x": "did you mean tau?",
        "--set tau": "expected name=value",
        "--random-matches 0 --pair-games 0": "expected matches of at least one kind: a hall begins empty",
        "--save-player ../no/where": "expected a folder that is there",
        "--save-player a\nb": "expected letters",
        "--seeds 2 --save-player x": "expected one run",
    }
    for words, complaint in wrong.items():
        assert evolve(tmp_path / "run", *words.split(" ")) == 2, words
        assert complaint in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert command.main(["resume", str(tmp_path / "nothing")]) == 2
    assert "expected the folder of a run" in capsys.readouterr().err
    (tmp_path / folder.CONFIG).write_text('format = 1\nalgorithm = "es"\n')
    assert command.main(["resume", str(tmp_path)]) == 2
    assert (
        "code: missing: expected every option; a run of an older version of hnefi" in capsys.readouterr().err
    )
    (tmp_path / "file").write_text("")
    assert evolve(tmp_path / "file") == 4
    assert "expected a folder to write to" in capsys.readouterr().err


def test_parts_of_a_generation_are_all_of_it() -> None:
    for matches in (0, 1, 2, 7, 145):
        for number in (1, 2, 3, 100):
            parts = _equal_parts(matches, number)
            assert sorted(np.concatenate(parts).tolist()) == list(range(matches))
            assert len(parts) == max(1, min(number, matches))
            assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_parts_for_threads_become_smaller() -> None:
    for matches in (1, 2, 7, 145, 2000):
        assert [part.tolist() for part in _falling_parts(matches, 1)] == [list(range(matches))]
        for workers in (2, 3, 100):
            parts = _falling_parts(matches, workers)
            assert sorted(np.concatenate(parts).tolist()) == list(range(matches))
            sizes = [len(part) for part in parts]
            assert sizes == sorted(sizes, reverse=True)
            assert sizes[-1] == 1
            assert sizes[0] <= max(1, matches // (2 * workers))
    # Neighbours, which are alike, are apart: no part of many matches is a stretch of them.
    assert all(np.abs(np.diff(part)).min() > 1 for part in _falling_parts(160, 2) if len(part) > 1)
    assert _falling_parts(0, 2) == []


def test_a_failing_worker_is_heard_of() -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        list(in_threads([fail, fail], 2))
    assert Executor(2).backend == ""


def test_a_run_begins_where_it_is_told(tmp_path: Path) -> None:
    first = tmp_path / "first"
    assert evolve(first, "--generations", "2") == 0
    champion = first / "champion.safetensors"
    weights = files.genome(files.load(champion))
    variant = find("brandubh")
    for algorithm, spread in (("es", 0.25), ("cma", 0.25)):
        made = run.plan(algorithm, variant, 7, {"start": str(champion), "init_scale": 0.0, "sigma0": spread})
        np.testing.assert_array_equal(made.start, weights)
        assert made.values["start"].startswith(f"{champion}#sha256=")
        again = run.plan(algorithm, variant, 7, dict(made.values))
        np.testing.assert_array_equal(again.start, weights)
        if algorithm == "es":
            np.testing.assert_array_equal(made.build().begin()["weights"], np.tile(weights, (5, 1)))
    linear = run.plan("es", variant, 7, {"start": "default", "network": "linear"})
    np.testing.assert_array_equal(linear.start[:2], [110, 220])
    champion.write_bytes((first / "archive" / "gen-0000.safetensors").read_bytes())
    with pytest.raises(OptionError, match="has changed since the run began"):
        run.plan("es", variant, 7, dict(made.values) | {"lambda": 5})


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"start": "default"}, "'default' with hingston2007"),
        ({"start": "nowhere.safetensors"}, "nowhere.safetensors"),
        ({"start": "default", "network": "linear", "symmetric": "tied"}, "tied"),
    ],
)
def test_starts_that_are_none_are_refused(said: dict[str, str], expected: str) -> None:
    with pytest.raises(OptionError, match=expected):
        run.plan("es", find("brandubh"), 1, said)


def test_a_start_of_another_architecture_is_refused(tmp_path: Path) -> None:
    assert evolve(tmp_path / "run", "--generations", "1") == 0
    champion = str(tmp_path / "run" / "champion.safetensors")
    with pytest.raises(OptionError, match="expected linear on this board"):
        run.plan("es", find("brandubh"), 1, {"start": champion, "network": "linear"})
