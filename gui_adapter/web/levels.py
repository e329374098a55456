"""The level `auto` for pages: the one nearest to a person's rating, which changes with the results of games.

On a private server the rating is that of `hnefi play --level auto`. If several people have access through a token, or
if nothing may be written to disk, each browser keeps its own rating and sends it along.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hnefi.engine.catalogue import GAMES
from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.sessions.engine_process import RequestError
from hnefi.protocol.hosts.standing import RATINGS, Ladder, StandingError

from . import frames
from .frames import FrameError

RATINGS_LIMIT: Final = 4096
"""Maximum characters of the ratings that a browser sends along."""
SCORES: Final = {"won": 1.0, "drawn": 0.5, "lost": 0.0}


class Levels:
    """One page's level. `kept` says whether the rating is in the file of `hnefi play`."""

    def __init__(self, kept: bool) -> None:
        self._kept = kept
        self._ladder: Ladder | None = None

    def take(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        """The `level` frame in answer to a `level` frame: for the next game, after a `result` at `level` if given.

        FrameError, or RequestError if the file cannot be read or written.
        """
        ident = frame.get("id")
        game, result = frames.text(frame, "game", 16), frames.text(frame, "result", 16)
        if game not in GAMES:
            raise FrameError("bad_frame", f"game {shorten(game)}: expected one of {', '.join(GAMES)}", ident)
        if result and result not in SCORES:
            raise FrameError("bad_frame", f"result {shorten(result)}: expected won, drawn or lost", ident)
        ladder = self._ladder
        if ladder is None:
            brought = frames.text(frame, "ratings", RATINGS_LIMIT, lines=True)
            ladder = self._ladder = Ladder() if self._kept else Ladder.brought(brought)
        try:
            if result:
                level = frames.number(frame, "level")
                if level not in RATINGS:
                    raise FrameError("bad_frame", f"level {level}: expected 0 to {max(RATINGS)}", ident)
                ladder.take(game, level, SCORES[result])
            return {
                "t": "level",
                "id": ident,
                "level": ladder.level(game),
                "text": ladder.news(game) if result else ladder.words(game),
                "ratings": None if self._kept else ladder.text(),
            }
        except StandingError as error:
            raise RequestError("bad_scores", str(error)) from None
