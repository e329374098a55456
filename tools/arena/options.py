"""Every option of the arena in one table, and the configuration they make up.

An option has a TOML key `a_b` in its group and a flag `--a-b`; groups in `PREFIXED` put their name before the flag
(`--openings-plies`) and can be given as one text (`--sprt elo0=0,elo1=10`). What holds for an engine is, in this
order: a flag, what `--engine` or `[[engine]]` says, `--each` or `[each]`, `[limits]` and `[margins]` of the file,
the default. The resolved configuration is written as TOML that reads back as itself.

Nothing here imports numpy, asyncio or a game.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.engine.toml_text import read_toml
from hnefi.engine.wording import nearest, shorten

if TYPE_CHECKING:
    from .values import EngineSpec, SideLimits

NODES = 2000
"""What limits a move where nothing is said: fixed nodes repeat."""

MARGIN = 50
"""Milliseconds granted beyond a time per move."""

FILE_LIMIT = 1 << 20
NUMBER_LIMIT = 10**15
NUMBER_DIGITS = 20
ELO_BOUND = 200


class ConfigError(ValueError):
    """A configuration that cannot be used: names where it was said, the key, the value and what was expected."""


# Kinds of values


@dataclass(frozen=True, slots=True)
class Kind:
    """What values an option takes: `check` judges a TOML value, `read` a flag's text; ValueError says what is
    expected."""

    word: str
    check: Callable[[Any], Any]
    read: Callable[[str], Any]
    flag: bool = False
    fields: Mapping[str, Kind] | None = None
    open: bool = False


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("expected text")
    return value


def _whole(low: int, high: int = NUMBER_LIMIT) -> Kind:
    expected = f"expected a whole number of at least {low}" + (
        f", at most {high}" if high < NUMBER_LIMIT else ""
    )

    def check(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise ValueError(expected)
        return value

    def read(text: str) -> int:
        if len(text) > NUMBER_DIGITS or not re.fullmatch(r"[+-]?[0-9]+", text):
            raise ValueError(expected)
        return check(int(text))

    return Kind("N", check, read)


def _number(low: float, high: float, exclusive: bool = False) -> Kind:
    within = f"between {low:g} and {high:g}" if exclusive else f"from {low:g} to {high:g}"

    def check(value: Any) -> float:
        usable = type(value) in (int, float) and math.isfinite(value) and low <= value <= high
        if not usable or (exclusive and value in (low, high)):
            raise ValueError(f"expected a number {within}")
        return value  # type: ignore[no-any-return]

    def read(text: str) -> float:
        try:
            return check(float(text) if len(text) <= NUMBER_DIGITS else None)
        except ValueError:
            raise ValueError(f"expected a number {within}") from None

    return Kind("X", check, read)


def _choice(*words: str) -> Kind:
    def check(value: Any) -> str:
        if value not in words:
            raise ValueError(f"expected one of {', '.join(words)}")
        return str(value)

    return Kind("|".join(filter(None, words)), check, check)


def _check_flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("expected true or false")
    return value


def _read_flag(text: str) -> bool:
    if text.lower() not in ("true", "false", "on", "off"):
        raise ValueError("expected true or false")
    return text.lower() in ("true", "on")


def _list(word: str, split: Callable[[str], list[str]]) -> Kind:
    def check(value: Any) -> list[str]:
        if not isinstance(value, list):
            raise ValueError("expected a list of texts")
        return [_text(item) for item in value]

    def read(text: str) -> list[str]:
        return check(split(text))

    return Kind(word, check, read)


def _table(**fields: Kind) -> Kind:
    """A small table with known keys, as text `key=value,key=value`."""

    def check(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError(f"expected a table of {', '.join(fields)}")
        for key in value:
            if key not in fields:
                raise ValueError(
                    f"{shorten(key)}: expected one of {', '.join(fields)}{nearest(str(key), fields)}"
                )
        return {key: _inside(key, fields[key].check, item) for key, item in value.items()}

    def read(text: str) -> dict[str, Any]:
        words = pairs(text)
        unknown = [key for key in words if key not in fields]
        return (
            check(dict.fromkeys(unknown))
            if unknown
            else {key: _inside(key, fields[key].read, item) for key, item in words.items()}
        )

    return Kind("k=v,...", check, read, fields=fields)


def _inside(key: str, judge: Callable[[Any], Any], value: Any) -> Any:
    try:
        return judge(value)
    except ValueError as error:
        raise ValueError(f"{key} {shorten(value)}: {error}") from None


def _check_words(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("expected a table of names and texts")
    words = {}
    for name, item in value.items():
        if isinstance(item, bool):
            item = str(item).lower()
        if not isinstance(item, (str, int, float)):
            raise ValueError(f"{name} {shorten(item)}: expected text, a number, true or false")
        words[name] = _text(str(item))
    return words


def pairs(text: str) -> dict[str, str]:
    """The keys and values of `key=value,key=value`; a comma in a value is written `\\,`. ValueError otherwise."""
    found: dict[str, str] = {}
    for word in re.split(r"(?<!\\),", text):
        key, equals, value = word.replace("\\,", ",").partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{shorten(word)}: expected key=value")
        found[key.strip()] = value
    return found


def parse_tc(text: str) -> tuple[int, int, int]:
    """Time and increment in ms and the moves of one period of `moves/time+inc`; time in seconds or minutes:seconds."""
    expected = "expected moves/time+increment in seconds, such as 40/60+0.6, 1+0.01 or 2:30+1"
    form = r"(?:([0-9]{1,4})/)?(?:([0-9]{1,5}):)?([0-9]{1,7}(?:\.[0-9]{1,6})?)(?:\+([0-9]{1,7}(?:\.[0-9]{1,6})?))?"
    found = re.fullmatch(form, text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(expected)
    moves, minutes, seconds, increment = found.groups()
    time = round((int(minutes or 0) * 60 + float(seconds)) * 1000)
    if time < 1 or (moves is not None and int(moves) < 1):
        raise ValueError(expected)
    return time, round(float(increment or 0) * 1000), int(moves or 0)


def _check_tc(value: Any) -> str:
    parse_tc(value)
    return str(value)


def parse_plies(text: str) -> tuple[int, int]:
    """The range of `4` or `2-8`, both ends included; ValueError otherwise."""
    found = re.fullmatch(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", text) if isinstance(text, str) else None
    if found is None or int(found[2] or found[1]) < int(found[1]) or int(found[2] or found[1]) > 100:
        raise ValueError("expected K or K-L, from 0 to 100")
    return int(found[1]), int(found[2] or found[1])


def _check_plies(value: Any) -> str:
    parse_plies(value)
    return str(value)


def parse_cores(text: str) -> tuple[int, ...]:
    """The cores of a list such as `0,2,4-7`; ValueError otherwise."""
    cores: list[int] = []
    for word in text.split(","):
        found = re.fullmatch(r"\s*([0-9]{1,4})(?:-([0-9]{1,4}))?\s*", word)
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise ValueError("expected auto, off or a list of cores such as 0,2,4-7")
        cores += range(int(found[1]), int(found[2] or found[1]) + 1)
    return tuple(dict.fromkeys(cores))


def _check_affinity(value: Any) -> str:
    if value not in ("auto", "off"):
        parse_cores(_text(value))
    return str(value)


def _check_positions(value: Any) -> str:
    if value != "final":
        _whole(1).read(str(value))
    return str(value)


def _check_pattern(value: Any) -> str:
    try:
        re.compile(_text(value))
    except (re.error, RecursionError) as error:
        raise ValueError(f"expected a regular expression: {error}") from None
    return str(value)


TEXT = Kind("TEXT", _text, _text)
FILE = Kind("FILE", _text, _text)
FLAG = Kind("", _check_flag, _read_flag, flag=True)
WORDS = Kind("k=v,...", _check_words, pairs, open=True)
COMMAS = _list("A,B,...", lambda text: [word.strip() for word in text.split(",") if word.strip()])
ARGUMENTS = _list("'A B'", shlex.split)
LINES = _list("'A;B'", lambda text: [line.strip() for line in text.split(";") if line.strip()])
TC = Kind("MOVES/TIME+INC", _check_tc, _check_tc)
SECONDS = _number(0.001, 1e6)
MILLISECONDS = _whole(0, 10**9)
PLIES = Kind("K-L", _check_plies, _check_plies)
LIMITS: dict[str, Kind] = {
    "tc": TC,
    "movetime": _whole(1, 10**9),
    "depth": _whole(1, 1000),
    "nodes": _whole(1),
}


# The table


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its group and key, what values it takes, what holds if it is not given, and a sentence about it."""

    group: str
    key: str
    kind: Kind
    default: Any
    help: str

    @property
    def flag(self) -> str:
        """The flag on the command line; empty for what only an engine can say of itself."""
        if self.group == "engine" and self.key in ("player", "cmd", "args", "name"):
            return ""
        prefix = f"{self.group}-" if self.group in PREFIXED else ""
        return f"--{prefix}{self.key}".replace("_", "-")


PREFIXED = ("openings", "adjudicate", "sprt", "rating")
"""Groups whose flags begin with their name."""

ENGINE = ("engine", "limits", "margins")
"""Groups whose keys an engine may have."""

GROUPS: dict[str, str] = {
    "run": "the run",
    "engine": "engines (flags hold for all of them)",
    "limits": "how long they think",
    "margins": "how long we wait",
    "openings": "openings",
    "adjudicate": "ending games early (all off by default)",
    "sprt": "sequential test (--sprt alone switches it on)",
    "rating": "rating table",
    "output": "output",
    "control": "control",
}

_CP = {"cp": _whole(1, 10**6), "moves": _whole(1, 1000)}

_ROWS: tuple[tuple[str, str, Kind, Any, str], ...] = (
    ("run", "name", TEXT, "", "what the run is called in tables and records"),
    ("run", "out", FILE, "", "the run's folder; it must not exist (default: arena-DATE-TIME)"),
    ("run", "format", _choice("match", "round-robin", "gauntlet"), None, "who meets whom (default: match for two)"),
    ("run", "challengers", _whole(1, 1000), 1, "gauntlet: the first so many engines meet all the others"),
    ("run", "variants", COMMAS, None, "the rule sets that are played (default: copenhagen, or the players' own)"),
    ("run", "rules", TEXT, "", "an OpenTafl rules string to be played instead of variants"),
    ("run", "pairs", _whole(1, 10**7), 100, "pairs of games for every meeting and variant"),
    ("run", "swap", FLAG, True, "play every opening with both sides; off: one game for each, no pair statistics"),
    ("run", "seed", _whole(0, 2**63), 1, "seed of openings, engines and resampling"),
    ("run", "concurrency", _whole(-1000, 1024), -1, "games at a time; 0: usable cores, -K: K fewer"),
    ("run", "affinity", Kind("auto|off|CORES", _check_affinity, _check_affinity), "auto", "pin slots to cores"),
    ("run", "oversubscribe", FLAG, False, "allow more engine threads than cores although clocks run"),
    ("run", "backend", _choice("", "loky", "dask", "ray"), "", "play jobs of whole pairs in other processes"),
    ("run", "jobs", _whole(0, 4096), 0, "processes of the backend; 0: as many as there are cores"),
    ("run", "wait", MILLISECONDS, 0, "ms between two games of a slot"),
    ("run", "scale_tc", _number(0, 1e12), 0, "reference nodes/s: times grow as this machine is slower"),
    ("engine", "player", TEXT, None, "a shipped player or a player's file"),
    ("engine", "cmd", TEXT, None, "a program (never through a shell)"),
    ("engine", "args", ARGUMENTS, [], "its arguments"),
    ("engine", "name", TEXT, None, "what it is called here (default: its own name, numbered)"),
    ("engine", "cwd", FILE, None, "the folder it runs in"),
    ("engine", "env", WORDS, {}, "environment variables, added to a clean copy"),
    ("engine", "stderr", FILE, None, "file that takes its standard error"),
    ("engine", "proto", _choice("auto", "uti", "uci", "ugi"), "auto", "the greeting it answers"),
    ("engine", "clock", _choice("", "movetime"), "", "movetime: it knows no clock and is sent a time per move"),
    ("engine", "letters", _choice("", "adk"), "", "adk: its piece letters in FENs"),
    ("engine", "options", WORDS, {}, "its options; in --engine and --each also option.NAME=VALUE"),
    ("engine", "init", LINES, [], "raw lines sent before isready"),
    ("engine", "restart", _choice("on", "off", "auto"), "auto", "new process: every game, never, after faults"),
    ("limits", "tc", TC, None, "clock in seconds: 40/60+0.6, 1+0.01, 2:30+1"),
    ("limits", "movetime", LIMITS["movetime"], None, "ms per move"),
    ("limits", "depth", LIMITS["depth"], None, "plies"),
    ("limits", "nodes", LIMITS["nodes"], None, f"nodes per move; {NODES} if nothing at all limits a move"),
    ("limits", "limits_a", _table(**LIMITS), {}, "other limits as attackers"),
    ("limits", "limits_d", _table(**LIMITS), {}, "other limits as defenders"),
    ("margins", "margin", MILLISECONDS, None, f"ms beyond the time (default: 0 with tc, {MARGIN} with movetime)"),
    ("margins", "move_timeout", SECONDS, 60, "seconds for a move that only nodes or depth limit"),
    ("margins", "start", SECONDS, 10, "seconds for the greeting"),
    ("margins", "ready", SECONDS, 60, "seconds for isready"),
    ("margins", "newgame", SECONDS, 60, "seconds for a new game"),
    ("margins", "quit", SECONDS, 0.5, "seconds for quit"),
    ("openings", "source", _choice("random", "file", "genfens", "start"), "random", "where openings come from"),
    ("openings", "file", FILE, None, "one FEN or move list a line, # comments; or game records (with cut)"),
    ("openings", "cut", _whole(0, 1000), 8, "plies taken of each recorded game"),
    ("openings", "engine", _whole(1, 1000), 1, "genfens: which engine of the list is asked"),
    ("openings", "order", _choice("given", "shuffled"), "given", "order of a file's openings"),
    ("openings", "first", _whole(1, 10**7), 1, "the first opening that is played, counted from 1"),
    ("openings", "plies", PLIES, "2-8", "length of random openings"),
    ("openings", "count", _whole(0, 10**7), 0, "how many; 0: as many as are needed"),
    ("openings", "seed", _whole(0, 2**63), None, "seed of the openings (default: the run's)"),
    ("openings", "max_eval", _whole(0, 10**6), 300, "cp by which a random opening may favour one side"),
    ("openings", "eval_by", TEXT, "default", "the player whose evaluation judges random openings"),
    ("openings", "repeat", _whole(1, 10**6), 1, "pairs per opening; more than 1 only helps engines that vary"),
    ("adjudicate", "resign", _table(**_CP), {}, "cp and moves: both engines agree that one side has lost"),
    ("adjudicate", "draw", _table(**_CP, after=_whole(0, 10**6), no_capture=_whole(0, 10**6)), {},
     "cp, moves, after, no_capture: both engines see no winner"),
    ("adjudicate", "mates", FLAG, False, "both engines announce the same forced win"),
    ("adjudicate", "max_plies", _whole(0, 10**6), 0, "a draw after so many plies; 0: never"),
    ("sprt", "elo0", _number(-10_000, 10_000), 0, "strength difference of H0"),
    ("sprt", "elo1", _number(-10_000, 10_000), 10, "strength difference of H1"),
    ("sprt", "alpha", _number(0, 1, exclusive=True), 0.05, "chance to accept H1 although H0 holds"),
    ("sprt", "beta", _number(0, 1, exclusive=True), 0.05, "chance to accept H0 although H1 holds"),
    ("sprt", "model", _choice("normalized", "logistic"), "normalized", "the scale of elo0 and elo1"),
    ("sprt", "unit", _choice("pair", "game", "match"), "pair", "what is counted"),
    ("sprt", "max_pairs", _whole(0, 10**7), 0, "inconclusive after so many; 0: three times the expected"),
    ("rating", "anchor", _table(name=TEXT, elo=_number(-10_000, 10_000)), {}, "a known rating"),
    ("rating", "side", FLAG, True, "fit the attackers' advantage of each variant"),
    ("rating", "interval", _number(0, 1, exclusive=True), 0.95, "width of intervals"),
    ("rating", "bootstrap", _whole(0, 10**6), 1000, "resamplings for the errors"),
    ("rating", "every", _whole(1, 10**7), 10, "pairs between two reports"),
    ("output", "records", FILE, None, "game records"),
    ("output", "jsonl", FILE, None, "one JSON object per game"),
    ("output", "positions", Kind("final|K", _check_positions, _check_positions), None, "positions with outcome"),
    ("output", "keep_lines", Kind("REGEX", _check_pattern, _check_pattern), None, "engine lines to be stored"),
    ("output", "live", FLAG, False, "write live.jsonl for viewers"),
    ("output", "plots", FLAG, False, "draw ratings, cross table and score over time"),
    ("output", "quiet", FLAG, False, "only the final tables"),
    ("output", "plain", FLAG, False, "plain lines, no live line, no colour"),
    ("output", "json", FLAG, False, "only the summary, as JSON"),
    ("control", "dry_run", FLAG, False, "start nothing; print what would be played"),
    ("control", "fail_on_fault", FLAG, False, "stop at the first engine fault (exit 3)"),
    ("control", "finish_games", FLAG, False, "Ctrl-C lets running games end"),
    ("control", "sprt_exit", FLAG, False, "exit 0 for H1, 10 for H0, 11 for inconclusive"),
    ("control", "force", FLAG, False, "resume although something is different; marks the run"),
)  # fmt: skip
TABLE: tuple[Option, ...] = tuple(Option(*row) for row in _ROWS)

BY_KEY: dict[tuple[str, str], Option] = {(option.group, option.key): option for option in TABLE}


def keys(*groups: str) -> dict[str, Option]:
    """The options of some groups by their keys."""
    return {option.key: option for option in TABLE if option.group in groups}


# The configuration


@dataclass(frozen=True, slots=True)
class Config:
    """What is to be played: `tables` hold every option of every group but the engines' own, `engines` what each of
    them is and may; values are those of TOML. `sprt` is empty where nothing is tested. `unnamed` are the indices of
    engines that are to be called what they call themselves. `notes` are for people."""

    tables: Mapping[str, Mapping[str, Any]]
    engines: tuple[Mapping[str, Any], ...]
    unnamed: tuple[int, ...] = field(default=(), compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __getitem__(self, path: str) -> Any:
        group, _, key = path.partition(".")
        return self.tables[group][key]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(engine["name"] for engine in self.engines)

    @property
    def testing(self) -> bool:
        """Whether a sequential test is run."""
        return bool(self.tables["sprt"])


Document = dict[str, Any]
"""Tables as TOML gives them, every value already judged: `engine` is a list, the others are tables."""


def read_file(path: Path) -> Document:
    """The options in a TOML file; ConfigError names file, key, value and what was expected."""
    try:
        with path.open("rb") as stream:
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
    """A configuration's tables with every value judged; paths become absolute, seen from `folder`."""
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
    """Files seen from where they were named."""
    if option.kind is FILE and value:
        return str(Path(os.path.abspath(folder / Path(value).expanduser())))  # noqa: PTH100 - keeps links as named
    local = option.key == "cmd" and os.sep in value
    if local or (option.key == "player" and value.endswith(".toml")):
        return str(Path(os.path.abspath(folder / Path(value).expanduser())))  # noqa: PTH100
    return value


def read_engine(text: str, where: str, folder: Path) -> dict[str, Any]:
    """What `--engine` or `--each` says: `key=value,...` with `option.X=`, `env.X=` and `limits_a.X=` for tables."""
    return _read_words(text, keys(*ENGINE), where, folder)


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


def parser() -> argparse.ArgumentParser:
    """The command line of a run, made from the table."""
    made = argparse.ArgumentParser(
        prog="hnefi arena",
        description="Engines play each other, pair by pair with sides swapped; statistics say which one is stronger"
        " and which side is easier.\n\n"
        "  hnefi arena [PLAYER ...] [flags]   play a run (flags below)\n"
        "  hnefi arena resume RUN             go on with an interrupted run\n"
        "  hnefi arena report RUN             tables, exports and plots of a run, anew\n"
        "  hnefi arena rate RUN ...           one rating table of several runs\n"
        "  hnefi arena openings ...           list openings\n"
        "  hnefi arena check ENGINE           whether an engine keeps the protocol\n"
        "  hnefi arena stats ...              the statistics of bare counts",
        epilog="--engine and --each take player, cmd, args, name (of one engine) and every key of the groups engines,\n"
        "how long they think and how long we wait; with _ for -, option.NAME=VALUE, env.NAME=VALUE, limits_a.KEY=VALUE"
        "\n\n"
        "precedence: flag > --engine or [[engine]] > --each or [each] > [limits] and [margins] of the file >"
        " default\n"
        "exit: 0 complete, 1 interrupted (resumable), 2 bad configuration, 3 engine faults, 4 storage failed;\n"
        "      with --sprt-exit 0 H1, 10 H0, 11 inconclusive\n\n"
        "examples:\n"
        "  hnefi arena default random-blind --variants brandubh --pairs 20 --nodes 500 --seed 7\n"
        "  hnefi arena --engine name=mine,cmd=./mybot,proto=uci,tc=10+0.1,option.Hash=64 --engine player=default"
        " --each tc=5+0.05\n"
        "  hnefi arena default default --engine player=random-blind --format round-robin --dry-run\n"
        "  hnefi arena a.toml b.toml --sprt elo0=0,elo1=20 --nodes 5000\n"
        "  hnefi arena --config cup.toml --pairs 500\n",
        formatter_class=Formatter,
        allow_abbrev=False,
        usage="hnefi arena [PLAYER ...] [--engine k=v,...] [--each k=v,...] [--config FILE] [flags]",
    )
    made.add_argument("players", nargs="*", metavar="PLAYER", help="shipped players, or players' files")
    made.add_argument("--config", metavar="FILE", help="a configuration (TOML); flags override it")
    made.add_argument(
        "--engine", action="append", default=[], metavar="k=v,...", help="one engine; repeat for each"
    )
    made.add_argument(
        "--each", action="append", default=[], metavar="k=v,...", help="defaults of all engines"
    )
    add_flags(made, GROUPS)
    return made


def add_flags(made: argparse.ArgumentParser, groups: Iterable[str]) -> None:
    """The flags of some groups; what they are given stays text until it is judged."""
    for name in groups:
        group = made.add_argument_group(GROUPS[name])
        if name in PREFIXED:
            group.add_argument(
                f"--{name}", nargs="?", const="", metavar="k=v,...", dest=f"{name}:", help="several of these"
            )
        for option in TABLE:
            if option.group == name and option.flag:
                _add_flag(group, option)


def _add_flag(group: Any, option: Option) -> None:
    shown = option.default
    text = option.help
    if (
        shown not in (None, "", {}, [])
        and "(default" not in text
        and not (option.kind.flag and shown is False)
    ):
        text += f" (default: {str(shown).lower() if isinstance(shown, bool) else shown})"
    text = text.replace("%", "%%")
    dest = f"{option.group}:{option.key}"
    if option.kind.flag:
        group.add_argument(option.flag, action=_OnOff, dest=dest, help=text)
    else:
        group.add_argument(option.flag, metavar=option.kind.word, dest=dest, help=text)


class _OnOff(argparse.BooleanOptionalAction):
    """`--flag` and `--no-flag`, shown as one in the help."""

    def format_usage(self) -> str:
        return self.option_strings[0]


class Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=110)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if isinstance(action, _OnOff):
            return action.option_strings[0].replace("--", "--[no-]", 1)
        return super()._format_action_invocation(action)


def from_arguments(arguments: Sequence[str], folder: Path | None = None) -> Config:
    """The configuration that a command line asks for; ConfigError otherwise (argparse ends the program for --help)."""
    made = parser()
    parsed, unknown = made.parse_known_args(arguments)
    if unknown:
        raise ConfigError(unknown_flag(unknown[0], made))
    given = flags_of(parsed, Path.cwd() if folder is None else folder)
    base = read_file(Path(parsed.config)) if parsed.config else {}
    here = Path.cwd() if folder is None else folder
    engines: list[dict[str, Any]] = [{"player": player} for player in parsed.players]
    engines = [_judge_table(engine, "engine", "PLAYER", here) for engine in engines]
    engines += [read_engine(text, "--engine", here) for text in parsed.engine]
    each: dict[str, Any] = dict(base.get("each", {}))
    for text in parsed.each:
        each = _over(each, read_engine(text, "--each", here))
    return resolve({**base, "each": each, "engine": engines or base.get("engine", [])}, given)


def unknown_flag(flag: str, made: argparse.ArgumentParser) -> str:
    """The complaint about a flag that does not exist."""
    word = flag.partition("=")[0]
    known = [text for action in made._actions for text in action.option_strings]
    return f"{shorten(word)}: no such flag{nearest(word, known) or '; see hnefi arena --help'}"


def flags_of(parsed: argparse.Namespace, folder: Path) -> Document:
    """The options that flags named, by group, every value judged."""
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


# Resolving


def resolve(base: Document, flags: Document) -> Config:
    """One configuration of a file's tables and a command line's flags; ConfigError if it cannot be played."""
    notes: list[str] = []
    tables = {
        group: {key: option.default for key, option in keys(group).items()}
        | base.get(group, {})
        | flags.get(group, {})
        for group in GROUPS
        if group not in ENGINE
    }
    if "sprt" not in base and "sprt" not in flags:
        tables["sprt"] = {}
    general = _over(base.get("limits", {}), base.get("margins", {}))
    each = _over(general, base.get("each", {}))
    flagged = _over(_over(flags.get("engine", {}), flags.get("limits", {})), flags.get("margins", {}))
    if "name" in each:
        raise ConfigError(f"each.name {shorten(each['name'])}: expected a name for each engine of its own")
    engines = [_engine(_over(_over(each, engine), flagged)) for engine in base.get("engine", [])]
    unnamed = tuple(
        index for index, engine in enumerate(engines) if "cmd" in engine and not engine.get("name")
    )
    for engine in engines:
        if not any(engine.get(key) for key in (*LIMITS, "limits_a", "limits_d")):
            engine["nodes"] = NODES
            note = f"no limit was given: nodes = {NODES} for every move, because fixed nodes repeat"
            notes += [note] * (note not in notes)
    _name(engines)
    if not 2 <= len(engines) <= 1000:
        raise ConfigError(
            f"engines: {len(engines)} given: expected at least two (players by name, or --engine)"
        )
    run = tables["run"]
    run["format"] = run["format"] or ("match" if len(engines) == 2 else "round-robin")
    _settle_variants(run, engines)
    _judge_whole(tables, engines)
    if tables["openings"]["seed"] is None:
        tables["openings"]["seed"] = run["seed"]
    return Config(tables, tuple(engines), unnamed, tuple(notes))


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` laid over `below`; tables inside are merged key by key."""
    merged = dict(below)
    for key, value in above.items():
        merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    return merged


def _engine(given: dict[str, Any]) -> dict[str, Any]:
    """An engine's table with every default in its place; ConfigError if it could not be started."""
    said = given.get("name") or given.get("player") or given.get("cmd")
    if ("player" in given) == ("cmd" in given):
        raise ConfigError(f"engine {shorten(said)}: expected player or cmd, one of them")
    if "player" in given and given.get("args"):
        raise ConfigError(
            f"engine {shorten(said)}: args {shorten(given['args'])}: expected none with a player"
        )
    defaults = {key: option.default for key, option in keys(*ENGINE).items() if option.default is not None}
    engine = defaults | given
    if "player" in engine:
        _judge_player(engine)
    else:
        _judge_command(engine)
    return engine


def _judge_player(engine: Mapping[str, Any]) -> None:
    from hnefi import players
    from hnefi.engine import options

    word = engine["player"]
    try:
        players.load(word)
    except players.PlayerError as error:
        hint = nearest(word, players.names()) if not word.endswith(".toml") else ""
        raise ConfigError(f"player {shorten(word)}: {error}{hint}") from None
    known = [option.name for option in options.TABLE]
    for name, value in engine["options"].items():
        option = options.find(name)
        if option is None:
            raise ConfigError(
                f"player {word}: option {shorten(name)} {shorten(value)}: expected one of {', '.join(known)}"
                + nearest(name, map(str.lower, known))
            )
        try:
            option.read(value)
        except ValueError as error:
            raise ConfigError(f"player {word}: option {option.name} {shorten(value)}: {error}") from None


def _judge_command(engine: Mapping[str, Any]) -> None:
    command = engine["cmd"]
    place = Path(command)
    if os.sep not in command:
        if shutil.which(command) is None:
            raise ConfigError(
                f"cmd {shorten(command)}: expected a program on the search path, or a path to one"
            )
    elif not place.is_file():
        raise ConfigError(f"cmd {shorten(command)}: there is no such file: expected a program")
    elif not os.access(place, os.X_OK):
        raise ConfigError(f"cmd {shorten(command)}: the file is not executable: expected a program")
    cwd = engine.get("cwd")
    if cwd and not Path(cwd).is_dir():
        raise ConfigError(f"cwd {shorten(cwd)}: expected a folder")


def _name(engines: list[dict[str, Any]]) -> None:
    """Give every engine a name of its own; those that chose one keep it."""
    chosen = [engine["name"] for engine in engines if engine.get("name")]
    for name in chosen:
        if chosen.count(name) > 1:
            raise ConfigError(
                f"engine name {shorten(name)}: given {chosen.count(name)} times: expected unique names"
            )
        if not name.isprintable() or len(name) > 60:
            raise ConfigError(f"engine name {shorten(name)}: expected at most 60 printable characters")
    taken = set(chosen)
    for engine in engines:
        if not engine.get("name"):
            engine["name"] = unique(
                Path(engine.get("player") or engine["cmd"]).name.removesuffix(".toml"), taken
            )
            taken.add(engine["name"])


def unique(name: str, taken: Iterable[str]) -> str:
    """`name`, or `name 2`, `name 3` and so on if others are called so."""
    known = set(taken)
    number = 1
    while (tried := name if number == 1 else f"{name} {number}") in known:
        number += 1
    return tried


def named(config: Config, ids: Sequence[str]) -> Config:
    """The configuration with every unnamed engine called what it calls itself, numbered."""
    engines = [dict(engine) for engine in config.engines]
    taken = {engine["name"] for index, engine in enumerate(engines) if index not in config.unnamed}
    for index in config.unnamed:
        called = "".join(letter for letter in ids[index] if letter.isprintable())[:50].strip()
        engines[index]["name"] = unique(called or engines[index]["name"], taken)
        taken.add(engines[index]["name"])
    return Config(config.tables, tuple(engines), (), config.notes)


def _settle_variants(run: dict[str, Any], engines: Sequence[Mapping[str, Any]]) -> None:
    """Which rule sets are played: those that were named, else what the players are made for."""
    from hnefi import players
    from hnefi.engine.catalogue import DEFAULT
    from hnefi.engine.game import VariantError
    from hnefi.engine.games import find

    own = {}
    for engine in engines:
        variant = players.load(engine["player"]).variant if "player" in engine else None
        if variant:
            own[engine["name"]] = variant
    if run["rules"]:
        if run["variants"]:
            raise ConfigError(f"run.rules {shorten(run['rules'])}: expected rules or variants, not both")
        from hnefi.engine.otn import OtnError, import_rules

        try:
            _, problems = import_rules(run["rules"])
        except OtnError as error:
            raise ConfigError(f"run.rules {shorten(run['rules'])}: {error}") from None
        if problems:
            raise ConfigError(f"run.rules: {problems[0]}")
        run["variants"] = []
        return
    if not run["variants"]:
        run["variants"] = list(dict.fromkeys(own.values())) or [DEFAULT]
    try:
        named = [find(name).name for name in run["variants"]]
    except VariantError as error:
        raise ConfigError(f"run.variants {shorten(run['variants'])}: {error}") from None
    run["variants"] = list(dict.fromkeys(named))
    for name, variant in own.items():
        for played in named:
            if find(variant).name != played:
                raise ConfigError(
                    f"run.variants {shorten(played)}: engine {shorten(name)} plays only {variant}: expected that"
                )


def _judge_whole(tables: Mapping[str, Mapping[str, Any]], engines: Sequence[Mapping[str, Any]]) -> None:
    """What one option says about another."""
    run, sprt, openings = tables["run"], tables["sprt"], tables["openings"]
    if run["format"] == "match" and len(engines) != 2:
        raise ConfigError(f"run.format 'match': {len(engines)} engines given: expected two")
    if run["format"] == "gauntlet" and run["challengers"] >= len(engines):
        raise ConfigError(
            f"run.challengers {run['challengers']}: expected fewer than the {len(engines)} engines"
        )
    if sprt:
        _judge_test(run, sprt, len(engines))
    if (openings["source"] == "file") != bool(openings["file"]):
        raise ConfigError(f"openings.file {openings['file']!r}: expected a file exactly if source is file")
    if openings["engine"] > len(engines):
        raise ConfigError(f"openings.engine {openings['engine']}: expected at most {len(engines)}")
    if openings["eval_by"] != "default":
        raise ConfigError(f"openings.eval_by {shorten(openings['eval_by'])}: expected default")
    anchor = tables["rating"]["anchor"]
    names = [engine["name"] for engine in engines]
    if anchor and (set(anchor) != {"name", "elo"} or anchor["name"] not in names):
        raise ConfigError(
            f"rating.anchor {shorten(anchor)}: expected elo and the name of one of {', '.join(names)}"
        )
    for name, needed in (("resign", ("cp", "moves")), ("draw", ("cp", "moves"))):
        rule = tables["adjudicate"][name]
        if rule and not all(key in rule for key in needed):
            raise ConfigError(f"adjudicate.{name} {shorten(rule)}: expected {' and '.join(needed)}")


def _judge_test(run: Mapping[str, Any], sprt: Mapping[str, Any], engines: int) -> None:
    if engines != 2:
        raise ConfigError(f"sprt: {engines} engines given: expected two")
    if len(run["variants"]) > 1:
        raise ConfigError(f"sprt: {len(run['variants'])} variants given: expected one")
    if not sprt["elo0"] < sprt["elo1"]:
        raise ConfigError(f"sprt.elo0 {sprt['elo0']}: expected less than elo1, {sprt['elo1']}")
    if sprt["alpha"] + sprt["beta"] >= 1:
        raise ConfigError(
            f"sprt.alpha {sprt['alpha']}: expected alpha + beta below 1, beta is {sprt['beta']}"
        )
    if sprt["model"] == "normalized":
        for key in ("elo0", "elo1"):
            if abs(sprt[key]) > ELO_BOUND:
                raise ConfigError(
                    f"sprt.{key} {sprt[key]}: expected {-ELO_BOUND} to {ELO_BOUND} when normalized"
                )
    if not run["swap"] and sprt["unit"] != "game":
        raise ConfigError(f"sprt.unit {sprt['unit']!r}: expected game, because swap is off")


# Engines


def specs(config: Config, scale: float = 1.0) -> tuple[EngineSpec, ...]:
    """The engines as the slots start them; times are multiplied by `scale`."""
    return tuple(_spec(engine, scale) for engine in config.engines)


def _spec(engine: Mapping[str, Any], scale: float) -> EngineSpec:
    from .values import EngineSpec

    sides = (_limits(engine, "limits_a", scale), _limits(engine, "limits_d", scale))
    margin = engine.get("margin")
    if margin is None:
        by_move = any(side.movetime is not None and side.time is None for side in sides)
        margin = MARGIN if by_move else 0
    if "player" in engine:
        from hnefi.protocol.client import own_command

        command = own_command("--player", engine["player"])
    else:
        command = [engine["cmd"], *engine["args"]]
    return EngineSpec(
        name=engine["name"],
        command=tuple(command),
        player=engine.get("player", ""),
        proto="uti" if "player" in engine else engine["proto"],
        options=tuple(engine["options"].items()),
        init=tuple(engine["init"]),
        limits=sides,
        margin=margin,
        move_timeout=float(engine["move_timeout"]),
        start=float(engine["start"]),
        ready=float(engine["ready"]),
        new_game=float(engine["newgame"]),
        quit=float(engine["quit"]),
        cwd=engine.get("cwd"),
        env=tuple(engine["env"].items()),
        stderr=engine.get("stderr"),
        clock=engine["clock"],
        letters=engine["letters"],
        restart=engine["restart"],
    )


def _limits(engine: Mapping[str, Any], side: str, scale: float) -> SideLimits:
    from .values import SideLimits

    given = {key: engine[key] for key in LIMITS if engine.get(key) is not None} | engine[side]
    time: int | None = None
    increment = moves = 0
    if "tc" in given:
        time, increment, moves = parse_tc(given["tc"])
        time, increment = max(1, round(time * scale)), round(increment * scale)
    movetime = given.get("movetime")
    if movetime is not None:
        movetime = max(1, round(movetime * scale))
    return SideLimits(time, increment, moves, movetime, given.get("depth"), given.get("nodes"))


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
