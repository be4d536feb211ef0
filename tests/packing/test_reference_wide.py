"""Models over several GPUs: the slow simulator against answers worked out by hand; the engine gives the same ones.

Every GPU has 100 bytes and a link of a byte per microsecond unless a test says otherwise.
"""

from dataclasses import replace

import pytest

from gpuplan.packing.model import NEVER, Admission, Contention, Pieces, Preemption, Retry
from gpuplan.packing.raw import DONE, FAILED, LOAD, REJECTED, RESTORE, RUN, SAVE
from gpuplan.packing.tasks import tasks
from packing.test_reference import (
    BYTE_PER_US,
    FIFO,
    NODE,
    Simulate,
    model,
    node,
    served,
    simulate,
    told,
)

TWO = replace(NODE, count=2)
THREE = replace(NODE, count=3)
FOUR = replace(NODE, count=4)
ALWAYS = Preemption("always", 0, 5, 7)


__all__ = ["simulate"]  # a fixture

# ---------------------------------------------------------------- parts and loads


def test_each_gpu_holds_a_part(simulate: Simulate) -> None:
    # 81 bytes over two GPUs are 41 on each: both arrive at 41, each over its own link
    found = simulate(node([model(81, resident=(), gpus=2)], tasks([0], service_us=10), gpus=TWO), FIFO)
    assert told(found, 0) == [(LOAD, 0, 41), (RUN, 41, 51)]
    assert found.copies == [(0, 0, 0, 0, 41, NEVER, NEVER, 1, 0)]
    assert found.sets == [(0, 1)]


def test_parts_share_the_disk(simulate: Simulate) -> None:
    # the disk gives a byte per us, half of it to each of two parts of 20: 40 us
    gpus = replace(TWO, host_bytes_per_s=10 * BYTE_PER_US, disk_bytes_per_s=BYTE_PER_US)
    found = simulate(node([model(40, resident=(), gpus=2)], tasks([0], service_us=10), gpus=gpus), FIFO)
    assert told(found, 0) == [(LOAD, 0, 40), (RUN, 40, 50)]


def test_every_part_frees_its_link_when_it_has_come(simulate: Simulate) -> None:
    # model 0: 30 bytes on each of GPUs 0 and 1; model 1: 20 bytes on GPU 0. GPU 1 has its part at 30; GPU 0 halves its
    # link until model 1 is there (20 / 0.5 = 40), when 10 of 30 are left: 50. Model 2 (20 bytes) begins on GPU 1 at 35,
    # whose link is free then: 55.
    models = [model(60, resident=(), gpus=2), model(20, resident=()), model(20, resident=(), pinned=True)]
    work = tasks([0, 0, 35], [0, 1, 2], service_us=9)
    gpus = replace(TWO, memory_bytes=60, host_cache=False)
    found = simulate(node(models, work, gpus=gpus), FIFO)
    assert found.sets == [(0, 1), (0,), (1,)]
    assert [c[4] for c in found.copies] == [50, 40, 55]


def test_a_part_that_has_come_frees_the_disk(simulate: Simulate) -> None:
    # disk 1 byte per us, links 0.5: model 0 has parts of 15 on GPUs 0, 1; model 1 15 on GPU 0. At first the disk gives
    # a third of a byte to each (333,333 per s), GPU 0's link a quarter to each of its two. After 46 us GPU 1 has its
    # part (46 x 0.333333 = 15.33; 45 us bring 14.999985). GPU 0 is bound by its link: 15 / 0.25 = 60 for both.
    gpus = replace(TWO, host_bytes_per_s=BYTE_PER_US // 2, disk_bytes_per_s=BYTE_PER_US)
    models = [model(30, resident=(), gpus=2), model(15, resident=()), model(15, resident=())]
    work = tasks([0, 0, 46], [0, 1, 2], service_us=1)
    found = simulate(node(models, work, gpus=replace(gpus, max_tasks=2)), FIFO)
    assert found.sets == [(0, 1), (0,), (1,)]
    # model 2 on GPU 1 from 46 on: the disk gives a third again, 333,333 per s, until 60, then its link 0.5:
    # 14 x 0.333333 = 4.666662, the other 10.333338 / 0.5 = 20.67: 81
    assert [c[4] for c in found.copies] == [60, 60, 81]


def test_it_is_in_host_memory_when_all_of_it_was_there(simulate: Simulate) -> None:
    # four GPUs of one slot; GPU 0's link is busy with model 1 until 60 (30 bytes at half speed), so that model 0 is
    # ready at 60 (its part of 30 on GPU 1 at 30). A second copy begun at 40 comes from disk, one at 61 would not.
    models = [model(60, resident=(), gpus=2, max_tasks=1), model(30, resident=())]
    for begin, from_disk in ((40, 1), (61, 0)):
        work = tasks([0, 0, begin], [0, 1, 0], service_us=100)
        found = simulate(node(models, work, gpus=FOUR), FIFO)
        assert found.sets == [(0, 1), (0,), (2, 3)]
        assert [c[4] for c in found.copies[:2]] == [60, 60]
        assert found.copies[2][7] == from_disk


def test_what_is_resident_lies_in_groups(simulate: Simulate) -> None:
    # GPUs 3, 0, 1, 2 in groups of two; one task at a time on each copy: the third waits
    models = [model(40, resident=(3, 0, 1, 2), gpus=2, max_tasks=1)]
    found = simulate(node(models, tasks([5, 5, 5], service_us=10), gpus=FOUR), FIFO)
    assert found.sets == [(0, 1), (2, 3)]
    assert [c[8] for c in found.copies] == [-1, -1]
    assert served(found) == [(0, 0, 5, 15), (1, 2, 5, 15), (2, 0, 15, 25)]


def test_parts_decide_what_can_never_fit(simulate: Simulate) -> None:
    # over two GPUs; a part needs ceil(ceil(131 / 2) x 1.5) = 99, + context 1 is 100; with 133: 67 x 1.5 = 100.5, too
    # much. Taken: 66 + 1 + 9 of workspace = 76; a token is ceil(3 / 2) = 2 bytes on each: 12 tokens fit, 13 do not.
    large = model(131, resident=(), gpus=2, context_bytes=1, workspace_bytes=9, kv_bytes_per_token=3)
    models = [large, replace(large, declared_bytes=133)]
    work = tasks([1, 2, 3], [0, 0, 1], tokens_in=[12, 12, 0], tokens_out=[0, 1, 0])
    found = simulate(node(models, work, gpus=TWO, admission=Admission(500_000, 0)), FIFO)
    assert found.state == [DONE, REJECTED, REJECTED]


# ---------------------------------------------------------------- memory that runs out


def test_a_load_that_does_not_fit_on_one_gpu(simulate: Simulate) -> None:
    # 40 on each of GPUs 0, 1; GPU 1 holds 70 that are declared as 50: one event, on GPU 1; GPU 0 is as it was, so that
    # 90 bytes of model 2 fit there at 10
    models = [
        model(80, resident=(), gpus=2),
        model(70, declared_bytes=50, resident=(1,)),
        model(90, resident=()),
    ]
    work = tasks([0, 10], [0, 2], service_us=1)
    found = simulate(node(models, work, gpus=TWO, retry=Retry(0)), FIFO)
    assert found.breaches == [(0, 1, -1, 0)]
    assert found.state == [FAILED, DONE]
    assert found.copies[0] == (0, 0, 0, 0, NEVER, 0, 0, 1, 0)
    assert told(found, 1) == [(LOAD, 10, 100), (RUN, 100, 101)]


def test_of_two_gpus_that_are_full_the_first_tells(simulate: Simulate) -> None:
    models = [model(80, resident=(), gpus=2), model(70, declared_bytes=50, resident=(0, 1))]
    found = simulate(node(models, tasks([3], service_us=1), gpus=TWO, retry=Retry(0)), FIFO)
    assert found.breaches == [(3, 0, -1, 0)]


def test_kv_lies_on_every_gpu(simulate: Simulate) -> None:
    # model 0: 30 bytes on each of GPUs 0 and 1, 3 bytes per token, so 2 on each; task 0 has 20 out in 40 us:
    # 30 + 2 x floor(t / 2) on each. GPU 1 holds 45 of model 1: 75 + 2 x 13 > 100 at 26 (24 at 24 and 25). GPU 0 has
    # 45 less and would never be full. Task 0 fails; on GPU 0, too, its memory is free at once.
    models = [model(60, resident=(0, 1), gpus=2, kv_bytes_per_token=3), model(45, resident=(1,))]
    work = tasks([0], service_us=40, tokens_out=20)
    found = simulate(node(models, work, gpus=TWO, retry=Retry(0)), FIFO)
    assert found.breaches == [(26, 1, 0, 0)]
    assert found.left == [26]


def test_a_wide_task_that_fails_frees_its_other_gpus(simulate: Simulate) -> None:
    # GPUs 0 and 1 hold 30 each of model 0 (wide, a byte per token and GPU); GPU 0 also 20 of model 1, GPU 1 30 of
    # model 2. At 10 the wide task 2 brings 30 tokens: 30 + 20 + 30 tokens of task 0 + 30 = 110 > 100 on GPU 0 and
    # 30 + 30 + 30 + 30 = 120 on GPU 1. It began last: it fails on GPU 0, after which GPU 1 has 90: one event.
    models = [
        model(60, resident=(0, 1), gpus=2, kv_bytes_per_token=2),
        model(20, resident=(0,), kv_bytes_per_token=1),
        model(30, resident=(1,), kv_bytes_per_token=1),
    ]
    work = tasks([0, 0, 10], [1, 2, 0], service_us=20, tokens_in=30)
    found = simulate(node(models, work, gpus=TWO, retry=Retry(0)), FIFO)
    assert found.breaches == [(10, 0, 2, 0)]
    assert found.left == [20, 20, 10]


def test_what_sleeps_sleeps_on_every_gpu(simulate: Simulate) -> None:
    # model 0 is evicted for model 1 on GPU 0 (50 + 60 > 100) and leaves 20 on each GPU; at 200 model 2 with 81 does
    # not fit beside that on GPU 1, with 80 it does
    for weights, state in ((81, FAILED), (80, DONE)):
        models = [model(100, resident=(0, 1), gpus=2, asleep_bytes=40), model(60, resident=(), pinned=True)]
        models.append(model(weights, resident=()))
        found = simulate(node(models, tasks([0, 200], [1, 2]), gpus=TWO, retry=Retry(0)), FIFO)
        assert found.copies[0][5:7] == (0, 5)
        assert found.sets == [(0, 1), (0,), (1,)]
        assert found.state == [DONE, state]


# ---------------------------------------------------------------- speed


@pytest.mark.parametrize(
    ("contention", "ends"),
    [
        (Contention("none"), [20, 20, 20]),
        # task 0 (wide) and 1 share GPU 0, 0 and 2 share GPU 1: half speed for all, 40
        (Contention("sharing"), [40, 40, 40]),
        # 1 / (1 + 3) = a quarter: 80
        (Contention("slowdown", 3.0), [80, 80, 80]),
    ],
)
def test_a_wide_task_is_in_the_way_on_each_gpu(
    simulate: Simulate, contention: Contention, ends: list[int]
) -> None:
    models = [model(40, resident=(0, 1), gpus=2), model(30, resident=(0,)), model(30, resident=(1,))]
    work = tasks([0, 0, 0], [0, 1, 2], service_us=20)
    assert simulate(node(models, work, gpus=TWO, contention=contention), FIFO).left == ends


def test_it_goes_as_its_slowest_gpu(simulate: Simulate) -> None:
    # GPU 1 has three tasks: floor(2^20 / 3) = 349,525 for each, so that they need a bit more than 60 us for their 20:
    # 61. Task 3 comes to GPU 0 at 30, where two run: it goes at half speed until 61 (15.5 us), then alone: 66. Task 0
    # gets no more than its third there.
    models = [model(40, resident=(0, 1), gpus=2), model(30, resident=(1,)), model(30, resident=(0,))]
    work = tasks([0, 0, 0, 30], [0, 1, 1, 2], service_us=20)
    found = simulate(node(models, work, gpus=TWO, contention=Contention("sharing")), FIFO)
    assert found.left == [61, 61, 61, 66]


# ---------------------------------------------------------------- slots


def test_slots_count_on_every_gpu(simulate: Simulate) -> None:
    # one task per GPU: the wide task 1 waits for task 0 on GPU 1, and task 2 (GPU 0, idle) behind it in strict order
    models = [model(40, resident=(1,)), model(40, resident=(0, 1), gpus=2), model(20, resident=(0,))]
    work = tasks([0, 1, 2], [0, 1, 2], service_us=[50, 10, 5])
    scenario = node(models, work, gpus=replace(TWO, max_tasks=1))
    assert simulate(scenario, FIFO).left == [50, 60, 65]
    # with backfill task 2 goes first
    assert simulate(scenario, Pieces("first-fit", "backfill")).left == [50, 60, 7]


# ---------------------------------------------------------------- where


@pytest.mark.parametrize(
    ("placement", "gpus"),
    [
        # reserved: 30, 60, 45, 0; 20 more on each of two
        ("first-fit", (0, 1)),
        # left: 50, 20, 35, 80
        ("best-fit", (1, 2)),
        ("worst-fit", (0, 3)),
        # ahead: 30, 20, 0, 0 us; of the GPUs without work 2 has less left
        ("predicted-fit", (2, 3)),
        # models need 30, 60, 45 and (a part) 20, weights 1. F of 70, 40, 55, 100 free: 0, 80, 55, 0; of 50, 20, 35, 80:
        # 50 (60 does not fit), 60 (30, 60, 45), 70 (60, 45), 0. Growth 50, -20, 15, 0.
        ("fgd", (1, 3)),
        # the last task went to GPU 1: GPU 2 and the next one
        ("round-robin-skip", (2, 3)),
        # row 2 of the table: GPU 2 and the next one
        ("round-robin", (2, 3)),
    ],
)
def test_the_best_gpus(simulate: Simulate, placement: str, gpus: tuple[int, ...]) -> None:
    models = [
        model(30, resident=(0,)),
        model(60, resident=(1,)),
        model(45, resident=(2,)),
        model(40, resident=(), gpus=2),
    ]
    work = tasks([0, 1, 2], [0, 1, 3], service_us=[32, 21, 5])
    found = simulate(node(models, work, gpus=FOUR), Pieces(placement))
    assert found.sets[-1] == gpus
    assert told(found, 2) == [(LOAD, 2, 22), (RUN, 22, 27)]


def test_gpus_without_evictions_come_first(simulate: Simulate) -> None:
    # GPUs 0 and 1 would need an eviction (70 + 40), GPU 2 not: GPU 2 and, of the others, the lowest
    models = [model(70, resident=(0, 1)), model(80, resident=(), gpus=2)]
    found = simulate(node(models, tasks([1], 1, service_us=5), gpus=THREE), FIFO)
    assert found.sets[-1] == (0, 2)
    assert [c[5] for c in found.copies] == [1, NEVER, NEVER]
    assert told(found, 0) == [(LOAD, 1, 46), (RUN, 46, 51)]


@pytest.mark.parametrize(
    ("placement", "gpu"),
    [
        ("first-fit", 0),
        # copies of 20 on each of GPUs 0, 1 and of 2, 3; beside them 0, 30 and 20, 20 are reserved: 80 + 50 and 60 + 60
        # are left
        ("best-fit", 2),
        ("worst-fit", 0),
        # ahead of it are 0 and 40 us on the GPUs of the first, 30 and 30 on those of the second: 40 against 30
        ("predicted-fit", 2),
        # nothing is claimed, so that F grows nowhere
        ("fgd", 0),
    ],
)
def test_the_best_copy(simulate: Simulate, placement: str, gpu: int) -> None:
    models = [model(40, resident=(3, 0, 1, 2), gpus=2)]
    models += [model(30, resident=(1,)), model(20, resident=(2,)), model(20, resident=(3,))]
    work = tasks([0, 0, 0, 2], [1, 2, 3, 0], service_us=[42, 32, 32, 5])
    assert served(simulate(node(models, work, gpus=FOUR), Pieces(placement)))[-1] == (3, gpu, 2, 7)


def test_blind_round_robin_goes_where_the_model_is(simulate: Simulate) -> None:
    # GPUs 1 and 2 hold the model. Task 0 would take GPUs 0 and 1, of which 1 has it; task 1 GPUs 1 and 2; task 2 2 and
    # 3; task 3 GPUs 3 and 0, where it is not: a new copy
    work = tasks([1, 1, 1, 1], service_us=10)
    found = simulate(node([model(40, resident=(1, 2), gpus=2)], work, gpus=FOUR), Pieces("round-robin"))
    assert found.sets == [(1, 2), (0, 3)]
    assert served(found) == [(0, 1, 1, 11), (1, 1, 1, 11), (2, 1, 1, 11), (3, 0, 21, 31)]


def test_blind_round_robin_waits_for_its_own(simulate: Simulate) -> None:
    # copies of one slot on GPUs 0, 1 and 2, 3; task 1 (GPUs 1, 2) is bound to the first, which task 0 keeps until 50
    models = [model(40, resident=(0, 1, 2, 3), gpus=2, max_tasks=1)]
    work = tasks([0, 1], service_us=[50, 10])
    assert served(simulate(node(models, work, gpus=FOUR), Pieces("round-robin"))) == [
        (0, 0, 0, 50),
        (1, 0, 50, 60),
    ]


def test_skipping_passes_gpus_that_have_no_room(simulate: Simulate) -> None:
    # GPU 1 has 70 bytes that stay. Parts of 40: from GPU 0 on, the next with room is 2. Parts of 45: GPU 1 has no room,
    # so from 2 on (85 there), and 3. Parts of 20: from 3 on (65), and 0 (60). Then 5 bytes on the GPU after 3, where
    # the last one was anchored: 0 again.
    models = [model(70, resident=(1,), pinned=True)]
    models += [model(2 * part, resident=(), gpus=2) for part in (40, 45, 20)]
    models.append(model(5, resident=()))
    found = simulate(node(models, tasks([1, 2, 3, 4], [1, 2, 3, 4]), gpus=FOUR), Pieces("round-robin-skip"))
    assert found.sets == [(1,), (0, 2), (2, 3), (0, 3), (0,)]


def test_the_second_walk_evicts(simulate: Simulate) -> None:
    # GPUs 0, 1, 2 hold idle models of 70, 10 and 70; parts of 40 fit on GPU 1 only, so that the second walk begins
    # again at GPU 0 (evicting) and takes the next one, 1
    models = [model(70, resident=(0, 2)), model(10, resident=(1,)), model(80, resident=(), gpus=2)]
    found = simulate(node(models, tasks([1], 2), gpus=THREE), Pieces("round-robin-skip"))
    assert found.sets == [(0,), (1,), (2,), (0, 1)]
    assert [c[5] for c in found.copies] == [1, NEVER, NEVER, NEVER]


# ---------------------------------------------------------------- eviction


def test_an_eviction_frees_all_gpus(simulate: Simulate) -> None:
    # model 0 (50 on each of GPUs 0, 1) goes at 10 for model 1 (60 on GPU 0): released at 15 on both, so that model 2
    # with 90 finds GPU 1 empty at 20
    models = [
        model(100, resident=(0, 1), gpus=2),
        model(60, resident=(), pinned=True),
        model(90, resident=()),
    ]
    found = simulate(node(models, tasks([10, 20], [1, 2], service_us=1), gpus=TWO), FIFO)
    assert found.copies == [
        (0, 0, 0, 0, 0, 10, 15, 0, -1),
        (1, 0, 10, 15, 75, NEVER, NEVER, 1, 0),
        (2, 1, 20, 20, 110, NEVER, NEVER, 1, 1),
    ]


def test_what_goes_for_one_gpu_counts_for_the_next(simulate: Simulate) -> None:
    # model 1 needs 40 on each of GPUs 0, 1. On GPU 0 lie model 0 (wide, 40 on each) and model 2 (30), on GPU 1 model 0
    # and model 3 (30, used least recently of all): 70 + 40 > 100 on both. Least recent first: on GPU 0 model 0 (used
    # until 4) before model 2 (until 6): 30 + 40 fits. On GPU 1 model 3 (2) would go first, but model 0 has gone.
    models = [
        model(80, resident=(0, 1), gpus=2),
        model(80, resident=(), gpus=2),
        model(30, resident=(0,)),
        model(30, resident=(1,)),
    ]
    work = tasks([0, 0, 0, 20], [0, 2, 3, 1], service_us=[4, 6, 2, 1])
    found = simulate(node(models, work, gpus=TWO), FIFO)
    assert [(c[0], c[5]) for c in found.copies] == [(0, 20), (2, NEVER), (3, NEVER), (1, NEVER)]
    assert told(found, 3) == [(LOAD, 20, 65), (RUN, 65, 66)]


def test_a_load_waits_for_evictions_on_all_gpus(simulate: Simulate) -> None:
    # GPU 1 holds a model that must go (released at 25); the part on GPU 0 could begin at 20 and does not
    models = [model(80, resident=(), gpus=2), model(70, resident=(1,))]
    found = simulate(node(models, tasks([20], service_us=1), gpus=TWO), FIFO)
    assert found.copies[1][2:5] == (20, 25, 65)


# ---------------------------------------------------------------- preemption


def test_a_wide_task_interrupts_on_its_gpus(simulate: Simulate) -> None:
    # one slot per GPU: task 2 needs those of tasks 0 and 1; both save 30-35, it runs 35-55, they are restored by 62
    models = [model(40, resident=(0, 1)), model(40, resident=(0, 1), gpus=2)]
    work = tasks([0, 0, 30], [0, 0, 1], priority=[0, 0, 1], service_us=[80, 100, 20])
    found = simulate(node(models, work, gpus=replace(TWO, max_tasks=1), preemption=ALWAYS), FIFO)
    assert told(found, 2) == [(LOAD, 30, 35), (RUN, 35, 55)]
    assert told(found, 0) == [(LOAD, 0, 0), (RUN, 0, 30), (SAVE, 30, 35), (RESTORE, 55, 62), (RUN, 62, 112)]
    assert told(found, 1)[1:4] == [(RUN, 0, 30), (SAVE, 30, 35), (RESTORE, 55, 62)]


def test_a_wide_victim_saves_on_all_its_gpus(simulate: Simulate) -> None:
    # task 1 interrupts the wide task 0 on GPU 0 at 30; GPU 1's slot, too, is taken until 35, when task 2 begins there
    models = [model(40, resident=(0, 1), gpus=2), model(40, resident=(0,)), model(40, resident=(1,))]
    work = tasks([0, 30, 31], [0, 1, 2], priority=[0, 1, 0], service_us=[100, 20, 9])
    found = simulate(node(models, work, gpus=replace(TWO, max_tasks=1), preemption=ALWAYS), FIFO)
    assert told(found, 1) == [(LOAD, 30, 35), (RUN, 35, 55)]
    # task 0 came first and is back at 35, but GPU 0 is taken until 55: strict order keeps task 2 behind it
    assert told(found, 0)[2:] == [(SAVE, 30, 35), (RESTORE, 55, 62), (RUN, 62, 132)]
    assert told(found, 2) == [(LOAD, 132, 132), (RUN, 132, 141)]


def test_one_wide_victim_is_cheaper_than_two(simulate: Simulate) -> None:
    # four GPUs of one slot: tasks 0, 1 on GPUs 0, 1, the wide task 2 on GPUs 2, 3. Judged alone every GPU costs one
    # victim, so that the lowest two are taken: two victims in all. A live copy of its model on GPUs 2, 3 takes one.
    models = [model(20, resident=(0, 1)), model(20, resident=(2, 3), gpus=2), model(20, resident=(), gpus=2)]
    work = tasks([0, 0, 0, 10], [0, 0, 1, 2], priority=[0, 0, 0, 1], service_us=[90, 80, 70, 20])
    gpus = replace(FOUR, max_tasks=1)
    found = simulate(node(models, work, gpus=gpus, preemption=ALWAYS), FIFO)
    assert [s[0] for s in found.stages if s[2] == SAVE] == [0, 1]
    assert found.sets[-1] == (0, 1)
    models[2] = replace(models[2], resident=(2, 3))
    found = simulate(node(models, work, gpus=gpus, preemption=ALWAYS), FIFO)
    assert [s[0] for s in found.stages if s[2] == SAVE] == [2]
    assert told(found, 3) == [(LOAD, 10, 15), (RUN, 15, 35)]


def test_a_victim_on_two_gpus_is_taken_once(simulate: Simulate) -> None:
    # the wide task 0 on GPUs 0 and 1 goes for a new copy of model 1 there, which needs its memory, too: 60 + 60 > 100.
    # Saved at 35, model 0 gone at 40, 60 bytes on each GPU by 100.
    models = [model(120, resident=(0, 1), gpus=2), model(120, resident=(), gpus=2)]
    work = tasks([0, 30], [0, 1], priority=[0, 1], service_us=[100, 10])
    found = simulate(node(models, work, gpus=TWO, preemption=ALWAYS), FIFO)
    assert told(found, 1) == [(LOAD, 30, 100), (RUN, 100, 110)]
    assert told(found, 0)[1:] == [(RUN, 0, 30), (SAVE, 30, 35), (RESTORE, 110, 182), (RUN, 182, 252)]
    assert [(c[0], c[2], c[3], c[5], c[6]) for c in found.copies] == [
        (0, 0, 0, 35, 40),
        (1, 30, 40, 110, 115),
        (0, 110, 115, NEVER, NEVER),
    ]
    assert next(s[6] for s in found.stages if s[2] == RESTORE) == 115 + 60
