"""The level `auto` of pages: the rating of `hnefi play`, or one that the browser keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hnefi.gui_adapter.web.frames import FrameError
from hnefi.gui_adapter.web.levels import Levels
from hnefi.protocol.hosts.sessions.engine_process import RequestError
from hnefi.protocol.hosts.standing import FILE, Ladder


@pytest.fixture(autouse=True)
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "hnefi" / FILE


def asked(levels: Levels, **more: Any) -> dict[str, Any]:
    return levels.take({"t": "level", "id": 1, "game": "tafl", **more})


def test_the_level_is_that_of_the_terminal_and_follows_results(file: Path) -> None:
    levels = Levels(kept=True)
    first = asked(levels)
    assert (first["level"], first["ratings"]) == (Ladder().level("tafl"), None)
    assert "no rating in tafl yet" in first["text"]
    for _ in range(4):
        after = asked(levels, result="won", level=first["level"])
    assert after["level"] > first["level"]
    assert "you won 4 of 4" in after["text"]
    # The terminal goes on from there, and so does the next page.
    assert Ladder().level("tafl") == after["level"] == asked(Levels(kept=True))["level"]
    assert asked(Levels(kept=True), game="hex")["level"] == first["level"]
    assert file.is_file()


def test_a_browser_keeps_its_own_rating_and_sees_no_other(file: Path) -> None:
    Ladder().take("tafl", 9, 1.0)
    before = file.read_bytes()
    one = Levels(kept=False)
    begun = asked(one)
    assert "no rating" in begun["text"]
    lost = asked(one, result="lost", level=1)
    again = asked(Levels(kept=False), ratings=lost["ratings"])
    assert again["level"] == lost["level"]
    assert "no rating" not in again["text"]
    assert file.read_bytes() == before
    for broken in (
        "[]",
        "{",
        '{"format": 1, "games": {"tafl": {"rating": "nan", "deviation": 1}}}',
        "0" * 4000,
    ):
        assert asked(Levels(kept=False), ratings=broken)["level"] == begun["level"]


@pytest.mark.parametrize(
    "frame",
    [
        {"game": "chess"},
        {"result": "cheated"},
        {"result": "won", "level": 11},
        {"result": "won", "level": -1},
        {"result": "won", "level": "3"},
        {"ratings": "0" * 5000},
        {"game": ["tafl"]},
    ],
)
def test_nonsense_is_refused(frame: dict[str, Any]) -> None:
    with pytest.raises(FrameError):
        asked(Levels(kept=False), **frame)


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("nonsense")
    with pytest.raises(RequestError, match="expected the ratings"):
        asked(Levels(kept=True))
    assert file.read_text() == "nonsense"
