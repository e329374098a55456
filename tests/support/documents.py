"""Examples of documents: fenced blocks, commands with their output."""

from __future__ import annotations

import re
from collections.abc import Iterator


def blocks(text: str, language: str) -> list[str]:
    """The contents of all fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def steps(block: str) -> Iterator[tuple[str, str]]:
    """Commands of a console block, each with the output that is shown for it."""
    for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = step.partition("\n")
        yield command, shown


def looks_like(shown: str) -> re.Pattern[str]:
    """A pattern in which `…` is anything, and a line of its own any number of lines."""
    lines = [
        "(?s:.*)" if line == "…" else re.escape(line).replace("…", ".*") + "\n" for line in shown.splitlines()
    ]
    return re.compile("".join(lines))
