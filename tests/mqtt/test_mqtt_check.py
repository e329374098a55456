"""What a broker can do, tried on brokers that can and on stand-ins that cannot."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from mqtt_brokers import WAIT, TestBroker, free_port, password, require, running
from mqtt_parts import quick, until

from hnefi.gui_adapter.mqtt import brokers, check
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.client import Access, Link, Message, Unreachable, parse_url

pytest_plugins = ["mqtt_brokers"]
pytestmark = pytest.mark.process


def way(broker: TestBroker, user: str = "") -> Access:
    return Access(parse_url(broker.url), user, password(user) if user else None)


def rows(report: check.Report) -> dict[str, check.Row]:
    return {row.name: row for row in report.rows}


def test_a_good_broker_passes_and_is_left_clean(broker: TestBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "SLOW_MS", inf)
    report = asyncio.run(check.check(way(broker)))
    assert report.passed
    assert [row.name for row in report.rows if row.passed is False] == []
    assert report.version == (5 if broker.kind == "mosquitto" else 4)
    # What the broker promises and what it does: amqtt grants shared subscriptions that never bring anything.
    assert report.shares == (broker.kind == "mosquitto")
    assert report.warnings == ([] if report.shares else [check.NO_SHARE])
    assert report.median_ms is not None
    text = "\n".join(check.table(report))
    for words in (
        "kept, given to a late subscriber, cleared",
        "after the connection was cut",
        "delivered whole",
    ):
        assert words in text
    listen = ["mosquitto_sub", "-p", str(broker.port), "-t", "#", "-W", "1", "-v"]
    if shutil.which(listen[0]):
        found = subprocess.run(listen, capture_output=True, text=True, timeout=WAIT, check=False)
        assert found.stdout == ""


def test_no_user_hears_of_a_check(broker: TestBroker) -> None:
    """Not what README's listener listens to; and whoever listens to everything gets text."""

    async def play() -> None:
        async with Link(way(broker), "user") as user, Link(way(broker), "wide") as wide:
            heard: list[Message] = []
            everything: list[Message] = []
            for topic in (topics.reply("guest", "#"), topics.session("guest", "+", "out")):
                await user.subscribe(topic, heard.append)
            await wide.subscribe("tafl/#", everything.append)
            assert (await check.check(way(broker))).passed
            # What was published before has come.
            for link, inbox in ((user, heard), (wide, everything)):
                await link.publish(topics.reply("guest", "end"), b"the end")
                await until(lambda inbox=inbox: b"the end" in [m.payload for m in inbox], "the end")
            assert [message.payload for message in heard if message.payload != b"the end"] == []
            assert max(len(message.payload) for message in everything) == check.LARGE
            assert all(message.payload.decode().isprintable() for message in everything)

    asyncio.run(play())


def test_round_trips_do_not_wait_for_acknowledgements(broker: TestBroker) -> None:
    """Guards the trap of some 90 ms that opens where either end forgets TCP_NODELAY."""
    asyncio.run(quick(lambda: median_ms(way(broker)), 20))


def test_websockets_do_not_wait_either(broker: TestBroker) -> None:
    asyncio.run(quick(lambda: median_ms(Access(parse_url(broker.ws_url))), 20))


async def median_ms(access: Access) -> float:
    median = (await check.short_check(access)).median_ms
    assert median is not None
    return median


def test_both_protocols_of_mosquitto(tmp_path: Path) -> None:
    for broker in running("mosquitto", tmp_path):
        for protocol, version in (("3", 4), ("5", 5)):
            access = replace(way(broker), protocol=protocol)  # type: ignore[arg-type]
            report = asyncio.run(check.short_check(access))
            assert (report.version, report.passed, report.shares) == (version, True, True)


def test_a_club_keeps_users_apart(club: TestBroker) -> None:
    report = asyncio.run(check.check(way(club, "hnefi-engine"), way(club, "alice")))
    assert report.passed
    assert rows(report)["rights of alice"].passed is True


def test_a_broker_without_rights_is_told_off(broker: TestBroker) -> None:
    report = asyncio.run(check.check(way(broker), replace(way(broker), user="alice")))
    row = rows(report)["rights of alice"]
    assert row.passed is False
    assert "needs an ACL" in row.text
    assert not report.passed


def test_a_user_who_may_not_is_told_why(club: TestBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "ANSWER", 0.5)
    report = asyncio.run(check.check(way(club, "alice")))
    assert not report.passed
    assert rows(report)["QoS 1 round trip"].passed is False
    assert "is user 'alice' allowed" in rows(report)["QoS 1 round trip"].text


def test_nagle_is_named(broker: TestBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "SLOW_MS", 0.0)
    report = asyncio.run(check.short_check(way(broker)))
    assert report.passed
    assert "Nagle's algorithm" in report.warnings[0]
    assert "set_tcp_nodelay true" in report.warnings[0]


def test_a_small_broker_fails_at_the_large_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("mosquitto")
    monkeypatch.setattr(check, "ANSWER", 10.0)
    config = brokers.mosquitto_config
    monkeypatch.setattr(
        brokers,
        "mosquitto_config",
        lambda *ports: config(*ports).replace("max_packet_size 1048576", "max_packet_size 20000"),
    )
    for broker in running("mosquitto", tmp_path):
        report = asyncio.run(check.check(way(broker)))
        assert [row.name for row in report.rows if row.passed is False] == ["64 KiB message"]


def test_what_is_no_broker() -> None:
    with pytest.raises(Unreachable):
        asyncio.run(check.short_check(Access(parse_url(f"mqtt://127.0.0.1:{free_port()}"))))


# The command


def test_the_command(broker: TestBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main([broker.url]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"broker {broker.url}"
    assert lines[1].startswith("connection            ok      MQTT ")
    assert lines[2].startswith("QoS 1 round trip      ok      median ")


def test_the_command_with_a_user(club: TestBroker, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(club.password_file(user)) for user in ("hnefi-engine", "bob")]
    flags = [
        "--user",
        "hnefi-engine",
        "--password-file",
        files[0],
        "--as",
        "bob",
        "--as-password-file",
        files[1],
    ]
    assert check.main([club.url, *flags]) == 0
    assert "rights of bob" in capsys.readouterr().out
    assert check.main([club.url, "--user", "alice", "--password-file", files[0]]) == 3
    said = capsys.readouterr().err
    assert "refuses user 'alice'" in said
    assert "secret" not in said


def test_errors_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    nobody = f"mqtt://127.0.0.1:{free_port()}"
    assert check.main([nobody]) == 3
    assert f"hnefi mqtt check: no MQTT broker at {nobody}" in capsys.readouterr().err
    for wrong in (
        [],
        ["http://x"],
        [nobody, "--as", "#"],
        [nobody, "--as", "bob", "--as-password-file", "/no/file"],
    ):
        with pytest.raises(SystemExit) as ending:
            check.main(wrong)
        assert ending.value.code == 2
