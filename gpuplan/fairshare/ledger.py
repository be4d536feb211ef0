"""What became of each job, in whole GPU-seconds: the books from which every figure is taken."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpuplan.fairshare.model import NEVER, Bools, Int64
from gpuplan.fairshare.raw import FINISHED, PREEMPTED, RUNNING, SHUT_DOWN

if TYPE_CHECKING:
    from gpuplan.fairshare.problem import Problem
    from gpuplan.fairshare.raw import RawRun

#: What a job is doing when the run ends.
STATES = ("finished", "running", "waiting", "set-aside", "not-submitted")
S_FINISHED, S_RUNNING, S_WAITING, S_SET_ASIDE, S_NOT_SUBMITTED = range(5)


@dataclass(frozen=True, slots=True)
class Ledger:
    """``J`` jobs as columns, ``S`` stretches as columns.

    Attributes
    ----------
    state : int8[J]
        Row of `STATES` when the run ends.
    counted : bool[J]
        Submitted and not set aside: has a wait.
    charged : bool[J]
        Its declared minimum run time is above 0: work that counts as owed and delivered.
    first_start_s, gone_s : int64[J]
        First start (-1: never); its end, or the end of the run where it has not finished.
    wait_s : int64[J]
        First start minus submission; for a job that never started the wait so far; -1 where it has none.
    waits_on : bool[J]
        The wait is a lower bound: it has not ended.
    interruptions : int64[J]
        Stretches that were preempted or shut down.
    kept_s : int64[J]
        Run time that is done and outlives its stretch.
    lost_s : int64[J]
        Seconds on GPUs that were not kept: repeated work and restarts.
    stretch_lost_s : int64[S]
        The same, by stretch.
    """

    state: npt.NDArray[np.int8]
    counted: Bools
    charged: Bools
    first_start_s: Int64
    gone_s: Int64
    wait_s: Int64
    waits_on: Bools
    interruptions: Int64
    kept_s: Int64
    lost_s: Int64
    stretch_lost_s: Int64


def ledger(problem: "Problem", raw: "RawRun") -> Ledger:
    """The books of a run."""
    jobs, stretches = problem.jobs, raw.stretches
    n = len(jobs)
    first, last = np.full(n, -1, np.int64), np.full(n, raw.end_s, np.int64)
    outcome = np.full(n, -1, np.int8)
    # of several rows of one job the last one that is written stays
    first[stretches.job[::-1]] = stretches.start_s[::-1]
    last[stretches.job] = stretches.end_s
    outcome[stretches.job] = stretches.outcome
    started = first >= 0
    state = np.full(n, S_WAITING, np.int8)
    state[outcome == RUNNING] = S_RUNNING
    state[outcome == FINISHED] = S_FINISHED
    early = jobs.submit_s < problem.until_s if problem.until_s < NEVER else jobs.submit_s <= raw.end_s
    state[~(early | started)] = S_NOT_SUBMITTED
    for j in (*problem.set_aside, *raw.set_aside):
        state[j] = S_SET_ASIDE
    counted = state < S_SET_ASIDE
    wait = np.where(started, first, raw.end_s) - jobs.submit_s
    ran = stretches.end_s - stretches.start_s
    lost = ran - stretches.kept_s
    cut = (stretches.outcome == PREEMPTED) | (stretches.outcome == SHUT_DOWN)
    return Ledger(
        state,
        counted,
        jobs.minimum_s > 0,
        first,
        np.where(state == S_FINISHED, last, raw.end_s),
        np.where(counted, wait, -1),
        counted & ~started,
        np.bincount(stretches.job[cut], minlength=n).astype(np.int64),
        _by_job(stretches.job, stretches.kept_s, n),
        _by_job(stretches.job, lost, n),
        lost,
    )


def _by_job(job: Int64, seconds: Int64, n: int) -> Int64:
    """Sums by job, int64[n]; seconds of one job are far below 2 ** 53, so floats are exact."""
    return np.bincount(job, seconds, n).astype(np.int64)


def gpu_seconds(gpus: Int64, seconds: Int64) -> int:
    """Sum of GPUs x seconds as a whole number of any size (it never wraps)."""
    if not len(gpus):
        return 0
    if float(np.abs(gpus).max()) * float(np.abs(seconds).max()) * len(gpus) < 2.0**62:
        return int(np.dot(gpus, seconds))
    return int(np.dot(gpus.astype(object), seconds.astype(object)))


def occupied(problem: "Problem", raw: "RawRun", books: Ledger) -> dict[str, int]:
    """GPU-seconds that jobs held their GPUs: ``occupied = useful + lost`` (restarts included).

    `useful` is what stretches keep, `lost` what they do not; the three are added up separately.
    """
    jobs, stretches = problem.jobs, raw.stretches
    gpus = jobs.gpus[stretches.job]
    return {
        "occupied": gpu_seconds(gpus, stretches.end_s - stretches.start_s),
        "useful": gpu_seconds(gpus, stretches.kept_s),
        "lost": gpu_seconds(jobs.gpus, books.lost_s),
    }


def requested(problem: "Problem", raw: "RawRun", books: Ledger) -> dict[str, int]:
    """GPU-seconds of the jobs that were submitted and not set aside: ``requested = useful + outstanding``.

    `outstanding` is the rest of the run time of what has not finished; a finished job has none.
    """
    jobs = problem.jobs
    mine = books.counted
    rest = np.where(books.state == S_FINISHED, 0, jobs.run_s - books.kept_s)
    return {
        "requested": gpu_seconds(jobs.gpus[mine], jobs.run_s[mine]),
        "useful": gpu_seconds(jobs.gpus[raw.stretches.job], raw.stretches.kept_s),
        "outstanding": gpu_seconds(jobs.gpus[mine], rest[mine]),
    }
