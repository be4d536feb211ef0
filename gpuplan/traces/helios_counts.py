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
from gpuplan.traces.helios_rows import helios_rows

_FILE = "earth_vc_sequence_10min.csv.gz"

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
    rows = helios_rows(
        path,
        (_RUNNING, _WAITING),
        (_RUNNING,),
        teams,
        first_day,
        days,
        stranger="of a virtual cluster that is no team of the scenario",
        idle="nothing ran in the whole cluster: taken for maintenance, unknown",
    )

    def gpus(column: str) -> Int64:
        found = np.full((len(teams), days * DAY // STEP_S), -1, np.int64)
        found[rows.team, rows.step] = rows.counts[column].to_numpy(np.int64)
        return found

    running, waiting = gpus(_RUNNING), gpus(_WAITING)
    account = Account(
        path.name,
        "counts",
        rows.read,
        len(rows.counts),
        rows.excluded,
        amounts=(
            ("ran, by samples", float(np.maximum(running, 0).sum()) * STEP_S / 3600, "GPU-hours"),
            ("waited for, by samples", float(np.maximum(waiting, 0).sum()) * STEP_S / 3600, "GPU-hours"),
        ),
        rules=("A count is taken to hold for the ten minutes after it (a sample, not a mean).",),
        made="record",
    )
    return Counts(path.name, STEP_S, running, waiting, account)
