"""Between a front end and the game: lines come in, replies and the view go out.

A front end (prompt, full screen, script) submits lines, shows replies, and draws `view` whenever something has changed.
The screen is a function of the view alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hnefi.engine.catalogue import GAMES
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.wording import shorten
from hnefi.protocol.client import EngineError
from hnefi.protocol.hosts.exit_codes import STORAGE, code_of

from . import opponents
from . import settings as preferences
from .commands import WordError, table
from .commands.play import play_move
from .events import Event, Events, Post
from .game import board_of, typed_move
from .game_session import GameSession
from .opponents import Question, plain
from .panes import compiling_text
from .rules_process import IllegalPosition, RulesProcess, Traffic
from .saving import Files, SavingError
from .settings import Settings
from .values import LogLine, Reply, SeatKind, SideLetter, View

if TYPE_CHECKING:
    from .watching import Watcher


LINE_LIMIT: Final = 64 * 1024
"""Maximum characters of a typed line."""
GRACE: Final = 0.3
"""Seconds for earlier lines to finish when the user leaves or interrupts."""
WITHOUT_RULES: Final = frozenset(
    {"help", "quit", "rules", "variants", "settings", "set", "board", "flip", "speed"}
)
"""Words that work before the rules are loaded."""

GONE: Final = Reply(("the program ends",), failed=True, quit=True)
LEAVE: Final = "Leave?"


class Controller:
    """`interactive` is false in scripts, where all work is limited, so that each line has an answer and an end."""

    def __init__(
        self,
        variant: AnyVariant,
        settings: Settings,
        files: Files,
        *,
        interactive: bool = True,
        traffic: Traffic | None = None,
        rules: RulesProcess | None = None,
    ) -> None:
        self.settings = settings
        self.files = files
        self.find = files.find
        self.interactive = interactive
        self.flipped = False
        self.interrupted = False
        self.events = Events()
        self.say = self.events.say
        self.on_change = self.events.on_change
        self._held: deque[Event] = deque()
        """Lines waiting for the rules."""
        self._held_back = False
        self._question: tuple[str, Callable[[], Awaitable[Reply]]] | None = None
        self._told_to_stop: Question | None = None
        """What the last Ctrl-C asked an engine to answer at once."""
        self._view: View | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._broken: str | None = None
        """Why there are no rules."""
        self._told: str | None = None
        self._impatient = False
        self._left = False
        """Whether the user has left by a Ctrl-C that had to wait for its turn."""
        self.keeper = preferences.Keeper(self.say)
        self.refused: tuple[str, ...] = ()
        """Why the requested first line failed, in which case the program ends."""
        self.closed = False
        self.session = GameSession(
            variant, rules or RulesProcess(traffic=traffic), files, self.events, traffic
        )
        if interactive:
            self.session.speed = settings.speed
        else:
            self.session.limits_of_analysis = opponents.ANALYSIS
        self.waiting = files.autosave.unfinished() if files.autosaves else None

    # For front ends

    @property
    def view(self) -> View:
        """Everything visible, as of the end of the last event."""
        if self._view is None or not self.events.running:
            if self._view is None or self.events.dirty:
                self._view = self.fresh_view()
                self.events.dirty = False
        elif self.events.log or self._view.compiling or self.session.compiling:
            # Even in the middle of an event, messages and progress are up to date.
            self._view = replace(self._view, log=tuple(self.events.log), compiling=compiling_of(self.session))
        return self._view

    def _look(self) -> None:
        """Take the view to show during an event, when the game may be in an inconsistent state."""
        if self.events.dirty:
            self._view = self.fresh_view()

    def fresh_view(self) -> View:
        """Everything visible now, even in the middle of an event."""
        return view_of(
            self.session,
            self.settings,
            log=self.events.log,
            question=None if self._question is None else self._question[0],
            flipped=self.flipped,
            closed=self.closed or self._left or self._broken is not None or bool(self.refused),
            waiting=self.waiting is not None,
        )

    def start(self, *, held: bool = False) -> None:
        """Start working and loading the rules; the first board can be shown before that.

        `held`: the game comes with `begin_with`, and nobody moves until then.
        """
        self._held_back = held
        self._tasks += [
            asyncio.ensure_future(self._load()),
            self.events.start(self._look, self.warn_of_files),
        ]

    async def submit(self, line: str) -> Reply:
        """Carry out one line of text; the answer says whether it failed."""

        async def work() -> Reply:
            return self._noted(await self._carry_out(line))

        post: Post = self.events.post
        if not (self.session.ready or self._needs_no_rules(line)):
            if self._broken is not None:
                return Reply((self._broken,), failed=True)
            post = self._held.append
            if self.session.compiling is not None:
                self.say(f"{line[:40]}: waiting until the rules are loaded.")
        if _leaves(line):
            return await self._soon(work) or Reply(quit=True)
        return await self.events.call(work, GONE, post)

    async def begin_with(self, line: str) -> Reply:
        """Carry out the line that the program is started with. If that fails, the program ends, so that a user who
        asked for one game never gets another."""
        reply = await self.submit(line)
        if reply.failed and not (self.closed or self._broken is not None):
            self.refused = reply.lines
            self.events.tell()
            return replace(reply, quit=True)
        return reply

    async def interrupt(self) -> Reply:
        """Handle Ctrl-C: stop what is running; if nothing is, ask whether to leave, and leave at the next one.

        If an event takes long, this happens after it, but a second Ctrl-C still leaves at once.
        """
        late = False

        async def work() -> Reply:
            reply = self._noted(await self._interrupted())
            if late:
                self._impatient = False
                self._left = self._left or reply.quit
            return reply

        answer = asyncio.ensure_future(self.events.call(work, GONE))
        await asyncio.wait({answer}, timeout=GRACE)
        if answer.done():
            self._impatient = False
            return answer.result()
        if self._impatient:
            answer.cancel()
            self.interrupted = True
            return Reply(quit=True)
        late = self._impatient = True
        self.say("Something is still running. Ctrl-C again leaves; an unfinished game is saved.")
        self.events.tell()
        return Reply()

    async def why_not(self, text: str) -> str:
        """Why a partly typed move is illegal, in the words of the rules; empty if it is legal or if this is unknown."""
        session = self.session

        async def work() -> str:
            if session.ready and session.legal(text) is None:
                with contextlib.suppress(EngineError, IllegalPosition):
                    return await session.rules.why_not(session.game.position, text)
            return ""

        return await self.events.call(work, "")

    async def settled(self) -> None:
        """Wait until nothing is running that ends by itself."""
        while True:
            self.events.news.clear()
            if await self.events.call(self._is_settled, True):
                return
            news = asyncio.ensure_future(self.events.news.wait())
            await self.events.outlived(news, True)
            news.cancel()

    async def close(self) -> None:
        """Save an unfinished game and end every engine, whatever is running; takes a second at most."""
        if self.closed:
            return
        self.closed = True
        self.keeper.close()
        # Including the task that owns the game, which would otherwise go on with engines that are gone.
        for task in self._tasks:
            task.cancel()
        ending = asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.wait({ending}, timeout=GRACE)
        with contextlib.suppress(ValueError):
            self.files.put_away(
                self.session.record() if self.session.unfinished else None, "the program ended"
            )
        await self.session.close()
        await ending
        self.events.tell()

    @property
    def status(self) -> int:
        """The exit status: 0, 1 after an interruption, 2 if the requested start failed, 3 if a foreign engine failed
        for good, 4 if ours did."""
        if self._broken is not None:
            return 4
        if self.refused:
            return 2
        return 1 if self.interrupted else self.session.failure

    # For the words

    def ask(self, question: str, then: Callable[[], Awaitable[Reply]]) -> Reply:
        """Ask a question; `then` is called if the next line is yes."""
        self._question = (question, then)
        return Reply((question,))

    def warn_of_files(self) -> None:
        """Say once that games are not saved, and why."""
        failure = self.files.failure
        if failure is not None and failure != self._told:
            self._told = failure
            self.say(failure)

    def watch(self, watcher: Watcher) -> None:
        """Follow a game that is played elsewhere, until the session is used for something else."""
        self.session.watcher = watcher
        self._tasks.append(asyncio.ensure_future(watcher.follow()))

    # Inside

    async def _soon(self, work: Callable[[], Awaitable[Reply]]) -> Reply | None:
        """The answer of `work` if it comes soon; otherwise cancel it and return None."""
        answer = asyncio.ensure_future(self.events.call(work, GONE))
        await asyncio.wait({answer}, timeout=GRACE)
        if answer.done():
            self._impatient = False
            return answer.result()
        answer.cancel()
        return None

    async def _is_settled(self) -> bool:
        """Whether nothing is running after all queued events."""
        quiet = self.session.ready and not self.session.busy and not self._held
        return quiet or self.closed or self._broken is not None

    async def _load(self) -> None:
        """Start the rules and the engines in the background of the first board."""
        self.session.warm_up()
        try:
            await self.session.load_rules()
        except (EngineError, IllegalPosition) as error:
            text = f"our engine cannot be asked for the rules: {plain(str(error))}"

            async def broken() -> None:
                self._broken = text
                self.say(text)
                await self._release()

            self.events.post(broken)
            return

        async def ready() -> None:
            await self.session.open(held=self._held_back)
            await self._release()

        self.events.post(ready)

    async def _release(self) -> None:
        """Submit lines that were typed before the rules were loaded."""
        while self._held:
            await self._held.popleft()()

    def _needs_no_rules(self, line: str) -> bool:
        if typed_move(line) is not None:
            return False
        if self._question is not None and _answer_to_question(line) is not None:
            return True
        try:
            return table.find(line.split(maxsplit=1)[0]).name in WITHOUT_RULES
        except (WordError, IndexError):
            return True

    async def _carry_out(self, line: str) -> Reply:
        text = plain(line[:LINE_LIMIT])
        if not text or text.startswith("#"):
            return Reply()
        if len(line) > LINE_LIMIT:
            return Reply((f"a line of {len(line)} characters: expected at most {LINE_LIMIT}",), failed=True)
        try:
            return await self._answer(text)
        except (WordError, SavingError) as error:
            return Reply((plain(str(error)),), failed=True, unwritten=code_of(error) == STORAGE)
        except IllegalPosition as error:
            return Reply((plain(str(error)),), failed=True)
        except EngineError as error:
            self.session.failure = 4
            return Reply((f"our engine failed: {plain(str(error))}",), failed=True)

    async def _answer(self, text: str) -> Reply:
        question = self._question
        if question is not None and (yes := _answer_to_question(text)) is not None:
            self._question = None
            return await question[1]() if yes else Reply(("Nothing was done.",))
        move = typed_move(text)
        if move is not None:
            self._question = None
            if self._broken is not None:
                raise WordError(self._broken)
            return await play_move(self, move)
        first, _, rest = text.partition(" ")
        word = table.find(first)
        # A question is dropped only by a valid line that is not an answer.
        self._question = None
        if self._broken is not None and word.name not in WITHOUT_RULES:
            raise WordError(self._broken)
        rest = rest.strip()
        if rest and not word.takes:
            raise WordError(f"{word.name} {shorten(rest)}: expected nothing after {word.name}")
        return await word.handler(self, rest)

    async def _interrupted(self) -> Reply:
        session = self.session
        asked = session.questions.asked
        if asked is not None and asked is self._told_to_stop:
            # The engine does not listen, and the user need not wait for it.
            self.interrupted = True
            return Reply(quit=True)
        if session.stoppable and await session.halt():
            self._question = None
            # What has stopped may have been something else, such as a review beside the search.
            if asked is None or asked is not session.questions.hurried:
                return Reply(("Stopped.",))
            self._told_to_stop = asked
            return Reply(("Told to stop; if it does not, Ctrl-C again leaves.",))

        async def leave() -> Reply:
            return Reply(quit=True)

        if self._question is not None and self._question[0].startswith(LEAVE):
            self.interrupted = True
            return Reply(quit=True)
        dropped = "Nothing was done. " if self._question is not None else ""
        saved = "An unfinished game is saved. " if session.unfinished else ""
        reply = self.ask(f"{LEAVE} {saved}(yes or no; Ctrl-C again leaves)", leave)
        return Reply((dropped + reply.lines[0],))

    def _noted(self, reply: Reply) -> Reply:
        for text in reply.lines:
            self.say(text, "error" if reply.failed else "reply")
        self.events.changed()
        return reply


def _answer_to_question(line: str) -> bool | None:
    """Whether a line is yes or no, perhaps abbreviated; None for any other."""
    word = line.strip().lower()
    return next((said == "yes" for said in ("yes", "no") if word and said.startswith(word)), None)


def _leaves(line: str) -> bool:
    """Whether a line is `quit`, by any of its names."""
    try:
        return typed_move(line) is None and table.find(line.strip()).name == "quit"
    except WordError:
        return False


# The view


_ALWAYS = (
    "board",
    "flip",
    "rules",
    "settings",
    "set",
    "help",
    "quit",
    "new",
    "variant",
    "variants",
    "load",
    "watch",
)
_PLAYED = ("history", "goto", "variation", "annotate", "replay", "review", "save", "copy")


def view_of(
    session: GameSession,
    settings: Settings,
    *,
    log: Iterable[LogLine] = (),
    question: str | None = None,
    flipped: bool = False,
    closed: bool = False,
    waiting: bool = False,
) -> View:
    """Everything visible now; `waiting` is whether an automatically saved game is waiting for `continue`."""
    variant, game, node = session.variant, session.game, session.game.at
    kinds: tuple[SeatKind, SeatKind] = (_kind(session, "a"), _kind(session, "d"))
    engine = next((player.opponent for player in session.players.values() if player.opponent), None)
    return View(
        variant=variant.name,
        game=variant.game,
        board=board_of(variant, session.special, session.facts, node.text, node.captures or ()),
        settings=settings,
        sides=GAMES[variant.game].sides,
        names=session.names,
        kinds=kinds,
        legal=session.facts.legal if session.end is None else (),
        level=None if engine is None else engine.spec.level,
        clock=None if session.clock is None else session.clock.view(time.monotonic()),
        thinking=session.questions.thinking,
        history=game.entries(),
        ply=node.ply,
        end=session.end,
        mode=session.mode,
        paused=session.paused,
        flipped=flipped,
        ready=session.ready,
        closed=closed,
        prompt=_prompt(session, question),
        question=question,
        compiling=compiling_of(session),
        reviewing="" if session.review is None else session.review.progress,
        words=_words(session, question, waiting),
        log=tuple(log),
        arrivals=session.arrivals,
    )


def compiling_of(session: GameSession) -> str:
    """What an engine is compiling, if one is."""
    progress = session.compiling
    return "" if progress is None else compiling_text(progress)


def _kind(session: GameSession, side: SideLetter) -> SeatKind:
    if session.watcher is not None:
        return "engine"
    return "person" if session.players[side].opponent is None else "engine"


def _prompt(session: GameSession, question: str | None) -> str:
    """The text before the `>`: who is to move, or what is running instead."""
    side = session.side_word(session.side)
    if question is not None:
        return "yes or no"
    if session.analysing:
        return f"analysis, {side} to move"
    if session.mode == "replay":
        return f"ply {session.game.at.ply} of {session.game.at.tip().ply}"
    if session.end is not None:
        return "game over"
    if session.watcher is None and session.players[session.side].opponent is None:
        return side
    if session.mode == "watch":
        return "paused" if session.paused else "watching"
    return f"{side} wait for go" if session.paused else f"{side} think"


def _words(session: GameSession, question: str | None, waiting: bool) -> tuple[str, ...]:
    """The words that make sense now."""
    if question is not None:
        return ("yes", "no")
    words = [*_ALWAYS]
    if session.game.root.children:
        words += _PLAYED
        if session.game.at.ply:
            words.append("undo")
        if session.game.at.children:
            words.append("redo")
    else:
        words += ["paste", "copy"]
    if waiting:
        words.append("continue")
    if session.end is None:
        words += ["moves", "eval", "analyze", "side", "level", "player", "engine", "clock", "hint", "go"]
        if session.mode == "play":
            words += ["resign", "draw"]
    if session.mode in ("watch", "replay"):
        words += ["pause", "step", "speed"]
    if session.stoppable:
        words.append("stop")
    if session.questions.thinking is not None:
        words.append("pv")
    return tuple(sorted(words))
