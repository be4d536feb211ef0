"""Case `frag-free-but-no-block`: free GPUs are not a free block, and the reason says so.

The case's used GPUs are running jobs here. Our blocks never split, and sizes are powers of two, so the
job of six GPUs takes eight.
"""

import pytest

from gpuplan.allocation.model import AllocationScenario, BatchJob, Horizon, Rules
from gpuplan.allocation.plan import Plan, plan
from gpuplan.allocation.policies import POLICIES
from gpuplan.cluster import Cluster


def servers(*used: tuple[int, ...], wanted: int) -> AllocationScenario:
    """Nodes of eight with these blocks running to the end of a day of one step, and one job that wants GPUs."""
    running = [
        BatchJob(f"runs-{node}-{first}", "training", size, 1.0, 1.0, running_on=8 * node + first)
        for node, sizes in enumerate(used)
        for first, size in zip([sum(sizes[:i]) for i in range(len(sizes))], sizes, strict=True)
    ]
    job = BatchJob("wants", "training", wanted, 1.0, 1.0)
    return AllocationScenario(
        "servers", Cluster(8 * len(used), 8), Horizon(1), rules=Rules(within_node=True), batch=(*running, job)
    )


def free(made: Plan) -> int:
    return int((made.grid == -1).sum())


@pytest.mark.parametrize("policy", POLICIES)
def test_three_fours(policy: str) -> None:
    """12 GPUs are free as 4 + 4 + 4: no block of 8, but one of 4."""
    made = plan(servers((4,), (4,), (4,), wanted=8), policy)
    assert free(made) == 12
    assert made.start[-1] == -1
    assert "the largest block was 4 GPUs" in made.why("wants")
    assert plan(servers((4,), (4,), (4,), wanted=4), policy).start[-1] == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_one_two_one(policy: str) -> None:
    """4 GPUs are free as 1 + 2 + 1: a block of 2 starts, one of 4 does not."""
    nodes = ((4, 2, 1), (4, 2), (4, 2, 1))
    made = plan(servers(*nodes, wanted=4), policy)
    assert free(made) == 4
    assert made.start[-1] == -1
    assert "the largest block was 2 GPUs" in made.why("wants")
    assert plan(servers(*nodes, wanted=2), policy).first_gpu[-1] == 8 + 6
    assert plan(servers(*nodes, wanted=1), policy).start[-1] == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_order_matters(policy: str) -> None:
    """4 and 4 side by side on one node leave the other one whole for the last job."""
    jobs = tuple(BatchJob(f"job-{i}", "training", gpus, 1.0, 1.0) for i, gpus in enumerate((4, 4, 8)))
    made = plan(
        AllocationScenario("packs", Cluster(16, 8), Horizon(1), rules=Rules(within_node=True), batch=jobs),
        policy,
    )
    assert made.start.tolist() == [0, 0, 0]
    assert abs(int(made.first_gpu[0]) - int(made.first_gpu[1])) == 4
    assert made.first_gpu[0] // 8 == made.first_gpu[1] // 8
