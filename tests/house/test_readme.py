"""What the documents show is run: sessions, commands and Python programs, as a reader would try them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conversation import Conversation, examples, run_example
from documents import blocks, looks_like, steps

ROOT = Path(__file__).resolve().parents[2]
TOUR = (ROOT / "docs" / "tour.md").read_text("utf-8")
UGI = (ROOT / "docs" / "adapters" / "ugi-and-uci.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8") + TOUR + UGI
DOCUMENTS = ["docs/tour.md", "docs/protocol-client.md"]
WRITTEN = sorted(
    str(path.relative_to(ROOT))
    for where in (".", "docs", "docs/adapters", "docs/experiments", "docs/history", "engine", "protocol")
    for path in (ROOT / where).glob("*.md")
)
TIMEOUT = 240
OWN_VARIANT = "brandubh-edge.toml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where commands are run: an empty folder but for the variant that the README writes."""
    made = tmp_path_factory.mktemp("reader")
    own, *_ = blocks(README, "toml")
    (made / OWN_VARIANT).write_text(own, "utf-8")
    return made


@pytest.fixture
def environment() -> dict[str, str]:
    """As if this environment were active."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.process
@pytest.mark.parametrize(
    "lines", [lines for _, lines in examples(README)], ids=[head for head, _ in examples(README)]
)
def test_sessions(lines: list[str]) -> None:
    with Conversation() as engine:
        run_example(engine, lines)


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "shown"),
    [step for block in blocks(README, "console") for step in steps(block)],
    ids=[step[0] for block in blocks(README, "console") for step in steps(block)],
)
def test_commands(command: str, shown: str, folder: Path, environment: dict[str, str]) -> None:
    ran = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert "Traceback" not in ran.stderr
    assert looks_like(shown).fullmatch(ran.stdout), ran.stdout + ran.stderr


@pytest.mark.process
@pytest.mark.parametrize("document", DOCUMENTS)
def test_programs(document: str, folder: Path, environment: dict[str, str]) -> None:
    programs = blocks((ROOT / document).read_text("utf-8"), "python")
    assert programs
    for program in programs:
        ran = subprocess.run(
            [sys.executable, "-c", program],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stderr == ""
        assert ran.stdout
        if document == "docs/tour.md":
            assert re.search(r"^info string outcome (a|d|draw) [a-z_]+$", ran.stdout, re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """The headings of a document as links name them."""
    prose = re.sub(r"^```.*?^```", "", document.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", WRITTEN)
def test_links_lead_somewhere(document: str) -> None:
    here = ROOT / document
    for target, heading in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", here.read_text("utf-8")):
        if target.startswith("https://"):
            continue
        found = here.parent / target if target else here
        assert found.exists(), target
        assert not heading or found.suffix != ".md" or heading in anchors(found), f"{target}#{heading}"


def test_commands_of_the_makefile_exist() -> None:
    rules = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z]+)", README))
    assert named
    assert named <= rules
