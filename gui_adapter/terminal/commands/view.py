"""The words of looking and thinking: the board, what may be played, hints, analysis, the way through a game."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hnefi.engine import evaluators
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.options import SHIPPED_TABLES
from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.assessment.remarks import SIGN

from .. import opponents, panes
from ..game import Node, owner
from ..opponents import Spec
from ..review import NODES, Review
from ..theme import ASCII, glyphs, role
from ..values import Entry, Reply, other
from ..watching import Watcher, WatchError
from . import WordError, seconds, whole
from .play import analysis_ended

if TYPE_CHECKING:
    from ..controller import Controller
    from ..game_session import GameSession

WIDTH = 78
LINES_HIGHEST = 20
PLACES = ("start", "end", "next", "back")


async def board(_c: Controller, _rest: str) -> Reply:
    """Show the board."""
    return Reply(show=True)


async def flip(c: Controller, _rest: str) -> Reply:
    """Turn the board round."""
    c.flipped = not c.flipped
    return Reply(show=True)


async def moves(c: Controller, rest: str) -> Reply:
    """What may be played."""
    session = c.session
    if session.end is not None:
        return Reply((f"The game is over: {session.end.words}.",))
    square = rest.lower()
    found = [move for move in session.facts.legal if not square or move.source == square]
    if not found:
        raise WordError(_why_none(c, square))
    lines: dict[str, list[str]] = {}
    for move in found:
        placed = move.source == move.target
        shown = move.long if placed else move.long[len(move.source) :]
        lines.setdefault("" if placed else move.source, []).append(shown)
    listed = [f"{source}: {' '.join(targets)}".removeprefix(": ") for source, targets in lines.items()]
    return Reply((f"{len(found)} {'move' if len(found) == 1 else 'moves'}:", *listed))


def _why_none(c: Controller, square: str) -> str:
    """Why nothing can be played from a square."""
    session = c.session
    board = c.fresh_view().board
    mover = session.side_word(session.side)
    if not board.has(square):
        size = f"{board.files}x{board.ranks}"
        return f"moves {shorten(square)}: no such square on this {size} board"
    letter = board.at(square)
    if letter == ".":
        return f"{square}: nothing stands there, and nothing can be placed"
    man = "the king" if letter == "K" else "this man"
    whose = session.side_word(owner(session.variant.game, letter))
    if whose != mover:
        return f"{square}: {man} belongs to the {whose}, and the {mover} are to move"
    return f"{square}: {man} has no move here: every way is blocked, or forbidden by the rules"


async def hint(c: Controller, _rest: str) -> Reply:
    """What our engine would play."""
    session = c.session
    if session.end is not None:
        raise WordError(f"hint: the game is over: {session.end.words}")
    asked = session.questions.asked
    if asked is not None and asked.purpose == "move":
        if session.mode != "play":
            raise WordError(f"hint: {asked.opponent.name} is thinking about its move")
        session.hint_later = opponents.HINT
        return Reply((f"The hint comes after the move of {asked.opponent.name}.",))
    session.hint(opponents.HINT)
    return Reply()


async def evaluate(c: Controller, _rest: str) -> Reply:
    """The terms of the evaluation."""
    session = c.session
    spec = _evaluating(session)
    name, own = "default", ""
    if spec is not None:
        name = opponents.evaluator_of(spec)
        own = opponents.own_way(spec, session.variant)
        if reason := opponents.unfit(spec, session.variant):
            raise WordError(f"eval: {reason}")
    try:
        found = await session.rules.evaluation(session.game.position, name)
    except ValueError as error:
        raise WordError(f"eval: {error}") from None
    lines = [f"  {term.replace('_', ' '):<12} {value / 100:+.2f}" for term, value in found.terms]
    if found.pieces:
        lines.append("What the position would lose without these:")
    lines += [
        f"  {role(piece[0])} {piece[1:]:<{11 - len(role(piece[0]))}} {value / 100:+.2f}"
        for piece, value in found.pieces
    ]
    said = name if evaluators.is_file(name) else found.by
    by = f" ({said})" if said else ""
    if spec is not None and own not in (name, said):
        lines.append(f"{spec.name} chooses its moves by {own}.")
    return Reply((f"Seen by the {session.side_word('a')}, before any search{by}:", *lines))


def _evaluating(session: GameSession) -> Spec | None:
    """The engine of ours whose evaluation is of interest: that of the side to move, of the other one, or the one that
    would play."""
    seated = [session.players[side].opponent for side in (session.side, other(session.side))]
    specs = [*(opponent.spec for opponent in seated if opponent is not None), session.players.rival]
    return next((spec for spec in specs if spec.own), None)


async def solved(c: Controller, rest: str) -> Reply:
    """Every move with its exact value."""
    session = c.session
    if session.end is not None:
        raise WordError(f"tb: the game is over: {session.end.words}")
    file = Path(rest).expanduser()
    # If there is no such file, it may be the name of a shipped table.
    path = str(file.absolute()) if rest and file.exists() else rest or SHIPPED_TABLES
    try:
        here, *found = await session.rules.solved(session.game.position, path)
    except ValueError as error:
        raise WordError(f"tb: {error}") from None
    lines = [
        f"  {'*' if 'best' in words else '+' if 'keeps' in words else ' '} {words[0]:<8} {_worth(words[1:])}"
        for words in found
    ]
    return Reply((f"{session.side_word(session.side).capitalize()}: {_worth(here)}", *lines))


def _worth(words: Sequence[str]) -> str:
    """A value as people say it: `win in 7`, `loss in 4`, `win by repetition`, `draw`."""
    if words[0] not in ("win", "loss"):
        return "open: it depends on the history" if words[0] == "open" else words[0]
    if words[1] == "repetition":
        return f"{words[0]} by repetition"
    return f"{words[0]} in {'at most ' if words[-1] == 'at_most' or 'at_most' in words else ''}{words[1]}"


async def pv(c: Controller, _rest: str) -> Reply:
    """The lines of the last search."""
    thinking = c.session.questions.thinking
    if thinking is None or not thinking.lines:
        raise WordError("pv: no engine has searched this game yet: try `hint` or `analyze`")
    return Reply(tuple(panes.thinking_lines(c.fresh_view(), WIDTH)))


async def analyze(c: Controller, rest: str) -> Reply:
    """Think about every place."""
    count = whole(rest, 1, LINES_HIGHEST, "analyze") if rest else (c.session.analysing or c.settings.lines)
    if c.session.end is not None:
        raise WordError(f"analyze: the game is over: {c.session.end.words}. `undo` or `goto` lead back")
    if c.session.review is not None and c.session.review.running:
        raise WordError(f"analyze: a review is running ({c.session.review.progress}): `stop` ends it")
    c.session.replaying = None
    await c.session.analyse(count)
    return Reply(("Analysis: moves are played for both sides, `stop` ends it.",) if c.interactive else ())


async def history(c: Controller, _rest: str) -> Reply:
    """The plies so far, two or more to a line as turns go."""
    entries = c.session.game.entries()
    if not entries:
        return Reply(("Nothing has been played.",))
    turns: dict[int, list[Entry]] = {}
    for entry in entries:
        turns.setdefault(entry.turn, []).append(entry)
    lines = []
    for number, plies in turns.items():
        lines.append(f"{number:>3}. " + "  ".join(_shown(entry) for entry in plies))
        lines += [f"      ({entry.long}: {entry.comment})" for entry in plies if entry.comment]
    if c.session.end is not None and c.session.game.at.ply == len(entries):
        lines.append(f"     {c.session.end.words}")
    return Reply(tuple(lines))


def _shown(entry: Entry) -> str:
    marks = f"(+{entry.variations})" if entry.variations else ""
    return f"{entry.long}{marks}{'*' if entry.is_current else ''}"


async def go_to(c: Controller, rest: str) -> Reply:
    """Show another position of the line on display."""
    game = c.session.game
    line = [game.root, *game.shown()]
    last = len(line) - 1
    here = game.at.ply
    places = dict(zip(PLACES, (0, last, min(here + 1, last), max(here - 1, 0)), strict=True))
    word = rest.lower()
    ply = places[word] if word in places else whole(rest, 0, last, "goto")
    return await look_at(c, line[ply])


async def look_at(c: Controller, node: Node) -> Reply:
    """Show the position; at the end of the main line the game continues."""
    session = c.session
    session.replaying = None
    looking = node is not session.game.root.tip()
    await session.go_to(node, looking=looking and not session.analysing)
    total = node.tip().ply
    where = f"Ply {node.ply} of {total}." if looking else "The end of the game."
    return Reply((where, *([f"({node.remark})"] if node.remark else ())), show=True)


async def variation(c: Controller, rest: str) -> Reply:
    """Other moves that were tried in place of the ply that led here."""
    game = c.session.game
    here = game.at
    if here.parent is None:
        raise WordError("variation: no move has been played before this position")
    line = here.parent.children
    word = rest.lower()
    if not word:
        if len(line) == 1:
            return Reply((f"Ply {here.ply}, {here.text}: nothing else was tried.",))
        return Reply(
            tuple(
                f"{number}  {_line_from(node)}{'  (main line)' if number == 0 else ''}{'  *' if node is here else ''}"
                for number, node in enumerate(line)
            )
        )
    if word == "main":
        for node in here.line():
            game.promote(node)
        return await look_at(c, here)
    if word == "delete":
        game.remove(here)
        return await look_at(c, game.at)
    if len(line) == 1:
        raise WordError(f"variation {shorten(word)}: nothing else was tried at this ply")
    return await look_at(c, line[whole(word, 0, len(line) - 1, "variation")])


def _line_from(node: Node, plies: int = 6) -> str:
    texts: list[str] = []
    shown: Node | None = node
    while shown is not None and len(texts) < plies:
        texts.append(shown.text)
        shown = shown.children[0] if shown.children else None
    return " ".join(texts) + (" …" if shown is not None else "")


async def annotate(c: Controller, rest: str) -> Reply:
    """A comment to this ply, or to the whole game at its start."""
    game = c.session.game
    if game.at.parent is None:
        game.comment = rest
    else:
        game.at.comment = rest
    c.session.files.noted(c.session.record)
    return Reply(("Noted.",) if rest else ("No comment.",))


async def replay(c: Controller, rest: str) -> Reply:
    """The line that is shown, from its start."""
    session = c.session
    pause = seconds(rest, "replay") if rest else c.settings.replay
    if not session.game.root.children:
        raise WordError("replay: nothing has been played")
    line = session.game.shown()
    session.analysing = 0
    session.paused = False
    session.replaying = pause
    await session.go_to(line[0].parent or session.game.root, looking=True)
    return Reply((f"From the start, every {pause:g} seconds; `pause` interrupts it, `stop` ends it.",))


async def pause(c: Controller, _rest: str) -> Reply:
    """Hold, or go on."""
    session = c.session
    _played_here(c, "pause")
    if session.mode not in ("watch", "replay") or (session.end is not None and session.replaying is None):
        raise WordError("pause: only a game of engines or a replay can be paused")
    session.paused = not session.paused
    session.withdraw()
    await session.move_on()
    return Reply(("Paused: `step` plays one ply, `pause` resumes.",) if session.paused else ("Resumed.",))


async def step(c: Controller, _rest: str) -> Reply:
    """One ply on."""
    session = c.session
    _played_here(c, "step")
    if session.mode == "replay":
        if not session.game.at.children:
            raise WordError("step: this is the end of the line")
        session.paused = True
        await session.step_replay()
        return Reply(show=True)
    if session.mode != "watch" or session.end is not None:
        raise WordError("step: only a game of engines or a replay goes step by step")
    session.paused = True
    await session.ask_for_move()
    return Reply()


def _played_here(c: Controller, word: str) -> None:
    """WordError if the game is played elsewhere and nothing here can hold it."""
    if c.session.watcher is not None and c.session.replaying is None:
        raise WordError(f"{word}: this game is played elsewhere: `goto back` looks back, `stop` leaves it")


async def watch(c: Controller, rest: str) -> Reply:
    """Follow the games of an arena run."""
    if not rest:
        raise WordError("watch: expected the folder of an arena run, as in `watch runs/mine`")
    watcher = Watcher(c, Path(rest).expanduser())
    try:
        watcher.open()
    except WatchError as error:
        raise WordError(f"watch {rest[:200]}: {error}") from None
    c.watch(watcher)
    await watcher.catch_up()
    if c.session.guests is None:
        return Reply(("No game is running there now; the next one will be followed. `stop` ends it.",))
    if c.session.end is not None:
        return Reply(
            (
                "No game is running there now: this was the last one. The next will be followed; `stop` ends it.",
            ),
            show=True,
        )
    return Reply(("It is followed to the end, then the next one. `stop` ends it.",), show=True)


async def speed(c: Controller, rest: str) -> Reply:
    """How long a game of engines waits after each ply."""
    c.session.speed = seconds(rest, "speed")
    return Reply((f"{c.session.speed:g} seconds after each ply.",))


async def rules(c: Controller, _rest: str) -> Reply:
    """The rules in sentences."""
    variant = c.session.variant
    if isinstance(variant, Variant):
        from hnefi.engine.games.tafl.explain import explain

        return Reply(tuple(explain(variant)))
    switches = [f"  {name} {text}" for name, text in variant.rules_lines()]
    return Reply((variant.description, *switches))


# A review of the whole game


FEWEST_NODES, MOST_NODES = 1, 100_000_000


async def review(c: Controller, rest: str) -> Reply:
    """Judge every move of the game."""
    session = c.session
    word = rest.lower()
    if word in ("next", "back"):
        return await _next_remark(c, forward=word == "next")
    limit = whole(rest, FEWEST_NODES, MOST_NODES, "review") if rest else NODES
    if not session.game.root.children:
        raise WordError("review: nothing has been played")
    if session.watcher is not None:
        raise WordError("review: this game is played elsewhere: `stop` leaves it")
    known = session.review
    if known is not None and known.running:
        raise WordError(f"review: one is running ({known.progress}): `stop` ends it")
    if known is not None and known.result is not None and known.current and not (known.empty or rest):
        return Reply(tuple(_review_report(c, known)))
    said = []
    if session.analysing:
        # It would keep the engine that the review asks, for ever.
        await session.analyse(0)
        said.append(analysis_ended(c))
    begun = session.begin_review(
        limit, lambda found: _tell_review(c, found), c.say if not c.interactive else lambda _: None
    )
    return Reply((*said, f"Our engine looks at {len(begun.nodes)} positions; `stop` ends it."))


def _review_report(c: Controller, found: Review) -> list[str]:
    return list(found.report(plain=glyphs(c.settings) is ASCII))


def _tell_review(c: Controller, found: Review) -> None:
    """The message at the end of a review: all of it where the user cannot ask for more."""
    if not c.interactive:
        for line in _review_report(c, found):
            c.say(line)
        return
    count = len(found.remarkable())
    moves = "one move is marked" if count == 1 else f"{count} moves are marked"
    total = len(found.nodes)
    so_far = "is over" if found.done == total else f"was stopped after {found.done} of {total} positions"
    for line in (f"The review {so_far}: {moves}.", *found.summary()):
        c.say(line)
    c.say(
        "`review` shows everything, `review next` the first mark; `save` saves it."
        if count
        else "`review` begins anew."
        if found.empty
        else "`review` shows it all."
    )


async def _next_remark(c: Controller, *, forward: bool) -> Reply:
    """Show the next position of the line that has a remark, in one direction."""
    game = c.session.game
    line = game.shown()
    marked = [node for node in line if SIGN in node.comment and node.remark != SIGN]
    if not marked:
        raise WordError("review: no move is marked: `review` judges them")
    # Behind the end of a game the walk begins.
    over = forward and game.at is game.root.tip() and not c.session.looking
    here = 0 if over else game.at.ply
    found = [node for node in marked if (node.ply > here if forward else node.ply < here)]
    if not found:
        where = "after" if forward else "before"
        raise WordError(f"review: no move {where} this one is marked")
    return await look_at(c, found[0] if forward else found[-1])
