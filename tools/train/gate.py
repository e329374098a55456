"""Whether a candidate is stronger: a run of the arena against the best so far, with a sequential test.

Sides are swapped in every pair, and what comes of them is told apart: a net may have gained on one side alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common import interrupts
from ..common.live import PAUSE, Live, duration
from ..common.statistics import wilson

if TYPE_CHECKING:
    from ..arena.progress import Progress
    from ..arena.run import Run, Watch
    from ..arena.store import Store
    from ..arena.values import GameResult

CANDIDATE, BEST = "candidate", "best"
STRONGER = "H1"
HASH_MIB = 8
MOST_PLIES = 300
OPENINGS = "4-8"


@dataclass(frozen=True, slots=True)
class Side:
    """Games of the candidate on one side."""

    won: int = 0
    drawn: int = 0
    lost: int = 0

    @property
    def games(self) -> int:
        return self.won + self.drawn + self.lost

    def __str__(self) -> str:
        if not self.games:
            return "no games"
        share = (self.won + self.drawn / 2) / self.games
        low, high = wilson(self.games * share, self.games) or (0.0, 1.0)
        return (
            f"+{self.won} ={self.drawn} -{self.lost}, {100 * share:.0f} % ({100 * low:.0f}-{100 * high:.0f})"
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate found: the test's verdict (H1: stronger; H0; none where the pairs were used up), the log-likelihood
    ratio, and the candidate's games on each side."""

    verdict: str
    llr: float
    pairs: int
    attacking: Side
    defending: Side

    @property
    def accepted(self) -> bool:
        return self.verdict == STRONGER

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        """The verdict in words."""
        said = {STRONGER: "stronger: the new best", "H0": "not stronger"}.get(
            self.verdict, "undecided: not taken"
        )
        return [
            f"gate: {said} after {self.pairs} pairs (LLR {self.llr:.2f})",
            f"  as attackers {self.attacking}",
            f"  as defenders {self.defending}",
        ]


def play(
    folder: Path,
    variant: str,
    candidate: str,
    best: str,
    values: Mapping[str, Any],
    seed: int,
    hands: tuple[str, int],
    live: Live,
) -> Verdict:
    """Play the run in `folder`, or go on with it. `variant` as the arena takes it; evaluators by name or file; `hands`
    are a backend of joblib, or none, and how many play."""
    from ..arena import resolve, run
    from ..arena.store import Store

    backend, jobs = hands
    document = {
        "run": {
            "name": folder.parent.name,
            "variants": [variant],
            "seed": seed,
            "pairs": values["gate_pairs"],
            "out": str(folder),
            "inside": True,
            **({"backend": backend, "jobs": jobs} if backend else {"concurrency": jobs}),
        },
        "openings": {"plies": OPENINGS},
        "adjudicate": {"max_plies": MOST_PLIES, "mates": True},
        "sprt": {"elo0": values["elo0"], "elo1": values["elo1"], "max_pairs": values["gate_pairs"]},
        "engine": [_engine(CANDIDATE, candidate, values), _engine(BEST, best, values)],
    }
    if folder.exists():
        with Store.resume(folder.absolute()) as store:
            known = run.reopen(store, run.load_config(folder, {}))
            if not _walked(known, store).complete:
                known = run.renew(store, known, force=True)
                _loop(known, store, live)
            return _verdict(_walked(known, store))
    prepared, items = run.prepare(resolve.resolve(document, {}))
    with run.create(prepared, items) as store:
        _loop(prepared, store, live)
        return _verdict(_walked(prepared, store))


def _engine(name: str, evaluator: str, values: Mapping[str, Any]) -> dict[str, Any]:
    options = {"Evaluator": evaluator, "Hash": str(HASH_MIB)}
    return {"name": name, "player": "default", "options": options, "nodes": values["gate_nodes"]}


def _walked(known: Run, store: Store) -> Progress:
    progress = known.progress()
    progress.walk(store.rows)
    return progress


def _loop(prepared: Run, store: Store, live: Live) -> None:
    from ..arena.loop import Loop, player_of

    async def everything() -> int:
        return await Loop(prepared, store, player_of(prepared, store.folder), _Screen(live)).play_on()

    asyncio.run(everything())
    interrupts.check()


def _verdict(progress: Progress) -> Verdict:
    test = progress.test
    assert test is not None
    return Verdict(
        test.verdict or "", float(test.llr or 0.0), test.pairs, _side(progress, 0), _side(progress, 1)
    )


def _side(progress: Progress, side: int) -> Side:
    """The candidate's games on a side; it is the engine of number 0."""
    rows = [row for row in progress.counted if row.engines[side] == 0 and row.winner is not None]
    won = sum(row.winner == "ad"[side] for row in rows)
    drawn = sum(row.winner == "draw" for row in rows)
    return Side(won, drawn, len(rows) - won - drawn)


class _Screen:
    """Tells how the run goes."""

    on_event: Watch | None = None

    def __init__(self, live: Live) -> None:
        self._live = live
        self._began = self._shown = time.monotonic()
        self._done = self._played = self._all = 0

    def begin(self, run: Run, store: Store, progress: Progress) -> None:  # noqa: ARG002
        """The run begins, or goes on."""
        self._done = sum(row.winner is not None for row in store.rows.values())
        self._all = run.schedule.games

    def game(self, result: GameResult) -> None:  # noqa: ARG002
        """A game was stored."""
        self._played += 1
        self._done += 1
        now = time.monotonic()
        if self._live.terminal:
            self._live.show(self._line)
        elif now - self._shown >= 5 * PAUSE:
            self._shown = now
            self._live.report(self._line())

    def _line(self) -> Sequence[str]:
        left = (time.monotonic() - self._began) / max(1, self._played) * (self._all - self._done)
        return [f"gate: {self._done} of at most {self._all} games, ETA at most {duration(left)}"]

    def say(self, text: str) -> None:
        """Report an event in a line."""
        self._live.report(text.split("\n"))

    def end(self, words: str, ending: str) -> None:
        """Nothing more is played."""
        if ending != "complete":
            self._live.report(words.split("\n"))
