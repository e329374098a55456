"""Our account on a double of the server: logins, offers, played games by heart, quirks, lies and fallen connections."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hnefatafl_org.double_server import GAMES, USER, DoubleServer
from patience import PROMPTLY

from hnefi.engine import squares
from hnefi.engine.about import VERSION
from hnefi.engine.records.record import GameRecord
from hnefi.engine.search.types import Score
from hnefi.engine.sides import Side
from hnefi.gui_adapter.hnefatafl_org import connection as connection_module
from hnefi.gui_adapter.hnefatafl_org.connection import Account, Connection, Link, Lost, ServerError, Waits
from hnefi.gui_adapter.hnefatafl_org.game import Clock, Settings, read_game
from hnefi.gui_adapter.hnefatafl_org.play import Match, Player
from hnefi.gui_adapter.hnefatafl_org.thinking import Engines
from hnefi.protocol.answers import InfoLine
from hnefi.protocol.client import Answer, EngineError, Limits
from hnefi.protocol.hosts import journal
from hnefi.protocol.hosts.rulebook import EngineSlot, Facts, Line

pytestmark = pytest.mark.process

SIDES = {"attacker": Side.ATTACKERS, "defender": Side.DEFENDERS}
TWO = {"attackers": "anna", "defenders": USER, "dim": 7, "moves": "0c4-0c1 0b4-0b1x0c1"}
QUICK = Waits(answer=20.0, first=0.01, last=0.05, occupied=0.02, too_soon=0.02, too_soon_last=0.1, hour=0.5)
WAIT = 60.0


class ByHeart(Engines):
    """Asks the rules of a real engine, and chooses the moves of a game whatever it is asked."""

    def __init__(self, slot: EngineSlot) -> None:
        super().__init__(slot, slot)
        self.ready.set()
        self._thinker = self  # type: ignore[assignment]
        self.moves: list[str] = []
        self.score: Score | None = None
        self.delay = 0.0
        self.failure = ""
        self.asked: list[tuple[int, float]] = []

    async def best(
        self,
        line: Line,
        facts: Facts,
        limits: Callable[[], Limits],
        among: Sequence[str] = (),
    ) -> Answer:
        ply = len(line.moves)
        self.asked.append((ply, (limits().movetime or 0) / 1000))
        if len(self.asked) == 1:
            await asyncio.sleep(self.delay)
        if self.failure:
            raise EngineError(self.failure)
        allowed = among or sorted(facts.legal)
        move = self.moves[ply] if self.moves[ply] in allowed else allowed[0]
        infos = () if self.score is None else (InfoLine(score=self.score),)
        return Answer(move, None, infos, (), 0.0, 0.0)


class House:
    """One loop and one engine for all tests of this file."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.engines = ByHeart(EngineSlot())


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    house = House()
    yield house
    house.runner.run(house.engines.close())
    house.runner.close()


class Played:
    """What came of a session of our account with the double."""

    def __init__(
        self,
        house: House,
        folder: Path,
        game: str = "escape",
        role: str = "attacker",
        *,
        waits: Waits = QUICK,
        refusals: Sequence[str] = (),
        password: str = "secret",
        score: Score | None = None,
        delay: float = 0.0,
        failure: str = "",
        settings: dict[str, Any] | None = None,
        **quirks: int,
    ):
        self.double = DoubleServer(game, role, refusals=refusals, **quirks)
        self.said: list[str] = []
        self._folder = folder
        self.error = ""
        engines = house.engines
        engines.moves = bare(game)
        engines.score, engines.delay, engines.failure, engines.asked = score, delay, failure, []
        chosen: dict[str, Any] = {
            "role": SIDES[role],
            "size": 7,
            "clock": Clock(900_000, 10),
            **(settings or {}),
        }
        kept = journal.Journal("hnefatafl-org", folder)
        self.player = Player(Settings(USER, **chosen), engines, kept, self.said.append, waits.ping)
        link = Link(Account(USER, password, "127.0.0.1", self.double.port, "32d9a140"), waits)

        async def play() -> int:
            async with asyncio.timeout(WAIT):
                return await link.keep(self.player.use)

        try:
            self.status = house.runner.run(play())
        except ServerError as error:
            self.error, self.status = str(error), 3
            self.player.leave(self.error)
        finally:
            self.double.close()

    @property
    def records(self) -> list[GameRecord]:
        return [record for path in self._folder.glob("*.jsonl") for record in journal.read(path)]

    @property
    def record(self) -> GameRecord:
        (record,) = self.records
        return record

    @property
    def plays(self) -> list[str]:
        return [line.partition("play ")[2] for line in self.double.heard if line.startswith("game ")]


def bare(game: str, plies: int | None = None) -> list[str]:
    return [word.partition("x")[0] for word in GAMES[game].split()[:-1]][:plies]


def moves(record: GameRecord) -> list[str]:
    return [squares.move_name(ply.move) for ply in record.plies]


def with_captures(record: GameRecord) -> list[str]:
    return [
        "x".join([squares.move_name(ply.move), *map(squares.name, ply.captures or ())])
        for ply in record.plies
    ]


HOW = {"escape": ("d king_escaped", "defenders win"), "capture": ("a king_captured", "attackers win")}
HARMLESS: list[dict[str, int]] = [
    {}, {"crlf": 0}, {"bytes": 0}, {"twice": 0}, {"flood": 0}, {"archive": 0}, {"noise": 0}, {"extra": 0},
    {"untimed": 0}, {"burst": 2}, {"challenge": 2}, {"wrong": 1}, {"wrong": 2}, {"open": 0},
    {"drop": 2}, {"drop": 3}, {"cut": 1}, {"cut": 2}, {"lose": 1}, {"lose": 2}, {"stale": 1}, {"stale": 2},
]  # fmt: skip


@pytest.mark.parametrize("quirks", HARMLESS, ids=str)
@pytest.mark.parametrize(("game", "role"), [("escape", "attacker"), ("capture", "defender")])
def test_a_whole_game(house: House, tmp_path: Path, game: str, role: str, quirks: dict[str, int]) -> None:
    """Whatever else the server sends, and however the connection falls, the game is played and written down once."""
    played = Played(house, tmp_path, game, role, **quirks)
    outcome, said = HOW[game]
    assert (played.status, played.error) == (0, "")
    assert played.double.finished
    assert played.double.played == len(bare(game))
    assert said in played.said[-1]
    record = played.record
    assert with_captures(record) == GAMES[game].split()[:-1]
    assert record.outcome is not None
    assert record.outcome.text == outcome
    assert record.players == ((USER, "anna") if role == "attacker" else ("anna", USER))
    assert record.tags == (("HnefataflOrgGame", "7"),)
    assert "an empty line" not in played.double.heard
    assert len(played.double.logins) - 1 == len(played.double.done & {"drop", "cut", "lose"})
    assert ("decline_game 99" in played.double.heard) == ("challenge" in quirks)


def test_the_words_of_a_session(house: House, tmp_path: Path) -> None:
    """Byte for byte what the server is told, first of all."""
    played = Played(house, tmp_path)
    timed = '{"Timed":{"add_seconds":10,"milliseconds_left":900000}}'
    assert played.double.heard[:4] == [
        f"software_id hnefi-{VERSION}",
        f'new_game {{"role":"Attacker","rated":false,"time_settings":{timed},"board_size":7}}',
        "join_game 7",
        "resume_game_json 7",
    ]
    assert played.plays == ["attacker 0b4 0b1", "attacker 0d6 0f6", "attacker 0d7 0d6"]
    assert played.double.pings >= 1


def test_joining_an_offer(house: House, tmp_path: Path) -> None:
    played = Played(house, tmp_path, settings={"join": "7"})
    assert played.status == 0
    assert "join_game_pending 7" in played.double.heard
    assert not any(line.startswith("new_game") for line in played.double.heard)
    assert "asked to join game 7: waiting to be accepted" in played.said


def test_an_offer_that_is_refused(house: House, tmp_path: Path) -> None:
    played = Played(house, tmp_path, refuse_offer=0)
    assert played.error == "the server refused our offer: 'an error'"


def test_the_clock(house: House, tmp_path: Path) -> None:
    """A tenth of the clock at most, and a little even of a short one."""
    Played(house, tmp_path)
    assert [ply for ply, _ in house.engines.asked] == [1, 3, 5]
    assert all(1 < seconds < 90 for _, seconds in house.engines.asked)
    Played(house, tmp_path, short=0)
    assert all(seconds <= 0.3 for _, seconds in house.engines.asked)
    Played(house, tmp_path, untimed=0, settings={"clock": None, "movetime": 70_000})
    assert all(1 < seconds <= 70 for _, seconds in house.engines.asked)


# Logins

REFUSED = {
    "wrong_password": "login refused: wrong password for ai-hnefi",
    "account_not_in_database": "login refused: no account ai-hnefi: expected one that you created there",
    "whatever this is": "login refused: 'whatever this is'",
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_refused_login_is_not_tried_again(house: House, tmp_path: Path, reason: str) -> None:
    played = Played(house, tmp_path, refusals=[reason])
    assert (played.status, played.error) == (3, REFUSED[reason])
    assert len(played.double.logins) == 1


def test_another_release_of_the_protocol(house: House, tmp_path: Path) -> None:
    played = Played(house, tmp_path, wire=0)
    assert played.error.startswith("the server does not accept our version 32d9a140: expected")
    assert "--wire-version" in played.error
    assert len(played.double.logins) == 1


@pytest.mark.parametrize("reason", ["logged_in_already", "retried_too_soon"])
def test_a_login_that_is_tried_later(
    house: House, tmp_path: Path, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    played = Played(house, tmp_path, refusals=[reason, reason])
    assert played.status == 0
    assert len(played.double.logins) == 3
    pauses = [text.rpartition("trying again in ")[2] for text in caplog.messages if "trying again" in text]
    assert len(pauses) == 2


def test_five_failed_logins_an_hour(house: House, tmp_path: Path) -> None:
    """The sixth waits until the first is an hour old."""
    played = Played(house, tmp_path, refusals=["logged_in_already"] * 6)
    assert played.status == 0
    logins = played.double.logins
    assert len(logins) == 7
    assert logins[5] - logins[0] >= QUICK.hour


def test_pauses_after_too_soon_grow() -> None:
    link = Link(Account(USER, "x", "h", 1, "w"), Waits())
    assert [link._pause_after("retried_too_soon") for _ in range(7)] == [60, 120, 240, 480, 960, 1800, 1800]
    assert link._pause_after("logged_in_already") == 60


def test_nobody_listens(house: House) -> None:
    async def use(_: Connection) -> int:
        raise AssertionError

    double = DoubleServer("escape", "attacker")
    double.close()
    link = Link(Account(USER, "x", "127.0.0.1", double.port, "w"), QUICK)
    with pytest.raises(ServerError, match=r"refused.*: expected the server of hnefatafl\.org"):
        house.runner.run(link.keep(use))


def test_a_password_is_in_no_text() -> None:
    assert "hunter2" not in repr(Account(USER, "hunter2", "h", 1, "w"))


# Moves and ends


def test_a_refused_move_is_followed_by_the_next_best(
    house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Two refusals: the moves differ. The third is refused as well, and we resign: our rules differ."""
    played = Played(house, tmp_path, reject=3)
    assert played.plays[0] == "attacker 0b4 0b1"
    assert len(set(played.plays[:3])) == 3
    assert played.plays[3:] == ["attacker resigns _"]
    assert played.status == 0
    assert sum("the server refused b4b1 in " in text for text in caplog.messages) == 1
    assert any("is resigned" in text for text in caplog.messages)
    assert played.record.outcome is not None
    assert played.record.outcome.text == "d resignation"


def test_a_move_that_is_passed_over_in_silence_was_refused(house: House, tmp_path: Path) -> None:
    played = Played(house, tmp_path, reject=3, mute=0)
    assert len(set(played.plays[:3])) == 3
    assert played.plays[3:] == ["attacker resigns _"]


@pytest.mark.parametrize(
    ("score", "even", "taken"),
    [(0, True, True), (-300, True, True), (300, True, False), (0, False, False)],
)
def test_draws(house: House, tmp_path: Path, score: int, even: bool, taken: bool) -> None:
    """One that is not taken is not answered: the server would forget the game."""
    played = Played(house, tmp_path, score=Score(cp=score), settings={"even": even}, draw=4)
    assert [line for line in played.double.heard if line.startswith("draw")] == ["draw 7 accept"] * taken
    assert played.status == 0
    assert played.record.outcome is not None
    assert played.record.outcome.text == ("draw agreed_draw" if taken else "d king_escaped")


def test_our_clock_runs_out(house: House, tmp_path: Path) -> None:
    """While we think: the search is dropped and nothing more is sent."""
    began = time.monotonic()
    played = Played(house, tmp_path, delay=10 * PROMPTLY, flag=1)
    assert time.monotonic() - began < PROMPTLY
    assert played.plays == []
    assert played.said[-1] == "game 7 is over: defenders win (time)"
    assert played.record.outcome is not None
    assert played.record.outcome.text == "d time"


def test_the_opponent_resigns(house: House, tmp_path: Path) -> None:
    played = Played(house, tmp_path, resign=3)
    assert played.record.outcome is not None
    assert played.record.outcome.text == "a resignation"
    assert moves(played.record) == bare("escape", 3)


def test_a_result_in_mid_game_is_the_servers_word(
    house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    played = Played(house, tmp_path, over=3)
    assert played.status == 0
    assert played.record.outcome is not None
    assert played.record.outcome.text == "a adjudicated"
    assert any(
        "the server says attackers win, by our rules: the game goes on" in text for text in caplog.messages
    )


def test_a_game_that_ends_while_the_connection_is_down(house: House, tmp_path: Path) -> None:
    played = Played(house, tmp_path, gone=2)
    assert played.status == 0
    assert played.said[-1] == "game 7 ended while we were away"
    assert moves(played.record) == bare("escape", 1)
    assert played.record.outcome is None


def test_a_game_that_the_server_forgets(
    house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    played = Played(house, tmp_path, forgets=3, waits=Waits(ping=1.0))
    assert played.status == 0
    assert caplog.messages[-1] == "game 7: the server no longer knows it"


def test_a_silent_server_is_left(house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It answers no ping while we think: the connection is given up, and the game goes on with the next."""
    played = Played(house, tmp_path, silent=1, delay=WAIT / 2, waits=Waits(ping=1.0, first=0.01))
    assert played.status == 0
    assert len(played.double.logins) == 2
    assert any("has not answered a ping for 2 s: connecting again" in text for text in caplog.messages)
    assert moves(played.record) == bare("escape")


def test_what_is_said_twice_does_not_disturb_the_search(house: House, tmp_path: Path) -> None:
    Played(house, tmp_path, delay=0.5, twice=0, burst=1)
    assert [ply for ply, _ in house.engines.asked] == [1, 3, 5]


def test_moves_that_are_told_by_themselves() -> None:
    """Each counts once, and an answer to our move says that ours was taken; the last one again says nothing."""
    match = Match("7", game=read_game(json.dumps(TWO)))
    match.sent = "d4c4"
    match.hear(Side.ATTACKERS, "b4b1")
    assert (match.tail, match.sent) == ([], "d4c4")
    match.hear(Side.ATTACKERS, "d6f6")
    assert (match.tail, match.sent) == (["d4c4", "d6f6"], "")
    match.hear(Side.ATTACKERS, "d6f6")
    match.hear(Side.DEFENDERS, "c4c1")
    match.hear(Side.DEFENDERS, "c4c1")
    assert match.tail == ["d4c4", "d6f6", "c4c1"]


def test_an_engine_that_fails_resigns(house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    played = Played(house, tmp_path, failure="Parrot has ended: exit status 1")
    assert played.status == 4
    assert played.plays == ["attacker resigns _"]
    assert "our engine failed: Parrot has ended: exit status 1" in caplog.messages


# Lies

LIES = {
    "text": "expected the JSON of a game",
    "deep": "expected the JSON of a game",
    "digits": "expected the JSON of a game",
    "list": "expected the JSON object of a game",
    "dim": "dim 12: expected a board of 7, 11, 13",
}


@pytest.mark.parametrize("quirk", LIES)
def test_nonsense_ends_with_a_sentence(house: House, tmp_path: Path, quirk: str) -> None:
    played = Played(house, tmp_path, **{quirk: 3})
    assert played.status == 3
    assert played.error.startswith("the server told game 7: ")
    assert LIES[quirk] in played.error
    assert played.error.isprintable()
    assert len(played.error) < 400
    assert moves(played.record) == bare("escape", 1)


def test_moves_that_our_rules_do_not_allow(
    house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    played = Played(house, tmp_path, illegal=3)
    assert played.plays[-1] == "attacker resigns _"
    assert played.status == 0
    assert any("our rules do not allow the moves that were played" in text for text in caplog.messages)


def test_a_game_of_other_people(house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    played = Played(house, tmp_path, stranger=1)
    assert played.status == 0
    assert played.plays == []
    assert caplog.messages[-1] == "game 7 is not ours: 'anna', 'bert'"


def test_a_line_without_an_end(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection_module, "LINE_LIMIT", 1 << 20)
    played = Played(house, tmp_path, huge=2)
    assert played.status == 0
    assert sum("skipped a line of more than 1048576 bytes" in text for text in caplog.messages) == 1


def _send_for_ever(link: Connection) -> None:
    while True:
        link.send("x" * 60_000)


def test_a_server_that_does_not_read(house: House) -> None:
    """What we send waits nowhere without a bound."""

    async def send() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            link = await Connection.open(*listener.getsockname(), 5.0, None)
            with pytest.raises(Lost, match="does not read"):
                _send_for_ever(link)
            began = time.monotonic()
            await link.close()
            assert time.monotonic() - began < PROMPTLY

    house.runner.run(send())


def test_chat_is_logged_and_not_obeyed(
    house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    Played(house, tmp_path, flood=0)
    (said,) = [text for text in caplog.messages if text.startswith("chat: ")]
    assert "hello" in said
    assert said.isprintable()


def test_a_server_that_repeats_the_login_shows_nobody_the_password() -> None:
    async def hear() -> list[str]:
        reader = asyncio.StreamReader()
        reader.feed_data(b"? login wrong_password 32d9a140 login ai-hnefi secret\n= text secret\n")
        connection = Connection(reader, None, traced, (b"ai-hnefi secret", b"ai-hnefi ***"))  # type: ignore[arg-type]
        return await connection.lines()

    seen: list[bytes] = []

    def traced(_stamp: float, _arrow: str, line: bytes) -> None:
        seen.append(line)

    expected = ["? login wrong_password 32d9a140 login ai-hnefi ***", "= text secret"]
    assert asyncio.run(hear()) == expected
    assert [line.decode() for line in seen] == expected
