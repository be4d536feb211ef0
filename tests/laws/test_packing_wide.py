"""Queues that mathematics knows, of models over several GPUs: a copy is a server, whatever it is made of.

How runs are compared with formulas: see `test_packing_queues`.
"""

import numpy as np
import pytest

from gpuplan.packing.model import Contention, Gpus, ServedModel
from gpuplan.packing.tasks import tasks
from laws.packing_runs import MEAN, agrees, arrivals, exponential, serve
from laws.test_packing_queues import erlang_c


def wide_servers(count: int, gpus: int) -> tuple[list[ServedModel], Gpus]:
    """Copies of a model over so many GPUs each, one task at a time on a GPU: `count` servers."""
    every = count * gpus
    return [ServedModel("m", gpus, gpus, resident=tuple(range(every)), gpus=gpus)], Gpus(
        every, 10, max_tasks=1
    )


@pytest.mark.parametrize(
    ("count", "gpus", "rho", "policy"),
    [(1, 4, 0.7, "first-fit"), (1, 3, 0.8, "round-robin"), (2, 2, 0.8, "best-fit"), (4, 2, 0.7, "worst-fit")],
)
def test_copies_are_servers(count: int, gpus: int, rho: float, policy: str) -> None:
    """A model over the whole node is M/M/1, c copies are M/M/c: Wq = C(c, c rho) / (c mu - lambda); 400,000 tasks.

    Blind round-robin, too: every line is bound to the one copy there is; the mean wait does not know the order.
    """
    rng = np.random.default_rng(count)
    n = 400_000
    models, node = wide_servers(count, gpus)
    work = tasks(arrivals(rng, n, rho * count), service_us=exponential(rng, n))
    seen = serve(models, work, policy, gpus=node)
    agrees(seen.wait, MEAN * erlang_c(count, rho * count) / (count * (1 - rho)))
    agrees(seen.wait > 0, erlang_c(count, rho * count))


@pytest.mark.parametrize("cv", [0.0, 1.0, 2.0])
def test_processor_sharing_over_all_gpus(cv: float) -> None:
    """M/G/1 with sharing on every GPU of a copy: mean latency = E[S] / (1 - rho) (Kleinrock); 400,000 tasks."""
    rng = np.random.default_rng(8)
    n, rho = 400_000, 0.6
    shape = 1 / cv**2 if cv else np.inf
    service = np.maximum(1, rng.gamma(shape, MEAN / shape, n)).astype(np.int64) if cv else np.full(n, MEAN)
    model = ServedModel("m", 4, 4, resident=(0, 1), gpus=2)
    work = tasks(arrivals(rng, n, rho), service_us=service)
    seen = serve([model], work, gpus=Gpus(2, 10), contention=Contention("sharing"))
    assert (seen.wait == 0).all()
    agrees(seen.system, float(service.mean()) / (1 - rho))


@pytest.mark.parametrize("wide", [0.2, 0.5, 0.8])
def test_wide_and_narrow_work_in_strict_order(wide: float) -> None:
    """Time per task, when nobody is ever missing, of work for one or two of two servers: q + p q + p^2 / 2 (x 1 / mu).

    q: share of tasks for both, p = 1 - q. Rumyantsev and Morozov, "Stability criterion of a multiserver model with
    simultaneous service" (Annals of Operations Research 2017), for two servers. By hand: states "wide runs" (W), "two
    narrow run" (N), "one narrow runs, a wide one is next" (B); W = 1 goes on as W with q, else (p) as N with p, B with
    q; N ends at rate 2, then N with p, B with q; B ends as W. Balance: B = p W, N = p^2 / (2 q) W; tasks end at the
    rate W + 2 N + B. 300,000 tasks.
    """
    rng = np.random.default_rng(9)
    n = 300_000
    models = [ServedModel("one", 1, 1, resident=(0, 1)), ServedModel("two", 2, 2, resident=(0, 1), gpus=2)]
    # all are there from the start, in the order of their arrivals
    work = tasks(np.arange(n), (rng.random(n) < wide).astype(np.int64), service_us=exponential(rng, n))
    seen = serve(models, work, gpus=Gpus(2, 10, max_tasks=1))
    p, q = 1 - wide, wide
    agrees(np.diff(np.sort(seen.left)), MEAN * (q + p * q + p * p / 2))
