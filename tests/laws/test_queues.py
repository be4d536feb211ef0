"""Waits of queues that mathematics knows: one GPU a job, exponential gaps, in one flat pool.

Each run is long (its length is in the test), its first tenth is left out, and the mean wait has to agree with the
formula within three standard errors, estimated from forty batches. Each test also asks for a small standard error,
so that agreement says something. A mean run of 100,000 s makes whole seconds fine enough.
"""

import math

import numpy as np
import numpy.typing as npt
import pytest

from gpuplan.fairshare.jobs import Jobs, jobs
from gpuplan.fairshare.model import BudgetNode, FairshareScenario, Pool
from gpuplan.fairshare.run import Run, simulate

MEAN_RUN = 100_000
EVERYONE = (BudgetNode("everyone"),)

#: Batches of the standard error, and the part of the run that is left out at its start.
BATCHES, LEFT_OUT = 40, 0.1


def arrivals(rng: np.random.Generator, n: int, rate: float) -> npt.NDArray[np.int64]:
    return np.cumsum(rng.exponential(1 / rate, n)).astype(np.int64)


def exponential(rng: np.random.Generator, n: int) -> npt.NDArray[np.int64]:
    return np.maximum(1, rng.exponential(MEAN_RUN, n)).astype(np.int64)


def table(
    submit: npt.NDArray[np.int64], run: npt.NDArray[np.int64], team: list[str] | str = "everyone"
) -> Jobs:
    n = len(submit)
    names = [str(k) for k in range(n)]
    return jobs(names, submit, [1] * n, run, team=team, limit_s=run)  # type: ignore[arg-type]


def queue(
    gpus: int, made: Jobs, policy: str, budget: tuple[BudgetNode, ...] = EVERYONE
) -> tuple[Run, npt.NDArray[np.int64]]:
    """The run and the waits of its jobs in order of submission."""
    run = simulate(FairshareScenario("queue", (Pool(1, gpus),), budget, jobs=made), policy)
    assert run.figures["jobs_finished"] == len(made)
    return run, run.ledger.wait_s


def mean_and_error(waits: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Mean wait, and its standard error by batch means."""
    steady = waits[int(LEFT_OUT * len(waits)) :]
    batches = [float(batch.mean()) for batch in np.array_split(steady, BATCHES)]
    return float(steady.mean()), float(np.std(batches, ddof=1)) / math.sqrt(BATCHES)


def agrees(waits: npt.NDArray[np.int64] | npt.NDArray[np.bool_], formula: float) -> None:
    mean, error = mean_and_error(waits)
    assert error < 0.06 * formula, "the run is too short to say anything"
    assert abs(mean - formula) < 3 * error, f"{mean:.6g} against {formula:.6g} +- {error:.2g}"


def erlang_c(servers: int, load: float) -> float:
    """Probability that a job has to wait; ``load`` is the rate of arrivals x the mean run (Erlang 1917)."""
    blocked = 1.0  # Erlang B by its recursion over the servers
    for c in range(1, servers + 1):
        blocked = load * blocked / (c + load * blocked)
    rho = load / servers
    return blocked / (1 - rho + rho * blocked)


def wait_of(servers: int, rho: float) -> float:
    """Mean wait of M/M/c at a utilization, seconds."""
    return erlang_c(servers, servers * rho) * MEAN_RUN / (servers * (1 - rho))


def test_erlang_c_of_small_queues() -> None:
    # one server: the probability to wait is the utilization; two: 2 rho^2 / (1 + rho)
    assert erlang_c(1, 0.7) == pytest.approx(0.7)
    assert erlang_c(2, 1.6) == pytest.approx(2 * 0.8**2 / 1.8)


@pytest.mark.parametrize(("gpus", "rho"), [(1, 0.6), (1, 0.8), (2, 0.8), (8, 0.9), (32, 0.9)])
def test_mmc(gpus: int, rho: float) -> None:
    """400,000 jobs."""
    rng = np.random.default_rng(gpus)
    n = 400_000
    made = table(arrivals(rng, n, rho * gpus / MEAN_RUN), exponential(rng, n))
    run, waits = queue(gpus, made, "fifo")
    agrees(waits, wait_of(gpus, rho))
    agrees(waits > 0, erlang_c(gpus, rho * gpus))
    assert run.figures["occupancy"] == pytest.approx(rho, abs=0.02)


def test_md1() -> None:
    """200,000 jobs of equal length: half the wait of M/M/1 (Pollaczek and Khinchine)."""
    rng = np.random.default_rng(5)
    n, rho = 200_000, 0.8
    made = table(arrivals(rng, n, rho / MEAN_RUN), np.full(n, MEAN_RUN))
    agrees(queue(1, made, "fifo")[1], MEAN_RUN * rho / (2 * (1 - rho)))


def test_shortest_first_waits_less_as_phipps_says() -> None:
    """300,000 jobs. W = W0 x integral of f(x) / (1 - rho F(x))^2, F: part of the work in jobs up to x (Phipps 1956)."""
    rng = np.random.default_rng(6)
    n, rho = 300_000, 0.8
    made = table(arrivals(rng, n, rho / MEAN_RUN), exponential(rng, n))
    x = (np.arange(400_000) + 0.5) * 1e-4  # in mean runs, up to 40
    up_to = 1 - np.exp(-x) * (1 + x)
    formula = MEAN_RUN * rho * float((np.exp(-x) / (1 - rho * up_to) ** 2).sum()) * 1e-4
    shortest = queue(1, made, "sjf")[1]
    agrees(shortest, formula)
    assert shortest.mean() < 0.7 * queue(1, made, "fifo")[1].mean()


@pytest.mark.parametrize("policy", ["fifo-skip", "easy", "fifo-per-type"])
def test_jobs_of_one_gpu_leave_nothing_to_backfill(policy: str) -> None:
    rng = np.random.default_rng(7)
    made = table(arrivals(rng, 20_000, 7.6 / MEAN_RUN), exponential(rng, 20_000))
    assert (queue(8, made, policy)[1] == queue(8, made, "fifo")[1]).all()


def test_monopolies_are_queues_of_their_own() -> None:
    """300,000 jobs: two teams with 4 of 8 GPUs each wait as in M/M/4, longer than together in M/M/8."""
    rng = np.random.default_rng(8)
    n, rho = 300_000, 0.85
    team = np.array(["a", "b"], object)[rng.integers(0, 2, n)]
    made = table(arrivals(rng, n, rho * 8 / MEAN_RUN), exponential(rng, n), team.tolist())
    halves = (BudgetNode("a"), BudgetNode("b"))
    waits = queue(8, made, "static-partitions", halves)[1]
    for name in ("a", "b"):
        agrees(waits[team == name], wait_of(4, rho))
    assert waits.mean() > 1.5 * queue(8, made, "fifo", halves)[1].mean()
