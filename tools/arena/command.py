"""`hnefi arena`: plays a run, or hands over to a subcommand, whose module is imported only when chosen."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hnefi.engine.wording import counted, nearest, shorten
from hnefi.protocol import orphans
from hnefi.protocol.flags import Parser
from hnefi.protocol.hosts.exit_codes import FAULTS, INTERRUPTED, STORAGE, USAGE

from . import option_reader, resolve
from .options import Config, ConfigError, Document, EnginesFailed, Option

if TYPE_CHECKING:
    from ..common.interrupts import Caught
    from .run import Run
    from .store import Store

PACKAGE = "hnefi.tools.arena"
COMMANDS: dict[str, tuple[str, str]] = {
    "resume": (f"{PACKAGE}.command", "main_resume"),
    "report": (f"{PACKAGE}.report_command", "main_report"),
    "rate": (f"{PACKAGE}.report_command", "main_rate"),
    "openings": (f"{PACKAGE}.openings", "main"),
    "check": ("hnefi.tools.conformance.command", "main"),
    "stats": (f"{PACKAGE}.report_command", "main_stats"),
}
"""Subcommands; without one, a run is played."""

CHANGEABLE = {
    "run": (
        "name",
        "pairs",
        "concurrency",
        "affinity",
        "oversubscribe",
        "inside",
        "backend",
        "jobs",
        "cluster",
        "scale_tc",
    ),
    "sprt": ("max_pairs",),
}
"""Options of these groups that may change when a run is resumed."""
NEW_ONLY = ("-o", "--out", "--dry-run", "--no-dry-run")
"""Flags that apply to new runs only."""


NOTHING = "hnefi arena: interrupted before the first game: nothing was played"


class _State:
    """Handles interrupts, and prints the last message if one ends the process at once."""

    caught: Caught | None = None
    last = NOTHING


def main(argv: list[str]) -> int:
    """Play a run, or carry out a subcommand; the exit code.

    An interrupt ends the process at once, with everything it has started; while games are played the loop ends them
    first. Engines, and whatever they have started, end with this process even if it is killed.
    """
    from hnefi.protocol.process import kill_all

    from ..common import compiling, interrupts

    _State.last = "" if argv and argv[0] in COMMANDS and argv[0] != "resume" else NOTHING
    with (
        orphans.adopting(),
        interrupts.caught(lambda: [_State.last] if _State.last else [], None) as caught,
        interrupts.told(caught.leave),
        compiling.shown_on_stderr(quiet="--quiet" in argv),
    ):
        _State.caught = caught
        try:
            return _main(argv)
        finally:
            kill_all()
    return INTERRUPTED


@contextlib.contextmanager
def _left_to_the_loop() -> Iterator[None]:
    """Interrupts do not end the process at once."""
    caught = _State.caught
    if caught is None:
        yield
        return
    caught.forget(caught.leave)
    try:
        yield
    finally:
        if not caught.asked.is_set():
            caught.listen(caught.leave)


def _main(argv: list[str]) -> int:
    if argv and argv[0] in COMMANDS:
        from importlib import import_module

        module, name = COMMANDS[argv[0]]
        chosen: Callable[[list[str]], int] = getattr(import_module(module), name)
        return chosen(argv[1:])
    if not argv:
        print(option_reader.parser().format_help(), end="")
        return 0
    return _guarded(lambda: play(_read(argv)))


def _read(argv: list[str]) -> Config:
    """The configuration given on a command line; a misspelt subcommand is a ConfigError, too."""
    hint = nearest(argv[0], COMMANDS)
    try:
        return option_reader.from_arguments(argv)
    except ConfigError as error:
        if hint and str(error).startswith(f"player: no player {shorten(argv[0])}"):
            raise ConfigError(f"{shorten(argv[0])}: no command and no player{hint}") from None
        raise


def main_resume(argv: list[str]) -> int:
    """`hnefi arena resume`: continue a run."""
    made = Parser(
        prog="hnefi arena resume",
        description="Continue a run exactly where it stopped. Flags may raise --pairs or --sprt-max-pairs, and"
        " change settings that cannot affect results: where games are played and how many at a time, what is written"
        " and what is shown. Everything else stays; another seed or rule set needs a new run.",
        epilog="examples:\n  hnefi arena resume arena-20260101-120000\n"
        "  hnefi arena resume cup --pairs 500 --concurrency 4",
        formatter_class=option_reader.Formatter,
        allow_abbrev=False,
        usage="hnefi arena resume RUN [flags]",
    )
    made.add_argument("run", metavar="RUN", help="the run's folder")
    option_reader.add_flags(made, ("run", "sprt", "output", "control"), changeable, defaults=False)
    made.renamed("--variants", "--variant")

    def resume() -> int:
        for word in argv:
            if word.partition("=")[0] in NEW_ONLY:
                raise ConfigError(f"{shorten(word)}: expected only when a run begins")
        parsed = option_reader.parse(made, argv)
        return go_on(Path(parsed.run), option_reader.flags_of(parsed, Path.cwd()))

    return _guarded(resume)


def changeable(option: Option) -> bool:
    """Whether a resumed run may change this option without --force."""
    return option.flag not in NEW_ONLY and option.key in CHANGEABLE.get(option.group, (option.key,))


def _leaving() -> bool:
    """Whether an interrupt is ending the process: engines that die then are not at fault."""
    caught = _State.caught
    if caught is None or not caught.asked.is_set():
        return False
    caught.say()
    return True


def _guarded(action: Callable[[], int]) -> int:
    """Errors are one sentence on standard error and an exit code."""
    try:
        return action()
    except ConfigError as error:
        if _leaving():
            return INTERRUPTED
        print(f"hnefi arena: error: {error}", file=sys.stderr)
        return FAULTS if isinstance(error, EnginesFailed) else USAGE
    except Exception as error:
        from .store import StorageFailed, StoreError

        if not isinstance(error, StoreError):
            raise
        if _leaving():
            return INTERRUPTED
        print(f"hnefi arena: {error}", file=sys.stderr)
        return STORAGE if isinstance(error, StorageFailed) else USAGE


def play(config: Config) -> int:
    """Play a new run."""
    for note in config.notes:
        print(note, file=sys.stderr)
    if config["control.dry_run"]:
        return dry_run(config)
    from . import run

    run.expect_new(config)
    _expect_plots(config)
    with orphans.guarded():
        prepared, items = run.prepare(config)
        with run.create(prepared, items) as store:
            return _play(prepared, store)


def go_on(folder: Path, flags: Document) -> int:
    """Continue the run in `folder`; a complete one is only reported."""
    from . import run
    from .store import Store

    with Store.resume(folder.absolute()) as store, orphans.guarded():
        return _play(run.resumed(store, flags), store)


def _expect_plots(config: Config) -> None:
    """ConfigError if plots are requested and cannot be drawn."""
    if config["output.plots"]:
        from .plots import expect_library
        from .summary import ReportError

        try:
            expect_library()
        except ReportError as error:
            raise ConfigError(f"output.plots: {error}") from None


def _play(prepared: Run, store: Store) -> int:
    import asyncio

    from ..common import interrupts
    from . import logs, loop, records, run
    from .screen import Screen

    _State.last = f"interrupted; continue with\n{run.resume_command(store)}"
    store.follow(records.exports(prepared.config, prepared.specs, store.folder))
    output = prepared.config.tables["output"]
    screen = Screen(quiet=output["quiet"], plain=output["plain"], as_json=output["json"])

    async def everything() -> int:
        playing = loop.Loop(prepared, store, loop.player_of(prepared, store.folder), screen)
        code = await playing.play_on()
        if playing.hurried:
            # Everything is stored and reported, and no engine is left: nothing else is waited for.
            end_log()
            sys.stdout.flush()
            interrupts.kill_children()
            os._exit(code)
        return code

    with logs.recording(store.folder, output["log"], screen.warn) as end_log, _left_to_the_loop():
        code = asyncio.run(everything())
    if screen.unwritten is None:
        return code
    print(
        f"hnefi arena: standard output: {screen.unwritten.strerror}: all games are stored, and "
        f"hnefi arena report {shlex.quote(str(store.folder))} shows the tables",
        file=sys.stderr,
    )
    return code or STORAGE


def dry_run(config: Config) -> int:
    """List what would be played, and what is unknown until an engine runs; starts nothing."""
    from ..common.live import duration
    from . import openings, run, schedule
    from .summary import limits_text

    specs = resolve.specs(config)
    plan = schedule.make(config)
    lists, unknown = openings.foresee(config, plan.openings, specs)
    if config["adjudicate.oracle"]:
        from .adjudication import load_oracle

        load_oracle(config["adjudicate.oracle"], plan.variants)
    print(f"{counted(plan.games, 'game')} in {counted(len(plan), 'pair')}:", end=" ")
    print(f"{counted(len(plan.meetings), 'meeting')}, {counted(plan.rounds, 'round')},")
    print(f"variants {', '.join(plan.variants)}, seed {plan.seed}")
    for spec in specs:
        print(f"  {spec.name}: {' '.join(spec.command)}")
    print(f"limits: {limits_text(specs)}")
    for line in schedule.expected_pairs(config.test):
        print(line)
    longest = schedule.longest(plan, specs, max(1, config["run.concurrency"]))
    if longest is not None:
        slots = max(1, config["run.concurrency"])
        print(
            f"at most {duration(longest)} in {counted(slots, 'slot')}, if no game is longer than {schedule.PLIES} plies"
        )
    if unknown:
        print(f"{plan.openings} for every variant are needed; {unknown}")
    print()
    for line in schedule.listing(plan, config.names, lists):
        print(line)
    obstacles = list(run.obstacles(config))
    for obstacle in obstacles:
        print(f"hnefi arena: the run cannot start: {obstacle}", file=sys.stderr)
    return USAGE if obstacles else 0


def program(argv: Sequence[str] | None = None) -> int:
    """For `python -m`."""
    from ..common import interrupts

    return interrupts.ended(main(list(sys.argv[1:] if argv is None else argv)))


if __name__ == "__main__":
    from ..common import interrupts

    interrupts.is_program()
    # Under its own name: what subcommands import is the same module, with the same state.
    from hnefi.tools.arena import command

    sys.exit(command.program())
