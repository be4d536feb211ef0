"""Habits of the old world, as changes of a job list: what people do when only priority gets them GPUs.

Each job has one uniform number per habit, from the seed and its name alone: a job that is inflated at a rate of 0.3
is inflated at 0.5 too, and nobody's number depends on who else is there.
"""

import hashlib
import zlib
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from gpuplan.fairshare.jobs import Jobs
from gpuplan.fairshare.model import HOUR, Behaviour, Bools, Floats

#: How long a no-op job holds its GPUs for its owner: a working day.
HOLD_S = 8 * HOUR

_Column = TypeVar("_Column", bound=npt.NDArray[np.generic])


def apply(jobs: Jobs, behaviour: Behaviour, seed: int) -> Jobs:
    """The jobs as people with these habits submit them; the very same object where all rates are 0.

    Squatting comes first: a no-op job may be inflated and opt out as any other.

    Parameters
    ----------
    jobs
        What people really want to run.
    behaviour
        Rates from 0 to 1.
    seed
        Of the scenario; each habit takes a stream of its own from it.
    """
    if not len(jobs):
        return jobs
    rates = (behaviour.squatting, behaviour.inflation, behaviour.opt_out)
    if not any(rates):
        return jobs
    if behaviour.squatting:
        jobs = squatted(jobs, chosen(jobs, behaviour.squatting, seed, "squatting"))
    if behaviour.inflation:
        jobs = inflated(jobs, chosen(jobs, behaviour.inflation, seed, "inflation"))
    if behaviour.opt_out:
        marked = chosen(jobs, behaviour.opt_out, seed, "opting out")
        jobs = opted_out(jobs, marked, behaviour.opt_out_limit_gpus)
    return jobs


def inflated(jobs: Jobs, marked: Bools) -> Jobs:
    """Jobs that declare the highest priority, whatever they are worth.

    It stands for a priority that costs nothing: whoever declares less waits for those who declare more, until all
    of the work is urgent and the levels below starve. The highest is that of the jobs as they are, or, where all
    declare the same, the next above.
    """
    highest = int(jobs.priority.max()) + int(jobs.priority.max() == jobs.priority.min())
    return replace(jobs, priority=_fixed(np.where(marked, highest, jobs.priority)))


def squatted(jobs: Jobs, marked: Bools, hold_s: int = HOLD_S) -> Jobs:
    """Debug jobs whose owner submits a no-op job instead, and works inside it.

    It stands for GPUs that are kept because a debug run would not start in time: the no-op job holds the same GPUs
    for ``hold_s`` (or for the run, where that is longer), of which only the debug run is work, the rest `Jobs.idle_s`.
    It dies when it is preempted, so its owner declares the whole of it as limit and as minimum run time, of which
    budgets protect as much as their cap allows. To the scheduler it is a debug job no more.
    """
    marked = marked & jobs.debug
    held = np.where(marked, np.maximum(jobs.run_s, hold_s), jobs.run_s)
    return replace(
        jobs,
        run_s=_fixed(held),
        limit_s=_fixed(np.where(marked, held, jobs.limit_s)),
        minimum_s=_fixed(np.where(marked, held, jobs.minimum_s)),
        resumable=_fixed(jobs.resumable & ~marked),
        idle_s=_fixed(np.where(marked, held - jobs.run_s + jobs.idle_s, jobs.idle_s)),
    )


def opted_out(jobs: Jobs, marked: Bools, limit_gpus: int) -> Jobs:
    """Jobs that opt out of preemption; one larger than the team's limit of such GPUs cannot.

    It stands for the exception that a priority scheme grants for work that cannot be interrupted, and that is used
    up to its limit because nothing speaks against it. What the limit refuses at an instant is the policy's business.
    """
    return replace(jobs, opted_out=_fixed(jobs.opted_out | (marked & (jobs.gpus <= limit_gpus))))


def chosen(jobs: Jobs, rate: float, seed: int, habit: str) -> Bools:
    """The jobs that a rate takes: those whose number for the habit lies below it, bool[J]."""
    return _numbers(jobs, seed, habit) < rate


def _numbers(jobs: Jobs, seed: int, habit: str) -> Floats:
    """A uniform number from 0 to 1 per job, float64[J], from the seed, the habit and the job's name.

    The names' checksums are mixed as in SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
    generators", OOPSLA 2014).
    """
    key = hashlib.sha256(f"{seed}/{habit}".encode()).digest()
    names = np.array([zlib.crc32(name.encode("utf-8", "surrogatepass")) for name in jobs.name], np.uint64)
    mixed = names * np.uint64(0x9E3779B97F4A7C15) + np.frombuffer(key, "<u8")[:1]
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    numbers: Floats = (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53
    return numbers


def _fixed(column: _Column) -> _Column:
    """The column, read-only."""
    column.flags.writeable = False
    return column
