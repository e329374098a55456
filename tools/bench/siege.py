"""`hnefi bench siege`: the endgame against a bare king, played out from positions of the engine's own games.

The suite is a table, `siege.tsv`, with one position per line: id, variant, source, ply and FEN between tabs. Its
positions come from games that were stuck: the king had at most `COMPANIONS` men left, nobody had won `STUCK` plies
later, and neither a search of `CHECKED` nodes nor the next move ended the game. By default repetition is a draw in all
games here, whatever the variant says: attackers who just wait until the defenders have to repeat have achieved nothing.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hnefi.engine.regular import open_regular
from hnefi.engine.wording import shorten

from ..common.arguments import add_out, find_tafl_variant, let_interrupt_end_us, natural, parser, positive
from ..common.live import Live, Pace
from ..common.statistics import wilson

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.tafl.variant import Variant
    from hnefi.engine.search.searcher import Searcher

SHIPPED: Final = Path(__file__).with_name("siege.tsv")
HEAD: Final = ("id", "variant", "source", "ply", "fen")
MOST_BYTES: Final = 1 << 20
NODES: Final = 50_000
PLIES: Final = 100
MANY: Final = 16
"""Attackers that should be enough to win: twelve for the corners, four for the king."""
FEW: Final = 12
COMPANIONS: Final = 2
STUCK: Final = 20
CHECKED: Final = 20_000
LONGEST: Final = 160
ATTACKING: Final = (400, 6000)
DEFENDING: Final = (100, 800)
"""Nodes per move in the games that the suite is taken from; defenders get fewer, so that they lose their men."""


class SiegeError(ValueError):
    """A suite that cannot be read; the message names the file, the line and what was expected."""


@dataclass(frozen=True, slots=True)
class Siege:
    """One position of the suite."""

    id: str
    variant: str
    source: str
    ply: int
    fen: str

    @property
    def attackers(self) -> int:
        """The number of attackers."""
        return self.fen.split()[0].count("t")


@dataclass(frozen=True, slots=True)
class Played:
    """How a game from a position ended for the attackers: `won`, `drawn`, `lost`; `unfinished` after the last ply."""

    id: str
    attackers: int
    result: str
    reason: str
    plies: int


def read(path: Path) -> list[Siege]:
    """The positions of a suite; SiegeError at the first line that cannot be read."""
    try:
        with open_regular(path) as stream:
            data = stream.read(MOST_BYTES + 1)
        text = data.decode("ascii")
    except OSError as error:
        raise SiegeError(f"{path}: {error.strerror or error}: expected a readable file") from None
    except UnicodeDecodeError as error:
        raise SiegeError(f"{path}: byte {error.start}: expected ASCII") from None
    if len(data) > MOST_BYTES:
        raise SiegeError(f"{path}: expected at most {MOST_BYTES} bytes")
    found: list[Siege] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        words = line.split("\t")
        if len(words) != len(HEAD):
            raise SiegeError(f"{path}:{number}: {shorten(line)}: expected {len(HEAD)} words between tabs")
        if not (words[3].isdecimal() and len(words[3]) <= 4):
            raise SiegeError(f"{path}:{number}: ply {shorten(words[3])}: expected a whole number")
        if any(siege.id == words[0] for siege in found):
            raise SiegeError(
                f"{path}:{number}: id {shorten(words[0])}: expected a different one for each line"
            )
        found.append(Siege(words[0], words[1], words[2], int(words[3]), words[4]))
    if not found:
        raise SiegeError(f"{path}: expected at least one position")
    return found


def write(path: Path, sieges: Sequence[Siege]) -> None:
    """Write a suite, with a line that names the columns."""
    rows = [[str(value) for value in asdict(siege).values()] for siege in sieges]
    path.write_text("".join("\t".join(row) + "\n" for row in (["# " + HEAD[0], *HEAD[1:]], *rows)), "ascii")


def besieged(variant: Variant) -> Variant:
    """The variant with repetition as a draw, as sieges are played."""
    return variant.with_switches(repetition="draw")


def _search(searcher: Searcher, position: Position, nodes: int) -> tuple[int, bool]:
    """The move that a search finds, and whether the search sees a forced end of the game."""
    from hnefi.engine.search.types import Info, Limits

    infos: list[Info] = []
    searcher.begin()
    move = searcher.search(position, Limits(nodes=nodes), infos.append).move
    assert move is not None
    return move, infos[-1].score.mate is not None


def find(variant: Variant, seed: int) -> Iterator[Siege]:
    """Stuck sieges from games of the engine against itself, at most one per game; the caller assigns ids."""
    from hnefi.engine.games.tafl.position import Position as TaflPosition
    from hnefi.engine.openings import generate
    from hnefi.engine.search.searcher import Searcher
    from hnefi.engine.search.types import Settings

    rules = variant.with_switches(repetition="ignore")
    searcher = Searcher(Settings(hash_mib=4))
    number = 0
    while True:
        number += 1
        draw = random.Random(f"siege {variant.hash} {seed} {number}")
        nodes = (draw.randint(*ATTACKING), draw.randint(*DEFENDING))
        position = next(generate(rules, 1, seed * 1_000_003 + number), None)
        searcher.clear()
        bare = 0
        while position is not None and position.outcome is None and position.ply < LONGEST:
            letters = [letter for _, letter in position.pieces()]
            if letters.count("t") < FEW:
                break
            bare = bare + 1 if letters.count("T") <= COMPANIONS else 0
            if bare > STUCK and position.side == 0:
                fen = position.fen()
                fresh = TaflPosition.from_fen(besieged(variant), fen)
                searcher.clear()
                if fresh.outcome is None and not _search(searcher, fresh, CHECKED)[1]:
                    yield Siege("", variant.name, f"seed {seed} game {number}", position.ply, fen)
                break
            position = position.play(_search(searcher, position, nodes[position.side])[0])


def _unfit(siege: Siege, variant: Variant) -> str | None:
    """Why a position cannot be played out; None if it can."""
    from hnefi.engine.games.tafl.fen import SetupError
    from hnefi.engine.games.tafl.position import Position as TaflPosition

    try:
        over = TaflPosition.from_fen(variant, siege.fen).outcome
    except (SetupError, ValueError) as error:
        return str(error)
    return None if over is None else f"{shorten(siege.fen)}: the game is over: expected an unfinished one"


def play(
    siege: Siege, variant: Variant, players: tuple[Searcher, Searcher], nodes: int, plies: int
) -> Played:
    """Play one game from a position; both sides search `nodes` nodes per move."""
    from hnefi.engine.games.tafl.position import Position as TaflPosition

    position: Position = TaflPosition.from_fen(variant, siege.fen)
    for player in players:
        player.clear()
    begun = position.ply
    while (outcome := position.outcome) is None and position.ply - begun < plies:
        position = position.play(_search(players[position.side], position, nodes)[0])
    done = position.ply - begun
    if outcome is None:
        return Played(siege.id, siege.attackers, "unfinished", "plies", done)
    result = "drawn" if outcome.winner is None else "lost" if outcome.winner else "won"
    return Played(siege.id, siege.attackers, result, str(outcome.reason), done)


def open_goals(siege: Siege, variant: Variant) -> int:
    """How many goals (corners) the king could reach from the start if the attackers stood still and his own men were
    out of the way."""
    from hnefi.engine.evaluators import tafl
    from hnefi.engine.games.tafl.position import Position as TaflPosition

    params, state = tafl.parameters(variant)[0], TaflPosition.from_fen(variant, siege.fen).new_record()[0]
    tafl.value(params, state)
    return int(params["features"]["goals"])


def table(games: Sequence[Played], goals: Mapping[str, int]) -> list[str]:
    """The results as text, by the number of attackers and by whether the king could reach a goal at the start; `goals`
    maps each position's id to its `open_goals`.
    """
    lines = []
    for name, group in (
        (f"{MANY} attackers and more", many := [game for game in games if game.attackers >= MANY]),
        ("  goals shut off", [game for game in many if goals[game.id] == 0]),
        ("  goals open", [game for game in many if goals[game.id] > 0]),
        (f"{FEW} to {MANY - 1} attackers", few := [game for game in games if game.attackers < MANY]),
        ("  goals shut off", [game for game in few if goals[game.id] == 0]),
        ("  goals open", [game for game in few if goals[game.id] > 0]),
    ):
        counts = Counter(game.result for game in group)
        interval = wilson(counts["won"], len(group))
        if interval is None:
            continue
        reasons = Counter(game.reason for game in group if game.result == "won")
        how = ", ".join(f"{reason.replace('_', ' ')} {count}" for reason, count in reasons.most_common())
        low, high = (100 * bound for bound in interval)
        lines.append(
            f"{name:22} {len(group):4}  won {counts['won']:3} = {100 * counts['won'] / len(group):.1f} % "
            f"({low:.1f} to {high:.1f})  lost {counts['lost']}, drawn {counts['drawn']}, "
            f"unfinished {counts['unfinished']}"
            f"{'  won by ' if how else ''}{how}"
        )
    return lines


def main(argv: list[str]) -> int:
    """Play the suite, or make one."""
    if argv[:1] == ["find"]:
        return _find(argv[1:])
    options = parser(
        "bench siege",
        "Plays out the endgame against a bare king, from positions of the engine's own games in which the attackers "
        "were stuck. Counts how many games they win within N plies, with Wilson's 95 % interval; games "
        "without a result by then are unfinished. Positions in which the king could reach a corner if the attackers "
        "stood still (goals open), and those in which he could not (goals shut off), are also counted apart. "
        "Repetition is a draw in every variant, unless told otherwise. With fixed nodes the games are the same on "
        "every run.\n\n"
        "  hnefi bench siege find   make another suite, from games of the engine against itself",
        [
            "",
            "--nodes 20000 --defenders default-2026.1",
            "--few --out games.jsonl",
            "--own-repetition --variant copenhagen --attackers net-copenhagen-2",
            "find --help",
        ],
    )
    options.add_argument(
        "--suite", metavar="FILE", type=Path, default=SHIPPED, help="a suite (the shipped one)"
    )
    options.add_argument(
        "--nodes", metavar="N", type=positive, default=NODES, help=f"nodes for each move ({NODES})"
    )
    options.add_argument(
        "--plies", metavar="N", type=positive, default=PLIES, help=f"plies of each game ({PLIES})"
    )
    options.add_argument(
        "--attackers", metavar="NAME", default="default", help="the attackers' evaluator (default)"
    )
    options.add_argument(
        "--defenders", metavar="NAME", default="default", help="the defenders' evaluator (default)"
    )
    options.add_argument(
        "--own-repetition",
        action="store_true",
        help="use the variant's own rule for repetition, instead of a draw",
    )
    options.add_argument("--variant", metavar="V", help="only positions of this variant, as in the suite")
    which = options.add_mutually_exclusive_group()
    which.add_argument("--many", action="store_true", help=f"only positions with {MANY} attackers and more")
    which.add_argument("--few", action="store_true", help=f"only positions with fewer than {MANY}")
    options.add_argument("--json", action="store_true", help="every game as one JSON document")
    add_out(
        options, "FILE", "write each game there as it ends; the same command continues from there", type=Path
    )
    arguments = options.parse_args(argv)
    let_interrupt_end_us()
    try:
        sieges = read(arguments.suite)
    except SiegeError as error:
        options.error(str(error))
    if arguments.variant is not None:
        known = sorted({siege.variant for siege in sieges})
        if arguments.variant not in known:
            options.error(
                f"--variant {shorten(arguments.variant)}: expected one of the suite: {', '.join(known)}"
            )
        sieges = [siege for siege in sieges if siege.variant == arguments.variant]
    if arguments.many or arguments.few:
        sieges = [siege for siege in sieges if (siege.attackers >= MANY) == arguments.many]
    variants = {name: find_tafl_variant(options, name) for name in {siege.variant for siege in sieges}}
    if not arguments.own_repetition:
        variants = {name: besieged(variant) for name, variant in variants.items()}

    for siege in sieges:
        said = _unfit(siege, variants[siege.variant])
        if said is not None:
            options.error(f"{arguments.suite}: {siege.id}: {said}")

    from hnefi.engine import evaluators
    from hnefi.engine.search.searcher import Searcher
    from hnefi.engine.search.types import Settings

    names = (arguments.attackers, arguments.defenders)
    for word, name in zip(("--attackers", "--defenders"), names, strict=True):
        for variant in variants.values():
            said = evaluators.misfit(name, variant)
            if said is not None:
                options.error(f"{word}: {said}")
    players = (
        Searcher(Settings(hash_mib=16, evaluator=names[0])),
        Searcher(Settings(hash_mib=16, evaluator=names[1])),
    )
    head: dict[str, object] = {
        "suite": arguments.suite.name,
        "nodes": arguments.nodes,
        "plies": arguments.plies,
        "players": names,
    }
    if arguments.own_repetition:
        head["repetition"] = "own"
    played = {} if arguments.out is None else _known(options.error, arguments.out, json.dumps(head))
    games: list[Played] = []
    live, pace = Live(sys.stderr), Pace(len(sieges))
    for siege in sieges:
        game = played.get(siege.id)
        if game is None:
            game = play(siege, variants[siege.variant], players, arguments.nodes, arguments.plies)
            if arguments.out is not None:
                with arguments.out.open("a") as stream:
                    stream.write(json.dumps(asdict(game)) + "\n")
        games.append(game)
        won = sum(game.result == "won" for game in games)
        pace.add(timed=siege.id not in played)
        live.step(lambda: f"{won} of {pace.done} won, {pace.total} in all{pace.eta()}")  # noqa: B023 - shown at once
    live.close()
    goals = {siege.id: open_goals(siege, variants[siege.variant]) for siege in sieges}
    if arguments.json:
        listed = [{**asdict(game), "open_goals": goals[game.id]} for game in games]
        print(json.dumps({**head, "games": listed}, indent=2))
    else:
        print("\n".join(table(games, goals)))
    return 0


def _known(error: Callable[[str], object], path: Path, head: str) -> dict[str, Played]:
    """The games of an earlier run from a file that begins with `head`; a new file is created with that line."""
    try:
        if not path.exists():
            path.write_text(head + "\n")
            return {}
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as reason:
        error(f"--out {path}: {reason}: expected a file for the games")
        raise
    if lines[:1] != [head]:
        error(
            f"--out {path}: expected a new file, or one of the same suite, nodes, plies, repetition and evaluators"
        )
    found = {}
    for line in lines[1:]:
        try:
            game = Played(**json.loads(line))
        except (ValueError, TypeError):
            break  # this line was being written when the run was killed
        # What hnefi 0.2.0 wrote of games without a result.
        found[game.id] = replace(game, result="unfinished") if game.result == "open" else game
    if len(found) < len(lines) - 1:
        path.write_text("\n".join([head, *(json.dumps(asdict(game)) for game in found.values())]) + "\n")
    return found


def _find(argv: list[str]) -> int:
    options = parser(
        "bench siege find",
        f"Takes positions from games of the engine against itself in which the attackers failed for {STUCK} plies to "
        f"finish off a king who has at most {COMPANIONS} men left, equally many from each variant.",
        ["copenhagen fetlar --count 100 --few 30 --seed 1 --out siege.tsv"],
    )
    options.add_argument(
        "variants", nargs="+", metavar="VARIANT", help="variants to play, also as --variant V,V"
    )
    options.takes_variant()
    options.add_argument(
        "--count",
        metavar="N",
        type=positive,
        default=100,
        help=f"positions with {MANY} attackers and more (100)",
    )
    options.add_argument("--few", metavar="N", type=natural, default=30, help="positions with fewer (30)")
    options.add_argument("--seed", metavar="N", type=natural, default=1, help="seed of the games (1)")
    add_out(options, "FILE", "the suite is written here", required=True, type=Path)
    arguments = options.parse_args(argv)
    variants = [find_tafl_variant(options, word) for word in arguments.variants]
    let_interrupt_end_us()
    live = Live(sys.stderr)
    kept: list[Siege] = []
    for index, variant in enumerate(variants):
        # The first variants get one more if the numbers cannot be divided evenly.
        share = [
            (number + len(variants) - 1 - index) // len(variants)
            for number in (arguments.few, arguments.count)
        ]
        found: tuple[list[Siege], list[Siege]] = ([], [])
        for siege in find(variant, arguments.seed):
            many = siege.attackers >= MANY
            if len(found[many]) < share[many]:
                found[many].append(siege)
            said = f"{variant.name}: {len(found[1])} with many, {len(found[0])} with few, {siege.source}"
            live.step(lambda said=said: said)  # type: ignore[misc]
            if len(found[0]) >= share[0] and len(found[1]) >= share[1]:
                break
        kept += found[0] + found[1]
    kept.sort(key=lambda siege: siege.attackers < MANY)
    numbered = [
        Siege(f"siege-{i:03}", s.variant, s.source, s.ply, s.fen) for i, s in enumerate(kept, start=1)
    ]
    live.close()
    try:
        write(arguments.out, numbered)
    except OSError as error:
        options.error(f"--out {arguments.out}: {error.strerror or error}")
    print(f"{len(numbered)} positions in {arguments.out}")
    return 0
