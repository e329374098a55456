"""The command `hnefi mqtt`: a table from verb to module, imported when chosen, and what their command lines share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from hnefi.engine.wording import nearest, shorten
from hnefi.protocol.flags import Help, Parser, filled
from hnefi.protocol.hosts.connecting import password
from hnefi.protocol.hosts.exit_codes import USAGE

if TYPE_CHECKING:
    from .values import Access

GUEST = "guest"
"""The user of whoever has no name."""

VERBS: dict[str, tuple[str, str]] = {
    "serve": ("serve", "engines behind a broker, one process per session (the verb if none is named)"),
    "broker": ("brokers", "only a broker, on this machine alone"),
    "connect": ("connect", "a remote session as a local engine on standard input and output"),
    "arena": ("arena", "show a running tournament through a broker"),
    "watch": ("watch", "watch such a tournament at a terminal"),
    "check": ("check", "what a broker can do, and how fast it is"),
    "bench": ("bench", "measure the service on this machine"),
}


def main(argv: list[str]) -> int:
    """Run one verb, `serve` if none is named.

    0 ended, 1 interrupted, 2 called wrongly, 3 the broker failed, 4 our engine failed.
    """
    if argv and argv[0] in ("-h", "--help", "help"):
        print(overview())
        return 0
    verb, rest = (argv[0], argv[1:]) if argv and not argv[0].startswith("-") else ("serve", argv)
    if verb not in VERBS:
        expected = f"expected one of {', '.join(VERBS)}{nearest(verb, VERBS)}"
        print(f"hnefi mqtt: no verb {shorten(verb)}: {expected}", file=sys.stderr)
        return USAGE
    module = import_module(f".{VERBS[verb][0]}", __package__)
    status: int = module.main(rest) if rest is not argv else module.main(rest, "")
    return status


def overview() -> str:
    """What `hnefi mqtt --help` prints."""
    lines = ["usage: hnefi mqtt [VERB] [...]   (hnefi mqtt VERB --help for details)", ""]
    lines += [f"  {verb:<7}  {sentence}" for verb, (_, sentence) in VERBS.items()]
    lines += [
        "",
        "examples:",
        "  hnefi mqtt                                        a broker and an engine, on this machine",
        "  hnefi mqtt serve --broker mqtts://club.example --user hnefi-engine --password-file F",
        "  hnefi mqtt connect mqtt://127.0.0.1 --eid local   that engine, from here",
    ]
    return filled("\n".join(lines))


def parser(verb: str, description: str, examples: Sequence[str] = ()) -> argparse.ArgumentParser:
    """A parser for ``hnefi mqtt VERB`` whose help ends with `examples`."""
    command = f"hnefi mqtt {verb}".rstrip()
    shown = "\n".join(f"  {command} {example}".rstrip() for example in examples)
    return Parser(
        prog=command,
        description=description,
        epilog=f"examples:\n{shown}" if shown else None,
        formatter_class=Help,
        allow_abbrev=False,
    )


def add_connection(to: argparse.ArgumentParser) -> None:
    """`--user`, `--password-file`, `--cafile`, `--mqtt`: how to get into a broker."""
    group = to.add_argument_group("connection")
    group.add_argument(
        "--user", default="", help=f"name at the broker (default: that of the URL, else {GUEST})"
    )
    group.add_argument(
        "--password-file",
        metavar="FILE",
        help="a file whose first line is the password (else the variable HNEFI_PASSWORD)",
    )
    group.add_argument("--cafile", metavar="FILE", help="certificate authorities for mqtts and wss")
    group.add_argument(
        "--mqtt", choices=("auto", "3", "5"), default="auto", help="protocol: 3 is 3.1.1 (default auto)"
    )


def access(of: argparse.ArgumentParser, options: argparse.Namespace, url: str) -> Access:
    """What `add_connection` read, for the broker `url`; the program ends with 2 and a sentence if it is wrong."""
    from . import topics
    from .values import Access, parse_url

    try:
        address = parse_url(url)
        if options.user or address.user:
            topics.level(options.user or address.user, "user")
        return Access(address, options.user, password(options.password_file), options.cafile, options.mqtt)
    except ValueError as error:
        of.error(str(error))
