"""Every option of the arena in one table, the values that it takes, and the configuration that they make up.

An option has a TOML key `a_b` in its group and a flag `--a-b`; groups in `PREFIXED` put their name before the flag
(`--openings-plies`) and can be given as one text (`--sprt elo0=0,elo1=10`).

    reading (files, flags) -> Document -> resolve -> Config

Nothing in these modules imports numpy, asyncio or a game before it is needed.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hnefi.engine.wording import nearest, shorten

if TYPE_CHECKING:
    from ..common.sprt import Sprt

# What values options take


NUMBER_LIMIT = 10**15
NUMBER_DIGITS = 20


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


def whole(low: int, high: int = NUMBER_LIMIT) -> Kind:
    """A whole number from `low` to `high`."""
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


def number(low: float, high: float, exclusive: bool = False) -> Kind:
    """A number from `low` to `high`, both ends left out if `exclusive`."""
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


def choice(*words: str) -> Kind:
    """One of some words."""

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


def table(**fields: Kind) -> Kind:
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
        whole(1).read(str(value))
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
SECONDS = number(0.001, 1e6)
MILLISECONDS = whole(0, 10**9)
PLIES = Kind("K-L", _check_plies, _check_plies)
LIMITS: dict[str, Kind] = {
    "tc": TC,
    "movetime": whole(1, 10**9),
    "depth": whole(1, 1000),
    "nodes": whole(1),
}
AFFINITY = Kind("auto|off|CORES", _check_affinity, _check_affinity)
POSITIONS = Kind("final|K", _check_positions, _check_positions)
PATTERN = Kind("REGEX", _check_pattern, _check_pattern)


NODES = 2000
"""What limits a move where nothing is said: fixed nodes repeat."""

MARGIN = 50
"""Milliseconds granted beyond a time per move."""


class ConfigError(ValueError):
    """A configuration that cannot be used: names where it was said, the key, the value and what was expected."""


class EnginesFailed(ConfigError):
    """Engines that are not ours ended, or did not answer, before any game: no fault of the configuration."""


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
        key = "variant" if self.key == "variants" else self.key
        return f"--{prefix}{key}".replace("_", "-")


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

_CP = {"cp": whole(1, 10**6), "moves": whole(1, 1000)}

_ROWS: tuple[tuple[str, str, Kind, Any, str], ...] = (
    ("run", "name", TEXT, "", "name of the run in tables and records"),
    ("run", "out", FILE, "", "the run's folder; it must not exist (default: arena-DATE-TIME)"),
    ("run", "format", choice("match", "round-robin", "gauntlet", "ladder"), None,
     "who plays whom (default: match for two engines, else round-robin)"),
    ("run", "challengers", whole(1, 1000), 1, "gauntlet: the first N engines meet all the others"),
    ("run", "variants", COMMAS, None, "rule sets to play (default: those the players are made for, else copenhagen)"),
    ("run", "rules", TEXT, "", "an OpenTafl rules string to play by, instead of variants"),
    ("run", "pairs", whole(1, 10**7), 100, "pairs of games for every meeting and variant"),
    ("run", "others", whole(0, 10**7), None, "ladder: pairs for engines that are not neighbours (default: 1)"),
    ("run", "swap", FLAG, True, "play every opening with both sides; off: one game for each, no pair statistics"),
    ("run", "seed", whole(0, 2**63), 1, "seed of openings, engines and resampling"),
    ("run", "concurrency", whole(-1000, 1024), -1, "games at a time; 0: usable cores, -K: K fewer"),
    ("run", "affinity", AFFINITY, "auto", "pin slots to cores"),
    ("run", "oversubscribe", FLAG, False, "allow more engine threads than cores although clocks run"),
    ("run", "inside", FLAG, False, "play our own players without engine processes: nodes or depth only"),
    ("run", "backend", choice("", "loky", "dask", "ray"), "", "play in other processes, in jobs of whole pairs"),
    ("run", "jobs", whole(0, 4096), 0, "processes of the backend; 0: as many as there are cores"),
    ("run", "cluster", TEXT, "", "address of a running dask or ray cluster (default: workers on this machine)"),
    ("run", "wait", MILLISECONDS, 0, "ms between two games of a slot"),
    ("run", "scale_tc", number(0, 1e12), 0,
     "nodes/s of a reference machine: on a slower one all times grow in proportion"),
    ("engine", "player", TEXT, None, "a shipped player, a player's file, or one of `hnefi engines`"),
    ("engine", "cmd", TEXT, None, "a program, or a command line (never through a shell)"),
    ("engine", "args", ARGUMENTS, [], "its arguments"),
    ("engine", "name", TEXT, None, "what it is called here (default: its own name, numbered)"),
    ("engine", "cwd", FILE, None, "the folder it runs in"),
    ("engine", "env", WORDS, {}, "environment variables, added to a clean copy"),
    ("engine", "stderr", FILE, None, "file that takes its standard error"),
    ("engine", "proto", choice("auto", "uti", "uci", "ugi"), "auto", "the protocol it speaks"),
    ("engine", "clock", choice("", "movetime"), "",
     "movetime: it does not understand clocks and is sent a time per move"),
    ("engine", "letters", choice("", "adk"), "", "adk: its FENs call the men a and d, the king k"),
    ("engine", "options", WORDS, {}, "its options; in --engine and --each also option.NAME=VALUE"),
    ("engine", "init", LINES, [], "raw lines sent before isready"),
    ("engine", "restart", choice("on", "off", "auto"), "auto", "new process: every game, never, after faults"),
    ("limits", "tc", TC, None, "clock in seconds: 40/60+0.6, 1+0.01, 2:30+1"),
    ("limits", "movetime", LIMITS["movetime"], None, "ms per move"),
    ("limits", "depth", LIMITS["depth"], None, "plies"),
    ("limits", "nodes", LIMITS["nodes"], None, f"nodes per move (without any limit: the player's own, or {NODES})"),
    ("limits", "limits_a", table(**LIMITS), {}, "other limits as attackers"),
    ("limits", "limits_d", table(**LIMITS), {}, "other limits as defenders"),
    ("margins",
     "margin", MILLISECONDS, None, f"ms of grace beyond the time (default: 0 with tc, {MARGIN} with movetime)"),
    ("margins", "move_timeout", SECONDS, 60, "seconds for a move that only nodes or depth limit"),
    ("margins", "start", SECONDS, 10, "seconds for the greeting"),
    ("margins", "ready", SECONDS, 60, "seconds for isready"),
    ("margins", "newgame", SECONDS, 60, "seconds for a new game"),
    ("margins", "quit", SECONDS, 0.5, "seconds for quit"),
    ("openings", "source", choice("random", "file", "genfens", "start"), "random", "where openings come from"),
    ("openings", "file", FILE, None, "one FEN or move list a line, # comments; or game records (with cut)"),
    ("openings", "cut", whole(0, 1000), 8, "plies taken from each recorded game"),
    ("openings", "engine", whole(1, 1000), 1, "genfens: which engine of the list is asked"),
    ("openings", "order", choice("given", "shuffled"), "given", "order of a file's openings"),
    ("openings", "first", whole(1, 10**7), 1, "the first opening that is played, counted from 1"),
    ("openings", "plies", PLIES, "2-8", "length of random openings"),
    ("openings", "count", whole(0, 10**7), 0, "how many; 0: as many as are needed"),
    ("openings", "seed", whole(0, 2**63), None, "seed of the openings (default: the run's)"),
    ("openings", "max_eval", whole(0, 10**6), 300, "cp by which a random opening's value may differ from the start's"),
    ("openings", "eval_by", TEXT, "default", "the player who judges random openings"),
    ("openings", "repeat", whole(1, 10**6), 1, "pairs per opening; more than 1 only helps engines that vary"),
    ("adjudicate", "resign", table(**_CP), {}, "cp and moves: both engines agree that one side has lost"),
    ("adjudicate", "draw", table(**_CP, after=whole(0, 10**6), no_capture=whole(0, 10**6)), {},
     "cp, moves, after, no_capture: both engines see no winner"),
    ("adjudicate", "mates", FLAG, False, "both engines announce the same forced win"),
    ("adjudicate", "oracle", FILE, None, "a file of solved positions: where one is reached, the game is over"),
    ("adjudicate", "max_plies", whole(0, 10**6), 0, "a draw after N plies; 0: never"),
    ("sprt", "elo0", number(-10_000, 10_000), 0, "strength difference of H0"),
    ("sprt", "elo1", number(-10_000, 10_000), 10, "strength difference of H1"),
    ("sprt", "alpha", number(0, 1, exclusive=True), 0.05, "chance to accept H1 although H0 holds"),
    ("sprt", "beta", number(0, 1, exclusive=True), 0.05, "chance to accept H0 although H1 holds"),
    ("sprt", "model", choice("normalized", "logistic"), "normalized", "the scale of elo0 and elo1"),
    ("sprt", "unit", choice("pair", "game", "match"), "pair", "what is counted"),
    ("sprt", "max_pairs", whole(0, 10**7), 0, "inconclusive after N pairs; 0: three times the expected number"),
    ("sprt", "siegmund", FLAG, False,
     "move the bounds in by the measured overshoot: fewer pairs at the same error rates"),
    ("rating", "anchor", table(name=TEXT, elo=number(-10_000, 10_000)), {}, "a known rating"),
    ("rating", "side", FLAG, True, "fit the attackers' advantage of each variant"),
    ("rating", "interval", number(0, 1, exclusive=True), 0.95, "width of intervals"),
    ("rating", "bootstrap", whole(0, 10**6), 1000, "resamplings for the errors"),
    ("rating", "every", whole(1, 10**7), 10, "pairs between two reports"),
    ("output", "records", FILE, None, "game records"),
    ("output", "jsonl", FILE, None, "one JSON object per game"),
    ("output", "positions", POSITIONS, None, "positions with the outcome of their game: the final one, or every K-th"),
    ("output", "keep_lines", PATTERN, None, "store the engines' lines that match"),
    ("output", "live", FLAG, False, "write live.jsonl for viewers"),
    ("output", "plots", FLAG, False, "draw ratings, cross table and score over time"),
    ("output", "traffic", FLAG, False, "keep every line exchanged, a file for each game"),
    ("output", "log", choice("off", "error", "warning", "info", "debug"), "warning",
     "messages about the arena itself, in arena.log and on standard error"),
    ("output", "quiet", FLAG, False, "only the final tables"),
    ("output", "plain", FLAG, False, "plain lines in ASCII, no live line, no colour"),
    ("output", "json", FLAG, False, "only the summary, as JSON"),
    ("control", "dry_run", FLAG, False, "start nothing; print what would be played"),
    ("control", "fail_on_fault", FLAG, False, "stop at the first engine fault (exit 3)"),
    ("control", "cross_check", POSITIONS, None,
     "compare the final (or every K-th) position with that of the engines, where they can be asked"),
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
        """What the engines are called, in their order."""
        return tuple(engine["name"] for engine in self.engines)

    @property
    def test(self) -> Sprt | None:
        """The sequential test, if there is one."""
        from ..common.sprt import Sprt

        table = {key: value for key, value in self.tables["sprt"].items() if key != "max_pairs"}
        return Sprt(**table) if table else None


Document = dict[str, Any]
"""Tables as TOML gives them, every value already judged: `engine` is a list, the others are tables."""
