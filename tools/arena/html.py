"""A run as one HTML file: its tables, ratings with their errors, and every game on a board."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from hnefi.engine.wording import counted

from ..common.html_games import Games
from ..common.html_page import Bar, Markup, Page, Tinted, bullets, intervals, paragraph, table
from . import records
from .report import FAULT_HEADS, NONE, SIDES, heading, notes, percent, plain, points, share, signed, strength
from .values import find_variant

if TYPE_CHECKING:
    from ..common.pairs import Record
    from .summary import EngineLine, Summary
    from .values import EngineSpec, GameResult


def page(
    summary: Summary,
    results: Iterable[GameResult],
    specs: Sequence[EngineSpec],
    progress: Callable[[int], object] = lambda _: None,
) -> bytes:
    """The HTML text; `progress` is called with the number of `results` written so far."""
    facts = summary.facts
    about = heading(replace(summary, facts=replace(facts, name="")))
    page = Page(facts.name or "arena", [" · ".join(about), _standing(summary)])
    page.section("Standings", *_standings(summary))
    if facts.duel:
        page.section("Strength", _duel(summary))
    if summary.test is not None:
        page.section("Sequential test", paragraph(summary.test.sentence))
    page.section("Cross table", *_cross(summary))
    page.section("Attackers and defenders", *_sides(summary))
    page.section("How games ended", _endings(summary))
    page.section("Pairs", *_pairs(summary))
    page.section("Faults", *_faults(summary))
    page.section("Notes", *_notes(summary))
    games = Games()
    maker = records.Maker(facts.name, specs)
    for count, result in enumerate(results, start=1):
        games.add(result.task.id, maker.record(result), find_variant(result.task.variant))
        progress(count)
    games.into(page)
    return page.render()


def _standing(summary: Summary) -> str:
    facts = summary.facts
    pairs = f"{summary.pairs:,} of {counted(facts.pairs, 'pair')}, " if facts.swap else ""
    games = f"{summary.games:,} of {counted(facts.games, 'game')}"
    return f"{pairs}{games}; {summary.state.ending}; digest {summary.state.digest[:16]}"


def _standings(summary: Summary) -> Iterator[Markup]:
    percent_of = f"{100 * summary.facts.model.interval:g} %"
    groups = [list(group) for _, group in groupby(summary.engines, key=lambda line: line.group)]
    for group in groups:
        rated = [_bar(line) for line in group if line.rating is not None]
        if rated:
            unit = f"Elo, with {percent_of} intervals" if summary.facts.model.bootstrap else "Elo"
            yield intervals([bar for bar in rated if bar is not None], unit)
        yield table(
            ("#", "engine", "rating", "±", "nElo", "±", "games", "won", "drawn", "lost", "score %"),
            [
                (
                    line.rank,
                    line.name,
                    NONE if line.rating is None else signed(line.rating.value),
                    NONE if line.rating is None else plain(line.rating.error),
                    signed(line.strength.nelo),
                    plain(line.strength.nelo_error),
                    *_counts(line.record),
                    percent(line.record.score),
                )
                for line in group
            ],
            left=(1,),
        )
    if len(groups) > 1:
        yield paragraph("Engines of different tables never met: their numbers cannot be compared.")


def _bar(line: EngineLine) -> Bar | None:
    rating = line.rating
    if rating is None:
        return None
    error = "" if rating.error is None else f" ± {rating.error:.1f}"
    return Bar(line.name, rating.value, rating.low, rating.high, f"{signed(rating.value)}{error}")


def _counts(record: Record) -> tuple[int, int, int, int]:
    return record.games, record.wins, record.draws, record.losses


def _duel(summary: Summary) -> Markup:
    """The first engine against the second."""
    line = summary.engine(summary.facts.engines[0])
    unit = "pairs" if summary.facts.swap else "games"
    return table(("", f"{line.name} against the other"), strength(line.strength, unit))


def _cross(summary: Summary) -> Iterator[Markup]:
    met = {(meeting.engine, meeting.opponent): meeting for meeting in summary.meetings}
    if not met:
        return
    rows = []
    for line in summary.engines:
        row: list[object] = [line.rank, line.name]
        for other in summary.engines:
            meeting = met.get((line.name, other.name))
            said = points(meeting, line is other)
            score = None if meeting is None else meeting.record.score
            row.append(said if score is None else Tinted(said, score))
        rows.append(row)
    yield table(("#", "points against", *(line.rank for line in summary.engines)), rows, left=(1,))


def _sides(summary: Summary) -> Iterator[Markup]:
    """Each engine's score on either side, and the attackers' score by variant."""
    rows = []
    for line in summary.engines:
        for side, record in (("attackers", line.attackers), ("defenders", line.defenders)):
            said = NONE if record.score is None else Tinted(percent(record.score), record.score)
            rows.append((line.name, side, *_counts(record), said, _interval(record)))
    yield table(("engine", "as", "games", "won", "drawn", "lost", "score %", "95 %"), rows, left=(0, 1))
    lines = [*summary.variants] if len(summary.variants) == 1 else [*summary.variants, summary.total]
    bars = [
        Bar(line.name or "all variants", 100 * score, 100 * low, 100 * high, f"{percent(score)} %")
        for line in lines
        if (score := line.attackers.score) is not None and line.attackers.interval is not None
        for low, high in (line.attackers.interval,)
    ]
    if bars:
        yield intervals(bars, "The attackers' score in %, with 95 % intervals", level=50.0)
    yield table(
        ("the attackers in", "games", "won", "drawn", "lost", "advantage in Elo", "±", "plies"),
        [
            (
                line.name or "all variants",
                *_counts(line.attackers),
                NONE if line.side is None else signed(line.side.value),
                NONE if line.side is None else plain(line.side.error),
                plain(line.plies),
            )
            for line in lines
        ],
    )


def _interval(record: Record) -> str:
    return NONE if record.interval is None else share(record.interval)


def _endings(summary: Summary) -> Markup:
    rows = [
        (line.name, words, reason.replace("_", " "), count)
        for line in summary.variants
        for who, words in SIDES.items()
        for reason, count in line.reasons[who].items()
    ]
    return table(("variant", "result", "reason", "games"), rows, left=(0, 1, 2))


def _pairs(summary: Summary) -> Iterator[Markup]:
    if not summary.facts.swap:
        return
    yield paragraph(
        "Both games of each pair: lost (L), drawn (D) or won (W); “same” is the same side winning twice."
    )
    yield table(
        ("engine", "LL", "LD", "same", "DD", "WD", "WW"),
        [(line.name, *line.pairs.values()) for line in summary.engines],
    )


def _faults(summary: Summary) -> Iterator[Markup]:
    if summary.faults:
        yield table(
            ("engine", *FAULT_HEADS), [(line.name, *line.faults.values()) for line in summary.engines]
        )


def _notes(summary: Summary) -> Iterator[Markup]:
    said = notes(summary)
    if said:
        yield bullets(said)
