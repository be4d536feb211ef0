"""A saved packing scenario reads back equal; equal scenarios have one fingerprint; editors get a schema."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from strategies import ABOUTS, HOSTILE_NAMES, LETTERS

from gpuplan import load, shipped
from gpuplan.inputs.errors import InputError
from gpuplan.inputs.yaml_file import parse_yaml
from gpuplan.packing import file_models
from gpuplan.packing.limits import MOST_BYTES, MOST_RATE, MOST_ROWS, MOST_SERVICE_US, MOST_US
from gpuplan.packing.model import (
    GIB,
    NEVER,
    Admission,
    Contention,
    Draw,
    Generate,
    Gpus,
    PackingScenario,
    Pieces,
    Preemption,
    Retry,
    ServedModel,
)
from gpuplan.packing.schema import from_mapping, json_schema
from gpuplan.packing.tasks import Tasks, tasks

VALIDATOR = jsonschema.Draft202012Validator(json_schema())

SHIPPED = [one for one in shipped() if one.kind == "packing"]

names = st.one_of(
    st.sampled_from(HOSTILE_NAMES),
    st.text(LETTERS, min_size=1, max_size=12).filter(lambda text: text.strip() != ""),
)
sizes = st.one_of(
    st.integers(0, 80).map(lambda gib: gib * GIB), st.integers(0, MOST_BYTES), st.just(85_147_726_643)
)
spans = st.one_of(st.integers(0, 600).map(lambda s: s * 1_000_000), st.integers(0, MOST_SERVICE_US))
instants = st.one_of(st.integers(0, 10**8), st.integers(0, MOST_US))
rates = st.one_of(st.just(24 * 10**9), st.integers(1_000_000, MOST_RATE))
shares = st.one_of(st.just(0.0), st.floats(0, 1))
cvs = st.one_of(st.just(1.0), st.floats(0, 20))
slots = st.one_of(st.none(), st.integers(1, 1_000_000))


@st.composite
def models(draw: st.DrawFn, gpus: int) -> tuple[ServedModel, ...]:
    """A few models, the resident ones of them small; what one leaves asleep is not more than its weights."""
    found = []
    for name in draw(st.lists(names, min_size=1, max_size=4, unique=True)):
        spread = draw(st.integers(1, gpus))
        resident = draw(st.lists(st.integers(0, gpus - 1), max_size=2, unique=True))
        resident = resident if spread == 1 else list(range(spread))[: len(resident) * spread]
        size = st.integers(0, 1000) if resident else sizes
        actual = draw(size)
        found.append(
            ServedModel(
                name,
                draw(sizes),
                actual,
                draw(size if resident else st.one_of(st.none(), sizes)),
                draw(size),
                draw(st.integers(0, GIB)),
                draw(st.integers(0, actual)),
                draw(st.floats(0.001, 1e9)),
                draw(st.booleans()),
                tuple(sorted(resident)),
                draw(slots),
                spread,
            )
        )
    return tuple(found)


@st.composite
def made_tasks(draw: st.DrawFn, n_models: int) -> Tasks:
    """A few tasks of some models."""
    n = draw(st.integers(0, 4))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=n, max_size=n))

    arrivals = column(instants)
    return tasks(
        arrivals,
        column(st.integers(0, n_models - 1)),
        column(st.one_of(st.just("everyone"), st.just(""), names)),
        column(st.integers(-5, 5)),
        column(spans),
        column(spans),
        column(st.integers(0, 2**20)),
        column(st.integers(0, 2**20)),
        [draw(st.one_of(st.just(NEVER), st.integers(at, MOST_US))) for at in arrivals],
    )


draws = st.builds(Draw, st.integers(0, 2**20).map(float), cvs)
services = st.builds(Draw, spans.map(lambda us: us / 1_000_000), cvs)


@st.composite
def scenarios(draw: st.DrawFn) -> PackingScenario:
    """Valid scenarios over the whole schema."""
    gpus = draw(st.integers(1, 8))
    some = draw(models(gpus))
    generate = draw(
        st.one_of(
            st.none(),
            st.builds(
                Generate, st.floats(0.01, 1e6), st.integers(0, 10_000), services, cvs, cvs, draws, draws, shares,
                st.integers(1, 10_000), st.one_of(st.none(), spans), st.integers(0, 2**53),
            ),
        )
    )  # fmt: skip
    size = st.integers(10_000, MOST_BYTES)
    eviction = draw(st.sampled_from(file_models.EVICTIONS))
    return PackingScenario(
        name=draw(names),
        gpus=Gpus(gpus, draw(size), draw(rates), draw(rates), draw(spans), draw(slots), draw(st.booleans())),
        models=some,
        admission=Admission(
            draw(st.integers(0, 10_000_000)),
            draw(sizes),
            draw(st.booleans()),
            draw(st.sampled_from(["declared", "free"])),
        ),
        preemption=Preemption(
            draw(st.sampled_from(["never", "always", "threshold"])), draw(spans), draw(spans), draw(spans)
        ),
        contention=Contention(
            draw(st.sampled_from(["none", "sharing", "slowdown"])), draw(st.floats(0, 1000))
        ),
        retry=Retry(draw(st.integers(0, 1000)), draw(spans)),
        policy=Pieces(
            draw(st.sampled_from(file_models.PLACEMENTS)),
            draw(st.sampled_from(file_models.ORDERS)),
            eviction,
            draw(st.integers(0, 1000)),
            draw(spans if eviction == "keep-alive" else st.one_of(st.none(), spans)),
        ),
        generate=generate,
        tasks=None if generate else draw(made_tasks(len(some))),
        until_us=draw(st.one_of(st.none(), st.integers(1, MOST_US))),
        about=draw(st.sampled_from(["", *ABOUTS])),
    )


def read(text: str) -> PackingScenario:
    document = parse_yaml(text)
    return from_mapping(document.data, "text", document.line, document.mistakes)


@given(scenarios())
def test_every_scenario_survives_its_file_its_mapping_and_no_change(scenario: PackingScenario) -> None:
    text = scenario.to_yaml()
    again = read(text)
    assert again == scenario
    assert again.fingerprint == scenario.fingerprint
    assert again.to_yaml() == text
    assert from_mapping(scenario.to_dict()) == scenario
    assert scenario.replace({}) == scenario
    plain = YAML(typ="safe", pure=True).load(io.StringIO(text))
    assert [error.message for error in VALIDATOR.iter_errors(plain)] == []


LEAST = """\
kind: packing
name: least
gpus: {count: 2, memory_gib: 79.3}
models:
  - {name: chat, declared_gib: 16, actual_gib: 18}
  - {name: rank, declared_gib: 2}
tasks:
  rows:
    - {arrival_s: 0, model: chat, service_s: 1.5}
    - {arrival_s: 0.001, model: rank, tenant: b, service_s: 2, predicted_s: 3}
"""


def test_values_that_equal_their_default_are_left_out() -> None:
    assert read(LEAST).to_yaml() == LEAST
    generated = LEAST[: LEAST.index("tasks:")] + (
        "tasks:\n  generate: {rate_per_s: 1.2, count: 10, service_s: {mean: 8, cv: 1}, tokens_in: 1000}\n"
    )
    assert read(generated).to_yaml() == generated
    nothing = LEAST[: LEAST.index("tasks:")] + "tasks: {rows: []}\n"
    assert read(nothing).to_yaml() == nothing


def test_a_scenario_with_a_table_names_it(tmp_path: Path) -> None:
    (tmp_path / "tasks.csv").write_text("arrival_s,model,service_s\n0,chat,1.5\n0.001,rank,2\n")
    text = LEAST[: LEAST.index("tasks:")] + "tasks: {file: tasks.csv}\n"
    (tmp_path / "x.yaml").write_text(text)
    scenario = load(tmp_path / "x.yaml")
    assert scenario.to_yaml() == text
    changed = scenario.replace({"admission.margin": 0.1})
    assert changed.tasks == scenario.tasks
    assert changed.notes == scenario.notes != ()
    assert changed.fingerprint != scenario.fingerprint
    rows = ["{arrival_s: 0, model: chat, service_s: 1.5}", "{arrival_s: 1ms, model: rank, service_s: 2}"]
    inline = "  rows:\n" + "".join(f"    - {row}\n" for row in rows)
    assert read(LEAST[: LEAST.index("  rows")] + inline).fingerprint == scenario.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"gpus.count": 3},
        {"gpus.host_cache": False},
        {"admission.margin": "0.200001"},
        {"admission.on": "free"},
        {"models.0.actual_gib": "19327352831B"},
        {"models.1.resident": [0]},
        {"preemption.when": "always"},
        {"contention.model": "sharing"},
        {"retry.most": 2},
        {"policy.queue": "shortest"},
        {"policy.keep_alive_s": 5},
        {"until_s": 3},
        {"tasks.rows.0.service_s": "1500001us"},
        {"tasks.rows.0.tenant": "a"},
        {"tasks.rows.1.predicted_s": None},
        {"tasks.rows.1.deadline_s": 1},
        {"tasks.generate": {"rate_per_s": 1, "count": 5, "service_s": 1}},
    ],
)
def test_every_change_that_may_change_a_run_changes_the_fingerprint(change: dict[str, Any]) -> None:
    scenario = read(LEAST)
    assert scenario.replace(change).fingerprint != scenario.fingerprint
    assert scenario.replace({"gpus.memory_gib": "85147726643B"}).fingerprint == scenario.fingerprint


def test_values_are_changed_by_the_paths_of_the_file() -> None:
    scenario = read(LEAST).replace(
        {"tasks.generate": {"rate_per_s": 1, "count": 5, "service_s": 2, "tokens_in": 7}}
    )
    assert scenario.tasks is None
    changed = scenario.replace(
        {
            "tasks.generate.service_s.mean": 4,
            "tasks.generate.tokens_in.cv": 0.5,
            "policy.placement": "worst-fit",
        }
    )
    assert changed.generate == Generate(1.0, 5, Draw(4.0, 0.0), tokens_in=Draw(7.0, 0.5))
    assert changed.policy.placement == "worst-fit"
    with pytest.raises(InputError) as caught:
        scenario.replace({"admission.margn": 1, "models.2.name": "x", "name.x": 1, "gpus": {"count": 1}})
    assert [str(mistake) for mistake in caught.value.mistakes] == [
        "admission.margn: unknown path; did you mean margin?",
        "models.2.name: unknown path: models has 2 entries, counted from 0",
        "name.x: unknown path: name has no parts",
    ]


def test_tasks_keep_their_models_by_name_when_models_change() -> None:
    scenario = read(LEAST)
    rows = scenario.to_dict()["models"]
    turned = scenario.replace({"models": rows[::-1]})
    assert turned.tasks is not None
    assert turned.tasks.model.tolist() == [1, 0]
    renamed = scenario.replace({"models.0.name": "talk"})
    assert renamed.tasks is not None
    assert renamed.tasks.model.tolist() == [0, 1]
    with pytest.raises(InputError, match=r"models: must hold the model of 1 task \(got 'chat'\)"):
        scenario.replace({"models": rows[1:]})


def test_notes_about_values_are_made_anew() -> None:
    scenario = read(LEAST)
    large = scenario.replace({"models.0.declared_gib": 100})
    assert large.notes == ("chat needs 120.5 GiB and no GPU has more than 79.3 GiB: its tasks are rejected.",)
    assert large.replace({"models.0.declared_gib": 16}) == scenario
    assert large.replace({"models.0.declared_gib": 16}).notes == ()


def test_other_tasks_may_be_put_in_place() -> None:
    scenario = read(LEAST)
    made = scenario.with_tasks(tasks([5], 1, service_us=7), ("From a trace.",))
    assert made.tasks is not None
    assert (len(made.tasks), made.notes) == (1, ("From a trace.",))
    assert made.replace({"admission.margin": 0}).notes == ("From a trace.",)
    many = scenario.with_tasks(tasks(range(MOST_ROWS + 1), service_us=1))
    with pytest.raises(InputError, match="write_tasks makes a table of them"):
        many.to_yaml()
    assert many.replace({"gpus.count": 1}).tasks == many.tasks


def test_the_json_schema_describes_every_field_in_the_units_of_people() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    parts = [schema, *schema["$defs"].values()]
    fields = [(name, field) for part in parts for name, field in part["properties"].items()]
    assert {"margin", "keep_alive_s", "asleep_gib", "rate_per_s", "rows", "deadline_s"} <= {
        name for name, _ in fields
    }
    assert [name for name, field in fields if not field.get("description")] == []
    assert all(part["additionalProperties"] is False for part in parts)
    gpus, admission = (schema["$defs"][name]["properties"] for name in ("GpusFile", "AdmissionFile"))
    assert (gpus["host_gb_per_s"]["default"], gpus["release_s"]["default"]) == (24, 1)
    assert (admission["margin"]["default"], admission["context_gib"]["default"]) == (0.2, 0.5)


@pytest.mark.parametrize(
    "change",
    [{"colour": 1}, {"kind": "other"}, {"gpus": {"count": 1}}, {"models": [{"name": "m"}]}, {"name": 3}],
)
def test_the_json_schema_refuses_too(change: dict[str, Any]) -> None:
    mapping = json.loads(json.dumps(read(LEAST).to_dict()))
    VALIDATOR.validate(mapping)
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate({**mapping, **change})


def test_equal_scenarios_have_one_hash() -> None:
    scenario = read(LEAST)
    assert hash(read(LEAST)) == hash(scenario)
    assert replace(scenario, notes=("x",)) == scenario


@pytest.mark.parametrize("one", SHIPPED, ids=lambda one: one.name)
def test_shipped_files_are_what_they_say(one: Any) -> None:
    assert [e.message for e in VALIDATOR.iter_errors(YAML(typ="safe", pure=True).load(one.path))] == []
    scenario = load(one.name)
    assert scenario.name == one.path.stem
    assert len(scenario.about) > 100
    assert read(scenario.to_yaml()) == scenario == load(one.path) == load(scenario.to_dict())
