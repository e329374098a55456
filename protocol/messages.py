"""Lines that a program sends to an engine, as values.

A line is words. The first word that is a command decides; unknown words before it are skipped. `go`, `position`,
`setoption` and `genfens` have more structure than a list of words and are parsed here; text of moves and positions
stays text, because what it means depends on the game.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hnefi.engine.search.types import Limits
from hnefi.engine.session import SessionError

NUMBER_LIMIT = 10**15
"""Numbers are cut to this: enough for every node count, and safe in every kernel."""

_CLOCKS = {
    word: (index, kind)
    for index, sides in enumerate((("a", "w", "p1"), ("d", "b", "p2")))
    for side in sides
    for word, kind in ((f"{side}time", "clock"), (f"{side}inc", "inc"))
}
_AT_LEAST_ONE = ("depth", "nodes", "mate")
_NUMBERS = (*_AT_LEAST_ONE, "movetime", "movestogo")
_GO_WORDS = frozenset((*_CLOCKS, *_NUMBERS, "searchmoves", "ponder", "infinite"))


@dataclass(frozen=True, slots=True)
class Go:
    """A `go`: its limits, the moves it is confined to, and what was not understood, which does not stop it."""

    limits: Limits
    searchmoves: tuple[str, ...] = ()
    problems: tuple[SessionError, ...] = ()


@dataclass(frozen=True, slots=True)
class SetPosition:
    """A `position`: `kind` is startpos, fen or otn, `text` the position in that notation ("" for startpos)."""

    kind: str
    text: str
    moves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetOption:
    """A `setoption`; the value is None if none was given."""

    name: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Genfens:
    """A `genfens`: how many openings, from which seed, after how many random plies; None where it does not say."""

    count: int
    seed: int | None = None
    plies: tuple[int, int] | None = None


def words_of(line: bytes) -> list[str]:
    """The words of a line: ASCII blanks of any kind separate them. UnicodeDecodeError if it is not UTF-8."""
    line.decode()
    return [word.decode() for word in line.split()]


def command_of(words: Sequence[str], commands: Collection[str]) -> list[str]:
    """The words from the first command on; empty if there is none, or if the line is a comment."""
    if words and words[0].startswith("#"):
        return []
    for index, word in enumerate(words):
        if word in commands:
            return list(words[index:])
    return []


def integer(text: str) -> int | None:
    """The whole number that `text` says, cut to +-NUMBER_LIMIT; None if it says none."""
    if len(text) <= 15 and text.isdigit() and text.isascii():
        return int(text)
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    if len(digits) > 18:
        digits = str(NUMBER_LIMIT)
    return max(-NUMBER_LIMIT, min(NUMBER_LIMIT, -int(digits) if text[0] == "-" else int(digits)))


def parse_number(words: Sequence[str], low: int, high: int, default: int | None = None) -> int:
    """The one number that follows a command; SessionError if there is another text, or none and no default."""
    if len(words) == 1 and default is not None:
        return default
    number = integer(words[1]) if len(words) == 2 else None
    if number is None or not low <= number <= high:
        raise SessionError(" ".join(words), f"expected a whole number from {low} to {high}")
    return number


def parse_go(words: Sequence[str]) -> Go:
    """The words of a `go`. Never fails: what is wrong is reported and skipped.

    A limit below one counts as one, and a time below zero as no time left: a move is still wanted.
    """
    numbers: dict[str, int] = {}
    clock: list[int | None] = [None, None]
    inc = [0, 0]
    flags: set[str] = set()
    searchmoves: list[str] = []
    problems: list[SessionError] = []
    index = 1
    while index < len(words):
        word = words[index]
        index += 1
        if word in ("ponder", "infinite"):
            flags.add(word)
        elif word == "searchmoves":
            while index < len(words) and words[index] not in _GO_WORDS:
                searchmoves.append(words[index])
                index += 1
        elif word in _GO_WORDS:
            text = words[index] if index < len(words) and words[index] not in _GO_WORDS else ""
            index += bool(text)
            number = integer(text) if text else None
            if number is None:
                problems.append(SessionError(f"go {word} {text}".rstrip(), "expected a whole number"))
            elif word in _CLOCKS:
                side, kind = _CLOCKS[word]
                if kind == "clock":
                    clock[side] = number
                else:
                    inc[side] = max(0, number)
            else:
                numbers[word] = max(1 if word in _AT_LEAST_ONE else 0, number)
        else:
            problems.append(SessionError(f"go {word}", "expected a limit such as depth 5 or movetime 1000"))
    limits = Limits(
        depth=numbers.get("depth"),
        nodes=numbers.get("nodes"),
        mate=numbers.get("mate"),
        movetime=numbers.get("movetime"),
        clock=(clock[0], clock[1]),
        inc=(inc[0], inc[1]),
        movestogo=numbers.get("movestogo") or None,
        infinite="infinite" in flags,
        ponder="ponder" in flags,
    )
    return Go(limits, tuple(searchmoves), tuple(problems))


def parse_position(words: Sequence[str]) -> SetPosition:
    """The words of a `position`; SessionError if there is no position in them."""
    end = words.index("moves") if "moves" in words else len(words)
    moves = tuple(words[end + 1 :])
    kind = words[1] if end > 1 else ""
    text = " ".join(words[2:end])
    if kind not in ("startpos", "fen", "otn"):
        raise SessionError(" ".join(words[:2]), "expected startpos, fen <FEN> or otn <OTN record>")
    if kind != "startpos" and not text:
        raise SessionError(
            " ".join(words[:2]), "expected a position such as 3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a 0 1"
        )
    return SetPosition(kind, text, moves)


def parse_setoption(words: Sequence[str]) -> SetOption:
    """The words of a `setoption`; SessionError if they name no option."""
    end = words.index("value") if "value" in words[2:] else len(words)
    name = " ".join(words[2:end])
    if len(words) < 3 or words[1] != "name" or not name:
        raise SessionError(" ".join(words[:2]), "expected name <option> value <value>")
    return SetOption(name, " ".join(words[end + 1 :]) if end < len(words) else None)


def parse_genfens(words: Sequence[str]) -> Genfens:
    """The words of a `genfens`; SessionError naming the word that is wrong."""
    expected = "expected genfens N seed S plies K or K-L"
    count = integer(words[1]) if len(words) > 1 else None
    if count is None or not 1 <= count <= 100_000:
        raise SessionError(" ".join(words[:2]), f"{expected}, N from 1 to 100000")
    seed: int | None = None
    plies: tuple[int, int] | None = None
    for word, text in zip(words[2::2], [*words[3::2], ""], strict=False):
        if word == "seed":
            seed = integer(text)
            if seed is None or seed < 0:
                raise SessionError(f"genfens seed {text}".rstrip(), "expected a whole number of at least 0")
        elif word == "plies":
            first, _, last = text.partition("-")
            low, high = integer(first or "x"), integer(last or first or "x")
            if low is None or high is None or not 0 <= low <= high <= 100:
                raise SessionError(f"genfens plies {text}".rstrip(), "expected K or K-L, from 0 to 100")
            plies = (low, high)
        else:
            raise SessionError(f"genfens {word}", expected)
    return Genfens(count, seed, plies)
