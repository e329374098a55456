"""Made-up input that is led by coverage: `make guided` for each door of test_doors.py, by atheris (libFuzzer).

    python tests/guided.py DOOR [SECONDS]     changes what is in the corpus, and keeps what reaches new code
    python tests/guided.py all [SECONDS]      every door, one after the other, for so long in all

What fails is kept in tests/corpus/DOOR as `found-…`, where it is a case from then on. Of what reaches new code the
smallest inputs are kept as `seen-…`, up to `MOST` of them and `ROOM` bytes. hypothesis (`make fuzz`) shrinks
better and needs nothing installed, but changes its examples blindly; this finds its way through checks one by one.
"""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).with_name(name)) for name in ("support", "house")]

ROOM, MOST = 20_000, 40
"""Bytes and number of one door's inputs of this kind."""
LONGEST = 2_000
"""Bytes of one input: what is kept shall be read by people."""


def fuzz(door: str, flags: list[str]) -> None:
    """libFuzzer's own loop in this process; it does not return."""
    import atheris

    with atheris.instrument_imports(include=["hnefi"]):
        import test_doors
    with tempfile.TemporaryDirectory() as folder:

        def attempt(data: bytes) -> None:
            test_doors.enter(door, data, Path(folder))

        # libFuzzer starts itself anew by this, through a shell, when it merges.
        atheris.Setup([f"{sys.executable} {__file__} --fuzz {door}", *flags], attempt)
        atheris.Fuzz()


def run(door: str, *flags: str) -> int:
    """A process of its own for one door, because libFuzzer ends it; its status."""
    command = [sys.executable, __file__, "--fuzz", door, f"-max_len={LONGEST}", "-verbosity=0", *flags]
    done = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr.decode("utf-8", "replace")[-4000:])
    return done.returncode


def guided(door: str, seconds: int) -> int:
    """Fuzz a door for so long and keep what is worth it; 1 if an input failed."""
    corpus = Path(__file__).with_name("corpus") / door
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as merged:
        failed = run(
            door,
            f"-max_total_time={seconds}",
            "-timeout=20",
            f"-artifact_prefix={corpus}/found-",
            made,
            str(corpus),
        )
        # The fewest inputs that reach all that is reached, those of the corpus first.
        for path in corpus.iterdir():
            (Path(merged) / path.name).write_bytes(path.read_bytes())
        run(door, "-merge=1", merged, made)
        known = {path.name for path in corpus.iterdir()}
        seen = list(corpus.glob("seen-*"))
        room, more = ROOM - sum(path.stat().st_size for path in seen), MOST - len(seen)
        for path in sorted(Path(merged).iterdir(), key=lambda path: path.stat().st_size):
            data = path.read_bytes()
            if path.name in known or len(data) > room or not more:
                continue
            room -= len(data)
            more -= 1
            (corpus / f"seen-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)
    count = len(list(corpus.iterdir()))
    print(f"{door}: {'an input failed' if failed else 'nothing failed'}; {count} inputs are kept", flush=True)
    return int(failed != 0)


def main(arguments: list[str]) -> int:
    """Fuzz one door, or all of them."""
    if arguments[:1] == ["--fuzz"]:
        fuzz(arguments[1], arguments[2:])
    import test_doors

    door, seconds = arguments[0], int(arguments[1]) if len(arguments) > 1 else 60
    doors = list(test_doors.DOORS) if door == "all" else [door]
    print(f"{seconds // len(doors)} s at each of {len(doors)} doors", flush=True)
    return max(guided(name, max(1, seconds // len(doors))) for name in doors)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main(sys.argv[1:]))
