"""Reads options from TOML files and command lines and validates every value; writes configurations as TOML.

The resolved configuration is written as TOML that reads back as itself.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hnefi.engine.regular import open_regular
from hnefi.engine.toml_text import read_toml
from hnefi.engine.wording import nearest, shorten
from hnefi.protocol.flags import Help, Parser

from .options import (
    BY_KEY,
    ENGINE,
    FILE,
    GROUPS,
    PREFIXED,
    TABLE,
    Config,
    ConfigError,
    Document,
    Option,
    keys,
    pairs,
)
from .resolve import over, resolve

FILE_LIMIT = 1 << 20


def read_file(path: Path) -> Document:
    """The options in a TOML file; ConfigError names file, key, value and what was expected."""
    try:
        with open_regular(path) as stream:
            data = stream.read(FILE_LIMIT + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}: expected a readable file") from None
    if len(data) > FILE_LIMIT:
        raise ConfigError(f"{path}: expected at most {FILE_LIMIT} bytes")
    try:
        document = read_toml(data.decode(), FILE_LIMIT)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not TOML: byte {error.start}: expected UTF-8") from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    return judge(document, str(path), path.parent)


def judge(document: Mapping[str, Any], where: str, folder: Path) -> Document:
    """A configuration's tables with every value validated; paths become absolute, relative to `folder`."""
    judged: Document = {}
    for name, table in document.items():
        if name != "each" and name not in GROUPS:
            known = [*GROUPS, "each"]
            hint = nearest(name, known) or _elsewhere(name)
            raise ConfigError(f"{where}: {name} {shorten(table)}: expected one of {', '.join(known)}{hint}")
        if name == "engine":
            if not isinstance(table, list):
                raise ConfigError(f"{where}: engine {shorten(table)}: expected a list of tables")
            judged["engine"] = [
                _judge_table(entry, "engine", f"{where}: engine {number}", folder)
                for number, entry in enumerate(table, 1)
            ]
        else:
            judged[name] = _judge_table(table, name, f"{where}: {name}", folder)
    return judged


def _judge_table(table: Any, group: str, where: str, folder: Path) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ConfigError(f"{where}: {shorten(table)}: expected a table")
    known = keys(*ENGINE) if group in ("engine", "each") else keys(group)
    judged = {}
    for key, value in table.items():
        if key not in known:
            raise ConfigError(_unknown(where, key, value, known))
        try:
            judged[key] = _placed(known[key], known[key].kind.check(value), folder)
        except ValueError as error:
            raise ConfigError(f"{where}.{key} {shorten(value)}: {error}") from None
    return judged


def _unknown(where: str, key: str, value: Any, known: Iterable[str]) -> str:
    hint = nearest(key, known) or _elsewhere(key)
    return f"{where}.{key} {shorten(value)}: expected one of {', '.join(known)}{hint}"


def _elsewhere(key: str) -> str:
    groups = [option.group for option in TABLE if option.key == key]
    return f" (did you mean {key} in [{groups[0]}]?)" if groups else ""


def _placed(option: Option, value: Any, folder: Path) -> Any:
    """Paths made absolute, relative to where they were named."""
    if option.kind is FILE and value:
        return str(Path(os.path.abspath(folder / Path(value).expanduser())))  # noqa: PTH100 - keeps links as named
    local = option.key == "cmd" and os.sep in value.partition(" ")[0]
    if local or (option.key in ("player", "eval_by") and value.endswith(".toml")):
        return str(Path(os.path.abspath(folder / Path(value).expanduser())))  # noqa: PTH100
    return value


def read_engine(text: str, where: str, folder: Path) -> dict[str, Any]:
    """What `--engine` or `--each` says: `key=value,...` with `option.X=`, `env.X=` and `limits_a.X=` for tables."""
    if "=" not in text and (said := _as_said(text, folder)):
        raise ConfigError(f"{where}: {shorten(text)}: expected key=value,... such as {said}")
    return _read_words(text, keys(*ENGINE), where, folder)


def _as_said(word: str, folder: Path) -> str:
    """How `--engine` names the player or the program called `word`; empty if there is none."""
    from hnefi import players

    if word in players.names() or word.endswith(players.SUFFIX):
        return f"player={word[:80]}"
    try:
        there = (folder / word).is_file()
    except (OSError, ValueError):
        return ""
    return f"cmd={'' if os.sep in word else './'}{word[:80]}" if there else ""


def _read_words(text: str, known: Mapping[str, Option], where: str, folder: Path) -> dict[str, Any]:
    try:
        words = pairs(text)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None
    found: dict[str, Any] = {}
    for key, value in words.items():
        name, dot, inner = key.partition(".")
        name = "options" if dot and name == "option" else name.replace("-", "_")
        if name not in known:
            raise ConfigError(_unknown(where, key, value, known))
        option = known[name]
        try:
            if not dot:
                found[name] = _placed(option, option.kind.read(value), folder)
            elif option.kind.open:
                found.setdefault(name, {})[inner] = value
            elif option.kind.fields and inner in option.kind.fields:
                found.setdefault(name, {})[inner] = option.kind.fields[inner].read(value)
            else:
                raise ValueError(f"expected one of {', '.join(option.kind.fields or (name,))}")
        except ValueError as error:
            raise ConfigError(f"{where} {key}={shorten(value)}: {error}") from None
    return found


# The command line


def parser() -> Parser:
    """The command line of a run, made from the table."""
    made = Parser(
        prog="hnefi arena",
        description="Engines play each other, pair by pair with sides swapped; statistics say which one is stronger"
        " and which side is easier.\n\n"
        "  hnefi arena [PLAYER ...] [flags]   play a run (flags below)\n"
        "  hnefi arena resume RUN             continue an interrupted run\n"
        "  hnefi arena report RUN             tables of a run; exports, plots and a page of it\n"
        "  hnefi arena rate RUN ...           one rating table for several runs\n"
        "  hnefi arena openings ...           list openings\n"
        "  hnefi arena check ENGINE           check that an engine follows the protocol\n"
        "  hnefi arena stats ...              statistics from counts alone",
        epilog="engines are numbered as they are given; results are given from the first one's point of view\n\n"
        "--engine and --each take player, cmd, args, name (of one engine) and every key of the groups engines,"
        " how long they think and how long we wait; with _ for -, option.NAME=VALUE, env.NAME=VALUE, limits_a.KEY=VALUE"
        "\n\n"
        "precedence: flag > --engine or [[engine]] > --each or [each] > [limits] and [margins] of the file >"
        " default\n\n"
        "exit: 0 complete, 1 interrupted (resumable), 2 bad configuration, 3 engine faults, 4 storage failed;"
        " with --sprt-exit 0 H1, 10 H0, 11 inconclusive\n\n"
        "examples:\n"
        "  hnefi arena default random-blind --variant brandubh --pairs 20 --nodes 500 --seed 7\n"
        "  hnefi arena --engine name=mine,cmd=./mybot,proto=uci,tc=10+0.1,option.Hash=64 --engine player=default"
        " --each tc=5+0.05\n"
        "  hnefi arena default default --engine player=random-blind --format round-robin --dry-run\n"
        "  hnefi arena a.toml b.toml --sprt elo0=0,elo1=20 --nodes 5000\n"
        "  hnefi arena --config cup.toml --pairs 500\n",
        formatter_class=Formatter,
        allow_abbrev=False,
        usage="hnefi arena [PLAYER ...] [--engine k=v,...] [--config FILE] [flags]",
    )
    made.add_argument(
        "engines",
        nargs="*",
        action=_Listed,
        default=None,
        metavar="PLAYER",
        help="shipped players, players' files, or `hnefi engines`",
    )
    made.add_argument("--config", metavar="FILE", help="a configuration (TOML); flags override it")
    made.add_argument(
        "--engine", action=_Listed, dest="engines", metavar="k=v,...", help="one engine; repeat for each"
    )
    made.add_argument(
        "--each", action="append", default=[], metavar="k=v,...", help="defaults of all engines"
    )
    add_flags(made, GROUPS)
    made.renamed("--variants", "--variant")
    return made


def add_flags(
    made: argparse.ArgumentParser,
    groups: Iterable[str],
    shown: Callable[[Option], bool] = lambda _: True,
    defaults: bool = True,
) -> None:
    """The flags of some groups; what they are given stays text until it is judged.

    The help tells of those `shown`, and of their `defaults`.
    """
    for name in groups:
        group = made.add_argument_group(GROUPS[name])
        options = [option for option in TABLE if option.group == name and option.flag]
        if name in PREFIXED:
            text = "several of the following at once" if all(map(shown, options)) else argparse.SUPPRESS
            group.add_argument(
                f"--{name}", nargs="?", const="", metavar="k=v,...", dest=f"{name}:", help=text
            )
        for option in options:
            _add_flag(group, option, _help(option, defaults) if shown(option) else argparse.SUPPRESS)


def _help(option: Option, defaults: bool) -> str:
    default = option.default
    text = option.help
    if not defaults:
        text = text.partition(" (default")[0]
    elif (
        default not in (None, "", {}, [])
        and "(default" not in text
        and not (option.kind.flag and default is False)
    ):
        text += f" (default: {str(default).lower() if isinstance(default, bool) else default})"
    return text.replace("%", "%%")


def _add_flag(group: Any, option: Option, text: str) -> None:
    dest = f"{option.group}:{option.key}"
    if option.kind.flag:
        group.add_argument(option.flag, action=_OnOff, dest=dest, help=text)
    else:
        short = ["-o"] if option.flag == "--out" else []
        group.add_argument(*short, option.flag, metavar=option.kind.word, dest=dest, help=text)


class _OnOff(argparse.BooleanOptionalAction):
    """`--flag` and `--no-flag`, shown as one in the help."""

    def format_usage(self) -> str:
        return self.option_strings[0]


class _Listed(argparse.Action):
    """Every engine in the order in which they were named, with the flag that names it (none: by a player)."""

    def __call__(
        self, parser: object, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        del parser
        words = [values] if option_string else values
        listed = [*(getattr(namespace, self.dest, None) or ()), *((option_string, word) for word in words)]
        setattr(namespace, self.dest, listed)


class Formatter(Help):
    """A help formatter that shows `--flag` and `--no-flag` as one entry."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if isinstance(action, _OnOff):
            return action.option_strings[0].replace("--", "--[no-]", 1)
        return super()._format_action_invocation(action)


def from_arguments(arguments: Sequence[str], folder: Path | None = None) -> Config:
    """The configuration given by a command line; ConfigError otherwise (argparse ends the program for --help)."""
    made = parser()
    parsed = parse(made, arguments)
    given = flags_of(parsed, Path.cwd() if folder is None else folder)
    base = read_file(Path(parsed.config)) if parsed.config else {}
    here = Path.cwd() if folder is None else folder
    engines = [
        read_engine(word, "--engine", here) if flag else _player(word, here)
        for flag, word in parsed.engines or ()
    ]
    each: dict[str, Any] = dict(base.get("each", {}))
    for text in parsed.each:
        each = over(each, read_engine(text, "--each", here))
    return resolve({**base, "each": each, "engine": engines or base.get("engine", [])}, given)


def parse(made: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line, with positional words anywhere; ConfigError for an unknown flag."""
    parsed = argparse.Namespace()
    # Part by part, because argparse takes all flags before all words and so forgets what came first.
    starts = [index for index, word in enumerate(arguments) if word.partition("=")[0] == "--engine"]
    for start, end in zip([0, *starts], [*starts, len(arguments)], strict=True):
        if end > start or not arguments:
            parsed, unknown = made.parse_known_intermixed_args(arguments[start:end], parsed)
            if unknown:
                raise ConfigError(unknown_flag(unknown[0], made))
    return parsed


def _player(word: str, folder: Path) -> dict[str, Any]:
    said = _as_said(word, folder)
    if said.startswith("cmd=") and not _is_registered(word):
        raise ConfigError(f"player {shorten(word)}: a file: expected a player, or --engine {said}")
    return _judge_table({"player": word}, "engine", "PLAYER", folder)


def _is_registered(word: str) -> bool:
    from hnefi.protocol.hosts import registry

    try:
        return registry.find(word) is not None
    except registry.RegistryError as error:
        raise ConfigError(f"player {shorten(word)}: {error}") from None


def unknown_flag(flag: str, made: argparse.ArgumentParser) -> str:
    """The error message for an unknown flag."""
    word = flag.partition("=")[0]
    known = [text for action in made._actions for text in action.option_strings]
    group, _, key = word.removeprefix("--").partition("-")
    # The same key with or without a group's name.
    likely = [f"--{key}"] * (group in GROUPS) + [f"--{name}{word[1:]}" for name in PREFIXED]
    hint = next((f" (did you mean {text}?)" for text in likely if text in known), "")
    return f"{shorten(word)}: no such flag{hint or nearest(word, known) or f'; see {made.prog} --help'}"


def flags_of(parsed: argparse.Namespace, folder: Path) -> Document:
    """The options given as flags, by group, every value validated."""
    given: Document = {}
    for dest, value in vars(parsed).items():
        group, colon, key = dest.partition(":")
        if not colon or value is None:
            continue
        table = given.setdefault(group, {})
        if not key:
            known = keys(group)
            table.update(_read_words(value, known, f"--{group}", folder) if value else {})
            continue
        option = BY_KEY[group, key]
        try:
            table[key] = _placed(option, value if option.kind.flag else option.kind.read(value), folder)
        except ValueError as error:
            raise ConfigError(f"{option.flag} {shorten(value)}: {error}") from None
    return given


# TOML


def to_toml(config: Config) -> str:
    """The configuration as TOML that reads back as itself; the notes are comments."""
    lines = [f"# {note}" for note in config.notes]
    for group, table in config.tables.items():
        said = {key: value for key, value in table.items() if value is not None and value != {}}
        if said:
            lines += ["", f"[{group}]", *(f"{key} = {toml_value(value)}" for key, value in said.items())]
    for engine in config.engines:
        said = {key: value for key, value in engine.items() if value is not None and value not in ({}, [])}
        lines += ["", "[[engine]]", *(f"{key} = {toml_value(value)}" for key, value in said.items())]
    return "\n".join(lines).lstrip("\n") + "\n"


def toml_value(value: Any) -> str:
    """One value of ours as TOML: text, numbers, booleans, lists and tables of them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return _toml_text(value)
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{_toml_text(key)} = {toml_value(item)}" for key, item in value.items()) + " }"
        )
    return "[" + ", ".join(map(toml_value, value)) + "]"


def _toml_text(text: str) -> str:
    import json

    # JSON's escapes are TOML's, but for DEL, which TOML wants escaped as well.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
