"""Case `infer-peak-vs-hourly`: hour by hour instead of the peak all day, and no replica for rounding noise."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuplan.forecast.capacity import Replica, size
from gpuplan.forecast.traffic import TrafficHistory
from gpuplan.inputs.errors import InputError
from gpuplan.traces.hourly import read_hourly

CASE = "infer-peak-vs-hourly"


@pytest.fixture(scope="module")
def history(case: Path) -> TrafficHistory:
    return read_hourly(case / "input.csv", unit="tokens/s")


def replica(**changes: Any) -> Replica:
    """The replica of the case's input.yaml."""
    return Replica(2, 1000, "tokens/s", **changes)


def test_hour_by_hour(history: TrafficHistory, expected: dict[str, Any]) -> None:
    found = size(history.values, replica(), unit=history.unit)
    assert found.replicas.tolist() == expected["replicas_by_hour"]
    assert found.against_peak.gpu_hours == expected["gpu_hours_hourly"]
    assert found.against_peak.peak_gpu_hours == expected["gpu_hours_peak"]
    assert found.replicas.max() == expected["peak_replicas"]
    assert found.against_peak.saved_percent == pytest.approx(expected["saved_percent"], abs=5e-5)
    assert not found.unknown.any()


def test_a_target_load_leaves_room(history: TrafficHistory, expected: dict[str, Any]) -> None:
    found = size(history.values, replica(target_load=0.8))
    assert found.against_peak.gpu_hours == expected["with_80_percent_target"]["gpu_hours"]
    assert found.replicas.max() == expected["with_80_percent_target"]["peak_replicas"]


def test_empty_hours_need_none_if_none_is_the_least(
    history: TrafficHistory, expected: dict[str, Any]
) -> None:
    found = size(history.values, replica(min_replicas=0))
    assert found.against_peak.gpu_hours == expected["with_min_0"]["gpu_hours"]
    assert found.replicas[:3].tolist() == [0, 0, 1]


# ---------------------------------------------------------------------- the same fault in other clothes


def rows(case: Path) -> list[list[str]]:
    with (case / "input.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def written(path: Path, lines: list[list[str]]) -> Path:
    path.write_text("\n".join(",".join(line) for line in lines) + "\n", encoding="utf-8")
    return path


def test_a_missing_hour_keeps_the_replicas_of_the_hour_before(case: Path, tmp_path: Path) -> None:
    """Without hour 13 (8 replicas) the 7 of hour 12 stay: 94 - 1 replica-hours."""
    lines = [line for line in rows(case) if "T13" not in line[0]]
    history = read_hourly(written(tmp_path / "gap.csv", lines), unit="tokens/s")
    found = size(history.values, replica())
    assert len(history) == 24
    assert np.flatnonzero(found.unknown).tolist() == [13]
    assert found.replicas[12:15].tolist() == [7, 7, 10]
    assert found.against_peak.gpu_hours == 2 * 93


def test_out_of_order_and_twice_the_same_is_no_change(
    case: Path, tmp_path: Path, history: TrafficHistory
) -> None:
    head, *body = rows(case)
    lines = [head, *reversed(body), body[5]]
    again = read_hourly(written(tmp_path / "mixed.csv", lines), unit="tokens/s")
    assert again.values.tolist() == history.values.tolist()
    assert again.account is not None
    assert dict(again.account.excluded) == {"the same time and value again": 1}


def test_two_values_for_one_hour_are_a_mistake_with_its_line(case: Path, tmp_path: Path) -> None:
    lines = [*rows(case), ["2026-05-04T05:00", "7"]]
    with pytest.raises(InputError, match=r"line 26.*1000") as caught:
        read_hourly(written(tmp_path / "twice.csv", lines), unit="tokens/s")
    assert caught.value.mistakes[0].line == 26


def test_a_replica_that_takes_time_to_start_is_held_a_step_before(history: TrafficHistory) -> None:
    """Hour 6 serves with 1 and already starts the second of hour 7; falls are not held longer."""
    found = size(history.values, replica(start_up_s=600))
    assert found.replicas[6:9].tolist() == [1, 2, 3]
    assert found.held[6:9].tolist() == [2, 3, 3]
    assert found.held[14:16].tolist() == found.replicas[14:16].tolist()
