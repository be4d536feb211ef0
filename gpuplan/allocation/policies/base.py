"""What a policy is, and the two ways in which the simple ones treat real-time apps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuplan.allocation import kernels
from gpuplan.allocation.problem import Int64, Problem, Words

@dataclass(frozen=True, slots=True)
class Assignment:
    """A policy's answer: start step and first GPU of each job, GPUs of each app as bits.

    Attributes
    ----------
    start, first_gpu : int64[J]
        -1 for jobs without a place.
    hold : uint64[R, T, W]
        Bit ``g % 64`` of word ``g // 64``: the app holds GPU ``g`` in that step.
    """

    start: Int64
    first_gpu: Int64
    hold: Words


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
        The policy as a function of the problem.
    reservation
        Apps hold a reservation for the whole horizon, to which the swap cap does not apply.
    """

    name: str
    about: str
    run: Callable[[Problem], Assignment]
    reservation: bool = False


def by_priority(problem: Problem) -> Int64:
    """Jobs that may be placed, highest priority first, then in file order."""
    order = problem.movable
    return order[np.argsort(-problem.priority[order], kind="stable")]


def with_reservation(problem: Problem, order: Int64, *, strict: bool = False) -> Assignment:
    """Every app's peak reserved for the whole horizon, then the jobs in order."""
    reserved = reservations(problem)
    taken = np.bitwise_or.reduce(reserved, axis=0, initial=np.uint64(0))
    program = [kernels.LOWEST, *order.tolist()]
    jobs = allocate(problem, [program], strict=strict, base=problem.base & ~taken, with_apps=False)
    return Assignment(jobs.start, jobs.first_gpu, np.repeat(reserved[:, None, :], problem.steps, axis=1))


def with_curves(problem: Problem, order: Int64) -> Assignment:
    """Every app on its curve, in file order, then the jobs in order."""
    return allocate(problem, [curves_then(problem, order)])


def curves_then(problem: Problem, order: Int64) -> list[int]:
    """The pass that lays apps on their curves from the high end, then each job to its lowest place."""
    apps = [app_step(problem, r, kernels.CURVE) for r in range(problem.cost.size)]
    return [kernels.LOWEST, *apps, *order.tolist()]


def app_step(problem: Problem, r: int, what: int) -> int:
    """The instruction ``what`` about app ``r`` (see `gpuplan.allocation.kernels.run_program`)."""
    return int(problem.size.size) + 4 * r + what


def reservations(problem: Problem) -> Words:
    """GPUs that each app reserves for the whole horizon: its peak within its range, uint64[R, W]."""
    peak = np.minimum(np.maximum(problem.demand.max(axis=1, initial=0), problem.minimum), problem.maximum)
    reserved: Any = kernels.reserve_peaks(problem.available, problem.size, problem.running, peak, problem.held)
    return np.asarray(reserved)


def allocate(
    problem: Problem,
    passes: Sequence[Sequence[int]],
    *,
    outbid: Sequence[int] = (),
    order: Int64 | None = None,
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
    outbid, order, trials
        The pass that lays apps around a job that outbids them, the jobs that may, how often.
    strict
        As in the kernel.
    base : uint64[T, W], optional
        Free GPUs, where they are not those of the problem.
    with_apps
        Without them the result holds no real-time GPUs.
    """
    n_apps = problem.cost.size if with_apps else 0
    rows = [*passes, outbid]
    programs = np.full((len(rows), max(map(len, rows)) + 1), -1, np.int64)
    for row, program in zip(programs, rows, strict=True):
        row[: len(program)] = program
    found: Any = kernels.allocate(
        programs,
        strict,
        trials,
        problem.movable if order is None else order,
        problem.base if base is None else base,
        problem.size,
        problem.duration,
        problem.earliest,
        problem.running,
        problem.priority,
        problem.must_finish,
        problem.allowed,
        problem.weight_sum,
        problem.demand[:n_apps],
        problem.cap[:n_apps],
        problem.minimum[:n_apps],
        problem.maximum[:n_apps],
        problem.budget[:n_apps],
        problem.known_held[:n_apps],
        problem.held[:n_apps],
        problem.n_held[:n_apps],
        problem.cost[:n_apps],
    )
    return Assignment(*found)
