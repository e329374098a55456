"""One conversation with the engine: a variant, a position with its history, options, and one search at a time.

A session prints nothing and knows no protocol: it reports through callbacks and refuses with `SessionError`, after
which everything is as it was before. It is driven by one thread; searches run in another, which calls the
callbacks. Nothing here imports the kernels before a position is needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from . import catalogue, evaluators, games, options
from .games.base_variant import AnyVariant
from .games.tafl.fen import format_fen
from .games.tafl.variant import Variant, VariantError
from .search import skill
from .search.types import Info, Limits, SearchResult, Settings
from .search_thread import Job, Reporter, SearchThread
from .session_options import PlayerLike, SessionError, SessionOptions, no_players

if TYPE_CHECKING:
    from .games.base_position import Position
    from .search.types import Searching
    from .solving.lookup import MoveValue
    from .solving.table import Value

__all__ = ["Played", "PlayerLike", "Session", "SessionError"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Played:
    """A move just played or taken back: its captured squares and the resulting position."""

    move: int
    captures: tuple[int, ...]
    position: Position


def _ignore(*_: object) -> None:
    """A callback that ignores its arguments."""


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
        load_player: Callable[[str], PlayerLike] = no_players,
        settle: Callable[[], None] = _ignore,
        game: Any = None,
        searcher: Searching | None = None,
    ) -> None:
        self._on_info = on_info
        self._on_result = on_result
        self._on_error = on_error
        self._game = game or games
        self._searcher_made = searcher
        self._options = SessionOptions(load_player, settle)
        self._configured: Settings | None = None
        self._variant: AnyVariant = games.find(catalogue.DEFAULT)
        self._position: Position | None = None
        self._start: str | None = None
        self._texts: list[str] = []
        self._thread = SearchThread(on_error)

    # State

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
        """The settings of the next search."""
        return self._options.settings

    @property
    def player_limits(self) -> Limits:
        """Limits of every search besides those of its `go`: the player's."""
        return self._options.player_limits

    @property
    def job(self) -> str:
        """The command that the search thread is working on; "" when idle."""
        job = self._thread.job
        return "" if job is None else job.word

    @property
    def searching(self) -> bool:
        """Whether a search that `stop` would end is running."""
        job = self._thread.job
        return job is not None and job.limits is not None

    def option(self, name: str) -> str | int | bool:
        """The value of an option, by its exact name."""
        return self._options.values[name]

    def variants(self) -> list[AnyVariant]:
        """Every variant that can be chosen, the default first."""
        try:
            return games.everything(self._options.variant_path)
        except VariantError as error:
            raise SessionError("variants", str(error)) from None

    # Game and position

    def set_variant(self, name: str) -> AnyVariant:
        """Plays another game, by name or alias, from its start position."""
        self._demand_idle(f"variant {name}")
        try:
            found = games.find(name, self._options.variant_path)
        except VariantError as error:
            raise SessionError("variant", str(error)) from None
        self.use_variant(found)
        return found

    def set_rules(self, text: str, *, opentafl: bool = False) -> tuple[Variant, list[str]]:
        """Plays by an OTN rules string from its start position; returns the parts that were not understood."""
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
        self._clear_tables()
        self._variant = chosen
        self._options.values["Variant"] = chosen.name
        self._restart()

    def new_game(self) -> None:
        """Forgets tables and history; the position becomes the variant's start."""
        self._demand_idle("newgame")
        self._clear_tables()
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
        """The moves to search, and why the others cannot be searched."""
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
        match option.name:
            case "Variant":
                self.set_variant(str(value))
            case "Rules":
                self.set_rules(str(value))
                self._options.values["Rules"] = value
            case "ClearHash":
                self._clear_tables()
            case _:
                self._options.set(option, value, self._variant)
                self._configure_searcher()

    def use_player(self, player: PlayerLike) -> None:
        """Searches as `player` does: its algorithm, evaluator and options; its limits hold for every `go`.

        Options that only the player before had get their defaults back.
        """
        self._demand_idle("player")
        self._options.use_player(player, self._variant)
        self._configure_searcher()

    # Searching

    def warm(self) -> None:
        """Loads, or compiles, all that a search of the current game needs, by the algorithm and the kind of evaluator
        that are chosen; at once where that was done before.
        """
        self._prepare(self.effective)
        self._load_tables()

    def _prepare(self, settings: Settings) -> None:
        if self._game is games:
            from .warmup import prepare

            prepare(self._variant, settings)

    @property
    def misfit(self) -> str | None:
        """Why the chosen evaluator cannot be used for the rules being played, so that `default` is; None if it can."""
        return self._options.misfit(self._variant)

    @property
    def effective(self) -> Settings:
        """The settings, with an evaluator that fits the rules: a wrong choice must not lose a game."""
        return self._options.effective(self._variant)

    def go(self, limits: Limits) -> None:
        """Starts a search of the current position; `on_result` will get its answer.

        Without anything to end it the search is infinite. A clock that is known for the other side only stands for
        both: there is a host that waits for a move.
        """
        self._demand_idle("go")
        position = self.position
        limits = self._complete(limits, position)
        if limits.infinite:
            # An analysis does not play down to a level, and may need another evaluator than the moves.
            self._prepare(replace(self.effective, skill=skill.FULL))
        searcher = self._ready_searcher()
        searcher.begin()
        job = Job("go", limits)
        self._thread.start(job, lambda: self._think(job, searcher, position, limits))

    def stop(self) -> None:
        """Ends the search as soon as possible; nothing happens when there is none."""
        job = self._thread.search
        if job is not None:
            job.released.set()
            self._searcher.stop()

    def ponderhit(self) -> None:
        """The pondered move was played: the limits count from now on."""
        job = self._thread.search
        if job is None or job.limits is None or not job.limits.ponder:
            return
        if not job.limits.infinite:
            job.released.set()
            if not job.limits.bounded:
                self._searcher.stop()
                return
        self._searcher.ponderhit()

    def run(self, word: str, work: Callable[[], T], on_done: Callable[[T], None]) -> None:
        """Runs `work` in the search thread and passes its value to `on_done`; `stop` does not end it.

        `word` names it for commands that are refused meanwhile.
        """
        self._demand_idle(word)
        self._thread.run(word, work, on_done)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the search thread is idle; False if `timeout` seconds did not suffice."""
        return self._thread.ended().wait(timeout)

    def ended(self) -> threading.Event:
        """Set when what is running now has ended."""
        return self._thread.ended()

    def evaluate(self) -> list[tuple[str, int]]:
        """The terms of the evaluation of the current position, in centipawns for the attackers; `total` is last."""
        self._demand_idle("eval")
        return self._ready_searcher().evaluate(self.position)

    def solved(self) -> tuple[Value, tuple[MoveValue, ...]]:
        """The tables' values of the current position and of each of its moves, the best first."""
        from .solving import lookup

        self._demand_idle("tb")
        tables = self._options.settings.tables
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
        """Information about the evaluation of the current position besides its terms."""
        self._demand_idle("eval")
        return evaluators.remarks(self.effective.evaluator, self.position)

    def _load_tables(self) -> None:
        """Unpack the tables of the game being played; what is wrong with them is reported, and they are left out."""
        from .solving.table import TableError

        tables = self._options.settings.tables
        if tables is None:
            return
        try:
            tables.load(self._variant)
        except (TableError, MemoryError) as error:
            self._on_error(
                SessionError("TablePath", f"{error}; the tables of {self._variant.name} are not used")
            )

    def _clear_tables(self) -> None:
        """Clears the results of earlier searches."""
        if self._searcher_made is not None:
            self._searcher_made.clear()

    def _configure_searcher(self) -> None:
        """Gives the searcher new settings at once, so that unneeded memory is freed before the next search."""
        if self._searcher_made is not None:
            self._ready_searcher()

    def _ready_searcher(self) -> Searching:
        """The searcher, with the current settings."""
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

            self._searcher_made = Searcher(self._options.settings)
            self._configured = self._options.settings
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
        """`limits` combined with the player's, and with defaults."""
        limits = limits.tightened(self._options.player_limits)
        ours, theirs = limits.clock[position.side], limits.clock[1 - position.side]
        if ours is None and theirs is not None:
            limits = replace(limits, clock=(theirs, theirs))
        if not limits.bounded and not limits.ponder:
            limits = replace(limits, infinite=True)
        return limits

    def _demand_idle(self, read: str) -> None:
        word = self.job
        if word == "go":
            raise SessionError(read, "a search is running: expected stop first")
        if word:
            raise SessionError(read, f"{word} is running: expected it to end first")

    def _think(self, job: Job, searcher: Searching, position: Position, limits: Limits) -> None:
        result = SearchResult(None)
        try:
            if position.outcome is None:
                move = self._options.book_move(position, limits)
                if move is not None:
                    result = SearchResult(move)
                else:
                    reporter = Reporter(self._on_info)
                    result = searcher.search(position, limits, reporter)
                    reporter.flush()
        except Exception as error:  # noqa: BLE001 - a search that fails still owes an answer
            # But no move: playing one without a search would lose games silently.
            self._on_error(error)
            result = SearchResult(None)
        job.released.wait()
        self._thread.finish(job, lambda: self._on_result(position, result))
