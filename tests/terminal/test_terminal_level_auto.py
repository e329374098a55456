"""`level auto`: a rating that is kept, the level that follows it, and which games count."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from terminal_parts import House, Person

from hnefi.engine.sides import Reason
from hnefi.gui_adapter.terminal import command
from hnefi.gui_adapter.terminal.controller import Controller
from hnefi.gui_adapter.terminal.game import Facts, PositionSpec, facts_of
from hnefi.gui_adapter.terminal.opponents import Opponent
from hnefi.gui_adapter.terminal.rules_process import RulesProcess
from hnefi.gui_adapter.terminal.settings import Settings
from hnefi.protocol.hosts.standing import FIRST, RATINGS, SUREST, Ladder, StandingError, nearest, rated

FEN = "4K2/7/7/7/t6/7/7 a 0 30"


class NoRules(RulesProcess):
    """Every position is legal, and nothing is known about it: games end by hand."""

    async def facts(self, position: PositionSpec) -> Facts:
        return facts_of(position.start or position.variant.startpos)

    async def check(self, position: PositionSpec) -> None:
        """Nothing is refused."""


@pytest.fixture(autouse=True)
def no_engines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Engines sit there and are never started: the person, who begins, never moves."""

    async def prepare(*_: Any) -> None:
        """Nothing is started."""

    async def think(*_: Any) -> None:
        raise AssertionError("an engine was asked")

    monkeypatch.setattr(Opponent, "prepare", prepare)
    monkeypatch.setattr(Opponent, "think", think)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def stored(folder: Path) -> dict[str, Any]:
    games: dict[str, Any] = json.loads((folder / "hnefi" / "standing.json").read_text("utf-8"))["games"]
    return games


# The rating


def test_a_person_of_whom_nothing_is_known_begins_low() -> None:
    assert nearest(FIRST.value) == 1


@pytest.mark.parametrize("level", range(1, 10))
def test_results_move_the_level_and_never_stop_doing_so(level: int) -> None:
    one = FIRST
    for _ in range(200):  # an even score against this level
        one = rated(rated(one, level, 1.0), level, 0.0)
    assert nearest(one.value) == level
    assert one.deviation == SUREST
    up = down = one
    for _ in range(6):
        up, down = (
            rated(up, nearest(up.value), 1.0),
            rated(down, nearest(down.value), 0.0),
        )
    assert nearest(down.value) < level < nearest(up.value)


def test_the_ends_of_the_scale_stay_on_it(tmp_path: Path) -> None:
    ladder = Ladder(tmp_path / "standing.json", keep=False)
    for score, last in ((0.0, min(RATINGS)), (1.0, max(RATINGS))):
        for _ in range(100):
            ladder.take("tafl", ladder.level("tafl"), score)
        assert ladder.level("tafl") == last


# The file


def test_a_rating_is_there_again_and_each_game_has_its_own(tmp_path: Path) -> None:
    path = tmp_path / "new" / "standing.json"
    Ladder(path).take("tafl", 1, 1.0)
    again = Ladder(path)
    assert again.level("tafl") == 2
    assert again.level("hex") == 1
    assert "nearest to your rating in tafl, 10" in again.words("tafl")
    assert "no rating in hex" in again.words("hex")


def test_many_at_once_lose_no_result(tmp_path: Path) -> None:
    """Each has read the file when it began; what the others have written since counts too."""
    path = tmp_path / "standing.json"
    ladders = [Ladder(path) for _ in range(4)]
    assert [ladder.level("tafl") for ladder in ladders] == [1] * 4

    def play(ladder: Ladder) -> None:
        for _ in range(5):
            ladder.take("tafl", 3, 1.0)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(play, ladders))
    one = FIRST
    for _ in range(20):
        one = rated(one, 3, 1.0)
    assert Ladder(path).known["tafl"].value == pytest.approx(one.value, abs=0.2)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "[" * 100_000,
        '{"format": 2, "games": {}}',
        '{"format": 1, "games": []}',
        '{"format": 1, "games": {"tafl": 5}}',
        '{"format": 1, "games": {"tafl": {"rating": NaN, "deviation": 100}}}',
        '{"format": 1, "games": {"tafl": {"rating": 1%s, "deviation": 100}}}' % ("0" * 400),
        '{"format": 1, "games": {"tafl": {"rating": 1000, "deviation": 0}}}',
    ],
)
def test_a_damaged_file_is_named_and_left_alone(text: str, tmp_path: Path) -> None:
    path = tmp_path / "standing.json"
    path.write_text(text, "utf-8")
    with pytest.raises(
        StandingError, match=r"standing\.json: expected the ratings that .* move the file away"
    ):
        Ladder(path).level("tafl")
    assert path.read_text("utf-8") == text


def test_what_cannot_be_kept_counts_in_this_sitting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ladder = Ladder(tmp_path / "standing.json")
    ladder.level("tafl")
    ladder.path = tmp_path / "file" / "standing.json"
    with pytest.raises(StandingError, match="this result is not saved"):
        ladder.take("tafl", 1, 1.0)
    assert ladder.news("tafl") == "Level 2 for the next game: you won 1 of 1 at level 1."


def test_without_keeping_a_rating_is_read_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "standing.json"
    Ladder(path).take("tafl", 1, 1.0)
    before = path.read_bytes()
    ladder = Ladder(path, keep=False)
    assert ladder.level("tafl") == 2
    for _ in range(3):
        ladder.take("tafl", 2, 1.0)
    assert ladder.level("tafl") > 2
    assert path.read_bytes() == before


def test_a_person_is_told_what_the_level_follows(tmp_path: Path) -> None:
    ladder = Ladder(tmp_path / "standing.json", keep=False)
    ladder.take("tafl", 9, 0.5)
    ladder.take("tafl", 9, 1.0)
    level = ladder.level("tafl")
    assert ladder.news("tafl") == f"Level {level} for the next game: you won 1 and drew 1 of 2 at level 9."
    for _ in range(200):
        ladder.take("tafl", 4, 1.0)
        ladder.take("tafl", 4, 0.0)
    assert ladder.news("tafl") == "Level 4 again for the next game: you won 200 of 400 at level 4."


# The game


async def wins(person: Person) -> None:
    """The engine gives up."""
    session = person.controller.session

    async def give_up() -> None:
        await session.declare("a", Reason.RESIGNATION)

    await person.controller.events.call(give_up, None)


def news(person: Person) -> list[str]:
    return [line for line in person.said if "for the next game" in line]


def test_the_next_game_follows_and_the_finished_one_keeps_its_name(house: House, tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        await person.types("side a", "level auto")
        assert "Level 1 to begin with: you have no rating in tafl yet." in person.said
        await wins(person)
        assert news(person) == ["Level 2 for the next game: you won 1 of 1 at level 1."]
        assert person.view.names[1] == "hnefi level 1"
        await person.types("new")
        assert (person.view.level, person.view.names[1]) == (2, "hnefi level 2")
        assert person.controller.session.players.rival.level == 2
        await person.types("resign")
        assert news(person)[1:] == ["Level 1 for the next game: you won 0 of 1 at level 2."]
        await person.types("new hex:5")
        assert person.view.level == 1
        await wins(person)
        await person.types("new brandubh", "level 7")
        await wins(person)
        await person.types("new")
        assert person.view.level == 7
        assert len(news(person)) == 3

    house.talk(story, rules=NoRules())
    assert set(stored(tmp_path)) == {"tafl", "hex"}


def test_a_game_counts_once(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types("side a", "level auto")
        await wins(person)
        await wins(person)
        assert len(news(person)) == 1

    house.talk(story, rules=NoRules())


@pytest.mark.parametrize("begun", [f"paste {FEN}", "paste b4b2", "load {}", "side both"])
def test_other_games_do_not_count(begun: str, house: House, tmp_path: Path) -> None:
    record = tmp_path / "game.tafl"
    record.write_text('[Variant "brandubh"]\n\n1. b4b2 *\n', "utf-8")

    async def story(person: Person) -> None:
        await person.types("side a", "level auto", begun.format(record))
        assert person.controller.session.players.follows
        await wins(person)
        assert person.view.end is not None
        assert news(person) == []

    house.talk(story, rules=NoRules())
    assert not (tmp_path / "hnefi" / "standing.json").exists()


def test_a_watched_game_does_not_count(house: House) -> None:
    async def story(person: Person) -> None:
        session = person.controller.session
        await person.types("side a", "level auto")
        watcher: Any = object()
        await person.controller.events.call(lambda: session.begin(session.variant, watcher=watcher), None)
        await wins(person)
        assert person.view.end is not None
        assert news(person) == []

    house.talk(story, rules=NoRules())


def test_who_changes_seats_in_a_game_is_not_rated_for_it(house: House) -> None:
    async def story(person: Person) -> None:
        session = person.controller.session
        await person.types("side both")
        session.game.play("b4b2", "a", (), main=True)
        session.game.at.facts = facts_of(session.variant.startpos)
        await person.types("side a", "level auto")
        await wins(person)
        assert news(person) == []
        await person.types("new")
        await wins(person)
        assert len(news(person)) == 1

    house.talk(story, rules=NoRules())


def test_no_record_keeps_nothing(house: House, tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        person.controller.session.ladder.keep = False
        await person.types("side a", "level auto")
        await wins(person)
        await person.types("new")
        assert person.view.level == 2

    house.talk(story, rules=NoRules())
    assert not (tmp_path / "hnefi" / "standing.json").exists()


def test_a_damaged_file_is_told_in_the_game(house: House, tmp_path: Path) -> None:
    (tmp_path / "hnefi").mkdir()
    (tmp_path / "hnefi" / "standing.json").write_text("?")

    async def story(person: Person) -> None:
        await person.types("side a", "level 4")
        assert "move the file away" in await person.fails("level auto")
        assert person.view.level == 4

    house.talk(story, rules=NoRules())


def test_a_script_has_no_results_to_follow(house: House) -> None:
    async def story(person: Person) -> None:
        assert "expected a number" in await person.fails("level auto")

    house.talk(story, rules=NoRules(), interactive=False)


# The command line


def at_start(*argv: str, scripted: bool = False) -> Controller:
    parser = command._parser()
    with ExitStack() as stack:
        return command._controller(
            parser, Settings(), parser.parse_args([*argv, "--level", "auto"]), stack, scripted=scripted
        )


def test_the_first_game_is_at_the_level_of_the_rating() -> None:
    Ladder().take("tafl", 1, 1.0)
    level = Ladder().level("tafl")
    controller = at_start()
    assert controller.view.level == 2
    assert any(f"Level {level} is nearest" in line.text for line in controller.view.log)
    assert controller.session.ladder.keep
    assert at_start("--variant", "hex:5").view.level == 1
    assert not at_start("--no-record").session.ladder.keep
    # What a loaded game is played against is known once it is loaded.
    assert not at_start("--load", "game.tafl").view.log


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda: at_start(scripted=True), "no person plays"),
        (lambda: at_start("--side", "none"), "--side none"),
    ],
)
def test_where_no_person_plays_it_is_refused(
    ask: Callable[[], Controller], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        ask()
    assert ended.value.code == 2
    assert why in capsys.readouterr().err


def test_a_damaged_file_is_told_at_the_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "hnefi").mkdir()
    (tmp_path / "hnefi" / "standing.json").write_text("?")
    with pytest.raises(SystemExit) as ended:
        at_start()
    assert ended.value.code == 2
    assert "move the file away" in capsys.readouterr().err
