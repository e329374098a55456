"""How long people wait for engines that share processors: an event simulation, and formulas to check it against.

A person thinks, asks the engine for a move, and thinks again. The engines of a host share its cores, as an operating
system lets them: `n` searches on `c` cores each advance at min(1, c / n) of a core's speed. A search ends when it has
done its work (levels, which are limited by nodes) or when its time is up (the full engine, limited by the clock). So
load delays the first kind and makes the second kind think less.

Sessions stay at their host, so hosts are independent of each other: in every step each host handles its next event,
all of them in one sweep of numpy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

EXPONENTIAL: Final = -1.0
"""In place of a spread: times are exponentially distributed."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a `share` of the players do: think for `think` seconds, then have the engine work for `work` seconds of a
    core (infinite: for as long as it is allowed), within `limit` seconds by the clock.

    These are means; a spread is the standard deviation of the logarithm (lognormal; 0: always the same), or
    `EXPONENTIAL`.
    """

    name: str
    share: float
    think: float
    work: float
    limit: float = math.inf
    think_spread: float = 0.0
    work_spread: float = 0.0
    limit_spread: float = 0.0


@dataclass(frozen=True, slots=True)
class Searches:
    """All searches that began after the warm-up and have ended: their kind, the seconds they took longer than on an
    idle host, and their share of the processor time they would have had there. `busy` and `active` are the average
    numbers of cores in use and of simultaneous searches on one host."""

    kind: NDArray[np.int64]
    wait: Floats
    share: Floats
    busy: float
    active: float


def simulate(
    kinds: Sequence[Kind],
    hosts: int,
    players: int,
    cores: int,
    seconds: float,
    warmup: float,
    seed: int,
) -> Searches:
    """`hosts` hosts of `cores` cores with `players` each, for `seconds` after `warmup`. The same seed, the same
    result."""
    draw = np.random.default_rng(seed)
    shares = np.array([kind.share for kind in kinds])
    kind = draw.choice(len(kinds), (hosts, players), p=shares / shares.sum())
    means = {name: np.array([getattr(one, name) for one in kinds]) for name in ("think", "work", "limit")}
    spreads = {name: np.array([getattr(one, f"{name}_spread") for one in kinds]) for name in means}

    def drawn(name: str, of: NDArray[np.int64]) -> Floats:
        return _drawn(draw, means[name][of], spreads[name][of])

    rows = np.arange(hosts)
    # Everybody starts in the middle of a thought, more likely a long one than a short one. What is left of an
    # exponentially distributed thought has the same distribution as a whole one.
    spread = spreads["think"][kind]
    left_of = np.where(spread < 0, 1.0, draw.random((hosts, players)) * np.exp(spread**2))
    due = left_of * drawn("think", kind)
    done = np.full((hosts, players), np.inf)
    began, begun_at, work = np.zeros_like(due), np.zeros_like(due), np.zeros_like(due)
    now, served = np.zeros(hosts), np.zeros(hosts)
    searching = np.zeros(hosts, np.int64)
    end = warmup + seconds
    busy = active = 0.0
    found: list[tuple[NDArray[np.int64], Floats, Floats]] = []
    while rows.size:
        asks, ends = due[rows].argmin(1), done[rows].argmin(1)
        rate = np.minimum(1.0, cores / np.maximum(searching[rows], 1))
        by_clock = due[rows, asks]
        by_work = now[rows] + (done[rows, ends] - served[rows]) / rate
        then = np.minimum(by_clock, by_work)
        counted = np.clip(np.minimum(then, end) - np.maximum(now[rows], warmup), 0.0, None)
        busy += float((counted * np.minimum(searching[rows], cores)).sum())
        active += float((counted * searching[rows]).sum())
        left = then < end
        if not left.all():
            rows, asks, ends, rate, by_clock, by_work, then = (
                every[left] for every in (rows, asks, ends, rate, by_clock, by_work, then)
            )
        served[rows] += (then - now[rows]) * rate
        now[rows] = then
        who = np.where(by_work < by_clock, ends, asks)
        ending = np.isfinite(done[rows, who]) | (begun_at[rows, who] > 0.0)

        over = rows[ending], who[ending]
        alone = np.minimum(work[over], due[over] - begun_at[over])
        ripe = begun_at[over] >= warmup
        wait = now[over[0]] - begun_at[over] - alone
        share = (served[over[0]] - began[over]) / alone
        found.append((kind[over][ripe], np.maximum(wait, 0.0)[ripe], np.minimum(share, 1.0)[ripe]))
        due[over] = now[over[0]] + drawn("think", kind[over])
        done[over] = np.inf
        begun_at[over] = 0.0
        searching[over[0]] -= 1

        new = rows[~ending], who[~ending]
        work[new] = drawn("work", kind[new])
        began[new], begun_at[new] = served[new[0]], now[new[0]]
        done[new] = served[new[0]] + work[new]
        due[new] = now[new[0]] + drawn("limit", kind[new])
        searching[new[0]] += 1
    which, waits, got = (np.concatenate(part) for part in zip(*found, strict=True))
    return Searches(which, waits, got, busy / seconds / hosts, active / seconds / hosts)


def _drawn(draw: np.random.Generator, mean: Floats, spread: Floats) -> Floats:
    lognormal = mean * np.exp(spread * draw.standard_normal(mean.size).reshape(mean.shape) - spread**2 / 2)
    if (spread >= 0).all():
        return lognormal
    return np.where(spread < 0, mean * draw.standard_exponential(mean.size).reshape(mean.shape), lognormal)
