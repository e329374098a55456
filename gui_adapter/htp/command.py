"""The command `hnefi htp`: its flags, and which of its parts they ask for."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hnefi.engine.wording import shorten
from hnefi.protocol.flags import Help, Parser
from hnefi.protocol.hosts import adapter, engine_flags
from hnefi.protocol.hosts.argument_types import number, whole
from hnefi.protocol.hosts.connecting import host_and_port
from hnefi.protocol.hosts.exit_codes import FAULTS

if TYPE_CHECKING:
    from hnefi.protocol.hosts import trace
    from hnefi.protocol.hosts.rulebook import EngineSlot

LOG = logging.getLogger("hnefi.htp")

MOVETIME: Final = 5_000
VARIANTS: Final = ("copenhagen-org", "copenhagen-org-13", "brandubh-org")
DESCRIPTION = """\
The Hnefatafl Text Protocol of the programs around hnefatafl.org, under the rules that are played there.

Without --connect or --wrap this is an engine that speaks the protocol on standard input and output, for a controller
that starts it or for scripts."""
EPILOG = """\
examples:
  hnefi htp                                 our engine, for a program that speaks the protocol
  hnefi htp --connect localhost             our engine plays a game on a light server, port 49152
  hnefi htp --wrap hnefatafl-text-protocol
  hnefi htp --wrap "hnefatafl-text-protocol --tcp {host}:{port}"

An engine that --wrap drives speaks on its standard input and output. With {host} in its command it connects to a light
server instead, which we are: {host} is the address, {port} the port. What --wrap makes of it is an engine like any
other, for `hnefi arena`, `hnefi play --engine` and whatever else starts engines."""


def main(argv: list[str]) -> int:
    """0 after a normal end, 1 interrupted, 2 called wrongly, 3 the other side failed, 4 our engine failed."""
    options = _parser()
    arguments = options.parse_args(argv)
    _check(options, arguments, argv)
    work = _wrap if arguments.wrap else _connect if arguments.connect else _face
    return adapter.run(options, arguments, lambda traffic: work(arguments, traffic))


def _parser() -> Parser:
    options = Parser(
        prog="hnefi htp",
        usage="hnefi htp [...]\n       hnefi htp --connect HOST[:PORT] | --wrap CMD [...]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    kinds = options.add_argument_group("other modes")
    kinds.add_argument("--connect", metavar="HOST[:PORT]", help="play on a light server (port 49152)")
    kinds.add_argument("--wrap", metavar="CMD", help="make one of their engines speak our protocol")
    options.add_argument(
        "--variant", metavar="V", help=f"the rules to begin with: {', '.join(VARIANTS)} (default: the first)"
    )
    playing = options.add_argument_group("playing")
    engine_flags.add_flags(playing)
    playing.add_argument("--movetime", type=whole(1), metavar="MS",
                         help=f"time for a move without a clock (default {MOVETIME})")  # fmt: skip
    playing.add_argument("--wait", type=number(0, 1_000_000, "seconds"), metavar="N",
                         help="how many seconds to wait for a light server (default 300)")  # fmt: skip
    wrapping = options.add_argument_group("wrapping engines")
    wrapping.add_argument(
        "--name", metavar="NAME", help="what the engine is called here (default: its program)"
    )
    wrapping.add_argument("--address", metavar="ADDR",
                          help="where it connects (default: a separate loopback address for each game)")  # fmt: skip
    adapter.add_flags(options, "every line in both directions, and those of our engine")
    return options


USES: Final = {
    **dict.fromkeys(("engine", "player", "option", "movetime"), ("", "--connect")),
    "wait": ("--connect",),
    "name": ("--wrap",),
    "address": ("--wrap with {host} in its command",),
}
"""What flags are for."""


def _check(options: Parser, arguments: argparse.Namespace, argv: Sequence[str]) -> None:
    """Convert and check the arguments; exits the program with a sentence if they are inconsistent."""
    uses = {**USES, "address": ("--wrap",)} if "{host}" in (arguments.wrap or "") else USES
    adapter.kind_of(options, arguments, argv, ("--wrap", "--connect"), uses)
    arguments.variant = _variant(options, arguments)
    arguments.wrap = adapter.words(options, "--wrap", arguments.wrap)
    if arguments.wrap:
        from .wrap import HOST, PLACES, PORT

        adapter.check_places(options, "--wrap", arguments.wrap, PLACES)
        text = " ".join(arguments.wrap)
        if PORT in text and HOST not in text:
            options.error(f"--wrap: {PORT} without {HOST}: expected both, or {HOST} alone")
    if arguments.connect is not None:
        from .lines import PORT as LIGHT_PORT

        try:
            arguments.connect = host_and_port(arguments.connect, LIGHT_PORT)
        except ValueError as error:
            options.error(f"--connect {error}")
    if arguments.player or arguments.engine is not None:
        from hnefi.engine.games.tafl.variant import find

        engine_flags.check_flags(options, arguments, find(arguments.variant))
    else:
        engine_flags.check_options(options, arguments)


def _variant(options: Parser, arguments: argparse.Namespace) -> str:
    text = arguments.variant
    if text is None:
        return VARIANTS[0]
    if text not in VARIANTS:
        options.error(f"--variant {shorten(text)}: expected {', '.join(VARIANTS)}")
    only = "--connect" if arguments.connect is not None else ""
    if arguments.wrap is not None and "{host}" in arguments.wrap:
        only = "--wrap with {host}"
    if only and text != VARIANTS[0]:
        options.error(f"--variant {text} and {only}: expected {VARIANTS[0]}, which light servers play")
    return str(text)


# The parts, each imported when it is chosen


def _slots(arguments: argparse.Namespace, traffic: trace.Trace | None) -> tuple[EngineSlot, EngineSlot]:
    from hnefi.protocol.hosts.rulebook import rules_and_player

    return rules_and_player(
        arguments.engine or (),
        game=f"variant {arguments.variant}",
        player=arguments.player,
        options=arguments.option,
        trace=traffic,
    )


async def _face(arguments: argparse.Namespace, traffic: trace.Trace | None) -> int:
    from hnefi.protocol.hosts.hnefatafl_org_notation import VARIANTS as BY_SIZE
    from hnefi.protocol.hosts.stdio import Stdio

    from .face import Face
    from .game import Game

    size = next(size for size, name in BY_SIZE.items() if name == arguments.variant)
    own, chooser = _slots(arguments, traffic)
    game = Game(own, chooser, adapter.games("htp", arguments), size, arguments.movetime or MOVETIME)
    stdio = Stdio(traffic)
    async with adapter.engines(own, chooser):
        return await Face(stdio, game).run()


async def _connect(arguments: argparse.Namespace, traffic: trace.Trace | None) -> int:
    from .game import Game
    from .light import Client, ServerError, connect

    host, port = arguments.connect
    own, chooser = _slots(arguments, traffic)
    async with adapter.engines(own, chooser):
        try:
            reader, writer = await connect(host, port, 300.0 if arguments.wait is None else arguments.wait)
            adapter.tell(f"connected to {host}:{port}: the game begins when two players are there")
            game = Game(
                own, chooser, adapter.games("htp", arguments), 11, arguments.movetime or MOVETIME, "opponent"
            )
            return await Client(reader, writer, game, adapter.tell, traffic).play()
        except ServerError as error:
            LOG.error("%s", error)
            return FAULTS


async def _wrap(arguments: argparse.Namespace, traffic: trace.Trace | None) -> int:
    from .wrap import Command, engine

    command = Command(arguments.wrap, arguments.address or "")
    guest = engine(command, arguments.name or "", arguments.variant, traffic)
    return await adapter.as_engine(guest, f"variant {arguments.variant}", "htp", arguments, traffic)
