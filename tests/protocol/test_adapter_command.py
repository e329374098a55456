"""What the commands of all adapters share: programs that do not exist, places that are none, what is told."""

from __future__ import annotations

import logging
from importlib import import_module
from pathlib import Path

import pytest

from hnefi.protocol.hosts import adapter
from hnefi.protocol.hosts.stdio import Diagnostics

MISSING = "/nowhere/engine"
COMMANDS = {
    "tablut": ("White",),
    "otep": (),
    "htp": (),
    "hnefatafl_org": ("--user", "ai-x"),
}
"""Adapters, and what each of their command lines needs."""


def refused(capsys: pytest.CaptureFixture[str], name: str, *words: str) -> str:
    """What a command says that ends with status 2 before it does anything."""
    command = import_module(f"hnefi.gui_adapter.{name}.command")
    with pytest.raises(SystemExit) as ended:
        command.main(list(words))
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


@pytest.mark.parametrize("name", COMMANDS)
def test_an_engine_that_does_not_exist(capsys: pytest.CaptureFixture[str], name: str) -> None:
    for engine, where in ((MISSING, "here"), ("no-such-engine", "in the PATH")):
        said = refused(capsys, name, *COMMANDS[name], "--engine", f"{engine} --fast")
        assert f"--engine: {engine!r}: no such program {where}: expected one that can be run" in said


@pytest.mark.parametrize(
    ("name", "flag"), [("tablut", "wrap"), ("tablut", "check"), ("otep", "wrap"), ("htp", "wrap")]
)
def test_a_program_to_wrap_that_does_not_exist(
    capsys: pytest.CaptureFixture[str], name: str, flag: str
) -> None:
    said = refused(capsys, name, f"--{flag}", f"{MISSING} {{host}}")
    assert f"--{flag}: {MISSING!r}: no such program here: expected one that can be run" in said
    assert f'--{flag} "\'": No closing quotation' in refused(capsys, name, f"--{flag}", "'")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_place_for_games_that_is_no_folder(
    capsys: pytest.CaptureFixture[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HNEFI_PASSWORD", "secret")
    file = tmp_path / "file"
    file.touch()
    for place in ("/dev/null", str(file)):
        said = refused(capsys, name, *COMMANDS[name], "--record-dir", place)
        assert f"--record-dir {place!r}: not a folder: expected a folder, or a name for a new one" in said
    inside = str(file / "new")
    said = refused(capsys, name, *COMMANDS[name], "--record-dir", inside)
    assert ": Not a directory: expected a folder, or a name for a new one" in said


@pytest.mark.parametrize("name", ["tablut", "htp", "hnefatafl_org"])
def test_an_option_that_our_engine_does_not_take(
    capsys: pytest.CaptureFixture[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HNEFI_PASSWORD", "secret")
    said = refused(capsys, name, *COMMANDS[name], "--option", "Foo=1")
    assert "--option 'Foo': our engine has no such option" in said
    said = refused(capsys, name, *COMMANDS[name], "--option", "Threads=0")
    assert "--option 'Threads=0': expected 1 to 256" in said


@pytest.mark.parametrize(
    ("name", "words", "expected"),
    [
        ("tablut", "--serve --wait 3", "--wait with --serve: expected it only for playing"),
        ("tablut", "--serve --name hnefi", "--name with --serve: expected it only for playing"),
        ("tablut", "White --games 1", "--games: expected it only for --serve"),
        ("tablut", "White --start 60", "--start: expected it only for --serve or --wrap or --check"),
        ("otep", "--force", "--force: expected it only for --write-ini"),
        ("otep", "--wrap sh --otn intended", "--otn with --wrap: expected it only for playing or --write-ini"),
        ("otep", "--fresh", "--fresh: expected it only for --wrap"),
        ("htp", "--wait 1", "--wait: expected it only for --connect"),
        ("htp", "--wrap sh --movetime 5", "--movetime with --wrap: expected it only for playing or --connect"),
        ("htp", "--connect h --name x", "--name with --connect: expected it only for --wrap"),
        ("hnefatafl_org", "--user ai-x --join 1 --rated", "--rated with --join: expected it only for offers"),
    ],
)  # fmt: skip
def test_a_flag_that_means_nothing_here(
    capsys: pytest.CaptureFixture[str], name: str, words: str, expected: str
) -> None:
    """Also one that is given the value it has without it."""
    assert expected in refused(capsys, name, *words.split())


def test_what_is_told_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    """Foreign text may contain what a terminal obeys, turns round or cannot show."""
    adapter.tell("Þór \x9b1m\u202e")
    assert capsys.readouterr().out == "\\xde\\xf3r \\x9b1m\\u202e\n"
    record = logging.LogRecord("x", logging.INFO, "", 0, "%s", ("Þór \u202e",), None)
    assert Diagnostics().format(record) == "\\xde\\xf3r \\u202e"
