"""`hnefi otep`: the files that it writes for OpenTafl, and words and settings that are wrong."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import engine_pool
import pytest
from otep.double_games import GAMES
from otep.double_host import Host

pytestmark = pytest.mark.process

HNEFI = (*engine_pool.command(), "otep")


def test_write_ini(tmp_path: Path) -> None:
    home = tmp_path / "Open Tafl"
    (home / "engines").mkdir(parents=True)
    (home / "engines" / "other.ini").write_text("[engine]\n")
    words = ["--write-ini", str(home), "--movetime", "321", "--option", "Algorithm=random", "--no-record"]
    for _ in range(2):
        done = subprocess.run([*HNEFI, *words], capture_output=True, text=True, check=True)
    assert "kept " in done.stdout
    assert sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()) == [
        "engines/hnefi.ini", "engines/hnefi/hnefi-otep.toml", "engines/other.ini",
    ]  # fmt: skip
    lines = (home / "engines" / "hnefi.ini").read_text().splitlines()
    assert lines[0] == "[engine]"
    said = dict(line.split("=", 1) for line in lines[1:])
    assert said.keys() == {"name", "directory", "filename", "command", "arguments"}
    folder = home / "engines" / said["directory"]
    assert (folder / said["filename"]).exists()
    host = Host(
        [said["command"], *said["arguments"].split(" ")],
        folder,
        {**os.environ, "XDG_DATA_HOME": str(tmp_path)},
    )
    try:
        host.send(f"rules {GAMES['brandub'].rules}")
        host.send("play attackers")
        host.expect("hello")
        host.expect("move")
        assert host.goodbye() == 0
    finally:
        host.kill()
    assert not (tmp_path / "hnefi" / "games").exists()


def test_a_folder_without_opentafl(tmp_path: Path) -> None:
    words = [*HNEFI, "--write-ini", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "found no OpenTafl*.jar, OpenTafl.sh, OpenTafl.bat, engines/ or settings.ini there" in done.stderr
    assert (done.stdout, list(tmp_path.iterdir())) == ("", [])
    (tmp_path / "opentafl-0.4.8.0b.jar").touch()
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("restart OpenTafl to find the engine hnefi\n")
    (tmp_path / "opentafl-0.4.8.0b.jar").unlink()
    (tmp_path / "engines").rename(tmp_path / "other")
    done = subprocess.run([*words, "--force"], capture_output=True, text=True, check=True)
    assert (tmp_path / "engines" / "hnefi.ini").exists()


REFUSED = {
    ("--write-ini", "/nowhere"): "expected the folder that OpenTafl is in",
    ("--movetime", "0"): "--movetime '0': expected milliseconds",
    ("--option", "Hash"): "--option 'Hash': expected NAME=VALUE",
    ("--engine", "x", "--player", "y"): "--engine and --player: expected one of them",
    ("--engine", "'x"): "expected a program and its arguments",
    ("--wrap", "x", "--movetime", "5"): "--movetime with --wrap",
    ("--settings", "/nowhere"): "expected a TOML file",
}


@pytest.mark.parametrize("words", REFUSED)
def test_called_wrongly(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [*HNEFI, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2
    assert REFUSED[words] in done.stderr
    assert done.stdout == "", "greeted, and refused afterwards"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("engine = 1", "engine = 1: expected a text in quotes"),
        ("movetimes = 1", "'movetimes': expected engine, player, "),
        ("[engine]", "engine = {}: expected a text in quotes"),
        ("movetime = 0", "movetime '0': expected milliseconds, a whole number of at least 1"),
        ('movetime = "x"', "movetime = 'x': expected milliseconds, a whole number without quotes"),
        ("option = [1]", "option = [1]: expected a list of texts"),
        ("no-record = 1", "no-record = 1: expected true or false"),
        ('otn = "x"', 'otn = \'x\': expected "opentafl" or "intended"'),
        ("\0", "expected a TOML file"),
    ],
)
def test_settings_that_cannot_be_used(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    done = subprocess.run(
        [*HNEFI, "--settings", str(path)],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 2
    assert expected in done.stderr
