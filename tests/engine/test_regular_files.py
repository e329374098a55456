"""Files that people name: a FIFO or a device is refused at every door, and nobody waits for it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from hnefi import players
from hnefi.engine import durable, games
from hnefi.engine.games.tafl import variant
from hnefi.engine.records import corpus
from hnefi.engine.regular import open_regular, read_regular
from hnefi.gui_adapter.terminal import saving, settings
from hnefi.protocol.hosts import journal
from hnefi.protocol.hosts.puzzles import suite
from hnefi.tools import convert
from hnefi.tools.analyze import store
from hnefi.tools.arena import adjudication, openings, option_reader, run
from hnefi.tools.evolve import folder
from hnefi.tools.ladder import ladder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="FIFOs and devices with names")

# An old reader comes to its end at once, and would be content with that.
DEVICE = Path("/dev/null")


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"all of it")
    (tmp_path / "link").symlink_to(file)
    assert read_regular(tmp_path / "link") == b"all of it"
    with open_regular(str(file)) as stream:
        assert stream.read(3) == b"all"


def test_what_is_none_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, said in (
        (tmp_path / "fifo", "a FIFO, not a regular file"),
        (DEVICE, "a device, not a regular file"),
    ):
        with pytest.raises(OSError, match=said) as error:
            open_regular(path)
        assert (error.value.strerror, error.value.filename) == (said, str(path))
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "nothing")
    with pytest.raises(ValueError, match="null"):
        open_regular("a\0b")


BRANDUBH = games.find("brandubh")
DOORS: dict[str, Callable[[], object]] = {
    "variant": lambda: variant.load(DEVICE),
    "player": lambda: players.read(DEVICE),
    "corpus": lambda: list(corpus._lines(DEVICE)),
    "journal": lambda: list(journal.read(DEVICE)),
    "terminal": lambda: saving.load(DEVICE, None, games.find, BRANDUBH),
    "arena configuration": lambda: option_reader.read_file(DEVICE),
    "arena openings": lambda: list(openings.read_file(DEVICE, BRANDUBH, 4)),
    "arena oracle": lambda: adjudication.load_oracle(str(DEVICE), ("brandubh",)),
    "tactics": lambda: suite.read(DEVICE),
    "analyze": lambda: store.digest(DEVICE),
    "ladder": lambda: ladder.read(DEVICE),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_a_device(door: str) -> None:
    with pytest.raises(
        (ValueError, OSError, option_reader.ConfigError), match="a device, not a regular file"
    ):
        DOORS[door]()


def test_a_run_of_evolution_is_made_of_regular_files(tmp_path: Path) -> None:
    for name, read in ((folder.CONFIG, folder.read_config), (folder.LOG, folder.read_log)):
        (tmp_path / name).symlink_to(DEVICE)
        with pytest.raises(folder.FolderError, match="a device, not a regular file"):
            read(tmp_path)


def test_settings_and_conversions_say_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "a device, not a regular file" in settings.load(DEVICE)[1][0]
    assert convert.main(["--from", "tafl", str(DEVICE), str(tmp_path / "out.tafl")]) != 0
    assert "a device, not a regular file" in capsys.readouterr().err
    assert run._digest(DEVICE) == "unreadable"


def test_only_regular_files_are_replaced_and_links_stay(tmp_path: Path) -> None:
    """As root a command whose output was /dev/full made a plain file of it."""
    fifo, real, link, loop = (tmp_path / name for name in ("fifo", "real", "link", "loop"))
    os.mkfifo(fifo)
    link.symlink_to(real)
    loop.symlink_to(loop)
    for refused, why in (
        (fifo, "a FIFO"),
        (tmp_path, "Is a directory"),
        (DEVICE, "a device"),
        (loop, "symbolic links"),
    ):
        with pytest.raises(OSError, match=why):
            durable.put(refused, b"new", draft=tmp_path / "draft")
    durable.put(link, b"new", draft=tmp_path / "draft")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "link", "loop", "real"]


def test_a_conversion_replaces_no_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    game = tmp_path / "game.tafl"
    game.write_text('[Variant "brandubh"]\n\na4a2 d3a3 *\n')
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert convert.main([str(game), str(fifo), "--to", "otg", "--force"]) == 2
    assert "a FIFO, not a regular file" in capsys.readouterr().err
    assert stat.S_ISFIFO(fifo.stat().st_mode)
