"""Case `nb-many-rows`: 6,001 jobs are drawn from sums, in a picture that does not grow with them.

The case's jobs come one per minute and hold 1 to 8 GPUs for ten to twenty minutes. Here they come one per hour, hold
1, 2, 4 or 8 GPUs, as blocks must, and run for one or two hours.
"""

import json
import re

import numpy as np
import pytest

from gpuplan.allocation import charts
from gpuplan.allocation.charts.words import usage_table
from gpuplan.allocation.model import AllocationScenario, BatchJob, Horizon
from gpuplan.allocation.plan import Comparison, Plan, plan
from gpuplan.cluster import Cluster


def many(n_jobs: int) -> Plan:
    """A job every hour, and from the start again after 996, on a cluster that takes each of them at once."""
    steps = 1000
    jobs = tuple(
        BatchJob(f"job-{i}", "training", 2 ** (i % 4), 1 + i % 2, 1.0, earliest_hour=i % (steps - 4))
        for i in range(n_jobs)
    )
    gpus = 8 * max(1, -(-n_jobs // 500))
    return plan(AllocationScenario("many", Cluster(gpus), Horizon(steps), batch=jobs), "fifo")


def gpu_hours(n_jobs: int) -> int:
    return sum(2 ** (i % 4) * (1 + i % 2) for i in range(n_jobs))


@pytest.mark.parametrize("n_jobs", [5000, 5001, 6001])
def test_every_job_is_in_the_sums_and_none_is_beyond_a_row_limit(n_jobs: int) -> None:
    made = many(n_jobs)
    assert made.figures["jobs_placed"] == n_jobs
    assert made.figures["value_undecayed"] == gpu_hours(n_jobs)
    assert made.figures["utilization"] == gpu_hours(n_jobs) / (made.scenario.cluster.gpus * 1000)
    steps = made.steps_frame()
    assert steps["batch"].sum() == gpu_hours(n_jobs)
    peak = int(steps["batch"].max())
    cells = re.findall(r"<th scope=\"row\">[^<]*</th><td>(\d+)</td>", usage_table(made))
    assert max(map(int, cells)) == peak  # the table that stands for the chart keeps the highest step


def test_the_picture_does_not_grow_with_the_jobs() -> None:
    """Below 1 MB for 6,001 jobs, and no more than that for five times as many."""
    few, most = many(6001), many(30_005)
    for made in (few, most):
        both = Comparison({"fifo": made})
        for chart in (charts.gantt(made), charts.utilization_chart(made), charts.comparison_chart(both)):
            shown = chart._repr_mimebundle_()
            assert len(shown["image/png"]) < 1_000_000
            assert len(json.dumps(shown)) < 1_000_000


def test_drawing_leaves_the_users_altair_as_it_was() -> None:
    import altair as alt

    before = (alt.data_transformers.active, alt.renderers.active, dict(alt.data_transformers.options))
    charts.gantt(many(5001)).to_dict()
    after = (alt.data_transformers.active, alt.renderers.active, dict(alt.data_transformers.options))
    assert after == before


def test_no_jobs_is_a_frame_that_says_so() -> None:
    empty = AllocationScenario("empty", Cluster(4))
    made = plan(empty, "aware")
    assert np.all(made.grid == -1)
    assert charts.gantt(made)._repr_mimebundle_()["image/png"]
    assert "0 of 0 batch jobs placed" in repr(charts.gantt(made))
