"""What is where at an instant of a run, and how it is named in a sentence."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.inputs.errors import shorten
from gpuplan.packing.check_node import condemned
from gpuplan.packing.model import Bools, Int64
from gpuplan.packing.raw import CUT, OUT_OF_MEMORY
from gpuplan.packing.spread import gpus_of_stage
from gpuplan.packing.words import amount

if TYPE_CHECKING:
    from gpuplan.packing.run import PackRun


def model_name(run: "PackRun", m: int) -> str:
    """Name of a model, as long as a sentence bears."""
    return shorten(run.scenario.models[m].name)


def each_of(size: int, spread: int) -> str:
    """Bytes for people, and that they are on each of several GPUs: ``40 GiB on each of 2 GPUs``."""
    return amount(size) if spread == 1 else f"{amount(size)} on each of {spread:,} GPUs"


class Instant:
    """What is where at an instant, after everything that happened at it.

    Attributes
    ----------
    stage_of : int64[J]
        The stage that each task is in; -1: on no GPU.
    last_of : int64[J]
        Its last stage that began by then; -1: none.
    queued : bool[J]
        Tasks in the queue.
    copies : int64[C']
        Copies that are claimed and not released.
    """

    def __init__(self, run: "PackRun", t: int) -> None:
        self.run, self.t = run, t
        problem, raw = run.problem, run.raw
        rows, tasks, n = raw.stages, problem.tasks, len(problem.tasks)
        begun = np.flatnonzero(rows.start_us <= t)
        on = begun[(rows.end_us[begun] > t) | ((rows.outcome[begun] == CUT) & (rows.end_us[begun] == t))]
        self.stage_of: Int64 = np.full(n, -1, np.int64)
        self.stage_of[rows.task[on]] = on
        self.last_of: Int64 = np.full(n, -1, np.int64)
        self.last_of[rows.task[begun]] = begun
        here = (tasks.arrival_us <= t) & (raw.left_us > t) & (self.stage_of < 0)
        here[list(problem.rejected)] = False
        paused = np.flatnonzero(here & (self.last_of >= 0))
        last = self.last_of[paused]
        after = run.scenario.retry.after_us
        here[paused[(rows.outcome[last] == OUT_OF_MEMORY) & (rows.end_us[last] + after > t)]] = False
        self.queued: Bools = here
        copies = raw.copies
        self.copies: Int64 = np.flatnonzero((copies.claimed_us <= t) & (copies.released_us > t))
        self.goes: Int64 = condemned(problem, raw)

    def on(self, *gpus: int) -> Int64:
        """Stages on a GPU, or on any of several."""
        stages = self.stage_of[self.stage_of >= 0]
        there = np.isin(stages, np.concatenate([self.run.memory.stages_on(g) for g in gpus]))
        here: Int64 = stages[there]
        return here

    def copies_on(self, *gpus: int) -> Int64:
        """Copies on a GPU, or on any of several, by claim."""
        there = np.concatenate([self.run.memory.copies_on(g) for g in gpus])
        here: Int64 = self.copies[np.isin(self.copies, there)]
        return here

    def copy_of(self, model: int, *gpus: int) -> int:
        """The copy of a model on a GPU (or the first of several) that need not go; -1: none."""
        for gpu in gpus:
            mine = self.copies_on(gpu)
            mine = mine[(self.run.raw.copies.model[mine] == model) & (self.goes[mine] > self.t)]
            if len(mine):
                return int(mine[-1])
        return -1

    def gpus_of(self, stage: int) -> list[int]:
        """The GPUs that the task of a stage is on."""
        return gpus_of_stage(self.run.raw, stage)

    def line(self, gpu: int | None) -> Int64:
        """Tasks in a queue, in its order (that of arrival where a policy merges by model)."""
        tasks, pieces = self.run.problem.tasks, self.run.pieces
        rows = np.flatnonzero(self.queued)
        if gpu is not None:
            rows = rows[rows % self.run.scenario.gpus.count == gpu]
        first = tasks.predicted_us[rows] if pieces.order == "shortest" else np.zeros(len(rows), np.int64)
        by: Int64 = rows[np.lexsort((rows, first, -tasks.priority[rows]))]
        return by
