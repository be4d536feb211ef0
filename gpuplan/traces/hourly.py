"""Traffic from a table of hours (or finer): a time and a value per row, as spreadsheets and dashboards export it.

Rows may come in any order. An hour without a row, or without a value, is unknown and never 0. A night on which
clocks change has 23 or 25 hours where the zone is given.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from gpuplan.forecast.traffic import HOUR_S, TrafficHistory, zone_of
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.grid import bin_width, off_grid
from gpuplan.traces.hourly_table import HourlyTable, read_hourly_table
from gpuplan.traces.moments import read_moments, repeated_and_skipped
from gpuplan.traces.sheet_numbers import Mark
from gpuplan.traces.sheet_times import Order

Twice = Literal["refuse", "sum", "mean", "last"]

#: Reasons of rows that do not even say that the recording covers their time.
_NO_TIMES = ("a blank line", "a line of totals", "an hour that the clock skips")


@dataclass(slots=True)
class _Rows:
    """The rows of the file: time and value as numbers, and why a row is left out (empty: it is used)."""

    lines: npt.NDArray[np.int64]
    texts: list[str]
    times_s: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    reason: list[str]

    @property
    def used(self) -> npt.NDArray[np.int64]:
        return np.flatnonzero([not why for why in self.reason])


def read_hourly(
    path: str | Path,
    *,
    unit: str,
    value: str | None = None,
    time: str | None = None,
    name: str | None = None,
    timezone: str | tzinfo | None = None,
    bin_s: int | None = None,
    seconds_since: datetime | None = None,
    negative: Literal["refuse", "exclude"] = "refuse",
    twice: Twice = "refuse",
    zero_is_unknown: bool = False,
    date_order: Order = "",
    decimal: Mark | None = None,
) -> TrafficHistory:
    """Read traffic from a CSV file (plain or gzip) with a time and a value per row.

    Spreadsheets of all countries are read: semicolons or tabs between cells, decimal commas, dates with the day
    first, UTF-16 or Windows-1252, a line of totals at the end (left out and counted).

    Parameters
    ----------
    path
        A table with a header row.
    unit
        Unit of the values, such as ``"tokens/s"``.
    value, time
        Their columns; may be left out where the file has two, the time first.
    name
        Name of the history; that of the value's column where it is left out.
    timezone
        Zone of times that are written without one, such as ``America/Sao_Paulo``; of two rows for an hour
        that the clock repeats, the first one is the earlier. Times that have a zone are shown in this one.
        Without it such times count days of 24 hours.
    bin_s
        Width of a bin in seconds; the least distance of two times where it is left out, at most an hour.
    seconds_since
        The moment from which times count, where they are plain seconds.
    negative
        Whether a negative value is a mistake, or left out and counted.
    twice
        What two values for one time are: a mistake, or their sum, mean, or the last row. The same value again
        is no mistake: it counts once, unless a sum or mean is asked for.
    zero_is_unknown
        Whether 0 stands for a gap in the recording.
    date_order
        ``day-first`` or ``month-first``, of dates such as 03/04/2026; where it is left out a day above 12 tells it,
        dots are day first, and what stays open is asked.
    decimal
        The mark before decimals; where it is left out the numbers tell it.

    Returns
    -------
    TrafficHistory
        With the account of every row.

    Raises
    ------
    InputError
        With every row that cannot be used, and its line.
    """
    source = Path(path).name
    zone, mistakes = zone_of(timezone)
    mistakes += [
        Mistake(field, f"must be one of {', '.join(word for word in words if word)}", found)
        for field, found, words in (
            ("negative", negative, ("refuse", "exclude")),
            ("twice", twice, ("refuse", "sum", "mean", "last")),
            ("date_order", date_order, ("", "day-first", "month-first")),
            ("decimal", decimal, (None, ".", ",")),
        )
        if found not in words
    ]
    if mistakes:
        raise InputError(source, mistakes)
    table = read_hourly_table(
        path, time, value, dates=seconds_since is None, date_order=date_order, decimal=decimal
    )
    rows, aware, mistakes = _rows(table, seconds_since, zone)
    mistakes += _judge(rows, negative, zero_is_unknown)
    if mistakes:
        raise InputError(source, sorted(mistakes, key=lambda mistake: mistake.line or 0))
    width, first, values, notes = _binned(rows, source, bin_s, twice)
    start = datetime(1970, 1, 1, tzinfo=UTC if aware or zone else None) + timedelta(seconds=first)
    if zone is not None:
        start = start.astimezone(zone)
    account = _account(
        source, rows, values, width, [*table.notes, *notes], zone_name=str(zone) if zone and not aware else ""
    )
    return TrafficHistory(name or table.value, unit, start, width, values, account)


def _rows(
    table: HourlyTable, seconds_since: datetime | None, zone: tzinfo | None
) -> tuple[_Rows, bool, list[Mistake]]:
    """The rows with their times in seconds, whether the times have a zone of their own, and what is wrong."""
    lines, texts, values = table.lines, table.texts, table.values
    cells = zip(texts, table.cells, table.apart, strict=True)
    written = [i for i, (text, cell, apart) in enumerate(cells) if (text or cell) and not apart]
    times, aware, mistakes = read_moments([texts[i] for i in written], lines[written], seconds_since)
    mistakes += table.mistakes
    mistakes += [
        Mistake(f"line {lines[i]}", "must be a number", table.cells[i], int(lines[i]))
        for i in written
        if values[i] is None
    ]
    rows = _Rows(
        lines,
        texts,
        np.zeros(len(lines), np.int64),
        np.array([np.nan if found is None else found for found in values], np.float64),
        [apart or "a blank line" for apart in table.apart],
    )
    rows.times_s[written] = times
    for i in written:
        rows.reason[i] = ""
    if not written:
        mistakes.append(Mistake("", "must have a row with a time and a value"))
    elif zone is not None and not aware and not mistakes:
        rows.times_s[written], skipped = repeated_and_skipped(times, zone)
        for i in (written[number_] for number_ in np.flatnonzero(skipped)):
            rows.reason[i] = "an hour that the clock skips"
            if rows.values[i] > 0:
                rule = f"is an hour that clocks skip in {zone}, and yet has traffic: is the zone right?"
                mistakes.append(Mistake(f"line {lines[i]}", rule, texts[i], int(lines[i])))
    return rows, aware, mistakes


def _judge(rows: _Rows, negative: str, zero_is_unknown: bool) -> list[Mistake]:
    """Write down why rows without a usable value are left out; the mistakes among them."""
    mistakes = []
    for i in rows.used:
        found = rows.values[i]
        if np.isnan(found):
            rows.reason[i] = "no value: unknown"
        elif np.isinf(found):
            rows.reason[i] = "not finite: unknown"
        elif found < 0 and negative == "exclude":
            rows.reason[i] = "negative: unknown"
        elif found < 0:
            rule = "must be 0 or more; negative='exclude' leaves such rows out"
            mistakes.append(Mistake(f"line {rows.lines[i]}", rule, float(found), int(rows.lines[i])))
        elif found == 0 and zero_is_unknown:
            rows.reason[i] = "0, which stands for a gap in the recording: unknown"
    return mistakes


def _binned(
    rows: _Rows, source: str, bin_s: int | None, twice: Twice
) -> tuple[int, int, npt.NDArray[np.float64], list[str]]:
    """Width and start of the bins, their values, and a note on rows that were put together."""
    # Rows without a value still say that the recording covers their time.
    placed = np.flatnonzero([why not in _NO_TIMES for why in rows.reason])
    times = np.unique(rows.times_s[placed])
    if not len(times):
        raise InputError(source, [Mistake("", "must have a row with a time and a value")])
    width, mistakes = bin_width(times, bin_s)
    if not mistakes and width > HOUR_S:
        rule = f"must be hourly or finer: the times are {width:,} s apart; state bin_s if hours are missing"
        mistakes.append(Mistake(rows.texts[placed[0]], rule))
    if not mistakes:
        rule = f"must be a whole number of bins of {width} s after the first time"
        mistakes = off_grid(
            rows.times_s[placed],
            width,
            lambda i: Mistake(
                f"line {rows.lines[placed[i]]}", rule, rows.texts[placed[i]], int(rows.lines[placed[i]])
            ),
        )
    if mistakes:
        raise InputError(source, mistakes)
    values = np.full(int(times[-1] - times[0]) // width + 1, np.nan)
    merged, mistakes = _merge(rows, int(times[0]), width, values, twice)
    if mistakes:
        raise InputError(source, mistakes)
    words = {"sum": "added up", "mean": "averaged", "last": "replaced by the last one"}
    notes = [f"{merged:,} rows for a time that has another value were {words[twice]}."] if merged else []
    return width, int(times[0]), values, notes


def _merge(
    rows: _Rows, first: int, width: int, values: npt.NDArray[np.float64], twice: Twice
) -> tuple[int, list[Mistake]]:
    """Fill the bins (in place); how many rows met another value, and the mistakes where that is one."""
    found: dict[int, list[int]] = {}
    for i in rows.used:
        here = found.setdefault(int(rows.times_s[i] - first) // width, [])
        if twice in ("refuse", "last") and any(rows.values[other] == rows.values[i] for other in here):
            rows.reason[i] = "the same time and value again"
        else:
            here.append(int(i))
    mistakes, merged = [], 0
    for place, mine in found.items():
        several: Sequence[float] = [float(rows.values[i]) for i in mine]
        values[place] = {"sum": sum(several), "mean": sum(several) / len(several)}.get(twice, several[-1])
        merged += len(mine) - 1
        if twice == "refuse":
            rule = f"must not give another value for {rows.texts[mine[0]]} than line {rows.lines[mine[0]]}, "
            rule += f"{several[0]:g}; or say what twice means: sum, mean or last"
            mistakes += [
                Mistake(f"line {rows.lines[i]}", rule, float(rows.values[i]), int(rows.lines[i]))
                for i in mine[1:]
            ]
    return merged, mistakes


def _account(
    source: str,
    rows: _Rows,
    values: npt.NDArray[np.float64],
    width: int,
    notes: list[str],
    zone_name: str,
) -> Account:
    reasons = dict.fromkeys(why for why in rows.reason if why)
    unknown = int(np.isnan(values).sum())
    rules = [f"Bins of {width:,} s; a bin without a value is unknown, not 0.", *notes]
    if zone_name:
        rules.append(f"Times are those of {zone_name}; of a repeated hour the first row is the earlier.")
    return Account(
        source,
        "rows",
        len(rows.reason),
        len(rows.used),
        tuple((why, rows.reason.count(why)) for why in reasons),
        amounts=(("bins from the first row to the last", len(values), "bins"), ("unknown", unknown, "bins")),
        rules=tuple(rules),
        made="history",
    )
