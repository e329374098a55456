"""The view of a table: what is on screen is a function of this, and of nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterable

from .game_session import GameSession
from .panes import compiling_text
from .positions import SIDES, board_of
from .settings import Settings
from .values import LogLine, SeatKind, SideLetter, View

_ALWAYS = (
    "board",
    "flip",
    "rules",
    "settings",
    "set",
    "help",
    "quit",
    "new",
    "variant",
    "variants",
    "load",
    "watch",
)
_PLAYED = ("history", "goto", "variation", "annotate", "replay", "save", "copy")


def view_of(
    table: GameSession,
    settings: Settings,
    *,
    log: Iterable[LogLine] = (),
    question: str | None = None,
    flipped: bool = False,
    closed: bool = False,
    waiting: bool = False,
) -> View:
    """Everything that can be seen now; `waiting` is whether a game saved by itself waits for `continue`."""
    variant, game, node = table.variant, table.game, table.game.at
    kinds: tuple[SeatKind, SeatKind] = (_kind(table, "a"), _kind(table, "d"))
    engine = next((seat.opponent for seat in table.seats.values() if seat.opponent), None)
    return View(
        variant=variant.name,
        game=variant.game,
        board=board_of(variant, table.special, table.facts, node.text, node.captures or ()),
        settings=settings,
        sides=SIDES[variant.game],
        names=table.names,
        kinds=kinds,
        legal=table.facts.legal if table.end is None else (),
        level=None if engine is None else engine.spec.level,
        clock=None if table.clock is None else table.clock.view(time.monotonic()),
        thinking=table.questions.thinking,
        history=game.entries(),
        ply=node.ply,
        end=table.end,
        mode=table.mode,
        paused=table.paused,
        flipped=flipped,
        ready=table.ready,
        closed=closed,
        prompt=_prompt(table, question),
        question=question,
        compiling=compiling_of(table),
        words=_words(table, question, waiting),
        log=tuple(log),
        place=table.place,
    )


def compiling_of(table: GameSession) -> str:
    """What an engine compiles before it can work, if one does."""
    progress = table.compiling
    return "" if progress is None else compiling_text(progress)


def _kind(table: GameSession, side: SideLetter) -> SeatKind:
    if table.watcher is not None:
        return "engine"
    return "person" if table.seats[side].opponent is None else "engine"


def _prompt(table: GameSession, question: str | None) -> str:
    """What stands before the `>`: who is to move, or what else goes on."""
    side = table.side_word(table.side)
    if question is not None:
        return "yes or no"
    if table.analysing:
        return f"analysis, {side} to move"
    if table.mode == "replay":
        return f"ply {table.game.at.ply} of {table.game.at.tip().ply}"
    if table.end is not None:
        return "game over"
    if table.watcher is None and table.seats[table.side].opponent is None:
        return side
    if table.mode == "watch":
        return "paused" if table.paused else "watching"
    return f"{side} wait for go" if table.paused else f"{side} think"


def _words(table: GameSession, question: str | None, waiting: bool) -> tuple[str, ...]:
    """The words that make sense now."""
    if question is not None:
        return ("yes", "no")
    words = [*_ALWAYS]
    if table.game.root.children:
        words += _PLAYED
        if table.game.at.ply:
            words.append("undo")
        if table.game.at.children:
            words.append("redo")
    else:
        words += ["paste", "copy"]
    if waiting:
        words.append("continue")
    if table.end is None:
        words += ["moves", "eval", "analyze", "side", "level", "player", "engine", "clock", "hint", "go"]
        if table.mode == "play":
            words += ["resign", "draw"]
    if table.mode in ("watch", "replay"):
        words += ["pause", "step", "speed"]
    if table.stoppable:
        words.append("stop")
    if table.questions.thinking is not None:
        words.append("pv")
    return tuple(sorted(words))
