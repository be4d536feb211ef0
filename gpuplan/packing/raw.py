"""What a policy did, as columns: what every kernel of this slice gives and every result reads."""

from dataclasses import dataclass

from gpuplan.packing.model import Int64

#: Stages of a task on a GPU.
LOAD, RUN, SAVE, RESTORE = range(4)

#: How a stage ended: went on to the next, interrupted for a task of higher priority, failed for memory, cut by the end.
WENT_ON, PREEMPTED, OUT_OF_MEMORY, CUT = range(4)

#: What became of a task. `WAITING`, `ON_GPU`: still in the system when the run ended.
DONE, REJECTED, FAILED, TIMED_OUT, WAITING, ON_GPU = range(6)


@dataclass(frozen=True, slots=True)
class Stages:
    """Stages of tasks on GPUs, half-open, in the order of their starts (ties: in the order they were decided).

    A `LOAD` stage (from placement to the first `RUN`) and a `RESTORE` stage (from placement to the next `RUN`) are
    there even where they take no time; each `RUN` that was preempted is followed by a `SAVE`.

    Attributes
    ----------
    task : int64[S]
    gpu : int64[S]
        The GPU; of a task of a model over several, the lowest.
    kind, outcome : int64[S]
    start_us, end_us : int64[S]
    frozen_from_us : int64[S]
        Of a `RESTORE`: from then on its KV is in memory (when its instance was ready); else `start_us`.
    attempt : int64[S]
        0, or how often the task had failed for memory before.
    copy : int64[S]
        Row of the copy that serves it, in `Copies`.
    """

    task: Int64
    gpu: Int64
    kind: Int64
    outcome: Int64
    start_us: Int64
    end_us: Int64
    frozen_from_us: Int64
    attempt: Int64
    copy: Int64

    def __len__(self) -> int:
        return len(self.task)


@dataclass(frozen=True, slots=True)
class Copies:
    """Loaded copies of models, in the order of their claims; `NEVER` for what did not happen by the end of the run.

    Attributes
    ----------
    model : int64[C]
    gpu : int64[C]
        The GPU; of a model over several, the lowest.
    claimed_us, load_us, ready_us, evicted_us, released_us : int64[C]
        Claim; start of the transfer (memory is taken from then on); ready; eviction decided; memory back. A load that
        failed for memory has `load_us` = `evicted_us` = `released_us`, and `ready_us` `NEVER`.
    from_disk : int64[C]
        1 where the transfer came from disk.
    for_task : int64[C]
        The task for which it was claimed; -1: resident from the start.
    on : int64[sum of GPUs of all copies]
    starts : int64[C + 1]
        Copy ``c`` is on the GPUs ``on[starts[c] : starts[c + 1]]``, ascending.
    """

    model: Int64
    gpu: Int64
    claimed_us: Int64
    load_us: Int64
    ready_us: Int64
    evicted_us: Int64
    released_us: Int64
    from_disk: Int64
    for_task: Int64
    on: Int64
    starts: Int64

    def __len__(self) -> int:
        return len(self.model)


@dataclass(frozen=True, slots=True)
class Breaches:
    """Out-of-memory events, in their order.

    Attributes
    ----------
    time_us, gpu : int64[O]
    task : int64[O]
        The task that failed; -1: a load.
    model : int64[O]
        Model of the task, or of the load.
    """

    time_us: Int64
    gpu: Int64
    task: Int64
    model: Int64

    def __len__(self) -> int:
        return len(self.time_us)


@dataclass(frozen=True, slots=True)
class RawPack:
    """What a policy did.

    Attributes
    ----------
    stages, copies, breaches
    state : int64[J]
        `DONE`, `REJECTED`, `FAILED`, `TIMED_OUT`, `WAITING` or `ON_GPU`.
    left_us : int64[J]
        When the task left (done, rejected, failed, timed out); `NEVER` where it had not.
    failures : int64[J]
        How often it failed for memory.
    end_us
        The run ended there: its horizon, or the last instant at which anything happened.
    """

    stages: Stages
    copies: Copies
    breaches: Breaches
    state: Int64
    left_us: Int64
    failures: Int64
    end_us: int
