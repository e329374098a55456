"""The engine that is asked: one process that keeps its table between positions, started again after a failure."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from hnefi.engine.games.tafl.fen import in_adk
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.records.rule_sets import carried
from hnefi.engine.search.types import Limits
from hnefi.engine.squares import move_name
from hnefi.engine.wording import shorten
from hnefi.players import load, unfit
from hnefi.protocol.client import (
    Answer,
    Engine,
    EngineError,
    EngineProtocolError,
    EngineStartError,
    Timeouts,
    own_command,
)
from hnefi.protocol.hosts.assessment.values import Line, PositionAnalysis, expected
from hnefi.protocol.hosts.exit_codes import FAULTS, OURS_FAILED

from ..arena.engine_slot import set_variant
from ..common import compiling, interrupts
from .notation import legal_line

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.base_variant import AnyVariant
    from hnefi.engine.records.record import RuleSet

PING: Final = 10.0
"""Seconds between two looks at whether a searching engine is still alive."""
SILENCE: Final = 30.0
"""Seconds within which it must say so."""
MARGIN: Final = 15.0
"""Seconds by which an engine may exceed the time it was given."""
LONGEST: Final = 64
"""Plies of a line that are kept."""


class Refused(EngineError):
    """This engine cannot do what the command line asks for: another engine, or another request, is needed."""


@dataclass(frozen=True, slots=True)
class Source:
    """Which engine is asked, and how: `command` None means ours; `options` are set in their order.

    `patience` is how many seconds one position may take where no time limits it; `independent` has the engine forget
    before every position. `letters` is `adk` for an engine whose FENs call the men so.
    """

    limits: Limits
    lines: int = 1
    command: tuple[str, ...] | None = None
    proto: str = "auto"
    options: tuple[tuple[str, str], ...] = ()
    patience: float = 3600.0
    independent: bool = False
    letters: str = ""

    @property
    def own(self) -> bool:
        """Whether our own engine is asked."""
        return self.command is None

    @property
    def limits_text(self) -> str:
        """The limits as people read them: `nodes 500000`."""
        pairs = (("depth", self.limits.depth), ("nodes", self.limits.nodes), ("mate", self.limits.mate))
        words = [f"{name} {number}" for name, number in pairs if number is not None]
        if self.limits.movetime is not None:
            words.append(f"time {self.limits.movetime / 1000:g} s")
        return ", ".join(words)


@dataclass(slots=True)
class Analyser:
    """Asks one engine about positions; `complain` hears a sentence whenever the engine fails.

    Use `open` first and `close` last. Whatever else is raised, no process is left after `close`.
    """

    source: Source
    complain: Callable[[str], None] = print
    name: str = ""
    failures: int = 0
    _engine: Engine | None = None
    _told: tuple[str, bool] = ("", False)
    _folder: TemporaryDirectory[str] | None = None
    _files: dict[str, Path] = field(default_factory=dict)

    async def open(self, variant: AnyVariant) -> None:
        """Start the engine and set its rules; Refused or another EngineError if that fails."""
        await self._ready(variant)

    async def new_game(self, variant: AnyVariant) -> None:
        """Another game begins: the engine forgets. A failure here will come again at the next position, and is
        reported there."""
        try:
            await (await self._ready(variant)).new_game()
        except EngineStartError:
            raise
        except EngineError:
            await self._drop()

    async def look(self, position: Position) -> PositionAnalysis:
        """What the engine thinks of a position. After a failure it is started again and asked once more.

        EngineStartError if it cannot be started any more.
        """
        side = position.side
        if position.outcome is not None:
            return PositionAnalysis(side, outcome=position.outcome)
        problem = ""
        for again in (False, True):
            try:
                engine = await self._ready(position.variant)
                if self.source.independent:
                    await engine.new_game()
                answer = await self._answer(engine, position)
            except (EngineStartError, Refused):
                raise
            except EngineError as error:
                problem = str(error)
                self.failures += 1
                await self._drop()
                what = "is not asked again, and the position stays unknown" if again else "is started again"
                self.complain(f"{problem}: it {what}")
            else:
                return _look(position, answer, self.source.lines)
        return PositionAnalysis(side, problem=problem)

    async def _answer(self, engine: Engine, position: Position) -> Answer:
        """The engine's answer; EngineError if it does not come, or if the engine does not react any more."""
        engine.position(self._start(position), list(map(move_name, position.moves)))
        limits = self.source.limits
        timeout = self.source.patience if limits.movetime is None else limits.movetime / 1000 + MARGIN
        search = await engine.go(limits, timeout=timeout)
        while True:
            try:
                async with asyncio.timeout(PING):
                    return await search
            except TimeoutError:
                await engine.is_ready(SILENCE)

    def _start(self, position: Position) -> str:
        knows = self._told[1] and position.start_fen == position.variant.startpos
        if knows:
            return "startpos"
        return f"fen {in_adk(position.start_fen) if self.source.letters == 'adk' else position.start_fen}"

    async def breakdown(self, position: Position) -> list[tuple[str, int]]:
        """The terms of the engine's evaluation in centipawns for the first side, `total` last; empty if it has none."""
        try:
            engine = await self._ready(position.variant)
            if engine.proto != "uti":
                return []
            engine.position(self._start(position), list(map(move_name, position.moves)))
            lines = await engine.ask("eval")
        except EngineStartError:
            raise
        except EngineError as error:
            self.complain(f"{error}: the terms of its evaluation are not shown")
            return []
        return [term for line in lines if (term := _term(line)) is not None]

    async def close(self) -> None:
        """End the engine."""
        await self._drop()
        if self._folder is not None:
            self._folder.cleanup()

    # The process

    async def _ready(self, variant: AnyVariant) -> Engine:
        """The running engine, with its rules set."""
        source = self.source
        if self._engine is None:
            command = own_command() if source.command is None else list(source.command)
            proto = "uti" if source.own else source.proto
            self._engine = await Engine.start(
                command, proto, timeouts=Timeouts(), on_compiling=compiling.report
            )
            self._told = ("", False)
            self.name = self._engine.name
        try:
            if self._told[0] != variant.hash:
                if source.own and (reason := unfit(load("default"), source.options, variant)):
                    raise Refused(reason)
                fresh = not self._told[0]
                await self._choose(self._engine, variant)
                # Behind the variant: an evaluator may be for this one only.
                if fresh:
                    for name, value in self._options(self._engine):
                        await self._engine.set_option(name, value)
                await self._engine.is_ready()
        except EngineProtocolError as error:
            raise Refused(str(error)) from None
        return self._engine

    def _options(self, engine: Engine) -> list[tuple[str, str]]:
        """What this engine is sent first."""
        options = list(self.source.options)
        if self.source.lines > 1:
            if "multipv" in engine.options:
                options.append(("MultiPV", str(self.source.lines)))
            else:
                self.complain(f"{engine.name} has no option MultiPV: it gives one line")
        if "uci_showwdl" in engine.options:
            options.append(("UCI_ShowWDL", "true"))
        return options

    async def _choose(self, engine: Engine, variant: AnyVariant) -> None:
        """Set the engine's rules. Rules without a name go to our engine as a file, to others as OTN."""
        rules = carried(variant)
        if rules is None:
            line = await set_variant(engine, variant.name)
        elif "variantpath" in engine.options:
            path = self._rules_file(variant, rules)
            await engine.set_option("VariantPath", str(path))
            line = await set_variant(engine, path.stem)
        else:
            line = await set_variant(engine, _otn(variant))
        self._told = (variant.hash, line is not None and line.startpos == variant.startpos)

    def _rules_file(self, variant: AnyVariant, rules: RuleSet) -> Path:
        """A variant file with these rules, which lives as long as we do."""
        if variant.hash not in self._files:
            if self._folder is None:
                self._folder = TemporaryDirectory(prefix="hnefi-analyze-")
            path = Path(self._folder.name, f"rules-{variant.hash[:16]}.toml")
            table = [f"name = {json.dumps(path.stem)}", f"start = {json.dumps(rules.rows)}", "[rules]"]
            table += [f"{switch} = {json.dumps(value)}" for switch, value in rules.switches]
            path.write_text("\n".join(table) + "\n", "utf-8")
            self._files[variant.hash] = path
        return self._files[variant.hash]

    async def _drop(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            if engine.failure is not None:
                engine.kill()
            await engine.quit()


def _otn(variant: AnyVariant) -> str:
    """The rules as an OTN string; EngineProtocolError if that cannot say them all."""
    from hnefi.engine.games.tafl.otn import export_rules

    text, lost = export_rules(variant) if isinstance(variant, Variant) else ("", ["all"])
    if lost:
        raise EngineProtocolError(
            f"this engine cannot be told the rules of {variant.name}: OTN has no words for {', '.join(lost[:5])}"
        )
    return text


def _look(position: Position, answer: Answer, most: int) -> PositionAnalysis:
    """An answer as a look; one without a legal move is a problem."""
    side = position.side
    lines = []
    for info in answer.infos[:most]:
        moves = legal_line(position, info.pv, LONGEST)
        score = info.score
        if info.multipv > 1 and not (moves and score):
            continue
        cp, mate = (None, None) if score is None else (score.cp, score.mate)
        lines.append(Line(moves, expected(info), cp, mate, info.depth))
    chosen = legal_line(position, [answer.move] if answer.move else [], 1)
    last = answer.info
    nodes, time = (None, None) if last is None else (last.nodes, last.time)
    if not chosen and answer.move != "resign":
        return PositionAnalysis(
            side, problem=f"answered {shorten(answer.move or 'no move', 20)}, which is not legal"
        )
    if not lines or lines[0].probability is None:
        return PositionAnalysis(side, problem="answered without a score")
    if chosen and lines[0].moves[:1] != chosen:
        lines[0] = Line(chosen, lines[0].probability, lines[0].cp, lines[0].mate, lines[0].depth)
    return PositionAnalysis(side, tuple(lines), nodes, time)


def _term(line: str) -> tuple[str, int] | None:
    """The term that an `info string eval NAME a NUMBER` line tells, None for another line."""
    words = line.split()
    if words[:3] != ["info", "string", "eval"] or len(words) < 6 or words[4] != "a":
        return None
    try:
        return words[3], int(words[5])
    except ValueError:
        return None


# How an analysis ends


async def until_interrupted(work: Coroutine[Any, Any, None]) -> bool:
    """Do the work; True if an interrupt came before its end. Whatever it raises comes through."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    with interrupts.told(lambda: loop.call_soon_threadsafe(task.cancel)):
        try:
            await task
        except asyncio.CancelledError:
            interrupts.finishing()
            return True
    return False


def failed(own: bool) -> int:
    """The exit code where the engine failed: ours, or another."""
    return OURS_FAILED if own else FAULTS
