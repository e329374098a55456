"""The prompt with a pipe for a keyboard: keys, completion, what is said while a line is being typed."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output
from terminal_parts import GAME, PATIENCE, House, Person, parrot

from hnefi.engine.search.types import Limits
from hnefi.gui_adapter.terminal import opponents
from hnefi.gui_adapter.terminal.opponents import at_level
from hnefi.gui_adapter.terminal.repl import Repl, WordCompleter

pytestmark = pytest.mark.process

CTRL_C, CTRL_D, CTRL_U, TAB = "\x03", "\x04", "\x15", "\t"


class Typist(Person):
    """A person at a keyboard, in front of a screen that is a string."""

    keys: PipeInput
    screen: io.StringIO
    repl: Repl
    running: asyncio.Task[int]

    def press(self, text: str) -> None:
        self.keys.send_text(text)

    async def shows(self, what: Callable[[Repl], Any]) -> None:
        """Wait until the prompt is as expected."""
        await self.sees(lambda _: what(self.repl))

    @property
    def text(self) -> str:
        """What stands on the line."""
        return self.repl._session.default_buffer.text

    @property
    def toolbar(self) -> str:
        return "".join(text for _, text in self.repl._toolbar())

    @property
    def prompt(self) -> str:
        return "".join(text for _, text in self.repl._message())

    async def prompted(self) -> None:
        """Wait until something can be typed."""
        await self.sees(lambda view: view.ready and self.repl._session.app.is_running)


def at_prompt(house: House, story: Callable[[Typist], Awaitable[None]], status: int = 0, **more: Any) -> str:
    """Let a typist live through a story that ends with the end of the prompt; what was on the screen."""

    async def sit_down(person: Person) -> None:
        screen = io.StringIO()
        with (
            create_pipe_input() as keys,
            create_app_session(
                input=keys,
                output=Vt100_Output(
                    screen, lambda: Size(40, 100), term="xterm", enable_bell=False, enable_cpr=False
                ),
            ),
        ):
            typist = Typist(person.controller, person.folder)
            typist.keys, typist.screen = keys, screen
            typist.repl = Repl(person.controller)
            typist.running = asyncio.ensure_future(typist.repl.run())
            await typist.prompted()
            await story(typist)
            assert await asyncio.wait_for(typist.running, PATIENCE) == status
            screens.append(screen.getvalue())

    screens: list[str] = []
    house.talk(sit_down, start=False, **more)
    return screens[0]


def test_a_whole_game_is_typed(house: House) -> None:
    async def story(typist: Typist) -> None:
        for move in GAME:
            await typist.prompted()
            typist.press(f"{move}\r")
            await typist.sees(lambda view, move=move: view.history and view.history[-1].text == move)
        await typist.shows(lambda _: typist.prompt == "game over> ")
        typist.press("quit\r")

    screen = at_prompt(house, story)
    assert screen.count("The game is over: defenders win: king escaped.") == 1


def test_no_key_is_lost_while_something_is_printed(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that leaves raw mode to print takes a Ctrl-D for an end of file, and nobody hears of it."""
    left: list[str] = []

    def cooked(keyboard: PipeInput) -> AbstractContextManager[None]:
        left.append(keyboard.typeahead_hash())
        return nullcontext()

    async def story(typist: Typist) -> None:
        monkeypatch.setattr(type(typist.keys), "cooked_mode", cooked)
        typist.controller.say("Hint: a4a2")
        while "Hint: a4a2" not in typist.screen.getvalue():
            await asyncio.sleep(0.01)
        typist.press(CTRL_D)

    at_prompt(house, story)
    assert not left


def test_an_illegal_move_is_explained_while_it_is_typed(house: House) -> None:
    async def story(typist: Typist) -> None:
        typist.press("d1d3")
        await typist.shows(lambda _: typist.toolbar.startswith("d1d3: blocked at d2"))
        typist.press(CTRL_U + "und")
        await typist.shows(lambda _: typist.toolbar.startswith("undo [N]: take back"))
        typist.press(CTRL_C)
        await typist.shows(lambda _: typist.text == "")
        typist.press("d1d3\r")
        await typist.hears("d1d3: blocked at d2")
        typist.press(CTRL_D)

    at_prompt(house, story)


def test_an_engine_speaks_above_a_line_that_is_half_typed(house: House, tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    async def story(typist: Typist) -> None:
        typist.press("b4b2\r")
        await typist.prompted()
        typist.press("hist")
        await typist.shows(lambda _: typist.text == "hist")
        gate.touch()
        await typist.sees(lambda view: view.ply == 2)
        await typist.shows(lambda _: typist.text == "hist")
        typist.press("ory\r")
        await typist.hears("  1. b4b2  c4b4*")
        typist.press(CTRL_D)

    screen = at_prompt(house, story, engine=parrot("at=99", f"gate={gate}"))
    assert "defenders (Parrot): c4b4" in screen


def test_the_game_ends_while_something_is_typed(house: House, tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    async def story(typist: Typist) -> None:
        for move in GAME[::2]:
            await typist.sees(lambda view: view.persons_turn)
            await typist.prompted()
            typist.press(f"{move}\r")
            await typist.sees(lambda view, move=move: any(entry.text == move for entry in view.history))
        await typist.prompted()
        typist.press("a4a")
        await typist.shows(lambda _: typist.text == "a4a")
        gate.touch()
        await typist.sees(lambda view: view.end is not None)
        await typist.shows(lambda _: typist.prompt == "game over> ")
        assert typist.text == "a4a"
        typist.press("3\r")
        await typist.hears("a4a3: the game is over")
        typist.press(CTRL_D)

    at_prompt(house, story, engine=parrot("at=99", f"gate={gate}", f"held={len(GAME) - 1}"))


def test_ctrl_c_stops_a_search_and_then_asks(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = replace(opponents.LEVELS[10], limits=Limits(movetime=600_000))
    monkeypatch.setitem(opponents.LEVELS, 10, whole)

    async def story(typist: Typist) -> None:
        typist.press("b4b2\r")
        await typist.sees(lambda view: view.thinking is not None and view.thinking.lines)
        assert "hnefi level 10: depth" in typist.toolbar
        assert "tackers " in typist.toolbar or "fenders " in typist.toolbar
        typist.press(CTRL_C)
        await typist.sees(lambda view: view.ply == 2)
        typist.press(CTRL_C)
        await typist.shows(lambda _: typist.prompt == "yes or no> ")
        typist.press("n\r")
        await typist.shows(lambda _: typist.prompt == "attackers> ")
        await typist.prompted()
        typist.press(CTRL_C)
        await typist.sees(lambda view: view.question)
        typist.press(CTRL_C)

    screen = at_prompt(house, story, status=1, engine=at_level("10"))
    assert "The game is saved: `hnefi play --continue` resumes it." in screen


def test_analysis_is_shown_below_and_typing_goes_on(house: House) -> None:
    async def story(typist: Typist) -> None:
        typist.press("analyze\r")
        await typist.sees(lambda view: view.thinking is not None and view.thinking.lines)
        await typist.shows(lambda _: "depth" in typist.toolbar)
        assert typist.prompt == "analysis, attackers to move> "
        await typist.prompted()
        typist.press("a4a2\r")
        await typist.shows(lambda _: typist.prompt == "analysis, defenders to move> ")
        await typist.prompted()
        typist.press("stop\r")
        await typist.shows(lambda _: typist.prompt == "defenders> ")
        await typist.prompted()
        typist.press("quit\r")

    at_prompt(house, story)


def test_the_tab_key_offers_moves_and_words(house: House) -> None:
    async def story(typist: Typist) -> None:
        typist.press("h" + TAB)
        await typist.shows(lambda repl: repl._session.default_buffer.complete_state is not None)
        typist.press(CTRL_C)
        await typist.shows(lambda _: typist.text == "")
        typist.press("a4a2\r")
        await typist.sees(lambda view: view.ply == 1)
        await typist.prompted()
        typist.press("d3a" + TAB)
        await typist.shows(lambda _: typist.text == "d3a3")
        typist.press("\r")
        await typist.sees(lambda view: view.ply == 2)
        await typist.prompted()
        typist.press(CTRL_D)

    at_prompt(house, story)


def _offered(person: Person, text: str) -> dict[str, str]:
    """What would stand on the line, and what is said about it."""
    completer = WordCompleter(lambda: person.view)
    found = completer.get_completions(Document(text, len(text)), CompleteEvent())
    return {
        text[: len(text) + completion.start_position] + completion.text: completion.display_meta_text
        for completion in found
    }


def test_what_is_offered(house: House) -> None:
    async def story(person: Person) -> None:
        assert "a4" not in _offered(person, "")
        await person.types("a4a2")
        first = _offered(person, "")
        assert first["d3"] == "6 moves, 1 with captures"
        assert "a2" not in first
        assert "resign" in first
        assert _offered(person, "d3") == {
            "d3a3": "takes 1", "d3b3": "", "d3c3": "", "d3e3": "", "d3f3": "", "d3g3": "",
        }  # fmt: skip
        assert _offered(person, "d3 a") == {"d3 a3": "takes 1"}
        assert _offered(person, "D3-A") == {"d3a3": "takes 1"}
        assert list(_offered(person, "side b")) == ["side both"]
        assert "variant brandubh-wtf3" in _offered(person, "variant brandubh-")
        assert list(_offered(person, "set theme l")) == ["set theme light"]
        assert "set theme" in _offered(person, "set th")
        assert list(_offered(person, "player uct-100")) == ["player uct-100"]
        assert list(_offered(person, "help hin")) == ["help hint"]
        assert list(_offered(person, "goto s")) == ["goto start"]
        assert _offered(person, "zz") == {}
        assert _offered(person, "zzz zz") == {}
        await person.types("resign", "yes")
        after = _offered(person, "")
        assert "new" in after
        assert not {"d3", "resign", "go"} & set(after)

    house.talk(story)


def test_placements_and_the_swap_are_offered(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types("b2")
        offered = _offered(person, "")
        assert {"a1", "c3", "swap"} <= set(offered)
        assert "b2" not in offered
        assert _offered(person, "a1") == {"a1": ""}

    house.talk(story, variant="hex-swap:3")
