"""Every word that may be typed, in one table: what carries it out, what it takes, one sentence, an example. The help is
made of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hnefi.engine.wording import nearest, shorten

from ..opponents import AUTO, LEVELS, level_lines
from ..settings import KEYS
from ..values import Reply
from . import WordError, files, play, view

if TYPE_CHECKING:
    from ..controller import Controller

Handler = Callable[["Controller", str], Awaitable[Reply]]
"""Carries out a word with what stands behind it, nothing where the word takes nothing; WordError."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word: what carries it out, what may stand behind it, what it does, how it is typed, and more lines for
    `help WORD`. `values` are the fixed words that may stand behind it."""

    name: str
    handler: Handler
    takes: str
    help: str
    examples: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    group: str = "playing"
    values: tuple[str, ...] = ()


GROUPS: Final[Mapping[str, str]] = {
    "playing": "Playing",
    "looking": "Looking and thinking",
    "keeping": "Keeping games",
    "else": "Everything else",
}


async def help_with(_c: Controller, rest: str) -> Reply:
    """The list of words, or more about one."""
    return Reply(tuple(explain(find(rest.split(maxsplit=1)[0])) if rest else overview()))


_LEVELS = (
    "What the levels are:",
    *level_lines(),
    "With a clock, time limits every level as well.",
    "auto: the level nearest to your rating, which your results against it change; each new game follows.",
)

_ALL: Final = (
    Word("new", play.new, "[VARIANT]", "begin a new game, of the same variant or another", ("new", "new brandubh")),
    Word(
        "variant", play.variant, "NAME", "play another game or rule set", ("variant tablut", "variant hex:11"),
        ("`variants` lists all names. A game in progress is saved; `continue` resumes it.",),
    ),
    Word(
        "side", play.side, "a|d|both|none", "which side you play: attackers, defenders, both, or none (watch)",
        ("side d", "side both"),
        ("In hex `a` is x, in hexapawn white.",),
        values=tuple(play.SIDES),
    ),
    Word(
        "level", play.level, "[a|d] 0..10|auto", "our engine plays at this level",
        ("level 3", "level d 8", "level auto"),
        _LEVELS,
        values=(*map(str, LEVELS), AUTO, "a", "d"),
    ),
    Word(
        "player", play.player, "[a|d] NAME", "one of our players, or a player's file, plays the engine's side",
        ("player uct-1k", "player a ./mine.toml"),
        ("`hnefi players` lists them. Your own engines (`hnefi engines`) can be named, too.",),
    ),
    Word(
        "engine", play.engine, "[a|d] COMMAND",
        "any engine program that speaks uti, uci or ugi plays the engine's side",
        ("engine my-engine --fast", "engine d hnefi mqtt connect mqtt://example.org"),
    ),
    Word(
        "clock", play.clock, "M+S|off", "play by a clock: minutes for the game, seconds for each move",
        ("clock 5+3", "clock off"),
        ("It starts after the first ply.",),
        values=("off", "1+0", "3+2", "5+3", "15+10"),
    ),
    Word("go", play.go, "", "have the engine move now: for itself if it is waiting, otherwise for you", ("go",)),
    Word("stop", play.stop, "", "the engine moves at once; an analysis or a replay ends", ("stop",)),
    Word(
        "undo", play.undo, "[N]", "take back: to your last turn, or N plies", ("undo", "undo 1"),
        ("What is taken back stays in the game as a variation once something else is played.",),
    ),
    Word("redo", play.redo, "[N]", "redo what was taken back: to your next turn, or N plies", ("redo", "redo 1")),
    Word("resign", play.resign, "", "resign the game", ("resign",)),
    Word("draw", play.draw, "", "offer a draw, or accept one", ("draw",)),
    Word("yes", play.yes, "", "answer a question", ("yes",)),
    Word("no", play.no, "", "answer a question, or decline a draw", ("no",)),
    Word("board", view.board, "", "show the board", ("board",), group="looking"),
    Word("flip", view.flip, "", "turn the board round", ("flip",), group="looking"),
    Word(
        "moves", view.moves, "[SQUARE]", "list the legal moves, all or from one square, and what they capture",
        ("moves", "moves d1"), group="looking",
    ),
    Word("hint", view.hint, "", "show what our engine would play here", ("hint",), group="looking"),
    Word(
        "eval", view.evaluate, "", "show the evaluation of the board, term by term", ("eval",), group="looking",
    ),
    Word(
        "tb", view.solved, "[FILE]", "show every move with its exact value, if a solved table has the position",
        ("tb", "tb mini-six", "tb mine.taflbase"),
        (
            "Plies are counted from now; a * marks moves that are as good as any, a + those that keep the result.",
            "FILE is a table of `hnefi solve`, or a folder of them; without it, the shipped tables are used.",
        ),
        group="looking",
    ),
    Word("pv", view.pv, "", "show the lines that the last search found", ("pv",), group="looking"),
    Word(
        "analyze", view.analyze, "[N]", "have our engine analyse every position you go to, with its N best lines",
        ("analyze", "analyze 3", "stop"), ("You move both sides meanwhile. `stop` ends it.",), group="looking",
    ),
    Word("history", view.history, "", "list the plies so far", ("history",), group="looking"),
    Word(
        "goto", view.go_to, "N|start|end|next|back",
        "look at the game after ply N; a move played there begins a variation",
        ("goto 12", "goto end"), group="looking",
        values=view.PLACES,
    ),
    Word(
        "variation", view.variation, "[N|main|delete]",
        "list the variations at this ply, or go to one of them",
        ("variation", "variation 1", "variation main"),
        ("`variation main` makes the line that is shown the main line, `variation delete` removes it.",),
        group="looking",
        values=("main", "delete"),
    ),
    Word("annotate", view.annotate, "[TEXT]", "write a comment on this ply; without text, remove it",
        ("annotate too timid",), group="looking"),
    Word(
        "replay", view.replay, "[SECONDS]", "show the game from its start, one ply every SECONDS seconds",
        ("replay", "replay 0.5"),
        ("`pause` interrupts it, `stop` ends it.",), group="looking",
    ),
    Word(
        "review", view.review, "[next|back|NODES]",
        "have our engine judge every move: ?! ? ??, and ! for an only good move",
        ("review", "review next", "review 500000"),
        (
            "It runs while you play; `stop` ends it and keeps what it has found. Its findings are added to the game as",
            "remarks and variations, and `save` writes them. `review` again shows everything: the marked moves, the",
            "chart of chances, accuracy, missed wins; `review next` and `review back` go from mark to mark,",
            "`variation` shows what was better. NODES is how far each position is searched (100000).",
        ),
        group="looking",
        values=("next", "back"),
    ),
    Word("pause", view.pause, "", "pause or resume a game of engines or a replay", ("pause",), group="looking"),
    Word("step", view.step, "", "play one ply of a game of engines or a replay", ("step",), group="looking"),
    Word("speed", view.speed, "SECONDS", "set how long a game of engines waits after each ply", ("speed 0", "speed 2"),
        group="looking"),
    Word(
        "watch", view.watch, "RUN", "follow the games of an arena run while it is played", ("watch runs/mine",),
        ("RUN is the folder of a run that was started with `--live`. `goto` looks back meanwhile, `stop` ends it.",),
        group="looking",
    ),
    Word("rules", view.rules, "", "explain the rules of this variant", ("rules",), group="looking"),
    Word(
        "save", files.save, "FILE", "save the game; the name's ending says how: .tafl (everything), .otg, .jsonl, .csv",
        ("save game.tafl",), ("It asks before it replaces a file.",), group="keeping",
    ),
    Word(
        "load", files.load, "FILE [N]", "continue a saved game, or game N of a file or journal",
        ("load game.tafl", "load games.jsonl 3"), group="keeping",
    ),
    Word(
        "continue", files.go_on, "", "continue the unfinished game, which is saved automatically", ("continue",),
        group="keeping",
    ),
    Word(
        "copy", files.copy, "[fen|otn|moves|record]",
        "copy the position or game as text, to the clipboard if there is one",
        ("copy", "copy record"), group="keeping",
        values=files.COPIES,
    ),
    Word(
        "paste", files.paste, "[TEXT]", "load a FEN, moves, or a recorded game: the text, or the clipboard",
        ("paste 3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a", "paste"), group="keeping",
    ),
    Word("variants", files.variants, "", "list all games and rule sets", ("variants",), group="else"),
    Word("settings", files.settings, "", "list your settings, and where they are saved", ("settings",), group="else"),
    Word(
        "set", files.set_value, "KEY VALUE", "change a setting, from now on", ("set theme light", "set zoom 2"),
        group="else",
    ),
    Word("help", help_with, "[WORD]", "show this list, or more about a command", ("help", "help undo"), group="else"),
    Word("quit", files.leave, "", "leave; an unfinished game is saved", ("quit",), group="else"),
)  # fmt: skip

TABLE: Final[Mapping[str, Word]] = {word.name: word for word in _ALL}
ALIASES: Final[Mapping[str, str]] = {"analyse": "analyze", "exit": "quit", "?": "help", "takeback": "undo"}


class UnknownWord(WordError):
    """No word, or the beginning of several."""


def find(typed: str) -> Word:
    """The word meant: by its name, another name, or its unique beginning. UnknownWord otherwise."""
    word = typed.lower()
    if word in TABLE or word in ALIASES:
        return TABLE[ALIASES.get(word, word)]
    known = [*TABLE, *ALIASES]
    meant = sorted({ALIASES.get(name, name) for name in known if name.startswith(word)}) if word else []
    if len(meant) == 1:
        return TABLE[meant[0]]
    if meant:
        raise UnknownWord(f"{shorten(typed)}: {', '.join(meant[:-1])} or {meant[-1]}? Type one more letter")
    if word in KEYS:
        raise UnknownWord(
            f"{shorten(typed)} is a setting: expected for example `set {word} {KEYS[word].values[0]}`"
        )
    raise UnknownWord(
        f"{shorten(typed)}: neither a move nor a word{nearest(word, known)}: "
        "expected a move such as d1d3, or a word that `help` lists"
    )


def overview() -> list[str]:
    """What `help` says."""
    lines = [
        "A move is typed as its squares: d1d3, d1-d3 or d1 d3; a stone that is placed as its square: f6.",
        "Every word may be abbreviated as long as it is unambiguous.",
    ]
    for group, title in GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {_usage(word):<28} {word.help}" for word in _ALL if word.group == group]
    return lines


def explain(word: Word) -> list[str]:
    """What `help WORD` says."""
    lines = [f"{_usage(word)}: {word.help}", *word.more]
    shown = ", ".join(f"`{example}`" for example in word.examples)
    return [*lines, f"For example {shown}. Shortest: {shortest(word.name)}"]


def shortest(name: str) -> str:
    """The shortest beginning of a word that no other word has."""
    others = [other for other in (*TABLE, *ALIASES) if ALIASES.get(other, other) != name]
    return next(
        (
            name[:end]
            for end in range(1, len(name))
            if not any(other.startswith(name[:end]) for other in others)
        ),
        name,
    )


def beginning_with(text: str, among: Iterable[str]) -> list[str]:
    """The words among some that begin with `text`."""
    return [word for word in among if word.startswith(text.lower())]


def _usage(word: Word) -> str:
    return f"{word.name} {word.takes}".strip()
