"""The review of a game: judged moves, better lines in the tree, told and saved; stopped, and without an engine."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from terminal_parts import FAULTS, GAME, House, Person

from hnefi.engine import games
from hnefi.engine.records.formats import Reading, read
from hnefi.engine.records.record import GameRecord, Ply, sorted_squares
from hnefi.engine.records.rule_sets import finder
from hnefi.engine.records.text import Losses
from hnefi.gui_adapter.terminal import panes
from hnefi.gui_adapter.terminal.opponents import Opponent, Spec
from hnefi.gui_adapter.terminal.theme import plain
from hnefi.protocol.hosts.assessment import remarks

pytestmark = pytest.mark.process
SHORT = "review 300"
ENDLESS = "review 100000000"


async def whole_game(person: Person) -> None:
    await person.plays("side both", *GAME)


def saved(path: Path) -> GameRecord:
    with path.open("rb") as stream:
        return next(iter(read(stream, str(path), "tafl", Reading(finder()), Losses()))).record


def expect_playable(record: GameRecord) -> int:
    """Every line of a record follows the rules, captures included; how many variations there are."""
    found = 0

    def walk(position: games.Position, plies: tuple[Ply, ...]) -> None:
        nonlocal found
        for ply in plies:
            for line in ply.variations:
                found += 1
                walk(position, line)
            position = position.play(ply.move)
            assert ply.captures in (None, sorted_squares(position.last_captures))

    walk(games.initial(games.find(record.variant)), record.plies)
    return found


def test_a_whole_game(house: House, tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        await whole_game(person)
        await person.types(SHORT)
        await person.controller.settled()
        assert "The review is over" in " ".join(person.said)
        (accuracy,) = (line for line in person.said if line.startswith("Accuracy: "))
        reply = await person.types("review")
        assert any("accuracy" in line for line in reply.lines)
        assert any(line.startswith("What the attackers may expect") for line in reply.lines)
        assert any("50 %" in line for line in reply.lines), "the chart"
        first = await person.types("review next")
        assert first.show
        marked = [entry for entry in person.view.history if remarks.SIGN in entry.comment]
        assert person.view.ply == marked[0].ply
        for entry in marked[1:]:
            await person.types("review next")
            assert person.view.ply == entry.ply
        assert "no move after this one" in await person.fails("review next")
        await person.types("goto end", "review back")
        await person.types(f"save {tmp_path / 'reviewed'}")
        record = saved(tmp_path / "reviewed.tafl")
        assert expect_playable(record) >= 1
        assert record.tag("Analysis") == "hnefi default, 300 nodes"
        assert f"attackers {record.tag('AttackersAccuracy')} %" in accuracy
        assert all(ply.cp is not None or ply.mate is not None for ply in record.plies)
        comments = [ply.comment for ply in record.plies if ply.comment]
        assert len(comments) == len(marked)
        # Once more, and after it was loaded: nothing is collected.
        await person.types(f"load {tmp_path / 'reviewed.tafl'}", SHORT)
        await person.controller.settled()
        await person.types(f"save {tmp_path / 'again'}")
        again = saved(tmp_path / "again.tafl")
        assert [ply.comment.count(remarks.SIGN) for ply in again.plies] == [
            int(bool(ply.comment)) for ply in again.plies
        ]
        assert [name for name, _ in again.tags].count("Analysis") == 1

    house.talk(story)


def test_own_comments_and_variations_stay(house: House) -> None:
    async def story(person: Person) -> None:
        await person.plays(
            "side both", "b4b2", "undo 1", "b4b3", "undo 1", "b4b2", "annotate too timid", "c4b4"
        )
        await person.types(SHORT)
        await person.controller.settled()
        first = person.view.history[0]
        assert first.comment.startswith("too timid")
        assert first.variations >= 1
        assert len(person.view.history) == 2

    house.talk(story)


def test_stopped_it_keeps_what_is_known(house: House) -> None:
    async def story(person: Person) -> None:
        await whole_game(person)
        await person.types(SHORT)
        review = person.controller.session.review
        assert review is not None
        review.limit = 100_000_000  # of all positions but the first
        view = await person.sees(lambda view: view.reviewing == "review 1 of 9")
        assert "one is running (review 1 of 9)" in await person.fails("review")
        assert "review 1 of 9" in plain(panes.status(view, 80))
        assert "stop" in view.words
        await person.types("stop")
        await person.controller.settled()
        assert person.view.reviewing == ""
        assert "Not analysed: 8 of 9 positions." in person.said
        assert any("The review was stopped after 1 of 9 positions:" in line for line in person.said)
        assert any("?" in line for line in (await person.types("review")).lines), "what is unknown is marked"

    house.talk(story)


def test_stopped_before_it_knows_anything_it_begins_anew(house: House) -> None:
    async def story(person: Person) -> None:
        await whole_game(person)
        await person.types(ENDLESS, "stop")
        await person.controller.settled()
        assert "Not analysed: 9 of 9 positions." in person.said
        assert person.said[-1] == "`review` begins anew."
        assert (await person.types("review")).lines == ("Our engine looks at 9 positions; `stop` ends it.",)

    house.talk(story)


def test_it_ends_an_analysis(house: House) -> None:
    """Which never ends by itself, and keeps the engine busy."""

    async def story(person: Person) -> None:
        await person.plays("side both", "b4b2")
        await person.types("analyze")
        await person.sees(lambda view: view.thinking and view.thinking.lines)
        assert (await person.types(SHORT)).lines[0] == "The analysis has ended."
        await person.controller.settled()
        assert any(line.startswith("The review is over: ") for line in person.said)
        assert person.view.mode == "play"

    house.talk(story)


def test_the_game_goes_on_beside_it_and_a_new_one_ends_it(house: House) -> None:
    async def story(person: Person) -> None:
        await person.plays("side both", "b4b2", "c4b4")
        await person.types(ENDLESS, "d1c1")
        assert person.view.reviewing
        assert len(person.view.history) == 3
        assert "a review is running (review 0 of 3)" in await person.fails("analyze")
        await person.types("new brandubh")
        await person.controller.settled()
        assert person.view.reviewing == ""
        assert not any("review is over" in line for line in person.said)

    house.talk(story)


def test_a_script_is_told_everything(house: House) -> None:
    async def story(person: Person) -> None:
        await whole_game(person)
        await person.types(SHORT)
        await person.controller.settled()
        assert "Review: 6 of 9 positions." in person.said
        assert any(line.startswith("accuracy") for line in person.said)

    house.talk(story, interactive=False)


def test_an_engine_that_fails_is_asked_no_more(house: House) -> None:
    async def story(person: Person) -> None:
        await whole_game(person)
        broken = (sys.executable, "-I", "-S", str(FAULTS), ",".join(GAME), "exit", "at=1")
        person.controller.session.players.helper = Opponent(Spec(command=broken))
        await person.types(SHORT)
        await person.controller.settled()
        assert any(line.startswith("Our engine failed: ") for line in person.said), shlex.join(broken)
        assert "Not analysed: 9 of 9 positions." in person.said

    house.talk(story)


def test_what_cannot_be_reviewed(house: House) -> None:
    async def story(person: Person) -> None:
        await person.controller.settled()
        assert await person.fails("review") == "review: nothing has been played"
        await person.plays("side both", "b4b2")
        assert "no move is marked" in await person.fails("review next")
        for word in ("0", "-1", "much", "9" * 30):
            assert "expected a whole number from 1" in await person.fails(f"review {word}")

    house.talk(story)


@pytest.mark.parametrize("comment", ["", "mine", "mine » his", "»x", "»"])
def test_remarks_come_off_again(comment: str) -> None:
    bare = remarks.without_remark(comment)
    assert remarks.without_remark(remarks.with_remark(bare, "? mistake")) == bare
