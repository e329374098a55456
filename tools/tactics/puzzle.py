"""`hnefi puzzle`: the proven positions of the suite as exercises at the terminal, with a rating from play."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from hnefi.engine.wording import nearest, shorten
from hnefi.protocol.hosts.exit_codes import code_of
from hnefi.protocol.hosts.puzzles import scores as score_files
from hnefi.protocol.hosts.puzzles.exercise import THEMES, themes, usable
from hnefi.protocol.hosts.puzzles.scores import Scores, ScoresError
from hnefi.protocol.hosts.puzzles.sitting import Sitting
from hnefi.protocol.hosts.puzzles.suite import SHIPPED, Entry, SuiteError, read
from hnefi.protocol.hosts.text_table import encodable, safe

from ..common.arguments import let_interrupt_end_us, parser, positive

if TYPE_CHECKING:
    from hnefi.engine.solving.proof import Prover
    from hnefi.protocol.hosts.puzzles.exercise import Exercise

LINE_LIMIT: Final = 4096
WORDS: Final = {
    "MOVE": "try it: d1d3",
    "hint": "which man has to move; once more: the move",
    "solution": "how it goes, with the best defence",
    "retry": "back to the first position",
    "next": "the next puzzle",
    "board": "the board again",
    "score": "your rating",
    "help": "these words",
    "quit": "leave",
}


def main(argv: list[str]) -> int:
    """Show puzzles until nobody wants more; 0, 2 for what cannot be shown, 4 where the score cannot be kept.
    `make` finds new ones."""
    if argv[:1] == ["make"]:
        from .make import main as make

        return make(argv[1:])
    options = parser(
        "puzzle",
        "Positions with a proven win, or with one move that does not lose. Type your move; a wrong one is answered,\n"
        "and `hint`, `solution`, `retry`, `next` and `help` do what they say. Solved at the first try counts for your\n"
        "rating, a wrong move or help counts against it; puzzles near your rating that are new to you come first.\n\n"
        "  hnefi puzzle make FILE ...   finds new puzzles in recorded games",
        [
            "",
            "--variant brandubh",
            "--theme breakout --plies 5",
            "--puzzle brandubh-014 --no-record",
            "--list --variant copenhagen",
            "--suite mine.tsv",
            "make games.tafl --out mine.tsv",
        ],
    )
    options.add_argument("--variant", metavar="V,V", help="only of these variants (all)")
    options.add_argument(
        "--theme",
        choices=list(THEMES),
        metavar="THEME",
        help=f"only of this theme: {', '.join(THEMES)} (all)",
    )
    options.add_argument("--plies", metavar="N", type=positive, help="only of wins so long, 3 or more (all)")
    options.add_argument("--puzzle", metavar="ID", help="begin with this one")
    options.add_argument("--suite", metavar="FILE", default=str(SHIPPED), help="a suite (the shipped one)")
    options.add_argument("--list", action="store_true", help="list the chosen puzzles with their ratings")
    options.add_argument("--no-record", action="store_true", help="read and keep no score")
    arguments = options.parse_args(argv)
    let_interrupt_end_us()
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
            options.error("no puzzle is like that: expected another --theme or --plies")
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
                hint = nearest(arguments.puzzle, ids)
                options.error(
                    f"--puzzle {shorten(arguments.puzzle)}: no such puzzle{hint}: --list lists them"
                )
        return Desk(chosen, scores, sys.stdin.buffer).run(first)
    except (SuiteError, ScoresError) as error:
        print(f"hnefi puzzle: {safe(str(error))}", file=sys.stderr)
        return code_of(error)


class Desk:
    """Shows one puzzle after the other, and answers lines."""

    def __init__(self, entries: Sequence[Entry], scores: Scores, source: IO[bytes]) -> None:
        self._entries = list(entries)
        self._sitting = Sitting(scores)
        self._source = source
        self._asks = source.isatty()
        self._provers: dict[str, Prover] = {}
        self._exercise: Exercise | None = None
        self._done = False
        self._hinted = False

    def run(self, first: Entry | None = None) -> int:
        """Go through lines until the last one or `quit`."""
        self._show(first or self._sitting.choose(self._entries))
        for line in self._lines():
            word = line.strip()
            if not word or word.startswith("#"):
                continue
            if self._answer(word):
                break
        self._say(self._sitting.scores.words())
        return 0

    def _lines(self) -> Iterator[str]:
        while True:
            if self._asks:
                print("> ", end="", flush=True)
            data = self._source.readline(LINE_LIMIT)
            if not data:
                if self._asks:
                    print()
                return
            yield data.decode("utf-8", "replace")

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

    def _board(self) -> None:
        assert self._exercise is not None
        self._say(*self._exercise.position.diagram().split("\n"))

    # What is typed

    def _answer(self, text: str) -> bool:
        """Carry out a line; True to leave."""
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
            self._board()
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
        """The first result of a puzzle that is shown counts."""
        change = self._sitting.result(solved)
        if change is not None:
            self._say(f"Your rating: {self._sitting.scores.player} ({change:+.0f}).")
