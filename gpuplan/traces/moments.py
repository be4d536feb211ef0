"""Moments as tables write them: ISO 8601, seconds or milliseconds since 1970, seconds after a moment."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo

import numpy as np
import numpy.typing as npt

from gpuplan.forecast.traffic import epoch_s
from gpuplan.inputs.errors import Mistake
from gpuplan.traces.grid import FIRST_S, LAST_S, epoch_unit, number

_SINCE_1970 = re.compile(r"\d{9,15}(?:\.\d+)?", re.A)
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d(?::?\d\d.*)?)?", re.A)

_RULE = "must be a time such as 2026-05-04T13:00, with or without a zone"
_WHOLE = "must be whole seconds"


def read_moments(
    texts: Sequence[str], lines: npt.NDArray[np.int64], seconds_since: datetime | None
) -> tuple[npt.NDArray[np.int64], bool, list[Mistake]]:
    """Whole seconds since 1970, whether they are instants (else the clock on a wall), and what is wrong.

    Parameters
    ----------
    texts
        The times.
    lines
        Line of each in its file.
    seconds_since
        The moment from which they count, where they are plain seconds.
    """
    if seconds_since is not None:
        seconds, rules = _after(texts, epoch_s(seconds_since))
        aware = seconds_since.tzinfo is not None
    elif texts and all(_SINCE_1970.fullmatch(text) for text in texts):
        seconds, rules = _since_1970(texts)
        aware = True
    else:
        seconds, rules, aware = _iso(texts)
    out = [not rule and not FIRST_S <= at < LAST_S for at, rule in zip(seconds, rules, strict=True)]
    rules = ["must be between 1971 and 2199" if far else rule for far, rule in zip(out, rules, strict=True)]
    mistakes = [
        Mistake(f"line {line}", rule, text, int(line))
        for text, line, rule in zip(texts, lines, rules, strict=True)
        if rule
    ]
    return np.array(seconds, np.int64), aware, mistakes


def _after(texts: Sequence[str], zero: int) -> tuple[list[int], list[str]]:
    numbers = [number(text) for text in texts]
    fine = [found is not None and found.is_integer() and abs(found) < 1e10 for found in numbers]
    seconds = [
        zero + int(found) if ok and found is not None else 0 for found, ok in zip(numbers, fine, strict=True)
    ]
    return seconds, ["" if ok else "must be a number of whole seconds" for ok in fine]


def _since_1970(texts: Sequence[str]) -> tuple[list[int], list[str]]:
    times = np.array([float(text) for text in texts])
    try:
        per_second, _ = epoch_unit(times)
    except ValueError as error:
        return [0] * len(texts), [str(error)] + [""] * (len(texts) - 1)
    times = times / per_second
    return [int(found) for found in times], ["" if found.is_integer() else _WHOLE for found in times]


def _iso(texts: Sequence[str]) -> tuple[list[int], list[str], bool]:
    moments = [_moment(text) for text in texts]
    read = [moment for moment in moments if moment is not None]
    aware = sum(moment.tzinfo is not None for moment in read) * 2 > len(read)
    others = f"must have {'a' if aware else 'no'} time zone, as most times of the file"
    seconds, rules = [], []
    for moment in moments:
        rule = ""
        if moment is None:
            rule = _RULE
        elif moment.microsecond:
            rule = _WHOLE
        elif (moment.tzinfo is not None) != aware:
            rule = others
        seconds.append(0 if moment is None or rule else epoch_s(moment))
        rules.append(rule)
    return seconds, rules, aware


def _moment(text: str) -> datetime | None:
    """A time in ISO 8601; a date alone is its midnight."""
    try:
        return datetime.fromisoformat(text) if _ISO.fullmatch(text) else None
    except ValueError:
        return None


def repeated_and_skipped(
    wall_s: npt.NDArray[np.int64], zone: tzinfo
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Instants of times on the wall, in seconds since 1970, and which of them the clock skips.

    A time that the clock shows twice is the earlier instant where it comes first and the later one where it
    comes again; in a table that runs backwards it is the other way round.
    """
    backwards = len(wall_s) > 1 and np.median(np.sign(np.diff(wall_s))) < 0
    instants = np.empty(len(wall_s), np.int64)
    skipped = np.zeros(len(wall_s), bool)
    again: set[int] = set()
    for i in reversed(range(len(wall_s))) if backwards else range(len(wall_s)):
        seconds = int(wall_s[i])
        moment = (datetime(1970, 1, 1) + timedelta(seconds=seconds)).replace(tzinfo=zone)
        first, second = (_offset_s(moment.replace(fold=fold)) for fold in (0, 1))
        skipped[i] = first < second
        instants[i] = seconds - (second if seconds in again else first)
        if first > second:
            again.add(seconds)
    return instants, skipped


def _offset_s(moment: datetime) -> int:
    offset = moment.utcoffset()
    return round(offset.total_seconds()) if offset is not None else 0
