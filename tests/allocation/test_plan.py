"""The plan as a value: its arrays, tables, sentences, fingerprint and pictures; and the comparison."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from strategies import HOSTILE_NAMES, scenarios

from allocation.reference import MORE
from gpuplan.allocation.model import (
    AllocationScenario,
    BatchJob,
    Horizon,
    Objective,
    RealtimeApp,
)
from gpuplan.allocation.plan import Plan, compare, plan
from gpuplan.allocation.policies import POLICIES
from gpuplan.cluster import Cluster


def morning() -> AllocationScenario:
    """Four GPUs, four hours: `run` on 0-1 for an hour, `tune` 2 GPUs 2 h, `big` 8 GPUs, `long` 4 GPUs 4 h."""
    return AllocationScenario(
        name="morning",
        cluster=Cluster(4),
        horizon=Horizon(4),
        objective=Objective(8.0, None),
        realtime=(RealtimeApp("chat", 2.0, (1, 2, 1, 0)),),
        batch=(
            BatchJob("tune", "training", 2, 2.0, 3.0, earliest_hour=0.5, deadline_hour=2.5),
            BatchJob("run", "batch-inference", 2, 1.0, 1.0, running_on=0),
            BatchJob("big", "training", 8, 1.0, 1.0),
            BatchJob("long", "quantization", 4, 4.0, 1.0, deadline_hour=4.0),
        ),
    )


ARRAYS = ("start", "first_gpu", "end", "grid", "held", "demand", "served")


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_read_only(name: str) -> None:
    array = getattr(plan(morning(), "fifo"), name)
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 0


def test_to_frame_has_a_row_per_gpu_and_unbroken_stretch() -> None:
    """`fifo` reserves GPUs 2-3, leaves `run` on 0-1 in hour 0 and places `tune` there in hours 1-2."""
    frame = plan(morning(), "fifo").to_frame()
    assert list(frame.columns) == ["job", "kind", "gpu", "start_step", "end_step"]
    rows = {tuple(row) for row in frame.itertuples(index=False)}
    assert rows == {
        ("run", "batch-inference", 0, 0, 1),
        ("run", "batch-inference", 1, 0, 1),
        ("tune", "training", 0, 1, 3),
        ("tune", "training", 1, 1, 3),
        ("chat", "real-time", 2, 0, 4),
        ("chat", "real-time", 3, 0, 4),
    }
    assert len(frame) == 6


def test_to_frame_cuts_a_stretch_where_the_app_lets_go() -> None:
    """Demand 1 0 1 on one GPU: two stretches."""
    app = RealtimeApp("chat", 1.0, (1, 0, 1))
    scenario = AllocationScenario("s", Cluster(1), Horizon(3), realtime=(app,))
    frame = plan(scenario, "curve-fifo").to_frame()
    assert frame[["gpu", "start_step", "end_step"]].values.tolist() == [[0, 0, 1], [0, 2, 3]]


def test_jobs_frame_says_what_became_of_every_job() -> None:
    frame = plan(morning(), "fifo").jobs_frame()
    assert list(frame.columns) == [
        "job",
        "kind",
        "gpus",
        "hours",
        "priority",
        "state",
        "first_gpu",
        "start_step",
        "end_step",
        "start_hour",
        "end_hour",
        "earliest_hour",
        "wait_hours",
        "finished",
        "late_hours",
    ]
    table = frame.set_index("job")
    assert table["state"].to_dict() == {
        "tune": "placed",
        "run": "running",
        "big": "set aside",
        "long": "unplaced",
    }
    tune = table.loc["tune"]
    assert (tune["first_gpu"], tune["start_step"], tune["end_step"]) == (0, 1, 3)
    assert (tune["start_hour"], tune["end_hour"], tune["wait_hours"]) == (1.0, 3.0, 0.5)
    assert tune["late_hours"] == 0.5  # ends at 3, wanted at 2.5
    assert bool(tune["finished"])


def test_steps_frame_accounts_for_every_available_gpu() -> None:
    """`fifo` again: chat reserves two, of which 1, 2, 1, 0 are useful."""
    frame = plan(morning(), "fifo").steps_frame()
    assert list(frame.columns) == [
        *("step", "hour", "available", "batch", "realtime_useful", "realtime_idle", "free")
    ]
    assert frame.values.tolist() == [
        [0, 0.0, 4, 2, 1, 1, 0],
        [1, 1.0, 4, 2, 2, 0, 0],
        [2, 2.0, 4, 2, 1, 1, 0],
        [3, 3.0, 4, 0, 0, 2, 2],
    ]


def test_apps_frame_has_a_row_per_app_and_step() -> None:
    frame = plan(morning(), "fifo").apps_frame()
    assert list(frame.columns) == ["app", "step", "hour", "demand", "held", "served", "unmet"]
    assert frame.values.tolist() == [
        ["chat", 0, 0.0, 1, 2, 1, 0],
        ["chat", 1, 1.0, 2, 2, 2, 0],
        ["chat", 2, 2.0, 1, 2, 1, 0],
        ["chat", 3, 3.0, 0, 2, 0, 0],
    ]


def test_why_names_what_keeps_a_job_waiting_or_out() -> None:
    made = plan(morning(), "fifo")
    for job in made.scenario.batch:
        sentence = made.why(job.name)
        assert sentence.strip().endswith(".")
        assert job.name in sentence
    assert "8" in made.why("big")
    assert made.set_aside["big"].strip()
    # never more than two neighbouring GPUs are free, in hour 3
    assert "2" in made.why("long")


def test_why_of_a_late_job_names_who_holds_its_place() -> None:
    """One GPU: `second` waits two hours for `first`."""
    batch = (BatchJob("first", "training", 1, 2.0, 1.0), BatchJob("second", "training", 1, 1.0, 1.0))
    made = plan(AllocationScenario("s", Cluster(1), Horizon(4), batch=batch), "fifo")
    assert "first" in made.why("second")
    assert "second" not in made.why("first")


def test_why_of_an_unknown_name_is_a_clear_error() -> None:
    with pytest.raises((KeyError, ValueError), match="nobody"):
        plan(morning(), "fifo").why("nobody")


def test_the_repr_says_the_useful_thing_and_never_changes() -> None:
    made = plan(morning(), "fifo")
    text = repr(made)
    assert "fifo" in text
    assert "morning" in text
    assert " at 0x" not in text
    assert "second" not in text
    assert text == repr(plan(morning(), "fifo"))
    page = made._repr_html_()
    assert page == plan(morning(), "fifo")._repr_html_()
    assert " at 0x" not in page


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_stay_text_in_tables_and_pages(name: str) -> None:
    base = morning()
    scenario = replace(base, name=name, batch=(replace(base.batch[0], name=name), *base.batch[1:]))
    both = compare(scenario, ("fifo", "aware"))
    made = both["fifo"]
    assert name in set(made.to_frame()["job"])
    assert name in set(made.jobs_frame()["job"])
    for page in (made._repr_html_(), both._repr_html_()):
        assert "<script>alert" not in page
        assert "<b>bold" not in page
    assert isinstance(made.why(name), str)


def test_the_fingerprint_tells_plans_apart() -> None:
    """Same plan, same text; another policy with another grid, or another scenario, another text."""
    prints = {plan(morning(), policy).fingerprint for policy in ("fifo", "curve-fifo")}
    other = replace(morning(), batch=morning().batch[:1])
    prints.add(plan(other, "fifo").fingerprint)
    assert len(prints) == 3
    assert plan(morning(), "fifo").fingerprint in prints


def test_seconds_are_measured_and_kept_out_of_what_must_repeat() -> None:
    made = plan(morning(), "aware")
    assert made.seconds > 0
    assert "seconds" not in made.figures
    assert f"{made.seconds:.6f}" not in repr(made)


def test_compare_gives_a_tidy_table_and_the_plans_by_name() -> None:
    both = compare(morning(), ("fifo", "aware"))
    assert list(both.plans) == ["fifo", "aware"]
    assert isinstance(both["fifo"], Plan)
    assert list(both.table.columns) == ["policy", "figure", "value", "unit"]
    assert set(both.table["policy"]) == {"fifo", "aware"}
    assert list(both.wide.columns) == ["fifo", "aware"]
    assert list(both.wide.index) == list(both["fifo"].figures)
    row = both.table.query("policy == 'fifo' and figure == 'utilization'")
    assert row["value"].tolist() == [both["fifo"].figures["utilization"]]
    assert repr(both) == repr(compare(morning(), ("fifo", "aware")))
    assert " at 0x" not in repr(both)


@settings(max_examples=30 * MORE)
@given(scenarios(max_gpus=20, max_steps=12))
def test_frames_hold_the_whole_grid_and_every_job_has_a_sentence(scenario: AllocationScenario) -> None:
    codes = {job.name: j for j, job in enumerate(scenario.batch)}
    codes |= {app.name: len(scenario.batch) + r for r, app in enumerate(scenario.realtime)}
    for policy in POLICIES:
        made = plan(scenario, policy, iterations=50, time_limit_s=0.3)
        grid = np.full(made.grid.shape, -1)
        grid[list(scenario.cluster.unavailable)] = -2
        frame = made.to_frame()
        for name, kind, gpu, start, end in frame.itertuples(index=False):
            assert (grid[gpu, start:end] == -1).all()
            grid[gpu, start:end] = codes[name]
            assert (kind == "real-time") == (codes[name] >= len(scenario.batch))
        assert (grid == made.grid).all()
        assert not frame.duplicated(["gpu", "end_step"]).any()
        jobs = made.jobs_frame()
        assert jobs["job"].tolist() == [job.name for job in scenario.batch]
        assert set(jobs.loc[jobs["state"] == "set aside", "job"]) == set(made.set_aside)
        steps = made.steps_frame()
        parts = steps[["batch", "realtime_useful", "realtime_idle", "free"]].sum(axis=1)
        assert (parts == scenario.cluster.n_available).all()
        assert len(made.apps_frame()) == made.held.size
        for job in scenario.batch:
            assert len(made.why(job.name)) > 10


def test_frames_of_an_empty_scenario_keep_their_columns() -> None:
    made = plan(AllocationScenario("s", Cluster(1), Horizon(1)), "aware")
    for frame in (made.to_frame(), made.jobs_frame(), made.apps_frame()):
        assert isinstance(frame, pd.DataFrame)
        assert len(frame) == 0
        assert len(frame.columns) >= 5


def test_where_nothing_is_at_stake_the_bound_is_reached_exactly() -> None:
    """No batch job, no demand: objective and bound are 0, and so is the gap."""
    made = plan({"kind": "allocation", "name": "idle", "cluster": {"gpus": 2}, "horizon": {"steps": 2}})
    assert (made.figures["objective"], made.bound, made.gap) == (0.0, 0.0, 0.0)
