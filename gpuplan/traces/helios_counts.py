"""What SenseTime's Earth cluster (Helios, 2020) did, as counts: GPUs that ran and that were waited for.

The published excerpt has no jobs, so no waits and no Gantt can be shown as they were; occupancy, and what each virtual
cluster was owed and given, can. Reads ``earth_vc_sequence_10min.csv.gz`` (see `gpuplan.traces.helios`): samples, not
means, of `S-Lab-System-Group/HeliosData`, CC BY 4.0.
"""

from pathlib import Path

import numpy as np

from gpuplan.fairshare.model import DAY, FairshareScenario, Int64
from gpuplan.fairshare.problem import compile_problem
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.as_it_was_counts import Counts, CountsAsItWas, counts_as_it_was
from gpuplan.traces.helios_jobs import STEP_S
from gpuplan.traces.table import read_table

_FILE = "earth_vc_sequence_10min.csv.gz"

_STAMP = r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}"

#: Columns of the counts, GPUs.
_RUNNING, _WAITING = "running_gpu_num", "pending_gpu_num"


def helios_as_it_was(
    folder: str | Path, scenario: FairshareScenario, first_day: str = "2020-05-01"
) -> CountsAsItWas:
    """The counts of a scenario of `gpuplan.traces.helios.helios_weeks`, measured with the figures of its runs.

    Parameters
    ----------
    folder
        Where ``earth_vc_sequence_10min.csv.gz`` lies.
    scenario
        With virtual clusters as teams, and an end after whole days.
    first_day
        Its first day, as ``YYYY-MM-DD``.

    Raises
    ------
    InputError
        If the file cannot be used, or has no count of these teams on these days.
    """
    teams = compile_problem(scenario).tree.teams
    if scenario.until_s is None or scenario.until_s % DAY:
        rule = "must have an end after whole days to be laid beside counts"
        raise InputError(scenario.name, [Mistake("until_s", rule, scenario.until_s)])
    return counts_as_it_was(
        scenario, read_counts(Path(folder) / _FILE, teams, first_day, scenario.until_s // DAY)
    )


def read_counts(path: Path, teams: tuple[str, ...], first_day: str, days: int) -> Counts:
    """Counts of the teams on some days; steps in which nothing ran anywhere are unknown (maintenance)."""
    import pandas as pd

    try:
        first = pd.Timestamp(first_day)
    except ValueError:
        raise InputError(
            path.name, [Mistake("first_day", "must be a day written as YYYY-MM-DD", first_day)]
        ) from None
    table = read_table(path, ("time", "vc", _RUNNING, _WAITING))
    when = pd.to_datetime(
        table["time"].where(table["time"].str.fullmatch(_STAMP)), format="%Y-%m-%d %H:%M:%S", errors="coerce"
    )
    since = (when - first).dt.total_seconds()
    counts = table[[_RUNNING, _WAITING]].apply(pd.to_numeric, errors="coerce").astype(float)
    usable = ((counts >= 0) & (counts < 1e6) & (counts % 1 == 0)).all(axis=1)
    idle = counts[_RUNNING].where(usable).groupby(since).transform("sum") == 0
    tests = (
        ("no time that can be read", when.isna()),
        (f"on none of the {days} days from {first_day} on", ~((since >= 0) & (since < days * DAY))),
        ("not at a full ten minutes", since % STEP_S != 0),
        ("of a virtual cluster that is no team of the scenario", ~table["vc"].isin(teams)),
        ("a count that is no whole number of GPUs: unknown", ~usable),
        ("nothing ran in the whole cluster: taken for maintenance, unknown", idle),
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
    row = table["vc"][left].map({team: k for k, team in enumerate(teams)}).to_numpy(np.int64)
    step = (since[left] // STEP_S).to_numpy(np.int64)

    def gpus(column: str) -> Int64:
        found = np.full((len(teams), days * DAY // STEP_S), -1, np.int64)
        found[row, step] = counts.loc[left, column].to_numpy(np.int64)
        return found

    running, waiting = gpus(_RUNNING), gpus(_WAITING)
    account = Account(
        path.name,
        "counts",
        len(table),
        int(left.sum()),
        tuple(reason for reason in excluded if reason[1]),
        amounts=(
            ("ran, by samples", float(np.maximum(running, 0).sum()) * STEP_S / 3600, "GPU-hours"),
            ("waited for, by samples", float(np.maximum(waiting, 0).sum()) * STEP_S / 3600, "GPU-hours"),
        ),
        rules=("A count is taken to hold for the ten minutes after it (a sample, not a mean).",),
        made="record",
    )
    return Counts(path.name, STEP_S, running, waiting, account)
