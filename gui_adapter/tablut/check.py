"""Checks whether a bot follows the convention. Each step starts it again, as white and as black, and reports."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hnefi.engine.sides import Reason, Side
from hnefi.protocol.hosts.rulebook import Facts, Line, RulesEngine

from .bot import Bot, BotError, Command
from .frames import COLOURS, State, board_of, fen_of, turn_of
from .host import Action, Guest, GuestError, Traffic
from .serve import Match, Played, Player, Settings

PLIES: Final = 60
"""Plies after which a test game counts as long enough."""
PARTING: Final = 5.0
"""Seconds for a bot to end after its game."""
CUTS: Final = (1, 4, 5, 300)
"""Places at which frames are cut: within the length, after it, and in the body."""
NAME: Final = 10
SEED: Final = 1


class Failure(Exception):
    """What a bot did wrong."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of a step; `note` is for behaviour that the convention allows but that may cost games."""

    text: str
    note: bool = False


class Sparring:
    """An opponent that moves at random."""

    name = "random"

    def __init__(self, side: Side, rules: RulesEngine) -> None:
        self.side = side
        self.word = COLOURS[side]
        self._rules = rules
        self._dice = random.Random(SEED)
        self._state = State("", "")

    async def tell(self, state: State) -> None:
        """Take note of the state."""
        self._state = state

    async def action(self, timeout: float | None = None) -> Action:  # noqa: ARG002
        """A random legal move, at once."""
        facts = await self._rules.facts(Line(fen_of(self._state.board, self.side)))
        return Action(self._dice.choice(list(facts.legal)), 0.0)


class InPieces:
    """Sends states to a bot in pieces."""

    def __init__(self, guest: Guest) -> None:
        self.name, self.side, self.word = guest.name, guest.side, guest.word
        self.action = guest.action
        self._guest = guest

    async def tell(self, state: State) -> None:
        """Send the state to the bot in pieces."""
        await self._guest.tell(state, CUTS)


class Trial:
    """One bot command, tried as one colour."""

    def __init__(self, command: Command, side: Side, rules: RulesEngine, traffic: Traffic | None) -> None:
        self.side = side
        self._command = command
        self._rules = rules
        self._traffic = traffic

    async def run(self, step: Callable[[Trial, Bot], Coroutine[Any, Any, Seen]]) -> Seen:
        """Try one step with a fresh bot; raises Failure."""
        try:
            bot = await Bot.start(self._command, self.side, self._traffic)
        except BotError as error:
            raise Failure(str(error)) from None
        try:
            return await step(self, bot)
        except GuestError as error:
            raise Failure(f"{error}{await bot.fate()}") from None
        finally:
            await bot.end()

    # The steps

    async def name(self, bot: Bot) -> Seen:
        """It connects and says its name."""
        name = bot.guest.name
        fits = name.isascii() and name.isalnum() and len(name) <= NAME
        more = "" if fits else f": expected at most {NAME} letters and digits"
        return Seen(f"{name!r}{more}", note=not fits)

    async def game(self, bot: Bot) -> Seen:
        """It plays to the end of a game, legally and in time, and ends with it."""
        return await self._play(bot, bot.guest)

    async def pieces(self, bot: Bot) -> Seen:
        """The same with the length and the body of a frame arriving separately."""
        return await self._play(bot, InPieces(bot.guest))

    async def again(self, bot: Bot) -> Seen:
        """The same state again, as when a server that tolerates errors refuses its move."""
        line, facts = await self._its_turn(bot)
        first = await self._answer(bot, line, facts)
        second = await self._answer(bot, line, facts)
        if first.move == second.move:
            return Seen(
                f"it sent {first.move} again: a server that has refused a move refuses it again", note=True
            )
        return Seen(f"{first.move}, then {second.move}")

    async def alone(self, bot: Bot) -> Seen:
        """The server is gone while the bot waits for its opponent."""
        line, facts = await self._its_turn(bot)
        action = await self._answer(bot, line, facts)
        after_it = await self._rules.facts(line.play(action.move))
        await bot.guest.tell(State(board_of(after_it.fen), turn_of(after_it.side, after_it.result)))
        return await self._parting(bot, "")

    # Their parts

    async def _its_turn(self, bot: Bot) -> tuple[Line, Facts]:
        """The first position in which the bot is to move; it has been shown those before."""
        line = Line()
        facts = await self._rules.facts(line)
        if facts.side != self.side:
            await bot.guest.tell(State(board_of(facts.fen), turn_of(facts.side, None)))
            line = line.play(next(iter(facts.legal)))
            facts = await self._rules.facts(line)
        return line, facts

    async def _answer(self, bot: Bot, line: Line, facts: Facts) -> Action:
        await bot.guest.tell(State(board_of(facts.fen), turn_of(facts.side, None)))
        try:
            action = await bot.guest.action(self._command.seconds)
        except TimeoutError:
            raise Failure(f"no move within {self._command.seconds} s") from None
        if action.move not in facts.legal:
            raise Failure(
                f"{action.move} is not legal in {fen_of(board_of(facts.fen), facts.side)} (ply {len(line.moves)})"
            )
        return action

    async def _play(self, bot: Bot, player: Player) -> Seen:
        sparring = Sparring(self.side.other, self._rules)
        slowest = 0.0

        def look(played: Played) -> None:
            nonlocal slowest
            if played.side == self.side:
                slowest = max(slowest, played.seconds)

        players: Mapping[Side, Player] = {self.side: player, sparring.side: sparring}
        match = Match(self._rules, players, Settings(self._command.seconds), on_ply=look, ply_limit=PLIES)
        end = await match.play()
        if end.reason in FAULTS:
            raise Failure(f"{end.why} (ply {match.plies + 1}){await bot.fate() if bot.guest.gone else ''}")
        how = "not over yet" if end.reason == Reason.PLY_CAP else end.why
        said = f"{match.plies} plies, {how}, slowest move {slowest:.2f} s"
        if bot.guest.out_of_turn:
            return Seen(f"{said}; {bot.guest.out_of_turn} messages out of turn: "
                        "the server takes them for the next move", note=True)  # fmt: skip
        return await self._parting(bot, f"{said}, ")

    async def _parting(self, bot: Bot, said: str) -> Seen:
        began = time.monotonic()
        await bot.guest.close()
        if await bot.left(PARTING) is None:
            return Seen(f"{said}still running {PARTING:g} s after its server had gone", note=True)
        return Seen(f"{said}ended after {time.monotonic() - began:.1f} s")


FAULTS: Final = frozenset({Reason.TIME, Reason.ILLEGAL_MOVE, Reason.DISCONNECT})
STEPS: Final[Mapping[str, Callable[[Trial, Bot], Coroutine[Any, Any, Seen]]]] = {
    "name": Trial.name,
    "whole game": Trial.game,
    "frames in pieces": Trial.pieces,
    "move refused": Trial.again,
    "server gone": Trial.alone,
}


async def check(
    command: Command, rules: RulesEngine, say: Callable[[str], None], traffic: Traffic | None = None
) -> bool:
    """Try a bot in both colours; returns whether it has passed every step. EngineError if our own engine fails."""
    failed = notes = 0
    for side in (Side.DEFENDERS, Side.ATTACKERS):
        trial = Trial(command, side, rules, traffic)
        for name, step in STEPS.items():
            try:
                seen = await trial.run(step)
            except Failure as failure:
                failed += 1
                verdict, text = "FAIL", str(failure)
            else:
                notes += seen.note
                verdict, text = "note" if seen.note else "ok", seen.text
            say(f"{COLOURS[side]:<5}  {name:<16}  {verdict:<4}  {text}")
            if name == "name" and verdict == "FAIL":
                break
    say(f"{command.name}: {f'{failed} failed' if failed else 'follows the convention'}, {notes} notes")
    return not failed
