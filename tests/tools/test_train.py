"""`hnefi train`: tests against the best, the whole loop, and that nothing is lost."""

from __future__ import annotations

import io
import json
import shutil
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hnefi.engine import durable, games
from hnefi.engine.evaluators import files
from hnefi.engine.score import WON
from hnefi.tools.common import calibration
from hnefi.tools.common.live import Live
from hnefi.tools.train import command, config, gate, inputs, learner, plots, run, shards
from hnefi.tools.train.games import UNKNOWN, Series, play

SMALL = {"network": "nnue:32", "rounds": 2, "games": 12, "nodes": [20, 40], "epochs": 3, "gate_pairs": 2}


# The test against the best


def test_a_gate_tells_who_is_stronger(tmp_path: Path) -> None:
    values = {"gate_pairs": 30, "gate_nodes": 60, "elo0": 0.0, "elo1": 60.0}
    said = io.StringIO()
    given = ("brandubh", "default", "zero", values, 1, ("", 1), Live(said, plain=True))
    verdict = gate.play(tmp_path / "gate", *given)
    assert verdict.accepted
    assert verdict.llr > 2.9
    assert verdict.attacking.games == verdict.defending.games >= verdict.pairs
    assert verdict.defending.won > verdict.defending.lost
    # A finished run is only read.
    assert gate.play(tmp_path / "gate", *given) == verdict
    assert "as attackers +" in verdict.lines()[1]
    assert gate.Side(**verdict.as_json()["attacking"]) == verdict.attacking


# The whole loop


class Crash(BaseException):
    """The process is gone."""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Tests without games: the first candidate is taken, the second is not. Who met whom."""
    met: list[tuple[str, str]] = []

    def decide(folder: Path, variant: str, candidate: str, best: str, *_: Any) -> gate.Verdict:
        assert variant in ("mini-four", "brandubh", "brandubh-walker")
        met.append((candidate, best))
        (word,) = ("H1",) if folder.parent.name == "round-001" else ("H0",)
        return gate.Verdict(word, 3.0, 2, gate.Side(1, 0, 1), gate.Side(2, 0, 0))

    monkeypatch.setattr(gate, "play", decide)
    monkeypatch.setattr(run, "SHARD_GAMES", 6)
    return met


def trained(folder: Path, live: Live | None = None, games_of: int = 30) -> run.Training:
    variant: Any = games.find("mini-four")
    live = live or Live(io.StringIO(), plain=True)
    training = run.Training(folder, variant, "mini-four", SMALL | {"games": games_of}, live)
    training.go_on(run.Hands(), lambda: None)
    return training


def content(folder: Path) -> dict[str, bytes]:
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    lines = [json.loads(line) for line in found.pop(run.LOG).splitlines()]
    for line in lines:
        del line["cpu_here"]
    return {**found, run.LOG: json.dumps(lines).encode()}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("said", "nodes"),
    [
        (["--nodes-a=30,50"], ((30, 50), (20, 40))),
        (["--nodes-d=30"], ((20, 40), (30,))),
        (["--nodes-a=50", "--nodes-d=30"], ((50,), (30,))),
    ],
)
def test_one_side_is_given_more_nodes(
    said: list[str], nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def spy(series: Series, first: int, count: int) -> bytes:
        seen.append(series.nodes)
        return play(series, first, count)

    monkeypatch.setattr(run, "play", spy)
    line = [
        "mini-four",
        "--network=nnue:32",
        "--rounds=1",
        "--games=30",
        "--nodes=20,40",
        "--epochs=1",
        "--plain",
    ]
    assert command.main([*line, *said, "--out", str(tmp_path / "t")]) == 0
    assert set(seen) == {nodes}


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_games_of_another_training_are_learned_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    variant: Any = games.find("mini-four")
    live = Live(io.StringIO(), plain=True)
    other = trained(tmp_path / "other")
    alone, both = (
        run.Training(
            tmp_path / name,
            variant,
            "mini-four",
            SMALL | {"games": 30, "seed": 2, "rounds": 1, "also": also},
            live,
        )
        for name, also in (("alone", []), ("both", [str(tmp_path / "other")]))
    )
    for training in (alone, both):
        training.go_on(run.Hands(), lambda: None)
    theirs = [shards.read(other.place(number), variant.size) for number in (1, 2)]
    quiet = [rows[inputs.quiet(rows) & ~inputs.held_out(rows)] for rows in theirs]
    assert both.log[0]["positions"] == alone.log[0]["positions"] + sum(map(len, quiet))
    # One round of few games says little about what a logit is worth.
    ended = np.concatenate([*theirs, shards.read(both.place(1), variant.size)])
    ended = ended[ended["result"] != UNKNOWN]
    slope, level = calibration.scale_of(ended["score"], ended["result"] / 2)
    assert both.log[0]["scale"] == [round(slope, 4), round(level, 4)] != alone.log[0]["scale"]
    made = files.load(str(both.place(1) / run.NET), variant)
    assert made.document["trainer"]["also"] == ["other"]
    assert made.document["output"]["scale"] == pytest.approx(calibration.LOGIT / slope)
    assert str(tmp_path) not in json.dumps(made.document)

    line = ["mini-four", "--out", str(tmp_path / "new"), "--plain", "--also"]
    assert command.main([*line, str(tmp_path / "nothing")]) == 2
    assert f"{tmp_path / 'nothing' / run.CONFIG}: No such file" in capsys.readouterr().err
    assert command.main(["brandubh", *line[1:], str(tmp_path / "other")]) == 2
    assert (
        "other: games of mini-four: expected a training that begins on the board of brandubh, with the same throne and"
        in capsys.readouterr().err
    )
    for place in (tmp_path / "other").glob("round-*"):
        shutil.rmtree(place)
    (tmp_path / "other" / run.LOG).unlink()
    assert command.main([*line, str(tmp_path / "other")]) == 2
    assert "other: no games: expected the folder of a training with some" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "changed", "fits"),
    [
        ("magpie", {}, True),
        ("tablut-herr-7", {}, False),  # other places at the start
        ("magpie", {"rules_hash": "0" * 64}, False),  # rules that its name no longer stands for
        ("nowhere", {"rules_hash": "0" * 64}, False),
    ],
)
def test_games_of_which_other_rules_are_learned_from(word: str, changed: dict[str, str], fits: bool) -> None:
    brandubh: Any = games.find("brandubh")
    stored = {"variant": word, **(changed or {"rules_hash": games.find(word).hash})}
    assert config._same_board(stored, brandubh) is fits


@pytest.mark.slow
def test_games_by_other_rules_teach_and_do_not_examine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        gate, "play", lambda *_: gate.Verdict("H0", 0.0, 2, gate.Side(1, 0, 0), gate.Side(1, 0, 0))
    )
    monkeypatch.setattr(run, "SHARD_GAMES", 12)
    values = SMALL | {"games": 12, "rounds": 1, "nodes": [30, 60]}
    done = {}
    for name, word, also in (
        ("other", "brandubh", []),
        ("alone", "magpie", []),
        ("both", "magpie", [str(tmp_path / "other")]),
    ):
        variant: Any = games.find(word)
        live = Live(io.StringIO(), plain=True)
        done[name] = run.Training(tmp_path / name, variant, word, values | {"also": also}, live)
        done[name].go_on(run.Hands(), lambda: None)
    theirs = shards.read(done["other"].place(1), variant.size)
    alone, both = (done[name].log[0] for name in ("alone", "both"))
    assert both["positions"] == alone["positions"] + np.count_nonzero(inputs.quiet(theirs))
    assert both["held_out"] == alone["held_out"]


@pytest.mark.slow
def test_a_training_survives_every_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: list[tuple[str, str]]
) -> None:
    """It ends at every seventh write, in the middle of a line or just behind it, and goes on: in the end the folder is
    the same, byte for byte."""
    said = io.StringIO()
    training = trained(tmp_path / "whole", Live(said, plain=True))
    first = str(tmp_path / "whole" / "round-001" / run.NET)
    assert quick == [(first, "default"), (str(tmp_path / "whole" / "round-002" / run.NET), first)]
    assert training.best == first
    assert (tmp_path / "whole" / run.BEST).read_bytes() == Path(first).read_bytes()
    assert "round 2 of 2, games by the net of round-001" in said.getvalue()
    evaluator = files.load(first, games.find("mini-four"))
    assert evaluator.document["trainer"]["games"] == 30
    assert evaluator.network.text == "nnue:32"

    put, append = durable.put, durable.append_line
    writes = 0
    at = 10**9

    def counted(write: Any, path: Path, data: bytes, **named: Any) -> None:
        nonlocal writes
        writes += 1
        if writes % at == 0 and writes // at % 2:
            if write is append:
                with path.open("ab") as file:
                    file.write(data[: len(data) // 2])
            raise Crash
        write(path, data, **named)
        if writes % at == 0:
            raise Crash

    monkeypatch.setattr(durable, "put", lambda *a, **k: counted(put, *a, **k))
    monkeypatch.setattr(durable, "append_line", lambda *a, **k: counted(append, *a, **k))
    at, crashes = 7, 0
    while True:
        try:
            trained(tmp_path / "crashed")
            break
        except Crash:
            crashes += 1
    assert crashes > 4
    whole, crashed = content(tmp_path / "whole"), content(tmp_path / "crashed")
    assert whole.keys() == crashed.keys()
    assert [name for name in whole if whole[name] != crashed[name]] == []


@pytest.mark.slow
def test_lessons_begin_with_another_net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a step of its own, each round's net is that one, under the rules that it is trained for."""
    monkeypatch.setattr(
        gate, "play", lambda *_: gate.Verdict("H0", 0.0, 2, gate.Side(1, 0, 0), gate.Side(1, 0, 0))
    )
    first = trained(tmp_path / "first", games_of=12)
    mine = first.place(1) / run.NET
    values = SMALL | {"games": 12, "init": str(mine), "seed": 2, "rate": 0.0}
    variant: Any = games.find("mini-six")
    second = run.Training(tmp_path / "second", variant, "mini-six", values, Live(io.StringIO(), plain=True))
    second.go_on(run.Hands(), lambda: None)
    own = files.load(str(mine)).arrays
    for number in (1, 2):
        made = files.load(str(second.place(number) / run.NET), variant)
        assert all(np.array_equal(made.arrays[name], array) for name, array in own.items())
        assert made.document["trainer"]["init"] == run.NET


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_games_begin_in_the_games_of_another_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    line = ["--network=nnue:32", "--rounds=1", "--games=20", "--nodes=20,40", "--epochs=1", "--plain"]
    assert command.main(["brandubh", *line, "--out", str(first)]) == 0
    variant = games.find("brandubh")
    rows = shards.read(first / "round-001", 7)
    found = run.openings(str(first), variant)
    assert found == run.openings(str(first), variant)
    begun: Counter[int] = Counter()
    boards = [run.position_of(row, variant).fen().split()[:2] for row in rows]
    for fen in found:
        of = {
            int(row["game"])
            for row, board in zip(rows, boards, strict=True)
            if board == fen.split()[:2]
            and row["result"] != UNKNOWN
            and row["ply"] >= run.FOLDER_PLY
            and row["left"] >= run.FOLDER_LEFT
            and abs(row["score"]) <= WON
        }
        assert of, fen
        begun.update(of)
    longest = {int(row["game"]): int(row["ply"] + row["left"]) for row in rows if row["result"] != UNKNOWN}
    assert len(found) > 5
    assert max(begun.values()) == 1
    assert set(begun) <= {game for game, plies in longest.items() if plies >= 14}

    # They begin the games of another training, by other rules of the same board too, and are kept with it.
    assert command.main(["brandubh-walker", *line, "--openings-file", str(first), "--out", str(second)]) == 0
    assert len((second / run.OPENINGS).read_text().splitlines()) == len(found)
    starts = shards.read(second / "round-001", 7)
    men = [np.count_nonzero(row["board"]) for row in starts if row["ply"] == 0]
    assert min(men) < 13
    capsys.readouterr()
    for variant_name, folder, said in (
        (
            "tablut-herr-7",
            first,
            "games of brandubh: expected a training that begins on the board of tablut-herr-7",
        ),
        ("brandubh", tmp_path, f"{tmp_path / run.CONFIG}: "),
    ):
        given = [variant_name, *line, "--openings-file", str(folder), "--out", str(tmp_path / "third")]
        assert command.main(given) == 2
        assert said in capsys.readouterr().err
    shard = first / "round-001" / shards.name_of(6)
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    assert (
        command.main(["brandubh", *line, "--openings-file", str(first), "--out", str(tmp_path / "third")])
        == 2
    )
    assert "altered" in capsys.readouterr().err
    listed = first / "round-001" / shards.LIST
    listed.write_text("{}\n" + listed.read_text())
    for flag in ("--openings-file", "--also"):
        assert command.main(["brandubh", *line, flag, str(first), "--out", str(tmp_path / "fourth")]) == 2
        assert "shards.jsonl: line 1: expected a file" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_openings_are_kept_with_the_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file that they come from may change, or go."""
    file, folder = tmp_path / "late.txt", tmp_path / "t"
    file.write_text("# two\n2t2/5/1TK1t/5/2t2 a\nstartpos\n")
    line = [
        "mini-four",
        "--network=nnue:32",
        "--rounds=1",
        "--games=20",
        "--nodes=20,40",
        "--epochs=2",
        "--plain",
    ]
    assert command.main([*line, "--openings-file", str(file), "--out", str(folder)]) == 0
    kept = (folder / run.OPENINGS).read_text().splitlines()
    assert [fen.split()[0] for fen in kept] == [
        "2t2/5/1TK1t/5/2t2",
        games.initial(games.find("mini-four")).fen().split()[0],
    ]
    made = files.load(str(folder / "round-001" / run.NET), games.find("mini-four"))
    assert made.document["trainer"]["openings_file"] == "late.txt"
    rows = shards.read(folder / "round-001", 5)
    begun = [rows[rows["game"] == number][0]["board"] for number in sorted(set(rows["game"].tolist()))]
    assert {4, 5, 7} >= {np.count_nonzero(board) for board in begun} >= {5, 7}
    file.unlink()
    assert command.main(["--resume", str(folder), "--rounds=2", "--plain"]) == 0
    assert len(config.read_log(folder)) == 2
    assert command.main([*line, "--out", str(folder)]) == 2
    assert "openings_file was" in capsys.readouterr().err
    # What an interrupted beginning has left is not taken for the openings of another training.
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / run.OPENINGS).write_text("nonsense\n")
    file.write_text("2t2/5/1TK1t/5/2t2 a\n")
    begun = ["--openings-file", str(file), "--out", str(tmp_path / "begun")]
    assert command.main([*line, *begun]) == 0
    assert (tmp_path / "begun" / run.OPENINGS).read_text().splitlines() == kept[:1]
    # The copy is checked, too.
    for content, said in (("nonsense\n", "openings.txt:1: "), (None, "openings.txt: No such file")):
        (tmp_path / "begun" / run.OPENINGS).unlink()
        if content:
            (tmp_path / "begun" / run.OPENINGS).write_text(content)
        assert command.main(["--resume", str(tmp_path / "begun"), "--rounds=2", "--plain"]) == 2
        assert said in capsys.readouterr().err
    # A training of hnefi 0.2.0 knew none of these options.
    (tmp_path / "old").mkdir()
    text = (folder / run.CONFIG).read_text().splitlines()
    newer = (*config.NEWER, *config.DIGESTS.values())
    old = [each for each in text if not each.startswith(newer)]
    assert len(old) == len(text) - len(newer)
    (tmp_path / "old" / run.CONFIG).write_text("\n".join(old))
    assert [config.read_config(tmp_path / "old")[name] for name in config.NEWER] == [
        "",
        "",
        learner.RATE,
        [],
        [],
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "o.txt: No such file"),
        ("# nothing\n", "o.txt: no openings: expected a FEN or moves in each line"),
        ("startpos\nb9b8\n", "o.txt:2: "),
        ("7/7/7/7/7/7/K6 a\n", "o.txt:1: "),
        ("startpos moves d6c6 d4\n", "o.txt:1: "),
    ],
)
def test_openings_that_cannot_be_played_are_refused(
    text: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "o.txt"
    if text is not None:
        file.write_text(text)
    assert command.main(["brandubh", "--openings-file", str(file), "--out", str(tmp_path / "t")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "t").exists()


@pytest.fixture
def two_rounds(tmp_path: Path, quick: list[tuple[str, str]]) -> Path:  # noqa: ARG001 - for what it replaces
    trained(tmp_path / "t")
    return tmp_path / "t"


@pytest.mark.slow
def test_a_folder_is_of_one_training(two_rounds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = [
        f"--{name.replace('_', '-')}={value}"
        for name, value in SMALL.items()
        if name not in ("nodes", "games")
    ]
    small += ["--nodes=20,40", "--games=30", "--plain"]
    assert command.main(["mini-four", "--out", str(two_rounds), *small]) == 0
    assert command.main(["--resume", str(two_rounds), "--plain"]) == 0
    assert "best: " in capsys.readouterr().out
    assert command.main(["mini-four", "--out", str(two_rounds), *small, "--seed", "2"]) == 2
    assert "the folder of another training: seed was 1, is 2" in capsys.readouterr().err
    with config.alone(two_rounds):
        assert command.main(["--resume", str(two_rounds)]) == 2
    assert "another process trains in it" in capsys.readouterr().err
    assert command.main(["--plots", str(two_rounds)]) == 0
    for name in (plots.LOSSES, plots.STRENGTH):
        text = (two_rounds / name).read_text("utf-8")
        assert text.startswith("<svg")
        assert "mini-four" in text
    log = (two_rounds / run.LOG).read_text()
    (two_rounds / run.LOG).write_text(log.splitlines()[1] + "\n")
    assert command.main(["--resume", str(two_rounds)]) == 2
    assert "expected the rounds from 1 on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "expected a VARIANT and --out, or --resume FOLDER"),
        (["brandubh", "--resume", "x"], "expected a VARIANT and --out, or --resume FOLDER"),
        (["hex:4"], "hex:4"),
        (["brandubh", "--network", "mlp:5"], "--network mlp:5: expected nnue:UNITS"),
        (["brandubh", "--network", "nnue:40"], "expected a multiple of 32"),
        (
            ["brandubh", "--network", ""],
            "--network '': expected nnue:UNITS or nnue:UNITS,rings=N, UNITS a mul",
        ),
        (["brandubh", "--network", "nnue:32,rings=0"], "N from 1 to 512"),
        (["brandubh", "--out", ""], "--out '': expected a folder"),
        (["--resume", ""], "--resume '': expected a folder"),
        (["brandubh", "--nodes", "10,99999999999999999999"], "expected a whole number from 1 to 100000000"),
        (["brandubh", "--gate-pairs", "1000000"], "expected a whole number from 1 to 100000"),
        (
            ["brandubh", "--tables", "nosuch"],
            "/nosuch: No such file or directory: expected solved tables",
        ),
        (["brandubh", "--tables", "/dev/null"], "--tables /dev/null: "),
        (["brandubh", "--tables", str(Path(__file__))], "test_train.py: begins with "),
        (
            ["brandubh", "--also", "nosuch"],
            "nosuch/config.toml: No such file or directory: expected the folder",
        ),
        (
            ["brandubh", "--also", "a", "--also", "./a"],
            "--also './a': is named twice: expected each training once",
        ),
        (["brandubh", "--out", "t", "--also", "t"], "--also 't': is where this training is kept"),
        (["brandubh", "--path", "."], "unrecognized arguments: --path"),
        (["copenhagen", "--network", "nnue:256"], "at most 524288"),
        (["tawlbwrdd", "--init", "nobody"], "--init 'nobody': expected net-brandubh-2, "),
        (["tawlbwrdd", "--init", "n.safetensors"], "--init: "),
        (
            ["tawlbwrdd", "--init", "net-sea-battle-9-1"],
            "made for sea-battle-9, on 9 x 9 squares: expected one for 11 x 11 squares, as tawlbwrdd has",
        ),
        (
            ["tawlbwrdd", "--init", "net-copenhagen-2", "--network", "nnue:64"],
            "--network nnue:64: expected nnue:128, as --init has",
        ),
        (["brandubh", "--teacher", "nobody"], "--teacher: evaluator 'nobody'"),
        (["brandubh", "--elo0", "20", "--elo1", "10"], "--elo0: expected less than --elo1"),
        (["brandubh", "--nodes", "10,x"], "--nodes"),
        (["brandubh", "--blend", "2"], "--blend"),
        (["brandubh", "--rate", "0"], "argument --rate: '0': expected a number from 1e-06 to 1"),
        (["--resume", "x", "--games", "3"], "--resume with --games: expected --rounds only"),
        (["--resume", "x"], "x/config.toml: No such file or directory: expected the folder of a training"),
        (["--plots", "x"], "x/config.toml: No such file or directory: expected the folder of a training"),
    ],
)
def test_what_cannot_be_trained_is_refused(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "play", None)  # nothing may be played
    try:
        status = command.main(words)
    except SystemExit as end:
        status = int(end.code or 0)
    assert status == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'format = 1\nalgorithm = "td"\n',
            "algorithm: 'td': expected the folder of a training; `hnefi evolve resume`",
        ),
        ("format = 1\n", "format 1: expected 2"),
        ("format = 2\nvariant = 7\n", "variant = 7: expected str"),
        (
            'format = 2\nvariant = "brandubh"\n',
            "rules_hash: missing: expected the configuration of a training",
        ),
    ],
)
def test_a_folder_of_something_else_is_named(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / run.CONFIG).write_text(text)
    assert command.main(["--resume", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_torch_is_asked_for_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["brandubh", "--with", "torch"])
    assert "expected pip install 'hnefi[train]'" in capsys.readouterr().err
