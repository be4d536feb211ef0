"""One flat pool in order of arrival: from a problem to the arguments of its own kernels, and back."""

import numpy as np

from gpuplan.fairshare import flat_kernels
from gpuplan.fairshare.flat_kernels import BLOCK, NOT_WAITING
from gpuplan.fairshare.model import NEVER, Int64
from gpuplan.fairshare.problem import Problem
from gpuplan.fairshare.raw import FINISHED, RUNNING, RawRun, Stretches


def fits(problem: Problem) -> bool:
    """Whether the kernels of one flat pool can run a problem: no nodes, no drains."""
    return problem.scenario.flat and not problem.scenario.drains


def fifo(problem: Problem) -> RawRun:
    """Run strict FIFO (see `gpuplan.fairshare.flat_kernels.run_fifo`)."""
    rows, columns = eligible(problem)
    start = np.empty(len(rows), np.int64)
    scratch = np.empty((2, problem.gpus + 1), np.int64)
    started = flat_kernels.run_fifo(problem.gpus, problem.until_s, *columns[:3], start, *scratch)
    return raw_run(problem, rows[:started], start[:started])


def easy(problem: Problem) -> RawRun:
    """Run EASY backfill (see `gpuplan.fairshare.flat_kernels.run_easy`)."""
    rows, columns = eligible(problem)
    n = len(rows)
    start, order = np.empty((2, n), np.int64)
    blocks = -(-n // BLOCK)
    least = np.full((blocks + -(-blocks // BLOCK), 2), NOT_WAITING)
    scratch = (*np.empty((2, problem.gpus + 1), np.int64), *np.empty((2, 2 * problem.gpus + 2), np.int64))
    started = flat_kernels.run_easy(
        problem.gpus, problem.until_s, *columns, start, order, np.full(n, NOT_WAITING), least, *scratch
    )
    order = order[:started]
    return raw_run(problem, rows[order], start[order])


def eligible(problem: Problem) -> tuple[Int64, tuple[Int64, Int64, Int64, Int64]]:
    """Rows of the jobs that can run; their submissions, GPUs, run times and limits."""
    jobs = problem.jobs
    rows = np.flatnonzero(problem.mask)
    which = rows if len(rows) < len(jobs) else slice(None)
    columns = jobs.submit_s[which], jobs.gpus[which], jobs.run_s[which], jobs.limit_s[which]
    for column in columns:  # copies too: arrays that can be written are another type, compiled anew
        column.flags.writeable = False
    return rows, columns


def raw_run(problem: Problem, job: Int64, start: Int64) -> RawRun:
    """Starts, in their order, as a run: what has not ended by the end of the run is cut there."""
    ends = start + problem.jobs.run_s[job]
    last = problem.until_s
    if last == NEVER:
        submit = problem.jobs.submit_s[problem.mask != 0]
        last = int(max(ends.max(initial=0), submit.max(initial=0)))
    finished = ends < last if problem.until_s < NEVER else np.ones(len(ends), np.bool_)
    ends = np.minimum(ends, last)
    n = len(job)
    columns = (
        job,
        start,
        ends,
        np.zeros(n, np.int64),
        ends - start,
        np.ones(n, np.bool_),
        start,
        np.where(finished, FINISHED, RUNNING).astype(np.int8),
        np.arange(n),
        np.zeros(n, np.int64),
        problem.jobs.gpus[job],
    )
    for column in columns:
        column.flags.writeable = False
    nothing = np.zeros(0, np.int64)
    return RawRun(Stretches(*columns), last, nothing, nothing, problem.set_aside)
