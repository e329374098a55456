"""The view of a table: what is on screen is a function of this, and of nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterable

from hnefi.engine.catalogue import GAMES

from .game_session import GameSession
from .panes import compiling_text
from .positions import board_of
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
_PLAYED = ("history", "goto", "variation", "annotate", "replay", "review", "save", "copy")


def view_of(
    session: GameSession,
    settings: Settings,
    *,
    log: Iterable[LogLine] = (),
    question: str | None = None,
    flipped: bool = False,
    closed: bool = False,
    waiting: bool = False,
) -> View:
    """Everything that can be seen now; `waiting` is whether a game saved by itself waits for `continue`."""
    variant, game, node = session.variant, session.game, session.game.at
    kinds: tuple[SeatKind, SeatKind] = (_kind(session, "a"), _kind(session, "d"))
    engine = next((player.opponent for player in session.players.values() if player.opponent), None)
    return View(
        variant=variant.name,
        game=variant.game,
        board=board_of(variant, session.special, session.facts, node.text, node.captures or ()),
        settings=settings,
        sides=GAMES[variant.game].sides,
        names=session.names,
        kinds=kinds,
        legal=session.facts.legal if session.end is None else (),
        level=None if engine is None else engine.spec.level,
        clock=None if session.clock is None else session.clock.view(time.monotonic()),
        thinking=session.questions.thinking,
        history=game.entries(),
        ply=node.ply,
        end=session.end,
        mode=session.mode,
        paused=session.paused,
        flipped=flipped,
        ready=session.ready,
        closed=closed,
        prompt=_prompt(session, question),
        question=question,
        compiling=compiling_of(session),
        reviewing="" if session.review is None else session.review.progress,
        words=_words(session, question, waiting),
        log=tuple(log),
        place=session.place,
    )


def compiling_of(session: GameSession) -> str:
    """What an engine compiles before it can work, if one does."""
    progress = session.compiling
    return "" if progress is None else compiling_text(progress)


def _kind(session: GameSession, side: SideLetter) -> SeatKind:
    if session.watcher is not None:
        return "engine"
    return "person" if session.players[side].opponent is None else "engine"


def _prompt(session: GameSession, question: str | None) -> str:
    """What stands before the `>`: who is to move, or what else goes on."""
    side = session.side_word(session.side)
    if question is not None:
        return "yes or no"
    if session.analysing:
        return f"analysis, {side} to move"
    if session.mode == "replay":
        return f"ply {session.game.at.ply} of {session.game.at.tip().ply}"
    if session.end is not None:
        return "game over"
    if session.watcher is None and session.players[session.side].opponent is None:
        return side
    if session.mode == "watch":
        return "paused" if session.paused else "watching"
    return f"{side} wait for go" if session.paused else f"{side} think"


def _words(session: GameSession, question: str | None, waiting: bool) -> tuple[str, ...]:
    """The words that make sense now."""
    if question is not None:
        return ("yes", "no")
    words = [*_ALWAYS]
    if session.game.root.children:
        words += _PLAYED
        if session.game.at.ply:
            words.append("undo")
        if session.game.at.children:
            words.append("redo")
    else:
        words += ["paste", "copy"]
    if waiting:
        words.append("continue")
    if session.end is None:
        words += ["moves", "eval", "analyze", "side", "level", "player", "engine", "clock", "hint", "go"]
        if session.mode == "play":
            words += ["resign", "draw"]
    if session.mode in ("watch", "replay"):
        words += ["pause", "step", "speed"]
    if session.stoppable:
        words.append("stop")
    if session.questions.thinking is not None:
        words.append("pv")
    return tuple(sorted(words))
