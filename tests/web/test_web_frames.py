"""Frames and records of pages, without sockets or processes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hnefi.gui_adapter.web import catalogue, frames, judging, records
from hnefi.gui_adapter.web.frames import FrameError
from hnefi.gui_adapter.web.outbox import Outbox, Voice
from hnefi.gui_adapter.web.web_session import legal_move
from hnefi.protocol.hosts.rulebook import special_squares
from hnefi.protocol.hosts.sessions import reports


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "bad_json"),
        (b"\x00\xff\x1b[2J", "bad_json"),
        (b"[]", "bad_json"),
        (b"[" * 10_000, "bad_json"),
        (b'{"t":' * 10 + b"1" + b"}" * 10, "bad_json"),
        (b'{"t":"line","n":' + b"9" * 100_000 + b"}", "bad_json"),
        (b'{"t":NaN}', "bad_json"),
        (b"{}", "bad_frame"),
        (b'{"t":5}', "bad_frame"),
        (b'{"t":"wach"}', "bad_frame"),
        (json.dumps({"t": "line", "text": "x" * 70_000}).encode(), "bad_frame"),
        (b'{"t":"import","text":"' + b"x" * 300_000 + b'"}', "bad_json"),
        ('{"t":"line","text":"\ud800"}', "bad_json"),
    ],
)
def test_what_is_no_frame_is_refused_with_a_short_sentence(data: str | bytes, code: str) -> None:
    with pytest.raises(FrameError) as refused:
        frames.read(data)
    assert refused.value.code == code
    assert len(str(refused.value)) < 300


def test_fields_are_checked_before_they_are_used() -> None:
    for value in (5, None, ["x"], "a\nb", "x" * 2_000):
        with pytest.raises(FrameError):
            frames.text({"k": value}, "k")
    for number in (-1, 10**15, True, 1.5, "1"):
        with pytest.raises(FrameError):
            frames.number({"k": number}, "k")
    assert frames.text({}, "k") == ""
    assert frames.number({"k": 7}, "k") == 7
    with pytest.raises(FrameError):
        frames.words({"k": ["a"] * 3}, "k", 2)


def test_a_burst_is_admitted_and_a_flood_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(frames.time, "monotonic", lambda: now[0])
    rate = frames.Rate()
    assert [rate.admits() for _ in range(61)] == [True] * 60 + [False]
    assert rate.complains()
    assert not rate.complains()
    now[0] += 1.0
    assert sum(rate.admits() for _ in range(100)) == 20


def test_a_newer_state_takes_the_place_of_an_older_one_that_waits() -> None:
    async def talk() -> list[Any]:
        box = Outbox(lambda: None)
        box.put({"t": "state", "v": 1}, ("state",))
        box.put({"t": "line"})
        box.put({"t": "state", "v": 2}, ("state",))
        return [json.loads(await box.next()) for _ in range(2)]

    assert asyncio.run(talk()) == [{"t": "line"}, {"t": "state", "v": 2}]


@pytest.mark.parametrize(("count", "size"), [(257, 1), (5, 300_000)])
def test_a_browser_that_does_not_read_is_let_go_once(count: int, size: int) -> None:
    called = []

    async def talk() -> bool:
        box = Outbox(lambda: called.append(1))
        for _ in range(count * 2):
            box.put({"t": "line", "text": "x" * size})
        return box.empty

    assert asyncio.run(talk())
    assert called == [1]


def test_a_browser_that_comes_back_hears_what_it_has_missed() -> None:
    async def talk() -> list[dict[str, Any]]:
        async def facts() -> dict[str, Any]:
            return {}

        voice = Voice("s", facts)
        for number in range(1, 6):
            voice.say(f"line {number}", answers=7 if number == 5 else 0)
        box = Outbox(lambda: None)
        voice.attach(box, 3)
        found = [json.loads(await box.next()) for _ in range(2)]
        await voice.abandon()
        return found

    assert [(frame["m"], frame["n"], frame["text"]) for frame in asyncio.run(talk())] == [
        (4, 0, "line 4"),
        (5, 7, "line 5"),
    ]


def test_thinking_is_sent_newest_and_its_last_becomes_lines() -> None:
    async def talk() -> list[dict[str, Any]]:
        async def facts() -> dict[str, Any]:
            return {}

        voice = Voice("s", facts)
        box = Outbox(lambda: None)
        voice.box = box
        for depth in range(1, 50):
            voice.report(b"info depth %d multipv 1 score cp 1" % depth)
        voice.report(b"info multipv 1 nodes 5")
        first = json.loads(await box.next())
        voice.end_reports()
        last = json.loads(await box.next())
        await voice.abandon()
        return [first, last]

    first, last = asyncio.run(talk())
    assert first == {"t": "info", "s": "s", "lines": ["info depth 49 multipv 1 score cp 1"]}
    assert (last["m"], last["text"]) == (1, "info depth 49 multipv 1 score cp 1")
    assert reports.PAUSE <= 0.1


def test_moves_and_squares_as_the_engine_says_them() -> None:
    assert legal_move("d3a3xa2xa4") == {"m": "d3a3", "x": ["a2", "a4"]}
    switches = [("size", "7"), ("throne", "d4"), ("corners", "a1,a7,g1,g7"), ("attacker_camps", "none")]
    assert special_squares(switches) == {
        "d4": "throne",
        **dict.fromkeys(("a1", "a7", "g1", "g7"), "corner"),
    }


@pytest.mark.parametrize("form", ["tafl", "otg", "csv", "jsonl"])
def test_a_game_goes_out_and_comes_back(form: str) -> None:
    game = {"variant": "brandubh", "moves": ["a4a2", "d3a3xa2"], "players": ["you", "hnefi level 3"]}
    sent = records.exported({"id": 4, "format": form, **game})
    assert sent["id"] == 4
    back = records.imported({"id": 5, "text": sent["text"], "variant": "brandubh"})
    assert (back["variant"], back["moves"], back["start"]) == ("brandubh", ["a4a2", "d3a3"], None)


@pytest.mark.parametrize("form", ["tafl", "otg", "csv"])
def test_a_page_that_knows_all_captures_says_so(form: str) -> None:
    game = {"format": form, "variant": "brandubh", "moves": ["a4a2", "d3a3xa2"]}
    for known in (True, False):
        sent = records.exported({**game, "captures": known})
        said = 'Captures "unknown"' in sent["text"] or "that captures are not recorded" in sent["lost"]
        assert said is not known


@pytest.mark.parametrize(
    "frame",
    [
        {"variant": "chess"},
        {"variant": "brandubh", "moves": ["hello"]},
        {"variant": "brandubh", "moves": "a4a2"},
        {"variant": "brandubh", "format": "../../etc/passwd"},
        {"variant": "brandubh", "result": "a", "reason": "cheating"},
        {"variant": "brandubh", "result": "nobody", "reason": "time"},
        {"variant": "brandubh", "players": [1, 2]},
        {},
    ],
)
def test_an_export_of_nonsense_is_refused(frame: dict[str, Any]) -> None:
    with pytest.raises(FrameError):
        records.exported(frame)


@pytest.mark.parametrize(
    "text", ["", "hello", "[a:b]\n1. x", '{"moves": 5}', "a,b,c,d", "\x00" * 100, "1. a4a2\n" * 5, "[[[["]
)
def test_an_import_of_nonsense_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(FrameError) as refused:
        records.imported({"id": 1, "text": text, "variant": "brandubh"})
    assert refused.value.code == "bad_record"
    assert refused.value.ident == 1


def test_a_fault_in_a_record_is_named_by_its_line() -> None:
    good = records.exported({"variant": "brandubh", "moves": ["a4a2", "d3a3"]})["text"]
    with pytest.raises(FrameError, match=r"line:\d+"):
        records.imported({"text": good.replace("d3a3", "d3z99"), "variant": "brandubh"})


def test_pages_are_offered_every_variant_with_its_rules_and_players() -> None:
    offer = catalogue.offer()
    known = {variant["name"]: variant for variant in offer["variants"]}
    assert len(offer["levels"]) == 11
    assert known["brandubh"]["rules"]
    assert "simple" in known["brandubh"]["players"]
    assert "simple" not in known["hex:11"]["players"]
    assert known["hex:11"]["sides"] == ["x", "o"]
    for variant in offer["variants"]:
        assert variant["description"] or variant["rules"]


def seen(side: str, *lines: str, **more: Any) -> dict[str, Any]:
    """A position as a page reports it."""
    return {"side": side, "choices": 20, "outcome": None, "lines": list(lines), **more}


def test_moves_are_judged_by_what_the_engine_has_said_before_and_after() -> None:
    frame = {
        "id": 7,
        "variant": "brandubh",
        "moves": ["a4a2", "d3a3", "c4c1", "d2b2"],
        "looks": [
            seen("a", "info depth 5 multipv 1 score cp 20 pv a4a2", "info multipv 2 score cp -300 pv d6b6"),
            seen("d", "info depth 5 score cp 0 pv d5g5 c4c1"),
            seen("a", "info depth 5 score cp 400 pv d6b6"),
            None,
            seen("a", outcome={"result": "d", "reason": "king_escaped"}),
        ],
    }
    said = judging.judged(frame)
    assert (said["t"], said["id"]) == ("judged", 7)
    first, second, third, _ = said["moves"]
    assert (first["sign"], first["said"]) == ("!", "the only good move")
    assert second["sign"] == "??"
    assert second["said"].startswith("blunder: 50 % -> 9 %; better d5g5")
    assert second["better"] == ["d5g5", "c4c1"]
    assert third == {"sign": "", "said": "", "better": []}
    assert said["chances"][2:] == [pytest.approx(10 / 11), None, 0.0]
    assert said["accuracy"][0] == pytest.approx(100.0, abs=0.01)
    assert said["counts"][1]["blunder"] == 1


@pytest.mark.parametrize(
    "change",
    [
        {"variant": "chess"},
        {"looks": []},
        {"looks": "none"},
        {"moves": ["hello"]},
        {"looks": [5, None]},
        {"looks": [{}, None]},
        {"looks": [seen("x", "info depth 1 score cp 1"), None]},
        {"looks": [seen("a", "bestmove d1d3"), None]},
        {"looks": [seen("a", "info multipv 1 score cp 1 pv hello"), None]},
        {"looks": [seen("a", *["info score cp 1"] * 3), None]},
        {"looks": [seen("a", "info score cp 1" + " 1" * 1000), None]},
        {"looks": [seen("a", "info score cp 1", choices=-1), None]},
        {"looks": [seen("a", outcome={"result": "a", "reason": "cheating"}), None]},
        {"looks": [seen("a", outcome=["a"]), None]},
    ],
)
def test_nonsense_is_not_judged(change: dict[str, Any]) -> None:
    good = {"variant": "brandubh", "moves": ["a4a2"], "looks": [None, None]}
    assert judging.judged(good)["moves"] == [{"sign": "", "said": "", "better": []}]
    with pytest.raises(FrameError):
        judging.judged({**good, **change})
