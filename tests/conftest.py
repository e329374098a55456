"""What several tests share: the recorded games, and how thorough the random ones are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_report_header() -> str:
    folder = os.environ.get("HNEFI_CORPORA", "not named (HNEFI_CORPORA): their tests are skipped")
    return f"recorded games: {folder}; HNEFI_THOROUGH={os.environ.get('HNEFI_THOROUGH', '1')}"


@pytest.fixture
def corpora() -> Path:
    """The folder of recorded games; the test is skipped where there is none."""
    folder = os.environ.get("HNEFI_CORPORA")
    if not folder:
        pytest.skip("HNEFI_CORPORA does not name the folder of recorded games")
    if not Path(folder).is_dir():
        pytest.fail(f"HNEFI_CORPORA={folder!r}: expected a folder")
    return Path(folder)
