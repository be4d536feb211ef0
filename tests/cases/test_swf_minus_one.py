"""Case `swf-minus-one`: -1 means unknown, and is never multiplied, added or compared."""

import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cases import front_door
from gpuplan.fairshare.model import NEVER
from gpuplan.inputs.errors import InputError
from gpuplan.loading import load_swf
from gpuplan.traces.swf import REASONS, SwfLog, read_swf

CASE = "swf-minus-one"


@pytest.fixture(scope="module")
def log(case: Path) -> SwfLog:
    return read_swf(case / "input.swf")


def _numbers(log: SwfLog, words: str) -> list[int]:
    (reason,) = (text for text in REASONS if words in text)
    return log.numbers(reason)


def test_expected_values(log: SwfLog, expected: dict[str, Any]) -> None:
    assert len(log) == log.account.read == expected["jobs"]
    assert log.processor_seconds == expected["processor_seconds"]
    assert _numbers(log, "never started") == expected["never_started"]
    assert _numbers(log, "run time unknown") == expected["unknown_run"]
    assert _numbers(log, "more processors") == expected["too_big_for_machine"]
    assert log.mean_wait_s == expected["mean_wait_s"]
    processors = dict(zip(log.number.tolist(), log.processors.tolist(), strict=True))
    assert {key: processors[int(key)] for key in expected["processors"]} == expected["processors"]


def test_the_start_of_job_1_in_utc_and_in_its_zone(log: SwfLog, expected: dict[str, Any]) -> None:
    started = log.moment(int(log.started_s[0]))
    assert started is not None
    assert started.astimezone(UTC) == datetime.fromisoformat(expected["start_of_job_1_utc"])
    assert started.isoformat() == "2026-03-01T01:00:10+01:00"  # Europe/Paris
    assert log.started_s.tolist() == [10, -1, 125, 180, 270, 320, 1360]


def test_jobs_without_a_limit(log: SwfLog, expected: dict[str, Any]) -> None:
    jobs = log.jobs()
    assert [int(name) for name in jobs.name[jobs.limit_s == NEVER]] == expected["no_time_limit"]
    assert jobs.name.tolist() == ["1", "4", "5", "6"]
    assert jobs.run_s.tolist() == [3600, 0, 1800, 900]
    assert int(jobs.gpu_seconds.sum()) == expected["processor_seconds"]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("  ", "\t"),
        lambda text: "\n".join("  " + line for line in text.split("\n")),
        lambda text: text.replace("\n4 ", "\n; a remark: in the middle\n\n4 "),
        lambda text: text.replace(" 1 -1 -1 -1\n", "\n"),  # 14 fields: the rest is unknown
        lambda text: text.replace(" 3600   8", " 3600.4   8.0"),
        lambda text: text.rstrip("\n"),
        lambda text: "\n".join(sorted(text.split("\n"), reverse=True)),
    ],
)
def test_the_same_in_other_clothes(
    case: Path, tmp_path: Path, expected: dict[str, Any], change: Any, log: SwfLog
) -> None:
    path = tmp_path / "changed.swf.gz"
    path.write_bytes(gzip.compress(change((case / "input.swf").read_text()).encode()))
    found = read_swf(path)
    assert found.processor_seconds == expected["processor_seconds"]
    assert found.mean_wait_s == expected["mean_wait_s"]
    assert found.max_processors == 64
    assert found.jobs().name.tolist() == log.jobs().name.tolist()
    assert found.jobs().limit_s.tolist() == log.jobs().limit_s.tolist()


def test_the_log_as_a_scenario(case: Path, expected: dict[str, Any]) -> None:
    """As `gpuplan simulate` reads it: on 64 GPUs nobody waits, and only what is known is added up."""
    run = front_door.run(load_swf(case / "input.swf", gpus=64), "easy")
    ran = run.to_frame()
    assert int((ran.gpus * (ran.end_s - ran.start_s)).sum()) == expected["processor_seconds"]
    assert front_door.starts(run) == {"1": 0, "4": 180, "5": 240, "6": 300}
    assert dict(zip(ran.job, ran.gpus, strict=True))["5"] == expected["processors"]["5"]
    notes = " ".join(run.scenario.notes)
    assert all(word in notes for word in ("never started", "run time unknown", "more processors"))


def test_minus_one_in_a_table_of_jobs(tmp_path: Path, log: SwfLog, expected: dict[str, Any]) -> None:
    """The jobs that the log has, written as CSV: a limit of -1 is none, and behind it nothing is backfilled by it.

    On 16 GPUs: 1 (8 of 16) runs 0-3600; 4 at 180 for no time; 5 wants 12 and waits until 3600; 6 (4 GPUs, limit 1200 s)
    ends before 3600 and may go first, at 300.
    """
    made = log.jobs()
    rows = [
        {"job": name, "submit_s": submit, "gpus": gpus, "run_s": run}
        | {"limit_s": -1 if limit == NEVER else limit}
        for name, submit, gpus, run, limit in zip(
            *(getattr(made, column).tolist() for column in ("name", "submit_s", "gpus", "run_s", "limit_s")),
            strict=True,
        )
    ]
    scenario = front_door.load(tmp_path, {"cluster": {"gpus": 16}}, rows)
    assert scenario.jobs is not None
    limits = dict(zip(scenario.jobs.name.tolist(), scenario.jobs.limit_s.tolist(), strict=True))
    assert [int(name) for name, limit in limits.items() if limit == NEVER] == expected["no_time_limit"]
    run = front_door.run(scenario, "easy")
    assert int(run.problem.jobs.gpu_seconds.sum()) == expected["processor_seconds"]
    assert front_door.starts(run) == {"1": 0, "4": 180, "5": 3600, "6": 300}


@pytest.mark.parametrize("column", ["submit_s", "gpus", "run_s", "min_runtime_s"])
def test_minus_one_where_it_means_nothing(tmp_path: Path, column: str) -> None:
    """Only an unknown limit is -1: anywhere else it is a mistake with its line."""
    row = {"job": "x", "submit_s": 0, "gpus": 1, "run_s": 60, "min_runtime_s": 10, column: -1}
    with pytest.raises(InputError, match=rf"case\.csv, line 2, {column}.*-1"):
        front_door.load(tmp_path, {"cluster": {"gpus": 16}}, [row])
