"""What every command word means: one table, one method per word."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hnefi import players
from hnefi.engine import about, options
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.search import features
from hnefi.engine.search.types import Info, SearchResult
from hnefi.engine.session import Session, SessionError
from hnefi.engine.sides import Side
from hnefi.engine.squares import move_name

from . import format as say
from . import messages

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.perft import PerftResult
    from hnefi.engine.search_thread import T

    from .server import Line, Server

PERFT_LIMIT = 100
BENCH_LIMIT = 100
GENFENS_PLIES = (4, 8)
SEARCH_FAILED = "search failed"
"""What an error line says it read that stands before a `bestmove (none)` that is not the end of a game."""
INSTEAD = "; a search would use default instead"
"""Not that it does: a client may refuse to go on."""
LICENSE_LINES = (
    f"{about.NAME} {about.VERSION}, by {about.AUTHORS}, is free software under the {about.LICENSE} licence:",
    "use, copy, change and pass it on as you like, as long as the copyright notice stays; there is no warranty.",
)


@dataclass(frozen=True, slots=True)
class Verb:
    """One command: its syntax, a sentence about what it does, and the method that does it.

    `always`: it is also taken while a search, or anything else in the search thread, is running.
    `kernels`: it needs everything imported and compiled.
    """

    usage: str
    sentence: str
    act: Callable[[Commands, list[str]], None]
    always: bool = False
    kernels: bool = False


class Commands:
    """Carries out lines. Every word of the protocol is a method; the session behind it does the work."""

    def __init__(self, server: Server, session: Session | None = None) -> None:
        self._server = server
        self._output = server.output
        self.debug = False
        self.session = session or Session(
            on_info=self._on_info,
            on_result=self._on_result,
            on_error=self._on_error,
            load_player=players.load,
            settle=server.settle,
        )
        self._quit = False
        self._begun_at_end = False
        self._unready = False
        """Whether the last `isready` was answered by an error."""

    def line(self, line: Line) -> bool:
        """Carry out one line as it was read; False if it was the last."""
        if line.cut:
            start = line[:40].decode("utf-8", "replace")
            self._error(f"{start}…", "expected a line of at most 65536 bytes")
            return True
        try:
            words = messages.words_of(line)
        except UnicodeDecodeError:
            self._error(line[:80].decode("utf-8", "backslashreplace"), "expected UTF-8")
            return True
        if not words or words[0].startswith("#"):
            return True
        known = messages.command_of(words, TABLE)
        if not known:
            self._say(f"info string unknown command: {say.shown(' '.join(words))}")
            return True
        self.carry_out(known)
        return not self._quit

    def carry_out(self, words: list[str]) -> None:
        """Carries out one command. Nothing that goes wrong gets out of here, and the old state stays."""
        verb = TABLE[words[0]]
        try:
            if not verb.always:
                self._demand_idle(words)
            if verb.kernels:
                self._warm()
            verb.act(self, words)
        except SessionError as error:
            self._error(error.read, error.expected)
        except Exception as error:  # noqa: BLE001 - no error ends the conversation
            if words[0] == "go" and words[1:2] != ["perft"]:
                self._search_failed(error)
            else:
                self._failed(" ".join(words), error)

    def _warm(self, *, again: bool = False) -> None:
        """Waits until everything is loaded that the current game needs; raises what made that impossible.

        With `again` it tries what failed before once more.
        """
        self._server.wait_until_warm(again=again)
        if self._server.warm_error is not None:
            raise self._server.warm_error
        self._server.load(self.session.warm)

    def close(self, grace: float) -> None:
        """The conversation is over: a running search gets `grace` seconds for its answer.

        What ends by itself is waited for, unless `quit` was said while it ran.
        """
        self.session.stop()
        if self.session.searching:
            self.session.wait(grace)
        elif self._finishing:
            self.session.wait()

    @property
    def _finishing(self) -> bool:
        """Whether the end has come, and what runs may be finished before."""
        inbox = self._server.inbox
        return inbox.closed and (self._begun_at_end or not inbox.told_to_quit)

    def _run(self, word: str, work: Callable[[], T], done: Callable[[T], None]) -> None:
        self._begun_at_end = self._server.input_has_ended
        self.session.run(word, work, done)

    # The conversation

    def greet(self, words: list[str]) -> None:
        """`uti`, `uci`, `ugi`: who the engine is, its options, and the word that ends the greeting."""
        self._server.greet(words[0])

    def isready(self, _: list[str]) -> None:
        """`isready`: outside a search, load and compile what the current game and options need; then `readyok`."""
        if not self.session.job:
            try:
                self._warm(again=self._unready)
            except Exception as error:  # noqa: BLE001 - whatever it is: who is not ready must not be left to play
                self._unready = True
                self._failed("isready", error, "isready tries again")
                return
            self._unready = False
        self._say("readyok")

    def set_debug(self, words: list[str]) -> None:
        """`debug on`, `debug off`."""
        if words[1:] not in (["on"], ["off"]):
            raise SessionError(" ".join(words), "expected debug on or debug off")
        self.debug = words[1] == "on"

    def help(self, words: list[str]) -> None:
        """`help [command]`: the usage of one command, or of all."""
        if len(words) > 1 and words[1] not in TABLE:
            raise SessionError(" ".join(words), f"expected one of {', '.join(TABLE)}")
        for verb in [TABLE[words[1]]] if len(words) > 1 else dict.fromkeys(TABLE.values()):
            self._say(f"info string help {verb.usage}: {verb.sentence}")

    def license(self, _: list[str]) -> None:
        """`license`: the licence, line by line."""
        for line in LICENSE_LINES:
            self._say(f"info string license {line}")

    def quit(self, _: list[str]) -> None:
        """`quit`: the server ends when this line has been carried out."""
        self._quit = True

    # Options, game, rules

    def setoption(self, words: list[str]) -> None:
        """`setoption name N [value V]`; options that are commands as well are carried out as those."""
        message = messages.parse_setoption(words)
        option = options.find(message.name)
        name = "" if option is None else option.name
        value = message.value or ""
        if name == "Variant" and value:
            self.variant(["variant", value])
        elif name == "Rules" and value:
            self.rules(["rules", *value.split()])
        elif name == "DebugLogFile" and message.value is not None:
            self._set_log("" if value == options.EMPTY else value)
        else:
            self.session.set_option(message.name, message.value)
            if name == "Features":
                for old, new in features.renamed(value).items():
                    self._say(
                        f"info string note Features: {old} is now called {new}; the next release removes the old name"
                    )
            if name in ("Evaluator", "Player") and (misfit := self.session.misfit):
                # The variant may be chosen yet: what is wrong by then is an error.
                self._say(f"info string note {say.shown(misfit + INSTEAD, 500)}")

    def _set_log(self, path: str) -> None:
        try:
            self._output.set_log(path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise SessionError(
                f"setoption DebugLogFile {path}", f"expected a file to write to ({reason})"
            ) from None
        self.session.set_option("DebugLogFile", path)

    def variants(self, _: list[str]) -> None:
        """`variants`: one line for each."""
        for variant in self.session.variants():
            self._say(say.variants_line(variant))

    def variant(self, words: list[str]) -> None:
        """`variant NAME`: another game, from its start."""
        if len(words) != 2:
            raise SessionError(" ".join(words), "expected the name of one variant")
        self._say(say.variant_line(self.session.set_variant(words[1])))
        self._tell_misfit("variant")

    def rules(self, words: list[str]) -> None:
        """`rules`: every switch in force; with a string, play by that."""
        if len(words) == 1:
            for name, text in self._rules():
                self._say(f"info string rules {name} {text}")
            return
        if words[1] == "switches":
            self._say(say.variant_line(self.session.set_switches(" ".join(words[2:]))))
            self._tell_misfit("rules")
            return
        opentafl = words[1] == "opentafl"
        variant, problems = self.session.set_rules(" ".join(words[1 + opentafl :]), opentafl=opentafl)
        for problem in problems:
            self._error("rules", problem)
        self._say(say.variant_line(variant))
        self._tell_misfit("rules")

    def _tell_misfit(self, read: str, instead: str = INSTEAD) -> None:
        """An error line where the chosen evaluator is not for the rules being played."""
        if misfit := self.session.misfit:
            self._error(read, misfit + instead)

    def _rules(self) -> Iterable[tuple[str, str]]:
        variant = self.session.variant
        yield from variant.rules_lines()
        yield "start", variant.rows
        yield "hash", variant.hash
        if not isinstance(variant, Variant):
            return
        from hnefi.engine.games.tafl import otn

        text, lost = otn.export_rules(variant)
        yield "otn", text
        yield "lost", " ".join(lost) or "none"

    def new_game(self, _: list[str]) -> None:
        """`utinewgame`: forget tables and history."""
        self.session.new_game()

    # Positions and moves

    def position(self, words: list[str]) -> None:
        """`position startpos`, `fen` or `otn`, with moves."""
        message = messages.parse_position(words)
        if message.kind == "otn":
            self.session.set_record(message.text, message.moves)
        elif message.kind == "startpos" and message.text:
            # Fields behind `startpos` are fields behind its FEN.
            start = f"{self.session.variant.startpos} {message.text}"
            self.session.set_position(start, message.moves)
        else:
            self.session.set_position(message.text or None, message.moves)

    def play(self, words: list[str]) -> None:
        """`play MOVE`, and the outcome if the move ends the game."""
        if len(words) != 2:
            raise SessionError(" ".join(words), "expected one move")
        played = self.session.play(words[1])
        self._say(say.played_line(played))
        if played.position.outcome is not None:
            self._say(say.outcome_line(played.position.outcome))

    def undo(self, _: list[str]) -> None:
        """`undo`: take the last move back."""
        self._say(say.undone_line(self.session.undo()))

    def moves(self, words: list[str]) -> None:
        """`moves [verbose]`: the legal moves, with `verbose` their captures."""
        position = self.session.position
        if words[1:] == ["verbose"]:
            self._say(say.verbose_moves_line(position.legal_moves_with_captures()))
        elif words[1:]:
            raise SessionError(" ".join(words), "expected moves or moves verbose")
        else:
            self._say(say.moves_line(position.legal_moves()))

    def board(self, _: list[str]) -> None:
        """`d`: the board as a picture, FEN, key, side, repetitions and outcome."""
        position = self.session.position
        for line in position.diagram().splitlines():
            self._say(line)
        self._say(f"fen: {position.fen()}")
        self._say(f"key: {position.key & (1 << 64) - 1:016x}")
        self._say(f"side: {position.side.letter}")
        self._say(f"repetitions: {position.repetitions}")
        if position.outcome is not None:
            self._say(f"outcome: {position.outcome.text}")

    def query(self, words: list[str]) -> None:
        """`query WORD`: one `response` line."""
        answer = QUERIES.get(words[1]) if len(words) == 2 else None
        if answer is None:
            raise SessionError(" ".join(words), f"expected query and one of {', '.join(QUERIES)}")
        self._say(say.response_line(answer(self.session.position)))

    # Thinking

    def go(self, words: list[str]) -> None:
        """`go …`: begin a search; what is wrong in the line is reported and skipped."""
        if words[1:2] == ["perft"]:
            self.perft(words[1:])
            return
        message = messages.parse_go(words)
        searchmoves, problems = self.session.legal(message.searchmoves)
        for problem in (*message.problems, *problems):
            self._error(problem.read, problem.expected)
        limits = replace(message.limits, searchmoves=searchmoves)
        if message.problems and not (limits.bounded or limits.infinite or limits.ponder):
            self._say("info string note nothing in this line limits the search: stop ends it")
        if self.debug:
            self._say(f"info string limits: {say.go_line(limits, [move_name(m) for m in searchmoves])}")
        self._tell_misfit("go", "; this search uses default instead")
        self.session.go(limits)

    def stop(self, _: list[str]) -> None:
        """`stop`: end the search and wait for its answer; silent if there is none."""
        if self.session.searching:
            self.session.stop()
            self._server.wait_for(self.session.ended())

    def ponderhit(self, _: list[str]) -> None:
        """`ponderhit`: the pondered move was played, the clock counts from now on."""
        self.session.ponderhit()

    def evaluate(self, _: list[str]) -> None:
        """`eval`: the terms of the evaluation, in centipawns for the attackers, and the total."""
        if misfit := self.session.misfit:
            raise SessionError("eval", f"{misfit}{INSTEAD}, eval is refused")
        terms = self.session.evaluate()
        for remark in self.session.remarks():
            self._say(f"info string {remark}")
        for term, value in terms[:-1]:
            self._say(f"info string eval {term} a {value}")
        total = terms[-1][1]
        own = total if self.session.position.side is Side.ATTACKERS else -total
        self._say(f"info string eval total a {total} stm {own}")

    def solved(self, _: list[str]) -> None:
        """`tb`: what the solved tables say of the position and of every move."""
        value, moves = self.session.solved()
        for line in say.solved_lines(self.session.position.side, value, moves):
            self._say(line)

    def perft(self, words: list[str]) -> None:
        """`perft N`: the leaves after each first move, and in all."""
        depth = messages.parse_number(words, 0, PERFT_LIMIT)
        position = self.session.position

        def work() -> PerftResult:
            from hnefi.engine.perft import perft

            return perft(position, depth)

        def done(result: PerftResult) -> None:
            for move, count in result.divide:
                self._say(f"{move_name(move)}: {count}")
            self._say(f"Nodes searched: {result.nodes}")
            rate = int(result.nodes / max(result.seconds, 1e-6))
            milliseconds = int(result.seconds * 1000)
            self._say(f"info string perft captures {result.captures} time {milliseconds} nps {rate}")

        self._run("perft", work, done)

    def bench(self, words: list[str]) -> None:
        """`bench [depth]`: search fixed positions; the last line is the same on every machine."""
        depth = messages.parse_number(words, 1, BENCH_LIMIT, default=0)

        def work() -> tuple[int, float, list[str]]:
            from hnefi.engine.bench import bench

            return bench(depth) if depth else bench()

        def done(result: tuple[int, float, list[str]]) -> None:
            nodes, seconds, lines = result
            for line in lines:
                self._say(f"info string bench {line}")
            rate = int(nodes / max(seconds, 1e-6))
            self._say(f"info string bench time {int(seconds * 1000)} nps {rate}")
            self._say(f"Nodes searched: {nodes}")

        self._run("bench", work, done)

    def genfens(self, words: list[str]) -> None:
        """`genfens N seed S plies K-L`: random openings as FENs."""
        message = messages.parse_genfens(words)
        variant = self.session.variant
        seed = self.session.settings.seed if message.seed is None else message.seed

        def work() -> list[Position]:
            from hnefi.engine.openings import generate

            return list(generate(variant, message.count, seed, plies=message.plies or GENFENS_PLIES))

        def done(openings: list[Position]) -> None:
            for position in openings:
                self._say(f"info string genfens {position.fen()}")

        self._run("genfens", work, done)

    # What the search thread says

    def _on_info(self, info: Info) -> None:
        self._say(say.info_line(info, wdl=bool(self.session.option("UCI_ShowWDL"))))

    def _on_result(self, position: Position, result: SearchResult) -> None:
        if position.outcome is not None:
            for line in say.finished_lines(position.outcome, position.side):
                self._say(line)
        if result.better:
            self._say(say.better_line(result.better))
        self._say(say.bestmove_line(result, ponder=self._server.dialect != "ugi"))

    def _on_error(self, error: Exception) -> None:
        if isinstance(error, SessionError):
            self._error(error.read, error.expected)
        elif self.session.job == "go":
            self._failed(SEARCH_FAILED, error)
        else:
            self._failed(self.session.job, error)

    def _search_failed(self, error: Exception) -> None:
        """A `go` whose search failed is still answered, without a move: a legal but unsearched move would look like a
        real answer."""
        self._failed(SEARCH_FAILED, error)
        self._say(say.bestmove_line(SearchResult(None)))

    # Answers

    def _say(self, line: str) -> None:
        self._output.line(line)

    def _error(self, read: str, expected: str) -> None:
        self._say(say.error_line(read, expected))

    def _failed(self, read: str, error: Exception, hope: str = "nothing was changed") -> None:
        """Report an internal error; the details only where debugging is on."""
        self._error(read, f"{type(error).__name__} {error}: this is a fault of the engine, {hope}")
        if self.debug:
            traceback.print_exception(error, file=sys.stderr)

    def _demand_idle(self, words: list[str]) -> None:
        job = self.session.job
        if job == "go":
            raise SessionError(" ".join(words), "not while searching, expected stop first")
        if job and self._finishing:
            # Nobody can ask again.
            self.session.wait()
        elif job:
            raise SessionError(" ".join(words), f"not while {job} is running, expected it to end first")


def _query_history(position: Position) -> str:
    start = position.start_fen
    return say.history(None if start == position.variant.startpos else start, position.moves)


def _query_result(position: Position) -> str:
    outcome = position.outcome
    if outcome is None:
        return "none"
    return "draw" if outcome.winner is None else f"p{outcome.winner + 1}win"


QUERIES: dict[str, Callable[[Position], str]] = {
    "fen": lambda position: position.fen(),
    "turn": lambda position: position.side.letter,
    "outcome": lambda position: "none" if position.outcome is None else position.outcome.result,
    "reason": lambda position: "none" if position.outcome is None else str(position.outcome.reason),
    "captures": lambda position: "{} {}".format(*position.taken),
    "history": _query_history,
    "result": _query_result,
    "gameover": lambda position: say.yes_no(position.outcome is not None),
    "p1turn": lambda position: say.yes_no(position.side is Side.ATTACKERS),
}

_GREETING = Verb("uti, uci or ugi", "print name and options, then the ok word of the dialect", Commands.greet)
_NEW_GAME = Verb(
    "utinewgame, ucinewgame or uginewgame",
    "start a new game: clear the table and set the start position",
    Commands.new_game,
)
_BOARD = Verb("d or board", "print the board and the details of the position", Commands.board, True, True)

TABLE: dict[str, Verb] = {
    "uti": _GREETING,
    "uci": _GREETING,
    "ugi": _GREETING,
    "isready": Verb(
        "isready",
        "answer readyok once everything is loaded; allowed at any time",
        Commands.isready,
        always=True,
    ),
    "debug": Verb(
        "debug on|off", "print more, with tracebacks on standard error", Commands.set_debug, always=True
    ),
    "setoption": Verb("setoption name N [value V]", "set an option", Commands.setoption),
    "variants": Verb("variants", "list the variants, one line each", Commands.variants),
    "variant": Verb("variant NAME", "choose a variant and set its start position", Commands.variant),
    "rules": Verb(
        "rules [[opentafl] OTN | switches start=ROWS …]",
        "print all rules, or set them by an OTN rules string or by switches",
        Commands.rules,
    ),
    "utinewgame": _NEW_GAME,
    "ucinewgame": _NEW_GAME,
    "uginewgame": _NEW_GAME,
    "position": Verb(
        "position startpos|fen FEN|otn RECORD [moves M...]",
        "set the position, with the game that led to it",
        Commands.position,
        kernels=True,
    ),
    "go": Verb(
        "go [searchmoves M...] [ponder] [atime|dtime|ainc|dinc ms] [movestogo|depth|nodes|mate n] [movetime ms] "
        "[infinite]",
        "search until a limit is reached, then answer bestmove",
        Commands.go,
        kernels=True,
    ),
    "stop": Verb("stop", "stop the search; it answers at once", Commands.stop, always=True),
    "ponderhit": Verb("ponderhit", "the expected move was played", Commands.ponderhit, always=True),
    "d": _BOARD,
    "board": _BOARD,
    "moves": Verb(
        "moves [verbose]",
        "list all legal moves; verbose adds their captures",
        Commands.moves,
        True,
        True,
    ),
    "play": Verb("play M", "play a move in the current position", Commands.play, kernels=True),
    "undo": Verb("undo", "take the last move back", Commands.undo, kernels=True),
    "eval": Verb(
        "eval", "print the evaluation of the position, term by term", Commands.evaluate, kernels=True
    ),
    "tb": Verb(
        "tb",
        "list every legal move with its exact value, if a solved table has it",
        Commands.solved,
        kernels=True,
    ),
    "query": Verb(
        f"query {'|'.join(QUERIES)}",
        "answer a question about the position in one line",
        Commands.query,
        always=True,
        kernels=True,
    ),
    "perft": Verb("perft N", "count the positions N plies away", Commands.perft, kernels=True),
    "bench": Verb(
        "bench [depth]",
        "search fixed positions; the node count identifies the build",
        Commands.bench,
        kernels=True,
    ),
    "genfens": Verb(
        "genfens N seed S plies K[-L]", "print N random openings", Commands.genfens, kernels=True
    ),
    "help": Verb("help [command]", "print this list, or one line of it", Commands.help, always=True),
    "license": Verb("license", "print the licence", Commands.license),
    "quit": Verb("quit", "exit", Commands.quit, always=True),
}
