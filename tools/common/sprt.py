"""The sequential test: two hypotheses about a difference in strength, and the walk over pairs until one is accepted.

Generalized sequential probability ratio test with Wald's bounds; `statistics` names the sources. Wald assumes that the
ratio ends exactly on a bound. In fact it ends beyond it, so errors are rarer than requested and the test is longer than
necessary. With `siegmund` each bound is moved inwards by the mean overshoot, which D. Siegmund ("Sequential Analysis",
corollary 8.33) gives as E[s²] / 2 E[s] of the walk's ladder heights s; these are measured on the walk itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from hnefi.engine.wording import counted, nearest, shorten

from . import statistics

Unit = Literal["pair", "game", "match"]
CLASSES: dict[str, int] = {"pair": 5, "game": 3, "match": 3}
"""What a test counts, and the number of different results."""
MODELS: dict[str, Callable[[Sequence[float], float, float], float | None]] = {
    "normalized": statistics.llr_normalized,
    "logistic": statistics.llr_logistic,
    "bayesian-fastchess": statistics.llr_bayesian_fastchess,
    "bayesian-openbench": statistics.llr_bayesian_openbench,
    "bayesian-cutechess": statistics.llr_bayesian_cutechess,
}
"""The hypotheses' unit of strength; the bayesian ones only know games and exist for comparison with older runners."""
WIDEST = {"normalized": 200.0}
"""The largest hypothesis of a model: beyond it the iteration may diverge, or the score is 0 or 1 to three digits."""
WIDEST_ELSE = 1200.0
NEAREST = 1e-6
"""The smallest absolute value of a corrected bound."""


@dataclass(frozen=True, slots=True)
class Sprt:
    """A test of `elo0` (H0) against `elo1` (H1) with error rates `alpha` and `beta`; ValueError says what is wrong."""

    elo0: float = 0.0
    elo1: float = 10.0
    alpha: float = 0.05
    beta: float = 0.05
    model: str = "normalized"
    unit: Unit = "pair"
    siegmund: bool = False

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            known = ", ".join(MODELS)
            raise ValueError(
                f"model {shorten(self.model)}: expected one of {known}{nearest(self.model, MODELS)}"
            )
        if self.unit not in CLASSES:
            raise ValueError(f"unit {shorten(self.unit)}: expected one of {', '.join(CLASSES)}")
        if self.model.startswith("bayesian") and self.unit == "pair":
            raise ValueError(f"model {self.model} knows no pairs: expected unit game or match")
        widest = WIDEST.get(self.model, WIDEST_ELSE)
        for name, value in (("elo0", self.elo0), ("elo1", self.elo1)):
            if not -widest <= value <= widest:
                raise ValueError(f"{name} {value:g}: expected {-widest:g} to {widest:g} ({self.model})")
        if not self.elo0 < self.elo1:
            raise ValueError(f"elo0 {self.elo0:g}, elo1 {self.elo1:g}: expected elo0 below elo1")
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if not 0.0 < value < 1.0:
                raise ValueError(f"{name} {value:g}: expected more than 0 and less than 1")
        if not self.alpha + self.beta < 1.0:
            raise ValueError(f"alpha {self.alpha:g}, beta {self.beta:g}: expected a sum below 1")

    @property
    def bounds(self) -> tuple[float, float]:
        """The log-likelihood ratios at which H0, and H1, is accepted."""
        return statistics.bounds(self.alpha, self.beta)

    @property
    def expected(self) -> tuple[float, float, float] | None:
        """The expected number of units if H0 is true, if H1 is true, and midway; None unless normalized."""
        if self.model != "normalized":
            return None
        pairs = self.unit == "pair"
        return statistics.expected_length(self.elo0, self.elo1, self.alpha, self.beta, pairs=pairs)

    def llr(self, counts: Sequence[int]) -> float | None:
        """The log-likelihood ratio of H1 against H0; None where it is undefined."""
        if len(counts) != CLASSES[self.unit]:
            raise ValueError(
                f"counts {shorten(list(counts))}: expected {CLASSES[self.unit]} of a {self.unit}"
            )
        return MODELS[self.model](counts, self.elo0, self.elo1)

    def accepts(
        self, llr: float | None, bounds: tuple[float, float] | None = None
    ) -> Literal["H0", "H1"] | None:
        """The hypothesis that such a ratio accepts, if any; `bounds` are those of the test if not given."""
        lower, upper = bounds or self.bounds
        if llr is None or lower < llr < upper:
            return None
        return "H1" if llr >= upper else "H0"

    def share(self, llr: float, bounds: tuple[float, float] | None = None) -> tuple[str, float]:
        """The hypothesis that the ratio favours, and the fraction of the way to its bound: 1 or more if accepted."""
        lower, upper = bounds or self.bounds
        return ("H1", llr / upper) if llr >= 0.0 else ("H0", llr / lower)

    def sentence(
        self,
        llr: float | None,
        first: str,
        second: str,
        after: str,
        bounds: tuple[float, float] | None = None,
    ) -> str:
        """The state of the test between the engines `first` and `second` in words; `after` is such as `1,204 pairs`."""
        test = f"the test [{self.elo0:g}, {self.elo1:g}]"
        match self.accepts(llr, bounds):
            case "H1":
                claim = "stronger than" if self.elo0 >= 0.0 else "not weaker than"
                return f"H1 accepted: {first} is {claim} {second} by {test} after {after}"
            case "H0":
                claim = "weaker than" if self.elo1 <= 0.0 else "not stronger than"
                return f"H0 accepted: {first} is {claim} {second} by {test} after {after}"
            case _:
                lower, upper = bounds or self.bounds
                shown = "undefined" if llr is None else f"{llr:.2f}"
                return f"inconclusive: LLR {shown} within [{lower:.2f}, {upper:.2f}] of {test} after {after}"


class Overshoot:
    """How far beyond a bound a walk is expected to end, estimated from its ladder heights in that direction: the
    amounts by which it exceeded its previous maximum."""

    def __init__(self) -> None:
        self._reached = 0.0
        self._sum = 0.0
        self._squares = 0.0

    def add(self, place: float) -> None:
        """Record the walk's new place; the direction is upwards."""
        height = place - self._reached
        if height > 0.0:
            self._reached = place
            self._sum += height
            self._squares += height * height

    @property
    def mean(self) -> float:
        """The expected overshoot in units of the log-likelihood ratio; 0 before the first step."""
        return self._squares / (2.0 * self._sum) if self._sum else 0.0


class Walk:
    """The test over pairs in the order of their numbers, in whatever order they arrive.

    The first prefix of pairs whose ratio crosses a bound decides. Pairs beyond it are surplus: they are known, but not
    part of `counts`. A pair waits until all earlier ones are known, so the verdict and the deciding pair are the same
    for any number of workers.
    """

    def __init__(self, test: Sprt, first: int = 1) -> None:
        self.test = test
        self.counts = [0] * CLASSES[test.unit]
        self.pairs = 0
        """Pairs in `counts`, without void ones."""
        self.llr: float | None = 0.0
        self.verdict: Literal["H0", "H1"] | None = None
        self.deciding: int | None = None
        """The number of the pair that decided."""
        self.duplicates: dict[int, int] = {}
        """Pairs that did not count because they repeat an earlier one, with the number of that one."""
        self._over = Overshoot(), Overshoot()
        self._next = first
        self._waiting: dict[int, tuple[tuple[int, ...], Hashable]] = {}
        self._keys: dict[Hashable, int] = {}

    @property
    def bounds(self) -> tuple[float, float]:
        """The current ratios at which H0 and H1 are accepted."""
        lower, upper = self.test.bounds
        if not self.test.siegmund:
            return lower, upper
        # Even after unusual first steps, no bound may change its sign.
        return min(lower + self._over[0].mean, -NEAREST), max(upper - self._over[1].mean, NEAREST)

    @property
    def surplus(self) -> int:
        """The number of known pairs beyond the deciding one."""
        return self._known() if self.verdict else 0

    @property
    def waiting(self) -> int:
        """The number of known pairs that cannot count yet because an earlier one is unknown."""
        return 0 if self.verdict else self._known()

    def _known(self) -> int:
        return sum(bool(classes) for classes, _ in self._waiting.values())

    def add(self, pair: int, classes: Iterable[int], key: Hashable = None) -> None:
        """Pair `pair` adds one to each of `classes`, indices into `counts`; to none if it is void (never finished).

        Pairs of equal `key` repeat each other; only the one with the lowest number counts. A pair that is already known
        changes nothing. ValueError for a class that does not exist.
        """
        found = tuple(classes)
        if not all(0 <= index < len(self.counts) for index in found):
            raise ValueError(f"pair {pair}: classes {shorten(found)}: expected 0 to {len(self.counts) - 1}")
        if pair < self._next or pair in self._waiting:
            return
        self._waiting[pair] = found, key
        while self.verdict is None and self._next in self._waiting:
            self._step(self._next, *self._waiting.pop(self._next))

    def _step(self, pair: int, classes: tuple[int, ...], key: Hashable) -> None:
        self._next += 1
        if not classes:
            return
        if key is not None and self._keys.setdefault(key, pair) != pair:
            self.duplicates[pair] = self._keys[key]
            return
        for index in classes:
            self.counts[index] += 1
        self.pairs += 1
        self.llr = self.test.llr(self.counts)
        if self.llr is not None:
            self._over[0].add(-self.llr)
            self._over[1].add(self.llr)
        self.verdict = self.test.accepts(self.llr, self.bounds)
        self.deciding = pair if self.verdict else None

    def conclusion(self, first: str, second: str) -> str:
        """The verdict in words; `inconclusive` if there is none yet."""
        return self.test.sentence(self.llr, first, second, counted(self.pairs, "pair"), self.bounds)


def parse(text: str, unit: Unit) -> Sprt:
    """The test `MODEL,ELO0,ELO1[,ALPHA,BETA]`; ValueError says what is wrong."""
    model, *numbers = (part.strip() for part in text.split(","))
    if len(numbers) not in (2, 4):
        raise ValueError(f"{shorten(text)}: expected MODEL,ELO0,ELO1 or MODEL,ELO0,ELO1,ALPHA,BETA")
    values = [_number(part) for part in numbers]
    alpha, beta = values[2:] or (0.05, 0.05)
    return Sprt(values[0], values[1], alpha, beta, model, unit)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{shorten(text)}: expected a number")
    return value
