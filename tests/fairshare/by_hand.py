"""Runs written by hand: a few jobs, the stretches that a policy might have made of them."""

from dataclasses import fields, replace
from typing import Any

import numpy as np

from gpuplan.fairshare.jobs import Jobs, jobs
from gpuplan.fairshare.model import NEVER, BudgetNode, Contract, FairshareScenario, Pool
from gpuplan.fairshare.problem import Problem, compile_problem
from gpuplan.fairshare.raw import FINISHED, PREEMPTED, RUNNING, RawRun, Stretches
from gpuplan.fairshare.run import Run

#: Restart 10 s, checkpoints every 60 s, minimum at most 1 h, a ratio lower by .01 has the better claim.
CONTRACT = Contract(max_min_runtime_s=3600, checkpoint_every_s=60, restart_cost_s=10, hysteresis=0.01)

HALVES = (BudgetNode("a"), BudgetNode("b"))


def problem_of(made: Jobs, pools: tuple[Pool, ...] = (Pool(2, 4),), **changes: Any) -> Problem:
    """The problem of these jobs, by default on two nodes of 4 for teams a and b."""
    scenario = FairshareScenario("by hand", pools, HALVES, window_s=7200, contract=CONTRACT, jobs=made)
    return compile_problem(replace(scenario, **changes))


def raw_of(
    problem: Problem,
    rows: list[tuple[Any, ...]],
    end_s: int,
    repairs: tuple[tuple[int, int], ...] = (),
    set_aside: dict[int, str] | None = None,
) -> RawRun:
    """A run from rows of (job, start, end, outcome, {node: gpus}, overhead, kept, allocated, protected until).

    Whatever is left out at the end of a row: no overhead, all kept, allocated, nothing protected.
    """
    full = []
    for row in sorted(rows, key=lambda row: row[1]):
        job, start, end, outcome, places, *rest = row
        overhead = rest[0] if len(rest) > 0 else 0
        kept = rest[1] if len(rest) > 1 else end - start - overhead
        allocated = rest[2] if len(rest) > 2 else True
        protected = rest[3] if len(rest) > 3 else start
        full.append((job, start, end, overhead, kept, allocated, protected, outcome, places))
    columns = list(zip(*(row[:8] for row in full), strict=True)) or [()] * 8
    dtypes = (*[np.int64] * 5, np.bool_, np.int64, np.int8)
    places = [(s, node, gpus) for s, row in enumerate(full) for node, gpus in sorted(row[8].items())]
    where = np.array(places, np.int64).reshape(-1, 3)
    order = (0, 1, 2, 3, 4, 5, 6, 7)
    arrays = [np.array(columns[i], dtype) for i, dtype in zip(order, dtypes, strict=True)]
    began, ended = (np.array([r[k] for r in repairs], np.int64) for k in (0, 1))
    return RawRun(
        Stretches(*arrays, *(where[:, k].copy() for k in range(3))), end_s, began, ended, set_aside or {}
    )


def changed(raw: RawRun, **columns: Any) -> RawRun:
    """The run with columns of its stretches replaced; a column may be a function of the old one's copy."""
    new = {}
    for name, value in columns.items():
        old = getattr(raw.stretches, name).copy()
        new[name] = value(old) if callable(value) else np.asarray(value, old.dtype)
    assert set(new) <= {f.name for f in fields(Stretches)}
    return replace(raw, stretches=replace(raw.stretches, **new))


def two_teams() -> tuple[Problem, RawRun]:
    """A run of ``fair-share`` with a preemption, on 8 GPUs as 4 + 4 until 1,000 s.

    - 0 ``long`` (a): 4 GPUs, 600 s of work, minimum 100 s. Node 0, 0-300, preempted: 300 s = 5 checkpoints kept;
      again 500-810: 10 s of restart, then the other 300 s.
    - 1 ``fill`` (b): 4 GPUs, minimum 0: unallocated. Node 1, 50-310 s, preempted after 260 s: 240 kept, 20 lost;
      600-1,000: 10 s of restart, 390 s of work, still running with 1,000 s to do in all.
    - 2 ``quick`` (b): 4 GPUs, debug (minimum 60 s), submitted at 300 s, runs at once for 200 s on node 0.
    - 3 ``next`` (a): 2 GPUs, minimum 100 s, submitted at 305 s, on node 1 310-600 s.
    - 4 ``late`` (a): 8 GPUs, submitted at 700 s, never starts.
    """
    made = jobs(
        ["long", "fill", "quick", "next", "late"],
        [0, 50, 300, 305, 700],
        [4, 4, 4, 2, 8],
        [600, 1000, 200, 290, 500],
        team=["a", "b", "b", "a", "a"],
        minimum_s=[100, 0, 60, 100, 1000],
    )
    problem = problem_of(made, until_s=1000)
    rows = [
        (0, 0, 300, PREEMPTED, {0: 4}, 0, 300, True, 100),
        (1, 50, 310, PREEMPTED, {1: 4}, 0, 240, False, 50),
        (2, 300, 500, FINISHED, {0: 4}, 0, 200, True, 360),
        (3, 310, 600, FINISHED, {1: 2}, 0, 290, True, 410),
        (0, 500, 810, FINISHED, {0: 4}, 10, 300, True, 600),
        (1, 600, 1000, RUNNING, {1: 4}, 10, 390, False, 600),
    ]
    return problem, raw_of(problem, rows, 1000)


def run_of(problem: Problem, raw: RawRun, policy: str = "fair-share") -> Run:
    """The run as an object."""
    return Run(problem, policy, raw, 0.0)


__all__ = ["FINISHED", "NEVER", "PREEMPTED", "RUNNING"]
