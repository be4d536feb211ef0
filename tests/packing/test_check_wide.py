"""Models over several GPUs in the check: legal runs have no violations, mutations of them are found."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuplan.packing.check import check
from gpuplan.packing.model import NEVER, Gpus, Pieces, Preemption, Retry, ServedModel
from gpuplan.packing.problem import Problem, compile_problem
from gpuplan.packing.raw import DONE, LOAD, RESTORE, RUN, SAVE, RawPack
from gpuplan.packing.tasks import tasks
from packing.by_hand import LINK, PIECES, changed, problem_of, raw_of
from packing.over_two import over_two
from packing.reference import reference
from packing.strategies import PIECES as ANY_PIECES
from packing.strategies import scenarios
from packing.test_check import put

WENT_ON, PREEMPTED, OUT_OF_MEMORY, CUT = range(4)

#: 50 bytes on each of two GPUs; on each a token takes a byte.
PAIR = ServedModel("pair", 100, 100, context_bytes=0, kv_bytes_per_token=2, gpus=2)

#: 60 bytes on one GPU.
ONE = ServedModel("one", 60, 60, context_bytes=0)


def test_the_run_by_hand_is_legal() -> None:
    problem, raw = over_two()
    assert check(problem, PIECES, raw) == []


# rows of `over_two`: stages 0-1 of the wide task 0, 2-3 of 1 (GPU 1), 4-5 of 2 (GPU 0), 6-7 of the wide task 3; copies
# 0 and 3 are wide (GPUs 0, 1), 1 on GPU 1, 2 on GPU 0
@pytest.mark.parametrize(
    ("part", "columns", "said"),
    [
        ("copies", {"starts": [0, 1, 3, 4, 6]}, "Copy 0 is on 1 GPUs; its model is spread over 2."),
        ("copies", {"starts": [0, 2, 3, 5]}, "It cannot be told which GPUs each copy is on."),
        ("copies", {"starts": [0, 2, 3, 4, 5]}, "It cannot be told which GPUs each copy is on."),
        ("copies", {"starts": [1, 2, 3, 4, 6]}, "It cannot be told which GPUs each copy is on."),
        ("copies", {"on": [1, 0, 1, 0, 0, 1]}, "The GPUs of copy 0 are not told in their order, each once."),
        ("copies", {"on": put(5, 0)}, "The GPUs of copy 3 are not told in their order, each once."),
        ("copies", {"on": put(5, 2)}, "A copy is on no GPU."),
        ("copies", {"gpu": put(0, 1)}, "Copy 0 is said to be on GPU 1; the lowest of its GPUs is 0."),
        ("stages", {"gpu": put(1, 1)}, "Task 0 is said to be on GPU 1, on a copy whose lowest GPU is 0."),
        ("stages", {"copy": put(1, 4)}, "A stage is on no copy."),
        ("stages", {"copy": put(1, -1)}, "A stage is on no copy."),
        ("stages", {"copy": put(1, 3)}, "Task 0 (run on GPUs 0 and 1, 4 to 30 us) is on another copy than"),
        ("stages", {"copy": put(4, 3)}, "is on no copy of its model"),
        (
            "stages",
            {"end_us": put(1, 29)},
            "Task 0 (run on GPUs 0 and 1, 4 to 29 us) ends with 19.000 us of 20 us",
        ),
        (
            "copies",
            {"evicted_us": put(0, 31), "released_us": put(0, 36)},
            "GPUs 0 and 1 claimed at 0 us is ev",
        ),
        ("copies", {"evicted_us": put(0, 29), "released_us": put(0, 34)}, "or it is evicted under it"),
        ("copies", {"released_us": put(0, 36)}, "its memory comes back 5 us later, not at 36 us"),
        ("copies", {"ready_us": put(0, 3)}, "loads from 0 to 3 us, which is not what its share of the links"),
        ("copies", {"ready_us": put(3, 70)}, "loads from 65 to 70 us, which is not what its share of the li"),
        ("copies", {"load_us": put(3, 64)}, "begins to load at 64 us, when nothing that it waited for ends"),
        ("copies", {"for_task": put(3, 0)}, "is claimed for no task that is placed there then"),
        ("copies", {"from_disk": put(3, 1)}, "is said to come from disk"),
    ],
)
def test_mutations(part: str, columns: dict[str, Any], said: str) -> None:
    problem, raw = over_two()
    found = check(problem, PIECES, changed(raw, part, **columns))
    assert any(said in line for line in found), found


def test_its_slowest_gpu_decides_when_it_ends() -> None:
    # alone on GPU 0 all the time task 0 would be done at 24
    problem, raw = over_two()
    early = changed(raw, "stages", end_us=put(1, 24))
    early = replace(early, left_us=np.array([24, 26, 52, 71]))
    assert any(
        "4 to 24 us) ends with 15.000 us of 20 us done" in line for line in check(problem, PIECES, early)
    )


def test_memory_is_looked_at_on_every_gpu() -> None:
    # at 30 GPU 0 holds 45 of the copy and 20 tokens; GPU 1 another 45 of `SMALL`, as long as that stays: 110. After 65
    # copy 3 is there, with 45 on each
    problem, raw = over_two()
    small = replace(problem.scenario, gpus=replace(problem.scenario.gpus, memory_bytes=108))
    found = check(replace(problem, scenario=small), PIECES, raw)
    assert any("GPU 1 holds 109 bytes" in line or "GPU 1 holds 110 bytes" in line for line in found), found
    assert not any("GPU 0 holds" in line for line in found)


def both(first: ServedModel, second: ServedModel, **changes: Any) -> Problem:
    """Two GPUs of 100 bytes: a task of the first model at 0, one of the second, more important, at 10."""
    made = tasks([0, 10], [0, 1], priority=[0, 1], service_us=[20, 8])
    return problem_of(
        made, count=2, **{"models": (first, second), "preemption": Preemption("always", 0, 6, 2), **changes}
    )


def interrupted() -> tuple[Problem, RawPack]:
    """A task over two GPUs is interrupted for one on GPU 0, whose model needs its memory there: 50 + 60 > 100.

    - 0: 50 bytes to each GPU at 10 per us: 5; runs 5-10, saves 10-16; its copy is evicted at 16, gone from both GPUs at
      21.
    - 1: 60 bytes to GPU 0 21-27; runs 27-35.
    - 0 again: placed at 35, when the other is idle: gone at 40, 40-45 loads, restored at 47, 15 us left: 62.
    """
    stages = [
        (0, 0, LOAD, WENT_ON, 0, 5, 0, 0, 0),
        (0, 0, RUN, PREEMPTED, 5, 10, 5, 0, 0),
        (1, 0, LOAD, WENT_ON, 10, 27, 10, 0, 1),
        (0, 0, SAVE, WENT_ON, 10, 16, 10, 0, 0),
        (1, 0, RUN, WENT_ON, 27, 35, 27, 0, 1),
        (0, 0, RESTORE, WENT_ON, 35, 47, 45, 0, 2),
        (0, 0, RUN, WENT_ON, 47, 62, 47, 0, 2),
    ]
    copies = [
        (0, 0, 0, 0, 5, 16, 21, 1, 0),
        (1, 0, 10, 21, 27, 35, 40, 1, 1),
        (0, 0, 35, 40, 45, NEVER, NEVER, 0, 0),
    ]
    raw = raw_of(stages, copies, [DONE, DONE], [62, 35], 62, sets=[(0, 1), (0,), (0, 1)])
    return both(PAIR, ONE), raw


def test_a_wide_victim() -> None:
    problem, raw = interrupted()
    assert check(problem, PIECES, raw) == []
    # the other model on GPU 1 would do as well; but on a node of three the third has nothing to do with it
    moved = changed(changed(raw, "copies", on=put(2, 1), gpu=put(1, 1)), "stages", gpu=[0, 0, 1, 0, 1, 0, 0])
    assert check(problem, PIECES, moved) == []
    three = replace(problem.scenario, gpus=replace(problem.scenario.gpus, count=3))
    away = changed(changed(raw, "copies", on=put(2, 2), gpu=put(1, 2)), "stages", gpu=[0, 0, 2, 0, 2, 0, 0])
    found = check(replace(problem, scenario=three), PIECES, away)
    assert any(
        "Task 0 (run on GPUs 0 and 1, 5 to 10 us) is interrupted, and no task of higher priority" in line
        for line in found
    )
    assert any("GPUs 0 and 1 claimed at 0 us is evicted for nobody" in line for line in found)


def test_a_wide_copy_that_stays_is_in_the_way_on_every_gpu() -> None:
    """The reservations of both, 50 + 60, are more than 100 on GPU 0 only."""
    problem, raw = interrupted()
    stays = changed(raw, "copies", evicted_us=[NEVER, 35, NEVER], released_us=[NEVER, 40, NEVER])
    found = check(problem, PIECES, stays)
    assert any("claimed at 10 us makes reservations of 110 bytes; the GPU has 100" in line for line in found)
    assert any("GPUs 0 and 1 claimed at 35 us is a second one there" in line for line in found)


def too_much() -> tuple[Problem, RawPack]:
    """Two GPUs; GPU 1 is full earlier: two wide tasks, and 25 bytes of a model that is resident there.

    On each GPU 50, and a byte per token: each task has 5 in and 10 out in 20 us. Task 0 runs from 0 on, 1 from 4 on;
    on GPU 1 75 + 5 + 5 + floor(t / 2) + floor((t - 4) / 2) > 100 when t = 18: 9 + 7 = 16. Task 1 fails, comes back at
    24 when task 0 is over (20) and runs 24-44.
    """
    made = tasks([0, 4], service_us=20, tokens_in=5, tokens_out=10)
    models = (replace(PAIR, resident=(0, 1)), ServedModel("rest", 25, 25, context_bytes=0, resident=(1,)))
    problem = problem_of(made, count=2, models=models, retry=Retry(1, 6))
    stages = [
        (0, 0, LOAD, WENT_ON, 0, 0, 0, 0, 0),
        (0, 0, RUN, WENT_ON, 0, 20, 0, 0, 0),
        (1, 0, LOAD, WENT_ON, 4, 4, 4, 0, 0),
        (1, 0, RUN, OUT_OF_MEMORY, 4, 18, 4, 0, 0),
        (1, 0, LOAD, WENT_ON, 24, 24, 24, 1, 0),
        (1, 0, RUN, WENT_ON, 24, 44, 24, 1, 0),
    ]
    copies = [(0, 0, 0, 0, 0, NEVER, NEVER, 0, -1), (1, 1, 0, 0, 0, NEVER, NEVER, 0, -1)]
    return problem, raw_of(
        stages, copies, [DONE, DONE], [20, 44], 44, [0, 1], [(18, 1, 1, 0)], [(0, 1), (1,)]
    )


def test_failures_of_wide_tasks() -> None:
    problem, raw = too_much()
    assert check(problem, PIECES, raw) == []
    for columns, said in (
        ({"gpu": put(0, 0)}, "Memory is said to run out on GPU 0 at 18 us; there was enough."),
        ({"task": put(0, 0)}, "not those of the events"),
        ({"time_us": put(0, 17)}, "not those of the events"),
        ({"model": put(0, 1)}, "not those of the events"),
    ):
        found = check(problem, PIECES, changed(raw, "breaches", **columns))
        assert any(said in line for line in found), (columns, found)
    later = changed(raw, "stages", end_us=put(3, 19))
    assert any("GPU 1 holds 101 bytes at 18 us" in line for line in check(problem, PIECES, later))


def no_load() -> tuple[Problem, RawPack]:
    """Parts of 50 do not fit beside 60 that are declared as 40 on GPU 1: the load fails there, for good."""
    models = (PAIR, replace(ONE, declared_bytes=40, resident=(1,)))
    problem = problem_of(tasks([3], service_us=20), count=2, models=models, retry=Retry(0))
    stages = [(0, 0, LOAD, OUT_OF_MEMORY, 3, 3, 3, 0, 1)]
    copies = [(1, 1, 0, 0, 0, NEVER, NEVER, 0, -1), (0, 0, 3, 3, NEVER, 3, 3, 1, 0)]
    return problem, raw_of(stages, copies, [2], [3], 3, [1], [(3, 1, -1, 0)], [(1,), (0, 1)])


def test_failures_of_wide_loads() -> None:
    problem, raw = no_load()
    assert check(problem, PIECES, raw) == []
    found = check(problem, PIECES, changed(raw, "breaches", gpu=put(0, 0)))
    assert found == ["Memory is said to run out on GPU 0 at 3 us; there was enough."]
    three = replace(problem.scenario, gpus=replace(problem.scenario.gpus, count=3))
    elsewhere = changed(raw, "breaches", gpu=put(0, 2))
    assert check(replace(problem, scenario=three), PIECES, elsewhere) == [
        "The loads that failed are not those of the events."
    ]
    twice = replace(raw, breaches=replace(raw.breaches, **dict.fromkeys(("time_us",), np.array([3, 3])),
                    gpu=np.array([0, 1]), task=np.array([-1, -1]), model=np.array([0, 0])))  # fmt: skip
    assert check(problem, PIECES, twice) == ["The loads that failed are not those of the events."]


def test_slots_of_every_gpu() -> None:
    """A wide task 0-20 and a narrow one 5-15 on GPU 1, which takes one at a time."""
    made = tasks([0, 5], [0, 1], service_us=[20, 10])
    models = (replace(PAIR, resident=(0, 1)), replace(ONE, declared_bytes=40, actual_bytes=40, resident=(1,)))
    problem = problem_of(made, count=2, models=models)
    stages = [
        (0, 0, LOAD, WENT_ON, 0, 0, 0, 0, 0),
        (0, 0, RUN, WENT_ON, 0, 20, 0, 0, 0),
        (1, 1, LOAD, WENT_ON, 5, 5, 5, 0, 1),
        (1, 1, RUN, WENT_ON, 5, 15, 5, 0, 1),
    ]
    copies = [(0, 0, 0, 0, 0, NEVER, NEVER, 0, -1), (1, 1, 0, 0, 0, NEVER, NEVER, 0, -1)]
    raw = raw_of(stages, copies, [DONE, DONE], [20, 15], 20, sets=[(0, 1), (1,)])
    assert check(problem, PIECES, raw) == []
    one = replace(problem.scenario, gpus=replace(problem.scenario.gpus, max_tasks=1))
    assert check(replace(problem, scenario=one), PIECES, raw) == ["GPU 1 has 2 tasks at 5 us; it takes 1."]


def test_transfers_of_parts() -> None:
    """Parts of 50 to GPUs 0 and 1 from 0 on, 20 bytes to GPU 0 from 2 on, links of 10 per us.

    GPU 1 has its part at 5. On GPU 0 20 have come by 2; then 5 per us each: the 20 bytes at 6, when the part has 10
    left: 7.
    """
    models = (PAIR, ServedModel("rest", 20, 20, context_bytes=0))
    problem = problem_of(tasks([0, 2], [0, 1], service_us=1), count=2, models=models)

    def raw(pair: int, rest: int) -> RawPack:
        stages = [
            (0, 0, LOAD, WENT_ON, 0, pair, 0, 0, 0),
            (1, 0, LOAD, WENT_ON, 2, rest, 2, 0, 1),
            (1, 0, RUN, WENT_ON, rest, rest + 1, rest, 0, 1),
            (0, 0, RUN, WENT_ON, pair, pair + 1, pair, 0, 0),
        ]
        copies = [(0, 0, 0, 0, pair, NEVER, NEVER, 1, 0), (1, 0, 2, 2, rest, NEVER, NEVER, 1, 1)]
        left = [pair + 1, rest + 1]
        return raw_of(stages, copies, [DONE, DONE], left, max(left), sets=[(0, 1), (0,)])

    assert check(problem, PIECES, raw(7, 6)) == []
    for pair in (6, 8):
        found = check(problem, PIECES, raw(pair, 6))
        assert any(f"loads from 0 to {pair} us, which is not what its share" in line for line in found), found


def test_what_is_resident() -> None:
    """GPUs 3, 1, 0, 2 are two copies: on 0 and 1, on 2 and 3."""
    models = (replace(PAIR, resident=(3, 1, 0, 2)),)
    problem = problem_of(tasks([]), count=4, models=models)

    def raw(*sets: tuple[int, ...]) -> RawPack:
        copies = [(0, gpus[0], 0, 0, 0, NEVER, NEVER, 0, -1) for gpus in sets]
        return raw_of([], copies, [], [], 0, sets=list(sets))

    assert check(problem, PIECES, raw((0, 1), (2, 3))) == []
    assert check(problem, PIECES, raw((0, 2), (1, 3))) == [
        "The copies that were there from the start are not the resident models."
    ]


def on_copies(gpus: list[tuple[int, ...]], resident: tuple[int, ...] = ()) -> tuple[Problem, RawPack]:
    """Tasks 0, 1, ... over two of three GPUs at 20, 40, ...: each on the copy of these GPUs, loaded for it if new."""
    models = (replace(PAIR, resident=resident),)
    made = tasks([20 * (k + 1) for k in range(len(gpus))], service_us=1)
    problem = problem_of(made, count=3, models=models)
    problem = replace(problem, scenario=replace(problem.scenario, gpus=Gpus(3, 100, LINK, LINK * 10)))
    sets = [resident] if resident else []
    copies: list[tuple[int, ...]] = [(0, g[0], 0, 0, 0, NEVER, NEVER, 0, -1) for g in sets]
    stages, left = [], []
    for task, where in enumerate(gpus):
        at = ready = 20 * (task + 1)
        if where not in sets:
            ready = at + 5
            copies.append((0, where[0], at, at, ready, NEVER, NEVER, int(not copies), task))
            sets.append(where)
        c = sets.index(where)
        stages += [
            (task, where[0], LOAD, WENT_ON, at, ready, at, 0, c),
            (task, where[0], RUN, WENT_ON, ready, ready + 1, ready, 0, c),
        ]
        left.append(ready + 1)
    return problem, raw_of(stages, copies, [DONE] * len(gpus), left, max(left), sets=sets)


BLIND = Pieces("round-robin", "fifo", "lru")


def test_blind_round_robin_keeps_to_its_gpus() -> None:
    # task 0 belongs to GPUs 0 and 1, where its copy is made; task 1 to 1 and 2: that copy; task 2 to 2 and 0: that copy
    assert check(*_with(on_copies([(0, 1), (0, 1), (0, 1)]))) == []
    assert check(*_with(on_copies([(0, 2)]))) == [
        "The copy of 'pair' on GPUs 0 and 2 claimed at 20 us belongs to GPUs 0 and 1."
    ]


def test_blind_round_robin_goes_to_the_first_copy_on_its_gpus() -> None:
    # a model over two of four GPUs whose copies are on 0, 3 and on 1, 2: task 3 belongs to 3 and 0
    models = (replace(PAIR, resident=(0, 1, 2, 3)),)
    problem = problem_of(tasks([1, 2], service_us=1), count=4, models=models)

    def raw(second: int) -> RawPack:
        copies = [(0, g, 0, 0, 0, NEVER, NEVER, 0, -1) for g in (0, 2)]
        stages = [
            (task, 2 * copy, kind, WENT_ON, start, start + (kind == RUN), start, 0, copy)
            for task, copy, start in ((0, 0, 1), (1, second, 2))
            for kind in (LOAD, RUN)
        ]
        return raw_of(stages, copies, [DONE, DONE], [2, 3], 3, sets=[(0, 1), (2, 3)])

    assert check(problem, BLIND, raw(0)) == []
    # task 1 belongs to GPUs 1 and 2: on 1 is the first copy
    assert check(problem, BLIND, raw(1)) == [
        "Task 1 (load on GPUs 2 and 3, 2 to 2 us) passes a copy of its model on GPUs that come before."
    ]


def _with(story: tuple[Problem, RawPack]) -> tuple[Problem, Pieces, RawPack]:
    return story[0], BLIND, story[1]


def kept(evicted: int, again: int) -> tuple[Problem, Pieces, RawPack]:
    """A wide copy that is kept for 20 us, used 0-5-6 and, if then, at `again`."""
    problem = problem_of(tasks([0, again], service_us=1), count=2, models=(PAIR,))
    stages = [
        (0, 0, LOAD, WENT_ON, 0, 5, 0, 0, 0),
        (0, 0, RUN, WENT_ON, 5, 6, 5, 0, 0),
        (1, 0, LOAD, WENT_ON, again, again, again, 0, 0),
        (1, 0, RUN, WENT_ON, again, again + 1, again, 0, 0),
    ]
    copies = [(0, 0, 0, 0, 5, evicted, evicted + 5, 1, 0)]
    raw = raw_of(stages, copies, [DONE, DONE], [6, again + 1], evicted + 5, sets=[(0, 1)])
    return problem, Pieces("first-fit", "fifo", "keep-alive", keep_alive_us=20), raw


def test_copies_expire_when_they_should() -> None:
    assert check(*kept(46, 25)) == []
    name = "The copy of 'pair' on GPUs 0 and 1 claimed at 0 us"
    assert check(*kept(45, 25)) == [f"{name} is evicted for nobody."]
    assert check(*kept(47, 25)) == [
        f"{name} stays longer than it is kept for nobody.",
        f"{name} is evicted for nobody.",
    ]
    # at 26 it has gone already
    assert check(*kept(47, 26)) == [f"{name} stays longer than it is kept for nobody."]


# ------------------------------------------------------------------------------- any run


@given(st.data(), st.integers(0, 1 << 30))
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_runs_of_the_slow_simulator_are_legal_and_mutations_of_them_are_not(data: Any, seed: int) -> None:
    """A number one off, in any column.

    But for starts of queued work (nobody says that work starts as soon as it can), the GPUs of copies (others may do as
    well), for which of several tasks one was claimed, and which of several full GPUs told that memory ran out.
    """
    scenario, pieces = data.draw(scenarios(widest=4)), data.draw(ANY_PIECES)
    problem = compile_problem(scenario)
    told = reference(scenario, pieces)
    raw = raw_of(
        told.stages, told.copies, told.state, told.left, told.end, told.failures, told.breaches, told.sets
    )
    assert check(problem, pieces, raw) == []
    rng = np.random.default_rng(seed)
    skip = {("stages", "start_us"), ("copies", "on"), ("copies", "for_task"), ("breaches", "gpu")}
    for part in ("stages", "copies", "breaches"):
        table = getattr(raw, part)
        for name in type(table).__slots__:
            column = getattr(table, name)
            if len(table) and (part, name) not in skip:
                row, off = int(rng.integers(len(column))), int(rng.choice([-1, 1]))
                other = changed(raw, part, **{name: put(row, int(column[row]) + off)})
                assert check(problem, pieces, other) != [], (part, name, row, off)


@given(st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_gpu_of_a_wide_copy_can_be_taken_away(data: Any) -> None:
    """A set that is one GPU short, one too many, or not a set is found in any run."""
    scenario, pieces = data.draw(scenarios(widest=4)), data.draw(ANY_PIECES)
    problem, told = compile_problem(scenario), reference(scenario, pieces)
    wide = [c for c, gpus in enumerate(told.sets) if len(gpus) > 1]
    for c in wide:
        gpus = told.sets[c]
        for other in (gpus[:-1], (*gpus, gpus[-1]), (*gpus[:-1], gpus[0]), gpus[::-1]):
            sets = [*told.sets[:c], other, *told.sets[c + 1 :]]
            raw = raw_of(told.stages, told.copies, told.state, told.left, told.end, told.failures,
                         told.breaches, sets)  # fmt: skip
            assert check(problem, pieces, raw) != [], (c, other)
