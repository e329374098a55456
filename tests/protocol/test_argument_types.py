"""Numbers within bounds and NAME=VALUE, as flags of all commands take them."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable

import pytest

from hnefi.protocol.hosts.argument_types import number, setting, whole


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (whole(0), "0", 0),
        (whole(1), "999999999", 999_999_999),
        (whole(0, 10**12 - 1), "1000000000", 10**9),
        (number(0, 3600, "seconds"), "0.5", 0.5),
        (number(0, 3600, "seconds"), "1e3", 1000.0),
        (setting, "Hash=16", ("Hash", "16")),
        (setting, " Hash = a=b ", ("Hash", "a=b")),
        (setting, "Hash=", ("Hash", "")),
    ],
)
def test_what_is_read(read: Callable[[str], object], text: str, value: object) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "texts", "expected"),
    [
        (
            whole(0),
            ("-1", "x", "", "1.0", "²", "9" * 5000, "1000000000"),
            "expected a whole number from 0 on",
        ),
        (whole(1, 10), ("0", "11"), "expected a whole number from 1 to 10"),
        (
            number(0, 60, "seconds"),
            ("-1", "61", "x", "", "nan", "inf", "9" * 5000),
            "expected seconds from 0 to 60",
        ),
        (setting, ("Hash", "=16", " =16", ""), "expected NAME=VALUE"),
    ],
)
def test_what_is_refused_is_repeated(
    read: Callable[[str], object], texts: tuple[str, ...], expected: str
) -> None:
    for text in texts:
        with pytest.raises(ArgumentTypeError) as refused:
            read(text)
        assert str(refused.value) == f"{text[:80]!r}: {expected}"
