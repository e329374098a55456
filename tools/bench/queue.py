"""`hnefi bench queue`: how many engine hosts a number of players needs, by simulating their queueing.

Assumptions are flags with defaults: how long people think, what they do, and how long they may have to wait. The cost
of an engine session is measured by `hnefi bench sessions` and `hnefi bench web`.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hnefi.protocol.hosts.argument_types import number, whole

from ..common.arguments import let_interrupt_end_us, parser, positive

if TYPE_CHECKING:
    from .queueing import Kind, Searches

PERCENTILES: Final = (50, 95, 99)
ENOUGH: Final = 0.9
"""The share of its processor time that a timed search should get in 95 of 100 cases."""
SAMPLE: Final = 20_000
"""Players in a trial while searching for the number of hosts; a simulation of all players has the last word."""
SHARED_MIB: Final = 300
"""Memory of a host besides its sessions: the service and the fork server."""
CROWDED: Final = 40
"""Players per core at the right end of the chart."""
POINTS: Final = 10
"""Points of each curve in the chart."""
LOOK_SPREAD: Final = 1.0
"""Standard deviation of the logarithm of the time that people look at an analysis."""


@dataclass(frozen=True, slots=True)
class Host:
    """A machine for engines and its target: 95 of 100 people wait at most `wait` seconds."""

    cores: int
    memory: float
    session: float
    wait: float

    @property
    def room(self) -> int:
        """Sessions that fit in its memory."""
        return int((1024 * self.memory - SHARED_MIB) / self.session)


@dataclass(frozen=True, slots=True)
class Crowd:
    """How `players` players fare on `hosts` hosts. `waits` are seconds by percentile; `share` is the share of processor
    time that 95 of 100 timed searches get at least."""

    players: int
    hosts: int
    busy: float
    waits: dict[int, float]
    share: float

    @property
    def each(self) -> int:
        """Players per host."""
        return math.ceil(self.players / self.hosts)


def crowd_of(kinds: Sequence[Kind], players: int, hosts: int, found: Searches) -> Crowd:
    """The summary of a simulation."""
    import numpy as np

    clocked = np.array([math.isinf(kind.work) for kind in kinds])[found.kind]
    late, less = found.wait[~clocked], found.share[clocked]
    waits = {share: float(np.percentile(late, share)) if late.size else 0.0 for share in PERCENTILES}
    return Crowd(players, hosts, found.busy, waits, float(np.percentile(less, 5)) if less.size else 1.0)


def hosts_for(kinds: Sequence[Kind], players: int, host: Host, seconds: float, seed: int) -> Crowd:
    """The fewest hosts on which `players` fare well enough; ValueError if a single player is too much for one."""

    def tried(hosts: int, most: int) -> Crowd:
        from .queueing import simulate

        each = math.ceil(players / hosts)
        simulated = min(hosts, max(1, most // each))
        found = simulate(kinds, simulated, each, host.cores, seconds, seconds / 2, seed)
        return crowd_of(kinds, players, hosts, found)

    def good(crowd: Crowd) -> bool:
        return crowd.each <= host.room and crowd.waits[95] <= host.wait and crowd.share >= ENOUGH

    # Fewer than `low` never suffice, `high` do.
    low, high = 1, math.ceil(players / host.room)
    while not good(tried(high, SAMPLE)):
        if high >= players:
            raise ValueError(f"a single player needs more than {host.cores} cores")
        low, high = high + 1, min(players, 2 * high)
    while low < high:
        middle = (low + high) // 2
        if good(tried(middle, SAMPLE)):
            high = middle
        else:
            low = middle + 1
    while True:
        whole_crowd = tried(high, players)
        if good(whole_crowd) or high >= players:
            return whole_crowd
        high += max(1, high // 100)


def kinds_of(arguments: Any) -> list[Kind]:
    """What players do, as the flags say."""
    from hnefi.engine.search.skill import FULL, weakness

    from .queueing import Kind

    levels = [weakness(level) for level in range(int(FULL))]
    beginners = 1 - (arguments.full + arguments.analysis) / 100
    person = {"think": arguments.think, "think_spread": arguments.spread}
    cost = arguments.overhead / 1000
    kinds = [
        Kind(
            f"level {number}",
            beginners / len(levels),
            work=level.nodes / arguments.speed + cost,
            **person,
        )
        for number, level in enumerate(levels)
        if level is not None
    ]
    kinds.append(
        Kind("whole engine", arguments.full / 100, work=math.inf, limit=arguments.movetime / 1000, **person)
    )
    look = {"limit": arguments.look, "limit_spread": LOOK_SPREAD}
    kinds.append(Kind("analysis", arguments.analysis / 100, work=math.inf, **look, **person))
    return [kind for kind in kinds if kind.share > 0]


def main(argv: list[str]) -> int:
    """The command line."""
    options = _parser()
    arguments = options.parse_args(argv)
    let_interrupt_end_us()
    try:
        players = [_players(word) for word in arguments.players.split(",")]
    except ValueError as error:
        options.error(f"--players {arguments.players}: {error}")
    if arguments.full + arguments.analysis > 100:
        options.error("--full and --analysis: expected at most 100 % together")
    kinds = kinds_of(arguments)
    host = Host(arguments.cores, arguments.memory, arguments.session_mib, arguments.wait / 1000)
    if host.room < 1:
        options.error(
            f"--memory {arguments.memory:g}: expected room for {SHARED_MIB} MiB and a session of "
            f"{arguments.session_mib:g} MiB"
        )
    if not arguments.json:
        print(_head(arguments), flush=True)
    crowds = []
    for count in sorted(players):
        began = time.monotonic()
        if sys.stderr.isatty():
            print(f"{count} players …", end="\r", file=sys.stderr, flush=True)
        try:
            crowd = hosts_for(kinds, count, host, arguments.seconds, arguments.seed)
        except ValueError as error:
            options.error(str(error))
        crowds.append(crowd)
        if not arguments.json:
            print(_row(crowd, arguments, time.monotonic() - began), flush=True)
    if arguments.chart:
        curve = _curve(kinds, host, arguments)
        try:
            Path(arguments.chart).write_text(_chart(crowds, curve, arguments), "utf-8")
        except OSError as error:
            options.error(f"--chart {arguments.chart}: {error.strerror or error}")
    if arguments.json:
        print(json.dumps({"crowds": [_document(crowd) for crowd in crowds]}))
    return 0


def _players(word: str) -> int:
    if not word.isdigit() or not 1 <= int(word) <= 1_000_000:
        raise ValueError("expected numbers from 1 to 1000000, with commas between them")
    return int(word)


def _parser() -> Any:
    options = parser(
        "bench queue",
        "Estimates how many engine hosts a number of simultaneous players need, by simulating how they wait for "
        "processors: they think, ask the engine, and think again. Levels search a fixed number of nodes; the full "
        "engine and analyses search for a fixed time.",
        [
            "",
            "--players 100000 --cores 16 --memory 64",
            "--analysis 0 --full 100 --movetime 3000",
            "--chart hosts.svg",
        ],
    )
    share, seconds = number(0, 100, "a percentage"), number(0.001, 100_000, "a number above 0")

    def add(group: Any, flag: str, kind: Any, default: Any, said: str, metavar: str = "N") -> None:
        shown = f"{default:g}" if isinstance(default, float) else str(default)
        group.add_argument(
            flag, type=kind, default=default, metavar=metavar, help=f"{said} (default {shown})"
        )

    people = options.add_argument_group("players")
    add(people, "--players", str, "100,1000,10000,100000", "at once", "N,N")
    add(people, "--think", seconds, 10.0, "seconds that people think on average", "S")
    add(
        people,
        "--spread",
        number(0, 3, "a number up to 3"),
        0.9,
        "standard deviation of the logarithm of that time",
    )
    add(people, "--full", share, 15.0, "share of the players who play the full engine", "PERCENT")
    add(people, "--movetime", positive, 1000, "milliseconds that it thinks about a move", "MS")
    add(
        people,
        "--analysis",
        share,
        5.0,
        "share of the players who analyse; the others play levels 0 to 9",
        "PERCENT",
    )
    add(people, "--look", seconds, 20.0, "seconds that an analysis runs on average", "S")
    machine = options.add_argument_group("a host")
    add(machine, "--cores", whole(1, 1024), 8, "its processors")
    add(machine, "--memory", seconds, 16.0, "its memory", "GIB")
    add(machine, "--session-mib", seconds, 25.0, "memory of a session", "MIB")
    add(machine, "--speed", positive, 1_000_000, "nodes a second of a core")
    add(
        machine,
        "--overhead",
        number(0, 10_000, "milliseconds"),
        10.0,
        "CPU time of a move besides its search, in ms",
        "MS",
    )
    add(
        machine,
        "--wait",
        seconds,
        100.0,
        "how late 95 of 100 moves of the levels may be at most, in ms",
        "MS",
    )
    machine.add_argument(
        "--price", type=number(0, 1e6, "a price"), default=0.0, metavar="N", help="price of an hour of a host"
    )
    options.add_argument(
        "--seconds",
        metavar="S",
        type=seconds,
        default=120.0,
        help="seconds to simulate, after a warm-up of half as many (default 120)",
    )
    options.add_argument("--seed", metavar="S", type=positive, default=1, help="default 1")
    options.add_argument("--chart", metavar="FILE", help="draw the result as SVG; FILE is replaced")
    options.add_argument("--json", action="store_true", help="the figures as JSON")
    return options


def _head(arguments: Any) -> str:
    words = ["players", "hosts", "each", "busy", "late 50 %", "95 %", "99 %", "thinks", "memory"]
    units = ["", "", "", "cores", "ms", "ms", "ms", "5 %", "GiB"]
    if arguments.price:
        words, units = [*words, "price"], [*units, "an hour"]
    return "\n".join("".join(f"{word:>10}" for word in row) for row in (words, units))


def _row(crowd: Crowd, arguments: Any, took: float) -> str:
    memory = (SHARED_MIB + crowd.each * arguments.session_mib) / 1024
    figures = [f"{crowd.players}", f"{crowd.hosts}", f"{crowd.each}", f"{crowd.busy:.1f}"]
    figures += [f"{1000 * crowd.waits[share]:.1f}" for share in PERCENTILES]
    figures += [f"{crowd.share:.0%}", f"{memory:.1f}"]
    if arguments.price:
        figures.append(f"{crowd.hosts * arguments.price:.2f}")
    return "".join(f"{figure:>10}" for figure in figures) + f"   ({took:.0f} s)"


def _document(crowd: Crowd) -> dict[str, Any]:
    return {
        "players": crowd.players,
        "hosts": crowd.hosts,
        "each": crowd.each,
        "busy_cores": crowd.busy,
        "wait_ms": {f"{share}": 1000 * wait for share, wait in crowd.waits.items()},
        "share": {"5": crowd.share},
    }


def _curve(kinds: Sequence[Kind], host: Host, arguments: Any) -> list[Crowd]:
    """One host with more and more players, up to `CROWDED` per core."""
    from .queueing import simulate

    crowds = []
    for step in range(1, POINTS + 1):
        players = round(host.cores * CROWDED ** (step / POINTS))
        hosts = max(4, 1_000 // players)
        found = simulate(
            kinds, hosts, players, host.cores, arguments.seconds, arguments.seconds / 2, arguments.seed
        )
        crowds.append(crowd_of(kinds, players, 1, found))
    return crowds


def _chart(crowds: Sequence[Crowd], curve: Sequence[Crowd], arguments: Any) -> str:
    from ..common.svg_chart import MARGIN, Panel, Scale, Sheet, curve_of

    people = (
        f"{arguments.full:g} % play the whole engine ({arguments.movetime / 1000:g} s a move), "
        f"{arguments.analysis:g} % analyse, the others play levels 0 to 9. People think {arguments.think:g} s on "
        "average. Simulated by hnefi bench queue."
    )
    title = [
        f"Engine hosts of {arguments.cores} cores: how players fare, and how many hosts they need",
        people,
    ]
    sheet = Sheet(860, title)
    top, height, gap = sheet.top + 16, 200.0, 82.0
    sizes = [one.players for one in curve]
    marks = [(float(size), f"{size}") for size in sizes[:: len(sizes) // 4 or 1]]

    late = Panel(sheet, gap, top, 190, height, Scale(*_around(sizes), log=True), Scale(0.1, 10_000, log=True))
    late.frame()
    below = late.ticks_below(marks, grid=True)
    late.ticks_left([(0.1, "≤ 0.1"), *((10.0**power, f"{10.0**power:g}") for power in range(5))])
    late.called_left("late, milliseconds", 22)
    looks = [
        curve_of(f"{share} of 100 moves of levels are at most this late", at)
        for at, share in enumerate(PERCENTILES)
    ]
    for look, share in zip(looks, PERCENTILES, strict=True):
        points = [(float(one.players), min(10_000.0, max(0.1, 1000 * one.waits[share]))) for one in curve]
        late.curve(points, look)
    bottom = late.called_below("players of one host", below)

    left = late.right + gap
    thinks = Panel(sheet, left, top, 190, height, Scale(*_around(sizes), log=True), Scale(0, 100))
    thinks.frame()
    thinks.ticks_below(marks, grid=True)
    thinks.ticks_left([(float(value), f"{value}") for value in range(0, 101, 20)])
    thinks.called_left("thinks, % of its time", left - 46)
    less = curve_of("95 of 100 timed searches think at least this much", 3)
    thinks.curve([(float(one.players), 100 * one.share) for one in curve], less)
    thinks.called_below("players of one host", below)

    left = thinks.right + gap
    crowded, hosts = [one.players for one in crowds], [one.hosts for one in crowds]
    needs = Panel(
        sheet, left, top, 190, height, Scale(*_around(crowded), log=True), Scale(*_around(hosts), log=True)
    )
    needs.frame()
    needs.ticks_below([(float(count), _short(count)) for count in crowded], grid=True)
    needs.ticks_left([(float(count), f"{count}") for count in hosts])
    needs.called_left("hosts", left - 52)
    need = curve_of("hosts needed", 4)
    needs.curve([(float(one.players), float(one.hosts)) for one in crowds], need)
    needs.called_below("players at once", below)
    return sheet.svg(sheet.legend_below([*looks, less, need], bottom + 8) + MARGIN)


def _short(count: int) -> str:
    return f"{count / 1000:g}k" if count >= 1000 else str(count)


def _around(values: Sequence[int]) -> tuple[float, float]:
    """A range for an axis with some room at both ends."""
    return min(values) / 1.5, max(values) * 1.5
