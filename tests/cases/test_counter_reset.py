"""Case `prom-counter-reset`: a counter that begins again from zero is traffic, not negative traffic."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuplan.traces.prometheus import read_prometheus
from gpuplan.traces.series import Metrics, increases

CASE = "prom-counter-reset"


@pytest.fixture(scope="module")
def answer(case: Path) -> Metrics:
    return read_prometheus(case / "input.json")


def test_the_increase_of_each_hour(answer: Metrics, expected: dict[str, Any]) -> None:
    total = answer.combined("sum", "tokens/h", per_s=False)
    assert answer.kind == "counter"
    assert total.values.tolist() == expected["increase_by_hour"]
    assert total.values.sum() == expected["total"]
    assert total.values.max() == expected["peak_per_hour"]
    assert answer.combined("sum", "tokens/s").values.max() == 0.25


def test_what_each_pod_did(answer: Metrics, expected: dict[str, Any]) -> None:
    by_pod = {
        pod: float(np.nansum(mine.combined("sum", "tokens/h", per_s=False).values))
        for pod, mine in answer.by("pod").items()
    }
    assert by_pod == expected["by_pod"]


def test_resets_are_counted_and_said(answer: Metrics, expected: dict[str, Any]) -> None:
    assert answer.resets == expected["resets"]
    assert (
        "resets of counters: the increase of such a bin is a lower bound",
        2,
        "resets",
    ) in answer.account.amounts


def test_a_gauge_that_falls_is_no_restart(case: Path) -> None:
    """The same numbers as running requests: readings as they are, hour by hour."""
    gauge = read_prometheus(case / "input.json", kind="gauge")
    found = gauge.by("pod")["a"].combined("sum", "requests")
    assert found.values.tolist() == [1000, 1600, 2500, 100, 400, 400, 50]
    assert gauge.resets == 0


def test_a_restart_that_overtakes_the_old_reading_cannot_be_seen() -> None:
    """100, then 30 lost, a restart, and 150 since: 50 is all that the readings show."""
    found, resets, _ = increases(np.array([100.0, 150.0]))
    assert found.tolist() == [50]
    assert resets == 0
