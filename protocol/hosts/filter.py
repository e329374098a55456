"""What people we do not know may send to an engine: one table for every adapter that serves them.

An adapter asks `Filter.refusal` for each line and passes it on if there is none. `quit` is refused too: the adapter
itself closes the session.
"""

from __future__ import annotations

from dataclasses import dataclass

from hnefi.engine import options
from hnefi.engine.session import SessionError

from .. import format as say
from .. import messages
from ..commands import TABLE

FORBIDDEN_COMMANDS = frozenset({"quit", "debug"})
HEAVY_COMMANDS = frozenset({"bench", "perft", "genfens"})
"""They cannot be stopped; `allow_heavy` opens them."""
FORBIDDEN_OPTIONS = frozenset({"BookFile", "DebugLogFile", "VariantPath"})
NAME_OPTIONS = frozenset({"Evaluator", "Player"})
"""Their values could be paths: only plain names pass."""
_NAME_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_TABLES = frozenset({"", options.SHIPPED_TABLES})
"""What `TablePath` may be: no file that a stranger names is read."""
REASON = "not allowed here"


@dataclass(frozen=True, slots=True)
class Filter:
    """How much strangers may ask for.

    `hash_mib` and `threads` are caps; `text_limit` bounds the lines with rules and records in them, in bytes.
    """

    allow_heavy: bool = False
    hash_mib: int = 256
    threads: int = 1
    text_limit: int = 8 * 1024

    def refusal(self, line: str | bytes) -> str | None:
        """The error line that answers `line` in the engine's place; None if it may pass."""
        data = line.encode("utf-8", "replace") if isinstance(line, str) else line
        try:
            words = messages.command_of(messages.words_of(data), TABLE)
        except UnicodeDecodeError:
            return None  # the engine refuses it, whatever it says
        if not words or self._allowed(words):
            return None
        return say.error_line(" ".join(words), REASON)

    def _allowed(self, words: list[str]) -> bool:
        command = words[1] if words[:2] == ["go", "perft"] else words[0]
        if command in FORBIDDEN_COMMANDS or (command in HEAVY_COMMANDS and not self.allow_heavy):
            return False
        if command == "rules" or words[:2] == ["position", "otn"]:
            return self._short(words)
        return command != "setoption" or self._option_allowed(words)

    def _short(self, words: list[str]) -> bool:
        return len(" ".join(words).encode()) <= self.text_limit

    def _option_allowed(self, words: list[str]) -> bool:
        try:
            message = messages.parse_setoption(words)
        except SessionError:
            return True
        option = options.find(message.name)
        if option is None:
            return True
        value = message.value or ""
        if option.name in FORBIDDEN_OPTIONS:
            return False
        if option.name == "TablePath":
            return value in _TABLES
        if option.name in NAME_OPTIONS:
            return set(value) <= _NAME_SIGNS
        if option.name in ("Hash", "Threads"):
            number = messages.integer(value)
            return number is None or number <= (self.hash_mib if option.name == "Hash" else self.threads)
        return option.name != "Rules" or self._short(words)
