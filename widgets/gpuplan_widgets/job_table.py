"""A table of batch jobs that a person edits: values, order, new jobs, deleted jobs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import anywidget
import traitlets as t

from gpuplan.allocation.model import BATCH_KINDS, BatchJob
from gpuplan_widgets.build_bundle import STATIC

#: Fields of a job that the table edits.
FIELDS = ("name", "kind", "gpus", "hours", "priority")

#: Most rows that the page shows; further jobs stay as they are.
MOST_ROWS = 300

#: Stands behind the number in the hours cell of a job with a range of GPUs.
GPU_HOURS = "GPU-h"

_RANGE = re.compile(r"\s*([0-9]{1,9})\s*[-–]\s*([0-9]{1,9})\s*", re.ASCII)

_NEW = {"kind": "training", "gpus": 1, "hours": 1, "priority": 1}


class JobTable(anywidget.AnyWidget):
    """An editable table of batch jobs, in the form that scenario files give them.

    Parameters
    ----------
    jobs
        Mappings with `name`, `kind`, `gpus`, `hours` (`gpu_hours` where `gpus` is a range), `priority`; further
        keys are kept with their job.

    Notes
    -----
    The rows live here; the page sends what the person did (``edit``, ``add``, ``delete``, ``move``).
    Cells hold what was typed, right or wrong; `mistakes` says beside a cell what is wrong with it. A range of GPUs
    is written ``2-8``; the hours cell of its row then holds the work, ``40 GPU-h``.
    `edits` counts changes by the person and is what to observe.
    """

    _esm = (STATIC / "job_table.js").read_text(encoding="utf-8")
    _css = (STATIC / "live_chart.css").read_text(encoding="utf-8") + (STATIC / "job_table.css").read_text(
        encoding="utf-8"
    )

    rows = t.List(t.Dict()).tag(sync=True)
    mistakes = t.List(t.Dict()).tag(sync=True)
    kinds = t.List(trait=t.Unicode(), default_value=list[Any](BATCH_KINDS)).tag(sync=True)
    seen = t.Int(0).tag(sync=True)
    hidden = t.Int(0).tag(sync=True)
    edits = t.Int(0)

    def __init__(self, jobs: Iterable[Mapping[str, Any]] = ()) -> None:
        self._extras: dict[int, dict[str, Any]] = {}
        self._next_id = 0
        self._taken: frozenset[str] = frozenset()
        self._rest: list[dict[str, Any]] = []
        super().__init__()
        self.show(list(jobs))
        self.on_msg(self._heard)

    @property
    def jobs(self) -> list[dict[str, Any]]:
        """The jobs as a scenario file gives them; numbers where a cell holds one, else what was typed."""
        return [
            {
                "name": row["name"],
                "kind": row["kind"],
                "priority": _number(row["priority"]),
                **_work(row["gpus"], row["hours"], self._extras[row["id"]]),
            }
            for row in self.rows
        ] + [dict(job) for job in self._rest]

    def show(self, jobs: Sequence[Mapping[str, Any]], taken: Iterable[str] = ()) -> None:
        """Show other jobs; rows that stay in their place keep their identity (and the focus).

        Parameters
        ----------
        jobs
            Mappings as for the constructor.
        taken
            Names that a new job must not get (those of the real-time apps).
        """
        self._taken = frozenset(taken)
        self._rest = [dict(job) for job in jobs[MOST_ROWS:]]
        ids = [row["id"] for row in self.rows]
        rows = [
            self._row(job, ids[place] if place < len(ids) else None)
            for place, job in enumerate(jobs[:MOST_ROWS])
        ]
        with self.hold_sync():
            if rows != self.rows:
                self.rows = rows
            self.hidden = len(self._rest)
            self.show_mistakes([])
        self._forget()

    def show_mistakes(self, mistakes: Sequence[tuple[int, str, str]]) -> None:
        """Say beside cells what is wrong with them.

        Parameters
        ----------
        mistakes
            Place of the row, field (empty or unknown: the row as a whole) and a sentence.
        """
        rows = self.rows
        by_cell: dict[tuple[int, str], str] = {}
        for place, field, text in mistakes:
            if 0 <= place < len(rows):
                key = (rows[place]["id"], field if field in FIELDS else "")
                by_cell[key] = f"{by_cell[key]}; {text}" if key in by_cell else text
        told = [{"id": row_id, "field": field, "text": text} for (row_id, field), text in by_cell.items()]
        if told != self.mistakes:
            self.mistakes = told

    def edit(self, row_id: int, field: str, value: str) -> None:
        """Change one cell to what was typed."""
        if field in FIELDS:
            self.rows = [
                self._edited(row, field, str(value)) if row["id"] == row_id else row for row in self.rows
            ]
            self.edits += 1

    def _edited(self, row: dict[str, Any], field: str, value: str) -> dict[str, Any]:
        """The row with another cell; where GPUs become a range or a number, the work stays and is said anew."""
        changed = {**row, field: value}
        if field == "gpus":
            changed["hours"] = _same_work(row, value, self._extras[row["id"]].get("scaling", 1.0))
        return changed

    def add(self) -> None:
        """Add a job of one GPU and one hour at the end."""
        names = {job["name"] for job in self.jobs} | self._taken
        number = next(n for n in range(1, len(names) + 2) if f"new-job-{n}" not in names)
        self.rows = [*self.rows, self._row({"name": f"new-job-{number}", **_NEW})]
        self.edits += 1

    def delete(self, row_id: int) -> None:
        """Delete a job."""
        self.rows = [row for row in self.rows if row["id"] != row_id]
        self._forget()
        self.edits += 1

    def move(self, row_id: int, by: int) -> None:
        """Move a job by so many places in the order of arrival, as far as there are places."""
        rows = list(self.rows)
        place = next((i for i, row in enumerate(rows) if row["id"] == row_id), None)
        if place is None:
            return
        row = rows.pop(place)
        rows.insert(min(max(0, place + by), len(rows)), row)
        self.rows = rows
        self.edits += 1

    def __repr__(self) -> str:
        return f"JobTable({len(self.rows)} jobs)"

    def _row(self, job: Mapping[str, Any], row_id: int | None = None) -> dict[str, Any]:
        if row_id is None:
            row_id, self._next_id = self._next_id, self._next_id + 1
        self._extras[row_id] = {key: value for key, value in job.items() if key not in (*FIELDS, "gpu_hours")}
        cells = {"name": _text(job["name"]), "kind": _text(job["kind"]), **_work_cells(job)}
        return {"id": row_id, **cells, "priority": _text(job["priority"]), "note": _note(job)}

    def _forget(self) -> None:
        """Drop what belongs to rows that are gone."""
        kept = {row["id"] for row in self.rows}
        self._extras = {row_id: extra for row_id, extra in self._extras.items() if row_id in kept}

    def _heard(self, _widget: Any, content: Mapping[str, Any], _buffers: Any) -> None:
        """Do what the page says the person did; the answer carries the number of the message."""
        kind = content.get("type")
        with self.hold_sync():
            if isinstance(content.get("seq"), int):
                self.seen = content["seq"]
            if kind == "edit":
                self.edit(content["id"], content["field"], content["value"])
            elif kind == "add":
                self.add()
            elif kind == "delete":
                self.delete(content["id"])
            elif kind == "move":
                self.move(content["id"], int(content["by"]))


def _text(value: Any) -> str:
    """The text of a cell: whole numbers without a point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _work_cells(job: Mapping[str, Any]) -> dict[str, str]:
    """The cells of GPUs and hours."""
    gpus = job["gpus"]
    if not isinstance(gpus, Mapping):
        return {"gpus": _text(gpus), "hours": _text(job["hours"])}
    cell = f"{_text(gpus['min'])}-{_text(gpus['max'])}"
    return {"gpus": cell, "hours": f"{_text(job['gpu_hours'])} {GPU_HOURS}"}


def _work(gpus: str, hours: str, extras: Mapping[str, Any]) -> dict[str, Any]:
    """What the cells of GPUs and hours mean in a scenario file, with the other keys of the job."""
    found = _RANGE.fullmatch(gpus)
    if found is None:
        rest = {key: value for key, value in extras.items() if key != "scaling"}
        return {"gpus": _number(gpus), "hours": _number(hours), **rest}
    work = _number(hours.strip().removesuffix(GPU_HOURS))
    return {"gpus": {"min": int(found[1]), "max": int(found[2])}, "gpu_hours": work, **extras}


def _same_work(row: Mapping[str, Any], gpus: str, scaling: float) -> str:
    """The hours cell of a row whose GPUs change to ``gpus``: the same work, in the words of the new form."""
    was, now = _RANGE.fullmatch(row["gpus"]), _RANGE.fullmatch(gpus)
    cell = str(row["hours"])
    amount = _number(cell.strip().removesuffix(GPU_HOURS))
    before = _number(was[1] if was else row["gpus"])
    size = _number(now[1] if now else gpus)
    if (was is None) == (now is None) or isinstance(amount, str):
        return cell
    if not isinstance(before, int) or not isinstance(size, int) or not before or not size:
        return cell
    if now is not None:
        return f"{_text(round(amount * before, 6))} {GPU_HOURS}"
    job = BatchJob("", "training", before, amount / before, 1.0, max_gpus=before, scaling=scaling)
    return _text(round(job.hours_on(size), 6))


def _number(text: str) -> int | float | str:
    """A cell's number; what is no plain number stays text, for the scenario's own reading to judge."""
    stripped = text.strip()
    if stripped.isascii() and stripped.replace(".", "", 1).isdigit():
        return float(stripped) if "." in stripped else int(stripped)
    return text


def _note(job: Mapping[str, Any]) -> str:
    """What else the scenario says about a job, in words."""
    parts = []
    if job.get("scaling") not in (None, 1):
        parts.append(f"scaling {_text(job['scaling'])}")
    if job.get("running_on") is not None:
        parts.append(f"runs from GPU {job['running_on']} on")
    if job.get("earliest_hour"):
        parts.append(f"from hour {_text(job['earliest_hour'])}")
    if job.get("deadline_hour") is not None:
        parts.append(f"due by hour {_text(job['deadline_hour'])}")
    return ", ".join(parts)
