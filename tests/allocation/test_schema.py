"""Scenario files: every rule, every mistake at once, with its path, value and line."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gpuplan import load
from gpuplan.allocation.model import AllocationScenario, BatchJob, Horizon, Objective, RealtimeApp, Rules
from gpuplan.allocation.schema import from_mapping
from gpuplan.cluster import Cluster
from gpuplan.inputs.errors import InputError
from gpuplan.inputs.yaml_file import parse_yaml

Edit = Callable[[dict[str, Any]], Any]

TINY = """\
kind: allocation
name: tiny
cluster: {gpus: 8, gpus_per_node: 4, unavailable: [7]}
horizon: {steps: 4}
realtime:
  - {name: chat, priority: 5, demand: [1, 2, 3, 1], max_swap: 1, min_gpus: 1, max_gpus: 3, held: [5, 6]}
  - {name: code, priority: 4, demand: [0, 1, 1, 0]}
batch:
  - {name: tune, kind: training, gpus: 2, hours: 3, priority: 3}
  - {name: run, kind: training, gpus: 2, hours: 5, priority: 2, running_on: 0}
"""


def tiny() -> dict[str, Any]:
    """The tiny scenario as a Python mapping."""
    job = {"name": "tune", "kind": "training", "gpus": 2, "hours": 3, "priority": 3}
    run = {"name": "run", "kind": "training", "gpus": 2, "hours": 5, "priority": 2, "running_on": 0}
    chat = {
        "name": "chat",
        "priority": 5,
        "demand": [1, 2, 3, 1],
        "max_swap": 1,
        "min_gpus": 1,
        "max_gpus": 3,
    }
    return {
        "kind": "allocation",
        "name": "tiny",
        "cluster": {"gpus": 8, "gpus_per_node": 4, "unavailable": [7]},
        "horizon": {"steps": 4},
        "realtime": [{**chat, "held": [5, 6]}, {"name": "code", "priority": 4, "demand": [0, 1, 1, 0]}],
        "batch": [job, run],
    }


def read(text: str) -> AllocationScenario:
    document = parse_yaml(text, "tiny.yaml")
    return from_mapping(document.data, document.source, document.line, document.mistakes)


def mistakes(source: str | dict[str, Any]) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(source) if isinstance(source, str) else from_mapping(source)
    return [str(mistake) for mistake in caught.value.mistakes]


def edited(edit: Edit) -> dict[str, Any]:
    mapping = copy.deepcopy(tiny())
    edit(mapping)
    return mapping


EXPECTED = AllocationScenario(
    name="tiny",
    cluster=Cluster(8, 4, (7,)),
    horizon=Horizon(4),
    realtime=(
        RealtimeApp("chat", 5.0, (1, 2, 3, 1), max_swap=1, min_gpus=1, max_gpus=3, held=(5, 6)),
        RealtimeApp("code", 4.0, (0, 1, 1, 0)),
    ),
    batch=(
        BatchJob("tune", "training", 2, 3.0, 3.0),
        BatchJob("run", "training", 2, 5.0, 2.0, running_on=0),
    ),
)


def test_a_file_and_a_mapping_mean_the_same() -> None:
    assert read(TINY) == from_mapping(tiny()) == EXPECTED


def test_numbers_of_numpy_and_rows_of_pandas_are_welcome() -> None:
    mapping = tiny()
    mapping["cluster"]["gpus"] = np.int64(8)
    mapping["cluster"]["unavailable"] = np.array([7])
    mapping["realtime"][0]["demand"] = np.array([1, 2, 3, 1], dtype=np.int16)
    mapping["realtime"][1]["demand"] = pd.Series([0.0, 1.0, 1.0, 0.0])
    mapping["batch"][0]["priority"] = np.float32(3)
    frame = pd.DataFrame(mapping["batch"][:1])
    mapping["batch"] = [*frame.to_dict("records"), mapping["batch"][1]]
    assert from_mapping(mapping) == EXPECTED


def test_defaults_are_those_of_the_reference() -> None:
    scenario = from_mapping({"kind": "allocation", "name": "least", "cluster": {"gpus": 1}})
    assert scenario == AllocationScenario(name="least", cluster=Cluster(1))
    assert scenario.horizon == Horizon(24, 3600, None)
    assert scenario.objective == Objective(8.0, 24.0)
    assert scenario.rules == Rules(True, False)


def test_empty_sections_have_their_defaults_and_null_means_none_only_where_it_may() -> None:
    text = "kind: allocation\nname: null\ncluster: {gpus: 2, gpus_per_node: ~}\nhorizon:\nrules:\nbatch:\nrealtime:\n"
    scenario = read(text + "objective: {half_life_hours: null}\n")
    assert scenario.name == "null"
    assert scenario.objective.half_life_hours is None
    assert scenario.cluster.gpus_per_node is None
    assert mistakes(text + "objective: {shortfall_penalty: null}\n") == [
        "objective.shortfall_penalty: must be a number (got nothing)"
    ]


def test_times_with_units() -> None:
    text = TINY.replace("{steps: 4}", "{steps: 4, step_hours: 90min}").replace("hours: 3,", "hours: 1.5h,")
    scenario = read(text.replace("hours: 5,", "hours: 7d,"))
    assert scenario.horizon.step_s == 5400
    assert [job.hours for job in scenario.batch] == [1.5, 168.0]


def test_all_mistakes_at_once_as_the_design_shows_them() -> None:
    text = TINY.replace("gpus: 8,", "gpus: -1,").replace("max_swap: 1", "maxswap: 1")
    text = text.replace("name: run, kind: training, gpus: 2", "name: run, kind: training, gpus: 3")
    with pytest.raises(InputError) as caught:
        read(text)
    assert str(caught.value).splitlines() == [
        "tiny.yaml: 3 mistakes",
        "  cluster.gpus: must be at least 1 (got -1)",
        "  realtime.0.maxswap: unknown key; did you mean max_swap?",
        "  batch.1.gpus: must be a power of two (got 3)",
    ]
    assert [mistake.line for mistake in caught.value.mistakes] == [3, 6, 10]
    assert [mistake.value for mistake in caught.value.mistakes[::2]] == [-1, 3]


def test_rules_between_fields_are_told_beside_wrong_fields() -> None:
    def edit(mapping: dict[str, Any]) -> None:
        mapping["batch"][0].update(name="chat", priority=0)
        mapping["batch"][1].update(running_on=1, colour="red", earliest_hour=2)
        mapping["realtime"][0]["held"] = [2, 9]
        mapping["realtime"][1]["demand"] = [1]

    assert mistakes(edited(edit)) == [
        "batch.0.priority: must be more than 0 (got 0)",
        "batch.1.colour: unknown key",
        "batch.0.name: must be unique, but realtime.0 has the same name (got 'chat')",
        "realtime.1.demand: must have one number per step, 4, but has 1",
        "batch.1.earliest_hour: must be left out or 0 for a job that runs already (running_on) (got 2.0)",
        "realtime.0.held.0: must be a GPU of its own, but GPU 2 runs batch.1 (got 2)",
        "realtime.0.held.1: must be the number of a GPU, 0 to 7 (got 9)",
    ]


def test_the_same_key_twice_stands_among_the_other_mistakes() -> None:
    text = TINY.replace("name: tiny", "name: tiny\nname: other").replace(
        "gpus: 2, hours: 3", "gpus: 3, hours: 3"
    )
    assert mistakes(text) == [
        "name: must be given once, but stands on lines 2 and 3",
        "batch.0.gpus: must be a power of two (got 3)",
    ]


@pytest.mark.parametrize(
    ("edit", "mistake"),
    [
        # cluster
        (lambda m: m["cluster"].update(gpus=0), "cluster.gpus: must be at least 1 (got 0)"),
        (lambda m: m["cluster"].update(gpus=16_385), "cluster.gpus: must be at most 16,384 (got 16385)"),
        (lambda m: m["cluster"].update(gpus=True), "cluster.gpus: must be a whole number (got True)"),
        (lambda m: m["cluster"].pop("gpus"), "cluster.gpus: must be given"),
        (lambda m: m["cluster"].update(gpu=1), "cluster.gpu: unknown key; did you mean gpus?"),
        (lambda m: m.update(cluster=8), "cluster: must be a mapping (keys with values) (got 8)"),
        (lambda m: m.update(cluster=None), "cluster: must be a mapping (keys with values) (got nothing)"),
        (
            lambda m: m["cluster"].update(unavailable=[8]),
            "cluster.unavailable: must be the number of a GPU, 0 to 7 (got 8)",
        ),
        (
            lambda m: m["cluster"].update(unavailable=[7, 7]),
            "cluster.unavailable: must list every GPU once, but lists 7 twice",
        ),
        (lambda m: m["cluster"].update(unavailable="7"), "cluster.unavailable: must be a list (got '7')"),
        (
            lambda m: m["cluster"].update(price_per_gpu_hour=-1),
            "cluster.price_per_gpu_hour: must be at least 0 (got -1)",
        ),
        # horizon, objective, rules
        (lambda m: m["horizon"].update(step_hours="1:30"), "horizon.step_hours: must name its unit"),
        (
            lambda m: m["horizon"].update(step_hours=1.0001),
            "horizon.step_hours: must be a whole number of seconds",
        ),
        (lambda m: m["horizon"].update(start="soon"), "horizon.start: must be a date"),
        (lambda m: m.update(horizon={"steps": 1009}), "horizon.steps: must be at most 1,008 (got 1009)"),
        (
            lambda m: m.update(objective={"shortfall_penalty": float("nan")}),
            "objective.shortfall_penalty: must be a number (got nan)",
        ),
        (
            lambda m: m.update(objective={"half_life_hours": 0}),
            "objective.half_life_hours: must be at least 1 s (got 0)",
        ),
        (lambda m: m.update(rules={"must_finish": 1}), "rules.must_finish: must be true or false (got 1)"),
        # real-time apps
        (lambda m: m["realtime"][0].update(demand="3"), "realtime.0.demand: must be a list (got '3')"),
        (
            lambda m: m["realtime"][0].update(demand={"base": 1, "peak_hour": 3, "width_hours": 4}),
            "realtime.0.demand.peak: must be given",
        ),
        (
            lambda m: m["realtime"][0].update(
                demand={"base": 1, "peak": 2, "peak_hour": 3, "width_hours": 4, "hight": 5}
            ),
            "realtime.0.demand.hight: unknown key",
        ),
        (
            lambda m: m["realtime"][0].update(demand=[1, 2, 2.5, 1]),
            "realtime.0.demand.2: must be a whole number (got 2.5)",
        ),
        (
            lambda m: m["realtime"][0].update(demand=[1, 2]),
            "realtime.0.demand: must have one number per step, 4, but has 2",
        ),
        (
            lambda m: m["realtime"][1].update(min_gpus=8),
            "realtime.1.min_gpus: must not exceed the 7 available GPUs (got 8)",
        ),
        (
            lambda m: m["realtime"][1].update(min_gpus=2, max_gpus=1),
            "realtime.1.min_gpus: must not exceed max_gpus, 1 (got 2)",
        ),
        (
            lambda m: m["realtime"][0].update(held=[6, 6]),
            "realtime.0.held.1: must be a GPU of its own, but GPU 6 is held",
        ),
        (
            lambda m: m["realtime"][0].update(held=[7]),
            "realtime.0.held.0: must be a GPU of its own, but GPU 7 is unavail",
        ),
        (
            lambda m: m["realtime"][1].update(held=[5]),
            "realtime.1.held.0: must be a GPU of its own, but GPU 5 is held by r",
        ),
        (
            lambda m: m["realtime"][0].update(held=[2, 3, 4, 5, 6]),
            "realtime.0.held: must list at most 4 GPUs, max_gpus 3 plus max_swap 1, but lists 5",
        ),
        (
            lambda m: m["realtime"][0].update(held=[], min_gpus=2),
            "realtime.0.min_gpus: must be within reach at step 0: 0 held GPUs plus max_swap 1 make 1 (got 2)",
        ),
        (
            lambda m: m["realtime"][1].update(held=[], min_gpus=2, swap_budget=1),
            "realtime.1.min_gpus: must be within reach at step 0: 0 held GPUs plus swap_budget 1 make 1 (got 2)",
        ),
        (
            # 7 available, 2 run a job; chat keeps 1 (min_gpus), code wants 5: 6 of 5
            lambda m: m["realtime"][1].update(min_gpus=5),
            "realtime: must be able to hold at least 6 GPUs at step 0 together",
        ),
        (
            # chat holds 4 and may release 1, so 3 stay at step 0; with code's 3 that makes 6 of 5
            lambda m: (m["realtime"][0].update(held=[3, 4, 5, 6]), m["realtime"][1].update(min_gpus=3)),
            "realtime: must be able to hold at least 6 GPUs at step 0 together",
        ),
        # batch jobs
        (lambda m: m["batch"][0].update(gpus=0), "batch.0.gpus: must be at least 1 (got 0)"),
        (lambda m: m["batch"][0].update(gpus=-4), "batch.0.gpus: must be at least 1 (got -4)"),
        (lambda m: m["batch"][0].update(gpus=2.5), "batch.0.gpus: must be a whole number (got 2.5)"),
        (lambda m: m["batch"][0].update(gpus=6), "batch.0.gpus: must be a power of two (got 6)"),
        (lambda m: m["batch"][0].update(hours=0), "batch.0.hours: must be at least 1 s (got 0)"),
        (lambda m: m["batch"][0].update(hours=float("inf")), "batch.0.hours: must be a number of hours"),
        (
            lambda m: m["batch"][0].update(priority=1.0005),
            "batch.0.priority: must have at most 3 decimals (got 1.0005)",
        ),
        (
            lambda m: m["batch"][0].update(priority=1_000_001),
            "batch.0.priority: must be at most 1,000,000 (got 1000001)",
        ),
        (
            lambda m: m["batch"][0].update(kind="trainning"),
            "batch.0.kind: must be one of training, batch-inference, quant",
        ),
        (
            lambda m: m["batch"][0].update(name="chat"),
            "batch.0.name: must be unique, but realtime.0 has the same name",
        ),
        (
            lambda m: m["batch"][0].update(name="run"),
            "batch.1.name: must be unique, but batch.0 has the same name",
        ),
        (
            lambda m: m["batch"][0].update(name="x" * 10_001),
            "batch.0.name: must have at most 10,000 characters, but has 10,001",
        ),
        (lambda m: m["batch"][0].update(name=7), "batch.0.name: must be text (got 7)"),
        (lambda m: m["batch"].append("x"), "batch.2: must be a mapping (keys with values) (got 'x')"),
        (lambda m: m["batch"][0].update({3: 4}), "batch.0: must have words as keys, not a int"),
        (
            lambda m: m["batch"][1].update(earliest_hour=1),
            "batch.1.earliest_hour: must be left out or 0 for a job that runs already",
        ),
        (
            lambda m: m["batch"][1].update(running_on=7),
            "batch.1.running_on: must leave room for the block: GPUs 7 to 8, but the last GPU is 7 (got 7)",
        ),
        (
            lambda m: (m["batch"][1].update(running_on=6), m["realtime"][0].update(held=[5])),
            "batch.1.running_on: must be a free block, but GPU 7 is unavailable (got 6)",
        ),
        (
            lambda m: m["batch"][0].update(running_on=1),
            "batch.1.running_on: must be a free block, but GPU 1 runs batch.0 (got 0)",
        ),
        (
            lambda m: m["batch"][1].update(running_on=4),
            "realtime.0.held.0: must be a GPU of its own, but GPU 5 runs batch.1 (got 5)",
        ),
        # the whole
        (lambda m: m.pop("name"), "name: must be given"),
        (lambda m: m.pop("kind"), "kind: must be given"),
        (
            lambda m: m.update(kind="alocation"),
            "kind: must be allocation; did you mean allocation? (got 'alocation')",
        ),
        (lambda m: m.update(bach=[]), "bach: unknown key; did you mean batch?"),
        (lambda m: m.update(batch={}), "batch: must be a list (got a mapping of 0 keys)"),
        (lambda m: m.update({"x" * 100: 1}), "x" * 60 + "...: unknown key"),
        (lambda m: m.update({"\ud800": 1}), "must have words as keys, not broken text"),
    ],
)
def test_one_mistake(edit: Edit, mistake: str) -> None:
    found = mistakes(edited(edit))
    assert len(found) == 1
    assert found[0].startswith(mistake)


def test_all_gpus_unavailable_is_refused() -> None:
    mapping = {"kind": "allocation", "name": "x", "cluster": {"gpus": 2, "unavailable": [0, 1]}}
    assert mistakes(mapping) == ["cluster.unavailable: must leave at least one GPU available"]


def test_a_file_of_another_kind_is_not_measured_by_these_rules() -> None:
    assert mistakes({"kind": "fairshare", "window": "7d", "budget": []}) == [
        "kind: must be allocation (got 'fairshare')"
    ]


@pytest.mark.parametrize("mapping", ["text", ["a"], "- a\n- b", None, 7])
def test_what_is_no_mapping_is_refused(mapping: Any) -> None:
    with pytest.raises(InputError, match="must be a mapping that starts with kind: allocation"):
        from_mapping(mapping)


def test_what_can_never_be_placed_is_accepted_here() -> None:
    """A block larger than the cluster is set aside by the plan with its reason, not refused."""
    assert from_mapping(edited(lambda m: m["batch"][0].update(gpus=16, hours=1000))).batch[0].gpus == 16


def test_many_mistakes_take_no_time_to_speak_of() -> None:
    row = {"name": "x", "kind": "none", "gpus": 3, "hours": -1, "priority": 0, "colour": 1}
    with pytest.raises(InputError) as caught:
        from_mapping({**tiny(), "batch": [row] * 2_000})
    assert len(caught.value.mistakes) == 5 * 2_000 + 1_999  # every row but the first repeats the name
    assert len(str(caught.value)) < 10_000


HOSTILE = [
    "<script>alert(1)</script>",
    "=1+1",
    "../../etc/passwd",
    "😀",
    "\u202eevil",
    "x" * 10_000,
    "no",
    "0123",
    "1:30",
    "{a: b}",
    "a: b # c",
]


def test_hostile_names_stay_text_through_a_file(tmp_path: Path) -> None:
    rows = [{"name": name, "kind": "training", "gpus": 1, "hours": 1, "priority": 1} for name in HOSTILE]
    scenario = from_mapping({**tiny(), "batch": rows})
    scenario.save(tmp_path / "hostile.yaml")
    assert [job.name for job in load(tmp_path / "hostile.yaml").batch] == HOSTILE


def test_plain_names_are_what_they_look_like() -> None:
    names = ["no", "on", "0123", "3.10", "1:30", "null", "1e3", "2026-03-02", "~"]
    rows = "".join(
        f"  - {{name: {name}, kind: training, gpus: 1, hours: 1, priority: 1}}\n" for name in names
    )
    scenario = read("kind: allocation\nname: no\ncluster: {gpus: 1}\nbatch:\n" + rows)
    assert scenario.name == "no"
    assert [job.name for job in scenario.batch] == names


def test_mistakes_can_be_told_as_json() -> None:
    with pytest.raises(InputError) as caught:
        read(TINY.replace("gpus: 8,", "gpus: eight,"))
    assert json.dumps([mistake.value for mistake in caught.value.mistakes]) == '["eight"]'
