"""Case `sim-same-instant`: ends, arrivals and starts of one second, whatever the order of the rows in the table."""

import csv
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML

from cases import front_door
from gpuplan.fairshare.run import Run

CASE = "sim-same-instant"


@pytest.fixture(scope="module")
def rows(case: Path) -> list[dict[str, str]]:
    with (case / "input.csv").open(encoding="utf-8", newline="") as file:
        return [{"job": row.pop("id"), **row} for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def gpus(case: Path) -> int:
    return int(YAML(typ="safe").load(case / "input.yaml")["pool"]["gpus"])


def simulated(folder: Path, rows: Sequence[dict[str, str]], gpus: int, policy: str = "fifo") -> Run:
    return front_door.run(front_door.load(folder, {"cluster": {"gpus": gpus}}, rows), policy)


def peak_busy(run: Run) -> int:
    """Most GPUs at one instant, ends before starts."""
    found = run.to_frame()
    at = np.concatenate((found.end_s, found.start_s))
    change = np.concatenate((-found.gpus, found.gpus))
    order = np.lexsort((np.repeat((0, 1), len(found)), at))
    return int(change[order].cumsum().max())


def test_expected_values(
    tmp_path: Path, rows: list[dict[str, str]], gpus: int, expected: dict[str, Any]
) -> None:
    run = simulated(tmp_path, rows, gpus)
    assert front_door.starts(run) == expected["start_s"]
    assert front_door.ends(run) == expected["end_s"]
    # job 11 wants 4 GPUs for no time: it is one of the jobs that ran, and adds nothing
    table = run.to_frame()
    assert int((table.gpus * (table.end_s - table.start_s)).sum()) == expected["gpu_seconds"]
    assert run.figures["occupancy"] == expected["utilisation_percent"] / 100
    assert run.figures["jobs_finished"] == len(rows)


def test_the_peak(tmp_path: Path, rows: list[dict[str, str]], gpus: int, expected: dict[str, Any]) -> None:
    """Counted over work that lasts; a job of no time has its GPUs at an instant that lasts no time either."""
    lasting = [row for row in rows if row["run_s"] != "0"]
    assert peak_busy(simulated(tmp_path, lasting, gpus)) == expected["peak_busy"]
    hours = simulated(tmp_path, rows, gpus).over(1)
    assert int(hours.allocated.sum(axis=0).max()) == expected["peak_busy"]


@pytest.mark.parametrize("policy", ["fifo", "easy", "fair-share"])
def test_same_after_shuffling_rows(
    tmp_path: Path, rows: list[dict[str, str]], gpus: int, expected: dict[str, Any], policy: str
) -> None:
    found = {simulated(tmp_path, order, gpus, policy).fingerprint for order in permutations(rows)}
    assert (len(found) == 1) == expected["same_after_shuffling_rows"]


def test_same_on_every_run(
    tmp_path: Path, rows: list[dict[str, str]], gpus: int, expected: dict[str, Any]
) -> None:
    """In processes of their own, with other seeds of text hashing."""
    here = simulated(tmp_path, rows, gpus).fingerprint
    program = "import sys, gpuplan as gp; print(gp.simulate(gp.load(sys.argv[1]), 'fifo').fingerprint)"
    told = [
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "case.yaml")],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    assert ({here, *told} == {here}) == expected["same_on_every_run"]
