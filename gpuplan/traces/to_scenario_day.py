"""A day of a history as an allocation scenario: jobs as blocks of GPUs, what ran at midnight on the GPUs it has."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpuplan.allocation.file_parts import MOST_GPUS
from gpuplan.allocation.model import AllocationScenario, BatchJob, Horizon, RealtimeApp, Rules
from gpuplan.cluster import Cluster
from gpuplan.fairshare.model import HOUR
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.days import text_of
from gpuplan.traces.history import Bools, History, Int64
from gpuplan.traces.names import counted
from gpuplan.traces.to_scenario import Choices, Size, account_of, priorities_of, size_of, span_of
from gpuplan.traces.wish import Wish
from gpuplan.traces.work import NO_TIME, Work, sampled, work_of

#: Most jobs of a scenario file.
MOST_JOBS = 100_000


def day_scenario(
    history: History,
    wish: Wish,
    name: str,
    *,
    hint: int | None = None,
    priority: npt.NDArray[np.float64] | None = None,
    choices: Choices | None = None,
    realtime: Sequence[RealtimeApp] = (),
    span: tuple[int, int] | None = None,
) -> tuple[AllocationScenario, Account, Work]:
    """A scenario of the jobs of a day, known from the step in which they were submitted.

    Parameters
    ----------
    history, wish, name, hint, priority, choices
        Names of jobs are safe, unique, and no app's; else as in `gpuplan.traces.to_scenario_span.fairshare_of`.
    realtime
        Apps that share the cluster.
    span
        The day, where it was chosen before.

    Returns
    -------
    scenario, account, work
        The account covers every row of the file.

    Raises
    ------
    InputError
        If the day has no job, more than a file may have, or a choice cannot be.
    """
    said = Choices() if choices is None else choices
    first, last = span_of(history, wish, said) if span is None else span
    work = work_of(history, first, last, before=wish.before)
    work = sampled(work.some(work.run_s > 0, NO_TIME), wish.every)
    if not len(work) and not realtime:
        raise InputError(history.source, [Mistake("", "has no job with GPUs and a run time on this day")])
    if len(work) > MOST_JOBS:
        rule = f"has {len(work):,} jobs on this day; a scenario has at most {MOST_JOBS:,} (a larger one takes a sample)"
        raise InputError(history.source, [Mistake("every", rule, wish.every)])
    ranked = priorities_of(history, wish, said) if priority is None else priority
    size = size_of(work, wish, hint, said)
    if size.gpus > MOST_GPUS:
        raise InputError(
            history.source, [Mistake("gpus", f"must be at most {MOST_GPUS:,} on a day", size.gpus)]
        )
    step_s = 60 * wish.step_minutes
    steps = -(-(last - first) // step_s)
    batch = _jobs(work, wish, ranked, size, steps * step_s, said)
    scenario = AllocationScenario(
        name=wish.name or f"{name}-{text_of(first, history.zone)[:10]}",
        about=_about(work, said),
        cluster=Cluster(size.gpus, size.gpus_per_node),
        horizon=Horizon(steps, step_s, text_of(first, history.zone)[:16]),
        rules=Rules(must_finish=False, within_node=size.gpus_per_node is not None),
        realtime=tuple(realtime),
        batch=tuple(batch),
    )
    return scenario.replace({}), account_of(work, said), work  # held to the rules of a file


def _about(work: Work, choices: Choices) -> str:
    text = f"{counted(len(work), 'job')} of {work.history.source}. " + " ".join(choices.lines())
    return text if len(text) <= 3_900 else text[:3_900] + "..."


def _jobs(
    work: Work,
    wish: Wish,
    ranked: npt.NDArray[np.float64],
    size: Size,
    horizon_s: int,
    choices: Choices,
) -> list[BatchJob]:
    step_s = 60 * wish.step_minutes
    gpus, run = _blocks(work, wish, choices)
    at = work.submit_s // step_s * step_s
    kept = np.minimum(run, horizon_s - at)
    cut = int((kept < run).sum())
    choices.say(
        "Hours",
        f"jobs are known from the step of {wish.step_minutes} min in which they were submitted; "
        + (
            f"{cut:,} run beyond the day and are cut to what is left of it."
            if cut
            else "none runs beyond the day."
        ),
    )
    choices.say("Kind", "training, for files do not say what jobs do.")
    running = _places(work, gpus, size, choices)
    names = work.history.job[work.row].tolist()
    columns = (gpus, kept, ranked[work.row], at, running)
    return [
        BatchJob(
            name,
            "training",
            block,
            seconds / HOUR,
            round(rank, 3),
            earliest / HOUR,
            place if place >= 0 else None,
        )
        for name, block, seconds, rank, earliest, place in zip(
            names, *(column.tolist() for column in columns), strict=True
        )
    ]


def _blocks(work: Work, wish: Wish, choices: Choices) -> tuple[Int64, npt.NDArray[np.float64]]:
    """GPUs as powers of two, int64[J], and run times in seconds, float64[J]."""
    above = np.array([1 << (int(gpus) - 1).bit_length() for gpus in work.gpus.tolist()], np.int64)
    odd = above != work.gpus
    if wish.sizes == "up":
        if odd.any():
            more = int(((above - work.gpus) * work.run_s).sum()) / HOUR
            how = f"rounded up, the hours stay, {more:,.1f} GPU-hours more than recorded"
            choices.say("Sizes", f"{counted(int(odd.sum()), 'job')} without a power of two of GPUs: {how}.")
        gpus, run = above, work.run_s.astype(np.float64)
    else:
        gpus = np.where(odd, above // 2, above)
        run = np.ceil(work.gpus * work.run_s / np.maximum(gpus, 1))
        if odd.any():
            choices.say(
                "Sizes",
                f"{counted(int(odd.sum()), 'job')} without a power of two of GPUs: rounded down, the GPU-hours stay.",
            )
    if not odd.any():
        choices.say("Sizes", "all are powers of two.")
    huge = gpus > MOST_GPUS
    if huge.any():
        rule = f"must have jobs of at most {MOST_GPUS:,} GPUs on a day"
        raise InputError(work.history.source, [Mistake("gpus", rule, int(gpus.max()))])
    return gpus, run


def _places(work: Work, gpus: Int64, size: Size, choices: Choices) -> Int64:
    """First GPU of each job that runs when the day begins, -1 of the others; int64[J].

    The largest first, each on the lowest free block that starts at a multiple of its size within a node, or at the
    start of a node. A job that finds none waits, as one that was submitted before and had not started.
    """
    found = np.full(len(work), -1, np.int64)
    ran: Bools = work.carried & (work.recorded_s <= 0)
    free = np.ones(size.gpus, np.bool_)
    node = size.gpus_per_node or size.gpus
    for k in sorted(np.flatnonzero(ran).tolist(), key=lambda k: (-int(gpus[k]), k)):
        block = int(gpus[k])
        found[k] = _first_free(free, block, node)
        if found[k] >= 0:
            free[found[k] : found[k] + block] = False
    placed = int((found >= 0).sum())
    waits = int(work.carried.sum()) - placed
    if ran.any() or waits:
        homeless = int(ran.sum()) - placed
        tight = f"; {homeless:,} more ran then and find no free block: they wait" if homeless else ""
        where = "on GPUs that are ours to choose (the file has no GPU numbers)"
        choices.say(
            "Before",
            f"{counted(placed, 'job')} ran when the day began, {where}{tight}; {waits - homeless:,} waited.",
        )
    return found


def _first_free(free: Bools, block: int, node: int) -> int:
    """The lowest free block; -1: there is none."""
    if block >= node:
        nodes = -(-block // node)
        starts = range(0, len(free) - block + 1, node)
        return next((at for at in starts if free[at : min(at + nodes * node, len(free))].all()), -1)
    for at in range(0, len(free), node):
        last = min(at + node, len(free))
        for first in range(at, last - block + 1, block):
            if free[first : first + block].all():
                return first
    return -1
