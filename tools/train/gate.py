"""Whether a candidate is stronger: a run of the arena against the best so far, with a sequential test.

Sides are swapped in every pair, and each side is reported separately: a net may have gained on one side alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.engine.catalogue import SUFFIX
from hnefi.engine.wording import counted

from ..arena.screen import LineScreen
from ..common import interrupts
from ..common.live import Live
from ..common.statistics import wilson

if TYPE_CHECKING:
    from ..arena.options import Config
    from ..arena.progress import Progress
    from ..arena.run import Run
    from ..arena.store import Store
    from ..arena.values import Opening

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
            f"gate: {said} after {counted(self.pairs, 'pair')} (LLR {self.llr:.2f})",
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
        "engine": [_engine(CANDIDATE, candidate, variant, values), _engine(BEST, best, variant, values)],
    }
    if folder.exists():
        with Store.resume(folder.absolute()) as store:
            return _played(run.resumed(store, force=True), store, live)
    config = resolve.resolve(document, {})
    known, items = run.prepare(config, _openings(config, live))
    with run.create(known, items) as store:
        return _played(known, store, live)


class _Screen(LineScreen):
    """Leaves it to the training to say how it is continued."""

    failure = ""

    def end(self, words: str, ending: str) -> None:
        """Nothing more is played."""
        if ending == "complete":
            super().end(words, ending)
        elif ending == "storage":
            self.failure = words.partition("\n")[0]


def _played(known: Run, store: Store, live: Live) -> Verdict:
    """What a run found, once its missing games are played; StorageFailed if they cannot be kept."""
    from ..arena import loop
    from ..arena.store import StorageFailed

    if not known.progress(store.rows).complete:
        screen = _Screen(live, "gate")
        loop.play(known, store, screen)
        if screen.failure:
            raise StorageFailed(screen.failure)
    return _verdict(known.progress(store.rows))


def _openings(config: Config, live: Live) -> Mapping[str, Sequence[Opening]]:
    """The openings of a run; how many are made is shown, as for thousands of pairs it takes a while."""
    from ..arena import openings, schedule

    def tell(done: int, whole: int) -> None:
        interrupts.check()
        live.step(lambda: f"gate: openings {done:,}/{whole:,}")

    return openings.prepare(config, schedule.make(config).openings, tell=tell)


def _engine(name: str, evaluator: str, variant: str, values: Mapping[str, Any]) -> dict[str, Any]:
    # An evaluator for an own variant can be read only where that is known.
    own = {"VariantPath": variant} if variant.endswith(SUFFIX) else {}
    options = {**own, "Evaluator": evaluator, "Hash": str(HASH_MIB)}
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
