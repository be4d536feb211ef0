"""The two columns of a table of traffic, in whatever form a spreadsheet or a dashboard exported them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean
from gpuplan.traces.grid import number
from gpuplan.traces.sheet import Int64, Sheet, Strings, listed, read_sheet
from gpuplan.traces.sheet_numbers import Mark, marks_of, number_of
from gpuplan.traces.sheet_times import NO_TIME, Order, moments_of, order_of

#: What stands for "no value" in exports.
NOTHING = frozenset({"", "-", "na", "n/a", "nan", "null", "none"})


@dataclass(slots=True)
class HourlyTable:
    """The rows of a table of traffic.

    Attributes
    ----------
    time, value
        Names of the two columns.
    lines : int64[R]
        Line of each row.
    texts
        Times as text, dates in ISO form.
    values
        Not-a-number: no value; None: no number.
    cells
        Values as they are written.
    apart
        Why a row is none (a blank line, a line of totals); empty: it is one.
    notes
        How the table was read, as sentences.
    mistakes
        What cannot be read.
    """

    time: str
    value: str
    lines: Int64
    texts: list[str]
    values: list[float | None]
    cells: list[str]
    apart: list[str]
    notes: list[str]
    mistakes: list[Mistake]


def read_hourly_table(
    path: str | Path,
    time: str | None,
    value: str | None,
    *,
    dates: bool,
    date_order: Order = "",
    decimal: Mark | None = None,
) -> HourlyTable:
    """Read the two columns.

    Parameters
    ----------
    path
        A table with a header row; see `gpuplan.traces.sheet`.
    time, value
        Names of the columns; where one is left out, the file must have no third.
    dates
        Whether times may be dates (else they are numbers).
    date_order, decimal
        As in `gpuplan.traces.hourly.read_hourly`.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column, or the order of day and month must be asked.
    """
    sheet = read_sheet(path)
    time, value = _columns(sheet, time, value)
    notes = list(sheet.notes)
    texts = sheet.column(time)
    times = _in_iso(texts, date_order, sheet.source, notes) if dates else texts.tolist()
    cells = sheet.column(value)
    marks = marks_of([cells], sheet.separator, decimal)
    if marks.note:
        notes.append(marks.note)
    lines = np.concatenate([sheet.line, sheet.blank])
    blank = len(sheet.blank)
    apart = ["a line of totals" if total else "" for total in sheet.totals.tolist()] + [
        "a blank line"
    ] * blank
    order = np.argsort(lines, kind="stable").tolist()
    columns = (
        [*times, *[""] * blank],
        [*(_value(cell, marks.decimal) for cell in cells.tolist()), *[np.nan] * blank],
        [*cells.tolist(), *[""] * blank],
        apart,
    )
    texts_, values, written, apart = ([column[k] for k in order] for column in columns)
    return HourlyTable(
        time,
        value,
        lines[order],
        texts_,
        values,
        written,
        apart,
        notes,
        list(sheet.ragged),
    )


def _columns(sheet: Sheet, time: str | None, value: str | None) -> tuple[str, str]:
    """The two columns; where one is not named, the file must have no third."""
    given = [name for name in (time, value) if name is not None]
    missing = [
        Mistake(name, "is a column that the file must have" + did_you_mean(name, sheet.names))
        for name in given
        if name not in sheet.names
    ]
    if missing:
        raise InputError(sheet.source, missing)
    if time is not None and value is not None:
        return time, value
    rest = [name for name in sheet.names if name not in given]
    if len(sheet.names) == 2 and len(rest) == 2 - len(given):
        return time or rest[0], value or rest[-1]
    fields = [field for field, found in (("time", time), ("value", value)) if found is None]
    rule = f"must be named, as one of the columns {listed(sheet.names, 20)}"
    raise InputError(sheet.source, [Mistake(field, rule) for field in fields])


def _in_iso(cells: Strings, order: Order, source: str, notes: list[str]) -> list[str]:
    """Dates whose day and month stand before the year in ISO form; all other texts as they are."""
    found = moments_of(cells)
    open_ = (found.mark != "") & ~found.wrong & ~found.empty
    if not open_.any():
        return [str(cell) for cell in cells.tolist()]
    ordered = order_of([found], order)
    if ordered.question:
        rule = f"{ordered.question} say date_order='day-first' or 'month-first'"
        raise InputError(source, [Mistake("time", rule)])
    if ordered.note:
        notes.append(ordered.note)
    seconds = found.seconds(ordered.order)[0]
    stamps = np.where(seconds == NO_TIME, 0, seconds).astype("datetime64[s]")
    iso = np.datetime_as_string(stamps, unit="s", timezone="naive").tolist()
    written = zip(
        cells.tolist(), iso, (open_ & (seconds != NO_TIME)).tolist(), found.aware.tolist(), strict=True
    )
    return [
        f"{stamp}{'+00:00' if aware else ''}" if dated else str(cell) for cell, stamp, dated, aware in written
    ]


def _value(cell: str, decimal: Mark) -> float | None:
    """The number of a cell (``NaN`` and ``+Inf`` are numbers); None where it is none."""
    if cell.lower() in NOTHING:
        return float("nan")
    found = number(cell) if decimal == "." or cell.strip("+-").isalpha() else None
    return number_of(cell, decimal) if found is None else found
