"""Case `util-window-clip`: a job counts with the part of it that lies in the window, an idle node with its GPUs."""

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.inputs.errors import InputError
from gpuplan.traces.window import Busy, busy_in_window

DAY = (datetime(2026, 5, 1), datetime(2026, 5, 2))
AS_OF = datetime(2026, 5, 2, 3)


CASE = "util-window-clip"


@pytest.fixture(scope="module")
def jobs(case: Path) -> list[Busy]:
    with (case / "input.txt").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="|"))
    return [
        Busy(
            datetime.fromisoformat(row["Start"]),
            None if row["End"] == "Unknown" else datetime.fromisoformat(row["End"]),
            int(row["GPUs"]),
        )
        for row in rows
    ]


def test_the_day(jobs: list[Busy], expected: dict[str, Any]) -> None:
    found = busy_in_window(jobs, DAY, gpus=8, as_of=AS_OF)
    assert found.capacity_gpu_hours == expected["capacity_gpu_hours"]
    assert found.used_gpu_hours == expected["used_gpu_hours"]
    assert found.utilization_percent == pytest.approx(expected["utilisation_percent"], abs=5e-7)
    assert found.peak_busy == expected["peak_busy"]
    for hours, busy in expected["busy_gpus_by_hour"].items():
        first, last = (int(hour) for hour in hours.split("-"))
        assert set(found.busy[first:last].tolist()) == {busy}


def test_every_job_is_accounted_for(jobs: list[Busy]) -> None:
    account = busy_in_window([*jobs, Busy(None, None, 4)], DAY, gpus=8, as_of=AS_OF).account
    assert (account.read, account.used) == (7, 4)
    assert dict(account.excluded) == {"had not started": 1, "ended before the window": 1, "began after it": 1}
    assert account.rules[0] == "The base is the 8 GPUs of the cluster, idle ones included."


# ---------------------------------------------------------------------- the same fault in other clothes


def test_a_node_that_was_away_leaves_the_base(jobs: list[Busy]) -> None:
    away = [Busy(datetime(2026, 5, 1, 6), datetime(2026, 5, 1, 12), 4)]
    found = busy_in_window(jobs, DAY, gpus=8, as_of=AS_OF, away=away)
    assert found.capacity_gpu_hours == 168
    assert any("24 GPU-hours of GPUs that were away" in rule for rule in found.account.rules)


def test_a_window_shorter_than_every_job(jobs: list[Busy]) -> None:
    window = (datetime(2026, 5, 1, 10, 30), datetime(2026, 5, 1, 10, 45))
    found = busy_in_window(jobs, window, gpus=8, as_of=AS_OF, bin_s=300)
    assert found.used_gpu_hours == 7 * 0.25
    assert found.busy.tolist() == [7, 7, 7]


moments = st.integers(-5000, 15000)


@given(st.lists(st.tuples(moments, st.none() | st.integers(0, 9000), st.integers(0, 16))), st.integers(1, 59))
def test_windows_in_a_row_add_up_to_the_whole_exactly(
    rows: list[tuple[int, int | None, int]], cut: int
) -> None:
    """Against the plain sum over the jobs, second by second, and split at any minute."""
    zero = datetime(2026, 5, 1, tzinfo=UTC)

    def at(second: int) -> datetime:
        return zero + timedelta(seconds=second)

    jobs = [Busy(at(s), None if length is None else at(s + length), gpus) for s, length, gpus in rows]
    whole = busy_in_window(jobs, (at(0), at(3600)), gpus=8, bin_s=60)
    parts = [
        busy_in_window(jobs, (at(a), at(b)), gpus=8, bin_s=60) for a, b in ((0, cut * 60), (cut * 60, 3600))
    ]
    plain = sum(
        gpus * max(0, min(3600 if length is None else s + length, 3600) - max(s, 0))
        for s, length, gpus in rows
    )
    assert round(whole.used_gpu_hours * 3600) == plain
    assert sum(round(part.used_gpu_hours * 3600) for part in parts) == plain
    assert np.concatenate([part.busy for part in parts]).tolist() == whole.busy.tolist()
    assert max(part.peak_busy for part in parts) == whole.peak_busy


def test_nothing_is_said_of_the_time_after_the_export(jobs: list[Busy]) -> None:
    """Exported at 11:30: eleven full hours, 6 x 5 + 4 x 1 + 1 x 7 = 41 of 88."""
    found = busy_in_window(jobs, DAY, gpus=8, as_of=datetime(2026, 5, 1, 11, 30))
    assert (found.used_gpu_hours, found.capacity_gpu_hours, len(found.busy)) == (41, 88, 11)
    assert found.end == datetime(2026, 5, 1, 11)
    assert any("later use is unknown" in rule for rule in found.account.rules)
    with pytest.raises(InputError, match="nothing is known of it yet"):
        busy_in_window(jobs, DAY, gpus=8, as_of=datetime(2026, 4, 30))


def test_a_hand_over_is_no_peak() -> None:
    noon = datetime(2026, 5, 1, 12)
    jobs = [Busy(DAY[0], noon, 8), Busy(noon, DAY[1], 8)]
    assert busy_in_window(jobs, DAY, gpus=8).peak_busy == 8


def test_wrong_jobs_are_told_all_at_once() -> None:
    jobs = [Busy(DAY[1], DAY[0], 1), Busy(DAY[0], None, -1), Busy(DAY[0].replace(tzinfo=UTC), None, 1)]
    with pytest.raises(InputError) as caught:
        busy_in_window(jobs, DAY, gpus=8)
    assert [mistake.path for mistake in caught.value.mistakes] == [
        "jobs.0.end",
        "jobs.1.gpus",
        "jobs.2.start",
    ]


def test_more_gpus_in_use_than_there_are_is_said() -> None:
    found = busy_in_window([Busy(*DAY, 9)], DAY, gpus=8)
    assert any("more than the 8" in rule for rule in found.account.rules)
    assert found.utilization_percent == 112.5
