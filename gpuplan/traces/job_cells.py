"""The cells of a table of jobs as numbers, moments and texts, and every cell that cannot be read."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.fairshare.job_limits import MOST_JOB_GPUS, MOST_PRIORITY
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.grid import FIRST_S, LAST_S
from gpuplan.traces.history import NO_LIMIT, UNKNOWN
from gpuplan.traces.job_columns import FIELDS
from gpuplan.traces.job_mapping import JobMapping
from gpuplan.traces.job_states import state_of
from gpuplan.traces.published_tables import known_table
from gpuplan.traces.sheet import Bools, Int64, Sheet, Strings
from gpuplan.traces.sheet_counted import MOST_S, Counted, counted_moments
from gpuplan.traces.sheet_durations import durations_of
from gpuplan.traces.sheet_numbers import NOTHING, marks_of, numbers_of
from gpuplan.traces.sheet_times import NO_TIME, Moments, moments_of, order_of

Floats = npt.NDArray[np.float64]

#: Mistakes of one rule in one column that are named; the rest are counted.
NAMED = 1_000

#: What became of parts of GPUs.
PARTS = "parts of GPUs rounded up to whole GPUs"

#: Words for a limit that is none.
_ENDLESS = frozenset(("unlimited", "infinite", "infinity", "inf", "never", "no limit"))

_MOMENTS = tuple(name for name, (kind, _) in FIELDS.items() if kind == "moment")
_DURATIONS = ("elapsed", "wait", "limit")
_COUNTS = tuple(name for name, (kind, _) in FIELDS.items() if kind == "count")


class JobCells:
    """The cells of a table by field.

    Attributes
    ----------
    sheet, mapping
    wrong : bool[R]
        Rows with a cell that cannot be read.
    mistakes
        Each of them, with line, column and text.
    changed
        What was made of cells that are not taken as they are, and how many.
    notes
        How the table was read, as sentences.
    """

    def __init__(self, sheet: Sheet, mapping: JobMapping) -> None:
        self.sheet = sheet
        self.mapping = mapping
        self.wrong: Bools = np.zeros(len(sheet), np.bool_)
        self.mistakes: list[Mistake] = list(sheet.ragged[:NAMED])
        if len(sheet.ragged) > NAMED:
            more = len(sheet.ragged) - NAMED
            self.mistakes.append(Mistake("", f"{more:,} more lines have too few or many cells", more=more))
        self.changed: dict[str, int] = {}
        self.notes: list[str] = list(sheet.notes)
        self._rows: Bools = ~sheet.totals
        self._telling = [self._cells(name) for name in (*_COUNTS, *_DURATIONS) if self.has(name)]
        self.marks = marks_of(self._telling, sheet.separator, mapping.decimal)
        if self.marks.note:
            self.notes.append(self.marks.note)
        self.table = known_table(sheet.names) if mapping.table else None

    def __len__(self) -> int:
        return len(self.sheet)

    def has(self, name: str) -> bool:
        """Whether a column means the field."""
        return self.mapping.of(name) is not None

    def column(self, name: str) -> str:
        """Name of the column of a field; the field's own name where none has it."""
        found = self.mapping.of(name)
        return found.column if found else name

    def refuse(self, name: str, wrong: Bools, rule: str) -> None:
        """Tell a rule that cells of a field break; their rows count as wrong."""
        rows = np.flatnonzero(wrong & self._rows)
        if not len(rows):
            return
        self.wrong[rows] = True
        column = self.column(name)
        cells = self.sheet.column(column) if self.has(name) else np.full(len(self), "", object)
        lines = self.sheet.line
        self.mistakes += [
            Mistake(f"line {lines[row]}, {column}", rule, cells[row], int(lines[row]))
            for row in rows[:NAMED].tolist()
        ]
        if (more := len(rows) - NAMED) > 0:
            self.mistakes.append(Mistake(column, f"{rule}; so must {more:,} more rows", more=more))

    def note(self, what: str, rows: Bools) -> None:
        """Count rows that are not taken as they are."""
        count = int((rows & self._rows & ~self.wrong).sum())
        if count:
            self.changed[what] = self.changed.get(what, 0) + count

    def texts(self, name: str, *, words: bool = False) -> Strings:
        """The texts of a field as they are written, ``NA`` included; with `words`, words for "nothing" are nothing."""
        if not self.has(name):
            return np.full(len(self), "", object)
        cells = self._cells(name)
        return _each(cells, lambda text: "" if text.lower() in NOTHING else text) if words else cells

    def states(self) -> Strings:
        """The states, as `gpuplan.traces.history.STATES` names them where they are known."""
        if not self.has("state"):
            return np.full(len(self), "unknown", object)
        own = self.table.states if self.table else {}
        return _each(self._cells("state"), lambda text: state_of(text, own))

    def counts(self, name: str, *, most: int, least: int = 0, whole: bool = False) -> Floats:
        """Numbers of a field, float64[R]; not-a-number where a cell is empty or the field has no column."""
        if not self.has(name):
            return np.full(len(self), np.nan)
        values, _, wrong = numbers_of(self._cells(name), self.marks.decimal)
        self.refuse(name, wrong, "must be a number")
        self.refuse(name, values < least, f"must be {least:,} or more")
        self.refuse(name, values > most, f"must be at most {most:,}")
        if whole:
            self.refuse(name, (values != np.floor(values)) & ~np.isnan(values), "must be a whole number")
        return values

    def gpus(self) -> tuple[Int64, Floats]:
        """GPUs of each row, rounded up to whole ones (`UNKNOWN`: a wrong cell), and as they are written."""
        by_node = "gpus_per_node" if self.has("gpus_per_node") and not self.has("gpus") else "gpus"
        main = by_node if not self.has("gpu_percent") else "gpu_percent"
        found = self.counts(main, most=MOST_JOB_GPUS * (100 if main == "gpu_percent" else 1))
        if main == "gpu_percent":
            found = np.where(np.isnan(found), 0, found) / 100
        else:
            self.refuse(main, np.isnan(found) & ~self.wrong, "must be given")
        if main == "gpus" and self.has("gpu_milli"):
            found = found * self.counts("gpu_milli", most=1000) / 1000
        for name in ("instances", "nodes") if main != "gpus" else ("instances",):
            if self.has(name) and not (name == "nodes" and self.has("instances")):
                times = self.counts(name, most=MOST_JOB_GPUS)
                found = np.where(np.isnan(times), found, found * times)
        self.refuse(
            main, (found > MOST_JOB_GPUS) & ~self.wrong, f"must come to at most {MOST_JOB_GPUS:,} GPUs"
        )
        found = np.where(self.wrong | np.isnan(found), np.nan, found)
        whole = np.ceil(np.nan_to_num(found, nan=UNKNOWN) - 1e-9)
        self.note(PARTS, whole > found + 1e-9)
        return whole.astype(np.int64), found

    def requested(self) -> Int64:
        """GPUs asked for, rounded up to whole ones; `UNKNOWN` where it is not told."""
        return np.ceil(np.nan_to_num(self.counts("requested_gpus", most=MOST_JOB_GPUS), nan=UNKNOWN)).astype(
            np.int64
        )

    def priorities(self) -> Int64:
        """Priorities; `UNKNOWN` where none is told."""
        found = self.counts("priority", most=MOST_PRIORITY, least=-MOST_PRIORITY)
        return np.floor(np.nan_to_num(found, nan=UNKNOWN) + 0.5).astype(np.int64)

    def seconds(self, name: str) -> Int64:
        """Whole seconds of a duration; `UNKNOWN` where it is not told."""
        guess = self.mapping.of(name)
        if guess is None:
            return np.full(len(self), UNKNOWN, np.int64)
        cells = self._cells(name)
        endless = np.zeros(len(self), np.bool_)
        if name == "limit":
            endless = _each(cells, lambda text: text.lower() in _ENDLESS).astype(np.bool_)
            cells = np.where(endless, "", cells)
        if name in ("limit", "wait"):
            unsaid = (cells == "-1") | (cells == "-1.0")
            self.note(f"a {name} of -1: unknown", unsaid)
            cells = np.where(unsaid, "", cells)
        values, _, wrong = durations_of(cells, guess.unit, self.marks.decimal)
        self.refuse(name, wrong, _duration_rule(guess.unit))
        self.refuse(name, values < 0, "must not be negative")
        self.refuse(name, values > MOST_S, f"must be at most {MOST_S:,} s")
        none = np.isnan(values) | (values < 0) | (values > MOST_S)
        found = np.floor(np.where(none, UNKNOWN, values) + 0.5).astype(np.int64)
        self.note("times rounded to whole seconds", ~none & (np.abs(found - np.nan_to_num(values)) > 1e-6))
        return np.where(endless, NO_LIMIT, found)

    def moments(self) -> tuple[dict[str, Int64], str]:
        """Seconds of the columns of moments (`NO_TIME`: none) by field, and what they count from.

        ``instants``: 1970 in UTC; ``wall``: the clock on a wall, as if in UTC; ``zero``: a zero that is not told.

        Raises
        ------
        InputError
            Where columns count from different things, or the order of day and month must be asked.
        """
        read = {name: self._moments(name) for name in _MOMENTS if self.has(name)}
        dates = {name: found for name, found in read.items() if isinstance(found, Moments)}
        self._refuse_odd_dates(dates)
        ordered = order_of(dates.values(), self.mapping.date_order)
        if ordered.question:
            rule = f"{ordered.question} say date_order='day-first' or 'month-first'"
            raise InputError(self.sheet.source, [Mistake(", ".join(map(self.column, dates)), rule)])
        if ordered.note:
            self.notes.append(ordered.note)
        aware = self._awareness(dates)
        bases, seconds = {}, {}
        for name, found in read.items():
            if isinstance(found, Moments):
                seconds[name], bases[name] = self._dates(name, found, ordered.order), aware
            else:
                seconds[name] = self._counted(name, found)
                if (seconds[name] != NO_TIME).any():
                    bases[name] = "instants" if found.since_1970 else "zero"
        if len(set(bases.values())) > 1:
            told = ", ".join(f"{self.column(name)}: {_BASES[base]}" for name, base in bases.items())
            rule = f"must count from the same moment, but do not ({told})"
            raise InputError(self.sheet.source, [Mistake("times", rule)])
        return seconds, next(iter(bases.values()), "zero")

    def _cells(self, name: str) -> Strings:
        return self.sheet.column(self.column(name))

    def _moments(self, name: str) -> "Moments | Counted":
        guess = self.mapping.of(name)
        cells = self._cells(name)
        unit = guess.unit if guess else ""
        dates = moments_of(cells)
        if (not unit and not dates.wrong.all()) or (not unit and not len(cells)):
            numbers = ~numbers_of(cells[:100], self.marks.decimal)[2] & dates.wrong[:100]
            if not len(cells) or numbers.mean() < 0.5:
                return dates
        return counted_moments(cells, unit, self.marks.decimal)

    def _refuse_odd_dates(self, dates: dict[str, Moments]) -> None:
        """Dates with the year at the end, where most have it at the start, are mistakes and no question."""
        told = {name: ~(found.empty | found.wrong) & self._rows for name, found in dates.items()}
        open_ = {name: (found.mark != "") & told[name] for name, found in dates.items()}
        if 2 * sum(int(rows.sum()) for rows in open_.values()) < sum(
            int(rows.sum()) for rows in told.values()
        ):
            for name, rows in open_.items():
                self.refuse(name, rows, "must be written as most times of the file, year first")
                dates[name].wrong[rows] = True

    def _awareness(self, dates: dict[str, Moments]) -> str:
        """``instants`` where most dates name their zone, else ``wall``; the others are mistakes."""
        known = {name: ~(found.empty | found.wrong) & self._rows for name, found in dates.items()}
        rows = sum(int(fine.sum()) for fine in known.values())
        aware = 2 * sum(int((dates[name].aware & fine).sum()) for name, fine in known.items()) > rows
        for name, fine in known.items():
            rule = f"must have {'a' if aware else 'no'} time zone, as most times of the file"
            self.refuse(name, fine & (dates[name].aware != aware), rule)
        return "instants" if aware else "wall"

    def _dates(self, name: str, found: Moments, order: Any) -> Int64:
        seconds, impossible = found.seconds(order)
        self.refuse(name, found.wrong & (found.mark == ""), "must be a time such as 2026-05-04 13:00:00")
        self.refuse(
            name,
            impossible,
            "must be a date that exists" + (f" ({order.replace('-', ' ')})" if order else ""),
        )
        told = seconds != NO_TIME
        unsaid = told & (np.abs(seconds) < FIRST_S)
        self.note(f"{self.column(name)} in 1970: unknown", unsaid)
        seconds = np.where(unsaid, NO_TIME, seconds)
        self.refuse(
            name,
            told & ~unsaid & ((seconds < FIRST_S) | (seconds >= LAST_S)),
            "must be between 1971 and 2199",
        )
        self.note("times rounded to whole seconds", found.rounded)
        return np.where(self.wrong, NO_TIME, seconds)

    def _counted(self, name: str, found: Counted) -> Int64:
        self.refuse(name, found.wrong, f"must be a moment in {found.unit}, or nothing")
        early = (found.seconds < 0) & (found.seconds != NO_TIME) & ~np.bool_(found.since_1970)
        self.refuse(name, early, "must not be negative")
        self.note(f"{self.column(name)} of -1 or 0: unknown", found.unsaid)
        self.note("times rounded to whole seconds", found.rounded)
        return np.where(early, NO_TIME, found.seconds)


_BASES = {
    "instants": "instants",
    "wall": "the clock on a wall",
    "zero": "seconds after a zero that is not told",
}


def _duration_rule(unit: str) -> str:
    if unit == "batch":
        return "must be a limit such as 90, 90:00, 1:30:00 or 1-12"
    return f"must be a number of {unit or 's'}, or a time such as 90min or 1:30:00"


def _each(cells: Strings, change: Any) -> Strings:
    """What `change` makes of each text."""
    import pandas as pd

    if not len(cells):
        return cells
    codes, texts = pd.factorize(cells)
    made = np.empty(len(texts), object)
    made[:] = [change(text) for text in texts.tolist()]
    found: Strings = made[codes]
    return found
