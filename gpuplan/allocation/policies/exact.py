"""Proven plans: CP-SAT, from the plan of the search on."""

from gpuplan.allocation.policies.base import Assignment, Effort, Policy
from gpuplan.allocation.problem import Problem


def run(problem: Problem, effort: Effort) -> Assignment:
    """Improve the plan of ``search`` until it is proven optimal, for at most `Effort.time_limit_s`."""
    from gpuplan.allocation.exact.solve import solve

    return solve(problem, effort)


POLICY = Policy(
    "exact",
    "The best plan there is, where it can be proven in time: the solver CP-SAT decides when jobs run, then where, "
    "from the plan of search on, and says how far from proven optimal it stopped.",
    run,
    live=False,
)
