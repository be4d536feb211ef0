"""Job tables from which durations are learned: read once, strictly, with an account of every row."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from numbers import Number
from typing import TYPE_CHECKING, Any

from gpuplan.forecast.duration_account import DurationAccount
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

#: Columns that say who a job belongs to; the first one present is whose history counts as a job's "own".
GROUPS = ("user", "team", "cluster")

#: Columns of a table that are read; others are left alone.
KNOWN = ("submit_s", "submit", "duration_s", "gpus", "wait_s", "limit_s", "estimate_s", *GROUPS, "name")

#: A time of day, and behind it the offset from UTC.
_OFFSET = r"^(.*\d\d:\d\d.*?) ?(Z|[+-]\d\d(?::?\d\d)?)$"

#: Row-by-row mistakes of rows to be predicted that are spelled out.
_MOST_ROWS = 20


def read_history(
    table: "pd.DataFrame", more: Sequence[Mistake] = ()
) -> tuple["pd.DataFrame", DurationAccount]:
    """Read a table of past jobs: its usable rows in an order that does not depend on the table's, and the account.

    Parameters
    ----------
    table
        ``submit_s`` (seconds after some midnight) or ``submit`` (dates and times), ``duration_s`` (run time),
        ``gpus``; optionally ``wait_s``, ``limit_s``, ``estimate_s``, ``user``, ``team``, ``cluster``, ``name``.
    more
        Mistakes found elsewhere in the same call, to be told together with those of the table.

    Returns
    -------
    jobs, account
        ``row`` (0-based), ``at_s``, ``clock_s``, ``gpus``, ``run_s``, ``end_s``, ``limit_s``, ``estimate_s`` and the
        texts of `GROUPS` and ``name``; NaN and None are unknown. The account has every row.

    Raises
    ------
    InputError
        If columns are missing or hold nothing that can be read, with `more`.
    """
    import pandas as pd

    mistakes = [*more, *_wrong_columns(table, ("duration_s", "gpus"))]
    if mistakes:
        raise InputError("job table", mistakes)
    read = _columns(table)
    tests = (
        ("submission time unknown", read["blank_at_s"]),
        ("submission time cannot be read", read["at_s"].isna()),
        ("run time unknown (still running, or not recorded)", read["blank_run_s"]),
        ("run time is not a number", read["run_s"].isna()),
        ("run time is zero or negative", ~(read["run_s"] > 0)),
        ("number of GPUs is not a number", read["gpus"].isna() & ~read["blank_gpus"]),
        ("number of GPUs is zero or negative", read["gpus"] <= 0),
    )
    left, excluded = pd.Series(True, index=read.index), []
    for reason, fails in tests:
        excluded.append((reason, int((left & fails).sum())))
        left &= ~fails
    usable = read[left]
    jobs = _with_ends(usable)
    account = DurationAccount(
        read=len(table),
        used=len(jobs),
        excluded=tuple(entry for entry in excluded if entry[1]),
        changed=tuple(entry for entry in _changes(usable, jobs) if entry[1]),
        rules=_rules(table, jobs),
    )
    return _in_canonical_order(jobs), account


def read_rows(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Read rows whose duration is asked for, in their order: the columns of `read_history`, ``run_s`` left out.

    Raises
    ------
    InputError
        If a column is missing, or a row has no submission time or no number of GPUs that can be read.
    """
    mistakes = list(_wrong_columns(rows, ("gpus",)))
    if not mistakes:
        read = _columns(rows)
        for name, column, rule in (
            ("submit" if "submit" in rows.columns else "submit_s", "at_s", "must be a time that can be read"),
            ("gpus", "gpus", "must be a number above 0, or not a number (NaN) where unknown"),
        ):
            wrong = read["at_s"].isna() if column == "at_s" else _not_gpus(read)
            for place in wrong.to_numpy().nonzero()[0][:_MOST_ROWS]:
                mistakes.append(Mistake(f"rows.{place}.{name}", rule, rows[name].iloc[[place]].tolist()[0]))
            if (beyond := int(wrong.sum()) - _MOST_ROWS) > 0:
                told = f"{rule}; {beyond:,} more rows are not"
                mistakes.append(Mistake(f"rows.*.{name}", told, more=beyond))
    if mistakes:
        raise InputError("jobs to predict", mistakes)
    return read


def _not_gpus(read: "pd.DataFrame") -> "pd.Series[bool]":
    return (read["gpus"].isna() & ~read["blank_gpus"]) | (read["gpus"] <= 0)


def _wrong_columns(table: object, needed: Sequence[str]) -> Iterator[Mistake]:
    """Mistakes of a table as a whole: no table, columns missing, twice there, or without a readable value."""
    import pandas as pd

    if not isinstance(table, pd.DataFrame):
        yield Mistake("", "must be a pandas DataFrame with a row per job", type(table).__name__)
        return
    names = [name for name in table.columns if isinstance(name, str)]
    for name in KNOWN:
        if names.count(name) > 1:
            yield Mistake(name, "must be there once", names.count(name))
    times = [name for name in ("submit_s", "submit") if name in names]
    if not times:
        near = did_you_mean("submit_s", [name for name in names if name not in KNOWN])
        yield Mistake(
            "submit_s", f"is a column that the table must have (or submit, as dates and times){near}"
        )
    if len(times) == 2:
        yield Mistake("submit", "must not be given beside submit_s: which one counts?")
    for name in needed:
        if name not in names:
            near = did_you_mean(name, [other for other in names if other not in KNOWN])
            yield Mistake(name, f"is a column that the table must have{near}")
    for name in (*times, *needed):
        if names.count(name) != 1 or table.empty:
            continue
        column = table[name]
        said = column[~_blank(column)]
        values = _seconds(column)[0] if name in times else _numbers(column)
        if len(said) and values.isna().all():
            what = "times or seconds" if name in times else "numbers"
            yield Mistake(
                name, f"must hold {what}, but not one of {len(said):,} can be read", said.iloc[:1].tolist()[0]
            )


def _columns(table: "pd.DataFrame") -> "pd.DataFrame":
    """Every column as numbers or texts; what cannot be read is unknown, and ``blank_...`` says what was not there."""
    import numpy as np
    import pandas as pd

    when = table["submit" if "submit" in table.columns else "submit_s"]
    at_s, clock_s = _seconds(when)
    found: dict[str, Any] = {"row": np.arange(len(table)), "at_s": at_s, "clock_s": clock_s}
    found["blank_at_s"] = _blank(when).to_numpy()
    for name in ("duration_s", "gpus", "wait_s", "limit_s", "estimate_s"):
        to = "run_s" if name == "duration_s" else name
        there = name in table.columns
        found[to] = _numbers(table[name]).to_numpy() if there else np.full(len(table), np.nan)
        found[f"blank_{to}"] = _blank(table[name]).to_numpy() if there else np.full(len(table), True)
    table_of_numbers = pd.DataFrame({name: np.asarray(values) for name, values in found.items()})
    texts = {}
    for name in (*GROUPS, "name"):
        values = table[name] if name in table.columns else [None] * len(table)
        texts[name] = pd.Series([_text(value) for value in values], dtype=object)  # so that None stays None
    return table_of_numbers.assign(**texts)


def _blank(column: "pd.Series[Any]") -> "pd.Series[bool]":
    """Where nothing was written: NaN, None, or text without a visible character."""
    return column.isna() | column.map(lambda value: isinstance(value, str) and not value.strip()).astype(bool)


def _numbers(column: "pd.Series[Any]") -> "pd.Series[float]":
    """Finite numbers, spans of time in seconds; NaN where there is none. A bool is no number."""
    import numpy as np
    import pandas as pd

    kind = column.dtype.kind
    if kind == "m":
        return pd.Series(column.dt.total_seconds(), index=column.index)
    if kind in "bMc":
        return pd.Series(np.nan, index=column.index)
    if kind == "O":
        column = column.astype(object).map(lambda value: value if _may_be_a_number(value) else None)
    values = pd.to_numeric(column, errors="coerce").astype(np.float64)
    return values.where(np.isfinite(values))


def _may_be_a_number(value: object) -> bool:
    return isinstance(value, (str, Number, Decimal)) and not isinstance(value, (bool, complex))


def _seconds(column: "pd.Series[Any]") -> tuple["pd.Series[float]", "pd.Series[float]"]:
    """Seconds that pass evenly, and seconds on the clock of the place (they differ where a time zone is written).

    Texts may have several offsets (a clock change lies between). Where some have one and some have none, those
    without cannot be read: nobody can tell what passed between them and the others.
    """
    import pandas as pd

    numbers = _numbers(column)
    if column.dtype.kind not in "MO" or numbers.notna().any():
        return numbers, numbers
    start = pd.Timestamp("1970-01-01")
    if column.dtype.kind == "M":
        evenly, local = column, column
        if column.dt.tz is not None:
            evenly, local = column.dt.tz_convert("UTC").dt.tz_localize(None), column.dt.tz_localize(None)
        return (evenly - start).dt.total_seconds(), (local - start).dt.total_seconds()
    text = column.astype(object).map(lambda value: "" if _text(value) is None else str(value).strip())
    parts = text.str.extract(_OFFSET)
    zoned = parts[1].notna()
    utc = pd.to_datetime(text, errors="coerce", format="ISO8601", utc=True).dt.tz_localize(None)
    clock = pd.to_datetime(parts[0].where(zoned, text), errors="coerce", format="ISO8601")
    if zoned.any():
        utc, clock = utc.where(zoned), clock.where(zoned)
    return (utc - start).dt.total_seconds(), (clock - start).dt.total_seconds()


def _text(value: object) -> str | None:
    """A name as text; a number that became 1001.0 beside unknown ones is 1001 again."""
    import pandas as pd

    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, float):
        if value != value:
            return None
        return str(int(value)) if value.is_integer() else str(value)
    return str(value).strip() or None


def _with_ends(usable: "pd.DataFrame") -> "pd.DataFrame":
    """The usable rows, what is impossible (a negative wait, a limit of 0) unknown, with the time each ended."""
    jobs = usable.copy()
    jobs["wait_s"] = jobs["wait_s"].where(jobs["wait_s"] >= 0)
    for name in ("limit_s", "estimate_s"):
        jobs[name] = jobs[name].where(jobs[name] > 0)
    jobs["end_s"] = jobs["at_s"] + jobs["wait_s"].fillna(0.0) + jobs["run_s"]
    return jobs[
        [
            "row",
            "at_s",
            "clock_s",
            "gpus",
            "run_s",
            "wait_s",
            "end_s",
            "limit_s",
            "estimate_s",
            *GROUPS,
            "name",
        ]
    ]


def _changes(usable: "pd.DataFrame", jobs: "pd.DataFrame") -> Iterator[tuple[str, int]]:
    for name, words in (("wait_s", "wait"), ("limit_s", "limit"), ("estimate_s", "estimate")):
        lost = jobs[name].isna() & ~usable[f"blank_{name}"]
        yield f"{words} that is no possible number, taken as unknown", int(lost.sum())
    same = [name for name in jobs.columns if name != "row"]
    yield "exact duplicates of another row, kept as jobs of their own", int(jobs.duplicated(same).sum())


def _rules(table: "pd.DataFrame", jobs: "pd.DataFrame") -> tuple[str, ...]:
    own = group_of(jobs)
    unknown = int(jobs["wait_s"].isna().sum())
    waits = (
        "The wait is known for every job: it ended at submission + wait + run time."
        if not unknown
        else f"The wait is unknown for {unknown:,} of {len(jobs):,} jobs: they are taken to have started when "
        "submitted, so they count as history somewhat before they really ended."
    )
    gpus = int(jobs["gpus"].isna().sum())
    return (
        "A job counts as history of later ones only once it has ended.",
        waits,
        f"A job's own history is that of its {own}." if own else "No user, team or cluster: no own history.",
        *([f"The number of GPUs is unknown for {gpus:,} jobs."] if gpus else []),
        "Of recent jobs only the short ones have ended: a job that ran for long counts for those that still run.",
    )


def group_of(jobs: "pd.DataFrame") -> str | None:
    """The column whose jobs count as a job's own history: the first of `GROUPS` that has a known value."""
    return next((name for name in GROUPS if jobs[name].notna().any()), None)


def _in_canonical_order(jobs: "pd.DataFrame") -> "pd.DataFrame":
    """By submission, then by everything else, so that the order of the table plays no part."""
    import numpy as np
    import pandas as pd

    keys = [
        pd.factorize(jobs[name], sort=True)[0] if name in (*GROUPS, "name") else jobs[name].to_numpy()
        for name in jobs.columns
        if name not in ("row", "at_s")
    ]
    return jobs.iloc[np.lexsort([*keys, jobs["at_s"].to_numpy()])].reset_index(drop=True)
