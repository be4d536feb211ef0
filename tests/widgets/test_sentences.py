import pytest

import gpuplan as gp
from gpuplan.allocation.figures import UNITS
from gpuplan_widgets import sentences


def hand(penalty: float, *, demand=(1, 1, 1, 1), gpus: int = 2, batch=None, **app: object):
    """Four hours, one app of priority 1, and (on two GPUs) one block that is worth 2 x 4 x 10 = 80."""
    block = {"name": "block", "kind": "training", "gpus": 2, "hours": 4, "priority": 10}
    return gp.load(
        {
            "kind": "allocation",
            "name": "hand",
            "cluster": {"gpus": gpus},
            "horizon": {"steps": 4},
            "objective": {"shortfall_penalty": penalty, "half_life_hours": None},
            "realtime": [{"name": "chat", "priority": 1, "demand": list(demand), **app}],
            "batch": ([block] if gpus == 2 else []) if batch is None else batch,
        }
    )


def test_the_change_is_said_in_points_and_per_cent():
    # fifo reserves 1 of 2 GPUs, the block cannot start: 4 of 8 GPU-hours are used, value 0.
    # aware at penalty 5: serving saves 4 x 5 = 20, the block earns 80, so it takes both GPUs.
    scenario = hand(5)
    fifo, aware = gp.plan(scenario, "fifo"), gp.plan(scenario, "aware")
    assert sentences.change(fifo, aware) == (
        "utilization 50.0 % → 100.0 %, +50.0 points; value 0.0 → 80.0 priority-weighted GPU-hours"
    )
    assert sentences.change(aware, fifo) == (
        "utilization 100.0 % → 50.0 %, −50.0 points; value 80.0 → 0.0 priority-weighted GPU-hours, −100 %"
    )
    assert sentences.change(aware, aware).endswith(
        "±0.0 points; value 80.0 → 80.0 priority-weighted GPU-hours, ±0 %"
    )


def test_the_distance_from_the_bound_belongs_to_the_scenario_as_set():
    # Penalty 50: the app's 4 GPU-hours are worth 200, the block 80, and no plan has both. FIFO serves: objective 0.
    # Without a penalty to pay the block earns its 80 and nothing is better.
    for penalty, fifo, aware in ((50, 0, 0), (0, 0, 80)):
        scenario = hand(penalty)
        plans = [gp.plan(scenario, policy) for policy in ("fifo", "aware")]
        assert [plan.figures["objective"] for plan in plans] == [fifo, aware]
        told = sentences.bound(*plans)
        bound = plans[0].figures["bound"]
        assert told.startswith(
            f"No plan of this scenario as set (penalty {penalty}) can have an objective above "
        )
        assert f"above {bound:,.1f}; fifo: " in told
    assert told.endswith(
        "above 80.0; fifo: at most 100.0 % below the best possible; "
        "aware: the best possible, as it reaches the bound."
    )
    assert sentences.bound(plans[1], plans[1]).count("aware") == 1


def test_a_block_that_outbids_traffic_is_named_with_its_worth():
    assert sentences.notes(gp.plan(hand(5), "aware")) == [
        "aware: 4 GPU-hours of traffic (chat, hours 0–4) stay unserved: although the penalty is 5, a block outbids "
        "it; the largest there, block, is worth 2 GPUs × 4 h × priority 10 = 80 before decay."
    ]


def test_with_a_penalty_above_the_blocks_worth_there_is_nothing_to_say():
    # 4 GPU-hours x 50 = 200 > 80
    assert sentences.notes(gp.plan(hand(50), "aware")) == []


def test_at_penalty_zero_unserved_traffic_costs_nothing():
    (note,) = sentences.notes(gp.plan(hand(0), "aware"))
    assert note.endswith("(chat, hours 0–4) stay unserved: at penalty 0 that costs nothing.")


def test_a_ramp_ahead_of_a_peak_is_explained_by_its_cap():
    # 4 GPUs at hour 3, two acquired per step: 2 must be held at hour 2 already.
    assert sentences.notes(gp.plan(hand(8, demand=(0, 0, 0, 4), gpus=4, max_swap=2), "aware")) == [
        "aware: chat holds up to 2 GPUs more than it needs (hours 2–3) to be ready for a peak, because it may "
        "acquire only 2 GPUs per step."
    ]


def test_a_reservation_is_no_ramp():
    assert sentences.notes(gp.plan(hand(8, demand=(0, 0, 0, 4), gpus=4, max_swap=2), "fifo")) == []


def test_a_cap_that_keeps_an_app_from_free_gpus_is_told_from_a_full_cluster():
    # It holds none before step 0 and may acquire 2: 2 of 4 are missing in hour 0 though GPUs are free.
    (capped,) = sentences.notes(gp.plan(hand(8, demand=(4, 4, 4, 4), gpus=4, max_swap=2, held=[]), "aware"))
    assert capped == (
        "aware: 2 GPU-hours of traffic (chat, hours 0–1) stay unserved: GPUs are free, but limits hold it back "
        "(chat: its swap cap is 2 per step)."
    )
    # 6 are wanted of 4
    (full,) = sentences.notes(gp.plan(hand(8, demand=(6, 0, 0, 0), gpus=4), "aware"))
    assert "2 GPU-hours of traffic (chat, hours 0–1) stay unserved: all available GPUs serve" in full


def test_running_work_that_keeps_its_gpus_is_not_called_a_bid():
    running = [{"name": "run", "kind": "training", "gpus": 2, "hours": 4, "priority": 1, "running_on": 0}]
    (note,) = sentences.notes(gp.plan(hand(1000, batch=running), "aware"))
    assert note.endswith("work that was running already (run) keeps its GPUs.")


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", '"><img src=x>', "&amp;<b>"])
def test_names_stay_text_in_the_summary(name):
    block = {"name": name, "kind": "training", "gpus": 2, "hours": 4, "priority": 10}
    plan = gp.plan(hand(5, batch=[block]), "aware")
    page = sentences.summary_html(plan, plan)
    assert name not in page
    assert "&lt;" in page


def test_the_table_of_figures_has_a_unit_per_row():
    plan = gp.plan(hand(5), "aware")
    page = sentences.figures_html(plan, plan)
    assert page.count("<tr>") == 1 + len(plan.figures)
    assert '<th scope="row">unserved traffic (GPU-hours)<br><small>shortfall_gpu_hours</small></th>' in page
    assert "swaps over the horizon (GPUs acquired)<br>" in page
    assert "batch jobs with a place<br>" in page
    assert "traffic that is served (per cent of real-time demand)" in page
    assert f"<td>{100 * plan.figures['utilization']:.1f}&nbsp;%</td>" in page
    assert set(sentences._WORDS) == set(UNITS)
