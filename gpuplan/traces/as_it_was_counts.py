"""What was done where a record has counts alone: GPUs that ran and that were waited for, by team and step of time.

Counts tell no job from another: no wait, no Gantt, no end. What they tell is measured as `gpuplan.fairshare.figures`
measures runs, and stands under the same names; everything else is None.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gpuplan.fairshare.charts.account import Account as TeamAccount
from gpuplan.fairshare.figures import MEANINGS, SERVED, UNITS, Figures
from gpuplan.fairshare.model import HOUR, Bools, FairshareScenario, Int64
from gpuplan.fairshare.problem import Problem, compile_problem
from gpuplan.fairshare.run import Run, compare
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.side_by_side import SideBySide
from gpuplan.traces.as_it_was import AS_IT_WAS, HONESTY

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Counts of ``V`` teams (in the order of a scenario's tree) at ``S`` steps.

    Attributes
    ----------
    source
        Name of the file.
    step_s
        Seconds from one step to the next; divides an hour.
    running, waiting : int64[V, S]
        GPUs that ran, and that waiting jobs asked for; -1: unknown.
    account
        What became of every row.
    """

    source: str
    step_s: int
    running: Int64
    waiting: Int64
    account: Account

    @property
    def known(self) -> Bools:
        """Steps in which all teams are known, bool[S]."""
        return np.asarray(((self.running >= 0) & (self.waiting >= 0)).all(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class CountsAsItWas:
    """Counts measured with the figures of runs.

    Attributes
    ----------
    scenario
        Whose teams and shares they are measured against.
    figures
        By the names of `gpuplan.fairshare.figures.UNITS`; None: counts do not tell.
    team_shares : dict
        Delivered / owed of each team; None where nothing was owed.
    by_hour
        GPU-seconds per team and hour, as charts draw them.
    known_s : int64[H]
        Seconds of each hour that are known.
    account, notes
        What became of every row; what must be known to read a comparison.
    """

    scenario: FairshareScenario
    figures: Figures
    team_shares: dict[str, float | None]
    by_hour: TeamAccount
    known_s: Int64
    account: Account
    notes: tuple[str, ...]
    policy: str = AS_IT_WAS

    def __repr__(self) -> str:
        return repr(CountsCompared({self.policy: self}))

    def _repr_html_(self) -> str:
        return CountsCompared({self.policy: self})._repr_html_()


class CountsCompared(SideBySide["CountsAsItWas | Run"]):
    """Counts and runs of policies side by side; the notes of the counts stand below the table."""

    units = UNITS
    meanings = MEANINGS
    noun: ClassVar[str] = "run"

    @property
    def record(self) -> CountsAsItWas:
        """The counts."""
        found = self.results[AS_IT_WAS]
        assert isinstance(found, CountsAsItWas)
        return found

    @property
    def runs(self) -> dict[str, Run]:
        """The runs by policy."""
        return {name: found for name, found in self.results.items() if isinstance(found, Run)}

    @property
    def remarks(self) -> list[str]:
        """What must be known to read the comparison, a sentence each."""
        return list(self.record.notes)


def compare_counts(record: CountsAsItWas, policies: Sequence[str] = ("easy", "fair-share")) -> CountsCompared:
    """Counts beside what each policy makes of the scenario (whose jobs are generated, or come from elsewhere).

    Raises
    ------
    InputError
        For an unknown policy.
    """
    return CountsCompared({AS_IT_WAS: record, **compare(record.scenario, policies).runs})


def counts_as_it_was(scenario: FairshareScenario, counts: Counts) -> CountsAsItWas:
    """Measure counts with the figures of runs.

    Occupancy is GPU-time that ran / GPU-time installed in the steps that are known. Owed in an hour is the lower of the
    entitlement and what ran and was waited for, as in runs, but of all work: counts do not tell which had a minimum run
    time. Of hours that are known in part, that part counts.

    Parameters
    ----------
    scenario
        Its teams and shares.
    counts
        A row per team of its tree.

    Raises
    ------
    InputError
        If the counts do not fit the scenario, or nothing in them is known.
    """
    problem = compile_problem(scenario)
    teams = problem.tree.teams
    mistakes = []
    if counts.running.shape != counts.waiting.shape or len(counts.running) != len(teams):
        mistakes.append(
            Mistake("running", f"must have a row for each of the {len(teams)} teams", counts.running.shape)
        )
    if counts.step_s < 1 or HOUR % counts.step_s:
        mistakes.append(Mistake("step_s", "must divide an hour", counts.step_s))
    if len(problem.epochs) > 1:
        mistakes.append(Mistake("budget_changes", "must be none: counts are measured against one tree"))
    if not mistakes and not counts.known.any():
        mistakes.append(Mistake("", "no step is known for all teams"))
    if mistakes:
        raise InputError(counts.source, mistakes)
    known = counts.known
    hours = _Hours(counts, known)
    figures, ratios = _figures(problem, counts, known, hours)
    share = np.array([float(problem.tree.exact[leaf]) for leaf in problem.tree.leaves.tolist()])
    edges = np.append(
        np.arange(hours.ran.shape[1], dtype=np.int64) * HOUR, counts.running.shape[1] * counts.step_s
    )
    owed = np.minimum(problem.gpus * share[:, None] * hours.known_s, hours.wanted)
    by_hour = TeamAccount(edges, hours.ran, np.zeros_like(hours.ran), owed, problem.gpus * share)
    told = dict(zip(teams, ratios, strict=True))
    notes = _notes(counts, known)
    return CountsAsItWas(scenario, figures, told, by_hour, hours.known_s, counts.account, notes)


class _Hours:
    """Counts as GPU-seconds per team and hour: what ran, what was wanted, and seconds that are known."""

    def __init__(self, counts: Counts, known: Bools) -> None:
        each = HOUR // counts.step_s
        first = np.arange(0, len(known), each)

        def summed(values: Int64) -> Int64:
            return np.asarray(
                np.add.reduceat(np.where(known, values, 0), first, axis=-1) * counts.step_s, np.int64
            )

        self.ran = summed(counts.running)
        self.wanted = summed(counts.running + counts.waiting)
        self.known_s = summed(np.ones(len(known), np.int64))


def _figures(
    problem: Problem, counts: Counts, known: Bools, hours: _Hours
) -> tuple[Figures, list[float | None]]:
    """The figures that counts tell, and delivered / owed of each team; sums are exact."""
    ran, wanted = int(hours.ran.sum()), int(hours.wanted.sum())
    installed = problem.gpus * int(known.sum()) * counts.step_s
    owed, delivered = [], []
    for row, leaf in enumerate(problem.tree.leaves.tolist()):
        share = problem.gpus * problem.tree.exact[leaf]
        entitled = [share * seconds for seconds in hours.known_s.tolist()]
        mine = [
            min(Fraction(want), most) for want, most in zip(hours.wanted[row].tolist(), entitled, strict=True)
        ]
        got = hours.ran[row].tolist()
        owed.append(sum(mine, Fraction(0)))
        delivered.append(sum(got))
    ratios = [float(d / o) if o else None for d, o in zip(delivered, owed, strict=True)]
    told = [ratio for ratio in ratios if ratio is not None]
    total = sum(owed, Fraction(0))
    given = sum((min(Fraction(d), o) for d, o in zip(delivered, owed, strict=True)), Fraction(0))
    squares = sum(ratio * ratio for ratio in told)
    figures: Figures = dict.fromkeys(UNITS)
    figures |= {
        "occupancy": ran / installed,
        "delivered_share": float(given / total) if total else 1.0,
        "delivered_worst_team": min(told, default=1.0),
        "teams_served": sum(ratio is None or ratio >= SERVED for ratio in ratios),
        "jain": sum(told) ** 2 / (len(told) * squares) if squares else 1.0,
        "outstanding": wanted / installed,
    }
    return figures, ratios


def _notes(counts: Counts, known: Bools) -> tuple[str, ...]:
    lost = int((~known).sum())
    minutes = counts.step_s / 60
    return (
        *HONESTY,
        "The record has counts, not jobs: it tells no waits, no ends and no place, and no Gantt of it can be drawn.",
        f"What it owed and gave is of all work, in samples {minutes:g} min apart; under the policies only work with a "
        "minimum run time counts as owed and given, so impact has no counterpart in the record.",
        "Under the policies run the jobs of the scenario; where those are generated, their demand alone follows the "
        "counts.",
        f"{lost:,} of {len(known):,} steps are not known for all teams and are in no figure of the record.",
    )


def described(record: Any) -> str:
    """The figures that counts tell, in a line."""
    found = record.figures
    parts = [
        f"{name.replace('_', ' ')} {100 * found[name]:.1f} %"
        for name in ("occupancy", "delivered_share", "delivered_worst_team")
        if found[name] is not None
    ]
    return ", ".join(parts)
