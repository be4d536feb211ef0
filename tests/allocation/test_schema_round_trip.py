"""A saved scenario reads back equal; equal scenarios have one fingerprint; editors get a schema."""

import dataclasses
import hashlib
import io
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from ruamel.yaml import YAML
from strategies import scenarios

from gpuplan import load, shipped
from gpuplan.allocation.file_jobs import BatchFile, RangedBatchFile
from gpuplan.allocation.file_models import ClusterFile, ObjectiveFile, RealtimeFile, RulesFile
from gpuplan.allocation.model import AllocationScenario, BatchJob, Objective, RealtimeApp, Rules
from gpuplan.allocation.schema import from_mapping, json_schema
from gpuplan.cluster import Cluster
from gpuplan.inputs.yaml_file import parse_yaml


def read(text: str) -> AllocationScenario:
    document = parse_yaml(text)
    return from_mapping(document.data, "text", document.line, document.mistakes)


@given(scenarios())
def test_every_scenario_survives_its_file_its_mapping_and_no_change(scenario: AllocationScenario) -> None:
    text = scenario.to_yaml()
    again = read(text)
    assert again == scenario
    assert again.fingerprint == scenario.fingerprint
    assert again.to_yaml() == text
    assert from_mapping(scenario.to_dict()) == scenario
    assert scenario.replace({}) == scenario


VALIDATOR = jsonschema.Draft202012Validator(json_schema())


@given(scenarios(max_gpus=8, max_steps=6, max_jobs=4, max_apps=2))
def test_every_written_file_is_valid_by_the_json_schema(scenario: AllocationScenario) -> None:
    VALIDATOR.validate(YAML(typ="safe", pure=True).load(io.StringIO(scenario.to_yaml())))


def test_values_that_equal_their_default_are_left_out() -> None:
    scenario = from_mapping({"kind": "allocation", "name": "least", "cluster": {"gpus": 2}, "rules": {}})
    assert scenario.to_yaml() == "kind: allocation\nname: least\ncluster: {gpus: 2}\n"


def test_a_none_that_is_not_the_default_is_written() -> None:
    mapping = {
        "kind": "allocation",
        "name": "x",
        "cluster": {"gpus": 2},
        "objective": {"half_life_hours": None},
    }
    assert "objective: {half_life_hours: null}\n" in from_mapping(mapping).to_yaml()


def test_an_empty_held_list_is_not_the_same_as_an_unknown_one() -> None:
    app = {"name": "a", "priority": 1, "demand": [1]}
    least = {"kind": "allocation", "name": "x", "cluster": {"gpus": 2}, "horizon": {"steps": 1}}
    nothing = from_mapping({**least, "realtime": [{**app, "held": []}]})
    unknown = from_mapping({**least, "realtime": [app]})
    assert (nothing.realtime[0].held, unknown.realtime[0].held) == ((), None)
    assert read(nothing.to_yaml()) == nothing
    assert nothing.fingerprint != unknown.fingerprint


def test_the_fingerprint_is_the_hash_of_all_resolved_fields() -> None:
    scenario = AllocationScenario("x", Cluster(2), batch=(BatchJob("a", "training", 1, 1.0, 2.0),))
    text = (
        '{"about":"","batch":[{"deadline_hour":null,"earliest_hour":0,"gpus":1,"hours":1,"kind":"training",'
        '"name":"a","priority":2,"running_on":null}],"cluster":{"gpus":2,"gpus_per_node":null,'
        '"price_per_gpu_hour":null,"unavailable":[]},"horizon":{"start":null,"step_s":3600,"steps":24},'
        '"name":"x","objective":{"half_life_hours":24,"shortfall_penalty":8},"realtime":[],'
        '"rules":{"must_finish":true,"within_node":false}}'
    )
    assert scenario.fingerprint == hashlib.sha256(text.encode()).hexdigest()


def test_the_fingerprint_does_not_tell_3_from_3_0_and_sees_every_change() -> None:
    base = load("two-apps")
    job = dataclasses.replace(base.batch[0], priority=1)
    assert dataclasses.replace(base, batch=(job, *base.batch[1:])).fingerprint == base.fingerprint
    changes: list[dict[str, Any]] = [
        {"name": "x"},
        {"about": "x"},
        {"cluster.gpus": 17},
        {"horizon.start": None},
        {"rules.must_finish": False},
        {"realtime.1.demand.0": 1},
        {"batch.0.deadline_hour": 3},
    ]
    assert len({base.fingerprint, *(base.replace(change).fingerprint for change in changes)}) == 1 + len(
        changes
    )


def test_file_models_and_inner_values_have_the_same_fields() -> None:
    for model, value in (
        (ClusterFile, Cluster),
        (ObjectiveFile, Objective),
        (RulesFile, Rules),
    ):
        assert list(model.model_fields) == [field.name for field in dataclasses.fields(value)]
    inner = {field.name for field in dataclasses.fields(RealtimeApp)}
    assert {*RealtimeFile.model_fields, "shape"} == inner
    inner = {field.name for field in dataclasses.fields(BatchJob)}
    for form in (BatchFile, RangedBatchFile):  # a range is one key of the file and two fields inside
        assert {*form.model_fields, "max_gpus"} - {"gpu_hours"} == inner


def test_defaults_of_the_file_are_those_of_the_inner_values() -> None:
    for model, value in (
        (ClusterFile, Cluster),
        (ObjectiveFile, Objective),
        (RulesFile, Rules),
        (RangedBatchFile, BatchJob),
        (RealtimeFile, RealtimeApp),
    ):
        for field in dataclasses.fields(value):
            if field.default is not dataclasses.MISSING and field.name in model.model_fields:
                assert model.model_fields[field.name].default == field.default


def fields_of(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for part in (schema, *schema["$defs"].values()):
        yield from part["properties"].items()


def test_the_json_schema_describes_every_field() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    fields = list(fields_of(schema))
    # the whole, then each section, app, shape, the two forms of a job, range
    assert len(fields) == 9 + 4 + 3 + 2 + 2 + 8 + 4 + 10 + 10 + 2
    assert [name for name, field in fields if not field.get("description")] == []
    assert dict(fields)["deadline_hour"]["anyOf"][2] == {"type": "null"}
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize(
    "scenario", [one for one in shipped() if one.kind == "allocation"], ids=lambda scenario: scenario.name
)
def test_shipped_files_are_valid_by_the_json_schema(scenario: Any) -> None:
    data = YAML(typ="safe", pure=True).load(scenario.path)
    horizon = data.get("horizon", {})
    if "start" in horizon:
        horizon["start"] = str(horizon["start"]).replace(" ", "T")[:16]  # YAML's own rules make a date of it
    assert [error.message for error in VALIDATOR.iter_errors(data)] == []


@pytest.mark.parametrize(
    "change",
    [{"colour": 1}, {"kind": "other"}, {"cluster": {"gpus": 0}}, {"batch": [{"name": "a"}]}, {"name": 3}],
)
def test_the_json_schema_refuses_too(change: dict[str, Any]) -> None:
    mapping = {"kind": "allocation", "name": "x", "cluster": {"gpus": 2}}
    jsonschema.validate(mapping, json_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**mapping, **change}, json_schema())
