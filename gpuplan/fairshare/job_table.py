"""Jobs from a CSV file: read strictly, every mistake with its line, column and value, an account that adds up.

Columns ``job, team, submit_s, gpus, run_s, limit_s, min_runtime_s, resumable, priority, gpu`` and ``one_node``, in any
order; those after ``run_s`` may be absent (`gpuplan.fairshare.job_limits` has the defaults), ``team`` where there is
one team. A file is as large as memory allows: a million rows take seconds.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuplan.fairshare.job_limits import (
    COLUMNS,
    DEFAULTS,
    MOST_GPU_SECONDS,
    MOST_JOB_GPUS,
    MOST_PRIORITY,
    MOST_S,
    REQUIRED,
    ROUNDING,
    USUAL_MINIMUM_S,
    gpu_rule,
)
from gpuplan.fairshare.jobs import Jobs
from gpuplan.fairshare.jobs import jobs as jobs_of
from gpuplan.fairshare.model import NEVER, Floats
from gpuplan.fairshare.team_names import TeamNames
from gpuplan.fairshare.tree import Tree
from gpuplan.inputs.account import Account
from gpuplan.inputs.csv_table import Shape, raise_mistakes, read_columns

if TYPE_CHECKING:
    from gpuplan.inputs.columns import Columns

SHAPE = Shape(COLUMNS, REQUIRED, frozenset({"job", "team", "resumable", "gpu", "one_node"}))

LONGEST_NAME = 200

#: Unknown teams for which a near name is looked for.
_SUGGESTIONS = 40


@dataclass(frozen=True, slots=True)
class JobTable:
    """The jobs of a file, and the account of every row of it."""

    jobs: Jobs
    account: Account


def read_jobs(path: str | Path, tree: Tree | None = None) -> JobTable:
    """Read a table of jobs.

    Times are rounded to whole seconds, half a second up. A run beyond its limit is ended at the limit and counted in
    the account. Jobs larger than any cluster are jobs: a policy sets them aside with its reason.

    Parameters
    ----------
    path
        A UTF-8 file with a header row, ``.csv`` or ``.csv.gz``.
    tree
        The budget tree: every team must be a leaf of it (its path, or its own name where that is unique). None: teams
        are taken as they are written.

    Raises
    ------
    InputError
        With every mistake: its line, its column, its value. A mistake of many rows is told once, with the first lines.
    """
    columns = read_columns(path, SHAPE)
    made, account = _jobs(columns, tree, Path(path).name)
    raise_mistakes(path, columns)
    return JobTable(made, account)


def _jobs(columns: "Columns", tree: Tree | None, source: str) -> tuple[Jobs, Account]:
    """The jobs of the columns; what is wrong is told in `columns`, and then the jobs are worth nothing."""
    name = columns.names("job", LONGEST_NAME)
    team = _teams(columns, tree)
    submit = columns.times("submit_s", MOST_S)
    gpus = columns.whole("gpus", 1, MOST_JOB_GPUS)
    run = columns.times("run_s", MOST_S)
    limit = columns.times("limit_s", MOST_S, unknown=True, optional=True)
    declared = columns.times("min_runtime_s", MOST_S, optional=True)
    resumable = columns.flags("resumable", True)
    priority = columns.whole("priority", -MOST_PRIORITY, MOST_PRIORITY, 0)
    gpu = columns.mapped("gpu", _gpu, "", object)
    one_node = columns.flags("one_node", False)
    fractions = np.zeros(len(columns), np.bool_)
    for times in (submit, run, limit, declared):
        fractions |= ~np.isnan(times) & (times != np.floor(times))
    run, limit = _rounded(run), _rounded(limit)
    columns.tell(
        "limit_s", "must be more than 0 for work that runs (empty: no limit)", (limit == 0) & (run > 0), limit
    )
    if float((gpus * np.nan_to_num(run)).sum()) > MOST_GPU_SECONDS:
        rule = f"must not add up to more than {MOST_GPU_SECONDS:,} GPU-seconds"
        columns.tell("run_s", rule, np.arange(len(columns)) == 0, np.full(len(columns), MOST_S))
    if columns.broken:
        return jobs_of([], [], [], []), Account(source, "jobs", 0, 0)
    over = ~np.isnan(limit) & (run > limit)
    cut_hours = float((gpus * (run - limit))[over].sum() / 3600)
    limits = np.where(np.isnan(limit), NEVER, limit).astype(np.int64)
    usual = np.minimum(limits, USUAL_MINIMUM_S)
    minimum = np.where(np.isnan(declared), usual, _rounded(declared)).astype(np.int64)
    counts = {
        "ended at their limit (the run time is longer)": int(over.sum()),
        "without a limit": int(np.isnan(limit).sum()),
        "without a minimum run time: min(limit, 1 h)": int(np.isnan(declared).sum()),
        "times rounded to whole seconds": int(fractions.sum()),
    }
    made = jobs_of(
        name,  # type: ignore[arg-type]  # arrays are sequences
        _rounded(submit).astype(np.int64),  # type: ignore[arg-type]
        gpus,  # type: ignore[arg-type]
        run.astype(np.int64),  # type: ignore[arg-type]
        team=team,
        limit_s=limits,  # type: ignore[arg-type]
        minimum_s=minimum,  # type: ignore[arg-type]
        resumable=resumable,  # type: ignore[arg-type]
        priority=priority,  # type: ignore[arg-type]
        gpu=gpu,
        one_node=one_node,  # type: ignore[arg-type]
    )
    return made, _account(made, source, counts, cut_hours, columns.frame.columns)


def _account(made: Jobs, source: str, counts: dict[str, int], cut_hours: float, given: Any) -> Account:
    """The account of a table that has no mistakes: every row is used."""
    amounts = [("wanted: GPUs x run time", float(made.gpu_seconds.sum() / 3600), "GPU-hours")]
    if cut_hours:
        amounts.append(("cut off at limits", cut_hours, "GPU-hours"))
    rules = tuple(rule for column, rule in DEFAULTS.items() if column not in given or column.endswith("_s"))
    changed = tuple((what, count) for what, count in counts.items() if count)
    return Account(
        source, "jobs", len(made), len(made), (), changed, tuple(amounts), (*rules, ROUNDING), "workload"
    )


def _teams(columns: "Columns", tree: Tree | None) -> Any:
    """Path of the leaf of each job, object[J]."""
    teams = None if tree is None else TeamNames(tree)
    only = "everyone" if teams is None else teams.only
    unknown = 0

    def read(text: str) -> str:
        nonlocal unknown
        if not text and only is not None:
            return only
        if teams is None:
            return text
        rule = teams.rule(text, suggest=unknown < _SUGGESTIONS)
        if rule:
            unknown += 1
            raise ValueError(rule)
        return teams.accepted[text]

    if "team" not in columns.frame and only is None:
        rule = "is a column that the file must have: the budget tree has several teams"
        columns.tell_rows("team", rule, np.ones(1))
    return columns.mapped("team", read, only or "", object)


def _gpu(text: str) -> str:
    rule = gpu_rule(text) or ("" if text.isprintable() else "must not hold control characters")
    if rule:
        raise ValueError(rule)
    return text


def _rounded(seconds: Floats) -> Floats:
    """Whole seconds, half a second up; what is not known stays so."""
    return np.floor(seconds + 0.5)
