"""Case `sacct-array-brackets`: one line may stand for many waiting tasks, and says how many."""

from pathlib import Path
from typing import Any

import pytest

from gpuplan.inputs.errors import InputError
from gpuplan.traces.history import STEP, UNKNOWN, UNREADABLE, History
from gpuplan.traces.slurm import read_sacct

CASE = "sacct-array-brackets"


@pytest.fixture(scope="module")
def found(case: Path) -> History:
    return read_sacct(case / "input.txt")


def test_expected_values(found: History, expected: dict[str, Any]) -> None:
    waits = found.waiting
    assert int(found.tasks[waits].sum()) == expected["waiting_tasks"]
    assert int((found.tasks * found.gpus)[waits].sum()) == expected["waiting_gpus"]
    by_array = dict(zip(found.parent[waits], found.tasks[waits].tolist(), strict=True))
    assert by_array == expected["waiting_by_array"]
    assert int(found.running.sum()) == expected["running"]
    assert int((found.group[found.used] == "completed").sum()) == expected["finished"]
    assert found.gpu_seconds / 3600 == expected["gpu_hours"]
    together = zip(found.parent[waits], found.together[waits].tolist(), strict=True)
    assert {array: most for array, most in together if most != UNKNOWN} == expected["max_together"]
    assert found.lines(STEP) == [3]
    assert found.n_jobs == 3 + expected["waiting_tasks"]


def test_either_id_is_the_key(case: Path, tmp_path: Path, expected: dict[str, Any]) -> None:
    """Without one of the two columns of ids the numbers are the same; the raw one does not tell the waiting tasks."""
    rows = [line.split("|") for line in (case / "input.txt").read_text().strip().split("\n")]
    path = tmp_path / "one.txt"
    path.write_text("\n".join("|".join([row[0], *row[2:]]) for row in rows))
    one = read_sacct(path)
    assert int(one.tasks[one.waiting].sum()) == expected["waiting_tasks"]
    assert one.gpu_seconds / 3600 == expected["gpu_hours"]
    path.write_text("\n".join("|".join(row[1:]) for row in rows))
    other = read_sacct(path)
    assert other.gpu_seconds / 3600 == expected["gpu_hours"]
    assert other.n_jobs == 7


def waiting(folder: Path, job: str, more: str = "") -> History:
    path = folder / "one.txt"
    path.write_text(f"JobID|JobIDRaw|State|ReqTRES|AllocTRES\n{job}|9600|PENDING|gres/gpu=2|\n{more}")
    return read_sacct(path, strict=False)


def test_a_list_that_was_cut_off(tmp_path: Path) -> None:
    """At least 5: 1, 3, 5, 7 and 9."""
    found = waiting(tmp_path, "9600_[1,3,5,7,9,...]")
    assert found.tasks.tolist() == [5]
    assert found.cut_off.tolist() == [True]
    assert any("at least" in what for what, _ in found.account.changed)
    assert waiting(tmp_path, "9600_[1,3,5-7,...%2]").together.tolist() == [2]


def test_one_task(tmp_path: Path) -> None:
    assert waiting(tmp_path, "9700_[0-0]").tasks.tolist() == [1]


@pytest.mark.parametrize(
    "inner", ["", "%2", "5-3", "1,,2", "x", "1-5:0", "3,3", "0-99999999", "1%0", "1-5,2"]
)
def test_a_faulty_list_is_told(tmp_path: Path, inner: str) -> None:
    found = waiting(tmp_path, f"9800_[{inner}]", "9801|9801|PENDING|gres/gpu=1|\n")
    assert found.lines(UNREADABLE) == [2]
    assert [(mistake.line, mistake.value) for mistake in found.mistakes] == [(2, f"9800_[{inner}]")]
    assert found.n_jobs == 1
    with pytest.raises(InputError, match="line 2, JobID: must"):
        read_sacct(tmp_path / "one.txt")


def test_a_task_that_has_its_own_record_does_not_wait_twice(tmp_path: Path) -> None:
    """Two exports glued together: 3-6 waits in the first, 3 and 4 run in the second; 5 and 6 are left."""
    more = "9600_3|9603|RUNNING||gres/gpu=2\n9600_4|9604|RUNNING||gres/gpu=2\n"
    found = waiting(tmp_path, "9600_[3-6]", more)
    assert found.tasks.tolist() == [2, 1, 1]
    assert found.n_jobs == 4
    assert ("waiting tasks of arrays with a record of their own, counted once", 2) in found.account.changed
