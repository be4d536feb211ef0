"""Case `sacct-dst-night`: when the clocks change, run times are right and tell which hour was meant."""

from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from gpuplan.traces.history import History
from gpuplan.traces.instants import clock_of
from gpuplan.traces.slurm import read_sacct

CASE = "sacct-dst-night"


@pytest.fixture(scope="module")
def found(case: Path, expected: dict[str, Any]) -> History:
    return read_sacct(case / "input.txt", zone=expected["time_zone"])


def utc(seconds: int) -> str:
    return str(np.datetime64(int(seconds), "s")) + "Z"


def test_expected_values(found: History, expected: dict[str, Any]) -> None:
    assert found.zone == expected["time_zone"]
    assert round(found.gpu_seconds / 3600, 6) == expected["gpu_hours"]
    rows = found.job.tolist()
    for job, (start, end) in expected["utc"].items():
        row = rows.index(job)
        assert [utc(found.start_s[row]), utc(found.end_s[row])] == [start, end]
    assert found.job[found.ambiguous].tolist() == expected["ambiguous"]
    assert ("times that the clock showed twice: the first is taken", 1) in found.account.changed


def test_the_stated_rule_for_what_both_hours_fit(found: History) -> None:
    row = found.job.tolist().index("3003")
    assert [utc(found.start_s[row]), utc(found.end_s[row])] == [
        "2026-10-25T00:30:00Z",
        "2026-10-25T00:40:00Z",
    ]


def test_hours_of_a_day(expected: dict[str, Any]) -> None:
    for day, hours in expected["hours_in_day"].items():
        noon = int(np.datetime64(f"{day}T12:00:00", "s").astype(int))
        start, end = clock_of(ZoneInfo(expected["time_zone"]), noon, noon).day(noon)
        assert end - start == hours * 3600


def test_without_a_zone_the_sums_are_right_and_the_doubt_is_said(
    case: Path, expected: dict[str, Any]
) -> None:
    found = read_sacct(case / "input.txt")
    assert found.zone is None
    assert round(found.gpu_seconds / 3600, 6) == expected["gpu_hours"]
    assert any("may be an hour off" in rule for rule in found.account.rules)
    assert (found.stretches().end_s >= found.stretches().start_s).all()


def one(folder: Path, zone: str, start: str, end: str, elapsed: str) -> tuple[list[str], bool]:
    path = folder / "one.txt"
    path.write_text(f"JobID|Start|End|Elapsed|AllocTRES\n1|{start}|{end}|{elapsed}|gres/gpu=1\n")
    found = read_sacct(path, zone=zone)
    return [utc(found.start_s[0]), utc(found.end_s[0])], bool(found.ambiguous[0])


def test_half_an_hour_on_lord_howe(tmp_path: Path) -> None:
    """On 2026-04-05 at 02:00 (UTC+11) the clock goes back to 01:30 (UTC+10:30): 01:40 is 14:40Z, and 15:10Z again."""
    times, doubt = one(
        tmp_path, "Australia/Lord_Howe", "2026-04-05T01:35:00", "2026-04-05T01:40:00", "00:35:00"
    )
    assert times == ["2026-04-04T14:35:00Z", "2026-04-04T15:10:00Z"]
    assert not doubt


def test_a_change_at_midnight(tmp_path: Path) -> None:
    """In Asuncion on 2024-03-24 at 00:00 (UTC-3) the clock went back to 23:00 of the 23rd (UTC-4)."""
    times, doubt = one(tmp_path, "America/Asuncion", "2024-03-23T23:30:00", "2024-03-23T23:10:00", "00:40:00")
    assert times == ["2024-03-24T02:30:00Z", "2024-03-24T03:10:00Z"]
    assert not doubt


def test_a_day_that_never_was(tmp_path: Path) -> None:
    """Samoa went from 2011-12-29 (UTC-10) straight to 2011-12-31 (UTC+14)."""
    times, _ = one(tmp_path, "Pacific/Apia", "2011-12-29T23:00:00", "2011-12-31T01:00:00", "02:00:00")
    assert times == ["2011-12-30T09:00:00Z", "2011-12-30T11:00:00Z"]


def test_the_same_moment_as_the_standard_library(found: History, expected: dict[str, Any]) -> None:
    zone = ZoneInfo(expected["time_zone"])
    start = datetime(2026, 10, 25, 1, 30, tzinfo=zone)
    assert int(found.start_s[0]) == round(start.timestamp())
