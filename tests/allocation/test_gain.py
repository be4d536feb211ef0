"""The gain taken apart, the curves of a sensitivity, and their charts."""

import json

import pandas as pd
import pytest

from gpuplan.allocation.charts import sensitivity_chart, waterfall_chart
from gpuplan.allocation.charts.gain import waterfall_data
from gpuplan.allocation.charts.sensitivity import curves_data
from gpuplan.allocation.gain import FIGURES, PATHS, take_apart
from gpuplan.allocation.model import AllocationScenario, BatchJob, Horizon, Objective, RealtimeApp
from gpuplan.allocation.plan import plan
from gpuplan.allocation.sensitivity import sensitivity
from gpuplan.cluster import Cluster
from gpuplan.inputs.errors import InputError
from gpuplan.loading import load


@pytest.fixture(scope="module")
def hand_sized() -> AllocationScenario:
    """Two GPUs, four hours, no decay; the app wants 1 GPU in the last hour only.

    fifo reserves one GPU all day: job a (1 GPU, 2 h, priority 1) runs in hours 0-1, b (1 GPU, 2 h, priority 5) in
    2-3, c (1 GPU, 3 h, priority 2) never. Without the reservation a and b start together and c finds no three
    hours; by worth b and c start together, a after b in hours 2-3 - but the app needs a GPU in hour 3: c
    ends by then, so all fit.
    """
    jobs = (
        BatchJob("a", "training", 1, 2.0, 1.0),
        BatchJob("b", "training", 1, 2.0, 5.0),
        BatchJob("c", "training", 1, 3.0, 2.0),
    )
    app = RealtimeApp("app", 3.0, (0, 0, 0, 1))
    return AllocationScenario(
        "hand", Cluster(2), Horizon(4), Objective(8.0, None), realtime=(app,), batch=jobs
    )


def test_the_steps_of_a_day_worked_by_hand(hand_sized: AllocationScenario) -> None:
    """fifo: a and b, 2 + 10 = 12. curve-fifo: the same two at once, 12. peak-priority: b, then a, 12.

    curve-priority: b and c at once, a after b: 10 + 6 + 2 = 18. Only both together gain: interaction 6.
    """
    apart = take_apart(hand_sized, iterations=50)
    value = {policy: apart.figure(policy, "value") for policy in apart.plans}
    assert value == {
        "fifo": 12,
        "curve-fifo": 12,
        "peak-priority": 12,
        "curve-priority": 18,
        "aware": 18,
        "search": 18,
    }
    assert apart.interaction() == 6
    assert [step.change for step in apart.steps("reservation first")] == [0, 6, 0, 0]
    assert [step.change for step in apart.steps("order first")] == [0, 6, 0, 0]
    assert "+6.0 beyond the sum of each alone" in apart.sentence()


@pytest.mark.parametrize("name", ["training-rush", "two-apps", "benchmark-large-blocks"])
def test_the_steps_of_each_path_add_up_to_the_whole_gain(name: str) -> None:
    apart = take_apart(load(name), iterations=300)
    for figure in FIGURES:
        for path in PATHS:
            steps = apart.steps(path, figure)
            assert sum(step.change for step in steps) == pytest.approx(apart.total(figure))
            assert [step.after for step in steps[:-1]] == [step.before for step in steps[1:]]
    table = apart.table
    assert len(table) == len(FIGURES) * 2 * 4
    points = table[(table["figure"] == "utilization") & (table["path"] == "order first")]["change"].sum()
    assert points == pytest.approx(100 * apart.total("utilization"))


def test_the_same_scenario_gives_the_same_gain() -> None:
    scenario = load("two-apps")
    first, second = take_apart(scenario), take_apart(scenario)
    assert repr(first) == repr(second)
    assert first._repr_html_() == second._repr_html_()


@pytest.mark.parametrize("figure", FIGURES)
def test_the_waterfall_starts_each_bar_where_the_last_one_ended(figure: str) -> None:
    apart = take_apart(load("training-rush"), iterations=200)
    for number, path in enumerate(PATHS):
        data = waterfall_data(apart, figure)[f"path_{number}"]
        steps = apart.steps(path, figure)
        scale = 100 if figure == "utilization" else 1
        for step, low, high, kind in zip(
            steps, data["low"][1:], data["high"][1:], data["kind"][1:], strict=False
        ):
            assert sorted((scale * step.before, scale * step.after)) == pytest.approx([low, high], abs=1e-3)
            assert kind == ("gain" if step.change >= 0 else "loss")
        assert (data["row"][-1] == "best possible, at most") == (figure == "objective")


def test_charts_draw_without_a_network_and_names_stay_text() -> None:
    scenario = load("training-rush").replace({"name": "</script><b>x"})
    for chart in (
        waterfall_chart(take_apart(scenario, iterations=50), "objective", mode="dark"),
        sensitivity_chart(sensitivity(scenario, (0, 8), (8,), iterations=50)),
    ):
        text = json.dumps(chart.to_dict())
        assert "</script" not in text
        assert "http" not in text.replace("https://vega.github.io/schema", "")
        assert "</script><b>x" not in chart.to_html(inline=True)


def test_curves_hold_the_figures_of_plans() -> None:
    scenario = load("mixed-day")
    found = sensitivity(scenario, (0, 8, 20), (6, 8), ("fifo", "aware"))
    assert found.penalty["penalty"].tolist() == [0, 0, 8, 8, 20, 20]
    assert found.gpus["gpus"].tolist() == [6, 6, 8, 8]
    row = found.penalty[(found.penalty["penalty"] == 8) & (found.penalty["policy"] == "aware")].iloc[0]
    made = plan(scenario)
    for figure in ("value", "coverage", "utilization", "objective", "bound"):
        assert row[figure] == made.figures[figure]
    assert curves_data(found)["gpus"]["coverage"][-1] == pytest.approx(
        100 * float(made.figures["coverage"] or 0)
    )
    pd.testing.assert_frame_equal(
        found.penalty, sensitivity(scenario, (0, 8, 20), (6, 8), ("fifo", "aware")).penalty
    )


def test_sizes_that_the_scenario_does_not_allow_are_said_not_dropped() -> None:
    scenario = load("mixed-day").replace({"cluster.unavailable": [7]})
    found = sensitivity(scenario, (8,), (4, 8), ("fifo",))
    assert found.gpus["gpus"].tolist() == [8]
    assert list(found.refused) == [4]
    assert "4 GPUs are left out: cluster.unavailable must be the number of a GPU, 0 to 3" in found.sentence


def test_the_penalty_at_which_a_block_outbids_traffic_is_found_and_named() -> None:
    """Two GPUs, two hours, no decay: `block` (2 GPUs, 2 h, priority 3) earns 12; the app (priority 1) misses 2 GPU-h.

    A lone job of 1 GPU (2 h, priority 3) would earn 6 beside the app: the block costs 2 x penalty and gains 6.
    It is outbid from a penalty of 3 on.
    """
    jobs = (
        BatchJob("block", "training", 2, 2.0, 3.0),
        BatchJob("lone", "training", 1, 2.0, 3.0),
    )
    app = RealtimeApp("chat", 1.0, (1, 1))
    scenario = AllocationScenario(
        "outbid", Cluster(2), Horizon(2), Objective(8.0, None), realtime=(app,), batch=jobs
    )
    outbid = sensitivity(scenario, (0, 8), (2,), ("aware",)).outbid
    assert outbid is not None
    assert outbid.penalty == pytest.approx(3.0, abs=0.02)
    assert (outbid.job, outbid.app, outbid.gpu_hours) == ("block", "chat", 2.0)
    assert "block (2 GPUs × 2 h, priority 3)" in outbid.sentence


def test_penalties_may_come_from_a_generator() -> None:
    scenario = load("training-rush")
    found = sensitivity(scenario, (penalty for penalty in (0, 8)), (8,), ("aware",))
    assert found.penalty["penalty"].tolist() == [0, 8]
    assert found.outbid == sensitivity(scenario, (0, 8), (8,), ("aware",)).outbid
    assert found.outbid is not None


def test_every_policy_that_may_leave_demand_unmet_has_a_penalty_of_its_own() -> None:
    """On this day the search finds plans that leave demand unmet where `aware` serves it: one figure is not for all."""
    scenario = load("training-rush")
    found = sensitivity(scenario, (0, 8), (8,), ("fifo", "aware", "search", "aware"), iterations=2_000)
    assert list(found.outbids) == ["aware", "search"]  # fifo reserves
    for policy, outbid in found.outbids.items():
        served = [
            plan(scenario.replace({"objective.shortfall_penalty": penalty}), policy, iterations=2_000).figures
            for penalty in (outbid.penalty - 0.02, outbid.penalty + 0.02, 8)
        ]
        short = [figures["shortfall_gpu_hours"] for figures in served]
        assert short[0] > 0 == short[1] == short[2]
        assert f"Below a penalty of {outbid.penalty:.2f} {policy} leaves" in found.sentence
    assert found.outbid == max(found.outbids.values(), key=lambda one: one.penalty)
    assert found.outbids["search"].penalty > found.outbids["aware"].penalty


def test_without_traffic_nothing_is_outbid() -> None:
    scenario = AllocationScenario(
        "calm", Cluster(2), Horizon(2), batch=(BatchJob("a", "training", 1, 1.0, 1.0),)
    )
    found = sensitivity(scenario, (0, 8), (1, 2), ("aware",))
    assert found.outbid is None
    assert found.sentence == "No block outbids traffic at any of these penalties."


def test_mistakes_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean aware"):
        sensitivity(load("mixed-day"), (8,), (8,), ("awear",))
    with pytest.raises(InputError, match="shortfall_penalty"):
        sensitivity(load("mixed-day"), (-1,), (8,))
    with pytest.raises(InputError, match="iterations"):
        take_apart(load("mixed-day"), iterations=-1)
