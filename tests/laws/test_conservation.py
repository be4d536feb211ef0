"""Nothing is made of nothing: GPU-time of every policy adds up, protection holds, preemption comes to an end.

The books are kept here anew from the stretches alone: what a stretch keeps follows from its length and the contract.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from fairshare.strategies import scenarios
from hypothesis import HealthCheck, given, settings

import gpuplan as gp
from gpuplan.fairshare.jobs import jobs
from gpuplan.fairshare.model import (
    HOUR,
    NEVER,
    Behaviour,
    BudgetNode,
    Contract,
    Drain,
    FairshareScenario,
    Generate,
    Pool,
)
from gpuplan.fairshare.policies import ALL, POLICIES
from gpuplan.fairshare.problem import jobs_of
from gpuplan.fairshare.raw import FINISHED, PREEMPTED, RUNNING
from gpuplan.fairshare.run import Run, simulate
from gpuplan.fairshare.tree import tree_of

AB = (BudgetNode("a"), BudgetNode("b"))

#: Policies under which work with a budget is protected for its minimum run time.
PROTECTING = tuple(policy.name for policy in ALL if policy.budgets)


@dataclass
class Books:
    """GPU-seconds, and the run time that each job has behind it."""

    occupied: int = 0
    useful: int = 0
    lost: int = 0
    requested: int = 0
    outstanding: int = 0


def books(run: Run) -> Books:
    """Follow every job through its stretches."""
    found, rows, table = Books(), run.stretches, run.problem.jobs
    contract, done = run.scenario.contract, [0] * len(table)
    last: dict[int, int] = {}
    for s in range(len(rows)):
        j = int(rows.job[s])
        gpus, length = int(table.gpus[j]), int(rows.end_s[s] - rows.start_s[s])
        # a job starts anew for nothing unless it was interrupted before
        restart = min(contract.restart_cost_s, length) if j in last else 0
        work, rest = length - restart, int(table.run_s[j]) - done[j]
        last[j] = int(rows.outcome[s])
        if last[j] == FINISHED:
            assert work == rest
            kept = work
        elif last[j] == RUNNING:
            assert work <= rest
            kept = work
        else:
            every = contract.checkpoint_every_s
            kept = work // every * every if table.resumable[j] else 0
        done[j] += kept
        found.occupied += gpus * length
        found.useful += gpus * kept
        found.lost += gpus * (length - kept)
    end = run.end_s
    for j in range(len(table)):
        submitted = table.submit_s[j] < end or (run.problem.until_s == NEVER and table.submit_s[j] <= end)
        if j in run.reasons or not (submitted or j in last):
            assert done[j] == 0
            continue
        found.requested += int(table.gpus[j]) * int(table.run_s[j])
        if last.get(j) != FINISHED:
            found.outstanding += int(table.gpus[j]) * (int(table.run_s[j]) - done[j])
        else:
            assert done[j] == table.run_s[j]
    return found


def adds_up(run: Run) -> Books:
    """The laws of conservation, and that the figures say the same."""
    found = books(run)
    assert found.occupied == found.useful + found.lost
    assert found.requested == found.useful + found.outstanding
    # the same time, counted on the nodes
    rows = run.stretches
    length = (rows.end_s - rows.start_s)[rows.place_stretch]
    assert int((rows.place_gpus * length).sum()) == found.occupied
    figures = run.figures
    assert figures["lost_gpu_hours"] == pytest.approx(found.lost / HOUR)
    if run.end_s and not run.scenario.drains:
        installed = run.scenario.gpus * run.end_s
        idle = (figures["idle_gpu_hours"] or 0) * HOUR
        assert figures["occupancy"] == pytest.approx(found.occupied / installed)
        assert figures["goodput"] == pytest.approx((found.useful - idle) / installed)
    return found


def protected(run: Run) -> None:
    """No work with a budget was interrupted inside its effective minimum run time, whatever the log says of it."""
    rows, table = run.stretches, run.problem.jobs
    cap = run.scenario.contract.max_min_runtime_s
    minimum = np.minimum(np.minimum(table.minimum_s, cap), table.limit_s)[rows.job]
    cut = rows.allocated & (rows.outcome == PREEMPTED)
    assert (rows.end_s - rows.start_s >= minimum)[cut].all()
    # what declares a minimum is charged, what declares none is not
    assert (rows.allocated == (table.minimum_s > 0)[rows.job]).all()


def weeks(load: float, days: float, seed: int, **changes: object) -> FairshareScenario:
    """A small cluster of two kinds of nodes, four teams, a repair."""
    scenario = FairshareScenario(
        "weeks",
        (Pool(6, 8, "H100"), Pool(4, 4, "H100")),
        (
            BudgetNode("x", 3, (BudgetNode("p", 2), BudgetNode("q", 1))),
            BudgetNode("y", 2, (BudgetNode("r"), BudgetNode("s", 0.5))),
        ),
        generate=Generate(days, load, 0.2, seed),
    )
    return replace(scenario, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("load", "seed"), [(0.8, 1), (1.1, 2), (2.5, 3)])
def test_generated_weeks(policy: str, load: float, seed: int) -> None:
    run = simulate(weeks(load, 14, seed, until_s=14 * 24 * HOUR), policy)
    found = adds_up(run)
    assert found.useful > 0
    if policy in PROTECTING:
        protected(run)
        assert found.lost > 0, "nothing was preempted: the workload is too small to say anything"
    elif policy != "priority-tiers":
        assert found.lost == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_generated_weeks_with_repairs_and_habits(policy: str) -> None:
    drains = tuple(Drain(node, 24 * HOUR * (1 + node), 4 * HOUR) for node in range(5))
    habits = Behaviour(inflation=0.5, squatting=0.5, opt_out=0.3, opt_out_limit_gpus=16)
    scenario = weeks(1.3, 10, 4, until_s=10 * 24 * HOUR, drains=drains, behaviour=habits)
    run = simulate(scenario, policy)
    adds_up(run)
    assert (run.raw.repair_end_s < NEVER).all()
    if policy in PROTECTING:
        protected(run)


@pytest.mark.parametrize("policy", POLICIES)
def test_all_work_gets_done_where_nobody_stops_the_clock(policy: str) -> None:
    scenario = weeks(1.5, 5, 5)
    made = jobs_of(scenario, tree_of(scenario.budget))
    run = simulate(replace(scenario, generate=None, jobs=made), policy)
    found = adds_up(run)
    assert found.outstanding == 0
    assert run.figures["jobs_finished"] == len(made) - len(run.reasons)
    assert found.useful == found.requested


@pytest.mark.parametrize("policy", POLICIES)
@given(scenarios())
@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
def test_tiny_crowded_clusters(policy: str, scenario: FairshareScenario) -> None:
    run = simulate(scenario, policy)
    adds_up(run)
    if policy in PROTECTING:
        protected(run)


# ---------------------------------------------------------------- preemption comes to an end


def rivals(*, resumable: bool, minimum_s: int, run_s: int = 1000) -> FairshareScenario:
    """One GPU, two teams with a job each, no hysteresis: whoever waits has the better claim a moment later.

    Weights 1000 and 999: after every minimum run time the ratios differ, b's a little above a's when both had as much.
    """
    made = jobs(
        ["a1", "b1"], [0, 0], [1, 1], [run_s] * 2, team=["a", "b"], minimum_s=minimum_s, resumable=resumable
    )
    contract = Contract(8 * HOUR, checkpoint_every_s=60, restart_cost_s=5, hysteresis=0.0)
    budget = (BudgetNode("a", 1000), BudgetNode("b", 999))
    return FairshareScenario("rivals", (Pool(1, 1),), budget, 10_000_000, contract, jobs=made)


@pytest.mark.parametrize(
    ("resumable", "minimum_s"), [(False, 1), (False, 999), (True, 1), (True, 59)], ids=str
)
def test_work_that_never_gets_on_stops_the_run_with_a_sentence(resumable: bool, minimum_s: int) -> None:
    """Nothing is kept of a stretch: work that starts over, or ends before its first checkpoint."""
    run = simulate(rivals(resumable=resumable, minimum_s=minimum_s), "fair-share")
    assert run.raw.stopped.startswith("Stopped here: work is preempted again and again")
    assert "needs a longer minimum run time" in run.raw.stopped
    # a run that was stopped says so wherever it is shown
    assert "stopped" in repr(run)
    assert run.stopped in run._repr_html_()
    assert run.report()["stopped"] == run.stopped
    found = adds_up(run)
    assert found.useful < 1000
    assert run.figures["jobs_outstanding"] == 2
    assert run.figures["preemptions"] < 10_000


@pytest.mark.parametrize(("resumable", "minimum_s"), [(False, 1000), (True, 65), (True, 125)], ids=str)
def test_work_that_gets_on_ends(resumable: bool, minimum_s: int) -> None:
    run = simulate(rivals(resumable=resumable, minimum_s=minimum_s), "fair-share")
    assert run.raw.stopped == ""
    assert run.figures["jobs_finished"] == 2
    adds_up(run)


def test_unallocated_work_under_a_stream_of_debug_jobs_ends() -> None:
    """A filler that cannot resume is ended by every debug job; after the last of them it runs through."""
    n = 200
    made = jobs(
        ["filler", *(f"debug-{k}" for k in range(n))],
        [0, *range(10, 10 + 100 * n, 100)],
        [1] * (n + 1),
        [150, *[10] * n],
        team=["a", *["b"] * n],
        minimum_s=[0, *[10] * n],
        resumable=False,
    )
    run = simulate(FairshareScenario("stream", (Pool(1, 1),), AB, jobs=made), "fair-share")
    assert run.raw.stopped == ""
    # the last debug job is submitted at 19,910 s and ends at 19,920 s; restart 300 s, then 150 s of work
    assert run.end_s == 10 + 100 * (n - 1) + 10 + 300 + 150
    assert run.figures["preemptions"] == n
    adds_up(run)


# ---------------------------------------------------------------- hysteresis


def test_without_hysteresis_about_half_of_the_time_is_lost_and_occupancy_looks_perfect() -> None:
    """Ten days of fifteen teams that want 2.5 times what there is."""
    shipped = gp.load("fifteen-teams").replace(
        {"workload.generate.days": 10, "workload.generate.oversubscription": 2.5}
    )
    calm = gp.simulate(shipped).figures
    wild = gp.simulate(shipped.replace({"contract.hysteresis": 0})).figures
    assert 0.3 < wild["lost_share"] < 0.7
    assert wild["goodput"] < 0.7
    # the figures that do not show it
    assert wild["occupancy"] > 0.95
    assert wild["delivered_share"] > 0.95
    assert wild["preemptions"] > 4 * calm["preemptions"]
    assert calm["lost_share"] < 0.08
    assert calm["goodput"] > 0.88
