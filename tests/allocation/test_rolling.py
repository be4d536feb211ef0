"""Rolling runs: worked by hand, legal under every policy and error, the same again."""

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import scenarios

from gpuplan.allocation import engine
from gpuplan.allocation.days import DAY_S, Errors, repeated, unfold
from gpuplan.allocation.model import AllocationScenario, BatchJob, Horizon, Objective, RealtimeApp
from gpuplan.allocation.policies import POLICIES
from gpuplan.allocation.rolling import roll
from gpuplan.allocation.rolling_run import ROLLING_UNITS, RollingRun
from gpuplan.benchmarks.allocation import made_up
from gpuplan.cluster import Cluster
from gpuplan.inputs.errors import InputError
from gpuplan.loading import load

HOUR = 3600


def job(name: str, gpus: int, hours: float, priority: float = 1.0, **more: Any) -> BatchJob:
    return BatchJob(name, "training", gpus, hours, priority, **more)


def day(gpus: int, batch: tuple[BatchJob, ...], apps: tuple[RealtimeApp, ...] = ()) -> AllocationScenario:
    """A day of 24 hours."""
    return AllocationScenario(
        "day", Cluster(gpus), Horizon(24), Objective(8.0, 24.0), realtime=apps, batch=batch
    )


def starts(run: RollingRun) -> dict[str, int]:
    return {
        job.name.removesuffix(" (day 1)"): int(start)
        for job, start in zip(run.days.span.batch, run.plan.start, strict=True)
        if "(day 1)" in job.name
    }


# ------------------------------------------------------------------------------- worked by hand


def test_without_errors_a_day_goes_as_the_first_plan_said() -> None:
    """Two GPUs: the job of both for 10 h and then two of one GPU each, or the other way round; nothing else happens."""
    run = roll(day(2, (job("both", 2, 10, 5), job("left", 1, 8, 2), job("right", 1, 8, 2))), days=1)
    assert starts(run) == {"both": 0, "left": 10, "right": 10}
    assert run.figures["utilization"] == pytest.approx((20 + 8 + 8) / 48)
    assert run.figures["value"] == pytest.approx(20 * 5 + 16 * 2)
    assert run.figures["churn"] == 0
    assert run.figures["promise_start_shift_p90_hours"] == 0
    assert run.figures["plans"] == 24
    assert run.check() == []


def test_value_of_days_is_not_decayed() -> None:
    run = roll(load("training-rush"), days=3)
    assert run.figures["value"] == run.figures["value_undecayed"]


def test_a_job_that_runs_longer_keeps_its_gpus_and_the_next_one_waits() -> None:
    """Announced are 4 h and 4 h, the first takes 8: the second starts at 8; plans hope for the next hour till then."""
    span = repeated(day(1, (job("first", 1, 8, 9), job("second", 1, 4, 1))), 1, 24)
    world = unfold(span, steps=24, horizon=24)
    announced = np.array([0.5, 1.0])
    run = roll(replace(world, announced=announced), "fifo")
    assert starts(run) == {"first": 0, "second": 8}
    promised = [int(promise.start[list(promise.jobs).index(1)]) for promise in run.promises[:9]]
    assert promised == [4, 4, 4, 4, 5, 6, 7, 8, 8]
    assert run.figures["promise_start_shift_p50_hours"] == 4.0
    # eight promises were made before, those of hours 0 to 3 and the last one were kept by the next plan
    assert run.figures["churn"] == pytest.approx(4 / 8)


def test_a_job_that_ends_early_gives_its_gpus_back_with_the_step() -> None:
    span = repeated(day(1, (job("first", 1, 2.5, 9), job("second", 1, 4, 1))), 1, 24)
    world = unfold(span, steps=24, horizon=24)
    run = roll(replace(world, announced=np.array([4.0, 1.0])), "fifo")
    assert starts(run) == {"first": 0, "second": 3}  # 10 h announced, 3 steps taken


def test_nobody_plans_for_a_job_before_it_is_known() -> None:
    """A long job of little worth takes the GPU where the dear one of hour 5 is a surprise, else it waits."""
    batch = (job("cheap", 1, 20, 1), job("dear", 1, 12, 50, earliest_hour=5))
    known, surprise = (roll(day(1, batch), days=1, errors=Errors(unannounced=share)) for share in (0.0, 1.0))
    assert starts(known)["dear"] == 5
    assert starts(surprise) == {"cheap": 0, "dear": 20}
    seen = [1 in promise.jobs for promise in surprise.promises]
    assert seen == [False] * 5 + [True] * 19


def test_fifo_sizes_its_reservation_by_the_coming_day_however_short_it_sees() -> None:
    """The peak of hour 14 is reserved from midnight on, also by plans of one hour."""
    app = RealtimeApp("app", 5.0, tuple(4 if hour == 14 else 1 for hour in range(24)))
    run = roll(day(8, (job("job", 4, 6),), (app,)), "fifo", days=2, horizon_hours=1)
    assert (run.plan.held == 4).all()
    assert run.figures["coverage"] == 1.0
    assert run.check() == []


def test_traffic_above_its_forecast_is_not_served() -> None:
    """Forecast half of what comes: of 4 GPUs wanted 2 are held, in all 24 hours."""
    app = RealtimeApp("app", 1.0, (4,) * 24)
    run = roll(day(8, (), (app,)), days=1, errors=Errors(traffic_bias=-0.5))
    assert run.figures["coverage"] == 0.5
    assert run.figures["shortfall_gpu_hours"] == 48
    assert run.figures["penalty"] == 48 * 8
    assert run.figures["promise_coverage_error"] == pytest.approx(0.0)  # what was promised was served: 2 of 4
    hours = run.hours_frame()
    assert (hours["coverage"] == 0.5).all()
    assert hours["demand_gpu_hours"].tolist() == [4.0] * 24


def test_a_plan_that_is_followed_for_longer_does_not_start_on_gpus_that_are_still_in_use() -> None:
    """Replanned every 6 h: the second job was planned for hour 4, the GPU is in use until 5; it waits for hour 6."""
    span = repeated(day(1, (job("first", 1, 5, 9), job("second", 1, 2, 1))), 1, 24)
    world = replace(unfold(span, steps=24, horizon=24), announced=np.array([0.8, 1.0]))
    assert starts(roll(world, "fifo", replan_every=6)) == {"first": 0, "second": 6}
    assert starts(roll(world, "fifo")) == {"first": 0, "second": 5}


def test_the_day_comes_again_with_its_jobs_and_its_demand() -> None:
    scenario = load("two-apps")
    span = repeated(scenario, 3)
    assert span.horizon.steps == 72
    assert len(span.batch) == 3 * len(scenario.batch)
    assert len({job.name for job in span.batch}) == len(span.batch)
    for app, once in zip(span.realtime, scenario.realtime, strict=True):
        assert app.demand == once.demand * 3
    arrivals = [job.earliest_hour for job in span.batch]
    assert arrivals == sorted(arrivals)


def test_what_runs_already_runs_on_the_first_day_only() -> None:
    scenario = load("big-day")
    running = [job for job in scenario.batch if job.running_on is not None]
    span = repeated(scenario, 2)
    assert [job.running_on for job in span.batch[: len(running)]] == [job.running_on for job in running]
    assert all(job.running_on is None for job in span.batch[len(running) :])
    assert len(span.batch) == 2 * len(scenario.batch) - len(running)


# ------------------------------------------------------------------------------------ properties


@st.composite
def rolling_scenarios(draw: st.DrawFn) -> AllocationScenario:
    scenario = draw(scenarios(max_gpus=24, max_steps=12, max_jobs=6, max_apps=2))
    step_s = draw(st.sampled_from([3600, 7200, 21600]))
    return replace(scenario, horizon=replace(scenario.horizon, step_s=step_s))


errors_drawn = st.builds(
    Errors,
    traffic_bias=st.floats(-0.6, 1.0),
    traffic_noise=st.floats(0, 0.8),
    duration_bias=st.floats(-0.6, 1.5),
    duration_noise=st.floats(0, 1.0),
    unannounced=st.floats(0, 1),
)


@settings(deadline=None, max_examples=60)
@given(rolling_scenarios(), errors_drawn, st.integers(0, 3), st.integers(1, 3), st.sampled_from(POLICIES))
def test_committed_days_keep_every_rule_under_every_policy_and_error(
    scenario: AllocationScenario, errors: Errors, seed: int, every: int, policy: str
) -> None:
    engine.compile_here()
    horizon = scenario.horizon
    every = min(every, horizon.steps)
    effort: dict[str, Any] = {"search": {"iterations": 20}, "exact": {"time_limit_s": 0}}.get(policy, {})
    run = roll(
        scenario,
        policy,
        days=2,
        replan_every=every * horizon.step_hours,
        errors=errors,
        seed=seed,
        **effort,
    )
    assert run.check() == []
    figures = run.figures
    n_jobs = len(run.days.span.batch)
    assert figures["jobs_placed"] + figures["jobs_unplaced"] == n_jobs
    assert 0 <= figures["churn"] <= 1
    assert set(figures) <= set(ROLLING_UNITS)
    assert float(figures["objective"]) <= run.hindsight_bound + 1e-6 * abs(run.hindsight_bound)


@pytest.mark.parametrize("policy", ["fifo", "curve-fifo", "aware", "search"])
def test_the_same_days_give_the_same_run(policy: str) -> None:
    errors = Errors(0.1, 0.3, 0.2, 0.5, 0.5)
    runs = [roll(load("two-apps"), policy, days=3, errors=errors, seed=4) for _ in range(2)]
    assert runs[0].fingerprint == runs[1].fingerprint
    other = roll(load("two-apps"), policy, days=3, errors=errors, seed=5)
    assert other.fingerprint != runs[0].fingerprint


def test_a_longer_horizon_meets_the_same_days() -> None:
    """What happens, and what is known of the steps that both see, does not hang on how far plans see."""
    span = repeated(load("two-apps"), 2, 48)
    errors = Errors(0.1, 0.4, 0.1, 0.4, 0.4)
    near, far = (unfold(span, steps=48, horizon=hours, errors=errors, seed=2) for hours in (6, 48))
    assert near.span.batch == far.span.batch
    assert near.span.realtime == far.span.realtime
    assert (near.forecast == far.forecast[:, : near.forecast.shape[1]]).all()
    assert near.forecast.shape[1] == 48 + 24  # a reservation looks a day ahead
    assert (near.announced == far.announced).all()
    assert (near.known_from == far.known_from).all()


def test_errors_grow_from_the_same_random_numbers() -> None:
    span = repeated(load("two-apps"), 1, 24)
    small, large = (
        unfold(span, steps=24, horizon=24, errors=Errors(duration_noise=noise), seed=1)
        for noise in (0.2, 0.4)
    )
    assert np.allclose(np.log(large.announced), 2 * np.log(small.announced))


def test_noise_of_traffic_lasts_and_has_the_size_that_was_asked_for() -> None:
    """Correlation 0.8 from hour to hour, standard deviation 0.3 of the logarithm, over 20,000 hours."""
    app = RealtimeApp("app", 1.0, (10_000,) * 24)
    span = repeated(day(1, (), (app,)), 800, 24)
    world = unfold(span, steps=800 * 24, horizon=24, errors=Errors(traffic_noise=0.3), seed=3)
    logs = np.log(world.forecast[0] / 10_000)
    assert logs.std() == pytest.approx(0.3, abs=0.02)
    assert logs.mean() == pytest.approx(0.0, abs=0.03)
    assert np.corrcoef(logs[1:], logs[:-1])[0, 1] == pytest.approx(0.8, abs=0.02)


def test_a_known_future_is_worth_more_than_an_unknown_one() -> None:
    """Not for every day, but on these: nothing known beforehand costs value."""
    for name in ("two-apps", "mixed-day", "training-rush"):
        known = roll(load(name), days=4)
        unknown = roll(load(name), days=4, errors=Errors(0.0, 0.8, 0.0, 1.0, 1.0), seed=1)
        assert float(known.figures["objective"] or 0) > float(unknown.figures["objective"] or 0)


def test_a_cluster_of_more_than_a_word_of_gpus_rolls_as_well() -> None:
    run = roll(made_up(96, 24, 40), days=2, errors=Errors(duration_noise=0.5))
    assert run.check() == []
    assert (run.plan.first_gpu + run.plan.size > 64).any()


def test_a_proof_per_plan_is_possible_where_time_allows() -> None:
    pytest.importorskip("ortools")
    batch = (job("a", 2, 4, 3), job("b", 1, 3, 5), job("c", 4, 2, 1))
    app = RealtimeApp("app", 2.0, (1, 2) * 12, max_swap=1, held=(3,))
    scenario = replace(
        day(4, batch, (app,)), horizon=Horizon(4, 6 * HOUR), realtime=(replace(app, demand=(1, 2, 1, 2)),)
    )
    run = roll(scenario, "exact", days=1, time_limit_s=5)
    assert run.check() == []
    assert float(run.figures["objective"] or 0) == pytest.approx(run.hindsight_bound, rel=0.2)


def test_a_forecast_of_ones_own_takes_the_place_of_what_comes() -> None:
    app = RealtimeApp("app", 1.0, (3,) * 24)
    span = repeated(day(8, (), (app,)), 1, 24)
    world = unfold(span, steps=24, horizon=24, forecast=np.full((1, 24), 2.2))
    assert (world.forecast == 3).all()  # whole GPUs, upwards
    run = roll(unfold(span, steps=24, horizon=24, forecast=np.ones((1, 24))))
    assert (run.plan.held == 1).all()


def test_announced_hours_of_ones_own_take_the_place_of_real_ones() -> None:
    span = repeated(day(1, (job("first", 1, 8, 9), job("second", 1, 4, 1))), 1, 24)
    world = unfold(span, steps=24, horizon=24, announced_hours=[4.0, 4.0])
    assert world.announced.tolist() == [0.5, 1.0]
    noisy = unfold(span, steps=24, horizon=24, announced_hours=[4.0, 4.0], errors=Errors(duration_bias=1.0))
    assert noisy.announced.tolist() == [0.25, 0.5]


@pytest.mark.parametrize(
    ("hours", "sentence"),
    [
        ([1.0], "announced_hours: must have an entry for each of 2 jobs (its shape is (1,))"),
        (["a", "b"], "announced_hours: must be numbers"),
        ([float("nan"), 0.0], "announced_hours.0: must be above 0 and known (first (day 1)) (got nan)"),
        ([1.0, -2.0], "announced_hours.1: must be above 0 and known (second (day 1)) (got -2.0)"),
    ],
)
def test_announced_hours_that_cannot_be_are_refused(hours: Any, sentence: str) -> None:
    span = repeated(day(1, (job("first", 1, 8, 9), job("second", 1, 4, 1))), 1, 24)
    with pytest.raises(InputError) as caught:
        unfold(span, steps=24, horizon=24, announced_hours=hours)
    assert sentence in str(caught.value)


# ------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("settings_", "sentence"),
    [
        ({"days": 0}, "days: must be a whole number of at least 1 (got 0)"),
        ({"days": 2.5}, "days: must be a whole number of at least 1 (got 2.5)"),
        ({"days": 10_000}, "days: must be at most 833 days of such steps (got 10000)"),
        (
            {"horizon_hours": 0.4},
            "horizon_hours: must be a whole number of steps of 60 min, at least one (got 0.4)",
        ),
        ({"horizon_hours": 1e5}, "horizon_hours: must be 1 to 1008 steps"),
        (
            {"replan_every": 0.5},
            "replan_every: must be a whole number of steps of 60 min, at least one (got 0.5)",
        ),
        (
            {"horizon_hours": 2, "replan_every": 3},
            "replan_every: must not be longer than the horizon of 2 h (got 3)",
        ),
        ({"errors": {"trafic_noise": 1}}, "errors.trafic_noise: unknown error of a forecast"),
        ({"errors": {"traffic_noise": -1}}, "errors.traffic_noise: must be a number from 0 to 3 (got -1)"),
        (
            {"errors": Errors(duration_bias=-1, unannounced=2)},
            "errors.unannounced: must be a number from 0 to 1 (got 2)",
        ),
        ({"replan_every": "20min"}, "replan_every: must be a whole number of steps of 60 min, at least one"),
        ({"replan_every": "1:30"}, "replan_every: must name its unit, as in 90min, 90s or 1.5h"),
        (
            {"horizon_hours": "soon"},
            "horizon_hours: must be a number of hours, or a number with s, min, h, d or w",
        ),
        ({"policy": "awre"}, "policy: must be one of"),
        ({"iteration": 3}, "iteration: unknown keyword; did you mean iterations?"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_a_sentence(
    settings_: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError) as caught:
        roll(load("mixed-day"), **settings_)
    assert sentence in str(caught.value)


def test_times_may_be_written_with_a_unit() -> None:
    both = [
        roll(load("mixed-day"), days=1, replan_every=every, horizon_hours=horizon)
        for every, horizon in ((2, 12), ("120min", "0.5d"))
    ]
    assert both[0].fingerprint == both[1].fingerprint


def test_days_of_ones_own_bring_their_settings() -> None:
    world = roll(load("mixed-day"), days=1).days
    with pytest.raises(InputError) as caught:
        roll(world, days=3, errors=Errors())
    assert "days: must be left out: the days that are given have their own (got 3)" in str(caught.value)
    assert "errors: must be left out" in str(caught.value)


def test_a_step_that_does_not_divide_the_day_is_refused() -> None:
    scenario = replace(load("mixed-day"), horizon=Horizon(24, 7 * HOUR))
    with pytest.raises(InputError, match="must divide a day"):
        roll(scenario)
    assert DAY_S % (7 * HOUR)


@pytest.mark.parametrize(
    ("forecast", "sentence"),
    [
        ([["a"]], "forecast: must be numbers"),
        (np.ones((2, 24)), "forecast: must have a row for each of 1 apps"),
        (np.ones((1, 3)), "at least 24 steps"),
        (np.full((1, 24), np.nan), "forecast.0.0: must be finite and at least 0"),
    ],
)
def test_a_forecast_that_cannot_be_is_refused(forecast: Any, sentence: str) -> None:
    span = repeated(day(4, (), (RealtimeApp("app", 1.0, (1,) * 24),)), 1, 24)
    with pytest.raises(InputError) as caught:
        unfold(span, steps=24, horizon=24, forecast=forecast)
    assert sentence in str(caught.value)


def test_plain_python_rolls_to_the_same_days() -> None:
    """Without a compiler every number is the same, seeds of hashes included."""
    program = (
        "from gpuplan.allocation.days import Errors; from gpuplan.allocation.rolling import roll; "
        "from gpuplan.loading import load; "
        "print(roll(load('mixed-day'), 'aware', days=2, errors=Errors(0.1, 0.3, 0.1, 0.4, 0.5), seed=3).fingerprint)"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONHASHSEED": "77"}
    plain = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    errors = Errors(0.1, 0.3, 0.1, 0.4, 0.5)
    assert plain.stdout.strip() == roll(load("mixed-day"), "aware", days=2, errors=errors, seed=3).fingerprint
