"""What can go wrong between us and an engine, and how long we wait before we say so."""

from __future__ import annotations

from dataclasses import dataclass

from .process import Exit


class EngineError(Exception):
    """An engine did not do what was asked; the text is a sentence for people and names the engine."""


class EngineStartError(EngineError):
    """It could not be run, or did not greet."""


class EngineCrashed(EngineError):
    """Its process has ended; `exit` says how."""

    def __init__(self, message: str, ending: Exit) -> None:
        super().__init__(message)
        self.exit = ending


class EngineDisconnected(EngineError):
    """It closed its output or input and lives on."""


class EngineTimeout(EngineError):
    """It did not answer, or did not read, in time; `lateness` is by how many seconds we were late to see that."""

    lateness = 0.0


class EngineUnready(EngineError):
    """It says that it cannot work: an error came in the place of `readyok`."""


class EngineFault(EngineError):
    """It says that its search failed, and names no move."""


class EngineProtocolError(EngineError):
    """It refused, or was asked for something it never announced."""


class EngineBusy(EngineError):
    """It is searching, and what was asked must wait for the answer."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait, in seconds. `move` is added to the time that a `go` allows by itself.

    An engine that says that it compiles is given its whole time again with every such line, at least `compiling`;
    `compiling_whole` seconds after the first of them in one wait that is over, whatever it says.
    """

    start: float = 10.0
    ready: float = 60.0
    new_game: float = 60.0
    answer: float = 10.0
    move: float = 60.0
    stop: float = 5.0
    write: float = 10.0
    compiling: float = 30.0
    compiling_whole: float = 7200.0


def last_line(errors: str) -> str:
    """What a program said last on standard error; before it, where the last line only says that `--help` tells more.
    Empty if it said nothing."""
    lines = errors.strip().splitlines()
    telling = [line for line in lines if "--help" not in line]
    return (telling or lines or [""])[-1]
