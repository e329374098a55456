"""Who plays each side: a person, our engine at a level or as one of its players, or any engine process.

Levels are the engine's own (`SkillLevel`): each sees three times as many positions as the one below, and chooses less
freely among moves that look almost as good. The tenth is limited by time alone. With a clock, the time for the move
limits every level as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import Callable, Coroutine, ItemsView, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from hnefi.engine.catalogue import DEFAULT, SIZED
from hnefi.engine.compile.progress import Progress
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.games.tafl.fen import in_adk
from hnefi.engine.search.clock import movetime
from hnefi.engine.search.skill import evaluator, weakness
from hnefi.engine.search.types import Limits, Settings
from hnefi.engine.wording import shorten
from hnefi.players import PlayerError, evaluators_set
from hnefi.players import load as load_player
from hnefi.players import unfit as player_unfit
from hnefi.protocol.client import Answer, Engine, EngineError, Search, own_command
from hnefi.protocol.hosts import registry

from .events import Events
from .game import PositionSpec
from .rules_process import Traffic, choose, end
from .values import Purpose, SideLetter

MOVETIME_MS = 1000
"""Time for a move of a foreign engine without other limits."""
GRACE = 2.0
"""Seconds that an engine may be late."""
LOWEST, HIGHEST = 0, 10
DEFAULT_LEVEL: Final = 5
THINKING_MS: Final = 5000
"""Longest time for a move without a clock; only the highest level uses all of it."""
AUTO: Final = "auto"
"""In place of a level: the one that follows the user's results."""
OPTION: Final = "SkillLevel"

_LIMITS: Final = Limits(movetime=THINKING_MS)


@dataclass(frozen=True, slots=True)
class Level:
    """A level in words, and its limits."""

    words: str
    limits: Limits = _LIMITS


def _level(number: int) -> Level:
    weak = weakness(number)
    if weak is None:
        return Level(f"the whole engine, {THINKING_MS // 1000} seconds a move")
    if weak.at_random:
        return Level("for beginners: plays most of its moves at random")
    choice = ", often the second-best move" if number < 4 else ", sometimes the second-best move"
    return Level(f"searches {weak.nodes:,} positions a move{choice if weak.lines > 1 else ''}")


LEVELS: Final[dict[int, Level]] = {number: _level(number) for number in range(LOWEST, HIGHEST + 1)}

HINT: Final = Limits(nodes=300_000)
"""The limits of a hint, in nodes so that the answer is the same on every machine."""
ANALYSIS: Final = Limits(nodes=1_000_000)
"""The limits of an analysis that no user will stop, as in a script."""


def level_lines() -> list[str]:
    """One line per level, for the help."""
    return [f"{number:>5}  {level.words}" for number, level in LEVELS.items()]


@dataclass(frozen=True, slots=True)
class Spec:
    """A specification of an opponent. `player` and `level` are for our own engine, `command` is for any engine, which
    the user may have `registered` under a name. `clock` and `letters` are as in `registry`. With `auto` the level of
    each new game follows the user's results."""

    player: str = "default"
    level: int | None = None
    command: tuple[str, ...] = ()
    registered: str = ""
    clock: str = ""
    letters: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    movetime: int | None = None
    auto: bool = False

    @property
    def own(self) -> bool:
        """Whether it is an engine of ours."""
        return not self.command

    @property
    def name(self) -> str:
        """Its name on screen."""
        if self.command:
            return self.registered or Path(self.command[0]).name
        if self.level is not None:
            return f"hnefi level {self.level}"
        return f"hnefi {Path(self.player).stem}"

    @property
    def spelled(self) -> str:
        """The line that chooses it: `level 5`, `player NAME`, `engine COMMAND`."""
        if self.command:
            return f"engine {self.registered or shlex.join(self.command)}"
        return f"level {self.level}" if self.level is not None else f"player {self.player}"

    @property
    def limits(self) -> Limits:
        """The limits of its searches without a clock."""
        if self.movetime is not None:
            return Limits(movetime=self.movetime)
        if self.level is not None:
            return LEVELS[self.level].limits
        if self.own:
            given = load_player(self.player).limits
            return given if given.bounded else LEVELS[HIGHEST].limits
        return Limits(movetime=MOVETIME_MS)


def evaluator_of(spec: Spec) -> str:
    """The evaluator that one of our engines is told to use, by name or file; PlayerError if an option names none."""
    return evaluators_set(load_player(spec.player), spec.options.items())[-1]


def own_way(spec: Spec, variant: AnyVariant) -> str:
    """The evaluator by which one of our engines chooses its moves, by name or file: levels may have one of theirs."""
    given = {name.lower(): value.lower() for name, value in spec.options.items()}
    return evaluator(
        Settings(
            algorithm=given.get("algorithm", load_player(spec.player).algorithm),
            evaluator=evaluator_of(spec),
            skill=HIGHEST if spec.level is None else spec.level,
        ),
        variant,
    )


def unmeasured(spec: Spec, variant: AnyVariant) -> str | None:
    """What is said of a level whose evaluator was chosen; None if it was not."""
    usual = None if spec.level is None else own_way(replace(spec, options={}), variant)
    if usual is None or spec.level == HIGHEST or (own := own_way(spec, variant)) == usual:
        return None
    return (
        f"{spec.name} evaluates by {own} instead of {usual}, with which the strength of levels was measured."
    )


def unfit(spec: Spec, variant: AnyVariant) -> str | None:
    """Why one of our engines cannot play a variant, its evaluator included; None if it can, or is not ours."""
    if not spec.own:
        return None
    player = load_player(spec.player)
    # The evaluators of shipped players fit what they play: looking takes a second, and the first board would wait.
    if spec.options or spec.player.endswith(".toml"):
        return player_unfit(player, spec.options.items(), variant)
    return player.misfit(variant)


def at_level(text: str) -> Spec:
    """Our engine at a level; ValueError saying what was expected."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else -1
    if not LOWEST <= number <= HIGHEST:
        raise ValueError(f"level {shorten(text)}: expected a number from {LOWEST} to {HIGHEST}, or {AUTO}")
    return Spec(level=number)


def by_name(name: str, variant: AnyVariant) -> Spec:
    """A shipped player, a player's file or a registered engine; ValueError if it does not exist, if it does not play
    this variant, or if its evaluator cannot be read."""
    if registry.find(name) is not None:
        return by_command(name, variant)
    player = registry.player_of(name)
    misfit = player.misfit(variant)
    if misfit is not None:
        raise ValueError(misfit)
    if player.evaluator.endswith(".safetensors"):
        from hnefi.engine.evaluators import files

        files.peek(player.evaluator)
    return Spec(str(Path(name).absolute()) if name.endswith(".toml") else name)


def home(name: str, variant: AnyVariant) -> str | None:
    """The variant to play if the player or registered engine does not play `variant`; None if it does, or if nobody has
    that name."""
    with contextlib.suppress(PlayerError, registry.RegistryError):
        engine = registry.find(name)
        if engine is not None:
            return engine.variants[0] if engine.misfit((variant.name, *variant.aliases)) else None
        player = load_player(name)
        if player.misfit(variant) is not None:
            return player.variant or (player.game if player.game in SIZED else DEFAULT)
    return None


def by_command(text: str, variant: AnyVariant) -> Spec:
    """Any engine process, by its command or its registered name; ValueError if the command is malformed, names no
    program, or does not play this variant."""
    engine = registry.engine_of(text)
    words = engine.words
    misfit = engine.misfit((variant.name, *variant.aliases))
    if misfit is not None:
        raise ValueError(misfit)
    missing = registry.no_program(words[0])
    if missing is not None:
        raise ValueError(f"engine {missing}")
    return Spec(
        command=words,
        registered=engine.name,
        clock=engine.clock,
        letters=engine.letters,
        options=engine.options,
    )


def without_clock(limits: Limits, side: SideLetter) -> Limits:
    """The same limits for an engine without support for clocks: a fixed time for this move."""
    index = "ad".index(side)
    left = limits.clock[index]
    if left is None:
        return limits
    share = max(1, int(movetime(left, limits.inc[index] or 0, limits.movestogo)))
    return Limits(limits.depth, limits.nodes, limits.mate, min(share, limits.movetime or share))


@dataclass(frozen=True, slots=True)
class Question:
    """A question to an opponent: who is asked, the purpose, the position, the limits, and the number of lines.

    `game` counts the games of this session, because engines are told about new games. `book` lets our levels begin with
    moves of their opening book.
    """

    opponent: Opponent
    purpose: Purpose
    side: SideLetter
    position: PositionSpec
    game: int
    limits: Limits
    seed: int | None = None
    lines: int = 1
    book: bool = False


class Opponent:
    """The process behind a `Spec`: started when needed, and sent the whole game with every question."""

    def __init__(
        self,
        spec: Spec,
        traffic: Traffic | None = None,
        on_compiling: Callable[[Progress], None] | None = None,
    ) -> None:
        self.spec = spec
        self.failures = 0
        self._traffic = traffic
        self._on_compiling = on_compiling
        self._engine: Engine | None = None
        self._set_up_as: Spec | None = None
        self._prepared: tuple[AnyVariant, int] | None = None
        self._busy = asyncio.Lock()
        self._search: Search | None = None
        self._closed = False

    @property
    def name(self) -> str:
        """The name that the engine gives itself, once known; ours is named by its level, a registered engine by its
        registered name."""
        if self.spec.own or self.spec.registered or self._engine is None:
            return self.spec.name
        return plain(self._engine.name)[:40] or self.spec.name

    @property
    def compiling(self) -> Progress | None:
        """What the process is compiling; None if nothing."""
        return None if self._engine is None else self._engine.compiling

    def become(self, spec: Spec) -> bool:
        """Play as `spec` from the next question; False if that needs another process."""
        if not (self.spec.own and spec.own):
            return False
        self.spec = spec
        return True

    async def prepare(
        self, variant: AnyVariant, game: int, side: SideLetter, seed: int | None = None, book: bool = False
    ) -> None:
        """Get a process ready to play `side` in game number `game`; EngineError if that fails."""
        async with self._busy:
            await self._ready(variant, game, side, seed, book)

    async def _ready(
        self, variant: AnyVariant, game: int, side: SideLetter, seed: int | None, book: bool
    ) -> Engine:
        if self._engine is not None and self._engine.failure is not None:
            await self._drop()
        if self._engine is None:
            # `close` during the start finds no process to end, so the flag is checked again after it.
            command: Sequence[str] = self.spec.command or own_command()
            proto = "uti" if self.spec.own else "auto"
            self._engine = await Engine.start(
                command, proto, on_traffic=self._traffic, on_compiling=self._on_compiling
            )
            if self._closed:
                await self._drop()
                raise EngineError(f"{self.spec.name} is no longer needed")
            self._prepared = self._set_up_as = None
        # `close` may end the process meanwhile; asking it anything then raises EngineError.
        engine = self._engine
        other = self._prepared is None or self._prepared[0] is not variant
        if self._set_up_as != self.spec or (other and self.spec.own):
            await self._set_up(engine, variant, seed, book)
        if other and not self.spec.own:
            await choose(engine, variant)
        if self._prepared != (variant, game):
            # Adapters for other programs must know their side before the clock runs.
            await self._set("Side", side)
            await engine.new_game()
            self._prepared = (variant, game)
        return engine

    async def _set_up(self, engine: Engine, variant: AnyVariant, seed: int | None, book: bool) -> None:
        if self.spec.own:
            # All at once: ours gets ready before each answer, and would compile what is played by default, or a player
            # at another level.
            level = HIGHEST if self.spec.level is None else self.spec.level
            await choose(engine, variant, {"Player": self.spec.player, OPTION: level})
            if book:
                await engine.set_option("OwnBook", self.spec.level is not None)
        for name, value in self.spec.options.items():
            await engine.set_option(name, value)
        announced = engine.options.get("seed")
        if seed is not None and announced is not None and announced.type == "spin":
            low, high = announced.minimum or 0, announced.maximum or seed
            await engine.set_option("Seed", low + seed % max(1, high - low + 1))
        self._set_up_as = self.spec

    async def _set(self, name: str, value: str | int | bool) -> None:
        """Set an option if the engine has it."""
        if self._engine is not None and name.casefold() in self._engine.options:
            await self._engine.set_option(name, value)

    async def think(
        self, asked: Question, wanted: Callable[[], bool], begun: Callable[[Search], None]
    ) -> Answer | None:
        """Ask for a move; `begun` is called when the question has been sent.

        None if the answer is no longer `wanted` by then. EngineError if there is no answer; in that case the process is
        ended, and the next question starts another.
        """
        async with self._busy:
            try:
                return await self._think(asked, wanted, begun)
            except EngineError:
                await self._drop()
                raise

    async def _think(
        self, asked: Question, wanted: Callable[[], bool], begun: Callable[[Search], None]
    ) -> Answer | None:
        if not wanted():
            return None
        engine = await self._ready(asked.position.variant, asked.game, asked.side, asked.seed, asked.book)
        await self._set("MultiPV", asked.lines)
        await self._set("UCI_ShowWDL", True)
        if not wanted():
            return None
        start = asked.position.start
        if start is not None and self.spec.letters == "adk":
            start = in_adk(start)
        limits = asked.limits
        if self.spec.clock == "movetime":
            limits = without_clock(limits, asked.side)
        engine.position("startpos" if start is None else f"fen {start}", asked.position.moves)
        self._search = await engine.go(limits, timeout=_patience(limits))
        if not wanted():
            await self._search.stop()
            return None
        begun(self._search)
        return await self._search

    async def halt(self) -> None:
        """End the running search; its caller gets the answer. Never fails."""
        search = self._search
        if search is not None and not search.done:
            with contextlib.suppress(EngineError):
                await search.stop()

    async def _drop(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            # A foreign program may need time to clean up; ours has nothing to lose.
            await (end(engine) if self.spec.own else end(engine, 0.2, 0.5))

    async def rest(self) -> None:
        """End the process, even in the middle of a search; the next question starts another. Never fails."""
        with contextlib.suppress(EngineError):
            await self._drop()

    async def close(self) -> None:
        """End the process, even while it is being started; no other one will be started."""
        self._closed = True
        await self.rest()

    async def idle(self) -> None:
        """Returns when no question is open."""
        async with self._busy:
            pass


def _patience(limits: Limits) -> float | None:
    """Seconds to wait for an answer; None for the client's default."""
    if limits.movetime is not None:
        return limits.movetime / 1000 + GRACE
    return None


def plain(text: str) -> str:
    """Text from outside without control characters."""
    return "".join(sign if sign.isprintable() else " " for sign in text).strip()


# Who plays each side


PERSON: Final = "person"


class Player:
    """One side: a person or an engine. `score` is its engine's latest score for itself in centipawns (a forced end is a
    very large one)."""

    def __init__(self) -> None:
        self.opponent: Opponent | None = None
        self.score: int | None = None

    @property
    def name(self) -> str:
        """The player's name on screen."""
        return PERSON if self.opponent is None else self.opponent.name


class Players:
    """Both sides. `rival` takes over a side that a person leaves, `helper` is our engine for hints and analysis, and
    `substitute` moves for a person who types `go`."""

    def __init__(
        self,
        events: Events,
        traffic: Traffic | None,
        on_compiling: Callable[[Progress], None],
    ) -> None:
        self.seed: int | None = None
        self.book = False
        self.rival = Spec(player="default", level=DEFAULT_LEVEL)
        self._events = events
        self._traffic = traffic
        self._on_compiling = on_compiling
        self.helper = self._opponent(Spec())
        self.substitute = self._opponent(self.rival)
        self._players: dict[SideLetter, Player] = {"a": Player(), "d": Player()}
        self._leaving: set[asyncio.Task[None]] = set()
        self._warming: set[asyncio.Task[None]] = set()

    def __getitem__(self, side: SideLetter) -> Player:
        return self._players[side]

    def values(self) -> ValuesView[Player]:
        """Both players, attackers first."""
        return self._players.values()

    def items(self) -> ItemsView[SideLetter, Player]:
        """Both sides with their players, attackers first."""
        return self._players.items()

    @property
    def persons(self) -> list[SideLetter]:
        """The sides that persons play."""
        return [side for side, player in self._players.items() if player.opponent is None]

    @property
    def engines(self) -> list[Opponent]:
        """The engines that play."""
        return [player.opponent for player in self._players.values() if player.opponent is not None]

    def forget_scores(self) -> None:
        """Forget the scores, because another game begins."""
        for player in self._players.values():
            player.score = None

    def assign(self, side: SideLetter, spec: Spec | None) -> None:
        """Let an engine or a person play a side; if one of our engines already plays it, it is reconfigured."""
        player = self._players[side]
        player.score = None
        if spec is not None and player.opponent is not None and player.opponent.become(spec):
            player.opponent.failures = 0
            return
        if player.opponent is not None:
            self._spawn(player.opponent.close(), self._leaving)
        player.opponent = None if spec is None else self._opponent(spec)

    @property
    def follows(self) -> bool:
        """Whether an opponent's level follows the user's results."""
        return self.rival.auto or any(opponent.spec.auto for opponent in self.engines)

    def follow(self, level: int) -> None:
        """Set this level for opponents that follow the user's results."""
        if self.rival.auto:
            self.rival = replace(self.rival, level=level)
        for opponent in self.engines:
            if opponent.spec.auto:
                opponent.become(replace(opponent.spec, level=level))

    def _opponent(self, spec: Spec) -> Opponent:
        return Opponent(spec, self._traffic, self._on_compiling)

    @property
    def everybody(self) -> list[Opponent]:
        """All engines, including those that only help."""
        return [*self.engines, self.helper, self.substitute]

    def release(self, opponent: Opponent) -> None:
        """Let a person take over an engine's side."""
        for player in self._players.values():
            if player.opponent is opponent:
                player.opponent = None

    def warm_up(self, variant: AnyVariant, game: int) -> None:
        """Start the engines before they are needed; a failure is reported when they are."""

        async def prepare(side: SideLetter, opponent: Opponent) -> None:
            try:
                await opponent.prepare(variant, game, side, self.seed, self.book)
            except (EngineError, ValueError, OSError):
                await opponent.rest()
            self._events.changed()

        for side, player in self._players.items():
            if player.opponent is not None:
                self._spawn(prepare(side, player.opponent), self._warming)

    def _spawn(self, work: Coroutine[Any, Any, None], among: set[asyncio.Task[None]]) -> None:
        task = asyncio.ensure_future(work)
        among.add(task)
        task.add_done_callback(among.discard)

    async def close(self) -> None:
        """End every process."""
        for task in self._warming:
            task.cancel()
        closing = [opponent.close() for opponent in self.everybody]
        await asyncio.gather(*self._warming, *closing, *self._leaving, return_exceptions=True)
