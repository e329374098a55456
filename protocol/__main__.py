"""`python -m hnefi.protocol` is the engine process."""

from .server import main

main()
