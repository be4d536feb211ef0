"""The kernels of one flat pool start what the general one starts, when it does, in the same order."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuplan.fairshare import engine, flat, flat_kernels, kernels
from gpuplan.fairshare.jobs import jobs
from gpuplan.fairshare.model import NEVER, BudgetNode, FairshareScenario, Pool
from gpuplan.fairshare.problem import Problem, compile_problem
from gpuplan.fairshare.raw import RawRun

KINDS = {"fifo": (flat.fifo, kernels.STRICT), "easy": (flat.easy, kernels.EASY)}


def problem_of(seed: int, n: int, gpus: int, until_s: int | None = None) -> Problem:
    """A crowded pool: sizes up to all of it (and beyond), equal instants, no work, no limits."""
    rng = np.random.default_rng(seed)
    run = rng.integers(0, 40, n) * rng.integers(0, 2, n)
    limit = np.where(rng.random(n) < 0.1, NEVER, (run * rng.uniform(1, 3, n)).astype(np.int64))
    wanted = np.minimum(1 << rng.integers(0, 6, n), rng.integers(1, gpus + 2, n))
    made = jobs(
        [f"j{k}" for k in range(n)],
        np.sort(rng.integers(0, max(1, n * 12 // gpus), n)),
        wanted,
        run,
        team="team",
        limit_s=limit,
    )
    return compile_problem(
        FairshareScenario("flat", (Pool(1, gpus),), (BudgetNode("team"),), jobs=made, until_s=until_s)
    )


def same(mine: RawRun, other: RawRun) -> None:
    for name in mine.stretches.__slots__:
        np.testing.assert_array_equal(getattr(mine.stretches, name), getattr(other.stretches, name), name)
    assert (mine.end_s, mine.set_aside) == (other.end_s, other.set_aside)


@pytest.mark.parametrize("policy", KINDS)
@given(st.integers(0, 2**32), st.integers(1, 200), st.integers(1, 64), st.booleans())
@settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
def test_it_gives_the_stretches_of_the_general_kernel(
    policy: str, seed: int, n: int, gpus: int, cut: bool
) -> None:
    problem = problem_of(seed, n, gpus, 60 if cut else None)
    special, kind = KINDS[policy]
    same(special(problem), engine.queue(problem, kind))


@pytest.mark.parametrize("policy", KINDS)
def test_blocks_of_waiting_jobs_are_passed_over_and_found_again(policy: str) -> None:
    """Thousands that wait at once: more than one group of blocks."""
    problem = problem_of(3, 5000, 40)
    special, kind = KINDS[policy]
    run = special(problem)
    same(run, engine.queue(problem, kind))
    assert run.stretches.start_s[-1] > problem.jobs.submit_s[-1]


def test_drains_and_nodes_are_left_to_the_general_kernel() -> None:
    assert flat.fits(problem_of(1, 3, 4))
    assert not flat.fits(compile_problem(problem_of(1, 3, 4).scenario.replace({"drains": [_DRAIN]})))
    nodes = {"cluster": {"nodes": 2, "gpus_per_node": 2}}
    assert not flat.fits(compile_problem(problem_of(1, 3, 4).scenario.replace(nodes)))


_DRAIN = {"node": 0, "from": "1s", "repair": "1s"}


@pytest.mark.parametrize("policy", KINDS)
def test_jobs_that_can_never_run_do_not_compile_it_anew(policy: str) -> None:
    """Columns of some of the jobs are copies, those of all are not: one type of array for both."""
    special, _ = KINDS[policy]
    for gpus in (1, 64):  # sizes go up to 32: some are set aside, none is
        problem = problem_of(5, 50, gpus)
        assert bool(problem.set_aside) == (gpus == 1)
        special(problem)
    signatures = getattr(getattr(flat_kernels, f"run_{policy}"), "signatures", [()])  # plain Python has none
    assert len(signatures) == 1
