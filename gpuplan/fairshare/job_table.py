"""Jobs from a CSV file: read strictly, every mistake with its line, column and value, an account that adds up.

Columns ``job, team, submit_s, gpus, run_s, limit_s, min_runtime_s, resumable, priority, gpu`` and ``one_node``, in any
order; those after ``run_s`` may be absent (`gpuplan.fairshare.job_limits` has the defaults), ``team`` where there is
one team. A file is as large as memory allows: a million rows take seconds.
"""

import csv
import gzip
import stat
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

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
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, shorten, unknown_key

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.fairshare.job_columns import Broken, Columns

SUFFIXES = (".csv", ".csv.gz")

LONGEST_NAME = 200

#: Unknown teams for which a near name is looked for.
_SUGGESTIONS = 40

#: Lines that are named where many break one rule.
_NAMED = 10


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
    names = _header(path)
    frame = _frame(path, names)
    from gpuplan.fairshare.job_columns import Columns

    columns = Columns(frame)
    made, account = _jobs(columns, tree, Path(path).name)
    if columns.broken:
        raise InputError(str(path), _located(path, columns))
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


def _open(path: str | Path) -> IO[str]:
    if str(path).endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _header(path: str | Path) -> list[str]:
    """Names of the columns, each of them known, none missing."""
    source = str(path)
    if not source.endswith(SUFFIXES):
        raise InputError(source, [Mistake("", "must be a CSV file, .csv or .csv.gz")])
    with _sentences(source):
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise InputError(source, [Mistake("", "must be a file, not a folder or a device")])
        with _open(path) as file:
            first = file.readline(100_000)
        names = [name.strip() for name in next(csv.reader([first]), [])]
    if len(names) == 1 and set(first) & set(";\t"):
        raise InputError(
            source, [Mistake("", "must be separated by commas, not by semicolons or tabs", line=1)]
        )
    mistakes = [
        Mistake(f"line 1, {shorten(name)}" if name else "line 1", _unknown_column(name, names), line=1)
        for name in names
        if name not in COLUMNS
    ]
    mistakes += [
        Mistake(f"line 1, {name}", "is a column that the file must have" + did_you_mean(name, names), line=1)
        for name in REQUIRED
        if name not in names
    ]
    mistakes += [
        Mistake(f"line 1, {name}", "is a column that must stand once", line=1)
        for name in COLUMNS
        if names.count(name) > 1
    ]
    if mistakes:
        raise InputError(source, mistakes)
    return names


def _unknown_column(name: str, names: list[str]) -> str:
    if not name:
        return "must have a name for every column, but one is empty"
    return unknown_key(name, [known for known in COLUMNS if known not in names]).replace("key", "column", 1)


def _frame(path: str | Path, names: list[str]) -> "pd.DataFrame":
    """The cells: numbers where a whole column holds nothing else, otherwise text."""
    import pandas as pd

    source = str(path)
    text = {"job", "team", "resumable", "gpu", "one_node"}
    with _sentences(source), warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a row longer than the header is a fault
        frame = pd.read_csv(
            path,
            header=0,
            names=names,
            dtype={name: object for name in names if name in text},
            keep_default_na=False,
            na_values={name: [""] for name in names if name not in text},
            index_col=False,
            low_memory=False,
            encoding="utf-8-sig",
            compression="gzip" if source.endswith(".gz") else None,
        )
    _refuse_short_rows(path, len(names), len(frame))
    return frame


def _refuse_short_rows(path: str | Path, cells: int, rows: int) -> None:
    """Raise where a row ends too early: to pandas, absent cells look like empty ones.

    Commas are counted first; only where they do not tell are the rows walked through.
    """
    source = str(path)
    commas = quotes = 0
    with gzip.open(path) if source.endswith(".gz") else open(path, "rb") as file:
        while block := file.read(1 << 22):
            commas += block.count(b",")
            quotes += block.count(b'"')
    if not quotes and commas == (rows + 1) * (cells - 1):
        return
    with _sentences(source), _open(path) as text:
        lines = [line for line, record in _records(text) if len(record) < cells]
    if lines:
        rule = f"must have {cells} cells, as the header has"
        found = [Mistake(f"line {line}", rule, line=line) for line in lines[:_NAMED]]
        more = len(lines) - len(found)
        rest = [Mistake("", f"{more:,} more lines are too short")] if more else []
        raise InputError(source, [*found, *rest])


class _sentences:  # used as a with-statement reads
    """Turns what goes wrong while a file is read into a sentence."""

    def __init__(self, source: str) -> None:
        self.source = source

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        rule = ""
        if isinstance(error, InputError):
            return
        if isinstance(error, FileNotFoundError):
            rule = "there is no such file"
        elif isinstance(error, (EOFError, zlib.error)):
            rule = "cannot be read: the gzip data is damaged or cut off"
        elif isinstance(error, OSError):
            rule = f"cannot be read: {error.strerror or shorten(str(error), 120)}"
        elif isinstance(error, UnicodeDecodeError):
            rule = "must be UTF-8 text"
        elif isinstance(error, (ValueError, Warning, csv.Error)):  # pandas' own: ragged rows, unclosed quotes
            rule = f"must be a CSV file with a header row: {shorten(' '.join(str(error).split()), 120)}"
        if rule:
            raise InputError(self.source, [Mistake("", rule)]) from None


def _lines(path: str | Path, rows: list[int]) -> list[int]:
    """Line of the file of each of some rows (from 0, ascending): records may span lines, and empty lines are none."""
    found = []
    wanted = iter(sorted(rows))
    row = next(wanted, None)
    with _sentences(str(path)), _open(path) as file:
        for count, (line, _) in enumerate(islice(_records(file), 1, None)):
            while row == count:
                found.append(line)
                row = next(wanted, None)
            if row is None:
                break
    return found + [0] * (len(rows) - len(found))


def _records(file: IO[str]) -> Iterator[tuple[int, list[str]]]:
    """The line on which each record starts, from 1, and its cells; the header is the first."""
    reader = csv.reader(file)
    before = 0
    for record in reader:
        if record and (len(record) > 1 or record[0].strip()):
            yield before + 1, record
        before = reader.line_num


def _located(path: str | Path, columns: "Columns") -> list[Mistake]:
    """The mistakes of a table with their lines, by line."""
    broken = list(columns.in_order())
    rows = sorted({row for part in broken for row in part.rows})
    line = dict(zip(rows, _lines(path, rows), strict=True))
    return [_mistake(part, [line[row] for row in part.rows]) for part in broken]


def _mistake(part: "Broken", lines: list[int]) -> Mistake:
    where = f"line {lines[0]}, {part.column}"
    rule = part.rule
    if part.count > 1:
        more = part.count - len(lines)
        others = [f"{line}" for line in lines] + ([f"{more:,} more"] if more else [])
        rule += f" (lines {', '.join(others[:-1])} and {others[-1]})"
    return Mistake(where, rule, part.value, lines[0])
