"""Case `num-int-overflow`: GPU-seconds of years on thousands of GPUs, whole and exact, on every path."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import front_door
from gpuplan import jit
from gpuplan.fairshare import engine
from gpuplan.fairshare.jobs import Jobs
from gpuplan.fairshare.jobs import jobs as make_jobs
from gpuplan.fairshare.model import BudgetNode, FairshareScenario, Pool
from gpuplan.fairshare.policies import fifo
from gpuplan.fairshare.problem import compile_problem
from gpuplan.traces.swf import read_swf

CASE = "num-int-overflow"


@pytest.fixture(scope="module")
def rows(case: Path) -> list[dict[str, str]]:
    with (case / "input.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def jobs(rows: list[dict[str, str]]) -> Jobs:
    columns = {name: [int(row[name]) for row in rows] for name in ("gpus", "run_s")}
    return make_jobs([row["id"] for row in rows], [0] * len(rows), columns["gpus"], columns["run_s"])


def test_gpu_seconds_and_hours(jobs: Jobs, expected: dict[str, Any]) -> None:
    assert jobs.gpu_seconds.dtype == np.int64
    assert int(jobs.gpu_seconds.sum()) == expected["gpu_seconds"]
    assert jobs.gpu_seconds.sum() / 3600 == pytest.approx(expected["gpu_hours"], abs=5e-7)
    hours = dict(zip(jobs.name.tolist(), (jobs.gpu_seconds / 3600).tolist(), strict=True))
    assert hours == pytest.approx(expected["gpu_hours_by_row"], abs=5e-7)


def test_memory_in_gib_hours(rows: list[dict[str, str]], jobs: Jobs, expected: dict[str, Any]) -> None:
    """Memory x time is formed in hours: in byte-seconds row 1 alone would be beyond 64 bits."""
    first = int(jobs.gpu_seconds[0]) // 3600 * int(rows[0]["mem_gib_per_gpu"])
    assert first == expected["gib_hours_row_1"]
    assert first * 2**30 * 3600 > 2**63


def test_narrow_columns_are_widened_before_they_are_multiplied(expected: dict[str, Any]) -> None:
    """The same rows from 16- and 32-bit columns, as a binary table may hold them."""
    found = make_jobs(
        ["1", "2", "3", "4"],
        np.zeros(4, np.int32),  # type: ignore[arg-type]
        np.array([4096, 300, 8, 1], np.int16),  # type: ignore[arg-type]
        np.array([31536000, 31536000, 2147483648, 1], np.uint32),  # type: ignore[arg-type]
    )
    assert int(found.gpu_seconds.sum()) == expected["gpu_seconds"]


def test_the_same_through_a_workload_log(
    rows: list[dict[str, str]], tmp_path: Path, expected: dict[str, Any]
) -> None:
    path = tmp_path / "log.swf"
    path.write_text(
        "".join(f"{r['id']} 0 0 {r['run_s']} {r['gpus']}{' -1' * 13}\n" for r in rows), encoding="utf-8"
    )
    log = read_swf(path)
    assert log.processor_seconds == expected["gpu_seconds"]
    assert dict((what, amount) for what, amount, _ in log.account.amounts)[
        "work of the jobs used"
    ] == pytest.approx(expected["gpu_hours"], abs=5e-7)


def test_compiled_equals_plain(jobs: Jobs, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The year on one pool: what the stretches of a run add up to, from compiled kernels and from plain Python."""

    def done() -> tuple[int, list[int]]:
        pool = Pool(1, 4096 + 300 + 8 + 1)
        problem = compile_problem(FairshareScenario("year", (pool,), (BudgetNode("everyone"),), jobs=jobs))
        found = fifo.run(problem).stretches
        gpus = jobs.gpus[found.job]
        assert np.bincount(found.place_stretch, found.place_gpus).astype(np.int64).tolist() == gpus.tolist()
        return int((gpus * (found.end_s - found.start_s)).sum()), found.end_s.tolist()

    compiled = done()
    monkeypatch.setattr(engine, "kernels", jit.plain_copy(engine.kernels))
    assert (compiled == done()) == expected["compiled_equals_plain"]
    assert compiled[0] == expected["gpu_seconds"]


@given(st.lists(st.tuples(st.integers(1, 10**5), st.integers(0, 10**9)), max_size=20))
def test_sums_agree_with_whole_numbers_of_any_size(rows: list[tuple[int, int]]) -> None:
    """Against Python's own numbers; 20 x 1e14 stays below 2^63."""
    gpus, run = [row[0] for row in rows], [row[1] for row in rows]
    found = make_jobs([str(k) for k in range(len(rows))], [0] * len(rows), gpus, run)
    assert int(found.gpu_seconds.sum()) == sum(g * r for g, r in rows)


@pytest.mark.parametrize("policy", ["fifo", "easy", "fair-share"])
def test_by_scenario_file(
    tmp_path: Path, rows: list[dict[str, str]], expected: dict[str, Any], policy: str
) -> None:
    """The year on one pool: a table of jobs, the figures in GPU-hours, row by row and in the tables of teams."""
    table = [{"job": row["id"], "submit_s": 0, "gpus": row["gpus"], "run_s": row["run_s"]} for row in rows]
    gpus = sum(int(row["gpus"]) for row in rows)
    run = front_door.run(front_door.load(tmp_path, {"cluster": {"gpus": gpus}}, table), policy)
    ran = run.to_frame()
    assert int((ran.gpus * (ran.end_s - ran.start_s)).sum()) == expected["gpu_seconds"]
    hours = (ran.gpus * (ran.end_s - ran.start_s) / 3600).groupby(ran.job).sum().to_dict()
    assert hours == pytest.approx(expected["gpu_hours_by_row"], abs=5e-7)
    assert run.teams.delivered_gpu_hours.sum() == pytest.approx(expected["gpu_hours"], abs=5e-7)
    # all of it over all GPUs until the longest job ends, 68 years: 2^31 s
    assert run.figures["occupancy"] == pytest.approx(expected["gpu_seconds"] / (gpus << 31), rel=1e-12)
    assert int(run.over(31_536_000).allocated.sum()) == expected["gpu_seconds"]
