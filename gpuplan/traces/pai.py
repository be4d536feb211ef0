"""Jobs of Alibaba's PAI clusters (2020): the table of tasks, joined with the table of jobs where it is given.

The published files (``pai_task_table.csv``, ``pai_job_table.csv``) have no header; their columns are those of the
description (`alibaba/clusterdata`, cluster-trace-gpu-v2020, README). Only tasks say how many GPUs they ask for
(``inst_num`` x ``plan_gpu`` / 100); only jobs say when they were submitted (``start_time`` of the job) and by whom.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.history import History
from gpuplan.traces.jobs_table import history_of, settled
from gpuplan.traces.plain_text import Progress, read_text
from gpuplan.traces.published_tables import HEADERS, header_of
from gpuplan.traces.sheet import Sheet, Strings, sheet_of

TASKS, JOBS = "pai_task_table", "pai_job_table"


def read_pai(
    tasks: str | Path,
    jobs: str | Path | None = None,
    *,
    strict: bool = True,
    progress: Progress | None = None,
    most_bytes: int | None = None,
) -> History:
    """Read tasks of PAI; a row of the history is a task, its `parent` the job.

    Parameters
    ----------
    tasks
        ``pai_task_table.csv``, with or without a header, plain or gzip.
    jobs
        ``pai_job_table.csv``; without it neither submissions nor users are known.
    strict, progress, most_bytes
        As in `gpuplan.traces.jobs_table.read_jobs`.

    Raises
    ------
    InputError
        If a file cannot be read or is another table; for every cell that cannot be read, where `strict`.
    """
    sheet = _read(tasks, TASKS, progress, most_bytes)
    if jobs is not None:
        sheet = _joined(sheet, _read(jobs, JOBS, progress, most_bytes))
    return history_of(sheet, settled(sheet, None), zone=None, as_of_s=None, strict=strict)


def _read(path: str | Path, kind: str, progress: Progress | None, most_bytes: int | None) -> Sheet:
    text = read_text(path, progress=progress, most_bytes=most_bytes)
    sheet = sheet_of(text, header_of(kind, text.text))
    missing = [name for name in HEADERS[kind] if name not in sheet.names]
    if missing:
        rule = "is a column that the file must have"
        raise InputError(sheet.source, [Mistake(name, rule) for name in missing])
    return sheet


def _joined(tasks: Sheet, jobs: Sheet) -> Sheet:
    """The tasks with ``submit_time`` and ``user`` of their jobs; the first row of a job counts."""
    place: dict[str, int] = {}
    for row, name in enumerate(jobs.column("job_name").tolist()):
        place.setdefault(name, row)
    rows = np.array([place.get(name, -1) for name in tasks.column("job_name").tolist()], np.int64)
    found = [_taken(jobs.column(name), rows) for name in ("start_time", "user")]
    unknown = int((rows < 0).sum())
    notes = (*tasks.notes, f"Submissions and users are those of {jobs.source}.")
    if unknown:
        notes = (
            *notes,
            f"Tasks whose job is not in {jobs.source}: {unknown:,}; their submission is unknown.",
        )
    if len(place) < len(jobs):
        notes = (
            *notes,
            f"Rows of {jobs.source} for a job that has one already: {len(jobs) - len(place):,}, not used.",
        )
    if jobs.ragged:
        notes = (
            *notes,
            f"Lines of {jobs.source} with too few or many cells: {len(jobs.ragged):,}, not used.",
        )
    names = (*tasks.names, "submit_time", "user")
    return replace(tasks, names=names, cells=(*tasks.cells, *found), notes=notes)


def _taken(cells: Strings, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Strings:
    found = np.where(rows >= 0, cells[np.maximum(rows, 0)], "")
    found.flags.writeable = False
    return found
