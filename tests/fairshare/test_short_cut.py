"""Budgets do not retry what cannot start yet; with more teams than the kernel has bits for, they retry everything.

So the same scenario beside sixty idle teams without a share must give the same run. The scenarios are larger than
those that the slow simulator can follow: reservations come and go, and stand while others start beside them.
"""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.fairshare import studies
from gpuplan.fairshare.jobs import jobs
from gpuplan.fairshare.model import NEVER, BudgetNode, Contract, Drain, FairshareScenario, Pool
from gpuplan.fairshare.problem import compile_problem
from gpuplan.fairshare.run import policy_named
from gpuplan.loading import load_fairshare

#: More teams than the short cut can tell apart; they come last in the tree and have no share.
IDLE = tuple(BudgetNode(f"zz-idle-{k}", 0.0) for k in range(63))


def stretches(scenario: FairshareScenario) -> np.ndarray:
    found = policy_named("fair-share").run(compile_problem(scenario)).stretches
    return np.stack([found.job, found.start_s, found.end_s, found.allocated, found.outcome])


def the_same_beside_idle_teams(scenario: FairshareScenario) -> int:
    """Assert it; the number of stretches."""
    found = stretches(scenario)
    assert np.array_equal(found, stretches(replace(scenario, budget=(*scenario.budget, *IDLE))))
    return int(found.shape[1])


def crowded(seed: int) -> FairshareScenario:
    """A crowded cluster of a few nodes, teams, sizes with and without remainders; some hosts drain."""
    rng = np.random.default_rng(seed)
    size = int(rng.choice([2, 4, 8, 64]))
    pools = tuple(
        Pool(int(rng.integers(2, 13)), size if k == 0 else 4, f"type-{k}")
        for k in range(int(rng.choice([1, 1, 2])))
    )
    budget = (
        *(BudgetNode(f"team-{k}", float(rng.choice([1, 2, 5]))) for k in range(int(rng.integers(2, 6)))),
        BudgetNode("under", 3.0, (BudgetNode("a", 1.0), BudgetNode("b", 2.0))),
    )
    teams = [node.name for node in budget[:-1]] + ["under/a", "under/b"]
    total, largest = sum(pool.gpus for pool in pools), max(pool.gpus for pool in pools)
    count = int(rng.integers(100, 500))
    sizes = [1, 1, 2, 2, 4, 8, 8, 16, 24, 32] if seed % 3 else [1, 2, 3, 5, 8, 11, 12, 17, 20]
    gpus = rng.choice([g for g in sizes if g <= largest], count)
    run = rng.lognormal(7.5, 1.6, count).astype(np.int64) + 1
    last = int((gpus * run).sum() / total / rng.choice([1.5, 3, 8]))
    table = jobs(
        [f"j{k}" for k in range(count)],
        np.sort(rng.integers(0, last + 1, count)).tolist(),
        gpus.tolist(),
        run.tolist(),
        team=[teams[k] for k in rng.integers(0, len(teams), count)],
        limit_s=np.where(rng.random(count) < 0.3, NEVER, 2 * run).tolist(),
        minimum_s=rng.choice([0, 60, 600, 1800, 3600, 7200], count).tolist(),
        priority=rng.choice([0, 0, 1], count).tolist(),
    )
    drains = (Drain(0, last // 3, 3600), Drain(1, last // 2, 7200)) if seed % 4 == 0 else ()
    return FairshareScenario(
        name=f"crowd-{seed}",
        pools=pools,
        budget=budget,
        jobs=table,
        window_s=int(rng.choice([3600, 86400, 7 * 86400])),
        contract=Contract(max_min_runtime_s=int(rng.choice([600, 1800, 8 * 3600]))),
        drains=drains,
    )


@pytest.mark.parametrize("seed", range(24))
def test_what_is_not_retried_could_not_have_started(seed: int) -> None:
    assert the_same_beside_idle_teams(crowded(seed)) > 100


def test_a_reservation_that_others_started_beside() -> None:
    """The month in which a short cut once missed a start: 256 GPUs, load 2.5, minimum run times of at most 30 min."""
    month = studies._frozen(load_fairshare("fifteen-teams"), studies.Size(gpus=256, load=2.5), 1)
    capped = month.replace({"contract.max_min_runtime": "30min"})
    assert the_same_beside_idle_teams(capped) > 10_000
