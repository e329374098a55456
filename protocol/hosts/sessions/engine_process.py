"""The engine process of a session: what it may be, how it is started and set up, and what it was told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hnefi.engine.wording import shorten

from ...answers import Option, VariantLine
from ...client import Engine, EngineError, EngineProtocolError, Progress, Starter, Timeouts
from ...format import setoption_line
from ...messages import SetOption
from ...process import Exit, Process
from ..filter import FORBIDDEN_OPTIONS, Filter

GRACE = 5.0
"""Seconds after its clock, or after `stop`, within which an engine must have answered before it counts as hung."""
TIMEOUTS = Timeouts(start=30.0, ready=60.0, write=GRACE)
VARIANT_LIMIT = 64
PLAYS_LIMIT = 4_096


class RequestError(Exception):
    """A request is refused: a code for programs, and a sentence."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request for an engine; the `Policy` decides what is left empty."""

    variant: str = ""
    player: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Policy:
    """What every session of a service may do, and how its process is started. `max_search` is in seconds."""

    command: tuple[str, ...]
    proto: str = "auto"
    filter: Filter = field(default_factory=Filter)
    options: tuple[tuple[str, str], ...] = ()
    player: str = ""
    variant: str = ""
    max_search: float = 600.0
    starter: Starter = Process.start


class Piped(Engine):
    """An engine that also reports each of its lines, and its end, to a listener."""

    def __init__(self, command: Sequence[str], timeouts: Timeouts) -> None:
        super().__init__(command, timeouts)
        self.heard: Callable[[bytes], None] | None = None
        self.ended: Callable[[str], None] | None = None

    def suggests(self, option: Option) -> bool:
        """Not what strangers may not set."""
        return option.name not in FORBIDDEN_OPTIONS

    def on_line(self, line: bytes, stamp: float) -> None:
        super().on_line(line, stamp)
        if self.heard is not None:
            self.heard(line)

    def _take_reports(self, lines: list[bytes], stamp: float) -> None:
        super()._take_reports(lines, stamp)
        if self.heard is not None:
            for line in lines:
                self.heard(line)

    def on_exit(self, ending: Exit) -> None:
        super().on_exit(ending)
        if self.ended is not None:
            self.ended(ending.text)

    def on_closed(self) -> None:
        super().on_closed()
        if self.ended is not None:
            self.ended("it closed its output")


@dataclass(frozen=True, slots=True)
class Ready:
    """An engine that is set up: `settings` are what it was told, by name; `queries` whether it answers `query`."""

    engine: Piped
    variant: VariantLine | None
    settings: tuple[tuple[str, str], ...]
    queries: bool


async def new_engine(policy: Policy, on_compiling: Callable[[Progress], None]) -> Piped:
    """A process that has greeted; EngineError. `on_compiling` hears what it compiles, now and later."""
    engine = await Piped.start(
        policy.command, policy.proto, timeouts=TIMEOUTS, on_compiling=on_compiling, starter=policy.starter
    )
    assert isinstance(engine, Piped)
    return engine


async def set_up(policy: Policy, wanted: Wanted, on_compiling: Callable[[Progress], None]) -> Ready:
    """A process with the variant and the options of `wanted`; RequestError with the code of what is wrong.

    It has compiled what it needs for them; `on_compiling` hears of that.
    """
    settings = _options(policy, wanted)
    variant = wanted.variant or policy.variant
    if variant and (
        len(variant.split()) != 1 or "/" in variant or "\\" in variant or len(variant) > VARIANT_LIMIT
    ):
        raise RequestError("unknown_variant", f"variant {shorten(variant)}: expected one name")
    try:
        engine = await new_engine(policy, on_compiling)
    except EngineError as error:
        raise RequestError("engine_failed", str(error)) from None
    try:
        return await _told(engine, variant, settings)
    except BaseException:
        await engine.quit(grace=0.0)
        raise


def _options(policy: Policy, wanted: Wanted) -> list[tuple[str, str]]:
    """Options in the order in which they are set; refuses those that a stranger may not set."""
    asked = [*wanted.options.items()]
    if wanted.player:
        asked.insert(0, ("Player", wanted.player))
    for name, value in asked:
        line = setoption_line(SetOption(name, value))
        if len(name.split()) != 1 or policy.filter.refusal(line):
            raise RequestError("bad_option", f"option {shorten(name)} {shorten(value)}: not allowed here")
    given = [*policy.options]
    if policy.player and not wanted.player:
        given.insert(0, ("Player", policy.player))
    return [*given, *asked]


async def _told(engine: Piped, variant: str, wanted: Sequence[tuple[str, str]]) -> Ready:
    settings: list[tuple[str, str]] = []
    known: VariantLine | None = None
    code = "unknown_variant"
    if not variant and "variant" in engine.options:
        # Said aloud, so that everybody knows which one it is.
        variant = engine.options["variant"].default or ""
    try:
        if variant:
            known = await engine.set_variant(variant)
            line = f"variant {variant}"
            if engine.proto != "uti":
                line = setoption_line(SetOption("UCI_Variant", variant))
            settings.append(("game", line))
        code = "bad_option"
        for name, value in wanted:
            option = engine.options.get(name.casefold())
            button = option is not None and option.type == "button"
            await engine.set_option(name, None if button else value)
            settings.append((name.casefold(), setoption_line(SetOption(name, None if button else value))))
        await engine.is_ready()
        lines = await engine.ask("query turn")
    except EngineProtocolError as error:
        raise RequestError(code, str(error)) from None
    except EngineError as error:
        raise RequestError("engine_failed", str(error)) from None
    queries = any(line.startswith("response ") for line in lines)
    return Ready(engine, known, tuple(settings), queries)


class Memory:
    """The lines that make up an engine's settings and position, of bounded size: another process can be brought to the
    same point by them."""

    def __init__(self, settings: Sequence[tuple[str, str]]) -> None:
        """`settings` are the options set before the first line, by name; `variant` stands for the command."""
        self._settings: dict[str, str] = {}
        for name, line in settings:
            self._settings[name] = line
        self._position = ""
        self._plays: list[str] = []
        self.complete = True
        """Whether `lines` lead to the same point; a game of thousands of single moves is not kept whole."""

    def note(self, words: Sequence[str], line: str) -> None:
        """The engine was sent `line`; `words` begin with its command."""
        match words[0] if words else "":
            case "uti" | "uci" | "ugi":
                self._set("greeting", line)
            case "variant" | "rules" if len(words) > 1:
                self._set("game", line)
                self._forget()
            case "setoption" if len(words) > 2:
                name = words[2].casefold()
                if name in ("variant", "uci_variant", "rules"):
                    name = "game"
                    self._forget()
                self._set(name, line)
            case "utinewgame" | "ucinewgame" | "uginewgame":
                self._forget()
            case "position":
                self._forget()
                self._position = line
            case "play" | "undo":
                self._plays.append(line)
                if len(self._plays) > PLAYS_LIMIT:
                    self._plays.clear()
                    self.complete = False

    def lines(self) -> list[str]:
        """What brings a fresh engine to where this one was."""
        settings = list(self._settings.values())
        return [*settings, *([self._position] if self._position else []), *self._plays]

    def _set(self, name: str, line: str) -> None:
        # The order in which things were set may matter: the last stands last.
        self._settings.pop(name, None)
        if len(self._settings) < 256:
            self._settings[name] = line

    def _forget(self) -> None:
        self._position = ""
        self._plays.clear()
        self.complete = True
