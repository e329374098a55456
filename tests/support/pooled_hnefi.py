"""`hnefi` whose own engines are those of a pool: python -P pooled_hnefi.py SOCKET ARGUMENTS... (see engine_pool.py)"""

from __future__ import annotations

import sys
from pathlib import Path

from hnefi.protocol import client
from hnefi.tools.cli import main

RELAY = str(Path(__file__).with_name("engine_relay.py"))
_own_command = client.own_command


def own_command(*flags: str) -> list[str]:
    return [sys.executable, "-I", "-S", RELAY, sys.argv[1]] if not flags else _own_command(*flags)


client.own_command = own_command
sys.exit(main(sys.argv[2:]))
