"""Case `philly-attempts`: empty lists of attempts, attempts without a start or an end, attempts on several machines."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gpuplan.inputs.errors import InputError
from gpuplan.traces.history import UNKNOWN, History
from gpuplan.traces.philly_attempts import read_philly_attempts

CASE = "philly-attempts"

SNAPSHOT = "2017-11-20 00:00:00"


@pytest.fixture(scope="module")
def log(case: Path) -> History:
    return read_philly_attempts(case / "input.json", snapshot=SNAPSHOT)


def _check(log: History, expected: dict[str, Any]) -> None:
    assert log.n_jobs == expected["jobs"]
    ran = log.gpus != UNKNOWN  # a row without an attempt holds none, not even 0
    assert int(ran.sum()) == expected["attempts"]
    running = log.running
    open_ = int((log.gpus * log.elapsed_s)[running].sum()) / 3600
    assert open_ == expected["gpu_hours_open_at_snapshot"]
    assert log.gpu_seconds / 3600 - open_ == expected["gpu_hours_closed"]
    gpus = dict(zip(log.job.tolist(), log.gpus.tolist(), strict=True))
    assert {job: gpus[job] for job in expected["gpus"]} == expected["gpus"]
    assert gpus["app_0006"] == 0
    assert log.job[log.never_started].tolist() == expected["never_ran"]
    assert log.job[ran & (log.elapsed_s == UNKNOWN)].tolist() == expected["unknown_duration"]
    assert log.by_job()["first_wait_s"].dropna().mean() == expected["mean_first_wait_s"]


def test_expected_values(log: History, expected: dict[str, Any]) -> None:
    """8 x (1 + 2) + (4 + 4) x 1.5 = 36 GPU-hours are over, 2 x 4 = 8 are open; (1200 + 3600 + 1800 + 300) / 4."""
    _check(log, expected)


def test_two_attempts_and_what_lies_between_them(log: History) -> None:
    rows = log.to_frame().set_index("job").loc["app_0001"]
    assert rows["attempt"].tolist() == [1, 2]
    assert rows["start_s"].iloc[1] - rows["end_s"].iloc[0] == 300
    assert rows["start_s"].iloc[0] - rows["submit_s"].iloc[0] == 1200


def test_states(log: History) -> None:
    assert log.state.tolist() == [
        "unknown",  # how the first attempt ended is not told
        "completed",
        "cancelled",
        "running",
        "failed",
        "completed",
        "failed",
    ]


def test_the_account_adds_up(log: History) -> None:
    assert (log.account.read, log.account.used) == (7, 7)
    changed = dict(log.account.changed)
    assert changed["attempts without a start or an end: run time unknown"] == 1
    assert changed["attempts without a recorded GPU"] == changed["jobs without an attempt"] == 1


def test_without_a_snapshot_the_open_run_is_unknown(case: Path) -> None:
    found = read_philly_attempts(case / "input.json")
    assert found.gpu_seconds == 36 * 3600
    assert found.elapsed_s[found.running].tolist() == [UNKNOWN]


@pytest.mark.parametrize("nothing", ['"None"', '""', '"null"'])
def test_words_in_place_of_null(case: Path, tmp_path: Path, expected: dict[str, Any], nothing: str) -> None:
    path = tmp_path / "words.json"
    path.write_text((case / "input.json").read_text().replace("null", nothing))
    _check(read_philly_attempts(path, snapshot=SNAPSHOT), expected)


def test_zone_words(case: Path, tmp_path: Path, expected: dict[str, Any]) -> None:
    """PST is 8 h behind UTC: 2017-11-19 00:10:00 PST is 08:10 in UTC."""
    path = tmp_path / "zones.json"
    path.write_text(re.sub(r'(:\d\d)"', r'\1 PST"', (case / "input.json").read_text()))
    found = read_philly_attempts(path, snapshot=SNAPSHOT + " PST")
    _check(found, expected)
    plain = read_philly_attempts(case / "input.json", snapshot=SNAPSHOT)
    assert (found.start_s[0] - plain.start_s[0]) == 8 * 3600
    assert (found.zone, plain.zone) == ("UTC", None)


def test_the_night_on_which_clocks_go_back(tmp_path: Path) -> None:
    """01:30 PDT to 01:30 PST is an hour; without the words it would be none, and nothing tells the two apart."""
    detail = [{"ip": "m1", "gpus": ["gpu0"]}]
    attempt = {
        "start_time": "2017-11-05 01:30:00 PDT",
        "end_time": "2017-11-05 01:30:00 PST",
        "detail": detail,
    }
    job = {
        "status": "Pass",
        "vc": "v",
        "jobid": "j",
        "user": "u",
        "submitted_time": "2017-11-05 01:00:00 PDT",
    }
    path = tmp_path / "night.json"
    path.write_text(json.dumps([{**job, "attempts": [attempt]}]))
    assert read_philly_attempts(path).elapsed_s.tolist() == [3600]
    path.write_text(path.read_text().replace(" PDT", "").replace(" PST", ""))
    found = read_philly_attempts(path, zone="America/Los_Angeles")
    assert found.ambiguous.tolist() == [True]


def test_a_machine_that_has_fewer_gpus_than_were_used(
    case: Path, tmp_path: Path, expected: dict[str, Any]
) -> None:
    machines = tmp_path / "machines.csv"
    machines.write_text("machineId,number of GPUs,single GPU mem\nm1,2, 24GB\nm2,8, 24GB\nm3,8, 12GB\n")
    found = read_philly_attempts(case / "input.json", snapshot=SNAPSHOT, machines=machines)
    _check(found, expected)  # both attempts on m1 (8 and 4 GPUs) are kept
    assert dict(found.account.changed)["attempts with more GPUs of a machine than it has, kept"] == 2


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (lambda text: text[: len(text) // 2], None, "must be JSON|is cut off"),
        (lambda text: text.replace("2017-11-19 00:10:00", "soon"), 2, "must be a time"),
        (lambda text: text.replace('"jobid": "app_0002"', '"jobid": null'), 49, "must be given"),
        (lambda text: text.replace('"attempts": []', '"attempts": "none"'), 49, "must be a list of attempts"),
        (
            lambda text: text.replace('"end_time": "2017-11-19 10', '"end_time": "2017-11-18 10'),
            103,
            "before the start",
        ),
        (lambda text: "[1, 2]", 1, "must be a job"),
        (lambda text: "[]", None, "it has none"),
        (lambda text: "a,b\n1,2", None, "not a list of jobs"),
    ],
)
def test_what_cannot_be_read(case: Path, tmp_path: Path, change: Any, line: int | None, words: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(change((case / "input.json").read_text()))
    with pytest.raises(InputError, match=words) as found:
        read_philly_attempts(path, snapshot=SNAPSHOT)
    assert line is None or found.value.mistakes[0].line == line


def test_going_on_without_a_bad_job(case: Path, tmp_path: Path) -> None:
    """Without app_0005 24 + 8 GPU-hours are left."""
    path = tmp_path / "bad.json"
    path.write_text((case / "input.json").read_text().replace("2017-11-19 08:30:00", "soon"))
    found = read_philly_attempts(path, snapshot=SNAPSHOT, strict=False)
    assert found.gpu_seconds == 32 * 3600
    assert (found.account.read, found.account.used, len(found.mistakes)) == (7, 6, 1)
