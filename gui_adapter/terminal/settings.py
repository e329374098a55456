"""What a person prefers, kept in one TOML file between games.

The file is `hnefi/terminal.toml` in the user's folder for configuration. Whatever in it is not understood is left out
with a sentence that says so; it never keeps a game from starting.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hnefi.engine.regular import open_regular
from hnefi.engine.toml_text import read_toml
from hnefi.engine.wording import nearest, shorten
from hnefi.protocol.hosts.registry import config_folder

if TYPE_CHECKING:
    from asyncio import TimerHandle

FILE: Final = "terminal.toml"
LIMIT: Final = 64 * 1024
"""Bytes of the file at most."""
AUTO: Final = 0
"""The zoom that stands for the largest one that leaves a few rows free; 1 where there is no bound."""
KEPT_AFTER: Final = 0.5
"""Seconds after the last change of a setting until the file is written: a key that is held writes it once."""


class SettingsError(ValueError):
    """No such setting, or no such value; the text is a sentence for people."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One value for every key of `KEYS`, which says what each means."""

    variant: str = "copenhagen"
    side: str = "a"
    level: int = 5
    clock: str = "off"
    theme: str = "dark"
    glyphs: str = "auto"
    colour: str = "auto"
    zoom: int = AUTO
    lines: int = 3
    replay: float = 1.0
    speed: float = 0.5
    mouse: bool = True

    def with_value(self, key: str, text: str) -> Settings:
        """These settings with `key` read from what was typed; SettingsError with a sentence that says what was
        expected."""
        name = key.lower()
        known = KEYS.get(name)
        if known is None:
            near = nearest(key, KEYS)
            raise SettingsError(f"no setting {shorten(key)}{near}: expected one of {', '.join(sorted(KEYS))}")
        try:
            value = known.read(text)
        except ValueError as error:
            raise SettingsError(f"{name} {shorten(text)}: {error}") from None
        return replace(self, **{name: value})

    def spelled(self, key: str) -> str:
        """The value of `key` as it is typed."""
        value = getattr(self, key)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if key == "zoom" and value == AUTO:
            return "auto"
        return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: its sentence, how text becomes its value, and values worth suggesting."""

    help: str
    read: Callable[[str], Any]
    values: tuple[str, ...]


def _one_of(*words: str) -> Callable[[str], str]:
    """A reader of one of `words`, in any case."""

    def read(text: str) -> str:
        word = text.lower()
        if word not in words:
            raise ValueError(f"expected one of {', '.join(words)}")
        return word

    return read


def _whole(low: int, high: int) -> Callable[[str], int]:
    """A reader of a whole number from `low` to `high`."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 9 and low <= int(text) <= high):
            raise ValueError(f"expected a whole number from {low} to {high}")
        return int(text)

    return read


def _zoom(text: str) -> int:
    if text.lower() == "auto":
        return AUTO
    if text not in ("1", "2", "3"):
        raise ValueError("expected auto, 1, 2 or 3")
    return int(text)


def _seconds(low: float, high: float) -> Callable[[str], float]:
    """A reader of seconds from `low` to `high`."""

    def read(text: str) -> float:
        if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text) or not low <= float(text) <= high:
            raise ValueError(f"expected seconds from {low:g} to {high:g}")
        return float(text)

    return read


def _switch(text: str) -> bool:
    word = text.lower()
    if word not in ("yes", "no", "on", "off", "true", "false"):
        raise ValueError("expected yes or no")
    return word in ("yes", "on", "true")


def _clock(text: str) -> str:
    if text.lower() == "off":
        return "off"
    found = re.fullmatch(r"([0-9]{1,4}(?:\.[0-9]{1,3})?)\+([0-9]{1,4}(?:\.[0-9]{1,3})?)", text)
    if found is None or not any(float(part) for part in found.groups()):
        raise ValueError("expected off, or minutes and seconds per move such as 5+3")
    return text


def _name(text: str) -> str:
    if not re.fullmatch(r"[^\x00-\x20\x7f]{1,80}", text) or not text.isprintable():
        raise ValueError("expected the name of a variant such as brandubh")
    return text


KEYS: Final[Mapping[str, Key]] = {
    "variant": Key("the variant at the start", _name, ("copenhagen", "brandubh", "tablut-linnaeus")),
    "side": Key(
        "your side: a (attackers), d (defenders), both, or none to watch",
        _one_of("a", "d", "both", "none"),
        ("a", "d", "both", "none"),
    ),
    "level": Key("strength of the engine; 10 is the full engine", _whole(0, 10), tuple(map(str, range(11)))),
    "clock": Key("off, or minutes and seconds per move", _clock, ("off", "5+3", "15+10")),
    "theme": Key("colours", _one_of("dark", "light", "contrast"), ("dark", "light", "contrast")),
    "glyphs": Key(
        "signs for the men: auto, unicode or ascii",
        _one_of("auto", "unicode", "ascii"),
        ("auto", "unicode", "ascii"),
    ),
    "colour": Key(
        "whether to use colours: auto (unless NO_COLOR is set), yes, no",
        _one_of("auto", "yes", "no"),
        ("auto", "yes", "no"),
    ),
    "zoom": Key("size of the cells: auto, or 1 to 3", _zoom, ("auto", "1", "2", "3")),
    "lines": Key("best lines in the analysis", _whole(1, 10), ("1", "3", "5")),
    "replay": Key("seconds between moves of a replay", _seconds(0.1, 60), ("0.5", "1", "2")),
    "speed": Key("seconds between moves of two engines", _seconds(0, 60), ("0", "0.5", "2")),
    "mouse": Key("whether the full screen takes the mouse", _switch, ("yes", "no")),
}


def describe(settings: Settings) -> list[str]:
    """Every setting with its value and its meaning, one a line."""
    return [f"{key:<8} {settings.spelled(key):<12} {known.help}" for key, known in KEYS.items()]


def path(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the file is, or would be."""
    return config_folder(environment) / FILE


def load(file: Path | None = None) -> tuple[Settings, list[str]]:
    """The settings of `file` (the usual one), and a sentence for everything in it that was left out."""
    file = path() if file is None else file
    try:
        with open_regular(file) as stream:
            data = stream.read(LIMIT + 1)
        table = read_toml(data.decode("utf-8"), LIMIT)
    except FileNotFoundError:
        return Settings(), []
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return Settings(), [f"settings of {file}: {reason}; all ignored"]
    settings = Settings()
    complaints = []
    for key, value in table.items():
        try:
            settings = settings.with_value(key, _typed(value))
        except ValueError as error:
            complaints.append(f"settings of {file}: {error}; ignored")
    return settings, complaints


def _typed(value: object) -> str:
    """A value of the file as a person would type it; ValueError if it cannot be typed."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    if isinstance(value, (str, int)) and not (isinstance(value, int) and abs(value) > 10**9):
        return str(value)
    raise ValueError(f"{shorten(value)}: expected a text, a number, true or false")


def keep(values: Mapping[str, str], file: Path | None = None) -> Path:
    """Change these values in the file, and nothing that holds for this game alone; SettingsError, or OSError if the
    file cannot be written."""
    kept, _ = load(file)
    for key, text in values.items():
        kept = kept.with_value(key, text)
    return save(kept, file)


class Keeper:
    """Writes what is set into the person's file, once it has not changed for a while; `say` hears why it cannot."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._values: dict[str, str] = {}
        self._timer: TimerHandle | None = None

    def keep(self, key: str, value: str) -> None:
        """Write a setting, soon; what the command line said for this game alone is not written there."""
        from asyncio import get_running_loop

        self._values[key] = value
        if self._timer is not None:
            self._timer.cancel()
        self._timer = get_running_loop().call_later(KEPT_AFTER, self.close)

    def close(self) -> None:
        """Write what waits to be written."""
        if self._timer is not None:
            self._timer.cancel()
        values, self._values = self._values, {}
        if not values:
            return
        try:
            keep(values)
        except (OSError, SettingsError) as error:
            reason = getattr(error, "strerror", None) or error
            self._say(f"{path()}: {reason}: {', '.join(values)} could not be saved.")


def save(settings: Settings, file: Path | None = None) -> Path:
    """Write what differs from the defaults; the file is replaced whole. OSError if that cannot be done."""
    file = path() if file is None else file
    lines = ["# Settings of `hnefi play`; `set KEY VALUE` in a game writes this file."]
    for field in fields(settings):
        value = getattr(settings, field.name)
        if value != field.default:
            lines.append(f"{field.name} = {_toml(value)}")
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        beside.write_text("\n".join(lines) + "\n", "utf-8")
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)
    return file


def _toml(value: object) -> str:
    """A value in TOML; texts hold no control characters here."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)
