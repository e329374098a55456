"""What engines answer, and what becomes of it: a move, a hint, a resignation, a failure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hnefi.engine.catalogue import GAMES
from hnefi.engine.sides import Reason
from hnefi.protocol.client import Answer, EngineError, EngineStartError
from hnefi.protocol.format import BETTER

from . import panes
from .opponents import Opponent, Question, plain
from .values import SideLetter

if TYPE_CHECKING:
    from .game_session import GameSession

DRAW_SCORE: Final = 20
"""An engine takes a draw where it sees no more than so many centipawns for itself."""
DRAW_PLY: Final = 20
"""An engine takes no draw before this ply."""
FORCED: Final = 100_000
"""A forced win, in centipawns."""


async def take(session: GameSession, question: Question, answer: Answer) -> None:
    """Make the move that an engine has answered."""
    opponent = question.opponent
    text = "" if answer.move is None else answer.move
    if text == "resign":
        opponent.failures = 0
        await session.declare(_other(question.side), Reason.RESIGNATION)
        return
    move = session.legal(text)
    if move is None:
        shown = plain(text)[:40] or "no move"
        await fail(
            session,
            question,
            EngineError(f"{opponent.name} answered {shown}: {await _why_not(session, text)}"),
        )
        return
    opponent.failures = 0
    info = answer.info
    if info is not None and info.score is not None:
        mate = info.score.mate
        session.players[question.side].score = (
            info.score.cp if mate is None else FORCED if mate > 0 else -FORCED
        )
    session.say(
        f"{session.side_word(question.side)} ({opponent.name}): {move.long}{_instead(opponent, answer)}"
    )
    await session.play(move, answer)


def _instead(opponent: Opponent, answer: Answer) -> str:
    """That a weaker level has chosen another move than its best line begins with, the one that is shown."""
    if opponent.spec.level is None:
        return ""
    for line in reversed(answer.strings):
        if line.startswith(BETTER):
            moves = plain(" ".join(line.removeprefix(BETTER).split()[:2]))[:40]
            return f" (its best line was {moves}: a weaker level does not always follow it)"
    return ""


async def _why_not(session: GameSession, text: str) -> str:
    if not (text.isascii() and text.isalnum()):
        return "that is no move"
    return (
        await session.rules.why_not(session.variant, session.game.start, session.game.moves, text)
        or "not legal here"
    )


def tell_hint(session: GameSession, answer: Answer) -> None:
    """Say what our engine would play."""
    thinking = session.questions.thinking
    score = ""
    if thinking is not None and thinking.lines:
        line = thinking.lines[0]
        depth = "" if line.depth is None else f", depth {line.depth}"
        score = f" ({panes.score_text(line, GAMES[session.variant.game].sides)}{depth})"
    session.say(f"Hint: {answer.move}{score}" if answer.move else "Hint: there is no move here.")


async def fail(session: GameSession, question: Question, error: EngineError) -> None:
    """An engine has failed: it is started anew once, with the whole game; then the game goes on without it."""
    opponent = question.opponent
    opponent.failures += 2 if isinstance(error, EngineStartError) else 1
    session.pace.rest()
    await opponent.rest()
    if question.purpose != "move":
        session.analysing = 0
        session.say(f"{error}. The game is not touched by it.")
        await session.move_on()
    elif opponent.failures == 1:
        session.say(f"{error}. It is started again and given the game.")
        session.questions.ask(replace(question, limits=session.pace.limits(opponent.spec)))
    else:
        session.failure = 4 if opponent.spec.own else 3
        opponent.failures = 0
        who = session.side_word(question.side)
        session.say(
            f"{error}. Nobody plays the {who} now: their moves can be typed, "
            f"and `{opponent.spec.spelled}` brings that engine back."
        )
        session.players.release(opponent)
        await session.move_on()


def accepts_draw(session: GameSession, side: SideLetter) -> bool:
    """Whether the engine on a side takes a draw now."""
    score = session.players[side].score
    return session.game.at.ply >= DRAW_PLY and score is not None and score <= DRAW_SCORE


def _other(side: SideLetter) -> SideLetter:
    return "d" if side == "a" else "a"
