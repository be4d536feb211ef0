"""The end of the world, and the gain against errors: what the tables say is what runs give; charts say it too."""

import json
from dataclasses import replace
from typing import Any

import pytest

import gpuplan as gp
from gpuplan.allocation.charts import (
    error_map_chart,
    horizon_chart,
    lookahead_chart,
    promise_chart,
)
from gpuplan.allocation.model import AllocationScenario, BatchJob, Horizon, Objective, RealtimeApp
from gpuplan.allocation.rolling import Errors, roll
from gpuplan.allocation.rolling_studies import EndOfWorld, ErrorMap, end_of_world, error_map
from gpuplan.cluster import Cluster
from gpuplan.inputs.errors import InputError
from gpuplan.loading import load


@pytest.fixture(scope="module")
def world() -> EndOfWorld:
    return end_of_world(load("two-apps"), ("fifo", "aware"), horizons_hours=(24, 1, 6), days=3)


@pytest.fixture(scope="module")
def wrong() -> ErrorMap:
    return error_map(load("two-apps"), traffic_noise=(0.4, 0), duration_noise=(0, 0.8), seeds=(0, 1), days=3)


def test_a_row_of_the_table_is_the_run_of_that_horizon(world: EndOfWorld) -> None:
    run = roll(load("two-apps"), "aware", days=3, horizon_hours=6)
    rows = world.table[(world.table["policy"] == "aware") & (world.table["horizon_hours"] == 6)]
    for figure, value in zip(rows["figure"], rows["value"], strict=True):
        assert run.figures[figure] == pytest.approx(value)


def test_what_is_lost_is_counted_from_the_longest_horizon(world: EndOfWorld) -> None:
    lost = world.lost.set_index(["policy", "horizon_hours"])["lost"]
    assert lost["aware", 24.0] == 0
    objective = world.lost.set_index(["policy", "horizon_hours"])["objective"]
    expected = (objective["aware", 24.0] - objective["aware", 1.0]) / objective["aware", 24.0]
    assert lost["aware", 1.0] == pytest.approx(expected)
    assert f"aware: a plan that sees 1 h loses {expected:.1%}" in " ".join(world.sentences)


def test_a_plan_that_sees_one_hour_loses_where_a_block_waits_for_the_peak_to_pass() -> None:
    """The app may change one GPU an hour: only who sees the peak coming serves it."""
    app = RealtimeApp("app", 9.0, (1,) * 10 + (6,) * 4 + (1,) * 10, max_swap=1)
    jobs = tuple(BatchJob(f"job-{i}", "training", 2, 6.0, 2.0) for i in range(6))
    day = AllocationScenario(
        "day", Cluster(8), Horizon(24), Objective(8.0, 24.0), realtime=(app,), batch=jobs
    )
    found = end_of_world(day, ("aware",), horizons_hours=(1, 12), days=3)
    coverage = found.table[found.table["figure"] == "coverage"].set_index("horizon_hours")["value"]
    assert coverage[1.0] < coverage[12.0] == 1.0


def test_a_cell_of_the_map_is_the_mean_of_its_runs(wrong: ErrorMap) -> None:
    base = roll(load("two-apps"), "fifo", days=3).figures["value"]
    gains = []
    for seed in (0, 1):
        errors = Errors(traffic_noise=0.4, duration_noise=0.8)
        both = [
            roll(load("two-apps"), name, days=3, errors=errors, seed=seed).figures["objective"]
            for name in ("fifo", "aware")
        ]
        gains.append((float(both[1] or 0) - float(both[0] or 0)) / float(base or 1))
    cell = wrong.mean.set_index(["traffic_noise", "duration_noise"]).loc[(0.4, 0.8)]
    assert cell["gain"] == pytest.approx(sum(gains) / 2)
    assert cell["least"] == pytest.approx(min(gains))
    assert cell["seeds"] == 2


def test_without_errors_all_seeds_give_the_same(wrong: ErrorMap) -> None:
    rows = wrong.table[(wrong.table["traffic_noise"] == 0) & (wrong.table["duration_noise"] == 0)]
    assert rows["gain"].nunique() == 1
    kept = wrong.mean.set_index(["traffic_noise", "duration_noise"])["kept"]
    assert kept[0.0, 0.0] == pytest.approx(1.0)


def test_a_gain_that_turns_negative_is_said_and_framed(wrong: ErrorMap) -> None:
    table = wrong.table.copy()
    table.loc[table["traffic_noise"] == 0.4, "gain"] = -0.25
    turned = replace(wrong, table=table)
    assert (
        "It turns negative in 2 of 4 cells, first at traffic noise 0.4 and duration noise 0"
        in turned.sentence
    )
    assert "It is negative nowhere" in wrong.sentence
    spec = error_map_chart(turned).to_dict()
    cells = spec["datasets"]["cells"]
    assert sum(cell["negative"] for cell in cells) == 2
    assert {cell["says"] for cell in cells if cell["negative"]} == {"-25%"}


def test_days_on_which_fifo_does_no_work_give_no_share() -> None:
    app = RealtimeApp("app", 1.0, (2,) * 24)
    day = AllocationScenario("day", Cluster(2), Horizon(24), realtime=(app,))
    found = error_map(day, traffic_noise=(0,), duration_noise=(0,), seeds=(0,), days=1)
    assert found.mean["gain"].isna().all()
    assert "no gain to speak of" in found.sentence
    assert error_map_chart(found).to_dict()["datasets"]["cells"][0]["says"] == "none"


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_charts_say_units_and_need_no_address(world: EndOfWorld, wrong: ErrorMap, mode: Any) -> None:
    run = roll(load("two-apps"), days=2, errors=Errors(0.0, 0.3, 0.0, 0.5))
    charts = [
        horizon_chart(world, mode=mode),
        error_map_chart(wrong, mode=mode),
        lookahead_chart(gp.plan("two-apps"), margin=0.2, mode=mode),
        promise_chart(run, mode=mode),
    ]
    for chart, word in zip(charts, ("hours", "sd of the log", "GPUs", "GPUs"), strict=True):
        text = json.dumps({k: v for k, v in chart.to_dict().items() if k != "$schema"})
        assert "http" not in text
        assert word in text
        assert chart.to_dict()["description"]


def test_names_from_files_stay_text_in_charts() -> None:
    day = replace(load("two-apps"), name="<script>alert(1)</script>")
    found = end_of_world(day, ("fifo",), horizons_hours=(1,), days=1)
    assert "<script>" in repr(found)  # plain text there
    html = horizon_chart(found).to_html(inline=True)
    assert "<script>alert(1)</script>" not in html


def test_policies_that_do_not_exist_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean aware"):
        end_of_world(load("two-apps"), ("awre",))
    with pytest.raises(InputError, match="must name at least one policy"):
        end_of_world(load("two-apps"), ())
    with pytest.raises(InputError, match="did you mean aware"):
        gp.error_map("two-apps", "awre")


def test_the_public_names_do_the_same() -> None:
    run = gp.roll("mixed-day", "fifo", days=1)
    assert isinstance(run, gp.RollingRun)
    assert run.fingerprint == roll(load("mixed-day"), "fifo", days=1).fingerprint
    assert gp.roll(run.days, "fifo").fingerprint == run.fingerprint
    assert isinstance(gp.end_of_world("mixed-day", ("fifo",), horizons_hours=(1,), days=1), EndOfWorld)
    assert len(gp.coverage_risk(gp.plan("mixed-day"))) == 24
    assert "gpu_hours" in gp.idle_windows(gp.plan("mixed-day"))
