"""The word `review`: begin one, show what it found, go from one remarkable move to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hnefi.protocol.hosts.assessment.remarks import SIGN

from ..command_table import WordError, whole
from ..review import NODES, Review
from ..theme import ASCII, glyphs
from ..values import Reply
from .view import look_at

if TYPE_CHECKING:
    from ..controller import Controller

LOWEST, HIGHEST = 1, 100_000_000


async def review(c: Controller, rest: str) -> Reply:
    """Judge every move of the game."""
    session = c.session
    word = rest.lower()
    if word in ("next", "back"):
        return await _walk(c, forward=word == "next")
    limit = whole(rest, LOWEST, HIGHEST, "review") if rest else NODES
    if not session.game.root.children:
        raise WordError("review: nothing has been played")
    if session.watcher is not None:
        raise WordError("review: this game is played elsewhere: `stop` leaves it")
    known = session.review
    if known is not None and known.running:
        raise WordError(f"review: one goes on ({known.progress}): `stop` ends it")
    if known is not None and known.result is not None and known.current and not rest:
        return Reply(tuple(_report(c, known)))
    begun = session.begin_review(
        limit, lambda found: _tell(c, found), c.say if not c.interactive else lambda _: None
    )
    return Reply((f"Our engine looks at {len(begun.nodes)} positions; `stop` ends it.",))


def _report(c: Controller, found: Review) -> list[str]:
    return list(found.report(plain=glyphs(c.settings) is ASCII))


def _tell(c: Controller, found: Review) -> None:
    """What is said when a review is over: all of it where nobody can ask."""
    if not c.interactive:
        for line in _report(c, found):
            c.say(line)
        return
    count = len(found.remarkable())
    moves = "one move has a sign" if count == 1 else f"{count} moves have a sign"
    for line in (f"The review is over: {moves}.", *found.summary()):
        c.say(line)
    c.say(
        "`review` shows it all, `review next` the first of them; `save` keeps it."
        if count
        else "`review` shows it all."
    )


async def _walk(c: Controller, *, forward: bool) -> Reply:
    """Look at the next place of the shown line that has a remark, in one direction."""
    game = c.session.game
    line = game.shown()
    marked = [node for node in line if SIGN in node.comment and node.remark != SIGN]
    if not marked:
        raise WordError("review: no move has a sign: `review` looks for them")
    # Behind the end of a game the walk begins.
    over = forward and game.at is game.root.tip() and not c.session.looking
    here = 0 if over else game.at.ply
    found = [node for node in marked if (node.ply > here if forward else node.ply < here)]
    if not found:
        where = "after" if forward else "before"
        raise WordError(f"review: no move {where} this place has a sign")
    return await look_at(c, found[0] if forward else found[-1])
