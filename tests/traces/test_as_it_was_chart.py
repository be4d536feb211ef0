"""The chart of a record above policies: one time axis, all figures in words, names as text, a legend for the lines."""

import json
from typing import Any

import numpy as np
import pytest

from gpuplan.fairshare.model import BudgetNode, FairshareScenario, Pool
from gpuplan.traces.as_it_was import HONESTY, Compared, compare_as_it_was
from gpuplan.traces.as_it_was_chart import MOST_GANTTS, as_it_was_chart
from gpuplan.traces.history import history

NAME = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def compared() -> Compared:
    """Four jobs of two teams; the last one waited 100 s although GPUs were free."""
    what = history(
        "log.psv",
        np.arange(2, 6),
        job=["a", "b", NAME, "d"],
        gpus=[4, 4, 2, 8],
        team=["x", "x", NAME, "y"],
        submit_s=[1000, 1000, 1100, 1200],
        start_s=[1000, 1100, 1200, 1300],
        end_s=[1100, 1300, 1400, 1400],
        elapsed_s=[100, 200, 200, 100],
        state="completed",
    )
    budget = tuple(BudgetNode(name) for name in ("x", "y", NAME))
    scenario = FairshareScenario("week", (Pool(2, 8),), budget, jobs=what.jobs())
    policies = ["fifo", "easy", "conservative", "sjf", "fair-share"]
    return compare_as_it_was(scenario, what, policies)


def frames(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [rows[0] for name, rows in sorted(spec["datasets"].items()) if name.endswith("_frame")]


def test_the_record_and_the_policies_stand_below_each_other_on_one_axis(compared: Compared) -> None:
    spec = as_it_was_chart(compared).to_dict()
    found = frames(spec)
    assert [frame["title"] for frame in found] == ["as-it-was", "fifo", "easy", "conservative"]
    assert len(found) == MOST_GANTTS
    assert len({frame["x2"] for frame in found}) == 1
    # 4x100 + 4x200 + 2x200 + 8x100 = 2400 of 16 GPUs x 400 s; waits 0, 100, 100, 100 s
    assert "wait mean 1.25 min" in found[0]["figures"]
    assert f"occupancy {100 * 2400 / 6400:.1f} %" in found[0]["figures"]
    bars = spec["datasets"]["run_0_bars"]
    assert sorted((bar["x"], bar["x2"]) for bar in bars) == [
        (0, round(100 / 3600, 5)),
        (round(100 / 3600, 5), round(300 / 3600, 5)),
        (round(200 / 3600, 5), round(400 / 3600, 5)),
        (round(300 / 3600, 5), round(400 / 3600, 5)),
    ]


def test_what_it_cannot_say_stands_in_the_chart_and_in_its_words(compared: Compared) -> None:
    chart = as_it_was_chart(compared)
    spec = chart.to_dict()
    subtitle = " ".join(spec["title"]["subtitle"])
    for sentence in HONESTY:
        assert sentence in subtitle
        assert sentence in spec["description"]
    assert "2 more policies are measured below and not drawn." in subtitle
    policies = {row["policy"] for row in spec["datasets"]["pyramid"]}
    assert policies == set(compared.runs)


def test_the_lines_and_the_bars_have_a_legend_each(compared: Compared) -> None:
    """Shortest first is measured and not drawn: its name stands in both legends, and nowhere else."""
    vl_convert = pytest.importorskip("vl_convert")
    assert vl_convert.vegalite_to_svg(as_it_was_chart(compared).to_dict()).count(">sjf<") == 2


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_it_is_drawn_in_both_modes_and_names_stay_text(compared: Compared, mode: Any) -> None:
    vl_convert = pytest.importorskip("vl_convert")
    chart = as_it_was_chart(compared, mode=mode)
    spec = chart.to_dict()
    dark = next(param for param in spec["params"] if param["name"] == "dark")
    assert dark["value"] == (mode == "dark")
    drawn = vl_convert.vegalite_to_svg(spec)
    assert "<img" not in drawn
    assert "as-it-was" in drawn
    assert len(json.dumps(spec)) < 200_000
