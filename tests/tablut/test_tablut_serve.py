"""`hnefi tablut --serve`: two doubles of bots, whatever they do, and a reason for every end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tablut.double_server import GAMES
from tablut_parts import DOUBLES, WAIT, House, free_address

from hnefi.engine import squares
from hnefi.engine.records.record import GameRecord
from hnefi.gui_adapter.tablut import host as host_module
from hnefi.gui_adapter.tablut.host import Action, Guest, HostError
from hnefi.gui_adapter.tablut.serve import Settings, serve
from hnefi.protocol.hosts import journal

pytestmark = pytest.mark.process

ESCAPE = [word.partition("x")[0] for word in GAMES["escape"].split()[:-1]]
HEART = {"white": f"moves={','.join(ESCAPE[::2])}", "black": f"moves={','.join(ESCAPE[1::2])}"}


def bot(colour: str, address: str, *quirks: str) -> subprocess.Popen[bytes]:
    """A double, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(DOUBLES / "double_bot.py"), colour, "60", address, *quirks],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


class Served:
    """Games between two doubles, and what was said about them."""

    def __init__(
        self, house: House, folder: Path, white: Sequence[str] = (), black: Sequence[str] = (), games: int = 1,
        seconds: float = 60.0, tolerate: int = 0, start: float = 60.0,
    ) -> None:  # fmt: skip
        self.said: list[str] = []
        address = free_address()
        settings = Settings(seconds, tolerate, start, address)
        bots = []
        for _ in range(games):
            bots += [bot("white", address, *(white or [HEART["white"]]))]
            bots += [bot("black", address, *(black or [HEART["black"]]))]
        try:
            kept = journal.Journal("tablut", folder)

            async def play() -> None:
                async with asyncio.timeout(WAIT):
                    await serve(settings, games, house.rules, kept, self.said.append)

            house.runner.run(play())
        finally:
            for one in bots:
                one.kill()
                one.wait()
        self.records = [record for path in folder.glob("*.jsonl") for record in journal.read(path)]

    @property
    def end(self) -> str:
        return self.said[-1]

    @property
    def record(self) -> GameRecord:
        (record,) = self.records
        return record


def moves(record: GameRecord) -> list[str]:
    return [squares.move_name(ply.move) for ply in record.plies]


HARMLESS = ["", "bare", "upper", "noturn", "nullturn", "wrongturn", "bytes", "slow=0.3"]


@pytest.mark.parametrize("quirk", HARMLESS, ids=lambda quirk: quirk or "plain")
def test_a_whole_game(house: House, tmp_path: Path, quirk: str) -> None:
    served = Served(house, tmp_path, [HEART["white"], quirk], [HEART["black"], quirk])
    assert served.said[0].startswith("listening at 127.")
    assert served.said[0].endswith(": white 5800, black 5801")
    assert served.said[1] == "game 1: white double, black double"
    assert "game 1 over: white wins (king escaped), 7 plies" in served.end
    assert moves(served.record) == ESCAPE
    assert served.record.outcome is not None
    assert served.record.outcome.text == "d king_escaped"
    assert served.record.players == ("double", "double")


ENDS = {
    "illegal=2": "black wins (white played e5e4: not legal)",
    "off=2": "black wins (white played e4z9: not legal)",
    "dies=2": "black wins (white closed the connection)",
    "leaves=1": "black wins (white closed the connection)",
    "cut=2": "black wins (white: the connection ended in the middle of a frame)",
    "resets=2": "black wins (white: the connection broke (Connection reset by peer))",
    "text=2": "expected JSON",
    "null=2": "black wins (white sent 'null': expected {",
    "list=1": "expected {",
    "deep=2": "expected",
    "huge=2": "black wins (white sent a frame of 2147483647 bytes: expected 0 to 65536)",
    "negative=2": "black wins (white sent a frame of -1 bytes: expected 0 to 65536)",
    "garbage=2": "black wins (white sent a frame of -",
    "silent=2": "black wins (no move within 1 s)",
    "endless=2": "black wins (no move within 1 s)",
}


@pytest.mark.parametrize("quirk", ENDS)
def test_every_end_has_a_reason(
    house: House, tmp_path: Path, quirk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_time = "no move" in ENDS[quirk]
    if on_time:
        be_patient(monkeypatch, lambda calls: calls <= 2)
    served = Served(house, tmp_path, [HEART["white"], quirk], seconds=1 if on_time else 60)
    assert "game 1 over: black wins" in served.end
    assert ENDS[quirk] in served.end
    assert served.end.isprintable()
    plies = 2 * (int(quirk.partition("=")[2]) - 1)
    assert [moves(record) for record in served.records] == ([ESCAPE[:plies]] if plies else [])
    assert all(record.outcome and record.outcome.result == "a" for record in served.records)


def be_patient(monkeypatch: pytest.MonkeyPatch, with_whom: Callable[[int], bool]) -> None:
    """The clock waits for these moves, by number, of whoever is asked: a busy machine may need more than a second."""
    real, calls = Guest.action, 0

    async def action(guest: Guest, timeout: float | None = None) -> Action:
        nonlocal calls
        calls += 1
        return await real(guest, WAIT if with_whom(calls) else timeout)

    monkeypatch.setattr(Guest, "action", action)


def test_illegal_moves_are_tolerated_as_often_as_was_said(
    house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The state is sent again, as the competition's server does, and the next answer counts."""
    heart = HEART["white"].replace("e4f4", "e5e4,e5e4,e4f4")
    served = Served(house, tmp_path, [heart], tolerate=2)
    assert "white wins (king escaped), 7 plies" in served.end
    assert sum("tolerated" in text for text in caplog.messages) == 2


def test_messages_out_of_turn_are_dropped_and_counted(house: House, tmp_path: Path) -> None:
    served = Served(house, tmp_path, [HEART["white"], "chatter"])
    assert "white wins (king escaped), 7 plies" in served.end
    assert "messages out of turn: white" in served.end


def test_ten_thousand_actions(house: House, tmp_path: Path) -> None:
    served = Served(house, tmp_path, [HEART["white"], "flood=2"], seconds=240)
    assert "game 1 over" in served.end
    assert moves(served.record)[:3] == ESCAPE[:3]


def test_who_says_no_name_is_sent_away(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one who connects plays."""
    address = free_address()
    said: list[str] = []
    first = bot("white", address, "noname")
    bots = [first, bot("black", address, HEART["black"])]
    real, hurried = Guest.introduce, True

    async def introduce(guest: Guest, timeout: float) -> str:
        hurry = hurried and guest.side is host_module.Side.DEFENDERS
        return await real(guest, 0.5 if hurry else timeout)

    monkeypatch.setattr(Guest, "introduce", introduce)

    def say(text: str) -> None:
        nonlocal hurried
        said.append(text)
        if "waiting for another" in text:
            hurried = False
            first.kill()
            bots.append(bot("white", address, HEART["white"]))

    async def play() -> None:
        async with asyncio.timeout(WAIT):
            await serve(Settings(60, 0, WAIT, address), 1, house.rules, None, say)

    try:
        house.runner.run(play())
    finally:
        for one in bots:
            one.kill()
            one.wait()
    assert said[1] == "white connected and did not say its name in time: waiting for another"
    assert "white wins" in said[-1]


@pytest.mark.parametrize(("quirk", "name"), [("longname", "x" * 40), ("rudename", "[2Jrude")])
def test_names_are_made_harmless(house: House, tmp_path: Path, quirk: str, name: str) -> None:
    served = Served(house, tmp_path, [HEART["white"], quirk])
    assert served.said[1] == f"game 1: white {name}, black double"


def test_a_player_who_does_not_read_is_not_waited_for(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """States are small: its socket holds them all, and it loses on time."""
    monkeypatch.setattr(host_module, "WRITE_TIMEOUT", 0.5)
    be_patient(monkeypatch, lambda calls: calls == 1)
    served = Served(house, tmp_path, black=["deaf"], seconds=1)
    assert "white wins (no move within 1 s)" in served.end


def test_several_games(house: House, tmp_path: Path) -> None:
    """Random players that keep to the rules. Who connects before the last game is over waits for the next."""
    served = Served(house, tmp_path, ["seed=1"], ["seed=2"], games=3)
    assert [text.split()[:3] for text in served.said if " over: " in text] == [
        ["game", str(number), "over:"] for number in (1, 2, 3)
    ]
    assert len(served.records) == 3
    assert all(record.outcome and record.outcome.reason.code <= 12 for record in served.records)


def test_a_port_that_is_taken(house: House) -> None:
    async def two() -> None:
        first = await host_module.Host.open(host_module.Side.DEFENDERS, address)
        try:
            await serve(Settings(bind=address), 1, house.rules, None, print)
        finally:
            await first.close()

    address = free_address()
    with pytest.raises(HostError, match=f"{address}:5800: .*in use"):
        house.runner.run(two())
