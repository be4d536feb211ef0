"""The offered load: worked by hand, and what it says about runs."""

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

from gpuplan.packing.model import GIB, SECOND, Contention, Draw, Generate, Gpus, PackingScenario, ServedModel
from gpuplan.packing.offered import offered_load
from gpuplan.packing.raw import DONE
from gpuplan.packing.run import pack
from gpuplan.packing.tasks import tasks

CHAT = ServedModel("chat", 8 * GIB, 8 * GIB, popularity=3.0, resident=(0, 1))
RANK = ServedModel("rank", 2 * GIB, 2 * GIB, popularity=1.0, resident=(0, 1))

ALONE = Contention()


def scenario(
    rate: float, *, most: int | None = None, contention: Contention = ALONE, **more: Any
) -> PackingScenario:
    """Two GPUs, tasks of 3 s."""
    return PackingScenario(
        "s",
        Gpus(2, 80 * GIB, max_tasks=most),
        (CHAT, RANK),
        contention=contention,
        generate=Generate(rate, 1_000, Draw(3.0, 1.0)),
        **more,
    )


@pytest.mark.parametrize(
    ("most", "contention", "speed"),
    [
        (1, Contention("none"), 1.0),  # a task at a time and GPU
        (4, Contention("none"), 4.0),
        (None, Contention("none"), inf),  # all at once: no queue ever
        (4, Contention("sharing"), 1.0),
        (None, Contention("sharing"), 1.0),
        (4, Contention("slowdown", 0.5), 4 / 2.5),
        (None, Contention("slowdown", 0.25), 4.0),  # n / (1 + beta (n - 1)) goes to 1 / beta
        (None, Contention("slowdown", 0.0), inf),
        (8, Contention("slowdown", 2.0), 1.0),  # one after the other is the fastest
    ],
)
def test_the_load_is_work_over_the_highest_speed(
    most: int | None, contention: Contention, speed: float
) -> None:
    """At 2 tasks of 3 s a second two GPUs of speed 1 have a load of 3."""
    assert offered_load(scenario(2.0, most=most, contention=contention)) == pytest.approx(3 / speed)


def test_a_model_that_takes_few_tasks_may_be_what_is_overloaded() -> None:
    """Three of four tasks are chats: 2 x 0.75 x 3 / 2 = 2.25 of one chat at a time and GPU; 3 of 1 + 3 side by side."""
    asked = scenario(2.0)
    few = replace(asked, models=(replace(CHAT, max_tasks=1), replace(RANK, max_tasks=3)))
    assert offered_load(few) == pytest.approx(2.25)
    assert offered_load(replace(few, models=(few.models[0], RANK))) == pytest.approx(2.25)
    even = replace(few, models=(replace(CHAT, max_tasks=3), replace(RANK, max_tasks=1)))
    assert offered_load(even) == pytest.approx(max(3 / 4, 2.25 / 3, 0.75))


def test_models_that_no_gpu_holds_do_not_count_nor_do_tasks_of_a_file() -> None:
    asked = scenario(2.0, most=1)
    large = replace(RANK, declared_bytes=90 * GIB)
    assert offered_load(replace(asked, models=(CHAT, large))) == pytest.approx(2.25)
    assert offered_load(replace(asked, models=(large,))) == 0
    assert offered_load(replace(asked, tasks=tasks([0], service_us=9 * SECOND))) == 0


@pytest.mark.parametrize("load", [0.7, 1.5])
def test_from_a_load_of_1_on_the_backlog_grows_with_time(load: float) -> None:
    """At a load of 1.5 the GPUs do two thirds of what comes; at 0.7 hardly anything is left at any time."""
    count = 4_000
    asked = replace(scenario(2 / 3 * load, most=1), generate=Generate(2 / 3 * load, count, Draw(3.0, 1.0)))
    assert offered_load(asked) == pytest.approx(load)
    run = pack(asked, "first-fit")
    arrival, left = run.problem.tasks.arrival_us, run.raw.left_us
    assert (run.raw.state == DONE).all()
    backlog = [int((arrival <= t).sum() - (left <= t).sum()) for t in np.linspace(0, arrival[-1], 9)[1:]]
    if load < 1:
        assert max(backlog) < 60
    else:
        grown = np.arange(1, 9) / 8 * count * (1 - 1 / load)
        assert backlog == pytest.approx(grown, rel=0.25)
