"""Where games begin: random walks, a file, an engine's own positions, or the start.

A run holds one list for every variant. All openings of a list are distinct up to the symmetries of the board that keep
the game, none is over, and the list for more openings begins with the list for fewer.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.engine.regular import open_regular, read_regular
from hnefi.engine.search.types import Limits
from hnefi.engine.wording import shorten
from hnefi.protocol import orphans
from hnefi.protocol.flags import Help, Parser

from . import option_reader, resolve, schedule
from .options import Config, ConfigError, parse_plies
from .values import EngineSpec, Opening, find_variant

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.base_variant import AnyVariant

FILE_LIMIT = 64 << 20
LINE_LIMIT = 64 << 10
POLL = 0.02
LOOK = Limits(depth=2, nodes=100_000)
"""How far a judge of openings without limits of its own looks: enough to see a win of either side in two plies."""


Tell = Callable[[int, int], None]
"""Told how many openings are made, and how many there will be."""


def prepare(
    config: Config, needed: int, specs: Sequence[EngineSpec] = (), tell: Tell | None = None
) -> dict[str, tuple[Opening, ...]]:
    """The openings of every variant, at least `needed` of each; ConfigError says how many there are if they are too
    few. `tell` is told about random ones."""
    wanted = max(needed, config["openings.count"])
    lists = {}
    for name in schedule.variants(config):
        lists[name] = tuple(_source(config, name, wanted, specs, tell))
        if len(lists[name]) < needed:
            raise _too_few(config, name, len(lists[name]), needed)
    return lists


def _too_few(config: Config, name: str, found: int, needed: int) -> ConfigError:
    wider = " or openings.max_eval" if config["openings.source"] == "random" else ""
    return ConfigError(
        f"openings: {config['openings.source']} has {found} distinct openings of {shorten(name)}: expected {needed}"
        f" (fewer pairs, a larger openings.repeat{wider}, or more openings)"
    )


FORESEEN = 500
"""Random openings that a dry run generates, over all variants; of more the number is shown while they are made."""


@dataclass(frozen=True, slots=True)
class Foreseen(Sequence[Opening]):
    """A list of openings of which only the first are known, for display."""

    known: Sequence[Opening]
    size: int

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> Any:
        if index < len(self.known):
            return self.known[index]
        return Opening(None, (f"(number {index + 1} of them)",))


def foresee(
    config: Config, needed: int, specs: Sequence[EngineSpec]
) -> tuple[Mapping[str, Sequence[Opening]], str]:
    """The openings of every variant as far as they are soon known without an engine, and why others are not."""
    names = schedule.variants(config)
    reason = _unknown(config, config.names)
    if reason:
        return dict.fromkeys(names, Foreseen((), needed)), reason
    some = FORESEEN // len(names)
    if config["openings.source"] != "random" or needed <= some:
        return prepare(config, needed, specs), ""
    begun = {name: tuple(_random(config, name, some)) for name in names}
    for name, found in begun.items():
        if len(found) < some:
            raise _too_few(config, name, len(found), needed)
    reason = f"the first {some} are shown; whether there are enough is not known yet"
    return {name: Foreseen(found, needed) for name, found in begun.items()}, reason


def _unknown(config: Config, names: Sequence[str]) -> str:
    """Why the openings are unknown until an engine runs; empty if they are known."""
    table = config.tables["openings"]
    if table["source"] == "genfens":
        asked = names[table["engine"] - 1]
        return (
            f"openings are those that {asked} will propose: how many there are, and which, is not known yet"
        )
    if table["source"] == "random" and table["eval_by"] != "default":
        return f"openings are those that {table['eval_by']} will find balanced: which, is not known yet"
    return ""


def _source(
    config: Config, name: str, wanted: int, specs: Sequence[EngineSpec], tell: Tell | None
) -> Iterable[Opening]:
    variant = find_variant(name)
    match config["openings.source"]:
        case "random":
            return _random(config, name, wanted, tell)
        case "file":
            lines = read_file(Path(config["openings.file"]), variant, config["openings.cut"])
            return _ordered(config, list(_distinct(variant, lines)))
        case "genfens":
            proposed = asyncio.run(ask(specs[config["openings.engine"] - 1], name, wanted, config))
            return _distinct(variant, proposed)
        case _:
            return [Opening()] * wanted


def _random(config: Config, name: str, wanted: int, tell: Tell | None = None) -> Iterator[Opening]:
    from hnefi.engine.openings import generate
    from hnefi.engine.squares import move_name

    from ..common.live import Counter, Live

    table, output = config.tables["openings"], config.tables["output"]
    plies = parse_plies(table["plies"])
    with ExitStack() as stack:
        judge, said = None, ""
        if table["eval_by"] != "default":
            judge = stack.enter_context(player_judge(table["eval_by"], name))
            said = f", judged by {table['eval_by']}"
        if said or (tell is None and wanted > FORESEEN):
            live = Live(sys.stderr, plain=output["plain"], quiet=output["quiet"])
            stack.callback(live.close)
            tell = Counter(live, f"openings of {name}{said}:")
        variant = find_variant(name)
        found = generate(variant, wanted, table["seed"], plies, table["max_eval"], judge)
        for number, position in enumerate(found, 1):
            if tell:
                tell(number, wanted)
            yield Opening(None, tuple(map(move_name, position.moves)))


@contextmanager
def player_judge(player: str, name: str) -> Iterator[Callable[[Position], int | None]]:
    """Evaluates positions of a variant by a player other than our default, with the limits in its file, otherwise with
    `LOOK`: centipawns for the attackers, None where one side wins soon. Its process ends with the context; ConfigError
    if it does not say."""
    from hnefi import players
    from hnefi.engine.squares import move_name
    from hnefi.protocol.client import Engine, EngineError, Timeouts, own_command

    from .engine_slot import set_variant

    what = f"openings.eval_by {shorten(player)}"
    found = players.load(player)
    if misfit := found.misfit(find_variant(name)):
        raise ConfigError(f"{what}: {misfit}: expected a player of {name}")
    limits = LOOK if found.limits == Limits() else found.limits

    async def ask(position: Position) -> int | None:
        engine.position(f"fen {position.start_fen}", list(map(move_name, position.moves)))
        info = (await (await engine.go(limits))).info
        if info is None or info.score is None:
            raise ConfigError(f"{what}: gives no score: expected a player that gives scores")
        cp = info.score.cp
        return cp if cp is None or position.side == 0 else -cp

    with asyncio.Runner() as runner:
        try:
            engine = runner.run(Engine.start(own_command("--player", player), "uti", timeouts=Timeouts()))
            try:
                runner.run(set_variant(engine, name))
                yield lambda position: runner.run(ask(position))
            finally:
                runner.run(engine.quit())
        except EngineError as error:
            raise ConfigError(f"{what}: {error}") from None


def _ordered(config: Config, found: list[Opening]) -> list[Opening]:
    if config["openings.order"] == "shuffled":
        random.Random(f"order {config['openings.seed']}").shuffle(found)
    return found


Line = tuple[str, Opening]
"""Where an opening was read, and its text."""


def read_file(path: Path, variant: AnyVariant, cut: int) -> Iterator[Line]:
    """The openings of a file, one per line: a FEN, `FEN moves M M`, `startpos moves M M` or moves; `#` and `;` begin
    comments. A file of records gives the first `cut` plies of every game. ConfigError names the file and line."""
    if path.suffix.lower() in RECORDS:
        yield from _read_games(path, variant, cut)
        return
    try:
        if path.stat().st_size > FILE_LIMIT:
            raise ConfigError(f"{path}: {path.stat().st_size} bytes: expected at most {FILE_LIMIT}")
        lines = read_regular(path).decode().splitlines()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}: expected a readable file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start}: expected UTF-8") from None
    for number, line in enumerate(lines, 1):
        # A FEN has neither character.
        text = line.partition("#")[0].partition(";")[0].strip()
        if len(text) > LINE_LIMIT:
            raise ConfigError(f"{path}:{number}: expected at most {LINE_LIMIT} characters")
        if text:
            yield f"{path}:{number}", parse(text)


def parse(text: str) -> Opening:
    """One line of an opening file, parsed without applying any rules."""
    start, moves = text, ""
    words = text.split()
    if "moves" in words:
        place = words.index("moves")
        start, moves = " ".join(words[:place]), " ".join(words[place + 1 :])
    elif "/" not in words[0] and words[0] != "startpos":
        start, moves = "startpos", text
    start = start.removeprefix("fen ").strip()
    return Opening(None if start in ("", "startpos") else start, tuple(moves.split()))


def _read_games(path: Path, variant: AnyVariant, cut: int) -> Iterator[Line]:
    """The beginnings of the games of this variant that went on after `cut` plies; those of others are passed over."""
    from hnefi.engine.games.base_variant import VariantError
    from hnefi.engine.records.formats import Reading, format_of, read
    from hnefi.engine.records.rule_sets import finder, variant_of
    from hnefi.engine.records.text import Losses, RecordError
    from hnefi.engine.squares import move_name

    find = finder()
    # Only beginnings are read: how a site ended games by repetition or limits does not matter.
    how = Reading(find, variant, adjudicate=True)
    try:
        with open_regular(path) as stream:
            for game in read(stream, str(path), format_of(path), how, Losses()):
                record = game.record
                try:
                    other = variant_of(record, find).hash != variant.hash
                except VariantError as error:
                    raise ConfigError(f"{path}:{game.line}: {error}") from None
                if not other and len(record.plies) > cut:
                    moves = tuple(move_name(ply.move) for ply in record.plies[:cut])
                    yield f"{path}:{game.line}", Opening(record.start, moves)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}: expected a readable file") from None
    except RecordError as error:
        raise ConfigError(str(error)) from None


RECORDS = (".tafl", ".otg", ".csv", ".jsonl")
"""File endings of recorded games."""


async def ask(spec: EngineSpec, name: str, wanted: int, config: Config) -> list[Line]:
    """The positions that an engine proposes; ConfigError after `ready` seconds without one."""
    from hnefi.protocol.client import Engine, EngineError, Timeouts
    from hnefi.protocol.format import genfens_line
    from hnefi.protocol.messages import Genfens

    from .engine_slot import set_variant

    prefix = b"info string genfens "
    proposed: list[str] = []

    def watch(_stamp: float, arrow: str, line: bytes) -> None:
        if arrow == "<" and line.startswith(prefix) and len(proposed) < wanted:
            proposed.append(line.removeprefix(prefix).decode("utf-8", "replace"))

    try:
        async with await Engine.start(
            spec.command,
            spec.proto,
            cwd=spec.cwd,
            env=dict(spec.env),
            timeouts=Timeouts(start=spec.start, ready=spec.ready),
            on_traffic=watch,
        ) as engine:
            await set_variant(engine, name)
            await engine.is_ready()
            plies = parse_plies(config["openings.plies"])
            await engine.send(genfens_line(Genfens(wanted, config["openings.seed"], plies)))
            known, since = 0, time.monotonic()
            while len(proposed) < wanted and engine.failure is None and time.monotonic() - since < spec.ready:
                await asyncio.sleep(POLL)
                if len(proposed) > known:
                    known, since = len(proposed), time.monotonic()
    except EngineError as error:
        raise ConfigError(f"openings.source genfens: {spec.name}: {error}") from None
    if not proposed:
        raise ConfigError(
            f"openings.source genfens: {spec.name} proposed nothing within {spec.ready:g} s: expected"
            " info string genfens FEN"
        )
    return [(f"genfens of {spec.name}", parse(text)) for text in proposed]


def _distinct(variant: AnyVariant, lines: Iterable[Line]) -> Iterator[Opening]:
    """The openings without those that are images of earlier ones; ConfigError for one that cannot be played."""
    seen: set[tuple[object, ...]] = set()
    for where, opening in lines:
        try:
            reached = opening.position(variant)
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from None
        if reached.outcome is not None:
            raise ConfigError(
                f"{where}: the game is over: {reached.outcome.text}: expected a position to play on"
            )
        canon = reached.canonical()
        if canon not in seen:
            seen.add(canon)
            yield opening


# Kept in the run's folder


def generator_version(config: Config) -> int:
    """Increased whenever the same seed would give different openings."""
    if config["openings.source"] != "random":
        return 0
    from hnefi.engine.openings import VERSION

    return VERSION


def list_hash(found: Sequence[Opening]) -> str:
    """SHA-256 over a list of openings, one line for each."""
    text = "".join(f"{opening.text}\n" for opening in found)
    return hashlib.sha256(text.encode()).hexdigest()


def to_lines(lists: dict[str, tuple[Opening, ...]]) -> str:
    """Lists of openings as JSON lines."""
    return "".join(
        json.dumps([variant, opening.start, list(opening.moves)], separators=(",", ":")) + "\n"
        for variant, found in lists.items()
        for opening in found
    )


def from_lines(text: str) -> dict[str, tuple[Opening, ...]]:
    """Parse what `to_lines` wrote; ValueError if that fails."""
    lists: dict[str, list[Opening]] = {}
    for line in text.splitlines():
        variant, start, moves = json.loads(line)
        lists.setdefault(variant, []).append(Opening(start, tuple(moves)))
    return {variant: tuple(found) for variant, found in lists.items()}


# The subcommand


def main(argv: list[str]) -> int:
    """`hnefi arena openings`: print openings, one per line, as an opening file."""
    made = Parser(
        prog="hnefi arena openings",
        description="Print openings as a file that --openings-file reads.",
        epilog="examples:\n  hnefi arena openings --variant brandubh --openings-count 100 > brandubh.txt\n"
        "  hnefi arena openings --openings-source file --openings-file games.csv --openings-cut 6",
        formatter_class=Help,
        allow_abbrev=False,
    )
    option_reader.add_flags(made, ("openings",))
    made.add_argument("--variant", dest="run:variants", metavar="V", help="one variant (default: copenhagen)")
    made.renamed("--variants", "--variant")
    made.add_argument("--seed", dest="run:seed", metavar="N", help="seed (default: 1)")
    made.add_argument("--player", metavar="PLAYER", default="default", help="who is asked for genfens")
    parsed, unknown = made.parse_known_args(argv)
    try:
        if unknown:
            raise ConfigError(option_reader.unknown_flag(unknown[0], made))
        given = option_reader.flags_of(parsed, Path.cwd())
        config = resolve.resolve({"engine": [{"player": parsed.player}] * 2}, given)
        if len(config["run.variants"]) > 1:
            raise ConfigError(f"--variant {shorten(','.join(config['run.variants']))}: expected one")
        count = config["openings.count"] or 100
        with orphans.guarded():
            lists = prepare(
                config, 0 if config["openings.source"] == "file" else count, resolve.specs(config)
            )
    except ConfigError as error:
        print(f"hnefi arena openings: {error}", file=sys.stderr)
        return 2
    for name, found in lists.items():
        chosen = found[: config["openings.count"] or None]
        print(f"# {len(chosen)} openings of {name}, seed {config['openings.seed']}, {list_hash(chosen)}")
        for opening in chosen:
            print(opening.text)
    return 0
