"""A moment of a rolling run as it is drawn and counted: what was committed, what is planned, figures so far."""

import re

import numpy as np
import pytest

import gpuplan as gp
from gpuplan.allocation.charts.rolling_columns import demand_tops, moment_data
from gpuplan.allocation.charts.rolling_live import moment_spec
from gpuplan.allocation.charts.rolling_moment import SO_FAR, describe_moment, moment_words, so_far, span_words

ERRORS = {"traffic_bias": -0.2, "traffic_noise": 0.3, "duration_noise": 0.4, "unannounced": 0.3}


@pytest.fixture(scope="module")
def run():
    return gp.roll("two-apps", "aware", days=3, errors=ERRORS)


@pytest.fixture(scope="module")
def reserved():
    """The same days under a policy that holds GPUs beyond the demand."""
    return gp.roll("two-apps", "fifo", days=3, errors=ERRORS)


def grid_of(columns, kept, names, gpus, first, hours, begin):
    """Cells of the bars that a condition keeps, as codes; checks that no two bars share a cell."""
    grid = np.full((gpus, hours), -1)
    for i, (kind, planned) in enumerate(zip(columns["kind"], columns["planned"], strict=True)):
        if planned != kept or kind == "unmet":
            continue
        low, high = round(columns["y"][i] + 0.5), round(columns["y2"][i] + 0.5)
        a, b = (round(columns[x][i] + begin - first) for x in ("x", "x2"))
        assert (grid[low:high, a:b] == -1).all()
        grid[low:high, a:b] = -2 if kind == "unavailable" else names.index(columns["job"][i])
    return grid


@pytest.mark.parametrize("number", [0, 5, 24, 40, 71])
def test_bars_left_of_now_are_what_was_committed_and_right_of_it_the_plan(run, number):
    columns = moment_data(run, number, demand_tops([run]))["moment_bars"]
    span, promise = run.days.span, run.promises[number]
    names = [work.name for work in (*span.batch, *span.realtime)]
    step, first = promise.step, max(0, promise.step - 24)
    gpus, begin = span.cluster.gpus, promise.step - 24
    if step > 0:
        done = grid_of(columns, 0, names, gpus, first, step - first, begin)
        np.testing.assert_array_equal(done, run.plan.grid[:, first:step])
    ahead = grid_of(columns, 1, names, gpus, step, run.days.horizon, begin)
    np.testing.assert_array_equal(ahead, run.grid_of(promise))


@pytest.mark.parametrize("number", [5, 24, 40])
def test_of_what_an_app_holds_as_much_is_drawn_as_used_as_it_wants(run, number):
    columns = moment_data(run, number, demand_tops([run]))["moment_bars"]
    promise, n_jobs = run.promises[number], len(run.days.span.batch)
    step, first = promise.step, max(0, promise.step - 24)
    expected = run.days.forecast[:, step : step + run.days.horizon]
    grid = run.grid_of(promise)
    held = np.stack([(grid == n_jobs + row).sum(axis=0) for row in range(2)])
    # on the second morning the plan knows that it cannot serve all of the coming day
    assert number != 24 or (held < expected).any()
    for planned, used, unmet in (
        (0, run.plan.served[:, first:step], (run.plan.demand - run.plan.served)[:, first:step]),
        (1, np.minimum(held, expected), np.maximum(0, expected - held)),
    ):
        bars = [i for i, flag in enumerate(columns["planned"]) if flag == planned]
        width = {i: columns["x2"][i] - columns["x"][i] for i in bars}
        area = {i: (columns["y2"][i] - columns["y"][i]) * width[i] for i in bars}
        serving = sum(area[i] for i in bars if columns["kind"][i] == "real-time")
        assert serving == pytest.approx(used.sum())
        missing = [(i, int(columns["job"][i].split()[0])) for i in bars if columns["kind"][i] == "unmet"]
        assert sum(width[i] * gpus for i, gpus in missing) == pytest.approx(unmet.sum())


def test_what_is_planned_is_pale_dashed_and_said_to_be_so(run):
    spec, sets = moment_spec(run.days), moment_data(run, 30, demand_tops([run]))
    bars = next(one for one in spec["concat"][0]["layer"] if one.get("name") == "moment_bars")
    for look in ("fillOpacity", "strokeDash"):
        assert "datum.planned" in bars["mark"][look]["expr"]
    assert sets["now"]["before"] == ["◀ committed"]
    assert sets["now"]["after"] == ["planned (pale, dashed) ▶"]
    states = {detail.split(", ")[-1] for detail in sets["moment_bars"]["detail"]}
    assert states == {"committed", "planned"}


def test_lines_stand_at_the_moment_and_where_the_next_plan_is_made(run):
    assert moment_data(run, 30, demand_tops([run]))["now"]["now"] == [24.0]
    assert moment_data(run, 30, demand_tops([run]))["now"]["next"] == [25.0]
    rare = gp.roll("big-day", "fifo", days=1, replan_every=6)
    lines = moment_data(rare, 2, demand_tops([rare]))["now"]
    assert (lines["now"], lines["next"]) == ([24.0], [30.0])


def steps_of(columns, name, first, count, begin):
    """A column of stretches, step by step."""
    found = np.full(count, -1)
    for a, b, value in zip(columns["x"], columns["x2"], columns[name], strict=True):
        found[round(a + begin - first) : round(b + begin - first)] = value
    return found.tolist()


@pytest.mark.parametrize("policy", ["fifo", "aware"])
@pytest.mark.parametrize("number", [3, 24, 50])
def test_demand_left_of_now_is_what_came_and_right_of_it_only_what_is_expected(run, reserved, policy, number):
    run = reserved if policy == "fifo" else run
    sets = moment_data(run, number, demand_tops([run]))
    step = run.promises[number].step
    first, begin = max(0, step - 24), step - 24
    for row in range(2):
        done, plan = sets[f"done_{row}"], sets[f"plan_{row}"]
        for name, array in (("came", run.plan.demand), ("held", run.plan.held), ("served", run.plan.served)):
            assert steps_of(done, name, first, step - first, begin) == array[row, first:step].tolist()
        assert (
            steps_of(done, "expected", first, step - first, begin)
            == (run.days.forecast[row, first:step]).tolist()
        )
        assert "came" not in plan
        ahead = run.days.forecast[row, step : step + 24].tolist()
        assert steps_of(plan, "expected", step, 24, begin) == ahead
        held = (run.grid_of(run.promises[number]) == len(run.days.span.batch) + row).sum(axis=0)
        assert steps_of(plan, "held", step, 24, begin) == held.tolist()
        assert steps_of(plan, "served", step, 24, begin) == np.minimum(held, ahead).tolist()
        assert max(done["top"]) >= max(*plan["held"], *done["came"])


def test_the_window_is_grey_where_there_are_no_days_and_names_the_days_it_crosses(run):
    tops = demand_tops([run])
    start = moment_data(run, 0, tops)
    assert (start["outside"]["x"][0], start["outside"]["x2"][0]) == (0.0, 24.0)
    assert start["outside"]["x"][1] == start["outside"]["x2"][1]  # a horizon ahead lies within the days
    ticks = dict(zip(start["ticks"]["x"], start["ticks"]["day"], strict=True))
    assert ticks[0.0] == ""
    assert ticks[24.0].startswith("day 1")
    assert ticks[48.0].startswith("day 2")
    end = moment_data(run, 71, tops)
    assert (end["outside"]["x"][1], end["outside"]["x2"][1]) == (25.0, 48.0)
    assert "end of the run" in end["ticks"]["day"]


def test_the_specification_is_that_of_the_window_alone(run):
    other = gp.roll("two-apps", "fifo", days=2)
    assert moment_spec(run.days) == moment_spec(other.days)
    longer = gp.roll("two-apps", "fifo", days=1, horizon_hours=36)
    assert moment_spec(longer.days) != moment_spec(other.days)


def test_figures_so_far_are_those_of_the_run_once_all_days_have_passed(run):
    found = so_far(run, run.days.steps)
    assert tuple(found) == SO_FAR
    assert found == pytest.approx({name: run.figures[name] for name in SO_FAR})


@pytest.mark.parametrize("step", [1, 17, 40])
def test_figures_so_far_count_the_committed_cells(run, step):
    found, grid = so_far(run, step), run.plan.grid[:, :step]
    jobs = run.days.span.batch
    cells = sum((grid == j).sum() * job.priority for j, job in enumerate(jobs))
    assert found["value"] == pytest.approx(cells)
    batch = ((grid >= 0) & (grid < len(jobs))).sum()
    available = run.days.span.cluster.n_available * step
    assert found["held"] == pytest.approx((grid >= 0).sum() / available)
    served, came = run.plan.served[:, :step].sum(), run.plan.demand[:, :step].sum()
    assert found["utilization"] == pytest.approx((batch + served) / available)
    assert found["coverage"] == pytest.approx(served / came)
    assert found["shortfall_gpu_hours"] == came - served
    begun = {j for j in range(len(jobs)) if (grid == j).any()}
    assert found["jobs_waiting"] == sum(
        job.earliest_hour < step and j not in begun for j, job in enumerate(jobs)
    )


def test_moments_are_named_by_day_and_hour(run):
    days = run.days
    assert re.fullmatch(r"day 2, \w{3} 06:00", moment_words(days, 30))
    assert span_words(days, 30, 33) == f"{moment_words(days, 30)} to 09:00"
    assert span_words(days, 30, 60) == f"{moment_words(days, 30)} to {moment_words(days, 60)}"
    undated = {
        "kind": "allocation",
        "name": "undated",
        "cluster": {"gpus": 2},
        "horizon": {"steps": 24, "step_hours": 1},
        "realtime": [{"name": "chat", "priority": 3, "demand": [1] * 24}],
        "batch": [],
    }
    assert moment_words(gp.roll(undated, "aware", days=2).days, 30) == "day 2, hour 6"


def test_a_moment_is_described_with_its_numbers(run):
    assert "nothing is committed yet; 24 hours are planned ahead." in describe_moment(run, 0)
    later, found = describe_moment(run, 30), so_far(run, 30)
    assert f"two-apps, 3 days: aware at {moment_words(run.days, 30)}, plan 31 of 72" in later
    assert (
        f"utilization {100 * found['utilization']:.1f} %, coverage {100 * found['coverage']:.1f} %" in later
    )
