"""Same input, same run: whatever the order of rows, the seed of text hashing, the compiler, the threads."""

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import gpuplan as gp
from gpuplan.fairshare.jobs import jobs
from gpuplan.fairshare.model import BudgetNode, FairshareScenario, Generate, Pool
from gpuplan.fairshare.policies import POLICIES
from gpuplan.fairshare.problem import jobs_of
from gpuplan.fairshare.run import simulate
from gpuplan.fairshare.tree import tree_of

BUDGET = (BudgetNode("x", 3, (BudgetNode("p", 2), BudgetNode("q", 1))), BudgetNode("y", 2))

#: Runs two shipped scenarios under every policy, prints their fingerprints.
PROGRAM = """
import gpuplan as gp
for name in ("first-hours", "two-types"):
    for policy in gp.FAIRSHARE_POLICIES:
        print(name, policy, gp.simulate(name, policy).fingerprint)
"""


def weeks() -> FairshareScenario:
    return FairshareScenario("weeks", (Pool(8, 8),), BUDGET, generate=Generate(7, 1.5, 0.2, 3))


def fingerprints() -> str:
    rows = [
        f"{name} {policy} {gp.simulate(name, policy).fingerprint}\n"
        for name in ("first-hours", "two-types")
        for policy in POLICIES
    ]
    return "".join(rows)


@pytest.mark.parametrize("policy", POLICIES)
def test_rows_in_any_order(policy: str) -> None:
    """Ties of submission included: all times are rounded to the hour."""
    made = jobs_of(weeks(), tree_of(BUDGET))
    order = list(range(len(made)))
    found = set()
    for seed in range(3):
        table = jobs(
            [str(made.name[k]) for k in order],
            [int(made.submit_s[k]) // 3600 * 3600 for k in order],
            [int(made.gpus[k]) for k in order],
            [int(made.run_s[k]) for k in order],
            team=[str(made.team[k]) for k in order],
            limit_s=[int(made.limit_s[k]) for k in order],
            minimum_s=[int(made.minimum_s[k]) for k in order],
            priority=[int(made.priority[k]) for k in order],
        )
        scenario = FairshareScenario("weeks", (Pool(8, 8),), BUDGET, jobs=table)
        found.add(simulate(scenario, policy).fingerprint)
        random.Random(seed).shuffle(order)
    assert len(found) == 1


def test_another_seed_of_text_hashing_and_no_compiler() -> None:
    """Both at once, in another process; the runs here are compiled."""
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "NUMBA_DISABLE_JIT": "1"}
    other = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=True
    )
    assert other.stdout.splitlines() == fingerprints().splitlines()


@pytest.mark.parametrize("policy", ["easy", "fair-share", "priority-tiers"])
def test_weeks_without_a_compiler(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpuplan import jit
    from gpuplan.fairshare import engine, kernels

    compiled = simulate(weeks(), policy).fingerprint
    monkeypatch.setattr(engine, "kernels", jit.plain_copy(kernels))
    assert simulate(weeks(), policy).fingerprint == compiled


@pytest.mark.parametrize("policy", POLICIES)
def test_threads_at_once(policy: str) -> None:
    scenario = weeks()
    alone = simulate(scenario, policy).fingerprint
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda _: simulate(scenario, policy), range(4)))
    assert {run.fingerprint for run in runs} == {alone}
