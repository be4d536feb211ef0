"""A run by hand with a model over two GPUs: tiny numbers (bytes, microseconds), every one of them worked out."""

import numpy as np

from gpuplan.packing.model import NEVER, Contention, ServedModel
from gpuplan.packing.problem import Problem
from gpuplan.packing.raw import DONE, LOAD, RUN, WENT_ON, Breaches, Copies, RawPack, Stages
from gpuplan.packing.tasks import tasks
from packing.by_hand import SMALL, problem_of

#: On each of two GPUs like `SMALL`: reserves 40, takes 40 + 5 of workspace, 1 byte per token, leaves 3.
WIDE = ServedModel(
    "wide", 79, 80, context_bytes=0, workspace_bytes=5, kv_bytes_per_token=2, asleep_bytes=5, gpus=2
)

#: Reserves and takes 90.
HUGE = ServedModel("huge", 90, 90, context_bytes=0)


def over_two() -> tuple[Problem, RawPack]:
    """Two GPUs of 125 bytes that tasks share: `SMALL` (0), `HUGE` (1), `WIDE` (2).

    - 0: wide, 10 tokens in, 10 out, 20 us of service, at 0. Loads on both GPUs 0-4, runs alone 4-14.
    - 1: small, 6 us, at 10. GPU 0 and 1 both have 80 free less 40 reserved; GPU 1 is told to take it: loads 10-14, runs
      14-26 at half speed. Task 0 goes at the least speed of its GPUs: 10 us done at 14, 16 at 26, all at 30.
    - 2: huge, 6 us, at 32: 40 + 90 > 125 on GPU 0. The idle wide copy is evicted for it, on both GPUs, gone at 37;
      loads 37-46, runs 46-52.
    - 3: wide, 2 us, at 60: huge has to go for its part on GPU 0, gone at 65; loads 65-69, runs 69-71.
    """
    made = tasks(
        [0, 10, 32, 60], [2, 0, 1, 2], ["a", "b", "a", "b"], service_us=[20, 6, 6, 2],
        tokens_in=[10, 0, 0, 0], tokens_out=[10, 0, 0, 0],
    )  # fmt: skip
    problem = problem_of(
        made, count=2, memory=125, models=(SMALL, HUGE, WIDE), contention=Contention("sharing")
    )
    stages: list[tuple[int, ...]] = [  # task, GPU, kind, outcome, from, to, copy
        (0, 0, LOAD, WENT_ON, 0, 4, 0),
        (0, 0, RUN, WENT_ON, 4, 30, 0),
        (1, 1, LOAD, WENT_ON, 10, 14, 1),
        (1, 1, RUN, WENT_ON, 14, 26, 1),
        (2, 0, LOAD, WENT_ON, 32, 46, 2),
        (2, 0, RUN, WENT_ON, 46, 52, 2),
        (3, 0, LOAD, WENT_ON, 60, 69, 3),
        (3, 0, RUN, WENT_ON, 69, 71, 3),
    ]
    copies: list[
        tuple[int, ...]
    ] = [  # model, GPU, claimed, load, ready, evicted, released, from disk, for task
        (2, 0, 0, 0, 4, 32, 37, 1, 0),
        (0, 1, 10, 10, 14, NEVER, NEVER, 1, 1),
        (1, 0, 32, 37, 46, 60, 65, 1, 2),
        (2, 0, 60, 65, 69, NEVER, NEVER, 0, 3),
    ]
    on, starts = [0, 1, 1, 0, 0, 1], [0, 2, 3, 4, 6]
    return problem, wide_raw(stages, copies, on, starts, [DONE] * 4, [30, 26, 52, 71], 71)


def wide_raw(
    stages: list[tuple[int, ...]],
    copies: list[tuple[int, ...]],
    on: list[int],
    starts: list[int],
    state: list[int],
    left: list[int],
    end_us: int,
) -> RawPack:
    """A run from rows: stages of (task, gpu, kind, outcome, start, end, copy), copies as in `by_hand`, their GPUs."""
    task, gpu, kind, outcome, start, end, copy = _columns(stages, 7)
    return RawPack(
        Stages(task, gpu, kind, outcome, start, end, start, np.zeros(len(task), np.int64), copy),
        Copies(*_columns(copies, 9), np.array(on, np.int64), np.array(starts, np.int64)),
        Breaches(*_columns([], 4)),
        np.array(state, np.int64),
        np.array(left, np.int64),
        np.zeros(len(state), np.int64),
        end_us,
    )


def _columns(rows: list[tuple[int, ...]], n: int) -> list[np.ndarray]:
    return [np.array([row[k] for row in rows], np.int64) for k in range(n)]
