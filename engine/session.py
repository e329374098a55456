"""One conversation with the engine: a variant, a position with its history, options, and one search at a time.

A session prints nothing and knows no protocol: it reports through callbacks and refuses with `SessionError`, after
which everything is as it was before. It is driven by one thread; searches run in another, which calls the
callbacks. Nothing here imports the kernels before a position is needed.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from . import catalogue, evaluators, games, memory, options
from .games.base_variant import AnyVariant
from .games.tafl import variant
from .games.tafl.fen import format_fen
from .games.tafl.variant import Variant, VariantError
from .search import elo_table
from .search.types import Info, Limits, SearchResult, Settings

if TYPE_CHECKING:
    from .book import Book
    from .games.base_position import Position
    from .search.types import Searching
    from .solving.lookup import MoveValue
    from .solving.table import Value
    from .solving.tables import Tables

T = TypeVar("T")

INFO_RATE = 20.0
"""So many reports a second reach the callback on average; the last ones always do."""
INFO_BURST = 12.0
"""So many may come at once, after some quiet."""


class SessionError(ValueError):
    """Something that was refused: what was read, and what was expected (or why not)."""

    def __init__(self, read: str, expected: str) -> None:
        super().__init__(f"{read}: {expected}")
        self.read = read
        self.expected = expected


class PlayerLike(Protocol):
    """Who chooses the moves: what a session needs of a player."""

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


@dataclass(frozen=True, slots=True)
class Played:
    """A move just played or taken back: its captured squares and the position that came of it."""

    move: int
    captures: tuple[int, ...]
    position: Position


class _Job:
    """Something that runs in the search thread; a search is the one kind that `stop` ends."""

    def __init__(self, word: str, limits: Limits | None = None) -> None:
        self.word = word
        self.limits = limits
        self.ended = threading.Event()
        self.released = threading.Event()
        """When the answer need not be held back any more (`infinite`, `ponder`)."""
        if limits is None or not (limits.infinite or limits.ponder):
            self.released.set()


class _Reporter:
    """Hands reports on, at a bounded rate; what was held back is replaced by newer reports, never lost at the end."""

    def __init__(self, on_info: Callable[[Info], None]) -> None:
        self._on_info = on_info
        self._held: dict[int, Info] = {}
        self._allowance = INFO_BURST
        self._last = time.monotonic()

    def __call__(self, info: Info) -> None:
        now = time.monotonic()
        self._allowance = min(INFO_BURST, self._allowance + (now - self._last) * INFO_RATE)
        self._last = now
        self._held[info.multipv] = info
        if self._allowance >= 1.0:
            self._allowance -= len(self._held)
            self.flush()

    def flush(self) -> None:
        held, self._held = self._held, {}
        for number in sorted(held):
            self._on_info(held[number])


def _ignore(*_: object) -> None:
    """A callback that ignores what it is told."""


def _no_players(name: str) -> PlayerLike:
    raise ValueError(f"expected no player called {name}: none are known here")


class Session:
    """See the module. The callbacks are called from the search thread.

    `on_result` gets the position that was searched and the answer, exactly once per `go`. While it runs the session
    still counts as searching, and no method starts anything new before it has returned. `settle` is called before
    anything but a search imports kernels, and returns when no other thread is doing so.
    """

    def __init__(
        self,
        *,
        on_info: Callable[[Info], None] = _ignore,
        on_result: Callable[[Position, SearchResult], None] = _ignore,
        on_error: Callable[[Exception], None] = _ignore,
        load_player: Callable[[str], PlayerLike] = _no_players,
        settle: Callable[[], None] = _ignore,
        game: Any = None,
        searcher: Searching | None = None,
    ) -> None:
        self._on_info = on_info
        self._on_result = on_result
        self._on_error = on_error
        self._load_player = load_player
        self._settle = settle
        self._game = game or games
        self._searcher_made = searcher
        self._values: dict[str, str | int | bool] = {
            option.name: option.default
            if not option.words and option.type == "combo"
            else option.read(option.default)
            for option in options.TABLE
            if option.type != "button"
        }
        self._player_limits = Limits()
        self._player_options: tuple[str, ...] = ()
        self._settings = Settings()
        self._configured: Settings | None = None
        self._variant: AnyVariant = games.find(catalogue.DEFAULT)
        self._position: Position | None = None
        self._start: str | None = None
        self._texts: list[str] = []
        self._book: Book | None = None
        self._job: _Job | None = None
        # Held while an answer is given out: a host that has seen the answer finds the session idle.
        self._turn = threading.RLock()

    # What there is

    @property
    def variant(self) -> AnyVariant:
        """The game being played."""
        return self._variant

    @property
    def position(self) -> Position:
        """The current position; the first use loads the kernels."""
        if self._position is None:
            self._position = self._game.initial(self._variant)
        return self._position

    @property
    def settings(self) -> Settings:
        """How the next search will search."""
        return self._settings

    @property
    def player_limits(self) -> Limits:
        """What ends every search besides the limits of its `go`: those of the player."""
        return self._player_limits

    @property
    def job(self) -> str:
        """The command that the search thread is busy with; "" when idle."""
        with self._turn:
            return "" if self._job is None else self._job.word

    @property
    def searching(self) -> bool:
        """Whether a search that `stop` would end is running."""
        with self._turn:
            return self._job is not None and self._job.limits is not None

    def option(self, name: str) -> str | int | bool:
        """The value of an option, by its exact name."""
        return self._values[name]

    def variants(self) -> list[AnyVariant]:
        """Every variant that can be chosen, the default first."""
        try:
            return games.everything(str(self._values["VariantPath"]) or None)
        except VariantError as error:
            raise SessionError("variants", str(error)) from None

    # Game and position

    def set_variant(self, name: str) -> AnyVariant:
        """Plays another game, by name or alias, from its start position."""
        self._demand_idle(f"variant {name}")
        try:
            found = games.find(name, str(self._values["VariantPath"]) or None)
        except VariantError as error:
            raise SessionError("variant", str(error)) from None
        self.use_variant(found)
        return found

    def set_rules(self, text: str, *, opentafl: bool = False) -> tuple[Variant, list[str]]:
        """Plays by an OTN rules string from its start position; returns what was not understood besides."""
        from .games.tafl import otn

        self._demand_idle("rules")
        try:
            found, problems = otn.import_rules(text, opentafl=opentafl)
        except ValueError as error:
            raise SessionError("rules", str(error)) from None
        self.use_variant(found)
        return found, list(problems)

    def set_switches(self, text: str) -> Variant:
        """Plays by switches in one line, `start=… king_sides=2`, from their start position."""
        from .games.tafl.variant import from_words

        self._demand_idle("rules")
        try:
            found = from_words(text)
        except VariantError as error:
            raise SessionError("rules", str(error)) from None
        self.use_variant(found)
        return found

    def use_variant(self, chosen: AnyVariant) -> None:
        """Plays `chosen`, shipped or not, from its start position."""
        self._demand_idle("variant")
        if self._searcher_made is not None:
            self._searcher_made.clear()
        self._variant = chosen
        self._values["Variant"] = chosen.name
        self._restart()

    def new_game(self) -> None:
        """Forgets tables and history; the position becomes the variant's start."""
        self._demand_idle("newgame")
        if self._searcher_made is not None:
            self._searcher_made.clear()
        self._restart()

    def set_position(self, start: str | None, moves: Sequence[str] = ()) -> None:
        """The position after `moves` from `start`, a FEN in any dialect or None for the variant's start.

        Whole games may be sent with every move: what was played before is not played again.
        """
        self._demand_idle("position")
        known = len(self._texts)
        if start == self._start and self._position is not None and self._texts == list(moves[:known]):
            position = self._position
        else:
            known = 0
            position = self._set_up(start)
        for number in range(known, len(moves)):
            try:
                position = position.play(position.parse_move(moves[number]))
            except ValueError as error:
                raise SessionError(f"position: move {number + 1} {moves[number]}", str(error)) from None
        self._position, self._start, self._texts = position, start, list(moves)

    def set_record(self, text: str, moves: Sequence[str] = ()) -> None:
        """The position that an OTN position record describes, and `moves` from there."""
        from .games.tafl import otn

        self._demand_idle("position")
        if not isinstance(self._variant, Variant):
            raise SessionError("position otn", f"expected a tafl variant: {self._variant.game} has no OTN")
        try:
            start = format_fen(otn.parse_board(text, self._variant.size))
        except ValueError as error:
            raise SessionError("position otn", str(error)) from None
        self.set_position(start, moves)

    def play(self, text: str) -> Played:
        """Plays one move on the current position."""
        self._demand_idle(f"play {text}")
        position = self.position
        try:
            move = position.parse_move(text)
            position = position.play(move)
        except ValueError as error:
            raise SessionError(f"play {text}", str(error)) from None
        self._position = position
        self._texts.append(text)
        return Played(move, position.last_captures, position)

    def undo(self) -> Played:
        """Takes the last move back; the `captures` are those it had made."""
        self._demand_idle("undo")
        position = self.position
        if not position.moves:
            raise SessionError("undo", "expected a move to take back, none was played")
        self._position = position.undo()
        if self._texts:
            self._texts.pop()
        return Played(position.moves[-1], position.last_captures, self._position)

    def legal(self, texts: Iterable[str]) -> tuple[tuple[int, ...], list[SessionError]]:
        """Moves to search, and why the others cannot be."""
        moves: list[int] = []
        problems: list[SessionError] = []
        for text in texts:
            try:
                move = self.position.parse_move(text)
            except ValueError as error:
                problems.append(SessionError(f"searchmoves {text}", str(error)))
            else:
                if move not in moves:
                    moves.append(move)
        return tuple(moves), problems

    # Options

    def set_option(self, name: str, text: str | None = None) -> None:
        """Sets an option of `options.TABLE` from text; `Variant` and `Rules` restart the game."""
        self._demand_idle(f"setoption {name}")
        option = options.find(name)
        if option is None:
            raise SessionError(f"setoption {name}", "expected the name of an option")
        try:
            value = option.read(text)
        except ValueError as error:
            shown = f"{option.name} {text}" if text is not None else option.name
            raise SessionError(f"setoption {shown}", str(error)) from None
        act = _ACTIONS.get(option.name)
        if act is None:
            self._change({option.name: value})
        else:
            act(self, str(value))

    def use_player(self, player: PlayerLike) -> None:
        """Searches as `player` does: its algorithm, evaluator and options; its limits hold for every `go`.

        Options that only the player before had get their defaults back.
        """
        self._demand_idle("player")
        self._read_evaluator("player", player.evaluator)
        found = [option for name in self._player_options if (option := options.find(name)) is not None]
        texts = {option.name: option.default for option in found}
        texts |= {**player.options, "Algorithm": player.algorithm}
        values: dict[str, str | int | bool] = {"Evaluator": player.evaluator}
        for name, text in texts.items():
            option = options.find(name)
            if option is None or not option.setting:
                raise SessionError(f"option {name}", "expected an option of the search")
            try:
                values[option.name] = option.read(text)
            except ValueError as error:
                raise SessionError(f"option {name} {text}", str(error)) from None
        self._change(values)
        self._player_limits = player.limits
        self._player_options = tuple(player.options)

    def _set_rules(self, text: str) -> None:
        self.set_rules(text)
        self._values["Rules"] = text

    def _set_evaluator(self, name: str) -> None:
        self._change({"Evaluator": self._evaluator(name)})

    def _clear_hash(self, _: str) -> None:
        if self._searcher_made is not None:
            self._searcher_made.clear()

    def _set_player(self, name: str) -> None:
        try:
            self.use_player(self._load_player(name))
        except ValueError as error:
            raise SessionError(f"setoption Player {name}", str(error)) from None
        self._values["Player"] = name

    def _evaluator(self, name: str) -> str:
        """The evaluator called `name`, in the file `name`, or of the player called so; files are read now."""
        if name not in evaluators.NAMES and not evaluators.is_file(name):
            try:
                name = self._load_player(name).evaluator
            except ValueError:
                raise SessionError(
                    f"setoption Evaluator {name}",
                    f"expected {', '.join(evaluators.NAMES)}, a file whose name ends in {evaluators.SUFFIX}, "
                    "or the name of a player whose evaluator is meant",
                ) from None
        self._read_evaluator("setoption Evaluator", name)
        return name

    def _read_evaluator(self, read: str, name: str) -> None:
        """Reads the file that an evaluator's name is, if it is one."""
        if evaluators.is_file(name):
            self._settle()
            try:
                evaluators.read(name, self._variant, str(self._values["VariantPath"]) or None)
            except ValueError as error:
                raise SessionError(read, str(error)) from None

    def _set_variant_path(self, path: str) -> None:
        try:
            variant.everything(path or None)
        except VariantError as error:
            raise SessionError("setoption VariantPath", str(error)) from None
        self._values["VariantPath"] = path

    def _open_tables(self, path: str) -> Tables | None:
        """The solved tables that a path names, None for an empty one; every file is read now."""
        from .solving.tables import find, opened

        try:
            return opened(find(path, options.SHIPPED_TABLES)) if path else None
        except (ValueError, MemoryError) as error:
            raise SessionError("setoption TablePath", str(error)) from None
        except OSError as error:
            raise SessionError(
                f"setoption TablePath {path}", f"{error.filename or path}: {error.strerror or error}"
            ) from None

    def _set_own_book(self, text: str) -> None:
        wanted = text == str(True)
        if wanted and self._book is None:
            self._open_book("OwnBook", str(self._values["BookFile"]))
        self._values["OwnBook"] = wanted

    def _set_book_file(self, path: str) -> None:
        self._open_book("BookFile", path)
        self._values["BookFile"] = path

    def _open_book(self, option: str, path: str) -> None:
        """Read the opening book that a path names; an empty one is a book that knows nothing."""
        from . import book

        try:
            if path == options.SHIPPED_BOOKS:
                self._book = book.shipped()
            else:
                self._book = book.read(Path(path)) if path else book.Book()
        except book.BookError as error:
            raise SessionError(f"setoption {option} {path}", str(error)) from None

    def _book_move(self, position: Position, limits: Limits) -> int | None:
        """A move of the opening book, where one is wanted; an analysis and whoever asks for certain moves get none."""
        asked = limits.infinite or limits.ponder or limits.mate is not None or limits.searchmoves
        if self._book is None or not self._values["OwnBook"] or asked or self._settings.multipv > 1:
            return None
        from . import book

        # As all that is random here: the same for the same seed and place in the game.
        draw = random.Random(f"book {self._settings.seed} {position.ply}")
        return book.choose(self._book.of(position.variant), position, draw)

    def _load_tables(self) -> None:
        """Unpack the tables of the game being played; what is wrong with them is reported, and they are left out."""
        from .solving.table import TableError

        tables = self._settings.tables
        if tables is None:
            return
        try:
            tables.load(self._variant)
        except (TableError, MemoryError) as error:
            self._on_error(
                SessionError("TablePath", f"{error}; the tables of {self._variant.name} are left out")
            )

    def _change(self, values: Mapping[str, str | int | bool]) -> None:
        fields: dict[str, Any] = {}
        if "TablePath" in values:
            fields["tables"] = self._open_tables(str(values["TablePath"]))
        if "Hash" in values:
            held = self._settings.hash_mib
            try:
                memory.demand(int(values["Hash"]), instead_of=held)
            except MemoryError as error:
                raise SessionError(f"setoption Hash {values['Hash']}", f"{error}; it stays {held}") from None
        for name, value in values.items():
            self._values[name] = value
            option = options.find(name)
            if option is not None and option.setting:
                fields.setdefault(option.setting, value)
        if "Evaluator" in values:
            fields["evaluator"] = values["Evaluator"]
        if self._values["UCI_LimitStrength"]:
            fields["skill"] = elo_table.level(int(self._values["UCI_Elo"]))
        elif "UCI_LimitStrength" in values:
            fields["skill"] = self._values["SkillLevel"]
        self._settings = replace(self._settings, **fields)
        if self._searcher_made is not None:
            # Memory that is no longer wanted goes back now, not with the next search.
            self._ready_searcher()

    # Searching

    def warm(self) -> None:
        """Loads, or compiles, all that a search of the current game needs, by the algorithm and the kind of evaluator
        that are chosen; at once where that was done before.
        """
        if self._game is games:
            from .warmup import prepare

            prepare(self._variant, self.effective)
        self._load_tables()

    @property
    def misfit(self) -> str | None:
        """Why the chosen evaluator cannot be used for the rules being played, so that `default` is; None if it can."""
        reason = evaluators.misfit(self._settings.evaluator, self._variant)
        return reason and f"{reason}; default is used instead"

    @property
    def effective(self) -> Settings:
        """The settings, with an evaluator that fits the rules: a wrong choice must not lose a game."""
        return replace(self._settings, evaluator="default") if self.misfit else self._settings

    def go(self, limits: Limits) -> None:
        """Starts a search of the current position; `on_result` will get its answer.

        Without anything to end it the search is infinite. A clock that is known for the other side only stands for
        both: there is a host that waits for a move.
        """
        self._demand_idle("go")
        position = self.position
        limits = self._complete(limits, position)
        searcher = self._ready_searcher()
        searcher.begin()
        job = _Job("go", limits)
        self._start_thread(job, lambda: self._think(job, searcher, position, limits))

    def stop(self) -> None:
        """Ends the search as soon as possible; nothing happens when there is none."""
        job = self._job
        if job is not None and job.limits is not None:
            job.released.set()
            self._searcher.stop()

    def ponderhit(self) -> None:
        """The move that was pondered on has been played: the limits count from now on."""
        job = self._job
        if job is None or job.limits is None or not job.limits.ponder:
            return
        if not job.limits.infinite:
            job.released.set()
            if not job.limits.bounded:
                self._searcher.stop()
                return
        self._searcher.ponderhit()

    def run(self, word: str, work: Callable[[], T], on_done: Callable[[T], None]) -> None:
        """Runs `work` in the search thread and gives its value to `on_done`; `stop` does not end it.

        `word` says what it is, to those who are refused meanwhile.
        """
        self._demand_idle(word)
        job = _Job(word)
        self._start_thread(job, lambda: self._work(job, work, on_done))

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the search thread is idle; False if `timeout` seconds did not suffice."""
        job = self._job
        return job is None or job.ended.wait(timeout)

    def ended(self) -> threading.Event:
        """Set when what is running now has ended."""
        job = self._job
        if job is None:
            job = _Job("")
            job.ended.set()
        return job.ended

    def evaluate(self) -> list[tuple[str, int]]:
        """The terms of the evaluation of the current position, in centipawns for the attackers; `total` is last."""
        self._demand_idle("eval")
        return self._ready_searcher().evaluate(self.position)

    def solved(self) -> tuple[Value, tuple[MoveValue, ...]]:
        """What the tables say of the current position and of each move in it, the best first."""
        from .solving import lookup

        self._demand_idle("tb")
        tables = self._settings.tables
        if tables is None:
            raise SessionError(
                "tb", f"expected tables: setoption name TablePath value {options.SHIPPED_TABLES}, or a file"
            )
        position = self.position
        try:
            return tables.value(position), lookup.moves(tables.value, position)
        except ValueError as error:
            raise SessionError("tb", str(error)) from None

    def remarks(self) -> list[str]:
        """What there is to say about the evaluation of the current position besides its terms."""
        self._demand_idle("eval")
        return evaluators.remarks(self.effective.evaluator, self.position)

    def _ready_searcher(self) -> Searching:
        """The searcher, with the settings of now."""
        searcher = self._searcher
        settings = self.effective
        if self._configured != settings:
            searcher.configure(settings)
            self._configured = settings
        return searcher

    @property
    def _searcher(self) -> Searching:
        if self._searcher_made is None:
            from .search.searcher import Searcher

            self._searcher_made = Searcher(self._settings)
            self._configured = self._settings
        return self._searcher_made

    def _restart(self) -> None:
        self._position, self._start, self._texts = None, None, []

    def _set_up(self, start: str | None) -> Position:
        try:
            if start is None:
                position: Position = self._game.initial(self._variant)
            else:
                position = self._game.from_fen(self._variant, start)
        except ValueError as error:
            raise SessionError("position", str(error)) from None
        return position

    def _complete(self, limits: Limits, position: Position) -> Limits:
        """`limits` with those of the player, and with all that was left unsaid."""
        limits = limits.tightened(self._player_limits)
        ours, theirs = limits.clock[position.side], limits.clock[1 - position.side]
        if ours is None and theirs is not None:
            limits = replace(limits, clock=(theirs, theirs))
        if not limits.bounded and not limits.ponder:
            limits = replace(limits, infinite=True)
        return limits

    def _demand_idle(self, read: str) -> None:
        word = self.job
        if word == "go":
            raise SessionError(read, "a search is running: expected stop before")
        if word:
            raise SessionError(read, f"{word} is running: expected its end before")

    def _start_thread(self, job: _Job, target: Callable[[], None]) -> None:
        self._job = job
        threading.Thread(target=target, daemon=True, name="search").start()

    def _think(self, job: _Job, searcher: Searching, position: Position, limits: Limits) -> None:
        result = SearchResult(None)
        try:
            if position.outcome is None:
                move = self._book_move(position, limits)
                if move is not None:
                    result = SearchResult(move)
                else:
                    reporter = _Reporter(self._on_info)
                    result = searcher.search(position, limits, reporter)
                    reporter.flush()
        except Exception as error:  # noqa: BLE001 - a search that fails still owes an answer
            # But no move: one that was not thought about would lose games without a word.
            self._on_error(error)
            result = SearchResult(None)
        job.released.wait()
        self._end(job, lambda: self._on_result(position, result))

    def _work(self, job: _Job, work: Callable[[], T], on_done: Callable[[T], None]) -> None:
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 - reported, the session goes on
            problem = error
            self._end(job, lambda: self._on_error(problem))
        else:
            self._end(job, lambda: on_done(value))

    def _end(self, job: _Job, answer: Callable[[], None]) -> None:
        with self._turn:
            try:
                answer()
            finally:
                self._job = None
                job.ended.set()


_ACTIONS: Mapping[str, Callable[[Session, str], object]] = {
    "Variant": Session.set_variant,
    "Rules": Session._set_rules,
    "VariantPath": Session._set_variant_path,
    "Player": Session._set_player,
    "Evaluator": Session._set_evaluator,
    "ClearHash": Session._clear_hash,
    "OwnBook": Session._set_own_book,
    "BookFile": Session._set_book_file,
}
"""Options that are more than a value to remember."""
