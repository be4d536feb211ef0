"""Philly's log of attempts, damaged in every way: a history that adds up, or a sentence with a line."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.inputs.errors import InputError
from gpuplan.traces.history import UNKNOWN
from gpuplan.traces.jobs_table import read_jobs
from gpuplan.traces.philly_attempts import read_philly_attempts

#: The entry that the description of the trace prints in full, and a job that never ran.
LOG: list[dict[str, Any]] = [
    {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": "application_1506638472019_14199",
        "attempts": [
            {
                "start_time": "2017-10-07 01:12:09",
                "end_time": "2017-10-07 01:13:23",
                "detail": [{"ip": "m47", "gpus": [f"gpu{k}" for k in range(8)]}],
            },
            {
                "start_time": "2017-10-07 01:13:30",
                "end_time": "2017-10-09 06:53:12",
                "detail": [{"ip": "m412", "gpus": [f"gpu{k}" for k in range(8)]}],
            },
        ],
        "submitted_time": "2017-10-07 01:11:39",
        "user": "ce2f4c",
    },
    {
        "status": "Killed",
        "vc": "v",
        "jobid": "b",
        "attempts": [],
        "submitted_time": "2017-10-08 00:00:00",
        "user": "u",
    },
]


def write(folder: Path, text: str) -> Path:
    path = folder / "cluster_job_log"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(LOG),
        json.dumps(LOG, indent=4),
        "\ufeff " + json.dumps(LOG) + "\n\n",
        "\n".join(json.dumps(job) for job in LOG),  # a job after the other
    ],
)
def test_the_job_that_is_printed_in_full(tmp_path: Path, text: str) -> None:
    """74 s and 193,182 s are the 193,256 s that the published table has for it."""
    found = read_philly_attempts(write(tmp_path, text))
    assert found.elapsed_s.tolist() == [74, 193_182, 0]
    assert found.gpu_seconds == 8 * 193_256
    assert found.gpus.tolist() == [8, 8, UNKNOWN]
    jobs = found.jobs()
    assert (jobs.run_s.tolist(), jobs.team.tolist()) == ([193_256], ["ee9e8c"])
    assert read_jobs(tmp_path / "cluster_job_log").gpu_seconds == found.gpu_seconds


def test_lines_of_mistakes(tmp_path: Path) -> None:
    text = json.dumps(LOG, indent=1).replace('"b"', "null")
    with pytest.raises(InputError) as found:
        read_philly_attempts(write(tmp_path, text))
    (mistake,) = found.value.mistakes
    assert mistake.line is not None
    assert text.split("\n")[mistake.line - 1].strip() == "{"  # where the second job begins
    assert mistake.path == f"line {mistake.line}, jobid"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "[,]",
        "[{}",
        '[{"jobid": "x"}]',
        "[[]]",
        "[1",
        "[{} {}]",
        "[] []",
        "[" * 100_000,
        '[{"jobid": 1e999}]',
    ],
)
def test_what_is_no_log(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        read_philly_attempts(write(tmp_path, text))


@settings(max_examples=100)
@given(st.integers(0, 2**32))
def test_damaged_bytes(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = bytearray(json.dumps(LOG * 3, indent=int(rng.integers(3)) or None).encode())
    for _ in range(int(rng.integers(1, 6))):
        place = int(rng.integers(len(data)))
        signs = b'0123456789:-,"[]{} nulx\\' if seed % 2 else rng.bytes(8)
        data[place : place + int(rng.integers(3))] = bytes(
            rng.choice(list(signs), int(rng.integers(3))).tolist()
        )
    path = tmp_path_factory.mktemp("log") / "log.json"
    path.write_bytes(gzip.compress(bytes(data)) if seed % 5 == 0 else bytes(data))
    try:
        found = read_philly_attempts(path, snapshot="2017-11-01 00:00:00", strict=False)
    except InputError:
        return
    assert found.account.used + sum(count for _, count in found.account.excluded) == found.account.read
    assert (found.elapsed_s >= UNKNOWN).all()
