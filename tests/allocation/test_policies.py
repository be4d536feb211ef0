"""The contract that every policy keeps, and the FIFO family against a second implementation."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import scenarios

from allocation.reference import (
    BY_PRIORITY,
    MORE,
    RESERVING,
    broken_rules,
    count_figures,
    curve,
    inherited,
    place_batch,
    reference_plan,
)
from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.plan import Plan, plan
from gpuplan.allocation.policies import POLICIES

CURVES = ("curve-fifo", "curve-priority")


def exact(made: Plan, figure: str) -> float:
    """A figure as an exact fraction, from the independent count."""
    counted = count_figures(made.scenario, made.policy, made.start.tolist(), made.grid.tolist())[figure]
    assert counted is not None
    return counted  # type: ignore[return-value]


def broken(made: Plan) -> set[str]:
    return broken_rules(
        made.scenario, made.policy, made.start.tolist(), made.first_gpu.tolist(), made.grid.tolist()
    )


def test_the_policies_are_those_of_the_design() -> None:
    assert POLICIES == (
        "fifo",
        "fifo-strict",
        "curve-fifo",
        "peak-priority",
        "curve-priority",
        "aware",
        "search",
        "exact",
    )


def test_an_unknown_policy_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(ValueError, match="curve-fifo"):
        plan(AllocationScenario("s", cluster=_one_gpu()), "fastest")


def _one_gpu():  # type: ignore[no-untyped-def]
    from gpuplan.cluster import Cluster

    return Cluster(1)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=30 * MORE)
@given(scenario=scenarios(max_gpus=70, max_steps=16))
def test_every_policy_keeps_the_contract(policy: str, scenario: AllocationScenario) -> None:
    """Legal by the checker and by a second look; right shapes and types; the same again.

    Workers of ``exact`` race: of equal optima either may come first, so there the proven worth is what repeats.
    """
    made = plan(scenario, policy, iterations=50, time_limit_s=0.5)
    assert made.check() == []
    assert broken(made) == set()
    assert made.violations == 0
    assert made.policy == policy
    assert made.scenario == scenario
    n_jobs, n_apps = len(scenario.batch), len(scenario.realtime)
    assert (made.grid.dtype, made.grid.shape) == (
        np.int32,
        (scenario.cluster.gpus, scenario.horizon.steps),
    )
    for array in (made.start, made.first_gpu, made.end):
        assert (array.dtype, array.shape) == (np.int64, (n_jobs,))
    for array in (made.held, made.demand, made.served):
        assert (array.dtype, array.shape) == (np.int64, (n_apps, scenario.horizon.steps))
    again = plan(scenario, policy, iterations=50, time_limit_s=0.5)
    if policy == "exact":
        assert made.proof is not None
        assert again.proof is not None
        for one, other in ((made, again), (again, made)):
            assert one.bound is not None
            assert exact(other, "objective") <= one.bound + 1e-6
        if made.proof.status == again.proof.status == "optimal":  # a busy machine may stop before
            assert exact(again, "objective") == exact(made, "objective")
        return
    assert again.grid.tobytes() == made.grid.tobytes()
    assert again.figures == made.figures
    assert again.fingerprint == made.fingerprint
    assert repr(again) == repr(made)


@pytest.mark.parametrize("policy", RESERVING)
@settings(max_examples=60 * MORE)
@given(scenario=scenarios(max_gpus=40, max_steps=20))
def test_fifo_equals_the_reference_cell_by_cell(policy: str, scenario: AllocationScenario) -> None:
    made, wanted = plan(scenario, policy), reference_plan(scenario, policy)
    assert made.grid.tolist() == wanted.grid
    assert made.start.tolist() == wanted.start
    assert made.first_gpu.tolist() == wanted.first_gpu


@pytest.mark.parametrize("policy", CURVES)
@settings(max_examples=40 * MORE)
@given(scenario=scenarios(max_gpus=40, max_steps=20))
def test_batch_work_of_the_curve_policies_fills_what_their_apps_leave(
    policy: str, scenario: AllocationScenario
) -> None:
    """Whatever GPUs the apps hold, batch work goes to the earliest step and the lowest GPU beside them."""
    made, grid = plan(scenario, policy), inherited(scenario)
    for gpu, step in np.argwhere(made.grid >= len(scenario.batch)):
        grid[gpu][step] = int(made.grid[gpu, step])
    start, first = place_batch(scenario, grid, policy)
    assert made.grid.tolist() == grid
    assert made.start.tolist() == start
    assert made.first_gpu.tolist() == first


@st.composite
def open_roads(draw: st.DrawFn, max_apps: int) -> AllocationScenario:
    """Scenarios in which nothing stands in the way of the apps' curves."""
    scenario = draw(scenarios(max_gpus=24, max_steps=16, max_jobs=6, max_apps=max_apps))
    assume(scenario.realtime)
    room = scenario.cluster.gpus - len(scenario.cluster.unavailable)
    room //= len(scenario.realtime)
    apps = []
    for app in scenario.realtime:
        most = min(room, room if app.max_gpus is None else app.max_gpus)
        low = min(app.min_gpus, most)
        demand = tuple(min(d, most) for d in app.demand)
        apps.append(replace(app, demand=demand, shape=None, min_gpus=low, held=None, swap_budget=None))
    jobs = tuple(replace(job, running_on=None) for job in scenario.batch)
    return replace(scenario, realtime=tuple(apps), batch=jobs)


@settings(max_examples=60 * MORE)
@given(open_roads(max_apps=1))
def test_one_app_follows_its_curve_from_the_high_end(scenario: AllocationScenario) -> None:
    scenario = replace(scenario, cluster=replace(scenario.cluster, unavailable=()))
    for policy in CURVES:
        made, wanted = plan(scenario, policy), reference_plan(scenario, policy)
        assert made.held[0].tolist() == curve(scenario, scenario.realtime[0])
        assert made.grid.tolist() == wanted.grid


@settings(max_examples=60 * MORE)
@given(open_roads(max_apps=3))
def test_apps_that_do_not_meet_hold_the_least_that_covers_demand(scenario: AllocationScenario) -> None:
    for policy in CURVES:
        made = plan(scenario, policy)
        assert made.held.tolist() == [curve(scenario, app) for app in scenario.realtime]
        assert made.figures["shortfall_gpu_hours"] == 0.0


@settings(max_examples=40 * MORE)
@given(scenarios(max_gpus=24, max_steps=16), st.randoms(use_true_random=False))
def test_file_order_does_not_matter_where_priorities_differ(scenario: AllocationScenario, random) -> None:  # type: ignore[no-untyped-def]
    jobs = [replace(job, priority=float(1 + j)) for j, job in enumerate(scenario.batch)]
    given_order = replace(scenario, batch=tuple(jobs))
    random.shuffle(jobs)
    shuffled = replace(scenario, batch=tuple(jobs))
    for policy in BY_PRIORITY:
        one, other = plan(given_order, policy), plan(shuffled, policy)
        places = [
            {job.name: (int(made.start[j]), int(made.first_gpu[j])) for j, job in enumerate(batch)}
            for made, batch in ((one, given_order.batch), (other, shuffled.batch))
        ]
        assert places[0] == places[1]
        for name, figure in one.figures.items():
            if name in ("bound", "gap"):  # sums of floating-point prices, rounded in file order
                assert other.figures[name] == pytest.approx(figure, rel=1e-6, abs=1e-6)
            else:
                assert other.figures[name] == figure


@settings(max_examples=30 * MORE)
@given(scenarios(max_gpus=24, max_steps=16))
def test_the_order_in_which_held_gpus_are_listed_does_not_matter(scenario: AllocationScenario) -> None:
    assume(any(app.held for app in scenario.realtime))
    backwards = tuple(
        replace(app, held=None if app.held is None else app.held[::-1]) for app in scenario.realtime
    )
    for policy in POLICIES:
        if policy == "exact":  # of equal optima either may come first
            continue
        one = plan(scenario, policy, iterations=50)
        other = plan(replace(scenario, realtime=backwards), policy, iterations=50)
        assert one.grid.tobytes() == other.grid.tobytes()


# ---------------------------------------------------------------- what aware promises


@settings(max_examples=60 * MORE)
@given(scenarios(max_gpus=32, max_steps=24))
def test_aware_is_never_worse_than_following_the_curve(scenario: AllocationScenario) -> None:
    aware = exact(plan(scenario, "aware"), "objective")
    for policy in CURVES:
        assert aware >= exact(plan(scenario, policy), "objective")


@settings(max_examples=60 * MORE)
@given(scenarios(max_gpus=32, max_steps=24))
def test_without_a_penalty_traffic_costs_batch_work_nothing(scenario: AllocationScenario) -> None:
    """Soft demand only: no minimum, nothing held that would have to be given back step by step."""
    soft = tuple(replace(app, min_gpus=0, held=None) for app in scenario.realtime)
    free = replace(scenario, realtime=soft, objective=replace(scenario.objective, shortfall_penalty=0.0))
    alone = replace(free, realtime=())
    assert exact(plan(free, "aware"), "value") >= exact(plan(alone, "aware"), "value")


@settings(max_examples=60 * MORE)
@given(scenarios(max_gpus=16, max_steps=16))
def test_with_a_huge_penalty_everybody_is_served_who_can_be(scenario: AllocationScenario) -> None:
    """One unit at 1000 outweighs all batch work of equal priority on 16 x 16 cells."""
    equal = replace(
        scenario,
        objective=replace(scenario.objective, shortfall_penalty=1000.0),
        realtime=tuple(replace(app, priority=2.0) for app in scenario.realtime),
        batch=tuple(replace(job, priority=2.0) for job in scenario.batch),
    )
    aware, follower = plan(equal, "aware"), plan(equal, "curve-priority")
    assert exact(aware, "shortfall_gpu_hours") <= exact(follower, "shortfall_gpu_hours")


def _above(bound: float, objective: float, made: Plan) -> bool:
    size = abs(exact(made, "value")) + abs(exact(made, "penalty"))
    return bound >= float(objective) - 1e-9 * max(1.0, float(size))


@settings(max_examples=40 * MORE)
@given(scenarios(max_gpus=32, max_steps=24))
def test_no_plan_that_keeps_the_caps_beats_the_bound(scenario: AllocationScenario) -> None:
    bounds = set()
    for policy in (*CURVES, "aware"):
        made = plan(scenario, policy)
        bounds.add(made.bound)
        assert _above(made.bound, exact(made, "objective"), made)
        assert made.figures["gap"] >= -1e-9  # type: ignore[operator]
    assert len(bounds) == 1  # the bound belongs to the scenario


@settings(max_examples=40 * MORE)
@given(scenarios(max_gpus=32, max_steps=24))
def test_no_reservation_beats_the_bound_either(scenario: AllocationScenario) -> None:
    """A reservation is exempt from caps and minimums, so this is a promise of its own."""
    for policy in RESERVING:
        made = plan(scenario, policy)
        assert _above(made.bound, exact(made, "objective"), made)
