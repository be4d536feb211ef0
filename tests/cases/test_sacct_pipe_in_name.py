"""Case `sacct-pipe-in-name`: a name may hold separators and line breaks, and can never pose as other columns."""

from pathlib import Path
from typing import Any

import pytest

from gpuplan.inputs.errors import InputError
from gpuplan.traces.history import UNREADABLE, History
from gpuplan.traces.slurm import read_sacct

CASE = "sacct-pipe-in-name"

HEAD = "JobID|JobName|User|State|Elapsed|AllocTRES\n"


def check(found: History, expected: dict[str, Any]) -> None:
    assert found.n_jobs == expected["jobs"]
    names = dict(zip(found.job, found.name, strict=True))
    assert names == expected["names"]
    users = dict(zip(found.job, found.user, strict=True))
    assert users["9005"] == expected["user_of_9005"]
    assert found.gpu_seconds / 3600 == expected["gpu_hours"]
    account = found.account
    assert (
        account.read - account.used - sum(n for _, n in account.excluded)
        == expected["rows_lost_without_notice"]
    )


def test_expected_values(case: Path, expected: dict[str, Any]) -> None:
    found = read_sacct(case / "input.txt")
    check(found, expected)
    row = found.job.tolist().index("9005")
    assert (found.state[row], found.elapsed_s[row], found.gpus[row]) == ("cancelled", 0, 0)


def test_two_columns_of_free_text(case: Path, expected: dict[str, Any]) -> None:
    found = read_sacct(case / "input_two_free.txt")
    names = dict(zip(found.job, found.name, strict=True))
    assert {job: names[job] for job in expected["two_free"]} == {
        job: row["name"] for job, row in expected["two_free"].items()
    }
    assert found.state.tolist() == ["completed"] * 3
    assert found.gpu_seconds == 3 * 3600


def test_the_folder_of_a_row_with_two_free_columns(case: Path, expected: dict[str, Any]) -> None:
    from gpuplan.traces.slurm_layout import layout_of
    from gpuplan.traces.slurm_records import Splitter

    header, *lines = (case / "input_two_free.txt").read_bytes().strip().split(b"\n")
    splitter = Splitter(layout_of("case", header, None, None))
    place = splitter.layout.names.index("workdir")
    for line in lines:
        bounds, rule = splitter.split(line)
        job = line.split(b"|")[0].decode()
        assert rule == ""
        folder = line[slice(*bounds[place])].decode()
        assert folder == expected["two_free"].get(job, {"workdir": "/data/a"})["workdir"]


@pytest.mark.parametrize("separator", [";", "^|^", "\t", "~~", "§"])
def test_another_delimiter(case: Path, tmp_path: Path, expected: dict[str, Any], separator: str) -> None:
    """Each field is written with the other delimiter; names keep their pipes, and 9004 its semicolon."""
    rows = [["JobID", "JobName", "User", "State", "Elapsed", "AllocTRES"]]
    for line in (case / "input.txt").read_text().strip().split("\n")[1:]:
        fields = line.split("|")
        rows.append([fields[0], "|".join(fields[1:-4]), *fields[-4:]])
    path = tmp_path / "other.txt"
    path.write_text("\n".join(separator.join(row) for row in rows), encoding="utf-8")
    check(read_sacct(path, separator=separator), expected)
    check(read_sacct(path), expected)  # the header tells


def rows(folder: Path, text: str, head: str = HEAD) -> History:
    path = folder / "some.txt"
    path.write_text(head + text)
    return read_sacct(path, strict=False)


@pytest.mark.parametrize(
    "name", ["", "|", "||||||||", "a|", "|a", "x\ny", "x\n\ny", "\n", "a|b\nc|d", "x\n9999"]
)
def test_a_name_of_pipes_and_line_breaks(tmp_path: Path, name: str) -> None:
    found = rows(
        tmp_path, f"9006|{name}|u01|FAILED|01:00:00|gres/gpu=2\n9007|b|u02|COMPLETED|01:00:00|gres/gpu=1\n"
    )
    assert found.mistakes == ()
    assert found.job.tolist() == ["9006", "9007"]
    assert found.name.tolist() == [name, "b"]
    assert found.user.tolist() == ["u01", "u02"]
    assert found.gpu_seconds == 3 * 3600


def test_whole_lines_in_a_name_are_no_records(tmp_path: Path) -> None:
    """What ends the record of 9005 stands behind the forged line, so that line belongs to its name."""
    forged = "9999|y|root|COMPLETED|99:00:00|gres/gpu=64"
    found = rows(
        tmp_path,
        f"9004|a|u01|COMPLETED|01:00:00|gres/gpu=1\n9005|x\n{forged}\n|u02|CANCELLED by 7|00:00:00|\n",
    )
    assert found.job.tolist() == ["9004", "9005"]
    assert found.user.tolist() == ["u01", "u02"]
    assert found.name[1] == f"x\n{forged}\n"
    assert found.gpu_seconds == 3600


def test_a_line_that_may_be_a_record_or_a_part_of_a_name_is_left_out_and_said(tmp_path: Path) -> None:
    found = rows(
        tmp_path,
        "9005|x\n9006|y|u02|COMPLETED|99:00:00|gres/gpu=64\n9007|z|u01|COMPLETED|01:00:00|gres/gpu=1\n",
    )
    assert found.lines(UNREADABLE) == [2]
    assert "ends too early" in found.mistakes[0].rule
    assert "(lines 2 to 3)" in found.mistakes[0].rule
    assert "9005|x" in str(found.mistakes[0].value)
    assert found.gpu_seconds == 3600


def test_a_line_cut_short(tmp_path: Path) -> None:
    """Behind a complete line it is a line cut short; before one it may as well be a name with a line break."""
    found = rows(tmp_path, "9006|y|u02|COMPLETED|1:00:00|gres/gpu=1\n9007|z|u0")
    assert found.lines(UNREADABLE) == [3]
    assert [mistake.line for mistake in found.mistakes] == [3]
    assert found.gpu_seconds == 3600
    with pytest.raises(InputError, match="line 3: must have 6 fields"):
        read_sacct(tmp_path / "some.txt")


def test_what_can_be_read_in_two_ways_is_left_out_and_said(tmp_path: Path) -> None:
    """Two states, and a folder that begins with a slash behind each: either may be the name's."""
    head = "JobID|JobName|State|WorkDir|Elapsed|AllocTRES\n"
    found = rows(tmp_path, "9104|a|COMPLETED|/b|FAILED|/c|01:00:00|gres/gpu=1\n", head)
    assert found.lines(UNREADABLE) == [2]
    assert "several ways" in found.mistakes[0].rule
    assert "9104" in str(found.mistakes[0].value)


def test_separators_without_a_column_of_free_text(tmp_path: Path) -> None:
    found = rows(
        tmp_path, "1|u|01:00:00|gres/gpu=1|more\n2|u|01:00:00|gres/gpu=1\n", "JobID|User|Elapsed|AllocTRES\n"
    )
    assert found.lines(UNREADABLE) == [2]
    assert found.account.used == 1
