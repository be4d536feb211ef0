"""What a record says that was done, as one more run beside what each policy would have done.

The recorded starts and ends of a scenario's jobs become a `gpuplan.fairshare.run.Run` named `AS_IT_WAS`: the same
Gantt, the same tables, the same figures by the same code. What such a comparison can and cannot say is in `HONESTY`,
and stands below every table and chart.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuplan.fairshare.check import named, peaks, sentences
from gpuplan.fairshare.figures import Figures
from gpuplan.fairshare.model import HOUR, NEVER, Int64
from gpuplan.fairshare.problem import Problem
from gpuplan.fairshare.raw import FINISHED, RUNNING, RawRun, Stretches
from gpuplan.fairshare.run import Comparison, Run, compare, ready
from gpuplan.fairshare.words import gpus_text
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import shorten
from gpuplan.traces.as_it_was_match import Matched, matched, on_nodes
from gpuplan.traces.as_it_was_places import Places
from gpuplan.traces.history import GROUPS, History
from gpuplan.traces.recorded import Recorded, recorded

if TYPE_CHECKING:
    import pandas as pd

#: Name of the record among the policies.
AS_IT_WAS = "as-it-was"

#: What a comparison of a record with policies cannot say, whatever the trace.
HONESTY = (
    "Open loop: under every policy the jobs come when they came then, as large and as long as they were. People "
    "would have acted differently: asked for less, cancelled sooner, come back later.",
    "The record has causes that no policy here sees: nodes that were down, reservations, limits per user, jobs that "
    "waited for other jobs. A wait of the record is not all the scheduler's.",
)


class AsItWas(Run):
    """The record of a scenario's jobs as a run: figures, tables and charts of `Run` hold for it.

    Goodput counts the run time that the scenario replays: what a failed job ran is work, as under every policy
    (`endings` tells what became of it). Preemptions are those that the record names.

    Attributes
    ----------
    recorded : Recorded
        Its stretches, in seconds after the start of the scenario.
    account : Account
        What became of every stretch of the record.
    notes : tuple of str
        What must be known to read the comparison; `HONESTY` among them.
    """

    def __init__(
        self, problem: Problem, raw: RawRun, stretches: Recorded, account: Account, notes: tuple[str, ...]
    ) -> None:
        super().__init__(problem, AS_IT_WAS, raw, 0.0)
        self.recorded = stretches
        self.account = account
        self.notes = notes

    @cached_property
    def figures(self) -> Figures:
        """The figures by name, as those of every run."""
        cut = int((self.recorded.group == "preempted").sum())
        return {**super().figures, "preemptions": cut}

    @cached_property
    def jobs(self) -> "pd.DataFrame":
        """A row per job, as of every run; preemptions are those recorded."""
        table = super().jobs
        cut = self.stretches.job[self.recorded.group == "preempted"]
        return table.assign(preemptions=np.bincount(cut, minlength=len(table)))

    @cached_property
    def endings(self) -> "pd.DataFrame":
        """How the stretches ended: ``ended`` (a group of states), ``stretches, gpu_hours, share`` of the GPU-time."""
        import pandas as pd

        rows, group = self.stretches, self.recorded.group
        held = self.problem.jobs.gpus[rows.job] * (rows.end_s - rows.start_s)
        amounts = [int(held[group == name].sum()) for name in GROUPS]
        table = pd.DataFrame(
            {
                "ended": GROUPS,
                "stretches": [int((group == name).sum()) for name in GROUPS],
                "gpu_hours": [amount / HOUR for amount in amounts],
                "share": [amount / max(1, sum(amounts)) for amount in amounts],
            }
        )
        return table[table["stretches"] > 0].reset_index(drop=True)

    def to_frame(self) -> "pd.DataFrame":
        """A row per stretch, as of every run, and ``recorded_state``: how the record says that it ended."""
        return super().to_frame().assign(recorded_state=self.recorded.state)

    def check(self) -> list[str]:
        """Contradictions of the record with itself and with the cluster, a sentence each."""
        problem, raw, rows = self.problem, self.raw, self.stretches
        found = sentences(
            np.flatnonzero(rows.start_s < problem.jobs.submit_s[rows.job]),
            lambda s: f"{named(problem, raw, s)} starts before its submission.",
        )
        order = np.lexsort((rows.start_s, rows.job))
        again = rows.job[order][1:] == rows.job[order][:-1]
        early = order[1:][again & (rows.start_s[order][1:] < rows.end_s[order][:-1])]
        found += sentences(early, lambda s: f"{named(problem, raw, s)} starts while it still runs elsewhere.")
        of = rows.place_stretch
        high, when = peaks(
            rows.place_node, rows.start_s[of], rows.end_s[of], rows.place_gpus, len(problem.node_gpus)
        )
        return found + sentences(
            np.flatnonzero(high > problem.node_gpus),
            lambda x: f"Node {x} has {high[x]} GPUs in use at {when[x]} s; it has {problem.node_gpus[x]}.",
        )

    def why(self, job: str, t: int | str) -> str:
        """What the record says of a job at an instant, and what was free; why it waited is not recorded."""
        j, at = self.row_of(job), self.instant(t)
        jobs, rows = self.problem.jobs, self.stretches
        name = shorten(str(jobs.name[j]))
        if j in self.reasons:
            return f"{name} is set aside here: {self.reasons[j]}."
        if jobs.submit_s[j] > at:
            return f"{name} was not submitted yet."
        mine = rows.job == j
        if (mine & (rows.start_s <= at) & (at < rows.end_s)).any():
            return f"{name} ran."
        if not (mine & (rows.start_s > at)).any() and mine.any():
            return f"{name} was over."
        runs = (rows.start_s <= at) & (at < rows.end_s)
        free = self.problem.gpus - int(jobs.gpus[rows.job[runs]].sum())
        return (
            f"{name} waited for {gpus_text(int(jobs.gpus[j]))} while {free:,} of {self.problem.gpus:,} were in no "
            "other job of this scenario. The record does not say why."
        )

    def __repr__(self) -> str:
        return super().__repr__().replace("<Run ", "<AsItWas ", 1)


class Compared(Comparison):
    """The record and policies side by side; the notes of the record stand below the table."""

    @property
    def record(self) -> AsItWas:
        """The record."""
        found = self.results[AS_IT_WAS]
        assert isinstance(found, AsItWas)
        return found

    @property
    def remarks(self) -> list[str]:
        """What must be known to read the comparison, a sentence each."""
        return [*self.record.notes, *super().remarks]


def compare_as_it_was(
    scenario: Any,
    record: Recorded | History,
    policies: Sequence[str] = ("easy", "fair-share"),
    *,
    start_s: int | None = None,
    widen: bool = False,
) -> Compared:
    """What was done beside what each policy would have done with the same jobs on the same cluster.

    Parameters
    ----------
    scenario, record, start_s, widen
        As in `as_it_was`.
    policies
        Some of `gpuplan.fairshare.policies.POLICIES`.

    Raises
    ------
    InputError
        As `as_it_was`, and for an unknown policy.
    """
    done = as_it_was(scenario, record, start_s=start_s, widen=widen)
    return Compared({AS_IT_WAS: done, **compare(done.scenario, policies).runs})


def as_it_was(
    scenario: Any, record: Recorded | History, *, start_s: int | None = None, widen: bool = False
) -> AsItWas:
    """The record of a scenario's jobs as a run.

    Jobs are found by their names. What ran before the start or after the end of the scenario is cut off there, as
    everything is that a policy runs. A record says on how many GPUs work ran, not on which: it is put on the fullest
    node that has room.

    Parameters
    ----------
    scenario
        A `FairshareScenario` with jobs of the record, or the mapping of a scenario file.
    record
        Stretches of running, or the history that has them.
    start_s
        Second 0 of the scenario, on the clock of the record. None: as most submissions have it.
    widen
        Whether nodes are added where the cluster is smaller than what the record held at once (to the scenario of the
        run as well, so that policies have them too). Otherwise that is an error.

    Raises
    ------
    InputError
        If no job of the scenario is in the record, its start cannot be told, or the cluster is too small.
    """
    checked = ready(scenario)
    stretches = recorded(record) if isinstance(record, History) else record
    found = matched(checked, stretches, start_s)
    problem, placed, widened = on_nodes(checked, found, widen=widen)
    kept = problem.mask[found.job] != 0
    found = found.of(kept, "of a job that no pool of this cluster can run, as it is stated")
    raw = _raw(problem, found, placed)
    notes = (*HONESTY, *found.notes(problem.jobs), *widened, *_of_places(placed, found, problem))
    return AsItWas(problem, raw, found.rows, found.account, notes)


def _raw(problem: Problem, found: Matched, placed: Places) -> RawRun:
    """The stretches as what a policy hands back: all charged, none protected, kept up to the run time of the job."""
    start, end, job = found.rows.start_s, found.rows.end_s, found.job
    until, n = problem.until_s, len(job)
    last = until if until < NEVER else int(max(end.max(), problem.jobs.submit_s.max()))
    columns = (
        *(job, start, end),
        np.zeros(n, np.int64),
        _kept(job, end - start, problem.jobs.run_s),
        np.ones(n, np.bool_),
        start,
        np.where((end < last) | (until == NEVER), FINISHED, RUNNING).astype(np.int8),
        *(placed.stretch, placed.node, placed.gpus),
    )
    drains = np.full(len(problem.scenario.drains), NEVER)  # the record's repairs, if any, are not told
    return RawRun(Stretches(*columns), last, drains, drains.copy(), problem.set_aside)


def _kept(job: Int64, ran: Int64, run_s: Int64) -> Int64:
    """What outlives each stretch, seconds: of a job's attempts the last ones, up to the run time that it has here."""
    order = np.lexsort((np.arange(len(job)), job))[
        ::-1
    ]  # stretches are by start: from the last of each job back
    later = np.cumsum(ran[order]) - ran[order]
    heads = np.flatnonzero(np.append([True], job[order][1:] != job[order][:-1]))
    later -= np.repeat(later[heads], np.diff(np.append(heads, len(job))))
    kept = np.zeros(len(job), np.int64)
    kept[order] = np.clip(run_s[job[order]] - later, 0, ran[order])
    return kept


def _of_places(placed: Places, found: Matched, problem: Problem) -> tuple[str, ...]:
    """How the record was drawn, and on which nodes."""
    said = "The record tells how many GPUs work held, not which: it is drawn on the fullest node with room for it."
    if len(placed.split):
        said += (
            f" {len(placed.split):,} of {len(found.job):,} stretches found none and are drawn on more nodes than they "
            "need; where they stood is not known."
        )
    drained = (
        "The drains of the scenario are the policies' alone: when nodes were away, the record does not tell.",
    )
    return (said, *(drained if problem.scenario.drains else ()))
