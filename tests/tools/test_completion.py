"""What a shell completes: asked as argcomplete's scripts ask, and in real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from hnefi import players
from hnefi.engine import catalogue
from hnefi.tools import completion
from hnefi.tools.cli import COMMANDS

pytest.importorskip("argcomplete")

SCRIPT = Path(sys.executable).parent / "hnefi"


def asked(line: str, folder: Path) -> list[str]:
    """What may follow, without flags where none was begun."""
    answer = folder / "answer"
    answer.unlink(missing_ok=True)
    environment = {
        **os.environ, "XDG_CONFIG_HOME": str(folder), "COMP_LINE": line, "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", "from hnefi.tools.cli import main; main()"],
        env=environment, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    words = [word.strip() for word in answer.read_text().split("\n")] if answer.exists() else []
    typed = line.rpartition(" ")[2]
    return [word for word in words if word and (typed.startswith("-") or not word.startswith("-"))]


@pytest.mark.process
def test_what_may_follow(tmp_path: Path) -> None:
    (tmp_path / "hnefi").mkdir()
    (tmp_path / "hnefi" / "engines.toml").write_text("[simon]\ncommand = 'x'\n")
    (tmp_path / "game.tafl").touch()
    for line, expected in (
        ("hnefi ", list(COMMANDS)),
        ("hnefi ta", [name for name in COMMANDS if name.startswith("ta")]),
        ("hnefi play --aga", ["--against"]),
        (
            "hnefi play --variant brandubh-",
            [name for name in catalogue.names() if name.startswith("brandubh-")],
        ),
        (
            "hnefi play --against sim",
            [name for name in [*players.names(), "simon"] if name.startswith("sim")],
        ),
        ("hnefi analyze --engine si", ["simon"]),
        ("hnefi arena re", ["report", "resume"]),
        ("hnefi arena default simo", ["simon"]),
        ("hnefi arena --variant tablut-l", ["tablut-linnaeus"]),
        ("hnefi arena report --pl", ["--plain", "--plots"]),
        ("hnefi bench s", ["scale", "search", "sessions", "siege", "speed"]),
        ("hnefi evolve r", ["rank", "resume"]),
        ("hnefi mqtt serve --record-", ["--record-dir"]),
        ("hnefi engine --pl", ["--player"]),
        ("hnefi engine ", []),
        ("hnefi play --load ga", ["game.tafl"]),
        ("hnefi play --movetime ", []),
        ("hnefi play --level ", [*map(str, range(11)), "auto"]),
        ("hnefi puzzle --variant brandubh,tablut-l", ["brandubh,tablut-linnaeus"]),
        ("hnefi puzzle --puzzle brandubh-01", [f"brandubh-0{number}" for number in range(10, 20)]),
        ("hnefi completion ", list(completion.SHELLS)),
        ("hnefi nosuch --x", []),
        ("hnefi play 'open", []),
    ):
        assert sorted(asked(line, tmp_path)) == sorted(expected), line


@pytest.mark.process
@pytest.mark.parametrize("shell", ["bash"])
def test_in_a_real_shell(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None or not SCRIPT.exists():
        pytest.skip(f"there is no {shell}, or no hnefi beside this Python")
    environment = {**os.environ, "PATH": f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}", "TERM": "dumb"}
    child = pexpect.spawn(
        shell, ["--norc", "--noprofile"], env=environment, cwd=str(tmp_path), encoding="utf-8", timeout=120
    )
    try:
        child.sendline(f"PS1='ready> '; eval \"$(hnefi completion {shell})\"; echo told")
        child.expect("\r\ntold\r\n.*ready> ")
        child.send("hnefi play --variant brandubh-wt\t")
        child.expect("brandubh-wtf3")
        child.send("\x03")
    finally:
        child.close(force=True)


def test_every_shell_has_lines_to_read(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in completion.SHELLS:
        assert completion.main([shell]) == 0
        assert "_ARGCOMPLETE" in capsys.readouterr().out


def test_without_the_package_it_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    with pytest.raises(SystemExit) as ended:
        completion.main(["bash"])
    assert ended.value.code == 2
    assert "pip install 'hnefi[completion]'" in capsys.readouterr().err
