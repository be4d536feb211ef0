"""A legal run has no violations, and every mutation of one is found."""

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.packing.check import SHOWN, check, sentences
from gpuplan.packing.model import NEVER, Gpus, PackingScenario, Pieces, Preemption
from gpuplan.packing.raw import DONE, LOAD, RESTORE, RUN, WENT_ON, RawPack
from gpuplan.packing.run import pack
from gpuplan.packing.tasks import tasks
from packing.by_hand import (
    LINK,
    PIECES,
    WAITING,
    changed,
    out_of_memory,
    preempted,
    problem_of,
    raw_of,
)
from packing.reference import reference
from packing.strategies import PIECES as ANY_PIECES
from packing.strategies import scenarios


def put(row: int, value: int) -> Callable[[Any], Any]:
    """A change of one row of a column."""

    def changes(column: Any) -> Any:
        column[row] = value
        return column

    return changes


@pytest.mark.parametrize("story", [preempted, out_of_memory])
def test_the_runs_by_hand_are_legal(story: Any) -> None:
    problem, raw = story()
    assert check(problem, PIECES, raw) == []


# rows of `preempted`: 0 load, 1 run, 2 load (task 1), 3 save, 4 run (task 1), 5 restore, 6 run
@pytest.mark.parametrize(
    ("part", "columns", "said"),
    [
        ("stages", {"start_us": put(2, 9)}, "Task 1 (load on GPU 0, 9 to 28 us) starts before its arrival"),
        ("stages", {"end_us": put(1, 3)}, "Task 0 (run on GPU 0, 4 to 3 us) ends before it starts"),
        ("stages", {"end_us": put(6, 62)}, "ends after the run, which ends at 61 us"),
        ("stages", {"start_us": put(0, 5)}, "The stages are not in order of their start"),
        ("stages", {"kind": put(0, RESTORE)}, "is the first of its stages and no load"),
        ("stages", {"kind": put(5, LOAD)}, "does not follow from the stage of the task before it"),
        ("stages", {"start_us": put(4, 29)}, "does not begin where the stage before it ends"),
        ("stages", {"attempt": put(4, 1)}, "is counted as attempt 1, which it is not"),
        ("stages", {"outcome": put(4, 3)}, "is cut, and the run has no horizon"),
        ("stages", {"outcome": put(4, 2)}, "The tasks that failed for memory are not those of the events"),
        ("stages", {"outcome": put(3, 1)}, "cannot end like this"),
        ("stages", {"task": put(3, 1)}, "does not follow from the stage"),
        ("stages", {"task": put(3, 2)}, "A stage is of no task."),
        ("stages", {"gpu": put(3, 1)}, "A stage is on no GPU."),
        ("stages", {"end_us": put(3, 17)}, "Task 0 (save on GPU 0, 10 to 17 us) takes 7 us; it takes 6 us"),
        ("stages", {"frozen_from_us": put(5, 44)}, "takes 3 us; it takes 2 us"),
        ("stages", {"frozen_from_us": put(4, 30)}, "Task 1 (run on GPU 0, 28 to 36 us) is frozen from 30 us"),
        (
            "stages",
            {"end_us": put(4, 35)},
            "Task 1 (run on GPU 0, 28 to 35 us) ends with 7.000 us of 8 us done",
        ),
        (
            "stages",
            {"end_us": put(4, 37)},
            "(run on GPU 0, 28 to 37 us) goes on after all of its 8 us are done",
        ),
        ("copies", {"evicted_us": put(0, 15)}, "its memory comes back 5 us later, not at 21 us"),
        ("copies", {"released_us": put(0, 20)}, "its memory comes back 5 us later, not at 20 us"),
        ("copies", {"load_us": put(1, 20)}, "begins to load at 20 us, when nothing that it waited for ends"),
        (
            "copies",
            {"ready_us": put(1, 27)},
            "loads from 21 to 27 us, which is not what its share of the links",
        ),
        (
            "copies",
            {"ready_us": put(1, 29)},
            "loads from 21 to 29 us, which is not what its share of the links",
        ),
        ("copies", {"ready_us": put(0, 5)}, "is on no copy of its model that is ready when it goes on"),
        ("copies", {"model": put(1, 0)}, "is on no copy of its model"),
        ("copies", {"from_disk": put(2, 1)}, "is said to come from disk"),
        ("copies", {"from_disk": put(1, 0)}, "is said to come from host memory"),
        ("copies", {"for_task": put(1, 0)}, "is claimed for no task that is placed there then"),
        (
            "copies",
            {"for_task": put(1, -1)},
            "The copies that were there from the start are not the resident",
        ),
        ("copies", {"claimed_us": put(2, 29)}, "is claimed for no task that is placed there then"),
        ("copies", {"evicted_us": put(2, 50), "released_us": put(2, 55)}, "or it is evicted under it"),
    ],
)
def test_mutations_of_a_preempted_run(part: str, columns: dict[str, Any], said: str) -> None:
    problem, raw = preempted()
    found = check(problem, PIECES, changed(raw, part, **columns))
    assert any(said in line for line in found), found


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"state": [2, 0]}, "Task 0 is said to be failed, which does not follow from its stages"),
        ({"state": [0, 1]}, "Task 1 is said to be rejected"),
        ({"state": [0, 4]}, "Task 1 is said to be waiting"),
        ({"state": [5, 0]}, "Task 0 is on a GPU when the run ends, for ever"),
        ({"state": [0, 6]}, "Something became of a task that cannot be"),
        ({"left_us": [61, 37]}, "Task 1 is said to be done"),
        ({"left_us": [61, 37]}, "The parts of task 1 add up to 26 us; its latency is 27 us"),
        ({"failures": [0, 1]}, "Task 1 is said to have failed 1 times; 0 of its stages did"),
    ],
)
def test_mutations_of_fates(columns: dict[str, list[int]], said: str) -> None:
    problem, raw = preempted()
    arrays = {name: np.array(value) for name, value in columns.items()}
    found = check(problem, PIECES, replace(raw, **arrays))  # type: ignore[arg-type]
    assert any(said in line for line in found), found


# rows of `out_of_memory`: 2 load, 3 run, 4 load, 5 run, 6 load, 7 run are those of task 2
@pytest.mark.parametrize(
    ("part", "columns", "said"),
    [
        ("breaches", {"time_us": put(0, 11)}, "not those of the events: one event each"),
        ("breaches", {"task": put(0, 0)}, "not those of the events: one event each"),
        ("breaches", {"task": put(1, -1)}, "The loads that failed are not those of the events"),
        ("breaches", {"time_us": [22, 12]}, "not in their order"),
        (
            "stages",
            {"start_us": put(4, 21), "end_us": put(4, 21)},
            "comes back less than 10 us after its fail",
        ),
        ("stages", {"end_us": put(3, 13)}, "GPU 0 holds 62 bytes at 12 us; it has 60"),
        ("stages", {"attempt": put(7, 1)}, "is counted as attempt 1"),
    ],
)
def test_mutations_of_failures(part: str, columns: dict[str, Any], said: str) -> None:
    problem, raw = out_of_memory()
    found = check(problem, PIECES, changed(raw, part, **columns))
    assert any(said in line for line in found), found


def test_a_failure_without_need() -> None:
    """With 70 bytes there was enough at 12 (62) and at 22 (64)."""
    problem, raw = out_of_memory()
    larger = replace(problem.scenario, gpus=replace(problem.scenario.gpus, memory_bytes=70))
    found = check(replace(problem, scenario=larger), PIECES, raw)
    assert "Memory is said to run out on GPU 0 at 12 us; there was enough." in found
    assert "Memory is said to run out on GPU 0 at 22 us; there was enough." in found


def test_a_failure_of_the_wrong_task() -> None:
    """Task 0 began first; it fails at 12 instead of 1, which goes on."""
    problem, raw = out_of_memory()
    raw = raw_of(
        [
            (0, 0, LOAD, WENT_ON, 0, 4),
            (0, 0, RUN, 2, 4, 12),
            (2, 0, LOAD, WENT_ON, 6, 6),
            (2, 0, RUN, WENT_ON, 6, 26),
        ],
        [(0, 0, 0, 0, 4, NEVER, NEVER, 1, 0)],
        [WAITING, 1, DONE],
        [NEVER, 3, 26],
        26,
        [1, 0, 0],
        [(12, 0, 0, 0)],
    )
    assert check(problem, PIECES, raw) == [
        "Task 0 (run on GPU 0, 4 to 12 us) fails, and another task began after it."
    ]


def test_too_many_retries() -> None:
    problem, raw = out_of_memory()
    once = replace(problem.scenario, retry=replace(problem.scenario.retry, most=1))
    found = check(replace(problem, scenario=once), PIECES, raw)
    assert any("is attempt 2; a task comes back 1 times at most" in line for line in found)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (Preemption("never", 0, 6, 2), "Task 0 (run on GPU 0, 4 to 10 us) is interrupted; nobody may be"),
        # predicted 20, 6 done: 14 left
        (Preemption("threshold", 15, 6, 2), "with less than the threshold of 15 us left"),
        (Preemption("threshold", 14, 6, 2), ""),
    ],
)
def test_who_may_be_interrupted(rule: Preemption, said: str) -> None:
    problem, raw = preempted()
    found = check(replace(problem, scenario=replace(problem.scenario, preemption=rule)), PIECES, raw)
    assert len(found) == (1 if said else 0)
    assert all(said in line for line in found)


def test_who_is_interrupted_is_less_important() -> None:
    problem, raw = preempted()
    equal = replace(problem.tasks, priority=np.array([1, 1]))
    found = check(replace(problem, tasks=equal), PIECES, raw)
    assert any("no task of higher priority is placed there then" in line for line in found)


def test_pinned_copies_stay() -> None:
    problem, raw = preempted()
    models = tuple(replace(m, pinned=True) for m in problem.scenario.models)
    found = check(replace(problem, scenario=replace(problem.scenario, models=models)), PIECES, raw)
    assert sum("is pinned and evicted" in line for line in found) == 2


def test_reservations_fit() -> None:
    """At 10 small (40) goes for large: 40 + 70 - 40; with room for 69 bytes that is too much."""
    problem, raw = preempted()
    small = replace(problem.scenario, gpus=replace(problem.scenario.gpus, memory_bytes=69))
    found = check(replace(problem, scenario=small), PIECES, raw)
    assert any("claimed at 10 us makes reservations of 70 bytes; the GPU has 69" in line for line in found)
    # what goes at 10 does not go for a claim at 36
    assert not any("claimed at 36 us makes reservations" in line for line in found)


def two_at_once() -> tuple[Any, RawPack]:
    """Two tasks of small on one GPU at once: 0 from 4 to 14, 1 from 6 to 16."""
    problem = problem_of(tasks([0, 6], service_us=10))
    stages = [
        (0, 0, LOAD, WENT_ON, 0, 4),
        (0, 0, RUN, WENT_ON, 4, 14),
        (1, 0, LOAD, WENT_ON, 6, 6),
        (1, 0, RUN, WENT_ON, 6, 16),
    ]
    return problem, raw_of(stages, [(0, 0, 0, 0, 4, NEVER, NEVER, 1, 0)], [DONE, DONE], [14, 16], 16)


def test_slots() -> None:
    problem, raw = two_at_once()
    assert check(problem, PIECES, raw) == []
    one = replace(problem.scenario, gpus=replace(problem.scenario.gpus, max_tasks=1))
    assert check(replace(problem, scenario=one), PIECES, raw) == ["GPU 0 has 2 tasks at 6 us; it takes 1."]
    models = tuple(replace(m, max_tasks=1) for m in problem.scenario.models)
    assert check(replace(problem, scenario=replace(problem.scenario, models=models)), PIECES, raw) == [
        "The copy of 'small' on GPU 0 claimed at 0 us has 2 tasks at 6 us; it takes 1."
    ]


def test_two_copies_of_a_model() -> None:
    problem, raw = two_at_once()
    raw = raw_of(
        list(zip(*(getattr(raw.stages, name).tolist() for name in type(raw.stages).__slots__), strict=True)),
        [(0, 0, 0, 0, 4, NEVER, NEVER, 1, 0), (0, 0, 6, 6, 10, NEVER, NEVER, 0, 1)],
        [DONE, DONE],
        [14, 16],
        16,
    )
    found = check(problem, PIECES, raw)
    assert any("claimed at 6 us is a second one there" in line for line in found)


def line(starts: list[int], priority: list[int] | None = None) -> tuple[Any, RawPack]:
    """Tasks of 10 us that arrive at 0, 1, 2... and start at given times on a copy that is there."""
    n = len(starts)
    problem = problem_of(tasks(list(range(n)), priority=priority or 0, service_us=10))
    models = (replace(problem.scenario.models[0], resident=(0,)), problem.scenario.models[1])
    problem = replace(problem, scenario=replace(problem.scenario, models=models))
    rows = sorted((start, j) for j, start in enumerate(starts))
    stages = [
        (j, 0, kind, WENT_ON, start, start + length)
        for start, j in rows
        for kind, length in ((LOAD, 0), (RUN, 10))
    ]
    left = [start + 10 for start in starts]
    return problem, raw_of(stages, [(0, 0, 0, 0, 0, NEVER, NEVER, 0, -1)], [DONE] * n, left, max(left))


def test_strict_order() -> None:
    problem, raw = line([0, 12, 11])
    assert check(problem, PIECES, raw) == [
        "Task 2 (load on GPU 0, 11 to 11 us) is placed while task 1, which came before it, waits."
    ]
    assert check(problem, replace(PIECES, order="backfill"), raw) == []
    assert check(*_with(line([0, 11, 11]))) == []
    # more important work goes first, whenever it came
    assert check(*_with(line([0, 12, 11], [0, 0, 1]))) == []
    assert check(*_with(line([0, 11, 12], [0, 0, 1]))) == [
        "Task 1 (load on GPU 0, 11 to 11 us) is placed while a task of higher priority waits."
    ]


def _with(story: tuple[Any, RawPack]) -> tuple[Any, Pieces, RawPack]:
    return story[0], PIECES, story[1]


def test_who_came_back_is_not_passed() -> None:
    """Task 0 is saved at 16; a later task of its priority is placed at 30 while it waits until 36."""
    problem, raw = preempted()
    more = tasks([0, 10, 11], [0, 1, 1], priority=[0, 1, 0], service_us=[20, 8, 8], tokens_in=[10, 0, 0])
    problem = replace(problem_of(more), scenario=replace(problem.scenario, tasks=more))
    rows = list(
        zip(*(getattr(raw.stages, name).tolist() for name in type(raw.stages).__slots__), strict=True)
    )
    rows += [(2, 0, LOAD, WENT_ON, 30, 30, 30, 0), (2, 0, RUN, WENT_ON, 30, 38, 30, 0)]
    rows.sort(key=lambda row: row[4])
    copies = list(
        zip(*(getattr(raw.copies, name).tolist() for name in type(raw.copies).__slots__[:9]), strict=True)
    )
    found = check(problem, PIECES, raw_of(rows, copies, [DONE] * 3, [61, 36, 38], 61))
    assert any("Task 2 (load on GPU 0, 30 to 30 us) is placed while task 0" in line for line in found)


def test_blind_round_robin_keeps_to_its_gpus() -> None:
    problem, raw = line([0, 1])
    two = replace(problem.scenario, gpus=Gpus(2, 100, LINK))
    found = check(replace(problem, scenario=two), replace(PIECES, placement="round-robin"), raw)
    assert found == [
        "Task 1 (load on GPU 0, 1 to 1 us) belongs to GPU 1.",
        "Task 1 (run on GPU 0, 1 to 11 us) belongs to GPU 1.",
    ]


def test_deadlines() -> None:
    problem, raw = line([0, 12, 13])
    late = replace(problem, tasks=replace(problem.tasks, deadline_us=np.array([NEVER, 12, 14])))
    assert check(late, PIECES, raw) == [
        "Task 1 (load on GPU 0, 12 to 12 us) is placed at its deadline of 12 us or later."
    ]
    problem = problem_of(tasks([0, 5], service_us=9, deadline_us=[10, 7]), until_us=20)
    empty = raw_of([], [], [WAITING, 3], [NEVER, 8], 20)
    assert check(problem, PIECES, empty) == [
        "Task 1 timed out at 8 us; its deadline is 7 us.",
        "Task 0 still waits after its deadline at 10 us.",
    ]


def test_links_are_shared() -> None:
    """Two loads to one GPU from 0: 40 and 20 bytes at 5 per us each: 4 us for 20, then 20 left at 10: 6 us."""
    problem = problem_of(tasks([0, 0], [0, 1]), memory=200)
    models = (replace(problem.scenario.models[0], kv_bytes_per_token=0), replace(problem.scenario.models[1]))
    models = (models[0], replace(models[1], declared_bytes=20, actual_bytes=20))
    problem = problem_of(tasks([0, 0], [0, 1]), models=models)

    def raw(first: int, second: int) -> RawPack:
        stages = [(j, 0, LOAD, WENT_ON, 0, end) for j, end in enumerate((first, second))]
        stages += sorted(
            ((j, 0, RUN, WENT_ON, e, e) for j, e in enumerate((first, second))), key=lambda r: r[4]
        )
        copies = [(0, 0, 0, 0, first, NEVER, NEVER, 1, 0), (1, 0, 0, 0, second, NEVER, NEVER, 1, 1)]
        return raw_of(stages, copies, [DONE, DONE], [first, second], first)

    assert check(problem, PIECES, raw(6, 4)) == []
    assert any("share of the links" in line for line in check(problem, PIECES, raw(4, 2)))
    assert any("share of the links" in line for line in check(problem, PIECES, raw(7, 4)))


def test_columns_of_different_length() -> None:
    problem, raw = preempted()
    short = replace(raw, stages=replace(raw.stages, task=raw.stages.task[1:]))
    assert check(problem, PIECES, short) == ["The columns of the stages differ in length."]


def test_sentences_are_counted_not_all_shown() -> None:
    found = sentences(range(SHOWN + 3), str)
    assert found == ["0", "1", "2", "3", "4", "... and 3 more like the last one."]


def test_nothing_is_shared_with_the_kernels(checkout: Path) -> None:
    """Nor what the check builds on: what it imports, and what that imports."""
    seen, more = (
        set(),
        {"gpuplan.packing.check"},
    )
    while more:
        module = more.pop()
        seen.add(module)
        path = checkout / f"{module.replace('.', '/')}.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpuplan.packing"):
                found = {node.module or ""}
                if node.module == "gpuplan.packing":
                    found = {f"gpuplan.packing.{name.name}" for name in node.names}
                # what is only there for annotations is not imported
                more |= found - seen - {"gpuplan.packing.problem", "gpuplan.packing.tasks"}
    assert "gpuplan.packing.memory" in seen
    assert not {name for name in seen if "kernels" in name or "engine" in name or "policies.base" in name}


# ------------------------------------------------------------------------------- any run


@given(scenario=scenarios(), pieces=ANY_PIECES)
@settings(max_examples=60, deadline=None)
def test_runs_of_the_engine_are_legal(scenario: PackingScenario, pieces: Pieces) -> None:
    assert pack(replace(scenario, policy=pieces)).check() == []


@given(scenario=scenarios(widest=1), pieces=ANY_PIECES, seed=st.integers(0, 1 << 30))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_runs_of_the_slow_simulator_are_legal_and_mutations_of_them_are_not(
    scenario: PackingScenario, pieces: Pieces, seed: int
) -> None:
    """A number one off, in any column (but starts of queued work: nobody says that work starts as soon as it can)."""
    problem = pack(scenario).problem
    told = reference(scenario, pieces)
    raw = raw_of(told.stages, told.copies, told.state, told.left, told.end, told.failures, told.breaches)
    assert check(problem, pieces, raw) == []
    rng = np.random.default_rng(seed)
    skip = {
        ("stages", "start_us"),
        ("stages", "frozen_from_us"),
        ("copies", "from_disk"),
        ("copies", "for_task"),
        ("stages", "copy"),
        ("copies", "on"),
        ("copies", "starts"),
    }
    for part in ("stages", "copies", "breaches"):
        table = getattr(raw, part)
        for name in type(table).__slots__:
            if len(table) and (part, name) not in skip:
                row, off = int(rng.integers(len(table))), int(rng.choice([-1, 1]))
                other = changed(raw, part, **{name: put(row, int(getattr(table, name)[row]) + off)})
                assert check(problem, pieces, other) != [], (part, name, row, off)
