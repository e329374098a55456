"""`--engine`, `--player` and `--option`: the player, for adapters whose engine is ours or a foreign one.

What they need is imported when it is asked for, so that a command that uses none of it starts at once.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hnefi.engine.wording import shorten

from .argument_types import setting

if TYPE_CHECKING:
    from hnefi.engine.games.base_variant import AnyVariant


def add_flags(to: argparse._ActionsContainer) -> None:
    """The three flags."""
    to.add_argument(
        "--engine",
        metavar="CMD",
        help="the engine that plays, or its name in `hnefi engines` (default: our own)",
    )
    to.add_argument("--player", default="", metavar="NAME", help="one of our players, or a player's file")
    to.add_argument("--option", action="append", default=[], type=setting, metavar="NAME=VALUE",
                    help="an option of the engine; repeatable")  # fmt: skip


def check_flags(options: argparse.ArgumentParser, arguments: argparse.Namespace, variant: AnyVariant) -> None:
    """Make a tuple of words of `--engine`, empty for our own; ends the program with a sentence where an engine or a
    player does not exist or cannot play `variant`.

    The options of a registered engine are set before those of the command line.
    """
    if arguments.player:
        _check_player(options, arguments, variant)
    if arguments.engine is None:
        check_options(options, arguments)
        from hnefi.players import load, unfit

        if reason := unfit(load(arguments.player or "default"), arguments.option, variant):
            options.error(f"--option: {reason}" if arguments.option else f"--player: {reason}")
        arguments.engine = ()
    else:
        arguments.engine = _words(options, arguments, variant)


def check_playing(options: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """End the program with a sentence if there is no such --variant or --player; a variant gets its own name."""
    if arguments.variant:
        from hnefi.engine.games import named
        from hnefi.engine.games.base_variant import VariantError

        try:
            arguments.variant = named(arguments.variant, files=False).name
        except VariantError as error:
            options.error(f"--variant: {error}")
    if arguments.player:
        from hnefi.players import PlayerError, load

        try:
            load(arguments.player)
        except PlayerError as error:
            options.error(f"--player: {error}")


def check_options(options: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """End the program with a sentence where our own engine does not take an option: a game would find out too late."""
    from hnefi.engine.options import find

    for name, value in arguments.option:
        option = find(name)
        if option is None:
            options.error(
                f"--option {shorten(name)}: our engine has no such option: `uti` in `hnefi engine` lists them"
            )
        try:
            option.read(value)
        except ValueError as error:
            options.error(f"--option {shorten(f'{name}={value}')}: {error}")


def _words(
    options: argparse.ArgumentParser, arguments: argparse.Namespace, variant: AnyVariant
) -> tuple[str, ...]:
    from . import registry

    try:
        engine = registry.engine_of(arguments.engine)
    except ValueError as error:
        options.error(f"--engine: {error}")
    missing = registry.no_program(engine.words[0])
    if missing is not None:
        options.error(f"--engine: {missing}")
    misfit = engine.misfit((variant.name, *variant.aliases))
    if misfit is not None:
        options.error(f"--engine: {misfit}")
    arguments.option = [*engine.options.items(), *arguments.option]
    return engine.words


def _check_player(
    options: argparse.ArgumentParser, arguments: argparse.Namespace, variant: AnyVariant
) -> None:
    from hnefi.players import PlayerError, load

    if arguments.engine is not None:
        options.error("--engine and --player: expected one of them")
    try:
        misfit = load(arguments.player).misfit(variant)
    except PlayerError as error:
        misfit = str(error)
    if misfit is not None:
        options.error(f"--player: {misfit}")
