"""What the subcommands' command lines have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hnefi.protocol.flags import Help, Parser
from hnefi.protocol.hosts.argument_types import whole
from hnefi.protocol.hosts.exit_codes import USAGE

from .interrupts import let_them_end_us

if TYPE_CHECKING:
    from hnefi.engine.games.base_variant import AnyVariant
    from hnefi.engine.games.tafl.variant import Variant

natural = whole(0)
positive = whole(1)


def parser(command: str, description: str, examples: Sequence[str] = ()) -> Parser:
    """A parser for ``hnefi COMMAND`` whose help ends with `examples`."""
    return Parser(
        prog=f"hnefi {command}",
        description=description,
        epilog=shown(command, examples),
        formatter_class=Help,
        allow_abbrev=False,
    )


def shown(command: str, examples: Iterable[str]) -> str | None:
    """The examples at the end of the help of ``hnefi COMMAND``; `examples` lack these words. None without examples."""
    lines = [f"  hnefi {command} {example}".rstrip() for example in examples]
    return "\n".join(["examples:", *lines]) if lines else None


def subcommand(options: Parser, commands: Mapping[str, Callable[[list[str]], int]], argv: list[str]) -> int:
    """Run the one of `commands` that `argv` begins with; each has its own parser. For anything else `options` lists the
    commands, and the program exits."""
    if argv and argv[0] in commands:
        return commands[argv[0]](argv[1:])
    options.add_argument(
        "command",
        choices=list(commands),
        metavar="COMMAND",
        help=f"{', '.join(commands)}; each has its own --help",
    )
    options.parse_args(argv[:1])
    return USAGE


def add_variants(to: Parser, default: Sequence[str]) -> None:
    """`VARIANT ...`, stored in `variants`: what to play or measure."""
    to.add_argument(
        "variants",
        nargs="*",
        metavar="VARIANT",
        default=list(default),
        help=f"default: {' '.join(default)}; also --variant V,V",
    )
    to.takes_variant()


def add_variant_path(to: argparse.ArgumentParser) -> None:
    """`--path`: where to find further variants."""
    to.add_argument("--path", metavar="PATH", help="a file or folder of further variants (TOML)")


def add_out(to: argparse._ActionsContainer, metavar: str, what: str, **how: Any) -> None:
    """`-o`, `--out`: where a command writes its results."""
    to.add_argument("-o", "--out", metavar=metavar, help=what, **how)


def add_plain(to: argparse._ActionsContainer) -> None:
    """`--plain`: for scripts, logs and limited screens."""
    to.add_argument("--plain", action="store_true", help="plain lines in ASCII, also on a terminal")


def add_html(to: argparse._ActionsContainer, what: str = "the report") -> None:
    """`--html`: a report for a browser."""
    to.add_argument("--html", metavar="FILE", help=f"{what} as one HTML file for a browser; FILE is replaced")


class _Png(argparse.Action):
    """`--png`, rejected at once if no PNG can be drawn."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,  # noqa: ARG002
        option_string: str | None = None,
    ) -> None:
        from .svg_chart import expect_png

        try:
            expect_png()
        except ImportError as error:
            parser.error(f"{option_string}: {error}")
        setattr(namespace, self.dest, True)


def add_png(to: argparse.ArgumentParser) -> None:
    """`--png`: figures also as PNG."""
    to.add_argument(
        "--png", action=_Png, nargs=0, default=False, help="figures also as PNG, which needs matplotlib"
    )


class _Backend(argparse.Action):
    """`--backend`, rejected at once if its package is missing: a short run might never need it and hide the mistake."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        from .workers import missing

        if reason := missing(values):
            parser.error(f"{option_string} {reason}")
        setattr(namespace, self.dest, values)


def add_backend(to: argparse._ActionsContainer, what: str = "what other processes run on (loky)") -> None:
    """`--backend`: where jobs run."""
    to.add_argument(
        "--backend",
        action=_Backend,
        choices=("loky", "dask", "ray"),
        default="",
        help=f"{what}; DASK_SCHEDULER_ADDRESS and RAY_ADDRESS name a cluster",
    )


def find_variant(options: argparse.ArgumentParser, word: str, path: str | None = None) -> AnyVariant:
    """The variant called `word` (name, alias, or a TOML file); if there is none, the program exits with the reason."""
    from hnefi.engine.games import named
    from hnefi.engine.games.base_variant import VariantError

    try:
        return named(word, path)
    except VariantError as error:
        options.error(str(error))


def find_tafl_variant(options: argparse.ArgumentParser, word: str, path: str | None = None) -> Variant:
    """Like `find_variant`, but only for tafl variants."""
    from hnefi.engine.games.tafl.variant import Variant

    found = find_variant(options, word, path)
    if not isinstance(found, Variant):
        options.error(f"{word}: expected a tafl variant, not {found.game}")
    return found


def let_interrupt_end_us() -> None:
    """Let Ctrl-C end the program at once and silently: compiled kernels never return to Python's own handler."""
    let_them_end_us()
