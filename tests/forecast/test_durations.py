"""Learning durations: what a model says, that it repeats, and what is used where there is none."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from gpuplan.forecast.durations import (
    OWN_FROM,
    DurationModel,
    advised,
    announced_hours,
    fit_durations,
    predict_or_estimate,
)
from gpuplan.inputs.errors import InputError

QUANTILES = (0.1, 0.5, 0.9)


def table_of(number: int = 400, seed: int = 0) -> pd.DataFrame:
    """Jobs of four users: an hour per GPU, ten times that for user d, give or take a factor of about 1.5."""
    rng = np.random.default_rng(seed)
    gpus = rng.choice([1, 2, 8], number)
    user = rng.choice(list("abcd"), number)
    noise = np.exp(rng.normal(0, 0.4, number))
    hours = gpus * np.where(user == "d", 10, 1) * noise
    return pd.DataFrame(
        {"submit_s": np.arange(number) * 3600.0, "duration_s": hours * 3600, "gpus": gpus, "user": user}
    )


@pytest.fixture(scope="module")
def model() -> DurationModel:
    return fit_durations(table_of(), QUANTILES)


def test_a_model_tells_short_jobs_from_long_ones(model: DurationModel) -> None:
    """The true medians are 1 h and 80 h; a factor of two around them is 1.7 standard deviations of a single job."""
    rows = pd.DataFrame({"submit_s": 400 * 3600, "gpus": [1, 8], "user": ["a", "d"]}, index=["short", "long"])
    said = model.predict(rows) / 3600
    assert list(said.columns) == ["p10_s", "p50_s", "p90_s"]
    assert said.index.tolist() == ["short", "long"]
    assert 0.5 < said.loc["short", "p50_s"] < 2
    assert 40 < said.loc["long", "p50_s"] < 160


def test_quantiles_never_cross(model: DurationModel) -> None:
    said = model.predict(table_of(300, seed=5).assign(submit_s=2e6)).to_numpy()
    assert (np.diff(said, axis=1) >= 0).all()
    assert (said > 0).all()


def test_quantiles_that_are_asked_for_in_any_order_rise() -> None:
    assert fit_durations(table_of(50), (0.9, 0.2), min_jobs=50).quantiles == (0.2, 0.9)


def test_the_same_table_in_another_order_gives_the_same_model(model: DurationModel) -> None:
    rows = table_of(50, seed=3).assign(submit_s=500 * 3600.0)
    again = fit_durations(table_of().sample(frac=1, random_state=4), QUANTILES)
    assert again.fingerprint == model.fingerprint
    pd.testing.assert_frame_equal(again.predict(rows), model.predict(rows), check_exact=True)
    backwards = model.predict(rows.iloc[::-1]).iloc[::-1]
    pd.testing.assert_frame_equal(backwards, model.predict(rows), check_exact=True)


def test_whatever_was_learned_from_is_in_the_fingerprint() -> None:
    """Asked of models without trees, which are quick to make."""
    table = table_of(50)
    other = table.assign(duration_s=table["duration_s"].where(table.index != 7, 1.0))
    prints = {
        fit_durations(table, QUANTILES).fingerprint,
        fit_durations(table.iloc[::-1], QUANTILES).fingerprint,  # the same again
        fit_durations(other, QUANTILES).fingerprint,
        fit_durations(table, (0.1, 0.5)).fingerprint,
        fit_durations(table, QUANTILES, min_jobs=100).fingerprint,
        fit_durations(table, QUANTILES, seed=1).fingerprint,
    }
    assert len(prints) == 5


def test_a_generator_is_a_seed_too() -> None:
    seeds = [fit_durations(table_of(9), seed=np.random.default_rng(2)).seed for _ in range(2)]
    assert seeds[0] == seeds[1] != 0


@pytest.mark.parametrize("seed", [-1, "one", None, True, 2**32])
def test_a_seed_that_is_none_is_refused(seed: object) -> None:
    with pytest.raises(InputError, match="seed: must be a whole number from 0 to 4,294,967,295"):
        fit_durations(table_of(9), seed=seed)  # type: ignore[arg-type]


def test_a_model_says_what_it_is(model: DurationModel) -> None:
    assert model.about == (
        "Learned from 400 jobs submitted from day 0.0 to day 16.6 of the table's clock: 10, 50, 90 % quantiles of run "
        "time from GPUs, hour of day, day of week, user, number, median and last of the user's ended jobs. "
        "Not back-tested: whether it beats the plain median of a person's own jobs is not known."
    )
    dated = table_of().assign(
        submit=pd.Timestamp("2026-01-01") + pd.to_timedelta(table_of()["submit_s"], unit="s")
    )
    about = fit_durations(dated.drop(columns="submit_s")).about
    assert about.startswith(
        "Learned from 400 jobs submitted from 2026-01-01 to 2026-01-17: 50, 90 % quantiles"
    )
    assert repr(model) == f"DurationModel: {model.about}"


def test_a_newer_history_is_looked_back_on_instead(model: DurationModel) -> None:
    """User e was not known when the model was made; five jobs of 7 h later its own median is."""
    rows = pd.DataFrame({"submit_s": [900 * 3600], "gpus": 1, "user": "e"})
    newer = pd.DataFrame({"submit_s": 600 * 3600, "duration_s": [7 * 3600.0] * 5, "gpus": 1, "user": "e"})
    own = advised(model, "own median", "Use the median.")
    assert predict_or_estimate(own, rows)["source"].tolist() == ["unknown"]
    said = predict_or_estimate(own, rows, newer)
    assert said["source"].tolist() == ["own median"]
    assert said["p90_s"].tolist() == [7 * 3600]


def test_too_few_jobs_are_said_and_medians_or_what_was_announced_used() -> None:
    """User a has 5 ended jobs of 1 to 5 h (median 3), b has 2, z none."""
    table = pd.DataFrame(
        {
            "submit_s": 0,
            "duration_s": [3600.0, 7200, 10800, 14400, 18000, 3600, 7200, -1],
            "gpus": 1,
            "user": list("aaaaabbb"),
        }
    )
    few = fit_durations(table)
    assert few.about == (
        "There are 7 usable jobs (1 more could not be used), and 200 are needed to learn durations: "
        "a person's own median or what was announced is used instead."
    )
    rows = pd.DataFrame(
        {
            "submit_s": 100_000,
            "gpus": 1,
            "user": ["a", "b", "b", "z", "z"],
            "limit_s": [9.0, 9, np.nan, 9, np.nan],
            "estimate_s": [8.0, 8, np.nan, np.nan, np.nan],
        }
    )
    said = predict_or_estimate(few, rows)
    assert said["source"].tolist() == ["own median", "estimate", "own median", "estimate", "unknown"]
    assert said["own_jobs"].tolist() == [5, 2, 2, 0, 0]
    np.testing.assert_allclose(said["p50_s"], [10800, 8, 5400, 9, np.nan])
    np.testing.assert_allclose(said["p90_s"], [16560, 8, 6840, 9, np.nan])  # 4 h + 0.6 h; 1 h + 0.9 h
    with pytest.raises(InputError, match="There are 7 usable jobs"):
        few.predict(rows)
    assert OWN_FROM == 5


def test_an_empty_table_is_too_few_jobs() -> None:
    empty = pd.DataFrame({"submit_s": [], "duration_s": [], "gpus": []})
    none = fit_durations(empty)
    assert none.about.startswith("There are 0 usable jobs, and 200 are needed")
    assert announced_hours(none, pd.DataFrame({"submit_s": [0], "gpus": [1], "limit_s": [7200]}), 0.9) == [
        2.0
    ]


def test_a_model_answers_for_every_job_unless_a_back_test_advised_against_it(model: DurationModel) -> None:
    rows = pd.DataFrame({"submit_s": 400 * 3600, "gpus": [1, 1], "user": ["a", "new"], "limit_s": [60, 60]})
    said = predict_or_estimate(model, rows)
    assert said["source"].tolist() == ["model", "model"]
    pd.testing.assert_frame_equal(said[["p10_s", "p50_s", "p90_s"]], model.predict(rows))
    own = advised(model, "own median", "The model does not beat the median.")
    assert predict_or_estimate(own, rows)["source"].tolist() == ["own median", "estimate"]
    assert own.about.endswith("The model does not beat the median.")


def test_hours_to_announce_are_those_of_the_quantile(model: DurationModel) -> None:
    rows = table_of(5, seed=8).assign(submit_s=500 * 3600)
    np.testing.assert_array_equal(announced_hours(model, rows, 0.9), model.predict(rows)["p90_s"] / 3600)
    with pytest.raises(
        InputError, match=r"must be one of the model's quantiles \(0.1, 0.5, 0.9\) \(got 0.8\)"
    ):
        announced_hours(model, rows, 0.8)


def test_no_rows_give_no_predictions(model: DurationModel) -> None:
    nobody = table_of(0)
    assert len(model.predict(nobody)) == 0
    assert len(predict_or_estimate(model, nobody)) == 0


def test_a_table_without_users_limits_and_names_is_enough() -> None:
    plain = fit_durations(table_of()[["submit_s", "duration_s", "gpus"]])
    assert "user" not in plain.about
    said = plain.predict(pd.DataFrame({"submit_s": [2e6], "gpus": [np.nan], "user": ["a"]}))
    assert said.notna().all(axis=None)


def test_without_scikit_learn_it_says_what_to_install_and_medians_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    lean = fit_durations(table_of())
    assert lean.about == (
        'Learning durations needs scikit-learn, which is not installed: pip install "gpuplan[forecast]".'
    )
    rows = pd.DataFrame({"submit_s": [500 * 3600], "gpus": [1], "user": ["a"]})
    with pytest.raises(InputError, match="needs scikit-learn"):
        lean.predict(rows)
    assert predict_or_estimate(lean, rows)["source"].tolist() == ["own median"]


def test_importing_it_imports_nothing_heavy() -> None:
    code = (
        "import sys, gpuplan.forecast.duration_charts, gpuplan.forecast.durations_backtest\n"
        "print([name for name in ('pandas', 'sklearn', 'altair', 'numba') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
