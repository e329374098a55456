"""`hnefi play`: the command line, and which front end it opens."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from hnefi.protocol.flags import Help, Parser
from hnefi.protocol.hosts.argument_types import setting, whole
from hnefi.protocol.hosts.exit_codes import code_of

if TYPE_CHECKING:
    from hnefi.engine.games.base_variant import AnyVariant

    from .controller import Controller
    from .opponents import Spec
    from .settings import Settings

OTHER_SIDE: Final = 3
FIRST_SCREEN: Final = 0.1
"""Seconds after which the engines are started in the background of the full screen."""
SCRIPT_SEED: Final = 1
"""The seed of scripts, so that they play the same game each time."""

_EPILOG = """\
examples:
  hnefi play                                  as your settings say
  hnefi play --variant brandubh --side d --level 3
  hnefi play --level auto                     a level that follows your results
  hnefi play --variant hex:11 --against uct-1k
  hnefi play --side both --clock 10+5         two people, one keyboard
  hnefi play --side none --level 4 --level 6  watch: attackers, defenders
  hnefi play --engine "other-engine --fast"   speaks uti, uci or ugi
  hnefi play --load game.tafl
  hnefi play --script moves.txt --strict      also: hnefi play < moves.txt

In the game `help` lists every word, `help level` says what the levels are.
Exit status: 0 left, 1 interrupted, 2 called wrongly or a file that cannot be
read, 3 the other engine failed, 4 ours did."""


class _Rival(argparse.Action):
    """Appends (kind, text) to `rivals`, in the order of the command line."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        if len(namespace.rivals) == 2:
            parser.error(
                f"{option_string} {values}: expected at most two opponents, attackers before defenders"
            )
        namespace.rivals.append(((option_string or "").removeprefix("--"), str(values)))


def main(argv: list[str]) -> int:
    """Play; returns the exit status."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    from hnefi.protocol.hosts import journal

    from . import settings as preferences

    journal.check_flags(parser, arguments)

    settings, complaints = preferences.load()
    for complaint in complaints:
        print(f"hnefi play: {complaint}", file=sys.stderr)
    settings = _overridden(parser, settings, arguments)
    with ExitStack() as stack:
        scripted = arguments.script is not None or not (sys.stdin.isatty() and sys.stdout.isatty())
        controller = _controller(parser, settings, arguments, stack, scripted=scripted)
        source = _source(parser, arguments) if scripted else None
        return asyncio.run(_play(parser, controller, arguments, source))


def _parser() -> argparse.ArgumentParser:
    from hnefi.protocol.hosts import journal, trace

    parser = Parser(
        prog="hnefi play",
        description="A game at the terminal: against our engine or any other, between two people, or between engines.",
        epilog=_EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.set_defaults(rivals=[])
    parser.add_argument(
        "--variant",
        metavar="V",
        help="game or rule set: a name (`hnefi variants`), hex:11, a .toml file (as set, or as --against needs)",
    )
    parser.add_argument("--side", choices=("a", "d", "both", "none"), help="which side you play")
    parser.add_argument(
        "--level",
        action=_Rival,
        metavar="0..10|auto",
        help="our engine, as strong as this; auto follows your results from game to game",
    )
    parser.add_argument(
        "--against",
        action=_Rival,
        metavar="NAME",
        help="one of our players (`hnefi players`), a player's file, or one of `hnefi engines`",
    )
    parser.add_argument(
        "--engine",
        action=_Rival,
        metavar="CMD",
        help="any engine process, or one of `hnefi engines`; given twice: attackers, defenders",
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=setting,
        metavar="NAME=VALUE",
        help="an option of the engine; repeatable",
    )
    parser.add_argument(
        "--movetime",
        type=whole(1, what="milliseconds"),
        metavar="MS",
        help="time of an engine for each move, in milliseconds",
    )
    parser.add_argument("--clock", metavar="M+S", help="minutes for the game, seconds for each move; or off")
    parser.add_argument(
        "--seed", type=whole(0, 2**32 - 1), metavar="N", help="seed of players that choose at random"
    )
    parser.add_argument("--tui", action="store_true", help="the full screen instead of the prompt")
    parser.add_argument("--ascii", action="store_true", help="use only ASCII on the screen")
    parser.add_argument("--zoom", choices=("auto", "1", "2", "3"), help="how large the squares are (auto)")
    parser.add_argument("--load", metavar="FILE", help="continue a recorded game, or one from a journal")
    parser.add_argument(
        "--continue",
        dest="go_on",
        action="store_true",
        help="continue the unfinished game, which is saved automatically",
    )
    parser.add_argument(
        "--watch",
        metavar="RUN",
        help="follow the games of an arena run, by its folder; it needs arena's --live",
    )
    parser.add_argument(
        "--screenshot",
        metavar="FILE",
        help="write the screen (.svg or .txt) with the first board, or after a --script, and leave",
    )
    parser.add_argument(
        "--script", metavar="FILE", help="carry out the lines of a file (- for standard input)"
    )
    parser.add_argument(
        "--strict", action="store_true", help="in a script: stop at the first error, with exit status 2"
    )
    parser.add_argument("--path", metavar="PATH", help="a file or folder of further variants (TOML)")
    journal.add_flags(parser)
    trace.add_flag(parser, "every line from and to the engines")
    return parser


def _overridden(
    parser: argparse.ArgumentParser, settings: Settings, arguments: argparse.Namespace
) -> Settings:
    """The user's settings, overridden by the command line."""
    from .settings import SettingsError

    try:
        if arguments.ascii:
            settings = settings.with_value("glyphs", "ascii")
        if arguments.zoom:
            settings = settings.with_value("zoom", arguments.zoom)
    except SettingsError as error:
        parser.error(str(error))
    return settings


def _source(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> IO[bytes]:
    """The source of a script's lines: a file, or standard input.

    It stays open, because closing a file while a thread reads it would wait for the next line.
    """
    if arguments.script not in (None, "-"):
        try:
            return Path(arguments.script).open("rb")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            parser.error(f"--script {arguments.script[:200]!r}: {reason}: expected a readable file")
    if arguments.tui:
        parser.error("--tui: expected a terminal as standard input and output")
    # At exit Python closes its own standard input, with a fatal error if a thread is reading from it.
    return open(sys.stdin.fileno(), "rb", closefd=False)


def _controller(
    parser: argparse.ArgumentParser,
    settings: Settings,
    arguments: argparse.Namespace,
    stack: ExitStack,
    *,
    scripted: bool,
) -> Controller:
    from hnefi.engine.records.rule_sets import finder
    from hnefi.protocol.hosts import journal, trace

    from . import clock, opponents
    from .commands.play import SIDES
    from .controller import Controller
    from .saving import Files

    variant = _variant(parser, arguments, settings.variant)
    rivals = _rivals(parser, arguments, variant, settings.level)
    if scripted:
        settings = settings.with_value("glyphs", "ascii")
    seed = arguments.seed
    if seed is None:
        seed = SCRIPT_SEED if scripted else secrets.randbelow(2**32)
    side = arguments.side or settings.side
    if any(spec.auto for spec in rivals) and (scripted or side == "none"):
        why = "scripts and pipes" if scripted else "--side none"
        parser.error(
            f"--level auto: it follows a person's results, and with {why} no person plays: expected 0..10"
        )
    files = Files(
        finder(arguments.path),
        keep=not arguments.no_record,
        autosave=not scripted,
        folder=journal.chosen_folder(arguments),
    )
    controller = Controller(
        variant,
        settings,
        files,
        interactive=not scripted,
        traffic=trace.opened(parser, arguments.trace, stack),
    )
    session = controller.session
    session.players.seed = seed
    # The book is for variety; a seed asks for the opposite.
    session.players.book = arguments.seed is None and not scripted
    session.players.rival = rivals[-1]
    for spec in rivals:
        if said := opponents.unmeasured(spec, variant):
            session.say(said)
    for letter, spec in zip("ad", (rivals[0], rivals[-1]), strict=True):
        session.assign("a" if letter == "a" else "d", None if letter in SIDES[side] else spec)
    if session.players.follows:
        try:
            session.follow()
        except ValueError as error:
            parser.error(f"--level auto: {error}")
        if not (arguments.load or arguments.watch or arguments.go_on):
            session.say(session.ladder.words(variant.game))
    try:
        session.set_clock(clock.read(arguments.clock or settings.clock))
    except ValueError as error:
        parser.error(f"--clock: {error}")
    return controller


def _variant(parser: argparse.ArgumentParser, arguments: argparse.Namespace, usual: str) -> AnyVariant:
    """The requested variant; else the usual one, unless an opponent on the command line only plays another."""
    from hnefi.engine.games import named
    from hnefi.engine.games.base_variant import VariantError

    from . import opponents

    try:
        variant = named(arguments.variant or usual, arguments.path)
        if arguments.variant is None:
            rivals = [text for kind, text in arguments.rivals if kind != "level"]
            homes = (opponents.home(name, variant) for name in rivals)
            if (home := next(filter(None, homes), None)) is not None:
                return named(home, arguments.path)
    except VariantError as error:
        flag = "" if arguments.variant is None else "--variant "
        parser.error(f"{flag}{error}")
    return variant


def _rivals(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace, variant: AnyVariant, level: int
) -> list[Spec]:
    """The opponents on the command line; if there are none, our engine at the level of the settings."""
    from hnefi.protocol.hosts import engine_flags

    from . import opponents

    options = dict(arguments.option)
    specs = []
    for kind, text in arguments.rivals or [("level", str(level))]:
        try:
            if kind == "level" and text == opponents.AUTO:
                spec = opponents.Spec(level=opponents.DEFAULT_LEVEL, auto=True)
            elif kind == "level":
                spec = opponents.at_level(text)
            elif kind == "against":
                spec = opponents.by_name(text, variant)
            else:
                spec = opponents.by_command(text, variant)
        except ValueError as error:
            parser.error(f"--{kind}: {error}")
        specs.append(replace(spec, options={**spec.options, **options}, movetime=arguments.movetime))
    if any(spec.own for spec in specs):
        engine_flags.check_options(parser, arguments)
    # A game that is taken up may be of another variant: `load` and `continue` look for themselves.
    if not (arguments.load or arguments.go_on or arguments.watch):
        for spec in specs:
            if reason := opponents.unfit(spec, variant):
                parser.error(f"{spec.spelled}: {reason}")
    return specs


def _first(
    parser: argparse.ArgumentParser, controller: Controller, arguments: argparse.Namespace
) -> str | None:
    """The line that continues a game, if one was requested; exits the program if its file cannot be read."""
    from . import saving

    if arguments.load is not None:
        path = Path(arguments.load).expanduser().absolute()
        try:
            loaded = saving.load(path, None, controller.find, controller.session.variant)
        except saving.SavingError as error:
            parser.error(f"--load: {error}")
        controller.session.foresee(loaded.variant)
        return f"load {path}"
    if arguments.watch is not None:
        from .watching import Watcher, WatchError

        watcher = Watcher(controller, Path(arguments.watch).expanduser())
        try:
            watcher.open()
        except WatchError as error:
            parser.error(f"--watch {arguments.watch[:200]!r}: {error}")
        watcher.foresee()
        watcher.close()
        return f"watch {Path(arguments.watch).expanduser().absolute()}"
    if arguments.go_on:
        unfinished = controller.files.autosave.unfinished()
        if unfinished is None:
            parser.error("--continue: no unfinished game is saved")
        with suppress(saving.SavingError):
            loaded = saving.load(unfinished, None, controller.find, controller.session.variant)
            controller.session.foresee(loaded.variant)
        return "continue"
    return None


async def _play(
    parser: argparse.ArgumentParser,
    controller: Controller,
    arguments: argparse.Namespace,
    source: IO[bytes] | None,
) -> int:
    first = _first(parser, controller, arguments)
    if arguments.screenshot is not None and arguments.script is None:
        _tell_of_compiling(controller)
        return await _screenshot(parser, controller, arguments.screenshot, first)
    if source is not None:
        _tell_of_compiling(controller)
        from .script import Script

        status = await Script(controller, source, sys.stdout, strict=arguments.strict).run(first)
        if arguments.screenshot is not None and status == 0:
            _write_screen(parser, controller, arguments.screenshot)
        return status
    if arguments.tui:
        return await _full_screen(controller, first)
    from . import repl

    return await repl.run(controller, first)


def _tell_of_compiling(controller: Controller) -> None:
    """Without a screen, print a line on standard error that says why nothing happens for a while, and before it why
    this will happen again next time if results cannot be cached."""
    from hnefi.protocol.hosts.text_table import safe

    told = False

    def say(text: str) -> None:
        print(f"hnefi play: {safe(text)}", file=sys.stderr, flush=True)

    def look() -> None:
        nonlocal told
        text = controller.view.compiling
        if text and not told:
            told = True
            say(text)

    controller.session.say_unkept = say
    controller.on_change(look)


async def _full_screen(controller: Controller, first: str | None) -> int:
    from . import tui
    from .commands.files import goodbye
    from .repl import WordCompleter

    async def begin() -> None:
        """Start after the first screen, which needs the processor for itself."""
        await asyncio.sleep(FIRST_SCREEN)
        controller.start(held=first is not None)
        if first is not None:
            await controller.begin_with(first)

    beginning = asyncio.ensure_future(begin())
    try:
        await tui.run(controller, WordCompleter(lambda: controller.view))
    finally:
        beginning.cancel()
        with suppress(asyncio.CancelledError):
            await beginning
        farewell = goodbye(controller)
        await controller.close()
    print(*farewell, sep="\n", end="\n" if farewell else "")
    for line in controller.refused:
        print(f"hnefi play: {line}", file=sys.stderr)
    return controller.status


async def _screenshot(
    parser: argparse.ArgumentParser, controller: Controller, name: str, first: str | None
) -> int:
    """Write the screen to a file; waits for the rules, but not for engines."""
    controller.session.paused = True
    controller.start(held=first is not None)
    try:
        if first is not None:
            await controller.begin_with(first)
        if controller.refused:
            parser.error(" ".join(controller.refused))
        await controller.settled()
        _write_screen(parser, controller, name)
    finally:
        await controller.close()
    return controller.status


def _write_screen(parser: argparse.ArgumentParser, controller: Controller, name: str) -> None:
    """Write the current screen, without the answers to lines and without what passes: that engines are on hold, or
    compile."""
    from . import screenshot

    view = controller.view
    news = tuple(line for line in view.log if line.kind == "news")
    try:
        screenshot.write(replace(view, paused=False, compiling="", log=news), name)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        parser.exit(code_of(error), f"{parser.prog}: error: --screenshot {name[:200]!r}: {reason}\n")
