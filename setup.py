"""Everything about the package stands in pyproject.toml; here is which packages the rooms hold, how an editable install
finds the rooms, and a wheel its machine code.

Where HNEFI_MACHINE_CODE names a folder, a wheel takes the `.code` files along that lie in it (`make wheel`).

The rooms are mapped (``engine/`` is ``hnefi.engine``), and for such a mapping setuptools installs an import hook that
costs every Python process several milliseconds, a third of what the engine may take until it has answered its greeting;
type checkers cannot follow it either. An ordinary path to a folder of links, ``.editable/hnefi/engine -> engine``,
costs nothing, sees new files at once and is understood by every tool. Where links cannot be made, the hook stays.
"""

import base64
import hashlib
import os
import shutil
import tomllib
import zipfile
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import editable_wheel

ROOT = Path(__file__).resolve().parent
ROOMS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["package-dir"]


def packages() -> list[str]:
    """Every folder of a room with Python files, as setuptools wants to be told."""
    return [
        ".".join([room, *file.parent.relative_to(ROOT / folder).parts])
        for room, folder in ROOMS.items()
        for file in sorted((ROOT / folder).rglob("__init__.py"))
    ]


def link_rooms(rooms: dict[str, str]) -> Path:
    """Link every room as ``.editable/hnefi/ROOM`` and return ``.editable``; OSError where links are refused."""
    links = ROOT / ".editable"
    for package, folder in rooms.items():
        link = links.joinpath(*package.split("."))
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(Path("../" * len(package.split("."))) / folder, target_is_directory=True)
    return links


def point_wheel_at(wheel: Path, folder: Path) -> None:
    """Replace the import hook inside the editable `wheel` by the plain path `folder`."""
    with zipfile.ZipFile(wheel) as old:
        members = {name: old.read(name) for name in old.namelist()}
    record = next(name for name in members if name.endswith(".dist-info/RECORD"))
    for name in list(members):
        if name.endswith("_finder.py"):
            del members[name]
        elif name.endswith(".pth"):
            members[name] = f"{folder}\n".encode()
    rows = []
    for name, data in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},," if name == record else f"{name},sha256={digest},{len(data)}")
    members[record] = ("\n".join(rows) + "\n").encode()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in members.items():
            new.writestr(name, data)


class EditableWheel(editable_wheel):
    """The ordinary editable wheel, with a path in place of the import hook."""

    def run(self) -> None:
        super().run()
        try:
            links = link_rooms(self.distribution.package_dir)
        except OSError:
            return
        for wheel in Path(self.dist_dir).glob("*.whl"):
            point_wheel_at(wheel, links)


class BuildPy(build_py):
    """The ordinary collection of files, with machine code made elsewhere."""

    def run(self) -> None:
        super().run()
        made = os.environ.get("HNEFI_MACHINE_CODE")
        target = Path(self.build_lib, "hnefi", "engine", "compile", "machine_code")
        shutil.rmtree(target, ignore_errors=True)  # of an earlier build
        if made and not self.editable_mode:
            target.mkdir(parents=True)
            for file in sorted(Path(made).glob("*.code")):
                shutil.copyfile(file, target / file.name)


setup(packages=packages(), cmdclass={"build_py": BuildPy, "editable_wheel": EditableWheel})
