"""What several tests share: the recorded games, the kinds of tests, the order of their files.

Kinds are marks: `process` starts other processes, `broker` speaks to an MQTT broker, `browser` opens pages (and starts
processes), `slow` takes more than about a second of the processor's time, `exhaustive` repeats for every variant what
runs without the mark for ten of them.
`make quick` leaves all of them out; a test that starts a process without saying so fails.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ORDER = os.environ.get("HNEFI_ORDER", "")
"""Shuffles the files: any word is a seed."""
TIMES = int(os.environ.get("HNEFI_TIMES", "1"))
"""How often each test runs (`make steady`)."""
SPOKEN = frozenset({"process", "broker"})
BROKERS = frozenset({"broker", "own_broker", "club"})
TEN = frozenset({
    "copenhagen", "brandubh", "ard-ri-step", "berserk-opentafl", "fetlar", "hingston-original", "historical-lewis",
    "mini-cross", "sea-battle-11", "tablut-linnaeus",
})  # fmt: skip
"""Variants that differ in as much as ten can: size, berserk moves, camps, jumps, escapes at edges, unarmed kings."""
PLAIN = 0.013
"""Seconds that a test of no kind takes."""
USUAL = {"process": 0.45, "broker": 0.4, "slow": 1.0, "browser": 3.0}
"""Seconds that a kind of test adds, all four by least squares from the times of the files; the order of files is made
of it, and nothing else."""
STARTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"})

WORTH_WARMING = 3
"""So many tests that start processes make it worth while to keep a warm one (`warm_engines.py`)."""

_started = 0
_fixtures_that_start: set[tuple[str, str]] = set()


def _hear(event: str, _: object) -> None:
    global _started  # noqa: PLW0603 - an audit hook cannot be given anything, nor be removed
    if event in STARTS:
        _started += 1


def pytest_configure(config: pytest.Config) -> None:
    sys.addaudithook(_hear)
    gc.disable()  # nothing that is collected becomes garbage; `_keep_machine_code` begins to look for it
    # Neither examples nor their making may be timed: other work on the machine would decide what passes.
    settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)  # readline sets them, and the workers of pytest-xdist inherit that
    # A shell starts what goes to the background without Ctrl-C, nohup without HUP; whatever tests start and interrupt
    # would inherit it.
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, usual)
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # pytest-xdist would sort the files by their number of tests


def pytest_collection_finish(session: pytest.Session) -> None:
    _keep_machine_code()
    if session.config.option.collectonly:
        return
    if sum(any(item.iter_markers("process")) for item in session.items) >= WORTH_WARMING:
        import warm_engines

        warmth = contextlib.ExitStack()
        warmth.enter_context(warm_engines.serving())
        session.config.add_cleanup(warmth.close)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """What is about the start of engines gets ordinary ones, in its fixtures too."""
    socket = os.environ.get("HNEFI_WARM")
    if socket is None or item.get_closest_marker("cold") is None:
        return (yield)
    del os.environ["HNEFI_WARM"]
    try:
        return (yield)
    finally:
        os.environ["HNEFI_WARM"] = socket


def _keep_machine_code() -> None:
    """Keep the machine code of what only tests call from Python: each process would make it anew, seconds for each.

    And thousands of tests and all modules stay to the end: whoever looks for garbage need not look there.
    """
    gc.freeze()
    gc.enable()
    from hnefi.engine.compile import jit

    if jit.LINKED and not jit.numba.config.DISABLE_JIT:
        from hnefi.engine.compile.linking import Kernel

        make = Kernel.entry.func

        def kept(kernel: Kernel) -> object:
            if not kernel._cached and kernel.py_func.__module__.startswith("hnefi."):
                assert not _called_by_the_product(), f"{kernel.py_func.__name__} is compiled at each start"
                kernel._cached = True
            return make(kernel)

        Kernel.entry.func = kept


def _called_by_the_product() -> bool:
    """Whether the Python code that wants to call a kernel is ours; its users would wait for the compiler."""
    between = ("functools.py", "/compile/linking.py", "/games/interface.py", "/conftest.py")
    frame = sys._getframe()
    while frame.f_code.co_filename.endswith(between):
        assert frame.f_back is not None
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).startswith("hnefi.")


def pytest_report_header() -> str:
    folder = os.environ.get("HNEFI_CORPORA", "not named (HNEFI_CORPORA): their tests are skipped")
    thorough = os.environ.get("HNEFI_THOROUGH", "1")
    return (
        f"recorded games: {folder}; HNEFI_THOROUGH={thorough}; HNEFI_ORDER={ORDER or '(the longest first)'}"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if BROKERS & set(getattr(item, "fixturenames", ())):
            item.add_marker("broker")
    _mark_exhaustive(items)
    files = sorted({item.path for item in items})
    if ORDER:
        random.Random(ORDER).shuffle(files)
    else:
        # What takes long begins first, or one worker would be busy with it when the others have ended.
        files.sort(key=dict(zip(files, _seconds(items, files), strict=True)).__getitem__, reverse=True)
    place = {file: number for number, file in enumerate(files)}
    items.sort(key=lambda item: place[item.path])


def _seconds(items: list[pytest.Item], files: list[Path]) -> list[float]:
    """About how long the tests of each file take, by their kinds."""
    seconds = dict.fromkeys(files, 0.0)
    for item in items:
        kinds = {mark.name for mark in item.iter_markers()}
        seconds[item.path] += PLAIN + sum(USUAL[kind] for kind in USUAL.keys() & kinds)
    return [seconds[file] for file in files]


def _mark_exhaustive(items: list[pytest.Item]) -> None:
    """Tests of more than half of the shipped variants are marked but for ten of these."""
    from hnefi.engine import catalogue

    shipped = set(catalogue.names())
    variants: dict[tuple[Path, str], list[tuple[str, pytest.Item]]] = {}
    for item in items:
        callspec = getattr(item, "callspec", None)
        for value in callspec.params.values() if callspec else ():
            if isinstance(value, str) and value in shipped:
                variants.setdefault((item.path, item.name.partition("[")[0]), []).append((value, item))
    for pairs in variants.values():
        if len({name for name, _ in pairs}) > len(shipped) // 2:
            for name, item in pairs:
                if name not in TEN:
                    item.add_marker("exhaustive")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if TIMES > 1:
        metafunc.fixturenames.append("round_of_steady")
        metafunc.parametrize("round_of_steady", range(1, TIMES + 1), ids="round-{}".format)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
    """Remember fixtures that start processes: only the first test that shares one sees it start."""
    before = _started
    try:
        return (yield)
    finally:
        if _started > before:
            _fixtures_that_start.add((fixturedef.argname, str(fixturedef.baseid)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before = _started
    blocked = _blocked()
    result = yield
    if left := _blocked() - blocked:
        # What later tests start would inherit it, and no longer end when they interrupt it.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, left)
        pytest.fail(
            f"leaves signals blocked: {left}: expected a thread of its own for what does", pytrace=False
        )
    if not any(item.get_closest_marker(kind) for kind in SPOKEN):
        shared = _started_by_fixtures(item)
        if _started > before or shared:
            by = f" (fixture {shared})" if shared else ""
            pytest.fail(f"starts another process{by}: expected the mark pytest.mark.process", pytrace=False)
    return result


def _blocked() -> set[int]:
    """The signals that the calling thread does not take."""
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, ())) if hasattr(signal, "pthread_sigmask") else set()


def _started_by_fixtures(item: pytest.Item) -> str:
    """The fixture of this test that has started a process, if any."""
    for name, definitions in getattr(item, "_fixtureinfo").name2fixturedefs.items():  # noqa: B009
        if any((name, str(each.baseid)) in _fixtures_that_start for each in definitions):
            return name
    return ""


@pytest.fixture
def corpora() -> Path:
    """The folder of recorded games; the test is skipped where there is none."""
    folder = os.environ.get("HNEFI_CORPORA")
    if not folder:
        pytest.skip("HNEFI_CORPORA does not name the folder of recorded games")
    if not Path(folder).is_dir():
        pytest.fail(f"HNEFI_CORPORA={folder!r}: expected a folder")
    return Path(folder)


@pytest.fixture(autouse=True)
def _kept() -> Iterator[None]:
    """A cache that one test made unwritable is not reported in the next."""
    yield
    progress = sys.modules.get("hnefi.engine.compile.progress")
    if progress is not None:
        progress.cannot_keep("")
