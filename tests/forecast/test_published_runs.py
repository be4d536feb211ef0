"""Estimates beside published runs: the errors are computed, and no better than they are."""

import pandas as pd
import pytest

from gpuplan.forecast.published_runs import RUNS, table


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return table().set_index("run")


def test_every_run_has_its_source_and_its_figures(runs: pd.DataFrame) -> None:
    assert len(runs) == len(RUNS) >= 8
    assert runs.index.is_unique
    assert runs["source"].str.contains(r"arXiv \d{4}\.\d{5}|model card|blog").all()
    assert not runs.drop(columns="note").isna().any(axis=None)
    assert (runs["low"] < runs["estimated_gpu_hours"]).all()
    assert (runs["estimated_gpu_hours"] < runs["high"]).all()


def test_the_error_of_llama_65b_by_hand(runs: pd.DataFrame) -> None:
    """65.2B and 1.4T tokens: 55.2 % of 312 TFLOP/s are the median, 90 % of the time makes progress.

    The shape is derived: 69 layers of width 8,832, which is 12 l h s = 15.0e9 beside 6 N = 391.2e9 a token.
    """
    operations = 1.4e12 * (6 * 65.2e9 + 12 * 69 * 8832 * 2048)
    hours = operations / (312e12 * 0.552) / 3600 / 0.9
    row = runs.loc["LLaMA-65B"]
    assert row["published_gpu_hours"] == 1_022_362
    assert row["estimated_gpu_hours"] == pytest.approx(hours, rel=1e-6)
    assert row["error_percent"] == pytest.approx(100 * (hours - 1_022_362) / 1_022_362)
    assert row["in_range"]


def test_every_error_is_that_of_its_row(runs: pd.DataFrame) -> None:
    again = 100 * (runs["estimated_gpu_hours"] - runs["published_gpu_hours"]) / runs["published_gpu_hours"]
    assert runs["error_percent"].tolist() == pytest.approx(again.tolist())
    within = runs["published_gpu_hours"].between(runs["low"], runs["high"])
    assert runs["in_range"].tolist() == within.tolist()


def test_the_errors_lie_in_the_band_that_is_stated(runs: pd.DataFrame) -> None:
    """Half of all errors are within 25 %, and the estimates lean low: runs hold more than the training itself."""
    error = runs["error_percent"]
    assert error.abs().median() < 25
    assert -25 < error.median() < 0
    assert 0.5 <= runs["in_range"].mean() < 0.75
    assert error.abs().max() < 80  # RLHF is off by a factor of four


def test_pre_training_of_dense_models_is_within_a_factor_of_two_and_a_half(runs: pd.DataFrame) -> None:
    dense = runs[runs["variant"] == "cpt-full"]
    ratio = dense["published_gpu_hours"] / dense["estimated_gpu_hours"]
    assert len(dense) >= 15
    assert ratio.between(0.8, 2.5).all()


def test_rlhf_is_underestimated_and_the_table_shows_it(runs: pd.DataFrame) -> None:
    chat = runs[runs["variant"] == "rlhf-full"]
    assert len(chat) == 3
    assert (chat["error_percent"] < -50).all()
    assert not chat["in_range"].any()


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_every_run_fits_the_gpus_that_it_had(run: object) -> None:
    made = run.estimate()  # type: ignore[attr-defined]
    assert made.gpus >= made.task.gpus
    assert made.memory.total_gib <= made.task.gpu.usable_gib
