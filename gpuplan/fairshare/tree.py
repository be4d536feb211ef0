"""The budget tree as arrays: shares of time, from the root to the teams."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from gpuplan.fairshare.jobs import natural_key
from gpuplan.fairshare.model import BudgetNode, Floats, Int64


@dataclass(frozen=True, slots=True)
class Tree:
    """``B`` budgets, parents before children, siblings in natural order of their names; 0 is the root.

    Attributes
    ----------
    path : tuple of str
        ``"language/pretraining"``; the root's is ``""``.
    parent : int64[B]
        -1 for the root.
    share : float64[B]
        Product of the path's shares among siblings, correctly rounded from exact fractions.
    exact : tuple of Fraction
        The same, exact.
    among : tuple of Fraction
        Share among siblings, exact (also below a budget that has no share itself).
    leaves : int64[L]
        Budgets without children, in the tree's order: the teams.
    """

    path: tuple[str, ...]
    parent: Int64
    share: Floats
    exact: tuple[Fraction, ...]
    among: tuple[Fraction, ...]
    leaves: Int64

    @property
    def teams(self) -> tuple[str, ...]:
        """Paths of the leaves, in the tree's order."""
        return tuple(self.path[b] for b in self.leaves.tolist())


@lru_cache(maxsize=256)
def tree_of(budget: tuple[BudgetNode, ...]) -> Tree:
    """The tree of a scenario's top-level budgets.

    A weight is compared with its siblings' alone. Where all siblings weigh 0 they share nothing.
    """
    rows: list[tuple[str, int, Fraction, Fraction, bool]] = [("", -1, Fraction(1), Fraction(1), False)]
    for row in _walk(budget, "", 0, Fraction(1), [1]):
        rows.append(row)
    share = np.array([float(row[2]) for row in rows])
    return Tree(
        tuple(row[0] for row in rows),
        np.array([row[1] for row in rows], np.int64),
        share,
        tuple(row[2] for row in rows),
        tuple(row[3] for row in rows),
        np.array([b for b, row in enumerate(rows) if row[4]], np.int64),
    )


def _walk(
    siblings: tuple[BudgetNode, ...], above: str, parent: int, share: Fraction, count: list[int]
) -> Iterator[tuple[str, int, Fraction, Fraction, bool]]:
    """Rows of the tree below ``parent``, depth first: ``count`` holds the number of rows so far."""
    total = sum((decimal_weight(node) for node in siblings), Fraction(0))
    for node in sorted(siblings, key=lambda node: (natural_key(node.name), node.name)):
        path = f"{above}/{node.name}" if above else node.name
        part = decimal_weight(node) / total if total else Fraction(0)
        mine = count[0]
        count[0] += 1
        yield path, parent, share * part, part, not node.children
        yield from _walk(node.children, path, mine, share * part, count)


def decimal_weight(node: BudgetNode) -> Fraction:
    """A weight as it is written: 33.3 is 333/10, not the nearest binary number."""
    return Fraction(repr(float(node.weight)))
