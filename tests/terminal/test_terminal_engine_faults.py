"""Games at the terminal with engines that go wrong: what is said, who has won, and that the game goes on."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from functools import partialmethod
from pathlib import Path
from typing import ClassVar
from unittest.mock import AsyncMock

import pytest
from terminal_parts import GAME, PATIENCE, House, Person, moves_of, parrot

from hnefi.engine.games import find
from hnefi.gui_adapter.terminal import controller, opponents
from hnefi.gui_adapter.terminal.game import PositionSpec
from hnefi.gui_adapter.terminal.opponents import Opponent, at_level, by_command
from hnefi.gui_adapter.terminal.rules_process import RulesProcess
from hnefi.protocol.client import Engine, EngineError

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    ("fault", "said"),
    [("exit", "ended"), ("segv", "SIGSEGV"), ("illegal=d7d1", "answered d7d1"), ("close-stdout", "closed")],
)
def test_an_engine_that_fails_once_is_started_again(house: House, fault: str, said: str) -> None:
    async def story(person: Person) -> None:
        await person.plays(*GAME[::2])
        assert moves_of(person.view) == list(GAME)
        assert any(said in line and "It is restarted" in line for line in person.said), person.said
        assert person.controller.status == 0

    house.talk(story, engine=parrot(fault, "at=2"))


@pytest.mark.parametrize("fault", ["exit", "illegal=zz", "illegal=\x1b[2Jx"])
def test_a_game_survives_an_engine_that_fails_twice(house: House, fault: str) -> None:
    async def story(person: Person) -> None:
        await person.types("b4b2")
        await person.hears("Nobody plays the defenders now")
        assert person.view.kinds == ("person", "person")
        assert all("\x1b" not in line for line in person.said)
        await person.types(*GAME[1:])
        assert person.view.end is not None
        assert person.controller.status == 3

    house.talk(story, engine=parrot(fault, "at=1"))


def test_an_engine_that_hangs_is_given_up(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opponents, "GRACE", 0.2)

    async def story(person: Person) -> None:
        await person.types("b4b2")
        await person.hears("Nobody plays the defenders now")
        await person.types("c4b4")

    spec = by_command(parrot("hang", "at=1"), find("brandubh"))
    house.talk(story, engine=replace(spec, movetime=200))


def test_an_engine_that_does_not_stop_can_be_left(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "GRACE", PATIENCE)

    async def story(person: Person) -> None:
        await person.types("b4b2")
        await person.sees(lambda view: view.thinking is not None)
        reply = await person.controller.interrupt()
        assert (reply.lines, reply.quit) == (("Told to stop; if it does not, Ctrl-C again leaves.",), False)
        assert (await person.controller.interrupt()).quit
        assert person.controller.status == 1

    house.talk(story, engine=parrot("hang", "at=1"))


def test_a_review_beside_it_is_stopped_first(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "GRACE", PATIENCE)

    async def story(person: Person) -> None:
        await person.types("b4b2")
        await person.sees(lambda view: view.thinking is not None)
        await person.types("review 100000000")
        await person.sees(lambda view: view.reviewing)
        assert (await person.controller.interrupt()).lines == ("Stopped.",)
        await person.sees(lambda view: not view.reviewing)
        assert (await person.controller.interrupt()).lines[0].startswith("Told to stop;")
        assert (await person.controller.interrupt()).quit

    house.talk(story, engine=parrot("hang", "at=1"))


@pytest.mark.process
def test_our_engines_hear_what_they_are_for_before_they_answer(house: House) -> None:
    """On an empty cache they would otherwise compile tafl for whoever plays hex, and two searches for one opponent."""
    told: list[str] = []

    def hear(_: float, arrow: str, line: bytes) -> None:
        told.append(f"{arrow}{line.decode()}")

    async def story() -> None:
        opponent, rules = Opponent(at_level("2"), traffic=hear), RulesProcess(traffic=hear)
        game = find("hexapawn:4x3")
        try:
            for first, expected in (
                (
                    opponent.prepare(game, 1, "d"),
                    ("setoption name SkillLevel value 2", "variant hexapawn:4x3"),
                ),
                (
                    rules.check(PositionSpec(game)),
                    ("setoption name Algorithm value random", "variant hexapawn:4x3"),
                ),
            ):
                told.clear()
                await first
                sent = [line[1:].strip() for line in told if line[0] == ">"]
                assert all(sent.index(line) < sent.index("isready") for line in expected), told
        finally:
            await opponent.close()
            await rules.close()

    house.run(story())


def test_an_engine_that_is_sent_away_while_it_starts(house: House) -> None:
    async def story() -> None:
        opponent = Opponent(by_command(parrot(), find("brandubh")))
        starting = asyncio.ensure_future(opponent.prepare(find("brandubh"), 1, "d"))
        await asyncio.sleep(0)
        await opponent.close()
        with pytest.raises(EngineError, match="no longer needed"):
            await starting
        assert opponent._engine is None

    house.run(story())


@pytest.mark.parametrize("moment", ["set_variant", "set_option", "new_game"])
def test_an_engine_that_is_sent_away_while_it_is_prepared(
    house: House, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever of it is still under way is asked of the process that was, and of nothing else."""
    asked = []

    class Leaving:
        failure = None
        name = "Leaving"
        options: ClassVar[dict[str, object]] = {}

        async def quit(self, _: float) -> None:
            asked.append("quit")

    async def ask(_: object, *__: object, word: str) -> None:
        asked.append(word)
        if word == moment:
            await opponent.rest()

    for word in ("set_variant", "set_option", "new_game"):
        setattr(Leaving, word, partialmethod(ask, word=word))
    monkeypatch.setattr(Engine, "start", AsyncMock(return_value=Leaving()))
    opponent = Opponent(at_level("2"))
    house.run(opponent.prepare(find("brandubh"), 1, "d", book=True))
    assert [word for word in asked if word != "quit"] == ["set_variant", "set_option", "new_game"]
    assert asked.index("quit") == asked.index(moment) + 1
    assert opponent._engine is None


def test_a_command_that_is_none(house: House, tmp_path: Path) -> None:
    """A file that may be run and cannot be; a program that does not exist is not even seated."""
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF")
    broken.chmod(0o755)

    async def story(person: Person) -> None:
        for command in ("/no/such/engine", "no-such-engine --fast"):
            assert "no such program" in await person.fails(f"engine {command}")
        assert person.view.names[1] == "broken"
        await person.types("b4b2")
        await person.hears(f"cannot start {broken}")
        await person.types("c4b4")
        assert person.controller.status == 3
        await person.types("level d 1")
        assert person.controller.status == 0

    house.talk(story, engine=str(broken))


def test_floods_and_garbage_from_an_engine_do_no_harm(house: House) -> None:
    async def story(person: Person) -> None:
        await person.plays(*GAME[:4:2])
        assert moves_of(person.view) == list(GAME[:4])

    for fault in ("info-flood", "bytes", "twice"):
        house.talk(story, engine=parrot(fault, "at=2"))


def test_the_rules_engine_is_started_again(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types("b4b2")
        assert rules._engine is not None
        os.kill(rules._engine.pid, signal.SIGKILL)
        await person.types("c4b4", "d1c1")
        assert rules.restarts == 1
        assert person.controller.status == 0

    async def make() -> RulesProcess:
        return RulesProcess()

    rules = house.run(make())
    house.talk(story, rules=rules)


def test_without_rules_there_is_no_game(house: House) -> None:
    async def story(person: Person) -> None:
        assert "cannot be asked for the rules" in await person.fails("b4b2")
        await person.types("help", "quit")
        assert "cannot be asked for the rules" in await person.fails("undo")
        assert person.view.closed
        assert person.controller.status == 4

    async def make() -> RulesProcess:
        return RulesProcess(["/no/such/rules"])

    house.talk(story, rules=house.run(make()))
