"""Runs of the arena for viewers: running games, standings, every finished game, and charts.

Folders are only read. A name from a page is looked up among the names that were found, and never becomes part of a
path.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hnefi.engine.regular import open_regular, read_regular
from hnefi.protocol.hosts.run_folder import CONFIG, LIVE, Folder, NoRun, describe, table
from hnefi.protocol.hosts.run_state import Picture
from hnefi.protocol.hosts.sessions.engine_process import RequestError
from hnefi.protocol.hosts.tail import Tail

from .outbox import Outbox

LOG = logging.getLogger("hnefi.web")

GAMES: Final = "games.jsonl"
PAUSE: Final = 0.3
"""Seconds between two reads of a live file."""
LOOK: Final = 2.0
"""Seconds between two reads of a run's other files."""
RUNS_LIMIT: Final = 200
"""Maximum runs offered per folder, newest first."""
KEPT_ENDED: Final = 20.0
"""Seconds for which a finished game stays among the running ones."""
LINE_LIMIT: Final = 4 << 20
"""Maximum bytes of a line with a game."""
CHUNK: Final = 8 << 20
PAGE: Final = 100
"""Finished games per page of the list."""
CHART_LIMIT: Final = 512 * 1024
CHARTS_LIMIT: Final = 200
SHOWN: Final = (
    *("id", "state", "variant", "attackers", "defenders", "start", "opening", "fen", "moves", "captures"),
    *("cp", "mate", "clock", "winner", "reason"),
)


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished game, and its place in the file."""

    id: str
    variant: str
    engines: tuple[str, str]
    winner: str | None
    reason: str
    plies: int
    place: tuple[int, int]

    def shown(self) -> dict[str, Any]:
        """The game as an entry in a page's list."""
        return {
            "id": self.id,
            "variant": self.variant,
            "engines": self.engines,
            "winner": self.winner,
            "reason": self.reason,
            "plies": self.plies,
        }


class Index:
    """The finished games of a run; each read continues where the last one ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self.games: dict[str, Finished] = {}

    def look(self) -> bool:
        """Read new games, at most about `CHUNK` bytes; returns whether there was anything."""
        try:
            with open_regular(self._path) as file:
                if file.seek(0, 2) < self._at:
                    # The file was replaced or truncated: start over.
                    self._at = 0
                    self.games.clear()
                file.seek(self._at)
                chunk = file.read(CHUNK)
                end = chunk.rfind(b"\n") + 1
                if not end and len(chunk) == CHUNK:
                    chunk += file.read(LINE_LIMIT)
                    end = chunk.rfind(b"\n") + 1 or len(chunk)
        except OSError:
            return False
        at = self._at
        fresh: dict[str, Finished] = {}
        for line in chunk[:end].splitlines(keepends=True):
            with contextlib.suppress(ValueError, RecursionError, KeyError, TypeError, AttributeError):
                game = _finished(json.loads(line), (at, len(line)))
                fresh[game.id] = game
            at += len(line)
        self._at += end
        # In one step, because other threads read meanwhile.
        self.games.update(fresh)
        return bool(end)

    def record(self, name: str) -> dict[str, Any]:
        """A game with its moves; RequestError."""
        game = self.games.get(name)
        if game is None:
            raise RequestError("no_game", "this game is not among the finished ones")
        place, length = game.place
        try:
            with open_regular(self._path) as file:
                file.seek(place)
                found = json.loads(file.read(length))
            opening = found["task"]["opening"]
            plies = found["plies"]
            return {
                **game.shown(),
                "start": opening.get("start"),
                "opening": [str(move) for move in opening.get("moves", [])],
                "moves": [str(ply["move"]) for ply in plies],
                "cp": [ply.get("cp") for ply in plies],
                "mate": [ply.get("mate") for ply in plies],
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise RequestError("no_game", "this game can no longer be read") from None

    def crosstable(self, engines: Sequence[str]) -> list[list[list[int] | None]]:
        """Wins, draws and losses of each engine against each other, None where they have not met."""
        met: dict[tuple[str, str], list[int]] = {}
        for game in list(self.games.values()):
            for side, (one, other) in zip("ad", (game.engines, game.engines[::-1]), strict=True):
                record = met.setdefault((one, other), [0, 0, 0])
                record[1 if game.winner not in ("a", "d") else 0 if game.winner == side else 2] += 1
        return [[None if one == other else met.get((one, other)) for other in engines] for one in engines]


def _finished(line: Mapping[str, Any], place: tuple[int, int]) -> Finished:
    task, names = line["task"], line["names"]
    winner = line.get("winner")
    return Finished(
        f"{int(task['pair'])}.{int(task['game'])}",
        str(task["variant"])[:64],
        (str(names[0])[:64], str(names[1])[:64]),
        winner if winner in ("a", "d") else None,
        str(line.get("reason"))[:32],
        len(line["plies"]) + len(task["opening"].get("moves", [])),
        place,
    )


@dataclass(eq=False)
class Watched:
    """A run with its watchers."""

    name: str
    folder: Folder
    meta: Mapping[str, Any]
    watchers: set[Outbox] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.picture = Picture(keep=KEPT_ENDED)
        self.index = Index(self.folder.path / GAMES)
        self._tail = Tail(self.folder.path / LIVE)
        self._standings: Mapping[str, Any] | None = None
        self._ending = ""
        self._table: dict[str, Any] = {}
        self._shown: dict[str, Any] = {}

    async def follow(self) -> None:
        """Keep the watchers up to date until cancelled."""
        looked = -LOOK
        try:
            while True:
                now = asyncio.get_running_loop().time()
                more = self._read()
                if now - looked >= LOOK:
                    looked = now
                    await asyncio.to_thread(self._look)
                    if self._ending:
                        self.picture.end_all()
                    if self._table != self._shown:
                        self._shown = self._table
                        self._tell(self._table, "table")
                self.picture.tick()
                for topic in list(self.picture.changed):
                    self.picture.changed.pop(topic)
                    if topic.startswith("game/"):
                        self._tell(self._game(topic), topic)
                for report in self.picture.thoughts():
                    self._tell({"info": json.loads(report[1])}, report[0])
                await asyncio.sleep(0 if more else PAUSE)
        finally:
            self._tail.close()

    def tell_all(self, box: Outbox) -> None:
        """Send everything known to a new watcher."""
        if self._table:
            box.put({"t": "run", "s": self.key, **self._table}, (self.key, "table"))
        for topic in self.picture.documents:
            if topic.startswith("game/"):
                box.put({"t": "run", "s": self.key, **self._game(topic)}, (self.key, topic))

    @property
    def key(self) -> str:
        """The name of this run in frames."""
        return f"run {self.name}"

    def _read(self) -> bool:
        events = self._tail.read()
        for event in events:
            self.picture.take(event)
        return bool(events)

    def _look(self) -> None:
        while self.index.look():
            pass
        summary = self.folder.summary()
        self._ending = ""
        if summary is not None:
            self._ending = str(table(summary, "state").get("ending") or "ended")
            self._standings = summary
        elif self.folder.abandoned():
            self._ending = "abandoned"
        engines = [str(engine.get("name")) for engine in self.meta["engines"]]
        standings = self._standings or self.picture.documents.get("standings") or {}
        rows = [row for row in standings.get("engines") or [] if isinstance(row, dict)]
        ranked = [str(row.get("name")) for row in rows]
        ranked += [name for name in engines if name not in ranked]
        self._table = {
            "state": self._ending or "running",
            "games": len(self.index.games),
            "standings": [_standing(row) for row in rows],
            "engines": ranked,
            "cross": self.index.crosstable(ranked),
        }

    def _game(self, topic: str) -> dict[str, Any]:
        document = self.picture.documents.get(topic)
        if document is None:
            return {"gone": topic.split("/")[1]}
        return {"game": {key: document.get(key) for key in SHOWN}}

    def _tell(self, frame: Mapping[str, Any], what: str) -> None:
        for box in list(self.watchers):
            box.put({"t": "run", "s": self.key, **frame}, (self.key, what))


def _standing(row: Mapping[str, Any]) -> dict[str, Any]:
    record, strength = table(row, "record"), table(row, "strength")
    return {
        "name": str(row.get("name")),
        **{key: record.get(key) for key in ("wins", "draws", "losses")},
        **{key: strength.get(key) for key in ("elo", "elo_error")},
    }


class Runs:
    """The folders of a server: runs, and folders with runs or charts in them."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = [*folders]
        self._watched: dict[str, Watched] = {}
        self._following: dict[str, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._watched)

    def add(self, folder: Path) -> None:
        """Add a folder."""
        if folder not in self._folders:
            self._folders.append(folder)

    def found(self) -> dict[str, Folder]:
        """The existing runs by name, newest first."""
        runs: dict[str, Folder] = {}
        for folder in self._folders:
            for path in _runs_of(folder):
                name, number = path.name, 1
                while name in runs:
                    number += 1
                    name = f"{path.name} ({number})"
                runs[name] = Folder(path)
        return runs

    def listed(self) -> list[dict[str, Any]]:
        """All runs, each with the data for viewers."""
        listed = []
        for name, folder in self.found().items():
            with contextlib.suppress(NoRun):
                about = describe(folder.config(), folder.path.name, name)
                summary = folder.summary() or {}
                ending = table(summary, "state").get("ending")
                state = str(ending) if ending else "abandoned" if folder.abandoned() else "running"
                listed.append({**about, "state": state, "games": summary.get("games")})
        return listed

    async def watch(self, name: str, box: Outbox) -> Watched:
        """Let the page watch a run; `tell_all` first sends what is known. RequestError."""
        watched = self._watched.get(name)
        if watched is None:
            folder = (await asyncio.to_thread(self.found)).get(name)
            try:
                if folder is None:
                    raise RequestError("no_run", "this run does not exist, or no longer")
                meta = describe(folder.config(), folder.path.name, name)
            except NoRun as error:
                LOG.info("%s", error)
                raise RequestError("no_run", "this run cannot be read") from None
            watched = self._watched.setdefault(name, Watched(name, folder, meta))
            if name not in self._following:
                self._following[name] = asyncio.create_task(watched.follow(), name=f"run {name}")
        watched.watchers.add(box)
        return watched

    def leave(self, box: Outbox, names: Iterable[str]) -> None:
        """Stop watching these runs; a run without watchers is no longer followed."""
        for name in names:
            watched = self._watched.get(name)
            if watched is None:
                continue
            watched.watchers.discard(box)
            if not watched.watchers:
                del self._watched[name]
                if (following := self._following.pop(name, None)) is not None:
                    following.cancel()

    def games(self, name: str, box: Outbox, first: int, engine: str) -> dict[str, Any]:
        """Finished games from number `first`, newest first, of one engine or (if empty) of all."""
        games = list(self._own(name, box).index.games.values())
        of_it = [game for game in games if not engine or engine in game.engines]
        of_it.reverse()
        return {"total": len(of_it), "games": [game.shown() for game in of_it[first : first + PAGE]]}

    async def game(self, name: str, box: Outbox, game: str) -> dict[str, Any]:
        """One finished game with its moves. RequestError."""
        return await asyncio.to_thread(self._own(name, box).index.record, game)

    def _own(self, name: str, box: Outbox) -> Watched:
        watched = self._watched.get(name)
        if watched is None or box not in watched.watchers:
            raise RequestError("no_run", "expected watch first")
        return watched

    # Charts

    def charts(self) -> dict[str, Path]:
        """The SVG files in the folders, directly below them, and in folders of runs, by name; links that lead outside
        are ignored."""
        found: dict[str, Path] = {}
        for folder in self._folders:
            inside = folder.resolve()
            for pattern in ("*.svg", "*/*.svg", "*/plots/*.svg"):
                for path in sorted(folder.glob(pattern)):
                    if len(found) < CHARTS_LIMIT and path.resolve().is_relative_to(inside):
                        found[str(Path(folder.name) / path.relative_to(folder))] = path
        return found

    def chart(self, name: str) -> str:
        """A chart as SVG, which a page shows as an image and never embeds in itself. RequestError."""
        path = self.charts().get(name)
        try:
            if path is None:
                raise RequestError("no_chart", "this chart does not exist, or no longer")
            data = read_regular(path)
        except OSError as error:
            raise RequestError("no_chart", f"this chart cannot be read: {error.strerror}") from None
        if len(data) > CHART_LIMIT:
            raise RequestError(
                "no_chart", f"this chart has {len(data)} bytes: expected at most {CHART_LIMIT}"
            )
        return data.decode("utf-8", "replace")

    async def close(self) -> None:
        """Stop following all runs."""
        tasks = list(self._following.values())
        self._following.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def _runs_of(folder: Path) -> list[Path]:
    """The folder itself if it is a run, else the runs in it, newest first."""
    if (folder / CONFIG).is_file():
        return [folder]
    aged: list[tuple[float, Path]] = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                aged.append(((path / CONFIG).stat().st_mtime, path))
    return [path for _, path in sorted(aged, reverse=True)[:RUNS_LIMIT]]
