"""Hours without slack and idle windows: worked by hand, and nothing free is forgotten or counted twice."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import scenarios

from gpuplan.allocation import engine
from gpuplan.allocation.lookahead import (
    coverage_risk,
    idle_windows,
    outlook,
    risk_table,
    windows_table,
)
from gpuplan.allocation.model import AllocationScenario, BatchJob, Horizon, RealtimeApp
from gpuplan.allocation.plan import plan
from gpuplan.allocation.problem import compile_problem
from gpuplan.allocation.rolling import Errors, roll
from gpuplan.cluster import Cluster
from gpuplan.inputs.errors import InputError
from gpuplan.loading import load

#: Four GPUs, first GPUs of blocks of 1, 2 and 4.
ALLOWED = np.array([[0b1111], [0b0111], [0b0001]], np.uint64)


def test_slack_is_what_is_left_when_every_app_takes_what_it_lacks() -> None:
    """Four GPUs; the app holds 1 and wants 2, 3 and 5: of 2, 2 and 2 free ones 1 is left, none, and 2 are missing."""
    grid = np.array([[7, 7, 7], [0, 0, 0], [-1, -1, -1], [-1, -1, -1]], np.int32)
    table = risk_table(grid, np.array([[2, 3, 5]]), np.array([[1, 1, 1]]), 0.5)
    assert table["slack"].tolist() == [1, 0, 0]
    assert table["missing"].tolist() == [0, 0, 2]
    assert table["risk"].tolist() == ["none", "no slack", "short"]
    assert table["hour"].tolist() == [0.0, 0.5, 1.0]


def test_what_one_app_holds_idle_is_no_slack_of_another() -> None:
    """Both hold 4, nothing is free: where one wants 2 and the other 4 there is none, where both want 3 there is one."""
    grid = np.full((8, 2), 5, np.int32)
    table = risk_table(grid, np.array([[2, 3], [4, 3]]), np.array([[4, 4], [4, 4]]), 1.0)
    assert table["slack"].tolist() == [0, 1]
    assert table["risk"].tolist() == ["no slack", "none"]


def test_a_margin_is_rounded_up_for_each_app() -> None:
    """Two apps that want and hold 3: with 10 % more each wants 4, and of the one free GPU one is missing."""
    grid = np.full((7, 1), 5, np.int32)
    grid[6] = -1
    table = risk_table(grid, np.array([[3], [3]]), np.array([[3], [3]]), 1.0, 0.1)
    assert table["demand"].tolist() == [8]
    assert table["missing"].tolist() == [1]


def test_a_step_in_which_nothing_is_wanted_is_no_risk() -> None:
    grid = np.full((2, 1), 0, np.int32)
    assert risk_table(grid, np.array([[0]]), np.array([[0]]), 1.0)["risk"].tolist() == ["none"]


def test_the_largest_window_comes_first_and_no_cell_is_in_two() -> None:
    """Free are GPUs 0-3 in steps 2 and 3 (8 cells) and GPU 0 all the while: 4 x 2, then 1 x 2 before it."""
    grid = np.full((4, 4), 9, np.int32)
    grid[:, 2:] = -1
    grid[0] = -1
    table = windows_table(grid, ALLOWED, 1.0, least_gpu_hours=0)
    assert table[["start_step", "end_step", "gpus", "first_gpu", "gpu_hours"]].to_numpy().tolist() == [
        [0, 2, 1, 0, 2.0],
        [2, 4, 4, 0, 8.0],
    ]


def test_blocks_of_windows_are_powers_of_two_within_nodes() -> None:
    """Three free GPUs: a block of two and one of one; of nodes of two the pair lies within a node."""
    grid = np.full((4, 2), 9, np.int32)
    grid[1:] = -1
    table = windows_table(grid, ALLOWED, 1.0, least_gpu_hours=0)
    assert sorted(table["gpus"]) == [1, 2]
    within = np.array([[0b1111], [0b0101], [0]], np.uint64)
    table = windows_table(grid, within, 1.0, least_gpu_hours=0)
    assert table[table["gpus"] == 2]["first_gpu"].tolist() == [2]


def test_small_windows_are_left_out() -> None:
    grid = np.full((4, 4), 9, np.int32)
    grid[0, 0] = grid[2, 2] = grid[2, 3] = -1
    assert len(windows_table(grid, ALLOWED, 1.0, least_gpu_hours=2)) == 1
    assert len(windows_table(grid, ALLOWED, 0.5, least_gpu_hours=2)) == 0


@given(scenarios(max_gpus=20, max_steps=12))
def test_windows_cover_exactly_what_is_free(scenario: AllocationScenario) -> None:
    engine.compile_here()
    made = plan(scenario)
    table = idle_windows(made, 0)
    free = made.grid == -1
    counted = np.zeros_like(free, np.int64)
    allowed = compile_problem(scenario).allowed
    for row in table.itertuples():
        counted[row.first_gpu : row.first_gpu + row.gpus, row.start_step : row.end_step] += 1
        assert row.gpus & (row.gpus - 1) == 0
        assert int(allowed[row.gpus.bit_length() - 1, row.first_gpu // 64]) >> (row.first_gpu % 64) & 1
    assert (counted == free).all()


@given(scenarios(max_gpus=20, max_steps=12), st.floats(0, 1))
def test_what_is_missing_without_a_margin_is_not_more_than_the_shortfall(
    scenario: AllocationScenario, margin: float
) -> None:
    engine.compile_here()
    made = plan(scenario)
    plain, more = coverage_risk(made), coverage_risk(made, margin)
    hours = scenario.horizon.step_hours
    assert plain["missing"].sum() * hours <= float(made.figures["shortfall_gpu_hours"] or 0) + 1e-9
    assert (more["missing"] >= plain["missing"]).all()


def test_the_outlook_of_a_run_is_that_of_its_plan_at_that_step() -> None:
    run = roll(load("two-apps"), days=2, errors=Errors(0.1, 0.2, 0.0, 0.4, 0.5), seed=1)
    risk, windows = outlook(run, 30)
    promise = run.promises[30]
    assert promise.step == 30
    assert risk["step"].tolist() == list(range(30, 54))
    assert (windows["start_step"] >= 30).all()
    grid = run.grid_of(promise)
    assert (grid[:, 0] == run.plan.grid[:, 30]).all()  # the first step of the plan is what was committed
    assert windows["gpu_hours"].sum() <= (grid == -1).sum()


def test_a_plan_whose_apps_take_everything_has_no_window() -> None:
    app = RealtimeApp("app", 1.0, (2,) * 4)
    day = AllocationScenario(
        "day", Cluster(2), Horizon(4), realtime=(app,), batch=(BatchJob("j", "training", 1, 1, 1),)
    )
    made = plan(day)
    assert len(idle_windows(made, 0)) == 0
    assert next(iter(idle_windows(made, 0).columns)) == "start_step"
    assert (coverage_risk(made)["risk"] == "no slack").all()


@pytest.mark.parametrize("margin", [-0.1, 11, "a", True, float("nan")])
def test_a_margin_that_cannot_be_is_refused(margin: Any) -> None:
    with pytest.raises(InputError, match="margin: must be a number from 0 to 10"):
        coverage_risk(plan(load("mixed-day")), margin)


@pytest.mark.parametrize("amount", [-1, "a", float("nan"), True])
def test_an_amount_that_cannot_be_is_refused(amount: Any) -> None:
    with pytest.raises(InputError, match="least_gpu_hours: must be a number of at least 0"):
        idle_windows(plan(load("mixed-day")), amount)
