"""What an engine was told, so that another process can be brought to the same point."""

from __future__ import annotations

from collections.abc import Sequence

PLAYS_LIMIT = 4_096


class Memory:
    """The lines that make up an engine's settings and position, of bounded size."""

    def __init__(self, settings: Sequence[tuple[str, str]]) -> None:
        """`settings` are the options set before the first line, by name; `variant` stands for the command."""
        self._settings: dict[str, str] = {}
        for name, line in settings:
            self._settings[name] = line
        self._position = ""
        self._plays: list[str] = []
        self.complete = True
        """Whether `lines` lead to the same point; a game of thousands of single moves is not kept whole."""

    def note(self, words: Sequence[str], line: str) -> None:
        """The engine was sent `line`; `words` begin with its command."""
        match words[0] if words else "":
            case "uti" | "uci" | "ugi":
                self._set("greeting", line)
            case "variant" | "rules" if len(words) > 1:
                self._set("game", line)
                self._forget()
            case "setoption" if len(words) > 2:
                name = words[2].casefold()
                if name in ("variant", "uci_variant", "rules"):
                    name = "game"
                    self._forget()
                self._set(name, line)
            case "utinewgame" | "ucinewgame" | "uginewgame":
                self._forget()
            case "position":
                self._forget()
                self._position = line
            case "play" | "undo":
                self._plays.append(line)
                if len(self._plays) > PLAYS_LIMIT:
                    self._plays.clear()
                    self.complete = False

    def lines(self) -> list[str]:
        """What brings a fresh engine to where this one was."""
        settings = list(self._settings.values())
        return [*settings, *([self._position] if self._position else []), *self._plays]

    def _set(self, name: str, line: str) -> None:
        # The order in which things were set may matter: the last stands last.
        self._settings.pop(name, None)
        if len(self._settings) < 256:
            self._settings[name] = line

    def _forget(self) -> None:
        self._position = ""
        self._plays.clear()
        self.complete = True
