"""The session: the game, the players of both sides, the clock, and questions to engines.

Everything here runs in the controller's single task. The end of a game is decided in one place, `_arrive`, and
everything that ends with it (clock, search, files) ends in `_finish`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from hnefi.engine.catalogue import GAMES
from hnefi.engine.compile.progress import Progress, unkept_text
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.records.record import BY_RULES, GameRecord
from hnefi.engine.search.types import Limits
from hnefi.engine.sides import Reason
from hnefi.protocol.client import Answer, EngineError
from hnefi.protocol.hosts.rulebook import special_squares
from hnefi.protocol.hosts.standing import Ladder, Standing, StandingError

from . import questions
from .clock import GameClock, Pace
from .events import Events
from .game import Facts, Game, Node, PositionSpec
from .opponents import Opponent, Players, Question, Spec
from .questions import Questions
from .review import Review
from .rules_process import IllegalPosition, RulesProcess, Traffic
from .saving import Files, game_of, record_of, tags_of
from .values import End, Mode, Move, Purpose, SideLetter, other

if TYPE_CHECKING:
    from .watching import Watcher


class GameSession:
    """One game after another; `events` is told about unsolicited news and visible changes."""

    def __init__(
        self,
        variant: AnyVariant,
        rules: RulesProcess,
        files: Files,
        events: Events,
        traffic: Traffic | None = None,
    ) -> None:
        self.rules = rules
        self.rules.on_compiling = self._hear_compiler
        self.files = files
        self.say = events.say
        self.say_unkept: Callable[[str], object] = events.say
        """Called once with a sentence if compiled code cannot be cached."""
        self._unkept = ""
        self.speed = 0.0
        self.players = Players(events, traffic, self._hear_compiler)
        self.pace = Pace(events.post, self._look_at_clock)
        self.paused = False
        self.looking = False
        """An earlier position is shown, and nobody is asked to move."""
        self.analysing = 0
        """The number of lines of an analysis; 0 without analysis."""
        self.replaying: float | None = None
        """Seconds between two plies of a replay."""
        self.hint_later: Limits | None = None
        """The limits of a hint that was asked for while an engine was to move; a person gets it at the next turn."""
        self.offered: SideLetter | None = None
        """The side that offers a draw."""
        self.ready = False
        """Whether the rules have been loaded."""
        self.failure = 0
        """The exit status after an engine's failure."""
        self.arrivals = 0
        """The number of positions that were reached or looked at."""
        self.number = 0
        """The number of the game, from 1."""
        self.standing = Standing()
        self.ladder = Ladder(keep=files.keep)
        self._counted = 0
        """The last game that `standing` or `ladder` has counted."""
        self.rated = True
        """Whether the result may count for `ladder`: the game began here at the start position, and nobody has changed
        seats since."""
        self.questions = Questions(events, self._begun, self._answered, self._failed)
        self.review: Review | None = None
        """The last review of this game."""
        self.events = events
        self.watcher: Watcher | None = None
        """The watcher of a game that is played elsewhere, by `guests`."""
        self.guests: tuple[str, str] | None = None
        self.limits_of_analysis = Limits(infinite=True)
        self._take(Game(variant))

    @property
    def variant(self) -> AnyVariant:
        """The variant of the game."""
        return self.game.variant

    @property
    def facts(self) -> Facts:
        """The facts about the position on display."""
        facts = self.game.at.facts
        assert facts is not None
        return facts

    @property
    def end(self) -> End | None:
        """How the game ended at the position on display, if it did."""
        node = self.game.at
        if node.end is not None:
            return node.end
        facts = node.facts
        if facts is None or facts.result is None or facts.reason is None:
            return None
        return self._end(facts.result, facts.reason)

    @property
    def compiling(self) -> Progress | None:
        """What an engine is compiling, preferring the rules' process; None if nothing. A process that only waits for
        another one's compiling counts only if none of our engines is that other one."""
        engines = [self.rules.compiling, *(opponent.compiling for opponent in self.players.everybody)]
        told = [progress for progress in engines if progress is not None]
        return min(told, key=lambda progress: progress.elsewhere, default=None)

    def _hear_compiler(self, progress: Progress) -> None:
        """Handle the progress of compiling in one of our engines."""
        if progress.unkept and not self._unkept:
            self._unkept = progress.unkept
            self.say_unkept(unkept_text(progress.unkept))
        self.events.tell()

    @property
    def mode(self) -> Mode:
        """The current use of the session."""
        if self.analysing:
            return "analysis"
        if self.looking or self.replaying is not None:
            return "replay"
        if self.watcher is not None:
            return "watch"
        return "play" if self.players.persons else "watch"

    @property
    def clock(self) -> GameClock | None:
        """The clock of this game, if it has one."""
        return self.pace.clock

    @property
    def side(self) -> SideLetter:
        """The side to move in the position on display."""
        return self.facts.side

    @property
    def names(self) -> tuple[str, str]:
        """The names of the players: attackers, defenders."""
        return self.guests or (self.players["a"].name, self.players["d"].name)

    def side_word(self, side: str) -> str:
        """The name of a side in this game."""
        return GAMES[self.variant.game].sides["ad".index(side)]

    @property
    def unfinished(self) -> bool:
        """Whether there is a game that could be continued."""
        tip = self.game.root.tip()
        over = tip.end is not None or (tip.facts is not None and tip.facts.result is not None)
        return tip.ply > 0 and not over

    @property
    def busy(self) -> bool:
        """Whether something is running that ends by itself."""
        if self.reviewing:
            return True
        asked = self.questions.asked
        if asked is not None:
            return not asked.limits.infinite
        if self.pace.waiting:
            return True
        if self.paused or not self.ready or self.watcher is not None:
            return False
        if self.replaying is not None:
            return True
        at_rest = self.looking or self.analysing or self.end is not None
        return not at_rest and self.players[self.side].opponent is not None

    @property
    def stoppable(self) -> bool:
        """Whether there is anything for `stop` to end."""
        return (
            self.questions.asked is not None
            or self.pace.waiting
            or self.watcher is not None
            or self.reviewing
        )

    @property
    def reviewing(self) -> bool:
        """Whether a review is running."""
        return self.review is not None and self.review.running

    def legal(self, text: str) -> Move | None:
        """The legal move with this text, if there is one."""
        return next((move for move in self.facts.legal if move.text == text), None)

    def record(self) -> GameRecord:
        """The whole game as a record, with everything needed to continue it."""
        return record_of(self.game, self.names, tags_of(self.players, self.clock))

    def _take(self, game: Game) -> None:
        """Switch to `game`; everything about the previous one ends."""
        self.game = game
        if self.review is not None:
            self.review.drop()
            self.review = None
        self.watcher = self.guests = None
        self.number += 1
        self.special = special_squares(game.variant.rules_lines())
        self.looking = self.paused = False
        self.analysing = 0
        self.replaying = None
        self.hint_later = None
        self.offered = None
        self.arrivals += 1
        self.players.forget_scores()
        if self.clock is not None:
            self.clock.reset(game.clocks())

    def foresee(self, variant: AnyVariant, names: tuple[str, str] | None = None) -> None:
        """Before `load_rules`, show the board of the game that is going to be continued, and no other one first."""
        self._take(Game(variant))
        self.guests = names

    async def begin(
        self,
        variant: AnyVariant,
        start: str | None = None,
        moves: tuple[str, ...] = (),
        watcher: Watcher | None = None,
    ) -> None:
        """Begin a new game; on IllegalPosition the old one stays.

        With `watcher` it is played elsewhere: nobody here moves, and nothing is recorded.
        """
        facts = await self.rules.facts(PositionSpec(variant, start))
        if moves:
            await self.rules.check(PositionSpec(variant, start, moves))
        self.put_away()
        game = Game(variant, start, facts)
        self._take(game)
        self.rated = start is None and not moves and watcher is None
        self.follow()
        self.watcher = watcher
        for text in moves:
            legal = self.legal(text)
            side = self.side
            game.play(text, side, None if legal is None else legal.captures, main=True)
            await self._look()
        await self._arrive()

    async def take_up(self, record: GameRecord, variant: AnyVariant) -> list[str]:
        """Continue a recorded game; on IllegalPosition, if the rules reject it, the old one stays.

        Returns sentences about differences between record and rules in how the game ended.
        """
        game = game_of(record, variant)
        try:
            for node in game.tips():
                await self.rules.check(game.position_of(node))
        except IllegalPosition as error:
            # Some files name no rules, and then the variant is that of the previous game.
            raise IllegalPosition(
                f"{error} (by the rules of {variant.name}: `variant NAME` or --variant chooses others)"
            ) from None
        self.put_away()
        self._take(game)
        self.rated = False
        self.pace.clock = None
        await self._look()
        doubt = self._settle_end()
        await self._arrive(news=False)
        return doubt

    def _settle_end(self) -> list[str]:
        """Compare the end in a record with the rules: only an end outside the rules is taken from the record."""
        node = self.game.at
        claimed, node.end = node.end, None
        if claimed is None or self.end is not None:
            return []
        said = self._end(claimed.result, claimed.reason)
        if Reason(claimed.reason) in BY_RULES:
            return [
                f"The record says that the game is over ({said.words}); by the rules it is not, so it continues."
            ]
        node.end = said
        return []

    def put_away(self) -> None:
        """Leave the game; an unfinished one can be resumed."""
        self.withdraw()
        self.questions.forget()
        self.pace.rest()
        self.files.put_away(self.record() if self.unfinished else None)

    async def load_rules(self) -> None:
        """Ask the rules for the first time; EngineError if they do not answer."""
        root = self.game.root
        root.facts = await self.rules.facts(self.game.position_of(root))

    async def open(self, *, held: bool = False) -> None:
        """The rules are loaded, so the game may begin. If `held`, it waits for another game to replace it."""
        self.ready = True
        if not held:
            await self._arrive()

    def assign(self, side: SideLetter, spec: Spec | None) -> None:
        """Let an engine or a person play a side."""
        self.failure = 0
        self.players.assign(side, spec)

    def follow(self) -> None:
        """Set this game's level of engines that follow the user's results. StandingError, at first, if unreadable."""
        if self.players.follows:
            self.players.follow(self.ladder.level(self.variant.game))

    def warm_up(self) -> None:
        """Start the playing engines before they are needed."""
        self.players.warm_up(self.variant, self.number)

    def set_clock(self, times: tuple[int, int] | None) -> None:
        """Use this clock from now on, with full time; None for no clock."""
        self.pace.clock = None if times is None else GameClock(*times)

    # Events

    async def play(self, move: Move, answer: Answer | None = None) -> None:
        """Play a legal move in the position on display. ValueError if the game is full."""
        side = self.side
        here = self.game.at
        main = not (self.looking or self.analysing) or not here.children
        self.pace.wait_no_more()
        self.withdraw()
        self.questions.forget("hint")
        node = self.game.play(move.text, side, move.captures, main=main)
        self.looking = False
        self.replaying = None
        self.offered = self.offered if self.offered == side else None
        if not self.analysing:
            node.clock, node.time = self.pace.moved(side)
        if answer is not None and (info := answer.info) is not None:
            # The report of the mover's engine goes into the record.
            node.depth = info.depth
            if info.score is not None:
                node.cp, node.mate = info.score.cp, info.score.mate
        if not self.analysing and self.watcher is None:
            self.files.played(self.record, node)
        await self._arrive()

    async def go_to(self, node: Node, *, looking: bool) -> None:
        """Show another position; with `looking` nobody is asked to move there."""
        self.pace.wait_no_more()
        self.withdraw()
        self.questions.forget("hint")
        self.game.at = node
        self.looking = looking
        self.offered = None
        if self.clock is not None:
            self.clock.reset(self.game.clocks())
        await self._arrive(news=False)

    async def declare(self, result: str, reason: Reason) -> None:
        """End the game by resignation, time or agreement. Removes plies taken back, which would hide the result."""
        if not self.looking:
            for child in tuple(self.game.at.children):
                self.game.remove(child)
        self.game.at.end = self._end(result, reason.value)
        await self._arrive()

    async def _look(self) -> None:
        """Ask the rules once about the position on display. If they cannot be asked, show the previous one, because a
        position without facts cannot be shown."""
        node = self.game.at
        if node.facts is None or not node.facts.asked:
            try:
                node.facts = await self.rules.facts(self.game.position)
            except BaseException:
                while self.game.at.facts is None and self.game.at.parent is not None:
                    self.game.at = self.game.at.parent
                raise
            if node.parent is not None and node.captures is None and node.parent.facts is not None:
                known = {move.text: move for move in node.parent.facts.legal}
                node.captures = known[node.text].captures if node.text in known else None

    async def _arrive(self, *, news: bool = True) -> None:
        """After a position was reached or changed, continue the game here, or end it."""
        await self._look()
        self.arrivals += 1
        if self.end is None:
            await self.move_on()
        else:
            self._finish(news)
        self.events.changed()

    def _finish(self, news: bool) -> None:
        """The game is over here: stop everything that is running."""
        end = self.end
        assert end is not None
        self.withdraw()
        self.pace.rest()
        self.analysing = 0
        self.hint_later = None
        if self.game.at is self.game.root.tip() and not self.looking:
            self.files.over(self.game.at.ply, end.result, end.reason)
        if news:
            self.say(f"The game is over: {end.words}.")
            self._count(end)

    def _count(self, end: End) -> None:
        """Count a person's game against one of our levels, once. A level that follows the user may change for the next
        game; otherwise a level may be suggested from the third game."""
        persons, engines = self.players.persons, self.players.engines
        if len(persons) != 1 or self.number == self._counted or self.replaying is not None or self.looking:
            return
        spec = engines[0].spec
        if spec.level is None or not spec.own:
            return
        self._counted = self.number
        score = 0.5 if end.result == "draw" else float(end.result == persons[0])
        if not spec.auto:
            self.standing.add(spec.level, score)
            if (said := self.standing.suggestion()) is not None:
                self.say(said)
        elif self.rated:
            try:
                self.ladder.take(self.variant.game, spec.level, score)
            except StandingError as error:
                self.say(str(error))
            self.say(self.ladder.news(self.variant.game))

    async def move_on(self) -> None:
        """Ask the side to move for its move, unless the game is held up."""
        self.pace.rest()
        if not self.ready or self.end is not None:
            return
        if self.analysing:
            self._analyse()
        elif self.replaying is not None:
            if not self.paused:
                self.pace.after(self.replaying, self.step_replay)
        elif self.looking or self.watcher is not None:
            pass
        elif self.players[self.side].opponent is None:
            self._think()
            if self.hint_later is not None:
                self.hint(self.hint_later)
        elif not self.paused:
            if self.mode == "watch" and self.game.at.ply and self.speed:
                self.pace.after(self.speed, self.ask_for_move)
            else:
                await self.ask_for_move()

    def withdraw(self) -> None:
        """Withdraw the current question; if it was for a hint, tell the user."""
        asked = self.questions.asked
        if asked is not None and asked.purpose == "hint":
            self.say("No hint: the game went on before it was found.")
        self.questions.withdraw()

    async def ask_for_move(self) -> None:
        """Let the engine of the side to move think about its move; for a person, ours."""
        opponent = self.players[self.side].opponent
        if opponent is None:
            opponent = self.players.substitute
            opponent.become(self.players.rival if self.players.rival.own else Spec())
        self.questions.ask(self._question(opponent, "move", self.pace.limits(opponent.spec)))

    def hint(self, limits: Limits) -> None:
        """Ask our engine what it would play here."""
        self.hint_later = None
        self.questions.ask(self._question(self.players.helper, "hint", limits))

    def begin_review(
        self, limit: int, told: Callable[[Review], None], speak: Callable[[str], object]
    ) -> Review:
        """Let our engine analyse every position of the main line; `told` is called when the tree is complete."""

        def ended(review: Review) -> None:
            async def event() -> None:
                if self.review is review:
                    review.conclude()
                    self.files.noted(self.record)
                    told(review)
                    self.events.changed()

            self.events.post(event)

        if self.review is not None:
            self.review.drop()
        self.review = Review(self, limit, ended, speak)
        return self.review

    async def analyse(self, lines: int) -> None:
        """Let our engine analyse every position on display, with `lines` lines; 0 ends the analysis.

        The game then continues at the current position; an engine that is to move there waits for `go`.
        """
        self.withdraw()
        self.hint_later = None
        self.analysing = lines
        if not lines:
            self.looking = self.game.at is not self.game.root.tip()
            self.paused = self.players[self.side].opponent is not None
        await self.move_on()

    def _analyse(self) -> None:
        limits = self.limits_of_analysis
        self.questions.ask(self._question(self.players.helper, "analysis", limits, self.analysing))

    def _question(self, opponent: Opponent, purpose: Purpose, limits: Limits, lines: int = 1) -> Question:
        """A question about the position on display."""
        players = self.players
        book = players.book and purpose == "move"
        position = self.game.position
        return Question(
            opponent, purpose, self.side, position, self.number, limits, players.seed, lines, book
        )

    def _think(self) -> None:
        """Begin to count the time of the side to move."""
        self.pace.think(self.side, begun=self.game.at.ply > 0)

    async def _look_at_clock(self) -> None:
        """Called ten times a second: a side without time has lost."""
        flagged = self.pace.flagged()
        if flagged is not None and self.end is None:
            await self.declare(other(flagged), Reason.TIME)
        self.events.changed()

    # Answers of engines

    async def _begun(self, question: Question) -> None:
        if question.purpose == "move":
            self._think()

    async def _answered(self, question: Question, answer: Answer) -> None:
        if question.purpose == "hint":
            questions.tell_hint(self, answer)
            if self.analysing:
                self._analyse()
        elif question.purpose == "move":
            await questions.take(self, question, answer)
        self.events.changed()

    async def _failed(self, question: Question, error: EngineError) -> None:
        await questions.fail(self, question, error)
        self.events.changed()

    # Passing time

    async def step_replay(self) -> None:
        """Advance the replay by one ply of the line on display; at its end the replay is over."""
        node = self.game.at
        if node.children:
            node = node.children[0]
        if not node.children:
            self.replaying = None
        await self.go_to(node, looking=node is not self.game.root.tip() or self.replaying is not None)

    async def halt(self) -> bool:
        """End everything that is running; returns whether anything was."""
        if self.review is not None and self.review.running:
            await self.review.stop()
            return True
        if self.replaying is not None:
            self.replaying = None
            self.looking = self.game.at is not self.game.root.tip()
            self.pace.wait_no_more()
            return True
        asked = self.questions.asked
        if self.analysing:
            await self.analyse(0)
            return True
        if self.watcher is not None and asked is None:
            self.watcher = self.guests = None
            await self.move_on()
            return True
        if self.mode == "watch" and (asked is not None or self.pace.waiting):
            self.paused = True
            self.withdraw()
            self.pace.rest()
            return True
        if asked is not None:
            self.questions.hurry()
            return True
        return False

    async def close(self) -> None:
        """End every process, and save an unfinished game."""
        self.pace.rest()
        if self.review is not None:
            await self.review.close()
        await self.questions.close()
        await asyncio.gather(self.rules.close(), self.players.close(), return_exceptions=True)

    def _end(self, result: str, reason: str) -> End:
        words = Reason(reason).words
        who = "draw" if result == "draw" else f"{self.side_word(result)} win"
        return End(cast(SideLetter, result), reason, f"{who}: {words}")
