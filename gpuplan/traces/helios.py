"""Weeks of SenseTime's Earth cluster (Helios, 2020) as a fair-share scenario, with a *generated* workload.

The published excerpt holds counts, not jobs. Reads ``earth_vc_quota_daily.csv`` (``date`` and a column of GPUs for
each virtual cluster) and ``earth_vc_sequence_10min.csv.gz`` (``time``, ``vc``, GPUs that run and that waiting jobs ask
for, split into jobs of 8 GPUs or more and of less). Quotas become budgets. The demand (running + waiting) drives
generated jobs that, each started when it is submitted, hold as many GPUs at each ten minutes as were measured.
Source of the data: `S-Lab-System-Group/HeliosData`, CC BY 4.0 (Hu and others, "Characterization and Prediction of
Deep Learning Workloads in Large-Scale GPU Datacenters", SC 2021).
"""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpuplan.fairshare.jobs import Jobs
from gpuplan.fairshare.jobs import jobs as make_jobs
from gpuplan.fairshare.model import DAY, Bools, BudgetNode, FairshareScenario, Int64, Pool
from gpuplan.fairshare.workloads import stream
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.helios_jobs import STEP_S, Made, jobs_that_hold
from gpuplan.traces.helios_rows import helios_rows
from gpuplan.traces.table import read_table

if TYPE_CHECKING:
    import pandas as pd

GPUS_PER_NODE = 8

ATTRIBUTION = "Data: Helios, Earth cluster (Hu and others, SC 2021), CC BY 4.0."

_QUOTAS, _COUNTS = "earth_vc_quota_daily.csv", "earth_vc_sequence_10min.csv.gz"

#: Columns of the counts: GPUs of jobs of 8 GPUs or more, then of smaller ones; running and waiting.
_SPLIT = (
    ("running_gpu_num_noless_8", "pending_gpu_num_noless_8"),
    ("running_gpu_num_less_8", "pending_gpu_num_less_8"),
)

_STEPS_A_DAY = DAY // STEP_S


@dataclass(slots=True)
class _Demand:
    """Measured demand, GPUs: int64[2, V, S] for jobs of 8 GPUs or more and of less; -1: unknown."""

    gpus: Int64
    read: int
    used: int
    excluded: list[tuple[str, int]]

    @property
    def filled(self) -> Int64:
        """The demand with unknown steps as the step before them (at the start: as the first that is known)."""
        steps = np.arange(self.gpus.shape[2])
        known = self.gpus >= 0
        before = np.maximum.accumulate(np.where(known, steps, -1), axis=2)
        first = np.argmax(known, axis=2, keepdims=True)
        filled = np.take_along_axis(self.gpus, np.where(before >= 0, before, first), axis=2)
        return np.maximum(filled, 0)


def helios_weeks(
    folder: str | Path,
    first_day: str = "2020-05-01",
    days: int = 21,
    seed: int = 1,
    *,
    gpus: int | None = None,
) -> tuple[FairshareScenario, Account]:
    """Build a scenario with the quotas of the virtual clusters as budgets and a workload that follows their demand.

    Parameters
    ----------
    folder
        Where ``earth_vc_quota_daily.csv`` and ``earth_vc_sequence_10min.csv.gz`` lie.
    first_day
        The first day, as ``YYYY-MM-DD`` (counts are there from 2020-05-01 to 2020-05-24).
    days
        How many. The run stops at their end.
    seed
        Of the sizes, durations and contracts of the generated jobs.
    gpus
        Size of the cluster, a multiple of 8; None: the sum of the quotas. Less of them brings contention.

    Returns
    -------
    scenario, account
        The account covers every row of the counts; the scenario's notes say that its jobs are generated.

    Raises
    ------
    InputError
        If a file cannot be used, the days are not in it, or an argument is out of range.
    """
    _require(first_day, days, gpus)
    quota, other_days = _quotas(Path(folder) / _QUOTAS, first_day, days)
    demand = _demand(Path(folder) / _COUNTS, list(quota), first_day, days)
    filled = demand.filled
    jobs = _generated(filled, list(quota), seed)
    nodes = max(1, round((sum(quota.values()) if gpus is None else gpus) / GPUS_PER_NODE))
    notes = _notes(nodes, int(sum(quota.values())), other_days, demand.gpus < 0)
    scenario = FairshareScenario(
        name=f"helios-earth-generated-{first_day}-{days}-days",
        pools=(Pool(nodes, GPUS_PER_NODE),),
        budget=tuple(BudgetNode(team, weight) for team, weight in quota.items()),
        jobs=jobs,
        until_s=days * DAY,
        about=f"{len(jobs):,} generated jobs that follow the measured demand of {len(quota)} virtual clusters of "
        f"SenseTime's Earth cluster from {first_day} on, {days} days. {ATTRIBUTION}",
        notes=notes,
    )
    inside = np.minimum(jobs.submit_s + jobs.run_s, days * DAY) - jobs.submit_s
    account = Account(
        source=_COUNTS,
        rows="counts",
        read=demand.read,
        used=demand.used,
        excluded=tuple(demand.excluded),
        amounts=(
            ("measured demand, unknown steps filled", float(filled.sum()) * STEP_S / 3600, "GPU-hours"),
            ("of the generated jobs until the end", float((jobs.gpus * inside).sum()) / 3600, "GPU-hours"),
            ("of the generated jobs in all", float(jobs.gpu_seconds.sum()) / 3600, "GPU-hours"),
            ("generated", len(jobs), "jobs"),
        ),
        rules=notes,
        made="generated workload",
    )
    return scenario, account


def _require(first_day: str, days: int, gpus: int | None) -> None:
    mistakes = []
    try:
        right = dt.date.fromisoformat(first_day).isoformat() == first_day
    except (ValueError, TypeError):
        right = False
    if not right:
        mistakes.append(Mistake("first_day", "must be a day written as YYYY-MM-DD", first_day))
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= 366:
        mistakes.append(Mistake("days", "must be a whole number from 1 to 366", days))
    if gpus is not None and (
        isinstance(gpus, bool) or not isinstance(gpus, int) or gpus < 1 or gpus % GPUS_PER_NODE
    ):
        mistakes.append(Mistake("gpus", f"must be a multiple of {GPUS_PER_NODE}", gpus))
    if mistakes:
        raise InputError("helios", mistakes)


def _quotas(path: Path, first_day: str, days: int) -> tuple[dict[str, float], list[str]]:
    """Median quota of each virtual cluster over the days, GPUs (0: left out), and the days that differ from it."""
    dates = read_table(path, ("date",))["date"]
    first = dt.date.fromisoformat(first_day)
    wanted = [(first + dt.timedelta(k)).isoformat() for k in range(days)]
    at = {date: k for k, date in enumerate(dates)}
    missing = [date for date in wanted if date not in at]
    if missing:
        rule = f"must all have a quota; {missing[0]} has none" + (
            f", nor {len(missing) - 1} more" if missing[1:] else ""
        )
        raise InputError(path.name, [Mistake("days", rule)])
    table = _all_columns(path)
    mistakes, quota, other = [], {}, set()
    for team in table.columns:
        if team in ("date", "total"):
            continue
        cells = table[team].iloc[[at[date] for date in wanted]]
        for row, cell in cells.items():
            if not (cell.isascii() and cell.isdigit() and len(cell) < 7):
                line = int(str(row)) + 2
                mistakes.append(Mistake(f"line {line}", f"{team} must be a whole number of GPUs", cell, line))
        if "/" in team or not team:
            mistakes.append(Mistake(team, "must be the name of a virtual cluster, without a slash"))
        elif not mistakes:
            gpus = np.array([int(cell) for cell in cells])
            usual = float(np.median(gpus))
            other |= {date for date, found in zip(wanted, gpus.tolist(), strict=True) if found != usual}
            if usual > 0:
                quota[str(team)] = usual
    if not quota and not mistakes:
        mistakes.append(Mistake("", "must have a virtual cluster with GPUs on these days"))
    if mistakes:
        raise InputError(path.name, mistakes)
    return quota, sorted(other)


def _all_columns(path: Path) -> "pd.DataFrame":
    """All columns of a table that `read_table` could read, as text."""
    import pandas as pd

    return read_table(path, [str(name) for name in pd.read_csv(path, nrows=0, dtype=str).columns])


def _demand(path: Path, teams: list[str], first_day: str, days: int) -> _Demand:
    """The demand of the teams on the days, and what became of every row of the counts."""
    rows = helios_rows(
        path,
        [name for pair in _SPLIT for name in pair],
        [pair[0] for pair in _SPLIT],
        teams,
        first_day,
        days,
        stranger="of a virtual cluster without a quota",
        idle="nothing ran in the whole cluster: taken for maintenance, demand unknown",
    )
    gpus = np.full((2, len(teams), days * _STEPS_A_DAY), -1, np.int64)
    for k, pair in enumerate(_SPLIT):
        gpus[k, rows.team, rows.step] = rows.counts[list(pair)].sum(axis=1).to_numpy(np.int64)
    return _Demand(gpus, rows.read, len(rows.counts), list(rows.excluded))


def _generated(demand: Int64, teams: list[str], seed: int) -> Jobs:
    """Jobs of all teams and both classes of sizes."""
    made: list[tuple[str, Made]] = []
    for v, team in enumerate(teams):
        for k, name in enumerate(("8 GPUs or more", "less than 8 GPUs")):
            made.append((team, jobs_that_hold(demand[k, v], k == 0, stream(seed, f"{team}/{name}"))))
    together = [np.concatenate([getattr(jobs, name) for _, jobs in made]) for name in Made.__slots__]
    columns: dict[str, npt.NDArray[np.int64]] = dict(zip(Made.__slots__, together, strict=True))
    counts = [len(jobs.gpus) for _, jobs in made]
    return make_jobs(
        [f"made-{k}" for k in range(1, sum(counts) + 1)],
        columns["submit_s"],  # type: ignore[arg-type]
        columns["gpus"],  # type: ignore[arg-type]
        columns["run_s"],  # type: ignore[arg-type]
        team=[team for (team, _), count in zip(made, counts, strict=True) for _ in range(count)],
        limit_s=columns["limit_s"],  # type: ignore[arg-type]
        minimum_s=columns["minimum_s"],  # type: ignore[arg-type]
        resumable=columns["resumable"],  # type: ignore[arg-type]
    )


def _notes(nodes: int, quotas_gpus: int, other_days: list[str], unknown: Bools) -> tuple[str, ...]:
    steps, count = unknown.any(axis=(0, 1)).sum(), unknown.any(axis=0).sum()
    filled = (
        f"The demand is unknown at {count:,} points ({steps:,} steps of ten minutes); it is taken to be that of the "
        "step before.",
    )
    quotas = f"; quotas differ on {', '.join(other_days[:5])}{' and other days' if other_days[5:] else ''}"
    return (
        "The jobs are generated: the excerpt holds counts of GPUs, not jobs.",
        "Generated jobs that start when they are submitted hold, at each full ten minutes, as many GPUs as were "
        "measured to run and to be waited for, per virtual cluster, and apart for jobs of 8 GPUs or more.",
        "Their sizes, durations and contracts are those of the synthetic workload; a job ends early where the demand "
        "falls. Jobs that gave up waiting count as demand while they waited.",
        f"Budgets are the quotas (their median over the days{quotas if other_days else ''}); the cluster has "
        f"{nodes * GPUS_PER_NODE:,} GPUs in nodes of {GPUS_PER_NODE}, the quotas add up to {quotas_gpus:,}.",
        *(filled if count else ()),
        "The counts do not tell debug jobs: none are generated. No time zone is written.",
        "The demand does not react to the policy (open loop): who waits longer does not submit less.",
    )
