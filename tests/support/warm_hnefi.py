"""`hnefi` as a fork of what is loaded: python -P warm_hnefi.py ARGUMENTS... (see warm_engines.py)

For runs that nobody ends: a signal to its group does not reach what it has started.
"""

from __future__ import annotations

import sys

from hnefi.tools.cli import main

if __name__ == "__main__":
    sys.exit(main())
