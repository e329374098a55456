"""The command line of the engine process, and the parser of every command of ours."""

from __future__ import annotations

import argparse
import sys

TYPE_CHECKING = False
"""Not from typing, which an engine starts without."""
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn


def warn_renamed(prog: str, old: str, new: str) -> None:
    """Say on standard error that a flag has a new name."""
    print(f"{prog}: {old} is now called {new}; the next release removes the old spelling", file=sys.stderr)


def filled(text: str, width: int | None = None) -> str:
    """Text for `width` columns (None: the terminal's), broken between words only.

    Lines that begin at the margin are prose, and their paragraphs are filled. Indented lines are kept; one that is too
    long continues below its second column where it has one, and a command continues after a backslash, so that it can
    be pasted.
    """
    import re
    import shutil
    import textwrap

    width = shutil.get_terminal_size().columns if width is None else width
    made: list[str] = []
    for line in re.sub(r"(?m)^(\S.*)\n(?=\S)", r"\1 ", text).splitlines():
        if len(line) <= width:
            made.append(line)
            continue
        columns = re.match(r"\s*\S.*?\s{2,}(?=\S)", line)
        command = columns is None and line.startswith("  hnefi ")
        hang = len(columns[0]) if columns else 0
        hang = hang if 0 < hang <= width - 20 else len(line) - len(line.lstrip()) + 4 * command
        # A flag stays with its value: spaces that textwrap leaves alone.
        kept = re.sub(r"(?<=\S) (?!-)", "\xa0", line) if command else line
        parts = textwrap.wrap(
            kept.lstrip(),
            max(width - 2 * command, 1),
            initial_indent=line[: -len(line.lstrip())],
            subsequent_indent=" " * hang,
            break_on_hyphens=False,
            break_long_words=False,
        )
        parts = [part.replace("\xa0", " ") for part in parts] if command else parts
        made += [f"{part} \\" if command and part is not parts[-1] else part for part in parts]
    return "\n".join(made)


class Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal, broken between words only."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "".join(f"{indent}{line}\n" for line in filled(text, width - len(indent)).splitlines())

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap

        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False, break_long_words=False)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are two lines: what is wrong, and where help is. argparse's own prints all of the usage."""

    ask_instead: Callable[[argparse.ArgumentParser], None] | None = None
    """Called with the first parser that is to read a command line, instead of it; a shell's completion sets it."""

    def __init__(self, *arguments: Any, **how: Any) -> None:
        """As argparse's own."""
        super().__init__(*arguments, **how)
        self._old: dict[str, tuple[str, Callable[[str], str] | None, Callable[[str], bool] | None]] = {}
        self._subject: tuple[str, int] | None = None

    def renamed(
        self,
        old: str,
        new: str,
        value: Callable[[str], str] | None = None,
        when: Callable[[str], bool] | None = None,
    ) -> None:
        """Accept the flag `old` as `new`, and say so. `value` converts an old value to a new one; only values for which
        `when` is true are taken as old."""
        self._old[old] = (new, value, when)

    def takes_variant(self, behind: int = 0) -> None:
        """Accept `--variant V,V` for the variants that are positional arguments, after `behind` other arguments."""
        self._subject = ("--variant", behind)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's own, but an optional word may follow a flag, as in ``query FILE --json FEN``.

        argparse gives ``?`` and ``*`` nothing as soon as the words before a flag are read.
        """
        words = self._renamed(sys.argv[1:] if args is None else args)
        parsed, left = self.parse_known_args(words, namespace)
        if left and namespace is None and self._has_optional_words():
            parsed, left = self.parse_known_intermixed_args(words)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return parsed

    def _has_optional_words(self) -> bool:
        kinds = {action.nargs for action in self._get_positional_actions()}
        return bool(kinds & {argparse.OPTIONAL, argparse.ZERO_OR_MORE}) and not kinds & {
            argparse.PARSER,
            argparse.REMAINDER,
        }

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """As argparse's own, with old flags replaced by the new ones."""
        self._ask_instead()
        return super().parse_known_args(self._renamed(sys.argv[1:] if args is None else args), namespace)

    def parse_known_intermixed_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """As argparse's own."""
        self._ask_instead()
        return super().parse_known_intermixed_args(args, namespace)

    def _ask_instead(self) -> None:
        ask, Parser.ask_instead = Parser.ask_instead, None
        if ask is not None:
            ask(self)

    def _renamed(self, words: Sequence[str]) -> list[str]:
        """A command line in today's spelling."""
        made: list[str] = []
        variants: list[str] = []
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if word == "--":
                made += [word, *rest]
                break
            flag, equals, value = word.partition("=")
            if self._subject is not None and flag == self._subject[0] and (equals or rest):
                variants += (value if equals else rest.pop(0)).split(",")
                continue
            new, translated, when = self._old.get(flag, (flag, None, None))
            behind = value if equals else rest[0] if rest else ""
            if new == flag or (when is not None and not when(behind)):
                made.append(word)
                continue
            if translated is not None and behind:
                said = behind
                try:
                    behind = translated(said)
                except argparse.ArgumentTypeError as error:
                    self.error(f"argument {flag}: {error}")
                # With the value, as the new flag may count in another unit.
                warn_renamed(self.prog, f"{flag} {said}", f"{new} {behind}")
                if not equals:
                    rest.pop(0)
                made += [new, behind]
            else:
                warn_renamed(self.prog, flag, new)
                made.append(new + equals + value)
        if variants and self._subject is not None:
            place = self._subject[1]
            clear = not any(word.startswith("-") for word in made[:place])
            at = place if clear else len(made)
            made[at:at] = variants
        return made

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse hides that a disk did not take a help.
        if file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)

    def error(self, message: str) -> NoReturn:
        """End with status 2."""
        self.exit(2, f"{self.prog}: error: {message}\nSee `{self.prog} --help`.\n")


class _Setting(argparse.Action):
    """Appends (option name, value) to `settings`, in the order of the command line."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        text = str(values)
        name = {"--player": "Player", "--variant": "Variant"}.get(option_string or "")
        if name is None:
            name, equals, text = text.partition("=")
            if not equals or not name.strip():
                parser.error(f"--option {values}: expected NAME=VALUE")
        namespace.settings.append((name.strip(), text.strip()))


def parse(argv: list[str]) -> list[tuple[str, str]]:
    """The options to be set before the first line is read; exits with 2, or 0 for --help, as argparse does."""
    parser = Parser(
        prog="hnefi engine",
        description="The engine on standard input and output. Type help for the commands, quit to leave.",
        epilog="The flags act like setoption before the first line is read, in their order; one that is refused ends "
        "the engine. Where no variant is named, a player begins with the one that it plays.",
        allow_abbrev=False,
    )
    parser.set_defaults(settings=[])
    parser.add_argument(
        "--player", action=_Setting, metavar="NAME", help="a shipped player, or a player's file"
    )
    parser.add_argument("--variant", action=_Setting, metavar="V", help="the game to begin with")
    parser.add_argument(
        "--option", action=_Setting, metavar="NAME=VALUE", help="any option of the greeting; repeatable"
    )
    settings: list[tuple[str, str]] = parser.parse_args(argv).settings
    return [*_variant_of_player(settings), *settings]


def _variant_of_player(settings: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The options that choose the variant which a player plays, where no other is named."""
    from contextlib import suppress

    from hnefi.engine import options

    named = {option.name: value for name, value in settings if (option := options.find(name))}
    if "Player" not in named or not named.keys().isdisjoint({"Variant", "Rules"}):
        return []
    from hnefi import players

    with suppress(players.PlayerError):
        if variant := players.load(named["Player"]).variant:
            # It may be one of those that the path has.
            return [item for item in named.items() if item[0] == "VariantPath"] + [("Variant", variant)]
    return []
