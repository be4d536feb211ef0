"""The tables of a run as data frames. Times are seconds, exact to the microsecond."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpuplan.packing.figures import QUANTILES
from gpuplan.packing.ledger import PARTS
from gpuplan.packing.model import GIB, NEVER, SECOND, Bools, Floats, Int64
from gpuplan.packing.raw import DONE, FAILED, PREEMPTED, REJECTED, TIMED_OUT
from gpuplan.packing.spread import sets_of
from gpuplan.percentiles import grouped_percentiles

if TYPE_CHECKING:
    from gpuplan.packing.run import PackRun

#: What became of a task, by its code in `gpuplan.packing.raw`.
STATES = ("done", "rejected", "failed", "timed-out", "waiting", "on-gpu")

#: Stages of a task on a GPU, and how they ended, by their codes.
KINDS = ("load", "run", "save", "restore")
OUTCOMES = ("went-on", "preempted", "out-of-memory", "cut")

#: Columns of the contract for a table of tasks, in this order; more may follow them.
TASK_COLUMNS = (
    "task", "model", "tenant", "priority", "arrival_s", "state", "left_s", "latency_s", "wait_s",
    *(f"{part}_s" for part in PARTS),
)  # fmt: skip


def tasks(run: "PackRun") -> pd.DataFrame:
    """A row per task in order of arrival: what it asked for, what became of it, and where its time went.

    ``task`` is its number. ``latency_s`` and its parts of a task that has not left are those so far;
    ``wait_is_lower_bound`` says that its wait did not end in service. ``gpu`` is the one of its last stage (missing: it
    was on none), the lowest where its model is spread over several, and ``gpus`` all of them (``"0 1"``). ``reason`` is
    that of a rejected task. Tasks that come after the end of the run are not listed.
    """
    asked, books, raw = run.problem.tasks, run.ledger, run.raw
    n, rows = len(asked), raw.stages
    gpu = np.full(n, -1, np.int64)
    gpu[rows.task] = rows.gpu  # of several stages of one task the last one stays
    gpus = np.full(n, "", object)
    gpus[rows.task] = all_gpus(run)[rows.copy]
    reasons = np.full(n, "", object)
    for j, reason in run.problem.rejected.items():
        reasons[j] = reason
    columns: dict[str, Any] = {
        "task": np.arange(n),
        "model": run.model_names[asked.model],
        "tenant": asked.tenant,
        "priority": asked.priority,
        "arrival_s": asked.arrival_us / SECOND,
        "state": _words(STATES, raw.state),
        "left_s": seconds(raw.left_us),
        "latency_s": books.latency / SECOND,
        "wait_s": books.wait / SECOND,
        **{f"{name}_s": part / SECOND for name, part in zip(PARTS, books.parts, strict=True)},
        "wait_is_lower_bound": books.waits_on,
        "gpu": _where(gpu, gpu >= 0),
        "failures": raw.failures,
        "preemptions": np.bincount(rows.task[rows.outcome == PREEMPTED], minlength=n),
        "service_time_s": asked.service_us / SECOND,
        "predicted_s": asked.predicted_us / SECOND,
        "tokens_in": asked.tokens_in,
        "tokens_out": asked.tokens_out,
        "deadline_s": seconds(asked.deadline_us),
        "reason": reasons,
        "gpus": gpus,
    }
    table = pd.DataFrame(columns)
    return table[books.arrived].reset_index(drop=True)


def stages(run: "PackRun") -> pd.DataFrame:
    """A row per stage of a task on a GPU, by start: ``load``, ``run``, ``save`` or ``restore``, and how it ended.

    ``attempt`` counts from 0: how often the task had failed for memory before. ``gpus`` are all GPUs of its copy
    (``"0 1"``), ``gpu`` is the lowest of them.
    """
    asked, rows = run.problem.tasks, run.raw.stages
    return pd.DataFrame(
        {
            "task": rows.task,
            "model": run.model_names[asked.model[rows.task]],
            "tenant": asked.tenant[rows.task],
            "priority": asked.priority[rows.task],
            "gpu": rows.gpu,
            "stage": _words(KINDS, rows.kind),
            "start_s": rows.start_us / SECOND,
            "end_s": rows.end_us / SECOND,
            "outcome": _words(OUTCOMES, rows.outcome),
            "attempt": rows.attempt,
            "gpus": all_gpus(run)[rows.copy],
        }
    )


def copies(run: "PackRun") -> pd.DataFrame:
    """A row per loaded copy of a model, by claim; what did not happen by the end of the run is missing.

    ``gib`` is what it takes, without KV; ``reserved_gib`` what the scheduler reserves, both on all its GPUs together;
    ``for_task`` the task for which it was claimed (missing: there from the start). ``gpus`` are its GPUs (``"0 1"``),
    ``gpu`` is the lowest of them.
    """
    rows, problem = run.raw.copies, run.problem
    return pd.DataFrame(
        {
            "model": run.model_names[rows.model],
            "gpu": rows.gpu,
            "claimed_s": seconds(rows.claimed_us),
            "load_s": seconds(rows.load_us),
            "ready_s": seconds(rows.ready_us),
            "evicted_s": seconds(rows.evicted_us),
            "released_s": seconds(rows.released_us),
            "from_disk": rows.from_disk.astype(bool),
            "for_task": _where(rows.for_task, rows.for_task >= 0),
            "gib": (problem.taken * problem.spread)[rows.model] / GIB,
            "reserved_gib": (problem.needed * problem.spread)[rows.model] / GIB,
            "gpus": all_gpus(run),
        }
    )


def out_of_memory(run: "PackRun") -> pd.DataFrame:
    """A row per time that memory ran out: the task that failed (missing: a load did)."""
    rows = run.raw.breaches
    return pd.DataFrame(
        {
            "time_s": rows.time_us / SECOND,
            "gpu": rows.gpu,
            "task": _where(rows.task, rows.task >= 0),
            "model": run.model_names[rows.model],
        }
    )


def tenants(run: "PackRun") -> pd.DataFrame:
    """A row per tenant by name: its tasks by outcome, latencies and waits."""
    arrived = run.problem.tasks.tenant[run.ledger.arrived].astype(str)
    names, group = np.unique(arrived, return_inverse=True)
    return _grouped(run, "tenant", names.astype(object), group)


def priorities(run: "PackRun") -> pd.DataFrame:
    """A row per priority, the most important first: its tasks by outcome, latencies and waits."""
    values, group = np.unique(-run.problem.tasks.priority[run.ledger.arrived], return_inverse=True)
    return _grouped(run, "priority", -values, group)


def by_model(run: "PackRun") -> pd.DataFrame:
    """A row per model of the scenario: its tasks by outcome, latencies and waits, its loads and evictions."""
    of_task = run.problem.tasks.model[run.ledger.arrived]
    table = _grouped(run, "model", run.model_names, of_task)
    rows, some = run.raw.copies, run.memory.loaded
    table["loads"] = np.bincount(rows.model[some & (rows.for_task >= 0)], minlength=len(table))
    table["evictions"] = np.bincount(rows.model[some & (rows.evicted_us < NEVER)], minlength=len(table))
    return table


def memory(run: "PackRun", gpu: int) -> pd.DataFrame:
    """A GPU's memory over time, GiB: two rows per change, at it and just before the next.

    ``time_s, reserved, actual, useful, asleep, kv``; straight lines between the rows are right but for the steps of
    single tokens.
    """
    profile = run.memory.profile(gpu)
    two = {
        name: np.stack([getattr(profile.first, name), getattr(profile.last, name)], 1).ravel()
        for name in ("time_us", "reserved", "actual", "useful", "asleep", "kv")
    }
    table = pd.DataFrame({"time_s": two.pop("time_us") / SECOND, **{k: v / GIB for k, v in two.items()}})
    return table.drop_duplicates(ignore_index=True)


def all_gpus(run: "PackRun") -> npt.NDArray[np.object_]:
    """The GPUs of each copy as text, ascending: ``"0"``, ``"0 1"``; object[C]."""
    which, sets = sets_of(run.raw.copies)
    texts = [" ".join(map(str, gpus)) for gpus in sets]
    single = np.array([str(g) for g in range(run.scenario.gpus.count)], object)
    found = single[run.raw.copies.gpu]
    found[which >= 0] = np.array([*texts, ""], object)[which[which >= 0]]
    return found


def _grouped(run: "PackRun", label: str, names: Any, group: Int64) -> pd.DataFrame:
    """Counts, mean latency and wait, percentiles, by group of the tasks that arrived."""
    books, n = run.ledger, len(names)
    here = books.arrived
    state, done, counted = run.raw.state[here], books.done[here], books.counted[here]
    columns: dict[str, Any] = {label: names, "tasks": np.bincount(group, minlength=n)}
    for word, code in (("done", DONE), ("rejected", REJECTED), ("failed", FAILED), ("timed_out", TIMED_OUT)):
        columns[word] = np.bincount(group[state == code], minlength=n)
    columns["in_system"] = columns["tasks"] - sum(
        columns[w] for w in ("done", "rejected", "failed", "timed_out")
    )
    for name, values, which in (("latency", books.latency, done), ("wait", books.wait, counted)):
        amounts, of = values[here][which], group[which]
        columns[f"{name}_mean_s"] = _means(amounts, of, n)
        found = grouped_percentiles(amounts, of, n, QUANTILES) / SECOND
        for k, q in enumerate((50, 95, 99)):
            columns[f"{name}_p{q}_s"] = found[:, k]
    return pd.DataFrame(columns)


def _means(amounts: Int64, group: Int64, n: int) -> Floats:
    sums = np.zeros(n, np.int64)
    np.add.at(sums, group, amounts)
    counts = np.bincount(group, minlength=n)
    return np.where(counts > 0, sums / np.maximum(counts, 1) / SECOND, np.nan)


def seconds(times_us: Int64) -> Floats:
    """Microseconds as seconds, missing where there is no instant."""
    return np.where(times_us < NEVER, times_us / SECOND, np.nan)


def _where(values: Int64, known: Bools) -> "pd.arrays.IntegerArray":
    return pd.arrays.IntegerArray(values.copy(), ~known)


def _words(words: tuple[str, ...], codes: Int64) -> npt.NDArray[np.object_]:
    return np.array(words, object)[codes]
