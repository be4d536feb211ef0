"""A saved fair-share scenario reads back equal; equal scenarios have one fingerprint; editors get a schema."""

import io
import json
import random
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from strategies import ABOUTS, HOSTILE_NAMES, LETTERS

from gpuplan import load, shipped
from gpuplan.fairshare.jobs import Jobs, jobs
from gpuplan.fairshare.model import (
    DAY,
    NEVER,
    Behaviour,
    BudgetChange,
    BudgetNode,
    Contract,
    Drain,
    FairshareScenario,
    Generate,
    Pool,
)
from gpuplan.fairshare.schema import from_mapping, json_schema
from gpuplan.fairshare.tree import tree_of
from gpuplan.inputs.errors import InputError
from gpuplan.inputs.yaml_file import parse_yaml

VALIDATOR = jsonschema.Draft202012Validator(json_schema())

SHIPPED = [one for one in shipped() if one.kind == "fairshare"]

names = st.one_of(
    st.sampled_from([name for name in HOSTILE_NAMES if "/" not in name]),
    st.text(LETTERS, min_size=1, max_size=12).filter(lambda text: text.strip() != "" and "/" not in text),
)
weights = st.one_of(st.integers(1, 100).map(float), st.floats(0.001, 1e9), st.just(1.0))
rates = st.one_of(st.just(0.0), st.floats(0, 1))
seconds = st.one_of(st.integers(0, 100).map(lambda hours: hours * 3600), st.integers(0, 10**7))


@st.composite
def budgets(draw: st.DrawFn, above: tuple[str, ...] = (), depth: int = 3) -> tuple[BudgetNode, ...]:
    """Siblings whose names differ from each other and from those above."""
    found = draw(st.lists(names.filter(lambda name: name not in above), min_size=1, max_size=3, unique=True))
    rows = []
    for name in found:
        deeper = depth > 1 and draw(st.integers(0, 3)) == 0
        below = draw(budgets((*above, name), depth - 1)) if deeper else ()
        rows.append(BudgetNode(name, draw(weights), below))
    if len(rows) > 1 and draw(st.booleans()):
        rows[0] = BudgetNode(rows[0].name, 0.0, rows[0].children)
    return tuple(rows)


@st.composite
def changes(draw: st.DrawFn, budget: tuple[BudgetNode, ...]) -> tuple[BudgetChange, ...]:
    """Changes of some budgets, by their instants."""
    paths = st.sampled_from(tree_of(budget).path[1:])
    found = []
    for at in sorted(draw(st.lists(seconds, max_size=3, unique=True))):
        named = draw(st.lists(paths, min_size=1, unique=True))
        found.append(BudgetChange(at, tuple((path, draw(weights)) for path in sorted(named))))
    return tuple(found)


@st.composite
def made_jobs(draw: st.DrawFn, teams: tuple[str, ...]) -> Jobs:
    """A few jobs of the teams of a tree."""
    ids = draw(st.lists(st.one_of(names, st.just("a/b")), max_size=5, unique=True))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=len(ids), max_size=len(ids)))

    return jobs(
        ids,
        column(seconds),
        column(st.integers(1, 10_000)),
        column(seconds),
        team=column(st.sampled_from(teams)),
        limit_s=column(st.one_of(st.just(NEVER), st.integers(1, 10**6))),
        minimum_s=column(seconds),
        resumable=column(st.booleans()),
        priority=column(st.integers(-5, 5)),
        gpu=column(st.sampled_from(["", "A100", "A100|T4", "no"])),
        one_node=column(st.booleans()),
    )


@st.composite
def scenarios(draw: st.DrawFn) -> FairshareScenario:
    """Valid scenarios over the whole schema."""
    budget = draw(budgets())
    types = draw(st.booleans())
    size = st.integers(1, 16)
    gpu = st.sampled_from(["H100", "T4", "no", "1e3"])
    pools = draw(
        st.lists(st.builds(Pool, size, size, gpu), min_size=1, max_size=3)
        if types
        else st.lists(st.builds(Pool, size, size), min_size=1, max_size=1)
    )
    nodes = sum(pool.nodes for pool in pools)
    window = draw(st.integers(1, 30 * DAY))
    drains = [
        Drain(node, draw(seconds), draw(seconds))
        for node in draw(st.lists(st.integers(0, nodes - 1), max_size=3, unique=True))
    ]
    generate = draw(st.one_of(st.none(), st.builds(Generate, st.integers(1, 60).map(float), rates, rates)))
    until = draw(st.one_of(st.none(), st.integers(1, 30 * DAY)))
    if generate and until is None:
        until = round(generate.days * DAY)
    return FairshareScenario(
        name=draw(names),
        pools=tuple(pools),
        budget=budget,
        window_s=window,
        contract=Contract(
            draw(st.integers(0, window)),
            draw(st.integers(1, 10**6)),
            draw(seconds),
            draw(st.one_of(st.none(), st.floats(0, 1))),
        ),
        generate=generate,
        jobs=None if generate else draw(made_jobs(tree_of(budget).teams)),
        behaviour=Behaviour(draw(rates), draw(rates), draw(rates), draw(st.integers(0, 64))),
        drains=tuple(drains),
        until_s=until,
        about=draw(st.sampled_from(["", *ABOUTS])),
        budget_changes=draw(changes(budget)),
    )


def read(text: str) -> FairshareScenario:
    document = parse_yaml(text)
    return from_mapping(document.data, "text", document.line, document.mistakes)


@given(scenarios())
def test_every_scenario_survives_its_file_its_mapping_and_no_change(scenario: FairshareScenario) -> None:
    text = scenario.to_yaml()
    again = read(text)
    assert again == scenario
    assert again.fingerprint == scenario.fingerprint
    assert again.to_yaml() == text
    assert from_mapping(scenario.to_dict()) == scenario
    assert scenario.replace({}) == scenario
    assert [
        error.message for error in VALIDATOR.iter_errors(YAML(typ="safe", pure=True).load(io.StringIO(text)))
    ] == []


def test_values_that_equal_their_default_are_left_out() -> None:
    text = "kind: fairshare\nname: least\ncluster: {gpus: 2}\nbudget:\n  - {name: a, weight: 1}\n"
    text += "workload: {generate: {days: 28, oversubscription: 1.1, debug_share: 0.2, seed: 1}}\n"
    assert read(text).to_yaml() == text


def test_jobs_with_habits_applied_cannot_be_written() -> None:
    made = jobs(["a"], [0], [1], [60], idle_s=[30])
    scenario = FairshareScenario("x", (Pool(1, 8),), (BudgetNode("everyone"),), jobs=made)
    with pytest.raises(InputError, match="habits applied"):
        scenario.to_yaml()


def test_the_fingerprint_does_not_know_where_jobs_came_from_nor_the_order_of_rows(tmp_path: Any) -> None:
    head = (
        "kind: fairshare\nname: x\ncluster: {gpus: 8}\nbudget: [{name: a, weight: 1}, {name: b, weight: 1}]\n"
    )
    rows = [("j1", "a", 0, 2, 60), ("j2", "b", 0, 1, 50), ("j10", "a", 5, 1, 40)]
    prints = set()
    for order in (rows, rows[::-1]):
        table = "job,team,submit_s,gpus,run_s\n" + "".join(",".join(map(str, row)) + "\n" for row in order)
        (tmp_path / "jobs.csv").write_text(table)
        (tmp_path / "x.yaml").write_text(head + "workload: {file: jobs.csv}\n")
        prints.add(load(tmp_path / "x.yaml").fingerprint)
        inline = [dict(zip(("job", "team", "submit_s", "gpus", "run_s"), row, strict=True)) for row in order]
        (tmp_path / "y.yaml").write_text(head + f"workload: {json.dumps({'jobs': inline})}\n")
        prints.add(load(tmp_path / "y.yaml").fingerprint)
    assert len(prints) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"window": "8d"},
        {"budget.0.weight": 3},
        {"budget.0.name": "other"},
        {"cluster.nodes": 17},
        {"cluster.gpus": 128},
        {"contract.restart_cost": "6min"},
        {"behaviour.squatting": 0.1},
        {"drains.0.repair": "5h"},
        {"workload.generate.seed": 2},
        {"until": "27d"},
        {"budget_changes": []},
        {"budget_changes.0.at": "15d"},
        {"budget_changes.0.weights.robotics": 71},
        {"budget_changes.0.weights": {"language/alignment": 70}},
    ],
)
def test_every_change_that_may_change_a_run_changes_the_fingerprint(change: dict[str, Any]) -> None:
    later = [{"at": "14d", "weights": {"robotics": 70}}]
    scenario = load("three-programmes").replace(
        {"drains": [{"node": 0, "from": "2d", "repair": "4h"}], "budget_changes": later}
    )
    assert scenario.replace(change).fingerprint != scenario.fingerprint
    assert scenario.replace({"budget.0.weight": "60.0"}).fingerprint == scenario.fingerprint


def test_a_scenario_without_changes_is_what_it_was_before_there_were_any() -> None:
    """Text and fingerprint of a version that did not know changes of budgets."""
    text = (
        "kind: fairshare\nname: x\ncluster: {gpus: 8}\nbudget:\n  - name: language\n    weight: 60\n    children:\n"
        "      - {name: pretraining, weight: 70}\n      - {name: v1.5, weight: 30}\n  - {name: robotics, weight: 40}\n"
        "workload: {jobs: []}\n"
    )
    scenario = read(text)
    assert scenario.to_yaml() == text
    assert scenario.fingerprint == "dbf8f2ec828530d0a8a587b3be7488b8f2af6f0920c59e9d71dd7083619be86e"
    assert read(text.replace("workload", "budget_changes: []\nworkload")).fingerprint == scenario.fingerprint
    assert scenario.replace({"budget_changes": None}).to_yaml() == text


def test_changes_are_written_by_their_instants_and_paths() -> None:
    text = (
        "kind: fairshare\nname: x\ncluster: {gpus: 8}\nbudget:\n  - {name: no, weight: 1}\n"
        '  - {name: "1.5", weight: 2}\n'
    )
    rows = [
        {"at": "14d", "weights": {"no": 0.5, "1.5": 3}},
        {"at": "36h", "weights": {"no": 4.0}},
    ]
    end = "workload: {jobs: []}\n"
    scenario = read(text + f"budget_changes: {json.dumps(rows)}\n" + end)
    said = '  - {at: 36h, weights: {"no": 4}}\n  - {at: 14d, weights: {"1.5": 3, "no": 0.5}}\n'
    assert scenario.to_yaml() == text.replace("name: no", 'name: "no"') + "budget_changes:\n" + said + end
    assert scenario.to_dict()["budget_changes"] == [
        {"at": "36h", "weights": {"no": 4}},
        {"at": "14d", "weights": {"1.5": 3, "no": 0.5}},
    ]
    moved = scenario.replace({"budget_changes.1.weights.1.5": 9, "budget_changes.0.at": "15d"})
    assert moved.budget_changes == (
        BudgetChange(14 * DAY, (("1.5", 9.0), ("no", 0.5))),
        BudgetChange(15 * DAY, (("no", 4.0),)),
    )
    assert scenario.replace({"name": "x"}) == scenario


def test_paths_of_any_length_are_written() -> None:
    deep: tuple[BudgetNode, ...] = ()
    for k in reversed(range(12)):
        deep = (BudgetNode(f"{k:02}" + "n" * 190, 1.0, deep),)
    path = tree_of(deep).path[-1]
    scenario = FairshareScenario(
        "x", (Pool(1, 8),), deep, jobs=jobs([], [], [], []), budget_changes=(BudgetChange(5, ((path, 2.0),)),)
    )
    assert len(path) > 2_000
    assert read(scenario.to_yaml()) == scenario


def test_every_column_of_the_jobs_counts_in_the_fingerprint() -> None:
    scenario = load("first-hours")
    made = scenario.jobs
    seen = {scenario.fingerprint}
    for key, value in {
        "job": "other", "team": "blue", "submit_s": 1, "gpus": 5, "run_s": 1, "limit_s": 99, "min_runtime_s": 1,
        "resumable": False, "priority": 9, "gpu": "T4", "one_node": True,
    }.items():  # fmt: skip
        seen.add(scenario.replace({f"workload.jobs.0.{key}": value}).fingerprint)
    assert len(seen) == 12
    assert made is not None
    ids = made.name.tolist()
    random.Random(1).shuffle(ids)
    assert made != made.changed(priority=made.priority + 1)


def test_the_json_schema_describes_every_field() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    parts = [schema, *schema["$defs"].values()]
    fields = [(name, field) for part in parts for name, field in part["properties"].items()]
    assert {"from", "min_runtime_s", "oversubscription", "hysteresis", "until", "at", "weights"} <= {
        name for name, _ in fields
    }
    assert [name for name, field in fields if not field.get("description")] == []
    assert all(part["additionalProperties"] is False for part in parts)


@pytest.mark.parametrize("one", SHIPPED, ids=lambda one: one.name)
def test_shipped_files_are_what_they_say(one: Any) -> None:
    assert [e.message for e in VALIDATOR.iter_errors(YAML(typ="safe", pure=True).load(one.path))] == []
    scenario = load(one.name)
    assert scenario.name == one.path.stem
    assert len(scenario.about) > 100
    assert scenario.notes == ()
    assert read(scenario.to_yaml()) == scenario == load(one.path) == load(scenario.to_dict())


def test_shapes_of_the_shipped_scenarios() -> None:
    found = {one.name: load(one.name) for one in SHIPPED}
    assert {"fifteen-teams", "first-hours", "three-programmes", "two-types"} <= set(found)
    fifteen = found["fifteen-teams"]
    tree = tree_of(fifteen.budget)
    assert (fifteen.gpus, len(tree.teams), len(fifteen.budget)) == (512, 15, 4)
    share = dict(zip(tree.path, tree.share.tolist(), strict=True))
    assert share["language/pretraining"] == pytest.approx(0.2)  # 40 % x 50 %
    assert share["embodied/interaction"] == pytest.approx(0.01)  # 10 % x 10 %
    assert sum(share[team] for team in tree.teams) == pytest.approx(1)
    assert (len(found["first-hours"].jobs), found["first-hours"].gpus) == (6, 8)
    assert {pool.gpu for pool in found["two-types"].pools} == {"A100", "T4"}
    assert found["two-types"].drains


@pytest.mark.parametrize(
    "change", [{"colour": 1}, {"kind": "other"}, {"window": 7}, {"budget": [{"weight": 1}]}, {"name": 3}]
)
def test_the_json_schema_refuses_too(change: dict[str, Any]) -> None:
    mapping = {"kind": "fairshare", "name": "x", "cluster": {"gpus": 2}, "workload": {"generate": {}}}
    VALIDATOR.validate(mapping)
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate({**mapping, **change})
