"""Whether a candidate is stronger: a run of the arena against the best so far, with a sequential test.

Sides are swapped in every pair, and each side is reported separately: a net may have gained on one side alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.live import Live
from ..common.statistics import wilson

if TYPE_CHECKING:
    from ..arena.progress import Progress

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
        """How many they are."""
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
        """Whether the candidate is stronger."""
        return self.verdict == STRONGER

    def as_json(self) -> dict[str, Any]:
        """The verdict as the run's log keeps it."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The verdict in words."""
        said = {STRONGER: "stronger: the new best", "H0": "not stronger"}.get(
            self.verdict, "undecided: not accepted"
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
    from ..arena import loop, resolve, run
    from ..arena.screen import LineScreen
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
    screen = LineScreen(live, "gate")
    if folder.exists():
        with Store.resume(folder.absolute()) as store:
            known = run.resumed(store, force=True)
            if not known.progress(store.rows).complete:
                loop.play(known, store, screen)
            return _verdict(known.progress(store.rows))
    known, items = run.prepare(resolve.resolve(document, {}))
    with run.create(known, items) as store:
        loop.play(known, store, screen)
        return _verdict(known.progress(store.rows))


def _engine(name: str, evaluator: str, values: Mapping[str, Any]) -> dict[str, Any]:
    options = {"Evaluator": evaluator, "Hash": str(HASH_MIB)}
    return {"name": name, "player": "default", "options": options, "nodes": values["gate_nodes"]}


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
