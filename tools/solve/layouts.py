"""`hnefi solve layouts`: the exact value of every symmetric start of a small board, under several rule sets.

The values of a table do not depend on the start position. So one table per rule set has the values of all starts with
that many men or fewer.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.protocol.hosts.exit_codes import INTERRUPTED, USAGE

from ..common import arguments, interrupts
from ..common.live import Live, duration
from ..common.workers import WorkerFailed, through_joblib

if TYPE_CHECKING:
    import argparse

    from hnefi.engine.games.tafl.variant import Variant
    from hnefi.engine.solving.table import Table

SWITCHES = (
    ("king_sides=4",),
    ("king_armed=no",),
    ("throne=none",),
    ("corner_hostile=none",),
    ("escape=edge", "corners=none"),
    ("speed=K:1",),
    ("encirclement=off",),
    ("no_move=draw",),
)
"""The default changes, one at a time: eight switches that the small presets leave alone."""
KINDS = ("both mirrors", "half turn", "one mirror")
"""The symmetries that map a layout to itself. The first kind includes everything that two mirrors generate."""
MIRROR, DIAGONAL, HALF_TURN = 1, 4, 3
"""Numbers of symmetries in `_image`: one of each kind that is its own inverse."""
DESCRIPTION = """\
Solves every position of a board under a rule set and under changes of it, and looks up the value of all symmetric
starts: the king in the middle, corners empty, at most as many men as the variant begins with, and at least one symmetry
of the board that leaves the layout as it is. Each start is counted once, not with its images, and with either side to
move. The report says which change makes the other side win.

Tables and values are kept in the folder --out. The same command continues what was interrupted, also after kill -9.

--jobs are threads that solve one rule set after the other. With --backend they are processes, each of which solves a
rule set: of this machine (loky), or of the dask or ray cluster that DASK_SCHEDULER_ADDRESS or RAY_ADDRESS names, where
all machines must see the folder. Tables and values are the same.
"""

Square = tuple[int, int]


@dataclass(frozen=True, slots=True, order=True)
class Layout:
    """A start: its rows, top rank first, without a side to move, and its kind."""

    kind: str
    attackers: int
    defenders: int
    rows: str


@dataclass(frozen=True, slots=True)
class Case:
    """One rule set: the variant, and what it changes."""

    label: str
    variant: Variant

    @property
    def stem(self) -> str:
        """The beginning of the names of its files."""
        return re.sub(r"[^a-z0-9_]+", "-", self.label.lower()).strip("-")


def _image(square: Square, turn: int, size: int) -> Square:
    file, rank = square
    if turn & 1:
        file = size - 1 - file
    if turn & 2:
        rank = size - 1 - rank
    return (rank, file) if turn & 4 else (file, rank)


def layouts(size: int, attackers: int, defenders: int) -> list[Layout]:
    """All symmetric starts of a board with an odd number of files, one per set of mirror images."""
    last, middle = size - 1, size // 2
    free = [
        (file, rank)
        for rank in range(size)
        for file in range(size)
        if (file, rank) != (middle, middle) and not (file in (0, last) and rank in (0, last))
    ]
    found = set()
    for turn in (MIRROR, DIAGONAL, HALF_TURN):
        orbits = sorted({tuple(sorted({square, _image(square, turn, size)})) for square in free})
        for sets in _filled(orbits, attackers, defenders):
            found.add(_least(*sets, size))
    return sorted(_layout(*sets, size) for sets in found)


def _filled(
    orbits: Sequence[tuple[Square, ...]], attackers: int, defenders: int
) -> Iterator[tuple[frozenset[Square], frozenset[Square]]]:
    """Every way to put at most the given numbers of men on whole orbits, with at least one attacker."""

    def fill(
        at: int, ours: frozenset[Square], theirs: frozenset[Square]
    ) -> Iterator[tuple[frozenset[Square], frozenset[Square]]]:
        if at == len(orbits):
            if ours:
                yield ours, theirs
            return
        orbit = orbits[at]
        yield from fill(at + 1, ours, theirs)
        if len(ours) + len(orbit) <= attackers:
            yield from fill(at + 1, ours | set(orbit), theirs)
        if len(theirs) + len(orbit) <= defenders:
            yield from fill(at + 1, ours, theirs | set(orbit))

    return fill(0, frozenset(), frozenset())


def _images(men: frozenset[Square], turn: int, size: int) -> tuple[Square, ...]:
    return tuple(sorted(_image(square, turn, size) for square in men))


def _least(
    ours: frozenset[Square], theirs: frozenset[Square], size: int
) -> tuple[tuple[Square, ...], tuple[Square, ...]]:
    """The smallest image of a layout."""
    return min((_images(ours, turn, size), _images(theirs, turn, size)) for turn in range(8))


def _layout(ours: tuple[Square, ...], theirs: tuple[Square, ...], size: int) -> Layout:
    men = frozenset(ours), frozenset(theirs)
    keeping = {
        turn for turn in range(8) if tuple(_images(each, turn, size) for each in men) == (ours, theirs)
    }
    mirrors = keeping & {1, 2, 4, 7}
    kind = KINDS[0] if len(mirrors) > 1 else KINDS[1] if HALF_TURN in keeping else KINDS[2]
    rows = []
    for rank in range(size):
        row = ""
        for file in range(size):
            letter = "t" if (file, rank) in men[0] else "T" if (file, rank) in men[1] else ""
            letter = "K" if file == rank == size // 2 else letter
            row += letter or "."
        rows.append(re.sub(r"\.+", lambda run: str(len(run[0])), row))
    return Layout(kind, len(ours), len(theirs), "/".join(rows))


def value_of(table: Table, layout: Layout, side: str) -> str:
    """`a8`, `d6`: who wins, in how many plies; `a` and `d`: by repetition; `=`: a draw; `?`: open; `.`: over."""
    from hnefi.engine import games

    try:
        position = games.from_fen(table.variant, f"{layout.rows} {side} 0 1")
    except ValueError:
        return "."
    if position.outcome is not None:
        return "."
    value = table.value(position)
    if value.winner is None:
        return "?" if value.open else "="
    return f"{value.winner.letter}{'' if value.plies is None else value.plies}"


def main(argv: list[str]) -> int:
    """Solve and print; 0 when done."""
    parser = arguments.parser(
        "solve layouts",
        DESCRIPTION,
        [
            "mini-six --out layouts --jobs 2 --yes",
            "mini-six --out layouts --jobs 9 --backend loky --yes",
            "mini-four --out layouts --switch king_sides=4 --switch escape=edge corners=none --yes",
        ],
    )
    parser.add_argument(
        "variant", metavar="VARIANT", help="the rules and the numbers of men; also as --variant"
    )
    parser.takes_variant()
    arguments.add_out(parser, "DIR", "the folder of tables and values", required=True)
    parser.add_argument(
        "--switch",
        nargs="+",
        action="append",
        metavar="NAME=VALUE",
        help="a change of the rules, of one switch or of several together; repeatable ("
        + "; ".join(" ".join(words) for words in SWITCHES)
        + ")",
    )
    parser.add_argument(
        "--jobs",
        type=arguments.positive,
        default=1,
        metavar="J",
        help="threads, or rule sets at a time (1)",
    )
    arguments.add_backend(parser, "solve rule sets side by side in processes")
    parser.add_argument("--yes", action="store_true", help="begin without asking")
    parser.add_argument(
        "--list", action="store_true", help="also print every start with both mirror symmetries"
    )
    parser.add_argument("--json", action="store_true", help="all values as JSON")
    parser.add_argument("--quiet", action="store_true", help="nothing but the result and errors")
    arguments.add_plain(parser)
    arguments.add_variant_path(parser)
    given = parser.parse_args(argv)
    variant = arguments.find_tafl_variant(parser, given.variant, given.path)
    if variant.size % 2 == 0:
        parser.error(f"{variant.name}: expected a board with a square in the middle")
    cases = _cases(parser, variant, given.switch or SWITCHES)
    from .build import BuildError

    folder = Path(given.out)
    live = Live(sys.stderr, plain=given.plain)
    refusal = _refusal(given, cases, folder, live)
    if refusal:
        print(f"hnefi solve layouts: {refusal}", file=sys.stderr)
        return USAGE
    folder.mkdir(parents=True, exist_ok=True)
    starts = layouts(variant.size, variant.attackers, variant.defenders)

    def last_words() -> list[str]:
        kept = f"what was done is in {folder}" if any(folder.iterdir()) else "nothing was done yet"
        return [f"hnefi solve layouts: interrupted: {kept}; the same command continues"]

    with interrupts.caught(last_words) as caught:
        try:
            if given.backend:
                found = _side_by_side(cases, starts, folder, given, live)
            else:
                found = _in_turn(cases, starts, folder, given, live)
        except BuildError as error:
            print(f"hnefi solve layouts: {error}", file=sys.stderr)
            return USAGE
        except WorkerFailed as error:
            kept = f"what was done is in {folder}; the same command continues"
            print(f"hnefi solve layouts: {error} ({kept})", file=sys.stderr)
            return USAGE
        finally:
            live.close()
    if caught.ended:
        return INTERRUPTED
    if given.json:
        print(json.dumps(_as_json(variant, starts, found)))
    else:
        _print(starts, found, listed=given.list)
    return 0


def _in_turn(
    cases: Sequence[Case], starts: Sequence[Layout], folder: Path, given: argparse.Namespace, live: Live
) -> dict[str, list[list[str]]]:
    """The values of all rule sets, one after another, each solved in threads."""
    found = {}
    for number, case in enumerate(cases, 1):
        title = f"{number}/{len(cases)} {case.label}"

        def shown(state: str, title: str = title) -> None:
            live.show(partial(list, (f"{title}: {state}",)))

        begun = time.monotonic()
        fresh = not _file(folder, case, "taflbase").exists() and not _file(folder, case, "json").exists()
        found[case.label] = _values(case, starts, folder, given.jobs, _silent if given.quiet else shown)
        if fresh and not given.quiet:
            live.report([f"{title}: solved in {duration(time.monotonic() - begun)}"])
    return found


def _side_by_side(
    cases: Sequence[Case], starts: Sequence[Layout], folder: Path, given: argparse.Namespace, live: Live
) -> dict[str, list[list[str]]]:
    """The same in processes, each of which solves one rule set at a time."""
    place = folder.absolute()
    work = [partial(_values, case, starts, place, 1, _silent) for case in cases]
    found: dict[int, list[list[str]]] = {}
    for number, values in through_joblib(work, given.backend, given.jobs):
        found[number] = values
        if not given.quiet:
            live.report([f"{len(found)}/{len(cases)} {cases[number].label}: done"])
    return {case.label: found[number] for number, case in enumerate(cases)}


def _silent(_: str) -> None:
    """Discard progress."""


def _cases(
    parser: argparse.ArgumentParser, variant: Variant, switches: Sequence[Sequence[str]]
) -> list[Case]:
    from hnefi.engine.games.base_variant import VariantError
    from hnefi.engine.solving.readings import NotSolvable, reading

    cases = [Case("as it is", variant)]
    for words in switches:
        changes = {}
        for word in words:
            name, equals, text = word.partition("=")
            if not equals:
                parser.error(f"--switch {word}: expected NAME=VALUE, such as king_sides=4")
            changes[name] = text
        try:
            cases.append(Case(" ".join(words), variant.with_switches(**changes)))
        except VariantError as error:
            parser.error(f"--switch {' '.join(words)}: {error}")
    for case in cases:
        try:
            reading(case.variant)
        except NotSolvable as error:
            if switches is not SWITCHES or case is cases[0]:
                raise
            raise NotSolvable(f"{error}; {case.label} is tried unless --switch names other changes") from None
    twice = [stem for stem, count in Counter(case.stem for case in cases).items() if count > 1]
    if twice:
        parser.error(f"--switch: {twice[0]}: expected each change once")
    return cases


def _refusal(given: argparse.Namespace, cases: Sequence[Case], folder: Path, live: Live) -> str | None:
    """The reason not to start; otherwise announces the work."""
    from hnefi.engine.solving.index import Index
    from hnefi.engine.solving.readings import reading

    from .command import ASKED_FROM, cost

    seconds = 0.0
    mib = 0
    missing = [case.variant for case in cases if not _file(folder, case, "taflbase").exists()]
    for variant in missing:
        index = Index(reading(variant).played, variant.attackers, variant.defenders)
        need, time_ = cost(index, given.jobs)
        seconds += time_
        mib = max(mib, need)
    if not given.quiet:
        words = f"{len(cases)} rule sets"
        if missing:
            words += f"; the missing ones take {mib} MiB of memory and of disk at a time, and about {duration(seconds)}"
            words += f" ({given.jobs} of this machine's cores)"
        live.report([f"{words}." if missing else f"{words}, all of them solved."])
    if seconds >= ASKED_FROM and not given.yes:
        return "--yes: expected, because this takes long"
    return None


def _file(folder: Path, case: Case, kind: str) -> Path:
    return folder / f"{case.stem}.{kind}"


def _values(
    case: Case, starts: Sequence[Layout], folder: Path, threads: int, shown: Callable[[str], None]
) -> list[list[str]]:
    """The value of every start with the attackers and with the defenders to move, read from a file or computed and
    saved."""
    from hnefi.engine import durable
    from hnefi.engine.solving.table import Table

    from .build import BuildError, is_finished

    path = _file(folder, case, "json")
    head = {"rules": case.variant.hash, "starts": len(starts)}
    try:
        kept = json.loads(path.read_bytes())
        if {key: kept[key] for key in head} == head and len(kept["values"]) == len(starts):
            return list(kept["values"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        pass
    table = _file(folder, case, "taflbase")
    if not is_finished(table):
        _build(case, table, threads, shown)
    with Table(table) as opened:
        if opened.variant.hash != case.variant.hash:
            raise BuildError(
                f"{table}: has other rules: expected {case.variant.hash[:16]}…; remove it to make it again"
            )
        values = []
        for number, start in enumerate(starts):
            interrupts.check()
            values.append([value_of(opened, start, side) for side in "ad"])
            if number % 100 == 0:
                shown(f"{number} of {len(starts)} starts")
    durable.put(path, json.dumps({**head, "values": values}).encode())
    return values


def _build(case: Case, path: Path, threads: int, shown: Callable[[str], None]) -> None:
    from hnefi.engine.solving.readings import reading

    from .build import Builder, Clock, Progress

    clock = Clock()

    def on_progress(progress: Progress) -> None:
        left = clock.left(progress.share)
        eta = f", ETA {duration(left)}" if left is not None else ""
        shown(f"{100 * progress.share:.0f} %{eta}")

    men = case.variant.attackers, case.variant.defenders
    Builder(reading(case.variant), men, path, threads=threads, on_progress=on_progress).run()


def _print(starts: Sequence[Layout], found: dict[str, list[list[str]]], *, listed: bool) -> None:
    from .files import print_table

    first = next(iter(found.values()))
    for side, name in enumerate(("attackers", "defenders")):
        for kind in KINDS:
            which = [i for i, start in enumerate(starts) if start.kind == kind]
            print(f"{name} to move, {kind}: {len(which)} starts")
            rows: list[tuple[str, ...]] = [
                ("rules", "attackers win", "defenders win", "neither", "over", "flipped")
            ]
            for label, values in found.items():
                seen = Counter(values[i][side][0] for i in which)
                neither = seen["="] + seen["?"]
                flipped = sum(is_flipped(first[i][side], values[i][side]) for i in which)
                rows.append((label, *map(str, (seen["a"], seen["d"], neither, seen["."], flipped))))
            print_table(rows)
            print()
    if listed:
        rows = [("start", "to move", *found)]
        for i, start in enumerate(starts):
            if start.kind == KINDS[0]:
                rows += [
                    (start.rows, "ad"[side], *(values[i][side] for values in found.values()))
                    for side in range(2)
                ]
        print_table(rows)


def is_flipped(one: str, other: str) -> bool:
    """Whether the winner differs; False if either game is already over at the start."""
    return one[0] != other[0] and "." not in (one[0], other[0])


def _as_json(variant: Variant, starts: Sequence[Layout], found: dict[str, list[list[str]]]) -> dict[str, Any]:
    return {
        "variant": variant.name,
        "rules": variant.hash,
        "starts": [
            {
                "rows": start.rows,
                "kind": start.kind,
                "values": {label: dict(zip("ad", values[i], strict=True)) for label, values in found.items()},
            }
            for i, start in enumerate(starts)
        ],
    }
