"""`hnefi mqtt watch URL [RUN]`: shows a published tournament in a terminal.

One subscription delivers everything. In a terminal the screen shows standings, running games and one board, and is
redrawn at most five times a second; elsewhere every ply and every result is a line. All text is untrusted and is
stripped of control characters before it is shown.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TextIO, TypeGuard

from hnefi.engine import squares
from hnefi.engine.games import find
from hnefi.engine.games.base_variant import VariantError
from hnefi.engine.games.tafl.diagram import diagram
from hnefi.engine.games.tafl.fen import SetupError, parse_fen
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.moves_text import MoveTextError, parse_move
from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.client import Access, Link, LinkError, Message
from hnefi.protocol.hosts.broker.flags import access, add_connection
from hnefi.protocol.hosts.exit_codes import FAULTS, INTERRUPTED
from hnefi.protocol.hosts.shutdown import Asked
from hnefi.protocol.hosts.text_table import clip, safe

from .command import parser

REDRAW = 0.2
LISTING = 1.0
"""Seconds after the subscription by which all retained messages have arrived."""
GAMES = 4096
"""Maximum number of games to keep, because a stranger may publish any number."""
ROWS = 12
"""Rows of a table to show."""
BOARD_PLIES = 10_000
"""The longest game in plies whose board is drawn."""
HOME, CLEAR_LINE, CLEAR_REST = "\x1b[H", "\x1b[K", "\x1b[J"
OTHER_SCREEN, OWN_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


class Show:
    """What the messages say about one run."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.meta: dict[str, Any] = {}
        self.standings: dict[str, Any] = {}
        self.games: dict[str, dict[str, Any]] = {}
        self.thinking: dict[tuple[str, str], dict[str, Any]] = {}
        self.news: list[str] = []
        """Lines about new events, until somebody takes them."""

    def take(self, topic: str, payload: bytes) -> None:
        """Handle a message below the run's topic; anything but a JSON object counts as empty."""
        document = _document(payload)
        match topic.split("/"):
            case ["meta"]:
                self._meta(document)
            case ["standings"]:
                self.standings = document
            case ["game", game, "state"] if topics.is_level(game):
                self._game(game, document)
            case ["game", game, "info", ("a" | "d") as side] if game in self.games:
                self.thinking[game, side] = document

    def _meta(self, document: dict[str, Any]) -> None:
        before, self.meta = (self.meta.get("state"), self.meta.get("publisher")), document
        now = (document.get("state"), document.get("publisher"))
        if now != before:
            self.news.append(f"{self.title()}: {self.condition()}")

    def _game(self, name: str, document: dict[str, Any]) -> None:
        if not document:
            self.games.pop(name, None)
            self.thinking = {key: report for key, report in self.thinking.items() if key[0] != name}
            return
        known = self.games.get(name)
        if known is None and len(self.games) >= GAMES:
            return
        self.games[name] = document
        players = f"{text(document.get('attackers'))} (a) – {text(document.get('defenders'))} (d)"
        moves = _list(document.get("moves"))
        ended = document.get("state") == "ended"
        if known is None and not ended:
            self.news.append(
                f"game {name} {players}: {text(document.get('variant'))}, {len(moves)} plies so far"
            )
        elif known is not None and len(moves) > len(_list(known.get("moves"))):
            self.news.append(f"game {name} {last_ply(document)}")
        if ended and (known is None or known.get("state") != "ended"):
            self.news.append(f"game {name} {players}: {result(document)}")

    def title(self) -> str:
        """The name of the run and its kind."""
        return f"{text(self.meta.get('name')) or self.run}, {text(self.meta.get('format'))}".rstrip(", ")

    def condition(self) -> str:
        """The state of the run in words."""
        state = text(self.meta.get("state")) or "unknown"
        if self.meta.get("publisher") == "offline" and state == "unknown":
            return "it is no longer published"
        return state

    @property
    def over(self) -> bool:
        """Whether the run is over."""
        return self.meta.get("publisher") == "offline" and self.meta.get("state") not in (None, "unknown")

    def screen(self, columns: int, rows: int, chosen: str = "") -> list[str]:
        """What fits of title, standings, the board of `chosen` or of the game that moved last, and running games."""
        lines = [f"{self.title()} · {self.condition()} · {_progress(self.standings)}".rstrip(" ·"), ""]
        lines += self._table()
        running = [name for name, game in self.games.items() if game.get("state") == "running"]
        shown = chosen if chosen in self.games else _newest(self.games, running)
        if shown:
            lines += ["", *self._one(shown)]
        others = [name for name in running if name != shown]
        if others:
            lines.append("")
        for name in others:
            game = self.games[name]
            lines.append(f"{name:<8}{_players(game)}  {last_ply(game)}")
        if not self.games:
            lines += ["", "no game is shown now" if self.meta else "this run is not shown: waiting for it"]
        return [clip(line, columns - 1) for line in lines[: rows - 1]]

    def _table(self) -> list[str]:
        engines = [line for line in _list(self.standings.get("engines")) if isinstance(line, dict)]
        lines = [f"{'#':>2}  {'engine':<24}{'+':>6}{'=':>6}{'-':>6}{'Elo':>14}"] if engines else []
        for line in engines[:ROWS]:
            record, strength = _dict(line.get("record")), _dict(line.get("strength"))
            counts = "".join(f"{text(record.get(key)):>6}" for key in ("wins", "draws", "losses"))
            elo, error = strength.get("elo"), strength.get("elo_error")
            rating = f"{elo:+.0f} ±{error:.0f}" if _number(elo) and _number(error) else "–"
            lines.append(
                f"{text(line.get('rank')):>2}  {clip(text(line.get('name')), 23):<24}{counts}{rating:>14}"
            )
        if len(engines) > ROWS:
            lines.append(f"    … and {len(engines) - ROWS} more")
        return lines

    def _one(self, name: str) -> list[str]:
        """A game with its board and both sides' thinking."""
        game = self.games[name]
        lines = [f"game {name}  {text(game.get('variant'))}  {_players(game)}"]
        lines += board(game)
        lines.append(result(game) if game.get("state") == "ended" else last_ply(game))
        for side in "ad":
            report = self.thinking.get((name, side))
            if report and game.get("state") == "running":
                line = " ".join(text(move) for move in _list(report.get("pv"))[:6])
                lines.append(f"{side} thinks {_score(report)} depth {text(report.get('depth'))}  {line}")
        return lines


def text(value: object) -> str:
    """Any value as a short line without control characters."""
    if value is None:
        return ""
    return safe((value if isinstance(value, str) else str(value))[:100])


def last_ply(game: Mapping[str, Any]) -> str:
    """`12. a4a2 xb3  +0.31 depth 8  clock 0:58`: the last ply, with the mover's score and clock."""
    moves = _list(game.get("moves"))
    if not moves:
        return "has not begun"
    captures = _last(game, "captures")
    taken = "".join(f"x{text(square)}" for square in _list(captures)[:8])
    parts = [f"{len(_list(game.get('opening'))) + len(moves)}. {text(moves[-1])}{taken}"]
    known = {key: _last(game, key) for key in ("cp", "mate", "depth")}
    if any(_number(value) for value in known.values()):
        parts.append(f"{_score(known)} depth {text(known['depth'])}")
    clock = _last(game, "clock")
    if _number(clock):
        seconds = max(0, int(clock // 1000))
        parts.append(f"clock {seconds // 60}:{seconds % 60:02}")
    return "  ".join(parts)


def result(game: Mapping[str, Any]) -> str:
    """`1-0, king captured, ply 41`."""
    winner = game.get("winner")
    score = {"a": "1-0", "d": "0-1", "draw": "½-½"}.get(
        winner if isinstance(winner, str) else "", "no result"
    )
    plies = len(_list(game.get("opening"))) + len(_list(game.get("moves")))
    return f"{score}, {text(game.get('reason')).replace('_', ' ')}, ply {plies}"


def _players(game: Mapping[str, Any]) -> str:
    return f"{clip(text(game.get('attackers')), 20)} (a) – {clip(text(game.get('defenders')), 20)} (d)"


def _progress(standings: Mapping[str, Any]) -> str:
    pairs, planned = standings.get("pairs"), _dict(standings.get("facts")).get("pairs")
    if not _number(pairs):
        return ""
    faults = standings.get("faults")
    return f"pairs {pairs}/{text(planned)}" + (f" · faults {text(faults)}" if faults else "")


def _score(known: Mapping[str, Any]) -> str:
    mate, cp = known.get("mate"), known.get("cp")
    if _number(mate):
        return f"win in {mate}" if mate > 0 else f"loss in {-mate}"
    return f"{cp / 100:+.2f}" if _number(cp) else "–"


def _newest(games: Mapping[str, Mapping[str, Any]], running: list[str]) -> str:
    """The running game that began last, or the last of all games if none is running."""
    return max(running or games, key=lambda name: _begin(games[name]), default="")


def _begin(game: Mapping[str, Any]) -> float:
    started = game.get("started")
    return float(started) if _number(started) else 0.0


def _last(game: Mapping[str, Any], key: str) -> Any:
    values = _list(game.get(key))
    return values[-1] if values else None


def _number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _document(payload: bytes) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        return _dict(json.loads(payload))
    return {}


# Watching


async def watch(asked: Asked, way: Access, run: str, chosen: str, plain: bool, out: TextIO) -> int:
    """Watch until the run is over, or until interrupted."""
    link = Link(way, "watch")
    await asked.unless(link.open())
    if asked.is_set():
        return INTERRUPTED
    async with link:
        runs = await asked.unless(_runs(link, run))
        if runs is None:
            return INTERRUPTED
        if not run:
            live = [name for name, meta in runs.items() if meta.get("publisher") == "online"]
            if len(live) != 1:
                return _list_runs(runs, out)
            run = live[0]
        elif run not in runs:
            print(f"hnefi mqtt watch: {_missing(run, runs)}", file=sys.stderr)
        show = Show(run)
        prefix = f"{topics.ROOT}/arena/{run}/"
        await link.subscribe(
            f"{prefix}#", lambda message: show.take(message.topic[len(prefix) :], message.payload)
        )
        waiting, ended = asyncio.create_task(asked.wait()), asyncio.create_task(link.closed())
        screen = not plain and out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        try:
            if screen:
                out.write(OTHER_SCREEN)
            last = [""]
            while not show.over:
                await asyncio.wait([waiting, ended], timeout=REDRAW, return_when=asyncio.FIRST_COMPLETED)
                if waiting.done() or ended.done():
                    break
                if screen:
                    lines = _drawn(show, chosen, link.up)
                    if lines != last:
                        last = lines
                        _put(out, HOME + "".join(f"{line}{CLEAR_LINE}\n" for line in lines) + CLEAR_REST)
                else:
                    _tell(show, out)
        finally:
            if screen:
                _put(out, OWN_SCREEN)
            for task in (waiting, ended):
                task.cancel()
        if screen:
            # The last screen stays on the terminal.
            _put(out, "\n".join(show.screen(*shutil.get_terminal_size(), chosen)) + "\n")
        else:
            _tell(show, out)
        if ended.done() and not ended.cancelled() and (error := ended.result()) is not None:
            raise error
        return INTERRUPTED if asked.is_set() else 0


def _drawn(show: Show, chosen: str, up: bool) -> list[str]:
    columns, rows = shutil.get_terminal_size()
    show.news.clear()
    lines = show.screen(columns, rows, chosen)
    return lines if up else ["(connection lost; trying again)", *lines[1:]]


def _tell(show: Show, out: TextIO) -> None:
    lines, show.news = show.news, []
    _put(out, "".join(f"{line}\n" for line in lines))


def _put(out: TextIO, said: str) -> None:
    if said:
        encoding = out.encoding or "utf-8"
        out.write(said.encode(encoding, "replace").decode(encoding))
        out.flush()


async def _runs(link: Link, wanted: str) -> dict[str, dict[str, Any]]:
    """The runs at the broker, by name; only some of them if `wanted` is among them."""
    found: dict[str, dict[str, Any]] = {}
    there = asyncio.Event()

    def take(message: Message) -> None:
        run = message.topic.split("/")[3]
        if message.payload and len(found) < GAMES and topics.is_level(run):
            found[run] = _document(message.payload)
            if run == wanted:
                there.set()

    everything = topics.arena_meta(topics.ANY)
    await link.subscribe(everything, take)
    with suppress(TimeoutError):
        async with asyncio.timeout(LISTING):
            await there.wait()
    await link.unsubscribe(everything)
    return dict(sorted(found.items()))


def _missing(run: str, runs: Mapping[str, object]) -> str:
    """That `run` is not shown, and which runs are."""
    if not runs:
        return f"no run is shown at this broker: waiting for {run} (hnefi mqtt arena shows one)"
    shown = [*runs][:ROWS] + ["…"] * (len(runs) > ROWS)
    return f"no run {run} is shown at this broker, only {', '.join(shown)}: waiting for it"


def _list_runs(runs: Mapping[str, Mapping[str, Any]], out: TextIO) -> int:
    if not runs:
        print(
            "hnefi mqtt watch: no run is shown at this broker (hnefi mqtt arena shows one)", file=sys.stderr
        )
        return FAULTS
    for run, meta in runs.items():
        show = Show(run)
        show.meta = dict(meta)
        _put(out, f"{run:<34}{show.title()}: {show.condition()}\n")
    return 0


def main(argv: list[str]) -> int:
    """`hnefi mqtt watch`."""
    options = parser(
        "watch",
        "Shows an arena run that is published with `hnefi mqtt arena`: standings, games and one board. Without RUN,\n"
        "shows the only run in progress, or lists the runs.",
        ["mqtt://127.0.0.1", "mqtts://broker.example spring-cup --user alice --password-file alice.password"],
    )
    options.add_argument("url", metavar="URL", help="the broker")
    options.add_argument("run", metavar="RUN", nargs="?", default="", help="the run's name in the topics")
    options.add_argument("--game", metavar="ID", default="", help="show this game's board, such as 17.2")
    options.add_argument("--plain", action="store_true", help="lines instead of a screen, even in a terminal")
    add_connection(options)
    arguments = options.parse_args(argv)
    way = access(options, arguments, arguments.url)
    if arguments.run and not topics.is_level(arguments.run):
        options.error(f"run {shorten(arguments.run)}: expected 1 to 32 of a-z, 0-9, '.' and '-'")
    try:
        return Asked().run(
            lambda asked: watch(asked, way, arguments.run, arguments.game, arguments.plain, sys.stdout)
        )
    except LinkError as error:
        print(f"hnefi mqtt watch: {error}", file=sys.stderr)
        return FAULTS


def board(game: Mapping[str, Any]) -> list[str]:
    """The rows of the current board; empty if it is unknown, because the game is not tafl or a ply is missing.

    It is drawn from the start, moves and captures of a published game, without applying any rules.
    """
    fen, name, moves, captures = (game.get(key) for key in ("fen", "variant", "moves", "captures"))
    if not (isinstance(fen, str) and isinstance(name, str) and isinstance(moves, list)):
        return []
    taken = captures if isinstance(captures, list) else []
    if len(taken) != len(moves) or len(moves) > BOARD_PLIES:
        return []
    with suppress(VariantError, SetupError, MoveTextError, ValueError, KeyError):
        variant = find(name[:64])
        if not isinstance(variant, Variant):
            return []
        size = variant.rules.size
        pieces = dict(parse_fen(fen, size).pieces)
        for move, gone in zip(moves, taken, strict=True):
            if not (isinstance(move, str) and isinstance(gone, list)):
                return []
            origin, target, _ = parse_move(move, size)
            pieces[target] = pieces.pop(origin)
            for square in gone:
                pieces.pop(squares.parse(str(square)[:8], size), None)
        return diagram(variant.rules, pieces).splitlines()
    return []
