"""A server for two players, in the place of the competition's: the same frames, and a reason for every end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from hnefi.engine.sides import Reason, Side
from hnefi.protocol.hosts.journal import Journal
from hnefi.protocol.hosts.rulebook import Facts, Line, RulesEngine

from .frames import COLOURS, State, board_of, header, turn_of
from .host import Action, Guest, GuestError, Host, Nonsense, Traffic

LOG = logging.getLogger("hnefi.tablut")

PLY_LIMIT: Final = 10_000
"""Plies of one game; repetition ends every real one long before."""
WHITE, BLACK = Side.DEFENDERS, Side.ATTACKERS


@dataclass(frozen=True, slots=True)
class Settings:
    """How games are played: seconds for a move, and for a name; how many illegal moves each side has free."""

    seconds: float = 60.0
    tolerate: int = 0
    start: float = 60.0
    bind: str = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class End:
    """How a game ended: result (`a`, `d`, `draw`; None for none), reason, and a sentence."""

    result: str | None
    reason: Reason
    why: str


class Player(Protocol):
    """Who can play a game: a `Guest`, or a stand-in for one."""

    name: str

    @property
    def side(self) -> Side: ...
    @property
    def word(self) -> str: ...
    async def tell(self, state: State) -> None: ...
    async def action(self, timeout: float | None = None) -> Action: ...


@dataclass(frozen=True, slots=True)
class Played:
    """One ply of a game."""

    number: int
    side: Side
    move: str
    captures: tuple[str, ...]
    seconds: float

    @property
    def text(self) -> str:
        """As a person reads it."""
        taken = "".join(f"x{square}" for square in self.captures)
        return f"{self.number:3}. {COLOURS[self.side]} {self.move}{taken} ({self.seconds:.1f} s)"


class Match:
    """One game between two players who have said their names."""

    def __init__(
        self,
        rules: RulesEngine,
        players: Mapping[Side, Player],
        settings: Settings,
        journal: Journal | None = None,
        on_ply: Callable[[Played], None] | None = None,
        ply_limit: int = PLY_LIMIT,
    ) -> None:
        self._rules = rules
        self._players = players
        self._settings = settings
        self._on_ply = on_ply
        self._ply_limit = ply_limit
        self._errors = {WHITE: 0, BLACK: 0}
        self.plies = 0
        names = (players[BLACK].name, players[WHITE].name)
        self._log = None if journal is None else journal.begin(header(names))

    async def play(self) -> End:
        """The game to its end, which is written down. EngineError if our own engine fails."""
        try:
            end = await self._play()
        except BaseException:
            if self._log is not None:
                self._log.end(None, Reason.INTERRUPTED, "the server was told to end, or failed")
            raise
        if self._log is not None:
            self._log.end(end.result, end.reason, end.why)
        return end

    async def _play(self) -> End:
        line = Line()
        facts = await self._rules.facts(line)
        while self.plies < self._ply_limit:
            await self._tell(facts)
            if facts.result is not None:
                return End(facts.result, Reason(facts.reason), Reason(facts.reason).words)
            mover = self._players[facts.side]
            try:
                action = await mover.action(self._settings.seconds)
                move, seconds = action.move, action.seconds
            except TimeoutError:
                return self._forfeit(mover, Reason.TIME, f"no move within {self._settings.seconds:g} s")
            except Nonsense as error:
                move, seconds = "", 0.0
                problem = str(error)
            except GuestError as error:
                return self._forfeit(mover, Reason.DISCONNECT, str(error))
            else:
                problem = f"{mover.word} played {move}: not legal"
            if move not in facts.legal:
                self._errors[mover.side] += 1
                if self._errors[mover.side] > self._settings.tolerate:
                    return self._forfeit(mover, Reason.ILLEGAL_MOVE, problem)
                LOG.warning("%s: tolerated (%d)", problem, self._errors[mover.side])
                continue
            self.plies += 1
            if self._log is not None:
                self._log.ply(move, facts.legal[move], time=round(seconds * 1000))
            if self._on_ply is not None:
                self._on_ply(Played(self.plies, mover.side, move, facts.legal[move], seconds))
            line = line.play(move)
            facts = await self._rules.facts(line)
        return End("draw", Reason.PLY_CAP, f"{self._ply_limit} plies")

    async def _tell(self, facts: Facts) -> None:
        state = State(board_of(facts.fen), turn_of(facts.side, facts.result))
        for player in self._players.values():
            try:
                await player.tell(state)
            except GuestError as error:
                LOG.warning("%s", error)  # known when it is asked

    def _forfeit(self, loser: Player, reason: Reason, why: str) -> End:
        return End(loser.side.other.letter, reason, why)


async def serve(
    settings: Settings,
    games: int,
    rules: RulesEngine,
    journal: Journal | None,
    say: Callable[[str], None],
    traffic: Traffic | None = None,
) -> None:
    """Host games one after the other. HostError if the ports are taken; EngineError."""
    hosts: dict[Side, Host] = {}
    try:
        for side in (WHITE, BLACK):
            hosts[side] = await Host.open(side, settings.bind, traffic)
        places = ", ".join(f"{COLOURS[side]} {host.port}" for side, host in hosts.items())
        say(f"listening at {settings.bind}: {places}")
        for number in range(1, games + 1):
            await _game(number, hosts, settings, rules, journal, say)
    finally:
        for host in hosts.values():
            await host.close()


async def _game(
    number: int,
    hosts: dict[Side, Host],
    settings: Settings,
    rules: RulesEngine,
    journal: Journal | None,
    say: Callable[[str], None],
) -> None:
    """One game, from the arrival of the players on."""
    white, black = await asyncio.gather(*(_arrival(host, settings, say) for host in hosts.values()))
    say(f"game {number}: white {white.name or '?'}, black {black.name or '?'}")
    began = time.monotonic()

    match = Match(rules, {WHITE: white, BLACK: black}, settings, journal, lambda played: say(played.text))
    try:
        end = await match.play()
    finally:
        await asyncio.gather(white.close(), black.close())
    winner = "draw" if end.result in ("draw", None) else f"{COLOURS[Side.of(str(end.result))]} wins"
    stray = ", ".join(f"{one.word} {one.out_of_turn}" for one in (white, black) if one.out_of_turn)
    said = f"; messages out of turn: {stray}" if stray else ""
    say(
        f"game {number} over: {winner} ({end.why}), {match.plies} plies, "
        f"{time.monotonic() - began:.1f} s{said}"
    )


async def _arrival(host: Host, settings: Settings, say: Callable[[str], None]) -> Guest:
    """The next player at a port who says a name."""
    while True:
        guest = await host.arrival()
        try:
            await guest.introduce(settings.start)
            return guest
        except GuestError as error:
            say(f"{error}: waiting for another")
            await guest.close()
