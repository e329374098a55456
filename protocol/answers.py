"""What engines say, as values: the option, info, bestmove and variant lines of any engine, ours or foreign.

Moves stay text here, because whoever drives an engine need not know its game. Lenient, since foreign engines are
read by this too: a word or number that cannot be understood is left out, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hnefi.engine.compile.progress import Progress
from hnefi.engine.search.types import Score

from .messages import integer

OPTION_TYPES = ("check", "spin", "combo", "button", "string")
EMPTY = "<empty>"
"""How a string option without a value is written."""


@dataclass(frozen=True, slots=True)
class Option:
    """One announced option; `minimum` and `maximum` belong to spins, `values` to combos."""

    name: str
    type: str
    default: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    values: tuple[str, ...] = ()

    def line(self) -> str:
        """As an engine announces it: what `parse_option` reads."""
        words = [f"option name {self.name} type {self.type}"]
        if self.default is not None:
            words.append(f"default {self.default or EMPTY}")
        bounds = {"min": self.minimum, "max": self.maximum}
        words += [f"{word} {bound}" for word, bound in bounds.items() if bound is not None]
        return " ".join([*words, *(f"var {value}" for value in self.values)])

    def objection(self, value: str | None) -> str | None:
        """Why `value` cannot be set (what was expected instead), or None if it can."""
        if self.type == "button":
            return None if value is None else "a button takes no value"
        if value is None:
            return "expected a value"
        if self.type == "check" and value not in ("true", "false"):
            return "expected true or false"
        if self.type == "combo" and value.casefold() not in {known.casefold() for known in self.values}:
            return f"expected one of {', '.join(self.values)}"
        if self.type == "spin":
            return self._spin_objection(value)
        return None

    def _spin_objection(self, value: str) -> str | None:
        number = integer(value)
        low = "" if self.minimum is None else f" from {self.minimum}"
        high = "" if self.maximum is None else f" to {self.maximum}"
        if (
            number is None
            or (self.minimum is not None and number < self.minimum)
            or (self.maximum is not None and number > self.maximum)
        ):
            return f"expected a whole number{low}{high}"
        return None


@dataclass(frozen=True, slots=True)
class InfoLine:
    """One `info` line of a search: scores from the side to move, `time` in ms, `hashfull` and `wdl` in per mille.

    What the engine did not say is None; `multipv` is 1 then, `bound` is empty for an exact score.
    """

    depth: int | None = None
    seldepth: int | None = None
    multipv: int = 1
    score: Score | None = None
    bound: str = ""
    wdl: tuple[int, int, int] | None = None
    nodes: int | None = None
    nps: int | None = None
    hashfull: int | None = None
    time: int | None = None
    pv: tuple[str, ...] = ()
    tbhits: int | None = None


@dataclass(frozen=True, slots=True)
class BestMove:
    """A `bestmove` line: the move as text, or None for `(none)`; `resign` stands as it is."""

    move: str | None
    ponder: str | None = None


@dataclass(frozen=True, slots=True)
class VariantLine:
    """The answer to `variant NAME`: board, men (`defenders` without the king), side to move first, start position."""

    name: str
    files: int
    ranks: int
    attackers: int
    defenders: int
    first: str
    startpos: str


def parse_option(line: str) -> Option | None:
    """The option announced by ``option name N type T [default D] [min A] [max B] [var V]...``, or None."""
    words = line.split()
    if len(words) < 5 or words[:2] != ["option", "name"] or "type" not in words[3:]:
        return None
    at = words.index("type", 3)
    kind = words[at + 1] if at + 1 < len(words) else ""
    if kind not in OPTION_TYPES:
        return None
    default: str | None = None
    bounds: dict[str, int | None] = {}
    values: list[str] = []
    keys = {"default"} if kind == "string" else {"default", "min", "max", "var"}
    for key, text in _fields(words[at + 2 :], keys, once="default"):
        if key == "default":
            default = "" if text == EMPTY else text
        elif key == "var":
            values.append(text)
        else:
            bounds[key] = integer(text)
    return Option(" ".join(words[2:at]), kind, default, bounds.get("min"), bounds.get("max"), tuple(values))


_NUMBERS = frozenset({"depth", "seldepth", "multipv", "nodes", "nps", "hashfull", "tbhits", "time"})
_INFO_WORDS = _NUMBERS | {
    "score", "lowerbound", "upperbound", "wdl", "pv", "currmove", "currmovenumber", "currline", "refutation",
    "sbhits", "cpuload", "string",
}  # fmt: skip


def parse_info(line: str) -> InfoLine | None:
    """The values of an `info` line, or None if it is none or is a text for people (`info string`)."""
    words = line.split()
    if len(words) < 2 or words[0] != "info" or words[1] == "string":
        return None
    numbers: dict[str, int] = {}
    score: Score | None = None
    bound = ""
    wdl: tuple[int, int, int] | None = None
    pv: tuple[str, ...] = ()
    places = [index for index, word in enumerate(words) if word in _INFO_WORDS]
    for at, end in zip(places, [*places[1:], len(words)], strict=False):
        key = words[at]
        if key in _NUMBERS:
            number = integer(words[at + 1]) if end == at + 2 else None
            if number is not None:
                numbers[key] = number
        elif key == "score":
            score = _score(words[at + 1 : end])
        elif key in ("lowerbound", "upperbound"):
            bound = key
        elif key == "wdl":
            shares = [integer(word) for word in words[at + 1 : end]]
            if len(shares) == 3 and None not in shares:
                wdl = (shares[0] or 0, shares[1] or 0, shares[2] or 0)
        elif key == "pv":
            pv = tuple(words[at + 1 : end])
        elif key == "string":
            break
    return InfoLine(
        depth=numbers.get("depth"),
        seldepth=numbers.get("seldepth"),
        multipv=numbers.get("multipv", 1),
        score=score,
        bound=bound,
        wdl=wdl,
        nodes=numbers.get("nodes"),
        nps=numbers.get("nps"),
        hashfull=numbers.get("hashfull"),
        tbhits=numbers.get("tbhits"),
        time=numbers.get("time"),
        pv=pv,
    )


def parse_bestmove(line: str) -> BestMove | None:
    """The answer in a `bestmove` line, or None if it is another line. A `bestmove` without a move has the move ''."""
    words = line.split()
    if not words or words[0] != "bestmove":
        return None
    move = words[1] if len(words) > 1 else ""
    ponder = words[3] if len(words) > 3 and words[2] == "ponder" else None
    return BestMove(None if move == "(none)" else move, ponder)


def parse_variant(line: str) -> VariantLine | None:
    """The values of ``info string variant NAME files 7 ... startpos FEN``, or None if it is another line."""
    words = line.split()
    if words[:3] != ["info", "string", "variant"] or len(words) < 4:
        return None
    fields = dict(_fields(words[4:], {"files", "ranks", "attackers", "defenders", "first", "startpos"}))
    numbers = [integer(fields.get(key, "")) for key in ("files", "ranks", "attackers", "defenders")]
    if None in numbers or "first" not in fields or "startpos" not in fields:
        return None
    files, ranks, attackers, defenders = (number or 0 for number in numbers)
    return VariantLine(words[3], files, ranks, attackers, defenders, fields["first"], fields["startpos"])


COMPILING = "info string compiling "
"""How the lines begin that say what an engine compiles."""
_COMPILING = re.compile(
    r"info string compiling (\d{1,9})/(\d{1,9}) (\S.{0,199}?) "
    r"\((\d{1,9}) s(?:, about (\d{1,9}) s left)?(, in another process)?"
    r"(?:, not kept (.+))?\)",
    re.ASCII,
)


def parse_compiling(line: str) -> Progress | None:
    """What is being compiled, by ``info string compiling 3/9 search (12 s, about 40 s left)``; None for other lines."""
    found = _COMPILING.fullmatch(line.strip()) if line.startswith(COMPILING) else None
    if found is None:
        return None
    done, total, part, elapsed, remaining, elsewhere, unkept = found.groups()
    left = None if remaining is None else float(remaining)
    return Progress(int(done), int(total), part, float(elapsed), left, elsewhere is not None, unkept or "")


def _fields(words: list[str], keys: set[str] | frozenset[str], once: str = "") -> Iterator[tuple[str, str]]:
    """Every key with the words up to the next key; words before the first key are skipped.

    The key `once` is an ordinary word from its second occurrence on.
    """
    key = ""
    held: list[str] = []
    for word in words:
        if word in keys:
            keys = keys - {once} if word == once else keys
            if key:
                yield key, " ".join(held)
            key, held = word, []
        else:
            held.append(word)
    if key:
        yield key, " ".join(held)


def _score(words: list[str]) -> Score | None:
    number = integer(words[1]) if len(words) > 1 else None
    if number is None or words[0] not in ("cp", "mate"):
        return None
    return Score(cp=number, mate=None) if words[0] == "cp" else Score(cp=None, mate=number)
