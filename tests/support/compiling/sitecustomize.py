"""With this folder in PYTHONPATH our own engine compiles until the file is there that `HNEFI_TEST_GATE` names."""

import os
import sys
from pathlib import Path

if "HNEFI_TEST_GATE" in os.environ and sys.orig_argv[1:3] == ["-m", "hnefi.protocol"]:
    os.execv(
        sys.executable,
        [
            sys.executable,
            str(Path(__file__).resolve().parent.parent / "compiling_engine.py"),
            os.environ["HNEFI_TEST_GATE"],
        ],
    )
