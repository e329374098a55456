"""The tables of a run as lines of text, from its `Summary`.

Everything here is a pure function of values, at most 80 columns wide and free of control characters, whatever engines
call themselves.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.engine.sides import Reason
from hnefi.engine.wording import counted
from hnefi.protocol.hosts.text_table import clip, flow, safe, table

from ..common.rating import Fitted, Model
from ..common.sprt import Sprt
from ..common.statistics import Estimate
from .summary import (
    Advisory,
    Counts,
    EngineLine,
    Meeting,
    RunFacts,
    State,
    Summary,
    limits_text,
    sprt_line,
    summarize,
)
from .values import LATE

if TYPE_CHECKING:
    from ..common.pairs import Bucket, Record
    from .progress import Progress
    from .run import Run
    from .store import Row, Store
    from .values import GameResult


NONE = "–"
"""An undefined number."""
LABEL = 11
CROSS = 8
"""The most opponents side by side in a cross table."""
FAULT_HEADS = ("crashes", "stalls", "disconnects", "time losses", "illegal")
SIDES = {"a": "attackers won", "d": "defenders won", "draw": "drawn"}

# The block: how a run stands


def block(summary: Summary) -> list[str]:
    """The report during a run: the first engine's strength if there are two, else a compact table."""
    lines = [*heading(summary), *_standing(summary)]
    if summary.facts.duel:
        return lines + _labelled(_duel(summary))
    return [*lines, *standings(summary.engines), *_labelled(_common(summary))]


def heading(summary: Summary) -> list[str]:
    """What is played: engines, variants, limits, openings, seed and slots."""
    facts = summary.facts
    engines = " – ".join(map(safe, facts.engines)) if facts.duel else f"{len(facts.engines)} engines"
    variants = (
        ", ".join(map(safe, facts.variants)) if len(facts.variants) < 5 else f"{len(facts.variants)} variants"
    )
    slots = "1 slot" if facts.slots == 1 else f"{facts.slots} slots"
    said = [
        variants,
        facts.limits,
        facts.openings and f"openings {facts.openings}",
        f"seed {facts.seed}",
        slots,
    ]
    title = f"{safe(facts.name)}: " if facts.name else ""
    return [*flow([f"{title}{engines}", facts.format]), *flow([text for text in said if text])]


def _standing(summary: Summary) -> list[str]:
    facts = summary.facts
    said = [
        f"pairs {summary.pairs:,}/{facts.pairs:,}"
        if facts.swap
        else f"games {summary.games:,}/{facts.games:,}"
    ]
    if facts.swap:
        said.append(f"games {summary.games:,}")
    if summary.open and facts.swap:
        said.append(f"{counted(summary.open, 'game')} of open pairs")
    if summary.duplicates:
        said.append(f"{counted(summary.duplicates, 'repeated pair')} left out")
    return flow(said)


def _duel(summary: Summary) -> Iterator[tuple[str, str]]:
    """The first engine against the second."""
    facts = summary.facts
    line = summary.engine(facts.engines[0])
    unit = "pairs" if facts.swap else "games"
    score, *rest = strength(line.strength, unit)
    yield from (*rest, score)
    yield "games", f"{_wdl(line.record)} of {counted(line.record.games, 'game')}"
    if facts.swap:
        yield "pairs", f"{_buckets(line.pairs)}  LL, LD, same side|DD, WD, WW"
        yield "matches", _matches(line)
    yield from _common(summary)


def _common(summary: Summary) -> Iterator[tuple[str, str]]:
    """Facts about the whole run."""
    record = summary.total.attackers
    yield "attackers", _share(record) + (f" of {counted(record.games, 'game')}" if record.games else "")
    if summary.test is not None:
        unit = {"pair": "pairs", "game": "games", "match": "matches"}[summary.test.test.unit]
        known = summary.test
        yield from progress(known.test, known.llr, unit, (known.lower, known.upper))[:2]
    yield "faults", _faults(summary)
    yield "lateness", _lateness(summary.lateness)


def _faults(summary: Summary) -> str:
    """The number of faults, by engine: `3: mine (crash 2, time 1)`."""
    said = []
    for line in summary.engines:
        found = [f"{Reason(reason).words} {count}" for reason, count in line.faults.items() if count]
        if found:
            said.append(f"{clip(line.name, 40)} ({', '.join(found)})")
    return f"{summary.faults}: {', '.join(said)}" if said else f"{summary.faults}"


def _lateness(ms: float) -> str:
    said = f"{ms:.1f} ms at most"
    return said if ms < LATE else f"{said}: {LATE:g} ms and more may have cost somebody a game on time"


def _labelled(told: Iterable[tuple[str, str]]) -> list[str]:
    """Texts after their labels, wrapped between words."""
    lines = []
    for label, text in told:
        first, *words = text.split(" ")
        lines += flow([f"{label:<{LABEL}}{first}", *words], between=" ", indent=" " * LABEL)
    return lines


# The final tables


def final(summary: Summary) -> list[str]:
    """Everything at the end: the block, ratings, pairs and faults, cross table, sides, reasons, remarkable games; the
    sentence of a sequential test comes last."""
    parts = [block(summary) if summary.facts.duel else [*heading(summary), *_standing(summary)]]
    parts += [standings(list(group)) for _, group in groupby(summary.engines, key=lambda line: line.group)]
    if len(parts) > 2:
        parts.append(["Engines of different tables never met: their numbers cannot be compared."])
    parts += [pairs_table(summary), cross_table(summary), faults_table(summary)]
    parts += [sides(summary), reasons(summary), lengths(summary)]
    if not summary.facts.duel:
        parts.append(_labelled(_common(summary)))
    parts.append(notes(summary))
    if summary.test is not None:
        parts.append(flow(safe(summary.test.sentence).split(" "), between=" "))
    return _apart(parts)


def _apart(parts: Iterable[list[str]]) -> list[str]:
    """The parts, separated by empty lines."""
    lines: list[str] = []
    for part in filter(None, parts):
        lines += ["", *part] if lines else part
    return lines


def standings(engines: Sequence[EngineLine], columns: int | None = None) -> list[str]:
    """Rank, name, rating with its error, normalized Elo, games, score, draws, and the score on either side.

    Where `columns` (None: those of the terminal) are too few, normalized Elo and draws give way to names.
    """
    rows = [
        (
            f"{line.rank}",
            line.name,
            *_fitted(line.rating),
            signed(line.strength.nelo),
            plain(line.strength.nelo_error),
            f"{line.record.games}",
            percent(line.record.score),
            percent(line.record.draws / line.record.games if line.record.games else None),
            percent(line.attackers.score),
            percent(line.defenders.score),
        )
        for line in engines
    ]
    head = ("#", "engine", "rating", "±", "nElo", "±", "games", "score%", "draw%", "att.%", "def.%")
    return table(head, rows, left=(1,), free=1, spare=(5, 4, 8), columns=columns)


def pairs_table(summary: Summary) -> list[str]:
    """The pairs in six buckets and the matches, by engine; nothing where sides are not swapped."""
    rows = [
        (
            f"{line.rank}",
            line.name,
            *(f"{count}" for count in line.pairs.values()),
            f"{line.matches.wins}",
            f"{line.matches.draws}",
            f"{line.matches.losses}",
            percent(line.by_captures),
        )
        for line in summary.engines
    ]
    if not summary.facts.swap:
        return []
    head = ("#", "pairs", "LL", "LD", "same", "DD", "WD", "WW", "match+", "=", "-", "capt.%")
    return table(head, rows, left=(1,), free=1, spare=(11,))


def faults_table(summary: Summary) -> list[str]:
    """Faults by engine; empty if there were none."""
    if not summary.faults:
        return []
    rows = [
        (f"{line.rank}", line.name, *(f"{count}" for count in line.faults.values()))
        for line in summary.engines
    ]
    return table(("#", "faults", *FAULT_HEADS), rows, left=(1,), free=1)


def cross_table(summary: Summary) -> list[str]:
    """Points of games against each opponent, by rank."""
    found = {(meeting.engine, meeting.opponent): meeting for meeting in summary.meetings}
    lines: list[str] = []
    for start in range(0, len(summary.engines), CROSS):
        part = summary.engines[start : start + CROSS]
        rows = [
            (
                f"{line.rank}",
                line.name,
                *(points(found.get((line.name, other.name)), line is other) for other in part),
            )
            for line in summary.engines
        ]
        lines += [""] if lines else []
        lines += table(("#", "points against", *(f"{line.rank}" for line in part)), rows, left=(1,), free=1)
    return lines


def points(meeting: Meeting | None, same: bool) -> str:
    """The points of one engine against another, and the number of games."""
    if meeting is None:
        return "·" if same else ""
    return f"{meeting.record.wins + meeting.record.draws / 2:g}/{meeting.record.games}"


def sides(summary: Summary) -> list[str]:
    """The attackers' score with its interval, the side term and the mean length, by variant."""
    lines = [*summary.variants]
    if len(lines) != 1:
        lines.append(summary.total)
    rows = [
        (
            line.name or "all",
            f"{line.attackers.games}",
            f"{line.attackers.wins}",
            f"{line.attackers.draws}",
            f"{line.attackers.losses}",
            percent(line.attackers.score),
            _interval(line.attackers),
            *_fitted(line.side),
            plain(line.plies),
        )
        for line in lines
    ]
    head = ("attackers in", "games", "won", "drawn", "lost", "score%", "95 %", "side", "±", "plies")
    return table(head, rows, left=(0,), free=0, spare=(9, 6))


def reasons(summary: Summary) -> list[str]:
    """Why games ended, by variant and winner."""
    several = len(summary.variants) > 1
    return [
        text
        for line in summary.variants
        for who, words in SIDES.items()
        for text in _reasons(f"{safe(line.name)}: {words}" if several else words, line.reasons[who])
    ]


def _reasons(words: str, found: Mapping[str, int]) -> list[str]:
    if not found:
        return []
    parts = [f"{reason.replace('_', ' ')} {count}" for reason, count in found.items()]
    return flow([f"{words} {sum(found.values())}: {parts[0]}", *parts[1:]], between=", ", indent="  ")


def lengths(summary: Summary) -> list[str]:
    """The shortest and the longest game."""
    if summary.shortest is None or summary.longest is None:
        return []
    shortest, longest = summary.shortest, summary.longest
    return [
        f"shortest game {shortest.id}: {counted(shortest.plies, 'ply', 'plies')}",
        f"longest game {longest.id}: {counted(longest.plies, 'ply', 'plies')}",
    ]


def notes(summary: Summary) -> list[str]:
    """Notes to the tables."""
    state = summary.state
    said = []
    if state.unstarted:
        said.append(f"{counted(state.unstarted, 'game')} without a result: an engine did not start")
    if state.surplus:
        said.append(
            f"{counted(state.surplus, 'game')} beyond what counts {'is' if state.surplus == 1 else 'are'} kept"
        )
    said += [f"{name} was withdrawn after its faults up to game {game}" for name, game in state.withdrawn]
    said += [f"continued despite a difference: {text}" for text in state.forced]
    said += [f"game {one.game}, {one.text}" for one in state.advisories]
    return [line for text in said for line in flow(safe(text).split(" "), between=" ", indent="  ")]


# Numbers in words


def _fitted(number: Fitted | None) -> tuple[str, str]:
    """A fitted number and its error."""
    return (NONE, NONE) if number is None else (signed(number.value), plain(number.error))


def _wdl(record: Record) -> str:
    return f"+{record.wins} ={record.draws} -{record.losses}"


def _buckets(pairs: Mapping[Bucket, int]) -> str:
    ll, ld, wl, dd, wd, ww = pairs.values()
    return f"[{ll}, {ld}, {wl}|{dd}, {wd}, {ww}]"


def _matches(line: EngineLine) -> str:
    matches = line.matches
    if line.by_captures is None:
        return "none"
    decided = f"{100 * line.by_captures:.1f} % decided by captures"
    return f"{matches.wins} won, {matches.draws} drawn, {matches.losses} lost; {decided}"


def _share(record: Record) -> str:
    if record.score is None:
        return "no games"
    return f"{100 * record.score:.1f} % ({_interval(record)})"


def _interval(record: Record) -> str:
    return NONE if record.interval is None else share(record.interval)


def share(interval: tuple[float, float]) -> str:
    """An interval in per cent."""
    return f"{100 * interval[0]:.1f}-{100 * interval[1]:.1f}"


def signed(number: float | None) -> str:
    """An Elo number with its sign."""
    if number is None:
        return NONE
    text = f"{number:+.1f}"
    return "+0.0" if text == "-0.0" else text


def plain(number: float | None) -> str:
    """A number without a sign."""
    return NONE if number is None else f"{number:.1f}"


def percent(share: float | None) -> str:
    """A fraction from 0 to 1 in per cent."""
    return NONE if share is None else f"{100 * share:.1f}"


# Runs on disk


def facts_of(run: Run, folder: Path) -> RunFacts:
    """The facts of a run as its configuration has them."""
    from .slots import slots_of

    config = run.config
    anchor = config["rating.anchor"]
    return RunFacts(
        name=config["run.name"] or folder.name,
        format=config["run.format"],
        engines=config.names,
        variants=run.schedule.variants,
        limits=limits_text(run.specs),
        openings=_openings_text(config.tables["openings"]),
        seed=config["run.seed"],
        slots=slots_of(config, run.specs)[0],
        pairs=len(run.schedule),
        swap=run.schedule.swap,
        test=config.test,
        model=Model(
            anchor=(anchor["name"], float(anchor["elo"])) if anchor else None,
            side=config["rating.side"],
            interval=float(config["rating.interval"]),
            bootstrap=config["rating.bootstrap"],
            seed=config["run.seed"],
        ),
        command=f"hnefi arena resume {shlex.quote(str(folder))}",
    )


def _openings_text(table: Mapping[str, Any]) -> str:
    source: str = table["source"]
    details = {
        "random": lambda: f", {table['plies']} plies",
        "file": lambda: f" {Path(table['file']).name}",
    }
    return source + details.get(source, str)()


def state_of(run: Run, store: Store, progress: Progress, ending: str = "") -> State:
    """Where a stored run stands; `ending` if the caller knows better than the log."""
    from .store import run_digest

    known = "complete" if progress.complete else "incomplete"
    return State(
        ending=ending or ("faults" if progress.stopped_by_faults else known),
        digest=run_digest(progress.counted),
        surplus=progress.surplus,
        withdrawn=tuple((run.config.names[engine], game) for engine, game in progress.withdrawn.items()),
        forced=tuple(str(data) for word, data in store.notes if word == "forced"),
        advisories=tuple(Advisory(*map(str, data)) for word, data in store.notes if word == "advisory"),
        unstarted=progress.unstarted,
    )


def count_rows(counts: Counts, progress: Progress, rows: Iterable[Row]) -> None:
    """Count games of a log; those of pairs that repeat others among them, which the tally leaves out."""
    for row in rows:
        counts.add(progress.played(row), row.fault, row.lateness, row.seconds)


class Stored:
    """A run's folder, opened for looking: `run`, `store` and `progress` as far as the log goes, and its `facts`."""

    def __init__(self, folder: Path) -> None:
        """Raises StoreError or ConfigError, with a sentence."""
        from . import run
        from .store import Store

        self.store = Store.read(folder)
        self.run = run.reopen(self.store, run.load_config(folder))
        self.progress = self.run.progress(self.store.rows)
        self.facts = facts_of(self.run, folder)

    def counts(self) -> Counts:
        """The tally of the games that count."""
        counts = Counts()
        count_rows(counts, self.progress, self.progress.counted)
        return counts

    def summary(self) -> Summary:
        """The run's summary."""
        state = state_of(self.run, self.store, self.progress)
        return summarize(self.facts, self.counts(), state, sprt_line(self.facts, self.progress.test))

    def games(self) -> Iterator[GameResult]:
        """The games that count, in the order of their ids."""
        return self.store.results(self.progress.counted)


# Estimates and tests in words


def strength(said: Estimate, unit: str) -> list[tuple[str, str]]:
    """Score, Elo, nElo and LOS in words, each with its name."""
    if said.score is None:
        return [("score", f"undefined: no {unit}")]
    lines = [("score", f"{100 * said.score:.2f} %" + _error(said.score_error, 100, 2))]
    if said.elo is None or said.elo_low is None or said.elo_high is None or said.los is None:
        return [*lines, ("Elo", f"undefined: fewer than two {unit}")]
    if math.isinf(said.elo):
        least, bound = ("at least", said.elo_low) if said.elo > 0 else ("at most", said.elo_high)
        lines.append(("Elo", f"{said.elo:+}, {least} {bound:+.1f} (95 %, one-sided)"))
    else:
        lines.append(("Elo", f"{said.elo:+.2f}{_error(said.elo_error, 1, 2)}"))
    if said.nelo is None:
        lines.append(("nElo", f"undefined: all {unit} ended alike"))
    else:
        lines.append(("nElo", f"{said.nelo:+.2f}{_error(said.nelo_error, 1, 2)}"))
    return [*lines, ("LOS", f"{100 * said.los:.2f} %")]


def progress(
    test: Sprt, llr: float | None, unit: str, bounds: tuple[float, float] | None = None
) -> list[tuple[str, str]]:
    """The test, its ratio between the bounds (the test's own if not given), and how long it should take, each with its
    name."""
    lower, upper = bounds or test.bounds
    lines = [
        ("test", f"{test.model} [{test.elo0:g}, {test.elo1:g}], alpha {test.alpha:g}, beta {test.beta:g}"),
    ]
    if llr is None:
        lines.append(("LLR", f"undefined; bounds {lower:+.4f} and {upper:+.4f}"))
    else:
        hypothesis, share = test.share(llr, bounds)
        lines.append(
            ("LLR", f"{llr:+.4f}, {100 * share:.0f} % of {hypothesis}; bounds {lower:+.4f} and {upper:+.4f}")
        )
    if test.expected:
        h0, h1, midway = (f"{math.ceil(number):,}" for number in test.expected)
        lines.append(("expect", f"{h0} {unit} if H0 is true, {h1} if H1 is, {midway} midway"))
    return lines


def _error(error: float | None, scale: float, digits: int) -> str:
    return "" if error is None else f" ± {scale * error:.{digits}f}"
