"""The command line of the engine process, and the parser of every command of ours."""

from __future__ import annotations

import argparse
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Says in a line what is wrong and where help is, which twenty lines of usage hide; so do parsers below it."""

    def error(self, message: str) -> NoReturn:
        """End with status 2."""
        self.exit(2, f"{self.prog}: error: {message}\n`{self.prog} --help` tells more\n")


class _Setting(argparse.Action):
    """Appends (option name, value) to `settings`, in the order of the command line."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        text = str(values)
        name = {"--player": "Player", "--variant": "Variant"}.get(option_string or "")
        if name is None:
            name, equals, text = text.partition("=")
            if not equals or not name.strip():
                parser.error(f"--option {values}: expected NAME=VALUE")
        namespace.settings.append((name.strip(), text.strip()))


def parse(argv: list[str]) -> list[tuple[str, str]]:
    """The options to be set before the first line is read; exits with 2, or 0 for --help, as argparse does."""
    parser = Parser(
        prog="hnefi engine",
        description="The engine on standard input and output. Type help for the commands, quit to leave.",
        epilog="The flags act like setoption before the first line is read, in their order.",
        allow_abbrev=False,
    )
    parser.set_defaults(settings=[])
    parser.add_argument(
        "--player", action=_Setting, metavar="NAME", help="a shipped player, or a player's file"
    )
    parser.add_argument("--variant", action=_Setting, metavar="V", help="the game to begin with")
    parser.add_argument(
        "--option", action=_Setting, metavar="NAME=VALUE", help="any option of the greeting; repeatable"
    )
    settings: list[tuple[str, str]] = parser.parse_args(argv).settings
    return settings
