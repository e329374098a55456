"""`hnefi ladder`: a scale of fixed players, ratings on it, and how it is made."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.protocol.flags import Help, Parser
from hnefi.protocol.hosts.exit_codes import INTERRUPTED, STORAGE, USAGE, code_of

from ..common import arguments, interrupts
from ..common.live import Counter, Live
from .ladder import CURRENT, Ladder, LadderError, LimitedPlayer, load, parse_player, playable

if TYPE_CHECKING:
    from hnefi.engine.games.tafl.variant import Variant

    from .fitting import Fit
    from .pool import Pool

SKETCH = 200
"""Resamples for a rating in an intermediate message."""
COMMANDS = {
    "show": "show the published scale, or one player's profile",
    "run": "play the rungs against each other",
    "place": "play a player against the rungs: WHO is a player, PLAYER:NODES, PLAYER+EVALUATOR:NODES, level-N or elo-N",
    "calibrate": "play the engine, limited to a rating (UCI_Elo), against the rungs",
    "people": "find out which rungs and levels play as people do, in positions from people's games",
    "imitate": "fit a player to the moves of people's games",
    "report": "write tables and pictures of some runs, or of the published games",
    "agree": "compare two runs of different seeds",
    "publish": "publish the ratings and games of some runs",
    "games": "write the published games as records",
    "check": "check that rungs, rules and openings are still the frozen ones",
}
EXAMPLES = (
    "show",
    "show level-3",
    "place mine.toml",
    "place default:1000 default+simple:400 level-4 --every 2 --near 10",
    "calibrate --labels 7 --out calibrated",
    "run --seed 1 --out ladder-1",
    "run --seed 2 --out ladder-2",
    "agree ladder-1 ladder-2",
    "report ladder-1 placed --out report",
    "report --html ladder.html",
    "people games.csv --variant brandubh --positions 600 --out people",
    "imitate games.csv --variant brandubh --positions 600 --out imitate",
    "publish ladder-1 placed --out published",
    "games --player uct-100 --variant brandubh --out games.tafl",
    "check",
)


def main(argv: list[str]) -> int:
    """Run a subcommand. Returns 0 when done, 1 if interrupted or if `check` found a difference, 2 for wrong input, 4 if
    something could not be written."""
    options = _parser()
    if not argv:
        print(options.format_help(), end="")
        return 0
    given = options.parse_args(argv)
    try:
        action: Callable[[Any], int] = given.action
        with interrupts.caught(lambda: ["hnefi ladder: interrupted: the same command continues"]) as caught:
            return action(given)
    except LadderError as error:
        print(f"hnefi ladder: error: {error}", file=sys.stderr)
        return code_of(error)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - the reader is gone
        return 0
    except Exception as error:
        from ..arena.options import ConfigError
        from ..arena.store import StorageFailed, StoreError

        if not isinstance(error, (ConfigError, StoreError)):
            raise
        print(f"hnefi ladder: error: {error}", file=sys.stderr)
        return STORAGE if isinstance(error, StorageFailed) else USAGE
    return INTERRUPTED if caught.ended else 0


def _parser() -> argparse.ArgumentParser:
    options = arguments.parser(
        "ladder", "Fixed players as a scale of strength, and the ratings of all others on it.", EXAMPLES
    )
    commands = options.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, action: Callable[[Any], int]) -> Parser:
        text, own = COMMANDS[name], (example for example in EXAMPLES if example.split()[0] == name)
        made = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=arguments.shown("ladder", own),
            formatter_class=Help,
            allow_abbrev=False,
        )
        made.set_defaults(action=action)
        made.add_argument(
            "--ladder", default=CURRENT, metavar="L", help=f"a ladder's name, or its .toml file ({CURRENT})"
        )
        return made

    def playing(name: str, action: Callable[[Any], int]) -> Parser:
        made = command(name, action)
        made.add_argument(
            "--seed", type=arguments.positive, default=1, metavar="S", help="the run's seed (1)"
        )
        arguments.add_out(made, "DIR", "where the games go; an existing run is continued")
        made.add_argument(
            "--jobs", type=arguments.positive, metavar="J", help="games at a time (as many as cores)"
        )
        arguments.add_backend(made, "play in other processes, not in threads")
        made.add_argument(
            "--force",
            action="store_true",
            help="continue although the rungs differ from the frozen ones; the results record this",
        )
        arguments.add_plain(made)
        return made

    show = command("show", _show)
    show.add_argument("name", nargs="?", metavar="WHO", help="one player's profile")
    show.add_argument("--json", action="store_true", help="the published ratings as JSON")
    arguments.add_plain(show)
    playing("run", _run)
    for made in (playing("place", _place), playing("calibrate", _calibrate)):
        made.add_argument(
            "--every", type=arguments.positive, default=2, metavar="N", help="pairs against each rung (2)"
        )
        made.add_argument(
            "--near",
            type=arguments.natural,
            default=10,
            metavar="N",
            help="further pairs against the nearest four rungs (10)",
        )
        made.add_argument(
            "--variant", dest="variants", metavar="V,V", help="only these of the ladder's variants"
        )
        made.renamed("--variants", "--variant")
        made.add_argument(
            "--on",
            action="append",
            metavar="DIR",
            help="a run of the rungs to measure against (the published games)",
        )
    commands.choices["place"].add_argument(
        "who", nargs="+", metavar="WHO", help="as above; shipped: all shipped players and levels"
    )
    commands.choices["calibrate"].add_argument(
        "--labels",
        type=arguments.positive,
        default=5,
        metavar="N",
        help="ratings to try: the middles of N equal parts of the range (5)",
    )
    _add_people(command("people", _people))
    _add_imitate(command("imitate", _imitate))
    report = command("report", _report)
    report.add_argument(
        "runs", nargs="*", metavar="DIR", help="runs, or folders with runs (the published games)"
    )
    arguments.add_out(report, "DIR", "write report.md, ratings.json and pictures there")
    arguments.add_html(report)
    agree = command("agree", _agree)
    agree.add_argument("runs", nargs=2, metavar="DIR", help="two runs of the rungs")
    publish = command("publish", _publish)
    publish.add_argument(
        "runs",
        nargs="*",
        metavar="DIR",
        help="runs, or folders with runs (the published games, fitted again)",
    )
    arguments.add_out(publish, "DIR", "write the two files there (the ladder's own folder)", dest="to")
    games = command("games", _games)
    games.add_argument("--player", metavar="WHO", default="", help="only games of this player")
    games.add_argument("--variant", metavar="V", default="", help="only games of this variant")
    arguments.add_out(games, "FILE", "write them there, as .tafl (standard output)", dest="to")
    for made in (publish, games):
        made.renamed("--to", "--out")
    check = command("check", _check)
    check.add_argument("--freeze", action="store_true", help="freeze the ladder as it is now")
    return options


def _add_people(made: Parser) -> None:
    """The arguments of `people`."""
    _add_recorded(made, "people")
    made.add_argument(
        "--players",
        metavar="A,B,...",
        help="who is asked, each in the form of place's WHO (the rungs and levels 1 to 9)",
    )
    made.add_argument("--judge", metavar="WHO", help="the player who evaluates the moves (the top rung)")
    arguments.add_png(made)


def _add_imitate(made: Parser) -> None:
    """The arguments of `imitate`."""
    _add_recorded(made, "imitate")
    made.add_argument(
        "--horizons",
        metavar="N,N,...",
        help="nodes a move of the players to try (100,300,1000,3000,10000)",
    )
    made.add_argument(
        "--choices",
        metavar="N,N,...",
        help="numbers of best moves that the players to try choose from (6,12,24)",
    )


def _add_recorded(made: Parser, folder: str) -> None:
    """Arguments for recorded games, the positions to draw from them, and the folder for the answers."""
    made.add_argument("games", metavar="GAMES", help="recorded games: .csv or .jsonl")
    made.add_argument("--variant", metavar="V", required=True, help="the rules they were played by")
    arguments.add_variant_path(made)
    made.add_argument(
        "--positions",
        type=arguments.positive,
        default=500,
        metavar="N",
        help="positions, drawn from all moves of all games (500); the same command with a larger N adds more",
    )
    made.add_argument("--seed", type=arguments.positive, default=1, metavar="S", help="seed of the draw (1)")
    arguments.add_out(made, "DIR", f"the folder ({folder}); an existing one is continued", default=folder)
    made.add_argument("--jobs", type=arguments.positive, metavar="J", help="processes (as many as cores)")
    arguments.add_backend(made)
    arguments.add_plain(made)


# Playing


def _jobs(given: Any) -> int:
    from ..common.workers import cores

    jobs: int = given.jobs or cores()
    return jobs


def _expect_frozen(ladder: Ladder, force: bool) -> None:
    """LadderError unless the rungs are the frozen ones; a change without effect is only reported."""
    from . import frozen

    unlike, harmless = frozen.differences(frozen.read(ladder), frozen.measure(ladder))
    for text in (*harmless, *(unlike if force else ())):
        print(f"hnefi ladder: note: {text}", file=sys.stderr)
    if unlike and not force:
        listed = "\n".join(f"  {text}" for text in unlike)
        raise LadderError(
            f"{ladder.name} differs from the frozen one, so ratings could not be compared (--force plays"
            f" anyway):\n{listed}"
        )


def _run(given: Any) -> int:
    from ..arena.screen import LineScreen
    from . import frozen, playing

    ladder = load(given.ladder)
    _expect_frozen(ladder, given.force)
    folder = Path(given.out or f"{ladder.name}-seed-{given.seed}")
    config = playing.rungs(ladder, given.seed, _jobs(given), given.backend)
    screen = LineScreen(Live(sys.stdout, plain=given.plain), f"{ladder.name} seed {given.seed}")
    code = playing.play(config, frozen.openings(ladder), folder, screen, force=given.force)
    if code == 0:
        print(f"hnefi ladder report {folder} shows the results")
    return code


def _calibrate(given: Any) -> int:
    from hnefi.engine.search.elo_table import HIGHEST, LOWEST

    width = (HIGHEST - LOWEST) / given.labels
    given.who = [f"elo-{round(LOWEST + width * (part + 0.5))}" for part in range(given.labels)]
    return _place(given)


def shipped() -> list[str]:
    """All shipped players but the engine at full strength, and its levels."""
    from hnefi import players
    from hnefi.engine.search.elo_table import MEASURED

    named = [name for name in players.names() if players.load(name).algorithm != "alphabeta"]
    return [*named, *(f"level-{level}" for level, _ in MEASURED)]


def _place(given: Any) -> int:
    ladder = load(given.ladder)
    everybody = [word for word in shipped() if word not in ladder.names]
    words = [word for one in given.who for word in (everybody if one == "shipped" else [one])]
    found = [parse_player(word, ladder) for word in dict.fromkeys(words)]
    for one in found:
        if one in ladder.rungs:
            raise LadderError(f"{one.name}: a rung of {ladder.name}: expected a player that is not a rung")
    wanted = [word.strip() for word in given.variants.split(",")] if given.variants else list(ladder.variants)
    unknown = [word for word in wanted if word not in ladder.variants]
    if unknown:
        raise LadderError(f"--variant {unknown[0]!r:.60}: expected some of {', '.join(ladder.variants)}")
    chosen = [tuple(name for name in playable(one, ladder) if name in wanted) for one in found]
    for one, variants in zip(found, chosen, strict=True):
        if not variants:
            raise LadderError(f"{one.name}: --variant {given.variants}: plays none of them")
    if given.every + given.near > ladder.pairs:
        raise LadderError(
            f"--every {given.every} and --near {given.near}: expected at most {ladder.pairs} pairs together:"
            " a seed has no more openings"
        )
    _expect_frozen(ladder, given.force)
    pool = _pool(ladder, given.on or ())

    live = Live(sys.stdout, plain=given.plain)
    out = Path(given.out or f"{ladder.name}-placed")
    for number, (one, variants) in enumerate(zip(found, chosen, strict=True), 1):
        title = one.name if len(found) == 1 else f"{one.name} ({number} of {len(found)})"
        code = _place_one(ladder, one, variants, pool, given, out, live, title)
        if code:
            print("the same command continues", file=sys.stderr)
            return code
    return 0


def _place_one(
    ladder: Ladder,
    one: LimitedPlayer,
    variants: Sequence[str],
    pool: Pool,
    given: Any,
    out: Path,
    live: Any,
    title: str,
) -> int:
    """Play against every rung, then against the nearest ones; reports the rating from all games."""
    from ..arena.screen import LineScreen
    from . import fitting, frozen, playing
    from .pool import of_folders

    lists = frozen.openings(ladder)
    place = out / _folder_name(one.name)

    def play(part: str, against: Sequence[LimitedPlayer], pairs: int, after: int = 0) -> int:
        config = playing.gauntlet(
            ladder, one, against, variants, pairs, given.seed, _jobs(given), after, given.backend
        )
        screen = LineScreen(live, f"{title}, {part}")
        return playing.play(config, lists, place / part, screen, force=given.force)

    code = play("every", ladder.rungs, given.every)
    if code:
        return code
    fit = fitting.fit(
        pool.joined(of_folders(ladder, [place / "every"])), ladder.model, bootstrap=0, each=False
    )
    ratings = {name: rating.value for name, rating in fit.whole.ratings.items()}
    if given.near:
        code = play("near", playing.near(ladder, ratings, one.name), given.near, given.every)
        if code:
            return code
    whole = pool.joined(of_folders(ladder, [place]))
    rating = fitting.fit(whole, ladder.model, bootstrap=SKETCH, each=False).whole.ratings[one.name]
    error = f" ± {rating.error:.0f}" if rating.error else ""
    live.report([f"{one.name}: {rating.value:.0f}{error} on {ladder.name} ({', '.join(variants)})"])
    return 0


def _folder_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_.+" else "_" for letter in name)


def _pool(ladder: Ladder, places: Sequence[str]) -> Pool:
    """The games of some runs, or the published ones."""
    from . import published
    from .pool import of_folders, read

    if places:
        found = of_folders(ladder, [Path(place) for place in places])
        if not found.games:
            raise LadderError(f"{places[0]}: expected runs with games")
        return found
    path = published.pool_file(ladder.name, ladder.file.parent)
    if not path.is_file():
        raise LadderError(
            f"{path}: not found: nothing is published yet (hnefi ladder run, then --on its folder)"
        )
    pool = read(path)
    for rung in ladder.rungs:
        if pool.players.get(rung.name, rung) != rung:
            raise LadderError(f"{path}: {rung.name} is {pool.players[rung.name]}: expected the rung {rung}")
    return pool


# People


def _people(given: Any) -> int:
    """Ask the missing questions, then write the report."""
    from hnefi.engine.search.elo_table import MEASURED

    from ..common.workers import WorkerFailed
    from . import people, people_report

    ladder = load(given.ladder)
    words = [*ladder.names, *(f"level-{level}" for level, _ in MEASURED)]
    if given.players:
        words = [word.strip() for word in given.players.split(",") if word.strip()]
    doubled = next((word for word in words if words.count(word) > 1), None)
    if doubled is not None or not words:
        raise LadderError(f"--players: {doubled or given.players!r:.60}: expected different players")
    variant = _tafl_variant(given.variant, given.path)
    file = Path(given.games)
    rules = people.played_by(file, variant)
    found = people.recorded(file, variant)
    judge = parse_player(given.judge or ladder.names[-1], ladder)
    players = tuple(parse_player(word, ladder) for word in words)
    for one in (*players, judge):
        people.expect_fit(one, rules)
    plan = people.Plan(people.digest(file), variant.name, rules.hash, players, judge, given.seed)
    folder = Path(given.out)
    people.prepare(folder, plan.as_json())

    live = Live(sys.stdout, plain=given.plain)
    progress = Counter(live, "positions")
    try:
        known = people.work(
            folder, plan, rules, found, given.positions, progress, _jobs(given), given.backend
        )
    except WorkerFailed as error:
        raise LadderError(str(error)) from None
    except OSError as error:
        raise LadderError(
            f"{error.filename or folder}: {error.strerror}: expected a folder to write"
        ) from error
    live.close()
    print(f"report {people_report.write(folder, ladder, plan, found, known, png=given.png)}")
    return 0


def _imitate(given: Any) -> int:
    from . import imitate

    return imitate.run(given, _tafl_variant(given.variant, given.path), _jobs(given))


def _tafl_variant(word: str, path: str | None) -> Variant:
    """The variant of that name or file; LadderError otherwise."""
    from hnefi.engine.games import named
    from hnefi.engine.games.base_variant import VariantError
    from hnefi.engine.games.tafl.variant import Variant

    try:
        found = named(word, path)
    except VariantError as error:
        raise LadderError(str(error)) from None
    if not isinstance(found, Variant):
        raise LadderError(f"{word}: expected a tafl variant, not {found.game}")
    return found


# Output


def _fit(ladder: Ladder, pool: Pool) -> Fit:
    from . import fitting

    return fitting.fit(pool, ladder.model)


def _report(given: Any) -> int:
    from . import report

    ladder = load(given.ladder)
    pool = _pool(ladder, given.runs)
    fit = _fit(ladder, pool)
    if given.html:
        from hnefi.engine import durable

        from . import frozen

        try:
            durable.put(Path(given.html).absolute(), report.page(ladder, pool, fit, frozen.openings(ladder)))
        except OSError as error:
            raise LadderError(f"{given.html}: {error.strerror}: expected a file to write") from error
        print(given.html)
    if given.out:
        print(report.write(Path(given.out), ladder, pool, fit))
    elif not given.html:
        print("\n".join(report.markdown(ladder, pool, fit)))
    return 0


def _agree(given: Any) -> int:
    from . import report

    ladder = load(given.ladder)
    one, two = (_fit(ladder, _pool(ladder, [place])) for place in given.runs)
    print("\n".join(report.agreement(one, two)))
    return 0


def _publish(given: Any) -> int:
    from . import pool as pools
    from . import published

    ladder = load(given.ladder)
    found = _pool(ladder, given.runs)
    unfinished = [run.name for run in found.runs if not run.complete]
    if unfinished:
        raise LadderError(f"{unfinished[0]}: not finished: expected complete runs")
    folder = Path(given.to) if given.to else ladder.file.parent
    folder.mkdir(parents=True, exist_ok=True)
    path = published.pool_file(ladder.name, folder)
    pools.write(replace(found, ladder=ladder.name), path)
    document = published.document(ladder, found, _fit(ladder, found))
    written = published.ratings_file(ladder.name, folder)
    written.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{path}: {len(found.games):,} games, {path.stat().st_size:,} bytes")
    print(f"{written}: {len(document['players'])} players")
    return 0


def _games(given: Any) -> int:
    from hnefi.engine.records import tafl_text

    from . import frozen
    from .pool import records

    ladder = load(given.ladder)
    pool = _pool(ladder, ())
    for word, known, kind in (
        (given.player, list(pool.players), "players"),
        (given.variant, list(ladder.variants), "variants"),
    ):
        if word and word not in known:
            raise LadderError(f"{word[:60]!r}: expected one of the {kind} {', '.join(known)}")
    found = records(pool, frozen.openings(ladder), given.player, given.variant)
    if not given.to:
        for record in found:
            sys.stdout.write(tafl_text.write(record))
        return 0
    count = 0
    try:
        with Path(given.to).open("w", encoding="utf-8") as stream:
            for record in found:
                stream.write(tafl_text.write(record))
                count += 1
    except OSError as error:
        raise LadderError(f"{given.to}: {error.strerror or error}: expected a file to write") from None
    print(f"{given.to}: {count:,} games")
    return 0


def _check(given: Any) -> int:
    from . import frozen

    ladder = load(given.ladder)
    if given.freeze:
        print(frozen.freeze(ladder))
        return 0
    unlike, harmless = frozen.differences(frozen.read(ladder), frozen.measure(ladder))
    for text in (*unlike, *harmless):
        print(text)
    if unlike:
        print(f"{ladder.name} differs from the frozen one")
        return 1
    print(f"{ladder.name}: {len(ladder.rungs)} rungs on {', '.join(ladder.variants)}, as frozen")
    return 0


def _show(given: Any) -> int:
    from hnefi.protocol.hosts.text_table import encodable

    from . import published
    from .showing import profile, scale

    ladder = load(given.ladder)
    document = published.ratings(ladder.name, ladder.file.parent)
    if document is None:
        raise LadderError(f"{ladder.name}: nothing is published yet")
    if given.name is not None and given.name not in document["players"]:
        raise LadderError(f"{given.name[:60]!r}: expected one of {', '.join(document['players'])}")
    if given.json:
        shown = document if given.name is None else document["players"][given.name]
        print(json.dumps(shown, indent=2, ensure_ascii=False))
        return 0
    lines = (
        scale(document) if given.name is None else [given.name, "", *profile(document["players"][given.name])]
    )
    for line in lines:
        print(encodable(line, "ascii" if given.plain else sys.stdout.encoding))
    return 0
