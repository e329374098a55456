"""The rules, from an engine process of our own: legal moves, captures, why a move is illegal, and who has won.

The process starts behind the first board and is restarted when it ends. Each question carries the whole position, so
nothing is lost with the process.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from hnefi.engine.compile.progress import Progress
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.records.record import RuleSet
from hnefi.engine.records.rule_sets import carried
from hnefi.engine.regular import home_folder
from hnefi.protocol.client import Engine, EngineError, Timeouts, own_command

from .game import Facts, PositionSpec, facts_of, read_legal

Traffic = Callable[[float, str, bytes], None]


class IllegalPosition(ValueError):
    """A start or moves that the rules reject; the text is their sentence."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a position is worth before any search, all in centipawns for the side `a`: `by` names the evaluator, if it
    says so; the last of `terms` is `total`; `pieces`, such as `Kf6`, are those that matter most to a network."""

    by: str
    terms: list[tuple[str, int]]
    pieces: list[tuple[str, int]]


class RulesProcess:
    """Answers questions about positions, one question and one variant at a time. EngineError if the engine fails
    twice."""

    def __init__(
        self,
        command: Sequence[str] | None = None,
        traffic: Traffic | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        self._command = command or own_command()
        self._traffic = traffic
        self._timeouts = timeouts or Timeouts()
        self._engine: Engine | None = None
        self._closed = False
        self._loaded: AnyVariant | None = None
        self._asking = asyncio.Lock()
        self.restarts = 0
        self.on_compiling: Callable[[Progress], None] | None = None

    @property
    def compiling(self) -> Progress | None:
        """What the process is compiling; None if nothing."""
        return None if self._engine is None else self._engine.compiling

    async def facts(self, position: PositionSpec) -> Facts:
        """What the rules say about a position; IllegalPosition if it cannot be reached."""
        questions = ("query fen", "moves verbose", "query outcome", "query reason", "query captures")
        fen, moved, outcome, reason, captures = await self._about(position, *questions)
        facts = facts_of(fen[-1].removeprefix("response "))
        taken = captures[-1].split()[1:3]
        result = outcome[-1].split()[1]
        return replace(
            facts,
            legal=read_legal(moved[-1].split()[2:]),
            result=None if result == "none" else result,
            reason=None if result == "none" else reason[-1].split()[1],
            taken=(int(taken[0]), int(taken[1])),
            asked=True,
        )

    async def why_not(self, position: PositionSpec, move: str) -> str:
        """Why `move` is illegal there, in the words of the rules; empty if it is legal."""
        (answer,) = await self._about(position, f"play {move}")
        for line in answer:
            if line.startswith("info string error "):
                return line.removeprefix(f"info string error play {move}: ")
        return ""

    async def evaluation(self, position: PositionSpec, evaluator: str) -> Evaluation:
        """What an evaluator, a name or a file, says about a position; ValueError if it cannot be used there."""
        # Back to the usual one at once: with another, the next variant may be refused.
        option = "setoption name Evaluator value"
        chosen, answer, _ = await self._about(position, f"{option} {evaluator}", "eval", f"{option} default")
        by, terms, pieces = "", [], []
        for line in (*chosen, *answer):
            if line.startswith("info string error "):
                raise ValueError(line.removeprefix("info string error ").removeprefix("eval: "))
            match line.split():
                case ["info", "string", "eval", term, "a", value, *_]:
                    terms.append((term, int(value)))
                case ["info", "string", "evaluator", name, *_]:
                    by = name
                case ["info", "string", "network", "pieces", "a", *words]:
                    pieces = [(words[i], int(words[i + 1])) for i in range(0, len(words), 2)]
        return Evaluation(by, terms, pieces)

    async def solved(self, position: PositionSpec, path: str) -> list[list[str]]:
        """What the solved tables at `path` say: the words of the position's value, then of each move with its value,
        the best first. ValueError with the engine's sentence where they say nothing."""
        tables, answer = await self._about(position, f"setoption name TablePath value {path}", "tb")
        for line in (*tables, *answer):
            if line.startswith("info string error "):
                sentence = line.removeprefix("info string error ")
                raise ValueError(sentence.removeprefix("setoption TablePath: ").removeprefix("tb: "))
        return [line.split()[3:] for line in answer if line.startswith("info string tb ")]

    async def check(self, position: PositionSpec) -> None:
        """IllegalPosition if a position cannot be reached."""
        await self._about(position)

    async def _about(self, position: PositionSpec, *questions: str) -> list[list[str]]:
        """The lines that answer each question; a process that fails is started again once."""
        async with self._asking:
            try:
                return await self._ask(position, questions)
            except EngineError:
                await self._drop()
                if self._closed:
                    raise
                self.restarts += 1
                return await self._ask(position, questions)

    async def _ask(self, position: PositionSpec, questions: Sequence[str]) -> list[list[str]]:
        engine = await self._ready_for(position.variant)
        where = "startpos" if position.start is None else f"fen {position.start}"
        played = f" moves {' '.join(position.moves)}" if position.moves else ""
        for line in await engine.ask(f"position {where}{played}"):
            if line.startswith("info string error "):
                raise IllegalPosition(line.removeprefix("info string error position: "))
        return [await engine.ask(question) for question in questions]

    async def _ready_for(self, variant: AnyVariant) -> Engine:
        if self._engine is None:
            self._engine = await Engine.start(
                self._command,
                "uti",
                timeouts=self._timeouts,
                on_traffic=self._traffic,
                on_compiling=self.on_compiling,
            )
            self._loaded = None
        if self._loaded is not variant:
            # It never searches, so it does without what the search of a full-strength opponent would compile.
            await choose(self._engine, variant, {"Algorithm": "random"})
            await self._engine.is_ready()
            self._loaded = variant
        return self._engine

    async def _drop(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await end(engine)

    async def close(self) -> None:
        """End the process; there will be no other."""
        self._closed = True
        await self._drop()


async def end(engine: Engine, grace: float = 0.1, mercy: float = 0.3) -> None:
    """End an engine, in the middle of whatever it does: `quit`, after `grace` seconds TERM, after `mercy` more KILL."""
    ending = asyncio.ensure_future(engine.quit(grace))
    await asyncio.wait({ending}, timeout=grace + mercy)
    if not ending.done():
        engine.kill()
    await ending


async def choose(
    engine: Engine, variant: AnyVariant, options: Mapping[str, str | int | bool] = MappingProxyType({})
) -> None:
    """Tell an engine what is played, and options to set along with it. Rules that no name stands for are handed over as
    a file, where the engine takes one; EngineError otherwise."""
    rules = carried(variant)
    if rules is None:
        await engine.set_variant(variant.name, options)
    elif "variantpath" in engine.options:
        path = _rules_file(variant, rules)
        await engine.set_variant(path.stem, {"VariantPath": str(path), **options})
    else:
        raise EngineError(f"{engine.name} has no option for the rules of {variant.name}")


def _rules_file(variant: AnyVariant, rules: RuleSet) -> Path:
    """A variant file with these rules, in the user's cache; its name is made of the rules themselves."""
    name = f"rules-{variant.hash[:24]}"
    switches = "".join(f"{key} = {json.dumps(text)}\n" for key, text in rules.switches)
    base = os.environ.get("XDG_CACHE_HOME") or str(home_folder() / ".cache")
    file = Path(base, "hnefi", "rules", f"{name}.toml")
    if not file.exists():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            draft = file.with_name(f".{name}.{os.getpid()}")
            draft.write_text(
                f'name = "{name}"\nstart = "{rules.rows}"\n\n[rules]\n{switches}', encoding="utf-8"
            )
            draft.replace(file)
        except OSError as error:
            raise EngineError(
                f"{file}: {error.strerror or error}: the engine cannot be given these rules"
            ) from None
    return file
