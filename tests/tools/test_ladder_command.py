"""`hnefi ladder` from its command line, on a ladder of three players that move in no time."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from ladder_parts import ladder, tiny

from hnefi.tools import players as players_command
from hnefi.tools.arena import in_process
from hnefi.tools.arena.report import Stored
from hnefi.tools.arena.store import run_digest
from hnefi.tools.arena.values import GameResult, GameTask
from hnefi.tools.common import interrupts
from hnefi.tools.common.rating import Model
from hnefi.tools.ladder import command, fitting, frozen, pool, published
from hnefi.tools.ladder.ladder import load

NEIGHBOURS, OTHERS = 2 * 2 * 2, 1 * 2
"""Games of two meetings of neighbours, two pairs each, and of one more pair."""


def ladder_command(*words: object) -> int:
    return command.main([str(word) for word in words])


def digest(folder: Path) -> str:
    return run_digest(Stored(folder).progress.counted)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tiny(tmp_path)


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 0
    text = capsys.readouterr().out
    for name in command.COMMANDS:
        assert name in text
    assert "hnefi ladder place mine.toml" in text
    with pytest.raises(SystemExit) as ended:
        ladder_command("climb")
    assert ended.value.code == 2


def test_the_examples_can_be_read() -> None:
    for example in command.EXAMPLES:
        command._parser().parse_args(example.split())


def test_one_worker_or_two_play_the_same_games(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for jobs in (1, 2):
        assert ladder_command("run", "--ladder", file, "--jobs", jobs, "--out", tmp_path / f"jobs{jobs}") == 0
    assert digest(tmp_path / "jobs1") == digest(tmp_path / "jobs2")
    assert digest(tmp_path / "jobs1") in capsys.readouterr().out
    games = list(Stored(tmp_path / "jobs1").games())
    assert len(games) == NEIGHBOURS + OTHERS
    assert ladder_command("run", "--ladder", file, "--seed", 2, "--out", tmp_path / "other") == 0
    others = list(Stored(tmp_path / "other").games())
    # Other openings, not the same ones once more.
    assert not {game.task.opening for game in games} & {game.task.opening for game in others}


def interrupting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Press Ctrl-C when the fourth game begins."""
    monkeypatch.setattr(interrupts, "GRACE", 300.0)  # who is late is ended, and that is us
    played = in_process.play_game
    begun: list[GameTask] = []

    def play_game(task: GameTask, *rest: Any, **how: Any) -> GameResult:
        begun.append(task)
        if len(begun) == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return played(task, *rest, **how)

    monkeypatch.setattr(in_process, "play_game", play_game)


def test_an_interrupted_run_goes_on_to_the_same_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ladder(tmp_path)
    words = ("run", "--ladder", found.file, "--jobs", 1)
    assert ladder_command(*words, "--out", tmp_path / "whole") == 0
    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patched:
        interrupting(patched)
        assert ladder_command(*words, "--out", tmp_path / "parts") == 1
    signal.signal(signal.SIGINT, before)
    said = capsys.readouterr().out
    assert f"hnefi arena resume {tmp_path / 'parts'}" in said
    stored = Stored(tmp_path / "parts").store.rows
    assert 3 <= len(stored) < NEIGHBOURS + OTHERS
    assert ladder_command(*words, "--out", tmp_path / "parts") == 0
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


def test_a_folder_of_something_else_is_refused(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("run", "--ladder", file, "--jobs", 1, "--out", tmp_path / "run")
    assert ladder_command(*words) == 0
    assert ladder_command(*words, "--seed", 2) == 2
    assert (
        "the run 'tiny seed 1' is there: expected a new folder, or that of 'tiny seed 2'"
        in capsys.readouterr().err
    )


def test_a_changed_rung_is_refused_unless_forced(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = frozen.file_of(load(str(file)))
    hashes = json.loads(kept.read_text())
    hashes["rungs"]["simple"]["answers"] = "0" * 64
    kept.write_text(json.dumps(hashes))
    words = ("run", "--ladder", file, "--jobs", 1, "--out", tmp_path / "run")
    assert ladder_command(*words) == 2
    assert "tiny differs from the frozen one" in (said := capsys.readouterr().err)
    assert "rung simple: other answers than the frozen rung has" in said
    assert not (tmp_path / "run").exists()
    assert ladder_command("check", "--ladder", file) == 1
    assert "rung simple: other answers" in capsys.readouterr().out
    assert ladder_command(*words, "--force") == 0
    assert "note: rung simple: other answers" in capsys.readouterr().err
    assert ladder_command("check", "--ladder", file, "--freeze") == 0
    assert ladder_command("check", "--ladder", file) == 0
    assert "as frozen" in capsys.readouterr().out


@pytest.mark.slow
def test_from_the_first_game_to_published_ratings(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, out = tmp_path / "one", tmp_path / "two", tmp_path / "placed"
    for seed, folder in ((1, one), (2, two)):
        assert ladder_command("run", "--ladder", file, "--seed", seed, "--out", folder) == 0
    assert ladder_command("place", "--ladder", file, "uct-100", "--every", 1, "--near", 1) == 2
    assert "nothing is published yet (hnefi ladder run, then --on its folder)" in capsys.readouterr().err

    placing = ("place", "--ladder", file, "--on", one, "--on", two, "--every", 1, "--near", 1, "--out", out)
    assert ladder_command(*placing, "simple-d2", "default:50") == 0
    said = capsys.readouterr().out
    assert "simple-d2: " in said
    assert "on tiny (brandubh)" in said
    assert {path.name for path in out.iterdir()} == {"simple-d2", "default_50"}
    every, near = (list(Stored(out / "simple-d2" / part).games()) for part in ("every", "near"))
    assert len(every) == len(near) == 2 * 3
    assert not {game.task.opening for game in every} & {game.task.opening for game in near}
    # Once more: nothing is left to be played, and the rating is the same.
    assert ladder_command(*placing, "simple-d2") == 0
    assert capsys.readouterr().out.splitlines()[-1] in said

    assert ladder_command("agree", "--ladder", file, one, two) == 0
    assert "of 2 differences lie outside their joint 95 % interval" in capsys.readouterr().out
    assert ladder_command("report", "--ladder", file, one, two, out, "--out", tmp_path / "report") == 0
    report = (tmp_path / "report" / "report.md").read_text()
    games = 2 * (NEIGHBOURS + OTHERS) + 2 * 12
    assert f"{games} games of 5 players" in report
    # The same folder twice counts once.
    capsys.readouterr()
    assert ladder_command("report", "--ladder", file, one, tmp_path / "one", two, out) == 0
    assert capsys.readouterr().out == report
    page = tmp_path / "page.html"
    assert ladder_command("report", "--ladder", file, one, two, out, "--html", page) == 0
    assert capsys.readouterr().out == f"{page}\n"
    text = page.read_text("utf-8")
    assert text.count('"id":') == games
    assert "<h2>The scale</h2><figure" in text
    assert ladder_command("report", "--ladder", file, one, "--html", tmp_path) == 2
    assert f"{tmp_path}: Is a directory: expected a file to write" in capsys.readouterr().err

    assert ladder_command("publish", "--ladder", file, one, two, out) == 0
    assert f"{games} games" in capsys.readouterr().out
    assert ladder_command("report", "--ladder", file) == 0
    assert capsys.readouterr().out == report
    found = pool.read(published.pool_file("tiny", tmp_path))
    fit = fitting.fit(found, Model(anchor=("simple", 1000.0)))
    document = published.ratings("tiny", tmp_path)
    assert document is not None
    for name, entry in document["players"].items():
        assert entry["elo"] == pytest.approx(fit.whole.ratings[name].value, abs=0.06)

    assert ladder_command("show", "--ladder", file) == 0
    assert "simple-d2" in capsys.readouterr().out
    assert ladder_command("show", "--ladder", file, "simple-d2") == 0
    assert "random-terminal" in capsys.readouterr().out
    assert ladder_command("show", "--ladder", file, "nobody") == 2
    assert "'nobody': expected one of" in capsys.readouterr().err

    records = tmp_path / "games.tafl"
    assert ladder_command("games", "--ladder", file, "--player", "default:50", "--to", records) == 0
    assert "12 games" in capsys.readouterr().out
    beyond = records / "games.tafl"
    assert ladder_command("games", "--ladder", file, "--player", "default:50", "--out", beyond) == 4
    assert "games.tafl: Not a directory: expected a file to write" in capsys.readouterr().err
    _expect_whole_records(records, capsys)
    _expect_shown_by_players(tmp_path, capsys, monkeypatch)


def _expect_whole_records(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The records are games by the rules, to the end that the pool says."""
    from hnefi.tools.convert import main as convert

    assert convert([str(records), str(records.with_suffix(".jsonl")), "--strict"]) == 0
    capsys.readouterr()
    assert records.read_text().count("[Variant ") == 12


def _expect_shown_by_players(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`hnefi players` reads what was published."""
    monkeypatch.setattr(players_command.published, "CURRENT", "tiny")
    read = published.measured
    monkeypatch.setattr(published, "measured", lambda player: read(player, "tiny", folder))
    assert players_command.main([]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("simple-d2"))
    document = published.ratings("tiny", folder)
    assert document is not None
    assert f"{document['players']['simple-d2']['elo']:.0f} ± " in line
    assert players_command.main(["simple-d2"]) == 0
    told = capsys.readouterr().out
    assert "tiny, 24 games (hnefi ladder show simple-d2)" in " ".join(told.split()) or "12 games" in told
    assert "simple-d2 on tiny:" in told
    assert players_command.main(["default"]) == 0
    told = capsys.readouterr().out
    assert "not measured" in told
    assert "default:50 on tiny:" in told
    assert players_command.main(["simple-d2", "--json"]) == 0
    known: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert known["rating"]["elo"] == round(document["players"]["simple-d2"]["elo"])
    assert set(known["ladder"]["simple-d2"]["profile"]) == {"random-blind", "random-terminal", "simple"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("place", "simple"), "simple: a rung of tiny: expected a player that is not a rung"),
        (("place", "uct-100", "--variant", "chess"), "--variant 'chess': expected some of brandubh"),
        (("place", "evolved-copenhagen"), "evolved-copenhagen plays copenhagen only"),
        (("place", "uct-100", "--every", "5"), "--every 5 and --near 10: expected at most 2 pairs"),
        (("place", "nobody"), "no player 'nobody': expected a name"),
        (("report", "/nowhere"), "/nowhere: expected the folder of a run"),
        (("report",), "nothing is published yet"),
        (("games",), "nothing is published yet"),
        (("show",), "nothing is published yet"),
    ],
)
def test_what_cannot_be_done_is_said(
    file: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert ladder_command(words[0], "--ladder", file, *words[1:]) == 2
    assert said in capsys.readouterr().err


def test_unfinished_runs_are_not_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ladder(tmp_path)
    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patched:
        interrupting(patched)
        ladder_command("run", "--ladder", found.file, "--jobs", 1, "--out", tmp_path / "parts")
    signal.signal(signal.SIGINT, before)
    assert ladder_command("publish", "--ladder", found.file, tmp_path / "parts") == 2
    assert "tiny seed 1: not finished: expected complete runs" in capsys.readouterr().err
    assert ladder_command("report", "--ladder", found.file, tmp_path / "parts") == 0
    assert "Not finished: tiny seed 1." in capsys.readouterr().out


def test_everybody_who_is_shipped() -> None:
    named = command.shipped()
    assert "default" not in named
    assert {"uct-10k", "evolved-brandubh", "paper-hingston-original", "level-1", "level-9"} <= set(named)
