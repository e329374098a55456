"""The documents: each is found from their list, every command line that they show is understood, and the site of
`make docs` is built without a warning."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hnefi.protocol import flags, orphans
from hnefi.protocol.flags import Parser
from hnefi.tools.arena import option_reader
from hnefi.tools.cli import COMMANDS, main

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "protocol/*.md", "engine/README.md")
    for path in ROOT.glob(pattern)
    if "history" not in path.parts
)
SHOWN = ("sh", "console", "bash", "")
OURS = ("hnefi", ".venv/bin/hnefi", "/opt/hnefi/bin/hnefi")


@pytest.fixture(scope="module")
def site() -> ModuleType:
    """The hooks of the site."""
    spec = importlib.util.spec_from_file_location("docs_hooks", ROOT / ".ci" / "docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", autouse=True)
def no_guard() -> Iterator[None]:
    """Verbs of the arena start a process that ends their engines before they read their command line: not here, where
    no engine is started."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(orphans, "guarded", contextlib.nullcontext)
        yield


# Command lines


class UnderstoodError(Exception):
    """A command line was read to its end."""


@pytest.fixture
def only_parsed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Commands read their command line, and nothing more."""

    inside = 0

    def stop_after(owner: Any, name: str) -> None:
        parse = getattr(owner, name)

        def parsed(*arguments: Any, **how: Any) -> Any:
            nonlocal inside
            inside += 1
            try:
                found = parse(*arguments, **how)
            finally:
                inside -= 1
            # Unknown words that `engines check` hands on; the arena complains about them by itself.
            handed_on = name == "parse_known_args" and found[1] and arguments[0].prog != "hnefi engines check"
            if inside or handed_on:
                return found
            raise UnderstoodError

        monkeypatch.setattr(owner, name, parsed)

    for name in ("parse_args", "parse_known_args", "parse_intermixed_args"):
        stop_after(Parser, name)
    stop_after(option_reader, "parse")  # of the arena, which reads its command line piece by piece
    monkeypatch.chdir(tmp_path)
    handler = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, handler)


def commands_in(line: str) -> Iterator[list[str]]:
    """The words of each of our commands in a line for a shell."""
    redirected = re.sub(r"\s\d?>>?\s*&?\S+", " ", line)
    reader = shlex.shlex(redirected, posix=True, punctuation_chars="|&;<>()")
    reader.whitespace_split = True
    words: list[str] = []
    for word in [*reader, ";"]:
        if set(word) <= set("|&;<>()"):
            while words and (re.match(r"\w+=", words[0]) or words[0] in ("uv", "run", "exec", "sudo")):
                words.pop(0)
            if words and words[0] in OURS:
                yield words[1:]
            words = []
            continue
        words.append(word)


def shown_in(document: str) -> list[str]:
    """The lines of a document that call hnefi, continued ones as one."""
    found: list[str] = []
    language: str | None = None
    for line in (ROOT / document).read_text("utf-8").replace("\\\n", " ").splitlines():
        if line.startswith("```"):
            language = line.removeprefix("```") if language is None else None
        elif language in SHOWN and "hnefi " in line and (language != "console" or line.startswith("$ ")):
            found.append(line.removeprefix("$ "))
    return found


def complaint(words: list[str], capsys: pytest.CaptureFixture[str]) -> str | None:
    """What is wrong with a command line of ours; None if nothing is."""
    status: object = 0
    try:
        # The engine reads its lines from standard input where it has no flags.
        status = main(words) if words[:1] != ["engine"] else bool(flags.parse(words[1:]))
    except UnderstoodError:
        pass
    except SystemExit as ended:
        status = ended.code
    said = capsys.readouterr().err
    return f"hnefi {' '.join(words)}: {said or status}" if said or status else None


@pytest.mark.usefixtures("only_parsed")
@pytest.mark.parametrize("document", [name for name in DOCUMENTS if shown_in(name)])
def test_command_lines_of_documents_are_understood(document: str, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for line in shown_in(document):
        for words in commands_in(line):
            # What a variable of the shell holds, or dots leave out, nobody can tell.
            if not any("$" in word or word in ("...", "…") for word in words):
                wrong += filter(None, [complaint(words, capsys)])
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def helps(site: ModuleType) -> dict[str, str]:
    """The help of every command and every verb."""
    return {" ".join(words): text for name in COMMANDS for words, text in site.helps([name])}


@pytest.mark.usefixtures("only_parsed")
def test_examples_of_helps_are_understood(helps: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert len(helps) > 2 * len(COMMANDS)
    wrong = []
    for text in helps.values():
        examples = re.sub(r"\s*\\\n\s+", " ", text.partition("\nexamples:\n")[2])
        # Two spaces set off a remark.
        for line in re.findall(r"^  (hnefi .+?)(?: {2}.*)?$", examples, re.MULTILINE):
            for words in commands_in(line):
                wrong += filter(None, [complaint(words, capsys)])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_flags_in_prose_exist(document: str, helps: dict[str, str]) -> None:
    """In `hnefi arena report RUN --html` the flag is one of that verb."""
    wrong = []
    for text in re.findall(r"`hnefi ([^`\n]+)`", (ROOT / document).read_text("utf-8")):
        words = text.split()
        verb = max((name for name in helps if f"{text} ".startswith(f"{name} ")), key=len, default="")
        below = " ".join(shown for name, shown in helps.items() if f"{name} ".startswith(f"{verb} "))
        known = set(re.findall(r"--(?:\[no-\])?[a-z][\w-]*", below))
        known |= {flag.replace("[no-]", "") for flag in known} | {
            flag.replace("[no-]", "no-") for flag in known
        }
        used = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
        handed_on = words[0] == "COMMAND" or "hnefi" in words
        if not handed_on and used - known - {"--help", "--variant", "--version"}:
            wrong.append(f"hnefi {text}: {' '.join(used - known)}")
    assert not wrong, "\n".join(wrong)


def test_the_tour_shows_every_command() -> None:
    tour = (ROOT / "docs" / "tour.md").read_text("utf-8")
    missing = [command for command in COMMANDS if not re.search(rf"hnefi {command}\b(?!-)", tour)]
    assert not missing


# The site


def test_every_document_stands_in_the_list(site: ModuleType) -> None:
    listed = {target for section in site.sections() for target in section.targets} | {
        "README.md",
        site.BY_READER,
    }
    assert {"CHANGELOG.md", "SECURITY.md"} | listed == set(DOCUMENTS) | {"docs/history/measurements.md"}


def test_links_lead_to_pages(site: ModuleType) -> None:
    for target, uri, expected in (
        ("../protocol/PROTOCOL.md#options", "records.md", "protocol.md#options"),
        ("docs/web.md", "index.md", "web.md"),
        ("terminal.md", "play-and-study-games/index.md", "../terminal.md"),
        ("../engine/variants", "variants.md", "rules/index.md"),
        ("../../MEASUREMENTS.md", "experiments/hingston.md", "../measurements.md"),
        ("LICENSE", "index.md", "files/LICENSE"),
        ("https://example.org/x.md", "index.md", "https://example.org/x.md"),
        ("#here", "index.md", "#here"),
    ):
        assert site.relinked(target, uri) == expected


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example/x.js"></script>',
        "<script async src=//cdn.example/x.js></script>",
        '<link rel="stylesheet" href="https://fonts.example/css">',
        '<img alt="a" src="http://example.org/a.png">',
        "body { background: url(https://example.org/a.png) }",
        "@import 'https://example.org/a.css';",
    ],
)
def test_a_request_to_another_host_is_found(site: ModuleType, tmp_path: Path, text: str) -> None:
    (tmp_path / "own.html").write_text(
        '<a href="https://example.org">a link</a> <img src="own.png"> <link rel="canonical" href="https://example.org/">'
    )
    assert not list(site.foreign(tmp_path))
    (tmp_path / "page.css").write_text(text)
    assert list(site.foreign(tmp_path))


@pytest.mark.process
@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="make docs installs mkdocs-material")
    done = subprocess.run(
        # Not --quiet, which hides warnings from `strict`, too.
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr
    for page in ("index", "protocol", "play-and-study-games/index", "commands/arena", "rules/brandubh"):
        assert (tmp_path / "site" / f"{page}.html").stat().st_size > 1000
