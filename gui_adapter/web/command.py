"""The command `hnefi web`: its flags, and running the server."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import logging
import os
import re
import sys
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hnefi.engine.wording import shorten
from hnefi.protocol.flags import Help, Parser
from hnefi.protocol.hosts import journal, trace
from hnefi.protocol.hosts.adapter import refuse_idle
from hnefi.protocol.hosts.argument_types import number, setting, whole
from hnefi.protocol.hosts.broker.flags import access, add_connection
from hnefi.protocol.hosts.engine_flags import check_options, check_playing
from hnefi.protocol.hosts.exit_codes import DONE, FAULTS, USAGE

from .addresses import Network, network

if TYPE_CHECKING:
    from hnefi.protocol.client import Starter
    from hnefi.protocol.hosts.broker.values import Access
    from hnefi.protocol.hosts.shutdown import Asked

    from .site import Settings

LOG = logging.getLogger("hnefi.web")

PORT: Final = 8080
LIMIT: Final = 8.0
"""Seconds for searches, games and connections to end."""
TOKEN: Final = 22
"""Characters of the shortest token: 128 bits in base64."""
HOST_NAME: Final = re.compile(
    r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*", re.IGNORECASE
)
"""A name in a Host header, without the port."""
BROKER_FLAGS: Final = ("user", "password_file", "cafile", "mqtt")
"""Flags that only make sense with --engines."""
DESCRIPTION = """\
The board in the browser: play against the engine, analyse, load and save games. Each game has its own engine process.
Nothing is loaded from other servers, and only this machine can connect unless --bind is given.

The first line on standard output is the address. Ctrl-C or SIGTERM ends it gently; a second one ends it at once."""
EPILOG = """\
examples:
  hnefi web --open                          the board in your browser
  hnefi web --port 9000 --variant brandubh
  hnefi web --arena ~/tournaments           watch the runs in that folder
  hnefi web --bind 0.0.0.0 --token-file club.token --host-name tafl.club.example
  hnefi web --engines mqtts://broker.example --user tafl-web --password-file F

A token is needed wherever others can connect; `python -c "import secrets; print(secrets.token_urlsafe())"` makes one.
Behind a proxy --host-name says by which name browsers know this server."""


def main(argv: list[str]) -> int:
    """0 after a normal end, 2 if called wrongly or if a package or port is missing, 3 if the broker of --engines
    refuses us."""
    options = _parser()
    arguments = options.parse_args(argv)
    refuse_idle(
        options, argv, "--engines" * bool(arguments.engines), {flag: ["--engines"] for flag in BROKER_FLAGS}
    )
    token = _check(options, arguments)
    try:
        import aiohttp  # noqa: F401
    except ImportError:
        options.exit(
            USAGE,
            "hnefi web: error: the package aiohttp is missing: install it with `pip install 'hnefi[web]'`\n",
        )
    from hnefi.protocol.hosts.shutdown import Asked
    from hnefi.protocol.hosts.stdio import Diagnostics

    way = access(options, arguments, arguments.engines) if arguments.engines else None
    Diagnostics.begin("hnefi web", arguments.log_level)
    with ExitStack() as stack:
        traffic = trace.opened(options, arguments.trace, stack)
        asked = Asked()
        asked.limit = LIMIT
        return asked.run(lambda asked: _forking(arguments, way, token, traffic, asked))


def _parser() -> Parser:
    options = Parser(
        prog="hnefi web",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    positive = whole(1, 999_999)
    options.add_argument("--port", type=whole(0, 65_535, "a port"), default=PORT, help="default 8080; 0: any")
    options.add_argument("--open", action="store_true", help="open it in your browser")
    options.add_argument("--bind", default="127.0.0.1", metavar="ADDR",
                         help="the address to listen on (default 127.0.0.1; others require --token-file)")  # fmt: skip
    options.add_argument(
        "--token-file", metavar="FILE", help="a file with the token that browsers are asked for"
    )
    options.add_argument("--host-name", action="append", default=[], type=_host_name, metavar="NAME",
                         help="a name by which browsers know this server; repeatable")  # fmt: skip
    options.add_argument("--no-fork", action="store_true",
                         help="start each engine as a new process instead of forking it from a loaded one")  # fmt: skip
    options.add_argument(
        "--sessions", metavar="N", type=positive, default=16, help="games at once (default 16)"
    )
    options.add_argument(
        "--pages", metavar="N", type=positive, default=256, help="pages at once (default 256)"
    )
    options.add_argument("--per-address", type=positive, default=0, metavar="N",
                         help="games, and pages, of one address at once (default: no limit)")  # fmt: skip
    options.add_argument("--rate", type=positive, default=0, metavar="N",
                         help="requests a second from one address (default: no limit)")  # fmt: skip
    options.add_argument("--trusted-proxy", action="append", default=[], type=_network, metavar="ADDR",
                         help="address or network of proxies to trust with X-Forwarded-For; repeatable")  # fmt: skip
    options.add_argument("--idle", metavar="S", type=number(0.1, 10_000_000, "seconds"), default=1800.0,
                         help="seconds until an unused game is closed (default 1800)")  # fmt: skip
    options.add_argument("--max-search", metavar="S", type=number(0.1, 10_000_000, "seconds"), default=600.0,
                         help="most seconds for a search (default 600)")  # fmt: skip
    options.add_argument(
        "--max-hash", metavar="MIB", type=positive, default=256, help="MiB a game may have (default 256)"
    )
    options.add_argument(
        "--max-threads", metavar="N", type=positive, default=1, help="threads it may have (default 1)"
    )
    options.add_argument("--engines", metavar="URL",
                         help="run the games on engine hosts behind an MQTT broker, each started with "
                         "`hnefi mqtt serve --pool`: mqtt://HOST[/PREFIX], mqtts://…, ws://HOST, wss://…")  # fmt: skip
    add_connection(options, "with --engines: access to the broker")
    playing = options.add_argument_group("playing")
    playing.add_argument("--variant", default="", metavar="V", help="the variant that a page begins with")
    playing.add_argument("--player", default="", metavar="NAME", help="the player that a page begins with")
    playing.add_argument("--option", action="append", default=[], type=setting, metavar="NAME=VALUE",
                         help="an option of every engine; repeatable")  # fmt: skip
    watching = options.add_argument_group("watching")
    watching.add_argument("--arena", action="append", default=[], type=Path, metavar="DIR",
                          help="a run of hnefi arena, or a folder of runs or of charts of ladder and balance, that all "
                          "visitors may watch; repeatable")  # fmt: skip
    watching.add_argument("--arena-matches", type=whole(0, 64), default=None, metavar="N",
                          help="matches that visitors may have running at once (default 1; with --bind 0)")  # fmt: skip
    keeping = options.add_argument_group("recording")
    journal.add_flags(keeping)
    trace.add_flag(keeping, "every frame in both directions")
    options.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), default="info", help="default info"
    )
    return options


def _host_name(text: str) -> str:
    """A name or an address of this server as browsers send it; ArgumentTypeError."""
    with suppress(ValueError):
        return _shown(str(ipaddress.ip_address(text.strip("[]"))))
    if len(text) > 253 or not HOST_NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{shorten(text)}: expected a name such as tafl.example.org, without http:// and port"
        )
    return text


def _network(text: str) -> Network:
    try:
        return network(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{shorten(text)}: {error}") from None


def _check(options: Parser, arguments: argparse.Namespace) -> str:
    """The token; exits the program with a sentence if the flags are inconsistent."""
    try:
        address = ipaddress.ip_address(arguments.bind)
    except ValueError:
        options.error(f"--bind {shorten(arguments.bind)}: expected an address such as 0.0.0.0")
    check_playing(options, arguments)
    check_options(options, arguments)
    journal.check_flags(options, arguments)
    for folder in arguments.arena:
        if not folder.is_dir():
            options.error(f"--arena {shorten(str(folder))}: expected a folder")
    if arguments.arena_matches is None:
        arguments.arena_matches = int(address.is_loopback)
    if arguments.token_file is None:
        if not address.is_loopback:
            options.error(f"--bind {arguments.bind}: others can connect: expected --token-file")
        return ""
    return _token(options, arguments.token_file)


def _token(options: Parser, name: str) -> str:
    path = Path(name)
    try:
        with path.open("rb") as file:
            said = file.read(1024).decode().strip()
            mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        options.error(f"--token-file {shorten(name)}: {reason}: expected a file with a token")
    if len(said) < TOKEN or not said.isascii() or not said.isprintable() or len(said) > 512:
        options.error(f"--token-file {shorten(name)}: expected one line of at least {TOKEN} characters")
    if mode & 0o077:
        print(f"hnefi web: {name} can be read by others: chmod 600 {name}", file=sys.stderr)
    return said


async def _forking(
    arguments: argparse.Namespace, way: Access | None, token: str, traffic: trace.Trace | None, asked: Asked
) -> int:
    from hnefi.protocol.fork_client import forking

    with ExitStack() as stack:
        if arguments.no_record:
            matches = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hnefi-matches-")))
        else:
            matches = (journal.chosen_folder(arguments) or journal.data_folder()) / "matches"
        if way is not None:
            from hnefi.protocol.hosts.broker.pool import Pool
            from hnefi.protocol.hosts.broker.values import LinkError
            from hnefi.protocol.process import Process

            try:
                async with Pool(way) as pool:
                    settings = _settings(arguments, token, traffic, Process.start, matches)
                    return await _serve(arguments, replace(settings, engines=pool), asked)
            except LinkError as error:
                print(f"hnefi web: --engines: {error}", file=sys.stderr)
                return FAULTS
        async with forking(not arguments.no_fork) as starter:
            return await _serve(arguments, _settings(arguments, token, traffic, starter, matches), asked)


def _settings(
    arguments: argparse.Namespace,
    token: str,
    traffic: trace.Trace | None,
    starter: Starter,
    matches: Path,
) -> Settings:
    from hnefi.protocol.client import own_command
    from hnefi.protocol.hosts.filter import Filter
    from hnefi.protocol.hosts.sessions.engine_process import Policy

    from .site import Settings

    def warn(failure: str) -> None:
        LOG.warning("games are no longer recorded: %s", failure)

    return Settings(
        policy=Policy(
            command=tuple(own_command()),
            proto="uti",
            filter=Filter(hash_mib=arguments.max_hash, threads=arguments.max_threads),
            options=tuple(arguments.option),
            player=arguments.player,
            variant=arguments.variant,
            max_search=arguments.max_search,
            starter=starter,
        ),
        sessions=arguments.sessions,
        pages=arguments.pages,
        per_address=arguments.per_address,
        rate=arguments.rate,
        proxies=tuple(arguments.trusted_proxy),
        idle=arguments.idle,
        token=token,
        names=(_shown(arguments.bind), *arguments.host_name),
        journal=None
        if arguments.no_record
        else journal.Journal("web", journal.chosen_folder(arguments), warn),
        trace=traffic,
        watched=(*arguments.arena, matches),
        matches=arguments.arena_matches,
        match_folder=matches,
    )


async def _serve(arguments: argparse.Namespace, settings: Settings, asked: Asked) -> int:
    from aiohttp import web

    from .server import Server
    from .site import Site

    server = Server(Site(settings))
    runner = web.AppRunner(server.app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, arguments.bind, arguments.port)
        try:
            await site.start()
        except OSError as error:
            # The event loop puts a sentence of its own in the place of the system's words.
            reason = os.strerror(error.errno).lower() if error.errno else str(error)
            print(
                f"hnefi web: port {arguments.port} of {arguments.bind}: {reason}: "
                "expected a free port, or --port 0 for any",
                file=sys.stderr,
            )
            return USAGE
        port = runner.addresses[0][1]
        host = "127.0.0.1" if ipaddress.ip_address(arguments.bind).is_unspecified else _shown(arguments.bind)
        url = f"http://{host}:{port}/"
        print(f"web {url}", flush=True)
        if arguments.open:
            await _show(url)
        await asked.wait()
    finally:
        await server.close()
        await runner.cleanup()
    return DONE


async def _show(url: str) -> None:
    import webbrowser

    if not await asyncio.to_thread(webbrowser.open, url):
        LOG.warning("no browser could be started: open %s", url)


def _shown(address: str) -> str:
    """An address in the form for URLs."""
    return f"[{address}]" if ":" in address else address
