"""From the columns of a `sacct` export to a history and its account."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.errors import InputError
from gpuplan.traces import slurm_kernels as kernels
from gpuplan.traces.history import (
    LONE_STEP,
    REPEAT,
    STATES,
    UNKNOWN,
    USED,
    History,
    history,
    line_list,
)
from gpuplan.traces.slurm_attempts import Identity, Records, identify, waiting_tasks
from gpuplan.traces.slurm_fields import (
    GpuColumns,
    gpus,
    limits,
    priorities,
    states,
    task_lists,
    texts,
    worked_gpu_s,
)
from gpuplan.traces.slurm_layout import TIMES, Layout
from gpuplan.traces.slurm_table import Mistakes, Table
from gpuplan.traces.slurm_times import Choices, Times, as_of, open_ended, so_far, times_of
from gpuplan.traces.slurm_words import Tasks

Int64 = npt.NDArray[np.int64]
Strings = npt.NDArray[np.object_]
Bools = npt.NDArray[np.bool_]


def history_of(source: str, layout: Layout, table: Table, mistakes: Mistakes, choices: Choices) -> History:
    """The history of a table; see `gpuplan.traces.slurm.read_sacct`."""
    bad = table.bad.copy()
    state, strange = states(table)
    group = _groups(state)
    partition = texts(table, "partition")
    limit_s, of_partition = limits(table, mistakes, bad, partition, choices.partition_limits)
    held = gpus(table, mistakes, bad)
    priority = priorities(table, mistakes, bad)
    lists = task_lists(table, mistakes, bad)
    told = mistakes.all()
    if choices.strict and told:
        raise InputError(source, told)
    times = times_of(source, table, choices)
    waits = group == "pending"
    runs = (group == "running") & (state != "resizing")
    open_ended(times, waits, runs, held, group)
    records = _records(table, times, bad, waits, runs)
    found = identify(records)
    tasks, taken = waiting_tasks(records, found, lists)
    used = found.reason == USED
    as_of_s, as_of_from = as_of(source, times, runs & used, used, choices)
    so_far(times, runs & used, as_of_s)
    counts, silent = _gpus_held(held, waits, times.elapsed_s)
    changed = [
        *times.changed,
        ("limits that are those of the partition", of_partition),
        ("waiting tasks of arrays with a record of their own, counted once", taken),
        ("ids that were given to several jobs", len(found.life_submit)),
        *_changes(held, silent, used, lists),
    ]
    headers = [(f"the header again ({line_list(np.array(table.headers))})", len(table.headers))]
    columns: dict[str, Any] = {f"{name}_s": times.s[name] for name in TIMES if name in times.s}
    columns |= {name: texts(table, column) for name, column in _TEXTS.items()}
    return history(
        source,
        table.line,
        reason=found.reason,
        mistakes=told,
        strict=choices.strict,
        excluded=headers if table.headers else (),
        changed=changed,
        rules=_rules(layout, choices, times, held, strange, found),
        rows="records",
        zone=times.zone,
        as_of_s=as_of_s,
        as_of_from=as_of_from,
        **_names(table, records, found),
        **_of_arrays(lists, len(table.line)),
        **columns,
        attempt=found.attempt,
        tasks=tasks,
        partition=partition,
        state=state,
        limit_s=limit_s,
        elapsed_s=times.elapsed_s,
        gpus=counts,
        requested_gpus=held.asked,
        gpu_type=np.where(
            waits | ((held.kinds == "") & (counts == held.asked)), held.asked_kinds, held.kinds
        ),
        priority=priority,
        gpu_share=_shares(table, times, held, records, found, counts),
        ambiguous=times.ambiguous,
    )


#: Columns of a history that are as the file has them, and the columns of the file.
_TEXTS = {"user": "user", "team": "account", "qos": "qos", "name": "jobname", "cluster": "cluster"}


def _changes(held: GpuColumns, silent: Bools, used: Bools, lists: dict[int, Tasks]) -> list[tuple[str, int]]:
    """What was done to lists of resources and of tasks, for the account."""
    cut_off = sum(listed.cut_off for listed in lists.values())
    return [
        ("lists of waiting tasks that were cut off: at least so many", cut_off),
        ("ran, and GPUs held are not told: those asked for", int((silent & used).sum())),
        (
            "records with slices of GPUs (gres/shard), which are no whole ones",
            int((held.shared & used).sum()),
        ),
        (
            "records whose typed GPUs are more than their total, which counts",
            int((held.more_typed & used).sum()),
        ),
    ]


def _groups(state: Strings) -> Strings:
    import pandas as pd

    codes, words = pd.factorize(state)
    return np.array([STATES.get(word, "unknown") for word in words], object)[codes]


def _records(table: Table, times: Times, bad: Bools, waits: Bools, runs: Bools) -> Records:
    """What tells the records apart."""
    n = len(table.line)
    unknown = np.full(n, UNKNOWN, np.int64)
    shown = table.ids.get("jobid", table.ids.get("jobidraw"))
    raw = table.ids.get("jobidraw")
    if shown is None:
        raise AssertionError("a layout has an id column")
    kind = shown[3].copy()
    if raw is not None:
        kind[raw[3] == kernels.A_STEP] = kernels.A_STEP
    users = table.codes.get("user", np.zeros(n, np.int64))
    known = np.array([bool(text.strip()) for text in table.texts.get("user", [""])], np.bool_)
    return Records(
        table.line,
        table.hash,
        shown[0] if raw is None else raw[0],
        shown[0],
        shown[1],
        shown[2],
        kind,
        table.codes.get("cluster", np.zeros(n, np.int64)).astype(np.int64),
        users.astype(np.int64),
        known[users],
        bad,
        waits,
        runs,
        times.s.get("submit", unknown),
        times.s.get("start", unknown),
        times.s.get("end", unknown),
        times.elapsed_s,
        [*table.seconds.values(), *table.codes.values(), shown[1], shown[2], kind],
        raw is not None,
    )


def _gpus_held(held: GpuColumns, waits: Bools, elapsed_s: Int64) -> tuple[Int64, Bools]:
    """GPUs of each record, those held or, while it waits, asked for; and where those asked for stand for those held."""
    if (held.held == UNKNOWN).all():
        return held.asked, np.zeros(len(waits), np.bool_)
    silent = ~waits & ~held.told & (elapsed_s > 0) & (held.asked > 0)
    return np.where(waits | silent, held.asked, held.held), silent


def _shares(
    table: Table, times: Times, held: GpuColumns, records: Records, found: Identity, counts: Int64
) -> npt.NDArray[np.float64]:
    """Share of the GPUs held that worked, float64[R], from the steps of jobs with one attempt."""
    n = len(table.line)
    share = np.full(n, np.nan)
    worked = worked_gpu_s(table, times.elapsed_s, held.held)
    if worked is None:
        return share
    keys = len(found.first)
    step = (records.kind == kernels.A_STEP) & ~np.isnan(worked) & (found.reason != REPEAT)
    total = np.bincount(found.key[step], weights=worked[step], minlength=keys)
    measured = np.bincount(found.key[step], minlength=keys) > 0
    jobs = np.bincount(found.key[found.reason == USED], minlength=keys)
    could = counts * times.elapsed_s
    rows = (found.reason == USED) & measured[found.key] & (jobs[found.key] == 1) & (counts > 0) & (could > 0)
    share[rows] = np.minimum(total[found.key[rows]] / could[rows], 1.0)
    return share


def _names(table: Table, records: Records, found: Identity) -> dict[str, Any]:
    """Identity of each record and the array or heterogeneous job it belongs to."""
    n = len(table.line)
    first = found.first
    numbers = records.array[first].tolist()
    names = np.array([str(number) for number in numbers] or [""], object)[: len(first)]
    for k in np.flatnonzero((records.task[first] >= 0) | (records.part[first] >= 0)).tolist():
        row = first[k]
        task = f"_{records.task[row]}" if records.task[row] >= 0 else ""
        part = f"+{records.part[row]}" if records.part[row] >= 0 else ""
        names[k] = f"{names[k]}{task}{part}"
    for row, text in table.brackets.items():
        names[found.key[row]] = text
    if len(table.texts.get("cluster", [])) > 1:
        clusters = texts(table, "cluster")[first]
        names = np.array(
            [f"{c}/{name}" if c else name for c, name in zip(clusters, names, strict=True)], object
        )
    job = names[found.key] if n else np.empty(0, object)
    job[found.reason == 1] = ""
    for row in np.flatnonzero(found.life > 0).tolist():
        submitted = found.life_submit.get((int(found.key[row]), int(found.life[row])), UNKNOWN)
        when = np.datetime64(submitted, "s") if submitted != UNKNOWN else int(found.life[row]) + 1
        job[row] = f"{job[row]}/submitted-{when}"
    parent = np.full(n, "", object)
    parts = np.flatnonzero((records.task >= 0) | (records.part >= 0) | (records.kind == kernels.TASKS))
    parent[parts] = [str(number) for number in records.array[parts].tolist()]
    return {"job": job, "parent": parent}


def _of_arrays(lists: dict[int, Tasks], n: int) -> dict[str, Any]:
    """How many tasks of each waiting array may run at once, and whether its list was cut off."""
    together, cut_off = np.full(n, UNKNOWN, np.int64), np.zeros(n, np.bool_)
    for row, listed in lists.items():
        together[row], cut_off[row] = listed.together, listed.cut_off
    return {"together": together, "cut_off": cut_off}


def _rules(
    layout: Layout, choices: Choices, times: Times, held: GpuColumns, strange: list[str], found: Identity
) -> list[str]:
    rules = [
        "A job is its cluster, id and first submission; a record of a later submission is another attempt of it.",
        "GPUs are gres/gpu, or where that is not told the sum of gres/gpu:TYPE.",
        *times.rules,
    ]
    if (held.held == UNKNOWN).all():
        rules.append("GPUs held are not told: those asked for stand in their place.")
    if "reqgres" in layout.names or "allocgres" in layout.names:
        rules.append("AllocGRES and ReqGRES are taken as they are written, not times the nodes.")
    if strange:
        rules.append(f"States that Slurm does not have: {', '.join(strange[:20])}.")
    if (found.reason == LONE_STEP).any():
        rules.append(
            "Steps whose job has no record here are not made into jobs: the job lies outside of the export."
        )
    if set(layout.names) & {"jobname"}:
        rules.append(
            "A name with line breaks can pose as a whole line: only an export without JobName rules that out."
        )
    return [*rules, *choices.notes]
