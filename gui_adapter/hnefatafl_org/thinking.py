"""Questions to our engines about a game: our move, and how a game ended by the server did end."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hnefi.engine.search.types import Score
from hnefi.engine.sides import Reason
from hnefi.protocol.hosts.journal import Entry
from hnefi.protocol.hosts.rulebook import EngineSlot, IllegalPosition, Line, RulesEngine, Thinker, until

from .game import Game


@dataclass(frozen=True, slots=True)
class Choice:
    """Our move, or None with the reason in `why`; the position, and the engine's score of it for us."""

    move: str | None
    why: str = ""
    fen: str = ""
    score: Score | None = None


class Engines:
    """An engine of ours that answers questions about the rules, and the engine that chooses moves, perhaps the same."""

    def __init__(self, rules: EngineSlot, chooser: EngineSlot) -> None:
        self._slots = (rules, chooser)
        self._rules = RulesEngine(rules)
        self._thinker = Thinker(chooser)
        self._variant = ""
        self.ready = asyncio.Event()
        """Set once the engines have started."""

    async def start(self, variant: str) -> None:
        """Start the engines with this variant; EngineError. Questions asked meanwhile wait."""
        await self.play(variant)
        self.ready.set()

    async def play(self, variant: str) -> None:
        """Switch to a variant; EngineError."""
        if variant != self._variant:
            await asyncio.gather(*(slot.choose(f"variant {variant}") for slot in dict.fromkeys(self._slots)))
            self._variant = variant

    async def close(self) -> None:
        """End the processes."""
        await asyncio.gather(*(slot.close() for slot in self._slots))

    async def choose(self, game: Game, deadline: float, refused: Collection[str]) -> Choice:
        """Our move before `deadline` (`time.monotonic()`), none of those that the server has `refused`. EngineError."""
        await self.ready.wait()
        await self.play(game.variant)
        line = Line(None, game.moves)
        try:
            facts = await self._rules.facts(line)
            if facts.result is not None:
                # By our rules the game is over, but the server continues; so do we, without the history.
                line = Line(f"{' '.join(facts.fen.split()[:2])} 0 1")
                facts = await self._rules.facts(line)
        except IllegalPosition as error:
            return Choice(None, f"our rules do not allow the moves that were played: {error}")
        legal = [move for move in facts.legal if move not in refused]
        if not legal:
            return Choice(None, "by our rules there is no move", facts.fen)
        if len(legal) == 1:
            return Choice(legal[0], fen=facts.fen)
        answer = await self._thinker.best(line, facts, until(deadline), legal if refused else ())
        return Choice(answer.move, fen=facts.fen, score=answer.info.score if answer.info else None)

    async def ended(self, game: Game, tail: Sequence[str]) -> tuple[list[Entry], str | None, str]:
        """The plies of `tail`, which the server has not told with their captures, and result and reason by our rules.

        As far as they are legal; EngineError.
        """
        await self.ready.wait()
        await self.play(game.variant)
        entries: list[Entry] = []
        line = Line(None, game.moves)
        try:
            for move in tail:
                captures = (await self._rules.facts(line)).legal.get(move)
                if captures is None:
                    return entries, None, ""
                entries.append(Entry(move, captures))
                line = line.play(move)
            facts = await self._rules.facts(line)
        except IllegalPosition:
            return entries, None, ""
        return entries, facts.result, facts.reason or Reason.ADJUDICATED
