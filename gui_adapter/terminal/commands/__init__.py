"""The commands that may be typed, each with the function that carries it out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from ..values import Reply
from . import files, play, view

if TYPE_CHECKING:
    from ..controller import Controller

Handler = Callable[["Controller", str], Awaitable[Reply]]

play_move = play.play_move

HANDLERS: Final[Mapping[str, Handler]] = {
    "new": play.new,
    "variant": play.variant,
    "side": play.side,
    "level": play.level,
    "player": play.player,
    "engine": play.engine,
    "clock": play.clock,
    "go": play.go,
    "stop": play.stop,
    "undo": play.undo,
    "redo": play.redo,
    "resign": play.resign,
    "draw": play.draw,
    "yes": play.yes,
    "no": play.no,
    "board": view.board,
    "flip": view.flip,
    "moves": view.moves,
    "hint": view.hint,
    "eval": view.evaluate,
    "tb": view.solved,
    "pv": view.pv,
    "analyze": view.analyze,
    "history": view.history,
    "goto": view.go_to,
    "variation": view.variation,
    "annotate": view.annotate,
    "replay": view.replay,
    "review": view.review,
    "pause": view.pause,
    "step": view.step,
    "speed": view.speed,
    "watch": view.watch,
    "rules": view.rules,
    "save": files.save,
    "load": files.load,
    "continue": files.go_on,
    "copy": files.copy,
    "paste": files.paste,
    "variants": files.variants,
    "settings": files.settings,
    "set": files.set_value,
    "help": files.help_with,
    "quit": files.leave,
}
