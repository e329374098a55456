"""Everything around the board as text: captions, clocks, thinking, history, status."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from hnefi.engine.compile.progress import Progress
from hnefi.protocol.hosts.text_table import clip, pad, width

from .theme import ASCII, Fragment, Glyphs, glyphs
from .values import Clock, Entry, Line, Thinking, View

LOGISTIC: Final = math.log(64 / 36) / 100
"""Log-odds per centipawn: 100 centipawns are an expected score of 64 %."""
TENTHS: Final = 20_000
"""Milliseconds below which a clock shows tenths."""

Row = tuple[Fragment, ...]


# Below the board


def captions(view: View, columns: int, signs: Glyphs = ASCII) -> list[Row]:
    """The lines below a board: who is to move or how it ended, captures, last move, clocks."""
    rows: list[Row] = [(("class:title", clip(headline(view), columns, signs.more)),)]
    board = view.board
    facts = []
    if view.game == "tafl":
        facts.append(f"captures: {view.sides[0]} {board.captures[0]}, {view.sides[1]} {board.captures[1]}")
    if current := _current(view):
        facts.append(f"last: {current.long}")
    if view.mode == "replay":
        facts.append(f"ply {view.ply} of {len(view.history)}")
    if facts:
        rows.append((("class:dim", clip(signs.between.join(facts), columns, signs.more)),))
    if view.clock is not None:
        rows += clock_rows(view.clock, view.sides, columns, signs)
    return rows


def headline(view: View) -> str:
    """The side to move, or how the game ended."""
    if view.end is not None:
        result = view.end.result
        won = "draw" if result == "draw" else f"{view.sides['ad'.index(result)]} win"
        return view.end.words or f"{won}: {view.end.reason.replace('_', ' ')}"
    side = view.sides["ad".index(view.board.side)]
    if view.thinking is not None and view.thinking.running and view.thinking.purpose == "move":
        return f"{side} to move: {view.thinking.who} is thinking"
    paused = " (paused)" if view.paused else ""
    return f"{side} to move{paused}"


def _current(view: View) -> Entry | None:
    return next((entry for entry in view.history if entry.is_current), None)


# Clocks


def time_text(milliseconds: int) -> str:
    """`1:05:09`, `4:59`, `0:09.3`; never below zero."""
    left = max(0, milliseconds)
    if left < TENTHS:
        return f"0:{left // 1000:02}.{left % 1000 // 100}"
    # Rounded up: a clock that shows 0:30 has at most that.
    minutes, seconds = divmod(-(-left // 1000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def clocks(clock: Clock, sides: tuple[str, str], signs: Glyphs = ASCII) -> Row:
    """Both clocks; the running one is marked by an arrow and a colour."""
    made: list[Fragment] = []
    for index, letter in enumerate("ad"):
        runs = clock.running == letter
        mark = signs.arrow if runs else " "
        text = f"{mark}{sides[index]} {time_text(clock.left[index])} "
        made += [("class:running" if runs else "class:dim", text), ("", " ")]
    return tuple(made[:-1])


def clock_rows(clock: Clock, sides: tuple[str, str], columns: int, signs: Glyphs = ASCII) -> list[Row]:
    """The clocks in one row, or in two if they do not fit."""
    together = clocks(clock, sides, signs)
    if sum(width(text) for _, text in together) <= columns:
        return [together]
    made: list[Row] = []
    for index, letter in enumerate("ad"):
        runs = clock.running == letter
        text = f"{signs.arrow if runs else ' '}{time_text(clock.left[index])} {sides[index]}"
        made.append((("class:running" if runs else "class:dim", clip(text, columns, signs.more)),))
    return made


# Thinking


def score_text(line: Line, sides: tuple[str, str] = ("attackers", "defenders")) -> str:
    """The score with the side that it favours: `attackers +0.35`, `defenders win in 3`, `even`; nothing if unknown."""
    if line.mate is not None:
        if line.mate == 0:
            return "decided"
        return f"{sides[0 if line.mate > 0 else 1]} win in {abs(line.mate)}"
    if line.cp is None:
        return ""
    if line.cp == 0:
        return "even"
    return f"{sides[0 if line.cp > 0 else 1]} +{abs(line.cp) / 100:.2f}"


def chance(line: Line) -> float | None:
    """The expected score of the attackers, 0 to 1; None if unknown."""
    if line.mate is not None:
        return 0.5 if line.mate == 0 else float(line.mate > 0)
    if line.wdl is not None:
        return min(1.0, max(0.0, (line.wdl[0] + line.wdl[1] / 2) / 1000))
    if line.cp is None:
        return None
    return 1 / (1 + math.exp(-LOGISTIC * max(-3000, min(3000, line.cp))))


def bar(share: float, columns: int, signs: Glyphs = ASCII) -> Row:
    """How probable a win is for either side: `62% #######---- 38%`, the attackers on the left."""
    percent = round(100 * share)
    left, right = f"{percent:>3}% ", f" {100 - percent}%"
    room = max(1, columns - len(left) - 5)
    filled = round(share * room)
    return (
        ("class:bar-a", left + signs.full * filled),
        ("class:bar-d", signs.rest * (room - filled) + right),
    )


def number_text(number: int) -> str:
    """`950`, `12.3k`, `4.1M`."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return str(number)


def search_text(thinking: Thinking, signs: Glyphs = ASCII) -> str:
    """Depth, positions and speed of the first line."""
    if not thinking.lines:
        return "thinking" if thinking.running else ""
    first = thinking.lines[0]
    parts = []
    if first.depth is not None:
        parts.append(f"depth {first.depth}")
    if first.nodes is not None:
        parts.append(f"{number_text(first.nodes)} nodes")
    if first.nps is not None:
        parts.append(f"{number_text(first.nps)}/s")
    return signs.between.join(parts)


def thinking_lines(view: View, columns: int) -> list[str]:
    """A search as plain lines: who is thinking and how deep, then its lines, best first."""
    if view.thinking is None:
        return []
    signs = glyphs(view.settings)
    head = f"{view.thinking.who}: {search_text(view.thinking, signs)}".removesuffix(": ")
    lines = [" ".join((score_text(line, view.sides), *line.pv)) for line in view.thinking.lines]
    numbered = len(lines) > 1
    lines = [f"{number}. {text}" if numbered else text for number, text in enumerate(lines, start=1)]
    return [clip(line, columns, signs.more) for line in (head, *lines) if line]


def thinking_pane(view: View, columns: int, rows: int, signs: Glyphs = ASCII) -> list[Row]:
    """The analysis: who is thinking and how deep, the bar, and for every line its score above its moves."""
    thinking = view.thinking
    if thinking is None or rows < 1 or not (thinking.lines or thinking.running):
        return []
    purpose = {"move": "", "hint": " (hint)", "analysis": " (analysis)"}[thinking.purpose]
    made: list[Row] = [(("class:title", clip(f"{thinking.who}{purpose}", columns, signs.more)),)]
    if text := search_text(thinking, signs):
        made.append((("class:dim", clip(text, columns, signs.more)),))
    share = chance(thinking.lines[0]) if thinking.lines else None
    if share is not None:
        made.append(bar(share, columns, signs))
    for line in thinking.lines:
        score = score_text(line, view.sides)
        favoured = (
            "class:defender"
            if (line.mate if line.mate is not None else line.cp or 0) < 0
            else "class:attacker"
        )
        number = f"{line.multipv}. " if len(thinking.lines) > 1 else ""
        made.append((("class:dim", number), (favoured, clip(score, columns - len(number), signs.more))))
        # A few plies show what a line is about; the rest follows in the second line of the pane.
        made += [(("", f"  {part}"),) for part in _wrapped(line.pv, columns - 2, 2, signs)]
    return made[:rows]


def _wrapped(words: Sequence[str], columns: int, lines: int, signs: Glyphs) -> list[str]:
    """Words on at most `lines` lines; omissions are marked at the end."""
    made = [""]
    for word in words:
        longer = f"{made[-1]} {word}".lstrip()
        if width(longer) <= columns or not made[-1]:
            made[-1] = clip(longer, columns, signs.more)
        elif len(made) < lines:
            made.append(clip(word, columns, signs.more))
        else:
            made[-1] = clip(f"{made[-1]} {signs.more}", columns, signs.more)
            break
    return [line for line in made if line]


# History


def history_pane(view: View, columns: int, rows: int, signs: Glyphs = ASCII) -> list[Row]:
    """The moves around the current one, a row for every turn; `+2` counts variations, `"` marks a comment."""
    number = max(2, len(str(view.history[-1].turn))) if view.history else 2
    longest = max((width(_move_text(entry)) for entry in view.history), default=0)
    cell = max(6, min(longest + 2, (columns - number - 2) // 2))
    made: list[Row] = []
    at = 0
    for turn, group in groupby(view.history, key=lambda entry: entry.turn):
        entries = list(group)
        for first in range(0, len(entries), 2):
            head = f"{turn}." if first == 0 else ""
            row: list[Fragment] = [("class:dim", f"{head:>{number + 1}} ")]
            for entry in entries[first : first + 2]:
                if entry.is_current:
                    at = len(made)
                text = clip(_move_text(entry), cell - 1, signs.more)
                row += [(_move_style(entry), text), ("", " " * (cell - width(text)))]
            made.append(_fitted(row, columns))
    top = max(0, min(at - rows // 2, len(made) - rows))
    return made[top : top + rows]


def _move_text(entry: Entry) -> str:
    """A move with its marks."""
    more = f"+{entry.variations}" if entry.variations else ""
    return entry.long + more + ('"' if entry.comment else "")


def _move_style(entry: Entry) -> str:
    if entry.is_current:
        return "class:current"
    return "class:attacker" if entry.side == "a" else "class:defender"


def _fitted(row: Sequence[Fragment], columns: int) -> Row:
    """As much of a row as fits."""
    made = []
    for style, text in row:
        if columns <= 0:
            break
        made.append((style, text[:columns]))
        columns -= len(text)
    return tuple(made)


# Status


def compiling_text(progress: Progress) -> str:
    """What is being compiled, the time so far, and the time left."""
    done = f"{progress.done}/{progress.total} {progress.part}"
    left = "" if progress.remaining is None else f", about {progress.remaining:.0f} s left"
    when = "at each start" if progress.unkept else "for the first start"
    who = "another process of hnefi compiles" if progress.elsewhere else f"compiling {when}"
    return f"{who}: {done}, {progress.elapsed:.0f} s{left}"


def status(view: View, columns: int, signs: Glyphs = ASCII, notes: Sequence[str] = ()) -> Row:
    """The status line, padded: `notes`, then the game and its players."""
    attackers, defenders = view.names
    parts = [*filter(None, (view.compiling, view.reviewing)), *notes, view.variant]
    if attackers or defenders:
        parts.append(f"{view.sides[0]}: {attackers}, {view.sides[1]}: {defenders}")
    if view.mode != "play":
        parts.append(view.mode + (" (paused)" if view.paused else ""))
    return (("class:status", pad(" " + signs.between.join(parts), columns, signs.more)),)
