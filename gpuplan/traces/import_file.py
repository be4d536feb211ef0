"""A scenario made of other people's files, with the account of their rows, and as files of its own."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.allocation.model import AllocationScenario
from gpuplan.fairshare.jobs import Jobs
from gpuplan.fairshare.model import NEVER, FairshareScenario
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.text import printable
from gpuplan.traces.history import History

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.traces.recorded import Recorded

#: Columns of the file of jobs, in the order of the contract.
COLUMNS = (
    "job", "team", "submit_s", "gpus", "run_s", "limit_s", "min_runtime_s", "resumable", "priority", "gpu",
)  # fmt: skip

#: Width of comments in a scenario file.
_WIDTH = 100


@dataclass(frozen=True, eq=False)
class Imported:
    """What became of other people's files.

    Attributes
    ----------
    scenario : FairshareScenario or AllocationScenario
    account : Account
        Of every row of the first file.
    choices : dict of str to str
        How the scenario was made, a sentence by topic.
    history : History or None
        The jobs as they were read, names as they are in the scenario; None where there was only traffic.
    start_s : int
        Second 0 of the scenario in seconds of the history.
    mistakes : tuple of Mistake
        Rows that could not be read and were left out.
    traffic : tuple of Account
        Of the files of traffic.
    """

    scenario: FairshareScenario | AllocationScenario
    account: Account
    choices: Mapping[str, str]
    history: History | None = None
    start_s: int = 0
    mistakes: tuple[Mistake, ...] = ()
    traffic: tuple[Account, ...] = ()

    @cached_property
    def recorded(self) -> "Recorded | None":
        """What the scenario's jobs did, as it was, in seconds after its start; None where no start is recorded."""
        from gpuplan.traces.history_jobs import stretches
        from gpuplan.traces.recorded import recorded

        if self.history is None or stretches(self.history).empty:
            return None
        found = recorded(self.history).after(self.start_s)
        scenario = self.scenario
        if isinstance(scenario, FairshareScenario):
            names = set() if scenario.jobs is None else set(scenario.jobs.name.tolist())
        else:
            names = {job.name for job in scenario.batch}
        keep = [k for k, name in enumerate(found.job.tolist()) if name in names]
        columns = ("job", "team", "state", "gpus", "submit_s", "start_s", "end_s")
        chosen: dict[str, Any] = {name: getattr(found, name)[keep] for name in columns}
        strangers = len(found) - len(keep)
        if strangers:
            chosen["left_out"] = (*found.left_out, ("of a job that is not in the scenario", strangers))
        return replace(found, **chosen)

    def as_it_was(self, policies: Sequence[str] | None = None, *, widen: bool = False) -> Any:
        """What was done beside what each policy would have done, with the same figures.

        Parameters
        ----------
        policies
            Names of policies; None: ``easy`` and ``fair-share``, or on a day ``fifo`` and ``aware``.
        widen
            Whether a cluster that is smaller than what was held at once is made larger, for all.

        Returns
        -------
        gpuplan.traces.as_it_was.Compared or gpuplan.traces.as_it_was_day.DayCompared

        Raises
        ------
        InputError
            Where no start is recorded, or more was held at once than the cluster has.
        """
        if self.recorded is None or not len(self.recorded):
            raise InputError(self.account.source, [Mistake("", "must tell when jobs started, and does not")])
        from gpuplan.traces.recorded import recorded

        # all of the record, so that its account has every row, and work that is in no scenario is told
        everything = recorded(self.history) if self.history is not None else self.recorded
        if isinstance(self.scenario, FairshareScenario):
            from gpuplan.traces.as_it_was import compare_as_it_was

            chosen = ("easy", "fair-share") if policies is None else policies
            return compare_as_it_was(self.scenario, everything, chosen, start_s=self.start_s, widen=widen)
        from gpuplan.traces.as_it_was_day import compare_day

        chosen = ("fifo", "aware") if policies is None else policies
        return compare_day(self.scenario, everything, chosen, start_s=self.start_s, widen=widen)

    def __repr__(self) -> str:
        kind = type(self.scenario).__name__
        lines = [f"{kind} {printable(self.scenario.name)!r}", repr(self.account)]
        lines += [repr(account) for account in self.traffic]
        return "\n\n".join(lines)

    def _repr_html_(self) -> str:
        return "".join(account._repr_html_() for account in (self.account, *self.traffic))

    def to_yaml(self, jobs_file: str | None = None) -> str:
        """The scenario file, its account and its choices as comments.

        Parameters
        ----------
        jobs_file
            Name of the file beside it that holds the jobs of a fair-share scenario; None: they stand in the file.
        """
        scenario = self.scenario
        if isinstance(scenario, FairshareScenario):
            scenario = replace(scenario, jobs_file=jobs_file)
        return self._comments() + scenario.to_yaml()

    def save(self, path: str | Path) -> tuple[Path, ...]:
        """Write the scenario, and beside it the jobs and what ran as it was; what was there is replaced.

        ``my-cluster.yaml``, ``my-cluster.jobs.csv`` (fair share), ``my-cluster.as-it-was.csv`` (where starts are
        recorded; see `gpuplan.traces.recorded.read_recorded`).

        Parameters
        ----------
        path
            Name of the scenario file, ``.yaml`` or ``.yml``.

        Returns
        -------
        tuple of Path
            The files, the scenario first.

        Raises
        ------
        InputError
            If the name has another ending, or a file cannot be written.
        """
        target = Path(path)
        if target.suffix.lower() not in (".yaml", ".yml"):
            raise InputError(
                str(path), [Mistake("out", "must be the name of a scenario file, .yaml or .yml")]
            )
        written, was = [target], self.recorded
        try:
            if isinstance(self.scenario, FairshareScenario) and self.scenario.jobs is not None:
                written.append(target.with_suffix(".jobs.csv"))
                write_jobs(self.scenario.jobs, written[-1])
            if was is not None:
                written.append(target.with_suffix(".as-it-was.csv"))
                was.write(written[-1])
            beside = written[1].name if written[1:] and written[1].name.endswith(".jobs.csv") else None
            target.write_text(self.to_yaml(beside), encoding="utf-8", newline="\n")
        except OSError as error:
            rule = f"cannot be written: {error.strerror or error}"
            raise InputError(str(path), [Mistake("out", rule)]) from None
        return tuple(written)

    def report(self) -> dict[str, Any]:
        """Everything but the jobs as plain values, for JSON."""
        return {
            "scenario": self.scenario.name,
            "kind": self.scenario.kind,
            "fingerprint": self.scenario.fingerprint,
            "choices": dict(self.choices),
            "account": _plain(self.account),
            "traffic": [_plain(account) for account in self.traffic],
            "rows_with_mistakes": [
                {"line": mistake.line, "path": mistake.path, "rule": mistake.rule}
                for mistake in self.mistakes
            ],
        }

    def _comments(self) -> str:
        lines = ["Made by gpuplan import. How, and what became of every row:"]
        lines += [f"{topic}: {sentence}" for topic, sentence in self.choices.items()]
        for account in (self.account, *self.traffic):
            lines += [
                f"{group}: {what}: {value:,} {unit}"
                if isinstance(value, int)
                else f"{group}: {what}: {value:,.1f} {unit}"
                for group, what, value, unit in account.lines()
            ]
            lines += account.rules
        wrapped = (
            textwrap.wrap(printable(line), _WIDTH, subsequent_indent="  ") for line in dict.fromkeys(lines)
        )
        return "".join(f"# {line}\n" for lines_ in wrapped for line in lines_)


def _plain(account: Account) -> dict[str, Any]:
    return {
        "source": account.source,
        "rows": account.rows,
        "read": account.read,
        "used": account.used,
        "excluded": [{"reason": reason, "count": count} for reason, count in account.excluded],
        "changed": [{"what": what, "count": count} for what, count in account.changed],
        "amounts": [{"what": what, "amount": amount, "unit": unit} for what, amount, unit in account.amounts],
        "rules": list(account.rules),
    }


def jobs_table(jobs: Jobs) -> "pd.DataFrame":
    """The jobs as a table with the columns of a file of jobs; a limit that is not known is ``<NA>``."""
    import numpy as np
    import pandas as pd

    limit = pd.arrays.IntegerArray(jobs.limit_s.copy(), jobs.limit_s == NEVER)
    columns = (
        jobs.name,
        jobs.team,
        jobs.submit_s,
        jobs.gpus,
        jobs.run_s,
        limit,
        jobs.minimum_s,
        np.where(jobs.resumable, "yes", "no"),
        jobs.priority,
        jobs.gpu,
    )
    return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))


def write_jobs(jobs: Jobs, path: str | Path) -> None:
    """Write a file of jobs that `gpuplan.fairshare.job_table.read_jobs` reads back to equal jobs.

    Names are written as they are: those of an import are safe in a spreadsheet already.
    """
    jobs_table(jobs).to_csv(path, index=False, lineterminator="\n", encoding="utf-8")
