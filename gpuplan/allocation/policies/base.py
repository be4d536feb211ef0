"""What a policy is, and the two ways in which the simple ones treat real-time apps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuplan.allocation import kernels
from gpuplan.allocation.engine import kernels_for
from gpuplan.allocation.kernels import MAXIMUM, MINIMUM
from gpuplan.allocation.problem import Int64, Problem, Words


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an improving policy has come: seconds since its start, best objective, bound (if known).

    Objective and bound in priority-weighted GPU-hours.
    """

    seconds: float
    objective: float
    bound: float | None


@dataclass(frozen=True, slots=True)
class Effort:
    """How much the improving policies may do; the one-pass policies ignore it.

    Parameters
    ----------
    budget_ms
        Processor time of `search`, that of `aware` included; used where `iterations` is not given.
    iterations
        Moves of `search`: the same plan again for the same seed.
    seed
        Of `search` and `exact`.
    time_limit_s
        Wall-clock time of `exact`.
    report
        Called with the `Progress` of `exact` whenever there is news; it may raise `KeyboardInterrupt` to stop.
    """

    budget_ms: float = 2.0
    iterations: int | None = None
    seed: int | np.random.Generator = 0
    time_limit_s: float = 30.0
    report: Callable[[Progress], None] | None = None


@dataclass(frozen=True, slots=True)
class Proof:
    """What was proven about a plan.

    Attributes
    ----------
    bound
        No legal plan has a larger objective (priority-weighted GPU-hours); None: nothing is known.
    status
        ``optimal``, ``bounded`` (a bound, and a gap to it) or ``none``.
    sentence
        The same for people.
    history
        Objective and bound over time.
    """

    bound: float | None
    status: str
    sentence: str
    history: tuple[Progress, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """A policy's answer: start step, first GPU and size of each job, GPUs of each app as bits.

    Attributes
    ----------
    start, first_gpu : int64[J]
        -1 for jobs without a place.
    size : int64[J]
        GPUs of each job, one of its sizes (also where it has no place).
    hold : uint64[R, T, W]
        Bit ``g % 64`` of word ``g // 64``: the app holds GPU ``g`` in that step.
    worth
        Objective in the kernel's unit: for comparing plans of one problem that the kernel made.
    """

    start: Int64
    first_gpu: Int64
    size: Int64
    hold: Words
    worth: int = 0
    proof: Proof | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """A named allocation policy.

    Parameters
    ----------
    name
        The name in commands, files and tables.
    about
        One sentence: exactly what the policy does.
    run
        The policy as a function of the problem and of the effort allowed.
    reservation
        Apps hold a reservation for the whole horizon, to which the swap cap does not apply.
    live
        Fast enough to run at every move of a slider.
    """

    name: str
    about: str
    run: Callable[[Problem, Effort], Assignment]
    reservation: bool = False
    live: bool = True


def by_priority(problem: Problem) -> Int64:
    """Jobs that may be placed, highest priority first, then in file order."""
    order = problem.movable
    return order[np.argsort(-problem.milli[order], kind="stable")]


def with_reservation(problem: Problem, order: Int64, *, strict: bool = False) -> Assignment:
    """Every app's peak reserved for the whole horizon, then the jobs in order.

    Here and in `with_curves` a job with a range of sizes starts at the earliest step at which any of them fits, on
    the largest that fits there: what Slurm does with ``sbatch --nodes=min-max``.
    """
    reserved = reservations(problem)
    taken = np.bitwise_or.reduce(reserved, axis=0, initial=np.uint64(0))
    program = [kernels.LOWEST, *order.tolist()]
    jobs = allocate(problem, [program], strict=strict, base=problem.base & ~taken, with_apps=False)
    hold = np.repeat(reserved[:, None, :], problem.steps, axis=1)
    return Assignment(jobs.start, jobs.first_gpu, jobs.size, hold)


def with_curves(problem: Problem, order: Int64) -> Assignment:
    """Every app on its curve, in file order, then the jobs in order."""
    return allocate(problem, [curves_then(problem, order)])


def curves_then(problem: Problem, order: Int64) -> list[int]:
    """The pass that lays apps on their curves from the high end, then each job to its lowest place."""
    apps = [app_step(problem, r, kernels.CURVE) for r in range(len(problem.apps))]
    return [kernels.LOWEST, *apps, *order.tolist()]


def app_step(problem: Problem, r: int, what: int) -> int:
    """The instruction ``what`` about app ``r`` (see `gpuplan.allocation.kernels.run_program`)."""
    return len(problem.jobs) + 4 * r + what


def reservations(problem: Problem) -> Words:
    """GPUs that each app reserves for the whole horizon: its peak within its range, uint64[R, W]."""
    peak = problem.demand.max(axis=1, initial=0)
    peak = np.minimum(np.maximum(peak, problem.apps[:, MINIMUM]), problem.apps[:, MAXIMUM])
    reserved: Any = kernels_for(problem.work).reserve_peaks(
        problem.available, problem.jobs, peak, problem.held
    )
    return np.asarray(reserved)


def allocate(
    problem: Problem,
    passes: Sequence[Sequence[int]],
    *,
    outbid: Sequence[int] = (),
    promotions: int = 0,
    trials: int = 0,
    strict: bool = False,
    base: Words | None = None,
    with_apps: bool = True,
) -> Assignment:
    """Run the allocation kernel (see `gpuplan.allocation.kernels.allocate`).

    Parameters
    ----------
    passes
        Instructions of each pass.
    promotions
        How many plans are built in which a job that loses much is moved ahead.
    outbid, trials
        The pass that lays apps around a job that outbids them, and how often that is tried.
    strict
        As in the kernel.
    base : uint64[T, W], optional
        Free GPUs, where they are not those of the problem.
    with_apps
        Without them the result holds no real-time GPUs.
    """
    n_apps = len(problem.apps) if with_apps else 0
    rows = [*passes, outbid]
    programs = np.full((len(rows), max(map(len, rows))), -1, np.int64)
    for row, program in zip(programs, rows, strict=True):
        row[: len(program)] = program
    found: Any = kernels_for(problem.work).allocate(
        programs,
        strict,
        promotions,
        trials,
        problem.base if base is None else base,
        problem.jobs,
        problem.options,
        problem.allowed,
        problem.weight_sum,
        problem.demand[:n_apps],
        problem.apps[:n_apps],
        problem.held[:n_apps],
    )
    jobs, hold, worth = found
    start, first, size = (jobs[:, column].copy() for column in (kernels.START, kernels.FIRST, kernels.SIZE))
    return Assignment(start, first, size, hold[:, 1:], int(worth))
