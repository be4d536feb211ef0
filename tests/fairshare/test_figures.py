"""Figures of runs written by hand, with their arithmetic; books that balance."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairshare.by_hand import FINISHED, HALVES, problem_of, raw_of, run_of, two_teams
from gpuplan.allocation.figures import percentile
from gpuplan.fairshare import ledger as books
from gpuplan.fairshare.figures import MEANINGS, QUANTILES, UNITS, figures, size_class
from gpuplan.fairshare.hours import integrals
from gpuplan.fairshare.jobs import jobs
from gpuplan.fairshare.model import Drain, Pool
from gpuplan.percentiles import grouped_percentiles, percentiles


def test_every_figure_has_a_unit_and_a_sentence() -> None:
    found = figures(*two_teams())
    assert list(found) == list(UNITS) == list(MEANINGS)
    assert all(text.endswith(".") and text.count(". ") == 0 for text in MEANINGS.values())
    # what the contract of the commands names
    assert set(found) >= {
        "mean_wait_s", "wait_p50_s", "wait_p90_s", "wait_p99_s", "makespan_s", "mean_bounded_slowdown", "occupancy",
        "delivered_share", "unallocated_share", "preemptions", "lost_gpu_hours",
    }  # fmt: skip


def test_a_run_by_hand() -> None:
    """The run of `two_teams`: 8 GPUs x 1,000 s = 8,000 GPU-seconds.

    Held: 4 x 300 + 4 x 260 + 4 x 200 + 2 x 290 + 4 x 310 + 4 x 400 = 6,460, lost 4 x (20 + 10 + 10) = 160.
    Waits 0, 0, 0, 5 and 300 so far. Entitlement 4 GPUs each; a wants 4 x 810 + 2 x 295 + 8 x 300 = 6,230 and is owed
    4,000, b wants and is owed 4 x 200; delivered 4 x 300 + 4 x 310 + 2 x 290 = 3,020, and 800.
    """
    found = figures(*two_teams())
    assert found == {
        "mean_wait_s": 305 / 5,
        "wait_p50_s": 0,
        "wait_p90_s": 300,
        "wait_p99_s": 300,
        "waits_are_lower_bounds": 1,
        "debug_wait_p50_s": 0,  # long, quick and next: 0, 0, 5
        "debug_wait_p90_s": 5,
        "debug_wait_p99_s": 5,
        "largest_wait_p50_s": 300,  # late alone has 8 GPUs
        "largest_wait_p90_s": 300,
        "makespan_s": 1000,
        # 810 / 600, 950 / 1,000 so far, 200 / 200, 295 / 290, 300 / 500 so far
        "mean_bounded_slowdown": pytest.approx((1.35 + 1 + 1 + 295 / 290 + 1) / 5),
        "availability": 1.0,
        "occupancy": 6460 / 8000,
        "goodput": 6300 / 8000,
        "impact": 3820 / 6460,
        "delivered_share": 3820 / 4800,
        "delivered_worst_team": 3020 / 4000,
        "teams_served": 1,
        "jain": pytest.approx((0.755 + 1) ** 2 / (2 * (0.755**2 + 1))),
        "unallocated_share": (1040 + 1600) / 6460,
        "outstanding": (3240 + 3800 + 800 + 590 + 2400) / 8000,
        "preemptions": 2,
        "shut_downs_by_hand": 0,
        "lost_gpu_hours": 160 / 3600,
        "lost_share": 160 / 6460,
        "idle_gpu_hours": 0.0,
        "jobs_submitted": 5,
        "jobs_started": 4,
        "jobs_finished": 3,
        "jobs_outstanding": 2,
        "jobs_set_aside": 0,
    }


def test_occupied_is_useful_plus_lost_and_requested_useful_plus_outstanding() -> None:
    """Outstanding: 4 x (1,000 - 240 - 390) of fill, 8 x 500 of late = 5,480; requested 11,780 = 6,300 + 5,480."""
    problem, raw = two_teams()
    kept = books.ledger(problem, raw)
    assert books.occupied(problem, raw, kept) == {"occupied": 6460, "useful": 6300, "lost": 160}
    assert books.requested(problem, raw, kept) == {"requested": 11780, "useful": 6300, "outstanding": 5480}


def test_teams_of_a_run_by_hand() -> None:
    table = run_of(*two_teams()).teams.set_index("team")
    assert table.owed_gpu_hours.tolist() == [4000 / 3600, 800 / 3600]
    assert table.delivered_gpu_hours.tolist() == [3020 / 3600, 800 / 3600]
    assert table.delivered_share.tolist() == [0.755, 1.0]
    assert table.unallocated_gpu_hours.tolist() == [0, 2640 / 3600]
    assert table.wait_p50_s.tolist() == [5, 0]  # of 0, 5, 300, and of 0, 0
    assert table.wait_p90_s.tolist() == [300, 0]
    assert table.jobs.tolist() == [3, 2]
    assert table.jobs_finished.tolist() == [2, 1]
    assert table.preemptions.tolist() == [1, 1]
    assert table.lost_gpu_hours.tolist() == [40 / 3600, 120 / 3600]


def test_sizes_of_a_run_by_hand() -> None:
    table = run_of(*two_teams()).sizes
    assert table.values.tolist() == [
        [2, 2, 1, 5, 5, 5, 0],
        [3, 4, 3, 0, 0, 0, 0],
        [5, 8, 1, 300, 300, 300, 1],
    ]


def test_jobs_of_a_run_by_hand() -> None:
    table = run_of(*two_teams()).jobs.set_index("job")
    assert table.state.tolist() == ["finished", "running", "finished", "finished", "waiting"]
    assert table.end_s.tolist()[:1] == [810]
    assert table.end_s.isna().tolist() == [False, True, False, False, True]
    assert table.first_start_s.isna().tolist() == [False] * 4 + [True]
    assert table.wait_is_lower_bound.tolist() == [False] * 4 + [True]
    assert table.lost_gpu_s.tolist() == [40, 120, 0, 0, 0]


def test_owed_is_the_lower_of_entitlement_and_demand_hour_by_hour() -> None:
    """Team a wants 8 GPUs in the first hour and nothing in the second: owed 4 GPU-hours, not 8 nor 4 + 4."""
    made = jobs(["x"], [0], [8], [3600], team=["a"], minimum_s=60)
    problem = problem_of(made)
    raw = raw_of(problem, [(0, 0, 3600, FINISHED, {0: 4, 1: 4}, 0, 3600, True, 60)], 7200)
    run = run_of(problem, raw)
    assert run.owed.owed == [4 * 3600, 0]
    assert run.owed.ratios == [2.0, None]
    assert run.figures["delivered_share"] == 1.0  # capped in the total
    assert run.figures["delivered_worst_team"] == 2.0  # b was owed nothing; a is not capped
    assert run.figures["impact"] == 0.5
    assert run.figures["jain"] == 1.0


def test_a_wait_across_hours_is_demand() -> None:
    """a waits 1,800-5,400 and then has 2 GPUs for 1,800 s: wanted 3,600 in each of two hours, owed all of it."""
    made = jobs(["x"], [1800], [2], [1800], team=["a"], minimum_s=60)
    problem = problem_of(made)
    raw = raw_of(problem, [(0, 5400, 7200, FINISHED, {0: 2}, 0, 1800, True, 5460)], 7200)
    run = run_of(problem, raw)
    assert run.hours.wanted.tolist() == [[3600, 7200], [0, 0]]
    assert run.hours.allocated.tolist() == [[0, 3600], [0, 0]]
    assert run.owed.owed[0] == 10800
    assert run.figures["delivered_share"] == 3600 / 10800


def test_nothing_owed_counts_as_delivered() -> None:
    made = jobs(["x"], [0], [2], [100], team=["a"], minimum_s=0)
    problem = problem_of(made)
    run = run_of(problem, raw_of(problem, [(0, 0, 100, FINISHED, {0: 2}, 0, 100, False, 0)], 100))
    assert run.figures["delivered_share"] == 1.0
    assert run.figures["teams_served"] == 2
    assert run.figures["unallocated_share"] == 1.0


def test_repairs_are_not_available() -> None:
    """Node 0 (4 of 8 GPUs) is in repair 100-300 of 1,000 s: 800 of 8,000; node 1 to the end: another 4 x 100."""
    made = jobs(["x"], [0], [4], [720], team=["a"], minimum_s=60)
    drains = (Drain(1, 900, 500), Drain(0, 50, 200))
    problem = problem_of(made, drains=drains, until_s=1000)
    rows = [(0, 0, 720, FINISHED, {1: 4}, 0, 720, True, 60)]
    raw = raw_of(problem, rows, 1000, repairs=((900, 1 << 60), (100, 300)))
    found = figures(problem, raw)
    assert found["availability"] == 6800 / 8000
    assert found["occupancy"] == 4 * 720 / 6800


def test_squatting_is_occupied_and_not_good() -> None:
    made = jobs(["x"], [0], [4], [1000], team=["a"], minimum_s=60, idle_s=400)
    problem = problem_of(made)
    found = figures(problem, raw_of(problem, [(0, 0, 1000, FINISHED, {0: 4}, 0, 1000, True, 60)], 1000))
    assert found["occupancy"] == 0.5
    assert found["goodput"] == 0.3
    assert found["idle_gpu_hours"] == 1600 / 3600


def test_set_aside_and_not_yet_submitted_jobs_have_no_wait() -> None:
    made = jobs(["huge", "later", "ok"], [0, 5000, 0], [64, 1, 1], [10, 10, 10], team="a", minimum_s=5)
    problem = problem_of(made, until_s=100)
    raw = raw_of(problem, [(1, 0, 10, FINISHED, {0: 1}, 0, 10, True, 5)], 100)
    run = run_of(problem, raw)
    assert run.jobs.state.tolist() == ["set-aside", "finished", "not-submitted"]
    assert run.jobs.wait_s.isna().tolist() == [True, False, True]
    assert run.figures["mean_wait_s"] == 0
    counts = {name: value for name, value in run.figures.items() if name.startswith("jobs_")}
    assert list(counts.values()) == [2, 1, 1, 0, 1]
    assert run.set_aside == {"huge": "64 GPUs wanted, 8 exist"}


def test_nothing_at_all() -> None:
    problem = problem_of(jobs([], [], [], []))
    found = figures(problem, raw_of(problem, [], 0))
    assert found["mean_wait_s"] is None
    assert found["occupancy"] is None
    assert found["makespan_s"] is None
    assert found["delivered_share"] == 1.0
    assert found["jobs_submitted"] == 0
    json.dumps(found, allow_nan=False)
    run = run_of(problem, raw_of(problem, [], 0))
    assert len(run.teams) == 2
    assert len(run.sizes) == len(run.jobs) == len(run.to_frame()) == 0
    assert "no wait" in repr(run)


@given(st.lists(st.integers(0, 10**6), max_size=60))
@settings(deadline=None)
def test_percentiles_follow_the_rule_of_all_percentiles(values: list[int]) -> None:
    got = percentiles(np.array(values, np.int64), QUANTILES)
    assert got == [percentile([float(v) for v in values], q) for q in (0.5, 0.9, 0.99)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1000)), max_size=60))
@settings(deadline=None)
def test_percentiles_of_groups_are_those_of_each(rows: list[tuple[int, int]]) -> None:
    group = np.array([g for g, _ in rows], np.int64)
    values = np.array([v for _, v in rows], np.int64)
    got = grouped_percentiles(values, group, 4, QUANTILES)
    for g in range(4):
        alone = percentiles(values[group == g], QUANTILES)
        assert [None if math.isnan(v) else v for v in got[g]] == alone


def test_size_classes() -> None:
    assert size_class(np.array([1, 2, 3, 4, 5, 8, 9, 1024, 1025])).tolist() == [
        1,
        2,
        4,
        4,
        8,
        8,
        16,
        1024,
        2048,
    ]


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 9), st.integers(0, 1)), max_size=12
    ),
    st.integers(50, 61),
    st.integers(1, 13),
)
@settings(deadline=None)
def test_integrals_are_sums_over_seconds(
    rows: list[tuple[int, int, int, int]], until: int, step: int
) -> None:
    spans = [(min(a, b), max(a, b), g, k) for a, b, g, k in rows]
    columns = [np.array(c, np.int64) for c in zip(*spans, strict=True)] or [np.zeros(0, np.int64)] * 4
    got = integrals(*columns, 2, until, step)
    want = np.zeros((2, -(-until // step)), np.int64)
    for start, end, gpus, group in spans:
        for second in range(start, end):
            want[group, second // step] += gpus
    assert got.tolist() == want.tolist()


def test_integrals_beyond_the_exact_floats() -> None:
    """A year of 2**32 GPUs: more than 2**53 GPU-seconds, to the last one."""
    big, year = 1 << 32, 365 * 24 * 3600
    one = np.array([0, 1], np.int64), np.array([year, 2], np.int64), np.array([big, 1], np.int64)
    got = integrals(*one, np.zeros(2, np.int64), 1, year, year)
    assert got.tolist() == [[big * year + 1]]


def test_gpu_seconds_never_wrap(shared: Path) -> None:
    """Case num-int-overflow: 155,812,125,185 GPU-seconds, and amounts beyond 64 bits."""
    case = shared / "cases" / "num-int-overflow"
    text = (case / "case.md").read_text(encoding="utf-8")
    expected: dict[str, Any] = json.loads(text.split("```json")[1].split("```")[0])
    rows = [line.split(",") for line in (case / "input.csv").read_text(encoding="utf-8").split()[1:]]
    gpus = np.array([row[1] for row in rows]).astype(np.int64)
    run = np.array([row[2] for row in rows]).astype(np.int64)
    assert books.gpu_seconds(gpus, run) == expected["gpu_seconds"]
    hours = [Fraction(books.gpu_seconds(gpus[k : k + 1], run[k : k + 1]), 3600) for k in range(len(gpus))]
    assert {str(k + 1): round(float(h), 6) for k, h in enumerate(hours)} == expected["gpu_hours_by_row"]
    assert round(float(sum(hours)), 6) == expected["gpu_hours"]
    huge = np.array([1 << 40, 1], np.int64)
    assert books.gpu_seconds(huge, huge) == (1 << 80) + 1
    assert books.gpu_seconds(huge[:0], huge[:0]) == 0


def test_figures_of_a_year_on_a_large_cluster() -> None:
    """4,096 GPUs for a year: 129,171,456,000 GPU-seconds held, all of the cluster."""
    year = 31_536_000
    made = jobs(["x"], [0], [4096], [year], team="a", minimum_s=60)
    problem = problem_of(made, (Pool(1, 4096),), budget=HALVES)
    raw = raw_of(problem, [(0, 0, year, FINISHED, {0: 4096}, 0, year, True, 60)], year)
    assert books.occupied(problem, raw, books.ledger(problem, raw))["occupied"] == 129_171_456_000
    found = figures(problem, raw)
    assert found["occupancy"] == found["goodput"] == 1.0
    assert found["impact"] == 0.5
