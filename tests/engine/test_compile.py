"""Machine code: parts linked to programs, kept whole on disk, and found by what it depends on."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import llvmlite.binding
import numpy as np
import pytest
from compile_parts import SMALL, compiled, linked, run

from hnefi.engine.compile import cache, progress, sources, structs
from hnefi.engine.compile.jit import entry, inline, kernel
from hnefi.engine.games import interface

RECORD = np.dtype([("cells", "i4", (8,)), ("n", "i8")], align=True)


@inline
def twice(x: int) -> int:
    return 2 * x


@kernel
def total(s: Any, first: int, last: int) -> int:
    """Recursive, with a narrow integer and a constant among its arguments."""
    if first == last:
        return 0
    return twice(int(s.cells[first])) + total(s, first + 1, last)


@entry
def work(s: Any) -> int:
    s.n = total(s, 0, 8) + total(s, np.int32(0), 1)
    return s.n


@entry
def counted(s: Any) -> int:
    s.n += 1
    return s.n


def record() -> Any:
    made = np.zeros(1, RECORD).view(np.recarray)
    made[0]["cells"] = range(8)
    return made


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "hnefi"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "small_kernels.py"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The machine code of that script."""
    folder = tmp_path_factory.mktemp("sound")
    script, home = folder / "small_kernels.py", folder / "hnefi"
    script.write_text(SMALL)
    assert run(script, home).stdout == "1 0\n"
    assert run(script, home).stdout == "0 1\n"
    (file,) = home.glob("*.code")
    return file


# Linking


def test_linked_kernels_say_what_python_says() -> None:
    made, plain = record(), record()
    function = getattr(work, "py_func", work)
    assert work(made[0]) == function(plain[0]) == 56
    assert made.tobytes() == plain.tobytes()


@compiled
@linked
def test_narrow_integers_and_constants_compile_nothing_twice() -> None:
    fresh = kernel(work.py_func)  # `work` itself may come from the cache
    fresh(record()[0])
    assert len(total.signatures) == 1
    assert len(fresh.entry.signatures) == 1


@compiled
@linked
def test_only_entries_become_machine_code() -> None:
    """A part has nothing that could be run, a program has nothing but its own name for others."""
    fresh = kernel(work.py_func)  # `work` itself may come from the cache
    fresh(record()[0])
    (part,) = (made.library for made in total.overloads.values())
    (program,) = (made.library for made in fresh.entry.overloads.values())
    assert type(part).__name__ == "Part"
    assert not hasattr(part, "_compiled_object")
    assert type(program).__name__ == "Program"
    names = [
        name
        for _, _, data in [program.serialize_using_object_code()]
        for name in (len(data[0]), len(data[1]))
    ]
    assert names[0] > names[1] > 0


@compiled
@linked
def test_numbas_own_functions_are_told_that_they_cannot_call_a_kernel() -> None:
    import numba

    @numba.njit
    def outside(s: Any) -> int:
        return total(s, 0, 8)

    with pytest.raises(Exception, match="not by numba's functions"):
        outside(record()[0])


@pytest.mark.process
@compiled
@pytest.mark.parametrize("compiler", ["", "numba"])
def test_both_compilers_agree(compiler: str, script: Path, home: Path) -> None:
    done = run(script, home, HNEFI_COMPILER=compiler) if compiler else run(script, home)
    if compiler:
        # There is no `entry` behind numba's own functions; up to there the script has shown its point.
        assert "has no attribute 'entry'" in done.stderr
    else:
        assert (done.returncode, done.stdout) == (0, "1 0\n"), done.stderr


BOTH = """
from hnefi.engine import games
from hnefi.engine.compile import jit
from hnefi.engine.perft import perft
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Limits, Settings

position = games.initial(games.find("hexapawn:4x4"))
counted = perft(position, 6, bulk=False)
print(counted.divide, counted.captures)
searcher = Searcher(Settings(hash_mib=1))
searcher.begin()
found = searcher.search(position, Limits(depth=6), lambda one: print(one.depth, one.nodes, one.score, *one.pv))
print(found, searcher.evaluate(position))
print(jit.LINKED)
"""


@compiled
@linked
@pytest.mark.process
@pytest.mark.slow
def test_the_games_are_the_same_whoever_compiles(tmp_path: Path) -> None:
    """Real kernels of the smallest game, compiled our way and numba's, maybe long ago: moves, counting, search."""
    script = tmp_path / "both.py"
    script.write_text(BOTH)
    said = []
    for compiler in ("", "numba"):
        done = run(script, cache.folder() or tmp_path / "hnefi", HNEFI_COMPILER=compiler)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.splitlines())
    assert [lines.pop() for lines in said] == ["True", "False"]
    assert said[0] == said[1]
    assert len(said[0]) == 8


@pytest.mark.process
@compiled
def test_an_unknown_numba_is_told_of_and_works(script: Path, home: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import numba\nnumba.version_info = numba.version_info._replace(short=(0, 99))\nnumba.__version__ = '0.99.0'\n"
    )
    done = run(script, home, PYTHONPATH=str(tmp_path))
    assert "hnefi: numba 0.99.0: compiling takes several times as long as with numba 0.68" in done.stderr
    assert "has no attribute 'entry'" in done.stderr


def test_a_kernel_changes_the_struct_that_python_holds() -> None:
    made = structs.zeros([("name", "S3"), ("inner", [("n", "i8")]), ("n", "i8")], 3)
    one = made[1]
    assert [int(counted(one)) for _ in range(2)] == [1, 2]
    assert made["n"].tolist() == [0, 2, 0]
    assert one.n == one["n"] == 2
    one["inner"]["n"] = 7
    assert one.inner.n == made["inner"]["n"][1] == 7
    assert bytes(one.data) == made[1:2].tobytes()
    copied = made.copy()[1]
    assert int(counted(copied)) == 3
    assert one.n == 2


# Keeping


@pytest.mark.process
@compiled
@linked
def test_the_next_process_loads_what_this_one_compiled(script: Path, home: Path) -> None:
    assert run(script, home).stdout == "1 0\n"
    assert run(script, home).stdout == "0 1\n"


@pytest.mark.process
@compiled
@linked
def test_loading_imports_nothing_that_only_a_compiler_needs(script: Path, home: Path) -> None:
    """Numba's own library of functions is a third of a warm start."""
    outer = script.with_name("outer.py")
    outer.write_text("import sys\nimport small_kernels\nprint('numba.cpython.unicode' in sys.modules)\n")
    assert run(outer, home).stdout == "1 0\nTrue\n"
    assert run(outer, home).stdout == "0 1\nFalse\n"


@compiled
@linked
def test_no_kernel_counts_references() -> None:
    """Whoever loads machine code does not set numba's runtime up: a call of it would end the process."""
    for one in cache.kept():
        assert b"NRT_" not in one.path.read_bytes(), one.entry


@pytest.mark.process
@compiled
@linked
@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "pickle", "text"])
def test_damaged_machine_code_is_dropped_and_compiled_again(
    damage: str, script: Path, home: Path, sound: Path
) -> None:
    data = sound.read_bytes()
    middle = len(data) // 2
    home.mkdir(parents=True)
    file = home / sound.name
    file.write_bytes(
        {
            "empty": b"",
            "cut": data[:middle],
            "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
            "pickle": b"hnefi machine code 1\n" + bytes(32) + b"cos\nsystem\n(S'true'\ntR.",
            "text": b"hello\n",
        }[damage]
    )
    done = run(script, home)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 0\n", "")
    assert list(home.glob("*.code")) == [file]
    assert cache.load(file.stem) is not None


@pytest.mark.parametrize("kind", ["folder", "FIFO", "device", "loop", "unreadable"])
def test_what_is_no_file_in_the_cache_is_not_waited_for_and_gives_way(
    kind: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Opened like a file, a FIFO waits for ever and a device has no end."""

    def place(path: Path) -> None:
        if kind == "folder":
            path.mkdir()
        elif kind == "FIFO":
            os.mkfifo(path)
        elif kind == "unreadable":
            path.touch(mode=0)
        else:
            path.symlink_to("/dev/zero" if kind == "device" else path.name)

    home.mkdir(parents=True)
    path = home / "room.entry-1.code"
    place(path)
    place(home / "times.json")
    assert cache.times() == {}
    assert cache.load("room.entry-1") is None
    assert [one.path for one in cache.damaged()] in ([path], []), "there, or removed when it was met"
    cache.save("room.entry-1", b"code")
    assert cache.load("room.entry-1") == b"code"
    path.unlink()
    place(path)
    assert cache.clear() == 1
    assert not os.path.lexists(path)
    assert capsys.readouterr().err == ""


def test_machine_code_of_somebody_else_is_not_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.save("room.entry-1", b"code")
    assert cache.load("room.entry-1") == b"code"
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    owner = (home / "room.entry-1.code").stat().st_uid
    assert cache.load("room.entry-1") == (b"code" if owner == 0 else None)
    monkeypatch.setattr(os, "fstat", lambda _: os.stat_result((0o600, 0, 0, 1, 815, 0, 4, 0, 0, 0)))
    assert cache.load("room.entry-1") is None


@pytest.mark.parametrize("place", ["file", "none"])
def test_what_cannot_be_kept_is_said_once(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(cache, "tell_unkept", cache._Notice())
    monkeypatch.setattr(progress._state, "unkept", "")
    if place == "file":
        (tmp_path / "hnefi").write_text("in the way")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    else:
        monkeypatch.setattr(cache, "folder", lambda: None)
    assert not cache.Lock().acquire("part")
    said = capsys.readouterr().err
    where = f"in {tmp_path}/hnefi (File exists)" if place == "file" else "anywhere (there is no home folder)"
    assert said == f"hnefi: machine code cannot be stored {where}, so every start compiles again\n", (
        "before it compiles"
    )
    monkeypatch.setattr(progress._state, "part", "search")
    report = progress.current()
    assert report is not None
    assert report.unkept == where
    monkeypatch.setattr(cache, "tell_unkept", cache._Notice())
    for _ in range(2):
        cache.save("room.entry-1", b"code")
    assert cache.load("room.entry-1") is None
    said = capsys.readouterr().err
    assert said.count("machine code cannot be stored") == 1
    assert ("there is no home folder" in said) == (place == "none")


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", staticmethod(nowhere))
    assert cache.folder() is None
    assert cache.kept() == []
    assert cache.times() == {}
    monkeypatch.setattr(progress._state, "unkept", "")
    assert not cache.Lock().acquire("part")


def test_old_machine_code_goes_and_what_is_used_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day = 86400
    for name, idle in (("used", 0), ("week", 7 * day), ("month", 31 * day)):
        cache.save(f"{name}-1", b"x" * 100)
        stamp = (home / f"{name}-1.code").stat().st_mtime - idle
        os.utime(home / f"{name}-1.code", (stamp, stamp))
    cache.save("new-1", b"x")
    assert [one.entry for one in cache.kept()] == ["week", "used", "new"]
    monkeypatch.setattr(cache, "KEPT_BYTES", 100)
    cache.save("newer-1", b"x")
    assert {one.entry for one in cache.kept()} == {"used", "new", "newer"}
    assert cache.load("week-1") is None


def test_a_use_is_noted(home: Path) -> None:
    cache.save("entry-1", b"x")
    file = home / "entry-1.code"
    stamp = file.stat().st_mtime - 20 * 86400
    os.utime(file, (stamp, stamp))
    assert cache.load("entry-1") == b"x"
    assert cache.kept()[0].idle < 3600


def test_machine_code_on_a_disk_that_can_only_be_read_is_used(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.save("entry-1", b"x")

    def refused(*_: Any, **__: Any) -> None:
        raise OSError(30, "Read-only file system")

    really = os.open

    def reading(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            refused()
        return really(path, flags, *rest, **more)

    file = home / "entry-1.code"
    os.utime(file, (1, 1))
    monkeypatch.setattr(os, "utime", refused)
    monkeypatch.setattr(os, "open", reading)
    assert cache.load("entry-1") == b"x"
    assert not cache.Lock().acquire("part")


def test_shipped_machine_code_comes_first(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.save("entry-1", b"shipped")
    shipped = tmp_path / "shipped"
    home.rename(shipped)
    monkeypatch.setattr(cache, "SHIPPED", shipped)
    assert cache.load("entry-1") == b"shipped"
    monkeypatch.setenv(cache.OWN, "yes")
    assert cache.load("entry-1") is None
    monkeypatch.delenv(cache.OWN)
    (shipped / "entry-1.code").write_bytes(b"damaged")
    cache.save("entry-1", b"own")
    assert cache.load("entry-1") == b"own"


SHIPPING = """
import os, pathlib, sys
from hnefi.engine.compile import cache
cache.SHIPPED = pathlib.Path(os.environ["SHIPPED"])
from hnefi.engine.compile import linking
linking._NEEDED |= set(os.environ.get("NEEDED", "").split())
linking._VERSIONS += tuple(os.environ.get("VERSION", "").split())
import small_kernels
"""


@pytest.mark.process
@pytest.mark.slow
@compiled
@linked
@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="ships for x86-64 only")
def test_machine_code_for_many_processors_is_used_where_it_fits_and_nowhere_else(
    script: Path, home: Path, tmp_path: Path
) -> None:
    from hnefi.engine.compile import linking

    outer = script.with_name("outer.py")
    outer.write_text(SHIPPING)
    shipped = tmp_path / "maker" / "hnefi"
    places = {"SHIPPED": str(shipped), "NUMBA_CPU_NAME": linking.SHIPPED_FOR, "NUMBA_CPU_FEATURES": ""}
    assert run(outer, shipped, **places).stdout == "1 0\n"
    (made,) = shipped.glob("*.code")
    there = {"SHIPPED": str(shipped)}
    if not set(llvmlite.binding.get_host_cpu_features().flatten().split(",")) >= linking._NEEDED:
        pytest.skip("this processor is older than what machine code is shipped for")
    assert run(outer, home, **there).stdout == "0 1\n"
    assert not home.exists(), "it was found where it came with the package"
    assert run(outer, home, **there, NEEDED="+a-wonder").stdout == "1 0\n", "another processor"
    assert run(outer, home, **there, VERSION="another").stdout == "1 0\n", "another version"
    assert run(outer, tmp_path / "third" / "hnefi", **there, NUMBA_OPT="1").stdout == "1 0\n", (
        "another setting"
    )
    script.write_text(SMALL.replace("else s.cells[i] +", "else 0 + s.cells[i] +"))
    assert run(outer, home, **there).stdout == "1 0\n", "another source"
    script.write_text(SMALL)
    made.write_bytes(made.read_bytes()[:-1])
    assert run(outer, tmp_path / "last" / "hnefi", **there).stdout == "1 0\n", "damaged"


def test_features_of_a_processor_are_all_looked_at() -> None:
    from hnefi.engine.compile.linking import _NEEDED, SHIPPED_FOR, _processors

    system = "x86_64-unknown-linux-gnu"
    able = ",".join(sorted(_NEEDED | {"+sha", "-avx512f"}))
    assert _processors((system, "znver4", able)) == [(system, "znver4", able), (system, SHIPPED_FOR, "")]
    for missing in _NEEDED:
        lacking = (system, "old", able.replace(missing, f"-{missing[1:]}"))
        assert _processors(lacking) == [lacking]
    assert _processors(("aarch64-apple-darwin", "apple-m1", able)) == [
        ("aarch64-apple-darwin", "apple-m1", able)
    ]


@pytest.mark.slow
@compiled
@linked
@pytest.mark.usefixtures("home")
def test_threads_that_compile_at_once_do_not_disturb_each_other() -> None:
    """One of them compiles, and gives back the lock before the next one takes it."""
    wrong: list[str] = []

    def call(function: Any) -> None:
        try:
            function(record()[0])
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not be
            wrong.append(repr(error))

    for _ in range(20):
        cache.clear()
        fresh = entry(counted.py_func)
        threads = [threading.Thread(target=call, args=(fresh,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


# What machine code depends on


def test_stamps_cover_what_is_imported_and_no_more() -> None:
    names = {path.name for path in sources._reached("hnefi.engine.search.alphabeta")}
    assert {"alphabeta.py", "table.py", "features.py", "squares.py", "interface.py", "intrinsics.py"} <= names
    assert not names & {"make.py", "movegen.py", "loaded.py", "cache.py", "searcher.py"}
    rules = {path.name for path in sources._reached("hnefi.engine.games.tafl.verbs")}
    assert {"adjudication.py", "make.py", "movegen.py", "win_conditions.py", "setup.py", "state.py"} <= rules
    assert not any("networks" in path.parts for path in sources._reached("hnefi.engine.games.tafl.verbs"))


@compiled
@linked
def test_a_search_depends_on_the_rules_and_the_evaluator_it_is_compiled_with() -> None:
    """Each verb that is bound to the records of a search brings its kernels' files into the stamp."""
    from hnefi.engine import games  # noqa: F401 - binds the verbs of hex
    from hnefi.engine.compile.linking import _bound, _record
    from hnefi.engine.evaluators import loaded, tafl
    from hnefi.engine.games.tafl.state import TAFL

    state, data = _record(TAFL), _record(loaded.LOADED)
    rules = {one.__module__ for (_, *kinds), one in interface.KERNELS.items() if kinds == [TAFL]}
    assert _bound((state,)) == rules
    assert loaded.tafl_evaluate.__module__ in _bound((state, data))
    assert tafl.__name__ not in _bound((state, data))
    networks = {path.name for name in _bound((state, data)) for path in sources._reached(name)}
    assert {"linear_threats.py", "hingston2007.py", "mlp.py"} <= networks


def test_an_edit_changes_the_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for word in ("first", "second"):
        (tmp_path / f"{word}.py").write_text("X = 1\n")
    (tmp_path / "first.py").write_text("from hnefi.engine.squares import CELLS\nX = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import importlib

    stamps = []
    for text in ("X = 1\n", "X = 2\n"):
        (tmp_path / "first.py").write_text(f"from hnefi.engine.squares import CELLS\n{text}")
        importlib.import_module("first")
        for memory in (sources._text, sources._text_hash, sources._imports, sources._reached, sources._file):
            memory.cache_clear()
        stamps.append(sources.stamp("first"))
    assert stamps[0] != stamps[1]
    assert stamps[1] == sources.stamp("first")
    assert "squares.py" in {path.name for path in sources._reached("first")}
