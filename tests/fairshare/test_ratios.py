"""The number that sorts the queue: exact window integrals and protected time ahead."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairshare.by_hand import FINISHED, problem_of, raw_of, run_of, two_teams
from gpuplan.fairshare.jobs import jobs
from gpuplan.fairshare.model import BudgetNode, Pool
from gpuplan.fairshare.ratios import Ratios, ratios_at, ratios_over


def test_ratios_of_the_run_by_hand() -> None:
    """Claims of 4 GPUs x 7,200 s = 28,800 each.

    At 50 s: a has used 4 x 50 and is protected for 4 x 50 more: 400. At 300 s: a 1,200; b has just started 4 GPUs
    with 60 s of protection: 240. Unallocated work counts for nobody. At 1,000 s: a 1,200 + 580 + 1,240, b 800.
    """
    run = run_of(*two_teams())
    assert run.problem.tree.path == ("", "a", "b")
    at = {t: ratios_at(run, t) for t in (0, 50, 300, 1000)}
    assert at[0] == {"": 400 / 57600, "a": 400 / 28800, "b": 0}
    assert at[50] == at[0]  # what is used up of the protection was counted ahead
    assert at[300] == {"": 1440 / 57600, "a": 1200 / 28800, "b": 240 / 28800}
    assert at[1000] == {"": 3820 / 57600, "a": 3020 / 28800, "b": 800 / 28800}
    before = Ratios(run.problem, run.raw).of_leaves(np.array([0, 300]), before=True)
    assert before.tolist() == [[0, 1200], [0, 0]]


def test_the_window_slides() -> None:
    """8 GPUs from 0 to 1,000 s; W = 7,200 s. At 7,700 s the last 500 s of it are in the window; at 8,200 s none."""
    made = jobs(["x", "y"], [0, 9000], [8, 8], [1000, 10], team="a", minimum_s=10)
    problem = problem_of(made, (Pool(1, 8),))
    rows = [
        (0, 0, 1000, FINISHED, {0: 8}, 0, 1000, True, 10),
        (1, 9000, 9010, FINISHED, {0: 8}, 0, 10, True, 9010),
    ]
    numbers = Ratios(problem, raw_of(problem, rows, 9010)).of_leaves(np.array([1000, 7200, 7700, 8200, 8999]))
    assert numbers[0].tolist() == [8000, 8000, 4000, 0, 0]


def test_protection_ends_with_the_stretch() -> None:
    """A job that finishes after 20 s of a minimum of 100 s is protected no more, at that very instant."""
    made = jobs(["x"], [0], [4], [20], team="a", minimum_s=100)
    problem = problem_of(made)
    raw = raw_of(problem, [(0, 0, 20, FINISHED, {0: 4}, 0, 20, True, 100)], 20)
    numbers = Ratios(problem, raw).of_leaves(np.array([0, 19, 20]))
    assert numbers[0].tolist() == [400, 4 * 19 + 4 * 81, 80]


def test_a_parent_is_the_sum_and_a_share_of_nothing_infinite() -> None:
    tree = (BudgetNode("p", 1, (BudgetNode("a", 3), BudgetNode("b", 1))), BudgetNode("z", 0))
    made = jobs(["x", "y"], [0, 0], [4, 4], [100, 100], team=["p/a", "p/b"], minimum_s=10)
    problem = problem_of(made, budget=tree)
    rows = [(0, 0, 100, FINISHED, {0: 4}, 0, 100, True, 10), (1, 0, 100, FINISHED, {1: 4}, 0, 100, True, 10)]
    run = run_of(problem, raw_of(problem, rows, 100))
    whole = 8 * 7200
    assert ratios_at(run, 100) == {
        "": 800 / whole,
        "p": 800 / whole,
        "p/a": pytest.approx(400 / (0.75 * whole)),
        "p/b": pytest.approx(400 / (0.25 * whole)),
        "z": np.inf,
    }


@given(
    st.lists(
        st.tuples(
            st.integers(0, 60), st.integers(0, 40), st.integers(1, 5), st.integers(0, 30), st.integers(0, 1)
        ),
        max_size=8,
    ),
    st.integers(1, 50),
    st.lists(st.integers(0, 120), min_size=1, max_size=5),
)
@settings(deadline=None)
def test_ratios_are_sums_over_seconds(
    stretches: list[tuple[int, int, int, int, int]], window: int, times: list[int]
) -> None:
    made = jobs(
        [str(j) for j in range(len(stretches))],
        [0] * len(stretches),
        [row[2] for row in stretches],
        [row[1] for row in stretches],
        team=["ab"[row[4]] for row in stretches],
        minimum_s=[max(1, row[3]) for row in stretches],
    )
    problem = problem_of(made, (Pool(1, 100),), window_s=window)
    rows = [
        (j, start, start + length, FINISHED, {0: gpus}, 0, length, True, start + minimum)
        for j, (start, length, gpus, minimum, _) in enumerate(stretches)
    ]
    problem = replace(problem)
    numbers = Ratios(problem, raw_of(problem, rows, 200)).of_leaves(np.array(times))
    for k, t in enumerate(times):
        want = [0, 0]
        for start, length, gpus, minimum, team in stretches:
            seconds = range(max(start, t - window), min(start + length, t))
            ahead = max(0, start + minimum - t) if start <= t < start + length else 0
            want[team] += gpus * (len(seconds) + ahead)
        assert numbers[:, k].tolist() == want


def test_many_instants_at_once_are_each_of_them() -> None:
    run = run_of(*two_teams())
    times = np.array([0, 5, 100, 305, 999])
    over = ratios_over(run, times)
    assert over.shape == (3, 5)
    for k, t in enumerate(times.tolist()):
        assert over[:, k].tolist() == list(ratios_at(run, t).values())
