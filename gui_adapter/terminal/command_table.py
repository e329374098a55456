"""Every word that may be typed, in one table: what it takes, one sentence, an example. The help is made of it.

Also how what stands behind a word is read: numbers, seconds, a side before something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from hnefi.engine.wording import nearest, shorten

from .opponents import level_lines
from .settings import KEYS
from .values import SideLetter


@dataclass(frozen=True, slots=True)
class Word:
    """One word: what may stand behind it, what it does, how it is typed, and more lines for `help WORD`."""

    name: str
    takes: str
    help: str
    examples: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    group: str = "playing"


GROUPS: Final[Mapping[str, str]] = {
    "playing": "Playing",
    "looking": "Looking and thinking",
    "keeping": "Keeping games",
    "else": "Everything else",
}

_LEVELS = (
    "What the levels are:",
    *level_lines(),
    "With a clock, time limits every level as well.",
    "auto: the level nearest to your rating, which your results against it change; each new game follows.",
)

_ALL: Final = (
    Word("new", "[VARIANT]", "begin a new game, of the same variant or another", ("new", "new brandubh")),
    Word(
        "variant", "NAME", "play another game or rule set", ("variant tablut", "variant hex:11"),
        ("`variants` lists all names. A game that is being played is kept; `continue` resumes it.",),
    ),
    Word(
        "side", "a|d|both|none", "which side you play: attackers, defenders, both, or none (watch)",
        ("side d", "side both"),
        ("In hex `a` is x, in hexapawn white.",),
    ),
    Word(
        "level", "[a|d] 0..10|auto", "our engine plays at this level", ("level 3", "level d 8", "level auto"),
        _LEVELS,
    ),
    Word(
        "player", "[a|d] NAME", "one of our players, or a player's file, plays the engine's side",
        ("player uct-1k", "player a ./mine.toml"),
        ("`hnefi players` lists them. Your own engines (`hnefi engines`) can be named, too.",),
    ),
    Word(
        "engine", "[a|d] COMMAND", "any engine program that speaks uti, uci or ugi plays the engine's side",
        ("engine my-engine --fast", "engine d hnefi mqtt connect mqtt://example.org"),
    ),
    Word(
        "clock", "M+S|off", "play by a clock: minutes for the game, seconds for each move", ("clock 5+3", "clock off"),
        ("It begins to run when the first ply has been played.",),
    ),
    Word("go", "", "the engine moves now: for itself when it waits, otherwise for you", ("go",)),
    Word("stop", "", "end what runs: the engine moves at once, an analysis or a replay ends", ("stop",)),
    Word(
        "undo", "[N]", "take back: to your last turn, or N plies", ("undo", "undo 1"),
        ("What is taken back stays in the game as a variation once something else is played.",),
    ),
    Word("redo", "[N]", "play again what was taken back: to your next turn, or N plies", ("redo", "redo 1")),
    Word("resign", "", "give the game up", ("resign",)),
    Word("draw", "", "offer a draw, or accept one", ("draw",)),
    Word("yes", "", "answer a question", ("yes",)),
    Word("no", "", "answer a question, or decline a draw", ("no",)),
    Word("board", "", "show the board", ("board",), group="looking"),
    Word("flip", "", "turn the board round", ("flip",), group="looking"),
    Word(
        "moves", "[SQUARE]", "what may be played, all of it or from one square, and what it captures",
        ("moves", "moves d1"), group="looking",
    ),
    Word("hint", "", "what our engine would play here", ("hint",), group="looking"),
    Word("eval", "", "what the evaluation says about the board, term by term", ("eval",), group="looking"),
    Word(
        "tb", "[FILE]", "every move with its exact value, where a solved table has the position",
        ("tb", "tb mini-six.taflbase"),
        (
            "Plies are counted from now; a * marks moves that are as good as any, a + those that keep the result.",
            "FILE is a table of `hnefi solve`, or a folder of them; without it, those that ship are asked.",
        ),
        group="looking",
    ),
    Word("pv", "", "the lines that the last search has found", ("pv",), group="looking"),
    Word(
        "analyze", "[N]", "let our engine think about every position you go to, with its N best lines",
        ("analyze", "analyze 3", "stop"), ("You move both sides meanwhile. `stop` ends it.",), group="looking",
    ),
    Word("history", "", "the plies so far", ("history",), group="looking"),
    Word(
        "goto", "N|start|end|next|back", "look at the game after ply N; a move played there begins a variation",
        ("goto 12", "goto end"), group="looking",
    ),
    Word(
        "variation", "[N|main|delete]", "list what else was tried in place of this ply; go to one of them",
        ("variation", "variation 1", "variation main"),
        ("`variation main` makes the line that is shown the main line, `variation delete` takes it away.",),
        group="looking",
    ),
    Word("annotate", "[TEXT]", "write a comment to this ply; without text, take it away",
        ("annotate too timid",), group="looking"),
    Word(
        "replay", "[SECONDS]", "show the game from its start, one ply every SECONDS seconds", ("replay", "replay 0.5"),
        ("`pause` interrupts it, `stop` ends it.",), group="looking",
    ),
    Word(
        "review", "[next|back|NODES]", "have our engine judge every move: ?! ? ??, and ! for an only good move",
        ("review", "review next", "review 500000"),
        (
            "It runs while you play; `stop` ends it and keeps what it has found. Its findings are added to the game as",
            "remarks and variations, and `save` writes them. `review` again shows everything: the marked moves, the",
            "chart of chances, accuracy, missed wins; `review next` and `review back` go from mark to mark,",
            "`variation` shows what was better. NODES is how far each position is searched (100000).",
        ),
        group="looking",
    ),
    Word("pause", "", "pause or resume a game of engines or a replay", ("pause",), group="looking"),
    Word("step", "", "one ply of a game of engines or a replay", ("step",), group="looking"),
    Word("speed", "SECONDS", "how long a game of engines waits after each ply", ("speed 0", "speed 2"),
        group="looking"),
    Word(
        "watch", "RUN", "follow the games of an arena run while it is played", ("watch runs/mine",),
        ("RUN is the folder of a run that was started with `--live`. `goto` looks back meanwhile, `stop` ends it.",),
        group="looking",
    ),
    Word("rules", "", "the rules of this variant in sentences", ("rules",), group="looking"),
    Word(
        "save", "FILE", "save the game; the name's ending says how: .tafl (everything), .otg, .jsonl, .csv",
        ("save game.tafl",), ("It asks before it replaces a file.",), group="keeping",
    ),
    Word(
        "load", "FILE [N]", "continue a saved game, or game N of a file or journal",
        ("load game.tafl", "load games.jsonl 3"), group="keeping",
    ),
    Word("continue", "", "continue the unfinished game, which is saved automatically", ("continue",), group="keeping"),
    Word(
        "copy", "[fen|otn|moves|record]", "the position or game as text, into the clipboard if there is one",
        ("copy", "copy record"), group="keeping",
    ),
    Word(
        "paste", "[TEXT]", "take a FEN, moves, or a recorded game: the text, or what is in the clipboard",
        ("paste 3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a", "paste"), group="keeping",
    ),
    Word("variants", "", "all games and rule sets", ("variants",), group="else"),
    Word("settings", "", "what you prefer, and where it is kept", ("settings",), group="else"),
    Word("set", "KEY VALUE", "prefer something else, from now on", ("set theme light", "set zoom 2"), group="else"),
    Word("help", "[WORD]", "this list, or more about a word", ("help", "help undo"), group="else"),
    Word("quit", "", "leave; an unfinished game is saved", ("quit",), group="else"),
)  # fmt: skip

TABLE: Final[Mapping[str, Word]] = {word.name: word for word in _ALL}
ALIASES: Final[Mapping[str, str]] = {"analyse": "analyze", "exit": "quit", "?": "help", "takeback": "undo"}


class UnknownWord(ValueError):
    """No word, or the beginning of several; the text is a sentence for people."""


class WordError(ValueError):
    """A line that cannot be carried out; the text is the answer."""


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
            f"{shorten(typed)} is a setting: expected `set {word} {KEYS[word].values[0]}` or the like"
        )
    raise UnknownWord(
        f"{shorten(typed)}: neither a move nor a word{nearest(word, known)}: "
        "expected a move such as d1d3, or a word that `help` lists"
    )


def overview() -> list[str]:
    """What `help` says."""
    lines = [
        "A move is typed as its squares: d1d3, d1-d3 or d1 d3; a stone that is placed as its square: f6.",
        "Every word may be abbreviated as long as it stays unambiguous.",
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


def whole(text: str, low: int, high: int, what: str) -> int:
    """A whole number within bounds; WordError that says what was expected."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    if not low <= number <= high:
        raise WordError(f"{what} {shorten(text)}: expected a whole number from {low} to {high}")
    return number


def seconds(text: str, what: str) -> float:
    """A number of seconds from 0 to 60; WordError that says what was expected."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 60:
        raise WordError(f"{what} {shorten(text)}: expected seconds from 0 to 60, such as 0.5")
    return number


def side_first(text: str) -> tuple[SideLetter | None, str]:
    """The side that a text begins with (`d 8`), if it does, and the rest."""
    first, _, rest = text.partition(" ")
    word = first.lower()
    if word in ("a", "attackers"):
        return "a", rest.strip()
    if word in ("d", "defenders"):
        return "d", rest.strip()
    return None, text


def _usage(word: Word) -> str:
    return f"{word.name} {word.takes}".strip()
