"""Where the time of each task went, to the microsecond: the books from which every latency is taken."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.model import NEVER, Bools, Int64
from gpuplan.packing.raw import DONE, LOAD, OUT_OF_MEMORY, REJECTED, RESTORE, RUN, SAVE, WAITING, WENT_ON

if TYPE_CHECKING:
    from gpuplan.packing.problem import Problem
    from gpuplan.packing.raw import RawPack

#: Parts of a latency, in the order of a life; they add up to it.
PARTS = ("queue", "load", "service", "save", "suspended", "restore", "retry")


@dataclass(frozen=True, slots=True)
class Ledger:
    """``J`` tasks as columns; microseconds.

    Attributes
    ----------
    queue, load, service, save, suspended, restore, retry : int64[J]
        Waiting for a first placement of an attempt; placement to first running; running; being saved; saved, until
        placed again; from there to running again; attempts that failed for memory, from their first placement.
    latency : int64[J]
        From arrival to leaving, or to the end of the run for a task still in the system. The parts add up to it.
    wait : int64[J]
        ``queue + load``.
    arrived : bool[J]
        Arrived before the end of the run.
    counted : bool[J]
        Arrived and not rejected: has a wait.
    waits_on : bool[J]
        The wait is a lower bound: the task is counted and has not run in an attempt that did not fail.
    done : bool[J]
    """

    queue: Int64
    load: Int64
    service: Int64
    save: Int64
    suspended: Int64
    restore: Int64
    retry: Int64
    latency: Int64
    wait: Int64
    arrived: Bools
    counted: Bools
    waits_on: Bools
    done: Bools

    @property
    def parts(self) -> tuple[Int64, ...]:
        """The seven parts in the order of `PARTS`."""
        return tuple(getattr(self, name) for name in PARTS)


def ledger(problem: "Problem", raw: "RawPack") -> Ledger:
    """The books of a run.

    Nothing is sorted: a part is a sum of ends less a sum of starts, so that gaps between stages show as parts that do
    not add up (`gpuplan.packing.check` looks).
    """
    tasks, rows = problem.tasks, raw.stages
    n = len(tasks)
    state = raw.state
    until = np.where(raw.left_us < NEVER, raw.left_us, raw.end_us)
    # a task that comes after the end of the run has not arrived
    arrived = (tasks.arrival_us <= raw.end_us) & ~_too_late(problem, raw)
    until = np.where(arrived, until, tasks.arrival_us)
    kept = rows.attempt >= raw.failures[rows.task]  # stages of the attempt that did not fail
    length = rows.end_us - rows.start_us
    sums = [_sums(rows.task, length, kept & (rows.kind == kind), n) for kind in (LOAD, RUN, SAVE, RESTORE)]
    load, service, save, restore = sums
    saved = kept & (rows.kind == SAVE) & (rows.outcome == WENT_ON)
    again = kept & (rows.kind == RESTORE)
    # saved and not placed again when the run ends
    still = np.bincount(rows.task[saved], minlength=n) - np.bincount(rows.task[again], minlength=n)
    suspended = _sums(rows.task, rows.start_us, again, n) - _sums(rows.task, rows.end_us, saved, n)
    suspended += still * until
    failed = rows.outcome == OUT_OF_MEMORY
    placed = rows.kind == LOAD
    failures = _sums(rows.task, rows.end_us, failed, n)
    retry = failures - _sums(rows.task, rows.start_us, placed & ~kept, n)
    # every attempt ends a stretch of queueing that began with the arrival or with a failure
    queues = 1 + np.bincount(rows.task[failed], minlength=n) - np.bincount(rows.task[placed], minlength=n)
    queue = _sums(rows.task, rows.start_us, placed, n) - tasks.arrival_us - failures + queues * until
    latency = until - tasks.arrival_us
    counted = arrived & (state != REJECTED)
    ran = np.zeros(n, bool)
    ran[rows.task[kept & (rows.kind == RUN)]] = True
    return Ledger(
        queue, load, service, save, suspended, restore, retry, latency, queue + load,
        arrived, counted, counted & ~ran, state == DONE,
    )  # fmt: skip


def _too_late(problem: "Problem", raw: "RawPack") -> Bools:
    """Tasks that come at the horizon or later: the run stops before them."""
    late: Bools = (problem.tasks.arrival_us >= problem.until_us) & (raw.state == WAITING)
    return late


def _sums(task: Int64, amounts: Int64, which: Bools, n: int) -> Int64:
    """Sums by task of some of the stages, int64[n], exact."""
    found = np.zeros(n, np.int64)
    np.add.at(found, task[which], amounts[which])
    return found
