"""How a session searches: the values of its options, its player, and the files that they name.

Nothing here knows the position or whether a search runs; `session.py` asks about that first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from . import evaluators, memory, options
from .games.base_variant import AnyVariant
from .games.tafl import variant
from .games.tafl.variant import VariantError
from .search import elo_table
from .search.types import Limits, Settings

if TYPE_CHECKING:
    from .book import Book
    from .games.base_position import Position
    from .options import Option
    from .solving.tables import Tables

Value = str | int | bool
"""The value of an option."""


class SessionError(ValueError):
    """A command was refused; the message says what was read, and what was expected or why not."""

    def __init__(self, read: str, expected: str) -> None:
        super().__init__(f"{read}: {expected}")
        self.read = read
        self.expected = expected


class PlayerLike(Protocol):
    """What a session needs of the player that chooses its moves."""

    @property
    def algorithm(self) -> str:
        """The name of the search."""

    @property
    def evaluator(self) -> str:
        """The name of the evaluator, or its file."""

    @property
    def limits(self) -> Limits:
        """Limits of every move, besides those of `go`."""

    @property
    def options(self) -> Mapping[str, str]:
        """Options of the search, by name."""


def no_players(name: str) -> PlayerLike:
    """Finds no player: for sessions without players."""
    raise ValueError(f"expected no player called {name}: there are no players here")


class SessionOptions:
    """The options' values, and the settings of a search that follow from them.

    A value that is refused, with SessionError, changes nothing. `load_player` finds players by name or file, and
    raises ValueError; `settle` is called before a file is read that imports kernels.
    """

    def __init__(self, load_player: Callable[[str], PlayerLike], settle: Callable[[], None]) -> None:
        self.values: dict[str, Value] = {
            option.name: option.default
            if not option.words and option.type == "combo"
            else option.read(option.default)
            for option in options.TABLE
            if option.type != "button"
        }
        self.settings = Settings()
        self.player_limits = Limits()
        """Limits of every search besides those of its `go`: the player's."""
        self._player_options: tuple[str, ...] = ()
        self._load_player = load_player
        self._settle = settle
        self._book: Book | None = None

    @property
    def variant_path(self) -> str | None:
        """Where variants are searched for besides the shipped ones."""
        return str(self.values["VariantPath"]) or None

    def set(self, option: Option, value: Value, played: AnyVariant) -> None:
        """Sets an option to a value that it has read, while `played` is the game."""
        text = str(value)
        match option.name:
            case "Evaluator":
                self._change({"Evaluator": self._evaluator(text, played)})
            case "Player":
                try:
                    self.use_player(self._load_player(text), played)
                except ValueError as error:
                    raise SessionError(f"setoption Player {text}", str(error)) from None
                self.values["Player"] = text
            case "VariantPath":
                try:
                    variant.everything(text or None)
                except VariantError as error:
                    raise SessionError("setoption VariantPath", str(error)) from None
                self.values["VariantPath"] = text
            case "OwnBook":
                if value and self._book is None:
                    self._book = _book("OwnBook", str(self.values["BookFile"]))
                self.values["OwnBook"] = value
            case "BookFile":
                self._book = _book("BookFile", text)
                self.values["BookFile"] = text
            case name:
                self._change({name: value})

    def use_player(self, player: PlayerLike, played: AnyVariant) -> None:
        """Searches as `player` does: its algorithm, evaluator and options; its limits hold for every `go`.

        Options that only the player before had get their defaults back.
        """
        self._read_evaluator("player", player.evaluator, played)
        found = [option for name in self._player_options if (option := options.find(name)) is not None]
        texts = {option.name: option.default for option in found}
        texts |= {**player.options, "Algorithm": player.algorithm}
        values: dict[str, Value] = {"Evaluator": player.evaluator}
        for name, text in texts.items():
            option = options.find(name)
            if option is None or not option.setting:
                raise SessionError(f"option {name}", "expected an option of the search")
            try:
                values[option.name] = option.read(text)
            except ValueError as error:
                raise SessionError(f"option {name} {text}", str(error)) from None
        self._change(values)
        self.player_limits = player.limits
        self._player_options = tuple(player.options)

    def misfit(self, played: AnyVariant) -> str | None:
        """Why the chosen evaluator cannot be used for these rules, so that `default` is; None if it can."""
        return evaluators.misfit(self.settings.evaluator, played)

    def effective(self, played: AnyVariant) -> Settings:
        """The settings, with an evaluator that fits the rules: a wrong choice must not lose a game."""
        return replace(self.settings, evaluator="default") if self.misfit(played) else self.settings

    def book_move(self, position: Position, limits: Limits) -> int | None:
        """A move of the opening book, where one is wanted.

        An analysis gets none, nor does a search for a mate or among chosen moves.
        """
        special = limits.infinite or limits.ponder or limits.mate is not None or limits.searchmoves
        if self._book is None or not self.values["OwnBook"] or special or self.settings.multipv > 1:
            return None
        from . import book

        # Like everything random here: the same for the same seed and ply of the game.
        draw = random.Random(f"book {self.settings.seed} {position.ply}")
        return book.choose(self._book.of(position.variant), position, draw)

    def _evaluator(self, name: str, played: AnyVariant) -> str:
        """The evaluator called `name`, in the file `name`, or of the player called so; files are read now."""
        try:
            name = evaluator_called(name, self._load_player)
        except ValueError as error:
            raise SessionError(f"setoption Evaluator {name}", str(error)) from None
        self._read_evaluator("setoption Evaluator", name, played)
        return name

    def _read_evaluator(self, read: str, name: str, played: AnyVariant) -> None:
        """Reads the file that an evaluator's name is, if it is one."""
        if evaluators.is_file(name):
            self._settle()
            try:
                evaluators.read(name, played, self.variant_path)
            except ValueError as error:
                raise SessionError(read, str(error)) from None

    def _change(self, values: Mapping[str, Value]) -> None:
        """Sets options whose values are settings of the search."""
        fields: dict[str, Any] = {}
        if "TablePath" in values:
            fields["tables"] = _tables(str(values["TablePath"]))
        if "Hash" in values:
            held = self.settings.hash_mib
            try:
                memory.demand(int(values["Hash"]), instead_of=held)
            except MemoryError as error:
                raise SessionError(f"setoption Hash {values['Hash']}", f"{error}; it stays {held}") from None
        for name, value in values.items():
            self.values[name] = value
            option = options.find(name)
            if option is not None and option.setting:
                fields.setdefault(option.setting, value)
        if "Evaluator" in values:
            fields["evaluator"] = values["Evaluator"]
        if self.values["UCI_LimitStrength"]:
            fields["skill"] = elo_table.level(int(self.values["UCI_Elo"]))
        elif "UCI_LimitStrength" in values:
            fields["skill"] = self.values["SkillLevel"]
        self.settings = replace(self.settings, **fields)


def evaluator_called(name: str, load_player: Callable[[str], PlayerLike]) -> str:
    """What the option Evaluator means by `name`: an evaluator's name, a file, or the evaluator of a player; ValueError
    saying what was expected."""
    if name in evaluators.NAMES or evaluators.is_file(name):
        return name
    try:
        return load_player(name).evaluator
    except ValueError:
        raise ValueError(
            f"expected a file whose name ends in {evaluators.SUFFIX}, the name of a player (its evaluator is used), or "
            f"one of {', '.join(evaluators.NAMES)}"
        ) from None


def _tables(path: str) -> Tables | None:
    """The solved tables at a path, None for an empty path; every file is read now."""
    from .solving.tables import find, opened

    try:
        return opened(find(path, options.SHIPPED_TABLES)) if path else None
    except (ValueError, MemoryError) as error:
        raise SessionError("setoption TablePath", str(error)) from None
    except OSError as error:
        raise SessionError(
            "setoption TablePath", f"{error.filename or path}: {error.strerror or error}"
        ) from None


def _book(option: str, path: str) -> Book:
    """The opening book at a path; an empty path is a book without positions."""
    from . import book

    try:
        if path == options.SHIPPED_BOOKS:
            return book.shipped()
        return book.read(Path(path)) if path else book.Book()
    except book.BookError as error:
        raise SessionError(f"setoption {option} {path}", str(error)) from None
