"""The public server as its lines are described, for one account: a played game by heart, and quirks.

    python tests/hnefatafl_org/double_server.py GAME ROLE [--port P] [QUIRK[=N]]...

GAME is `escape` or `capture`, on 7 x 7; ROLE is that of the account, `attacker` or `defender`. The opponent's moves
are played by heart, and those of the account must be the game's: others are refused. It prints how to call it, and what
it hears. It was written from a description of the lines and shares nothing with the adapter. The account is `ai-hnefi`
with the password `secret`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import sys
import threading
import time
from typing import Any

GAMES = {
    "escape": "c4c1 b4b1xc1 d4c4 d6f6 c4c1xb1 d7d6xd5 c1a1 defender_wins",
    "capture": "e4e2 f4f2xe2 d4e4 f2e2 e4e3 g4e4 attacker_wins",
}
"""Played games, the defenders begin: moves with what they take, and the server's word for the result."""
USER, PASSWORD, WIRE, ID = "ai-hnefi", "secret", "32d9a140", 7
START = "/3A3/3A3/3D3/AADKDAA/3D3/3A3/3A3/"
QUIRKS = {
    "wire": "another release",
    "crlf": "lines end in CR LF",
    "bytes": "one byte at a time",
    "twice": "every line twice",
    "flood": "after the login lists of 2 MiB and of 5 MiB, unknown words, chat",
    "archive": "after the login archived games, which contain lines that must not be read",
    "noise": "after the login 64 KiB of random bytes",
    "burst": "10,000 lines after ply N",
    "drop": "the connection falls after ply N, and the opponent plays meanwhile",
    "cut": "the connection falls in the middle of the game's JSON after ply N",
    "lose": "the connection falls when the move after ply N comes, which is not taken",
    "stale": "after ply N the game as it was before, though nobody asks",
    "gone": "the connection falls after ply N, and the game ends while nobody is there",
    "reject": "N moves of the account are refused",
    "mute": "refused moves are not answered at all",
    "draw": "the opponent wants a draw after ply N",
    "flag": "the account's clock runs out after ply N",
    "resign": "the opponent resigns after ply N",
    "over": "the attackers have won after ply N, whatever the board says",
    "challenge": "a second challenge after ply N",
    "silent": "answers no ping any more on this connection after ply N",
    "forgets": "the game is not known any more after ply N",
    "text": "no JSON after ply N", "deep": "JSON 10,000 deep after ply N",
    "digits": "a number of 100,000 digits after ply N",
    "illegal": "the game after ply N has a move that the rules do not know", "dim": "a board of 12 after ply N",
    "stranger": "a game of other people after ply N", "wrong": "another game's JSON before that of ply N",
    "list": "the JSON is a list after ply N", "huge": "a line without an end after ply N",
    "untimed": "no clock", "short": "a clock of 3 s", "open": "the game is being played already",
    "refuse_offer": "the offer is refused", "extra": "fields that nobody knows",
}  # fmt: skip


class Fell(Exception):
    """This connection is over."""


class DoubleServer:
    """Serves one account in a thread, connection after connection. `heard` are its lines without the pings."""

    def __init__(
        self,
        game: str,
        role: str,
        address: str = "127.0.0.1",
        port: int = 0,
        *,
        refusals: Any = (),
        **quirks: int,
    ) -> None:
        assert quirks.keys() <= QUIRKS.keys(), quirks
        *words, self.result = GAMES[game].split()
        self.script = words
        self.role = role
        self.quirks = quirks
        self.refusals = list(refusals)
        self.heard: list[str] = []
        self.pings = 0
        self.logins: list[float] = []
        self.played = 0
        self.finished = False
        self._on = "open" in quirks
        if self._on and role == "attacker":
            self.played = 1
        self.done: set[str] = set()
        self._since = time.monotonic()
        self._stopped = False
        self._listener = socket.create_server((address, port))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Listen no more."""
        self._stopped = True
        with contextlib.suppress(OSError):
            socket.create_connection(self._listener.getsockname(), 1).close()
        self._thread.join(60)
        self._listener.close()

    # Connections

    def _serve(self) -> None:
        while not self._stopped:
            try:
                self._socket, _ = self._listener.accept()
            except OSError:
                return
            with self._socket, contextlib.suppress(OSError, Fell):
                self._hear_all()

    def _hear_all(self) -> None:
        rest = b""
        logged_in = False
        while True:
            data = self._socket.recv(65_536)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            for raw in lines:
                line = raw.decode()
                if not line.strip():
                    self.heard.append("an empty line")
                    return
                assert line.isprintable(), line
                if not logged_in:
                    logged_in = self._log_in(line)
                    if not logged_in:
                        return
                elif not self._hear(line):
                    return

    def _log_in(self, line: str) -> bool:
        self.logins.append(time.monotonic())
        wire, word, *words = line.split()
        assert word == "login"
        if wire != WIRE or "wire" in self.quirks:
            self._send("? login wrong_version")
            return False
        refusal = self.refusals.pop(0) if self.refusals else ""
        if not refusal and words != [USER, PASSWORD]:
            refusal = "wrong_password" if words[0] == USER else "account_not_in_database"
        if refusal:
            self._send(f"? login multiple_possible_errors {refusal}")
            return False
        self._send("= login")
        self._mute = False
        self._greet()
        return True

    def _greet(self) -> None:
        if "flood" in self.quirks:
            self._send(
                f"= display_users {'x' * (2 << 20)}", f"= display_games {'y' * (5 << 20)}", "= what is this"
            )
            self._send('= text (username:"anna",content:"hello \x1b[2J")', "? nobody asked", "version 6.2.3")
        if "archive" in self.quirks:
            raw = b"\xff\x00\n= game_over 7 attacker_wins\n" * 1000 + b"no end"
            self._socket.sendall(b"= archived_games %d\n" % len(raw) + raw)
        if "noise" in self.quirks:
            self._socket.sendall(os.urandom(65_536).replace(b"archived", b"") + b"\n")
        if self._on:
            # For every open game, whoever is to move.
            self._send(f"game {ID} generate_move {self.role}")

    # Lines

    def _hear(self, line: str) -> bool:
        word, *words = line.split()
        if word == "ping":
            self.pings += 1
            if not self._mute:
                self._send("= ping")
            return True
        self.heard.append(line)
        if word == "new_game":
            self._offer(json.loads(line.partition(" ")[2]))
        elif word == "join_game":
            assert words == [str(ID)], line
            self._start()
        elif word == "join_game_pending":
            self._send(f"= join_game_pending {words[0]}")
            if words == [str(ID)]:
                self._start()
        elif word == "resume_game_json":
            self._tell_game(int(words[0]))
        elif word == "game":
            self._take(words)
        elif word == "draw":
            # It forgets the game whatever the answer is.
            self._send(f"= draw {words[1]}")
            self._on, self.finished = False, True
        elif word not in ("software_id", "decline_game"):
            self._send(f"? {word} invalid")
        return True

    def _offer(self, offer: dict[str, Any]) -> None:
        self.offer = offer
        if "refuse_offer" in self.quirks:
            self._send("? new_game an error")
            return
        assert offer["role"].lower() == self.role, offer
        self._send(f"= new_game {ID}")
        self._send(f"= challenge_requested {ID}")

    def _start(self) -> None:
        self._on = True
        self._since = time.monotonic()
        names = (USER, "anna") if self.role == "attacker" else ("anna", USER)
        self._send(f"= join_game {names[0]} {names[1]} unrated Timed 7")
        self._send(f"game {ID} generate_move attacker")  # also where the defenders begin
        self._advance()

    def _turn(self) -> str:
        return ("defender", "attacker")[self.played % 2]

    def _take(self, words: list[str]) -> None:
        """`ID play ROLE FROM TO` of the account."""
        number, play, role, *move = words
        assert number == str(ID), words
        assert play == "play", words
        if move == ["resigns", "_"]:
            assert role == self._turn(), "resignations are for one's own turn"
            self._end("defender_wins" if role == "attacker" else "attacker_wins")
            return
        if self.quirks.get("reject", 0) > 0:
            self.quirks["reject"] -= 1
            if "mute" in self.quirks:
                self._send(f"game {ID} generate_move {self.role}")
            else:
                self._send("? game invalid move")
            return
        expected = self.script[self.played].partition("x")[0] if self.played < len(self.script) else ""
        if (
            not self._on
            or role != self._turn()
            or role != self.role
            or move != [f"0{expected[:2]}", f"0{expected[2:]}"]
        ):
            self._send("? game invalid move")
            return
        before = json.dumps(self._game())
        if self._is_now("lose"):
            self.done.add("lose")
            raise Fell
        self._send("= game")
        self._move()
        if self._is_now("stale"):
            self._send(f"= resume_game_json {before}")
        self._advance()

    def _move(self) -> None:
        self.played += 1
        self._since = time.monotonic()

    def _advance(self) -> None:
        """Play on until it is the account's turn, and do what a quirk says of a ply."""
        while True:
            self._odd()
            if not self._on:
                return
            if self.played == len(self.script):
                self._end(self.result)
                return
            if self._turn() == self.role:
                self._send(f"game {ID} generate_move {self.role}")
                return
            move = self.script[self.played].partition("x")[0]
            role = self._turn()
            self._move()
            self._send(f"game {ID} play {role} 0{move[:2]} 0{move[2:]}")

    def _is_now(self, quirk: str) -> bool:
        return self.quirks.get(quirk) == self.played and quirk not in self.done

    def _odd(self) -> None:
        for quirk in (
            "burst",
            "drop",
            "gone",
            "draw",
            "resign",
            "over",
            "challenge",
            "silent",
            "huge",
        ):
            if self._is_now(quirk):
                self.done.add(quirk)
                getattr(self, f"_{quirk}")()

    def _burst(self) -> None:
        self._socket.sendall(f"game {ID} generate_move attacker\n= game_time {{}}\n".encode() * 5_000)

    def _drop(self) -> None:
        if self._turn() != self.role and self.played < len(self.script):
            self._move()
        raise Fell

    def _gone(self) -> None:
        self._on = False
        raise Fell

    def _draw(self) -> None:
        other = "defender" if self.role == "attacker" else "attacker"
        self._send(f"request_draw {ID} {other}")

    def _flag(self) -> None:
        self._send(f"game {ID} play {self.role} resigns _")
        self._end("defender_wins" if self.role == "attacker" else "attacker_wins")

    def _resign(self) -> None:
        other = "defender" if self.role == "attacker" else "attacker"
        self._send(f"game {ID} play {other} resigns _")
        self._end(f"{self.role}_wins")

    def _over(self) -> None:
        self._end("attacker_wins")

    def _challenge(self) -> None:
        self._send("= challenge_requested 99")

    def _silent(self) -> None:
        self._mute = True

    def _huge(self) -> None:
        with contextlib.suppress(OSError):
            for _ in range(200):
                self._socket.sendall(b"z" * 65_536)
        self._drop()

    def _end(self, result: str) -> None:
        if self._on:
            self._on, self.finished = False, True
            self._send(f"= game_over {ID} {result}")

    # The game

    def _tell_game(self, number: int) -> None:
        if number != ID or ("forgets" in self.quirks and self.played >= self.quirks["forgets"]):
            return
        text = json.dumps(self._game(), separators=(",", ":"))
        for quirk, lie in LIES.items():
            if self._is_now(quirk):
                text = lie
        if self._is_now("wrong"):
            self.done.add("wrong")
            other = {"id": 8, "attackers": "anna", "defenders": "bert", "dim": 7, "moves": ""}
            self._send(f"= resume_game_json {json.dumps(other)}")
        line = f"= resume_game_json {text}"
        if self._is_now("cut"):
            self.done.add("cut")
            self._socket.sendall(line[: len(line) // 2].encode())
            raise Fell
        self._send(line)
        if self._is_now("flag"):
            self._flag()

    def _game(self) -> dict[str, Any]:
        moves = []
        for word in self.script[: self.played]:
            move, *taken = word.split("x")
            moves.append(f"0{move[:2]}-0{move[2:]}" + "".join(f"x0{square}" for square in taken))
        if self._is_now("illegal"):
            moves.append("0d1-0a7")
            moves.append("0a1-0a7")
        names = (USER, "anna") if self.role == "attacker" else ("anna", USER)
        if self._is_now("stranger"):
            names = ("anna", "bert")
        spent = round((time.monotonic() - self._since) * 1000)
        left = 3_000 if "short" in self.quirks else 900_000
        timed = "untimed" not in self.quirks
        clock = {"attackers": left, "defenders": left, "last_move": "2026-01-01T00:00:00Z"}
        clock[f"{self._turn()}s"] = left - spent
        game: dict[str, Any] = {
            "id": ID,
            "attackers": names[0],
            "defenders": names[1],
            "dim": 12 if self._is_now("dim") else 7,
            "start": START,
            "moves": " ".join(moves),
            "rated": False,
            "messages": [],
            "time_control": {"main_time_seconds": 900, "increment_length": 10} if timed and moves else None,
            "time_remaining_ms": clock if timed else None,
        }
        if "extra" in self.quirks:
            game = {"what": [None, {"x": 1e400}], **game, "spectators": {"bert": 3}}
        return game

    def _send(self, *lines: str) -> None:
        end = "\r\n" if "crlf" in self.quirks else "\n"
        for line in lines:
            data = (line + end).encode() * (2 if "twice" in self.quirks else 1)
            if "bytes" in self.quirks:
                for at in range(len(data)):
                    self._socket.sendall(data[at : at + 1])
            else:
                self._socket.sendall(data)


LIES = {
    "text": "a game would stand here \x1b[2J \x00",
    "deep": "[" * 10_000 + "]" * 10_000,
    "digits": '{"dim":' + "9" * 100_000 + "}",
    "list": "[1,2,3]",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("game", choices=GAMES)
    parser.add_argument("role", choices=("attacker", "defender"))
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("quirks", nargs="*", metavar="QUIRK[=N]", help=", ".join(QUIRKS))
    given = parser.parse_intermixed_args()
    quirks = {name: int(at or 0) for name, _, at in (word.partition("=") for word in given.quirks)}
    double = DoubleServer(given.game, given.role, port=given.port, **quirks)
    moves = ",".join(word.partition("x")[0] for word in double.script)
    print(
        f"HNEFI_PASSWORD={PASSWORD} hnefi hnefatafl-org --user {USER} --server 127.0.0.1:{double.port} --board 7 "
        f"--role {given.role} --no-record --engine 'python tests/support/fault_engine.py {moves}'",
        flush=True,
    )
    shown = 0
    while not double.finished:
        for line in double.heard[shown:]:
            print(line, flush=True)
            shown += 1
        time.sleep(0.05)
    for line in double.heard[shown:]:
        print(line)
    sys.exit(0)


if __name__ == "__main__":
    main()
