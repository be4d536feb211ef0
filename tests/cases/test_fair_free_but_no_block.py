"""Case `frag-free-but-no-block` in the simulator: free GPUs are not a free block, and the sentence says so."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML

from cases import front_door
from gpuplan.fairshare.blocks import fits, largest_block, unusable_share
from gpuplan.fairshare.instant import Instant
from gpuplan.fairshare.jobs import jobs
from gpuplan.fairshare.model import BudgetNode, Drain, FairshareScenario, Int64, Pool
from gpuplan.fairshare.run import Run, simulate

CASE = "frag-free-but-no-block"

POLICIES = ("fifo", "fifo-skip", "easy")


@pytest.fixture(scope="module")
def situations(case: Path) -> dict[str, Any]:
    found = YAML(typ="safe").load(case / "input.yaml")
    assert isinstance(found, dict)
    return dict(found["situations"])


def free_of(situation: dict[str, Any]) -> Int64:
    return np.array([node["gpus"] - node["used"] for node in situation["nodes"]])


@pytest.mark.parametrize("name", ["three_fours", "one_two_one"])
def test_blocks(situations: dict[str, Any], expected: dict[str, Any], name: str) -> None:
    free, right = free_of(situations[name]), expected[name]
    wanted = situations[name]["job"]["gpus"]
    assert int(free.sum()) == right["free"]
    assert largest_block(free) == right["largest_block"]
    assert fits(free, 8, wanted, one_node=True) == right["can_start"]
    assert {k: unusable_share(free, int(k)) for k in right["unusable_share"]} == right["unusable_share"]
    # split into single GPUs it could start
    assert (int(free.sum()) >= wanted) == right.get("could_start_if_split", True)


def test_nothing_free_is_not_fragmented() -> None:
    assert unusable_share(np.zeros(3, np.int64), 4) == 0.0
    assert unusable_share(np.zeros(0, np.int64), 4) == 0.0
    assert largest_block(np.zeros(0, np.int64)) == 0


def test_gangs_fit_on_whole_nodes_and_one_more() -> None:
    assert fits(np.array([8, 8, 3]), 8, 19)
    assert not fits(np.array([8, 8, 2]), 8, 19)
    assert not fits(np.array([8, 7, 3]), 8, 19)
    assert fits(np.array([8, 8, 8]), 8, 19)
    assert not fits(np.array([8, 8]), 8, 19)
    assert fits(np.array([8, 8]), 8, 16)


def run_with(situation: dict[str, Any], policy: str, drains: tuple[Drain, ...] = ()) -> Run:
    """The used GPUs as running jobs of an hour (node after node, largest first), and the job that wants a block."""
    used = [node["used"] for node in situation["nodes"]]
    names = [f"on-{node}" for node in range(len(used))]
    made = jobs(
        [*names, "wants"],
        [0] * len(used) + [60],
        [*used, situation["job"]["gpus"]],
        [3600] * len(used) + [600],
        team="all",
        one_node=True,
    )
    pool = Pool(len(used), situation["nodes"][0]["gpus"])
    return simulate(
        FairshareScenario("case", (pool,), (BudgetNode("all"),), jobs=made, drains=drains), policy
    )


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["one_two_one"])
def test_the_reason_names_the_block(
    situations: dict[str, Any], expected: dict[str, Any], name: str, policy: str
) -> None:
    """Jobs of 7, 6 and 7 GPUs each need a node of their own."""
    run = run_with(situations[name], policy)
    right, wanted = expected[name], situations[name]["job"]["gpus"]
    assert run.jobs.set_index("job").first_start_s["wants"] == 3600
    assert int(Instant(run, 90).free.sum()) == right["free"]
    assert (
        f"{right['free']} GPUs are free, the largest free block on one node is {right['largest_block']}, "
        f"it wants {wanted} on one node."
    ) in run.why("wants", 90)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_complaint_of_the_case(situations: dict[str, Any], expected: dict[str, Any], policy: str) -> None:
    """Three jobs of 4 on three nodes (beside others of 4 that have ended): 12 free as 4 + 4 + 4, a job of 8 waits."""
    right, wanted = expected["three_fours"], situations["three_fours"]["job"]["gpus"]
    # 4 + 4 fill a node each time: whoever comes first on each node stays
    names = [f"{kind}-{node}" for node in range(3) for kind in ("stays", "goes")]
    made = jobs(
        [*names, "wants"],
        list(range(7)),
        [4] * 6 + [wanted],
        [3600, 10] * 3 + [600],
        team="all",
        one_node=True,
    )
    run = simulate(FairshareScenario("case", (Pool(3, 8),), (BudgetNode("all"),), jobs=made), policy)
    now = Instant(run, 90)
    assert int(now.free.sum()) == right["free"]
    assert bool(now.runs[-1]) == right["can_start"]
    assert (
        f"{right['free']} GPUs are free, the largest free block on one node is {right['largest_block']}, "
        f"it wants {wanted} on one node."
    ) in run.why("wants", 90)


@pytest.mark.parametrize("policy", POLICIES)
def test_order_matters(situations: dict[str, Any], expected: dict[str, Any], policy: str) -> None:
    """We pack: 4 + 4 on one node, 6 on the other; spread over the emptiest node, 6 would find 4 and 4."""
    case, right = situations["order_matters"], expected["order_matters"]
    sizes = case["jobs"]
    made = jobs([f"job-{k}" for k in range(3)], [0, 1, 2], sizes, [100] * 3, team="all", one_node=True)
    pool = Pool(len(case["nodes"]), case["nodes"][0]["gpus"])
    run = simulate(FairshareScenario("case", (pool,), (BudgetNode("all"),), jobs=made), policy)
    now = Instant(run, 50)
    assert made.gpus[now.runs].tolist() == right["pack"]["running"]
    assert made.gpus[now.waits].tolist() == right["pack"]["waiting"]
    assert int(now.free.sum()) == right["pack"]["free"]
    spread = np.array([8 - 4, 8 - 4])
    assert not fits(spread, 8, 6)
    assert int(spread.sum()) == right["spread"]["free"]


def test_a_node_in_maintenance_is_not_free(situations: dict[str, Any]) -> None:
    """The whole node drains: the eight GPUs that stand idle on it are not offered, and the sentence counts it."""
    made = jobs(["a", "b", "wants"], [0, 0, 60], [5, 5, 8], [3600, 3600, 10], team="all", one_node=True)
    scenario = FairshareScenario(
        "case", (Pool(3, 8),), (BudgetNode("all"),), jobs=made, drains=(Drain(2, 30, 600),)
    )
    run = simulate(scenario, "fifo")
    said = run.why("wants", 90)
    assert (
        "6 GPUs are free, the largest free block on one node is 3, it wants 8 on one node; "
        "1 node takes no work (drain or repair)."
    ) in said
    assert run.jobs.set_index("job").first_start_s["wants"] == 630


def by_file(folder: Path, nodes: list[dict[str, int]], rows: list[dict[str, object]], policy: str) -> Run:
    """The same cluster as a scenario file with a table of jobs, each of which must fit on one node."""
    head = {"cluster": {"nodes": len(nodes), "gpus_per_node": nodes[0]["gpus"]}}
    return front_door.run(front_door.load(folder, head, [{**row, "one_node": "yes"} for row in rows]), policy)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["three_fours", "one_two_one"])
def test_the_reason_by_scenario_file(
    tmp_path: Path, situations: dict[str, Any], expected: dict[str, Any], name: str, policy: str
) -> None:
    """Of each node first all is taken: what stays beside what goes after 10 s, so that nobody shares it otherwise."""
    nodes, right, wanted = situations[name]["nodes"], expected[name], situations[name]["job"]["gpus"]
    rows: list[dict[str, object]] = []
    for at, node in enumerate(nodes):
        rows.append({"job": f"stays-{at}", "submit_s": 2 * at, "gpus": node["used"], "run_s": 3600})
        free = node["gpus"] - node["used"]
        rows.append({"job": f"goes-{at}", "submit_s": 2 * at + 1, "gpus": free, "run_s": 10})
    rows.append({"job": "wants", "submit_s": 30, "gpus": wanted, "run_s": 600})
    run = by_file(tmp_path, nodes, rows, policy)
    now = Instant(run, 90)
    assert int(now.free.sum()) == right["free"]
    assert largest_block(now.free) == right["largest_block"]
    assert bool(now.runs[run.row_of("wants")]) == right["can_start"]
    said = run.why("wants", 90)
    assert (
        f"{right['free']} GPUs are free, the largest free block on one node is {right['largest_block']}"
        in said
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_order_matters_by_scenario_file(
    tmp_path: Path, situations: dict[str, Any], expected: dict[str, Any], policy: str
) -> None:
    case, right = situations["order_matters"], expected["order_matters"]["pack"]
    rows: list[dict[str, object]] = [
        {"job": f"job-{k}", "submit_s": k, "gpus": gpus, "run_s": 100} for k, gpus in enumerate(case["jobs"])
    ]
    run = by_file(tmp_path, case["nodes"], rows, policy)
    now = Instant(run, 50)
    assert run.problem.jobs.gpus[now.runs].tolist() == right["running"]
    assert run.problem.jobs.gpus[now.waits].tolist() == right["waiting"]
    assert int(now.free.sum()) == right["free"]
