"""`hnefi completion SHELL`: has bash, zsh or fish complete subcommands, flags, variants, players, engines and files."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from hnefi.protocol.flags import Parser

from .common.arguments import parser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

SHELLS = ("bash", "zsh", "fish")
FILES = ("FILE", "FOLDER", "DIR", "PATH", "RUN", "CMD", "ENGINE")
"""Words of the help behind which a file may stand."""


def main(argv: list[str]) -> int:
    """Print the lines that a shell has to read once."""
    options = parser(
        "completion",
        "Has a shell complete the words of hnefi: subcommands, flags, variants, players, your own engines, files. "
        "The shell reads the output once, at its start:\n\n"
        '  ~/.bashrc                   eval "$(hnefi completion bash)"\n'
        '  ~/.zshrc, after compinit    eval "$(hnefi completion zsh)"\n'
        "  ~/.config/fish/config.fish  hnefi completion fish | source",
        ["bash", "zsh", "fish"],
    )
    options.add_argument("shell", choices=SHELLS, help="which shell")
    arguments = options.parse_args(argv)
    try:
        import argcomplete
    except ImportError:
        options.error("expected the package argcomplete: pip install 'hnefi[completion]'")
    print(
        argcomplete.shellcode(  # type: ignore[attr-defined]
            ["hnefi"], shell=arguments.shell
        )
    )
    return 0


def complete(commands: Mapping[str, tuple[str, str]], run: Callable[[str, list[str]], int]) -> int:
    """Answer a shell: with subcommands, or with what the parser of a subcommand, found by `run`, takes.

    Returns only where there is nothing to be said.
    """
    from argcomplete.lexers import split_line

    line = os.environ.get("COMP_LINE", "")
    words = split_line(line, int(os.environ.get("COMP_POINT", len(line))))[3]
    if len(words) < 2:
        first = argparse.ArgumentParser(prog="hnefi")
        first.add_argument("--version", action="store_true")
        first.add_argument("command", choices=list(commands))
        _answer(first)
    if words[1] in commands:
        Parser.ask_instead = _answer
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            # Without further words some commands would begin their work.
            run(words[1], words[2:] or ["--help"])
        # A help that no parser has written: what is listed there is all that may follow.
        listed = argparse.ArgumentParser(prog=f"hnefi {words[1]}")
        listed.add_argument("verb", choices=verbs(listed.prog, said.getvalue()))
        _answer(listed)
    return 0


def _answer(asked: argparse.ArgumentParser) -> None:
    """Print what may stand where the cursor is, and end the process."""
    import argcomplete

    os.environ["_ARGCOMPLETE"] = str(len(asked.prog.split()))
    listed = verbs(asked.prog, asked.format_help())
    if listed and all(action.option_strings for action in asked._actions):
        asked.add_argument("verb", nargs="?")
    for action in asked._actions:
        if action.choices is None:
            completer = _completer(action)
            if listed and not action.option_strings:
                completer = partial(_either, listed, completer or _nothing)
                listed = []
            if completer is not None:
                action.completer = completer  # type: ignore[attr-defined]
    argcomplete.autocomplete(asked)
    sys.exit(0)


def verbs(prog: str, text: str) -> list[str]:
    """The words that a help lists above its flags and examples, as in `  hnefi arena resume RUN   continue a run`."""
    head = re.split(r"^(?:positional arguments|options|examples):", text, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(
        rf"^  (?:{prog} )?([a-z][a-z-]*)(?: [A-Z][A-Z.]*)*(?: \.\.\.)? {{2,}}\S", head, re.MULTILINE
    )


def _either(words: Iterable[str], others: Callable[..., Iterable[str]], **how: Any) -> list[str]:
    return [*words, *others(**how)]


def _completer(action: argparse.Action) -> Callable[..., Iterable[str]] | None:
    """What completes the value of a flag or a word; None: files."""
    shown = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if numbers := re.fullmatch(r"(\d+)\.\.(\d+)\|(\w+)", shown):
        low, high, word = numbers.groups()
        return partial(_either, [*map(str, range(int(low), int(high) + 1)), word], _nothing)
    if action.dest == "puzzle":
        return _puzzles
    if action.dest.endswith(("variant", "variants")) or shown in ("V", "VARIANT"):
        return _variants
    if shown == "PLAYER" or action.dest in ("against", "player"):
        return _players
    if action.dest == "engine" and shown in ("CMD", "ENGINE", "NAME"):
        return _engines
    if action.nargs == 0 or shown.split()[0].strip("[].") not in FILES:
        return _nothing
    return None


def _variants(prefix: str = "", **_: Any) -> Iterable[str]:
    """Every variant; behind a comma, those that the list does not have yet."""
    from hnefi.engine.catalogue import listed

    *given, _last = prefix.split(",")
    head = "".join(f"{name}," for name in given)
    return [f"{head}{name}" for name in listed() if name not in given]


def _puzzles(parsed_args: argparse.Namespace, **_: Any) -> Iterable[str]:
    """The ids of the suite that the line names, or of the shipped one."""
    from pathlib import Path

    from hnefi.protocol.hosts.puzzles.exercise import usable
    from hnefi.protocol.hosts.puzzles.suite import SHIPPED, SuiteError, read

    try:
        entries = read(Path(getattr(parsed_args, "suite", None) or SHIPPED))
    except SuiteError:
        return ()
    return [entry.id for entry in entries if usable(entry)]


def _engines(**_: Any) -> Iterable[str]:
    from hnefi.protocol.hosts import registry

    try:
        return list(registry.load())
    except registry.RegistryError:
        return ()


def _players(**_: Any) -> Iterable[str]:
    from hnefi import players

    return [*players.names(), *_engines()]


def _nothing(**_: Any) -> Iterable[str]:
    return ()
