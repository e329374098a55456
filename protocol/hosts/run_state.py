"""What viewers of an arena's run are shown: its live events as documents, each under its own topic.

`Picture` takes the events and knows at any moment which documents a late viewer has to find (`documents`, to be
retained) and which of them have changed. It knows neither files nor brokers, and nothing of the rules: the captures of
each ply are in the events.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from .tail import OPENED

KEEP = 600.0
"""Seconds for which an ended game is shown."""
ENDED_GAMES = 256
"""Ended games that are shown at most; the oldest goes first."""
PLY_FACTS = ("cp", "mate", "depth", "time", "clock")
PLIES = 10_000
"""Longer games are shown as far as that."""
UNSEEN = "?"
"""The move of a ply that the arena could not write down in time."""
TABLE_FACTS = ("pairs", "games", "faults")
ID = re.compile(r"[a-z0-9.-]{1,32}")


class Picture:
    """The documents of one run by the part of their topic below `arena/<run>/`.

    `documents` are those that stand now, and `payload` gives one as JSON, made when it is asked for; `changed` are the
    topics whose document is new, or gone, since somebody took them out. `now` gives Unix seconds. Times in documents
    are Unix seconds, those of plies are ms.
    """

    def __init__(self, now: Callable[[], float] = time.time, *, keep: float = KEEP) -> None:
        self.documents: dict[str, Mapping[str, Any]] = {}
        self.changed: dict[str, None] = {}
        self._thinking: dict[str, Mapping[str, Any]] = {}
        self._now = now
        self._keep = keep
        self._games: dict[str, dict[str, Any]] = {}
        self._ended: dict[str, float] = {}
        self._stale: set[str] | None = None

    def take(self, event: Mapping[str, Any]) -> None:
        """One event of the live file; what makes no sense changes nothing."""
        kind, name = event.get("event"), event.get("id")
        if kind == OPENED:
            # A file begins with the start of every running game. A game that is not among them ended unseen.
            self._stale = {name for name in self._games if name not in self._ended}
            return
        if kind != "start" and self._stale is not None:
            for lost in self._stale:
                self._end(lost, {"reason": "unknown"})
            self._stale = None
        if kind == "table":
            self.show("standings", _standings(event))
        elif not isinstance(name, str) or not ID.fullmatch(name):
            return
        elif kind == "start":
            self._start(name, event)
        elif name in self._games:
            if kind == "ply":
                self._ply(name, event)
            elif kind == "info":
                self._info(name, event)
            elif kind == "end":
                self._end(name, event)

    def show(self, topic: str, document: Mapping[str, Any]) -> None:
        """This is what stands under `topic` from now on."""
        self.documents[topic] = document
        self.changed[topic] = None

    def payload(self, topic: str) -> bytes:
        """What is to be retained there: nothing, where nothing stands."""
        return _encoded(self.documents[topic]) if topic in self.documents else b""

    def tick(self) -> None:
        """Take away the games that ended long ago, or are too many."""
        horizon = self._now() - self._keep
        for name, ended in list(self._ended.items()):
            if ended < horizon or len(self._ended) > ENDED_GAMES:
                self.drop(name)

    def drop(self, name: str) -> None:
        """The game is shown no longer."""
        self._games.pop(name, None)
        self._ended.pop(name, None)
        topic = f"game/{name}/state"
        if self.documents.pop(topic, None) is not None:
            self.changed[topic] = None

    @property
    def games(self) -> tuple[str, ...]:
        """The games that are shown, the ended ones among them."""
        return tuple(self._games)

    def touch_all(self) -> None:
        """Everything that stands counts as changed."""
        self.changed.update(dict.fromkeys(self.documents))

    def end_all(self) -> None:
        """No game is running any more."""
        for name, game in self._games.items():
            if game["state"] == "running":
                self._end(name, {"reason": "interrupted"})

    def thoughts(self) -> list[tuple[str, bytes]]:
        """The reports since the last call, of each game and side the newest."""
        newest, self._thinking = self._thinking, {}
        return [(topic, _encoded(report)) for topic, report in newest.items()]

    def _start(self, name: str, event: Mapping[str, Any]) -> None:
        moves = _texts(event.get("moves"))
        if self._stale is not None:
            self._stale.discard(name)
        known = self._games.get(name)
        if (
            known is not None
            and known["state"] == "running"
            and moves[: len(known["moves"])] == known["moves"]
        ):
            # The same game at the beginning of a new file.
            self._pad(known, moves)
        else:
            self._ended.pop(name, None)
            self._games[name] = {
                "id": name,
                "state": "running",
                **{key: event.get(key) for key in ("variant", "attackers", "defenders", "start")},
                "opening": _texts(event.get("opening")),
                "fen": event.get("fen"),
                "moves": [],
                "captures": [],
                **{fact: [] for fact in PLY_FACTS},
                "started": event.get("at"),
            }
            self._pad(self._games[name], moves)
        self._show_game(name)

    def _pad(self, game: dict[str, Any], moves: list[str]) -> None:
        """Plies that were played without our seeing them: their moves are known, or not (`?`), and nothing else."""
        for move in moves[len(game["moves"]) :]:
            game["moves"].append(move)
            for fact in ("captures", *PLY_FACTS):
                game[fact].append(None)

    def _ply(self, name: str, event: Mapping[str, Any]) -> None:
        game = self._games[name]
        move, number = event.get("move"), event.get("number")
        if game["state"] != "running" or not isinstance(move, str) or not isinstance(number, int):
            return
        index = number - len(game["opening"]) - 1
        if not 0 <= index < PLIES:
            return
        # A ply may be missing, and one may be in the start at the head of a new file and come again by itself.
        self._pad(game, [*game["moves"], *[UNSEEN] * (index + 1 - len(game["moves"]))])
        game["moves"][index] = move
        game["captures"][index] = _texts(event.get("captures"))
        for fact in PLY_FACTS:
            game[fact][index] = event.get(fact)
        self._show_game(name)

    def _info(self, name: str, event: Mapping[str, Any]) -> None:
        side = event.get("side")
        if side in ("a", "d"):
            facts = {key: fact for key, fact in event.items() if key not in ("event", "slot")}
            self._thinking[f"game/{name}/info/{side}"] = facts

    def _end(self, name: str, event: Mapping[str, Any]) -> None:
        game = self._games[name]
        ended = event.get("at")
        if not isinstance(ended, (int, float)):
            ended = self._now()
        game.update({key: event.get(key) for key in ("winner", "reason", "fault", "captured")})
        game["state"], game["ended"] = "ended", ended
        self._ended[name] = ended
        for side in "ad":
            self._thinking.pop(f"game/{name}/info/{side}", None)
        self._show_game(name)

    def _show_game(self, name: str) -> None:
        self.show(f"game/{name}/state", self._games[name])


def _encoded(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _standings(event: Mapping[str, Any]) -> dict[str, Any]:
    """A table of the live file under the keys of `summary.json`."""
    engines = event.get("engines")
    lines = [line for line in engines if isinstance(line, dict)] if isinstance(engines, list) else []
    return {
        "at": event.get("at"),
        "facts": {"pairs": event.get("planned")},
        "state": {"ending": "running"},
        **{key: event.get(key) for key in TABLE_FACTS},
        "test": None if event.get("llr") is None else {"llr": event["llr"]},
        "engines": [
            {
                "rank": line.get("rank"),
                "name": line.get("name"),
                "record": {key: line.get(key) for key in ("wins", "draws", "losses")},
                "strength": {key: line.get(key) for key in ("elo", "elo_error")},
            }
            for line in lines
        ],
    }


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
