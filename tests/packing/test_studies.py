"""Claims about packing: formulas by hand, simulated where theory gives the answer or at least its sign."""

import math
import re

import numpy as np
import pytest

from gpuplan.packing import margin_studies, studies
from gpuplan.packing.charts import claims
from gpuplan.packing.charts.claims_panels import crossings
from gpuplan.packing.margin_studies import GB, copies, copies_fit, margin_needed
from gpuplan.packing.study_runs import outcome, saved_percent


# ------------------------------------------------------------------------- the margin that is needed
@pytest.mark.parametrize(
    ("declared", "uncounted", "needed"),
    [
        (10, 0.5, 0.20),  # (1.5 + 0.5) / 10
        (5, 0.5, 0.25),  # (0.75 + 0.5) / 5
        (3, 0.5, 0.95 / 3),  # (0.45 + 0.5) / 3 = 31.7 %
        (30, 0, 0.15),  # nothing uncounted: the overshoot
    ],
)
def test_the_margin_needed_is_overshoot_and_uncounted_context(
    declared: float, uncounted: float, needed: float
) -> None:
    assert math.isclose(margin_needed(declared, uncounted), needed)


def test_simulated_memory_runs_out_where_the_formula_says() -> None:
    found = margin_studies.margin_study((3, 5, 10), (0, 0.5), (0.1, 0.15, 0.2, 0.25, 0.3, 0.325))
    assert len(found.table) == 3 * 2 * 6 * 2
    assert len(found.wrong()) == 0
    assert (found.table["out_of_memory"] > 0).any()
    least = found.least().set_index(["declared_gb", "uncounted_gb", "gpu"])["least"]
    assert least[10, 0.5, "filled"] == 0.2  # to the byte
    assert least[5, 0.5, "filled"] == 0.25
    assert least[3, 0.5, "filled"] == 0.325  # the first tried from 31.7 % on
    assert least[5, 0, "filled"] == 0.15
    # what is left over on a real GPU only ever helps
    for size, context in ((3, 0.5), (5, 0.5), (10, 0.5), (10, 0)):
        assert least[size, context, "80 GB"] <= least[size, context, "filled"]


def test_a_wrong_formula_would_be_found() -> None:
    found = margin_studies.margin_study((5,), (0.5,), (0.2, 0.25))
    high = margin_studies.MarginStudy(found.table.assign(needed=0.3))
    low = margin_studies.MarginStudy(found.table.assign(needed=0.1))
    assert len(high.wrong()) > 0
    assert len(low.wrong()) > 0


def test_a_byte_decides_on_a_full_gpu() -> None:
    """4 models of 10 GB with 20 % reserve 48 GB, and take 4 x (11.5 + 0.5) = 48 GB."""
    full = margin_studies.full_gpu(10, 0.5, 0.2, 48 * GB)
    assert len(full.models) == 4
    assert len(outcome(full, "first-fit").raw.breaches) == 0
    more = margin_studies.full_gpu(10, 0.5 + 1 / GB, 0.2, 48 * GB)
    assert len(outcome(more, "first-fit").raw.breaches) == 1


# ------------------------------------------------------------------------------------ the staircase
def test_the_staircase_wins_a_third_from_16_25_to_16_96_gb() -> None:
    # 80 / (16.25 x 1.2 + 0.5) = 4, a little above only 3; 80 / (16.96 + 0.5) = 4.58
    assert [copies(size, 0.2) for size in (16.25, 16.26, 16.96)] == [4, 3, 3]
    assert [copies(size, 0.0) for size in (16.26, 16.96)] == [4, 4]
    # 4 x (16.95 x 1.15 + 0.5) = 79.97 GB, 4 x (16.96 x 1.15 + 0.5) = 80.016 GB
    assert copies_fit(16.95, 4)
    assert not copies_fit(16.96, 4)
    found = margin_studies.bands()
    spans = [(row.from_gb, row.to_gb, row.with_margin, row.without) for row in found.itertuples()]
    assert spans == [(16.26, 16.95, 3, 4), (21.81, 22.75, 2, 3), (32.92, 34.34, 1, 2)]
    assert found["gain_percent"].round().tolist() == [33, 50, 100]


def test_the_staircase_is_simulated_with_and_without_room() -> None:
    found = margin_studies.stair_study((16.6, 18.0), (0.0, 0.2), ("none", "sharing"), seeds=(1, 2))
    at = found.without_margin().set_index(["contention", "declared_gb"])
    # one model more, 3 to 4: at most a third more; none where they share what the GPU does
    assert 10 < at.loc[("none", 16.6), "throughput_gain"] <= 100 / 3
    assert abs(at.loc[("sharing", 16.6), "throughput_gain"]) < 2
    assert at.loc[("sharing", 16.6), "on_gpu_gain"] > 20
    assert at.loc[("none", 16.6), "out_of_memory"] == at.loc[("none", 16.6), "failed"] == 0
    # 4 x (18 x 1.15 + 0.5) = 84.8 GB do not fit into 80
    assert at.loc[("none", 18.0), "out_of_memory"] > 0
    assert at.loc[("none", 18.0), "failed"] > 0.2
    usual = found.table[found.table["margin"] == 0.2]
    assert (usual[["throughput_gain", "on_gpu_gain", "out_of_memory"]] == 0).all(axis=None)


# ------------------------------------------------------------------------------------------- waits
def test_a_shared_queue_saves_what_theory_says() -> None:
    """The design's facts: 80, 71 and 63 % at load 0.5, 0.7 and 0.9, and a long simulation near them."""
    assert [round(studies.shared_queue_saving(load)) for load in (0.5, 0.7, 0.9)] == [80, 71, 63]
    # one server has one queue: nothing to save
    assert abs(studies.shared_queue_saving(0.7, servers=1)) < 1e-6
    found = studies.wait_study(("queueing",), (0.5, 0.7), (8000,), (1, 2, 3))
    saved = found.saved("round-robin").set_index("load")
    for load in (0.5, 0.7):
        assert abs(saved.loc[load, "saved_percent"] - studies.shared_queue_saving(load)) < 5


def test_nothing_to_load_leaves_placement_nothing_to_save_against_skipping() -> None:
    found = studies.wait_study(("queueing",), (0.7, 1.3), (100,), (1, 2))
    assert (found.saved("round-robin-skip")["saved_percent"] == 0).all()


def test_far_above_its_load_a_node_has_nothing_to_save() -> None:
    found = studies.wait_study(("queueing", "models"), (0.7, 2.0), (500,), (1, 2, 3))
    saved = found.saved("round-robin").set_index(["workload", "load"])["saved_percent"]
    for workload in ("queueing", "models"):
        assert saved[workload, 0.7] > 40
        assert saved[workload, 2.0] < 10
    assert (found.waits()["wait_s"] > 0).all()
    with pytest.raises(ValueError, match="no workload 'other'"):
        studies.waiting_scenario("other", 1, 1, 1)


def test_a_longer_burst_begins_with_the_shorter_one() -> None:
    from gpuplan.packing.problem import tasks_of

    short, long = (tasks_of(studies.waiting_scenario("models", 0.9, count, 4)) for count in (20, 50))
    for column in ("arrival_us", "model", "service_us"):
        assert np.array_equal(getattr(long, column)[:20], getattr(short, column))


def test_savings_are_of_sums_with_jackknifed_intervals() -> None:
    # 1 - 3 / 6 = 50 %; without one seed each 1 - 2 / 5 = 60 % and 1 - 1 / 1 = 0 %: pseudo-values 40 and 100 %
    mean, low, high = saved_percent(np.array([1.0, 2.0]), np.array([1.0, 5.0]))
    assert mean == 50
    half = 12.7062 * 30  # t of one degree of freedom x standard error of 40 and 100
    assert math.isclose(low, 50 - half, abs_tol=1e-3)
    assert math.isclose(high, 50 + half, abs_tol=1e-3)
    assert all(map(math.isnan, saved_percent(np.zeros(2), np.zeros(2))))
    assert saved_percent(np.array([1.0]), np.array([4.0]))[0] == 75


# -------------------------------------------------------------------------------------- preemption
def test_the_break_even_is_the_cost_of_a_save_not_a_second() -> None:
    thresholds = (0.0, 1.0, 5.0, 20.0, math.inf)
    found = studies.threshold_study((1,), (5.0,), thresholds, (1, 2, 3), 2000)
    wait = found.means("urgent_wait_s").set_index("threshold_s")["urgent_wait_s"]
    assert wait[5.0] == wait.min()
    assert wait[1.0] > wait[5.0] < wait[math.inf]
    # everybody else, and all together, are served best without preemption
    for figure in ("other_latency_s", "latency_s"):
        mean = found.means(figure).set_index("threshold_s")[figure]
        assert mean[math.inf] == mean.min()
        assert mean[0.0] == mean.max()
    preempted = found.table.groupby("threshold_s")["preemptions"].mean()
    assert preempted.is_monotonic_decreasing
    assert preempted[math.inf] == 0
    assert found.best("urgent_wait_s")["threshold_s"].tolist() == [5.0]
    assert np.allclose(found.table["sum_s"], found.table["urgent_wait_s"] + found.table["other_latency_s"])


# ------------------------------------------------------------------------------------------- mixes
def test_both_mixes_declare_as_much_and_offer_as_much() -> None:
    from gpuplan.packing.offered import offered_load

    sums = []
    for mix in ("uniform", "mixed"):
        scenario = studies.mix_scenario(mix, 0.6, 1)
        sums.append(sum(model.declared_bytes for model in scenario.models))
        assert math.isclose(offered_load(scenario), 0.6)
    assert sums[0] == sums[1] == 240 << 30
    with pytest.raises(ValueError, match="no mix 'other'"):
        studies.mix_scenario("other", 1, 1)


def test_backfill_gains_more_where_sizes_differ() -> None:
    found = studies.mix_study((0.9,), ("best-fit", "best-fit+backfill"), (1, 2, 3), 1500)
    saved = found.saved("best-fit+backfill", "best-fit").set_index("mix")["saved_percent"]
    assert saved["mixed"] > saved["uniform"] > 0
    assert found.order("mixed", 0.9) == ["best-fit+backfill", "best-fit"]


# ------------------------------------------------------------------------------------------ charts
def test_a_contour_runs_where_a_map_crosses_its_level() -> None:
    # a slope from 0 to 20 over two columns crosses 5 half way through the first cell
    assert crossings(np.array([[0.0, 10, 20], [0, 10, 20]]), 5) == [(0.5, 0, 0.5, 1)]
    assert crossings(np.array([[0.0, 10], [0, math.nan]]), 5) == []
    # a saddle of 9 and 0 (mean 4.5 < 5): the high corners are cut off, one by one
    top, right, bottom, left = (4 / 9, 0), (1, 5 / 9), (5 / 9, 1), (0, 4 / 9)
    assert ends(crossings(np.array([[9.0, 0], [0, 9]]), 5)) == ends([(*left, *top), (*right, *bottom)])
    # of 9 and 4 (mean 6.5 > 5): the low corners are
    top, right, bottom, left = (0.8, 0), (1, 0.2), (0.2, 1), (0, 0.8)
    assert ends(crossings(np.array([[9.0, 4], [4, 9]]), 5)) == ends([(*top, *right), (*bottom, *left)])


def ends(segments: list[tuple[float, float, float, float]]) -> set[frozenset[tuple[float, float]]]:
    """Segments without direction, rounded."""
    return {
        frozenset(((round(x, 6), round(y, 6)), (round(x2, 6), round(y2, 6)))) for x, y, x2, y2 in segments
    }


def test_charts_say_what_they_need_and_their_numbers() -> None:
    waits = studies.wait_study(loads=(0.7, 1.3), bursts=(20, 100), seeds=(1, 2))
    drawn = [
        claims.wait_map(waits),
        claims.margin_chart(margin_studies.margin_study((3, 10), (0, 0.5), (0.1, 0.2, 0.35))),
        claims.stair_chart(margin_studies.stair_study((16.6,), (0.0, 0.2), ("slowdown",), (1, 2))),
        claims.threshold_chart(studies.threshold_study((1,), (2.0,), (0.0, 2.0, math.inf), (1, 2), 200)),
        claims.mix_chart(
            studies.mix_study((0.6,), ("best-fit", "best-fit+backfill"), (1, 2), 200), mode="dark"
        ),
    ]
    for chart in drawn:
        spec = chart.to_dict()
        assert any(re.match("What .* needs: ", line) for line in spec["title"]["subtitle"])
        assert re.search(r"\d", spec["description"])
    assert "3 GB: 31.7 %" in drawn[1].to_dict()["description"]


def test_the_same_study_twice_is_the_same_table() -> None:
    once, again = (studies.wait_study(("models",), (0.9,), (50,), (1, 2)).table for _ in range(2))
    assert once.equals(again)
