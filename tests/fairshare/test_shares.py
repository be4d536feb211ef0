"""Shares of a budget tree, whole GPUs, and the worked examples of other schedulers' documentation."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.fairshare.model import BudgetNode
from gpuplan.fairshare.shares import (
    classic_factors,
    fair_tree_order,
    fill,
    largest_remainder,
    partition,
    share_out,
    whole_gpus,
)
from gpuplan.fairshare.tree import tree_of


def leaf(name: str, weight: float = 1) -> BudgetNode:
    return BudgetNode(name, weight)


# ------------------------------------------------------------------------------------- partition


def test_partition_deals_out_all_gpus() -> None:
    """Thirds of 512: 170.67 each, floors leave 2, ties in the tree's order: 171, 171, 170."""
    tree = tree_of((leaf("c"), leaf("a"), leaf("b")))
    assert tree.teams == ("a", "b", "c")
    assert partition(tree, 512).tolist() == [171, 171, 170]
    assert partition(tree, 512).dtype == np.int64


def test_partition_of_two_levels_with_a_zero() -> None:
    """60 % x 70:30 and 40 %: of 10 GPUs 4.2, 1.8, 4.0, and nothing for the weight of 0 -> 4, 2, 4, 0."""
    tree = tree_of(
        (BudgetNode("language", 60, (leaf("pre", 70), leaf("align", 30))), leaf("robots", 40), leaf("z", 0))
    )
    assert dict(zip(tree.teams, partition(tree, 10).tolist(), strict=True)) == {
        "language/align": 2,
        "language/pre": 4,
        "robots": 4,
        "z": 0,
    }


def test_siblings_that_all_weigh_nothing_leave_their_part_to_nobody() -> None:
    tree = tree_of((BudgetNode("x", 1, (leaf("p", 0), leaf("q", 0))), leaf("y", 1)))
    assert partition(tree, 8).tolist() == [0, 0, 4]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8), st.integers(0, 2000))
@settings(deadline=None)
def test_whole_shares_add_up_and_are_rounded_up_or_down(weights: list[int], gpus: int) -> None:
    total = sum(weights)
    shares = [Fraction(gpus * w, total) if total else Fraction(0) for w in weights]
    whole = largest_remainder(shares)
    assert sum(whole) == (gpus if total else 0)
    assert all(abs(n - share) < 1 for n, share in zip(whole, shares, strict=True))


# ------------------------------------------------------------------------------------- share_out


def test_a_weight_of_zero_gets_what_nobody_else_wants() -> None:
    tree = (leaf("a", 1), leaf("z", 0))
    assert share_out(tree, {"a": 10, "z": 10}, 8) == {"a": 8, "z": 0}
    assert share_out(tree, {"a": 5, "z": 10}, 8) == {"a": 5, "z": 3}


def test_a_zero_below_a_parent_comes_after_everybody_elsewhere_too() -> None:
    """x has half by weight, but only its worthless child wants anything: y takes all it wants first."""
    tree = (BudgetNode("x", 1, (leaf("p", 0), leaf("q", 1))), leaf("y", 1))
    assert share_out(tree, {"x/p": 10, "y": 10}, 12) == {"x/p": 2, "x/q": 0, "y": 10}


def test_only_zeros_share_equally() -> None:
    assert share_out((leaf("a", 0), leaf("b", 0)), {"a": 9, "b": 9}, 8) == {"a": 4, "b": 4}


def test_a_demand_of_no_team_is_refused() -> None:
    with pytest.raises(KeyError, match="no such team: 'c'"):
        share_out((leaf("a"),), {"c": 1}, 8)


@st.composite
def trees(draw: st.DrawFn) -> tuple[BudgetNode, ...]:
    def siblings(depth: int) -> tuple[BudgetNode, ...]:
        count = draw(st.integers(1, 3))
        return tuple(
            BudgetNode(
                f"n{i}",
                draw(st.integers(0, 5)),
                siblings(depth - 1) if depth and draw(st.booleans()) else (),
            )
            for i in range(count)
        )

    return siblings(2)


@given(trees(), st.integers(0, 300), st.data())
@settings(deadline=None)
def test_shares_use_what_is_wanted_and_no_more(
    tree: tuple[BudgetNode, ...], gpus: int, data: st.DataObject
) -> None:
    wants = {team: data.draw(st.integers(0, 120)) for team in tree_of(tree).teams}
    got = share_out(tree, wants, gpus)
    assert sum(got.values()) == min(gpus, sum(wants.values()))
    assert all(0 <= got[team] <= wants[team] for team in wants)
    # who has a share, wants more and gets less than its entitlement: nowhere
    entitled = {team: gpus * tree_of(tree).exact[b] for team, b in _leaves(tree).items()}
    assert all(got[team] >= min(wants[team], entitled[team]) for team in wants)
    whole = whole_gpus(got)
    assert sum(whole.values()) == sum(got.values())
    assert all(whole[team] <= wants[team] for team in wants)


def _leaves(tree: tuple[BudgetNode, ...]) -> dict[str, int]:
    built = tree_of(tree)
    return dict(zip(built.teams, built.leaves.tolist(), strict=True))


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 60)), min_size=1, max_size=6), st.integers(0, 100)
)
@settings(deadline=None)
def test_filling_is_max_min_fair(rows: list[tuple[int, int]], amount: int) -> None:
    """All who want more stand at one level of part / weight, and nobody stands above it."""
    weights, wants = [Fraction(w) for w, _ in rows], [Fraction(d) for _, d in rows]
    parts = fill(weights, wants, Fraction(amount))
    hungry = {part / w for part, w, want in zip(parts, weights, wants, strict=True) if part < want}
    assert len(hungry) <= 1
    assert all(part / w <= level for level in hungry for part, w in zip(parts, weights, strict=True))


def test_kueue_story_3() -> None:
    """Kueue KEP-1714 "Fair Sharing", Story 3: 300 GPUs; C1 and C2 get 150 each, in C1 1A 30, 1B 30, 1C 90."""
    tree = (BudgetNode("C1", 1, (leaf("1A"), leaf("1B"), leaf("1C", 3))), BudgetNode("C2", 1, (leaf("2A"),)))
    backlog = {team: 10_000 for team in tree_of(tree).teams}
    assert share_out(tree, backlog, 300) == {"C1/1A": 30, "C1/1B": 30, "C1/1C": 90, "C2/2A": 150}


def test_kueue_story_2() -> None:
    """KEP-1714, Story 2: what 1A leaves goes to 1B and 1C while they need it, and only then to department 2."""
    d1 = BudgetNode("D1", 1, (leaf("1A"), leaf("1B"), leaf("1C")))
    d2 = BudgetNode("D2", 1, (leaf("2A"), leaf("2B"), leaf("2C")))
    wants = {team: 100 for team in tree_of((d1, d2)).teams}
    got = share_out((d1, d2), {**wants, "D1/1A": 0}, 180)
    assert got == {"D1/1A": 0, "D1/1B": 45, "D1/1C": 45, "D2/2A": 30, "D2/2B": 30, "D2/2C": 30}
    # 1B and 1C need 30 in all: the other 60 of department 1 go to 2A, 2B and 2C in equal parts
    got = share_out((d1, d2), {**wants, "D1/1A": 0, "D1/1B": 15, "D1/1C": 15}, 180)
    assert got == {"D1/1A": 0, "D1/1B": 15, "D1/1C": 15, "D2/2A": 50, "D2/2B": 50, "D2/2C": 50}


# ------------------------------------------------------------------------------------- Slurm


def test_slurm_classic_example() -> None:
    """The example of Slurm's "Classic Fairshare Algorithm" page: accounts A to F, users 1 to 5."""
    names = ["root", "A", "B", "1", "C", "2", "3", "D", "E", "4", "F", "5"]
    parent = np.array([-1, 0, 1, 2, 1, 4, 4, 0, 7, 8, 7, 10])
    share = [1, 40, 30, 1, 10, 1, 1, 60, 25, 1, 35, 1]
    usage = [Fraction(0)] * len(names)
    for user, used in (("1", "0.2"), ("2", "0.25"), ("4", "0.25")):
        usage[names.index(user)] = Fraction(used)
    factors = dict(zip(names, classic_factors(parent, share, usage).tolist(), strict=True))
    documented = {"1": 0.408479, "2": 0.022097, "3": 0.125, "4": 0.5}
    assert {user: round(factors[user], 6) for user in documented} == documented
    # the page rounds the effective usage of user 5 (0.25 x 35 / 60 = 0.145833) to .1458 first: 0.749154 there
    assert factors["5"] == pytest.approx(2 ** -(0.25 * 35 / 60 / 0.35))
    assert factors["5"] == pytest.approx(0.749154, abs=1e-4)


def test_slurm_factor_is_a_half_at_exactly_the_share() -> None:
    parent = np.array([-1, 0, 0])
    assert classic_factors(parent, [1, 1, 3], [0, Fraction(1, 4), Fraction(3, 4)])[1:].tolist() == [0.5, 0.5]


def test_slurm_fair_tree_compares_below_the_first_common_ancestor() -> None:
    """The example tree of Slurm's "Fair Tree" page, with numbers: root => Acct1 => Acct12 => UserA, Acct16 => UserB.

    LF of Acct12 = (1/2) / (3/4) = 0.67, of Acct16 = (1/2) / (1/4) = 2: all users of Acct16 come first, although
    UserC of Acct12 has used nothing (LF infinite, first of its account).
    """
    #              root Acct1 Acct12 UserA UserC Acct16 UserB
    parent = np.array([-1, 0, 1, 2, 2, 1, 5])
    order = fair_tree_order(parent, [1] * 7, [0, 0, 0, 3, 0, 0, 1])
    assert order == [[6], [4], [3]]


def test_slurm_fair_tree_goes_by_level_not_by_own_usage() -> None:
    """LF of A: .5 / .6, of B: .5 / .4; inside A 1 : 2 against 10 : 50 GPU-hours, that is .33/.17 = 2 and .8."""
    #              root A a1 a2 B b1
    parent = np.array([-1, 0, 1, 1, 0, 4])
    assert fair_tree_order(parent, [1, 1, 1, 2, 1, 1], [0, 0, 10, 50, 0, 40]) == [[5], [2], [3]]


def test_slurm_fair_tree_ties() -> None:
    """The three rules of the page's section "Ties"."""
    users = np.array([-1, 0, 0, 0])
    assert fair_tree_order(users, [1, 1, 1, 2], [0, 5, 5, 0]) == [[3], [1, 2]]
    # user u and account A have used the same: u has the rank of A's highest user
    #                      root u A a1 a2
    mixed = np.array([-1, 0, 0, 2, 2])
    assert fair_tree_order(mixed, [1] * 5, [0, 6, 0, 4, 2]) == [[1, 4], [3]]
    # accounts A and B have used the same: their children are sorted as one list, LF within their own account:
    # a1 .5/.9, a2 .5/.1, b1 .5/.6, b2 .5/.4
    merged = np.array([-1, 0, 1, 1, 0, 4, 4])
    assert fair_tree_order(merged, [1] * 7, [0, 0, 9, 1, 0, 6, 4]) == [[3], [6], [5], [2]]


def test_slurm_fair_tree_without_a_share_comes_last() -> None:
    parent = np.array([-1, 0, 0, 0])
    assert fair_tree_order(parent, [1, 0, 1, 1], [0, 1, 50, 20]) == [[3], [2], [1]]
