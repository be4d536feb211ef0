"""Memory of GPUs over time, against values worked out by hand and against sums instant by instant."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpuplan.packing.memory import Memory
from gpuplan.packing.model import GIB, NEVER, Contention, Gpus
from gpuplan.packing.problem import Problem
from gpuplan.packing.progress import SCALE, Progress, Service, speeds
from gpuplan.packing.raw import DONE, LOAD, ON_GPU, RUN, WENT_ON, RawPack
from gpuplan.packing.tasks import tasks
from packing.by_hand import CUT, out_of_memory, preempted, problem_of, raw_of


def every_instant(problem: Problem, raw: RawPack) -> Any:
    """Values of GPU 0 at all whole microseconds."""
    return Memory(problem, raw).at(0, np.arange(raw.end_us + 1))


def test_a_preempted_run() -> None:
    """Weights, KV and leftovers of the story in `preempted`, instant by instant."""
    now = every_instant(*preempted())
    # small 45 from its load to its release at 21, then 3 asleep until it is loaded at 41; large 70 from 21 to 41
    assert now.actual[0:4].tolist() == [45] * 4
    # 10 tokens in, and floor(10 x done / 20) = floor(done / 2)
    assert now.actual[4:11].tolist() == [55, 55, 56, 56, 57, 57, 58]
    assert now.actual[11:16].tolist() == [58] * 5  # frozen while it is saved
    assert now.actual[16:21].tolist() == [45] * 5
    assert now.actual[21:41].tolist() == [73] * 20
    assert now.asleep[21:41].tolist() == [3] * 20
    assert now.actual[41:45].tolist() == [45] * 4
    assert now.actual[45:47].tolist() == [58, 58]
    assert now.actual[47:61].tolist() == [58, 58, 59, 59, 60, 60, 61, 61, 62, 62, 63, 63, 64, 64]
    assert now.actual[61] == 45
    # small is reserved 0-21, large 10-41, small again from 36
    assert now.reserved[[0, 9, 10, 20, 21, 35, 36, 40, 41, 61]].tolist() == (
        [40, 40, 110, 110, 70, 70, 110, 110, 40, 40]
    )
    assert now.useful[[3, 4, 9, 10, 27, 28, 35, 36, 46, 47, 60, 61]].tolist() == (
        [0, 55, 57, 0, 0, 70, 70, 0, 0, 58, 64, 0]
    )


def test_profiles_are_the_same_at_their_instants() -> None:
    problem, raw = preempted()
    memory, now = Memory(problem, raw), every_instant(problem, raw)
    profile = memory.profile(0)
    assert profile.first.time_us.tolist() == [0, 4, 10, 16, 21, 28, 36, 41, 45, 47, 61]
    assert profile.last.time_us.tolist() == [3, 9, 15, 20, 27, 35, 40, 44, 46, 60, 61]
    for side in (profile.first, profile.last):
        for name in ("reserved", "actual", "useful", "asleep", "kv"):
            assert getattr(side, name).tolist() == getattr(now, name)[side.time_us].tolist()
    # inside a stretch nothing falls, so the peak is at an end of one
    assert profile.peak == now.actual.max() == 73


def test_memory_that_ran_out() -> None:
    now = every_instant(*out_of_memory())
    assert now.actual[[4, 5, 6, 11, 12, 22, 23, 24, 32, 51, 52]].tolist() == (
        # 12: the second task has failed: 45 + 5 + floor(8 / 2); 22: it fails at once; 51: 45 + 5 + floor(19 / 2)
        [50, 50, 56, 60, 54, 59, 59, 45, 50, 59, 45]
    )
    assert now.actual.max() == 60


def test_what_is_cut_by_the_end_is_there_at_the_end() -> None:
    problem = problem_of(tasks([0], service_us=100, tokens_in=7), until_us=10)
    raw = raw_of(
        [(0, 0, LOAD, WENT_ON, 0, 4), (0, 0, RUN, CUT, 4, 10)],
        [(0, 0, 0, 0, 4, NEVER, NEVER, 1, 0)],
        [ON_GPU],
        [NEVER],
        10,
    )
    assert every_instant(problem, raw).actual.tolist() == [45] * 4 + [52] * 7


def test_a_copy_that_is_loaded_while_the_older_one_goes_leaves_nothing_asleep() -> None:
    """Evicted at 10, gone at 15; the next one is in memory from 12 on: 2 x 45 until 15, then 45 and no leftover."""
    problem = problem_of(tasks([0, 12], service_us=6))
    raw = raw_of(
        [
            (0, 0, LOAD, WENT_ON, 0, 4),
            (0, 0, RUN, WENT_ON, 4, 10),
            (1, 0, LOAD, WENT_ON, 12, 16),
            (1, 0, RUN, WENT_ON, 16, 22),
        ],
        [(0, 0, 0, 0, 4, 10, 15, 1, 0), (0, 0, 12, 12, 16, 22, 27, 0, 1)],
        [DONE, DONE],
        [10, 22],
        30,
    )
    now = every_instant(problem, raw)
    assert now.actual[[11, 12, 14, 15, 26, 27, 30]].tolist() == [45, 90, 90, 45, 45, 3, 3]


def test_a_load_that_failed_was_never_in_memory() -> None:
    problem = problem_of(tasks([0], service_us=6))
    raw = raw_of(
        [(0, 0, LOAD, 2, 0, 0)], [(0, 0, 0, 0, NEVER, 0, 0, 1, 0)], [2], [0], 5, [1], [(0, 0, -1, 0)]
    )
    assert every_instant(problem, raw).actual.tolist() == [0] * 6
    assert not Memory(problem, raw).loaded.any()


@pytest.mark.parametrize(
    ("contention", "said"),
    [
        (Contention("none"), [SCALE, SCALE, SCALE, SCALE]),
        (Contention("sharing"), [SCALE, SCALE, SCALE // 2, SCALE // 3]),
        # 2 ** 20 / 1.15 = 911805.2...; / 1.3 = 806596.9...
        (Contention("slowdown", 0.15), [SCALE, SCALE, 911805, 806596]),
    ],
)
def test_speeds(contention: Contention, said: list[int]) -> None:
    assert speeds(contention, np.arange(4)).tolist() == said


def test_speeds_are_never_0() -> None:
    many = np.array([1 << 30])
    assert speeds(Contention("sharing"), many).tolist() == [1]
    assert speeds(Contention("slowdown", 1e9), many).tolist() == [1]


def shared() -> tuple[Problem, RawPack]:
    """Two tasks of 10 and 6 us share a GPU, and what an interrupted one had.

    0 runs 0-16: alone 0-2, shared 2-14 (6 done), alone 14-16. 1 runs 2-14.
    """
    problem = problem_of(
        tasks([0, 2], service_us=[10, 6], tokens_in=1, tokens_out=[10, 3]), contention=Contention("sharing")
    )
    raw = raw_of(
        [
            (0, 0, LOAD, WENT_ON, 0, 0),
            (0, 0, RUN, WENT_ON, 0, 16),
            (1, 0, LOAD, WENT_ON, 2, 2),
            (1, 0, RUN, WENT_ON, 2, 14),
        ],
        [(0, 0, 0, 0, 0, NEVER, NEVER, 0, -1)],
        [DONE, DONE],
        [16, 14],
        20,
    )
    return problem, raw


def test_shared_gpus() -> None:
    problem, raw = shared()
    progress = Progress(problem, raw)
    done = progress.at(np.full(17, 1), np.arange(17)) / SCALE
    assert done.tolist() == [0, 1, *(2 + k / 2 for k in range(12)), 8, 9, 10]
    assert (progress.gained / SCALE).tolist() == [0, 10, 0, 6]
    now = every_instant(problem, raw)
    # 1 + floor(10 x 3 / 10) of the first at 4, and 1 + floor(3 x 1 / 6) of the second
    assert now.kv[[1, 2, 4, 13, 14, 15, 16]].tolist() == [2, 4, 5, 8 + 3, 9, 10, 0]


@pytest.mark.parametrize("story", [preempted, out_of_memory, shared])
def test_sums_over_time(story: Any) -> None:
    """Sums over instants, and the formulas: KV without steps lies at most one token per running task above."""
    problem, raw = story()
    memory, now = Memory(problem, raw), every_instant(problem, raw)
    sums = memory.byte_us()
    assert sums["reserved"] == now.reserved[:-1].sum()
    running = np.zeros(raw.end_us, np.int64)
    for k in np.flatnonzero(raw.stages.kind == RUN):
        running[raw.stages.start_us[k] : raw.stages.end_us[k]] += 1
    for name in ("actual", "useful"):
        exact = int(getattr(now, name)[:-1].sum())
        assert exact - 1e-6 <= sums[name] <= exact + running.sum()


@pytest.mark.parametrize(
    "contention", [Contention("none"), Contention("sharing"), Contention("slowdown", 0.3)]
)
def test_sums_of_service(contention: Contention) -> None:
    """Against sums instant by instant."""
    rng = np.random.default_rng(4)
    start = rng.integers(0, 300, 40)
    end = start + rng.integers(1, 60, 40)
    gpu = Service.of_runs(contention, start, end)
    found = gpu.summed(start, end)
    for k in range(40):
        instants = np.arange(start[k], end[k])
        exact = (gpu.at(instants) - gpu.at(instants[:1])) / SCALE
        assert found[k] == pytest.approx(exact.sum(), rel=1e-9, abs=1e-6)


def test_what_still_fits() -> None:
    """At 5: 40 of 100 reserved; small (40) fits into 60, large (70) does not. At 10 nothing does: 110 are reserved."""
    problem, raw = preempted()
    memory = Memory(problem, raw)
    assert memory.largest_fit(5) == (0, 0, 60)
    assert memory.largest_fit(12) == (-1, 0, -10)
    assert memory.largest_fit(50) == (0, 0, 60)
    assert Memory(problem_of(tasks([0])), raw_of([], [], [DONE], [0], 0)).largest_fit(0) == (1, 0, 100)


def test_what_is_free_by_the_monitor() -> None:
    """Large is pending at 12: 100 - 58 in memory - 70 waiting for it."""
    problem, raw = preempted()
    scenario = problem.scenario
    watched = replace(scenario, admission=replace(scenario.admission, on="free"))
    memory = Memory(replace(problem, scenario=watched), raw)
    assert memory.free(0, 12) == -28
    assert memory.free(0, 21) == 27  # 70 are there, and 3 asleep


def test_fragments() -> None:
    """Needs 40 and 70, equally popular: of 39 free all is lost, of 40 to 69 half, from 70 on nothing."""
    problem, raw = preempted()
    lost = Memory(problem, raw).fragments(np.array([-5, 0, 39, 40, 69, 70, 100]))
    assert lost.tolist() == [0, 0, 39, 20, 34.5, 0, 0]


def test_gpus_are_apart() -> None:
    problem = problem_of(tasks([0], service_us=6), count=2)
    raw = raw_of(
        [(0, 1, LOAD, WENT_ON, 0, 4), (0, 1, RUN, WENT_ON, 4, 10)],
        [(0, 1, 0, 0, 4, NEVER, NEVER, 1, 0)],
        [DONE],
        [10],
        10,
    )
    memory = Memory(problem, raw)
    assert memory.at(0, np.arange(11)).actual.tolist() == [0] * 11
    assert memory.at(1, np.arange(11)).actual.tolist() == [45] * 11
    when, free = memory.free_over_time()
    assert when.tolist() == [0]
    assert [f.tolist() for f in free] == [[100], [60]]


def test_large_numbers_do_not_wrap() -> None:
    """2 ** 20 tokens in and out of a service of 2 ** 40 us, 80 GiB: exact at the last instant."""
    problem = problem_of(
        tasks([0], service_us=1 << 40, tokens_in=1 << 20, tokens_out=1 << 20),
        contention=Contention("sharing"),
    )
    problem = replace(problem, scenario=replace(problem.scenario, gpus=Gpus(1, 80 * GIB)))
    raw = raw_of(
        [(0, 0, LOAD, WENT_ON, 0, 4), (0, 0, RUN, WENT_ON, 4, 4 + (1 << 40))],
        [(0, 0, 0, 0, 4, NEVER, NEVER, 1, 0)],
        [DONE],
        [4 + (1 << 40)],
        4 + (1 << 40),
    )
    last = Memory(problem, raw).at(0, np.array([3 + (1 << 40)]))
    assert last.kv.tolist() == [(1 << 21) - 1]
