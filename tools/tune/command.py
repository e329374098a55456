"""`hnefi tune`: games of the engine against itself, weights fitted to them, and how well they predict results."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.engine import durable
from hnefi.engine.catalogue import MEASURED
from hnefi.protocol.flags import filled
from hnefi.protocol.hosts.argument_types import number
from hnefi.protocol.hosts.exit_codes import INTERRUPTED, STORAGE, USAGE

from ..common import arguments, interrupts

if TYPE_CHECKING:
    from hnefi.engine.games.tafl.variant import Variant

PART = 20
"""Games per file, which is also the most that an interrupt can lose."""
NODES = (200, 500, 1000, 2000)
HELD_OUT = 5
"""Fewer games than this cannot be split into games to fit and games to hold out."""
COMMANDS = {
    "games": "let the engine play itself, and store what the evaluator counts in these games",
    "fit": "fit the weights to such games, and write weight files",
    "check": "measure how well the current weights predict the results of such games",
}
EXAMPLES = {
    "games": (
        "brandubh --out tuning --games 600",
        "copenhagen tablut-linnaeus --out tuning --jobs 2 --seed 2",
    ),
    "fit": ("tuning --out weights", "tuning brandubh --blend 0.5 --out engine/evaluators/weights"),
    "check": ("tuning", "tuning brandubh copenhagen"),
}


def main(argv: list[str]) -> int:
    """Run one command; returns the exit status."""
    word = argv[0] if argv else "--help"
    if word in ("-h", "--help"):
        print(_overview())
        return 0
    if word not in COMMANDS:
        from hnefi.engine.wording import shorten

        print(f"hnefi tune: error: {shorten(word)}: expected one of {', '.join(COMMANDS)}", file=sys.stderr)
        return USAGE
    options = _parser(word)
    chosen = options.parse_args(argv[1:])
    carry_out = {"games": _games, "fit": _fit, "check": _check}[word]
    return carry_out(options, chosen)


def _overview() -> str:
    lines = ["usage: hnefi tune COMMAND [...]   (hnefi tune COMMAND --help for details)", ""]
    lines += [f"  {name:<5}  {sentence}" for name, sentence in COMMANDS.items()]
    lines += ["", "examples:"]
    lines += [f"  hnefi tune {name} {example}" for name, examples in EXAMPLES.items() for example in examples]
    return filled("\n".join(lines))


def _parser(word: str) -> argparse.ArgumentParser:
    options = arguments.parser(
        "tune", f"{COMMANDS[word].capitalize()}.", [f"{word} {e}" for e in EXAMPLES[word]]
    )
    options.prog = f"hnefi tune {word}"
    if word != "games":
        options.add_argument("folder", metavar="FOLDER", help="where the games are")
    options.add_argument(
        "variants",
        nargs="*",
        metavar="VARIANT",
        help="tafl variants, also as --variant V,V"
        f" (default: {' '.join(MEASURED) if word == 'games' else 'all that have games'})",
    )
    options.takes_variant(behind=0 if word == "games" else 1)
    if word == "games":
        arguments.add_out(options, "FOLDER", "where the games go; existing games are kept", required=True)
        options.add_argument(
            "--games",
            metavar="N",
            type=arguments.positive,
            default=600,
            help="games of each variant (default 600)",
        )
        options.add_argument(
            "--seed", metavar="S", type=arguments.positive, default=1, help="seed of the series (default 1)"
        )
        options.add_argument(
            "--jobs", metavar="J", type=arguments.positive, default=1, help="processes (default 1)"
        )
        arguments.add_backend(options)
        options.add_argument(
            "--nodes",
            type=_budgets,
            default=NODES,
            metavar="N,N...",
            help=f"nodes per move, drawn for each side of each game (default {','.join(map(str, NODES))})",
        )
    else:
        options.add_argument(
            "--blend",
            type=number(0, 1),
            metavar="B",
            help="how much of the target is the search's score, 0 to 1 (default 0.75)",
        )
        options.add_argument(
            "--ridge",
            type=number(1e-6, 1),
            metavar="R",
            help="pull towards the initial weights, per squared centipawn (default 0.002); use more with fewer games",
        )
    if word == "fit":
        arguments.add_out(options, "FOLDER", "where the weight files go", required=True)
        options.add_argument(
            "--stretch",
            type=number(0.01, 100),
            default=1.0,
            metavar="K",
            help="multiply all weights by K, as found by `hnefi bench scale` (default 1)",
        )
    return options


def _budgets(text: str) -> tuple[int, ...]:
    return tuple(arguments.positive(word) for word in text.split(","))


# Games


def _games(options: argparse.ArgumentParser, chosen: argparse.Namespace) -> int:
    """Play the missing parts one after another; existing ones are kept."""
    from . import parts

    variants = [arguments.find_tafl_variant(options, word) for word in chosen.variants or MEASURED]
    folder = Path(chosen.out)
    series = parts.Series(chosen.seed, chosen.nodes)
    todo = [
        (variant, first, min(PART, chosen.games - first))
        for variant in variants
        for first in range(0, chosen.games, PART)
        if not parts.path(folder, variant.name, series, first).exists()
    ]
    try:
        for variant in variants:
            durable.make_folder(folder / variant.name)
            parts.clear(folder, variant.name)
    except OSError as error:
        print(f"hnefi tune games: {folder}: {error.strerror}", file=sys.stderr)
        return STORAGE
    begun = time.monotonic()
    total = sum(games for _, _, games in todo)
    done = 0
    words = ["interrupted: whatever was finished is kept; the same command continues"]
    with interrupts.caught(lambda: words) as caught:
        for name, games, positions in _played(todo, folder, series, chosen.jobs, chosen.backend):
            done += games
            left = (time.monotonic() - begun) / done * (total - done)
            print(
                f"{name:22} {games:4} games {positions:6} positions   {done} of {total}, {left / 60:.0f} min left",
                flush=True,
            )
    if caught.ended:
        return INTERRUPTED
    print(f"{folder}: {chosen.games} games of {', '.join(variant.name for variant in variants)}")
    return 0


def _played(
    todo: list[tuple[Variant, int, int]], folder: Path, series: Any, jobs: int, backend: str
) -> Iterator[tuple[str, int, int]]:
    """Variant, games and positions of each part as it is finished."""
    from ..common.workers import carried_out
    from . import parts

    work = [
        partial(parts.play, variant.name, variant, first, games, folder, series)
        for variant, first, games in todo
    ]
    for _, part in carried_out(work, jobs, backend):
        yield part


# Weights


def _chosen_rows(
    options: argparse.ArgumentParser, chosen: argparse.Namespace
) -> Iterator[tuple[Variant, Any]]:
    """The variants with their games; the program exits with the reason if there are none."""
    from . import parts

    folder = Path(chosen.folder)
    names = chosen.variants or parts.variants(folder)
    if not names:
        options.error(f"{chosen.folder[:200]!r}: expected a folder with games of `hnefi tune games`")
    for name in names:
        variant = arguments.find_tafl_variant(options, name)
        try:
            rows = parts.read(folder, variant.name)
        except ValueError as error:
            options.error(str(error))
        if len(set(rows["game"].tolist())) < HELD_OUT:
            options.error(f"{variant.name}: expected at least {HELD_OUT} games in {chosen.folder[:200]!r}")
        yield variant, rows


def _fit(options: argparse.ArgumentParser, chosen: argparse.Namespace) -> int:
    from . import regression

    folder = Path(chosen.out)
    blend = regression.BLEND if chosen.blend is None else chosen.blend
    ridge = regression.RIDGE if chosen.ridge is None else chosen.ridge
    folder_name = Path(chosen.folder).name
    for variant, rows in _chosen_rows(options, chosen):
        found = regression.fit(rows, variant, regression.in_force(variant), blend, ridge)
        command = f"hnefi tune fit {folder_name} {variant.name} --blend {blend:g} --ridge {ridge:g}"
        if chosen.stretch != 1:
            command += f" --stretch {chosen.stretch:g}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            regression.write(folder, variant, found, chosen.stretch, command)
        except OSError as error:
            print(f"hnefi tune fit: {folder}: {error.strerror}", file=sys.stderr)
            return STORAGE
        _say(variant, found)
    return 0


def _check(options: argparse.ArgumentParser, chosen: argparse.Namespace) -> int:
    from . import regression

    blend = regression.BLEND if chosen.blend is None else chosen.blend
    ridge = regression.RIDGE if chosen.ridge is None else chosen.ridge
    for variant, rows in _chosen_rows(options, chosen):
        _say(variant, regression.fit(rows, variant, regression.in_force(variant), blend, ridge))
    return 0


def _say(variant: Variant, found: Any) -> None:
    print(
        f"{variant.name:22} {found.positions:6} positions of {found.games:4} games   loss held out: nothing "
        f"{found.loss_of_nothing:.4f}, in force {found.loss_before:.4f}, fitted {found.loss:.4f}   "
        f"scale of the search {found.stretch:.2f}",
        flush=True,
    )
