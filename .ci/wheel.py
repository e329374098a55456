#!/usr/bin/env python3
"""A wheel that carries the machine code of all kernels, so that what `pip install` has put there starts at once.

    wheel.py [--out DIR]      compiles every kernel for the processors named in engine/compile/linking.py, builds the
                              wheel, and proves that it finds each of them (dist)

The machine code is used where numba's version, the Python (as 3.11) and the system are those of this build and the
processor can do what it needs; anywhere else the same wheel compiles. Runs in the environment of `make setup`; nothing
here is installed with hnefi.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INSIDE = "hnefi/engine/compile/machine_code/"
PROOF = """
import numba
from hnefi.engine import warmup
from hnefi.engine.compile import cache, linking
assert cache.SHIPPED.is_dir(), cache.SHIPPED
with cache.loading_only():
    warmup.warm(everything=True)
assert not cache.kept()
"""
"""Every kernel of the wheel is loaded, and nothing compiled: `NotCompiled` names the first that is missing."""


def environment(folder: Path, **more: str) -> dict[str, str]:
    """That of a user who has set nothing, with the cache in `folder`."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("NUMBA_", "HNEFI_"))}
    return {**kept, "NUMBA_CACHE_DIR": str(folder), **more}


def compile_kernels(folder: Path) -> Path:
    """Every kernel as machine code for the processors that it ships for; the folder with the files."""
    from hnefi.engine.compile.linking import SHIPPED_FOR

    made = environment(
        folder,
        NUMBA_CPU_NAME=SHIPPED_FOR,
        NUMBA_CPU_FEATURES="",
        NUMBA_DISABLE_INTEL_SVML="1",  # a library that few have
    )
    warmup = "import sys; from hnefi.tools.cli import main; sys.exit(main())"
    subprocess.run([sys.executable, "-c", warmup, "warmup", "--all"], env=made, check=True)
    return folder / "hnefi"


def build(code: Path, folder: Path) -> Path:
    """The wheel with that machine code, from a copy of the sources without what lies around here."""
    source = folder / "source"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "tests", "docs")
    shutil.copytree(ROOT, source, ignore=ignored)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    subprocess.run(
        [*pip, "--no-build-isolation", "--wheel-dir", str(folder / "out"), "."],
        cwd=source, env={**os.environ, "HNEFI_MACHINE_CODE": str(code)}, check=True,
    )  # fmt: skip
    (wheel,) = (folder / "out").glob("*.whl")
    return wheel


def prove(wheel: Path, folder: Path) -> None:
    """Load every kernel from the wheel alone, in a process that finds no other machine code."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    env = environment(folder / "nothing", PYTHONPATH=str(folder / "installed"))
    subprocess.run([sys.executable, "-c", PROOF], env=env, cwd=folder, check=True)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the wheel goes (dist)")
    out = parser.parse_args(words).out
    if platform.machine() not in ("x86_64", "AMD64"):
        print(f"wheel: {platform.machine()}: expected x86_64: no other has machine code", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="hnefi-wheel-") as path:
        folder = Path(path)
        print("compiling every kernel: about two minutes ...", file=sys.stderr)
        wheel = build(compile_kernels(folder / "code"), folder)
        try:
            prove(wheel, folder)
        except subprocess.CalledProcessError:
            print("wheel: it does not find its own machine code on this machine", file=sys.stderr)
            return 1
        out.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(wheel, out / wheel.name)
        with zipfile.ZipFile(wheel) as archive:
            code = [one for one in archive.infolist() if one.filename.startswith(INSIDE)]
        size = sum(one.compress_size for one in code) / 1e6
        print(
            f"{out / wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {len(code)} kernels of them {size:.1f} MB"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
