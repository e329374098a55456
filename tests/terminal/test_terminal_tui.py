"""The full screen on a controller that only listens: every key and click is a line, and the screen is the view."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from terminal_views import move, view, with_settings

from hnefi.gui_adapter.terminal.drawing import plain
from hnefi.gui_adapter.terminal.tui import KEYS, LINES, LONGEST, STEPS, WAITING, FullScreen
from hnefi.gui_adapter.terminal.values import LogLine, Reply, View

PATIENCE = 60.0
LEGAL = (move("d2c2"), move("d2e2", "e3"), move("a4a2"))


class Listener:
    """A controller that writes down what it is told and answers what it is given."""

    def __init__(self, seen: View) -> None:
        self.view = seen
        self.lines: list[str] = []
        self.answers: dict[str, Reply | Exception] = {}
        self.interrupted = False
        self.callbacks: list[Callable[[], None]] = []
        self.held: asyncio.Event | None = None

    def on_change(self, callback: Callable[[], None], /) -> None:
        self.callbacks.append(callback)

    def change(self, **facts: object) -> None:
        self.view = replace(self.view, **facts)
        for callback in self.callbacks:
            callback()

    async def submit(self, line: str, /) -> Reply:
        if self.held is not None:
            await self.held.wait()
        self.lines.append(line)
        answer = self.answers.get(line, Reply())
        if isinstance(answer, Exception):
            raise answer
        if answer.lines:
            said = len(self.view.log)
            told = [LogLine(said + at, text, "reply") for at, text in enumerate(answer.lines, start=1)]
            self.change(log=(*self.view.log, *told))
        return answer

    async def interrupt(self) -> Reply:
        return await self.submit("<Ctrl-C>")


class Paper(DummyOutput):
    """An output of a size of its own."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self.size = Size(rows=rows, columns=columns)
        self.mouse: list[bool] = []

    def get_size(self) -> Size:
        return self.size

    def encoding(self) -> str:
        return "utf-8"

    def enable_mouse_support(self) -> None:
        self.mouse.append(True)

    def disable_mouse_support(self) -> None:
        self.mouse.append(False)


class Session:
    """A running full screen with its keys, its controller and its paper."""

    def __init__(self, face: FullScreen, keys: PipeInput, controller: Listener, paper: Paper) -> None:
        self.face = face
        self.keys = keys
        self.controller = controller
        self.paper = paper

    @property
    def rows(self) -> list[str]:
        """What the renderer has drawn last."""
        screen = self.face.application.renderer.last_rendered_screen
        if screen is None:
            return []
        size = self.paper.size
        return [
            "".join(screen.data_buffer[row][column].char for column in range(size.columns)).rstrip()
            for row in range(size.rows)
        ]

    async def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, "\n".join([*self.rows, *self.controller.lines])
            await asyncio.sleep(0.002)

    async def shown(self, text: str) -> None:
        await self.until(lambda: any(text in row for row in self.rows))

    async def said(self, *lines: str) -> None:
        await self.until(lambda: self.controller.lines == list(lines))

    def click(self, square: str) -> None:
        """Press and release the left button on a square."""
        layout = self.face._control._shown
        assert layout is not None
        place = next(
            (column, row)
            for row in range(self.paper.size.rows)
            for column in range(self.paper.size.columns)
            if layout.square_at(column, row) == square
        )
        at = f"{place[0] + 1};{place[1] + 1}"
        self.keys.send_text(f"\x1b[<0;{at}M\x1b[<0;{at}m")


@asynccontextmanager
async def session(seen: View, columns: int = 80, rows: int = 24, **words: object) -> AsyncIterator[Session]:
    controller = Listener(seen)
    paper = Paper(columns, rows)
    with create_pipe_input() as keys:
        face = FullScreen(controller, source=keys, target=paper, **words)  # type: ignore[arg-type]
        running = asyncio.ensure_future(face.run())
        made = Session(face, keys, controller, paper)
        try:
            await made.until(lambda: bool(made.rows))
            yield made
        finally:
            face._leave()
            await asyncio.wait_for(running, PATIENCE)


def start(**facts: object) -> View:
    return view("brandubh", legal=LEGAL, ready=True, prompt="attackers", **facts)  # type: ignore[arg-type]


def test_a_typed_line_is_handed_on() -> None:
    async def body() -> None:
        async with session(start()) as seen:
            await seen.shown("4 t t T K T t t 4")
            await seen.shown("attackers>")
            seen.keys.send_text("  d2e2 \r\r   \r")
            await seen.said("d2e2")
            seen.keys.send_text("undo\r")
            await seen.said("d2e2", "undo")

    asyncio.run(body())


def test_lines_keep_their_order_while_one_takes_its_time() -> None:
    async def body() -> None:
        async with session(start()) as seen:
            seen.controller.held = asyncio.Event()
            seen.keys.send_text("one\rtwo\rthree\r")
            await seen.shown("attackers>")
            seen.controller.held.set()
            await seen.said("one", "two", "three")

    asyncio.run(body())


def test_a_flood_of_lines_is_bounded() -> None:
    async def body() -> None:
        async with session(start()) as seen:
            seen.controller.held = asyncio.Event()
            seen.keys.send_text("x\r" * 300)
            await seen.until(lambda: len(seen.face._tasks) == WAITING)
            seen.keys.send_text("z" * 6000)
            await seen.until(lambda: len(seen.face._buffer.text) == 6000)
            seen.controller.held.set()
            await seen.until(lambda: not seen.face._tasks)
            seen.keys.send_text("\r")
            await seen.until(lambda: len(seen.controller.lines[-1]) == LONGEST)
            assert len(seen.controller.lines) <= WAITING + 1

    asyncio.run(body())


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("\x1bOP", "help"),
        ("\x1bOR", "flip"),
        ("\x1bOS", "set zoom 1"),
        ("\x1b[15~", "hint"),
        ("\x1b[17~", "undo"),
        ("\x1b[18~", "redo"),
        ("\x1b[19~", "pause"),
        ("\x1b[20~", "step"),
        ("\x1b[D", "goto back"),
        ("\x1b[C", "goto next"),
        ("\x1b[H", "goto start"),
        ("\x1b[F", "goto end"),
        ("\x03", "<Ctrl-C>"),
    ],
)
def test_keys_are_lines(keys: str, line: str) -> None:
    async def body() -> None:
        async with session(start()) as seen:
            seen.keys.send_text(keys)
            await seen.said(line)

    asyncio.run(body())


def test_every_key_is_told() -> None:
    told = " ".join(KEYS).lower()
    for key in (*LINES, *STEPS, "f2", "f4", "tab", "pageup", "escape", "ctrl-c", "ctrl-d"):
        assert key in told


def test_arrows_edit_where_something_is_typed() -> None:
    async def body() -> None:
        async with session(start()) as seen:
            seen.keys.send_text("d2e\x1b[D2\x1b[C2\x1b[H# \r")
            await seen.said("# d22e2")

    asyncio.run(body())


def test_control_c_empties_a_typed_line_first() -> None:
    async def body() -> None:
        async with session(start()) as seen:
            seen.keys.send_text("resi\x03")
            await seen.until(lambda: seen.face._buffer.text == "")
            assert seen.controller.lines == []
            seen.keys.send_text("\x03")
            await seen.said("<Ctrl-C>")

    asyncio.run(body())


def test_control_c_stops_what_runs_even_while_something_is_typed() -> None:
    async def body() -> None:
        async with session(start(words=("moves", "stop"))) as seen:
            seen.keys.send_text("resi\x03")
            await seen.said("<Ctrl-C>")
            assert seen.face._buffer.text == "resi"

    asyncio.run(body())


def run_to_its_end(keys: str, **answers: Reply | Exception) -> Listener:
    """Press keys until the full screen leaves by itself."""

    async def body() -> Listener:
        controller = Listener(start())
        controller.answers.update(answers)
        with create_pipe_input() as source:
            face = FullScreen(controller, source=source, target=Paper())
            source.send_text(keys)
            assert await asyncio.wait_for(face.run(), PATIENCE) == 0
        return controller

    return asyncio.run(body())


def test_what_leaves() -> None:
    assert run_to_its_end("\x04").lines == []
    assert run_to_its_end("quit\r", quit=Reply(quit=True)).lines == ["quit"]


def test_control_d_does_not_leave_a_half_typed_line() -> None:
    assert run_to_its_end("quix\x02\x04t\r", quit=Reply(quit=True)).lines == ["quit"]


def test_an_error_of_the_controller_ends_the_screen_and_is_raised() -> None:
    with pytest.raises(RuntimeError, match="broken"):
        run_to_its_end("hint\r", hint=RuntimeError("broken"))


def test_an_interrupt_before_the_first_screen_draws_none() -> None:
    async def body(paper: Paper) -> None:
        running = asyncio.current_task()
        assert running is not None
        running.cancel()  # as asyncio does at the first Ctrl-C
        with create_pipe_input() as source:
            await FullScreen(Listener(start()), source=source, target=paper).run()

    paper = Paper()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(asyncio.wait_for(body(paper), PATIENCE))
    assert paper.mouse == []


def test_the_screen_leaves_when_the_game_is_closed() -> None:
    async def body() -> None:
        controller = Listener(start())
        with create_pipe_input() as source:
            face = FullScreen(controller, source=source, target=Paper())
            running = asyncio.ensure_future(face.run())
            deadline = time.monotonic() + PATIENCE
            while not controller.callbacks or not face.application.is_running:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.002)
            controller.change(closed=True)
            assert await asyncio.wait_for(running, PATIENCE) == 0

    asyncio.run(body())


def test_the_screen_follows_the_view() -> None:
    async def body() -> None:
        async with session(start()) as seen:
            await seen.shown("attackers to move")
            other = view("brandubh", "7/7/7/3K3/7/7/7", board_facts={"side": "d"})
            seen.controller.change(board=other.board, prompt="defenders", arrivals=1)
            await seen.shown("4 . . . K . . . 4")
            await seen.shown("defenders to move")
            await seen.shown("defenders>")

    asyncio.run(body())


def test_what_comes_by_itself_leaves_the_typed_line_alone() -> None:
    async def body() -> None:
        async with session(start()) as seen:
            seen.keys.send_text("d2")
            await seen.shown("attackers> d2")
            seen.controller.change(log=(LogLine(1, "the engine was started again", "news"),))
            await seen.shown("the engine was started again")
            assert any("attackers> d2" in row for row in seen.rows)
            assert seen.controller.lines == []

    asyncio.run(body())


def test_a_move_by_mouse() -> None:
    async def body() -> None:
        async with session(with_settings(start(), colour="no")) as seen:
            seen.click("d2")
            await seen.shown("2 . .<./t<.>. . 2")
            seen.click("e2")
            await seen.said("d2e2")
            await seen.shown("2 . . . t . . . 2")

    asyncio.run(body())


def test_a_click_elsewhere_chooses_anew_or_asks_why_not() -> None:
    async def body() -> None:
        async with session(with_settings(start(), colour="no")) as seen:
            seen.click("d2")
            await seen.shown("/t<")
            seen.click("a4")
            await seen.shown("/t/")
            seen.click("a4")
            await seen.until(lambda: not any("/" in row for row in seen.rows[:-1]))
            seen.click("d2")
            await seen.shown("/t<")
            seen.click("g1")
            await seen.said("d2g1")
            seen.click("d4")
            await seen.said("d2g1", "moves d4")
            seen.click("b2")
            seen.click("d4")
            await seen.said("d2g1", "moves d4", "moves d4")

    asyncio.run(body())


def test_a_stone_is_placed_by_one_click() -> None:
    async def body() -> None:
        seen_view = view("hex:5", legal=(move("c3"), move("b2")), ready=True)
        async with session(seen_view) as seen:
            seen.click("c3")
            await seen.said("c3")

    asyncio.run(body())


def test_a_typed_square_shows_where_its_man_may_go() -> None:
    async def body() -> None:
        async with session(with_settings(start(), colour="no")) as seen:
            seen.keys.send_text("D2")
            await seen.shown("/t<")
            seen.keys.send_text("\x7f\x7f")
            await seen.shown("2 . . . t . . . 2")

    asyncio.run(body())


def test_a_key_gives_the_mouse_back_to_the_terminal() -> None:
    async def body() -> None:
        async with session(start()) as seen:
            await seen.until(lambda: True in seen.paper.mouse)
            seen.keys.send_text("\x1bOQ")
            await seen.until(lambda: seen.paper.mouse[-1] is False)
            seen.keys.send_text("\x1bOQ")
            await seen.until(lambda: seen.paper.mouse[-1] is True)
        async with session(with_settings(start(), mouse=False)) as seen:
            assert seen.paper.mouse == []

    asyncio.run(body())


def test_a_long_answer_is_read_over_the_whole_screen() -> None:
    async def body() -> None:
        async with session(start()) as seen:
            seen.controller.answers["help"] = Reply(tuple(f"line {number}." for number in range(1, 61)))
            seen.keys.send_text("help\r")
            await seen.shown("line 1.")
            await seen.shown("1-22 of 60 lines")
            seen.keys.send_text("\x1b[6~")
            await seen.shown("23-44 of 60 lines")
            seen.keys.send_text("\x1b[6~\x1b[6~")
            await seen.shown("line 60.")
            seen.keys.send_text("\x1b[5~")
            await seen.shown("17-38 of 60 lines")
            seen.keys.send_text("\x1b")
            await seen.shown("4 t t T K T t t 4")
            seen.keys.send_text("\x1b[5~")
            await seen.shown("39-60 of 60 lines")
            seen.keys.send_text("board\r")
            await seen.shown("4 t t T K T t t 4")

    asyncio.run(body())


def test_the_keys_are_told_without_the_controller() -> None:
    async def body() -> None:
        async with session(start()) as seen:
            seen.keys.send_text("keys\r")
            await seen.shown(KEYS[0])
            seen.keys.send_text("\x1b")
            await seen.shown("4 t t T K T t t 4")
            assert seen.controller.lines == []

    asyncio.run(body())


def test_the_tab_key_offers_what_is_possible() -> None:
    async def body() -> None:
        async with session(start(), completer=WordCompleter(["d2c2", "d2e2"])) as seen:
            seen.keys.send_text("d2\t")
            await seen.shown("d2c2")
            await seen.shown("d2e2")
            seen.keys.send_text("\t\t\r")
            await seen.said("d2e2")

    asyncio.run(body())


def test_typed_lines_come_back() -> None:
    async def body() -> None:
        async with session(start()) as seen:
            seen.keys.send_text("hint\reval\r")
            await seen.said("hint", "eval")
            await seen.until(lambda: len(seen.face._buffer._working_lines) == 3)
            seen.keys.send_text("\x1b[A\x1b[A\r")
            await seen.said("hint", "eval", "hint")

    asyncio.run(body())


def test_another_size() -> None:
    async def body() -> None:
        async with session(view("copenhagen", ready=True)) as seen:
            await seen.shown(" 6 t t . T T K T T . t t 6")
            seen.paper.size = Size(rows=15, columns=40)
            seen.face.application._on_resize()
            await seen.shown("little room")
            await seen.shown(" 6 tt.TTKTT.tt")
            seen.paper.size = Size(rows=24, columns=80)
            seen.face.application._on_resize()
            await seen.shown(" 6 t t . T T K T T . t t 6")

    asyncio.run(body())


@pytest.mark.parametrize("typed", ["", "moves d2"])
def test_the_prompt_comes_back_when_a_tiny_window_grows(typed: str) -> None:
    async def body() -> None:
        async with session(start()) as seen:
            seen.keys.send_text(typed)
            await seen.until(lambda: seen.rows[-1].startswith(f"attackers> {typed}".rstrip()))
            seen.paper.size = Size(rows=2, columns=5)
            seen.face.application._on_resize()
            await seen.until(lambda: seen.rows[-1] == (typed or "rs>")[-4:])
            seen.paper.size = Size(rows=24, columns=80)
            seen.face.application._on_resize()
            await seen.until(lambda: seen.rows[-1].startswith(f"attackers> {typed}".rstrip()))

    asyncio.run(body())


def test_a_line_longer_than_the_window_is_scrolled() -> None:
    """The cursor can go through it, and what is on both sides of the cursor is seen."""

    async def body() -> None:
        async with session(start(), 40) as seen:
            seen.keys.send_text("help " + "0123456789" * 5)
            await seen.until(lambda: seen.rows[-1] == ("0123456789" * 5)[-39:])
            window = seen.face.application.layout.current_window
            seen.keys.send_text("\x1b[D" * 10)
            await seen.until(lambda: window.render_info.cursor_position.x == 29)
            assert seen.rows[-1] == ("0123456789" * 5)[-39:]
            seen.keys.send_text("\x01")
            await seen.until(lambda: seen.rows[-1].startswith("help 01"))

    asyncio.run(body())


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (10, 2), (300, 90)])
def test_any_size_is_survived(size: tuple[int, int]) -> None:
    async def body() -> None:
        async with session(view("alea-ludii", ready=True), *size) as seen:
            seen.keys.send_text("x\r")
            await seen.said("x")

    asyncio.run(body())


def test_other_settings_are_seen_at_once() -> None:
    async def body() -> None:
        async with session(start()) as seen:
            assert seen.face._style() is seen.face._style()
            before = seen.face._style()
            seen.controller.change(settings=replace(seen.controller.view.settings, theme="light", zoom=2))
            await seen.shown("| K |")
            assert seen.face._style() is not before

    asyncio.run(body())


def test_foreign_text_is_harmless() -> None:
    async def body() -> None:
        evil = "a\x1b[2Jb\u202e"
        seen_view = start(names=(evil, evil), log=(LogLine(1, evil, "news"),))
        async with session(seen_view) as seen:
            await seen.shown("a?[2Jb?")
            screen = seen.face._control._shown
            assert screen is not None
            assert not any(sign in plain(line) for line in screen.lines for sign in "\x1b\u202e")

    asyncio.run(body())
