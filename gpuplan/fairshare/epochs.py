"""The budgets over time: one tree from the start, another from every change on."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gpuplan.fairshare.model import BudgetChange, BudgetNode, Floats, Int64
from gpuplan.fairshare.tree import Tree, tree_of

Budget = tuple[BudgetNode, ...]


@dataclass(frozen=True, slots=True)
class Epochs:
    """``E`` trees of the same paths, each with the shares that hold until the next one's start.

    Attributes
    ----------
    start_s : int64[E]
        Ascending; the first is 0.
    budgets : tuple
        Top-level budgets of each.
    trees : tuple of Tree
    """

    start_s: Int64
    budgets: tuple[Budget, ...]
    trees: tuple[Tree, ...]

    def __len__(self) -> int:
        return len(self.trees)

    def index(self, times: Int64 | int) -> Int64:
        """Which of them holds at each instant (at a start: the one that starts), int64 of the same shape."""
        found: Int64 = np.searchsorted(self.start_s, times, "right") - 1
        return found

    def at(self, t: int) -> Tree:
        """The tree that holds at an instant."""
        return self.trees[int(self.index(t))]

    def shares(self, times: Int64) -> Floats:
        """Shares of all budgets at instants, float64[B, T]."""
        every = np.stack([tree.share for tree in self.trees], axis=1)
        found: Floats = every[:, self.index(times)]
        return found

    def seconds(self, start: int, end: int) -> list[int]:
        """Seconds of a span during which each of them holds."""
        ends = [*self.start_s[1:].tolist(), max(end, int(self.start_s[-1]))]
        pairs = zip(self.start_s.tolist(), ends, strict=True)
        return [max(0, min(end, last) - max(start, first)) for first, last in pairs]

    def mean_shares(self, end_s: int) -> Floats:
        """Shares of all budgets, their mean from the start to ``end_s``, float64[B]."""
        first = self.trees[0]
        seconds = self.seconds(0, end_s)
        if not any(seconds[1:]):
            return first.share
        sums = [
            sum((n * tree.exact[b] for n, tree in zip(seconds, self.trees, strict=True)), Fraction(0))
            for b in range(len(first.path))
        ]
        return np.array([float(total / end_s) for total in sums])


def epochs_of(budget: Budget, changes: tuple[BudgetChange, ...]) -> Epochs:
    """The trees of a scenario; a change that leaves every share as it is makes none.

    Parameters
    ----------
    budget
        Top-level budgets as they are at first.
    changes
        Paths are those of the tree.
    """
    starts, budgets = [0], [budget]
    present = budget
    for change in sorted(changes, key=lambda change: change.at_s):
        present = reweighted(present, dict(change.weights))
        if change.at_s == 0:
            budgets[0] = present
        elif tree_of(present).among != tree_of(budgets[-1]).among:
            starts.append(change.at_s)
            budgets.append(present)
    return Epochs(
        np.array(starts, np.int64), tuple(budgets), tuple(tree_of(siblings) for siblings in budgets)
    )


def reweighted(siblings: Budget, weights: Mapping[str, float], above: str = "") -> Budget:
    """The same budgets with the weights that are given by path; the others keep their own."""
    found = []
    for node in siblings:
        path = f"{above}/{node.name}" if above else node.name
        weight = weights.get(path, node.weight)
        found.append(BudgetNode(node.name, weight, reweighted(node.children, weights, path)))
    return tuple(found)
