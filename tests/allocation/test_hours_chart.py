"""Where the GPU-hours go: parts add up to all of them, and useful ones are the utilization."""

import pytest

import gpuplan as gp
from gpuplan.allocation.charts import gpu_hours, hours_chart


@pytest.mark.parametrize("name", ["on-paper", "training-rush", "two-apps"])
def test_parts_add_up_and_the_useful_ones_are_the_utilization(name: str) -> None:
    scenario = gp.load(name)
    plans = [gp.plan(scenario, policy) for policy in ("fifo", "curve-priority", "aware")]
    table = gpu_hours(plans)
    horizon = scenario.horizon
    total = scenario.cluster.n_available * horizon.steps * horizon.step_hours
    for plan, (_, row) in zip(plans, table.iterrows(), strict=True):
        assert row["available"] == total
        assert row["batch"] + row["realtime_useful"] == pytest.approx(plan.figures["utilization"] * total)
        assert total - row["free"] == pytest.approx(plan.figures["held"] * total)


def test_half_hours_and_gpus_that_nobody_may_use() -> None:
    changes = {"cluster.unavailable": [0], "horizon": {"steps": 12, "step_hours": 0.5}}
    plan = gp.plan(gp.load("on-paper").replace({**changes, "realtime.0.demand": [0] * 8 + [2] * 4}))
    assert gpu_hours([plan]).loc["aware", "available"] == 3 * 6
    assert gpu_hours([plan]).loc["aware", "realtime_useful"] == 4


def test_the_chart_says_its_numbers_and_draws_them_where_they_fit() -> None:
    """On paper, by hand: FIFO runs A (8) and C (2), chat uses 4 of 12, and 2 are free."""
    plan = gp.plan("on-paper", "fifo")
    assert "fifo: utilization 58.3 %: jobs 10, apps, in use 4, reserved but idle 8, free 2." in repr(
        hours_chart([plan])
    )
    drawn = hours_chart([plan], width=200).to_dict()["datasets"]["hours"]
    assert [(row["part"], row["low"], row["high"], row["says"]) for row in drawn] == [
        ("jobs", 0, 10, "10"),
        ("apps, in use", 10, 14, "4"),
        ("reserved but idle", 14, 22, "8"),
        ("free", 22, 24, ""),
    ]
