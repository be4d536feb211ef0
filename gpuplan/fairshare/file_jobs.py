"""Rows of jobs in a scenario file, as columns and back."""

from typing import Any

from gpuplan.fairshare.file_models import JobFile
from gpuplan.fairshare.job_limits import USUAL_MINIMUM_S
from gpuplan.fairshare.jobs import Jobs, jobs
from gpuplan.fairshare.model import NEVER
from gpuplan.fairshare.team_names import TeamNames
from gpuplan.inputs.errors import InputError, Mistake


def jobs_of_rows(rows: tuple[JobFile, ...], teams: TeamNames) -> tuple[Jobs, tuple[str, ...]]:
    """The jobs of checked rows, and sentences about what was decided."""
    limit = [NEVER if row.limit_s is None else row.limit_s for row in rows]
    usual = [min(most, USUAL_MINIMUM_S) for most in limit]
    declared = [row.min_runtime_s for row in rows]
    over = sum(row.run_s > most for row, most in zip(rows, limit, strict=True))
    missing = sum(minimum is None for minimum in declared)
    notes = []
    if over:
        notes.append(f"{over:,} of {len(rows):,} jobs ended at their limit (the run time is longer).")
    if missing:
        notes.append(f"{missing:,} of {len(rows):,} jobs without a minimum run time: min(limit, 1 h).")
    made = jobs(
        [row.job for row in rows],
        [row.submit_s for row in rows],
        [row.gpus for row in rows],
        [row.run_s for row in rows],
        team=[teams.accepted[row.team or teams.only or ""] for row in rows],
        limit_s=limit,
        minimum_s=[
            most if minimum is None else minimum for minimum, most in zip(declared, usual, strict=True)
        ],
        resumable=[row.resumable for row in rows],
        priority=[row.priority for row in rows],
        gpu=[row.gpu for row in rows],
        one_node=[row.one_node for row in rows],
    )
    return made, tuple(notes)


def rows_of_jobs(made: Jobs) -> list[dict[str, Any]]:
    """The jobs as rows of a file, in order, values that equal their default left out.

    Raises
    ------
    InputError
        For jobs with habits applied (idle time, opted out), for which a file has no columns.
    """
    if made.idle_s.any() or made.opted_out.any():
        rule = "must not have habits applied (idle_s, opted_out) to be written: a file has behaviour instead"
        raise InputError("scenario", [Mistake("jobs", rule)])
    rows = []
    for k in range(len(made)):
        limit, minimum = int(made.limit_s[k]), int(made.minimum_s[k])
        row: dict[str, Any] = {"job": made.name[k], "team": made.team[k], "submit_s": int(made.submit_s[k])}
        row |= {"gpus": int(made.gpus[k]), "run_s": int(made.run_s[k])}
        if limit < NEVER:
            row["limit_s"] = limit
        row["min_runtime_s"] = minimum
        if not made.resumable[k]:
            row["resumable"] = False
        if made.priority[k]:
            row["priority"] = int(made.priority[k])
        if made.gpu[k]:
            row["gpu"] = made.gpu[k]
        if made.one_node[k]:
            row["one_node"] = True
        rows.append(row)
    return rows
