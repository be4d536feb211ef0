"""The slow simulator against answers worked out by hand; the engine gives the same ones.

Memory is 100 bytes; links move a byte per microsecond unless a test says otherwise.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gpuplan.packing.model import (
    NEVER,
    Admission,
    Contention,
    Gpus,
    PackingScenario,
    Pieces,
    Preemption,
    Retry,
    ServedModel,
)
from gpuplan.packing.raw import (
    CUT,
    DONE,
    FAILED,
    LOAD,
    ON_GPU,
    OUT_OF_MEMORY,
    PREEMPTED,
    REJECTED,
    RESTORE,
    RUN,
    SAVE,
    TIMED_OUT,
    WAITING,
    WENT_ON,
)
from gpuplan.packing.tasks import Tasks, tasks
from packing.reference import reference
from packing.reference_things import Outcome

Simulate = Callable[[PackingScenario, Pieces], Outcome]

BYTE_PER_US = 1_000_000
FIFO = Pieces("first-fit")
NODE = Gpus(1, 100, BYTE_PER_US, 10**15, release_us=5)


@pytest.fixture(params=["reference", "engine"])
def simulate(request: pytest.FixtureRequest) -> Simulate:
    if request.param == "reference":
        return reference
    from packing.engine_answers import engine

    return engine


def model(weights: int, **other: Any) -> ServedModel:
    """A model that takes what it declares; on GPU 0 from the start unless told otherwise."""
    return ServedModel("m", **{"declared_bytes": weights, "actual_bytes": weights, "resident": (0,), **other})


def node(models: list[ServedModel], work: Tasks, **other: Any) -> PackingScenario:
    """A scenario without margins and context."""
    return PackingScenario(
        "by hand",
        **{
            "gpus": NODE,
            "models": tuple(replace(m, name=f"m{k}") for k, m in enumerate(models)),
            "admission": Admission(0, 0),
            "tasks": work,
            **other,
        },
    )


def told(outcome: Outcome, task: int) -> list[tuple[int, int, int]]:
    """(kind, start, end) of the stages of a task."""
    return [(s[2], s[4], s[5]) for s in outcome.stages if s[0] == task]


def served(outcome: Outcome) -> list[tuple[int, int, int, int]]:
    """(task, GPU, start, end) of every stage of running."""
    return [(s[0], s[1], s[4], s[5]) for s in outcome.stages if s[2] == RUN]


def begun(outcome: Outcome) -> list[int]:
    """Tasks in the order in which they began to run."""
    return [task for task, _, _, _ in sorted(served(outcome), key=lambda row: row[2])]


# ---------------------------------------------------------------- loading


def test_the_first_load_comes_from_disk(simulate: Simulate) -> None:
    # 40 bytes at 0.5 bytes/us from disk: 80 us; task 1 goes to the other GPU (slots), from host memory: 40 us
    gpus = replace(NODE, count=2, disk_bytes_per_s=BYTE_PER_US // 2, max_tasks=1)
    work = tasks([0, 85], service_us=10)
    found = simulate(node([model(40, resident=())], work, gpus=gpus), FIFO)
    assert told(found, 0) == [(LOAD, 0, 80), (RUN, 80, 90)]
    assert told(found, 1) == [(LOAD, 85, 125), (RUN, 125, 135)]
    assert found.copies == [
        (0, 0, 0, 0, 80, NEVER, NEVER, 1, 0),
        (0, 1, 85, 85, 125, NEVER, NEVER, 0, 1),
    ]
    assert found.state == [DONE, DONE]
    assert found.left == [90, 135]
    assert found.end == 135


def test_without_a_host_cache_every_load_comes_from_disk(simulate: Simulate) -> None:
    gpus = replace(NODE, count=2, disk_bytes_per_s=BYTE_PER_US // 2, max_tasks=1, host_cache=False)
    found = simulate(node([model(40, resident=())], tasks([0, 85], service_us=10), gpus=gpus), FIFO)
    assert told(found, 1) == [(LOAD, 85, 165), (RUN, 165, 175)]


def test_transfers_share_the_link_of_their_gpu(simulate: Simulate) -> None:
    # at 10 the first has 20 of 30 bytes left; then half a byte per us each: 10 + 40 = 50; the second has
    # 30 - 20 = 10 left there, and the link for itself: 60
    models = [model(30, resident=()), model(30, resident=())]
    found = simulate(node(models, tasks([0, 10], [0, 1], service_us=5)), FIFO)
    assert [c[4] for c in found.copies] == [50, 60]


def test_transfers_share_the_disk_of_the_node(simulate: Simulate) -> None:
    # two GPUs with links of their own; the disk gives half a byte per us to each: 30 / 0.5 = 60
    gpus = replace(NODE, count=2, host_bytes_per_s=10 * BYTE_PER_US, disk_bytes_per_s=BYTE_PER_US)
    models = [model(30, resident=()), model(30, resident=())]
    found = simulate(node(models, tasks([0, 0], [0, 1], service_us=5), gpus=gpus), Pieces("worst-fit"))
    assert [(c[1], c[4]) for c in found.copies] == [(0, 60), (1, 60)]


def test_a_transfer_ends_with_the_first_whole_microsecond(simulate: Simulate) -> None:
    # 333,333 bytes/s: after 30 us 9.99999 bytes have come, after 31 us all 10
    gpus = replace(NODE, host_bytes_per_s=333_333)
    found = simulate(node([model(10, resident=())], tasks([0]), gpus=gpus), FIFO)
    assert found.copies[0][4] == 31


# ---------------------------------------------------------------- contention


@pytest.mark.parametrize(
    ("contention", "ends"),
    [
        (Contention("none"), [10, 14]),
        # 4 us alone, 6 left; at half speed 12 us: 16. The second has 10 - 6 = 4 left at 16: 20
        (Contention("sharing"), [16, 20]),
        # the same: 1 / (1 + 1 x (2 - 1)) = 1/2
        (Contention("slowdown", 1.0), [16, 20]),
        # speed 1/4: the first has 6 left at 4: 28; the second got 6, has 4 left: 32
        (Contention("slowdown", 3.0), [28, 32]),
    ],
)
def test_contention(simulate: Simulate, contention: Contention, ends: list[int]) -> None:
    found = simulate(node([model(40)], tasks([0, 4], service_us=10), contention=contention), FIFO)
    assert found.left == ends


def test_service_ends_with_the_first_whole_microsecond(simulate: Simulate) -> None:
    # speed floor(2^20 / 1.5) = 699,050: 15 us bring 10,485,750 of 10 x 2^20 = 10,485,760, so that it takes 16
    scenario = node([model(40)], tasks([0, 0], service_us=10), contention=Contention("slowdown", 0.5))
    assert simulate(scenario, FIFO).left == [16, 16]


def test_no_service_takes_no_time(simulate: Simulate) -> None:
    found = simulate(node([model(40)], tasks([3, 3, 8])), FIFO)
    assert found.left == [3, 3, 8]
    assert told(found, 0) == [(LOAD, 3, 3), (RUN, 3, 3)]


# ---------------------------------------------------------------- memory that runs out


def test_kv_that_grows_over_the_limit(simulate: Simulate) -> None:
    # 60 bytes of weights, two tasks with 5 tokens in and 20 out over 40 us: KV is 2 x (5 + floor(t / 2)), more than 40
    # when floor(t / 2) > 15: at 32. The larger row fails, comes back at 42 and needs all of its 40 us again.
    work = tasks([0, 0], service_us=40, tokens_in=5, tokens_out=20)
    scenario = node([model(60, kv_bytes_per_token=1)], work, retry=Retry(1, 10))
    found = simulate(scenario, FIFO)
    assert found.breaches == [(32, 0, 1, 0)]
    assert told(found, 0) == [(LOAD, 0, 0), (RUN, 0, 40)]
    assert told(found, 1) == [(LOAD, 0, 0), (RUN, 0, 32), (LOAD, 42, 42), (RUN, 42, 82)]
    assert found.failures == [0, 1]
    assert [s[7] for s in found.stages if s[0] == 1] == [0, 0, 1, 1]


def test_who_began_last_fails_even_if_it_came_first(simulate: Simulate) -> None:
    # model 1 (30 bytes) is ready at 30, so that task 0 begins last: 30 + 30 + 30 + 20 = 110 > 100 there and then
    models = [model(30, kv_bytes_per_token=1), model(30, kv_bytes_per_token=1, resident=())]
    work = tasks([0, 1], [1, 0], service_us=100, tokens_in=[20, 30])
    found = simulate(node(models, work, retry=Retry(0)), FIFO)
    assert found.breaches == [(30, 0, 0, 1)]
    assert found.state == [FAILED, DONE]
    assert found.left == [30, 101]
    assert told(found, 0) == [(LOAD, 0, 30), (RUN, 30, 30)]


def test_a_load_that_does_not_fit(simulate: Simulate) -> None:
    # declared 20, actual 60, beside 50: the scheduler sees 70, the memory 110. Twice, then it has failed.
    models = [model(50), model(60, declared_bytes=20, resident=())]
    found = simulate(node(models, tasks([0, 3], 1, service_us=9), retry=Retry(1, 5)), FIFO)
    assert found.breaches == [(0, 0, -1, 1), (3, 0, -1, 1), (5, 0, -1, 1), (8, 0, -1, 1)]
    assert found.state == [FAILED, FAILED]
    assert found.left == [5, 8]
    assert told(found, 0) == [(LOAD, 0, 0), (LOAD, 5, 5)]
    assert {s[3] for s in found.stages} == {OUT_OF_MEMORY}
    assert found.copies[1] == (1, 0, 0, 0, NEVER, 0, 0, 1, 0)


def test_what_can_never_fit_is_rejected(simulate: Simulate) -> None:
    # need: 50 x 1.5 + 30 = 105; 80 + 10 + 2 x (3 + 3) = 102; 80 + 10 + 2 x (3 + 2) = 100 fits
    models = [
        model(50, resident=(), context_bytes=30),
        model(80, declared_bytes=40, resident=(), workspace_bytes=10, kv_bytes_per_token=2),
    ]
    work = tasks([1, 2, 3], [0, 1, 1], tokens_in=3, tokens_out=[0, 3, 2])
    found = simulate(node(models, work, admission=Admission(500_000, 0)), FIFO)
    assert found.state == [REJECTED, REJECTED, DONE]
    assert found.left == [1, 2, 3 + 80]


def test_a_margin_keeps_a_model_out(simulate: Simulate) -> None:
    # two models that declare 45 and take 50 fit; with a margin of 20 % the scheduler sees 2 x 54 = 108 and evicts
    models = [model(50, declared_bytes=45), model(50, declared_bytes=45, resident=())]
    work = tasks([7], 1, service_us=1)
    assert told(simulate(node(models, work), FIFO), 0)[0] == (LOAD, 7, 57)
    careful = node(models, work, admission=Admission(200_000, 0))
    assert told(simulate(careful, FIFO), 0)[0] == (LOAD, 7, 7 + 5 + 50)


def test_admission_on_free_memory_believes_the_monitor(simulate: Simulate) -> None:
    # declared 60 each, taken 30 each: on declared the second needs an eviction, on free memory it fits
    models = [model(30, declared_bytes=60), model(30, declared_bytes=60, resident=())]
    work = tasks([0], 1, service_us=1)
    assert simulate(node(models, work), FIFO).left == [5 + 30 + 1]
    assert simulate(node(models, work, admission=Admission(0, 0, on="free")), FIFO).left == [30 + 1]


def test_what_sleeps_keeps_memory(simulate: Simulate) -> None:
    # model 0 leaves 30 bytes behind: model 1 with 71 does not fit beside that, though the scheduler thinks so;
    # with 70 it does
    for weights, state in ((71, FAILED), (70, DONE)):
        models = [model(50, asleep_bytes=30), model(weights, resident=())]
        found = simulate(node(models, tasks([0], 1), retry=Retry(0)), FIFO)
        assert found.state == [state]
        assert found.copies[0][5:7] == (0, 5)
    # loaded again, the model takes its 30 bytes up: 50, not 80
    models = [model(50, asleep_bytes=30), model(60, resident=())]
    found = simulate(node(models, tasks([0, 100], [1, 0]), retry=Retry(0)), FIFO)
    assert found.state == [DONE, DONE]


# ---------------------------------------------------------------- eviction


@pytest.mark.parametrize(
    ("eviction", "goes"),
    [
        # model 0 was used last at 30, model 1 at 20
        ("lru", 1),
        # model 0 was asked for once, model 1 twice
        ("lfu", 0),
        # 1 x 45 against 2 x 20
        ("cost", 1),
    ],
)
def test_who_is_evicted(simulate: Simulate, eviction: str, goes: int) -> None:
    models = [model(45), model(20, declared_bytes=45), model(40, resident=())]
    work = tasks([0, 0, 15, 50], [0, 1, 1, 2], service_us=[30, 10, 5, 1])
    found = simulate(node(models, work), Pieces("first-fit", eviction=eviction))
    assert [(c[0], c[5], c[6]) for c in found.copies if c[5] < NEVER] == [(goes, 50, 55)]
    assert told(found, 3) == [(LOAD, 50, 95), (RUN, 95, 96)]


def test_pinned_and_busy_models_stay(simulate: Simulate) -> None:
    # model 0 is pinned, model 1 busy until 20: model 2 waits for that, then for the release
    models = [model(30, pinned=True), model(40), model(60, resident=())]
    found = simulate(node(models, tasks([0, 1], [1, 2], service_us=[20, 1])), FIFO)
    assert told(found, 1) == [(LOAD, 20, 85), (RUN, 85, 86)]
    assert [c[5] for c in found.copies] == [NEVER, 20, NEVER]


def test_as_few_as_needed_go(simulate: Simulate) -> None:
    # 3 x 30 are there; 35 more need 25 of them: one goes, the least recently used (model 1)
    models = [model(30), model(30), model(30), model(35, resident=())]
    work = tasks([0, 0, 0, 20], [0, 1, 2, 3], service_us=[9, 3, 6, 0])
    assert [c[5] for c in simulate(node(models, work), FIFO).copies] == [NEVER, 20, NEVER, NEVER]


def test_keep_alive(simulate: Simulate) -> None:
    # used until 10, kept for 20 us more, released 5 us later; the next task loads 40 bytes again
    work = tasks([0, 29, 60], service_us=[10, 1, 1])
    pieces = Pieces("first-fit", eviction="keep-alive", keep_alive_us=20)
    found = simulate(node([model(40)], work), pieces)
    assert found.left == [10, 30, 101]
    assert [(c[5], c[6]) for c in found.copies] == [(50, 55), (121, 126)]
    assert found.end == 126


# ---------------------------------------------------------------- preemption


ONE_SLOT = replace(NODE, max_tasks=1)
TWO_RANKS = tasks([0, 30], priority=[0, 1], service_us=[100, 20])


@pytest.mark.parametrize(
    "preemption",
    [Preemption("always", 0, 5, 7), Preemption("threshold", 70, 5, 7)],
    ids=["always", "70 left"],
)
def test_preemption(simulate: Simulate, preemption: Preemption) -> None:
    found = simulate(node([model(40)], TWO_RANKS, gpus=ONE_SLOT, preemption=preemption), FIFO)
    assert told(found, 1) == [(LOAD, 30, 35), (RUN, 35, 55)]
    assert told(found, 0) == [(LOAD, 0, 0), (RUN, 0, 30), (SAVE, 30, 35), (RESTORE, 55, 62), (RUN, 62, 132)]
    assert [s[3] for s in found.stages if s[0] == 0] == [WENT_ON, PREEMPTED, WENT_ON, WENT_ON, WENT_ON]


@pytest.mark.parametrize(
    "preemption", [Preemption("never"), Preemption("threshold", 71, 5, 7)], ids=["never", "too little left"]
)
def test_no_preemption(simulate: Simulate, preemption: Preemption) -> None:
    found = simulate(node([model(40)], TWO_RANKS, gpus=ONE_SLOT, preemption=preemption), FIFO)
    assert found.left == [100, 120]


def test_equal_priority_interrupts_nobody(simulate: Simulate) -> None:
    work = tasks([0, 30], priority=1, service_us=[100, 20])
    scenario = node([model(40)], work, gpus=ONE_SLOT, preemption=Preemption("always", 0, 5, 7))
    assert simulate(scenario, FIFO).left == [100, 120]


def test_preemption_that_needs_the_memory(simulate: Simulate) -> None:
    # 30: task 0 saves until 35, then its model is evicted until 40, then 60 bytes come: 100; the same again for task 0,
    # whose model comes back when task 1 is over: 110 + 5 + 70 = 185, + 7 of restoring
    models = [model(70), model(60, resident=())]
    work = tasks([0, 30], [0, 1], priority=[0, 1], service_us=[100, 10])
    found = simulate(node(models, work, preemption=Preemption("always", 0, 5, 7)), FIFO)
    assert told(found, 1) == [(LOAD, 30, 100), (RUN, 100, 110)]
    assert told(found, 0)[1:] == [(RUN, 0, 30), (SAVE, 30, 35), (RESTORE, 110, 192), (RUN, 192, 262)]
    assert [(c[0], c[2], c[3], c[5], c[6]) for c in found.copies] == [
        (0, 0, 0, 35, 40),
        (1, 30, 40, 110, 115),
        (0, 110, 115, NEVER, NEVER),
    ]
    assert next(s[6] for s in found.stages if s[2] == RESTORE) == 185


def test_the_cheapest_victims(simulate: Simulate) -> None:
    # GPU 0 has slots for two; the model of task 3 needs one of them. Lowest priority first, then the longest rest.
    work = tasks([0, 0, 30], 0, priority=[0, 0, 1], service_us=[50, 90, 5])
    gpus = replace(NODE, max_tasks=2)
    found = simulate(node([model(40)], work, gpus=gpus, preemption=Preemption("always", 0, 5, 7)), FIFO)
    # task 0 ends at 50, task 2 at 40, where task 1 is restored
    assert told(found, 2) == [(LOAD, 30, 35), (RUN, 35, 40)]
    assert told(found, 1)[1:] == [(RUN, 0, 30), (SAVE, 30, 35), (RESTORE, 40, 47), (RUN, 47, 107)]
    assert found.left == [50, 107, 40]


# ---------------------------------------------------------------- queue order


@pytest.mark.parametrize(
    ("order", "depth", "expected"),
    [
        # task 1 needs 60 bytes beside the busy 50: strict waits for it
        ("fifo", 16, [0, 1, 2, 3, 4]),
        # of the two behind it task 3 can go (task 2 needs 60 too), then at 50 task 4
        ("backfill", 2, [0, 3, 4, 1, 2]),
        # one behind it is task 2. When task 1 is placed (200) task 2 is the first blocked, for its slot; then task 3 is
        # the one behind it, and task 4 when that is done
        ("backfill", 1, [0, 1, 3, 4, 2]),
        # predicted: 9, 8, 3, 3
        ("shortest", 16, [0, 3, 4, 2, 1]),
    ],
)
def test_orders(simulate: Simulate, order: str, depth: int, expected: list[int]) -> None:
    models = [model(50), model(60, resident=(), max_tasks=1), model(10, resident=(), max_tasks=1)]
    work = tasks([0, 1, 2, 3, 50], [0, 1, 1, 2, 2], service_us=[200, 9, 8, 3, 3])
    found = simulate(node(models, work), Pieces("first-fit", order=order, depth=depth))
    assert [s[0] for s in found.stages if s[2] == LOAD] == expected


@pytest.mark.parametrize(("depth", "expected"), [(16, [0, 2, 4, 1, 3, 5]), (2, [0, 2, 1, 3, 4, 5])])
def test_merged_by_model(simulate: Simulate, depth: int, expected: list[int]) -> None:
    # models in turns, one task at a time: after a task of a model comes the next of the same, up to `depth` in a row
    work = tasks([0, 1, 2, 3, 4, 5], [0, 1, 0, 1, 0, 1], service_us=10)
    found = simulate(
        node([model(40), model(40)], work, gpus=ONE_SLOT), Pieces("first-fit", "by-model", depth=depth)
    )
    assert begun(found) == expected


def test_higher_priority_comes_first(simulate: Simulate) -> None:
    work = tasks([0, 1, 2, 3], priority=[0, 0, 1, 1], service_us=10)
    assert begun(simulate(node([model(40)], work, gpus=ONE_SLOT), FIFO)) == [0, 2, 3, 1]


# ---------------------------------------------------------------- placement


@pytest.mark.parametrize(
    ("placement", "gpu"),
    [
        # GPUs 0, 1, 2 have 30, 60, 45 bytes reserved; the task's model of 40 is on none of them
        ("first-fit", 0),
        ("best-fit", 1),
        ("worst-fit", 0),
        # GPU 0 has 30 us of work ahead, GPU 1 has 20, GPU 2 none
        ("predicted-fit", 2),
        # free goes from 70, 40, 55 to 30, 0, 15. Models of 30, 60, 45, 40 weigh 1 each; F adds free up for each that
        # does not fit. F before: 0 (70 takes all); 80 (60 and 45); 55 (60).
        # F after: 90 (60, 45 and 40 are more than 30); 0; 60 (all four are more than 15).
        # Growth 90, -80, 5.
        ("fgd", 1),
        # the last task went to GPU 1 (see below), so that GPU 2 is next
        ("round-robin-skip", 2),
        # row 2 of the table
        ("round-robin", 2),
    ],
)
def test_placements(simulate: Simulate, placement: str, gpu: int) -> None:
    models = [
        model(30, resident=(0,)),
        model(60, resident=(1,)),
        model(45, resident=(2,)),
        model(40, resident=()),
    ]
    work = tasks([0, 1, 2], [0, 1, 3], service_us=[32, 21, 5])
    found = simulate(node(models, work, gpus=replace(NODE, count=3)), Pieces(placement))
    assert served(found)[2][:2] == (2, gpu)


def test_blind_round_robin_waits_beside_an_idle_gpu(simulate: Simulate) -> None:
    # tasks 0 and 2 share GPU 0, task 1 is done at 2: blind waits until 50, skipping does not wait
    work = tasks([0, 1, 5], service_us=[50, 1, 10])
    scenario = node([model(40, resident=(0, 1))], work, gpus=replace(ONE_SLOT, count=2))
    blind, skipping = (
        simulate(scenario, Pieces("round-robin")),
        simulate(scenario, Pieces("round-robin-skip")),
    )
    assert blind.left[2] == 60
    assert skipping.left[2] == 15


def test_an_instance_comes_before_an_empty_gpu(simulate: Simulate) -> None:
    # GPU 1 holds the model; worst fit prefers an empty GPU only among those that need a load
    work = tasks([0], service_us=5)
    scenario = node([model(40, resident=(1,))], work, gpus=replace(NODE, count=3))
    assert served(simulate(scenario, Pieces("worst-fit"))) == [(0, 1, 0, 5)]


def test_slots_of_a_model(simulate: Simulate) -> None:
    # one task per copy: the second goes to a copy of its own on GPU 1, the third waits for the first
    work = tasks([0, 0, 0], service_us=[60, 60, 60])
    scenario = node([model(40, max_tasks=1)], work, gpus=replace(NODE, count=2))
    assert served(simulate(scenario, FIFO)) == [(0, 0, 0, 60), (1, 1, 40, 100), (2, 0, 60, 120)]


# ---------------------------------------------------------------- leaving, and the end


def test_deadlines(simulate: Simulate) -> None:
    # task 0 holds the slot until 50: task 1 leaves at 20; task 2 could begin at 50 but leaves then; task 3 is loading
    # from 50 on, which its deadline at 60 does not end
    models = [model(40), model(30, resident=())]
    work = tasks([0, 1, 2, 3], [0, 0, 0, 1], service_us=[50, 10, 10, 10], deadline_us=[NEVER, 20, 50, 60])
    found = simulate(node(models, work, gpus=ONE_SLOT), FIFO)
    assert found.state == [DONE, TIMED_OUT, TIMED_OUT, DONE]
    assert found.left == [50, 20, 50, 90]


def test_a_horizon_cuts(simulate: Simulate) -> None:
    work = tasks([0, 5, 60], service_us=50)
    found = simulate(node([model(40)], work, gpus=ONE_SLOT, until_us=50), FIFO)
    assert found.state == [ON_GPU, WAITING, WAITING]
    assert [s[3:6] for s in found.stages] == [(WENT_ON, 0, 0), (CUT, 0, 50)]
    assert found.left == [NEVER] * 3
    assert found.end == 50
