"""Weeks of Microsoft's Philly clusters (2017) as a fair-share scenario: virtual clusters are the teams.

Reads ``philly_jobs.csv.gz`` (see `gpuplan.traces.philly`; its ``cluster`` is the hash of the virtual cluster)
and ``philly_vc_nodes.csv``: ``vc`` and ``node num``, made up by another project for a simulation
(`S-Lab-System-Group/HeliosArtifact`, MIT), round powers of two that add up to about six times the mean load. They are
weights here, and the cluster is sized by the work. Source of the jobs: `msr-fiddle/philly-traces`, CC BY 4.0.
"""

import datetime as dt
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpuplan.fairshare.jobs import Jobs
from gpuplan.fairshare.jobs import jobs as make_jobs
from gpuplan.fairshare.model import DAY, HOUR, BudgetNode, FairshareScenario, Pool
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.philly import ATTRIBUTION, sorted_out
from gpuplan.traces.table import read_table

if TYPE_CHECKING:
    import pandas as pd

#: The trace is dense from this day on; what was submitted before are stragglers.
DENSE_FROM = "2017-09-24"

#: GPUs of a machine: the trace's have up to 8, and the quotas count 8.
GPUS_PER_NODE = 8

#: The format names no minimum run time; each job declares this one, as those of a workload log do.
MINIMUM_S = HOUR

_JOBS, _QUOTAS = "philly_jobs.csv.gz", "philly_vc_nodes.csv"


def philly_weeks(
    folder: str | Path,
    first_day: str = "2017-10-01",
    days: int = 28,
    *,
    load: float = 1.1,
    gpus: int | None = None,
    powers_of_two: bool = False,
    limit_factor: float | None = None,
    minimum_s: int = MINIMUM_S,
    resumable: bool = True,
) -> tuple[FairshareScenario, Account]:
    """Build a scenario of the jobs submitted in some weeks, with the virtual clusters' quotas as weights.

    Parameters
    ----------
    folder
        Where ``philly_jobs.csv.gz`` and ``philly_vc_nodes.csv`` lie.
    first_day
        The first day, as ``YYYY-MM-DD``; the dense part of the trace begins on `DENSE_FROM`.
    days
        How many. The run stops at their end.
    load
        Mean load: GPU-hours submitted / GPU-hours available. It sizes the cluster, in whole nodes.
    gpus
        Size of the cluster instead, a multiple of 8.
    powers_of_two
        Whether GPUs are rounded up to a power of two (12 and 24 are the others that occur).
    limit_factor
        Declared limit as a multiple of the recorded run time; None: unknown, as the trace has none.
    minimum_s
        Declared minimum run time of all jobs, seconds, or the limit where that is shorter.
    resumable
        Whether jobs go on from a checkpoint after a preemption.

    Returns
    -------
    scenario, account
        The account covers every row of the file of jobs.

    Raises
    ------
    InputError
        If a file cannot be used, the days have no job, or an argument is out of range.
    """
    _require(first_day, days, load, gpus, limit_factor, minimum_s)
    table = read_table(Path(folder) / _JOBS, ("timestamp", "duration", "num_gpus", "cluster"))
    quota = _quotas(Path(folder) / _QUOTAS)
    _require_until(table, first_day, days)
    reasons, chosen = sorted_out(table, first_day, 1, days)
    chosen = chosen.assign(team=table["cluster"].loc[chosen.index])
    known = chosen["team"].isin(list(quota))
    reasons += [("of a virtual cluster without a quota", int((~known).sum()))] if not known.all() else []
    chosen = chosen[known]
    if chosen.empty:
        raise InputError(
            _JOBS, [Mistake("first_day", "must begin days with at least one usable job", first_day)]
        )
    jobs = _jobs(chosen, powers_of_two, limit_factor, minimum_s, resumable)
    work = int(jobs.gpu_seconds.sum())
    nodes = (
        max(1, round(work / (load * days * DAY * GPUS_PER_NODE))) if gpus is None else gpus // GPUS_PER_NODE
    )
    rules = _rules(
        quota, nodes, work / (nodes * GPUS_PER_NODE * days * DAY), limit_factor, minimum_s, resumable
    )
    scenario = FairshareScenario(
        name=f"philly-{first_day}-{days}-days",
        pools=(Pool(nodes, GPUS_PER_NODE),),
        budget=tuple(BudgetNode(team, float(weight)) for team, weight in quota.items() if weight > 0),
        jobs=jobs,
        until_s=days * DAY,
        about=f"{len(jobs):,} jobs submitted to Microsoft's Philly clusters from {first_day} on, {days} days, with "
        f"virtual clusters as teams. {ATTRIBUTION}",
        notes=rules,
    )
    account = Account(
        source=_JOBS,
        rows="jobs",
        read=len(table),
        used=len(jobs),
        excluded=tuple(reasons),
        changed=_changed(chosen, jobs),
        amounts=(
            ("as recorded", float((chosen["size"] * chosen["run_s"]).sum()) / HOUR, "GPU-hours"),
            ("in the scenario", work / HOUR, "GPU-hours"),
            ("of the cluster over the days", nodes * GPUS_PER_NODE * days * 24.0, "GPU-hours"),
        ),
        rules=rules,
    )
    return scenario, account


def _asked(chosen: "pd.DataFrame") -> npt.NDArray[np.int64]:
    """GPUs as recorded, in order of submission, int64[J]."""
    asked: npt.NDArray[np.int64] = chosen["size"].to_numpy(np.int64)
    return asked


def _changed(chosen: "pd.DataFrame", jobs: Jobs) -> tuple[tuple[str, int], ...]:
    """What was done to the rows used."""
    counts = (
        ("GPUs rounded up to a power of two", int((_asked(chosen) != jobs.gpus).sum())),
        ("run time rounded to whole seconds", int((chosen["run_s"].to_numpy() != jobs.run_s).sum())),
    )
    return tuple((what, count) for what, count in counts if count)


def _require(
    first_day: str, days: int, load: float, gpus: int | None, limit_factor: float | None, minimum_s: int
) -> None:
    """Every argument out of range at once."""
    mistakes = []
    if not _is_day(first_day):
        mistakes.append(Mistake("first_day", "must be a day written as YYYY-MM-DD", first_day))
    elif first_day < DENSE_FROM:
        rule = f"must be {DENSE_FROM} or later: what lies before are a few stragglers"
        mistakes.append(Mistake("first_day", rule, first_day))
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= 366:
        mistakes.append(Mistake("days", "must be a whole number from 1 to 366", days))
    if not 0 < load < math.inf:
        mistakes.append(Mistake("load", "must be a number above 0", load))
    if gpus is not None and (
        isinstance(gpus, bool) or not isinstance(gpus, int) or gpus < 8 or gpus % GPUS_PER_NODE
    ):
        mistakes.append(Mistake("gpus", f"must be a multiple of {GPUS_PER_NODE}", gpus))
    if limit_factor is not None and not 1 <= limit_factor < math.inf:
        mistakes.append(Mistake("limit_factor", "must be at least 1, or None", limit_factor))
    if isinstance(minimum_s, bool) or not isinstance(minimum_s, int) or minimum_s < 0:
        mistakes.append(Mistake("minimum_s", "must be whole seconds, 0 or more", minimum_s))
    if mistakes:
        raise InputError("philly", mistakes)


def _require_until(table: "pd.DataFrame", first_day: str, days: int) -> None:
    """The last of the days must be one of the trace: days without a job would be no days of low load."""
    last = max((text[:10] for text in table["timestamp"] if _is_day(text[:10])), default="")
    if last:
        fit = (dt.date.fromisoformat(last) - dt.date.fromisoformat(first_day)).days + 1
        if fit < days:
            there = f"{max(fit, 0)} days from {first_day} on"
            rule = f"must end with the trace: its last job was submitted on {last}, {there}"
            raise InputError(_JOBS, [Mistake("days", rule, days)])


def _is_day(text: str) -> bool:
    """Whether a text is a day written as ``YYYY-MM-DD``."""
    try:
        return dt.date.fromisoformat(text).isoformat() == text
    except (ValueError, TypeError):
        return False


def _quotas(path: Path) -> dict[str, int]:
    """Nodes of each virtual cluster, in file order."""
    table = read_table(path, ("vc", "node num"))
    mistakes = []
    quota: dict[str, int] = {}
    for line, (team, nodes) in enumerate(zip(table["vc"], table["node num"], strict=True), 2):
        if team in quota:
            mistakes.append(Mistake(f"line {line}", "names a virtual cluster again", team, line))
        elif not team or "/" in team:
            mistakes.append(
                Mistake(f"line {line}", "must name a virtual cluster, without a slash", team, line)
            )
        elif not (nodes.isascii() and nodes.isdigit() and 0 < int(nodes) < 10**6):
            mistakes.append(Mistake(f"line {line}", "must have a whole number of nodes above 0", nodes, line))
        else:
            quota[team] = int(nodes)
    if not quota and not mistakes:
        mistakes.append(Mistake("", "must have a row about a virtual cluster"))
    if mistakes:
        raise InputError(path.name, mistakes)
    return quota


def _jobs(
    chosen: "pd.DataFrame", powers_of_two: bool, limit_factor: float | None, minimum_s: int, resumable: bool
) -> Jobs:
    gpus = _asked(chosen)
    if powers_of_two:
        gpus = np.array([1 << (int(size) - 1).bit_length() for size in gpus], np.int64)
    run = np.maximum(1, np.round(chosen["run_s"].to_numpy(np.float64))).astype(np.int64)
    limit = None if limit_factor is None else np.ceil(run * limit_factor).astype(np.int64)
    return make_jobs(
        [f"philly-row-{row:05d}" for row in chosen["row"]],
        chosen["at_s"].to_numpy(np.int64),  # type: ignore[arg-type]
        gpus,  # type: ignore[arg-type]
        run,  # type: ignore[arg-type]
        team=chosen["team"].tolist(),
        limit_s=limit,
        minimum_s=minimum_s if limit is None else np.minimum(limit, minimum_s),
        resumable=resumable,
    )


def _rules(
    quota: dict[str, int],
    nodes: int,
    load: float,
    limit_factor: float | None,
    minimum_s: int,
    resumable: bool,
) -> tuple[str, ...]:
    total = sum(quota.values())
    limits = (
        "The trace has no time limits: they are unknown."
        if limit_factor is None
        else f"The trace has no time limits: each is taken to be {limit_factor:g} times the recorded run time."
    )
    return (
        f"Teams are virtual clusters. The weights are {total:,} nodes that another project made up for a simulation, "
        "not Microsoft's quotas.",
        f"They are scaled down: the cluster has {nodes * GPUS_PER_NODE:,} GPUs, not {total * GPUS_PER_NODE:,}, so "
        f"that the mean load is {load:.3f}.",
        limits,
        f"The trace has no minimum run times: each is taken to be {minimum_s / 60:g} min"
        + (" or the limit." if limit_factor is not None else "."),
        f"It does not say which jobs can resume: all {'can' if resumable else 'cannot'}.",
        "It names no priorities. Run times are those of the past, over all attempts; how long a job waited is unknown.",
        "Only about half of the trace's GPU time is in the published copy: it does not say how loaded Philly was.",
        "What ran already on the first morning is not in the scenario, which stops at the end of the last day.",
        "Submission times do not react to the policy (open loop): who waits longer does not submit less.",
    )
