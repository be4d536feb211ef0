"""Answers of the Prometheus HTTP API (and of servers that speak it), saved as JSON.

The format: Prometheus documentation, "HTTP API", https://prometheus.io/docs/prometheus/latest/querying/api/:
values are text, because JSON has neither NaN nor infinity.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.traces.grid import bin_width, epoch_unit, number, off_grid
from gpuplan.traces.series import Kind, Metrics, Series, alive, increases

Labels = tuple[tuple[str, str], ...]

#: Endings of names that may be a counter's (of a histogram) or a gauge's.
DOUBTFUL = ("_count", "_sum", "_bucket")

#: Seconds by which a time may miss the grid: servers write three decimals.
_SLACK_S = 0.002


@dataclass(slots=True)
class _Readings:
    """The readings of one series as they are read: time, value, and where they stand."""

    times: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


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
        JSON of a range query (a matrix), or of an instant query (a vector or a scalar).
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
    body, warnings = _body(_json(path), source)
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


def _json(path: str | Path) -> Any:
    source = str(path)
    try:
        return json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        mistake = Mistake("", "there is no such file")
    except OSError as error:
        mistake = Mistake("", f"cannot be read: {error.strerror or shorten(str(error), 120)}")
    except UnicodeDecodeError:
        mistake = Mistake("", "must be UTF-8 text")
    except json.JSONDecodeError as error:
        mistake = Mistake(f"line {error.lineno}", f"must be JSON: {error.msg}", line=error.lineno)
    except RecursionError:
        mistake = Mistake("", "must be an answer of the HTTP API: it is nested too deeply")
    raise InputError(source, [mistake])


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
        mistakes += _add(found.setdefault((), _Readings()), body["result"], "result")
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
        for j, point in enumerate(points):
            mistakes += _add(mine, point, f"result.{i}.values.{j}")
    return found, mistakes


def _add(mine: _Readings, point: Any, path: str) -> list[Mistake]:
    """Add a reading, or say what is wrong with it."""
    if not isinstance(point, list) or len(point) != 2:
        return [Mistake(path, "must be a time and a value", point)]
    time, value = (number(part) for part in point)
    if time is None or not np.isfinite(time):
        return [Mistake(f"{path}.0", "must be a time in seconds since 1970", point[0])]
    if value is None:
        return [Mistake(f"{path}.1", 'must be a number as text, "NaN", "+Inf" or "-Inf"', point[1])]
    mine.times.append(time)
    mine.values.append(value)
    mine.paths.append(path)
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
                f"{path}.1", "must be 0 or more, as a counter is; is it a gauge? then say kind='gauge'", value
            )
            for each in found.values()
            for value, path in zip(each.values, each.paths, strict=True)
            if value < 0 and np.isfinite(value)
        ]
    return kind, mistakes


def _grid(
    found: Mapping[Labels, _Readings], source: str, bin_s: int | None, *, instant: bool
) -> tuple[int, int, str]:
    """Start and width of the grid in seconds, and the unit of the times, which become whole seconds in place."""
    paths = [path for each in found.values() for path in each.paths]
    given = np.array([time for each in found.values() for time in each.times])
    try:
        divisor, unit = epoch_unit(given)
    except ValueError as error:
        raise InputError(source, [Mistake("times", str(error))]) from None
    seconds = given / divisor
    part = seconds.min() % 1  # a query may begin within a second; its steps are whole
    whole = np.rint(seconds - part).astype(np.int64)
    wrong = np.flatnonzero(np.abs(seconds - part - whole) > _SLACK_S)
    mistakes = [
        Mistake(f"{paths[i]}.0", "must be whole seconds after the first time", float(given[i])) for i in wrong
    ]
    distinct = np.unique(whole)
    # A single instant has no width: a bin of a second, unless something else is said.
    width, more = bin_width(distinct, 1 if bin_s is None and instant and len(distinct) == 1 else bin_s)
    mistakes += more
    if not mistakes:
        rule = f"must be a whole number of steps of {width} s after the first time"
        mistakes = off_grid(whole, width, lambda i: Mistake(f"{paths[i]}.0", rule, float(given[i])))
    if mistakes:
        raise InputError(source, mistakes)
    at = 0
    for each in found.values():
        each.times = whole[at : at + len(each.times)].tolist()
        at += len(each.times)
    return int(distinct[0]), width, unit


def _on_grid(
    found: Mapping[Labels, _Readings], source: str, first: int, width: int, kind: Kind, spread: bool
) -> tuple[Series, ...]:
    last = max(time for each in found.values() for time in each.times)
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
    mistakes, unusable = [], set()
    for time, value, path in zip(each.times, each.values, each.paths, strict=True):
        at = int(time - first) // width
        if not np.isfinite(value):
            counts["nan" if np.isnan(value) else "infinite"] += 1
            unusable.add(at)
        elif np.isnan(readings[at]):
            readings[at] = value
            counts["usable"] += 1
        elif readings[at] == value:
            counts["repeated"] += 1
        else:
            rule = f"must not differ from another reading of the same series at this time, {readings[at]:g}"
            mistakes.append(Mistake(f"{path}.1", rule, value))
    begin, end = alive(readings)
    counts["unusable_inside"] = sum(begin <= at < end and np.isnan(readings[at]) for at in unusable)
    return readings, counts, mistakes
