"""The bound that stands beside every plan: how good any plan of a scenario can be at most."""

from functools import lru_cache
from typing import Any

import numpy as np

from gpuplan.allocation import bound_kernels, kernels
from gpuplan.allocation.engine import kernels_for
from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.policies.base import reservations
from gpuplan.allocation.problem import Int64, Problem, as_int, compile_problem, side_by_side

#: A class of blocks gets a price of its own where at most so many of them fit: with more, rounding
#: down to whole blocks hardly counts.
FEW_BLOCKS = 16

#: Subgradient steps at most, and at least.
MOST_ROUNDS, LEAST_ROUNDS = 350, 80

#: Sizes and apps x steps x rounds that may be spent where more than `LEAST_ROUNDS` are taken.
MOST_WORK = 5_000_000

#: Share of the rounds without classes of blocks, where there are enough for both.
PLAIN_SHARE = 0.3


@lru_cache(maxsize=64)
def upper_bound(scenario: AllocationScenario) -> float:
    """No legal plan (reservations included) of the scenario has a larger objective than this.

    Priority-weighted GPU-hours; see `gpuplan.allocation.bound_kernels.price_bound`. Prices are sought twice,
    without and with classes of blocks: the second bound is lower, where its prices are found in time.
    """
    problem = compile_problem(scenario)
    milli = np.array(problem.option_milli, float)
    sizes, rows, first = _sizes(problem)
    unmet, least = _unmet(problem)
    free = np.bitwise_count(problem.base).sum(axis=1).astype(np.int64)
    classes, blocks = _classes(problem, free, int(sizes[:, bound_kernels.S_GPUS].max(initial=1)))
    ceiling = max(milli.max(initial=0.0) * 1e6, max(problem.cost_units, default=0)) * problem.steps
    work = max(1, (len(sizes) + len(problem.apps)) * problem.steps)
    rounds = max(LEAST_ROUNDS, min(MOST_ROUNDS, MOST_WORK // work))
    plan = [(rounds, classes.size)]
    if classes.size > 1 and rounds > LEAST_ROUNDS:
        plan = [(int(PLAIN_SHARE * rounds), 1), (rounds - int(PLAIN_SHARE * rounds), classes.size)]
    found: list[float] = []
    for n_rounds, n_classes in plan:
        kinds = np.searchsorted(classes[:n_classes], sizes[:, bound_kernels.S_GPUS], side="right") - 1
        sizes[:, bound_kernels.S_CLASS] = kinds
        bound: Any = kernels_for(problem.work, bound_kernels).price_bound(
            sizes,
            milli[rows],
            first,
            problem.weight_sum,
            classes[:n_classes],
            free,
            blocks[:n_classes],
            unmet,
            least,
            float(ceiling),
            n_rounds,
        )
        found.append(float(bound))
    scale = problem.hours(1)
    # the sums of the relaxation are floating-point: give way by more than they can be off
    stakes = float(np.abs(milli[rows] * sizes[:, 0] * sizes[:, 1]).sum()) * 1e6
    stakes += sum(cost * int(row.sum()) for cost, row in zip(problem.cost_units, problem.demand, strict=True))
    # what runs already is exact, and divided once as in the figures
    certain = problem.hours(problem.inherited)
    rest = min(found) * scale + 1e-11 * stakes * scale
    # a small rest beside a large certain part is rounded: up, not down
    return float(certain + rest + (1e-15 * abs(certain) if rest else 0.0))


def _sizes(problem: Problem) -> tuple[Int64, Int64, Int64]:
    """The sizes that jobs may take, as the kernel wants them; their rows in `options`; rows of each job."""
    jobs = problem.movable
    counts = problem.first_option[jobs + 1] - problem.first_option[jobs]
    job = np.repeat(jobs, counts)
    rows = np.concatenate(
        [np.zeros(0, np.int64)]
        + [np.arange(problem.first_option[j], problem.first_option[j + 1]) for j in jobs.tolist()]
    ).astype(np.int64)
    options = problem.options[rows]
    table = np.stack(
        (
            options[:, kernels.O_SIZE],
            options[:, kernels.O_DURATION],
            problem.earliest[job],
            options[:, kernels.O_LATEST],
            np.zeros_like(job),
        ),
        axis=1,
    )
    first: Int64 = np.concatenate([[0], counts.cumsum()]).astype(np.int64)
    return table, rows, first


def _unmet(problem: Problem) -> tuple[np.ndarray[Any, np.dtype[np.float64]], Int64]:
    """What unmet demand costs with so many GPUs more than apps hold in any case, float64[T, X]; those GPUs.

    GPUs go where unmet demand costs most: with fewer, no legal plan leaves less unmet.
    """
    steps = problem.steps
    # a reservation may stay below a minimum where GPUs are too few: the bound must hold for it too
    reserved = np.bitwise_count(reservations(problem)).sum(axis=1, dtype=np.int64)
    sure = np.minimum(problem.apps[:, kernels.MINIMUM], reserved)
    most = np.minimum(problem.demand, problem.apps[:, kernels.MAXIMUM, None])
    useful = np.maximum(0, np.minimum(most, problem.gpus) - sure[:, None])
    width = int(useful.sum(axis=0).max(initial=0)) + 1
    extra = np.minimum(np.arange(width), problem.gpus)
    unmet = np.zeros((steps, width))
    before = np.zeros(steps, np.int64)
    for r in sorted(range(len(problem.apps)), key=lambda r: (-problem.cost_units[r], r)):
        given = np.clip(extra[None, :] - before[:, None], 0, useful[r][:, None])
        left = np.maximum(0, problem.demand[r][:, None] - sure[r] - given)
        unmet += float(problem.cost_units[r]) * left
        before += useful[r]
    return unmet, np.full(steps, int(sure.sum()), np.int64)


def _classes(problem: Problem, free: Int64, largest: int) -> tuple[Int64, Int64]:
    """Classes of blocks that get a price, and how many blocks of each fit side by side in a step, int64[Z, T]."""
    classes, blocks = [1], [free]
    words = [as_int(row) for row in problem.base]
    for c in range(1, len(problem.allowed)):
        n = 1 << c
        if n > largest or problem.gpus // n > FEW_BLOCKS:
            continue
        allowed = as_int(problem.allowed[c])
        known = {word: side_by_side(word, allowed, n) for word in set(words)}
        classes.append(n)
        blocks.append(np.array([known[word] for word in words], np.int64))
    return np.array(classes, np.int64), np.array(blocks, np.int64)
