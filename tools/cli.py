"""The command `hnefi`: a table from subcommand to the module that does it, imported only when chosen.

Modules are named in text, so that `hnefi engine` reaches its first answer without importing anything it does not
need, and so that the tools may start an adapter without depending on it. A subcommand's module has
``main(argv: list[str]) -> int`` and answers ``--help`` itself.
"""

from __future__ import annotations

import errno
import os
import sys

from hnefi.protocol.hosts.exit_codes import FULL, SIGNALLED, STORAGE, UNWRITABLE, USAGE, unwritten

COMMANDS: dict[str, tuple[str, str]] = {
    "engine": (
        "hnefi.protocol.server",
        "the engine on standard input and output, for a GUI or by hand",
    ),
    "play": ("hnefi.gui_adapter.terminal.command", "a game at the terminal, against an engine or a person"),
    "variants": ("hnefi.tools.variants", "list the rule sets, with board, pieces, aliases and source"),
    "players": (
        "hnefi.tools.players",
        "list the players, what each plays and how, and ratings where measured",
    ),
    "engines": ("hnefi.tools.engines", "other programs as opponents, under names of your own"),
    "rules": ("hnefi.tools.rules", "show the rules of one variant, in words, as OTN or as hash"),
    "verify": ("hnefi.tools.verify", "read recorded games and report every disagreement with the rules"),
    "convert": ("hnefi.tools.convert", "convert recorded games from one format into another, and check them"),
    "analyze": (
        "hnefi.tools.analyze.command",
        "best lines of a position; recorded games with every mistake, annotated and as a chart",
    ),
    "book": ("hnefi.tools.book", "make opening books from games, and look into them"),
    "perft": ("hnefi.tools.perft", "count the leaves of the move tree at a depth"),
    "bench": (
        "hnefi.tools.bench.command",
        "the search's signature (its node count); `bench speed` and others measure",
    ),
    "evaluator": ("hnefi.tools.evaluator.command", "show, verify or compare evaluator files"),
    "arena": (
        "hnefi.tools.arena.command",
        "engines play each other: which is stronger, and which side is easier",
    ),
    "ladder": (
        "hnefi.tools.ladder.command",
        "the scale of strength: ratings of all players, and where a new player stands on it",
    ),
    "balance": (
        "hnefi.tools.balance.command",
        "which side a rule set favours, what a switch changes, what would make it fair",
    ),
    "mqtt": ("hnefi.gui_adapter.mqtt.command", "the engine as a service behind an MQTT broker"),
    "web": ("hnefi.gui_adapter.web.command", "the board in the browser: play, analyse, load and save games"),
    "tablut": (
        "hnefi.gui_adapter.tablut.command",
        "play on the server of the Bologna Tablut competition, or be that server",
    ),
    "otep": (
        "hnefi.gui_adapter.otep.command",
        "OpenTafl: run our engine under its board, or its engine as one of ours",
    ),
    "htp": (
        "hnefi.gui_adapter.htp.command",
        "the Hnefatafl Text Protocol: an engine, a player on a light server, their engines",
    ),
    "hnefatafl-org": (
        "hnefi.gui_adapter.hnefatafl_org.command",
        "the engine as an account on the public server hnefatafl.org",
    ),
    "evolve": ("hnefi.tools.evolve.command", "evaluators that learn by playing against each other"),
    "train": (
        "hnefi.tools.train.command",
        "train a network on games of the engine with itself, round by round",
    ),
    "tune": (
        "hnefi.tools.tune.command",
        "weights of the hand-written evaluator, fitted to games with itself",
    ),
    "experiments": (
        "hnefi.tools.experiments.command",
        "published experiments repeated, with error bars: tables, figures, verdicts",
    ),
    "tactics": (
        "hnefi.tools.tactics.command",
        "positions with proven wins and losses: solved by an engine, proven again, found",
    ),
    "puzzle": ("hnefi.gui_adapter.terminal.puzzle", "proven positions as exercises, with a rating for you"),
    "solve": (
        "hnefi.tools.solve.command",
        "small boards solved: the exact value of every position, as a table that answers",
    ),
    "completion": ("hnefi.tools.completion", "has bash, zsh or fish complete the words of hnefi"),
    "warmup": ("hnefi.tools.warmup", "compile the kernels of play now rather than at the first start"),
}

BELOW: dict[str, str] = {"puzzle make": "hnefi.tools.tactics.make"}
"""Subcommands of subcommands that another room does."""
RENAMED = {"replay": "verify"}
"""Subcommands that had another name before this release: the old one works, and says what is new."""
ADAPTERS = frozenset(
    command for command, (module, _) in COMMANDS.items() if not module.startswith("hnefi.tools.")
) - {"puzzle"}
"""Commands that handle signals themselves and say in their own way that kernels are being compiled. `puzzle` computes
proofs in this process, as the tools do, so it is treated like one of them."""


def main(argv: list[str] | None = None) -> int:
    """Run one subcommand; the exit status is 0 if all went well, 1 if it found fault or was interrupted, 2 if it was
    called wrongly, 4 if something could not be written (docs/endings.md)."""
    if argv is None:
        _open_streams()
        _write_whole_lines()
        _leave_garbage()
        if "_ARGCOMPLETE" in os.environ:
            return _complete()
    arguments = sys.argv[1:] if argv is None else argv
    command = arguments[0] if arguments else "--help"
    try:
        try:
            status = _run(command, arguments[1:], program=argv is None)
        finally:
            # Also where a help has been printed and the parser leaves: else nobody hears of a full disk.
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return SIGNALLED
    except BrokenPipeError:
        # The reader of our output has gone (`hnefi variants | head`); Python would complain again while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if command in ADAPTERS and error.errno not in FULL:
            raise
        return _unwritten(command, error)
    interrupts = sys.modules.get("hnefi.tools.common.interrupts")
    return status if interrupts is None else interrupts.ended(status)


def _complete() -> int:
    """Answer a shell that completes a command line."""
    try:
        from . import completion

        return completion.complete(COMMANDS, lambda command, words: _run(command, words, program=False))
    except ImportError:
        return 0


def _open_streams() -> None:
    """The null device where a standard stream is closed: Python has None there, and the next file its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


def _write_whole_lines() -> None:
    """Under PYTHONUNBUFFERED `print` writes a text and its newline one by one, and what another thread or process says
    on the same pipe gets between them: a line is one write here, as it is without that variable."""
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "write_through", False):
            stream.reconfigure(write_through=False, line_buffering=True)  # type: ignore[union-attr]


def _leave_garbage() -> None:
    """Imports make none, and the system takes all memory in the end: looking for it is a quarter of a short command."""
    import atexit
    import gc

    gc.set_threshold(50_000)
    atexit.register(gc.freeze)


def _hear_no_more() -> None:
    """The command has ended: a Ctrl-C that comes while Python itself ends would only be a traceback."""
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _unwritten(command: str, error: OSError) -> int:
    """What a disk did not take, or that a file is in the place of a command's folder or the reverse, in a sentence; any
    other error is a mistake of ours and shows where."""
    if error.errno in (errno.EEXIST, errno.EISDIR):
        expected = "a folder" if error.errno == errno.EEXIST else "a file"
        print(f"hnefi {command}: {unwritten(error)}: expected {expected}", file=sys.stderr)
        return USAGE
    if error.errno not in UNWRITABLE:
        raise error
    print(f"hnefi {command}: {unwritten(error)}: expected a place that can be written", file=sys.stderr)
    return STORAGE


def _run(command: str, arguments: list[str], *, program: bool) -> int:
    """Import the subcommand's module and run its `main`, or say what the program itself is asked."""
    if command in RENAMED:
        print(f"note: hnefi {command} is now hnefi {RENAMED[command]}", file=sys.stderr)
        command = RENAMED[command]
    if command in COMMANDS:
        from importlib import import_module

        if command in ADAPTERS:
            try:
                return int(import_module(COMMANDS[command][0]).main(arguments))
            finally:
                if program:
                    _hear_no_more()
        from .common import compiling, interrupts

        if program:
            interrupts.is_program()
        if command != "arena":
            # The arena listens from its first moment; the others when there is something to keep.
            interrupts.let_them_end_us()
        with compiling.shown_on_stderr(quiet="--quiet" in arguments):
            below = BELOW.get(f"{command} {arguments[0]}") if arguments else None
            if below is not None:
                return int(import_module(below).main(arguments[1:]))
            return int(import_module(COMMANDS[command][0]).main(arguments))
    if command in ("-h", "--help", "help"):
        print(overview())
        return 0
    if command in ("-V", "--version", "version"):
        from hnefi.engine.about import NAME, VERSION

        print(NAME, VERSION)
        return 0
    print(unknown(command), file=sys.stderr)
    return USAGE


def overview() -> str:
    """What `hnefi --help` prints."""
    from hnefi.protocol.flags import filled

    lines = ["usage: hnefi COMMAND [...]   (hnefi COMMAND --help for details)", ""]
    width = max(map(len, COMMANDS))
    lines += [f"  {command:<{width}}  {sentence}" for command, (_, sentence) in COMMANDS.items()]
    lines += ["", "  hnefi --version prints the version"]
    return filled("\n".join(lines))


def unknown(command: str) -> str:
    """The complaint about a subcommand that does not exist, with the nearest one that does."""
    from difflib import get_close_matches

    near = get_close_matches(command, COMMANDS, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(COMMANDS)}"
    return f"hnefi: no command {command[:80]!r}: {hint}"


if __name__ == "__main__":
    sys.exit(main())
