"""Case `prom-nan-inf-gaps`: texts, NaN, infinities and missing hours; a gap is unknown and a 0 is a value."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuplan.inputs.errors import InputError
from gpuplan.traces.prometheus import read_prometheus
from gpuplan.traces.series import Metrics

CASE = "prom-nan-inf-gaps"


@pytest.fixture(scope="module")
def answer(case: Path) -> Metrics:
    return read_prometheus(case / "input.json")


def test_each_node(answer: Metrics, expected: dict[str, Any]) -> None:
    for node, mine in answer.by("node").items():
        history = mine.combined("same", "busy share")
        assert np.nanmean(history.values) == pytest.approx(expected["mean"][node], abs=5e-7)
        assert history.known.sum() == expected["known_hours"][node]
        assert len(history) == expected["hours"]
    assert np.isnan(answer.by("node")["n1"].combined("same", "x").values[1:4]).all()


def test_the_cluster(answer: Metrics, expected: dict[str, Any]) -> None:
    cluster = answer.combined("mean", "busy share")
    assert cluster.values.tolist() == expected["cluster_by_hour"]
    assert cluster.start.isoformat().replace("+00:00", "Z") == expected["first_hour"]
    assert np.flatnonzero(answer.known_series == 1).tolist() == [1, 2, 3, 4]


def test_every_reading_is_accounted_for(answer: Metrics, expected: dict[str, Any]) -> None:
    account = answer.account
    assert account.used == expected["usable"]
    assert dict(account.excluded) == {"NaN": expected["nan"], "infinite": expected["infinite"]}
    assert account.amounts[0][1] == expected["missing"]
    assert account.read + account.amounts[0][1] == 12


def test_the_message_of_the_server_is_shown(case: Path) -> None:
    with pytest.raises(InputError, match="query timed out"):
        read_prometheus(case / "input_error.json")


def test_an_empty_answer_says_so(case: Path) -> None:
    with pytest.raises(InputError, match="no data in this answer"):
        read_prometheus(case / "input_empty.json")
