"""A policy of one's own is taken wherever a name is, and is never mistaken for one that ships."""

from dataclasses import replace
from typing import Any

import pytest

import gpuplan as gp
from gpuplan.allocation.policies import ALL, Assignment, Effort, Policy
from gpuplan.allocation.policies.base import with_curves
from gpuplan.allocation.problem import Problem
from gpuplan.fairshare.policies import ALL as FAIRSHARE
from gpuplan.inputs.errors import InputError


def backwards(problem: Problem, _: Effort) -> Assignment:
    """The last job first."""
    return with_curves(problem, problem.movable[::-1].copy())


OWN = Policy("backwards", "Jobs from the last to the first.", backwards)


def test_a_policy_of_ones_own_is_planned_compared_and_rolled() -> None:
    plan = gp.plan("training-rush", OWN)
    assert (plan.policy, plan.check()) == ("backwards", [])
    assert plan.start.tolist() != gp.plan("training-rush", "curve-fifo").start.tolist()
    both = gp.compare("training-rush", ["curve-fifo", OWN])
    assert list(both.plans) == ["curve-fifo", "backwards"]
    assert both.plans["backwards"].fingerprint == plan.fingerprint
    assert gp.compare("training-rush", OWN).plans.keys() == {"backwards"}
    assert gp.roll("two-apps", OWN, days=1).check() == []


def test_another_proof_keeps_the_policy() -> None:
    plan = gp.plan("training-rush", OWN)
    proof = gp.plan("training-rush", "exact", time_limit_s=0.2).proof
    assert proof is not None
    assert plan.with_proof(proof).policy == "backwards"


def test_a_run_of_weeks_takes_one_as_well() -> None:
    (shortest,) = (policy for policy in FAIRSHARE if policy.name == "sjf")
    run = gp.simulate("first-hours", replace(shortest, name="mine"))
    assert (run.policy, run.check()) == ("mine", [])
    assert run.figures == gp.simulate("first-hours", "sjf").figures


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: gp.plan("training-rush", replace(OWN, name="aware")), "aware"),
        (lambda: gp.compare("training-rush", [OWN, replace(OWN, about="another")]), "backwards"),
        (lambda: gp.simulate("first-hours", replace(FAIRSHARE[0], about="mine")), FAIRSHARE[0].name),
    ],
)
def test_a_name_that_is_taken_is_refused(call: Any, named: str) -> None:
    with pytest.raises(InputError, match=rf"a name of its own.*{named}"):
        call()


def test_policies_that_ship_are_taken_as_they_are() -> None:
    for policy in ALL[:2]:
        assert (
            gp.plan("training-rush", policy).fingerprint == gp.plan("training-rush", policy.name).fingerprint
        )
