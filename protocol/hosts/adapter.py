"""The shell of an adapter's command: the flags that all have, the programs that they name, and how they end."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from hnefi.engine.wording import shorten

from . import journal, trace
from .exit_codes import INTERRUPTED, OURS_FAILED, STORAGE

if TYPE_CHECKING:
    from .guest import Guest
    from .rulebook import EngineSlot

LIMIT = 1.9
"""Seconds that all may take to end: a foreign program has one of them to end by itself."""
FOREIGN = ("engine", "wrap", "check")
"""Arguments that name programs which are not ours."""


def add_flags(options: argparse.ArgumentParser, traced: str) -> None:
    """The flags of journal, trace and log; `traced` says what `--trace` writes."""
    keeping = options.add_argument_group("recording")
    journal.add_flags(keeping)
    trace.add_flag(keeping, traced)
    keeping.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), default="info", help="default info"
    )


def refuse_idle(
    options: argparse.ArgumentParser, argv: Sequence[str], kind: str, uses: Mapping[str, Sequence[str]]
) -> None:
    """End the program with a sentence where a flag was given that has no effect: the user expects one.

    `kind` is the flag that says what to be, empty for a player; `uses` has the kinds for which a flag is.
    """
    # Parsed again, because the value of a flag does not tell whether it was given.
    seen = argparse.Namespace(**dict.fromkeys(vars(options.parse_args(argv))))
    options.parse_args(argv, seen)
    for name, kinds in uses.items():
        if getattr(seen, name) is not None and kind not in kinds:
            flag = f"--{name.replace('_', '-')}"
            where = " or ".join(one or "playing" for one in kinds)
            options.error(f"{flag}{' with ' * bool(kind)}{kind}: expected it only for {where}")


def kind_of(
    options: argparse.ArgumentParser,
    arguments: argparse.Namespace,
    argv: Sequence[str],
    kinds: Sequence[str],
    uses: Mapping[str, Sequence[str]],
) -> str:
    """The flag that says what to be, such as `--wrap`, empty for a player. It ends the program with a sentence where
    there are two of them, or where `refuse_idle` finds a flag that means nothing."""
    chosen = [flag for flag in kinds if getattr(arguments, flag[2:].replace("-", "_")) not in (None, False)]
    if len(chosen) > 1:
        options.error(f"{chosen[0]} and {chosen[1]}: expected one of them")
    kind = "".join(chosen)
    refuse_idle(options, argv, kind, uses)
    return kind


def words(options: argparse.ArgumentParser, flag: str, text: str | None) -> tuple[str, ...]:
    """The words of a command line, none if there is none. Ends the program with a sentence if it names no program."""
    if text is None:
        return ()
    try:
        found = tuple(shlex.split(text))
    except ValueError as error:
        options.error(f"{flag} {shorten(text)}: {error}: expected a program and its arguments")
    if not found:
        options.error(f"{flag}: expected a program and its arguments")
    check_program(options, flag, found)
    return found


_PLACE: Final = re.compile(r"(?<!\$)\{[A-Za-z_]\w*\}")
"""What looks like a placeholder; `${HOME}` is for a shell."""


def check_places(
    options: argparse.ArgumentParser, flag: str, words: Sequence[str], known: Sequence[str]
) -> None:
    """End the program with a sentence where a command has a placeholder that nothing would be put in for."""
    for word in words:
        for place in _PLACE.findall(word):
            if place not in known:
                options.error(f"{flag}: {shorten(place)}: expected {', '.join(known[:-1])} or {known[-1]}")


def fill(word: str, values: Mapping[str, str]) -> str:
    """A word of a command with the values of its placeholders."""
    for place, value in values.items():
        word = word.replace(place, value)
    return word


def check_program(options: argparse.ArgumentParser, flag: str, command: tuple[str, ...]) -> None:
    """End the program with a sentence if the command's program does not exist."""
    from .registry import no_program

    missing = no_program(command[0])
    if missing:
        options.error(f"{flag}: {missing}")


def run(
    options: argparse.ArgumentParser,
    arguments: argparse.Namespace,
    work: Callable[[trace.Trace | None], Coroutine[Any, Any, int]],
    limit: float = LIMIT,
) -> int:
    """Do the work until it is done or we are told to end; the exit code. It is handed the trace that was asked for.

    It is OURS_FAILED after an EngineError, and STORAGE where standard output went to a full disk, whatever else has
    happened.
    A program that is not ours ends with us, with all that it has started. Where standard input is read this does not
    return: the thread that reads may hang in a read that only its writer could end.
    """
    from .. import orphans
    from ..errors import EngineError
    from .shutdown import Asked
    from .stdio import Diagnostics, Output, Stdio

    journal.check_flags(options, arguments)
    Diagnostics.begin(options.prog, arguments.log_level)
    with ExitStack() as stack:
        traffic = trace.opened(options, arguments.trace, stack)
        if any(getattr(arguments, name, None) for name in FOREIGN):
            stack.enter_context(orphans.guarded())
        opened = stack.pop_all()
    asked = Asked()
    asked.limit = limit

    async def unless_asked() -> int:
        try:
            status = await asked.unless(work(traffic))
        except EngineError as error:
            logging.getLogger(f"hnefi.{options.prog.split()[-1]}").error("our engine failed: %s", error)
            return OURS_FAILED
        return INTERRUPTED if status is None else status

    status = asked.run(lambda _: unless_asked(), opened)
    if Output.full:
        status = STORAGE
    if Stdio.reads:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)
    return status


def games(name: str, arguments: argparse.Namespace) -> journal.Journal | None:
    """The journal for the games of the adapter of this name; None with `--no-record`."""
    if arguments.no_record:
        return None
    warn = logging.getLogger(f"hnefi.{name}").warning
    return journal.Journal(name, journal.chosen_folder(arguments), lambda failure: warn("%s", failure))


def tell(text: str) -> None:
    """A line on standard output. If it cannot be written, the work continues, and `run` returns STORAGE at its end
    if a full disk was the reason."""
    from ..format import printable

    line = printable(text)
    with contextlib.suppress(AttributeError, LookupError):
        line = line.encode(sys.stdout.encoding, "backslashreplace").decode(sys.stdout.encoding)
    try:
        print(line, flush=True)
    except OSError as error:
        from .stdio import Output

        Output.failed(error)
        # What could not be written would be tried again, and fail again, whenever the stream is flushed.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.asynccontextmanager
async def engines(*slots: EngineSlot) -> AsyncIterator[None]:
    """Start engines in the background, and end them afterwards, also while they start. What goes wrong at the start is
    told when they are needed. The same slot may be given twice."""
    from ..errors import EngineError

    async def warm_up(slot: EngineSlot) -> None:
        with contextlib.suppress(EngineError):
            await slot.warm_up()

    # A task each: a common one would end when the first fails, without waiting for the other's engine to be gone.
    warming = [asyncio.create_task(warm_up(slot)) for slot in {*slots}]
    try:
        yield
    finally:
        for task in warming:
            task.cancel()
        await asyncio.gather(*warming, *(slot.close() for slot in {*slots}), return_exceptions=True)


async def as_engine(
    guest: Guest, game: str, adapter: str, arguments: argparse.Namespace, traffic: trace.Trace | None
) -> int:
    """A foreign engine as one of ours on standard input and output; the exit code. Our rules begin with `game`."""
    from .guest import Front
    from .rulebook import EngineSlot
    from .stdio import Stdio

    slot = EngineSlot(game=game, trace=traffic)
    try:
        stdio = Stdio(traffic, encoding="utf-8")
        return await Front(guest, stdio, slot, games(adapter, arguments)).run()
    finally:
        await slot.close()
