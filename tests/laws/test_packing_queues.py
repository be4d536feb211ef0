"""Waits of queues that mathematics knows, on resident models with bounded slots.

Each run is long (its length is in the test), its first tenth is left out, and the mean has to agree with the formula
within three standard errors, estimated from forty batches; the standard error is at most 5 % of the formula. A mean
service of a million microseconds makes whole microseconds fine enough. `rho`: utilization; Wq: mean wait until service.
"""

import math

import numpy as np
import pytest

from gpuplan.packing.model import Contention, Gpus, ServedModel
from gpuplan.packing.tasks import tasks
from laws.packing_runs import AT_ONCE, MEAN, agrees, arrivals, exponential, kept_for, serve, servers


def erlang_c(count: int, load: float) -> float:
    """Probability that a task has to wait; ``load`` is the rate of arrivals x the mean service (Erlang 1917)."""
    blocked = 1.0  # Erlang B by its recursion over the servers
    for c in range(1, count + 1):
        blocked = load * blocked / (c + load * blocked)
    rho = load / count
    return blocked / (1 - rho + rho * blocked)


def blind_wait(count: int, rate: float) -> float:
    """Mean wait, in mean services, where task i goes to server i mod c (each sees Erlang-c gaps: GI/M/1).

    sigma = (lambda / (lambda + mu (1 - sigma)))^c, Wq = sigma / (mu (1 - sigma)), with mu = 1.
    """
    sigma = 0.5
    for _ in range(10_000):
        sigma = (rate / (rate + 1 - sigma)) ** count
    return sigma / (1 - sigma)


def test_formulas_of_small_queues() -> None:
    # one server waits with probability rho, two with 2 rho^2 / (1 + rho); blind over one is M/M/1: rho / (1 - rho)
    assert erlang_c(1, 0.7) == pytest.approx(0.7)
    assert erlang_c(2, 1.6) == pytest.approx(2 * 0.8**2 / 1.8)
    assert blind_wait(1, 0.75) == pytest.approx(3)


@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_mm1(rho: float) -> None:
    """Wq = rho / (mu - lambda); 400,000 tasks."""
    rng = np.random.default_rng(1)
    n = 400_000
    models, gpus = servers(1)
    seen = serve(models, tasks(arrivals(rng, n, rho), service_us=exponential(rng, n)), gpus=gpus)
    agrees(seen.wait, MEAN * rho / (1 - rho))
    agrees(seen.wait > 0, rho)


@pytest.mark.parametrize(
    ("count", "rho", "spread"), [(2, 0.8, True), (4, 0.7, True), (4, 0.7, False), (8, 0.9, True)]
)
def test_mmc(count: int, rho: float, spread: bool) -> None:
    """Wq = C(c, c rho) / (c mu - lambda) by Erlang C, over GPUs of one slot or the slots of one GPU; 400,000 tasks."""
    rng = np.random.default_rng(count)
    n = 400_000
    models, gpus = servers(count, spread)
    work = tasks(arrivals(rng, n, rho * count), service_us=exponential(rng, n))
    seen = serve(models, work, gpus=gpus)
    agrees(seen.wait, MEAN * erlang_c(count, rho * count) / (count * (1 - rho)))
    agrees(seen.wait > 0, erlang_c(count, rho * count))


@pytest.mark.parametrize("cv", [0.0, 0.5, 1.5])
def test_mg1(cv: float) -> None:
    """Wq = lambda E[S^2] / (2 (1 - rho)) (Pollaczek and Khinchine), Gamma services; 400,000 tasks."""
    rng = np.random.default_rng(3)
    n, rho = 400_000, 0.7
    shape = 1 / cv**2 if cv else math.inf
    service = rng.gamma(shape, MEAN / shape, n).astype(np.int64) if cv else np.full(n, MEAN)
    models, gpus = servers(1)
    seen = serve(models, tasks(arrivals(rng, n, rho), service_us=service), gpus=gpus)
    agrees(seen.wait, MEAN * rho * (1 + cv**2) / (2 * (1 - rho)))


@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_blind_round_robin(rho: float) -> None:
    """sigma = (lambda / (lambda + mu (1 - sigma)))^c, Wq = sigma / (mu (1 - sigma)), c = 4; 400,000 tasks."""
    rng = np.random.default_rng(5)
    n, count = 400_000, 4
    models, gpus = servers(count)
    work = tasks(arrivals(rng, n, rho * count), service_us=exponential(rng, n))
    blind = serve(models, work, "round-robin", gpus=gpus).wait
    agrees(blind, MEAN * blind_wait(count, rho * count))
    assert blind.mean() > 2 * serve(models, work, "round-robin-skip", gpus=gpus).wait.mean()


def test_priorities_that_interrupt_nobody() -> None:
    """Wq_k = (1/2) sum lambda_i E[S_i^2] / ((1 - s_{k-1}) (1 - s_k)) (Cobham 1954); 600,000 tasks of three classes.

    s_k: load of the classes 1..k, the most important first. Class 1: exponential services of half the mean; class 2:
    constant ones; class 3: exponential ones of twice the mean. Loads 0.15, 0.25, 0.4.
    """
    rng = np.random.default_rng(6)
    n = 600_000
    loads, means, moments = [0.15, 0.25, 0.4], [0.5, 1.0, 2.0], [2 * 0.5**2, 1.0, 2 * 2.0**2]
    rates = [load / mean for load, mean in zip(loads, means, strict=True)]
    kind = rng.choice(3, n, p=np.array(rates) / sum(rates))
    service = np.where(kind == 1, MEAN, exponential(rng, n) * np.array(means)[kind]).astype(np.int64)
    models, gpus = servers(1)
    work = tasks(arrivals(rng, n, sum(rates)), priority=3 - kind, service_us=service)
    wait = serve(models, work, gpus=gpus).wait
    residual = sum(rate * moment for rate, moment in zip(rates, moments, strict=True)) / 2
    before = 0.0
    for k, load in enumerate(loads):
        formula = residual / ((1 - before) * (1 - before - load))
        agrees(wait[work.priority == 3 - k], MEAN * formula)
        before += load


@pytest.mark.parametrize("cold", [0.5, 2.0])
def test_a_cold_start_after_every_idle_period(cold: float) -> None:
    """Adds (2 E[D] + lambda E[D^2]) / (2 (1 + lambda E[D])) to the wait of M/M/1 (Welch 1964); 400,000 tasks.

    A model that is kept for 1 us, so that it goes in every idle period but stays while tasks wait; D is what its load
    takes, constant: its bytes over the link.
    """
    rng = np.random.default_rng(7)
    n, rho = 400_000, 0.6
    size = int(cold * MEAN)
    gpus = Gpus(1, size, MEAN, AT_ONCE, release_us=0, max_tasks=1)
    work = tasks(arrivals(rng, n, rho), service_us=exponential(rng, n))
    seen = serve([ServedModel("m", size, size)], work, gpus=gpus, pieces=kept_for(1))
    added = (2 * cold + rho * cold**2) / (2 * (1 + rho * cold))
    agrees(seen.wait, MEAN * (rho / (1 - rho) + added))
    # an idle server that has gone cold is found as often as 1 - rho in M/M/1, less what the cold starts keep it busy
    agrees(seen.cold, (1 - rho) / (1 + rho * cold))


@pytest.mark.parametrize("cv", [0.0, 1.0, 2.0])
def test_processor_sharing_does_not_see_the_spread(cv: float) -> None:
    """M/G/1 with sharing: mean latency = E[S] / (1 - rho), whatever the distribution (Kleinrock); 400,000 tasks."""
    rng = np.random.default_rng(8)
    n, rho = 400_000, 0.6
    shape = 1 / cv**2 if cv else math.inf
    service = np.maximum(1, rng.gamma(shape, MEAN / shape, n)).astype(np.int64) if cv else np.full(n, MEAN)
    models, _ = servers(1)
    work = tasks(arrivals(rng, n, rho), service_us=service)
    seen = serve(models, work, gpus=Gpus(1, 10), contention=Contention("sharing"))
    assert (seen.wait == 0).all()
    agrees(seen.system, float(service.mean()) / (1 - rho))
