"""Figures against values worked out by hand, and what must hold of any run."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.packing.figures import COUNTS, MEANINGS, QUANTILES, UNITS, figures
from gpuplan.packing.ledger import PARTS, ledger
from gpuplan.packing.memory import Memory
from gpuplan.packing.model import GIB, NEVER
from gpuplan.packing.raw import DONE, LOAD, ON_GPU, RUN, SAVE, TIMED_OUT, WAITING, WENT_ON
from gpuplan.packing.tasks import tasks
from gpuplan.percentiles import grouped_percentiles, percentiles
from packing.by_hand import CUT, out_of_memory, preempted, problem_of, raw_of, run_of


def split(story: tuple) -> list[list[int]]:
    """A row per task: the seven parts, then the latency."""
    books = ledger(*story)
    return np.stack([*books.parts, books.latency], 1).tolist()


# ------------------------------------------------------------------------------- the split


def test_the_split_of_a_preempted_run() -> None:
    """0: load 4, runs 6 and 14, saved in 6, suspended 16-36, restored 36-47. 1: load 18 (saves, eviction, load)."""
    assert split(preempted()) == [[0, 4, 20, 6, 20, 11, 0, 61], [0, 18, 8, 0, 0, 0, 0, 26]]


def test_the_split_of_failed_attempts() -> None:
    """2: fails after 6, returns 10 later, fails at once, returns 10 later, runs 20: 46 in all. 1 is rejected."""
    assert split(out_of_memory()) == [
        [0, 4, 20, 0, 0, 0, 0, 24],
        [0, 0, 0, 0, 0, 0, 0, 0],
        [20, 0, 20, 0, 0, 0, 6, 46],
    ]


def test_the_split_of_what_has_not_ended() -> None:
    """Run until 50: one runs, one is saved, one waits, one times out, one waits after a failure, one comes later."""
    problem = problem_of(
        tasks([0, 1, 2, 3, 4, 60], service_us=100, deadline_us=[NEVER, NEVER, NEVER, 13, NEVER, NEVER]),
        until_us=50,
    )
    stages = [
        (1, 0, LOAD, WENT_ON, 1, 5),
        (4, 0, LOAD, WENT_ON, 4, 5),
        (1, 0, RUN, 1, 5, 10),
        (4, 0, RUN, 2, 5, 8),
        (1, 0, SAVE, WENT_ON, 10, 16),
        (0, 0, LOAD, WENT_ON, 10, 12),
        (0, 0, RUN, CUT, 12, 50),
    ]
    state = [ON_GPU, WAITING, WAITING, TIMED_OUT, WAITING, WAITING]
    raw = raw_of(stages, [], state, [NEVER, NEVER, NEVER, 13, NEVER, NEVER], 50, [0, 0, 0, 0, 1, 0])
    assert split((problem, raw)) == [
        [10, 2, 38, 0, 0, 0, 0, 50],
        [0, 4, 5, 6, 34, 0, 0, 49],
        [48, 0, 0, 0, 0, 0, 0, 48],
        [10, 0, 0, 0, 0, 0, 0, 10],
        [42, 0, 0, 0, 0, 0, 4, 46],
        [0, 0, 0, 0, 0, 0, 0, 0],
    ]
    books = ledger(problem, raw)
    assert books.arrived.tolist() == [True] * 5 + [False]
    assert books.waits_on.tolist() == [False, False, True, True, True, False]
    found = figures(problem, raw)
    assert [found[name] for name in ("tasks_arrived", *COUNTS)] == [5, 0, 0, 0, 1, 4]
    assert found["waits_are_lower_bounds"] == 3
    assert found["latency_mean_s"] is None
    # waits: 12, 4, 48, 10, 42
    assert found["wait_mean_s"] == pytest.approx(23.2e-6)
    assert [found[f"wait_p{q}_s"] for q in (50, 95, 99)] == [12e-6, 48e-6, 48e-6]


def test_a_million_tasks_are_booked_right() -> None:  # how fast: `make bench`, a million tasks
    n = 1_000_000
    arrival = np.arange(n) * 10
    problem = problem_of(tasks(arrival, service_us=5))
    one = np.arange(n)
    start = np.repeat(arrival, 2)
    end = np.stack([arrival, arrival + 5], 1).ravel()
    rows = [np.repeat(one, 2), np.zeros(2 * n, np.int64), np.tile([LOAD, RUN], n), np.zeros(2 * n, np.int64)]
    empty = raw_of([], [], [], [], int(end[-1]))
    zeros = np.zeros(n, np.int64)
    none = np.zeros(2 * n, np.int64)
    stages = type(empty.stages)(*rows, start, end, start, none, none)
    raw = replace(empty, stages=stages, state=zeros + DONE, left_us=arrival + 5, failures=zeros)
    books = ledger(problem, raw)
    assert (books.service == 5).all()
    assert (sum(books.parts) == books.latency).all()


# ------------------------------------------------------------------------------- the figures


def test_figures_of_a_preempted_run() -> None:
    found = figures(*preempted())
    us = 1e-6
    # latencies 61 and 26, waits 4 and 18
    assert found["latency_mean_s"] == pytest.approx(43.5 * us)
    assert [found[f"latency_p{q}_s"] for q in (50, 95, 99)] == [61 * us] * 3
    assert found["wait_mean_s"] == pytest.approx(11 * us)
    means = {"queue": 0, "load": 11, "service": 14, "save": 3, "suspended": 10, "restore": 5.5, "retry": 0}
    assert {part: found[f"{part}_mean_s"] for part in PARTS} == pytest.approx(
        {part: mean * us for part, mean in means.items()}
    )
    assert found["throughput_per_s"] == pytest.approx(2 / (61 * us))
    assert found["load"] == pytest.approx(28 / 10)  # on one GPU, arrivals 0 to 10
    assert found["busy"] == pytest.approx((6 + 8 + 14) / 61)
    assert (found["out_of_memory"], found["preemptions"], found["evictions"]) == (0, 1, 2)
    assert (found["loads"], found["reloads"]) == (3, 1)
    assert found["cold_share"] == 1.0  # three placements, three claims
    # loads 4 + 7 + 4, save 6, restore 2
    assert found["wasted_gpu_seconds"] == pytest.approx(23 * us)
    # 40 until 21, 70 for 10 to 41, 40 from 36: of 100 over 61
    assert found["reserved_mean"] == pytest.approx((40 * 21 + 70 * 31 + 40 * 25) / 6100)
    # 60 free 0-10: half of it lost; nothing free 10-21; 30 free 21-36: all lost; 36-41: -10; 60 free 41-61
    assert found["fragmentation"] == pytest.approx((30 * 10 + 30 * 15 + 30 * 20) / 6100)
    assert found["largest_free_gib"] == pytest.approx((60 * 10 + 30 * 15 + 60 * 20) / 61 / GIB)


def test_figures_of_memory_that_ran_out() -> None:
    found = figures(*out_of_memory())
    assert [found[name] for name in ("tasks_arrived", *COUNTS)] == [3, 2, 1, 0, 0, 0]
    assert found["out_of_memory"] == 2
    # load 4, and 6 us of running in the first failed attempt (the second took no time)
    assert found["wasted_gpu_seconds"] == pytest.approx(10e-6)
    assert found["retry_mean_s"] == pytest.approx(3e-6)
    assert found["cold_share"] == 0.25
    assert found["waits_are_lower_bounds"] == 0
    # 0 runs 4-24, 1 runs 6-12 and 32-52
    assert found["busy"] == pytest.approx(40 / 52)


def test_nothing_at_all() -> None:
    found = figures(problem_of(tasks([])), raw_of([], [], [], [], 0))
    assert list(found) == list(UNITS)
    whole = {
        name
        for name, unit in UNITS.items()
        if unit in ("tasks", "events", "preemptions", "evictions", "loads")
    }
    assert {name for name, value in found.items() if value is not None} == {*whole, "wasted_gpu_seconds"}


def test_every_figure_has_a_meaning_and_a_unit() -> None:
    assert list(MEANINGS) == list(UNITS)
    assert all(meaning.endswith(".") for meaning in MEANINGS.values())
    assert all(UNITS.values())


def test_parts_add_up_to_the_mean_latency() -> None:
    for story in (preempted(), out_of_memory()):
        found = figures(*story)
        assert sum(found[f"{part}_mean_s"] or 0 for part in PARTS) == pytest.approx(found["latency_mean_s"])


def test_means_of_memory_are_sums_over_instants() -> None:
    """Without KV they are exact."""
    problem, raw = preempted()
    models = tuple(replace(model, kv_bytes_per_token=0) for model in problem.scenario.models)
    problem = replace(problem, scenario=replace(problem.scenario, models=models))
    now = Memory(problem, raw).at(0, np.arange(61))
    found = figures(problem, raw)
    for name in ("reserved", "actual", "useful"):
        assert found[f"{name}_mean"] == pytest.approx(getattr(now, name).sum() / 6100, rel=1e-12)


# ------------------------------------------------------------------------------- percentiles


@given(st.lists(st.integers(0, 1000), max_size=60), st.floats(0, 1))
@settings(deadline=None)
def test_percentiles_are_values_by_index(values: list[int], q: float) -> None:
    n = len(values)
    expected = sorted(values)[min(n - 1, int(q * n))] if n else None
    assert percentiles(np.array(values, np.int64), (q,)) == [expected]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3)), max_size=40))
@settings(deadline=None)
def test_grouped_percentiles(rows: list[tuple[int, int]]) -> None:
    values, group = (np.array([row[k] for row in rows], np.int64) for k in (0, 1))
    found = grouped_percentiles(values, group, 4, QUANTILES)
    for g in range(4):
        alone = percentiles(values[group == g], QUANTILES)
        assert [None if np.isnan(x) else x for x in found[g]] == alone


# ------------------------------------------------------------------------------- tables


def test_tables_by_tenant_and_priority() -> None:
    run = run_of(*preempted())
    assert run.tenants.tenant.tolist() == ["a", "b"]
    assert run.priorities.priority.tolist() == [1, 0]
    assert run.priorities.latency_mean_s.tolist() == pytest.approx([26e-6, 61e-6])
    assert run.priorities.wait_p99_s.tolist() == pytest.approx([18e-6, 4e-6])
    assert run.models.loads.tolist() == [2, 1]
    assert run.models.evictions.tolist() == [1, 1]
    failed = run_of(*out_of_memory()).models
    assert failed[["tasks", "done", "rejected", "in_system"]].values.tolist() == [[2, 2, 0, 0], [1, 0, 1, 0]]
    assert np.isnan(failed.wait_mean_s[1])


def test_the_table_of_tasks() -> None:
    table = run_of(*out_of_memory()).tasks
    assert table.state.tolist() == ["done", "rejected", "done"]
    assert table.failures.tolist() == [0, 0, 2]
    assert table.gpu.isna().tolist() == [False, True, False]
    assert table.reason[1].startswith("large needs 70 bytes")
    assert table.latency_s.tolist() == pytest.approx([24e-6, 0, 46e-6])


def test_the_other_tables() -> None:
    from gpuplan.packing import tables

    run = run_of(*preempted())
    assert run.to_frame().stage.tolist() == ["load", "run", "load", "save", "run", "restore", "run"]
    assert run.to_frame().outcome[1] == "preempted"
    assert tables.copies(run).released_s.isna().tolist() == [False, False, True]
    broke = tables.out_of_memory(run_of(*out_of_memory()))
    assert broke.time_s.tolist() == pytest.approx([12e-6, 22e-6])
    memory = tables.memory(run, 0)
    assert memory.time_s.is_monotonic_increasing
    assert (memory.actual * GIB).max() == pytest.approx(73)
