"""Games between people at different browsers: a table has a seat for each side, and room for spectators.

The creator of a table gets three random words, one for each seat and one for spectators, to pass on as links. Anybody
who knows a word may take its place, and cannot find out the others. A table has its own engine session, which no page
controls: it enforces the rules, and only receives moves of the side to move.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hnefi.engine.sides import Reason
from hnefi.protocol.hosts.sessions.engine_process import RequestError, Wanted

from . import frames
from .frames import FrameError
from .outbox import Outbox
from .site import Site
from .web_session import WebSession

KEPT: Final = 900.0
"""Seconds that an empty table is kept."""
NAME_LIMIT: Final = 24
PLIES_LIMIT: Final = 2_000
"""Maximum moves before the start of a table's game."""
SECONDS_LIMIT: Final = 24 * 3600
SEATS: Final = ("a", "d")
WATCH: Final = "watch"
PLACES: Final = (*SEATS, WATCH)
MOVE: Final = re.compile(r"[a-z]\d{1,2}([a-z]\d{1,2})?|swap")
COMPLAINT: Final = "info string error play "
NO_START: Final = "info string error position"


@dataclass(slots=True)
class Clock:
    """Seconds that both sides have left of `base`; the clock runs from the first move."""

    base: float
    increment: float
    left: dict[str, float] = field(init=False)
    running: str = ""
    since: float = 0.0

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Give both sides their full time, with neither clock running."""
        self.left = dict.fromkeys(SEATS, self.base)
        self.running = ""

    def left_of(self, side: str, at: float | None = None) -> float:
        """The seconds that `side` has left now, or had left at time `at` (`time.monotonic()`)."""
        gone = (time.monotonic() if at is None else at) - self.since if side == self.running else 0.0
        return max(0.0, self.left[side] - gone)

    def stop(self) -> None:
        """Stop both clocks."""
        if self.running:
            self.left[self.running] = self.left_of(self.running)
            self.running = ""

    def moved(self, side: str, at: float) -> None:
        """`side` moved at time `at`; the other side's clock starts now, when the move is shown."""
        if self.running == side:
            self.left[side] = self.left_of(side, at) + self.increment
        self.running, self.since = other(side), time.monotonic()

    def shown(self) -> dict[str, Any]:
        """The clock for pages: milliseconds of both sides, and whose clock is running."""
        return {side: round(1000 * self.left_of(side)) for side in SEATS} | {"running": self.running or None}


@dataclass(slots=True)
class Asked:
    """A move whose answer is awaited; `at` is the time when it arrived (`time.monotonic()`)."""

    box: Outbox
    ident: object
    side: str
    plies: int
    at: float


@dataclass(slots=True, eq=False)
class Table:
    """A table for one game after another. `words` maps the secret words to places; `position` is the line that sets up
    the start, if it differs from the variant's; `game` counts from 1; `over` is the end of a game that the rules did
    not end; `people` are the pages at the table and their places."""

    words: dict[str, str]
    session: WebSession
    clock: Clock | None
    position: str = ""
    game: int = 1
    name: str = field(default_factory=lambda: secrets.token_hex(4))
    state: Mapping[str, Any] = field(default_factory=dict)
    over: Mapping[str, str] | None = None
    offers: set[str] = field(default_factory=set)
    """Sides that offer a draw; after the game, sides that ask for another one."""
    people: dict[tuple[Outbox, str], str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    ended: Callable[[], None] = lambda: None
    failed: Callable[[str], None] = lambda _why: None
    """Called with the reason if there can be no game."""
    _asked: Asked | None = None
    _flag: asyncio.TimerHandle | None = None

    # Output of the session: a table is the `Box` of its `Voice`

    @property
    def empty(self) -> bool:
        """Always true: frames never wait at a table."""
        return True

    def put(self, frame: Mapping[str, Any], _key: tuple[str, ...] = ()) -> None:
        """Handle a frame of the session."""
        match frame["t"]:
            case "state":
                self._learn(frame)
            case "line" if str(frame["text"]).startswith(COMPLAINT) and self._asked is not None:
                asked, self._asked = self._asked, None
                text = str(frame["text"]).removeprefix(COMPLAINT)
                asked.box.put({"t": "error", "id": asked.ident, "code": "illegal", "text": text})
                self._set_flag()
            case "line" if str(frame["text"]).startswith(NO_START):
                self.failed(str(frame["text"]).removeprefix("info string error "))
            case "closed":
                self._close()

    def _learn(self, state: Mapping[str, Any]) -> None:
        self.state = state
        asked = self._asked
        if asked is not None and len(state["moves"]) > asked.plies:
            self._asked = None
            # An offer stands until the opponent has moved.
            self.offers.discard(other(asked.side))
            if self.finished:
                self.offers.clear()
            if self.clock is not None:
                # The engine's time for checking a move, or for a restart, is on nobody's clock.
                self.clock.moved(asked.side, asked.at)
            asked.box.put({"t": "done", "id": asked.ident})
        if self.finished and self.clock is not None:
            self.clock.stop()
        self._set_flag()
        self.show()

    def _close(self) -> None:
        if self._flag is not None:
            self._flag.cancel()
        for box, _ in self.people:
            box.put({"t": "table", "s": self.name, "closed": True})
        self.people.clear()
        self.ended()

    # People

    def sit(self, box: Outbox, place: str, name: str) -> None:
        """Let a page take a place. People may come back to theirs, and a seat may be open on two screens."""
        self.people[box, place] = name
        if name and place in SEATS:
            self.names[place] = name
        self.session.left = None
        self.show()

    def leave(self, box: Outbox, places: tuple[str, ...] = PLACES) -> None:
        """Remove a page from these places."""
        here = len(self.people)
        for place in places:
            self.people.pop((box, place), None)
        if not self.people:
            self.session.left = time.monotonic()
        if len(self.people) < here:
            self.show()

    # The game

    @property
    def finished(self) -> bool:
        """Whether the game is over, by the rules or otherwise."""
        return self.over is not None or bool(self.state.get("outcome"))

    def move(self, box: Outbox, side: str, text: str, ident: object) -> None:
        """Make a move for a seat; the page is told whether it was played. RequestError if it is not its turn."""
        self._demand_seat(side)
        if not MOVE.fullmatch(text):
            raise RequestError("bad_frame", f"move {text[:20]}: expected a move such as d1d3")
        if self._asked is not None or self.state.get("side") != side:
            raise RequestError("not_your_turn", "it is not your turn")
        self._asked = Asked(box, ident, side, len(self.state["moves"]), time.monotonic())
        self.session.receive(f"play {text}".encode())

    def resign(self, side: str) -> None:
        """Resign for a side."""
        self._demand_seat(side)
        self._end(other(side), Reason.RESIGNATION)

    def draw(self, side: str) -> None:
        """Offer a draw for a side, or accept one."""
        self._demand_seat(side)
        self.offers.add(side)
        if len(self.offers) == len(SEATS):
            self._end("draw", Reason.AGREED_DRAW)
        else:
            self.show()

    def rematch(self, side: str) -> None:
        """Ask for another game for a side, or agree to one: sides are swapped and the clock is reset."""
        self._demand_seat(side, over=True)
        self.offers.add(side)
        if len(self.offers) < len(SEATS):
            self.show()
            return
        self.offers.clear()
        self.over = None
        self.game += 1
        self.words = {word: other(place) for word, place in self.words.items()}
        self.people = {(box, other(place)): name for (box, place), name in self.people.items()}
        self.names = {other(place): name for place, name in self.names.items()}
        if self.clock is not None:
            self.clock.reset()
        # Nothing can be played until the engine has sent the state of the new game.
        self.state = {}
        self.begin()

    def begin(self) -> None:
        """Tell the engine to begin a game."""
        if self.game > 1:
            self.session.receive(b"utinewgame")
        if self.position:
            self.session.receive(self.position.encode())

    def _demand_seat(self, side: str, *, over: bool = False) -> None:
        if side not in SEATS:
            raise RequestError("not_your_turn", "spectators cannot play")
        if not self.state:
            raise RequestError("not_your_turn", "the game has not begun: try again")
        if self.finished != over:
            raise RequestError("over", "the game is not over" if over else "the game is over")

    def _end(self, result: str, reason: Reason) -> None:
        self.over = {"result": result, "reason": reason.value}
        self.offers.clear()
        if self.clock is not None:
            self.clock.stop()
        self._set_flag()
        self.show()

    def _set_flag(self) -> None:
        """Set a timer for the end of the running clock, so that nobody has to claim a win on time."""
        if self._flag is not None:
            self._flag.cancel()
            self._flag = None
        clock = self.clock
        if clock is not None and clock.running:
            left = clock.left_of(clock.running)
            self._flag = asyncio.get_running_loop().call_later(left, self._time_is_over, clock.running)

    def _time_is_over(self, side: str) -> None:
        if self._asked is not None:
            return  # moved in time, if the rules allow the move
        if self.clock is not None and self.clock.running == side and not self.finished:
            self._end(other(side), Reason.TIME)

    # What people see

    def show(self) -> None:
        """Send the state of the table to everybody here."""
        if not self.state:
            return
        known = (
            "variant",
            "files",
            "ranks",
            "start",
            "moves",
            "fen",
            "side",
            "special",
            "captures",
            "outcome",
        )
        common = {
            "t": "table",
            "s": self.name,
            **{key: self.state[key] for key in known},
            "game": self.game,
            "over": self.over,
            "offers": sorted(self.offers),
            "clock": None if self.clock is None else self.clock.shown(),
            "names": self.names,
            "here": {side: any(place == side for _, place in self.people) for side in SEATS},
            "watching": sum(place == WATCH for _, place in self.people),
        }
        for box, place in list(self.people):
            legal = self.state["legal"] if place == self.state["side"] and not self.finished else []
            box.put({**common, "seat": place, "legal": legal}, ("table", self.name, place))


def other(side: str) -> str:
    """The opposite seat; spectators stay spectators."""
    return {"a": "d", "d": "a"}.get(side, side)


class Tables:
    """The tables of a site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._tables: dict[str, Table] = {}
        """Tables by each of their words."""

    def __len__(self) -> int:
        return len(self._tables) // len(PLACES)

    def watching(self) -> int:
        """Spectators at all tables."""
        tables = set(self._tables.values())
        return sum(place == WATCH for table in tables for _, place in table.people)

    def make(
        self, frame: Mapping[str, Any], own: int, failed: Callable[[RequestError], None], address: str
    ) -> Table:
        """Make the table that a frame asks for; its page at `address` already has `own` games. RequestError."""
        variant = frames.text(frame, "variant")
        start, moves = frames.text(frame, "start"), frames.words(frame, "moves", PLIES_LIMIT)
        if not all(map(MOVE.fullmatch, moves)):
            raise FrameError("bad_frame", "moves: expected moves such as d1d3", frame.get("id"))
        clock = _clock(frame)
        table: Table

        def lost(_sid: str, error: RequestError) -> None:
            table.put({"t": "closed"})
            failed(error)

        session = self._site.open(Wanted(variant), own, lost, address)
        session.kept = KEPT
        session.left = time.monotonic()
        position = ""
        if start or moves:
            where = f"fen {start}" if start else "startpos"
            position = f"position {where} moves {' '.join(moves)}".removesuffix(" moves ")
        words = {secrets.token_urlsafe(16): place for place in PLACES}
        table = Table(words, session, clock, position)
        table.ended = lambda: self._forget(table)

        def no_start(why: str) -> None:
            self._site.close(session, "no such position")
            failed(RequestError("bad_frame", why))

        table.failed = no_start
        self._tables.update(dict.fromkeys(words, table))
        session.outgoing.attach(table, 0)
        table.begin()
        return table

    def place(self, frame: Mapping[str, Any]) -> tuple[Table, str]:
        """The table and place for a frame's word; RequestError."""
        word = frames.text(frame, "seat", 64)
        table = self._tables.get(word)
        if table is None:
            raise RequestError("no_table", "this table does not exist, or no longer")
        return table, table.words[word]

    def stands(self, table: Table) -> bool:
        """Whether a table still exists."""
        return not self._tables.keys().isdisjoint(table.words)

    def _forget(self, table: Table) -> None:
        for word in table.words:
            self._tables.pop(word, None)


def _clock(frame: Mapping[str, Any]) -> Clock | None:
    value = frame.get("clock")
    if value is None:
        return None
    good = (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(number, (int, float)) and not isinstance(number, bool) for number in value)
        and 1 <= value[0] <= SECONDS_LIMIT
        and 0 <= value[1] <= SECONDS_LIMIT
    )
    if not good:
        raise FrameError("bad_frame", "clock: expected [seconds, increment]", frame.get("id"))
    return Clock(float(value[0]), float(value[1]))


class Guest:
    """One page's part at tables; its frames are `{"t": "table", "do": …}`."""

    def __init__(self, tables: Tables, box: Outbox, address: str) -> None:
        self._address = address
        self._tables = tables
        self._box = box
        self._made: list[Table] = []
        self._at: list[Table] = []

    @property
    def made(self) -> int:
        """The number of tables made by this page."""
        self._made = [table for table in self._made if self._tables.stands(table)]
        return len(self._made)

    def take(self, frame: Mapping[str, Any], own: int) -> None:
        """Execute a frame; the page has `own` other games. RequestError."""
        ident = frame.get("id")
        match frames.text(frame, "do", 16):
            case "make":
                table = self._tables.make(
                    frame, own + self.made, lambda error: self._refuse(error, ident), self._address
                )
                self._made.append(table)
                seats = {place: word for word, place in table.words.items()}
                self._box.put({"t": "made", "id": ident, "seats": seats})
            case "sit":
                table, place = self._tables.place(frame)
                name = frames.text(frame, "name", NAME_LIMIT)
                if table not in self._at:
                    self._at.append(table)
                self._box.put({"t": "seated", "id": ident, "table": table.name, "seat": place})
                table.sit(self._box, place, name)
            case "leave":
                table, place = self._tables.place(frame)
                table.leave(self._box, (place,))
                self._box.put({"t": "done", "id": ident})
            case "move":
                table, place = self._tables.place(frame)
                table.move(self._box, place, frames.text(frame, "move", 16), ident)
            case "resign" | "draw" | "rematch" as what:
                table, place = self._tables.place(frame)
                {"resign": table.resign, "draw": table.draw, "rematch": table.rematch}[what](place)
                self._box.put({"t": "done", "id": ident})
            case what:
                expected = "make, sit, leave, move, resign, draw or rematch"
                raise FrameError("bad_frame", f"do {what}: expected {expected}", ident)

    def _refuse(self, error: RequestError, ident: object) -> None:
        self._box.put({"t": "error", "id": ident, "code": error.code, "text": str(error)})

    def leave(self) -> None:
        """The page is gone."""
        for table in self._at:
            table.leave(self._box)
