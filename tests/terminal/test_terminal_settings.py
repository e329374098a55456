"""Settings of the terminal: read, changed, written, and never in the way."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from hnefi.gui_adapter.terminal import settings
from hnefi.gui_adapter.terminal.settings import KEYS, Settings, SettingsError

OTHERS = {
    "variant": "brandubh",
    "side": "both",
    "level": "7",
    "clock": "5+3",
    "theme": "light",
    "glyphs": "ascii",
    "colour": "no",
    "zoom": "3",
    "lines": "5",
    "replay": "2.5",
    "speed": "0",
    "mouse": "no",
}
"""A value for every key that is not its default."""


def all_changed() -> Settings:
    made = Settings()
    for key, text in OTHERS.items():
        made = made.with_value(key, text)
    return made


def test_every_field_has_a_key_and_a_sentence() -> None:
    assert {field.name for field in fields(Settings)} == set(KEYS) == set(OTHERS)
    listed = settings.describe(Settings())
    assert [line.split()[0] for line in listed] == list(KEYS)
    assert all(line.endswith(KEYS[line.split()[0]].help) for line in listed)


def test_defaults_and_suggestions_can_be_typed() -> None:
    for key, known in KEYS.items():
        for text in (*known.values, Settings().spelled(key)):
            Settings().with_value(key, text)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "terminal.toml"
    made = all_changed()
    assert all(getattr(made, key) != getattr(Settings(), key) for key in KEYS)
    assert settings.save(made, file) == file
    assert settings.load(file) == (made, [])
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]


def test_one_value_is_kept_beside_the_others(tmp_path: Path) -> None:
    file = settings.save(replace(Settings(), theme="light"), tmp_path / "terminal.toml")
    assert settings.keep({"level": "7"}, file) == file
    assert settings.load(file) == (replace(Settings(), theme="light", level=7), [])
    with pytest.raises(SettingsError):
        settings.keep({"level": "11"}, file)
    assert settings.load(file) == (replace(Settings(), theme="light", level=7), [])


def test_a_name_with_quotes_survives(tmp_path: Path) -> None:
    made = replace(Settings(), variant='my\\"board.toml')
    file = settings.save(made, tmp_path / "terminal.toml")
    assert settings.load(file) == (made, [])


def test_defaults_are_not_written(tmp_path: Path) -> None:
    file = settings.save(Settings(), tmp_path / "terminal.toml")
    assert [line for line in file.read_text().splitlines() if not line.startswith("#")] == []


def test_no_file_is_no_complaint(tmp_path: Path) -> None:
    assert settings.load(tmp_path / "none.toml") == (Settings(), [])


def test_what_is_not_understood_is_left_out_and_said(tmp_path: Path) -> None:
    file = tmp_path / "terminal.toml"
    file.write_text('zoom = 9\nthem = "light"\nlevel = 3\nclock = [1]\nmouse = "\\u001b"\nreplay = 2\n')
    made, complaints = settings.load(file)
    assert made == replace(Settings(), level=3, replay=2.0)
    assert len(complaints) == 4
    assert "zoom '9': expected auto, 1, 2 or 3; ignored" in complaints[0]
    assert "no setting 'them' (did you mean theme?)" in complaints[1]
    assert not any("\x1b" in complaint for complaint in complaints)


@pytest.mark.parametrize(
    "data", [b"zoom = ", b"\xff\xfe", b"zoom = 1\nzoom = 2\n", b"x" * 70_000, b"level = " + b"9" * 5000]
)
def test_a_broken_file_is_left_out(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "terminal.toml"
    file.write_bytes(data)
    made, complaints = settings.load(file)
    assert made == Settings()
    assert len(complaints) == 1
    assert str(file) in complaints[0]


def test_a_folder_in_its_place_is_said(tmp_path: Path) -> None:
    made, complaints = settings.load(tmp_path)
    assert made == Settings()
    assert "ignored" in complaints[0]


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("zoom", "4", "zoom '4': expected auto, 1, 2 or 3"),
        ("zoom", "²", "zoom '²': expected auto, 1, 2 or 3"),
        ("level", "11", "level '11': expected a whole number from 0 to 10"),
        ("side", "white", "side 'white': expected one of a, d, both, none"),
        ("clock", "5", "clock '5': expected off, or minutes and seconds per move such as 5+3"),
        ("clock", "0+0", "clock '0+0': expected off, or minutes and seconds per move such as 5+3"),
        ("mouse", "maybe", "mouse 'maybe': expected yes or no"),
        ("replay", "nan", "replay 'nan': expected seconds from 0.1 to 60"),
        ("variant", "a b", "variant 'a b': expected the name of a variant such as brandubh"),
        ("colr", "yes", "no setting 'colr' (did you mean colour?)"),
    ],
)
def test_wrong_values_are_refused_in_a_sentence(key: str, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings().with_value(key, text)
    assert str(refused.value).startswith(said)


def test_where_the_file_is() -> None:
    assert settings.path({"XDG_CONFIG_HOME": "/cfg", "HOME": "/h"}) == Path("/cfg/hnefi/terminal.toml")
    assert settings.path({"XDG_CONFIG_HOME": "relative", "HOME": "/h"}) == Path(
        "/h/.config/hnefi/terminal.toml"
    )
    assert settings.path({"HOME": "/h"}) == Path("/h/.config/hnefi/terminal.toml")


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "terminal.toml").mkdir()
    with pytest.raises(OSError):
        settings.save(Settings(), tmp_path / "terminal.toml")
    assert [entry.name for entry in tmp_path.iterdir()] == ["terminal.toml"]
