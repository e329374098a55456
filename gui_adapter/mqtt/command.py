"""The command `hnefi mqtt`: a table from command to module (imported when chosen), and their common parser."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from hnefi.engine.wording import nearest, shorten
from hnefi.protocol.flags import Help, Parser, filled
from hnefi.protocol.hosts.exit_codes import USAGE

COMMANDS: dict[str, tuple[str, str]] = {
    "serve": ("serve", "engines behind a broker, one process per session (the default)"),
    "broker": ("brokers", "only a broker, for this machine"),
    "connect": ("connect", "a remote session as a local engine on standard input and output"),
    "arena": ("arena", "show a running tournament through a broker"),
    "watch": ("watch", "watch such a tournament in a terminal"),
    "check": ("check", "test what a broker can do, and how fast it is"),
    "bench": ("bench", "measure the service on this machine"),
}


def main(argv: list[str]) -> int:
    """Run one command, `serve` if none is named.

    0 ended, 1 interrupted, 2 called wrongly, 3 the broker failed, 4 our engine failed.
    """
    if argv and argv[0] in ("-h", "--help", "help"):
        print(overview())
        return 0
    name, rest = (argv[0], argv[1:]) if argv and not argv[0].startswith("-") else ("serve", argv)
    if name not in COMMANDS:
        expected = f"expected one of {', '.join(COMMANDS)}{nearest(name, COMMANDS)}"
        print(f"hnefi mqtt: no command {shorten(name)}: {expected}", file=sys.stderr)
        return USAGE
    module = import_module(f".{COMMANDS[name][0]}", __package__)
    status: int = module.main(rest) if rest is not argv else module.main(rest, "")
    return status


def overview() -> str:
    """What `hnefi mqtt --help` prints."""
    lines = ["usage: hnefi mqtt [COMMAND] [...]   (hnefi mqtt COMMAND --help for details)", ""]
    lines += [f"  {name:<7}  {sentence}" for name, (_, sentence) in COMMANDS.items()]
    lines += [
        "",
        "examples:",
        "  hnefi mqtt                                        a broker and an engine, on this machine",
        "  hnefi mqtt serve --broker mqtts://club.example --user hnefi-engine --password-file F",
        "  hnefi mqtt connect mqtt://127.0.0.1 --eid local   that engine, from here",
    ]
    return filled("\n".join(lines))


def parser(name: str, description: str, examples: Sequence[str] = ()) -> argparse.ArgumentParser:
    """A parser for ``hnefi mqtt COMMAND`` whose help ends with `examples`."""
    command = f"hnefi mqtt {name}".rstrip()
    shown = "\n".join(f"  {command} {example}".rstrip() for example in examples)
    return Parser(
        prog=command,
        description=description,
        epilog=f"examples:\n{shown}" if shown else None,
        formatter_class=Help,
        allow_abbrev=False,
    )
