"""Rows of Helios' counts per virtual cluster and ten minutes: those that can be used, and why the others cannot."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.fairshare.model import DAY, Int64
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.helios_jobs import STEP_S
from gpuplan.traces.table import read_table

if TYPE_CHECKING:
    import pandas as pd

_STAMP = r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}"


@dataclass(frozen=True, slots=True, eq=False)
class HeliosRows:
    """The rows of some days and teams.

    Attributes
    ----------
    counts
        The columns asked for, GPUs, of the rows that can be used.
    team, step : int64[R]
        Of each of these rows: its place among the teams; ten minutes after the first day began.
    read, excluded
        Rows of the file; those left out, by reason.
    """

    counts: "pd.DataFrame"
    team: Int64
    step: Int64
    read: int
    excluded: tuple[tuple[str, int], ...]


def helios_rows(
    path: Path,
    columns: Sequence[str],
    running: Sequence[str],
    teams: Sequence[str],
    first_day: str,
    days: int,
    *,
    stranger: str,
    idle: str,
) -> HeliosRows:
    """The rows of some days and teams that can be used.

    Parameters
    ----------
    path
        ``earth_vc_sequence_10min.csv.gz``.
    columns, running
        Counts that are needed; those of them whose sum is 0 in the whole cluster where nothing ran.
    teams
        Virtual clusters that are used.
    first_day, days
        As ``YYYY-MM-DD``; how many days from it on.
    stranger, idle
        Reasons to leave out a row of another virtual cluster, and one of an instant at which nothing ran.

    Raises
    ------
    InputError
        If the file cannot be used, or has no count of these teams on these days.
    """
    import pandas as pd

    try:
        first = pd.Timestamp(first_day)
    except ValueError:
        raise InputError(
            path.name, [Mistake("first_day", "must be a day written as YYYY-MM-DD", first_day)]
        ) from None
    table = read_table(path, ("time", "vc", *columns))
    when = pd.to_datetime(
        table["time"].where(table["time"].str.fullmatch(_STAMP)), format="%Y-%m-%d %H:%M:%S", errors="coerce"
    )
    since = (when - first).dt.total_seconds()
    counts = table[list(columns)].apply(pd.to_numeric, errors="coerce").astype(float)
    usable = ((counts >= 0) & (counts < 1e6) & (counts % 1 == 0)).all(axis=1)
    nothing = counts[list(running)].sum(axis=1).where(usable).groupby(since).transform("sum") == 0
    tests = (
        ("no time that can be read", when.isna()),
        (f"on none of the {days} days from {first_day} on", ~((since >= 0) & (since < days * DAY))),
        ("not at a full ten minutes", since % STEP_S != 0),
        (stranger, ~table["vc"].isin(teams)),
        ("a count that is no whole number of GPUs: unknown", ~usable),
        (idle, nothing),
        ("of a virtual cluster and a time that were there before", table.duplicated(["time", "vc"])),
    )
    left = pd.Series(True, index=table.index)
    excluded = []
    for reason, fails in tests:
        excluded.append((reason, int((left & fails).sum())))
        left &= ~fails
    if not left.any():
        raise InputError(
            path.name, [Mistake("first_day", "must begin days with a count that can be used", first_day)]
        )
    return HeliosRows(
        counts[left],
        np.asarray(table["vc"][left].map({team: k for k, team in enumerate(teams)}), np.int64),
        np.asarray(since[left] // STEP_S, np.int64),
        len(table),
        tuple(reason for reason in excluded if reason[1]),
    )
