"""Packing runs written by hand: tiny numbers (bytes, microseconds), every one of them worked out."""

from dataclasses import replace
from typing import Any

import numpy as np

from gpuplan.packing.model import (
    NEVER,
    SECOND,
    Admission,
    Gpus,
    PackingScenario,
    Pieces,
    Preemption,
    Retry,
    ServedModel,
)
from gpuplan.packing.problem import Problem, compile_problem
from gpuplan.packing.raw import (
    CUT,
    DONE,
    FAILED,
    LOAD,
    ON_GPU,
    OUT_OF_MEMORY,
    PREEMPTED,
    REJECTED,
    RESTORE,
    RUN,
    SAVE,
    TIMED_OUT,
    WAITING,
    WENT_ON,
    Breaches,
    Copies,
    RawPack,
    Stages,
)
from gpuplan.packing.run import PackRun
from gpuplan.packing.tasks import Tasks, tasks

#: Host links of 10 bytes per us, a disk that is never in the way.
LINK = 10 * SECOND

#: Reserves 40, takes 40 + 5 of workspace, 1 byte per token, leaves 3.
SMALL = ServedModel("small", 40, 40, context_bytes=0, workspace_bytes=5, kv_bytes_per_token=1, asleep_bytes=3)

#: Reserves and takes 70.
LARGE = ServedModel("large", 70, 70, context_bytes=0)

PIECES = Pieces("first-fit", "fifo", "lru")


def problem_of(made: Tasks, count: int = 1, memory: int = 100, **changes: Any) -> Problem:
    """The problem of these tasks, by default of `SMALL` (0) and `LARGE` (1) on one GPU of 100 bytes."""
    gpus = Gpus(count, memory, LINK, 1000 * LINK, release_us=5)
    scenario = PackingScenario(
        "by hand",
        gpus,
        (SMALL, LARGE),
        admission=Admission(margin=0, count_context=False),
        policy=PIECES,
        tasks=made,
    )
    return compile_problem(replace(scenario, **changes))


def raw_of(
    stages: list[tuple[int, ...]],
    copies: list[tuple[int, ...]],
    state: list[int],
    left: list[int],
    end_us: int,
    failures: list[int] | None = None,
    breaches: list[tuple[int, ...]] | None = None,
    sets: list[tuple[int, ...]] | None = None,
) -> RawPack:
    """A run from rows: stages of (task, gpu, kind, outcome, start, end[, frozen from[, attempt[, copy]]]), and others.

    Copies are (model, gpu, claimed, load, ready, evicted, released, from disk, for task), breaches (time, gpu, task,
    model), `sets` the GPUs of each copy: where there are none, each is on its one GPU.
    """
    rows = [(*row[:6], *(row[6:7] or (row[4],)), *(row[7:8] or (0,))) for row in stages]
    served: list[int] = []
    for k, row in enumerate(stages):
        served.append(row[8] if len(row) > 8 else _copy_of(stages[: k + 1], served, copies))
    where = sets or [copy[1:2] for copy in copies]
    on = [gpu for gpus in where for gpu in gpus]
    return RawPack(
        Stages(*_columns(rows, 8), np.array(served, np.int64)),
        Copies(*_columns(copies, 9), np.array(on, np.int64), np.cumsum([0, *map(len, where)])),
        Breaches(*_columns(breaches or [], 4)),
        np.array(state, np.int64),
        np.array(left, np.int64),
        np.array(failures or [0] * len(state), np.int64),
        end_us,
    )


def _copy_of(stages: list[tuple[int, ...]], served: list[int], copies: list[tuple[int, ...]]) -> int:
    """The copy of the last of these stages: that of the stage before it, the one claimed for it, the newest there."""
    task, gpu, kind, _, start, end, *_ = stages[-1]
    if kind in (RUN, SAVE):
        before = [k for k, stage in enumerate(stages[:-1]) if stage[0] == task]
        if before:
            return served[before[-1]]
    there = [c for c, row in enumerate(copies) if row[1] == gpu and row[2] <= start and row[5] >= end]
    own = [c for c in there if copies[c][2] == start and copies[c][8] == task]
    return max(own or there, default=-1)


def _columns(rows: list[tuple[int, ...]], n: int) -> list[Any]:
    return [np.array([row[k] for row in rows], np.int64) for k in range(n)]


def changed(raw: RawPack, part: str, **columns: Any) -> RawPack:
    """The run with columns of one of its tables replaced; a column may be a function of the old one's copy."""
    table = getattr(raw, part)
    new = {}
    for name, value in columns.items():
        old = getattr(table, name).copy()
        new[name] = value(old) if callable(value) else np.asarray(value, old.dtype)
    return replace(raw, **{part: replace(table, **new)})


def preempted() -> tuple[Problem, RawPack]:
    """One GPU of 100 bytes: a task of `SMALL` is interrupted for one of `LARGE`.

    - 0: small, 10 tokens in, 10 out, 20 us of service, arrives at 0. Load 0-4 (40 bytes at 10 per us), runs 4-10.
    - 1: large, priority 1, 8 us, arrives at 10: 40 + 70 > 100. Task 0 is saved 10-16, its copy evicted at 16 and gone
      at 21 (5 later); 70 bytes load 21-28; runs 28-36.
    - 0 again: placed at 36, when large is idle: large gone at 41, small loads 41-45, restored by 47 (2 later), runs
      its last 14 us 47-61.
    """
    made = tasks(
        [0, 10], [0, 1], ["a", "b"], [0, 1], service_us=[20, 8], tokens_in=[10, 0], tokens_out=[10, 0]
    )
    problem = problem_of(made, preemption=Preemption("always", 0, 6, 2))
    stages = [
        (0, 0, LOAD, WENT_ON, 0, 4),
        (0, 0, RUN, PREEMPTED, 4, 10),
        (1, 0, LOAD, WENT_ON, 10, 28),
        (0, 0, SAVE, WENT_ON, 10, 16),
        (1, 0, RUN, WENT_ON, 28, 36),
        (0, 0, RESTORE, WENT_ON, 36, 47, 45),
        (0, 0, RUN, WENT_ON, 47, 61),
    ]
    copies = [
        (0, 0, 0, 0, 4, 16, 21, 1, 0),
        (1, 0, 10, 21, 28, 36, 41, 1, 1),
        (0, 0, 36, 41, 45, NEVER, NEVER, 0, 0),
    ]
    return problem, raw_of(stages, copies, [DONE, DONE], [61, 36], 61)


def out_of_memory() -> tuple[Problem, RawPack]:
    """One GPU of 60 bytes: two tasks of `SMALL`, whose KV grows too large.

    Each has 5 tokens in, 10 out, 20 us of service: 45 + 5 + 5 + floor(dx / 2) + floor(dy / 2) > 60.

    - 0 arrives at 0, loads 0-4, runs 4-24.
    - 1 arrives at 6, runs at once; at 12 (8 and 6 us done: 4 + 3 tokens) it fails, having begun last. It comes back
      10 later: at 22 the other has 9 tokens more, 45 + 14 + 5 = 64: it fails at once. At 32 it is alone: 32-52.
    - 2 arrives at 3 and wants `LARGE`, which no GPU can hold.
    """
    made = tasks([0, 3, 6], [0, 1, 0], service_us=20, tokens_in=5, tokens_out=10)
    problem = problem_of(made, memory=60, retry=Retry(3, 10))
    stages = [
        (0, 0, LOAD, WENT_ON, 0, 4),
        (0, 0, RUN, WENT_ON, 4, 24),
        (2, 0, LOAD, WENT_ON, 6, 6),
        (2, 0, RUN, OUT_OF_MEMORY, 6, 12),
        (2, 0, LOAD, WENT_ON, 22, 22, 22, 1),
        (2, 0, RUN, OUT_OF_MEMORY, 22, 22, 22, 1),
        (2, 0, LOAD, WENT_ON, 32, 32, 32, 2),
        (2, 0, RUN, WENT_ON, 32, 52, 32, 2),
    ]
    copies = [(0, 0, 0, 0, 4, NEVER, NEVER, 1, 0)]
    breaches = [(12, 0, 2, 0), (22, 0, 2, 0)]
    return problem, raw_of(stages, copies, [DONE, REJECTED, DONE], [24, 3, 52], 52, [0, 0, 2], breaches)


def run_of(problem: Problem, raw: RawPack, pieces: Pieces = PIECES, policy: str = "first-fit") -> PackRun:
    """The run as an object."""
    return PackRun(problem, policy, pieces, raw, 0.0)


__all__ = ["CUT", "FAILED", "NEVER", "ON_GPU", "TIMED_OUT", "WAITING"]
