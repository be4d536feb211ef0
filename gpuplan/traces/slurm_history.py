"""From the columns of a `sacct` export to a history and its account."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.errors import InputError, Mistake
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
from gpuplan.traces.instants import clock_of, settle, zone_of
from gpuplan.traces.slurm_attempts import Identity, Records, identify, waiting_tasks
from gpuplan.traces.slurm_columns import Mistakes, Table
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
from gpuplan.traces.slurm_words import Tasks

Int64 = npt.NDArray[np.int64]
Strings = npt.NDArray[np.object_]
Bools = npt.NDArray[np.bool_]

#: Seconds by which end - start may miss the run time.
_SLACK_S = 1

_ZONE_RULE = (
    "The time zone is not told: times are those on the wall. Run times are right; what lies near a change of the "
    "clocks may be an hour off."
)


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user said about a file; see `gpuplan.traces.slurm.read_sacct`."""

    zone: str | None
    as_of: str | datetime | None
    partition_limits: Mapping[str, int | None] | int | None
    strict: bool
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Times:
    """Times of the records, int64[R] by name, and what was done to them."""

    s: dict[str, Int64]
    elapsed_s: Int64
    ambiguous: Bools
    zone: str | None
    changed: list[tuple[str, int]]
    rules: list[str]


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
    times = _times(source, table, choices)
    waits = group == "pending"
    runs = (group == "running") & (state != "resizing")
    _open_ended(times, waits, runs, held, group)
    found = _identified(table, times, bad, waits, runs)
    tasks, taken = waiting_tasks(found[0], found[1], lists)
    used = found[1].reason == USED
    as_of_s, as_of_from = _as_of(source, times, runs & used, used, choices)
    _so_far(times, runs & used, as_of_s)
    counts, rules = _gpus_held(held, waits, times.elapsed_s, used)
    share = _shares(table, times, held, found[0], found[1], counts)
    told = mistakes.all()
    if choices.strict and told:
        raise InputError(source, told)
    changed = [
        *times.changed,
        ("limits that are those of the partition", of_partition),
        ("waiting tasks of arrays with a record of their own, counted once", taken),
        (
            "lists of waiting tasks that were cut off: at least so many",
            sum(x.cut_off for x in lists.values()),
        ),
        (
            "records with slices of GPUs (gres/shard), which are no whole ones",
            int((held.shared & used).sum()),
        ),
        (
            "records whose typed GPUs are more than their total, which counts",
            int((held.more_typed & used).sum()),
        ),
        ("ids that were given to several jobs", len(found[1].life_submit)),
    ]
    return history(
        source,
        table.line,
        reason=found[1].reason,
        mistakes=told,
        strict=choices.strict,
        excluded=[(f"the header again ({line_list(np.array(table.headers))})", len(table.headers))]
        if table.headers
        else (),
        changed=[*changed, *rules[1]],
        rules=_rules(layout, choices, times, rules[0], strange, found[1]),
        rows="records",
        zone=times.zone,
        as_of_s=as_of_s,
        as_of_from=as_of_from,
        **_names(table, found[0], found[1]),
        attempt=found[1].attempt,
        tasks=tasks,
        together=_together(lists, len(table.line)),
        cut_off=_cut_off(lists, len(table.line)),
        partition=partition,
        user=texts(table, "user"),
        team=texts(table, "account"),
        qos=texts(table, "qos"),
        name=texts(table, "jobname"),
        cluster=texts(table, "cluster"),
        state=state,
        limit_s=limit_s,
        elapsed_s=times.elapsed_s,
        **{f"{name}_s": times.s[name] for name in TIMES if name in times.s},
        gpus=counts,
        requested_gpus=held.asked,
        gpu_type=np.where(waits | (held.kinds == ""), held.asked_kinds, held.kinds),
        priority=priority,
        gpu_share=share,
        ambiguous=times.ambiguous,
    )


def _groups(state: Strings) -> Strings:
    import pandas as pd

    codes, words = pd.factorize(state)
    return np.array([STATES.get(word, "unknown") for word in words], object)[codes]


def _times(source: str, table: Table, choices: Choices) -> _Times:
    """Times as instants where a zone is known, and run times."""
    n = len(table.line)
    elapsed = np.full(n, UNKNOWN, np.int64)
    for name in ("elapsed", "elapsedraw"):
        if name in table.seconds:
            elapsed = np.where(table.seconds[name] != UNKNOWN, table.seconds[name], elapsed)
    found = {name: table.seconds[name] for name in TIMES if name in table.seconds}
    fixed = {name: table.instants[name] for name in found}
    offsets = sum(int(values.sum()) for values in fixed.values())
    known = sum(int((values != UNKNOWN).sum()) for values in found.values())
    times = _Times(found, elapsed, np.zeros(n, np.bool_), choices.zone, [], [])
    if choices.zone is not None:
        settled = settle(
            zone_of(choices.zone),
            {f"{name}_s": values for name, values in found.items()},
            elapsed,
            {f"{name}_s": values for name, values in fixed.items()},
        )
        times.s = {name: settled.times[f"{name}_s"].copy() for name in found}
        times.ambiguous = settled.ambiguous
        times.changed += [
            ("times that the clock showed twice, settled by run time and order", int(settled.settled.sum())),
            ("times that the clock showed twice: the first is taken", int(settled.ambiguous.sum())),
            ("times that the clock never showed", int(settled.skipped.sum())),
        ]
        times.rules.append(f"Times are those of {choices.zone}.")
    elif offsets:
        if offsets < known:
            rule = "must be given: some times of the file have an offset from UTC, and others have none"
            raise InputError(source, [Mistake("zone", rule)])
        times.zone = "UTC"
        times.rules.append("Times have an offset from UTC.")
    elif found:
        times.rules.append(_ZONE_RULE)
    return times


def _open_ended(times: _Times, waits: Bools, runs: Bools, held: GpuColumns, group: Strings) -> None:
    """Take away forecasts, and starts of jobs that never started; fill in run times."""
    start, end = times.s.get("start"), times.s.get("end")
    elapsed = times.elapsed_s
    if end is not None:
        forecast = (waits | runs) & (end != UNKNOWN)
        times.changed.append(("ends that are forecasts: the job has not ended", int(forecast.sum())))
        end[forecast] = UNKNOWN
    if start is not None:
        forecast = waits & (start != UNKNOWN)
        times.changed.append(("starts that are forecasts: the job waits", int(forecast.sum())))
        start[forecast] = UNKNOWN
    if start is None or end is None:
        return
    both = (start != UNKNOWN) & (end != UNKNOWN)
    never = both & (start == end) & (elapsed == 0) & (group == "cancelled") & ~held.told
    if (held.held != UNKNOWN).any():
        times.changed.append(
            ("cancelled at the moment of their start, holding nothing: never started", int(never.sum()))
        )
        start[never] = UNKNOWN
    filled = both & ~never & (elapsed == UNKNOWN) & (end >= start)
    elapsed[filled] = (end - start)[filled]
    times.changed.append(("run time not told: end - start", int(filled.sum())))
    differ = both & (elapsed != UNKNOWN) & (np.abs(end - start - elapsed) > _SLACK_S)
    times.changed.append(("end - start is not the run time told: the run time counts", int(differ.sum())))


def _identified(
    table: Table, times: _Times, bad: Bools, waits: Bools, runs: Bools
) -> tuple[Records, Identity]:
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
    records = Records(
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
    return records, identify(records)


def _as_of(source: str, times: _Times, runs: Bools, used: Bools, choices: Choices) -> tuple[int | None, str]:
    """The moment the file tells about, and how it is known."""
    if choices.as_of is not None:
        return _given_moment(source, choices.as_of, times.zone), "The moment of the export was given."
    start = times.s.get("start")
    if start is not None:
        sure = runs & (start != UNKNOWN) & (times.elapsed_s != UNKNOWN)
        if sure.any():
            moment = int((start + times.elapsed_s)[sure].max())
            return (
                moment,
                "The moment of the export is the start + run time of a running job, the latest of them.",
            )
    latest = [int(values[used].max(initial=UNKNOWN)) for values in times.s.values()]
    if max(latest, default=UNKNOWN) == UNKNOWN:
        return None, ""
    return max(
        latest
    ), "The moment of the export is a guess: the latest time in the file, for no job of it runs."


def _given_moment(source: str, as_of: str | datetime, zone: str | None) -> int:
    try:
        moment = datetime.fromisoformat(as_of) if isinstance(as_of, str) else as_of
        if moment.tzinfo is not None:
            return round(moment.timestamp())
        wall = round((moment - datetime(1970, 1, 1)).total_seconds())
        if zone is None:
            return wall
        return int(clock_of(zone_of(zone), wall, wall).instants(np.array([wall]))[0][0])
    except (ValueError, OverflowError):
        rule = "must be a time such as 2026-04-10T12:00:00"
        raise InputError(source, [Mistake("as_of", rule, str(as_of))]) from None


def _so_far(times: _Times, runs: Bools, as_of_s: int | None) -> None:
    """Run times of running jobs that are not told, up to the moment of the export."""
    start = times.s.get("start")
    if start is None or as_of_s is None:
        return
    rows = runs & (times.elapsed_s == UNKNOWN) & (start != UNKNOWN) & (start <= as_of_s)
    times.elapsed_s[rows] = as_of_s - start[rows]
    times.changed.append(("run time not told of running jobs: up to the export", int(rows.sum())))


def _gpus_held(
    held: GpuColumns, waits: Bools, elapsed_s: Int64, used: Bools
) -> tuple[Int64, tuple[list[str], list[tuple[str, int]]]]:
    """GPUs of each record: those held, those asked for while it waits; rules and changes for the account."""
    if (held.held == UNKNOWN).all():
        return held.asked, (["GPUs held are not told: those asked for stand in their place."], [])
    silent = ~waits & ~held.told & (elapsed_s > 0) & (held.asked > 0)
    counts = np.where(waits | silent, held.asked, held.held)
    changed = [("ran, and GPUs held are not told: those asked for", int((silent & used).sum()))]
    return counts, ([], changed)


def _shares(
    table: Table, times: _Times, held: GpuColumns, records: Records, found: Identity, counts: Int64
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


def _together(lists: dict[int, Tasks], n: int) -> Int64:
    found = np.full(n, UNKNOWN, np.int64)
    for row, listed in lists.items():
        found[row] = listed.together
    return found


def _cut_off(lists: dict[int, Tasks], n: int) -> Bools:
    found = np.zeros(n, np.bool_)
    found[[row for row, listed in lists.items() if listed.cut_off]] = True
    return found


def _rules(
    layout: Layout, choices: Choices, times: _Times, others: list[str], strange: list[str], found: Identity
) -> list[str]:
    rules = [
        "A job is its cluster, id and first submission; a record of a later submission is another attempt of it.",
        "GPUs are gres/gpu, or where that is not told the sum of gres/gpu:TYPE.",
        *times.rules,
        *others,
    ]
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
