"""Who computes: a pool of processes of our own, or the executor that somebody gives; and what follows when one dies."""

import multiprocessing
import os
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from typing import Any

from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.sweeps import work
from gpuplan.sweeps.work import Outcome, Task

Answer = Future[tuple[list[Outcome], float]]


#: Bytes of a scenario that new processes are given as they start; a larger one comes with every chunk. They wait in a
#: pipe of 64 KB, and a process that ends before it reads (a script without a guard) would be waited for without end.
_AT_START = 32_000


class Crew:
    """Takes chunks of points.

    Parameters
    ----------
    scenario
        The scenario that all points change.
    executor
        Any `concurrent.futures.Executor`; None: a process per core. Our own processes start afresh ("spawn"): a
        notebook's kernel has threads, and a fork of it may hang.
    points
        More processes than points are of no use.
    """

    def __init__(self, scenario: Any, executor: Executor | None, points: int) -> None:
        self._token, self._blob = work.parcel(scenario)
        self._given = executor
        self._with_chunks = None if len(self._blob) <= _AT_START else self._blob
        self._own: ProcessPoolExecutor | None = None
        self.width = max(1, min(points, _cores() if executor is None else _width(executor)))

    def submit(self, tasks: list[Task]) -> Answer:
        """Begin a chunk.

        Raises
        ------
        BrokenExecutor
            If a process of the pool has died; `renew` makes another pool.
        InputError
            If an executor that was given takes no work any more.
        """
        if self._given is None:
            return self._pool().submit(work.run_chunk, self._token, self._with_chunks, tasks)
        try:
            return self._given.submit(work.run_chunk, self._token, self._blob, tasks)
        except BrokenExecutor:
            raise
        except RuntimeError as error:
            raise stopped(str(error)) from error

    def renew(self) -> str:
        """Go on in a new pool of processes of our own; a sentence about it."""
        self.close()
        others = self._given is not None
        self._given = None
        where = " of gpuplan's own, for the one that was given takes no more work" if others else ""
        return f"A worker process ended midway; the rest went on in a new pool{where}."

    def close(self) -> None:
        """End our own processes; what they have not finished is lost."""
        pool, self._own = self._own, None
        if pool is None:
            return
        processes = list((getattr(pool, "_processes", None) or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:  # a long point would keep Python from ending
            process.terminate()

    def _pool(self) -> ProcessPoolExecutor:
        if self._own is None:
            self._own = ProcessPoolExecutor(
                self.width,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=work.begin,
                initargs=(self._token, None if self._with_chunks else self._blob),
            )
        return self._own


def stopped(why: str) -> InputError:
    """The error of an executor that takes no more work."""
    rule = "takes no more work; what is in the folder stays, and the same call goes on from there"
    return InputError("sweep", [Mistake("executor", f"{rule} ({why})" if why else rule)])


def refuse_in_a_new_process() -> None:
    """Say what is wrong where a script without a guard is read again by its own workers.

    Raises
    ------
    InputError
        In such a worker.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise InputError("sweep", [Mistake("", GUARD)])


GUARD = 'in a script a sweep must stand below `if __name__ == "__main__":`, for worker processes read the script too'


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1


def _width(executor: Executor) -> int:
    """How many points an executor computes at once, as far as it can be known."""
    client = getattr(executor, "_client", None)  # Dask's
    if client is not None and hasattr(client, "ncores"):
        return sum(client.ncores().values()) or _cores()
    workers = getattr(executor, "_max_workers", None)
    return workers if isinstance(workers, int) else 2 * _cores()
