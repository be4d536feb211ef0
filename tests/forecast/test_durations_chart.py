"""The chart of a back-test: every tested job is in it, its points are the table's, and it needs no network."""

import json

import numpy as np
import pandas as pd
import pytest

from gpuplan import theme
from gpuplan.forecast.duration_charts import LOOKS, calibration_data, durations_chart, map_data
from gpuplan.forecast.durations_backtest import DurationBacktest, backtest_durations
from gpuplan.inputs.errors import InputError


@pytest.fixture(scope="module")
def result() -> DurationBacktest:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "submit_s": np.arange(300) * 3600,
            "duration_s": np.exp(rng.normal(8, 1, 300)),
            "gpus": 1,
            "user": rng.choice(["a", "b"], 300),
            "limit_s": np.where(np.arange(300) < 150, np.nan, 86_400),
        }
    )
    return backtest_durations(table, folds=1, min_jobs=50)


def test_every_tested_job_is_in_the_bin_of_its_times(result: DurationBacktest) -> None:
    bins = map_data(result, "model")
    said = result.predictions.query("method == 'model'")
    assert bins["jobs"].sum() == len(said) == 150
    for row in bins.itertuples():
        inside = said[
            (said["p50_s"] / 3600).between(row.predicted_h, row.predicted_to_h, inclusive="left")
            & (said["actual_s"] / 3600).between(row.actual_h, row.actual_to_h, inclusive="left")
        ]
        assert len(inside) == row.jobs
    np.testing.assert_allclose(bins["actual_to_h"] / bins["actual_h"], 10**0.25)


def test_points_of_calibration_are_the_shares_of_the_table(result: DurationBacktest) -> None:
    points = calibration_data(result).set_index(["method", "aimed"])["within"]
    table = result.table[result.table["scope"] == "all tested jobs"].set_index("method")
    assert len(points) == 2 * 4
    assert points["own median", 90] == pytest.approx(100 * table.loc["own median", "within_p90"])


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_axes_have_units_and_nothing_comes_from_elsewhere(result: DurationBacktest, mode: theme.Mode) -> None:
    spec = durations_chart(result, mode=mode).to_dict()
    text = json.dumps(spec)
    for title in ("predicted run time, model (hours, log)", "actual run time (hours, log)"):
        assert title in text
    for title in ("quantile that was predicted (%)", "jobs not longer than predicted (%)"):
        assert title in text
    assert spec["background"] == theme.PAPER[mode]
    assert spec["description"] == result.sentence
    assert " ".join(spec["title"]["subtitle"]) == result.sentence
    assert text.count("http") == text.count(spec["$schema"])


def test_a_chart_can_be_drawn(result: DurationBacktest) -> None:
    vl_convert = pytest.importorskip("vl_convert", reason="vl-convert is not installed")
    picture = vl_convert.vegalite_to_svg(durations_chart(result, "limit").to_dict())
    assert "actual run time (hours, log)" in picture
    assert "150 jobs" in picture


def test_methods_differ_in_colour_and_shape() -> None:
    assert (
        len({colour for colour, _ in LOOKS.values()})
        == len({shape for _, shape in LOOKS.values()})
        == len(LOOKS)
    )


def test_a_method_that_was_not_tested_is_refused(result: DurationBacktest) -> None:
    with pytest.raises(InputError, match="did you mean own median"):
        durations_chart(result, "own medan")
