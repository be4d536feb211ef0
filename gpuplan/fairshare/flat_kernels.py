"""The kernels of one flat pool in order of arrival: strict FIFO and EASY backfill, arrays in, arrays out.

Nothing is validated. ``J`` jobs in order of arrival, ``G`` GPUs; times are seconds, int64. They give the same starts as
`gpuplan.fairshare.kernels.run_queue`, which knows nodes, types, drains and other orders too and takes longer for it.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.jit import njit_kernel, njit_leaf

Ints = npt.NDArray[np.int64]

#: A 64-bit whole number: numpy's, or Python's where nothing is compiled.
Number = Any

i64 = np.int64

#: The key of a job that does not wait yet, or no more: above any number of GPUs, any seconds.
NOT_WAITING = 1 << 61

#: The key of a job that has ended.
ENDED = 1 << 62

#: No limit, no end: a declared end that never comes.
ENDLESS = 1 << 60

#: Jobs in a block, blocks in a group: their least keys say where nobody needs to be looked at.
BLOCK = 32

# columns of ``least``, a row per block and (behind them) per group of blocks
LEAST_GPUS, LEAST_LIMIT = range(2)


@njit_leaf
def add_end(ends: Ints, gpus: Ints, n: int, end: int, g: int) -> None:
    """Add a row to the heap of ``n`` rows, earliest end first."""
    k = n
    while k > 0:
        up = (k - 1) >> 1
        if ends[up] <= end:
            break
        ends[k] = ends[up]
        gpus[k] = gpus[up]
        k = up
    ends[k] = end
    gpus[k] = g


@njit_leaf
def drop_end(ends: Ints, gpus: Ints, n: int) -> None:
    """Take the first row off the heap of ``n`` rows."""
    n -= 1
    end = ends[n]
    g = gpus[n]
    k = 0
    down = 1
    while down < n:
        if down + 1 < n and ends[down + 1] < ends[down]:
            down += 1
        if ends[down] >= end:
            break
        ends[k] = ends[down]
        gpus[k] = gpus[down]
        k = down
        down = 2 * k + 1
    ends[k] = end
    gpus[k] = g


@njit_kernel
def run_fifo(
    free: int, horizon: int, submit: Ints, gpus: Ints, run: Ints, start: Ints, heap: Ints, held: Ints
) -> int:
    """Strict FIFO: each job starts at the earliest instant, not before the one ahead of it, at which it fits.

    Parameters
    ----------
    free
        GPUs of the pool; no job asks for more.
    horizon
        Nothing starts from then on.
    submit, gpus, run : int64[J]
        Submission, ascending; GPUs; seconds.
    start : int64[J]
        Overwritten: the start of each job, of as many as the returned number says.
    heap, held : int64[G + 1]
        Overwritten.

    Returns
    -------
    int
        Jobs that have started, the first ones.
    """
    n = 0
    t = i64(0)
    for j in range(len(submit)):
        g = gpus[j]
        if submit[j] > t:
            t = submit[j]
        while n > 0 and (heap[0] <= t or free < g):
            if heap[0] > t:
                t = heap[0]
            free += held[0]
            drop_end(heap, held, n)
            n -= 1
        if t >= horizon:
            return j
        start[j] = t
        free -= g
        add_end(heap, held, n, t + run[j], g)
        n += 1
    return len(submit)


@njit_leaf
def wait(keys: Ints, limits: Ints, least: Ints, groups: int, j: int, g: int) -> None:
    """Job ``j`` joins the line; ``groups`` is the first row of the groups."""
    keys[j] = g
    row = j // BLOCK
    for _ in range(2):
        least[row, LEAST_GPUS] = min(least[row, LEAST_GPUS], g)
        least[row, LEAST_LIMIT] = min(least[row, LEAST_LIMIT], limits[j])
        row = groups + row // BLOCK


@njit_leaf
def leave(keys: Ints, limits: Ints, least: Ints, groups: int, j: int) -> None:
    """Job ``j`` leaves the line."""
    g = keys[j]
    keys[j] = NOT_WAITING
    row = j // BLOCK
    if g > least[row, LEAST_GPUS] and limits[j] > least[row, LEAST_LIMIT]:
        return
    fewest = i64(NOT_WAITING)
    shortest = i64(NOT_WAITING)
    for k in range(row * BLOCK, min((row + 1) * BLOCK, len(keys))):
        if keys[k] < NOT_WAITING:
            fewest = min(fewest, keys[k])
            shortest = min(shortest, limits[k])
    was_fewest = least[row, LEAST_GPUS]
    was_shortest = least[row, LEAST_LIMIT]
    least[row, LEAST_GPUS] = fewest
    least[row, LEAST_LIMIT] = shortest
    if fewest == was_fewest and shortest == was_shortest:
        return
    group = groups + row // BLOCK
    if was_fewest > least[group, LEAST_GPUS] and was_shortest > least[group, LEAST_LIMIT]:
        return
    first = row // BLOCK * BLOCK
    fewest = i64(NOT_WAITING)
    shortest = i64(NOT_WAITING)
    for k in range(first, min(first + BLOCK, groups)):
        fewest = min(fewest, least[k, LEAST_GPUS])
        shortest = min(shortest, least[k, LEAST_LIMIT])
    least[group, LEAST_GPUS] = fewest
    least[group, LEAST_LIMIT] = shortest


@njit_leaf
def next_fitting(
    keys: Ints, limits: Ints, least: Ints, groups: int, j: int, to: int, free: int, extra: int, window: int
) -> int:
    """First waiting job of ``j .. to - 1`` that ends within ``window`` or needs at most ``extra``; else ``to``."""
    while j < to:
        if j % BLOCK == 0:
            row = j // BLOCK
            if row % BLOCK == 0:
                group = groups + row // BLOCK
                few = least[group, LEAST_GPUS]
                if few > free or (few > extra and least[group, LEAST_LIMIT] > window):
                    j += BLOCK * BLOCK
                    continue
            few = least[row, LEAST_GPUS]
            if few > free or (few > extra and least[row, LEAST_LIMIT] > window):
                j += BLOCK
                continue
        end = min(to, (j // BLOCK + 1) * BLOCK)
        while j < end:
            g = keys[j]
            if g <= free and (g <= extra or limits[j] <= window):
                return j
            j += 1
    return to


@njit_leaf
def declare(ends: Ints, who: Ints, n: int, end: int, j: int) -> None:
    """Add a row to the ``n`` rows sorted by declared end."""
    k = n
    while k > 0 and ends[k - 1] > end:
        ends[k] = ends[k - 1]
        who[k] = who[k - 1]
        k -= 1
    ends[k] = end
    who[k] = j


@njit_leaf
def compact(ends: Ints, who: Ints, keys: Ints, n: int) -> int:
    """Take all that has ended off the ``n`` sorted rows; how many stay."""
    left = 0
    for k in range(n):
        if keys[who[k]] != ENDED:
            ends[left] = ends[k]
            who[left] = who[k]
            left += 1
    return left


@njit_kernel
def run_easy(
    free: int,
    horizon: int,
    submit: Ints,
    gpus: Ints,
    run: Ints,
    limits: Ints,
    start: Ints,
    order: Ints,
    keys: Ints,
    least: Ints,
    heap: Ints,
    runs: Ints,
    declared: Ints,
    held: Ints,
) -> int:
    """EASY backfill: the first in line is promised the earliest instant at which it fits by declared ends.

    The promise holds until something ends: arrivals and starts in between change neither it nor, beyond what they
    take, what it leaves. So between two ends only those who arrive are looked at. What has ended stays among the
    declared ends until it makes up an eighth of them: to take each out at once cost a third of the time.

    Parameters
    ----------
    free, horizon, submit, gpus, run
        See `run_fifo`.
    limits : int64[J]
        Declared seconds, not below ``run``; `ENDLESS`: no limit.
    start : int64[J]
        Overwritten: the start of each job that has started.
    order : int64[J]
        Overwritten: the jobs in the order in which they have started.
    keys : int64[J]
        `NOT_WAITING` at first; overwritten.
    least : int64[ceil(J / 32) + ceil(J / 1024), 2]
        `NOT_WAITING` at first; overwritten.
    heap, runs : int64[G + 1], declared, held : int64[2 * G + 2]
        Overwritten.

    Returns
    -------
    int
        Jobs that have started.
    """
    n_jobs = len(submit)
    groups = (n_jobs + BLOCK - 1) // BLOCK
    n_running = 0
    n_declared = 0
    n_started = 0
    arrived = 0
    head = 0  # nobody before it waits
    promise: Number = i64(0)
    extra: Number = i64(0)
    while head < n_jobs:
        t = i64(ENDLESS)
        if arrived < n_jobs:
            t = submit[arrived]
        if n_running > 0 and heap[0] < t:
            t = heap[0]
        if t >= horizon:
            break
        renew = head == arrived  # nobody waits, nothing is promised
        while n_running > 0 and heap[0] <= t:
            free += gpus[runs[0]]
            keys[runs[0]] = ENDED
            drop_end(heap, runs, n_running)
            n_running -= 1
            renew = True
        if (n_declared - n_running) * 8 > n_declared:
            n_declared = compact(declared, held, keys, n_declared)
        j = arrived
        while arrived < n_jobs and submit[arrived] <= t:
            wait(keys, limits, least, groups, arrived, gpus[arrived])
            arrived += 1
        first_fits = renew
        if renew:
            j = head
        while free > 0:
            if first_fits:  # those who are first in line start for as long as they fit
                while j < arrived and keys[j] >= NOT_WAITING:
                    j += 1
                head = j
                if head == arrived:
                    break
                if keys[head] > free:
                    first_fits = False
                    room = free
                    k = 0
                    while room < keys[head]:  # ends in the past are of jobs that have ended
                        promise = declared[k]
                        while k < n_declared and declared[k] == promise:
                            if keys[held[k]] != ENDED:
                                room += gpus[held[k]]
                            k += 1
                    extra = room - keys[head]
                    j = head + 1
            if not first_fits:
                window = min(promise - t, i64(ENDLESS - 1))
                j = next_fitting(keys, limits, least, groups, j, arrived, free, extra, window)
                if j >= arrived:
                    break
                if limits[j] > window:
                    extra -= keys[j]
            free -= keys[j]
            leave(keys, limits, least, groups, j)
            start[j] = t
            order[n_started] = j
            n_started += 1
            add_end(heap, runs, n_running, t + run[j], j)
            n_running += 1
            end = t + limits[j] if limits[j] < ENDLESS else i64(ENDLESS)
            declare(declared, held, n_declared, end, j)
            n_declared += 1
            j += 1
    return n_started
