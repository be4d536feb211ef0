"""The back-test: errors worked out by hand, nothing from the future, and advice that follows from the errors."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpuplan.forecast.duration_scores import LAST, LIMIT, MODEL, OVERALL, OWN, advise, scores
from gpuplan.forecast.durations import fit_durations, predict_or_estimate
from gpuplan.forecast.durations_backtest import ALL_JOBS, LIMITED, DurationBacktest, backtest_durations
from gpuplan.inputs.errors import InputError

HOUR = 3600.0


def alternating(number: int = 600) -> pd.DataFrame:
    """Two users; a job of 8 GPUs takes ten hours and one of 1 GPU one, give or take a tenth: a median misses both."""
    rng = np.random.default_rng(0)
    gpus = rng.choice([1, 8], number)
    hours = np.where(gpus == 8, 10, 1) * rng.uniform(0.9, 1.1, number)
    return pd.DataFrame(
        {
            "submit_s": np.arange(number) * HOUR,
            "duration_s": hours * HOUR,
            "gpus": gpus,
            "user": rng.choice(["a", "b"], number),
            "limit_s": np.where(np.arange(number) % 2 == 0, 24 * HOUR, np.nan),
        }
    )


@pytest.fixture(scope="module")
def result() -> DurationBacktest:
    return backtest_durations(alternating(), folds=2, min_jobs=100)


def test_errors_of_a_hand_sized_case() -> None:
    """Predicted medians 2 h and 2 h, actual 1 h and 4 h: errors 1 and 2 h, both a factor of two."""
    said = pd.DataFrame(
        {
            "method": OWN,
            "actual_s": [1 * HOUR, 4 * HOUR],
            "p50_s": [2 * HOUR, 2 * HOUR],
            "p90_s": [4 * HOUR, 4 * HOUR],
        }
    )
    (row,) = scores(said, (0.5, 0.9)).to_dict("records")
    assert row["jobs"] == 2
    assert row["mae_h"] == pytest.approx(1.5)
    assert row["log10_error"] == pytest.approx(np.log10(2))
    assert row["pinball_p50_h"] == pytest.approx(0.75)  # half of 1 and half of 2
    assert row["pinball_p90_h"] == pytest.approx(0.15)  # (0.1 x 3 + 0) / 2
    assert row["pinball_h"] == pytest.approx(0.45)
    assert (row["within_p50"], row["within_p90"]) == (0.5, 1.0)


def test_a_model_that_is_better_is_advised(result: DurationBacktest) -> None:
    table = result.table.set_index(["scope", "method"])["pinball_h"]
    assert table[ALL_JOBS, MODEL] < 0.5 * table[ALL_JOBS, OWN]
    assert result.use == "model"
    assert result.sentence.startswith("The model beats the user's own median: mean pinball loss ")
    assert "better in 2 of 2 stretches of time. Use the model." in result.sentence


def test_a_model_is_not_advised_where_there_is_nothing_to_learn() -> None:
    """Run times that follow nothing but whose they are: the median is as good as it gets."""
    rng = np.random.default_rng(3)
    user = rng.choice(["a", "b", "c"], 400)
    hours = np.select([user == "a", user == "b"], [1, 5], 25) * np.exp(rng.normal(0, 1, 400))
    table = pd.DataFrame(
        {
            "submit_s": np.arange(400) * HOUR,
            "duration_s": hours * HOUR,
            "gpus": rng.choice([1, 2, 4], 400),
            "user": user,
        }
    )
    found = backtest_durations(table, folds=3, min_jobs=60)
    assert found.use == "own median"
    assert found.sentence.startswith("The model does not beat the user's own median: mean pinball loss ")
    assert "Use the median." in found.sentence
    advised = found.advise(fit_durations(table))
    rows = pd.DataFrame({"submit_s": [500 * HOUR], "gpus": [1], "user": ["a"]})
    assert predict_or_estimate(advised, rows)["source"].tolist() == ["own median"]
    assert found.sentence in advised.about


def test_advice_needs_most_stretches_of_time_not_the_sum_alone() -> None:
    errors = pd.DataFrame({"method": [MODEL, OWN, OVERALL], "pinball_h": [1.0, 2.0, 0.5], "within_p50": 0.5})
    losses = {MODEL: [0.0, 1.5, 1.5], OWN: [4.0, 1.0, 1.0]}
    by_fold = pd.DataFrame(
        [
            {"fold": fold, "method": name, "pinball_h": found[fold]}
            for name, found in losses.items()
            for fold in range(3)
        ]
    )
    use, sentence = advise(errors, by_fold, (0.5,), "user")
    assert use == "own median"
    assert sentence == (
        "The model does not beat the user's own median: mean pinball loss 1.00 h against 2.00 h, better in 1 of 3 "
        "stretches of time. Use the median. Lower still is the overall median, with 0.50 h."
    )


def test_advice_tells_a_quantile_that_is_too_low() -> None:
    errors = pd.DataFrame({"method": [MODEL, OWN], "pinball_h": [1.0, 2.0], "within_p90": [0.84, 0.9]})
    by_fold = pd.DataFrame({"fold": 1, "method": [MODEL, OWN], "pinball_h": [1.0, 2.0]})
    use, sentence = advise(errors, by_fold, (0.5, 0.9), None)
    assert use == "model"
    assert sentence.startswith("The model beats the median of jobs with as many GPUs:")
    assert sentence.endswith("Use the model. But only 84 % of jobs were within its 90 % quantile.")


def test_every_method_is_asked_about_the_same_jobs(result: DurationBacktest) -> None:
    counts = result.table.set_index(["scope", "method"])["jobs"].to_dict()
    assert counts == {
        **{(ALL_JOBS, method): 400 for method in (MODEL, OWN, LAST, OVERALL)},
        **{(LIMITED, method): 200 for method in (MODEL, OWN, LAST, OVERALL, LIMIT)},
    }
    assert result.untested == (("in the first stretch, which has no past", 200),)
    assert result.account.used == 400 + 200
    rows = result.predictions.query("method == @MODEL")["row"]
    assert sorted(rows) == list(range(200, 600))  # jobs by submission, each once


def test_a_fold_learns_from_what_had_ended_before_it(result: DurationBacktest) -> None:
    table = alternating()
    ends = table["submit_s"] + table["duration_s"]
    for fold, start in ((1, 200 * HOUR), (2, 400 * HOUR)):
        learned = result.by_fold.loc[result.by_fold["fold"] == fold, "learned_from"].unique().tolist()
        assert learned == [int((ends < start).sum())]


def test_plain_methods_say_what_was_known_at_submission(result: DurationBacktest) -> None:
    """Worked out again from the table, job by job."""
    table = alternating()
    ends = table["submit_s"] + table["duration_s"]
    for row in (200, 371, 599):
        job = table.loc[row]
        ended = table[ends < job["submit_s"]]
        mine = ended[ended["user"] == job["user"]]
        said = result.predictions.query("row == @row").set_index("method")
        assert said.loc[OWN, "p90_s"] == pytest.approx(mine["duration_s"].quantile(0.9))
        assert said.loc[OVERALL, "p50_s"] == pytest.approx(ended["duration_s"].median())
        assert said.loc[LAST, "p50_s"] == mine.loc[ends[mine.index].idxmax(), "duration_s"]
        assert said.loc[LAST, "p90_s"] == said.loc[LAST, "p50_s"]
        assert (said["actual_s"] == job["duration_s"]).all()


def test_nobody_s_first_job_falls_back_on_as_many_gpus_then_on_all() -> None:
    table = alternating().assign(user=[f"user {number}" for number in range(600)])
    found = backtest_durations(table, folds=2, min_jobs=100)
    said = found.predictions.query("row == 599").set_index("method")
    ended = table[table["submit_s"] + table["duration_s"] < 599 * HOUR]
    alike = ended[ended["gpus"] == table["gpus"].iloc[-1]]
    assert said.loc[OWN, "p50_s"] == pytest.approx(alike["duration_s"].median())
    assert said.loc[LAST, "p50_s"] == said.loc[OWN, "p50_s"]


def test_what_happens_after_a_fold_cannot_change_what_was_said_in_it(result: DurationBacktest) -> None:
    """All jobs that had not ended when the first fold's last job was submitted take three times as long."""
    table = alternating()
    running = table["submit_s"] + table["duration_s"] >= 399 * HOUR
    assert running.sum() > 200
    other = table.assign(duration_s=table["duration_s"].where(~running, 3 * table["duration_s"]))
    changed = backtest_durations(other, folds=2, min_jobs=100)
    first, second = (
        found.predictions.query("fold == 1").drop(columns="actual_s").reset_index(drop=True)
        for found in (result, changed)
    )
    pd.testing.assert_frame_equal(first, second, check_exact=True)


def test_the_order_of_the_table_does_not_matter(result: DurationBacktest) -> None:
    again = backtest_durations(alternating().sample(frac=1, random_state=1), folds=2, min_jobs=100)
    pd.testing.assert_frame_equal(again.table, result.table, check_exact=True)
    assert again.jobs_fingerprint == result.jobs_fingerprint


def test_weeks_start_with_the_first_submission() -> None:
    """600 hours are 3.6 weeks: three are tested, of 168, 168 and 96 jobs."""
    found = backtest_durations(alternating(), folds="weeks", min_jobs=100)
    assert found.by_fold.query("method == @OWN")["jobs"].tolist() == [168, 168, 96]


def test_stretches_without_enough_history_are_counted() -> None:
    found = backtest_durations(alternating(), folds=5, min_jobs=250)
    assert found.untested == (
        ("in the first stretch, which has no past", 100),
        ("in a stretch before which fewer than 250 jobs had ended", 200),
    )
    assert len(found.predictions.query("method == @OWN")) == 300


def test_a_model_of_other_jobs_says_so(result: DurationBacktest) -> None:
    same = result.advise(fit_durations(alternating(), min_jobs=1000))  # advice needs no trees
    assert (same.use, same.advice) == ("model", result.sentence)
    other = result.advise(fit_durations(alternating(500), min_jobs=1000))
    assert other.advice == f"Back-tested on another table of jobs. {result.sentence}"


@pytest.mark.parametrize(
    ("folds", "said"),
    [
        (0, "folds: must be a whole number, at least 1 (got 0)"),
        ("week", "folds: must be a whole number or weeks; did you mean weeks? (got 'week')"),
        (2.5, "folds: must be a whole number, at least 1 (got 2.5)"),
    ],
)
def test_folds_that_cannot_be(folds: object, said: str) -> None:
    with pytest.raises(InputError) as error:
        backtest_durations(alternating(), folds, quantiles=(2,))  # type: ignore[arg-type]
    assert said in str(error.value)
    assert "quantiles.0: must be a number above 0 and below 1 (got 2)" in str(error.value)


@pytest.mark.parametrize("number", [0, 1, 50])
def test_too_short_a_past_is_an_error_that_says_how_short(number: int) -> None:
    with pytest.raises(InputError, match=f"before which 200 jobs had ended; there are {number} jobs"):
        backtest_durations(alternating().iloc[:number])


def test_without_scikit_learn_plain_methods_are_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    found = backtest_durations(alternating(), folds=2, min_jobs=100)
    assert found.use == "own median"
    assert found.sentence == (
        "The model was not tried. Learning durations needs scikit-learn, which is not installed: "
        'pip install "gpuplan[forecast]". Use the user\'s own median.'
    )
    assert MODEL not in set(found.table["method"])


def philly(shared: Path) -> pd.DataFrame:
    """Real jobs; the virtual cluster stands for the user, whom the trace does not name."""
    table = pd.read_csv(shared / "traces" / "philly" / "philly_jobs.csv.gz")
    return table.rename(columns={"timestamp": "submit", "duration": "duration_s", "num_gpus": "gpus"})


def test_three_thousand_real_jobs(shared: Path) -> None:
    """Two October days of the Philly trace: the model loses there, and the advice must say so, whatever one hoped.

    (Over all twelve weeks it wins by 6 % in five equal stretches and loses by 7 % week by week: half a minute each.)
    """
    table = philly(shared).sort_values("submit", kind="stable").iloc[20_000:23_000]
    found = backtest_durations(table, folds=1)
    assert (found.account.read, found.account.used) == (3000, 3000)
    scored = found.table.set_index("method")
    assert scored["jobs"].tolist() == [1500] * 4
    model_wins = scored.loc[MODEL, "pinball_h"] < scored.loc[OWN, "pinball_h"]
    assert found.use == "own median"
    assert not model_wins
    assert found.sentence.startswith("The model does not beat the cluster's own median")
    assert any("wait is unknown for 3,000 of 3,000 jobs" in rule for rule in found.account.rules)
