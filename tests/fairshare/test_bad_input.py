"""Strange input through the front door: a sentence or the right answer under every policy, never a hang."""

from typing import Any

import numpy as np
import pytest

import gpuplan as gp
from gpuplan.fairshare.jobs import jobs
from gpuplan.fairshare.model import BudgetNode, FairshareScenario, Pool
from gpuplan.fairshare.policies import POLICIES

#: Policies of which no pass over the line is longer than the line.
SOON = ("fifo", "fifo-skip", "easy", "sjf", "fair-share")


def identical(n: int) -> FairshareScenario:
    """So many jobs of 1 GPU and 60 s, all submitted at 0, on 512 GPUs."""
    one = np.ones(n, np.int64)
    made = jobs(
        [str(k) for k in range(n)],
        0 * one,  # type: ignore[arg-type]
        one,  # type: ignore[arg-type]
        60 * one,  # type: ignore[arg-type]
        limit_s=60,
        minimum_s=60,
        team="a",
    )
    return FairshareScenario("same", (Pool(64, 8),), (BudgetNode("a", 3), BudgetNode("b", 1)), jobs=made)


def in_rounds(n: int, policy: str) -> None:
    """512 at a time (384 of the team's own under monopolies), the last round when the others are through."""
    found = gp.simulate(identical(n), policy).figures
    at_once = 384 if policy == "static-partitions" else 512
    assert found["makespan_s"] == 60 * -(-n // at_once)
    assert found["jobs_finished"] == n
    assert found["wait_p50_s"] == 60 * (n // 2 // at_once)
    assert found["lost_gpu_hours"] == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_ten_thousand_identical_jobs(policy: str) -> None:
    in_rounds(10_000, policy)


@pytest.mark.parametrize("policy", SOON)
def test_a_million_identical_jobs(policy: str) -> None:
    in_rounds(1_000_000, policy)


def given(budget: list[dict[str, Any]], rows: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "kind": "fairshare",
        "name": "strange",
        "cluster": {"nodes": 2, "gpus_per_node": 4},
        "budget": budget,
        "workload": {"jobs": rows},
        **more,
    }


def row(job: str, gpus: int = 1, team: str = "a", **more: Any) -> dict[str, Any]:
    return {
        "job": job, "team": team, "submit_s": 0, "gpus": gpus, "run_s": 60, "limit_s": 60, "min_runtime_s": 60, **more
    }  # fmt: skip


AB = [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]


@pytest.mark.parametrize("policy", POLICIES)
def test_jobs_larger_than_any_pool_are_set_aside_and_block_nobody(policy: str) -> None:
    """The large ones stand first in line, and have the highest priority."""
    rows = [
        row("0-huge", 9, priority=9),
        row("1-vast", 10**7, team="b", priority=9),
        row("2-small", 4),
        row("3-none", 1, team="b", gpu="V100"),
    ]
    run = gp.simulate(given(AB, rows), policy)
    assert run.set_aside["0-huge"] == "9 GPUs wanted, 8 exist"
    assert run.set_aside["1-vast"] == "10000000 GPUs wanted, 8 exist"
    assert run.set_aside["3-none"] == "no V100"
    assert run.jobs.set_index("job").first_start_s["2-small"] == 0
    assert run.end_s == 60
    assert (run.figures["jobs_set_aside"], run.figures["jobs_finished"]) == (3, 1)
    assert run.figures["mean_wait_s"] == 0
    assert run.check() == []


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_but_impossible_jobs(policy: str) -> None:
    run = gp.simulate(given(AB, [row("x", 9), row("y", 9, team="b")]), policy)
    assert run.figures["jobs_set_aside"] == 2
    assert run.figures["mean_wait_s"] is None
    assert run.end_s == 0


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"static-partitions"}))
def test_a_team_without_a_share_runs_on_what_the_others_leave(policy: str) -> None:
    budget = [{"name": "a", "weight": 1}, {"name": "b", "weight": 0}]
    rows = [*(row(f"a{k}", 4) for k in range(3)), row("b0", 4, team="b")]
    run = gp.simulate(given(budget, rows), policy)
    assert run.figures["jobs_finished"] == 4
    assert run.end_s == 120
    assert run.check() == []


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"window": 0}, "window: must be"),
        ({"window": "-1d"}, "window: must be"),
        ({"contract": {"checkpoint_every": 0}}, "contract.checkpoint_every: must be"),
        ({"budget": []}, "must be a team of the budget tree"),
        ({"cluster": {"gpus": 0}}, "cluster.gpus: must be"),
        ({"budget": [{"name": "a", "weight": float("nan")}]}, "budget.0.weight: must be"),
        ({"budget": [{"name": "a", "weight": -1}]}, "budget.0.weight: must be"),
        ({"budget": [{"name": "a", "weight": float("inf")}]}, "budget.0.weight: must be"),
        ({"budget": [{"name": "a", "children": []}, {"name": "a"}]}, "budget"),
    ],
)
def test_sentences(changes: dict[str, Any], rule: str) -> None:
    with pytest.raises(gp.InputError) as told:
        gp.simulate({**given(AB, [row("x")]), **changes})
    assert rule in str(told.value)
