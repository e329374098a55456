"""The words of keeping games, and everything else: files, clipboard, settings, help, leaving."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hnefi.engine.sides import Side
from hnefi.engine.wording import counted, shorten

from .. import clock as clocks
from .. import opponents, saving
from .. import settings as preferences
from ..game import typed_move
from ..opponents import Spec
from ..values import Reply
from . import WordError
from .play import check_players

if TYPE_CHECKING:
    from hnefi.engine.games.base_variant import AnyVariant

    from ..controller import Controller

COPIES = ("fen", "otn", "moves", "record")
_SECONDS = 2.0
_LIMIT = 1 << 20
_Commands = tuple[tuple[str, tuple[str, ...]], ...]
_PUT: _Commands = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("", ("pbcopy",)),
)
_GET: _Commands = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-o")),
    ("", ("pbpaste",)),
)


async def save(c: Controller, rest: str) -> Reply:
    """Save the game as a record."""
    if not rest:
        raise WordError("save: expected a file name, as in `save game.tafl`")
    path = saving.target(rest)

    async def write() -> Reply:
        lost = saving.write(path, c.session.record(), c.find)
        missing = (f"This format does not store: {', '.join(lost)}.",) if lost else ()
        return Reply((f"Saved: {path}", *missing))

    saving.check_format(path)
    if path.exists():
        return c.ask(f"{path} exists. Replace it? (yes or no)", write)
    return await write()


async def load(c: Controller, rest: str) -> Reply:
    """Go on with a recorded game."""
    name, _, last = rest.rpartition(" ")
    number = int(last) if name and last.isascii() and last.isdigit() and len(last) < 10 else None
    if not rest:
        raise WordError("load: expected a file name, as in `load game.tafl`")
    if number == 0:
        raise WordError("load: games of a file count from 1")
    return await open_file(c, Path(name if number is not None else rest).expanduser(), number)


async def open_file(c: Controller, path: Path, number: int | None = None) -> Reply:
    """Take up a game from a file."""
    if not path.suffix and not path.exists():
        path = saving.target(str(path))
    loaded = saving.load(path, number, c.find, c.session.variant)
    return await take_up(c, loaded, f"Loaded: {path}")


async def take_up(c: Controller, loaded: saving.Loaded, said: str) -> Reply:
    """Take up a recorded game, with its players if the record says so."""
    session = c.session
    kept = tuple(side for tag, side in saving.PLAYER_TAGS if loaded.record.tag(tag) is None)
    check_players(c, loaded.variant, loaded.variant.name, kept)
    doubt = await session.take_up(loaded.record, loaded.variant)
    plies = session.game.at.ply
    lines = [f"{said} ({loaded.variant.name}, {counted(plies, 'ply', 'plies')})", *doubt]
    if loaded.more:
        lines.append("The file has more games: `load FILE N` loads the N-th.")
    lines += _players(c, loaded)
    text = loaded.record.tag("Clock")
    if text is not None:
        try:
            session.set_clock(clocks.read(text))
        except ValueError:
            lines.append(f"Its clock is not understood: {shorten(text)}.")
        if session.clock is not None:
            session.clock.reset(session.game.clocks())
    if session.players[session.side].opponent is not None and session.end is None:
        session.paused = True
        lines.append("The engine waits for `go`.")
    session.warm_up()
    session.withdraw()
    await session.move_on()
    return Reply(tuple(lines), show=True)


def _players(c: Controller, loaded: saving.Loaded) -> list[str]:
    """Assign the players that the record names; a command in a file is never run by itself."""
    lines = []
    for tag, letter in saving.PLAYER_TAGS:
        text = loaded.record.tag(tag)
        if text is None:
            continue
        word, _, rest = text.partition(" ")
        spec: Spec | None = None
        try:
            if word == "level":
                spec = opponents.at_level(rest)
            elif word == "player" and not rest.endswith(".toml"):
                spec = opponents.by_name(rest, loaded.variant)
            elif word in ("engine", "player"):
                who = c.session.side_word(letter)
                lines.append(f"The {who} were played by another program: `{text}` starts it again.")
            if spec is not None:
                spec = _as_asked(c, spec, loaded.variant)
        except ValueError as error:
            lines.append(str(error))
            spec = None
        c.session.assign(letter, spec)
        if spec is not None:
            c.session.players.rival = spec
    return lines


def _as_asked(c: Controller, spec: Spec, variant: AnyVariant) -> Spec:
    """A player of ours with the options and the time a move of the one that was chosen before: a record has neither.
    ValueError if the rules do not go with them."""
    asked = c.session.players.rival
    if asked.own:
        spec = replace(spec, options=asked.options, movetime=asked.movetime)
    if reason := opponents.unfit(spec, variant):
        raise ValueError(reason)
    if said := opponents.unmeasured(spec, variant):
        c.session.say(said)
    return spec


async def go_on(c: Controller, _rest: str) -> Reply:
    """Go on with the game that was saved by itself."""
    path = c.files.autosave.unfinished()
    if path is None:
        raise WordError("continue: no unfinished game is saved")
    loaded = saving.load(path, None, c.find, c.session.variant)
    reply = await take_up(c, loaded, "The unfinished game")
    c.files.autosave.adopt(path)
    c.waiting = None
    return reply


async def copy(c: Controller, rest: str) -> Reply:
    """The position or the game as text."""
    form = rest.lower() or "fen"
    if form not in COPIES:
        raise WordError(f"copy {shorten(rest)}: expected one of {', '.join(COPIES)}")
    text = _text(c, form)
    if not text:
        raise WordError("copy: nothing has been played")
    if c.interactive and _to_clipboard(text):
        return Reply((f"Copied: {text.splitlines()[0][:60]}{'…' if len(text) > 60 else ''}",))
    return Reply(tuple(text.rstrip("\n").split("\n")))


def _text(c: Controller, form: str) -> str:
    session = c.session
    if form == "fen":
        return session.facts.fen
    if form == "moves":
        return " ".join(session.game.moves)
    if form == "record":
        return saving.as_text(session.record(), "tafl", c.find)
    from hnefi.engine.games.tafl.fen import parse_fen
    from hnefi.engine.games.tafl.otn import export_rules, format_board
    from hnefi.engine.games.tafl.variant import Variant

    if not isinstance(session.variant, Variant):
        raise WordError(f"copy otn: OTN cannot express {session.variant.game}")
    setup = parse_fen(session.facts.fen)
    return f"{format_board(setup)} {Side.of(session.side).letter} {export_rules(session.variant)[0]}"


async def paste(c: Controller, rest: str) -> Reply:
    """A FEN, moves, or a recorded game."""
    text = rest or _from_clipboard() if c.interactive else rest
    if not text or not text.strip():
        raise WordError("paste: no clipboard can be read here: expected the text after `paste`")
    text = text.strip()
    session = c.session
    moves = [typed_move(word) for word in text.split()]
    if all(moves):
        await session.begin(session.variant, None, tuple(move for move in moves if move is not None))
        return _pasted(c, f"{counted(len(moves), 'ply', 'plies')} from the start of {session.variant.name}.")
    if text[0] in "[{" or "\n" in text:
        return await take_up(c, saving.parse(text, c.find, session.variant), "Pasted")
    fen = text.removeprefix("fen ").strip()
    if "/" not in fen:
        raise WordError(f"{shorten(text)}: expected {saving.PASTED}")
    await session.begin(session.variant, fen)
    return _pasted(c, f"A position of {session.variant.name}.")


def _pasted(c: Controller, said: str) -> Reply:
    if c.session.players[c.session.side].opponent is not None and c.session.end is None:
        c.session.withdraw()
        c.session.paused = True
        said += " The engine waits for `go`."
    return Reply((said,), show=True)


def _to_clipboard(text: str) -> bool:
    """Put a text there; False if there is no clipboard."""
    return _run(_PUT, text.encode("utf-8", "replace")) is not None


def _from_clipboard() -> str | None:
    """The text that lies there, at most a mebibyte of it; None if there is no clipboard."""
    data = _run(_GET, b"")
    return None if data is None else data[:_LIMIT].decode("utf-8", "replace")


def _run(commands: _Commands, data: bytes) -> bytes | None:
    """What the first usable command writes when it is given `data`; None if there is none, or it fails."""
    command = _usable(commands)
    if command is None:
        return None
    # A program that stays to serve the clipboard keeps its output open: only what is asked for is read.
    output = subprocess.PIPE if not data else subprocess.DEVNULL
    try:
        done = subprocess.run(
            command, input=data, stdout=output, stderr=subprocess.DEVNULL, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout or b"") if done.returncode == 0 else None


def _usable(commands: _Commands) -> list[str] | None:
    """The first command that is installed and has a desktop to talk to."""
    for variable, (program, *rest) in commands:
        if (not variable or os.environ.get(variable)) and shutil.which(program):
            return [program, *rest]
    return None


async def variants(c: Controller, _rest: str) -> Reply:
    """All games and rule sets, by the size of their boards."""
    from hnefi.engine.catalogue import listed

    groups: dict[tuple[str, int, int], list[str]] = {}
    for name in listed():
        found = c.find(name)
        groups.setdefault((found.game, found.ranks, found.files), []).append(name)
    order = sorted(groups, key=lambda key: (key[0] != "tafl", key))
    lines = []
    for game, ranks, files in order:
        kind = "" if game == "tafl" else f" {game}"
        lines.append(f"{files} x {ranks}{kind}: {', '.join(groups[game, ranks, files])}")
    return Reply((*lines, "`hex:N` and `hexapawn:RxC` have other sizes, too."))


async def settings(c: Controller, _rest: str) -> Reply:
    """What is preferred, and where it is kept."""
    file = preferences.path()
    where = (
        f"Kept in {file}."
        if file.exists()
        else f"`set` will save settings in {file}, which does not exist yet."
    )
    return Reply((*preferences.describe(c.settings), where))


async def set_value(c: Controller, rest: str) -> Reply:
    """Prefer something else, now and in later games."""
    key, _, value = rest.partition(" ")
    if not key or not value.strip():
        raise WordError(
            "set: expected a setting and its value, as in `set theme light`; `settings` lists them"
        )
    try:
        c.settings = c.settings.with_value(key, value.strip())
    except preferences.SettingsError as error:
        raise WordError(str(error)) from None
    name = key.lower()
    if name == "speed" and c.interactive:
        c.session.speed = c.settings.speed
    kept = ""
    if c.interactive:
        c.keeper.keep(name, c.settings.spelled(name))
        kept = f" Kept in {preferences.path()}."
    return Reply(
        (f"{name} {c.settings.spelled(name)}.{kept}",), show=name in ("theme", "glyphs", "zoom", "colour")
    )


async def leave(_c: Controller, _rest: str) -> Reply:
    """Leave; the controller saves the game, and the front end says so after closing its screen."""
    return Reply(quit=True)


def goodbye(c: Controller) -> tuple[str, ...]:
    """What is said at the end: how to resume an unfinished game."""
    if c.session.unfinished and c.files.saved:
        return ("The game is saved: `hnefi play --continue` resumes it.",)
    return ()
