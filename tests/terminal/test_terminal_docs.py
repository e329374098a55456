"""docs/terminal.md: nothing is left out, what it shows is what happens, its pictures are there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from documents import blocks, looks_like, steps

from hnefi.gui_adapter.terminal import settings, tui
from hnefi.gui_adapter.terminal.commands import table

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "terminal.md").read_text("utf-8")
CODES = set(re.findall(r"`([^`\n]+)`", PAGE))
"""Everything on the page that is set as code."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reader")


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "shown"), [step for block in blocks(PAGE, "console") for step in steps(block)]
)
def test_commands(command: str, shown: str, folder: Path) -> None:
    ran = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "XDG_CONFIG_HOME": str(folder),
            "XDG_DATA_HOME": str(folder),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert looks_like(shown).fullmatch(ran.stdout), ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr


def test_every_word_is_there() -> None:
    told = {code.split()[0] for code in CODES}
    assert set(table.TABLE) <= told


def test_every_setting_is_there() -> None:
    assert set(settings.KEYS) <= CODES


def test_every_key_is_there() -> None:
    told = PAGE.lower()
    for key in (*tui.LINES, *tui.STEPS, "f2", "f4"):
        assert key in told


def test_links_and_pictures_are_there() -> None:
    for target in re.findall(r"\]\(([^)#\s]+)\)", PAGE):
        file = ROOT / "docs" / target
        assert file.exists(), target
        if file.suffix == ".svg":
            ET.parse(file)
