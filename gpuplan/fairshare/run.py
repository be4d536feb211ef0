"""Runs: simulate a scenario under a policy, and what is known about the result."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from gpuplan import run_log
from gpuplan.fairshare import figures as counting
from gpuplan.fairshare.figures import MEANINGS, UNITS, Figures, Owed
from gpuplan.fairshare.hours import Hours, by_team
from gpuplan.fairshare.ledger import Ledger, ledger
from gpuplan.fairshare.model import HOUR, FairshareScenario
from gpuplan.fairshare.raw import RawRun, Stretches
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, shorten
from gpuplan.side_by_side import SideBySide, as_text, require_names_apart

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.fairshare.policies import Policy
    from gpuplan.fairshare.problem import Problem

Array = TypeVar("Array", bound=npt.NDArray[Any])


class Run:
    """What a policy made of a scenario; arrays are read-only.

    Attributes
    ----------
    scenario : FairshareScenario
    policy : str
    problem : Problem
        The scenario as arrays: ``problem.jobs``, ``problem.tree``.
    stretches : Stretches
        Unbroken stretches of running, by start.
    end_s : int
        The run ended there, seconds after its start.
    seconds : float
        Wall-clock time of the policy (not part of the fingerprint).
    """

    def __init__(self, problem: "Problem", policy: "Policy | str", raw: RawRun, seconds: float) -> None:
        run_log.ran(problem.scenario)
        self.problem = problem
        self.scenario: FairshareScenario = problem.scenario
        self.policy = policy if isinstance(policy, str) else policy.name
        self.raw = _read_only(raw)
        self.stretches: Stretches = self.raw.stretches
        self.end_s = raw.end_s
        self.seconds = seconds

    # ----------------------------------------------------------------- figures

    @cached_property
    def ledger(self) -> Ledger:
        """What became of each job: states, waits, work kept and lost, as arrays."""
        return ledger(self.problem, self.raw)

    @cached_property
    def owed(self) -> Owed:
        """What each team was owed and got, exact."""
        return Owed(self.problem, self.raw, self.ledger)

    @cached_property
    def figures(self) -> Figures:
        """The figures by name (units and meanings in `gpuplan.fairshare.figures`)."""
        return counting.figures(self.problem, self.raw, self.ledger, self.owed)

    @cached_property
    def reasons(self) -> dict[int, str]:
        """Rows of the jobs that were set aside, with the reason."""
        return {**self.problem.set_aside, **self.raw.set_aside}

    @cached_property
    def set_aside(self) -> dict[str, str]:
        """Jobs that can never run, by name, with the reason."""
        return {str(self.problem.jobs.name[j]): reason for j, reason in sorted(self.reasons.items())}

    @property
    def stopped(self) -> str:
        """Why the run was stopped before its end, as a sentence; empty where it was not."""
        return self.raw.stopped

    @cached_property
    def hours(self) -> Hours:
        """GPU-seconds by team and hour: allocated, unallocated, wanted."""
        return self.over(HOUR)

    def over(self, step_s: int) -> Hours:
        """The same by team and any step of time, seconds."""
        return by_team(self.problem, self.raw, self.ledger, step_s)

    def check(self) -> list[str]:
        """Rules that the run breaks, a sentence each, found by code that shares nothing with the kernels."""
        from gpuplan.fairshare.check import check

        return check(self.problem, self.policy, self.raw)

    @cached_property
    def violations(self) -> int:
        """Number of broken rules (0 for every legal run)."""
        return len(self.check())

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of scenario, policy and everything that ran: equal runs, equal text."""
        digest = hashlib.sha256(f"{self.scenario.fingerprint}\n{self.policy}\n{self.end_s}\n".encode())
        rows = self.stretches
        repairs = (self.raw.repair_start_s, self.raw.repair_end_s)
        for array in (*(getattr(rows, name) for name in Stretches.__slots__), *repairs):
            plain = np.ascontiguousarray(array)
            digest.update(plain.astype(plain.dtype.newbyteorder("<"), copy=False).tobytes())
        for j, reason in sorted(self.reasons.items()):
            digest.update(f"{j}\t{reason}\n".encode())
        return digest.hexdigest()

    # ---------------------------------------------------------------- sentences

    def why(self, job: str, t: int | str) -> str:
        """What a job waits for at an instant, as a sentence (where it runs, if it runs).

        Parameters
        ----------
        job
            Its name.
        t
            Seconds after the start, or text with a unit (``"3d"``).

        Raises
        ------
        InputError
            If there is no such job, or the instant is not in the run.
        """
        from gpuplan.fairshare.explain import why

        return why(self, self.row_of(job), self.instant(t))

    def row_of(self, job: str) -> int:
        """Row of a job in ``problem.jobs``; an `InputError` where there is none."""
        if job not in self._rows:
            near = did_you_mean(job, list(self._rows)) if len(self._rows) <= 10_000 else ""
            raise InputError(self.scenario.name, [Mistake("job", "no such job" + near, job)])
        return self._rows[job]

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {str(name): j for j, name in enumerate(self.problem.jobs.name)}

    def instant(self, t: int | str) -> int:
        """An instant of the run in whole seconds; an `InputError` for anything else."""
        from gpuplan.inputs.fields import Hours as Read
        from gpuplan.inputs.fields import number

        plain = number(t)
        try:
            found = round((Read(0, 1e9).read(t) or 0.0) * HOUR) if plain is None else round(plain)
        except ValueError:
            rule = "must be seconds, or text with a unit such as 3d"
            raise InputError(self.scenario.name, [Mistake("t", rule, t)]) from None
        if not 0 <= found <= self.end_s:
            rule = f"must be from 0 to {self.end_s} s, the end of the run"
            raise InputError(self.scenario.name, [Mistake("t", rule, t)])
        return found

    def shares_at(self, t: int | str) -> "pd.DataFrame":
        """A row per team: nominal share, GPUs wanted and running at an instant, and its share of GPUs now.

        ``now_gpus`` is what level-by-level sharing of the installed GPUs gives for what is wanted then (unused
        share to siblings first), in whole GPUs by largest remainder; ``nominal_gpus`` does not depend on demand.
        """
        from gpuplan.fairshare.instant import shares_at

        return shares_at(self, self.instant(t))

    # ------------------------------------------------------------------ tables

    @cached_property
    def jobs(self) -> "pd.DataFrame":
        """A row per job: what it asked for, its first start, end, wait, state, preemptions, what it lost."""
        from gpuplan.fairshare.tables import jobs

        return jobs(self)

    @cached_property
    def teams(self) -> "pd.DataFrame":
        """A row per team: share, owed and delivered GPU-hours, waits, preemptions, lost GPU-hours."""
        from gpuplan.fairshare.tables import teams

        return teams(self)

    @cached_property
    def sizes(self) -> "pd.DataFrame":
        """A row per size class: jobs and waits."""
        from gpuplan.fairshare.tables import sizes

        return sizes(self)

    def to_frame(self) -> "pd.DataFrame":
        """A row per stretch: ``job, team, gpus, submit_s, start_s, end_s, state``, then where and how it ran."""
        from gpuplan.fairshare.tables import stretches

        return stretches(self)

    def report(self) -> dict[str, Any]:
        """The figures for ``--json``: with ``teams`` (by path), ``violations``, ``seconds``, ``stopped`` if it was."""
        table = self.teams
        rows = table.astype(object).where(table.notna(), None).set_index("team").to_dict("index")
        teams = {str(team): {str(k): v for k, v in row.items()} for team, row in rows.items()}
        rest = {"teams": teams, "violations": self.violations, "seconds": self.seconds}
        return {**self.figures, **rest, **({"stopped": self.stopped} if self.stopped else {})}

    def __repr__(self) -> str:
        found = self.figures
        wait = "no wait" if found["wait_p90_s"] is None else f"wait p90 {found['wait_p90_s']:,} s"
        return (
            f"<Run {self.policy} of {shorten(self.scenario.name)!r}: "
            f"{found['jobs_finished']:,} of {found['jobs_submitted']:,} jobs finished, {wait}, "
            f"occupancy {shown('occupancy', found['occupancy'])}, goodput {shown('goodput', found['goodput'])}, "
            f"delivered {shown('delivered_share', found['delivered_share'])}{', stopped' if self.stopped else ''}>"
        )

    def _repr_html_(self) -> str:
        return Comparison({self.policy: self})._repr_html_()


class Comparison(SideBySide[Run]):
    """Runs of one scenario side by side: ``runs`` by policy, ``table`` tidy, ``wide`` for reading."""

    units = UNITS
    meanings = MEANINGS

    @property
    def runs(self) -> dict[str, Run]:
        """The runs by policy."""
        return self.results

    @property
    def remarks(self) -> list[str]:
        """A sentence for every run that was stopped before its end."""
        return [f"{name}: {run.stopped}" for name, run in self.results.items() if run.stopped]


def shown(figure: str, value: float | int | None) -> str:
    """A figure as text: shares in per cent with one decimal, amounts with two, counts whole."""
    return as_text(value, UNITS[figure])


def policy_named(name: "str | Policy") -> "Policy":
    """The policy of a name; a policy of one's own is taken as it is.

    Raises
    ------
    InputError
        For an unknown name, with a suggestion, and for a policy of one's own under the name of another.
    """
    from gpuplan.fairshare.policies import ALL, Policy

    known = {policy.name: policy for policy in ALL}
    if isinstance(name, Policy):
        if known.get(name.name, name) is not name:
            rule = "must have a name of its own, not that of a policy that ships"
            raise InputError("fairshare", [Mistake("policy", rule, name.name)])
        return name
    if name in known:
        return known[name]
    names = list(known)
    rule = f"must be one of {', '.join(names)}" + did_you_mean(name, names)
    raise InputError("fairshare", [Mistake("policy", rule, name)])


def simulate(scenario: Any, policy: "str | Policy" = "fair-share") -> Run:
    """Run a scenario under a policy.

    Parameters
    ----------
    scenario
        A `FairshareScenario`, or the mapping of a scenario file.
    policy
        One of `gpuplan.fairshare.policies.POLICIES`, or a `gpuplan.fairshare.policies.Policy` of one's own.

    Raises
    ------
    InputError
        For an unknown policy, or a scenario with mistakes.
    """
    from gpuplan.fairshare.problem import compile_problem

    chosen = policy_named(policy)
    return _run(compile_problem(ready(scenario)), chosen)


def compare(
    scenario: Any, policies: "Sequence[str | Policy] | Policy" = ("easy", "fair-share")
) -> Comparison:
    """Run a scenario under several policies, on one and the same workload.

    Raises
    ------
    InputError
        For an unknown policy, none at all, or a scenario with mistakes.
    """
    from gpuplan.fairshare.policies import Policy
    from gpuplan.fairshare.problem import compile_problem

    names = [policies] if isinstance(policies, str | Policy) else list(dict.fromkeys(policies))
    if not names:
        raise InputError("fairshare", [Mistake("policies", "must name at least one policy", names)])
    chosen = [policy_named(name) for name in names]
    require_names_apart("fairshare", [policy.name for policy in chosen])
    problem = compile_problem(ready(scenario))
    return Comparison({policy.name: _run(problem, policy) for policy in chosen})


def ready(source: Any) -> FairshareScenario:
    """A scenario as it is, or that of a mapping; an `InputError` for anything else."""
    if isinstance(source, FairshareScenario):
        return source
    if isinstance(source, Mapping):
        from gpuplan.fairshare.schema import from_mapping

        return from_mapping(source)
    rule = "must be a scenario or a mapping; gpuplan.load reads shipped names and files"
    raise InputError("fairshare", [Mistake("scenario", rule, source)])


def _run(problem: "Problem", policy: "Policy") -> Run:
    began = time.perf_counter()
    raw = policy.run(problem)
    return Run(problem, policy, raw, time.perf_counter() - began)


def _read_only(raw: RawRun) -> RawRun:
    """The same run, its arrays read-only."""
    for name in Stretches.__slots__:
        _frozen(getattr(raw.stretches, name))
    _frozen(raw.repair_start_s)
    _frozen(raw.repair_end_s)
    return raw


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array


def warm_up() -> None:
    """Compile every kernel (or read it from the cache), so that no later run waits for it."""
    from gpuplan.fairshare.jobs import jobs
    from gpuplan.fairshare.model import BudgetNode, Pool

    one = jobs(["job"], [0], [1], [1], team="team")
    flat, nodes = (
        FairshareScenario("warm-up", (Pool(n, 1),), (BudgetNode("team"),), jobs=one) for n in (1, 2)
    )
    for tiny, policies in ((flat, ("fifo", "easy")), (nodes, ("fifo", "conservative", "fair-share"))):
        for policy in policies:
            simulate(tiny, policy)
