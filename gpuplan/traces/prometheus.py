"""Answers of the Prometheus HTTP API (and of servers that speak it), saved as JSON.

The format: Prometheus documentation, "HTTP API", https://prometheus.io/docs/prometheus/latest/querying/api/:
values are text, because JSON has neither NaN nor infinity.
"""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.traces.grid import bin_width, epoch_unit, number, numbers, off_grid
from gpuplan.traces.json_file import read_json
from gpuplan.traces.series import Kind, Metrics, Series, alive, increases

Labels = tuple[tuple[str, str], ...]

#: Endings of names that may be a counter's (of a histogram) or a gauge's.
DOUBTFUL = ("_count", "_sum", "_bucket")

#: Seconds by which a time may miss the grid: servers write three decimals.
_SLACK_S = 0.002


def _floats() -> "array[float]":
    return array("d")


def _ints() -> "array[int]":
    return array("q")


@dataclass(slots=True)
class _Readings:
    """The readings of one series as they are read: time, value, where they stand (row, place in it; -1: a scalar)."""

    times: "array[float]" = field(default_factory=_floats)
    values: "array[float]" = field(default_factory=_floats)
    rows: "array[int]" = field(default_factory=_ints)
    places: "array[int]" = field(default_factory=_ints)

    def path(self, k: int) -> str:
        """Where a reading stands."""
        return _path(self.rows[k], self.places[k])


def _path(row: int, place: int) -> str:
    """``result.0.values.17``; of a scalar ``result``."""
    return "result" if row < 0 else f"result.{row}.values.{place}"


def read_prometheus(
    path: str | Path,
    *,
    kind: Literal["auto", "counter", "gauge"] = "auto",
    bin_s: int | None = None,
    over_gaps: Literal["unknown", "spread"] = "unknown",
) -> Metrics:
    """Read the answer to a query.

    Parameters
    ----------
    path
        JSON of a range query (a matrix), or of an instant query (a vector or a scalar); gzip where its name ends in
        ``.gz``.
    kind
        Whether the values are counters, whose increases are taken with resets counted, or gauges, taken as
        they are; by the name where it is ``"auto"``: ``_total`` is a counter, a series without a
        name (of ``rate(...)`` or ``sum(...)``) a gauge.
    bin_s
        Seconds between readings; their least distance where it is left out.
    over_gaps
        What the bins of a counter without a reading are: unknown, or the increase over them spread evenly.

    Returns
    -------
    Metrics
        The series on one grid. Bin 0 of a gauge begins at the first reading; bin 0 of a counter lies
        between the first two readings.

    Raises
    ------
    InputError
        With the server's own message if it answered with an error, with every reading that cannot be used,
        or if there is no data in the answer.
    """
    source = Path(path).name
    wrong = [
        Mistake(name, f"must be one of {', '.join(words)}", found)
        for name, found, words in (
            ("kind", kind, ("auto", "counter", "gauge")),
            ("over_gaps", over_gaps, ("unknown", "spread")),
        )
        if found not in words
    ]
    if wrong:
        raise InputError(source, wrong)
    body, warnings = _body(read_json(path), source)
    found, mistakes = _series(body)
    if not mistakes and not any(each.times for each in found.values()):
        rule = "no data in this answer: the query found no series, or none with a reading in this time"
        raise InputError(source, [Mistake("", rule + "".join(f"; the server warns: {w}" for w in warnings))])
    taken, more = _kind(found, kind)
    if mistakes + more:
        raise InputError(source, mistakes + more)
    first, width, unit = _grid(found, source, bin_s, instant=body["resultType"] != "matrix")
    spread = over_gaps == "spread"
    series = _on_grid(found, source, first, width, taken, spread)
    rules = [f"Times are {unit} since 1970, {width:,} s apart."]
    if taken == "counter":
        rules.append(
            f"Counters, by {'their names' if kind == 'auto' else 'your word'}: increases, resets counted."
        )
        rules.append(
            "A bin is the time between two readings; a series adds nothing before its first reading."
        )
    else:
        rules.append("Gauges: readings are taken as they are, falls included.")
    start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=first)
    return Metrics(source, taken, start, width, series, warnings, tuple(rules), spread)


def _body(answer: Any, source: str) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The ``data`` of an answer, and the server's warnings; its own message where it failed."""
    if not isinstance(answer, dict):
        raise InputError(source, [Mistake("", "must be an answer of the HTTP API: a mapping", answer)])
    if answer.get("status", "success") != "success":
        words = str(answer.get("error") or "without a message")
        kind = f" ({answer['errorType']})" if answer.get("errorType") else ""
        raise InputError(
            source, [Mistake("", f"the server answered with an error: {shorten(words, 300)}{kind}")]
        )
    body = answer.get("data", answer)
    kinds = ("matrix", "vector", "scalar")
    if not isinstance(body, dict) or body.get("resultType") not in kinds:
        found = body.get("resultType") if isinstance(body, dict) else body
        rule = "must be matrix (of a range query), vector or scalar"
        raise InputError(source, [Mistake("data.resultType", rule, found)])
    if not isinstance(body.get("result"), list):
        raise InputError(source, [Mistake("data.result", "must be a list", body.get("result"))])
    lists = [answer.get(key) for key in ("warnings", "infos")]
    said = [str(text) for texts in lists if isinstance(texts, list) for text in texts]
    return body, tuple(shorten(text, 300) for text in said)


def _series(body: Mapping[str, Any]) -> tuple[dict[Labels, _Readings], list[Mistake]]:
    """The readings by the labels of their series, and what is wrong with them."""
    found: dict[Labels, _Readings] = {}
    mistakes: list[Mistake] = []
    if body["resultType"] == "scalar":
        mistakes += _add(found.setdefault((), _Readings()), body["result"], -1, 0)
        return found, mistakes
    for i, row in enumerate(body["result"]):
        metric = row.get("metric", {}) if isinstance(row, dict) else None
        if not isinstance(row, dict) or not isinstance(metric, dict):
            mistakes.append(Mistake(f"result.{i}", "must have a metric and values", row))
            continue
        points = row.get("values", [row["value"]] if "value" in row else None)
        if not isinstance(points, list):
            rule = "must have values"
            if "histogram" in row or "histograms" in row:
                rule = "is a native histogram: query its histogram_count(), histogram_sum() or histogram_quantile()"
            mistakes.append(Mistake(f"result.{i}", rule))
            continue
        labels = tuple(sorted((str(name), str(text)) for name, text in metric.items()))
        mine = found.setdefault(labels, _Readings())
        if not _add_all(mine, points, i):
            for j, point in enumerate(points):
                mistakes += _add(mine, point, i, j)
    return found, mistakes


def _add_all(mine: _Readings, points: list[Any], row: int) -> bool:
    """Add readings that are all as they should be, at once; otherwise add nothing (to tell them apart takes longer)."""
    if set(map(type, points)) != {list} or set(map(len, points)) != {2}:
        return False
    times, texts = [point[0] for point in points], [point[1] for point in points]
    if not set(map(type, times)) <= {int, float} or set(map(type, texts)) != {str}:
        return False
    if not numbers("\n".join(texts)):
        return False
    try:
        found = array("d", times)
    except OverflowError:
        return False
    if not np.isfinite(found).all():
        return False
    mine.times.extend(found)
    mine.values.extend(map(float, texts))
    mine.rows.extend([row] * len(points))
    mine.places.extend(range(len(points)))
    return True


def _add(mine: _Readings, point: Any, row: int, place: int) -> list[Mistake]:
    """Add a reading, or say what is wrong with it."""
    if not isinstance(point, list) or len(point) != 2:
        return [Mistake(_path(row, place), "must be a time and a value", point)]
    time, value = number(point[0]), number(point[1])
    if time is None or not isfinite(time):
        return [Mistake(f"{_path(row, place)}.0", "must be a time in seconds since 1970", point[0])]
    if value is None:
        rule = 'must be a number as text, "NaN", "+Inf" or "-Inf"'
        return [Mistake(f"{_path(row, place)}.1", rule, point[1])]
    mine.times.append(time)
    mine.values.append(value)
    mine.rows.append(row)
    mine.places.append(place)
    return []


def _kind(found: Mapping[Labels, _Readings], wanted: str) -> tuple[Kind, list[Mistake]]:
    """Counter or gauge: the user's word, else by the names."""
    names = sorted({dict(labels).get("__name__", "") for labels in found})
    counters = [name for name in names if name.endswith("_total")]
    kind: Kind = "counter" if wanted == "counter" or (wanted == "auto" and counters) else "gauge"
    mistakes = []
    if wanted == "auto":
        for name in names:
            if name.endswith(DOUBTFUL):
                rule = "must be stated, counter or gauge: the name may be either's"
                mistakes.append(Mistake("kind", rule, name))
        if counters and len(counters) < len(names):
            others = ", ".join(name or "(no name)" for name in names if name not in counters)
            mistakes.append(
                Mistake("kind", f"must be stated: {', '.join(counters)} and {others} are both there")
            )
    if kind == "counter":
        mistakes += [
            Mistake(
                f"{each.path(k)}.1",
                "must be 0 or more, as a counter is; is it a gauge? then say kind='gauge'",
                value,
            )
            for each in found.values()
            for k, value in enumerate(each.values)
            if value < 0 and isfinite(value)
        ]
    return kind, mistakes


def _grid(
    found: Mapping[Labels, _Readings], source: str, bin_s: int | None, *, instant: bool
) -> tuple[int, int, str]:
    """Start and width of the grid in seconds, and the unit of the times, which become whole seconds in place."""
    given = np.concatenate([np.frombuffer(each.times, np.float64) for each in found.values() if each.times])
    try:
        divisor, unit = epoch_unit(given)
    except ValueError as error:
        raise InputError(source, [Mistake("times", str(error))]) from None
    seconds = given / divisor
    part = seconds.min() % 1  # a query may begin within a second; its steps are whole
    whole = np.rint(seconds - part).astype(np.int64)
    wrong = np.flatnonzero(np.abs(seconds - part - whole) > _SLACK_S)
    mistakes = [
        Mistake(f"{_place(found, i)}.0", "must be whole seconds after the first time", float(given[i]))
        for i in wrong.tolist()
    ]
    distinct = np.unique(whole)
    # A single instant has no width: a bin of a second, unless something else is said.
    width, more = bin_width(distinct, 1 if bin_s is None and instant and len(distinct) == 1 else bin_s)
    mistakes += more
    if not mistakes:
        rule = f"must be a whole number of steps of {width} s after the first time"
        mistakes = off_grid(whole, width, lambda i: Mistake(f"{_place(found, i)}.0", rule, float(given[i])))
    if mistakes:
        raise InputError(source, mistakes)
    at = 0
    for each in found.values():
        n = len(each.times)
        each.times = array("d", whole[at : at + n].astype(np.float64).tobytes())
        at += n
    return int(distinct[0]), width, unit


def _place(found: Mapping[Labels, _Readings], number: int) -> str:
    """Where a reading stands, by its number over all series."""
    for each in found.values():
        if number < len(each.times):
            return each.path(number)
        number -= len(each.times)
    raise IndexError(number)


def _on_grid(
    found: Mapping[Labels, _Readings], source: str, first: int, width: int, kind: Kind, spread: bool
) -> tuple[Series, ...]:
    last = max(max(each.times) for each in found.values() if each.times)
    n_times = int(last - first) // width + 1
    if kind == "counter" and n_times < 2:
        raise InputError(source, [Mistake("", "must have two readings of a counter to tell its increase")])
    series, mistakes = [], []
    for labels, each in found.items():
        readings, counts, wrong = _readings(each, first, width, n_times)
        mistakes += wrong
        begin, end = alive(readings)
        missing = int((~np.isfinite(readings[begin:end])).sum()) - counts.pop("unusable_inside")
        if kind == "gauge":
            series.append(Series(labels, readings, begin, end, missing=missing, **counts))
            continue
        values, resets, over = increases(readings, spread=spread)
        series.append(
            Series(
                labels,
                values,
                begin,
                max(begin, end - 1),
                missing=missing,
                resets=resets,
                over_gaps=over,
                **counts,
            )
        )
    if mistakes:
        raise InputError(source, mistakes)
    return tuple(series)


def _readings(
    each: _Readings, first: int, width: int, n_times: int
) -> tuple[npt.NDArray[np.float64], dict[str, int], list[Mistake]]:
    """The usable readings on the grid, how many are which, and those that contradict another."""
    readings = np.full(n_times, np.nan)
    counts = dict.fromkeys(("readings", "usable", "nan", "infinite", "repeated", "unusable_inside"), 0)
    counts["readings"] = len(each.times)
    at = (np.frombuffer(each.times, np.float64).astype(np.int64) - first) // width
    given = np.frombuffer(each.values, np.float64)
    usable = np.isfinite(given)
    counts["nan"] = int(np.isnan(given).sum())
    counts["infinite"] = len(given) - int(usable.sum()) - counts["nan"]
    rows = np.flatnonzero(usable)
    # of several readings of one time the first one stands
    once = rows[np.unique(at[rows], return_index=True)[1]]
    readings[at[once]] = given[once]
    counts["usable"] = len(once)
    apart = rows[given[rows] != readings[at[rows]]]
    counts["repeated"] = len(rows) - len(once) - len(apart)
    rule = "must not differ from another reading of the same series at this time, "
    mistakes = [
        Mistake(f"{each.path(k)}.1", f"{rule}{readings[at[k]]:g}", float(given[k])) for k in apart.tolist()
    ]
    begin, end = alive(readings)
    lost = np.unique(at[~usable])
    lost = lost[(lost >= begin) & (lost < end)]
    counts["unusable_inside"] = int(np.isnan(readings[lost]).sum())
    return readings, counts, mistakes
