"""Our account on the server: games are offered or joined, played one after the other, and drawn or resigned."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from hnefi.engine.games.tafl.variant import find
from hnefi.engine.records.record import GameRecord
from hnefi.engine.sides import Reason, Side
from hnefi.engine.wording import shorten
from hnefi.protocol.client import EngineError
from hnefi.protocol.hosts.exit_codes import DONE, OURS_FAILED
from hnefi.protocol.hosts.hnefatafl_org_notation import NotationError, read_move, write_move
from hnefi.protocol.hosts.journal import GameLog, Journal

from .connection import Connection, Lost, ServerError
from .game import RESULTS, ROLES, SIDES, Game, GameError, Settings, offer, read_game, side_after, thinking
from .thinking import Choice, Engines

LOG = logging.getLogger("hnefi.hnefatafl_org")

REFUSALS: Final = 3
"""Legal moves that the server may refuse in one position; after that our rules must differ, and we resign."""
EVEN: Final = 50
"""Largest score for us, in centipawns, at which `--draws even` accepts a draw."""
UNTIMED: Final = 5_000.0
"""Milliseconds for a move of a game without a clock."""
OTHERS: Final = 64
"""Maximum number of our other games to remember."""
WORDS: Final = 100
"""Unknown words that are logged, once each."""
NAME: Final = 40
GAME_TAG: Final = "HnefataflOrgGame"
"""The tag with the server's number of a game. If another process continues a game, each of them writes a record."""


@dataclass(slots=True)
class Match:
    """One game of ours. `tail` are the moves that the server has sent one by one since it sent the whole `game`."""

    id: str
    add: int | None = None
    game: Game | None = None
    log: GameLog | None = None
    tail: list[str] = field(default_factory=list)
    sent: str = ""
    refused: set[str] = field(default_factory=set)
    resigned: Side | None = None
    given_up: bool = False
    choice: Choice | None = None

    def hear(self, side: Side, move: str) -> None:
        """Handle a single move from the server, perhaps for the second time."""
        assert self.game is not None
        known = [*self.game.moves, *self.tail]
        if move in known[-2:]:
            return
        if self.sent and move != self.sent and side != side_after(self.game.size, len(known)):
            known.append(self.sent)  # it has been answered, so it was taken
        if side == side_after(self.game.size, len(known)):
            self.tail = [*known[len(self.game.moves) :], move]
            self.sent = ""


class Player:
    """Plays the games of an account, one connection after the other."""

    def __init__(
        self,
        settings: Settings,
        engines: Engines,
        journal: Journal | None,
        say: Callable[[str], None],
        ping: float = 30.0,
    ) -> None:
        self._settings = settings
        self._engines = engines
        self._journal = journal
        self._say = say
        self._every = ping
        self._match: Match | None = None
        self._played = 0
        self._status: int | None = None
        self._unknown: set[str] = set()
        self._hearers: dict[str, Callable[[list[str], str], None]] = {
            "= ping": self._hear_ping,
            "= new_game": self._hear_offered,
            "= challenge_requested": self._hear_challenge,
            "= join_game_pending": self._hear_pending,
            "= join_game": self._hear_joined,
            "= resume_game_json": self._hear_game,
            "? resume_game_json": self._hear_no_game,
            "? game": self._hear_refusal,
            "game": self._hear_move,
            "request_draw": self._hear_draw_wanted,
            "= request_draw": self._hear_draw_wanted,
            "= draw": self._hear_draw,
            "= game_over": self._hear_over,
            "= text": self._hear_chat,
            "= text_game": self._hear_chat,
        }
        # Of one connection
        self._connection: Connection
        self._thinking: asyncio.Task[Choice] | None = None
        self._cancelled: set[asyncio.Task[Choice]] = set()
        self._over: tuple[str, str] | None = None
        self._others: dict[str, None] = {}
        self._listed: set[str] = set()
        self._pending = ""
        self._accepted = False
        self._told_all = False
        self._ready = False
        self._asked = 0
        self._answered = 0
        self._again = False
        self._stale = False
        self._pings = 0
        self._asked_before_ping = 0
        self._arrived = 0.0

    async def use(self, connection: Connection) -> int:
        """Play on a connection on which we are logged in; the exit code, or Lost, or ServerError."""
        self._connection = connection
        self._others.clear()
        self._listed.clear()
        self._pending = ""
        self._told_all = self._accepted = self._again = self._stale = False
        self._answered = self._asked
        self._pings = 0
        if self._match is not None:
            self._match.sent = ""
            self._match.tail.clear()
        self._ready = self._engines.ready.is_set()
        starting = asyncio.ensure_future(self._engines.ready.wait())
        reading = asyncio.ensure_future(connection.lines())
        # Everything that the server sends by itself after a login comes before the answer to this.
        self._ping()
        due = time.monotonic() + self._every
        try:
            while True:
                await self._settle()
                if self._status is not None:
                    return self._status
                awaited: set[asyncio.Future[Any]] = {reading}
                if self._thinking is not None:
                    awaited.add(self._thinking)
                if not self._ready:
                    awaited.add(starting)
                timeout = max(0.0, due - time.monotonic())
                done, _ = await asyncio.wait(awaited, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                if reading in done:
                    self._arrived = time.monotonic()
                    lines = reading.result()
                    reading = asyncio.ensure_future(connection.lines())
                    for line in lines:
                        self._hear(line)
                        await self._settle()
                if self._thinking is not None and self._thinking.done():
                    self._answer()
                if starting in done:
                    self._ready = True
                    if self._match is None:
                        self._next()
                if time.monotonic() >= due:
                    if self._pings > 1:
                        raise Lost(f"the server has not answered a ping for {2 * self._every:g} s")
                    self._ping()
                    due = time.monotonic() + self._every
        finally:
            starting.cancel()
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError, Lost):
                await reading
            await self._stop()

    @property
    def playing(self) -> str:
        """The number of the game that is being played; empty if there is none."""
        return "" if self._match is None else self._match.id

    def leave(self, why: str) -> None:
        """The game that is being played is not played on by us."""
        if self._match is not None and self._match.log is not None:
            self._match.log.end(None, Reason.INTERRUPTED, why)
        self._match = None

    # What we hear

    def _hear(self, line: str) -> None:
        words = line.split()
        if not words:
            return
        head = " ".join(words[:2]) if words[0] in ("=", "?") else words[0]
        rest = words[2:] if words[0] in ("=", "?") else words[1:]
        hearer = self._hearers.get(head)
        if hearer is not None:
            hearer(rest, line)
        elif head in ("? new_game", "? join_game_pending"):
            what = "our offer" if head == "? new_game" else f"to let us join game {self._settings.join}"
            raise ServerError(f"the server refused {what}: {shorten(' '.join(rest))}")
        elif head not in self._unknown and len(self._unknown) < WORDS:
            self._unknown.add(head)
            LOG.debug("skipped: %s", shorten(line))

    def _hear_ping(self, _words: list[str], _line: str) -> None:
        self._pings = max(0, self._pings - 1)
        if not self._told_all:
            self._told_all = True
            if self._match is not None and self._match.id not in self._listed:
                self._say(f"game {self._match.id} ended while we were away")
                self.leave("it ended while the connection was down")
                self._played += 1
            if self._match is None:
                self._next()
        elif self._match is not None and self._answered < self._asked_before_ping:
            # Answers come in order: there will be none.
            self._drop(f"game {self._match.id}: the server no longer knows it")

    def _hear_offered(self, words: list[str], _line: str) -> None:
        if words and self._match is None:
            self._pending = words[0]
            self._say(f"offered game {shorten(words[0])[1:-1]}: waiting for somebody to join")

    def _hear_challenge(self, words: list[str], _line: str) -> None:
        if not words or not _is_id(words[0]):
            return
        taken = self._accepted and words[0] != self._pending
        if self._match is not None or self._settings.join or taken:
            self._connection.send(f"decline_game {words[0]}")
        else:
            self._pending, self._accepted = words[0], True
            self._connection.send(f"join_game {words[0]}")

    def _hear_pending(self, words: list[str], _line: str) -> None:
        if words == [self._settings.join]:
            self._pending = words[0]
            self._say(f"asked to join game {words[0]}: waiting to be accepted")

    def _hear_joined(self, words: list[str], _line: str) -> None:
        if self._match is None and self._pending and self._settings.user in words[:2]:
            self._begin(self._pending)

    def _hear_game(self, _words: list[str], line: str) -> None:
        match = self._match
        if match is None or self._answered == self._asked:
            return  # nobody asked
        try:
            game = read_game(line.split(maxsplit=2)[2])
        except (GameError, IndexError) as error:
            raise ServerError(f"the server told game {match.id}: {error}") from None
        if game.id not in (None, match.id):
            return
        self._answered = self._asked
        stale, self._stale = self._stale, False
        if stale or self._again:
            self._again = False
            self._ask()
        if not stale:
            self._take(match, game)

    def _hear_no_game(self, words: list[str], _line: str) -> None:
        if self._match is not None and self._answered < self._asked:
            self._drop(f"game {self._match.id}: the server does not send it: {shorten(' '.join(words))}")

    def _hear_move(self, words: list[str], _line: str) -> None:
        """`game ID generate_move ROLE` and `game ID play ROLE FROM TO`: the first also of games that are not our turn,
        both perhaps twice."""
        if len(words) < 3 or not _is_id(words[0]):
            return
        number, what = words[:2]
        if what == "generate_move":
            self._listed.add(number)
            if self._match is None:
                self._begin(number)
            elif number == self._match.id:
                self._ask()
            elif len(self._others) < OTHERS:
                self._others[number] = None
        elif what == "play" and self._match is not None and number == self._match.id:
            self._hear_play(self._match, SIDES.get(words[2]), words[3:])

    def _hear_play(self, match: Match, side: Side | None, words: list[str]) -> None:
        if words[:1] == ["resigns"]:
            match.resigned = side
        elif match.game is not None and side is not None and len(words) > 1:
            with contextlib.suppress(NotationError):
                match.hear(side, read_move(words[0], words[1], match.game.size))
        if self._thinking is not None:
            self._ask()

    def _hear_refusal(self, words: list[str], _line: str) -> None:
        match = self._match
        if match is not None and match.sent:
            self._refused(match, shorten(" ".join(words)))
            self._ask()

    def _hear_draw_wanted(self, words: list[str], _line: str) -> None:
        match = self._match
        if match is None or words[:1] != [match.id]:
            return
        score = None if match.choice is None else match.choice.score
        accepted = (
            self._settings.even and score is not None and score.mate is None and (score.cp or 0) <= EVEN
        )
        LOG.info("the draw that is offered in game %s is %s", match.id, "taken" if accepted else "not taken")
        # The protocol has `decline`, but the server then forgets the game. Without an answer the game continues.
        if accepted:
            self._connection.send(f"draw {match.id} accept")

    def _hear_draw(self, words: list[str], _line: str) -> None:
        if words[:1] == ["accept"]:
            self._over = ("draw", Reason.AGREED_DRAW)

    def _hear_over(self, words: list[str], _line: str) -> None:
        if self._match is None or words[:1] != [self._match.id]:
            for number in words[:1]:
                self._others.pop(number, None)
            return
        result = RESULTS.get(words[1]) if len(words) > 1 else None
        if result is not None:
            self._over = (result, "")

    def _hear_chat(self, _words: list[str], line: str) -> None:
        LOG.info("chat: %s", shorten(line, 300))

    # Games

    def _next(self) -> None:
        """Go to the next game: one of ours in progress, or a new one, unless the last one was the last."""
        if not (self._told_all and self._ready):
            return
        if self._others:
            number = next(iter(self._others))
            del self._others[number]
            self._begin(number)
        elif self._played >= self._settings.games:
            self._status = DONE
        elif self._settings.join:
            self._connection.send(f"join_game_pending {self._settings.join}")
        else:
            settings = self._settings
            self._connection.send(offer(settings.role, settings.clock, settings.size, rated=settings.rated))

    def _begin(self, number: str) -> None:
        ours = number == self._pending and not self._settings.join
        clock = self._settings.clock
        self._match = Match(number, clock.add if ours and clock is not None else None)
        self._pending, self._accepted = "", False
        self._listed.add(number)
        self._answered = self._asked  # of the game before
        self._ask()

    def _ask(self) -> None:
        """Ask the server for the state of the game, one question at a time."""
        assert self._match is not None
        if self._answered < self._asked:
            self._again = True
            return
        self._asked += 1
        self._connection.send(f"resume_game_json {self._match.id}")

    def _take(self, match: Match, game: Game) -> None:
        """Follow the game to where the server says it is."""
        known = match.game
        if self._settings.user not in (game.attackers, game.defenders):
            self._drop(f"game {match.id} is not ours: {shorten(game.attackers)}, {shorten(game.defenders)}")
            return
        if known is None:
            self._open(match, game)
        same = known is not None and known.moves == game.moves
        if not same:
            match.refused.clear()
            self._tell_plies(known, game)
        match.game = game
        match.tail.clear()
        if match.log is not None:
            match.log.follow(game.plies)
        if game.resigned or game.player(game.side) != self._settings.user:
            self._cancel()
            match.sent = ""
            return
        if same and match.sent:
            self._refused(match, "it did not accept the move, and did not say why")
        if self._thinking is not None:
            if same:
                return
            self._cancel()
        match.sent = ""
        self._think(match, game)

    def _open(self, match: Match, game: Game) -> None:
        players = (_name(game.attackers), _name(game.defenders))
        self._say(f"game {match.id}: attackers {players[0]}, defenders {players[1]}, {game.variant}")
        if self._journal is not None:
            variant = find(game.variant)
            match.log = self._journal.begin(
                GameRecord(
                    variant.name, players=players, rules_hash=variant.hash, tags=((GAME_TAG, match.id),)
                )
            )

    def _tell_plies(self, known: Game | None, game: Game) -> None:
        begin = 0 if known is None else len(known.plies)
        for number, ply in enumerate(game.plies[begin:], begin):
            taken = "".join(f"x{square}" for square in ply.captures or ())
            role = ROLES[side_after(game.size, number)]
            self._say(f"{number + 1:3}. {role} {ply.move}{taken}")

    def _drop(self, why: str) -> None:
        """Drop a game that cannot be continued."""
        LOG.warning("%s", why)
        self._cancel()
        self._answered = self._asked
        self.leave(why)
        self._played += 1
        self._next()

    async def _settle(self) -> None:
        """Finish what a line has begun and the loop has to wait for: the end of a game."""
        if self._over is None or self._match is None:
            self._over = None
            return
        (result, reason), self._over = self._over, None
        match = self._match
        await self._stop()
        await self._finish(match, result, reason)
        self._match = None
        self._answered = self._asked
        self._played += 1
        self._next()

    async def _finish(self, match: Match, result: str, reason: str) -> None:
        """Record the end of a game as the server reports it."""
        game = match.game
        why = ""
        if game is None:
            game = Game("", "", self._settings.size)
        tail = [*match.tail, *filter(None, [match.sent])]
        try:
            entries, by_rules, our_reason = await self._engines.ended(game, tail)
        except EngineError as error:
            LOG.warning("our engine failed: %s", error)
            entries, by_rules, our_reason = [], None, ""
        if reason:
            pass
        elif match.given_up:
            reason = Reason.RESIGNATION
        elif match.resigned is not None and result == match.resigned.other.letter:
            ours = game.player(match.resigned) == self._settings.user
            reason = Reason.TIME if ours else Reason.RESIGNATION
            why = "" if ours else "resigned, or lost on time: the server does not say which"
        elif by_rules == result:
            reason = our_reason
        else:
            reason = Reason.ADJUDICATED
            held = "the game goes on" if by_rules is None else _in_words(by_rules)
            LOG.warning("the server says %s, by our rules: %s", _in_words(result), held)
        self._tell_plies(game, Game("", "", game.size, (*game.plies, *entries)))
        if match.log is not None:
            match.log.follow((*game.plies, *entries))
            match.log.end(result, reason, why)
        self._say(f"game {match.id} is over: {_in_words(result)} ({Reason(reason).words})")

    # Our moves

    def _think(self, match: Match, game: Game) -> None:
        if len(match.refused) >= REFUSALS:
            fen = "" if match.choice is None else match.choice.fen
            self._resign(match, game, f"the server refused {', '.join(sorted(match.refused))} in {fen}")
            return
        add = match.add if game.add is None else game.add
        left = None if game.clock is None else float(game.clock[game.side])
        cap = self._settings.movetime
        milliseconds = thinking(left, 1000.0 * (add or 0), None if cap is None else float(cap), UNTIMED)
        deadline = self._arrived + milliseconds / 1000
        self._thinking = asyncio.ensure_future(self._engines.choose(game, deadline, {*match.refused}))

    def _answer(self) -> None:
        """Send the move that has been found."""
        task, self._thinking = self._thinking, None
        assert task is not None
        match = self._match
        if task.cancelled() or match is None or match.game is None:
            return
        try:
            match.choice = choice = task.result()
        except EngineError as error:
            LOG.error("our engine failed: %s", error)
            self._resign(match, match.game, "our engine failed")
            self.leave(f"our engine failed: {error}")
            self._status = OURS_FAILED
            return
        if choice.move is None:
            self._resign(match, match.game, choice.why)
            return
        match.sent = choice.move
        self._send_play(match.game, write_move(choice.move, match.game.size))

    def _resign(self, match: Match, game: Game, why: str) -> None:
        LOG.warning(
            "game %s is resigned: %s (moves: %s)", match.id, why, shorten(" ".join(game.moves), 2_000)
        )
        match.given_up = True
        self._send_play(game, "resigns _")

    def _send_play(self, game: Game, words: str) -> None:
        assert self._match is not None
        self._stale = self._answered < self._asked
        self._connection.send(f"game {self._match.id} play {ROLES[game.side]} {words}")

    def _refused(self, match: Match, why: str) -> None:
        fen = "" if match.choice is None else match.choice.fen
        LOG.warning("the server refused %s in %s: %s", match.sent, fen, why)
        match.refused.add(match.sent)
        match.sent = ""

    def _cancel(self) -> None:
        """Stop thinking about a move that is no longer needed."""
        task, self._thinking = self._thinking, None
        if task is not None:
            task.cancel()
            self._cancelled.add(task)
            task.add_done_callback(self._cancelled.discard)

    async def _stop(self) -> None:
        self._cancel()
        while self._cancelled:
            await asyncio.wait(self._cancelled)

    def _ping(self) -> None:
        self._pings += 1
        self._asked_before_ping = self._asked
        self._connection.send("ping")


def _in_words(result: str) -> str:
    return result if result == "draw" else f"{ROLES[Side.of(result)]}s win"


def _is_id(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= 40


def _name(text: str) -> str:
    """A name without control characters."""
    return "".join(sign for sign in text if sign.isprintable())[:NAME]
