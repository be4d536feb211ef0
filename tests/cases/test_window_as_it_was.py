"""Case `util-window-clip` again, by the record as a run and as a day: of what crosses an edge a part counts."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuplan.forecast.traffic import epoch_s
from gpuplan.traces.as_it_was import AsItWas, as_it_was
from gpuplan.traces.as_it_was_day import day_as_it_was
from gpuplan.traces.as_it_was_day_chart import usage
from gpuplan.traces.history import UNKNOWN, History, history
from gpuplan.traces.to_scenario_day import day_scenario
from gpuplan.traces.to_scenario_span import fairshare_of
from gpuplan.traces.wish import Wish

CASE = "util-window-clip"
AS_OF = datetime(2026, 5, 2, 3)
DAY = "2026-05-01"


@pytest.fixture(scope="module")
def told(case: Path) -> History:
    rows = [line.split("|") for line in (case / "input.txt").read_text().splitlines()[1:]]
    start = np.array([epoch_s(datetime.fromisoformat(row[1])) for row in rows])
    runs = np.array([row[2] == "Unknown" for row in rows])
    end = np.array(
        [epoch_s(AS_OF if row[2] == "Unknown" else datetime.fromisoformat(row[2])) for row in rows]
    )
    return history(
        "input.txt",
        np.arange(2, 2 + len(rows)),
        job=[row[0] for row in rows],
        gpus=[int(row[3]) for row in rows],
        submit_s=start,
        start_s=start,
        end_s=np.where(runs, UNKNOWN, end),
        elapsed_s=end - start,
        state=np.where(runs, "running", "completed").astype(object),
        as_of_s=epoch_s(AS_OF),
    )


@pytest.fixture(scope="module")
def record(told: History) -> AsItWas:
    wish = Wish(first=DAY, last="2026-05-02", gpus=8)
    scenario, _, _ = fairshare_of(told, wish, "clip")
    zero = epoch_s(datetime.fromisoformat(DAY))
    return as_it_was(replace(scenario, until_s=86_400), told, start_s=zero)


def hours_of(expected: dict[str, Any]) -> list[int]:
    """``{"00-06": 5, ...}`` as 24 numbers."""
    found = []
    for span, gpus in expected["busy_gpus_by_hour"].items():
        first, last = map(int, span.split("-"))
        found += [gpus] * (last - first)
    return found


def test_the_occupancy_of_the_day(record: AsItWas, expected: dict[str, Any]) -> None:
    assert 100 * (record.figures["occupancy"] or 0) == pytest.approx(
        expected["utilisation_percent"], abs=5e-7
    )
    hours = record.hours
    busy = (hours.allocated + hours.unallocated).sum(axis=0) / 3600
    assert busy.tolist() == hours_of(expected)
    assert record.account.amounts[0][1] == expected["used_gpu_hours"]


def test_jobs_outside_are_told_and_the_account_adds_up(record: AsItWas) -> None:
    """J4 was over, J5 came later; J1 and J6 are cut at the start, J3 and J6 at the end."""
    assert (record.account.read, record.account.used) == (6, 4)
    assert dict(record.account.changed) == {"cut at the start of the scenario": 2, "cut at its end": 2}
    assert record.check() == []


def test_the_same_day_as_an_allocation(told: History, expected: dict[str, Any]) -> None:
    scenario, _, _ = day_scenario(told, Wish(kind="allocation", day=DAY, gpus=8), "clip")
    done = day_as_it_was(scenario, told)
    assert 100 * (done.figures["utilization"] or 0) == pytest.approx(
        expected["utilisation_percent"], abs=5e-7
    )
    assert usage(done)[0].sum(axis=0).tolist() == hours_of(expected)
    ends = np.concatenate((done.start_s, done.end_s))
    assert 0 <= ends.min() <= ends.max() <= 86_400
