"""The exact policy against every legal plan of tiny scenarios, and how it stops, speaks and refuses."""

import builtins
import math
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import scenarios

from allocation.reference import MORE, count_figures
from allocation.test_brute_force import contended, optimum, places
from gpuplan.allocation import certify as proofs
from gpuplan.allocation import engine
from gpuplan.allocation.certify import certify
from gpuplan.allocation.exact import amounts as counting
from gpuplan.allocation.exact import solve as solving
from gpuplan.allocation.exact.amounts import amounts, units_above, units_of
from gpuplan.allocation.exact.models import times_model
from gpuplan.allocation.model import (
    AllocationScenario,
    BatchJob,
    Horizon,
    Objective,
    RealtimeApp,
    Rules,
)
from gpuplan.allocation.plan import Plan, plan
from gpuplan.allocation.policies import Assignment, Progress
from gpuplan.allocation.problem import compile_problem
from gpuplan.cluster import Cluster
from gpuplan.inputs.errors import InputError
from gpuplan.loading import load

#: Ways to place all jobs of a scenario up to which every one is tried.
WAYS = 4_000


def counted(made: Plan) -> Fraction:
    """The objective counted cell by cell by code that shares nothing with the product."""
    found = count_figures(made.scenario, made.policy, made.start.tolist(), made.grid.tolist())["objective"]
    assert found is not None
    return Fraction(found)


def small_enough(scenario: AllocationScenario) -> AllocationScenario:
    """The scenario without its last jobs, so many that all plans can be tried."""
    jobs = list(scenario.batch)
    while math.prod(len(places(scenario, job)) for job in jobs) > WAYS:
        jobs.pop()
    return replace(scenario, batch=tuple(jobs))


@pytest.mark.parametrize("family", ["any", "contended"])
@settings(max_examples=80 * MORE)
@given(data=st.data())
def test_the_exact_plan_is_the_best_of_all_legal_plans_to_the_last_digit(
    family: str, data: st.DataObject
) -> None:
    """Up to 4 GPUs, 6 steps, 5 jobs, one app; every rule of the schema, ranges of GPUs included."""
    engine.compile_here()
    whole_schema = scenarios(max_gpus=4, max_steps=6, max_jobs=5, max_apps=1)
    scenario = small_enough(data.draw(whole_schema if family == "any" else contended()))
    best = optimum(scenario)
    made = plan(scenario, "exact", time_limit_s=20)
    assert made.check() == []
    assert counted(made) == best
    assert made.proof is not None
    assert made.proof.status == "optimal"
    assert made.gap == 0
    assert made.bound == made.figures["objective"]
    searched = plan(scenario, "search", iterations=40)
    assert counted(searched) <= best
    # what the kernels and the exact arithmetic of the solver count is the same
    problem = compile_problem(scenario)
    answer = Assignment(made.start, made.first_gpu, made.size, made._hold)
    assert Fraction(units_of(problem, answer), 10**9) * Fraction(scenario.horizon.step_s, 3600) == best


@settings(max_examples=20 * MORE)
@given(scenarios(max_gpus=12, max_steps=10, max_jobs=6, max_apps=2))
def test_the_bound_holds_for_every_plan_and_is_never_above_that_of_prices(
    scenario: AllocationScenario,
) -> None:
    engine.compile_here()
    made = plan(scenario, "exact", time_limit_s=5)
    assert made.check() == []
    for policy in ("curve-fifo", "curve-priority", "aware"):
        other = plan(scenario, policy)
        objective = float(other.figures["objective"] or 0)
        assert objective <= made.bound + 1e-9 * max(1.0, abs(made.bound))
    assert made.bound <= other.bound + 1e-9 * max(1.0, abs(other.bound))


@pytest.mark.parametrize(
    ("name", "objective"),
    [("training-rush", 693.063499), ("two-apps", 1104.9034), ("mixed-day", 473.351264)],
)
def test_shipped_days_are_proven_optimal(name: str, objective: float) -> None:
    made = plan(load(name), "exact", time_limit_s=60)
    assert made.check() == []
    assert made.proof is not None
    assert made.proof.status == "optimal"
    assert made.figures["objective"] == pytest.approx(objective, abs=1e-6)
    assert made.proof.sentence == f"Proven optimal: no legal plan is worth more than {objective:,.2f}."
    history = made.proof.history
    assert [p.objective for p in history] == sorted(p.objective for p in history)
    bounds = [p.bound for p in history if p.bound is not None]
    assert bounds == sorted(bounds, reverse=True)
    assert history[-1].objective == history[-1].bound


def test_a_time_limit_of_nothing_returns_the_start_with_its_bound_unknown() -> None:
    made = plan(load("training-rush"), "exact", time_limit_s=0)
    assert made.check() == []
    assert made.proof is not None
    assert (made.proof.bound, made.proof.status) == (None, "none")
    assert made.proof.sentence.startswith("Nothing was proven: the time limit is 0")
    assert float(made.figures["objective"] or 0) >= float(plan(made.scenario).figures["objective"] or 0)


def test_it_stops_with_the_best_so_far_when_asked_to() -> None:
    """As Ctrl-C does: raised from the listener at the first news."""
    asked: list[Progress] = []

    def stop(progress: Progress) -> None:
        asked.append(progress)
        raise KeyboardInterrupt

    made = plan(load("big-day"), "exact", time_limit_s=60, report=stop)
    assert asked
    assert made.check() == []
    assert made.proof is not None
    assert made.proof.status in ("none", "bounded")
    assert "stopped before the proof was complete" in made.proof.sentence


@pytest.fixture
def listening() -> Iterator[None]:
    """Python's own handler of Ctrl-C: a process that was started in the background of a shell ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("after_s", [0.0, 0.5])
def test_a_signal_of_ctrl_c_stops_it_and_the_next_one_is_heard_too(after_s: float) -> None:
    """The solver's own handler of signals would end the process at the second one, or wait for itself."""
    handler = signal.getsignal(signal.SIGINT)
    for _ in range(2):
        sent: list[Progress] = []

        def interrupt(progress: Progress, sent: list[Progress] = sent) -> None:
            if progress.bound is not None and progress.seconds >= after_s and not sent:
                sent.append(progress)
                os.kill(os.getpid(), signal.SIGINT)

        made = plan(load("big-day"), "exact", time_limit_s=60, report=interrupt)
        assert made.check() == []
        assert made.proof is not None
        assert made.proof.status == "bounded"
        assert sent
        assert "stopped before the proof was complete" in made.proof.sentence
        assert signal.getsignal(signal.SIGINT) is handler


def without_ortools(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: Callable[..., Any] = builtins.__import__

    def refuse(name: str, *arguments: Any, **more: Any) -> Any:
        if name.startswith("ortools"):
            raise ImportError(name)
        return imported(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_without_ortools_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    without_ortools(monkeypatch)
    with pytest.raises(InputError) as caught:
        plan(load("mixed-day"), "exact")
    assert 'pip install "gpuplan[exact]"' in str(caught.value)
    assert len(caught.value.mistakes) == 1
    assert plan(load("mixed-day"), "search", iterations=50).check() == []


def test_a_scenario_without_a_legal_plan_is_named_with_the_rules_in_conflict() -> None:
    """The border refuses it; whoever gets past the border with a scenario of his own is told as well."""
    app = RealtimeApp("chat", 1.0, (1, 1), min_gpus=3)
    busy = BatchJob("busy", "training", 2, 2.0, 1.0, running_on=0)
    scenario = AllocationScenario("stuck", Cluster(4), Horizon(2), realtime=(app,), batch=(busy,))
    with pytest.raises(InputError, match="at least 3 GPUs at step 0 together"):
        scenario.replace({})
    with pytest.raises(InputError, match=r"has no legal plan: .*at least 3 GPUs at step 0"):
        plan(scenario, "exact")


def test_amounts_that_do_not_fit_the_solver_are_rounded_so_that_the_bound_stays_one() -> None:
    jobs = tuple(
        BatchJob(f"j{i}", "training", 2048, 100.0, 999_999.0 + i / 1000, earliest_hour=float(i))
        for i in range(40)
    )
    scenario = AllocationScenario(
        "huge", Cluster(8192), Horizon(300), Objective(8.0, 1000.0), Rules(must_finish=False), batch=jobs
    )
    problem = compile_problem(scenario)
    found = amounts(problem)
    assert not found.exact
    times = times_model(found)
    assert times.starts
    exact = sum(problem.option_milli)
    assert exact > 0
    for option, start in ((0, 0), (5, 17), (39, 299)):
        size, length = 2048, min(100, 300 - start)
        units = (
            problem.option_milli[option]
            * size
            * int(problem.weight_sum[start + length] - problem.weight_sum[start])
        )
        assert found.gain(option, start) * found.unit >= units


def test_amounts_beyond_what_floats_can_tell_apart_are_proven_as_whole_numbers() -> None:
    """Objectives of 54 bits: what the solver tells as floats is told apart by what it counted."""
    jobs = tuple(BatchJob(f"j{i}", "training", 4, 11.0 + i, 999_999.0 + i / 1000) for i in range(3))
    scenario = AllocationScenario("dear", Cluster(4), Horizon(24), Objective(8.0, 24.0), batch=jobs)
    problem = compile_problem(scenario)
    found = amounts(problem)
    assert found.exact
    made = plan(scenario, "exact", time_limit_s=20)
    assert counted(made) == optimum(scenario)
    assert counted(made) * 10**9 > found.unit << 53
    assert made.proof is not None
    assert made.proof.status == "optimal"


@given(st.floats(-1e12, 1e12))
def test_a_bound_in_units_is_never_below_the_bound_in_hours(bound: float) -> None:
    problem = compile_problem(load("training-rush"))
    units = units_above(problem, bound)
    step_hours = Fraction(problem.scenario.horizon.step_s, 3600)
    assert Fraction(units, 10**9) * step_hours > Fraction(bound)
    assert problem.hours(units) == pytest.approx(bound, rel=1e-12, abs=1e-8)


def test_a_bound_of_the_solver_that_is_told_as_a_float_is_never_below_what_it_stands_for() -> None:
    found = amounts(compile_problem(load("training-rush")))
    for whole in (0, 7, (1 << 53) + 1, (1 << 59) + 33, -(1 << 59) - 33):
        assert found.bound_units(float(whole)) >= found.exact_units(whole)


def test_a_day_too_large_for_the_solver_is_searched_and_bounded_by_prices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(solving, "MOST_CHOICES", 10)
    monkeypatch.setattr(solving, "times_model", None)
    scenario = load("benchmark-large-blocks")
    made = plan(scenario, "exact", time_limit_s=0.5)
    assert made.check() == []
    assert made.proof is not None
    assert made.proof.status == "bounded"
    assert made.proof.bound == pytest.approx(plan(scenario, "aware").bound)
    assert made.proof.sentence.startswith("At most ")


def test_amounts_that_were_rounded_are_told_and_the_bound_still_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counting, "MOST", 1 << 12)
    scenario = load("mixed-day")
    made = plan(scenario, "exact", time_limit_s=2)
    assert made.check() == []
    assert made.proof is not None
    assert made.proof.bound is not None
    assert made.proof.bound >= 473.351264 - 1e-9
    assert made.proof.status == "bounded"
    assert "rounded upwards, so that the bound still holds" in made.proof.sentence


def test_a_certificate_is_kept_by_fingerprint_and_lowers_the_bound_of_other_plans() -> None:
    proofs.forget()
    scenario = load("training-rush")
    quick = plan(scenario)
    proof = certify(scenario, time_limit_s=60)
    assert proof.status == "optimal"
    assert certify(scenario, time_limit_s=0) is proof
    assert proofs.known_proof(scenario) is proof
    certified = quick.with_proof(proof)
    assert certified.fingerprint == quick.fingerprint
    assert certified.bound == proof.bound
    assert certified.bound < quick.bound
    assert certified.gap == pytest.approx((693.063499 - float(quick.figures["objective"] or 0)) / 693.063499)
    assert quick.gap > certified.gap  # a plan without the proof does not change behind its owner's back


def test_a_reservation_that_no_swap_cap_binds_keeps_the_bound_that_holds_for_it() -> None:
    """FIFO may take five GPUs at once where an app under a cap of one GPU a step must ramp up: it earns more."""
    app = RealtimeApp("chat", 5.0, (5,) * 6, max_swap=1, held=())
    scenario = AllocationScenario("ramp", Cluster(8), Horizon(6), realtime=(app,))
    proof = certify(scenario, time_limit_s=20)
    fifo = plan(scenario, "fifo").with_proof(proof)
    assert proof.bound is not None
    assert float(fifo.figures["objective"] or 0) == 0 > proof.bound
    assert fifo.bound >= 0
    assert fifo.gap >= 0
