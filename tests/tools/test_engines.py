"""`hnefi engines`, and the places where such a name stands for an engine."""

from __future__ import annotations

import errno
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hnefi.engine import durable
from hnefi.engine.games import find
from hnefi.gui_adapter.terminal import opponents
from hnefi.protocol.client import own_command
from hnefi.protocol.hosts import journal, registry
from hnefi.protocol.hosts.exit_codes import STORAGE
from hnefi.tools import engines, players
from hnefi.tools.arena import resolve
from hnefi.tools.arena.options import ConfigError

PYTHON = shlex.quote(sys.executable)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "hnefi"


def refusal(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The sentence with which a call is refused."""
    with pytest.raises(SystemExit) as ended:
        engines.main(argv)
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[0].partition("error: ")[2]


def test_added_listed_removed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert engines.main([]) == 0
    assert capsys.readouterr().out == "no engines yet: hnefi engines add NAME --cmd 'PROGRAM ARGUMENTS'\n"
    command = f"{PYTHON} -c 'print(\"\\\\ \")' ÄÖ"
    words = [
        "add",
        "my.bot+2",
        "--cmd",
        command,
        "--variant",
        "brandubh",
        "--option",
        "Hash=64",
        "--option",
        "A b= c=d ",
    ]
    assert engines.main([*words, "--description", 'Says "\\" and ä.']) == 0
    assert engines.main(["add", "other", "--cmd", PYTHON]) == 0
    capsys.readouterr()
    assert engines.main(["list", "--json"]) == 0
    mine, other = json.loads(capsys.readouterr().out)
    assert mine == {
        "name": "my.bot+2",
        "command": shlex.join(shlex.split(command)),
        "variants": ["brandubh"],
        "description": 'Says "\\" and ä.',
        "clock": "",
        "letters": "",
        "options": {"Hash": "64", "A b": "c=d"},
    }
    assert registry.load()["my.bot+2"].words == tuple(shlex.split(command))
    assert other["name"] == "other"
    assert engines.main([]) == 0
    assert capsys.readouterr().out.splitlines()[2] == f"other     all       {PYTHON}"
    assert engines.main(["remove", "my.bot+2"]) == 0
    assert list(registry.load()) == ["other"]
    assert list(folder.iterdir()) == [folder / registry.FILE]


def test_a_program_in_a_folder_is_kept_by_its_full_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bot"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert engines.main(["add", "bot", "--cmd", "./bot --fast"]) == 0
    assert registry.load()["bot"].words == (str(program), "--fast")


def test_what_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert engines.main(["add", "mybot", "--cmd", PYTHON]) == 0
    for argv, beginning in (
        (["add", "mybot", "--cmd", PYTHON], f"mybot: this name is used for '{PYTHON}': --force replaces it"),
        (["add", "simple", "--cmd", PYTHON], "simple: a shipped player has this name"),
        (["add", "a/b", "--cmd", PYTHON], "a/b: name 'a/b': expected up to 60 letters"),
        (["add", "-x", "--cmd", PYTHON], "the following arguments are required: NAME"),
        (["add", "x.toml", "--cmd", PYTHON], "x.toml: name 'x.toml': expected up to 60 letters"),
        (["add", "x" * 61, "--cmd", PYTHON], f"{'x' * 61}: name"),
        (["add", "x", "--cmd", ""], "x: command '': expected a program"),
        (["add", "x", "--cmd", "'"], 'x: command "\'": No closing quotation'),
        (["add", "x", "--cmd", "no-such-program"], "'no-such-program': no such program in the PATH"),
        (["add", "x", "--cmd", "./no/such"], "'./no/such': no such program here"),
        (["add", "x", "--cmd", "a\x1b"], "x: command "),
        (["add", "x", "--cmd", PYTHON, "--option", "Hash"], "argument --option: 'Hash': expected NAME=VALUE"),
        (
            ["add", "x", "--cmd", PYTHON, "--variant", "brandub7"],
            "'brandub7': expected the name of a variant",
        ),
        (["remove", "mybott"], "'mybott': expected one of mybot (did you mean mybot?)"),
        (["check", "nobody"], "'nobody': expected one of mybot"),
    ):
        assert refusal(argv, capsys).startswith(beginning), argv
    assert list(registry.load()) == ["mybot"]
    assert engines.main(["add", "mybot", "--cmd", f"{PYTHON} -I", "--force"]) == 0
    assert registry.load()["mybot"].words == (sys.executable, "-I")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("mybot = 3", "mybot: 3: expected a table"),
        ("[mybot]", "mybot: command '': expected a program"),
        (
            "[mybot]\ncomand = 'x'",
            "mybot.comand: 'x': expected one of command, description, clock, letters",
        ),
        ("[mybot]\ncommand = 3", "mybot: command 3: expected a text in quotes"),
        (
            "[mybot]\ncommand = 'x'\nvariants = 'brandubh'",
            "mybot.variants: 'brandubh': expected a list of names",
        ),
        (
            "[mybot]\ncommand = 'x'\n[mybot.options]\na = [1]",
            "mybot.options: {'a': [1]}: expected a table of values",
        ),
        ("['a b']\ncommand = 'x'", "a b: name 'a b': expected up to 60"),
    ],
)
def test_an_entry_that_cannot_be_used_is_told_and_the_others_can(
    folder: Path, text: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.mkdir()
    whole = f"[good]\ncommand = '{sys.executable}'\n{text}\n"
    if "=" in text.partition("\n")[0]:
        whole = f"{text}\n[good]\ncommand = '{sys.executable}'\n"
    (folder / registry.FILE).write_text(whole)
    assert engines.main([]) == 0
    said = capsys.readouterr()
    assert complaint in said.err
    assert said.out.splitlines()[-1].startswith("good ")
    for argv in (["add", "x", "--cmd", PYTHON], ["remove", "good"]):
        assert complaint in refusal(argv, capsys)
    assert (folder / registry.FILE).read_text() == whole
    assert opponents.by_name("good", find("brandubh")).command == (sys.executable,)
    if "mybot" in text:
        assert complaint in refusal(["check", "mybot"], capsys)
        with pytest.raises(ConfigError, match="mybot"):
            resolve.resolve({"engine": [{"player": "mybot"}, {"player": "simple"}]}, {})
        with pytest.raises(ValueError, match="mybot"):
            opponents.by_name("mybot", find("brandubh"))
    assert players.main([]) == 0
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("text", ["not toml", "\xff"])
def test_a_file_that_cannot_be_read_hinders_nobody_who_does_not_need_it(
    folder: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.mkdir()
    (folder / registry.FILE).write_bytes(text.encode("latin-1"))
    for argv in ([], ["add", "x", "--cmd", PYTHON], ["remove", "x"], ["check", "x"]):
        assert refusal(argv, capsys).startswith(f"{folder / registry.FILE}: ")
    with pytest.raises(ConfigError, match=r"engines\.toml"):
        resolve.resolve({"engine": [{"player": "mybot"}, {"player": "simple"}]}, {})
    resolve.resolve({"engine": [{"player": "default"}, {"player": "simple"}]}, {})
    assert opponents.by_name("simple", find("brandubh")).player == "simple"
    assert players.main([]) == 0
    assert "engines.toml" in capsys.readouterr().err


@pytest.mark.process
def test_engines_added_at_once_are_all_there() -> None:
    script = "import sys; from hnefi.tools.engines import main; main(['add', sys.argv[1], '--cmd', sys.executable])"
    names = [f"bot{number}" for number in range(8)]
    running = [
        subprocess.Popen([sys.executable, "-c", script, name], stdout=subprocess.DEVNULL) for name in names
    ]
    assert [process.wait(120) for process in running] == [0] * len(names)
    assert sorted(registry.load()) == names


def test_a_folder_that_cannot_be_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder.parent.joinpath("hnefi").write_text("a file in its place")
    assert registry.load() == {}
    assert engines.main(["add", "x", "--cmd", PYTHON]) == STORAGE
    said = capsys.readouterr().err
    assert said.startswith(f"hnefi engines: {folder}: ")
    assert said.endswith(": expected a folder that can be written\n")


def test_a_file_that_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_descriptor: int, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(durable, "write", full)
    assert engines.main(["add", "x", "--cmd", PYTHON]) == STORAGE
    expected = "No space left on device: expected a file that can be written"
    assert capsys.readouterr().err == f"hnefi engines: {folder / registry.FILE}: {expected}\n"


def test_a_name_stands_for_the_engine_in_a_tournament(capsys: pytest.CaptureFixture[str]) -> None:
    ours = shlex.join([*own_command(), "--option", "Threads=1"])
    assert (
        engines.main(
            [
                "add",
                "mine",
                "--cmd",
                ours,
                "--variant",
                "brandubh",
                "--variant",
                "ard-ri",
                "--option",
                "Hash=4",
            ]
        )
        == 0
    )
    given = {
        "engine": [{"player": "mine"}, {"player": "mine", "options": {"hash": "8"}}, {"player": "simple"}]
    }
    config = resolve.resolve(given, {})
    first, second, _ = config.engines
    assert [engine["name"] for engine in config.engines] == ["mine", "mine 2", "simple"]
    assert (first["cmd"], *first["args"]) == tuple(shlex.split(ours))
    assert first["options"] == {"Hash": "4"}
    assert second["options"] == {"Hash": "4", "hash": "8"}
    assert config.unnamed == ()
    assert config.tables["run"]["variants"] == ["brandubh", "ard-ri"]
    with pytest.raises(ConfigError, match="'mine': mine plays brandubh, ard-ri only, not copenhagen"):
        resolve.resolve(given, {"run": {"variants": ["copenhagen"]}})
    capsys.readouterr()
    assert players.main(["--variant", "ard-ri"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"  mine  {shlex.join(shlex.split(ours))}"
    assert players.main(["--variant", "copenhagen"]) == 0
    assert "mine" not in capsys.readouterr().out


def test_a_name_stands_for_the_engine_in_a_game() -> None:
    assert engines.main(["add", "mine", "--cmd", PYTHON, "--variant", "brandubh", "--option", "Hash=4"]) == 0
    variant = find("brandubh")
    for spec in (opponents.by_name("mine", variant), opponents.by_command("mine", variant)):
        assert (spec.command, spec.options) == ((sys.executable,), {"Hash": "4"})
        assert (spec.name, spec.spelled) == ("mine", "engine mine")
    with pytest.raises(ValueError, match="mine plays brandubh only, not copenhagen"):
        opponents.by_command("mine", find("copenhagen"))


@pytest.mark.process
def test_it_plays_and_is_checked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from hnefi.tools.arena import command

    ours = shlex.join([*own_command(), "--player", "random-blind"])
    assert engines.main(["add", "mine", "--cmd", ours, "--variant", "brandubh"]) == 0
    run = ["mine", "random-blind", "--pairs", "1", "--nodes", "10", "--plain", "--out", str(tmp_path / "run")]
    assert command.main(run) == 0
    assert "mine" in capfd.readouterr().out
    assert engines.main(["check", "mine", "--only", "greeting"]) == 0
    assert "follows the protocol" in capfd.readouterr().out


def test_a_user_without_a_home(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As of a container that runs under a number: nothing is known and nothing fails."""

    def unknown(number: int) -> None:
        raise KeyError(number)

    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert registry.path() == Path("/.config/hnefi/engines.toml")
    assert journal.data_folder() == Path("/.local/share/hnefi")
    monkeypatch.setattr(registry, "home_folder", lambda: tmp_path / "none")
    assert engines.main([]) == 0
    assert capsys.readouterr().out.startswith("no engines yet")


def test_a_file_that_cannot_be_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder.mkdir()
    file = folder / "engines.toml"
    file.write_bytes(b"\xff\xfe")
    assert refusal(["list"], capsys) == f"{file}: not UTF-8: expected TOML"
    file.write_text("mine = 3\n")
    assert engines.main([]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"{file}: mine: 3: expected a table")
