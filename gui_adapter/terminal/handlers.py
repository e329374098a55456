"""From every word to what it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from . import handlers_keep as keep
from . import handlers_look as look
from . import handlers_play as game
from .values import Reply

if TYPE_CHECKING:
    from .controller import Controller

Handler = Callable[["Controller", str], Awaitable[Reply]]

play_move = game.play_move

HANDLERS: Final[Mapping[str, Handler]] = {
    "new": game.new,
    "variant": game.variant,
    "side": game.side,
    "level": game.level,
    "player": game.player,
    "engine": game.engine,
    "clock": game.clock,
    "go": game.go,
    "stop": game.stop,
    "undo": game.undo,
    "redo": game.redo,
    "resign": game.resign,
    "draw": game.draw,
    "yes": game.yes,
    "no": game.no,
    "board": look.board,
    "flip": look.flip,
    "moves": look.moves,
    "hint": look.hint,
    "eval": look.evaluate,
    "pv": look.pv,
    "analyze": look.analyze,
    "history": look.history,
    "goto": look.go_to,
    "variation": look.variation,
    "annotate": look.annotate,
    "replay": look.replay,
    "pause": look.pause,
    "step": look.step,
    "speed": look.speed,
    "watch": look.watch,
    "rules": look.rules,
    "save": keep.save,
    "load": keep.load,
    "continue": keep.go_on,
    "copy": keep.copy,
    "paste": keep.paste,
    "variants": keep.variants,
    "settings": keep.settings,
    "set": keep.set_value,
    "help": keep.help_with,
    "quit": keep.leave,
}
