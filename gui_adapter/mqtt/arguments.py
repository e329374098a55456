"""What the command lines of the verbs of `hnefi mqtt` have in common."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hnefi.engine.wording import shorten
from hnefi.protocol.flags import Help, Parser

if TYPE_CHECKING:
    from .address import Access

GUEST = "guest"
"""The user of whoever has no name."""
PASSWORD_LIMIT = 4096


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
    from .address import Access, parse_url

    try:
        address = parse_url(url)
        if options.user or address.user:
            topics.level(options.user or address.user, "user")
        return Access(address, options.user, password(options.password_file), options.cafile, options.mqtt)
    except ValueError as error:
        of.error(str(error))


def password(file: str | None) -> str | None:
    """The password in `file`, else in HNEFI_PASSWORD, else none; ValueError with a sentence."""
    if file is None:
        return os.environ.get("HNEFI_PASSWORD")
    path = Path(file)
    try:
        with path.open(encoding="utf-8") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            line = stream.readline(PASSWORD_LIMIT)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "expected text in UTF-8"
        raise ValueError(f"password file {shorten(file)}: {reason}") from None
    if stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
        print(f"warning: others can read {shorten(file)}: chmod 600 would help", file=sys.stderr)
    return line.rstrip("\r\n")
