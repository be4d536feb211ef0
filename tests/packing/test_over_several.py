"""Models over several GPUs in books, memory, figures, tables and sentences, against a run worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.packing import tables
from gpuplan.packing.figures import figures
from gpuplan.packing.ledger import ledger
from gpuplan.packing.memory import Memory
from gpuplan.packing.model import (
    GIB,
    NEVER,
    Contention,
    Draw,
    Generate,
    Gpus,
    PackingScenario,
    Pieces,
    ServedModel,
)
from gpuplan.packing.offered import offered_load
from gpuplan.packing.problem import Problem
from gpuplan.packing.progress import SCALE, Progress, Service, merged
from gpuplan.packing.raw import DONE, LOAD, RUN, WENT_ON, RawPack
from gpuplan.packing.spread import copies_on, gpus_of, sets_of, stages_on
from gpuplan.packing.tasks import tasks
from packing.by_hand import SMALL, problem_of, run_of
from packing.over_two import HUGE, WIDE, over_two, wide_raw


def test_what_is_on_which_gpu() -> None:
    _, raw = over_two()
    copy, gpu = copies_on(raw.copies)
    assert list(zip(copy.tolist(), gpu.tolist(), strict=True)) == (
        [(0, 0), (0, 1), (1, 1), (2, 0), (3, 0), (3, 1)]
    )
    stage, gpu = stages_on(raw)
    assert stage.tolist() == [0, 0, 1, 1, 2, 3, 4, 5, 6, 6, 7, 7]
    assert gpu.tolist() == [0, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1]
    assert [gpus_of(raw.copies, c) for c in range(4)] == [[0, 1], [1], [0], [0, 1]]
    which, sets = sets_of(raw.copies)
    assert (which.tolist(), sets) == ([0, -1, -1, 0], [[0, 1]])


def test_a_task_goes_at_the_least_speed_of_its_gpus() -> None:
    problem, raw = over_two()
    progress = Progress(problem, raw)
    done = progress.at(np.full(27, 1), np.arange(4, 31)) / SCALE
    assert done.tolist() == [*range(11), *(10 + k / 2 for k in range(1, 13)), 17, 18, 19, 20]
    assert (progress.gained / SCALE).tolist() == [0, 20, 0, 6, 0, 6, 0, 2]
    assert [gpu.running[np.searchsorted(gpu.time_us, 20, "right") - 1] for gpu in progress.gpus] == [1, 2]


def test_memory_is_held_on_each_gpu() -> None:
    problem, raw = over_two()
    first, second = (Memory(problem, raw).at(g, np.arange(72)) for g in range(2))
    # 45 of the copy, 10 tokens in and floor(done / 2) of 1 byte each; 3 are left from 37 to the load at 65
    assert first.actual[[0, 3, 4, 6, 14, 26, 29, 30, 36, 37, 46, 64, 65, 71]].tolist() == (
        [45, 45, 55, 56, 60, 63, 64, 45, 45, 93, 93, 93, 45, 45]
    )
    # GPU 1 has the small model, 45, from 10 on
    assert second.actual[[0, 9, 10, 14, 26, 29, 30, 36, 37, 64, 65, 71]].tolist() == (
        [45, 57, 102 + 1, 105, 108, 109, 90, 90, 48, 48, 90, 90]
    )
    assert first.reserved[[0, 31, 32, 36, 37, 59, 60, 64, 65]].tolist() == [
        40,
        40,
        130,
        130,
        90,
        90,
        130,
        130,
        40,
    ]
    assert second.reserved[[0, 9, 10, 36, 37, 59, 60, 71]].tolist() == [40, 40, 80, 80, 40, 40, 80, 80]
    assert first.asleep[[36, 37, 64, 65]].tolist() == second.asleep[[36, 37, 64, 65]].tolist() == [0, 3, 3, 0]
    assert first.useful[[3, 4, 29, 30, 46, 69]].tolist() == [0, 55, 64, 0, 90, 45]
    assert second.useful[[3, 4, 14, 26, 30, 69]].tolist() == [0, 55, 105, 63, 0, 45]


def test_sums_and_changes_agree_with_every_instant() -> None:
    problem, raw = over_two()
    memory = Memory(problem, raw)
    sums, exact = memory.byte_us(), dict.fromkeys(("reserved", "actual", "useful"), 0)
    for g in range(2):
        now = memory.at(g, np.arange(72))
        for name in exact:
            exact[name] += int(getattr(now, name)[:-1].sum())
        profile = memory.profile(g)
        for side in (profile.first, profile.last):
            assert side.actual.tolist() == now.actual[side.time_us].tolist()
        assert (memory.ceiling(g, np.arange(72)) >= now.actual).all()
    assert sums["reserved"] == exact["reserved"]
    for name in ("actual", "useful"):
        # tokens grow without steps: less than one more on each of two GPUs while it runs
        assert exact[name] <= sums[name] <= exact[name] + 2 * 28


def test_figures_count_a_task_on_each_of_its_gpus_and_a_copy_once() -> None:
    problem, raw = over_two()
    found, us = figures(problem, raw), 1e-6
    books = ledger(problem, raw)
    assert books.latency.tolist() == [30, 16, 20, 11]  # once per task
    assert books.service.tolist() == [26, 12, 6, 2]
    # GPU 0: 4-30, 46-52, 69-71; GPU 1: 4-30, 69-71
    assert found["busy"] == pytest.approx((26 + 6 + 2 + 26 + 2) / (2 * 71))
    # loads 2 x 4, 4, 9, 2 x 4
    assert found["wasted_gpu_seconds"] == pytest.approx((8 + 4 + 9 + 8) * us)
    assert found["load"] == pytest.approx((2 * 20 + 6 + 6 + 2 * 2) / (2 * 60))
    assert (found["loads"], found["reloads"], found["evictions"]) == (4, 1, 2)
    assert found["cold_share"] == 1.0


def test_what_still_fits_looks_at_as_many_gpus_as_a_model_has() -> None:
    problem, raw = over_two()
    memory = Memory(problem, raw)
    # at 50: 35 and 85 of 125 are unreserved. The wide model needs 40 on two GPUs; small (40) fits, huge (90) does not
    assert (memory.free(0, 50), memory.free(1, 50)) == (35, 85)
    assert memory.largest_fit(50) == (0, 1, 85)
    # at 31: 85 and 45, so that the wide one fits (80 in all)
    assert memory.largest_fit(31) == (2, 0, 85)
    free = replace(
        problem, scenario=replace(problem.scenario, admission=replace(problem.scenario.admission, on="free"))
    )
    # at 62 wide is claimed and not there: 125 - 93 - 40, and 125 - 48 - 40
    assert [Memory(free, raw).free(g, 62) for g in range(2)] == [-8, 37]


def test_service_at_the_least_speed_inside_runs() -> None:
    """Against the least speed at every instant, for random runs on three GPUs."""
    rng = np.random.default_rng(7)
    for contention in (Contention("sharing"), Contention("slowdown", 0.4)):
        wide = rng.integers(0, 300, 12)
        ends = wide + rng.integers(1, 50, 12)
        gpus = []
        for _ in range(3):
            start = rng.integers(0, 300, 15)
            end = start + rng.integers(1, 60, 15)
            gpus.append(Service.of_runs(contention, np.append(start, wide), np.append(end, ends)))
        least = Service.least_of(gpus, wide, ends)
        speeds = np.stack([np.diff(gpu.at(np.arange(400))) for gpu in gpus]).min(axis=0)
        upto = np.append(0, np.cumsum(speeds))
        assert (least.at(ends) - least.at(wide)).tolist() == (upto[ends] - upto[wide]).tolist()
        exact = [((upto[a:b] - upto[a]) / SCALE).sum() for a, b in zip(wide, ends, strict=True)]
        assert least.summed(wide, ends) == pytest.approx(exact, rel=1e-9, abs=1e-6)


def test_spans_that_overlap_or_touch_are_merged() -> None:
    start, end = merged(np.array([5, 0, 9, 20]), np.array([9, 3, 12, 21]))
    assert (start.tolist(), end.tolist()) == ([0, 5, 20], [3, 12, 21])
    assert [len(part) for part in merged(np.zeros(0, np.int64), np.zeros(0, np.int64))] == [0, 0]


def test_offered_load_counts_a_task_on_each_of_its_gpus() -> None:
    """2 tasks/s of 3 s on 5 GPUs without company: half of them over 2 GPUs."""
    models = (ServedModel("one", GIB, GIB, max_tasks=1), ServedModel("two", GIB, GIB, max_tasks=1, gpus=2))
    scenario = PackingScenario(
        "x", Gpus(5, 80 * GIB, max_tasks=1), models, generate=Generate(2.0, 10, Draw(3.0))
    )
    # of all GPUs 6 x (1 + 2) / 2 / 5 = 1.8; the wide one alone has two places for 3 s of work per s
    assert offered_load(scenario) == pytest.approx(1.8)
    many = replace(scenario, gpus=replace(scenario.gpus, max_tasks=None))
    # two copies at a time (on 4 of 5 GPUs), a task each: 3 / 2
    assert offered_load(many) == pytest.approx(1.5)


def test_tables_name_every_gpu() -> None:
    run = run_of(*over_two())
    table = run.tasks
    assert table["gpu"].tolist() == [0, 1, 0, 0]
    assert table["gpus"].tolist() == ["0 1", "1", "0", "0 1"]
    assert run.to_frame()["gpus"].tolist() == ["0 1", "0 1", "1", "1", "0", "0", "0 1", "0 1"]
    copies = tables.copies(run)
    assert copies["gpus"].tolist() == ["0 1", "1", "0", "0 1"]
    assert (copies["gib"] * GIB).tolist() == pytest.approx([90, 45, 90, 90])  # of all its GPUs together
    assert (copies["reserved_gib"] * GIB).tolist() == pytest.approx([80, 40, 90, 80])
    assert run.models["loads"].tolist() == [1, 1, 2]


# ------------------------------------------------------------------------------- sentences


@pytest.mark.parametrize(
    ("task", "t", "said"),
    [
        (0, 2, "is on GPUs 0 and 1 and its model loads from disk (40 bytes on each of 2 GPUs), 2 us more."),
        # 13 of 20 us are done
        (0, 20, "runs on GPUs 0 and 1 for 16 us so far, beside 1 other; 65% of its service is done."),
        (1, 20, "runs on GPU 1 for 6 us so far, beside 1 other; 50% of its service is done."),
        (2, 33, "is on GPU 0 and waits for 45 bytes on each of 2 GPUs of wide to be freed."),
        (3, 62, "is on GPUs 0 and 1 and waits for 90 bytes of huge to be freed."),
    ],
)
def test_sentences_of_tasks_on_gpus(task: int, t: int, said: str) -> None:
    run = run_of(*over_two())
    name = ("wide", "small", "huge", "wide")[task]
    assert run.why(task, t / 1e6) == f"Task {task} ({name}) {said}"


def waits_for_two() -> tuple[Problem, RawPack]:
    """Three GPUs of 125: huge runs on GPU 0 and on GPU 1, so that two wide ones wait until it ends on GPU 0 at 50."""
    made = tasks([0, 0, 10, 11], [1, 1, 2, 2], service_us=[41, 91, 6, 6])
    problem = problem_of(made, count=3, memory=125, models=(SMALL, HUGE, WIDE))
    stages: list[tuple[int, ...]] = [
        (0, 0, LOAD, WENT_ON, 0, 9, 0),
        (1, 1, LOAD, WENT_ON, 0, 9, 1),
        (0, 0, RUN, WENT_ON, 9, 50, 0),
        (1, 1, RUN, WENT_ON, 9, 100, 1),
        (2, 0, LOAD, WENT_ON, 50, 59, 2),
        (3, 0, LOAD, WENT_ON, 50, 59, 2),
        (2, 0, RUN, WENT_ON, 59, 65, 2),
        (3, 0, RUN, WENT_ON, 59, 65, 2),
    ]
    copies: list[tuple[int, ...]] = [
        (1, 0, 0, 0, 9, 50, 55, 1, 0),
        (1, 1, 0, 0, 9, NEVER, NEVER, 1, 1),
        (2, 0, 50, 55, 59, NEVER, NEVER, 1, 2),
    ]
    return problem, wide_raw(stages, copies, [0, 1, 0, 2], [0, 1, 2, 4], [DONE] * 4, [50, 100, 65, 65], 100)


def test_sentences_of_tasks_that_wait_for_several_gpus() -> None:
    problem, raw = waits_for_two()
    run = run_of(problem, raw)
    needs = "needs 40 bytes on each of 2 GPUs"
    assert run.why(2, 20e-6) == (
        f"Task 2 (wide) has waited 10 us. It is first of 2 in line. It {needs}; the most that could be made free on as "
        "many is 35 bytes each, on GPUs 0 and 2."
    )
    assert run.why(3, 20e-6) == (
        "Task 3 (wide) has waited 9 us. It is number 2 of 2 in line; task 2 (wide) is first, and nobody may pass it. "
        f"That one {needs}; the most that could be made free on as many is 35 bytes each, on GPUs 0 and 2."
    )
    # blindly, row 2 goes to GPU 2 and 0, row 3 to GPU 0 and 1
    blind = run_of(problem, raw, Pieces("round-robin", "fifo", "lru"), "round-robin")
    assert blind.why(3, 20e-6) == (
        f"Task 3 (wide) has waited 9 us. It {needs}; the most that could be made free on as many is 35 bytes each, on "
        "GPUs 0 and 1."
    )
    # with one task on a GPU at most, GPU 2 alone can take it
    full = replace(
        problem, scenario=replace(problem.scenario, gpus=replace(problem.scenario.gpus, max_tasks=1))
    )
    assert run_of(full, raw).why(2, 20e-6) == (
        f"Task 2 (wide) has waited 10 us. It is first of 2 in line. It {needs}; 1 GPU can take it now; 2 GPUs have no "
        "place for another task."
    )
