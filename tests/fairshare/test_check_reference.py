"""What the slow simulator does under the policies that preempt is legal, and its books balance."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from fairshare.reference import reference
from fairshare.strategies import scenarios
from gpuplan.fairshare import ledger as books
from gpuplan.fairshare.model import FairshareScenario
from gpuplan.fairshare.problem import compile_problem
from gpuplan.fairshare.raw import RawRun, Stretches
from gpuplan.fairshare.run import Run


def slow_run(scenario: FairshareScenario, policy: str) -> Run:
    """The slow simulator's outcome as a run (what starts at one instant in the order of its decisions)."""
    problem = compile_problem(scenario)
    outcome = reference(scenario, policy)
    rows = sorted(outcome.stretches, key=lambda s: s.start)  # stable

    def column(name: str, dtype: type = np.int64) -> np.ndarray:
        return np.array([getattr(s, name) for s in rows], dtype)

    places = [(k, node, gpus) for k, s in enumerate(rows) for node, gpus in sorted(s.nodes.items())]
    place = np.array(places, np.int64).reshape(-1, 3)
    stretches = Stretches(
        column("job"), column("start"), column("end"), column("overhead"), column("kept"),
        column("allocated", bool), column("protected_until"), column("outcome", np.int8),
        *(place[:, k].copy() for k in range(3)),
    )  # fmt: skip
    repairs = np.array(outcome.repairs, np.int64).reshape(-1, 2)
    aside = {j: "set aside" for j in outcome.set_aside}
    raw = RawRun(stretches, outcome.end, repairs[:, 0].copy(), repairs[:, 1].copy(), aside)
    return Run(problem, policy, raw, 0.0)


@pytest.mark.parametrize("policy", ["fair-share", "priority-tiers"])
@given(scenario=scenarios())
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_slow_simulator_is_legal(policy: str, scenario: FairshareScenario) -> None:
    run = slow_run(scenario, policy)
    assert run.check() == []
    held = books.occupied(run.problem, run.raw, run.ledger)
    assert held["occupied"] == held["useful"] + held["lost"]
    asked = books.requested(run.problem, run.raw, run.ledger)
    assert asked["requested"] == asked["useful"] + asked["outstanding"]
    for t in {0, run.end_s // 2, run.end_s}:
        for name in run.problem.jobs.name:
            assert run.why(name, t).endswith(".")
