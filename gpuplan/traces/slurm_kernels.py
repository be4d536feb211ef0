"""From the bytes of `sacct` lines to places of fields, codes of texts, seconds and job numbers: arrays in, arrays out.

Nothing is validated here; what a field is not is told by a code. A field is given by where it starts and ends in
``buffer`` (uint8). ``R`` rows, ``K`` columns.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.jit import njit_kernel, njit_leaf

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int8]

#: A 64-bit whole number: numpy's, or Python's where nothing is compiled.
Number = Any

i64 = np.int64

#: What a field was found to be: a value, a value with an offset from UTC, a word for nothing, something else.
VALUE, INSTANT, NOTHING, OTHER = 0, 1, 2, 3

#: What a line is about: a job (or a task, or a part), a step, several waiting tasks, nothing that can be read.
JOB, A_STEP, TASKS, NO_ID = 0, 1, 2, 3

#: No task, no part.
NONE = -1

# hashes have 43 bits, so that times a factor of 20 bits they fit into 63
FACTOR = 1_000_003
BITS = (1 << 43) - 1

#: Longer runs of digits are no numbers.
DIGITS = 18

NEWLINE, ZERO, NINE, DASH, COLON, POINT, PLUS = 10, 48, 57, 45, 58, 46, 43
UNDERSCORE, OPEN, CLOSE, BLANK, LETTER_T, LETTER_Z, BIT_OF_CASE = 95, 91, 93, 32, 84, 90, 32


@njit_kernel
def split(
    buffer: Bytes, separator: int, wanted: Ints, starts: Ints, ends: Ints, lines: Ints, count: Ints
) -> int:
    """Where the lines are, and on each of them the fields of the wanted columns; the number of lines.

    Parameters
    ----------
    buffer
        Ends with a line feed.
    separator
    wanted : int64[C]
        For each column of a line its place among the wanted ones, -1: not wanted.
    starts, ends : int64[K, R]
        Overwritten with the fields that are there.
    lines : int64[2, R]
        Overwritten with start and end of each line.
    count : int64[R]
        Overwritten with the separators on each line.
    """
    columns = len(wanted)
    row = 0
    column = 0
    begin = 0
    first = 0
    for i in range(len(buffer)):
        sign = buffer[i]
        over = sign == NEWLINE
        if over or sign == separator:
            if column < columns:
                k = wanted[column]
                if k >= 0:
                    starts[k, row] = begin
                    ends[k, row] = i
            begin = i + 1
            if over:
                lines[0, row] = first
                lines[1, row] = i
                count[row] = column
                row += 1
                column = 0
                first = i + 1
            else:
                column += 1
    return row


@njit_leaf
def hash_of(buffer: Bytes, start: int, end: int) -> Number:
    """A hash of some bytes."""
    h = i64(17)
    for i in range(start, end):
        h = (h * FACTOR + i64(buffer[i]) + 1) & BITS
    return h


@njit_kernel
def hash_all(buffer: Bytes, starts: Ints, ends: Ints, hashes: Ints) -> None:
    """Overwrite `hashes` (int64[R]) with the hash of each field."""
    for r in range(len(starts)):
        hashes[r] = hash_of(buffer, starts[r], ends[r])


@njit_kernel
def encode(
    buffer: Bytes, starts: Ints, ends: Ints, slots: Ints, hashes: Ints, codes: Ints, firsts: Ints
) -> int:
    """Number the different texts of a column in order of appearance; how many there are.

    Parameters
    ----------
    buffer
    starts, ends : int64[R]
    slots : int64[S]
        Filled with -1; S is a power of two above R. Overwritten.
    hashes, firsts : int64[R]
        Overwritten, for each different text: its hash, its first row.
    codes : int64[R]
        Overwritten with the number of each row's text.
    """
    found = 0
    mask = len(slots) - 1
    for r in range(len(starts)):
        start = starts[r]
        length = ends[r] - start
        if r > 0 and ends[r - 1] - starts[r - 1] == length:  # often the same as in the row before
            before = starts[r - 1]
            k = 0
            while k < length and buffer[start + k] == buffer[before + k]:
                k += 1
            if k == length:
                codes[r] = codes[r - 1]
                continue
        h = hash_of(buffer, start, start + length)
        place = (h ^ (h >> 21)) & mask
        while True:
            code = slots[place]
            if code < 0:
                slots[place] = found
                hashes[found] = h
                firsts[found] = r
                codes[r] = found
                found += 1
                break
            if hashes[code] == h:
                other = starts[firsts[code]]
                if ends[firsts[code]] - other == length:
                    k = 0
                    while k < length and buffer[start + k] == buffer[other + k]:
                        k += 1
                    if k == length:
                        codes[r] = code
                        break
            place = (place + 1) & mask
    return found


@njit_leaf
def two_digits(buffer: Bytes, at: int) -> Number:
    """The number that two digits stand for; a negative one where they are none."""
    high = i64(buffer[at]) - ZERO
    low = i64(buffer[at + 1]) - ZERO
    if high < 0 or high > 9 or low < 0 or low > 9:
        return i64(-1000)
    return high * 10 + low


@njit_leaf
def days_before(year: Number, month: Number, day: Number) -> Number:
    """Days from 1970-01-01 to a date of the Gregorian calendar."""
    y = year - (1 if month <= 2 else 0)
    era = y // 400
    of_era = y - era * 400
    shifted = month - 3 if month > 2 else month + 9
    of_year = (153 * shifted + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@njit_leaf
def days_in(year: Number, month: Number) -> Number:
    """Days of a month."""
    if month == 2:
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return 29 if leap else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


@njit_leaf
def offset_of(buffer: Bytes, start: int, end: int) -> Number:
    """Seconds that ``Z``, ``+01``, ``+0100`` or ``+01:00`` lies ahead of UTC; a million where it is none of them."""
    none = i64(1_000_000)
    length = end - start
    sign = i64(buffer[start])
    if length == 1 and sign | BIT_OF_CASE == LETTER_Z | BIT_OF_CASE:
        return i64(0)
    if sign not in (PLUS, DASH) or not (
        length == 3 or length == 5 or (length == 6 and buffer[start + 3] == COLON)
    ):
        return none
    hours = two_digits(buffer, start + 1)
    minutes = i64(0) if length == 3 else two_digits(buffer, end - 2)
    if hours < 0 or hours > 26 or minutes < 0 or minutes > 59:
        return none
    ahead = hours * 3600 + minutes * 60
    return -ahead if sign == DASH else ahead


@njit_kernel
def stamps(buffer: Bytes, starts: Ints, ends: Ints, seconds: Ints, kinds: Codes) -> None:
    """Read times such as ``2026-03-04T10:00:00``, also with a blank for the T and with an offset from UTC.

    Overwrites `seconds` (int64[R]: of the Unix epoch, on the wall as if it stood in UTC, or with an offset the
    instant) and `kinds` (int8[R]: `VALUE`, `INSTANT`, `NOTHING` where the field is empty, else `OTHER`).
    """
    for r in range(len(starts)):
        start = starts[r]
        end = ends[r]
        seconds[r] = -1
        kinds[r] = OTHER
        if start == end:
            kinds[r] = NOTHING
            continue
        if end - start < 19:
            continue
        parted = buffer[start + 10] == LETTER_T or buffer[start + 10] == BLANK
        parted = parted and buffer[start + 4] == DASH and buffer[start + 7] == DASH
        if not (parted and buffer[start + 13] == COLON and buffer[start + 16] == COLON):
            continue
        century = two_digits(buffer, start)
        of_century = two_digits(buffer, start + 2)
        month = two_digits(buffer, start + 5)
        day = two_digits(buffer, start + 8)
        hour = two_digits(buffer, start + 11)
        minute = two_digits(buffer, start + 14)
        second = two_digits(buffer, start + 17)
        if century < 0 or of_century < 0 or month < 1 or month > 12 or day < 1:
            continue
        if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
            continue
        year = century * 100 + of_century
        if day > days_in(year, month):
            continue
        found = days_before(year, month, day) * 86400 + hour * 3600 + minute * 60 + second
        if end - start == 19:
            kinds[r] = VALUE
        else:
            ahead = offset_of(buffer, start + 19, end)
            if ahead == 1_000_000:
                continue
            found -= ahead
            kinds[r] = INSTANT
        seconds[r] = found


@njit_leaf
def digits_from(buffer: Bytes, at: int, end: int) -> Number:
    """Where the digits end that begin at `at`."""
    while at < end and buffer[at] >= ZERO and buffer[at] <= NINE:
        at += 1
    return at


@njit_leaf
def value_of(buffer: Bytes, start: int, end: int) -> Number:
    """The number of some digits (at most `DIGITS`)."""
    value = i64(0)
    for i in range(start, end):
        value = value * 10 + i64(buffer[i]) - ZERO
    return value


@njit_leaf
def span_of(buffer: Bytes, start: int, end: int, unit: int) -> Number:
    """Seconds of a span of time (see `spans`); -1 where the text is none."""
    none = i64(-1)
    parts = 0
    total = i64(0)  # in the smallest unit so far
    days = none
    at = start
    while True:
        stop = digits_from(buffer, at, end)
        if stop == at or stop - at > 9:
            return none
        value = value_of(buffer, at, stop)
        if parts == 0 and days < 0 and stop < end and buffer[stop] == DASH:
            days = value
            at = stop + 1
            continue
        if value > 59 and parts > 0:
            return none
        total = total * 60 + value
        parts += 1
        if stop == end:
            break
        if buffer[stop] == POINT:
            rest = digits_from(buffer, stop + 1, end)
            if parts == 1 or rest != end or rest == stop + 1 or (parts == 2 and days >= 0):
                return none
            if buffer[stop + 1] >= ZERO + 5:
                total += 1
            break
        if buffer[stop] != COLON or parts == 3:
            return none
        at = stop + 1
    if days >= 0:
        if parts == 1:
            total *= 3600
        elif parts == 2:
            total *= 60
        return days * 86400 + total
    if parts == 1:
        return total * unit if unit > 0 else none
    return total


@njit_kernel
def spans(buffer: Bytes, starts: Ints, ends: Ints, unit: int, seconds: Ints, kinds: Codes) -> None:
    """Read spans of time: ``1-02:03:04``, ``02:03:04``, ``03:04`` (minutes, seconds), ``1-02``, ``1-02:03``.

    Seconds may have a fraction, rounded half up. A number alone counts in units of `unit` seconds; 0: it is none.
    Overwrites `seconds` (int64[R]) and `kinds` (int8[R]: `VALUE`, `NOTHING` where the field is empty, else `OTHER`).
    """
    for r in range(len(starts)):
        seconds[r] = -1
        if starts[r] == ends[r]:
            kinds[r] = NOTHING
        else:
            seconds[r] = span_of(buffer, starts[r], ends[r], unit)
            kinds[r] = VALUE if seconds[r] >= 0 else OTHER


@njit_leaf
def small_number(buffer: Bytes, start: int, stop: int) -> Number:
    """A number of 1 to `DIGITS` digits, -1 where it is longer or empty."""
    if stop == start or stop - start > DIGITS:
        return i64(-1)
    return value_of(buffer, start, stop)


@njit_kernel
def job_ids(
    buffer: Bytes, starts: Ints, ends: Ints, number: Ints, task: Ints, part: Ints, base: Ints, kinds: Codes
) -> None:
    """Read job ids: ``9100``, ``9100_4``, ``9100_[3-10%2]``, ``9100+1``, each also with a step behind a point.

    Overwrites `number`, `task`, `part` (int64[R], `NONE` where there is none), `base` (int64[R]: where the id of the
    job ends, before a step) and `kinds` (int8[R]: `JOB`, `A_STEP`, `TASKS`, `NO_ID`).
    """
    for r in range(len(starts)):
        start = starts[r]
        end = ends[r]
        task[r] = NONE
        part[r] = NONE
        kinds[r] = NO_ID
        at = digits_from(buffer, start, end)
        number[r] = small_number(buffer, start, at)
        if number[r] < 0:
            continue
        tasks = False
        if at < end and buffer[at] == UNDERSCORE:
            if at + 1 < end and buffer[at + 1] == OPEN:
                tasks = True
                at += 2
                while at < end and buffer[at] != CLOSE:
                    at += 1
                if at == end:
                    continue
                at += 1
            else:
                stop = digits_from(buffer, at + 1, end)
                task[r] = small_number(buffer, at + 1, stop)
                if task[r] < 0:
                    continue
                at = stop
        if at < end and buffer[at] == PLUS:
            stop = digits_from(buffer, at + 1, end)
            part[r] = small_number(buffer, at + 1, stop)
            if part[r] < 0:
                continue
            at = stop
        base[r] = at
        if at == end:
            kinds[r] = TASKS if tasks else JOB
        elif buffer[at] == POINT and at + 1 < end:
            kinds[r] = A_STEP
