"""The command `hnefi otep`: its flags, and which of its parts they ask for."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hnefi.engine.wording import shorten
from hnefi.protocol.flags import Help, Parser
from hnefi.protocol.hosts import adapter
from hnefi.protocol.hosts.exit_codes import DONE, FULL, STORAGE

if TYPE_CHECKING:
    from hnefi.engine.games.tafl.variant import Variant
    from hnefi.protocol.hosts import trace

MOVETIME: Final = 5_000
LIMIT: Final = 2.0
"""Seconds for everything to end, some of which OpenTafl gets to end by itself."""
OVERHEAD: Final = 250
"""Milliseconds that our engine reserves on every clock, because OpenTafl checks its own every 100 ms."""
DESCRIPTION = """\
OpenTafl: play our engine on its board, or use its engine like one of ours.

Without --wrap or --write-ini this is the engine that OpenTafl starts; it speaks on standard input and output.
You have to install OpenTafl yourself."""
EPILOG = """\
examples:
  hnefi otep --write-ini ~/OpenTafl                     make our engine known to the OpenTafl in that folder
  hnefi otep --write-ini ~/OpenTafl --movetime 2000     the same, for games without a clock
  hnefi otep --wrap "java -Xmx1g -cp /home/me/OpenTafl.jar com.manywords.softworks.tafl.OpenTafl --engine --silent"

What --wrap makes of OpenTafl is an engine like any other: it is the command of an engine of `hnefi arena`. Each process
has a folder of its own, so the files in its command are named by full paths."""


def main(argv: list[str]) -> int:
    """0 the host said goodbye, 1 interrupted, 2 called wrongly, 3 the other side failed, 4 our engine failed."""
    options = _parser()
    arguments = options.parse_args(argv)
    _check(options, arguments, argv)
    if arguments.write_ini is not None:
        from .settings import write_ini

        return write_ini(options, arguments)
    if arguments.settings is not None:
        from .settings import read

        read(options, arguments)
        _check_values(options, arguments, "--settings: ")
    if not arguments.wrap:
        # Before the engine is loaded: OpenTafl soon treats an engine that has not said hello as one that resigns.
        _hello(options)
    work = _wrap if arguments.wrap else _face
    return adapter.run(options, arguments, lambda traffic: work(arguments, traffic), LIMIT)


def _hello(options: Parser) -> None:
    try:
        os.write(1, b"hello\n")
    except OSError as error:
        if error.errno in FULL:
            options.exit(STORAGE, f"{options.prog}: standard output: {error.strerror}\n")
        options.exit(DONE)


def _parser() -> Parser:
    options = Parser(
        prog="hnefi otep",
        usage="hnefi otep [...]\n       hnefi otep --write-ini DIR | --wrap CMD [...]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    kinds = options.add_argument_group("other modes")
    kinds.add_argument(
        "--write-ini", metavar="DIR", help="tell the OpenTafl in this folder how to start our engine"
    )
    kinds.add_argument(
        "--wrap", metavar="CMD", help="OpenTafl's engine as an engine on standard input and output"
    )
    playing = options.add_argument_group("as OpenTafl's engine")
    playing.add_argument(
        "--engine", metavar="CMD", help="the engine that plays, by command or name (default: our own)"
    )
    playing.add_argument("--player", metavar="NAME", help="one of our players, or a player's file")
    playing.add_argument("--option", action="append", metavar="NAME=VALUE",
                         help="an option of the engine; repeatable")  # fmt: skip
    playing.add_argument(
        "--movetime", metavar="MS", help=f"time for a move without a clock (default {MOVETIME})"
    )
    playing.add_argument("--otn", choices=("opentafl", "intended"),
                         help="how rules are read: as OpenTafl plays them (default) or as documented")  # fmt: skip
    playing.add_argument(
        "--settings", metavar="FILE", help="flags from a TOML file, as --write-ini writes it"
    )
    wrapping = options.add_argument_group("wrapping OpenTafl's engine")
    wrapping.add_argument("--name", default="OpenTafl", help="what it is called here (default OpenTafl)")
    wrapping.add_argument("--fresh", action="store_true", help="a new process for each game")
    wrapping.add_argument("--own-clock", action="store_true",
                          help="give it the whole clock instead of a budget for each move")  # fmt: skip
    adapter.add_flags(options, "every line in both directions, and those of our engine")
    options.add_argument("--force", action="store_true", help="let --write-ini replace settings, "
                         "and write to a folder that does not look like OpenTafl's")  # fmt: skip
    return options


USES: Final = {
    **dict.fromkeys(("engine", "player", "option", "movetime", "otn"), ("", "--write-ini")),
    "settings": ("",),
    **dict.fromkeys(("name", "fresh", "own_clock"), ("--wrap",)),
    "force": ("--write-ini",),
    "trace": ("", "--wrap"),
}
"""What flags are for."""


def _check(options: Parser, arguments: argparse.Namespace, argv: Sequence[str]) -> None:
    """Convert and check the arguments; exits the program with a sentence if they are inconsistent."""
    adapter.kind_of(options, arguments, argv, ("--wrap", "--write-ini"), USES)
    arguments.wrap = adapter.words(options, "--wrap", arguments.wrap)
    _check_values(options, arguments, "--")


def _check_values(options: Parser, arguments: argparse.Namespace, dash: str) -> None:
    """Check the arguments that may also come from a settings file."""
    if arguments.engine is not None and arguments.player is not None:
        options.error(f"{dash}engine and {dash}player: expected one of them")
    if arguments.engine is not None:
        from hnefi.protocol.hosts import registry

        try:
            engine = registry.engine_of(arguments.engine)
        except ValueError as error:
            options.error(f"{dash}engine: {error}")
        adapter.check_program(options, f"{dash}engine", engine.words)
    for text in arguments.option or ():
        name, equals, _ = text.partition("=")
        if not equals or not name.strip():
            options.error(f"{dash}option {shorten(text)}: expected NAME=VALUE")
    text = arguments.movetime
    if text is not None and not (text.isascii() and text.isdigit() and int(text[:9]) > 0 and len(text) < 9):
        options.error(f"{dash}movetime {shorten(text)}: expected milliseconds, a whole number of at least 1")


# The parts, each imported when it is chosen


async def _face(arguments: argparse.Namespace, traffic: trace.Trace | None) -> int:
    from hnefi.protocol.hosts import registry
    from hnefi.protocol.hosts.rulebook import EngineSlot
    from hnefi.protocol.hosts.stdio import Stdio

    from .face import Face, Settings

    stdio = Stdio(traffic, frozenset({b"goodbye"}))
    command: tuple[str, ...] = ()
    named: list[tuple[str, str]] = []
    if arguments.engine:
        engine = registry.engine_of(arguments.engine)
        command, named = engine.words, list(engine.options.items())
    pairs = [
        (name.strip(), value.strip())
        for name, _, value in (text.partition("=") for text in arguments.option or ())
    ]
    told: list[Face] = []
    ours = EngineSlot(
        player="" if command else arguments.player or "",
        options=[] if command else [("MoveOverhead", str(OVERHEAD)), *pairs],
        trace=traffic,
        on_compiling=lambda progress: told[0].compiling(progress) if told else None,
    )
    chooser = EngineSlot(command, options=[*named, *pairs], trace=traffic) if command else ours
    settings = Settings(int(arguments.movetime or MOVETIME), arguments.otn != "intended")
    face = Face(stdio, ours, chooser, settings, adapter.games("otep", arguments), game_for_others)
    told.append(face)
    async with adapter.engines(ours, chooser):
        return await face.run()


async def _wrap(arguments: argparse.Namespace, traffic: trace.Trace | None) -> int:
    from .wrap import DEFAULT, Command, OpenTafl

    program, *rest = arguments.wrap
    if os.sep in program:
        program = str(Path(program).absolute())  # its process has another folder
    command = Command((program, *rest), arguments.fresh, arguments.own_clock)
    guest = OpenTafl(command, arguments.name, traffic)
    return await adapter.as_engine(guest, f"variant {DEFAULT}", "otep", arguments, traffic)


def game_for_others(variant: Variant, opentafl: bool) -> str:
    """The line that sets the rules of a foreign engine, which knows shipped variants by name only."""
    from hnefi.engine.games.tafl.otn import export_rules, import_rules
    from hnefi.engine.games.tafl.variant import everything

    from .face import Unplayable

    for known in everything():
        if (
            known.size == variant.size
            and import_rules(export_rules(known)[0], opentafl)[0].hash == variant.hash
        ):
            return f"variant {known.name}"
    raise Unplayable(f"the engine of --engine knows no variant with the rules of {variant.name}")
