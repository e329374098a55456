"""The pieces of a record in our own format, `*.tafl`: tags, comments, variations and words, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from .record import TEXT_LIMIT
from .text import at, shown

_WRITTEN_LIMIT: Final = 12 * TEXT_LIMIT
_SPACE: Final = re.compile(r"\s*+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TAG: Final = re.compile(r'\[\s*+([^\s"\[\]]++)\s++"')
_TAG_TEXT: Final = re.compile(r'(?:[^\\"]++|\\.)*+')
_TAG_END: Final = re.compile(r'"\s*+\]')
_COMMENT_TEXT: Final = re.compile(r"(?:[^\\}]++|\\.)*+")
_WORD: Final = re.compile(r'[^\s(){}\[\]"]++')
_OPENERS: Final = {"(": "open", ")": "close", "{": "comment", "[": "tag"}


class Token(NamedTuple):
    """A piece of a record: `tag` with its name and its text as written, `comment` with its text, `open` and `close`
    of a variation, or a `word`; where it begins."""

    kind: str
    text: str
    line: int
    column: int
    name: str = ""


def tokens(numbered: Iterable[tuple[int, str]], name: str) -> Iterator[Token]:
    """The text in pieces. Text between quotes or braces may continue on the following lines."""
    source = iter(numbered)
    for number, text in source:
        _refuse_controls(text, number, name)
        pos = _end(_SPACE, text, 0)
        while pos < len(text):
            kind = _OPENERS.get(text[pos], "word")
            line, column, tag = number, pos + 1, ""
            match kind:
                case "word":
                    word = _WORD.match(text, pos)
                    if word is None:
                        raise at(
                            name, line, f"{shown(text[pos:])}: expected a tag, a move or a comment", column
                        )
                    found, pos = word[0], word.end()
                case "open" | "close":
                    found, pos = text[pos], pos + 1
                case "tag":
                    opening = _TAG.match(text, pos)
                    if opening is None:
                        raise at(
                            name, line, f'{shown(text[pos:])}: expected a tag such as [Name "text"]', column
                        )
                    tag = opening[1]
                    begun = _Quoted(_TAG_TEXT, f"the tag {shown(tag)}: expected a quote that closes its text")
                    found, number, text, pos = begun.read(source, name, number, text, opening.end())
                    closing = _TAG_END.match(text, pos)
                    if closing is None:
                        raise at(name, number, f'the tag {shown(tag)}: expected "] after its text', pos + 1)
                    pos = closing.end()
                case _:
                    begun = _Quoted(_COMMENT_TEXT, "a comment begins here: expected } at its end", free=True)
                    found, number, text, pos = begun.read(source, name, number, text, pos + 1)
                    pos += 1
            yield Token(kind, found, line, column, tag)
            pos = _end(_SPACE, text, pos)


def _end(pattern: re.Pattern[str], text: str, pos: int) -> int:
    match = pattern.match(text, pos)
    return pos if match is None else match.end()


def _refuse_controls(text: str, line: int, name: str) -> None:
    control = _CONTROL.search(text)
    if control is not None:
        raise at(name, line, f"a character U+{ord(control[0]):04X}: expected text", control.start() + 1)


class _Quoted(NamedTuple):
    """A text up to its closing character; `free` text may have line feeds, other text only escaped ones."""

    pattern: re.Pattern[str]
    missing: str
    free: bool = False

    def read(
        self, source: Iterator[tuple[int, str]], name: str, line: int, text: str, pos: int
    ) -> tuple[str, int, str, int]:
        """The text from `pos` on as written; the line, its text and the position of the closing character."""
        parts: list[str] = []
        begin = line, pos
        length = 0
        while True:
            end = _end(self.pattern, text, pos)
            parts.append(text[pos:end])
            length += end - pos + 1
            if end < len(text) and text[end] != "\\":
                return "\n".join(parts), line, text, end
            joined = end < len(text)  # only a backslash at the end of a line stops the pattern there
            following = next(source, None) if joined or self.free else None
            if following is None:
                raise at(name, begin[0], self.missing, begin[1])
            if length > _WRITTEN_LIMIT:
                raise at(
                    name,
                    begin[0],
                    f"text begins here: expected at most {_WRITTEN_LIMIT} characters",
                    begin[1],
                )
            if joined:
                parts[-1] += "\\"
            line, text = following
            _refuse_controls(text, line, name)
            pos = 0
