"""`hnefi solve verify`: every value of a table against its moves, or random ones against a proof; a proof tree."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hnefi.protocol.hosts.exit_codes import INTERRUPTED

from ..common import arguments, interrupts
from ..common.live import Live, duration
from .files import opened_any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from hnefi.engine.solving.proof_tree import Tree
    from hnefi.engine.solving.table import Table

COMPARED_PLIES = 9
"""The longest win that is proven in a comparison; longer ones take too many moves."""


def main(argv: list[str]) -> int:
    """Verify; 0 if everything agrees, else 1."""
    parser = arguments.parser(
        "solve verify",
        "Reads a whole table and compares every position with the best of what its legal moves lead to. If all agree, "
        "every value in it is right. In a proof tree, the winner needs one move that leads on, and the other side "
        "must have none that leads elsewhere. With --proofs, the values of random positions are proven by a search "
        f"instead, up to {COMPARED_PLIES} plies; with --df-pn as well, by proof-number search: who wins, however long "
        "it takes.",
        [
            "mini-four.taflbase",
            "mini-six.taflbase --jobs 2",
            "mini-four.taflbase --proofs 10000",
            "mini-four.taflbase --proofs 10000 --df-pn",
            "mini-edge.tafltree",
        ],
    )
    parser.add_argument("file", metavar="FILE", help="a table or a proof tree, or the name of one that ships")
    parser.add_argument("--jobs", type=arguments.positive, default=1, metavar="J", help="threads (1)")
    parser.add_argument(
        "--proofs",
        type=arguments.positive,
        metavar="N",
        help="prove the values of N random positions instead",
    )
    parser.add_argument(
        "--df-pn", action="store_true", help="with --proofs: by proof-number search, winners only"
    )
    parser.add_argument(
        "--seed", type=arguments.natural, default=1, metavar="S", help="seed of these positions (1)"
    )
    parser.add_argument("--quiet", action="store_true", help="nothing but the result and errors")
    arguments.add_plain(parser)
    given = parser.parse_args(argv)
    from hnefi.engine.solving.table import Table

    if given.df_pn and given.proofs is None:
        parser.error("--df-pn: expected together with --proofs")
    with opened_any(parser, given.file) as table:
        if not isinstance(table, Table):
            if given.proofs is not None:
                parser.error(
                    f"--proofs: expected a table; {given.file} is a proof tree, and a tree is always compared as a "
                    "whole"
                )
            return _check_tree(table)
        if given.proofs is not None:
            return _compare(table, given)
        from . import report
        from .build import load

        live = Live(sys.stderr, plain=given.plain)
        with interrupts.caught(lambda: ["hnefi solve: interrupted"]) as caught:
            words = load(table, _shown(live, given, "read"))
            faults, where = report.check(table, words, given.jobs, _shown(live, given, "compared"))
            digest = report.digest(words, table.header.bits)
        live.close()
        if caught.ended:
            return INTERRUPTED
        if faults or digest != table.header.digest:
            if faults:
                print(
                    f"{table.path}: {faults} of {len(words)} positions disagree with their moves, one is {where}"
                )
            else:
                print(f"{table.path}: the codes have the digest {digest}, expected {table.header.digest}")
            return 1
        print(f"{table.path}: all {len(words)} positions agree with their moves")
    return 0


def _shown(live: Live, given: argparse.Namespace, done: str) -> Callable[[float], None]:
    """Shows the share that is done, and how long the rest takes."""
    from .build import Clock

    clock = Clock()

    def shown(share: float) -> None:
        left = clock.left(share)
        eta = "" if left is None else f", ETA {duration(left)}"
        if not given.quiet:
            live.step(lambda: f"{100 * share:.0f} % {done}{eta}")

    return shown


def _check_tree(tree: Tree) -> int:
    """Compare every position of a proof tree with its moves; 1 if one disagrees."""
    with interrupts.caught(lambda: ["hnefi solve: interrupted"]) as caught:
        faults = tree.faults(interrupts.check)
    if caught.ended:
        return INTERRUPTED
    positions = tree.header.positions
    if faults:
        print(f"{tree.path}: {faults} of {positions} positions disagree with their moves")
        return 1
    winner = "attackers" if tree.header.winner == 0 else "defenders"
    print(f"{tree.path}: all {positions} positions agree with their moves: the {winner} win each of them")
    return 0


def _compare(table: Table, given: argparse.Namespace) -> int:
    """Prove random positions of a table; 1 if the table is wrong."""
    from .proofs import compare, compare_winners

    live = Live(sys.stderr, plain=given.plain)
    share = _shown(live, given, f"of {given.proofs} proven")

    def shown(done: int) -> None:
        share(done / given.proofs)

    with interrupts.caught(lambda: ["hnefi solve: interrupted"]) as caught:
        if given.df_pn:
            found = compare_winners(table, given.proofs, given.seed, shown)
        else:
            found = compare(table, given.proofs, given.seed, COMPARED_PLIES, shown)
    live.close()
    if caught.ended:
        return INTERRUPTED
    how = "" if given.df_pn else " in as many plies as it says"
    within = " that either side can force" if given.df_pn else f" within {COMPARED_PLIES} plies"
    print(
        f"{table.path}: {found.agreed} wins proven{how}, {found.undecided} positions without a win{within}, "
        f"{found.too_deep} left out as too {'hard' if given.df_pn else 'deep'}, {len(found.wrong)} wrong"
    )
    for fen in found.wrong[:10]:
        print(f"  {fen}")
    return 1 if found.wrong else 0
