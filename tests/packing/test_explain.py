"""Sentences about tasks, against the stories by hand; and that there is one for every task at every time."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

import gpuplan as gp
from gpuplan.inputs.errors import InputError
from gpuplan.packing.explain import span
from gpuplan.packing.model import GIB, NEVER, Pieces
from gpuplan.packing.raw import DONE, LOAD, OUT_OF_MEMORY, RUN, WENT_ON, RawPack
from gpuplan.packing.run import pack
from gpuplan.packing.tasks import tasks
from gpuplan.packing.words import amount
from packing.by_hand import FAILED, TIMED_OUT, out_of_memory, preempted, problem_of, raw_of, run_of
from packing.strategies import PIECES, scenarios


@pytest.mark.parametrize(
    ("story", "task", "t", "said"),
    [
        (preempted, 1, 0, "Task 1 (large) has not arrived yet; it comes in 10 us."),
        (preempted, 0, 1, "Task 0 (small) is on GPU 0 and its model loads from disk (40 bytes), 3 us more."),
        # 5 of 20 us are done
        (preempted, 0, 9, "Task 0 (small) runs on GPU 0 for 5 us so far; 25% of its service is done."),
        (preempted, 0, 12, "Task 0 (small) is being saved on GPU 0 for task 1 (priority 1), 4 us more."),
        (
            preempted,
            1,
            12,
            "Task 1 (large) is on GPU 0 and waits for task 0 to be saved (4 us more) and 45 bytes of small to be "
            "freed.",
        ),
        (preempted, 1, 18, "Task 1 (large) is on GPU 0 and waits for 45 bytes of small to be freed."),
        (
            preempted,
            0,
            18,
            # small is reserved until 21, and large: 110 of 100
            "Task 0 (small) was interrupted on GPU 0 for task 1 (priority 1), has been saved for 2 us and waits to go "
            "on. It needs 40 bytes; nothing can be made free now.",
        ),
        (
            preempted,
            0,
            30,
            "Task 0 (small) was interrupted on GPU 0 for task 1 (priority 1), has been saved for 14 us and waits to "
            "go on. It needs 40 bytes; the most that could be made free is 30 bytes, on GPU 0.",
        ),
        (
            preempted,
            0,
            42,
            "Task 0 (small) is on GPU 0 and its model loads from host memory (40 bytes), 3 us more.",
        ),
        (preempted, 0, 46, "Task 0 (small) is brought back on GPU 0, 1 us more."),
        (
            preempted,
            1,
            40,
            "Task 1 (large) was done 4 us ago, 26 us after it came; 18 us of that it waited.",
        ),
        (
            out_of_memory,
            1,
            5,
            "Task 1 (large) was rejected: large needs 70 bytes by its declaration, a GPU has 60 bytes.",
        ),
        (
            out_of_memory,
            2,
            8,
            "Task 2 (small) runs on GPU 0 for 2 us so far, beside 1 other; 10% of its service is done.",
        ),
        (
            out_of_memory,
            2,
            15,
            "Task 2 (small) ran out of memory on GPU 0 3 us ago (attempt 1 of 4) and comes back to the queue in 7 us.",
        ),
    ],
)
def test_the_stories(story: Any, task: int, t: int, said: str) -> None:
    assert run_of(*story()).why(task, t / 1e6) == said


def crowded(**changes: Any) -> tuple[Any, RawPack]:
    """Large runs 7-57 on 100 bytes; two small ones wait from 8 and 9; one more large one from 10."""
    problem = problem_of(
        tasks([0, 8, 9, 10], [1, 0, 0, 1], service_us=50, deadline_us=[NEVER, NEVER, 30, NEVER]), **changes
    )
    stages = [(0, 0, LOAD, WENT_ON, 0, 7), (0, 0, RUN, WENT_ON, 7, 57)]
    copies = [(1, 0, 0, 0, 7, NEVER, NEVER, 1, 0)]
    raw = raw_of(stages, copies, [DONE, 4, TIMED_OUT, 4], [57, NEVER, 30, NEVER], 57)
    return problem, raw


def test_places_in_a_strict_line() -> None:
    """Small needs 40; 70 of 100 are reserved for what runs."""
    run = run_of(*crowded())
    assert run.why(1, 12e-6) == (
        "Task 1 (small) has waited 4 us. It is first of 3 in line. It needs 40 bytes; the most that could be made "
        "free is 30 bytes, on GPU 0."
    )
    assert run.why(3, 12e-6) == (
        "Task 3 (large) has waited 2 us. It is number 3 of 3 in line; task 1 (small) is first, and nobody may pass "
        "it. That one needs 40 bytes; the most that could be made free is 30 bytes, on GPU 0."
    )
    assert run.why(2, 40e-6) == "Task 2 (small) left unserved at its deadline 10 us ago, after 21 us."


def test_places_in_other_lines() -> None:
    behind = run_of(*crowded(), pieces=Pieces("first-fit", "backfill", "lru"))
    assert behind.why(3, 12e-6).endswith(
        "It is number 3 of 3 in line. It can go to GPU 0, which has its model."
    )
    blind = run_of(*crowded(), pieces=Pieces("round-robin", "fifo", "lru"))
    assert "It is number 3 of 3 in line for GPU 0;" in blind.why(3, 12e-6)


def test_places_and_what_idles() -> None:
    problem, raw = crowded()
    one = replace(problem.scenario, gpus=replace(problem.scenario.gpus, max_tasks=1))
    full = run_of(replace(problem, scenario=one), raw)
    assert full.why(1, 12e-6).endswith("It waits for a place: every GPU that it may use has its 1 task.")
    # at 57 large is idle, and may go
    assert run_of(problem, raw).why(1, 57e-6).endswith("It needs 40 bytes, which can be made free on GPU 0.")
    models = tuple(replace(m, pinned=True) for m in problem.scenario.models)
    pinned = run_of(replace(problem, scenario=replace(problem.scenario, models=models)), raw)
    assert pinned.why(1, 57e-6).endswith("the most that could be made free is 30 bytes, on GPU 0.")


def test_a_task_that_was_given_up() -> None:
    problem = problem_of(tasks([0], service_us=9))
    raw = raw_of(
        [(0, 0, LOAD, OUT_OF_MEMORY, 0, 0)],
        [(0, 0, 0, 0, NEVER, 0, 0, 1, 0)],
        [FAILED],
        [0],
        5,
        [1],
        [(0, 0, -1, 0)],
    )
    said = "Task 0 (small) was given up 5 us ago: memory ran out the first time, at last on GPU 0."
    assert run_of(problem, raw).why(0, 5e-6) == said


@given(scenario=scenarios(), pieces=PIECES)
@settings(max_examples=40, deadline=None)
def test_there_is_a_sentence_for_every_task_at_every_time(scenario: Any, pieces: Pieces) -> None:
    run = pack(replace(scenario, policy=pieces))
    for t in {0, run.raw.end_us // 3, run.raw.end_us // 2, run.raw.end_us}:
        for j in range(len(run.problem.tasks)):
            said = run.why(j, t / 1e6)
            assert said.startswith(f"Task {j} (m")
            assert said.endswith(".")


def test_hostile_names_are_text() -> None:
    problem, raw = preempted()
    models = tuple(replace(m, name="\x1b[31m\n" + m.name) for m in problem.scenario.models)
    run = run_of(replace(problem, scenario=replace(problem.scenario, models=models)), raw)
    assert run.why(0, 0) == (
        "Task 0 (\\x1b[31m\\nsmall) is on GPU 0 and its model loads from disk (40 bytes), 4 us more."
    )


@pytest.mark.parametrize("task", [-1, 2, "x", 0.5, None, True])
def test_tasks_that_are_not_there(task: Any) -> None:
    with pytest.raises(InputError, match="must be the number of a task, from 0 to 1"):
        run_of(*preempted()).why(task, 0)


@pytest.mark.parametrize("t", [-1, 62e-6, "soon", None, "1:30"])
def test_instants_that_are_not_there(t: Any) -> None:
    with pytest.raises(InputError, match="by hand"):
        run_of(*preempted()).why(0, t)


def test_words() -> None:
    assert [span(us) for us in (0, 999, 1500, 1_234_567, 119_000_000, 600_000_000, 10**10)] == (
        ["0 us", "999 us", "1.5 ms", "1.23 s", "119 s", "10 min", "2.8 h"]
    )
    assert [amount(size) for size in (0, 5, 5000, 19 * GIB + 7 * GIB // 10)] == (
        ["0 GiB", "5 bytes", "5,000 bytes", "19.7 GiB"]
    )


def test_memory_that_no_gpu_has_is_said_in_gib() -> None:
    models = [("big", 30, 128), ("just", 20.001, 128), ("long", 16, 1024)]
    scenario = gp.load(
        {
            "kind": "packing",
            "name": "tight",
            "gpus": {"count": 1, "memory_gib": 20},
            "admission": {"margin": 0, "context_gib": 0},
            "models": [
                {"name": name, "declared_gib": size, "kv_kib_per_token": cache}
                for name, size, cache in models
            ],
            "tasks": {
                "rows": [
                    {"arrival_s": k, "model": name, "service_s": 1, "tokens_in": 5_000, "tokens_out": 120}
                    for k, (name, _, _) in enumerate(models)
                ]
            },
        }
    )
    said = list(gp.pack(scenario, policy="best-fit").problem.rejected.values())
    assert said == [
        "big needs 30 GiB by its declaration, a GPU has 20 GiB",
        # 20.001 GiB and 20 GiB would both read 20 GiB
        "just needs 21,475,910,222 bytes by its declaration, a GPU has 21,474,836,480 bytes",
        # 5,120 tokens of 1 MiB
        "long takes 16 GiB and 5,120 tokens of context 5 GiB, together 21 GiB, a GPU has 20 GiB",
    ]
