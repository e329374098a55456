"""The steps of a check, and the assertions that they share."""

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
"""Seconds within which an immediate answer must come, to allow for a busy machine."""
SILENCE = 0.3
"""Seconds to listen to an engine that must be silent."""

Required = Literal["all", "uti", "none"]
Act = Callable[[EngineUnderTest], Awaitable[str]]


class Slow(Failed):
    """The engine did what a step expects, but took longer than the target."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. Its `act` returns a detail to report, or raises `Failed`, or `Skipped` if the engine lacks the feature.
    It sets up the state that it needs and leaves no search running. `expected` is the docstring of `act`, with fields
    of `Patience` filled in.

    `required` says after which greetings the step counts: all, `uti` only, or none. The step runs only after one of
    the greetings in `after` (empty: any), and only if the step it `needs` has not failed.
    """

    name: str
    expected: str
    act: Act
    required: Required
    needs: str
    after: tuple[str, ...]

    def expects(self, patience: Patience) -> Step:
        """The same step, with the time limits filled in."""
        text = self.expected
        for name in ("start", "end"):
            text = text.replace(f"{{{name}}}", f"{getattr(patience, name):g}")
        return replace(self, expected=text)

    def counts(self, proto: str) -> bool:
        """Whether the step is required of an engine that speaks `proto`."""
        return self.required == "all" or (self.required == "uti" and proto == "uti")


def into(steps: list[Step]) -> Callable[..., Callable[[Act], Act]]:
    """A decorator that adds a function to `steps`; see `Step` for its arguments."""

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
    """Seconds as text in milliseconds."""
    return f"{seconds * 1000:.1f} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"


def within(seconds: float, target: float) -> str:
    """`seconds` as text; Slow if they exceed `target`."""
    if seconds > target:
        raise Slow(f"{milliseconds(seconds)}, more than {target * 1000:g} ms")
    return milliseconds(seconds)


def move_of(found: Found) -> str:
    """The move of an answer; Failed if it has none."""
    demand(found.best.move, f"bestmove {found.best.move or '(none)'}: no move")
    return found.best.move or ""


def parsed(position: Position, text: str, what: str) -> int:
    """The move named `text`; Failed, with the reason, if it is illegal."""
    try:
        return position.parse_move(text)
    except ValueError as error:
        raise Failed(f"{what} {text[:40]}: {error}; position {position.fen()}") from None


def legal(position: Position, found: Found) -> int:
    """The move of an answer; Failed unless it is legal."""
    return parsed(position, move_of(found), "bestmove")


def outcome(position: Position) -> str:
    """How the game ended, as the protocol writes it."""
    return "none" if position.outcome is None else position.outcome.text


def silent(lines: Sequence[str]) -> None:
    """Failed if there are any lines other than `info string` lines without errors."""
    for line in lines:
        demand(line.startswith("info string ") and not line.startswith("info string error"), f"`{line}`")


def refused(engine: EngineUnderTest, lines: Sequence[str], what: str) -> None:
    """After `uti`, Failed unless an error line names `what`."""
    if engine.uti:
        said = any(line.startswith("info string error ") and what in line for line in lines)
        demand(said, f"no `info string error {what} ...` but {shorten(list(lines)) if lines else 'nothing'}")


async def in_search(engine: EngineUnderTest, line: str) -> str:
    """Send `line` during a search; it must be rejected and change neither the search nor the position."""
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
    """The parsed reports of a search."""
    return [info for info in map(parse_info, found.infos) if info is not None]
