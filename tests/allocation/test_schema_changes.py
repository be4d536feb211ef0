"""Changing a scenario by dotted path: the same rules as a file, unknown paths with a suggestion."""

from typing import Any

import numpy as np
import pytest

from gpuplan import load
from gpuplan.allocation.model import AllocationScenario, DemandShape
from gpuplan.allocation.schema import to_dict
from gpuplan.inputs.errors import InputError


@pytest.fixture
def day() -> AllocationScenario:
    return load("mixed-day")


def mistakes(scenario: AllocationScenario, changes: dict[str, Any]) -> list[str]:
    with pytest.raises(InputError) as caught:
        scenario.replace(changes)
    assert caught.value.source == "changes"
    return [str(mistake) for mistake in caught.value.mistakes]


def test_values_change_and_the_rest_stays(day: AllocationScenario) -> None:
    changed = day.replace(
        {
            "cluster.gpus": 16,
            "objective.shortfall_penalty": np.float64(3.5),
            "batch.1.priority": 9,
            "name": "no",
        }
    )
    assert (changed.cluster.gpus, changed.objective.shortfall_penalty) == (16, 3.5)
    assert (changed.batch[1].priority, changed.name) == (9.0, "no")
    back = {"cluster.gpus": 8, "objective.shortfall_penalty": 8, "batch.1.priority": 3, "name": "mixed-day"}
    assert changed.replace(back) == day


def test_nothing_changed_is_an_equal_scenario(day: AllocationScenario) -> None:
    assert day.replace({}) == day
    assert day.replace({}).fingerprint == day.fingerprint


def test_numbers_for_a_demand_drop_its_shape(day: AllocationScenario) -> None:
    app = day.replace({"realtime.0.demand": np.arange(24)}).realtime[0]
    assert (app.shape, app.demand) == (None, tuple(range(24)))


def test_one_point_of_a_shape_keeps_the_other_points_as_numbers(day: AllocationScenario) -> None:
    before = day.realtime[0].demand
    app = day.replace({"realtime.0.demand.3": 7}).realtime[0]
    assert (app.shape, app.demand) == (None, (*before[:3], 7, *before[4:]))
    assert day.realtime[0].shape is not None  # the scenario itself is untouched


def test_a_shape_can_be_changed_in_part_and_as_a_whole(day: AllocationScenario) -> None:
    assert max(day.replace({"realtime.0.demand.peak": 7}).realtime[0].demand) == 7
    shape = {"base": 2, "peak": 2, "peak_hour": 0, "width_hours": 4}
    app = day.replace({"realtime.0.demand": shape}).realtime[0]
    assert (app.shape, app.demand) == (DemandShape(2.0, 2.0, 0.0, 4.0), (2,) * 24)


def test_a_shape_follows_the_horizon_and_numbers_must_fit_it(day: AllocationScenario) -> None:
    halves = day.replace({"horizon.steps": 48, "horizon.step_hours": 0.5})
    assert halves.realtime[0].demand[::2] == day.realtime[0].demand
    numbers = day.replace({"realtime.0.demand": [1] * 24})
    assert mistakes(numbers, {"horizon.steps": 48}) == [
        "realtime.0.demand: must have one number per step, 48, but has 24"
    ]
    assert numbers.replace({"horizon.steps": 2, "realtime.0.demand": [3, 4]}).realtime[0].demand == (3, 4)


def test_rows_are_added_deleted_and_ordered_as_a_whole_list(day: AllocationScenario) -> None:
    rows = to_dict(day)["batch"]
    changed = day.replace({"batch": [rows[2], rows[0]], "batch.0.priority": 7})
    assert [job.name for job in changed.batch] == [rows[2]["name"], rows[0]["name"]]
    assert changed.batch[0].priority == 7.0
    assert rows[2]["priority"] == 4  # what was handed in is not written into


def test_unknown_paths_are_named_with_a_suggestion(day: AllocationScenario) -> None:
    changes = {
        "cluster.gpu": 1,
        "bach": [],
        "batch.10.priority": 1,
        "batch.x.priority": 1,
        "batch.-1.priority": 1,
        "realtime.0.demand.pek": 1,
        "realtime.0.held.0": 1,
        "name.first": 1,
        "": 1,
        "cluster": {"gpus": 8},
    }
    assert mistakes(day, changes) == [
        "cluster.gpu: unknown path; did you mean gpus?",
        "bach: unknown path; did you mean batch?",
        "batch.10.priority: unknown path: batch has 10 entries, counted from 0",
        "batch.x.priority: unknown path: batch has 10 entries, counted from 0",
        "batch.-1.priority: unknown path: batch has 10 entries, counted from 0",
        "realtime.0.demand.pek: unknown path; did you mean peak?",
        "realtime.0.held.0: unknown path: realtime.0.held has no parts",
        "name.first: unknown path: name has no parts",
        "unknown path",
    ]


def test_wrong_values_are_told_like_those_of_a_file(day: AllocationScenario) -> None:
    assert mistakes(day, {"cluster.gpus": True, "batch.0.gpus": 3, "batch.1.name": "chat-assistant"}) == [
        "cluster.gpus: must be a whole number (got True)",
        "batch.0.gpus: must be a power of two (got 3)",
        "batch.1.name: must be unique, but realtime.0 has the same name (got 'chat-assistant')",
    ]


@pytest.mark.parametrize(
    "path", ["kind", "cluster", "batch", "realtime", "realtime.0", "batch.0", "realtime.0.demand"]
)
@pytest.mark.parametrize("value", [None, 3, "x", [], {}, [None], {"a": 1}, object()])
def test_any_value_anywhere_is_a_scenario_or_a_sentence(
    day: AllocationScenario, path: str, value: Any
) -> None:
    try:
        sentence = str(type(day.replace({path: value})))
    except InputError as error:
        sentence = str(error)
    assert sentence.startswith("changes: ") or "AllocationScenario" in sentence
