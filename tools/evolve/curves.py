"""The course of runs as a picture, by generation: fitness and results of matches for evolutions, errors and results of
games for temporal differences."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import mean
from typing import Any

from hnefi.engine import durable

from ..common.svg_chart import MARGIN, Curve, Panel, Scale, Sheet, curve_of, steps
from . import compare, options
from .folder import FolderError, read_config, read_log

CURVES = "curves.svg"
TABLE = "curves.csv"
REDRAWN = 20.0
"""Seconds between two drawings of the curves of a run."""
LEFT, GAP, WIDE, HEIGHT = 62, 78, 380, 280
FITNESS = [(value, str(value)) for value in range(5)]
SHARES = [(share, str(share)) for share in range(0, 101, 20)]
PEERS = "peers"
"""Matches among the individuals themselves: half of them are won, whatever happens."""

Values = Mapping[str, Sequence[float]]
"""A value for each generation from the first, by name of the curve."""
Field = tuple[str, Sequence[tuple[float, str]], Sequence[Values]]
"""A panel over the generations: the name and the ticks of its y axis, and the curves of each run."""


def write(out: Path, runs: Sequence[Path], *, png: bool = False) -> list[Path]:
    """Draw all `runs` of the folder `out` into it, and write the numbers of their logs as a table; returns the files.
    FolderError if a log is damaged, or the files cannot be written."""
    configs = [read_config(run) for run in runs]
    logs = [read_log(run) for run in runs]
    if not any(logs):
        raise FolderError(f"{out}: no generation is finished: expected at least one")
    try:
        sheet, height = draw(_title(configs), [log for log in logs if log])
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, ZeroDivisionError):
        raise FolderError(f"{out}: expected logs as hnefi evolve writes them") from None
    table = compare.text_of(
        [((str(config["seed"]),), log) for config, log in zip(configs, logs, strict=True)], ("seed",)
    )
    try:
        durable.put(out / TABLE, table.encode())
        return [*sheet.save(out / CURVES, height, png=png), out / TABLE]
    except OSError as error:
        raise FolderError(
            f"{out}: {error.strerror or error}: expected a folder that can be written to"
        ) from None


class Redrawn:
    """Redraws the curves now and then during runs."""

    def __init__(self, out: Path, runs: Sequence[Path], clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._runs, self._clock = out, runs, clock
        self._last = clock()

    def tick(self) -> None:
        """Call after every generation. Failures to draw are reported only at the end."""
        if self._clock() - self._last < REDRAWN:
            return
        with suppress(FolderError):
            write(self._out, self._runs)
        self._last = self._clock()


def _title(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    first = configs[0]
    seeds = sorted(config["seed"] for config in configs)
    said = (
        f"seed {seeds[0]}"
        if len(seeds) == 1
        else f"{len(seeds)} seeds from {seeds[0]}: mean, thin lines single seeds"
    )
    if first["algorithm"] == options.ZERO:
        size = f"{first['games']} games an iteration, {first['simulations']} simulations"
    elif first["algorithm"] in options.GRADIENTS:
        size = f"{first['generation_games']} games a generation against {first['opponent']}"
    elif first["algorithm"] == options.TORUS:
        size = f"{first['side']} x {first['side']} players"
    else:
        size = f"{first['mu']}+{first['lambda']}" if "mu" in first else f"{first['lambda']} candidates"
    variant = first["variant"]
    variant = Path(variant).stem if variant.endswith(".toml") else variant
    return [
        f"{first['algorithm']} on {variant}",
        f"{first['network']}, {size}, {said}",
    ]


def draw(title: Sequence[str], logs: Sequence[Sequence[Mapping[str, Any]]]) -> tuple[Sheet, float]:
    """The sheet and its height; each log is a run."""
    fields = _fields(logs)
    sheet = Sheet(LEFT + len(fields) * WIDE + (len(fields) - 1) * GAP + 2 * MARGIN, title)
    names = dict.fromkeys(name for _, _, runs in fields for run in runs for name in run)
    looks = {name: _look(name, number) for number, name in enumerate(names)}
    top = sheet.legend_below(list(looks.values()), sheet.top + 4, LEFT) + 4
    longest = max(map(len, logs))
    below = top
    for column, (label, ticks, runs) in enumerate(fields):
        low, high = ticks[0][0], ticks[-1][0]
        margin = 0.03 * (high - low)
        left = LEFT + column * (WIDE + GAP)
        panel = Panel(
            sheet, left, top, WIDE, HEIGHT, Scale(1, max(2, longest)), Scale(low - margin, high + margin)
        )
        panel.ticks_left(ticks)
        lowest = panel.ticks_below(_whole(longest), grid=True)
        below = max(below, panel.called_below("generation", lowest))
        _curves(panel, runs, looks)
        panel.frame()
        panel.called_left(label, left - 46)
    return sheet, below + MARGIN


def _fields(logs: Sequence[Sequence[Mapping[str, Any]]]) -> list[Field]:
    """The panels for an evolution, for iterations of AlphaZero, or for lessons."""
    if "loss_policy" in logs[0][0]:
        losses = [
            {
                "value": [entry["loss_value"] for entry in log],
                "policy": [entry["loss_policy"] for entry in log],
                "entropy of the targets": [entry["entropy"] for entry in log],
            }
            for log in logs
        ]
        highest = max(max(values) for run in losses for values in run.values())
        return [
            ("loss", _ticks(highest), losses),
            ("share of the games, per cent", SHARES, [_gates(log) for log in logs]),
            *_measured(logs),
            *_speed(logs),
        ]
    if "error" in logs[0][0]:
        errors = [{"mean squared error": [entry["error"] for entry in log]} for log in logs]
        highest = max(max(run["mean squared error"]) for run in errors)
        return [
            ("mean squared error", _ticks(highest), errors),
            ("share of the games, per cent", SHARES, [_results(log) for log in logs]),
        ]
    if "first_won" in logs[0][0]:
        sizes = [
            {"size of the weights": [entry["weight_size"] for entry in log],
             "their spread in the population": [entry["weight_spread"] for entry in log]}
            for log in logs
        ]  # fmt: skip
        highest = max(max(values) for run in sizes for values in run.values())
        return [
            ("share of the games, per cent", SHARES, [_torus(log) for log in logs]),
            ("weights", _ticks(highest), sizes),
            *_speed(logs),
        ]
    fitness = [{name: [entry[name] for entry in log] for name in ("best", "median")} for log in logs]
    return [
        ("fitness", FITNESS, fitness),
        ("share of the matches, per cent", SHARES, [_shares(log) for log in logs]),
        *_speed(logs),
    ]


def _measured(logs: Sequence[Sequence[Mapping[str, Any]]]) -> list[Field]:
    """Scores against opponents that never change, if a run measured them; NaN in generations without a measurement."""
    if not any("measured" in entry for log in logs for entry in log):
        return []
    names = dict.fromkeys(name for log in logs for entry in log for name in entry.get("measured", ()))
    runs = [
        {f"scored against {name}": [_scored(entry, name) for entry in log] for name in names} for log in logs
    ]
    return [("score, per cent", SHARES, runs)]


def _scored(entry: Mapping[str, Any], name: str) -> float:
    sides = entry.get("measured", {}).get(name)
    if sides is None:
        return math.nan
    won, drawn, lost = map(sum, zip(*sides, strict=True))
    return 100 * (won + drawn / 2) / max(1, won + drawn + lost)


def _speed(logs: Sequence[Sequence[Mapping[str, Any]]]) -> list[Field]:
    """Games per second, if all logs have the games and seconds of a generation."""
    found = [compare.columns(log).get(compare.SPEED) for log in logs]
    if any(speeds is None for speeds in found):
        return []
    runs = [{"games a second": speeds} for speeds in found if speeds is not None]
    highest = max(max(speeds) for speeds in found if speeds is not None)
    return [("games a second", _ticks(highest), runs)]


def _torus(log: Sequence[Mapping[str, Any]]) -> Values:
    """Percentages of games: won against Random in the last measurement, and won among neighbours by the best player of
    a generation and by the players who move first."""
    found = {
        "best among neighbours": [100 * entry["best"] for entry in log],
        "first player, among neighbours": [100 * entry["first_won"] for entry in log],
    }
    if all("v_random" in entry for entry in log):
        measured = [entry["v_random"] for entry in log]
        found |= {
            "the population against Random": [100 * one["mean"] for one in measured],
            "its best player against Random": [100 * one["best"] for one in measured],
        }
    return found


def _ticks(highest: float) -> list[tuple[float, str]]:
    """About five ticks from 0, and an end without a number."""
    ticks = [(value, f"{value:g}") for value in steps(0, highest or 1, 5)]
    return [*ticks, *([] if ticks[-1][0] >= highest else [(highest, "")])]


def _gates(log: Sequence[Mapping[str, Any]]) -> Values:
    """Percentages of games: won by the copy on either side, and by the attackers when a network plays itself."""
    found = {
        f"the copy as {side} won": [
            100 * entry[f"as_{side}"][0] / max(1, sum(entry[f"as_{side}"])) for entry in log
        ]
        for side in ("attackers", "defenders")
    }
    played = [max(1, sum(entry["winners"])) for entry in log]
    found["attackers won, in self-play"] = [
        100 * entry["winners"][0] / games for entry, games in zip(log, played, strict=True)
    ]
    return found


def _results(log: Sequence[Mapping[str, Any]]) -> Values:
    """Percentages of games: won by the learner, or by each side if it plays itself; drawn."""
    if any(sum(entry["results"]) for entry in log):
        found = {"won": [_percent(entry["results"][0], sum(entry["results"])) for entry in log]}
    else:
        sides = (("attackers won", 0), ("defenders won", 1))
        found = {
            name: [_percent(entry["winners"][side], entry["games"]) for entry in log] for name, side in sides
        }
    found["drawn"] = [_percent(entry["winners"][2], entry["games"]) for entry in log]
    return found


def _percent(some: int, all_: int) -> float:
    return 100 * some / max(1, all_)


def _look(name: str, number: int) -> Curve:
    look = curve_of(name, number)
    return Curve(name, look.colour, "", look.dash, 1.6)


def _whole(longest: int) -> Iterable[tuple[float, str]]:
    """Generations with a number on the axis."""
    return [
        (value, f"{value:g}") for value in steps(1, max(2, longest), 8) if value == int(value) and value >= 1
    ]


def _shares(log: Sequence[Mapping[str, Any]]) -> Values:
    """Percentages of matches: won against each fixed opponent, decided by captures, drawn."""
    found: dict[str, list[float]] = {}
    for kind in log[0]["kinds"]:
        if kind != PEERS:
            wins = [entry["kinds"].get(kind, {"matches": (0, 0, 0)})["matches"] for entry in log]
            found[f"won against {kind}"] = [100 * won[0] / max(1, sum(won)) for won in wins]
    found["decided by captures"] = [100 * entry["by_captures"] / max(1, entry["matches"]) for entry in log]
    found["drawn"] = [100 * entry["drawn"] / max(1, entry["matches"]) for entry in log]
    return found


def _curves(panel: Panel, runs: Sequence[Values], looks: Mapping[str, Curve]) -> None:
    """Draw every run as a thin line, and their mean as a thick one up to the last generation that all have reached."""
    for name in dict.fromkeys(name for run in runs for name in run):
        seeds = [run[name] for run in runs if name in run]
        look = looks[name]
        if len(seeds) > 1:
            for seed in seeds:
                panel.line(_known(seed), look.colour, 0.5)
        points = _known(map(mean, zip(*seeds, strict=False)))
        panel.line(points, look.colour, look.width, look.dash)
        if len(points) == 1:
            generation, value = points[0]
            panel.error(generation, value, value, look.colour)


def _known(values: Iterable[float]) -> list[tuple[int, float]]:
    """The generations with a value, each with that value."""
    return [(generation, value) for generation, value in enumerate(values, 1) if not math.isnan(value)]
