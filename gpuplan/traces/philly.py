"""Batch work of a day, or of several, of Microsoft's Philly clusters (2017) as an allocation scenario.

Reads ``philly_jobs.csv.gz``: ``timestamp`` (submission, local time), ``duration`` (seconds of run time
over all attempts), ``num_gpus``. Source of the data: `msr-fiddle/philly-traces`, CC BY 4.0 (Jeon and
others, "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC 2019).
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.allocation.model import (
    AllocationScenario,
    BatchJob,
    Horizon,
    Objective,
    RealtimeApp,
    Rules,
)
from gpuplan.cluster import Cluster
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.table import read_table

if TYPE_CHECKING:
    import pandas as pd

#: The densest stretch of the trace lies around this Thursday.
DAY = "2017-10-12"

DAY_S = 86_400

#: The trace names no importance, so every job has this one.
PRIORITY = 1.0

ATTRIBUTION = "Data: Microsoft Philly trace (Jeon and others, USENIX ATC 2019), CC BY 4.0."

_STAMP = r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}"


@dataclass(frozen=True, slots=True)
class PhillyDay:
    """A day of the trace: the scenario, and the account of every row of the file."""

    scenario: AllocationScenario
    account: Account


def day(
    path: str | Path,
    date: str = DAY,
    *,
    gpus: int,
    every: int = 1,
    step_minutes: int = 30,
    gpus_per_node: int = 8,
    realtime: Sequence[RealtimeApp] = (),
    objective: Objective | None = None,
) -> PhillyDay:
    """Build a scenario of the jobs submitted on one day.

    A job is known from the step in which it was submitted. Its hours are cut to what is left of the day
    from there, its GPUs are rounded up to a power of two, its priority is `PRIORITY`, its name is the
    number of its row in the file. A block stays within a node of `gpus_per_node` GPUs, or takes whole nodes.

    Parameters
    ----------
    path
        ``philly_jobs.csv.gz``, or a file with the same columns.
    date
        The day, as ``YYYY-MM-DD``.
    gpus
        Size of the cluster.
    every
        Keep every `every`-th job of the day, the first included, by submission time, then row number.
    step_minutes
        Length of a step; must divide the day.
    gpus_per_node
        GPUs of a node (the trace's machines have up to 8).
    realtime
        Apps that share the cluster, such as those of `gpuplan.traces.servegen`.
    objective
        Penalty and half-life; the defaults of a scenario file where it is left out.

    Raises
    ------
    InputError
        If the file cannot be used, the day has no job, or an argument is out of range.
    """
    _require_arguments(date, every, step_minutes)
    table = read_table(path, ("timestamp", "duration", "num_gpus"))
    reasons, chosen = sorted_out(table, date, every, 1)
    source = Path(path).name
    if chosen.empty:
        raise InputError(source, [Mistake("date", "must be a day with at least one usable job", date)])
    step_s = 60 * step_minutes
    jobs, account = _jobs(chosen, reasons, len(table), source, step_s, every, cut=True)
    scenario = AllocationScenario(
        name=f"philly-{date}-{gpus}-gpus",
        about=_about(date, every, len(jobs), step_minutes, realtime),
        cluster=Cluster(gpus, gpus_per_node),
        horizon=Horizon(DAY_S // step_s, step_s, f"{date}T00:00"),
        objective=objective or Objective(),
        rules=Rules(must_finish=False, within_node=True),
        realtime=tuple(realtime),
        batch=tuple(jobs),
    )
    return PhillyDay(scenario.replace({}), account)  # held to the rules of a file


def span(
    path: str | Path,
    date: str = DAY,
    *,
    days: int,
    gpus: int,
    every: int = 1,
    step_minutes: int = 60,
    gpus_per_node: int = 8,
    realtime: Sequence[RealtimeApp] = (),
    objective: Objective | None = None,
) -> PhillyDay:
    """Build one long scenario of the jobs submitted on several days, for a rolling run.

    As `day`, but hours are those of the trace: nothing is cut. What ran already on the first morning is not in it.

    Parameters
    ----------
    path, gpus, every, gpus_per_node, realtime, objective
        As in `day`; apps need a demand for all days.
    date
        The first day, as ``YYYY-MM-DD``.
    days
        How many.
    step_minutes
        Length of a step; must divide the day.

    Raises
    ------
    InputError
        If the file cannot be used, the days have no job, or an argument is out of range.
    """
    _require_arguments(date, every, step_minutes, days)
    table = read_table(path, ("timestamp", "duration", "num_gpus"))
    reasons, chosen = sorted_out(table, date, every, days)
    source = Path(path).name
    if chosen.empty:
        raise InputError(source, [Mistake("date", "must begin days with at least one usable job", date)])
    step_s = 60 * step_minutes
    jobs, account = _jobs(chosen, reasons, len(table), source, step_s, every, cut=False)
    scenario = AllocationScenario(
        name=f"philly-{date}-{days}-days-{gpus}-gpus",
        about=f"{len(jobs):,} jobs submitted to Microsoft's Philly clusters from {date} on, {days} days. {ATTRIBUTION}",
        cluster=Cluster(gpus, gpus_per_node),
        horizon=Horizon(days * DAY_S // step_s, step_s, f"{date}T00:00"),
        objective=objective or Objective(),
        rules=Rules(must_finish=False, within_node=True),
        realtime=tuple(realtime),
        batch=tuple(jobs),
    )
    return PhillyDay(scenario.replace({}), account)


def _require_arguments(date: str, every: int, step_minutes: int, days: int = 1) -> None:
    mistakes = []
    if isinstance(days, bool) or not isinstance(days, int) or days < 1:
        mistakes.append(Mistake("days", "must be a whole number of at least 1", days))
        days = 1
    try:
        right = dt.date.fromisoformat(date).isoformat() == date
    except ValueError:
        right = False
    if not right:
        mistakes.append(Mistake("date", "must be a day written as YYYY-MM-DD", date))
    if every < 1:
        mistakes.append(Mistake("every", "must be at least 1", every))
    if step_minutes < 1 or 1440 % step_minutes or days * 1440 // step_minutes > 1008:
        what = "the day" if days == 1 else f"the {days} days"
        mistakes.append(Mistake("step_minutes", f"must divide {what} into at most 1,008 steps", step_minutes))
    if mistakes:
        raise InputError("philly", mistakes)


def sorted_out(
    table: "pd.DataFrame", date: str, every: int, days: int
) -> tuple[list[tuple[str, int]], "pd.DataFrame"]:
    """Rows left out by reason, and the rows used, by submission: ``row`` (1-based), ``at_s``, ``run_s``, ``size``."""
    import pandas as pd

    when = pd.to_datetime(
        table["timestamp"].where(table["timestamp"].str.fullmatch(_STAMP)),
        format="%Y-%m-%d %H:%M:%S",
        errors="coerce",
    )
    run_s = pd.to_numeric(table["duration"], errors="coerce")
    size = pd.to_numeric(table["num_gpus"], errors="coerce")
    since = (when - pd.Timestamp(date)).dt.total_seconds()
    other = f"on another day than {date}" if days == 1 else f"on none of the {days} days from {date} on"
    tests = (
        ("no submission time that can be read", when.isna()),
        (f"submitted {other}", ~((since >= 0) & (since < days * DAY_S))),
        ("no positive run time", ~((run_s > 0) & (run_s < 1e12))),
        ("no positive whole number of GPUs", ~((size > 0) & (size < 1e6) & (size % 1 == 0))),
    )
    left = pd.Series(True, index=table.index)
    reasons = []
    for reason, fails in tests:
        reasons.append((reason, int((left & fails).sum())))
        left &= ~fails
    usable = pd.DataFrame({"row": table.index + 1, "at_s": since, "run_s": run_s, "size": size})[left]
    usable = usable.sort_values(["at_s", "row"])
    chosen = usable.iloc[::every]
    if every > 1:
        reasons.append((f"not in the sample of every {_ordinal(every)} job", len(usable) - len(chosen)))
    return [(reason, count) for reason, count in reasons if count], chosen


def _jobs(
    chosen: "pd.DataFrame",
    reasons: list[tuple[str, int]],
    read: int,
    source: str,
    step_s: int,
    every: int,
    *,
    cut: bool,
) -> tuple[list[BatchJob], Account]:
    import numpy as np

    at_s = chosen["at_s"].to_numpy(np.int64) // step_s * step_s
    recorded_s = chosen["run_s"].to_numpy(np.float64)
    asked = chosen["size"].to_numpy(np.int64)
    size = np.array([1 << (int(gpus) - 1).bit_length() for gpus in asked], np.int64)
    kept_s = np.minimum(recorded_s, DAY_S - at_s) if cut else recorded_s
    planned_s = np.ceil(kept_s / step_s) * step_s
    jobs = [
        BatchJob(
            f"philly-row-{row:05d}", "training", int(gpus), float(run / 3600), PRIORITY, float(at / 3600)
        )
        for row, gpus, run, at in zip(chosen["row"], size, kept_s, at_s, strict=True)
    ]

    cuts = (
        ("hours cut to what is left of the day", int((kept_s < recorded_s).sum())),
        ("of these, longer than a whole day", int((recorded_s > DAY_S).sum())),
    )
    account = Account(
        source=source,
        rows="jobs",
        read=read,
        used=len(jobs),
        excluded=tuple(reasons),
        changed=(
            ("GPUs rounded up to a power of two", int((size != asked).sum())),
            *(cuts if cut else ()),
            ("known from the start of its step, before its submission", int((chosen["at_s"] > at_s).sum())),
        ),
        amounts=(
            ("as recorded", float(np.sum(asked * recorded_s)) / 3600, "GPU-hours"),
            ("with GPUs rounded up", float(np.sum(size * recorded_s)) / 3600, "GPU-hours"),
            *([("cut to the day", float(np.sum(size * kept_s)) / 3600, "GPU-hours")] if cut else []),
            ("rounded up to whole steps", float(np.sum(size * planned_s)) / 3600, "GPU-hours"),
        ),
        rules=_rules(every, step_s, cut),
    )
    return jobs, account


def _rules(every: int, step_s: int, cut: bool) -> tuple[str, ...]:
    sample = (
        ("all jobs of the day" if cut else "all jobs of the days")
        if every == 1
        else f"every {_ordinal(every)} job, the first included"
    )
    return (
        f"Kept: {sample}, by submission time, then row number. Exact duplicates count as jobs of their own.",
        f"A job may start from the step of {step_s // 60} min in which it was submitted, so up to a step early.",
        "A job that was cut counts as finished at midnight; one that waits may run past midnight, uncounted."
        if cut
        else "Jobs keep their hours; what ran already on the first morning is not in the scenario.",
        f"The trace names no priority: every job has {PRIORITY:g}. It names no kind either: all are training.",
        "The run time is that of the past, over all attempts; how long a job waited is not recorded.",
        "Only about half of the trace's GPU time is in the published copy: it does not say how loaded Philly was.",
        "Submission times do not react to the plan (open loop): who waits longer does not submit less.",
    )


def _about(date: str, every: int, count: int, step_minutes: int, realtime: Sequence[RealtimeApp]) -> str:
    sample = "All" if every == 1 else f"Every {_ordinal(every)} (by submission time, then row) of the"
    shared = f" Beside them: {', '.join(app.name for app in realtime)}." if realtime else ""
    return (
        f"{sample} jobs submitted to Microsoft's Philly clusters on {date}: {count:,} jobs. GPUs rounded up to "
        f"powers of two, hours cut to what is left of the day, submission rounded down to steps of "
        f"{step_minutes} min, priority {PRIORITY:g} for all (the trace has none). Names are row numbers of the "
        f"file. Only about half of the trace's GPU time is in the published copy.{shared} {ATTRIBUTION}"
    )


def _ordinal(number: int) -> str:
    """2nd, 3rd, 4th, 11th, 21st."""
    last = 0 if number % 100 in (11, 12, 13) else number % 10
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"
