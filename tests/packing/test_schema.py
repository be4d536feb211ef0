"""Packing scenario files: every rule, every mistake at once, with its path, value and line; exact numbers."""

import copy
from collections.abc import Callable
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuplan.inputs.errors import InputError
from gpuplan.inputs.yaml_file import parse_yaml
from gpuplan.packing import file_models
from gpuplan.packing.model import (
    GIB,
    NEVER,
    SECOND,
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
from gpuplan.packing.schema import from_mapping

#: The example of the contract of files and commands.
EXAMPLE = """\
kind: packing
name: four-gpus
gpus: {count: 4, memory_gib: 79.3, host_gb_per_s: 24, disk_gb_per_s: 5}
admission: {margin: 0.20, context_gib: 0.5, count_context: true}
models:
  - {name: chat-8b, declared_gib: 16, actual_gib: 18, kv_kib_per_token: 128, popularity: 0.6}
tasks:
  generate: {rate_per_s: 1.2, count: 2000, service_s: {mean: 8, cv: 1}, tokens_in: 1000, tokens_out: 200, high_priority_share: 0.2, seed: 1}
preemption: {when: threshold, threshold_s: 3, save_s: 3, restore_s: 3}   # never | always | threshold
contention: {model: slowdown, beta: 0.15}                                # none | sharing | slowdown
"""  # noqa: E501

EXPECTED = PackingScenario(
    name="four-gpus",
    gpus=Gpus(4, 85_147_726_643, 24 * 10**9, 5 * 10**9),  # 79.3 x 2**30 = 85,147,726,643.2 bytes
    models=(ServedModel("chat-8b", 16 * GIB, 18 * GIB, None, 0, 128 * 1024, 0, 0.6),),
    admission=Admission(200_000, GIB // 2, True),
    generate=Generate(
        1.2, 2000, Draw(8.0, 1.0), tokens_in=Draw(1000.0, 0.0), tokens_out=Draw(200.0, 0.0),
        high_priority_share=0.2, seed=1,
    ),
    preemption=Preemption("threshold", 3 * SECOND, 3 * SECOND, 3 * SECOND),
    contention=Contention("slowdown", 0.15),
)  # fmt: skip


def small() -> dict[str, Any]:
    """Two models on two GPUs, three tasks, as a Python mapping."""
    return {
        "kind": "packing",
        "name": "small",
        "gpus": {"count": 2, "memory_gib": 80},
        "models": [
            {"name": "chat", "declared_gib": 16, "actual_gib": 18},
            {"name": "embedder", "declared_gib": 2},
        ],
        "tasks": {
            "rows": [
                {"arrival_s": 0, "model": "chat", "service_s": 8},
                {"arrival_s": 2.5, "model": "embedder", "service_s": 0, "tenant": "b", "priority": 1},
                {"arrival_s": 1, "model": "chat", "service_s": 3, "predicted_s": 4, "deadline_s": 60},
            ]
        },
    }


def read(text: str) -> PackingScenario:
    document = parse_yaml(text, "file.yaml")
    return from_mapping(document.data, document.source, document.line, document.mistakes)


def mistakes(source: str | dict[str, Any]) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(source) if isinstance(source, str) else from_mapping(source)
    return [str(mistake) for mistake in caught.value.mistakes]


def edited(edit: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    mapping = copy.deepcopy(small())
    edit(mapping)
    return mapping


def test_the_example_of_the_contract() -> None:
    assert read(EXAMPLE) == EXPECTED


def test_defaults_are_stated_and_everything_optional_may_be_left_out() -> None:
    generate = {"rate_per_s": 1, "count": 0, "service_s": 1}
    least = {
        "kind": "packing", "name": "x", "gpus": {"count": 1, "memory_gib": 80},
        "models": [{"name": "m", "declared_gib": 8}], "tasks": {"generate": generate},
    }  # fmt: skip
    plain = PackingScenario(
        "x",
        Gpus(1, 80 * GIB),
        (ServedModel("m", 8 * GIB, 8 * GIB),),
        generate=Generate(1.0, 0, Draw(1.0, 0.0)),
    )
    assert from_mapping(least) == plain
    spelled = {
        "about": "", "admission": None, "preemption": None, "contention": {}, "retry": None, "policy": None,
        "until_s": None,
    }  # fmt: skip
    assert from_mapping({**least, **spelled}) == plain
    assert plain.policy == Pieces("best-fit", "fifo", "lru", 16, None)
    assert plain.retry == Retry(3, SECOND)


def test_every_key_reaches_its_field() -> None:
    text = """\
kind: packing
name: all
about: Everything.
gpus: {count: 3, memory_gib: 44.99, host_gb_per_s: 12.5, disk_gb_per_s: 0.5, release_s: 0.75, max_tasks: 9, host_cache: no}
admission: {margin: 0.123456, context_gib: 0.4, count_context: false, on: free}
models:
  - {name: a, declared_gib: 10, actual_gib: 9, context_gib: 1, workspace_gib: 0.25, kv_kib_per_token: 0.5, asleep_gib: 2,
     popularity: 3, pinned: yes, resident: [2, 0], max_tasks: 4, gpus: 1}
tasks:
  generate: {rate_per_s: 2, count: 10, service_s: {mean: 250ms}, arrival_cv: 2, prediction_cv: 0.5, tokens_in: {mean: 7},
             tokens_out: {mean: 8, cv: 2}, high_priority_share: 1, tenants: 5, timeout_s: 2min, seed: 9}
preemption: {when: always, threshold_s: 1, save_s: 2, restore_s: 4}
contention: {model: sharing, beta: 2}
retry: {most: 0, after_s: 1.5}
policy: {placement: fgd, queue: by-model, eviction: keep-alive, depth: 3, keep_alive_s: 1h}
until_s: 1d
"""  # noqa: E501
    assert read(text) == PackingScenario(
        "all",
        Gpus(3, 48_307_644_662, 12_500_000_000, 500_000_000, 750_000, 9, False),  # 48,307,644,661.76 bytes
        (
            ServedModel(
                "a", 10 * GIB, 9 * GIB, GIB, GIB // 4, 512, 2 * GIB, 3.0, True, (0, 2), 4
            ),
        ),
        Admission(123_456, 429_496_730, False, "free"),  # 0.4 x 2**30 = 429,496,729.6
        Preemption("always", SECOND, 2 * SECOND, 4 * SECOND),
        Contention("sharing", 2.0),
        Retry(0, 1_500_000),
        Pieces("fgd", "by-model", "keep-alive", 3, 3600 * SECOND),
        Generate(
            2.0, 10, Draw(0.25, 1.0), 2.0, 0.5, Draw(7.0, 1.0), Draw(8.0, 2.0), 1.0, 5, 120 * SECOND, 9
        ),
        until_us=86_400 * SECOND,
        about="Everything.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("80", 80 * GIB), ("80GiB", 80 * GIB), ("80 GiB", 80 * GIB), ("81559MiB", 81_559 * 2**20), ("16GB", 16 * 10**9),
        ("0.5TiB", 2**39), ("123B", 123), (80, 80 * GIB), (79.3, 85_147_726_643), (np.float64(79.3), 85_147_726_643),
        (np.int32(80), 80 * GIB), ("1e1", 10 * GIB), (Fraction(1, 2), GIB // 2), (".5", GIB // 2),
    ],
)  # fmt: skip
def test_sizes_are_numbers_in_gib_or_text_with_a_unit(written: Any, size: int) -> None:
    made = from_mapping(edited(lambda m: m["gpus"].update(memory_gib=written)))
    assert made.gpus.memory_bytes == size


@pytest.mark.parametrize(
    ("written", "time"),
    [("1.5", 1_500_000), ("250ms", 250_000), ("90min", 5_400 * SECOND), ("1h", 3_600 * SECOND), ("0", 0),
     ("0.0000005", 1), ("7us", 7), (0.1 + 0.2, 300_000), ("0.1234565", 123_457)],
)  # fmt: skip
def test_times_are_seconds_or_text_with_a_unit_to_the_microsecond(written: Any, time: int) -> None:
    made = from_mapping(edited(lambda m: m["gpus"].update(release_s=written)))
    assert made.gpus.release_us == time


@pytest.mark.parametrize(
    ("written", "margin"),
    [
        ("0.2", 200_000),
        (0.2, 200_000),
        ("0", 0),
        ("10", 10_000_000),
        ("0.317", 317_000),
        (0.1 + 0.2, 300_000),
        (1, 10**6),
    ],
)
def test_margins_are_exact_millionths(written: Any, margin: int) -> None:
    made = from_mapping(edited(lambda m: m.update(admission={"margin": written})))
    assert made.admission.margin == margin
    assert made.needed(made.models[0]) == ceil(16 * GIB * (1 + Fraction(margin, 1_000_000))) + GIB // 2


@pytest.mark.parametrize(
    ("margin", "rule"),
    [
        (-0.01, "must be at least 0 (got -0.01)"),
        (10.000001, "must be at most 10 (got 10.000001)"),
        (-1, "must be at least 0 (got -1)"),
        (0.1234567, "must have at most 6 decimals (got 0.1234567)"),
        ("nan", "must be a number (got 'nan')"),
        (float("nan"), "must be a number (got nan)"),
        (float("inf"), "must be a number (got inf)"),
        ("1e400", "must be a number (got '1e400')"),
        ("20%", "must be a number (got '20%')"),
        (None, "must be a number (got nothing)"),
        (True, "must be a number (got True)"),
    ],
)
def test_margins_below_0_above_10_or_no_numbers(margin: Any, rule: str) -> None:
    assert mistakes(edited(lambda m: m.update(admission={"margin": margin}))) == [f"admission.margin: {rule}"]


SIZE = "must be a number of GiB, or a number with its unit (80GiB, 500MiB, 16GB)"
TIME = "must be a number of seconds, or a number with us, ms, s, min, h, d or w (250ms, 90s, 30min)"


@pytest.mark.parametrize(
    ("section", "key", "value", "rule"),
    [
        ("gpus", "memory_gib", float("nan"), f"{SIZE} (got nan)"),
        ("gpus", "memory_gib", "inf", f"{SIZE} (got 'inf')"),
        ("gpus", "memory_gib", "1e400", f"{SIZE} (got '1e400')"),
        ("gpus", "memory_gib", "80gb", f"{SIZE} (got '80gb')"),
        ("gpus", "memory_gib", -1, "must not be negative (got -1)"),
        ("gpus", "memory_gib", 5000, "must be at most 4,096 GiB (got 5000)"),
        ("gpus", "memory_gib", 0, "must be at least 1 B (got 0)"),
        ("gpus", "count", 0, "must be at least 1 (got 0)"),
        ("gpus", "host_gb_per_s", 0, "must be at least 0.001 GB/s (got 0)"),
        ("gpus", "release_s", "1:30",
         "must name its unit, as in 90min, 90s or 1.5h: with colons it may mean two things (got '1:30')"),
        ("gpus", "release_s", "soon", f"{TIME} (got 'soon')"),
        ("gpus", "max_tasks", 0, "must be at least 1 (got 0)"),
        ("retry", "most", -1, "must be at least 0 (got -1)"),
        ("contention", "model", "share", "must be one of none, sharing, slowdown; did you mean sharing? (got 'share')"),
        ("contention", "beta", "nan", "must be a number (got 'nan')"),
        ("policy", "placement", "bestfit", "did you mean best-fit? (got 'bestfit')"),
        ("policy", "queue", "lifo", "backfill, shortest, by-model; did you mean fifo? (got 'lifo')"),
        ("policy", "evict", "lru", "unknown key; did you mean eviction?"),
    ],
)  # fmt: skip
def test_a_broken_rule_is_a_sentence(section: str, key: str, value: Any, rule: str) -> None:
    (mistake,) = mistakes(edited(lambda m: m.setdefault(section, {}).update({key: value})))
    assert mistake.startswith(f"{section}.{key}: ")
    assert mistake.endswith(rule)


def test_every_mistake_is_told_at_once_with_its_line() -> None:
    text = """\
kind: packing
name: wrong
gpus: {count: four, memory_gib: 80}
admission: {margin: 11}
models:
  - {name: chat, declared_gib: 16, actualgib: 18}
  - {name: chat, declared_gib: 1, gpus: 0}
  - {name: rank, declared_gib: 1, resident: [1, 1]}
tasks:
  rows:
    - {arrival_s: -1, model: chat, service_s: 1}
    - {arrival_s: 5, model: chatt, service_s: 0, deadline_s: 4}
"""
    with pytest.raises(InputError) as caught:
        read(text)
    assert [(m.line, str(m)) for m in caught.value.mistakes] == [
        (3, "gpus.count: must be a whole number (got 'four')"),
        (4, "admission.margin: must be at most 10 (got 11)"),
        (6, "models.0.actualgib: unknown key; did you mean actual_gib?"),
        (7, "models.1.gpus: must be at least 1 (got 0)"),
        (11, "tasks.rows.0.arrival_s: must not be negative (got -1)"),
        (7, "models.1.name: must be unique, but row 0 has the same name (got 'chat')"),
        (12, "tasks.rows.1.deadline_s: must not be before the arrival, 5 s (got 4)"),
        (12, "tasks.rows.1.model: must be one of chat, rank; did you mean chat? (got 'chatt')"),
    ]


def test_residents_are_on_gpus_that_exist_and_fit_as_they_are() -> None:
    def put(first: list[int], second: list[int]) -> dict[str, Any]:
        return edited(
            lambda m: (m["models"][0].update(resident=first), m["models"][1].update(resident=second))
        )

    assert mistakes(put([2, 0, 0], [])) == [
        "models.0.resident.0: must be the number of a GPU, 0 to 1 (got 2)",
        "models.0.resident.2: must name each GPU once (got 0)",
    ]
    # 18 + 0.5 context and 2 + 0.5 make 21 GiB
    tight = put([0], [0])
    tight["gpus"]["memory_gib"] = "20.99"
    assert mistakes(tight) == [
        "models.1.resident.0: must leave the resident models room: they take 21 GiB on GPU 0, "
        "which has 20.99 GiB (got 0)"
    ]
    tight["gpus"]["memory_gib"] = 21
    assert from_mapping(tight).models[1].resident == (0,)


def test_a_model_is_spread_over_gpus_that_exist() -> None:
    assert from_mapping(edited(lambda m: m["models"][0].update(gpus=2))).models[0].gpus == 2
    assert mistakes(edited(lambda m: m["models"][0].update(gpus=3))) == [
        "models.0.gpus: must be at most the number of GPUs, 2 (got 3)"
    ]
    for wrong, rule in (
        (1.5, "must be a whole number"),
        (True, "must be a whole number"),
        (1025, "at most 1,024"),
    ):
        (said,) = mistakes(edited(lambda m, wrong=wrong: m["models"][0].update(gpus=wrong)))
        assert said.startswith("models.0.gpus: ")
        assert rule in said


def test_residents_over_several_gpus_are_whole_copies() -> None:
    def put(resident: list[int], **more: Any) -> dict[str, Any]:
        def change(m: dict[str, Any]) -> None:
            m["gpus"].update(count=5)
            m["models"][0].update(gpus=2, resident=resident, **more)

        return edited(change)

    assert from_mapping(put([4, 0, 3, 1])).models[0].resident == (0, 1, 3, 4)
    assert mistakes(put([2, 0, 1])) == [
        "models.0.resident: must name 2 GPUs for each copy: the model is spread over as many (got [2, 0, 1])"
    ]
    # a part of it: 150 / 2 + 0.5 of context leave room on 80 GiB, 160 / 2 + 0.5 do not
    assert from_mapping(put([0, 1], actual_gib=150)).models[0].actual_bytes == 150 * GIB
    rule = "must leave the resident models room: they take 80.5 GiB"
    assert mistakes(put([0, 1], actual_gib=160)) == [
        f"models.0.resident.0: {rule} on GPU 0, which has 80 GiB (got 0)",
        f"models.0.resident.1: {rule} on GPU 1, which has 80 GiB (got 1)",
    ]
    # 18 / 2 and 0.5 of context are 9.5 on each of two
    assert from_mapping(put([], asleep_gib=19)).models[0].asleep_bytes == 19 * GIB
    assert mistakes(put([], asleep_gib="19.1")) == [
        "models.0.asleep_gib: must not be more than it takes awake, 9.5 GiB on each of its 2 GPUs (got 19.1)"
    ]


def test_a_part_that_is_too_large_for_a_gpu_is_a_note() -> None:
    def change(size: float) -> Any:
        return lambda m: m["models"][0].update(gpus=2, declared_gib=size, actual_gib=size)

    # 1.2 x 140 / 2 + 0.5 = 84.5
    (note,) = from_mapping(edited(change(140))).notes
    assert note == (
        "chat needs 84.5 GiB on each of 2 GPUs and no GPU has more than 80 GiB: its tasks are rejected."
    )
    assert from_mapping(edited(change(132))).notes == ()  # 79.7


def test_what_is_left_asleep_is_not_more_than_what_was_taken() -> None:
    """18 + 0.5 context GiB."""
    assert (
        from_mapping(edited(lambda m: m["models"][0].update(asleep_gib=18.5))).models[0].asleep_bytes
        == 18.5 * GIB
    )
    assert mistakes(edited(lambda m: m["models"][0].update(asleep_gib=18.75))) == [
        "models.0.asleep_gib: must not be more than it takes awake, 18.5 GiB (got 18.75)"
    ]


def test_keep_alive_needs_its_time() -> None:
    policy: dict[str, Any] = {"eviction": "keep-alive"}
    assert mistakes(edited(lambda m: m.update(policy=policy))) == [
        "policy.keep_alive_s: must be given for keep-alive"
    ]
    assert (
        from_mapping(edited(lambda m: m.update(policy=policy | {"keep_alive_s": 0}))).policy.keep_alive_us
        == 0
    )


def test_tasks_come_from_one_place() -> None:
    assert mistakes(edited(lambda m: m.update(tasks={}))) == ["tasks: must say one of file, generate or rows"]
    both = {"rows": [], "generate": {"rate_per_s": 1, "count": 1, "service_s": 1}}
    assert mistakes(edited(lambda m: m.update(tasks=both))) == [
        "tasks.rows: must be left out where generate is given"
    ]
    none = {"rows": None, "file": None, "generate": None}
    assert mistakes(edited(lambda m: m.update(tasks=none))) == [
        "tasks: must say one of file, generate or rows"
    ]


def test_rows_may_stand_in_any_order_and_take_no_time() -> None:
    made = from_mapping(small()).tasks
    assert made is not None
    assert made.arrival_us.tolist() == [0, SECOND, 2_500_000]
    assert made.model.tolist() == [0, 0, 1]
    assert made.service_us.tolist() == [8 * SECOND, 3 * SECOND, 0]
    assert made.predicted_us.tolist() == [8 * SECOND, 4 * SECOND, 0]
    assert made.tenant.tolist() == ["everyone", "everyone", "b"]
    assert made.deadline_us.tolist() == [NEVER, 60 * SECOND, NEVER]
    turned = from_mapping(edited(lambda m: m["tasks"]["rows"].reverse()))
    assert turned == from_mapping(small())
    assert turned.fingerprint == from_mapping(small()).fingerprint


def test_generated_tasks_need_a_popular_model_and_arrive_within_ten_years() -> None:
    generate = {"rate_per_s": 1e-6, "count": 1_000, "service_s": 1}
    whole = edited(lambda m: m.update(tasks={"generate": generate}))
    for model in whole["models"]:
        model["popularity"] = 0
    assert mistakes(whole) == [
        "tasks.generate.rate_per_s: must be high enough for all tasks to arrive within ten years (got 1e-06)",
        "models: must have a popularity above 0 for one model at least: tasks are generated",
    ]
    generate["rate_per_s"] = 0
    assert mistakes(whole)[0] == "tasks.generate.rate_per_s: must be more than 0 (got 0)"


@pytest.mark.parametrize("text", ["", "\n# only a remark\n", "---\n"])
def test_empty_files(text: str) -> None:
    assert mistakes(text) == ["must not be empty"]


def test_no_models_and_no_tasks() -> None:
    assert mistakes(edited(lambda m: m.update(models=[]))) == [
        "models: must have at least one model",
    ]
    assert len(from_mapping(edited(lambda m: m["tasks"].update(rows=[]))).tasks or ()) == 0


def test_a_model_larger_than_every_gpu_is_a_note_and_its_tasks_are_rejected() -> None:
    # chat: 16 x 1.2 + 0.5 = 19.7 GiB are needed, 18.5 taken
    made = from_mapping(edited(lambda m: m["gpus"].update(memory_gib="19.6")))
    assert made.notes == ("chat needs 19.7 GiB and no GPU has more than 19.6 GiB: its tasks are rejected.",)
    from gpuplan.packing.problem import compile_problem

    assert sorted(compile_problem(made).rejected) == [0, 1]
    actual = edited(lambda m: (m["gpus"].update(memory_gib=25), m["models"][0].update(actual_gib=30)))
    assert from_mapping(actual).notes == (
        "chat takes 30.5 GiB and no GPU has more than 25 GiB: its tasks are rejected.",
    )
    assert from_mapping(edited(lambda m: m["gpus"].update(memory_gib="19.7"))).notes == ()


def test_declared_above_and_below_actual_are_both_fine() -> None:
    made = from_mapping(edited(lambda m: m["models"][0].update(actual_gib=12)))
    assert (made.needed(made.models[0]), made.taken(made.models[0])) == (
        -(-16 * GIB * 6 // 5) + GIB // 2,
        12 * GIB + GIB // 2,
    )


def test_a_rate_that_can_never_drain_is_a_note_with_the_load() -> None:
    """One GPU that tasks share serves one second a second; 0.5 / s x 3 s is a load of 1.5."""
    generate = {"rate_per_s": 0.5, "count": 100, "service_s": 3}
    whole = edited(
        lambda m: m.update(
            tasks={"generate": generate}, contention={"model": "sharing"}, gpus={"count": 1, "memory_gib": 80}
        )
    )
    assert from_mapping(whole).notes == (
        "Load 1.50: tasks come at 1.50 times the rate that the GPUs can serve at most; "
        "the queue grows without bound.",
    )
    generate["timeout_s"] = 5
    assert from_mapping(whole).notes[0].endswith("the queue is kept short by its timeout alone.")
    generate["rate_per_s"] = 0.33
    assert from_mapping(whole).notes == ()


def test_names_from_files_are_hostile() -> None:
    made = from_mapping(
        edited(
            lambda m: (m["models"][1].update(name="<b>=1+1"), m["tasks"]["rows"][1].update(model="<b>=1+1"))
        )
    )
    assert made.models[1].name == "<b>=1+1"
    (mistake,) = mistakes(edited(lambda m: m["models"][1].update(name="a\x1b[2J", resident=[])))[:1]
    assert "control character U+001B" in mistake
    assert mistake.isprintable()


def test_a_table_is_read_beside_its_file_and_its_mistakes_are_those_of_the_file(tmp_path: Path) -> None:
    from gpuplan import load

    whole = small()
    whole["tasks"] = {"file": "tasks.csv"}
    made = load(whole_to(tmp_path, whole, "arrival_s,model,service_s\n2,chat,1\n1,chat,\n0,embedder,2\n"))
    assert made.tasks is not None
    assert made.tasks.model.tolist() == [1, 0]
    assert made.notes == (
        "tasks.csv: 3 tasks read, 2 used; 1 left out: service_s is unknown (an empty cell); "
        "1 arrive before the row above: sorted by arrival; 2 without a predicted time: the service time.",
    )
    assert load(made.to_dict() | {"tasks": {"rows": []}}).tasks is not None
    whole["models"][0]["declared_gib"] = "nan"
    path = whole_to(tmp_path, whole, "arrival_s,model,service_s\n2,chatt,1\n-1,chat,0\n")
    with pytest.raises(InputError) as caught:
        load(path)
    assert [str(mistake) for mistake in caught.value.mistakes] == [
        f"models.0.declared_gib: {SIZE} (got 'nan')",
        "tasks.file: tasks.csv, line 2, model: must be one of chat, embedder; did you mean chat? (got 'chatt')",
        "tasks.file: tasks.csv, line 3, arrival_s: must not be negative (got -1)",
    ]
    with pytest.raises(InputError, match=r"tasks.file: absent.csv: there is no such file"):
        from_mapping(small() | {"tasks": {"file": "absent.csv"}})


def whole_to(folder: Path, whole: dict[str, Any], table: str) -> Path:
    import json

    (folder / "tasks.csv").write_text(table, encoding="utf-8")
    path = folder / "x.yaml"
    path.write_text(json.dumps(whole), encoding="utf-8")  # JSON is YAML
    return path


def test_names_of_pieces_are_those_of_the_policies() -> None:
    from gpuplan.packing.policies import EVICTIONS, ORDERS, PLACEMENTS

    assert tuple(piece.name for piece in PLACEMENTS) == file_models.PLACEMENTS
    assert tuple(piece.name for piece in ORDERS) == file_models.ORDERS
    assert tuple(piece.name for piece in EVICTIONS) == file_models.EVICTIONS


def test_kinds_are_told_apart() -> None:
    import gpuplan as gp

    assert gp.load(small()).kind == "packing"
    with pytest.raises(InputError, match="kind: must be given"):
        gp.load({key: value for key, value in small().items() if key != "kind"})
    with pytest.raises(InputError, match="must be allocation here; packing scenarios are run by pack"):
        gp.plan(small())
    with pytest.raises(InputError, match="must be fairshare here; packing scenarios are run by pack"):
        gp.simulate(small())
    with pytest.raises(InputError, match="must be packing here; allocation scenarios are planned by plan"):
        gp.pack("mixed-day")
