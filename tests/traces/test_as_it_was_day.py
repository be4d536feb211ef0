"""A day as it was: the figures of plans with exact times, rows of GPUs, what is not told, and the chart."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.allocation.model import AllocationScenario, BatchJob, Horizon, Objective, RealtimeApp, Rules
from gpuplan.allocation.plan import Plan, plan
from gpuplan.cluster import Cluster
from gpuplan.forecast.traffic import TrafficHistory
from gpuplan.inputs.errors import InputError
from gpuplan.traces.as_it_was import AS_IT_WAS, HONESTY
from gpuplan.traces.as_it_was_day import DayCompared, compare_day, day_as_it_was
from gpuplan.traces.as_it_was_day_chart import day_chart
from gpuplan.traces.as_it_was_day_match import services_of_histories
from gpuplan.traces.as_it_was_places import peak
from gpuplan.traces.as_it_was_rows import gpu_rows
from gpuplan.traces.history import history
from gpuplan.traces.recorded import Recorded

HOUR = 3600


def rows(*stretches: tuple[str, int, float, float]) -> Recorded:
    """Stretches by job, GPUs, start and end in hours."""
    name, gpus, start, end = (list(column) for column in zip(*stretches, strict=True))
    job = np.array(name, object)
    hours = [np.array([round(hour * HOUR) for hour in column], np.int64) for column in (start, end)]
    words = np.full(len(name), "completed", object)
    return Recorded("day.csv", job, job, words, np.array(gpus, np.int64), hours[0], *hours)


def job(name: str, gpus: int, hours: float, earliest: float = 0, **more: Any) -> BatchJob:
    return BatchJob(name, "training", gpus, hours, more.pop("priority", 1.0), earliest, **more)


DAY = AllocationScenario(
    "day",
    Cluster(8, 4, price_per_gpu_hour=2.0),
    Horizon(24, HOUR, "2026-04-10T00:00"),
    Objective(half_life_hours=None),
    Rules(must_finish=False),
    batch=(
        job("a", 4, 6),
        job("b", 2, 4, 1, priority=3.0),
        job("c", 4, 3, 20, deadline_hour=23),
        job("d", 1, 1),
    ),
)

#: a waits for half an hour; b is held for 4.5 h; c runs past midnight; d never runs.
RECORD = rows(("a", 4, 0.5, 6.5), ("b", 2, 1, 5.5), ("c", 3, 22, 25), ("other", 1, 0, 2))


def test_the_figures_of_a_small_day() -> None:
    """GPU-hours: a 4x6 = 24, b 2x4.5 = 9, c 3x2 = 6 until midnight: 39 of 8x24 = 192; value 24 + 3x9 + 6 = 57."""
    done = day_as_it_was(DAY, RECORD)
    found = done.figures
    assert found["utilization"] == found["held"] == pytest.approx(39 / 192)
    assert found["value"] == found["value_undecayed"] == pytest.approx(57)
    assert found["objective"] == pytest.approx(57)
    assert (found["coverage"], found["penalty"]) == (1.0, 0.0)
    assert (found["jobs_placed"], found["jobs_finished"], found["jobs_unplaced"]) == (3, 2, 1)
    assert found["jobs_late"] == 1  # c is over at hour 25, not 23
    assert (found["wait_p50_hours"], found["wait_p90_hours"]) == (0.5, 2.0)  # 0.5, 0, 2
    assert found["cost"] == 384
    assert found["cost_useful"] == pytest.approx(78)
    assert found["bound"] is None
    assert found["swaps"] is None


def test_value_decays_within_steps() -> None:
    """Half-life 1 h in steps of an hour: weights 1, 0.5, ...; a GPU from 0:30 to 1:30 earns 0.5 x 1 + 0.5 x 0.5."""
    day = replace(DAY, objective=Objective(half_life_hours=1.0), batch=(job("a", 1, 1),))
    assert day_as_it_was(day, rows(("a", 1, 0.5, 1.5))).figures["value"] == pytest.approx(0.75)


def test_a_job_that_was_cut_to_the_day_is_finished_where_it_began_in_its_step() -> None:
    """Submitted at 12:20 (known from 12:00), it has 12 h of the day in the scenario, and ran from 12:30 to after it."""
    day = replace(DAY, batch=(job("a", 1, 12, 12), job("b", 1, 12, 12)))
    found = day_as_it_was(day, rows(("a", 1, 12.5, 40), ("b", 1, 13.5, 40))).figures
    assert (found["jobs_finished"], found["jobs_placed"]) == (
        1,
        2,
    )  # b waited for a step: a plan would not finish it


def test_the_account_and_the_notes() -> None:
    done = day_as_it_was(DAY, RECORD)
    assert (done.account.read, done.account.used) == (4, 3)
    assert dict(done.account.excluded) == {"of no batch job of the scenario": 1}
    assert dict(done.account.changed) == {"cut at its end": 1}
    assert set(HONESTY) <= set(done.notes)
    assert any(
        "1 of 3 stretches held other sizes than the plans' blocks, which would be 2.0 GPU-hours more" in n
        for n in done.notes
    )
    assert any("not in the scenario held 2.0 GPU-hours" in note for note in done.notes)


def test_what_whole_steps_add_is_said() -> None:
    """a: 4 GPUs for 5.5 h take 6 steps, half an hour more: 2 GPU-hours; b: 2 GPUs for 3.9 h take 4: 0.2."""
    day = replace(DAY, batch=(job("a", 4, 5.5), job("b", 2, 3.9)))
    notes = day_as_it_was(day, RECORD).notes
    assert any("whole steps of 1 h: up to 2.2 GPU-hours more" in note for note in notes)
    assert not any("whole steps of" in note for note in day_as_it_was(DAY, RECORD).notes)


def test_the_day_begins_where_the_scenario_says_on_the_clock_of_the_record() -> None:
    """2026-04-10 00:00 in Sao Paulo is 03:00 UTC = 1775790000."""
    what = history(
        "log.psv",
        np.array([2]),
        job=["a"],
        gpus=4,
        submit_s=1775790000,
        start_s=1775790000 + HOUR,
        end_s=1775790000 + 2 * HOUR,
        elapsed_s=HOUR,
        state="completed",
        zone="America/Sao_Paulo",
    )
    done = day_as_it_was(DAY, what)
    assert done.start_s.tolist() == [HOUR]
    assert "The day begins at 2026-04-10 00:00:00 of the record." in done.account.rules
    nowhere = replace(DAY, horizon=Horizon(24))
    with pytest.raises(InputError, match="start_s: must be given"):
        day_as_it_was(nowhere, what)


def test_a_job_that_an_app_shares_its_name_with_is_found() -> None:
    app = RealtimeApp("a", 1.0, (0,) * 24)
    day = replace(DAY, realtime=(app,), batch=(job("a (job)", 4, 6),))
    assert day_as_it_was(day, RECORD).figures["jobs_placed"] == 1


def test_what_apps_held_is_not_invented() -> None:
    day = replace(DAY, realtime=(RealtimeApp("chat", 2.0, (2,) * 24),))
    found = day_as_it_was(day, RECORD)
    for name in ("utilization", "held", "coverage", "penalty", "objective", "shortfall_gpu_hours"):
        assert found.figures[name] is None
    assert any("What the real-time apps held is not recorded" in note for note in found.notes)
    known = day_as_it_was(day, RECORD, services={"chat": [1] * 12 + [3] * 12}).figures
    # served 12x1 + 12x2 = 36, held 48, unmet 12 GPU-hours at 8 x priority 2
    assert known["utilization"] == pytest.approx((39 + 36) / 192)
    assert known["held"] == pytest.approx((39 + 48) / 192)
    assert known["coverage"] == 36 / 48
    assert known["penalty"] == pytest.approx(12 * 8 * 2)
    assert known["objective"] == pytest.approx(57 - 192)


def test_services_must_fit() -> None:
    day = replace(DAY, realtime=(RealtimeApp("chat", 2.0, (2,) * 24),))
    with pytest.raises(InputError) as caught:
        day_as_it_was(day, RECORD, services={"chta": [1]})
    assert [mistake.path for mistake in caught.value.mistakes] == ["services.chta", "services.chat"]
    with pytest.raises(InputError, match="each of the 24 steps"):
        day_as_it_was(day, RECORD, services={"chat": [1] * 23 + [-1]})


def test_services_from_what_was_measured() -> None:
    """From 23:00 on in half hours: 9, 9, then 1, 2 (mean 1.5: 2), unknown and 4 (4), then 3s: 24 hours are known."""
    values = [9, 9, 1, 2, np.nan, 4, *[3] * 44]
    measured = TrafficHistory("chat", "GPUs", datetime(2026, 4, 9, 23), 1800, np.array(values, float))
    assert services_of_histories(DAY, {"chat": measured}) == {"chat": [2, 4, *[3] * 22]}
    short = TrafficHistory("chat", "GPUs", datetime(2026, 4, 10, 2), 1800, np.full(30, 3.0))
    with pytest.raises(
        InputError, match=r"services\.chat: must be known in every step of the day; 9 are not, step 0"
    ):
        services_of_histories(DAY, {"chat": short})
    odd = TrafficHistory("chat", "GPUs", datetime(2026, 4, 10, 0, 10), 1800, np.full(60, 3.0))
    with pytest.raises(InputError, match="must have bins that divide steps of 3600 s"):
        services_of_histories(DAY, {"chat": odd})
    with pytest.raises(InputError, match=r"horizon\.start: must be given"):
        services_of_histories(replace(DAY, horizon=Horizon(24)), {"chat": measured})


def test_a_cluster_that_is_too_small_is_refused_or_widened_by_whole_nodes() -> None:
    """a and x together hold 4 + 5 from hour 2."""
    day = replace(DAY, batch=(job("a", 4, 6), job("x", 8, 3)))
    record = rows(("a", 4, 0, 6), ("x", 5, 2, 5))
    with pytest.raises(InputError, match=r"at least 9 GPUs that are available.*2\.00 h after the start"):
        day_as_it_was(day, record)
    both = compare_day(day, record, ["fifo"], widen=True)
    assert both.record.scenario.cluster.gpus == both.plans["fifo"].scenario.cluster.gpus == 12
    assert any("it has 12 here" in note for note in both.remarks)


def test_no_job_of_the_day_in_the_record() -> None:
    with pytest.raises(InputError, match="must name batch jobs of the scenario"):
        day_as_it_was(DAY, rows(("z", 1, 0, 1)))


def as_record(found: Plan) -> Recorded:
    placed = np.flatnonzero(found.start >= 0)
    step_s = found.scenario.horizon.step_s
    name = np.array([found.scenario.batch[j].name for j in placed.tolist()], object)
    start = found.start[placed] * step_s
    words = np.full(len(placed), "completed", object)
    end = start + found.duration[placed] * step_s
    return Recorded("plan", name, name, words, found.size[placed], start, start, end)


@st.composite
def days(draw: st.DrawFn) -> AllocationScenario:
    steps = draw(st.sampled_from([6, 12]))
    sizes = st.sampled_from([1, 2, 4])
    hours = st.sampled_from([0.5, 1.0, 2.5, 4.0])
    batch = tuple(
        job(
            f"j{k}",
            draw(sizes),
            draw(hours),
            float(draw(st.integers(0, steps - 1))),
            priority=float(draw(st.integers(1, 5))),
            deadline_hour=draw(st.sampled_from([None, 3.0, 6.0])),
        )
        for k in range(draw(st.integers(1, 9)))
    )
    demand = tuple(draw(st.lists(st.integers(0, 3), min_size=steps, max_size=steps)))
    apps = (RealtimeApp("chat", 2.5, demand, max_swap=draw(st.sampled_from([None, 1]))),)
    return AllocationScenario(
        "law",
        Cluster(8, 4, (3,), 1.5),
        Horizon(steps, draw(st.sampled_from([HOUR, HOUR // 2]))),
        Objective(half_life_hours=draw(st.sampled_from([None, 5.0]))),
        Rules(must_finish=draw(st.booleans())),
        realtime=apps if draw(st.booleans()) else (),
        batch=batch,
    )


@settings(deadline=None, max_examples=25)
@given(days(), st.sampled_from(["fifo", "aware"]))
def test_a_plan_read_back_as_a_record_has_the_plans_figures(day: AllocationScenario, policy: str) -> None:
    found = plan(day, policy)
    if not (found.start >= 0).any():
        return
    held = {app.name: found.held[r].tolist() for r, app in enumerate(day.realtime)}
    done = day_as_it_was(day, as_record(found), services=held)
    expected = dict(found.figures) | dict.fromkeys(("swaps", "bound", "gap"))
    assert done.figures.keys() == expected.keys()
    for name, value in expected.items():
        assert done.figures[name] == pytest.approx(value, abs=1e-9), name


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_rows_hold_what_was_held_and_no_row_twice(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 20))
    column = st.lists(st.integers(0, 30), min_size=n, max_size=n)
    start = np.array(data.draw(column), np.int64)
    end = start + np.array(data.draw(column), np.int64)
    gpus = np.array(data.draw(column), np.int64) % 5 + 1
    most, _ = peak(start, end, gpus)
    free = np.ones(most + data.draw(st.integers(1, 4)), np.bool_)
    free[data.draw(st.integers(0, len(free) - 1))] = False
    if free.sum() < most:
        free[:] = True
    stretch, low, high = gpu_rows(start, end, gpus, free, data.draw(st.integers(1, 8)))
    lasting = end > start
    assert np.array_equal(np.bincount(stretch, high - low, n), np.where(lasting, gpus, 0))
    for t in range(61):
        now = (start[stretch] <= t) & (t < end[stretch])
        used = np.zeros(len(free), int)
        for first, last in zip(low[now].tolist(), high[now].tolist(), strict=True):
            used[first:last] += 1
        assert used.max(initial=0) <= 1
        assert not used[~free].any()


def test_a_block_stays_within_a_node_where_it_can() -> None:
    """Nodes of 4: three GPUs of node 0 are taken, so a job of 2 goes to GPUs 4 and 5 and one of 1 to GPU 3."""
    columns = np.array([0, 1, 2]), np.array([9, 9, 9]), np.array([3, 2, 1])
    _, low, high = gpu_rows(*columns, np.ones(8, np.bool_), 4)
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == [(0, 3), (4, 6), (3, 4)]


# ----------------------------------------------------------------------------- the chart


@pytest.fixture(scope="module")
def compared() -> DayCompared:
    name = "<img src=x>"
    day = replace(DAY, batch=(*DAY.batch, job(name, 2, 2)))
    record = rows(("a", 4, 0.5, 6.5), ("b", 2, 1, 5.5), ("c", 3, 22, 25), (name, 2, 7, 9))
    return compare_day(day, record, ["fifo", "aware"])


def test_the_record_stands_above_the_plans_in_one_scale(compared: DayCompared) -> None:
    spec = day_chart(compared).to_dict()
    titles = [spec["datasets"][f"side_{k}_frame"][0]["title"] for k in range(3)]
    assert titles[0] == f"{AS_IT_WAS}: utilization 22.4 %, value 61.0, p90 of waits 7 h"  # (39 + 4) / 192
    assert titles[1].startswith("fifo: ")
    assert len({json.dumps(spec["datasets"][f"side_{k}_frame"][0]["x2"]) for k in range(3)}) == 1
    bars = spec["datasets"]["side_0_bars"]
    assert [(bar["x"], bar["x2"], bar["y"], bar["y2"]) for bar in bars if bar["job"] == "a"] == [
        (0.5, 6.5, -0.5, 3.5)
    ]
    usage = spec["datasets"]["side_0_usage"]
    assert [row["training"] for row in usage[:2]] == [2.0, 6.0]  # means: half an hour of 4; 4 + 2
    subtitle = " ".join(spec["title"]["subtitle"])
    assert all(sentence in subtitle for sentence in HONESTY)
    assert {row["row"] for row in spec["datasets"]["shares"]} >= {
        f"utilization: {AS_IT_WAS}",
        "utilization: aware",
    }


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_it_is_drawn_in_both_modes_and_names_stay_text(compared: DayCompared, mode: Any) -> None:
    vl_convert = pytest.importorskip("vl_convert")
    drawn = vl_convert.vegalite_to_svg(day_chart(compared, mode=mode).to_dict())
    assert "<img" not in drawn
    assert AS_IT_WAS in drawn


def test_the_table_has_notes_and_unknown_figures_as_none(compared: DayCompared) -> None:
    shown = repr(compared)
    assert all(note in shown for note in compared.record.notes)
    bound = next(line for line in shown.splitlines() if line.startswith("bound"))
    assert bound.split()[1] == "none"
    assert np.isnan(compared.wide.loc["bound", AS_IT_WAS])
