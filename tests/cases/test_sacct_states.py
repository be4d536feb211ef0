"""Case `sacct-states`: whoever cancelled a job, however its state was cut: the state is one of a few groups."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cases.sacct_clothes import CLOTHES, dressed
from gpuplan.traces.history import History
from gpuplan.traces.slurm import read_sacct
from gpuplan.traces.slurm_words import state_of

CASE = "sacct-states"

#: The groups of the case and ours.
GROUPS = {"requeued_or_preempted": "preempted", "running_or_suspended": "running", "unknown_state": "unknown"}


def check(found: History, expected: dict[str, Any]) -> None:
    assert found.n_jobs == expected["jobs"]
    counts = Counter(found.group.tolist())
    assert counts == {GROUPS.get(name, name): count for name, count in expected["counts"].items()}
    assert round(found.gpu_seconds / 3600, 6) == expected["gpu_hours"]
    assert dict(zip(found.job, found.user, strict=True))["8003"] == expected["owner_of_8003"]
    assert found.job[found.running | found.waiting].tolist() == expected["still_open"]


def test_expected_values(case: Path, expected: dict[str, Any]) -> None:
    found = read_sacct(case / "input.txt")
    check(found, expected)
    told = [rule for rule in found.account.rules if "something_new" in rule]
    assert told == ["States that Slurm does not have: something_new."]
    assert found.unknown("gpus") == 1  # 8014 waits, and nobody says for how many


@pytest.mark.parametrize("name", CLOTHES)
def test_in_other_clothes(case: Path, tmp_path: Path, expected: dict[str, Any], name: str) -> None:
    check(read_sacct(dressed(tmp_path, (case / "input.txt").read_text(), name)), expected)


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("CD", "completed"),
        ("CA", "cancelled"),
        ("OOM", "out_of_memory"),
        ("PR", "preempted"),
        ("R", "running"),
        ("PD", "pending"),
        ("pd", "pending"),
        ("completed", "completed"),
        ("Cancelled by 30117", "cancelled"),
        ("CANCELLED by uid", "cancelled"),
        ("CANCELLED+", "cancelled"),
        ("OUT_OF_ME+", "out_of_memory"),
        ("COMPLETED,STAGE_OUT", "completed"),
        ("RUNNING,RESIZING", "running"),
        ("", ""),
        ("SOMETHING_NEW", "something_new"),
    ],
)
def test_a_state(text: str, state: str) -> None:
    assert state_of(text) == state
