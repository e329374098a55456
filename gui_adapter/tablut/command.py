"""The command `hnefi tablut`: its flags, and which of its parts they ask for."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from hnefi.engine.sides import Side
from hnefi.engine.wording import shorten
from hnefi.protocol.flags import Help, Parser
from hnefi.protocol.hosts import adapter, engine_flags, trace
from hnefi.protocol.hosts.argument_types import number, whole
from hnefi.protocol.hosts.exit_codes import DONE, FAULTS, USAGE

if TYPE_CHECKING:
    from .bot import Command

LOG = logging.getLogger("hnefi.tablut")

SECONDS = 60
"""The default time for a move, as on the competition's server."""
NAME_LIMIT = 10
SIDES = {
    "white": Side.DEFENDERS, "defenders": Side.DEFENDERS, "d": Side.DEFENDERS,
    "black": Side.ATTACKERS, "attackers": Side.ATTACKERS, "a": Side.ATTACKERS,
}  # fmt: skip
DESCRIPTION = """\
The Tablut competition of the University of Bologna: its server, and the bots that play on it.

Without --wrap, --serve or --check our engine plays one game on such a server, called as the competition calls its
players. White are the defenders and move first."""
EPILOG = """\
examples:
  hnefi tablut White 60 192.168.20.2        a game, as the competition starts a player
  hnefi tablut --side black --seconds 10    the same, on this machine
  hnefi tablut --serve --seconds 10         a server for two players
  hnefi tablut --check "java -jar bot.jar {Colour} {seconds} {host}" --seconds 10
  hnefi tablut --wrap "java -jar bot.jar {Colour} {seconds} {host}" --seconds 10

In the command of a bot {colour}, {Colour} and {COLOUR} are white or black, {seconds} is the time for a move, {host}
and {port} are where it has to connect. What --wrap makes of a bot is an engine like any other, for `hnefi arena`,
`hnefi play --engine` and whatever else starts engines."""


def main(argv: list[str]) -> int:
    """0 the game ended, 1 interrupted or a bot that failed its check, 2 called wrongly, 3 the other side failed, 4 our
    engine failed."""
    options = _parser()
    arguments = options.parse_args(argv)
    _check(options, arguments, argv)
    work = next((part for flag, part in PARTS.items() if getattr(arguments, flag)), _play)
    return adapter.run(options, arguments, lambda traffic: work(arguments, traffic))


def _parser() -> Parser:
    options = Parser(
        prog="hnefi tablut",
        usage="hnefi tablut White|Black [SECONDS [HOST]] [...]\n"
        "       hnefi tablut --serve | --wrap CMD | --check CMD [...]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    options.add_argument("words", nargs="*", metavar="White|Black SECONDS HOST", help=argparse.SUPPRESS)
    kinds = options.add_argument_group("other modes")
    kinds.add_argument(
        "--serve", action="store_true", help="a server for two players, which says why each game ended"
    )
    kinds.add_argument("--wrap", metavar="CMD", help="a bot as an engine on standard input and output")
    kinds.add_argument("--check", metavar="CMD", help="test whether a bot follows the convention")
    options.add_argument("--seconds", metavar="N", help=f"the time for a move (default {SECONDS})")
    playing = options.add_argument_group("playing on a server")
    playing.add_argument("--side", metavar="white|black", help="the side to play")
    playing.add_argument("--host", metavar="HOST", help="where the server is (default localhost)")
    playing.add_argument("--name", default="hnefi", help="our name there (default hnefi)")
    playing.add_argument("--reserve", type=number(0, 1_000_000, "seconds"), default=2.0, metavar="N",
                         help="seconds to keep in reserve at each move (default 2, at most half)")  # fmt: skip
    playing.add_argument("--wait", type=number(0, 1_000_000, "seconds"), default=300.0, metavar="N",
                         help="how many seconds to wait for the server (default 300)")  # fmt: skip
    playing.add_argument("--movetime", type=whole(1), metavar="MS", help="think for at most this long")
    engine_flags.add_flags(playing)
    hosting = options.add_argument_group("serving, and wrapping bots")
    hosting.add_argument("--games", type=whole(1), default=1, metavar="N", help="games to serve (default 1)")
    hosting.add_argument("--tolerate", type=whole(0), default=0, metavar="K",
                         help="illegal moves a side may make in a served game (default 0)")  # fmt: skip
    hosting.add_argument("--start", type=number(0, 1_000_000, "seconds"), default=60.0, metavar="N",
                         help="seconds that a bot has to connect and give its name (default 60)")  # fmt: skip
    hosting.add_argument(
        "--bind", default="127.0.0.1", metavar="ADDR", help="where to serve (default 127.0.0.1)"
    )
    hosting.add_argument("--address", default="", metavar="ADDR",
                         help="where bots connect (default: a separate loopback address for each game)")  # fmt: skip
    adapter.add_flags(options, "every message in both directions, and the lines of our engine")
    return options


USES: Final = {
    **dict.fromkeys(
        ("side", "host", "name", "reserve", "wait", "movetime", "engine", "player", "option"), ("",)
    ),
    **dict.fromkeys(("games", "tolerate", "bind"), ("--serve",)),
    "start": ("--serve", "--wrap", "--check"),
    "address": ("--wrap", "--check"),
}
"""What flags are for."""


def _check(options: Parser, arguments: argparse.Namespace, argv: Sequence[str]) -> None:
    """Make values of the words; ends the program with a sentence where they do not fit each other."""
    kind = adapter.kind_of(options, arguments, argv, [f"--{part}" for part in PARTS], USES)
    words = arguments.words
    if kind and words:
        options.error(f"{shorten(words[0])} with {kind}: expected flags only")
    if len(words) > 3:
        options.error(f"{shorten(words[3])}: expected White or Black, the seconds and the host, and no more")
    for flag, word in zip(("side", "seconds", "host"), words, strict=False):
        if getattr(arguments, flag) is not None:
            options.error(f"{shorten(word)} and --{flag}: expected one of them")
        setattr(arguments, flag, word)
    side = SIDES.get((arguments.side or "").lower())
    if side is None and not kind:
        found = f"side {shorten(arguments.side)}: " if arguments.side else ""
        options.error(f"{found}expected White or Black, as in `hnefi tablut White 60 localhost`")
    arguments.side = side
    try:
        arguments.seconds = SECONDS if arguments.seconds is None else whole(1, 100_000)(arguments.seconds)
    except argparse.ArgumentTypeError as error:
        options.error(f"seconds {error}")
    for flag in ("host", "--bind", "--address"):
        _check_host(options, flag, getattr(arguments, flag.removeprefix("--")) or "")
    if not (arguments.name.isascii() and arguments.name.isalnum() and len(arguments.name) <= NAME_LIMIT):
        options.error(f"--name {shorten(arguments.name)}: expected at most {NAME_LIMIT} letters and digits")
    for flag in ("wrap", "check"):
        command = adapter.words(options, f"--{flag}", getattr(arguments, flag))
        setattr(arguments, flag, command)
        if command:
            from .bot import PLACES

            adapter.check_places(options, f"--{flag}", command, PLACES)
    if arguments.player or arguments.engine is not None:
        from .frames import VARIANT

        engine_flags.check_flags(options, arguments, VARIANT)
    else:
        engine_flags.check_options(options, arguments)
        arguments.engine = ()


def _check_host(options: Parser, flag: str, host: str) -> None:
    """No port may follow a host; the colons of an IPv6 address are part of it."""
    if ":" not in host:
        return
    from ipaddress import IPv6Address

    from .frames import COLOURS, PORTS

    try:
        IPv6Address(host)
    except ValueError:
        ports = " and ".join(f"{port} for {COLOURS[side]}" for side, port in PORTS.items())
        options.error(
            f"{flag} {shorten(host)}: expected a host without a port: the competition fixes the ports, {ports}"
        )


# The parts, each imported when it is chosen


async def _play(arguments: argparse.Namespace, traffic: trace.Trace | None) -> int:
    from hnefi.protocol.hosts.rulebook import RulesEngine, Thinker, rules_and_player

    from .client import Client, NoServer, Settings, connect
    from .frames import COLOURS, GAME

    settings = Settings(
        arguments.side,
        arguments.host or "localhost",
        arguments.seconds,
        arguments.reserve,
        arguments.name,
        arguments.wait,
        arguments.movetime,
    )
    try:
        reader, writer = await connect(settings)
    except NoServer as error:
        LOG.error("%s", error)
        return FAULTS
    adapter.tell(f"connected to {settings.host} as {settings.name}, {COLOURS[arguments.side]}")
    own, chooser = rules_and_player(
        arguments.engine, game=GAME, player=arguments.player, options=arguments.option, trace=traffic
    )
    async with adapter.engines(own, chooser):
        try:
            kept = adapter.games("tablut", arguments)
            client = Client(settings, RulesEngine(own), Thinker(chooser), kept, adapter.tell, traffic)
            return await client.play(reader, writer)
        finally:
            writer.close()


async def _serve(arguments: argparse.Namespace, traffic: trace.Trace | None) -> int:
    from hnefi.protocol.hosts.rulebook import EngineSlot, RulesEngine

    from .frames import GAME
    from .host import HostError
    from .serve import Settings, serve

    if not arguments.bind.startswith("127."):
        LOG.warning("--bind %s: anyone who can reach this address can play: the convention has no passwords",
                    shorten(arguments.bind))  # fmt: skip
    settings = Settings(arguments.seconds, arguments.tolerate, arguments.start, arguments.bind)
    slot = EngineSlot(game=GAME, trace=traffic)
    try:
        await serve(
            settings,
            arguments.games,
            RulesEngine(slot),
            adapter.games("tablut", arguments),
            adapter.tell,
            traffic,
        )
    except HostError as error:
        LOG.error("%s: expected an address of this machine with free ports", error)
        return USAGE
    finally:
        await slot.close()
    return DONE


async def _wrap(arguments: argparse.Namespace, traffic: trace.Trace | None) -> int:
    from .frames import GAME
    from .wrap import BotEngine

    guest = BotEngine(_bots(arguments, arguments.wrap), traffic)
    return await adapter.as_engine(guest, GAME, "tablut", arguments, traffic)


async def _try(arguments: argparse.Namespace, traffic: trace.Trace | None) -> int:
    from hnefi.protocol.hosts.rulebook import EngineSlot, RulesEngine

    from .check import check
    from .frames import GAME

    slot = EngineSlot(game=GAME, trace=traffic)
    try:
        return int(
            not await check(_bots(arguments, arguments.check), RulesEngine(slot), adapter.tell, traffic)
        )
    finally:
        await slot.close()


def _bots(arguments: argparse.Namespace, words: tuple[str, ...]) -> Command:
    from .bot import Command

    return Command(words, arguments.seconds, arguments.address, arguments.start)


PARTS: Final[Mapping[str, Callable[[argparse.Namespace, trace.Trace | None], Coroutine[Any, Any, int]]]] = {
    "serve": _serve,
    "wrap": _wrap,
    "check": _try,
}
