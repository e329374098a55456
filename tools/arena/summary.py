"""The results of a run: every number that tables show, as values and as the document `summary.json`.

    counts = Counts()
    counts.add(game, fault, lateness)        # game after game, in any order
    summary = summarize(facts, counts, state)

Tables and document are made from the same `Summary`, so no table shows a number that the document lacks.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from hnefi.engine.sides import Reason

from ..common.pairs import BUCKETS, DOUBLED, Bucket, Played, Record, Tally, bucket, five
from ..common.rating import Fitted, Model, Table, rate
from ..common.sprt import Sprt, Walk
from ..common.statistics import Estimate, estimate
from .values import EngineSpec, SideLimits

SCHEMA = 1
"""Increased whenever a reader of older documents would misunderstand a newer one; new keys alone do not count."""
FAULTS = (Reason.CRASH, Reason.STALL, Reason.DISCONNECT, Reason.TIME, Reason.ILLEGAL_MOVE)
"""The ways to lose by misbehaviour, in the order of the tables."""


class ReportError(Exception):
    """Raised if what was asked for cannot be shown; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known about a run before its first game, for its tables.

    `engines` and `variants` are names in the order of the run (the tests speak about the first engine), `limits` and
    `openings` words, `pairs` those that are planned, `swap` whether pairs have two games, `model` how ratings are
    fitted, `command` continues the run.
    """

    name: str
    format: str
    engines: tuple[str, ...]
    variants: tuple[str, ...]
    limits: str = ""
    openings: str = ""
    seed: int = 0
    slots: int = 1
    pairs: int = 0
    swap: bool = True
    test: Sprt | None = None
    model: Model = field(default_factory=Model)
    command: str = ""

    @property
    def games(self) -> int:
        """The number of planned games."""
        return self.pairs * (2 if self.swap else 1)

    @property
    def duel(self) -> bool:
        """Whether only two engines play: then all results are from the first one's point of view."""
        return len(self.engines) == 2


@dataclass(frozen=True, slots=True)
class Advisory:
    """A mistake of an engine that cost nothing: the first of its kind, and the game in which it was seen."""

    engine: str
    kind: str
    game: str
    text: str


@dataclass(frozen=True, slots=True)
class State:
    """Where a run stands. `ending`: `running`, `incomplete` (not being played), or why it ended:
    `complete`, `interrupted`, `faults`, `storage`; `withdrawn` are
    engines with the game that decided it; `surplus` games are stored but do not count; `forced` are the differences to
    the run's beginning that --force overrode; `advisories` has one advisory of each kind and engine; `unstarted` games
    have no result, because an engine did not start."""

    ending: str = "running"
    digest: str = ""
    surplus: int = 0
    withdrawn: tuple[tuple[str, str], ...] = ()
    forced: tuple[str, ...] = ()
    advisories: tuple[Advisory, ...] = ()
    unstarted: int = 0


class Counts:
    """Everything that is counted of a run's games; each counts once, in whatever order they come."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.games = 0
        self.faults: Counter[tuple[str, str]] = Counter()
        """By engine and reason."""
        self.lateness = 0.0
        self.seconds = 0.0
        self._known: set[tuple[int, int]] = set()

    def add(
        self, game: Played, fault: tuple[int, str] | None = None, lateness: float = 0.0, seconds: float = 0.0
    ) -> None:
        """Count a game; `fault` is the side (0 attackers) and the reason of an engine's fault."""
        place = (game.pair, game.game)
        if place in self._known:
            return
        self._known.add(place)
        self.tally.add(game)
        self.games += 1
        self.lateness = max(self.lateness, lateness)
        self.seconds += seconds
        if fault is not None:
            self.faults[game.ending[1 + fault[0]], fault[1]] += 1


# What tables show


@dataclass(frozen=True, slots=True)
class EngineLine:
    """One engine in all its games. `group` counts the tables of engines that met, `pairs` has all six buckets,
    `by_captures` is the share of its matches that captures decided, `faults` has all reasons of `FAULTS`."""

    rank: int
    group: int
    name: str
    rating: Fitted | None
    record: Record
    attackers: Record
    defenders: Record
    pairs: dict[Bucket, int]
    strength: Estimate
    matches: Record
    by_captures: float | None
    faults: dict[str, int]


@dataclass(frozen=True, slots=True)
class VariantLine:
    """One variant, or all of them: the attackers' record, the mean length, the attackers' advantage in Elo, and why
    games ended by who won (`a`, `d`, `draw`)."""

    name: str
    attackers: Record
    plies: float | None
    side: Fitted | None
    reasons: dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Meeting:
    """An engine against another one."""

    engine: str
    opponent: str
    record: Record
    pairs: dict[Bucket, int]
    strength: Estimate


@dataclass(frozen=True, slots=True)
class SprtLine:
    """A sequential test: `share` says how far the ratio is on its way to the bound of hypothesis `leaning`."""

    test: Sprt
    lower: float
    upper: float
    llr: float | None
    leaning: str | None
    share: float | None
    counts: tuple[int, ...]
    pairs: int
    accepted: str | None
    deciding: int | None
    surplus: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Game:
    """A game that stands out by its length."""

    id: str
    plies: int


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything about a run. `engines` are ranked, `total` is all variants together, `meetings` are in the order of
    the ranks, `open` counts games without the other one of their pair; `lateness` is in ms, `seconds` the sum of all
    games."""

    facts: RunFacts
    state: State
    games: int
    pairs: int
    duplicates: int
    open: int
    engines: tuple[EngineLine, ...]
    variants: tuple[VariantLine, ...]
    total: VariantLine
    meetings: tuple[Meeting, ...]
    test: SprtLine | None
    shortest: Game | None
    longest: Game | None
    faults: int
    lateness: float
    seconds: float

    def engine(self, name: str) -> EngineLine:
        """The line of an engine."""
        return next(line for line in self.engines if line.name == name)


def summarize(
    facts: RunFacts,
    counts: Counts,
    state: State | None = None,
    test: SprtLine | None = None,
    *,
    fit: bool = True,
) -> Summary:
    """Summary of `counts`. Without `fit` there are no ratings: half a millisecond for two engines, 30 for twenty."""
    tally = counts.tally
    tables = _fitted(facts, tally) if fit else []
    engines = _ranked(_engine_lines(facts, counts, tables))
    sides = {variant: fitted for table in reversed(tables) for variant, fitted in table.sides.items()}
    variants = tuple(_variant_line(tally, name, sides.get(name)) for name in facts.variants)
    return Summary(
        facts=facts,
        state=state or State(),
        games=sum(tally.games.values()),
        pairs=sum(tally.pairs.values()),
        duplicates=tally.duplicates,
        open=len(tally.open),
        engines=engines,
        variants=variants,
        total=_variant_line(tally, None, None),
        meetings=_meetings(tally, [line.name for line in engines], facts.swap),
        test=test,
        shortest=_game(tally.shortest),
        longest=_game(tally.longest),
        faults=sum(counts.faults.values()),
        lateness=counts.lateness,
        seconds=counts.seconds,
    )


def _fitted(facts: RunFacts, tally: Tally) -> list[Table]:
    """The rating tables; an anchor that has not played yet has no effect."""
    from dataclasses import replace

    model = facts.model
    if model.anchor and model.anchor[0] not in tally.engines:
        model = replace(model, anchor=None)
    return rate(tally.units(), model)


def _engine_lines(facts: RunFacts, counts: Counts, tables: Sequence[Table]) -> list[EngineLine]:
    tally = counts.tally
    lines = []
    for name in facts.engines:
        group = next((index for index, table in enumerate(tables) if name in table.ratings), len(tables))
        record, pairs = tally.record(engine=name), _six(tally.buckets(name))
        lines.append(
            EngineLine(
                rank=0,
                group=group + 1,
                name=name,
                rating=tables[group].ratings[name] if group < len(tables) else None,
                record=record,
                attackers=tally.record(0, name),
                defenders=tally.record(1, name),
                pairs=pairs,
                strength=_strength(facts.swap, pairs, record),
                matches=tally.match_record(name),
                by_captures=tally.by_captures(name),
                faults={reason.value: counts.faults[name, reason.value] for reason in FAULTS},
            )
        )
    return lines


def _ranked(lines: list[EngineLine]) -> tuple[EngineLine, ...]:
    """Strongest first inside each group: by rating where there is one, else by score."""
    from dataclasses import replace

    def strength(line: EngineLine) -> float:
        if line.rating is not None:
            return line.rating.value
        score = line.record.score
        return -1.0 if score is None else score

    lines.sort(key=lambda line: (line.group, -strength(line)))
    return tuple(replace(line, rank=rank) for rank, line in enumerate(lines, 1))


def _strength(swap: bool, pairs: Mapping[Bucket, int], record: Record) -> Estimate:
    """From the pairs; from single games where sides are not swapped."""
    return estimate(five(Counter(pairs)) if swap else record.counts)


def _six(counted: Mapping[Bucket, int]) -> dict[Bucket, int]:
    return {name: counted.get(name, 0) for name in BUCKETS}


def _variant_line(tally: Tally, name: str | None, side: Fitted | None) -> VariantLine:
    attackers = tally.record(0, variant=name)
    plies = sum(count for variant, count in tally.plies.items() if name in (None, variant))
    found: dict[str, Counter[str]] = {"a": Counter(), "d": Counter(), "draw": Counter()}
    for (variant, winner, reason), count in tally.reasons.items():
        if count and name in (None, variant):
            found[winner][reason] += count
    reasons = {
        winner: dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))
        for winner, counted in found.items()
    }
    return VariantLine(
        name or "",
        attackers,
        plies / attackers.games if attackers.games else None,
        side,
        reasons,
    )


def _meetings(tally: Tally, names: Sequence[str], swap: bool) -> tuple[Meeting, ...]:
    """Every engine against every one that it met, in one pass over the counts."""
    records: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for (_, attackers, defenders, winner), count in tally.games.items():
        records[attackers, defenders][DOUBLED[winner][0]] += count
        records[defenders, attackers][DOUBLED[winner][1]] += count
    pairs: defaultdict[tuple[str, str], Counter[Bucket]] = defaultdict(Counter)
    for (one, two), count in tally.pairs.items():
        pairs[one.attackers, one.defenders][bucket(one.winner, two.winner)] += count
        pairs[one.defenders, one.attackers][bucket(two.winner, one.winner)] += count
    meetings = []
    for engine in names:
        for opponent in names:
            losses, draws, wins = records.get((engine, opponent), (0, 0, 0))
            record = Record(wins, draws, losses)
            if record.games:
                six = _six(pairs[engine, opponent])
                meetings.append(Meeting(engine, opponent, record, six, _strength(swap, six, record)))
    return tuple(meetings)


def sprt_line(facts: RunFacts, walk: Walk | None) -> SprtLine | None:
    """Where a test stands now; None without one."""
    if walk is None:
        return None
    lower, upper = bounds = walk.bounds
    leaning, share = (None, None) if walk.llr is None else walk.test.share(walk.llr, bounds)
    one, two = facts.engines
    return SprtLine(
        walk.test, lower, upper, walk.llr, leaning, share, tuple(walk.counts), walk.pairs, walk.verdict,
        walk.deciding, walk.surplus, walk.conclusion(one, two),
    )  # fmt: skip


def _game(found: tuple[int, int, int] | None) -> Game | None:
    return None if found is None else Game(f"{found[1]}.{found[2]}", found[0])


# The document


def document(summary: Summary) -> dict[str, Any]:
    """The summary as JSON holds it, described in docs/arena-output.md; undefined and infinite numbers are None."""
    return {"schema": SCHEMA, **_plain(summary)}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Record):
        low, high = value.interval or (None, None)
        counts = {"wins": value.wins, "draws": value.draws, "losses": value.losses}
        return {**counts, "games": value.games, "score": value.score, "score_low": low, "score_high": high}
    if is_dataclass(value):
        return {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


# Facts in words


def limits_text(specs: Sequence[EngineSpec]) -> str:
    """The limits of all engines: once if they are the same, otherwise engine by engine."""
    told = [_both_sides(*spec.limits) for spec in specs]
    if len(set(told)) == 1:
        return told[0]
    return "; ".join(f"{spec.name} {text}" for spec, text in zip(specs, told, strict=True))


def _both_sides(attackers: SideLimits, defenders: SideLimits) -> str:
    one, two = side_limits_text(attackers), side_limits_text(defenders)
    return one if one == two else f"{one} attacking, {two} defending"


def side_limits_text(limits: SideLimits) -> str:
    """One side's limits in words: `tc 40/60+0.6, depth 9`."""
    said = []
    if limits.time is not None:
        moves = f"{limits.moves}/" if limits.moves else ""
        said.append(f"tc {moves}{limits.time / 1000:g}+{limits.increment / 1000:g}")
    if limits.movetime is not None:
        said.append(f"{limits.movetime} ms a move")
    for name, number in (("depth", limits.depth), ("nodes", limits.nodes)):
        if number is not None:
            said.append(f"{name} {number}")
    return ", ".join(said) or "no limit"
