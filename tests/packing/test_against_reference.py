"""Every piece of a policy on the engine does what the slow simulator does, on thousands of tiny crowded nodes."""

import os
from dataclasses import asdict, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuplan.loading import load_packing, shipped
from gpuplan.packing import policies
from gpuplan.packing.model import PackingScenario, Pieces
from gpuplan.packing.problem import compile_problem
from gpuplan.packing.tasks import Tasks
from packing.engine_answers import engine
from packing.reference import reference
from packing.strategies import EVICTIONS, ORDERS, PIECES, PLACEMENTS, scenarios

#: GPUPLAN_EXAMPLES=20 tries twenty times as many scenarios.
MORE = int(os.environ.get("GPUPLAN_EXAMPLES", "1"))

NAMED = (
    [("placement", name) for name in PLACEMENTS]
    + [("order", name) for name in ORDERS]
    + [("eviction", name) for name in EVICTIONS]
)

SHIPPED = [scenario.name for scenario in shipped() if scenario.kind == "packing"]


def agree(scenario: PackingScenario, pieces: Pieces) -> None:
    assert asdict(engine(scenario, pieces)) == asdict(reference(scenario, pieces))


@pytest.mark.parametrize(("piece", "name"), NAMED)
@given(st.data())
@settings(deadline=None, max_examples=40 * MORE, suppress_health_check=list(HealthCheck))
def test_the_engine_agrees_with_the_reference(piece: str, name: str, data: st.DataObject) -> None:
    """One piece is given, the others are drawn."""
    agree(data.draw(scenarios()), replace(data.draw(PIECES), **{piece: name}))


@pytest.mark.parametrize(
    "policy", ["round-robin", "best-fit+backfill+lru", "fgd+by-model+cost", "predicted-fit+shortest+lfu"]
)
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_scenarios_agree(name: str, policy: str) -> None:
    """Real sizes and times; of long workloads the first sixty tasks."""
    scenario = load_packing(name)
    found = compile_problem(scenario).tasks
    few = Tasks(*(getattr(found, column)[:60] for column in Tasks.__slots__))
    agree(replace(scenario, tasks=few, generate=None), policies.pieces_named(policy, scenario.policy))


def test_every_piece_is_compared() -> None:
    assert {p.name for p in policies.PLACEMENTS} == set(PLACEMENTS)
    assert {p.name for p in policies.ORDERS} == set(ORDERS)
    assert {p.name for p in policies.EVICTIONS} == set(EVICTIONS)
