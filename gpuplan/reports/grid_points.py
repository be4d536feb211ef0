"""The points of an interactive page, computed: in this process, or in several where that is faster."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import suppress
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.reports.runs import Choices, compared

if TYPE_CHECKING:
    from gpuplan.reports.grid_axes import Space
    from gpuplan.reports.grid_pictures import Look

Number = float | int | None

#: Points that show how long one takes, before others are asked for help.
_TRIED = 4

#: Seconds of work below which processes of our own, which have to start, are no help.
_WORTH_S = 6.0

#: Seconds of a chunk of points, and points of one at most.
_CHUNK_S, _LONGEST = 0.5, 64

#: Broken rules of a point that are kept in words.
_NAMED = 3


class Point(NamedTuple):
    """What was computed at a point, by policy.

    Attributes
    ----------
    figures : list of list
        In the order in which the kind lists them; empty where nothing could be computed.
    violations : list of int
        Number of broken rules.
    broken : list of str
        The first of them, in words.
    shared : dict
        Data sets of the picture that do not depend on the policy.
    drawn : list of dict
        Those that do.
    error : str
        Why there is nothing: the scenario refuses the point.
    """

    figures: list[list[Number]]
    violations: list[int]
    broken: list[str]
    shared: Any
    drawn: Any
    error: str = ""


class Task(NamedTuple):
    """What a worker needs to know: the space, the policies, how the picture is drawn."""

    space: Space
    choices: Choices
    look: Look

    def point(self, place: int) -> Point:
        """Compute a point; a mistake of it stays with it."""
        try:
            found = compared(self.space.at(place), self.choices)
            return self.of(found)
        except InputError as error:
            said = "; ".join(f"{m.path} {m.rule}".strip() for m in error.mistakes)
            return Point([], [], [], {}, [], shorten(said, 300))

    def of(self, comparison: Any) -> Point:
        """The point of a comparison that was made already."""
        results = comparison.results
        figures, violations, broken = [], [], []
        for name, result in results.items():
            figures.append([_plain(value) for value in result.figures.values()])
            rules = result.check()
            violations.append(len(rules))
            broken += [f"{name}: {rule}" for rule in rules[:_NAMED]]
        shared, drawn = self.look.sets(results)
        return Point(figures, violations, broken, shared, drawn)


def _plain(value: Any) -> Number:
    """A figure as Python's number."""
    plain: Number = value.item() if hasattr(value, "item") else value
    return plain


#: What this worker works on, and the bytes from which it was read.
_task: list[tuple[bytes, Task]] = []


def _begin() -> None:
    """Ctrl-C is the business of the process that asked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _chunk(blob: bytes, places: Sequence[int]) -> list[Point]:
    """Points in a worker; the task comes with every chunk, and is read once.

    As an argument of a new process it would be written into a pipe that holds 64 KB: a process that ends before it
    reads (a script without a guard) would let the one that asked wait for ever.
    """
    if not _task or _task[0][0] != blob:
        _task[:] = [(blob, pickle.loads(blob))]
    return [_task[0][1].point(place) for place in places]


def points_of(
    task: Task, places: Sequence[int], workers: int | None, report: Callable[[int, int], None]
) -> list[Point]:
    """The points at some places, in their order; the same whoever computes them.

    Parameters
    ----------
    task
    places
    workers
        Processes; None: one per core where the rest takes long enough, else this one alone.
    report
        Called with the number of points done and of all.
    """
    refuse_in_a_new_process()
    found: list[Point] = []
    report(0, len(places))
    tried = 0 if workers is not None and workers > 1 else len(places) if workers == 1 else _TRIED
    each = 0.0
    for place in places[:tried]:
        began = time.perf_counter()
        found.append(task.point(place))
        each = time.perf_counter() - began  # the first may have compiled
        report(len(found), len(places))
    width = min(_cores() if workers is None else workers, max(1, len(places) - len(found)))
    left = places[len(found) :]
    if left and width > 1 and (workers is not None or each * len(left) > _WORTH_S):
        for points in _from_pool(task, left, width, each):
            found += points
            report(len(found), len(places))
    for place in places[len(found) :]:  # also what a broken pool has not done
        found.append(task.point(place))
        report(len(found), len(places))
    return found


def _from_pool(task: Task, places: Sequence[int], width: int, each: float) -> Iterator[list[Point]]:
    """Chunks of points in order, from processes of our own; ends early where one of these dies."""
    length = min(_LONGEST, max(1, int(_CHUNK_S / max(each, 1e-3))), -(-len(places) // width))
    chunks = [places[k : k + length] for k in range(0, len(places), length)]
    # A fresh start: a notebook's kernel has threads, and a fork of it may hang.
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(width, mp_context=spawn, initializer=_begin)
    blob = pickle.dumps(task, protocol=pickle.HIGHEST_PROTOCOL)
    try:
        with suppress(BrokenExecutor):
            yield from pool.map(_chunk, repeat(blob), chunks)
    finally:
        processes = list((getattr(pool, "_processes", None) or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:  # a long point would keep Python from ending
            process.terminate()


def refuse_in_a_new_process() -> None:
    """Say what is wrong where a script without a guard is read again by its own workers.

    Raises
    ------
    InputError
        In such a worker.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        rule = 'must stand below `if __name__ == "__main__":` in a script, for worker processes read the script too'
        raise InputError("grid", [Mistake("", rule)])


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1
