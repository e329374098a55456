"""What a step of a check is, and what steps demand of an engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from hnefi.engine.wording import shorten
from hnefi.protocol.answers import InfoLine, parse_info

from .engine_under_test import EngineUnderTest
from .transport import Failed, Found, Patience

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position

AT_ONCE = 1.0
"""Seconds within which a move comes that must come at once, however busy the machine is."""
SILENCE = 0.3
"""Seconds for which an engine that must be silent is listened to."""

Required = Literal["all", "uti", "none"]
Act = Callable[[EngineUnderTest], Awaitable[str]]


class Slow(Failed):
    """The engine did what a step expects, but took longer than the target."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: an `act` that returns what is worth reporting of a good engine, raises `Failed` for a bad one and
    `Skipped` where the engine does not offer what it asks for. It begins by asking the walk for the state it needs
    and leaves no search running; `expected` is its docstring, in which the names of `Patience` stand for numbers.

    `required` says after which greetings it decides: after all, after `uti` only, or never. It is only walked after
    one of the greetings in `after` (none: all), and if the step it `needs` has not failed.
    """

    name: str
    expected: str
    act: Act
    required: Required
    needs: str
    after: tuple[str, ...]

    def expects(self, patience: Patience) -> Step:
        """The same step, saying how long it waits."""
        text = self.expected
        for name in ("start", "end"):
            text = text.replace(f"{{{name}}}", f"{getattr(patience, name):g}")
        return replace(self, expected=text)

    def counts(self, proto: str) -> bool:
        """Whether it decides about an engine that speaks `proto`."""
        return self.required == "all" or (self.required == "uti" and proto == "uti")


def into(steps: list[Step]) -> Callable[..., Callable[[Act], Act]]:
    """A decorator that puts functions into `steps`; see `Step` for its arguments."""

    def step(
        required: Required = "all", needs: str = "isready", after: tuple[str, ...] = ()
    ) -> Callable[[Act], Act]:
        def add(act: Act) -> Act:
            name = act.__name__.replace("_", "-")
            steps.append(Step(name, " ".join((act.__doc__ or "").split()), act, required, needs, after))
            return act

        return add

    return step


def demand(fact: object, otherwise: str) -> None:
    """Failed with this text unless `fact` is true."""
    if not fact:
        raise Failed(otherwise)


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds in words."""
    return f"{seconds * 1000:.1f} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"


def within(seconds: float, target: float) -> str:
    """`seconds` in words; Slow if they are more than `target`."""
    if seconds > target:
        raise Slow(f"{milliseconds(seconds)}, more than {target * 1000:g} ms")
    return milliseconds(seconds)


def move_of(found: Found) -> str:
    """The move of an answer; Failed if there is none."""
    demand(found.best.move, f"bestmove {found.best.move or '(none)'}: no move")
    return found.best.move or ""


def parsed(position: Position, text: str, what: str) -> int:
    """The move called `text`; Failed, with the sentence that forbids it, if it is not legal."""
    try:
        return position.parse_move(text)
    except ValueError as error:
        raise Failed(f"{what} {text[:40]}: {error}; position {position.fen()}") from None


def legal(position: Position, found: Found) -> int:
    """The move of an answer; Failed unless it is a legal one."""
    return parsed(position, move_of(found), "bestmove")


def outcome(position: Position) -> str:
    """How the game ended, as the protocol writes it."""
    return "none" if position.outcome is None else position.outcome.text


def silent(lines: Sequence[str]) -> None:
    """Failed if anything was said; `info string` lines that are no error may pass."""
    for line in lines:
        demand(line.startswith("info string ") and not line.startswith("info string error"), f"`{line}`")


def refused(engine: EngineUnderTest, lines: Sequence[str], what: str) -> None:
    """After `uti`: Failed unless there is an error line that names `what`."""
    if engine.uti:
        said = any(line.startswith("info string error ") and what in line for line in lines)
        demand(said, f"no `info string error {what} ...` but {shorten(list(lines)) if lines else 'nothing'}")


async def in_search(engine: EngineUnderTest, line: str) -> str:
    """Says `line` during a search: it must be refused, and change neither search nor position."""
    transport = await engine.ready()
    sent = await transport.send("go infinite")
    said = await transport.ask(line)
    demand(not any(text.partition(" ")[0] == "bestmove" for text in said), f"bestmove after {line}")
    refused(engine, said, line.split(maxsplit=1)[0])
    await transport.no_bestmove("before stop", SILENCE / 3)
    await transport.send("stop")
    found = await transport.answer(sent)
    await transport.no_bestmove("after the first one")
    if engine.variant is not None:
        legal(engine.rules(), found)
    return move_of(found)


def in_time(found: Found, seconds: float) -> str:
    """Failed unless the move came within `seconds`."""
    move_of(found)
    demand(
        found.seconds <= seconds, f"it took {milliseconds(found.seconds)}, more than {milliseconds(seconds)}"
    )
    return milliseconds(found.seconds)


def reports(found: Found) -> list[InfoLine]:
    """The reports of a search as values."""
    return [info for info in map(parse_info, found.infos) if info is not None]
