"""`hnefi analyze` of recorded games: which games, which engine, and the output."""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hnefi.engine.records import tafl_text
from hnefi.engine.records.formats import Reading, format_of
from hnefi.engine.records.record import GameRecord
from hnefi.engine.records.rule_sets import finder
from hnefi.engine.records.text import Game, RecordError
from hnefi.engine.squares import MAX_SIZE
from hnefi.protocol.client import EngineError
from hnefi.protocol.hosts.assessment.verdicts import Thresholds
from hnefi.protocol.hosts.exit_codes import DONE, INTERRUPTED, STORAGE, USAGE, code_of
from hnefi.protocol.hosts.text_table import encodable, safe

from ..arena.store import write_file
from ..common.arguments import find_variant
from ..common.svg_chart import ChartError, expect_drawable
from . import chart, report
from .analyser import Analyser, Refused, Source, failed, until_interrupted
from .annotate import annotated
from .replay import games_of, walk
from .run import GaveUp, Watch, Work
from .store import Progress, StoreError, beside, digest
from .values import Analysed

PROBLEM = (RecordError, StoreError, ChartError)


def analyse_games(
    options: argparse.ArgumentParser, arguments: argparse.Namespace, path: Path, source: Source
) -> int:
    """Analyse the games of a file and write what was asked for; the exit code."""
    try:
        form = arguments.read_as or format_of(path)
    except RecordError as error:
        options.error(f"{error}, or --from")
    if form == "csv" and not arguments.variant:
        options.error("CSV names no variant: expected --variant")
    _check_outputs(options, arguments, path)
    variant = find_variant(options, arguments.variant, arguments.path) if arguments.variant else None
    how = Reading(finder(arguments.path), variant, arguments.adjudicate, arguments.opentafl)
    wanted = None if arguments.all else arguments.game or 1
    try:
        found = list(games_of(path, form, how, wanted))
        task = Task(arguments, source, path, found, how)
        return asyncio.run(task.run())
    except PROBLEM as error:
        print(f"hnefi analyze: {safe(str(error))}", file=sys.stderr)
        return code_of(error)


def _check_outputs(options: argparse.ArgumentParser, arguments: argparse.Namespace, path: Path) -> None:
    """Fail before the analysis begins if its output could not be written."""
    if arguments.chart:
        try:
            expect_drawable(Path(arguments.chart))
        except ChartError as error:
            options.error(f"--chart {error}")
    for name in filter(None, (arguments.output, arguments.chart)):
        if not Path(name).absolute().parent.is_dir():
            options.error(f"{name}: no such folder: expected one to write into")
    if arguments.output is None:
        if arguments.fresh or arguments.force:
            options.error("--fresh and --force: expected -o FILE, where an analysis is kept")
        return
    output = Path(arguments.output)
    if output.suffix.lower() != ".tafl":
        options.error(f"-o {output}: expected a file ending in .tafl, which can hold variations and scores")
    if output.exists():
        if path.exists() and output.samefile(path):
            options.error(f"-o {output}: expected a file other than the game's own")
        if not (arguments.force or beside(output).exists()):
            options.error(f"-o {output}: already exists: expected --force to replace it")


def _problem(step: Callable[[], None]) -> str:
    """What went wrong in a step, empty if nothing did."""
    try:
        step()
    except PROBLEM as error:
        return str(error)
    return ""


@dataclass(slots=True)
class Task:
    """One call of the command: its games, its engine, and what came of them so far."""

    arguments: argparse.Namespace
    source: Source
    path: Path
    games: list[tuple[int, Game]]
    how: Reading
    done: list[Analysed] = field(default_factory=list)
    records: list[GameRecord] = field(default_factory=list)
    broken: int = 0
    failure: str = ""
    name: str = ""
    store: Progress | None = None

    async def run(self) -> int:
        """Analyse everything; the exit code. PROBLEM where a file cannot be read or written."""
        if not self.games:
            raise RecordError(f"{self.path}: no game in it")
        total = sum(len(game.record.plies) + 1 for _, game in self.games)
        watch = Watch(sys.stderr, total, quiet=self.arguments.quiet)
        asker = Analyser(self.source, watch.say)
        refused = False
        interrupted = False
        try:
            interrupted = await until_interrupted(self._work(asker, watch))
        except Refused as error:
            self.failure, refused = str(error), True
        except (EngineError, GaveUp) as error:
            self.failure = str(error)
        finally:
            watch.end()
            await asker.close()
        if refused and not self.done:
            self._complain(self.failure)
            return USAGE
        status = self._end(interrupted)
        return USAGE if refused else status

    async def _work(self, asker: Analyser, watch: Watch) -> None:
        work = None
        for number, game in self.games:
            try:
                played = walk(game, number, str(self.path), self.how)
            except RecordError as error:
                if not self.arguments.all:
                    raise
                self.broken += 1
                watch.skip(len(game.record.plies) + 1)
                watch.say(f"hnefi analyze: {error}: this game is left out")
                continue
            await asker.open(played.variant)
            self.name = asker.name
            if work is None:
                self.store = self._store(watch)
                thresholds = self.arguments.thresholds or Thresholds()
                work = Work(asker, watch, thresholds, self.store, self.arguments.backward)
            try:
                await work.game(played)
            finally:
                # Also what was found before an engine failed.
                self._take(work.result(played))

    def _store(self, watch: Watch) -> Progress | None:
        """Where progress is kept: beside the output, if there is one."""
        arguments = self.arguments
        if arguments.output is None:
            return None
        source = self.source
        about = {
            "file": digest(self.path),
            "games": "all" if arguments.all else arguments.game or 1,
            "variant": arguments.variant,
            "engine": self.name,
            "command": "hnefi engine" if source.command is None else shlex.join(source.command),
            "options": [list(pair) for pair in source.options],
            "limits": source.limits_text,
            "lines": source.lines,
            "order": "backward" if arguments.backward else "forward",
            "independent": source.independent,
        }
        store = Progress(beside(Path(arguments.output)), about)
        store.open(size=MAX_SIZE, fresh=arguments.fresh)
        if store.known and not arguments.quiet:
            watch.say(f"continuing with {store.path}: {len(store.known)} positions are known")
        return store

    def _take(self, game: Analysed) -> None:
        self.done.append(game)
        if self.arguments.output is not None:
            self.records.append(annotated(game, self.name, self.source.limits_text, self.source.lines))

    # The end

    def _end(self, interrupted: bool) -> int:
        """Write and say everything; the exit code."""
        unwritten = [problem for step in (self._write, self._draw) if (problem := _problem(step))]
        unknown = sum(len(game.unknown) for game in self.done)
        if self.store is not None:
            # Positions without an answer are asked again by the same command.
            complete = len(self.done) + self.broken == len(self.games)
            complete = complete and all(game.complete for game in self.done) and not unknown
            self.store.close(done=complete and not unwritten)
        self._say()
        for problem in unwritten:
            self._complain(problem)
        if interrupted:
            known = sum(look is not None for game in self.done for look in game.looks)
            self._complain(f"interrupted: {known} positions are known" + self._goes_on())
            return INTERRUPTED
        if self.failure:
            self._complain(self.failure + self._goes_on())
            return failed(self.source.own)
        if unknown:
            self._complain(
                f"{unknown} positions are unknown, because the engine failed there" + self._goes_on()
            )
            return failed(self.source.own)
        if self.broken:
            self._complain(f"games that could not be played through: {self.broken}")
        return STORAGE if unwritten else USAGE if self.broken else DONE

    def _complain(self, text: str) -> None:
        print(f"hnefi analyze: {encodable(safe(text), sys.stderr.encoding)}", file=sys.stderr)

    def _goes_on(self) -> str:
        kept = self.arguments.output is not None and beside(Path(self.arguments.output)).exists()
        return "; the same command continues from here" if kept else ""

    def _write(self) -> None:
        if self.arguments.output is None or not self.records:
            return
        output = Path(self.arguments.output)
        try:
            write_file(output, "".join(map(tafl_text.write, self.records)))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StoreError(f"{output}: {reason}: expected a file that can be written") from None

    def _draw(self) -> None:
        if not self.arguments.chart:
            return
        path = Path(self.arguments.chart)
        for game in self.done:
            place = path
            if self.arguments.all:
                place = path.with_name(f"{path.stem}-{game.walk.number}{path.suffix}")
            chart.draw(game, place, self.name, self.source.limits_text)

    def _say(self) -> None:
        if self.arguments.json:
            for game in self.done:
                print(json.dumps(report.game_json(game, self.name, self.source.limits_text)))
            return
        for line in self._lines():
            print(encodable(line, "ascii" if self.arguments.plain else sys.stdout.encoding))

    def _lines(self) -> Any:
        plain = self.arguments.plain or (sys.stdout.encoding or "ascii").lower().replace("-", "") not in (
            "utf8",
            "utf16",
            "utf32",
        )
        if not self.arguments.all:
            for game in self.done:
                yield from report.game_lines(game, full=self.arguments.full, plain=plain)
        elif self.done:
            if self.arguments.full:
                for game in self.done:
                    yield from report.game_lines(game, full=True, plain=plain)
                    yield ""
            yield from report.games_table(self.done)
        if self.done:
            yield f"{safe(self.name)}, {self.source.limits_text} for each position"
