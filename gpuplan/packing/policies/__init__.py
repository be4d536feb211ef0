"""The pieces of a packing policy: one file each, and one line each in `PLACEMENTS`, `ORDERS` or `EVICTIONS`."""

from dataclasses import replace

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean
from gpuplan.packing.model import Pieces
from gpuplan.packing.policies import (
    backfill,
    best_fit,
    by_model,
    cost,
    fgd,
    fifo,
    first_fit,
    keep_alive,
    lfu,
    lru,
    predicted_fit,
    round_robin,
    round_robin_skip,
    shortest,
    worst_fit,
)
from gpuplan.packing.policies.base import Eviction, Order, Piece, Placement

#: Which GPU a task goes to, in the order of tables and legends.
PLACEMENTS: tuple[Placement, ...] = (
    round_robin.PIECE,
    round_robin_skip.PIECE,
    first_fit.PIECE,
    best_fit.PIECE,
    worst_fit.PIECE,
    predicted_fit.PIECE,
    fgd.PIECE,
)

#: Which waiting task comes next.
ORDERS: tuple[Order, ...] = (fifo.PIECE, backfill.PIECE, shortest.PIECE, by_model.PIECE)

#: Which idle model goes first.
EVICTIONS: tuple[Eviction, ...] = (lru.PIECE, lfu.PIECE, cost.PIECE, keep_alive.PIECE)

#: What the pieces are of: the fields of `Pieces`.
KINDS: dict[str, tuple[Piece, ...]] = {"placement": PLACEMENTS, "order": ORDERS, "eviction": EVICTIONS}

__all__ = [
    "EVICTIONS",
    "KINDS",
    "ORDERS",
    "PLACEMENTS",
    "Eviction",
    "Order",
    "Piece",
    "Placement",
    "code_of",
    "name_of",
    "pieces_named",
]


def pieces_named(policy: str, base: Pieces = Pieces()) -> Pieces:  # noqa: B008 (a frozen value)
    """The pieces of a policy written as ``"best-fit"`` or ``"best-fit+backfill+lfu"``.

    Parameters
    ----------
    policy
        Names of pieces, at most one of each kind, in any order.
    base
        Where the pieces that are not named come from, and their numbers.

    Raises
    ------
    InputError
        For names that are not known (with the nearest that is), kinds named twice, and keep-alive where `base` has no
        time for it; all of them at once.
    """
    kind_of = {piece.name: kind for kind, pieces in KINDS.items() for piece in pieces}
    chosen: dict[str, str] = {}
    mistakes = []
    for word in policy.split("+"):
        name = word.strip()
        kind = kind_of.get(name)
        if kind is None:
            known = f"must be a piece of a policy: {', '.join(kind_of)}{did_you_mean(name, kind_of)}"
            mistakes.append(Mistake("", known, name))
        elif kind in chosen:
            mistakes.append(Mistake("", f"must name one {kind}, not also {chosen[kind]}", name))
        elif name == keep_alive.PIECE.name and base.keep_alive_us is None:
            mistakes.append(Mistake("policy.keep_alive_s", "must be given for keep-alive"))
        else:
            chosen[kind] = name
    if mistakes:
        raise InputError("policy", mistakes)
    return replace(base, **chosen)  # type: ignore[arg-type]


def name_of(pieces: Pieces) -> str:
    """The policy as it is written: ``"best-fit+fifo+lru"``."""
    return "+".join((pieces.placement, pieces.order, pieces.eviction))


def code_of(pieces: Pieces, kind: str) -> int:
    """The number by which kernels know a piece (`kind`: a key of `KINDS`)."""
    name = getattr(pieces, kind)
    return next(piece.code for piece in KINDS[kind] if piece.name == name)
