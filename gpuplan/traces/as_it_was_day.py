"""What a record says that was done on an allocation day, beside the plans of policies: the same figures, exact times.

A record is no plan: it starts jobs between steps, with sizes that need not be powers of two, on GPUs that it rarely
names, and the rules of plans do not bind it. So it is not a `gpuplan.allocation.plan.Plan`; it has its figures under
their names where they mean the same, and none elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpuplan.allocation.figures import UNITS, Figures
from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.plan import Plan, compare, ready
from gpuplan.allocation.problem import compile_problem
from gpuplan.fairshare.charts.clock import words
from gpuplan.fairshare.ledger import gpu_seconds
from gpuplan.fairshare.model import HOUR, Int64
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.side_by_side import SideBySide
from gpuplan.traces.as_it_was import AS_IT_WAS, HONESTY
from gpuplan.traces.as_it_was_day_figures import figures_of_day
from gpuplan.traces.as_it_was_day_match import DayStretches, Services, matched_day, services_of
from gpuplan.traces.as_it_was_places import peak
from gpuplan.traces.as_it_was_rows import gpu_rows
from gpuplan.traces.history import History
from gpuplan.traces.recorded import Recorded, recorded

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class DayAsItWas:
    """The record of an allocation day.

    Attributes
    ----------
    scenario
        The day; larger than it was given where it was widened.
    job : int64[S]
        Batch job of each stretch.
    start_s, end_s, gpus : int64[S]
        Seconds after the start of the horizon, within it; GPUs that were held.
    held : int64[R, T] or None
        GPUs that each app held in each step; None: not recorded.
    row_stretch, row_low, row_high : int64[n]
        Rows of GPUs that a Gantt draws each stretch on (high exclusive).
    figures
        By the names of `gpuplan.allocation.figures.UNITS`; None: the record does not tell, or it means nothing here.
    account
        What became of every stretch of the record.
    notes
        What must be known to read the comparison.
    """

    scenario: AllocationScenario
    job: Int64
    start_s: Int64
    end_s: Int64
    gpus: Int64
    held: Int64 | None
    row_stretch: Int64
    row_low: Int64
    row_high: Int64
    figures: Figures
    account: Account
    notes: tuple[str, ...]
    policy: str = AS_IT_WAS

    def to_frame(self) -> "pd.DataFrame":
        """A row per stretch: ``job, kind, gpus, start_hour, end_hour``, by start."""
        import pandas as pd

        batch = self.scenario.batch
        return pd.DataFrame(
            {
                "job": [batch[j].name for j in self.job.tolist()],
                "kind": [batch[j].kind for j in self.job.tolist()],
                "gpus": self.gpus,
                "start_hour": self.start_s / HOUR,
                "end_hour": self.end_s / HOUR,
            }
        )

    def __repr__(self) -> str:
        return repr(DayCompared({self.policy: self}))

    def _repr_html_(self) -> str:
        return DayCompared({self.policy: self})._repr_html_()


class DayCompared(SideBySide["DayAsItWas | Plan"]):
    """The record of a day and plans for it side by side; the notes of the record stand below the table."""

    units = UNITS
    noun: ClassVar[str] = "plan"

    @property
    def record(self) -> DayAsItWas:
        """The record."""
        found = self.results[AS_IT_WAS]
        assert isinstance(found, DayAsItWas)
        return found

    @property
    def plans(self) -> dict[str, Plan]:
        """The plans by policy."""
        return {name: found for name, found in self.results.items() if isinstance(found, Plan)}

    @property
    def remarks(self) -> list[str]:
        """What must be known to read the comparison, a sentence each."""
        return list(self.record.notes)


def compare_day(
    scenario: Any,
    record: Recorded | History,
    policies: Sequence[str] = ("fifo", "aware"),
    *,
    start_s: int | None = None,
    services: Services | None = None,
    widen: bool = False,
    **effort: Any,
) -> DayCompared:
    """What was done on a day beside what each policy would have planned.

    Parameters
    ----------
    scenario, record, start_s, services, widen
        As in `day_as_it_was`.
    policies, **effort
        As in `gpuplan.allocation.plan.compare`.

    Raises
    ------
    InputError
        As `day_as_it_was`, and for an unknown policy.
    """
    done = day_as_it_was(scenario, record, start_s=start_s, services=services, widen=widen)
    return DayCompared({AS_IT_WAS: done, **compare(done.scenario, policies, **effort).plans})


def day_as_it_was(
    scenario: Any,
    record: Recorded | History,
    *,
    start_s: int | None = None,
    services: Services | None = None,
    widen: bool = False,
) -> DayAsItWas:
    """The record of the batch jobs of an allocation day.

    Parameters
    ----------
    scenario
        An `AllocationScenario` with batch jobs named as in the record, or the mapping of a file.
    record
        Stretches of running, or the history that has them.
    start_s
        Start of the horizon on the clock of the record. None: the scenario's own start, on that clock.
    services
        GPUs that the real-time apps held, per step, where that was recorded.
    widen
        Whether GPUs are added (whole nodes) where the cluster is smaller than what the record held at once, for the
        plans as well. Otherwise that is an error.

    Raises
    ------
    InputError
        If no batch job is in the record, its start cannot be told, services do not fit, or the cluster is too small.
    """
    day = ready(scenario)
    stretches = recorded(record) if isinstance(record, History) else record
    found = matched_day(day, stretches, start_s)
    held = services_of(day, services)
    day, widened = _wide_enough(day, found, held, widen)
    problem = compile_problem(day)
    free = np.ones(day.cluster.gpus, np.bool_)
    free[list(day.cluster.unavailable)] = False
    rows = gpu_rows(found.start_s, found.end_s, found.gpus, free, day.cluster.node_size)
    figures = figures_of_day(problem, found, held)
    notes = (*HONESTY, *_notes(day, found, held), *widened)
    return DayAsItWas(
        day, found.job, found.start_s, found.end_s, found.gpus, held, *rows, figures, found.account, notes
    )


def _wide_enough(
    day: AllocationScenario, found: DayStretches, held: Int64 | None, widen: bool
) -> tuple[AllocationScenario, tuple[str, ...]]:
    """The day on a cluster that has room for what was held at once, and what was done for it."""
    step_s = day.horizon.step_s
    edges = np.arange(day.horizon.steps, dtype=np.int64) * step_s
    services = np.zeros(len(edges), np.int64) if held is None else held.sum(axis=0)
    most, when = peak(
        np.concatenate((found.start_s, edges)),
        np.concatenate((found.end_s, edges + step_s)),
        np.concatenate((found.gpus, services)),
    )
    given = day.cluster.n_available
    if most <= given:
        return day, ()
    if not widen:
        rule = (
            f"must have at least {most:,} GPUs that are available: the record held so many at once, "
            f"{when / HOUR:.2f} h after the start; or let it be widened"
        )
        raise InputError(day.name, [Mistake("cluster.gpus", rule, given)])
    node = day.cluster.node_size if day.cluster.gpus_per_node else 1
    gpus = day.cluster.gpus + -(-(most - given) // node) * node
    said = (
        f"The cluster was stated with {given:,} GPUs, and the record held up to {most:,} at once: it has {gpus:,} "
        "here, for the record and for every plan."
    )
    return replace(day, cluster=replace(day.cluster, gpus=gpus)).replace({}), (said,)


def _notes(day: AllocationScenario, found: DayStretches, held: Int64 | None) -> tuple[str, ...]:
    """What is known and not known of this record, a sentence each."""
    sizes = np.array([job.gpus for job in day.batch], np.int64)[found.job]
    odd = int((sizes != found.gpus).sum())
    notes = [
        "The record tells how many GPUs work held, not which: it is drawn on the lowest rows that were free. "
        "It is held to no rule of plans (whole steps, blocks, nodes), so no bound holds for it.",
    ]
    if odd:
        more = gpu_seconds(sizes - found.gpus, found.end_s - found.start_s) / HOUR
        notes.append(
            f"{odd:,} of {len(found.job):,} stretches held other sizes than the plans' blocks, which would be "
            f"{abs(more):,.1f} GPU-hours {'more' if more >= 0 else 'less'}: the record has its own sizes."
        )
    step_s = day.horizon.step_s
    rounding = sum(
        job.gpus * (day.steps_of(job.hours) * step_s - job.hours * HOUR)
        for job in day.batch
        if job.max_gpus is None
    )
    if rounding >= 1:
        notes.append(
            f"Plans hold GPUs for whole steps of {words(step_s)}: up to {rounding / HOUR:,.1f} GPU-hours more than the "
            "run times of these jobs. That much of their utilization and value is rounding, not gain."
        )
    if held is None:
        notes.append(
            "What the real-time apps held is not recorded: the record has no utilization, coverage or objective, and "
            "its Gantt has batch work alone."
        )
    if found.elsewhere_s:
        notes.append(
            f"Jobs of the record that are not in the scenario held {found.elsewhere_s / HOUR:,.1f} GPU-hours on this "
            "day: no plan has them, and no figure."
        )
    return tuple(notes)
