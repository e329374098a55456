"""`hnefi warmup`: compile every kernel now, once, so that no later start waits for it."""

from __future__ import annotations

from .arguments import let_interrupt_end_us, parser


def main(argv: list[str]) -> int:
    """Compile or load every kernel and say how long it took."""
    options = parser(
        "warmup",
        "Compiles every kernel into the cache. Engines do that by themselves at their first start; several that "
        "start at once on an empty cache would all do it. So warm up once before a tournament.",
        ["", "--quiet"],
    )
    options.add_argument("--quiet", action="store_true", help="say nothing")
    arguments = options.parse_args(argv)
    let_interrupt_end_us()

    from hnefi.engine.warmup import warm

    seconds = warm(None if arguments.quiet else print, everything=True)
    if not arguments.quiet:
        print(f"everything is compiled ({seconds:.1f} s)")
    return 0
