"""Plans: run a policy on a scenario, and what is known about the result."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from gpuplan import run_log
from gpuplan.allocation import figures as counting
from gpuplan.allocation.bound import upper_bound
from gpuplan.allocation.effort import effort_from
from gpuplan.allocation.figures import UNITS, Figures
from gpuplan.allocation.kernels import KNOWN, O_DURATION
from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.policies import ALL, Assignment, Policy, Proof
from gpuplan.allocation.problem import Int64, Problem, compile_problem
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, shorten
from gpuplan.side_by_side import SideBySide, as_text, require_names_apart

if TYPE_CHECKING:
    import pandas as pd

Array = TypeVar("Array", bound=npt.NDArray[Any])

NOTHING = -1
UNAVAILABLE = -2


class Plan:
    """A policy's plan for a scenario; arrays are read-only.

    ``G`` GPUs, ``T`` steps, ``J`` batch jobs and ``R`` real-time apps in file order.

    Attributes
    ----------
    scenario : AllocationScenario
    policy : str
    start, end : int64[J]
        First step, and the step after the last one inside the horizon; -1 without a place.
    first_gpu : int64[J]
        Lowest GPU of the block, -1 without a place.
    size, duration : int64[J]
        GPUs and whole steps of each job: the policy's choice where the scenario gives a range.
    set_aside : dict
        Jobs that can never fit, with the reason.
    proof : Proof or None
        What was proven about the plan, where the policy proves something.
    seconds : float
        Wall-clock time of the policy (not part of the fingerprint).
    """

    def __init__(self, problem: Problem, policy: Policy, assignment: Assignment, seconds: float) -> None:
        run_log.ran(problem.scenario)
        self.scenario = problem.scenario
        self.policy = policy.name
        self._policy = policy
        self.reservation = policy.reservation
        self.start = _frozen(assignment.start)
        self.first_gpu = _frozen(assignment.first_gpu)
        self.size = _frozen(assignment.size)
        self.duration = _frozen(problem.options[problem.option(self.size), O_DURATION])
        end = np.minimum(self.start + self.duration, problem.steps)
        self.end = _frozen(np.where(self.start >= 0, end, -1))
        self.proof = assignment.proof
        self.set_aside = dict(problem.set_aside)
        self.seconds = seconds
        self._problem = problem
        self._hold = _frozen(assignment.hold)

    # ------------------------------------------------------------------ arrays

    @cached_property
    def held(self) -> Int64:
        """GPUs held by each app per step, int64[R, T]."""
        return _frozen(np.bitwise_count(self._hold).sum(axis=2, dtype=np.int64))

    @cached_property
    def demand(self) -> Int64:
        """GPUs wanted by each app per step, int64[R, T]."""
        return _frozen(self._problem.demand.view())

    @cached_property
    def served(self) -> Int64:
        """Demand that is met, int64[R, T]."""
        return _frozen(np.minimum(self.held, self.demand))

    @cached_property
    def grid(self) -> npt.NDArray[np.int32]:
        """Who holds each GPU in each step, int32[G, T].

        -1 nobody, -2 unavailable, ``j`` batch job ``j``, ``J + r`` real-time app ``r``.
        """
        gpus, steps = self._problem.gpus, self._problem.steps
        grid = np.full((gpus, steps), NOTHING, np.int32)
        grid[list(self.scenario.cluster.unavailable)] = UNAVAILABLE
        sizes = self.size.tolist()
        spans = zip(self.start.tolist(), self.end.tolist(), self.first_gpu.tolist(), sizes, strict=True)
        for j, (start, end, first, size) in enumerate(spans):
            if start >= 0:
                grid[first : first + size, start:end] = j
        for r, words in enumerate(self._hold):
            grid[as_bits(words, gpus).T] = len(sizes) + r
        return _frozen(grid)

    @cached_property
    def swaps(self) -> int:
        """GPUs acquired by apps wherever the cap counts (a reservation has none)."""
        if self.reservation or not self._hold.size:
            return 0
        acquired = self._hold[:, 1:] & ~self._hold[:, :-1]
        at_start = (self._hold[:, 0] & ~self._problem.held)[self._problem.apps[:, KNOWN] == 1]
        return int(np.bitwise_count(acquired).sum()) + int(np.bitwise_count(at_start).sum())

    # ----------------------------------------------------------------- figures

    @cached_property
    def figures(self) -> Figures:
        """The figures by name (units in `gpuplan.allocation.figures.UNITS`)."""
        return counting.figures(self._problem, self.start, self.size, self.held, self.swaps, self.bound)

    @property
    def bound(self) -> float:
        """No legal plan has a larger objective (priority-weighted GPU-hours); the proven bound where there is one."""
        quick = upper_bound(self.scenario)
        if self.proof is None or self.proof.bound is None or not self._is_under_the_rules():
            return quick
        if self.proof.status == "optimal":
            return self.proof.bound  # exact, where sums of prices may be rounded to just below it
        return min(quick, self.proof.bound)

    def _is_under_the_rules(self) -> bool:
        """Whether what is proven of legal plans holds for this one: a reservation has rules of its own.

        It may take at once what a swap cap would spread over steps, and stay below a minimum where GPUs are too few.
        """
        if not self.reservation:
            return True
        apps = self.scenario.realtime
        enough = all((row >= app.min_gpus).all() for app, row in zip(apps, self.held, strict=True))
        return enough and all(app.held is None for app in apps)

    def with_proof(self, proof: Proof) -> "Plan":
        """The same plan beside another proof of how good a plan can be."""
        assignment = Assignment(self.start, self.first_gpu, self.size, self._hold, 0, proof)
        return Plan(self._problem, self._policy, assignment, self.seconds)

    @property
    def gap(self) -> float:
        """``(bound - objective) / max(abs(bound), 1e-9)``."""
        return float(self.figures["gap"] or 0.0)

    def check(self) -> list[str]:
        """Rules that the plan breaks, a sentence each, found by code that shares nothing with the kernels."""
        from gpuplan.allocation.check import violations

        return violations(self.scenario, self.start, self.first_gpu, self.grid, self.reservation, self.size)

    @cached_property
    def violations(self) -> int:
        """Number of broken rules (0 for every legal plan)."""
        return len(self.check())

    def why(self, job: str) -> str:
        """Why a job starts when it does, or has no place: what holds its place, the largest block free.

        Raises
        ------
        InputError
            If the scenario has no such batch job.
        """
        from gpuplan.allocation.explain import why

        names = [known.name for known in self.scenario.batch]
        if job not in names:
            raise InputError(
                self.scenario.name, [Mistake("job", "no such batch job" + did_you_mean(job, names), job)]
            )
        return why(self, names.index(job))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of scenario, policy and plan: equal plans, equal text."""
        digest = hashlib.sha256(f"{self.scenario.fingerprint}\n{self.policy}\n".encode())
        ranges = any(job.max_gpus is not None for job in self.scenario.batch)
        for array in (self.start, self.first_gpu, *([self.size] if ranges else []), self._hold):
            digest.update(
                np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
            )
        return digest.hexdigest()

    # ------------------------------------------------------------------ tables

    def to_frame(self) -> "pd.DataFrame":
        """A row per GPU and unbroken stretch: ``job, kind, gpu, start_step, end_step`` (end exclusive)."""
        from gpuplan.allocation.tables import stretches

        return stretches(self)

    def jobs_frame(self) -> "pd.DataFrame":
        """A row per batch job: where and when it runs, how long it waits, whether it finishes."""
        from gpuplan.allocation.tables import jobs

        return jobs(self)

    def steps_frame(self) -> "pd.DataFrame":
        """A row per step: GPUs available, in batch work, in useful and idle real-time use, and free."""
        from gpuplan.allocation.tables import steps

        return steps(self)

    def apps_frame(self) -> "pd.DataFrame":
        """A row per real-time app and step: demand, held, served and unmet GPUs."""
        from gpuplan.allocation.tables import apps

        return apps(self)

    def late_hours(self, j: int) -> float | None:
        """Hours by which batch job ``j`` misses its deadline (infinite: no place; None: no deadline)."""
        return counting.late_hours(self.scenario, int(self.start[j]), int(self.duration[j]), j)

    def __repr__(self) -> str:
        found = self.figures
        return (
            f"<Plan {self.policy} of {shorten(self.scenario.name)!r}: utilization {found['utilization']:.1%}, "
            f"objective {found['objective']:.2f}, coverage {found['coverage']:.1%}, "
            f"{found['jobs_placed']} of {len(self.scenario.batch)} jobs placed>"
        )

    def _repr_html_(self) -> str:
        return Comparison({self.policy: self})._repr_html_()


class Comparison(SideBySide[Plan]):
    """Plans of one scenario side by side: ``plans`` by policy, ``table`` tidy, ``wide`` for reading."""

    units = UNITS
    noun = "plan"

    @property
    def plans(self) -> dict[str, Plan]:
        """The plans by policy."""
        return self.results

    def with_proof(self, proof: Proof) -> "Comparison":
        """The same plans beside a proof of how good a plan can be (see `Plan.with_proof`)."""
        return Comparison({name: plan.with_proof(proof) for name, plan in self.plans.items()})


def shown(figure: str, value: float | int | None) -> str:
    """A figure as text: shares in per cent with one decimal, amounts with two, counts whole."""
    return as_text(value, UNITS[figure])


def policy_named(name: str | Policy) -> Policy:
    """The policy of a name; a policy of one's own is taken as it is.

    Raises
    ------
    InputError
        For an unknown name, with a suggestion, and for a policy of one's own under the name of another.
    """
    known = {policy.name: policy for policy in ALL}
    if isinstance(name, Policy):
        if known.get(name.name, name) is not name:
            rule = "must have a name of its own, not that of a policy that ships"
            raise InputError("allocation", [Mistake("policy", rule, name.name)])
        return name
    if name in known:
        return known[name]
    names = list(known)
    rule = f"must be one of {', '.join(names)}" + did_you_mean(name, names)
    raise InputError("allocation", [Mistake("policy", rule, name)])


def plan(scenario: Any, policy: str | Policy = "aware", **effort: Any) -> Plan:
    """Plan a scenario under a policy.

    Parameters
    ----------
    scenario
        An `AllocationScenario`, or the mapping of a scenario file.
    policy
        One of `gpuplan.POLICIES`, or a `gpuplan.allocation.policies.Policy` of one's own.
    **effort
        ``budget_ms``, ``iterations``, ``seed``, ``time_limit_s``, ``report``: see
        `gpuplan.allocation.policies.Effort`; policies without a use for one ignore it.

    Raises
    ------
    InputError
        For an unknown policy, an effort that cannot be, or a scenario with mistakes.
    """
    chosen = policy_named(policy)
    problem = compile_problem(ready(scenario))
    began = time.perf_counter()
    assignment = chosen.run(problem, effort_from(effort))
    return Plan(problem, chosen, assignment, time.perf_counter() - began)


def repeatable(scenario: AllocationScenario) -> dict[str, int]:
    """The effort of plans that come at once and repeat exactly: moves for a few milliseconds (two on small days)."""
    from gpuplan.allocation.policies.search import iterations_for

    return {"iterations": iterations_for(compile_problem(scenario))}


def compare(
    scenario: Any, policies: Sequence[str | Policy] | Policy = ("fifo", "aware"), **effort: Any
) -> Comparison:
    """Plan a scenario under several policies; ``effort`` as in `plan`.

    Raises
    ------
    InputError
        For an unknown policy, none at all, or a scenario with mistakes.
    """
    names = [policies] if isinstance(policies, str | Policy) else list(dict.fromkeys(policies))
    if not names:
        raise InputError("allocation", [Mistake("policies", "must name at least one policy", names)])
    chosen = [policy_named(name) for name in names]
    require_names_apart("allocation", [policy.name for policy in chosen])
    checked = ready(scenario)
    return Comparison({policy.name: plan(checked, policy, **effort) for policy in chosen})


def warm_up() -> None:
    """Compile every kernel (or read it from the cache), so that no later plan waits for it.

    Without a call, small scenarios are planned in plain Python until a process in the background has
    compiled the kernels (see `gpuplan.allocation.engine`).
    """
    from gpuplan.allocation import engine
    from gpuplan.allocation.model import BatchJob, Horizon, RealtimeApp
    from gpuplan.cluster import Cluster

    tiny = AllocationScenario(
        name="warm-up",
        cluster=Cluster(2),
        horizon=Horizon(2),
        realtime=(RealtimeApp("app", 1.0, (1, 1)),),
        batch=(BatchJob("job", "training", 1, 1.0, 1.0),),
    )
    engine.compile_here()
    for policy in ALL:
        if policy.name != "exact":  # has no kernel of its own, and needs OR-Tools, which may be absent
            # moves, not time, which may be over before every kernel was called
            _ = plan(tiny, policy.name, iterations=200).figures
    engine.note_compiled()


def ready(source: Any) -> AllocationScenario:
    """A scenario as it is, or that of a mapping; an `InputError` for anything else."""
    if isinstance(source, AllocationScenario):
        return source
    if isinstance(source, Mapping):
        from gpuplan.allocation.schema import from_mapping

        return from_mapping(source)
    rule = "must be a scenario or a mapping; gpuplan.load reads shipped names and files"
    raise InputError("allocation", [Mistake("scenario", rule, source)])


def as_bits(words: npt.NDArray[np.uint64], gpus: int) -> npt.NDArray[np.bool_]:
    """Words [T, W] as booleans [T, G]."""
    little = np.ascontiguousarray(words).astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(little, axis=1, bitorder="little", count=gpus).astype(np.bool_)


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array
