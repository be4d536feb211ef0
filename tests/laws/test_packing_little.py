"""L = lambda W: of the queue, of all that is in the system, and of each tenant; on a node with everything going on.

Four GPUs, six models that do not all fit, four tenants, loads, evictions, slots and contention. L is counted at
100,000 instants, evenly spread; lambda is what the arrivals were drawn with; W is the mean over the 200,000 tasks; the
three standard errors are of batch means of both sides of the equation.
"""

import math

import numpy as np
import pytest

from gpuplan.packing.model import Contention, Gpus, ServedModel
from gpuplan.packing.tasks import tasks
from laws.packing_runs import MEAN, Numbers, Seen, Whole, arrivals, exponential, mean_and_error, serve

RATE, SIGHTS, N = 8.0, 100_000, 200_000
TENANTS = {"a": 0.5, "b": 0.3, "c": 0.15, "d": 0.05}


@pytest.fixture(scope="module")
def busy() -> Seen:
    rng = np.random.default_rng(9)
    sizes = [40, 30, 30, 20, 20, 10]
    models = [ServedModel(f"m{k}", size, size) for k, size in enumerate(sizes)]
    work = tasks(
        arrivals(rng, N, RATE),
        rng.choice(6, N, p=[0.35, 0.25, 0.2, 0.1, 0.07, 0.03]),
        rng.choice(list(TENANTS), N, p=list(TENANTS.values())).tolist(),
        service_us=exponential(rng, N),
    )
    gpus = Gpus(4, 100, 200, 1000, release_us=50_000, max_tasks=4)
    seen = serve(models, work, "best-fit", "backfill", gpus=gpus, contention=Contention("slowdown", 0.1))
    assert seen.cold.sum() > 1_000
    assert (seen.queue > 0).mean() > 0.02
    return seen


def inside(came: Whole, went: Whole, at: Whole) -> Whole:
    """How many have come and not gone, at each of some instants."""
    return np.searchsorted(np.sort(came), at, "right") - np.searchsorted(np.sort(went), at, "right")


def holds(came: Whole, went: Whole, rate: float, everything: Whole) -> None:
    at = np.linspace(0, int(everything[-1]), SIGHTS).astype(np.int64)
    level, error = mean_and_error(inside(came, went, at))
    stay: Numbers = (went - came) / MEAN
    time, its_error = mean_and_error(stay)
    tolerance = 3 * math.hypot(error, rate * its_error)
    assert tolerance < 0.25 * level, "the run is too short to say anything"
    assert abs(level - rate * time) < tolerance, (
        f"{level:.6g} against {rate * time:.6g} +- {tolerance / 3:.2g}"
    )


def test_of_the_queue(busy: Seen) -> None:
    holds(busy.tasks.arrival_us, busy.placed, RATE, busy.tasks.arrival_us)


def test_of_those_that_load(busy: Seen) -> None:
    holds(busy.placed, busy.began, RATE, busy.tasks.arrival_us)


def test_of_the_system(busy: Seen) -> None:
    holds(busy.tasks.arrival_us, busy.left, RATE, busy.tasks.arrival_us)


@pytest.mark.parametrize("tenant", list(TENANTS))
def test_of_a_tenant(busy: Seen, tenant: str) -> None:
    of = busy.tasks.tenant == tenant
    came = busy.tasks.arrival_us
    holds(came[of], busy.left[of], RATE * TENANTS[tenant], came)
