"""How commands end: one table of exit codes, and what it means that a disk does not take what is written.

The arena's table is everybody's (`docs/endings.md`). A command that was interrupted and has nothing to go on with does
not choose a code: the signal ends it, and its shell says 130, 143 or 129 (`SIGNALLED` where we say it ourselves).
"""

from __future__ import annotations

import errno

DONE = 0
INTERRUPTED = 1
"""Ended by Ctrl-C, TERM or HUP; what was finished is kept, and the same command, or the one printed, continues."""
USAGE = 2
"""Called wrongly, or a file that cannot be used."""
FAULTS = 3
"""An engine that is not ours failed, or a broker."""
STORAGE = 4
"""Something could not be written: nothing counts that is not on the disk."""
OURS_FAILED = 4
"""Our own engine failed where `FAULTS` speaks of others."""
H0_ACCEPTED = 10
INCONCLUSIVE = 11
"""How a sequential test ended, where that is asked for; H1 is `DONE`."""
SIGNALLED = 130
"""What a shell says of a program that Ctrl-C ended: nothing to go on with."""

UNWRITABLE = frozenset(
    getattr(errno, name)
    for name in (
        "ENOSPC",
        "EDQUOT",
        "EROFS",
        "EFBIG",
        "EIO",
        "EACCES",
        "EPERM",
        "EMFILE",
        "ENFILE",
        "ENOTDIR",
    )
    if hasattr(errno, name)
)

FULL = frozenset(getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG") if hasattr(errno, name))
"""Why a write to a disk fails; other reasons mean that the reader of our output has gone."""


def code_of(error: BaseException) -> int:
    """The exit code for an error that is reported in a sentence: STORAGE where its cause is a full disk, or a missing
    right to write."""
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, OSError) and behind.errno in UNWRITABLE:
            return STORAGE
        behind = behind.__context__
    return USAGE


def unwritten(error: OSError) -> str:
    """What could not be written, and why: `FILE: No space left on device`."""
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason
