#!/usr/bin/env python3
"""What a release hands out: an sdist and a wheel, built, checked, installed where nothing else is, and played with.

    dist.py [--out DIR] [--machine-code]    --machine-code has the wheel carry that of all kernels (.ci/wheel.py)

The wheel is built from the sdist, so that neither holds what the other lacks. Runs in the environment of
`make .venv/.ready-dist`; nothing here is installed with hnefi.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = ("HNEFI_", "NUMBA_", "PYTHON", "XDG_")
PAIRS = 1


def say(text: str) -> None:
    print(f"dist: {text}", file=sys.stderr, flush=True)


def run(*command: str | Path, **how: object) -> str:
    """The standard output of a command that has to end well."""
    done = subprocess.run(
        [str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True, **how
    )  # type: ignore[call-overload]
    return str(done.stdout)


def check_ladders(folder: Path) -> None:
    """Have the rungs of the shipped ladders answer as they did when they were frozen: otherwise nobody can be placed on
    them, and the next ladder is due (docs/ladder.md)."""
    for ladder in sorted(folder.glob("ladder-*.toml")):
        run(sys.executable, "-m", "hnefi.tools.cli", "ladder", "check", "--ladder", ladder)


def build(folder: Path, *, machine_code: bool) -> tuple[Path, Path]:
    """The sdist and the wheel, in `folder`."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    if machine_code:
        run(sys.executable, ROOT / ".ci" / "wheel.py", "--out", folder)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def play(wheel: Path, folder: Path) -> None:
    """Install the wheel into a new environment and have it play, with an empty cache and no file of ours around."""
    say("installing the wheel into a new environment ...")
    venv.create(folder / "new", with_pip=True)
    programs = folder / "new" / ("Scripts" if os.name == "nt" else "bin")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(OURS)}
    env = {**kept, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    run(
        programs / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        wheel,
        env=env,
        cwd=folder,
    )
    version = wheel.name.split("-")[1]
    said = run(programs / "hnefi", "--version", env=env, cwd=folder).strip()
    if said != f"hnefi {version}":
        raise SystemExit(f"dist: hnefi --version says {said!r}: expected 'hnefi {version}'")
    say("it plays; what has to be compiled first takes a minute or two ...")
    words = ["arena", "simple", "default", "--variant", "brandubh", "--pairs", str(PAIRS), "--nodes", "200"]
    run(programs / "hnefi", *words, "--out", "cup", "--plain", env=env, cwd=folder)
    summary = json.loads(run(programs / "hnefi", "arena", "report", "cup", "--json", env=env, cwd=folder))
    if (summary["state"]["ending"], summary["games"]) != ("complete", 2 * PAIRS):
        raise SystemExit(
            f"dist: {summary['games']} games, {summary['state']['ending']}: expected all of them"
        )


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where both files go (dist)")
    parser.add_argument(
        "--machine-code", action="store_true", help="a wheel with the machine code of all kernels"
    )
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="hnefi-dist-") as path:
        folder = Path(path)
        made = folder / "made"
        made.mkdir()
        try:
            say("asking the rungs of the ladders ...")
            check_ladders(ROOT / "tools" / "ladder")
            say("building ...")
            sdist, wheel = build(made, machine_code=asked.machine_code)
            run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
            play(wheel, folder)
        except subprocess.CalledProcessError as error:
            print(error.stdout or "", file=sys.stderr)
            say(f"{' '.join(map(str, error.cmd))}: exit status {error.returncode}")
            return 1
        asked.out.mkdir(parents=True, exist_ok=True)
        for file in (sdist, wheel):
            shutil.copyfile(file, asked.out / file.name)
            print(f"{asked.out / file.name}: {(asked.out / file.name).stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
