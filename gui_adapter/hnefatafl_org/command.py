"""The command `hnefi hnefatafl-org`: its flags, and the way to the account and the engine."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import logging
import re
import sys
from typing import TYPE_CHECKING

from hnefi.engine.wording import shorten
from hnefi.protocol.flags import Help, Parser
from hnefi.protocol.hosts import adapter, engine_flags
from hnefi.protocol.hosts.argument_types import whole
from hnefi.protocol.hosts.connecting import host_and_port, password
from hnefi.protocol.hosts.exit_codes import FAULTS, INTERRUPTED, OURS_FAILED

if TYPE_CHECKING:
    from hnefi.protocol.hosts import trace

    from .connection import Account, Connection
    from .game import Settings
    from .play import Player
    from .thinking import Engines

LOG = logging.getLogger("hnefi.hnefatafl_org")

SERVER = "hnefatafl.org"
PORT = 49_152
WIRE = "32d9a140"
"""The release of the server's protocol that this was written for: 6.2.3 of its crate."""
PREFIX = "ai-"
"""How the site's custom begins the names of engines."""
PASSWORD_LIMIT = 32
_NAME = re.compile(r"[A-Za-z0-9_-]{1,16}", re.ASCII)
_WIRE = re.compile(r"[A-Za-z0-9._-]{1,40}", re.ASCII)
DESCRIPTION = """\
Our engine as an account on the public server hnefatafl.org: it offers a game, plays it and ends.

Use your own account, one that the site's customs allow for an engine; its name begins with ai-. The command does not
create accounts. It has never been tried against the real server, only against a double that was written from a
description of it, so watch it when you use it."""
EPILOG = """\
examples:
  hnefi hnefatafl-org --user ai-NAME --password-file F             offers a game
  hnefi hnefatafl-org --user ai-NAME --rated --clock 15m+10s --games 4
  hnefi hnefatafl-org --user ai-NAME --join 1234                   joins an offer

The password is the first line of the file, else the variable HNEFI_PASSWORD, else asked for."""


def main(argv: list[str]) -> int:
    """0 the games were played, 1 interrupted, 2 called wrongly, 3 the server failed or refused, 4 our engine failed."""
    options = _parser()
    arguments = options.parse_args(argv)
    if arguments.join:
        adapter.refuse_idle(options, argv, "--join", dict.fromkeys(("role", "clock", "rated"), ("offers",)))
    settings = _settings(options, arguments)
    account = _account(options, arguments)
    return adapter.run(options, arguments, lambda traffic: _play(arguments, account, settings, traffic))


def _parser() -> Parser:
    options = Parser(
        prog="hnefi hnefatafl-org",
        usage="hnefi hnefatafl-org --user ai-NAME [--password-file F] [...]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    account = options.add_argument_group("the account")
    account.add_argument("--user", required=True, metavar="NAME", help="the account, ai-NAME by custom")
    account.add_argument(
        "--password-file",
        metavar="FILE",
        help="a file whose first line is the password (else HNEFI_PASSWORD)",
    )
    account.add_argument(
        "--yes-this-account-is-for-engines",
        action="store_true",
        help="an engine may use the account although its name does not begin with ai-",
    )
    account.add_argument("--server", default=SERVER, metavar="HOST[:PORT]", help=f"default {SERVER}:{PORT}")
    account.add_argument(
        "--wire-version", default=WIRE, metavar="ID", help=f"the release of their protocol (default {WIRE})"
    )
    games = options.add_argument_group("the games")
    games.add_argument("--role", default="attacker", metavar="attacker|defender", help="default attacker")
    games.add_argument("--board", default="11", choices=("11", "13", "7"), help="default 11")
    games.add_argument(
        "--clock", default="15m+10s", metavar="15m+10s", help="for the game and for each move, or untimed"
    )
    games.add_argument("--rated", action="store_true", help="offer rated games")
    games.add_argument(
        "--games", type=whole(1), default=1, metavar="N", help="games, one after the other (default 1)"
    )
    games.add_argument("--join", default="", metavar="ID", help="join this offer instead of making one")
    games.add_argument(
        "--draws", default="never", choices=("never", "even"),
        help="accept draws never, or whenever the engine is not ahead (default never)",
    )  # fmt: skip
    playing = options.add_argument_group("the engine")
    engine_flags.add_flags(playing)
    playing.add_argument(
        "--movetime",
        type=whole(1),
        metavar="MS",
        help="think for at most this long; in untimed games the time for a move (5000 there by default)",
    )
    adapter.add_flags(options, "every line in both directions but the password, and the lines of our engine")
    return options


def _settings(options: Parser, arguments: argparse.Namespace) -> Settings:
    """What to play; ends the program with a sentence where the words do not fit."""
    if not _NAME.fullmatch(arguments.user):
        options.error(f"--user {shorten(arguments.user)}: expected at most 16 letters, digits, _ and -")
    if not (arguments.user.startswith(PREFIX) or arguments.yes_this_account_is_for_engines):
        options.error(
            f"--user {arguments.user}: engines are called {PREFIX}NAME there; use --yes-this-account-is-for-engines "
            "only if this account is yours and the site's customs allow an engine on it"
        )
    if arguments.join and not (arguments.join.isascii() and arguments.join.isdigit()):
        options.error(f"--join {shorten(arguments.join)}: expected the number of an offered game")
    if arguments.join and arguments.games != 1:
        options.error(f"--games {arguments.games} with --join: expected one game")
    from hnefi.engine.games.tafl.variant import find
    from hnefi.protocol.hosts.hnefatafl_org_notation import VARIANTS

    from .game import SIDES, Settings, read_clock

    size = int(arguments.board)
    arguments.variant = VARIANTS[size]
    engine_flags.check_flags(options, arguments, find(arguments.variant))
    role = SIDES.get(arguments.role.lower())
    if role is None:
        options.error(f"--role {shorten(arguments.role)}: expected attacker or defender")
    try:
        clock = read_clock(arguments.clock)
    except ValueError as error:
        options.error(f"--clock {error}")
    return Settings(
        arguments.user, role, size, clock, arguments.rated, arguments.games, arguments.join,
        arguments.draws == "even", arguments.movetime,
    )  # fmt: skip


def _account(options: Parser, arguments: argparse.Namespace) -> Account:
    from .connection import Account

    try:
        host, port = host_and_port(arguments.server, PORT)
    except ValueError as error:
        options.error(f"--server {error}")
    if not _WIRE.fullmatch(arguments.wire_version):
        options.error(f"--wire-version {shorten(arguments.wire_version)}: expected an id such as {WIRE}")
    try:
        secret = password(arguments.password_file)
    except ValueError as error:
        options.error(str(error))
    if secret is None:
        if not sys.stdin.isatty():
            options.error("no password: expected --password-file FILE or the variable HNEFI_PASSWORD")
        try:
            secret = getpass.getpass(f"password of {arguments.user} on {host}: ")
        except (EOFError, KeyboardInterrupt):
            options.exit(INTERRUPTED)
    # It travels as words of a line.
    if (
        not 0 < len(secret) <= PASSWORD_LIMIT
        or " ".join(secret.split()) != secret
        or not secret.isprintable()
    ):
        options.error(
            f"the password: expected at most {PASSWORD_LIMIT} visible characters, without blanks at the ends"
        )
    return Account(arguments.user, secret, host, port, arguments.wire_version)


async def _play(
    arguments: argparse.Namespace, account: Account, settings: Settings, traffic: trace.Trace | None
) -> int:
    from .connection import Link, ServerError

    link = Link(account, trace=traffic)
    table = _Table(arguments, settings, link.waits.ping, traffic)
    try:
        return await link.keep(table.use)
    except ServerError as error:
        table.leave(str(error))
        LOG.error("%s", error)
        return FAULTS
    except asyncio.CancelledError:
        table.warn_of_game()
        table.leave("interrupted")
        raise
    finally:
        await table.close()


class _Table:
    """The player and the engines. They are created after the login, because importing them takes longer than that."""

    def __init__(
        self, arguments: argparse.Namespace, settings: Settings, ping: float, traffic: trace.Trace | None
    ) -> None:
        self._arguments = arguments
        self._settings = settings
        self._ping = ping
        self._traffic = traffic
        self._player: Player | None = None
        self._engines: Engines
        self._starting: asyncio.Task[None]

    async def use(self, connection: Connection) -> int:
        """Play on a connection on which we are logged in; the exit code, or Lost, or ServerError."""
        from hnefi.protocol.client import EngineError

        if self._player is None:
            self._player = self._open()
        playing = asyncio.create_task(self._player.use(connection))
        try:
            # Offers and moves wait for the engines, because a clock may run from then on.
            await asyncio.wait({self._starting, playing}, return_when=asyncio.FIRST_COMPLETED)
            if not playing.done():
                await self._starting
            return await playing
        except EngineError as error:
            self.warn_of_game()
            self.leave(f"our engine failed: {error}")
            LOG.error("our engine failed: %s", error)
            return OURS_FAILED
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)

    def _open(self) -> Player:
        from hnefi.protocol.hosts.rulebook import rules_and_player

        from .play import Player
        from .thinking import Engines

        given, traffic = self._arguments, self._traffic
        self._engines = Engines(
            *rules_and_player(given.engine, game="", player=given.player, options=given.option, trace=traffic)
        )
        self._starting = asyncio.create_task(self._engines.start(given.variant))
        kept = adapter.games("hnefatafl-org", given)
        return Player(self._settings, self._engines, kept, adapter.tell, self._ping)

    def warn_of_game(self) -> None:
        """Warn that a game continues without us, if one does."""
        if self._player is not None and self._player.playing:
            LOG.warning(
                "game %s and its clock continue without us: the same command resumes it", self._player.playing
            )

    def leave(self, why: str) -> None:
        """Leave the current game unfinished."""
        if self._player is not None:
            self._player.leave(why)

    async def close(self) -> None:
        """End the engines."""
        if self._player is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
            await self._engines.close()
