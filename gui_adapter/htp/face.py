"""Our engine as a program that a controller drives by the Hnefatafl Text Protocol, on standard input and output."""

from __future__ import annotations

import asyncio
import logging
import select
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Final

from hnefi.engine.about import NAME, VERSION
from hnefi.engine.wording import shorten
from hnefi.protocol.client import EngineError
from hnefi.protocol.hosts.exit_codes import DONE, FAULTS, OURS_FAILED
from hnefi.protocol.hosts.hnefatafl_org_notation import (
    NotationError,
    read_square,
    split_move,
    write_board,
    write_square,
)
from hnefi.protocol.hosts.stdio import Deaf, Stdio

from . import lines as say
from .game import Game
from .lines import LineError

LOG = logging.getLogger("hnefi.htp")

PATIENCE: Final = 5.0
"""Seconds within which an answer must be written."""
LOOK: Final = 0.1
"""Seconds between two checks whether anybody can still read our output."""


class Face:
    """One conversation. Commands are executed one after another, even if the input has ended meanwhile."""

    def __init__(self, stdio: Stdio, game: Game) -> None:
        self._stdio = stdio
        self._game = game
        self._quit = False

    async def run(self) -> int:
        """Run until `quit`, the end of input, or a failure; returns the exit code."""
        talking = asyncio.create_task(self._converse())
        unread = asyncio.create_task(self._unread())
        try:
            await asyncio.wait({talking, unread}, return_when=asyncio.FIRST_COMPLETED)
            return talking.result() if talking.done() else DONE
        finally:
            for task in (talking, unread):
                task.cancel()
            await asyncio.wait({talking, unread})
            self._game.leave("the conversation ended")

    async def _converse(self) -> int:
        try:
            while not self._quit and (line := await self._stdio.line()) is not None:
                await self._take(line, line.cut)
        except Deaf as error:
            LOG.error("%s", error)
            return FAULTS
        except EngineError as error:
            LOG.error("the engine failed: %s", error)
            await self._say(f"? the engine failed: {error}", "")
            return OURS_FAILED
        return DONE

    async def _unread(self) -> None:
        """Wait until the input has ended and nobody can read our output: then nobody needs an answer either."""
        await self._stdio.over.wait()
        out = select.poll()
        out.register(1, 0)
        while not (self._stdio.deaf or out.poll(0)):
            await asyncio.sleep(LOOK)

    async def _take(self, line: bytes, cut: bool) -> None:
        try:
            if cut:
                raise LineError(f"a line of more than {say.LINE_LIMIT} bytes: expected a command")
            words = say.words_of(line)
            if not words:
                return
            handler = _HANDLERS.get(words[0])
            if handler is None:
                raise LineError(f"{shorten(words[0])}: expected a command that list_commands names")
            first, *more = await handler(self, words[1:])
        except NotationError as error:
            await self._say(f"? {error}", "")
        else:
            await self._say(f"= {first}", *more)

    async def _say(self, *lines: str) -> None:
        """Write lines, each as soon as there is room, even after the end of input, because all of a script is run."""
        deadline = time.monotonic() + PATIENCE
        for line in lines:
            while not self._stdio.mention(line):
                if time.monotonic() > deadline:
                    raise Deaf(f"nobody has read our output for {PATIENCE:g} s")
                await asyncio.sleep(LOOK / 10)

    # What the program is

    async def _name(self, _: Sequence[str]) -> list[str]:
        return [NAME]

    async def _version(self, _: Sequence[str]) -> list[str]:
        return [VERSION]

    async def _protocol_version(self, _: Sequence[str]) -> list[str]:
        return [say.PROTOCOL_VERSION]

    async def _list_commands(self, _: Sequence[str]) -> list[str]:
        return ["", *say.COMMANDS]

    async def _known_command(self, words: Sequence[str]) -> list[str]:
        if not words:
            raise LineError("known_command: expected a name, as in known_command play")
        return [str(words[0] in say.COMMANDS).lower()]

    async def _end(self, _: Sequence[str]) -> list[str]:
        self._quit = True
        return [""]

    # The game

    async def _board_size(self, words: Sequence[str]) -> list[str]:
        self._game.begin(say.read_size(words))
        return [""]

    async def _first_move(self, words: Sequence[str]) -> list[str]:
        if len(words) != 1:
            raise LineError("first_move: expected a role, as in first_move attacker")
        self._game.begin(first=say.read_role(words[0]))
        return [""]

    async def _time_settings(self, words: Sequence[str]) -> list[str]:
        clock = say.read_clock(words)
        self._game.leave("another game was begun")
        self._game.clock = clock
        self._game.begin()
        return [""]

    async def _play(self, words: Sequence[str]) -> list[str]:
        played = say.read_play(["play", *words], self._game.size)
        if played.move is None:
            await self._game.resign(played.side)
            return [""]
        taken = await self._game.play(played.side, played.move)
        return [self._squares(taken)]

    async def _play_undo(self, _: Sequence[str]) -> list[str]:
        self._game.undo()
        return [""]

    async def _play_from(self, _: Sequence[str]) -> list[str]:
        facts = await self._game.must_go_on()
        origins = dict.fromkeys(split_move(move)[0] for move in facts.legal)
        return [f"{say.ROLES[facts.side]} {self._squares(origins)}"]

    async def _play_to(self, words: Sequence[str]) -> list[str]:
        if len(words) != 2:
            raise LineError("play_to: expected a role and a square, as in play_to attacker d1")
        facts = await self._game.must_go_on(say.read_role(words[0]))
        origin = read_square(words[1], self._game.size)
        moves = map(split_move, facts.legal)
        return [self._squares([target for start, target in moves if start == origin])]

    async def _generate_move(self, words: Sequence[str]) -> list[str]:
        facts = await self._game.must_go_on(say.read_role(words[0]) if words else None)
        move = await self._game.think()
        if move is None:
            await self._game.resign(facts.side)
        else:
            await self._game.play(facts.side, move)
        return [say.write_play(facts.side, move, self._game.size)]

    async def _final_status(self, _: Sequence[str]) -> list[str]:
        outcome = await self._game.outcome()
        return [say.STATUS[None if outcome is None else outcome.result]]

    async def _show_board(self, _: Sequence[str]) -> list[str]:
        return ["", *say.picture((await self._game.facts()).fen, self._game.size)]

    async def _show_board_open_tafl(self, _: Sequence[str]) -> list[str]:
        return [write_board((await self._game.facts()).fen)]

    def _squares(self, squares: Sequence[str] | Mapping[str, None]) -> str:
        return " ".join(write_square(square, self._game.size) for square in squares)


_HANDLERS: Final[Mapping[str, Callable[[Face, Sequence[str]], Coroutine[None, None, list[str]]]]] = {
    "board_size": Face._board_size,
    "final_status": Face._final_status,
    "first_move": Face._first_move,
    "generate_move": Face._generate_move,
    "known_command": Face._known_command,
    "list_commands": Face._list_commands,
    "name": Face._name,
    "play": Face._play,
    "play_from": Face._play_from,
    "play_to": Face._play_to,
    "play_undo": Face._play_undo,
    "protocol_version": Face._protocol_version,
    "quit": Face._end,
    "show_board": Face._show_board,
    "show_board_open_tafl": Face._show_board_open_tafl,
    "time_settings": Face._time_settings,
    "version": Face._version,
}
