"""`hnefi arena check`: whether an engine follows the protocol, one step after the other."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from hnefi.engine.wording import nearest
from hnefi.protocol import orphans
from hnefi.protocol.hosts.argument_types import number

from ..common.arguments import find_variant, parser

if TYPE_CHECKING:
    from .engine_under_test import EngineUnderTest
    from .step import Step

PASSED = 0
FAULTY = 1
SHOWN_LINES = 30
MARGIN = 13
COLOURS = {"pass": "32", "FAIL": "1;31", "advisory": "33", "skipped": "2"}


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a step: `status` is `pass`, `FAIL`, `advisory` (failed, but not required) or `skipped`.

    `text` says what was found or what went wrong. `lacks` names the failed step that this one needs. `transcript` of a
    step that did not pass: milliseconds since the step began, arrow, line.
    """

    step: Step
    number: int
    status: str
    required: bool
    text: str
    seconds: float = 0.0
    transcript: tuple[tuple[float, str, str], ...] = ()
    left_out: int = 0
    lacks: str = ""


def main(argv: list[str]) -> int:
    """Run the steps; returns 0 if the engine passes all required ones, 1 if not, 2 for a usage error."""
    options = build_parser()
    arguments = options.parse_args(argv)
    from .transport import Patience

    seconds = arguments.timeout
    patience = Patience() if seconds is None else Patience(seconds, 6 * seconds, seconds, min(2.0, seconds))
    steps = [step.expects(patience) for step in chosen_steps(options, arguments.only)]
    if arguments.list:
        print("\n".join(listing(steps)))
        return PASSED
    command = engine_command(options, arguments)
    variant = find_variant(options, arguments.variant) if arguments.variant else None
    from .engine_under_test import EngineUnderTest

    engine = EngineUnderTest(command, arguments.proto, variant, patience)
    paint = sys.stdout.isatty() and "NO_COLOR" not in os.environ

    lacking: list[Result] = []

    def show(result: Result | None) -> None:
        """Print a result. Steps skipped for the same reason are printed together; None prints the last of these."""
        if arguments.json:
            return
        if lacking and (result is None or result.lacks != lacking[0].lacks):
            print("\n".join(lacking_lines(lacking, paint)), flush=True)
            lacking.clear()
        if result is not None and result.lacks:
            lacking.append(result)
        elif result is not None:
            print("\n".join(lines_of(result, paint)), flush=True)

    if not arguments.json:
        print(f"{shlex.join(command)}: {len(steps)} {'step' if len(steps) == 1 else 'steps'}", flush=True)
    began = time.monotonic()
    with orphans.guarded():
        results = asyncio.run(take(engine, steps, show))
    show(None)
    seconds = time.monotonic() - began
    failed = [result for result in results if result.status == "FAIL"]
    if arguments.json:
        print(json.dumps(as_json(engine, results, seconds), indent=2))
    else:
        print("\n".join(summary(engine, results, seconds)))
        if failed:
            # Unwrapped, so that it can be copied.
            print(f"  {again(arguments, engine.proto, failed[0].step.name)}")
    return FAULTY if failed else PASSED


def build_parser() -> argparse.ArgumentParser:
    """The command line of `hnefi arena check`."""
    options = parser(
        "arena check",
        "Check an engine against the text protocol, step by step. Each step passes, fails,\n"
        "is skipped (the engine lacks the feature) or is advisory (not passed, but not\n"
        "required). A step that does not pass shows what was expected and the whole\n"
        "exchange, with milliseconds. The exit status is 0 if no step failed, 1 otherwise.\n"
        "Options come before ENGINE; everything after it is passed to the engine.",
        [
            "./mybot --level 3",
            "--proto uci --variant tablut ./mybot",
            "--player default",
            "--only stop --only 'go-*' ./mybot",
            "--list",
        ],
    )
    options.add_argument(
        "engine", metavar="ENGINE", nargs="?", help="a program, or a name from `hnefi engines`"
    )
    options.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="the engine's arguments")
    options.add_argument(
        "--player", metavar="NAME", help="check our own engine, with this player or player file"
    )
    options.add_argument(
        "--proto",
        choices=("auto", "uti", "uci", "ugi"),
        default="auto",
        help="the greeting to use; auto tries each for two seconds at most",
    )
    options.add_argument(
        "--variant",
        metavar="V",
        help="the variant to play: a name or TOML file (brandubh if the engine offers it)",
    )
    options.add_argument(
        "--only",
        metavar="STEP",
        action="append",
        help="run only this step, or those that match, as in 'go-*'; repeatable",
    )
    options.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=number(0.05, 3600, "seconds"),
        help="longest wait for an answer (10); six times as long for the first readyok",
    )
    options.add_argument("--list", action="store_true", help="list all steps and what they expect, and exit")
    options.add_argument("--json", action="store_true", help="print the results as one JSON object")
    return options


def all_steps() -> list[Step]:
    """All steps, in the order in which they run."""
    from . import beginning, ending, searching

    return [*beginning.STEPS, *searching.STEPS, *ending.STEPS]


def chosen_steps(options: argparse.ArgumentParser, patterns: Sequence[str] | None) -> list[Step]:
    """The steps to run, in order; exits with a suggestion if a pattern matches none."""
    every = all_steps()
    if not patterns:
        return every
    for pattern in patterns:
        if not any(fnmatchcase(step.name, pattern) for step in every):
            hint = nearest(pattern, [step.name for step in every]) or ": --list shows them all"
            options.error(f"--only {pattern[:80]}: no such step{hint}")
    return [step for step in every if any(fnmatchcase(step.name, pattern) for pattern in patterns)]


def engine_command(options: argparse.ArgumentParser, arguments: argparse.Namespace) -> list[str]:
    """The command that starts the engine; exits with a message if there is none."""
    if (arguments.engine is None) == (arguments.player is None):
        options.error("expected the program of an engine, or --player NAME")
    from hnefi import players
    from hnefi.protocol.hosts import registry

    if arguments.player is not None:
        from hnefi.protocol.client import own_command

        try:
            player = players.load(arguments.player)
        except ValueError as error:
            options.error(f"--player: {error}")
        if player.variant and not arguments.variant:
            arguments.variant = player.variant
        return own_command("--player", arguments.player)
    try:
        engine = registry.find(arguments.engine)
        if engine is None and shutil.which(arguments.engine) is None:
            # A whole command line in quotes, as `--engine` takes it elsewhere.
            arguments.engine, *more = registry.engine_of(arguments.engine).words
            arguments.arguments = [*more, *arguments.arguments]
    except ValueError as error:
        options.error(str(error))
    if engine is not None:
        if engine.variants and not arguments.variant:
            arguments.variant = engine.variants[0]
        return [*engine.words, *arguments.arguments]
    if (missing := registry.no_program(arguments.engine)) is not None:
        hint = f" (did you mean --player {arguments.engine}?)" if arguments.engine in players.names() else ""
        options.error(f"{missing}{hint}")
    ours = [
        word for word in arguments.arguments if word in ("--only", "--json", "--list", "--proto", "--variant")
    ]
    if ours:
        print(f"note: {ours[0]} comes after ENGINE, so it is passed to the engine", file=sys.stderr)
    return [arguments.engine, *arguments.arguments]


async def take(
    engine: EngineUnderTest, steps: Sequence[Step], show: Callable[[Result | None], None]
) -> list[Result]:
    """Run the steps in order and show each result; ends the engine's process."""
    results: list[Result] = []
    failed: set[str] = set()
    try:
        for number, step in enumerate(steps, start=1):
            result = await take_one(engine, step, number, missing(step, failed))
            if result.status in ("FAIL", "advisory"):
                failed.add(step.name)
            results.append(result)
            show(result)
    finally:
        await engine.drop()
    return results


def missing(step: Step, failed: set[str]) -> str | None:
    """The failed step that this one depends on, if any."""
    needs = {known.name: known.needs for known in all_steps()}
    name = step.needs
    while name and name not in failed:
        name = needs[name]
    return name or None


async def take_one(engine: EngineUnderTest, step: Step, number: int, lacking: str | None) -> Result:
    """Run one step, which sets up its own state. After a failure the engine is ended; the next step starts a new one.

    `lacking` is a failed step that this one depends on.
    """
    from .engine_under_test import STEP_LIMIT
    from .step import Slow
    from .transport import NOTED_WIDTH, Failed, Skipped

    def result(status: str, text: str) -> Result:
        return Result(step, number, status, step.counts(engine.proto), text, time.monotonic() - began)

    began = time.monotonic()
    if lacking:
        return replace(result("skipped", f"it needs {lacking}"), lacks=lacking)
    engine.begin()
    try:
        if step.needs:
            await (engine.greeted() if step.needs == "greeting" else engine.prepared())
            engine.begin()
            began = time.monotonic()
        if step.after and engine.proto not in step.after:
            return result("skipped", f"only after {' and '.join(step.after)}")
        async with engine.limited():
            return result("pass", await step.act(engine))
    except Skipped as reason:
        return result("skipped", str(reason))
    except Slow as reason:
        return result(verdict(step, engine), str(reason))
    except Failed as reason:
        failed = result(verdict(step, engine), str(reason))
    except TimeoutError:
        failed = result(verdict(step, engine), f"not done within {STEP_LIMIT:g} s")
    noted = list(engine.transcript) or [(heard.stamp, "<", heard.text) for heard in engine.greeting]
    first = min(began, noted[0][0]) if noted else began
    transcript = tuple(((stamp - first) * 1000, arrow, line[:NOTED_WIDTH]) for stamp, arrow, line in noted)
    await engine.drop()
    return replace(failed, transcript=transcript, left_out=engine.left_out)


def verdict(step: Step, engine: EngineUnderTest) -> str:
    """The status of a step that did not pass."""
    return "FAIL" if step.counts(engine.proto) else "advisory"


# Output


def lines_of(result: Result, paint: bool) -> list[str]:
    """A result as lines of at most 80 columns; if the step failed, with what it expected and its transcript."""
    head = _head(result, paint)
    said = f"{result.step.name:<20}  {result.text}".rstrip() if result.text else result.step.name
    first, *more = textwrap.wrap(_printable(said), 80 - MARGIN, subsequent_indent=22 * " ") or [""]
    lines = [head + first, *(" " * MARGIN + line for line in more)]
    if result.status not in ("FAIL", "advisory"):
        return lines
    indent = " " * MARGIN
    lines += textwrap.wrap(
        f"expected: {result.step.expected}", 80, initial_indent=indent, subsequent_indent=indent
    )
    left_out = result.left_out + max(0, len(result.transcript) - SHOWN_LINES)
    if left_out:
        lines.append(f"{indent}{'…':>9} {left_out} lines before these")
    for moment, arrow, line in result.transcript[-SHOWN_LINES:]:
        lines.append(shortened(f"{indent}{moment:9.1f} {arrow} {_printable(line)}"))
    return lines


def lacking_lines(results: Sequence[Result], paint: bool) -> list[str]:
    """Consecutive steps that depend on the same failed one: a single line if there are several."""
    first, last = results[0], results[-1]
    if first is last:
        return lines_of(first, paint)
    return [f"{_head(first, paint)}to {last.number}: {len(results)} steps that need {first.lacks}"]


def _head(result: Result, paint: bool) -> str:
    status = f"{result.status:<8}"
    if paint:
        status = f"\x1b[{COLOURS[result.status]}m{status}\x1b[0m"
    return f"{result.number:2} {status}  "


def shortened(line: str, width: int = 80) -> str:
    """A line cut to `width` characters."""
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)


def counts(results: Sequence[Result]) -> dict[str, int]:
    """The number of steps that passed, failed, were advisory and were skipped."""
    words = {"passed": "pass", "failed": "FAIL", "advisory": "advisory", "skipped": "skipped"}
    return {word: sum(result.status == status for result in results) for word, status in words.items()}


def summary(engine: EngineUnderTest, results: Sequence[Result], seconds: float) -> list[str]:
    """The last lines: the counts, whether moves went unjudged, and the verdict with the names of the failed steps."""
    from .engine_under_test import UNKNOWN_GAME

    said = ", ".join(f"{number} {word}" for word, number in counts(results).items() if number)
    lines = [f"{said} in {seconds:.1f} s"]
    unjudged = sum(result.text == UNKNOWN_GAME for result in results)
    if unjudged:
        # The verdict alone would be taken for one about its moves as well.
        steps = "1 step that needs" if unjudged == 1 else f"{unjudged} steps that need"
        lines += textwrap.wrap(f"skipped: {steps} the rules; {UNKNOWN_GAME}", 80)
    failed = [result.step.name for result in results if result.status == "FAIL"]
    name = _printable(engine.name or engine.command[0])
    spoken = f" ({engine.proto})" if engine.proto else ""
    if failed:
        words = f"{name}{spoken} does not follow the protocol: {', '.join(failed)}. To repeat one step:"
        lines += textwrap.wrap(words, 80)
    else:
        lines += textwrap.wrap(f"{name}{spoken} follows the protocol: every required step was passed", 80)
    return lines


def again(arguments: argparse.Namespace, proto: str, step: str) -> str:
    """The command that repeats one step with the same engine, with the greeting it answered."""
    given = {
        "--only": step,
        "--proto": proto or arguments.proto,
        "--variant": arguments.variant,
        "--timeout": arguments.timeout and f"{arguments.timeout:g}",
        "--player": arguments.player,
    }
    flags = [word for flag, value in given.items() if value for word in (flag, value)]
    engine = [arguments.engine, *arguments.arguments] if arguments.engine else []
    return shlex.join(["hnefi", "arena", "check", *flags, *engine])


def listing(steps: Sequence[Step]) -> list[str]:
    """The lines of `--list`: each step, who must pass it, and what it expects."""
    lines = []
    for step in steps:
        who = {"all": "required", "uti": "after uti", "none": "advisory"}[step.required]
        if step.after == ("uti",) and step.required == "all":
            who = "after uti"
        head = f"{step.name:<20}  {who:<9}  "
        lines += textwrap.wrap(head + step.expected, 80, subsequent_indent=" " * 33, drop_whitespace=True)
    return lines


def as_json(engine: EngineUnderTest, results: Sequence[Result], seconds: float) -> dict[str, Any]:
    """The output of `--json`; `transcript` (times in ms since the step began) only for steps that did not pass."""
    return {
        "version": 1,
        "command": engine.command,
        "name": engine.name,
        "proto": engine.proto or None,
        "variant": engine.variant.name if engine.variant else None,
        "ok": not any(result.status == "FAIL" for result in results),
        **counts(results),
        "seconds": round(seconds, 3),
        "steps": [
            {
                "name": result.step.name,
                "status": result.status.lower(),
                "required": result.required,
                "text": result.text,
                "expected": result.step.expected,
                "seconds": round(result.seconds, 4),
                "transcript": [
                    [round(moment, 1), arrow, _printable(line)] for moment, arrow, line in result.transcript
                ],
                "left_out": result.left_out,
            }
            for result in results
        ],
    }
