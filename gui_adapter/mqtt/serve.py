"""`hnefi mqtt serve`: the command line of the service."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hnefi.protocol.hosts import journal, trace
from hnefi.protocol.hosts.argument_types import number, setting, whole
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.flags import GUEST, access, add_connection
from hnefi.protocol.hosts.engine_flags import check_options, check_playing
from hnefi.protocol.hosts.exit_codes import FAULTS, INTERRUPTED, OURS_FAILED
from hnefi.protocol.hosts.shutdown import Asked

from .command import parser

if TYPE_CHECKING:
    from hnefi.protocol.client import Starter
    from hnefi.protocol.hosts.broker.values import Address

    from .service import Service

LOG = logging.getLogger("hnefi.mqtt")

PARTING = 3.0
"""Seconds to disconnect from a broker that hangs, after the sessions have been closed."""

EXAMPLES = (
    "                                   a broker on this machine if there is none, and an engine",
    "--sessions 16 --player simple-d3   more sessions, and another player",
    "--broker mqtts://club.example --user hnefi-engine --password-file ~/.hnefi-password",
)


def main(argv: list[str], verb: str = "serve") -> int:
    """Serve until SIGINT, SIGTERM or SIGHUP; returns the exit code. `verb` is the name of the subcommand, which may be
    omitted on the command line."""
    options = _parser(verb)
    arguments = options.parse_args(argv)
    try:
        topics.level(arguments.eid, "--eid")
    except topics.TopicError as error:
        options.error(str(error))
    journal.check_flags(options, arguments)
    if not arguments.engine:
        check_playing(options, arguments)
        check_options(options, arguments)
    logging.basicConfig(
        stream=sys.stderr,
        level=arguments.log_level.upper(),
        format="%(asctime)s.%(msecs)03d %(levelname)s %(message)s",
        datefmt="%Y-%m-%dT%H:%M:%S",
    )
    with ExitStack() as stack:
        traffic = trace.opened(options, arguments.trace, stack)
        return Asked().run(lambda asked: _forking(options, arguments, traffic, asked))


def _parser(verb: str) -> argparse.ArgumentParser:
    positive, seconds = whole(1, 999_999), number(0.001, 10_000_000, "seconds")
    port = whole(1, 65_535, "a port")
    options = parser(
        verb,
        "Runs engines behind an MQTT broker: every program that may publish and subscribe there can play, analyse\n"
        "and watch. The first line on standard output names the broker; the log goes to standard error.\n"
        "Ctrl-C or SIGTERM ends the service within 5 s (8 s if the broker hangs): searches answer, sessions\n"
        "close. A second one ends it at once.",
        EXAMPLES,
    )
    options.add_argument(
        "--broker",
        default="auto",
        metavar="auto|mosquitto|amqtt|URL",
        help="auto: HNEFI_BROKER, else Mosquitto as a child process, else amqtt, a broker within this process",
    )
    options.add_argument(
        "--port",
        type=port,
        help="port of a broker that is started here (default 1883, or the next free one)",
    )
    options.add_argument(
        "--ws-port",
        metavar="PORT",
        type=port,
        default=0,
        help="that broker's port for WebSockets (default none)",
    )
    options.add_argument("--eid", default="local", help="name of the service in the topics (default local)")
    options.add_argument(
        "--sessions", metavar="N", type=positive, default=8, help="sessions at once (default 8)"
    )
    options.add_argument(
        "--per-user", metavar="N", type=positive, default=4, help="sessions of one user (default 4)"
    )
    options.add_argument(
        "--idle", metavar="S", type=seconds, default=1800.0, help="seconds until an unused session is closed"
    )
    options.add_argument(
        "--max-search",
        metavar="S",
        type=seconds,
        default=600.0,
        help="most seconds for a search (default 600)",
    )
    options.add_argument(
        "--rate",
        metavar="N",
        type=positive,
        default=500,
        help="messages a second from one user (default 500)",
    )
    options.add_argument(
        "--no-fork",
        action="store_true",
        help="start each engine as a new process instead of forking it from a loaded one",
    )
    options.add_argument("--pool", action="store_true", help="also answer requests to the pool of a variant")
    options.add_argument("--allow-heavy", action="store_true", help="allow bench, perft and genfens")
    options.add_argument(
        "--max-hash", metavar="MIB", type=positive, default=256, help="MiB a session may have (default 256)"
    )
    options.add_argument(
        "--max-threads", metavar="N", type=positive, default=1, help="threads a session may have (default 1)"
    )
    engine = options.add_argument_group("engine")
    engine.add_argument(
        "--engine", metavar="CMD", help="a command or one of `hnefi engines` (default: our own)"
    )
    engine.add_argument("--player", default="", metavar="NAME", help="the player, unless a client names one")
    engine.add_argument("--variant", default="", metavar="V", help="the variant, unless a client names one")
    engine.add_argument(
        "--option",
        action="append",
        default=[],
        type=setting,
        metavar="N=V",
        help="an option of the engine, set first; repeatable",
    )
    keeping = options.add_argument_group("recording")
    journal.add_flags(keeping)
    trace.add_flag(keeping, "every message from and to the broker")
    add_connection(options)
    options.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), default="info", help="default info"
    )
    return options


async def _forking(
    options: argparse.ArgumentParser,
    arguments: argparse.Namespace,
    traffic: trace.Trace | None,
    ending: Asked,
) -> int:
    from hnefi.protocol.fork_client import forking

    # Only our own engine can be forked.
    async with forking(not (arguments.no_fork or arguments.engine)) as starter:
        return await _serve(options, arguments, traffic, starter, ending)


async def _serve(
    options: argparse.ArgumentParser,
    arguments: argparse.Namespace,
    traffic: trace.Trace | None,
    starter: Starter,
    ending: Asked,
) -> int:
    from hnefi.protocol.client import EngineError, own_command
    from hnefi.protocol.hosts.broker.client import LinkError
    from hnefi.protocol.hosts.filter import Filter
    from hnefi.protocol.hosts.registry import engine_of
    from hnefi.protocol.hosts.sessions.engine_process import Policy

    from .brokers import BrokerError, provide
    from .check import short_check
    from .service import DRAIN_LIMIT, Service, Settings

    command = tuple(own_command())
    preset: tuple[tuple[str, str], ...] = ()
    try:
        if arguments.engine:
            engine = engine_of(arguments.engine)
            command, preset = engine.words, tuple(engine.options.items())
    except ValueError as error:
        options.error(f"--engine: {error}")
    settings = Settings(
        eid=arguments.eid,
        policy=Policy(
            command=command,
            filter=Filter(arguments.allow_heavy, arguments.max_hash, arguments.max_threads),
            options=(*preset, *arguments.option),
            player=arguments.player,
            variant=arguments.variant,
            max_search=arguments.max_search,
            starter=starter,
        ),
        sessions=arguments.sessions,
        per_user=arguments.per_user,
        idle=arguments.idle,
        rate=arguments.rate,
        pool=arguments.pool,
        journal=None if arguments.no_record else _journal(arguments),
        trace=traffic,
    )
    try:
        broker = await ending.unless(
            provide(arguments.broker, port=arguments.port, ws_port=arguments.ws_port)
        )
    except BrokerError as error:
        print(f"{options.prog}: {error}", file=sys.stderr)
        return error.status
    if broker is None:
        return INTERRUPTED
    outcome = _Outcome()
    try:
        way = access(options, arguments, broker.url)
        print(f"broker {way.address}", flush=True)
        if broker.note:
            LOG.warning("%s", broker.note)
        shares = False
        try:
            report = await ending.unless(short_check(way))
            if report is None:
                return INTERRUPTED
            shares = report.shares
            for sentence in report.warnings:
                if arguments.pool or "--pool" not in sentence:
                    LOG.warning("%s", sentence)
        except LinkError as error:
            LOG.warning("%s", error)
        if arguments.pool and not shares:
            print(
                f"{options.prog}: --pool: this broker does not deliver shared subscriptions: "
                "expected one that does, such as Mosquitto",
                file=sys.stderr,
            )
            return FAULTS
        service = Service(way, settings)
        if await ending.unless(_learned(service)) is None:
            return INTERRUPTED

        async def end() -> None:
            gone = asyncio.create_task(broker.ended())
            asked = asyncio.create_task(ending.wait())
            try:
                await asyncio.wait([gone, asked], return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    outcome.failure = gone.result()
            finally:
                gone.cancel()
                asked.cancel()

        def ready() -> None:
            # From now on there may be sessions, which are ended gently.
            ending.limit = DRAIN_LIMIT + PARTING
            print(f"ready {topics.requests(arguments.eid, '<user>')}", flush=True)
            if way.address.scheme == "mqtt" and not way.login:
                print(*example(way.address, arguments.eid), sep="\n", flush=True)

        refused = await service.run(end(), ready, shares=shares)
        if refused is not None:
            outcome.failure = str(refused)
    except EngineError as error:
        print(f"{options.prog}: {error}", file=sys.stderr)
        return FAULTS if arguments.engine else OURS_FAILED
    finally:
        await broker.close()
    if outcome.failure:
        print(f"{options.prog}: {outcome.failure}", file=sys.stderr)
        return FAULTS
    return 0


async def _learned(service: Service) -> bool:
    await service.learn()
    return True


def example(address: Address, eid: str) -> list[str]:
    """Lines to paste into a shell to try the service."""
    at = f"-h {address.host} -p {address.port}"
    root = f"{address.prefix}/" if address.prefix else ""
    replies, out = root + topics.reply(GUEST, "#"), root + topics.session(GUEST, topics.ANY, "out")
    asked = '{"id":"1","op":"open","variant":"brandubh","sid":"demo1"}'
    return [
        "to try it, in one terminal, and then in another, the last line once the one before is answered:",
        f"  mosquitto_sub {at} -t '{replies}' -t '{out}'",
        f"  mosquitto_pub {at} -q 1 -t {root}{topics.requests(eid, GUEST)} -m '{asked}'",
        f"  mosquitto_pub {at} -q 1 -t {root}{topics.session(GUEST, 'demo1', 'in')} -m 'go movetime 500'",
    ]


def _journal(arguments: argparse.Namespace) -> journal.Journal:
    def warn(failure: str) -> None:
        LOG.warning("games are no longer recorded: %s", failure)

    return journal.Journal("mqtt", journal.chosen_folder(arguments), warn)


@dataclass(slots=True)
class _Outcome:
    failure: str = ""
