"""Case `sacct-steps-once`: a step is a part of its job, and is never counted as one."""

from pathlib import Path
from typing import Any

import pytest

from cases.sacct_clothes import CLOTHES, dressed
from gpuplan.traces.history import LONE_STEP, STEP, History
from gpuplan.traces.slurm import read_sacct

CASE = "sacct-steps-once"


@pytest.fixture(scope="module")
def text(case: Path) -> str:
    return (case / "input.txt").read_text(encoding="utf-8")


def read(folder: Path, text: str) -> History:
    path = folder / "changed.txt"
    path.write_text(text, encoding="utf-8")
    return read_sacct(path)


def check(found: History, expected: dict[str, Any]) -> None:
    assert found.n_jobs == expected["jobs"]
    assert found.gpu_seconds / 3600 == expected["gpu_hours"]
    by_team = {team: seconds / 3600 for team, seconds in found.gpu_seconds_by("team").items()}
    assert by_team == expected["gpu_hours_by_account"]
    assert found.mean_wait_s == expected["mean_wait_s"]
    jobs = zip(found.job[found.used], found.state[found.used], strict=True)
    assert {job: state.upper() for job, state in jobs} == expected["states"]
    assert sorted(set(found.user[found.used])) == expected["users"]


def test_expected_values(case: Path, expected: dict[str, Any]) -> None:
    found = read_sacct(case / "input.txt")
    check(found, expected)
    assert len(found.lines(STEP)) == 9
    assert (found.account.read, found.account.used) == (12, 3)


@pytest.mark.parametrize("name", CLOTHES)
def test_in_other_clothes(tmp_path: Path, text: str, expected: dict[str, Any], name: str) -> None:
    check(read_sacct(dressed(tmp_path, text, name)), expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [line for line in lines if "." not in line.split("|")[0]],  # sacct -X
        lambda lines: list(reversed(lines)),  # steps before their jobs
        lambda lines: [
            line.replace("7001", "7001_4").replace("7001_4|7001_4", "7001_4|7001") for line in lines
        ],
    ],
)
def test_the_same_numbers(tmp_path: Path, text: str, expected: dict[str, Any], change: Any) -> None:
    header, *lines = text.strip().split("\n")
    found = read(tmp_path, "\n".join([header, *change(lines)]))
    states = {job.replace("7001_4", "7001"): state for job, state in zip(found.job, found.state, strict=True)}
    assert set(states) == set(expected["states"])
    assert found.gpu_seconds / 3600 == expected["gpu_hours"]
    assert found.n_jobs == expected["jobs"]
    assert found.mean_wait_s == expected["mean_wait_s"]


def test_steps_of_parts_and_tasks(tmp_path: Path) -> None:
    """Two parts of a heterogeneous job (2 and 1 GPU) and a task, each with a step: 3 jobs, 2 + 1 + 4 GPU-hours."""
    rows = ["JobID|JobIDRaw|Elapsed|AllocTRES"]
    for job, raw, gpus in (("7001+0", 7001, 2), ("7001+1", 7002, 1), ("7010_4", 7014, 4)):
        rows.append(f"{job}|{raw}|01:00:00|gres/gpu={gpus}")
        rows.append(f"{job}.extern|{raw}.extern|01:00:00|gres/gpu={gpus}")
        rows.append(f"{job}.0|{raw}.0|00:59:00|gres/gpu={gpus}")
    found = read(tmp_path, "\n".join(rows))
    assert found.job[found.used].tolist() == ["7001+0", "7001+1", "7010_4"]
    assert found.parent[found.used].tolist() == ["7001", "7001", "7010"]
    assert found.gpu_seconds == 7 * 3600
    assert len(found.lines(STEP)) == 6


def test_steps_without_their_job_are_said(tmp_path: Path, text: str) -> None:
    lines = [line for line in text.strip().split("\n") if not line.startswith("7002|")]
    found = read(tmp_path, "\n".join(lines))
    assert found.n_jobs == 2
    assert found.lines(LONE_STEP) == [7, 8, 9]
    assert found.gpu_seconds == 11 * 3600
    assert any("no row here" in reason for reason, _ in found.account.excluded)
