"""Shares of a budget tree that always add up among siblings: one weight moves, the others keep their proportions."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpuplan.fairshare.model import BudgetNode

#: The largest share that a budget can be given while a sibling has any.
MOST_SHARE = 0.99


@dataclass(frozen=True, slots=True)
class Row:
    """A budget in the order of the file: its path in words, its place in a scenario, its parent's row (-1: none)."""

    path: str
    name: str
    place: str
    depth: int
    parent: int
    leaf: bool


def rows_of(budget: Sequence[BudgetNode]) -> list[Row]:
    """The budgets of a tree, parents before children, siblings in the order of the file."""
    found: list[Row] = []

    def walk(siblings: Sequence[BudgetNode], above: str, place: str, depth: int, parent: int) -> None:
        for number, node in enumerate(siblings):
            path, here = f"{above}/{node.name}" if above else node.name, f"{place}.{number}"
            found.append(Row(path, node.name, here, depth, parent, not node.children))
            walk(node.children, path, f"{here}.children", depth + 1, len(found) - 1)

    walk(budget, "", "budget", 0, -1)
    return found


def weights_of(budget: Sequence[BudgetNode]) -> list[float]:
    """Their weights, in the same order."""

    def walk(siblings: Sequence[BudgetNode]) -> Iterator[float]:
        for node in siblings:
            yield node.weight
            yield from walk(node.children)

    return list(walk(budget))


def families(rows: Sequence[Row]) -> dict[int, list[int]]:
    """Rows of the siblings below each row (-1: of the budgets at the top)."""
    found: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        found.setdefault(row.parent, []).append(number)
    return found


def among_siblings(rows: Sequence[Row], weights: Sequence[float]) -> list[float]:
    """Share of each budget among its siblings; they add up to 1 wherever one of them has a weight."""
    found = [0.0] * len(rows)
    for siblings in families(rows).values():
        total = math.fsum(weights[row] for row in siblings)
        for row in siblings:
            found[row] = weights[row] / total if total > 0 else 0.0
    return found


def of_all(rows: Sequence[Row], among: Sequence[float]) -> list[float]:
    """Share of each budget of the whole cluster: the product along its path."""
    found = [0.0] * len(rows)
    for number, row in enumerate(rows):
        found[number] = among[number] * (1.0 if row.parent < 0 else found[row.parent])
    return found


def rest(rows: Sequence[Row], weights: Sequence[float], row: int) -> float:
    """Sum of the weights of a budget's siblings."""
    siblings = families(rows)[rows[row].parent]
    return math.fsum(weights[one] for one in siblings if one != row)


def weight_for(share: float, others: float) -> float:
    """The weight that is a share (0 to 1) beside siblings that weigh `others`; three digits of it are exact at least.

    ``share = weight / (weight + others)``; the siblings' own proportions stay. 0 is muted; the whole is
    `MOST_SHARE`, for a sibling that has any keeps some.
    """
    if share <= 0:
        return 0.0
    part = min(share, MOST_SHARE)
    return float(f"{part / (1 - part) * others:.5g}")


def percents(parts: Sequence[float], digits: int = 1) -> list[float]:
    """Parts of 1 as per cent with so many digits that add up to exactly 100 (largest remainders), or to 0."""
    unit = 10**digits
    exact = [part * 100 * unit for part in parts]
    whole = [math.floor(value + 1e-9) for value in exact]
    missing = (100 * unit if any(parts) else 0) - sum(whole)
    by_rest = sorted(range(len(parts)), key=lambda k: whole[k] - exact[k])
    for k in by_rest[: max(0, missing)]:
        whole[k] += 1
    return [value / unit for value in whole]


def changed(rows: Sequence[Row], before: Sequence[float], now: Sequence[float]) -> Mapping[str, float]:
    """The weights that differ, by dotted path of the scenario (``"budget.0.children.1.weight"``)."""
    both = zip(rows, before, now, strict=True)
    return {f"{row.place}.weight": new for row, old, new in both if new != old}
