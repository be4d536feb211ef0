"""Replicas for traffic, and holdings that change within a cap."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.forecast.capacity import Replica, gpus_needed, size
from gpuplan.forecast.holding import against_peak, smooth_to_cap
from gpuplan.inputs.errors import InputError

NAN = float("nan")
TEN = Replica(2, 10, "requests/s")


def test_a_limit_that_is_met_exactly_needs_no_replica_more() -> None:
    """0.1 + 0.2 is above 0.3 by rounding only; a millionth more is real."""
    third = Replica(1, 0.3, "requests/s")
    assert 0.1 + 0.2 > 0.3
    assert gpus_needed([0.1 + 0.2, 0.3, 0.3000003, 0.0], third).tolist() == [1, 1, 2, 1]


def test_gpus_are_whole_numbers_of_replicas() -> None:
    found = gpus_needed([0, 10, 10.1, 25], TEN)
    assert found.dtype == np.int64
    assert found.tolist() == [2, 2, 4, 6]


def test_unknown_steps_keep_the_replicas_before_and_are_marked() -> None:
    found = size([NAN, 25, NAN, NAN, 5, NAN], TEN)
    assert found.replicas.tolist() == [3, 3, 3, 3, 1, 1]
    assert found.unknown.tolist() == [True, False, True, True, False, True]
    assert "4 steps of unknown traffic" in repr(found)


def test_more_than_the_most_replicas_is_marked() -> None:
    found = size([5, 35], Replica(2, 10, "requests/s", max_replicas=2))
    assert found.replicas.tolist() == [1, 2]
    assert found.capped.tolist() == [False, True]


@pytest.mark.parametrize(("start_up_s", "held"), [(0, [1, 1, 4, 1]), (1, [1, 4, 4, 1]), (3601, [4, 4, 4, 1])])
def test_a_start_takes_whole_steps_before_the_traffic(start_up_s: float, held: list[int]) -> None:
    found = size([5, 5, 40, 5], Replica(2, 10, "x", start_up_s=start_up_s))
    assert found.held.tolist() == held
    assert found.gpus.tolist() == [2 * count for count in held]
    assert found.replicas.tolist() == [1, 1, 4, 1]


def test_wrong_traffic_is_told_by_its_step() -> None:
    with pytest.raises(InputError) as caught:
        size([1, -1, math.inf, 2, 1e12], TEN, unit="tokens/s")
    assert [mistake.path for mistake in caught.value.mistakes] == ["unit", "values.1", "values.2", "values.4"]
    with pytest.raises(InputError, match="all of them are unknown"):
        size([NAN, NAN], TEN)


def test_every_mistake_of_a_replica_at_once() -> None:
    with pytest.raises(InputError) as caught:
        Replica(0, math.nan, "", 1.5, -1, 0, -1)
    assert len(caught.value.mistakes) == 7
    with pytest.raises(InputError, match="at least min_replicas, 3"):
        Replica(1, 1, "x", min_replicas=3, max_replicas=2)


def test_the_peak_against_the_hours() -> None:
    found = against_peak([2, 4, 2, 0], step_s=1800)
    assert (found.gpu_hours, found.peak_gpu_hours, found.peak_gpus) == (4, 8, 4)
    assert found.saved_percent == 50
    assert math.isnan(against_peak([0, 0]).saved_percent)


def test_a_holding_rises_before_a_peak_and_falls_after_it() -> None:
    """2 GPUs a step: the peak of 9 needs 7 and 5 before; after it 7, 5, 3."""
    assert smooth_to_cap([1, 1, 1, 9, 1, 1, 1], 2).tolist() == [3, 5, 7, 9, 7, 5, 3]
    assert smooth_to_cap([1, 5, 2], 0).tolist() == [5, 5, 5]
    assert smooth_to_cap([1, 5, 2], 100).tolist() == [1, 5, 2]


def test_whole_replicas_change_by_whole_replicas() -> None:
    """A cap of 5 GPUs is one replica of 4 a step."""
    assert smooth_to_cap([0, 0, 12], 5, whole=4).tolist() == [4, 8, 12]
    with pytest.raises(InputError, match=r"gpus\.1: must be 0 or more and a multiple of 4"):
        smooth_to_cap([0, 6], 5, whole=4)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5), st.integers(0, 4))
def test_no_smaller_holding_covers_the_demand_within_the_cap(demand: list[int], cap: int) -> None:
    """Against every holding there is: the step-wise least of the legal ones is itself legal, and is found."""
    legal = [
        holding
        for holding in product(range(6), repeat=len(demand))
        if all(have >= need for have, need in zip(holding, demand, strict=True))
        and all(abs(b - a) <= cap for a, b in pairwise(holding))
    ]
    assert smooth_to_cap(demand, cap).tolist() == [min(column) for column in zip(*legal, strict=True)]


@pytest.mark.parametrize("gpus", [[1.5], [-1], [[1]], ["a"]])
def test_demands_that_are_no_counts(gpus: list[object]) -> None:
    with pytest.raises(InputError):
        smooth_to_cap(gpus, 1)  # type: ignore[arg-type]
