"""The verbs every game has, as generic kernels: `generate(state, top)` works on any game's record.

A search that calls these names is compiled once per game and evaluator, and the next process finds it in the disk
cache. Games and evaluators bind their kernels to the names with `bind`. A verb is resolved by the types of the records:
when its caller is compiled, or at each call from Python and under NUMBA_DISABLE_JIT=1.

Every game's state record must have: `side`, `key` (full key of the position), `ply` (index into its own stacks),
`outcome` (0, or reason | (winner + 1) << WINNER, see `sides.py`), `moves` (a stack of `MOVES` int32 that `generate`
fills from `top`), `caught_top` (which grows with every captured man), `random` (8 bytes, never 0, the stream of random
moves) and `tally` (8 counters for perft and playouts). A state is changed in place; `undo` restores every byte outside
the stacks.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from ..compile import sources

KERNELS = sources.KERNELS

MOVES = 1 << 17
"""Size of the move stack. A kernel that recurses must make sure that another list of `MOST_MOVES` fits."""
MOST_MOVES = 1 << 13

NO_THREAT, THREAT, LOST = range(3)
"""Results of `threat_level`: no threat is seen; there is one that may be parried; every move loses."""


_TYPED: dict[tuple[Any, ...], Any] = {}
"""The same kernels by the verb's name and numba's types of the records."""
_OTHERWISE: dict[str, Any] = {}
"""The default kernels, for records without a bound one, by the verb's name."""
_VERBS: set[str] = set()
"""The verbs registered with numba."""


def bind(*dtypes: Any, **kernels: Any) -> None:
    """Bind each kernel to the verb of its name for records of these dtypes, in this order."""
    from numba import from_dtype

    records = tuple(map(from_dtype, dtypes))
    for name, kernel in kernels.items():
        KERNELS[name, *dtypes] = kernel
        _TYPED[name, *records] = kernel
        _known(name)


def bind_otherwise(**kernels: Any) -> None:
    """Bind each kernel to the verb of its name for all records without a bound one, now or later."""
    for name, kernel in kernels.items():
        _OTHERWISE[name] = kernel
        _known(name)


def _known(name: str) -> None:
    if name not in _VERBS:
        _VERBS.add(name)
        _overload(globals()[name])


def _overload(verb: Callable[..., Any]) -> None:
    """Tell numba to look up the kernel that is bound for a verb."""
    from numba.core.types import Record
    from numba.extending import overload

    from ..compile.jit import BINDING

    names = ", ".join(signature(verb).parameters)

    def choose(*kinds: Any) -> Any:
        records = (kind for kind in kinds if isinstance(kind, Record))
        kernel = _TYPED.get((verb.__name__, *records), _OTHERWISE.get(verb.__name__))
        if kernel is None:
            return None
        # Numba needs the verb's own parameter names; it does not support *args here.
        return eval(f"lambda {names}: kernel({names})", {"kernel": kernel})  # noqa: S307 - our own names

    overload(verb, jit_options=BINDING, strict=False)(choose)


def generate(state: Any, top: int) -> int:
    """Write all legal moves from `state.moves[top]` on; returns the index after the last."""
    return KERNELS["generate", state.dtype](state, top)  # type: ignore[no-any-return]


def generate_noisy(state: Any, top: int) -> int:
    """Write the noisy moves, which quiescence searches: those that capture or may end the game."""
    return KERNELS["generate_noisy", state.dtype](state, top)  # type: ignore[no-any-return]


def make(state: Any, move: int) -> None:
    """Play a legal move; `state.outcome` is set if it decides the game on the board."""
    KERNELS["make", state.dtype](state, move)


def undo(state: Any) -> None:
    """Undo the last move."""
    KERNELS["undo", state.dtype](state)


def adjudicate(state: Any, root: int) -> int:
    """The outcome by repetition or limits after a move that did not end the game on the board, else 0.

    A position that has occurred since stack index `root` counts as repeated often enough, because within a search the
    players could repeat it again. `root` < 0 applies the rule strictly.
    """
    return KERNELS["adjudicate", state.dtype](state, root)  # type: ignore[no-any-return]


def no_move_outcome(state: Any) -> int:
    """The outcome for a side to move that has no legal move."""
    return KERNELS["no_move_outcome", state.dtype](state)  # type: ignore[no-any-return]


def can_move(state: Any) -> bool:
    """Whether the side to move of an undecided position has a legal move; True in games whose `make` has already set
    the outcome if not."""
    return KERNELS["can_move", state.dtype](state)  # type: ignore[no-any-return]


def limit_salt(state: Any) -> int:
    """A salt for the table key: 0 unless a limit of plies is near enough to change a search's values."""
    return KERNELS["limit_salt", state.dtype](state)  # type: ignore[no-any-return]


def staged_generation(state: Any) -> int:
    """1 if `generate_noisy` is cheap here and finds all moves with an `order_score` above 0, or one that wins: a search
    may try these, and then moves that are `is_legal`, before it generates the others; else 0."""
    return KERNELS["staged_generation", state.dtype](state)  # type: ignore[no-any-return]


def is_legal(state: Any, move: int) -> bool:
    """Whether a move that was legal in another position of the game is legal here; only where `staged_generation`."""
    return KERNELS["is_legal", state.dtype](state, move)  # type: ignore[no-any-return]


def order_score(state: Any, move: int) -> int:
    """A cheap guess, 0 to 255, of what a move captures or threatens: the first key of move ordering."""
    return KERNELS["order_score", state.dtype](state, move)  # type: ignore[no-any-return]


def winning_move(state: Any, top: int) -> int:
    """A move that wins at once for the side to move, 0 if none is seen; `state.moves` from `top` on is scratch."""
    return KERNELS["winning_move", state.dtype](state, top)  # type: ignore[no-any-return]


def threat_level(state: Any, top: int) -> int:
    """NO_THREAT, THREAT or LOST: what the other side would threaten if it were to move, as far as it is seen.

    Call it only if the side to move has no `winning_move`; `state.moves` from `top` on is scratch.
    """
    return KERNELS["threat_level", state.dtype](state, top)  # type: ignore[no-any-return]


def make_null(state: Any) -> int:
    """A null move: let the side to move pass, against the rules; returns 0 if that makes no sense here."""
    return KERNELS["make_null", state.dtype](state)  # type: ignore[no-any-return]


def unmake_null(state: Any) -> None:
    """Undo a `make_null`."""
    KERNELS["unmake_null", state.dtype](state)


def image_key(state: Any, squares: Any) -> int:
    """The key of the position's image under the symmetry that maps square `i` to `squares[i]`."""
    return KERNELS["image_key", state.dtype](state, squares)  # type: ignore[no-any-return]


def move_index(state: Any, move: int) -> int:
    """The index of a legal move in a network's policy, which is ordered as `moves(variant)` in the game's `policy.py`.

    Games without that file have no policy networks.
    """
    return KERNELS["move_index", state.dtype](state, move)  # type: ignore[no-any-return]


def probe(state: Any, tables: Any) -> int:
    """The answer of solved tables for an undecided position, as defined in `solving.probing`; 0 if there is none."""
    kernel = KERNELS.get(("probe", state.dtype, tables.dtype), _OTHERWISE["probe"])
    return kernel(state, tables)  # type: ignore[no-any-return]


def random_move(state: Any) -> int:
    """A uniformly random legal move, 0 if there is none."""
    return KERNELS["random_move", state.dtype](state)  # type: ignore[no-any-return]


def random_slide(state: Any) -> int:
    """A move of the sliding random player of "Tablut Game AI with Temporal Difference Learning"; 0 if there is no legal
    move, -1 if it passes, which the rules do not allow."""
    kernel = KERNELS.get(("random_slide", state.dtype), _OTHERWISE["random_slide"])
    return kernel(state)  # type: ignore[no-any-return]


def pass_turn(state: Any) -> None:
    """Let the side to move pass, as a ply of the game, against the rules."""
    KERNELS.get(("pass_turn", state.dtype), _OTHERWISE["pass_turn"])(state)


def take_back(state: Any) -> None:
    """Undo the last ply, which may be a `pass_turn`."""
    KERNELS.get(("take_back", state.dtype), _OTHERWISE["take_back"])(state)


def evaluate(params: Any, state: Any) -> int:
    """The value in centipawns for the side to move, by the evaluator whose parameters are given."""
    return KERNELS["evaluate", params.dtype, state.dtype](params, state)  # type: ignore[no-any-return]


def policy(params: Any, state: Any, end: int, priors: Any) -> None:
    """Write the priors of the moves `state.moves[:end]` to `priors[:end]`: positive, not necessarily summing to 1.

    For an evaluator without a policy they follow from `order_score`.
    """
    kernel = KERNELS.get(("policy", params.dtype, state.dtype), _OTHERWISE["policy"])
    kernel(params, state, end, priors)


def value(params: Any, state: Any) -> float:
    """The value for the attackers (the first side), a real number, by the evaluator whose parameters are given.

    Unlike `evaluate` it is not rounded: searches that break exact ties at random compare these.
    """
    return KERNELS["value", params.dtype, state.dtype](params, state)  # type: ignore[no-any-return]


def gradient(params: Any, state: Any, slopes: Any) -> float:
    """As `value`, writing its derivatives by the evaluator's weights to `slopes.slope`."""
    return KERNELS["gradient", params.dtype, state.dtype, slopes.dtype](params, state, slopes)  # type: ignore[no-any-return]
