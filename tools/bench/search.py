"""`hnefi bench search`: what each part of the search saves, what threads gain, and whether they tear table entries.

Node counts are the same on every machine; CPU time is from this run. How much strength a part adds is another question,
which `hnefi arena --sprt` answers.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.protocol.hosts.argument_types import whole

from ..common.arguments import (
    add_variant_path,
    find_tafl_variant,
    let_interrupt_end_us,
    parser,
    positive,
)
from ..common.live import Live

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.tafl.variant import Variant
    from hnefi.protocol.flags import Parser

SEED = 1
PLIES = (10, 24)
"""Random plies before a position from the middle of a game."""
MOST = 20_000_000
"""A search that would need more nodes ends with the last depth it completed."""
HASH_MIB = 64


@dataclass(frozen=True, slots=True)
class Deepening:
    """One search: nodes by depth, from 1; CPU seconds of all threads, and of the thread that answers."""

    position: str
    nodes: tuple[int, ...]
    cpu: float
    own: float

    @property
    def growth(self) -> float:
        """The average factor by which another ply multiplies the nodes."""
        plies = len(self.nodes) - 1
        return (self.nodes[-1] / self.nodes[0]) ** (1 / plies) if plies else math.nan


@dataclass
class Row:
    """The searches of all positions in one way of searching."""

    name: str
    searches: list[Deepening] = field(default_factory=list)

    @property
    def nodes(self) -> int:
        """Nodes of all searches."""
        return sum(search.nodes[-1] for search in self.searches)

    @property
    def cpu(self) -> float:
        """Seconds of CPU of all searches."""
        return sum(search.cpu for search in self.searches)

    @property
    def depth(self) -> int:
        """The depth that every search reached."""
        return min(len(search.nodes) for search in self.searches)

    @property
    def growth(self) -> float:
        """The geometric mean of the factors by which nodes grow from one depth to the next."""
        return statistics.geometric_mean(search.growth for search in self.searches)


def add_search(options: Parser, variant: str, depth: int, positions: int) -> None:
    """What is searched: a variant, with these defaults a depth, and the number of `positions`."""
    options.add_argument(
        "variant",
        nargs="?",
        metavar="VARIANT",
        default=variant,
        help=f"default: {variant}; also --variant V",
    )
    options.takes_variant()
    options.add_argument("--depth", metavar="N", type=positive, default=depth, help=f"plies ({depth})")
    options.add_argument(
        "--positions",
        metavar="N",
        type=positive,
        default=positions,
        help=f"positions: the start, and others from the middle of games ({positions})",
    )


def positions(variant: Variant, count: int) -> dict[str, Position]:
    """The start, and `count` - 1 balanced positions from the middle of games, the same every time."""
    from hnefi.engine import games, openings

    found = {"start": games.initial(variant)}
    for number, position in enumerate(openings.generate(variant, count - 1, SEED, PLIES), start=1):
        found[f"middle {number}"] = position
    return found


def deepen(position: Position, name: str, depth: int, most: int, settings: dict[str, Any]) -> Deepening:
    """Search depth by depth from an empty table, until `depth` is done or `most` nodes are spent."""
    from hnefi.engine.search.searcher import Searcher
    from hnefi.engine.search.types import Info, Limits, Settings

    nodes: dict[int, int] = {}

    def note(info: Info) -> None:
        if not info.bound and info.multipv == 1:
            nodes[info.depth] = info.nodes

    searcher = Searcher(Settings(hash_mib=HASH_MIB, **settings))
    searcher.begin()
    searcher.search(position, Limits(depth=1), lambda _: None)
    searcher.clear()
    searcher.begin()
    cpu, own = time.process_time(), time.thread_time()
    searcher.search(position, Limits(depth=depth, nodes=most), note)
    cpu, own = time.process_time() - cpu, time.thread_time() - own
    # If the nodes are spent, the last depth was cut short.
    if nodes and max(nodes.values()) >= most and len(nodes) > 1:
        del nodes[max(nodes)]
    return Deepening(name, tuple(nodes[key] for key in sorted(nodes)), cpu, own)


def ways(only: Sequence[str]) -> list[str]:
    """The ways of searching to compare: the default, without any feature, and the default with one feature changed."""
    from hnefi.engine.search import features

    def changed(name: str) -> str:
        return f"default {'-' if features.DEFAULT & features.read(name) else ''}{name}"

    return ["default", "none", *(changed(name) for name in features.NAMES if not only or name in only)]


def compare(
    places: dict[str, Position], depth: int, most: int, features: Sequence[str], note: Callable[[str], None]
) -> list[Row]:
    """Search every position in every way."""
    rows = []
    for way in features:
        row = Row(way)
        for name, position in places.items():
            note(f"{way}: {name}")
            row.searches.append(deepen(position, name, depth, most, {"features": way}))
        rows.append(row)
    return rows


def by_threads(
    places: dict[str, Position], depth: int, most: int, threads: Sequence[int], note: Callable[[str], None]
) -> list[Row]:
    """Time to depth of every position with each number of threads, alternating at each position."""
    rows = [Row(str(number)) for number in threads]
    for name, position in places.items():
        for row in rows:
            note(f"{row.name} threads: {name}")
            row.searches.append(deepen(position, name, depth, most, {"threads": int(row.name)}))
    return rows


def speedup(one: Row, many: Row, threads: int) -> tuple[float, float, float]:
    """Medians of how much faster the answering thread is than a single thread, by CPU time and by nodes per thread,
    and of how much more CPU time all threads use. Nodes do not depend on the speed of the machine."""
    pairs = list(zip(one.searches, many.searches, strict=True))
    # Searches that were cut short are compared at the depth that both reached.
    reached = [min(len(a.nodes), len(b.nodes)) - 1 for a, b in pairs]
    return (
        statistics.median(a.own / b.own for a, b in pairs),
        statistics.median(
            threads * a.nodes[d] / b.nodes[d] for (a, b), d in zip(pairs, reached, strict=True)
        ),
        statistics.median(b.cpu / a.cpu for a, b in pairs),
    )


def stability(
    places: dict[str, Position], nodes: int, threads: int, note: Callable[[str], None]
) -> dict[str, int]:
    """Search the positions in turn with a small table and several threads until the given nodes are spent.

    Counts what must not happen: a table move that is illegal in its position (a torn entry), a position that a search
    has left changed, a key that does not match its board, a line that cannot be played.
    """
    from hnefi.engine.games.tafl import setup
    from hnefi.engine.games.tafl.state import CORE
    from hnefi.engine.search.searcher import Searcher
    from hnefi.engine.search.types import Info, Limits, Settings

    searcher = Searcher(Settings(hash_mib=4, threads=threads))
    found = {"nodes": 0, "searches": 0, "strays": 0, "changed": 0, "wrong keys": 0, "bad lines": 0}
    last: list[Info] = []
    while found["nodes"] < nodes:
        for position in places.values():
            last.clear()
            searcher.begin()
            searcher.search(position, Limits(nodes=min(20_000_000, nodes)), last.append)
            record, tds = searcher.record, [td[0] for td in searcher.algorithm.threads]
            found["searches"] += 1
            found["nodes"] += sum(int(td["nodes"]) for td in tds)
            found["strays"] += sum(int(td["illegal_tt_moves"]) for td in tds)
            found["changed"] += record.tobytes()[CORE] != position.new_record().tobytes()[CORE]
            found["wrong keys"] += int(setup.whole_key(record[0])) != int(record[0]["key"])
            found["bad lines"] += not _playable(position, last[-1].pv)
            note(f"{found['nodes']:,} nodes, {found['strays']} strays")
            if found["nodes"] >= nodes:
                break
    return found


def _playable(position: Position, line: Sequence[int]) -> bool:
    for move in line:
        if move not in position.legal_moves():
            return False
        position = position.play(move)
    return True


def table(rows: Sequence[Row]) -> str:
    """The ways of searching as text: nodes and time compared with the default."""
    whole = rows[0]
    lines = [
        f"{'features':24}{'depth':>6}{'nodes':>14}{'x':>8}{'CPU s':>9}{'x':>8}{'growth':>8}",
    ]
    for row in rows:
        # Searches that were cut short are compared at the depth they reached.
        shared = [min(len(a.nodes), len(b.nodes)) for a, b in zip(whole.searches, row.searches, strict=True)]
        nodes = sum(s.nodes[d - 1] for s, d in zip(row.searches, shared, strict=True))
        base = sum(s.nodes[d - 1] for s, d in zip(whole.searches, shared, strict=True))
        same = all(len(s.nodes) == len(w.nodes) for s, w in zip(row.searches, whole.searches, strict=True))
        cpu = f"{row.cpu / whole.cpu:8.2f}" if same else f"{'-':>8}"
        lines.append(
            f"{row.name:24}{row.depth:>6}{row.nodes:>14,}{nodes / base:8.2f}{row.cpu:9.2f}{cpu}{row.growth:8.2f}"
        )
    return "\n".join(lines)


def draw(rows: Sequence[Row], title: str, path: Path) -> None:
    """Draw the geometric mean of the nodes by depth, one curve for each way; ImportError without matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5))
    for row in rows:
        values = [
            statistics.geometric_mean(search.nodes[depth] for search in row.searches)
            for depth in range(row.depth)
        ]
        strong = row.name in ("default", "none")
        axes.plot(
            range(1, row.depth + 1),
            values,
            label=row.name,
            linewidth=2.5 if strong else 1.2,
            marker="o" if strong else None,
        )
    axes.set_yscale("log")
    axes.set_xlabel("depth (plies)")
    axes.set_ylabel("nodes")
    axes.set_title(title)
    axes.legend(fontsize=8)
    axes.grid(visible=True, alpha=0.3)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def main(argv: list[str]) -> int:
    """Measure and print; the exit status is 1 if threads corrupted something, 2 if a chart lacks matplotlib."""
    options = parser(
        "bench search",
        "Searches positions of a variant to a depth with the usual features of alpha-beta, with none, and with one of "
        "them changed. Prints nodes, CPU time and the factor by which each ply multiplies the nodes. With --threads "
        "it measures the time to that depth by number of threads, as CPU time of the thread that answers, so that "
        "other programs on the machine hardly matter. With --stability it runs a long search with several threads and "
        "checks its table and positions.",
        [
            "",
            "brandubh --depth 12 --chart nodes.svg",
            "--only nullmove --only lmr",
            "--threads 1,2 --depth 13 --positions 10",
            "--stability 1000000000 --threads 2",
        ],
    )
    add_search(options, "copenhagen", depth=10, positions=4)
    options.add_argument(
        "--nodes", metavar="N", type=positive, default=MOST, help=f"nodes of a search at most ({MOST})"
    )
    options.add_argument(
        "--only", metavar="FEATURE", action="append", default=[], help="change only this one"
    )
    options.add_argument("--threads", metavar="A,B", help="compare these numbers of threads instead")
    options.add_argument(
        "--stability",
        metavar="NODES",
        type=whole(0, 10**12 - 1),
        default=0,
        help="search N nodes and check table and positions",
    )
    options.add_argument("--chart", metavar="FILE", type=Path, help="nodes by depth, as .svg or .png")
    options.add_argument("--json", action="store_true", help="the figures as one JSON document")
    add_variant_path(options)
    arguments = options.parse_args(argv)
    variant = find_tafl_variant(options, arguments.variant, arguments.path)
    threads = _threads(options, arguments.threads)
    _check_features(options, arguments.only)
    let_interrupt_end_us()
    if arguments.chart is not None and _no_plots(arguments.chart):
        return 2
    places = positions(variant, arguments.positions)
    live = Live(sys.stderr)

    def note(text: str) -> None:
        live.step(lambda: text)

    document: dict[str, Any] = {"variant": variant.name, "depth": arguments.depth}
    status = 0
    if arguments.stability:
        found = stability(places, arguments.stability, max(threads or [2]), note)
        wrong = sum(found[word] for word in ("strays", "changed", "wrong keys", "bad lines"))
        status = 1 if wrong else 0
        document["stability"] = found
        text = ", ".join(f"{number:,} {word}" for word, number in found.items())
    elif threads:
        rows = by_threads(places, arguments.depth, arguments.nodes, threads, note)
        lines = [
            f"{'threads':>8}{'nodes':>14}{'own s':>9}{'CPU s':>9}{'faster':>8}{'by nodes':>10}{'CPU x':>8}"
        ]
        for row in rows:
            faster, by_nodes, dearer = speedup(rows[0], row, int(row.name))
            own = sum(search.own for search in row.searches)
            lines.append(
                f"{row.name:>8}{row.nodes:>14,}{own:9.2f}{row.cpu:9.2f}{faster:8.2f}{by_nodes:10.2f}{dearer:8.2f}"
            )
            document.setdefault("threads", {})[row.name] = {
                "faster": faster,
                "faster_by_nodes": by_nodes,
                "cpu": dearer,
                "searches": [asdict(search) for search in row.searches],
            }
        text = "\n".join(lines)
    else:
        rows = compare(places, arguments.depth, arguments.nodes, ways(arguments.only), note)
        document["features"] = {row.name: [asdict(search) for search in row.searches] for row in rows}
        text = table(rows)
        if arguments.chart is not None:
            draw(rows, f"{variant.name}: nodes by depth, {len(places)} positions", arguments.chart)
    live.close()
    print(json.dumps(document, indent=2) if arguments.json else text)
    return status


def _threads(options: Any, text: str | None) -> list[int]:
    if text is None:
        return []
    words = text.split(",")
    if not all(word.isascii() and word.isdigit() and 1 <= int(word) <= 256 for word in words):
        options.error(
            f"--threads {text[:80]}: expected numbers from 1 to 256 with commas between, such as 1,2"
        )
    return [int(word) for word in words]


def _check_features(options: Any, names: Sequence[str]) -> None:
    from hnefi.engine.search import features

    for name in names:
        if name not in features.NAMES:
            options.error(f"--only {name[:80]}: expected one of {', '.join(features.NAMES)}")


def _no_plots(path: Path) -> bool:
    if path.suffix not in (".svg", ".png"):
        print(f"--chart {path}: expected a name that ends in .svg or .png", file=sys.stderr)
        return True
    try:
        import matplotlib  # noqa: F401, ICN001
    except ImportError:
        print("--chart needs matplotlib: pip install 'hnefi[plots]'", file=sys.stderr)
        return True
    return False
