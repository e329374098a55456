"""The full screen: `screen.compose` above a line to type in, on a controller.

Every key and every click becomes a line of text for the controller; nothing of the game is decided here.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, DummyCompleter
from prompt_toolkit.filters import Condition, FilterOrBool
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_width
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    ConditionalContainer,
    Float,
    FloatContainer,
    HSplit,
    Layout,
    VSplit,
    Window,
)
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl, UIContent, UIControl
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.mouse_events import MouseEvent, MouseEventType
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import BaseStyle, DynamicStyle, Style
from prompt_toolkit.utils import get_cwidth

from hnefi.protocol.hosts.text_table import safe

from .drawing import SIZES, Picture
from .screen import TALK, Screen, compose, reader, talk_rows
from .theme import colourful, glyphs, plain_style, style
from .values import LogLine, Reply, View

if TYPE_CHECKING:
    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding.key_bindings import NotImplementedOrNone
    from prompt_toolkit.output import Output

REDRAW: Final = 0.02
"""Seconds between two drawings at least."""
LONGEST: Final = 4096
"""Characters of a typed line at most."""
WAITING: Final = 64
"""Lines that wait for their answer at most."""
HINT: Final = "F1 help   F2 mouse   keys: all keys"
_ENDS: Final = (signal.SIGTERM, signal.SIGHUP)
_SQUARE: Final = re.compile("([a-s][1-9][0-9]?)(?:[- ]|$)")

LINES: Final[Mapping[str, str]] = {
    "f1": "help",
    "f3": "flip",
    "f5": "hint",
    "f6": "undo",
    "f7": "redo",
    "f8": "pause",
    "f9": "step",
}
"""Keys that stand for a command."""
STEPS: Final[Mapping[str, str]] = {
    "left": "goto back",
    "right": "goto next",
    "home": "goto start",
    "end": "goto end",
}
"""The same, on an empty line only."""

KEYS: Final = (
    "F1 help, F2 mouse on or off, F3 turn the board, F4 next size of the cells",
    "F5 hint, F6 undo, F7 redo, F8 pause or resume, F9 one step of a game or replay",
    "on an empty line: Left, Right, Home, End go through the game",
    "Tab completes words and moves, Up and Down bring back what was typed",
    "PageUp, PageDown read what was said, Escape goes back to the board",
    "Ctrl-C stops what runs, or empties the line, or asks whether to leave",
    "Ctrl-D on an empty line leaves; an unfinished game is kept",
    "mouse: click a man, then where it goes; hold Shift, or turn the mouse off with",
    "F2, to select text",
)


class Controlled(Protocol):
    """What the full screen needs of a controller."""

    interrupted: bool

    @property
    def view(self) -> View: ...
    def on_change(self, callback: Callable[[], None], /) -> object: ...
    async def submit(self, line: str, /) -> Reply: ...
    async def interrupt(self) -> Reply: ...


class FullScreen:
    """One application on one controller; `run` ends when the game is left."""

    def __init__(
        self,
        controller: Controlled,
        *,
        completer: Completer | None = None,
        source: Input | None = None,
        target: Output | None = None,
    ) -> None:
        self._controller = controller
        self._tasks: set[asyncio.Task[None]] = set()
        self._sent = False
        self._chosen = ""
        self._reading: _Reading | None = None
        self._mouse = controller.view.settings.mouse
        self._styles: tuple[tuple[str, bool], BaseStyle] | None = None
        self._arrivals = controller.view.arrivals
        self._failure: BaseException | None = None
        self._buffer = Buffer(
            completer=completer or DummyCompleter(), multiline=False, accept_handler=self._accept
        )
        typed = BufferControl(self._buffer, input_processors=[BeforeInput(self._prompt)])
        self._control = _ScreenControl(self._lines_of_screen, self._click, self._turn_page)
        hint = Window(FormattedTextControl(self._hint), width=len(HINT), height=1)
        roomy = Condition(lambda: not self._buffer.text and self._columns() >= 2 * len(HINT))
        input_line = Window(typed, height=1, get_horizontal_scroll=self._scroll)
        line = VSplit([input_line, ConditionalContainer(hint, roomy)], height=1)
        menu = Float(CompletionsMenu(max_height=8, scroll_offset=1), xcursor=True, ycursor=True)
        body = HSplit([Window(self._control, always_hide_cursor=True), line])
        colours = colourful(controller.view.settings)
        self.application: Application[None] = Application(
            layout=Layout(FloatContainer(body, [menu]), focused_element=typed),
            key_bindings=self._bindings(),
            style=DynamicStyle(self._style),
            color_depth=None if colours else ColorDepth.DEPTH_1_BIT,
            full_screen=True,
            mouse_support=Condition(lambda: self._mouse),
            min_redraw_interval=REDRAW,
            input=source,
            output=target,
        )
        # An Escape stands alone if nothing follows it at once.
        self.application.ttimeoutlen = 0.05

    async def run(self) -> int:
        """Show the game until it is left; the exit status."""
        self._controller.on_change(self._changed)
        self._catch_signals()
        try:
            # An earlier Ctrl-C has cancelled this task, which ends here, before it draws: a slow terminal would
            # still be reading the screen when we leave it, and the next Ctrl-C discards what is unread.
            await asyncio.sleep(0)
            await self.application.run_async(handle_sigint=False, set_exception_handler=False)
        except EOFError:
            return 0  # the terminal is gone
        finally:
            self._let_signals_go()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._failure is not None:
            raise self._failure
        return 0

    def _catch_signals(self) -> None:
        """The first signal is a wish, a second one while we leave ends us at once."""
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, RuntimeError, ValueError):  # not the main thread, or not Unix
            loop.add_signal_handler(signal.SIGINT, self._send, None)
            for number in _ENDS:
                loop.add_signal_handler(number, self._ended)

    def _let_signals_go(self) -> None:
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, RuntimeError, ValueError):
            for number in (signal.SIGINT, *_ENDS):
                loop.remove_signal_handler(number)

    # What goes to the controller

    def _send(self, line: str | None) -> None:
        """A line for the controller, which deals with one after the other, or None for Ctrl-C. No line waits here for
        those before it: `quit` is heard at any time. Nobody types so fast that too many wait for their answers; what a
        stuck key sends then is dropped."""
        self._sent = True
        if line is None or len(self._tasks) < WAITING:
            task = asyncio.ensure_future(self._answer(line))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, line: str | None) -> None:
        """Hand on a line and show what is answered."""
        try:
            if line is None:
                reply = await self._controller.interrupt()
            else:
                reply = await self._controller.submit(line)
        except Exception as error:  # noqa: BLE001 - handed on by `run`, which would wait for ever otherwise
            self._failure = error
            self._leave()
            return
        self._chosen = ""
        self._show(reply)
        if reply.quit:
            self._leave()
        self.application.invalidate()

    def _show(self, reply: Reply) -> None:
        """Open the reader for an answer that has no room below the board."""
        log = self._controller.view.log
        room = max(1, min(TALK, self._rows() // 4))
        told = len(reply.lines)
        if told and log and len(talk_rows(log[-told:], self._columns())) > room:
            self._reading = _Reading(log[-min(told, len(log))].number)

    def _ended(self) -> None:
        """Told to end by a signal."""
        self._controller.interrupted = True
        self._leave()

    def _leave(self) -> None:
        future = self.application.future
        if future is not None and not future.done():
            self.application.exit()

    def _changed(self) -> None:
        """The view is another one."""
        view = self._controller.view
        if view.arrivals != self._arrivals:
            self._arrivals = view.arrivals
            self._chosen = ""
        if view.closed:
            self._leave()
        self.application.invalidate()

    def _accept(self, buffer: Buffer) -> bool:
        """Enter was pressed; False: the line is emptied."""
        line = buffer.text.strip()[:LONGEST]
        self._reading = None
        if line.lower() == "keys":
            self._reading = _Reading(1, texts=KEYS)
        elif line:
            self._send(line)
        return False

    # What is shown

    def _columns(self) -> int:
        return self.application.output.get_size().columns

    def _rows(self) -> int:
        return self.application.output.get_size().rows - 1

    def _prompt(self) -> StyleAndTextTuples:
        return [("class:prompt", f"{safe(self._controller.view.prompt)}> ")]

    def _scroll(self, window: Window) -> int:
        """How far the typed line is scrolled: prompt_toolkit would leave it so where a narrow window has grown."""
        line = fragment_list_width(self._prompt()) + get_cwidth(self._buffer.text) + 1
        return min(window.horizontal_scroll, max(0, line - self._columns()))

    def _hint(self) -> StyleAndTextTuples:
        return [("class:dim", HINT)]

    def _lines_of_screen(self, columns: int, rows: int) -> Screen:
        """What stands above the typed line."""
        view = self._controller.view
        signs = glyphs(view.settings, encoding=self.application.output.encoding())
        colour = colourful(view.settings)
        screen = compose(view, columns, rows, signs=signs, colour=colour, chosen=self._pointed(view))
        if self._reading is None:
            return screen
        log = self._reading.log or view.log
        lines, self._reading.offset = reader(log, columns, rows, self._reading.number, self._reading.offset)
        return Screen(lines, Picture((), None))

    def _pointed(self, view: View) -> str:
        """The square of the man about to move: clicked, or typed so far."""
        if self._chosen:
            return self._chosen
        found = _SQUARE.match(self._buffer.text.strip().lower())
        if found is None or all(found[1] != move.source for move in view.legal):
            return ""
        return found[1]

    def _style(self) -> BaseStyle:
        settings = self._controller.view.settings
        wanted = (settings.theme, colourful(settings))
        if self._styles is None or self._styles[0] != wanted:
            classes = style(settings) if wanted[1] else plain_style()
            ground = {"": classes["screen"]} if wanted[1] else {}
            self._styles = (wanted, Style.from_dict({**classes, **ground}))
        return self._styles[1]

    # Mouse

    def _click(self, square: str | None) -> None:
        """A square of the board was clicked, or something beside it: a man, then where it goes."""
        if self._reading is not None:
            self._reading = None
        elif square is not None:
            self._chosen = self._next_chosen(self._controller.view, square)
        self.application.invalidate()

    def _next_chosen(self, view: View, square: str) -> str:
        """The square that is chosen after a click; a move that a click completes is sent.

        A second square that is no target is sent as well: the answer says why the man may not go there."""
        sources = {move.source for move in view.legal}
        if square == self._chosen:
            return ""
        if any(move.source == move.target == square for move in view.legal):
            self._send(square)
            return ""
        if square in sources:
            return square
        if self._chosen:
            self._send(self._chosen + square)
            return ""
        if view.board.at(square) != ".":
            # A man that cannot move: asked for a move nowhere, the rules say whose it is.
            self._send(f"moves {square}")
        return ""

    def _turn_page(self, pages: int) -> None:
        """Read what was said, one page further back or on; from the board, the last page."""
        room = max(1, self._rows() - 1)
        if self._reading is None:
            log = self._controller.view.log
            if log and pages < 0:
                self._reading = _Reading(log[-1].number, offset=1 - room)
        else:
            self._reading.offset += pages * room
        self.application.invalidate()

    # Keys

    def _bindings(self) -> KeyBindings:
        """What the keys do, besides typing and completing."""
        keys = KeyBindings()
        empty = Condition(lambda: not self._buffer.text)
        for key, line in LINES.items():
            self._bind(keys, key, line)
        for key, line in STEPS.items():
            self._bind(keys, key, line, only=empty)

        @keys.add("c-c")
        def _(_: KeyPressEvent) -> None:
            if self._buffer.text and "stop" not in self._controller.view.words:
                self._buffer.reset()
            else:
                self._send(None)

        @keys.add("c-d", filter=empty)
        def _(_: KeyPressEvent) -> None:
            self._leave()

        @keys.add("c-@", filter=empty & Condition(lambda: not self._sent))
        def _(_: KeyPressEvent) -> None:
            """What a terminal makes of a Ctrl-D that comes before the first screen."""
            self._leave()

        @keys.add("f2")
        def _(_: KeyPressEvent) -> None:
            self._mouse = not self._mouse

        @keys.add("f4")
        def _(_: KeyPressEvent) -> None:
            self._send(f"set zoom {(self._controller.view.settings.zoom + 1) % (max(SIZES) + 1) or 'auto'}")

        @keys.add("escape", eager=True)
        def _(_: KeyPressEvent) -> None:
            self._reading = None
            self._chosen = ""
            self._buffer.cancel_completion()

        @keys.add("tab")
        def _(_: KeyPressEvent) -> None:
            if self._buffer.complete_state:
                self._buffer.complete_next()
            else:
                self._buffer.start_completion(select_first=False)

        @keys.add("pageup")
        def _(_: KeyPressEvent) -> None:
            self._turn_page(-1)

        @keys.add("pagedown")
        def _(_: KeyPressEvent) -> None:
            self._turn_page(1)

        return keys

    def _bind(self, keys: KeyBindings, key: str, line: str, only: FilterOrBool = True) -> None:
        """A key that stands for a typed line."""

        @keys.add(key, filter=only)
        def _(_: KeyPressEvent) -> None:
            self._send(line)


@dataclass(slots=True)
class _Reading:
    """Where in what was said the reader is; `texts` are read instead of that."""

    number: int
    offset: int = 0
    texts: tuple[str, ...] = ()

    @property
    def log(self) -> tuple[LogLine, ...]:
        return tuple(LogLine(number, text, "reply") for number, text in enumerate(self.texts, start=1))


class _ScreenControl(UIControl):
    """The part above the input line, laid out for the space there is; clicks on it select squares."""

    def __init__(
        self,
        lines: Callable[[int, int], Screen],
        click: Callable[[str | None], None],
        turn: Callable[[int], None],
    ) -> None:
        self._lines = lines
        self._click = click
        self._turn = turn
        self._shown: Screen | None = None

    def create_content(self, width: int, height: int | None) -> UIContent:
        shown = self._shown = self._lines(width, height or 1)
        return UIContent(
            get_line=lambda row: list(shown.lines[row]), line_count=len(shown.lines), show_cursor=False
        )

    def is_focusable(self) -> bool:
        return False

    def mouse_handler(self, mouse_event: MouseEvent) -> NotImplementedOrNone:
        if mouse_event.event_type is MouseEventType.SCROLL_UP:
            self._turn(-1)
        elif mouse_event.event_type is MouseEventType.SCROLL_DOWN:
            self._turn(1)
        elif mouse_event.event_type is MouseEventType.MOUSE_UP and self._shown is not None:
            place = mouse_event.position
            self._click(self._shown.square_at(place.x, place.y))
        else:
            return NotImplemented
        return None


async def run(controller: Controlled, completer: Completer | None = None) -> int:
    """Play in the full screen until the game is left; the exit status."""
    return await FullScreen(controller, completer=completer).run()
