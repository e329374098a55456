"""Players: who chooses the moves, as data. One TOML file each.

description = "One sentence."
algorithm = "minimax"       # a word of the option Algorithm
evaluator = "simple"        # by name, or a file beside this one: "net.safetensors"
game = "tafl"               # only if it plays no other
variant = "copenhagen"      # only if it plays no other; a list if it plays several, its usual one first

[limits]                    # hold for every search: depth, nodes, mate, movetime (milliseconds)
depth = 2

[options]                   # options of the search, by the names of the greeting
Wins = "flat"

[rating]                    # as measured, not as hoped
elo = 1180
error = 25                  # half of the 95 % interval
source = "hnefi arena mine simple --pairs 400, seed 1; simple = 1000"

Reading one is cheap: a file of weights is opened when somebody searches with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hnefi.engine import options
from hnefi.engine.catalogue import GAMES
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.regular import open_regular
from hnefi.engine.search.types import Limits
from hnefi.engine.toml_text import read_toml
from hnefi.engine.wording import nearest

FOLDER = Path(__file__).parent
SUFFIX = ".toml"
_LIMITS = ("depth", "nodes", "mate", "movetime")
_KEYS = ("description", "algorithm", "evaluator", "game", "variant", "limits", "options", "rating")
_RATING = ("elo", "error", "source")
_ELO_LIMIT = 10_000
_NUMBER_LIMIT = 10**15
_FILE_LIMIT = 64 * 1024


class PlayerError(ValueError):
    """A player that cannot be found or read: names the file, the key, the value and what was expected."""


@dataclass(frozen=True, slots=True)
class Rating:
    """How strong a player was found to be: Elo, half of the 95 % interval, and what was played to know it."""

    elo: float
    error: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Player:
    """How somebody plays: the search algorithm, the evaluator, and the limits that hold for every search.

    `evaluator` is a name, or the path of a file that has not been opened; `game` and `variants` are what it plays,
    if it does not play everything.
    """

    name: str
    description: str = ""
    algorithm: str = "alphabeta"
    evaluator: str = "default"
    limits: Limits = field(default_factory=Limits)
    options: Mapping[str, str] = field(default_factory=dict)
    game: str | None = None
    variants: tuple[str, ...] = ()
    rating: Rating | None = None
    file: Path | None = None

    @property
    def variant(self) -> str | None:
        """The only variant that it plays, or its usual one of several; None if it is made for none."""
        return self.variants[0] if self.variants else None

    def misfit(self, variant: AnyVariant) -> str | None:
        """Why this player cannot play a variant; None if it can, as far as its file says."""
        known = {variant.name.lower(), *(alias.lower() for alias in variant.aliases)}
        if self.variants and known.isdisjoint(name.lower() for name in self.variants):
            return f"{self.name} plays {', '.join(self.variants)} only, not {variant.name}"
        if self.game is not None and self.game != variant.game:
            return f"{self.name} plays {self.game} only, not {variant.name}"
        return None


def names() -> list[str]:
    """The names of the shipped players, in alphabetical order."""
    return sorted(file.stem for file in FOLDER.glob(f"*{SUFFIX}"))


def everything(path: str | None = None) -> list[Player]:
    """The shipped players, then those in a file or folder; PlayerError at the first that cannot be read."""
    files = [FOLDER / f"{name}{SUFFIX}" for name in names()]
    if path is not None:
        place = Path(path)
        more = sorted(place.glob(f"*{SUFFIX}")) if place.is_dir() else [place]
        if not more:
            raise PlayerError(f"{path}: expected players in it, files that end in {SUFFIX}")
        files += more
    return [read(file) for file in files]


def load(name: str) -> Player:
    """The shipped player of that name, or the player in a file (a path that ends in .toml); PlayerError otherwise."""
    if name.endswith(SUFFIX):
        return read(Path(name))
    if name not in names():
        hint = nearest(name, names())
        raise PlayerError(
            f"no player {name[:80]!r}{hint}: expected a name that hnefi players lists, or a .toml file"
        )
    return read(FOLDER / f"{name}{SUFFIX}")


def evaluators_set(player: Player, given: Iterable[tuple[str, str]]) -> list[str]:
    """The evaluators that a player and then options of the engine set, by name or file; the last one is searched with.

    PlayerError if an option names none.
    """
    from hnefi.engine.session_options import evaluator_called

    found = [player.evaluator]
    for name, value in given:
        option = options.find(name)
        try:
            if option is not None and option.name == "Evaluator":
                found.append(evaluator_called(value, load))
            elif option is not None and option.name == "Player":
                found.append(load(value).evaluator)
        except ValueError as error:
            raise PlayerError(f"option {name} {value!r:.80}: {error}") from None
    return found


def unfit(player: Player, given: Iterable[tuple[str, str]], variant: AnyVariant) -> str | None:
    """Why a player to whom options of the engine are given cannot play a variant; None if it can.

    All evaluators are looked at: the player's own is set first, and the engine complains of it.
    """
    from hnefi.engine import evaluators

    if reason := player.misfit(variant):
        return reason
    try:
        names = evaluators_set(player, given)
    except PlayerError as error:
        return str(error)
    return next((reason for name in names if (reason := evaluators.misfit(name, variant))), None)


def read(file: Path) -> Player:
    """The player in a file; an evaluator with a suffix is a file beside it."""
    try:
        with open_regular(file) as stream:
            text = stream.read(_FILE_LIMIT).decode()
        table = read_toml(text)
    except OSError as error:
        raise PlayerError(f"{file}: {error.strerror or error}: expected a readable file") from None
    except ValueError as error:
        raise PlayerError(f"{file}: {error}") from None
    for key, value in table.items():
        if key not in _KEYS:
            raise PlayerError(f"{file}: {key}: {value!r:.80}: expected one of {', '.join(_KEYS)}")
    evaluator = _text(file, table, "evaluator", "default")
    if evaluator.endswith(".safetensors"):
        evaluator = str(file.parent / evaluator)
    return Player(
        name=file.stem,
        description=_text(file, table, "description", ""),
        algorithm=_choice(file, "algorithm", _text(file, table, "algorithm", "alphabeta")),
        evaluator=evaluator,
        limits=_read_limits(file, table),
        options={name: _option(file, name, value) for name, value in _table(file, table, "options").items()},
        game=_game(file, table),
        variants=_variants(file, table),
        rating=_read_rating(file, table),
        file=file,
    )


def _text(file: Path, table: Mapping[str, Any], key: str, default: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise PlayerError(f"{file}: {key}: {value!r:.80}: expected text")
    return value


def _table(file: Path, table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise PlayerError(f"{file}: {key}: {value!r:.80}: expected a table")
    return value


def _choice(file: Path, name: str, text: str) -> str:
    option = options.find(name)
    assert option is not None
    try:
        return str(option.read(text))
    except ValueError as error:
        raise PlayerError(f"{file}: {name}: {text!r:.80}: {error}") from None


def _game(file: Path, table: Mapping[str, Any]) -> str | None:
    game = _text(file, table, "game", "") or None
    if game is not None and game not in GAMES:
        raise PlayerError(f"{file}: game: {game!r:.80}: expected one of {', '.join(GAMES)}")
    return game


def _variants(file: Path, table: Mapping[str, Any]) -> tuple[str, ...]:
    names = table.get("variant", [])
    if isinstance(names, str):
        names = [names] if names else []
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise PlayerError(f"{file}: variant: {names!r:.80}: expected a name, or a list of names")
    return tuple(names)


def _read_rating(file: Path, table: Mapping[str, Any]) -> Rating | None:
    rating = _table(file, table, "rating")
    if not rating:
        return None
    for key, value in rating.items():
        if key not in _RATING:
            raise PlayerError(f"{file}: rating.{key}: {value!r:.80}: expected one of {', '.join(_RATING)}")
    for key in ("elo", "error"):
        value = rating.get(key, 0)
        if type(value) not in (int, float) or not abs(value) <= _ELO_LIMIT:
            raise PlayerError(f"{file}: rating.{key}: {value!r:.80}: expected a number up to {_ELO_LIMIT}")
    source = rating.get("source")
    if "elo" not in rating or not isinstance(source, str) or not source.strip():
        raise PlayerError(f"{file}: rating: {rating!r:.80}: expected elo, and as source what was played")
    return Rating(rating["elo"], rating.get("error"), source)


def _read_limits(file: Path, table: Mapping[str, Any]) -> Limits:
    limits = _table(file, table, "limits")
    for key, value in limits.items():
        if key not in _LIMITS:
            raise PlayerError(f"{file}: limits.{key}: {value!r:.80}: expected one of {', '.join(_LIMITS)}")
        if type(value) is not int or not 1 <= value <= _NUMBER_LIMIT:
            raise PlayerError(f"{file}: limits.{key}: {value!r:.80}: expected a whole number of at least 1")
    return Limits(**limits)


def _option(file: Path, name: str, value: Any) -> str:
    """An option's value as text; only options of the search can be set."""
    option = options.find(name)
    if option is None or not option.setting:
        expected = ", ".join(option.name for option in options.TABLE if option.setting)
        raise PlayerError(f"{file}: options.{name}: {value!r:.80}: expected one of {expected}")
    text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        option.read(text)
    except ValueError as error:
        raise PlayerError(f"{file}: options.{name}: {value!r:.80}: {error}") from None
    return text
