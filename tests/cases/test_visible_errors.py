"""Case `nb-visible-errors`, the reading side: every fault by line, column and text, and going on only when told to.

What the page shows of it is tested in `tests/widgets`.
"""

from pathlib import Path
from typing import Any

import pytest

from gpuplan.inputs.errors import InputError
from gpuplan.traces.jobs_table import read_jobs

CASE = "nb-visible-errors"


def test_every_fault_is_told(case: Path, expected: dict[str, Any]) -> None:
    with pytest.raises(InputError) as found:
        read_jobs(case / "input.csv")
    told = [
        {"line": mistake.line, "column": mistake.path.split(", ")[1], "text": mistake.value}
        for mistake in found.value.mistakes
    ]
    assert told == expected["messages"]
    assert [mistake.rule for mistake in found.value.mistakes] == [
        "must be a number",
        "must not be negative",
        "must be given",
        "must be given",
    ]


def test_going_on_without_them(case: Path, expected: dict[str, Any]) -> None:
    """4 x 3600 + 2 x 600 GPU-seconds."""
    found = read_jobs(case / "input.csv", strict=False)
    assert int(found.used.sum()) == found.n_jobs == expected["usable_rows"]
    assert found.gpu_seconds == expected["gpu_seconds_of_usable_rows"] == 4 * 3600 + 2 * 600
    assert found.line[found.used].tolist() == [2, 7]
    assert [mistake.line for mistake in found.mistakes] == [3, 4, 5, 6]
    assert found.account.read == found.account.used + 4
    assert found.account.excluded == (("cannot be read (lines 3, 4, 5, 6)", 4),)


def test_a_column_that_is_missing(case: Path) -> None:
    with pytest.raises(InputError, match="no column for the number of GPUs; found: id, submit_s, run_s"):
        read_jobs(case / "input_missing.csv")


def test_what_is_no_table(case: Path) -> None:
    with pytest.raises(InputError, match="this is not a text table"):
        read_jobs(case / "input_not_a_table.csv")


def test_other_clothes(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.touch()
    with pytest.raises(InputError, match="empty file"):
        read_jobs(empty)
    with pytest.raises(InputError, match="must be a file, not a folder"):
        read_jobs(tmp_path)


def test_a_file_that_is_being_written_while_it_is_read(case: Path, tmp_path: Path) -> None:
    path = tmp_path / "growing.csv"
    path.write_bytes((case / "input.csv").read_bytes())

    def more(done: int, total: int) -> None:
        with path.open("ab") as file:
            file.write(b"7,1,1,1\n")

    with pytest.raises(InputError, match="changed while it was read"):
        read_jobs(path, progress=more)
