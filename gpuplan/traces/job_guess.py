"""Guessing what the columns of a table of jobs mean, by their names and by what their cells look like."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpuplan.traces.job_columns import FIELDS, HINTS, NAMES, Kind, plain_name
from gpuplan.traces.job_mapping import Confidence, Guess, JobMapping
from gpuplan.traces.job_states import STATE_WORDS, state_of
from gpuplan.traces.published_tables import known_table
from gpuplan.traces.sheet import Bools, Sheet, Strings
from gpuplan.traces.sheet_durations import durations_of
from gpuplan.traces.sheet_numbers import NOTHING, marks_of, numbers_of
from gpuplan.traces.sheet_times import moments_of, order_of

#: Rows by which cells are judged.
_ROWS = 2_000

#: Share of the cells of a column that must look like what the column is taken for.
_MOST_OF = 0.5

#: Numbers of moments from here on count seconds since 1970 (the year 1980).
_SINCE_1970 = 315_532_800


@dataclass(slots=True)
class _Looks:
    """What the cells of a column look like: shares of those that are not empty."""

    cells: Strings
    number: float
    moment: float
    duration: float
    state: float
    largest: float
    example: str
    different: bool

    def like(self, kind: Kind) -> float:
        """Share of the cells that look like a kind."""
        if kind == "text":
            return 1.0 - self.moment
        if kind == "moment":
            return max(self.moment, self.number)
        return {"count": self.number, "duration": self.duration, "state": self.state}[kind]


def guess(sheet: Sheet) -> JobMapping:
    """What the columns of a table are taken for."""
    table = known_table(sheet.names)
    if table is not None:
        meant = {column: (field, unit) for field, (column, unit) in table.columns.items()}
        guesses = [
            Guess(
                name, *meant.get(name, ("", "")), "sure", f"a column of {table.name}" if name in meant else ""
            )
            for name in sheet.names
        ]
        return JobMapping(sheet.source, tuple(_with_example(g, sheet) for g in guesses), table.name)
    looks = {name: _looks(sheet.column(name)[:_ROWS]) for name in sheet.names}
    guesses = [_guess(name, looks[name]) for name in sheet.names]
    guesses = _one_per_field(guesses, looks)
    guesses = _identity(guesses, looks)
    guesses = _unit_by_start_and_end(guesses, looks)
    dates = [
        moments_of(looks[g.column].cells)
        for g in guesses
        if g.field and FIELDS[g.field][0] == "moment" and looks[g.column].moment >= _MOST_OF
    ]
    question = order_of(dates).question if len(sheet) <= _ROWS else ""
    return JobMapping(sheet.source, tuple(guesses), questions=(question,) if question else ())


def _with_example(found: Guess, sheet: Sheet) -> Guess:
    cells = sheet.column(found.column)[:_ROWS]
    example = next((cell for cell in cells.tolist() if cell), "")
    return Guess(found.column, found.field, found.unit, found.confidence, found.reason, example)


def _looks(cells: Strings) -> _Looks:
    told = np.array([cell.lower() not in NOTHING for cell in cells.tolist()], np.bool_)
    some = cells[told]
    example = next((cell for cell in cells.tolist() if cell), "")
    if not len(some):
        return _Looks(cells, 0, 0, 0, 0, 0, example, False)
    marks = marks_of([some], ";" if any("," in cell for cell in some.tolist()) else ",")
    values, _, no_number = numbers_of(some, marks.decimal)
    no_moment = moments_of(some).wrong
    no_duration = durations_of(some, "", marks.decimal)[2]
    known = [state_of(word, {}) in set(STATE_WORDS.values()) for word in some.tolist()]
    return _Looks(
        cells,
        1 - float(no_number.mean()),
        1 - float(no_moment.mean()),
        1 - float(no_duration.mean()),
        float(np.mean(known)),
        float(np.nanmax(values)) if not no_number.all() else 0.0,
        example,
        len(set(some.tolist())) == len(cells),
    )


def _guess(name: str, looks: _Looks) -> Guess:
    """What a column is taken for, seen alone."""
    plain, unit = plain_name(name)
    unused = Guess(name, "", reason="its name says nothing that is used", example=looks.example)
    if plain in ("gpu", "gpus", "gputime") and unit:
        return Guess(name, "", reason="GPU time, which follows from GPUs and run time", example=looks.example)
    field, sure = NAMES.get(plain, ""), True
    if not field and plain in HINTS:
        fits = [(meaning, kind) for kind, meaning in HINTS[plain].items() if looks.like(kind) >= _MOST_OF]
        field, sure = (fits[0][0], False) if fits else ("", False)
    if not field:
        return unused
    kind = FIELDS[field][0]
    if kind != "text" and looks.example and looks.like(kind) < _MOST_OF:
        return Guess(name, "", reason=f"its cells do not look like {FIELDS[field][1]}", example=looks.example)
    confidence: Confidence = "sure" if sure else "likely"
    reason = "its name" if sure else "its name and its cells hint at it"
    if kind in ("moment", "duration"):
        found, doubt = _unit(field, kind, unit, looks)
        if doubt:
            confidence, reason = "likely", doubt
        unit = found
    else:
        unit = ""
    return Guess(name, field, unit, confidence, reason, looks.example)


def _unit(field: str, kind: Kind, unit: str, looks: _Looks) -> tuple[str, str]:
    """Unit of the numbers of a column, and the doubt about it (empty: none)."""
    if kind == "moment":
        if looks.moment >= _MOST_OF:
            return "", ""
        if unit or looks.largest >= _SINCE_1970:
            return unit, ""
        if 20_000 <= looks.largest < 80_000 and any(
            "." in cell or "," in cell for cell in looks.cells.tolist()
        ):
            return "sheet-days", "its numbers look like days of a spreadsheet"
        return "s", "its numbers have no unit: seconds after some zero are assumed"
    if unit or not looks.number:
        return unit, ""
    if field == "limit":
        return "s", "its numbers have no unit: seconds are assumed"
    return "s", "its numbers have no unit: seconds are assumed"


def _one_per_field(guesses: list[Guess], looks: Mapping[str, _Looks]) -> list[Guess]:
    """Of several columns for a field the surest one; names of one kind of thing that mean two."""
    order = {"sure": 0, "likely": 1, "unsure": 2}
    best: dict[str, Guess] = {}
    for found in guesses:
        here = best.get(found.field)
        if here is None or order[found.confidence] < order[here.confidence]:
            best[found.field] = found
    settled = []
    for found in guesses:
        if found.field and best[found.field] is not found:
            reason = f"{FIELDS[found.field][1]} is taken from {best[found.field].column}"
            found = Guess(found.column, "", reason=reason, example=found.example)
        settled.append(found)
    return settled


def _identity(guesses: list[Guess], looks: Mapping[str, _Looks]) -> list[Guess]:
    """Where no column is the identity, a name that is different in every row is."""
    if any(found.field == "job" for found in guesses):
        return guesses
    return [
        Guess(found.column, "job", "", "sure", "a name of its own in every row", found.example)
        if found.field == "name" and looks[found.column].different
        else found
        for found in guesses
    ]


def _unit_by_start_and_end(guesses: list[Guess], looks: Mapping[str, _Looks]) -> list[Guess]:
    """The unit of a run time without one, where start and end tell it."""
    by_field = {found.field: found for found in guesses if found.field}
    ran, start, end = (by_field.get(field) for field in ("elapsed", "start", "end"))
    if (
        not ran
        or not start
        or not end
        or ran.confidence == "sure"
        or min(looks[start.column].moment, looks[end.column].moment) < _MOST_OF
    ):
        return guesses
    cells = looks[ran.column].cells
    decimal = marks_of([cells], ",").decimal
    moments = [moments_of(looks[g.column].cells) for g in (start, end)]
    order = order_of(moments)
    spans = [m.seconds(order.order) for m in moments]
    known = ~(
        moments[0].empty | moments[0].wrong | spans[0][1] | moments[1].empty | moments[1].wrong | spans[1][1]
    )
    took = (spans[1][0] - spans[0][0]).astype(np.float64)
    for unit in ("s", "min", "h"):
        seconds = durations_of(cells, unit, decimal)[0]
        judged: Bools = known & ~np.isnan(seconds) & (took > 0)
        slack = {"s": 2.0, "min": 61.0, "h": 181.0}[unit]
        if judged.sum() >= 3 and (np.abs(seconds - took)[judged] <= slack).mean() > 0.9:
            found = Guess(ran.column, "elapsed", unit, "sure", "it is end - start in this unit", ran.example)
            return [found if g is ran else g for g in guesses]
    return guesses
