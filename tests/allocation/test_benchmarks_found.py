"""The seven benchmark scenarios are what their script finds, and meet the published figures through gpuplan too."""

from fractions import Fraction

import pytest

from allocation.find_benchmarks import FAMILIES, Family
from gpuplan.allocation.plan import plan
from gpuplan.benchmarks.published import PUBLISHED, Published
from gpuplan.loading import load


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_shipped_file_is_the_first_day_that_the_script_finds(family: Family) -> None:
    seed, scenario = family.find()
    assert scenario.fingerprint == load(f"benchmark-{family.name}").fingerprint
    assert f"(seed {seed})" in load(f"benchmark-{family.name}").about


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row.scenario)
def test_gpus_steps_jobs_and_fifo_meet_the_published_figures(row: Published) -> None:
    scenario = load(row.scenario)
    made = plan(scenario, "fifo")
    assert scenario.horizon.steps == 24
    if row.gpus is not None:
        assert scenario.cluster.gpus == row.gpus
    if row.jobs is not None:
        assert len(scenario.batch) == row.jobs
    if row.fifo_utilization is not None:
        assert abs(Fraction(made.figures["utilization"]) - Fraction(row.fifo_utilization)) <= Fraction(
            3, 1000
        )
    if row.finished is not None:
        assert made.figures["jobs_finished"] == row.finished


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_days_want_more_than_there_is_but_for_the_inference_peak_and_scale(family: Family) -> None:
    """Over the whole day; what contends on the inference peak are a few hours and the reservation."""
    scenario = load(f"benchmark-{family.name}")
    wanted = sum(job.gpus * job.hours for job in scenario.batch) + sum(
        sum(app.demand) for app in scenario.realtime
    )
    contended = wanted > scenario.cluster.gpus * 24
    assert contended == (family.name not in ("inference-peak", "scale"))
