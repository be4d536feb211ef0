"""A job with a range of GPUs in a scenario file: both forms, every mistake at once, changing one into the other."""

from typing import Any

import jsonschema
import pytest

from gpuplan.allocation.model import AllocationScenario, BatchJob
from gpuplan.allocation.schema import from_mapping, json_schema
from gpuplan.inputs.errors import InputError

ROW = {
    "name": "x",
    "kind": "training",
    "gpus": {"min": 2, "max": 8},
    "gpu_hours": 40,
    "scaling": 0.9,
    "priority": 3,
}
WHOLE = {"kind": "allocation", "name": "ranges", "cluster": {"gpus": 16}}


def read(*rows: dict[str, Any]) -> AllocationScenario:
    return from_mapping({**WHOLE, "batch": list(rows)})


def mistakes(row: dict[str, Any], **other: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        from_mapping({**WHOLE, **other, "batch": [row]})
    return [str(mistake) for mistake in caught.value.mistakes]


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in ROW.items() if name != key}


def test_a_range_is_read_as_sizes_and_hours_on_each_of_them() -> None:
    (job,) = read(ROW).batch
    assert job == BatchJob("x", "training", 2, 20.0, 3.0, max_gpus=8, scaling=0.9)
    assert job.sizes == (2, 4, 8)
    assert job.gpu_hours == 40.0
    assert job.hours_on(2) == 20.0
    assert job.hours_on(8) == pytest.approx(20 / 4**0.9)


def test_perfect_scaling_is_the_default_and_keeps_the_gpu_hours() -> None:
    (job,) = read({**without("scaling"), "gpu_hours": "2d"}).batch
    assert job.scaling == 1.0
    assert [job.hours_on(n) * n for n in job.sizes] == [48.0] * 3


def test_a_range_of_one_size_is_allowed_and_written_back() -> None:
    scenario = read({**ROW, "gpus": {"min": 4, "max": 4}})
    assert scenario.batch[0].sizes == (4,)
    assert "gpus: {min: 4, max: 4}, gpu_hours: 40, scaling: 0.9" in scenario.to_yaml()
    assert from_mapping(scenario.to_dict()) == scenario


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (without("gpu_hours"), ["batch.0.gpu_hours: must be given"]),
        (without("gpus"), ["batch.0.gpus: must be given"]),
        (
            {**ROW, "hours": 3, "running_on": 0},
            [
                "batch.0.hours: must be left out where gpus is a range: "
                "write gpu_hours, the work in GPU-hours on the smallest size (got 3)",
                "batch.0.running_on: must be left out where gpus is a range: "
                "what runs already keeps its GPUs; write them as one number, with hours (got 0)",
            ],
        ),
        (
            {**ROW, "gpus": 4, "hours": 10},
            [
                "batch.0.gpu_hours: must be left out where gpus is one number: "
                "write hours, or give gpus as a range, {min: 2, max: 8} (got 40)",
                "batch.0.scaling: must be left out where gpus is one number: "
                "how a job scales matters only for a range of sizes (got 0.9)",
            ],
        ),
        ({**ROW, "gpus": {"min": 8, "max": 2}}, ["batch.0.gpus.max: must not be less than min, 8 (got 2)"]),
        (
            {**ROW, "gpus": {"min": 3, "mx": 8}, "scaling": 1.5, "gpu_hours": "soon"},
            [
                "batch.0.gpus.min: must be a power of two (got 3)",
                "batch.0.gpus.max: must be given",
                "batch.0.gpus.mx: unknown key; did you mean max?",
                "batch.0.gpu_hours: must be a number of hours, or a number with s, min, h, d or w "
                "(90min, 1.5h, 7d) (got 'soon')",
                "batch.0.scaling: must be at most 1 (got 1.5)",
            ],
        ),
        ({**ROW, "scaling": 0}, ["batch.0.scaling: must be more than 0 (got 0)"]),
        ({**ROW, "gpuhours": 3}, ["batch.0.gpuhours: unknown key; did you mean gpu_hours?"]),
        (
            {**ROW, "gpus": "2-8"},
            ["batch.0.gpus: must be a power of two, or a range of them, {min: 2, max: 8} (got '2-8')"],
        ),
        (
            {**ROW, "gpus": {"min": 1, "max": 16}, "gpu_hours": "2s", "scaling": 1},
            [
                "batch.0.gpu_hours: must be enough for at least 1 s on the largest size, 16 GPUs "
                "(got 0.0005555555555555556)"
            ],
        ),
    ],
)
def test_every_mistake_of_a_range_is_named_with_its_place(row: dict[str, Any], expected: list[str]) -> None:
    assert mistakes(row) == expected


def test_mistakes_between_fields_are_found_beside_a_broken_range() -> None:
    app = {"name": "x", "priority": 1, "demand": [1]}
    found = mistakes({**ROW, "gpus": {"min": 3, "max": 8}}, realtime=[app], horizon={"steps": 1})
    assert found == [
        "batch.0.gpus.min: must be a power of two (got 3)",
        "batch.0.name: must be unique, but realtime.0 has the same name (got 'x')",
    ]


def test_an_end_of_the_range_changes_by_its_path() -> None:
    changed = read(ROW).replace({"batch.0.gpus.max": 16, "batch.0.gpu_hours": 20})
    assert changed.batch[0] == BatchJob("x", "training", 2, 10.0, 3.0, max_gpus=16, scaling=0.9)


def test_a_number_in_place_of_a_range_keeps_the_work() -> None:
    job = read(ROW).replace({"batch.0.gpus": 4}).batch[0]
    assert (job.gpus, job.max_gpus, job.scaling) == (4, None, 1.0)
    assert job.hours == pytest.approx(read(ROW).batch[0].hours_on(4))
    given = {"batch.0.gpus": 4, "batch.0.hours": 5}
    assert read(ROW).replace(given).batch[0].hours == 5.0


def test_a_range_in_place_of_a_number_keeps_the_gpu_hours() -> None:
    plain = read(ROW).replace({"batch.0.gpus": 4, "batch.0.hours": 5})
    job = plain.replace({"batch.0.gpus": {"min": 1, "max": 4}}).batch[0]
    assert (job.sizes, job.gpu_hours) == ((1, 2, 4), 20.0)


@pytest.mark.parametrize(
    "value", [None, 3, 4, "x", [], {}, {"min": 1}, {"min": 1, "max": None}, {"min": [], "max": 8}, object()]
)
@pytest.mark.parametrize("path", ["gpus", "gpus.min", "gpus.max", "gpu_hours", "hours", "scaling"])
def test_any_value_anywhere_in_a_ranged_job_is_a_scenario_or_a_sentence(path: str, value: Any) -> None:
    try:
        sentence = str(type(read(ROW).replace({f"batch.0.{path}": value})))
    except InputError as error:
        sentence = str(error)
    assert sentence.startswith("changes: ") or "AllocationScenario" in sentence


def test_the_fingerprint_sees_the_range_and_how_the_job_scales() -> None:
    base = read(ROW)
    changes = [
        {"batch.0.gpus.max": 4},
        {"batch.0.scaling": 1},
        {"batch.0.gpus": {"min": 2, "max": 2}},
        {"batch.0.gpus": 2},
    ]
    assert len({base.fingerprint, *(base.replace(change).fingerprint for change in changes)}) == 5


@pytest.mark.parametrize(
    "row",
    [{**ROW, "hours": 3}, {**ROW, "running_on": 0}, {**ROW, "gpus": 4, "hours": 3}, without("gpu_hours")],
)
def test_the_json_schema_refuses_a_mixture_of_the_forms(row: dict[str, Any]) -> None:
    jsonschema.validate({**WHOLE, "batch": [ROW]}, json_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**WHOLE, "batch": [row]}, json_schema())
