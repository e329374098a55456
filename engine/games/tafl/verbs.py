"""Tafl's kernels under the names every game has."""

from __future__ import annotations

from ..interface import bind
from . import adjudication, make, noisy, policy, random_move, random_slide, setup, threats
from .state import TAFL

bind(
    TAFL,
    generate=adjudication.generate,
    generate_noisy=noisy.generate_noisy,
    staged_generation=noisy.staged_generation,
    is_legal=adjudication.is_legal,
    make=make.make,
    undo=make.undo,
    adjudicate=adjudication.adjudicate,
    no_move_outcome=adjudication.no_move_outcome,
    can_move=adjudication.can_move,
    limit_salt=adjudication.limit_salt,
    order_score=noisy.order_score,
    winning_move=threats.winning_move,
    threat_level=threats.threat_level,
    make_null=threats.make_null,
    unmake_null=threats.unmake_null,
    image_key=setup.image_key,
    move_index=policy.move_index,
    random_move=random_move.random_move,
    random_slide=random_slide.random_slide,
    pass_turn=random_slide.pass_turn,
    take_back=random_slide.take_back,
)
