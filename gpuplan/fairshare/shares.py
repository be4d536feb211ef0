"""Who is owed what: shares of a tree of budgets, exact, and what other schedulers make of the same numbers."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from gpuplan.fairshare.jobs import natural_key
from gpuplan.fairshare.model import BudgetNode, Int64
from gpuplan.fairshare.tree import Tree, tree_of


def partition(tree: Tree, gpus: int) -> Int64:
    """GPUs dealt out to the teams for good, whole ones by largest remainder, int64[L].

    Parameters
    ----------
    tree
        Shares of budgets; siblings that all weigh 0 leave their part to nobody.
    gpus
        GPUs to deal out.
    """
    shares = [gpus * tree.exact[leaf] for leaf in tree.leaves.tolist()]
    return np.array(largest_remainder(shares), np.int64)


def largest_remainder(shares: Sequence[Fraction]) -> list[int]:
    """Whole numbers that add up to the (floored) sum of the shares, each its share rounded down or up.

    What rounding down leaves goes, one each, to the largest remainders; ties go by position.
    """
    whole = [share.numerator // share.denominator for share in shares]
    left = int(sum(shares, Fraction(0))) - sum(whole)
    order = sorted(range(len(shares)), key=lambda i: whole[i] - shares[i])  # stable: ties by position
    for i in order[:left]:
        whole[i] += 1
    return whole


def share_out(budget: Sequence[BudgetNode], demand: Mapping[str, int], gpus: int) -> dict[str, Fraction]:
    """GPUs of each team now: level by level by weight, what one does not want to its siblings first.

    A budget of weight 0 (or below one) gets only what nobody else wants.

    Parameters
    ----------
    budget
        Top-level budgets.
    demand
        GPUs that each team wants, by path (``"language/pretraining"``); one that is missing wants none.
    gpus
        GPUs that there are.

    Returns
    -------
    dict
        Exact GPUs by team, in the tree's order; together at most ``gpus``, none above its demand.

    Raises
    ------
    KeyError
        If a demand names no team of the tree.
    """
    tree = tree_of(tuple(budget))
    unknown = sorted(set(demand) - set(tree.teams))
    if unknown:
        raise KeyError(f"no such team: {unknown[0]!r}")
    given = dict.fromkeys(tree.teams, Fraction(0))
    left = Fraction(gpus)
    for worthless in (False, True):
        wanted = {
            tree.path[leaf]: Fraction(demand.get(tree.path[leaf], 0))
            for leaf in tree.leaves.tolist()
            if (tree.exact[leaf] == 0) == worthless
        }
        got = _descend(budget, "", left, wanted)
        for team, amount in got.items():
            given[team] += amount
        left -= sum(got.values(), Fraction(0))
    return given


def whole_gpus(shares: Mapping[str, Fraction]) -> dict[str, int]:
    """The same shares in whole GPUs by largest remainder; ties go by the order of the mapping."""
    return dict(zip(shares, largest_remainder(list(shares.values())), strict=True))


def _descend(
    siblings: Sequence[BudgetNode], above: str, amount: Fraction, wanted: Mapping[str, Fraction]
) -> dict[str, Fraction]:
    """Amounts of the teams below ``siblings``; teams that want nothing are left out."""
    nodes = sorted(siblings, key=lambda node: (natural_key(node.name), node.name))
    paths = [f"{above}/{node.name}" if above else node.name for node in nodes]
    wants = [_wanted(node, path, wanted) for node, path in zip(nodes, paths, strict=True)]
    parts = fill([Fraction(node.weight) for node in nodes], wants, amount)
    found: dict[str, Fraction] = {}
    for node, path, part in zip(nodes, paths, parts, strict=True):
        if part and node.children:
            found.update(_descend(node.children, path, part, wanted))
        elif part:
            found[path] = part
    return found


def _wanted(node: BudgetNode, path: str, wanted: Mapping[str, Fraction]) -> Fraction:
    if not node.children:
        return wanted.get(path, Fraction(0))
    below = (_wanted(child, f"{path}/{child.name}", wanted) for child in node.children)
    return sum(below, Fraction(0))


def fill(weights: Sequence[Fraction], wants: Sequence[Fraction], amount: Fraction) -> list[Fraction]:
    """An amount among siblings in the ratio of their weights, none above its wants (max-min fairness).

    What is left then goes to those of weight 0, in equal parts.
    """
    parts = [Fraction(0)] * len(weights)
    for group, weigh in (
        ([i for i, w in enumerate(weights) if w], lambda i: weights[i]),
        ([i for i, w in enumerate(weights) if not w], lambda _i: Fraction(1)),
    ):
        amount -= _water(group, weigh, wants, amount, parts)
    return parts


def _water(
    group: list[int],
    weigh: Callable[[int], Fraction],
    wants: Sequence[Fraction],
    amount: Fraction,
    parts: list[Fraction],
) -> Fraction:
    """Fill ``parts`` of a group up to one level of part / weight; what was given."""
    left = amount
    total = sum((weigh(i) for i in group), Fraction(0))
    for i in sorted(group, key=lambda i: wants[i] / weigh(i)):  # who is content first leaves to the others
        parts[i] = min(wants[i], left * weigh(i) / total)
        left -= parts[i]
        total -= weigh(i)
    return amount - left


# ----------------------------------------------------------------------------- Slurm's numbers


def usage_of_all(parent: Int64, usage: Sequence[Fraction | int | float]) -> list[Fraction]:
    """Usage of every budget: a parent's is the sum of its children's (what is given for parents is ignored)."""
    has_children = set(parent.tolist())
    total = [Fraction(0) if b in has_children else Fraction(u) for b, u in enumerate(usage)]
    for b in range(len(total) - 1, 0, -1):  # parents come before their children
        total[int(parent[b])] += total[b]
    return total


def fair_tree_order(
    parent: Int64, share: Sequence[Fraction | int | float], usage: Sequence[Fraction | int | float]
) -> list[list[int]]:
    """Leaves in the order of Slurm's Fair Tree, ties together.

    From the root, children go by level fairshare ``LF = S / U`` (share and usage normalized to the
    siblings), the highest first; nothing used is infinite. Sibling budgets with equal LF have their
    children merged; leaves with equal LF share a rank.

    Source: Slurm Workload Manager, "Fair Tree Fairshare Algorithm" (fair_tree.html), sections
    Algorithm, Level Fairshare Calculation and Ties.

    Parameters
    ----------
    parent : int64[B]
        Parents before children, -1 for the root.
    share : [B]
        Shares, compared with the siblings' alone (any scale).
    usage : [B]
        Usage of the leaves (decayed or not); parents are their sums.

    Returns
    -------
    list of lists
        Rows of leaves; those of one list have the same rank, in order of their rows.
    """
    used = usage_of_all(parent, usage)
    children: dict[int, list[int]] = {}
    for b in range(1, len(parent)):
        children.setdefault(int(parent[b]), []).append(b)
    found: list[list[int]] = []
    _rank([0], children, [Fraction(s) for s in share], used, found)
    return found


def _rank(
    parents: list[int],
    children: Mapping[int, list[int]],
    share: Sequence[Fraction],
    used: Sequence[Fraction],
    found: list[list[int]],
) -> None:
    """Append the ranks below merged ``parents``; LF is normalized within each one's own children."""
    levels: dict[Fraction, list[int]] = {}
    for up in parents:
        siblings = children.get(up, [])
        total = sum((share[b] for b in siblings), Fraction(0))
        spent = sum((used[b] for b in siblings), Fraction(0))
        for b in siblings:
            # 1 / LF sorts the other way round and is finite; without a share, any usage is too much
            inverse = Fraction(0) if not used[b] else Fraction(-1)
            if used[b] and share[b]:
                inverse = (used[b] / spent) / (share[b] / total)
            levels.setdefault(inverse, []).append(b)
    for inverse in sorted(levels, key=lambda level: (level < 0, level)):
        tied = sorted(levels[inverse])
        leaves = [b for b in tied if b not in children]
        inner = [b for b in tied if b in children]
        if leaves and inner:  # such a leaf gets the rank of the highest leaf below its tied siblings
            below: list[list[int]] = []
            _rank(inner, children, share, used, below)
            found.append(sorted(leaves + (below[0] if below else [])))
            found.extend(below[1:])
        elif leaves:
            found.append(leaves)
        else:
            _rank(inner, children, share, used, found)


def classic_factors(
    parent: Int64, share: Sequence[Fraction | int | float], usage: Sequence[Fraction | int | float]
) -> npt.NDArray[np.float64]:
    """Slurm's classic fair-share factor ``F = 2 ** (-U_E / S)`` of every budget, float64[B].

    ``U_E = U + (U_E of the parent - U) x share / shares of all siblings`` (below the top level; there
    ``U_E = U``), with ``U`` the part of all usage and ``S`` the product of the path's normalized shares.

    Source: Slurm Workload Manager, "Classic Fairshare Algorithm" (classic_fair_share.html).

    Parameters
    ----------
    parent : int64[B]
        Parents before children, -1 for the root.
    share : [B]
        Shares, compared with the siblings' alone.
    usage : [B]
        Usage of the leaves as part of the whole machine's; parents are their sums.
    """
    used = usage_of_all(parent, usage)
    shares = [Fraction(s) for s in share]
    siblings = [Fraction(0)] * len(parent)
    for b in range(1, len(parent)):
        siblings[int(parent[b])] += shares[b]
    normal, effective = [Fraction(1)] * len(parent), list(used)
    for b in range(1, len(parent)):
        up = int(parent[b])
        part = shares[b] / siblings[up] if siblings[up] else Fraction(0)
        normal[b] = normal[up] * part
        if up != 0:
            effective[b] = used[b] + (effective[up] - used[b]) * part
    return np.array(
        [2.0 ** -float(e / s) if s else float(e == 0) for e, s in zip(effective, normal, strict=True)]
    )
