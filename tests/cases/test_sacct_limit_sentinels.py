"""Case `sacct-limit-sentinels`: a limit that is a word, or missing, is no number and lets nothing start too early."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML

from cases import front_door
from gpuplan.inputs.errors import InputError
from gpuplan.traces.history import NO_LIMIT, UNKNOWN, History
from gpuplan.traces.slurm import read_sacct
from gpuplan.traces.slurm_words import limit_of, span_of

CASE = "sacct-limit-sentinels"

#: The case names its jobs by letters; a job id of Slurm is a number.
IDS = {"R": "1", "H": "2", "B1": "3", "B2": "4", "B3": "5", "B4": "6", "B5": "7", "B6": "8"}


@pytest.fixture(scope="module")
def found(case: Path, tmp_path_factory: pytest.TempPathFactory) -> History:
    cluster = YAML(typ="safe").load(case / "input_cluster.yaml")
    limits = {one["name"]: span_of(one["max_time"], 60) for one in cluster["partitions"]}
    _, *lines = (case / "input.txt").read_text().strip().split("\n")
    path = tmp_path_factory.mktemp("limits") / "input.txt"
    rows = ["JobID|ReqTRES|State|Timelimit"]
    for job, gpus, *rest in (line.split("|") for line in lines):
        rows.append("|".join([IDS[job], f"gres/gpu={gpus}", *rest]))
    path.write_text("\n".join(rows))
    return read_sacct(path, partition_limits=limits)


def test_expected_values(found: History, expected: dict[str, Any]) -> None:
    seconds = dict(zip(IDS, found.limit_s.tolist(), strict=True))
    known = {job: None if limit in (NO_LIMIT, UNKNOWN) else limit for job, limit in seconds.items()}
    assert known == expected["limit_seconds"]
    assert [job for job, limit in seconds.items() if limit == NO_LIMIT] == expected["unlimited"]
    assert [job for job, limit in seconds.items() if limit == UNKNOWN] == expected["unknown"]
    assert ("limits that are those of the partition", 2) in found.account.changed


def test_what_may_start_now(found: History, expected: dict[str, Any], tmp_path: Path) -> None:
    """R has begun and ends at its limit, all come at 0 in the order of the file; EASY backfill by the limits read."""
    rows: list[dict[str, object]] = []
    for job, gpus, limit in zip(IDS, found.gpus.tolist(), found.limit_s.tolist(), strict=True):
        known = limit not in (NO_LIMIT, UNKNOWN)
        run = limit if known else 40 * 3600
        rows.append(
            {"job": f"{len(rows)}-{job}", "submit_s": 0, "gpus": gpus, "run_s": run}
            | {"limit_s": limit if known else ""}
        )
    scenario = front_door.load(tmp_path, {"cluster": {"gpus": 8}}, rows)
    starts = {
        job[2:]: start for job, start in front_door.starts(front_door.run(scenario, "easy"), 3600).items()
    }
    assert [job for job, start in starts.items() if start == 0 and job != "R"] == expected["start_now"]
    assert starts["H"] == expected["H_start_h"]


def test_without_the_partitions_limit_it_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text(
        "JobID|Partition|Timelimit|ReqTRES\n1|gpu|Partition_Limit|gres/gpu=1\n2|long,gpu|PARTITION_LIMIT|\n"
    )
    assert read_sacct(path).limit_s.tolist() == [UNKNOWN, UNKNOWN]
    assert read_sacct(path, partition_limits={"gpu": 60}).limit_s.tolist() == [60, UNKNOWN]
    assert read_sacct(path, partition_limits={"gpu": 60, "long": None}).limit_s.tolist() == [60, NO_LIMIT]
    assert read_sacct(path, partition_limits=90).limit_s.tolist() == [90, 90]


def test_a_mean_is_over_known_limits_alone(found: History) -> None:
    """7200, 3600, 86400, 5400, 172800, 86400: mean 60300 s; two are left out, and said."""
    table = found.to_frame()
    assert table.limit_s.mean() == np.mean([7200, 3600, 86400, 5400, 172800, 86400]) == 60300
    assert int(table.limit_s.isna().sum()) == 2
    assert table.no_limit.tolist() == [False, False, True, False, False, False, False, False]
    assert found.unknown("limit_s") == 1


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("INVALID", UNKNOWN),
        ("NOT_SET", UNKNOWN),
        ("", UNKNOWN),
        ("None", UNKNOWN),
        ("infinite", NO_LIMIT),
        ("UNLIMITED", NO_LIMIT),
        ("365-00:00:00", 31_536_000),
        ("90", 5400),
        ("02:30", 150),
        ("1-12", 129_600),
        ("1-12:30", 131_400),
        ("1-12:30:15", 131_415),
        ("36:00:00", 129_600),
        ("partition_limit", "partition"),
    ],
)
def test_forms_of_a_limit(text: str, limit: object) -> None:
    assert limit_of(text) == limit


@pytest.mark.parametrize("text", ["-1", "soon", "1:2:3:4", "00:99", "01:60:00", "1e3", "99999999999"])
def test_no_limit_at_all(tmp_path: Path, text: str) -> None:
    assert limit_of(text) is None
    path = tmp_path / "one.txt"
    path.write_text(f"JobID|Timelimit|ReqTRES\n1|{text}|gres/gpu=1\n")
    with pytest.raises(InputError, match=r"line 2, Timelimit: must be a span of time"):
        read_sacct(path)


def test_the_raw_column_counts_minutes(tmp_path: Path) -> None:
    path = tmp_path / "raw.txt"
    path.write_text(
        "JobID|Timelimit|TimelimitRaw|ReqTRES\n1|01:30:00|90|\n2||90|\n3|UNLIMITED||\n4|Unknown|UNLIMITED|\n"
    )
    assert read_sacct(path).limit_s.tolist() == [5400, 5400, NO_LIMIT, NO_LIMIT]
