"""The review of a game: our engine analyses every position of its main line, and each move is judged by what it lost.

The analysis runs in a separate task beside the game; results enter the tree in the task that owns the game. A stopped
review keeps its results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hnefi.engine.catalogue import GAMES
from hnefi.engine.records.record import PLY_LIMIT
from hnefi.engine.search.types import Limits
from hnefi.engine.sides import Outcome, Reason, Side
from hnefi.engine.squares import move_name
from hnefi.protocol.client import EngineError
from hnefi.protocol.hosts.assessment import remarks, text_chart
from hnefi.protocol.hosts.assessment.values import (
    Assessed,
    Line,
    MoveAssessment,
    PositionAnalysis,
    TurningPoint,
    called,
    look_of,
)
from hnefi.protocol.hosts.assessment.verdicts import Played, Thresholds, assessed, better_lines

from .game import Facts, Node, PositionSpec, move_number, next_side
from .opponents import Question
from .rules_process import IllegalPosition

if TYPE_CHECKING:
    from .game_session import GameSession

NODES: Final = 100_000
"""Nodes per position by default."""
LINES: Final = 2
"""Lines per position; the second shows whether there was another good move."""
FAILURES: Final = 3
"""Consecutive positions without an answer after which the review ends."""


class Review:
    """One review. `nodes` are the nodes of the main line, including the start; `done` of them have been analysed."""

    def __init__(
        self,
        session: GameSession,
        limit: int,
        ended: Callable[[Review], None],
        speak: Callable[[str], object],
    ) -> None:
        self.nodes = [session.game.root, *session.game.root.tip().line()]
        self.limit = limit
        self.done = 0
        self.running = True
        self.failure = ""
        self.result: Assessed | None = None
        self._session = session
        self._start = session.game.position_of(session.game.root)
        self._game = session.number
        self._ended = ended
        self._speak = speak
        self._wanted = True
        self._facts: list[Facts] = []
        self._looks: list[PositionAnalysis | None] = [None] * len(self.nodes)
        self._better: dict[int, list[tuple[str, tuple[str, ...]]]] = {}
        """The better lines, with captures for each move, by the ply that was played instead."""
        self._task = asyncio.ensure_future(self._run())

    @property
    def progress(self) -> str:
        """The progress: `review 12 of 41`; empty when it is over."""
        return f"review {self.done} of {len(self.nodes)}" if self.running else ""

    @property
    def empty(self) -> bool:
        """Whether it has found nothing: no position was analysed."""
        return all(look is None or bool(look.problem) for look in self._looks)

    @property
    def current(self) -> bool:
        """Whether the main line is still the one that was analysed."""
        return [self._session.game.root, *self._session.game.root.tip().line()] == self.nodes

    async def stop(self) -> None:
        """End the review with the results so far."""
        self._wanted = False
        await self._session.players.helper.halt()

    def drop(self) -> None:
        """Discard the review."""
        self._wanted = self.running = False
        self._task.cancel()

    async def close(self) -> None:
        """End it, and wait until nothing is running."""
        self.drop()
        await asyncio.gather(self._task, return_exceptions=True)

    # Questions

    async def _run(self) -> None:
        try:
            await self._look_at_all()
            await self._play_better_lines()
        except (EngineError, IllegalPosition, ValueError, OSError) as error:
            self.failure = str(error)
        self.running = False
        self._ended(self)

    async def _look_at_all(self) -> None:
        moves: list[str] = []
        failures = 0
        quarter = -(-len(self.nodes) // 4)
        for ply, node in enumerate(self.nodes):
            moves += [node.text] if ply else []
            facts = node.facts
            if facts is None or not facts.asked:
                facts = await self._session.rules.facts(self._position(moves))
            self._facts.append(facts)
            try:
                look = await self._look(facts, self._position(moves))
                failures = 0
            except EngineError as error:
                failures += 1
                if failures == FAILURES:
                    raise
                look = PositionAnalysis("ad".index(facts.side), problem=str(error))
            if not self._wanted:
                return
            self._looks[ply] = look
            self.done = ply + 1
            if self.done % quarter == 0 and self.done < len(self.nodes):
                self._speak(f"Review: {self.done} of {len(self.nodes)} positions.")
            self._session.events.changed()

    def _position(self, moves: Sequence[str]) -> PositionSpec:
        return replace(self._start, moves=tuple(moves))

    async def _look(self, facts: Facts, position: PositionSpec) -> PositionAnalysis | None:
        side = "ad".index(facts.side)
        if facts.result is not None and facts.reason is not None:
            winner = None if facts.result == "draw" else Side.of(facts.result)
            return PositionAnalysis(side, outcome=Outcome(winner, Reason(facts.reason)))
        helper = self._session.players.helper
        question = Question(
            helper,
            "analysis",
            facts.side,
            position,
            self._game,
            Limits(nodes=self.limit),
            self._session.players.seed,
            LINES,
        )
        answer = await helper.think(question, lambda: self._wanted, lambda _: None)
        if answer is None:
            return None
        return look_of(answer.infos[:LINES], side, {move.text for move in facts.legal}, remarks.SHOWN)

    async def _play_better_lines(self) -> None:
        """Check with the rules the lines that become variations; illegal parts are cut off."""
        for judged in self._assessed().judged:
            before = self._looks[judged.ply - 1]
            for line in () if before is None else better_lines(judged, before, 1):
                moves = [node.text for node in self.nodes[1 : judged.ply]]
                facts = self._facts[judged.ply - 1]
                found: list[tuple[str, tuple[str, ...]]] = []
                for text in map(move_name, line.moves):
                    if found:
                        facts = await self._session.rules.facts(self._position(moves))
                    move = next((move for move in facts.legal if move.text == text), None)
                    if move is None:
                        break
                    found.append((text, move.captures))
                    moves.append(text)
                self._better[judged.ply] = found

    def _assessed(self) -> Assessed:
        played = [
            Played("ad".index(node.side), move_number(node.text), self._choices(ply))
            for ply, node in enumerate(self.nodes[1:])
        ]
        return assessed(played, self._looks, Thresholds(), GAMES[self._start.variant.game].sides)

    # Results

    def conclude(self) -> None:
        """Write scores, remarks, better lines and accuracy into the tree, in the task that owns the game."""
        self.result = self._assessed()
        for judged, node in zip(self.result.judged, self.nodes[1:], strict=True):
            self._annotate(judged, node)
        game = self._session.game
        name = self._session.players.helper.name
        game.tags = tuple(remarks.with_tags(game.tags, self.result, name, f"{self.limit} nodes"))

    def _choices(self, ply: int) -> int:
        """The number of legal moves; two if the position was not analysed."""
        return len(self._facts[ply].legal) if ply < len(self._facts) else 2

    def _annotate(self, judged: MoveAssessment, node: Node) -> None:
        before, after = self._looks[judged.ply - 1], self._looks[judged.ply]
        if before is None or after is None:
            return
        node.cp, node.mate, node.depth = remarks.score_of(judged.side, after)
        node.comment = remarks.without_remark(node.comment)
        if judged.sign:
            node.comment = remarks.with_remark(node.comment, self.said(judged))
        for line in better_lines(judged, before, 1):
            self._grow(node, line, self._better.get(judged.ply, []))

    def _grow(self, node: Node, line: Line, better: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        """Add a better line as a variation, unless it exists already."""
        game, parent = self._session.game, node.parent
        assert parent is not None
        if not better or game.size + len(better) > PLY_LIMIT:
            return
        if any(child.text == better[0][0] for child in parent.children):
            return
        for number, (text, captures) in enumerate(better):
            grown = Node(text, next_side(parent, move_number(text)), parent, parent.ply + 1, captures)
            if number == 0:
                grown.comment, grown.cp, grown.mate, grown.depth = (
                    remarks.SIGN,
                    line.cp,
                    line.mate,
                    line.depth,
                )
            parent.children.append(grown)
            game.size += 1
            parent = grown

    # Output

    def said(self, judged: MoveAssessment) -> str:
        """`?? blunder: 62 % -> 12 %; better d3a3xa2 (defenders +0.35)`."""
        assert self.result is not None
        if judged.found:
            return f"{judged.sign} the only good move: everything else was a mistake"
        better = ""
        if judged.best is not None:
            text = move_name(judged.best.moves[0])
            legal = {move.text: move.long for move in self._facts[judged.ply - 1].legal}
            better = legal.get(text, text)
        return f"{judged.sign} {remarks.sentence(judged, better, self.result.sides)}"

    def remarkable(self) -> list[MoveAssessment]:
        """The marked moves."""
        assert self.result is not None
        return [judged for judged in self.result.judged if judged.sign]

    def report(self, *, plain: bool) -> Iterator[str]:
        """Everything: the remarkable moves, the chart of chances, accuracy side by side."""
        result = self.result
        assert result is not None
        for judged in self.remarkable():
            node = self.nodes[judged.ply]
            move = node.text + "".join(f"x{square}" for square in node.captures or ())
            yield f"{judged.ply:>4}  {move} ({result.sides[judged.side]}) {self.said(judged)}"
        if not self.remarkable():
            yield "No inaccuracies, mistakes or blunders."
        yield ""
        yield f"What {called(result.sides[0])} may expect, ply by ply:"
        yield from text_chart.sketch(result, plain=plain)
        if any(judged.noted for judged in result.judged):
            yield text_chart.LEGEND
        yield ""
        yield from text_chart.sides_table(result)
        yield from self.summary()[1:]

    def summary(self) -> Sequence[str]:
        """A few lines: the accuracy of both sides, and missed wins."""
        result = self.result
        assert result is not None
        rates = [f"{side} {text_chart.rates(result, number)[0]}" for number, side in enumerate(result.sides)]
        said = [f"Accuracy: {', '.join(rates)}."]
        lost = [
            judged for judged in result.judged if judged.turn in (TurningPoint.MISSED, TurningPoint.THROWN)
        ]
        if lost:
            plies = ", ".join(f"ply {judged.ply} ({result.sides[judged.side]})" for judged in lost[:8])
            said.append(f"Missed wins: {plies}{' …' if len(lost) > 8 else ''}.")
        unknown = sum(look is None or bool(look.problem) for look in result.looks)
        if unknown:
            said.append(f"Not analysed: {unknown} of {len(result.looks)} positions.")
        if self.failure:
            said.append(f"Our engine failed: {self.failure}.")
        return said
