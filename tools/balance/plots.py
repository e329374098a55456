"""Figures of a run: the attackers' score against strength for every rule set, and compared with people.

SVG, and optionally PNG. Nothing is distinguished only by colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from ..common.svg_chart import (
    INK,
    LEADING,
    MARGIN,
    SOFT,
    Curve,
    Panel,
    Scale,
    Sheet,
    Word,
    width_of,
    wrapped,
)
from . import people
from .measures import Interval
from .outcome import Outcome

ACROSS = 4
WIDE, HIGH, GAP = 212, 150, 16
LEFT = 62
SMALL = 10.5
SLANT = 55
PEOPLE = "7 4"
PER_CENT = [(share, str(share)) for share in range(0, 101, 20)]
SCORE = Curve("attackers' score, 95 % interval", INK, "circle", width=1.4, size=3.5)


def draw(outcome: Outcome, folder: Path, *, png: bool = False) -> list[Path]:
    """Draw all figures into `folder`; returns the files, none without cells. `png` needs matplotlib."""
    if not outcome.cells:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    pictures = figures(outcome)
    return [
        file
        for name, sheet, height in pictures
        for file in sheet.save(folder / f"{name}.svg", height, png=png)
    ]


def figures(outcome: Outcome) -> Iterator[tuple[str, Sheet, float]]:
    """All figures with their names and heights; none without cells."""
    if not outcome.cells:
        return
    yield "strength", *_strength(outcome)
    if len(people.compared(outcome.of(outcome.plan.players[-1]), counted=False)) >= people.FEWEST:
        yield "people", *_people(outcome)


def _strength(outcome: Outcome) -> tuple[Sheet, float]:
    """A panel for each rule set: score with interval over players, draws as bars, people as a dashed line."""
    players = outcome.plan.players
    labels = list(dict.fromkeys(cell.entrant.label for cell in outcome.cells))
    across = min(ACROSS, len(labels))
    games = f"{outcome.plan.games} games a point"
    if outcome.plan.strongest != outcome.plan.games:
        games += f", {outcome.plan.strongest} of {players[-1]}"
    # Slanted names of players may extend far to the left of their ticks.
    aside = max(width_of(player, SMALL) for player in players) * math.cos(math.radians(SLANT))
    left = max(LEFT, aside + MARGIN - 0.6 * WIDE / (len(players) + 0.2))
    width = max(460.0, left + across * (WIDE + GAP) + MARGIN)
    title = (
        "Attackers' score of equal players, in per cent",
        f"{games}, random openings, seed {outcome.plan.seed}",
    )
    sheet = Sheet(width, title)
    looks = [SCORE, Curve("share of draws", "#cfcad6", width=11)]
    theirs = [row for row in people.table() if row.rules in labels]
    if theirs:
        looks.append(Curve("people's score", SOFT, dash=PEOPLE))
    top = sheet.legend_below(looks, sheet.top + 4)
    heads = {label: wrapped(label, WIDE, SMALL) for label in labels}
    lines = max(map(len, heads.values()))
    below = top
    for place, label in enumerate(labels):
        column = place % across
        if column == 0:
            top = below + 8 + LEADING * SMALL * lines
        panel = Panel(
            sheet,
            left + column * (WIDE + GAP),
            top,
            WIDE,
            HIGH,
            Scale(-0.6, len(players) - 0.4),
            Scale(0, 100),
        )
        for number, part in enumerate(reversed(heads[label])):
            y = panel.top - 6 - number * LEADING * SMALL
            sheet.add(Word(panel.left + WIDE / 2, y, part, SMALL, "middle"))
        panel.ticks_left(PER_CENT if column == 0 else [(share, "") for share, _ in PER_CENT], size=SMALL)
        found = [(i, m) for i, player in enumerate(players) if (m := outcome.at(label, player)) is not None]
        for i, m in found:
            if m.draws:
                panel.bar(i, 0.8, 0, 100 * m.draws / m.games, "#cfcad6")
        panel.level(50, SOFT, 0.8)
        for known in theirs:
            if known.rules == label:
                panel.level(100 * known.score, SOFT, 1.4, PEOPLE)
        panel.curve(
            [(i, 100 * m.score) for i, m in found], SCORE, [_reach(m.score_interval) for _, m in found]
        )
        panel.frame()
        # Players are named where there is no panel below.
        last = place + across >= len(labels)
        named = [(i, player if last else "") for i, player in enumerate(players)]
        below = max(below, panel.ticks_below(named, turn=SLANT, size=SMALL))
        if column == 0:
            panel.called_left("per cent", left - 42)
    return sheet, below + MARGIN


def _people(outcome: Outcome) -> tuple[Sheet, float]:
    """People's scores against the strongest player's; rows are numbered, with their names beside the picture."""
    player = outcome.plan.players[-1]
    pairs = people.compared(outcome.of(player), counted=False)
    names = [f"{place} {row.name}" for place, (row, _) in enumerate(pairs, 1)]
    side = 360
    width = LEFT + side + 16 + 38 + min(300.0, max(map(width_of, names))) + MARGIN
    sheet = Sheet(
        width,
        (
            f"Attackers' score: people and {player}",
            f"filled: {people.COUNTED} games of people or more; 95 % intervals",
        ),
    )
    ends = [100 * row.score for row, _ in pairs]
    ends += [end for _, m in pairs for end in _reach(m.score_interval)]
    scale = Scale(10 * math.floor((min(ends) - 2) / 10), 10 * math.ceil((max(ends) + 2) / 10))
    panel = Panel(sheet, LEFT, sheet.top + 14, side, side, scale, scale)
    ticks = [(share, str(share)) for share in range(int(scale.low), int(scale.high) + 1, 10)]
    panel.ticks_left(ticks)
    below = panel.called_below("people, per cent", panel.ticks_below(ticks, grid=True))
    panel.called_left(f"{player}, per cent", 20)
    panel.line([(scale.low, scale.low), (scale.high, scale.high)], SOFT, 1.0)
    looks = [
        Curve(name, INK, "circle", width=0, fill=INK if row.counted else "#ffffff")
        for name, (row, _) in zip(names, pairs, strict=True)
    ]
    places = [panel.at(100 * row.score, 100 * m.score) for row, m in pairs]
    for number, ((row, m), look, (x, y)) in enumerate(zip(pairs, looks, places, strict=True), 1):
        panel.error(100 * row.score, *_reach(m.score_interval))
        panel.points([(100 * row.score, 100 * m.score)], look)
        crowded = any(0 < other - x < 24 and abs(height - y) < 16 for other, height in places)
        sheet.add(Word(x - 9 if crowded else x + 9, y - 3, str(number), SMALL, "end" if crowded else "start"))
    panel.frame()
    return sheet, max(below, sheet.legend_beside(looks, panel.right + 16, panel.top)) + MARGIN


def _reach(interval: Interval) -> tuple[float, float]:
    """An interval as percentages."""
    low, high = interval
    return 100 * low, 100 * high
