"""What the Tab key offers: men that can move, their targets with what they would take, and words with what they do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from hnefi import players
from hnefi.engine.catalogue import listed
from hnefi.protocol.hosts import registry

from . import command_table, settings
from .opponents import AUTO, LEVELS
from .values import Move, View

_SIDES = ("a", "d", "both", "none")
_COPIES = ("fen", "otn", "moves", "record")
_PLACES = ("start", "end", "next", "back")


class WordCompleter(Completer):
    """Completes from the view as it is when the key is pressed."""

    def __init__(self, view: Callable[[], View]) -> None:
        self._view = view
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Everything that could stand where the cursor is."""
        text = document.text_before_cursor.lstrip()
        first, blank, rest = text.partition(" ")
        if not blank:
            yield from self._first(first)
            return
        try:
            word = command_table.find(first).name
        except command_table.UnknownWord:
            if len(first) in (2, 3):  # `d1 d3`
                yield from _targets(self._view(), first.lower(), rest.strip(), blank=True)
            return
        if word in ("save", "load"):
            inner = Document(rest, len(rest))
            yield from self._paths.get_completions(inner, complete_event)
            return
        last = rest.rpartition(" ")[2]
        for value in self._behind(word, rest):
            if value.startswith(last.lower()):
                yield Completion(value, -len(last))

    def _first(self, typed: str) -> Iterator[Completion]:
        """The beginning of a move, or of a word."""
        view = self._view()
        yield from moves(view, typed.lower())
        for word in command_table.beginning_with(typed, view.words):
            yield Completion(word, -len(typed), display_meta=command_table.TABLE[word].help)

    def _behind(self, word: str, rest: str) -> Iterable[str]:
        """What may stand behind a word."""
        if word in ("new", "variant"):
            return listed()
        if word == "side":
            return _SIDES
        if word == "level":
            return (*map(str, LEVELS), AUTO, "a", "d")
        if word == "player":
            return (*players.names(), *_registered(), "a", "d")
        if word == "engine":
            return (*_registered(), "a", "d")
        if word == "clock":
            return ("off", "1+0", "3+2", "5+3", "15+10")
        if word == "copy":
            return _COPIES
        if word == "goto":
            return _PLACES
        if word == "variation":
            return ("main", "delete")
        if word == "review":
            return ("next", "back")
        if word == "moves":
            return dict.fromkeys(move.source for move in self._view().legal)
        if word == "help":
            return command_table.TABLE
        if word == "set":
            key, blank, _ = rest.partition(" ")
            known = settings.KEYS.get(key.lower())
            return (
                () if blank and known is None else known.values if blank and known else sorted(settings.KEYS)
            )
        return ()


def moves(view: View, typed: str) -> Iterator[Completion]:
    """Men that can move, where nothing or half a move is typed; their targets, once a man is named."""
    sources: dict[str, list[Move]] = {}
    for move in view.legal:
        sources.setdefault(move.source, []).append(move)
    bare = typed.replace("-", "")
    if typed and any(bare.startswith(source) for source in sources if source):
        yield from _targets(view, "", typed)
        return
    for source, found in sources.items():
        if source and source.startswith(typed):
            placed = len(found) == 1 and found[0].source == found[0].target
            yield Completion(source, -len(typed), display_meta="" if placed else _count(found))
    for move in view.legal:
        if not move.source and move.text.startswith(typed):
            yield Completion(move.text, -len(typed))


def _targets(view: View, source: str, typed: str, *, blank: bool = False) -> Iterator[Completion]:
    """Whole moves that begin with what is typed; with `blank`, the target alone behind `source`."""
    bare = typed.replace("-", "").lower()
    for move in view.legal:
        text = move.target if blank else move.text
        if (not blank or move.source == source) and text.startswith(bare):
            yield Completion(text, -len(typed), display_meta=_takes(move))


def _registered() -> tuple[str, ...]:
    """The user's own engines; none where their file cannot be read, which is said when one is chosen."""
    try:
        return tuple(registry.load())
    except registry.RegistryError:
        return ()


def _takes(move: Move) -> str:
    return f"takes {len(move.captures)}" if move.captures else ""


def _count(found: list[Move]) -> str:
    captures = sum(1 for move in found if move.captures)
    targets = f"{len(found)} {'move' if len(found) == 1 else 'moves'}"
    return f"{targets}, {captures} with captures" if captures else targets
