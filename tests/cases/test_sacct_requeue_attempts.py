"""Case `sacct-requeue-attempts`: what a job held counts in every attempt, and a line seen twice counts once."""

from pathlib import Path
from typing import Any

import pytest

from cases.sacct_clothes import CLOTHES, dressed
from gpuplan.traces.history import REPEAT, SUPERSEDED, History
from gpuplan.traces.slurm import read_sacct

CASE = "sacct-requeue-attempts"


def check(found: History, expected: dict[str, Any]) -> None:
    table = found.by_job().set_index("job")
    assert found.n_jobs == len(table) == expected["jobs"]
    assert table.attempts.to_dict() == expected["attempts"]
    assert found.gpu_seconds / 3600 == expected["gpu_hours_occupied"]
    assert table.lost_gpu_seconds.sum() / 3600 == expected["gpu_hours_in_lost_runs"]
    assert table.state.str.upper().to_dict() == expected["final_state"]
    assert table.first_wait_s.to_dict() == expected["first_wait_s"]
    assert table.wait_s["8801"] == expected["total_wait_s"]["8801"]
    assert round(table.turnaround_s["8801"] / 3600, 6) == expected["turnaround_h"]["8801"]
    assert len(found.lines(REPEAT)) == expected["exact_repeats_removed"]


def test_expected_values(case: Path, expected: dict[str, Any]) -> None:
    found = read_sacct(case / "input.txt")
    check(found, expected)
    assert found.attempt[found.used].tolist() == [1, 2, 3, 1]


@pytest.mark.parametrize("name", CLOTHES)
def test_in_other_clothes(case: Path, tmp_path: Path, expected: dict[str, Any], name: str) -> None:
    check(read_sacct(dressed(tmp_path, (case / "input.txt").read_text(), name)), expected)


def test_attempts_out_of_order(case: Path, tmp_path: Path, expected: dict[str, Any]) -> None:
    header, *lines = (case / "input.txt").read_text().strip().split("\n")
    path = tmp_path / "turned.txt"
    path.write_text("\n".join([header, *reversed(lines)]))
    found = read_sacct(path)
    check(found, expected)
    assert found.attempt[found.used].tolist() == [1, 3, 2, 1]


def test_as_jobs_of_a_replay(case: Path) -> None:
    """8801 ran 1 + 2 + 4 h: as one job 7 h, its last attempt 4 h, or three jobs."""
    found = read_sacct(case / "input.txt")
    assert found.jobs().run_s.tolist() == [25200, 3600]
    assert found.jobs(attempts="last").run_s.tolist() == [14400, 3600]
    each = found.jobs(attempts="each")
    assert each.name.tolist() == ["8801", "8802", "8801/attempt-2", "8801/attempt-3"]
    assert each.submit_s.tolist() == [0, 3600, 7230, 18060]
    assert int(each.gpu_seconds.sum()) == found.gpu_seconds


def rows(folder: Path, *lines: str) -> History:
    path = folder / "some.txt"
    path.write_text("JobID|User|State|Submit|Start|End|Elapsed|AllocTRES\n" + "\n".join(lines) + "\n")
    return read_sacct(path)


def line(job: int, state: str, submit: str, start: str, end: str, elapsed: str, user: str = "u01") -> str:
    times = [f"2026-04-{time}" if time[0].isdigit() else time for time in (submit, start, end)]
    return "|".join([str(job), user, state, *times, elapsed, "gres/gpu=1" if elapsed != "00:00:00" else ""])


def test_preempted_twice_within_a_minute_and_running(tmp_path: Path) -> None:
    found = rows(
        tmp_path,
        line(1, "PREEMPTED", "01T08:00:00", "01T08:00:00", "01T08:00:20", "00:00:20"),
        line(1, "PREEMPTED", "01T08:00:20", "01T08:00:21", "01T08:00:40", "00:00:19"),
        line(1, "RUNNING", "01T08:00:40", "01T08:00:41", "Unknown", "00:10:00"),
    )
    assert found.n_jobs == 1
    assert found.attempt.tolist() == [1, 2, 3]
    assert found.gpu_seconds == 20 + 19 + 600
    assert found.by_job().state.tolist() == ["running"]


def test_an_attempt_seen_by_two_exports(tmp_path: Path) -> None:
    """It waits in the first export, runs in the second, is over in the third: one attempt, as the last one says."""
    found = rows(
        tmp_path,
        line(1, "COMPLETED", "01T08:00:00", "01T09:00:00", "01T10:00:00", "01:00:00"),
        line(1, "PENDING", "01T08:00:00", "Unknown", "Unknown", "00:00:00"),
        line(1, "RUNNING", "01T08:00:00", "01T09:00:00", "Unknown", "00:20:00"),
    )
    assert found.lines(SUPERSEDED) == [3, 4]
    assert found.gpu_seconds == 3600
    assert found.state[found.used].tolist() == ["completed"]


def test_an_id_that_is_given_again(tmp_path: Path) -> None:
    """A day without the job, or another user: the id is another job's."""
    found = rows(
        tmp_path,
        line(1, "COMPLETED", "01T08:00:00", "01T08:00:00", "01T09:00:00", "01:00:00"),
        line(1, "COMPLETED", "03T08:00:00", "03T08:00:00", "03T09:00:00", "01:00:00"),
        line(2, "NODE_FAIL", "01T08:00:00", "01T08:00:00", "01T09:00:00", "01:00:00"),
        line(2, "COMPLETED", "01T09:00:05", "01T09:00:05", "01T10:00:05", "01:00:00", user="u02"),
    )
    assert found.n_jobs == 4
    assert found.attempt.tolist() == [1, 1, 1, 1]
    assert found.job.tolist() == [
        "1",
        "1/submitted-2026-04-03T08:00:00",
        "2",
        "2/submitted-2026-04-01T09:00:05",
    ]
