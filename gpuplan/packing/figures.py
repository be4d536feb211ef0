"""What each figure of a run means, in one place: names, units, definitions, and the numbers.

Times are added up as whole microseconds and divided once.
"""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.ledger import PARTS, Ledger, ledger
from gpuplan.packing.memory import Memory
from gpuplan.packing.model import GIB, NEVER, SECOND, Int64
from gpuplan.packing.raw import (
    DONE,
    FAILED,
    LOAD,
    ON_GPU,
    PREEMPTED,
    REJECTED,
    RESTORE,
    RUN,
    SAVE,
    TIMED_OUT,
    WAITING,
)
from gpuplan.packing.spread import copies_on
from gpuplan.percentiles import percentiles

if TYPE_CHECKING:
    from gpuplan.packing.problem import Problem
    from gpuplan.packing.raw import RawPack

Figures = dict[str, float | int | None]

#: Figures that count tasks by outcome; they add up to ``tasks_arrived``.
COUNTS = {
    "tasks_done": (DONE,),
    "tasks_rejected": (REJECTED,),
    "tasks_failed": (FAILED,),
    "tasks_timed_out": (TIMED_OUT,),
    "tasks_in_system": (WAITING, ON_GPU),
}

#: Unit and definition of each figure, in the order in which figures are listed.
_DEFINED = {
    "latency_mean_s": (
        "seconds",
        "Mean time from arrival to the end of service, of the tasks that were done.",
    ),
    "latency_p50_s": ("seconds", "Half of the tasks that were done took at most this long."),
    "latency_p95_s": ("seconds", "95 in 100 of the tasks that were done took at most this long."),
    "latency_p99_s": ("seconds", "99 in 100 of the tasks that were done took at most this long."),
    "wait_mean_s": (
        "seconds",
        "Mean of queueing plus loading, of all tasks that were not rejected; a task that did not get to run counts "
        "with its wait so far.",
    ),
    "wait_p50_s": ("seconds", "Half of the waits are at most this long."),
    "wait_p95_s": ("seconds", "95 in 100 waits are at most this long."),
    "wait_p99_s": ("seconds", "99 in 100 waits are at most this long."),
    "waits_are_lower_bounds": (
        "tasks",
        "Tasks whose wait did not end in service: timed out, given up, or waiting when the run ended.",
    ),
    "queue_mean_s": ("seconds", "Part of the mean latency: waiting to be placed on a GPU."),
    "load_mean_s": (
        "seconds",
        "Part of the mean latency: on a GPU, waiting for evictions, saves of others and the load of the model.",
    ),
    "service_mean_s": (
        "seconds",
        "Part of the mean latency: running (slowed down by others, where they do).",
    ),
    "save_mean_s": ("seconds", "Part of the mean latency: being saved for a task of higher priority."),
    "suspended_mean_s": ("seconds", "Part of the mean latency: saved, until placed again."),
    "restore_mean_s": (
        "seconds",
        "Part of the mean latency: from that placement to running again, the reload of the model included.",
    ),
    "retry_mean_s": (
        "seconds",
        "Part of the mean latency: attempts that failed for memory, from their first placement to the failure.",
    ),
    "throughput_per_s": (
        "tasks per second",
        "Tasks done / time from the first arrival to the end of the run.",
    ),
    "load": (
        "per GPU",
        "Offered load: service time (alone) of the tasks not rejected, times the GPUs of their model / (GPUs x time "
        "from first to last arrival). Above 1 the queue grows without bound where a GPU does one task's work at once.",
    ),
    "busy": ("share of GPU-time", "GPU-time in which at least one task runs / GPU-time of the run."),
    "out_of_memory": ("events", "Times that memory ran out: a task or a load failed."),
    "preemptions": ("preemptions", "Times that a running task was interrupted for one of higher priority."),
    "evictions": (
        "evictions",
        "Loaded copies of models that were removed from memory (once of a copy over several GPUs).",
    ),
    "loads": (
        "loads",
        "Loads of copies of models that were begun (models resident at the start are none).",
    ),
    "reloads": ("loads", "Loads of a model on a GPU (or several) on one of which it had been before."),
    "cold_share": (
        "share of placements",
        "Placements of tasks for which a copy of the model had to be loaded / all placements.",
    ),
    "wasted_gpu_seconds": (
        "GPU-seconds",
        "Time of loads (by copy), of saves and restores (by task), and of running in attempts that failed, each times "
        "the GPUs of the model.",
    ),
    "reserved_mean": (
        "share of GPU memory",
        "Mean over time and GPUs of what the scheduler has reserved.",
    ),
    "actual_mean": (
        "share of GPU memory",
        "Mean over time and GPUs of what is in memory: weights, contexts, workspaces, leftovers, KV.",
    ),
    "useful_mean": (
        "share of GPU memory",
        "Mean over time and GPUs of the memory of copies that have a running task, with its KV.",
    ),
    "fragmentation": (
        "share of GPU memory",
        "Mean over time and GPUs of unreserved memory that is too little for a model drawn by popularity (for its part "
        "on a GPU, if it has several), expected.",
    ),
    "largest_free_gib": ("GiB", "Mean over time of the largest unreserved memory of a GPU: what still fits."),
    "tasks_arrived": (
        "tasks",
        "Tasks that arrived: done + rejected + failed + timed out + still in the system.",
    ),
    "tasks_done": ("tasks", "Tasks that were served."),
    "tasks_rejected": ("tasks", "Tasks that can never be served here; they are in no wait."),
    "tasks_failed": ("tasks", "Tasks that were given up after they had failed for memory too often."),
    "tasks_timed_out": ("tasks", "Tasks that left unserved at their deadline."),
    "tasks_in_system": ("tasks", "Tasks that wait or are on a GPU when the run ends."),
}

#: Unit of each figure.
UNITS = {name: unit for name, (unit, _) in _DEFINED.items()}

#: What each figure is, as a sentence.
MEANINGS = {name: meaning for name, (_, meaning) in _DEFINED.items()}

#: The quantiles of waits and latencies: p50, p95, p99.
QUANTILES = (0.5, 0.95, 0.99)


def figures(
    problem: "Problem", raw: "RawPack", books: Ledger | None = None, memory: Memory | None = None
) -> Figures:
    """All figures of a run; names, units and meanings as in `UNITS` and `MEANINGS`; None where there is no value.

    Parameters
    ----------
    problem, raw
        The scenario as arrays, and what a policy did.
    books, memory
        Those of the run, where they are known already.
    """
    books = ledger(problem, raw) if books is None else books
    memory = Memory(problem, raw) if memory is None else memory
    found: Figures = dict.fromkeys(UNITS)
    for name, values in (("latency", books.latency[books.done]), ("wait", books.wait[books.counted])):
        found[f"{name}_mean_s"] = mean_s(values)
        for q, value in zip(QUANTILES, percentiles(values, QUANTILES), strict=True):
            found[f"{name}_p{q * 100:.0f}_s"] = None if value is None else value / SECOND
    found["waits_are_lower_bounds"] = int(books.waits_on.sum())
    for part, values in zip(PARTS, books.parts, strict=True):
        found[f"{part}_mean_s"] = mean_s(values[books.done])
    found["tasks_arrived"] = int(books.arrived.sum())
    counts = np.bincount(raw.state[books.arrived], minlength=ON_GPU + 1)
    for name, states in COUNTS.items():
        found[name] = int(counts[list(states)].sum())
    found.update(_of_arrivals(problem, raw, books))
    found.update(_of_stages(problem, raw, memory))
    found.update(_of_memory(problem, raw, memory))
    return found


def mean_s(values: Int64) -> float | None:
    """Mean of microseconds in seconds; None of nothing."""
    return int(values.sum()) / len(values) / SECOND if len(values) else None


def _of_arrivals(problem: "Problem", raw: "RawPack", books: Ledger) -> Figures:
    """Throughput and offered load."""
    tasks = problem.tasks
    came = tasks.arrival_us[books.arrived]
    if not len(came):
        return {}
    first, last = int(came.min()), int(came.max())
    work = int((tasks.service_us * problem.spread[tasks.model])[books.counted].sum())
    return {
        "throughput_per_s": _ratio(int(books.done.sum()) * SECOND, raw.end_us - first),
        "load": _ratio(work, problem.scenario.gpus.count * (last - first)),
    }


def _of_stages(problem: "Problem", raw: "RawPack", memory: Memory) -> Figures:
    """What happened on the GPUs, counted."""
    rows, copies = raw.stages, raw.copies
    length = rows.end_us - rows.start_us
    begun = memory.loaded & (copies.for_task >= 0)
    arrived = np.minimum(copies.ready_us, raw.end_us)
    spread = problem.spread[copies.model]
    loads = int(((arrived - copies.load_us) * spread)[begun].sum())
    of_task = problem.spread[problem.tasks.model[rows.task]]
    saves = int((length * of_task)[rows.kind == SAVE].sum())
    frozen = np.maximum(rows.end_us - rows.frozen_from_us, 0)
    restores = int((frozen * of_task)[rows.kind == RESTORE].sum())
    lost = (rows.kind == RUN) & (rows.attempt < raw.failures[rows.task])
    lost_us = int((length * of_task)[lost].sum())
    placed = (rows.kind == LOAD) | (rows.kind == RESTORE)
    busy = sum(int((np.diff(gpu.time_us) * (gpu.running[:-1] > 0)).sum()) for gpu in memory.progress.gpus)
    return {
        "busy": _ratio(busy, problem.scenario.gpus.count * raw.end_us),
        "out_of_memory": len(raw.breaches),
        "preemptions": int((rows.outcome == PREEMPTED).sum()),
        "evictions": int((memory.loaded & (copies.evicted_us < NEVER)).sum()),
        "loads": int(begun.sum()),
        "reloads": _reloads(problem, raw, memory),
        "cold_share": _ratio(int((copies.for_task >= 0).sum()), int(placed.sum())),
        "wasted_gpu_seconds": (loads + saves + restores + lost_us) / SECOND,
    }


def _reloads(problem: "Problem", raw: "RawPack", memory: Memory) -> int:
    """Loaded copies of models that had been on one of their GPUs before."""
    copy, on = copies_on(raw.copies)
    there = memory.loaded[copy]
    copy = copy[there]
    key = on[there] * len(problem.needed) + raw.copies.model[copy]
    _, first = np.unique(key, return_index=True)
    again = np.ones(len(key), bool)
    again[first] = False
    return len(np.unique(copy[again]))


def _of_memory(problem: "Problem", raw: "RawPack", memory: Memory) -> Figures:
    """Means over the time of the run."""
    if raw.end_us <= 0:
        return {}
    gpus = problem.scenario.gpus
    all_of_it = float(gpus.count) * gpus.memory_bytes * raw.end_us
    found: Figures = {f"{name}_mean": amount / all_of_it for name, amount in memory.byte_us().items()}
    when, free = memory.free_over_time()
    length = np.diff(np.append(when, raw.end_us)).astype(float)
    lost = sum(float(np.dot(memory.fragments(of_gpu), length)) for of_gpu in free)
    found["fragmentation"] = lost / all_of_it
    most = np.maximum(np.max(free, axis=0), 0).astype(float)
    found["largest_free_gib"] = float(np.dot(most, length)) / raw.end_us / GIB
    return found


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole > 0 else None
