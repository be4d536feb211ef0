"""How often a model has to be loaded: keep-alive, and eviction of the least recently used.

Tolerances as in `test_packing_queues`; Che's formula is an approximation and has a tolerance of its own.
"""

import numpy as np
import numpy.typing as npt
import pytest

from gpuplan.packing.model import Gpus, Pieces, ServedModel
from gpuplan.packing.tasks import tasks
from laws.packing_runs import AT_ONCE, MEAN, agrees, arrivals, exponential, kept_for, serve


@pytest.mark.parametrize("keep", [0.3, 1.0, 3.0])
def test_keep_alive_of_one_server(keep: float) -> None:
    """P(cold) = (1 - rho) exp(-lambda tau): the server is idle, and was for tau; 400,000 tasks.

    The model weighs nothing, so that its loads take no time and rho is that of M/M/1.
    """
    rng = np.random.default_rng(1)
    n, rho = 400_000, 0.5
    gpus = Gpus(1, 10, release_us=0, max_tasks=1)
    work = tasks(arrivals(rng, n, rho), service_us=exponential(rng, n))
    seen = serve([ServedModel("m", 0, 0)], work, gpus=gpus, pieces=kept_for(int(keep * MEAN)))
    agrees(seen.cold, (1 - rho) * float(np.exp(-rho * keep)))


@pytest.mark.parametrize("keep", [0.3, 1.0, 3.0])
def test_keep_alive_without_queueing(keep: float) -> None:
    """P(cold) = exp(-lambda tau): a gap was longer than tau; 400,000 tasks without service."""
    rng = np.random.default_rng(2)
    n, rate = 400_000, 0.8
    work = tasks(arrivals(rng, n, rate))
    gpus = Gpus(1, 10, release_us=0)
    seen = serve([ServedModel("m", 0, 0)], work, gpus=gpus, pieces=kept_for(int(keep * MEAN)))
    agrees(seen.cold, float(np.exp(-rate * keep)))


def test_a_server_for_everybody_cools_down_less() -> None:
    """M/G/infinity: P(cold) = exp(-lambda (E[S] + tau)) for constant S: no arrival within S + tau; 400,000 tasks."""
    rng = np.random.default_rng(3)
    n, rate, keep = 400_000, 0.8, 0.5
    work = tasks(arrivals(rng, n, rate), service_us=MEAN)
    gpus = Gpus(1, 10, release_us=0)
    seen = serve([ServedModel("m", 0, 0)], work, gpus=gpus, pieces=kept_for(int(keep * MEAN)))
    agrees(seen.cold, float(np.exp(-rate * (1 + keep))))


def che(popularity: npt.NDArray[np.float64], copies: int) -> float:
    """Hit rate of LRU: sum p_i (1 - exp(-p_i t)), where sum (1 - exp(-p_i t)) = copies (Che and others, 2002)."""
    low, high = 0.0, 1e9
    for _ in range(200):
        t = (low + high) / 2
        low, high = (t, high) if (1 - np.exp(-popularity * t)).sum() < copies else (low, t)
    return float((popularity * (1 - np.exp(-popularity * low))).sum())


def test_che_of_equal_models() -> None:
    # equally popular: each is there with probability copies / models
    assert che(np.full(100, 0.01), 25) == pytest.approx(0.25)


@pytest.mark.parametrize(("models", "copies", "zipf"), [(100, 20, 0.8), (100, 50, 1.0), (200, 40, 1.0)])
def test_lru(models: int, copies: int, zipf: float) -> None:
    """Hit rate of equal models under Poisson requests by Che's approximation, within 0.01; 200,000 tasks.

    The first tenth, in which the memory fills, is left out. Loads take a microsecond, tasks none.
    """
    rng = np.random.default_rng(models + copies)
    n = 200_000
    popularity = np.arange(1, models + 1) ** -zipf
    popularity /= popularity.sum()
    asked = rng.choice(models, n, p=popularity)
    gpus = Gpus(1, 10 * copies, AT_ONCE, AT_ONCE, release_us=0)
    kinds = [ServedModel(f"m{k}", 10, 10) for k in range(models)]
    seen = serve(
        kinds, tasks(arrivals(rng, n, 1.0), asked), gpus=gpus, pieces=Pieces("first-fit", eviction="lru")
    )
    hits = 1 - seen.cold[n // 10 :].mean()
    assert abs(hits - che(popularity, copies)) < 0.01
    # what is least asked for goes first: more hits than LRU where popularity never changes
    lfu = serve(kinds, seen.tasks, gpus=gpus, pieces=Pieces("first-fit", eviction="lfu"))
    assert 1 - lfu.cold[n // 10 :].mean() > hits
