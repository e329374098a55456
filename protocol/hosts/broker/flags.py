"""The flags of commands that connect to a broker: `--user`, `--password-file`, `--cafile`, `--mqtt`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..connecting import password

if TYPE_CHECKING:
    from .values import Access

GUEST = "guest"
"""The user name of clients that give none."""


def add_connection(to: argparse.ArgumentParser, title: str = "connection") -> None:
    """`--user`, `--password-file`, `--cafile`, `--mqtt`: how to get into a broker."""
    group = to.add_argument_group(title)
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
        "--mqtt",
        choices=("auto", "3", "5"),
        default="auto",
        help="protocol version: 3 is 3.1.1 (default auto)",
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
