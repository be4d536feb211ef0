"""A scenario as the arrays that kernels take: nodes, effective minimum run times, where each job may run."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gpuplan.fairshare.epochs import Epochs, epochs_of
from gpuplan.fairshare.jobs import Jobs
from gpuplan.fairshare.model import NEVER, FairshareScenario, Int64, Pool
from gpuplan.fairshare.tree import Tree, tree_of

#: Pools fit into the bits of a 64-bit integer.
MOST_POOLS = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """What every policy is a function of.

    Attributes
    ----------
    scenario, jobs, tree
        `jobs` are those of the scenario's file, or generated; with the habits of `scenario.behaviour`. `tree` is
        that of the start.
    team : int64[J]
        Index into ``tree.leaves``.
    minimum_s : int64[J]
        Effective minimum run time: the least of declared, cap and limit.
    mask : int64[J]
        Bit ``p`` is set where the job can ever run in pool ``p``; 0: set aside.
    node_gpus, node_pool : int64[N]
        GPUs and pool of each node.
    pool_first : int64[P + 1]
        Nodes of pool ``p`` are ``pool_first[p] .. pool_first[p + 1] - 1``.
    gpus
        GPUs installed.
    until_s
        The run stops there; `NEVER` where it runs until nothing is left.
    hysteresis
        Of the contract; the cap over the window where it gives none.
    set_aside : dict
        Jobs (rows) that can never run, with the reason.
    epochs
        The trees over time, where budgets change.
    """

    scenario: FairshareScenario
    jobs: Jobs
    tree: Tree
    team: Int64
    minimum_s: Int64
    mask: Int64
    node_gpus: Int64
    node_pool: Int64
    pool_first: Int64
    gpus: int
    until_s: int
    hysteresis: float
    set_aside: dict[int, str]
    epochs: Epochs


@lru_cache(maxsize=8)
def compile_problem(scenario: FairshareScenario) -> Problem:
    """The arrays of a scenario; generated workloads are made here, habits are applied here."""
    epochs = epochs_of(scenario.budget, scenario.budget_changes)
    tree = epochs.trees[0]
    jobs = jobs_of(scenario, tree_of(scenario.budget))
    contract = scenario.contract
    minimum = np.minimum(np.minimum(jobs.minimum_s, contract.max_min_runtime_s), jobs.limit_s)
    mask, set_aside = where_jobs_fit(scenario.pools, jobs)
    nodes = np.array([pool.nodes for pool in scenario.pools])
    sizes = np.array([pool.gpus_per_node for pool in scenario.pools])
    row = {path: k for k, path in enumerate(tree.teams)}
    hysteresis = contract.hysteresis
    return Problem(
        scenario,
        jobs,
        tree,
        np.fromiter((row[name] for name in jobs.team), np.int64, len(jobs)),
        minimum,
        mask,
        np.repeat(sizes, nodes).astype(np.int64),
        np.repeat(np.arange(len(nodes)), nodes).astype(np.int64),
        np.concatenate(([0], np.cumsum(nodes))).astype(np.int64),
        scenario.gpus,
        NEVER if scenario.until_s is None else scenario.until_s,
        contract.max_min_runtime_s / scenario.window_s if hysteresis is None else hysteresis,
        set_aside,
        epochs,
    )


def jobs_of(scenario: FairshareScenario, tree: Tree) -> Jobs:
    """The jobs that a scenario brings or asks to be generated, with the habits of the old world."""
    from gpuplan.fairshare import habits, workloads

    found = scenario.jobs
    seed = 0
    if found is None:
        if scenario.generate is None:
            raise ValueError("the scenario has neither jobs nor a workload to generate")
        found = workloads.generate(scenario.generate, scenario.pools, tree)
        seed = scenario.generate.seed
    return habits.apply(found, scenario.behaviour, seed)


def where_jobs_fit(pools: tuple[Pool, ...], jobs: Jobs) -> tuple[Int64, dict[int, str]]:
    """The pools in which each job can ever run (bits, int64[J]), and the reason where there is none."""
    mask = np.zeros(len(jobs), np.int64)
    reasons: dict[tuple[str, int, bool], str] = {}
    set_aside = {}
    kinds: dict[tuple[str, int, bool], int] = {}
    rows = list(zip(jobs.gpu.tolist(), jobs.gpus.tolist(), jobs.one_node.tolist(), strict=True))
    for kind in set(rows):
        kinds[kind] = sum(1 << p for p, pool in enumerate(pools) if _fits(pool, *kind))
        if not kinds[kind]:
            reasons[kind] = _why_never(pools, *kind)
    mask[:] = [kinds[kind] for kind in rows]
    for j in np.flatnonzero(mask == 0).tolist():
        set_aside[j] = reasons[rows[j]]
    return mask, set_aside


def _wants(pool: Pool, gpu: str) -> bool:
    return not gpu or pool.gpu in gpu.split("|")


def _fits(pool: Pool, gpu: str, gpus: int, one_node: bool) -> bool:
    size = pool.gpus_per_node
    if not _wants(pool, gpu):
        return False
    return gpus <= size or (not one_node and -(-gpus // size) <= pool.nodes)


def _why_never(pools: tuple[Pool, ...], gpu: str, gpus: int, one_node: bool) -> str:
    """Why a job can never run: ``16 A100 wanted, 8 exist``."""
    mine = [pool for pool in pools if _wants(pool, gpu)]
    kind = gpu.replace("|", " or ")
    if not mine:
        return f"no {kind}"
    exist = sum(pool.gpus for pool in mine)
    if gpus > exist:
        return f"{gpus} {kind or 'GPUs'} wanted, {exist} exist"
    if one_node:
        return f"{gpus} on one node wanted, largest node {max(pool.gpus_per_node for pool in mine)}"
    largest = max(pool.nodes * pool.gpus_per_node for pool in mine)
    return f"{gpus} {kind or 'GPUs'} wanted in one pool, the largest pool has {largest}"
