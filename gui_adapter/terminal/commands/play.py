"""The words of playing: moves, games, players, clock, taking back, giving up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hnefi.engine.catalogue import GAMES
from hnefi.engine.games.base_variant import AnyVariant, VariantError
from hnefi.engine.sides import Reason
from hnefi.engine.wording import shorten

from .. import clock as clocks
from .. import opponents, questions
from ..game import Node
from ..opponents import Spec
from ..values import Reply, SideLetter, other
from . import WordError, side_first, whole

if TYPE_CHECKING:
    from ..controller import Controller

SIDES = {"a": ("a",), "d": ("d",), "both": ("a", "d"), "none": ()}


async def play_move(c: Controller, text: str) -> Reply:
    """A move that was typed."""
    session = c.session
    if session.end is not None and not session.looking:
        raise WordError(
            f"{text}: the game is over: {session.end.words}. `new` starts another, `undo` takes moves back"
        )
    if session.mode == "play" and not session.paused and session.players[session.side].opponent is not None:
        raise WordError(
            f"{text}: the {session.side_word(session.side)} are to move, "
            f"played by {session.players[session.side].name}: `stop` makes it move at once, `undo` takes your move back"
        )
    if session.watcher is not None and not session.looking and not session.analysing:
        raise WordError(f"{text}: this game is played elsewhere: `stop` leaves it to you, `goto` looks back")
    if session.mode == "watch" and not session.paused:
        raise WordError(
            f"{text}: engines play here: `pause` interrupts them, `side a` lets you play the attackers"
        )
    move = session.legal(text)
    if move is None:
        why = await session.rules.why_not(session.game.position, text)
        raise WordError(f"{text}: {why or 'not legal here'}")
    try:
        await session.play(move)
    except ValueError as error:
        raise WordError(str(error)) from None
    return Reply((f"{move.long}",) if move.captures else ())


async def new(c: Controller, rest: str) -> Reply:
    """A new game between the same players."""
    found = c.session.variant
    if rest:
        try:
            found = c.find(rest)
        except VariantError as error:
            raise WordError(str(error)) from None
    check_players(c, found, rest or found.name)
    await c.session.begin(found)
    c.session.warm_up()
    return Reply((f"A new game of {found.name}.",), show=True)


async def variant(c: Controller, rest: str) -> Reply:
    """A new game of another variant."""
    if not rest:
        return Reply(
            (f"This is {c.session.variant.name}. `variant NAME` plays another, `variants` lists them.",)
        )
    return await new(c, rest)


def check_players(
    c: Controller, variant: AnyVariant, wanted: str, sides: tuple[SideLetter, ...] = ("a", "d")
) -> None:
    """WordError, about what was `wanted`, if an engine that plays one of these sides cannot play the variant."""
    for letter in sides:
        opponent = c.session.players[letter].opponent
        if opponent is not None:
            _check_engine(opponent.spec, variant, wanted)


def _check_engine(spec: Spec, variant: AnyVariant, wanted: str) -> None:
    try:
        reason = opponents.unfit(spec, variant)
    except ValueError as error:
        reason = str(error)
    if reason:
        raise WordError(f"{wanted}: {reason}: `level 5` plays instead")


async def side(c: Controller, rest: str) -> Reply:
    """Which sides persons play."""
    session = c.session
    called = dict(zip(GAMES[session.variant.game].sides, "ad", strict=True))
    word = called.get(rest.lower(), rest.lower())
    if word not in SIDES:
        names = " or ".join(f"{letter} ({name})" for name, letter in called.items())
        raise WordError(f"side {shorten(rest)}: expected {names}, both or none")
    if len(SIDES[word]) < 2:
        _check_engine(session.players.rival, session.variant, f"side {rest}")
    for letter in ("a", "d"):
        wanted = letter not in SIDES[word]
        if wanted and session.players[letter].opponent is None:
            c.session.assign(letter, session.players.rival)
        elif not wanted and session.players[letter].opponent is not None:
            c.session.assign(letter, None)
    return await _seated(c)


async def _seated(c: Controller) -> Reply:
    """The players have changed: the game continues with the new ones."""
    session = c.session
    session.withdraw()
    session.paused = False
    session.rated = session.rated and not session.unfinished
    session.warm_up()
    await session.move_on()
    names = ", ".join(
        f"{session.side_word(letter)}: {'you' if player.opponent is None else player.name}"
        for letter, player in session.players.items()
    )
    return Reply((names,))


def _engine_sides(c: Controller, given: SideLetter | None) -> list[SideLetter]:
    """Whose engine is meant: of the side named, else of all sides that engines play."""
    if given is not None:
        return [given]
    sides: tuple[SideLetter, ...] = ("a", "d")
    return [letter for letter in sides if c.session.players[letter].opponent is not None]


async def _assign_engine(c: Controller, rest: str, read: Callable[[str], Spec]) -> Reply:
    """Seat the engine that a line names, on the side it names or wherever engines sit."""
    given, text = side_first(rest)
    try:
        spec = read(text)
    except ValueError as error:
        raise WordError(str(error)) from None
    _check_engine(spec, c.session.variant, spec.spelled)
    c.session.players.rival = spec
    sides = _engine_sides(c, given)
    for letter in sides:
        c.session.assign(letter, spec)
    if not sides:
        return Reply((f"{spec.name} will play when you leave it a side: `side a`, `side d` or `side none`",))
    return await _seated(c)


async def level(c: Controller, rest: str) -> Reply:
    """Our engine at a level."""
    if not side_first(rest)[1]:
        engines = [opponent.name for opponent in c.session.players.engines]
        return Reply((f"Engines here: {', '.join(engines) or 'none'}.", *opponents.level_lines()))
    return await _assign_engine(c, rest, lambda text: _at_level(c, text))


def _at_level(c: Controller, text: str) -> Spec:
    """Our engine at a level that is named or follows the person; ValueError."""
    if text.lower() != opponents.AUTO:
        return opponents.at_level(text)
    if not c.interactive:
        raise ValueError("level auto: in a script no person plays: expected a number")
    session = c.session
    level = session.ladder.level(session.variant.game)
    session.say(session.ladder.words(session.variant.game))
    return Spec(level=level, auto=True)


async def player(c: Controller, rest: str) -> Reply:
    """One of our players, by name or file."""
    return await _assign_engine(c, rest, lambda text: opponents.by_name(text, c.session.variant))


async def engine(c: Controller, rest: str) -> Reply:
    """Any engine process."""
    return await _assign_engine(c, rest, lambda text: opponents.by_command(text, c.session.variant))


async def clock(c: Controller, rest: str) -> Reply:
    """Play by a clock, from now on."""
    session = c.session
    if not rest:
        if session.clock is None:
            return Reply(("There is no clock. `clock 5+3` sets one: minutes, and seconds for each move.",))
        return Reply((f"clock {clocks.spell(session.clock.base, session.clock.increment)}",))
    try:
        times = clocks.read(rest)
    except ValueError as error:
        raise WordError(str(error)) from None
    session.withdraw()
    session.set_clock(times)
    await session.move_on()
    return Reply(("No clock.",) if times is None else (f"Clock: {clocks.spell(*times)}.",))


def _unfinished(c: Controller, word: str) -> None:
    """WordError if nothing can be played here."""
    if c.session.end is not None:
        raise WordError(f"{word}: the game is over: {c.session.end.words}. `new` starts another")


async def go(c: Controller, _rest: str) -> Reply:
    """The engine moves now."""
    _unfinished(c, "go")
    session = c.session
    if session.analysing:
        raise WordError("go: an analysis runs: `stop` ends it")
    if session.questions.asked is not None:
        raise WordError(
            f"go: {session.questions.asked.opponent.name} is already thinking: `stop` makes it move at once"
        )
    if session.players[session.side].opponent is None:
        _check_engine(session.players.rival, session.variant, "go")
    session.looking, session.replaying, session.paused = False, None, False
    await session.ask_for_move()
    return Reply()


async def stop(c: Controller, _rest: str) -> Reply:
    """End what runs."""
    watching = c.session.watcher is not None and c.session.questions.asked is None
    analysing = c.session.analysing
    if not await c.session.halt():
        raise WordError("stop: nothing is running")
    if watching and c.session.watcher is None:
        return Reply(("The game is no longer followed.",))
    return Reply((analysis_ended(c),) if analysing else ())


def analysis_ended(c: Controller) -> str:
    """What is said of an analysis that has just ended."""
    return f"The analysis has ended{_waiting(c)}."


async def undo(c: Controller, rest: str) -> Reply:
    """Take plies back."""
    session = c.session
    if session.game.at.parent is None:
        raise WordError("undo: nothing has been played")
    node = session.game.at
    persons = session.players.persons
    if rest:
        count = whole(rest, 1, node.ply, "undo")
        for _ in range(count):
            assert node.parent is not None
            node = node.parent
    else:
        while node.parent is not None:
            node = node.parent
            if not persons or _to_move(node) in persons:
                break
    taken = session.game.at.ply - node.ply
    _take_back_end(c)
    await _settle_at(c, node)
    return Reply((f"Taken back: {taken} {'ply' if taken == 1 else 'plies'}{_waiting(c)}.",))


def _take_back_end(c: Controller) -> None:
    """A resignation or a lost clock is taken back with the ply before it."""
    c.session.game.at.end = None


def _to_move(node: Node) -> SideLetter:
    return node.facts.side if node.facts is not None else node.children[0].side


async def redo(c: Controller, rest: str) -> Reply:
    """Play again what was taken back."""
    session = c.session
    node = session.game.at
    if not node.children:
        raise WordError("redo: nothing was taken back here")
    persons = session.players.persons
    longest = node.tip().ply - node.ply
    count = whole(rest, 1, longest, "redo") if rest else longest
    plies = 0
    while plies < count:
        node = node.children[0]
        plies += 1
        if not rest and persons and node.children and node.children[0].side in persons:
            break
    await _settle_at(c, node)
    return Reply((f"Played again: {plies} {'ply' if plies == 1 else 'plies'}{_waiting(c)}.",))


async def _settle_at(c: Controller, node: Node) -> None:
    """Continue the game from here; an engine that is to move waits for `go`."""
    session = c.session
    session.replaying = None
    session.paused = True
    await session.go_to(node, looking=False)
    if session.players[session.side].opponent is None or session.end is not None:
        session.paused = False
        await session.move_on()


def _waiting(c: Controller) -> str:
    return "; the engine waits for `go`" if c.session.paused else ""


def _resigning(c: Controller) -> SideLetter:
    """The side that resigns or offers a draw: the only person's, or the side to move."""
    session = c.session
    persons = session.players.persons
    if not persons:
        raise WordError("no person plays here: `side a` or `side d` lets you play")
    if session.looking or session.analysing or session.replaying is not None:
        raise WordError(
            "you are looking at an earlier position: `stop`, then `goto end`, returns to the end of the game"
        )
    return persons[0] if len(persons) == 1 else session.side


async def resign(c: Controller, _rest: str) -> Reply:
    """Give the game up."""
    _unfinished(c, "resign")
    loser = _resigning(c)

    async def give_up() -> Reply:
        _unfinished(c, "resign")
        await c.session.declare(other(loser), Reason.RESIGNATION)
        return Reply()

    if c.interactive and c.session.game.at.ply:
        return c.ask(f"Resign for the {c.session.side_word(loser)}? (yes or no)", give_up)
    return await give_up()


async def draw(c: Controller, _rest: str) -> Reply:
    """Offer a draw, or accept one."""
    _unfinished(c, "draw")
    session = c.session
    offering = _resigning(c)
    if dict(session.variant.rules_lines()).get("agreed_draw", "no") != "yes":
        raise WordError("draw: these rules have no draws by agreement")
    asked = other(offering)
    if session.players[asked].opponent is None:
        if session.offered is not None and session.offered != session.side:
            await session.declare("draw", Reason.AGREED_DRAW)
            return Reply()
        session.offered = session.side
        offer = f"The {session.side_word(session.side)} offer a draw: after their move the {session.side_word(asked)} "
        return Reply((f"{offer}accept with `draw`, or move on.",))
    if questions.accepts_draw(session, asked):
        await session.declare("draw", Reason.AGREED_DRAW)
        return Reply()
    return Reply((f"{session.players[asked].name} declines.",))


async def yes(_c: Controller, _rest: str) -> Reply:
    """Nothing was asked."""
    raise WordError("yes: nothing was asked")


async def no(c: Controller, _rest: str) -> Reply:
    """Decline a draw."""
    if c.session.offered is None:
        raise WordError("no: nothing was asked")
    c.session.offered = None
    return Reply(("The draw is declined.",))
