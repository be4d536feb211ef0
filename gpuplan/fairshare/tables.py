"""The tables of a run as data frames."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpuplan.fairshare.figures import QUANTILES, size_class
from gpuplan.fairshare.ledger import S_FINISHED, S_SET_ASIDE, STATES
from gpuplan.fairshare.model import HOUR, Int64
from gpuplan.fairshare.raw import OUTCOMES
from gpuplan.percentiles import grouped_percentiles

if TYPE_CHECKING:
    from gpuplan.fairshare.run import Run

#: Columns of the contract for a table of stretches, in this order; more may follow them.
STRETCH_COLUMNS = ("job", "team", "gpus", "submit_s", "start_s", "end_s", "state")


def stretches(run: "Run") -> pd.DataFrame:
    """A row per unbroken stretch of running, by start: `STRETCH_COLUMNS`, then where and how it ran.

    ``state`` is how it ended (``finished``, ``preempted``, ``shut-down``; ``running`` at the end of the run);
    ``nodes`` counts the nodes that it was on, ``node`` is the first of them.
    """
    jobs, rows = run.problem.jobs, run.stretches
    first = np.searchsorted(rows.place_stretch, np.arange(len(rows)))
    node = np.full(len(rows), -1, np.int64)
    placed = first < len(rows.place_node)
    node[placed] = rows.place_node[first[placed]]
    return pd.DataFrame(
        {
            "job": jobs.name[rows.job],
            "team": jobs.team[rows.job],
            "gpus": jobs.gpus[rows.job],
            "submit_s": jobs.submit_s[rows.job],
            "start_s": rows.start_s,
            "end_s": rows.end_s,
            "state": _words(OUTCOMES, rows.outcome),
            "allocated": rows.allocated,
            "overhead_s": rows.overhead_s,
            "kept_s": rows.kept_s,
            "node": node,
            "nodes": np.bincount(rows.place_stretch, minlength=len(rows)),
        }
    )


def jobs(run: "Run") -> pd.DataFrame:
    """A row per job by submission: what it asked for, when it first started and ended, its wait, what it lost.

    ``wait_s`` of a job that never started is its wait so far, and ``wait_is_lower_bound`` says so. Times
    that are not known are missing. ``reason`` is that of a job set aside.
    """
    asked, books = run.problem.jobs, run.ledger
    finished = books.state == S_FINISHED
    reasons = np.full(len(asked), "", object)
    for j, reason in run.reasons.items():
        reasons[j] = reason
    return pd.DataFrame(
        {
            "job": asked.name,
            "team": asked.team,
            "gpus": asked.gpus,
            "submit_s": asked.submit_s,
            "first_start_s": _where(books.first_start_s, books.first_start_s >= 0),
            "end_s": _where(books.gone_s, finished),
            "wait_s": _where(books.wait_s, books.counted),
            "wait_is_lower_bound": books.waits_on,
            "run_s": asked.run_s,
            "state": _words(STATES, books.state),
            "preemptions": books.interruptions,
            "kept_s": books.kept_s,
            "lost_gpu_s": asked.gpus * books.lost_s,
            "debug": asked.debug,
            "minimum_s": asked.minimum_s,
            "priority": asked.priority,
            "gpu": asked.gpu,
            "reason": reasons,
        }
    )


def teams(run: "Run") -> pd.DataFrame:
    """A row per team in the tree's order: its share, what it was owed and got, its waits, what it lost.

    GPU-hours; ``share`` is the mean over the run where budgets change; ``entitlement_gpus`` = share x installed GPUs;
    ``delivered_share`` = delivered / owed (missing where nothing was owed); ``unallocated_gpu_hours`` ran without a
    claim; waits as in `gpuplan.fairshare.figures`.
    """
    problem, books = run.problem, run.ledger
    tree, n = problem.tree, len(problem.tree.leaves)
    rows, team = run.stretches, problem.team
    counted = books.counted
    waits = grouped_percentiles(books.wait_s[counted], team[counted], n, QUANTILES)
    debug = counted & problem.jobs.debug
    quick = grouped_percentiles(books.wait_s[debug], team[debug], n, QUANTILES)
    owed = run.owed
    gpus = problem.jobs.gpus
    free = ~books.charged[rows.job]
    ran = gpus[rows.job] * (rows.end_s - rows.start_s)
    share = problem.epochs.mean_shares(run.end_s)[tree.leaves]
    return pd.DataFrame(
        {
            "team": list(tree.teams),
            "share": share,
            "entitlement_gpus": problem.gpus * share,
            "owed_gpu_hours": [float(value / HOUR) for value in owed.owed],
            "delivered_gpu_hours": [value / HOUR for value in owed.delivered],
            "delivered_share": np.array([np.nan if r is None else r for r in owed.ratios], float),
            "unallocated_gpu_hours": _sums(team[rows.job[free]], ran[free], n) / HOUR,
            "wait_p50_s": waits[:, 0],
            "wait_p90_s": waits[:, 1],
            "wait_p99_s": waits[:, 2],
            "debug_wait_p90_s": quick[:, 1],
            "jobs": np.bincount(team[books.state <= S_SET_ASIDE], minlength=n),
            "jobs_finished": np.bincount(team[books.state == S_FINISHED], minlength=n),
            "preemptions": _sums(team, books.interruptions, n),
            "lost_gpu_hours": _sums(team, gpus * books.lost_s, n) / HOUR,
        }
    )


def sizes(run: "Run") -> pd.DataFrame:
    """A row per size class (up to the next power of two) that occurs: jobs and their waits, seconds."""
    books = run.ledger
    counted = books.counted
    classes, group = np.unique(size_class(run.problem.jobs.gpus[counted]), return_inverse=True)
    waits = grouped_percentiles(books.wait_s[counted], group, len(classes), QUANTILES)
    return pd.DataFrame(
        {
            "gpus_from": classes // 2 + 1,
            "gpus_to": classes,
            "jobs": np.bincount(group, minlength=len(classes)),
            "wait_p50_s": waits[:, 0],
            "wait_p90_s": waits[:, 1],
            "wait_p99_s": waits[:, 2],
            "waits_are_lower_bounds": _sums(group, books.waits_on[counted].astype(np.int64), len(classes)),
        }
    )


def _where(values: Int64, known: npt.NDArray[np.bool_]) -> "pd.arrays.IntegerArray":
    return pd.arrays.IntegerArray(values.copy(), ~known)


def _words(words: tuple[str, ...], codes: npt.NDArray[np.int8]) -> npt.NDArray[np.object_]:
    return np.array(words, object)[codes]


def _sums(group: Int64, amounts: Int64, n: int) -> Int64:
    found = np.zeros(n, np.int64)
    np.add.at(found, group, amounts)
    return found
