"""The user's own engines by name: `engines.toml` in the configuration folder, read wherever an engine can be named.

[mybot]
command = "/home/me/mybot --fast"   # as in `play --engine`: a program that speaks uti, uci or ugi
variants = ["brandubh"]             # only if it plays no others
description = "One sentence."
clock = "movetime"                  # only if it knows no clock: it is sent a time for each move
letters = "adk"                     # only if its FENs call the men a and d and the king k

[mybot.options]                     # set after the greeting
Hash = "64"
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from hnefi import players
from hnefi.engine import durable
from hnefi.engine.regular import home_folder, open_regular
from hnefi.engine.toml_text import read_toml
from hnefi.engine.wording import nearest, shorten

FILE: Final = "engines.toml"
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,59}")
_TEXTS: Final = ("command", "description", "clock", "letters")
_KEYS: Final = (*_TEXTS, "variants", "options")
_LIMIT: Final = 1024 * 1024
"""Bytes of the file."""
_TEXT_LIMIT: Final = 4096


CLOCKS: Final = ("", "movetime")
LETTERS: Final = ("", "adk")


class RegistryError(ValueError):
    """An engine that cannot be added, found or read: repeats what was given and says what was expected."""


@dataclass(frozen=True, slots=True)
class RegisteredEngine:
    """An engine that the user has named: its command line, what it plays (empty: everything), options to be set.

    `clock` is `movetime` for one that knows no clock, `letters` is `adk` for one whose FENs have these letters.
    """

    name: str
    command: str
    variants: tuple[str, ...] = ()
    description: str = ""
    clock: str = ""
    letters: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> tuple[str, ...]:
        """The command as program and arguments."""
        return tuple(shlex.split(self.command))

    def misfit(self, known_as: tuple[str, ...]) -> str | None:
        """Why it cannot play a variant of these names; None if it can, as far as the file says."""
        wanted = {name.lower() for name in known_as}
        if self.variants and wanted.isdisjoint(name.lower() for name in self.variants):
            return f"{self.name} plays {', '.join(self.variants)} only, not {known_as[0]}"
        return None


def config_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the user's settings are. A relative XDG_CONFIG_HOME is ignored, as its specification wants."""
    base = environment.get("XDG_CONFIG_HOME", "")
    if Path(base).is_absolute():
        return Path(base) / "hnefi"
    return Path(environment.get("HOME") or home_folder()) / ".config" / "hnefi"


def path() -> Path:
    """The file, whether it exists or not."""
    return config_folder() / FILE


def load() -> dict[str, RegisteredEngine]:
    """All engines of the file that can be used, by name and in its order; RegistryError as from `read`."""
    return read()[0]


def read() -> tuple[dict[str, RegisteredEngine], dict[str, str]]:
    """The engines of the file by name, and what is wrong with its other entries. Without a file there are none.

    RegistryError if it cannot be read at all.
    """
    file = path()
    try:
        with open_regular(file) as stream:
            table = read_toml(stream.read(_LIMIT + 1).decode(), _LIMIT)
    except (FileNotFoundError, NotADirectoryError):
        return {}, {}
    except OSError as error:
        raise RegistryError(f"{file}: {error.strerror or error}: expected a readable file") from None
    except UnicodeDecodeError:
        raise RegistryError(f"{file}: not UTF-8: expected TOML") from None
    except ValueError as error:
        raise RegistryError(f"{file}: {error}") from None
    engines: dict[str, RegisteredEngine] = {}
    complaints: dict[str, str] = {}
    for name, entry in table.items():
        try:
            engines[name] = _read(f"{file}: {name}", name, entry)
        except RegistryError as error:
            complaints[name] = str(error)
    return engines, complaints


def find(name: str) -> RegisteredEngine | None:
    """The user's engine of that name, None if there is none; RegistryError if it cannot be read."""
    if not NAME.fullmatch(name) or name in players.names():
        return None
    engines, complaints = read()
    if name in complaints:
        raise RegistryError(complaints[name])
    return engines.get(name)


def player_of(name: str) -> players.Player:
    """The player of that name, or in that file, where the name of a registered engine would do as well; PlayerError,
    which says how to register one."""
    try:
        return players.load(name)
    except players.PlayerError as error:
        if name.endswith(players.SUFFIX):
            raise
        raise players.PlayerError(f"{error}; `hnefi engines add` registers a program") from None


def engine_of(text: str) -> RegisteredEngine:
    """What `--engine TEXT` means: the engine of that name, or a command line; ValueError if it can be neither.

    A command line becomes an engine without name and options.
    """
    known = find(text)
    if known is not None:
        return known
    engine = RegisteredEngine("", text)
    try:
        words = engine.words
    except ValueError as error:
        raise ValueError(f"{shorten(text)}: {error}: expected a program and its arguments") from None
    if not words:
        raise ValueError("expected a program and its arguments, such as 'my-engine --fast'")
    return engine


def no_program(program: str) -> str | None:
    """Why a program cannot be run; None if it can."""
    if shutil.which(program) is not None:
        return None
    # pathlib raises for names that are too long, and for those in folders that we may not look into.
    if "/" in program and os.path.exists(program):  # noqa: PTH110
        what = "a folder" if os.path.isdir(program) else "not executable"  # noqa: PTH112
        return f"{shorten(program)}: {what}: expected an executable program"
    where = "here" if "/" in program else "in the PATH"
    return f"{shorten(program)}: no such program {where}: expected an executable program"


def add(engine: RegisteredEngine, *, force: bool = False) -> Path:
    """Write the engine into the file, which is returned; RegistryError if it is refused, OSError if it is not written.

    A program that is named by a path is stored by its full path, because the name works in any folder.
    """
    with durable.alone(path().parent):
        return _add(engine, force=force)


def _add(engine: RegisteredEngine, *, force: bool) -> Path:
    known = _all()
    if engine.name in known and not force:
        there = shorten(known[engine.name].command)
        raise RegistryError(f"{engine.name}: this name is used for {there}: --force replaces it")
    if engine.name in players.names():
        raise RegistryError(
            f"{engine.name}: a shipped player has this name (`hnefi players`): expected another"
        )
    _judge(engine.name, engine.name, engine)
    program, *arguments = engine.words
    missing = no_program(program)
    if missing is not None:
        raise RegistryError(missing)
    if "/" in program:
        program = os.path.abspath(program)  # noqa: PTH100 - keeps links as named
    stored = replace(engine, command=shlex.join([program, *arguments]))
    return _write({**known, engine.name: stored})


def remove(name: str) -> Path:
    """Take the engine out of the file; RegistryError if it is not there."""
    with durable.alone(path().parent):
        known = _all()
        if name not in known:
            raise RegistryError(no_such(name, known))
        del known[name]
        return _write(known)


def _all() -> dict[str, RegisteredEngine]:
    """The engines of a file that will be rewritten: entries that cannot be read must not be lost."""
    engines, complaints = read()
    for complaint in complaints.values():
        raise RegistryError(f"{complaint}: correct this first")
    return engines


def no_such(name: str, known: Mapping[str, RegisteredEngine]) -> str:
    """Why an engine of that name cannot be used."""
    there = (
        f"expected one of {', '.join(known)}"
        if known
        else "expected the name of an engine, and none was added yet"
    )
    return f"{shorten(name)}: {there}{nearest(name, known)}"


def _read(where: str, name: str, entry: Any) -> RegisteredEngine:
    if not isinstance(entry, dict):
        raise RegistryError(f'{where}: {shorten(entry)}: expected a table with command = "…"')
    for key, value in entry.items():
        if key not in _KEYS:
            raise RegistryError(
                f"{where}.{key}: {shorten(value)}: expected one of {', '.join(_KEYS)}{nearest(key, _KEYS)}"
            )
    variants = entry.get("variants", [])
    options = entry.get("options", {})
    if not isinstance(variants, list) or not all(isinstance(one, str) for one in variants):
        raise RegistryError(f"{where}.variants: {shorten(variants)}: expected a list of names")
    if not isinstance(options, dict) or not all(
        isinstance(value, (str, int, float)) for value in options.values()
    ):
        raise RegistryError(f"{where}.options: {shorten(options)}: expected a table of values")
    spelled = {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()
    }
    texts = {key: entry.get(key, "") for key in _TEXTS}
    engine = RegisteredEngine(name, variants=tuple(variants), options=spelled, **texts)
    _judge(where, name, engine)
    return engine


def _judge(where: str, name: str, engine: RegisteredEngine) -> None:
    """RegistryError unless everything in an entry can be used and written."""
    if not NAME.fullmatch(name) or name.endswith(players.SUFFIX):
        raise RegistryError(
            f"{where}: name {shorten(name)}: expected up to 60 letters, digits and . _ + -, "
            f"not ending in {players.SUFFIX}"
        )
    for key, text in (
        *((key, getattr(engine, key)) for key in _TEXTS),
        *(("variants", one) for one in engine.variants),
        *((f"options.{option}", option + value) for option, value in engine.options.items()),
    ):
        if not isinstance(text, str):
            raise RegistryError(f"{where}: {key} {shorten(text)}: expected a text in quotes")
        if not (text.isprintable() and len(text) <= _TEXT_LIMIT):
            raise RegistryError(
                f"{where}: {key} {shorten(text)}: expected at most {_TEXT_LIMIT} printable characters"
            )
    for key, expected in (("clock", CLOCKS), ("letters", LETTERS)):
        if getattr(engine, key) not in expected:
            raise RegistryError(
                f"{where}: {key} {shorten(getattr(engine, key))}: expected {expected[1]}, or nothing"
            )
    try:
        empty = not engine.words
    except ValueError as error:
        raise RegistryError(f"{where}: command {shorten(engine.command)}: {error}") from None
    if empty:
        raise RegistryError(
            f"{where}: command {shorten(engine.command)}: expected a program and its arguments"
        )


def _write(engines: Mapping[str, RegisteredEngine]) -> Path:
    lines = []
    for engine in engines.values():
        lines.append(f"[{_key(engine.name)}]")
        lines += [f"{key} = {_text(text)}" for key in _TEXTS if (text := getattr(engine, key))]
        if engine.variants:
            lines.append(f"variants = [{', '.join(map(_text, engine.variants))}]")
        if engine.options:
            lines += ["", f"[{_key(engine.name)}.options]"]
            lines += [f"{_key(name)} = {_text(value)}" for name, value in engine.options.items()]
        lines.append("")
    file = path()
    durable.make_folder(file.parent)
    durable.put(file, "\n".join(lines).encode(), draft=file.with_name(f".{file.name}.{os.getpid()}"))
    return file


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(text: str) -> str:
    """A TOML string. JSON escapes alike, and what only TOML forbids is not printable."""
    return json.dumps(text, ensure_ascii=False)
