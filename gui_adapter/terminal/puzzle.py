"""`hnefi puzzle`: the proven positions of the suite as exercises at the terminal, with a rating from play."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from hnefi.engine.squares import move_name, name
from hnefi.engine.wording import nearest, shorten
from hnefi.protocol.flags import Help, Parser
from hnefi.protocol.hosts.argument_types import whole
from hnefi.protocol.hosts.exit_codes import DONE, code_of
from hnefi.protocol.hosts.puzzles import scores as score_files
from hnefi.protocol.hosts.puzzles.exercise import THEMES, themes, usable
from hnefi.protocol.hosts.puzzles.scores import Scores, ScoresError
from hnefi.protocol.hosts.puzzles.sitting import Sitting
from hnefi.protocol.hosts.puzzles.suite import SHIPPED, Entry, SuiteError, read
from hnefi.protocol.hosts.rulebook import special_squares
from hnefi.protocol.hosts.text_table import encodable, safe

from . import drawing, theme
from .game import board_of, facts_of
from .settings import Settings, load
from .values import View

if TYPE_CHECKING:
    from hnefi.engine.solving.proof import Prover
    from hnefi.protocol.hosts.puzzles.exercise import Exercise

LINE_LIMIT: Final = 4096
WIDTH: Final = 80
"""Columns of output to a file or a pipe."""
ROWS_BESIDE: Final = 8
"""Rows of the terminal reserved for the task, the answers and the prompt."""
WORDS: Final = {
    "MOVE": "try it: d1d3",
    "hint": "which man has to move; again: the move",
    "solution": "show the solution, with the best defence",
    "retry": "back to the first position",
    "next": "the next puzzle",
    "board": "the board again",
    "score": "your rating",
    "help": "these words",
    "quit": "leave",
}


DESCRIPTION: Final = """\
Positions with a proven win, or with only one move that does not lose. Type
your move; if it is wrong, you see the reply. `hint`, `solution`, `retry`,
`next` and `help` do what they say. Solving a puzzle at the first try raises
your rating; a wrong move or help lowers it. New puzzles near your rating come
first.

  hnefi puzzle make FILE ...   finds new puzzles in recorded games"""
EXAMPLES: Final = """\
examples:
  hnefi puzzle
  hnefi puzzle --variant brandubh
  hnefi puzzle --theme breakout --plies 5
  hnefi puzzle --puzzle brandubh-014 --no-record
  hnefi puzzle --list --variant copenhagen
  hnefi puzzle --suite mine.tsv
  hnefi puzzle make games.tafl --out mine.tsv"""


def main(argv: list[str]) -> int:
    """Show puzzles until the user leaves; 0, 2 if a puzzle cannot be shown, 4 if the score could not be saved."""
    options = Parser(
        prog="hnefi puzzle",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=Help,
        allow_abbrev=False,
    )
    options.add_argument("--variant", metavar="V,V", help="only puzzles of these variants (all)")
    options.add_argument(
        "--theme",
        choices=list(THEMES),
        metavar="THEME",
        help=f"only puzzles of this theme: {', '.join(THEMES)} (all)",
    )
    options.add_argument("--plies", metavar="N", type=whole(1), help="only wins of N plies, 3 or more (all)")
    options.add_argument("--puzzle", metavar="ID", help="begin with this puzzle")
    options.add_argument(
        "--suite", metavar="FILE", default=str(SHIPPED), help="a file of puzzles (the shipped one)"
    )
    options.add_argument("--list", action="store_true", help="list the chosen puzzles with their ratings")
    options.add_argument("--no-record", action="store_true", help="neither read nor save your score")
    arguments = options.parse_args(argv)
    try:
        entries = [entry for entry in read(Path(arguments.suite)) if usable(entry)]
        known = list(dict.fromkeys(entry.variant for entry in entries))
        names = arguments.variant.split(",") if arguments.variant else known
        for name in names:
            if name not in known:
                options.error(f"--variant {shorten(name)}: expected some of {', '.join(sorted(known))}")
        chosen = [
            entry
            for entry in entries
            if entry.variant in names
            and arguments.theme in (None, *themes(entry))
            and arguments.plies in (None, entry.plies)
        ]
        if not chosen:
            options.error(_none_like(arguments.theme, arguments.plies, names, entries))
        scores = Scores() if arguments.no_record else score_files.load(score_files.place())
        if arguments.list:
            for entry in chosen:
                rating, tries = scores.puzzle(entry), scores.tries.get(entry.id, 0)
                print(
                    f"{entry.id:24} {entry.plies} plies  {rating}  tried {tries} times  {' '.join(themes(entry))}"
                )
            return 0
        first = None
        if arguments.puzzle is not None:
            first = next((entry for entry in entries if entry.id == arguments.puzzle), None)
            if first is None:
                ids = [entry.id for entry in entries]
                hint = nearest(_numbered(arguments.puzzle), ids)
                options.error(
                    f"--puzzle {shorten(arguments.puzzle)}: no such puzzle{hint}: --list lists them"
                )
        settings, faults = load()
        for fault in faults:
            print(f"hnefi puzzle: {safe(fault)}", file=sys.stderr)
        person = sys.stdin.isatty() and sys.stdout.isatty()
        if not person:
            settings = settings.with_value("glyphs", "ascii")
        lines = typed(settings) if person else piped(sys.stdin.buffer)
        return Desk(chosen, scores, lines, settings).run(first)
    except (SuiteError, ScoresError) as error:
        print(f"hnefi puzzle: {safe(str(error))}", file=sys.stderr)
        return code_of(error)


def _none_like(
    theme: str | None, plies: int | None, variants: Sequence[str], entries: Sequence[Entry]
) -> str:
    """Why no puzzle was chosen, and which ones exist."""
    alike = [entry for entry in entries if entry.variant in variants and theme in (None, *themes(entry))]
    if not alike:
        return f"--theme {theme}: no puzzle of these variants has it: expected another --theme or --variant"
    lengths = ", ".join(str(length) for length in sorted({entry.plies for entry in alike}))
    return f"--plies {plies}: no such puzzle is that long: expected one of {lengths}"


def _numbered(puzzle: str) -> str:
    """The ID with its number written in full, as the suite has it: `brandubh-26` is `brandubh-026`."""
    variant, _, number = puzzle.rpartition("-")
    return f"{variant}-{number:0>3}" if number.isdigit() else puzzle


def piped(source: IO[bytes]) -> Iterator[str]:
    """The lines of a file or a pipe; overlong lines come in parts."""
    while data := source.readline(LINE_LIMIT):
        yield data.decode("utf-8", "replace")


def typed(settings: Settings) -> Iterator[str]:
    """Typed lines, with history and with Tab for the words. Ends at Ctrl-D, and at Ctrl-C on an empty line; otherwise
    Ctrl-C drops the line."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.formatted_text import FormattedText

    style, depth = theme.prompt_style(settings)
    session: PromptSession[str] = PromptSession(
        message=FormattedText([("class:prompt", "> ")]),
        completer=WordCompleter([word for word in WORDS if word != "MOVE"]),
        complete_while_typing=False,
        style=style,
        color_depth=depth,
    )
    while True:
        try:
            yield session.prompt()
        except KeyboardInterrupt:
            if not session.default_buffer.text:
                return
        except EOFError:
            return


class Desk:
    """Shows one puzzle after another, and answers lines."""

    def __init__(
        self, entries: Sequence[Entry], scores: Scores, lines: Iterator[str], settings: Settings | None = None
    ) -> None:
        self._entries = list(entries)
        self._sitting = Sitting(scores)
        self._lines = lines
        self._settings = settings or Settings()
        self._provers: dict[str, Prover] = {}
        self._exercise: Exercise | None = None
        self._done = False
        self._hinted = False
        self._code = DONE

    def run(self, first: Entry | None = None) -> int:
        """Handle lines until the last one or `quit`."""
        self._show(first or self._sitting.choose(self._entries))
        for line in self._lines:
            word = line.strip()
            if not word or word.startswith("#"):
                continue
            if self._answer(word):
                break
        self._say(self._sitting.scores.words())
        return self._code

    def _say(self, *lines: str) -> None:
        for line in lines:
            print(encodable(safe(line), sys.stdout.encoding), flush=True)

    # Which puzzle

    def _show(self, entry: Entry) -> None:
        from hnefi.protocol.hosts.puzzles.exercise import Exercise

        self._sitting.show(entry)
        self._exercise = Exercise(entry, self._prover(entry))
        self._done = self._hinted = False
        rating = self._sitting.scores.puzzle(entry)
        self._say("", f"{entry.id} ({entry.variant}, rated {rating.value:.0f}): {self._exercise.task}")
        self._board()

    def _prover(self, entry: Entry) -> Prover:
        from hnefi.protocol.hosts.puzzles.exercise import prover_of

        if entry.variant not in self._provers:
            self._provers[entry.variant] = prover_of(entry)
        return self._provers[entry.variant]

    def _board(self, last: int | None = None) -> None:
        """The position, with the move `last` that led to it marked."""
        assert self._exercise is not None
        position, variant = self._exercise.position, self._prover(self._exercise.entry).variant
        taken = () if last is None else tuple(name(square) for square in position.last_captures)
        board = board_of(
            variant,
            special_squares(variant.rules_lines()),
            facts_of(position.fen()),
            "" if last is None else move_name(last),
            taken,
        )
        view = View(variant.name, variant.game, board, self._settings)
        shown = sys.stdout.isatty()
        columns, rows = shutil.get_terminal_size() if shown else (WIDTH, 0)
        colour = shown and theme.colourful(self._settings)
        picture = drawing.picture(
            view,
            columns - 1,
            max(1, rows - ROWS_BESIDE) if rows else 0,
            colour=colour,
            signs=theme.glyphs(self._settings),
        )
        if not colour:
            self._say(*(theme.plain(line) for line in picture.lines))
            return
        theme.print_styled([part for line in picture.lines for part in (*line, ("", "\n"))], self._settings)

    # What is typed

    def _answer(self, text: str) -> bool:
        """Execute a line; True to leave."""
        exercise = self._exercise
        assert exercise is not None
        word = text.lower()
        meant = [name for name in WORDS if name != "MOVE" and name.startswith(word)]
        if word in WORDS:
            meant = [word]
        if len(meant) == 1:
            return self._word(meant[0], exercise)
        if self._done:
            self._say("It is solved: `next` shows another one, `retry` goes back to its beginning.")
            return False
        try:
            answer = exercise.play(text)
        except ValueError as error:
            help_ = "" if any(sign.isdigit() for sign in text) else "; `help` lists the words"
            self._say(f"{shorten(text)}: {error}{help_}")
            return False
        self._say(answer.text)
        if not answer.right:
            self._result(False)
            self._say("Try another move, or `hint`, `solution`, `next`.")
        elif answer.solved:
            self._done = True
            self._say("Solved." if self._sitting.open else "Solved, with help.")
            self._result(True)
        else:
            self._hinted = False
            self._board(answer.steps[-1][0])
        return False

    def _word(self, word: str, exercise: Exercise) -> bool:
        if word == "quit":
            return True
        if word == "next":
            self._show(self._sitting.choose(self._entries))
        elif word == "help":
            self._say(*(f"  {name:9} {does}" for name, does in WORDS.items()))
        elif word == "board":
            self._board()
        elif word == "score":
            self._say(self._sitting.scores.words())
        elif word == "retry":
            exercise.restart()
            self._done = self._hinted = False
            self._board()
        elif self._done:
            self._say("It is solved: `next` shows another one, `retry` goes back to its beginning.")
        elif word == "hint":
            self._say(exercise.hint(self._hinted))
            self._hinted = True
            self._result(False)
        else:
            self._say(exercise.solution())
            self._done = True
            self._result(False)
            self._board()
        return False

    def _result(self, solved: bool) -> None:
        """Count the first result of the current puzzle; if it cannot be saved, the session continues."""
        try:
            change = self._sitting.result(solved)
        except ScoresError as error:
            print(f"hnefi puzzle: {safe(str(error))}; it counts until you leave", file=sys.stderr)
            self._code = code_of(error)
            change = self._sitting.keep_no_more(solved)
        if change is not None:
            self._say(f"Your rating: {self._sitting.scores.player} ({change:+.0f}).")
