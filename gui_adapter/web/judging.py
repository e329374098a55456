"""Judges the moves of a game by the analysis of its positions from a page's engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hnefi.engine.catalogue import GAMES
from hnefi.engine.moves_text import parse_move_word
from hnefi.engine.sides import Outcome, Reason, Side
from hnefi.engine.squares import MAX_SIZE, move_name
from hnefi.engine.wording import shorten
from hnefi.protocol.answers import InfoLine, parse_info
from hnefi.protocol.hosts.assessment import remarks
from hnefi.protocol.hosts.assessment.values import Assessed, MoveAssessment, PositionAnalysis, look_of
from hnefi.protocol.hosts.assessment.verdicts import Played, Thresholds, assessed

from . import frames, records
from .frames import FrameError

LINES: Final = 2
"""Lines of each position; the second shows whether there was another good move."""
LINE: Final = 512


def judged(frame: Mapping[str, Any]) -> dict[str, Any]:
    """The `judged` frame in answer to a `judge` frame; FrameError.

    `looks` has one position more than `moves`, each an object with the `side` to move, its number of `choices` and the
    last `lines` of the search, or the `outcome` if the game is over; null for positions without analysis.
    """
    ident = frame.get("id")
    moves = frames.words(frame, "moves", records.PLIES)
    looks = frame.get("looks")
    if not isinstance(looks, list) or len(looks) != len(moves) + 1:
        raise FrameError(
            "bad_frame", f"looks {shorten(looks)}: expected one more than moves, {len(moves) + 1}", ident
        )
    try:
        variant = records.variant_named(frame)
        sides = GAMES[variant.game].sides
        seen = [_look(look) for look in looks]
        played = [
            Played(
                _side(look) if look is not None else -1,
                parse_move_word(move, MAX_SIZE)[0],
                _choices(look),
            )
            for move, look in zip(moves, looks[:-1], strict=True)
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise FrameError("bad_record", f"looks: {error}", ident) from None
    game = assessed(played, seen, Thresholds(), sides)
    return {
        "t": "judged",
        "id": ident,
        "moves": [_move(game, one) for one in game.judged],
        "chances": [None if look is None else look.chance(0) for look in game.looks],
        "accuracy": list(game.accuracy),
        "counts": [game.counts(side) for side in (0, 1)],
    }


def _move(game: Assessed, one: MoveAssessment) -> dict[str, Any]:
    """The judgement on a move, and a better line if one is worth showing."""
    better = [move_name(move) for move in one.best.moves] if one.best is not None and one.noted else []
    said = ""
    if one.noted:
        said = remarks.sentence(one, better[0] if better else "", game.sides)
    elif one.found:
        said = "the only good move"
    return {"sign": one.sign, "said": said, "better": better}


def _look(look: Any) -> PositionAnalysis | None:
    if look is None:
        return None
    side = _side(look)
    outcome = look.get("outcome")
    if outcome is not None:
        result, reason = outcome["result"], outcome["reason"]
        return PositionAnalysis(
            side, outcome=Outcome(None if result == "draw" else Side.of(result), Reason(reason))
        )
    lines = look["lines"]
    if not isinstance(lines, list) or len(lines) > LINES:
        raise ValueError(f"lines {shorten(lines)}: expected at most {LINES}")
    infos = [_info(line) for line in lines]
    # Moves are not checked: the page has them from the engine, and only that page sees the result.
    return look_of(infos, side, [info.pv[0] for info in infos if info.pv], remarks.SHOWN)


def _info(line: Any) -> InfoLine:
    info = parse_info(line) if isinstance(line, str) and len(line) <= LINE else None
    if info is None:
        raise ValueError(f"{shorten(line)}: expected a line of a search")
    return info


def _side(look: Mapping[str, Any]) -> int:
    if look["side"] not in ("a", "d"):
        raise ValueError(f"side {shorten(look['side'])}: expected a or d")
    return "ad".index(look["side"])


def _choices(look: Mapping[str, Any] | None) -> int:
    number = 2 if look is None else look["choices"]
    if type(number) is not int or number < 0:
        raise ValueError(f"choices {shorten(number)}: expected how many moves there are")
    return number
