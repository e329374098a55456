"""Our engine as OpenTafl's: the host drives, we answer.

The host owns the board: it sends moves and the board after them, and our rules only follow. If no line of moves leads
to its board, the game continues from that board without a history.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hnefi.engine import squares
from hnefi.engine.compile.progress import Progress
from hnefi.engine.games.tafl.fen import parse_fen
from hnefi.engine.games.tafl.otn import OtnError, import_rules
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.sides import Reason, Side
from hnefi.engine.wording import shorten
from hnefi.protocol.client import Answer, Engine, EngineError, EngineProtocolError, Limits, Search
from hnefi.protocol.hosts.exit_codes import DONE, FAULTS, OURS_FAILED
from hnefi.protocol.hosts.journal import Journal
from hnefi.protocol.hosts.rulebook import EngineSlot, Facts, IllegalPosition, Line, RulesEngine
from hnefi.protocol.hosts.stdio import Deaf, Stdio

from . import lines as say
from .lines import LineError, Played
from .recording import Recording
from .timing import OwnTime

LOG = logging.getLogger("hnefi.otep")

STATUS_PAUSE: Final = 0.5
"""Seconds between two reports."""
REPORTED: Final = 6
"""Moves of the best line in a report."""
GRACE: Final = 2.0
"""Seconds that an engine may be late."""
PARTING: Final = 1.0
"""Seconds to handle lines that arrived before the goodbye."""
REFUSALS: Final = 3
"""Refused moves in one position after which we resign: our rules are not the host's."""
ANALYSIS_RESERVE: Final = 200
"""Milliseconds of an analysis that are left unused."""
DIVERGING: Final = frozenset({"foteviken", "magpie"})
"""Games that OpenTafl does not play by its own rules strings."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings: milliseconds for a move if the host has no clock, and whether rules strings are interpreted as OpenTafl
    does, including its quirks."""

    movetime: int = 5_000
    opentafl: bool = True


class Unplayable(Exception):
    """This game cannot be played; the message says why we resign."""


class Face:
    """One conversation with a host."""

    def __init__(
        self,
        stdio: Stdio,
        own: EngineSlot,
        chooser: EngineSlot,
        settings: Settings,
        journal: Journal | None,
        game_of: Callable[[Variant, bool], str],
    ) -> None:
        """`own` is asked for the rules, `chooser` (which may be the same) for moves. `game_of` is the line that tells
        another engine than ours what is played, from the rules and how their string was read; Unplayable."""
        self._stdio = stdio
        self._own = own
        self._chooser = chooser
        self._rules = RulesEngine(own)
        self._settings = settings
        self._game_of = game_of
        self._recording = Recording(journal)
        self._variant: Variant | None = None
        self._line = Line()
        self._facts: Facts | None = None
        """The facts after `_line`, computed when first needed."""
        self._sent = ""
        """Our move that the host has neither accepted nor refused yet."""
        self._refused: list[str] = []
        self._side = Side.ATTACKERS
        """The side to move according to the host's last message."""
        self._time = OwnTime()
        self._work: asyncio.Task[None] | None = None
        self._told_difference = False
        self._resigned = False
        self._asked_again = False
        self._unknown: set[str] = set()
        self._reported = 0.0
        self._values: dict[tuple[int, str], int] = {}
        self._owed: Side | None = None
        """The side whose move the host is waiting for."""
        self._status = DONE

    async def run(self) -> int:
        """Serve the host until it says goodbye or the game cannot continue; the exit code."""
        talking = asyncio.create_task(self._guarded(self._converse()))
        leaving = asyncio.create_task(self._stdio.over.wait())
        try:
            await asyncio.wait({talking, leaving}, return_when=asyncio.FIRST_COMPLETED)
            await self._stop()
            # What came before the goodbye may say how the game ended.
            await asyncio.wait({talking}, timeout=PARTING)
            if talking.done():
                talking.result()
            return self._status
        finally:
            tasks = [task for task in (talking, leaving, self._work) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            self._recording.leave("the conversation ended")

    async def _converse(self) -> None:
        while (line := await self._stdio.line()) is not None:
            text = say.without_dump(line.decode("utf-8", "replace")).strip()
            if text == "goodbye" or self._status:
                break
            if line.cut:
                LOG.warning("a line of more than 64 KiB: skipped")
            else:
                await self._take(text)

    async def _take(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        handler = _HANDLERS.get(word)
        if handler is None:
            if text and word not in self._unknown and len(self._unknown) < 100:
                self._unknown.add(word)
                LOG.info("%s: not a command we know: skipped", shorten(text))
            return
        try:
            await handler(self, rest.strip())
        except LineError as error:
            LOG.warning("%s %s", shorten(word), error)
        except Unplayable as error:
            await self._resign(str(error))

    # The game

    async def _take_rules(self, text: str) -> None:
        await self._stop()
        try:
            variant, problems = import_rules(text, self._settings.opentafl)
        except OtnError as error:
            self._variant = None
            raise Unplayable(f"rules: {error}") from None
        for problem in problems:
            LOG.warning("rules: %s", problem)
        self._variant = variant
        word = "rules opentafl" if self._settings.opentafl else "rules"
        self._new_game()
        await self._own.choose(f"{word} {text}")
        if self._chooser is not self._own:
            await self._chooser.choose(self._game_of(variant, self._settings.opentafl))
        if variant.name.lower() in DIVERGING:
            await self._tell(f"OpenTafl does not play {variant.name} by its own rules; we play by the rules")

    def _new_game(self) -> None:
        self._recording.leave("a new game was begun")
        self._line, self._facts = Line(), None
        self._sent = ""
        self._refused = []
        self._time = OwnTime()
        self._told_difference = self._resigned = self._asked_again = False
        self._owed = None

    async def _take_finish(self, text: str) -> None:
        """Handle the end of the game. The host never sends a last move of the opponent, and may not confirm ours."""
        await self._stop()
        result = say.RESULTS.get(say.parse_number(text) if text else 0)
        if self._variant is not None and (self._line != Line() or self._sent):
            if self._sent and result is not None:
                line = self._line.play(self._sent)
                await self._arrive(line, await self._rules.facts(line))
            self._recording.finish(result, self._facts, resigned=self._resigned)
            await self._own.use(_new_game)
            if self._chooser is not self._own:
                await self._chooser.use(_new_game)
        self._new_game()

    async def _take_board(self, text: str) -> None:
        """A board, which the host sends before an analysis, or because we asked."""
        await self._stop()
        if self._variant is None:
            raise LineError(f"{text[:80]!r}: expected rules before a position")
        await self._go_on_from(text, self._owed or self._side)
        if self._owed is not None and not self._asked_again:
            await self._answer(self._owed)

    async def _take_side(self, text: str) -> None:
        self._side = say.parse_side(text)

    async def _take_played(self, text: str) -> None:
        """Handle a move of the opponent, or the whole game, by the first reading that gives the host's board."""
        await self._stop()
        played = say.parse_played(text)
        for line in self._readings(played):
            try:
                facts = await self._rules.facts(line)
            except IllegalPosition:
                continue
            if _agree(facts, played.rows):
                if line != self._line:
                    self._refused = []
                await self._arrive(line, facts)
                return
        LOG.warning("no legal moves lead to the host's board: the game goes on from there")
        await self._go_on_from(text.strip().partition(" ")[2], self._side.other)

    def _readings(self, played: Played) -> list[Line]:
        """The lines that the moves may continue: ours (after our sent move, if any), the start, or the known line."""
        line, moves = self._line, played.moves
        found = [line] if moves == line.moves[-len(moves) :] else []
        if self._sent:
            found.append(line.play(self._sent, *moves))
        return [*found, line.play(*moves), Line(None, moves)]

    async def _take_accepted(self, text: str) -> None:
        """Our move was played; the board is the host's."""
        await self._stop()
        rows = say.parse_rows(text) if text else None
        if not self._sent:
            if rows is not None and rows != (await self._known()).rows:
                await self._go_on_from(text, self._side)
            return
        line = self._line.play(self._sent)
        facts = await self._rules.facts(line)
        self._refused = []
        if _agree(facts, rows):
            await self._arrive(line, facts)
            return
        if not self._told_difference:
            self._told_difference = True
            await self._tell(f"rules differ at {_difference(facts.rows, rows or '')} after {self._sent}")
        await self._go_on_from(text, facts.side)

    async def _arrive(self, line: Line, facts: Facts) -> None:
        known = line == self._line
        self._line, self._facts, self._sent = line, facts, ""
        for ply in self._recording.unknown(line):
            before = await self._rules.facts(Line(line.start, line.moves[:ply]))
            self._recording.add(line.moves[ply], before.legal[line.moves[ply]])
        if not known:
            self._recording.write()

    async def _go_on_from(self, text: str, side: Side) -> None:
        """Continue from the host's board without a history."""
        self._sent = ""
        rows = say.parse_rows(text) if text else None
        line = None if rows is None else Line(f"{rows} {side.letter} 0 1")
        facts = None
        if line is not None:
            try:
                facts = await self._rules.facts(line)
            except IllegalPosition as error:
                LOG.warning("%s: not a board that we can play from: %s", shorten(text), error)
        if line is None or facts is None:
            if self._asked_again:
                raise Unplayable("the host sent no readable board")
            self._asked_again = True
            await self._stdio.say("position")
            return
        self._asked_again = False
        self._refused = []
        self._line, self._facts = line, facts
        self._recording.leave("the game went on from another board")

    async def _known(self) -> Facts:
        if self._facts is None:
            self._facts = await self._rules.facts(self._line)
        return self._facts

    async def _turn(self, side: Side) -> Facts:
        """The facts for `side` to move. If our rules expect the other side or a finished game, the board counts."""
        if self._variant is None:
            raise Unplayable("expected rules before play")
        self._side = side
        facts = await self._known()
        if facts.side is not side or not facts.legal:
            line = Line(f"{facts.rows} {side.letter} 0 1")
            try:
                facts = await self._rules.facts(line)
            except IllegalPosition as error:
                raise Unplayable(f"this board cannot be played on: {error}") from None
            self._line, self._facts = line, facts
            self._recording.leave("the game went on from another board")
        return facts

    # Thinking

    async def _take_clock(self, text: str) -> None:
        self._time.clock = say.parse_clock(text)  # a running search is not affected

    async def _take_play(self, text: str) -> None:
        side = say.parse_side(text)
        if self._sent and self._owed is None:
            LOG.warning("play: we have answered %s and are waiting for the host to play it", self._sent)
            return
        await self._stop()
        self._owed = side
        if not self._asked_again:
            await self._answer(side)

    async def _answer(self, side: Side) -> None:
        facts = await self._turn(side)
        choices = [move for move in facts.legal if move not in self._refused]
        if not choices or len(self._refused) >= REFUSALS:
            refused = f": the host refused {', '.join(map(say.format_move, self._refused))}"
            over = f": the game is over by our rules ({facts.reason})" if facts.reason else ""
            raise Unplayable(f"no move{refused if self._refused else over}")
        assert self._variant is not None
        self._recording.seat(side, self._variant, self._line)
        self._begin(self._play(side, choices))

    async def _play(self, side: Side, choices: Sequence[str]) -> None:
        limits = self._time.limits(side, self._settings.movetime)

        async def think(engine: Engine) -> str:
            await self._set(engine, "MultiPV", 1)
            answer = await self._search(engine, limits, side, choices if self._refused else ())
            if answer.move is None or answer.move not in choices:
                raise EngineProtocolError(f"{engine.name} answered {answer.move}: expected a legal move")
            return answer.move

        began = time.monotonic()
        move = await self._chooser.use(think)
        self._time.moved(side, round((time.monotonic() - began) * 1000))
        self._sent, self._owed = move, None
        await self._stdio.say(f"move {say.format_move(move)}")

    async def _take_analyze(self, text: str) -> None:
        await self._stop()
        self._owed = None
        words = text.split()
        if len(words) != 2:
            raise LineError(f"{text[:80]!r}: expected a number of lines and the seconds")
        count, seconds = map(say.parse_number, words)
        facts = await self._turn(self._side)
        if not facts.legal or count < 1:
            await self._tell("nothing to analyse: the game is over by our rules")
            return
        self._begin(self._analyze(facts.side, min(count, len(facts.legal)), max(1, min(seconds, 86_400))))

    async def _analyze(self, side: Side, count: int, seconds: int) -> None:
        limits = Limits(movetime=seconds * 1000 - ANALYSIS_RESERVE)

        async def think(engine: Engine) -> Answer:
            most = engine.options.get("multipv")
            if most is not None:
                await self._set(engine, "MultiPV", min(count, most.maximum or count))
            return await self._search(engine, limits, side)

        answer = await self._chooser.use(think)
        found = [
            (info.pv, say.value_for_attackers(side, info.score.cp, info.score.mate))
            for info in answer.infos
            if info.pv and info.score is not None
        ]
        await self._stdio.say(say.format_analysis(found))

    async def _set(self, engine: Engine, name: str, value: int) -> None:
        """Set an option that the engine has, if it has another value."""
        if name.lower() in engine.options and self._values.get((engine.pid, name), 1) != value:
            await engine.set_option(name, value)
            self._values = {(engine.pid, name): value}

    async def _search(self, engine: Engine, limits: Limits, side: Side, among: Sequence[str] = ()) -> Answer:
        allowed = limits.clock[side] if limits.movetime is None else limits.movetime
        engine.position(self._line.start or "startpos", self._line.moves)
        search = await engine.go(limits, searchmoves=among, timeout=(allowed or 0) / 1000 + GRACE)
        reports = asyncio.create_task(self._report(search, side))
        try:
            return await search
        except asyncio.CancelledError:
            with contextlib.suppress(EngineError):
                await search.abandon()
            raise
        finally:
            reports.cancel()

    async def _report(self, search: Search, side: Side) -> None:
        with contextlib.suppress(EngineError):
            async for info in search:
                if info.depth and info.score is not None and info.multipv == 1:
                    value = say.value_for_attackers(side, info.score.cp, info.score.mate)
                    line = " ".join(map(say.format_move, filter(say.is_move, info.pv[:REPORTED])))
                    self._mention(f"depth {info.depth}, {value} for the attackers: {line}")

    def compiling(self, progress: Progress) -> None:
        """Tell the user of the host that our engine is compiling."""
        left = "" if progress.remaining is None else f", about {progress.remaining:.0f} s left"
        self._mention(f"compiling {progress.part} ({progress.done}/{progress.total}{left})")

    # Output besides moves

    def _mention(self, text: str) -> None:
        """Send a `status`, unless one was sent a moment ago."""
        now = time.monotonic()
        if now - self._reported >= STATUS_PAUSE and self._stdio.mention(say.format_status(text)):
            self._reported = now

    async def _tell(self, text: str) -> None:
        """Send an important `status`."""
        LOG.warning("%s", text)
        await self._stdio.say(say.format_status(text))

    async def _resign(self, why: str) -> None:
        """Resign this game, once."""
        LOG.error("%s", why)
        self._owed = None
        if not self._resigned:
            self._resigned = True
            await self._stdio.say(f"error -1 {say.plain(why)}")

    async def _take_error(self, text: str) -> None:
        number = say.parse_number(text.partition(" ")[0])
        LOG.warning("the host answers %s: error %s", self._sent or "nothing", shorten(text))
        if 1 <= number <= 4 and self._sent:
            self._refused.append(self._sent)
            self._sent = ""

    # Work that lines may interrupt

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        if self._stdio.over.is_set():
            work.close()
        else:
            self._work = asyncio.create_task(self._guarded(work))
            # If it is cancelled before it has begun, nobody awaits it.
            self._work.add_done_callback(lambda _: work.close())

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Deaf as error:
            self._end(FAULTS, error)
        except EngineError as error:
            await self._fail(error)

    async def _fail(self, error: EngineError) -> None:
        with contextlib.suppress(Deaf):
            await self._resign(f"the engine failed: {error}")
        self._end(OURS_FAILED, error)

    def _end(self, status: int, error: Exception) -> None:
        LOG.error("%s", error)
        self._status = status
        self._stdio.over.set()

    async def _stop(self) -> None:
        """Discard the answer of a running search and, if everything is over, any further ones."""
        work, self._work = self._work, None
        if work is not None:
            work.cancel()
            await asyncio.wait([work])
            if not work.cancelled():
                work.result()


async def _new_game(engine: Engine) -> None:
    await engine.new_game()


def _agree(facts: Facts, rows: str | None) -> bool:
    """Whether the host's board, if sent, equals ours. A captured king is off our board but may remain on the host's."""
    if rows is None or rows == facts.rows:
        return True
    kingless = {sq: letter for sq, letter in _pieces(rows).items() if letter != "K"}
    return facts.reason == Reason.KING_CAPTURED and kingless == _pieces(facts.rows)


def _pieces(rows: str) -> dict[int, str]:
    return dict(parse_fen(rows).pieces)


def _difference(ours: str, theirs: str) -> str:
    """The first square in which two boards differ; empty if there is none."""
    one, other = _pieces(ours), _pieces(theirs)
    return next(
        (squares.name(sq) for sq in sorted(one.keys() | other.keys()) if one.get(sq) != other.get(sq)), ""
    )


_HANDLERS: Final[Mapping[str, Callable[[Face, str], Coroutine[Any, Any, None]]]] = {
    "rules": Face._take_rules,
    "position": Face._take_board,
    "side": Face._take_side,
    "clock": Face._take_clock,
    "play": Face._take_play,
    "opponent-move": Face._take_played,
    "move": Face._take_accepted,
    "error": Face._take_error,
    "analyze": Face._take_analyze,
    "finish": Face._take_finish,
}
