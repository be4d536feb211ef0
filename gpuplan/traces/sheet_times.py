"""Moments and durations as spreadsheets and programs write them.

``2026-04-03 13:00``, ``03.04.2026 13:00``, ``4/3/2026 1:00 PM``, seconds or milliseconds since 1970, seconds after some
zero, days of a spreadsheet. Whether 3 April or 4 March is meant by ``03/04/2026`` is told by a day above 12 anywhere in
the file, or by dots (day first is the custom); otherwise it is asked, never guessed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from gpuplan.traces.sheet import Bools, Int64, Strings
from gpuplan.traces.sheet_numbers import NOTHING

Order = Literal["", "day-first", "month-first"]

#: Zone words that mean one thing the world over; others must be written as an offset.
ZONES = {
    "Z": 0,
    "UTC": 0,
    "GMT": 0,
    "PST": -8,
    "PDT": -7,
    "MST": -7,
    "MDT": -6,
    "EST": -5,
    "EDT": -4,
    "CET": 1,
    "CEST": 2,
}

#: English months; the machine's language does not matter.
_MONTHS = {
    name: k
    for k, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}

_MOMENT = re.compile(
    r"(?:(?P<y>\d{4})(?P<ys>[-/.])(?P<m>\d{1,2})(?P=ys)(?P<d>\d{1,2})"
    r"|(?P<a>\d{1,2})(?P<s>[-/.])(?P<b>\d{1,2})(?P=s)(?P<year>\d{4}|\d\d)"
    r"|(?P<day>\d{1,2})\.?[ -](?P<word>[A-Za-z]{3})[a-z]*\.?[ -](?P<yw>\d{4}))"
    r"(?:[T ,]\s*(?P<hh>\d{1,2}):(?P<mm>\d\d)(?::(?P<ss>\d\d)(?:[.,](?P<f>\d{1,9}))?)?\s*(?P<half>[AaPp]\.?[Mm]\.?)?)?"
    r"\s*(?P<zone>Z|[A-Z]{3,4}|(?:UTC|GMT)?[+-]\d\d(?::?\d\d)?)?",
    re.A,
)

_LONGEST = 48

#: No moment.
NO_TIME = -(2**62)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """A column of moments, before the order of day and month is settled.

    Attributes
    ----------
    cells : object[R]
    year, first, second : int64[R]
        Of a date with its year at the end, the two numbers before it; of others year, month and day.
    second_of_day : int64[R]
        Less the offset of its zone, where it names one.
    aware : bool[R]
        Names its zone.
    mark : object[R]
        The mark of a date whose order is open; ``""``: it is not.
    empty, wrong, rounded : bool[R]
    """

    cells: Strings
    year: Int64
    first: Int64
    second: Int64
    second_of_day: Int64
    aware: Bools
    mark: Strings
    empty: Bools
    wrong: Bools
    rounded: Bools

    def seconds(self, order: Order) -> tuple[Int64, Bools]:
        """Seconds since 1970 (`NO_TIME` where there is none), and which rows have a date that does not exist."""
        open_ = self.mark != ""
        month = np.where(open_ & (order != "month-first"), self.second, self.first)
        day = np.where(open_ & (order != "month-first"), self.first, self.second)
        known = ~self.empty & ~self.wrong
        fine = known & (month >= 1) & (month <= 12) & (day >= 1) & (day <= _days_of(self.year, month))
        days = _epoch_days(np.where(fine, self.year, 1970), np.where(fine, month, 1), np.where(fine, day, 1))
        return np.where(fine, days * 86_400 + self.second_of_day, NO_TIME), known & ~fine


def moments_of(cells: Strings) -> Moments:
    """Read a column of dates with or without hours; what is none is `Moments.wrong`."""
    plain = _fixed(cells)
    if plain is not None:
        return plain
    import pandas as pd

    codes, texts = pd.factorize(cells)
    rows = np.array([_parts(text) for text in texts.tolist()], object).reshape(len(texts), 8)[codes]
    whole = [rows[:, k].astype(np.int64) for k in range(5)]
    return Moments(
        cells,
        whole[0],
        whole[1],
        whole[2],
        whole[3],
        rows[:, 5].astype(np.bool_),
        rows[:, 6],
        whole[4] == 1,
        whole[4] == 2,
        rows[:, 7].astype(np.bool_),
    )


@dataclass(frozen=True, slots=True)
class Ordered:
    """The order of day and month of a file.

    Attributes
    ----------
    order
        Empty where no date leaves it open.
    note
        How it is known, as a sentence.
    question
        What must be asked, where nothing tells it.
    """

    order: Order = ""
    note: str = ""
    question: str = ""


def order_of(columns: Iterable[Moments], given: Order = "") -> Ordered:
    """The order of day and month of all dates of a file together."""
    day_first = month_first = open_rows = dots = other = 0
    short, example = False, ""
    for column in columns:
        open_ = (column.mark != "") & ~column.wrong & ~column.empty
        if not open_.any():
            continue
        open_rows += int(open_.sum())
        day_first += int((open_ & (column.first > 12)).sum())
        month_first += int((open_ & (column.second > 12)).sum())
        differ = open_ & (column.first != column.second)
        dots += int((differ & (column.mark == ".")).sum())
        other += int((differ & (column.mark != ".")).sum())
        short = short or bool((open_ & (column.mark == "/yy")).any())
        row = int(np.flatnonzero(differ if differ.any() else open_)[0])
        example = example or str(column.cells[row])
    if not open_rows:
        return Ordered()
    if given:
        return Ordered(given, f"Dates are read {given.replace('-', ' ')}, as stated.")
    if short:
        return Ordered(question=f"Dates such as {example} have years of two digits: which number is the day?")
    if day_first and not month_first:
        return Ordered("day-first", "Dates are day first: a day above 12 tells it.")
    if month_first and not day_first:
        return Ordered("month-first", "Dates are month first: a day above 12 tells it.")
    if day_first and month_first:
        order: Order = "day-first" if day_first >= month_first else "month-first"
        return Ordered(
            order, f"Dates are read {order.replace('-', ' ')}, as most of them; others do not exist."
        )
    if dots and not other:
        return Ordered(
            "day-first", f"Dates such as {example} are read day first, as is the custom with dots."
        )
    if not other:
        return Ordered("day-first")
    day, month, year = (int(part) for part in re.split(r"\D", example)[:3])
    both = " or ".join(_spoken(year, *pair) for pair in ((month, day), (day, month)))
    return Ordered(question=f"Dates such as {example} could be {both}: which number is the day?")


def _spoken(year: int, month: int, day: int) -> str:
    return f"{day} {list(_MONTHS)[month - 1].capitalize()} {year}"


@lru_cache(maxsize=4096)
def _offset(zone: str) -> int | None:
    """Seconds of a zone east of Greenwich; None where the word is not known."""
    if zone in ZONES:
        return 3600 * ZONES[zone]
    found = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d\d):?(\d\d)?", zone, re.A)
    if found is None or int(found[2]) > 15 or int(found[3] or 0) > 59:
        return None
    return (1 if found[1] == "+" else -1) * (3600 * int(found[2]) + 60 * int(found[3] or 0))


def _parts(text: str) -> tuple[int, int, int, int, int, bool, str, bool]:
    """Year, two numbers, second of the day, 0 (fine), 1 (empty) or 2 (wrong), zone told, mark, rounded."""
    bare = text.strip()
    if bare.lower() in NOTHING:
        return 0, 0, 0, 0, 1, False, "", False
    found = _MOMENT.fullmatch(bare) if len(bare) <= _LONGEST else None
    wrong = (0, 0, 0, 0, 2, False, "", False)
    if found is None:
        return wrong
    part = found.groupdict()
    hour, minute, second = int(part["hh"] or 0), int(part["mm"] or 0), int(part["ss"] or 0)
    if part["half"]:
        if not 1 <= hour <= 12:
            return wrong
        hour = hour % 12 + (12 if part["half"][0] in "pP" else 0)
    offset = _offset(part["zone"]) if part["zone"] else 0
    if hour > 24 or minute > 59 or second > 60 or (hour == 24 and (minute or second)) or offset is None:
        return wrong
    rounded = bool(part["f"] and part["f"].strip("0"))
    seconds = 3600 * hour + 60 * minute + second - offset + (bool(part["f"]) and part["f"][0] >= "5")
    aware = bool(part["zone"])
    if part["y"]:
        return int(part["y"]), int(part["m"]), int(part["d"]), seconds, 0, aware, "", rounded
    if part["word"]:
        month = _MONTHS.get(part["word"].lower())
        return (int(part["yw"]), month, int(part["day"]), seconds, 0, aware, "", rounded) if month else wrong
    year, mark = int(part["year"]), part["s"]
    if len(part["year"]) == 2:
        year, mark = year + (2000 if year < 70 else 1900), "." if mark == "." else "/yy"
    return year, int(part["a"]), int(part["b"]), seconds, 0, aware, mark, rounded


def _fixed(cells: Strings) -> Moments | None:
    """The moments of a column whose every cell is written alike; None where they are not, or in another form.

    ``YYYY-MM-DD HH:MM:SS`` or ``DD.MM.YYYY HH:MM:SS`` (the year first or last, any mark, a T or a blank, with seconds
    or without), with one offset or none.
    """
    try:
        texts = np.array(cells.tolist(), np.bytes_)
    except UnicodeEncodeError:
        return None
    width = texts.dtype.itemsize
    if not len(cells) or not 16 <= width <= 25:
        return None
    signs = texts.view(np.uint8).reshape(len(cells), width)
    year_first = signs[0, 4] in b"-/."
    marks = (4, 7) if year_first else (2, 5)
    seconds = width >= 19 and signs[0, 16] == ord(":")
    end = 19 if seconds else 16
    tail = signs[0, end:].tobytes().decode("ascii")
    offset = _offset(tail) if tail else 0
    mark = int(signs[0, marks[0]])
    clock = (13, 16) if seconds else (13,)
    if (
        offset is None
        or mark not in b"-/."
        or not (signs[:, end:] == signs[0, end:]).all()
        or not (signs[:, list(marks)] == mark).all()
        or not (signs[:, list(clock)] == ord(":")).all()
        or not np.isin(signs[:, 10], np.frombuffer(b" T", np.uint8)).all()
    ):
        return None
    places = [k for k in range(end) if k not in (*marks, 10, *clock)]
    digits = signs[:, places].astype(np.int64) - 48
    if ((digits < 0) | (digits > 9)).any():
        return None
    at = 0 if year_first else 4
    year = digits[:, at : at + 4] @ np.array([1000, 100, 10, 1])
    first, second = (digits[:, k] * 10 + digits[:, k + 1] for k in ((4, 6) if year_first else (0, 2)))
    hour, minute = (digits[:, k] * 10 + digits[:, k + 1] for k in (8, 10))
    rest = digits[:, 12] * 10 + digits[:, 13] if seconds else np.zeros(len(cells), np.int64)
    if (hour > 23).any() or (minute > 59).any() or (rest > 59).any():
        return None
    return Moments(
        cells,
        year,
        first,
        second,
        3600 * hour + 60 * minute + rest - offset,
        np.full(len(cells), bool(tail)),
        np.full(len(cells), "" if year_first else chr(mark), object),
        *(np.zeros(len(cells), np.bool_) for _ in range(3)),
    )


def _days_of(year: Int64, month: Int64) -> Int64:
    """Days of a month."""
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    lengths = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
    found: Int64 = lengths[np.clip(month, 0, 12)] + (leap & (month == 2))
    return found


def _epoch_days(year: Int64, month: Int64, day: Int64) -> Int64:
    """Days since 1970-01-01 of dates of the Gregorian calendar."""
    months = (year - 1970) * 12 + month - 1
    first = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return first + day - 1
