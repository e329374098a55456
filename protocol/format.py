"""Values as lines of the protocol, in both directions; every line without its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hnefi.engine.compile.progress import Progress
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.moves_text import format_move
from hnefi.engine.search.types import Info, Limits, Score, SearchResult
from hnefi.engine.session import Played
from hnefi.engine.sides import Outcome, Side
from hnefi.engine.squares import move_name

from .messages import Genfens, SetOption, SetPosition

if TYPE_CHECKING:
    from hnefi.engine.solving.lookup import MoveValue
    from hnefi.engine.solving.table import Value

TEXT_LIMIT = 80
"""So much of what was read is repeated in an answer."""
BETTER = "info string note a weaker level leaves its best line "
"""How the line begins that says, with that line's moves, that a level plays another than the best one."""

CLOCK_WORDS = {
    "uti": ("atime", "dtime", "ainc", "dinc"),
    "uci": ("wtime", "btime", "winc", "binc"),
    "ugi": ("p1time", "p2time", "p1inc", "p2inc"),
}


def shown(text: str, limit: int = TEXT_LIMIT) -> str:
    """`text` fit for an answer: no control characters, and not endless."""
    return printable(text if len(text) <= limit else text[:limit] + "…")


def printable(text: str) -> str:
    """`text` with control characters, and others that are not to be seen, spelled out: `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)


# What the engine says


def error_line(read: str, expected: str) -> str:
    """What was read, and what was expected instead."""
    return f"info string error {shown(read)}: {shown(expected, 500)}"


def compiling_line(progress: Progress) -> str:
    """What is being compiled while a client waits for it; `answers.parse_compiling` reads it."""
    details = [f"{progress.elapsed:.0f} s"]
    if progress.remaining is not None:
        details.append(f"about {progress.remaining:.0f} s left")
    if progress.elsewhere:
        details.append("in another process")
    if progress.unkept:
        details.append(f"not kept {shown(progress.unkept, 500)}")
    part = shown(" ".join(progress.part.split())) or "-"
    return f"info string compiling {progress.done}/{progress.total} {part} ({', '.join(details)})"


def info_line(info: Info, *, wdl: bool = False) -> str:
    """One report of a search; `wdl` adds the expected shares of wins, draws and losses."""
    words = ["info depth", str(info.depth), "seldepth", str(info.seldepth), "multipv", str(info.multipv)]
    words += ["score", score_text(info.score)]
    if info.bound:
        words.append(info.bound)
    if wdl:
        words += ["wdl", *map(str, info.wdl)]
    words += ["nodes", str(info.nodes), "nps", str(info.nps), "hashfull", str(info.hashfull)]
    if info.tbhits is not None:
        words += ["tbhits", str(info.tbhits)]
    words += ["time", str(info.time), "pv", *map(move_name, info.pv)]
    return " ".join(words)


def score_text(score: Score) -> str:
    """`cp 61` or `mate -3`."""
    return f"cp {score.cp}" if score.mate is None else f"mate {score.mate}"


def bestmove_line(result: SearchResult, *, ponder: bool = True) -> str:
    """The answer to `go`; `ponder` allows the expected reply to be named."""
    if result.move is None:
        return "bestmove (none)"
    line = f"bestmove {move_name(result.move)}"
    return f"{line} ponder {move_name(result.ponder)}" if ponder and result.ponder else line


def better_line(moves: Sequence[int]) -> str:
    """That a weaker level plays another move than its best line begins with; the line."""
    return f"{BETTER}{' '.join(move_name(move) for move in moves)}"


def finished_lines(outcome: Outcome, side: Side) -> list[str]:
    """What a search of a finished position reports before `bestmove (none)`."""
    score = Score(cp=0) if outcome.winner is None else Score(mate=1 if outcome.winner == side else 0)
    return [f"info depth 0 score {score_text(score)}", outcome_line(outcome)]


def outcome_line(outcome: Outcome) -> str:
    """How the game ended."""
    return f"info string outcome {outcome.text}"


def variant_line(variant: AnyVariant) -> str:
    """The answer to `variant NAME`."""
    return f"{_variant_words(variant)} startpos {variant.startpos}"


def variants_line(variant: AnyVariant) -> str:
    """One line of the answer to `variants`."""
    aliases = ",".join(variant.aliases) or "-"
    return f"{_variant_words(variant)} aliases {aliases} source {shown(variant.source, 10_000)}"


def _variant_words(variant: AnyVariant) -> str:
    return (
        f"info string variant {variant.name} files {variant.files} ranks {variant.ranks} "
        f"attackers {variant.attackers} defenders {variant.defenders} first {variant.first}"
    )


def moves_line(moves: Sequence[int]) -> str:
    """The answer to `moves`."""
    return " ".join(["moves", str(len(moves)), *map(move_name, moves)])


def verbose_moves_line(moves: Sequence[tuple[int, tuple[int, ...]]]) -> str:
    """The answer to `moves verbose`: each move with the squares it captures."""
    return " ".join(["moves", str(len(moves)), *(format_move(move, captures) for move, captures in moves)])


def solved_lines(side: Side, value: Value, moves: Sequence[MoveValue]) -> list[str]:
    """The answer to `tb`: what the position is worth to the side to move, then each move, counted from now."""
    lines = [f"info string tb {solved_text(side, value, 0)}"]
    for each in moves:
        if each.value is None:
            lines.append(f"info string tb {move_name(each.move)} unknown")
            continue
        mark = " best" if each.best else " keeps" if each.keeps(value) else ""
        lines.append(f"info string tb {move_name(each.move)} {solved_text(side, each.value, 1)}{mark}")
    return lines


def solved_text(side: Side, value: Value, more: int) -> str:
    """`win 7`, `loss 4`, `draw`, `win repetition`, `open`, for `side`; `more` plies lie before the value. It is
    `win 7 at_most` where a proof knows no more than that."""
    if value.winner is None:
        return "open" if value.open else "draw"
    plies = "repetition" if value.plies is None else str(value.plies + more)
    return f"{'win' if value.winner is side else 'loss'} {plies}{' at_most' if value.at_most else ''}"


def played_line(played: Played) -> str:
    """A move just played, with its captures and the side to move now."""
    move = format_move(played.move, played.captures)
    return f"info string played {move} turn {played.position.side.letter}"


def undone_line(undone: Played) -> str:
    """A move just taken back, and the side to move now."""
    return f"info string undone {move_name(undone.move)} turn {undone.position.side.letter}"


def response_line(answer: str) -> str:
    """The answer to a `query`."""
    return f"response {answer}"


def history(start: str | None, moves: Iterable[int]) -> str:
    """A game as `position` reads it: `start` is a FEN, None for the variant's start."""
    words = ["startpos"] if start is None else ["fen", start]
    names = [move_name(move) for move in moves]
    return " ".join([*words, "moves", *names] if names else words)


def yes_no(value: bool) -> str:
    """A truth value as `query` answers it."""
    return "true" if value else "false"


# What is said to an engine


def go_line(limits: Limits, searchmoves: Sequence[str] = (), *, dialect: str = "uti") -> str:
    """A `go` with these limits, in the clock words of a greeting; `searchmoves` are text, in any game's notation."""
    words = ["go"]
    if searchmoves:
        words += ["searchmoves", *searchmoves]
    if limits.ponder:
        words.append("ponder")
    numbers = [*limits.clock, *(inc or None for inc in limits.inc)]
    pairs = [
        *zip(CLOCK_WORDS[dialect], numbers, strict=True),
        ("movestogo", limits.movestogo),
        ("depth", limits.depth),
        ("nodes", limits.nodes),
        ("mate", limits.mate),
        ("movetime", limits.movetime),
    ]
    for word, number in pairs:
        if number is not None:
            words += [word, str(number)]
    if limits.infinite:
        words.append("infinite")
    return " ".join(words)


def position_line(message: SetPosition) -> str:
    """The line that `messages.parse_position` reads back."""
    words = ["position", message.kind]
    if message.text:
        words.append(message.text)
    return " ".join([*words, "moves", *message.moves] if message.moves else words)


def setoption_line(message: SetOption) -> str:
    """The line that `messages.parse_setoption` reads back."""
    line = f"setoption name {message.name}"
    return line if message.value is None else f"{line} value {message.value}".rstrip()


def genfens_line(message: Genfens) -> str:
    """The line that `messages.parse_genfens` reads back."""
    words = ["genfens", str(message.count)]
    if message.seed is not None:
        words += ["seed", str(message.seed)]
    if message.plies is not None:
        low, high = message.plies
        words += ["plies", str(low) if low == high else f"{low}-{high}"]
    return " ".join(words)
