"""Every policy on the engine does what the slow simulator does, on thousands of tiny crowded clusters."""

import os
from dataclasses import astuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairshare.engine_answers import engine
from fairshare.reference import Outcome, reference
from fairshare.strategies import FLAT, POOLS, crowds, scenarios
from gpuplan.fairshare.model import FairshareScenario
from gpuplan.fairshare.policies import POLICIES

#: GPUPLAN_EXAMPLES=20 tries twenty times as many scenarios.
MORE = int(os.environ.get("GPUPLAN_EXAMPLES", "1"))

#: Many more than any of these scenarios has, if it ends.
MOST_STRETCHES = 1000

ON_NODES = (
    "fifo",
    "fifo-skip",
    "fifo-per-type",
    "easy",
    "sjf",
    "priority-tiers",
    "static-partitions",
    "fair-share",
    "fair-tree",
)


def tidy(outcome: Outcome) -> tuple[list[tuple[object, ...]], int, list[tuple[int, int]], set[int]]:
    """An outcome without the order of decisions at one instant."""
    stretches = sorted(outcome.stretches, key=lambda s: (s.start, s.job, s.end, s.outcome))
    return [astuple(s) for s in stretches], outcome.end, outcome.repairs, outcome.set_aside


def agree(scenario: FairshareScenario, policy: str) -> None:
    run = engine(scenario, policy)
    if len(run.stretches) > MOST_STRETCHES:
        return  # work that is preempted without end stops the engine; the slow simulator would need minutes to give up
    assert tidy(run) == tidy(reference(scenario, policy))


@pytest.mark.parametrize("policy", ON_NODES)
@given(st.data())
@settings(deadline=None, max_examples=100 * MORE, suppress_health_check=list(HealthCheck))
def test_the_engine_agrees_with_the_reference(policy: str, data: st.DataObject) -> None:
    agree(data.draw(scenarios(POOLS)), policy)


@pytest.mark.parametrize("policy", ["static-partitions", "fair-share", "fair-tree"])
@given(crowds())
@settings(deadline=None, max_examples=80 * MORE, suppress_health_check=list(HealthCheck))
def test_they_agree_where_shares_change_in_a_crowd(policy: str, scenario: FairshareScenario) -> None:
    agree(scenario, policy)


@given(scenarios(FLAT, drains=False, planned=True))
@settings(deadline=None, max_examples=100 * MORE, suppress_health_check=list(HealthCheck))
def test_conservative_agrees_in_one_flat_pool(scenario: FairshareScenario) -> None:
    # A job without a limit may have no promise; the engine gives it one as soon as there is a place, the slow simulator
    # when work ends early. Work of no length holds nothing that others could be planned around.
    agree(scenario, "conservative")


def test_every_policy_is_compared() -> None:
    assert {*ON_NODES, "conservative"} == set(POLICIES)
