"""What OpenTafl has to know of our engine, and the file with the flags that it starts it with."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from hnefi.engine.regular import open_regular
from hnefi.engine.toml_text import read_toml
from hnefi.engine.wording import nearest, shorten
from hnefi.protocol.flags import Parser
from hnefi.protocol.hosts.exit_codes import DONE, code_of

NAME: Final = "hnefi-otep.toml"
TEXT: Final = "a text in quotes"
KINDS: Final[dict[str, tuple[type, str]]] = {
    "engine": (str, TEXT),
    "player": (str, TEXT),
    "option": (list, 'a list of texts, as in ["Hash=64"]'),
    "movetime": (int, "milliseconds, a whole number without quotes"),
    "otn": (str, '"opentafl" or "intended"'),
    "record-dir": (str, TEXT),
    "no-record": (bool, "true or false"),
}
"""Flags that the file may say, with the type of their values and the words for it. OpenTafl splits arguments at blanks;
here they may contain some."""
HEAD: Final = """\
# The flags of `hnefi otep` as OpenTafl starts it: engine, player, option, movetime, otn, record-dir, no-record.
# movetime = 2000
# option = ["Hash=64", "Threads=2"]
"""
SIZE_LIMIT: Final = 65_536


SIGNS: Final = ("OpenTafl*.jar", "OpenTafl.sh", "OpenTafl.bat", "engines/", "settings.ini")
"""What OpenTafl's folder may have, in upper or lower case: its program, the engines that it knows, or its settings."""


def _has_opentafl(home: Path) -> bool:
    found: list[str] = []
    with contextlib.suppress(OSError):
        found = [path.name.lower() + "/" * path.is_dir() for path in home.iterdir()]
    return any(fnmatchcase(name, sign.lower()) for name in found for sign in SIGNS)


def write_ini(options: Parser, arguments: argparse.Namespace) -> int:
    """Write `engines/hnefi.ini` in OpenTafl's folder and `engines/hnefi/`, which has the settings; the exit code."""
    home = Path(arguments.write_ini).expanduser()
    # An empty word is an unset variable, not the folder we are in.
    if not arguments.write_ini or not home.is_dir():
        options.error(f"--write-ini {shorten(arguments.write_ini)}: expected the folder that OpenTafl is in")
    if not (arguments.force or _has_opentafl(home)):
        options.error(
            f"--write-ini {shorten(arguments.write_ini)}: expected the folder that OpenTafl is in, and found no "
            f"{', '.join(SIGNS[:-1])} or {SIGNS[-1]} there: --force writes anyway"
        )
    ini, settings = home / "engines" / "hnefi.ini", home / "engines" / "hnefi" / NAME
    chosen = {key: getattr(arguments, key.replace("-", "_")) for key in KINDS}
    lines = [f"{key} = {_toml(key, value)}\n" for key, value in chosen.items() if value not in (None, False)]
    try:
        settings.parent.mkdir(parents=True, exist_ok=True)
        kept = settings.exists() and not arguments.force
        if not kept:
            settings.write_text(HEAD + "".join(lines), encoding="utf-8")
        ini.write_text(_ini(), encoding="utf-8")
    except OSError as error:
        text = (
            f"{shorten(str(error.filename))}: {error.strerror or error}: expected a place that can be written"
        )
        options.exit(code_of(error), f"{options.prog}: error: {text}\n")
    print(f"wrote {ini}")
    print(f"{'kept' if kept else 'wrote'} {settings}")
    if kept and lines:
        text = f"your flags were not written to {settings.name}, which already exists: --force replaces it"
        print(f"{options.prog}: {text}", file=sys.stderr)
    print("restart OpenTafl to find the engine hnefi")
    return DONE


def _ini() -> str:
    """A section as OpenTafl reads it: `filename` must exist in `directory`, which is the process's own, and
    `arguments` are split at single blanks."""
    return "\n".join(
        (
            "[engine]",
            "name=hnefi",
            "directory=hnefi",
            f"filename={NAME}",
            f"command={sys.executable}",
            f"arguments=-m hnefi.tools.cli otep --settings {NAME}",
            "",
        )
    )


def _toml(key: str, value: Any) -> str:
    return str(value) if key == "movetime" else json.dumps(value)


def read(options: Parser, arguments: argparse.Namespace) -> None:
    """Add what the settings file says to what the command line says, which comes first."""
    where = f"--settings {shorten(arguments.settings)}"
    try:
        with open_regular(arguments.settings) as file:
            said = read_toml(file.read(SIZE_LIMIT).decode())
    except (OSError, ValueError) as error:
        options.error(f"{where}: {getattr(error, 'strerror', None) or error}: expected a TOML file")
    for key, value in said.items():
        if key not in KINDS:
            options.error(f"{where}: {shorten(key)}: expected {', '.join(KINDS)}{nearest(key, KINDS)}")
        kind, expected = KINDS[key]
        fits = type(value) is kind and (key != "otn" or value in ("opentafl", "intended"))
        if not fits or (isinstance(value, list) and not all(isinstance(word, str) for word in value)):
            options.error(f"{where}: {key} = {shorten(value)}: expected {expected}")
        name = key.replace("-", "_")
        if getattr(arguments, name) in (None, False):
            is_text = not isinstance(value, list | bool)
            setattr(arguments, name, str(value) if is_text else value)
