"""What engines answer at the table, and what becomes of it: a move, a hint, a resignation, a failure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hnefi.engine.sides import Reason
from hnefi.protocol.client import Answer, EngineError, EngineStartError
from hnefi.protocol.format import BETTER

from . import panes
from .opponents import Opponent, plain
from .positions import SIDES
from .questions import Question
from .values import SideLetter

if TYPE_CHECKING:
    from .game_session import GameSession

DRAW_SCORE: Final = 20
"""An engine takes a draw where it sees no more than so many centipawns for itself."""
DRAW_PLY: Final = 20
"""An engine takes no draw before this ply."""
FORCED: Final = 100_000
"""A forced win, in centipawns."""


async def take(table: GameSession, question: Question, answer: Answer) -> None:
    """Make the move that an engine has answered."""
    opponent = question.opponent
    text = "" if answer.move is None else answer.move
    if text == "resign":
        opponent.failures = 0
        await table.declare(_other(question.side), Reason.RESIGNATION)
        return
    move = table.legal(text)
    if move is None:
        shown = plain(text)[:40] or "no move"
        await fail(
            table, question, EngineError(f"{opponent.name} answered {shown}: {await _why_not(table, text)}")
        )
        return
    opponent.failures = 0
    info = answer.info
    if info is not None and info.score is not None:
        mate = info.score.mate
        table.seats[question.side].score = info.score.cp if mate is None else FORCED if mate > 0 else -FORCED
    table.say(f"{table.side_word(question.side)} ({opponent.name}): {move.long}{_instead(opponent, answer)}")
    await table.play(move, answer)


def _instead(opponent: Opponent, answer: Answer) -> str:
    """That a weaker level has chosen another move than its best line begins with, the one that is shown."""
    if opponent.spec.level is None:
        return ""
    for line in reversed(answer.strings):
        if line.startswith(BETTER):
            moves = plain(" ".join(line.removeprefix(BETTER).split()[:2]))[:40]
            return f" (its best line was {moves}: a weaker level does not always follow it)"
    return ""


async def _why_not(table: GameSession, text: str) -> str:
    if not (text.isascii() and text.isalnum()):
        return "that is no move"
    return (
        await table.rules.why_not(table.variant, table.game.start, table.game.moves, text) or "not legal here"
    )


def tell_hint(table: GameSession, answer: Answer) -> None:
    """Say what our engine would play."""
    thinking = table.questions.thinking
    score = ""
    if thinking is not None and thinking.lines:
        line = thinking.lines[0]
        depth = "" if line.depth is None else f", depth {line.depth}"
        score = f" ({panes.score_text(line, SIDES[table.variant.game])}{depth})"
    table.say(f"Hint: {answer.move}{score}" if answer.move else "Hint: there is no move here.")


async def fail(table: GameSession, question: Question, error: EngineError) -> None:
    """An engine has failed: it is started anew once, with the whole game; then the game goes on without it."""
    opponent = question.opponent
    opponent.failures += 2 if isinstance(error, EngineStartError) else 1
    table.pace.rest()
    await opponent.rest()
    if question.purpose != "move":
        table.analysing = 0
        table.say(f"{error}. The game is not touched by it.")
        await table.move_on()
    elif opponent.failures == 1:
        table.say(f"{error}. It is started again, and told the game.")
        table.questions.ask(replace(question, limits=table.pace.limits(opponent.spec)))
    else:
        table.failure = 4 if opponent.spec.own else 3
        opponent.failures = 0
        who = table.side_word(question.side)
        table.say(
            f"{error}. Nobody plays the {who} now: their moves can be typed, "
            f"and `{opponent.spec.spelled}` seats that engine again."
        )
        table.seats.release(opponent)
        await table.move_on()


def accepts_draw(table: GameSession, side: SideLetter) -> bool:
    """Whether the engine on a side takes a draw now."""
    score = table.seats[side].score
    return table.game.at.ply >= DRAW_PLY and score is not None and score <= DRAW_SCORE


def _other(side: SideLetter) -> SideLetter:
    return "d" if side == "a" else "a"
