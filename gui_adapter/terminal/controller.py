"""One task that owns the game: typed lines, what engines say and the ticking of the clock reach it through one queue.

A face (prompt, full screen, script) submits lines, shows replies, and draws `view` whenever it is told of a change.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.records.rule_sets import Find
from hnefi.protocol.client import EngineError
from hnefi.protocol.hosts.exit_codes import STORAGE, code_of

from . import command_table, strength
from . import settings as preferences
from .commands.arguments import WordError
from .files import Files
from .game_session import GameSession
from .opponents import Spec, plain
from .positions import typed_move
from .presenter import compiling_of, view_of
from .questions import Event
from .rules_process import IllegalPosition, RulesProcess, Traffic
from .saving import SavingError
from .settings import Settings
from .values import LineKind, LogLine, Reply, SideLetter, View

if TYPE_CHECKING:
    from .watching import Watcher

LOG_LINES: Final = 2000
LINE_LIMIT: Final = 64 * 1024
"""Characters of a typed line at most."""
KEPT_AFTER: Final = 0.5
"""Seconds after the last change of a setting until the file is written: a key that is held writes it once."""
GRACE: Final = 0.3
"""Seconds that what was typed before is given when somebody wants to leave or interrupts."""
WITHOUT_RULES: Final = frozenset(
    {"help", "quit", "rules", "variants", "settings", "set", "board", "flip", "speed"}
)
"""Words that need not wait until the rules are loaded."""

GONE: Final = Reply(("the program ends",), failed=True, quit=True)
T = TypeVar("T")


class Controller:
    """`interactive` is false in scripts: everything is limited there, so that each line has an answer and an end."""

    def __init__(
        self,
        variant: AnyVariant,
        settings: Settings,
        find: Find,
        *,
        files: Files,
        rival: Spec | None = None,
        seed: int | None = None,
        interactive: bool = True,
        traffic: Traffic | None = None,
        rules: RulesProcess | None = None,
    ) -> None:
        self.settings = settings
        self.find = find
        self.files = files
        self.interactive = interactive
        self.flipped = False
        self.interrupted = False
        self._queue: asyncio.Queue[Event] = asyncio.Queue()
        self._held: deque[Event] = deque()
        self._log: deque[LogLine] = deque(maxlen=LOG_LINES)
        self._said = 0
        self._question: tuple[str, Callable[[], Awaitable[Reply]]] | None = None
        self._listeners: list[Callable[[], None]] = []
        self._view: View | None = None
        self._dirty = True
        self._in_event = False
        self._news = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._loading: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None
        self._broken: str | None = None
        self._told: str | None = None
        self._impatient = False
        self._unkept: dict[str, str] = {}
        self._keeping: asyncio.TimerHandle | None = None
        self.refused: tuple[str, ...] = ()
        """Why what the program was asked to begin with cannot be had; it ends then."""
        self.closed = False
        self.session = GameSession(
            variant,
            rules=rules or RulesProcess(traffic=traffic),
            files=files,
            post=self._queue.put_nowait,
            say=self.say,
            changed=self._changed,
            compiling=self._tell,
            seed=seed,
            traffic=traffic,
            speed=settings.speed if interactive else 0.0,
        )
        if rival is not None:
            self.session.players.rival = rival
        if not interactive:
            self.session.limits_of_analysis = strength.ANALYSIS
        self.waiting = files.autosave.unfinished() if files.autosaves else None

    # For faces

    @property
    def view(self) -> View:
        """Everything that can be seen, as it was when the last event had been dealt with."""
        if self._view is None or not self._in_event:
            if self._view is None or self._dirty:
                self._view = self.fresh_view()
                self._dirty = False
        elif self._log or self._view.compiling or self.session.compiling:
            # The game is in the middle of something; what is said and waited for meanwhile is seen all the same.
            self._view = replace(self._view, log=tuple(self._log), compiling=compiling_of(self.session))
        return self._view

    def fresh_view(self) -> View:
        """Everything that can be seen, in the middle of an event, too."""
        return view_of(
            self.session,
            self.settings,
            log=self._log,
            question=None if self._question is None else self._question[0],
            flipped=self.flipped,
            closed=self.closed or self._broken is not None or bool(self.refused),
            waiting=self.waiting is not None,
        )

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` after every change; in the loop, and possibly often."""
        self._listeners.append(callback)

    def start(self) -> None:
        """Begin to work, and to load the rules; the first board can be shown before."""
        self._owner = asyncio.ensure_future(self._own())
        self._loading = asyncio.ensure_future(self._load())

    async def submit(self, line: str) -> Reply:
        """Carry out one line of text; the answer says whether it failed."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        async def event() -> None:
            reply = self._noted(await self._carry_out(line))
            if not future.done():
                future.set_result(reply)

        if self.session.ready or self._needs_no_rules(line):
            self._queue.put_nowait(event)
        elif self._broken is not None:
            return Reply((self._broken,), failed=True)
        else:
            self._held.append(event)
            if self.session.compiling is not None:
                self.say(f"{line[:40]}: kept until the rules are there.")
        if _leaves(line):
            return await self._soon(future) or Reply(quit=True)
        return await self._outlived(future, GONE)

    async def begin_with(self, line: str) -> Reply:
        """Carry out the line that the program is started with. Where that cannot be done, it ends: nobody who asked for
        a game shall find another one."""
        reply = await self.submit(line)
        if reply.failed and not (self.closed or self._broken is not None):
            self.refused = reply.lines
            self._tell()
            return replace(reply, quit=True)
        return reply

    async def interrupt(self) -> Reply:
        """What Ctrl-C means: it stops what runs; where nothing runs it asks whether to leave, and then leaves.

        While something is dealt with that takes its time, a second one leaves all the same.
        """
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        async def event() -> None:
            if future.done():
                return
            reply = self._noted(await self._interrupted())
            if not future.done():
                future.set_result(reply)

        self._queue.put_nowait(event)
        reply = await self._soon(future)
        if reply is not None:
            return reply
        if self._impatient:
            self.interrupted = True
            return Reply(quit=True)
        self._impatient = True
        self.say("Something is still being done. Ctrl-C again leaves; an unfinished game is saved.")
        self._tell()
        return Reply()

    async def why_not(self, text: str) -> str:
        """Why a move that is being typed is illegal, in the words of the rules; empty if it is not, or not now."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def event() -> None:
            why = ""
            session = self.session
            if session.ready and session.legal(text) is None:
                with contextlib.suppress(EngineError, IllegalPosition):
                    why = await session.rules.why_not(
                        session.variant, session.game.start, session.game.moves, text
                    )
            if not future.done():
                future.set_result(why)

        self._queue.put_nowait(event)
        return await self._outlived(future, "")

    async def settled(self) -> None:
        """Returns when nothing goes on any more that would end by itself."""
        while True:
            self._news.clear()
            if await self._is_settled():
                return
            news = asyncio.ensure_future(self._news.wait())
            await self._outlived(news, True)
            news.cancel()

    async def close(self) -> None:
        """Save an unfinished game and end every engine, in the middle of whatever goes on; in a second at most."""
        if self.closed:
            return
        self.closed = True
        if self._keeping is not None:
            self._keeping.cancel()
        self._keep_now()
        # The one who owns the game first: what it is about to do would meet engines that are gone.
        busy = [task for task in (self._loading, self._following, self._owner) if task is not None]
        for task in busy:
            task.cancel()
        ending = asyncio.gather(*busy, return_exceptions=True)
        await asyncio.wait({ending}, timeout=GRACE)
        with contextlib.suppress(ValueError):
            self.files.put_away(
                self.session.record() if self.session.unfinished else None, "the program ended"
            )
        await self.session.close()
        await ending
        self._dirty = True
        self._tell()

    @property
    def status(self) -> int:
        """The exit status: 0, 1 after an interruption, 2 where it could not begin as it was asked to, 3 where another
        engine failed for good, 4 where ours did."""
        if self._broken is not None:
            return 4
        if self.refused:
            return 2
        return 1 if self.interrupted else self.session.failure

    # For the words

    def say(self, text: str) -> None:
        """Tell the person something that nobody has asked for."""
        self._note(text, "news")

    def ask(self, question: str, then: Callable[[], Awaitable[Reply]]) -> Reply:
        """Put a question; `then` happens if the next line is yes."""
        self._question = (question, then)
        return Reply((question,))

    async def post(self, event: Event) -> None:
        """Let an event happen in its turn; returns when it has."""
        passed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        async def whole() -> None:
            await event()
            if not passed.done():
                passed.set_result(True)

        self._queue.put_nowait(whole)
        await self._outlived(passed, False)

    async def watch(self, watcher: Watcher) -> None:
        """Follow a game that is played elsewhere, until the session is used for something else."""
        self.session.watcher = watcher
        if self._following is not None:
            self._following.cancel()
        self._following = asyncio.ensure_future(watcher.follow())

    def keep(self, key: str, value: str) -> None:
        """Write a setting into the person's file, soon; what the command line said for this game alone is not written
        there."""
        self._unkept[key] = value
        if self._keeping is not None:
            self._keeping.cancel()
        self._keeping = asyncio.get_running_loop().call_later(KEPT_AFTER, self._keep_now)

    def _keep_now(self) -> None:
        values, self._unkept = self._unkept, {}
        if not values:
            return
        try:
            preferences.keep(values)
        except (OSError, preferences.SettingsError) as error:
            reason = getattr(error, "strerror", None) or error
            self.say(f"{preferences.path()}: {reason}: {', '.join(values)} could not be kept.")

    def warn_of_files(self) -> None:
        """Say once that games are not kept, and why."""
        failure = self.files.failure
        if failure is not None and failure != self._told:
            self._told = failure
            self.say(failure)

    def assign(self, side: SideLetter, spec: Spec | None) -> None:
        """Seat an engine or a person; the game goes on with them."""
        self.session.assign(side, spec)

    # Inside

    async def _soon(self, future: asyncio.Future[Reply]) -> Reply | None:
        """What is promised, if it comes soon; otherwise it is not wanted any more, and None."""
        answer = asyncio.ensure_future(self._outlived(future, GONE))
        await asyncio.wait({answer}, timeout=GRACE)
        if answer.done():
            self._impatient = False
            return answer.result()
        answer.cancel()
        future.cancel()
        return None

    async def _outlived(self, future: asyncio.Future[T], otherwise: T) -> T:
        """What is promised; `otherwise` after the end. If the task that owns the game has died, its error."""
        waiting: set[asyncio.Future[Any]] = {future}
        if self._owner is not None:
            waiting.add(self._owner)
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if future.done():
            return future.result()
        if self._owner is not None and not self._owner.cancelled():
            self._owner.result()
        return otherwise

    async def _is_settled(self) -> bool:
        """Whether nothing goes on, asked behind everything that is in the queue now."""
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        async def event() -> None:
            quiet = self.session.ready and not self.session.busy and not self._held
            if not answer.done():
                answer.set_result(quiet or self.closed or self._broken is not None)

        self._queue.put_nowait(event)
        return await self._outlived(answer, True)

    async def _own(self) -> None:
        while True:
            event = await self._queue.get()
            if self._dirty:
                # What is seen until the event is over: a game in the middle of something cannot be looked at.
                self._view = self.fresh_view()
            self._in_event = True
            try:
                await event()
                self.warn_of_files()
            finally:
                self._in_event = False
            if self._dirty:
                self._tell()

    async def _load(self) -> None:
        """Start the rules and the engines behind the first board."""
        self.session.warm_up()
        try:
            await self.session.load_rules()
        except (EngineError, IllegalPosition) as error:
            text = f"our engine cannot be asked for the rules: {plain(str(error))}"

            async def broken() -> None:
                self._broken = text
                self.say(text)
                await self._release()

            self._queue.put_nowait(broken)
            return

        async def ready() -> None:
            await self.session.open()
            await self._release()

        self._queue.put_nowait(ready)

    async def _release(self) -> None:
        """Lines that were typed before the rules were there."""
        while self._held:
            await self._held.popleft()()

    def _needs_no_rules(self, line: str) -> bool:
        if typed_move(line) is not None:
            return False
        if self._question is not None and _answer_to_question(line) is not None:
            return True
        try:
            return command_table.find(line.split(maxsplit=1)[0]).name in WITHOUT_RULES
        except (command_table.UnknownWord, IndexError):
            return True

    async def _carry_out(self, line: str) -> Reply:
        text = plain(line[:LINE_LIMIT])
        if not text or text.startswith("#"):
            return Reply()
        if len(line) > LINE_LIMIT:
            return Reply((f"a line of {len(line)} characters: expected at most {LINE_LIMIT}",), failed=True)
        try:
            return await self._answer(text)
        except (WordError, command_table.UnknownWord, SavingError) as error:
            return Reply((plain(str(error)),), failed=True, unwritten=code_of(error) == STORAGE)
        except IllegalPosition as error:
            return Reply((plain(str(error)),), failed=True)
        except EngineError as error:
            self.session.failure = 4
            return Reply((f"our engine failed: {plain(str(error))}",), failed=True)

    async def _answer(self, text: str) -> Reply:
        from .commands import HANDLERS, play_move

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
        word = command_table.find(first)
        # Only what is understood and is no answer drops a question.
        self._question = None
        if self._broken is not None and word.name not in WITHOUT_RULES:
            raise WordError(self._broken)
        return await HANDLERS[word.name](self, rest.strip())

    async def _interrupted(self) -> Reply:
        if self.session.stoppable and await self.session.halt():
            self._question = None
            return Reply(("Stopped.",))
        if self._question is not None:
            self.interrupted = True
            return Reply(quit=True)

        async def leave() -> Reply:
            return Reply(quit=True)

        return self.ask("Leave? An unfinished game is saved. (yes or no; Ctrl-C again leaves)", leave)

    def _noted(self, reply: Reply) -> Reply:
        for text in reply.lines:
            self._note(text, "error" if reply.failed else "reply")
        self._changed()
        return reply

    def _note(self, text: str, kind: LineKind) -> None:
        for line in text.split("\n"):
            self._said += 1
            self._log.append(LogLine(self._said, "".join(s if s.isprintable() else " " for s in line), kind))
        self._changed()

    def _changed(self) -> None:
        """Something can be seen now; whoever listens is told when the event that did it is over."""
        self._dirty = True
        self._news.set()
        if not self._in_event and self._queue.empty():
            self._queue.put_nowait(_nothing)

    def _tell(self) -> None:
        self._dirty = True
        for listener in self._listeners:
            listener()


def _answer_to_question(line: str) -> bool | None:
    """Whether a line says yes or no, however short; None for any other."""
    word = line.strip().lower()
    return next((said == "yes" for said in ("yes", "no") if word and said.startswith(word)), None)


def _leaves(line: str) -> bool:
    """Whether a line is `quit`, by any of its names."""
    try:
        return typed_move(line) is None and command_table.find(line.strip()).name == "quit"
    except command_table.UnknownWord:
        return False


async def _nothing() -> None:
    """An event that only lets faces see what has changed."""
