"""The house as a package: all that is there is installed, and what is installed is one name and nothing heavy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module, metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from hnefi.engine import about
from hnefi.engine.compile import cache

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOMS = {"engine", "gui_adapter", "players", "protocol", "tools"}


def run(*command: str, cwd: Path = ROOT, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, input=text, capture_output=True, text=True, timeout=280, check=False
    )


def packages_on_disk() -> set[str]:
    folders = {file.parent for room in ROOMS for file in (ROOT / room).rglob("*.py")}
    return {".".join(["hnefi", *folder.relative_to(ROOT).parts]) for folder in folders}


def test_every_room_is_installed() -> None:
    assert PROJECT["tool"]["setuptools"]["package-dir"] == {f"hnefi.{room}": room for room in ROOMS}


@pytest.mark.parametrize("package", sorted(packages_on_disk()))
def test_every_package_says_what_it_is(package: str) -> None:
    folder = ROOT.joinpath(*package.split(".")[1:])
    assert (folder / "__init__.py").is_file()


def test_the_map_of_the_engine_is_complete() -> None:
    """engine/README.md lists every module once, and none that is not there; the networks have a row together."""
    rows = re.findall(r"^\| `([\w/*]+\.py)` \|", (ROOT / "engine" / "README.md").read_text(), re.MULTILINE)
    assert [row for row in rows if "*" in row] == ["evaluators/networks/*.py"]
    listed = [file for row in rows for file in (ROOT / "engine").glob(row) if file.name != "__init__.py"]
    files = (file for file in (ROOT / "engine").rglob("*.py") if file.name != "__init__.py")
    assert sorted(listed) == sorted(files)
    assert all((ROOT / "engine" / row).is_file() for row in rows if "*" not in row)


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_every_room_is_typed(room: str) -> None:
    assert (ROOT / room / "py.typed").is_file()


def test_the_version_is_said_once() -> None:
    project = PROJECT["project"]
    assert project["name"] == about.NAME
    assert project["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "hnefi.engine.about.VERSION"}
    assert metadata.version("hnefi") == about.VERSION, "make setup installs it anew"
    assert project["license"] == about.LICENSE
    assert project["authors"] == [{"name": about.AUTHORS}]
    assert about.AUTHORS in (ROOT / "LICENSE").read_text()
    assert f"## {about.VERSION}" in (ROOT / "CHANGELOG.md").read_text()
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    (locked,) = (package for package in lock["package"] if package["name"] == "hnefi")
    assert "version" not in locked


def test_both_lists_of_developers_tools_agree() -> None:
    assert PROJECT["project"]["optional-dependencies"]["dev"] == PROJECT["dependency-groups"]["dev"]


def test_the_lock_is_up_to_date() -> None:
    """As `uv lock --check` has it: the lock repeats what the project asks for, and names a version of all of it."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    (ours,) = (package for package in lock["package"] if package["name"] == "hnefi")
    extras = {"": PROJECT["project"]["dependencies"], **PROJECT["project"]["optional-dependencies"]}
    asked = {
        (extra, name, versions) for extra, words in extras.items() for name, versions in map(_required, words)
    }
    assert asked == {
        (
            one.get("marker", "").removeprefix("extra == ").strip("'"),
            one["name"],
            SpecifierSet(one["specifier"]),
        )
        for one in ours["metadata"]["requires-dist"]
    }
    groups = PROJECT["dependency-groups"]
    assert {group: set(map(_required, words)) for group, words in groups.items()} == {
        group: {(one["name"], SpecifierSet(one["specifier"])) for one in ones}
        for group, ones in ours["metadata"]["requires-dev"].items()
    }
    found = {package["name"] for package in lock["package"]}
    names = {_required(word)[0] for words in (*extras.values(), *groups.values()) for word in words}
    assert names <= found


def _required(word: str) -> tuple[str, SpecifierSet]:
    """The name and the versions of a requirement."""
    requirement = Requirement(word)
    return canonicalize_name(requirement.name), requirement.specifier


@pytest.mark.parametrize("target", PROJECT["project"]["scripts"].values())
def test_every_script_leads_somewhere(target: str) -> None:
    module, _, function = target.partition(":")
    assert callable(getattr(import_module(module), function))


def build(source: Path, out: Path, **environment: str) -> zipfile.ZipFile:
    """The wheel of a copy of the sources."""
    built = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out)),
            *("--disable-pip-version-check", "."),
        ],
        cwd=source, env={**os.environ, **environment}, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    (file,) = out.glob("*.whl")
    return zipfile.ZipFile(file)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel as users get it, built from a copy without what lies around here."""
    source = tmp_path_factory.mktemp("source") / "hnefi"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
    shutil.copytree(ROOT, source, ignore=ignored)
    return build(source, source.parent / "out")


@pytest.mark.process
def test_the_wheel_takes_one_name(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert tops == {"hnefi", f"hnefi-{about.VERSION}.dist-info"}


@pytest.mark.process
def test_the_wheel_holds_everything(wheel: zipfile.ZipFile) -> None:
    """Every file of the rooms, source and data alike, is where the programs will look for it."""
    inside = set(wheel.namelist())
    for room in ROOMS:
        for file in (ROOT / room).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert f"hnefi/{file.relative_to(ROOT).as_posix()}" in inside
    metadata = wheel.read(f"hnefi-{about.VERSION}.dist-info/METADATA").decode()
    assert "License-Expression: MIT" in metadata
    assert "Requires-Python: >=3.11" in metadata


@pytest.mark.process
@pytest.mark.slow
def test_a_wheel_takes_machine_code_along_where_it_is_told_to(tmp_path: Path) -> None:
    """Where the engine looks for it, the files of this build alone, and only those of machine code."""
    source, made = tmp_path / "hnefi", tmp_path / "made"
    shutil.copytree(
        ROOT, source, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
    )
    made.mkdir()
    for name in ("alphabeta.search-1.code", "times.json", "lock"):
        (made / name).write_text(name)
    folder = "hnefi/" + cache.SHIPPED.relative_to(ROOT).as_posix() + "/"
    first = build(source, tmp_path / "first", HNEFI_MACHINE_CODE=str(made))
    assert [name for name in first.namelist() if name.startswith(folder)] == [
        f"{folder}alphabeta.search-1.code"
    ]
    (made / "alphabeta.search-1.code").rename(made / "alphabeta.search-2.code")
    second = build(source, tmp_path / "second", HNEFI_MACHINE_CODE=str(made))
    assert [name for name in second.namelist() if name.startswith(folder)] == [
        f"{folder}alphabeta.search-2.code"
    ]
    third = build(source, tmp_path / "third")
    assert not [name for name in third.namelist() if name.startswith(folder)]


HEAVY = {
    "argparse", "asyncio", "dataclasses", "inspect", "json", "llvmlite", "logging", "numba", "numpy", "pathlib",
    "prompt_toolkit", "subprocess", "tomllib", "typing",
}  # fmt: skip

WITNESS = """
import os, sys
before = set(sys.modules)
write = os.write
def watch(descriptor, data):
    count = write(descriptor, data)
    if descriptor == 1 and b"utiok" in data:
        write(2, " ".join(set(sys.modules) - before).encode())
        os._exit(0)
    return count
os.write = watch
sys.argv = ["hnefi", "engine"]
from hnefi.tools.cli import main
main()
"""


@pytest.mark.process
def test_nothing_heavy_stands_on_the_way_to_the_greeting() -> None:
    seen = run(sys.executable, "-c", WITNESS, text="uti\n")
    assert seen.stdout.endswith("utiok\n")
    loaded = set(seen.stderr.split())
    assert "hnefi.protocol.server" in loaded
    assert not loaded & HEAVY


@pytest.mark.process
def test_python_starts_without_an_import_hook() -> None:
    """An editable install that hooks into imports would cost more than the whole greeting."""
    seen = run(sys.executable, "-c", "import sys; print(*sys.modules)")
    assert not [name for name in seen.stdout.split() if name.startswith("__editable__")]


@pytest.mark.process
@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_alone_loads_nothing_else(room: str) -> None:
    seen = run(sys.executable, "-c", f"import sys, hnefi.{room}; print(*sys.modules)")
    loaded = set(seen.stdout.split())
    assert not loaded & {"numpy", "numba", "aiomqtt", "aiohttp", "prompt_toolkit", "joblib"}
    others = {f"hnefi.{other}" for other in ROOMS - {room, "engine"}}
    assert not loaded & others


@pytest.mark.process
@pytest.mark.parametrize(
    "command",
    [["ruff", "format", "--check", "--quiet"], ["ruff", "check", "--quiet"], ["lint-imports", "--no-logo"]],
    ids=" ".join,
)
def test_manners(command: list[str]) -> None:
    program = Path(sys.executable).with_name(command[0])
    found = run(str(program), *command[1:])
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.process
def test_the_makefile_explains_itself() -> None:
    listed = run("make", "help").stdout
    for target in (
        "setup",
        "run",
        "play",
        "test",
        "quick",
        "steady",
        "fuzz",
        "audit",
        "sbom",
        "licences",
        "docs",
        "wheel",
        "dist",
        "check",
        "bench",
        "warmup",
        "clean",
    ):
        assert f"make {target} " in listed


def test_scripts_of_continuous_integration_can_be_run() -> None:
    for name in ("run", "wheel.py", "dist.py"):
        assert os.access(ROOT / ".ci" / name, os.X_OK)


def test_all_services_of_continuous_integration_try_the_same_pythons() -> None:
    """From the oldest that the project is for on."""
    services = [".github/workflows/ci.yml", ".gitlab-ci.yml"]
    tried = [
        re.findall(r"python: \[(.+?)\]", (ROOT / name).read_text().replace("PYTHON: ", "python: "))
        for name in services
    ]
    versions = {line for lines in tried for line in lines}
    assert len(versions) == 1
    (line,) = versions
    oldest, *later = re.findall(r'"3\.(\d+)"', line)
    assert PROJECT["project"]["requires-python"] == f">=3.{oldest}"
    assert [int(minor) for minor in later] == list(range(int(oldest) + 1, int(oldest) + 1 + len(later)))
