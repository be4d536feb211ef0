"""Sweeps of all three kinds: rows are what the runs alone give, errors stay with their point, seeds are common."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pandas as pd
import pytest

import gpuplan
from gpuplan.sweeps.work import Task, parcel, run_chunk
from sweeps.executors import Here

PENALTY, GPUS = "objective.shortfall_penalty", "cluster.gpus"


def small_packing() -> Any:
    return gpuplan.load("four-gpus").replace({"tasks.generate.count": 60})


def test_rows_are_the_plans_of_the_points() -> None:
    found = gpuplan.sweep("two-apps", {PENALTY: [0, 5], GPUS: [8, 16]}, executor=Here())
    scenario = gpuplan.load("two-apps")
    assert len(found.table) == 8
    for row in found.table.to_dict("records"):
        changed = scenario.replace({PENALTY: row[PENALTY], GPUS: row[GPUS]})
        figures = gpuplan.plan(changed, row["policy"]).figures
        assert {name: row[name] for name, value in figures.items() if value is not None} == {
            name: value for name, value in figures.items() if value is not None
        }
        assert all(math.isnan(row[name]) for name, value in figures.items() if value is None)
    assert found.table["error"].isna().all()
    assert found.table["cost"].isna().all()  # the scenario has no price
    assert "4 points x 2 policies over objective.shortfall_penalty (2), cluster.gpus (2); 0 errors" in repr(
        found
    )


def test_one_bad_point_does_not_lose_the_others() -> None:
    found = gpuplan.sweep("two-apps", {GPUS: [8, -1, 16]}, "aware", executor=Here())
    assert found.table["error"].isna().tolist() == [True, False, True]
    assert found.errors["error"].tolist() == ["cluster.gpus: must be at least 1 (got -1)"]
    assert found.errors[GPUS].tolist() == [-1]
    assert found.table["objective"].isna().tolist() == [False, True, False]
    assert found.means("objective")["missing"].tolist() == [0, 1, 0]


def test_an_error_of_the_code_is_told_and_stays_with_its_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpuplan.allocation import plan as plans

    real = plans.plan

    def fails(scenario: Any, policy: str, **effort: Any) -> Any:
        if policy == "aware":
            raise ZeroDivisionError("of something")
        return real(scenario, policy, **effort)

    monkeypatch.setattr(plans, "plan", fails)
    found = gpuplan.sweep("two-apps", {GPUS: [8]}, executor=Here())
    assert found.errors["policy"].tolist() == ["aware"]
    assert found.errors["error"].tolist() == ["ZeroDivisionError: of something"]


def test_packing_rows_are_its_runs_and_policies_meet_the_same_tasks() -> None:
    scenario = small_packing()
    found = gpuplan.sweep(
        scenario, {"preemption.when": ["never", "always"], "seed": [1, 2, 3]}, executor=Here()
    )
    assert len(found.table) == 12
    for row in found.table.iloc[[0, 7]].to_dict("records"):
        changed = scenario.replace(
            {"preemption.when": row["preemption.when"], "tasks.generate.seed": row["seed"]}
        )
        figures = gpuplan.pack(changed, row["policy"]).figures
        assert row["latency_mean_s"] == figures["latency_mean_s"]
    # the load offered is a property of the tasks alone: one per seed, whatever the setting or the policy
    assert found.table.groupby("seed")["load"].nunique().tolist() == [1, 1, 1]
    assert found.table["load"].nunique() == 3
    means = found.means("latency_mean_s")
    assert means["n"].tolist() == [3, 3, 3, 3]
    assert (means["low"] < means["mean"]).all()
    assert found.differences("round-robin", "latency_mean_s")["policy"].unique().tolist() == ["best-fit"]


def test_fairshare_rows_are_its_runs() -> None:
    found = gpuplan.sweep("first-hours", {"window": ["1d", "7d"]}, executor=Here())
    scenario = gpuplan.load("first-hours")
    for row in found.table.to_dict("records"):
        run = gpuplan.simulate(scenario.replace({"window": row["window"]}), row["policy"])
        assert row["mean_wait_s"] == run.figures["mean_wait_s"]


def test_search_repeats_without_being_told_how_long() -> None:
    scenario = gpuplan.load("two-apps")
    task = Task(0, {}, {"seed": 3}, ("search",))
    token, blob = parcel(scenario)
    (first,), _ = run_chunk(token, blob, [task])
    (second,), _ = run_chunk(token, None, [task])
    assert first == second
    from gpuplan.allocation.plan import repeatable

    assert first.figures == gpuplan.plan(scenario, "search", seed=3, **repeatable(scenario)).figures


def test_chunks_grow_where_points_are_quick_and_threads_give_the_same_table() -> None:
    here = Here()
    axes = {PENALTY: [k / 8 for k in range(120)]}
    one = gpuplan.sweep("two-apps", axes, "aware", executor=here)
    assert (here.points, one.computed) == (120, 120)
    assert here.chunks < 100
    with ThreadPoolExecutor(2) as threads:
        two = gpuplan.sweep("two-apps", axes, "aware", executor=threads)
    pd.testing.assert_frame_equal(one.table, two.table)


def test_progress_counts_points_to_the_end() -> None:
    seen: list[tuple[int, int]] = []
    gpuplan.sweep(
        "two-apps",
        {PENALTY: range(5)},
        "aware",
        executor=Here(),
        progress=lambda done, points: seen.append((done, points)),
    )
    assert seen[0] == (0, 5)
    assert seen[-1] == (5, 5)
    assert seen == sorted(seen)


def test_the_bar_of_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    gpuplan.sweep("two-apps", {PENALTY: range(3)}, "fifo", executor=Here(), progress=True)
    assert capsys.readouterr().err.endswith("\r[" + "#" * 30 + "] 3 of 3 points\n")
    gpuplan.sweep("two-apps", {PENALTY: range(3)}, "fifo", executor=Here())
    assert capsys.readouterr().err == ""


def test_the_chart_has_units_bands_and_names_as_text() -> None:
    scenario = small_packing().replace({"name": "<script>alert(1)</script>"})
    axes = {"admission.margin": [0.1, 0.2, 0.3], "preemption.when": ["never", "always"], "seed": range(3)}
    found = gpuplan.sweep(scenario, axes, executor=Here())
    spec = found.chart().to_dict()
    panels = spec["concat"]
    assert [panel["title"]["text"] for panel in panels] == ["preemption.when never", "preemption.when always"]
    assert [layer["mark"]["type"] for layer in panels[0]["layer"]] == ["area", "line", "circle"]
    y = panels[0]["layer"][1]["encoding"]["y"]
    assert y["axis"]["title"] == ["latency_mean_s", f"({found.units['latency_mean_s']})"]
    assert spec["resolve"]["scale"]["y"] == "shared"
    assert "mean of 3 seeds; bands: 95 % confidence" in str(spec["title"])
    assert "alert(1)</script>" not in str(found.chart()._repr_mimebundle_())
    shares = gpuplan.sweep("two-apps", {PENALTY: [0, 5]}, executor=Here()).chart("coverage").to_dict()
    assert "no interval" in str(shares["title"])
    assert "per cent" in str(shares["concat"][0])


def test_a_chart_that_cannot_be_says_so() -> None:
    found = gpuplan.sweep("two-apps", {"seed": [0, 1]}, "aware", executor=Here())
    with pytest.raises(gpuplan.InputError, match="an axis beside the seed"):
        found.chart()
    with pytest.raises(gpuplan.InputError, match="unknown figure; did you mean objective"):
        found.means("objectiv")
    with pytest.raises(gpuplan.InputError, match="two or more policies"):
        found.differences("aware")


def test_the_bench_of_overhead_counts_every_point() -> None:
    from gpuplan.benchmarks import sweeps

    assert 0 < sweeps._overhead() < 1  # it asserts that all ten thousand came back
