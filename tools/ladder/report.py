"""The report of a ladder: Markdown tables, SVG pictures, and the same as JSON, all computed from the games."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hnefi.protocol.hosts.text_table import markdown_table

from ..common.html_games import Games
from ..common.html_page import Page, chart, from_markdown
from ..common.rating import Fitted, Table
from . import charts, fitting, published
from .fitting import Cell, Fit
from .ladder import Ladder
from .pool import Pool

if TYPE_CHECKING:
    from ..arena.values import Opening

NEXT = (50.0, 400.0)
"""The range of Elo by which neighbours should differ: nearer rungs are redundant, farther ones leave a gap."""
LABEL = 60.0
"""The tolerated error of a label in Elo."""
SHOWN = 12
"""Maximum lines of a list of oddities."""
GAMES = 500
"""Maximum games of a page, which are chosen evenly."""
PICTURED = {
    "ratings": "The scale",
    "profiles": "Profiles",
    "nodes": "Strength and nodes",
    "levels": "Levels",
}
"""The heading of a page for a picture, by its name up to the first dash."""
FEW = 8
"""The fewest games of two players that say anything by themselves."""


def write(folder: Path, ladder: Ladder, pool: Pool, fit: Fit) -> Path:
    """Write everything into `folder`; returns the Markdown file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, drawing in drawings(ladder, pool, fit).items():
        (folder / f"{name}.svg").write_text(drawing, encoding="utf-8")
    text = json.dumps(published.document(ladder, pool, fit), indent=1, ensure_ascii=False) + "\n"
    (folder / "ratings.json").write_text(text, encoding="utf-8")
    path = folder / "report.md"
    path.write_text("\n".join(markdown(ladder, pool, fit)) + "\n", encoding="utf-8")
    return path


def markdown(ladder: Ladder, pool: Pool, fit: Fit) -> Iterator[str]:
    """The report's lines."""
    yield f"# {ladder.name}"
    yield ""
    yield from facts(ladder, pool)
    parts = (
        ("The scale", scale(ladder, fit)),
        ("Neighbouring rungs", neighbours(ladder, fit)),
        ("Players placed on the ladder", placed(ladder, fit)),
        ("Games by player", tournament(fit)),
        ("The advantage of a side", sides(fit)),
        ("Profiles", profile_tables(ladder, fit)),
        ("Strength and nodes", growth(pool, fit)),
        ("Levels", levels(pool, fit)),
        ("Labels", labels(pool, fit)),
        ("What the ratings do not explain", oddities(fit)),
    )
    for heading, lines in parts:
        told = list(lines)
        if told:
            yield from ("", f"## {heading}", "", *told)


def facts(ladder: Ladder, pool: Pool) -> Iterator[str]:
    """The numbers of games, players and runs."""
    yield (
        f"{len(pool.games):,} games of {len(pool.players)} players in {len(pool.runs)} runs on"
        f" {', '.join(ladder.variants)}; {ladder.anchor[0]} = {ladder.anchor[1]:g}."
    )
    unfinished = [run.name for run in pool.runs if not run.complete]
    if unfinished:
        yield f"Not finished: {', '.join(unfinished)}."
    for run in pool.runs:
        for difference in run.forced:
            yield f"{run.name} was continued despite a difference: {difference}."
    repeated = sum(run.repeated for run in pool.runs)
    if repeated:
        yield f"Pairs that repeat an earlier one, and are not counted: {repeated}."
    main = [run for run in pool.runs if run.name.startswith(ladder.name)]
    yield ""
    yield from markdown_table(
        [("run", "seed", "result digest"), *((r.name, r.seed, f"`{r.digest[:16]}`") for r in main)]
    )


def scale(ladder: Ladder, fit: Fit) -> Iterator[str]:
    """All players by their rating, rungs in bold."""
    yield from _rated(ladder, fit, list(fit.whole.ratings), bold=True)
    yield ""
    yield "Rating ± half of the 95 % interval (bootstrap over pairs); rungs in bold."


def _rated(ladder: Ladder, fit: Fit, names: Sequence[str], *, bold: bool) -> Iterator[str]:
    rows = []
    for name in names:
        shown = f"**{name}**" if bold and name in ladder.names else name
        cells = [_plus_minus(fitted.ratings.get(name)) for fitted in fit.alone.values()]
        record = fit.tally.record(engine=name)
        rows.append((shown, _plus_minus(fit.whole.ratings[name]), *cells, f"{record.games:,}"))
    yield from markdown_table([("player", "all", *fit.alone, "games"), *rows])


def neighbours(ladder: Ladder, fit: Fit) -> Iterator[str]:
    """Neighbouring rungs: the difference of their ratings, and their own games."""
    found = fitting.cells(fit)
    rows = []
    for lower, upper in zip(ladder.names, ladder.names[1:], strict=False):
        one, two = fit.whole.ratings.get(lower), fit.whole.ratings.get(upper)
        cell = found.get((upper, lower))
        if one is None or two is None or cell is None:
            continue
        gap = two.value - one.value
        word = "" if NEXT[0] <= gap <= NEXT[1] else f"not within {NEXT[0]:g} to {NEXT[1]:g}"
        error = math.hypot(one.error or 0.0, two.error or 0.0)
        rows.append((lower, upper, f"{gap:+.0f} ± {error:.0f}", _score(cell), f"{cell.record.games:,}", word))
    if rows:
        yield from markdown_table([("rung", "next", "difference", "score of the next", "games", ""), *rows])
        yield ""
        yield "The interval of a difference treats the two errors as independent, which makes it too wide."


def placed(ladder: Ladder, fit: Fit) -> Iterator[str]:
    """The ratings of players that are not rungs."""
    names = [name for name in fit.whole.ratings if name not in ladder.names]
    if not names:
        return
    rungs = [(name, fit.whole.ratings[name].value) for name in ladder.names if name in fit.whole.ratings]
    rows = []
    for name in names:
        rating = fit.whole.ratings[name]
        below = max((rung for rung in rungs if rung[1] <= rating.value), key=lambda r: r[1], default=None)
        above = min((rung for rung in rungs if rung[1] > rating.value), key=lambda r: r[1], default=None)
        where = f"above {below[0]}" if below else "below all"
        if above and below:
            where = f"between {below[0]} and {above[0]}"
        variants = [variant for variant, alone in fit.alone.items() if name in alone.ratings]
        plays = "all" if len(variants) == len(fit.alone) else ", ".join(variants)
        rows.append((name, _plus_minus(rating), where, plays, f"{fit.tally.record(engine=name).games:,}"))
    yield from markdown_table([("player", "rating", "where", "on", "games"), *rows])


def tournament(fit: Fit) -> Iterator[str]:
    """All players' games: results, score, by side, and the reasons for their end."""
    rows = []
    for name in fit.whole.ratings:
        record = fit.tally.record(engine=name)
        attacking, defending = fit.tally.record(0, name), fit.tally.record(1, name)
        rows.append(
            (
                name, f"{record.games:,}", f"{record.wins:,}", f"{record.draws:,}", f"{record.losses:,}",
                _percent(record.score), _percent(attacking.score), _percent(defending.score),
            )
        )  # fmt: skip
    yield from markdown_table(
        [("player", "games", "won", "drawn", "lost", "score", "attacking", "defending"), *rows]
    )


def sides(fit: Fit) -> Iterator[str]:
    """Every variant: the attackers' score, the fitted advantage, lengths and ends."""
    rows = []
    for variant, tally in fit.tallies.items():
        record = tally.record(0)
        interval = record.interval
        shown = _percent(record.score)
        if interval is not None:
            shown += f" ({100 * interval[0]:.1f} to {100 * interval[1]:.1f})"
        ends: Counter[tuple[str, str]] = Counter()
        for (_, winner, reason), count in tally.reasons.items():
            ends[winner, reason] += count
        common = ", ".join(
            f"{winner} {reason.replace('_', ' ')} {100 * count / record.games:.0f} %"
            for (winner, reason), count in ends.most_common(4)
        )
        plies = tally.plies[variant] / max(1, record.games)
        rows.append(
            (variant, f"{record.games:,}", shown, _percent(record.draws / record.games),
             _plus_minus(fit.whole.sides.get(variant), signed=True),
             _plus_minus(fit.whole.slopes.get(variant), signed=True), f"{plies:.0f}", common)
        )  # fmt: skip
    head = (
        "variant",
        "games",
        "attackers' score (95 %)",
        "drawn",
        "advantage",
        "per 400",
        "plies",
        "ends most often by",
    )
    yield from markdown_table([head, *rows])
    yield ""
    strength = (
        f" at the mean rating of {fit.whole.centre:.0f}; *per 400*: how much it grows if both sides have 400 points"
        " more"
        if fit.whole.slopes
        else ""
    )
    yield (
        f"*Advantage*: that of the attackers in Elo, fitted with all ratings{strength}. Plies do not count the"
        " opening."
    )


def profile_tables(ladder: Ladder, fit: Fit) -> Iterator[str]:
    """The score of all players against every rung, in percent: all variants, then each."""
    for variant in (None, *fit.alone):
        yield f"### {variant or 'All variants'}"
        yield ""
        fitted = fit.whole if variant is None else fit.alone[variant]
        yield from _profiles(fitting.cells(fit, variant), list(fitted.ratings), ladder.names)
        yield ""
    yield "Score in percent with Wilson's 95 % interval, over games; games of a pair share an opening."


def _profiles(
    found: Mapping[tuple[str, str], Cell], names: Sequence[str], rungs: Sequence[str]
) -> Iterator[str]:
    rows = []
    for name in names:
        cells = ["·" if name == rung else _score(found.get((name, rung))) for rung in rungs]
        rows.append((name, *cells))
    yield from markdown_table([("", *rungs), *rows])


def by_nodes(pool: Pool, fit: Fit) -> dict[str, list[tuple[int, str]]]:
    """Nodes and names of players that differ only in their nodes, by kind."""
    kinds: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for name in fit.whole.ratings:
        one = pool.players[name]
        options = {key: value for key, value in one.options.items() if key != "Hash"}
        if one.nodes is None or one.depth is not None or set(options) - {"Evaluator", "Features"}:
            continue
        family = {"uct-100": "uct", "uct-1k": "uct", "uct-10k": "uct"}.get(one.player, one.player)
        # The fixed set of weights and features of a rung does not make it another kind.
        evaluator = options.get("Evaluator", "")
        kind = f"{family}+{evaluator}" if evaluator and not evaluator.startswith(f"{one.player}-") else family
        bound = (f"{key}={value}" for key, value in sorted(options.items()))
        kinds.setdefault((kind, *bound), []).append((one.nodes, name))
    found: dict[str, list[tuple[int, str]]] = {}
    for (kind, *_), members in sorted(kinds.items(), key=lambda item: -len(item[1])):
        if len({nodes for nodes, _ in members}) > 1:
            found.setdefault(kind, sorted(members))
    return found


def growth(pool: Pool, fit: Fit) -> Iterator[str]:
    """How the rating grows with the nodes per move."""
    for kind, members in by_nodes(pool, fit).items():
        rows = []
        before: tuple[int, float] | None = None
        for nodes, name in members:
            rating = fit.whole.ratings[name]
            gain = ""
            if before is not None and nodes > before[0]:
                gain = f"{(rating.value - before[1]) / math.log2(nodes / before[0]):+.0f}"
            alone = [_plus_minus(one.ratings.get(name)) for one in fit.alone.values()]
            rows.append((name, f"{nodes:,}", _plus_minus(rating), gain, *alone))
            before = (nodes, rating.value)
        yield from markdown_table([(kind, "nodes", "all", "Elo per doubling", *fit.alone), *rows])
        yield ""


def levels(pool: Pool, fit: Fit) -> Iterator[str]:
    """The levels of the engine, and the table for its labels."""
    found = level_ratings(pool, fit.whole)
    if not found:
        return
    rows = []
    for level, rating in found.items():
        alone = [_plus_minus(one.ratings.get(f"level-{level}")) for one in fit.alone.values()]
        rows.append((str(level), _plus_minus(rating), *alone))
    yield from markdown_table([("level", "all", *fit.alone), *rows])
    yield ""
    numbers = fitting.rising([(rating.value, rating.error or 1.0) for rating in found.values()])
    pairs = ", ".join(f"({level}, {number})" for level, number in zip(found, numbers, strict=True))
    yield f"For `engine/search/elo_table.py`, made to rise: `MEASURED = ({pairs})`"


def level_ratings(pool: Pool, fitted: Table) -> dict[int, Fitted]:
    """The ratings of the levels that were measured, in ascending order."""
    found = {
        int(one.options["SkillLevel"]): fitted.ratings[name]
        for name, one in pool.players.items()
        if set(one.options) == {"SkillLevel"} and one.player == "default" and name in fitted.ratings
    }
    return dict(sorted(found.items()))


def labels(pool: Pool, fit: Fit) -> Iterator[str]:
    """The results of engines that were limited to a rating."""
    rows = []
    for name, one in pool.players.items():
        label = one.options.get("UCI_Elo")
        if label is None or name not in fit.whole.ratings:
            continue
        rating = fit.whole.ratings[name]
        off = rating.value - int(label)
        word = "yes" if abs(off) <= LABEL else "no"
        rows.append((int(label), (label, _plus_minus(rating), f"{off:+.0f}", word)))
    if rows:
        lines = [line for _, line in sorted(rows)]
        yield from markdown_table([("UCI_Elo", "measured", "measured - label", f"within {LABEL:g}"), *lines])


def oddities(fit: Fit) -> Iterator[str]:
    """How well the model fits, the largest residuals, and cycles."""
    found = fitting.cells(fit)
    free = len(fit.whole.ratings) - 1 + len(fit.whole.sides) + len(fit.whole.slopes)
    square, degrees = fitting.misfit(found, free)
    ratio = square / degrees
    # Half the width of the interval that contains 95 of 100 such ratios.
    slack = 1.96 * math.sqrt(2 / degrees)
    words = "One rating for each player explains the results as well as chance allows."
    if ratio > 1 + slack:
        words = (
            "One rating for each player does not explain everything; who plays whom, or in which variant, matters"
            " too, so look at the profiles."
        )
    yield (
        f"Chi-square of all meetings {square:.0f} with {degrees} degrees of freedom, {ratio:.2f} each (1 ±"
        f" {slack:.2f} would be chance). {words}"
    )
    for variant in fit.alone:
        alone = fitting.cells(fit, variant)
        square, degrees = fitting.misfit(alone, len(fit.alone[variant].ratings))
        yield f"By the ratings of {variant} alone: {square:.0f} with {degrees}, {square / degrees:.2f} each."
    large = sorted(
        (
            cell
            for (one, two), cell in found.items()
            if abs(cell.residual) >= fitting.LARGE and cell.record.games >= FEW and one < two
        ),
        key=lambda cell: (-abs(cell.residual), cell.player),
    )
    yield ""
    yield (
        f"Meetings of {FEW} games or more that are at least {fitting.LARGE:g} standard errors from what the ratings"
        f" expect: {len(large)}."
    )
    if large:
        yield ""
        rows = [
            _odd(cell if cell.residual > 0 else found[cell.opponent, cell.player]) for cell in large[:SHOWN]
        ]
        yield from markdown_table(
            [("better than expected", "against", "score", "expected", "games", "off by"), *rows]
        )
    yield ""
    yield from _one_sided(fit)
    yield ""
    yield from _cycles("All variants", found)
    for variant in fit.alone:
        yield ""
        yield from _cycles(variant, fitting.cells(fit, variant))


def _one_sided(fit: Fit) -> Iterator[str]:
    """Meetings by variant and attacker that deviate strongly from the ratings."""
    found = {meeting: cell for meeting, cell in fitting.directed(fit).items() if cell.record.games >= FEW}
    large = sorted(
        ((meeting, cell) for meeting, cell in found.items() if abs(cell.residual) >= fitting.LARGE),
        key=lambda item: (-abs(item[1].residual), item[0]),
    )
    yield (
        f"The same by variant and attacking player, from the attackers' point of view: {len(large)} of {len(found):,}."
    )
    if large:
        yield ""
        rows = [
            (
                variant, attackers, defenders, _percent(cell.record.score), _percent(cell.expected),
                f"{cell.record.games:,}", f"{cell.residual:+.1f}",
            )
            for (variant, attackers, defenders), cell in large[:SHOWN]
        ]  # fmt: skip
        head = ("variant", "attackers", "defenders", "score", "expected", "games", "off by")
        yield from markdown_table([head, *rows])


def _odd(cell: Cell) -> tuple[str, ...]:
    return (
        cell.player, cell.opponent, _percent(cell.record.score), _percent(cell.expected), f"{cell.record.games:,}",
        f"{cell.residual:.1f}",
    )  # fmt: skip


def _cycles(where: str, found: Mapping[tuple[str, str], Cell]) -> Iterator[str]:
    cycles = fitting.cycles(found)
    looked = fitting.significant(found)
    yield (
        f"{where}: {len(cycles)} cycles (A beats B beats C beats A, each significantly) among {looked} triples"
        " with three significant results."
    )
    for cycle in cycles[:SHOWN]:
        one, two, three = cycle.players
        first, second, third = (_percent(score) for score in cycle.scores)
        yield f"- {one} beats {two} ({first}), {two} beats {three} ({second}), {three} beats {one} ({third})"


def agreement(one: Fit, two: Fit) -> Iterator[str]:
    """Two runs side by side: differences of their ratings, and what chance allows."""
    for variant in (None, *one.alone):
        if variant is not None and variant not in two.alone:
            continue
        first = one.whole if variant is None else one.alone[variant]
        second = two.whole if variant is None else two.alone[variant]
        found = fitting.differences(first, second)
        outside = sum(difference.outside for difference in found)
        yield f"### {variant or 'All variants'}"
        yield ""
        rows = [
            (
                difference.name, _plus_minus(difference.one), _plus_minus(difference.two),
                f"{difference.value:+.0f} ± {difference.error:.0f}", "outside" if difference.outside else "",
            )
            for difference in found
        ]  # fmt: skip
        yield from markdown_table([("player", "first", "second", "difference", ""), *rows])
        yield ""
        yield f"{outside} of {len(found)} differences lie outside their joint 95 % interval."
        yield ""


def page(ladder: Ladder, pool: Pool, fit: Fit, openings: Mapping[str, Sequence[Opening]]) -> bytes:
    """The report as one HTML file, with pictures in their sections, and some games from all parts of the pool."""
    from hnefi.engine import games as doors

    from .pool import records

    drawn = drawings(ladder, pool, fit)
    page = Page(ladder.name)
    for heading, blocks in from_markdown(list(markdown(ladder, pool, fit))[1:], {}):
        for name, drawing in drawn.items():
            if PICTURED.get(name.partition("-")[0]) == heading:
                blocks.insert(0, chart(drawing, shaded=name == "profiles"))
        page.section(heading, *blocks)
    every = math.ceil(len(pool.games) / GAMES) or 1
    chosen = replace(pool, games=pool.games[::every])
    games = Games()
    for game, record in zip(chosen.games, records(chosen, openings), strict=True):
        word = f"{pool.runs[game.run].name} {game.pair}.{game.game}"
        games.add(word, record, doors.find(game.variant))
    games.left_out += len(pool.games) - len(chosen.games)
    games.into(page)
    return page.render()


def drawings(ladder: Ladder, pool: Pool, fit: Fit) -> dict[str, str]:
    """The text of all pictures as SVG files, by name."""
    said = f"{ladder.name}: {len(pool.games):,} games"
    names = list(fit.whole.ratings)
    made = {
        "ratings": charts.ratings(
            fit,
            names,
            ladder.names,
            (
                f"{said}; ratings with 95 % intervals",
                f"{ladder.anchor[0]} = {ladder.anchor[1]:g}; rungs are full marks",
            ),
        ),
        "profiles": charts.profiles(
            fitting.cells(fit),
            names,
            ladder.names,
            (f"{said}; score in percent of each row", "against each rung, all variants"),
        ),
    }
    kinds = by_nodes(pool, fit)
    for kind, members in kinds.items():
        curves: dict[str, charts.Growth] = {}
        for label, one in (("all variants", fit.whole), *fit.alone.items()):
            points = [
                (float(nodes), one.ratings[name].value, one.ratings[name].error or 0.0)
                for nodes, name in members
                if name in one.ratings
            ]
            if points:
                curves[label] = points
        name = "nodes" if kind == "default" else f"nodes-{kind}"
        title = (f"{said}; rating of {kind} by nodes a move", "with 95 % intervals")
        made[name] = charts.growth(curves, title, "nodes a move", True)
    rated: dict[str, charts.Growth] = {
        label: [
            (float(level), rating.value, rating.error or 0.0)
            for level, rating in level_ratings(pool, one).items()
        ]
        for label, one in (("all variants", fit.whole), *fit.alone.items())
    }
    rated = {name: points for name, points in rated.items() if len(points) > 1}
    if rated:
        made["levels"] = charts.growth(
            rated, (f"{said}; rating by level", "with 95 % intervals"), "SkillLevel", False
        )
    return made


# Words


def _plus_minus(fitted: Fitted | None, *, signed: bool = False) -> str:
    if fitted is None:
        return ""
    value = f"{fitted.value:+.0f}" if signed else f"{fitted.value:.0f}"
    return value if not fitted.error else f"{value} ± {fitted.error:.0f}"


def _score(cell: Cell | None) -> str:
    if cell is None or cell.record.score is None or cell.record.interval is None:
        return ""
    low, high = cell.record.interval
    return f"{100 * cell.record.score:.0f} ({100 * low:.0f}-{100 * high:.0f})"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"
