"""The prompt, with completion: answers and the board are printed above the line that is being typed."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from hnefi import players
from hnefi.engine.catalogue import GAMES, listed
from hnefi.protocol.hosts import registry
from hnefi.protocol.hosts.text_table import clip

from . import drawing, panes, screen, settings, theme
from .commands import WordError, table
from .commands.files import goodbye
from .controller import Controller
from .game import typed_move
from .values import Move, Reply, View

Submit = Callable[[str], Awaitable[Reply]]
NEW_LINE: Final = ("", "\n")
ANSWERED: Final = 0.3
"""Seconds that the next line waits for the previous answer; later answers appear above it."""
_WELCOME: Final = "Type a move such as {move}, `help` for the commands, Tab for completions, `quit` to leave."


class Repl:
    """One person at one terminal. `first` is executed before anything is typed."""

    def __init__(self, controller: Controller, first: str | None = None) -> None:
        self._controller = controller
        self._first = first
        self._said = 0
        self._shown: object = None
        self._drawn = 0
        self._left = asyncio.Event()
        self._lines = 0
        self._failure: BaseException | None = None
        self._why = ("", "")
        self._tasks: set[asyncio.Task[Any]] = set()
        self._session: PromptSession[str] = PromptSession(
            message=self._message,
            completer=WordCompleter(lambda: controller.view),
            complete_while_typing=False,
            bottom_toolbar=self._toolbar,
            key_bindings=self._keys(),
            history=InMemoryHistory(),
        )
        self._session.default_buffer.on_text_changed += lambda _: self._look_up()

    async def run(self) -> int:
        """Run until the person leaves; returns the exit status."""
        controller = self._controller
        controller.on_change(self._changed)
        self._catch_signals()
        if self._first is None:
            self._draw(controller.view)
            columns = shutil.get_terminal_size().columns - 1
            for text in (*_signs(controller.view), _welcome(controller.view)):
                self._print(
                    [part for row in screen.wrapped(text, columns) for part in (("class:dim", row), NEW_LINE)]
                )
        if controller.waiting is not None and self._first != "continue":
            waiting = "An unfinished game is saved: `continue` resumes it."
            self._print([("class:news", waiting), NEW_LINE])
        controller.start(held=self._first is not None)
        try:
            if self._first is not None:
                await self._carry_out(self._first, self._controller.begin_with)
            talking = asyncio.ensure_future(self._listen())
            leaving = asyncio.ensure_future(self._left.wait())
            await asyncio.wait({talking, leaving}, return_when=asyncio.FIRST_COMPLETED)
            # Remove a partly typed line from the screen.
            await asyncio.wait({talking}, timeout=ANSWERED)
            for task in (talking, leaving):
                task.cancel()
            await asyncio.wait({talking, leaving})
            if not talking.cancelled():
                talking.result()
            if self._failure is not None:
                raise self._failure
        finally:
            farewell = goodbye(controller)
            await controller.close()
            for line in farewell:
                self._print([("class:reply", line), NEW_LINE])
        return controller.status

    async def _listen(self) -> None:
        """Read lines, with the terminal in raw mode all the time."""
        with self._session.input.raw_mode(), _never_cooked(self._session.input):
            await self._talk()

    async def _talk(self) -> None:
        controller = self._controller
        while not (controller.view.closed or self._left.is_set()):
            try:
                style, depth = theme.prompt_style(self._controller.settings)
                line = await self._session.prompt_async(style=style, color_depth=depth, handle_sigint=False)
            except EOFError:
                return
            except KeyboardInterrupt:
                continue
            self._lines += 1
            await self._carry_out(line)

    async def _carry_out(self, line: str, submit: Submit | None = None) -> None:
        """Submit a line, and wait a little for its answer: while the rules are compiled, everything can be typed."""
        answering = self._spawn(self._answer(line, submit or self._controller.submit))
        await asyncio.wait({answering}, timeout=ANSWERED)

    async def _answer(self, line: str, submit: Submit) -> None:
        drawn = self._drawn
        try:
            reply = await submit(line)
            self._flush()
            if reply.show and drawn == self._drawn:
                self._draw(self._controller.view)
        except Exception as error:  # noqa: BLE001 - re-raised by `run`, which would wait for ever otherwise
            self._failure = error
            self._leave()
            return
        if reply.quit:
            self._leave()

    # Output

    def _changed(self) -> None:
        """Print messages, and the board if the user is waiting for it."""
        view = self._controller.view
        self._flush()
        if view.ready and _picture(view) != self._shown and _worth_showing(view):
            self._draw(view)
        app = self._session.app
        if app.is_running:
            if view.closed:
                app.exit(exception=EOFError)
            else:
                app.invalidate()

    def _flush(self) -> None:
        """Print messages since the last time."""
        lines = [line for line in self._controller.view.log if line.number > self._said]
        if lines:
            self._said = lines[-1].number
            rows = screen.talk_rows(lines, shutil.get_terminal_size().columns - 1)
            self._print([fragment for row in rows for fragment in (*row, NEW_LINE)])

    def _draw(self, view: View) -> None:
        self._shown = _picture(view)
        self._drawn += 1
        columns, rows = shutil.get_terminal_size()
        self._print(drawing.draw(view, columns - 1, max(4, rows - 2)))

    def _print(self, fragments: list[theme.Fragment]) -> None:
        theme.print_styled(fragments, self._controller.settings)

    # The line being typed

    def _message(self) -> FormattedText:
        return FormattedText([("class:prompt", f"{self._controller.view.prompt}> ")])

    def _toolbar(self) -> FormattedText:
        """One line: a note on the typed text, else the engine's thinking, and the clock."""
        view = self._controller.view
        columns = shutil.get_terminal_size().columns
        parts = []
        about = self._about(self._session.default_buffer.text.strip())
        if about:
            parts.append(about)
        elif view.compiling:
            parts.append(view.compiling)
        elif not view.ready:
            parts.append("the rules are being loaded")
        elif view.reviewing:
            parts.append(f"{view.reviewing}; `stop` ends it")
        elif view.thinking is not None and view.thinking.running:
            parts += panes.thinking_lines(view, columns)[:2] or [f"{view.thinking.who} thinks"]
        else:
            parts.append(panes.headline(view))
        if view.clock is not None:
            parts.append(theme.plain(panes.clocks(view.clock, view.sides)))
        return FormattedText([("class:status", clip("   ".join(parts), columns))])

    def _about(self, text: str) -> str:
        """A note on a line before it is sent."""
        if not text:
            return ""
        move = typed_move(text)
        if move is not None:
            return self._why[1] if self._why[0] == move else ""
        try:
            word = table.find(text.split(maxsplit=1)[0])
        except WordError:
            return ""
        return f"{word.name} {word.takes}".strip() + f": {word.help}"

    def _look_up(self) -> None:
        """For a typed move, ask the rules why it is illegal, if it is."""
        text = typed_move(self._session.default_buffer.text.strip())
        view = self._controller.view
        if text is None or text == self._why[0] or not view.ready or len(text) < 4:
            return
        legal = next((move for move in view.legal if move.text == text), None)
        if legal is not None:
            taken = len(legal.captures)
            self._why = (text, f"{text}: takes {taken} on {' '.join(legal.captures)}" if taken else "")
            return

        async def ask() -> None:
            why = await self._controller.why_not(text)
            self._why = (text, f"{text}: {why}" if why else "")
            self._session.app.invalidate()

        self._spawn(ask())

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("c-c")
        def _(event: KeyPressEvent) -> None:
            """Stop what is running; else clear the line; else ask whether to leave."""
            buffer = event.app.current_buffer
            if buffer.text and "stop" not in self._controller.view.words:
                buffer.reset()
                return
            self._spawn(self._interrupt())

        @keys.add("c-@", filter=Condition(lambda: not (self._lines or self._session.default_buffer.text)))
        def _(_: KeyPressEvent) -> None:
            """Terminals turn a Ctrl-D before the first prompt into this key."""
            self._leave()

        return keys

    async def _interrupt(self) -> None:
        reply = await self._controller.interrupt()
        self._flush()
        if reply.quit:
            self._leave()

    def _leave(self) -> None:
        self._left.set()
        with suppress(Exception):
            self._session.app.exit(exception=EOFError)

    def _catch_signals(self) -> None:
        """On TERM or HUP save the game and end; an interrupt from outside counts as Ctrl-C."""

        def end() -> None:
            self._controller.interrupted = True
            self._leave()

        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, RuntimeError, ValueError):
            for number in (signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, end)
            loop.add_signal_handler(signal.SIGINT, lambda: self._spawn(self._interrupt()))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


@contextmanager
def _never_cooked(keyboard: Input) -> Iterator[None]:
    """Stay in raw mode where prompt_toolkit would leave it to print above the typed line: in cooked mode the terminal
    swallows a Ctrl-D."""
    keyboard.cooked_mode = nullcontext  # type: ignore[method-assign]
    try:
        yield
    finally:
        del keyboard.cooked_mode


def _worth_showing(view: View) -> bool:
    """Whether the user is waiting for the board: not while an engine is about to answer a person's move."""
    return view.mode != "play" or view.persons_turn or view.end is not None or view.paused


def _signs(view: View) -> list[str]:
    """The meanings of the symbols on the board."""
    return drawing.legend(view, colour=theme.colourful(view.settings), signs=theme.glyphs(view.settings))


def _picture(view: View) -> object:
    """A key that is equal for views whose boards look the same."""
    return view.variant, view.board, view.ply, view.end, view.flipped


def _welcome(view: View) -> str:
    """The first message."""
    return _WELCOME.format(move=GAMES[view.game].example)


async def run(controller: Controller, first: str | None = None) -> int:
    """Run the prompt until the person leaves; returns the exit status."""
    return await Repl(controller, first).run()


# Completion


class WordCompleter(Completer):
    """Completes words and moves from the current view."""

    def __init__(self, view: Callable[[], View]) -> None:
        self._view = view
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """All completions at the cursor."""
        text = document.text_before_cursor.lstrip()
        first, blank, rest = text.partition(" ")
        if not blank:
            yield from self._first(first)
            return
        try:
            word = table.find(first).name
        except WordError:
            if len(first) in (2, 3):  # `d1 d3`
                yield from _targets(self._view(), first.lower(), rest.strip(), blank=True)
            return
        if word in ("save", "load"):
            inner = Document(rest, len(rest))
            yield from self._paths.get_completions(inner, complete_event)
            return
        last = rest.rpartition(" ")[2]
        for value in self._behind(word, rest):
            if value.startswith(last.lower()):
                yield Completion(value, -len(last))

    def _first(self, typed: str) -> Iterator[Completion]:
        """Completions for the first word of a line: moves and commands."""
        view = self._view()
        yield from moves(view, typed.lower())
        for word in table.beginning_with(typed, view.words):
            yield Completion(word, -len(typed), display_meta=table.TABLE[word].help)

    def _behind(self, word: str, rest: str) -> Iterable[str]:
        """Possible arguments of a command."""
        if word in ("new", "variant"):
            return listed()
        if word == "player":
            return (*players.names(), *_registered(), "a", "d")
        if word == "engine":
            return (*_registered(), "a", "d")
        if word == "moves":
            return dict.fromkeys(move.source for move in self._view().legal)
        if word == "help":
            return table.TABLE
        if word == "set":
            key, blank, _ = rest.partition(" ")
            known = settings.KEYS.get(key.lower())
            return (
                () if blank and known is None else known.values if blank and known else sorted(settings.KEYS)
            )
        return table.TABLE[word].values


def moves(view: View, typed: str) -> Iterator[Completion]:
    """The men that can move, if nothing or half a square is typed; a man's targets, once it is named."""
    sources: dict[str, list[Move]] = {}
    for move in view.legal:
        sources.setdefault(move.source, []).append(move)
    bare = typed.replace("-", "")
    if typed and any(bare.startswith(source) for source in sources if source):
        yield from _targets(view, "", typed)
        return
    for source, found in sources.items():
        if source and source.startswith(typed):
            placed = len(found) == 1 and found[0].source == found[0].target
            yield Completion(source, -len(typed), display_meta="" if placed else _count(found))
    for move in view.legal:
        if not move.source and move.text.startswith(typed):
            yield Completion(move.text, -len(typed))


def _targets(view: View, source: str, typed: str, *, blank: bool = False) -> Iterator[Completion]:
    """Whole moves that begin with the typed text; with `blank`, only targets after `source`."""
    bare = typed.replace("-", "").lower()
    for move in view.legal:
        text = move.target if blank else move.text
        if (not blank or move.source == source) and text.startswith(bare):
            yield Completion(text, -len(typed), display_meta=_takes(move))


def _registered() -> tuple[str, ...]:
    """The user's registered engines; none if their file cannot be read, which is reported when one is chosen."""
    try:
        return tuple(registry.load())
    except registry.RegistryError:
        return ()


def _takes(move: Move) -> str:
    return f"takes {len(move.captures)}" if move.captures else ""


def _count(found: list[Move]) -> str:
    captures = sum(1 for move in found if move.captures)
    targets = f"{len(found)} {'move' if len(found) == 1 else 'moves'}"
    return f"{targets}, {captures} with captures" if captures else targets
