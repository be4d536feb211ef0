"""The budgets over time: one tree from the start, another from every change on."""

from collections.abc import Mapping
from dataclasses import dataclass

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

    def seconds(self, start: int, end: int) -> dict[int, int]:
        """Seconds of a span (not empty) during which each of them holds, without those that never do."""
        first, last = int(self.index(start)), int(self.index(end - 1))
        edges = [start, *self.start_s[first + 1 : last + 1].tolist(), end]
        return {first + k: edges[k + 1] - edges[k] for k in range(last - first + 1)}

    def mean_shares(self, end_s: int) -> Floats:
        """Shares of all budgets, their mean from the start to ``end_s``, float64[B]."""
        seconds = self.seconds(0, max(1, end_s))
        if len(seconds) == 1:
            return self.trees[0].share
        found = np.zeros(len(self.trees[0].path))
        for k, held in seconds.items():
            found += self.trees[k].share * held
        return found / end_s


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
